//! Static processing before compilation (XSLT 3.0 sections 3.6, 3.12 and 3.13): static variables and parameters, shadow attributes
//! (`_name="{…}"`) and `use-when`.

use super::XSLT;
use super::availability::{Language, Named, Static};
use super::versions::version_of;
use crate::expr::{ElementScope, namespace_of};
use xml::{Document, NodeId, NodeKind};
use xpath::atomic::Atomic;
use xpath::{Context, SeqType, Value, Version};

/// A static variable or parameter.
pub(crate) struct StaticVariable {
    pub namespace: String,
    pub local: String,
    pub value: Value,
    is_param: bool,
    /// The level of its module: see [`Preparation::levels`].
    level: u32,
}

/// What the preparation of a module depends on.
pub(super) struct Preparation<'p> {
    /// Parameters from outside, by local name or `{uri}local`.
    pub given: &'p [(String, String)],
    /// By a processor of 3.0, whatever the version.
    pub always: bool,
    /// `xsl:evaluate` may run.
    pub evaluates: bool,
    /// The modules that import one another down to this one, included modules with those that include them: a number for each.
    pub levels: Vec<u32>,
}

/// Reads the module of an `xsl:import` or `xsl:include`, whose static variables are declared there.
pub(super) type ReadModule<'r> = dyn FnMut(&Document, NodeId, &mut Vec<StaticVariable>) + 'r;

/// Most braces in a shadow attribute.
const MAX_BRACES: usize = 1000;

/// Prepares a module: removes excluded elements, and evaluates shadow attributes. Modules that it imports or includes are read where
/// that is written. Errors: sentences.
pub(super) fn prepare(
    doc: &mut Document,
    variables: &mut Vec<StaticVariable>,
    preparation: &Preparation<'_>,
    read: &mut ReadModule<'_>,
    errors: &mut Vec<String>,
) {
    let Preparation { always, evaluates, .. } = *preparation;
    let nodes: Vec<NodeId> =
        doc.descendants(Document::ROOT).filter(|n| doc.kind(*n) == NodeKind::Element).collect();
    let mut doomed: Vec<NodeId> = Vec::new();
    for node in nodes {
        // Elements within an excluded one are not evaluated.
        if !doc.is_attached(node) || is_gone(doc, node, &doomed) || version_of(doc, node) < 2.0 && !always {
            continue;
        }
        let version3 = always || version_of(doc, node) >= 3.0;
        let language = Language { version3, evaluates };
        let of_xslt = doc.namespace(node) == XSLT;
        let ns = if of_xslt { "" } else { XSLT };
        // In an element of an unknown version there is no `use-when` either.
        let forwards = version_of(doc, node) > if version3 { 3.0 } else { 2.0 };
        if let Some(source) = doc.attribute(node, ns, "use-when").map(str::to_owned) {
            match evaluate(&source, doc, node, variables, language).and_then(|value| truth(&value)) {
                Ok(true) => {}
                Ok(false) => {
                    doomed.push(node);
                    continue;
                }
                Err(_) if forwards && of_xslt && is_unknown(doc, node) => {
                    doomed.push(node);
                    continue;
                }
                Err(message) => errors.push(format!("use-when=\"{source}\": {message}")),
            }
        }
        if version3 && of_xslt {
            let shadows: Vec<(String, String)> = doc
                .attributes(node)
                .filter(|a| doc.namespace(*a).is_empty() && doc.local(*a).starts_with('_'))
                .map(|a| (doc.local(a)[1..].to_owned(), doc.text(a).to_owned()))
                .collect();
            for (name, template) in shadows {
                match filled(&template, doc, node, variables, language) {
                    Ok(text) if name == "use-when" => {
                        match evaluate(&text, doc, node, variables, language).and_then(|value| truth(&value))
                        {
                            Ok(true) => {}
                            Ok(false) => doomed.push(node),
                            Err(message) => errors.push(format!("use-when=\"{text}\": {message}")),
                        }
                    }
                    Ok(text) => {
                        doc.set_attribute(node, "", "", &name, &text);
                    }
                    Err(message) => errors.push(format!("_{name}=\"{template}\": {message}")),
                }
                doc.remove_attribute(node, "", &format!("_{name}"));
            }
        }
        if version3 && of_xslt && matches!(doc.local(node), "variable" | "param") {
            let is_static = match doc.attribute(node, "", "static").map(str::trim) {
                Some("yes" | "true" | "1") => true,
                None | Some("no" | "false" | "0") => false,
                Some(other) => {
                    errors.push(format!("XTSE0020: static=\"{other}\" must be yes or no"));
                    false
                }
            };
            if is_static && let Err(message) = declare(doc, node, variables, preparation, language) {
                errors.push(message);
            }
        }
        let is_top = || doc.parent(node).is_some_and(|parent| is_stylesheet(doc, parent));
        if of_xslt && matches!(doc.local(node), "import" | "include") && is_top() {
            read(doc, node, variables);
        }
    }
    for node in doomed {
        if is_stylesheet(doc, node) {
            // A module that is excluded becomes one without declarations.
            let children: Vec<NodeId> = doc.children(node).collect();
            children.into_iter().for_each(|child| doc.detach(child));
            continue;
        }
        doc.detach(node);
    }
}

