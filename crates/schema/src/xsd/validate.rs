//! Validation of documents (Part 1, 3.3.4, 3.4.4, 3.2.4): one walk over the tree, without recursion.

use super::automaton::{Match, State};
use super::identity;
use super::model::*;
use super::names::{NONE, Name, UNKNOWN, XSI};
use super::simple::{Checked, clip};
use super::value::Value;
use crate::Violation;
use std::collections::{HashMap, HashSet};
use xml::{Document, NodeId, NodeKind};

/// Most violations that are reported of one document.
pub const MAX_VIOLATIONS: usize = 1000;

/// Units of work for a visit of a node.
const NODE: u64 = 8;

/// Names of a document as names of the schema.
pub struct Lookup<'a> {
    pub doc: &'a Document,
    schema: &'a Components,
    names: Vec<Option<Name>>,
}

impl Lookup<'_> {
    /// The name of an element or attribute.
    pub fn name(&mut self, node: NodeId) -> Name {
        let Some(id) = self.doc.name_id(node) else { return Name { ns: NONE, local: UNKNOWN } };
        if let Some(Some(name)) = self.names.get(id.index()) {
            return *name;
        }
        let names = &self.schema.names;
        let name =
            Name { ns: names.find(self.doc.name_namespace(id)), local: names.find(self.doc.name_local(id)) };
        if let Some(slot) = self.names.get_mut(id.index()) {
            *slot = Some(name);
        }
        name
    }
}

/// What identity constraints need of a document.
#[derive(Default)]
pub struct AssessedValues {
    pub values: HashMap<NodeId, Option<Value>>,
    pub defaults: HashMap<(NodeId, Name), Value>,
    /// Elements whose declaration allows `xsi:nil`: no field of a key may select them.
    pub nillable: HashSet<NodeId>,
}

/// An element whose declaration has identity constraints.
pub struct Scope {
    pub node: NodeId,
    pub declaration: ElementId,
    /// The scopes before this number, and from its own on, are in the element.
    pub end: usize,
}

/// An open element.
struct Frame {
    node: NodeId,
    next: Option<NodeId>,
    declaration: Option<ElementId>,
    ty: TypeId,
    state: Option<State>,
    nil: bool,
    /// Its content is invalid already: one violation is enough.
    wrong: bool,
    /// Its number among the elements with identity constraints.
    scope: Option<usize>,
}

struct Validator<'a> {
    schema: &'a Components,
    doc: &'a Document,
    root: NodeId,
    lookup: Lookup<'a>,
    violations: Vec<Violation>,
    ids: HashMap<String, NodeId>,
    references: Vec<(String, NodeId)>,
    scopes: Vec<Scope>,
    found: AssessedValues,
    keeps_values: bool,
}

/// All violations of the element `root` of a document, in document order; at most [`MAX_VIOLATIONS`]. It counts its work; the violations
/// of a stopped run mean nothing (`meter::finished`).
pub fn validate(schema: &Components, doc: &Document, root: NodeId) -> Vec<Violation> {
    let mut v = Validator {
        schema,
        doc,
        root,
        lookup: Lookup { doc, schema, names: vec![None; doc.name_count()] },
        violations: Vec::new(),
        ids: HashMap::new(),
        references: Vec::new(),
        scopes: Vec::new(),
        found: AssessedValues::default(),
        keeps_values: !schema.constraints.is_empty(),
    };
    v.run();
    v.violations
}

impl<'a> Validator<'a> {
    fn violation(&mut self, node: NodeId, rule: &'static str, message: String) {
        if self.violations.len() < MAX_VIOLATIONS {
            self.violations.push(Violation::in_xml(self.doc, self.root, node, rule, message));
        }
    }

