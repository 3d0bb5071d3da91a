//! Signatures of RSA with SHA-1.
//!
//! All algorithm suites of WS-SecurityPolicy ask for them, those of SHA-256 included, which change only the digests of parts. aws-lc-rs
//! verifies such signatures and does not make any, so the library below it is called.
#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]

use aws_lc_sys::{NID_sha1, RSA, RSA_free, RSA_private_key_from_bytes, RSA_sign, RSA_size};
use std::ptr::NonNull;

/// A private key that signs.
pub(crate) struct Sha1Signer(NonNull<RSA>);

// SAFETY: the key is never changed after it was read, and AWS-LC's `RSA_sign` may be called from several threads with one key: what it
// caches inside is behind its own lock.
unsafe impl Send for Sha1Signer {}
// SAFETY: as above.
unsafe impl Sync for Sha1Signer {}

impl Drop for Sha1Signer {
    fn drop(&mut self) {
        // SAFETY: it came from `RSA_private_key_from_bytes`, and this is its only owner.
        unsafe { RSA_free(self.0.as_ptr()) }
    }
}

impl Sha1Signer {
    /// Of an RSAPrivateKey (PKCS #1).
    pub(crate) fn new(der: &[u8]) -> Option<Sha1Signer> {
        // SAFETY: pointer and length are those of one slice; the result is null or owned by the caller.
        NonNull::new(unsafe { RSA_private_key_from_bytes(der.as_ptr(), der.len()) }).map(Sha1Signer)
    }

    /// The signature of a digest.
    pub(crate) fn sign(&self, digest: &[u8; 20]) -> Option<Vec<u8>> {
        // SAFETY: the key is valid as long as `self`.
        let size = unsafe { RSA_size(self.0.as_ptr()) } as usize;
        let mut signature = vec![0; size];
        let mut length = 0;
        // SAFETY: the digest has its length, and the buffer has room for `RSA_size` bytes, which is the most that is written.
        let done = unsafe {
            RSA_sign(
                NID_sha1,
                digest.as_ptr(),
                digest.len(),
                signature.as_mut_ptr(),
                &raw mut length,
                self.0.as_ptr(),
            )
        };
        signature.truncate(length as usize);
        (done == 1 && length > 0).then_some(signature)
    }
}
