//! The compiled stylesheet: what [`crate::compile`] makes and [`crate::run`] executes. Nothing here depends on a
//! source document.

use crate::expr::Expr;
use crate::names::{Name, Names};
use crate::output::{OutputProperties, Writing};
use crate::pattern::{Pattern, Rules};
use crate::version2::Version2;
use std::collections::{BTreeMap, HashMap};
use xpath::Collation;
use xpath::format::DecimalFormat;

/// Everything that the execution of a stylesheet needs.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Different for every stylesheet of the process.
    pub number: u64,
    /// It runs in a processor of XSLT 2.0.
    pub version2: bool,
    /// It runs in a processor of XSLT 3.0, as far as that is implemented.
    pub version3: bool,
    pub names: Names,
    /// URIs of the stylesheet's files; [`Place::module`] indexes it.
    pub modules: Vec<String>,
    /// Base URIs: those of the files, changed by `xml:base`; [`Place::base`] indexes it.
    pub bases: Vec<String>,
    /// Named templates and modes.
    pub named: HashMap<Name, usize>,
    pub mode_names: HashMap<Name, usize>,
    pub templates: Vec<Template>,
    /// Template rules by mode; 0 is the mode without a name.
    pub modes: Vec<Rules>,
    pub globals: Vec<Global>,
    pub keys: HashMap<Name, Vec<Key>>,
    pub sets: Vec<AttributeSet>,
    pub space: Vec<SpaceRule>,
    pub output: OutputProperties,
    /// The `xsl:output` without a name, the last one.
    pub output_place: Place,
    /// The serialization of the principal result.
    pub writing: Writing,
    /// `xsl:global-context-item`.
    pub global_context: Option<crate::version3::GlobalContext>,
    /// Named outputs and character maps, for `xsl:result-document`.
    pub outputs: HashMap<Name, OutputProperties>,
    pub character_maps: HashMap<Name, BTreeMap<char, String>>,
    pub formats: HashMap<Name, DecimalFormat>,
    pub default_format: DecimalFormat,
    /// `xsl:accumulator`.
    pub accumulators: HashMap<Name, crate::version3::Accumulator>,
    /// The initial mode.
    pub initial_mode: usize,
    /// By slot.
    pub functions: HashMap<u32, Function>,
    /// The number of literal result elements.
    pub literals: u32,
    /// Messages for functions that expressions call and that are not implemented, where the call is an error at run time only.
    pub unavailable: Vec<(String, Place)>,
    /// `xsl:evaluate` may run.
    pub evaluates: bool,
    /// The first `xsl:evaluate` that may not run, and has no fallback.
    pub forbidden: Option<Place>,
    /// Some expression calls `last()`.
    pub needs_size: bool,
    /// Bytes of the principal stylesheet, for `document('')` where the resolver has none.
    pub principal: Box<[u8]>,
}

/// A place in the stylesheet.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(crate) struct Place {
    pub module: u16,
    /// The base URI.
    pub base: u16,
    pub line: u32,
    pub column: u32,
}

/// A sequence of instructions.
pub(crate) type Body = Box<[Instruction]>;

#[derive(Debug)]
pub(crate) struct Instruction {
    pub op: Op,
    pub place: Place,
}

