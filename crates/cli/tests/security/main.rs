//! Who is let in, and what is kept secret: WS-Security, access profiles, the vault.
#![allow(clippy::unwrap_used)] // helpers of tests

#[path = "../support/mod.rs"]
mod support;

#[path = "../../../security/tests/interop/mod.rs"]
mod interop;
#[path = "../../../security/tests/common/policies.rs"]
mod policies;

#[path = "../../../revocation/tests/authority/mod.rs"]
mod authority;

mod access;
mod ldap;
mod ocsp;
mod roles;
mod secrets;
mod wss;
mod wss4j;
