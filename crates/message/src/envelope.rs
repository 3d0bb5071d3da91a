//! The SOAP envelope: every message that is read has one, wrapped around the payload if it came without.

use crate::memory::{Held, Shortage};
use xml::{Document, NodeId, NodeKind, XmlError};

/// SOAP 1.1 envelope namespace.
pub const SOAP11: &str = "http://schemas.xmlsoap.org/soap/envelope/";
/// SOAP 1.2 envelope namespace.
pub const SOAP12: &str = "http://www.w3.org/2003/05/soap-envelope";
/// WS-Addressing 1.0.
pub const WSA_FINAL: &str = "http://www.w3.org/2005/08/addressing";
/// WS-Addressing, the member submission of August 2004.
pub const WSA_SUBMISSION: &str = "http://schemas.xmlsoap.org/ws/2004/08/addressing";
/// Namespace of the `text` and `binary` elements that stand for payloads which are not XML.
pub const PAYLOAD: &str = "http://ws.apache.org/commons/ns/payload";

/// The version of a SOAP envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoapVersion {
    /// SOAP 1.1, `text/xml`.
    V11,
    /// SOAP 1.2, `application/soap+xml`.
    V12,
}

impl SoapVersion {
    /// The namespace of the envelope.
    pub fn namespace(self) -> &'static str {
        match self {
            SoapVersion::V11 => SOAP11,
            SoapVersion::V12 => SOAP12,
        }
    }

    /// The version that a namespace names.
    pub fn of_namespace(uri: &str) -> Option<SoapVersion> {
        match uri {
            SOAP11 => Some(SoapVersion::V11),
            SOAP12 => Some(SoapVersion::V12),
            _ => None,
        }
    }

    /// The version of an element that is a SOAP envelope; `None`: it is another element.
    pub fn of_envelope(document: &Document, element: NodeId) -> Option<SoapVersion> {
        let version = SoapVersion::of_namespace(document.namespace(element));
        version.filter(|_| document.local(element) == "Envelope")
    }

    /// The media type of a message of this version.
    pub fn media_type(self) -> &'static str {
        match self {
            SoapVersion::V11 => "text/xml",
            SoapVersion::V12 => "application/soap+xml",
        }
    }
}

/// A SOAP envelope as a tree, with its places found.
#[derive(Clone, Debug)]
pub struct Envelope {
    /// The tree. Its document element is the envelope.
    pub document: Document,
    /// The `Envelope` element.
    pub root: NodeId,
    /// The `Header` element, if there is one.
    pub header: Option<NodeId>,
    /// The `Body` element.
    pub body: NodeId,
    /// The version of the envelope.
    pub version: SoapVersion,
    /// Counts the tree as held, once it is the view of a message.
    held: Held,
}

impl Envelope {
    /// An envelope with an empty body.
    pub fn empty(version: SoapVersion) -> Envelope {
        let mut document = Document::new();
        let root = document.append_element(Document::ROOT, "soapenv", version.namespace(), "Envelope");
        document.declare_namespace(root, "soapenv", version.namespace());
        let body = document.append_element(root, "soapenv", version.namespace(), "Body");
        Envelope { document, root, header: None, body, version, held: Held::default() }
    }

    /// Counts the tree as held, as large as it is now.
    ///
    /// # Errors
    /// Messages hold too much already.
    pub(crate) fn count(&mut self) -> Result<(), Shortage> {
        self.held.try_grow(self.document.tree_size())
    }

    /// About how many bytes the tree takes that are not counted as held.
    pub fn uncounted(&self) -> usize {
        self.document.tree_size().saturating_sub(self.held.bytes())
    }

    /// A copy with nothing in its body.
    pub fn emptied(&self) -> Envelope {
        let mut document = Document::new();
        document.copy_around(Document::ROOT, &self.document, self.root, self.body);
        Envelope::of_document(document).unwrap_or_else(|_| Envelope::empty(self.version))
    }

