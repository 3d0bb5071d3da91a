//! `aggregate-cannot-complete`: an `aggregate` that waits for parts that are never made.

use crate::Rule;
use crate::look::{Finding, Look};
use crate::references::literal_key;
use config::Element;
use diagnostics::Severity;
use std::collections::HashMap;

pub const RULE: Rule = Rule {
    id: "aggregate-cannot-complete",
    severity: Severity::Warning,
    summary: "An `aggregate` waits for more parts than are made, or for parts that nothing in the configuration makes.",
    reason: "`aggregate` collects the copies of the `clone` or `iterate` that has the same `id`, until all of them have come, or as many as `min` or `max` say, or the `timeout` is over. Reported is an `aggregate`

* whose `id` no `clone` or `iterate` has: messages that come to it are no parts, so each passes alone;
* with `correlateOn` and no `completeCondition`, if nothing in the configuration splits messages: the number of parts is not known, so it waits for ever;
* without `id` and `correlateOn`, with a `min`, if nothing in the configuration splits messages: messages that come to it pass alone, whatever `min` says;
* whose `min` is larger than the number of targets of the `clone` with its `id`, or of the only `clone` if neither has one, without a `timeout`: it is complete with the parts of all targets, so that `min` has no effect;
* that stands in one target of a `clone` with several: the copies of the other targets do not come to it. It goes on with the one that it has, and the answers of the others are dropped.",
    example: r#"<proxy name="Quotes">
  <target>
    <inSequence>
      <clone id="quotes">
        <target endpoint="A"/>
        <target endpoint="B"/>
      </clone>
    </inSequence>
    <outSequence>
      <aggregate id="quotes">
        <completeCondition>
          <messageCount min="3"/>
        </completeCondition>
        <onComplete expression="$body/*">
          <send/>
        </onComplete>
      </aggregate>
    </outSequence>
  </target>
</proxy>
<endpoint name="A"><address uri="http://localhost:9000/a"/></endpoint>
<endpoint name="B"><address uri="http://localhost:9000/b"/></endpoint>"#,
    mended: r#"<proxy name="Quotes">
  <target>
    <inSequence>
      <clone id="quotes">
        <target endpoint="A"/>
        <target endpoint="B"/>
      </clone>
    </inSequence>
    <outSequence>
      <aggregate id="quotes">
        <completeCondition timeout="10">
          <messageCount min="2"/>
        </completeCondition>
        <onComplete expression="$body/*">
          <send/>
        </onComplete>
      </aggregate>
    </outSequence>
  </target>
</proxy>
<endpoint name="A"><address uri="http://localhost:9000/a"/></endpoint>
<endpoint name="B"><address uri="http://localhost:9000/b"/></endpoint>"#,
    check,
};

