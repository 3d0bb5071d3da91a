//! `xsl:result-document`: further results, output properties of each, and what is refused.

#![allow(clippy::unwrap_used)]

mod sheets;

use busbar_xslt::{CompileOptions, FileResults, Results, RunLimits, RunOptions, Stylesheet};
use sheets::{INPUT, sheet};
use std::collections::BTreeMap;
use std::sync::Mutex;
use xml::{Document, Limits, ParseOptions};

/// Keeps results by name.
#[derive(Default)]
struct InMemory(Mutex<BTreeMap<String, String>>);

impl Results for InMemory {
    fn absolute(&self, href: &str) -> Result<String, String> {
        match href {
            "forbidden" => Err("not there".into()),
            href => Ok(href.trim_start_matches("./").to_owned()),
        }
    }

    fn take(&self, uri: &str, document: Vec<u8>) -> Result<(), String> {
        let text = String::from_utf8_lossy(&document).into_owned();
        assert!(self.0.lock().unwrap().insert(uri.to_owned(), text).is_none(), "{uri} twice");
        Ok(())
    }
}

fn compile(body: &str) -> Result<Stylesheet, String> {
    let options = CompileOptions { results: true, ..CompileOptions::default() };
    let version3 =
        body.strip_prefix("3.0: ").map(|body| sheet(body).replace("version=\"2.0\"", "version=\"3.0\""));
    Stylesheet::compile(version3.unwrap_or_else(|| sheet(body)).as_bytes(), &options)
        .map_err(|errors| errors[0].message.clone())
}

/// The principal result, then the others with their names.
fn run(body: &str, streaming: bool) -> Result<String, String> {
    let sheet = compile(body)?;
    let kept = InMemory::default();
    let limits = RunLimits { results: 5, output: 1000, window: 1, ..RunLimits::default() };
    let options = RunOptions { limits: &limits, results: Some(&kept), ..RunOptions::default() };
    let mut bytes = Vec::new();
    if streaming {
        let mut input = INPUT.as_bytes();
        sheet
            .transform_stream(&mut input, &Limits::default(), &[], &options, false, &mut bytes)
            .map_err(|e| e.message)?;
    } else {
        let doc = Document::parse(INPUT, &ParseOptions::default()).unwrap();
        // What was there stays.
        bytes.extend_from_slice(b"before");
        sheet.transform_to(&doc, Document::ROOT, &[], &options, &mut bytes).map_err(|e| e.message)?;
        bytes = bytes.strip_prefix(b"before").unwrap().to_vec();
    }
    let mut all = String::from_utf8(bytes).unwrap();
    for (name, text) in kept.0.into_inner().unwrap() {
        all.push_str(&format!("|{name}:{text}"));
    }
    Ok(all)
}

