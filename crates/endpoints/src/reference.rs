//! `<endpoint key="…">` and `key-expression`: another endpoint, looked up for every message.

use crate::name_of;
use flow::endpoint::{Attempt, Choice, Endpoint, EndpointRef, Leaf};
use flow::{Compiler, Context, Fault};
use std::sync::Arc;

struct Indirect {
    name: String,
    reference: Arc<EndpointRef>,
}

pub fn compile(endpoint: &config::Endpoint, compiler: &mut Compiler<'_>) -> Option<Arc<dyn Endpoint>> {
    let reference = compiler.endpoint_of(endpoint)?;
    if let EndpointRef::Known(known) = &*reference
        && endpoint.name.is_none()
    {
        return Some(Arc::clone(known));
    }
    Some(Arc::new(Indirect { name: name_of(endpoint, "reference"), reference }))
}

impl Endpoint for Indirect {
    fn name(&self) -> &str {
        &self.name
    }

    fn choose(&self, context: &mut Context, failed: &[Attempt]) -> Result<Choice, Fault> {
        self.reference.resolve(context)?.choose(context, failed)
    }

    fn leaves(&self) -> Vec<Arc<dyn Leaf>> {
        match &*self.reference {
            EndpointRef::Known(endpoint) => endpoint.leaves(),
            _ => Vec::new(),
        }
    }
}
