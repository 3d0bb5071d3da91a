//! The types of the functions of the language (F&O 3.1), for references to them: `abs#1 instance of function(xs:numeric?) as xs:numeric?`.

use super::usual_prefix;
use crate::items::Signature;
use crate::sequence::types::SeqType;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// One function a line: name, types of the parameters, type of the result. `opt` before a parameter: it and those behind it may be absent.
const SIGNATURES: &str = "
fn:abs(xs:numeric?) as xs:numeric?
fn:adjust-dateTime-to-timezone(xs:dateTime?; opt xs:dayTimeDuration?) as xs:dateTime?
fn:adjust-date-to-timezone(xs:date?; opt xs:dayTimeDuration?) as xs:date?
fn:adjust-time-to-timezone(xs:time?; opt xs:dayTimeDuration?) as xs:time?
fn:analyze-string(xs:string?; xs:string; opt xs:string) as element(Q{http://www.w3.org/2005/xpath-functions}analyze-string-result)
fn:apply(function(*); array(*)) as item()*
fn:available-environment-variables() as xs:string*
fn:avg(xs:anyAtomicType*) as xs:anyAtomicType?
fn:base-uri(opt node()?) as xs:anyURI?
fn:boolean(item()*) as xs:boolean
fn:ceiling(xs:numeric?) as xs:numeric?
fn:codepoint-equal(xs:string?; xs:string?) as xs:boolean?
fn:codepoints-to-string(xs:integer*) as xs:string
fn:collation-key(xs:string; opt xs:string) as xs:base64Binary
fn:collection(opt xs:string?) as item()*
fn:compare(xs:string?; xs:string?; opt xs:string) as xs:integer?
fn:contains(xs:string?; xs:string?; opt xs:string) as xs:boolean
fn:contains-token(xs:string*; xs:string; opt xs:string) as xs:boolean
fn:count(item()*) as xs:integer
fn:current-date() as xs:date
fn:current-dateTime() as xs:dateTimeStamp
fn:current-time() as xs:time
fn:data(opt item()*) as xs:anyAtomicType*
fn:dateTime(xs:date?; xs:time?) as xs:dateTime?
fn:day-from-date(xs:date?) as xs:integer?
fn:day-from-dateTime(xs:dateTime?) as xs:integer?
fn:days-from-duration(xs:duration?) as xs:integer?
fn:deep-equal(item()*; item()*; opt xs:string) as xs:boolean
fn:default-collation() as xs:string
fn:default-language() as xs:language
fn:distinct-values(xs:anyAtomicType*; opt xs:string) as xs:anyAtomicType*
fn:doc(xs:string?) as document-node()?
fn:doc-available(xs:string?) as xs:boolean
fn:document-uri(opt node()?) as xs:anyURI?
fn:element-with-id(xs:string*; opt node()) as element()*
fn:empty(item()*) as xs:boolean
fn:encode-for-uri(xs:string?) as xs:string
fn:ends-with(xs:string?; xs:string?; opt xs:string) as xs:boolean
fn:environment-variable(xs:string) as xs:string?
fn:escape-html-uri(xs:string?) as xs:string
fn:exactly-one(item()*) as item()
fn:exists(item()*) as xs:boolean
fn:false() as xs:boolean
fn:filter(item()*; function(item()) as xs:boolean) as item()*
fn:floor(xs:numeric?) as xs:numeric?
fn:fold-left(item()*; item()*; function(item()*, item()) as item()*) as item()*
fn:fold-right(item()*; item()*; function(item(), item()*) as item()*) as item()*
fn:for-each(item()*; function(item()) as item()*) as item()*
fn:for-each-pair(item()*; item()*; function(item(), item()) as item()*) as item()*
fn:format-date(xs:date?; xs:string; opt xs:string?; xs:string?; xs:string?) as xs:string?
fn:format-dateTime(xs:dateTime?; xs:string; opt xs:string?; xs:string?; xs:string?) as xs:string?
fn:format-time(xs:time?; xs:string; opt xs:string?; xs:string?; xs:string?) as xs:string?
fn:format-integer(xs:integer?; xs:string; opt xs:string?) as xs:string
fn:format-number(xs:numeric?; xs:string; opt xs:string?) as xs:string
fn:function-arity(function(*)) as xs:integer
fn:function-lookup(xs:QName; xs:integer) as function(*)?
fn:function-name(function(*)) as xs:QName?
fn:generate-id(opt node()?) as xs:string
fn:has-children(opt node()?) as xs:boolean
fn:head(item()*) as item()?
fn:hours-from-dateTime(xs:dateTime?) as xs:integer?
fn:hours-from-duration(xs:duration?) as xs:integer?
fn:hours-from-time(xs:time?) as xs:integer?
fn:id(xs:string*; opt node()) as element()*
fn:idref(xs:string*; opt node()) as node()*
fn:implicit-timezone() as xs:dayTimeDuration
fn:in-scope-prefixes(element()) as xs:string*
fn:index-of(xs:anyAtomicType*; xs:anyAtomicType; opt xs:string) as xs:integer*
fn:innermost(node()*) as node()*
fn:insert-before(item()*; xs:integer; item()*) as item()*
fn:iri-to-uri(xs:string?) as xs:string
fn:json-doc(xs:string?; opt map(*)) as item()?
fn:json-to-xml(xs:string?; opt map(*)) as document-node()?
fn:lang(xs:string?; opt node()) as xs:boolean
fn:last() as xs:integer
fn:load-xquery-module(xs:string; opt map(*)) as map(*)
fn:local-name(opt node()?) as xs:string
fn:local-name-from-QName(xs:QName?) as xs:NCName?
fn:lower-case(xs:string?) as xs:string
fn:matches(xs:string?; xs:string; opt xs:string) as xs:boolean
fn:max(xs:anyAtomicType*; opt xs:string) as xs:anyAtomicType?
fn:min(xs:anyAtomicType*; opt xs:string) as xs:anyAtomicType?
fn:minutes-from-dateTime(xs:dateTime?) as xs:integer?
fn:minutes-from-duration(xs:duration?) as xs:integer?
fn:minutes-from-time(xs:time?) as xs:integer?
fn:month-from-date(xs:date?) as xs:integer?
fn:month-from-dateTime(xs:dateTime?) as xs:integer?
fn:months-from-duration(xs:duration?) as xs:integer?
fn:name(opt node()?) as xs:string
fn:namespace-uri(opt node()?) as xs:anyURI
fn:namespace-uri-for-prefix(xs:string?; element()) as xs:anyURI?
fn:namespace-uri-from-QName(xs:QName?) as xs:anyURI?
fn:nilled(opt node()?) as xs:boolean?
fn:node-name(opt node()?) as xs:QName?
fn:normalize-space(opt xs:string?) as xs:string
fn:normalize-unicode(xs:string?; opt xs:string) as xs:string
fn:not(item()*) as xs:boolean
fn:number(opt xs:anyAtomicType?) as xs:double
fn:one-or-more(item()*) as item()+
fn:outermost(node()*) as node()*
fn:parse-ietf-date(xs:string?) as xs:dateTime?
fn:parse-json(xs:string?; opt map(*)) as item()?
fn:parse-xml(xs:string?) as document-node(element(*))?
fn:parse-xml-fragment(xs:string?) as document-node()?
fn:path(opt node()?) as xs:string?
fn:position() as xs:integer
fn:prefix-from-QName(xs:QName?) as xs:NCName?
fn:QName(xs:string?; xs:string) as xs:QName
fn:random-number-generator(opt xs:anyAtomicType?) as map(xs:string, item())
fn:remove(item()*; xs:integer) as item()*
fn:replace(xs:string?; xs:string; xs:string; opt xs:string) as xs:string
fn:resolve-QName(xs:string?; element()) as xs:QName?
fn:resolve-uri(xs:string?; opt xs:string) as xs:anyURI?
fn:reverse(item()*) as item()*
fn:root(opt node()?) as node()?
fn:round(xs:numeric?; opt xs:integer) as xs:numeric?
fn:round-half-to-even(xs:numeric?; opt xs:integer) as xs:numeric?
fn:seconds-from-dateTime(xs:dateTime?) as xs:decimal?
fn:seconds-from-duration(xs:duration?) as xs:decimal?
fn:seconds-from-time(xs:time?) as xs:decimal?
fn:serialize(item()*; opt item()?) as xs:string
fn:sort(item()*; opt xs:string?; function(item()) as xs:anyAtomicType*) as item()*
fn:starts-with(xs:string?; xs:string?; opt xs:string) as xs:boolean
fn:static-base-uri() as xs:anyURI?
fn:string(opt item()?) as xs:string
fn:string-join(xs:anyAtomicType*; opt xs:string) as xs:string
fn:string-length(opt xs:string?) as xs:integer
fn:string-to-codepoints(xs:string?) as xs:integer*
fn:subsequence(item()*; xs:double; opt xs:double) as item()*
fn:substring(xs:string?; xs:double; opt xs:double) as xs:string
fn:substring-after(xs:string?; xs:string?; opt xs:string) as xs:string
fn:substring-before(xs:string?; xs:string?; opt xs:string) as xs:string
fn:sum(xs:anyAtomicType*; opt xs:anyAtomicType?) as xs:anyAtomicType?
fn:tail(item()*) as item()*
fn:timezone-from-date(xs:date?) as xs:dayTimeDuration?
fn:timezone-from-dateTime(xs:dateTime?) as xs:dayTimeDuration?
fn:timezone-from-time(xs:time?) as xs:dayTimeDuration?
fn:tokenize(xs:string?; opt xs:string; xs:string) as xs:string*
fn:trace(item()*; opt xs:string) as item()*
fn:transform(map(*)) as map(*)
fn:translate(xs:string?; xs:string; xs:string) as xs:string
fn:true() as xs:boolean
fn:unordered(item()*) as item()*
fn:unparsed-text(xs:string?; opt xs:string) as xs:string?
fn:unparsed-text-available(xs:string?; opt xs:string) as xs:boolean
fn:unparsed-text-lines(xs:string?; opt xs:string) as xs:string*
fn:upper-case(xs:string?) as xs:string
fn:uri-collection(opt xs:string?) as xs:anyURI*
fn:xml-to-json(node()?; opt map(*)) as xs:string?
fn:year-from-date(xs:date?) as xs:integer?
fn:year-from-dateTime(xs:dateTime?) as xs:integer?
fn:years-from-duration(xs:duration?) as xs:integer?
fn:zero-or-one(item()*) as item()?
math:acos(xs:double?) as xs:double?
math:asin(xs:double?) as xs:double?
math:atan(xs:double?) as xs:double?
math:atan2(xs:double; xs:double) as xs:double
math:cos(xs:double?) as xs:double?
math:exp(xs:double?) as xs:double?
math:exp10(xs:double?) as xs:double?
math:log(xs:double?) as xs:double?
math:log10(xs:double?) as xs:double?
math:pi() as xs:double
math:pow(xs:double?; xs:numeric) as xs:double?
math:sin(xs:double?) as xs:double?
math:sqrt(xs:double?) as xs:double?
math:tan(xs:double?) as xs:double?
map:contains(map(*); xs:anyAtomicType) as xs:boolean
map:entry(xs:anyAtomicType; item()*) as map(*)
map:find(item()*; xs:anyAtomicType) as array(*)
map:for-each(map(*); function(xs:anyAtomicType, item()*) as item()*) as item()*
map:get(map(*); xs:anyAtomicType) as item()*
map:keys(map(*)) as xs:anyAtomicType*
map:merge(map(*)*; opt map(*)) as map(*)
map:put(map(*); xs:anyAtomicType; item()*) as map(*)
map:remove(map(*); xs:anyAtomicType*) as map(*)
map:size(map(*)) as xs:integer
array:append(array(*); item()*) as array(*)
array:filter(array(*); function(item()*) as xs:boolean) as array(*)
array:flatten(item()*) as item()*
array:fold-left(array(*); item()*; function(item()*, item()*) as item()*) as item()*
array:fold-right(array(*); item()*; function(item()*, item()*) as item()*) as item()*
array:for-each(array(*); function(item()*) as item()*) as array(*)
array:for-each-pair(array(*); array(*); function(item()*, item()*) as item()*) as array(*)
array:get(array(*); xs:integer) as item()*
array:head(array(*)) as item()*
array:insert-before(array(*); xs:integer; item()*) as array(*)
array:join(array(*)*) as array(*)
array:put(array(*); xs:integer; item()*) as array(*)
array:remove(array(*); xs:integer*) as array(*)
array:reverse(array(*)) as array(*)
array:size(array(*)) as xs:integer
array:sort(array(*); opt xs:string?; function(item()*) as xs:anyAtomicType*) as array(*)
array:subarray(array(*); xs:integer; opt xs:integer) as array(*)
array:tail(array(*)) as array(*)
";

/// A line of the table: the types of all parameters, how many of them are required, and the type of the result.
struct Line {
    params: Vec<SeqType>,
    least: usize,
    result: SeqType,
}

/// The types of the function of that name with that number of arguments; `None`: they are not known.
pub(crate) fn signature(namespace: &str, local: &str, arity: usize) -> Option<Arc<Signature>> {
    static TABLE: OnceLock<HashMap<(&str, &str), Line>> = OnceLock::new();
    let table = TABLE.get_or_init(|| SIGNATURES.lines().filter_map(line).collect());
    let line = table.get(&(usual_prefix(namespace), local))?;
    if arity < line.least || arity > line.params.len() {
        return None;
    }
    let params = line.params[..arity].iter().cloned().map(Some).collect();
    Some(Arc::new(Signature { params, result: Some(line.result.clone()) }))
}

fn line(text: &'static str) -> Option<((&'static str, &'static str), Line)> {
    let (name, rest) = text.split_once('(')?;
    let end = closing(rest)?;
    let result = rest.get(end..)?.strip_prefix(") as ")?;
    let mut params = Vec::new();
    let mut least = None;
    for param in rest[..end].split("; ").filter(|param| !param.is_empty()) {
        let optional = param.strip_prefix("opt ");
        if optional.is_some() {
            least = Some(params.len());
        }
        params.push(parsed(optional.unwrap_or(param))?);
    }
    let least = least.unwrap_or(params.len());
    Some((name.split_once(':')?, Line { params, least, result: parsed(result)? }))
}

/// The parenthesis that closes what is open.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn parsed(text: &str) -> Option<SeqType> {
    // What the engine does not have as types of their own.
    let text = text.replace("xs:dateTimeStamp", "xs:dateTime");
    let ty = crate::parser2::parse_sequence_type(&text).ok()?;
    SeqType::compile(&ty, &text, &(), "").ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequence::functions::{NAMESPACES, find_in};

    #[test]
    fn each_line_is_read_and_is_a_function() {
        for text in SIGNATURES.lines().filter(|text| !text.is_empty()) {
            let ((prefix, local), line) = line(text).unwrap_or_else(|| panic!("{text}"));
            let (_, namespace) = NAMESPACES.iter().find(|(p, _)| *p == prefix).unwrap();
            let entry = find_in(namespace, local).unwrap_or_else(|| panic!("no function for {text}"));
            assert!(entry.least >= line.least.min(entry.least) && entry.most <= line.params.len(), "{text}");
            assert_eq!(
                signature(namespace, local, line.params.len()).unwrap().params.len(),
                line.params.len()
            );
        }
    }
}
