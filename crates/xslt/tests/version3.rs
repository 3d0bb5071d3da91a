//! XSLT 3.0: the features that stylesheets of buses use, as tables of templates and what comes out. Results were worked out
//! from the specification.

#![allow(clippy::unwrap_used)]

mod sheets;

use busbar_xslt::{CompileOptions, RunOptions, Stylesheet};
use std::time::Duration;
use xml::{Document, ParseOptions};

const INPUT: &str = "<r><a id='1' g='x'>one</a><b>2</b><a id='2' g='y'>two</a><a id='10' g='x'>three</a></r>";

fn compile(body: &str) -> Result<Stylesheet, String> {
    let sheet = format!(
        "<xsl:stylesheet version=\"3.0\" xmlns:xsl=\"http://www.w3.org/1999/XSL/Transform\" \
         xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" xmlns:f=\"urn:f\" \
         xmlns:map=\"http://www.w3.org/2005/xpath-functions/map\" xmlns:err=\"http://www.w3.org/2005/xqt-errors\" \
         exclude-result-prefixes=\"#all\"><xsl:output omit-xml-declaration=\"yes\"/>{body}</xsl:stylesheet>"
    );
    Stylesheet::compile(sheet.as_bytes(), &CompileOptions::default())
        .map_err(|errors| format!("compile: {}", errors[0].message))
}

fn run(body: &str) -> Result<String, String> {
    sheets::transformed(&compile(body)?, INPUT, body)
}

/// Templates for the root element and what comes out; `!` begins part of an error message.
fn check(cases: &[(&str, &str)]) {
    sheets::check_with(|body| run(&format!("<xsl:template match='/r'>{body}</xsl:template>")), cases);
}

#[test]
fn iterations() {
    check(&[
        (
            "<xsl:iterate select='a'><xsl:param name='n' select='0'/><xsl:on-completion><t><xsl:value-of select='$n'/></t></xsl:on-completion><i><xsl:value-of select='$n'/></i><xsl:next-iteration><xsl:with-param name='n' select='$n + xs:integer(@id)'/></xsl:next-iteration></xsl:iterate>",
            "<i>0</i><i>1</i><i>3</i><t>13</t>",
        ),
        (
            "<xsl:iterate select='1 to 10'><xsl:choose><xsl:when test='. = 3'><xsl:break select='\"end\"'/></xsl:when><xsl:otherwise><i><xsl:value-of select='.'/></i></xsl:otherwise></xsl:choose></xsl:iterate>",
            "<i>1</i><i>2</i>end",
        ),
        ("<xsl:iterate select='()'><xsl:on-completion select='\"none\"'/>x</xsl:iterate>", "none"),
        (
            "<xsl:iterate select='1 to 2'><xsl:param name='n' as='xs:integer' select='0'/><xsl:next-iteration><xsl:with-param name='n' select=\"'x'\"/></xsl:next-iteration></xsl:iterate>",
            "!XTTE0590",
        ),
        ("<xsl:iterate select='1'><xsl:break/><a/></xsl:iterate>", "!XTSE3120"),
        ("<xsl:for-each select='1'><xsl:next-iteration/></xsl:for-each>", "!XTSE3120"),
        (
            "<xsl:iterate select='1'><xsl:next-iteration><xsl:with-param name='z' select='1'/></xsl:next-iteration></xsl:iterate>",
            "!XTSE3130",
        ),
        // One within another.
        (
            "<xsl:iterate select='1 to 2'><xsl:variable name='o' select='.'/><xsl:iterate select='1 to 3'><xsl:if test='. = 2'><xsl:break/></xsl:if><xsl:value-of select='$o * .'/>;</xsl:iterate></xsl:iterate>",
            "!XTSE3120",
        ),
    ]);
}

#[test]
fn errors_are_caught() {
    check(&[
        (
            "<xsl:try><a><xsl:value-of select='1 idiv 0'/></a><xsl:catch><e c='{$err:code}'><xsl:value-of select='$err:line-number > 0'/></e></xsl:catch></xsl:try>",
            "<e c=\"err:FOAR0001\">true</e>",
        ),
        ("<xsl:try select='1 + 1'><xsl:catch select='0'/></xsl:try>", "2"),
        (
            "<xsl:try select=\"xs:date('x')\"><xsl:catch errors='err:FOAR0001' select=\"'a'\"/><xsl:catch errors='err:FORG0001 *:X' select=\"'b'\"/></xsl:try>",
            "b",
        ),
        (
            "<xsl:try select=\"xs:date('x')\"><xsl:catch errors='err:FOAR0001' select=\"'a'\"/></xsl:try>",
            "!FORG0001",
        ),
        (
            "<xsl:try select=\"error(xs:QName('f:own'), 'what')\"><xsl:catch errors='f:own' select='local-name-from-QName($err:code), $err:description'/></xsl:try>",
            "own what",
        ),
        (
            "<xsl:try><xsl:message terminate='yes'>m</xsl:message><xsl:catch errors='*' select='\"ended\"'/></xsl:try>",
            "ended",
        ),
        ("<xsl:try select='1'/>", "!xsl:catch"),
    ]);
}

