//! Endpoints that cannot send here: `class`, the dynamic load balancers, load balancing by a Java class. Loading warns, and messages
//! that come to one fault: the other flows of the artifact do not need it.

use flow::endpoint::{Attempts, Choice, Endpoint, Leaf, Step};
use flow::{Compiler, Context, Fault, ListId};
use std::sync::Arc;

struct Unsupported {
    name: String,
    on_error: Option<ListId>,
    /// Why it cannot send.
    why: String,
}

/// An endpoint whose messages fault with `why`; `instead` says what would run.
pub fn compile(
    endpoint: &config::Endpoint,
    why: String,
    instead: &str,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn Endpoint>> {
    let message = format!("{why}: messages that come here fault");
    compiler.warning("unsupported-endpoint", message, endpoint.span, instead);
    let on_error = endpoint.on_error.as_ref().and_then(|key| compiler.handler(key));
    Some(Arc::new(Unsupported { name: crate::name_of(endpoint, "endpoint"), on_error, why }))
}

impl Endpoint for Unsupported {
    fn name(&self) -> &str {
        &self.name
    }

    fn choose(&self, _: &mut Context, _: &Attempts, _: &mut Step) -> Result<Choice, Fault> {
        Err(Fault::new(format!("the endpoint {} cannot be used: {}", self.name, self.why)))
    }

    /// Groups go on to their other members.
    fn is_ready(&self) -> bool {
        false
    }

    fn on_error(&self) -> Option<ListId> {
        self.on_error
    }

    fn leaves(&self) -> Vec<Arc<dyn Leaf>> {
        Vec::new()
    }
}
