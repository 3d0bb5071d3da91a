use super::queue::{Line, Queue};
use super::split::MAX_PARALLEL;
use super::*;
use crate::Compiler;
use crate::compile::definition::{Attribute, Children, Compiled, Definition, Values};
use crate::compile::page::{Family, Page};
use crate::runtime::mediator::{Branch, BranchTarget, Mediator, Split};
use crate::testing::{self, Tested, block_on};
use config::Element;
use message::Value;
use std::sync::atomic::{AtomicUsize, Ordering};

const PAGE: Page =
    Page { family: Family::Splitting, semantics: "", inside: &[], needs: &[], refused: &[], faults: &[] };

const NAMES: &[Attribute] =
    &[Attribute::optional("value", Values::Text, ""), Attribute::optional("key", Values::Key, "")];

const fn definition(
    name: &'static str,
    children: Children,
    compile: fn(&Element, &mut Compiler<'_>) -> Compiled,
) -> Definition {
    Definition { name, summary: "", attributes: NAMES, children, page: PAGE, compile }
}

/// A mediator that does this.
struct Does<F>(F);

impl<F: Fn(&mut Context) -> Result<Flow, Fault> + Send + Sync> Mediator for Does<F> {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        (self.0)(context)
    }
}

fn does(what: impl Fn(&mut Context) -> Result<Flow, Fault> + Send + Sync + 'static) -> Compiled {
    Some(Box::new(Does(what)))
}

fn value(element: &Element) -> String {
    element.attr("value").unwrap_or_default().to_owned()
}

/// Notes that it ran: in the message, and for all copies of it.
static LOG: Definition = definition("log", Children::None, |element, _| {
    let name = value(element);
    does(move |context| {
        let seen = context.properties.get("seen").map(ToString::to_string).unwrap_or_default();
        context.properties.set("seen", Value::from(format!("{seen}{name}")));
        let all = context.operation("all").map(|all| all.to_string()).unwrap_or_default();
        context.set_operation("all", Some(Value::from(format!("{all}{name}"))));
        Ok(Flow::Next)
    })
});
static SEQUENCE: Definition = definition("filter", Children::Mediators, |element, compiler| {
    let list = compiler.list(element, "inside");
    does(move |_| Ok(Flow::Enter(list)))
});
static NAMED: Definition = definition("sequence", Children::None, |element, compiler| {
    let sequence = compiler.sequence(element, "key")?;
    does(move |context| Ok(Flow::Enter(sequence.resolve(context)?)))
});
static FAILS: Definition = definition("throwError", Children::None, |element, _| {
    let name = value(element);
    does(move |_| Err(Fault::new(name.clone())))
});
static DROP: Definition = definition("drop", Children::None, |_, _| does(|_| Ok(Flow::Stop)));
static RESPOND: Definition = definition("respond", Children::None, |_, _| does(|_| Ok(Flow::Respond)));
/// Makes as many copies as `value` says; each notes how many parts were made before it ran.
static SPLIT: Definition = definition("clone", Children::Mediators, |element, compiler| {
    let list = compiler.list(element, "parts");
    let (count, how) = {
        let text = value(element);
        let (count, how) = text.split_once(' ').unwrap_or((&text, ""));
        (count.parse::<usize>().expect("a number"), how.to_owned())
    };
    does(move |context| {
        let mut original = context.branch();
        let made = Arc::new(AtomicUsize::new(0));
        let parts = (0..count).map(move |index| {
            let mut copy = original.branch();
            copy.properties.set("index", Value::Integer(index as i64));
            made.fetch_add(1, Ordering::Relaxed);
            copy.attach(Arc::clone(&made));
            Branch { context: copy, target: BranchTarget::List(list) }
        });
        Ok(Flow::Split(Split {
            parts: Box::new(parts),
            count,
            continue_parent: how.contains("on"),
            sequential: how.contains("one"),
            stops: how.contains("stops"),
            aside: false,
        }))
    })
});
/// Fails in the part of this number.
static FAILS_AT: Definition = definition("switch", Children::None, |element, _| {
    let at: i64 = value(element).parse().expect("a number");
    does(move |context| match context.properties.get("index").and_then(Value::as_integer) {
        Some(index) if index == at => Err(Fault::new("this part")),
        _ => Ok(Flow::Next),
    })
});

fn tested(mediators: &str) -> Tested {
    let definitions = vec![&LOG, &SEQUENCE, &FAILS, &DROP, &RESPOND, &SPLIT, &FAILS_AT, &NAMED];
    let registry = testing::registry(definitions);
    testing::main(&registry, mediators)
}

