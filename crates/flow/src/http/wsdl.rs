//! What a service says of itself: `?wsdl` and the list of services.

use crate::http::respond::text;
use crate::runtime::context::Context;
use crate::runtime::fault::Fault;
use crate::runtime::plan::Plan;
use crate::runtime::request::Inbound;
use crate::wsdl::{ADDRESSES, Wsdl, references};
use message::Body;
use transport::Response;
use xml::{Document, NodeId, NodeKind};

impl Wsdl {
    /// Whether its WSDL has a port of this name.
    pub(crate) fn has_port(&self, name: &str) -> bool {
        self.ports.iter().any(|port| port == name)
    }

    /// Whether the service has the operation that a SOAP request asks for, by its action or else by the element in
    /// its body.
    ///
    /// # Errors
    /// The body does not arrive.
    pub(crate) async fn accepts(&self, context: &mut Context) -> Result<bool, Fault> {
        let Some(operations) = &self.operations else { return Ok(true) };
        if let Some(action) = context.soap_action() {
            let by_name =
                operations.names.iter().any(|name| action == *name || action == format!("urn:{name}"));
            if by_name || operations.actions.contains(&action) {
                return Ok(true);
            }
        }
        let element = crate::expression::streaming::first_body_element(context).await?;
        Ok(element.is_none_or(|(namespace, local)| {
            operations.elements.contains(&(namespace, local.clone())) || operations.names.contains(&local)
        }))
    }

