//! Streaming gives what the tree gives: on every stylesheet and document of the suites that streams, and on stylesheets and
//! documents made by chance; with windows of one element and with larger ones.

#![allow(clippy::unwrap_used)]

mod generate;
#[allow(dead_code)] // no ledger: all must agree
#[path = "../../xml/tests/ledger/mod.rs"]
mod ledger;

use busbar_xslt::{CompileOptions, FileResolver, Processor, RunLimits, RunOptions, Stylesheet};
use generate::Chance;
use xml::{Document, Limits, ParseOptions};

/// Both ways, streaming with windows of `window` bytes.
fn both(sheet: &Stylesheet, input: &[u8], window: usize, uri: &str) -> [Result<String, String>; 2] {
    let limits = RunLimits { window, depth: 2_000, steps: 2_000_000, ..RunLimits::default() };
    let resolver = FileResolver::default();
    let options =
        RunOptions { limits: &limits, resolver: &resolver, input_uri: uri, ..RunOptions::default() };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let mut tree = Vec::new();
    let parse = ParseOptions {
        strip_space: sheet.strip_space(),
        limits: Limits::trusted(),
        ..ParseOptions::default()
    };
    let tree = Document::parse(input.to_vec(), &parse).map_err(|e| e.to_string()).and_then(|doc| {
        let options = RunOptions { stripped: true, ..options };
        sheet.transform_to(&doc, Document::ROOT, &[], &options, &mut tree).map_err(|e| e.message)?;
        Ok(text(tree))
    });
    let mut stream = Vec::new();
    let streamed = sheet
        .transform_stream(&mut &*input, &Limits::trusted(), &[], &options, false, &mut stream)
        .map(|_| text(stream))
        .map_err(|e| e.message);
    [tree, streamed]
}

fn agree(name: &str, sheet: &Stylesheet, input: &[u8], uri: &str) {
    for window in [1, 400, 20_000] {
        let [tree, streamed] = both(sheet, input, window, uri);
        match (tree, streamed) {
            (Ok(tree), Ok(streamed)) => {
                let at = tree.bytes().zip(streamed.bytes()).take_while(|(a, b)| a == b).count();
                let around = |s: &str| {
                    String::from_utf8_lossy(&s.as_bytes()[at.saturating_sub(60)..s.len().min(at + 60)])
                        .into_owned()
                };
                assert!(
                    tree == streamed,
                    "{name}, window {window}: tree …{}… stream …{}…",
                    around(&tree),
                    around(&streamed)
                );
            }
            (Err(_), Err(_)) => {}
            (tree, streamed) => panic!("{name}, window {window}: tree {tree:.200?}, stream {streamed:.200?}"),
        }
    }
}

#[test]
fn suites() {
    // Those of 1.0 as such, and with the semantics of 2.0.
    for (name, processor, least) in [
        ("xslt10", Processor::V1, 5),
        ("xsltmark", Processor::V1, 5),
        ("xslt10", Processor::V2, 5),
        ("xsltmark", Processor::V2, 5),
    ] {
        let Some(suite) = ledger::suite(name) else { return };
        let (mut all, mut streamed) = (0, 0);
        for case in suite.cases() {
            let file = |name: &str| {
                case["files"][name].as_str().map(|f| suite.path(f).to_string_lossy().into_owned())
            };
            let input = file("input").unwrap();
            let stylesheet = file("stylesheet").unwrap_or_else(|| input.clone());
            let resolver = FileResolver::default();
            let options = CompileOptions {
                uri: &stylesheet,
                resolver: &resolver,
                processor,
                ..CompileOptions::default()
            };
            all += 1;
            let Ok(sheet) = Stylesheet::compile(&std::fs::read(&stylesheet).unwrap(), &options) else {
                continue;
            };
            if sheet.streaming().whole.is_some() {
                continue;
            }
            streamed += 1;
            agree(case["id"].as_str().unwrap(), &sheet, &std::fs::read(&input).unwrap(), &input);
        }
        println!("{name}: {streamed} of {all} stylesheets stream");
        assert!(streamed * least > all, "{streamed} of {all} stream");
    }
}

/// Functions that read the context node, the document or the number of nodes, with and without a prefix: what needs the tree does
/// not stream.
#[test]
fn functions_of_the_context() {
    const FN: &str = "http://www.w3.org/2005/xpath-functions";
    let input = "<r><a n='1'>x<b>1</b></a><a n='2'>y<b>2</b>z</a><a n='3'/><c n='1'>q</c></r>";
    let of_both = [
        "string()",
        "fn:string()",
        "last()",
        "fn:last()",
        "fn:number()",
        "fn:normalize-space()",
        "fn:string-length()",
        "fn:generate-id() = fn:generate-id(.)",
        "count(fn:root()//a)",
        "fn:key('k', '1')/@n",
        "current()/b",
        "fn:current()",
        "(fn:current())/b",
        "not(fn:string())",
        "fn:position() = fn:last()",
        "fn:count(..)",
        "fn:name(.)",
    ];
    let of_version3 = [
        "data()",
        "fn:data()",
        "path()",
        "fn:path()",
        "has-children()",
        "fn:has-children()",
        "copy-of()",
        "fn:snapshot()",
    ];
    let mut streamed = 0;
    for (version, expressions) in [("2.0", &of_both[..]), ("3.0", &of_both[..]), ("3.0", &of_version3[..])] {
        for expression in expressions {
            let sheet = |rule: &str| {
                format!(
                    "<xsl:stylesheet version='{version}' xmlns:xsl='http://www.w3.org/1999/XSL/Transform' xmlns:fn='{FN}'>\
                         <xsl:key name='k' match='a' use='@n'/>\
                         <xsl:template match='r'><o><xsl:apply-templates select='a'/></o></xsl:template>{rule}</xsl:stylesheet>"
                )
            };
            for text in [
                sheet(&format!(
                    "<xsl:template match='a'><v><xsl:value-of select=\"{expression}\"/></v></xsl:template>"
                )),
                sheet(&format!("<xsl:template match='a'><v n=\"{{{expression}}}\"/></xsl:template>")),
                sheet(&format!(
                    "<xsl:template match='a'><xsl:if test=\"{expression}\"><v/></xsl:if><xsl:apply-templates/></xsl:template>"
                )),
            ] {
                let sheet = Stylesheet::compile(text.as_bytes(), &CompileOptions::default());
                let sheet = sheet.unwrap_or_else(|e| panic!("{e:?}\n{text}"));
                if sheet.streams() {
                    streamed += 1;
                    agree(&text, &sheet, input.as_bytes(), "");
                }
            }
        }
    }
    assert!(streamed > 20, "{streamed}");
}

