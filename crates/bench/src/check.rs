//! What must come back, and what differs in what did.
//!
//! XML is compared by what it says: names by namespace, attributes in any order, text without the white space around it;
//! comments and the SOAP envelope around the payload do not count. So the same check holds for every bus, whatever prefixes
//! it writes. Where a message must not have been touched, the bytes are compared instead.

use crate::messages::{SOAP11, SOAP12};
use std::fmt;
use xml::{Document, NodeId, NodeKind, ParseOptions};

/// An answer as it came in.
#[derive(Copy, Clone, Debug)]
pub struct ReceivedResponse<'a> {
    /// HTTP status.
    pub status: u16,
    /// Header names and values; names in any case.
    pub headers: &'a [(&'a str, &'a str)],
    /// The entity.
    pub body: &'a [u8],
}

impl ReceivedResponse<'_> {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }
}

/// What must come back.
#[derive(Clone, Debug)]
pub struct Expect {
    /// HTTP status.
    pub status: u16,
    /// The media types that are right; empty: any, or none.
    pub content_types: &'static [&'static str],
    /// Headers that must be there with this value.
    pub headers: Vec<(&'static str, String)>,
    /// The entity.
    pub body: Entity,
}

/// The entity that must come back.
#[derive(Clone, Debug)]
pub enum Entity {
    /// No bytes at all.
    Empty,
    /// These very bytes.
    Bytes(Vec<u8>),
    /// A payload that says the same as this XML.
    Payload(String),
    /// A payload like this XML, with the children of its root in any order.
    AnyOrder(AnyOrder),
    /// A fault (SOAP 1.1, SOAP 1.2, or `Exception` for plain XML) whose reason contains this; never the client's silence.
    Fault(&'static str),
    /// This JSON value.
    Json(serde_json::Value),
    /// XML that contains all of these strings.
    Contains(&'static [&'static str]),
}

/// A payload whose children come in any order.
#[derive(Clone, Debug)]
pub struct AnyOrder {
    /// The payload, with its children in one of the orders.
    pub text: String,
    /// The key of its start tag, and those of its children, sorted.
    key: (String, Vec<String>),
}

impl AnyOrder {
    /// A payload as XML.
    pub fn new(text: String) -> AnyOrder {
        let key = read(text.as_bytes(), "the expected payload").map(|root| key_in_any_order(&root));
        AnyOrder { key: key.unwrap_or_default(), text }
    }
}

/// How an answer differs from what must come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch(String);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mismatch {}

impl Expect {
    /// Whether this is the right answer; otherwise what differs, on one line.
    pub fn check(&self, response: &ReceivedResponse<'_>) -> Result<(), Mismatch> {
        self.check_head(response)?;
        self.body.check(response.body)
    }

    /// Whether status and headers are right; the body is not looked at.
    pub fn check_head(&self, response: &ReceivedResponse<'_>) -> Result<(), Mismatch> {
        if response.status != self.status {
            let (want, got) = (self.status, response.status);
            return match response.body {
                [] => differs(format!("status {got} instead of {want}")),
                body => differs(format!("status {got} instead of {want}: {}", excerpt(body))),
            };
        }
        let content_type = response.header("content-type").unwrap_or_default();
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        if !self.content_types.is_empty()
            && !self.content_types.iter().any(|want| want.eq_ignore_ascii_case(media_type))
        {
            let want = self.content_types.join(" or ");
            return differs(format!("content type '{content_type}' instead of {want}"));
        }
        for (name, want) in &self.headers {
            match response.header(name) {
                Some(got) if got.trim() == want => {}
                Some(got) => return differs(format!("header {name} is '{got}' instead of '{want}'")),
                None => return differs(format!("no header {name}, it should be '{want}'")),
            }
        }
        Ok(())
    }
}