    fn run(&mut self) {
        let mut stack = Vec::new();
        let name = self.lookup.name(self.root);
        let declaration = self.schema.global_elements.get(&name).copied();
        if declaration.is_none() && self.xsi(self.root, "type").is_none() {
            let qname = self.doc.qname(self.root).into_owned();
            let ns = self.doc.namespace(self.root);
            let ns = if ns.is_empty() { String::new() } else { format!(" (namespace `{ns}`)") };
            self.violation(
                self.root,
                "cvc-elt.1",
                format!("the schema does not declare the element `{qname}`{ns}"),
            );
            return;
        }
        self.begin(self.root, declaration, &mut stack);
        while let Some(frame) = stack.last_mut() {
            let Some(child) = frame.next else {
                if let Some(frame) = stack.pop() {
                    self.end(frame);
                }
                continue;
            };
            frame.next = self.doc.next_sibling(child);
            if meter::spend(NODE).is_err() {
                return;
            }
            match self.doc.kind(child) {
                NodeKind::Element => self.child(child, &mut stack),
                NodeKind::Text => self.text(child, &mut stack),
                _ => {}
            }
            if self.violations.len() >= MAX_VIOLATIONS {
                return;
            }
        }
        for (id, node) in std::mem::take(&mut self.references) {
            if !self.ids.contains_key(&id) {
                self.violation(
                    node,
                    "cvc-id.1",
                    format!("there is no ID `{}` that it could refer to", clip(&id)),
                );
            }
        }
        if !self.scopes.is_empty() {
            let problems = identity::check(self.schema, &self.scopes, &self.found, &mut self.lookup);
            for (node, rule, message) in problems {
                self.violation(node, rule, message);
            }
        }
    }

    fn xsi(&self, node: NodeId, local: &str) -> Option<NodeId> {
        self.doc.attribute_node(node, super::names::XSI_NS, local)
    }

    /// Begins an element, with its declaration if it has one.
    fn begin(&mut self, node: NodeId, declaration: Option<ElementId>, stack: &mut Vec<Frame>) {
        let schema = self.schema;
        let element = declaration.map(|id| &schema.elements[id]);
        let mut ty = element.map_or(ANY_TYPE, |e| e.ty);
        let mut scope = None;
        if let Some(element) = element {
            if element.nillable && self.keeps_values {
                self.found.nillable.insert(node);
            }
            if element.is_abstract {
                let name = schema.names.show(element.name);
                self.violation(
                    node,
                    "cvc-elt.2",
                    format!("`{name}` is abstract: one of its substitutes must stand here"),
                );
            }
            if !element.constraints.is_empty()
                && let Some(id) = declaration
            {
                scope = Some(self.scopes.len());
                self.scopes.push(Scope { node, declaration: id, end: usize::MAX });
            }
        }
        if let Some(attribute) = self.xsi(node, "type") {
            let text = self.doc.text(attribute).trim_matches([' ', '\t', '\n', '\r']);
            let (prefix, local) = text.split_once(':').unwrap_or(("", text));
            let uri = self.doc.lookup_prefix(node, prefix).or(prefix.is_empty().then_some(""));
            let named = uri.map(|uri| Name { ns: schema.names.find(uri), local: schema.names.find(local) });
            match named.and_then(|name| schema.global_types.get(&name)) {
                None => {
                    self.violation(attribute, "cvc-elt.4.2", format!("there is no type `{}`", clip(text)))
                }
                Some(&other) => {
                    let mut block = schema.complex(ty).map_or(Ways::NONE, |c| c.block);
                    block = block.with(element.map_or(Ways::NONE, |e| e.block));
                    match schema.derivation(other, ty) {
                        Some(ways) if !ways.meets(block) => ty = other,
                        Some(_) => self.violation(
                            attribute,
                            "cvc-elt.4.3",
                            format!("the type `{}` is blocked here", clip(text)),
                        ),
                        None => {
                            let base = schema.type_name(ty);
                            self.violation(
                                attribute,
                                "cvc-elt.4.3",
                                format!("the type `{}` is not derived from `{base}`", clip(text)),
                            );
                        }
                    }
                }
            }
        }
        let mut nil = false;
        if let Some(attribute) = self.xsi(node, "nil") {
            let value = self.doc.text(attribute).trim();
            let nillable = element.is_none_or(|e| e.nillable);
            if !matches!(value, "true" | "false" | "1" | "0") {
                self.violation(attribute, "cvc-attribute.3", format!("`{}` is not a boolean", clip(value)));
            } else if !nillable {
                self.violation(
                    attribute,
                    "cvc-elt.3.1",
                    "the element is not nillable: `xsi:nil` must not be here".to_owned(),
                );
            } else if matches!(value, "true" | "1") {
                nil = true;
                if element.is_some_and(|e| e.constant.as_ref().is_some_and(|c| c.fixed)) {
                    self.violation(
                        node,
                        "cvc-elt.3.2.2",
                        "an element with a fixed value cannot be nil".to_owned(),
                    );
                }
            }
        }
        let mut state = None;
        match &schema.types[ty].body {
            Body::Complex(complex) => {
                if complex.is_abstract {
                    let name = schema.type_name(ty);
                    self.violation(
                        node,
                        "cvc-type.2",
                        format!("the type `{name}` is abstract: `xsi:type` must name a type derived from it"),
                    );
                }
                self.attributes(node, complex);
                if let Content::Elements { model, .. } = &complex.content {
                    state = Some(model.start());
                }
            }
            _ => {
                for attribute in self.doc.attributes(node) {
                    let name = self.lookup.name(attribute);
                    if name.ns != XSI {
                        let shown = self.doc.qname(attribute).into_owned();
                        self.violation(
                            attribute,
                            "cvc-type.3.1.1",
                            format!("attribute `{shown}` is not allowed: the element has a simple type"),
                        );
                    }
                }
            }
        }
        let next = self.doc.first_child(node);
        stack.push(Frame { node, next, declaration, ty, state, nil, wrong: false, scope });
    }

