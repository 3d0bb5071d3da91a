//! Expressions of the stylesheet: XPath compiled where it stands, with its namespaces, variables and functions.

use crate::functions::{self, Builtin};
use crate::model::Scope;
use crate::names::{Name, Names};
use std::collections::HashMap;
use xml::{Document, NodeId};
use xpath::{
    CompileOptions, Expression, Function, FunctionInfo, FunctionLibrary, NamePool, NamespaceResolver,
    VariableInfo, Version,
};

/// A compiled expression.
#[derive(Debug)]
pub(crate) enum Expr {
    /// The general case.
    XPath(Box<XPath>),
    /// Cannot be compiled, but stands where forwards-compatible processing allows that until it is evaluated.
    Deferred(Box<str>),
}

/// An XPath expression with what its functions need at run time.
#[derive(Debug)]
pub(crate) struct XPath {
    pub expression: Expression,
    /// The prefixes in scope, where a function takes qualified names as strings.
    pub scope: Option<Scope>,
    /// URI of the module, where `document()` is called.
    pub base: Option<Box<str>>,
    /// Where it is a path of names.
    pub names: Option<Box<[NameStep]>>,
    /// It is `@* | node()`.
    pub all: bool,
    /// It is the local variable in this slot.
    pub local: Option<u32>,
}

/// A step of a path of names, `a/b/@c`: found without the XPath engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NameStep {
    pub attribute: bool,
    pub name: Name,
}

/// The steps of an expression that is such a path, or `.` (no steps). Names are numbered in `names`.
pub(crate) fn name_path(
    source: &str,
    scope: &ElementScope<'_>,
    names: &mut Names,
    default: &str,
) -> Option<Box<[NameStep]>> {
    use xpath::ast::{Axis, ExprKind, NodeTest, Start};
    let tree = xpath::parse(source, Version::V1).ok()?;
    let ExprKind::Path(Start::Context, path) = &tree.kind else { return None };
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
fn is_all(source: &str) -> bool {
    let mut parts = source.split('|').map(|part| part.trim().trim_start_matches("./"));
    let known = |part| match part {
        Some("@*" | "attribute::*" | "@node()" | "attribute::node()") => Some(true),
        Some("node()" | "child::node()") => Some(false),
        _ => None,
    };
    match (known(parts.next()), known(parts.next()), parts.next()) {
        (Some(first), Some(second), None) => first != second,
        _ => false,
    }
}

/// Functions that resolve prefixes when they run.
const TAKES_NAMES: [&str; 8] = [
    "key",
    "format-number",
    "system-property",
    "element-available",
    "function-available",
    "type-available",
    "evaluate",
    "map",
];
/// Functions that need the URI of the module.
const TAKES_BASE: [&str; 5] = ["document", "doc", "unparsed-text", "static-base-uri", "resolve-uri"];

/// Slots of variables: global ones have this bit.
pub(crate) const GLOBAL: u32 = 1 << 31;
/// Slots of functions: those of the stylesheet (`func:function`) begin here.
pub(crate) const USER_FUNCTION: u32 = 1 << 16;
/// The slot of functions that nobody knows.
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

/// The variables and functions known where an expression stands.
pub(crate) struct Library<'a> {
    /// Local variables, innermost last.
    pub locals: &'a [(Name, usize)],
    pub globals: &'a HashMap<Name, usize>,
    pub functions: &'a HashMap<Name, u32>,
    /// Those of XSLT 2.0.
    pub later_functions: &'a HashMap<(Name, usize), u32>,
    /// In a processor of XSLT 2.0.
    pub later: bool,
    pub symbols: &'a Names,
    /// In patterns and keys variables are not allowed.
    pub variables: bool,
    /// `current()` is not allowed in patterns.
    pub current: bool,
}

