//! Expressions of the stylesheet: XPath, compiled in the static context of its element.

use crate::arithmetic;
use crate::functions::{self, Builtin};
use crate::model::Scope;
use crate::names::{Name, NameStep, Names};
use crate::simple::Simple;
use std::cell::RefCell;
use std::collections::HashMap;
use xml::{Document, NodeId, NodeKind};
use xpath::ast::{self, Axis, ExprKind, NodeTest, Start};
use xpath::{
    CompileOptions, Expression, Function, FunctionInfo, FunctionLibrary, FunctionTypes, NamePool,
    NamespaceResolver, Results, VariableInfo, Version,
};

/// A compiled expression.
#[derive(Debug)]
pub(crate) enum Expr {
    /// The general case.
    XPath(Box<XPath>),
    /// It cannot be compiled, and forwards-compatible processing allows that until it is evaluated.
    Deferred(Box<str>),
}

/// An XPath expression with what its functions need at run time.
#[derive(Debug)]
pub(crate) struct XPath {
    pub expression: Expression,
    /// The parse tree, for questions about the expression.
    pub tree: ast::Expr,
    /// It evaluates dynamic expressions.
    pub evaluates: bool,
    /// The prefixes in scope, where a function takes qualified names as strings.
    pub scope: Option<Scope>,
    /// URI of the module, where `document()` is called.
    pub base: Option<Box<str>>,
    /// The steps, if it is a path of names.
    pub names: Option<Box<[NameStep]>>,
    /// It is `@* | node()`.
    pub all: bool,
    /// It is the local variable in this slot.
    pub local: Option<u32>,
    /// It is a text in quotes.
    pub literal: Option<std::sync::Arc<str>>,
    /// Its simple form, if it has one.
    pub simple: Option<Simple>,
    /// As a condition it asks for this kind of the context node.
    pub kind: Option<NodeKind>,
    /// It is children of these kinds.
    pub children: Option<Kinds>,
    /// Its text is that of all items, separated by spaces (`xsl:value-of` of XSLT 2.0).
    pub many: bool,
}

/// The steps of an expression that is a path of names, or `.` (no steps). Names are numbered in `names`.
pub(crate) fn name_path(
    tree: &ast::Expr,
    scope: &ElementScope<'_>,
    names: &mut Names,
    default: &str,
) -> Option<Box<[NameStep]>> {
    let path = match &tree.kind {
        ExprKind::ContextItem => return Some(Box::default()),
        ExprKind::Path(Start::Context, path) => path,
        _ => return None,
    };
    if let [step] = path.as_slice()
        && step.axis == Axis::SelfAxis
        && step.test == NodeTest::Node
        && step.predicates.is_empty()
    {
        return Some(Box::default());
    }
    let mut steps = Vec::new();
    for (at, step) in path.iter().enumerate() {
        let NodeTest::Name(name) = &step.test else { return None };
        let attribute = step.axis == Axis::Attribute;
        if !(attribute && at + 1 == path.len() || step.axis == Axis::Child) || !step.predicates.is_empty() {
            return None;
        }
        let namespace = match name.prefix.as_str() {
            "" if attribute => "",
            "" => default,
            prefix => namespace_of(scope.doc, scope.node, prefix)?,
        };
        steps.push(NameStep { attribute, name: names.intern(namespace, &name.local) });
    }
    Some(steps.into())
}

/// Whether an expression is `@* | node()`, in either order.
fn is_all(tree: &ast::Expr) -> bool {
    let ExprKind::Union(parts) = &tree.kind else { return false };
    let is_attributes = |part: &ast::Expr| -> Option<bool> {
        let ExprKind::Path(Start::Context, steps) = &part.kind else { return None };
        let steps = match steps.as_slice() {
            [first, rest @ ..]
                if first.axis == Axis::SelfAxis
                    && first.test == NodeTest::Node
                    && first.predicates.is_empty() =>
            {
                if rest.is_empty() {
                    return None;
                } else {
                    rest
                }
            }
            all => all,
        };
        let [step] = steps else { return None };
        match (step.axis, &step.test) {
            _ if !step.predicates.is_empty() => None,
            (Axis::Attribute, NodeTest::AnyName | NodeTest::Node) => Some(true),
            (Axis::Child, NodeTest::Node) => Some(false),
            _ => None,
        }
    };
    let [a, b] = parts.as_slice() else { return false };
    matches!((is_attributes(a), is_attributes(b)), (Some(a), Some(b)) if a != b)
}

