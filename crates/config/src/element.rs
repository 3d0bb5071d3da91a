//! The spanned element tree: configuration XML as the compilers downstream see it.
//!
//! Sequence bodies stay lists of [`Element`]; whoever compiles them finds name, attributes, children, the
//! namespaces in scope and the span of every part. Elements are immutable and shared: a clone is one
//! reference count.

use diagnostics::Span;
use std::fmt;
use std::sync::Arc;

/// The namespace of every Synapse element.
pub const SYNAPSE: &str = "http://ws.apache.org/ns/synapse";

/// The namespace that Synapse elements had in Apache Synapse 2.0; such elements are read as those of [`SYNAPSE`].
pub(crate) const SYNAPSE_2_0: &str = "http://synapse.apache.org/ns/2010/04/configuration";

/// The namespace bound to the prefix `xml`.
pub const XML_NAMESPACE: &str = "http://www.w3.org/XML/1998/namespace";

/// An expanded name with the prefix it was written with.
#[derive(Clone, Debug)]
pub struct Name {
    /// Namespace URI, empty for none.
    pub namespace: Arc<str>,
    /// Prefix as written, empty for none.
    pub prefix: Arc<str>,
    /// Local part.
    pub local: Arc<str>,
}

impl Name {
    /// Whether this is the Synapse element `local`.
    pub fn is_synapse(&self, local: &str) -> bool {
        &*self.local == local && &*self.namespace == SYNAPSE
    }
}

impl PartialEq for Name {
    /// Names are equal whatever their prefix.
    fn eq(&self, other: &Name) -> bool {
        self.local == other.local && self.namespace == other.namespace
    }
}

impl Eq for Name {}

impl fmt::Display for Name {
    /// The name as written: `prefix:local`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.prefix.is_empty() {
            write!(f, "{}:", self.prefix)?;
        }
        f.write_str(&self.local)
    }
}

/// An attribute (never a namespace declaration: those are in the [`Scope`]).
#[derive(Clone, Debug)]
pub struct Attribute {
    /// Its name.
    pub name: Name,
    /// Its value, references resolved.
    pub value: Arc<str>,
    /// The name as written.
    pub name_span: Span,
    /// The value as written, without the quotes.
    pub value_span: Span,
}

/// Character data or a comment.
#[derive(Clone, Debug)]
pub struct Text {
    /// The characters, references resolved.
    pub value: Arc<str>,
    /// The text as written, with the marks of comments and CDATA sections.
    pub span: Span,
}

/// What stands between a start tag and its end tag.
#[derive(Clone, Debug)]
pub enum Child {
    /// An element.
    Element(Element),
    /// Character data: one run, CDATA sections included.
    Text(Text),
    /// A comment; mediation engines keep it as documentation.
    Comment(Text),
    /// A processing instruction. It means nothing here, but XML that goes into messages may hold one (`<?xml-multiple items?>`).
    Instruction(Instruction),
}

/// A processing instruction: `<?target data?>`.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// The name behind `<?`.
    pub target: Arc<str>,
    /// What follows the blanks behind the name.
    pub data: Arc<str>,
}

/// The namespaces in scope: a chain of declarations, shared by the elements that see the same ones.
#[derive(Clone, Default)]
pub struct Scope(Option<Arc<Declarations>>);

struct Declarations {
    /// `(prefix, uri)`; an empty prefix is the default namespace, an empty uri undeclares.
    declared: Vec<(Arc<str>, Arc<str>)>,
    outer: Scope,
}

impl Scope {
    /// No declarations.
    pub fn new() -> Scope {
        Scope::default()
    }

    /// This scope with the declarations of one more start tag.
    #[must_use]
    pub fn with(&self, declared: Vec<(Arc<str>, Arc<str>)>) -> Scope {
        if declared.is_empty() {
            self.clone()
        } else {
            Scope(Some(Arc::new(Declarations { declared, outer: self.clone() })))
        }
    }

