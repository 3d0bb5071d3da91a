//! Identity templates run as one loop: the result is that of the same templates with something more in them, which run
//! instruction by instruction. On documents made by chance, and on all the places where it could differ.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)] // its stylesheets are for others
mod generate;

use busbar_xslt::{CompileOptions, RunLimits, RunOptions, Stylesheet};
use generate::Chance;
use xml::{Document, Limits, ParseOptions};

const INPUT: &str = "<?pi data?><r xmlns='urn:d' xmlns:p='urn:p' p:a='1' b='&lt;&quot;'><!--c--><x xmlns=''><y>t&amp;</y><y/><z q='1'>v</z></x>\
                     <p:y xmlns:p='urn:q'>2</p:y> <y>3</y><y>4<y xmlns:e='urn:e' e:a=''>5</y></y><a b='x'/><?pi?></r>";

/// A stylesheet with identity templates, in which `more` is beside what makes them so.
fn sheet(version: &str, output: &str, identity: &str, others: &str, more: &str) -> String {
    let identity = identity.replace("MORE", more);
    format!(
        "<xsl:stylesheet version='{version}' xmlns:xsl='http://www.w3.org/1999/XSL/Transform' xmlns:d='urn:d' xmlns:p='urn:p' \
         exclude-result-prefixes='d p'>{output}{identity}{others}</xsl:stylesheet>"
    )
}

