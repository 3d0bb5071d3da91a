//! From a request to its flow: proxy services, APIs, the main sequence, and what the bus answers itself.

use crate::engine::exchange::{elapsed, is_handshake, speaks};
use crate::engine::screening;
use crate::engine::{Ending, advance, begin_request, drive_to_end, is_accepted, raise, report_panic};
use crate::http::access::{AccessLog, Accounted, Recorder};
use crate::http::respond::{busy, left_out, not_let_in, refused, response, soap_fault, text, unanswered};
use crate::http::rooms::Rooms;
use crate::http::websocket::FrameProperties;
use crate::http::wsdl::RequestedOperation;
use crate::http::{callback, guard, inbound, local, routing};
use crate::runtime::context::{Context, Owner};
use crate::runtime::exchange::Awaited;
use crate::runtime::executor::Full;
use crate::runtime::fault::Fault;
use crate::runtime::guard::Guard;
use crate::runtime::mediator::Flow;
use crate::runtime::panics::{Panicked, caught};
use crate::runtime::plan::Plan;
use crate::runtime::progress::Waits;
use crate::runtime::reference::SequenceRef;
use crate::runtime::request::{Client, Inbound};
use crate::runtime::scope::{Admitted, Opened};
use crate::runtime::services::Services;
use crate::runtime::stage::{self, Way};
use crate::text::Recent;
use arc_swap::ArcSwap;
use message::{Headers, Kind, Method, Payload, Reading, SoapVersion, StandardHeader};
use std::cell::RefCell;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::watch;
use transport::{ConnectionInfo, Cut, Handler, OnEnd, Refused, Request, Response};

/// The bus: the plan in force and what all plans share. It is what listeners hand requests to.
pub struct Bus {
    in_force: ArcSwap<InForce>,
    access: Option<Arc<dyn AccessLog>>,
    /// The generation in force.
    swapped: watch::Sender<u64>,
    /// Clients of WebSockets that hear each other.
    pub(super) rooms: Arc<Rooms>,
}

/// What messages that begin now work with until they end.
struct InForce {
    plan: Arc<Plan>,
    services: Arc<Services>,
}

/// Warns of messages in in-memory stores that a plan does not have: nothing takes them as long as that is so.
fn tell_of_abandoned_stores(plan: &Plan, services: &Services) {
    for (name, waiting) in services.stores.waiting() {
        let stays =
            || plan.store(&name).is_some_and(|store| Arc::ptr_eq(&store, &services.stores.memory(&name)));
        if waiting > 0 && !stays() {
            tracing::warn!(
                target: "busbar::reload",
                store = name,
                "{waiting} messages wait in an in-memory store that the configuration no longer has: they are delivered if it has it \
                 again, and lost when the process ends"
            );
        }
    }
}

impl Bus {
    /// A bus that runs `plan`.
    pub fn new(plan: Plan, services: Arc<Services>, access: Option<Arc<dyn AccessLog>>) -> Bus {
        let swapped = watch::Sender::new(plan.generation);
        plan.begins();
        begins(&services);
        // Another bus of the same process may have done so.
        let _ = services.local.set(local::answer);
        let in_force = InForce { plan: Arc::new(plan), services };
        Bus { in_force: ArcSwap::from_pointee(in_force), access, swapped, rooms: Arc::default() }
    }

