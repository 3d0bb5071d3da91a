//! `<session>` around a load balance: all messages of a session go to the member that got the first one.
//!
//! What identifies a session: a cookie of a backend (`http`), the `ServiceGroupId` of Axis2 (`soap`), or a header that
//! the client chooses itself (`simpleClientSession`). Only the first message of a session may fail over.

use crate::group::Group;
use config::endpoint::{Session, SessionKind};
use flow::endpoint::{Attempts, Choice, Endpoint, Leaf, Step};
use flow::fault::code;
use flow::{Compiler, Context, Fault, ListId, lock};
use message::Headers;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use xml::NodeKind;

/// Longest name of a session, in bytes: clients choose it.
const LONGEST: usize = 256;

/// Most sessions of one endpoint; beyond, those are forgotten that were not used for long.
const MOST: usize = 100_000;

/// So many cookies of one message are looked up.
const MOST_COOKIES: usize = 64;

const SYNAPSE: &str = "http://ws.apache.org/ns/synapse";
const AXIS2: &str = "http://ws.apache.org/namespaces/axis2";

/// A group whose members have sessions.
pub struct SessionBalance {
    group: Group,
    kind: SessionKind,
    timeout: Duration,
    table: Arc<Table>,
}

/// So many of the oldest sessions a new one looks at, for one that makes room.
const LOOKS: usize = 8;

/// The sessions of one endpoint; belongs to its identity.
#[derive(Debug, Default)]
struct Table(Mutex<Sessions>);

#[derive(Debug, Default)]
struct Sessions {
    bound: HashMap<Arc<str>, Bound>,
    /// All of them in the order in which they began, or were last looked at, with their ends as they were then.
    order: VecDeque<(Arc<str>, Instant)>,
}

#[derive(Debug)]
struct Bound {
    /// The name of the member.
    member: Arc<str>,
    until: Instant,
}

impl Sessions {
    fn bind(&mut self, session: Arc<str>, member: Arc<str>, until: Instant, now: Instant) {
        if let Some(bound) = self.bound.get_mut(&session) {
            *bound = Bound { member, until };
            return;
        }
        self.tidy(now);
        self.order.push_back((Arc::clone(&session), until));
        self.bound.insert(session, Bound { member, until });
    }

    /// Forgets some of those that have ended, and where there are too many at least one: the first one that was not used since it
    /// was last looked at.
    fn tidy(&mut self, now: Instant) {
        for look in 1..=LOOKS {
            let full = self.bound.len() >= MOST;
            let Some((session, seen)) = self.order.front().filter(|(_, seen)| full || *seen <= now) else {
                return;
            };
            let (session, seen) = (Arc::clone(session), *seen);
            self.order.pop_front();
            match self.bound.get(&session) {
                Some(bound) if bound.until > now && (!full || bound.until > seen && look < LOOKS) => {
                    self.order.push_back((session, bound.until));
                }
                _ => drop(self.bound.remove(&session)),
            }
        }
    }
}

impl SessionBalance {
    /// A group with sessions.
    pub fn new(group: Group, session: &Session, compiler: &Compiler<'_>) -> SessionBalance {
        let timeout = session.timeout.filter(|timeout| !timeout.is_zero());
        let timeout = timeout.unwrap_or(compiler.services.settings.session_timeout);
        let table = compiler.services.states.get(&group.identity);
        SessionBalance { group, kind: session.kind, timeout, table }
    }

    /// What may identify the session of a message, of an answer too. Of several cookies with such a name the one that a member set
    /// does; which that is, the table of what is bound says.
    fn ids(&self, context: &mut Context, is_response: bool) -> Vec<Arc<str>> {
        let id = match self.kind {
            SessionKind::Http if is_response => return cookies(&context.headers, "Set-Cookie"),
            SessionKind::Http => return cookies(&context.headers, "Cookie"),
            SessionKind::Soap => header(context, AXIS2, "ServiceGroupId"),
            SessionKind::SimpleClient => header(context, SYNAPSE, "ClientID"),
        };
        id.into_iter().filter(|id| id.len() <= LONGEST).collect()
    }

    /// The member that a session is bound to.
    fn bound(&self, session: &str) -> Option<usize> {
        let now = transport::clock::now();
        let mut table = lock(&self.table.0);
        let bound = table.bound.get_mut(session).filter(|bound| bound.until > now)?;
        bound.until = now.checked_add(self.timeout)?;
        self.group.members.iter().position(|member| member.name == bound.member)
    }

    fn bind(&self, session: Arc<str>, member: usize) {
        let now = transport::clock::now();
        let Some(until) = now.checked_add(self.timeout) else { return };
        let member = Arc::clone(&self.group.members[member].name);
        lock(&self.table.0).bind(session, member, until, now);
    }
}

