//! `<loadbalance>`: one of several in turn; with failover, the next one when it fails; with a session, the same one for
//! all messages of a client.

use crate::group::{Group, Member, Order, members};
use crate::member;
use crate::session::SessionBalance;
use crate::unsupported;
use config::endpoint::{Algorithm, LoadBalance as Config};
use flow::Compiler;
use flow::endpoint::Endpoint;
use std::sync::Arc;

pub fn compile(
    endpoint: &config::Endpoint,
    group: &Config,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn Endpoint>> {
    let order: fn(_) -> _ = match &group.algorithm {
        Algorithm::RoundRobin => Order::Turns,
        Algorithm::WeightedRoundRobin => Order::Weights,
        Algorithm::WeightedLeastConnections => Order::LeastBusy,
        Algorithm::Random => |_| Order::Random,
        Algorithm::Class(class) => {
            let why =
                format!("the algorithm `{class}` of this loadbalance is a Java class, which cannot run here");
            let instead =
                "there are RoundRobin, WeightedRoundRobin, WeightedRRLCAlgorithm and RandomAlgorithm";
            return unsupported::compile(endpoint, why, instead, compiler);
        }
    };
    let mut members = members(&group.endpoints, compiler)?;
    for written in &group.members {
        let made = member::compile(written, endpoint, &group.definition, compiler)?;
        members.push(Member::new(None, made, 1));
    }
    let retry = group.definition.retry.clone();
    let made = Group::new(endpoint, "loadbalance", members, order, group.failover, retry, compiler);
    Some(match &group.session {
        None => Arc::new(made),
        Some(session) => Arc::new(SessionBalance::new(made, session, compiler)),
    })
}
