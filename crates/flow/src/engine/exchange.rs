//! Sending a message to an endpoint, and taking its answer.

use crate::engine::authority::{Asks, Authorized};
use crate::engine::{addressing, compute, screening};
use crate::runtime::context::Context;
use crate::runtime::endpoint::{
    Attempts, Choice, Destination, Endpoint, EndpointFormat, Leaf, MOST_ALIASES, Outgoing, Step,
    TimeoutAction, circle,
};
use crate::runtime::fault::{Fault, code};
use crate::runtime::mediator::{Branch, BranchTarget, ListId, Split};
use crate::runtime::progress::Takes;
use crate::runtime::reference::EndpointRef;
use crate::runtime::request::Client;
use crate::runtime::stage::{self, Stage, Way};
use crate::writing::{self, current_form, explicit_form, is_rewritten, request_form};
use message::{
    Envelope, Format, Headers, Kind, MediaType, Method, Payload, PayloadError, PayloadLimits, Reading,
    SoapVersion, StandardHeader, Value, Version,
};
use std::sync::Arc;
use std::time::{Duration, Instant};
use transport::{Body, Framing, OutRequest, Response, SendError, SendErrorKind, SendOptions};

/// What sending came to.
pub(crate) enum Sent {
    /// The context holds the answer.
    Answered,
    /// A recipient list: copies, each with its endpoint.
    Split(Split),
}

/// Sends the message. On success the context holds the answer.
///
/// A group may send it again after an attempt that failed, also where that one may have been processed
/// ([`Fault::processed`]), as in WSO2; `retryConfig` says after which codes. No leaf gets it twice, and there are no
/// more than [`Settings::attempts`](crate::Settings::attempts) attempts.
pub(crate) async fn send(context: &mut Context, destination: Destination) -> Result<Sent, Fault> {
    let mut found;
    let mut endpoint = match (&destination.endpoint, destination.reference.as_deref()) {
        (Some(endpoint), _) | (None, Some(EndpointRef::Known(endpoint))) => endpoint,
        _ => {
            found = match &destination.reference {
                Some(reference) => {
                    if reference.need().is_whole() {
                        context.receive_body().await?;
                    }
                    let reference = Arc::clone(reference);
                    compute::work_out(context, move |context| reference.resolve(context)).await?
                }
                None => Arc::clone(&context.plan.implicit),
            };
            &found
        }
    };
    let mut aliases = 0;
    loop {
        let next = match endpoint.reads_body() {
            false => endpoint.stands_for(context)?,
            true => {
                context.receive_body().await?;
                let endpoint = Arc::clone(endpoint);
                compute::work_out(context, move |context| endpoint.stands_for(context)).await?
            }
        };
        let Some(next) = next else { break };
        aliases += 1;
        if aliases > MOST_ALIASES {
            return Err(circle(endpoint.name()));
        }
        found = next;
        endpoint = &found;
    }
    let resends = endpoint.resends();
    if resends {
        context.receive_body().await?;
    }
    let (mut attempts, mut step) = (Attempts::default(), Step::default());
    // The last attempt was at an endpoint whose faults no handler sees (`discard`).
    let mut discarded = false;
    loop {
        let most = usize::from(context.services.settings.attempts);
        let chosen = match attempts.last() {
            Some(fault) if attempts.count() >= most => Err(fault.clone()),
            _ if endpoint.reads_body() => {
                // It keeps what it has worked out so far in its step: not to be begun anew.
                let endpoint = Arc::clone(endpoint);
                let (tried, mut at) = (std::mem::take(&mut attempts), std::mem::take(&mut step));
                let chosen;
                (chosen, attempts, step) = compute::once(context, move |context| {
                    let chosen = endpoint.choose(context, &tried, &mut at);
                    Ok((chosen, tried, at))
                })
                .await?;
                chosen
            }
            _ => compute::in_time(context, |context| endpoint.choose(context, &attempts, &mut step)),
        };
        let leaf = match chosen {
            Ok(Choice::Leaf(leaf)) => leaf,
            Ok(Choice::Everyone(endpoints)) => return everyone(context, endpoints, &destination).await,
            Err(fault) => {
                if discarded {
                    context.handlers.clear();
                }
                ahead(context, endpoint.on_error());
                return Err(fault);
            }
        };
        let kept =
            resends.then(|| (context.headers.clone(), context.payload.copy(), context.handlers.clone()));
        match attempt(context, &leaf, endpoint.on_error(), destination.blocking).await {
            Ok(()) => {
                context.progress.on_endpoint_error = None;
                if endpoint.reads_answer() {
                    context.receive_body().await?;
                }
                endpoint.answered(context, &step);
                return Ok(Sent::Answered);
            }
            Err(fault) => {
                if let Some((headers, payload, handlers)) = kept {
                    context.headers = headers;
                    context.payload = payload;
                    discarded = context.handlers.is_empty();
                    context.handlers = handlers;
                    tracing::warn!(
                        message_id = %context.message_id(),
                        place = context.place(),
                        endpoint = leaf.name(),
                        may_be_processed = fault.processed,
                        "{fault}"
                    );
                }
                context.progress.on_endpoint_error = None;
                ahead(context, leaf.on_error());
                attempts.add(leaf.identity(), fault);
            }
        }
    }
}