/// The instructions (XSLT 1.0 sections 5 to 13), references resolved.
#[derive(Debug)]
pub(crate) enum Op {
    /// Literal text and `xsl:text`.
    Text {
        text: Box<str>,
        /// The same, escaped for XML.
        escaped: Box<[u8]>,
        raw: bool,
    },
    ValueOf {
        select: Expr,
        raw: bool,
    },
    ApplyTemplates {
        select: Option<Expr>,
        mode: usize,
        sorts: Box<[Sort]>,
        arguments: Box<[Argument]>,
    },
    ApplyImports {
        arguments: Box<[Argument]>,
    },
    CallTemplate {
        template: usize,
        arguments: Box<[Argument]>,
        /// It is a tail call of its template: see [`mark_tails`].
        tail: bool,
    },
    ForEach {
        select: Expr,
        sorts: Box<[Sort]>,
        body: Body,
    },
    If {
        test: Expr,
        body: Body,
    },
    Choose {
        when: Box<[(Expr, Body)]>,
        otherwise: Body,
    },
    /// The start tag of a literal result element; what is in it follows, …
    Literal(Box<Literal>),
    /// … then this.
    EndLiteral {
        close: Box<[u8]>,
        /// The start tag had [`Literal::bindings`].
        plain: bool,
    },
    /// A literal result element with fixed attributes that holds one value.
    Leaf(Box<Leaf>),
    Element {
        /// The name, if it is known at compile time.
        fixed: Option<Box<FixedName>>,
        name: Avt,
        namespace: Option<Avt>,
        scope: Scope,
        sets: Box<[usize]>,
        body: Body,
    },
    Attribute {
        /// The name, if it is known at compile time.
        fixed: Option<Box<FixedName>>,
        name: Avt,
        namespace: Option<Avt>,
        scope: Scope,
        body: Body,
    },
    Comment {
        body: Body,
    },
    Pi {
        name: Avt,
        body: Body,
    },
    Copy {
        sets: Box<[usize]>,
        body: Body,
    },
    CopyOf {
        select: Expr,
    },
    Number(Box<Number>),
    /// `xsl:variable` inside a template.
    Variable {
        slot: usize,
        value: Binding,
    },
    /// `xsl:param` of a template: keeps a passed value.
    Param {
        slot: usize,
        value: Binding,
    },
    Message {
        body: Body,
        terminate: bool,
    },
    /// An unknown instruction: its fallbacks, or an error.
    Unknown {
        message: Box<str>,
        fallback: Option<Body>,
    },
    /// `func:result`.
    Result {
        value: Binding,
    },
    /// What XSLT 2.0 adds.
    Version2(Box<crate::version2::Version2>),
}

/// Whether instructions produce only text that is to be escaped.
pub(crate) fn makes_text(body: &[Instruction]) -> bool {
    body.iter().all(|instruction| match &instruction.op {
        Op::Text { raw, .. } | Op::ValueOf { raw, .. } => !raw,
        Op::Number(_) | Op::Variable { .. } => true,
        Op::If { body, .. } | Op::ForEach { body, .. } => makes_text(body),
        Op::Choose { when, otherwise } => {
            when.iter().all(|(_, body)| makes_text(body)) && makes_text(otherwise)
        }
        _ => false,
    })
}

/// Marks tail calls: nothing of the template is needed while they run.
pub(crate) fn mark_tails(body: &mut [Instruction]) {
    match body.last_mut().map(|last| &mut last.op) {
        Some(Op::CallTemplate { arguments, tail, .. }) => {
            *tail = arguments.iter().all(|argument| !argument.tunnel);
        }
        Some(Op::If { body, .. }) => mark_tails(body),
        Some(Op::Choose { when, otherwise }) => {
            when.iter_mut().for_each(|(_, body)| mark_tails(body));
            mark_tails(otherwise);
        }
        _ => {}
    }
}

/// The in-scope namespaces of a stylesheet element: (prefix, URI), the default namespace with prefix "".
pub(crate) type Scope = std::sync::Arc<[(Box<str>, Box<str>)]>;

/// A namespace declaration: prefix and URI.
pub(crate) type Declaration = (Box<str>, Box<str>);

/// A literal result element.
#[derive(Debug)]
pub(crate) struct Literal {
    pub prefix: Box<str>,
    pub namespace: Box<str>,
    pub local: Box<str>,
    /// Namespace nodes that it copies into the result, aliases applied.
    pub namespaces: Box<[(Box<str>, Box<str>)]>,
    pub attributes: Box<[LiteralAttribute]>,
    pub sets: Box<[usize]>,
    /// For XML written straight to bytes: its number, …
    pub number: u32,
    /// … `<name`, `</name>`, …
    pub open: Box<[u8]>,
    pub close: Box<[u8]>,
    /// … how many of its attributes have fixed values before the first that has not (none where there are attribute sets), …
    pub fixed_count: usize,
    /// … these attributes, `<name` and them together, …
    pub fixed: Box<[u8]>,
    pub start: Box<[u8]>,
    /// … whether there are others or attribute sets, …
    pub more: bool,
    /// … the names of all attributes, see [`name_bit`], …
    pub mask: u64,
    /// … and every namespace that must be declared: of its name, its namespace nodes, its attributes. `None`: they
    /// contradict one another.
    pub bindings: Option<Box<[Declaration]>>,
    /// Its start tag is complete: content or its end follows in the stylesheet.
    pub closed: bool,
}