#[test]
fn maps_and_json() {
    check(&[
        (
            "<xsl:variable name='m' as='map(*)'><xsl:map><xsl:map-entry key=\"'k'\" select='1, 2'/><xsl:map-entry key=\"'j'\"><x/></xsl:map-entry></xsl:map></xsl:variable><xsl:value-of select=\"sum($m?k), map:keys($m)\"/><xsl:copy-of select='$m?j'/>",
            "3 k j<x/>",
        ),
        (
            "<xsl:variable name='m' as='map(*)'><xsl:map><xsl:for-each select='a'><xsl:map-entry key='string(@id)' select='string(.)'/></xsl:for-each></xsl:map></xsl:variable><xsl:value-of select=\"serialize($m, map { 'method': 'json' })\"/>",
            "{\"1\":\"one\",\"2\":\"two\",\"10\":\"three\"}",
        ),
        (
            "<xsl:variable name='m' as='map(*)'><xsl:map><xsl:map-entry key='1' select='1'/><xsl:map-entry key='1' select='2'/></xsl:map></xsl:variable><xsl:value-of select='map:size($m)'/>",
            "!XTDE3365",
        ),
        ("<o><xsl:sequence select='map { 1: 2 }'/></o>", "!XTDE0450"),
        ("<o><xsl:sequence select='[1, 2, (3, 4)]'/></o>", "<o>1 2 3 4</o>"),
        ("<o><xsl:value-of select='[1, [2]]'/></o>", "<o>1 2</o>"),
        ("<xsl:value-of select='upper-case#1'/>", "!FOTY0013"),
        (
            "<xsl:variable name='j' select='parse-json(&apos;{\"a\": [1, {\"b\": \"x\"}]}&apos;)'/><o b='{$j?a?2?b}'><xsl:value-of select='$j?a?1 + 1'/></o>",
            "<o b=\"x\">2</o>",
        ),
        (
            "<xsl:for-each select='json-to-xml(&apos;[1, 2]&apos;)//*:number'><n><xsl:value-of select='.'/></n></xsl:for-each>",
            "<n>1</n><n>2</n>",
        ),
        (
            "<xsl:variable name='f' select='function($x) { $x * 2 }'/><xsl:value-of select='for-each(1 to 3, $f)'/>",
            "2 4 6",
        ),
        ("<xsl:value-of select=\"parse-xml('&lt;q>7&lt;/q>')/q + 1\"/>", "8"),
    ]);
    // Functions of the stylesheet as values; what they hold outlives where they were made.
    let body = "<xsl:function name='f:twice'><xsl:param name='n'/><xsl:sequence select='$n * 2'/></xsl:function>\
                <xsl:function name='f:adder'><xsl:param name='n'/><xsl:sequence select='function($x) { $x + $n }'/></xsl:function>\
                <xsl:variable name='g' select='10'/>\
                <xsl:template match='/r'><xsl:value-of select=\"for-each((1, 2), f:twice#1), f:adder(5)(1), function-lookup(xs:QName('f:twice'), 1)(4), (function($x) { $x + $g })(1)\"/></xsl:template>";
    assert_eq!(run(body).as_deref(), Ok("2 4 6 8 11"));
}

#[test]
fn conditional_content() {
    check(&[
        ("<xsl:where-populated><ul><xsl:copy-of select='zz'/></ul></xsl:where-populated>", ""),
        (
            "<xsl:where-populated><ul><xsl:copy-of select='b'/></ul></xsl:where-populated>",
            "<ul><b>2</b></ul>",
        ),
        ("<o><xsl:copy-of select='zz'/><xsl:on-empty>none</xsl:on-empty></o>", "<o>none</o>"),
        ("<o><xsl:copy-of select='b'/><xsl:on-empty>none</xsl:on-empty></o>", "<o><b>2</b></o>"),
        (
            "<o><xsl:on-non-empty><h/></xsl:on-non-empty><xsl:copy-of select='b'/><xsl:on-non-empty><f/></xsl:on-non-empty></o>",
            "<o><h/><b>2</b><f/></o>",
        ),
        ("<o><xsl:on-non-empty><h/></xsl:on-non-empty><xsl:copy-of select='zz'/></o>", "<o/>"),
        ("<o><xsl:on-empty select=\"'a', 'b'\"/></o>", "<o>a b</o>"),
        ("<xsl:assert test='b = 2'/>ok", "ok"),
        ("<xsl:assert test='b = 3' select=\"'no'\"/>", "!XTMM9001: xsl:assert: no"),
        ("<xsl:assert test='false()' error-code='f:mine'>m</xsl:assert>", "!mine"),
        ("<xsl:source-document href='none.xml'><x/></xsl:source-document>", "!FODC0002"),
    ]);
}

#[test]
fn merges() {
    check(&[
        (
            "<xsl:merge><xsl:merge-source name='n' select='1, 3, 5'><xsl:merge-key select='.'/></xsl:merge-source><xsl:merge-source name='m' select='4, 3, 1' sort-before-merge='yes'><xsl:merge-key select='.'/></xsl:merge-source><xsl:merge-action>[<xsl:value-of select='current-merge-key(), count(current-merge-group()), count(current-merge-group(\"m\"))'/>]</xsl:merge-action></xsl:merge>",
            "[1 2 1][3 2 1][4 1 1][5 1 0]",
        ),
        (
            "<xsl:merge><xsl:merge-source select='3, 1'><xsl:merge-key select='.'/></xsl:merge-source><xsl:merge-action/></xsl:merge>",
            "!XTDE2220",
        ),
    ]);
}

