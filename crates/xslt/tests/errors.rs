//! Errors of XSLT 2.0 and 3.0 that must not be lost: in serialization, in the construction of namespaces, in `xsl:try`; with their codes and
//! their places. Results were worked out from the specifications.

#![allow(clippy::unwrap_used)]

mod sheets;

use busbar_xslt::{CompileOptions, RunOptions, Stylesheet, XsltError};
use xml::{Document, ParseOptions};

const INPUT: &str = "<r><a id='1'>one</a>\n<b>2</b></r>";

fn sheet(version: &str, body: &str) -> String {
    // XSLT 1.0 has no list of all prefixes.
    let excluded = if version == "1.0" { "xs f err" } else { "#all" };
    format!(
        "<xsl:stylesheet version=\"{version}\" xmlns:xsl=\"http://www.w3.org/1999/XSL/Transform\" \
         xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" xmlns:f=\"urn:f\" \
         xmlns:err=\"http://www.w3.org/2005/xqt-errors\" exclude-result-prefixes=\"{excluded}\">\n{body}</xsl:stylesheet>"
    )
}

/// The bytes of the result, or all errors.
fn run(version: &str, body: &str) -> Result<Vec<u8>, Vec<XsltError>> {
    let options = CompileOptions { uri: "s.xsl", ..CompileOptions::default() };
    let sheet = Stylesheet::compile(sheet(version, body).as_bytes(), &options)?;
    let doc = Document::parse(INPUT, &ParseOptions::default()).unwrap();
    let mut bytes = Vec::new();
    match sheet.transform_to(&doc, Document::ROOT, &[], &RunOptions::default(), &mut bytes) {
        Ok(()) => Ok(bytes),
        Err(error) => Err(vec![error]),
    }
}

/// Bodies and what comes out; `!` begins part of an error message.
fn check(version: &str, around: impl Fn(&str) -> String, cases: &[(&str, &str)]) {
    let run = |body: &str| match run(version, &around(body)) {
        Ok(found) => Ok(String::from_utf8_lossy(&found).into_owned()),
        Err(errors) => Err(errors.iter().map(|e| e.message.as_str()).collect::<Vec<_>>().join("\n")),
    };
    sheets::check_with(run, cases);
}

fn template(body: &str) -> String {
    format!("<xsl:output omit-xml-declaration='yes'/><xsl:template match='/r'>{body}</xsl:template>")
}

/// `xsl:output` with these attributes, and a template.
fn output(case: &str) -> String {
    let (attributes, body) = case.split_once('|').unwrap();
    format!("<xsl:output {attributes}/><xsl:template match='/r'>{body}</xsl:template>")
}

#[test]
fn characters_that_the_encoding_lacks() {
    const PLAIN: &str = "encoding='US-ASCII' omit-xml-declaration='yes'";
    for (case, expected) in [
        ("|<o a='\u{E9}'>\u{E9}</o>", "<o a=\"&#233;\">&#233;</o>"),
        ("|<\u{E9}/>", "!SERE0008"),
        ("|<xsl:comment>\u{E9}</xsl:comment>", "!SERE0008"),
        ("|<xsl:processing-instruction name='p'>\u{E9}</xsl:processing-instruction>", "!SERE0008"),
        (
            " method='text'|\u{20AC}",
            "!SERE0008: the encoding US-ASCII does not have the character \"\u{20AC}\" (U+20AC)",
        ),
        (" method='html'|<script>\u{E9}</script>", "!SERE0008"),
        ("|<o><xsl:value-of select=\"'&lt;\u{E9}'\" disable-output-escaping='yes'/></o>", "<o><&#233;</o>"),
    ] {
        for version in ["1.0", "2.0", "3.0"] {
            check(version, |case| output(&format!("{PLAIN}{case}")), &[(case, expected)]);
        }
    }
    // The error has a place.
    let errors =
        run("2.0", "<xsl:output encoding='US-ASCII'/><xsl:template match='/'><\u{E9}/></xsl:template>")
            .unwrap_err();
    assert_eq!((errors[0].uri.as_str(), errors[0].line), ("s.xsl", 2));
}

