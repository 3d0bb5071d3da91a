//! The HTTP side: from a request to its flow, and from the message that answers to the response.

pub mod access;
mod callback;
mod cors;
pub mod dispatch;
mod guard;
mod handlers;
pub mod inbound;
mod inquiries;
mod ldap;
mod local;
pub mod openapi;
pub mod respond;
mod rooms;
mod routing;
mod websocket;
mod wsdl;
