//! The documents of a schema: read, checked for their form, followed through include, import and redefine; their
//! top-level components listed.

use super::model::{Place, Ways};
use super::names::{NONE, Name, Names, Sym, XML, XS_NS};
use super::syntax;
use crate::{Resolver, Source, Violation};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use xml::{Document, NodeId, NodeKind, ParseOptions};

/// Documents of one schema.
const MAX_DOCUMENTS: usize = 1000;
/// Bytes of all documents of one schema.
const MAX_BYTES: usize = 64 << 20;

/// The kinds of top-level components; each has its own names.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum ComponentKind {
    Type,
    Element,
    Attribute,
    Group,
    AttributeGroup,
    Notation,
}

impl ComponentKind {
    pub fn of(local: &str) -> Option<ComponentKind> {
        Some(match local {
            "simpleType" | "complexType" => ComponentKind::Type,
            "element" => ComponentKind::Element,
            "attribute" => ComponentKind::Attribute,
            "group" => ComponentKind::Group,
            "attributeGroup" => ComponentKind::AttributeGroup,
            "notation" => ComponentKind::Notation,
            _ => return None,
        })
    }

    /// The name for messages.
    pub fn text(self) -> &'static str {
        match self {
            ComponentKind::Type => "type",
            ComponentKind::Element => "element",
            ComponentKind::Attribute => "attribute",
            ComponentKind::Group => "group",
            ComponentKind::AttributeGroup => "attribute group",
            ComponentKind::Notation => "notation",
        }
    }
}

/// A schema document.
#[derive(Debug)]
pub struct SchemaDocument {
    pub tree: Document,
    pub name: Arc<str>,
    /// Its target namespace; a document without one that is included has that of the including document.
    pub target: Sym,
    /// A chameleon: names without a prefix are in the target namespace of the including document.
    pub chameleon: bool,
    pub elements_qualified: bool,
    pub attributes_qualified: bool,
    pub block: Ways,
    pub is_final: Ways,
    /// The namespaces it imports.
    pub imports: Vec<Sym>,
    /// The documents that it includes or redefines.
    parts: Vec<usize>,
}

/// All documents of a schema.
#[derive(Debug, Default)]
pub struct Documents {
    pub list: Vec<SchemaDocument>,
    pub globals: HashMap<(ComponentKind, Name), Place>,
    /// A redefinition, and the original component.
    pub redefined: HashMap<Place, Place>,
    pub problems: Vec<Violation>,
    /// Documents that were not found, for the message about a missing component.
    pub missing: Vec<String>,
    /// The elements `redefine`, and which document each redefines.
    redefinitions: Vec<(Place, usize)>,
    /// By name: one document, or one for each namespace that a chameleon gets.
    loaded: HashMap<Arc<str>, Vec<usize>>,
    bytes: usize,
}

/// The attributes of the XML namespace, for schemas that import it from the network.
const XML_SCHEMA: &str = r#"<xs:schema targetNamespace="http://www.w3.org/XML/1998/namespace" xmlns:xs="http://www.w3.org/2001/XMLSchema">
<xs:attribute name="lang"><xs:simpleType><xs:union memberTypes="xs:language"><xs:simpleType><xs:restriction base="xs:string"><xs:enumeration value=""/></xs:restriction></xs:simpleType></xs:union></xs:simpleType></xs:attribute>
<xs:attribute name="space"><xs:simpleType><xs:restriction base="xs:NCName"><xs:enumeration value="default"/><xs:enumeration value="preserve"/></xs:restriction></xs:simpleType></xs:attribute>
<xs:attribute name="base" type="xs:anyURI"/><xs:attribute name="id" type="xs:ID"/>
<xs:attributeGroup name="specialAttrs"><xs:attribute ref="xml:base"/><xs:attribute ref="xml:lang"/><xs:attribute ref="xml:space"/><xs:attribute ref="xml:id"/></xs:attributeGroup>
</xs:schema>"#;

/// A reference to another document.
struct Reference {
    from: Place,
    location: Option<String>,
    base: Arc<str>,
    how: How,
}

