//! `<failover>`: the first endpoint that is ready; when it fails, the next.

use crate::name_of;
use config::endpoint::{Failover as Config, Retry};
use flow::endpoint::{Attempt, Choice, Endpoint, Leaf};
use flow::fault::code;
use flow::{Code, Compiler, Context, Fault};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Failover {
    name: String,
    children: Vec<Child>,
    /// Goes back to the first as soon as it is ready; otherwise sticks to the current one.
    dynamic: bool,
    current: AtomicUsize,
}

/// A member of a group, with the codes after which the group may try another.
pub struct Child {
    /// The member.
    pub endpoint: Arc<dyn Endpoint>,
    retry: Retry,
}

pub fn compile(
    endpoint: &config::Endpoint,
    group: &Config,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn Endpoint>> {
    let children = children(&group.endpoints, compiler)?;
    Some(Arc::new(Failover {
        name: name_of(endpoint, "failover"),
        children,
        dynamic: group.dynamic,
        current: AtomicUsize::new(0),
    }))
}

/// Compiles the members of a group.
pub fn children(endpoints: &[config::Endpoint], compiler: &mut Compiler<'_>) -> Option<Vec<Child>> {
    endpoints
        .iter()
        .map(|endpoint| {
            let retry = match &endpoint.kind {
                config::EndpointKind::Address(kind) => kind.definition.retry.clone(),
                config::EndpointKind::Http(kind) => kind.definition.retry.clone(),
                config::EndpointKind::Default(definition) => definition.retry.clone(),
                _ => Retry::default(),
            };
            Some(Child { endpoint: crate::endpoint(endpoint, compiler)?, retry })
        })
        .collect()
}

impl Child {
    /// Whether one of the member's leaves is ready.
    pub fn is_ready(&self) -> bool {
        let leaves = self.endpoint.leaves();
        leaves.is_empty() || leaves.iter().any(|leaf| leaf.is_ready())
    }

    /// Whether a failed attempt was one of this member's.
    pub fn made(&self, attempt: &Attempt) -> bool {
        self.endpoint.leaves().iter().any(|leaf| Arc::ptr_eq(leaf, &attempt.leaf))
    }

    /// Whether the group may try another member after this failure.
    pub fn retries_after(&self, fault: &Fault) -> bool {
        let Code::Number(number) = fault.code else { return false };
        let number = i64::from(number);
        !self.retry.disabled_error_codes.contains(&number)
            && (self.retry.enabled_error_codes.is_empty() || self.retry.enabled_error_codes.contains(&number))
    }
}

/// The fault of a group after its members failed: the last one's own, or 303000 if none was ready at all.
pub fn exhausted(name: &str, failed: &[Attempt]) -> Fault {
    match failed.last() {
        Some(attempt) => attempt.fault.clone(),
        None => Fault::with_code(code::LB_NONE_READY, format!("no endpoint of the group {name} is ready")),
    }
}

/// Whether the last failure forbids another attempt.
pub fn forbidden(children: &[Child], failed: &[Attempt]) -> Option<Fault> {
    let last = failed.last()?;
    let child = children.iter().find(|child| child.made(last))?;
    (!child.retries_after(&last.fault)).then(|| last.fault.clone())
}

impl Endpoint for Failover {
    fn name(&self) -> &str {
        &self.name
    }

    fn choose(&self, context: &mut Context, failed: &[Attempt]) -> Result<Choice, Fault> {
        if let Some(fault) = forbidden(&self.children, failed) {
            return Err(fault);
        }
        let count = self.children.len();
        let start = if self.dynamic { 0 } else { self.current.load(Ordering::Relaxed) % count.max(1) };
        for offset in 0..count {
            let index = (start + offset) % count;
            let child = &self.children[index];
            if failed.iter().any(|attempt| child.made(attempt)) || !child.is_ready() {
                continue;
            }
            self.current.store(index, Ordering::Relaxed);
            return child.endpoint.choose(context, &[]);
        }
        Err(exhausted(&self.name, failed))
    }

    fn resends(&self) -> bool {
        true
    }

    fn leaves(&self) -> Vec<Arc<dyn Leaf>> {
        self.children.iter().flat_map(|child| child.endpoint.leaves()).collect()
    }
}