/// Kinds of children: one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kinds(u8);

impl Kinds {
    const ALL: Kinds = Kinds(u8::MAX);

    fn one(kind: NodeKind) -> Kinds {
        Kinds(1 << kind as u8)
    }

    #[inline]
    pub fn contain(self, kind: NodeKind) -> bool {
        self.0 & Kinds::one(kind).0 != 0
    }

    /// Of an expression that is children by their kinds: `node()`, `*`, `* | text()`.
    fn of_children(tree: &ast::Expr) -> Option<Kinds> {
        match &tree.kind {
            ExprKind::Union(parts) => {
                parts.iter().try_fold(Kinds(0), |all, part| Some(Kinds(all.0 | Kinds::of_children(part)?.0)))
            }
            ExprKind::Path(Start::Context, steps) => match steps.as_slice() {
                [step] if step.axis == Axis::Child && step.predicates.is_empty() => match &step.test {
                    NodeTest::Node => Some(Kinds::ALL),
                    NodeTest::AnyName => Some(Kinds::one(NodeKind::Element)),
                    NodeTest::Text => Some(Kinds::one(NodeKind::Text)),
                    NodeTest::Comment => Some(Kinds::one(NodeKind::Comment)),
                    NodeTest::ProcessingInstruction(None) => {
                        Some(Kinds::one(NodeKind::ProcessingInstruction))
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }
}

/// What functions in an expression need of the static context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Calls {
    /// The prefixes in scope, for functions with names as strings.
    names: bool,
    /// The URI of the module.
    base: bool,
    /// `dyn:evaluate` and the like: their effect is unknown.
    evaluates: bool,
}

impl Calls {
    fn of(tree: &ast::Expr) -> Calls {
        let mut calls = Calls::default();
        tree.walk(&mut |e| {
            // A function item takes names as strings, too.
            calls.names |= matches!(e.kind, ExprKind::Apply(..));
            let (ExprKind::Call(name, _) | ExprKind::NamedFunction(name, _)) = &e.kind else { return };
            match name.local.as_str() {
                "key" | "format-number" | "system-property" | "element-available" | "function-available"
                | "type-available" | "accumulator-before" | "accumulator-after" | "format-date"
                | "format-time" | "format-dateTime" => calls.names = true,
                "evaluate" | "map" | "closure" | "function-lookup" => {
                    calls = Calls { names: true, base: true, evaluates: true };
                }
                "document"
                | "doc"
                | "doc-available"
                | "stream-available"
                | "unparsed-text"
                | "unparsed-text-lines"
                | "unparsed-text-available"
                | "static-base-uri"
                | "resolve-uri"
                | "json-doc"
                | "collection"
                | "uri-collection"
                | "parse-xml"
                | "parse-xml-fragment" => calls.base = true,
                _ => {}
            }
        });
        calls
    }
}

const FUNCTIONS: &str = "http://www.w3.org/2005/xpath-functions";
const XSD: &str = "http://www.w3.org/2001/XMLSchema";

/// Slots of variables: global ones have this bit.
pub(crate) const GLOBAL: u32 = 1 << 31;
/// Slots of functions: those of the stylesheet (`func:function`) begin here.
pub(crate) const USER_FUNCTION: u32 = 1 << 16;
/// The slot of unknown functions.
pub(crate) const UNKNOWN_FUNCTION: u32 = u32::MAX;

/// The prefixes in scope of a stylesheet element.
pub(crate) struct ElementScope<'a> {
    pub doc: &'a Document,
    pub node: NodeId,
}

impl NamespaceResolver for ElementScope<'_> {
    fn namespace(&self, prefix: &str) -> Option<&str> {
        namespace_of(self.doc, self.node, prefix)
    }

    fn declared(&self) -> Vec<(String, String)> {
        scope_of(self.doc, self.node)
    }
}

/// The namespace that `prefix` ("" = default) is bound to at `node`.
pub(crate) fn namespace_of<'d>(doc: &'d Document, node: NodeId, prefix: &str) -> Option<&'d str> {
    if prefix == "xml" {
        return Some(xml::XML_NS);
    }
    let mut at = Some(node);
    while let Some(element) = at {
        for (declared, uri) in doc.namespace_declarations(element) {
            if declared == prefix {
                return (!uri.is_empty()).then_some(uri);
            }
        }
        at = doc.parent(element);
    }
    None
}

