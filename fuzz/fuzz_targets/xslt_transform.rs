//! A stylesheet runs within its bounds: `STYLESHEET NUL DOCUMENT`. The result as a tree, written, is the result as bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xml::{Document, ParseOptions};
use xslt::{CompileOptions, OutputMethod, Results, RunLimits, RunOptions, Stylesheet};

const HEAD: &str = r#"<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">"#;

/// Takes further results and forgets them.
struct Nowhere;

impl Results for Nowhere {
    fn absolute(&self, href: &str) -> Result<String, String> {
        Ok(href.to_owned())
    }
    fn take(&self, _: &str, _: Vec<u8>) -> Result<(), String> {
        Ok(())
    }
}

fuzz_target!(|data: &str| {
    let (sheet, text) = data.split_once('\0').unwrap_or((data, "<a x='1'><b>2</b><b y='3'/>t</a>"));
    // Mutations rarely keep the outermost element right: it is given.
    let sheet =
        if sheet.starts_with("<?xml") { sheet.to_owned() } else { format!("{HEAD}{sheet}</xsl:stylesheet>") };
    let Ok(doc) = Document::parse(text.to_owned(), &ParseOptions::default()) else { return };
    let options = CompileOptions { results: true, ..CompileOptions::default() };
    let Ok(sheet) = Stylesheet::compile(sheet.as_bytes(), &options) else { return };
    let limits =
        RunLimits { depth: 1_000, steps: 20_000, output: 1 << 20, documents: 1_000, ..RunLimits::default() };
    let run = RunOptions { limits: &limits, results: Some(&Nowhere), ..RunOptions::default() };
    let mut bytes = Vec::new();
    let direct = sheet.transform_to(&doc, Document::ROOT, &[], &run, &mut bytes);
    let tree = sheet.transform(&doc, Document::ROOT, &[], &run);
    match (&direct, &tree) {
        // What is wrong with the output, or cannot be a tree (a map), is found on one of the ways only.
        (Err(error), Ok(_)) => assert!(error.message.starts_with("SE"), "{error}"),
        (Ok(_), Err(error)) => {
            let output = sheet.output();
            let writes_items = matches!(output.method, Some(OutputMethod::Json | OutputMethod::Adaptive));
            assert!(writes_items || output.build_tree == Some(false), "{error}");
        }
        (Ok(_), Ok(_)) | (Err(_), Err(_)) => {}
    }
});
