//! The functions beyond XPath's core library: those of XSLT (section 12) and of EXSLT.

pub(crate) mod dates;
pub(crate) mod regexp;
pub(crate) mod strings;

use xpath::{Results, Type};

/// Namespace of EXSLT common.
pub(crate) const EXSLT_COMMON: &str = "http://exslt.org/common";
const EXSLT_SETS: &str = "http://exslt.org/sets";
const EXSLT_MATH: &str = "http://exslt.org/math";
const EXSLT_STRINGS: &str = "http://exslt.org/strings";
const EXSLT_DATES: &str = "http://exslt.org/dates-and-times";
const EXSLT_DYNAMIC: &str = "http://exslt.org/dynamic";
const EXSLT_REGEXP: &str = "http://exslt.org/regular-expressions";
const SAXON: &str = "http://saxon.sf.net/";
const XALAN: &str = "http://xml.apache.org/xalan";
/// Namespace of EXSLT functions (`func:function`).
pub(crate) const EXSLT_FUNCTIONS: &str = "http://exslt.org/functions";

/// A function of the processor.
#[derive(Debug)]
pub(crate) struct Builtin {
    pub namespace: &'static str,
    pub local: &'static str,
    /// Fewest and most arguments.
    pub arity: (usize, usize),
    pub returns: Type,
    pub function: Function,
}

/// The function.
#[derive(Debug, Copy, Clone)]
#[allow(clippy::enum_variant_names)]
pub(crate) enum Function {
    Key,
    Document,
    FormatNumber,
    GenerateId,
    SystemProperty,
    AvailableSystemProperties,
    ElementAvailable,
    FunctionAvailable,
    UnparsedEntityUri,
    UnparsedEntityPublicId,
    NodeSet,
    ObjectType,
    Difference,
    Intersection,
    Distinct,
    HasSameNode,
    Leading,
    Trailing,
    Min,
    Max,
    Highest,
    Lowest,
    Power,
    Constant,
    RandomNumber,
    Atan2,
    /// A function of one number.
    Real(fn(f64) -> f64),
    Tokenize,
    Split,
    Replace,
    Padding,
    Align,
    Concat,
    EncodeUri,
    DecodeUri,
    DateSum,
    /// A function of [`dates`].
    Date,
    Evaluate,
    Map,
    Parse,
    Serialize,
    HasSameNodes,
    RegexpTest,
    RegexpMatch,
    RegexpReplace,
    // Of XSLT 2.0.
    Current,
    CurrentGroup,
    CurrentGroupingKey,
    CurrentOutputUri,
    CurrentMergeGroup,
    CurrentMergeKey,
    CopyOf,
    Snapshot,
    Accumulator,
    RegexGroup,
    UnparsedText,
    UnparsedTextAvailable,
    FormatMoment,
    TypeAvailable,
    StreamAvailable,
}

use Function as F;
use Type::{Any, Boolean, NodeSet, Number, String as Text};

macro_rules! table {
    ($($namespace:expr, $local:literal, $least:literal..$most:literal, $returns:expr, $function:expr;)*) => {
        &[$(Builtin { namespace: $namespace, local: $local, arity: ($least, $most), returns: $returns, function: $function }),*]
    };
}

