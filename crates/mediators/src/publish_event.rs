//! `publishEvent` and `bam`: to the log. No analytics server is connected.

use config::Element;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Expression, Family, Fault, Flow, Inside,
    Mediator, Need, Page, Values,
};

/// `<publishEvent><eventSink/><streamName/><streamVersion/><attributes>…</attributes></publishEvent>`
pub const DEFINITION: Definition = Definition {
    name: "publishEvent",
    summary: "Writes values of the message to the log, as an event of a stream.",
    attributes: &[
        Attribute::optional("async", Values::Boolean, "of no effect here").or("true"),
        Attribute::optional("timeout", Values::Integer, "of no effect here"),
    ],
    children: Children::Elements(&["eventSink", "streamName", "streamVersion", "attributes"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Extension,
    semantics: "No analytics server is connected: the event is a line in the log under the name `busbar::event`, with the sink, the stream
(`NAME:VERSION`), the id of the message and the values as JSON, and the flow goes on.

A value is literal, or the text of an expression. An empty one becomes the `defaultValue`, and is an empty text without one. Then it gets
its type: what cannot be converted is a fault, before anything is written. `BOOLEAN` is true for `true` in any case, else false. Values are
told apart by group: `meta`, `correlation`, `payload`, and `arbitrary`, which holds texts only.",
    inside: &[
        Inside::new("eventSink", "the receiver of the event in WSO2; part of the log line", &[]).with("text"),
        Inside::new("streamName", "the stream; part of the log line", &[]).with("text"),
        Inside::new("streamVersion", "its version; part of the log line", &[]).with("text"),
        Inside::new("attributes", "the values, in groups", &[]),
        Inside::new("attributes/meta?", "about the event", &[]),
        Inside::new("attributes/meta/attribute*", "a value", VALUE),
        Inside::new("attributes/correlation?", "what it belongs to", &[]),
        Inside::new("attributes/correlation/attribute*", "a value", VALUE),
        Inside::new("attributes/payload?", "the event itself", &[]),
        Inside::new("attributes/payload/attribute*", "a value", VALUE),
        Inside::new("attributes/arbitrary?", "anything else, of type STRING", &[]),
        Inside::new("attributes/arbitrary/attribute*", "a value", VALUE),
    ],
    needs: &[
        (Need::Nothing, "all values are literal"),
        (Need::Headers, "expressions look at properties and headers"),
        (Need::Whole, "an expression looks at the body"),
    ],
    refused: &[
        ("<publishEvent/>", "`publishEvent` needs an `eventSink`"),
        (
            "<publishEvent><eventSink>k</eventSink><streamName>s</streamName><streamVersion>1.0.0</streamVersion></publishEvent>",
            "`publishEvent` needs `attributes`",
        ),
        (
            "<publishEvent><eventSink>k</eventSink><streamName>s</streamName><streamVersion>1.0.0</streamVersion><attributes><meta><attribute name=\"a\" type=\"INT\" value=\"1\"/></meta></attributes></publishEvent>",
            "`attribute` needs a `type` of STRING, INTEGER, LONG, FLOAT, DOUBLE, BOOLEAN",
        ),
        (
            "<publishEvent><eventSink>k</eventSink><streamName>s</streamName><streamVersion>1.0.0</streamVersion><attributes><meta><attribute name=\"a\" type=\"LONG\"/></meta></attributes></publishEvent>",
            "`attribute` needs either a `value` or an `expression`",
        ),
    ],
    faults: &[
        ("0", "a value is not of its type"),
        (
            "601000",
            "an expression reads the body, and it is not what its content type says, or larger than a flow may hold",
        ),
    ],
};

/// `<bam><serverProfile name="P"><streamConfig name="S" version="V"/></serverProfile></bam>`
pub const BAM: Definition = Definition {
    name: "bam",
    summary: "Writes to the log that the message was here, as an event of a stream.",
    attributes: &[],
    children: Children::Elements(&["serverProfile"]),
    page: BAM_PAGE,
    compile: bam,
};

const BAM_PAGE: Page = Page {
    family: Family::Extension,
    semantics: "No analytics server is connected: a line under the name `busbar::event` with the server profile, the stream and the id of the message
goes to the log, and the flow goes on. The message is not read.",
    inside: &[
        Inside::new(
            "serverProfile",
            "whom WSO2 would tell",
            &[Attribute::required("name", Values::Text, "stands in the log line")],
        ),
        Inside::new(
            "serverProfile/streamConfig",
            "the stream",
            &[
                Attribute::required("name", Values::Text, "stands in the log line"),
                Attribute::required("version", Values::Text, "stands in the log line"),
            ],
        ),
    ],
    needs: &[(Need::Nothing, "always")],
    refused: &[
        ("<bam/>", "`bam` needs a `serverProfile` with a name"),
        ("<bam><serverProfile name=\"p\"/></bam>", "`serverProfile` needs a `streamConfig` with name and version"),
    ],
    faults: &[],
};

const VALUE: &[Attribute] = &[
    Attribute::required("name", Values::Text, "its name"),
    Attribute::required("type", Values::OneOf(TYPES), "what it is converted to"),
    Attribute::optional("value", Values::Text, "the value; this or `expression`"),
    Attribute::optional("expression", Values::Expression, "what gives the value; this or `value`"),
    Attribute::optional("defaultValue", Values::Text, "instead of an empty value"),
];

const GROUPS: &[&str] = &["meta", "correlation", "payload", "arbitrary"];
const TYPES: &[&str] = &["STRING", "INTEGER", "LONG", "FLOAT", "DOUBLE", "BOOLEAN"];

struct Publish {
    /// Sink or server profile.
    sink: String,
    /// `name:version`.
    stream: String,
    values: Vec<Published>,
}

struct Published {
    group: &'static str,
    name: String,
    kind: &'static str,
    source: Source,
    default: String,
}

enum Source {
    Literal(String),
    Expression(Expression),
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let mut text = |name: &str| {
        let text_inside = element
            .child(name)
            .map(|text_inside| text_inside.text().trim().to_owned())
            .filter(|text_inside| !text_inside.is_empty());
        text_inside.or_else(|| {
            let article = if name.starts_with('e') { "an" } else { "a" };
            needs(element, &format!("{article} `{name}`"), compiler)
        })
    };
    let (sink, name, version) = (text("eventSink")?, text("streamName")?, text("streamVersion")?);
    let Some(attributes) = element.child("attributes") else {
        return needs(element, "`attributes`", compiler);
    };
    let mut values = Vec::new();
    for group in attributes.elements() {
        let Some(group_name) = GROUPS.iter().copied().find(|group_name| *group_name == group.local()) else {
            let message = format!("`{}` cannot stand inside of `attributes`", group.local());
            compiler.error(
                "unknown-element",
                message,
                group.name_span(),
                format!("expected {}", GROUPS.join(", ")),
            );
            return None;
        };
        for attribute in group.children_named("attribute") {
            values.push(attribute_of(attribute, group_name, compiler)?);
        }
    }
    Some(Box::new(Publish { sink, stream: format!("{name}:{version}"), values }))
}

fn attribute_of(element: &Element, group: &'static str, compiler: &mut Compiler<'_>) -> Option<Published> {
    let Some(name) = element.attr("name").filter(|name| !name.is_empty()) else {
        return needs(element, "a `name`", compiler);
    };
    let kind = element
        .attr("type")
        .and_then(|word| TYPES.iter().copied().find(|candidate| *candidate == word.trim()));
    let Some(kind) = kind.filter(|kind| group != "arbitrary" || *kind == "STRING") else {
        let expected = if group == "arbitrary" { "STRING".to_owned() } else { TYPES.join(", ") };
        return needs(element, &format!("a `type` of {expected}"), compiler);
    };
    let source = match (element.attr("value"), element.attribute("expression")) {
        (Some(value), None) => Source::Literal(value.to_owned()),
        (None, Some(_)) => Source::Expression(compiler.expression(element, "expression")?),
        _ => return needs(element, "either a `value` or an `expression`", compiler),
    };
    let default = element.attr("defaultValue").unwrap_or_default().to_owned();
    Some(Published { group, name: name.to_owned(), kind, source, default })
}

fn bam(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let profile = element.child("serverProfile");
    let Some((profile, sink)) = profile.and_then(|element| Some((element, element.attr("name")?))) else {
        return needs(element, "a `serverProfile` with a name", compiler);
    };
    let stream = profile
        .child("streamConfig")
        .and_then(|config| Some((config.attr("name")?, config.attr("version")?)));
    let Some((name, version)) = stream else {
        return needs(profile, "a `streamConfig` with name and version", compiler);
    };
    Some(Box::new(Publish { sink: sink.to_owned(), stream: format!("{name}:{version}"), values: Vec::new() }))
}

fn needs<T>(element: &Element, what: &str, compiler: &mut Compiler<'_>) -> Option<T> {
    let message = format!("`{}` needs {what}", element.local());
    compiler.error("missing-element", message, element.start_tag(), "it is missing or wrong here");
    None
}

impl Published {
    fn value(&self, context: &mut Context) -> Result<serde_json::Value, Fault> {
        let text = match &self.source {
            Source::Literal(text) => text.clone(),
            Source::Expression(expression) => expression.string(context)?.unwrap_or_default(),
        };
        let text = if text.is_empty() { self.default.clone() } else { text };
        let (trimmed, kind) = (text.trim(), self.kind);
        let converted = match kind {
            // What has neither a value nor a default.
            _ if trimmed.is_empty() => Some(text.as_str().into()),
            "INTEGER" => trimmed.parse::<i32>().ok().map(Into::into),
            "LONG" => trimmed.parse::<i64>().ok().map(Into::into),
            "FLOAT" | "DOUBLE" => trimmed.parse::<f64>().ok().map(Into::into),
            "BOOLEAN" => Some(trimmed.eq_ignore_ascii_case("true").into()),
            _ => Some(text.as_str().into()),
        };
        converted.ok_or_else(|| {
            Fault::new(format!(
                "the attribute {} of publishEvent is not of the type {kind}: {trimmed}",
                self.name
            ))
        })
    }
}

impl Mediator for Publish {
    fn passes_on(&self) -> bool {
        self.need() >= Need::Prefix
    }

    fn need(&self) -> Need {
        let need = |attribute: &Published| match &attribute.source {
            Source::Expression(expression) => expression.need(),
            Source::Literal(_) => Need::Nothing,
        };
        self.values.iter().map(need).max().unwrap_or(Need::Nothing)
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let mut event = serde_json::Map::new();
        for attribute in &self.values {
            let value = attribute.value(context)?;
            let group = event
                .entry(attribute.group)
                .or_insert_with(|| serde_json::Value::Object(serde_json::Map::new()));
            if let serde_json::Value::Object(group) = group {
                group.insert(attribute.name.clone(), value);
            }
        }
        let data = serde_json::Value::Object(event);
        let message_id = context.message_id();
        tracing::info!(target: "busbar::event", %message_id, sink = self.sink, stream = self.stream, %data, "event");
        Ok(Flow::Next)
    }
}

#[cfg(test)]
mod tests {
    use flow::testing;

    const XML: (&str, &str) = ("Content-Type", "application/xml");

    fn publish(attributes: &str) -> String {
        format!(
            "<publishEvent><eventSink>k</eventSink><streamName>s</streamName><streamVersion>1.0.0</streamVersion>\
             <attributes>{attributes}</attributes></publishEvent><property name='after' value='1'/>"
        )
    }

    #[test]
    fn values_have_their_types() {
        for (attributes, says) in [
            ("", None),
            ("<meta><attribute name='a' type='STRING' value='v'/></meta>", None),
            (
                "<payload><attribute name='a' type='INTEGER' expression='//n'/><attribute name='b' type='DOUBLE' expression='//n'/></payload>",
                None,
            ),
            (
                "<payload><attribute name='a' type='LONG' defaultValue='5' expression='//none'/></payload>",
                None,
            ),
            ("<payload><attribute name='a' type='LONG' expression='//none'/></payload>", None),
            (
                "<payload><attribute name='a' type='INTEGER' expression='//t'/></payload>",
                Some("a of publishEvent is not of the type INTEGER: x"),
            ),
        ] {
            let tested = testing::main(&crate::registry(testing::endpoints), &publish(attributes));
            assert!(tested.found.is_empty(), "{:?}", tested.found);
            let end = tested.run(&[XML], "<a><n>1</n><t>x</t></a>");
            match says {
                None => {
                    assert_eq!(end.property("after").as_deref(), Some("1"), "{attributes}: {:?}", end.fault())
                }
                Some(says) => {
                    assert!(end.fault().is_some_and(|fault| fault.contains(says)), "{:?}", end.fault())
                }
            }
        }
        let text = "<bam><serverProfile name='p'><streamConfig name='s' version='1'/></serverProfile></bam><property name='after' value='1'/>";
        let tested = testing::main(&crate::registry(testing::endpoints), text);
        assert_eq!(tested.run(&[], "").property("after").as_deref(), Some("1"));
    }

    #[test]
    fn mistakes_are_found_when_the_configuration_loads() {
        for (text, says) in [
            ("<publishEvent/>".to_owned(), "needs an `eventSink`"),
            (publish("<other/>"), "`other` cannot stand inside of `attributes`"),
            (publish("<meta><attribute type='STRING' value='v'/></meta>"), "needs a `name`"),
            (
                publish("<meta><attribute name='a' type='INT' value='v'/></meta>"),
                "needs a `type` of STRING, INTEGER",
            ),
            (
                publish("<arbitrary><attribute name='a' type='LONG' value='1'/></arbitrary>"),
                "needs a `type` of STRING",
            ),
            (
                publish("<meta><attribute name='a' type='STRING' value='v' expression='//a'/></meta>"),
                "either a `value` or",
            ),
            ("<bam/>".to_owned(), "needs a `serverProfile`"),
            ("<bam><serverProfile name='p'/></bam>".to_owned(), "needs a `streamConfig`"),
        ] {
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert!(tested.reports(says), "{text}: {:?}", tested.found);
        }
    }
}
