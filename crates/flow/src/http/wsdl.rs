//! What a service says of itself: `?wsdl` and the list of services.

use crate::http::respond::text;
use crate::runtime::artifacts::Proxy;
use crate::runtime::context::Context;
use crate::runtime::fault::Fault;
use crate::runtime::plan::Plan;
use crate::runtime::request::Inbound;
use crate::runtime::services::Listening;
use crate::wsdl::bindings::{self, add_ports};
use crate::wsdl::contract::{Contract, Operation};
use crate::wsdl::{ADDRESSES, Addresses, WSDL_2, Wsdl, description, references};
use message::Body;
use std::borrow::Cow;
use std::sync::Arc;
use transport::Response;
use xml::{Document, NodeId, NodeKind};

/// What a SOAP request asks a service for.
pub(crate) enum RequestedOperation {
    /// An operation of its WSDL.
    Operation(Arc<Operation>),
    /// Something that the service takes.
    Anything,
    /// Something that it does not have.
    Unknown,
}

/// Where a service can be reached, for a client that has asked for it.
fn addresses_of(proxy: &Proxy, inbound: &Inbound, listening: Option<&Listening>) -> Addresses {
    let address = |scheme: &str, host: &str| format!("{scheme}://{host}/services/{}", proxy.name);
    let asked = Some(address(inbound.scheme(), &inbound.host));
    // The listener of an inbound endpoint has one scheme.
    let listening = listening.filter(|_| inbound.through.is_none());
    let host = match inbound.host.rfind(':') {
        Some(at) if !inbound.host[at..].contains(']') => &inbound.host[..at],
        _ => &inbound.host,
    };
    let beside = |scheme: &str, offered: bool, port: Option<u16>| {
        let port = port.filter(|_| offered)?;
        Some(address(scheme, &format!("{host}:{port}")))
    };
    let secure = inbound.secure;
    match secure {
        true => {
            let http = beside("http", proxy.http, listening.and_then(|listening| listening.http));
            Addresses { http, https: asked, secure }
        }
        false => {
            let https = beside("https", proxy.https, listening.and_then(|listening| listening.https));
            Addresses { http: asked, https, secure }
        }
    }
}

impl Wsdl {
    /// Whether its WSDL has a port of this name.
    pub(crate) fn has_port(&self, name: &str) -> bool {
        self.ports.iter().any(|port| port == name)
    }

    /// The operation that a SOAP request asks for, by its action or else by the element in its body.
    ///
    /// # Errors
    /// The body does not arrive.
    pub(crate) async fn asked(&self, context: &mut Context) -> Result<RequestedOperation, Fault> {
        let Some(contract) = &self.contract else { return Ok(RequestedOperation::Anything) };
        if let Some(action) = context.soap_action()
            && let Some(operation) = contract.by_action(&action)
        {
            return Ok(RequestedOperation::Operation(Arc::clone(operation)));
        }
        // What may be anything is not waited for.
        if self.lax {
            return Ok(RequestedOperation::Anything);
        }
        let Some(element) = crate::expression::streaming::first_body_element(context).await? else {
            return Ok(RequestedOperation::Anything);
        };
        Ok(match contract.by_element(&element) {
            Some(operation) => RequestedOperation::Operation(Arc::clone(operation)),
            None if contract.knows(&element) => RequestedOperation::Anything,
            None => RequestedOperation::Unknown,
        })
    }

    /// The operation that a client without SOAP asks for: the first step of the path behind the service names it.
    pub(crate) fn asked_by_path(&self, inbound: &Inbound) -> Option<&Arc<Operation>> {
        let contract = self.contract.as_ref()?;
        let rest = inbound.target.get(inbound.service_length..)?.strip_prefix('/')?;
        contract.named(rest.split(['/', '?']).next().unwrap_or_default())
    }

