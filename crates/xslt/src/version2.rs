//! What XSLT 2.0 has beyond 1.0: its instructions, and those of 1.0 that do more in it.

use crate::expr::Expr;
use crate::model::{Argument, Avt, Binding, Body, Declared, Scope, Sort};
use crate::names::Name;
use crate::pattern::Pattern;

/// An instruction.
#[derive(Debug)]
pub(crate) enum Version2 {
    /// Instructions one after the other.
    Sequential(Body),
    /// `xsl:sequence`.
    Sequence { select: Expr },
    /// `xsl:value-of`, of several items with a separator between.
    Values { content: Content, raw: bool },
    /// Text with expressions in braces (XSLT 3.0): one text node.
    TextTemplate(Avt),
    /// `xsl:attribute` with `select` or `separator`.
    Attribute { name: Avt, namespace: Option<Avt>, scope: Scope, content: Content },
    /// `xsl:comment`.
    Comment { content: Content },
    /// `xsl:processing-instruction`.
    Pi { name: Avt, content: Content },
    /// `xsl:namespace`.
    Namespace { name: Avt, content: Content },
    /// `xsl:copy-of`.
    CopyOf { select: Expr, namespaces: bool },
    /// `xsl:copy`; `inherits`: its children inherit its namespaces.
    Copy { select: Option<Expr>, sets: Box<[usize]>, body: Body, namespaces: bool, inherits: bool },
    /// `inherit-namespaces="no"` of the element just started.
    Isolate,
    /// `xsl:for-each-group`.
    ForEachGroup(Box<ForEachGroup>),
    /// `xsl:analyze-string`.
    Analyze { select: Expr, regex: Avt, flags: Option<Avt>, matching: Body, other: Body },
    /// `xsl:perform-sort`.
    PerformSort { select: Option<Expr>, body: Body, sorts: Box<[Sort]> },
    /// `xsl:next-match`.
    NextMatch { arguments: Box<[Argument]> },
    /// `xsl:document`.
    Document { body: Body },
    /// `xsl:result-document`.
    ResultDocument(Box<ResultDocument>),
    /// `xsl:message`.
    Message { content: Content, terminate: Avt, code: Option<Avt>, scope: Scope },
    /// `xsl:param` with `tunnel="yes"`; the passed value has the declared type.
    TunnelParam { slot: usize, name: Name, value: Binding, declared: Option<Declared> },
    /// One of XSLT 3.0.
    Version3(Box<crate::version3::Version3>),
    /// The conversion of a parameter if it was passed.
    Convert { slot: usize, declared: Declared },
}

/// Content by a `select` attribute or a body, with the separator of its items.
#[derive(Debug)]
pub(crate) struct Content {
    pub select: Option<Expr>,
    pub body: Body,
    pub separator: Option<Avt>,
}

/// `xsl:for-each-group`.
#[derive(Debug)]
pub(crate) struct ForEachGroup {
    pub select: Expr,
    pub by: Grouping,
    /// The URI of the collation of its keys.
    pub collation: Option<Avt>,
    /// The key is a sequence (XSLT 3.0).
    pub composite: bool,
    pub sorts: Box<[Sort]>,
    pub body: Body,
}

/// `xsl:result-document`: without `href` the principal result.
#[derive(Debug)]
pub(crate) struct ResultDocument {
    pub href: Option<Avt>,
    /// The name of an `xsl:output`.
    pub format: Option<Avt>,
    /// Properties of its own: the name in [`crate::output::PROPERTIES`], and the value.
    pub properties: Box<[(&'static str, Avt)]>,
    pub cdata_section_elements: Option<Avt>,
    pub suppress_indentation: Option<Avt>,
    pub character_maps: Option<Avt>,
    /// The URI of a document with properties.
    pub parameter_document: Option<Avt>,
    /// The namespaces of names in these.
    pub scope: Scope,
    pub body: Body,
}

/// How items are grouped.
#[derive(Debug)]
pub(crate) enum Grouping {
    By(Expr),
    Adjacent(Expr),
    StartingWith(Pattern),
    EndingWith(Pattern),
}

/// The mode of `mode="#current"`.
pub(crate) const CURRENT_MODE: usize = usize::MAX;
