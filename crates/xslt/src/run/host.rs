//! The host of expressions in a transformation: variables, functions, documents.

use super::{Engine, Focus, Frame, Res, node_set, nodes};
use crate::error::XsltError;
use crate::expr::{GLOBAL, UNKNOWN_FUNCTION, USER_FUNCTION, XPath};
use crate::functions::{self, Function, dates, strings};
use crate::model::{Place, Scope};
use crate::names::Name;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use xml::{Builder, Document, NodeKind, ParseOptions};
use xpath::atomic::{Atomic, AtomicType, Kind, Moment, MomentKind};
use xpath::{Collation, Context, DocId, ExtensionName, Host, Item, Node, NodeSet, Type, Value};

/// Nested evaluations of dynamic expressions per stack.
const EVALUATIONS: u32 = 100;

/// Composite keys with their nodes.
type Keyed = (Vec<Atomic>, Vec<Node>);

/// Nodes by the value of a key.
#[derive(Default)]
pub(super) struct KeyIndex {
    texts: HashMap<Box<str>, Vec<Node>>,
    /// By values that are not strings (XSLT 2.0).
    values: HashMap<xpath::atomic::Bucket, Vec<(Atomic, Vec<Node>)>>,
    /// By composite values (XSLT 3.0).
    composite: HashMap<Vec<xpath::atomic::Bucket>, Vec<Keyed>>,
}

impl KeyIndex {
    pub fn get(&self, text: &str) -> Option<&Vec<Node>> {
        self.texts.get(text)
    }

    fn of_value(&self, atom: &Atomic) -> Option<&Vec<Node>> {
        let alike = self.values.get(&atom.bucket())?;
        alike.iter().find(|(value, _)| same_value(value, atom)).map(|(_, nodes)| nodes)
    }

    fn of_values(&self, atoms: &[Atomic]) -> Option<&Vec<Node>> {
        let hash: Vec<_> = atoms.iter().map(Atomic::bucket).collect();
        let alike = self.composite.get(&hash)?;
        alike.iter().find(|(values, _)| same_values(values, atoms)).map(|(_, nodes)| nodes)
    }

    fn add_values(&mut self, atoms: Vec<Atomic>, node: Node) {
        let alike = self.composite.entry(atoms.iter().map(Atomic::bucket).collect()).or_default();
        match alike.iter_mut().find(|(values, _)| same_values(values, &atoms)) {
            Some((_, list)) if list.last() == Some(&node) => {}
            Some((_, list)) => list.push(node),
            None => alike.push((atoms, vec![node])),
        }
    }

    fn add(&mut self, text: &str, node: Node) {
        let list = match self.texts.get_mut(text) {
            Some(list) => list,
            None => self.texts.entry(text.into()).or_default(),
        };
        if list.last() != Some(&node) {
            list.push(node);
        }
    }

    fn add_value(&mut self, atom: Atomic, node: Node) {
        let alike = self.values.entry(atom.bucket()).or_default();
        match alike.iter_mut().find(|(value, _)| same_value(value, &atom)) {
            Some((_, list)) if list.last() == Some(&node) => {}
            Some((_, list)) => list.push(node),
            None => alike.push((atom, vec![node])),
        }
    }
}

/// Equal, where NaN equals itself.
fn same_value(a: &Atomic, b: &Atomic) -> bool {
    let nan = |a: &Atomic| a.is_numeric() && a.to_double().is_nan();
    a.equals(b) || nan(a) && nan(b)
}

fn same_values(a: &[Atomic], b: &[Atomic]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b))
}

/// The host of one evaluation.
pub(super) struct ExprHost<'h, 'e> {
    pub engine: &'h Engine<'e>,
    pub locals: &'h [Value],
    pub current: Node,
    pub xpath: &'h XPath,
    pub depth: u32,
    pub next: u32,
    /// See [`Focus`].
    pub dynamic: u32,
    /// An error from an inner call, with its place; the expression has its message only.
    pub failed: RefCell<Option<Box<XsltError>>>,
}

/// A host with documents only.
pub(super) struct DocHost<'h, 'e> {
    pub engine: &'h Engine<'e>,
}

impl Host for DocHost<'_, '_> {
    fn document(&self, id: DocId) -> Option<&Document> {
        self.engine.docs.get(id)
    }

    fn text_of_document(&self, id: DocId) -> Option<&str> {
        self.engine.docs.text(id)
    }

    fn now(&self) -> Option<Moment> {
        Some(self.engine.now())
    }
}

impl Host for ExprHost<'_, '_> {
    fn variable_by_name(&self, name: &ExtensionName) -> Result<Option<Value>, String> {
        if name.slot & GLOBAL != 0 {
            let value = self.engine.global((name.slot & !GLOBAL) as usize, self.depth, self.next);
            return value.map(Some).map_err(|error| self.keep(error));
        }
        Ok(self.locals.get(name.slot as usize).cloned())
    }

    fn call_by_name(
        &self,
        name: &ExtensionName,
        args: &[Value],
        cx: &Context<'_>,
    ) -> Result<Option<Value>, String> {
        if name.slot == UNKNOWN_FUNCTION {
            return Ok(None);
        }
        if name.slot >= USER_FUNCTION {
            return self.user_function(name.slot - USER_FUNCTION, args, cx).map(Some);
        }
        match functions::get(name.slot) {
            Some(builtin) => self.builtin(builtin, args, cx).map(Some),
            None => Ok(None),
        }
    }

    fn current(&self) -> Option<Node> {
        Some(self.current)
    }

    fn document(&self, id: DocId) -> Option<&Document> {
        self.engine.docs.get(id)
    }

    fn text_of_document(&self, id: DocId) -> Option<&str> {
        self.engine.docs.text(id)
    }

    fn load(&self, uri: &str) -> Result<Option<Node>, String> {
        self.engine.load(uri, self.xpath.base.as_deref().unwrap_or(""))
    }

    fn adopt(&self, doc: Document) -> Result<Node, String> {
        if self.engine.docs.count() >= self.engine.options.limits.documents {
            return Err("the limit of documents is exceeded".into());
        }
        let base = self.xpath.base.as_deref().unwrap_or("").to_owned();
        let id = self.engine.docs.add(doc, base.into(), false).ok_or("there are too many documents")?;
        Ok(Node::in_document(id, Document::ROOT))
    }

    fn read_text(&self, uri: &str, encoding: Option<&str>) -> Result<String, String> {
        let text = self.engine.unparsed_text(uri, self.xpath.base.as_deref().unwrap_or(""), encoding)?;
        Ok(text)
    }

