//! What goes wrong with a message.

use std::fmt;

/// What the other side is told. It never learns what exactly was wrong: the difference between a bad padding, a bad key and a bad
/// signature is what attacks on encryption need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The header is not what the policy asks for, something cannot be decrypted, or a signature is wrong.
    Invalid,
    /// All is in order but the identity of the sender.
    Authentication,
}

/// A message that is refused.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What the other side is told.
    pub kind: FailureKind,
    /// What the log is told. It names elements and algorithms, never a secret.
    pub why: String,
}

impl Failure {
    /// The message is refused, because.
    pub fn invalid(why: impl Into<String>) -> Failure {
        Failure { kind: FailureKind::Invalid, why: why.into() }
    }

    /// The sender is not who it claims to be.
    pub fn authentication(why: impl Into<String>) -> Failure {
        Failure { kind: FailureKind::Authentication, why: why.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.why)
    }
}
