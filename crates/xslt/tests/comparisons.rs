//! What is compared with again and again is prepared once, in several ways: the results are those of comparisons of single nodes.
#![allow(clippy::unwrap_used)] // helpers of tests

use busbar_xslt::{CompileOptions, RunOptions, Stylesheet};
use xml::{Document, ParseOptions};

fn result(version: &str, body: &str, input: &Document) -> String {
    let sheet = format!(
        "<x:stylesheet version='{version}' xmlns:x='http://www.w3.org/1999/XSL/Transform'><x:output method='text'/>\
         <x:variable name='l' select='//x'/><x:variable name='d' select='/'/>\
         <x:template match='/'>{body}</x:template></x:stylesheet>"
    );
    let sheet = Stylesheet::compile(sheet.as_bytes(), &CompileOptions::default())
        .unwrap_or_else(|e| panic!("{body}: {}", e[0]));
    let mut out = Vec::new();
    match sheet.transform_to(input, Document::ROOT, &[], &RunOptions::default(), &mut out) {
        Ok(_) => String::from_utf8(out).unwrap(),
        Err(error) => panic!("{body}: {error}"),
    }
}

#[test]
fn all_ways_to_compare_agree() {
    const TEXTS: [&str; 9] = ["1", "2", "10", "x", "", "1e1", " 2 ", "-0", "0.0"];
    let mut state = 11_u32;
    let mut next = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as usize % below
    };
    for round in 0..24 {
        let (few, first) = (round % 3 == 0, next(TEXTS.len()));
        let mut list = |name: &str, count: usize, few: bool| -> String {
            let mut pick = || TEXTS[if few { first } else { next(TEXTS.len()) }];
            (0..count).map(|_| format!("<{name}>{}</{name}>", pick())).collect()
        };
        let text = format!("<r>{}{}</r>", list("x", 9 + round % 12, few), list("y", 14, false));
        let input = Document::parse(text.clone(), &ParseOptions::default()).unwrap();
        for version in ["1.0", "2.0", "3.0"] {
            for (op, mirrored) in [
                ("=", "="),
                ("!=", "!="),
                ("&lt;", "&gt;"),
                ("&lt;=", "&gt;="),
                ("&gt;", "&lt;"),
                ("&gt;=", "&lt;="),
            ] {
                let each = |test: &str| {
                    result(
                        version,
                        &format!(
                            "<x:for-each select='//y'><x:choose><x:when test='{test}'>1</x:when><x:otherwise>0</x:otherwise></x:choose></x:for-each>"
                        ),
                        &input,
                    )
                };
                let filtered = |test: &str| {
                    result(
                        version,
                        &format!(
                            "<x:for-each select='//y'><x:choose><x:when test='count(.|//y[{test}]) = count(//y[{test}])'>1</x:when><x:otherwise>0</x:otherwise></x:choose></x:for-each>"
                        ),
                        &input,
                    )
                };
                let wanted = each(&format!("//x[current() {op} .]"));
                for test in ["$l", "$d/r/x", "//x", "$d//x", "../x"] {
                    for test in [format!(". {op} {test}"), format!("{test} {mirrored} .")] {
                        assert_eq!(each(&test), wanted, "{version}, {test}: {text}");
                        assert_eq!(filtered(&test), wanted, "{version}, in a predicate, {test}: {text}");
                    }
                }
            }
        }
    }
}
