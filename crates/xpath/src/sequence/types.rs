//! Sequence types: tests, and the conversion of values to them (XPath 2.0 sections 2.5 and 3.1.5).

use crate::ast::{ItemType, NodeTest, QName, SequenceType};
use crate::atomic::{Atomic, AtomicType, Kind};
use crate::context::Context;
use crate::error::{Span, XPathError};
use crate::eval::{Eval, Fault};
use crate::items::Signature;
use crate::options::NamespaceResolver;
use crate::value::{Item, Node, Value};
use std::num::NonZeroU64;
use std::sync::Arc;
use xml::NodeKind;

/// The namespace of the types of XML Schema.
pub(crate) const XSD: &str = "http://www.w3.org/2001/XMLSchema";

/// A compiled sequence type.
#[derive(Debug, Clone, PartialEq)]
pub struct SeqType {
    item: ItemTest,
    optional: bool,
    many: bool,
    /// The source text.
    shown: Box<str>,
    /// Of maps and arrays with types: the name of the property that their content has ([`crate::items::Map::all`]). `None`: it has none,
    /// because there are names of elements, signatures or many parts in it.
    property: Option<NonZeroU64>,
}

#[derive(Debug, Clone, PartialEq)]
enum ItemTest {
    Nothing,
    Item,
    Atomic(&'static AtomicType),
    /// `xs:error` (XPath 3.1): no value is of it.
    Error,
    Node(KindTest),
    Function(Option<Arc<Signature>>),
    Map(Option<Box<(SeqType, SeqType)>>),
    Array(Option<Box<SeqType>>),
}

type Name = (Box<str>, Box<str>);

#[derive(Debug, Clone, PartialEq)]
enum KindTest {
    Any,
    Text,
    Comment,
    Namespace,
    Instruction(Option<Box<str>>),
    Element(Option<Name>),
    Attribute(Option<Name>),
    /// A document test: with exactly one element, and its name.
    Document(Option<Option<Name>>),
}

impl ItemTest {
    /// The mark of sequences of which all items are known to pass ([`crate::shared::Shared::mark`]); `None`: that is not remembered.
    fn mark(&self) -> Option<usize> {
        match self {
            // (No address is so low.)
            ItemTest::Node(KindTest::Any) => Some(1),
            ItemTest::Node(KindTest::Element(None)) => Some(2),
            ItemTest::Node(KindTest::Attribute(None)) => Some(3),
            ItemTest::Node(KindTest::Text) => Some(4),
            ItemTest::Atomic(ty) => Some(std::ptr::from_ref(*ty) as usize),
            _ => None,
        }
    }
}

/// Whether all items of a sequence are atomic values of a type already.
fn holds_only(value: &Value, ty: &'static AtomicType) -> bool {
    let (Value::Sequence(items), Some(mark)) = (value, ItemTest::Atomic(ty).mark()) else { return false };
    let only = items.unmarked(mark).all(|item| matches!(item, Item::Atomic(atom) if ty.matches(atom)));
    if only {
        items.mark(mark);
    }
    only
}

/// The namespace of a prefix.
fn resolved<'n>(namespaces: &'n dyn NamespaceResolver, prefix: &'n str) -> Option<&'n str> {
    prefix.strip_prefix('{').or_else(|| namespaces.namespace(prefix))
}

/// The atomic type of that name.
pub(crate) fn atomic_type(
    name: &QName,
    namespaces: &dyn NamespaceResolver,
    default: &str,
    span: Span,
) -> Result<&'static AtomicType, XPathError> {
    let unknown = |message: String| XPathError::new(message, span).with_code("XPST0051");
    let uri = match (name.prefix.as_str(), resolved(namespaces, &name.prefix)) {
        ("", _) if default == XSD => XSD,
        ("", _) => {
            return Err(unknown(format!(
                "there is no atomic type `{name}` (types need the prefix of XML Schema)"
            )));
        }
        (_, Some(uri)) => uri,
        ("xs", None) => XSD,
        (prefix, None) => {
            return Err(
                XPathError::new(format!("the prefix `{prefix}` is not declared"), span).with_code("XPST0081")
            );
        }
    };
    match AtomicType::find(&name.local).filter(|_| uri == XSD) {
        Some(found) => Ok(found),
        None => {
            let similar = AtomicType::names().find(|n| crate::compile::similar(n, &name.local));
            let hint =
                similar.filter(|_| uri == XSD).map_or(String::new(), |s| format!("; did you mean `{s}`?"));
            Err(unknown(format!("there is no atomic type `{name}`{hint}")))
        }
    }
}