#[test]
fn rules_of_serialization() {
    let plain = "omit-xml-declaration='yes'";
    for version in ["2.0", "3.0"] {
        check(
            version,
            output,
            &[
                ("standalone='yes'|<a/><b/>", "!SEPM0004"),
                ("standalone='yes'|<a/>text", "!SEPM0004"),
                ("doctype-system='x'|<a/><b/>", "!SEPM0004"),
                ("doctype-system='x' omit-xml-declaration='yes'|<a/>", "<!DOCTYPE a SYSTEM \"x\">\n<a/>"),
                (
                    "standalone='yes'|<a/>",
                    "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?><a/>",
                ),
                ("standalone='yes' omit-xml-declaration='yes'|<a/>", "!SEPM0009"),
                ("version='1.2'|<a/>", "!SESU0013"),
                ("version='1.1'|<a/>", "<?xml version=\"1.1\" encoding=\"UTF-8\"?><a/>"),
                ("method='html' version='4.0'|<p>\u{80}</p>", "!SERE0014"),
                ("method='html' version='5.0' indent='no'|<p>\u{A0}</p>", "<p>&nbsp;</p>"),
            ],
        );
        check(
            version,
            |case| output(&format!("{plain}|{case}")),
            &[
                ("<o a='\u{85}'>x\u{85}\u{2028}\u{7F}</o>", "<o a=\"&#133;\">x&#133;&#8232;&#127;</o>"),
                (
                    "<o a='{\"\u{85}\"}'><xsl:value-of select='\"x\u{85}\u{2028}\u{7F}\"'/></o>",
                    "<o a=\"&#133;\">x&#133;&#8232;&#127;</o>",
                ),
                ("<o><xsl:value-of select='\"\u{C0}\u{2019}\u{A0}\"'/></o>", "<o>\u{C0}\u{2019}\u{A0}</o>"),
            ],
        );
    }
}

#[test]
fn namespaces_that_do_not_fit() {
    for version in ["2.0", "3.0"] {
        check(
            version,
            template,
            &[
                ("<o><xsl:namespace name='' select=\"'u1'\"/></o>", "!XTDE0440"),
                ("<xsl:element name='o'><xsl:namespace name='' select=\"'u1'\"/></xsl:element>", "!XTDE0440"),
                (
                    "<xsl:variable name='v'><o><xsl:namespace name='' select=\"'u1'\"/></o></xsl:variable><xsl:copy-of select='$v'/>",
                    "!XTDE0440",
                ),
                (
                    "<xsl:element name='o' namespace='u1'><xsl:namespace name='' select=\"'u1'\"/></xsl:element>",
                    "<o xmlns=\"u1\"/>",
                ),
                (
                    "<o><xsl:namespace name='p' select=\"'u1'\"/><xsl:namespace name='p' select=\"'u2'\"/></o>",
                    "!XTDE0430",
                ),
                (
                    "<o><xsl:namespace name='p' select=\"'u1'\"/><xsl:namespace name='p' select=\"'u1'\"/></o>",
                    "<o xmlns:p=\"u1\"/>",
                ),
                ("<o><x/><xsl:namespace name='p' select=\"'u1'\"/></o>", "!XTDE0410"),
                ("<xsl:namespace name='p' select=\"'u1'\"/>", "!XTDE0420"),
                ("<o><xsl:namespace name='xml' select=\"'u1'\"/></o>", "!XTDE0925"),
                (
                    "<o><xsl:namespace name='p' select=\"'http://www.w3.org/XML/1998/namespace'\"/></o>",
                    "!XTDE0925",
                ),
                (
                    "<o><xsl:namespace name='xml' select=\"'http://www.w3.org/XML/1998/namespace'\"/></o>",
                    "<o/>",
                ),
                ("<o><xsl:namespace name='p' select=\"'http://www.w3.org/2000/xmlns/'\"/></o>", "!XTDE0905"),
                (
                    "<xsl:variable name='v' as='node()*'><xsl:namespace name='p' select=\"'u1'\"/></xsl:variable><o><x/><xsl:copy-of select='$v'/></o>",
                    "!XTDE0410",
                ),
            ],
        );
    }
}

