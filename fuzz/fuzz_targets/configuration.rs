//! A configuration loads or gives diagnostics whose spans lie in the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|data: &str| {
    let loaded = config::load_text("f.xml", data, Path::new("/nonexistent"), &config::LoadOptions::default());
    for diagnostic in loaded.diagnostics.iter() {
        let _ = diagnostics::render::human(diagnostic, &loaded.sources, Default::default());
        let _ = diagnostics::render::json(diagnostic, &loaded.sources);
    }
});
