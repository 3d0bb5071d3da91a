//! The mediators, a file each.
//!
//! A file holds the definition (from which come parser, lint and reference page), the parsing, what the mediator
//! needs of the body, its execution and its tests. A new mediator is a new file and one line in [`registry`].

mod address;
mod aggregate;
mod branches;
mod builder;
mod cache;
mod call;
mod call_template;
mod callout;
mod clone;
mod condition;
mod data_mapper;
pub mod database;
mod dblookup;
mod dbreport;
mod direction;
mod drop;
mod enqueue;
mod enrich;
mod entry_cache;
mod event;
mod eventing;
mod failing;
mod fast_xslt;
mod filter;
mod foreach;
mod free_marker;
mod header;
mod iterate;
mod json_transform;
mod log;
mod loopback;
mod makefault;
mod ntlm;
mod oauth_service;
mod openapi;
mod payload_factory;
mod property;
mod property_group;
mod publish_event;
mod resources;
mod respond;
mod rewrite;
mod router;
mod sampler;
mod scatter_gather;
mod script;
mod security;
mod send;
mod sequence;
mod steps;
mod store;
mod stylesheet;
mod support;
mod switch;
mod target;
mod throttle;
mod throw_error;
mod transaction;
mod transforming;
mod unsupported;
mod validate;
mod variable;
mod written;
mod xml_value;
mod xslt;

pub use event::publish;
pub use xslt::of_results::ResultStylesheet;

use flow::EndpointFactory;
use flow::{Definition, Registry};

/// All mediators that can be executed.
#[rustfmt::skip] // one line each
const DEFINITIONS: &[&Definition] = &[
    &aggregate::DEFINITION,
    &builder::DEFINITION,
    &cache::DEFINITION,
    &call::DEFINITION,
    &call_template::DEFINITION,
    &callout::DEFINITION,
    &clone::DEFINITION,
    &data_mapper::DEFINITION,
    &dblookup::DEFINITION,
    &dbreport::DEFINITION,
    &direction::IN,
    &direction::OUT,
    &direction::RULES,
    &drop::DEFINITION,
    &enqueue::DEFINITION,
    &enrich::DEFINITION,
    &event::DEFINITION,
    &event::PUBLISHER,
    &fast_xslt::DEFINITION,
    &filter::DEFINITION,
    &foreach::DEFINITION,
    &header::DEFINITION,
    &iterate::DEFINITION,
    &json_transform::DEFINITION,
    &log::DEFINITION,
    &loopback::DEFINITION,
    &makefault::DEFINITION,
    &ntlm::DEFINITION,
    &oauth_service::DEFINITION,
    &payload_factory::DEFINITION,
    &property::DEFINITION,
    &property_group::DEFINITION,
    &publish_event::BAM,
    &publish_event::DEFINITION,
    &respond::DEFINITION,
    &rewrite::DEFINITION,
    &router::CONDITIONAL,
    &router::ROUTER,
    &sampler::DEFINITION,
    &script::DEFINITION,
    &scatter_gather::DEFINITION,
    &send::DEFINITION,
    &sequence::DEFINITION,
    &store::DEFINITION,
    &switch::DEFINITION,
    &throttle::DEFINITION,
    &throw_error::DEFINITION,
    &validate::DEFINITION,
    &transaction::DEFINITION,
    &variable::DEFINITION,
    &xslt::DEFINITION,
];

/// The registry that configurations are compiled with.
pub fn registry(endpoints: EndpointFactory) -> Registry {
    Registry {
        definitions: DEFINITIONS.to_vec(),
        unsupported: unsupported::UNSUPPORTED.to_vec(),
        endpoints,
        validation: Some(flow::Validation {
            definition: openapi::compile,
            service: security::service,
            endpoint: security::endpoint,
        }),
        events: Some(eventing::compile),
        stores: Some(database::message_store),
        data: None,
    }
}
