//! XML in templates: what `.name`, `["xpath"]` and `.@@special` give of nodes.

use crate::value::{Text, Value};
use std::rc::Rc;
use xml::{Document, NodeId, NodeKind};

type Prefixes = [(String, String)];

/// A member of nodes: children by name, `*`, `**`, attributes (`@name`, `@@`), special ones (`@@text`), or what an XPath
/// selects.
pub(crate) fn member<'m>(
    document: &'m Document,
    nodes: &[NodeId],
    key: &str,
    prefixes: &Prefixes,
) -> Result<Option<Value<'m>>, String> {
    if let Some(special) = key.strip_prefix("@@").filter(|special| !special.is_empty()) {
        let [node] = nodes else {
            return Err(format!("`@@{special}` is of one XML node, these are {}", nodes.len()));
        };
        return special_member(document, *node, special).map(Some);
    }
    let select = |each: &mut dyn FnMut(NodeId, &mut Vec<NodeId>)| {
        let mut found = Vec::new();
        for node in nodes {
            each(*node, &mut found);
        }
        Ok(Some(Value::Nodes(document, found.into())))
    };
    let is_element = |node: NodeId| document.kind(node) == NodeKind::Element;
    let has_name = |node: NodeId, name: &str| matches(document, node, name, prefixes);
    match key {
        "*" => select(&mut |node, found| found.extend(document.children(node).filter(|n| is_element(*n)))),
        "**" => {
            meter::spend(document.node_count() as u64 >> 3).map_err(|stop| stop.to_string())?;
            select(&mut |node, found| found.extend(document.descendants(node).filter(|n| is_element(*n))))
        }
        "@@" | "@*" => select(&mut |node, found| {
            if is_element(node) {
                found.extend(document.attributes(node));
            }
        }),
        _ if key.starts_with('@') && is_name(&key[1..]) => select(&mut |node, found| {
            if is_element(node) {
                found.extend(document.attributes(node).filter(|own| has_name(*own, &key[1..])));
            }
        }),
        _ if is_name(key) => select(&mut |node, found| {
            if matches!(document.kind(node), NodeKind::Element | NodeKind::Document) {
                found.extend(document.children(node).filter(|own| is_element(*own) && has_name(*own, key)));
            }
        }),
        _ => by_xpath(document, nodes, key, prefixes),
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
    let of = |prefix: &str| prefixes.iter().find(|(own, _)| own == prefix).map(|(_, uri)| uri.as_str());
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
    let said = |error: xpath::XPathError| format!("the XPath `{key}`: {}", error.sentence());
    let expression = xpath::Expression::compile(key, &options).map_err(said)?;
    let context = xpath::Context::at(document, xpath::Node::new(*node));
    let value = expression.evaluate(&context).map_err(said)?;
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
