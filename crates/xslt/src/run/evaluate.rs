//! `xsl:evaluate` (XSLT 3.0 section 10.4): an expression that is made at run time.

use super::dynamic::NO_DYNAMIC;
use super::host::ExprHost;
use super::out::Out;
use super::{Engine, Focus, Frame, Res};
use crate::expr::{Library, XPath, explain, scope_of};
use crate::model::{Place, Scope};
use crate::version3::Evaluate;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use xml::NodeKind;
use xpath::atomic::Atomic;
use xpath::{
    Context, DocId, Expression, Function, FunctionLibrary, Item, Node, Value, VariableInfo, Version,
    XPathError,
};

/// Most expressions that are kept compiled.
const MOST: usize = 256;

/// The functions that XSLT itself defines: they are not there in such an expression.
const OF_XSLT: [&str; 19] = [
    "accumulator-after",
    "accumulator-before",
    "available-system-properties",
    "copy-of",
    "current",
    "current-group",
    "current-grouping-key",
    "current-merge-group",
    "current-merge-key",
    "current-output-uri",
    "document",
    "element-available",
    "function-available",
    "key",
    "regex-group",
    "snapshot",
    "stream-available",
    "system-property",
    "type-available",
];

/// The namespace and local name of a variable, or the prefix and namespace of a declaration.
type Pair = (String, String);

/// Compiled expressions.
#[derive(Default)]
pub(super) struct Evaluated(Mutex<HashMap<StaticContext, Arc<XPath>>>);

/// An expression, and what its meaning depends on.
#[derive(PartialEq, Eq, Hash)]
struct StaticContext {
    source: String,
    namespaces: Vec<Pair>,
    /// The namespace of element names without a prefix.
    default: String,
    base: String,
    variables: Vec<Pair>,
}

/// What such an expression may refer to.
struct Visible<'a> {
    library: Library<'a>,
    variables: &'a [Pair],
}

impl FunctionLibrary for Visible<'_> {
    fn function(&self, prefix: &str, uri: Option<&str>, local: &str, arity: usize) -> Function {
        let standard =
            uri.is_none_or(|uri| uri.is_empty() || uri == "http://www.w3.org/2005/xpath-functions");
        if standard && OF_XSLT.contains(&local) {
            return Function::Unknown;
        }
        self.library.function(prefix, uri, local, arity)
    }

    fn variable(&self, _: &str, uri: Option<&str>, local: &str) -> Option<VariableInfo> {
        let is = |(namespace, name): &Pair| namespace == uri.unwrap_or("") && name == local;
        let slot = self.variables.iter().position(is)? as u32;
        Some(VariableInfo { slot, ..VariableInfo::default() })
    }
}