#[derive(Copy, Clone, PartialEq)]
enum How {
    /// With the namespace that the other document must have.
    Import(Sym),
    /// With the namespace of the including document.
    Include(Sym),
    Redefine(Sym),
}

/// Reads the sources and everything they refer to.
pub fn load(sources: Vec<Source>, resolver: &dyn Resolver, names: &mut Names) -> Documents {
    let mut documents = Documents::default();
    let mut pending = Vec::new();
    for source in sources {
        // By the name that a back reference resolves to.
        let source = Source { name: crate::tidy(&source.name), ..source };
        documents.add(source, None, names, &mut pending);
    }
    while let Some(reference) = pending.pop() {
        documents.follow(reference, resolver, names, &mut pending);
    }
    documents.refuse_circles();
    // Redefinitions come last, after the components that they redefine.
    for doc in documents.innermost_first() {
        documents.redefine(doc, names);
    }
    documents
}

impl Documents {
    /// A problem at a node of a schema document.
    pub fn problem(&mut self, place: Place, rule: &'static str, message: impl Into<String>) {
        let doc = &self.list[place.doc];
        self.problems.push(Violation::in_schema(&doc.name, &doc.tree, place.node, rule, message.into()));
    }

    fn problem_without_node(&mut self, name: &Arc<str>, position: Option<xml::Position>, message: String) {
        self.problems.push(Violation {
            document: Some(name.clone()),
            place: String::new(),
            line: position.map_or(0, |p| p.line),
            column: position.map_or(0, |p| p.column),
            rule: "",
            message,
        });
    }

    fn follow(
        &mut self,
        reference: Reference,
        resolver: &dyn Resolver,
        names: &mut Names,
        pending: &mut Vec<Reference>,
    ) {
        let found = match &reference.location {
            Some(location) => {
                resolver.resolve(location, &reference.base).map_err(|why| format!("`{location}`: {why}"))
            }
            None if reference.how == How::Import(XML) => Err(String::new()),
            None => return,
        };
        let source = match found {
            Ok(source) => source,
            Err(_) if reference.how == How::Import(XML) => {
                Source { name: "the XML namespace".into(), bytes: XML_SCHEMA.as_bytes().to_vec() }
            }
            Err(why) => {
                // Part 1, 4.2: not an error by itself; a missing component is one.
                self.missing.push(why);
                return;
            }
        };
        let name: Arc<str> = source.name.as_str().into();
        let Some(doc) = self.add(source, Some(reference.how), names, pending) else { return };
        let target = self.list[doc].target;
        if let How::Include(_) | How::Redefine(_) = reference.how {
            self.list[reference.from.doc].parts.push(doc);
        }
        if let How::Redefine(_) = reference.how {
            self.redefinitions.push((reference.from, doc));
        }
        match reference.how {
            How::Import(ns) if ns != target => self.problem(
                reference.from,
                "src-import.3",
                format!(
                    "`{name}` has the target namespace `{}`, not `{}`",
                    names.text(target),
                    names.text(ns)
                ),
            ),
            How::Include(ns) | How::Redefine(ns) if ns != target => self.problem(
                reference.from,
                "src-include.2.1",
                format!(
                    "`{name}` has the target namespace `{}`, not `{}`",
                    names.text(target),
                    names.text(ns)
                ),
            ),
            _ => {}
        }
    }

