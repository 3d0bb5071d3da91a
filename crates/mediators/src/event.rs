//! `event` and `eventPublisher`: to the log. No event broker is connected.

use config::Element;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Expression, Family, Fault, Flow, KeyValue,
    Mediator, Need, Page, Values,
};
use xml::NodeKind;

/// `<event topic="T" [expression="XPATH"]/>`
pub const DEFINITION: Definition = Definition {
    name: "event",
    summary: "Writes an element of the message to the log, as an event of a topic.",
    attributes: &[
        Attribute::required("topic", Values::Key, "the topic"),
        Attribute::optional(
            "expression",
            Values::Expression,
            "the element; absent: the first one of the body",
        ),
    ],
    children: Children::None,
    page: PAGE,
    compile: |element, compiler| {
        let topic = compiler.key_value(element, "topic")?;
        let expression = match element.attribute("expression") {
            Some(_) => Some(compiler.expression(element, "expression")?),
            None => None,
        };
        Some(Box::new(Event { topic, expression, kind: "event" }))
    },
};

const PAGE: Page = Page {
    family: Family::Extension,
    semantics: "No event broker is connected: the element is written to the log as a line under the name `busbar::event`, with the topic and the
id of the message, and the flow goes on. The message stays as it is.

The element is the first one of the body, or the first node that `expression` selects.",
    inside: &[],
    needs: &[(Need::Whole, "always")],
    refused: &[
        ("<event/>", "`event` needs the attribute `topic`"),
        ("<event topic=\"t\" expression=\"//a[\"/>", "no valid expression"),
    ],
    faults: &[
        ("0", "the topic is empty, there is no element to publish, or the body is larger than a flow may hold"),
        ("601000", "the body is not what its content type says"),
    ],
};

/// `<eventPublisher eventSourceName="N"/>`
pub const PUBLISHER: Definition = Definition {
    name: "eventPublisher",
    summary: "Writes the first element of the body to the log, as an event of a source.",
    attributes: &[Attribute::required("eventSourceName", Values::Text, "the event source")],
    children: Children::None,
    page: PUBLISHER_PAGE,
    compile: publisher,
};

const PUBLISHER_PAGE: Page = Page {
    family: Family::Extension,
    semantics: "No event broker is connected: the first element of the body is written to the log as a line under the name `busbar::event`, with
the event source and the id of the message, and the flow goes on. The message stays as it is.",
    inside: &[],
    needs: &[(Need::Whole, "always")],
    refused: &[("<eventPublisher/>", "`eventPublisher` needs the attribute `eventSourceName`")],
    faults: &[
        ("0", "there is no element to publish, or the body is larger than a flow may hold"),
        ("601000", "the body is not what its content type says"),
    ],
};

struct Event {
    topic: KeyValue,
    expression: Option<Expression>,
    kind: &'static str,
}

fn publisher(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let topic = compiler.key_value(element, "eventSourceName")?;
    Some(Box::new(Event { topic, expression: None, kind: "eventPublisher" }))
}

impl Mediator for Event {
    fn need(&self) -> Need {
        Need::Whole
    }

    fn reason(&self) -> String {
        "writes an element of the body".to_owned()
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let topic = self.topic.resolve(context)?.filter(|topic| !topic.is_empty());
        let topic = topic.ok_or_else(|| Fault::new(format!("the topic of {} is empty", self.kind)))?;
        let selected = match &self.expression {
            Some(expression) => expression.nodes(context)?.first().copied(),
            None => context.envelope()?.payload(),
        };
        let document = &context.envelope()?.document;
        let element = selected.filter(|&node| document.kind(node) == NodeKind::Element);
        let element =
            element.ok_or_else(|| Fault::new(format!("{} has no element to publish", self.kind)))?;
        let mut out = Vec::new();
        xml::write(document, element, &xml::WriteOptions::default(), &mut out);
        let data = String::from_utf8_lossy(&out);
        let message_id = context.message_id();
        tracing::info!(target: "busbar::event", %message_id, kind = self.kind, topic = &*topic, data = &*data, "event");
        Ok(Flow::Next)
    }
}

#[cfg(test)]
mod tests {
    use flow::testing;

    const XML: (&str, &str) = ("Content-Type", "application/xml");

    #[test]
    fn the_flow_goes_on_and_what_is_no_event_is_a_fault() {
        for (text, body, says) in [
            ("<event topic='t'/>", "<a/>", None),
            ("<event topic='{//t}' expression='//t'/>", "<a><t>x</t></a>", None),
            ("<eventPublisher eventSourceName='s'/>", "<a/>", None),
            ("<event topic='t' expression='//none'/>", "<a/>", Some("no element to publish")),
            ("<event topic='t' expression='string(//t)'/>", "<a/>", Some("no element to publish")),
            ("<event topic='{//none}'/>", "<a/>", Some("topic of event is empty")),
            ("<eventPublisher eventSourceName='s'/>", "", Some("no element to publish")),
            ("<event topic='t'/>", "<a", Some("not well-formed")),
        ] {
            let text = format!("{text}<property name='after' value='1'/>");
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert!(tested.found.is_empty(), "{:?}", tested.found);
            let end = tested.run(&[XML], body);
            match says {
                None => assert_eq!(end.property("after").as_deref(), Some("1"), "{text}: {:?}", end.fault()),
                Some(says) => {
                    assert!(end.fault().is_some_and(|own| own.contains(says)), "{text}: {:?}", end.fault())
                }
            }
        }
        for (text, says) in
            [("<event/>", "needs the attribute `topic`"), ("<eventPublisher/>", "`eventSourceName`")]
        {
            let tested = testing::main(&crate::registry(testing::endpoints), text);
            assert!(tested.reports(says), "{:?}", tested.found);
        }
    }
}
