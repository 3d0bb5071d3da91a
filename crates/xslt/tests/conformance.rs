//! The outside suites `conformance/xslt10` and `conformance/xsltmark` against the committed ledgers.

#![allow(clippy::unwrap_used)]

mod compare;
#[path = "../../xml/tests/ledger/mod.rs"]
mod ledger;

use busbar_xslt::{CompileOptions, FileResolver, Processor, RunOptions, Stylesheet};
use std::sync::Arc;
use xml::{Document, Dtd, ParseOptions};

#[test]
fn xslt10() {
    run_suite("xslt10", "xslt10.txt");
}

#[test]
fn xsltmark() {
    run_suite("xsltmark", "xsltmark.txt");
}

fn run_suite(name: &str, file: &str) {
    let Some(suite) = ledger::suite(name) else { return };
    let mut ledger = ledger::Ledger::open(file);
    for case in suite.cases() {
        let file =
            |name: &str| case["files"][name].as_str().map(|f| suite.path(f).to_string_lossy().into_owned());
        let input = file("input").unwrap();
        let stylesheet = file("stylesheet").unwrap_or_else(|| input.clone());
        let params: Vec<(&str, xpath::Value)> = case["params"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.as_str(), xpath::Value::from(value.as_str().unwrap_or(""))))
            .collect();
        let result = transform(&stylesheet, &input, &params);
        let mode = case["compare"].as_str().unwrap_or("");
        let outcome = match (mode, result) {
            ("must-fail", Err(_)) => Ok(()),
            ("must-fail", Ok(_)) => Err("no error is reported".to_owned()),
            (_, Err(error)) => Err(error),
            (mode, Ok(actual)) => {
                let expected = suite.read(case["expected"].as_str().unwrap());
                let mask = case["generated_ids"].as_bool().unwrap_or(false);
                compare::compare(mode, &expected, &actual, case["encoding"].as_str(), mask)
            }
        };
        ledger.note(case["id"].as_str().unwrap(), outcome);
    }
    ledger.close();
}

fn transform(stylesheet: &str, input: &str, params: &[(&str, xpath::Value)]) -> Result<Vec<u8>, String> {
    let dtd = Dtd::External(Arc::new(xml::FileResolver::default()));
    let resolver = FileResolver::default();
    let source = std::fs::read(stylesheet).map_err(|e| e.to_string())?;
    let options = CompileOptions {
        uri: stylesheet,
        resolver: &resolver,
        dtd: &dtd,
        processor: Processor::V1,
        ..CompileOptions::default()
    };
    let sheet = Stylesheet::compile(&source, &options).map_err(|errors| errors[0].message.clone())?;
    let parse = ParseOptions {
        dtd: dtd.clone(),
        base_uri: Some(input.to_owned()),
        strip_space: sheet.strip_space(),
        ..ParseOptions::trusted()
    };
    let doc = Document::parse(std::fs::read(input).map_err(|e| e.to_string())?, &parse)
        .map_err(|e| e.to_string())?;
    let run = RunOptions {
        resolver: &resolver,
        dtd: &dtd,
        stripped: true,
        input_uri: input,
        ..RunOptions::default()
    };
    let mut out = Vec::new();
    sheet.transform_to(&doc, Document::ROOT, params, &run, &mut out).map_err(|e| e.message)?;
    Ok(out)
}