fn run(sheet: &str, input: &str, streaming: bool) -> Result<String, String> {
    let sheet = Stylesheet::compile(sheet.as_bytes(), &CompileOptions::default())
        .unwrap_or_else(|errors| panic!("{errors:?} {sheet}"));
    let limits = RunLimits { window: 60, depth: 400, ..RunLimits::default() };
    let options = RunOptions { limits: &limits, ..RunOptions::default() };
    let mut out = Vec::new();
    if streaming {
        let mut bytes = input.as_bytes();
        sheet
            .transform_stream(&mut bytes, &Limits::default(), &[], &options, false, &mut out)
            .map_err(|e| e.message)?;
    } else {
        let parse = ParseOptions { strip_space: sheet.strip_space(), ..ParseOptions::default() };
        let doc = Document::parse(input.to_owned(), &parse).unwrap();
        let options = RunOptions { stripped: true, ..options };
        sheet.transform_to(&doc, Document::ROOT, &[], &options, &mut out).map_err(|e| e.message)?;
    }
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn as_instruction_by_instruction() {
    let all = "<xsl:template match='@* | node()'><xsl:copy>MORE<xsl:apply-templates select='@* | node()'/></xsl:copy></xsl:template>";
    let elements = "<xsl:template match='*'><xsl:copy>MORE<xsl:apply-templates/></xsl:copy></xsl:template>";
    let root = "<xsl:template match='/ | @* | node()'><xsl:copy>MORE<xsl:apply-templates select='node() | @*'/></xsl:copy></xsl:template>";
    let modes = "<xsl:template match='@* | node()' mode='m'><xsl:copy>MORE<xsl:apply-templates select='@* | node()' mode='m'/></xsl:copy></xsl:template>\
                 <xsl:template match='@* | node()'><xsl:copy>MORE<xsl:apply-templates select='@* | node()' mode='m'/></xsl:copy></xsl:template>";
    let two = "<xsl:template match='node()'><xsl:copy>MORE<xsl:apply-templates select='@* | node()'/></xsl:copy></xsl:template>\
               <xsl:template match='y'><xsl:copy>MORE<xsl:apply-templates/></xsl:copy></xsl:template>\
               <xsl:template match='@*'><xsl:copy>MORE<xsl:apply-templates select='@* | node()'/></xsl:copy></xsl:template>";
    let others = [
        "",
        "<xsl:template match='y'><new><xsl:apply-templates/></new></xsl:template>",
        "<xsl:template match='y/text()'>[<xsl:value-of select='position()'/>/<xsl:value-of select='last()'/>]</xsl:template>",
        "<xsl:template match='text()'/>",
        "<xsl:template match='text()[. = \"3\"]'>three</xsl:template>",
        "<xsl:template match='@b'><xsl:attribute name='c'><xsl:value-of select='position()'/></xsl:attribute></xsl:template>",
        "<xsl:template match='@*[. = \"1\"]'/>",
        "<xsl:template match='d:y[2]'/><xsl:template match='comment()'><was/></xsl:template>",
        "<xsl:template match='processing-instruction()'/><xsl:template match='p:*'><xsl:copy-of select='.'/></xsl:template>",
        "<xsl:template match='x' priority='9'><o><xsl:apply-imports/></o></xsl:template>",
        "<xsl:template match='x'><xsl:variable name='v'><xsl:apply-templates/></xsl:variable><xsl:copy-of select='$v'/><xsl:value-of select='$v'/></xsl:template>",
        "<xsl:template match='x'><i><xsl:attribute name='n'><xsl:apply-templates/></xsl:attribute></i></xsl:template>",
        "<xsl:template match='x'><q xmlns='urn:new'><xsl:apply-templates/></q></xsl:template>",
        "<xsl:strip-space elements='*'/>",
    ];
    let outputs = [
        "",
        "<xsl:output omit-xml-declaration='yes'/>",
        "<xsl:output indent='yes'/>",
        "<xsl:output method='html'/>",
        "<xsl:output method='text'/>",
        "<xsl:output encoding='us-ascii' cdata-section-elements='y'/>",
    ];
    let inputs: Vec<String> = (1..40).map(|seed| generate::document(&mut Chance::new(seed))).collect();
    for (at, identity) in [all, elements, root, modes, two].into_iter().enumerate() {
        for (other, others) in others.iter().enumerate() {
            for version in ["1.0", "2.0"] {
                let output = outputs[(at + other) % outputs.len()];
                let quick = sheet(version, output, identity, others, "");
                let plain = sheet(version, output, identity, others, "<xsl:if test='false()'>x</xsl:if>");
                for input in inputs.iter().map(String::as_str).chain([INPUT]) {
                    let wanted = run(&plain, input, false);
                    assert_eq!(run(&quick, input, false), wanted, "{quick}\n{input}");
                    match run(&quick, input, true) {
                        Err(error) if error.starts_with("the stylesheet does not stream") => {}
                        streamed => assert_eq!(streamed, wanted, "streaming: {quick}\n{input}"),
                    }
                }
            }
        }
    }
}

/// The limits hold in the loop.
#[test]
fn bounds() {
    let identity = "<xsl:template match='@* | node()'><xsl:copy><xsl:apply-templates select='@* | node()'/></xsl:copy></xsl:template>";
    let text = sheet("1.0", "", identity, "", "");
    let compiled = Stylesheet::compile(text.as_bytes(), &CompileOptions::default()).unwrap();
    let parse = ParseOptions { limits: Limits::trusted(), ..ParseOptions::default() };
    let wide = Document::parse(format!("<r>{}</r>", "<a b='c'>d</a>".repeat(2000)), &parse).unwrap();
    let deep = Document::parse(format!("{}{}", "<a>".repeat(3000), "</a>".repeat(3000)), &parse).unwrap();
    for (doc, limits, message) in [
        (&wide, RunLimits { steps: 1000, ..RunLimits::default() }, Some("limit of steps")),
        (&wide, RunLimits { output: 100, ..RunLimits::default() }, Some("size of the result")),
        (&deep, RunLimits { depth: 1000, ..RunLimits::default() }, Some("too deeply")),
        (&deep, RunLimits::default(), None),
        (&wide, RunLimits::default(), None),
    ] {
        let options = RunOptions { limits: &limits, ..RunOptions::default() };
        let done = compiled.transform_to(doc, Document::ROOT, &[], &options, &mut Vec::new());
        match (done, message) {
            (Ok(()), None) => {}
            (Err(error), Some(message)) => assert!(error.message.contains(message), "{error}"),
            (done, message) => panic!("{done:?} {message:?}"),
        }
    }
}
