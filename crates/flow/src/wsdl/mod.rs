//! The WSDL of a proxy service: its documents, what clients may ask for by it, and what the bus makes of it.
//!
//! The bindings and ports that are published are those of this server ([`bindings`]), unless the author's document is
//! wanted as it is. A description in WSDL 2.0 is made of the same contract ([`description`]).

pub(crate) mod bindings;
pub(crate) mod contract;
pub(crate) mod description;

use bindings::Binding;
use contract::Contract;
use xml::{Document, NodeId, NodeKind};

/// The namespace of WSDL 1.1.
pub(crate) const WSDL_1: &str = "http://schemas.xmlsoap.org/wsdl/";

/// The namespace of WSDL 2.0.
pub(crate) const WSDL_2: &str = "http://www.w3.org/ns/wsdl";

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
    /// The bindings that the bus has made for the document, which has no ports then; none: it is published with its own.
    pub(crate) bindings: Vec<Binding>,
    /// `(location, text)` of imported documents.
    pub(crate) imports: Vec<(String, Vec<u8>)>,
    /// What a client may ask for; `None`: that cannot be told.
    pub(crate) contract: Option<Contract>,
    /// A client may ask for something else (`disableOperationValidation`).
    pub(crate) lax: bool,
    /// The addresses in the author's document stay as they are (`modifyUserWSDLPortAddress` is false).
    pub(crate) keeps_addresses: bool,
    /// References to imported documents are whole URLs (`showAbsoluteSchemaURL`, `showProxySchemaURL`).
    pub(crate) absolute: bool,
    /// The names of its ports: `/services/NAME.PORT` is the service too.
    pub(crate) ports: Vec<String>,
    /// It cannot be read, and `enablePublishWSDLSafeMode` says that the service is inactive then.
    pub(crate) inactive: bool,
}

/// Where a service can be reached, by scheme. The address that the client has asked is among them.
pub(crate) struct Addresses {
    pub(crate) http: Option<String>,
    pub(crate) https: Option<String>,
    /// The client has asked over https.
    pub(crate) secure: bool,
}

impl Addresses {
    /// The one that the client has asked.
    pub(crate) fn own(&self) -> &str {
        let own = if self.secure { &self.https } else { &self.http };
        own.as_deref().unwrap_or_default()
    }

    /// All of them, with what they are called in names of ports.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let http = self.http.as_deref().map(|address| ("Http", address));
        http.into_iter().chain(self.https.as_deref().map(|address| ("Https", address)))
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
