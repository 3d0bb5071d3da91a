//! The WSDL 2.0 of a service: the contract of its WSDL 1.1 as an interface, with bindings for SOAP 1.1, SOAP 1.2 and HTTP.

use super::bindings::{Protocol, name_of};
use super::contract::{Contract, Message, children};
use super::{Addresses, WSDL_1, WSDL_2};
use xml::{Document, NodeId, NodeKind};

const SOAP: &str = "http://www.w3.org/ns/wsdl/soap";
const HTTP: &str = "http://www.w3.org/ns/wsdl/http";

/// Describes a service: `document` is its WSDL 1.1, whose types it keeps.
pub(crate) fn describe(
    contract: &Contract,
    document: Option<&Document>,
    service: &str,
    addresses: &Addresses,
) -> Document {
    let mut made = Builder { document: Document::new(), prefix: "wsdl2".to_owned(), target: String::new() };
    made.write(contract, document, &name_of(service), addresses);
    made.document
}

struct Builder {
    document: Document,
    /// The prefix of WSDL 2.0.
    prefix: String,
    /// The prefix of the target namespace.
    target: String,
}

impl Builder {
    fn add(&mut self, parent: NodeId, local: &str, attributes: &[(&str, &str)]) -> NodeId {
        let node = self.document.append_element(parent, &self.prefix, WSDL_2, local);
        for (name, value) in attributes {
            self.document.set_attribute(node, "", "", name, value);
        }
        node
    }

    /// A prefix that means the namespace at the root.
    fn declare(&mut self, root: NodeId, wanted: &str, namespace: &str) -> String {
        if let Some(known) = self.document.prefix_for(root, namespace).filter(|known| !known.is_empty()) {
            return known.to_owned();
        }
        let mut numbers = 2..;
        let mut free = wanted.to_owned();
        while self.document.lookup_prefix(root, &free).is_some() {
            free = format!("{wanted}{}", numbers.next().unwrap_or_default());
        }
        self.document.declare_namespace(root, &free, namespace);
        free
    }

    fn qualified(&self, name: &str) -> String {
        if self.target.is_empty() { name.to_owned() } else { format!("{}:{name}", self.target) }
    }

    /// What `element` of a message says.
    fn content(&mut self, root: NodeId, message: &Message) -> String {
        match message.0.as_deref() {
            Some([]) => "#none".to_owned(),
            Some([part]) => match &part.element {
                Some((namespace, local)) if !namespace.is_empty() => {
                    format!("{}:{local}", self.declare(root, "q", namespace))
                }
                Some((_, local)) => local.clone(),
                None => "#any".to_owned(),
            },
            _ => "#any".to_owned(),
        }
    }