#[test]
fn errors_of_the_stylesheet_itself() {
    check(
        "3.0",
        template,
        &[
            // Code, value and all.
            (
                "<xsl:try select=\"error(xs:QName('f:e'), 'what', (1, 2))\"><xsl:catch select=\"$err:code eq xs:QName('f:e'), $err:code, $err:value\"/></xsl:try>",
                "true f:e 1 2",
            ),
            (
                "<xsl:try select=\"error(QName('urn:g', 'e'))\"><xsl:catch errors='Q{urn:g}*' select=\"'g'\"/></xsl:try>",
                "g",
            ),
            (
                "<xsl:try select=\"error(QName('urn:g', 'e'))\"><xsl:catch errors='Q{urn:g}e' select=\"'g'\"/></xsl:try>",
                "g",
            ),
            (
                "<xsl:try select=\"error(QName('urn:g', 'e'))\"><xsl:catch errors='f:e' select=\"'f'\"/><xsl:catch errors='*:e' select=\"'any'\"/></xsl:try>",
                "any",
            ),
            (
                "<xsl:try select=\"error((), 'd', 7)\"><xsl:catch errors='err:FOER0000' select='$err:value'/></xsl:try>",
                "7",
            ),
            (
                "<xsl:try select='1 idiv 0'><xsl:catch select='count($err:value), $err:code'/></xsl:try>",
                "0 err:FOAR0001",
            ),
            (
                "<xsl:try><xsl:message terminate='yes' error-code='f:zz'>m</xsl:message><xsl:catch errors='f:zz' select=\"string($err:code), string($err:value)\"/></xsl:try>",
                "f:zz m",
            ),
            (
                "<xsl:try><xsl:message terminate='yes'>m</xsl:message><xsl:catch errors='err:XTMM9000' select=\"'m'\"/></xsl:try>",
                "m",
            ),
            (
                "<xsl:try><xsl:assert test='false()' error-code='Q{{urn:g}}no' select=\"'a'\"/><xsl:catch errors='Q{urn:g}no' select='$err:value'/></xsl:try>",
                "a",
            ),
            (
                "<xsl:try><xsl:assert test='false()'/><xsl:catch errors='err:XTMM9001' select=\"'a'\"/></xsl:try>",
                "a",
            ),
            // Names that are wrong when they are evaluated.
            ("<xsl:try><xsl:element name='1a'/><xsl:catch select='$err:code'/></xsl:try>", "err:XTDE0820"),
            ("<xsl:try><xsl:element name='q:a'/><xsl:catch select='$err:code'/></xsl:try>", "err:XTDE0830"),
            (
                "<xsl:try><o><xsl:attribute name='1a'/></o><xsl:catch select='$err:code'/></xsl:try>",
                "err:XTDE0850",
            ),
            (
                "<xsl:try><o><xsl:attribute name='q:a'/></o><xsl:catch select='$err:code'/></xsl:try>",
                "err:XTDE0860",
            ),
            (
                "<xsl:try><o><xsl:attribute name='xmlns'/></o><xsl:catch select='$err:code'/></xsl:try>",
                "err:XTDE0855",
            ),
            ("<xsl:if test='false()'><xsl:element name='1a'/></xsl:if>", ""),
            // Codes of functions.
            ("<xsl:try select=\"key('zz', 1)\"><xsl:catch select='$err:code'/></xsl:try>", "err:XTDE1260"),
            (
                "<xsl:try select=\"format-number(1, '0', 'zz')\"><xsl:catch select='$err:code'/></xsl:try>",
                "err:FODF1280",
            ),
            (
                "<xsl:try select=\"format-date(xs:date('2020-01-01'), '[')\"><xsl:catch select='$err:code'/></xsl:try>",
                "err:FOFD1340",
            ),
            (
                "<xsl:try select=\"format-date(xs:date('2020-01-01'), '[Y]', (), 'XX', ())\"><xsl:catch select='$err:code'/></xsl:try>",
                "err:FOFD1340",
            ),
            (
                "<xsl:try select=\"json-doc('nope.json')\"><xsl:catch select=\"$err:code, contains($err:description, 'FOUT')\"/></xsl:try>",
                "err:FOUT1170 false",
            ),
            (
                "<xsl:try select=\"document('nope.xml')\"><xsl:catch select='$err:code'/></xsl:try>",
                "err:FODC0002",
            ),
            ("<xsl:value-of select=\"doc-available('nope.xml')\"/>", "false"),
        ],
    );
    check(
        "2.0",
        template,
        &[
            ("<xsl:value-of select=\"key('zz', 1)\"/>", "!XTDE1260"),
            ("<xsl:copy-of select=\"document('nope.xml')\"/>", ""),
        ],
    );
}