    fn find_function(&self, uri: &str, local: &str, arity: usize) -> Option<ExtensionName> {
        let named =
            |slot: u32| ExtensionName { prefix: "".into(), uri: Some(uri.into()), local: local.into(), slot };
        if let Some(name) = self.engine.symbols.find(uri, local) {
            let mut all = self.engine.plan.functions.iter();
            let found = all.find(|(_, f)| f.name == name && f.parameters.len() == arity);
            if let Some((slot, _)) = found {
                return Some(named(USER_FUNCTION + slot));
            }
        }
        let namespace = if uri == "http://www.w3.org/2005/xpath-functions" { "" } else { uri };
        let (slot, builtin) = functions::find(namespace, local, true)?;
        (builtin.arity.0..=builtin.arity.1).contains(&arity).then(|| named(slot))
    }

    fn document_uri(&self, id: DocId) -> Option<String> {
        Some(crate::resolver::as_uri(self.engine.docs.uri(id)))
    }

    fn static_base_uri(&self) -> Option<String> {
        self.xpath.base.as_deref().filter(|base| !base.is_empty()).map(crate::resolver::as_uri)
    }

    fn now(&self) -> Option<Moment> {
        Some(self.engine.now())
    }
}

impl<'h> ExprHost<'h, '_> {
    /// Keeps an error from an inner call; returns its message for the expression.
    fn keep(&self, error: Box<XsltError>) -> String {
        let message = error.message.clone();
        *self.failed.borrow_mut() = Some(error);
        message
    }

    /// The error from an inner call, if that is why the expression failed.
    pub fn failed(&self, error: &xpath::XPathError) -> Option<Box<XsltError>> {
        self.failed.take().filter(|inner| inner.message == error.message)
    }

    /// A copy of a node as a tree of its own.
    fn copy_of(&self, node: Node) -> Result<Node, String> {
        let from = self.engine.doc(node.doc);
        self.engine
            .spend(from.subtree_end(node.id).index().saturating_sub(node.id.index()) as u64)
            .map_err(|e| e.message)?;
        let mut doc = Document::new();
        let id = match from.kind(node.id) {
            NodeKind::Document => {
                let copy = self.engine.copied_document(node, Place::default());
                return copy.map_err(|error| error.message);
            }
            NodeKind::Attribute => {
                let holder = doc.create_element("", "", "attributes");
                let (prefix, namespace, local) =
                    (from.prefix(node.id), from.namespace(node.id), from.local(node.id));
                doc.set_attribute(holder, prefix, namespace, local, from.text(node.id));
                doc.attributes(holder).next().unwrap_or(holder)
            }
            _ => {
                let id = doc.copy_from(Document::ROOT, from, node.id);
                doc.detach(id);
                id
            }
        };
        let Value::NodeSet(root) = self.engine.fragment(doc)? else { return Ok(node) };
        Ok(root.first().map_or(node, |root| Node::in_document(root.doc, id)))
    }

    /// A copy of a node with its ancestors and their attributes, without their other content (XSLT 3.0 section 18.4).
    fn snapshot(&self, node: Node) -> Result<Node, String> {
        let from = self.engine.doc(node.doc);
        let mut above = Vec::new();
        let mut at = from.parent(node.id);
        while let Some(id) = at {
            above.push(id);
            at = from.parent(id);
        }
        let is_document = above.last().is_some_and(|top| from.kind(*top) == NodeKind::Document);
        if above.is_empty() {
            return self.copy_of(node);
        }
        let size = from.subtree_end(node.id).index().saturating_sub(node.id.index()) + above.len();
        self.engine.spend(size as u64).map_err(|e| e.message)?;
        let mut doc = Document::new();
        let mut parent = Document::ROOT;
        for id in above.iter().rev().skip(usize::from(is_document)) {
            let element = doc.append_element(parent, from.prefix(*id), from.namespace(*id), from.local(*id));
            // (Inherited namespaces are declared at the copied ancestors.)
            for (prefix, uri) in from.namespace_declarations(*id) {
                doc.declare_namespace(element, prefix, uri);
            }
            for attribute in from.attributes(*id) {
                let (prefix, namespace) = (from.prefix(attribute), from.namespace(attribute));
                doc.set_attribute(element, prefix, namespace, from.local(attribute), from.text(attribute));
            }
            parent = element;
        }
        let copy = match from.kind(node.id) {
            NodeKind::Attribute => {
                let (namespace, local) = (from.namespace(node.id), from.local(node.id));
                let mut attributes = doc.attributes(parent);
                attributes
                    .find(|id| doc.local(*id) == local && doc.namespace(*id) == namespace)
                    .unwrap_or(parent)
            }
            _ => doc.copy_from(parent, from, node.id),
        };
        let Value::NodeSet(root) = self.engine.fragment(doc)? else { return Ok(node) };
        Ok(root.first().map_or(node, |root| Node::in_document(root.doc, copy)))
    }

    /// `func:function`: arguments by position, parameters without one take their defaults.
    fn user_function(&self, slot: u32, args: &[Value], cx: &Context<'_>) -> Result<Value, String> {
        let Some(function) = self.engine.plan.functions.get(&slot) else {
            return Err("the function has no definition".into());
        };
        if args.len() > function.parameters.len() {
            let name = self.engine.symbols.show(function.name);
            return Err(format!("{name}() takes at most {} arguments", function.parameters.len()));
        }
        if function.version2 {
            let key = if function.keeps { super::memo::Memo::key(slot, args) } else { None };
            if let Some(result) = key.as_deref().and_then(|key| self.engine.memo.get(key)) {
                return Ok(result);
            }
            let value = self.version2_function(function, args)?;
            if let Some(key) = key {
                self.engine.memo.put(key, &value);
            }
            return Ok(value);
        }
        let mut frame = Frame::default();
        // One more slot, for the result.
        frame.locals.resize(function.slots + 1, Value::Empty);
        for ((_, slot), value) in function.parameters.iter().zip(args) {
            frame.locals[*slot] = value.clone();
            frame.passed |= 1 << slot;
        }
        let focus = Focus {
            position: cx.position as u32,
            size: cx.size as u32,
            ..Focus::new(cx.node, self.depth, self.next)
        };
        let engine = self.engine;
        let mut doc = Document::new();
        let mut out = super::Out::tree(Builder::new(&mut doc, Document::ROOT));
        engine
            .enter_from_expression(focus, function.place, |focus| {
                engine.exec(&function.body, focus, &mut frame, &mut out)
            })
            .map_err(|error| self.keep(error))?;
        Ok(match frame.locals.pop() {
            Some(Value::Empty) | None => Value::from(""),
            Some(value) => value,
        })
    }

    /// `xsl:function`: the context item is absent; the result is the value of its body.
    fn version2_function(&self, function: &crate::model::Function, args: &[Value]) -> Result<Value, String> {
        let engine = self.engine;
        let focus = Focus::new(Node::ABSENT, self.depth, self.next);
        let value = engine
            .enter_from_expression(focus, function.place, |focus| engine.run_function(function, args, focus));
        value.map_err(|error| self.keep(error))
    }

    fn builtin(
        &self,
        builtin: &functions::Builtin,
        args: &[Value],
        cx: &Context<'_>,
    ) -> Result<Value, String> {
        let engine = self.engine;
        let host = DocHost { engine };
        let conversions = Context { host: &host, ..*cx };
        let text = |at: usize| -> Result<String, String> {
            match args.get(at) {
                Some(value) => {
                    value.to_string_in(&conversions).map(|s| s.into_owned()).map_err(|e| e.message)
                }
                None => Ok(String::new()),
            }
        };
        let number = |at: usize| -> Result<f64, String> {
            args.get(at).map_or(Ok(f64::NAN), |value| value.to_number_in(&conversions).map_err(|e| e.message))
        };
        let set = |at: usize| -> Result<NodeSet, String> {
            args.get(at)
                .and_then(node_set)
                .ok_or_else(|| format!("argument {} of {}() must be a node-set", at + 1, builtin.local))
        };
        let sorted = |nodes: Vec<Node>| -> Result<Value, String> {
            NodeSet::sorted(nodes, &conversions).map(Value::NodeSet).map_err(|e| e.message)
        };
        Ok(match builtin.function {
            Function::Key => {
                let name = text(0)?;
                let name = self.resolve(&name).and_then(|(ns, local)| engine.symbols.find(&ns, &local));
                let Some(name) = name.filter(|name| engine.plan.keys.contains_key(name)) else {
                    return Err(format!("there is no key \"{}\"", text(0)?));
                };
                let within = match args.get(2).map(node_set) {
                    None => None,
                    Some(Some(nodes)) if nodes.len() == 1 => nodes.first(),
                    Some(_) => {
                        return Err("XPTY0004: the third argument of key() must be a single node".into());
                    }
                };
                let doc = within.map_or(cx.node.doc, |node| node.doc);
                if doc == DocId::ATOMIC {
                    return Err("XTDE1270: key() needs a context node or a third argument".into());
                }
                let focus = Focus::new(Node::in_document(doc, Document::ROOT), self.depth, self.next);
                let index = engine.key_index(name, &focus).map_err(|error| self.keep(error))?;
                let collation = engine.collation_of_key(name);
                let get = |value: &str| index.get(&collation.key(value)).map_or(&[][..], Vec::as_slice);
                let typed = engine.plan.keys.get(&name).is_some_and(|keys| keys.iter().any(|key| key.typed));
                let get_item = |item: Item| match engine.atom(item) {
                    Atomic::Untyped(s) | Atomic::String(s) | Atomic::Uri(s) => get(&s).to_vec(),
                    other if typed => index.of_value(&other).cloned().unwrap_or_default(),
                    other => get(&other.to_text()).to_vec(),
                };
                let composite = engine
                    .plan
                    .keys
                    .get(&name)
                    .and_then(|keys| keys.first())
                    .is_some_and(|key| key.composite);
                let whole = || -> Vec<Node> {
                    let items = args.get(1).into_iter().flat_map(Value::items);
                    let atoms: Vec<Atomic> =
                        items.map(|item| collation.atom(&engine.key_atom(item)).into_owned()).collect();
                    index.of_values(&atoms).cloned().unwrap_or_default()
                };
                if composite && within.is_none() {
                    return sorted(whole());
                }
                if let Some(top) = within {
                    let mut found = Vec::new();
                    if composite {
                        found = whole();
                    } else if let Some(values) = args.get(1) {
                        found.extend(values.items().flat_map(get_item));
                    }
                    let doc = engine.doc(doc);
                    found.retain(|node: &Node| {
                        let mut at = Some(node.id);
                        while let Some(id) = at {
                            if id == top.id {
                                return true;
                            }
                            at = doc.parent(id);
                        }
                        false
                    });
                    return sorted(found);
                }
                if let Some(values) = args.get(1)
                    && (matches!(values, Value::Sequence(_))
                        || typed && !matches!(values, Value::NodeSet(_) | Value::String(_)))
                {
                    return sorted(values.items().flat_map(get_item).collect());
                }
                match args.get(1).and_then(node_set) {
                    Some(values) => {
                        let mut found = Vec::new();
                        for value in values.iter() {
                            found.extend_from_slice(get(&engine.node_string(value)));
                        }
                        if values.len() == 1 {
                            Value::NodeSet(NodeSet::from_ordered(&found))
                        } else {
                            sorted(found)?
                        }
                    }
                    None => Value::NodeSet(NodeSet::from_ordered(get(&text(1)?))),
                }
            }
            Function::Document => {
                let stylesheet = self.xpath.base.as_deref().unwrap_or("");
                let base = match args.get(1) {
                    Some(_) => match set(1)?.first() {
                        Some(node) => Some(engine.docs.uri(node.doc).to_owned()),
                        // Without a base URI it cannot be resolved.
                        None => return Ok(Value::NodeSet(NodeSet::new())),
                    },
                    None => None,
                };
                match args.first() {
                    // The second argument, if there is one, is the base for all; else nodes have their own.
                    Some(Value::NodeSet(_) | Value::Empty | Value::Sequence(_)) => {
                        let mut found = Vec::new();
                        for item in args[0].items() {
                            let base = match (&base, &item) {
                                (Some(base), _) => base.clone(),
                                (None, Item::Node(node)) => engine.docs.uri(node.doc).to_owned(),
                                (None, Item::Atomic(_)) => stylesheet.to_owned(),
                            };
                            found.extend(engine.load(&engine.item_text(&item), &base)?);
                        }
                        sorted(found)?
                    }
                    _ => {
                        let base = base.as_deref().unwrap_or(stylesheet);
                        engine.load(&text(0)?, base)?.map_or(Value::NodeSet(NodeSet::new()), Value::from)
                    }
                }
            }
            Function::FormatNumber => {
                let format = match args.get(2) {
                    None => Some(&engine.plan.default_format),
                    Some(_) => self
                        .resolve(&text(2)?)
                        .and_then(|(ns, local)| engine.symbols.find(&ns, &local))
                        .and_then(|name| engine.plan.formats.get(&name)),
                };
                let Some(format) = format else {
                    return Err(format!("there is no decimal format \"{}\"", text(2)?));
                };
                if engine.plan.version2 && self.xpath.expression.version() != xpath::Version::V1 {
                    let given = args.first().and_then(|value| value.item(0)).map(|item| engine.atom(item));
                    let given = match given {
                        None => Atomic::Double(f64::NAN),
                        Some(atom) if atom.is_numeric() => atom,
                        Some(_) => Atomic::Double(number(0)?),
                    };
                    let written =
                        xpath::format::picture::format(&given, &text(1)?, format, engine.plan.version3);
                    let code = if engine.plan.version3 { "FODF1310" } else { "XTDE1310" };
                    return written.map(Value::from).map_err(|e| format!("{code}: {e}"));
                }
                Value::from(format.format(number(0)?, &text(1)?)?)
            }
            Function::GenerateId => {
                let node = match args.first() {
                    None => Some(cx.node),
                    Some(_) => set(0)?.first(),
                };
                Value::from(node.map_or(String::new(), generated_id))
            }
            Function::SystemProperty => {
                let name = text(0)?;
                let Some((namespace, local)) = self.resolve(&name) else {
                    return Err(format!("the prefix of \"{name}\" is not declared"));
                };
                crate::compile::version2::system_property(
                    &namespace,
                    &local,
                    engine.plan.version2,
                    engine.plan.version3,
                )
            }
            Function::ElementAvailable => {
                let name = text(0)?;
                let available = match self.resolve(&name) {
                    Some((namespace, local)) => {
                        // Unprefixed: the default namespace.
                        let namespace = if name.contains(':') {
                            namespace
                        } else {
                            self.lookup("").unwrap_or_default().to_owned()
                        };
                        let available = match engine.plan.version2 {
                            true => {
                                crate::compile::is_available_in_2(&local)
                                    || engine.plan.version3 && crate::compile::is_declaration(&local)
                            }
                            false => crate::compile::is_available(&local),
                        };
                        (namespace == crate::compile::XSLT && available)
                            || (namespace == functions::EXSLT_FUNCTIONS && local == "result")
                    }
                    None => false,
                };
                Value::Boolean(available)
            }
            // (A function always has a namespace.)
            Function::FunctionAvailable if text(0)?.trim().starts_with("Q{}") => Value::Boolean(false),
            Function::FunctionAvailable => {
                let available = self.resolve(&text(0)?).is_some_and(|(namespace, local)| {
                    engine.plan.version2
                        && crate::compile::version2::function_available(
                            &namespace,
                            &local,
                            engine.plan.version3,
                        )
                        || (namespace.is_empty()
                            && (functions::CORE.contains(&local.as_str()) || local == "current"))
                        || functions::find(&namespace, &local, engine.plan.version2).is_some()
                        || engine.symbols.find(&namespace, &local).is_some_and(|name| {
                            engine.plan.functions.values().any(|function| function.name == name)
                        })
                });
                let Some(arity) = args.get(1).filter(|_| available) else {
                    return Ok(Value::Boolean(available));
                };
                let arity = arity.to_number_in(&conversions).map_err(|e| e.message)?;
                let found = self.resolve(&text(0)?).is_some_and(|(namespace, local)| {
                    let uri = match namespace.as_str() {
                        "" => "http://www.w3.org/2005/xpath-functions",
                        other => other,
                    };
                    (0.0..1e6).contains(&arity)
                        && (xpath::takes(uri, &local, arity as usize)
                            || self.find_function(uri, &local, arity as usize).is_some())
                });
                Value::Boolean(found)
            }
            Function::UnparsedEntityUri | Function::UnparsedEntityPublicId => {
                let name = text(0)?;
                let document = match args.get(1) {
                    None => cx.node.doc,
                    Some(_) => set(1)?.first().map_or(DocId::ATOMIC, |node| node.doc),
                };
                if document == DocId::ATOMIC {
                    let code = if builtin.local.ends_with("uri") { "XTDE1370" } else { "XTDE1380" };
                    return Err(format!("{code}: {}() is about a node in a document", builtin.local));
                }
                let found = engine.doc(document).unparsed_entity(&name);
                match builtin.function {
                    Function::UnparsedEntityPublicId => {
                        Value::from(found.and_then(|(_, public)| public).unwrap_or_default())
                    }
                    _ => {
                        let uri =
                            found.map(|(system, _)| crate::resolver::join(engine.docs.uri(document), system));
                        let uri = uri.unwrap_or_default();
                        match engine.plan.version2 {
                            true => Value::Atomic(Atomic::Uri(uri.into())),
                            false => Value::from(uri),
                        }
                    }
                }
            }
            Function::NodeSet => match args.first() {
                Some(Value::NodeSet(nodes)) => Value::NodeSet(nodes.clone()),
                _ => {
                    let mut doc = Document::new();
                    doc.append_text(Document::ROOT, &text(0)?);
                    let Value::NodeSet(root) = engine.fragment(doc)? else { return Ok(Value::Empty) };
                    let child = root.first().and_then(|root| {
                        let id = engine.doc(root.doc).first_child(root.id)?;
                        Some(Node::in_document(root.doc, id))
                    });
                    child.map_or(Value::NodeSet(NodeSet::new()), Value::from)
                }
            },
            Function::ObjectType => Value::from(match args.first() {
                Some(Value::NodeSet(nodes)) => match nodes.as_slice() {
                    [node]
                        if engine.docs.is_fragment(node.doc)
                            && engine.doc(node.doc).kind(node.id) == NodeKind::Document =>
                    {
                        "RTF"
                    }
                    _ => "node-set",
                },
                Some(value) => value.type_of().name(),
                None => Type::Any.name(),
            }),
            Function::Difference => {
                let other: HashSet<Node> = set(1)?.iter().collect();
                let kept: Vec<Node> = set(0)?.iter().filter(|node| !other.contains(node)).collect();
                Value::NodeSet(NodeSet::from_ordered(&kept))
            }
            Function::Intersection => {
                let other: HashSet<Node> = set(1)?.iter().collect();
                let kept: Vec<Node> = set(0)?.iter().filter(|node| other.contains(node)).collect();
                Value::NodeSet(NodeSet::from_ordered(&kept))
            }
            Function::HasSameNodes => {
                let (left, right): (HashSet<Node>, HashSet<Node>) =
                    (set(0)?.iter().collect(), set(1)?.iter().collect());
                Value::Boolean(left == right)
            }
            Function::Parse => {
                let source = text(0)?;
                engine.spend(source.len() as u64 >> 2).map_err(|e| e.message)?;
                let doc = Document::parse_str(&source, &ParseOptions::default())
                    .map_err(|error| format!("FODC0006: saxon:parse(): {error}"))?;
                self.adopt(doc).map(Value::from)?
            }
            Function::Serialize => {
                let Some(node) = set(0)?.first() else { return Ok(Value::from("")) };
                if node.is_namespace() {
                    return Ok(Value::from(engine.node_string(node)));
                }
                let doc = engine.doc(node.doc);
                let mut bytes = Vec::new();
                xml::write(doc, node.id, &xml::WriteOptions::default(), &mut bytes);
                engine.spend(bytes.len() as u64 >> 4).map_err(|e| e.message)?;
                Value::from(String::from_utf8_lossy(&bytes).into_owned())
            }
            Function::RegexpTest => Value::Boolean(functions::regexp::test(&text(0)?, &text(1)?, &text(2)?)?),
            Function::RegexpReplace => {
                Value::from(functions::regexp::replace(&text(0)?, &text(1)?, &text(2)?, &text(3)?)?)
            }
            Function::RegexpMatch => {
                let mut doc = Document::new();
                for found in functions::regexp::matches(&text(0)?, &text(1)?, &text(2)?)? {
                    let element = doc.append_element(Document::ROOT, "", "", "match");
                    doc.append_text(element, &found);
                }
                self.children_of_fragment(doc)?
            }
            Function::HasSameNode => {
                let other: HashSet<Node> = set(1)?.iter().collect();
                Value::Boolean(set(0)?.iter().any(|node| other.contains(&node)))
            }
            Function::Distinct => {
                let mut seen = HashSet::new();
                let kept: Vec<Node> =
                    set(0)?.iter().filter(|node| seen.insert(engine.node_string(*node))).collect();
                Value::NodeSet(NodeSet::from_ordered(&kept))
            }
            Function::Leading | Function::Trailing => {
                let (nodes, other) = (set(0)?, set(1)?);
                let Some(first) = other.first() else { return Ok(Value::NodeSet(nodes)) };
                let list = nodes.as_slice();
                let kept = match list.iter().position(|node| *node == first) {
                    None => &[],
                    Some(at) if matches!(builtin.function, Function::Leading) => &list[..at],
                    Some(at) => &list[at + 1..],
                };
                Value::NodeSet(NodeSet::from_ordered(kept))
            }
            Function::Min | Function::Max | Function::Highest | Function::Lowest => {
                let nodes = set(0)?;
                let largest = matches!(builtin.function, Function::Max | Function::Highest);
                let mut best = f64::NAN;
                let mut at_best = Vec::new();
                for node in nodes.iter() {
                    let value = xpath::number::parse(&engine.node_string(node));
                    if value.is_nan() {
                        best = f64::NAN;
                        at_best.clear();
                        break;
                    }
                    if best.is_nan() || (largest && value > best) || (!largest && value < best) {
                        best = value;
                        at_best.clear();
                    }
                    if value == best {
                        at_best.push(node);
                    }
                }
                match builtin.function {
                    Function::Min | Function::Max => Value::Number(best),
                    _ => Value::NodeSet(NodeSet::from_ordered(&at_best)),
                }
            }
            Function::Power => Value::Number(number(0)?.powf(number(1)?)),
            Function::Atan2 => Value::Number(number(0)?.atan2(number(1)?)),
            Function::Real(function) => Value::Number(function(number(0)?)),
            Function::RandomNumber => Value::Number(random()),
            Function::Constant => Value::Number(constant(&text(0)?, number(1)?)),
            Function::Tokenize | Function::Split => {
                let tokenize = matches!(builtin.function, Function::Tokenize);
                let separator = match args.get(1) {
                    Some(_) => text(1)?,
                    None if tokenize => "\t\r\n ".to_owned(),
                    None => " ".to_owned(),
                };
                let tokens = if tokenize {
                    strings::tokenize(&text(0)?, &separator)
                } else {
                    strings::split(&text(0)?, &separator)
                };
                let mut doc = Document::new();
                for token in &tokens {
                    let element = doc.append_element(Document::ROOT, "", "", "token");
                    doc.append_text(element, token);
                }
                self.children_of_fragment(doc)?
            }
            Function::Replace => {
                let list = |at: usize| -> Result<Vec<String>, String> {
                    Ok(match args.get(at).and_then(node_set) {
                        Some(nodes) => nodes.iter().map(|node| engine.node_string(node)).collect(),
                        None => vec![text(at)?],
                    })
                };
                let replaced = strings::replace(&text(0)?, &list(1)?, &list(2)?);
                let mut doc = Document::new();
                if !replaced.is_empty() {
                    doc.append_text(Document::ROOT, &replaced);
                }
                self.children_of_fragment(doc)?
            }
            Function::Padding => {
                let pattern = if args.len() > 1 { text(1)? } else { " ".to_owned() };
                Value::from(strings::padding(number(0)?, &pattern))
            }
            Function::Align => Value::from(strings::align(&text(0)?, &text(1)?, &text(2)?)),
            Function::Concat => {
                Value::from(set(0)?.iter().map(|node| engine.node_string(node)).collect::<String>())
            }
            Function::EncodeUri => {
                Value::from(strings::encode_uri(&text(0)?, args.get(1).is_some_and(Value::to_boolean)))
            }
            Function::DecodeUri => Value::from(strings::decode_uri(&text(0)?)),
            Function::DateSum => Value::from(dates::sum(set(0)?.iter().map(|node| engine.node_string(node)))),
            Function::Date => {
                let texts = (0..args.len()).map(text).collect::<Result<Vec<_>, _>>()?;
                match dates::call(builtin.local, &texts) {
                    Some(dates::Answer::Text(text)) => Value::from(text),
                    Some(dates::Answer::Number(number)) => Value::Number(number),
                    Some(dates::Answer::Boolean(value)) => Value::Boolean(value),
                    None => return Err(format!("date:{}() cannot take these arguments", builtin.local)),
                }
            }
            Function::Current => match engine.item(self.current) {
                Some(item) => Value::from(item),
                None => return Err("XTDE1360: there is no context item here".into()),
            },
            Function::CurrentMergeKey => engine
                .dynamic(self.dynamic)
                .filter(|d| d.merged.is_some())
                .map(|d| d.merge_key.clone())
                .ok_or("XTDE3510: there is no current merge key here")?,
            Function::CurrentMergeGroup => {
                let dynamic = engine.dynamic(self.dynamic);
                let Some(members) = dynamic.as_ref().and_then(|d| d.merged.as_ref()) else {
                    return Err("XTDE3480: there is no current merge group here".into());
                };
                let wanted = if args.is_empty() { None } else { Some(text(0)?) };
                let sources = dynamic.as_ref().map(|d| d.sources.clone()).unwrap_or_default();
                if let Some(wanted) = &wanted
                    && !sources.iter().any(|name| **name == **wanted)
                {
                    return Err(format!("XTDE3490: xsl:merge has no source named \"{wanted}\""));
                }
                let of = |name: &Option<Box<str>>| wanted.is_none() || name.as_deref() == wanted.as_deref();
                let items = members.iter().filter(|(name, _)| of(name)).map(|(_, item)| item.clone());
                Value::from_items(items.collect())
            }
            Function::CopyOf | Function::Snapshot => {
                let items: Vec<Item> = match args.first() {
                    Some(value) => value.items().collect(),
                    None => match engine.item(cx.node).or_else(|| cx.item.cloned().map(Item::Atomic)) {
                        Some(item) => vec![item],
                        None => return Err("XPDY0002: there is no context item here".into()),
                    },
                };
                let mut copies = Vec::with_capacity(items.len());
                for item in items {
                    copies.push(match item {
                        Item::Node(node) if !node.is_namespace() => match builtin.function {
                            Function::CopyOf => Item::Node(self.copy_of(node)?),
                            _ => Item::Node(self.snapshot(node)?),
                        },
                        item => item,
                    });
                }
                Value::from_items(copies)
            }
            Function::CurrentGroup | Function::CurrentGroupingKey => {
                let group = matches!(builtin.function, Function::CurrentGroup);
                let dynamic = engine.dynamic(self.dynamic);
                let found = dynamic.and_then(|d| if group { d.group.clone() } else { d.key.clone() });
                match found {
                    Some(value) => value,
                    // An error from 3.0 on.
                    None if engine.plan.version3 => {
                        let code = if group { "XTDE1061" } else { "XTDE1071" };
                        return Err(format!("{code}: {}(): there is none here", builtin.local));
                    }
                    None => Value::Empty,
                }
            }
            Function::Accumulator => {
                let given = text(0)?;
                let name = self.resolve(&given).and_then(|(ns, local)| engine.symbols.find(&ns, &local));
                let Some(name) = name else {
                    return Err(format!("XTDE3340: there is no accumulator \"{given}\""));
                };
                let focus = Focus::new(cx.node, self.depth, self.next);
                let value = engine.accumulator_value(name, &focus, builtin.local == "accumulator-after");
                value.map_err(|error| self.keep(error))?
            }
            Function::RegexGroup => {
                let number = number(0)?;
                let dynamic = engine.dynamic(self.dynamic);
                let found =
                    dynamic.as_ref().and_then(|d| d.captures.get(number as usize)).filter(|_| number >= 0.0);
                Value::from(found.map_or("", |text| text))
            }
            Function::UnparsedText | Function::UnparsedTextAvailable => {
                if args.first().is_none_or(Value::is_empty) {
                    return Ok(Value::Empty);
                }
                let encoding = if args.len() > 1 { Some(text(1)?) } else { None };
                let found = engine.unparsed_text(
                    &text(0)?,
                    self.xpath.base.as_deref().unwrap_or(""),
                    encoding.as_deref(),
                );
                match builtin.function {
                    Function::UnparsedText => Value::from(found?),
                    _ => Value::Boolean(found.is_ok()),
                }
            }
            Function::FormatMoment => {
                let kind = match builtin.local {
                    "format-date" => MomentKind::Date,
                    "format-time" => MomentKind::Time,
                    _ => MomentKind::DateTime,
                };
                let Some(item) = args.first().and_then(|value| value.item(0)) else {
                    return Ok(Value::Empty);
                };
                let atom = engine.atom(item);
                let atom = match &atom {
                    Atomic::Untyped(_) => {
                        let ty = AtomicType::of(Kind::Moment(kind));
                        atom.cast(ty).map_err(|e| format!("{}: {}", e.code, e.message))?
                    }
                    _ => atom,
                };
                match &atom {
                    Atomic::Moment(moment) if moment.kind == kind => {
                        Value::from(xpath::format::pictures::format(moment, &text(1)?)?)
                    }
                    other => {
                        let found = AtomicType::of(other.kind()).name;
                        let wanted = AtomicType::of(Kind::Moment(kind)).name;
                        return Err(format!(
                            "XPTY0004: {}() takes an xs:{wanted}, this is an xs:{found}",
                            builtin.local
                        ));
                    }
                }
            }
            Function::TypeAvailable => {
                let available = self.resolve(&text(0)?);
                Value::Boolean(
                    available
                        .is_some_and(|(ns, local)| crate::compile::version2::type_available(&ns, &local)),
                )
            }
            Function::Evaluate => self.evaluated(&text(0)?, cx)?.unwrap_or(Value::NodeSet(NodeSet::new())),
            Function::Map => self.map(&set(0)?, &text(1)?, cx)?,
        })
    }

    /// `dyn:evaluate`: a dynamic expression. `None`: it is invalid, or fails.
    fn evaluated(&self, source: &str, cx: &Context<'_>) -> Result<Option<Value>, String> {
        if self.depth as usize >= self.engine.options.limits.depth {
            return Err("expressions evaluate one another too deeply".into());
        }
        let engine = self.engine;
        let locals: Vec<(Name, usize)> = Vec::new();
        let globals: HashMap<Name, usize> =
            engine.plan.globals.iter().enumerate().map(|(at, global)| (global.name, at)).collect();
        let user: HashMap<Name, u32> =
            engine.plan.functions.iter().map(|(slot, f)| (f.name, *slot)).collect();
        let version2 = HashMap::new();
        let library = crate::expr::Library {
            locals: &locals,
            globals: &globals,
            functions: &user,
            version2_functions: &version2,
            version2: engine.plan.version2,
            symbols: engine.symbols,
            variables: true,
            current: true,
            strict: false,
            referred: None,
            unavailable: None,
        };
        let empty: Scope = Arc::from([]);
        let scope = self.xpath.scope.clone().unwrap_or(empty);
        let namespaces: Vec<(String, String)> =
            scope.iter().map(|(p, u)| (p.to_string(), u.to_string())).collect();
        let options = xpath::CompileOptions {
            namespaces: &namespaces,
            library: &library,
            ..xpath::CompileOptions::default()
        };
        let Ok(tree) = xpath::parse(source, options.version) else { return Ok(None) };
        let Ok(expression) = xpath::Expression::from_ast(&tree, source, &options) else {
            return Ok(None);
        };
        let xpath = XPath {
            expression,
            tree,
            evaluates: true,
            scope: Some(scope),
            base: self.xpath.base.clone(),
            names: None,
            all: false,
            local: None,
            literal: None,
            simple: None,
            many: false,
        };
        let (current, depth, next, dynamic) = (self.current, self.depth + 1, self.next, self.dynamic);
        let (node, position, size) = (cx.node, cx.position, cx.size);
        let run = || {
            let failed = RefCell::default();
            let host = ExprHost { engine, locals: &[], current, xpath: &xpath, depth, next, dynamic, failed };
            let doc = engine.doc(node.doc);
            xpath
                .expression
                .evaluate(&Context {
                    doc,
                    node,
                    item: None,
                    position,
                    size,
                    locals: &[],
                    host: &host,
                    names: None,
                })
                .ok()
        };
        if !depth.is_multiple_of(EVALUATIONS) {
            return Ok(run());
        }
        Ok(crate::stack::on_new(|| Ok(run())).ok().flatten())
    }

    /// `dyn:map`: the expression for each node; values that are not nodes become elements.
    fn map(&self, nodes: &NodeSet, source: &str, cx: &Context<'_>) -> Result<Value, String> {
        let engine = self.engine;
        let mut found = Vec::new();
        let mut values = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            let inner =
                Context { doc: engine.doc(node.doc), node, position: at + 1, size: nodes.len(), ..*cx };
            match self.evaluated(source, &inner)? {
                Some(Value::NodeSet(nodes)) => found.extend(nodes.iter()),
                Some(value) => values.push(value),
                None => {}
            }
        }
        if values.is_empty() {
            let host = DocHost { engine };
            let conversions = Context { host: &host, ..*cx };
            return NodeSet::sorted(found, &conversions).map(Value::NodeSet).map_err(|e| e.message);
        }
        let mut doc = Document::new();
        for value in values {
            let (name, text) = match &value {
                Value::Boolean(true) => ("boolean", "true".to_owned()),
                Value::Boolean(false) => ("boolean", String::new()),
                Value::Number(number) => ("number", xpath::number::format(*number).into_owned()),
                Value::String(text) => ("string", text.to_string()),
                _ => continue,
            };
            let element = doc.append_element(Document::ROOT, "exsl", functions::EXSLT_COMMON, name);
            if !text.is_empty() {
                doc.append_text(element, &text);
            }
        }
        self.children_of_fragment(doc)
    }

    fn children_of_fragment(&self, doc: Document) -> Result<Value, String> {
        let children: Vec<xml::NodeId> = doc.children(Document::ROOT).collect();
        let Value::NodeSet(root) = self.engine.fragment(doc)? else { return Ok(Value::Empty) };
        let Some(root) = root.first() else { return Ok(Value::Empty) };
        let nodes: Vec<Node> = children.into_iter().map(|id| Node::in_document(root.doc, id)).collect();
        Ok(Value::NodeSet(NodeSet::from_ordered(&nodes)))
    }

    fn lookup(&self, prefix: &str) -> Option<&str> {
        super::construction::lookup(self.xpath.scope.as_ref()?, prefix)
    }

    /// The expanded name of a qualified name given as a string.
    fn resolve(&self, qname: &str) -> Option<(String, String)> {
        let qname = qname.trim();
        if let Some((uri, local)) = qname.strip_prefix("Q{").and_then(|rest| rest.split_once('}')) {
            return Some((uri.trim().to_owned(), local.to_owned()));
        }
        match qname.split_once(':') {
            None => Some((String::new(), qname.to_owned())),
            Some((prefix, local)) => Some((self.lookup(prefix)?.to_owned(), local.to_owned())),
        }
    }
}

