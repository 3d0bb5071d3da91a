//! The components of a schema (Part 1, 2.2), in arenas: numbers instead of references, so that types may be recursive.

use super::automaton::Model;
use super::names::{NONE, Name, Names, Sym};
use super::regex::Pattern;
use super::value::{Enumeration, Primitive, Value};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use xml::NodeId;

pub type TypeId = usize;
pub type ElementId = usize;
pub type AttributeId = usize;
pub type ParticleId = usize;
pub type ConstraintId = usize;

/// The ur-type.
pub const ANY_TYPE: TypeId = 0;
/// The ur-type of simple types.
pub const ANY_SIMPLE: TypeId = 1;
/// `maxOccurs="unbounded"`.
pub const UNBOUNDED: u32 = u32::MAX;

/// A node of a schema document.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The number of the document.
    pub doc: usize,
    /// The node in it.
    pub node: NodeId,
}

/// A set of ways to derive, for `final` and `block`, and (one member) how a type was derived.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Ways(pub u8);

impl Ways {
    pub const NONE: Ways = Ways(0);
    pub const EXTENSION: Ways = Ways(1);
    pub const RESTRICTION: Ways = Ways(2);
    pub const LIST: Ways = Ways(4);
    pub const UNION: Ways = Ways(8);
    pub const SUBSTITUTION: Ways = Ways(16);
    pub const ALL: Ways = Ways(31);

    /// Whether they have a common member.
    pub fn meets(self, other: Ways) -> bool {
        self.0 & other.0 != 0
    }

    pub fn with(self, other: Ways) -> Ways {
        Ways(self.0 | other.0)
    }

    pub fn and(self, other: Ways) -> Ways {
        Ways(self.0 & other.0)
    }
}

/// A type definition.
#[derive(Debug)]
pub struct Type {
    /// `None`: anonymous.
    pub name: Option<Name>,
    pub base: TypeId,
    /// How it was derived from its base.
    pub derivation: Ways,
    pub is_final: Ways,
    /// `None`: built in.
    pub place: Option<Place>,
    pub body: Body,
}

/// The kind of a type.
#[derive(Debug)]
pub enum Body {
    /// Not built yet.
    Pending,
    Simple(Box<Simple>),
    Complex(Complex),
}

/// A simple type.
#[derive(Clone, Debug)]
pub struct Simple {
    pub variety: Variety,
    pub facets: Facets,
    /// A role beyond the value.
    pub role: Role,
}

/// The variety of a simple type.
#[derive(Clone, Debug)]
pub enum Variety {
    Atomic(Primitive),
    List(TypeId),
    Union(Vec<TypeId>),
}

/// Values that refer to others.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Role {
    None,
    Id,
    IdRef,
    Entity,
}

/// The lexical form that a built-in type demands beyond its primitive.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Form {
    Any,
    Integer,
    Language,
    NmToken,
    Name,
    NcName,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd)]
pub enum WhiteSpace {
    Preserve,
    Replace,
    Collapse,
}

/// A facet's value, and whether derived types may change it.
#[derive(Clone, Debug)]
pub struct Facet<T> {
    pub value: T,
    pub fixed: bool,
}

/// All facets in force, those of base types included.
#[derive(Clone, Debug)]
pub struct Facets {
    pub form: Form,
    pub white_space: Facet<WhiteSpace>,
    pub length: Option<Facet<u64>>,
    pub min_length: Option<Facet<u64>>,
    pub max_length: Option<Facet<u64>>,
    pub total_digits: Option<Facet<u64>>,
    pub fraction_digits: Option<Facet<u64>>,
    pub min_inclusive: Option<Facet<Value>>,
    pub max_inclusive: Option<Facet<Value>>,
    pub min_exclusive: Option<Facet<Value>>,
    pub max_exclusive: Option<Facet<Value>>,
    /// Each derivation step adds alternatives; one of each step must match.
    pub patterns: Vec<Arc<[Pattern]>>,
    pub enumeration: Option<Arc<Enumeration>>,
}

impl Facets {
    pub fn new(white_space: WhiteSpace, fixed: bool) -> Facets {
        Facets {
            form: Form::Any,
            white_space: Facet { value: white_space, fixed },
            length: None,
            min_length: None,
            max_length: None,
            total_digits: None,
            fraction_digits: None,
            min_inclusive: None,
            max_inclusive: None,
            min_exclusive: None,
            max_exclusive: None,
            patterns: Vec::new(),
            enumeration: None,
        }
    }
}