    /// The plan in force.
    pub fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.in_force.load().plan)
    }

    /// What flows that begin now work with.
    pub fn services(&self) -> Arc<Services> {
        Arc::clone(&self.in_force.load().services)
    }

    /// Both, of one moment.
    pub(crate) fn in_force(&self) -> (Arc<Plan>, Arc<Services>) {
        let in_force = self.in_force.load();
        (Arc::clone(&in_force.plan), Arc::clone(&in_force.services))
    }

    /// Puts a new plan in force, and the services that it was compiled with; messages in flight finish on those they
    /// began with.
    pub fn swap(&self, plan: Plan, services: Arc<Services>) {
        let generation = plan.generation;
        tell_of_abandoned_stores(&plan, &services);
        plan.begins();
        begins(&services);
        let _ = services.local.set(local::answer);
        self.in_force.store(Arc::new(InForce { plan: Arc::new(plan), services }));
        // Who listens sees the new plan.
        self.swapped.send_replace(generation);
    }

    /// Tells of each plan that comes into force.
    pub(crate) fn generations(&self) -> watch::Receiver<u64> {
        self.swapped.subscribe()
    }

    /// Answers a request; `port`: of the inbound endpoint that it came through; `told`: properties of its message, if it is of a WebSocket.
    pub(crate) async fn answer(
        &self,
        request: Request,
        peer: &ConnectionInfo,
        port: Option<u16>,
        told: Option<&FrameProperties>,
    ) -> Response {
        let received = transport::clock::now();
        let (plan, services) = self.in_force();
        let through =
            port.map(|port| plan.inbound_endpoints.iter().position(|endpoint| endpoint.port == Some(port)));
        let Request { head, body } = request;
        let recorder = self.access.as_ref().map(|log| Recorder::new(log, &head.headers, head.version));
        let (host, content_type) = host_and_type(&head.headers);
        let mut reading = Reading::arrived(&head.headers, true);
        let mut inbound = Inbound {
            client: speaks(&head.method, content_type.as_deref(), reading.kind, &head.headers),
            secure: peer.tls.is_some(),
            tls: peer.tls.clone(),
            peer: peer.peer,
            local: peer.local,
            host,
            content_type,
            service_length: head.target.len(),
            method: head.method,
            target: head.target,
            absolute: head.absolute,
            received,
            through: through.flatten(),
        };
        let route = match through {
            // The inbound endpoint is gone; its listener will be closed.
            Some(None) => Route::Answer(text(503, "nobody listens here any more\n".to_owned())),
            Some(Some(index))
                if plan.inbound_endpoints[index].websocket
                    && told.is_none()
                    && !is_handshake(&inbound.method, &head.headers) =>
            {
                let why = "this address opens WebSockets\n";
                Route::Answer(text(426, why.to_owned()).with("Upgrade", "websocket"))
            }
            _ => route(&plan, &services, &inbound),
        };
        let (owner, service_length) = match route {
            Route::Flow { owner, service_length } => (owner, service_length),
            Route::Answer(response) => {
                return recorded(response, recorder.map(|recorder| recorder.of(&Arc::new(inbound))));
            }
            Route::Callback => {
                let inbound = Arc::new(callback::inbound(inbound));
                let recorder = recorder.map(|recorder| recorder.of(&inbound));
                // Boxed: few requests are such answers, and all have the room of the largest.
                let taken = Box::pin(callback::take(plan, services, inbound, head.headers, body));
                return recorded(taken.await, recorder);
            }
        };
        // Held until there is an answer.
        let _turn = match &services.settings.priorities {
            Some(priorities) if port.is_none() => match priorities.ticket(&services, &inbound, &head.headers)
            {
                Ok(ticket) => Some(Box::pin(ticket.turn()).await),
                Err(Full) => {
                    let why = "the queue of its priority is full";
                    return turned_away(&plan, &services, inbound, &head.headers, why, recorder, owner);
                }
            },
            _ => None,
        };
        let services = match Admitted::new(services) {
            Ok(admitted) => admitted.begins(),
            Err((services, why)) => {
                return turned_away(&plan, &services, inbound, &head.headers, why, recorder, owner);
            }
        };
        inbound.service_length = service_length;
        reading.rest = inbound.client == Client::Rest;
        let mut payload = Payload::arrived_as(body, &head.headers, reading);
        if payload.reading().kind == Kind::Form
            && !matches!(inbound.method, Method::Get | Method::Head | Method::Delete)
        {
            let proxy = matches!(owner, Owner::Proxy(_));
            let version = if proxy { SoapVersion::V11 } else { SoapVersion::V12 };
            payload.posted_with(inbound.query().unwrap_or_default(), version);
        }
        let inbound = Arc::new(inbound);
        let recorder = recorder.map(|recorder| recorder.of(&inbound));
        let mut context = Context::new(Arc::clone(&plan), services, inbound, head.headers, payload);
        for (name, value) in told.unwrap_or_default() {
            context.properties.set(*name, value.clone());
        }
        let mut accounted = Accounted { opened: Opened::new(&mut context), recorder };
        accounted.opened.context.owner = owner;
        let response = match too_large(accounted.opened.context).await {
            Some(response) => response,
            None => serve_counted(accounted.opened.context, &plan).await,
        };
        if let Some(recorder) = &mut accounted.recorder {
            recorder.served(accounted.opened.context);
        }
        crate::engine::compute::let_go(accounted.opened.context);
        accounted.opened.end();
        recorded(response, accounted.recorder.take())
    }
}