fn check(look: &mut Look<'_>) {
    let steps = look.steps();
    let splits: Vec<&Element> =
        steps.iter().copied().filter(|step| step.is("clone") || step.is("iterate")).collect();
    // The effect of other steps is unknown.
    let others = steps
        .iter()
        .any(|step| matches!(step.local(), "class" | "script" | "foreach") || step.local().contains('.'));
    let may_split = may_split(look, &steps);
    let alone = alone(look, &splits);
    for step in steps.into_iter().filter(|step| step.is("aggregate")) {
        let id = step.attribute("id").filter(|id| !id.value.trim().is_empty());
        let same: Vec<&Element> =
            splits.iter().copied().filter(|split| split.attr("id") == id.map(|id| &*id.value)).collect();
        let condition = step.child("completeCondition");
        let counts = condition.and_then(|condition| condition.child("messageCount"));
        let set = |element: Option<&Element>, name: &str| {
            let value = element.and_then(|element| element.attr(name)).map(str::trim);
            value.is_some_and(|value| value.parse::<i64>().map_or(!value.is_empty(), |number| number > 0))
        };
        let waits_for_count = !set(condition, "timeout");
        let correlates = step.child("correlateOn").is_some();
        if let Some(id) = id
            && same.is_empty()
            && !correlates
            && !others
        {
            let message = format!("no `clone` or `iterate` has the id `{}`", id.value);
            let finding = Finding::new(message, id.value_span, "each message passes alone");
            look.report(match splits.iter().find(|split| split.attribute("id").is_some()) {
                Some(other) => finding.and(other.value_span("id"), "here the id is another one"),
                None => finding,
            });
        } else if let Some(split) = alone.get(&std::ptr::from_ref(step))
            && !correlates
            && !["min", "max"].iter().any(|name| takes_one(counts, name))
        {
            let targets = split.children_named("target").count();
            look.report(
                Finding::new(
                    "this `aggregate` gets the copy of one target only",
                    step.start_tag(),
                    "the copies of the other targets do not come here",
                )
                .and(split.start_tag(), format!("{targets} targets"))
                .help("put it into a sequence that all targets name, or into the out sequence that gets the answers"),
            );
        } else if correlates
            && splits.is_empty()
            && !others
            && waits_for_count
            && !set(counts, "min")
            && !set(counts, "max")
        {
            let message = "this `aggregate` waits for ever";
            let label = "nothing says how many messages belong together";
            look.report(
                Finding::new(message, step.start_tag(), label)
                    .help("add a `completeCondition` with `messageCount` or a `timeout`"),
            );
        } else if let Some(min) = counts.and_then(|counts| counts.attribute("min"))
            && min.value.trim().parse::<i64>().is_ok_and(|min| min > 1)
            && id.is_none()
            && !correlates
            && splits.is_empty()
            && !others
            && !may_split
        {
            let message = "nothing splits a message: this `aggregate` has nothing to collect";
            look.report(
                Finding::new(message, min.value_span, "each message passes alone")
                    .and(step.start_tag(), "here")
                    .help("put it behind a `clone` or `iterate`, or say with `correlateOn` which messages belong together"),
            );
        } else if (id.is_some() || (splits.len() == 1 && !correlates && !others && !may_split))
            && let [split] = same[..]
            && split.is("clone")
            && split.attribute("iterations").is_none()
            && waits_for_count
            && !set(counts, "max")
            && let Some(min) = counts.and_then(|counts| counts.attribute("min"))
            && let Ok(wanted) = min.value.trim().parse::<usize>()
        {
            let made = split.children_named("target").count();
            if wanted > made {
                let message = format!("`min` is {wanted}, and there are {made} parts");
                look.report(
                    Finding::new(message, min.value_span, "never reached: all parts are enough")
                        .and(split.start_tag(), format!("{made} targets")),
                );
            }
        }
    }
}

/// Whether one part is enough, or how many are is not known.
fn takes_one(counts: Option<&Element>, name: &str) -> bool {
    let value =
        counts.and_then(|element| element.attr(name)).map(str::trim).filter(|value| !value.is_empty());
    value.is_some_and(|value| value.parse::<i64>().map_or(true, |number| number == 1))
}

/// The aggregates that stand in one target of a `clone` with several, whose copies they collect, and that `clone`.
fn alone<'a>(look: &Look<'a>, splits: &[&'a Element]) -> HashMap<*const Element, &'a Element> {
    let mut found = HashMap::new();
    // Those inside of others come later.
    for split in splits {
        let is_several = split.is("clone")
            && split.attribute("iterations").is_none()
            && split.children_named("target").count() > 1;
        for list in look.language.lists(split) {
            let steps = look.steps_in(list);
            // What is called there may split the copy once more.
            let calls = steps.iter().any(|step| step.is("sequence") || step.is("call-template"));
            for step in steps.into_iter().filter(|step| step.is("aggregate")) {
                let is_its_own = step.attr("id").is_none_or(|id| split.attr("id") == Some(id));
                match is_several && is_its_own && !calls {
                    true => found.insert(std::ptr::from_ref(step), *split),
                    false => found.remove(&std::ptr::from_ref(step)),
                };
            }
        }
    }
    found
}

/// Whether a message may become several by something else: an endpoint with recipients, a sequence that is not in the configuration.
fn may_split<'a>(look: &Look<'a>, steps: &[&'a Element]) -> bool {
    let configuration = look.configuration;
    let elsewhere = |step: &&Element| match step.local() {
        "sequence" if step.attribute("key").is_some() => {
            literal_key(step, "key").is_none_or(|name| look.sequence(name).is_none())
        }
        "call-template" => literal_key(step, "target")
            .is_none_or(|name| configuration.sequence_templates.get(name).is_none()),
        _ => false,
    };
    let mut elements: Vec<&Element> =
        look.flows().iter().filter(|flow| flow.key.is_none()).map(|flow| flow.list).collect();
    elements.extend(configuration.endpoints.iter().map(|endpoint| &endpoint.element));
    elements.extend(configuration.endpoint_templates.iter().map(|template| &template.body));
    steps.iter().any(elsewhere) || elements.into_iter().any(|element| has_recipients(element, 0))
}

fn has_recipients(element: &Element, depth: usize) -> bool {
    element.is("recipientlist")
        || (depth < 200 && element.elements().any(|child| has_recipients(child, depth + 1)))
}