/// All bindings in scope at `node`, the default namespace with prefix "", without `xml`.
pub(crate) fn scope_of(doc: &Document, node: NodeId) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut at = Some(node);
    while let Some(element) = at {
        for (prefix, uri) in doc.namespace_declarations(element) {
            if prefix != "xml" && !found.iter().any(|(p, _)| p == prefix) {
                found.push((prefix.to_owned(), uri.to_owned()));
            }
        }
        at = doc.parent(element);
    }
    found.retain(|(_, uri)| !uri.is_empty());
    found.sort();
    found
}

/// The static context of an expression.
pub(crate) struct Library<'a> {
    /// Local variables, innermost last.
    pub locals: &'a [(Name, usize)],
    pub globals: &'a HashMap<Name, usize>,
    pub functions: &'a HashMap<Name, u32>,
    /// The version is 2.0 or later.
    pub version2_functions: &'a HashMap<(Name, usize), u32>,
    /// Their types, by slot.
    pub types: &'a HashMap<u32, FunctionTypes>,
    /// In a processor of XSLT 2.0.
    pub version2: bool,
    pub symbols: &'a Names,
    /// In patterns and keys variables are not allowed.
    pub variables: bool,
    /// `current()` is not allowed in patterns.
    pub current: bool,
    /// Calls of unknown functions are errors at compile time: from version 2.0 on.
    pub strict: bool,
    /// Collects the global variables to which it refers.
    pub referred: Option<&'a RefCell<Vec<usize>>>,
    /// Collects the messages for functions that fail when they are called.
    pub unavailable: Option<&'a RefCell<Vec<String>>>,
}

