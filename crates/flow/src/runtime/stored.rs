//! Messages on their way into a store and out of it.

use crate::runtime::context::{Addressing, Context};
use crate::runtime::fault::Fault;
use crate::runtime::identifier::next_id;
use crate::runtime::plan::Plan;
use crate::runtime::progress::Waits;
use crate::runtime::request::{Client, Inbound};
use crate::runtime::services::Services;
use message::{Body, Headers, Kind, MediaType, Method, Payload};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Instant;
use stores::Message;

/// A stored message has no client any more.
const NOBODY: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));

impl Inbound {
    /// Of a message that came over no connection.
    pub(crate) fn of_nobody(method: Method, target: String, client: Client, headers: &Headers) -> Inbound {
        Inbound {
            method,
            service_length: target.len(),
            target,
            absolute: None,
            secure: false,
            tls: None,
            peer: NOBODY,
            local: NOBODY,
            host: "localhost".into(),
            content_type: headers.get("Content-Type").map(Arc::from),
            client,
            received: Instant::now(),
            through: None,
        }
    }
}

impl Context {
    /// The message as a store keeps it. The body must have been received.
    ///
    /// # Errors
    /// A changed payload cannot be written in its form.
    pub fn to_stored(&mut self) -> Result<Message, Fault> {
        // What is written stays with the copy: the flow may go on with its own view.
        let mut copy = self.branch();
        let (body, _) = copy.freeze()?;
        // The flow that takes it out needs the type to read it, whatever headers a step removed.
        if !body.is_empty()
            && !copy.headers.contains("Content-Type")
            && let Some(label) = copy.read_as()
        {
            copy.headers.set("Content-Type", label);
        }
        Ok(Message {
            id: next_id(),
            message_id: self.message_id(),
            method: self.inbound.method.clone(),
            target: self.inbound.target.clone(),
            soap: match self.inbound.client {
                Client::Soap(version) => Some(version),
                Client::Rest => None,
            },
            to: self.addressing.to.clone(),
            action: self.addressing.action.clone(),
            soap_action: self.soap_action.clone(),
            headers: std::mem::take(&mut copy.headers),
            body,
            properties: std::mem::take(&mut copy.properties),
            axis2: std::mem::take(&mut copy.axis2),
        })
    }

    /// The media type that a message was read as: the one that came with it, or that of its kind.
    pub(crate) fn read_as(&self) -> Option<String> {
        let reading = self.payload.reading();
        let inbound = self.inbound.content_type.as_deref().filter(|_| self.request_headers);
        if let Some(content_type) =
            inbound.filter(|content_type| MediaType::parse(content_type).kind() == reading.kind)
        {
            return Some(content_type.to_owned());
        }
        let essence = match reading.kind {
            Kind::Json => "application/json",
            Kind::Xml => "application/xml",
            Kind::Soap11 => "text/xml",
            Kind::Soap12 => "application/soap+xml",
            _ => return None,
        };
        Some(match reading.charset {
            Some(charset) => format!("{essence}; charset={}", charset.name()),
            None => essence.to_owned(),
        })
    }

    /// A message out of a store, for the plan in force. It begins no flow by itself.
    pub fn of_stored(plan: Arc<Plan>, services: Arc<Services>, message: &Message) -> Box<Context> {
        let headers = message.headers.clone();
        let client = message.soap.map_or(Client::Rest, Client::Soap);
        let inbound = Inbound::of_nobody(message.method.clone(), message.target.clone(), client, &headers);
        let payload = Payload::arrived(Body::Bytes(message.body.clone()), &headers, client == Client::Rest);
        let mut context = Box::new(Context::new(plan, services, Arc::new(inbound), headers, payload));
        context.addressing =
            Addressing { to: message.to.clone(), action: message.action.clone(), ..Addressing::default() };
        context.soap_action = message.soap_action.clone();
        context.properties = message.properties.clone();
        context.axis2 = message.axis2.clone();
        context.progress.client = Waits::Nobody;
        context
    }
}