    /// Answers a metadata query (`wsdl`, `wsdl=…`, `xsd=…`); `None`: it is none.
    pub(crate) fn answer(&self, query: &str, service: &str, inbound: &Inbound) -> Option<Response> {
        let item = query.split('&').next().unwrap_or("");
        let (name, value) = item.split_once('=').unwrap_or((item, ""));
        let address = format!("{}://{}/services/{service}", inbound.scheme(), inbound.host);
        match (name, value) {
            ("wsdl2", "") if self.document.is_none() || !self.is_2() => {
                return Some(xml_response(self.generated_2(service, &address).into_bytes()));
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
        let mut document = match &self.document {
            Some(document) => document.clone(),
            None => return Some(xml_response(generated(service, &address).into_bytes())),
        };
        let nodes: Vec<NodeId> = document.descendants(Document::ROOT).collect();
        for node in nodes {
            if !self.keeps_addresses
                && document.kind(node) == NodeKind::Element
                && document.local(node) == "address"
                && ADDRESSES.contains(&document.namespace(node))
            {
                document.set_attribute(node, "", "", "location", &address);
            }
        }
        self.refer(&mut document, service, &address);
        let mut out = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_vec();
        if let Some(root) = document.document_element() {
            xml::write(&document, root, &xml::WriteOptions::default(), &mut out);
        }
        Some(xml_response(out))
    }
}

impl Wsdl {
    /// An imported document, with references to the others that lead here.
    fn document_of(&self, bytes: &[u8], service: &str, address: &str) -> Response {
        let Ok(mut document) = Document::parse(bytes.to_vec(), &xml::ParseOptions::trusted()) else {
            return xml_response(bytes.to_vec());
        };
        self.refer(&mut document, service, address);
        let mut out = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_vec();
        if let Some(root) = document.document_element() {
            xml::write(&document, root, &xml::WriteOptions::default(), &mut out);
        }
        xml_response(out)
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

    /// The WSDL 2.0 of the service: its operations, which take and give any element.
    fn generated_2(&self, service: &str, address: &str) -> String {
        let (service, address) = (escape(service), escape(address));
        let none = ["mediate".to_owned()];
        let names =
            self.operations.as_ref().map_or(none.as_slice(), |operations| operations.names.as_slice());
        let operations: String = names
            .iter()
            .map(|name| {
                let is_one_way = self.operations.as_ref().is_some_and(|operations| operations.one_way.contains(name));
                let (pattern, output) = match is_one_way {
                    true => ("in-only", ""),
                    false => ("in-out", r##"<wsdl2:output element="#any"/>"##),
                };
                let name = escape(name);
                format!(r##"<wsdl2:operation name="{name}" pattern="http://www.w3.org/ns/wsdl/{pattern}"><wsdl2:input element="#any"/>{output}</wsdl2:operation>"##)
            })
            .collect();
        format!(
            r#"<?xml version="1.0" encoding="UTF-8"?>
<wsdl2:description xmlns:wsdl2="{WSDL_2}" xmlns:wsoap="http://www.w3.org/ns/wsdl/soap" xmlns:tns="http://ws.apache.org/axis2" targetNamespace="http://ws.apache.org/axis2"><wsdl2:interface name="ServiceInterface">{operations}</wsdl2:interface><wsdl2:binding name="{service}SOAP12Binding" interface="tns:ServiceInterface" type="http://www.w3.org/ns/wsdl/soap" wsoap:version="1.2" wsoap:protocol="http://www.w3.org/2003/05/soap/bindings/HTTP/"/><wsdl2:service name="{service}" interface="tns:ServiceInterface"><wsdl2:endpoint name="{service}SOAP12Endpoint" binding="tns:{service}SOAP12Binding" address="{address}"/></wsdl2:service></wsdl2:description>
"#
        )
    }
}

/// The namespace of WSDL 2.0.
const WSDL_2: &str = "http://www.w3.org/ns/wsdl";

fn xml_response(bytes: Vec<u8>) -> Response {
    Response::new(200, Body::Bytes(bytes.into())).with("Content-Type", "text/xml; charset=UTF-8")
}

/// The WSDL of a service that publishes none: one operation `mediate` that takes and gives anything.
fn generated(service: &str, address: &str) -> String {
    let service = escape(service);
    let address = escape(address);
    let namespace = "http://ws.apache.org/axis2";
    let mut ports = String::new();
    let mut bindings = String::new();
    for (suffix, prefix) in [("Soap11", "soap"), ("Soap12", "soap12")] {
        bindings.push_str(&format!(
            r#"<wsdl:binding name="{service}{suffix}Binding" type="ns:{service}PortType"><{prefix}:binding transport="http://schemas.xmlsoap.org/soap/http" style="document"/><wsdl:operation name="mediate"><{prefix}:operation soapAction="urn:mediate" style="document"/><wsdl:input><{prefix}:body use="literal"/></wsdl:input><wsdl:output><{prefix}:body use="literal"/></wsdl:output></wsdl:operation></wsdl:binding>"#
        ));
        ports.push_str(&format!(
            r#"<wsdl:port name="{service}Http{suffix}Endpoint" binding="ns:{service}{suffix}Binding"><{prefix}:address location="{address}"/></wsdl:port>"#
        ));
    }
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<wsdl:definitions xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/" xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:soap12="http://schemas.xmlsoap.org/wsdl/soap12/" xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:ns="{namespace}" targetNamespace="{namespace}"><wsdl:types><xs:schema targetNamespace="{namespace}" elementFormDefault="qualified"><xs:element name="mediate"><xs:complexType><xs:sequence><xs:any minOccurs="0" processContents="skip"/></xs:sequence></xs:complexType></xs:element></xs:schema></wsdl:types><wsdl:message name="mediateRequest"><wsdl:part name="parameters" element="ns:mediate"/></wsdl:message><wsdl:message name="mediateResponse"><wsdl:part name="parameters" element="ns:mediate"/></wsdl:message><wsdl:portType name="{service}PortType"><wsdl:operation name="mediate"><wsdl:input message="ns:mediateRequest"/><wsdl:output message="ns:mediateResponse"/></wsdl:operation></wsdl:portType>{bindings}<wsdl:service name="{service}">{ports}</wsdl:service></wsdl:definitions>
"#
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
