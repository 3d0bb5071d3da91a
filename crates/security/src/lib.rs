//! WS-Security: what policies ask for is done to messages that go out, and found in messages that come in.
//!
//! * [`Policy`] is what WS-SecurityPolicy 1.1 or 1.2 asks for. What is not known in one is an error, never left out.
//! * [`keys`] has private keys and certificates, from JKS, PKCS#12 and PEM, and [`keys::Trust`], whom messages may be from.
//! * [`secure`] signs and encrypts one message, [`open`] decrypts and verifies one and holds it against the policy. An [`Exchange`] is what a
//!   request leaves for its answer.
//! * [`Replays`] knows what was seen before.
//!
//! It knows no HTTP and waits for nothing. Cryptography is that of AWS-LC, certificate paths are those of webpki.

pub mod algorithm;
mod base64;
pub mod certificate;
mod failure;
mod incoming;
pub mod keys;
mod legacy;
pub mod names;
mod outgoing;
pub mod policy;
mod replay;
mod side;

pub use certificate::Certificate;
pub use failure::{Failure, FailureKind};
pub use incoming::{Opened, open};
pub use outgoing::secure;
pub use policy::Policy;
pub use replay::{Marks, Replays};
pub use side::{Environment, Exchange, Role, Side};
