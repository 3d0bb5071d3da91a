//! `event` and `eventPublisher`: an event for those who have subscribed to an event source of this configuration.

use crate::eventing::alone;
use config::{ArtifactKind, Element};
use flow::{
    Attribute, Branch, Children, Compiled, Compiler, Context, Definition, Expression, Family, Fault, Flow,
    KeyValue, Mediator, Need, Page, Split, Values,
};
use xml::NodeKind;

/// `<event topic="T" [expression="XPATH"]/>`
pub const DEFINITION: Definition = Definition {
    name: "event",
    summary: "Publishes an element of the message to those who have subscribed to a topic.",
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
        Some(Box::new(Event { topic, expression }))
    },
};

const PAGE: Page = Page {
    family: Family::Extension,
    semantics: "The element is published, as a message of its own, to all subscriptions of the [event sources](../events.md) of this
configuration whose filter is the topic, or a topic above it (`orders` and `orders/` for `orders/new`). Each gets a one-way message. The flow goes on at once, with the
unchanged message; failures of delivery are in the log only. Brokers outside of the bus are not connected: instead, the event is written to the
log, as a line under the name `busbar::event`, with the topic and the id of the message (at the level `debug` another one has the element).

The element is the first one of the body, or the first node that `expression` selects.",
    inside: &[],
    needs: &[(Need::Whole, "always")],
    refused: &[
        ("<event/>", "`event` needs the attribute `topic`"),
        ("<event topic=\"t\" expression=\"//a[\"/>", "not a valid expression"),
    ],
    faults: &[
        ("0", "the topic is empty, or there is no element to publish"),
        ("601000", "the body is not what its content type says, or larger than a flow may hold"),
    ],
};

/// `<eventPublisher eventSourceName="N"/>`
pub const PUBLISHER: Definition = Definition {
    name: "eventPublisher",
    summary: "Publishes the message to those who have subscribed to an event source.",
    attributes: &[Attribute::required("eventSourceName", Values::Text, "the event source")],
    children: Children::None,
    page: PUBLISHER_PAGE,
    compile: publisher,
};

const PUBLISHER_PAGE: Page = Page {
    family: Family::Extension,
    semantics: "A copy of the message goes to each subscription of the [event source](../events.md) whose filter it meets, as a one-way message. The
flow goes on at once, with the unchanged message; failures of delivery are in the log only. Without subscriptions nothing happens.",
    inside: &[],
    needs: &[(Need::Whole, "always: topics and filters are looked for in it, and each subscriber gets a copy")],
    refused: &[
        ("<eventPublisher/>", "`eventPublisher` needs the attribute `eventSourceName`"),
        ("<eventPublisher eventSourceName=\"none\"/>", "there is no event source `none`"),
    ],
    faults: &[
        ("601000", "the body is not what its content type says, or larger than a flow may hold"),
    ],
};

/// Publishes an event that a message causes: copies for those who have subscribed to the topic at the event sources of the
/// configuration, and a line in the log. `event` makes the message that they get.
///
/// # Errors
/// Those of `event`; the message that it makes cannot be read.
pub fn publish(
    context: &mut Context,
    topic: &str,
    data: &str,
    event: impl FnOnce(&mut Context) -> Result<Box<Context>, Fault>,
) -> Result<Vec<Split>, Fault> {
    let sources: Vec<_> = context.plan().event_sources().into_iter().cloned().collect();
    let mut splits = Vec::new();
    if !sources.is_empty() {
        let mut event = event(context)?;
        for source in sources {
            splits.extend(source.event(&mut event, Some(topic))?);
        }
    }
    let message_id = context.message_id();
    tracing::info!(target: "busbar::event", %message_id, kind = "event", topic, "event");
    // What a message says is in the log only where somebody asks for it.
    tracing::debug!(target: "busbar::event", %message_id, topic, data, "content of the event");
    Ok(splits)
}

struct Event {
    topic: KeyValue,
    expression: Option<Expression>,
}

struct Publisher(String);

fn publisher(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let attribute = element.attribute("eventSourceName")?;
    let name = attribute.value.trim();
    let sources = &compiler.configuration.event_sources;
    if sources.get(name).is_none() {
        let names: Vec<_> = sources.names().map(str::to_owned).collect();
        let message = format!("there is no {} `{name}`", ArtifactKind::EventSource);
        let found = diagnostics::Diagnostic::warning("unknown-event-source", message)
            .at(attribute.value_span, "messages that come here fault")
            .did_you_mean(name, names.iter().map(String::as_str));
        compiler.diagnostics.push(found);
    }
    Some(Box::new(Publisher(name.to_owned())))
}

impl Mediator for Publisher {
    fn passes_on(&self) -> bool {
        true
    }

    fn need(&self) -> Need {
        Need::Whole
    }

    fn reason(&self) -> String {
        "the subscribers of the event source get copies".to_owned()
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let source = context.plan().event_source(&self.0).cloned();
        let source = source.ok_or_else(|| Fault::new(format!("there is no event source {}", self.0)))?;
        Ok(source.event(context, None)?.map_or(Flow::Next, Flow::Split))
    }
}

impl Mediator for Event {
    fn passes_on(&self) -> bool {
        true
    }

    fn need(&self) -> Need {
        Need::Whole
    }

    fn reason(&self) -> String {
        "publishes an element of the body".to_owned()
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let topic = self.topic.resolve(context)?.filter(|topic| !topic.is_empty());
        let topic = topic.ok_or_else(|| Fault::new("the topic of event is empty"))?;
        let selected = match &self.expression {
            Some(expression) => expression.nodes(context)?.first().copied(),
            None => context.envelope()?.payload(),
        };
        let document = &context.envelope()?.document;
        let element = selected.filter(|&node| document.kind(node) == NodeKind::Element);
        let element = element.ok_or_else(|| Fault::new("event has no element to publish"))?;
        let mut out = Vec::new();
        xml::write(document, element, &xml::WriteOptions::default(), &mut out);
        let data = String::from_utf8_lossy(&out);
        let splits = publish(context, &topic, &data, |context| alone(context, element))?;
        let count = splits.iter().map(|split| split.count).sum();
        if count == 0 {
            return Ok(Flow::Next);
        }
        let parts: Box<dyn Iterator<Item = Branch> + Send> =
            Box::new(splits.into_iter().flat_map(|split| split.parts));
        Ok(Flow::Split(Split {
            parts,
            count,
            continue_parent: true,
            sequential: false,
            stops: false,
            aside: true,
        }))
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
            ("<event topic='t' expression='//none'/>", "<a/>", Some("no element to publish")),
            ("<event topic='t' expression='string(//t)'/>", "<a/>", Some("no element to publish")),
            ("<event topic='{//none}'/>", "<a/>", Some("topic of event is empty")),
            ("<event topic='t'/>", "<a", Some("not well-formed")),
        ] {
            let text = format!("{text}<property name='after' value='1'/>");
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert!(tested.found.is_empty(), "{:?}", tested.found);
            let end = tested.run(&[XML], body);
            match says {
                None => assert_eq!(end.property("after").as_deref(), Some("1"), "{text}: {:?}", end.fault()),
                Some(says) => {
                    assert!(
                        end.fault().is_some_and(|fault| fault.contains(says)),
                        "{text}: {:?}",
                        end.fault()
                    )
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
