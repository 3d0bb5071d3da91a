//! URI templates compile or are refused, and expand.

#![no_main]

use endpoints::uri_template::UriTemplate;
use flow::url::parse_url;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &str| {
    let Ok(template) = UriTemplate::compile(data) else { return };
    let expanded = template.expand(&mut |name| Some(format!("{name} ä/?&")));
    let _ = parse_url(&expanded);
});