/// The answer to a request that is larger than the settings allow. Like WSO2's, it comes before any flow, and ends the connection.
async fn too_large(context: &mut Context) -> Option<Response> {
    if !context.services.settings.screening.size {
        return None;
    }
    let fault = Box::pin(screening::fits(context)).await.err()?;
    context.payload.give_up();
    crate::runtime::report::fault(context, &fault);
    let mut response = unanswered(context, Some(fault.status));
    let (plan, services, inbound) = (&context.plan, &context.services, &context.inbound);
    say_who_may_read(plan, services, inbound, context.owner, &context.headers, &mut response);
    response.close = true;
    Some(response)
}

/// What the settings say of the queues of requests comes into force.
fn begins(services: &Services) {
    if let Some(priorities) = &services.settings.priorities {
        priorities.begins(services);
    }
}

impl Handler for Bus {
    // Not another async fn around it: that would move the request once more.
    fn handle(&self, request: Request, peer: &ConnectionInfo) -> impl Future<Output = Response> + Send {
        self.answer(request, peer, None, None)
    }

    fn cut(&self, cut: &Cut<'_>) {
        crate::runtime::report::cut(cut);
    }

    fn refused(&self, refused: &Refused<'_>) {
        crate::runtime::report::refused(refused);
        if let Some(access) = &self.access {
            super::access::refused(&**access, refused);
        }
    }
}

/// Host and media type of a request.
fn host_and_type(headers: &Headers) -> (Arc<str>, Option<Arc<str>>) {
    thread_local! {
        static LAST: RefCell<[Recent; 2]> = const { RefCell::new([Recent::NONE; 2]) };
    }
    LAST.with_borrow_mut(|[host, content_type]| {
        let text = |name, last: &mut Recent| last.text(headers.get_known_bytes(name)?);
        let host = text(StandardHeader::Host, host).unwrap_or_else(|| "localhost".into());
        (host, text(StandardHeader::ContentType, content_type))
    })
}

/// A response whose end is recorded, where there is a log.
#[inline]
fn recorded(mut response: Response, recorder: Option<Box<Recorder>>) -> Response {
    response.on_end = recorder.map(|recorder| -> Box<dyn OnEnd> { recorder });
    response
}

/// The answer to a request that there is no room for, and the line of the access log.
#[cold]
fn turned_away(
    plan: &Plan,
    services: &Services,
    inbound: Inbound,
    headers: &Headers,
    why: &'static str,
    recorder: Option<Box<Recorder>>,
    owner: Owner,
) -> Response {
    let mut response = shed(services, &inbound, why);
    say_who_may_read(plan, services, &inbound, owner, headers, &mut response);
    let inbound = Arc::new(inbound);
    recorded(response, recorder.map(|recorder| recorder.of(&inbound).by(plan.owner_name(owner))))
}

