//! FreeMarker templates: any text is refused or filled in, within its units of work, and nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use template::{Model, Template};

fuzz_target!(|text: &str| {
    let Ok(template) = Template::parse(text) else { return };
    let json =
        serde_json::json!({"a": "x", "n": 1.5, "l": [3, 1, 2], "o": {"k": true}, "z": null, "s": "é, b;c"});
    let xml = "<o id='7'><i><q>1</q></i><i t='x'>2</i></o>";
    let document = xml::Document::parse(xml, &xml::ParseOptions::default()).expect("it is well-formed");
    let models = [("payload", Model::Json(&json)), ("doc", Model::Xml(&document))];
    let (filled, used) = meter::inline(200_000, || template.fill(&models, 1 << 16));
    if let Ok(result) = filled {
        assert!(result.len() <= 1 << 16 && used.stopped.is_none());
    }
});
