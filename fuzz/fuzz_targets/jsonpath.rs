//! JSONPath in both dialects: `PATH NUL JSON`. What is selected by paths is what is selected by values, but for objects that
//! Jayway makes of a list of members, which counts as its members where paths are asked for.

#![no_main]

use std::borrow::Cow;

use libfuzzer_sys::fuzz_target;
use message::jsonpath::{Dialect, JsonPath};

fuzz_target!(|data: &str| {
    let (path, json) = data.split_once('\0').unwrap_or((data, r#"{"a":[1,{"b":"x"},null],"c":{"d":2.5}}"#));
    let Ok(value) = serde_json::from_str::<serde_json::Value>(json) else { return };
    for dialect in [Dialect::Rfc9535, Dialect::Jayway] {
        let compiled = match JsonPath::compile(path, dialect) {
            Ok(compiled) => compiled,
            Err(error) => {
                assert!(error.span.start <= error.span.end && error.span.end <= path.len(), "{error:?}");
                continue;
            }
        };
        let with_paths = compiled.select_with_paths(&value);
        let values = compiled.select(&value);
        if values.nodes.iter().all(|node| matches!(node, Cow::Borrowed(_))) {
            assert_eq!(with_paths.nodes, values.nodes, "{path}");
        }
        if dialect == Dialect::Rfc9535 {
            for (path, node) in with_paths.paths.iter().zip(&with_paths.nodes) {
                assert_eq!(path.get(&value), Some(node.as_ref()));
            }
        }
    }
});
