//! The XML that a script works on: what E4X calls XML and XMLList, as numbered lists of nodes.
//!
//! A script holds numbers; the trees live here, as long as the message is in the script. So no tree ever outlives a
//! message, and what a script builds is bounded.

use message::XmlValue;
use std::sync::Arc;
use xml::{Document, NodeId, NodeKind, ParseOptions};

/// A list of nodes, by number.
pub(crate) type List = u32;

/// Most lists that one run may make.
const MAX_LISTS: usize = 1 << 20;
/// Most nodes of all trees of one run.
const MAX_NODES: usize = 16 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Item {
    document: u32,
    node: NodeId,
}

#[derive(Clone, Debug, Default)]
struct Nodes {
    items: Vec<Item>,
    /// The element and the name that the list was taken by: where assigning to an empty list puts a new element.
    origin: Option<(Item, String)>,
}

/// What an XPath expression gives.
pub(crate) enum Selected {
    Nothing,
    Nodes(List),
    Text(String),
    Number(f64),
    Boolean(bool),
}

/// See the module.
#[derive(Default)]
pub(crate) struct Trees {
    documents: Vec<Document>,
    lists: Vec<Nodes>,
    limits: xml::Limits,
    /// The document that stands for the message, and whether it was changed.
    watched: Option<u32>,
    changed: bool,
}

/// A name to select by, as the translated script writes it: `[..][@](*|name|*::name|{uri}name)`.
struct Selector<'a> {
    deep: bool,
    attribute: bool,
    /// `None`: any namespace.
    namespace: Option<&'a str>,
    /// `*`: any name.
    local: &'a str,
}

impl<'a> Selector<'a> {
    fn of(key: &'a str) -> Selector<'a> {
        let (deep, key) = key.strip_prefix("..").map_or((false, key), |rest| (true, rest));
        let (attribute, key) = key.strip_prefix('@').map_or((false, key), |rest| (true, rest));
        let (namespace, local) = if key == "*" {
            (None, key)
        } else if let Some(local) = key.strip_prefix("*::") {
            (None, local)
        } else if let Some((uri, local)) = key.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            (Some(uri), local)
        } else {
            (Some(""), key)
        };
        Selector { deep, attribute, namespace, local }
    }

    fn matches(&self, document: &Document, node: NodeId) -> bool {
        let kind = if self.attribute { NodeKind::Attribute } else { NodeKind::Element };
        if document.kind(node) != kind {
            // `*` without `::` takes text too, but not attributes, comments or instructions.
            return self.local == "*" && !self.attribute && document.kind(node) == NodeKind::Text;
        }
        (self.local == "*" || document.local(node) == self.local)
            && self.namespace.is_none_or(|uri| document.namespace(node) == uri)
    }
}

impl Trees {
    /// No trees, with limits for those that will be parsed.
    pub(crate) fn new(limits: xml::Limits) -> Trees {
        Trees { limits, ..Trees::default() }
    }

    fn add(&mut self, nodes: Nodes) -> Result<List, String> {
        let total: usize = self.documents.iter().map(Document::node_count).sum();
        if self.lists.len() >= MAX_LISTS || total > MAX_NODES {
            return Err("the script makes too much XML".to_owned());
        }
        self.lists.push(nodes);
        Ok(self.lists.len() as List - 1)
    }

    fn items(&self, list: List) -> &[Item] {
        self.lists.get(list as usize).map_or(&[], |nodes| &nodes.items)
    }

    fn document(&self, item: Item) -> &Document {
        &self.documents[item.document as usize]
    }

    /// A document that is about to be changed.
    fn change(&mut self, number: u32) -> &mut Document {
        self.changed |= self.watched == Some(number);
        &mut self.documents[number as usize]
    }

    /// Notes from now on whether the document of a list is changed; `None`: that of no list.
    pub(crate) fn watch(&mut self, list: Option<List>) {
        self.watched = list.and_then(|list| self.items(list).first()).map(|item| item.document);
        self.changed = false;
    }

