//! The verbs of the command line, a file each.
pub mod backend;
pub mod bench;
pub mod check;
pub mod demo;
pub mod explain;
pub mod jsonpath;
pub mod migrate;
pub mod run;
pub mod schema;
pub mod test;
pub mod validate;
pub mod vault;
pub mod xml;
pub mod xpath;
pub mod xslt;