impl Engine<'_> {
    /// The string value of a node.
    pub(super) fn node_string(&self, node: Node) -> String {
        if node.id == Document::ROOT
            && !node.is_namespace()
            && let Some(text) = self.docs.text(node.doc)
        {
            return text.to_owned();
        }
        let doc = self.doc(node.doc);
        if node.is_namespace() {
            return nodes::namespace_node(doc, node).1;
        }
        doc.string_value(node.id).into_owned()
    }

    fn fragment(&self, doc: Document) -> Result<Value, String> {
        self.add_fragment(doc, Place::default()).map_err(|error| error.message)
    }

    /// The nodes of one document by the values of a key, built on first use.
    fn collation_of_key(&self, name: Name) -> Collation {
        self.plan.keys.get(&name).and_then(|keys| keys.first()).map_or_else(Default::default, |k| k.collation)
    }

    /// `focus`: on the document.
    pub(super) fn key_index(&self, name: Name, focus: &Focus) -> Res<Arc<KeyIndex>> {
        let id = focus.node.doc;
        let failed = || Box::new(XsltError::new("a key could not be built"));
        if let Some(index) = self.keys.lock().map_err(|_| failed())?.get(&(name, id)) {
            return Ok(index.clone());
        }
        if !self.building.lock().map_err(|_| failed())?.insert((name, id)) {
            let shown = self.symbols.show(name);
            let message = format!("XTDE0640: the key \"{shown}\" needs its own nodes");
            let place = self.plan.keys.get(&name).and_then(|keys| keys.first()).map(|key| key.place);
            return Err(self.fail(place.unwrap_or_default(), self.coded(message)));
        }
        let mut index = KeyIndex::default();
        let doc = self.doc(id);
        let definitions = self.plan.keys.get(&name).map_or(&[][..], Vec::as_slice);
        let attributes = definitions.iter().any(|key| key.pattern.may_match_attributes());
        let mut visit = |node: Node| -> Res<()> {
            self.spend(definitions.len() as u64)?;
            for key in definitions {
                let focus = Focus { node, position: 1, size: 1, ..*focus };
                if !self.matches(&key.pattern, &focus, &super::matching::NO_FRAME)? {
                    continue;
                }
                let focus = Focus::new(node, focus.depth + 1, focus.next);
                let text = |value: &str| key.collation.key(value).into_owned();
                let mut frame = Frame::default();
                frame.locals.resize(key.slots, Value::Empty);
                match self.binding(&key.value, focus, &mut frame, key.place)? {
                    value if key.composite => {
                        let atom = |item| key.collation.atom(&self.key_atom(item)).into_owned();
                        index.add_values(value.items().map(atom).collect(), node);
                    }
                    Value::NodeSet(values) => {
                        values.iter().for_each(|value| index.add(&text(&self.node_string(value)), node));
                    }
                    Value::Empty => {}
                    value
                    @ (Value::Sequence(_) | Value::Atomic(_) | Value::Number(_) | Value::Boolean(_))
                        if key.typed =>
                    {
                        for item in value.items() {
                            match self.atom(item) {
                                Atomic::Untyped(s) | Atomic::String(s) | Atomic::Uri(s) => {
                                    index.add(&text(&s), node)
                                }
                                other => index.add_value(other, node),
                            }
                        }
                    }
                    value @ (Value::Sequence(_) | Value::Atomic(_)) => {
                        value.items().for_each(|item| index.add(&text(&self.item_text(&item)), node));
                    }
                    value => index.add(&text(&self.string_of(&value, focus, key.place)?), node),
                }
            }
            Ok(())
        };
        visit(Node::in_document(id, Document::ROOT))?;
        for node in doc.descendants(Document::ROOT) {
            visit(Node::in_document(id, node))?;
            if attributes && doc.kind(node) == NodeKind::Element {
                for attribute in doc.attributes(node) {
                    visit(Node::in_document(id, attribute))?;
                }
            }
        }
        self.building.lock().map_err(|_| failed())?.remove(&(name, id));
        let index = Arc::new(index);
        self.keys.lock().map_err(|_| failed())?.insert((name, id), index.clone());
        Ok(index)
    }

    /// `document()`: the root of a document (or the element its fragment identifier names), read once.
    pub(super) fn load(&self, reference: &str, base: &str) -> Result<Option<Node>, String> {
        let absolute = self.options.resolver.absolute(reference, base);
        let (uri, fragment) = match absolute.split_once('#') {
            Some((uri, fragment)) => (uri.to_owned(), Some(fragment.to_owned())),
            None => (absolute, None),
        };
        let id = self.loaded.lock().map_err(|_| "the documents are locked")?.get(&uri).copied();
        let id = match id {
            Some(id) => id,
            None => {
                let id = self.read(&uri)?;
                self.loaded.lock().map_err(|_| "the documents are locked")?.insert(uri.clone(), id);
                id
            }
        };
        let Some(id) = id else { return Ok(None) };
        let node = match fragment.as_deref() {
            None | Some("") => Some(Document::ROOT),
            Some(fragment) => {
                let name = fragment.strip_prefix("xpointer(id('").and_then(|f| f.strip_suffix("'))"));
                self.doc(id).element_by_id(name.unwrap_or(fragment))
            }
        };
        Ok(node.map(|node| Node::in_document(id, node)))
    }

    /// The time of the transformation.
    pub(super) fn now(&self) -> Moment {
        *self.now.get_or_init(|| {
            let since =
                std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            Moment::from_unix(since.as_secs() as i64, since.subsec_millis() * 1_000_000)
        })
    }

    /// `unparsed-text()`: a file as text; encoding by byte order mark, argument, UTF-8.
    fn unparsed_text(&self, href: &str, base: &str, encoding: Option<&str>) -> Result<String, String> {
        let code = |number: u16| match self.plan.version3 {
            true => format!("FOUT{number}"),
            false => format!("XTDE{number}"),
        };
        if href.contains('#') {
            return Err(format!("{}: \"{href}\" has a fragment identifier", code(1170)));
        }
        let uri = self.options.resolver.absolute(href, base);
        let bytes = self.options.resolver.read(&uri).map_err(|e| format!("{}: {e}", code(1170)))?;
        let (label, skip) = match bytes.as_slice() {
            [0xEF, 0xBB, 0xBF, ..] => ("UTF-8", 3),
            [0xFE, 0xFF, ..] => ("UTF-16BE", 2),
            [0xFF, 0xFE, ..] => ("UTF-16LE", 2),
            _ => (encoding.unwrap_or("UTF-8"), 0),
        };
        let text = xml::decode(bytes[skip..].to_vec(), Some(label))
            .map_err(|e| format!("{}: {uri}: {e}", code(1190)))?;
        let text = String::from_utf8(text.text.to_vec())
            .map_err(|_| format!("{}: {uri} is not in {label}", code(1190)))?;
        if text.chars().any(|c| c < ' ' && !matches!(c, '\t' | '\n' | '\r')) {
            return Err(format!("{}: {uri} holds characters that XML does not have", code(1190)));
        }
        Ok(text.replace("\r\n", "\n"))
    }

    fn read(&self, uri: &str) -> Result<Option<DocId>, String> {
        if !self.options.input_uri.is_empty() && uri == self.options.input_uri {
            return Ok(Some(DocId(0)));
        }
        let bytes = match self.options.resolver.read(uri) {
            Ok(bytes) => bytes,
            Err(_) if self.plan.modules.first().is_some_and(|principal| principal == uri) => {
                self.plan.principal.to_vec()
            }
            // A recoverable error of section 12.1: the node-set is empty, as in other processors.
            Err(message) => {
                if let Some(messages) = self.options.messages {
                    messages(&format!("document(): {message}"));
                }
                return Ok(None);
            }
        };
        let options = ParseOptions {
            dtd: self.options.dtd.clone(),
            base_uri: Some(uri.to_owned()),
            strip_space: super::super::strip_space(self.plan),
            ..ParseOptions::trusted()
        };
        let doc = match Document::parse(bytes, &options) {
            Ok(doc) => doc,
            Err(error) => return Err(format!("{uri}:{error}")),
        };
        if self.docs.count() >= self.options.limits.documents {
            return Err("the limit of documents is exceeded".into());
        }
        Ok(self.docs.add(doc, uri.to_owned().into(), false))
    }
}

/// An identifier that is an XML name, different for every node of the transformation.
fn generated_id(node: Node) -> String {
    if node.is_namespace() {
        return format!("id{}n{}s{}", node.doc.0, node.id.index(), node.namespace);
    }
    format!("id{}n{}", node.doc.0, node.id.index())
}

/// `math:constant`: to a number of decimal places.
fn constant(name: &str, precision: f64) -> f64 {
    use std::f64::consts;
    let value = match name {
        "PI" => consts::PI,
        "E" => consts::E,
        "SQRRT2" => consts::SQRT_2,
        "LN2" => consts::LN_2,
        "LN10" => consts::LN_10,
        "LOG2E" => consts::LOG2_E,
        "SQRT1_2" => consts::FRAC_1_SQRT_2,
        _ => return f64::NAN,
    };
    if precision.is_nan() || precision < 0.0 {
        return f64::NAN;
    }
    let text = value.to_string();
    let digits = 2 + precision.min(20.0) as usize;
    text.get(..digits.min(text.len())).and_then(|t| t.trim_end_matches('.').parse().ok()).unwrap_or(value)
}

/// A pseudo-random number from 0 to 1.
fn random() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    (RandomState::new().hash_one(0u64) >> 11) as f64 / (1u64 << 53) as f64
}