impl Engine<'_> {
    pub(super) fn evaluate(
        &self,
        op: &Evaluate,
        focus: Focus,
        frame: &mut Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        let source = self.value(&op.xpath, focus, frame, place)?;
        if source.len() != 1 {
            let message =
                format!("XPTY0004: the expression is a single text, these are {} items", source.len());
            return Err(self.fail(place, message));
        }
        let source = self.string_of(&source, focus, place)?;
        let mark = self.mark();
        let node = match &op.context_item {
            None => Node::ABSENT,
            Some(item) => {
                let value = self.value(item, focus, frame, place)?;
                if value.len() > 1 {
                    let message =
                        format!("XTTE3210: the context item is one item, these are {}", value.len());
                    return Err(self.fail(place, message));
                }
                self.kept(&value).first().copied().unwrap_or(Node::ABSENT)
            }
        };
        let (namespaces, default) = self.evaluated_namespaces(op, focus, frame, place)?;
        let (variables, values) = self.evaluated_variables(op, focus, frame, place)?;
        let module = self.plan.bases.get(place.base as usize).map_or("", String::as_str);
        let base = match &op.base {
            Some(base) => crate::resolver::join(module, self.avt(base, focus, frame, place)?.trim()),
            None => module.to_owned(),
        };
        let xpath = self.evaluated(StaticContext { source, namespaces, default, base, variables }, place)?;
        let inner = Focus { dynamic: NO_DYNAMIC, ..Focus::new(node, focus.depth, focus.next) };
        let value = self.enter_from_expression(inner, place, |focus| {
            let host = ExprHost {
                engine: self,
                locals: &values,
                current: focus.node,
                xpath: &xpath,
                depth: focus.depth,
                next: focus.next,
                dynamic: focus.dynamic,
                failed: Mutex::default(),
            };
            let atom = if node.doc == DocId::ATOMIC { self.kept_atom(node) } else { None };
            let cx = Context {
                doc: self.doc(node.doc),
                node,
                item: atom.as_ref(),
                position: 1,
                size: 1,
                locals: &values,
                referred: false,
                host: &host,
                names: None,
            };
            xpath
                .expression
                .evaluate(&cx)
                .map_err(|error| self.explained(&host, &xpath.expression, &error, place))
        })?;
        self.release(mark);
        let value = match &op.declared {
            Some(declared) => self.converted(value, declared, declared.code, place)?,
            None => value,
        };
        self.write_items(&value, false, out, place)
    }

    /// The prefixes that are declared for the expression, and the namespace of element names without one.
    fn evaluated_namespaces(
        &self,
        op: &Evaluate,
        focus: Focus,
        frame: &Frame,
        place: Place,
    ) -> Res<(Vec<Pair>, String)> {
        let Some(context) = &op.namespace_context else {
            let declared = op.scope.iter().map(|(prefix, uri)| (prefix.to_string(), uri.to_string()));
            return Ok((declared.collect(), op.default.to_string()));
        };
        let value = self.value(context, focus, frame, place)?;
        let (1, Some(Item::Node(node))) = (value.len(), value.item(0)) else {
            let message = format!("XTTE3170: namespace-context is one node, these are {} items", value.len());
            return Err(self.fail(place, message));
        };
        let doc = self.doc(node.doc);
        let element = match doc.kind(node.id) {
            NodeKind::Element => Some(node.id),
            _ => doc.parent(node.id),
        };
        let declared = element.map_or_else(Vec::new, |element| scope_of(doc, element));
        let default = declared.iter().find(|(prefix, _)| prefix.is_empty()).map(|(_, uri)| uri.clone());
        Ok((declared, default.unwrap_or_default()))
    }

    /// The names and values of the variables: those of the map go before those of `xsl:with-param`.
    fn evaluated_variables(
        &self,
        op: &Evaluate,
        focus: Focus,
        frame: &mut Frame,
        place: Place,
    ) -> Res<(Vec<Pair>, Vec<Value>)> {
        let (mut names, mut values) = (Vec::new(), Vec::new());
        for argument in &op.arguments {
            let (namespace, local) = self.symbols.get(argument.name);
            names.push((namespace.to_owned(), local.to_owned()));
            values.push(self.binding(&argument.value, focus, frame, argument.place)?);
        }
        let Some(params) = &op.with_params else { return Ok((names, values)) };
        let value = self.value(params, focus, frame, place)?;
        let wrong = |what: &str| {
            self.fail(place, format!("XTTE3165: with-params is a map with names as keys, this is {what}"))
        };
        let Some(Atomic::Map(map)) = value.single_atomic() else {
            return Err(wrong(if value.len() == 1 { "none" } else { "not a single map" }));
        };
        self.spend(map.len() as u64)?;
        for (key, value) in map.entries() {
            let Atomic::Name(name) = key else { return Err(wrong(&format!("the key {}", key.to_text()))) };
            let name = (name.namespace.to_string(), name.local.to_string());
            match names.iter().position(|other| *other == name) {
                Some(at) => values[at] = value.clone(),
                None => {
                    names.push(name);
                    values.push(value.clone());
                }
            }
        }
        Ok((names, values))
    }

    /// The compiled expression.
    fn evaluated(&self, context: StaticContext, place: Place) -> Res<Arc<XPath>> {
        let lost = || self.fail(place, "the state of the transformation is lost".into());
        if let Some(xpath) = self.evaluated.0.lock().map_err(|_| lost())?.get(&context) {
            return Ok(Arc::clone(xpath));
        }
        self.spend(1 + (context.source.len() as u64 >> 2))?;
        let mut functions = HashMap::new();
        let mut version2_functions = HashMap::new();
        for (slot, function) in self.plan.functions.iter().filter(|(_, function)| function.public) {
            match function.version2 {
                true => version2_functions.insert((function.name, function.parameters.len()), *slot),
                false => functions.insert(function.name, *slot),
            };
        }
        let globals = HashMap::new();
        let library = Library {
            locals: &[],
            globals: &globals,
            functions: &functions,
            version2_functions: &version2_functions,
            types: &HashMap::new(),
            version2: true,
            symbols: self.symbols,
            variables: false,
            current: false,
            strict: true,
            referred: None,
            unavailable: None,
        };
        let visible = Visible { library, variables: &context.variables };
        let options = xpath::CompileOptions {
            namespaces: &context.namespaces,
            library: &visible,
            version: Version::V31,
            default_element_namespace: &context.default,
            ..xpath::CompileOptions::default()
        };
        let invalid = |error: XPathError| {
            let message = format!("XTDE3160: {}", explain(&context.source, &error));
            if error.limit { self.limit(place, message) } else { self.fail(place, message) }
        };
        let tree = xpath::parse(&context.source, options.version).map_err(invalid)?;
        let expression = Expression::from_ast(&tree, &context.source, &options).map_err(invalid)?;
        let scope: Scope =
            context.namespaces.iter().map(|(p, u)| (p.as_str().into(), u.as_str().into())).collect();
        let base = Some(context.base.as_str().into());
        let xpath = Arc::new(XPath::dynamic(expression, tree, false, scope, base));
        let mut kept = self.evaluated.0.lock().map_err(|_| lost())?;
        if kept.len() >= MOST {
            kept.clear();
        }
        kept.insert(context, Arc::clone(&xpath));
        Ok(xpath)
    }
}
