//! `log`: writes a line to the log.

use config::Element;
use diagnostics::Diagnostic;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Expression, Family, Fault, Flow, Inside,
    Mediator, Need, Page, Text, Values,
};
use message::{Format, redact};
use tracing::Level;

/// `<log [level="…"] [category="…"] [separator="…"]><message>…</message>?<property …/>*</log>`
pub const DEFINITION: Definition = Definition {
    name: "log",
    summary: "Writes a line about the message to the log, under the name `busbar::log`.",
    attributes: &[
        Attribute::optional(
            "level",
            Values::OneOf(&["simple", "headers", "full", "custom"]),
            "what is logged: addresses, SOAP headers, the whole payload, or only the properties",
        )
        .or("simple"),
        Attribute::optional("category", Values::Text, "TRACE, DEBUG, INFO, WARN, ERROR or FATAL").or("INFO"),
        Attribute::optional(
            "separator",
            Values::Text,
            "separates the parts; `\\n` and `\\t` are line feed and tab",
        )
        .or(", "),
        Attribute::optional("logFullPayload", Values::Boolean, "the same as level=\"full\"").or("false"),
        Attribute::optional("logMessageID", Values::Boolean, "begins with the message id").or("false"),
    ],
    children: Children::Elements(&["message", "property"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Core,
    semantics: "One line for each message, with these parts and the separator between them: the `message`; for `simple` and `full` the addresses, the message id and the
direction, for `headers` name and text of each block of the SOAP header; then each `property` as `name = value`, with `null` for a missing
value; and for `full` the payload, JSON as `Payload: …`, anything else as a SOAP envelope. `custom` has only the properties. If
there is a `message` and no `level`, the level is `custom`.

`category` is the level of the line in the log of Busbar, whose settings say what is written and where; `FATAL` is `ERROR`. The expressions of a `TRACE` or
`DEBUG` line are not evaluated if the line is not written. Those of other lines always are, so they can fail even if the line is not written.

The line ends with the service and the message id, like all lines about a message.

The message is not changed. A line may be as large as the body: use `full` for tests only.",
    inside: &[
        Inside::new("message?", "a text with `${…}` in it, at the beginning of the line", &[]).with("text"),
        Inside::new(
            "property*",
            "a part of the line",
            &[
                Attribute::required("name", Values::Text, "its label"),
                Attribute::optional("value", Values::Text, "its value"),
                Attribute::optional("expression", Values::Expression, "gives the value"),
            ],
        ),
    ],
    needs: &[
        (Need::Headers, "`simple` and `custom`, if no expression looks at the body"),
        (Need::Whole, "`headers` and `full`, or an expression on the body"),
    ],
    refused: &[
        ("<log level=\"all\"/>", "`level` cannot be `all`"),
        ("<log category=\"LOUD\"/>", "`category` cannot be `LOUD`"),
        ("<log><property name=\"a\"/></log>", "this property has no value"),
        ("<log><property value=\"1\"/></log>", "this property has no name"),
        ("<log><message>${payload.a b}</message></log>", "cannot be evaluated: each message faults here"),
    ],
    faults: &[
        (
            "601000",
            "the line needs the body, and it is not what its content type says, or larger than a flow may hold",
        ),
    ],
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Simple,
    Headers,
    Full,
    Custom,
}

enum Part {
    Literal(String),
    Expression(Expression),
}

/// The values of `category`.
const CATEGORIES: [&str; 6] = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];

struct Log {
    detail: Detail,
    category: Level,
    separator: String,
    message_id: bool,
    message: Text,
    properties: Vec<(String, Part)>,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let message = match element.child("message") {
        Some(message) => {
            let text = message.text();
            let blank = text.len() - text.trim_start().len();
            let span = message.text_span();
            compiler.text(text.trim(), span.part(blank, text.len()), message.scope())?
        }
        None => Text::default(),
    };
    let detail = match element.attr("level") {
        _ if flow::truth(element, "logFullPayload", false) => Detail::Full,
        Some("headers") => Detail::Headers,
        Some("full") => Detail::Full,
        Some("custom") => Detail::Custom,
        None if element.child("message").is_some() => Detail::Custom,
        _ => Detail::Simple,
    };
    let category = match element.attribute("category") {
        None => Level::INFO,
        Some(category) => match category.value.trim().to_ascii_uppercase().as_str() {
            "TRACE" => Level::TRACE,
            "DEBUG" => Level::DEBUG,
            "INFO" => Level::INFO,
            "WARN" => Level::WARN,
            "ERROR" | "FATAL" => Level::ERROR,
            other => {
                let message = format!("`category` cannot be `{}`", category.value.trim());
                let found = Diagnostic::error("bad-value", message)
                    .at(category.value_span, "expected `TRACE`, `DEBUG`, `INFO`, `WARN`, `ERROR`, `FATAL`");
                // Other systems have longer names: WARNING.
                let longer = CATEGORIES.iter().find(|word| other.starts_with(**word));
                compiler.diagnostics.push(match longer {
                    Some(word) => found.help(format!("did you mean `{word}`?")),
                    None => found.did_you_mean(other, CATEGORIES),
                });
                return None;
            }
        },
    };
    let mut properties = Vec::new();
    for property in element.children_named("property") {
        let label = property.attr("name").unwrap_or_default().to_owned();
        if label.trim().is_empty() {
            compiler.error(
                "missing-attribute",
                "this property has no name",
                property.start_tag(),
                "expected `name`",
            );
            return None;
        }
        let value = if let Some(value) = property.attr("value") {
            Part::Literal(value.to_owned())
        } else if property.attr("expression").is_some() {
            Part::Expression(compiler.expression(property, "expression")?)
        } else {
            compiler.error(
                "missing-attribute",
                "this property has no value",
                property.start_tag(),
                "expected `value` or `expression`",
            );
            return None;
        };
        properties.push((label, value));
    }
    let separator = element.attr("separator").unwrap_or(", ").replace("\\n", "\n").replace("\\t", "\t");
    let message_id = flow::truth(element, "logMessageID", false);
    Some(Box::new(Log { detail, category, separator, message_id, message, properties }))
}

impl Log {
    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let parts = self.properties.iter().filter_map(|(_, part)| match part {
            Part::Expression(expression) => Some(expression),
            Part::Literal(_) => None,
        });
        self.message.expressions().chain(parts)
    }

    fn is_enabled(&self) -> bool {
        match self.category {
            Level::TRACE => tracing::enabled!(target: "busbar::log", Level::TRACE),
            Level::DEBUG => tracing::enabled!(target: "busbar::log", Level::DEBUG),
            Level::INFO => tracing::enabled!(target: "busbar::log", Level::INFO),
            Level::WARN => tracing::enabled!(target: "busbar::log", Level::WARN),
            _ => tracing::enabled!(target: "busbar::log", Level::ERROR),
        }
    }

    fn line(&self, context: &mut Context) -> Result<String, Fault> {
        let mut line = String::with_capacity(256);
        let mut separator = "";
        let mut add = |line: &mut String, label: &str, value: &str, between: &str| {
            line.push_str(separator);
            separator = &self.separator;
            line.push_str(label);
            line.push_str(between);
            line.push_str(value);
        };
        let message = self.message.resolve(context)?;
        if self.message_id && self.detail == Detail::Custom {
            add(&mut line, "MessageID", &context.message_id(), ": ");
        }
        if !self.message.pieces().is_empty() {
            add(&mut line, "", &message, "");
        }
        match self.detail {
            Detail::Simple | Detail::Full => {
                let addressing = &context.addressing;
                let to = context.to();
                add(&mut line, "To", &redact::addresses(to.as_deref().unwrap_or_default()), ": ");
                let action = context.soap_action();
                for (label, value) in [
                    ("From", &addressing.from),
                    ("WSAction", addressing.action.as_ref().map_or(&action, |_| &addressing.action)),
                    ("SOAPAction", &action),
                    ("ReplyTo", &addressing.reply_to),
                ] {
                    if let Some(value) = value {
                        add(&mut line, label, value, ": ");
                    }
                }
                add(&mut line, "MessageID", "", ": ");
                context.push_message_id(&mut line);
                if let Some(correlation) = context.given_correlation_id() {
                    add(&mut line, flow::correlation::PROPERTY, &correlation, ": ");
                }
                add(&mut line, "Direction", if context.response { "response" } else { "request" }, ": ");
            }
            Detail::Headers => {
                if !context.payload.is_json() {
                    let envelope = context.envelope()?;
                    if let Some(header) = envelope.header {
                        for block in envelope.elements_of(header) {
                            let value = envelope.document.string_value(block);
                            add(&mut line, envelope.document.local(block), value.trim(), " : ");
                        }
                    }
                }
            }
            Detail::Custom => {}
        }
        for (label, value) in &self.properties {
            match value {
                Part::Literal(text) => add(&mut line, label, text, " = "),
                Part::Expression(expression) => {
                    let text = expression.string(context)?;
                    add(&mut line, label, text.as_deref().unwrap_or("null"), " = ");
                }
            }
        }
        if self.detail == Detail::Full {
            // Apache Synapse knows no payload but the envelope.
            let json = context.payload.is_json() && !context.services().settings.synapse_dialect;
            let text = full(context, json)?;
            let label = if json { "Payload" } else { "Envelope" };
            add(&mut line, label, &text, ": ");
        }
        Ok(line)
    }
}