/// A complex type.
#[derive(Debug)]
pub struct Complex {
    pub is_abstract: bool,
    pub block: Ways,
    pub attributes: Vec<AttributeUse>,
    pub wildcard: Option<Wildcard>,
    pub content: Content,
}

/// The content of a complex type.
#[derive(Debug)]
pub enum Content {
    Empty,
    /// Characters of a simple type.
    Simple(TypeId),
    /// Elements, between characters when mixed.
    Elements {
        mixed: bool,
        particle: Option<ParticleId>,
        model: Model,
    },
}

/// `default` or `fixed`.
#[derive(Clone, Debug)]
pub struct Constant {
    pub text: Box<str>,
    pub fixed: bool,
    /// The value in the type of the declaration; `None` while the schema is built or where it is wrong.
    pub value: Option<Value>,
}

/// An attribute of a complex type.
#[derive(Clone, Debug)]
pub struct AttributeUse {
    pub name: Name,
    pub attribute: AttributeId,
    pub required: bool,
    /// `use="prohibited"`: takes the attribute of the base away.
    pub prohibited: bool,
    /// The constraint of the use; without one that of the declaration applies.
    pub constant: Option<Constant>,
    pub place: Place,
}

/// An attribute declaration.
#[derive(Debug)]
pub struct Attribute {
    pub name: Name,
    pub ty: TypeId,
    pub constant: Option<Constant>,
    pub place: Place,
}

/// An element declaration.
#[derive(Debug)]
pub struct Element {
    pub name: Name,
    pub ty: TypeId,
    pub nillable: bool,
    pub is_abstract: bool,
    pub constant: Option<Constant>,
    /// The head of its substitution group.
    pub head: Option<ElementId>,
    pub block: Ways,
    pub is_final: Ways,
    pub constraints: Vec<ConstraintId>,
    pub place: Place,
}

/// A particle: `minOccurs`, `maxOccurs` and a term.
#[derive(Clone, Debug)]
pub struct Particle {
    pub min: u32,
    pub max: u32,
    pub term: Term,
    pub place: Place,
}

/// A term.
#[derive(Clone, Debug)]
pub enum Term {
    Element(ElementId),
    Any(Arc<Wildcard>),
    Group(Compositor, Vec<ParticleId>),
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Compositor {
    Sequence,
    Choice,
    All,
}

/// `any` and `anyAttribute`.
#[derive(Clone, Debug)]
pub struct Wildcard {
    pub namespaces: Namespaces,
    pub process: Process,
}

/// `processContents` of a wildcard.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd)]
pub enum Process {
    Skip,
    Lax,
    Strict,
}

/// The namespaces a wildcard admits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespaces {
    Any,
    /// All but this one and no namespace.
    Not(Sym),
    /// These (sorted).
    Set(Vec<Sym>),
}

impl Namespaces {
    pub fn allows(&self, ns: Sym) -> bool {
        match self {
            Namespaces::Any => true,
            Namespaces::Not(other) => ns != *other && ns != NONE,
            Namespaces::Set(set) => set.contains(&ns),
        }
    }

    /// Part 1, 3.10.6, Wildcard Subset.
    pub fn is_subset(&self, superset: &Namespaces) -> bool {
        match (self, superset) {
            (_, Namespaces::Any) => true,
            (Namespaces::Not(a), Namespaces::Not(b)) => a == b,
            (Namespaces::Set(set), superset) => set.iter().all(|&ns| superset.allows(ns)),
            _ => false,
        }
    }

    /// Attribute Wildcard Union; `None` where it cannot be expressed.
    pub fn union(&self, other: &Namespaces) -> Option<Namespaces> {
        use Namespaces::*;
        match (self, other) {
            (a, b) if a == b => Some(a.clone()),
            (Any, _) | (_, Any) => Some(Any),
            (Set(a), Set(b)) => Some(set(a.iter().chain(b).copied())),
            // Two negations of different namespaces: all but no namespace.
            (Not(_), Not(_)) => Some(Not(NONE)),
            (Not(n), Set(s)) | (Set(s), Not(n)) => match (s.contains(n), s.contains(&NONE)) {
                (true, true) => Some(Any),
                (true, false) => Some(Not(NONE)),
                (false, true) if *n == NONE => Some(Any),
                (false, true) => None,
                (false, false) => Some(Not(*n)),
            },
        }
    }

