//! What the operations of a WSDL 1.1 are called and carry.

use super::{ADDRESSES, WSDL_1};
use std::sync::Arc;
use xml::{Document, NodeId, NodeKind};

/// The operations of a WSDL 1.1.
#[derive(Debug, Default)]
pub(crate) struct Contract {
    /// Its target namespace.
    pub(crate) namespace: String,
    /// In the order of the document, those of all its port types.
    pub(crate) operations: Vec<Arc<Operation>>,
    /// Expanded names of all elements that messages carry.
    elements: Vec<Name>,
}

/// An expanded name.
pub(crate) type Name = (String, String);

/// An operation of a port type. The one that a client asks for stays with its message.
#[derive(Debug, Default)]
pub(crate) struct Operation {
    pub(crate) name: String,
    /// The port type that it belongs to.
    pub(crate) port_type: String,
    /// The SOAP actions that its bindings give, without empty ones.
    pub(crate) actions: Vec<String>,
    pub(crate) input: Option<Message>,
    pub(crate) output: Option<Message>,
    /// Its faults by name.
    pub(crate) faults: Vec<(String, Message)>,
}

/// What a message carries: its parts; `None`: the message is not in the document.
#[derive(Debug, Default)]
pub(crate) struct Message(pub(crate) Option<Vec<Part>>);

/// A part of a message.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) name: String,
    /// The element that it is, if it is no type.
    pub(crate) element: Option<Name>,
}

/// The expanded name of a QName at a node.
pub(crate) fn expand(document: &Document, node: NodeId, name: &str) -> Name {
    let (prefix, local) = name.trim().split_once(':').unwrap_or(("", name.trim()));
    (document.lookup_prefix(node, prefix).unwrap_or("").to_owned(), local.to_owned())
}

/// The children of a node that are elements of WSDL 1.1 with this name.
pub(crate) fn children<'d>(
    document: &'d Document,
    parent: NodeId,
    local: &'d str,
) -> impl Iterator<Item = NodeId> + 'd {
    document.children(parent).filter(move |&node| {
        document.kind(node) == NodeKind::Element
            && document.local(node) == local
            && document.namespace(node) == WSDL_1
    })
}

fn attribute(document: &Document, node: NodeId, name: &str) -> String {
    document.attribute(node, "", name).unwrap_or_default().to_owned()
}

/// The local name that an attribute refers to.
pub(crate) fn reference(document: &Document, node: NodeId, name: &str) -> String {
    expand(document, node, &attribute(document, node, name)).1
}

impl Contract {
    /// That of a document; `None` where it has none that can be told (WSDL 2.0, everything imported).
    pub(crate) fn of(document: &Document) -> Option<Contract> {
        let root = document.document_element().filter(|&root| document.namespace(root) == WSDL_1)?;
        let messages: Vec<(String, Vec<Part>)> = children(document, root, "message")
            .map(|message| {
                let parts = children(document, message, "part").map(|part| Part {
                    name: attribute(document, part, "name"),
                    element: document
                        .attribute(part, "", "element")
                        .map(|element| expand(document, part, element)),
                });
                (attribute(document, message, "name"), parts.collect())
            })
            .collect();
        let message = |node: NodeId| {
            let name = reference(document, node, "message");
            Message(messages.iter().find(|(found, _)| *found == name).map(|(_, parts)| parts.clone()))
        };
        let mut operations = Vec::new();
        for port_type in children(document, root, "portType") {
            let type_name = attribute(document, port_type, "name");
            for node in children(document, port_type, "operation") {
                let name = attribute(document, node, "name");
                if name.is_empty() {
                    continue;
                }
                let faults = children(document, node, "fault");
                operations.push(Arc::new(Operation {
                    actions: actions(document, root, &type_name, &name),
                    input: children(document, node, "input").next().map(message),
                    output: children(document, node, "output").next().map(message),
                    faults: faults
                        .map(|fault| (attribute(document, fault, "name"), message(fault)))
                        .collect(),
                    port_type: type_name.clone(),
                    name,
                }));
            }
        }
        let elements = messages.into_iter().flat_map(|(_, parts)| parts).filter_map(|part| part.element);
        let elements = elements.collect();
        let namespace = attribute(document, root, "targetNamespace");
        (!operations.is_empty()).then_some(Contract { namespace, operations, elements })
    }

    /// The contract of a service without a WSDL: one operation, which takes and gives anything.
    pub(crate) fn of_anything() -> Contract {
        let mediate = Operation {
            name: "mediate".to_owned(),
            actions: vec!["urn:mediate".to_owned()],
            input: Some(Message(None)),
            output: Some(Message(None)),
            ..Operation::default()
        };
        let namespace = "http://ws.apache.org/axis2".to_owned();
        Contract { namespace, operations: vec![Arc::new(mediate)], elements: Vec::new() }
    }

    /// The operation with this name.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<Operation>> {
        self.operations.iter().find(|operation| operation.name == name)
    }

    /// The operation that a SOAP action means.
    pub(crate) fn by_action(&self, action: &str) -> Option<&Arc<Operation>> {
        let says = |operation: &&Arc<Operation>| operation.actions.iter().any(|written| written == action);
        let named = || self.named(action).or_else(|| self.named(action.strip_prefix("urn:")?));
        self.operations.iter().find(says).or_else(named)
    }

    /// The operation whose request carries this element, or that has its name.
    pub(crate) fn by_element(&self, element: &Name) -> Option<&Arc<Operation>> {
        let carries = |operation: &&Arc<Operation>| {
            let parts = operation.input.iter().filter_map(|message| message.0.as_ref()).flatten();
            parts.filter_map(|part| part.element.as_ref()).any(|carried| carried == element)
        };
        self.operations.iter().find(carries).or_else(|| self.named(&element.1))
    }

    /// Whether any message of the document carries this element.
    pub(crate) fn knows(&self, element: &Name) -> bool {
        self.elements.contains(element)
    }
}

/// The SOAP actions that the bindings of a port type give an operation.
fn actions(document: &Document, root: NodeId, port_type: &str, name: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let bindings =
        children(document, root, "binding").filter(|&node| reference(document, node, "type") == port_type);
    for operation in bindings.flat_map(|binding| children(document, binding, "operation")) {
        if document.attribute(operation, "", "name") != Some(name) {
            continue;
        }
        for node in document.children(operation) {
            if document.local(node) == "operation"
                && ADDRESSES.contains(&document.namespace(node))
                && let Some(action) = document.attribute(node, "", "soapAction")
                && !action.is_empty()
                && !found.iter().any(|known| known == action)
            {
                found.push(action.to_owned());
            }
        }
    }
    found
}