/// Says in the answer to a request that is refused ahead of its flow which other origins may read it, if it is for an API.
#[cold]
fn say_who_may_read(
    plan: &Plan,
    services: &Services,
    inbound: &Inbound,
    owner: Owner,
    request: &Headers,
    response: &mut Response,
) {
    if !matches!(owner, Owner::Proxy(_)) {
        let cors = routing::cors_of(plan, services, inbound);
        super::cors::complete_refusal(cors, request, &mut response.head.headers);
    }
}

/// Refuses a message that there is no room for.
#[cold]
fn shed(services: &Services, inbound: &Inbound, why: &'static str) -> Response {
    services.scopes.refuse(why);
    busy(inbound, why)
}

/// Runs the flow of a request to its answer, whatever happens, and takes note of that.
pub(super) async fn serve_counted(context: &mut Context, plan: &Plan) -> Response {
    let served = caught(pin!(serve(context, plan))).await;
    let mut response = served.unwrap_or_else(|why| panicked(context, &why));
    if !matches!(context.owner, Owner::Proxy(_)) {
        super::cors::complete(context, &mut response.head.headers);
    }
    if context.progress.observed {
        crate::observe::answered(context, &mut response);
    }
    // An API is known only now; what answers may be a message of another plan than the one that began.
    let counters = match context.owner {
        Owner::Main => None,
        Owner::Proxy(index) => Some(&context.plan.proxies[index].counters),
        Owner::Resource(api, _) => Some(&context.plan.apis[api].counters),
        Owner::Inbound(index) => Some(&context.plan.inbound_endpoints[index].counters),
    };
    if let Some(counters) = counters {
        counters.record(elapsed(context.inbound.received), response.head.status >= 500);
    }
    response
}

enum Route {
    Flow {
        owner: Owner,
        service_length: usize,
    },
    Answer(Response),
    /// An answer of a backend ([`crate::engine::callback`]).
    Callback,
}

/// The methods that some service or API may take.
const METHODS: &str = "GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH";

/// Finds out who serves a request.
fn route(plan: &Plan, services: &Services, inbound: &Inbound) -> Route {
    if let Method::Other(_) = &inbound.method {
        return Route::Answer(text(
            501,
            format!("the method {} is not implemented\n", inbound.method.as_str()),
        ));
    }
    let target = inbound.target.as_str();
    // OPTIONS of the server as a whole (RFC 9110, section 9.3.7).
    if target == "*" {
        return Route::Answer(Response::empty(200).with("Allow", METHODS));
    }
    // The absolute form names the host again; the path decides.
    let start = match target.strip_prefix("http://").or_else(|| target.strip_prefix("https://")) {
        Some(rest) => target.len() - rest.len() + rest.find(['/', '?']).unwrap_or(rest.len()),
        None => 0,
    };
    let local = &target[start..];
    if let Some(index) = inbound.through {
        let endpoint = &plan.inbound_endpoints[index];
        if !endpoint.activation.is_on() {
            return Route::Answer(text(
                503,
                format!("the inbound endpoint {} is suspended\n", endpoint.name),
            ));
        }
        if !endpoint.reaches_services(target) {
            return Route::Flow { owner: Owner::Main, service_length: start };
        }
    }
    if let Some(rest) = local.strip_prefix("/services") {
        if inbound.method == Method::Get
            && (rest.is_empty() || rest.starts_with(['/', '?']))
            && rest.trim_start_matches('/').split('?').next().unwrap_or("").is_empty()
        {
            return Route::Answer(if services.settings.list_services {
                crate::http::wsdl::index(plan, inbound)
            } else {
                text(403, "the services are not listed\n")
            });
        }
        if let Some(rest) = rest.strip_prefix('/')
            && let Some((index, length)) = find_proxy(plan, rest)
        {
            let service_length = start + "/services/".len() + length;
            return proxy_route(plan, services, inbound, index, service_length);
        }
        if rest.strip_prefix('/').is_some_and(|rest| callback::is_address(services, rest)) {
            return Route::Callback;
        }
    }
    // Tables of a data service.
    if let Some(rest) = local.strip_prefix("/odata/")
        && let Some((index, length)) = find_proxy(plan, rest)
        && may_have_tables(plan, index, &rest[..length])
    {
        return proxy_route(plan, services, inbound, index, start + "/odata/".len() + length);
    }
    if target == "/favicon.ico" {
        return Route::Answer(Response::empty(404));
    }
    Route::Flow { owner: Owner::Main, service_length: start }
}

