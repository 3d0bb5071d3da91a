//! `<failover>`: the first endpoint that is ready; when it fails, the next.

use crate::group::{Group, Order, members};
use config::endpoint::Failover as Config;
use flow::Compiler;
use flow::endpoint::Endpoint;
use std::sync::Arc;

pub fn compile(
    endpoint: &config::Endpoint,
    group: &Config,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn Endpoint>> {
    let members = members(&group.endpoints, compiler)?;
    // Dynamic: it goes back to the first as soon as that is ready; otherwise it stays with the current one.
    let order = if group.dynamic { |_| Order::First } else { Order::Current };
    let retry = group.definition.retry.clone();
    Some(Arc::new(Group::new(endpoint, "failover", members, order, true, retry, compiler)))
}
