//! The single step of a data service: reads the request, runs it until its response has begun, and responds.

use crate::event;
use crate::fault::{Trouble, code};
use crate::output::{Form, Pipe};
use crate::plan::Service;
use crate::request::{self, Ask};
use crate::run::{Terms, perform};
use crate::value::Givens;
use bytes::Bytes;
use flow::data::DataService;
use flow::{Client, Context, DefinitionForm, Fault, Flow, Mediator, Moves, Need, Split};
use message::{Body, BodyError, BodyStream, Headers, MediaType, Payload, Reading, Value};
use sql::TimeSlice;
use std::any::Any;
use std::borrow::Cow;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{self, Poll};
use xml::{Document, ParseOptions};

/// Capacity of a response's pipe in bytes: while it is full the database waits.
pub(crate) const ROOM: usize = 64 << 10;

/// A running request; `false`: there is no response.
pub(crate) type Work = Pin<Box<dyn Future<Output = Result<bool, Trouble>> + Send>>;

pub(crate) struct Step(pub Arc<Service>);

impl DataService for Service {
    fn name(&self) -> &str {
        &self.name
    }

    fn steps(self: Arc<Self>) -> Vec<Box<dyn Mediator>> {
        let has_events = !self.triggers.is_empty();
        let mut steps: Vec<Box<dyn Mediator>> = vec![Box::new(Step(self))];
        if has_events {
            steps.push(Box::new(event::Respond));
        }
        steps
    }

    fn wsdl(&self) -> String {
        crate::describe::wsdl(self)
    }

