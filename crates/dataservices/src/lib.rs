//! Data services: queries of databases as operations of a service and as resources.
//!
//! ```text
//! config::DataService -> compile -> plan (Service: queries with their statements, results as plans of output)
//! request: message -> Ask (which operation, with which parameters)
//! run:     Ask -> statements on leases of crate sql -> rows
//! output:  rows -> XML, RDF (rdf) or JSON, written as they come into a Pipe
//! service: the single step of the service; what is not ready of a response is sent as a stream that drives the run
//! event:   what queries cause: messages to those who have subscribed
//! call:    `dataServiceCall`, the same without HTTP
//! odata:   the tables of a database without any query, as OData
//! ```
//!
//! A request is one future from its parameters to the last byte of its response. No task is spawned for it: until the first bytes are made the step
//! polls it, then the body of the response does, as the client reads it. Dropping it closes the connection of the database.
//!
//! Rows are written as the database sends them, and the database waits while 64 KiB wait for the client. Where each row runs another query
//! (`call-query` in a result), the rows are collected first, within `limits.held`: a request has one connection for each data source, so a nested
//! query sees the transaction of the outer one, and no pool can deadlock with itself.

mod call;
mod compile;
mod describe;
mod event;
mod fault;
mod odata;
mod output;
mod plan;
mod rdf;
mod request;
mod run;
mod service;
mod sheet;
mod table;
mod template;
mod value;

use flow::Registry;

/// Lets a registry compile data services and `dataServiceCall`.
pub fn extend(registry: &mut Registry) {
    registry.data = Some(compile::compile);
    registry.definitions.push(&call::DEFINITION);
}
