//! `header`: sets or removes a transport header, a SOAP header block or a WS-Addressing fact.

use crate::xml_value;
use config::Element;
use diagnostics::Span;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Expression, Family, Fault, Flow, Mediator,
    Need, Page, Values,
};
use message::{Value, XmlValue};
use std::sync::Arc;

/// `<header name="…" value="…" | expression="…" [scope="transport"] [action="remove"] [type="OM"]/>`
pub const DEFINITION: Definition = Definition {
    name: "header",
    summary: "Sets or removes a header: of the transport, of the SOAP envelope, or To, Action and the like.",
    attributes: &[
        Attribute::optional(
            "name",
            Values::Text,
            "To, From, ReplyTo, FaultTo, Action, RelatesTo, prefix:local, or a transport header",
        ),
        Attribute::optional("value", Values::Text, "the value"),
        Attribute::optional("expression", Values::Expression, "gives the value"),
        Attribute::optional("scope", Values::OneOf(&["default", "soap", "transport"]), "which headers")
            .or("default"),
        Attribute::optional("action", Values::Word(&["set", "remove"]), "what to do").or("set"),
        Attribute::optional("type", Values::OneOf(&["STRING", "OM"]), "OM: the value is XML and goes inside"),
    ],
    children: Children::Elements(&["*"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Transformation,
    semantics: "With `scope=\"transport\"` it is a header of the transport (usually HTTP): of the request that `call` or `send` makes, or of the answer.
It replaces all headers of that name, in whatever case, or removes them. Line breaks in a value become blanks, because pretty-printed XML
has them; a null value becomes `\"\"`, with a warning in the log. Of a name with a declared prefix (`w:session`) the part behind it counts.

Without that scope there are two kinds of names. `To`, `From`, `ReplyTo`, `FaultTo`, `Action` and `RelatesTo` are the WS-Addressing
facts of the message: a `send` without an endpoint goes to `To`, and `Action` is also the SOAP action. They are written into the envelope only
by an endpoint with addressing. Any other name needs a prefix, and is a block of the SOAP header: setting it adds a block after the
existing ones (remove it first to replace it), removing it removes all blocks with its namespace and name. Its text is the value, or with
`type=\"OM\"` the value is XML that goes inside. Without a `name` the elements inside are added as blocks, unchanged.

JSON has no SOAP header, and neither has the plain body that a client without `SOAPAction` sends and gets.",
    inside: &[],
    needs: &[
        (Need::Headers, "a transport header or one of WS-Addressing"),
        (Need::Whole, "a block of the SOAP header, or an expression on the body"),
    ],
    refused: &[
        ("<header/>", "`header` needs a name"),
        ("<header name=\"To\"/>", "`header` needs a value"),
        ("<header name=\"session\" value=\"1\"/>", "SOAP headers must be namespace qualified"),
        ("<header name=\"a b\" scope=\"transport\" value=\"1\"/>", "`a b` is not a header name"),
        ("<header name=\"X\" scope=\"axis2\" value=\"1\"/>", "`scope` cannot be `axis2`"),
    ],
    faults: &[
        ("0", "the value of a `type=\"OM\"` is not XML"),
        (
            "601000",
            "the expression or the SOAP header needs the body, and it is not what its content type says, or larger than a flow may hold",
        ),
    ],
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Addressing {
    To,
    From,
    ReplyTo,
    FaultTo,
    Action,
    RelatesTo,
}

enum Place {
    Transport(String),
    Addressing(Addressing),
    Block { prefix: String, namespace: String, local: String },
}

enum Content {
    Literal(String),
    Expression(Expression),
}

enum Header {
    Set {
        place: Place,
        content: Content,
        xml: bool,
        span: Span,
    },
    Remove(Place),
    /// Blocks that are written out in the configuration.
    Blocks(Vec<Arc<XmlValue>>),
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let span = element.start_tag();
    let removes = element.attr("action").map(str::trim) == Some("remove");
    let Some(name) = element.attribute("name") else { return blocks(element, removes, compiler) };
    if element.attr("scope").map(str::trim) == Some("transport")
        && !crate::support::can_be_sent(of_transport(&name.value, element), name.value_span, compiler)?
    {
        return crate::failing::nothing();
    }
    let place = place(name, element, compiler)?;
    if removes {
        return Some(Box::new(Header::Remove(place)));
    }
    let content = if let Some(value) = element.attr("value") {
        if matches!(place, Place::Addressing(Addressing::To))
            && let Some((transport, instead)) = flow::other_transport(value)
            && !flow::file::is_address(value)
            && flow::local::path(value).is_none()
        {
            let message = format!("there is no transport `{transport}` here");
            compiler.warning("unsupported-transport", message, element.value_span("value"), instead);
        }
        Content::Literal(value.to_owned())
    } else if element.attr("expression").is_some() {
        Content::Expression(compiler.expression(element, "expression")?)
    } else {
        let expected = "expected `value` or `expression`";
        compiler.error("missing-attribute", "`header` needs a value", span, expected);
        return None;
    };
    let xml = element.attr("type").map(str::trim) == Some("OM");
    Some(Box::new(Header::Set { place, content, xml, span }))
}

/// A `header` without a name sets what stands inside.
fn blocks(element: &Element, removes: bool, compiler: &mut Compiler<'_>) -> Compiled {
    let mut blocks = Vec::new();
    for child in element.elements().filter(|child| !child.is("description")) {
        match xml_value::of_element(child) {
            Ok(Value::Xml(xml)) => blocks.push(xml),
            Ok(_) => {}
            Err(why) => {
                compiler.error("bad-value", why, child.start_tag(), "this becomes a header block");
                return None;
            }
        }
    }
    if blocks.is_empty() || removes {
        let expected = "expected `name`, or blocks inside to set";
        compiler.error("missing-attribute", "`header` needs a name", element.start_tag(), expected);
        return None;
    }
    Some(Box::new(Header::Blocks(blocks)))
}

/// The name of a transport header. Of one with a prefix that is bound here only what is behind it counts, as in both engines.
fn of_transport<'a>(name: &'a str, element: &Element) -> &'a str {
    let name = name.trim();
    match name.split_once(':') {
        Some((prefix, local)) if element.lookup_prefix(prefix).is_some() => local,
        _ => name,
    }
}

/// The header that a name means.
fn place(name: &config::Attribute, element: &Element, compiler: &mut Compiler<'_>) -> Option<Place> {
    if element.attr("scope").map(str::trim) == Some("transport") {
        return Some(Place::Transport(of_transport(&name.value, element).to_owned()));
    }
    Some(match &*name.value {
        "To" => Place::Addressing(Addressing::To),
        "From" => Place::Addressing(Addressing::From),
        "ReplyTo" => Place::Addressing(Addressing::ReplyTo),
        "FaultTo" => Place::Addressing(Addressing::FaultTo),
        "Action" => Place::Addressing(Addressing::Action),
        "RelatesTo" => Place::Addressing(Addressing::RelatesTo),
        other => {
            let bound = other
                .split_once(':')
                .and_then(|(prefix, local)| Some((prefix, local, element.lookup_prefix(prefix)?)));
            let Some((prefix, local, namespace)) = bound else {
                let expected =
                    "expected `prefix:name` with a prefix that is bound here, or scope=\"transport\"";
                let message = "SOAP headers must be namespace qualified";
                compiler.error("bad-value", message, name.value_span, expected);
                return None;
            };
            Place::Block {
                prefix: prefix.to_owned(),
                namespace: namespace.to_owned(),
                local: local.to_owned(),
            }
        }
    })
}

fn set_addressing(fact: Addressing, value: Option<String>, context: &mut Context) {
    // As in WSO2, this is reading the message: the WS-Addressing headers of the sender do not go on beside another To or Action.
    if context.payload.is_peeked() {
        // It was built before: this cannot fail.
        let _ = context.envelope();
    }
    let addressing = &mut context.addressing;
    match fact {
        Addressing::To => addressing.to = value,
        Addressing::From => addressing.from = value,
        Addressing::ReplyTo => addressing.reply_to = value,
        Addressing::FaultTo => addressing.fault_to = value,
        Addressing::RelatesTo => addressing.relates_to = value,
        Addressing::Action => {
            // One and the same for Axis2: the SOAP action follows.
            context.soap_action = Some(value.clone().unwrap_or_default());
            addressing.action = value;
        }
    }
}

impl Mediator for Header {
    fn passes_on(&self) -> bool {
        // A `send` or `call` without an endpoint takes it there.
        matches!(self, Header::Set { place: Place::Addressing(Addressing::To), .. })
    }

    fn need(&self) -> Need {
        match self {
            Header::Blocks(_)
            | Header::Set { place: Place::Block { .. }, .. }
            | Header::Remove(Place::Block { .. }) => Need::Whole,
            Header::Set { content: Content::Expression(expression), .. } => {
                expression.need().max(Need::Headers)
            }
            _ => Need::Headers,
        }
    }

    fn reason(&self) -> String {
        match self {
            Header::Set { place: Place::Transport(_) | Place::Addressing(_), content, .. } => match content {
                Content::Expression(expression) => expression.reason(),
                Content::Literal(_) => String::new(),
            },
            Header::Remove(Place::Transport(_) | Place::Addressing(_)) => String::new(),
            _ => "changes the SOAP header".to_owned(),
        }
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let is_block = !matches!(
            self,
            Header::Set { place: Place::Transport(_) | Place::Addressing(_), .. }
                | Header::Remove(Place::Transport(_) | Place::Addressing(_))
        );
        if is_block && context.payload.is_json() {
            tracing::debug!(message_id = %context.message_id(), "JSON has no SOAP header: nothing is changed");
            return Ok(Flow::Next);
        }
        match self {
            Header::Blocks(blocks) => {
                let envelope = context.envelope_mut()?;
                let header = envelope.header_or_new();
                for block in blocks {
                    for &node in &block.nodes {
                        envelope.document.copy_from(header, &block.document, node);
                    }
                }
            }
            Header::Set { place, content, xml, span } => {
                let value = match content {
                    Content::Literal(value) => Some(value.clone()),
                    Content::Expression(expression) => expression.string(context)?,
                };
                let value = value.unwrap_or_else(|| {
                    tracing::warn!(message_id = %context.message_id(), place = context.place(), "the value of a header is null, \"\" is used");
                    String::new()
                });
                match place {
                    Place::Transport(name) => crate::support::set_header(name, &value, context),
                    Place::Addressing(fact) => set_addressing(*fact, Some(value), context),
                    Place::Block { prefix, namespace, local } => {
                        let inner = match xml {
                            true => Some(xml_value::parse(&value).map_err(|why| {
                                Fault::new(format!("the value of the header {local} cannot be used: {why}"))
                                    .at(*span)
                            })?),
                            false => None,
                        };
                        let envelope = context.envelope_mut()?;
                        let header = envelope.header_or_new();
                        let document = &mut envelope.document;
                        let block = document.append_element(header, prefix, namespace, local);
                        document.declare_namespace(block, prefix, namespace);
                        match inner {
                            Some(Value::Xml(inner)) => {
                                for &node in &inner.nodes {
                                    document.copy_from(block, &inner.document, node);
                                }
                            }
                            _ => {
                                document.append_text(block, &value);
                            }
                        }
                    }
                }
            }
            Header::Remove(Place::Transport(name)) => {
                context.remove_header(name);
            }
            Header::Remove(Place::Addressing(fact)) => {
                // The address that the request came to is gone as well.
                let none = (*fact == Addressing::To).then(String::new);
                set_addressing(*fact, none, context);
            }
            Header::Remove(Place::Block { namespace, local, .. }) => {
                let envelope = context.envelope()?;
                let Some(header) = envelope.header else { return Ok(Flow::Next) };
                let blocks: Vec<_> = envelope
                    .elements_of(header)
                    .filter(|&block| envelope.document.is_element(block, namespace, local))
                    .collect();
                if !blocks.is_empty() {
                    let envelope = context.envelope_mut()?;
                    blocks.into_iter().for_each(|block| envelope.document.detach(block));
                }
            }
        }
        Ok(Flow::Next)
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing::{self, Ended};
    use message::{Format, SoapVersion};

    const SOAP: [(&str, &str); 2] = [("Content-Type", "text/xml"), ("SOAPAction", "urn:old")];

    fn run(text: &str) -> Ended {
        let flow = testing::main(&registry(testing::endpoints), text);
        assert!(flow.found.is_empty(), "{text}: {flow:?}");
        flow.run(
            &SOAP,
            r#"<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Header><a:h xmlns:a="u">1</a:h><a:h xmlns:a="u">2</a:h></s:Header><s:Body><b/></s:Body></s:Envelope>"#,
        )
    }

    #[test]
    fn blocks_are_appended_and_removed() {
        for (element, wanted) in [
            (
                r#"<header name="w:s" xmlns:w="urn:w" value="x"/>"#,
                r#"<a:h xmlns:a="u">1</a:h><a:h xmlns:a="u">2</a:h><w:s xmlns:w="urn:w">x</w:s>"#,
            ),
            (
                r#"<header name="a:h" xmlns:a="u" expression="$ctx:none"/>"#,
                r#"<a:h xmlns:a="u">1</a:h><a:h xmlns:a="u">2</a:h><a:h xmlns:a="u"></a:h>"#,
            ),
            (r#"<header name="x:h" xmlns:x="u" action="remove"/>"#, ""),
            (
                r#"<header name="x:h" xmlns:x="u" action="remove"/><header name="x:h" xmlns:x="u" type="OM" value="&lt;i/&gt;"/>"#,
                r#"<x:h xmlns:x="u"><i/></x:h>"#,
            ),
            (
                r#"<header name="x:h" xmlns:x="u" action="remove"/><header><q xmlns="v">1</q><r xmlns=""/></header>"#,
                r#"<q xmlns="v">1</q><r/>"#,
            ),
        ] {
            let mut end = run(element);
            let text = end.write(Format::Soap(SoapVersion::V11));
            let header = text.split_once("<s:Header").map_or("", |(_, rest)| rest);
            let header = header.split("</s:Header>").next().unwrap_or("").trim_start_matches(['/', '>']);
            let header = if header.starts_with("<s:Body") { "" } else { header };
            assert_eq!(header, wanted, "{element}");
        }
    }

    #[test]
    fn transport_headers_and_addressing_facts() {
        let end = run(
            r#"<header name="X-A" value="1" scope="transport"/><header name="x-a" expression="concat($trp:X-A, '2')" scope="transport"/>
               <header name="SOAPAction" action="remove" scope="transport"/>
               <header name="X-Null" expression="$ctx:none" scope="transport"/>
               <header name="w:X-Local" xmlns:w="urn:w" value="l" scope="transport"/>
               <header name="To" value="http://h/x"/><header name="ReplyTo" value="r"/><header name="ReplyTo" action="remove"/>
               <header name="Action" value="urn:new"/>"#,
        );
        let context = &end.context;
        assert_eq!((context.headers.get("X-A"), context.headers.get("SOAPAction")), (Some("12"), None));
        assert_eq!(context.headers.get("X-Null"), Some(""));
        assert_eq!(context.headers.get("X-Local"), Some("l"));
        assert_eq!(context.addressing.to.as_deref(), Some("http://h/x"));
        assert_eq!(context.addressing.reply_to, None);
        assert_eq!(context.soap_action().as_deref(), Some("urn:new"));
    }

    #[test]
    fn a_header_without_a_name_is_not_sent_and_the_flow_goes_on() {
        let text = r#"<header name="" value="1" scope="transport"/><property name="after" value="yes"/>"#;
        let flow = testing::main(&registry(testing::endpoints), text);
        assert!(flow.reports("`` is not a header name"), "{flow:?}");
        let end = flow.run(&[("Content-Type", "text/plain")], "x");
        assert_eq!(end.property("after").as_deref(), Some("yes"));
    }

    #[test]
    fn mistakes_are_found_and_broken_values_fault() {
        for (element, wanted) in [
            (r#"<header name="h" value="1"/>"#, "SOAP headers must be namespace qualified"),
            (r#"<header name="p:h" value="1"/>"#, "SOAP headers must be namespace qualified"),
            (r#"<header name="To"/>"#, "`header` needs a value"),
            (r#"<header/>"#, "`header` needs a name"),
            (r#"<header name="a b" value="1" scope="transport"/>"#, "`a b` is not a header name"),
            (r#"<header name="p:h" value="1" scope="transport"/>"#, "`p:h` is not a header name"),
        ] {
            let flow = testing::main(&registry(testing::endpoints), element);
            assert!(flow.reports(wanted), "{element}: {flow:?}");
        }
        for (element, body) in [
            (r#"<header name="x:h" xmlns:x="u" type="OM" value="&lt;i"/>"#, "<a/>"),
            (r#"<header name="x:h" xmlns:x="u" value="1"/>"#, "<a"),
        ] {
            let text = format!(
                r#"{element}<!--top--><sequence name="fault"><property name="seen" expression="$ctx:ERROR_MESSAGE"/></sequence>"#
            );
            let flow = testing::main(&registry(testing::endpoints), &text);
            let end = flow.run(&[("Content-Type", "application/xml")], body);
            assert!(end.property("seen").is_some_and(|seen| seen.contains("well-formed")), "{element}");
        }
    }

    #[test]
    fn json_has_no_soap_header() {
        let flow =
            testing::main(&registry(testing::endpoints), r#"<header name="x:h" xmlns:x="u" value="1"/>"#);
        let mut end = flow.run(&[("Content-Type", "application/json")], r#"{"a":1.0}"#);
        assert_eq!(end.payload(), r#"{"a":1.0}"#);
    }
}