impl Entity {
    /// Whether this is the right body.
    pub fn check(&self, body: &[u8]) -> Result<(), Mismatch> {
        match self {
            Entity::Empty if body.is_empty() => Ok(()),
            Entity::Empty => differs(format!("a body where none should be: {}", excerpt(body))),
            Entity::Bytes(want) => same_bytes(want, body),
            Entity::Payload(want) => {
                let (want, got) = (read(want.as_bytes(), "the expected payload")?, read_payload(body)?);
                same_element(&want, &got).map_err(Mismatch)
            }
            Entity::AnyOrder(want) => any_order(want, body),
            Entity::Fault(reason) => fault(reason, body),
            Entity::Json(want) => match serde_json::from_slice::<serde_json::Value>(body) {
                Ok(got) if same_json(want, &got) => Ok(()),
                Ok(got) => differs(format!("{got} instead of {want}")),
                Err(error) => differs(format!("the body is not JSON ({error}): {}", excerpt(body))),
            },
            Entity::Contains(parts) => {
                read(body, "the body")?;
                let text = String::from_utf8_lossy(body);
                match parts.iter().find(|part| !text.contains(**part)) {
                    None => Ok(()),
                    Some(part) => differs(format!("'{part}' is missing in {}", excerpt(body))),
                }
            }
        }
    }
}

fn differs<T>(what: String) -> Result<T, Mismatch> {
    Err(Mismatch(what))
}

/// The beginning of a body, on one line.
fn excerpt(body: &[u8]) -> String {
    const LENGTH: usize = 160;
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * LENGTH)]);
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LENGTH).collect();
    match body.len() {
        0 => "(no body)".to_owned(),
        n if n > line.len() => format!("{line}… ({n} bytes)"),
        _ => line,
    }
}

fn same_bytes(want: &[u8], got: &[u8]) -> Result<(), Mismatch> {
    if want == got {
        return Ok(());
    }
    let at = want.iter().zip(got).take_while(|(a, b)| a == b).count();
    let (want_size, got_size) = (want.len(), got.len());
    differs(format!(
        "the bytes differ from byte {at} on ({got_size} bytes instead of {want_size}): {}",
        excerpt(&got[at.min(got.len())..])
    ))
}

/// An element of a document of its own.
struct Element {
    document: Document,
    node: NodeId,
}

fn read(bytes: &[u8], what: &str) -> Result<Element, Mismatch> {
    // the checks trust the backend; what limits the answer is the client that received it
    match Document::parse(bytes.to_vec(), &ParseOptions::trusted()) {
        Ok(document) => match document.document_element() {
            Some(node) => Ok(Element { document, node }),
            None => differs(format!("{what} has no document element")),
        },
        Err(error) => differs(format!("{what} is not XML ({error}): {}", excerpt(bytes))),
    }
}

/// The only element in the SOAP body, or the document element where there is no envelope.
fn read_payload(bytes: &[u8]) -> Result<Element, Mismatch> {
    let Element { document, node: root } = read(bytes, "the body")?;
    let soap = document.namespace(root);
    if document.local(root) != "Envelope" || (soap != SOAP11 && soap != SOAP12) {
        return Ok(Element { document, node: root });
    }
    let body = document.children(root).find(|&node| document.is_element(node, soap, "Body"));
    let payload: Vec<NodeId> = body
        .map(|body| document.children(body).filter(|&n| document.kind(n) == NodeKind::Element).collect())
        .unwrap_or_default();
    match payload[..] {
        [node] => Ok(Element { document, node }),
        _ => {
            differs(format!("{} elements in the SOAP body instead of one: {}", payload.len(), excerpt(bytes)))
        }
    }
}

/// Equal JSON; numbers by value, not by digits.
fn same_json(a: &serde_json::Value, b: &serde_json::Value) -> bool {
    use serde_json::Value::{Array, Number, Object};
    match (a, b) {
        (Number(a), Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Array(a), Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_json(a, b)),
        (Object(a), Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same_json(a, b)))
        }
        _ => a == b,
    }
}

fn fault(reason: &str, body: &[u8]) -> Result<(), Mismatch> {
    let Element { document, node } = read_payload(body)?;
    let soap = document.namespace(node);
    let is_fault = document.local(node) == "Fault" && (soap == SOAP11 || soap == SOAP12);
    if !is_fault && document.local(node) != "Exception" {
        return differs(format!("no fault: {}", excerpt(body)));
    }
    let text = document.string_value(node);
    if text.contains(reason) { Ok(()) } else { differs(format!("the fault does not say '{reason}': {text}")) }
}