    /// The URI bound to a prefix (`""`: the default namespace). `None` when unbound or undeclared.
    pub fn lookup(&self, prefix: &str) -> Option<&str> {
        if prefix == "xml" {
            return Some(XML_NAMESPACE);
        }
        let mut scope = self;
        while let Some(declarations) = &scope.0 {
            if let Some((_, uri)) = declarations.declared.iter().find(|(p, _)| &**p == prefix) {
                return Some(&**uri).filter(|uri| !uri.is_empty());
            }
            scope = &declarations.outer;
        }
        None
    }

    /// Every binding in scope, `(prefix, uri)`, the nearest first, each prefix once.
    pub fn bindings(&self) -> Vec<(&str, &str)> {
        let mut seen: Vec<(&str, &str)> = Vec::new();
        let mut scope = self;
        while let Some(declarations) = &scope.0 {
            for (prefix, uri) in &declarations.declared {
                if !seen.iter().any(|(p, _)| *p == &**prefix) {
                    seen.push((prefix, uri));
                }
            }
            scope = &declarations.outer;
        }
        seen.retain(|(_, uri)| !uri.is_empty());
        seen
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.bindings()).finish()
    }
}

/// An element; cheap to clone, `Send + Sync`.
#[derive(Clone)]
pub struct Element(Arc<ElementData>);

/// The parts of an [`Element`], from which the reader builds it.
#[derive(Clone)]
pub(crate) struct ElementData {
    pub name: Name,
    pub attributes: Vec<Attribute>,
    pub children: Vec<Child>,
    /// With the declarations of this start tag.
    pub scope: Scope,
    /// Whether this start tag has declarations of its own (else the scope is that of the parent).
    pub declares: bool,
    pub name_span: Span,
    pub start_tag: Span,
    /// The name in the end tag; `None`: there is no end tag.
    pub end_name: Option<Span>,
    pub span: Span,
}

impl From<ElementData> for Element {
    fn from(data: ElementData) -> Element {
        Element(Arc::new(data))
    }
}

impl Element {
    /// An empty element that has no text in a file.
    pub(crate) fn synthetic(name: Name, scope: Scope) -> Element {
        Element::from(ElementData {
            name,
            attributes: Vec::new(),
            children: Vec::new(),
            scope,
            declares: false,
            name_span: Span::BUILT_IN,
            start_tag: Span::BUILT_IN,
            end_name: None,
            span: Span::BUILT_IN,
        })
    }

    /// Expanded name and prefix.
    pub fn name(&self) -> &Name {
        &self.0.name
    }

    /// Local part of the name.
    pub fn local(&self) -> &str {
        &self.0.name.local
    }

    /// Namespace URI, empty for none.
    pub fn namespace(&self) -> &str {
        &self.0.name.namespace
    }

    /// Whether this is the Synapse element `local`.
    pub fn is(&self, local: &str) -> bool {
        self.0.name.is_synapse(local)
    }

    /// The attributes as written, without namespace declarations.
    pub fn attributes(&self) -> &[Attribute] {
        &self.0.attributes
    }

    /// The attribute `local` in no namespace.
    pub fn attribute(&self, local: &str) -> Option<&Attribute> {
        self.0.attributes.iter().find(|a| &*a.name.local == local && a.name.namespace.is_empty())
    }

    /// The value of the attribute `local` in no namespace.
    pub fn attr(&self, local: &str) -> Option<&str> {
        self.attribute(local).map(|a| &*a.value)
    }

    /// The content: all nodes between the tags.
    pub fn children(&self) -> &[Child] {
        &self.0.children
    }

    /// The child elements.
    pub fn elements(&self) -> impl DoubleEndedIterator<Item = &Element> {
        self.0.children.iter().filter_map(|child| match child {
            Child::Element(element) => Some(element),
            _ => None,
        })
    }

    /// The first child that is the Synapse element `local`.
    pub fn child(&self, local: &str) -> Option<&Element> {
        self.elements().find(|child| child.is(local))
    }

