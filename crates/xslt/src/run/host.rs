//! The host of expressions in a transformation: variables, functions, documents.

mod copies;
mod dynamic;
mod exslt;
mod functions;

use super::docs::Origin;
use super::{Engine, Focus, Frame, nodes};
use crate::error::XsltError;
use crate::expr::{GLOBAL, UNKNOWN_FUNCTION, USER_FUNCTION, XPath};
use crate::functions as table;
use crate::model::Place;
use std::sync::Mutex;
use xml::{Builder, Document};
use xpath::atomic::Moment;
use xpath::{Comparands, Context, DocId, ExtensionName, Host, Node, NodeSet, Positions, Value};

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
    pub failed: Mutex<Option<Box<XsltError>>>,
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
    fn shared(&self) -> Option<&(dyn Host + Sync)> {
        Some(self)
    }

    fn positions(&self) -> Option<&Positions> {
        // While a document is being read, its nodes change.
        self.engine.opening.is_none().then_some(&self.engine.positions)
    }

    fn comparands(&self) -> Option<&Comparands> {
        self.engine.opening.is_none().then_some(&self.engine.comparands)
    }

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
        match table::get(name.slot) {
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
        let id =
            self.engine.docs.add(doc, base.into(), Origin::Parsed).ok_or("there are too many documents")?;
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
        let (slot, builtin) = table::find(namespace, local, true)?;
        (builtin.arity.0..=builtin.arity.1).contains(&arity).then(|| named(slot))
    }

    fn document_uri(&self, id: DocId) -> Option<String> {
        Some(crate::resolver::as_uri(self.engine.docs.uri(id)))
    }

    fn is_read(&self, id: DocId) -> bool {
        self.engine.docs.is_read(id)
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
        if let Ok(mut failed) = self.failed.lock() {
            *failed = Some(error);
        }
        message
    }

    /// The error from an inner call, if that is why the expression failed.
    pub fn failed(&self, error: &xpath::XPathError) -> Option<Box<XsltError>> {
        self.failed.lock().ok()?.take().filter(|inner| inner.message == error.message)
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
            // (While a document is being read, other nodes get the numbers of those that were passed.)
            let keeps = function.keeps && self.engine.opening.is_none();
            let key = if keeps { super::memo::Memo::key(slot, args) } else { None };
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
        let focus = Focus { position: 0, size: 0, ..Focus::new(Node::ABSENT, self.depth, self.next) };
        let value = engine
            .enter_from_expression(focus, function.place, |focus| engine.run_function(function, args, focus));
        value.map_err(|error| self.keep(error))
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

    /// The time of the transformation.
    pub(super) fn now(&self) -> Moment {
        *self.now.get_or_init(|| {
            let since =
                std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            Moment::from_unix(since.as_secs() as i64, since.subsec_millis() * 1_000_000)
        })
    }
}
