//! Expressions that are made at run time: `dyn:evaluate`, `dyn:map`.

use super::{DocHost, ExprHost};
use crate::expr::XPath;
use crate::functions;
use crate::model::{Place, Scope};
use crate::names::Name;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use xml::Document;
use xpath::{Context, NodeSet, Value};

/// Nested evaluations of dynamic expressions per stack.
const EVALUATIONS: u32 = 100;

impl ExprHost<'_, '_> {
    /// `dyn:evaluate`: a dynamic expression. `None`: it is invalid, or fails.
    pub(super) fn evaluated(&self, source: &str, cx: &Context<'_>) -> Result<Option<Value>, String> {
        if self.depth as usize >= self.engine.options.limits.depth {
            // As in other processors the expression fails, which makes it empty; each of those around it ends with that.
            return Err("XPDY0130: expressions evaluate one another too deeply".into());
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
            types: &HashMap::new(),
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
        let xpath = XPath::dynamic(expression, tree, true, scope, self.xpath.base.clone());
        let (current, depth, next, dynamic) = (self.current, self.depth + 1, self.next, self.dynamic);
        let (node, position, size) = (cx.node, cx.position, cx.size);
        let run = || {
            let failed = Mutex::default();
            let host = ExprHost { engine, locals: &[], current, xpath: &xpath, depth, next, dynamic, failed };
            let doc = engine.doc(node.doc);
            let at = Context { position, size, ..Context::at(doc, node) };
            let cx = at.with_host(&host);
            match xpath.expression.evaluate(&cx) {
                Ok(value) => Ok(Some(value)),
                // A limit that is exceeded ends the transformation.
                Err(error) if error.limit || engine.is_exceeded() => {
                    Err(engine.explained(&host, &xpath.expression, &error, Place::default()))
                }
                Err(_) => Ok(None),
            }
        };
        let evaluated = match depth.is_multiple_of(EVALUATIONS) {
            true => crate::stack::on_new(run),
            false => run(),
        };
        evaluated.map_err(|error| self.keep(error))
    }

    /// `dyn:map`: the expression for each node; values that are not nodes become elements.
    pub(super) fn map(&self, nodes: &NodeSet, source: &str, cx: &Context<'_>) -> Result<Value, String> {
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
}