/// The example of docs/tools.md: JSON in a parameter, and JSON as the result.
#[test]
fn json_in_and_out() {
    let sheet = "<xsl:stylesheet version='3.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform' xmlns:xs='http://www.w3.org/2001/XMLSchema'>\
        <xsl:output method='text'/><xsl:param name='json' as='xs:string'/><xsl:template match='/'>\
        <xsl:variable name='items' select='parse-json($json)?items?*'/>\
        <xsl:value-of select=\"serialize(map { 'lines': count($items), 'total': sum($items ! (?price * ?number)) }, map { 'method': 'json' })\"/>\
        </xsl:template></xsl:stylesheet>";
    let sheet = Stylesheet::compile(sheet.as_bytes(), &CompileOptions::default()).unwrap();
    let doc = Document::parse("<none/>", &ParseOptions::default()).unwrap();
    let json = r#"{"items": [{"price": 2.5, "number": 4}, {"price": 1, "number": 3}]}"#;
    let mut out = Vec::new();
    let params = [("json", xpath::Value::from(json))];
    sheet.transform_to(&doc, Document::ROOT, &params, &RunOptions::default(), &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), r#"{"lines":2,"total":13}"#);
}

/// What is not there is an error when the stylesheet loads, and named.
#[test]
fn what_is_not_there_is_named() {
    for (body, part) in [
        ("<xsl:accumulator name='a' initial-value='0'/>", "xsl:accumulator"),
        ("<xsl:use-package name='urn:p'/>", "xsl:use-package"),
        ("<xsl:template match='/'><xsl:nothing/></xsl:template>", "xsl:nothing"),
    ] {
        let error = compile(body).map(|_| ()).unwrap_err();
        assert!(error.contains(part), "{body}: {error}");
    }
}

/// Nothing of it ends the process, or goes on without end.
#[test]
fn is_bounded() {
    for body in [
        "<xsl:variable name='f' select='function($f, $n) { 1 + $f($f, $n + 1) }'/><xsl:value-of select='$f($f, 0)'/>",
        "<xsl:value-of select='f:a(1)'/></xsl:template><xsl:function name='f:a'><xsl:param name='n'/><xsl:sequence select='for-each($n, f:a#1)'/></xsl:function><xsl:template name='x'>",
        "<xsl:try select='f:b(1)'><xsl:catch select='f:b(2)'/></xsl:try></xsl:template><xsl:function name='f:b'><xsl:param name='n'/><xsl:try select='f:b($n) + 1'><xsl:catch select='f:b($n)'/></xsl:try></xsl:function><xsl:template name='x'>",
    ] {
        let body = format!("<xsl:template match='/r'>{body}</xsl:template>");
        let (found, _) = meter::within(Duration::from_secs(20), None, || run(&body));
        let error = found.unwrap_err();
        assert!(error.len() < 400 && !error.contains('\n'), "{body}: {error}");
    }
}

/// Calls through function items may be as deep as others.
#[test]
fn deep_calls_of_function_items_run() {
    for (function, expected) in [
        ("for-each($n, function($x) { if ($x gt 3499) then $x else f:a($x + 1) })", "3500"),
        ("if ($n = 3500) then 0 else 1 + fold-left($n, 0, function($s, $x) { f:a($x + 1) })", "3500"),
        (
            "let $f := function($f, $n) { if ($n = 3500) then 0 else $f($f, $n + 1) + 1 } return $f($f, $n)",
            "3500",
        ),
        ("if ($n = 3500) then 0 else (f:a#1 ! .($n + 1)) + 1", "3500"),
    ] {
        let sheet = compile(&format!(
            "<xsl:template match='/r'><xsl:sequence select='f:a(0)'/></xsl:template>
             <xsl:function name='f:a'><xsl:param name='n'/><xsl:sequence select='{function}'/></xsl:function>"
        ))
        .unwrap();
        let doc = Document::parse(INPUT, &ParseOptions::default()).unwrap();
        let mut out = Vec::new();
        sheet.transform_to(&doc, Document::ROOT, &[], &RunOptions::default(), &mut out).unwrap();
        assert!(String::from_utf8(out).unwrap().ends_with(expected), "{function}");
    }
}

/// A limit is not caught: each level of the recursion would begin another one.
#[test]
fn limits_are_not_caught() {
    for (function, part) in [
        (
            "<xsl:try><xsl:sequence select='f:a()'/><xsl:catch><xsl:sequence select='f:a()'/></xsl:catch></xsl:try>",
            "nested too deeply",
        ),
        (
            "<xsl:try select='for-each(1, function($x) { f:a() })'><xsl:catch select='for-each(1, function($x) { f:a() })'/></xsl:try>",
            "too deep",
        ),
        ("<xsl:try select='f:a() + 1'><xsl:catch errors='*' select='0'/></xsl:try>", "nested too deeply"),
    ] {
        let sheet = compile(&format!(
            "<xsl:template match='/r'><xsl:sequence select='f:a()'/></xsl:template><xsl:function name='f:a'>{function}</xsl:function>"
        ))
        .unwrap();
        let doc = Document::parse(INPUT, &ParseOptions::default()).unwrap();
        let (found, _) = meter::within(Duration::from_secs(20), None, || {
            sheet.transform_to(&doc, Document::ROOT, &[], &RunOptions::default(), &mut Vec::new())
        });
        let error = found.unwrap_err().message;
        assert!(error.contains(part), "{function}: {error}");
    }
}

