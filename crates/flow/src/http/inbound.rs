//! What comes through inbound endpoints, which listen on ports of their own.
//!
//! The crate with the listeners opens the ports; what comes through one is given to the endpoint that has its
//! port in the plan in force ([`Through`]). So a reload changes what a port means without a connection noticing.
//!
//! APIs that are bound to the endpoint come first. Then its filter decides: what it matches goes the way of other requests, what it does not
//! match to `main`; without a filter, all goes through the sequence of the endpoint.

use crate::http::dispatch::Bus;
use crate::http::routing::{self, Dispatched};
use crate::http::websocket;
use crate::runtime::context::Context;
use crate::runtime::inbound::Filter;
use crate::runtime::plan::Plan;
use message::StandardHeader;
use std::sync::Arc;
use transport::{ConnectionInfo, Cut, Handler, Refused, Request, Response};

pub use crate::runtime::inbound::{InboundEndpoint, Store, Stores, Tls};

/// Chooses who serves a request that came through an inbound endpoint and is for no proxy service.
pub(crate) fn dispatch(plan: &Plan, context: &mut Context, index: usize) -> Dispatched {
    let endpoint = &plan.inbound_endpoints[index];
    match routing::dispatch(plan, context, &endpoint.name) {
        Dispatched::Main => {}
        found => return found,
    }
    match &endpoint.filter {
        Filter::None => Dispatched::Inbound(index),
        Filter::Pattern(pattern) if pattern.matches(&context.inbound.target) != Ok(true) => Dispatched::Main,
        Filter::Pattern(_) => routing::dispatch(plan, context, routing::DEFAULT_LISTENER),
        Filter::Apis => match routing::dispatch(plan, context, routing::DEFAULT_LISTENER) {
            Dispatched::Main => Dispatched::Inbound(index),
            found => found,
        },
    }
}

/// Takes what comes through one port.
pub struct Through {
    /// The bus that serves it.
    pub bus: Arc<Bus>,
    /// The port.
    pub port: u16,
}

impl Handler for Through {
    async fn handle(&self, request: Request, peer: &ConnectionInfo) -> Response {
        match request.head.headers.has_any(StandardHeader::Upgrade.bit()) {
            // Boxed: few requests are such, and all have the room of the largest.
            true => Box::pin(websocket::open(&self.bus, self.port, request, peer)).await,
            false => self.bus.answer(request, peer, Some(self.port), None).await,
        }
    }

    fn cut(&self, cut: &Cut<'_>) {
        self.bus.cut(cut);
    }

    fn refused(&self, refused: &Refused<'_>) {
        self.bus.refused(refused);
    }
}