#[test]
fn steps_run_in_order_through_lists_and_back() {
    for (mediators, seen, how) in [
        ("<log value='a'/><log value='b'/>", "ab", "nothing"),
        ("<log value='a'/><filter><log value='b'/><filter/></filter><log value='c'/>", "abc", "nothing"),
        ("<filter><log value='a'/><drop/><log value='x'/></filter><log value='x'/>", "a", "nothing"),
        ("<filter><log value='a'/><respond/></filter><log value='x'/>", "a", "respond"),
    ] {
        let end = tested(mediators).run(&[], "");
        assert_eq!((end.property("seen").as_deref(), end.how), (Some(seen), how), "{mediators}");
    }
}

#[test]
fn faults_go_from_the_inner_handler_to_the_outer_ones() {
    for (inner, seen, message) in [
        ("", "ai", "first"),
        ("<throwError value='again'/>", "aio", "first"),
        ("<filter><drop/></filter><log value='x'/>", "ai", "first"),
    ] {
        let text = format!(
            "<log value='a'/><sequence key='s'/><log value='x'/><!--top-->\
             <sequence name='s' onError='inner'><throwError value='first'/></sequence>\
             <sequence name='inner'><log value='i'/>{inner}</sequence><sequence name='fault'><log value='o'/></sequence>"
        );
        let end = tested(&text).run(&[], "");
        assert_eq!(end.property("seen").as_deref(), Some(seen), "{inner}");
        assert_eq!(end.property("ERROR_MESSAGE").as_deref(), Some(message), "the first one stays");
        assert_eq!(end.context.progress.failure.map(|failure| failure.status), Some(500));
    }
}

#[test]
fn endless_flows_end() {
    let definitions = vec![&LOG, &SEQUENCE, &DROP];
    let registry = testing::registry(definitions);
    let deep = format!("{}{}", "<filter>".repeat(20), "</filter>".repeat(20));
    let few = |services: &mut crate::Services| {
        services.settings.nesting = 10;
        services.settings.steps = 5;
    };
    let end = testing::main_with(&registry, &deep, few).run(&[], "");
    assert!(end.fault().is_some_and(|fault| fault.contains("more than 5 steps")), "{:?}", end.fault());
    let nesting = |services: &mut crate::Services| services.settings.nesting = 10;
    let end = testing::main_with(&registry, &deep, nesting).run(&[], "");
    assert!(end.fault().is_some_and(|fault| fault.contains("more than 10 deep")), "{:?}", end.fault());
}

#[test]
fn parts_are_made_when_their_turn_comes_and_all_of_them_run() {
    let text = "<clone value='1000 on'><log value='.'/></clone><log value='behind'/>";
    let tested = tested(text);
    let end = tested.run(&[], "");
    // The message goes on at once; its parts run as tasks, and ended with their runtime here.
    assert_eq!(end.property("seen").as_deref(), Some("behind"));
    let all = |response: Option<Value>| response.map(|all| all.to_string()).unwrap_or_default();
    for (text, ran) in [
        ("<clone value='250 one'><log value='.'/></clone>", 250),
        ("<clone value='5 one stops'><switch value='2'/><log value='.'/></clone>", 2),
        ("<clone value='5 one'><switch value='2'/><log value='.'/></clone>", 4),
        ("<clone value='0 one'><log value='.'/></clone>", 0),
    ] {
        let end = self::tested(text).run(&[], "");
        assert_eq!(all(end.context.operation("all")).len(), ran, "{text}");
    }
}

/// A sequence that splits into itself would take all memory of the process, however little each copy takes.
#[test]
fn splits_inside_of_splits_end() {
    // What a split does, how many of the message's flows run at most, and what is logged.
    for (split, most) in [("2", 1100), ("200", 1300), ("2 one", 40), ("2 on", 1100)] {
        let text = format!(
            "<sequence key='s'/><!--top--><sequence name='s'><clone value='{split}'><sequence key='s'/></clone></sequence>"
        );
        let tested = tested(&text);
        let (lines, ()) = testing::logged("busbar", || {
            block_on(async {
                let mut context = Box::new(tested.context(&[], ""));
                let main = context.plan.main;
                begin_request(&mut context, Some(main));
                let scope = Arc::clone(context.scope());
                drive_to_end(context, None).await;
                while scope.running() > 1 {
                    assert!(scope.running() <= most, "{split}: {} run", scope.running());
                    tokio::task::yield_now().await;
                }
            });
        });
        let reported = lines.iter().filter(|line| line.contains("split more than 32 deep")).count();
        assert_eq!((reported, lines.len()), (1, 1), "{split}: {lines:?}");
    }
    // The failure handler of a part splits again: a fault begins no new depth.
    let text = "<sequence key='s'/><!--top--><sequence name='s' onError='s'><clone value='2'><throwError value='no'/></clone></sequence>";
    assert_eq!(tested(text).ask("POST", "/", &[], "").status, 500);
}

