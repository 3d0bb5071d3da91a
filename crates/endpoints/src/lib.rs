//! One file per kind of endpoint, and their state machine
pub mod uri_template;