/// Twice as many items are twice the work.
#[test]
fn scales() {
    let units = |body: &str, count: usize| {
        let body = body.replace("COUNT", &count.to_string());
        let sheet = compile(&format!("<xsl:template match='/r'>{body}</xsl:template>")).unwrap();
        let doc = Document::parse(INPUT, &ParseOptions::default()).unwrap();
        let mut out = Vec::new();
        let (result, used) = meter::within(Duration::from_secs(600), None, || {
            sheet.transform_to(&doc, Document::ROOT, &[], &RunOptions::default(), &mut out)
        });
        result.unwrap_or_else(|e| panic!("{body}: {e}"));
        used.units as f64
    };
    for body in [
        "<xsl:iterate select='1 to COUNT'><xsl:param name='n' select='0'/><xsl:on-completion select='$n'/><xsl:next-iteration><xsl:with-param name='n' select='$n + .'/></xsl:next-iteration></xsl:iterate>",
        "<xsl:for-each select='1 to COUNT'><xsl:try select='1 idiv (. mod 2)'><xsl:catch select='0'/></xsl:try></xsl:for-each>",
        "<xsl:variable name='m' as='map(*)'><xsl:map><xsl:for-each select='1 to COUNT'><xsl:map-entry key='.' select='.'/></xsl:for-each></xsl:map></xsl:variable><xsl:value-of select='map:size($m)'/>",
        "<xsl:merge><xsl:merge-source select='1 to COUNT'><xsl:merge-key select='.'/></xsl:merge-source><xsl:merge-source select='1 to COUNT'><xsl:merge-key select='.'/></xsl:merge-source><xsl:merge-action><xsl:value-of select='count(current-merge-group())'/></xsl:merge-action></xsl:merge>",
        "<xsl:where-populated><o><xsl:sequence select='1 to COUNT'/></o></xsl:where-populated>",
    ] {
        let (once, twice) = (units(body, 2000), units(body, 4000));
        assert!(twice < once * 2.5 + 2000.0, "{body}: {once}, {twice}");
    }
}

/// Rules that the suites of the W3C ask about.
#[test]
fn rules_of_3_0() {
    check(&[
        // A text template is one text node.
        (
            "<xsl:variable name='t' as='text()*' expand-text='yes'>a{1}b</xsl:variable><xsl:value-of select='count($t), $t'/>",
            "1 a1b",
        ),
        // Names known when it runs.
        ("<xsl:value-of select=\"namespace-uri-from-QName(xs:QName(concat('f:', name(a[1]))))\"/>", "urn:f"),
        ("<xsl:value-of select=\"xs:QName(concat('none:', 'a'))\"/>", "!FONS0004"),
        // Without a context item.
        (
            "<xsl:call-template name='t'/></xsl:template><xsl:template name='t'><xsl:context-item use='absent'/><xsl:value-of select='.'/>",
            "!XPDY0002",
        ),
        (
            "<xsl:call-template name='t'/></xsl:template><xsl:template name='t'><xsl:context-item as='xs:string'/>x",
            "!XTTE0590",
        ),
        ("<xsl:iterate select='1 to 2'><xsl:on-completion select='position()'/></xsl:iterate>", "!XPDY0002"),
        ("<xsl:number select='a[2]' start-at='5' format='a'/>", "f"),
        // Directly in a template.
        ("<xsl:sequence select='()'/><xsl:on-empty>none</xsl:on-empty>", "none"),
        ("<o/><xsl:on-empty>none</xsl:on-empty>", "<o/>"),
        // Alone in the world, an element is still the first.
        (
            "<xsl:variable name='e' as='element()'><a k='1'/></xsl:variable><xsl:apply-templates select='$e'/></xsl:template><xsl:template match=\"a[@k eq '1'][1]\">m",
            "m",
        ),
        ("<xsl:message select='1 div 0'/>x", "x"),
        (
            "<xsl:merge><xsl:merge-source name='s' select='1 to 2'><xsl:merge-key select='.'/></xsl:merge-source><xsl:merge-action><xsl:value-of select=\"current-merge-group('t')\"/></xsl:merge-action></xsl:merge>",
            "!XTDE3490",
        ),
        (
            "<xsl:merge><xsl:merge-source select='1 to 2'><xsl:merge-key select='.' lang='en'/></xsl:merge-source><xsl:merge-source select='1'><xsl:merge-key select='.'/></xsl:merge-source><xsl:merge-action/></xsl:merge>",
            "!XTDE2210",
        ),
        (
            "<xsl:analyze-string select=\"'a'\" regex='a'><xsl:non-matching-substring/><xsl:matching-substring/></xsl:analyze-string>",
            "!XTSE0010",
        ),
        (
            "<xsl:value-of select=\"function-available('filter', 2), function-available('Q{}abs'), type-available('xs:anyType')\"/>",
            "true false true",
        ),
    ]);
}