/// A bit for the name of an attribute: if it is not set in the union of others, none of them has this name.
#[inline]
pub(crate) fn name_bit(local: &str) -> u64 {
    let bytes = local.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            1 << ((bytes.len() + usize::from(*first) * 5 + usize::from(*last) * 11) & 63)
        }
        _ => 1,
    }
}

/// The name of an `xsl:element` or `xsl:attribute` that is known when the stylesheet is compiled.
#[derive(Debug)]
pub(crate) struct FixedName {
    pub prefix: Box<str>,
    pub namespace: Box<str>,
    pub local: Box<str>,
}

impl Op {
    pub fn text(text: &str, raw: bool) -> Op {
        let mut escaped = Vec::new();
        xml::escape::push_text_controlled(&mut escaped, text);
        Op::Text { text: text.into(), escaped: escaped.into(), raw }
    }
}

/// See [`Op::Leaf`].
#[derive(Debug)]
pub(crate) struct Leaf {
    pub literal: Literal,
    pub select: Expr,
    pub raw: bool,
}

impl Literal {
    /// Fills in the precomputed bytes.
    pub fn prepare(mut self, number: u32) -> Literal {
        let name = if self.prefix.is_empty() {
            self.local.to_string()
        } else {
            format!("{}:{}", self.prefix, self.local)
        };
        self.number = number;
        self.open = format!("<{name}").into_bytes().into();
        self.close = format!("</{name}>").into_bytes().into();
        let mut bindings: Vec<(Box<str>, Box<str>)> = vec![(self.prefix.clone(), self.namespace.clone())];
        let mut contradiction =
            &*self.prefix == "xml" || (self.namespace.is_empty() && !self.prefix.is_empty());
        for (prefix, uri) in &self.namespaces {
            // A namespace node that contradicts the name of its element is left out.
            if !bindings.iter().any(|(p, _)| p == prefix) {
                bindings.push((prefix.clone(), uri.clone()));
            }
        }
        let mut fixed = Vec::new();
        for attribute in &mut self.attributes {
            if &*attribute.namespace != xml::XML_NS && !attribute.namespace.is_empty() {
                match bindings.iter().find(|(p, _)| *p == attribute.prefix) {
                    _ if attribute.prefix.is_empty() => contradiction = true,
                    Some((_, uri)) => contradiction |= *uri != attribute.namespace,
                    None => bindings.push((attribute.prefix.clone(), attribute.namespace.clone())),
                }
            }
            let mut lead = vec![b' '];
            if !attribute.prefix.is_empty() && !attribute.namespace.is_empty() {
                lead.extend_from_slice(attribute.prefix.as_bytes());
                lead.push(b':');
            }
            lead.extend_from_slice(attribute.local.as_bytes());
            lead.extend_from_slice(b"=\"");
            attribute.lead = lead.into();
        }
        if self.sets.is_empty() {
            // Those behind a computed one come behind it: the result has the order of the stylesheet.
            for attribute in &self.attributes {
                let Avt::Fixed(value) = &attribute.value else { break };
                fixed.extend_from_slice(&attribute.lead);
                xml::escape::push_attribute_controlled(&mut fixed, value);
                fixed.push(b'"');
                self.fixed_count += 1;
            }
        }
        self.start = [&*self.open, &*fixed].concat().into();
        self.fixed = fixed.into();
        self.mask = self.attributes.iter().fold(0, |mask, attribute| mask | name_bit(&attribute.local));
        self.more = !self.sets.is_empty() || self.attributes.iter().any(|a| matches!(a.value, Avt::Parts(_)));
        self.bindings = (!contradiction).then(|| bindings.into());
        self
    }
}

#[derive(Debug)]
pub(crate) struct LiteralAttribute {
    /// ` name="`.
    pub lead: Box<[u8]>,
    pub prefix: Box<str>,
    pub namespace: Box<str>,
    pub local: Box<str>,
    pub value: Avt,
}

/// An attribute value template.
#[derive(Debug)]
pub(crate) enum Avt {
    Fixed(Box<str>),
    Parts(Box<[AvtPart]>),
}

#[derive(Debug)]
pub(crate) enum AvtPart {
    Text(Box<str>),
    Expr(Expr),
    /// Of XSLT 2.0: all items, separated by spaces.
    Items(Expr),
}