static TABLE: &[Builtin] = table! {
    "", "key", 2..2, NodeSet, F::Key;
    "", "document", 1..2, NodeSet, F::Document;
    "", "format-number", 2..3, Text, F::FormatNumber;
    "", "generate-id", 0..1, Text, F::GenerateId;
    "", "system-property", 1..1, Any, F::SystemProperty;
    "", "element-available", 1..1, Boolean, F::ElementAvailable;
    "", "function-available", 1..1, Boolean, F::FunctionAvailable;
    "", "unparsed-entity-uri", 1..1, Text, F::UnparsedEntityUri;
    EXSLT_COMMON, "node-set", 1..1, NodeSet, F::NodeSet;
    "http://xml.apache.org/xalan", "nodeset", 1..1, NodeSet, F::NodeSet;
    "http://xml.apache.org/xslt", "nodeset", 1..1, NodeSet, F::NodeSet;
    "urn:schemas-microsoft-com:xslt", "node-set", 1..1, NodeSet, F::NodeSet;
    "http://icl.com/saxon", "node-set", 1..1, NodeSet, F::NodeSet;
    SAXON, "node-set", 1..1, NodeSet, F::NodeSet;
    SAXON, "parse", 1..1, NodeSet, F::Parse;
    SAXON, "serialize", 1..2, Text, F::Serialize;
    SAXON, "evaluate", 1..1, Any, F::Evaluate;
    XALAN, "evaluate", 1..1, Any, F::Evaluate;
    XALAN, "distinct", 1..1, NodeSet, F::Distinct;
    XALAN, "difference", 2..2, NodeSet, F::Difference;
    XALAN, "intersection", 2..2, NodeSet, F::Intersection;
    XALAN, "hasSameNodes", 2..2, Boolean, F::HasSameNodes;
    XALAN, "tokenize", 1..2, NodeSet, F::Tokenize;
    EXSLT_REGEXP, "test", 2..3, Boolean, F::RegexpTest;
    EXSLT_REGEXP, "match", 2..3, NodeSet, F::RegexpMatch;
    EXSLT_REGEXP, "replace", 4..4, Text, F::RegexpReplace;
    EXSLT_COMMON, "object-type", 1..1, Text, F::ObjectType;
    EXSLT_SETS, "difference", 2..2, NodeSet, F::Difference;
    EXSLT_SETS, "intersection", 2..2, NodeSet, F::Intersection;
    EXSLT_SETS, "distinct", 1..1, NodeSet, F::Distinct;
    EXSLT_SETS, "has-same-node", 2..2, Boolean, F::HasSameNode;
    EXSLT_SETS, "leading", 2..2, NodeSet, F::Leading;
    EXSLT_SETS, "trailing", 2..2, NodeSet, F::Trailing;
    EXSLT_MATH, "min", 1..1, Number, F::Min;
    EXSLT_MATH, "max", 1..1, Number, F::Max;
    EXSLT_MATH, "highest", 1..1, NodeSet, F::Highest;
    EXSLT_MATH, "lowest", 1..1, NodeSet, F::Lowest;
    EXSLT_MATH, "power", 2..2, Number, F::Power;
    EXSLT_MATH, "constant", 2..2, Number, F::Constant;
    EXSLT_MATH, "random", 0..0, Number, F::RandomNumber;
    EXSLT_MATH, "atan2", 2..2, Number, F::Atan2;
    EXSLT_MATH, "abs", 1..1, Number, F::Real(f64::abs);
    EXSLT_MATH, "sqrt", 1..1, Number, F::Real(f64::sqrt);
    EXSLT_MATH, "log", 1..1, Number, F::Real(f64::ln);
    EXSLT_MATH, "exp", 1..1, Number, F::Real(f64::exp);
    EXSLT_MATH, "sin", 1..1, Number, F::Real(f64::sin);
    EXSLT_MATH, "cos", 1..1, Number, F::Real(f64::cos);
    EXSLT_MATH, "tan", 1..1, Number, F::Real(f64::tan);
    EXSLT_MATH, "asin", 1..1, Number, F::Real(f64::asin);
    EXSLT_MATH, "acos", 1..1, Number, F::Real(f64::acos);
    EXSLT_MATH, "atan", 1..1, Number, F::Real(f64::atan);
    EXSLT_STRINGS, "tokenize", 1..2, NodeSet, F::Tokenize;
    EXSLT_STRINGS, "split", 1..2, NodeSet, F::Split;
    EXSLT_STRINGS, "replace", 3..3, NodeSet, F::Replace;
    EXSLT_STRINGS, "padding", 1..2, Text, F::Padding;
    EXSLT_STRINGS, "align", 2..3, Text, F::Align;
    EXSLT_STRINGS, "concat", 1..1, Text, F::Concat;
    EXSLT_STRINGS, "encode-uri", 2..3, Text, F::EncodeUri;
    EXSLT_STRINGS, "decode-uri", 1..2, Text, F::DecodeUri;
    EXSLT_DATES, "date-time", 0..0, Text, F::Date;
    EXSLT_DATES, "date", 0..1, Text, F::Date;
    EXSLT_DATES, "time", 0..1, Text, F::Date;
    EXSLT_DATES, "year", 0..1, Number, F::Date;
    EXSLT_DATES, "leap-year", 0..1, Any, F::Date;
    EXSLT_DATES, "month-in-year", 0..1, Number, F::Date;
    EXSLT_DATES, "month-name", 0..1, Text, F::Date;
    EXSLT_DATES, "month-abbreviation", 0..1, Text, F::Date;
    EXSLT_DATES, "week-in-year", 0..1, Number, F::Date;
    EXSLT_DATES, "week-in-month", 0..1, Number, F::Date;
    EXSLT_DATES, "day-in-year", 0..1, Number, F::Date;
    EXSLT_DATES, "day-in-month", 0..1, Number, F::Date;
    EXSLT_DATES, "day-of-week-in-month", 0..1, Number, F::Date;
    EXSLT_DATES, "day-in-week", 0..1, Number, F::Date;
    EXSLT_DATES, "day-name", 0..1, Text, F::Date;
    EXSLT_DATES, "day-abbreviation", 0..1, Text, F::Date;
    EXSLT_DATES, "hour-in-day", 0..1, Number, F::Date;
    EXSLT_DATES, "minute-in-hour", 0..1, Number, F::Date;
    EXSLT_DATES, "second-in-minute", 0..1, Number, F::Date;
    EXSLT_DATES, "seconds", 0..1, Number, F::Date;
    EXSLT_DATES, "duration", 0..1, Text, F::Date;
    EXSLT_DATES, "add", 2..2, Text, F::Date;
    EXSLT_DATES, "add-duration", 2..2, Text, F::Date;
    EXSLT_DATES, "difference", 2..2, Text, F::Date;
    EXSLT_DATES, "format-date", 2..2, Text, F::Date;
    EXSLT_DATES, "sum", 1..1, Text, F::DateSum;
    EXSLT_DYNAMIC, "evaluate", 1..1, Any, F::Evaluate;
    EXSLT_DYNAMIC, "map", 2..2, NodeSet, F::Map;
};

