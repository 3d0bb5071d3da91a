//! The bindings and ports of a WSDL 1.1 that is published: SOAP 1.1, SOAP 1.2 and HTTP, for each port type.
//!
//! What the author's SOAP binding says of an operation (its action, `rpc` with its namespace, headers, faults, policies)
//! is kept in both SOAP bindings. Ports are added for each answer, because the address of this server is known by then.

use super::contract::{Contract, Message, Operation, children, reference};
use super::{ADDRESSES, Addresses, WSDL_1};
use xml::{Document, NodeId, NodeKind};

/// How messages of a binding are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Soap11,
    Soap12,
    Http,
}

/// A binding that the bus has made.
#[derive(Clone, Debug)]
pub(crate) struct Binding {
    pub(crate) protocol: Protocol,
    /// Its qualified name.
    name: String,
    /// What the name of a port has behind its scheme.
    port: String,
}

impl Protocol {
    const ALL: [Protocol; 3] = [Protocol::Soap11, Protocol::Soap12, Protocol::Http];

    /// The namespace of its elements in a WSDL 1.1, and a prefix.
    fn namespace(self) -> (&'static str, &'static str) {
        match self {
            Protocol::Soap11 => ("soap", ADDRESSES[0]),
            Protocol::Soap12 => ("soap12", ADDRESSES[1]),
            Protocol::Http => ("http", ADDRESSES[2]),
        }
    }

    /// What is in the names of its bindings and ports.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Protocol::Soap11 => "Soap11",
            Protocol::Soap12 => "Soap12",
            Protocol::Http => "",
        }
    }
}

/// A name for what belongs to a service: service names may have characters that names in a WSDL have not.
pub(crate) fn name_of(service: &str) -> String {
    let is_fit = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name: String = service.chars().map(|c| if is_fit(c) { c } else { '_' }).collect();
    if xml::is_ncname(&name) { name } else { format!("_{name}") }
}

/// Takes the bindings and services out of a document and makes those of this server, whose ports are still missing. Nothing
/// is changed, and there are none, where the document has no port types of its own (WSDL 2.0, everything imported).
pub(crate) fn regenerate(document: &mut Document, contract: &Contract, service: &str) -> Vec<Binding> {
    let Some(root) = document.document_element().filter(|&root| document.namespace(root) == WSDL_1) else {
        return Vec::new();
    };
    let original = document.clone();
    let own = ["binding", "service"].map(|name| children(&original, root, name).collect::<Vec<_>>());
    for &node in own.iter().flatten() {
        document.detach(node);
    }
    let service = name_of(service);
    let wsdl = prefix(document, root, "wsdl", WSDL_1);
    let target = prefix(document, root, "tns", &contract.namespace);
    let qualified = |name: &str| if target.is_empty() { name.to_owned() } else { format!("{target}:{name}") };
    let mut port_types: Vec<&str> = Vec::new();
    for operation in &contract.operations {
        if !port_types.contains(&operation.port_type.as_str()) {
            port_types.push(&operation.port_type);
        }
    }
    let mut made = Vec::new();
    for (number, port_type) in port_types.into_iter().enumerate() {
        let operations: Vec<&Operation> = contract
            .operations
            .iter()
            .map(|operation| &**operation)
            .filter(|operation| operation.port_type == *port_type)
            .collect();
        // The first port type is that of the service; the others are told apart by their names.
        let distinct = if number == 0 { String::new() } else { port_type.to_owned() };
        let source = author_of(&original, root, port_type);
        for protocol in Protocol::ALL {
            if protocol == Protocol::Http && !operations.iter().all(|operation| fits_http(operation)) {
                continue;
            }
            let label = if protocol == Protocol::Http { "Http" } else { protocol.label() };
            let name = format!("{service}{distinct}{label}Binding");
            let (wanted, namespace) = protocol.namespace();
            let own = prefix(document, root, wanted, namespace);
            let binding = document.append_element(root, &wsdl, WSDL_1, "binding");
            document.set_attribute(binding, "", "", "name", &name);
            document.set_attribute(binding, "", "", "type", &qualified(port_type));
            let mut writer = Writer { document, wsdl: &wsdl, own: &own, namespace };
            match protocol {
                Protocol::Http => writer.http(binding, &operations),
                _ => writer.soap(binding, &operations, source.map(|source| (&original, source))),
            }
            let port = format!("{distinct}{}Endpoint", protocol.label());
            made.push(Binding { protocol, name: qualified(&name), port });
        }
    }
    made
}

/// Adds the service with a port for each binding and each address.
pub(crate) fn add_ports(document: &mut Document, bindings: &[Binding], service: &str, addresses: &Addresses) {
    let Some(root) = document.document_element() else { return };
    let name = name_of(service);
    let wsdl = prefix(document, root, "wsdl", WSDL_1);
    let element = document.append_element(root, &wsdl, WSDL_1, "service");
    document.set_attribute(element, "", "", "name", &name);
    for binding in bindings {
        let (wanted, namespace) = binding.protocol.namespace();
        let own = prefix(document, root, wanted, namespace);
        for (scheme, address) in addresses.each() {
            let port = document.append_element(element, &wsdl, WSDL_1, "port");
            document.set_attribute(port, "", "", "name", &format!("{name}{scheme}{}", binding.port));
            document.set_attribute(port, "", "", "binding", &binding.name);
            let place = document.append_element(port, &own, namespace, "address");
            document.set_attribute(place, "", "", "location", address);
        }
    }
}