fn any_order(want: &AnyOrder, body: &[u8]) -> Result<(), Mismatch> {
    let got = read_payload(body)?;
    if key_in_any_order(&got) == want.key {
        return Ok(());
    }
    // What differs?
    let want = read(want.text.as_bytes(), "the expected payload")?;
    same_start(&want, want.node, &got, got.node).map_err(Mismatch)?;
    let mut left: Vec<NodeId> = elements(&got);
    for (n, expected) in elements(&want).into_iter().enumerate() {
        let same = |&found: &NodeId| same_tree(&want, expected, &got, found).is_ok();
        match left.iter().position(same) {
            Some(at) => drop(left.swap_remove(at)),
            None => {
                let text = want.document.string_value(expected);
                let found = elements(&got).len();
                return differs(format!(
                    "child {} of the expected answer ({text}) is not among the {found} found",
                    n + 1
                ));
            }
        }
    }
    match left.len() {
        0 => Ok(()),
        n => differs(format!("{n} children more than expected")),
    }
}

/// The key of the start tag of an element and those of its children, in one order for all orders of the children.
fn key_in_any_order(of: &Element) -> (String, Vec<String>) {
    let mut start = String::new();
    push_start(&of.document, of.node, &mut start);
    let mut children: Vec<String> =
        elements(of).into_iter().map(|child| key_of(&of.document, child)).collect();
    children.sort_unstable();
    (start, children)
}

/// Name and attributes. No XML has a NUL: what stands between two of them is one name or text.
fn push_start(document: &Document, element: NodeId, key: &mut String) {
    key.extend(["\0<", document.namespace(element), "\0", document.local(element)]);
    let mut attributes: Vec<NodeId> = document.attributes(element).collect();
    attributes.sort_by_key(|&at| (document.namespace(at), document.local(at)));
    for at in attributes {
        let (namespace, name) = (document.namespace(at), document.local(at));
        key.extend(["\0@", namespace, "\0", name, "\0", document.text(at)]);
    }
}

/// A text for an element that is equal where [`same_tree`] finds no difference; without recursion, as depth comes from outside.
fn key_of(document: &Document, element: NodeId) -> String {
    enum Visit {
        Item(Item),
        End,
    }
    let mut key = String::new();
    let mut open = vec![Visit::Item(Item::Element(element))];
    while let Some(visit) = open.pop() {
        match visit {
            Visit::End => key.push_str("\0/"),
            Visit::Item(Item::Text(text)) => key.extend(["\0=", &text]),
            Visit::Item(Item::Element(node)) => {
                push_start(document, node, &mut key);
                open.push(Visit::End);
                open.extend(items(document, node).into_iter().rev().map(Visit::Item));
            }
        }
    }
    key
}

fn elements(of: &Element) -> Vec<NodeId> {
    of.document.children(of.node).filter(|&n| of.document.kind(n) == NodeKind::Element).collect()
}

fn same_element(want: &Element, got: &Element) -> Result<(), String> {
    same_tree(want, want.node, got, got.node)
}

/// Compares two elements with everything below them; without recursion, as depth comes from outside.
fn same_tree(want: &Element, want_node: NodeId, got: &Element, got_node: NodeId) -> Result<(), String> {
    let mut open = vec![(want_node, got_node)];
    while let Some((a, b)) = open.pop() {
        same_start(want, a, got, b)?;
        let (a_items, b_items) = (items(&want.document, a), items(&got.document, b));
        for pair in a_items.iter().zip(&b_items) {
            match pair {
                (Item::Text(a), Item::Text(b)) if a == b => {}
                (Item::Element(a), Item::Element(b)) => open.push((*a, *b)),
                (a, b) => {
                    let place = place(&got.document, got_node, got_node_of(b).unwrap_or(got_node));
                    let (a, b) = (a.show(&want.document), b.show(&got.document));
                    return Err(format!("in {place}: {b} instead of {a}"));
                }
            }
        }
        if a_items.len() != b_items.len() {
            let place = place(&got.document, got_node, b);
            return Err(match (a_items.get(b_items.len()), b_items.get(a_items.len())) {
                (Some(missing), _) => format!("in {place}: {} is missing", missing.show(&want.document)),
                (_, Some(more)) => format!("in {place}: {} is too much", more.show(&got.document)),
                _ => format!("in {place}: another number of children"),
            });
        }
    }
    Ok(())
}

