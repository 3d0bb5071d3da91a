//! `enqueue`: has a copy of the message wait for its turn in a priority executor.

use config::{ArtifactKind, Element};
use flow::executor::{Executor, Full};
use flow::mediator::Enqueued;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Family, Fault, Flow, KeyValue, ListId,
    Mediator, Need, Page, SequenceRef, Values,
};
use std::sync::Arc;

/// `<enqueue executor="E" sequence="S" [priority="N"]/>`
pub const DEFINITION: Definition = Definition {
    name: "enqueue",
    summary: "Queues a copy of the message in a priority executor; it runs through a sequence when its turn has come.",
    attributes: &[
        Attribute::optional(
            "executor",
            Values::Key,
            "the priority executor; where there is none, the sequence runs in place",
        ),
        Attribute::required("sequence", Values::Key, "the sequence"),
        Attribute::optional("priority", Values::Integer, "the queue; a larger number comes sooner").or("0"),
    ],
    children: Children::None,
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Core,
    semantics: "A copy of the message waits in the queue of its priority and runs through `sequence` when its turn has come; the flow goes on after `enqueue` at
once. The copy has a message id of its own and copies of properties and variables, as with `clone`. If it answers (`respond`, the answer to a `send`), that is the answer for the client, unless the
flow has answered before. It ends with its sequence. A fault in it runs the fault handlers of the flow.

As many messages run at a time as the executor has threads (`core`): its queues say how many more may wait. Where the queue is full, up to `max` run; beyond,
`enqueue` is a fault: `Thread pool exhausted`, which is 503 for a client that nobody answers. How a [priority executor](../executors.md) chooses who is next, and what is seen of it, stands there.

A priority that has no queue of its own waits in the next lower one, or in the lowest. Where the configuration has no such executor, the sequence runs in place, on the
message itself, as in WSO2.",
    inside: &[],
    needs: &[(Need::Whole, "always: the copy needs a body of its own")],
    refused: &[
        ("<enqueue executor=\"e\"/>", "`enqueue` needs the attribute `sequence`"),
        ("<enqueue executor=\"e\" sequence=\"s\" priority=\"high\"/>", "`priority` cannot be `high`"),
        ("<enqueue executor=\"e\" sequence=\"s\" priority=\"99999999999\"/>", "`priority` cannot be `99999999999`"),
        ("<enqueue executor=\"none\" sequence=\"s\"/>", "there is no priority executor `none`"),
    ],
    faults: &[
        ("0", "there is no such sequence, or the queue is full and as many messages run as may"),
        ("601000", "the body is larger than a flow may hold"),
    ],
};

struct Enqueue {
    executor: Option<KeyValue>,
    sequence: SequenceRef,
    priority: i32,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let sequence = compiler.sequence(element, "sequence")?;
    let executor = match element.attribute("executor") {
        Some(_) => Some(compiler.key_value(element, "executor")?),
        None => None,
    };
    let priority = match element.attribute("priority") {
        None => 0,
        Some(attribute) => {
            let Ok(priority) = attribute.value.trim().parse() else {
                let message = format!("`priority` cannot be `{}`", attribute.value.trim());
                let label = format!("expected a number from {} to {}", i32::MIN, i32::MAX);
                compiler.error("bad-value", message, attribute.value_span, label);
                return None;
            };
            priority
        }
    };
    let executors = &compiler.configuration.priority_executors;
    if let (Some(name), Some(attribute)) =
        (executor.as_ref().and_then(KeyValue::literal), element.attribute("executor"))
    {
        match executors.get(name.trim()) {
            None => {
                let names: Vec<_> = executors.names().map(str::to_owned).collect();
                let message = format!("there is no {} `{name}`", ArtifactKind::PriorityExecutor);
                let found = diagnostics::Diagnostic::warning("unknown-executor", message)
                    .at(attribute.value_span, "the sequence runs in place, at once")
                    .did_you_mean(name, names.iter().map(String::as_str));
                compiler.diagnostics.push(found);
            }
            Some(defined) if defined.queues.iter().all(|queue| queue.priority != priority) => {
                let mut has: Vec<_> = defined.queues.iter().map(|queue| queue.priority.to_string()).collect();
                has.dedup();
                let message =
                    format!("the priority executor `{name}` has no queue of the priority {priority}");
                let label =
                    format!("it waits in the next lower one, or in the lowest; there are {}", has.join(", "));
                let place = element
                    .attribute("priority")
                    .map_or(element.start_tag(), |attribute| attribute.value_span);
                compiler.warning("unknown-priority", message, place, label);
            }
            Some(_) => {}
        }
    }
    Some(Box::new(Enqueue { executor, sequence, priority }))
}