    fn child(&mut self, child: NodeId, stack: &mut Vec<Frame>) {
        let schema = self.schema;
        let Some(frame) = stack.last_mut() else { return };
        let name = self.lookup.name(child);
        let shown = |v: &Validator<'_>| v.doc.qname(child).into_owned();
        if frame.nil {
            if !std::mem::replace(&mut frame.wrong, true) {
                let message = format!("`{}` stands in an element that is nil", shown(self));
                self.violation(child, "cvc-elt.3.2.1", message);
            }
            return;
        }
        let content = schema.complex(frame.ty).map(|c| &c.content);
        let (Some(Content::Elements { model, .. }), Some(state)) = (content, &mut frame.state) else {
            if !std::mem::replace(&mut frame.wrong, true) {
                let (rule, why) = match content {
                    Some(Content::Empty) => ("cvc-complex-type.2.1", "the content must be empty"),
                    Some(_) => ("cvc-complex-type.2.2", "the content must be text"),
                    None => ("cvc-type.3.1.2", "the element has a simple type"),
                };
                let message = format!("element `{}` is not allowed: {why}", shown(self));
                self.violation(child, rule, message);
            }
            return;
        };
        if frame.wrong {
            // The content after this element cannot be judged; elements with a global declaration are validated on their own.
            if let Some(&declaration) = schema.global_elements.get(&name) {
                self.begin(child, Some(declaration), stack);
            }
            return;
        }
        match model.step(state, name) {
            Some(Match::Element(declaration)) => self.begin(child, Some(declaration), stack),
            Some(Match::Any(any)) => {
                let declaration = schema.global_elements.get(&name).copied();
                match any.process {
                    Process::Skip => {}
                    Process::Strict if declaration.is_none() && self.xsi(child, "type").is_none() => {
                        let message = format!("the schema does not declare the element `{}`", shown(self));
                        self.violation(child, "cvc-complex-type.2.4.c", message);
                    }
                    _ => self.begin(child, declaration, stack),
                }
            }
            None => {
                frame.wrong = true;
                let expected = model.expected(state, schema);
                let message = if expected.is_empty() {
                    format!("element `{}` is not allowed: nothing more can come here", shown(self))
                } else {
                    format!("element `{}` is not allowed here; expected: {}", shown(self), list(&expected))
                };
                self.violation(child, "cvc-complex-type.2.4", message);
            }
        }
    }

    fn text(&mut self, node: NodeId, stack: &mut [Frame]) {
        let Some(frame) = stack.last_mut() else { return };
        if frame.wrong {
            return;
        }
        let text = self.doc.text(node);
        if frame.nil {
            frame.wrong = true;
            self.violation(node, "cvc-elt.3.2.1", "text stands in an element that is nil".to_owned());
            return;
        }
        let rule = match self.schema.complex(frame.ty).map(|c| &c.content) {
            // In empty content even white space is an error.
            Some(Content::Empty) => "cvc-complex-type.2.1",
            Some(Content::Elements { mixed: false, .. })
                if !text.trim_matches([' ', '\t', '\n', '\r']).is_empty() =>
            {
                "cvc-complex-type.2.3"
            }
            _ => return,
        };
        frame.wrong = true;
        let message = match rule {
            "cvc-complex-type.2.1" => "the content must be empty".to_owned(),
            _ => format!("text is not allowed between the elements: `{}`", clip(text.trim())),
        };
        self.violation(node, rule, message);
    }

