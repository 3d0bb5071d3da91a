use super::*;
use crate::Compiler;
use crate::compile::definition::{Children as Inside, Compiled, Definition};
use crate::compile::page::{Family, Page};
use crate::runtime::exchange::{Awaited, Exchange};
use crate::runtime::mediator::{Flow, Mediator, Need, Step};
use crate::testing::{self, Tested, block_on};
use config::Element;
use std::time::Duration;
use tokio::sync::oneshot;

const PAGE: Page =
    Page { family: Family::Splitting, semantics: "", inside: &[], needs: &[], refused: &[], faults: &[] };

const fn definition(name: &'static str, compile: fn(&Element, &mut Compiler<'_>) -> Compiled) -> Definition {
    Definition { name, summary: "", attributes: &[], children: Inside::None, page: PAGE, compile }
}

/// Panics at once, or after it has waited.
static DROP: Definition = definition("drop", |_, _| Some(Box::new(Panics { waits: false })));
static LOG: Definition = definition("log", |_, _| Some(Box::new(Panics { waits: true })));
/// Leaves a child that ends after a while.
static STORE: Definition = definition("store", |_, _| Some(Box::new(Leaves)));
static RESPOND: Definition = definition("respond", |_, _| Some(Box::new(Responds)));

struct Panics {
    waits: bool,
}

impl Mediator for Panics {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn run<'a>(&'a self, _: &'a mut Context) -> Step<'a> {
        if !self.waits {
            panic!("at once");
        }
        Step::Wait(Box::pin(async {
            tokio::task::yield_now().await;
            panic!("later");
        }))
    }
}

struct Leaves;

impl Mediator for Leaves {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        context.silent_child("a wait").spawn(tokio::time::sleep(Duration::from_millis(20)));
        Ok(Flow::Next)
    }
}

struct Responds;

impl Mediator for Responds {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn mediate(&self, _: &mut Context) -> Result<Flow, Fault> {
        Ok(Flow::Respond)
    }
}

fn tested(mediators: &str) -> Tested {
    let definitions = vec![&DROP, &LOG, &STORE, &RESPOND];
    let registry = testing::registry(definitions);
    testing::main(&registry, mediators)
}

fn scopes(tested: &Tested) -> Arc<Scopes> {
    Arc::clone(&tested.bus.services().scopes)
}

#[test]
fn a_flow_without_children_is_counted_and_has_no_shared_half() {
    let tested = tested("<respond/>");
    assert_eq!(tested.ask("POST", "/", &[], "").status, 200);
    assert_eq!(scopes(&tested).open(), 0);
    let _services = Admitted::more(tested.bus.services()).begins();
    let mut context = tested.context(&[], "");
    let mut opened = Opened::new(&mut context);
    assert!(opened.context.scope.is_none() && lock(&scopes(&tested).shared).is_empty());
    opened.end();
    drop(opened);
    assert_eq!(scopes(&tested).open(), 0);
}

#[test]
fn the_outcome_comes_with_the_last_child() {
    let tested = tested("");
    let scopes = scopes(&tested);
    for (first, second, status, wanted) in [
        (true, true, None, Outcome::Completed),
        (true, false, None, Outcome::Dropped),
        (false, true, None, Outcome::Dropped),
        (true, true, Some(502), Outcome::Failed(502)),
        (true, false, Some(500), Outcome::Failed(500)),
    ] {
        block_on(async {
            let mut context = tested.context(&[], "");
            let begun = Begun::new(&mut context);
            let (one, two) = (context.child("one"), context.silent_child("two"));
            let scope = Arc::clone(context.scope());
            assert_eq!(lock(&scopes.shared).len(), 1);
            if let Some(status) = status {
                scope.failed(status);
            }
            let mut outcome = pin!(begun.outcome());
            let soon = Duration::from_millis(1);
            assert!(tokio::time::timeout(soon, &mut outcome).await.is_err(), "two are left");
            for (child, ends) in [(one, first), (two, second)] {
                assert_eq!(scopes.open(), 1);
                if ends { child.run(async {}).await.expect("it does not panic") } else { drop(child) }
            }
            assert_eq!(outcome.await, wanted);
            assert_eq!((scopes.open(), lock(&scopes.shared).len()), (0, 0));
        });
    }
}

#[test]
fn what_is_only_copied_leaves_nothing_behind() {
    let tested = tested("");
    let mut context = tested.context(&[], "");
    drop(context.branch());
    assert_eq!(lock(&scopes(&tested).shared).len(), 1);
    // What waits in an aggregate finds its scope again.
    let part = context.take();
    assert!(part.scope.is_some() && context.scope.is_some());
    drop((part, context));
    assert_eq!((scopes(&tested).open(), lock(&scopes(&tested).shared).len()), (0, 0));
}