    /// Attribute Wildcard Intersection; `None` where it cannot be expressed.
    pub fn intersection(&self, other: &Namespaces) -> Option<Namespaces> {
        use Namespaces::*;
        match (self, other) {
            (a, b) if a == b => Some(a.clone()),
            (Any, x) | (x, Any) => Some(x.clone()),
            (Set(a), b) | (b, Set(a)) => Some(set(a.iter().copied().filter(|&ns| b.allows(ns)))),
            (Not(a), Not(b)) => match (*a, *b) {
                (NONE, x) | (x, NONE) => Some(Not(x)),
                _ => None,
            },
        }
    }

    /// Whether a name is admitted by both.
    pub fn overlaps(&self, other: &Namespaces) -> bool {
        use Namespaces::*;
        match (self, other) {
            (Set(a), b) | (b, Set(a)) => a.iter().any(|&ns| b.allows(ns)),
            _ => true,
        }
    }
}

/// A set of namespaces.
pub fn set(namespaces: impl Iterator<Item = Sym>) -> Namespaces {
    let mut set: Vec<Sym> = namespaces.collect();
    set.sort_unstable();
    set.dedup();
    Namespaces::Set(set)
}

/// An identity constraint.
#[derive(Debug)]
pub struct Constraint {
    pub name: Name,
    pub kind: ConstraintKind,
    pub selector: super::identity::Selector,
    pub fields: Vec<super::identity::Selector>,
    pub place: Place,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ConstraintKind {
    Unique,
    Key,
    /// Refers to a key or a unique; `None` while it is not resolved.
    KeyRef(Option<ConstraintId>),
}

/// A whole schema.
#[derive(Debug, Default)]
pub struct Components {
    pub names: Names,
    pub types: Vec<Type>,
    pub elements: Vec<Element>,
    pub attributes: Vec<Attribute>,
    pub particles: Vec<Particle>,
    pub constraints: Vec<Constraint>,
    pub global_types: HashMap<Name, TypeId>,
    pub global_elements: HashMap<Name, ElementId>,
    pub global_attributes: HashMap<Name, AttributeId>,
    pub notations: HashSet<Name>,
    /// The elements that may stand for an element, itself not included.
    pub members: HashMap<ElementId, Vec<ElementId>>,
}

impl Components {
    /// The simple type with this number; `None` for a complex one.
    pub fn simple(&self, ty: TypeId) -> Option<&Simple> {
        match &self.types.get(ty)?.body {
            Body::Simple(simple) => Some(simple),
            _ => None,
        }
    }

    /// The complex type with this number; `None` for a simple one.
    pub fn complex(&self, ty: TypeId) -> Option<&Complex> {
        match &self.types.get(ty)?.body {
            Body::Complex(complex) => Some(complex),
            _ => None,
        }
    }

    /// The simple type of the text in an element of this type.
    pub fn content_type(&self, ty: TypeId) -> Option<TypeId> {
        match &self.types.get(ty)?.body {
            Body::Simple(_) => Some(ty),
            Body::Complex(Complex { content: Content::Simple(ty), .. }) => Some(*ty),
            _ => None,
        }
    }

    /// The derivation methods from `base` to `ty`; `None`: it is not derived.
    pub fn derivation(&self, ty: TypeId, base: TypeId) -> Option<Ways> {
        let mut ways = Ways::NONE;
        let mut at = ty;
        for _ in 0..=self.types.len() {
            if at == base {
                return Some(ways);
            }
            if at == ANY_TYPE {
                break;
            }
            ways = ways.with(self.types[at].derivation);
            at = self.types[at].base;
        }
        // A member of a union stands for the union.
        if let Some(Simple { variety: Variety::Union(members), .. }) = self.simple(base)
            && base != ty
            && self
                .simple(base)
                .is_some_and(|b| b.facets.patterns.is_empty() && b.facets.enumeration.is_none())
        {
            return members.iter().find_map(|&m| self.derivation(ty, m));
        }
        None
    }

    /// The name of a type for messages.
    pub fn type_name(&self, ty: TypeId) -> String {
        match self.types.get(ty).and_then(|t| t.name) {
            Some(name) => self.names.show(name),
            None => "an anonymous type".to_owned(),
        }
    }
}
