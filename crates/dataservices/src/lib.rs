//! Data services: queries of databases as operations of a service and as resources.
//!
//! ```text
//! config::DataService -> compile -> plan (Service: queries with their statements, results as plans of output)
//! request: message -> Ask (which operation, with which parameters)
//! run:     Ask -> statements on leases of crate sql -> rows
//! output:  rows -> XML, RDF (rdf) or JSON, written as they come into a Pipe
//! service: the one step of the service; what of an answer is not there at once leaves as a stream that drives the run
//! call:    `dataServiceCall`, the same without HTTP
//! odata:   the tables of a database without any query, as OData
//! ```
//!
//! A request is one future from its parameters to the last byte of its answer. Nothing is spawned for it: while the first bytes are made the step
//! polls it, then the body of the answer does, as the client takes bytes. Whoever drops it closes the connection of the database.
//!
//! Rows are written as the database sends them, and the database waits while 64 KiB wait for the client. Where each row asks another query
//! (`call-query` in a result), the rows are collected first, within `limits.held`: a request has one connection for each data source, so a nested
//! query sees what the outer one saw, and no pool can lock itself up.

mod call;
mod compile;
mod describe;
mod fault;
mod odata;
mod output;
mod plan;
mod rdf;
mod request;
mod run;
mod service;
mod table;
mod template;
mod value;

use flow::Registry;

/// Lets a registry compile data services and `dataServiceCall`.
pub fn extend(registry: &mut Registry) {
    registry.data = Some(compile::compile);
    registry.definitions.push(&call::DEFINITION);
}