/// The value of a variable, parameter or argument.
#[derive(Debug)]
pub(crate) enum Binding {
    Select(Expr),
    /// A result tree fragment.
    Body(Body),
    /// A result tree fragment whose instructions produce only text ([`makes_text`]): the text is kept, and a tree is made
    /// only when its nodes are used.
    Text(Body),
    /// A result tree fragment that is always text.
    Empty,
    /// The sequence that a body returns.
    Sequence(Body),
    /// A value of a declared type.
    As(Box<Typed>),
    /// A required argument: the error where it is missing.
    Required(Box<str>),
}

impl Binding {
    /// The error of a missing argument, if it is required.
    pub fn required(&self) -> Option<&str> {
        match self {
            Binding::Required(message) => Some(message),
            Binding::As(typed) => typed.value.required(),
            _ => None,
        }
    }
}

/// A value with its declared type (`as`).
#[derive(Debug)]
pub(crate) struct Typed {
    pub value: Binding,
    pub declared: Declared,
}

/// A type that an `as` attribute declares (XSLT 2.0 section 9.3).
#[derive(Debug)]
pub(crate) struct Declared {
    pub ty: xpath::SeqType,
    /// The error of a value that is not of the type and cannot become one.
    pub code: &'static str,
    /// The subject of that error: "the variable $v".
    pub of: Box<str>,
}

/// `xsl:with-param`.
#[derive(Debug)]
pub(crate) struct Argument {
    pub name: Name,
    pub value: Binding,
    /// A tunnel parameter.
    pub tunnel: bool,
    pub place: Place,
}

/// `xsl:sort`.
#[derive(Debug)]
pub(crate) struct Sort {
    pub select: Option<Expr>,
    /// Of XSLT 2.0: the sequence constructor in place of `select`.
    pub body: Body,
    pub order: Option<Avt>,
    pub data_type: Option<Avt>,
    pub case_order: Option<Avt>,
    /// Of XSLT 2.0: compared by the type of the values.
    pub typed: bool,
    /// With `lang`: by the collation for words.
    pub words: bool,
    /// Of XSLT 2.0: the URI of a collation.
    pub collation: Option<Avt>,
    /// If none of its attributes has to be evaluated.
    pub plain: Option<PlainSort>,
    pub place: Place,
}

/// An `xsl:sort` of XSLT 1.0 with fixed attributes: keys are texts or numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlainSort {
    pub numeric: bool,
    pub descending: bool,
    pub upper_first: bool,
}

impl Sort {
    /// Fills in [`Sort::plain`].
    pub fn prepare(mut self) -> Sort {
        let fixed = |avt: &Option<Avt>| match avt {
            None => Some(String::new()),
            Some(Avt::Fixed(text)) => Some(text.to_string()),
            Some(Avt::Parts(_)) => None,
        };
        if !self.typed
            && self.body.is_empty()
            && self.collation.is_none()
            && let (Some(order), Some(kind), Some(case)) =
                (fixed(&self.order), fixed(&self.data_type), fixed(&self.case_order))
        {
            self.plain = Some(PlainSort {
                numeric: kind == "number",
                descending: order == "descending",
                upper_first: case == "upper-first",
            });
        }
        self
    }
}

/// `xsl:number`.
#[derive(Debug)]
pub(crate) struct Number {
    pub value: Option<Expr>,
    /// Of XSLT 2.0: the node to be numbered (`select`).
    pub select: Option<Expr>,
    /// By the rules of XSLT 2.0.
    pub version2: bool,
    /// The start values of the numbers (`start-at`, XSLT 3.0).
    pub start_at: Option<Avt>,
    pub ordinal: Option<Avt>,
    pub level: Level,
    pub count: Option<Pattern>,
    pub from: Option<Pattern>,
    pub format: Avt,
    pub lang: Option<Avt>,
    pub letter_value: Option<Avt>,
    pub grouping_separator: Option<Avt>,
    pub grouping_size: Option<Avt>,
}

#[derive(Debug, Copy, Clone, PartialEq)]
pub(crate) enum Level {
    Single,
    Multiple,
    Any,
}

/// A template: rule, named, or both.
#[derive(Debug)]
pub(crate) struct Template {
    /// `match="…"` or `name="…"` for messages, and the place.
    pub title: Box<str>,
    pub place: Place,
    pub body: Body,
    /// Name and slot of its parameters.
    pub parameters: Box<[(Name, usize)]>,
    /// Slots of its variables.
    pub slots: usize,
    /// It copies its node and applies templates to its content.
    pub identity: Option<Identity>,
    /// The declared type of its result, if it must be checked at run time.
    pub returns: Option<Box<Declared>>,
    /// The context item is absent in it (`xsl:context-item`).
    pub absent: bool,
    /// Import precedence, and the lowest precedence of its module's imports (`xsl:apply-imports` chooses from
    /// `imports_from..precedence`).
    pub precedence: u32,
    pub imports_from: u32,
}