#[test]
fn parts_one_behind_the_other_are_not_deep() {
    let stage = "<clone value='2 on'><log value='.'/></clone>";
    let response = tested(&format!("{}<respond/>", stage.repeat(100))).ask("POST", "/", &[], "");
    assert_eq!(response.status, 200, "{response:?}");
}

#[test]
fn branches_share_the_steps_of_their_message() {
    let few = |services: &mut crate::Services| services.settings.steps = 5000;
    let definitions = vec![&LOG, &SPLIT];
    let registry = testing::registry(definitions);
    for (split, how) in [("1000", ""), ("1000", " one")] {
        let text = format!("<clone value='{split}{how}'>{}</clone>", "<log value=''/>".repeat(10));
        let tested = testing::main_with(&registry, &text, few);
        let (lines, response) = testing::logged("busbar", || tested.ask("POST", "/", &[], ""));
        assert_eq!(response.status, 500, "{response:?}");
        assert!(lines.len() == 1 && lines[0].contains("more than 5000 steps"), "{lines:?}");
    }
}

/// As many runners as may be, each with one part at a time.
#[test]
fn so_many_parts_exist_at_a_time() {
    let tested = tested("<clone value='1000'><respond/></clone>");
    block_on(async {
        let mut context = tested.context(&[], "");
        let main = context.plan.main;
        begin_request(&mut context, Some(main));
        assert!(matches!(advance(&mut context, None).await, Ending::Nothing));
        let awaited = context.awaited.take().expect("its parts may answer");
        drop(awaited.voice);
        let response = awaited.answer.await.expect("one does");
        let made = response.attached::<AtomicUsize>().expect("it was left there").load(Ordering::Relaxed);
        assert!(made <= MAX_PARALLEL, "{made} were made before the first answered");
    });
}

/// A flow whose client has its 202 splits itself, and is the one that answers.
#[test]
fn an_answer_that_nobody_waits_for_does_not_hold_itself() {
    let tested = tested("<clone value='1 on'><drop/></clone><respond/>");
    block_on(async {
        let mut context = Box::new(tested.context(&[], ""));
        let main = context.plan.main;
        begin_request(&mut context, Some(main));
        context.progress.client = Waits::Nobody;
        let held = Arc::new(());
        context.hold(Arc::<()>::clone(&held));
        drive_to_end(context, None).await;
        // The branch has its turn.
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        assert_eq!(Arc::strong_count(&held), 1);
    });
}

#[test]
fn a_client_is_told_when_nobody_can_answer_any_more() {
    for (text, status) in [
        ("<clone value='3'><drop/></clone>", 202),
        ("<clone value='3'><throwError value='no'/></clone>", 500),
        ("<clone value='300'><switch value='299'/><drop/></clone>", 500),
        ("<clone value='3'><respond/></clone>", 200),
    ] {
        let tested = tested(text);
        assert_eq!(tested.ask("POST", "/", &[], "").status, status, "{text}");
        assert_eq!(tested.bus.services().scopes.open(), 0, "{text}");
    }
}

/// Who is waiting in one line does not wait for all of another one.
#[test]
fn lines_take_turns() {
    let queue = Queue::new();
    let put = |job: u32, line| queue.submit(job, line, 1, 2, || true);
    for part in 10..20 {
        assert_eq!(put(part, Line::Apart), Ok(()));
    }
    assert_eq!(
        [put(1, Line::New), put(2, Line::New), put(3, Line::New), put(4, Line::New)],
        [Ok(()), Ok(()), Ok(()), Err(4)]
    );
    assert_eq!([put(5, Line::Begun), put(0, Line::Over)], [Ok(()), Ok(())]);
    let mut order = Vec::new();
    while let Some(job) = queue.next_now() {
        order.push(job);
        queue.done();
    }
    assert_eq!(order, [0, 5, 1, 10, 2, 11, 3, 12, 13, 14, 15, 16, 17, 18, 19]);
}
