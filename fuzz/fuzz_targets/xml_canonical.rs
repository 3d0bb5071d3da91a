//! The canonical form of a canonical form is itself.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xml::{Document, ParseOptions, c14n};

fuzz_target!(|data: &[u8]| {
    let Ok(doc) = Document::parse(data.to_vec(), &ParseOptions::default()) else { return };
    let canonical = |doc: &Document, options: &c14n::Options| {
        let mut out = Vec::new();
        c14n::canonicalize(doc, Document::ROOT, options, &mut out);
        out
    };
    for algorithm in [c14n::Algorithm::Inclusive10, c14n::Algorithm::Inclusive11, c14n::Algorithm::Exclusive]
    {
        let options = c14n::Options { algorithm, comments: true, ..Default::default() };
        let once = canonical(&doc, &options);
        let again =
            Document::parse(once.clone(), &ParseOptions::default()).expect("canonical XML is well-formed");
        assert_eq!(canonical(&again, &options), once);
    }
});