#[test]
fn a_panic_is_a_failure_with_one_line_wherever_it_is() {
    install_quietly();
    for mediators in ["<drop/>", "<log/>", "<store/><drop/>"] {
        let tested = tested(mediators);
        let (lines, response) = testing::logged("busbar", || tested.ask("POST", "/", &[], ""));
        assert_eq!(response.status, 500, "{mediators}");
        assert!(response.body.contains("message id urn:uuid:"), "{response:?}");
        assert_eq!(lines.len(), 1, "{mediators}: {lines:?}");
        assert!(lines[0].contains("a step panicked"), "{lines:?}");
        // And the next request is as ever.
        assert_eq!(tested.ask("POST", "/", &[], "").status, 500);
    }
    let tested = tested("");
    let (lines, outcome) = testing::logged("busbar", || {
        block_on(async {
            let mut context = tested.context(&[], "");
            let begun = Begun::new(&mut context);
            context.child("a timer").spawn(async { panic!("in a task") });
            begun.outcome().await
        })
    });
    assert_eq!(outcome, Outcome::Failed(500));
    assert!(lines.len() == 1 && lines[0].contains("a timer panicked"), "{lines:?}");
    assert_eq!(scopes(&tested).open(), 0);
}

/// The hook of tests prints what is caught.
fn install_quietly() {
    crate::runtime::panics::install();
}

#[test]
fn a_client_that_goes_away_ends_its_flow() {
    let tested = tested("<log/>");
    let scopes = scopes(&tested);
    let _services = Admitted::more(tested.bus.services()).begins();
    let mut context = tested.context(&[], "");
    let opened = Opened::new(&mut context);
    let child = opened.context.child("a branch");
    let scope = Arc::clone(&child.scope);
    drop(opened);
    assert_eq!(scopes.open(), 1, "the branch goes on");
    block_on(async {
        child.run(async {}).await.expect("it does not panic");
        assert_eq!(scope.outcome().await, Outcome::Dropped);
    });
    assert_eq!(scopes.open(), 0);
}

#[test]
fn more_than_the_limit_are_refused_and_the_next_good_one_is_served() {
    let tested = tested("<respond/>");
    let (scopes, most) = (scopes(&tested), tested.bus.services().settings.flows);
    for _ in 0..most {
        assert!(scopes.begin(most));
    }
    let response = tested.ask("POST", "/", &[("Content-Type", "application/json")], "{}");
    assert_eq!((response.status, response.headers.get("Retry-After")), (503, Some("1")));
    assert!(response.body.contains("too many messages"), "{response:?}");
    assert_eq!((scopes.refused(), scopes.open()), (1, most));
    scopes.end();
    assert_eq!(tested.ask("POST", "/", &[], "").status, 200);
    assert_eq!(scopes.open(), most - 1);
}

#[test]
fn what_was_let_in_and_never_began_is_given_back() {
    let tested = tested("");
    let scopes = scopes(&tested);
    let admitted = Admitted::new(tested.bus.services()).ok();
    assert!(admitted.is_some() && scopes.open() == 1);
    drop(admitted);
    assert_eq!(scopes.open(), 0);
}

#[test]
fn a_drain_waits_for_what_goes_on_and_names_what_it_gives_up() {
    let tested = tested("<store/><respond/>");
    let scopes = scopes(&tested);
    let body = || async {
        let request = transport::Request {
            head: message::RequestHead {
                method: message::Method::Post,
                target: "/".to_owned(),
                absolute: None,
                version: message::Version::Http11,
                headers: message::Headers::new(),
            },
            body: transport::Body::Empty,
        };
        let nobody = std::net::SocketAddr::from(([127, 0, 0, 1], 9));
        let peer = transport::ConnectionInfo { id: 1, peer: nobody, local: nobody, worker: 0, tls: None };
        transport::Handler::handle(&tested.bus, request, &peer).await.head.status
    };
    block_on(async {
        assert!(scopes.drained(Duration::ZERO).await, "nothing is open");
        assert_eq!(body().await, 200);
        assert_eq!(scopes.open(), 1, "the child goes on behind the answer");
        assert!(!scopes.drained(Duration::from_millis(1)).await);
        assert!(scopes.drained(Duration::from_secs(30)).await);
    });
    let (lines, ()) = testing::logged("busbar::drain", || {
        block_on(async {
            body().await;
            tested.bus.services().log_given_up();
        });
    });
    assert_eq!(lines, ["ERROR given up at the end of the drain: a wait"]);
    assert_eq!(scopes.open(), 0, "its task went with the runtime");
}

/// What goes on without its client may end before the process does; the client had no answer.
#[test]
fn a_message_whose_client_was_cut_is_named_once_whatever_becomes_of_it() {
    let tested = tested("");
    let scopes = scopes(&tested);
    let _services = Admitted::more(tested.bus.services()).begins();
    let mut context = tested.context(&[], "");
    let opened = Opened::new(&mut context);
    let child = opened.context.child("a branch");
    scopes.give_up();
    let (lines, ()) = testing::logged("busbar::drain", || {
        drop(opened);
        tested.bus.services().log_given_up();
        child.end();
    });
    assert_eq!(lines, ["ERROR given up at the end of the drain: a branch"]);
    assert_eq!(scopes.open(), 0);
}

#[test]
fn whoever_waits_is_told_when_the_last_voice_ends() {
    block_on(async {
        let (exchange, awaited) = Exchange::new();
        let other = Voice::new(&exchange);
        let Awaited { mut answer, voice } = awaited;
        drop(voice);
        assert!(answer.try_recv().is_err_and(|why| why == oneshot::error::TryRecvError::Empty));
        exchange.failed(504);
        drop(other);
        assert!(answer.await.is_err());
        assert_eq!(exchange.failure(), Some(504));
    });
}