    fn end(&mut self, frame: Frame) {
        let schema = self.schema;
        let Frame { node, declaration, ty, state, nil, wrong, scope, .. } = frame;
        if let Some(scope) = scope {
            self.scopes[scope].end = self.scopes.len();
        }
        if nil || wrong {
            return;
        }
        let constant = declaration.and_then(|id| schema.elements[id].constant.as_ref());
        if let Some(Content::Elements { model, mixed, .. }) = schema.complex(ty).map(|c| &c.content) {
            if let Some(state) = &state
                && !model.accepts(state)
            {
                let expected = model.expected(state, schema);
                self.violation(
                    node,
                    "cvc-complex-type.2.4.b",
                    format!("the content ends too early; expected: {}", list(&expected)),
                );
            }
            if let Some(constant) = constant.filter(|c| c.fixed && *mixed)
                && self.doc.first_child(node).is_some()
            {
                let text = self.doc.string_value(node);
                if *text != *constant.text
                    || self.doc.children(node).any(|c| self.doc.kind(c) == NodeKind::Element)
                {
                    self.violation(
                        node,
                        "cvc-elt.5.2.2.2",
                        format!("the value is fixed: `{}`", constant.text),
                    );
                }
            }
            return;
        }
        let Some(content) = schema.content_type(ty) else { return };
        let written = self.doc.string_value(node);
        if meter::spend_bytes(written.len()).is_err() {
            return;
        }
        let text = match constant {
            Some(constant) if written.is_empty() => &constant.text,
            _ => &*written,
        };
        let wanted = self.keeps_values || constant.is_some_and(|c| c.fixed);
        let prefixes = |prefix: &str| self.doc.lookup_prefix(node, prefix).map(str::to_owned);
        match schema.check(content, text, &prefixes, wanted) {
            Ok(checked) => {
                if let Some(constant) = constant.filter(|c| c.fixed)
                    && checked.value != constant.value
                    && constant.value.is_some()
                {
                    self.violation(
                        node,
                        "cvc-elt.5.2.2.2",
                        format!("the value is fixed: `{}`", constant.text),
                    );
                }
                self.roles(node, text, &checked);
                if self.keeps_values {
                    self.found.values.insert(node, checked.value);
                }
            }
            Err(wrong) => self.violation(node, wrong.rule, wrong.message),
        }
    }

