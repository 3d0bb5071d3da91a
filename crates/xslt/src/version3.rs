//! What XSLT 3.0 has beyond 2.0.

use crate::expr::Expr;
use crate::model::{Argument, Avt, Binding, Body, Declared, Place, Scope};
use crate::pattern::Pattern;
use crate::version2::Content;

/// An instruction.
#[derive(Debug)]
pub(crate) enum Version3 {
    /// `xsl:iterate`.
    Iterate { select: Expr, params: Box<[IterateParam]>, body: Body, completion: Option<Content> },
    /// `xsl:next-iteration`: the slots of the parameters, and their values.
    NextIteration { arguments: Box<[(usize, Argument)]> },
    /// `xsl:break`.
    Break { content: Content },
    /// `xsl:try`.
    Try { content: Content, rollback: bool, catches: Box<[Catch]> },
    /// `xsl:map`.
    Map { body: Body },
    /// `xsl:map-entry`.
    MapEntry { key: Expr, content: Content },
    /// `xsl:where-populated`.
    WherePopulated { body: Body },
    /// A body with `xsl:on-empty` or `xsl:on-non-empty`.
    Conditional { parts: Box<[Part]> },
    /// `xsl:source-document`.
    SourceDocument { href: Avt, accumulators: Applicable, body: Body },
    /// `xsl:assert`.
    Assert { test: Expr, content: Content, code: Option<Avt>, scope: Scope },
    /// `xsl:merge`.
    Merge { sources: Box<[MergeSource]>, action: Body },
    /// `xsl:evaluate`.
    Evaluate(Box<Evaluate>),
    /// `xsl:context-item`: requirements on the context item of a template.
    ContextItem { required: bool, absent: bool, declared: Option<Declared> },
}

/// `xsl:global-context-item`: requirements on the context item of global variables.
#[derive(Debug)]
pub(crate) struct GlobalContext {
    pub required: bool,
    pub absent: bool,
    pub declared: Option<Declared>,
    pub place: Place,
}

/// `xsl:evaluate`.
#[derive(Debug)]
pub(crate) struct Evaluate {
    pub xpath: Expr,
    pub declared: Option<Declared>,
    pub base: Option<Avt>,
    /// A map of variables.
    pub with_params: Option<Expr>,
    pub context_item: Option<Expr>,
    pub namespace_context: Option<Expr>,
    pub arguments: Box<[Argument]>,
    /// The namespace of element names without a prefix.
    pub default: Box<str>,
    pub scope: Scope,
}

/// A parameter of `xsl:iterate`.
#[derive(Debug)]
pub(crate) struct IterateParam {
    pub slot: usize,
    pub value: Binding,
    /// The declared type.
    pub declared: Option<Declared>,
}

/// `xsl:catch`.
#[derive(Debug)]
pub(crate) struct Catch {
    /// Which errors; none: all.
    pub errors: Box<[ErrorTest]>,
    /// The first slot of the variables about the error, in the order of [`CAUGHT`].
    pub slot: usize,
    pub content: Content,
}

/// The variables about a caught error, in the namespace [`ERRORS`].
pub(crate) const CAUGHT: [&str; 6] =
    ["code", "description", "value", "module", "line-number", "column-number"];

/// The namespace of error codes.
pub(crate) const ERRORS: &str = "http://www.w3.org/2005/xqt-errors";

/// A name test of an `xsl:catch`.
#[derive(Debug, PartialEq)]
pub(crate) struct ErrorTest {
    /// `None`: any namespace.
    pub namespace: Option<Box<str>>,
    /// `None`: any name.
    pub local: Option<Box<str>>,
}

/// A part of a body that depends on whether the others are empty.
#[derive(Debug)]
pub(crate) enum Part {
    Always(Body),
    OnEmpty(Content),
    OnNonEmpty(Content),
}

/// `xsl:accumulator`.
#[derive(Debug)]
pub(crate) struct Accumulator {
    pub initial: Expr,
    pub declared: Option<Declared>,
    pub rules: Box<[AccumulatorRule]>,
    /// The slot of `$value`.
    pub slot: usize,
    pub slots: usize,
    pub place: Place,
}

/// The accumulators that have values in a document (`use-accumulators`, XSLT 3.0 section 18.2.2).
#[derive(Debug, Clone)]
pub(crate) enum Applicable {
    All,
    Only(std::sync::Arc<[crate::names::Name]>),
}

impl Default for Applicable {
    fn default() -> Applicable {
        Applicable::Only([].into())
    }
}

impl Applicable {
    pub fn has(&self, name: crate::names::Name) -> bool {
        match self {
            Applicable::All => true,
            Applicable::Only(names) => names.contains(&name),
        }
    }

    /// Those of both.
    pub fn and(&self, other: &Applicable) -> Applicable {
        match (self, other) {
            (Applicable::Only(a), Applicable::Only(b)) => {
                Applicable::Only(a.iter().chain(&**b).copied().collect())
            }
            _ => Applicable::All,
        }
    }
}

/// `xsl:accumulator-rule`.
#[derive(Debug)]
pub(crate) struct AccumulatorRule {
    pub pattern: Pattern,
    /// `phase="end"`.
    pub at_end: bool,
    pub content: Content,
    pub place: Place,
}

/// `xsl:merge-source`.
#[derive(Debug)]
pub(crate) struct MergeSource {
    pub name: Option<Box<str>>,
    /// `for-each-item`.
    pub each: Option<Expr>,
    /// `for-each-source`: URIs of documents.
    pub sources: Option<Expr>,
    /// In these.
    pub accumulators: Applicable,
    pub select: Expr,
    pub sort_before: bool,
    pub keys: Box<[MergeKey]>,
}

/// `xsl:merge-key`.
#[derive(Debug)]
pub(crate) struct MergeKey {
    pub content: Content,
    pub descending: Option<Avt>,
    pub lang: Option<Avt>,
    pub case_order: Option<Avt>,
    pub data_type: Option<Avt>,
    pub collation: Option<Avt>,
}