/// Declarations: what holds of several, and what contradicts.
#[test]
fn declarations_of_3_0() {
    for (body, expected) in [
        (
            "<xsl:key name='k' match='a' use='@g, @id' composite='yes'/><xsl:template match='/r'><xsl:value-of select=\"key('k', ('x', '10'))\"/></xsl:template>",
            "three",
        ),
        (
            "<xsl:key name='k' match='a' use='@g' composite='yes'/><xsl:key name='k' match='b' use='.'/>",
            "!XTSE1222",
        ),
        (
            "<xsl:mode on-multiple-match='fail'/><xsl:template match='a'>1</xsl:template><xsl:template match='r/a' priority='0'>2</xsl:template>",
            "!XTDE0540",
        ),
        ("<xsl:mode name='m' on-no-match='fail'/><xsl:mode name='m' on-no-match='deep-skip'/>", "!XTSE0545"),
        ("<xsl:strip-space elements='a b'/><xsl:preserve-space elements='b'/>", "!XTSE0270"),
        ("<xsl:param name='p' static='maybe' select='1'/>", "!XTSE0020"),
        (
            "<xsl:key name='k' match='namespace::*' use='string()'/><xsl:key name='j' match='a | r/namespace-node()' use='name()'/><xsl:template match='/r'><xsl:variable name='d'><r xmlns:p='urn:p'><b/></r></xsl:variable><xsl:value-of select=\"key('k', 'urn:p', $d) ! name(..), count(key('j', ('p', 'a'), $d)), count(key('j', 'a'))\"/></xsl:template>",
            "r b 1 3",
        ),
        // The same call makes the same node.
        (
            "<xsl:function name='f:n' new-each-time='no'><xsl:param name='a'/><n><xsl:value-of select='$a'/></n></xsl:function><xsl:template match='/r'><xsl:value-of select='f:n(1) is f:n(1), f:n(1) is f:n(2), f:n(a[1]) is f:n(a[1]), f:n(a) is f:n(a[1])'/></xsl:template>",
            "true false true false",
        ),
        (
            "<xsl:function name='f:n' new-each-time='yes' cache='yes'><xsl:param name='a'/><n/></xsl:function><xsl:template match='/r'><xsl:value-of select='f:n(1) is f:n(1)'/></xsl:template>",
            "false",
        ),
        (
            "<xsl:variable name='u' static='yes' select='static-base-uri()' xml:base='http://h/x'/><xsl:template match='/r'><xsl:value-of select='$u'/></xsl:template>",
            "http://h/x",
        ),
        (
            "<xsl:output method='html' html-version='5' indent='no'/><xsl:template match='/r'><html><p/></html></xsl:template>",
            "<!DOCTYPE html>\n<html><p></p></html>",
        ),
        (
            "<xsl:output indent='yes' suppress-indentation='p'/><xsl:template match='/r'><o><p><i/></p></o></xsl:template>",
            "<o>\n  <p><i/></p>\n</o>\n",
        ),
    ] {
        let found = match run(body) {
            Ok(found) => found,
            Err(error) => format!("!{error}"),
        };
        match expected.strip_prefix('!') {
            Some(part) => assert!(found.starts_with('!') && found.contains(part), "{body}: {found}"),
            None => assert_eq!(found, expected, "{body}"),
        }
    }
}

/// What is written without escaping keeps that where a template has a type (a tree does not).
#[test]
fn unescaped_text_of_typed_templates() {
    let sheet = compile(
        "<xsl:template match='/r'><o><xsl:apply-templates select=\"'&amp;lt;'\" mode='raw'/></o></xsl:template>\
         <xsl:template match='.' mode='raw' as='text()'><xsl:value-of select='.' disable-output-escaping='yes'/></xsl:template>",
    )
    .unwrap();
    let doc = Document::parse(INPUT, &ParseOptions::default()).unwrap();
    let mut bytes = Vec::new();
    sheet.transform_to(&doc, Document::ROOT, &[], &RunOptions::default(), &mut bytes).unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), "<o>&lt;</o>");
}