    fn write(
        &mut self,
        contract: &Contract,
        original: Option<&Document>,
        service: &str,
        addresses: &Addresses,
    ) {
        let root = self.document.append_element(Document::ROOT, &self.prefix, WSDL_2, "description");
        let from = original.and_then(|original| Some((original, original.document_element()?)));
        if !contract.namespace.is_empty() {
            self.document.set_attribute(root, "", "", "targetNamespace", &contract.namespace);
            let known = from.and_then(|(original, node)| original.prefix_for(node, &contract.namespace));
            let known = known.filter(|prefix| !prefix.is_empty()).unwrap_or("tns").to_owned();
            self.target = self.declare(root, &known, &contract.namespace);
        }
        let (wsoap, whttp) = (self.declare(root, "wsoap", SOAP), self.declare(root, "whttp", HTTP));
        if let Some((original, node)) = from {
            for types in children(original, node, "types") {
                let made = self.add(root, "types", &[]);
                for child in original.children(types) {
                    if original.kind(child) == NodeKind::Element && original.namespace(child) != WSDL_1 {
                        // What the schema does not need is not declared anew.
                        let skip = |_: &str, uri: &str| uri == WSDL_1 || super::ADDRESSES.contains(&uri);
                        self.document.copy_from_but(made, original, child, &skip);
                    }
                }
            }
        }
        let interface = self.add(root, "interface", &[("name", "ServiceInterface")]);
        // Faults belong to the interface, before its operations.
        let mut faults: Vec<&str> = Vec::new();
        for operation in &contract.operations {
            for (name, message) in &operation.faults {
                if !faults.contains(&name.as_str()) {
                    faults.push(name);
                    let element = self.content(root, message);
                    self.add(interface, "fault", &[("name", name), ("element", &element)]);
                }
            }
        }
        // An interface has each operation once, whatever the port types of a WSDL 1.1 have.
        let mut operations: Vec<&super::contract::Operation> = Vec::new();
        for operation in &contract.operations {
            if operations.iter().all(|known| known.name != operation.name) {
                operations.push(operation);
            }
        }
        for operation in &operations {
            let pattern = match (&operation.input, &operation.output) {
                (_, None) => "in-only",
                (None, Some(_)) => "out-only",
                (Some(_), Some(_)) => "in-out",
            };
            let pattern = format!("{WSDL_2}/{pattern}");
            let node = self.add(interface, "operation", &[("name", &operation.name), ("pattern", &pattern)]);
            let anything = Message(None);
            let input = match (&operation.input, &operation.output) {
                (None, None) => Some(&anything),
                (input, _) => input.as_ref(),
            };
            for (message, local) in [(input, "input"), (operation.output.as_ref(), "output")] {
                if let Some(message) = message {
                    let element = self.content(root, message);
                    self.add(node, local, &[("element", &element)]);
                }
            }
            for (name, _) in &operation.faults {
                let reference = self.qualified(name);
                self.add(node, "outfault", &[("ref", &reference)]);
            }
        }
        let of_interface = self.qualified("ServiceInterface");
        let mut endpoints = Vec::new();
        for protocol in [Protocol::Soap11, Protocol::Soap12, Protocol::Http] {
            let label = if protocol == Protocol::Http { "Http" } else { protocol.label() };
            let name = format!("{service}{label}Binding");
            let of_soap = |version, http| Some((version, http));
            let (kind, soap) = match protocol {
                Protocol::Soap11 => (SOAP, of_soap("1.1", "http://www.w3.org/2006/01/soap11/bindings/HTTP/")),
                Protocol::Soap12 => (SOAP, of_soap("1.2", "http://www.w3.org/2003/05/soap/bindings/HTTP/")),
                Protocol::Http => (HTTP, None),
            };
            let binding =
                self.add(root, "binding", &[("name", &name), ("interface", &of_interface), ("type", kind)]);
            match soap {
                Some((version, http)) => {
                    self.document.set_attribute(binding, &wsoap, SOAP, "version", version);
                    self.document.set_attribute(binding, &wsoap, SOAP, "protocol", http);
                }
                None => {
                    self.document.set_attribute(binding, &whttp, HTTP, "methodDefault", "POST");
                }
            }
            for operation in &operations {
                let reference = self.qualified(&operation.name);
                let node = self.add(binding, "operation", &[("ref", &reference)]);
                match (soap, operation.actions.first()) {
                    (Some(_), Some(action)) => {
                        self.document.set_attribute(node, &wsoap, SOAP, "action", action);
                    }
                    (None, _) => {
                        self.document.set_attribute(node, &whttp, HTTP, "location", &operation.name);
                    }
                    (Some(_), None) => {}
                }
            }
            endpoints.push((protocol.label(), self.qualified(&name)));
        }
        let element = self.add(root, "service", &[("name", service), ("interface", &of_interface)]);
        for (label, binding) in &endpoints {
            for (scheme, address) in addresses.each() {
                let name = format!("{service}{scheme}{label}Endpoint");
                self.add(element, "endpoint", &[("name", &name), ("binding", binding), ("address", address)]);
            }
        }
    }
}