/// Whether a data service serves tables. One with WS-Security does not: the path, which says what is read or changed, is no part of what a
/// client signs. Of one that is left out that is not known: its clients learn that it is not available.
fn may_have_tables(plan: &Plan, index: usize, name: &str) -> bool {
    if let Some(proxy) = plan.proxies.get(index) {
        return proxy.stages.is_empty()
            && plan.data_service(name).is_some_and(|service| service.has_tables());
    }
    let faulty = plan.left_out.proxies.get(index - plan.proxies.len());
    let faulty = faulty.and_then(|&at| plan.faulty.get(at));
    faulty.is_some_and(|artifact| artifact.kind == config::ArtifactKind::DataService)
}

/// The proxy that a path after `/services/` names, and the length of its name there (with a port suffix).
pub(super) fn find_proxy(plan: &Plan, rest: &str) -> Option<(usize, usize)> {
    // Short, as names are: a loop has ended before a vectorised search has begun.
    let path_end = rest.bytes().position(|byte| byte == b'?').unwrap_or(rest.len());
    let path = &rest[..path_end];
    // Nothing that is longer than every name is looked up: a path of many parts would be hashed once for each.
    let named = |name: &str| match name.len() <= plan.longest_proxy_name {
        true => plan.proxy_names.get(name).copied(),
        false => None,
    };
    // Names may have slashes: the longest one wins.
    let (mut end, mut dot) = (path.len(), path.rfind('.'));
    loop {
        let name = &path[..end];
        if let Some(index) = named(name) {
            return Some((index, end));
        }
        if dot.is_some_and(|dot| dot >= end) {
            dot = name.rfind('.');
        }
        if let Some(dot) = dot
            && let Some(index) = named(&name[..dot])
        {
            let suffix = &name[dot + 1..];
            if suffix.ends_with("Endpoint")
                || plan.proxies.get(index).is_some_and(|proxy| proxy.wsdl.has_port(suffix))
            {
                return Some((index, end));
            }
        }
        end = path[..end].rfind('/')?;
    }
}

fn proxy_route(
    plan: &Plan,
    services: &Services,
    inbound: &Inbound,
    index: usize,
    service_length: usize,
) -> Route {
    let Some(proxy) = plan.proxies.get(index) else {
        let faulty = plan.left_out.proxies.get(index - plan.proxies.len());
        return Route::Answer(left_out(plan, inbound, faulty));
    };
    let refused = |reason: String| Route::Answer(refused(inbound, &reason));
    let reachable = if inbound.secure { proxy.https } else { proxy.http };
    if !reachable {
        return refused(format!(
            "The service cannot be found for the endpoint reference (EPR) {}",
            inbound.path()
        ));
    }
    if !proxy.activation.is_on() {
        return refused(format!("The system is attempting to access an inactive service: {}", proxy.name));
    }
    if proxy.inbound_only && inbound.through.is_none() {
        return Route::Answer(Response::empty(202));
    }
    if inbound.method == Method::Get
        && let Some(query) = inbound.query()
        && let Some(response) = proxy.wsdl.answer(query, proxy, inbound, services.listening.get())
    {
        return Route::Answer(response);
    }
    Route::Flow { owner: Owner::Proxy(index), service_length }
}

