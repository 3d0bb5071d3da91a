//! `enrich`: takes something of the message, a property or the configuration and puts it somewhere else.
//!
//! JSON messages are edited as JSON where both sides speak JSON; everything else works on the XML view.

use config::Element;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Expression, Family, Fault, Flow, Inside,
    Mediator, Need, Page, Settings, Values,
};
use message::jsonpath::{Dialect, JsonPath};
use message::{Envelope, Value, XmlValue};
use serde_json::Value as Json;
use std::sync::Arc;
use xml::{Document, NodeId, NodeKind, ParseOptions};

/// `<enrich><source [type] [xpath] [property] [key] [clone]>inline</source><target [type] [xpath] [property] [action]/></enrich>`
pub const DEFINITION: Definition = Definition {
    name: "enrich",
    summary: "Copies or moves a part of the message, a property or inline content to another place.",
    attributes: NO_ATTRIBUTES,
    children: Children::Elements(&["source", "target"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Transformation,
    semantics: "`source` says what is taken, `target` and its `action` where it goes.

Sources: `custom` what an expression selects (elements, texts and strings; attributes need `string(@a)`); `body` the first element of the
body, or the JSON; `envelope` all of it; `property` what a property of default scope holds; `inline` an element or a text, in which
`{expressions}` are filled in, or the entry `key`. With `clone=\"false\"` the source is moved, not copied.

Targets: `custom` the first node that an expression selects, `body`, `envelope`, `property`, and for JSON `key`, the name of a
member. Actions: `replace` puts the source in the place of the target; `child` into it, at its end; `sibling` behind it; `remove` takes the
JSONPaths of the source, with commas between them, out of the payload. A text that replaces an element is its text then; one that
replaces the body, and is a JSON object or array, is the payload. A text property is a text, never XML.

If the payload is JSON, and no expression is an XPath and no content XML, the JSON is edited: a path that does not exist is an error, no member
is made by `replace`; `child` appends to an array and merges into an object. Otherwise the XML view is edited, and a JSON payload is written back as
JSON. The content type stays. A source that gives nothing is logged, and a custom target stays as it is.",
    inside: &[
        Inside::new(
            "source",
            "what is taken",
            &[
                Attribute::optional(
                    "type",
                    Values::OneOf(&["custom", "envelope", "body", "property", "inline"]),
                    "what it is",
                )
                .or("custom"),
                Attribute::optional("xpath", Values::Expression, "for `custom`: the expression"),
                Attribute::optional("property", Values::Text, "for `property`: its name"),
                Attribute::optional("key", Values::Text, "for `inline`: an entry instead of what is inside"),
                Attribute::optional("clone", Values::Boolean, "false: it is moved").or("true"),
            ],
        )
        .with("element or text"),
        Inside::new(
            "target",
            "where it goes",
            &[
                Attribute::optional(
                    "type",
                    Values::OneOf(&["custom", "envelope", "body", "property", "key"]),
                    "what it is",
                )
                .or("custom"),
                Attribute::optional("xpath", Values::Expression, "for `custom` and `key`: the expression"),
                Attribute::optional("property", Values::Text, "for `property`: its name"),
                Attribute::optional(
                    "action",
                    Values::OneOf(&["replace", "child", "sibling", "remove"]),
                    "how it goes there",
                )
                .or("replace"),
            ],
        ),
    ],
    needs: &[(Need::Whole, "always")],
    refused: &[
        ("<enrich><source type=\"body\"/></enrich>", "`enrich` needs `source` and `target`"),
        ("<enrich><source xpath=\"//a[\"/><target type=\"body\"/></enrich>", "no valid expression"),
        ("<enrich><source type=\"body\"/><target type=\"envelope\"/></enrich>", "`enrich` cannot do this"),
        ("<enrich><source type=\"property\"/><target type=\"body\"/></enrich>", "needs the attribute `property`"),
        ("<enrich><source type=\"inline\"/><target type=\"body\"/></enrich>", "inline content is missing"),
        ("<enrich><source type=\"body\"/><target xpath=\"//a\" action=\"swap\"/></enrich>", "`swap` is no action"),
    ],
    faults: &[
        (
            "0",
            "a custom target selects nothing, a JSONPath finds nothing, the new envelope is none, or the body is larger than a flow \
             may hold",
        ),
        ("601000", "the body is not what its content type says"),
    ],
};

const NO_ATTRIBUTES: &[Attribute] = &[];

struct Enrich {
    source: Source,
    /// The source stays where it is.
    clone: bool,
    target: Target,
    action: Action,
}

enum Source {
    Custom(Expression),
    /// `remove`: the JSONPaths.
    Paths(Vec<JsonPath>),
    Envelope,
    Body,
    Property(Arc<str>),
    Element(Arc<XmlValue>),
    /// Text with expressions in braces; XML if `markup`.
    Text {
        pieces: Vec<Piece>,
        markup: bool,
    },
    Entry(Arc<str>),
}

enum Piece {
    Text(String),
    Expression(Expression),
}

enum Target {
    Custom(Expression),
    /// The object that holds the member, and the member that is renamed.
    Key(JsonPath, String),
    Envelope,
    Body,
    Property(Arc<str>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Replace,
    Child,
    Sibling,
    Remove,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let (Some(from), Some(to)) = (element.child("source"), element.child("target")) else {
        let place = element.start_tag();
        compiler.error("missing-element", "`enrich` needs `source` and `target`", place, "both of them");
        return None;
    };
    let action = match to.attr("action").unwrap_or("replace") {
        "replace" => Action::Replace,
        "child" => Action::Child,
        "sibling" => Action::Sibling,
        "remove" => Action::Remove,
        other => {
            let message = format!("`{other}` is no action");
            compiler.error(
                "bad-value",
                message,
                to.start_tag(),
                "expected replace, child, sibling or remove",
            );
            return None;
        }
    };
    let (kind, onto) = (from.attr("type").unwrap_or("custom"), to.attr("type").unwrap_or("custom"));
    let wrong = match (kind, onto, action) {
        (_, "inline", _) => Some("inline content cannot be a target"),
        ("envelope", "custom" | "envelope" | "body", _) => Some("an envelope cannot go into the message"),
        ("body", "envelope" | "body", _) => Some("the body cannot be put there"),
        ("custom", "envelope", _) => Some("a part of the message cannot become the envelope"),
        (_, "envelope", Action::Child | Action::Sibling | Action::Remove) => {
            Some("an envelope can only be replaced")
        }
        ("body", "key", _) => Some("the body cannot be the name of a member"),
        (_, "key", Action::Child | Action::Sibling | Action::Remove) => Some("a name can only be replaced"),
        ("envelope" | "body" | "property" | "inline", _, Action::Remove) => {
            Some("what is removed is named by json-eval")
        }
        _ => None,
    };
    if let Some(why) = wrong {
        let message = format!("`enrich` cannot do this: {why}");
        compiler.error("bad-value", message, element.start_tag(), format!("source {kind}, target {onto}"));
        return None;
    }
    let source = source(kind, action, from, compiler)?;
    let target = target(onto, action, to, compiler)?;
    Some(Box::new(Enrich { source, clone: from.attr("clone") != Some("false"), target, action }))
}

/// A required attribute; `None` after a recorded error.
fn required<'e>(
    element: &'e Element,
    name: &str,
    compiler: &mut Compiler<'_>,
) -> Option<&'e config::Attribute> {
    let found = element.attribute(name);
    if found.is_none() {
        let message = format!("this `{}` needs the attribute `{name}`", element.local());
        compiler.error("missing-attribute", message, element.start_tag(), name.to_owned());
    }
    found
}

fn source(kind: &str, action: Action, from: &Element, compiler: &mut Compiler<'_>) -> Option<Source> {
    Some(match kind {
        "custom" => {
            let attribute = required(from, "xpath", compiler)?;
            let text = attribute.value.trim();
            if action == Action::Remove {
                let inner =
                    text.strip_prefix("json-eval(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(text);
                let mut paths = Vec::new();
                for path in split_paths(inner) {
                    match JsonPath::compile(path.trim(), Dialect::Jayway) {
                        Ok(path) => paths.push(path),
                        Err(error) => {
                            let message = format!("`{}` is no JSONPath", path.trim());
                            compiler.error("bad-expression", message, attribute.value_span, error.message);
                            return None;
                        }
                    }
                }
                return Some(Source::Paths(paths));
            }
            Source::Custom(compiler.expression(from, "xpath")?)
        }
        "envelope" => Source::Envelope,
        "body" => Source::Body,
        "property" => Source::Property(Arc::from(&*required(from, "property", compiler)?.value)),
        "inline" => {
            if let Some(key) = from.attr("key") {
                return Some(Source::Entry(Arc::from(key)));
            }
            let (text, markup) = match from.elements().next() {
                Some(inside) => (inside.to_xml(), true),
                None => (from.text().trim().to_owned(), false),
            };
            if text.is_empty() {
                let place = from.start_tag();
                compiler.error(
                    "missing-element",
                    "inline content is missing",
                    place,
                    "an element, text or a key",
                );
                return None;
            }
            let pieces = pieces(&text, from, &compiler.services.settings);
            match pieces.as_slice() {
                [Piece::Text(text)] if markup => Source::Element(Arc::new(parsed(text)?)),
                _ => Source::Text { pieces, markup },
            }
        }
        other => {
            let message = format!("`{other}` is no kind of source");
            let expected = "expected custom, envelope, body, property or inline";
            compiler.error("bad-value", message, from.start_tag(), expected);
            return None;
        }
    })
}

fn target(onto: &str, action: Action, to: &Element, compiler: &mut Compiler<'_>) -> Option<Target> {
    Some(match onto {
        "custom" => {
            let attribute = required(to, "xpath", compiler)?;
            let expression = compiler.expression(to, "xpath")?;
            if action == Action::Replace && expression.json_path().is_some_and(JsonPath::is_root) {
                let place = attribute.value_span;
                compiler.error("bad-value", "the whole payload is the type body", place, "use type=\"body\"");
                return None;
            }
            Target::Custom(expression)
        }
        "key" => {
            let attribute = required(to, "xpath", compiler)?;
            let text = attribute.value.trim();
            let text =
                text.strip_prefix("json-eval(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(text);
            let (parent, member) = text.rsplit_once('.').unwrap_or(("$", text));
            match JsonPath::compile(parent, Dialect::Jayway) {
                Ok(parent) => Target::Key(parent, member.to_owned()),
                Err(error) => {
                    let message = format!("`{text}` is no JSONPath");
                    compiler.error("bad-expression", message, attribute.value_span, error.message);
                    return None;
                }
            }
        }
        "envelope" => Target::Envelope,
        "body" => Target::Body,
        "property" => Target::Property(Arc::from(&*required(to, "property", compiler)?.value)),
        other => {
            let message = format!("`{other}` is no kind of target");
            let expected = "expected custom, envelope, body, property or key";
            compiler.error("bad-value", message, to.start_tag(), expected);
            return None;
        }
    })
}

/// Splits at the commas between paths: not those in brackets, parentheses or quotes.
fn split_paths(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0usize, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[' | '(') => depth += 1,
            (None, ']' | ')') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Finds the expressions in braces: those without blanks, quotes, commas, brackets or markup inside.
fn pieces(text: &str, element: &Element, settings: &Settings) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mut start, mut from) = (0, 0);
    while let Some(open) = text[from..].find('{').map(|at| at + from) {
        from = open + 1;
        let Some(close) = text[from..].find('}').map(|at| at + from) else { break };
        let inside = &text[from..close];
        let may_be = !inside.is_empty()
            && inside.contains(['$', '/', '('])
            && !inside.contains(|c: char| c.is_whitespace() || "\"',[]{}<>".contains(c));
        if !may_be {
            continue;
        }
        if let Ok(expression) = Expression::compile(inside, element.scope(), element.text_span(), settings) {
            if open > start {
                pieces.push(Piece::Text(text[start..open].to_owned()));
            }
            pieces.push(Piece::Expression(expression));
            start = close + 1;
            from = start;
        }
    }
    if start < text.len() {
        pieces.push(Piece::Text(text[start..].to_owned()));
    }
    pieces
}

fn parsed(text: &str) -> Option<XmlValue> {
    let document = Document::parse(text.as_bytes().to_vec(), &ParseOptions::default()).ok()?;
    let root = document.document_element()?;
    Some(XmlValue { document: Arc::new(document), nodes: vec![root] })
}

/// What an XML source gives: nodes of a document of their own, or a text.
enum Part {
    Nodes(Arc<XmlValue>),
    Text(String),
}

impl Mediator for Enrich {
    fn need(&self) -> Need {
        Need::Whole
    }

    fn reason(&self) -> String {
        "edits the message".into()
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        if self.is_json(context) {
            self.json(context)?;
        } else {
            self.xml(context)?;
        }
        if matches!(self.target, Target::Body | Target::Envelope) {
            context.remove_axis2("NO_ENTITY_BODY");
        }
        Ok(Flow::Next)
    }
}

impl Enrich {
    /// Whether both sides speak JSON.
    fn is_json(&self, context: &Context) -> bool {
        let source = match &self.source {
            Source::Custom(expression) => expression.is_json(),
            Source::Paths(_) | Source::Body => true,
            Source::Envelope | Source::Element(_) | Source::Text { markup: true, .. } => false,
            Source::Property(name) => !matches!(context.properties.get(name), Some(Value::Xml(_))),
            Source::Text { .. } => true,
            Source::Entry(key) => {
                !matches!(context.plan().entry(key), Some(entry) if matches!(entry.value, Value::Xml(_)))
            }
        };
        let target = match &self.target {
            Target::Custom(expression) => expression.is_json(),
            Target::Envelope => false,
            _ => true,
        };
        source && target && context.payload.is_json()
    }

    // ---- JSON -------------------------------------------------------------------------------------------------

    fn json(&self, context: &mut Context) -> Result<(), Fault> {
        let mut root = context.payload.json()?.cloned().unwrap_or(Json::Null);
        if let Source::Paths(paths) = &self.source {
            return self.remove(paths, root, context);
        }
        let value = self.json_source(&root, context)?;
        if !self.clone
            && let Source::Custom(expression) = &self.source
            && let Some(path) = expression.json_path()
            && path.delete(&mut root) > 0
        {
            context.payload.set_json_value(root.clone());
        }
        let skip = |context: &Context, why: &str| {
            tracing::error!(message_id = %context.message_id(), "enrich does nothing: {why}");
            Ok(())
        };
        match (&self.target, self.action) {
            (Target::Custom(_) | Target::Body, Action::Sibling) => skip(context, "JSON has no siblings"),
            (Target::Custom(expression), action) => {
                let path = fixed(expression)?;
                let changed = if action == Action::Child {
                    path.update(&mut root, |found| match found {
                        Json::Array(items) => items.push(value.clone()),
                        Json::Object(members) => {
                            if let Json::Object(more) = &value {
                                members.extend(more.clone());
                            }
                        }
                        _ => {}
                    })
                } else {
                    path.set(&mut root, &value)
                };
                if changed == 0 && path.is_definite() {
                    return Err(Fault::new(format!("enrich: the path {} leads nowhere", path.source())));
                }
                context.payload.set_json_value(root);
                Ok(())
            }
            (Target::Body, Action::Replace) if value.is_object() || value.is_array() => {
                context.payload.set_json_value(value);
                Ok(())
            }
            (Target::Body, _) => skip(context, "only an object or array can replace a JSON payload"),
            (Target::Property(name), Action::Child) => {
                let held = context.properties.get(name).and_then(json_of);
                let Some(Json::Array(mut items)) = held else {
                    return skip(context, "the property holds no JSON array");
                };
                items.push(value);
                context.properties.set(Arc::clone(name), Value::Json(Arc::new(Json::Array(items))));
                Ok(())
            }
            (Target::Property(name), _) => {
                context.properties.set(Arc::clone(name), property_of(value));
                Ok(())
            }
            (Target::Key(parent, member), _) => {
                let new = match value {
                    Json::String(text) => text,
                    Json::Number(_) | Json::Bool(_) => value.to_string(),
                    _ => return Err(Fault::new("enrich: the new name of a member has to be a text")),
                };
                let mut renamed = false;
                parent.update(&mut root, |object| {
                    if let Json::Object(members) = object
                        && let Some(value) = members.shift_remove(member)
                    {
                        members.insert(new.clone(), value);
                        renamed = true;
                    }
                });
                if !renamed {
                    return Err(Fault::new(format!("enrich: there is no member {member} to rename")));
                }
                context.payload.set_json_value(root);
                Ok(())
            }
            (Target::Envelope, _) => Err(invalid_target()),
        }
    }

    fn json_source(&self, root: &Json, context: &mut Context) -> Result<Json, Fault> {
        let missing = || Fault::new("Failed to get the source for Enriching");
        match &self.source {
            Source::Custom(expression) => expression.json_values(context)?.ok_or_else(missing),
            Source::Body => Ok(root.clone()),
            Source::Property(name) => {
                let value = context.properties.get(name).ok_or_else(missing)?;
                Ok(json_of(value).unwrap_or_else(|| Json::String(value.to_string())))
            }
            Source::Text { pieces, .. } => {
                let text = filled(pieces, context, |text, out| match serde_json::from_str::<Json>(text) {
                    Ok(value) if value.is_object() || value.is_array() => out.push_str(text),
                    _ => message::json::escape(text, out),
                })?;
                Ok(serde_json::from_str(&text).unwrap_or(Json::String(text)))
            }
            Source::Entry(key) => {
                let value = context.plan().entry(key).ok_or_else(missing)?.value;
                Ok(json_of(&value).unwrap_or_else(|| Json::String(value.to_string())))
            }
            Source::Paths(_) | Source::Envelope | Source::Element(_) => Err(missing()),
        }
    }

    fn remove(&self, paths: &[JsonPath], root: Json, context: &mut Context) -> Result<(), Fault> {
        let mut value = match &self.target {
            Target::Property(name) => context
                .properties
                .get(name)
                .and_then(json_of)
                .ok_or_else(|| Fault::new(format!("enrich: the property {name} holds no JSON")))?,
            Target::Body => root,
            _ => return Err(invalid_target()),
        };
        for path in paths {
            if path.is_root() {
                value = Json::Object(serde_json::Map::new());
            } else if path.delete(&mut value) == 0 && path.is_definite() {
                return Err(Fault::new(format!("enrich: the path {} leads nowhere", path.source())));
            }
        }
        match &self.target {
            Target::Property(name) => context.properties.set(Arc::clone(name), property_of(value)),
            _ => context.payload.set_json_value(value),
        }
        Ok(())
    }

    // ---- XML --------------------------------------------------------------------------------------------------

    fn xml(&self, context: &mut Context) -> Result<(), Fault> {
        if self.action == Action::Remove || matches!(self.target, Target::Key(..)) {
            return match self.target {
                Target::Body | Target::Property(_) => Ok(()),
                _ => Err(invalid_target()),
            };
        }
        let (part, moved) = self.xml_source(context)?;
        let part = match part {
            Some(part) => part,
            None => {
                tracing::error!(message_id = %context.message_id(), "enrich: the source is empty");
                match &self.target {
                    Target::Property(name) => context.properties.set(Arc::clone(name), Value::from("")),
                    Target::Envelope => return Err(invalid_target()),
                    _ => {}
                }
                return Ok(());
            }
        };
        match &self.target {
            Target::Property(name) => {
                self.detach(&moved, context)?;
                return self.to_property(name, part, context);
            }
            Target::Envelope => {
                let Part::Nodes(xml) = &part else { return Err(invalid_target()) };
                let mut whole = Document::new();
                if let Some(&first) = xml.nodes.first() {
                    whole.copy_from(Document::ROOT, &xml.document, first);
                }
                let envelope = Envelope::of_document(whole).map_err(|why| invalid_target().because(why))?;
                context.payload.set_envelope(envelope);
                return Ok(());
            }
            Target::Body => {
                if let (Part::Text(text), Action::Replace) = (&part, self.action)
                    && text.trim_start().starts_with(['{', '['])
                    && let Ok(value) = serde_json::from_str::<Json>(text)
                {
                    context.payload.set_json_value(value);
                    return Ok(());
                }
            }
            Target::Custom(_) | Target::Key(..) => {}
        }
        let place = match &self.target {
            Target::Custom(expression) => {
                Some(expression.nodes(context)?.first().copied().ok_or_else(invalid_target)?)
            }
            _ => context.envelope()?.payload(),
        };
        self.detach(&moved, context)?;
        let action = self.action;
        let envelope = context.envelope_mut()?;
        match place {
            Some(place) => put(&mut envelope.document, place, &part, action),
            None => append(&mut envelope.document, envelope.body, &part),
        }
        envelope.refresh().map_err(|why| Fault::new(format!("enrich broke the SOAP envelope: {why}")))
    }

    fn detach(&self, nodes: &[NodeId], context: &mut Context) -> Result<(), Fault> {
        if !nodes.is_empty() {
            let document = &mut context.envelope_mut()?.document;
            nodes.iter().for_each(|&node| document.detach(node));
        }
        Ok(())
    }

    /// The source, copied, and the nodes of the message that have to leave their places.
    fn xml_source(&self, context: &mut Context) -> Result<(Option<Part>, Vec<NodeId>), Fault> {
        let own = |value: Option<&Value>| match value {
            Some(Value::Xml(xml)) => Some(Part::Nodes(Arc::clone(xml))),
            Some(value @ (Value::String(_) | Value::Json(_))) => Some(Part::Text(value.to_string())),
            _ => None,
        };
        let nodes = match &self.source {
            Source::Custom(expression) => {
                let nodes = expression.nodes(context)?;
                if nodes.is_empty() {
                    let value = expression.value(context)?;
                    let empty = matches!(&value, Some(Value::String(text)) if text.is_empty());
                    return Ok((own(value.as_ref().filter(|_| !empty)), Vec::new()));
                }
                let document = &context.envelope()?.document;
                let kinds = [NodeKind::Element, NodeKind::Text];
                let nodes: Vec<_> =
                    nodes.into_iter().filter(|&node| kinds.contains(&document.kind(node))).collect();
                if nodes.iter().all(|&node| document.kind(node) == NodeKind::Text) && !nodes.is_empty() {
                    let text = nodes.iter().map(|&node| document.text(node)).collect();
                    return Ok((Some(Part::Text(text)), if self.clone { Vec::new() } else { nodes }));
                }
                nodes
            }
            Source::Envelope => vec![context.envelope()?.root],
            Source::Body => context.envelope()?.payload().into_iter().collect(),
            Source::Property(name) => return Ok((own(context.properties.get(name)), Vec::new())),
            Source::Element(xml) => return Ok((Some(Part::Nodes(Arc::clone(xml))), Vec::new())),
            Source::Entry(key) => {
                return Ok((own(context.plan().entry(key).map(|entry| entry.value).as_ref()), Vec::new()));
            }
            Source::Text { pieces, markup } => {
                let markup = *markup;
                let text = filled(pieces, context, |text, out| {
                    if !markup || text.trim_start().starts_with('<') {
                        out.push_str(text);
                    } else {
                        let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                        out.push_str(&escaped);
                    }
                })?;
                let part = match parsed(&text) {
                    Some(xml) => Part::Nodes(Arc::new(xml)),
                    None => Part::Text(text),
                };
                return Ok((Some(part), Vec::new()));
            }
            Source::Paths(_) => Vec::new(),
        };
        if nodes.is_empty() {
            return Ok((None, nodes));
        }
        let copy = XmlValue::copy_of(&context.envelope()?.document, &nodes);
        let moves = !self.clone && !matches!(self.source, Source::Envelope);
        Ok((Some(Part::Nodes(Arc::new(copy))), if moves { nodes } else { Vec::new() }))
    }

    fn to_property(&self, name: &Arc<str>, part: Part, context: &mut Context) -> Result<(), Fault> {
        let value = match part {
            Part::Text(text) => Value::from(text),
            Part::Nodes(xml) => {
                let held = match context.properties.get(name) {
                    Some(Value::Xml(held)) if self.action == Action::Child => Some(Arc::clone(held)),
                    Some(Value::String(text)) if self.action == Action::Child => parsed(text).map(Arc::new),
                    _ => None,
                };
                match held.and_then(|held| held.nodes.first().copied().map(|first| (held, first))) {
                    Some((held, first)) => {
                        let mut document = (*held.document).clone();
                        for &node in &xml.nodes {
                            document.copy_from(first, &xml.document, node);
                        }
                        let nodes = held.nodes.clone();
                        Value::Xml(Arc::new(XmlValue { document: Arc::new(document), nodes }))
                    }
                    None => Value::Xml(xml),
                }
            }
        };
        context.properties.set(Arc::clone(name), value);
        Ok(())
    }
}

fn invalid_target() -> Fault {
    Fault::new("Invalid Target object to be enrich.")
}

fn fixed(expression: &Expression) -> Result<&JsonPath, Fault> {
    expression.json_path().ok_or_else(|| {
        Fault::new(format!("{} cannot be a target: it is no plain JSONPath", expression.source()))
    })
}

/// A property as JSON, if it is some.
fn json_of(value: &Value) -> Option<Json> {
    match value {
        Value::Json(json) => Some((**json).clone()),
        other => serde_json::from_str(&other.to_string()).ok(),
    }
}

/// JSON as a property: its text, strings in quotes.
fn property_of(value: Json) -> Value {
    match value {
        Json::String(_) => Value::from(value.to_string()),
        other => Value::Json(Arc::new(other)),
    }
}

fn filled(
    pieces: &[Piece],
    context: &mut Context,
    insert: impl Fn(&str, &mut String),
) -> Result<String, Fault> {
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Expression(expression) => {
                insert(&expression.string(context)?.unwrap_or_default(), &mut out);
            }
        }
    }
    Ok(out)
}

fn append(document: &mut Document, parent: NodeId, part: &Part) {
    if let Part::Nodes(xml) = part {
        for &node in &xml.nodes {
            document.copy_from(parent, &xml.document, node);
        }
    }
}

/// The text directly in an element becomes `text`; its child elements stay.
fn set_own_text(document: &mut Document, element: NodeId, text: &str) {
    let texts: Vec<_> =
        document.children(element).filter(|&child| document.kind(child) == NodeKind::Text).collect();
    texts.into_iter().for_each(|node| document.detach(node));
    document.append_text(element, text);
}

/// Puts the part at, into or behind a node.
fn put(document: &mut Document, place: NodeId, part: &Part, action: Action) {
    match (document.kind(place), part) {
        (NodeKind::Attribute, Part::Text(text)) => document.set_text(place, text),
        (NodeKind::Attribute, Part::Nodes(xml)) => {
            let text = xml.nodes.first().map(|&node| xml.document.string_value(node).into_owned());
            document.set_text(place, &text.unwrap_or_default());
        }
        (NodeKind::Text, Part::Text(text)) => match document.parent(place) {
            Some(parent) => set_own_text(document, parent, text),
            None => document.set_text(place, text),
        },
        (NodeKind::Text, Part::Nodes(_)) => {
            if let Some(parent) = document.parent(place) {
                document.detach(place);
                append(document, parent, part);
            }
        }
        (NodeKind::Element, Part::Text(text)) if action == Action::Replace => {
            set_own_text(document, place, text);
        }
        (NodeKind::Element, Part::Text(_)) => {}
        (NodeKind::Element, Part::Nodes(xml)) => match action {
            Action::Child => append(document, place, part),
            _ => {
                let Some(parent) = document.parent(place) else { return };
                for &node in &xml.nodes {
                    if xml.document.kind(node) != NodeKind::Element {
                        continue;
                    }
                    let copy = document.copy_from(parent, &xml.document, node);
                    if action == Action::Sibling {
                        document.insert_after(place, copy);
                    } else {
                        document.insert_before(place, copy);
                    }
                }
                if action == Action::Replace {
                    document.detach(place);
                }
            }
        },
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::testing;

    const XML: &[(&str, &str)] = &[("Content-Type", "application/xml")];
    const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];

    fn run(inside: &str, headers: &[(&str, &str)], body: &str) -> Result<String, String> {
        let tested = testing::main(&crate::registry(testing::endpoints), inside);
        assert!(tested.found.is_empty(), "{:?}", tested.found);
        tested.run(headers, body).outcome()
    }

    #[test]
    fn xml_goes_from_place_to_place() {
        let body = "<r><a><i>1</i></a><b ref=\"x\"><n>old</n></b></r>";
        for (source, target, out) in [
            (
                "xpath='//i'",
                "xpath='//b' action='child'",
                "<r><a><i>1</i></a><b ref=\"x\"><n>old</n><i>1</i></b></r>",
            ),
            (
                "xpath='//i' clone='false'",
                "xpath='//b' action='child'",
                "<r><a/><b ref=\"x\"><n>old</n><i>1</i></b></r>",
            ),
            ("xpath='//i'", "xpath='//n'", "<r><a><i>1</i></a><b ref=\"x\"><i>1</i></b></r>"),
            (
                "xpath='//i'",
                "xpath='//a' action='sibling'",
                "<r><a><i>1</i></a><i>1</i><b ref=\"x\"><n>old</n></b></r>",
            ),
            ("xpath='//i/text()'", "xpath='//n/text()'", "<r><a><i>1</i></a><b ref=\"x\"><n>1</n></b></r>"),
            ("xpath='//i/text()'", "xpath='//b/@ref'", "<r><a><i>1</i></a><b ref=\"1\"><n>old</n></b></r>"),
            ("xpath='//i'", "xpath='//b/@ref'", "<r><a><i>1</i></a><b ref=\"1\"><n>old</n></b></r>"),
            ("xpath='string(//b/@ref)'", "xpath='//n'", "<r><a><i>1</i></a><b ref=\"x\"><n>x</n></b></r>"),
            ("xpath='//i'", "xpath='//n/text()'", "<r><a><i>1</i></a><b ref=\"x\"><n><i>1</i></n></b></r>"),
            ("xpath='//none'", "xpath='//n'", "<r><a><i>1</i></a><b ref=\"x\"><n>old</n></b></r>"),
            ("xpath='//b/@ref'", "xpath='//n'", "<r><a><i>1</i></a><b ref=\"x\"><n>old</n></b></r>"),
            ("xpath='//i'", "type='body'", "<i>1</i>"),
            (
                "xpath='//i'",
                "type='body' action='child'",
                "<r><a><i>1</i></a><b ref=\"x\"><n>old</n></b><i>1</i></r>",
            ),
        ] {
            let text = format!("<enrich><source {source}/><target {target}/></enrich>");
            assert_eq!(run(&text, XML, body).as_deref(), Ok(out), "{text}");
        }
    }

    #[test]
    fn inline_content_and_properties() {
        for (text, headers, body, out) in [
            (
                "<enrich><source type='inline'><x xmlns=''><y>{//t}</y></x></source><target type='body' action='child'/></enrich>",
                XML,
                "<r><t>1</t></r>",
                "<r><t>1</t><x><y>1</y></x></r>",
            ),
            (
                "<enrich><source type='inline'>so {//t} it</source><target xpath='//t'/></enrich>",
                XML,
                "<r><t>1</t></r>",
                "<r><t>so 1 it</t></r>",
            ),
            (
                "<enrich><source type='inline'>{\"a\":1}</source><target type='body'/></enrich>",
                XML,
                "<r/>",
                r#"{"a":1}"#,
            ),
            (
                "<enrich><source type='body'/><target type='property' property='p'/></enrich><enrich><source type='property' property='p'/><target xpath='//t'/></enrich>",
                XML,
                "<r><t/></r>",
                "<r><r><t/></r></r>",
            ),
            (
                "<enrich><source type='envelope'/><target type='property' property='p'/></enrich><payloadFactory><format><n xmlns=''/></format></payloadFactory>\
              <enrich><source type='property' property='p'/><target type='envelope'/></enrich>",
                XML,
                "<r><t/></r>",
                "<r><t/></r>",
            ),
            (
                "<enrich><source type='inline' key='e'/><target type='body'/></enrich><!--top--><localEntry key='e'><q xmlns=''/></localEntry>",
                XML,
                "<r/>",
                "<q/>",
            ),
            (
                "<enrich><source type='inline' key='e'/><target xpath='json-eval($.a)'/></enrich><!--top--><localEntry key='e'>[1]</localEntry>",
                JSON,
                r#"{"a":0}"#,
                r#"{"a":[1]}"#,
            ),
            (
                "<enrich><source type='inline'>{\"id\":\"{json-eval($.a)}\"}</source><target xpath='json-eval($.b)'/></enrich>",
                JSON,
                r#"{"a":"x\"y","b":0}"#,
                r#"{"a":"x\"y","b":{"id":"x\"y"}}"#,
            ),
        ] {
            assert_eq!(run(text, headers, body).as_deref(), Ok(out), "{text}");
        }
    }

    #[test]
    fn json_is_edited_as_json() {
        let body = r#"{"a":1,"l":[1],"o":{"z":1},"t":"txt"}"#;
        for (source, target, out) in [
            (
                "xpath='json-eval($.t)'",
                "xpath='json-eval($.a)'",
                r#"{"a":"txt","l":[1],"o":{"z":1},"t":"txt"}"#,
            ),
            (
                "xpath='json-eval($.t)' clone='false'",
                "xpath='json-eval($.a)'",
                r#"{"a":"txt","l":[1],"o":{"z":1}}"#,
            ),
            (
                "xpath='json-eval($.t)'",
                "xpath='json-eval($.l)' action='child'",
                r#"{"a":1,"l":[1,"txt"],"o":{"z":1},"t":"txt"}"#,
            ),
            (
                "xpath='json-eval($.o)'",
                "xpath='json-eval($)' action='child'",
                r#"{"a":1,"l":[1],"o":{"z":1},"t":"txt","z":1}"#,
            ),
            ("xpath='json-eval($.l[*])'", "type='body'", "[1]"),
            ("xpath='json-eval($.t)'", "type='body'", body),
            ("xpath='json-eval($.t)'", "type='body' action='sibling'", body),
            ("xpath='json-eval($.l[0],$.o)'", "type='body' action='remove'", r#"{"a":1,"l":[],"t":"txt"}"#),
            ("xpath='json-eval($)'", "type='body' action='remove'", "{}"),
            (
                "xpath='json-eval($.t)'",
                "type='key' xpath='json-eval($.o.z)'",
                r#"{"a":1,"l":[1],"o":{"txt":1},"t":"txt"}"#,
            ),
        ] {
            let text = format!("<enrich><source {source}/><target {target}/></enrich>");
            assert_eq!(run(&text, JSON, body).as_deref(), Ok(out), "{text}");
        }
        let tested = testing::main(
            &crate::registry(testing::endpoints),
            "<enrich><source xpath='json-eval($.t)'/><target type='property' property='p'/></enrich>",
        );
        assert_eq!(tested.run(JSON, body).property("p").as_deref(), Some("\"txt\""));
    }

    #[test]
    fn what_does_not_fit_faults_and_nothing_panics() {
        for (source, target, headers, body) in [
            ("xpath='//a'", "xpath='//none'", XML, "<r><a/></r>"),
            ("xpath='//a'", "xpath='//b'", XML, "<r"),
            ("type='property' property='p'", "type='envelope'", XML, "<r/>"),
            ("xpath='//a'", "type='key' xpath='$.a'", XML, "<r><a/></r>"),
            ("xpath='json-eval($.none)'", "xpath='json-eval($.a)'", JSON, r#"{"a":1}"#),
            ("xpath='json-eval($.a)'", "xpath='json-eval($.none)'", JSON, r#"{"a":1}"#),
            ("xpath='json-eval($.none)'", "type='body' action='remove'", JSON, r#"{"a":1}"#),
            ("xpath='json-eval($.o)'", "type='key' xpath='$.a'", JSON, r#"{"a":1,"o":{}}"#),
            ("type='property' property='none'", "type='body'", JSON, r#"{"a":1}"#),
            ("xpath='//a'", "xpath='json-eval($.a)'", JSON, r#"{"a":1}"#),
            ("xpath='json-eval($.a)'", "xpath='json-eval($.a)'", JSON, "{"),
        ] {
            let text = format!("<enrich><source {source}/><target {target}/></enrich>");
            let result = run(&text, headers, body);
            assert!(result.is_err(), "{text}: {result:?}");
        }
        for body in ["", "<r/>"] {
            let _ = run("<enrich><source xpath='/*'/><target xpath='/*/*' /></enrich>", XML, body);
            let _ = run(
                "<enrich><source type='body'/><target xpath='//x|/*' action='child'/></enrich>",
                XML,
                body,
            );
        }
    }

    #[test]
    fn mistakes_are_found_when_the_configuration_loads() {
        for text in [
            "<enrich/>",
            "<enrich><source/><target type='body'/></enrich>",
            "<enrich><source type='inline'/><target type='body'/></enrich>",
            "<enrich><source type='body'/><target type='body'/></enrich>",
            "<enrich><source type='envelope'/><target type='body'/></enrich>",
            "<enrich><source xpath='//a'/><target type='inline'/></enrich>",
            "<enrich><source xpath='//a'/><target type='body' action='add'/></enrich>",
            "<enrich><source xpath='json-eval($.a)'/><target xpath='json-eval($)'/></enrich>",
            "<enrich><source type='property'/><target type='body'/></enrich>",
            "<enrich><source type='thing'/><target type='body'/></enrich>",
        ] {
            let tested = testing::main(&crate::registry(testing::endpoints), text);
            assert!(tested.found.iter().any(|found| !found.starts_with("unknown-sequence")), "{text}");
        }
    }

    #[test]
    fn paths_are_split_between_not_inside() {
        assert_eq!(
            split_paths("$.a,$.b['x,y'],$.c[?(@.d in [1,2])]"),
            ["$.a", "$.b['x,y']", "$.c[?(@.d in [1,2])]"]
        );
    }
}
