//! Any JSON becomes XML that can be written, read and turned into JSON again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use message::json;
use xml::{Document, Limits, ParseOptions, WriteOptions};

fuzz_target!(|data: &[u8]| {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(data) else { return };
    let mut doc = Document::new();
    let element = json::to_xml(&value, &mut doc, Document::ROOT);
    let mut written = Vec::new();
    xml::write(&doc, element, &WriteOptions::default(), &mut written);
    // A long member name with escapes may be longer than names of messages.
    let limits = Limits { name_length: usize::MAX, ..Limits::default() };
    let again = Document::parse(written.clone(), &ParseOptions { limits, ..ParseOptions::default() })
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&written)));
    let text = json::from_xml(&again, again.document_element().expect("it was parsed"));
    serde_json::from_str::<serde_json::Value>(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
});
