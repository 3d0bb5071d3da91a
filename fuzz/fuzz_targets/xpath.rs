//! Expressions compile or are refused, and evaluate without panics: `EXPRESSION NUL DOCUMENT`. The ways to ask for one
//! value agree.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xml::{Document, ParseOptions};
use xpath::{CompileOptions, Context, Expression, Version};

const NAMESPACES: [(&str, &str); 2] = [("p", "urn:p"), ("q", "urn:q")];

fuzz_target!(|data: &str| {
    let (source, text) = data.split_once('\0').unwrap_or((data, "<a x='1'><b>2</b><b y='3'/></a>"));
    let Ok(doc) = Document::parse(text.to_owned(), &ParseOptions::default()) else { return };
    for version in [Version::V1, Version::V2] {
        let options = CompileOptions { namespaces: &NAMESPACES, version, ..CompileOptions::default() };
        let expression = match Expression::compile(source, &options) {
            Ok(expression) => expression,
            Err(error) => {
                assert!(error.span.start <= error.span.end && error.span.end <= source.len(), "{error:?}");
                continue;
            }
        };
        let context = Context::root(&doc);
        let value = expression.evaluate(&context);
        if version == Version::V1
            && let Ok(value) = value
        {
            let boolean = expression.evaluate_boolean(&context).expect("its value is known");
            let string = expression.evaluate_string(&context).expect("its value is known");
            assert_eq!(boolean, value.to_boolean(), "{source}");
            assert_eq!(string, value.to_string_in(&context).expect("a value has a string"), "{source}");
        }
    }
});