/// What reads the rest of the document within an instruction that needs the complete node.
#[test]
fn instructions_on_complete_nodes() {
    let all = "<xsl:value-of select='count(//a)'/>";
    let of_version1 = [
        format!("<xsl:for-each select='b[last()]'>{all}</xsl:for-each>"),
        format!("<xsl:for-each select='.'>{all}</xsl:for-each>"),
        format!("<xsl:for-each select='b'><xsl:sort/>{all}</xsl:for-each>"),
        format!("<xsl:attribute name='q'><xsl:for-each select='b[1]'>{all}</xsl:for-each></xsl:attribute>"),
        "<xsl:for-each select='b[last()]'><xsl:value-of select='preceding::a/@n'/></xsl:for-each>".into(),
        "<xsl:for-each select='b[last()]'><xsl:value-of select='../@n'/></xsl:for-each>".into(),
        "<xsl:apply-templates select='//a' mode='m'><xsl:with-param name='p' select='.'/></xsl:apply-templates>".into(),
        "<xsl:copy use-attribute-sets='s t'/>".into(),
        "<xsl:value-of select='.'/>".into(),
    ];
    let of_version3 = [
        format!("<xsl:try>{all}<xsl:catch/></xsl:try>"),
        format!("<xsl:try select='1 div 0'><xsl:catch>{all}</xsl:catch></xsl:try>"),
        format!("<xsl:where-populated>{all}</xsl:where-populated>"),
        format!("<xsl:iterate select='b'>{all}</xsl:iterate>"),
        "<xsl:iterate select='1'><xsl:on-completion select='count(//a)'/></xsl:iterate>".into(),
        format!("<xsl:copy select='.'>{all}</xsl:copy>"),
        "<xsl:on-empty select='count(//a)'/>".into(),
        "<xsl:assert test='count(//a) = 3'/>".into(),
        "<xsl:merge><xsl:merge-source select='//a'><xsl:merge-key select='@n'/></xsl:merge-source><xsl:merge-action><x/></xsl:merge-action></xsl:merge>"
            .into(),
        "<xsl:try><xsl:value-of select='.'/><xsl:catch/></xsl:try>".into(),
        "<xsl:iterate select='b'><xsl:value-of select='.'/></xsl:iterate>".into(),
    ];
    let input = "<r><a n='1'>x<b>1</b></a><a n='2'>y<b>2</b><b>1</b>z</a><a n='3'><b>3</b></a></r>";
    let mut streamed = 0;
    for (version, bodies) in [("1.0", &of_version1[..]), ("3.0", &of_version1[..]), ("3.0", &of_version3[..])]
    {
        for body in bodies {
            let sets = match body.contains("attribute-sets") {
                false => "",
                true => {
                    "<xsl:attribute-set name='s'><xsl:attribute name='s'><xsl:value-of select='b'/></xsl:attribute></xsl:attribute-set>\
                     <xsl:attribute-set name='t'><xsl:attribute name='t'><xsl:value-of select='count(//a)'/></xsl:attribute></xsl:attribute-set>"
                }
            };
            let text = format!(
                "<xsl:stylesheet version='{version}' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>{sets}\
                 <xsl:template match='r'><o><xsl:apply-templates select='a'/></o></xsl:template>\
                 <xsl:template match='a'><v>{body}</v></xsl:template><xsl:template match='a' mode='m'>M</xsl:template></xsl:stylesheet>"
            );
            let sheet = Stylesheet::compile(text.as_bytes(), &CompileOptions::default());
            let sheet = sheet.unwrap_or_else(|e| panic!("{e:?}\n{text}"));
            if sheet.streams() {
                streamed += 1;
                agree(&text, &sheet, input.as_bytes(), "");
            }
        }
    }
    assert!(streamed > 3, "{streamed}");
}

#[test]
fn by_chance() {
    let number =
        |name: &str, default: u64| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    let (first, count) = (number("BUSBAR_SEED", 1), number("BUSBAR_DIFFERENTIAL", 3000));
    let mut streamed = 0;
    for seed in first..first + count {
        let mut chance = Chance::new(seed);
        let text = generate::streamable(&mut chance);
        let sheet = Stylesheet::compile(text.as_bytes(), &CompileOptions::default())
            .unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        let input = generate::document(&mut chance);
        if sheet.streaming().whole.is_none() {
            streamed += 1;
            agree(&format!("BUSBAR_SEED={seed}\n{text}\n{input}\n"), &sheet, input.as_bytes(), "");
        }
    }
    println!("{streamed} of {count} stylesheets stream");
    assert!(streamed * 4 > count);
}
