//! Key stores (PEM, PKCS#12, JKS) and what is in them: any bytes are one or refused with a reason, in bounded time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use security::keys::{KeyStore, PrivateKey, Trust};
use security::Certificate;

fuzz_target!(|data: &[u8]| {
    match KeyStore::read(data, "changeit", None) {
        Ok(store) => {
            assert!(!store.identities.is_empty() || !store.certificates.is_empty());
            let _ = Trust::new(&store, &[]);
        }
        Err(why) => assert!(!why.is_empty() && !why.contains("changeit")),
    }
    if let Ok(certificate) = Certificate::read(data) {
        let _ = (certificate.may_sign(), certificate.may_encipher(), certificate.decimal_serial());
        assert!(!certificate.is_of("CN=nobody", "no number"));
    }
    let _ = PrivateKey::read(data);
});
