//! `<endpoint key="…">` and `key-expression`: another endpoint, looked up for every message.

use crate::name_of;
use flow::endpoint::MOST_ALIASES;
use flow::endpoint::{Attempts, Choice, Endpoint, Leaf, Step};
use flow::reference::EndpointRef;
use flow::{Compiler, Context, Fault, Need};
use std::sync::Arc;

struct Indirect {
    name: String,
    reference: Arc<EndpointRef>,
}

pub fn compile(endpoint: &config::Endpoint, compiler: &mut Compiler<'_>) -> Option<Arc<dyn Endpoint>> {
    let reference = compiler.endpoint_of(endpoint)?;
    if let EndpointRef::Known(endpoint_behind) = &*reference
        && endpoint.name.is_none()
    {
        return Some(Arc::clone(endpoint_behind));
    }
    Some(Arc::new(Indirect { name: name_of(endpoint, "reference"), reference }))
}

impl Indirect {
    /// The endpoint, where the configuration says it.
    fn fixed(&self) -> Option<&Arc<dyn Endpoint>> {
        match &*self.reference {
            EndpointRef::Known(endpoint) => Some(endpoint),
            EndpointRef::Missing(_) | EndpointRef::Dynamic(_) => None,
        }
    }
}

impl Endpoint for Indirect {
    fn name(&self) -> &str {
        &self.name
    }

    /// As a member of a group; elsewhere the endpoint behind it is asked itself ([`Endpoint::stands_for`]).
    fn choose(&self, context: &mut Context, attempts: &Attempts, step: &mut Step) -> Result<Choice, Fault> {
        let target = match &step.target {
            Some(target) => Arc::clone(target),
            None => step.target.insert(self.target(context)?).clone(),
        };
        let mut inner = step.member.take().unwrap_or_default();
        let choice = target.choose(context, attempts, &mut inner.1);
        step.member = Some(inner);
        choice
    }

    fn is_ready(&self) -> bool {
        match &*self.reference {
            EndpointRef::Known(endpoint) => endpoint.is_ready(),
            EndpointRef::Dynamic(_) => true,
            EndpointRef::Missing(_) => false,
        }
    }

    fn lets_retry(&self, fault: &Fault) -> bool {
        self.fixed().is_none_or(|endpoint| endpoint.lets_retry(fault))
    }

    fn stands_for(&self, context: &mut Context) -> Result<Option<Arc<dyn Endpoint>>, Fault> {
        self.reference.resolve(context).map(Some)
    }

    fn resends(&self) -> bool {
        match &*self.reference {
            EndpointRef::Known(endpoint) => endpoint.resends(),
            // It may turn out to be a group.
            EndpointRef::Dynamic(_) => true,
            EndpointRef::Missing(_) => false,
        }
    }

    fn reads_body(&self) -> bool {
        self.reference.need() >= Need::Prefix || self.fixed().is_some_and(|endpoint| endpoint.reads_body())
    }

    fn reads_answer(&self) -> bool {
        self.fixed().is_some_and(|endpoint| endpoint.reads_answer())
    }

    fn answered(&self, context: &mut Context, step: &Step) {
        if let (Some(target), Some((_, inner))) = (&step.target, &step.member) {
            target.answered(context, inner);
        }
    }

    fn leaves(&self) -> Vec<Arc<dyn Leaf>> {
        self.fixed().map(|endpoint| endpoint.leaves()).unwrap_or_default()
    }
}

impl Indirect {
    /// What it stands for, through all endpoints that stand for others again.
    fn target(&self, context: &mut Context) -> Result<Arc<dyn Endpoint>, Fault> {
        let mut target = self.reference.resolve(context)?;
        for _ in 0..MOST_ALIASES {
            match target.stands_for(context)? {
                Some(next) => target = next,
                None => return Ok(target),
            }
        }
        Err(flow::endpoint::circle(&self.name))
    }
}
