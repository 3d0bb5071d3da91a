//! What a transformation costs grows with its document, counted in units of work ([`meter`]).
#![allow(clippy::unwrap_used)] // helpers of tests

use busbar_xslt::{CompileOptions, RunOptions, Stylesheet};
use xml::{Document, ParseOptions};

/// Units for a document of so many elements, of which every second has another name.
fn units(body: &str, elements: usize) -> u64 {
    let sheet = format!(
        "<x:stylesheet version='1.0' xmlns:x='http://www.w3.org/1999/XSL/Transform'><x:key name='k' match='a' use='.'/>\
         <x:template match='/'><r><x:for-each select='//a|//b'>{body}</x:for-each></r></x:template></x:stylesheet>"
    );
    let sheet = Stylesheet::compile(sheet.as_bytes(), &CompileOptions::default()).unwrap();
    let text = format!("<r>{}</r>", "<a>1</a><b><c/></b>".repeat(elements / 2));
    let input = Document::parse(text, &ParseOptions::default()).unwrap();
    let run = || sheet.transform(&input, Document::ROOT, &[], &RunOptions::default()).map(|_| ());
    let (result, used) = meter::within(std::time::Duration::from_secs(600), None, run);
    result.unwrap();
    used.units
}

#[test]
fn twice_the_document_is_twice_the_work() {
    for body in [
        "<x:number/>",
        "<x:number level='any'/>",
        "<x:number level='multiple' count='a|b'/>",
        "<x:number level='any' count='a|b' from='r'/>",
        "<x:value-of select='position()'/>",
        "<x:value-of select='count(key(\"k\", .)[1])'/>",
        "<x:value-of select='string-length(.)'/>",
    ] {
        let (once, twice) = (units(body, 1000), units(body, 2000));
        assert!(twice < once * 5 / 2, "{body}: {once}, {twice}");
    }
}
