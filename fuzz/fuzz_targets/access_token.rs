//! Who asks: any text is a token, a set of keys, an answer of introspection or a certificate, or is refused. Nothing lets in that was not
//! signed with the key.
#![no_main]

use authentication::certificate::Identity;
use authentication::token::{self, ASYMMETRIC, Algorithm, Keys, Rules};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let rules = Rules { issuers: vec!["me".to_owned()], audiences: vec!["shop".to_owned()], leeway: 60 };
    let keys = Keys::secret(b"a secret of 32 bytes, or of more");
    if let Ok(text) = std::str::from_utf8(data) {
        // Nobody guesses an HMAC.
        assert!(token::verify(text, &keys, &[Algorithm::HS256], &rules, 1_700_000_000, None).is_err());
        // A set of keys, a line end, a token.
        if let Some((keys, text)) = text.split_once('\n')
            && let Ok(keys) = Keys::read(keys.as_bytes())
        {
            assert!(token::verify(text, &keys, &[Algorithm::HS256], &rules, 0, None).is_err());
            let _ = token::verify(text, &keys, &ASYMMETRIC, &rules, 0, Some(data));
        }
    }
    if let Ok(good) = authentication::introspection::read(data, &rules, 1_700_000_000, None) {
        assert!(good.ends.is_none_or(|ends| ends.saturating_add(60) > 1_700_000_000));
    }
    if let Some(identity) = Identity::read(data) {
        assert_eq!(identity.fingerprint.len(), 64);
    }
});