/// The JSON text as it came, else the envelope.
fn full(context: &mut Context, json: bool) -> Result<String, Fault> {
    if json && let Some(bytes) = context.payload.bytes() {
        return Ok(String::from_utf8_lossy(bytes).into_owned());
    }
    if json {
        let limits = context.services().limits.clone();
        let bytes = context.payload.write(Format::Json, &limits)?;
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    let envelope = context.envelope()?;
    let mut text = Vec::new();
    xml::write(&envelope.document, envelope.root, &xml::WriteOptions::default(), &mut text);
    Ok(String::from_utf8_lossy(&text).into_owned())
}

impl Mediator for Log {
    fn need(&self) -> Need {
        match self.detail {
            Detail::Headers | Detail::Full => Need::Whole,
            Detail::Simple | Detail::Custom => {
                self.expressions().map(Expression::need).max().unwrap_or(Need::Headers)
            }
        }
    }

    fn reason(&self) -> String {
        match self.detail {
            Detail::Headers => "logs the SOAP headers".to_owned(),
            Detail::Full => "logs the whole payload".to_owned(),
            _ => self
                .expressions()
                .find(|expression| expression.need() == self.need())
                .map(Expression::reason)
                .unwrap_or_default(),
        }
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        // A line that is not written is still made where making it could fault, as in WSO2 (but for TRACE and DEBUG).
        let silent = self.category > Level::INFO
            || (matches!(self.detail, Detail::Simple | Detail::Custom)
                && self.expressions().next().is_none());
        if silent && !self.is_enabled() {
            return Ok(Flow::Next);
        }
        let line = self.line(context)?;
        // Secrets that a flow has looked up are in no log, whatever it puts them into.
        let line = redact::known(&line);
        // What is behind the line is put together only if the line is written.
        macro_rules! say {
            ($say:ident) => {
                tracing::$say!(
                    target: "busbar::log",
                    message_id = %context.message_id(),
                    service = context.service_name(),
                    message = &*line,
                )
            };
        }
        match self.category {
            Level::TRACE => say!(trace),
            Level::DEBUG => say!(debug),
            Level::INFO => say!(info),
            Level::WARN => say!(warn),
            _ => say!(error),
        }
        Ok(Flow::Next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use flow::testing;

    fn logged(text: &str, headers: &[(&str, &str)], body: &str) -> (Vec<String>, testing::Ended) {
        let flow = testing::main(&registry(testing::endpoints), text);
        testing::logged("busbar::log", || flow.run(headers, body))
    }

    #[test]
    fn each_level_writes_its_parts() {
        let soap = r#"<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Header><h xmlns="u">1</h></s:Header><s:Body><a/></s:Body></s:Envelope>"#;
        let xml = [("Content-Type", "text/xml"), ("SOAPAction", "\"urn:go\"")];
        let json = [("Content-Type", "application/json")];
        let full = format!("INFO p = 1\n Envelope: {soap}");
        for (log, headers, body, wanted) in [
            (
                r#"<log><property name="p" value="1"/></log>"#,
                &xml[..],
                soap,
                "INFO To: /, WSAction: urn:go, SOAPAction: urn:go, MessageID: ID, Direction: request, p = 1",
            ),
            (r#"<log level="headers" category="warn"/>"#, &xml, soap, "WARN h : 1"),
            (
                r#"<log level="custom" separator=" | " category=" FATAL "><property name="a" expression="//h:h" xmlns:h="u"/><property name="b" expression="$ctx:none"/></log>"#,
                &xml,
                soap,
                "ERROR a = 1 | b = null",
            ),
            (
                r#"<log level="custom" separator="\n"><property name="a" value="1"/><property name="b" value="2"/></log>"#,
                &xml,
                soap,
                "INFO a = 1\nb = 2",
            ),
            (
                r#"<log><message>order of </message><property name="b" value="2"/></log>"#,
                &xml,
                soap,
                "INFO order of, b = 2",
            ),
            (r#"<log logMessageID="true" level="custom"/>"#, &xml, soap, "INFO MessageID: ID"),
            (
                r#"<log level="full" separator=" "/>"#,
                &json,
                r#"{"a":1"#,
                r#"INFO To: / MessageID: ID Direction: request Payload: {"a":1"#,
            ),
            (r#"<log level="custom" category="TRACE"/>"#, &json, "{}", ""),
        ] {
            let (lines, end) = logged(log, headers, body);
            let line = lines.join("+").replace(&end.context.message_id(), "ID");
            assert_eq!(line, wanted, "{log}");
            assert!(end.fault().is_none());
        }
        let (lines, _) = logged(
            r#"<log logFullPayload="true" separator="\n "><property name="p" value="1"/></log>"#,
            &xml,
            soap,
        );
        assert!(lines[0].ends_with(full.trim_start_matches("INFO ")), "{lines:?}");
    }

    #[test]
    fn what_cannot_be_read_faults_and_mistakes_are_found() {
        let (_, end) = logged(
            r#"<log level="full"/><!--top--><sequence name="fault"><property name="seen" expression="$ctx:ERROR_CODE"/></sequence>"#,
            &[("Content-Type", "application/xml")],
            "<a",
        );
        assert_eq!(end.property("seen").as_deref(), Some("601000"));
        for (log, wanted) in [
            (r#"<log level="Full"/>"#, "`level` cannot be `Full`"),
            (r#"<log category="LOUD"/>"#, "`category` cannot be `LOUD`"),
            (r#"<log><property name="a"/></log>"#, "this property has no value"),
            (r#"<log><property value="a"/></log>"#, "this property has no name"),
        ] {
            let flow = testing::main(&registry(testing::endpoints), log);
            assert!(flow.reports(wanted), "{flow:?}");
        }
    }

    #[test]
    fn only_what_shows_the_payload_needs_it() {
        let text = r#"<log/><log level="custom"><property name="a" expression="$trp:a"/></log><log level="full"/>
            <log level="custom"><property name="a" expression="//a"/></log>"#;
        let flow = testing::main(&registry(testing::endpoints), text);
        assert_eq!(flow.needs(), [Need::Headers, Need::Headers, Need::Whole, Need::Whole]);
    }
}
