//! A stylesheet compiles or is refused with its places.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xslt::{CompileOptions, Stylesheet};

fuzz_target!(|data: &[u8]| {
    if let Err(errors) = Stylesheet::compile(data, &CompileOptions::default()) {
        assert!(!errors.is_empty());
    }
});
