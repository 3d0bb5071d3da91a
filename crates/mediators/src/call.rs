//! `call`: hands the message to an endpoint and goes on with its answer.

use crate::support::envelope_with_headers;
use crate::xml_value;
use config::Element;
use flow::endpoint::{CallTarget, Destination, Saved};
use flow::reference::EndpointRef;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Expression, Family, Fault, Flow, Inside,
    KeyValue, Mediator, Need, Page, Values,
};
use message::{Envelope, Kind, MediaType, Reading, SoapVersion, Value, XmlValue};
use std::sync::Arc;

/// `<call [blocking="true"]><source …>…</source>?<target …>…</target>?<endpoint …/>?</call>`
pub const DEFINITION: Definition = Definition {
    name: "call",
    summary: "Hands the message to an endpoint and goes on with the answer, in the body or where `target` says.",
    attributes: &[
        Attribute::optional(
            "blocking",
            Values::Boolean,
            "302, 401, 403, 404 and 503 are faults, and the request's headers stay",
        )
        .or("false"),
        Attribute::optional("initAxis2ClientOptions", Values::OneOf(&["true", "false"]), "of no effect here"),
        Attribute::optional("axis2xml", Values::Text, "of no effect here"),
        Attribute::optional("repository", Values::Text, "of no effect here"),
    ],
    children: Children::Elements(&["source", "target", "endpoint"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Core,
    semantics: "The message goes to the endpoint, and the flow continues after `call` with the answer: its body, headers and status.
Properties of default scope and variables stay. Without `endpoint` it goes to the To address of the message. No thread waits for
the answer.

`source` says what is sent instead of the body: `custom` an expression, `property` a property of default scope, `inline` an element or a
text. `contentType` is its content type. `target` says where the answer goes: into a `property` or a `variable` (a map of payload,
headers and `attributes.statusCode`); then body and headers of the message stay as they were.

An answer with status 4xx or 5xx is no error: read `HTTP_SC` in axis2 scope. With `blocking=\"true\"` 302, 401, 403, 404 and 503 are
faults with that number as ERROR_CODE, and the headers of the request stay; `NON_ERROR_HTTP_STATUS_CODES` and `ERROR_HTTP_STATUS_CODES`
(axis2 scope, lists separated by commas) change that list.
A SOAP fault is an error only with the property `FORCE_ERROR_ON_SOAP_FAULT`. With `OUT_ONLY` a copy is sent, and the flow goes on without an answer.

Where the endpoint is a recipient list, a copy of the flow goes on with each answer, as behind a `clone`; an `aggregate` makes one message of
them. A blocking call has one answer: it faults there.",
    inside: &[
        Inside::new(
            "source?",
            "what is sent; absent: the body",
            &[
                Attribute::optional("type", Values::OneOf(&["body", "custom", "property", "inline"]), "what stands inside")
                    .or("custom"),
                Attribute::optional("contentType", Values::Text, "the type it is sent under; absent: that of the message"),
            ],
        )
        .with("expression, name, text or element"),
        Inside::new(
            "target?",
            "where the answer goes; absent: into the body",
            &[Attribute::optional("type", Values::OneOf(&["body", "property", "variable"]), "what stands inside").or("body")],
        )
        .with("name"),
        Inside::new("endpoint?", "where it is sent", &[Attribute::optional("key", Values::Key, "a named endpoint")])
            .with("…"),
    ],
    needs: &[
        (Need::Headers, "the body is sent as it comes, and the answer takes its place"),
        (Need::Whole, "there is a `source`, or a `target` other than the body"),
    ],
    refused: &[
        ("<call blocking=\"yes\"/>", "`blocking` should not be `yes`"),
        ("<call><source type=\"property\"/></call>", "this `source` names nothing"),
        ("<call><source>//a[</source></call>", "not a valid expression"),
        ("<call><target type=\"variable\"/></call>", "this `target` names nothing"),
    ],
    faults: &[
        ("0", "the `source` gives nothing, or cannot be sent under its content type, or the name of the target is null"),
        (
            "101503",
            "the endpoint cannot be reached; 101505 and other codes of [faults](../mediation.md#faults) for what else goes wrong there",
        ),
        ("101504", "the endpoint does not answer in time"),
    ],
};

enum Source {
    /// The body as it is.
    Body,
    Custom(Expression),
    Property(String),
    Inline(Value),
}

enum Target {
    Property(KeyValue),
    Variable(KeyValue),
}

struct Call {
    endpoint: Option<Arc<EndpointRef>>,
    blocking: bool,
    source: Source,
    content_type: Option<String>,
    target: Option<Target>,
}

/// Says where the endpoint of a blocking call is a recipient list: there is no one answer to go on with.
fn report_recipients(endpoint: &Element, compiler: &mut Compiler<'_>) {
    let inline = ["recipientlist", "recipientList"].iter().any(|name| endpoint.child(name).is_some());
    let named = || {
        let key = endpoint.attribute("key")?;
        let named = compiler.configuration.endpoints.get(key.value.trim())?;
        Some(matches!(named.kind, config::EndpointKind::RecipientList(_)))
    };
    if inline || named() == Some(true) {
        let message = "a blocking `call` goes on with one answer, and a recipient list has several";
        let label = "messages fault here, but for those with the property OUT_ONLY";
        compiler.warning("bad-place", message, endpoint.start_tag(), label);
    }
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let blocking = flow::truth(element, "blocking", false);
    let endpoint = match element.child("endpoint") {
        Some(endpoint) => {
            if blocking {
                report_recipients(endpoint, compiler);
            }
            Some(compiler.endpoint(endpoint)?)
        }
        None => None,
    };
    let (source, content_type) = match element.child("source") {
        Some(source) => (source_of(source, compiler)?, source.attr("contentType").map(str::to_owned)),
        None => (Source::Body, None),
    };
    let target = match element.child("target") {
        Some(target) => target_of(target, compiler)?,
        None => None,
    };
    Some(Box::new(Call { endpoint, blocking, source, content_type, target }))
}

fn source_of(element: &Element, compiler: &mut Compiler<'_>) -> Option<Source> {
    let text = element.text();
    let text = text.trim();
    Some(match element.attr("type").map_or("custom", str::trim) {
        "body" => Source::Body,
        "property" if !text.is_empty() => Source::Property(text.to_owned()),
        "custom" if !text.is_empty() => {
            Source::Custom(compiler.expression_text(text, element.text_span(), element.scope())?)
        }
        "inline" => match xml_value::inside(element) {
            Some(child) => match xml_value::of_element(child) {
                Ok(value) => Source::Inline(value),
                Err(why) => {
                    compiler.error("bad-value", why, child.start_tag(), "this is the request");
                    return None;
                }
            },
            None if text.is_empty() => return wrong_place(element, compiler),
            None => Source::Inline(Value::from(text)),
        },
        _ => return wrong_place(element, compiler),
    })
}

fn target_of(element: &Element, compiler: &mut Compiler<'_>) -> Option<Option<Target>> {
    let text = element.text();
    let text = text.trim();
    let mut name = || match config::Value::parse(text, element.text_span(), element.scope()) {
        _ if text.is_empty() => wrong_place(element, compiler),
        config::Value::Expression(expression) => compiler
            .expression_text(&expression.source, expression.span, &expression.scope)
            .map(KeyValue::Dynamic),
        _ => Some(KeyValue::Literal(Arc::from(text))),
    };
    Some(match element.attr("type").map_or("body", str::trim) {
        "body" => None,
        "property" => Some(Target::Property(name()?)),
        "variable" => Some(Target::Variable(name()?)),
        _ => return wrong_place(element, compiler),
    })
}

fn wrong_place<T>(element: &Element, compiler: &mut Compiler<'_>) -> Option<T> {
    let expected = match element.local() {
        "source" => "expected type=\"body\", or custom, property or inline with what it is",
        _ => "expected type=\"body\", or property or variable with a name",
    };
    compiler.error(
        "bad-value",
        format!("this `{}` names nothing", element.local()),
        element.start_tag(),
        expected,
    );
    None
}

/// Makes a value the payload, as `content_type` or else the message's own type wants it.
fn set_payload(value: &Value, content_type: Option<&str>, context: &mut Context) -> Result<(), Fault> {
    let media_type = content_type.map(str::to_owned);
    let media_type = media_type
        .or_else(|| context.axis2("messageType").map(|value| value.to_string()))
        .unwrap_or_default();
    let kind = Kind::of(MediaType::parse(&media_type).essence);
    match (value, kind) {
        (Value::Xml(xml), _) => context.payload.set_envelope(envelope_of(xml, kind, context)),
        (Value::Json(json), _) => context.payload.set_json_value((**json).clone()),
        (text, Kind::Json) => context.payload.set_json(&text.to_string())?,
        (text, Kind::Text | Kind::Form | Kind::Binary) => {
            let reading = Reading::of(Some(&media_type), None, context.is_rest());
            context.payload.set_bytes(text.to_string(), reading);
        }
        (text, _) => match xml_value::parse(&text.to_string()) {
            Ok(Value::Xml(xml)) => context.payload.set_envelope(envelope_of(&xml, kind, context)),
            Ok(_) => {}
            Err(why) => {
                return Err(Fault::new(format!(
                    "The source of the call cannot be sent as {media_type}: {why}"
                )));
            }
        },
    }
    if let Some(content_type) = content_type {
        context.set_axis2("messageType", Value::from(content_type));
    }
    Ok(())
}

/// An envelope around nodes, or the one that they are; header blocks of the message stay.
fn envelope_of(xml: &XmlValue, kind: Kind, context: &Context) -> Envelope {
    let copy = XmlValue::copy_of(&xml.document, &xml.nodes);
    if let Some(&root) = copy.nodes.first()
        && copy.document.local(root) == "Envelope"
        && let Ok(envelope) = Envelope::of_document((*copy.document).clone())
    {
        return envelope;
    }
    let version = if kind == Kind::Soap12 { SoapVersion::V12 } else { SoapVersion::V11 };
    let mut envelope = match context.payload.frame() {
        Some(built) if built.version == version => envelope_with_headers(built),
        _ => Envelope::empty(version),
    };
    for &node in &copy.nodes {
        envelope.document.copy_from(envelope.body, &copy.document, node);
    }
    envelope
}

impl Call {
    /// What is sent instead of the body.
    fn source(&self, context: &mut Context) -> Result<Option<Value>, Fault> {
        match &self.source {
            Source::Body => Ok(None),
            Source::Inline(value) => Ok(Some(value.clone())),
            Source::Custom(expression) if expression.is_json() && context.payload.is_json() => {
                let json = expression.json_values(context)?;
                Ok(Some(json.map_or_else(|| Value::from(""), |json| Value::Json(Arc::new(json)))))
            }
            Source::Custom(expression) => Ok(Some(expression.value(context)?.ok_or_else(|| {
                Fault::new(format!("The source of the call {} gives nothing", expression.source()))
            })?)),
            Source::Property(name) => Ok(Some(context.properties.get(name).cloned().ok_or_else(|| {
                Fault::new(format!("The source of the call, the property {name}, is not set"))
            })?)),
        }
    }
}

impl Mediator for Call {
    fn need(&self) -> Need {
        let replaces = !matches!(self.source, Source::Body);
        if self.target.is_some() || replaces { Need::Whole } else { Need::Headers }
    }

    fn reason(&self) -> String {
        match (&self.target, &self.source) {
            (None, Source::Body) => "relays the body as it is".to_owned(),
            (Some(_), _) => "keeps the body for after the call".to_owned(),
            _ => "sends its source instead of the body".to_owned(),
        }
    }

    fn endpoints(&self) -> Vec<Arc<EndpointRef>> {
        self.endpoint.iter().cloned().collect()
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        if context.services().mocks.get().is_some() {
            // The framework for unit tests does it, so that the address of a backend is what the suite says.
            context.remove_axis2("REST_URL_POSTFIX");
        }
        let unnamed = || Fault::new("the name of the target of the call is null");
        let target = match &self.target {
            None => None,
            Some(Target::Property(name)) => {
                Some(CallTarget::Property(name.resolve(context)?.ok_or_else(unnamed)?))
            }
            Some(Target::Variable(name)) => {
                Some(CallTarget::Variable(name.resolve(context)?.ok_or_else(unnamed)?))
            }
        };
        let source = self.source(context)?;
        let saved = target.map(|target| {
            Box::new(Saved {
                payload: context.payload.copy(),
                headers: context.headers.clone(),
                request_headers: context.request_headers,
                target,
            })
        });
        if let Some(value) = source {
            set_payload(&value, self.content_type.as_deref(), context)?;
        } else if let Some(content_type) = &self.content_type {
            context.set_axis2("messageType", Value::from(content_type.as_str()));
        }
        let reference = self.endpoint.clone();
        Ok(Flow::Call(Destination { reference, blocking: self.blocking, saved, ..Destination::implicit() }))
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing::{self, Ended};

    const XML: (&str, &str) = ("Content-Type", "application/xml");
    const JSON: (&str, &str) = ("Content-Type", "application/json");

    fn call(inside: &str, address: &str, headers: &[(&str, &str)], body: &str) -> Ended {
        let text = format!(
            r#"<property name="p" value="before"/><call>{inside}<endpoint><address uri="{address}/x"/></endpoint></call>
               <property name="after" expression="$ctx:p"/>"#
        );
        let flow = testing::main(&registry(testing::endpoints), &text);
        assert!(flow.found.is_empty(), "{inside}: {flow:?}");
        flow.run(headers, body)
    }

    #[test]
    fn a_one_way_call_reaches_all_of_a_recipient_list() {
        let (counts, seen) = std::sync::mpsc::channel();
        let recipient = |name: &'static str| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback can be bound");
            let address = listener.local_addr().expect("it is bound");
            let counts = counts.clone();
            std::thread::spawn(move || {
                for mut stream in listener.incoming().flatten() {
                    let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
                    let _ = counts.send(name);
                    let _ = std::io::Write::write_all(
                        &mut stream,
                        b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                    );
                }
            });
            format!("<endpoint><address uri='http://{address}/'/></endpoint>")
        };
        let list = [recipient("a"), recipient("b")].concat();
        // The client's own flow waits for as long as that takes.
        let text = format!(
            "<property name='OUT_ONLY' value='true'/><call><endpoint><recipientlist>{list}</recipientlist></endpoint></call>\
             <script language='js'>java.lang.Thread.sleep(500)</script><respond/>"
        );
        let tested = testing::main(&registry(endpoints::endpoint), &text);
        assert_eq!(tested.found, [""; 0]);
        assert_eq!(tested.ask("POST", "/", &[XML], "<a/>").status, 200);
        let mut all: Vec<_> = seen.try_iter().collect();
        all.sort_unstable();
        assert_eq!(all, ["a", "b"]);
    }

    #[test]
    fn the_flow_goes_on_with_the_answer() {
        let backend = testing::backend("HTTP/1.1 201 Created\r\nContent-Type: application/xml\r\n\r\n<r/>");
        let mut end = call("", &backend, &[XML], "<a/>");
        assert_eq!((end.payload().as_str(), end.property("after").as_deref()), ("<r/>", Some("before")));
        assert_eq!(end.context.axis2("HTTP_SC").map(|v| v.to_string()).as_deref(), Some("201"));
        assert!(!end.context.response);
    }

    #[test]
    fn sources_make_the_request() {
        let echo = testing::backend("");
        for (inside, headers, body, wanted, content_type) in [
            (r#"<source type="body"/>"#, XML, "<a/>", "<a/>", "application/xml"),
            (r#"<source>//b</source>"#, XML, "<a><b>1</b></a>", "<b>1</b>", "application/xml"),
            (
                r#"<source type="custom">json-eval($.b)</source>"#,
                JSON,
                r#"{"b":{"c":1}}"#,
                r#"{"c":1}"#,
                "application/json",
            ),
            (
                r#"<source type="inline"><q xmlns="u"/></source>"#,
                XML,
                "<a/>",
                r#"<q xmlns="u"/>"#,
                "application/xml",
            ),
            (
                r#"<source type="inline" contentType="application/json">{"q":1}</source>"#,
                XML,
                "<a/>",
                r#"{"q":1}"#,
                "application/json",
            ),
            (
                r#"<source type="property" contentType="text/plain">p</source>"#,
                XML,
                "<a/>",
                "before",
                "text/plain",
            ),
        ] {
            let mut end = call(inside, &echo, &[headers], body);
            assert_eq!(end.fault(), None, "{inside}");
            let soap = r#" xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/""#;
            let bytes = match end.context.payload.bytes() {
                Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                None => {
                    let _ = end.payload();
                    String::from_utf8_lossy(end.context.payload.bytes().unwrap()).into_owned()
                }
            };
            assert_eq!(bytes.replace(soap, ""), wanted, "{inside}");
            let sent_type = end.context.headers.get("Content-Type").unwrap_or_default();
            assert!(sent_type.starts_with(content_type), "{inside}: {sent_type}");
        }
    }

    #[test]
    fn a_target_takes_the_answer_and_the_message_is_as_before() {
        let backend =
            testing::backend("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-B: 1\r\n\r\n{\"r\":1}");
        for (inside, wanted) in [
            (r#"<target type="property">t</target>"#, r#"{"r":1}"#),
            (r#"<source type="inline"><q/></source><target type="property">t</target>"#, r#"{"r":1}"#),
            (r#"<source type="body"/><target type="variable">{'t'}</target>"#, ""),
        ] {
            let mut end = call(inside, &backend, &[XML, ("X-A", "1")], "<a/>");
            assert_eq!((end.fault(), end.payload().as_str()), (None, "<a/>"), "{inside}");
            assert_eq!(end.context.headers.get("Content-Type"), Some("application/xml"));
            assert_eq!((end.context.headers.get("X-A"), end.context.headers.get("X-B")), (Some("1"), None));
            if wanted.is_empty() {
                let value = end.context.variables.get("t").map(|value| value.to_string()).unwrap_or_default();
                assert!(
                    value.contains(r#""payload":{"r":1}"#) && value.contains(r#""statusCode":200"#),
                    "{value}"
                );
            } else {
                assert_eq!(end.property("t").as_deref(), Some(wanted));
            }
        }
    }

    #[test]
    fn an_empty_request_has_the_type_that_the_flow_says() {
        let text = format!(
            "<property name='HTTP_METHOD' value='POST' scope='axis2'/><header name='Content-Type' scope='transport' value='application/vnd.x+json'/>\
             <call><endpoint><address uri='{}'/></endpoint></call><respond/>",
            testing::backend("")
        );
        let answer = testing::main(&crate::registry(testing::endpoints), &text).ask("GET", "/", &[], "");
        assert_eq!(answer.headers.get("Content-Type"), Some("application/vnd.x+json"));
        let request = answer.headers.get("X-Request").unwrap_or_default();
        assert!(request.starts_with("POST "), "{request}");
    }

    #[test]
    fn blocking_calls_keep_the_headers_and_fault_on_some_statuses() {
        for (response, fault) in [
            ("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-B: 1\r\n\r\nx", None),
            ("HTTP/1.1 500 Oops\r\nContent-Type: text/plain\r\n\r\nx", None),
            (
                "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n\r\nx",
                Some("404: Transport error: 404 Error: Not Found"),
            ),
        ] {
            let backend = testing::backend(response);
            let text =
                format!(r#"<call blocking="true"><endpoint><address uri="{backend}"/></endpoint></call>"#);
            let end = testing::main(&registry(testing::endpoints), &text).run(&[XML, ("X-A", "1")], "<a/>");
            assert_eq!(end.fault().as_deref(), fault);
            if fault.is_none() {
                let headers = &end.context.headers;
                assert_eq!((headers.get("X-A"), headers.get("X-B")), (Some("1"), None));
                assert_eq!(headers.get("Content-Type"), Some("text/plain"));
            }
        }
    }

    #[test]
    fn what_fails_is_a_fault() {
        for (inside, wanted) in [
            (
                r#"<source type="property">none</source>"#,
                "0: The source of the call, the property none, is not set",
            ),
            (r#"<source type="inline" contentType="application/json">{</source>"#, "0: "),
            (
                r#"<source type="inline">x</source>"#,
                "0: The source of the call cannot be sent as application/xml",
            ),
            ("", "101503: "),
        ] {
            let text = format!(
                r#"<call>{inside}<endpoint><address uri="http://127.0.0.1:1/"/></endpoint></call><!--top-->
                <sequence name="fault"><property name="seen" expression="$ctx:ERROR_CODE"/></sequence>"#
            );
            let end = testing::main(&registry(testing::endpoints), &text).run(&[XML], "<a/>");
            let fault = end.fault().unwrap_or_default();
            if inside.contains("JSON") || inside.contains("json") {
                assert!(end.property("seen").is_some(), "{inside}");
            } else {
                assert!(fault.starts_with(wanted), "{inside}: {fault}");
            }
            assert_eq!(end.property("seen"), end.property("ERROR_CODE"));
        }
        for (inside, wanted) in [
            (r#"<source type="file">x</source>"#, "this `source` names nothing"),
            (r#"<source/>"#, "this `source` names nothing"),
            (r#"<target type="property"/>"#, "this `target` names nothing"),
        ] {
            let flow = testing::main(&registry(testing::endpoints), &format!("<call>{inside}</call>"));
            assert!(flow.reports(wanted), "{flow:?}");
        }
    }
}
