//! Runs stylesheets of XSLT 2.0: tables of declarations and what comes out.

#![allow(clippy::unwrap_used, dead_code)]

use busbar_xslt::{CompileOptions, RunLimits, RunOptions, Stylesheet};
use xml::{Document, ParseOptions};

/// The document of all cases.
pub const INPUT: &str = "<r><a id='1' g='x'>one</a><b>2</b><a id='2' g='y'>two</a><a id='10' g='x'>three</a><n>3</n><n>20</n></r>";

/// A stylesheet of version 2.0 with these declarations.
pub fn sheet(body: &str) -> String {
    format!(
        "<xsl:stylesheet version=\"2.0\" xmlns:xsl=\"http://www.w3.org/1999/XSL/Transform\" \
         xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" xmlns:f=\"urn:f\" exclude-result-prefixes=\"#all\">\
         <xsl:output omit-xml-declaration=\"yes\"/>{body}</xsl:stylesheet>"
    )
}

/// The same compiled.
pub fn compile(body: &str) -> Result<Stylesheet, String> {
    Stylesheet::compile(sheet(body).as_bytes(), &CompileOptions::default())
        .map_err(|errors| format!("compile: {}", errors[0].message))
}

/// The result, made straight to bytes and through a tree.
pub fn run(body: &str) -> Result<String, String> {
    transformed(&compile(body)?, INPUT, body)
}

/// What a stylesheet makes of a document, straight to bytes and through a tree.
pub fn transformed(sheet: &Stylesheet, input: &'static str, body: &str) -> Result<String, String> {
    let doc = Document::parse(input, &ParseOptions::default()).unwrap();
    let limits = RunLimits { steps: 1 << 22, ..RunLimits::default() };
    let options = RunOptions { limits: &limits, ..RunOptions::default() };
    let mut bytes = Vec::new();
    sheet.transform_to(&doc, Document::ROOT, &[], &options, &mut bytes).map_err(|e| e.message)?;
    let tree = sheet.transform(&doc, Document::ROOT, &[], &options).map_err(|e| e.message)?.document;
    let mut written = Vec::new();
    xml::write(&tree, Document::ROOT, sheet.write_options(&tree), &mut written);
    let bytes = String::from_utf8(bytes).unwrap();
    assert_eq!(bytes, String::from_utf8(written).unwrap(), "bytes and tree differ: {body}");
    Ok(bytes)
}

/// Checks a table of declarations and results; `!` begins part of an error message.
pub fn check(cases: &[(&str, &str)]) {
    check_with(run, cases);
}

/// As [`check`], of what `run` makes of each.
pub fn check_with(run: impl Fn(&str) -> Result<String, String>, cases: &[(&str, &str)]) {
    let mut failures = String::new();
    for (body, expected) in cases {
        let found = match run(body) {
            Ok(found) => found,
            Err(error) => format!("!{error}"),
        };
        let fits = match expected.strip_prefix('!') {
            Some(part) => found.starts_with('!') && found.contains(part),
            None => found == *expected,
        };
        if !fits {
            failures.push_str(&format!("{body}\n   found {found}\n  wanted {expected}\n"));
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

/// A template for the root element with this body.
#[allow(unused_macros)]
macro_rules! root {
    ($body:literal) => {
        concat!("<xsl:template match='/r'>", $body, "</xsl:template>")
    };
}
#[allow(unused_imports)]
pub(crate) use root;
