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
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use xml::NodeKind;

/// How long a session lasts without a message, unless its endpoint says so.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Longest name of a session, in bytes: clients choose it.
const LONGEST: usize = 256;

/// Most sessions of one endpoint; beyond, those that end first are forgotten.
const MOST: usize = 100_000;

const SYNAPSE: &str = "http://ws.apache.org/ns/synapse";
const AXIS2: &str = "http://ws.apache.org/namespaces/axis2";

/// A group whose members have sessions.
pub struct SessionBalance {
    group: Group,
    kind: SessionKind,
    timeout: Duration,
    table: Arc<Table>,
}

/// The sessions of one endpoint; belongs to its identity.
#[derive(Debug, Default)]
struct Table(Mutex<HashMap<Arc<str>, Bound>>);

#[derive(Debug)]
struct Bound {
    /// The name of the member.
    member: Arc<str>,
    until: Instant,
}

impl SessionBalance {
    /// A group with sessions.
    pub fn new(group: Group, session: &Session, compiler: &Compiler<'_>) -> SessionBalance {
        let timeout = session.timeout.filter(|timeout| !timeout.is_zero()).unwrap_or(TIMEOUT);
        let table = compiler.services.states.get(&group.identity);
        SessionBalance { group, kind: session.kind, timeout, table }
    }

    /// What identifies the session of a message, of an answer too.
    fn id(&self, context: &mut Context, answer: bool) -> Option<Arc<str>> {
        let id = match self.kind {
            SessionKind::Http if answer => cookie(&context.headers, "Set-Cookie"),
            SessionKind::Http => cookie(&context.headers, "Cookie"),
            SessionKind::Soap => header(context, AXIS2, "ServiceGroupId"),
            SessionKind::SimpleClient => header(context, SYNAPSE, "ClientID"),
        };
        id.filter(|id| id.len() <= LONGEST)
    }

    /// The member that a session is bound to.
    fn bound(&self, session: &str) -> Option<usize> {
        let now = transport::clock::now();
        let mut table = lock(&self.table.0);
        let bound = table.get_mut(session).filter(|bound| bound.until > now)?;
        bound.until = now.checked_add(self.timeout)?;
        self.group.members.iter().position(|member| member.name == bound.member)
    }

    fn bind(&self, session: Arc<str>, member: usize) {
        let now = transport::clock::now();
        let Some(until) = now.checked_add(self.timeout) else { return };
        let mut table = lock(&self.table.0);
        let mut rest = Duration::ZERO;
        while table.len() >= MOST && rest <= self.timeout {
            table.retain(|_, bound| bound.until > now + rest);
            rest += self.timeout / 16 + Duration::from_nanos(1);
        }
        table.insert(session, Bound { member: Arc::clone(&self.group.members[member].name), until });
    }
}

/// The first session cookie of a header: its name and value.
fn cookie(headers: &Headers, field: &str) -> Option<Arc<str>> {
    let values = headers.get_all(field).filter_map(|value| std::str::from_utf8(value).ok());
    // Of a cookie that is set only the first part is it; the others are its attributes.
    let most = if field == "Set-Cookie" { 1 } else { usize::MAX };
    let mut cookies = values.flat_map(|value| value.split(';').take(most)).map(str::trim);
    let is_session = |cookie: &&str| {
        let name = cookie.split('=').next().unwrap_or_default();
        name.as_bytes().windows(4).any(|part| part.eq_ignore_ascii_case(b"sess"))
    };
    cookies.find(is_session).map(Arc::from)
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
            step.session = self.id(context, false);
            if let Some(member) = step.session.as_deref().and_then(|session| self.bound(session)) {
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
        if self.kind != SessionKind::SimpleClient
            && let Some(session) = self.id(context, true).or_else(|| step.session.clone())
        {
            self.bind(session, *member);
        }
    }

    fn leaves(&self) -> Vec<Arc<dyn Leaf>> {
        self.group.leaves()
    }
}