#[test]
fn documents() {
    let rule = |body: &str| format!("<xsl:template match='/r'>{body}</xsl:template>");
    let each = |body: &str| {
        format!(
            "<xsl:template match='/r'><xsl:apply-templates select='a'/></xsl:template><xsl:template match='a'>{body}</xsl:template>"
        )
    };
    let formats = "<xsl:output name='h' method='html' indent='no'/><xsl:output name='t' method='text'/>\
                   <xsl:output name='f:c' cdata-section-elements='x' omit-xml-declaration='yes' use-character-maps='m'/>\
                   <xsl:character-map name='m'><xsl:output-character character='e' string='E'/></xsl:character-map>\
                   <xsl:character-map name='n' use-character-maps='m'><xsl:output-character character='o' string='0'/><xsl:output-character character='t' string='T'/></xsl:character-map>\
                   <xsl:character-map name='p'><xsl:output-character character='e' string='3'/></xsl:character-map>";
    let format = |body: &str| format!("{formats}{}", rule(body));
    let mut failures = String::new();
    for (body, expected) in [
        // Where it goes is known, but not within values.
        (
            rule(
                "<z n='{count(current-output-uri())}'/><xsl:result-document href='o.xml'><x u='{current-output-uri()}'><xsl:variable name='w'><y u='{current-output-uri()}'/></xsl:variable><xsl:copy-of select='$w'/><xsl:if test='current-output-uri() instance of xs:anyURI'>!</xsl:if></x></xsl:result-document>",
            ),
            "<z n=\"0\"/>|o.xml:<x u=\"o.xml\"><y u=\"\"/>!</x>",
        ),
        // Without a principal result of its own there is none.
        (rule("<xsl:result-document href='o.xml'><x/></xsl:result-document>"), "|o.xml:<x/>"),
        (rule("<p/><xsl:result-document href='o.xml'><x/></xsl:result-document><q/>"), "<p/><q/>|o.xml:<x/>"),
        (
            each("<xsl:result-document href='{@id}.xml'><x><xsl:value-of select='.'/></x></xsl:result-document>"),
            "|1.xml:<x>one</x>|10.xml:<x>three</x>|2.xml:<x>two</x>",
        ),
        (
            rule("<xsl:result-document href='o'><x/><xsl:result-document href='i'><y/></xsl:result-document></xsl:result-document>"),
            "|i:<y/>|o:<x/>",
        ),
        (
            "<xsl:template match='/r' as='element()*'><p/><xsl:result-document href='o'><x/></xsl:result-document></xsl:template>".into(),
            "<p/>|o:<x/>",
        ),
        // Properties.
        (
            format("<xsl:result-document href='a' format='h'><br/></xsl:result-document><xsl:result-document href='b' format='{\"t\"}'><br/>&lt;</xsl:result-document>"),
            "|a:<br>|b:<",
        ),
        (
            format("<xsl:result-document href='a' format='f:c'><x>e&lt;</x>e</xsl:result-document>"),
            "|a:<x><![CDATA[e<]]></x>E",
        ),
        (
            format("<xsl:result-document href='a' omit-xml-declaration='no' method='{\"xml\"}' output-version='1.1' standalone='yes' encoding='us-ascii'><x>\u{e9}</x></xsl:result-document>"),
            "|a:<?xml version=\"1.1\" encoding=\"us-ascii\" standalone=\"yes\"?><x>&#233;</x>",
        ),
        (
            format("<xsl:result-document href='a' use-character-maps='n p'><x a='toe'/></xsl:result-document>"),
            "|a:<x a=\"T03\"/>",
        ),
        (
            format("<xsl:result-document href='a' cdata-section-elements='x f:y'><x>1</x><f:y>2</f:y></xsl:result-document>"),
            "|a:<x><![CDATA[1]]></x><f:y xmlns:f=\"urn:f\"><![CDATA[2]]></f:y>",
        ),
        (
            rule("<xsl:result-document href='a' byte-order-mark='yes' doctype-system='s' indent='yes'><x><y/></x></xsl:result-document>"),
            "|a:\u{feff}<!DOCTYPE x SYSTEM \"s\">\n<x>\n  <y/>\n</x>\n",
        ),
        (
            rule("<xsl:result-document href='a' method='html' include-content-type='no' escape-uri-attributes='no' indent='no'><head/><a href='\u{e9}'/></xsl:result-document>"),
            "|a:<head></head><a href=\"\u{e9}\"></a>",
        ),
        (
            rule("<xsl:result-document href='a' normalization-form='NFC'><x a='e\u{301}'/></xsl:result-document>"),
            "|a:<x a=\"\u{e9}\"/>",
        ),
        // The principal result with properties of its own.
        (rule("<xsl:result-document><x/></xsl:result-document>"), "<x/>"),
        (rule("<xsl:result-document href=''><x/></xsl:result-document>"), "<x/>"),
        (rule("<xsl:result-document method='html' indent='no'><br/></xsl:result-document>"), "<br>"),
        (
            format("<xsl:result-document format='t'>&lt;x</xsl:result-document><xsl:result-document href='a'><x/></xsl:result-document>"),
            "<x|a:<x/>",
        ),
        ("<xsl:output name='o' method='xml' omit-xml-declaration='no'/><xsl:template match='/r'><xsl:result-document format='o' href='a'><x/></xsl:result-document></xsl:template>".into(), "|a:<?xml version=\"1.0\" encoding=\"UTF-8\"?><x/>"),
        // Two for one place.
        (each("<xsl:result-document href='same'/>"), "!XTDE1490: two results for same"),
        (rule("<xsl:result-document href='a'/><xsl:result-document href='./a'/>"), "!XTDE1490"),
        (rule("<p/><xsl:result-document><x/></xsl:result-document>"), "!XTDE1490: two results for the principal result"),
        (rule("<xsl:result-document><x/></xsl:result-document><p/>"), "!XTDE1490"),
        (rule("<xsl:result-document method='html'><x/></xsl:result-document>text"), "!XTDE1490"),
        (rule("<xsl:result-document><x/></xsl:result-document><xsl:result-document/>"), "!XTDE1490"),
        (rule("<xsl:result-document href='a'><xsl:result-document/></xsl:result-document>"), "!inside of another result"),
        // In a value.
        (rule("<xsl:variable name='v'><xsl:result-document href='a'/></xsl:variable><xsl:copy-of select='$v'/>"), "!XTDE1480"),
        (rule("<xsl:variable name='v' as='item()*'><xsl:result-document href='a'/></xsl:variable><xsl:copy-of select='$v'/>"), "!XTDE1480"),
        (rule("<x><xsl:attribute name='a'><xsl:result-document href='a'/></xsl:attribute></x>"), "!XTDE1480"),
        (rule("<xsl:value-of select='f:f()'/>") + "<xsl:function name='f:f'><xsl:result-document href='a'/></xsl:function>", "!XTDE1480"),
        (rule("<xsl:message><xsl:result-document href='a'/></xsl:message>"), "!XTDE1480"),
        // Wrong names and values.
        (rule("<xsl:result-document href='forbidden'/>"), "!not there"),
        (rule("<xsl:result-document href='a' format='none'/>"), "!XTDE1460"),
        (rule("<xsl:result-document href='a' format='q:none'/>"), "!prefix"),
        (rule("<xsl:result-document href='a' method='pdf'/>"), "!pdf"),
        (rule("<xsl:result-document href='a' method='{\"pdf\"}'/>"), "!pdf"),
        (rule("<xsl:result-document href='a' indent='maybe'/>"), "!yes or no"),
        (rule("<xsl:result-document href='a' normalization-form='NFZ'/>"), "!SESU0011"),
        (rule("<xsl:result-document href='a' undeclare-prefixes='yes'/>"), "!SEPM0010"),
        (rule("<xsl:result-document href='a' use-character-maps='none'/>"), "!XTSE1590"),
        (rule("<xsl:result-document href='a' type='xs:int'/>"), "!XTSE1660"),
        ("<xsl:character-map name='a' use-character-maps='b'/><xsl:character-map name='b' use-character-maps='a'/>".into(), "!XTSE1600"),
        ("<xsl:output undeclare-prefixes='yes' version='1.0'/>".into(), "!SEPM0010"),
        // Bounds: five results, and a thousand bytes of text in all together.
        (rule("<xsl:for-each select='1 to 5'><xsl:result-document href='{.}'/></xsl:for-each>"), "|1:|2:|3:|4:|5:"),
        (rule("<xsl:for-each select='1 to 6'><xsl:result-document href='{.}'/></xsl:for-each>"), "!limit of results (5)"),
        (
            rule("<xsl:for-each select='1 to 4'><xsl:result-document href='{.}'><xsl:for-each select='1 to 300'>x</xsl:for-each></xsl:result-document></xsl:for-each>"),
            "!limit on the size of the result",
        ),
    ] {
        for streaming in [false, true] {
            let found = match run(&body, streaming) {
                Err(error) if streaming && error.starts_with("the stylesheet does not stream") => continue,
                Ok(found) => found,
                Err(error) => format!("!{error}"),
            };
            let fits = match expected.strip_prefix('!') {
                Some(part) => found.starts_with('!') && found.contains(part),
                None => found == expected,
            };
            if !fits {
                failures.push_str(&format!("{body} ({streaming})\n   found {found}\n  wanted {expected}\n"));
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

/// Into a tree the principal result goes without its properties, but wrong ones are errors as well.
#[test]
fn into_a_tree() {
    let doc = Document::parse(INPUT, &ParseOptions::default()).unwrap();
    for (attributes, expected) in [
        ("method='html'", Ok("<x/>")),
        ("", Ok("<x/>")),
        ("format='none'", Err("XTDE1460")),
        ("indent='{\"maybe\"}'", Err("yes or no")),
    ] {
        let sheet = compile(&format!(
            "<xsl:template match='/r'><xsl:result-document {attributes}><x/></xsl:result-document></xsl:template>"
        ))
        .unwrap();
        let done = sheet.transform(&doc, Document::ROOT, &[], &RunOptions::default());
        match (done, expected) {
            (Ok(done), Ok(expected)) => assert_eq!(xml::to_string(&done.document, Document::ROOT), expected),
            (Err(error), Err(expected)) => assert!(error.message.contains(expected), "{error}"),
            (done, _) => panic!("{attributes}: {done:?}"),
        }
    }
}

/// What streams goes to its files piece by piece as well.
#[test]
fn they_stream() {
    let sheet = compile(
        "<xsl:template match='a'><xsl:result-document href='{@id}'><x><xsl:value-of select='.'/></x></xsl:result-document></xsl:template>",
    )
    .unwrap();
    assert!(sheet.streams(), "{:?}", sheet.streaming().whole);
    // And character maps with it.
    let body = "<xsl:character-map name='m'><xsl:output-character character='e' string='3'/></xsl:character-map>\
                <xsl:output use-character-maps='m' omit-xml-declaration='yes'/>";
    assert_eq!(run(body, true).unwrap(), run(body, false).unwrap());
    assert_eq!(run(body, true).unwrap(), "on32twothr33320");
}

/// The method may depend on the first element; XHTML only in 2.0.
#[test]
fn methods() {
    for (version, root, expected) in [
        (
            "2.0",
            "<html xmlns='http://www.w3.org/1999/xhtml'><br/></html>",
            "<html xmlns=\"http://www.w3.org/1999/xhtml\"><br /></html>",
        ),
        (
            "2.0",
            "<h:html xmlns:h='http://www.w3.org/1999/xhtml'><h:p/></h:html>",
            "<h:html xmlns:h=\"http://www.w3.org/1999/xhtml\"><h:p></h:p></h:html>",
        ),
        (
            "2.0",
            "<HTML xmlns='http://www.w3.org/1999/xhtml'><br/></HTML>",
            "<HTML xmlns=\"http://www.w3.org/1999/xhtml\"><br/></HTML>",
        ),
        ("2.0", "<html><br/></html>", "<html><br></html>"),
        (
            "1.0",
            "<html xmlns='http://www.w3.org/1999/xhtml'><br/></html>",
            "<html xmlns=\"http://www.w3.org/1999/xhtml\"><br/></html>",
        ),
    ] {
        let text = format!(
            "<xsl:stylesheet version='{version}' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>\
             <xsl:output omit-xml-declaration='yes' indent='no'/><xsl:template match='/'>{root}</xsl:template></xsl:stylesheet>"
        );
        let sheet = Stylesheet::compile(text.as_bytes(), &CompileOptions::default()).unwrap();
        let doc = Document::parse(INPUT, &ParseOptions::default()).unwrap();
        let mut bytes = Vec::new();
        sheet.transform_to(&doc, Document::ROOT, &[], &RunOptions::default(), &mut bytes).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
        let tree = sheet.transform(&doc, Document::ROOT, &[], &RunOptions::default()).unwrap().document;
        let mut written = Vec::new();
        xml::write(&tree, Document::ROOT, sheet.write_options(&tree), &mut written);
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }
}

/// A transformation that fails leaves no files.
#[test]
fn files() {
    let folder = std::env::temp_dir().join(format!("busbar-result-document-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let doc = Document::parse(INPUT, &ParseOptions::default()).unwrap();
    for (ending, expected) in [("<xsl:message terminate='yes'/>", 0), ("", 1)] {
        let body = format!(
            "<xsl:template match='/r'><xsl:result-document href='x/o.xml'><x/></xsl:result-document>{ending}</xsl:template>"
        );
        let sheet = compile(&body).unwrap();
        let results = FileResults::below(&folder).unwrap();
        let options = RunOptions { results: Some(&results), ..RunOptions::default() };
        let done = sheet.transform_to(&doc, Document::ROOT, &[], &options, &mut Vec::new());
        match done {
            Ok(()) => results.commit().unwrap(),
            Err(_) => drop(results),
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), expected);
    }
    assert_eq!(std::fs::read(folder.join("x/o.xml")).unwrap(), b"<x/>");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// From 3.0 on a result may be written from within what is not a value (section 25.2).
#[test]
fn from_within() {
    let one = "<xsl:result-document href='o.xml'><x/></xsl:result-document>r";
    for (body, in_2, in_3) in [
        (
            format!("<a><xsl:attribute name='v'>{one}</xsl:attribute></a>"),
            "XTDE1480",
            "<a v=\"r\"/>|o.xml:<x/>",
        ),
        (format!("<a><xsl:comment>{one}</xsl:comment></a>"), "XTDE1480", "<a><!--r--></a>|o.xml:<x/>"),
        (format!("<a><xsl:value-of>{one}</xsl:value-of></a>"), "XTDE1480", "<a>r</a>|o.xml:<x/>"),
        (
            format!("<a><xsl:processing-instruction name='p'>{one}</xsl:processing-instruction></a>"),
            "XTDE1480",
            "<a><?p r?></a>|o.xml:<x/>",
        ),
        (
            format!("<a><xsl:variable name='v'>{one}</xsl:variable><xsl:copy-of select='$v'/></a>"),
            "XTDE1480",
            "XTDE1480",
        ),
        (
            format!(
                "<a><xsl:variable name='v'><xsl:value-of>{one}</xsl:value-of></xsl:variable><xsl:copy-of select='$v'/></a>"
            ),
            "XTDE1480",
            "XTDE1480",
        ),
    ] {
        let rule = format!("<xsl:template match='/r'>{body}</xsl:template>");
        for (prefix, expected) in [("", in_2), ("3.0: ", in_3)] {
            let found = run(&format!("{prefix}{rule}"), false).unwrap_or_else(|error| error);
            assert!(found.starts_with(expected), "{prefix}{body}: {found}");
        }
    }
}