/// Compares name and attributes.
fn same_start(want: &Element, a: NodeId, got: &Element, b: NodeId) -> Result<(), String> {
    let name = |e: &Element, n| format!("{{{}}}{}", e.document.namespace(n), e.document.local(n));
    let (a_name, b_name) = (name(want, a), name(got, b));
    if a_name != b_name {
        return Err(format!("element {b_name} instead of {a_name}"));
    }
    let attributes = |e: &Element, n| {
        let mut list: Vec<(String, String)> =
            e.document.attributes(n).map(|at| (name(e, at), e.document.text(at).to_owned())).collect();
        list.sort();
        list
    };
    let (a_list, b_list) = (attributes(want, a), attributes(got, b));
    if a_list == b_list {
        Ok(())
    } else {
        Err(format!("{b_name} has attributes {b_list:?} instead of {a_list:?}"))
    }
}

/// What counts among the children of an element.
enum Item {
    Text(String),
    Element(NodeId),
}

impl Item {
    fn show(&self, document: &Document) -> String {
        match self {
            Item::Text(text) => format!("'{}'", excerpt(text.as_bytes())),
            Item::Element(node) => format!("<{}>", document.local(*node)),
        }
    }
}

fn got_node_of(item: &Item) -> Option<NodeId> {
    match item {
        Item::Element(node) => Some(*node),
        Item::Text(_) => None,
    }
}

fn items(document: &Document, parent: NodeId) -> Vec<Item> {
    let mut list: Vec<Item> = Vec::new();
    for node in document.children(parent) {
        match document.kind(node) {
            NodeKind::Element => list.push(Item::Element(node)),
            NodeKind::Text => match list.last_mut() {
                Some(Item::Text(text)) => text.push_str(document.text(node)),
                _ => list.push(Item::Text(document.text(node).to_owned())),
            },
            _ => {}
        }
    }
    for item in &mut list {
        if let Item::Text(text) = item {
            *text = text.trim().to_owned();
        }
    }
    list.retain(|item| !matches!(item, Item::Text(text) if text.is_empty()));
    list
}