    /// Reads a document; `how` it was referred to. Returns its number.
    fn add(
        &mut self,
        source: Source,
        how: Option<How>,
        names: &mut Names,
        pending: &mut Vec<Reference>,
    ) -> Option<usize> {
        let name: Arc<str> = source.name.as_str().into();
        let context = match how {
            Some(How::Include(ns) | How::Redefine(ns)) => ns,
            _ => NONE,
        };
        // A document that names its namespace is the same one however it is referred to.
        let same = |&&doc: &&usize| {
            let document = &self.list[doc];
            document.target == context || (document.target != NONE && !document.chameleon)
        };
        if let Some(&doc) = self.loaded.get(&name).and_then(|docs| docs.iter().find(same)) {
            return Some(doc);
        }
        self.bytes += source.bytes.len();
        if self.list.len() >= MAX_DOCUMENTS || self.bytes > MAX_BYTES {
            self.problem_without_node(
                &name,
                None,
                format!("the schema has more than {MAX_DOCUMENTS} documents or {MAX_BYTES} bytes"),
            );
            return None;
        }
        let options = ParseOptions {
            dtd: xml::Dtd::Internal,
            limits: xml::Limits::default(),
            ..ParseOptions::trusted()
        };
        let tree = match Document::parse(source.bytes, &options) {
            Ok(tree) => tree,
            Err(error) => {
                self.problem_without_node(&name, Some(error.position), error.message);
                return None;
            }
        };
        let root = tree.document_element()?;
        if !tree.is_element(root, XS_NS, "schema") {
            let position = tree.position(root);
            self.problem_without_node(
                &name,
                position,
                format!("`{}` is not an XML Schema", tree.qname(root)),
            );
            return None;
        }
        let declared = tree.attribute(root, "", "targetNamespace").map(|ns| names.intern(ns));
        let chameleon = declared.is_none() && context != NONE;
        let target = declared.unwrap_or(context);
        let doc = self.list.len();
        let qualified = |attribute| tree.attribute(root, "", attribute) == Some("qualified");
        let document = SchemaDocument {
            name: name.clone(),
            target,
            chameleon,
            elements_qualified: qualified("elementFormDefault"),
            attributes_qualified: qualified("attributeFormDefault"),
            block: syntax::ways(tree.attribute(root, "", "blockDefault").unwrap_or("")),
            is_final: syntax::ways(tree.attribute(root, "", "finalDefault").unwrap_or("")),
            imports: Vec::new(),
            parts: Vec::new(),
            tree,
        };
        self.list.push(document);
        self.loaded.entry(name).or_default().push(doc);
        let problems = syntax::check(&self.list[doc].tree, root);
        let sound = problems.is_empty();
        for (node, rule, message) in problems {
            self.problem(Place { doc, node }, rule, message);
        }
        if sound {
            self.list_components(doc, root, target, names, pending);
        }
        Some(doc)
    }

    fn list_components(
        &mut self,
        doc: usize,
        root: NodeId,
        target: Sym,
        names: &mut Names,
        pending: &mut Vec<Reference>,
    ) {
        let children: Vec<NodeId> = elements(&self.list[doc].tree, root).collect();
        for node in children {
            let tree = &self.list[doc].tree;
            let place = Place { doc, node };
            let local = tree.local(node);
            let location = tree.attribute(node, "", "schemaLocation").map(str::to_owned);
            let base = self.list[doc].name.clone();
            match local {
                "include" => {
                    pending.push(Reference { from: place, location, base, how: How::Include(target) })
                }
                "redefine" => {
                    pending.push(Reference { from: place, location, base, how: How::Redefine(target) })
                }
                "import" => {
                    let ns = match tree.attribute(node, "", "namespace") {
                        Some(ns) => names.intern(ns),
                        None => NONE,
                    };
                    if ns == target {
                        self.problem(
                            place,
                            "src-import.1",
                            "a document cannot import its own namespace; include it",
                        );
                    }
                    self.list[doc].imports.push(ns);
                    pending.push(Reference { from: place, location, base, how: How::Import(ns) });
                }
                _ => {
                    let Some(kind) = ComponentKind::of(local) else { continue };
                    let component = tree.attribute(node, "", "name").unwrap_or("").trim();
                    let name = Name { ns: target, local: names.intern(component) };
                    match self.globals.entry((kind, name)) {
                        Entry::Vacant(free) => {
                            free.insert(place);
                        }
                        Entry::Occupied(old) => {
                            let old = *old.get();
                            if self.is_copy(old, place) {
                                continue;
                            }
                            let message =
                                format!("the {} `{}` is declared twice", kind.text(), names.show(name));
                            self.problem(place, "sch-props-correct.2", message);
                        }
                    }
                }
            }
        }
    }

