use super::*;
use crate::runtime::stage::{Staged, Stages};
use crate::runtime::{mediator::Need, stage};
use crate::state::identity::Identity;
use crate::testing::{self, Tested, block_on};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const TEXT: (&str, &str) = ("Content-Type", "text/plain");

/// An address that nothing listens on.
const DEAD: &str = "http://127.0.0.1:1";

fn tested(backend: &str) -> Tested {
    tested_with(backend, |_| {})
}

fn tested_with(backend: &str, prepare: impl FnOnce(&mut crate::Services)) -> Tested {
    let registry = testing::registry(Vec::new());
    let text = format!(
        "<definitions xmlns='{}'><sequence name='main'/><sequence name='fault'/>\
         <endpoint name='e'><address uri='{backend}/'/></endpoint></definitions>",
        config::SYNAPSE
    );
    testing::configuration_with(&registry, &text, prepare)
}

/// Where `e` sends.
fn named(tested: &Tested) -> Arc<dyn Endpoint> {
    tested.bus.plan().endpoint("e").expect("it is there")
}

fn destination(tested: &Tested, blocking: bool) -> Destination {
    Destination { blocking, ..Destination::to(named(tested)) }
}

/// Sends, and receives the whole answer.
fn sent(context: &mut Context, destination: Destination) -> Result<String, Fault> {
    block_on(async {
        context.send_and_receive(destination).await?;
        context.receive_body().await?;
        let bytes = context.payload.bytes().map(|bytes| bytes.to_vec()).unwrap_or_default();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    })
}

#[test]
fn the_answer_takes_the_place_of_the_request() {
    let tested = tested(&testing::backend(""));
    let mut context = tested.context(&[TEXT, ("X-Own", "1")], "it");
    context.properties.set("kept", Value::from("yes"));
    context.set_axis2("CHUNKED", Value::from("yes"));
    context.client.set("gone", Value::from("yes"));
    assert_eq!(sent(&mut context, destination(&tested, false)).expect("an answer"), "it");
    assert_eq!(context.headers.get("X-Request"), Some("POST / HTTP/1.1"));
    assert_eq!((context.status, context.headers.get("X-Own")), (Some(200), None));
    assert_eq!(context.properties.get("kept").map(ToString::to_string), Some("yes".to_owned()));
    assert!(context.axis2.is_empty() && context.client.is_empty(), "they were about the request");
    assert!(context.is_answered() && !context.request_headers);
}

#[test]
fn the_method_is_that_of_the_message_unless_it_says_another() {
    let tested = tested(&testing::backend(""));
    for (method, body) in [("PUT", "it"), ("DELETE", "it"), ("GET", "")] {
        let mut context = tested.context(&[TEXT], "it");
        context.set_axis2("HTTP_METHOD", Value::from(method));
        assert_eq!(sent(&mut context, destination(&tested, false)).expect("an answer"), body, "{method}");
        let line = format!("{method} / HTTP/1.1");
        assert_eq!(context.headers.get("X-Request"), Some(line.as_str()));
    }
}

#[test]
fn what_could_not_be_sent_can_be_sent_again() {
    let (dead, alive) = (tested(DEAD), tested(&testing::backend("")));
    let mut context = dead.context(&[TEXT, ("X-Own", "1")], "it");
    let fault = sent(&mut context, destination(&dead, false)).expect_err("nobody is there");
    assert_eq!(fault.code.to_string(), code::CONNECTION_FAILED.to_string());
    assert_eq!((fault.protocol_state, fault.processed, fault.sending), (Some(0), false, true));
    assert!(fault.peer.is_some_and(|peer| peer.contains("127.0.0.1:1")));
    assert_eq!(context.headers.get("X-Own"), Some("1"));
    assert!(context.progress.asked.was_sent() && !context.is_answered());
    assert_eq!(sent(&mut context, destination(&alive, false)).expect("an answer"), "it");
    let mut blocking = dead.context(&[TEXT], "it");
    let fault = sent(&mut blocking, destination(&dead, true)).expect_err("nobody is there");
    assert_eq!(fault.code.to_string(), code::BLOCKING_SENDER_FAILED.to_string());
    assert!(blocking.properties.get("blocking.sender.error").is_some_and(Value::is_true));
    assert!(context.properties.get("blocking.sender.error").is_none());
}