/// The cookies of a header that may be those of a session, each its name and value.
fn cookies(headers: &Headers, field: &str) -> Vec<Arc<str>> {
    let values = headers.get_all(field).filter_map(|value| std::str::from_utf8(value).ok());
    // Of a cookie that is set only the first part is it; the others are its attributes.
    let most = if field == "Set-Cookie" { 1 } else { usize::MAX };
    let cookies = values.flat_map(|value| value.split(';').take(most)).map(str::trim);
    let is_session = |cookie: &&str| {
        let name = cookie.split('=').next().unwrap_or_default();
        name.as_bytes().windows(4).any(|part| part.eq_ignore_ascii_case(b"sess"))
    };
    let short = cookies.filter(|cookie| cookie.len() <= LONGEST);
    short.filter(is_session).take(MOST_COOKIES).map(Arc::from).collect()
}

/// The text of the first element of this name in the SOAP header.
fn header(context: &mut Context, namespace: &str, local: &str) -> Option<Arc<str>> {
    let envelope = context.envelope().ok()?;
    let document = &envelope.document;
    let mut elements = document.descendants(envelope.header?);
    let found = elements.find(|&node| {
        document.kind(node) == NodeKind::Element
            && document.local(node) == local
            && document.namespace(node) == namespace
    })?;
    let text = document.string_value(found);
    Some(text.trim()).filter(|text| !text.is_empty()).map(Arc::from)
}

impl Endpoint for SessionBalance {
    fn name(&self) -> &str {
        self.group.name()
    }

    fn choose(&self, context: &mut Context, attempts: &Attempts, step: &mut Step) -> Result<Choice, Fault> {
        if step.bound {
            let message = "the endpoint that the session is bound to has failed";
            let detail = attempts.last().map(ToString::to_string).unwrap_or_default();
            return Err(Fault::with_code(code::SESSION_FAILED, message).because(detail));
        }
        if !step.asked {
            let ids = self.ids(context, false);
            let bound = ids.iter().find_map(|id| Some((id, self.bound(id)?)));
            step.session = bound.map(|(id, _)| id).or(ids.first()).map(Arc::clone);
            if let Some((_, member)) = bound {
                step.bound = true;
                return self.group.choose_only(member, context, attempts, step).ok_or_else(|| {
                    let message = "the endpoint that the session is bound to is not ready";
                    Fault::with_code(code::SESSION_NOT_READY, message)
                });
            }
        }
        let choice = self.group.choose(context, attempts, step)?;
        if let (SessionKind::SimpleClient, Some(session), Some((member, _))) =
            (self.kind, &step.session, &step.member)
        {
            self.bind(Arc::clone(session), *member);
        }
        Ok(choice)
    }

    fn is_ready(&self) -> bool {
        self.group.is_ready()
    }

    fn lets_retry(&self, fault: &Fault) -> bool {
        self.group.lets_retry(fault)
    }

    fn on_error(&self) -> Option<ListId> {
        self.group.on_error()
    }

    fn resends(&self) -> bool {
        self.group.resends()
    }

    fn reads_body(&self) -> bool {
        self.kind != SessionKind::Http || self.group.reads_body()
    }

    fn reads_answer(&self) -> bool {
        self.kind == SessionKind::Soap || self.group.reads_answer()
    }

    fn answered(&self, context: &mut Context, step: &Step) {
        self.group.answered(context, step);
        let Some((member, _)) = &step.member else { return };
        let session = match self.kind {
            SessionKind::SimpleClient => return,
            // A cookie that no member has set says nothing of where its session is.
            SessionKind::Http => {
                self.ids(context, true).into_iter().for_each(|session| self.bind(session, *member));
                return;
            }
            SessionKind::Soap => self.ids(context, true).pop().or_else(|| step.session.clone()),
        };
        if let Some(session) = session {
            self.bind(session, *member);
        }
    }

    fn leaves(&self) -> Vec<Arc<dyn Leaf>> {
        self.group.leaves()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_full_forgets_few_and_none_that_is_used() {
        let (start, hour) = (Instant::now(), Duration::from_secs(3600));
        let at = |second: usize| start + Duration::from_secs(second as u64);
        let mut sessions = Sessions::default();
        let name = |number: usize| Arc::<str>::from(number.to_string());
        for number in 0..MOST {
            sessions.bind(name(number), Arc::from("member"), start + hour, start);
        }
        // Three of the oldest are used; each new one makes room by one that is not.
        for used in [0, 1, 3] {
            sessions.bind(name(used), Arc::from("member"), at(1) + hour, at(1));
        }
        for more in 0..1000 {
            sessions.bind(name(MOST + more), Arc::from("other"), at(2) + hour, at(2));
            assert_eq!((sessions.bound.len(), sessions.order.len()), (MOST, MOST));
        }
        for (number, there) in [(0, true), (1, true), (2, false), (3, true), (MOST - 1, true), (MOST, true)] {
            assert_eq!(sessions.bound.contains_key(&name(number)), there, "{number}");
        }
        // What has ended goes a few at a time, and what was used since stays.
        let end = start + hour + Duration::from_millis(500);
        for more in 0..MOST / (LOOKS - 1) {
            sessions.bind(Arc::from(format!("new {more}")), Arc::from("member"), end + hour, end);
            assert_eq!(sessions.bound.len(), sessions.order.len());
        }
        assert!(sessions.bound.len() < MOST / 2 && sessions.bound.contains_key(&name(0)));
    }
}