    /// Finds the places of a document that is an envelope.
    ///
    /// # Errors
    /// What is missing, in words: the document element is not a SOAP envelope, or it has no body; or there is a header behind the body,
    /// where SOAP has none and who reads the message as it arrives does not see it.
    pub fn of_document(document: Document) -> Result<Envelope, String> {
        let root = document.document_element().ok_or("there is no document element")?;
        let version = SoapVersion::of_envelope(&document, root).ok_or_else(|| {
            format!("the document element is <{}>, not a SOAP 1.1 or 1.2 Envelope", document.qname(root))
        })?;
        let (mut header, mut body) = (None, None);
        for child in document.children(root) {
            if document.kind(child) != NodeKind::Element || document.namespace(child) != version.namespace() {
                continue;
            }
            match document.local(child) {
                "Header" if body.is_some() => return Err("the SOAP Header stands behind the Body".to_owned()),
                "Header" if header.is_none() => header = Some(child),
                "Body" if body.is_none() => body = Some(child),
                _ => {}
            }
        }
        let body = body.ok_or("the SOAP Envelope has no Body")?;
        Ok(Envelope { root, header, body, version, document, held: Held::default() })
    }

    /// Finds header and body again after the tree was changed at the top.
    ///
    /// # Errors
    /// As [`Envelope::of_document`]; the envelope is then empty.
    pub fn refresh(&mut self) -> Result<(), String> {
        let version = self.version;
        let document = std::mem::take(&mut self.document);
        match Envelope::of_document(document) {
            Ok(found) => {
                *self = found;
                Ok(())
            }
            Err(why) => {
                *self = Envelope::empty(version);
                Err(why)
            }
        }
    }

    /// Parses a document and puts its element into the body of a new envelope.
    ///
    /// # Errors
    /// The document is not well-formed or exceeds a limit.
    pub fn wrap(
        bytes: bytes::Bytes,
        version: SoapVersion,
        options: &xml::ParseOptions,
    ) -> Result<Envelope, XmlError> {
        let mut envelope = Envelope::empty(version);
        envelope.document.parse_into(envelope.body, bytes, options)?;
        Ok(envelope)
    }

    /// The first element of the body: the payload.
    pub fn payload(&self) -> Option<NodeId> {
        self.elements_of(self.body).next()
    }

    /// The element children of a node.
    pub fn elements_of(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.document.children(node).filter(|&child| self.document.kind(child) == NodeKind::Element)
    }

    /// The `Header`, made if there is none.
    pub fn header_or_new(&mut self) -> NodeId {
        if let Some(header) = self.header {
            return header;
        }
        let prefix = self.document.prefix(self.root).to_owned();
        let header = self.document.append_element(self.root, &prefix, self.version.namespace(), "Header");
        self.document.detach(header);
        self.document.insert_before(self.body, header);
        self.header = Some(header);
        header
    }

    /// Empties the body.
    pub fn clear_body(&mut self) {
        while let Some(child) = self.document.first_child(self.body) {
            self.document.detach(child);
        }
    }

    /// The SOAP fault in the body, if the payload is one.
    pub fn fault(&self) -> Option<NodeId> {
        self.payload().filter(|&payload| {
            self.document.local(payload) == "Fault"
                && SoapVersion::of_namespace(self.document.namespace(payload)).is_some()
        })
    }

    /// Whether it is a fault, or around one.
    pub fn has_fault(&self) -> bool {
        self.any_fault().is_some()
    }

    /// The fault that it is, or is around: what a REST client's backend answers under `text/xml` is plain XML here, also where that is
    /// an envelope.
    pub fn any_fault(&self) -> Option<NodeId> {
        let soap = |node: NodeId, name: &str| {
            self.document.local(node) == name
                && SoapVersion::of_namespace(self.document.namespace(node)).is_some()
        };
        let first = |node: NodeId, name: &str| self.elements_of(node).find(|&child| soap(child, name));
        self.fault().or_else(|| {
            let inner = self.payload().filter(|&payload| soap(payload, "Envelope"))?;
            first(first(inner, "Body")?, "Fault")
        })
    }

