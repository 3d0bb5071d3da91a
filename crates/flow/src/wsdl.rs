//! What a service says of itself: `?wsdl` and the list of services.

use crate::compile::Compiler;
use crate::context::{Context, Inbound};
use crate::fault::Fault;
use crate::plan::Plan;
use crate::respond::text;
use config::WsdlSource;
use message::Body;
use transport::Response;
use xml::{Document, NodeId, NodeKind};

/// Namespaces of the `address` elements that are rewritten to this server.
const ADDRESSES: &[&str] = &[
    "http://schemas.xmlsoap.org/wsdl/soap/",
    "http://schemas.xmlsoap.org/wsdl/soap12/",
    "http://schemas.xmlsoap.org/wsdl/http/",
];

/// The WSDL of a proxy service.
#[derive(Debug, Default)]
pub struct Wsdl {
    document: Option<Document>,
    /// `(location, text)` of imported documents.
    imports: Vec<(String, Vec<u8>)>,
    /// What a SOAP client may ask for; `None`: anything.
    operations: Option<Operations>,
}

/// The operations of a published WSDL 1.1.
#[derive(Debug, Default)]
struct Operations {
    names: Vec<String>,
    actions: Vec<String>,
    /// Expanded names of the elements that requests carry.
    elements: Vec<(String, String)>,
}

impl Operations {
    /// Those of a document; `None` where it has none that can be told (WSDL 2.0, everything imported).
    fn of(document: &Document) -> Option<Operations> {
        const WSDL: &str = "http://schemas.xmlsoap.org/wsdl/";
        let mut found = Operations::default();
        let named = |node: NodeId, local: &str| {
            document.kind(node) == NodeKind::Element
                && document.local(node) == local
                && document.namespace(node) == WSDL
        };
        let expand = |node: NodeId, name: &str| match name.split_once(':') {
            Some((prefix, local)) => {
                (document.lookup_prefix(node, prefix).unwrap_or("").to_owned(), local.to_owned())
            }
            None => (document.lookup_prefix(node, "").unwrap_or("").to_owned(), name.to_owned()),
        };
        for node in document.descendants(Document::ROOT) {
            let text = |name: &str| document.attribute(node, "", name).map(str::to_owned);
            if named(node, "operation")
                && document.parent(node).is_some_and(|parent| named(parent, "portType"))
            {
                found.names.extend(text("name"));
            } else if document.local(node) == "operation" && ADDRESSES.contains(&document.namespace(node)) {
                found.actions.extend(text("soapAction").filter(|action| !action.is_empty()));
            } else if named(node, "part")
                && let Some(element) = text("element")
            {
                found.elements.push(expand(node, &element));
            }
        }
        (!found.names.is_empty()).then_some(found)
    }
}

impl Wsdl {
    pub(crate) fn compile(proxy: &config::Proxy, compiler: &mut Compiler<'_>) -> Wsdl {
        let Some(published) = &proxy.publish_wsdl else { return Wsdl::default() };
        let (bytes, span) = match &published.source {
            WsdlSource::Inline(element) => (Some(element.to_xml_in_scope().into_bytes()), published.span),
            WsdlSource::Key(key) => (compiler.entry(&key.value).map(|entry| entry.bytes.to_vec()), key.span),
            WsdlSource::Uri(uri) => {
                let path = uri.value.strip_prefix("file:").unwrap_or(&uri.value).trim_start_matches("//");
                (std::fs::read(compiler.configuration.root.join(path)).ok(), uri.span)
            }
            WsdlSource::Endpoint(key) => {
                compiler.warning(
                    "wsdl-of-endpoint",
                    "the WSDL of an endpoint is not fetched",
                    key.span,
                    "the configuration is read without the network; use key, uri or an inline WSDL",
                );
                return Wsdl::default();
            }
        };
        let Some(bytes) = bytes else {
            compiler.error(
                "unreadable-wsdl",
                "the WSDL of this proxy cannot be read",
                span,
                "nothing is there",
            );
            return Wsdl::default();
        };
        let imports = published
            .resources
            .iter()
            .filter_map(|(location, key)| {
                compiler.entry(&key.value).map(|entry| (location.value.clone(), entry.bytes.to_vec()))
            })
            .collect();
        match Document::parse(bytes, &xml::ParseOptions::trusted()) {
            Ok(document) => {
                let lax = proxy.parameters.iter().any(|parameter| {
                    parameter.name == "disableOperationValidation" && parameter.value.text() == Some("true")
                });
                let operations = if lax { None } else { Operations::of(&document) };
                Wsdl { document: Some(document), imports, operations }
            }
            Err(error) => {
                compiler.error(
                    "bad-wsdl",
                    "the WSDL of this proxy is not well-formed",
                    span,
                    error.to_string(),
                );
                Wsdl::default()
            }
        }
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
        let element = crate::streaming::first_body_element(context).await?;
        Ok(element.is_none_or(|(namespace, local)| {
            operations.elements.contains(&(namespace, local.clone())) || operations.names.contains(&local)
        }))
    }

    /// Answers a metadata query (`wsdl`, `wsdl=…`, `xsd=…`); `None`: it is none.
    pub(crate) fn answer(&self, query: &str, service: &str, inbound: &Inbound) -> Option<Response> {
        let item = query.split('&').next().unwrap_or("");
        let (name, value) = item.split_once('=').unwrap_or((item, ""));
        match (name, value) {
            ("wsdl" | "wsdl2", "") => {}
            ("wsdl" | "xsd", location) => {
                let found = self
                    .imports
                    .iter()
                    .find(|(known, _)| known == location || known.ends_with(&format!("/{location}")));
                return Some(match found {
                    Some((_, bytes)) => xml_response(bytes.clone()),
                    None => text(404, format!("{service} publishes no document `{location}`\n")),
                });
            }
            _ => return None,
        }
        let address = format!("{}://{}/services/{service}", inbound.scheme(), inbound.host);
        let mut document = match &self.document {
            Some(document) => document.clone(),
            None => return Some(xml_response(generated(service, &address).into_bytes())),
        };
        let nodes: Vec<NodeId> = document.descendants(Document::ROOT).collect();
        for node in nodes {
            if document.kind(node) == NodeKind::Element
                && document.local(node) == "address"
                && ADDRESSES.contains(&document.namespace(node))
            {
                document.set_attribute(node, "", "", "location", &address);
            }
        }
        let mut out = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_vec();
        if let Some(root) = document.document_element() {
            xml::write(&document, root, &xml::WriteOptions::default(), &mut out);
        }
        Some(xml_response(out))
    }
}

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
        let state =
            if proxy.started.load(std::sync::atomic::Ordering::Relaxed) { "active" } else { "stopped" };
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
