//! `callout`: calls a service with a copy of the message; only the target changes.

use crate::support::{address_endpoint, attribute_value};
use config::{Element, Key};
use flow::endpoint::Destination;
use flow::fault::code;
use flow::reference::EndpointRef;
use flow::{
    Attribute, Children, Client, Code, Compiled, Compiler, Context, Definition, Expression, Family, Fault,
    Flow, Inside, Mediator, Moves, Need, Page, Step, Unsupported, Values,
};
use message::{Envelope, SoapVersion, Value, XmlValue};
use std::sync::Arc;
use xml::NodeId;

/// `<callout serviceURL="…" | endpointKey="…" …><endpoint/>? <source …/>? <target …/>?</callout>`
pub const DEFINITION: Definition = Definition {
    name: "callout",
    summary: "Calls a service with a part of the message and puts the answer where `target` says.",
    attributes: &[
        Attribute::optional("serviceURL", Values::Text, "the address"),
        Attribute::optional("endpointKey", Values::Text, "the endpoint"),
        Attribute::optional("action", Values::Text, "the SOAP action"),
        Attribute::optional("useServerConfig", Values::Boolean, "of no effect here"),
        Attribute::optional("initAxis2ClientOptions", Values::OneOf(&["true", "false"]), "of no effect here"),
        Attribute::optional(
            "passHeaders",
            Values::Boolean,
            "the SOAP headers go along; of effect in the dialect of Apache Synapse only",
        ),
    ],
    children: Children::Elements(&["configuration", "endpoint", "source", "target", "enableSec"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Core,
    semantics: "The older way to call a service: a copy of the message is sent, and only the `target` changes. The address is one of `serviceURL`,
`endpointKey` and `endpoint`, in this order.

`source` says what is sent: the first element that an XPath selects, an element in a property, or without `source` the whole
message with its SOAP headers. The transport headers of the message go along, and so do its SOAP headers with an element; in the dialect of Apache
Synapse the former never do, and the latter with `passHeaders=\"true\"` only. A JSON body is sent as it is, whatever the source is. `target` says where the first element of the answer's
body goes: it replaces the element that an XPath selects, or goes into a property; without `target` the answer replaces the whole
message. With the property `OUT_ONLY` there is no answer.

With `enableSec` the request is secured and the answer verified as the policies say, as of an [endpoint](../security.md#ws-security) with it; the message
is sent as SOAP. It stands beside `serviceURL`: an endpoint has an `enableSec` of its own, and a `callout` with both faults.

A failure to send, a SOAP fault in the answer and the statuses 302, 401, 403, 404 and 503 are errors. The `ERROR_CODE` is the status, or
for a SOAP fault its code, if that is a number; the status is in `HTTP_SC`.",
    inside: &[
        Inside::new(
            "configuration?",
            "of no effect here",
            &[
                Attribute::optional("axis2xml", Values::Text, "of no effect here"),
                Attribute::optional("repository", Values::Text, "of no effect here"),
            ],
        ),
        Inside::new("endpoint?", "where it is sent", &[Attribute::optional("key", Values::Key, "a named endpoint")])
            .with("…"),
        Inside::new(
            "source?",
            "what is sent; absent: the whole message",
            &[
                Attribute::optional("xpath", Values::Expression, "the element"),
                Attribute::optional("key", Values::Text, "the property with the element"),
                Attribute::optional("type", Values::OneOf(&["envelope"]), "the whole message"),
            ],
        ),
        Inside::new(
            "target?",
            "where the answer goes; absent: it takes the place of the message",
            &[
                Attribute::optional("xpath", Values::Expression, "the element that it replaces"),
                Attribute::optional("key", Values::Text, "the property that holds it"),
            ],
        ),
        Inside::new(
            "enableSec?",
            "WS-Security, with `serviceURL`",
            &[
                Attribute::optional("policy", Values::Text, "of both directions"),
                Attribute::optional("outboundPolicy", Values::Text, "of the request"),
                Attribute::optional("inboundPolicy", Values::Text, "of the answer"),
            ],
        ),
    ],
    needs: &[(Need::Whole, "always")],
    refused: &[
        ("<callout serviceURL=\"http://localhost/\"><enableSec/></callout>", "`enableSec` names no policy"),
        (
            "<callout endpointKey=\"E\"><enableSec policy=\"P\"/></callout>",
            "`enableSec` of `callout` is for a `serviceURL`: messages that come here fault",
        ),
        ("<callout serviceURL=\"http://localhost/\"><target/></callout>", "this `target` names nothing"),
        ("<callout serviceURL=\"http://localhost/\"><source xpath=\"//a[\"/></callout>", "not a valid expression"),
        ("<callout passHeaders=\"yes\"/>", "`passHeaders` should not be `yes`"),
    ],
    faults: &[
        ("0", "the source is not an element, or the target is not an element of the message"),
        ("401000", "the service answered with a SOAP fault or not in time, or its answer is empty"),
        ("401002", "the service cannot be reached"),
        (
            "601000",
            "the source reads the body, and it is not what its content type says, or larger than a flow may hold",
        ),
    ],
};

/// A place in the message: for the source it is read, for the target it is replaced.
enum Place {
    /// The whole message.
    Envelope,
    XPath(Expression),
    Property(Arc<str>),
}

/// Which headers of the message go along.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Headers {
    /// All of them, as in WSO2.
    All,
    /// Those of SOAP (Apache Synapse).
    Soap,
    None,
}

struct Callout {
    endpoint: Option<Arc<EndpointRef>>,
    core: Arc<Core>,
}

/// What may run on a compute thread.
struct Core {
    action: Option<String>,
    headers: Headers,
    source: Place,
    target: Place,
    /// `enableSec`: what is sent is SOAP.
    secured: bool,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let security = element.child("enableSec");
    if let Some(security) = security
        && element.attribute("serviceURL").is_none()
    {
        let message = "`enableSec` of `callout` is for a `serviceURL`";
        compiler.warning(
            "unsupported-element",
            format!("{message}: messages that come here fault"),
            security.start_tag(),
            "put it into the endpoint",
        );
        return Some(Box::new(Unsupported::new(message)));
    }
    let endpoint = if let Some(url) = element.attribute("serviceURL") {
        let inside = match security {
            Some(security) => securing(security, compiler)?,
            None => String::new(),
        };
        Some(address_endpoint(&url.value, "", &inside, url.value_span, compiler)?)
    } else if let Some(key) = element.attribute("endpointKey") {
        Some(compiler.endpoint_key(&Key::of(key)))
    } else if let Some(endpoint) = element.child("endpoint") {
        Some(compiler.endpoint(endpoint)?)
    } else {
        None
    };
    let mut place = |name: &str| match element.child(name) {
        None => Some(Place::Envelope),
        Some(child) if child.attr("xpath").is_some() => {
            Some(Place::XPath(compiler.expression(child, "xpath")?))
        }
        Some(child) => match child.attr("key") {
            Some(key) => Some(Place::Property(Arc::from(key))),
            None if child.attr("type") == Some("envelope") => Some(Place::Envelope),
            None => {
                let message = format!("this `{name}` names nothing");
                compiler.error("missing-attribute", message, child.start_tag(), "expected `xpath` or `key`");
                None
            }
        },
    };
    let (source, target) = (place("source")?, place("target")?);
    if compiler.services.settings.synapse_dialect && element.child("source").is_none() {
        let message = "`callout` needs a source";
        compiler.error(
            "missing-element",
            message,
            element.start_tag(),
            "Apache Synapse has no default for it",
        );
        return None;
    }
    let action = element.attr("action").map(str::to_owned);
    let headers = match (compiler.services.settings.synapse_dialect, element.attr("passHeaders")) {
        (false, _) => Headers::All,
        (true, Some(passed)) if passed.trim().eq_ignore_ascii_case("true") => Headers::Soap,
        (true, _) => Headers::None,
    };
    let secured = security.is_some();
    Some(Box::new(Callout { endpoint, core: Arc::new(Core { action, headers, source, target, secured }) }))
}

/// The `enableSec` of the endpoint that stands for the address; `None` after a recorded error.
fn securing(security: &Element, compiler: &mut Compiler<'_>) -> Option<String> {
    let names = ["policy", "inboundPolicy", "outboundPolicy"];
    let given = names.iter().filter_map(|name| Some((name, security.attr(name)?)));
    let attributes: String =
        given.map(|(name, key)| format!(" {name}=\"{}\"", attribute_value(key))).collect();
    if attributes.is_empty() {
        let label = "left out: messages would go out unsecured";
        compiler.error("bad-policy", "`enableSec` names no policy", security.start_tag(), label);
        return None;
    }
    Some(format!("<enableSec{attributes}/>"))
}

impl Core {
    /// The copy that is sent.
    fn request(&self, context: &mut Context) -> Result<Box<Context>, Fault> {
        let mut copy = context.branch();
        copy.addressing.message_id = None;
        if self.headers != Headers::All {
            // The action is no header of the transport to the engine: it goes along in both dialects.
            copy.soap_action = copy.soap_action();
            copy.headers.retain(|name, _| name.eq_ignore_ascii_case("Content-Type"));
        }
        if let Some(action) = &self.action {
            copy.soap_action = Some(action.clone());
        }
        if self.secured && !matches!(copy.inbound.client, Client::Soap(_)) {
            let mut inbound = (*copy.inbound).clone();
            inbound.client = Client::Soap(SoapVersion::V11);
            copy.inbound = Arc::new(inbound);
            copy.set_axis2("messageType", Value::from(SoapVersion::V11.media_type()));
        }
        let value = match &self.source {
            // JSON goes as it is, whatever the source says.
            _ if context.payload.is_json() => return Ok(copy),
            Place::Envelope => return Ok(copy),
            Place::XPath(expression) => expression.value(context)?,
            Place::Property(name) => context.properties.get(name).cloned(),
        };
        let Some(Value::Xml(xml)) = value else {
            return Err(Fault::new("the source of the callout is not an XML element"));
        };
        let message = context.envelope()?;
        let mut envelope = match self.headers {
            Headers::None => Envelope::empty(message.version),
            Headers::All | Headers::Soap => crate::support::envelope_with_headers(message),
        };
        for &node in xml.nodes.iter().take(1) {
            envelope.document.copy_from(envelope.body, &xml.document, node);
        }
        copy.payload.set_envelope(envelope);
        Ok(copy)
    }

    /// The element that the answer takes the place of, where it is to take one's; it may take long to find.
    fn replaced(&self, context: &mut Context) -> Result<Option<NodeId>, Fault> {
        match &self.target {
            Place::XPath(expression) => Ok(expression.nodes(context)?.into_iter().next()),
            Place::Envelope | Place::Property(_) => Ok(None),
        }
    }

    /// Puts the answer where it belongs: in place of `found`, where the target is an expression.
    fn accept(
        &self,
        mut response: Box<Context>,
        found: Option<NodeId>,
        context: &mut Context,
    ) -> Result<(), Fault> {
        // The answer is read by its content type, whatever the client speaks: what is in an envelope is the answer.
        let limits = response.services().limits.clone();
        response.payload.open_envelope(&limits)?;
        if let Place::Envelope = self.target {
            context.payload = std::mem::take(&mut response.payload);
            if let Some(content_type) = response.headers.get("Content-Type") {
                context.headers.set("Content-Type", content_type);
            }
            return Ok(());
        }
        let envelope = response.envelope()?;
        let Some(payload) = envelope.payload() else {
            return Err(Fault::with_code(code::CALLOUT_FAILED, "the answer of the callout is empty"));
        };
        let copy = XmlValue::copy_of(&envelope.document, &[payload]);
        match &self.target {
            Place::Envelope => {}
            Place::Property(name) => context.properties.set(Arc::clone(name), Value::Xml(Arc::new(copy))),
            Place::XPath(expression) => {
                let envelope = context.envelope_mut()?;
                let document = &mut envelope.document;
                let element = found.filter(|&node| document.kind(node) == xml::NodeKind::Element);
                let parent = element.and_then(|node| Some((node, document.parent(node)?)));
                let Some((old, parent)) = parent.filter(|(node, _)| *node != envelope.root) else {
                    return Err(Fault::new(format!(
                        "the target of the callout, {}, is not an element of the message",
                        expression.source()
                    )));
                };
                for &node in &copy.nodes {
                    let new = document.copy_from(parent, &copy.document, node);
                    document.replace(old, new);
                }
                envelope.refresh().map_err(Fault::new)?;
            }
        }
        Ok(())
    }
}

/// The codes of a callout: 401002 for a refused connection, the status of a backend that refuses, else 401000.
fn failed(fault: Fault) -> Fault {
    let number = match fault.code {
        Code::Number(status @ 100..=599) => status,
        Code::Number(code::BLOCKING_SENDER_FAILED | code::CONNECTION_FAILED) => code::BLOCKING_SENDER_FAILED,
        _ => code::CALLOUT_FAILED,
    };
    Fault { code: Code::Number(number), sending: true, ..fault }
}

/// What a backend answered with that refused is the status of the message.
fn keep_status(response: &Context, context: &mut Context) {
    if let Some(status) = response.status {
        context.set_axis2("HTTP_SC", Value::Integer(status.into()));
    }
}

/// The SOAP fault that an answer is: its reason is the message, and its code is the code where that is a number.
fn soap_fault(response: &mut Context) -> Option<Fault> {
    let envelope = response.envelope().ok().filter(|envelope| envelope.has_fault())?;
    let texts = envelope.any_fault().map(|fault| (fault, envelope.fault_texts(fault)));
    let number = texts.as_ref().and_then(|(fault, _)| {
        let document = &envelope.document;
        let code = envelope
            .elements_of(*fault)
            .find(|&node| matches!(document.local(node), "faultcode" | "Code"))?;
        document.string_value(code).trim().parse().ok()
    });
    let (reason, detail) = texts.map(|(_, texts)| texts).unwrap_or_default();
    let message = match reason.trim() {
        "" => "the service answered with a SOAP fault".to_owned(),
        reason => reason.to_owned(),
    };
    let fault = Fault::with_code(number.unwrap_or(code::CALLOUT_FAILED), message).because(detail);
    Some(Fault { sending: true, ..fault })
}

impl Mediator for Callout {
    fn passes_on(&self) -> bool {
        true
    }

    fn moves(&self) -> Moves {
        Moves::Never
    }

    fn need(&self) -> Need {
        Need::Whole
    }

    fn reason(&self) -> String {
        "works on a copy of the message".to_owned()
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        Step::Wait(Box::pin(async move {
            let core = Arc::clone(&self.core);
            let mut copy = match &core.source {
                Place::Envelope => core.request(context)?,
                Place::XPath(_) | Place::Property(_) => {
                    flow::work_out(context, move |context| core.request(context)).await?
                }
            };
            let reference = self.endpoint.clone();
            let out_only = context.properties.get("OUT_ONLY").is_some_and(Value::is_true);
            let destination = Destination { reference, blocking: true, ..Destination::implicit() };
            if let Err(fault) = copy.send_and_receive(destination).await {
                keep_status(&copy, context);
                return Err(failed(fault));
            }
            if out_only {
                return Ok(Flow::Next);
            }
            copy.receive_body().await.map_err(failed)?;
            if let Some(fault) = flow::work_out(&mut copy, |copy| Ok(soap_fault(copy))).await? {
                keep_status(&copy, context);
                return Err(fault);
            }
            let core = Arc::clone(&self.core);
            let found = match &core.target {
                Place::XPath(_) => flow::work_out(context, move |context| core.replaced(context)).await?,
                Place::Envelope | Place::Property(_) => None,
            };
            self.core.accept(copy, found, context)?;
            Ok(Flow::Next)
        }))
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing;

    const XML: [(&str, &str); 1] = [("Content-Type", "application/xml")];

    #[test]
    fn without_a_source_it_sends_the_envelope_but_is_an_error_in_apache_synapse() {
        let text = r#"<callout serviceURL="http://127.0.0.1:1/"><target key="t"/></callout>"#;
        let registry = crate::registry(flow::testing::endpoints);
        assert!(!flow::testing::main(&registry, text).reports("needs a source"));
        assert!(flow::testing::synapse(&registry, text).reports("needs a source"));
    }

    #[test]
    fn only_the_target_changes() {
        let backend =
            testing::backend("HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nX-B: 1\r\n\r\n<r>1</r>");
        for (inside, payload, property) in [
            (r#"<source xpath="//b"/><target key="t"/>"#, "<a><b>0</b></a>", Some("1")),
            (r#"<source type="envelope"/><target xpath="//b"/>"#, "<a><r>1</r></a>", None),
            ("", "<r>1</r>", None),
        ] {
            let text =
                format!(r#"<callout serviceURL="{backend}/x?a=1&amp;b=2" action="urn:x">{inside}</callout>"#);
            let flow = testing::main(&registry(testing::endpoints), &text);
            assert!(flow.found.is_empty(), "{flow:?}");
            let mut end = flow.run(&XML, "<a><b>0</b></a>");
            assert_eq!(end.fault(), None, "{inside}");
            let soap = r#" xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/""#;
            assert_eq!(end.payload().replace(soap, ""), payload, "{inside}");
            assert_eq!(end.property("t").as_deref(), property);
            assert_eq!(end.context.headers.get("X-B"), None);
        }
    }

    #[test]
    fn of_an_answer_in_soap_the_body_counts_for_clients_of_plain_xml_too() {
        let backend = testing::backend(
            "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n\r\n<e:Envelope xmlns:e=\"http://schemas.xmlsoap.org/soap/envelope/\"><e:Header><h/></e:Header><e:Body><r>1</r></e:Body></e:Envelope>",
        );
        for (inside, payload, property) in [
            (r#"<source xpath="//b"/><target key="t"/>"#, "<a><b>0</b></a>", Some("<r>1</r>")),
            (r#"<source xpath="//b"/><target xpath="//b"/>"#, "<a><r>1</r></a>", None),
            (r#"<source type="envelope"/>"#, "<r>1</r>", None),
        ] {
            let text = format!(
                r#"<callout serviceURL="{backend}/x">{inside}</callout><property name="name" expression="name($ctx:t)"/>"#
            );
            let flow = testing::main(&registry(testing::endpoints), &text);
            let mut end = flow.run(&XML, "<a><b>0</b></a>");
            assert_eq!(end.fault(), None, "{inside}");
            let soap = r#" xmlns:e="http://schemas.xmlsoap.org/soap/envelope/""#;
            assert_eq!(end.payload().replace(soap, ""), payload, "{inside}");
            assert_eq!(end.property("name").as_deref(), property.map_or(Some(""), |_| Some("r")), "{inside}");
        }
    }

    /// A backend for one request. Returns its address, and what it was asked.
    fn asked() -> (String, std::thread::JoinHandle<String>) {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback can be bound");
        let address = format!("http://{}", listener.local_addr().expect("it is bound"));
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("it is asked");
            let (mut text, mut chunk) = (String::new(), [0; 4096]);
            while !text.contains("Envelope>") {
                let count = stream.read(&mut chunk).expect("it can be read");
                assert!(count > 0, "{text}");
                text.push_str(&String::from_utf8_lossy(&chunk[..count]));
            }
            let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: 4\r\n\r\n<r/>";
            stream.write_all(answer.as_bytes()).expect("it can be answered");
            text
        });
        (address, server)
    }

    #[test]
    fn headers_go_along_as_the_engine_does_it() {
        let soap = r#"<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Header><h xmlns="u">1</h></s:Header><s:Body><b/></s:Body></s:Envelope>"#;
        let headers = [("Content-Type", "text/xml"), ("SOAPAction", "a"), ("X-Secret", "s")];
        let registry = registry(testing::endpoints);
        for (synapse, pass, transport, blocks) in [
            (false, "", true, true),
            (false, r#" passHeaders="false""#, true, true),
            (true, "", false, false),
            (true, r#" passHeaders="false""#, false, false),
            (true, r#" passHeaders="true""#, false, true),
        ] {
            let (address, server) = asked();
            let text = format!(
                r#"<callout serviceURL="{address}/x"{pass}><source xpath="//b"/><target key="t"/></callout>"#
            );
            let flow = match synapse {
                true => testing::synapse(&registry, &text),
                false => testing::main(&registry, &text),
            };
            let end = flow.run(&headers, soap);
            assert_eq!(end.fault(), None);
            let asked = server.join().expect("it was asked");
            let found = (asked.to_ascii_lowercase().contains("x-secret"), asked.contains("<h xmlns=\"u\""));
            assert_eq!(found, (transport, blocks), "{synapse} {pass}: {asked}");
            // The action is the message's, not one of the headers.
            assert!(asked.contains("SOAPAction: \"a\""), "{synapse} {pass}: {asked}");
        }
    }

    #[test]
    fn failures_have_their_codes() {
        let soap_fault = testing::backend(
            "HTTP/1.1 500 Oops\r\nContent-Type: application/soap+xml\r\n\r\n<e:Envelope xmlns:e=\"http://www.w3.org/2003/05/soap-envelope\"><e:Body><e:Fault/></e:Body></e:Envelope>",
        );
        let inner = testing::backend(
            "HTTP/1.1 500 Oops\r\nContent-Type: text/xml\r\n\r\n<e:Envelope xmlns:e=\"http://schemas.xmlsoap.org/soap/envelope/\"><e:Body><e:Fault><faultcode>e:Server</faultcode><faultstring>boom</faultstring></e:Fault></e:Body></e:Envelope>",
        );
        let ok = testing::backend("HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\n\r\n<r/>");
        for (address, inside, wanted) in [
            ("http://127.0.0.1:1/", "", "401002: "),
            (soap_fault.as_str(), "", "401000: the service answered with a SOAP fault"),
            (inner.as_str(), "", "401000: boom"),
            (ok.as_str(), r#"<source key="none"/>"#, "0: the source of the callout is not an XML element"),
            (
                ok.as_str(),
                r#"<target xpath="//none"/>"#,
                "0: the target of the callout, //none, is not an element",
            ),
        ] {
            let text = format!(
                r#"<callout serviceURL="{address}">{inside}</callout><!--top-->
                   <sequence name="fault"><property name="seen" expression="$ctx:ERROR_MESSAGE"/></sequence>"#
            );
            let end = testing::main(&registry(testing::endpoints), &text).run(&XML, "<a/>");
            let fault = end.fault().unwrap_or_default();
            assert!(fault.starts_with(wanted), "{inside}: {fault}");
            assert_eq!(end.property("seen"), end.property("ERROR_MESSAGE"));
        }
        for (inside, wanted) in
            [("<enableSec/>", "is for a `serviceURL`"), ("<target/>", "this `target` names nothing")]
        {
            let flow = testing::main(&registry(testing::endpoints), &format!("<callout>{inside}</callout>"));
            assert!(flow.reports(wanted), "{flow:?}");
        }
        // The rest of the artifact runs.
        let secured = "<property name='before' value='1'/><callout><enableSec/></callout>";
        let end = testing::main(&registry(testing::endpoints), secured).run(&XML, "<a/>");
        let fault = end.property("ERROR_MESSAGE");
        assert_eq!(fault.as_deref(), Some("`enableSec` of `callout` is for a `serviceURL`"));
        assert_eq!(end.property("before").as_deref(), Some("1"));
    }
}