/// Where a node is: the names from `top` down to it.
fn place(document: &Document, top: NodeId, node: NodeId) -> String {
    let mut names = vec![document.local(node).to_owned()];
    let mut at = node;
    while at != top
        && let Some(parent) = document.parent(at)
    {
        names.push(document.local(parent).to_owned());
        at = parent;
    }
    names.reverse();
    names.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: Entity, got: &str) -> Result<(), String> {
        let expect = Expect { status: 200, content_types: &[], headers: Vec::new(), body };
        let response = ReceivedResponse { status: 200, headers: &[], body: got.as_bytes() };
        expect.check(&response).map_err(|mismatch| mismatch.to_string())
    }

    #[test]
    fn the_same_payload_however_it_is_written() {
        let want = "<p:a xmlns:p='urn:p' x='1' y='2'><b>text</b><c/></p:a>";
        let cases = [
            want,
            "<a xmlns='urn:p' y='2' x='1'>\n <b xmlns=''> te<!-- - -->xt</b>\n <c xmlns=''></c></a>",
            "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Header><x/></s:Header><s:Body><q:a xmlns:q='urn:p' x='1' y='2'><b><![CDATA[text]]></b><c/></q:a></s:Body></s:Envelope>",
        ];
        for got in cases {
            assert_eq!(check(Entity::Payload(want.to_owned()), got), Ok(()), "{got}");
        }
    }

    #[test]
    fn what_differs_is_said() {
        let want = "<a x='1'><b>text</b><c/></a>";
        let cases = [
            ("<a x='1'><b>other</b><c/></a>", "'other' instead of 'text'"),
            ("<a x='1'><b>text</b></a>", "in a: <c> is missing"),
            ("<a x='1'><b>text</b><c/><c/></a>", "in a: <c> is too much"),
            ("<a x='2'><b>text</b><c/></a>", "has attributes"),
            ("<z x='1'><b>text</b><c/></z>", "element {}z instead of {}a"),
            ("<a xmlns='urn:x' x='1'/>", "element {urn:x}a instead of {}a"),
            ("<a x='1'><b>text</b>more<c/></a>", "'more' instead of <c>"),
            ("<a x='1'><b>", "is not XML"),
            ("", "is not XML"),
        ];
        for (got, want_message) in cases {
            let message = check(Entity::Payload(want.to_owned()), got).expect_err(got);
            assert!(message.contains(want_message), "{message}");
        }
    }

    #[test]
    fn children_in_any_order_are_all_there() {
        let want = Entity::AnyOrder(AnyOrder::new("<r><q>1</q><q>2</q><q>2</q></r>".to_owned()));
        assert_eq!(check(want.clone(), "<r><q>2</q><q>1</q><q>2</q></r>"), Ok(()));
        let deep = "<r xmlns:p='urn:p'><q a='1' p:b='2'><p:c>x</p:c><d/></q><q>y<d>z</d></q></r>";
        let other = "<r>\n<q> y <d>z</d></q><q xmlns:o='urn:p' o:b='2' a='1'><o:c>x</o:c><d></d></q></r>";
        let deep = Entity::AnyOrder(AnyOrder::new(deep.to_owned()));
        assert_eq!(check(deep.clone(), other), Ok(()));
        assert!(check(deep.clone(), &other.replace("o:b='2'", "b='2'")).is_err());
        assert!(check(deep, &other.replace("<d>z</d>", "<d/>z")).is_err());
        for (got, message) in [
            ("<r><q>2</q><q>1</q><q>1</q></r>", "child 3 of the expected answer (2)"),
            ("<r><q>2</q><q>1</q></r>", "child 3"),
            ("<r><q>2</q><q>1</q><q>2</q><q>3</q></r>", "1 children more"),
            ("<s/>", "element {}s"),
        ] {
            assert!(check(want.clone(), got).expect_err(got).contains(message), "{got}");
        }
    }

    #[test]
    fn faults_of_every_format() {
        let soap11 = "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body><s:Fault><faultcode>s:Client</faultcode><faultstring>No route</faultstring></s:Fault></s:Body></s:Envelope>";
        let soap12 = "<s:Envelope xmlns:s='http://www.w3.org/2003/05/soap-envelope'><s:Body><s:Fault><s:Reason><s:Text>No route</s:Text></s:Reason></s:Fault></s:Body></s:Envelope>";
        for got in [soap11, soap12, "<Exception>No route</Exception>"] {
            assert_eq!(check(Entity::Fault("No route"), got), Ok(()));
            assert!(check(Entity::Fault("another"), got).is_err());
        }
        for got in ["", "No route", "<a>No route</a>"] {
            assert!(check(Entity::Fault("No route"), got).is_err(), "{got}");
        }
    }

    #[test]
    fn status_headers_bytes_and_json() {
        let expect = Expect {
            status: 201,
            content_types: &["text/xml", "application/xml"],
            headers: vec![("X-A", "1".to_owned())],
            body: Entity::Bytes(b"abc".to_vec()),
        };
        let right = [("content-type", "Application/XML; charset=UTF-8"), ("x-a", "1")];
        type Case<'a> = (u16, &'a [(&'a str, &'a str)], &'a [u8], &'a str);
        let cases: [Case<'_>; 6] = [
            (201, &right, b"abc", ""),
            (200, &right, b"abc", "status 200 instead of 201: abc"),
            (201, &right[1..], b"abc", "content type '' instead of text/xml or application/xml"),
            (201, &right[..1], b"abc", "no header X-A, it should be '1'"),
            (201, &[right[0], ("X-A", "2")], b"abc", "header X-A is '2' instead of '1'"),
            (201, &right, b"abd", "the bytes differ from byte 2 on (3 bytes instead of 3): d"),
        ];
        for (status, headers, body, want) in cases {
            let got = expect.check(&ReceivedResponse { status, headers, body });
            assert_eq!(got.err().map_or(String::new(), |m| m.to_string()), want);
        }
        let json = Entity::Json(serde_json::json!({"a": 1, "b": [true]}));
        assert_eq!(check(json.clone(), "{\"b\": [true], \"a\": 1.00}"), Ok(()));
        assert!(check(json.clone(), "{\"a\": 1}").is_err());
        assert!(check(json, "{").is_err());
        assert_eq!(check(Entity::Empty, ""), Ok(()));
        assert!(check(Entity::Empty, "x").is_err());
        assert_eq!(check(Entity::Contains(&["<b/>"]), "<a><b/></a>"), Ok(()));
        assert!(check(Entity::Contains(&["<b/>"]), "<b/").is_err());
    }
}