#[test]
fn codes_of_static_errors() {
    let none = |body: &str| body.to_owned();
    for version in ["2.0", "3.0"] {
        check(
            version,
            none,
            &[
                ("<xsl:template match='a[b'/>", "!XTSE0340"),
                ("<xsl:template name='a'/><xsl:template name='a'/>", "!XTSE0660"),
                ("<xsl:variable name='a'/><xsl:variable name='a'/>", "!XTSE0630"),
                ("<xsl:template match='/'><xsl:call-template name='a'/></xsl:template>", "!XTSE0650"),
                ("<xsl:template match='/'><xsl:if/></xsl:template>", "!XTSE0010"),
                ("<xsl:template match='/' zz='1'/>", "!XTSE0090"),
                ("<xsl:template/>", "!XTSE0500"),
                ("<xsl:output method='zz'/>", "!XTSE1570"),
                ("<xsl:attribute-set name='a' use-attribute-sets='a'/>", "!XTSE0720"),
                ("<xsl:template match='/'><o a='}'/></xsl:template>", "!XTSE0370"),
                ("<xsl:template match='/'><o a='{'/></xsl:template>", "!XTSE0350"),
                (
                    "<xsl:template match='/'><o><xsl:attribute name='a' select='1'>x</xsl:attribute></o></xsl:template>",
                    "!XTSE0840",
                ),
                ("<xsl:decimal-format decimal-separator=',' grouping-separator=','/>", "!XTSE1300"),
                ("<xsl:decimal-format name='x' decimal-separator=','/>", "!XTSE1300"),
            ],
        );
    }
    // In 3.0 an import may stand anywhere.
    check("2.0", none, &[("<xsl:template match='/'/><xsl:import href='x'/>", "!XTSE0200")]);
    // XSLT 1.0 has no codes.
    check("1.0", none, &[("<xsl:template/>", "!xsl:template needs a match")]);
}

#[test]
fn errors_have_places() {
    for (body, line, message) in [
        ("\n<xsl:mode on-no-match='fail'/>", 3, "XTDE0555: the document"),
        (
            "\n<xsl:mode on-no-match='fail'/><xsl:template match='/|r|a'><xsl:apply-templates/></xsl:template>",
            3,
            "XTDE0555: a text",
        ),
        (
            "\n<xsl:mode name='m' on-no-match='fail'/><xsl:template match='/'><xsl:apply-templates select='r/b' mode='m'/></xsl:template>",
            3,
            "XTDE0555: the element b has no template rule in the mode \"m\"",
        ),
        (
            "\n<xsl:character-map name='a' use-character-maps='b'/>\n<xsl:character-map name='b' use-character-maps='a'/><xsl:template match='/'/>",
            3,
            "XTSE1600",
        ),
        (
            "<xsl:template match='/'><x/>\n<xsl:result-document><y/></xsl:result-document></xsl:template>",
            3,
            "XTDE1490",
        ),
        (
            "<xsl:template match='/'>\n<xsl:result-document><y/></xsl:result-document><x/></xsl:template>",
            3,
            "XTDE1490",
        ),
    ] {
        let errors = run("3.0", body).unwrap_err();
        let found = (errors[0].uri.as_str(), errors[0].line);
        assert!(found == ("s.xsl", line) && errors[0].message.contains(message), "{body}: {:?}", errors[0]);
    }
}

