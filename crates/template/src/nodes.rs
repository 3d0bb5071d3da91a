//! XML in templates: what `.name`, `["xpath"]` and `.@@special` give of nodes.

use crate::ast::{Error, Place};
use crate::run::{Res, Run};
use crate::value::{Text, Value};
use std::rc::Rc;
use xml::{Document, NodeId, NodeKind};

type Prefixes = [(String, String)];

/// A member of nodes: children by name, `*`, `**`, attributes (`@name`, `@@`), special ones (`@@text`), or what an XPath
/// selects.
pub(crate) fn member<'m>(
    run: &mut Run<'m>,
    document: &'m Document,
    nodes: &[NodeId],
    key: &str,
    prefixes: &Prefixes,
    place: Place,
) -> Res<Option<Value<'m>>> {
    let error = |why: String| match meter::stopped() {
        Some(stop) => Error::fatal(stop.to_string(), place),
        None => Error::new(why, place),
    };
    if let Some(special) = key.strip_prefix("@@").filter(|special| !special.is_empty()) {
        if special == "text" && nodes.len() != 1 {
            let mut whole = String::new();
            for node in nodes {
                let text = document.string_value(*node);
                run.make(text.len(), place)?;
                whole.push_str(&text);
            }
            return Ok(Some(Value::made(whole)));
        }
        let [node] = nodes else {
            return Err(error(format!("`@@{special}` is of one XML node, these are {}", nodes.len())));
        };
        let value = special_member(document, *node, special).map_err(error)?;
        if let Value::Text(text) = &value {
            run.make(text.len(), place)?;
        }
        return Ok(Some(value));
    }
    let is_element = |node: NodeId| document.kind(node) == NodeKind::Element;
    let has_name = |node: NodeId, name: &str| matches(document, node, name, prefixes);
    let has_children = |node: NodeId| matches!(document.kind(node), NodeKind::Element | NodeKind::Document);
    let mut found = Collector { run, place, nodes: Vec::new() };
    for &node in nodes {
        found.run.spend(1, place)?;
        match key {
            "*" => found.add(document.children(node), is_element)?,
            "**" => found.add(document.descendants(node), is_element)?,
            "@@" | "@*" if is_element(node) => found.add(document.attributes(node), |_| true)?,
            "@@" | "@*" => {}
            _ if key.starts_with('@') && is_name(&key[1..]) => {
                if is_element(node) {
                    found.add(document.attributes(node), |attribute| has_name(attribute, &key[1..]))?;
                }
            }
            _ if is_name(key) => {
                if has_children(node) {
                    found.add(document.children(node), |child| is_element(child) && has_name(child, key))?;
                }
            }
            _ => break,
        }
    }
    match key {
        "*" | "**" | "@@" | "@*" => {}
        _ if is_name(key.strip_prefix('@').unwrap_or(key)) => {}
        _ => return by_xpath(document, nodes, key, prefixes).map_err(error),
    }
    Ok(Some(Value::Nodes(document, found.nodes.into())))
}

/// Nodes that are being collected, counted as they come.
struct Collector<'r, 'm> {
    run: &'r mut Run<'m>,
    place: Place,
    nodes: Vec<NodeId>,
}

impl Collector<'_, '_> {
    fn add(&mut self, from: impl Iterator<Item = NodeId>, wanted: impl Fn(NodeId) -> bool) -> Res<()> {
        /// Nodes that are looked at for one unit.
        const STRIDE: usize = 8;
        let mut counted = self.nodes.len();
        for (at, node) in from.enumerate() {
            if at % STRIDE == STRIDE - 1 {
                self.run.spend(1, self.place)?;
                self.run.make_items(self.nodes.len() - counted, self.place)?;
                counted = self.nodes.len();
            }
            if wanted(node) {
                self.nodes.push(node);
            }
        }
        self.run.make_items(self.nodes.len() - counted, self.place)
    }
}

/// A name, perhaps with a prefix.
fn is_name(key: &str) -> bool {
    let mut parts = key.splitn(2, ':');
    parts.all(xml::is_ncname)
}