    /// The reason text of a fault and the text of its detail.
    pub fn fault_texts(&self, fault: NodeId) -> (String, String) {
        let child = |node: NodeId, name: &str| {
            self.elements_of(node).find(|&child| self.document.local(child) == name)
        };
        let text = |node: Option<NodeId>| {
            node.map(|node| self.document.string_value(node).trim().to_owned()).unwrap_or_default()
        };
        let reason = match child(fault, "Reason") {
            Some(reason) => text(child(reason, "Text")),
            None => text(child(fault, "faultstring")),
        };
        // Elements in the detail are not text of it.
        let detail = child(fault, "detail").or_else(|| child(fault, "Detail"));
        let children = detail.into_iter().flat_map(|node| self.document.children(node));
        let children = children.filter(|&node| self.document.kind(node) == NodeKind::Text);
        let detail: String = children.map(|node| self.document.text(node)).collect();
        (reason, detail.trim().to_owned())
    }

    /// Turns the envelope into one of another version: namespace, fault structure and header attributes; the
    /// payload is untouched.
    pub fn convert(&mut self, version: SoapVersion) {
        if version == self.version {
            return;
        }
        let from = self.version.namespace();
        let fault = self.fault();
        let mut next = Envelope::empty(version);
        for (prefix, uri) in self.document.namespace_declarations(self.root) {
            if uri != from && prefix != "soapenv" {
                next.document.declare_namespace(next.root, prefix, uri);
            }
        }
        if let Some(header) = self.header {
            let new_header = next.header_or_new();
            for block in self.elements_of(header) {
                let copy = copy_out(&mut next.document, new_header, &self.document, block);
                next.convert_block_attributes(copy, from);
            }
        }
        if let Some(fault) = fault {
            self.convert_fault(fault, &mut next);
        } else {
            for child in self.document.children(self.body) {
                copy_out(&mut next.document, next.body, &self.document, child);
            }
        }
        *self = next;
    }

    /// `actor` and `role`, `mustUnderstand="1"` and `"true"`.
    fn convert_block_attributes(&mut self, block: NodeId, from: &str) {
        let to = self.version.namespace();
        let (old_role, new_role) =
            if self.version == SoapVersion::V12 { ("actor", "role") } else { ("role", "actor") };
        if let Some(role) = self.document.attribute(block, from, old_role).map(str::to_owned) {
            self.document.remove_attribute(block, from, old_role);
            self.document.set_attribute(block, "soapenv", to, new_role, &role);
        }
        if let Some(must) = self.document.attribute(block, from, "mustUnderstand").map(str::to_owned) {
            self.document.remove_attribute(block, from, "mustUnderstand");
            let value = match (matches!(must.trim(), "1" | "true"), self.version) {
                (true, SoapVersion::V11) => "1",
                (true, SoapVersion::V12) => "true",
                (false, SoapVersion::V11) => "0",
                (false, SoapVersion::V12) => "false",
            };
            self.document.set_attribute(block, "soapenv", to, "mustUnderstand", value);
        }
    }

    /// Writes `fault` of this envelope into the body of `next` in the other version's structure.
    fn convert_fault(&self, fault: NodeId, next: &mut Envelope) {
        let child = |node: NodeId, name: &str| {
            self.elements_of(node).find(|&child| self.document.local(child) == name)
        };
        let text = |node: Option<NodeId>| {
            node.map(|node| self.document.string_value(node).trim().to_owned()).unwrap_or_default()
        };
        let (reason, _) = self.fault_texts(fault);
        let (code, role, detail) = match self.version {
            SoapVersion::V11 => {
                (text(child(fault, "faultcode")), child(fault, "faultactor"), child(fault, "detail"))
            }
            SoapVersion::V12 => (
                text(child(fault, "Code").and_then(|code| child(code, "Value"))),
                child(fault, "Role"),
                child(fault, "Detail"),
            ),
        };
        let code = code.rsplit(':').next().unwrap_or("").to_owned();
        let code = match (next.version, code.as_str()) {
            (SoapVersion::V12, "Client") => "Sender",
            (SoapVersion::V12, "Server") => "Receiver",
            (SoapVersion::V11, "Sender") => "Client",
            (SoapVersion::V11, "Receiver" | "") => "Server",
            (SoapVersion::V12, "") => "Receiver",
            (_, other) => other,
        }
        .to_owned();
        let (role, detail) = (role.map(|role| text(Some(role))), detail.map(|node| (self, node)));
        next.append_fault(&Fault { code: &code, reason: &reason, role: role.as_deref(), node: None }, detail);
    }