#[test]
fn statuses_that_are_failures_of_a_blocking_call() {
    let properties = |more: Option<&str>, fewer: Option<&str>| {
        let tested = tested(DEAD);
        let mut context = tested.context(&[], "");
        more.iter().for_each(|codes| context.set_axis2("ERROR_HTTP_STATUS_CODES", Value::from(*codes)));
        fewer
            .iter()
            .for_each(|codes| context.properties.set("NON_ERROR_HTTP_STATUS_CODES", Value::from(*codes)));
        let refusals = Refusals::of(&context);
        (200..600).filter(|&status| refusals.contains(status)).collect::<Vec<u16>>()
    };
    assert_eq!(properties(None, None), [302, 401, 403, 404, 503]);
    assert_eq!(properties(Some("418, 500"), Some("404 ,503")), [302, 401, 403, 418, 500]);
    // What is named as both is a failure; what is not a number names nothing.
    assert_eq!(properties(Some("404"), Some("404,all")), [302, 401, 403, 404, 503]);

    let tested = tested(&testing::backend("HTTP/1.1 404 Not Found\r\n\r\nno"));
    let mut context = tested.context(&[TEXT], "it");
    let fault = sent(&mut context, destination(&tested, true)).expect_err("a failure");
    assert_eq!((fault.code.to_string(), fault.processed), ("404".to_owned(), true));
    assert_eq!(fault.message, "Transport error: 404 Error: Not Found");
    let mut context = tested.context(&[TEXT], "it");
    assert_eq!(sent(&mut context, destination(&tested, false)).expect("an answer"), "no");
}

#[test]
fn a_soap_fault_is_a_failure_where_a_property_says_so() {
    let response = "HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/xml\r\n\r\n\
        <s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body><s:Fault><faultcode>s:Server</faultcode>\
        <faultstring>no</faultstring></s:Fault></s:Body></s:Envelope>";
    let tested = tested(&testing::backend(response));
    for (forced, fails) in [("true", true), ("false", false)] {
        let mut context = tested.context(&[("Content-Type", "text/xml"), ("SOAPAction", "a")], "<a/>");
        context.properties.set("FORCE_ERROR_ON_SOAP_FAULT", Value::from(forced));
        let response = sent(&mut context, destination(&tested, false));
        assert_eq!(response.is_err(), fails, "{forced}");
        if let Err(fault) = response {
            assert_eq!(fault.code.to_string(), code::SOAP_FAULT.to_string());
            assert!(fault.processed, "the backend has dealt with the message");
        }
    }
}

/// An endpoint around another one.
struct Around {
    inner: Arc<dyn Endpoint>,
    calls: AtomicUsize,
    choice: fn(&Around, &mut Context, &Attempts) -> Result<Choice, Fault>,
    /// It stands for itself.
    circle: bool,
}

impl Around {
    fn of(
        tested: &Tested,
        choice: fn(&Around, &mut Context, &Attempts) -> Result<Choice, Fault>,
    ) -> Arc<Around> {
        Arc::new(Around { inner: named(tested), calls: AtomicUsize::new(0), choice, circle: false })
    }
}

impl Endpoint for Around {
    fn name(&self) -> &str {
        "around"
    }

    fn choose(&self, context: &mut Context, attempts: &Attempts, _: &mut Step) -> Result<Choice, Fault> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        (self.choice)(self, context, attempts)
    }

    fn stands_for(&self, _: &mut Context) -> Result<Option<Arc<dyn Endpoint>>, Fault> {
        if !self.circle {
            return Ok(None);
        }
        let (inner, calls) = (Arc::clone(&self.inner), AtomicUsize::new(0));
        Ok(Some(Arc::new(Around { inner, calls, choice: self.choice, circle: true })))
    }

    fn leaves(&self) -> Vec<Arc<dyn Leaf>> {
        self.inner.leaves()
    }
}

#[test]
fn attempts_end_with_the_fault_of_the_last_one() {
    let tested = tested_with(DEAD, |services| services.settings.attempts = 7);
    let endless = Around::of(&tested, |around, _, _| Ok(Choice::Leaf(around.leaves().remove(0))));
    let mut context = tested.context(&[TEXT], "it");
    let fault = sent(&mut context, Destination::to(Arc::clone(&endless) as _)).expect_err("nobody is there");
    assert_eq!(fault.code.to_string(), code::CONNECTION_FAILED.to_string());
    assert_eq!(endless.calls.load(Ordering::Relaxed), 7);
}

#[test]
fn keys_that_lead_on_and_on_are_a_fault() {
    let tested = tested(DEAD);
    let nowhere = |_: &Around, _: &mut Context, _: &Attempts| Err(Fault::new("nowhere"));
    let (inner, calls) = (named(&tested), AtomicUsize::new(0));
    let endless = Around { inner, calls, choice: nowhere, circle: true };
    let mut context = tested.context(&[TEXT], "it");
    let fault = sent(&mut context, Destination::to(Arc::new(endless))).expect_err("a circle");
    assert_eq!(fault.code.to_string(), code::INDIRECT_NOT_READY.to_string());
    assert!(fault.message.contains("lead round in a circle"), "{}", fault.message);
}

