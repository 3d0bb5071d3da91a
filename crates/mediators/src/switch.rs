//! `switch`: the first branch whose regular expression matches a value.

use config::Element;
use flow::streaming::{Early, decide, decide_now};
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Expression, Family, Fault, Flow, Inside,
    ListId, Mediator, Need, Page, Pattern, Step, Values, Wanted, work_out_beside,
};
use std::sync::Arc;

/// `<switch source="EXPR"><case regex="PATTERN">…</case>+<default>…</default>?</switch>`
pub const DEFINITION: Definition = Definition {
    name: "switch",
    summary: "Runs the first case whose pattern matches the whole value, else `default`.",
    attributes: &[Attribute::required("source", Values::Expression, "gives the value")],
    children: Children::Elements(&["case", "default"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Routing,
    semantics: "The value of `source` is compared with the cases in order. The first case whose regular expression matches the whole text runs, and no other.
If none matches, `default` runs; without a `default` the message passes. A case may be empty. What ends it (`drop`, `respond`,
`send`) ends the flow; otherwise the flow goes on after `switch`.

The pattern must match the whole text: `gold` does not match `golden`, `gold.*` does. A path that selects nothing in the body, and a `${…}` expression
without a result, give the empty text, which `regex=\"\"` and `.*` match. A missing property or
header (`$ctx:name`, `$trp:name` or `get-property('name')`) is no value at all: then `default` runs.

A path to a node needs the whole body. Its text, `string(//order/tier)`, is decided while the body arrives: the rest is relayed
unread, so `switch` does not notice an error in it.",
    inside: &[
        Inside::new(
            "case*",
            "runs if it is the first that matches",
            &[Attribute::required("regex", Values::Regex, "a regular expression of Java's dialect")],
        )
        .with("mediator*"),
        Inside::new("default?", "runs if no case matches; only the first counts", &[]).with("mediator*"),
    ],
    needs: &[
        (Need::Nothing, "the value is a constant"),
        (Need::Headers, "the value is made of properties and headers"),
        (Need::Prefix, "an XPath on the body that can be decided while it arrives (`busbar explain` tells)"),
        (Need::Whole, "any other expression on the body"),
    ],
    refused: &[
        ("<switch><case regex=\"a\"/></switch>", "`switch` needs the attribute `source`"),
        ("<switch source=\"//a[\"><case regex=\"a\"/></switch>", "not a valid expression"),
        ("<switch source=\"//a\"><case/></switch>", "`case` needs a `regex`"),
        ("<switch source=\"//a\"><case regex=\"(\"/></switch>", "not a valid regular expression"),
        ("<switch source=\"//a\"><drop/></switch>", "`drop` has no effect inside of `switch`"),
    ],
    faults: &[
        (
            "601000",
            "the value is looked for in the body, which is not what its content type says, or larger than a flow may hold",
        ),
    ],
};

struct Switch {
    source: Expression,
    /// Shared with compute threads.
    cases: Arc<[(Pattern, ListId)]>,
    default: Option<ListId>,
    /// What it needs is [`Need::Prefix`].
    early: bool,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let source = compiler.expression(element, "source");
    let mut cases = Vec::new();
    for case in element.children_named("case") {
        if case.attr("regex").is_none() {
            compiler.error(
                "missing-attribute",
                "`case` needs a `regex`",
                case.start_tag(),
                "expected `regex`",
            );
            continue;
        }
        let pattern = compiler.pattern(case, "regex");
        if let (Some(source), Some(pattern)) = (&source, &pattern) {
            compiler.check_numbers(source, pattern, case.value_span("regex"));
        }
        let label = format!("case {}", case.attr("regex").unwrap_or_default());
        let list = compiler.list(case, label);
        cases.extend(pattern.map(|pattern| (pattern, list)));
    }
    let source = source?;
    let early = source.early_need(Wanted::Text) == Need::Prefix;
    // A second one is reported with the other elements inside.
    let default = element.child("default").map(|default| compiler.list(default, "default of switch"));
    Some(Box::new(Switch { source, cases: cases.into(), default, early }))
}

/// The list of the first case that matches.
fn first_match(cases: &[(Pattern, ListId)], value: &str) -> Result<Option<ListId>, Fault> {
    for (pattern, list) in cases {
        if pattern.matches(value)? {
            return Ok(Some(*list));
        }
    }
    Ok(None)
}

impl Switch {
    fn choose(&self, value: Option<&str>) -> Result<Flow, Fault> {
        let found = value.map_or(Ok(None), |value| first_match(&self.cases, value))?;
        Ok(self.entered(found))
    }

    fn entered(&self, found: Option<ListId>) -> Flow {
        found.or(self.default).map_or(Flow::Next, Flow::Enter)
    }

    /// As [`Switch::choose`] while the body arrives: a match that takes long is no work for the worker.
    async fn decided(&self, value: &xpath::Value, context: &mut Context) -> Result<Flow, Fault> {
        let (cases, text) = (Arc::clone(&self.cases), flow::streaming::text(value));
        let found = work_out_beside(context, move |_| first_match(&cases, &text)).await?;
        Ok(self.entered(found))
    }
}

impl Mediator for Switch {
    fn need(&self) -> Need {
        self.source.early_need(Wanted::Text)
    }

    fn reason(&self) -> String {
        self.source.early_reason(Wanted::Text)
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        let cases = self.cases.iter().map(|(pattern, list)| (format!("case {}", pattern.source()), *list));
        cases.chain(self.default.map(|list| ("default".to_owned(), list))).collect()
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        if !self.early {
            return Step::Done(self.mediate(context));
        }
        match decide_now(&self.source, Wanted::Text, context) {
            Err(fault) => return Step::Done(Err(fault)),
            Ok(Some(Early::Decided(value))) => {
                return Step::Done(self.choose(Some(&flow::streaming::text(&value))));
            }
            Ok(_) => {}
        }
        Step::Wait(Box::pin(async move {
            match decide(&self.source, Wanted::Text, context).await? {
                Early::Decided(value) => self.decided(&value, context).await,
                Early::Tree => {
                    context.receive_body().await?;
                    Ok(Flow::Mediate)
                }
            }
        }))
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        self.source.with_string(context, |value| self.choose(value))?
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing;

    #[test]
    fn the_first_match_alone_runs() {
        for (source, value, wanted) in [
            ("//t", "gold", "vip"),
            ("//t", "silver", "vip"),
            ("//t", "goldish", "default"),
            ("//t", "none", "empty"),
            ("//missing", "x", "blank"),
            ("$ctx:missing", "x", "default"),
            ("concat(//t, '')", "gold", "vip"),
            ("string(//t)", "none", "empty"),
        ] {
            let text = format!(
                r#"<switch source="{source}">
                   <case regex="gold|silver"><property name="p" value="vip"/></case>
                   <case regex="gold"><property name="p" value="second"/></case>
                   <case regex=""><property name="p" value="blank"/></case>
                   <case regex="none"><property name="p" value="empty"/><drop/></case>
                   <default><property name="p" value="default"/></default></switch>
                   <property name="after" value="1"/>"#
            );
            let flow = testing::main(&registry(testing::endpoints), &text);
            let end = flow.run(&[("Content-Type", "application/xml")], &format!("<o><t>{value}</t></o>"));
            assert_eq!(end.property("p").as_deref(), Some(wanted), "{source} {value}");
            assert_eq!(end.property("after").is_none(), wanted == "empty");
        }
    }

    #[test]
    fn without_a_match_the_flow_goes_on() {
        let text =
            r#"<switch source="json-eval($.t)"><case regex="a"/></switch><property name="after" value="1"/>"#;
        let flow = testing::main(&registry(testing::endpoints), text);
        let end = flow.run(&[("Content-Type", "application/json")], r#"{"t":"b"}"#);
        assert_eq!(end.property("after").as_deref(), Some("1"));
    }

    #[test]
    fn mistakes_are_found_and_a_broken_payload_faults() {
        for (text, wanted) in [
            (r#"<switch><case regex="a"/></switch>"#, "`switch` needs the attribute `source`"),
            (r#"<switch source="//a"><case/></switch>"#, "`case` needs a `regex`"),
            (r#"<switch source="//a"><case regex="("/></switch>"#, "is not a valid regular expression"),
            (r#"<switch source="//a["><case regex="a"/></switch>"#, "is not a valid expression"),
        ] {
            let flow = testing::main(&registry(testing::endpoints), text);
            assert!(flow.reports(wanted), "{flow:?}");
        }
        let text = r#"<switch source="//t"><case regex="a"/></switch><!--top-->
            <sequence name="fault"><property name="seen" expression="$ctx:ERROR_CODE"/></sequence>"#;
        let flow = testing::main(&registry(testing::endpoints), text);
        let end = flow.run(&[("Content-Type", "application/xml")], "<o><t");
        assert_eq!(end.property("seen").as_deref(), Some("601000"));
    }
}
