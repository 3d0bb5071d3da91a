//! `throttle`: admits so many requests at once, and so many of a caller in a span of time; the others are rejected.
//!
//! Counters live beside the plan, by the artifact and the mediator's `id`: what a reload finds, and what several throttles
//! with one id in one artifact share.

mod policy;

use crate::entry_cache::{EntryCache, warn_missing};
use config::Element;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Family, Fault, Flow, Inside, ListId,
    Mediator, Moves, Need, Page, SequenceRef, Step, Values, lock,
};
use policy::{Access, Limit, Policy};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// `<throttle id [onAccept] [onReject]><policy [key]/><onAccept/>?<onReject/>?</throttle>`
pub const DEFINITION: Definition = Definition {
    name: "throttle",
    summary: "Limits how many requests run at the same time, and how many a caller may send in a span of time.",
    attributes: &[
        Attribute::required(
            "id",
            Values::Text,
            "names the counters; throttles with one id in one artifact share them",
        ),
        Attribute::optional("onAccept", Values::Key, "the sequence for admitted messages"),
        Attribute::optional("onReject", Values::Key, "the sequence for rejected messages"),
    ],
    children: Children::Elements(&["policy", "onAccept", "onReject"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Quality,
    semantics: "An admitted message runs `onAccept`, a rejected one `onReject`: the sequence that it names, else the mediators inside. Without
`onAccept` an admitted message goes on after `throttle`. Without `onReject` the flow of a rejected message ends, and its client gets 202 without
a body: answer with a status of your own, as in the example. If a branch does not end the flow, the message goes on after `throttle`, even a rejected one. To let
messages wait instead, use [`sampler`](sampler.md).

First, `t:MaximumConcurrentAccess` is checked: if this many requests of the `id` are in progress, a further one is rejected; 0 or less means no limit. A request is in progress until it
and all its copies have ended.

Then the entry for the caller is checked; if there is none, the message is admitted. Entries for domains come first: the exact name, then `*.x.org`, then
`other`. The name is the header `X-Forwarded-Host`, else the address of the connection. If no domain fits, entries for addresses follow: the exact
address, then ranges and `10.1.1.*`, then `other`. The address is the first in the header `X-Forwarded-For`, else that of the connection;
anything that is not an address counts as `other`. Clients can set these headers themselves, so let the proxy in front of the
bus overwrite them. Entries for roles are ignored.

A span of `t:UnitTime` begins with the first request in it. In each span `t:MaximumCount` requests are admitted; the next one is rejected, and with
`t:ProhibitTimePeriod` so are all further requests of the entry for that time. Then a new span begins. An entry has one counter: all callers of a range, and all
of `other`, share it. A count of 0 admits nothing, a span of 0 everything.

The counters belong to the artifact and the `id`: throttles with one id in one proxy, API or sequence share them, those of others have their own.
They survive a reload of the configuration. They are those of
one process. Without a policy everything is admitted. Responses pass as admitted and are not counted.

The prefixes are `wsp` for `http://schemas.xmlsoap.org/ws/2004/09/policy` and `t` for `http://www.wso2.org/products/wso2commons/throttle`. The older
form of policies, `t:ThrottleAssertion` with `wsp:All`, `wsp:ExactlyOne` and `t:IsAllow`, is understood too. A policy that is
missing or wrong is a warning when the configuration loads, and a fault for each message.",
    inside: &[
        Inside::new(
            "policy?",
            "who may how often",
            &[Attribute::optional("key", Values::Text, "a local entry or registry resource, instead of what is inside")],
        ),
        Inside::new("policy/wsp:Policy?", "the policy", &[]),
        Inside::new("policy/wsp:Policy/t:MediatorThrottleAssertion", "its rules", &[]),
        Inside::new(
            "policy/wsp:Policy/t:MediatorThrottleAssertion/t:MaximumConcurrentAccess?",
            "requests that may be on their way at once",
            &[],
        )
        .with("number"),
        Inside::new("policy/wsp:Policy/t:MediatorThrottleAssertion/wsp:Policy*", "an entry", &[]),
        Inside::new(
            "policy/wsp:Policy/t:MediatorThrottleAssertion/wsp:Policy/t:ID",
            "whom it is for: `10.1.1.1`, `10.1.1.1-10.1.1.50`, `10.1.1.*`; `www.x.org`, `*.x.org`; `other`",
            &[Attribute::optional("t:type", Values::OneOf(&["IP", "DOMAIN", "ROLE"]), "what the text is").or("IP")],
        )
        .with("text"),
        Inside::new(
            "policy/wsp:Policy/t:MediatorThrottleAssertion/wsp:Policy/wsp:Policy",
            "what they may: one of the following",
            &[],
        ),
        Inside::new(
            "policy/wsp:Policy/t:MediatorThrottleAssertion/wsp:Policy/wsp:Policy/t:Allow?",
            "everything",
            &[],
        ),
        Inside::new(
            "policy/wsp:Policy/t:MediatorThrottleAssertion/wsp:Policy/wsp:Policy/t:Deny?",
            "nothing",
            &[],
        ),
        Inside::new(
            "policy/wsp:Policy/t:MediatorThrottleAssertion/wsp:Policy/wsp:Policy/t:Control?",
            "a number of requests in a span of time",
            &[],
        ),
        Inside::new(
            "policy/wsp:Policy/t:MediatorThrottleAssertion/wsp:Policy/wsp:Policy/t:Control/wsp:Policy",
            "the numbers",
            &[],
        ),
        Inside::new(
            "policy/wsp:Policy/t:MediatorThrottleAssertion/wsp:Policy/wsp:Policy/t:Control/wsp:Policy/t:MaximumCount",
            "requests admitted in a span",
            &[],
        )
        .with("number"),
        Inside::new(
            "policy/wsp:Policy/t:MediatorThrottleAssertion/wsp:Policy/wsp:Policy/t:Control/wsp:Policy/t:UnitTime",
            "the span, in milliseconds",
            &[],
        )
        .with("number"),
        Inside::new(
            "policy/wsp:Policy/t:MediatorThrottleAssertion/wsp:Policy/wsp:Policy/t:Control/wsp:Policy/t:ProhibitTimePeriod?",
            "milliseconds without any, from the first request that is too many",
            &[],
        )
        .with("number"),
        Inside::new("onAccept?", "runs for an admitted message", &[]).with("mediator*"),
        Inside::new("onReject?", "runs for a rejected message", &[]).with("mediator*"),
    ],
    needs: &[
        (Need::Headers, "the caller's address, and the names of the sequences"),
        (Need::Whole, "a sequence is named by an expression on the body"),
    ],
    refused: &[
        ("<throttle id=\"a\"/>", "`throttle` has no policy"),
        ("<throttle/>", "`throttle` needs the attribute `id`"),
        ("<throttle id=\" \"/>", "`throttle` needs an `id`"),
        ("<throttle id=\"a\"><drop/></throttle>", "`drop` has no effect inside of `throttle`"),
        (
            "<throttle id=\"a\"><policy><limit/></policy></throttle>",
            "the policy cannot be used: it has no MediatorThrottleAssertion",
        ),
        (
            "<throttle id=\"a\"><policy><MediatorThrottleAssertion><Policy><ID>10.1.1</ID><Deny/></Policy></MediatorThrottleAssertion></policy></throttle>",
            "`10.1.1` is not an address, a range a-b or a.b.*",
        ),
        (
            "<throttle id=\"a\"><policy><MediatorThrottleAssertion><Policy><ID>other</ID><MaximumCount>2</MaximumCount></Policy></MediatorThrottleAssertion></policy></throttle>",
            "the entry `other` has no UnitTime",
        ),
    ],
    faults: &[
        ("0", "a named sequence does not exist, or the policy of `key` is missing or cannot be used"),
        ("601000", "the body is larger than a flow may hold"),
    ],
};

struct Throttle {
    rules: Rules,
    counters: Arc<Counters>,
    throttles: Arc<Throttles>,
    accept: Branch,
    reject: Branch,
}

enum Rules {
    /// None: everything is admitted.
    Absent,
    Fixed(Policy),
    /// Written out, and wrong: a fault for each message.
    Broken(String),
    /// By a key that was not there, or was wrong, when the plan was made.
    Keyed(Arc<str>, EntryCache<(), Arc<[u8]>, Policy>),
}

enum Branch {
    Absent,
    Inline(ListId),
    Named(ListId),
    /// By a key that says which one for each message, or that names none yet.
    Keyed(Arc<SequenceRef>),
}

/// The clock of all throttles of the process.
pub(crate) struct Throttles {
    started: Instant,
    /// Milliseconds that the clock is ahead; tests move it.
    ahead: AtomicU64,
}

impl Default for Throttles {
    fn default() -> Throttles {
        Throttles { started: Instant::now(), ahead: AtomicU64::new(0) }
    }
}

impl Throttles {
    /// Milliseconds since the process began to throttle.
    fn now(&self) -> u64 {
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        elapsed.saturating_add(self.ahead.load(Ordering::Relaxed))
    }
}

/// The counters of an id in one artifact.
#[derive(Default)]
struct Counters {
    /// Requests on their way.
    running: AtomicUsize,
    /// The windows, by the entry of the policy.
    windows: Mutex<HashMap<String, Window>>,
}

/// A place among the requests that are on their way; free again when the message and its copies are done.
struct Slot(Arc<Counters>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A span of time with a count. Times in milliseconds.
#[derive(Debug, Default)]
struct Window {
    /// When its first message came; how long it lasts is said by the policy of now, which a reload may change.
    begun: Option<u64>,
    count: u64,
    /// When one too many came, for a policy that prohibits all others for a time.
    refused: Option<u64>,
}

impl Window {
    /// Whether one more is admitted now.
    fn admit(&mut self, limit: &Limit, now: u64) -> bool {
        let within = |from: u64, time: u64| now < from.saturating_add(time);
        if self.refused.is_some_and(|refused| within(refused, limit.prohibit)) {
            return false;
        }
        if self.refused.is_some() || !self.begun.is_some_and(|begun| within(begun, limit.unit)) {
            *self = Window { begun: Some(now), ..Window::default() };
        }
        if self.count < limit.count {
            self.count += 1;
            return true;
        }
        if limit.prohibit > 0 {
            self.refused = Some(now);
        }
        false
    }
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let Some(id) = element.attr("id").map(str::trim).filter(|id| !id.is_empty()) else {
        compiler.error(
            "missing-attribute",
            "`throttle` needs an `id`",
            element.start_tag(),
            "names its counters",
        );
        return None;
    };
    let rules = match element.child("policy") {
        None => Rules::Absent,
        Some(policy) => match policy.attr("key") {
            Some(key) => keyed(key, policy, compiler),
            None => match policy.elements().next() {
                None => Rules::Absent,
                Some(inline) => match Policy::read(inline) {
                    Ok(policy) => Rules::Fixed(policy),
                    Err(why) => {
                        compiler.warning(
                            "bad-policy",
                            format!("the policy cannot be used: {why}"),
                            inline.start_tag(),
                            "messages that come here fault",
                        );
                        Rules::Broken(why)
                    }
                },
            },
        },
    };
    if matches!(rules, Rules::Absent) {
        let message = "`throttle` has no policy";
        compiler.warning("missing-element", message, element.start_tag(), "every message is admitted");
    }
    let mut branch = |name: &str| match element.attribute(name) {
        Some(_) => match compiler.sequence(element, name) {
            Some(SequenceRef::Known(list)) => Branch::Named(list),
            Some(keyed) => Branch::Keyed(Arc::new(keyed)),
            None => Branch::Absent,
        },
        None => match element.child(name) {
            Some(child) => Branch::Inline(compiler.list(child, format!("{name} of throttle"))),
            None => Branch::Absent,
        },
    };
    let (accept, reject) = (branch("onAccept"), branch("onReject"));
    let throttles = compiler.services.kept.get::<Throttles>();
    let identity = compiler.artifact_identity().part(&format!("throttle {id}"));
    let counters = compiler.services.states.get::<Counters>(&identity);
    Some(Box::new(Throttle { rules, counters, throttles, accept, reject }))
}

fn keyed(key: &str, place: &Element, compiler: &mut Compiler<'_>) -> Rules {
    let read = compiler.entry(key).map(|entry| parse(&entry.bytes));
    match read {
        Some(Ok(policy)) => return Rules::Fixed(policy),
        Some(Err(why)) => {
            let message = format!("the policy `{key}` cannot be used: {why}");
            compiler.warning("bad-policy", message, place.start_tag(), "messages that come here fault");
        }
        None => {
            warn_missing("policy", key, place.start_tag(), compiler);
        }
    }
    Rules::Keyed(Arc::from(key), EntryCache::default())
}

fn parse(bytes: &[u8]) -> Result<Policy, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let element =
        config::parse(diagnostics::FileId::BUILT_IN, text).map_err(|diagnostic| diagnostic.message)?;
    Policy::read(&element)
}

impl Throttle {
    /// Whether the message is admitted.
    fn admit(&self, context: &mut Context) -> Result<bool, Fault> {
        if context.response {
            return Ok(true);
        }
        match &self.rules {
            Rules::Absent => Ok(true),
            Rules::Fixed(policy) => Ok(self.decide(policy, context)),
            Rules::Broken(why) => {
                Err(Fault::new("Error processing the throttling policy").because(why.clone()))
            }
            Rules::Keyed(key, policies) => {
                let wrong =
                    |why: String| Fault::new(format!("Error reading the throttle policy {key}")).because(why);
                let entry = context
                    .plan()
                    .entry(key)
                    .ok_or_else(|| wrong("there is no entry or registry resource of this key".into()))?;
                let policy = policies.get_or_make(&(), entry.bytes, |bytes| parse(bytes).map_err(wrong))?;
                Ok(self.decide(&policy, context))
            }
        }
    }

    fn decide(&self, policy: &Policy, context: &mut Context) -> bool {
        if let Some(most) = policy.concurrent {
            let taken = self
                .counters
                .running
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| (n < most).then_some(n + 1));
            if taken.is_err() {
                return false;
            }
            context.hold(Arc::new(Slot(Arc::clone(&self.counters))));
        }
        if policy.entries.is_empty() {
            return true;
        }
        let peer = context.inbound.peer.ip().to_string();
        let host = context
            .headers
            .get("X-Forwarded-Host")
            .map_or_else(|| peer.clone(), |host| host.trim().to_owned());
        let forwarded = context.headers.get("X-Forwarded-For").and_then(|list| list.split(',').next());
        let address = forwarded.map(str::trim).filter(|a| !a.is_empty()).map_or(peer, str::to_owned);
        let Some((key, access)) = policy.find(&host, &address) else { return true };
        match access {
            Access::Allow => true,
            Access::Deny => false,
            Access::Limit(limit) => {
                let now = self.throttles.now();
                let mut windows = lock(&self.counters.windows);
                let window = windows.entry(key.to_owned()).or_default();
                window.admit(limit, now)
            }
        }
    }
}

impl Mediator for Throttle {
    fn moves(&self) -> Moves {
        Moves::Never
    }

    fn need(&self) -> Need {
        let of = |branch: &Branch| match branch {
            Branch::Keyed(sequence) => sequence.need(),
            Branch::Absent | Branch::Inline(_) | Branch::Named(_) => Need::Nothing,
        };
        of(&self.accept).max(of(&self.reject)).max(Need::Headers)
    }

    fn reason(&self) -> String {
        "counts requests by the caller's address".into()
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        let list = |name: &str, branch: &Branch| match branch {
            Branch::Inline(list) | Branch::Named(list) => Some((name.to_owned(), *list)),
            Branch::Keyed(_) | Branch::Absent => None,
        };
        [list("onAccept", &self.accept), list("onReject", &self.reject)].into_iter().flatten().collect()
    }

    // A message is counted once, so only what comes behind that can be begun anew.
    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        let admitted = match self.admit(context) {
            Ok(admitted) => admitted,
            Err(fault) => return Step::Done(Err(fault)),
        };
        if !admitted {
            tracing::info!(message_id = %context.message_id(), client = %context.inbound.peer.ip(), "throttle: rejected");
        }
        match (if admitted { &self.accept } else { &self.reject }, admitted) {
            (Branch::Inline(list) | Branch::Named(list), _) => Step::Done(Ok(Flow::Enter(*list))),
            (Branch::Keyed(sequence), _) => {
                let sequence = Arc::clone(sequence);
                let resolved = flow::work_out(context, move |context| sequence.resolve(context));
                Step::Wait(Box::pin(async move { Ok(Flow::Enter(resolved.await?)) }))
            }
            (Branch::Absent, true) => Step::Done(Ok(Flow::Next)),
            (Branch::Absent, false) => Step::Done(Ok(Flow::Stop)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use flow::testing::{self, Tested};

    const POLICY: &str = r#"<wsp:Policy xmlns:wsp="http://schemas.xmlsoap.org/ws/2004/09/policy" xmlns:t="http://www.wso2.org/products/wso2commons/throttle"><t:MediatorThrottleAssertion>BODY</t:MediatorThrottleAssertion></wsp:Policy>"#;

    fn entry(kind: &str, id: &str, control: &str) -> String {
        format!(
            r#"<wsp:Policy><t:ID t:type="{kind}">{id}</t:ID><wsp:Policy>{control}</wsp:Policy></wsp:Policy>"#
        )
    }

    fn control(count: u64, unit: u64, prohibit: &str) -> String {
        format!(
            "<t:Control><wsp:Policy><t:MaximumCount>{count}</t:MaximumCount><t:UnitTime>{unit}</t:UnitTime>{prohibit}</wsp:Policy></t:Control>"
        )
    }

    fn throttle(entries: &str) -> Tested {
        let policy = POLICY.replace("BODY", entries);
        let text = format!(
            r#"<throttle id="t"><policy>{policy}</policy><onAccept><property name="in" value="yes"/></onAccept><onReject><property name="out" value="yes"/><drop/></onReject></throttle><property name="after" value="yes"/>"#
        );
        testing::main(&registry(testing::endpoints), &text)
    }

    /// `a` for each accepted, `r` for each rejected.
    fn outcomes(flow: &Tested, headers: &[(&str, &str)], times: usize) -> String {
        let one = |_| {
            let end = flow.run(headers, "");
            assert_ne!(end.property("in").is_some(), end.property("out").is_some());
            assert_eq!(end.property("after").is_some(), end.property("in").is_some());
            if end.property("in").is_some() { 'a' } else { 'r' }
        };
        (0..times).map(one).collect()
    }

    fn advance(flow: &Tested, milliseconds: u64) {
        flow.bus.services().kept.get::<Throttles>().ahead.fetch_add(milliseconds, Ordering::Relaxed);
    }

    const HOUR: u64 = 3_600_000;

    /// Answers are admitted whatever the policy says, and `onAccept` runs for them too.
    #[test]
    fn answers_are_admitted_and_not_counted() {
        let policy = POLICY.replace("BODY", &entry("IP", "other", &control(1, HOUR, "")));
        let text = format!(
            r#"<in><loopback/></in><out><throttle id="t"><policy>{policy}</policy><onAccept><property name="in" value="yes"/></onAccept><onReject><property name="out" value="yes"/></onReject></throttle></out>"#
        );
        let tested = testing::main(&registry(testing::endpoints), &text);
        for _ in 0..3 {
            let end = tested.run(&[], "");
            assert_eq!((end.property("in").as_deref(), end.property("out")), (Some("yes"), None));
        }
    }

    #[test]
    fn windows() {
        let limit = Limit { count: 2, unit: 100, prohibit: 0 };
        let mut window = Window::default();
        let at = |window: &mut Window, limit: &Limit, times: &[u64]| {
            times.iter().map(|&t| window.admit(limit, t)).collect::<Vec<_>>()
        };
        assert_eq!(
            at(&mut window, &limit, &[1, 50, 60, 100, 101, 102, 103]),
            [true, true, false, false, true, true, false]
        );
        let limit = Limit { prohibit: 1000, ..limit };
        let mut window = Window::default();
        // Prohibited from the first excess on, beyond the end of the window.
        assert_eq!(
            at(&mut window, &limit, &[1, 2, 3, 500, 1002, 1003, 1004, 1005]),
            [true, true, false, false, false, true, true, false]
        );
        // A reload to another time counts for what has begun, and for what is prohibited.
        let long = Limit { count: 1, unit: HOUR, prohibit: 0 };
        let mut window = Window::default();
        assert_eq!(at(&mut window, &long, &[1, 2, 500]), [true, false, false]);
        assert_eq!(at(&mut window, &Limit { unit: 100, ..long }, &[501, 502, 601]), [true, false, true]);
        let prohibits = Limit { prohibit: HOUR, ..long };
        let mut window = Window::default();
        assert_eq!(at(&mut window, &prohibits, &[1, 2, 500]), [true, false, false]);
        assert_eq!(at(&mut window, &Limit { prohibit: 100, ..long }, &[501, 502]), [true, false]);
    }

    #[test]
    fn callers_have_the_counter_of_their_entry() {
        let flow = throttle(
            &(entry("IP", "other", &control(1, HOUR, ""))
                + &entry("IP", "10.1.1.1-10.1.1.50", &control(2, HOUR, ""))
                + &entry("IP", "10.2.*", "<t:Deny/>")
                + &entry("IP", "10.3.0.1", "<t:Allow/>")),
        );
        assert_eq!(outcomes(&flow, &[("X-Forwarded-For", "10.1.1.7, 1.2.3.4")], 1), "a", "{flow:?}");
        assert_eq!(
            outcomes(&flow, &[("X-Forwarded-For", "10.1.1.50")], 2),
            "ar",
            "one counter for the range"
        );
        assert_eq!(outcomes(&flow, &[("X-Forwarded-For", "10.2.9.9")], 1), "r");
        assert_eq!(outcomes(&flow, &[("X-Forwarded-For", "10.3.0.1")], 3), "aaa");
        assert_eq!(outcomes(&flow, &[], 2), "ar", "the others");
        advance(&flow, HOUR);
        assert_eq!(outcomes(&flow, &[], 2), "ar", "a new window");
    }

    #[test]
    fn domains_go_before_addresses_and_roles_are_not_looked_at() {
        let flow = throttle(
            &(entry("DOMAIN", "*.x.org", &control(1, HOUR, ""))
                + &entry("IP", "other", "<t:Deny/>")
                + &entry("ROLE", "gold", "<t:Deny/>")),
        );
        assert_eq!(outcomes(&flow, &[("X-Forwarded-Host", "www.x.org")], 2), "ar", "{flow:?}");
        assert_eq!(outcomes(&flow, &[("X-Forwarded-Host", "y.org")], 1), "r");
        let flow = throttle(&entry("ROLE", "gold", "<t:Deny/>"));
        assert_eq!(outcomes(&flow, &[], 2), "aa");
    }

    #[test]
    fn slots_are_free_again_when_the_message_is_done() {
        let flow = throttle("<t:MaximumConcurrentAccess>1</t:MaximumConcurrentAccess>");
        let first = flow.run(&[], "");
        assert!(first.property("in").is_some(), "{flow:?}");
        assert_eq!(outcomes(&flow, &[], 2), "rr");
        drop(first);
        assert_eq!(outcomes(&flow, &[], 2), "aa");
    }

    #[test]
    fn what_is_wrong() {
        for (mediator, report) in [
            ("<throttle><policy/></throttle>", "needs the attribute `id`"),
            (r#"<throttle id=" "/>"#, "needs an `id`"),
            (r#"<throttle id="a"><policy key="gone"/></throttle>"#, "there is no policy `gone`"),
            (r#"<throttle id="a"><policy><x/></policy></throttle>"#, "the policy cannot be used"),
        ] {
            let flow = testing::main(&registry(testing::endpoints), mediator);
            assert!(flow.reports(report), "{flow:?}");
        }
        let flow = testing::main(
            &registry(testing::endpoints),
            r#"<throttle id="a"><policy key="gone"/></throttle>"#,
        );
        assert!(flow.run(&[], "").fault().is_some_and(|fault| fault.contains("the throttle policy gone")));
        let flow = testing::main(
            &registry(testing::endpoints),
            r#"<throttle id="a"/><property name="p" value="1"/>"#,
        );
        assert!(flow.run(&[], "").property("p").is_some(), "no policy admits everything");
    }
}
