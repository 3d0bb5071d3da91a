//! The WSDL of a proxy service, as it was published: its documents, and what clients may ask for by it.

use xml::{Document, NodeId, NodeKind};

/// Namespaces of the `address` elements that are rewritten to this server.
pub(crate) const ADDRESSES: &[&str] = &[
    "http://schemas.xmlsoap.org/wsdl/soap/",
    "http://schemas.xmlsoap.org/wsdl/soap12/",
    "http://schemas.xmlsoap.org/wsdl/http/",
];

/// The WSDL of a proxy service.
#[derive(Debug, Default)]
pub struct Wsdl {
    pub(crate) document: Option<Document>,
    /// `(location, text)` of imported documents.
    pub(crate) imports: Vec<(String, Vec<u8>)>,
    /// What a SOAP client may ask for; `None`: anything.
    pub(crate) operations: Option<Operations>,
    /// The addresses in it stay as they are (`modifyUserWSDLPortAddress` is false).
    pub(crate) keeps_addresses: bool,
    /// References to imported documents are whole URLs (`showAbsoluteSchemaURL`, `showProxySchemaURL`).
    pub(crate) absolute: bool,
    /// The names of its ports: `/services/NAME.PORT` is the service too.
    pub(crate) ports: Vec<String>,
    /// It cannot be read, and `enablePublishWSDLSafeMode` says that the service is inactive then.
    pub(crate) inactive: bool,
}

/// The operations of a published WSDL 1.1.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    pub(crate) names: Vec<String>,
    /// Those of them that give no answer.
    pub(crate) one_way: Vec<String>,
    pub(crate) actions: Vec<String>,
    /// Expanded names of the elements that requests carry.
    pub(crate) elements: Vec<(String, String)>,
}

impl Operations {
    /// Those of a document; `None` where it has none that can be told (WSDL 2.0, everything imported).
    pub(crate) fn of(document: &Document) -> Option<Operations> {
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
                if !document.children(node).any(|child| named(child, "output")) {
                    found.one_way.extend(text("name"));
                }
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

/// The names of the ports of a WSDL 1.1, and of the endpoints of a WSDL 2.0.
pub(crate) fn ports(document: &Document) -> Vec<String> {
    let is_port = |&node: &NodeId| {
        document.kind(node) == NodeKind::Element
            && matches!(document.local(node), "port" | "endpoint")
            && document.parent(node).is_some_and(|parent| document.local(parent) == "service")
    };
    let ports = document.descendants(Document::ROOT).filter(is_port);
    ports.filter_map(|port| document.attribute(port, "", "name").map(str::to_owned)).collect()
}

/// Takes policies out of a document, and what refers to them (`preservePolicy="false"`).
pub(crate) fn without_policies(document: &mut Document) {
    const POLICIES: &[&str] = &[
        "http://schemas.xmlsoap.org/ws/2004/09/policy",
        "http://www.w3.org/2006/07/ws-policy",
        "http://www.w3.org/ns/ws-policy",
    ];
    let is_element = |&node: &NodeId| document.kind(node) == NodeKind::Element;
    let elements: Vec<NodeId> = document.descendants(Document::ROOT).filter(is_element).collect();
    for node in elements {
        if matches!(document.local(node), "Policy" | "PolicyReference")
            && POLICIES.contains(&document.namespace(node))
        {
            document.detach(node);
            continue;
        }
        for namespace in POLICIES {
            document.remove_attribute(node, namespace, "PolicyURIs");
        }
    }
}

/// The references to other documents: element, attribute, location.
pub(crate) fn references(document: &Document) -> Vec<(NodeId, &'static str, String)> {
    let mut found = Vec::new();
    for node in document.descendants(Document::ROOT) {
        let is_reference = document.kind(node) == NodeKind::Element
            && matches!(document.local(node), "import" | "include" | "redefine");
        for attribute in ["schemaLocation", "location"].into_iter().filter(|_| is_reference) {
            if let Some(location) = document.attribute(node, "", attribute) {
                found.push((node, attribute, location.to_owned()));
            }
        }
    }
    found
}