#[test]
fn namespaces_that_are_not_inherited() {
    let prefixes = "<xsl:function name='f:p'><xsl:param name='e'/><xsl:value-of><xsl:for-each select=\"in-scope-prefixes($e)[. != 'xml']\"><xsl:sort/>[<xsl:value-of select='.'/>]</xsl:for-each></xsl:value-of></xsl:function>";
    let in_tree = |body: &str, path: &str| {
        format!(
            "{prefixes}<xsl:template match='/r'><xsl:variable name='t'>{body}</xsl:variable><xsl:value-of select='f:p($t{path})'/></xsl:template>"
        )
    };
    sheets::check_with(
        run,
        &[
            (&in_tree("<p:a xmlns:p='u:p' xmlns='u:d'><q:b xmlns:q='u:q'/></p:a>", "/*/*"), "[][p][q]"),
            (
                &in_tree(
                    "<p:a xmlns:p='u:p' xsl:inherit-namespaces='no'><xsl:element name='q:b' namespace='u:q'/></p:a>",
                    "/*/*",
                ),
                "[q]",
            ),
            // It is about the children only; what is below them inherits from them.
            (
                &in_tree(
                    "<p:a xmlns:p='u:p' xsl:inherit-namespaces='no'><xsl:element name='q:b' namespace='u:q'><xsl:element name='c'/></xsl:element></p:a>",
                    "/*/*/*",
                ),
                "[q]",
            ),
            // A prefix that is needed is declared there anew.
            (
                &in_tree(
                    "<p:a xmlns:p='u:p' xsl:inherit-namespaces='no'><xsl:element name='b'><xsl:element name='p:c' namespace='u:p'/></xsl:element></p:a>",
                    "/*/*/*",
                ),
                "[p]",
            ),
            (
                &in_tree(
                    "<p:a xmlns:p='u:p' xsl:inherit-namespaces='no'><xsl:element name='b'/></p:a><z/>",
                    "/*[1]",
                ),
                "[p]",
            ),
            (
                &in_tree(
                    "<xsl:element name='p:a' namespace='u:p' inherit-namespaces='no'><xsl:copy-of select='/r/b'/></xsl:element>",
                    "/*/*",
                ),
                "",
            ),
            (
                &in_tree(
                    "<xsl:for-each select='/r'><xsl:copy inherit-namespaces='no'><xsl:namespace name='n' select=\"'u:n'\"/><xsl:copy-of select='b'/></xsl:copy></xsl:for-each>",
                    "/*/*",
                ),
                "",
            ),
            // A copy is like the original.
            (
                &in_tree(
                    "<xsl:variable name='u'><p:a xmlns:p='u:p' xsl:inherit-namespaces='no'><xsl:element name='b'/></p:a></xsl:variable><xsl:copy-of select='$u'/>",
                    "/*/*",
                ),
                "",
            ),
        ],
    );
    // Of XML 1.0 only the default namespace can be taken away.
    for (body, expected) in [
        (
            "<a xmlns='u:a' xsl:inherit-namespaces='no'><xsl:element name='x:b' namespace='u:x'/><xsl:element name='c' namespace='u:a'/></a>",
            "<a xmlns=\"u:a\"><x:b xmlns=\"\" xmlns:x=\"u:x\"/><c/></a>",
        ),
        (
            "<a xmlns='u:a' xsl:inherit-namespaces='no'><x:b xmlns:x='u:x'><d/></x:b><e>1</e></a>",
            "<a xmlns=\"u:a\"><x:b xmlns:x=\"u:x\"><d/></x:b><e>1</e></a>",
        ),
        (
            "<xsl:element name='a' namespace='u:a' inherit-namespaces='no'><x:b xmlns:x='u:x'>1</x:b></xsl:element>",
            "<a xmlns=\"u:a\"><x:b xmlns=\"\" xmlns:x=\"u:x\">1</x:b></a>",
        ),
    ] {
        let body = format!("<xsl:template match='/r'>{body}</xsl:template>");
        let fast = run(&body).unwrap();
        let slow =
            run(&format!("<xsl:output indent='no' method='xml' suppress-indentation='zz'/>{body}")).unwrap();
        for written in [fast, slow] {
            let doc = Document::parse(written.clone(), &ParseOptions::default()).unwrap();
            let expected = Document::parse(expected, &ParseOptions::default()).unwrap();
            let show = |doc: &Document| {
                let all = doc.descendants(Document::ROOT);
                all.map(|n| format!("{}{{{}}}{:?}", doc.local(n), doc.namespace(n), doc.lookup_prefix(n, "")))
                    .collect::<Vec<_>>()
            };
            assert_eq!(show(&doc), show(&expected), "{body}\n{written}");
        }
    }
}