impl FunctionLibrary for Library<'_> {
    fn types(&self, uri: Option<&str>, local: &str, arity: usize) -> Option<FunctionTypes> {
        let name = self.symbols.find(uri?, local)?;
        self.types.get(self.version2_functions.get(&(name, arity))?).cloned()
    }

    fn function(&self, _prefix: &str, uri: Option<&str>, local: &str, arity: usize) -> Function {
        // XSLT functions are in the namespace of functions.
        let namespace = uri.filter(|uri| !(self.version2 && *uri == FUNCTIONS)).unwrap_or("");
        if self.version2 && namespace == XSD {
            // Constructor functions belong to XPath 2.0.
            return Function::Unknown;
        }
        if namespace.is_empty() && local == "current" {
            return match (arity, self.current) {
                // It may be an atomic value.
                (0, true) if self.version2 => match functions::find("", "current", true) {
                    Some((slot, _)) => Function::Extension(FunctionInfo {
                        slot,
                        reads_document: true,
                        results: Results::Stay,
                        ..FunctionInfo::default()
                    }),
                    None => Function::Current,
                },
                (0, true) => Function::Current,
                (0, false) => Function::WrongArity("current() is not allowed in a pattern".into()),
                _ => Function::WrongArity("current() takes no arguments".into()),
            };
        }
        if let Some(name) = self.symbols.find(namespace, local)
            && let Some(slot) = self.functions.get(&name)
        {
            return Function::Extension(FunctionInfo {
                slot: USER_FUNCTION + slot,
                reads_document: true,
                ..FunctionInfo::default()
            });
        }
        if let Some(name) = self.symbols.find(namespace, local)
            && let Some(slot) = self.version2_functions.get(&(name, arity))
        {
            return Function::Extension(FunctionInfo {
                slot: USER_FUNCTION + slot,
                reads_document: true,
                ..FunctionInfo::default()
            });
        }
        if let Some(class) = functions::java_class(namespace, local) {
            let message = format!("{local}() is of the Java class {class}: no Java runs here");
            if let Some(unavailable) = self.unavailable {
                unavailable.borrow_mut().push(message.clone());
            }
            if self.strict {
                return Function::Unavailable(message);
            }
        }
        match functions::find(namespace, local, self.version2) {
            // An error only when it is called (section 14.2): function-available() may guard it.
            // From 2.0 on it is an error at once: use-when excludes such calls.
            None if !namespace.is_empty() && self.current && !self.strict => {
                Function::Extension(FunctionInfo {
                    slot: UNKNOWN_FUNCTION,
                    reads_document: true,
                    ..FunctionInfo::default()
                })
            }
            None => Function::Unknown,
            Some((_, Builtin { arity: (least, most), .. })) if arity < *least || arity > *most => {
                Function::WrongArity(match (least, most) {
                    (l, m) if l == m => format!("{local}() takes {l} argument(s), not {arity}"),
                    (l, m) => format!("{local}() takes {l} to {m} arguments, not {arity}"),
                })
            }
            Some((slot, builtin)) => Function::Extension(FunctionInfo {
                slot,
                returns: builtin.returns,
                reads_document: true,
                results: builtin.function.results(),
            }),
        }
    }

    fn variable(&self, _prefix: &str, uri: Option<&str>, local: &str) -> Option<VariableInfo> {
        if !self.variables {
            return None;
        }
        let name = self.symbols.find(uri.unwrap_or(""), local)?;
        let slot = match self.locals.iter().rev().find(|(local, _)| *local == name) {
            Some((_, slot)) => *slot as u32,
            None => {
                let global = *self.globals.get(&name)?;
                if let Some(referred) = self.referred {
                    referred.borrow_mut().push(global);
                }
                global as u32 | GLOBAL
            }
        };
        Some(VariableInfo { slot, ..VariableInfo::default() })
    }
}

impl XPath {
    /// An expression that is compiled while the stylesheet runs: without what is worked out for one that runs many times.
    pub fn dynamic(
        expression: Expression,
        tree: ast::Expr,
        evaluates: bool,
        scope: Scope,
        base: Option<Box<str>>,
    ) -> XPath {
        XPath {
            expression,
            tree,
            evaluates,
            scope: Some(scope),
            base,
            names: None,
            all: false,
            local: None,
            literal: None,
            simple: None,
            kind: None,
            children: None,
            many: false,
        }
    }

    /// Finds the ways of evaluation that need no general engine. They resolve names and local variables by `scope`.
    pub fn specialize(&mut self, scope: &mut impl arithmetic::Scope) {
        #[cfg(test)]
        if crate::simple::tests::OFF.get() {
            return;
        }
        self.names = scope.path(&self.tree);
        self.simple = Simple::of(&self.tree, self.expression.version() == Version::V1, scope);
        self.kind = Simple::kind_of(&self.tree);
        self.children = Kinds::of_children(&self.tree);
    }
}

impl Expr {
    /// See [`XPath::many`].
    #[inline]
    pub fn is_many(&self) -> bool {
        matches!(self, Expr::XPath(xpath) if xpath.many)
    }

    /// Compiles `source`. Errors: the message with the place in the expression.
    pub fn compile(
        source: &str,
        scope: &ElementScope<'_>,
        library: &Library<'_>,
        pool: &NamePool,
        uri: &str,
        dialect: Dialect<'_>,
    ) -> Result<Expr, String> {
        // In an element of version 1.0 in a 2.0 stylesheet, expressions have the meaning of 1.0, if they are valid there.
        let versions: &[Version] = match dialect.level {
            Level::V1 => &[Version::V1],
            Level::V2 => &[Version::V2],
            Level::V3 => &[Version::V31],
            Level::Compatible => &[Version::V1, Version::V2],
        };
        let mut failed = None;
        for version in versions {
            let parsed = xpath::parse(source, *version);
            let compiled = parsed.and_then(|tree| {
                Expr::compile_tree(source, tree, *version, scope, library, pool, uri, dialect)
            });
            match compiled {
                Ok(expr) => return Ok(expr),
                Err(error) => {
                    failed.get_or_insert(error);
                }
            }
        }
        Err(failed.map_or_else(String::new, |error| explain(source, &error)))
    }