    fn attributes(&mut self, node: NodeId, complex: &'a Complex) {
        let schema = self.schema;
        let doc = self.doc;
        let mut ids = 0;
        for attribute in doc.attributes(node) {
            let name = self.lookup.name(attribute);
            if name.ns == XSI
                && matches!(
                    doc.local(attribute),
                    "type" | "nil" | "schemaLocation" | "noNamespaceSchemaLocation"
                )
            {
                continue;
            }
            let found = complex.attributes.iter().find(|u| u.name == name && !u.prohibited);
            let (declaration, constant) = match found {
                Some(found) => (found.attribute, found.constant.as_ref()),
                None => {
                    let wildcard = complex.wildcard.as_ref().filter(|w| w.namespaces.allows(name.ns));
                    let Some(wildcard) = wildcard else {
                        let allowed = complex.attributes.iter().map(|u| schema.names.text(u.name.local));
                        let near = diagnostics::nearest(doc.local(attribute), allowed);
                        let near = near.map_or(String::new(), |n| format!("; did you mean `{n}`?"));
                        let shown = doc.qname(attribute);
                        self.violation(
                            attribute,
                            "cvc-complex-type.3.2.2",
                            format!("attribute `{shown}` is not allowed here{near}"),
                        );
                        continue;
                    };
                    match (wildcard.process, schema.global_attributes.get(&name)) {
                        (Process::Skip, _) | (Process::Lax, None) => continue,
                        (Process::Strict, None) => {
                            let shown = doc.qname(attribute);
                            self.violation(
                                attribute,
                                "cvc-complex-type.3.2.2",
                                format!("the schema does not declare the attribute `{shown}`"),
                            );
                            continue;
                        }
                        (_, Some(&id)) => {
                            ids += usize::from(
                                schema.simple(schema.attributes[id].ty).is_some_and(|s| s.role == Role::Id),
                            );
                            (id, None)
                        }
                    }
                }
            };
            let declared = &schema.attributes[declaration];
            let constant = constant.or(declared.constant.as_ref());
            let wanted = self.keeps_values || constant.is_some_and(|c| c.fixed);
            let prefixes = |prefix: &str| doc.lookup_prefix(node, prefix).map(str::to_owned);
            let text = doc.text(attribute);
            match schema.check(declared.ty, text, &prefixes, wanted) {
                Ok(checked) => {
                    if let Some(constant) =
                        constant.filter(|c| c.fixed && c.value.is_some() && checked.value != c.value)
                    {
                        self.violation(
                            attribute,
                            "cvc-attribute.4",
                            format!("the value is fixed: `{}`", constant.text),
                        );
                    }
                    self.roles(attribute, text, &checked);
                    if self.keeps_values {
                        self.found.values.insert(attribute, checked.value);
                    }
                }
                Err(wrong) => self.violation(attribute, wrong.rule, wrong.message),
            }
        }
        let is_id = |u: &AttributeUse| {
            schema.simple(schema.attributes[u.attribute].ty).is_some_and(|s| s.role == Role::Id)
        };
        if ids > 1 || (ids == 1 && complex.attributes.iter().any(is_id)) {
            self.violation(node, "cvc-complex-type.5", "two attributes of type ID are here".to_owned());
        }
        for expected in complex.attributes.iter().filter(|u| !u.prohibited) {
            let constant =
                expected.constant.as_ref().or(schema.attributes[expected.attribute].constant.as_ref());
            if !expected.required && (constant.is_none() || !self.keeps_values) {
                continue;
            }
            let mut present = false;
            for attribute in doc.attributes(node) {
                present |= self.lookup.name(attribute) == expected.name;
            }
            if present {
                continue;
            }
            if expected.required {
                let name = schema.names.show(expected.name);
                self.violation(node, "cvc-complex-type.4", format!("attribute `{name}` is missing"));
            } else if let Some(value) = constant.and_then(|c| c.value.clone()) {
                self.found.defaults.insert((node, expected.name), value);
            }
        }
    }

    /// IDs, references to them, entities.
    fn roles(&mut self, node: NodeId, text: &str, checked: &Checked) {
        let Some(simple) = self.schema.simple(checked.ty) else { return };
        let (role, items) = match &simple.variety {
            Variety::List(item) => (self.schema.simple(*item).map_or(Role::None, |s| s.role), true),
            _ => (simple.role, false),
        };
        if role == Role::None {
            return;
        }
        let text = text.trim_matches([' ', '\t', '\n', '\r']);
        let words: Vec<&str> = if items { text.split_ascii_whitespace().collect() } else { vec![text] };
        for word in words {
            match role {
                Role::Id => {
                    // The owner of an ID is the element of the attribute.
                    let owner = if self.doc.kind(node) == NodeKind::Attribute {
                        self.doc.parent(node)
                    } else {
                        Some(node)
                    };
                    if self.ids.insert(word.to_owned(), owner.unwrap_or(node)).is_some() {
                        self.violation(node, "cvc-id.2", format!("the ID `{}` is there twice", clip(word)));
                    }
                }
                Role::IdRef => self.references.push((word.to_owned(), node)),
                Role::Entity if self.doc.unparsed_entity(word).is_none() => {
                    self.violation(
                        node,
                        "cvc-datatype-valid.1.2.1",
                        format!("`{}` is not a declared unparsed entity", clip(word)),
                    );
                }
                _ => {}
            }
        }
    }
}

fn list(names: &[String]) -> String {
    const MOST: usize = 10;
    let shown: Vec<String> =
        names.iter().take(MOST).map(|n| if n.contains(' ') { n.clone() } else { format!("`{n}`") }).collect();
    let more = if names.len() > MOST { format!(" or {} others", names.len() - MOST) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}
