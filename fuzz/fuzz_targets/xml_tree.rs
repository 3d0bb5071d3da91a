//! What is read and written is read as the same again; with and without a document type declaration.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xml::{Document, Dtd, NodeKind, ParseOptions, WriteOptions};

/// Names, namespaces, text: everything but how it was written.
fn describe(doc: &Document) -> String {
    let mut out = String::new();
    for node in doc.descendants(Document::ROOT) {
        match doc.kind(node) {
            NodeKind::Element => {
                out.push_str(&format!("<{{{}}}{} ", doc.namespace(node), doc.local(node)));
                for a in doc.attributes(node) {
                    out.push_str(&format!("{{{}}}{}={:?} ", doc.namespace(a), doc.local(a), doc.text(a)));
                }
            }
            kind => out.push_str(&format!("{kind:?}{}{:?}", doc.local(node), doc.text(node))),
        }
    }
    out
}

fuzz_target!(|data: &[u8]| {
    for dtd in [Dtd::Refuse, Dtd::Internal] {
        let options = ParseOptions { dtd, ..ParseOptions::default() };
        let Ok(doc) = Document::parse(data.to_vec(), &options) else { continue };
        let mut written = Vec::new();
        xml::write(&doc, Document::ROOT, &WriteOptions::default(), &mut written);
        let again = Document::parse(written.clone(), &ParseOptions::default())
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&written)));
        assert_eq!(describe(&doc), describe(&again), "{}", String::from_utf8_lossy(&written));
    }
});