#[test]
fn accumulators_of_documents() {
    let sheet = |modes: &str, path: &str| {
        format!(
            "<xsl:accumulator name='n' initial-value='0'><xsl:accumulator-rule match='a' select='$value + 1'/></xsl:accumulator>\
             <xsl:accumulator name='m' initial-value='0'><xsl:accumulator-rule match='a' select=\"$value + accumulator-after('n')\"/></xsl:accumulator>{modes}\
             <xsl:variable name='v'><r><a/><a/></r></xsl:variable><xsl:template match='/r'><xsl:value-of select='{path}'/></xsl:template>"
        )
    };
    let before = r#"accumulator-before("n")"#;
    sheets::check_with(
        run,
        &[
            (&sheet("<xsl:mode use-accumulators='n'/>", &format!("a[last()]/{before}")), "3"),
            (&sheet("<xsl:mode use-accumulators='#all'/>", &format!("a[last()]/{before}")), "3"),
            // The source document has none that the initial mode does not name; temporary trees have all.
            (&sheet("", &format!("a[last()]/{before}")), "!XTDE3362"),
            (&sheet("<xsl:mode use-accumulators='m'/>", &format!("a[last()]/{before}")), "!XTDE3362"),
            (
                &sheet("<xsl:mode name='other' use-accumulators='n'/>", &format!("a[last()]/{before}")),
                "!XTDE3362",
            ),
            (&sheet("", &format!("$v//a[last()]/{before}")), "2"),
            // One that another one needs.
            (&sheet("<xsl:mode use-accumulators='m'/>", r#"accumulator-after("m")"#), "!XTDE3362"),
            (&sheet("<xsl:mode use-accumulators='m n'/>", r#"accumulator-after("m")"#), "6"),
            (&sheet("<xsl:mode use-accumulators='x'/>", "1"), "!XTSE3300"),
            (&sheet("<xsl:mode use-accumulators='n n'/>", "1"), "!XTSE3300"),
            (&sheet("<xsl:mode use-accumulators='n #all'/>", "1"), "!XTSE3300"),
        ],
    );
}

#[test]
fn function_items() {
    let with = |body: &str| {
        format!(
            "<xsl:function name='f:n' as='xs:integer'><xsl:param name='s' as='xs:string'/><xsl:sequence select='string-length($s)'/></xsl:function>\
             <xsl:function name='f:any'><xsl:param name='s'/><xsl:sequence select='$s'/></xsl:function><xsl:template match='/r'>{body}</xsl:template>"
        )
    };
    let value = |select: &str| with(&format!("<xsl:value-of select='{select}'/>"));
    sheets::check_with(
        run,
        &[
            // Their types: of parameters contravariant, of results covariant.
            (
                &value(
                    "f:n#1 instance of function(xs:string) as xs:integer, f:n#1 instance of function(item()) as xs:integer, f:n#1 instance of function(xs:string) as xs:date, f:n#1 instance of function(xs:NCName) as xs:decimal",
                ),
                "true false false true",
            ),
            (
                &value(
                    "f:any#1 instance of function(xs:string) as item()*, f:any#1 instance of function(item()*) as item()*, f:any#1 instance of function(item()*) as item()",
                ),
                "true true false",
            ),
            (
                &value(
                    "upper-case#1 instance of function(xs:string?) as xs:string, upper-case#1 instance of function(xs:integer) as xs:string, substring#2 instance of function(xs:string?, xs:double) as xs:string, substring#3 instance of function(xs:string?, xs:double) as xs:string",
                ),
                "true false true false",
            ),
            // What belongs to the place of a call is not for them.
            (
                &with(
                    "<xsl:variable name='g' select='current-group#0'/><xsl:for-each-group select='1 to 4' group-by='. mod 2'><xsl:value-of select='sum($g())'/></xsl:for-each-group>",
                ),
                "!XTDE1061",
            ),
            (
                &with(
                    "<xsl:for-each-group select='1 to 4' group-by='. mod 2'><xsl:variable name='g' select='current-grouping-key#0'/><xsl:value-of select='$g()'/></xsl:for-each-group>",
                ),
                "!XTDE1071",
            ),
            (
                &with(
                    "<xsl:for-each-group select='1 to 4' group-by='. mod 2'><xsl:variable name='g' select='function() { current-group() }'/><xsl:value-of select='sum($g())'/>;</xsl:for-each-group>",
                ),
                "4;6;",
            ),
            (
                &with(
                    "<xsl:analyze-string select='\"ab\"' regex='(a)(b)'><xsl:matching-substring>[<xsl:value-of select='regex-group#1(2), regex-group(2)'/>]</xsl:matching-substring></xsl:analyze-string>",
                ),
                "[ b]",
            ),
            // Names as strings: with the prefixes where they are called.
            (
                &with(
                    "<xsl:variable name='p' select='system-property#1'/><xsl:value-of select='$p(\"xsl:version\")'/>",
                ),
                "3.0",
            ),
        ],
    );
}

/// Modules by name.
struct Modules(&'static [(&'static str, &'static str)]);

impl busbar_xslt::Resolver for Modules {
    fn absolute(&self, reference: &str, _: &str) -> String {
        reference.to_owned()
    }

    fn read(&self, uri: &str) -> Result<Vec<u8>, String> {
        let found = self.0.iter().find(|(name, _)| *name == uri).ok_or_else(|| format!("no {uri}"))?;
        let begin = "<xsl:stylesheet version='3.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>";
        Ok(format!("{begin}{}</xsl:stylesheet>", found.1).into_bytes())
    }
}

/// Static variables of imported modules are known behind the import (section 9.6), and what overrides what.
#[test]
fn static_variables_of_modules() {
    let modules = Modules(&[
        ("p1", "<xsl:variable name='p' static='yes' select='1'/>"),
        ("p2", "<xsl:variable name='p' static='yes' select='2'/>"),
        ("uses", "<xsl:variable name='q' static='yes' select='$p + 10'/>"),
        ("deep", "<xsl:import href='p1'/><xsl:variable name='r' static='yes' select='$p + 1'/>"),
        ("circle", "<xsl:import href='circle'/>"),
        ("twice", "<xsl:variable name='v' select='1'/><xsl:variable name='v' select='2'/>"),
        (
            "functions",
            "<xsl:function name='f:f' xmlns:f='urn:f'/><xsl:function name='f:f' xmlns:f='urn:f'/>\
             <xsl:template name='t'/><xsl:template name='t'/>",
        ),
    ]);
    for (body, expected) in [
        ("<xsl:import href='p1'/><xsl:variable name='v' _select='{$p}'/>", "1"),
        ("<xsl:include href='p1'/><xsl:variable name='v' _select='{$p}'/>", "1"),
        ("<xsl:variable name='v' _select='{$p}'/><xsl:import href='p1'/>", "!XPST0008"),
        (
            "<xsl:import href='p1'/><xsl:import href='p1'/><xsl:variable name='v' select='$p' use-when='$p = 1'/>",
            "1",
        ),
        (
            "<xsl:variable name='p' static='yes' select='5'/><xsl:import href='uses'/><xsl:variable name='v' _select='{$q}'/>",
            "15",
        ),
        ("<xsl:import href='deep'/><xsl:variable name='v' _select='{$r}'/>", "2"),
        // The value in the importing module counts, and may not contradict one that was used before.
        (
            "<xsl:variable name='p' static='yes' select='5'/><xsl:import href='p1'/><xsl:variable name='v' _select='{$p}'/>",
            "5",
        ),
        (
            "<xsl:import href='p1'/><xsl:variable name='p' static='yes' select='5'/><xsl:variable name='v' select='1'/>",
            "!XTSE3450",
        ),
        (
            "<xsl:import href='p1'/><xsl:param name='p' static='yes' select='1'/><xsl:variable name='v' select='1'/>",
            "!XTSE3450",
        ),
        ("<xsl:import href='p1'/><xsl:import href='p2'/><xsl:variable name='v' select='1'/>", "!XTSE3450"),
        ("<xsl:import href='circle'/><xsl:variable name='v' select='1'/>", "!XTSE0210"),
        ("<xsl:import href='none'/><xsl:variable name='v' select='1'/>", "!no none"),
        // Two of one name are no error where a module that imports them overrides both.
        ("<xsl:import href='twice'/>", "!XTSE0630"),
        ("<xsl:import href='twice'/><xsl:variable name='v' select='3'/>", "3"),
        ("<xsl:include href='twice'/><xsl:variable name='v' select='3'/>", "!XTSE0630"),
        (
            "<xsl:import href='functions'/><xsl:template name='t'/><xsl:variable name='v' select='4'/>",
            "!XTSE0770: there are two functions {urn:f}f with 0 parameters",
        ),
        (
            "<xsl:import href='functions'/><xsl:template name='t'/>\
             <xsl:function name='f:f' xmlns:f='urn:f'><xsl:sequence select='4'/></xsl:function>\
             <xsl:variable name='v' select='f:f()' xmlns:f='urn:f'/>",
            "4",
        ),
    ] {
        let sheet = format!(
            "<xsl:stylesheet version='3.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>{body}<xsl:output method='text'/>\
             <xsl:template match='/'><xsl:value-of select='$v'/></xsl:template></xsl:stylesheet>"
        );
        let options = CompileOptions { resolver: &modules, uri: "main", ..CompileOptions::default() };
        let found = match Stylesheet::compile(sheet.as_bytes(), &options) {
            Ok(sheet) => sheets::transformed(&sheet, INPUT, body).unwrap_or_else(|error| format!("!{error}")),
            Err(errors) => format!("!{}", errors[0].message),
        };
        match expected.strip_prefix('!') {
            Some(part) => assert!(found.starts_with('!') && found.contains(part), "{body}: {found}"),
            None => assert_eq!(found, expected, "{body}"),
        }
    }
}

/// `unparsed-text()` keeps the ends of lines as they are (F&O 3.1, section 14.8.5); `unparsed-text-lines()` knows them all.
#[test]
fn line_ends_of_texts() {
    let sheet = "<xsl:stylesheet version='3.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'><xsl:output method='text'/>\
        <xsl:template match='/'><xsl:variable name='text' select=\"unparsed-text('t')\"/>\
        <xsl:value-of select=\"string-to-codepoints(substring-before(substring-after($text, '&gt;'), '&lt;')), count(unparsed-text-lines('t'))\"/>\
        </xsl:template></xsl:stylesheet>";
    let sheet = Stylesheet::compile(sheet.as_bytes(), &CompileOptions::default()).unwrap();
    let input = xml::Document::parse("<r/>", &xml::ParseOptions::default()).unwrap();
    let texts = Modules(&[("t", "a\r\nb\rc\n")]);
    let options = busbar_xslt::RunOptions { resolver: &texts, ..Default::default() };
    let mut out = Vec::new();
    sheet.transform_to(&input, xml::Document::ROOT, &[], &options, &mut out).unwrap();
    assert_eq!(String::from_utf8_lossy(&out), "97 13 10 98 13 99 10 4");
}

/// `format-number()` reads texts as XPath 2.0 does, and an absent name is the default format.
#[test]
fn numbers_of_texts() {
    check(&[(
        "<xsl:variable name='n'><e>1e2</e></xsl:variable><xsl:value-of select=\"format-number($n/e, '0.0'), format-number($n, '0', ()), format-number($n/none, '0')\"/>",
        "100.0 100 NaN",
    )]);
}

/// More digits than the formatting of the standard library takes.
#[test]
fn many_digits() {
    check(&[(
        "<xsl:variable name='n'><xsl:number value='7' format=\"{string-join((1 to 70000) ! '0')}1\"/></xsl:variable><xsl:value-of select='string-length($n)'/>",
        "70001",
    )]);
}