/// A template with an `xsl:copy` that contains only an `xsl:apply-templates`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Identity {
    /// It applies templates to attributes too: `select="@* | node()"`.
    pub attributes: bool,
    /// The mode of the `xsl:apply-templates`.
    mode: usize,
}

impl Identity {
    /// The kind of a template with this body.
    pub fn of(body: &[Instruction]) -> Option<Identity> {
        let [Instruction { op, .. }] = body else { return None };
        let inner = match op {
            Op::Copy { sets, body } if sets.is_empty() => body,
            Op::Version2(version2) => match &**version2 {
                Version2::Copy { select: None, sets, body, namespaces: true, inherits: true }
                    if sets.is_empty() =>
                {
                    body
                }
                _ => return None,
            },
            _ => return None,
        };
        let [Instruction { op: Op::ApplyTemplates { select, mode, sorts, arguments }, .. }] = &**inner else {
            return None;
        };
        let attributes = match select {
            None => false,
            Some(Expr::XPath(xpath)) if xpath.all => true,
            Some(_) => return None,
        };
        (sorts.is_empty() && arguments.is_empty()).then_some(Identity { attributes, mode: *mode })
    }

    /// Whether it stays in the current mode.
    #[inline]
    pub fn stays_in(self, mode: usize) -> bool {
        self.mode == mode || self.mode == crate::version2::CURRENT_MODE
    }
}

/// A top-level variable or parameter.
#[derive(Debug)]
pub(crate) struct Global {
    pub name: Name,
    pub is_parameter: bool,
    pub value: Binding,
    pub slots: usize,
    pub place: Place,
}

/// One `xsl:key`.
#[derive(Debug)]
pub(crate) struct Key {
    pub pattern: Pattern,
    pub value: Binding,
    /// The variables of its content.
    pub slots: usize,
    /// Values that are not strings are compared by their type (XSLT 2.0).
    pub typed: bool,
    /// The same for all keys of this name.
    pub collation: Collation,
    /// The key is composite (XSLT 3.0); the same for all keys of this name.
    pub composite: bool,
    pub place: Place,
}

/// All `xsl:attribute-set`s of one name, in the order in which they apply.
#[derive(Debug)]
pub(crate) struct AttributeSet {
    pub name: Name,
    /// Sets used, then its own attributes; lowest import precedence first.
    pub parts: Vec<SetPart>,
}

#[derive(Debug)]
pub(crate) struct SetPart {
    pub uses: Box<[usize]>,
    pub body: Body,
    pub slots: usize,
    pub place: Place,
}

/// One name test of `xsl:strip-space` or `xsl:preserve-space`; best first.
#[derive(Debug, Clone)]
pub(crate) struct SpaceRule {
    pub test: SpaceTest,
    pub strip: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum SpaceTest {
    Any,
    Namespace(String),
    Local(String),
    Name(String, String),
}

/// `func:function` or `xsl:function`.
#[derive(Debug)]
pub(crate) struct Function {
    pub name: Name,
    pub parameters: Box<[(Name, usize)]>,
    pub slots: usize,
    pub body: Body,
    /// `xsl:function`: the result is the value of the body.
    pub version2: bool,
    /// Results are cached by their arguments (`cache="yes"`).
    pub keeps: bool,
    /// Expressions of `xsl:evaluate` may call it.
    pub public: bool,
    /// The declared type of the result.
    pub returns: Option<Declared>,
    pub place: Place,
}

impl Plan {
    /// Whether white-space-only text is stripped from elements of this name (XSLT 1.0 section 3.4).
    pub fn strips(&self, namespace: &str, local: &str) -> bool {
        self.space
            .iter()
            .find(|rule| match &rule.test {
                SpaceTest::Any => true,
                SpaceTest::Namespace(uri) => uri == namespace,
                SpaceTest::Local(name) => name == local,
                SpaceTest::Name(uri, name) => name == local && uri == namespace,
            })
            .is_some_and(|rule| rule.strip)
    }
}