fn is_stylesheet(doc: &Document, node: NodeId) -> bool {
    doc.namespace(node) == XSLT && super::elements::is_outermost(doc.local(node))
}

/// Whether no implemented version has an element of that name.
fn is_unknown(doc: &Document, node: NodeId) -> bool {
    let local = doc.local(node);
    !super::is_available_in_2(local)
        && !super::elements::is_of_version3(local)
        && !super::elements::is_declaration(local)
}

fn is_gone(doc: &Document, node: NodeId, doomed: &[NodeId]) -> bool {
    let mut above = doc.parent(node);
    while let Some(parent) = above {
        if doomed.contains(&parent) {
            return true;
        }
        above = doc.parent(parent);
    }
    false
}

/// A static variable or parameter.
fn declare(
    doc: &Document,
    node: NodeId,
    variables: &mut Vec<StaticVariable>,
    preparation: &Preparation<'_>,
    language: Language,
) -> Result<(), String> {
    let given = preparation.given;
    let name = doc.attribute(node, "", "name").unwrap_or_default().trim().to_owned();
    let top = doc.parent(node).is_some_and(|parent| doc.parent(parent) == Some(Document::ROOT));
    if !top {
        return Err(format!("XTSE0020: ${name}: only what is global can be static"));
    }
    for child in doc.children(node) {
        let unused = || {
            let ns = if doc.namespace(child) == XSLT { "" } else { XSLT };
            let condition = doc.attribute(child, ns, "use-when")?;
            evaluate(condition, doc, child, variables, language).and_then(|value| truth(&value)).ok()
        };
        let counts = match doc.kind(child) {
            NodeKind::Element => unused() != Some(false),
            NodeKind::Text => !doc.text(child).trim().is_empty(),
            _ => false,
        };
        if counts {
            return Err(format!("XTSE0010: ${name} is static: it has a select attribute and no content"));
        }
    }
    for other in ["tunnel", "visibility"] {
        let wrong = doc.attribute(node, "", other).filter(|value| match other {
            "tunnel" => matches!(value.trim(), "yes" | "true" | "1"),
            _ => value.trim() != "private",
        });
        if wrong.is_some() {
            return Err(format!("XTSE0020: ${name} is static: it has no {other}"));
        }
    }
    let (prefix, local) = name.split_once(':').unwrap_or(("", &name));
    let uri = match prefix {
        "" => "",
        prefix => namespace_of(doc, node, prefix)
            .ok_or_else(|| format!("the prefix \"{prefix}\" is not declared"))?,
    };
    let passed =
        given.iter().find(|(key, _)| match key.strip_prefix('{').and_then(|key| key.split_once('}')) {
            Some((namespace, key)) => namespace == uri && key == local,
            None => uri.is_empty() && key == local,
        });
    let required =
        doc.attribute(node, "", "required").is_some_and(|v| matches!(v.trim(), "yes" | "true" | "1"));
    if required && doc.attribute(node, "", "select").is_some() {
        return Err(format!("XTSE0010: the parameter ${name} is required: it has no default"));
    }
    let mut value = match (passed, doc.attribute(node, "", "select")) {
        (Some((_, text)), _) if doc.local(node) == "param" => {
            Value::from(Atomic::Untyped(text.as_str().into()))
        }
        (None, _) if required => return Err(format!("XTDE0050: the parameter ${name} is required")),
        (_, Some(select)) => {
            evaluate(select, doc, node, variables, language).map_err(|e| format!("${name}: {e}"))?
        }
        (_, None) if doc.local(node) == "variable" => {
            return Err(format!("XTSE0010: ${name} is static: it needs select"));
        }
        _ if doc.attribute(node, "", "as").is_some() => Value::Empty,
        _ => Value::from(""),
    };
    if let Some(source) = doc.attribute(node, "", "as") {
        let scope = ElementScope { doc, node };
        let ty = xpath::parse_sequence_type(source)
            .and_then(|ty| SeqType::compile(&ty, source, &scope, ""))
            .map_err(|e| format!("{} (in as=\"{source}\")", e.sentence()))?;
        let names = Named { doc, node, language };
        let cx = Context::without_document(&names);
        value = ty.convert(value, &cx).map_err(|e| format!("XTTE0570: ${name}: {}", e.message))?;
    }
    let is_param = doc.local(node) == "param";
    let level = preparation.levels.last().copied().unwrap_or_default();
    match variables.iter().find(|earlier| earlier.namespace == uri && earlier.local == local) {
        None => {
            let (namespace, local) = (uri.to_owned(), local.to_owned());
            variables.push(StaticVariable { namespace, local, value, is_param, level });
            Ok(())
        }
        // What was declared earlier in the module itself or in one that imports it has at least the precedence of this one.
        Some(earlier) if preparation.levels.contains(&earlier.level) => Ok(()),
        Some(earlier) if earlier.value == value && earlier.is_param == is_param => Ok(()),
        Some(_) => {
            Err(format!("XTSE3450: the static variable ${name} is declared otherwise in an imported module"))
        }
    }
}

