//! `<loadbalance>`: one of several in turn; with failover, the next one when it fails.

use crate::failover::{Child, children, exhausted, forbidden};
use crate::name_of;
use config::endpoint::{Algorithm, LoadBalance as Config};
use flow::endpoint::{Attempt, Choice, Endpoint, Leaf};
use flow::{Compiler, Context, Fault};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

struct LoadBalance {
    name: String,
    children: Vec<Child>,
    failover: bool,
    next: AtomicUsize,
}

pub fn compile(
    endpoint: &config::Endpoint,
    group: &Config,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn Endpoint>> {
    if !group.members.is_empty()
        || group.session.is_some()
        || !matches!(group.algorithm, Algorithm::RoundRobin)
    {
        let message = "load balancing over members, with sessions or by another algorithm than round robin is not executable yet";
        compiler.error("unsupported-endpoint", message, endpoint.span, "list endpoints, without a session");
        return None;
    }
    let children = children(&group.endpoints, compiler)?;
    Some(Arc::new(LoadBalance {
        name: name_of(endpoint, "loadbalance"),
        children,
        failover: group.failover,
        next: AtomicUsize::new(0),
    }))
}

impl Endpoint for LoadBalance {
    fn name(&self) -> &str {
        &self.name
    }

    fn choose(&self, context: &mut Context, failed: &[Attempt]) -> Result<Choice, Fault> {
        if let Some(attempt) = failed.last().filter(|_| !self.failover) {
            return Err(attempt.fault.clone());
        }
        if let Some(fault) = forbidden(&self.children, failed) {
            return Err(fault);
        }
        let count = self.children.len();
        for _ in 0..count {
            let child = &self.children[self.next.fetch_add(1, Ordering::Relaxed) % count];
            if failed.iter().any(|attempt| child.made(attempt)) || !child.is_ready() {
                continue;
            }
            return child.endpoint.choose(context, &[]);
        }
        Err(exhausted(&self.name, failed))
    }

    fn resends(&self) -> bool {
        self.failover
    }

    fn leaves(&self) -> Vec<Arc<dyn Leaf>> {
        self.children.iter().flat_map(|child| child.endpoint.leaves()).collect()
    }
}