    /// Appends a fault to the body.
    ///
    /// `detail` is an element of another envelope whose children become the fault's detail.
    pub fn append_fault(&mut self, fault: &Fault<'_>, detail: Option<(&Envelope, NodeId)>) -> NodeId {
        let soap = self.version.namespace();
        let prefix = self.document.prefix(self.root).to_owned();
        let code = if prefix.is_empty() { fault.code.to_owned() } else { format!("{prefix}:{}", fault.code) };
        let document = &mut self.document;
        let element = document.append_element(self.body, &prefix, soap, "Fault");
        let leaf =
            |document: &mut Document, parent: NodeId, prefix: &str, uri: &str, name: &str, text: &str| {
                let node = document.append_element(parent, prefix, uri, name);
                if !text.is_empty() {
                    document.append_text(node, text);
                }
                node
            };
        let detail_element = match self.version {
            SoapVersion::V11 => {
                leaf(document, element, "", "", "faultcode", &code);
                leaf(document, element, "", "", "faultstring", fault.reason);
                if let Some(role) = fault.role {
                    leaf(document, element, "", "", "faultactor", role);
                }
                detail.map(|_| document.append_element(element, "", "", "detail"))
            }
            SoapVersion::V12 => {
                let holder = document.append_element(element, &prefix, soap, "Code");
                leaf(document, holder, &prefix, soap, "Value", &code);
                let holder = document.append_element(element, &prefix, soap, "Reason");
                let text = leaf(document, holder, &prefix, soap, "Text", fault.reason);
                document.set_attribute(text, "xml", "http://www.w3.org/XML/1998/namespace", "lang", "en");
                if let Some(node) = fault.node {
                    leaf(document, element, &prefix, soap, "Node", node);
                }
                if let Some(role) = fault.role {
                    leaf(document, element, &prefix, soap, "Role", role);
                }
                detail.map(|_| document.append_element(element, &prefix, soap, "Detail"))
            }
        };
        if let (Some(target), Some((source, node))) = (detail_element, detail) {
            for child in source.document.children(node) {
                copy_out(&mut self.document, target, &source.document, child);
            }
        }
        element
    }
}

/// What a SOAP fault says.
#[derive(Clone, Copy, Debug)]
pub struct Fault<'a> {
    /// Local name of the code: `Client`, `Server`, `Sender`, `Receiver`, ….
    pub code: &'a str,
    /// The reason in words.
    pub reason: &'a str,
    /// `faultactor` or `Role`.
    pub role: Option<&'a str>,
    /// SOAP 1.2 `Node`.
    pub node: Option<&'a str>,
}

/// The string that Synapse's mediators see of a node: the element's own text, or the element as XML where it
/// has none (or where it is one of several).
pub fn synapse_string(document: &Document, node: NodeId, only: bool) -> String {
    match document.kind(node) {
        NodeKind::Element => {
            if only {
                let text: String = document
                    .children(node)
                    .filter(|&child| document.kind(child) == NodeKind::Text)
                    .map(|child| document.text(child))
                    .collect();
                let text = text.trim();
                if !text.is_empty() {
                    return text.to_owned();
                }
            }
            let mut out = Vec::new();
            xml::write(document, node, &xml::WriteOptions::default(), &mut out);
            String::from_utf8_lossy(&out).into_owned()
        }
        NodeKind::Document => match document.document_element() {
            Some(root) => synapse_string(document, root, false),
            None => String::new(),
        },
        _ => document.text(node).to_owned(),
    }
}

/// Copies a node out of an envelope as the last child of a node of another tree. The namespace of the envelope stays behind where
/// nothing in the node needs it.
pub fn copy_out(target: &mut Document, parent: NodeId, document: &Document, node: NodeId) -> NodeId {
    let left_behind =
        |prefix: &str, uri: &str| SoapVersion::of_namespace(uri).is_some() && !uses(document, node, prefix);
    target.copy_from_but(parent, document, node, &left_behind)
}

