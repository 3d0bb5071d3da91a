//! What the embedder provides when an expression is evaluated: the context and the host behind it.

use crate::atomic::{Atomic, Moment};
use crate::prepared::Comparands;
use crate::sequence::positions::Positions;
use crate::value::{DocId, Node, Value};
use std::sync::OnceLock;
use xml::{Document, NameId};

/// The name of an extension function or a variable, as written in the expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionName {
    /// The prefix, empty if there is none.
    pub prefix: Box<str>,
    /// The namespace, `None` if the prefix is not declared or absent.
    pub uri: Option<Box<str>>,
    /// The local part.
    pub local: Box<str>,
    /// The slot that the library gave at compile time.
    pub slot: u32,
}

/// Provides variables, extension functions and further documents. Errors are messages; the place is added.
pub trait Host {
    /// The value of a variable; `None`: there is none of that name.
    fn variable(&self, prefix: &str, uri: Option<&str>, local: &str) -> Result<Option<Value>, String> {
        let _ = (prefix, uri, local);
        Ok(None)
    }

    /// The same with the name as compiled; overridden by hosts that number their variables.
    fn variable_by_name(&self, name: &ExtensionName) -> Result<Option<Value>, String> {
        self.variable(&name.prefix, name.uri.as_deref(), &name.local)
    }

    /// Calls an extension function; `None`: there is none of that name.
    fn call(
        &self,
        prefix: &str,
        uri: Option<&str>,
        local: &str,
        args: &[Value],
        cx: &Context<'_>,
    ) -> Result<Option<Value>, String> {
        let _ = (prefix, uri, local, args, cx);
        Ok(None)
    }

    /// The same with the name as compiled.
    fn call_by_name(
        &self,
        name: &ExtensionName,
        args: &[Value],
        cx: &Context<'_>,
    ) -> Result<Option<Value>, String> {
        self.call(&name.prefix, name.uri.as_deref(), &name.local, args, cx)
    }

    /// The extension function of that name, looked up at run time (`function-lookup()`).
    fn find_function(&self, uri: &str, local: &str, arity: usize) -> Option<ExtensionName> {
        let _ = (uri, local, arity);
        None
    }

    /// Adds a document that an expression has made (`parse-xml()`): its document node. Errors: a message.
    fn adopt(&self, doc: Document) -> Result<Node, String> {
        drop(doc);
        Err("expressions make no documents here".to_owned())
    }

    /// A text resource (`unparsed-text()`, `json-doc()`), by its URI and encoding. Errors: a message.
    fn read_text(&self, uri: &str, encoding: Option<&str>) -> Result<String, String> {
        let _ = encoding;
        Err(format!("\"{uri}\": expressions read no texts here"))
    }

    /// The value of an environment variable that expressions may read.
    fn environment(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// XSLT's current node.
    fn current(&self) -> Option<Node> {
        None
    }

    /// A document other than that of the context node, by its number in the nodes.
    fn document(&self, id: DocId) -> Option<&Document> {
        let _ = id;
        None
    }

    /// The text of a document that contains only this text, and which [`Host::document`] would have to build first.
    fn text_of_document(&self, id: DocId) -> Option<&str> {
        let _ = id;
        None
    }

    /// The document node for XPath 2.0's `doc()`, a relative URI resolved; `None`: there is none. Errors: a message.
    fn load(&self, uri: &str) -> Result<Option<Node>, String> {
        Err(format!("\"{uri}\": expressions load no documents here"))
    }

    /// The URI that a document was loaded from; `None`: the base URI of the document itself.
    fn document_uri(&self, id: DocId) -> Option<String> {
        let _ = id;
        None
    }

    /// Whether a document was read from its URI, which is its document URI then, not only the base of references in it.
    fn is_read(&self, id: DocId) -> bool {
        let _ = id;
        true
    }

    /// The base URI of the expression.
    fn static_base_uri(&self) -> Option<String> {
        None
    }

    /// Whether paths and positions may start from atomic values of variables and extension functions: a
    /// value is like a node without children then, as in Jaxen. The default is an error, as in XPath.
    fn paths_from_values(&self) -> bool {
        false
    }

    /// The same host for another thread, in which a deep recursion goes on while this one waits; `None`: it cannot be shared.
    fn shared(&self) -> Option<&(dyn Host + Sync)> {
        None
    }

    /// Where the positions that `path()` counts are kept beyond one evaluation: only while the documents do not change.
    fn positions(&self) -> Option<&Positions> {
        None
    }

    /// Where long sequences that were compared with are kept beyond one evaluation: only while the documents do not change.
    fn comparands(&self) -> Option<&Comparands> {
        None
    }

    /// The time of `current-dateTime()`, where it must be the same in several evaluations.
    fn now(&self) -> Option<Moment> {
        None
    }
}

/// No variables, no functions.
impl Host for () {
    fn shared(&self) -> Option<&(dyn Host + Sync)> {
        Some(self)
    }
}

/// The dynamic context of an evaluation.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The document of the context node.
    pub doc: &'a Document,
    /// The context node.
    pub node: Node,
    /// The context item if it is an atomic value; then `node` is not used.
    pub item: Option<&'a Atomic>,
    /// The context position, from 1.
    pub position: usize,
    /// The context size.
    pub size: usize,
    /// The variables by slot ([`ExtensionName::slot`]); the host provides others.
    pub locals: &'a [Value],
    /// An extension function is called through a reference to it (`current-group#0`): what belongs to the place of the call, beyond the
    /// context item, is not for it.
    pub referred: bool,
    /// Variables and functions.
    pub host: &'a dyn Host,
    /// The names of a shared [`NamePool`](crate::NamePool) resolved for `doc`, if the expressions were compiled with one.
    pub names: Option<&'a BoundNames>,
}

impl<'a> Context<'a> {
    /// The root of `doc`, position 1 of 1, no host.
    pub fn root(doc: &'a Document) -> Context<'a> {
        Context::at(doc, Node::new(Document::ROOT))
    }

    /// A node of `doc`, position 1 of 1, no host.
    pub fn at(doc: &'a Document, node: Node) -> Context<'a> {
        Context {
            doc,
            node,
            item: None,
            position: 1,
            size: 1,
            locals: &[],
            referred: false,
            host: &(),
            names: None,
        }
    }

    /// For expressions that read no document (see [`Expression::needs`](crate::Expression::needs)): an empty one.
    pub fn without_document(host: &'a dyn Host) -> Context<'a> {
        static EMPTY: OnceLock<Document> = OnceLock::new();
        Context::root(EMPTY.get_or_init(Document::new)).with_host(host)
    }

    /// The same context with that host.
    pub fn with_host(self, host: &'a dyn Host) -> Context<'a> {
        Context { host, ..self }
    }
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("node", &self.node)
            .field("position", &self.position)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// The names of a [`NamePool`](crate::NamePool) as one document numbers them. Valid while no name is added to the
/// document.
#[derive(Debug, Clone, Default)]
pub struct BoundNames {
    pub(crate) ids: Vec<Option<NameId>>,
}

impl BoundNames {
    /// Looks every name up in `doc`.
    pub fn bind(names: &[(Box<str>, Box<str>)], doc: &Document) -> BoundNames {
        BoundNames { ids: names.iter().map(|(uri, local)| doc.find_name(uri, local)).collect() }
    }
}
