//! What is recorded of each request, once, at its end.
//!
//! A request ends in one of these ways: its answer has left, whole or not; its client went away before there was one (499); it panicked
//! (500); the bus stopped before it ended; the transport refused it (400, 408, 414, 431, …). A [`Recorder`] goes with it, in the flow first and in the answer then,
//! and records it wherever it ends.

use crate::runtime::context::Context;
use crate::runtime::request::Inbound;
use crate::runtime::scope::Opened;
use message::Version;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use transport::{End, OnEnd, Outcome, Refused};

/// One request that has ended, for the access log.
#[derive(Debug)]
pub struct Access<'a> {
    /// The client.
    pub client: SocketAddr,
    /// The address that it connected to.
    pub local: SocketAddr,
    /// It came over https.
    pub secure: bool,
    /// Its first line.
    pub line: RequestLine<'a>,
    /// The `Host` header; empty where nothing was read.
    pub host: &'a str,
    /// The `Content-Type` of the request.
    pub content_type: Option<&'a str>,
    /// Its `Referer`, where the log asks for it.
    pub referer: Option<&'a str>,
    /// Its `User-Agent`, where the log asks for it.
    pub agent: Option<&'a str>,
    /// From the first byte of the request to the last of the answer.
    pub took: Duration,
    /// The status that the client got, 499 where it went away before, 503 where the bus stopped before.
    pub status: u16,
    /// Bytes of the answer's body that were sent.
    pub bytes: u64,
    /// How it ended.
    pub end: Ended,
    /// The proxy service, the API, `main`; empty where none served it.
    pub service: &'a str,
    /// The id of the message; empty where there was none.
    pub message_id: &'a str,
}

/// The first line of a request.
#[derive(Clone, Copy, Debug)]
pub enum RequestLine<'a> {
    /// As it was understood: method, target, version.
    Whole(&'a str, &'a str, Version),
    /// What was received of one that was refused.
    Received(&'a str),
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The client was sent all of its answer.
    Whole,
    /// The client went away, or took nothing for too long.
    Abandoned,
    /// The bus stopped, and the client was cut off at the end of the drain.
    Stopped,
    /// The answer did not arrive whole from its backend; the client's connection was cut.
    Cut,
    /// The transport refused the request.
    Refused,
}

impl Ended {
    /// `whole`, `abandoned`, `stopped`, `cut`, `refused`.
    pub fn as_str(self) -> &'static str {
        match self {
            Ended::Whole => "whole",
            Ended::Abandoned => "abandoned",
            Ended::Stopped => "stopped",
            Ended::Cut => "cut",
            Ended::Refused => "refused",
        }
    }
}

/// Takes note of every request.
pub trait AccessLog: Send + Sync {
    /// One request that has ended.
    fn record(&self, access: &Access<'_>);

    /// Whether it asks for [`Access::referer`] and [`Access::agent`]; if not, they are not kept for it.
    fn asks_for_agent(&self) -> bool {
        true
    }
}

/// Goes with a request and records it when it ends; if it is dropped, the request was abandoned.
pub(crate) struct Recorder {
    log: Arc<dyn AccessLog>,
    /// `None`: it has been recorded.
    request: Option<Arc<Inbound>>,
    version: Version,
    referer: Option<String>,
    agent: Option<String>,
    service: String,
    message_id: String,
}

impl Recorder {
    /// For a request as it came; `headers` has its `Referer` and `User-Agent`.
    #[cold]
    pub(crate) fn new(
        log: &Arc<dyn AccessLog>,
        headers: &message::Headers,
        version: Version,
    ) -> Box<Recorder> {
        let kept = |name| headers.get(name).filter(|_| log.asks_for_agent()).map(str::to_owned);
        Box::new(Recorder {
            log: Arc::clone(log),
            request: None,
            version,
            referer: kept("Referer"),
            agent: kept("User-Agent"),
            service: String::new(),
            message_id: String::new(),
        })
    }

    /// What the request is.
    pub(crate) fn of(mut self: Box<Self>, inbound: &Arc<Inbound>) -> Box<Recorder> {
        self.request = Some(Arc::clone(inbound));
        self
    }

    /// Who would have served it.
    pub(crate) fn by(mut self: Box<Self>, service: &str) -> Box<Recorder> {
        service.clone_into(&mut self.service);
        self
    }

    /// The message that it became, and who serves it.
    pub(crate) fn served(&mut self, context: &Context) {
        context.owner_name().clone_into(&mut self.service);
        self.message_id.clear();
        match &context.addressing.relates_to {
            // That of an answer is the id of its request.
            Some(id) if context.progress.asked.is_answered() => self.message_id.push_str(id),
            _ => context.push_message_id(&mut self.message_id),
        }
    }

    fn record(&mut self, status: u16, bytes: u64, end: Ended) {
        let Some(inbound) = self.request.take() else { return };
        self.log.record(&Access {
            client: inbound.peer,
            local: inbound.local,
            secure: inbound.secure,
            line: RequestLine::Whole(inbound.method.as_str(), &inbound.target, self.version),
            host: &inbound.host,
            content_type: inbound.content_type.as_deref(),
            referer: self.referer.as_deref(),
            agent: self.agent.as_deref(),
            took: inbound.received.elapsed(),
            status,
            bytes,
            end,
            service: &self.service,
            message_id: &self.message_id,
        });
    }
}

impl OnEnd for Recorder {
    fn ended(mut self: Box<Self>, end: &End<'_>) {
        let how = match end.outcome {
            Outcome::Whole => Ended::Whole,
            Outcome::Abandoned => Ended::Abandoned,
            Outcome::Stopped => Ended::Stopped,
            Outcome::Cut(_) => Ended::Cut,
        };
        self.record(end.status, end.bytes, how);
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        match std::thread::panicking() {
            // The transport answers.
            true => self.record(500, 0, Ended::Whole),
            false => self.record(499, 0, Ended::Abandoned),
        }
    }
}

/// A message while its first flow runs, with who records it.
pub(crate) struct Accounted<'m> {
    pub(crate) opened: Opened<'m>,
    pub(crate) recorder: Option<Box<Recorder>>,
}

impl Drop for Accounted<'_> {
    fn drop(&mut self) {
        // The recorder is still here: the client went away, or the bus stops and has cut it off.
        if let Some(recorder) = &mut self.recorder {
            recorder.served(self.opened.context);
            if self.opened.context.services.scopes.is_giving_up() {
                recorder.record(503, 0, Ended::Stopped);
            }
        }
    }
}

/// Records a request that the transport refused.
pub(crate) fn refused(log: &dyn AccessLog, refused: &Refused<'_>) {
    let line = refused.line();
    log.record(&Access {
        client: refused.client.peer,
        local: refused.client.local,
        secure: refused.client.tls.is_some(),
        line: RequestLine::Received(&line),
        host: "",
        content_type: None,
        referer: None,
        agent: None,
        took: refused.took,
        status: refused.status,
        bytes: refused.why.len() as u64 + 1,
        end: Ended::Refused,
        service: "",
        message_id: "",
    });
}
