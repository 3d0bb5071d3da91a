//! `<recipientlist>`: a copy to each of several endpoints.

use crate::name_of;
use config::endpoint::{RecipientList as Config, Recipients};
use flow::endpoint::{Attempt, Choice, Endpoint, Leaf};
use flow::{Compiler, Context, Fault};
use std::sync::Arc;

struct RecipientList {
    name: String,
    endpoints: Vec<Arc<dyn Endpoint>>,
}

pub fn compile(
    endpoint: &config::Endpoint,
    group: &Config,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn Endpoint>> {
    let Recipients::Endpoints(children) = &group.recipients else {
        let message = "recipient lists of members or of computed addresses are not executable yet";
        compiler.error("unsupported-endpoint", message, endpoint.span, "list endpoints");
        return None;
    };
    let endpoints = children.iter().map(|child| crate::endpoint(child, compiler)).collect::<Option<_>>()?;
    Some(Arc::new(RecipientList { name: name_of(endpoint, "recipientlist"), endpoints }))
}

impl Endpoint for RecipientList {
    fn name(&self) -> &str {
        &self.name
    }

    fn choose(&self, _context: &mut Context, _failed: &[Attempt]) -> Result<Choice, Fault> {
        Ok(Choice::Everyone(self.endpoints.clone()))
    }

    fn leaves(&self) -> Vec<Arc<dyn Leaf>> {
        self.endpoints.iter().flat_map(|endpoint| endpoint.leaves()).collect()
    }
}
