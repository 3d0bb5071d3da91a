//! The operations of connectors, under the names that the connectors gave them: `http.get`, `file.read`, `CSV.csvToJson`.
//!
//! An operation is a mediator. Its parameters are its child elements ([`parameter`]), it works on a connection that
//! a local entry describes ([`connection`]), and its result goes into the body or a variable ([`response`]). One file has
//! the operations of one connector. An operation that no file has is compiled too ([`absent`]): loading reports it, and a message
//! that comes to it faults.

mod absent;
mod blocking;
mod connection;
mod csv;
mod email;
mod failure;
mod file;
mod http;
mod library;
mod operation;
mod parameter;
mod pool;
mod redis;
mod response;
mod result;
mod utility;

use flow::{Definition, Registry};

/// All operations that can be executed.
pub fn definitions() -> impl Iterator<Item = &'static Definition> {
    http::OPERATIONS
        .iter()
        .chain(file::OPERATIONS)
        .chain(file::FILECONNECTOR)
        .chain(csv::OPERATIONS)
        .chain(email::OPERATIONS)
        .chain(redis::OPERATIONS)
        .chain(utility::OPERATIONS)
        .copied()
}

/// Adds the operations to what a configuration is compiled with.
pub fn extend(registry: &mut Registry) {
    registry.definitions.extend(definitions());
    registry.definitions.push(&absent::DEFINITION);
}
