//! WS-SecurityPolicy: any text is a policy or refused with a reason.
#![no_main]

use libfuzzer_sys::fuzz_target;
use security::Policy;

fuzz_target!(|data: &[u8]| {
    match Policy::parse(data) {
        Ok(policy) => {
            assert!(policy.signs() || policy.encrypts() || policy.signed.is_empty());
            assert!((1..=86_400).contains(&policy.config.ttl) && (0..=86_400).contains(&policy.config.skew));
        }
        Err(why) => assert!(!why.is_empty()),
    }
});
