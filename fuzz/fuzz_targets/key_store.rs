//! Key stores (PEM, PKCS#12, JKS) and what is in them: any bytes are one or refused with a reason, in bounded time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use security::Certificate;
use security::keys::{KeyStore, PrivateKey, Trust};

const PASSWORD: &str = "changeit";

/// Whether a text stands in the bytes, in characters of one byte or of two: an error may show names that a key store has.
fn has(data: &[u8], text: &str) -> bool {
    let bytes: Vec<u8> = data.iter().copied().filter(|&byte| byte != 0).collect();
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

fuzz_target!(|data: &[u8]| {
    match KeyStore::read(data, PASSWORD, None) {
        Ok(store) => {
            assert!(!store.identities.is_empty() || !store.certificates.is_empty());
            let _ = Trust::new(&store, &[]);
        }
        Err(why) => assert!(!why.is_empty() && (!why.contains(PASSWORD) || has(data, PASSWORD))),
    }
    if let Ok(certificate) = Certificate::read(data) {
        let _ = (certificate.may_sign(), certificate.may_encipher(), certificate.decimal_serial());
        assert!(!certificate.is_of("CN=nobody", "no number"));
    }
    let _ = PrivateKey::read(data);
});
