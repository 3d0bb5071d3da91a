//! The outside suite `conformance/xml`: well-formedness and canonical form, against the committed ledger.

mod ledger;

use busbar_xml::{Document, Dtd, FileResolver, ParseOptions, c14n};
use std::sync::Arc;

#[test]
fn well_formedness() {
    let Some(suite) = ledger::suite("xml") else { return };
    let mut ledger = ledger::Ledger::open("xml.txt");
    for case in suite.cases() {
        let input = suite.read(case["files"]["input"].as_str().unwrap_or_default());
        // Some errors show only in what the document refers to.
        let file = case["files"]["input"].as_str().unwrap_or_default();
        let dtd = match case["compare"].as_str() {
            Some("must-fail") => Dtd::External(Arc::new(FileResolver::default())),
            _ => Dtd::Internal,
        };
        let base_uri = Some(suite.path(file).to_string_lossy().into_owned());
        let options = ParseOptions { dtd, base_uri, ..ParseOptions::default() };
        let result = Document::parse(input, &options);
        let outcome = match (case["compare"].as_str().unwrap_or_default(), result) {
            ("must-fail", Err(_)) => Ok(()),
            ("must-fail", Ok(_)) => Err("accepted".to_owned()),
            (_, Err(e)) => Err(e.to_string()),
            ("accept", Ok(_)) => Ok(()),
            (_, Ok(doc)) => {
                let mut out = Vec::new();
                let options = c14n::Options { comments: true, ..c14n::Options::default() };
                c14n::canonicalize(&doc, Document::ROOT, &options, &mut out);
                if out == suite.read(case["expected"].as_str().unwrap_or_default()) {
                    Ok(())
                } else {
                    Err("another canonical form".to_owned())
                }
            }
        };
        ledger.note(case["id"].as_str().unwrap_or_default(), outcome);
    }
    ledger.close();
}