#[test]
fn results_of_items() {
    check(
        "3.0",
        output,
        &[
            (
                "method='json'|<xsl:sequence select=\"map{'a': [1, true(), 'x\u{20AC}']}\"/>",
                "{\"a\":[1,true,\"x\u{20AC}\"]}",
            ),
            ("method='json' encoding='US-ASCII'|<xsl:sequence select=\"'x\u{20AC}'\"/>", "\"x\\u20AC\""),
            ("method='json' indent='yes'|<xsl:sequence select=\"map{'a': 1}\"/>", "{\n  \"a\": 1\n}"),
            ("method='json'|<xsl:sequence select='()'/>", "null"),
            ("method='json'|<xsl:sequence select='1, 2'/>", "!SERE0023"),
            ("method='json'|<xsl:sequence select='xs:double(\"INF\")'/>", "!SERE0020"),
            ("method='json'|<xsl:sequence select=\"map{1: 1, '1': 2}\"/>", "!SERE0022"),
            ("method='json' allow-duplicate-names='yes'|<xsl:sequence select=\"map{1: 1}\"/>", "{\"1\":1}"),
            ("method='json'|<x>1</x>", "\"<x>1<\\/x>\""),
            ("method='json' json-node-output-method='text'|<x>1</x>", "\"1\""),
            ("method='json' build-tree='yes'|<x>1</x>", "\"<x>1<\\/x>\""),
            ("method='json' json-node-output-method='zz'|<x/>", "!XTSE0020"),
            (
                "method='adaptive'|<xsl:sequence select=\"1, 'a', true(), map{'k': (1, 2)}\"/><x/>",
                "1\n\"a\"\ntrue()\nmap{\"k\":(1,2)}\n<x/>",
            ),
            ("method='adaptive' item-separator=';'|<xsl:sequence select='1, 2'/>", "1;2"),
            (
                "item-separator='; ' omit-xml-declaration='yes'|<xsl:sequence select='1, 2'/><x/><xsl:sequence select='[3, [4]]'/>",
                "1; 2; <x/>; 3; 4",
            ),
            ("item-separator='' method='text'|<xsl:sequence select='1 to 3'/>", "123"),
            ("item-separator='#absent' method='text'|<xsl:sequence select='1 to 3'/>", "1 2 3"),
            (
                "item-separator=',' encoding='US-ASCII' method='text'|<xsl:sequence select=\"'\u{E9}'\"/>",
                "!SERE0008",
            ),
            ("item-separator=','|<xsl:sequence select='a/@id'/>", "!SENR0001"),
            ("item-separator=','|<xsl:sequence select='map{}'/>", "!SENR0001"),
            ("build-tree='no' omit-xml-declaration='yes'|<x/>", "<x/>"),
            // Of one result only.
            (
                "|<xsl:result-document method='json'><xsl:sequence select='map{\"a\": 1}'/></xsl:result-document>",
                "{\"a\":1}",
            ),
            (
                "method='json'|<xsl:result-document method='xml' omit-xml-declaration='yes'><x/></xsl:result-document>",
                "<x/>",
            ),
            ("method='json'|<xsl:result-document><xsl:sequence select='1'/></xsl:result-document>", "1"),
            (
                "method='json'|<xsl:result-document><xsl:sequence select='1'/></xsl:result-document><xsl:sequence select='2'/>",
                "!XTDE1490",
            ),
            (
                "|<xsl:result-document item-separator='-' method='text'><xsl:sequence select='1 to 3'/></xsl:result-document>",
                "1-2-3",
            ),
        ],
    );
}