impl FunctionLibrary for Library<'_> {
    fn function(&self, _prefix: &str, uri: Option<&str>, local: &str, arity: usize) -> Function {
        let namespace = uri.unwrap_or("");
        if namespace.is_empty() && local == "current" {
            return match (arity, self.current) {
                // It may be an atomic value.
                (0, true) if self.later => match functions::find("", "current", true) {
                    Some((slot, _)) => Function::Extension(FunctionInfo {
                        slot,
                        returns: xpath::Type::Any,
                        reads_document: true,
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
                returns: xpath::Type::Any,
                reads_document: true,
            });
        }
        if let Some(name) = self.symbols.find(namespace, local)
            && let Some(slot) = self.later_functions.get(&(name, arity))
        {
            return Function::Extension(FunctionInfo {
                slot: USER_FUNCTION + slot,
                returns: xpath::Type::Any,
                reads_document: true,
            });
        }
        match functions::find(namespace, local, self.later) {
            // An error only when it is called (section 14.2): function-available() may stand before it.
            None if !namespace.is_empty() && self.current => Function::Extension(FunctionInfo {
                slot: UNKNOWN_FUNCTION,
                returns: xpath::Type::Any,
                reads_document: true,
            }),
            None => Function::Unknown,
            Some((_, Builtin { arity: (least, most), .. })) if arity < *least || arity > *most => {
                Function::WrongArity(match (least, most) {
                    (l, m) if l == m => format!("{local}() takes {l} argument(s), not {arity}"),
                    (l, m) => format!("{local}() takes {l} to {m} arguments, not {arity}"),
                })
            }
            Some((slot, builtin)) => {
                Function::Extension(FunctionInfo { slot, returns: builtin.returns, reads_document: true })
            }
        }
    }

    fn variable(&self, _prefix: &str, uri: Option<&str>, local: &str) -> Option<VariableInfo> {
        if !self.variables {
            return None;
        }
        let name = self.symbols.find(uri.unwrap_or(""), local)?;
        let slot = match self.locals.iter().rev().find(|(local, _)| *local == name) {
            Some((_, slot)) => *slot as u32,
            None => *self.globals.get(&name)? as u32 | GLOBAL,
        };
        Some(VariableInfo { slot, ..VariableInfo::default() })
    }
}

impl Expr {
    /// Compiles `source`. Errors: the message with the place in the expression.
    pub fn compile(
        source: &str,
        scope: &ElementScope<'_>,
        library: &Library<'_>,
        pool: &NamePool,
        uri: &str,
        dialect: Dialect<'_>,
    ) -> Result<Expr, String> {
        let options = CompileOptions {
            namespaces: scope,
            library,
            version: dialect.version(),
            names: Some(pool),
            default_element_namespace: dialect.namespace,
        };
        let compiled = Expression::compile(source, &options).or_else(|error| {
            // An element of version 1.0 in a stylesheet of 2.0: expressions mean what they do in 1.0, where they are some.
            if dialect.level != Level::Compatible {
                return Err(error);
            }
            Expression::compile(source, &CompileOptions { version: Version::V2, ..options })
                .map_err(|_| error)
        });
        match compiled {
            Ok(expression) => {
                let scope = TAKES_NAMES.iter().any(|name| source.contains(name)).then(|| {
                    scope_of(scope.doc, scope.node).into_iter().map(|(p, u)| (p.into(), u.into())).collect()
                });
                let base = TAKES_BASE.iter().any(|name| source.contains(name)).then(|| uri.into());
                let local = source
                    .trim()
                    .strip_prefix('$')
                    .filter(|name| xml::is_ncname(name))
                    .and_then(|name| library.variable("", None, name))
                    .filter(|variable| variable.slot & GLOBAL == 0)
                    .map(|variable| variable.slot);
                Ok(Expr::XPath(Box::new(XPath {
                    expression,
                    scope,
                    base,
                    names: None,
                    all: is_all(source),
                    local,
                })))
            }
            Err(error) => Err(explain(source, &error)),
        }
    }
}

/// Which language expressions are in.
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
    /// XPath 2.0 with the meaning of 1.0: where the version in effect is 1.0 in a stylesheet of 2.0.
    Compatible,
}

impl Dialect<'_> {
    /// The version to try first.
    pub fn version(self) -> Version {
        if self.level == Level::V2 { Version::V2 } else { Version::V1 }
    }
}

/// One line that shows an XPath error.
pub(crate) fn explain(source: &str, error: &xpath::XPathError) -> String {
    let start = error.span.start.min(source.len());
    let column = source.get(..start).map_or(0, |s| s.chars().count()) + 1;
    format!("{} (in the expression \"{source}\", character {column})", error.sentence())
}