/// Runs the flow of a request to its answer.
async fn serve(context: &mut Context, plan: &Plan) -> Response {
    match context.owner {
        Owner::Proxy(index) => {
            let proxy = &plan.proxies[index];
            if let Some(guard) = &proxy.guard
                && let Some(response) = Box::pin(guarded(guard, context)).await
            {
                return response;
            }
            // What is encrypted cannot be looked into yet.
            if let Client::Soap(version) = context.inbound.client
                && !stage::are_sealed(&proxy.stages)
            {
                match proxy.wsdl.asked(context).await {
                    Ok(RequestedOperation::Operation(operation)) => context.attach(operation),
                    Ok(RequestedOperation::Anything) => {}
                    Ok(RequestedOperation::Unknown) => {
                        let action = context.soap_action().unwrap_or_default();
                        let reason = format!(
                            "The endpoint reference (EPR) for the Operation not found is {} and the WSA Action = {action}",
                            context.inbound.path()
                        );
                        return soap_fault(version, &reason);
                    }
                    Err(fault) => {
                        raise(context, fault);
                        return unanswered(context, None);
                    }
                }
            } else if let Some(operation) = proxy.wsdl.asked_by_path(&context.inbound) {
                context.attach(Arc::clone(operation));
            }
            for (name, value) in &proxy.properties {
                context.properties.set(Arc::clone(name), value.clone());
            }
            start(context, proxy.in_sequence.as_ref());
        }
        _ => {
            if let Some(response) = dispatch_api(context, plan).await {
                return response;
            }
        }
    }
    finish(context).await
}

/// Asks the guard of a proxy service; the answer for a request that goes no further.
async fn guarded(guard: &Arc<Guard>, context: &mut Context) -> Option<Response> {
    if let Some(response) = guard::check(guard, context).await {
        return Some(response);
    }
    let caller = guard::let_in(guard, context)?;
    guard::allows(guard, &caller, None, context)
}

/// Begins the flow with a list that may not exist.
fn start(context: &mut Context, list: Option<&SequenceRef>) {
    let resolved = list.map(|list| list.resolve(context)).transpose();
    match resolved {
        Ok(list) => begin_request(context, list),
        Err(fault) => {
            begin_request(context, None);
            raise(context, fault);
        }
    }
}

/// Chooses API and resource; without one, `main` runs. `Some`: answered already.
async fn dispatch_api(context: &mut Context, plan: &Plan) -> Option<Response> {
    let dispatched = loop {
        let dispatched = match (context.inbound.through, plan.api_rules.is_empty()) {
            (Some(index), _) => inbound::dispatch(plan, context, index),
            (None, true) => routing::Dispatched::Main,
            (None, false) => routing::dispatch(plan, context, routing::DEFAULT_LISTENER),
        };
        let routing::Dispatched::Ask(guard) = dispatched else { break dispatched };
        // Boxed: most requests meet no guard. It remembers the caller that it has let in, so each is asked once.
        if let Some(response) = Box::pin(guard::check(&guard, context)).await {
            return Some(response);
        }
    };
    match dispatched {
        routing::Dispatched::Inbound(index) => {
            context.owner = Owner::Inbound(index);
            start(context, plan.inbound_endpoints[index].sequence.as_ref());
            None
        }
        routing::Dispatched::Main if plan.left_out.main.is_some() => {
            Some(left_out(plan, &context.inbound, plan.left_out.main.as_ref()))
        }
        routing::Dispatched::Main => {
            context.owner = Owner::Main;
            begin_request(context, Some(plan.main));
            None
        }
        routing::Dispatched::Resource { api, resource } => {
            context.owner = Owner::Resource(api, resource);
            start(context, plan.apis[api].resources[resource].in_sequence.as_ref());
            None
        }
        routing::Dispatched::Handler(list) => {
            begin_request(context, Some(list));
            None
        }
        routing::Dispatched::Answer(response) => Some(response),
        // `dispatch_api` has asked the guard already.
        routing::Dispatched::Ask(_) => Some(Response::empty(403)),
    }
}

