//! Asks servers whether certificates are revoked, by the Online Certificate Status Protocol (RFC 6960, in the profile of RFC 5019).
//!
//! * [`path`] finds out who issued a certificate, which is what a question is about;
//! * [`request`] writes questions, [`response`] reads answers and checks who signed them;
//! * [`Servers`] asks: within a deadline, each certificate once for as long as its answer holds.
//!
//! Certificates are read by x509-parser, paths and signatures are checked by webpki.

pub mod path;
pub mod request;
pub mod response;
mod servers;
#[cfg(test)]
mod tests;

pub use servers::{Reach, Servers, Settings};