impl Enqueue {
    fn executor(&self, context: &mut Context) -> Result<Option<Arc<Executor>>, Fault> {
        let Some(name) = &self.executor else { return Ok(None) };
        let name = name.resolve(context)?.unwrap_or_default();
        Ok(context.plan().executor(name.trim()).cloned())
    }
}

impl Mediator for Enqueue {
    fn passes_on(&self) -> bool {
        true
    }

    fn need(&self) -> Need {
        Need::Whole
    }

    fn reason(&self) -> String {
        "copies the message".to_owned()
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        self.sequence.known().map(|list| ("sequence".to_owned(), list)).into_iter().collect()
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let list = self.sequence.resolve(context)?;
        let Some(executor) = self.executor(context)? else { return Ok(Flow::Enter(list)) };
        let ticket = executor.ticket(self.priority).map_err(|Full| Fault {
            status: 503,
            ..Fault::new(format!("Thread pool exhausted: the priority executor {} is full", executor.name))
        })?;
        Ok(Flow::Enqueue(Enqueued { list, copy: context.branch(), ticket, executor }))
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing;

    const EXECUTOR: &str = "<!--top--><priority-executor name='e'><queues><queue priority='10' size='1'/><queue priority='1' size='1'/></queues>
        <threads core='1' max='1'/></priority-executor>";

    #[test]
    fn without_an_executor_the_sequence_runs_in_place_and_a_missing_one_is_a_fault() {
        let text = r#"<enqueue executor="e" sequence="a" priority="3"/><enqueue executor="e" sequence="b"/>
            <!--top--><sequence name="a"><property name="ran" value="1"/></sequence>
            <sequence name="fault"><property name="seen" expression="$ctx:ERROR_MESSAGE"/></sequence>"#;
        let tested = testing::main(&registry(testing::endpoints), text);
        assert!(tested.reports("there is no priority executor `e`"), "{:?}", tested.found);
        let end = tested.run(&[], "");
        assert_eq!(end.property("ran").as_deref(), Some("1"));
        assert_eq!(end.property("seen").as_deref(), Some("Sequence named b cannot be found"));
    }

    #[test]
    fn the_copy_goes_its_own_way_and_what_it_answers_is_the_answer() {
        let text = format!(
            "<enqueue executor='e' sequence='a' priority='10'/><property name='behind' value='1'/>{EXECUTOR}
            <sequence name='a'><payloadFactory><format><b xmlns=''>$1</b></format>
            <args><arg expression=\"concat(get-property('behind'), .//a)\"/></args></payloadFactory><respond/></sequence>"
        );
        let tested = testing::main(&registry(testing::endpoints), &text);
        assert!(tested.found.is_empty(), "{:?}", tested.found);
        let response = tested.ask("POST", "/", &[("Content-Type", "application/xml")], "<a>x</a>");
        assert_eq!((response.status, response.body.as_str()), (200, "<b>x</b>"));
    }

    #[test]
    fn a_full_queue_is_a_fault_of_the_flow() {
        // The first one runs and waits for its own message; two wait; the rest finds no place.
        let text = format!(
            "<foreach sequential-execution='true' collection='//i'><sequence><enqueue executor='e' sequence='a' priority='1'/></sequence></foreach>
            <respond/>{EXECUTOR}<sequence name='a'><drop/></sequence>
            <sequence name='fault'><property name='seen' expression='$ctx:ERROR_MESSAGE'/><property name='HTTP_SC' value='503' scope='axis2'/><respond/></sequence>"
        );
        let text = text
            .replace("<foreach sequential-execution='true' collection='//i'><sequence>", "")
            .replace("</sequence></foreach>", &"<enqueue executor='e' sequence='a' priority='1'/>".repeat(3));
        let tested = testing::main(&registry(testing::endpoints), &text);
        let end = tested.run(&[], "");
        assert_eq!(
            end.property("seen").as_deref(),
            Some("Thread pool exhausted: the priority executor e is full")
        );
    }

    #[test]
    fn what_is_not_as_it_should_be_is_said() {
        let load = |text: &str| {
            testing::main(&registry(testing::endpoints), &format!("{text}{EXECUTOR}<sequence name='a'/>"))
        };
        let found = load("<enqueue executor='e' sequence='a' priority='7'/>");
        assert!(found.reports("has no queue of the priority 7"), "{:?}", found.found);
        let found = load("<enqueue executor='ee' sequence='a'/>");
        assert!(found.reports("there is no priority executor `ee`"), "{:?}", found.found);
    }
}