    /// Whether the watched document was changed since this was asked last.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    fn one(&mut self, document: Document, nodes: &[NodeId]) -> Result<List, String> {
        let number = self.documents.len() as u32;
        self.documents.push(document);
        let items = nodes.iter().map(|&node| Item { document: number, node }).collect();
        self.add(Nodes { items, origin: None })
    }

    /// A copy of nodes of the message.
    pub(crate) fn of_value(&mut self, value: &XmlValue) -> Result<List, String> {
        let mut copy = Document::new();
        let nodes: Vec<NodeId> =
            value.nodes.iter().map(|&node| copy.copy_from(Document::ROOT, &value.document, node)).collect();
        self.one(copy, &nodes)
    }

    /// The nodes of a text: elements, text and comments, one beside the other.
    pub(crate) fn parse(&mut self, text: &str) -> Result<List, String> {
        let options = ParseOptions { limits: self.limits.clone(), ..ParseOptions::default() };
        let text = text.trim();
        let text = match text.strip_prefix("<?xml ").and_then(|rest| rest.split_once("?>")) {
            Some((_, rest)) => rest,
            None => text,
        };
        let not_xml = |error: xml::XmlError| format!("it is not well-formed XML: {error}");
        let document = match Document::parse(text.as_bytes().to_vec(), &options) {
            Ok(document) => document,
            // Several elements, or only text: a list.
            Err(error) => {
                let wrapped = Document::parse(format!("<l>{text}</l>").into_bytes(), &options);
                return match wrapped {
                    Ok(document)
                        if !text.starts_with('<') || text.starts_with("<!") || several(&document) =>
                    {
                        let nodes: Vec<NodeId> = document
                            .document_element()
                            .map(|root| document.children(root).collect())
                            .unwrap_or_default();
                        self.one(document, &nodes)
                    }
                    _ => Err(not_xml(error)),
                };
            }
        };
        let root = document.document_element().ok_or("it has no element")?;
        self.one(document, &[root])
    }

    /// The nodes of a list, copied.
    pub(crate) fn value(&self, list: List) -> Option<XmlValue> {
        let items = self.items(list);
        let mut copy = Document::new();
        let nodes = items
            .iter()
            .map(|item| copy.copy_from(Document::ROOT, self.document(*item), item.node))
            .collect();
        (!items.is_empty()).then(|| XmlValue { document: Arc::new(copy), nodes })
    }

    /// The first element of a list.
    pub(crate) fn element(&self, list: List) -> Option<(&Document, NodeId)> {
        let item = self
            .items(list)
            .iter()
            .find(|item| self.document(**item).kind(item.node) == NodeKind::Element)?;
        Some((self.document(*item), item.node))
    }

    pub(crate) fn length(&self, list: List) -> usize {
        self.items(list).len()
    }

    /// What a key selects of a list: a number one item, a name children, descendants or attributes.
    pub(crate) fn get(&mut self, list: List, key: &str) -> Result<List, String> {
        let items = self.items(list).to_vec();
        let origin = match *items.as_slice() {
            [only] => Some((only, key.to_owned())),
            _ => None,
        };
        if let Ok(index) = key.parse::<usize>() {
            return self.add(Nodes { items: items.get(index).copied().into_iter().collect(), origin: None });
        }
        let selector = Selector::of(key);
        let mut found = Vec::new();
        for item in items {
            let document = self.document(item);
            let mut take = |node: NodeId| {
                if selector.matches(document, node) {
                    found.push(Item { node, ..item });
                }
            };
            match (selector.deep, selector.attribute) {
                (false, false) => document.children(item.node).for_each(take),
                (false, true) => document.attributes(item.node).for_each(take),
                (true, false) => document.descendants(item.node).for_each(take),
                (true, true) => {
                    document.attributes(item.node).for_each(&mut take);
                    for node in document.descendants(item.node) {
                        document.attributes(node).for_each(&mut take);
                    }
                }
            }
        }
        self.add(Nodes { items: found, origin })
    }

    /// Nodes by what they are: `text`, `comment`, `elements`, `parent`, `children`, `next` and `previous` (the one beside it).
    pub(crate) fn step(&mut self, list: List, kind: &str) -> Result<List, String> {
        let mut found = Vec::new();
        for item in self.items(list).to_vec() {
            let document = self.document(item);
            let mut children = |wanted: fn(NodeKind) -> bool| {
                let nodes = document.children(item.node).filter(|&node| wanted(document.kind(node)));
                found.extend(nodes.map(|node| Item { node, ..item }));
            };
            match kind {
                "text" => children(|kind| kind == NodeKind::Text),
                "comment" => children(|kind| kind == NodeKind::Comment),
                "elements" => children(|kind| kind == NodeKind::Element),
                "children" => children(|kind| kind != NodeKind::ProcessingInstruction),
                "next" => found.extend(document.next_sibling(item.node).map(|node| Item { node, ..item })),
                "previous" => {
                    found.extend(document.prev_sibling(item.node).map(|node| Item { node, ..item }))
                }
                _ => {
                    let parent =
                        document.parent(item.node).filter(|&node| document.kind(node) == NodeKind::Element);
                    found.extend(parent.map(|node| Item { node, ..item }));
                }
            }
        }
        self.add(Nodes { items: found, origin: None })
    }

    /// What an XPath 1.0 expression gives at the first node of a list: `nodes`, `string`, `number` or `boolean`, or what it is by itself
    /// (`value`). `syntax` only reads it. The names are prefixes, each with its namespace behind it.
    pub(crate) fn xpath(
        &mut self,
        list: List,
        how: &str,
        source: &str,
        names: &[String],
    ) -> Result<Selected, String> {
        let wrong = |error: xpath::XPathError| {
            let shown: String = source.chars().take(80).collect();
            format!("XPath `{shown}`: {error}")
        };
        if how == "syntax" {
            xpath::parse(source, xpath::Version::V1).map_err(wrong)?;
            return Ok(Selected::Nothing);
        }
        let namespaces: Vec<(String, String)> =
            names.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        let options = xpath::CompileOptions { namespaces: &namespaces, ..xpath::CompileOptions::default() };
        let expression = xpath::Expression::compile(source, &options).map_err(wrong)?;
        let item = *self.items(list).first().ok_or("there is no XML to select from")?;
        let context = xpath::Context::at(self.document(item), xpath::Node::new(item.node));
        let is_nodes = expression.returns() == xpath::Type::NodeSet;
        Ok(match how {
            "string" => Selected::Text(expression.evaluate_string(&context).map_err(wrong)?.into_owned()),
            "number" => Selected::Number(expression.evaluate_number(&context).map_err(wrong)?),
            "boolean" => Selected::Boolean(expression.evaluate_boolean(&context).map_err(wrong)?),
            _ if how == "nodes" || is_nodes => {
                let nodes = expression.evaluate_nodes(&context).map_err(wrong)?;
                let items = nodes
                    .into_iter()
                    .filter(|node| !node.is_namespace())
                    .map(|node| Item { node: node.id, ..item })
                    .collect();
                Selected::Nodes(self.add(Nodes { items, origin: None })?)
            }
            _ => match expression.evaluate(&context).map_err(wrong)? {
                xpath::Value::Boolean(is) => Selected::Boolean(is),
                xpath::Value::Number(number) => Selected::Number(number),
                _ => Selected::Text(expression.evaluate_string(&context).map_err(wrong)?.into_owned()),
            },
        })
    }

    /// The items of two lists.
    pub(crate) fn join(&mut self, list: List, other: List) -> Result<List, String> {
        let items = [self.items(list), self.items(other)].concat();
        self.add(Nodes { items, origin: None })
    }

    /// The items of a list at these positions: `0,2`.
    pub(crate) fn pick(&mut self, list: List, positions: &str) -> Result<List, String> {
        let all = self.items(list);
        let at = |position: &str| all.get(position.parse::<usize>().ok()?).copied();
        let items = positions.split(',').filter_map(at).collect();
        self.add(Nodes { items, origin: None })
    }

    /// A list with copies of all nodes.
    pub(crate) fn copy(&mut self, list: List) -> Result<List, String> {
        match self.value(list) {
            Some(value) => self.of_value(&value),
            None => self.add(Nodes::default()),
        }
    }

    /// An empty list.
    pub(crate) fn empty(&mut self) -> Result<List, String> {
        self.add(Nodes::default())
    }

    /// E4X `hasSimpleContent`: no element inside.
    pub(crate) fn is_simple(&self, list: List) -> bool {
        match *self.items(list) {
            [] => true,
            [only] => {
                let document = self.document(only);
                document.kind(only.node) != NodeKind::Element
                    || document.children(only.node).all(|child| document.kind(child) != NodeKind::Element)
            }
            ref many => many.iter().all(|item| self.document(*item).kind(item.node) != NodeKind::Element),
        }
    }

    /// E4X `toString`: the text of simple content, else XML.
    pub(crate) fn text(&self, list: List) -> String {
        if self.is_simple(list) { self.string_value(list) } else { self.xml(list) }
    }

    /// The text of all nodes, put together.
    pub(crate) fn string_value(&self, list: List) -> String {
        self.items(list).iter().map(|item| self.document(*item).string_value(item.node)).collect()
    }

    /// E4X `toXMLString`.
    pub(crate) fn xml(&self, list: List) -> String {
        let parts: Vec<String> = self
            .items(list)
            .iter()
            .map(|item| {
                let document = self.document(*item);
                match document.kind(item.node) {
                    NodeKind::Attribute => document.text(item.node).to_owned(),
                    _ => xml::to_string(document, item.node),
                }
            })
            .collect();
        parts.join("\n")
    }

    /// A fact of the one node of a list: `local`, `name`, `namespace`, `prefix`, `kind`.
    pub(crate) fn fact(&self, list: List, what: &str) -> Option<String> {
        let item = *self.items(list).first()?;
        let document = self.document(item);
        Some(match what {
            "local" => document.local(item.node).to_owned(),
            "name" => match document.namespace(item.node) {
                "" => document.local(item.node).to_owned(),
                uri => format!("{uri}::{}", document.local(item.node)),
            },
            "qname" => document.qname(item.node).into_owned(),
            "namespace" => document.namespace(item.node).to_owned(),
            "prefix" => document.prefix(item.node).to_owned(),
            _ => match document.kind(item.node) {
                NodeKind::Element => "element",
                NodeKind::Attribute => "attribute",
                NodeKind::Comment => "comment",
                NodeKind::ProcessingInstruction => "processing-instruction",
                NodeKind::Text | NodeKind::Document => "text",
            }
            .to_owned(),
        })
    }

    /// `x.key = value`.
    pub(crate) fn set(&mut self, list: List, key: &str, value: Insertion<'_>) -> Result<(), String> {
        if let Ok(index) = key.parse::<usize>() {
            return match self.items(list).get(index).copied() {
                Some(item) => self.fill(item, value),
                None => Err(format!("there is no item {index} to assign to: use appendChild")),
            };
        }
        let Some(item) = self.owner(list)? else {
            return Err(format!("`{key}` cannot be assigned: the list is empty or has several items"));
        };
        let selector = Selector::of(key);
        let (uri, local) = (selector.namespace.unwrap_or("").to_owned(), selector.local.to_owned());
        if selector.attribute {
            let text = match value {
                Insertion::Text(text) => text.to_owned(),
                Insertion::List(from) => self.string_value(from),
            };
            let document = self.change(item.document);
            document.set_attribute(item.node, "", &uri, &local, &text);
            return Ok(());
        }
        if selector.deep || local == "*" {
            return Err("descendants cannot be assigned: select one of them first".to_owned());
        }
        let document = self.document(item);
        let found: Vec<NodeId> =
            document.children(item.node).filter(|&node| selector.matches(document, node)).collect();
        if let Insertion::List(from) = value
            && let Some(&last) = found.last()
            && let Some((same, added)) = self.items(from).split_at_checked(found.len())
            && same
                .iter()
                .map(|same| (same.document, same.node))
                .eq(found.iter().map(|&node| (item.document, node)))
        {
            // What is there already (`x.a += <a/>`) stays.
            let added = added.to_vec();
            let list = self.add(Nodes { items: added, origin: None })?;
            let copies = self.copies(list, item.document)?;
            let document = self.change(item.document);
            for &copy in copies.iter().rev() {
                document.insert_after(last, copy);
            }
            return Ok(());
        }
        let first = match found.split_first() {
            Some((&first, others)) => {
                for &other in others {
                    self.change(item.document).detach(other);
                }
                first
            }
            None => {
                if !xml::is_ncname(&local) {
                    return Err(format!("`{local}` is not a name of an element"));
                }
                self.change(item.document).append_element(item.node, "", &uri, &local)
            }
        };
        self.fill(Item { node: first, ..item }, value)
    }

    /// The element that a member is assigned to: the one of the list, or one made where an empty list came from.
    fn owner(&mut self, list: List) -> Result<Option<Item>, String> {
        let Some(nodes) = self.lists.get(list as usize) else { return Ok(None) };
        match (nodes.items.as_slice(), nodes.origin.clone()) {
            ([only], _) if self.document(*only).kind(only.node) == NodeKind::Element => Ok(Some(*only)),
            ([], Some((parent, key))) => {
                let selector = Selector::of(&key);
                if selector.deep || selector.attribute || !xml::is_ncname(selector.local) {
                    return Ok(None);
                }
                let (uri, local) = (selector.namespace.unwrap_or("").to_owned(), selector.local.to_owned());
                let document = self.change(parent.document);
                let made = Item { node: document.append_element(parent.node, "", &uri, &local), ..parent };
                self.lists[list as usize].items = vec![made];
                Ok(Some(made))
            }
            _ => Ok(None),
        }
    }

    /// A node gets a text, or is replaced by nodes.
    fn fill(&mut self, item: Item, value: Insertion<'_>) -> Result<(), String> {
        match value {
            Insertion::Text(text) => {
                self.change(item.document).set_text(item.node, text);
                Ok(())
            }
            Insertion::List(from) => {
                let copies = self.copies(from, item.document)?;
                let document = self.change(item.document);
                for copy in copies {
                    document.insert_before(item.node, copy);
                }
                document.detach(item.node);
                Ok(())
            }
        }
    }

    /// Copies of the nodes of a list in another document, in no tree yet.
    fn copies(&mut self, from: List, document: u32) -> Result<Vec<NodeId>, String> {
        let Some(value) = self.value(from) else { return Ok(Vec::new()) };
        let total: usize = self.documents.iter().map(Document::node_count).sum();
        if total + value.document.node_count() > MAX_NODES {
            return Err("the script makes too much XML".to_owned());
        }
        let target = self.change(document);
        let fragment = target.create_fragment();
        Ok(value.nodes.iter().map(|&node| target.copy_from(fragment, &value.document, node)).collect())
    }

    /// `appendChild`, `prependChild`, `setChildren`: puts nodes or a text into the one element of a list.
    pub(crate) fn insert(&mut self, list: List, how: &str, value: Insertion<'_>) -> Result<(), String> {
        let item = self.owner(list)?.ok_or("only one element can be added to")?;
        let nodes = match value {
            Insertion::List(from) => self.copies(from, item.document)?,
            Insertion::Text(text) => {
                let document = self.change(item.document);
                let fragment = document.create_fragment();
                if text.is_empty() { Vec::new() } else { vec![document.append_text(fragment, text)] }
            }
        };
        let document = self.change(item.document);
        match how {
            "set" => document.remove_children(item.node),
            "prepend" => {
                if let Some(first) = document.first_child(item.node) {
                    for node in nodes {
                        document.insert_before(first, node);
                    }
                    return Ok(());
                }
            }
            _ => {}
        }
        for node in nodes {
            document.append(item.node, node);
        }
        Ok(())
    }

    /// Puts nodes or a text beside the one node of a list that is in a tree.
    pub(crate) fn beside(&mut self, list: List, before: bool, value: Insertion<'_>) -> Result<(), String> {
        let &[item] = self.items(list) else { return Err("a sibling is put beside one node".to_owned()) };
        if self.document(item).parent(item.node).is_none() {
            return Err("there is nothing to put the sibling into: the node has no parent".to_owned());
        }
        let nodes = match value {
            Insertion::List(from) => self.copies(from, item.document)?,
            Insertion::Text(text) => {
                let document = self.change(item.document);
                let fragment = document.create_fragment();
                vec![document.append_text(fragment, text)]
            }
        };
        let document = self.change(item.document);
        if before {
            for node in nodes {
                document.insert_before(item.node, node);
            }
        } else {
            for &node in nodes.iter().rev() {
                document.insert_after(item.node, node);
            }
        }
        Ok(())
    }

    /// `delete x.key`.
    pub(crate) fn delete(&mut self, list: List, key: &str) -> Result<(), String> {
        let found = self.get(list, key)?;
        self.detach(found);
        Ok(())
    }

    /// Takes the nodes of a list out of their trees.
    pub(crate) fn detach(&mut self, list: List) {
        for item in self.items(list).to_vec() {
            let document = self.change(item.document);
            if document.kind(item.node) == NodeKind::Attribute {
                let (uri, local) =
                    (document.namespace(item.node).to_owned(), document.local(item.node).to_owned());
                if let Some(element) = document.parent(item.node) {
                    document.remove_attribute(element, &uri, &local);
                }
            } else {
                document.detach(item.node);
            }
        }
    }

    /// `setLocalName`.
    pub(crate) fn rename(&mut self, list: List, local: &str) -> Result<(), String> {
        let item = self.owner(list)?.ok_or("only one element can be renamed")?;
        if !xml::is_ncname(local) {
            return Err(format!("`{local}` is not a name of an element"));
        }
        let document = self.change(item.document);
        let (prefix, uri) = (document.prefix(item.node).to_owned(), document.namespace(item.node).to_owned());
        document.rename(item.node, &prefix, &uri, local);
        Ok(())
    }
}

