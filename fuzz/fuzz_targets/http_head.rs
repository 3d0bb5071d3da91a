//! Heads of requests and responses have one reading: what is complete stays what it was when more bytes follow, and a
//! prefix is never more than incomplete or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for read in [transport::fuzzing::request, transport::fuzzing::response] {
        let Some(Ok((size, description))) = read(data) else { continue };
        assert!(size <= data.len());
        assert_eq!(read(&data[..size]), Some(Ok((size, description))));
        for shorter in 0..size {
            assert!(!matches!(read(&data[..shorter]), Some(Ok(_))), "complete at {shorter} and at {size}");
        }
    }
});
