//! `filter`: one of two branches, by an expression or by a regular expression on a value.

use config::Element;
use flow::streaming::{Early, decide};
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Expression, Family, Fault, Flow, Inside,
    ListId, Mediator, Need, Page, Pattern, SequenceRef, Step, Values, Wanted, work_out_beside,
};

/// `<filter xpath="EXPR">` or `<filter source="EXPR" regex="PATTERN">`, with `then` and `else`, or the mediators of
/// `then` inside.
pub const DEFINITION: Definition = Definition {
    name: "filter",
    summary: "Runs `then` if the condition holds, else `else`.",
    attributes: &[
        Attribute {
            name: "xpath",
            required: false,
            values: Values::Expression,
            default: "",
            meaning: "the condition; wins over source and regex",
        },
        Attribute {
            name: "source",
            required: false,
            values: Values::Expression,
            default: "",
            meaning: "the value that `regex` has to match as a whole",
        },
        Attribute {
            name: "regex",
            required: false,
            values: Values::Regex,
            default: "",
            meaning: "a regular expression of Java's dialect",
        },
    ],
    children: Children::Elements(&["then", "else", "#mediators"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Routing,
    semantics: "With `xpath` the condition holds if the value is true: a node-set that is not empty, a number other than 0, a text that is not
empty. A `${…}` expression must be the Boolean `true`. With `source` and `regex` it holds if the regular expression matches
the whole text of the value; a missing value matches nothing.

`then` runs if it holds, `else` if not; a missing branch lets the message pass. Both have mediators, or name a `sequence`.
Without `then` the mediators inside of `filter` are the `then`. What ends a branch (`drop`, `respond`, `send`) ends the flow;
otherwise the flow goes on after `filter`.

If possible, the condition is decided while the body arrives. The rest of the body is then relayed unread, so `filter` does not notice
an error in it.",
    inside: &[
        Inside::new(
            "then?",
            "runs if the condition holds",
            &[Attribute::optional("sequence", Values::Key, "a sequence instead of the mediators inside")],
        )
        .with("mediator*"),
        Inside::new(
            "else?",
            "runs if it does not hold; needs a `then`",
            &[Attribute::optional("sequence", Values::Key, "a sequence instead of the mediators inside")],
        )
        .with("mediator*"),
    ],
    needs: &[
        (Need::Nothing, "the condition is a constant"),
        (Need::Headers, "the condition looks at properties and headers"),
        (Need::Prefix, "an XPath on the body that can be decided while it arrives (`busbar explain` tells)"),
        (Need::Whole, "any other condition on the body; a branch is named by an expression on it"),
    ],
    refused: &[
        ("<filter><drop/></filter>", "`filter` needs a condition"),
        ("<filter xpath=\"//a[\"><drop/></filter>", "not a valid expression"),
        ("<filter xpath=\"//a\"><else><drop/></else></filter>", "`else` without `then`"),
        ("<filter source=\"//a\" regex=\"(\"><drop/></filter>", "not a valid regular expression"),
        ("<filter source=\"//a\" regex=\"\"><drop/></filter>", "must not be empty"),
    ],
    faults: &[
        ("0", "a branch names a sequence that does not exist"),
        (
            "601000",
            "the condition reads the body, and it is not what its content type says, or larger than a flow may hold",
        ),
    ],
};

enum Condition {
    Truth(Expression),
    Match(Expression, Pattern),
}

enum Branch {
    Absent,
    Inline(ListId),
    Named(SequenceRef),
}

impl Branch {
    fn need(&self) -> Need {
        match self {
            Branch::Named(sequence) => sequence.need(),
            Branch::Absent | Branch::Inline(_) => Need::Nothing,
        }
    }
}

struct Filter {
    condition: Condition,
    then: Branch,
    other: Branch,
    /// What it needs is [`Need::Prefix`].
    early: bool,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let condition = if element.attr("xpath").is_some() {
        Condition::Truth(compiler.expression(element, "xpath")?)
    } else if element.attr("source").is_some() && element.attr("regex").is_some() {
        let source = compiler.expression(element, "source");
        if let Some(regex) = element.attribute("regex").filter(|regex| regex.value.trim().is_empty()) {
            let message = "`regex` must not be empty";
            compiler.error("empty-attribute", message, regex.value_span, "expected a regular expression");
            return None;
        }
        let pattern = compiler.pattern(element, "regex");
        let (source, pattern) = (source?, pattern?);
        compiler.check_numbers(&source, &pattern, element.value_span("regex"));
        Condition::Match(source, pattern)
    } else {
        compiler.error(
            "missing-attribute",
            "`filter` needs a condition",
            element.start_tag(),
            "expected `xpath`, or `source` and `regex`",
        );
        return None;
    };
    let mut branch = |name: &str| match element.child(name) {
        None => Branch::Absent,
        Some(child) => match compiler.sequence(child, "sequence") {
            Some(sequence) => Branch::Named(sequence),
            None => Branch::Inline(compiler.list(child, format!("{name} of filter"))),
        },
    };
    let other = branch("else");
    let mut then = branch("then");
    if matches!(then, Branch::Absent) {
        if let Branch::Inline(_) | Branch::Named(_) = other {
            let place = element.child("else").map_or(element.start_tag(), Element::start_tag);
            compiler.error(
                "unknown-element",
                "`else` without `then`",
                place,
                "put what is before it into `then`",
            );
            return None;
        }
        then = Branch::Inline(compiler.list(element, "then of filter"));
    }
    let mut filter = Filter { condition, then, other, early: false };
    filter.early = filter.need() == Need::Prefix;
    Some(Box::new(filter))
}

impl Filter {
    fn wanted(&self) -> (&Expression, Wanted) {
        match &self.condition {
            Condition::Truth(expression) => (expression, Wanted::Boolean),
            Condition::Match(expression, _) => (expression, Wanted::Text),
        }
    }

    /// The answer of a value that was decided on the body that has arrived.
    fn early(&self, value: xpath::Value) -> Result<bool, Fault> {
        match &self.condition {
            Condition::Truth(_) => Ok(value.to_boolean()),
            Condition::Match(_, pattern) => Ok(pattern.matches(&flow::streaming::text(&value))?),
        }
    }

    /// The same while the body arrives: a match that takes long is no work for the worker.
    async fn decided(&self, value: xpath::Value, context: &mut Context) -> Result<bool, Fault> {
        let Condition::Match(_, pattern) = &self.condition else { return self.early(value) };
        let (pattern, text) = (pattern.clone(), flow::streaming::text(&value));
        work_out_beside(context, move |_| Ok(pattern.matches(&text)?)).await
    }

    fn on_tree(&self, context: &mut Context) -> Result<bool, Fault> {
        match &self.condition {
            Condition::Truth(expression) => expression.boolean(context),
            Condition::Match(expression, pattern) => {
                let matches = |value: Option<&str>| value.map_or(Ok(false), |value| pattern.matches(value));
                Ok(expression.with_string(context, matches)??)
            }
        }
    }

    fn choose(&self, truth: bool, context: &mut Context) -> Result<Flow, Fault> {
        match if truth { &self.then } else { &self.other } {
            Branch::Absent => Ok(Flow::Next),
            Branch::Inline(list) => Ok(Flow::Enter(*list)),
            Branch::Named(sequence) => Ok(Flow::Enter(sequence.resolve(context)?)),
        }
    }
}

impl Mediator for Filter {
    fn need(&self) -> Need {
        let (expression, wanted) = self.wanted();
        expression.early_need(wanted).max(self.then.need()).max(self.other.need())
    }

    fn reason(&self) -> String {
        let (expression, wanted) = self.wanted();
        expression.early_reason(wanted)
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        let inline = |name: &str, branch: &Branch| match branch {
            Branch::Inline(list) => Some((name.to_owned(), *list)),
            Branch::Named(sequence) => sequence.known().map(|list| (name.to_owned(), list)),
            Branch::Absent => None,
        };
        [inline("then", &self.then), inline("else", &self.other)].into_iter().flatten().collect()
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        if !self.early {
            return Step::Done(self.mediate(context));
        }
        // Most bodies have arrived with their head: then nothing waits.
        let (expression, wanted) = self.wanted();
        match flow::streaming::decide_now(expression, wanted, context) {
            Err(fault) => return Step::Done(Err(fault)),
            Ok(Some(Early::Decided(value))) => {
                return Step::Done(self.early(value).and_then(|truth| self.choose(truth, context)));
            }
            Ok(_) => {}
        }
        Step::Wait(Box::pin(async move {
            match decide(expression, wanted, context).await? {
                Early::Decided(value) => {
                    let truth = self.decided(value, context).await?;
                    self.choose(truth, context)
                }
                Early::Tree => {
                    context.receive_body().await?;
                    Ok(Flow::Mediate)
                }
            }
        }))
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let truth = self.on_tree(context)?;
        self.choose(truth, context)
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing;

    #[test]
    fn a_branch_is_chosen_and_its_end_is_the_end() {
        let echo = testing::backend("");
        for (condition, body, sent) in [
            (r#"xpath="//a = 1""#, "<x><a>1</a></x>", true),
            (r#"xpath="//a = 1""#, "<x><a>2</a></x>", false),
            (r#"source="//a" regex="1|2""#, "<x><a>2</a></x>", true),
            (r#"source="//a" regex="1|2""#, "<x><a>12</a></x>", false),
            (r#"source="$ctx:none" regex=".*""#, "<x/>", false),
        ] {
            let address =
                format!(r#"<send receive="done"><endpoint><address uri="{echo}/x"/></endpoint></send>"#);
            let text = format!(
                r#"<filter {condition}><then>{address}</then></filter><!--top--><sequence name="done"/>"#
            );
            let tested = testing::main(&registry(testing::endpoints), &text);
            let end = tested.run(&[("Content-Type", "application/xml")], body);
            assert_eq!(end.context.headers.get("X-Request").is_some(), sent, "{condition} on {body}");
        }
    }

    #[test]
    fn where_in_the_message_it_is_decided_changes_nothing() {
        let flow = testing::main(
            &registry(testing::endpoints),
            r#"<filter xpath="//a = 'é1'"><then><property name="found" value="yes"/></then></filter>"#,
        );
        let typed = [("Content-Type", "application/xml")];
        for size in (0..40).chain(480..540).chain(990..1040).chain([2040, 2047, 4096, 70_000, 200_000]) {
            for (value, found) in [("é1", Some("yes")), ("é2", None)] {
                let body = format!(
                    "<x><!--{}--><a>{value}</a><b k=\"v\">é</b></x>",
                    "é".repeat(size / 2) + &"y".repeat(size % 2)
                );
                let mut end = flow.run(&typed, &body);
                assert_eq!(end.property("found").as_deref(), found, "{value} behind {size} bytes");
                assert_eq!(end.fault(), None);
                assert_eq!(end.payload(), body);
                // Cut anywhere behind, it is malformed, unless it was decided before.
                let cut = flow.run(&typed, &body[..body.len() - 2]);
                assert_eq!(cut.fault().is_some(), found.is_none(), "{value} behind {size} bytes, cut");
            }
        }
    }

    #[test]
    fn a_synapse_expression_is_true_only_if_it_is_true_and_reads_what_it_names() {
        use flow::Need;
        let body = r#"{"n":11,"t":"true","yes":true}"#;
        for (condition, found, need) in [
            ("${payload.n &gt; 10}", true, Need::Whole),
            ("${(payload.n &gt; 10) and payload.yes}", true, Need::Whole),
            ("${payload.t}", true, Need::Whole),
            ("${payload.n}", false, Need::Whole),
            ("${payload.none}", false, Need::Whole),
            ("${payload.none == null}", false, Need::Whole),
            ("${headers.routing == 'a'}", true, Need::Headers),
            ("${exists(vars.none)}", false, Need::Headers),
            ("${xpath('//n') == '11'}", true, Need::Whole),
            ("${xpath('$trp:routing') == 'a'}", true, Need::Headers),
            ("${1 == 1}", true, Need::Nothing),
        ] {
            let text = format!(
                r#"<filter xpath="{condition}"><then><property name="found" value="yes"/></then></filter>"#
            );
            let flow = testing::main(&registry(testing::endpoints), &text);
            assert_eq!(flow.needs(), [need], "{condition}");
            let end = flow.run(&[("Content-Type", "application/json"), ("routing", "a")], body);
            assert_eq!(end.property("found").is_some(), found, "{condition} {:?}", end.fault());
        }
        for (condition, faults) in [("${payload.n == 1}", true), ("${headers.routing == 'a'}", false)] {
            let text = format!(r#"<filter xpath="{condition}"><then/></filter>"#);
            let flow = testing::main(&registry(testing::endpoints), &text);
            for broken in ["{\"n\": 1", "{", "nonsense"] {
                let end = flow.run(&[("Content-Type", "application/json")], broken);
                assert_eq!(end.fault().is_some(), faults, "{condition} on {broken}");
            }
            assert_eq!(flow.run(&[("Content-Type", "application/json")], "").fault(), None);
        }
    }

    #[test]
    fn what_is_wrong_is_reported_or_faults() {
        let flow = testing::main(&registry(testing::endpoints), r#"<filter source="//a"><send/></filter>"#);
        assert!(flow.reports("`filter` needs a condition"), "{flow:?}");
        let flow = testing::main(
            &registry(testing::endpoints),
            r#"<filter xpath="//a"><then sequence="none"/></filter>"#,
        );
        let mut end = flow.run(&[("Content-Type", "application/xml")], "<a/>");
        assert_eq!(end.fault().as_deref(), Some("0: Sequence named none cannot be found"));
        assert_eq!(end.payload(), "<a/>");
        let end = flow.run(&[("Content-Type", "application/xml")], "<a");
        assert!(end.fault().is_some_and(|fault| fault.starts_with("601000: ")));
    }
}
