//! Answers of OCSP, and certificates that are asked about: any bytes are refused, or signed by the authority. Nobody guesses its signature, and the
//! seeds were signed by one that is not trusted here.
#![no_main]

use libfuzzer_sys::fuzz_target;
use revocation::path::{Subject, subjects};
use rustls_pki_types::{CertificateDer, UnixTime};
use std::time::Duration;

fuzz_target!(|data: &[u8]| {
    // The base point of P-256: everybody could sign for this key, but no input does.
    let key = b"\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00\x04\
        \x6b\x17\xd1\xf2\xe1\x2c\x42\x47\xf8\xbc\xe6\xe5\x63\xa4\x40\xf2\x77\x03\x7d\x81\x2d\xeb\x33\xa0\xf4\xa1\x39\x45\xd8\x98\xc2\x96\
        \x4f\xe3\x42\xe2\xfe\x1a\x7f\x9b\x8e\xe7\xeb\x4a\x7c\x0f\x9e\x16\x2b\xce\x33\x57\x6b\x31\x5e\xce\xcb\xb6\x40\x68\x37\xbf\x51\xf5";
    let subject = Subject {
        serial: vec![1],
        issuer_name: b"\x30\x0f\x31\x0d\x30\x0b\x06\x03\x55\x04\x03\x0c\x04ours".to_vec(),
        issuer_key: key.to_vec(),
        responder: None,
    };
    assert!(revocation::response::read(data, &subject, 1_700_000_000, Some(b"nonce")).is_err());
    let now = UnixTime::since_unix_epoch(Duration::from_secs(1_700_000_000));
    let between = [CertificateDer::from(data)];
    assert!(subjects(data, &between, &[], now, true).is_err());
});