impl SeqType {
    /// Compiles a sequence type as parsed from `source`. Errors: unknown names.
    pub fn compile(
        ty: &SequenceType,
        source: &str,
        namespaces: &dyn NamespaceResolver,
        default_element_namespace: &str,
    ) -> Result<SeqType, XPathError> {
        let item = match &ty.item {
            ItemType::Nothing => ItemTest::Nothing,
            ItemType::Item => ItemTest::Item,
            ItemType::Atomic(name)
                if name.local == "error"
                    && resolved(namespaces, &name.prefix).map_or(name.prefix == "xs", |uri| uri == XSD) =>
            {
                ItemTest::Error
            }
            ItemType::Function(types) => ItemTest::Function(match types {
                None => None,
                Some((params, result)) => {
                    let param_type =
                        |ty| SeqType::compile(ty, source, namespaces, default_element_namespace).map(Some);
                    let params = params.iter().map(param_type).collect::<Result<_, _>>()?;
                    Some(Arc::new(Signature { params, result: param_type(result)? }))
                }
            }),
            ItemType::Map(types) => ItemTest::Map(match types {
                None => None,
                Some(types) => {
                    let compiled = |ty| SeqType::compile(ty, source, namespaces, default_element_namespace);
                    Some(Box::new((compiled(&types.0)?, compiled(&types.1)?)))
                }
            }),
            ItemType::Array(member) => ItemTest::Array(match member {
                None => None,
                Some(ty) => {
                    Some(Box::new(SeqType::compile(ty, source, namespaces, default_element_namespace)?))
                }
            }),
            ItemType::Atomic(name) => {
                ItemTest::Atomic(atomic_type(name, namespaces, default_element_namespace, ty.span)?)
            }
            ItemType::Node(test) => {
                ItemTest::Node(KindTest::compile(test, namespaces, default_element_namespace, ty.span)?)
            }
        };
        let shown = source.get(ty.span.range()).unwrap_or("").into();
        let mut compiled = SeqType { item, optional: ty.optional, many: ty.many, shown, property: None };
        if let ItemTest::Map(Some(_)) | ItemTest::Array(Some(_)) = compiled.item {
            compiled.property = compiled.numbered(1).and_then(NonZeroU64::new);
        }
        Ok(compiled)
    }

    /// A number that only types with the same meaning have: `digits`, one for the type, and those of its parts. `None`: it has none.
    fn numbered(&self, digits: u64) -> Option<u64> {
        let item = match &self.item {
            ItemTest::Nothing => 0,
            ItemTest::Item => 1,
            ItemTest::Error => 2,
            ItemTest::Function(None) => 3,
            ItemTest::Map(None) => 4,
            ItemTest::Map(Some(_)) => 5,
            ItemTest::Array(None) => 6,
            ItemTest::Array(Some(_)) => 7,
            ItemTest::Node(KindTest::Any) => 8,
            ItemTest::Node(KindTest::Element(None)) => 9,
            ItemTest::Node(KindTest::Attribute(None)) => 10,
            ItemTest::Node(KindTest::Text) => 11,
            ItemTest::Atomic(ty) => 12 + ty.index(),
            ItemTest::Function(Some(_)) | ItemTest::Node(_) => return None,
        };
        let digit = item << 2 | usize::from(self.optional) << 1 | usize::from(self.many);
        let digits = digits.checked_mul(256)?.checked_add(u64::from(u8::try_from(digit).ok()?))?;
        match &self.item {
            ItemTest::Map(Some(types)) => types.1.numbered(types.0.numbered(digits)?),
            ItemTest::Array(Some(member)) => member.numbered(digits),
            _ => Some(digits),
        }
    }

    /// Whether a value has the type.
    pub fn matches(&self, value: &Value, cx: &Context<'_>) -> bool {
        self.matches_in(value, &Eval::new(&crate::compile::NOTHING, cx)).unwrap_or(false)
    }