/// Whether an element or attribute has a name: without a prefix it is in no namespace, or in that of the prefix `D`.
fn matches(document: &Document, node: NodeId, name: &str, prefixes: &Prefixes) -> bool {
    let (prefix, local) = name.split_once(':').unwrap_or(("", name));
    if document.local(node) != local {
        return false;
    }
    let uri = document.namespace(node);
    let of = |prefix: &str| prefixes.iter().find(|(bound, _)| bound == prefix).map(|(_, uri)| uri.as_str());
    let attribute = document.kind(node) == NodeKind::Attribute;
    match prefix {
        "" if attribute => uri.is_empty(),
        "" => uri == of("D").unwrap_or(""),
        "N" => uri.is_empty(),
        "xml" => uri == xml::XML_NS,
        prefix => of(prefix) == Some(uri),
    }
}

fn special_member<'m>(document: &'m Document, node: NodeId, special: &str) -> Result<Value<'m>, String> {
    let kind = document.kind(node);
    let named = matches!(kind, NodeKind::Element | NodeKind::Attribute);
    let made = |text: String| Ok(Value::made(text));
    match special {
        "text" => Ok(Value::Text(document.string_value(node).into())),
        "markup" => made(match kind {
            NodeKind::Document => {
                document.children(node).map(|child| xml::to_string(document, child)).collect()
            }
            _ => xml::to_string(document, node),
        }),
        "nested_markup" => {
            made(document.children(node).map(|child| xml::to_string(document, child)).collect())
        }
        "previous_sibling_element" | "next_sibling_element" => {
            let forward = special == "next_sibling_element";
            let beside =
                |node| if forward { document.next_sibling(node) } else { document.prev_sibling(node) };
            // Blank texts, comments and processing instructions do not stand between.
            let significant = std::iter::successors(beside(node), |node| beside(*node)).find(|node| {
                match document.kind(*node) {
                    NodeKind::Element => true,
                    NodeKind::Text => !document.text(*node).trim().is_empty(),
                    _ => false,
                }
            });
            let element = significant.filter(|node| document.kind(*node) == NodeKind::Element);
            Ok(Value::Nodes(document, element.into_iter().collect()))
        }
        "local_name" if named => Ok(Value::Text(Text::Lent(document.local(node)))),
        "qname" if named => made(match document.prefix(node) {
            "" => document.local(node).to_owned(),
            prefix => format!("{prefix}:{}", document.local(node)),
        }),
        "start_tag" | "end_tag" | "attributes_markup" if kind == NodeKind::Element => {
            let whole = xml::to_string(document, node);
            let end = whole.find('>').unwrap_or(0);
            let name = whole[1..end].split([' ', '/', '\n', '\t']).next().unwrap_or("").to_owned();
            made(match special {
                "start_tag" => format!("{}>", whole[..end].trim_end_matches('/')),
                "end_tag" => format!("</{name}>"),
                _ => whole[1 + name.len()..end].trim_end_matches('/').trim().to_owned(),
            })
        }
        _ => Err(format!("XML has no `@@{special}` here")),
    }
}

fn by_xpath<'m>(
    document: &'m Document,
    nodes: &[NodeId],
    key: &str,
    prefixes: &Prefixes,
) -> Result<Option<Value<'m>>, String> {
    let [node] = nodes else {
        return Err(format!("an XPath starts from one XML node, these are {}", nodes.len()));
    };
    let namespaces = prefixes.to_vec();
    let options = xpath::CompileOptions { namespaces: &namespaces, ..xpath::CompileOptions::default() };
    let in_words = |error: xpath::XPathError| format!("the XPath `{key}`: {}", error.sentence());
    let expression = xpath::Expression::compile(key, &options).map_err(in_words)?;
    let context = xpath::Context::at(document, xpath::Node::new(*node));
    let value = expression.evaluate(&context).map_err(in_words)?;
    Ok(Some(match value {
        xpath::Value::NodeSet(set) => {
            let found: Rc<[NodeId]> = set.iter().filter(|n| !n.is_namespace()).map(|n| n.id).collect();
            Value::Nodes(document, found)
        }
        xpath::Value::Boolean(is) => Value::Boolean(is),
        xpath::Value::Number(n) => Value::Number(
            crate::number::Number::parse(&xpath::number::format(n))
                .unwrap_or(crate::number::Number::Double(n)),
        ),
        xpath::Value::String(text) => Value::made(&*text),
        _ => return Err(format!("the XPath `{key}` gives nothing that a template could use")),
    }))
}