    /// Compiles a parse tree, or a part of one; `source`: the text it was parsed from.
    #[allow(clippy::too_many_arguments)]
    pub fn compile_tree(
        source: &str,
        tree: ast::Expr,
        version: Version,
        scope: &ElementScope<'_>,
        library: &Library<'_>,
        pool: &NamePool,
        uri: &str,
        dialect: Dialect<'_>,
    ) -> Result<Expr, xpath::XPathError> {
        let options = CompileOptions {
            namespaces: scope,
            library,
            version,
            names: Some(pool),
            default_element_namespace: dialect.namespace,
            compatible: dialect.level == Level::Compatible && version == Version::V2,
        };
        let expression = Expression::from_ast(&tree, source, &options)?;
        let calls = Calls::of(&tree);
        let scope = calls.names.then(|| {
            scope_of(scope.doc, scope.node).into_iter().map(|(p, u)| (p.into(), u.into())).collect()
        });
        let local = match &tree.kind {
            ExprKind::Variable(name) if name.prefix.is_empty() => library.variable("", None, &name.local),
            _ => None,
        };
        let local = local.map(|variable| variable.slot).filter(|slot| slot & GLOBAL == 0);
        Ok(Expr::XPath(Box::new(XPath {
            all: is_all(&tree),
            expression,
            scope,
            base: calls.base.then(|| uri.into()),
            names: None,
            local,
            literal: match &tree.kind {
                ExprKind::Literal(text) => Some(text.as_str().into()),
                _ => None,
            },
            simple: None,
            kind: None,
            children: None,
            many: false,
            evaluates: calls.evaluates,
            tree,
        })))
    }
}

/// The language of expressions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dialect<'a> {
    pub level: Level,
    /// The namespace of unprefixed element names.
    pub namespace: &'a str,
}

/// The version of expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// XPath 1.0.
    V1,
    /// XPath 2.0.
    V2,
    /// XPath 3.1, as far as it is implemented.
    V3,
    /// XPath 2.0 in 1.0 compatibility mode: where the version in effect is 1.0 in a 2.0 stylesheet.
    Compatible,
}

impl Dialect<'_> {
    /// The version to parse with first.
    pub fn version(self) -> Version {
        match self.level {
            Level::V2 => Version::V2,
            Level::V3 => Version::V31,
            Level::V1 | Level::Compatible => Version::V1,
        }
    }
}

/// An XPath error as one line.
pub(crate) fn explain(source: &str, error: &xpath::XPathError) -> String {
    let start = error.span.start.min(source.len());
    let column = source.get(..start).map_or(0, |s| s.chars().count()) + 1;
    format!("{} (in the expression \"{source}\", character {column})", error.sentence())
}

/// What [`crate::simple`] needs from the compiler.
pub(crate) struct SimpleScope<'a> {
    /// Local variables, innermost last.
    pub locals: &'a [(Name, usize)],
    pub symbols: &'a Names,
    pub scope: &'a ElementScope<'a>,
    /// The names of paths.
    pub names: &'a mut Names,
    /// The namespace of unprefixed element names.
    pub default: &'a str,
}

impl arithmetic::Scope for SimpleScope<'_> {
    fn local(&self, name: &xpath::ast::QName) -> Option<u32> {
        if !name.prefix.is_empty() {
            return None;
        }
        let name = self.symbols.find("", &name.local)?;
        self.locals.iter().rev().find(|(local, _)| *local == name).map(|(_, slot)| *slot as u32)
    }

    fn path(&mut self, tree: &xpath::ast::Expr) -> Option<Box<[NameStep]>> {
        name_path(tree, self.scope, self.names, self.default)
    }
}