    pub(crate) fn matches_in(&self, value: &Value, eval: &Eval<'_>) -> Result<bool, Fault> {
        if !self.admits(value.len()) {
            return Ok(false);
        }
        for item in value.items() {
            if !self.matches_item(&item, eval)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether an item has the type of the items.
    fn matches_item(&self, item: &Item, eval: &Eval<'_>) -> Result<bool, Fault> {
        Ok(match (&self.item, item) {
            (ItemTest::Nothing, _) => false,
            (ItemTest::Item, _) => true,
            (ItemTest::Atomic(ty), Item::Atomic(atom)) => ty.matches(atom),
            (ItemTest::Function(None), Item::Atomic(atom)) => atom.is_function(),
            (ItemTest::Function(Some(signature)), Item::Atomic(atom)) => {
                return function_matches(atom, signature, eval);
            }
            (ItemTest::Map(None), Item::Atomic(Atomic::Map(_))) => true,
            (ItemTest::Map(Some(types)), Item::Atomic(Atomic::Map(map))) => {
                return map.all(self.property, |key, value| {
                    crate::eval::spend(1)?;
                    Ok(types.0.matches_in(&Value::from(key.clone()), eval)?
                        && types.1.matches_in(value, eval)?)
                });
            }
            (ItemTest::Array(None), Item::Atomic(Atomic::Array(_))) => true,
            (ItemTest::Array(Some(ty)), Item::Atomic(Atomic::Array(array))) => {
                return array.all(self.property, |member| {
                    crate::eval::spend(1)?;
                    ty.matches_in(member, eval)
                });
            }
            (ItemTest::Node(test), Item::Node(node)) => test.matches(*node, eval)?,
            _ => false,
        })
    }

    fn admits(&self, count: usize) -> bool {
        match count {
            0 => self.optional,
            1 => self.item != ItemTest::Nothing,
            _ => self.many && self.item != ItemTest::Nothing,
        }
    }

    /// Converts a value to this type, by the function conversion rules: nodes are atomized where an atomic type
    /// is required, untyped values are cast, numbers and URIs promoted. Errors: it cannot be converted.
    pub fn convert(&self, value: Value, cx: &Context<'_>) -> Result<Value, XPathError> {
        self.convert_in(value, &Eval::new(&crate::compile::NOTHING, cx)).map_err(|e| *e)
    }

    pub(crate) fn convert_in(&self, value: Value, eval: &Eval<'_>) -> Result<Value, Fault> {
        let wrong =
            |message: String| Box::new(XPathError::new(message, Span::default()).with_code("XPTY0004"));
        let value = match &self.item {
            ItemTest::Atomic(ty) if holds_only(&value, ty) => value,
            ItemTest::Atomic(ty) => {
                let mut items = Vec::with_capacity(value.len());
                for atom in eval.atoms_of(&value)? {
                    items.push(Item::Atomic(self.converted(atom, ty)?));
                }
                Value::from_items(items)
            }
            ItemTest::Function(Some(signature)) => {
                let mut items = Vec::with_capacity(value.len());
                for item in value.items() {
                    items.push(match item {
                        Item::Atomic(atom) if atom.is_function() => {
                            Item::Atomic(eval.coerced(atom, signature, Span::default())?)
                        }
                        item => item,
                    });
                }
                Value::from_items(items)
            }
            _ => value,
        };
        if !self.admits(value.len()) {
            let found = match value.len() {
                0 => "the empty sequence".to_owned(),
                1 => "an item".to_owned(),
                n => format!("a sequence of {n} items"),
            };
            return Err(wrong(format!("{} is wanted, this is {found}", self.shown)));
        }
        let wrong = |item: &Item| wrong(format!("{} is wanted, this is {}", self.shown, eval.describe(item)));
        match (&self.item, &value, self.item.mark()) {
            (ItemTest::Atomic(_) | ItemTest::Item, ..) => {}
            (_, Value::Sequence(items), Some(mark)) => {
                for item in items.unmarked(mark) {
                    if !self.matches_item(item, eval)? {
                        return Err(wrong(item));
                    }
                }
                items.mark(mark);
            }
            _ => {
                for item in value.items() {
                    if !self.matches_item(&item, eval)? {
                        return Err(wrong(&item));
                    }
                }
            }
        }
        Ok(value)
    }

    fn converted(&self, atom: Atomic, ty: &'static AtomicType) -> Result<Atomic, Fault> {
        if ty.matches(&atom) {
            return Ok(atom);
        }
        let promotes = match (atom.kind(), ty.kind) {
            (Kind::Untyped, Kind::Name) => false,
            (Kind::Untyped, _) | (Kind::Uri, Kind::String) => true,
            (Kind::Integer | Kind::Decimal, Kind::Float | Kind::Double) | (Kind::Float, Kind::Double) => true,
            _ => false,
        };
        if !promotes {
            let message = format!("{} is wanted, this is {}", self.shown, atom.describe());
            return Err(Box::new(XPathError::new(message, Span::default()).with_code("XPTY0004")));
        }
        atom.cast(ty).map_err(|e| Box::new(XPathError::new(e.message, Span::default()).with_code(e.code)))
    }

    /// Whether it is `xs:string` with any cardinality, or similar: its values are atomic.
    pub fn is_atomic(&self) -> bool {
        matches!(self.item, ItemTest::Atomic(_))
    }

    /// Whether every value has the type: `item()*`.
    pub fn is_anything(&self) -> bool {
        self.item == ItemTest::Item && self.optional && self.many
    }

    /// Whether a single element of that name has the type.
    pub fn admits_element(&self, namespace: &str, local: &str) -> bool {
        match &self.item {
            ItemTest::Item | ItemTest::Node(KindTest::Any | KindTest::Element(None)) => true,
            ItemTest::Node(KindTest::Element(Some((uri, name)))) => **name == *local && **uri == *namespace,
            _ => false,
        }
    }

    /// Whether it is a subtype of the other type.
    pub(crate) fn is_within(&self, other: &SeqType) -> bool {
        if self.item == ItemTest::Nothing {
            return other.optional;
        }
        (!self.optional || other.optional) && (!self.many || other.many) && self.item.is_within(&other.item)
    }

    /// The source text.
    pub fn text(&self) -> &str {
        &self.shown
    }

    /// Whether the empty sequence has the type.
    pub fn allows_empty(&self) -> bool {
        self.optional
    }
}

impl ItemTest {
    fn is_within(&self, other: &ItemTest) -> bool {
        match (self, other) {
            (_, ItemTest::Item) => true,
            (ItemTest::Error, _) => true,
            (ItemTest::Atomic(a), ItemTest::Atomic(b)) => a.is_within(b),
            (ItemTest::Node(a), ItemTest::Node(b)) => a.is_within(b),
            (ItemTest::Function(_) | ItemTest::Map(_) | ItemTest::Array(_), ItemTest::Function(None)) => true,
            (ItemTest::Function(Some(a)), ItemTest::Function(Some(b))) => {
                let any = |ty: &Option<SeqType>| ty.as_ref().is_none_or(SeqType::is_anything);
                let within = |a: &Option<SeqType>, b: &Option<SeqType>| match (a, b) {
                    (_, b) if any(b) => true,
                    (Some(a), Some(b)) => a.is_within(b),
                    _ => false,
                };
                a.params.len() == b.params.len()
                    && a.params.iter().zip(&b.params).all(|(a, b)| within(b, a))
                    && within(&a.result, &b.result)
            }
            (ItemTest::Map(_), ItemTest::Map(None)) | (ItemTest::Array(_), ItemTest::Array(None)) => true,
            (ItemTest::Map(Some(a)), ItemTest::Map(Some(b))) => a.0.is_within(&b.0) && a.1.is_within(&b.1),
            (ItemTest::Array(Some(a)), ItemTest::Array(Some(b))) => a.is_within(b),
            (ItemTest::Map(a), ItemTest::Function(Some(b))) => {
                let takes = b.params.len() == 1
                    && b.params[0]
                        .as_ref()
                        .is_some_and(|ty| matches!(ty.item, ItemTest::Atomic(_)) && !ty.many);
                let gives = match (a, &b.result) {
                    (_, None) => true,
                    (Some(a), Some(result)) => result.optional && a.1.is_within(result),
                    (None, Some(result)) => result.is_anything(),
                };
                takes && gives
            }
            (ItemTest::Array(a), ItemTest::Function(Some(b))) => {
                let takes = b.params.len() == 1
                    && b.params[0].as_ref().is_some_and(
                        |ty| matches!(ty.item, ItemTest::Atomic(ty) if ty.kind == Kind::Integer),
                    );
                let gives = match (a, &b.result) {
                    (_, None) => true,
                    (Some(a), Some(result)) => a.is_within(result),
                    (None, Some(result)) => result.is_anything(),
                };
                takes && gives
            }
            _ => self == other,
        }
    }
}

/// Whether a function has a type: as many parameters, each of which accepts at least the required type, and a result of at most the
/// required type. Types that are not known match all.
fn function_matches(atom: &Atomic, wanted: &Signature, eval: &Eval<'_>) -> Result<bool, Fault> {
    let function = match atom {
        Atomic::Function(function) => function,
        // A map is a function of any atomic value; for an absent key it returns the empty sequence.
        Atomic::Map(map) => {
            let [param] = &*wanted.params else { return Ok(false) };
            let takes = param
                .as_ref()
                .is_none_or(|ty| matches!(ty.item, ItemTest::Atomic(_)) && !ty.many && !ty.optional);
            if let (true, Some(result)) = (takes, &wanted.result) {
                if !result.optional {
                    return Ok(false);
                }
                for (_, value) in map.entries() {
                    if !result.matches_in(value, eval)? {
                        return Ok(false);
                    }
                }
            }
            return Ok(takes);
        }
        Atomic::Array(array) => {
            let [param] = &*wanted.params else { return Ok(false) };
            let integer = |ty: &SeqType| {
                matches!(ty.item, ItemTest::Atomic(ty) if ty.kind == Kind::Integer)
                    && !ty.many
                    && !ty.optional
            };
            if !param.as_ref().is_none_or(integer) {
                return Ok(false);
            }
            if let Some(result) = &wanted.result {
                for member in array.members() {
                    if !result.matches_in(member, eval)? {
                        return Ok(false);
                    }
                }
            }
            return Ok(true);
        }
        _ => return Ok(false),
    };
    if function.arity != wanted.params.len() {
        return Ok(false);
    }
    let Some(signature) = function.types() else { return Ok(true) };
    let params = signature.params.iter().zip(&wanted.params).all(|(ty, wanted)| match (ty, wanted) {
        (None, _) => true,
        (Some(ty), None) => ty.is_anything(),
        (Some(ty), Some(wanted)) => wanted.is_within(ty),
    });
    let result = match (&signature.result, &wanted.result) {
        (_, None) => true,
        (None, Some(wanted)) => wanted.is_anything(),
        (Some(ty), Some(wanted)) => ty.is_within(wanted),
    };
    Ok(params && result)
}

impl KindTest {
    fn compile(
        test: &NodeTest,
        namespaces: &dyn NamespaceResolver,
        default: &str,
        span: Span,
    ) -> Result<KindTest, XPathError> {
        let name = |name: &Option<QName>, default: &str| -> Result<Option<Name>, XPathError> {
            let Some(name) = name else { return Ok(None) };
            let uri = match name.prefix.as_str() {
                "" => default,
                prefix => resolved(namespaces, prefix).ok_or_else(|| {
                    XPathError::new(format!("the prefix `{prefix}` is not declared"), span)
                        .with_code("XPST0081")
                })?,
            };
            Ok(Some((uri.into(), name.local.as_str().into())))
        };
        Ok(match test {
            NodeTest::Text => KindTest::Text,
            NodeTest::Comment => KindTest::Comment,
            NodeTest::NamespaceNode => KindTest::Namespace,
            NodeTest::ProcessingInstruction(target) => {
                KindTest::Instruction(target.as_deref().map(Box::from))
            }
            NodeTest::Element(n) => KindTest::Element(name(n, default)?),
            NodeTest::Attribute(n) => KindTest::Attribute(name(n, "")?),
            NodeTest::Document(None) => KindTest::Document(None),
            NodeTest::Document(Some(inner)) => match &**inner {
                NodeTest::Element(n) => KindTest::Document(Some(name(n, default)?)),
                _ => KindTest::Document(None),
            },
            _ => KindTest::Any,
        })
    }

    fn is_within(&self, other: &KindTest) -> bool {
        match (self, other) {
            (_, KindTest::Any) => true,
            (KindTest::Element(_), KindTest::Element(None))
            | (KindTest::Attribute(_), KindTest::Attribute(None))
            | (KindTest::Instruction(_), KindTest::Instruction(None))
            | (KindTest::Document(_), KindTest::Document(None)) => true,
            _ => self == other,
        }
    }

    fn matches(&self, node: Node, eval: &Eval<'_>) -> Result<bool, Fault> {
        if node.is_namespace() {
            return Ok(matches!(self, KindTest::Any | KindTest::Namespace));
        }
        let doc = eval.doc(node.doc)?;
        let named = |id: xml::NodeId, name: &Option<Name>| {
            name.as_ref().is_none_or(|(uri, local)| *doc.local(id) == **local && *doc.namespace(id) == **uri)
        };
        let kind = doc.kind(node.id);
        Ok(match self {
            KindTest::Any => true,
            KindTest::Text => kind == NodeKind::Text,
            KindTest::Comment => kind == NodeKind::Comment,
            KindTest::Namespace => false,
            KindTest::Instruction(target) => {
                kind == NodeKind::ProcessingInstruction
                    && target.as_ref().is_none_or(|target| *doc.local(node.id) == **target)
            }
            KindTest::Element(name) => kind == NodeKind::Element && named(node.id, name),
            KindTest::Attribute(name) => kind == NodeKind::Attribute && named(node.id, name),
            KindTest::Document(None) => kind == NodeKind::Document,
            KindTest::Document(Some(name)) => {
                let mut elements = doc.children(node.id).filter(|n| doc.kind(*n) == NodeKind::Element);
                kind == NodeKind::Document
                    && elements.next().is_some_and(|only| named(only, name))
                    && elements.next().is_none()
                    && doc.children(node.id).all(|n| doc.kind(n) != NodeKind::Text)
            }
        })
    }
}