    /// Whether two components are the same in two documents: projects have copies of shared schemas, and other engines
    /// read only the first one that is imported.
    fn is_copy(&self, old: Place, new: Place) -> bool {
        let (a, b) = (&self.list[old.doc], &self.list[new.doc]);
        let form = |place: Place| {
            let mut out = Vec::new();
            xml::c14n::canonicalize(&self.list[place.doc].tree, place.node, &Default::default(), &mut out);
            out
        };
        old.doc != new.doc
            && (a.elements_qualified, a.attributes_qualified)
                == (b.elements_qualified, b.attributes_qualified)
            && (a.block, a.is_final, a.chameleon) == (b.block, b.is_final, b.chameleon)
            && form(old) == form(new)
    }

    /// The documents, each behind those that it includes or redefines: what it redefines may be a redefinition there.
    fn innermost_first(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.list.len());
        let mut seen = vec![false; self.list.len()];
        for first in 0..self.list.len() {
            // A document, and how many of its parts are done.
            let mut open = vec![(first, 0)];
            while let Some((doc, done)) = open.pop() {
                if done == 0 && std::mem::replace(&mut seen[doc], true) {
                    continue;
                }
                match self.list[doc].parts.get(done) {
                    Some(&part) => open.extend([(doc, done + 1), (part, 0)]),
                    None => order.push(doc),
                }
            }
        }
        order
    }

    /// A document that redefines itself, also by way of others, would have components that are their own originals.
    fn refuse_circles(&mut self) {
        let redefinitions = std::mem::take(&mut self.redefinitions);
        let mut redefined_by: HashMap<usize, HashSet<usize>> = HashMap::new();
        for (from, redefined) in &redefinitions {
            redefined_by.entry(from.doc).or_default().insert(*redefined);
        }
        // Looked for once for each document, however often that is redefined.
        let mut reached_from: HashMap<usize, HashSet<usize>> = HashMap::new();
        for (from, redefined) in &redefinitions {
            let reached = reached_from.entry(*redefined).or_insert_with(|| {
                let (mut reached, mut next) = (HashSet::new(), vec![*redefined]);
                while let Some(doc) = next.pop() {
                    if reached.insert(doc) {
                        next.extend(redefined_by.get(&doc).into_iter().flatten());
                    }
                }
                reached
            });
            if reached.contains(&from.doc) {
                let message = format!("`{}` redefines itself", self.list[*redefined].name);
                self.problem(*from, "src-redefine.2", message);
            }
        }
    }

    fn redefine(&mut self, doc: usize, names: &mut Names) {
        let tree = &self.list[doc].tree;
        let Some(root) = tree.document_element() else { return };
        let redefinitions: Vec<NodeId> = elements(tree, root)
            .filter(|&n| tree.local(n) == "redefine")
            .flat_map(|n| elements(tree, n))
            .filter(|&n| tree.local(n) != "annotation")
            .collect();
        let target = self.list[doc].target;
        let mut seen = HashSet::new();
        for node in redefinitions {
            let place = Place { doc, node };
            let tree = &self.list[doc].tree;
            let Some(kind) = ComponentKind::of(tree.local(node)) else { continue };
            let name = Name {
                ns: target,
                local: names.intern(tree.attribute(node, "", "name").unwrap_or("").trim()),
            };
            let twice = !seen.insert((kind, name));
            match self.globals.get(&(kind, name)).copied() {
                Some(old) if !twice => {
                    self.redefined.insert(place, old);
                    self.globals.insert((kind, name), place);
                }
                _ => {
                    let why = if twice { "is redefined twice" } else { "is not in the redefined document" };
                    self.problem(
                        place,
                        "src-redefine",
                        format!("the {} `{}` {why}", kind.text(), names.show(name)),
                    );
                }
            }
        }
    }
}

/// The child elements.
pub fn elements(tree: &Document, node: NodeId) -> impl Iterator<Item = NodeId> + Clone {
    tree.children(node).filter(|&n| tree.kind(n) == NodeKind::Element)
}