#[test]
fn a_list_of_recipients_is_copies_and_cannot_be_called() {
    let tested = tested(&testing::backend(""));
    let list = Around::of(&tested, |around, _, _| {
        Ok(Choice::Everyone(vec![Arc::clone(&around.inner), Arc::clone(&around.inner)]))
    });
    let mut context = tested.context(&[TEXT], "it");
    let sent_to = block_on(send(&mut context, Destination::to(Arc::clone(&list) as _)));
    let Ok(Sent::Split(split)) = sent_to else { panic!("copies") };
    assert_eq!((split.count, split.continue_parent, split.sequential), (2, false, false));
    let id = context.message_id();
    for part in split.parts {
        assert!(matches!(part.target, BranchTarget::Endpoint(_)));
        let correlation = part.context.properties.get("aggregateCorelation").map(ToString::to_string);
        assert_eq!(correlation, Some(id.clone()), "an aggregate knows them by it");
        assert_eq!(part.context.payload.bytes().map(|bytes| bytes.to_vec()), Some(b"it".to_vec()));
    }
    let fault = sent(&mut context, Destination::to(list)).expect_err("no order");
    assert!(fault.message.contains("recipient list"), "{}", fault.message);
}

/// A stage that notes when it is met.
struct Notes {
    name: &'static str,
    passes: bool,
    met: Arc<Mutex<Vec<String>>>,
}

impl Stage for Notes {
    fn name(&self) -> &'static str {
        self.name
    }

    fn need(&self, way: Way) -> Need {
        if way == Way::Out { Need::Whole } else { Need::Headers }
    }

    fn reason(&self, _: Way) -> &'static str {
        "it notes"
    }

    fn passes(&self, _: Way, _: &Context) -> bool {
        self.passes
    }

    fn comes_in<'a>(&'a self, context: &'a mut Context) -> Staged<'a> {
        let status = context.status;
        Box::pin(async move {
            crate::state::lock(&self.met).push(format!("{} in {status:?}", self.name));
            Ok(())
        })
    }

    fn goes_out(&self, context: &mut Context, to: Option<&Outgoing>) -> Result<(), Fault> {
        assert!(!context.payload.is_unread(), "it reads the body");
        crate::state::lock(&self.met).push(format!("{} out {}", self.name, to.is_some()));
        Ok(())
    }
}

/// A leaf with stages.
struct Staging(Arc<dyn Leaf>, Stages);

impl Leaf for Staging {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn state(&self) -> &'static str {
        "active"
    }

    fn identity(&self) -> &Arc<Identity> {
        self.0.identity()
    }

    fn succeeded(&self) {}

    fn failed(&self, _: i32, _: &dyn std::fmt::Display, _: u64) {}

    fn switch(&self, _: bool) {}

    fn outgoing(&self, context: &mut Context) -> Result<Outgoing, Fault> {
        self.0.outgoing(context)
    }

    fn stages(&self) -> &[Arc<dyn Stage>] {
        &self.1
    }

    fn counters(&self) -> &crate::state::metrics::Counters {
        self.0.counters()
    }
}

#[test]
fn stages_are_met_from_the_wire_to_the_flow_and_back() {
    let tested = tested(&testing::backend(""));
    let met = Arc::new(Mutex::new(Vec::new()));
    let stage = |name, passes| -> Arc<dyn Stage> { Arc::new(Notes { name, passes, met: Arc::clone(&met) }) };
    let stages = vec![stage("first", false), stage("idle", true), stage("last", false)];
    let leaf: Arc<dyn Leaf> = Arc::new(Staging(named(&tested).leaves().remove(0), stages));
    let mut context = tested.context(&[TEXT], "it");
    block_on(attempt(&mut context, &leaf, None, false)).expect("an answer");
    let seen = std::mem::take(&mut *crate::state::lock(&met));
    assert_eq!(seen, ["last out true", "first out true", "first in Some(200)", "last in Some(200)"]);
    // Where the request cannot leave, no stage sees an answer.
    let tested = self::tested(DEAD);
    let stages = vec![stage("first", false)];
    let leaf: Arc<dyn Leaf> = Arc::new(Staging(named(&tested).leaves().remove(0), stages));
    let mut context = tested.context(&[TEXT], "it");
    assert!(block_on(attempt(&mut context, &leaf, None, false)).is_err());
    assert_eq!(*crate::state::lock(&met), ["first out true"]);
}

#[test]
fn a_message_that_every_stage_passes_is_not_touched() {
    let tested = tested(DEAD);
    let met = Arc::new(Mutex::new(Vec::new()));
    let idle: Stages = vec![Arc::new(Notes { name: "idle", passes: true, met: Arc::clone(&met) })];
    let mut context = tested.context(&[TEXT], "it");
    block_on(async {
        stage::comes_in(&idle, &mut context).await.expect("it passes");
        stage::goes_out(&idle, &mut context, None).expect("it passes");
    });
    assert!(crate::state::lock(&met).is_empty());
    // The stages of services: plain bodies pass, and SOAP without such headers too.
    let soap = |header: &str| {
        let body = format!(
            "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'>{header}<s:Body/></s:Envelope>"
        );
        tested.context(&[("Content-Type", "text/xml"), ("SOAPAction", "a")], &body.replace('\'', "\""))
    };
    assert!(tested.context(&[TEXT], "it").passes(Way::In));
    assert!(soap("").passes(Way::In));
    let with = soap("<s:Header><a:To xmlns:a='http://www.w3.org/2005/08/addressing'>x</a:To></s:Header>");
    assert!(!with.passes(Way::In) && with.passes(Way::Out));
}