/// Whether a prefix stands in the names of a subtree, or in its texts and attribute values, as in
/// `<faultcode>soapenv:Server</faultcode>`.
fn uses(document: &Document, node: NodeId, prefix: &str) -> bool {
    let in_text = |node: NodeId| {
        let mut parts = document.text(node).split(':');
        parts.next_back();
        parts.any(|before| before.ends_with(prefix))
    };
    std::iter::once(node).chain(document.descendants(node)).any(|node| match document.kind(node) {
        NodeKind::Element => {
            document.prefix(node) == prefix
                || document
                    .attributes(node)
                    .any(|attribute| document.prefix(attribute) == prefix || in_text(attribute))
        }
        NodeKind::Text => in_text(node),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Envelope {
        let document = Document::parse(text.as_bytes().to_vec(), &xml::ParseOptions::default()).unwrap();
        Envelope::of_document(document).unwrap()
    }

    fn text(envelope: &Envelope) -> String {
        let mut out = Vec::new();
        xml::write(&envelope.document, envelope.root, &xml::WriteOptions::default(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_namespace_of_the_other_version_stays_behind() {
        let soap11 = format!(
            "<soapenv:Envelope xmlns:soapenv='{SOAP11}'><soapenv:Header><h xmlns='urn:h'/></soapenv:Header>\
             <soapenv:Body><q xmlns='urn:q'>1</q></soapenv:Body></soapenv:Envelope>"
        );
        let mut envelope = parse(&soap11);
        envelope.convert(SoapVersion::V12);
        assert_eq!(
            text(&envelope),
            format!(
                "<soapenv:Envelope xmlns:soapenv=\"{SOAP12}\"><soapenv:Header><h xmlns=\"urn:h\"/></soapenv:Header>\
                 <soapenv:Body><q xmlns=\"urn:q\">1</q></soapenv:Body></soapenv:Envelope>"
            )
        );
    }

    #[test]
    fn a_fault_is_converted_there_and_back() {
        let soap11 = format!(
            "<s:Envelope xmlns:s='{SOAP11}'><s:Header><h s:mustUnderstand='1' s:actor='urn:a'/></s:Header><s:Body><s:Fault>\
             <faultcode>s:Client</faultcode><faultstring>no</faultstring><detail><d xmlns='urn:d'>x</d></detail></s:Fault></s:Body></s:Envelope>"
        );
        let mut envelope = parse(&soap11);
        envelope.convert(SoapVersion::V12);
        let twelve = text(&envelope);
        for part in [
            "soapenv:Sender",
            "xml:lang=\"en\"",
            "soapenv:mustUnderstand=\"true\"",
            "soapenv:role=\"urn:a\"",
            ">x</d>",
            SOAP12,
        ] {
            assert!(twelve.contains(part), "{part} in {twelve}");
        }
        assert!(!twelve.contains("<s:"), "{twelve}");
        envelope.convert(SoapVersion::V11);
        let eleven = text(&envelope);
        for part in [
            "<faultcode>soapenv:Client</faultcode>",
            "<faultstring>no</faultstring>",
            ":mustUnderstand=\"1\"",
            ":actor=\"urn:a\"",
        ] {
            assert!(eleven.contains(part), "{part} in {eleven}");
        }
        assert_eq!(envelope.fault_texts(envelope.fault().unwrap()), ("no".into(), String::new()));
    }

    #[test]
    fn what_is_no_envelope_is_said() {
        for (xml, why) in [
            ("<a/>".to_owned(), "the document element is <a>"),
            (format!("<Envelope xmlns='{SOAP11}'/>"), "no Body"),
            (
                format!("<s:Envelope xmlns:s='{SOAP11}'><s:Body/><s:Header/></s:Envelope>"),
                "Header stands behind the Body",
            ),
        ] {
            let document = Document::parse(xml.into_bytes(), &xml::ParseOptions::default()).unwrap();
            let error = Envelope::of_document(document).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn the_string_of_a_node_is_that_of_synapse() {
        let envelope = parse(&format!(
            "<s:Envelope xmlns:s='{SOAP11}'><s:Body><a> x <b>y</b></a></s:Body></s:Envelope>"
        ));
        let a = envelope.payload().unwrap();
        assert_eq!(synapse_string(&envelope.document, a, true), "x");
        assert_eq!(synapse_string(&envelope.document, a, false), "<a> x <b>y</b></a>");
    }
}