    /// Every child that is the Synapse element `local`.
    pub fn children_named<'a>(&'a self, local: &'a str) -> impl DoubleEndedIterator<Item = &'a Element> + 'a {
        self.elements().filter(move |child| child.is(local))
    }

    /// The character data directly in this element (not that of its children), joined.
    pub fn text(&self) -> String {
        let mut parts = self.texts();
        let mut text = parts.next().map_or(String::new(), |text| text.value.to_string());
        parts.for_each(|part| text.push_str(&part.value));
        text
    }

    /// The span of the character data that is not blank, from the first to the last; else of the start tag.
    pub fn text_span(&self) -> Span {
        let mut texts = self.texts().filter(|text| !text.value.trim().is_empty());
        match texts.next() {
            Some(first) => first.span.to(texts.last().unwrap_or(first).span),
            None => self.start_tag(),
        }
    }

    /// The place of the character that is `at` bytes into [`text`](Self::text). Where references stand in the text, the
    /// span of all that was written as one text.
    pub fn place_in_text(&self, mut at: usize) -> Span {
        /// `<![CDATA[`, which a span of characters has and their value has not, and with `]]>`.
        const CDATA: (usize, usize) = (9, 12);
        for text in self.texts() {
            if at >= text.value.len() {
                at -= text.value.len();
                continue;
            }
            let written = (text.span.end - text.span.start) as usize;
            return match written.saturating_sub(text.value.len()) {
                0 => text.span.part(at, 1),
                marks if marks == CDATA.1 => text.span.part(at + CDATA.0, 1),
                _ => text.span,
            };
        }
        self.text_span()
    }

    fn texts(&self) -> impl Iterator<Item = &Text> {
        self.0.children.iter().filter_map(|child| match child {
            Child::Text(text) => Some(text),
            _ => None,
        })
    }

    /// The namespaces in scope inside the element.
    pub fn scope(&self) -> &Scope {
        &self.0.scope
    }

    /// The namespace bound to a prefix here.
    pub fn lookup_prefix(&self, prefix: &str) -> Option<&str> {
        self.0.scope.lookup(prefix)
    }

    /// The name in the start tag.
    pub fn name_span(&self) -> Span {
        self.0.name_span
    }

    /// The name in the end tag, if there is one.
    pub fn end_name_span(&self) -> Option<Span> {
        self.0.end_name
    }

    /// The start tag, from `<` to `>`.
    pub fn start_tag(&self) -> Span {
        self.0.start_tag
    }

    /// The value of an attribute; the start tag of an element that does not have it.
    pub fn value_span(&self, attribute: &str) -> Span {
        self.attribute(attribute).map_or(self.start_tag(), |attribute| attribute.value_span)
    }

    /// The whole element, end tag included.
    pub fn span(&self) -> Span {
        self.0.span
    }

    /// The namespace declarations of this start tag, `(prefix, uri)`.
    pub fn declarations(&self) -> &[(Arc<str>, Arc<str>)] {
        match &self.0.scope.0 {
            Some(declarations) if self.0.declares => &declarations.declared,
            _ => &[],
        }
    }

    /// Serialised so that it stands alone: its own declarations, and those from further out that its names
    /// need.
    ///
    /// Prefixes that occur only in text or attribute values are lost when declared further out; use
    /// [`to_xml_in_scope`](Self::to_xml_in_scope) for content that holds such names (schemas, stylesheets).
    pub fn to_xml(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, self.declarations().to_vec(), &Scope::new());
        out
    }

    /// Serialised so that it stands alone, with every namespace in scope declared.
    pub fn to_xml_in_scope(&self) -> String {
        let mut out = String::new();
        let all = self.scope().bindings().into_iter().map(|(p, u)| (Arc::from(p), Arc::from(u))).collect();
        self.write(&mut out, all, &Scope::new());
        out
    }

    /// A copy whose attribute values and texts went through `replace` (`None` keeps them). Spans stay those of
    /// the original. Used for endpoint templates.
    #[must_use]
    pub fn map_values(&self, replace: &dyn Fn(&str) -> Option<String>) -> Element {
        let mapped = |value: &mut Arc<str>| {
            if let Some(new) = replace(value) {
                *value = Arc::from(new);
            }
        };
        let mut data = ElementData::clone(&self.0);
        data.attributes.iter_mut().for_each(|attribute| mapped(&mut attribute.value));
        for child in &mut data.children {
            match child {
                Child::Element(element) => *element = element.map_values(replace),
                Child::Text(text) => mapped(&mut text.value),
                Child::Comment(_) | Child::Instruction(_) => {}
            }
        }
        Element::from(data)
    }

    /// A copy of which every part stands at `span`: for an element that is made of an attribute of another one.
    #[must_use]
    pub fn standing_at(&self, span: Span) -> Element {
        let mut data = ElementData::clone(&self.0);
        (data.name_span, data.start_tag, data.span) = (span, span, span);
        data.end_name = data.end_name.map(|_| span);
        for attribute in &mut data.attributes {
            (attribute.name_span, attribute.value_span) = (span, span);
        }
        for child in &mut data.children {
            match child {
                Child::Element(element) => *element = element.standing_at(span),
                Child::Text(text) => text.span = span,
                Child::Comment(_) | Child::Instruction(_) => {}
            }
        }
        Element::from(data)
    }

    /// The element as if its name, and those of the elements in it, were in the Synapse namespace where they are in
    /// none. What `parameter` and `property` hold stays as it is, and so does the content of a `localEntry`.
    #[must_use]
    pub(crate) fn adopted(&self) -> Element {
        self.adopted_from("")
    }

    /// As [`Element::adopted`], for the elements of a namespace.
    pub(crate) fn adopted_from(&self, namespace: &str) -> Element {
        let mut data = ElementData::clone(&self.0);
        if *data.name.namespace == *namespace {
            data.name.namespace = Arc::from(SYNAPSE);
        }
        let holds_values = matches!(&*data.name.local, "parameter" | "property");
        let holds_content = &*data.name.local == "localEntry";
        for child in &mut data.children {
            if let Child::Element(element) = child
                && !holds_values
                && (!holds_content || element.local() == "description")
            {
                *element = element.adopted_from(namespace);
            }
        }
        Element::from(data)
    }

    /// Writes the element with the declarations `declare` and those that its names need besides; `outer` is
    /// the scope that the output has at this point.
    fn write(&self, out: &mut String, mut declare: Vec<(Arc<str>, Arc<str>)>, outer: &Scope) {
        let data = &self.0;
        let name = data.name.to_string();
        out.push('<');
        out.push_str(&name);
        declare.retain(|(prefix, uri)| outer.lookup(prefix).unwrap_or("") != &**uri);
        let prefixed = data.attributes.iter().map(|a| &a.name).filter(|n| !n.prefix.is_empty());
        for name in std::iter::once(&data.name).chain(prefixed) {
            let bound = declare.iter().find(|(prefix, _)| *prefix == name.prefix).map(|(_, uri)| &**uri);
            if bound.or(outer.lookup(&name.prefix)).unwrap_or("") != &*name.namespace {
                declare.push((name.prefix.clone(), name.namespace.clone()));
            }
        }
        for (prefix, uri) in &declare {
            let colon = if prefix.is_empty() { "" } else { ":" };
            out.push_str(&format!(" xmlns{colon}{prefix}=\""));
            escape(uri, true, out);
            out.push('"');
        }
        for attribute in &data.attributes {
            out.push_str(&format!(" {}=\"", attribute.name));
            escape(&attribute.value, true, out);
            out.push('"');
        }
        if data.children.is_empty() {
            out.push_str("/>");
            return;
        }
        out.push('>');
        let inner = outer.with(declare);
        for child in &data.children {
            match child {
                Child::Text(text) => escape(&text.value, false, out),
                Child::Comment(text) => out.push_str(&format!("<!--{}-->", text.value)),
                Child::Instruction(Instruction { target, data }) if data.is_empty() => {
                    out.push_str(&format!("<?{target}?>"));
                }
                Child::Instruction(Instruction { target, data }) => {
                    out.push_str(&format!("<?{target} {data}?>"));
                }
                Child::Element(element) => element.write(out, element.declarations().to_vec(), &inner),
            }
        }
        out.push_str(&format!("</{name}>"));
    }
}

impl fmt::Debug for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_xml())
    }
}

/// Escapes character data or an attribute value.
fn escape(text: &str, attribute: bool, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' if attribute => out.push_str("&quot;"),
            '\n' if attribute => out.push_str("&#10;"),
            '\t' if attribute => out.push_str("&#9;"),
            '\r' => out.push_str("&#13;"),
            c => out.push(c),
        }
    }
}
