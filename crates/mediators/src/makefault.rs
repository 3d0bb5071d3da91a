//! `makefault`: makes the message a SOAP fault, or an exception in plain XML.

use crate::xml_value;
use config::Element;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Expression, Family, Fault, Flow, Inside,
    Mediator, Need, Page, Values,
};
use message::{Envelope, SoapVersion, Value, XmlValue};
use std::sync::Arc;

/// `<makefault [version="soap11|soap12|pox"] [response="true|false"]>code, reason, node?, role?, detail?</makefault>`
pub const DEFINITION: Definition = Definition {
    name: "makefault",
    summary: "Makes the message a fault; it is sent by what follows.",
    attributes: &[
        Attribute::optional("version", Values::OneOf(&["soap11", "soap12", "pox"]), "its form").or("soap11"),
        Attribute::optional("response", Values::Boolean, "the message becomes a response").or("true"),
    ],
    children: Children::Elements(&["code", "reason", "node", "role", "detail"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Transformation,
    semantics: "The payload becomes a SOAP fault of the `version`, with the blocks of the previous SOAP header. It is not sent: that is done by a later `respond` or
`send`. The status is 500, unless the property `HTTP_SC` (scope axis2) sets another one, or `FAULTS_AS_HTTP_200` is true.

`code` is a name with a prefix for the SOAP namespace of the version: `VersionMismatch`, `MustUnderstand`, `Client` or `Server` in 1.1; `VersionMismatch`,
`MustUnderstand`, `DataEncodingUnknown`, `Sender` or `Receiver` in 1.2. Of the `detail` the first of these counts: its text, what its expression selects, the elements
inside. `To` becomes the address of `ReplyTo`, and `RelatesTo` the id of the message; unless `response=\"false\"` the message is a response from here on.

With `version=\"pox\"` the payload becomes `<Exception>` with the text or the expression of `detail`, else with the reason; no code is needed. The header blocks stay. In that form a fault
is also sent to clients without SOAP, in an API or without `SOAPAction`. A JSON client gets JSON if `messageType` is set.

If the body cannot be read, a fault is made all the same, unless an expression needs the body.",
    inside: &[
        Inside::new(
            "code?",
            "the code; only `pox` goes without",
            &[
                Attribute::optional("value", Values::Text, "the name, with a prefix"),
                Attribute::optional("expression", Values::Expression, "gives the local name"),
            ],
        ),
        Inside::new(
            "reason?",
            "what is wrong, for people; only `pox` goes without",
            &[
                Attribute::optional("value", Values::Text, "the text"),
                Attribute::optional("expression", Values::Expression, "gives the text"),
            ],
        ),
        Inside::new("node?", "the address of who failed; SOAP 1.2", &[]).with("text"),
        Inside::new("role?", "the role in which it failed", &[]).with("text"),
        Inside::new(
            "detail?",
            "what else there is to say, for programs",
            &[Attribute::optional("expression", Values::Expression, "gives elements or a text")],
        )
        .with("text or elements"),
    ],
    needs: &[(Need::Whole, "always: the blocks of the SOAP header go into the fault")],
    refused: &[
        ("<makefault/>", "`makefault` needs a code"),
        ("<makefault><code value=\"Client\"/><reason value=\"no\"/></makefault>", "`Client` is not a fault code"),
        (
            "<makefault><code xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\" value=\"s:Sender\"/><reason value=\"no\"/></makefault>",
            "`s:Sender` is not a fault code",
        ),
        (
            "<makefault><code xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\" value=\"s:Server\"/><reason/></makefault>",
            "`reason` needs a value",
        ),
        ("<makefault version=\"soap13\"><code/></makefault>", "`version` cannot be `soap13`"),
    ],
    faults: &[
        (
            "601000",
            "an expression reads the body, and it is not what its content type says, or larger than a flow may hold",
        ),
    ],
};

enum Text {
    Literal(String),
    Expression(Expression),
}

enum Detail {
    None,
    Text(String),
    Elements(Vec<Arc<XmlValue>>),
    Expression(Expression),
}

struct MakeFault {
    /// `None`: plain XML.
    version: Option<SoapVersion>,
    /// Apache Synapse without `version`: as the message is.
    by_message: bool,
    response: bool,
    code: Text,
    reason: Text,
    node: Option<String>,
    role: Option<String>,
    detail: Detail,
}

const CODES_11: &[&str] = &["VersionMismatch", "MustUnderstand", "Client", "Server"];
const CODES_12: &[&str] = &["VersionMismatch", "MustUnderstand", "DataEncodingUnknown", "Sender", "Receiver"];

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let version = match element.attr("version").map_or("soap11", str::trim) {
        "pox" => None,
        "soap12" => Some(SoapVersion::V12),
        _ => Some(SoapVersion::V11),
    };
    let by_message = compiler.services.settings.synapse_dialect && element.attr("version").is_none();
    let version = match element.child("code").and_then(|code| Some((code, code.attr("value")?))) {
        // The code tells which version it was written for.
        Some((code, value)) if by_message => {
            let uri = value.trim().split_once(':').and_then(|(prefix, _)| code.lookup_prefix(prefix));
            uri.and_then(SoapVersion::of_namespace).or(version)
        }
        _ => version,
    };
    let code = match (text(element, "code", compiler)?, version) {
        (None, Some(_)) => return missing(element, "code", compiler),
        (None, None) => Text::Literal(String::new()),
        (Some(Text::Literal(_)), Some(version)) => {
            Text::Literal(code(element.child("code")?, version, compiler)?)
        }
        (Some(other), _) => other,
    };
    let reason = match (text(element, "reason", compiler)?, version) {
        (None, Some(_)) => return missing(element, "reason", compiler),
        (reason, _) => reason.unwrap_or(Text::Literal(String::new())),
    };
    // Written without a text, as editors do, they are in the fault without one.
    let plain = |name: &str| element.child(name).map(|child| child.text().trim().to_owned());
    let detail = match element.child("detail") {
        None => Detail::None,
        Some(detail) if !detail.text().trim().is_empty() => Detail::Text(detail.text().trim().to_owned()),
        Some(detail) if detail.attr("expression").is_some() => {
            Detail::Expression(compiler.expression(detail, "expression")?)
        }
        Some(detail) => {
            let mut elements = Vec::new();
            for child in detail.elements() {
                match xml_value::of_element(child) {
                    Ok(Value::Xml(xml)) => elements.push(xml),
                    Ok(_) => {}
                    Err(why) => {
                        compiler.error("bad-value", why, child.start_tag(), "in the detail");
                        return None;
                    }
                }
            }
            Detail::Elements(elements)
        }
    };
    let response = flow::truth(element, "response", true);
    let (node, role) = (plain("node"), plain("role"));
    Some(Box::new(MakeFault { version, by_message, response, code, reason, node, role, detail }))
}

/// `value` or `expression` of a child. The outer `None` follows a recorded error.
fn text(element: &Element, name: &str, compiler: &mut Compiler<'_>) -> Option<Option<Text>> {
    let Some(child) = element.child(name) else { return Some(None) };
    if let Some(value) = child.attr("value") {
        return Some(Some(Text::Literal(value.to_owned())));
    }
    if child.attr("expression").is_some() {
        return Some(Some(Text::Expression(compiler.expression(child, "expression")?)));
    }
    missing(child, "value", compiler)
}

fn missing<T>(element: &Element, what: &str, compiler: &mut Compiler<'_>) -> Option<T> {
    compiler.error(
        "missing-attribute",
        format!("`{}` needs a {what}", element.local()),
        element.start_tag(),
        "expected `value` or `expression`",
    );
    None
}

/// The local name of a fault code of the configuration.
fn code(element: &Element, version: SoapVersion, compiler: &mut Compiler<'_>) -> Option<String> {
    let attribute = element.attribute("value")?;
    let (codes, soap) = match version {
        SoapVersion::V11 => (CODES_11, "http://schemas.xmlsoap.org/soap/envelope/"),
        SoapVersion::V12 => (CODES_12, "http://www.w3.org/2003/05/soap-envelope"),
    };
    let why = match attribute.value.trim().split_once(':') {
        None => "it has no prefix".to_owned(),
        Some((prefix, _)) if element.lookup_prefix(prefix) != Some(soap) => {
            format!("`{prefix}` is not bound to {soap}")
        }
        Some((_, local)) if !codes.contains(&local) => format!("expected one of {}", codes.join(", ")),
        Some((_, local)) => return Some(local.to_owned()),
    };
    compiler.error(
        "bad-value",
        format!("`{}` is not a fault code", attribute.value),
        attribute.value_span,
        why,
    );
    None
}

impl Text {
    fn of(&self, context: &mut Context) -> Result<String, Fault> {
        match self {
            Text::Literal(text) => Ok(text.clone()),
            Text::Expression(expression) => Ok(expression.string(context)?.unwrap_or_default()),
        }
    }
}

impl MakeFault {
    /// The detail as children of the body of an envelope of its own.
    fn detail(&self, version: SoapVersion, context: &mut Context) -> Result<Option<Envelope>, Fault> {
        let mut holder = Envelope::empty(version);
        let mut add = |xml: &XmlValue| {
            for &node in &xml.nodes {
                holder.document.copy_from(holder.body, &xml.document, node);
            }
        };
        match &self.detail {
            Detail::None => return Ok(None),
            Detail::Elements(elements) => elements.iter().for_each(|xml| add(xml)),
            Detail::Text(text) => {
                holder.document.append_text(holder.body, text);
            }
            Detail::Expression(expression) => match expression.value(context)? {
                Some(Value::Xml(xml)) => add(&xml),
                Some(other) => {
                    holder.document.append_text(holder.body, &other.to_string());
                }
                None => return Ok(None),
            },
        }
        Ok(Some(holder))
    }

    /// `<Exception>` instead of the first element of the body: the header blocks and what else is in the body stay.
    fn exception(&self, context: &mut Context) -> Result<(), Fault> {
        let text = match &self.detail {
            Detail::Text(text) => text.clone(),
            Detail::Expression(expression) => expression.string(context)?.unwrap_or_default(),
            Detail::None | Detail::Elements(_) => self.reason.of(context)?,
        };
        let old = context.envelope().ok();
        // A body that cannot be read has no header.
        let mut envelope =
            old.map_or_else(|| Envelope::empty(SoapVersion::V11), crate::support::envelope_with_headers);
        let exception = envelope.document.append_element(envelope.body, "", "", "Exception");
        envelope.document.append_text(exception, &text);
        if let Some(old) = old {
            for other in old.elements_of(old.body).skip(1) {
                envelope.document.copy_from(envelope.body, &old.document, other);
            }
        }
        context.payload.set_envelope(envelope);
        context.mark_fault();
        Ok(())
    }
}

impl Mediator for MakeFault {
    fn need(&self) -> Need {
        // The header blocks of the message go into the fault.
        Need::Whole
    }

    fn reason(&self) -> String {
        "takes over the SOAP header".to_owned()
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let message_id = context.message_id();
        let version = match self.by_message {
            true if context.is_rest() => None,
            true => context.envelope().ok().map(|envelope| envelope.version).or(self.version),
            false => self.version,
        };
        match version {
            None => self.exception(context)?,
            Some(version) => {
                let code = self.code.of(context)?;
                let code = code.trim().rsplit([':', '}']).next().unwrap_or("");
                let code = match (version, code) {
                    (SoapVersion::V12, "Client") if self.by_message => "Sender",
                    (SoapVersion::V12, "Server") if self.by_message => "Receiver",
                    (SoapVersion::V11, "Sender") if self.by_message => "Client",
                    (SoapVersion::V11, "Receiver") if self.by_message => "Server",
                    (_, code) => code,
                };
                let reason = self.reason.of(context)?;
                let detail = self.detail(version, context)?;
                let mut envelope = Envelope::empty(version);
                // A body that cannot be read has no header, and is no reason not to say so with a fault.
                if let Ok(old) = context.envelope()
                    && let Some(header) = old.header
                {
                    let fault_header = envelope.header_or_new();
                    for block in old.elements_of(header) {
                        envelope.document.copy_from(fault_header, &old.document, block);
                    }
                }
                let (role, node) = (self.role.as_deref(), self.node.as_deref());
                envelope.append_fault(
                    &message::envelope::Fault { code, reason: &reason, role, node },
                    detail.as_ref().map(|holder| (holder, holder.body)),
                );
                context.payload.set_envelope(envelope);
            }
        }
        let addressing = &mut context.addressing;
        addressing.relates_to = Some(message_id);
        addressing.to = addressing.fault_to.clone().or_else(|| addressing.reply_to.clone());
        if self.response {
            addressing.to = addressing.reply_to.clone();
            context.response = true;
        }
        Ok(Flow::Next)
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing;
    use message::Format;
    use message::SoapVersion::{V11, V12};

    const S11: &str = r#"xmlns:s="http://schemas.xmlsoap.org/soap/envelope/""#;
    const S12: &str = r#"xmlns:s="http://www.w3.org/2003/05/soap-envelope""#;
    const SOAP: [(&str, &str); 2] = [("Content-Type", "text/xml"), ("SOAPAction", "x")];

    fn soap_body() -> String {
        format!(
            r#"<s:Envelope {S11}><s:Header><h xmlns="u">1</h></s:Header><s:Body><a><d>1</d></a></s:Body></s:Envelope>"#
        )
    }

    #[test]
    fn without_a_version_it_is_soap_1_1_but_in_apache_synapse_as_the_message() {
        let element =
            format!(r#"<makefault><code {S11} value="s:Server"/><reason value="down"/></makefault>"#);
        let soap12 = format!(r#"<s:Envelope {S12}><s:Body><a/></s:Body></s:Envelope>"#);
        let registry = registry(testing::endpoints);
        for (headers, body, wso2, synapse) in [
            (&SOAP[..], soap_body(), "<faultcode>", "<faultcode>"),
            (&[("Content-Type", "application/soap+xml")][..], soap12, "<faultcode>", "Receiver</"),
            (&[("Content-Type", "application/xml")][..], "<a/>".into(), "<faultcode>", "<Exception>down<"),
        ] {
            let mut end = testing::main(&registry, &element).run(headers, &body);
            assert!(end.payload().contains(wso2), "{}", end.payload());
            let mut end = testing::synapse(&registry, &element).run(headers, &body);
            assert!(end.payload().contains(synapse), "{}", end.payload());
        }
    }

    #[test]
    fn faults_have_their_parts() {
        for (element, version, wanted) in [
            (
                format!(r#"<makefault><code {S11} value="s:Server"/><reason value="down"/></makefault>"#),
                V11,
                &[
                    "<faultcode>soapenv:Server</faultcode><faultstring>down</faultstring></soapenv:Fault>",
                    "<h xmlns=\"u\"",
                ][..],
            ),
            (
                r#"<makefault version="soap11"><code expression="'Client'"/><reason expression="concat('no ', //d)"/><role>urn:r</role><detail>why</detail></makefault>"#.to_owned(),
                V11,
                &[
                    "soapenv:Client<",
                    "<faultstring>no 1</faultstring><faultactor>urn:r</faultactor><detail>why</detail>",
                ],
            ),
            (
                format!(
                    r#"<makefault version="soap12"><code {S12} value="s:Receiver"/><reason value="x"/><node>urn:n</node><detail><e xmlns="v">1</e></detail></makefault>"#
                ),
                V12,
                &[
                    "soapenv:Receiver<",
                    ">x</soapenv:Text>",
                    "<soapenv:Node>urn:n</soapenv:Node>",
                    "<e xmlns=\"v\">1</e></soapenv:Detail>",
                ],
            ),
            (
                format!(
                    r#"<makefault><code {S11} value="s:Server"/><reason value="x"/><detail expression="//d"/></makefault>"#
                ),
                V11,
                &["<detail><d", ">1</d></detail>"],
            ),
            // An editor writes the role without a text.
            (
                format!(r#"<makefault><code {S11} value="s:Server"/><reason value="x"/><role/></makefault>"#),
                V11,
                &["<faultstring>x</faultstring><faultactor/></soapenv:Fault>"],
            ),
            (
                format!(
                    r#"<makefault version="soap12"><code {S12} value="s:Receiver"/><reason value="x"/><node/><role/><detail/></makefault>"#
                ),
                V12,
                &["<soapenv:Node/><soapenv:Role/><soapenv:Detail/></soapenv:Fault>"],
            ),
        ] {
            let flow = testing::main(&registry(testing::endpoints), &element);
            assert!(flow.found.is_empty(), "{flow:?}");
            let mut end = flow.run(&SOAP, &soap_body());
            let text = end.write(Format::Soap(version));
            assert!(wanted.iter().all(|part| text.contains(part)), "{element}: {text}");
            assert!(end.context.response && end.context.addressing.relates_to.is_some());
        }
    }

    #[test]
    fn clients_get_500_in_their_own_form() {
        let fault = format!(
            r#"<makefault response="true"><code {S11} value="s:Server"/><reason value="down"/></makefault><respond/>"#
        );
        let flow = testing::main(&registry(testing::endpoints), &fault);
        let response = flow.ask("POST", "/", &SOAP, &soap_body());
        assert!(
            response.status == 500 && response.body.contains("<faultstring>down</faultstring>"),
            "{response:?}"
        );
        let response = flow.ask("POST", "/", &[("Content-Type", "application/json")], "{}");
        assert_eq!((response.status, response.body.as_str()), (500, r#"{"Exception":"down"}"#));
        // Elements of the detail are not text of it.
        let detail = fault.replace("</makefault>", "<detail><x>why</x></detail></makefault>");
        let response = testing::main(&registry(testing::endpoints), &detail).ask(
            "POST",
            "/",
            &[("Content-Type", "application/xml")],
            "<a/>",
        );
        assert_eq!((response.status, response.body.as_str()), (500, "<Exception>down</Exception>"));
        let pox = r#"<makefault version="pox"><reason value="r"/><detail>why</detail></makefault><respond/>"#;
        let response = testing::main(&registry(testing::endpoints), pox).ask(
            "POST",
            "/",
            &[("Content-Type", "application/xml")],
            "<a/>",
        );
        assert_eq!((response.status, response.body.as_str()), (500, "<Exception>why</Exception>"));
    }

    #[test]
    fn an_exception_takes_the_place_of_the_first_element_only() {
        let pox = r#"<makefault version="pox"><reason value="r"/></makefault>"#;
        let flow = testing::main(&registry(testing::endpoints), pox);
        for body in [soap_body(), soap_body().replace("<a>", "<z/><a>")] {
            let text = flow.run(&SOAP, &body).write(Format::Soap(V11));
            assert!(text.contains("<h xmlns=\"u\"") && text.contains(">1</h>"), "{text}");
            assert!(text.contains("Body><Exception>r</Exception>"), "{text}");
            assert_eq!(text.contains("</Exception><a"), body.contains("<z/>"), "{text}");
        }
    }

    #[test]
    fn a_payload_that_cannot_be_read_is_no_obstacle() {
        let text = format!(
            r#"<property name="p" expression="//a"/><!--top--><sequence name="fault"><makefault><code {S11} value="s:Client"/>
               <reason expression="$ctx:ERROR_CODE"/></makefault><respond/></sequence>"#
        );
        let flow = testing::main(&registry(testing::endpoints), &text);
        let response = flow.ask("POST", "/", &SOAP, "<a");
        assert!(
            response.status == 500 && response.body.contains("<faultstring>601000</faultstring>"),
            "{response:?}"
        );
    }

    #[test]
    fn failing_expressions_fault_and_mistakes_are_found() {
        let text = format!(
            r#"<makefault><code {S11} value="s:Client"/><reason expression="$func:none"/></makefault><!--top-->
               <sequence name="fault"><property name="seen" expression="$ctx:ERROR_CODE"/></sequence>"#
        );
        let end = testing::main(&registry(testing::endpoints), &text).run(&SOAP, &soap_body());
        assert_eq!(end.property("seen").as_deref(), Some("0"));
        for (element, wanted) in [
            ("<makefault/>".to_owned(), "`makefault` needs a code"),
            (
                r#"<makefault><code value="Server"/><reason value="x"/></makefault>"#.to_owned(),
                "`Server` is not a fault code",
            ),
            (
                format!(
                    r#"<makefault version="soap12"><code {S11} value="s:Receiver"/><reason value="x"/></makefault>"#
                ),
                "`s:Receiver` is not a fault code",
            ),
            (
                format!(r#"<makefault><code {S11} value="s:Sender"/><reason value="x"/></makefault>"#),
                "`s:Sender` is not a fault code",
            ),
            (
                format!(r#"<makefault><code {S11} value="s:Server"/></makefault>"#),
                "`makefault` needs a reason",
            ),
            (r#"<makefault version="soap13"/>"#.to_owned(), "`version` cannot be `soap13`"),
            (r#"<makefault response="yes"/>"#.to_owned(), "`response` should not be `yes`"),
        ] {
            let flow = testing::main(&registry(testing::endpoints), &element);
            assert!(flow.reports(wanted), "{element}: {flow:?}");
        }
    }
}