/// The answer for a client whose flow panicked.
#[cold]
fn panicked(context: &mut Context, why: &Panicked) -> Response {
    report_panic(context, why);
    unanswered(context, None)
}

/// Drives the flow until there is an answer.
async fn finish(context: &mut Context) -> Response {
    let screening = context.services.settings.screening;
    if (screening.xml || screening.json)
        && let Err(fault) = Box::pin(screening::is_well_formed(context)).await
    {
        raise(context, fault);
    }
    if !context.passes(Way::In) {
        let plan = Arc::clone(&context.plan);
        let stages = plan.stages(context.owner);
        if let Err(fault) = stage::comes_in(stages, context).await {
            if stage::are_sealed(stages) {
                return not_let_in(context, &fault);
            }
            raise(context, fault);
        }
    }
    let mut first: Option<Flow> = None;
    loop {
        match advance(context, first.take()).await {
            Ending::Respond if is_accepted(context) => {
                tracing::debug!(message_id = %context.message_id(), "FORCE_SC_ACCEPTED: 202 instead of the answer");
                if let Some(exchange) = &context.exchange {
                    exchange.close();
                }
                return Response::empty(202);
            }
            Ending::Respond => {
                context.keep_first_answer();
                match response(context).await {
                    Ok(response) => {
                        if let Some(exchange) = &context.exchange {
                            exchange.close();
                        }
                        return response;
                    }
                    Err(fault) => {
                        if raise(context, fault).is_some() {
                            return unanswered(context, None);
                        }
                    }
                }
            }
            Ending::Nothing => {
                let Some(Awaited { answer, voice }) = context.awaited.take() else {
                    return unanswered(context, None);
                };
                let exchange = context.exchange.take();
                drop(voice);
                match answer.await {
                    Ok(answer) => {
                        context.end_with(answer);
                        match response(context).await {
                            Ok(response) => return response,
                            Err(fault) => {
                                raise(context, fault);
                            }
                        }
                    }
                    Err(_) => {
                        let failure = exchange.and_then(|exchange| exchange.failure());
                        if failure.is_some() {
                            context.progress.asked.send();
                        }
                        return unanswered(context, failure);
                    }
                }
            }
            Ending::Detach(flow) => {
                let limits = context.services.limits.clone();
                if let Err(error) = context.payload.buffer(&limits).await {
                    let fault = Fault::from(error);
                    if raise(context, fault).is_some() {
                        return unanswered(context, None);
                    }
                    continue;
                }
                let child = context.child("a flow whose client has its 202");
                // The client has its answer; branches that run already stay beside the rest of the flow.
                let voice = context.awaited.take().map(|awaited| awaited.voice);
                let exchange = context.exchange.take();
                let frames = std::mem::take(&mut context.frames);
                let handlers = std::mem::take(&mut context.handlers);
                let functions = std::mem::take(&mut context.functions);
                let mut rest = context.take();
                rest.frames = frames;
                rest.handlers = handlers;
                rest.functions = functions;
                rest.exchange = exchange;
                rest.progress.client = Waits::Nobody;
                child.spawn(async move {
                    drive_to_end(rest, Some(flow)).await;
                    drop(voice);
                });
                return Response::empty(202);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{self, Tested};

    fn tested(artifacts: &str) -> Tested {
        let registry = testing::registry(Vec::new());
        let text = format!("<definitions xmlns='{}'>{artifacts}</definitions>", config::SYNAPSE);
        testing::configuration(&registry, &text)
    }

    /// A proxy whose backend says its name.
    fn proxy(name: &str, more: &str) -> String {
        let backend = testing::backend("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nit");
        format!(
            "<proxy name='{name}' {more}><target><endpoint><address uri='{backend}'/></endpoint></target></proxy>"
        )
    }

    #[test]
    fn requests_find_their_service_by_the_longest_name() {
        let tested = tested(&[proxy("P", ""), proxy("P/Q", ""), proxy("S", "transports='https'")].concat());
        let served = |kind: &str, name: &str| {
            let all = tested.bus.services().metrics.all();
            let counted =
                all.iter().find(|(kind_of, counted, _)| (*kind_of, counted.as_str()) == (kind, name));
            counted.map_or(0, |(.., counters)| counters.totals().requests)
        };
        for (path, name) in [
            ("/services/P", "P"),
            ("/services/P?a=b", "P"),
            ("/services/P/more/of/it", "P"),
            ("/services/P.SOAP11Endpoint", "P"),
            ("/services/P.httpEndpoint/x", "P"),
            ("http://elsewhere.example/services/P", "P"),
            ("/services/P/Q", "P/Q"),
            ("/services/P/Q/R", "P/Q"),
            ("/services/P/x.y/z", "P"),
            ("/services/P.SOAP11Endpoint/x.y/z", "P"),
            (&format!("/services/P{}", "/a.".repeat(1000)), "P"),
        ] {
            let before = served("proxy", name);
            let response = tested.ask("POST", path, &[("Content-Type", "text/plain")], "x");
            assert_eq!((response.status, response.body.as_str()), (200, "it"), "{path}");
            assert_eq!(served("proxy", name), before + 1, "{path}");
        }
        let response = tested.ask("POST", "/services/S", &[], "");
        assert!(response.status == 500 && response.body.contains("service cannot be found"), "{response:?}");
    }

    /// What is wrong may stand elsewhere, in a template or an entry.
    #[test]
    fn a_faulty_api_is_told_from_none_wherever_the_error_is() {
        fn compile(element: &config::Element, compiler: &mut crate::Compiler<'_>) -> crate::Compiled {
            let place = match element.attr("elsewhere") {
                Some(_) => diagnostics::Span::BUILT_IN,
                None => element.start_tag(),
            };
            compiler.error("bad-value", "it is wrong", place, "here");
            None
        }
        const PAGE: crate::Page = crate::Page {
            family: crate::Family::Core,
            semantics: "",
            inside: &[],
            needs: &[],
            refused: &[],
            faults: &[],
        };
        static WRONG: crate::Definition = crate::Definition {
            name: "wrong",
            summary: "",
            attributes: &[crate::Attribute::optional("elsewhere", crate::Values::Text, "")],
            children: crate::Children::None,
            page: PAGE,
            compile,
        };
        let api = |name: &str, step: &str| {
            format!(
                "<api name='{name}' context='/{name}'><resource methods='GET'><inSequence>{step}</inSequence></resource></api>"
            )
        };
        let artifacts = [api("here", "<wrong/>"), api("there", "<wrong elsewhere='1'/>")].concat();
        // The built-in main sequence is made of mediators that this registry has not.
        let main = "<sequence name='main'/>";
        let text = format!("<definitions xmlns='{}'>{main}{artifacts}</definitions>", config::SYNAPSE);
        let tested = testing::configuration(&testing::registry(vec![&WRONG]), &text);
        for (path, left_out) in [("/here", true), ("/there/x", true), ("/nowhere", false)] {
            assert_eq!(tested.ask("GET", path, &[], "").status == 503, left_out, "{path}");
        }
    }

    #[test]
    fn what_the_bus_answers_itself() {
        let tested = tested(&[proxy("P", "startOnLoad='false'")].concat());
        for (method, path, status, says) in [
            ("BREW", "/services/P", 501, "BREW is not implemented"),
            ("GET", "/favicon.ico", 404, ""),
            ("OPTIONS", "*", 200, ""),
            ("POST", "/services/P", 500, "inactive service"),
            ("GET", "/services/", 200, "P"),
        ] {
            let response = tested.ask(method, path, &[], "");
            assert_eq!(response.status, status, "{method} {path}");
            assert!(response.body.contains(says), "{method} {path}: {response:?}");
            assert_eq!(response.headers.get("Allow").is_some(), path == "*", "{response:?}");
        }
    }
}