/// `parameter-document`, which attributes override.
#[test]
fn parameters_by_document() {
    struct One(&'static str);
    impl busbar_xslt::Resolver for One {
        fn read(&self, uri: &str) -> Result<Vec<u8>, String> {
            match uri.ends_with("p.xml") {
                true => Ok(self.0.as_bytes().to_vec()),
                false => Err(format!("there is no {uri}")),
            }
        }
    }
    const GOOD: &str = "<o:serialization-parameters xmlns:o='http://www.w3.org/2010/xslt-xquery-serialization'>\
        <o:method value='xml'/><o:omit-xml-declaration value='yes'/><o:cdata-section-elements value='x'/>\
        <o:use-character-maps><o:character-map character='*' map-string='star'/></o:use-character-maps>\
        </o:serialization-parameters>";
    const TWICE: &str = "<o:serialization-parameters xmlns:o='http://www.w3.org/2010/xslt-xquery-serialization'>\
        <o:method value='xml'/><o:method value='xml'/></o:serialization-parameters>";
    const UNKNOWN: &str = "<o:serialization-parameters xmlns:o='http://www.w3.org/2010/xslt-xquery-serialization'>\
        <o:zz value='xml'/></o:serialization-parameters>";
    for (document, attributes, expected) in [
        (GOOD, "parameter-document='p.xml'", "<o a=\"star\"><x><![CDATA[<]]></x></o>"),
        (GOOD, "parameter-document='p.xml' method='text'", "<"),
        (GOOD, "parameter-document='none.xml'", "!FODC0002"),
        (TWICE, "parameter-document='p.xml'", "!SEPM0019"),
        (UNKNOWN, "parameter-document='p.xml'", "!SEPM0017"),
        ("<x/>", "parameter-document='p.xml'", "!SEPM0017"),
    ] {
        let resolver = One(document);
        let content = "<o a='*'><x>&lt;</x></o>";
        for body in [
            format!("<xsl:output {attributes}/><xsl:template match='/'>{content}</xsl:template>"),
            format!(
                "<xsl:template match='/'><xsl:result-document {attributes}>{content}</xsl:result-document></xsl:template>"
            ),
        ] {
            let options = CompileOptions { uri: "s.xsl", resolver: &resolver, ..CompileOptions::default() };
            let mut bytes = Vec::new();
            let done = Stylesheet::compile(sheet("3.0", &body).as_bytes(), &options)
                .map_err(|errors| errors[0].message.clone())
                .and_then(|sheet| {
                    let doc = Document::parse(INPUT, &ParseOptions::default()).unwrap();
                    let run = RunOptions { resolver: &resolver, ..RunOptions::default() };
                    sheet.transform_to(&doc, Document::ROOT, &[], &run, &mut bytes).map_err(|e| e.message)
                });
            let found = match done {
                Ok(()) => String::from_utf8(bytes).unwrap(),
                Err(message) => format!("!{message}"),
            };
            let fits = match expected.strip_prefix('!') {
                Some(part) => found.contains(part),
                None => found == expected,
            };
            assert!(fits, "{body}: {found}");
        }
    }
}

#[test]
fn global_context_items() {
    let read = "<xsl:variable name='v' select='/r/a'/><xsl:template match='/'><xsl:value-of select='$v'/></xsl:template>";
    let around = |case: &str| {
        format!("<xsl:global-context-item {case}/><xsl:output omit-xml-declaration='yes'/>{read}")
    };
    check(
        "3.0",
        around,
        &[
            ("use='required'", "one"),
            ("as='document-node()'", "one"),
            ("as='document-node(element(r))' use='required'", "one"),
            ("as='element()'", "!XTTE0590"),
            ("as='document-node(element(x))'", "!XTTE0590"),
            ("use='absent'", "!XPDY0002"),
            ("use='absent' as='node()'", "!XTSE3089"),
            ("use='zz'", "!XTSE0020"),
            ("/><xsl:global-context-item", "!XTSE3087"),
        ],
    );
    check("3.0", template, &[("<xsl:value-of select='uri-collection()'/>", "!FODC0002")]);
}

/// In a pattern `current()` is the node that is matched, in predicates of its ancestors too.
#[test]
fn current_in_patterns() {
    let sheet = |version: &str, pattern: &str| {
        let sheet = format!(
            "<xsl:stylesheet version='{version}' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'><xsl:output method='text'/>\
             <xsl:template match=\"{pattern}\">[<xsl:value-of select='@n'/>]</xsl:template><xsl:template match='text()'/></xsl:stylesheet>"
        );
        let sheet = Stylesheet::compile(sheet.as_bytes(), &CompileOptions::default()).unwrap();
        let input =
            "<r><g k='1'><i n='1'/><i n='2'/></g><g k='2'><i n='1'/><i n='2'/><i n='2'/></g><g k='2'/></r>";
        let doc = Document::parse(input, &ParseOptions::default()).unwrap();
        let mut bytes = Vec::new();
        sheet.transform_to(&doc, Document::ROOT, &[], &RunOptions::default(), &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    for version in ["2.0", "3.0"] {
        for (pattern, expected) in [
            ("g[@k = current()/@n]/i", "[1][2][2]"),
            ("g[current()/@n = '2']/i", "[2][2][2]"),
            ("r[g/@k = current()/@n]//i[@n = current()/@n]", "[1][2][1][2][2]"),
            ("g[position() = current()/@n]/i", "[1][2][2]"),
            ("g[@k = 2][position() = current()/@n - 1]/i", "[2][2]"),
            ("i[current()/@n = 2]", "[2][2][2]"),
            ("i[@n = 2][current()/@n = 2][2]", "[2]"),
        ] {
            assert_eq!(sheet(version, pattern), expected, "{version} {pattern}");
        }
    }
}

/// A limit that a dynamic expression exceeds is an error, not an empty result.
#[test]
fn limits_within_dynamic_expressions() {
    let sheet = "<xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform' xmlns:dyn='http://exslt.org/dynamic' \
        xmlns:func='http://exslt.org/functions' xmlns:f='urn:f'>\
        <func:function name='f:a'><func:result select='f:a() + 1'/></func:function>\
        <xsl:template match='/'><o><xsl:value-of select=\"dyn:evaluate('f:a()')\"/></o></xsl:template></xsl:stylesheet>";
    let sheet = Stylesheet::compile(sheet.as_bytes(), &CompileOptions::default()).unwrap();
    let doc = Document::parse("<r/>", &ParseOptions::default()).unwrap();
    let error = sheet.transform(&doc, Document::ROOT, &[], &RunOptions::default()).unwrap_err();
    assert!(error.message.starts_with("XPDY0130") && error.line == 1, "{error}");
}

#[test]
fn limits_have_a_code() {
    let body =
        "<xsl:call-template name='t'/></xsl:template><xsl:template name='t'><xsl:call-template name='t'/>1";
    check("3.0", template, &[(body, "!XPDY0130")]);
}

#[test]
fn what_mode_declarations_say_differently_has_a_place() {
    let body = "<xsl:mode name='m' on-no-match='fail'/>\n<xsl:mode name='m' on-no-match='deep-skip'/>";
    let errors = run("3.0", body).unwrap_err();
    assert_eq!((errors.len(), errors[0].line, errors[0].uri.as_str()), (1, 3, "s.xsl"), "{}", errors[0]);
    assert!(errors[0].message.starts_with("XTSE0545"), "{}", errors[0]);
}

/// The name of a calendar is a qualified name.
#[test]
fn prefixes_of_calendars_are_declared() {
    check(
        "3.0",
        template,
        &[
            (
                "<xsl:value-of select=\"format-date(xs:date('2020-01-02'), '[Y]', 'en', 'f:own', ())\"/>",
                "[Calendar: AD]2020",
            ),
            (
                "<xsl:value-of select=\"format-date(xs:date('2020-01-02'), '[Y]', 'en', 'Q{urn:f}own', ())\"/>",
                "[Calendar: AD]2020",
            ),
            (
                "<xsl:value-of select=\"format-date(xs:date('2020-01-02'), '[Y]', 'en', 'none:AD', ())\"/>",
                "!FOFD1340",
            ),
            (
                "<xsl:value-of select=\"format-time(xs:time('10:00:00'), '[H]', 'en', 'none:AD', ())\"/>",
                "!FOFD1340",
            ),
        ],
    );
}