    /// Answers a metadata query (`wsdl`, `wsdl=…`, `xsd=…`); `None`: it is none.
    pub(crate) fn answer(
        &self,
        query: &str,
        proxy: &Proxy,
        inbound: &Inbound,
        listening: Option<&Listening>,
    ) -> Option<Response> {
        let service = proxy.name.as_str();
        let item = query.split('&').next().unwrap_or("");
        let (name, value) = item.split_once('=').unwrap_or((item, ""));
        let addresses = addresses_of(proxy, inbound, listening);
        let address = addresses.own().to_owned();
        match (name, value) {
            ("wsdl2", "") if self.document.is_none() || !self.is_2() => {
                let anything = Contract::of_anything();
                let contract = self.contract.as_ref().unwrap_or(&anything);
                let mut made = description::describe(contract, self.document.as_ref(), service, &addresses);
                self.refer(&mut made, service, &address);
                return Some(written(&made));
            }
            ("wsdl" | "wsdl2", "") => {}
            ("xsd", "") => {
                // The one schema, where there is one.
                return Some(match self.imports.as_slice() {
                    [(_, bytes)] => self.document_of(bytes, service, &address),
                    _ => text(404, format!("{service} publishes {} schemas: name one\n", self.imports.len())),
                });
            }
            ("wsdl" | "xsd", location) => {
                let decoded = message::form::pairs(item).into_iter().next().map(|(_, value)| value);
                let location = decoded.as_deref().unwrap_or(location);
                let found = self.imports.iter().find(|(imported, _)| {
                    imported == location || imported.ends_with(&format!("/{location}"))
                });
                return Some(match found {
                    Some((_, bytes)) => self.document_of(bytes, service, &address),
                    None => text(404, format!("{service} publishes no document `{location}`\n")),
                });
            }
            _ => return None,
        }
        let (mut document, bindings) = match &self.document {
            Some(document) => (document.clone(), Cow::Borrowed(self.bindings.as_slice())),
            None => {
                let text = generated(service);
                let mut document = Document::parse(text.into_bytes(), &xml::ParseOptions::trusted()).ok()?;
                let contract = Contract::of(&document)?;
                let bindings = bindings::regenerate(&mut document, &contract, service);
                (document, Cow::Owned(bindings))
            }
        };
        if bindings.is_empty() {
            self.readdress(&mut document, &address);
        } else {
            add_ports(&mut document, &bindings, service, &addresses);
        }
        self.refer(&mut document, service, &address);
        Some(written(&document))
    }

    /// Makes the ports of the author's document lead here.
    fn readdress(&self, document: &mut Document, address: &str) {
        if self.keeps_addresses {
            return;
        }
        let nodes: Vec<NodeId> = document.descendants(Document::ROOT).collect();
        for node in nodes {
            if document.kind(node) != NodeKind::Element {
                continue;
            }
            if document.local(node) == "address" && ADDRESSES.contains(&document.namespace(node)) {
                document.set_attribute(node, "", "", "location", address);
            } else if document.is_element(node, WSDL_2, "endpoint") {
                document.set_attribute(node, "", "", "address", address);
            }
        }
    }
}

impl Wsdl {
    /// An imported document, with references to the others that lead here.
    fn document_of(&self, bytes: &[u8], service: &str, address: &str) -> Response {
        let Ok(mut document) = Document::parse(bytes.to_vec(), &xml::ParseOptions::trusted()) else {
            return xml_response(bytes.to_vec());
        };
        self.refer(&mut document, service, address);
        written(&document)
    }

    /// Makes references to imported documents lead to this server.
    fn refer(&self, document: &mut Document, service: &str, address: &str) {
        let base = match (self.absolute, service.rsplit('/').next()) {
            (true, _) => address,
            (false, last) => last.unwrap_or(service),
        };
        for (node, attribute, location) in references(document) {
            if self.imports.iter().any(|(imported, _)| *imported == location) {
                let kind = if attribute == "location" { "wsdl" } else { "xsd" };
                document.set_attribute(node, "", "", attribute, &format!("{base}?{kind}={location}"));
            }
        }
    }

    /// Whether it is written in WSDL 2.0.
    fn is_2(&self) -> bool {
        let document = self.document.as_ref();
        let root = document.and_then(|document| Some((document, document.document_element()?)));
        root.is_some_and(|(document, root)| document.namespace(root) == WSDL_2)
    }
}

fn written(document: &Document) -> Response {
    let mut out = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_vec();
    if let Some(root) = document.document_element() {
        xml::write(document, root, &xml::WriteOptions::default(), &mut out);
    }
    xml_response(out)
}

fn xml_response(bytes: Vec<u8>) -> Response {
    Response::new(200, Body::Bytes(bytes.into())).with("Content-Type", "text/xml; charset=UTF-8")
}