fn evaluate(
    source: &str,
    doc: &Document,
    node: NodeId,
    variables: &[StaticVariable],
    language: Language,
) -> Result<Value, String> {
    let scope = ElementScope { doc, node };
    let library = Static { variables };
    let default = default_namespace(doc, node);
    let options = xpath::CompileOptions {
        namespaces: &scope,
        library: &library,
        version: if language.version3 { Version::V31 } else { Version::V2 },
        default_element_namespace: &default,
        ..xpath::CompileOptions::default()
    };
    let expression = xpath::Expression::compile(source, &options).map_err(|e| e.sentence())?;
    let names = Named { doc, node, language };
    let values: Vec<Value> = variables.iter().map(|variable| variable.value.clone()).collect();
    let cx = Context { locals: &values, node: xpath::Node::ABSENT, ..Context::without_document(&names) };
    expression.evaluate(&cx).map_err(|e| e.sentence())
}

/// `xpath-default-namespace` in effect at an element.
fn default_namespace(doc: &Document, node: NodeId) -> String {
    let mut at = Some(node);
    while let Some(element) = at {
        let ns = if doc.namespace(element) == XSLT { "" } else { XSLT };
        if let Some(uri) = doc.attribute(element, ns, "xpath-default-namespace") {
            return uri.to_owned();
        }
        at = doc.parent(element);
    }
    String::new()
}

/// The effective boolean value.
fn truth(value: &Value) -> Result<bool, String> {
    match value {
        Value::Atomic(atom) => atom
            .to_boolean()
            .ok_or_else(|| format!("FORG0006: {} is neither true nor false", atom.describe())),
        Value::Sequence(items) if items.first().is_some_and(|item| item.node().is_none()) => {
            Err("FORG0006: several values are neither true nor false".to_owned())
        }
        other => Ok(other.to_boolean()),
    }
}

/// A text with expressions in braces.
fn filled(
    template: &str,
    doc: &Document,
    node: NodeId,
    variables: &[StaticVariable],
    language: Language,
) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = template;
    for _ in 0..MAX_BRACES {
        let Some(at) = rest.find(['{', '}']) else {
            out.push_str(rest);
            return Ok(out);
        };
        out.push_str(&rest[..at]);
        let brace = &rest[at..at + 1];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            out.push_str(brace);
            rest = after;
            continue;
        }
        if brace == "}" {
            return Err("XTSE0370: a } without {".to_owned());
        }
        let end = end_of_expression(rest).ok_or("XTSE0350: a { without }")?;
        if rest[..end].trim().is_empty() {
            rest = &rest[end + 1..];
            continue;
        }
        let value = evaluate(&rest[..end], doc, node, variables, language)?;
        let texts: Vec<String> = value
            .items()
            .map(|item| match item {
                xpath::Item::Atomic(atom) => atom.to_text().into_owned(),
                xpath::Item::Node(_) => String::new(),
            })
            .collect();
        out.push_str(&texts.join(" "));
        rest = &rest[end + 1..];
    }
    Err(format!("there are more than {MAX_BRACES} braces"))
}

/// The end of the expression at the start of `text`: the brace that closes it.
fn end_of_expression(text: &str) -> Option<usize> {
    let (mut open, mut quote) = (0usize, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), c) if q == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '{') => open += 1,
            (None, '}') if open == 0 => return Some(at),
            (None, '}') => open -= 1,
            _ => {}
        }
    }
    None
}