/// What XSLT 2.0 has, before the functions of 1.0 with the same name.
static LATER: &[Builtin] = table! {
    "", "current", 0..0, Any, F::Current;
    "", "current-group", 0..0, Any, F::CurrentGroup;
    "", "current-grouping-key", 0..0, Any, F::CurrentGroupingKey;
    "", "current-output-uri", 0..0, Any, F::CurrentOutputUri;
    "", "current-merge-group", 0..1, Any, F::CurrentMergeGroup;
    "", "current-merge-key", 0..0, Any, F::CurrentMergeKey;
    "", "available-system-properties", 0..0, Any, F::AvailableSystemProperties;
    "", "copy-of", 0..1, Any, F::CopyOf;
    "", "snapshot", 0..1, Any, F::Snapshot;
    "", "accumulator-before", 1..1, Any, F::Accumulator;
    "", "accumulator-after", 1..1, Any, F::Accumulator;
    "", "regex-group", 1..1, Text, F::RegexGroup;
    "", "unparsed-text", 1..2, Any, F::UnparsedText;
    "", "unparsed-text-available", 1..2, Boolean, F::UnparsedTextAvailable;
    "", "format-date", 2..5, Any, F::FormatMoment;
    "", "format-dateTime", 2..5, Any, F::FormatMoment;
    "", "format-time", 2..5, Any, F::FormatMoment;
    "", "type-available", 1..1, Boolean, F::TypeAvailable;
    "", "stream-available", 1..1, Boolean, F::StreamAvailable;
    "", "unparsed-entity-uri", 1..2, Any, F::UnparsedEntityUri;
    "", "unparsed-entity-public-id", 1..2, Any, F::UnparsedEntityPublicId;
    "", "key", 2..3, NodeSet, F::Key;
    "", "function-available", 1..2, Boolean, F::FunctionAvailable;
};

impl Function {
    /// How long its results stay the same within an evaluation.
    pub(crate) fn results(self) -> Results {
        match self {
            // (Of some the result is new nodes, which are different ones each time.)
            F::RandomNumber
            | F::Date
            | F::Evaluate
            | F::Map
            | F::NodeSet
            | F::Parse
            | F::Tokenize
            | F::Split => Results::Change,
            F::RegexpMatch | F::CopyOf | F::Snapshot => Results::Change,
            F::Current
            | F::CurrentGroup
            | F::CurrentGroupingKey
            | F::CurrentMergeGroup
            | F::CurrentMergeKey => Results::Stay,
            F::GenerateId => Results::FollowArguments,
            _ => Results::FollowContext,
        }
    }
}

/// The function of that name; `version2`: in a processor of XSLT 2.0.
pub(crate) fn find(namespace: &str, local: &str, version2: bool) -> Option<(u32, &'static Builtin)> {
    let found = |table: &'static [Builtin], from: usize| {
        let at = table.iter().position(|f| f.local == local && f.namespace == namespace)?;
        Some(((from + at) as u32, &table[at]))
    };
    let added = if version2 { found(LATER, TABLE.len()) } else { None };
    added.or_else(|| found(TABLE, 0))
}

/// The Java class of a function, by the namespaces of Xalan, Saxon, Oracle and XT.
pub(crate) fn java_class<'n>(namespace: &'n str, local: &'n str) -> Option<&'n str> {
    const IN_NAMESPACE: [&str; 7] = [
        "java:",
        "xalan://",
        "http://xml.apache.org/xalan/java/",
        "http://xml.apache.org/xslt/java/",
        "http://www.oracle.com/XSL/Transform/java/",
        "http://www.jclark.com/xt/java/",
        "http://saxon.sf.net/java-type/",
    ];
    if let Some(class) = IN_NAMESPACE.iter().find_map(|begin| namespace.strip_prefix(begin)) {
        return Some(class);
    }
    // `java:java.util.Date.new()`.
    let in_name = matches!(
        namespace,
        "http://xml.apache.org/xalan/java"
            | "http://xml.apache.org/xslt/java"
            | "http://saxon.sf.net/java-type"
    );
    in_name.then(|| local.rsplit_once('.').map_or(local, |(class, _)| class))
}

/// The function of that slot.
pub(crate) fn get(slot: u32) -> Option<&'static Builtin> {
    let slot = slot as usize;
    TABLE.get(slot).or_else(|| LATER.get(slot - TABLE.len()))
}

/// The functions of XPath's core library, for `function-available()`.
pub(crate) const CORE: [&str; 27] = [
    "last",
    "position",
    "count",
    "id",
    "local-name",
    "namespace-uri",
    "name",
    "string",
    "concat",
    "starts-with",
    "contains",
    "substring-before",
    "substring-after",
    "substring",
    "string-length",
    "normalize-space",
    "translate",
    "boolean",
    "not",
    "true",
    "false",
    "lang",
    "number",
    "sum",
    "floor",
    "ceiling",
    "round",
];