impl Context {
    /// Sends this message and takes the answer in its place, for mediators that call with a copy of their own.
    ///
    /// # Errors
    /// Sending failed, or the endpoint is a recipient list.
    pub async fn send_and_receive(&mut self, destination: Destination) -> Result<(), Fault> {
        match send(self, destination).await? {
            Sent::Answered => Ok(()),
            Sent::Split(_) => Err(Fault::new("a recipient list cannot be called: its answers have no order")),
        }
    }
}

/// Puts `onError` of an endpoint ahead of the handlers, unless it is there.
fn ahead(context: &mut Context, on_error: Option<ListId>) {
    let Some(list) = on_error else { return };
    if !context.services.settings.synapse_dialect {
        context.progress.on_endpoint_error.get_or_insert(list);
    } else if context.handlers.last() != Some(&list) {
        context.handlers.push(list);
    }
}

async fn everyone(
    context: &mut Context,
    endpoints: Vec<Arc<dyn Endpoint>>,
    destination: &Destination,
) -> Result<Sent, Fault> {
    let limits = context.services.limits.clone();
    context.payload.buffer(&limits).await?;
    // An aggregate in the out flow collects the answers by these, as the copies of a split.
    let name = Arc::from("aggregateCorelation");
    context.begin_split(&[&name]);
    context.properties.set(name, Value::from(context.message_id()));
    let (receive, mut original) = (destination.receive, context.branch());
    let (sequence, count): (Arc<str>, _) = (Arc::from("messageSequence"), endpoints.len());
    let parts = endpoints.into_iter().enumerate().map(move |(index, endpoint)| {
        let mut context = original.branch();
        context.properties.set(Arc::clone(&sequence), Value::from(format!("{index}/{count}")));
        let target = BranchTarget::Endpoint(Destination { receive, ..Destination::to(endpoint) });
        Branch { context, target }
    });
    Ok(Sent::Split(Split::at_once(parts, false)))
}

/// Whether a fault handler would pass the message on if it cannot be sent. `on_error`: of the group that the leaf is in.
fn is_wanted_by_handlers(context: &Context, leaf: &dyn Leaf, on_error: Option<ListId>) -> bool {
    let of_endpoint = [context.progress.on_endpoint_error, leaf.on_error(), on_error];
    let mut handlers = context.handlers.iter().copied().chain(of_endpoint.into_iter().flatten());
    handlers.any(|handler| context.plan.passes_on(handler))
}

