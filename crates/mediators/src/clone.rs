//! `clone`: copies of the message, each through its target.

use crate::target::{
    CONTINUE_PARENT, Correlation, ID, SEQUENTIAL, TARGET, TARGET_ENDPOINT, TARGET_SEQUENCE, Target, is_true,
    parts,
};
use config::Element;
use flow::reference::EndpointRef;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Family, Fault, Flow, KeyValue, ListId,
    Mediator, Moves, Need, Page, Split, Values,
};
use message::Value;
use std::sync::Arc;

/// Most copies that `iterations` may ask for.
const MAX_ITERATIONS: i64 = 100_000;

/// `<clone [id] [continueParent] [sequential] [iterations]><target/>+</clone>`
pub const DEFINITION: Definition = Definition {
    name: "clone",
    summary: "Sends a copy of the message through each target.",
    attributes: &[
        ID,
        CONTINUE_PARENT,
        SEQUENTIAL,
        Attribute {
            name: "iterations",
            required: false,
            values: Values::Key,
            default: "",
            meaning: "number of copies for the one target; CLONED_ITERATION_INDEX counts them from 1",
        },
    ],
    children: Children::Elements(&["target"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Splitting,
    semantics: "Each target gets a copy of the message, with a message id of its own and copies of its properties and variables, so targets do not see
each other's changes. All targets run at the same time, up to 100, or with `sequential=\"true\"` one after the other. The message itself ends here
unless `continueParent` is true. An `aggregate` with the same `id` collects the copies.

`iterations` is the number of copies that go through a single target; the property `CLONED_ITERATION_INDEX` counts them from 1. 0 makes no
copies; more than 100,000 is an error.

A target runs the first of these that it has: the sequence inside, the sequence that it names, the endpoint inside, the endpoint that it names. The
answer of an endpoint goes to the out sequence. If a copy fails, the fault sequence runs for that copy; the others go on, unless `sequential` and the property
`STOP_TARGET_EXECUTION_ON_FAILURE` are true.",
    inside: &[
        TARGET,
        TARGET_SEQUENCE,
        TARGET_ENDPOINT,
    ],
    needs: &[(Need::Whole, "always: each copy needs a body of its own")],
    refused: &[
        ("<clone/>", "`clone` has no `target`"),
        ("<clone iterations=\"2\"><target/><target/></clone>", "`iterations` goes with exactly one `target`"),
        ("<clone iterations=\"some\"><target/></clone>", "`some` is not a number of copies"),
    ],
    faults: &[
        (
            "0",
            "a target names a sequence that does not exist, or `iterations` gives no number or more than 100,000",
        ),
        (
            "601000",
            "what a copy goes through reads the body, and it is not what its content type says, or larger than a flow may hold",
        ),
    ],
};

/// The mediator; the parts that have not had their turn keep its core.
struct Clone(Arc<Core>);

struct Core {
    targets: Vec<Target>,
    iterations: Option<KeyValue>,
    continue_parent: bool,
    sequential: bool,
    correlation: Correlation,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let iterations = match element.attribute("iterations") {
        Some(_) => Some(compiler.key_value(element, "iterations")?),
        None => None,
    };
    let mut targets = Vec::new();
    for (index, target) in element.children_named("target").enumerate() {
        let compiled = Target::compile(target, format!("target {} of clone", index + 1), compiler)?;
        compiled.warn_if_empty(target, compiler);
        targets.push(compiled);
    }
    let place = element.start_tag();
    if targets.is_empty() {
        compiler.warning("missing-element", "`clone` has no `target`", place, "there will be no copies");
    }
    if iterations.is_some() && targets.len() > 1 {
        compiler.error("bad-value", "`iterations` goes with exactly one `target`", place, "here are several");
        return None;
    }
    if let Some(literal) = iterations.as_ref().and_then(KeyValue::literal)
        && literal.trim().parse::<i64>().is_err()
    {
        compiler.error(
            "bad-value",
            format!("`{literal}` is not a number of copies"),
            place,
            "expected a number",
        );
        return None;
    }
    Some(Box::new(Clone(Arc::new(Core {
        targets,
        iterations,
        continue_parent: is_true(element, "continueParent"),
        sequential: is_true(element, "sequential"),
        correlation: Correlation::of(element),
    }))))
}

impl Core {
    /// How many copies go through the one target, if that is given.
    fn count(&self, context: &mut Context) -> Result<Option<usize>, Fault> {
        let Some(iterations) = &self.iterations else { return Ok(None) };
        let text = iterations.resolve(context)?.unwrap_or_default();
        let number: i64 = text
            .trim()
            .parse()
            .map_err(|_| Fault::new(format!("the iterations `{}` of clone are not a number", text.trim())))?;
        if number > MAX_ITERATIONS {
            return Err(Fault::new(format!("clone makes at most {MAX_ITERATIONS} copies, not {number}")));
        }
        Ok(Some(usize::try_from(number).unwrap_or(0)))
    }
}

impl Mediator for Clone {
    fn moves(&self) -> Moves {
        Moves::Long
    }

    fn need(&self) -> Need {
        Need::Whole
    }

    fn reason(&self) -> String {
        "copies the message".into()
    }

    fn passes_on(&self) -> bool {
        self.0.targets.iter().any(Target::passes_on)
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        let label =
            |(index, target): (usize, &Target)| Some((format!("target {}", index + 1), target.list()?));
        self.0.targets.iter().enumerate().filter_map(label).collect()
    }

    fn endpoints(&self) -> Vec<Arc<EndpointRef>> {
        self.0.targets.iter().filter_map(Target::endpoint).collect()
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let core = &self.0;
        let iterations = core.count(context)?;
        let count = iterations.unwrap_or(core.targets.len());
        if count == 0 {
            return Ok(if core.continue_parent { Flow::Next } else { Flow::Stop });
        }
        core.correlation.begin(context);
        let mut original = context.branch_without_payload();
        // Where the message ends here, its payload is not needed any more.
        original.payload =
            if core.continue_parent { context.payload.copy() } else { std::mem::take(&mut context.payload) };
        let id = Value::from(context.message_id());
        let (core, repeated) = (Arc::clone(core), iterations.is_some());
        let (continue_parent, sequential) = (core.continue_parent, core.sequential);
        let part = move |index| {
            let mut copy = original.branch_without_payload();
            copy.payload = if index + 1 == count {
                std::mem::take(&mut original.payload)
            } else {
                original.payload.copy()
            };
            core.correlation.mark(&mut copy, &id, index, count);
            if repeated {
                copy.properties.set("CLONED_ITERATION_INDEX", Value::Integer(index as i64 + 1));
            }
            core.targets[if repeated { 0 } else { index }].branch(copy)
        };
        let parts = parts((0..count).map(part)).map_err(|(fault, copy)| {
            // The fault sequence has the body as it came.
            context.payload = copy.payload;
            *fault
        })?;
        Ok(Flow::Split(Split {
            parts,
            count,
            continue_parent,
            sequential,
            stops: context.properties.get("STOP_TARGET_EXECUTION_ON_FAILURE").is_some_and(Value::is_true),
            aside: false,
        }))
    }
}

#[cfg(test)]
mod tests {
    use flow::testing;

    const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];

    #[test]
    fn copies_go_through_their_targets_and_meet_again() {
        let part = |text: &str| {
            format!(
                "<target><sequence><payloadFactory media-type='json'><format>{text}</format></payloadFactory></sequence></target>"
            )
        };
        let behind = "<aggregate><onComplete expression='json-eval($)'><respond/></onComplete></aggregate>";
        let text = format!("<clone sequential='true'>{}{}</clone>{behind}", part("{\"a\":1}"), part("[2]"));
        let tested = testing::main(&crate::registry(testing::endpoints), &text);
        assert!(tested.found.is_empty(), "{:?}", tested.found);
        assert_eq!(tested.ask("POST", "/", JSON, "{}").body, r#"[{"a":1},[2]]"#);
        // Several at once: any order.
        let text = text.replace(" sequential='true'", "");
        let tested = testing::main(&crate::registry(testing::endpoints), &text);
        assert!(
            [r#"[{"a":1},[2]]"#, r#"[[2],{"a":1}]"#].contains(&&*tested.ask("POST", "/", JSON, "{}").body)
        );
    }

    #[test]
    fn the_fault_sequence_of_a_target_that_is_not_there_has_the_body() {
        let text = "<clone><target sequence='{$ctx:none}'/></clone><!--top--><sequence name='fault'><respond/></sequence>";
        for (text, what) in [
            (text.to_owned(), "one"),
            (text.replace("<target", "<target sequence='{$ctx:none}'/><target"), "two"),
        ] {
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert_eq!(tested.ask("POST", "/", JSON, r#"{"a":1}"#).body, r#"{"a":1}"#, "{what}");
        }
    }

    #[test]
    fn iterations_count_from_one() {
        let text = |count: &str| {
            format!(
                "<clone iterations='{count}' sequential='true'><target><sequence>\
            <payloadFactory media-type='json'><format>$1</format><args>\
            <arg expression=\"get-property('CLONED_ITERATION_INDEX')\"/></args></payloadFactory></sequence></target></clone>\
            <aggregate><onComplete expression='json-eval($)'><respond/></onComplete></aggregate>"
            )
        };
        for (count, body, answer) in [("3", "{}", "[1,2,3]"), ("{json-eval($.n)}", r#"{"n":2}"#, "[1,2]")] {
            let tested = testing::main(&crate::registry(testing::endpoints), &text(count));
            assert!(tested.found.is_empty(), "{:?}", tested.found);
            assert_eq!(tested.ask("POST", "/", JSON, body).body, answer);
        }
        let tested = testing::main(&crate::registry(testing::endpoints), &text("{json-eval($.n)}"));
        let fault = tested.run(JSON, r#"{"n":"x"}"#).fault();
        assert!(
            fault.as_ref().is_some_and(|fault| fault.contains("`x` of clone are not a number")),
            "{fault:?}"
        );
        assert_eq!(tested.run(JSON, r#"{"n":-1}"#).fault(), None);
        assert!(tested.run(JSON, r#"{"n":99999999}"#).fault().is_some());
    }

    #[test]
    fn a_failure_stops_the_targets_behind_it_where_that_is_asked_for() {
        let target = |name: &str, then: &str| {
            format!(
                "<target><sequence><property name='{name}' value='1' scope='operation'/>{then}</sequence></target>"
            )
        };
        for (stop, sequential, inside_fault, wanted) in [
            ("true", "true", false, [true, true, false]),
            ("true", "true", true, [true, true, false]),
            ("false", "true", false, [true, true, true]),
            ("true", "false", false, [true, true, true]),
        ] {
            let split = format!(
                "<property name='STOP_TARGET_EXECUTION_ON_FAILURE' value='{stop}'/>\
                 <clone sequential='{sequential}' continueParent='true'>{}{}{}</clone>\
                 <call><endpoint key='e'/></call><respond/>",
                target("a", ""),
                target("b", "<throwError type='X'/>"),
                target("c", "")
            );
            let backend = testing::backend("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}");
            let top = format!(
                "<endpoint name='e'><address uri='{backend}'/></endpoint><sequence name='quiet'><drop/></sequence>"
            );
            let text = match inside_fault {
                false => format!(
                    "<sequence key='split'/><!--top-->{top}<sequence name='split' onError='quiet'>{split}</sequence>"
                ),
                true => format!(
                    "<sequence key='s'/><!--top-->{top}<sequence name='s' onError='f'><throwError/></sequence>\
                     <sequence name='f'><property name='ERROR_CODE' action='remove'/><sequence key='g'/></sequence>\
                     <sequence name='g' onError='quiet'>{split}</sequence>"
                ),
            };
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert!(tested.found.is_empty(), "{:?}", tested.found);
            let end = tested.run(JSON, "{}");
            let ran = ["a", "b", "c"].map(|name| end.context.operation(name).is_some());
            assert_eq!(ran, wanted, "{stop} {sequential} {inside_fault}");
            let told = end.property("ERROR_ON_TARGET_EXECUTION");
            assert_eq!(told.as_deref(), (!wanted[2]).then_some("true"), "{stop} {sequential}");
        }
    }

    #[test]
    fn a_part_that_fails_runs_its_fault_sequence_and_the_client_is_answered() {
        let text = "<clone><target sequence='nowhere'/></clone><!--top--><sequence name='fault'><respond/></sequence>";
        let tested = testing::main(&crate::registry(testing::endpoints), text);
        let end = tested.run(JSON, "{}");
        assert!(
            end.fault().is_some_and(|fault| fault.contains("nowhere cannot be found")),
            "{:?}",
            end.fault()
        );
        for text in [
            "<clone/>",
            "<clone iterations='x'><target/></clone>",
            "<clone iterations='2'><target/><target/></clone>",
        ] {
            let tested = testing::main(&crate::registry(testing::endpoints), text);
            assert!(!tested.found.is_empty(), "{text}");
        }
    }
}