    fn has_tables(&self) -> bool {
        !self.odata.is_empty()
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl Mediator for Step {
    fn need(&self) -> Need {
        Need::Whole
    }

    fn reason(&self) -> String {
        "parameters of queries are in the request".to_owned()
    }

    fn moves(&self) -> Moves {
        Moves::Never
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> flow::Step<'a> {
        flow::Step::Wait(Box::pin(async move {
            if crate::odata::is_asked(context) {
                return Box::pin(crate::odata::run(&self.0, context)).await;
            }
            let form = form(context);
            let service = Arc::clone(&self.0);
            if let Some(definition) = self.openapi(context) {
                definition.send(context);
                context.response = true;
                return Ok(Flow::Respond);
            }
            let ask = flow::work_out(context, move |context| request::read(&service, context)).await?;
            let answered = match ask {
                Ok(ask) => {
                    let form = if form == Form::Json && ask.is_rdf(&self.0) { Form::Xml } else { form };
                    self.begin(context, ask, form).await?
                }
                Err(trouble) => Err(trouble),
            };
            let events = answered.unwrap_or_else(|trouble| {
                self.fail(context, &trouble, form);
                None
            });
            context.addressing.to = None;
            context.response = true;
            Ok(events.map_or(Flow::Respond, Flow::Split))
        }))
    }
}

/// The format of the response: what the client accepts, else that of its request.
fn form(context: &Context) -> Form {
    if let Client::Soap(version) = context.inbound.client {
        return Form::Soap(version);
    }
    let is_json = |text: &str| MediaType::parse(text.trim()).essence.to_ascii_lowercase().ends_with("json");
    let is_xml = |text: &str| MediaType::parse(text.trim()).essence.to_ascii_lowercase().ends_with("xml");
    for media_range in context.headers.get("Accept").unwrap_or_default().split(',') {
        if is_json(media_range) {
            return Form::Json;
        }
        if is_xml(media_range) {
            return Form::Xml;
        }
    }
    match context.inbound.content_type.as_deref() {
        Some(sent) if is_json(sent) => Form::Json,
        _ => Form::Xml,
    }
}

impl Step {
    /// The response to a request for the OpenAPI description.
    fn openapi(&self, context: &Context) -> Option<Reply> {
        let inbound = &context.inbound;
        let form = DefinitionForm::of_query(inbound.postfix().trim_start_matches('/').strip_prefix('?')?)?;
        if inbound.method != message::Method::Get || inbound.service_length == 0 {
            return None;
        }
        let address = format!("{}://{}/services/{}", inbound.scheme(), inbound.host, self.0.name);
        let definition = crate::describe::openapi(&self.0, &address);
        Some(Reply::new(200, form.media_type(), form.written(&definition)))
    }

    /// Runs a request until its response is complete, or its first part is. Returns the events that it causes.
    async fn begin(
        &self,
        context: &mut Context,
        ask: Ask,
        form: Form,
    ) -> Result<Result<Option<Split>, Trouble>, Fault> {
        let service = &self.0;
        let is_held = service.held
            || match &ask {
                Ask::One(at, _) => service.operations[*at].held,
                Ask::Batch(..) | Ask::Box(_) => true,
            };
        if is_held {
            // Its events, too, are known when all of it has run.
            let (body, events) = match whole(service, ask, form, context).await? {
                Ok(done) => done,
                Err(trouble) => return Ok(Err(trouble)),
            };
            match body {
                Some(bytes) => answer(context, Body::Bytes(bytes.into()), form, None),
                None => accepted(context),
            }
            return Ok(Ok(events));
        }
        let terms = Terms::of(service, &ask, form, None, context);
        let pipe = Pipe::new(ROOM);
        let about = format!("data service {}, {}", service.name, ask.name(service));
        let work: Work = Box::pin(perform(Arc::clone(service), ask, Arc::clone(&pipe), terms));
        let begun = begun(work, pipe, false, about, context.message_id().to_owned()).await;
        Ok(begun.map(|body| {
            match body {
                Some(body) => answer(context, body, form, None),
                None => accepted(context),
            }
            None
        }))
    }

    fn fail(&self, context: &mut Context, trouble: &Trouble, form: Form) {
        tracing::warn!(
            target: "busbar::dataservice",
            message_id = %context.message_id(),
            service = %self.0.name,
            request = %trouble.request,
            code = trouble.code,
            "{}",
            if trouble.nested.is_empty() { &trouble.message } else { &trouble.nested },
        );
        let body = trouble.body(&self.0, form);
        // SOAP 1.1 sends faults with status 500.
        let status = if matches!(form, Form::Soap(_)) { 500 } else { trouble.status };
        answer(context, Body::Bytes(body.into()), form, Some(status));
    }
}

/// Runs a future until its response is complete, or its first part is; `None`: there is no response.
pub(crate) async fn begun(
    mut work: Work,
    pipe: Arc<Pipe>,
    is_held: bool,
    about: String,
    message: String,
) -> Result<Option<Body>, Trouble> {
    let ended = poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(ended) => Poll::Ready(Some(ended)),
        Poll::Pending if !is_held && pipe.is_full() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    Ok(match ended.await {
        Some(ended) => ended?.then(|| Body::Bytes(pipe.take().into())),
        None => {
            let work = Mutex::new(Some(work));
            Some(Body::Stream(Box::new(ResultBody {
                work,
                buffer: pipe.take(),
                pipe,
                at: 0,
                about,
                message,
                slice: TimeSlice::default(),
            })))
        }
    })
}

/// The response 202 without a body.
fn accepted(context: &mut Context) {
    context.set_axis2("SC_ACCEPTED", Value::Boolean(true));
}

/// Makes a body the message.
fn answer(context: &mut Context, body: Body, form: Form, status: Option<u16>) {
    let is_rest = !matches!(form, Form::Soap(_));
    set(context, body, form.media_type(), is_rest);
    if let Some(status) = status {
        context.set_axis2("HTTP_SC", Value::Integer(i64::from(status)));
        context.mark_fault();
    }
}

fn set(context: &mut Context, body: Body, media_type: &str, is_rest: bool) {
    let mut headers = Headers::new();
    headers.set("Content-Type", media_type);
    context.headers = headers;
    context.payload = Payload::received(body, Reading::of(Some(media_type), None, is_rest));
    context.soap_action = None;
}

/// A response with a status.
pub(crate) struct Reply {
    pub status: u16,
    pub media_type: Cow<'static, str>,
    pub headers: Vec<(&'static str, String)>,
    pub body: Body,
    /// It counts as a fault in the statistics.
    pub is_fault: bool,
}

impl Reply {
    pub fn new(status: u16, media_type: impl Into<Cow<'static, str>>, text: String) -> Reply {
        let body = Body::Bytes(text.into_bytes().into());
        Reply { status, media_type: media_type.into(), headers: Vec::new(), body, is_fault: false }
    }

    /// A response without a body.
    pub fn nothing(status: u16) -> Reply {
        Reply {
            status,
            media_type: Cow::Borrowed(""),
            headers: Vec::new(),
            body: Body::Empty,
            is_fault: false,
        }
    }

    pub fn with(mut self, name: &'static str, value: &str) -> Reply {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Makes it the message.
    pub fn send(self, context: &mut Context) {
        match self.body {
            Body::Empty => {
                context.headers = Headers::new();
                context.payload = Payload::default();
                context.soap_action = None;
                context.set_axis2("NO_ENTITY_BODY", Value::Boolean(true));
            }
            body => set(context, body, &self.media_type, true),
        }
        for (name, value) in self.headers {
            context.headers.set(name, value);
        }
        context.set_axis2("HTTP_SC", Value::Integer(i64::from(self.status)));
        if self.is_fault {
            context.mark_fault();
        }
    }
}

/// The rest of a response. It runs as the client reads it; dropping it ends the query.
struct ResultBody {
    /// `None`: all bytes are in the pipe. The lock makes it `Sync`, and is never contended.
    work: Mutex<Option<Work>>,
    pipe: Arc<Pipe>,
    buffer: Vec<u8>,
    at: usize,
    about: String,
    message: String,
    /// A client that takes everything at once keeps the worker no longer than that.
    slice: TimeSlice,
}

impl BodyStream for ResultBody {
    fn buffered(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    fn poll_more(&mut self, cx: &mut task::Context<'_>) -> Poll<Result<bool, BodyError>> {
        loop {
            if self.pipe.len() > 0 {
                if self.at == self.buffer.len() {
                    self.buffer = self.pipe.take();
                    self.at = 0;
                } else {
                    self.buffer.drain(..self.at);
                    self.at = 0;
                    self.buffer.extend(self.pipe.take());
                }
                return Poll::Ready(Ok(true));
            }
            let work = self.work.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
            let Some(running) = work else { return Poll::Ready(Ok(false)) };
            if self.slice.poll(cx).is_pending() {
                return Poll::Pending;
            }
            match running.as_mut().poll(cx) {
                Poll::Pending if self.pipe.len() == 0 => return Poll::Pending,
                Poll::Pending => {}
                Poll::Ready(Ok(_)) => *work = None,
                Poll::Ready(Err(trouble)) => {
                    *work = None;
                    tracing::warn!(
                        target: "busbar::dataservice",
                        message_id = %self.message,
                        code = trouble.code,
                        "{}: the answer ends in the middle: {}",
                        self.about,
                        if trouble.nested.is_empty() { &trouble.message } else { &trouble.nested },
                    );
                    return Poll::Ready(Err(BodyError::Truncated));
                }
            }
        }
    }

    fn consume(&mut self, n: usize) {
        self.at += n;
    }

    fn is_complete(&self) -> bool {
        let is_done = |work: &Option<Work>| work.is_none();
        self.pipe.len() == 0 && self.work.try_lock().is_ok_and(|work| is_done(&work))
    }

    fn exact_len(&self) -> Option<u64> {
        None
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

/// A complete response (`None`: there is none), and the events that its request causes.
pub(crate) type Done = (Option<Vec<u8>>, Option<Split>);

/// Runs a request and collects the whole response: transformed, where the result has a stylesheet.
///
/// # Errors
/// No compute thread was free for the stylesheet or the events; inner: the request failed.
pub(crate) async fn whole(
    service: &Arc<Service>,
    ask: Ask,
    form: Form,
    context: &mut Context,
) -> Result<Result<Done, Trouble>, Fault> {
    let stylesheet = match &ask {
        Ask::One(at, _) => service.stylesheet(*at).is_some().then_some(*at),
        Ask::Batch(..) | Ask::Box(_) => None,
    };
    let written = if stylesheet.is_some() { Form::Xml } else { form };
    let most = context.services().limits.held;
    let terms = Terms::of(service, &ask, written, Some(most), context);
    let causes = terms.causes.clone();
    let (pipe, name) = (Pipe::new(ROOM), ask.name(service).to_owned());
    let mut body = match perform(Arc::clone(service), ask, Arc::clone(&pipe), terms).await {
        Ok(has_response) => has_response.then(|| pipe.take()),
        Err(trouble) => return Ok(Err(trouble)),
    };
    if let Some(at) = stylesheet
        && let Some(result) = body.take()
    {
        let result = Bytes::from(result);
        let of = Arc::clone(service);
        let transform = move |context: &mut Context| transformed(&of, at, result.clone(), form, context);
        match flow::work_out_beside(context, transform).await {
            Ok(result) => body = Some(result),
            // What the database did stays done.
            Err(fault) => {
                let trouble = Trouble::new(code::UNKNOWN, fault.message).because(fault.detail);
                return Ok(Err(trouble.during(&name, &Givens::new(), &[])));
            }
        }
    }
    let events = match &causes {
        Some(causes) => event::publish(service, causes, context).await?,
        None => None,
    };
    Ok(Ok((body, events)))
}

/// The result of an operation behind its stylesheet, in the form of the response.
fn transformed(
    service: &Service,
    operation: usize,
    result: Bytes,
    form: Form,
    context: &mut Context,
) -> Result<Vec<u8>, Fault> {
    let Some(stylesheet) = service.stylesheet(operation) else { return Ok(result.to_vec()) };
    let made = stylesheet.transform(result, context)?;
    if form == Form::Json {
        let limits = context.services().limits.xml.clone();
        let document = Document::parse(made, &ParseOptions { limits, ..ParseOptions::default() })
            .map_err(|why| Fault::new(format!("the result of the stylesheet cannot be read: {why}")))?;
        return Ok(document
            .document_element()
            .map_or_else(Vec::new, |root| message::json::from_xml(&document, root).into_bytes()));
    }
    let (before, after) = form.frame();
    Ok([before.as_bytes(), &made, after.as_bytes()].concat())
}

impl Terms {
    /// Those of a request of a client.
    fn of(service: &Service, ask: &Ask, form: Form, most: Option<usize>, context: &Context) -> Terms {
        fn has_events(ask: &Ask, service: &Service) -> bool {
            match ask {
                Ask::One(at, _) | Ask::Batch(at, _) => service.operations[*at].has_events,
                Ask::Box(all) => all.iter().any(|ask| has_events(ask, service)),
            }
        }
        Terms {
            form,
            most,
            collected: context.services().limits.held,
            roles: if service.has_roles { flow::roles::of(context) } else { Vec::new() },
            causes: has_events(ask, service).then(Arc::default),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::time::{Duration, Instant};

    /// A client that takes all at once, and a database that has all at once, leave the worker to others now and then.
    #[test]
    fn others_run_while_a_result_is_read() {
        const PARTS: usize = 70;
        let pipe = Pipe::new(1);
        let writer = Arc::clone(&pipe);
        let work: Work = Box::pin(async move {
            for _ in 0..PARTS {
                writer.put(&mut "row".to_owned());
                poll_fn(|_| if writer.is_full() { Poll::Pending } else { Poll::Ready(()) }).await;
            }
            Ok(true)
        });
        let mut body = ResultBody {
            work: Mutex::new(Some(work)),
            buffer: Vec::new(),
            pipe,
            at: 0,
            about: String::new(),
            message: String::new(),
            slice: TimeSlice::default(),
        };
        let turns = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&turns);
        let other = async move {
            loop {
                counted.fetch_add(1, Relaxed);
                tokio::task::yield_now().await;
            }
        };
        let read = async {
            // Parts in all, those since the other task ran, and the most of these.
            let (mut parts, mut alone, mut longest, mut last) = (0, 0, 0, 0);
            while poll_fn(|cx| body.poll_more(cx)).await.unwrap() {
                let now = turns.load(Relaxed);
                alone = if now == last { alone + 1 } else { 1 };
                (last, longest, parts) = (now, longest.max(alone), parts + 1);
                body.consume(body.buffered().len());
                let began = Instant::now();
                while began.elapsed() < Duration::from_micros(200) {}
            }
            (parts, longest)
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (parts, longest) = runtime.block_on(async {
            let other = tokio::spawn(other);
            let read = read.await;
            other.abort();
            read
        });
        // A slice is a millisecond: five such parts, and one more where it ends in the middle of one.
        assert!(parts == PARTS && longest <= 6, "{longest} of {parts} parts in a row");
    }
}
