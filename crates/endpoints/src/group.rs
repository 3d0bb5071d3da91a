//! What failover and load balance have in common: members, and the way of one message from one to the next.
//!
//! For a message, a member is told from the others by its place in the group, whatever it is: an address, a key, another group;
//! what outlives a message (sessions, load) goes by its name. What a message has seen of a group is in its [`Step`]: a member that is a group itself is asked again until it gives up, and
//! only then the next member is tried.

use crate::leaf::lets_retry;
use crate::name_of;
use config::EndpointKind;
use config::endpoint::{EndpointProperty, PropertyValue, Retry};
use flow::endpoint::{Attempts, Busy, Choice, Endpoint, Leaf, Step};
use flow::fault::code;
use flow::{Code, Compiler, Context, Fault, Identity, ListId};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Members in an order.
pub struct Group {
    /// Its name, or a description.
    pub name: String,
    /// What tells it from others.
    pub identity: Identity,
    /// The members.
    pub members: Vec<Member>,
    order: Order,
    /// Whether another member is tried when one fails.
    failover: bool,
    retry: Retry,
    on_error: Option<ListId>,
}

/// One of a group.
pub struct Member {
    /// What it is called, unique in the group: it stays the same when others come or go, unless they are alike.
    pub name: Arc<str>,
    /// The endpoint.
    pub endpoint: Arc<dyn Endpoint>,
    /// `loadbalance.weight`, at least 1.
    weight: usize,
    /// Messages that are with it; belongs to its identity.
    busy: Arc<AtomicUsize>,
}

/// Which member comes first, and which next.
pub enum Order {
    /// Always the first of all.
    First,
    /// The current one as long as it is ready.
    Current(Arc<Position>),
    /// Each in turn.
    Turns(Arc<Position>),
    /// Each in turn, as many messages as its weight is.
    Weights(Arc<Position>),
    /// The one with the fewest messages for its weight; of several each in turn, by weight.
    LeastBusy(Arc<Position>),
    /// Any that is ready.
    Random,
}

/// Where a group is in its order; belongs to its identity.
#[derive(Debug, Default)]
pub struct Position(AtomicUsize);

impl Member {
    /// A member; without a name it is called as its endpoint describes itself.
    pub fn new(name: Option<&str>, endpoint: Arc<dyn Endpoint>, weight: usize) -> Member {
        let name = Arc::from(name.unwrap_or(endpoint.name()));
        Member { name, endpoint, weight, busy: Arc::default() }
    }

    /// Its load: the messages that are with it, divided by its weight.
    fn load(&self) -> usize {
        self.busy.load(Relaxed).min(1 << 32) * 1_000_000 / self.weight
    }
}

/// The property `loadbalance.weight` of an endpoint, or of the one that its key names; 1 where there is none.
fn weight(written: &config::Endpoint, compiler: &Compiler<'_>) -> usize {
    let of = |properties: &[EndpointProperty]| {
        let property = properties.iter().find(|property| property.name.value == "loadbalance.weight")?;
        let PropertyValue::Literal(text) = &property.value else { return None };
        text.trim().parse().ok().filter(|&weight: &usize| (1..=1_000_000).contains(&weight))
    };
    let named = match &written.kind {
        EndpointKind::Reference(key) => compiler.configuration.endpoints.get(&key.value),
        _ => None,
    };
    of(&written.properties).or_else(|| of(&named?.properties)).unwrap_or(1)
}

/// A name that none of these has: those that are alike are numbered.
fn among(others: &[Member], name: &Arc<str>) -> Arc<str> {
    let numbered = (2..).map(|number| Arc::from(format!("{name} ({number})")));
    let mut names = std::iter::once(Arc::clone(name)).chain(numbered);
    names.find(|name| others.iter().all(|other| other.name != *name)).unwrap_or_else(|| Arc::clone(name))
}

/// Compiles the members of a group.
pub fn members(endpoints: &[config::Endpoint], compiler: &mut Compiler<'_>) -> Option<Vec<Member>> {
    let compiled = endpoints.iter().map(|written| {
        let endpoint = crate::endpoint(written, compiler)?;
        if !matches!(written.kind, EndpointKind::Reference(_)) {
            endpoint.leaves().iter().for_each(|leaf| leaf.joins_group());
        }
        let name = match (&written.name, &written.kind) {
            (Some(name), _) | (None, EndpointKind::Reference(name)) => Some(name.value.as_str()),
            _ => None,
        };
        Some(Member::new(name, endpoint, weight(written, compiler)))
    });
    compiled.collect()
}

impl Group {
    /// A group; `order` is made with the group's own position.
    pub fn new(
        endpoint: &config::Endpoint,
        description: &str,
        mut members: Vec<Member>,
        order: fn(Arc<Position>) -> Order,
        failover: bool,
        retry: Retry,
        compiler: &mut Compiler<'_>,
    ) -> Group {
        let name = name_of(endpoint, description);
        let identity = compiler.identity(&name);
        let states = &compiler.services.states;
        let order = order(states.get(&identity));
        for place in 0..members.len() {
            let (before, from) = members.split_at_mut(place);
            let member = &mut from[0];
            member.name = among(before, &member.name);
            member.busy = states.get(&identity.part(&member.name).part("busy"));
        }
        let on_error = endpoint.on_error.as_ref().and_then(|key| compiler.handler(key));
        Group { name, identity, members, order, failover, retry, on_error }
    }