/// The port type of a service that publishes no WSDL: one operation `mediate` that takes and gives anything.
fn generated(service: &str) -> String {
    let port_type = bindings::name_of(service) + "PortType";
    let namespace = "http://ws.apache.org/axis2";
    format!(
        r#"<wsdl:definitions xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/" xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:soap12="http://schemas.xmlsoap.org/wsdl/soap12/" xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:ns="{namespace}" targetNamespace="{namespace}"><wsdl:types><xs:schema targetNamespace="{namespace}" elementFormDefault="qualified"><xs:element name="mediate"><xs:complexType><xs:sequence><xs:any minOccurs="0" processContents="skip"/></xs:sequence></xs:complexType></xs:element></xs:schema></wsdl:types><wsdl:message name="mediateRequest"><wsdl:part name="parameters" element="ns:mediate"/></wsdl:message><wsdl:message name="mediateResponse"><wsdl:part name="parameters" element="ns:mediate"/></wsdl:message><wsdl:portType name="{port_type}"><wsdl:operation name="mediate"><wsdl:input message="ns:mediateRequest"/><wsdl:output message="ns:mediateResponse"/></wsdl:operation></wsdl:portType></wsdl:definitions>"#
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// `/services/`: the services with their addresses.
pub(crate) fn index(plan: &Plan, inbound: &Inbound) -> Response {
    let mut rows = String::new();
    let mut proxies: Vec<_> = plan.proxies().iter().filter(|proxy| !proxy.hidden).collect();
    proxies.sort_by(|a, b| a.name.cmp(&b.name));
    for proxy in proxies {
        let name = escape(&proxy.name);
        let state = if proxy.activation.is_on() { "active" } else { "stopped" };
        rows.push_str(&format!(
            "<tr><td><a href=\"/services/{name}?wsdl\">{name}</a></td><td>{state}</td></tr>\n"
        ));
    }
    let host = escape(&inbound.host);
    let page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Services on {host}</title></head>\
         <body><h1>Services</h1><table>\n<tr><th>Service (WSDL)</th><th>State</th></tr>\n{rows}</table></body></html>\n"
    );
    Response::new(200, Body::Bytes(page.into())).with("Content-Type", "text/html; charset=UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Tested};

    const DOCUMENT: &str = r#"<wsdl:definitions xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/" xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:t="urn:t" xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t">
        <wsdl:types><xs:schema targetNamespace="urn:t"><xs:element name="Ask" type="t:Text"/><xs:element name="Said" type="t:Text"/><xs:element name="Broken" type="t:Text"/><xs:simpleType name="Text"><xs:restriction base="xs:string"/></xs:simpleType></xs:schema></wsdl:types>
        <wsdl:message name="askIn"><wsdl:part name="body" element="t:Ask"/></wsdl:message>
        <wsdl:message name="askOut"><wsdl:part name="body" element="t:Said"/></wsdl:message>
        <wsdl:message name="broken"><wsdl:part name="detail" element="t:Broken"/></wsdl:message>
        <wsdl:message name="nothing"/>
        <wsdl:portType name="PT">
            <wsdl:operation name="ask"><wsdl:input message="t:askIn"/><wsdl:output message="t:askOut"/><wsdl:fault name="broken" message="t:broken"/></wsdl:operation>
            <wsdl:operation name="tell"><wsdl:input message="t:nothing"/></wsdl:operation>
        </wsdl:portType>
        <wsdl:binding name="B" type="t:PT"><soap:binding transport="http://schemas.xmlsoap.org/soap/http" style="rpc"/>
            <wsdl:operation name="ask"><soap:operation soapAction="http://actions/ask"/><wsdl:input><soap:header message="t:nothing" part="h" use="literal"/><soap:body use="literal" namespace="urn:r"/></wsdl:input><wsdl:output><soap:body use="literal"/></wsdl:output></wsdl:operation>
        </wsdl:binding>
        <wsdl:service name="Svc"><wsdl:port name="Port" binding="t:B"><soap:address location="http://backend.example/x"/></wsdl:port></wsdl:service>
    </wsdl:definitions>"#;

    fn bus(document: &str, more: &str, listening: Option<Listening>) -> Tested {
        let text = format!(
            "<definitions xmlns='{}'><proxy name='P'><target><inSequence/></target><publishWSDL>{document}</publishWSDL>{more}</proxy></definitions>",
            config::SYNAPSE
        );
        testing::configuration_with(&testing::registry(Vec::new()), &text, |services| {
            if let Some(listening) = listening {
                services.listening.set(listening).expect("it is new");
            }
        })
    }

    fn published(tested: &Tested, item: &str) -> (String, Document) {
        let answer = tested.ask("GET", &format!("/services/P?{item}"), &[("Host", "esb.example:8280")], "");
        assert_eq!(answer.status, 200, "{answer:?}");
        let document = Document::parse(answer.body.clone().into_bytes(), &xml::ParseOptions::trusted());
        (answer.body, document.expect("well-formed"))
    }

    /// The attributes of the elements with a name, in the order of the document.
    fn values(document: &Document, local: &str, attribute: &str) -> Vec<String> {
        let named = document
            .descendants(Document::ROOT)
            .filter(|&node| document.kind(node) == NodeKind::Element && document.local(node) == local);
        named.filter_map(|node| document.attribute(node, "", attribute).map(str::to_owned)).collect()
    }

    const ENDPOINTS: [&str; 3] = ["PHttpSoap11Endpoint", "PHttpSoap12Endpoint", "PHttpEndpoint"];

    #[test]
    fn the_bindings_and_ports_are_those_of_this_server() {
        let tested = bus(DOCUMENT, "", None);
        let (text, document) = published(&tested, "wsdl");
        assert_eq!(values(&document, "port", "name"), ENDPOINTS, "{text}");
        assert_eq!(
            values(&document, "port", "binding"),
            ["t:PSoap11Binding", "t:PSoap12Binding", "t:PHttpBinding"]
        );
        assert_eq!(values(&document, "address", "location"), ["http://esb.example:8280/services/P"; 3]);
        assert_eq!(values(&document, "service", "name"), ["P"]);
        assert!(!text.contains("backend.example") && !text.contains("\"Port\""), "{text}");
        // What the author says of an operation is in both; what it leaves out is made.
        for (prefix, namespace) in [("soap", ADDRESSES[0]), ("soap12", ADDRESSES[1])] {
            assert_eq!(document.lookup_prefix(document.document_element().unwrap(), prefix), Some(namespace));
            for says in [
                format!(
                    "<{prefix}:binding transport=\"http://schemas.xmlsoap.org/soap/http\" style=\"rpc\"/>"
                ),
                format!("<{prefix}:operation soapAction=\"http://actions/ask\"/>"),
                format!("<{prefix}:header message=\"t:nothing\" part=\"h\" use=\"literal\"/>"),
                format!("<{prefix}:body use=\"literal\" namespace=\"urn:r\"/>"),
                format!("<{prefix}:operation soapAction=\"urn:tell\" style=\"rpc\"/>"),
            ] {
                assert!(text.contains(&says), "{says}: {text}");
            }
        }
        assert!(text.contains("<http:operation location=\"tell\"/>"), "{text}");
        assert!(text.contains("part=\"body\""), "{text}");
        // Those of the bus reach the service, and so does that of the author.
        for port in ENDPOINTS.into_iter().chain(["Port"]) {
            let answer = tested.ask(
                "POST",
                &format!("/services/P.{port}"),
                &[("Content-Type", "application/xml")],
                "<a/>",
            );
            assert_eq!(answer.status, 202, "{port}: {answer:?}");
        }
    }

    #[test]
    fn each_transport_has_its_ports() {
        let listening = Some(Listening { http: Some(8280), https: Some(8243) });
        for (transports, both) in [("http https", true), ("http", false)] {
            let text = format!(
                "<definitions xmlns='{}'><proxy name='P' transports='{transports}'><target><inSequence/></target></proxy></definitions>",
                config::SYNAPSE
            );
            let tested = testing::configuration_with(&testing::registry(Vec::new()), &text, |services| {
                if let Some(listening) = listening {
                    services.listening.set(listening).expect("it is new");
                }
            });
            for (item, element) in [("wsdl", "port"), ("wsdl2", "endpoint")] {
                let (_, document) = published(&tested, item);
                let secure = values(&document, element, "name")
                    .iter()
                    .filter(|name| name.starts_with("PHttps"))
                    .count();
                assert_eq!(secure, if both { 3 } else { 0 }, "{transports} {item}");
            }
            let (text, _) = published(&tested, "wsdl");
            assert_eq!(text.contains("https://esb.example:8243/services/P\""), both, "{text}");
        }
    }

    #[test]
    fn the_original_is_published_where_it_is_wanted() {
        const ORIGINAL: &str = "<parameter name='useOriginalwsdl'>true</parameter>";
        const AS_IT_IS: &str = "<parameter name='modifyUserWSDLPortAddress'>false</parameter>";
        for (more, ports, location) in [
            (ORIGINAL.to_owned(), vec!["Port"], "http://esb.example:8280/services/P"),
            (format!("{ORIGINAL}{AS_IT_IS}"), vec!["Port"], "http://backend.example/x"),
            (AS_IT_IS.to_owned(), ENDPOINTS.to_vec(), "http://esb.example:8280/services/P"),
        ] {
            let (text, document) = published(&bus(DOCUMENT, &more, None), "wsdl");
            assert_eq!(values(&document, "port", "name"), ports, "{more}: {text}");
            assert!(
                values(&document, "address", "location").iter().all(|found| found == location),
                "{more}: {text}"
            );
        }
    }

    #[test]
    fn hostile_documents_are_published() {
        let two = "http://www.w3.org/ns/wsdl";
        for document in [
            "<definitions xmlns='http://schemas.xmlsoap.org/wsdl/'/>".to_owned(),
            // Without prefixes and names, in no namespace, with prefixes that mean something else.
            "<definitions xmlns='http://schemas.xmlsoap.org/wsdl/'><portType><operation/><operation name=''/></portType></definitions>".to_owned(),
            "<definitions xmlns='http://schemas.xmlsoap.org/wsdl/' xmlns:soap='urn:x' xmlns:wsdl='urn:y' xmlns:tns='urn:z' targetNamespace='urn:o'><portType name='a'><operation name='o'><input message='none:m'/></operation></portType><portType name='b'><operation name='o'/></portType><binding type='q:a'/></definitions>".to_owned(),
            format!("<d:description xmlns:d='{two}'><d:service name='S'><d:endpoint name='E' address='http://old/'/></d:service></d:description>"),
        ] {
            let tested = bus(&document, "", None);
            for item in ["wsdl", "wsdl2"] {
                let (text, _) = published(&tested, item);
                assert!(!text.contains("http://old/"), "{text}");
            }
        }
    }

    #[test]
    fn wsdl_2_has_the_contract() {
        let (text, document) = published(&bus(DOCUMENT, "", None), "wsdl2");
        assert_eq!(values(&document, "description", "targetNamespace"), ["urn:t"]);
        for says in [
            "<xs:element name=\"Ask\" type=\"t:Text\"/>",
            "name=\"ask\" pattern=\"http://www.w3.org/ns/wsdl/in-out\"><wsdl2:input element=\"t:Ask\"/><wsdl2:output element=\"t:Said\"/><wsdl2:outfault ref=\"t:broken\"/>",
            "name=\"tell\" pattern=\"http://www.w3.org/ns/wsdl/in-only\"><wsdl2:input element=\"#none\"/>",
            "<wsdl2:fault name=\"broken\" element=\"t:Broken\"/>",
            "ref=\"t:ask\" wsoap:action=\"http://actions/ask\"",
            "whttp:location=\"tell\"",
        ] {
            assert!(text.contains(says), "{says}: {text}");
        }
        assert_eq!(values(&document, "endpoint", "name"), ENDPOINTS, "{text}");
    }

    #[test]
    fn the_operation_that_is_asked_for_is_known() {
        const SOAP: &str = "text/xml";
        let tested = bus(DOCUMENT, "", None);
        let plan = tested.bus.plan();
        let proxy = &plan.proxies()[0];
        let contract = proxy.wsdl.contract.as_ref().expect("operations");
        let name = |operation: Option<&Arc<Operation>>| operation.map(|operation| operation.name.clone());
        for (action, expected) in [
            ("http://actions/ask", Some("ask")),
            ("ask", Some("ask")),
            ("urn:tell", Some("tell")),
            ("urn:none", None),
            ("", None),
        ] {
            assert_eq!(name(contract.by_action(action)).as_deref(), expected, "{action}");
        }
        let element = |namespace: &str, local: &str| (namespace.to_owned(), local.to_owned());
        assert_eq!(name(contract.by_element(&element("urn:t", "Ask"))).as_deref(), Some("ask"));
        assert_eq!(name(contract.by_element(&element("urn:r", "tell"))).as_deref(), Some("tell"));
        assert_eq!(name(contract.by_element(&element("urn:t", "Said"))), None);
        let envelope = |body: &str| {
            format!(
                "<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'><e:Body>{body}</e:Body></e:Envelope>"
            )
        };
        for (body, status) in [("<Ask xmlns='urn:t'/>", 202), ("<Other xmlns='urn:t'/>", 500)] {
            let headers = [("Content-Type", SOAP), ("SOAPAction", "\"\"")];
            assert_eq!(tested.ask("POST", "/services/P", &headers, &envelope(body)).status, status, "{body}");
        }
    }
}