/// The author's SOAP binding of a port type: of SOAP 1.1, else of SOAP 1.2.
fn author_of(document: &Document, root: NodeId, port_type: &str) -> Option<NodeId> {
    let is_of = |binding: &NodeId, namespace: &str| {
        reference(document, *binding, "type") == port_type
            && document.children(*binding).any(|child| document.is_element(child, namespace, "binding"))
    };
    let find =
        |namespace: &str| children(document, root, "binding").find(|binding| is_of(binding, namespace));
    find(ADDRESSES[0]).or_else(|| find(ADDRESSES[1]))
}

/// Whether an operation can be asked for over plain HTTP: a request and an answer of one part each, at most.
fn fits_http(operation: &Operation) -> bool {
    let fits = |message: &Option<Message>| match message {
        Some(Message(Some(parts))) => parts.len() <= 1,
        _ => true,
    };
    fits(&operation.input) && fits(&operation.output)
}

/// The prefix of a namespace at the root, which is declared there if it is not yet.
fn prefix(document: &mut Document, root: NodeId, wanted: &str, namespace: &str) -> String {
    if namespace.is_empty() {
        return String::new();
    }
    let known = document.in_scope_namespaces(root).into_iter().find(|(_, uri)| *uri == namespace);
    if let Some((prefix, _)) = known {
        return prefix.to_owned();
    }
    let mut free = wanted.to_owned();
    let mut number = 1;
    while document.lookup_prefix(root, &free).is_some() {
        number += 1;
        free = format!("{wanted}{number}");
    }
    document.declare_namespace(root, &free, namespace);
    free
}

/// Writes the content of one binding.
struct Writer<'a> {
    document: &'a mut Document,
    /// The prefix of WSDL 1.1.
    wsdl: &'a str,
    /// The prefix of the protocol.
    own: &'a str,
    namespace: &'a str,
}

impl Writer<'_> {
    fn wsdl(&mut self, parent: NodeId, local: &str, name: Option<&str>) -> NodeId {
        let node = self.document.append_element(parent, self.wsdl, WSDL_1, local);
        if let Some(name) = name {
            self.document.set_attribute(node, "", "", "name", name);
        }
        node
    }

    fn own(&mut self, parent: NodeId, local: &str, attributes: &[(&str, &str)]) {
        let node = self.document.append_element(parent, self.own, self.namespace, local);
        for (name, value) in attributes {
            self.document.set_attribute(node, "", "", name, value);
        }
    }

    fn soap(&mut self, binding: NodeId, operations: &[&Operation], source: Option<(&Document, NodeId)>) {
        let is_soap = |document: &Document, node: NodeId| ADDRESSES[..2].contains(&document.namespace(node));
        let mut style = "document".to_owned();
        if let Some((original, source)) = source {
            for child in original.children(source) {
                if is_soap(original, child) && original.local(child) == "binding" {
                    style = original.attribute(child, "", "style").unwrap_or("document").to_owned();
                } else if original.kind(child) == NodeKind::Element && original.namespace(child) != WSDL_1 {
                    // Policies, and references to them.
                    self.document.copy_from(binding, original, child);
                }
            }
        }
        let transport = ("transport", "http://schemas.xmlsoap.org/soap/http");
        self.own(binding, "binding", &[transport, ("style", &style)]);
        for operation in operations {
            let written = source.and_then(|(original, source)| {
                let name = Some(operation.name.as_str());
                let mut all = children(original, source, "operation");
                Some((original, all.find(|&node| original.attribute(node, "", "name") == name)?))
            });
            match written {
                Some((original, node)) => {
                    let copy = self.document.copy_from(binding, original, node);
                    let nodes: Vec<NodeId> = self.document.descendants(copy).collect();
                    for node in nodes {
                        if self.document.kind(node) == NodeKind::Element && is_soap(self.document, node) {
                            let local = self.document.local(node).to_owned();
                            self.document.rename(node, self.own, self.namespace, &local);
                        }
                    }
                }
                None => self.soap_operation(binding, operation, &style),
            }
        }
    }

    /// An operation that the author has not bound.
    fn soap_operation(&mut self, binding: NodeId, operation: &Operation, style: &str) {
        let node = self.wsdl(binding, "operation", Some(&operation.name));
        let named = || format!("urn:{}", operation.name);
        let action = operation.actions.first().cloned().unwrap_or_else(named);
        self.own(node, "operation", &[("soapAction", &action), ("style", style)]);
        for (message, local) in [(&operation.input, "input"), (&operation.output, "output")] {
            if message.is_some() {
                let part = self.wsdl(node, local, None);
                self.own(part, "body", &[("use", "literal")]);
            }
        }
        for (name, _) in &operation.faults {
            let fault = self.wsdl(node, "fault", Some(name));
            self.own(fault, "fault", &[("use", "literal"), ("name", name)]);
        }
    }

    fn http(&mut self, binding: NodeId, operations: &[&Operation]) {
        const MIME: &str = "http://schemas.xmlsoap.org/wsdl/mime/";
        let Some(root) = self.document.document_element() else { return };
        let mime = prefix(self.document, root, "mime", MIME);
        self.own(binding, "binding", &[("verb", "POST")]);
        for operation in operations {
            let node = self.wsdl(binding, "operation", Some(&operation.name));
            self.own(node, "operation", &[("location", &operation.name)]);
            for (message, local) in [(&operation.input, "input"), (&operation.output, "output")] {
                let Some(Message(parts)) = message else { continue };
                let element = self.wsdl(node, local, None);
                let content = self.document.append_element(element, &mime, MIME, "content");
                self.document.set_attribute(content, "", "", "type", "application/xml");
                if let Some(part) = parts.as_ref().and_then(|parts| parts.first()) {
                    self.document.set_attribute(content, "", "", "part", &part.name);
                }
            }
            for (name, _) in &operation.faults {
                self.wsdl(node, "fault", Some(name));
            }
        }
    }
}