    /// The member that comes first for a message.
    fn first(&self) -> usize {
        let count = self.members.len().max(1);
        match &self.order {
            Order::First | Order::Random => 0,
            Order::Current(position) => position.0.load(Relaxed) % count,
            Order::Turns(position) => position.0.fetch_add(1, Relaxed) % count,
            Order::Weights(position) | Order::LeastBusy(position) => {
                let total = self.members.iter().map(|member| member.weight).sum::<usize>().max(1);
                let mut turn = position.0.fetch_add(1, Relaxed) % total;
                let has_turn = |member: &Member| match turn.checked_sub(member.weight) {
                    None => true,
                    Some(rest) => {
                        turn = rest;
                        false
                    }
                };
                self.members.iter().position(has_turn).unwrap_or(0)
            }
        }
    }

    /// The next member that this message can go to.
    fn next(&self, step: &Step) -> Option<usize> {
        let count = self.members.len();
        let ring = (0..count).map(|offset| (step.start + offset) % count);
        let mut free =
            ring.filter(|index| !step.tried.contains(index) && self.members[*index].endpoint.is_ready());
        match self.order {
            Order::LeastBusy(_) => free.min_by_key(|index| self.members[*index].load()),
            Order::Random => {
                let free: Vec<usize> = free.collect();
                free.get(random() % free.len().max(1)).copied()
            }
            _ => free.next(),
        }
    }

    /// A message goes to this member.
    fn go(&self, index: usize, member: Box<Step>, step: &mut Step) {
        match &self.order {
            Order::Current(position) => position.0.store(index, Relaxed),
            // Members that were passed over have had their turn: the next message does not meet them again, and the one
            // behind them does not get all of theirs.
            Order::Turns(position) => {
                let offset = (index + self.members.len() - step.start) % self.members.len();
                position.0.fetch_add(offset.saturating_sub(step.passed), Relaxed);
                step.passed = offset;
            }
            Order::LeastBusy(_) => step.busy = Some(Busy::with(&self.members[index].busy)),
            Order::First | Order::Weights(_) | Order::Random => {}
        }
        step.member = Some((index, member));
    }

    /// Sends a message to one member, and to no other; `None` if it is not ready.
    pub fn choose_only(
        &self,
        index: usize,
        context: &mut Context,
        attempts: &Attempts,
        step: &mut Step,
    ) -> Option<Choice> {
        let mut member = Box::<Step>::default();
        let choice = self.members[index].endpoint.choose(context, attempts, &mut member).ok()?;
        step.member = Some((index, member));
        Some(choice)
    }
}

impl Endpoint for Group {
    fn name(&self) -> &str {
        &self.name
    }

    fn choose(&self, context: &mut Context, attempts: &Attempts, step: &mut Step) -> Result<Choice, Fault> {
        if !step.asked {
            step.asked = true;
            step.start = self.first();
        }
        if let Some((index, mut member)) = step.member.take() {
            step.busy = None;
            let endpoint = &self.members[index].endpoint;
            match endpoint.choose(context, attempts, &mut member) {
                Ok(choice) => {
                    self.go(index, member, step);
                    return Ok(choice);
                }
                Err(fault) if !self.failover || !endpoint.lets_retry(&fault) => return Err(fault),
                Err(fault) => step.fault = Some(Box::new(fault)),
            }
            step.tried.push(index);
        }
        while let Some(index) = self.next(step) {
            let mut member = Box::<Step>::default();
            match self.members[index].endpoint.choose(context, attempts, &mut member) {
                Ok(choice) => {
                    self.go(index, member, step);
                    return Ok(choice);
                }
                // Not ready any more, or the message was there already, or it has a fault of its own (a key that names nothing).
                Err(fault) => {
                    if !is_unready(&fault) {
                        step.fault.get_or_insert_with(|| Box::new(fault));
                    }
                    step.tried.push(index);
                }
            }
        }
        // The last member's own fault, unless none was ready at all.
        Err(step.fault.take().map_or_else(|| none_ready(&self.name, &self.leaves()), |fault| *fault))
    }

    fn is_ready(&self) -> bool {
        self.members.iter().any(|member| member.endpoint.is_ready())
    }

    fn lets_retry(&self, fault: &Fault) -> bool {
        lets_retry(&self.retry, fault)
    }

    fn on_error(&self) -> Option<ListId> {
        self.on_error
    }

    fn resends(&self) -> bool {
        self.failover || self.members.iter().any(|member| member.endpoint.resends())
    }

    fn reads_body(&self) -> bool {
        self.members.iter().any(|member| member.endpoint.reads_body())
    }

    fn reads_answer(&self) -> bool {
        self.members.iter().any(|member| member.endpoint.reads_answer())
    }

    fn answered(&self, context: &mut Context, step: &Step) {
        if let Some((index, member)) = &step.member {
            self.members[*index].endpoint.answered(context, member);
        }
    }

    fn leaves(&self) -> Vec<Arc<dyn Leaf>> {
        self.members.iter().flat_map(|member| member.endpoint.leaves()).collect()
    }
}

/// A number that nobody can foresee.
fn random() -> usize {
    RandomState::new().hash_one(0u8) as usize
}

/// Whether a member only says that it is not ready.
fn is_unready(fault: &Fault) -> bool {
    matches!(
        fault.code,
        Code::Number(
            code::ENDPOINT_NOT_READY | code::WSDL_NOT_READY | code::LB_NONE_READY | code::SESSION_NOT_READY
        )
    )
}

/// The fault of a group without a member that is ready.
pub fn none_ready(name: &str, leaves: &[Arc<dyn Leaf>]) -> Fault {
    let ready_in = leaves.iter().filter_map(|leaf| leaf.ready_in()).min();
    let message = format!("no endpoint of the group {name} is ready");
    Fault::with_code(code::LB_NONE_READY, message).ready_in(ready_in)
}