/// Receives the body, so that a handler has it still when it was sent in vain. One that is larger than a flow may hold is sent as it comes.
async fn held_for_handlers(context: &mut Context) -> Result<(), Fault> {
    let limits = PayloadLimits { spill: None, ..context.services.limits.clone() };
    match context.payload.buffer(&limits).await {
        Err(error @ PayloadError::Receiving(_)) => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// One attempt at one leaf. `on_error`: of the group that it is in.
async fn attempt(
    context: &mut Context,
    leaf: &Arc<dyn Leaf>,
    on_error: Option<ListId>,
    blocking: bool,
) -> Result<(), Fault> {
    let episode = leaf.episode();
    if context.payload.is_unread() && is_wanted_by_handlers(context, &**leaf, on_error) {
        Box::pin(held_for_handlers(context)).await?;
    }
    if leaf.reads_body() {
        context.receive_body().await?;
    }
    let outgoing = match leaf.reads_body() {
        false => compute::in_time(context, |context| leaf.outgoing(context))?,
        true => {
            let leaf = Arc::clone(leaf);
            Box::pin(compute::once(context, move |context| leaf.outgoing(context))).await?
        }
    };
    context.progress.asked.send();
    let asks = Asks::of(outgoing.authority.as_ref(), blocking, context);
    if asks.is_some() {
        // It may have to be sent again.
        context.receive_body().await?;
    }
    // From before it is sent: the answer may be faster than the acknowledgement.
    let callback =
        if outgoing.separate_listener { Some(crate::engine::callback::expect(context)?) } else { None };
    let built = context.payload.is_changed();
    let (method, form) = request_line(context, &outgoing)?;
    let mut body = match unwritten(context, leaf.stages(), &outgoing, &method, &form)? {
        Unwritten::Whole(body) => body,
        Unwritten::ToCode => compute::by_size(context, 0, |context| Ok(writing::untouched(context))).await?,
        Unwritten::ToWrite => written(context, leaf, &outgoing, form).await?,
    };
    let settings = &context.services.settings;
    let mut options = SendOptions {
        connect: settings.connect_timeout,
        silence: Some(settings.socket_timeout),
        response: outgoing.timeout.or(time(context, "SEND_TIMEOUT")).unwrap_or(settings.global_timeout),
        idle: settings.socket_timeout,
        keep_alive: !context.axis2_is_true("NO_KEEPALIVE"),
        version: if context.axis2_is_true("FORCE_HTTP_1.0") { Version::Http10 } else { Version::Http11 },
        // What was written anew goes out chunked, as WSO2's backends see it, unless its length is asked for.
        framing: if built && !fixed_length(context) { Framing::Chunked } else { Framing::Auto },
        upgrade: context.headers.has_any(StandardHeader::Upgrade.bit())
            && !blocking
            && is_handshake(&method, &context.headers),
        extra_connection: false,
    };
    if let Some(silence) = time(context, "HTTP_SOCKET_TIMEOUT") {
        options.idle = silence;
        options.silence = Some(silence);
    }
    if (context.axis2_is_true("FORCE_HTTP_1.0") || context.axis2_is_true("DISABLE_CHUNKING"))
        && let Body::Stream(stream) = body
    {
        let mut held = Payload::received(Body::Stream(stream), Reading::XML);
        held.buffer(&context.services.limits).await?;
        body = held.take_body();
    }
    let refusals = blocking.then(|| Refusals::of(context));
    // A `Host` that is still among the headers is one that is preserved.
    let host = context.axis2.get("REQUEST_HOST_HEADER").map(Value::to_string).or_else(|| {
        let preserved = !context.services.settings.preserve_headers.is_empty();
        preserved.then(|| context.headers.get("Host").map(str::to_owned)).flatten()
    });
    let mut headers = std::mem::take(&mut context.headers);
    let trial = match context.progress.observed || context.services.observers.is_on() {
        true => crate::observe::sending(context, &**leaf, &outgoing, &method, &headers, &mut body),
        false => None,
    };
    let started = transport::clock::now();
    let sent = match &asks {
        None => {
            let request = OutRequest {
                method: &method,
                target: &outgoing.request_target,
                headers: &headers,
                host: host.as_deref(),
                body: &mut body,
            };
            match crate::engine::local::is_target(&outgoing.target) {
                false if crate::engine::file::is_target(&outgoing.target) => {
                    Box::pin(crate::engine::file::send(context, request, options.response)).await
                }
                false => context.services.client.send(&outgoing.target, request, &options).await,
                true => Box::pin(crate::engine::local::send(context, request, options.response)).await,
            }
        }
        Some(asks) => {
            let authorized = Authorized {
                authority: asks.authority(),
                services: &context.services,
                target: &outgoing.target,
                method: &method,
                path: &outgoing.request_target,
                host: host.as_deref(),
                body: &mut body,
                options: &options,
            };
            let outcome = Box::pin(authorized.send(&mut headers)).await;
            match outcome {
                Ok(sent) => sent,
                Err(fault) => {
                    leaf.counters().record(elapsed(started), true);
                    context.headers = headers;
                    if context.payload.is_consumed() && !matches!(body, Body::Empty) {
                        context.payload.put_back(body);
                    }
                    trial.iter().for_each(|trial| trial.failed(&fault));
                    return Err(fault);
                }
            }
        }
    };
    context.progress.written = crate::engine::file::is_target(&outgoing.target);
    match sent {
        Ok(mut response) => {
            leaf.counters().record(elapsed(started), response.head.status >= 500);
            trial.iter().for_each(|trial| trial.answered(&mut response));
            match callback.filter(|_| is_acknowledgement(&response)) {
                None => accept(context, response),
                Some(callback) => {
                    let rest = options.response.saturating_sub(elapsed(started));
                    let Some(answer) = Box::pin(callback.answer(rest)).await else {
                        context.headers = headers;
                        let target = outgoing.target.clone();
                        let kind = SendErrorKind::ResponseTimeout;
                        let error = SendError { kind, target, nothing_processed: false, body_intact: false };
                        return Err(failed(context, leaf, episode, error, Body::Empty, &outgoing, blocking));
                    };
                    let mut response = Response::new(200, Body::Bytes(answer.body));
                    response.head.headers = answer.headers;
                    accept(context, response);
                }
            }
            if !leaf.stages().is_empty() {
                stage::comes_in(leaf.stages(), context).await?;
            }
            if let (Some(refusals), Some(status)) = (refusals, context.status)
                && refusals.contains(status)
            {
                // As in WSO2, the status is an error code, which may suspend the endpoint.
                let reason = context.reason.clone().unwrap_or_default();
                let message = format!("Transport error: {status} Error: {reason}");
                leaf.failed(i32::from(status), &message, episode);
                context.properties.set("blocking.sender.error", Value::from("true"));
                let fault = Fault::with_code(i32::from(status), message);
                return Err(Fault { sending: true, processed: true, ..fault });
            }
            if context.properties.get("FORCE_ERROR_ON_SOAP_FAULT").is_some_and(Value::is_true)
                && is_soap_fault(context).await?
            {
                leaf.failed(code::SOAP_FAULT, &"the backend answered with a SOAP fault", episode);
                let fault = Fault::with_code(code::SOAP_FAULT, "the backend answered with a SOAP fault");
                let peer = Some(outgoing.target.to_string());
                return Err(Fault { sending: true, processed: true, peer, ..fault });
            }
            leaf.succeeded();
            if context.services.settings.screening.size {
                Box::pin(screening::fits(context)).await?;
            }
            Ok(())
        }
        Err(error) => {
            leaf.counters().record(elapsed(started), error.kind.is_about_backend());
            context.headers = headers;
            let fault = failed(context, leaf, episode, error, body, &outgoing, blocking);
            trial.iter().for_each(|trial| trial.failed(&fault));
            Err(fault)
        }
    }
}

/// Whether a response only says that the request arrived: the answer will come to the callback address.
fn is_acknowledgement(response: &Response) -> bool {
    let nothing = response.body.exact_len() == Some(0);
    response.head.status == 202 || (200..300).contains(&response.head.status) && nothing
}

/// The statuses that are failures of a blocking call: those of WSO2, but for what two properties of the message say.
pub(crate) struct Refusals {
    /// `ERROR_HTTP_STATUS_CODES`
    more: Option<String>,
    /// `NON_ERROR_HTTP_STATUS_CODES`
    fewer: Option<String>,
}

impl Refusals {
    pub(crate) fn of(context: &Context) -> Refusals {
        let list = |name: &str| {
            let value = context.axis2.get(name).or_else(|| context.client.get(name));
            value.or_else(|| context.properties.get(name)).map(Value::to_string)
        };
        Refusals { more: list("ERROR_HTTP_STATUS_CODES"), fewer: list("NON_ERROR_HTTP_STATUS_CODES") }
    }

    pub(crate) fn contains(&self, status: u16) -> bool {
        let lists = |list: &Option<String>| {
            list.as_ref().is_some_and(|list| list.split(',').any(|entry| entry.trim().parse() == Ok(status)))
        };
        lists(&self.more) || matches!(status, 302 | 401 | 403 | 404 | 503) && !lists(&self.fewer)
    }
}

/// The headers of a request that stay in place under the answer to a blocking call; but those that say what the body is are the
/// answer's.
pub(crate) struct KeptHeaders(Headers);

impl KeptHeaders {
    /// `None`: the message says otherwise.
    pub(crate) fn of(context: &Context) -> Option<KeptHeaders> {
        let keeps = context.properties.get("BLOCKING_SENDER_PRESERVE_REQ_HEADERS");
        let keeps = keeps.is_none_or(|value| value.to_string() != "false");
        keeps.then(|| KeptHeaders(context.headers.clone()))
    }

    /// Puts them back over the answer.
    pub(crate) fn restore(self, context: &mut Context) {
        let mut headers = self.0;
        for name in ["Content-Type", "Content-Encoding"] {
            match context.headers.get(name) {
                Some(value) => headers.set(name, value),
                None => drop(headers.remove(name)),
            }
        }
        context.headers = headers;
    }
}

/// A property of axis2 scope in milliseconds.
fn time(context: &Context, name: &str) -> Option<std::time::Duration> {
    if context.axis2.is_empty() {
        return None;
    }
    let milliseconds = u64::try_from(context.axis2.get(name)?.as_integer()?).ok()?;
    (milliseconds > 0).then(|| std::time::Duration::from_millis(milliseconds))
}

/// Whether the backend is to get a Content-Length.
fn fixed_length(context: &Context) -> bool {
    ["DISABLE_CHUNKING", "FORCE_HTTP_1.0"].into_iter().any(|name| context.axis2_is_true(name))
        || (context.axis2_is_true("FORCE_HTTP_CONTENT_LENGTH")
            && context.axis2_is_true("COPY_CONTENT_LENGTH_FROM_INCOMING"))
}

/// The fault of a failed attempt; the request payload is kept if nothing of it was used.
fn failed(
    context: &mut Context,
    leaf: &Arc<dyn Leaf>,
    episode: u64,
    error: SendError,
    body: Body,
    outgoing: &Outgoing,
    blocking: bool,
) -> Fault {
    let number = error.kind.code() as i32;
    let is_file = crate::engine::file::is_target(&outgoing.target);
    if error.kind.is_about_backend() {
        leaf.failed(number, &error, episode);
    }
    if error.body_intact && context.payload.is_consumed() && !matches!(body, Body::Empty) {
        context.payload.put_back(body);
    }
    if blocking {
        context.properties.set("blocking.sender.error", Value::from("true"));
    }
    let client_gone = matches!(error.kind, SendErrorKind::RequestBody(_));
    let is_local = crate::engine::local::is_target(&outgoing.target);
    let service = outgoing.request_target.split('?').next().unwrap_or_default();
    let message = match number {
        code::CONNECTION_FAILED if is_local => {
            format!("There is no service {service} that runs here")
        }
        code::CONNECTION_FAILED => "Error connecting to the back end".to_owned(),
        code::CONNECTION_TIMEOUT => "Send timeout".to_owned(),
        _ if client_gone => "The request did not arrive whole".to_owned(),
        _ => "Error in Sender".to_owned(),
    };
    let number =
        if blocking && number == code::CONNECTION_FAILED { code::BLOCKING_SENDER_FAILED } else { number };
    let status = match outgoing.on_timeout {
        _ if client_gone => 400,
        _ if matches!(error.kind, SendErrorKind::LocalShortage(_)) => 503,
        TimeoutAction::Discard => 504,
        _ => 500,
    };
    if outgoing.on_timeout == TimeoutAction::Discard {
        // `discard`: no handler of the configuration runs; the client gets 504 all the same.
        context.handlers.clear();
    }
    Fault {
        detail: match is_file || is_local {
            true => format!("endpoint {}: {}", leaf.name(), error.kind),
            false => format!("endpoint {}: {error}", leaf.name()),
        },
        peer: Some(match (is_file, is_local) {
            (true, _) => outgoing.request_target.clone(),
            (_, true) => format!("local:/{service}"),
            _ => outgoing.target.to_string(),
        }),
        sending: number != code::CONNECTION_TIMEOUT,
        status,
        protocol_state: protocol_state(&error.kind),
        processed: !error.nothing_processed,
        ..Fault::with_code(number, message)
    }
}

async fn is_soap_fault(context: &mut Context) -> Result<bool, Fault> {
    if !matches!(context.payload.reading().kind, Kind::Soap11 | Kind::Soap12) {
        return Ok(false);
    }
    let limits = PayloadLimits { spill: None, ..context.services.limits.clone() };
    match context.payload.buffer(&limits).await {
        Ok(()) => {}
        // Too large for a fault; it is relayed.
        Err(PayloadError::TooLarge { .. }) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    compute::by_size(context, 0, |context| Ok(context.envelope().is_ok_and(Envelope::has_fault))).await
}

/// Makes the context the answer of the backend: default scope stays, axis2 scope and headers are the answer's.
fn accept(context: &mut Context, response: Response) {
    let head = response.head;
    // For a REST client, and from a plain endpoint, an answer under `text/xml` is plain XML, unless the endpoint asked
    // for SOAP.
    let rest = match context.progress.takes {
        Takes::AsIs => context.is_rest(),
        Takes::Pox => true,
        Takes::Soap => false,
    };
    context.payload = Payload::arrived(response.body, &head.headers, rest);
    context.headers = head.headers;
    context.become_answer(head.status, Some(head.reason));
}

/// Where the exchange with the backend stood when it failed, by WSO2's numbers: the request was to be sent (0), its body
/// was on its way (2), it was sent (3). Not known of a timeout, as in WSO2.
fn protocol_state(kind: &SendErrorKind) -> Option<u8> {
    match kind {
        SendErrorKind::Dns(_)
        | SendErrorKind::Connect(_)
        | SendErrorKind::ConnectTimeout
        | SendErrorKind::LocalShortage(_)
        | SendErrorKind::Tls(_)
        | SendErrorKind::BadRequest(_) => Some(0),
        SendErrorKind::Write(_) | SendErrorKind::RequestBody(_) => Some(2),
        SendErrorKind::Read(_)
        | SendErrorKind::Closed
        | SendErrorKind::Reset(_)
        | SendErrorKind::Protocol(_) => Some(3),
        SendErrorKind::ResponseTimeout | SendErrorKind::WriteTimeout => None,
    }
}

/// A form of a message, and the media type where it is not the form's own.
type Form = Option<(Format, Option<String>)>;

/// Chooses the method of the request, and the form that the endpoint wants; the headers lose what belongs to one hop.
fn request_line(context: &mut Context, outgoing: &Outgoing) -> Result<(Method, Form), Fault> {
    let explicit = context.axis2.get("HTTP_METHOD").map(|value| Method::new(&value.to_string()));
    let requested = || explicit.clone().unwrap_or_else(|| context.inbound.method.clone());
    let method = match outgoing.format {
        EndpointFormat::Soap(_) => Method::Post,
        EndpointFormat::Get => Method::Get,
        // The client's method stays, as in both engines; a GET that the flow gave a body can only go on as a POST.
        EndpointFormat::Pox if !context.payload.is_empty() => match requested() {
            Method::Get | Method::Head if explicit.is_none() => Method::Post,
            method => method,
        },
        _ => outgoing.method.clone().unwrap_or_else(requested),
    };
    drop_regenerated(context);
    context.correlate();
    context.progress.takes = match outgoing.format {
        EndpointFormat::AsIs => Takes::AsIs,
        EndpointFormat::Pox | EndpointFormat::Get | EndpointFormat::Rest => Takes::Pox,
        EndpointFormat::Soap(_) => Takes::Soap,
    };

    let form = outgoing_form(context, outgoing);
    Ok((method, form))
}

/// The body of a request before anything is written.
enum Unwritten {
    /// As it came, or there is none.
    Whole(Body),
    /// It goes out as it is, in a content coding that it is not in yet.
    ToCode,
    /// It is to be written.
    ToWrite,
}

/// The body of the request where it goes out as it came, or there is none.
fn unwritten(
    context: &mut Context,
    stages: &[Arc<dyn Stage>],
    outgoing: &Outgoing,
    method: &Method,
    form: &Form,
) -> Result<Unwritten, Fault> {
    let bodyless = matches!(method, Method::Get | Method::Head)
        || context.axis2_is_true("NO_ENTITY_BODY")
        || (context.axis2_is_true("FORCE_POST_PUT_NOBODY") && !matches!(method, Method::Delete));
    let is_soap = || {
        let format = form.as_ref().map_or_else(|| current_form(context).0, |(format, _)| *format);
        !bodyless && matches!(format, Format::Soap(_))
    };
    if outgoing.separate_listener && !is_soap() {
        return Err(Fault::new(
            "an answer on a connection of its own (separateListener) is to a SOAP message: the endpoint needs a format of soap11 or soap12",
        ));
    }
    if bodyless && stage::is_sealed(stages, context) {
        return Err(Fault::new(
            "the endpoint asks for WS-Security, and a message without a body cannot have it: it is not sent",
        ));
    }
    if bodyless {
        if *method == Method::Get && context.payload.is_changed() {
            context.headers.remove("Content-Type");
        }
        match context.said_type.take() {
            Some(Some(media_type)) => context.headers.set("Content-Type", &*media_type),
            Some(None) => {
                context.headers.remove("Content-Type");
            }
            None => {}
        }
        return Ok(Unwritten::Whole(Body::Empty));
    }
    if context.payload.is_consumed() {
        // Half of it may be with another backend; nothing empty goes in its place.
        return Err(PayloadError::Consumed.into());
    }
    // Untouched and wanted as it is: relay.
    let untouched = !context.payload.is_changed()
        && form.is_none()
        && stages.iter().all(|stage| stage.passes(Way::Out, context))
        && (outgoing.packing.is_none() || context.payload.reading().kind == Kind::Related)
        && (context.axis2.is_empty() || !is_rewritten(context));
    if untouched && !addressing::strip(context)? {
        relabel(context);
        match &context.said_type {
            Some(None) => {
                context.headers.remove("Content-Type");
            }
            // Nothing says what an empty message is but the flow.
            Some(Some(media_type)) if context.payload.is_empty() => {
                context.headers.set("Content-Type", &**media_type);
            }
            _ => {}
        }
        return Ok(match writing::is_coded_here(context) {
            true => Unwritten::ToCode,
            false => Unwritten::Whole(writing::untouched(context)),
        });
    }
    Ok(Unwritten::ToWrite)
}

/// Writes the body of the request in the form that the endpoint wants, where that is long work on a compute thread.
async fn written(
    context: &mut Context,
    leaf: &Arc<dyn Leaf>,
    outgoing: &Outgoing,
    form: Form,
) -> Result<Body, Fault> {
    context.receive_body().await?;
    if context.payload.is_empty() && form.is_none() && !stage::is_sealed(leaf.stages(), context) {
        return Ok(Body::Empty);
    }
    if stage::is_sealed(leaf.stages(), context) {
        let (leaf, outgoing) = (Arc::clone(leaf), outgoing.clone());
        let write = move |context: &mut Context| match write_out(context, leaf.stages(), &outgoing, form)? {
            Body::Empty => {
                Err(Fault::new("the endpoint asks for WS-Security, and the message is empty: it is not sent"))
            }
            sealed => Ok(sealed),
        };
        // However small it is, it takes long.
        return Box::pin(compute::once_on(context, compute::ALWAYS, write)).await;
    }
    if !compute::is_large_with(context, 0) {
        return write_out(context, leaf.stages(), outgoing, form);
    }
    let (leaf, outgoing) = (Arc::clone(leaf), outgoing.clone());
    // Boxed: few messages are large, and all would have the room that this takes.
    let write = move |context: &mut Context| write_out(context, leaf.stages(), &outgoing, form);
    Box::pin(compute::by_size(context, 0, write)).await
}

/// As [`written`], of a body that is there.
fn write_out(
    context: &mut Context,
    stages: &[Arc<dyn Stage>],
    outgoing: &Outgoing,
    form: Form,
) -> Result<Body, Fault> {
    stage::goes_out(stages, context, Some(outgoing))?;
    // What the sender said of itself does not travel on.
    if outgoing.addressing.is_none() {
        match matches!(form, Some((Format::Soap(_), _))) {
            true => addressing::write(context, outgoing)?,
            false => addressing::strip(context).map(|_| ())?,
        }
    }
    let (format, content_type) = match form {
        Some(form) => form,
        None => request_form(context),
    };
    let (charset, packing) = (outgoing.charset.as_deref(), outgoing.packing);
    let bytes = match stage::is_sealed(stages, context) {
        true => writing::write_sealed(context, format, packing, stages)?,
        false => writing::write(context, format, content_type.as_deref(), charset, packing)?,
    };
    Ok(if bytes.is_empty() { Body::Empty } else { Body::Bytes(bytes) })
}

/// Headers that belong to one hop, or that every hop writes anew.
fn drop_regenerated(context: &mut Context) {
    let settings = &context.services.settings;
    let preserved =
        |name: &[u8]| settings.preserve_headers.iter().any(|kept| kept.as_bytes().eq_ignore_ascii_case(name));
    let agent = if settings.preserve_user_agent { 0 } else { StandardHeader::UserAgent.bit() };
    let regenerated = StandardHeader::Host.bit()
        | StandardHeader::Date.bit()
        | StandardHeader::Expect.bit()
        | StandardHeader::Server.bit()
        | agent;
    let headers = &mut context.headers;
    headers.remove_known(regenerated, preserved);
    if !settings.preserve_user_agent && !headers.contains_known(StandardHeader::UserAgent) {
        const LINE: &str = concat!("User-Agent: Busbar/", env!("CARGO_PKG_VERSION"), "\r\n");
        headers.append_line("User-Agent", StandardHeader::UserAgent, LINE);
    }
}

/// The form that the endpoint or a changed `messageType` asks for; `None`: as it is.
fn outgoing_form(context: &Context, outgoing: &Outgoing) -> Form {
    match outgoing.format {
        EndpointFormat::Soap(version) => Some((Format::Soap(version), None)),
        EndpointFormat::Pox if context.payload.is_empty() => None,
        EndpointFormat::Pox => Some((Format::Xml, Some("application/xml".to_owned()))),
        EndpointFormat::Get => None,
        EndpointFormat::Rest | EndpointFormat::AsIs => explicit_form(context),
    }
}

/// Same bytes under another label: `ContentType` was set, or a SOAP action.
fn relabel(context: &mut Context) {
    let Some(action) = context.soap_action.clone() else { return };
    if context.payload.reading().kind != Kind::Soap12 {
        return context.headers.set("SOAPAction", format!("\"{action}\""));
    }
    let Some(content_type) = context.headers.get("Content-Type") else { return };
    let content_type = MediaType::parse(content_type);
    let charset = content_type.charset().map(|charset| format!("; charset={charset}")).unwrap_or_default();
    let value = format!("{}{charset}; action=\"{action}\"", content_type.essence);
    context.headers.set("Content-Type", value);
}

/// Whether a request asks for a WebSocket (RFC 6455, 4.1).
pub(crate) fn is_handshake(method: &Method, headers: &Headers) -> bool {
    let has = |name: &str, token: &str| {
        let mut tokens = headers.get_all(name).flat_map(|value| value.split(|byte| *byte == b','));
        tokens.any(|value| value.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
    };
    headers.has_any(StandardHeader::Upgrade.bit())
        && *method == Method::Get
        && has("Upgrade", "websocket")
        && has("Connection", "upgrade")
        && headers.contains("Sec-WebSocket-Key")
}

/// The time since, by the clock of the turn.
pub(crate) fn elapsed(since: Instant) -> Duration {
    transport::clock::now().saturating_duration_since(since)
}

/// What the client speaks, by its request.
pub(crate) fn client_of(method: &Method, content_type: Option<&str>, headers: &Headers) -> Client {
    speaks(method, content_type, Reading::of(content_type, None, true).kind, headers)
}

/// As [`client_of`], where it is known how the body of a plain client is read.
pub(crate) fn speaks(method: &Method, content_type: Option<&str>, kind: Kind, headers: &Headers) -> Client {
    let Some(content_type) = content_type else { return Client::Rest };
    let kind = match kind {
        Kind::Related => MediaType::parse(content_type).root_kind(),
        kind => kind,
    };
    match kind {
        Kind::Soap12 if !matches!(method, Method::Get | Method::Head) => Client::Soap(SoapVersion::V12),
        Kind::Soap11
            if headers.contains_known(StandardHeader::SoapAction)
                && !matches!(method, Method::Get | Method::Head) =>
        {
            Client::Soap(SoapVersion::V11)
        }
        _ => Client::Rest,
    }
}

#[cfg(test)]
mod tests;