/// Whether the wrapped text has several elements.
fn several(document: &Document) -> bool {
    document.document_element().is_some_and(|root| {
        document.children(root).filter(|&node| document.kind(node) == NodeKind::Element).count() != 1
    })
}

/// What a script puts somewhere.
#[derive(Clone, Copy)]
pub(crate) enum Insertion<'a> {
    /// A text.
    Text(&'a str),
    /// Nodes.
    List(List),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_select_as_in_e4x() {
        let mut trees = Trees::default();
        let root = trees.parse("<a i='1'><b>x</b><n:b xmlns:n='u'>y</n:b>t<c><b>z</b></c></a>").unwrap();
        for (key, expected) in [
            ("b", "x"),
            ("*::b", "x|y"),
            ("{u}b", "y"),
            ("..b", "x|z"),
            ("..*::b", "x|y|z"),
            ("@i", "1"),
            ("@*", "1"),
            ("..@i", "1"),
            ("*", "x|y|t|<c><b>z</b></c>"),
            ("nothing", ""),
            ("0", "<a i=\"1\"><b>x</b><n:b xmlns:n=\"u\">y</n:b>t<c><b>z</b></c></a>"),
            ("7", ""),
        ] {
            let list = trees.get(root, key).unwrap();
            let parts: Vec<String> = (0..trees.length(list))
                .map(|at| {
                    let one = trees.get(list, &at.to_string()).unwrap();
                    trees.text(one)
                })
                .collect();
            assert_eq!(parts.join("|"), expected, "{key}");
        }
    }

    #[test]
    fn members_are_assigned_and_deleted() {
        let mut trees = Trees::default();
        let root = trees.parse("<a><b>1</b><b>2</b></a>").unwrap();
        let other = trees.parse("<d>4</d>").unwrap();
        trees.set(root, "b", Insertion::Text("x<")).unwrap();
        trees.set(root, "@k", Insertion::Text("v")).unwrap();
        trees.set(root, "c", Insertion::List(other)).unwrap();
        let e = trees.get(root, "e").unwrap();
        trees.set(e, "f", Insertion::Text("5")).unwrap();
        trees.insert(root, "append", Insertion::List(other)).unwrap();
        assert_eq!(trees.xml(root), "<a k=\"v\"><b>x&lt;</b><d>4</d><e><f>5</f></e><d>4</d></a>");
        trees.delete(root, "d").unwrap();
        trees.delete(root, "@k").unwrap();
        trees.insert(root, "set", Insertion::Text("t")).unwrap();
        trees.rename(root, "z").unwrap();
        assert_eq!(trees.xml(root), "<z>t</z>");
        assert!(
            trees.set(root, "..b", Insertion::Text("")).is_err()
                && trees.set(root, "a b", Insertion::Text("")).is_err()
        );
        assert!(
            trees.parse("<a>").is_err() && trees.parse("<a/><b/>").is_ok() && trees.parse("text").is_ok()
        );
        let w = trees.parse("<w><a/>t<b k='1'/></w>").unwrap();
        let b = trees.get(w, "b").unwrap();
        trees.watch(Some(root));
        trees.beside(b, true, Insertion::List(other)).unwrap();
        trees.beside(b, false, Insertion::Text("u")).unwrap();
        assert!(!trees.take_changed());
        let [next, previous] = ["next", "previous"].map(|kind| trees.step(b, kind).unwrap());
        assert_eq!((trees.text(next), trees.xml(previous)), ("u".to_owned(), "<d>4</d>".to_owned()));
        trees.watch(Some(w));
        let k = trees.get(b, "@k").unwrap();
        for list in [next, k] {
            trees.detach(list);
        }
        assert!(trees.take_changed() && !trees.take_changed());
        assert!(trees.beside(next, true, Insertion::Text("v")).is_err());
        assert_eq!(trees.xml(w), "<w><a/>t<d>4</d><b/></w>");
        let empty = trees.get(root, "none").unwrap();
        assert!(trees.value(empty).is_none() && trees.set(empty, "3", Insertion::Text("")).is_err());
    }
}
