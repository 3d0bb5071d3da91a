//! Expressions that are evaluated without the engine of XPath, because a general evaluation costs many times as much as they do:
//! arithmetic of local variables and numbers ([`crate::arithmetic`]), a path of names compared with a constant (`@type = 'x'`),
//! the name of a node, white space normalised, parts of texts, and these concatenated, texts found in others, and conditions of these.
//!
//! Preconditions: variables are local, paths consist of names, functions are those of the core library. What the operands are is known
//! at run time: where a value is not a number or a text, or a string value is not in one piece, the expression is evaluated in the general
//! way. From XPath 2.0 on there are integers, and more than one node is an error for a function or an operation: there, paths have one
//! node at most, and numbers are literals or doubles made of untyped values.

use crate::arithmetic::{Arithmetic, Scope, exact, is_comparison};
use crate::names::NameStep;
use xml::NodeKind;
use xpath::ast::{self, Axis, BinaryOp, ExprKind, NodeTest, Start};

/// See the module.
#[derive(Debug)]
pub(crate) enum Simple {
    Number(Arithmetic),
    /// An `xs:double` of XPath 2.0: see [`Arithmetic::of_untyped`].
    Double(Arithmetic),
    /// An `xs:integer` of XPath 2.0: see [`Arithmetic::of_whole`].
    Whole(Arithmetic),
    Test(BinaryOp, Arithmetic, Arithmetic),
    /// The same of integers of XPath 2.0.
    TestWhole(BinaryOp, Arithmetic, Arithmetic),
    /// Any node of a path compared with a constant.
    Compared(BinaryOp, Box<[NameStep]>, Constant),
    /// The same with a number of XPath 2.0: what is no number is an error.
    ComparedStrictly(BinaryOp, Box<[NameStep]>, f64),
    /// Whether a path has nodes.
    Exists(Box<[NameStep]>),
    /// `and`, `or` and `not()` of these, all of which are booleans.
    All(Box<[Simple]>),
    Any(Box<[Simple]>),
    Not(Box<Simple>),
    /// Whether the second text is found there in the first one.
    Found(Place, Box<(Text, Text)>),
    Text(Text),
}

/// See [`Simple::Found`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    Start,
    Anywhere,
}

/// See [`Simple::Compared`].
#[derive(Debug)]
pub(crate) enum Constant {
    Text(Box<str>),
    Number(f64),
}

/// A text.
#[derive(Debug)]
pub(crate) enum Text {
    Constant(Box<str>),
    /// The local variable in this slot.
    Local(u32),
    /// Of the first node of a path.
    Of(Property, Box<[NameStep]>),
    /// The value of the only node of a path (XPath 2.0).
    OfOnly(Box<[NameStep]>),
    Normalized(Box<Text>),
    Part(Box<Text>, Arithmetic, Option<Arithmetic>),
    /// The same by integers of XPath 2.0.
    PartAt(Box<Text>, Arithmetic, Option<Arithmetic>),
    /// The part of the first text before or after the second one.
    Before(Box<(Text, Text)>),
    After(Box<(Text, Text)>),
    Joined(Box<[Text]>),
}

/// A text of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Property {
    Value,
    Name,
    LocalName,
}

impl Simple {
    /// `version1`: of XPath 1.0. `None`: it is a more general expression, or one that has a fast path of its own.
    pub fn of(tree: &ast::Expr, version1: bool, scope: &mut impl Scope) -> Option<Simple> {
        match &tree.kind {
            ExprKind::Binary(op, a, b) if is_comparison(*op) => {
                if let Some(compared) = Simple::compared(*op, a, b, version1, scope) {
                    return Some(compared);
                }
                if !version1 {
                    return Simple::whole_test(*op, a, b, scope);
                }
                Some(Simple::Test(*op, Arithmetic::compared(a, scope)?, Arithmetic::compared(b, scope)?))
            }
            ExprKind::Number(_) | ExprKind::Binary(..) | ExprKind::Negate(_) if version1 => {
                Some(Simple::Number(Arithmetic::of(tree, scope)?))
            }
            ExprKind::Binary(..) | ExprKind::Negate(_) => match Arithmetic::of_untyped(tree, scope) {
                Some(number) => Some(Simple::Double(number)),
                None => Some(Simple::Whole(Arithmetic::of_whole(tree, scope)?)),
            },
            ExprKind::ValueComparison(op, a, b) => Simple::whole_test(*op, a, b, scope),
            ExprKind::And(parts) => Some(Simple::All(Simple::conditions(parts, version1, scope)?)),
            ExprKind::Or(parts) => Some(Simple::Any(Simple::conditions(parts, version1, scope)?)),
            ExprKind::Call(name, arguments) if name.prefix.is_empty() => {
                let place = match (name.local.as_str(), arguments.as_slice()) {
                    ("not", [condition]) => {
                        return Some(Simple::Not(Box::new(Simple::condition(condition, version1, scope)?)));
                    }
                    ("contains", [_, _]) => Place::Anywhere,
                    ("starts-with", [_, _]) => Place::Start,
                    _ => return Text::of(tree, version1, scope).map(Simple::Text),
                };
                Some(Simple::Found(place, Text::both(arguments, version1, scope)?))
            }
            _ => None,
        }
    }

    fn whole_test(op: BinaryOp, a: &ast::Expr, b: &ast::Expr, scope: &mut impl Scope) -> Option<Simple> {
        Some(Simple::TestWhole(op, Arithmetic::of_whole(a, scope)?, Arithmetic::of_whole(b, scope)?))
    }

    fn conditions(parts: &[ast::Expr], version1: bool, scope: &mut impl Scope) -> Option<Box<[Simple]>> {
        parts.iter().map(|part| Simple::condition(part, version1, scope)).collect()
    }

    /// An expression of which only the effective boolean value counts.
    fn condition(tree: &ast::Expr, version1: bool, scope: &mut impl Scope) -> Option<Simple> {
        if let Some(steps) = scope.path(tree) {
            return Some(Simple::Exists(steps));
        }
        Simple::of(tree, version1, scope).filter(Simple::is_boolean)
    }

    fn is_boolean(&self) -> bool {
        !matches!(self, Simple::Number(_) | Simple::Double(_) | Simple::Whole(_) | Simple::Text(_))
    }

    /// As a condition: the kind that the context node must have (`self::text()`).
    pub fn kind_of(tree: &ast::Expr) -> Option<NodeKind> {
        let ExprKind::Path(Start::Context, steps) = &tree.kind else { return None };
        match steps.as_slice() {
            [step] if step.axis == Axis::SelfAxis && step.predicates.is_empty() => match &step.test {
                NodeTest::Text => Some(NodeKind::Text),
                NodeTest::Comment => Some(NodeKind::Comment),
                NodeTest::AnyName => Some(NodeKind::Element),
                _ => None,
            },
            _ => None,
        }
    }

    fn compared(
        op: BinaryOp,
        a: &ast::Expr,
        b: &ast::Expr,
        version1: bool,
        scope: &mut impl Scope,
    ) -> Option<Simple> {
        let constant = |tree: &ast::Expr| match &tree.kind {
            ExprKind::Literal(text) => Some(Constant::Text(text.as_str().into())),
            ExprKind::Number(number) if version1 => Some(Constant::Number(*number)),
            _ => None,
        };
        if !version1 && let (Some(number), Some(steps)) = (exact(b), scope.path(a)) {
            return Some(Simple::ComparedStrictly(op, steps, number));
        }
        if !version1 && let (Some(number), Some(steps)) = (exact(a), scope.path(b)) {
            return Some(Simple::ComparedStrictly(op.mirrored(), steps, number));
        }
        if !version1 && !matches!(op, BinaryOp::Equal | BinaryOp::NotEqual) {
            return None;
        }
        if let (Some(steps), Some(constant)) = (scope.path(a), constant(b)) {
            return Some(Simple::Compared(op, steps, constant));
        }
        Some(Simple::Compared(op.mirrored(), scope.path(b)?, constant(a)?))
    }
}

impl Text {
    /// The text of a call of a function.
    fn of(tree: &ast::Expr, version1: bool, scope: &mut impl Scope) -> Option<Text> {
        let ExprKind::Call(name, arguments) = &tree.kind else { return None };
        if !name.prefix.is_empty() {
            return None;
        }
        let mut nodes = |arguments: &[ast::Expr], property| {
            let steps = match arguments {
                [] => Box::default(),
                [path] => scope.path(path)?,
                _ => return None,
            };
            match property {
                Property::Value if !version1 => Some(Text::OfOnly(steps)),
                _ => (version1 || steps.is_empty()).then_some(Text::Of(property, steps)),
            }
        };
        Some(match (name.local.as_str(), arguments.as_slice()) {
            ("name", arguments) => nodes(arguments, Property::Name)?,
            ("local-name", arguments) => nodes(arguments, Property::LocalName)?,
            ("normalize-space", []) => Text::Normalized(Box::new(nodes(&[], Property::Value)?)),
            ("normalize-space", [text]) => Text::Normalized(Box::new(Text::argument(text, version1, scope)?)),
            ("string", []) => nodes(&[], Property::Value)?,
            ("string", [text]) => Text::argument(text, version1, scope)?,
            ("substring-before", [_, _]) => Text::Before(Text::both(arguments, version1, scope)?),
            ("substring-after", [_, _]) => Text::After(Text::both(arguments, version1, scope)?),
            ("concat", [_, _, ..]) => {
                let parts = arguments.iter().map(|part| Text::argument(part, version1, scope));
                Text::Joined(parts.collect::<Option<_>>()?)
            }
            ("substring", [text, from]) if version1 => {
                Text::Part(Box::new(Text::argument(text, true, scope)?), Arithmetic::of(from, scope)?, None)
            }
            ("substring", [text, from, length]) if version1 => Text::Part(
                Box::new(Text::argument(text, true, scope)?),
                Arithmetic::of(from, scope)?,
                Some(Arithmetic::of(length, scope)?),
            ),
            ("substring", [text, numbers @ ..]) if !version1 && (1..=2).contains(&numbers.len()) => {
                let text = Box::new(Text::argument(text, false, scope)?);
                let mut numbers = numbers.iter().map(|number| Arithmetic::of_whole(number, scope));
                let (from, length) = (numbers.next()??, numbers.next());
                let length = match length {
                    Some(length) => Some(length?),
                    None => None,
                };
                Text::PartAt(text, from, length)
            }
            _ => return None,
        })
    }

    /// The texts of two arguments.
    fn both(arguments: &[ast::Expr], version1: bool, scope: &mut impl Scope) -> Option<Box<(Text, Text)>> {
        let [a, b] = arguments else { return None };
        Some(Box::new((Text::argument(a, version1, scope)?, Text::argument(b, version1, scope)?)))
    }

    /// The text of an argument.
    fn argument(tree: &ast::Expr, version1: bool, scope: &mut impl Scope) -> Option<Text> {
        match &tree.kind {
            ExprKind::Literal(text) => Some(Text::Constant(text.as_str().into())),
            ExprKind::Variable(name) => Some(Text::Local(scope.local(name)?)),
            ExprKind::Call(..) => Text::of(tree, version1, scope),
            _ => {
                let steps = scope.path(tree)?;
                Some(if version1 { Text::Of(Property::Value, steps) } else { Text::OfOnly(steps) })
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::{CompileOptions, RunOptions, Stylesheet};
    use std::cell::Cell;

    thread_local! {
        /// All expressions are evaluated in the general way.
        pub static OFF: Cell<bool> = const { Cell::new(false) };
    }

    const INPUT: &str = "<r k='1'><a k='2' x='u'> t <b>1</b><b k='3'>2</b><c/></a><!--c--><?p d?><a><b><a><b>2</b></a></b>v<d/>1</a><c k='2'>1</c>\
                         <q:e xmlns:q='urn:q' q:k='7' k='x'>  sp  ace </q:e><n>-4.5</n><n>10</n><n>x</n></r>";

    fn transformed(sheet: &str) -> Result<String, String> {
        let sheet = Stylesheet::compile(sheet.as_bytes(), &CompileOptions::default());
        let sheet = sheet.map_err(|errors| format!("{errors:?}"))?;
        let doc =
            xml::Document::parse_str(INPUT, &xml::ParseOptions::default()).map_err(|e| e.to_string())?;
        let mut out = Vec::new();
        sheet
            .transform_to(&doc, xml::Document::ROOT, &[], &RunOptions::default(), &mut out)
            .map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    /// Expressions of all kinds at every node, as text, condition, list, sort key and in a pattern: with the fast ways and without.
    #[test]
    fn as_the_general_way() {
        let expressions = [
            "name()",
            "name(.)",
            "name(a)",
            "name(@k)",
            "local-name()",
            "local-name(q:e)",
            "local-name(@*)",
            "normalize-space()",
            "normalize-space(.)",
            "normalize-space(a/b)",
            "normalize-space(@k)",
            "normalize-space(concat(' ', b, ' '))",
            "concat('<', name(.), '>', b, $text, $number)",
            "concat($tree, 'x')",
            "concat($nodes, 'x')",
            "concat('a', 'b')",
            "string()",
            "string(.)",
            "string(b)",
            "string(@k)",
            "string($text)",
            "string($number)",
            "string($tree)",
            "string($nodes)",
            "substring-before(., ' ')",
            "substring-before(b, '')",
            "substring-after(., 'v')",
            "substring-after(@x, 'nothing')",
            "substring-after(b, '')",
            "substring-after('a-b-c', '-')",
            "substring-before(concat(@k, '-', @k), '-')",
            "contains(., '1')",
            "contains(@k, '')",
            "contains(b, $text)",
            "contains('axb', $text)",
            "contains(name(), $number)",
            "starts-with(., ' ')",
            "starts-with(@k, @k)",
            "starts-with(nothing, b)",
            "starts-with(n, '-')",
            "b and @k",
            "b or nothing",
            "not(b)",
            "not(b = '2' or @k)",
            "@k = '2' and contains(@x, 'u') or not(@k > 2)",
            "b > 1 and b < 3",
            "n > 1 and n < 3",
            "not($text = 'x') or not($nodes)",
            "b and 1",
            "not(not(starts-with(@k, '2')) and c)",
            "substring('abcde', 0, $number)",
            "substring(., 2)",
            "substring($text, $number - 1, 1 + 1)",
            "substring(b, k)",
            "@k = '2'",
            "'2' = @k",
            "@k != '2'",
            "b = '2'",
            "b != '1'",
            "b = 2",
            "b != 2",
            "2 > b",
            "k = 2 or @k = 7",
            "@k * 2",
            "@k * @k div 3",
            "1 + 2 * @k",
            "-@k",
            "-b * 1000000",
            "b mod 2",
            "1 div b",
            "concat(@k, '-', b)",
            "substring(@k, 1, 1)",
            "substring(a, 2)",
            "b >= 1.5",
            "n < '0'",
            "a/b = '1'",
            ". = '1'",
            "c = ''",
            "nothing = 'x'",
            "nothing != 'x'",
            "n > 0",
            "-1 < n",
            "q:e/@q:k = '7'",
            "@q:k = 7",
            "a = ' t 12'",
            "self::*",
            "self::text()",
            "self::comment()",
            "self::a",
            "self::node()",
            "not(self::*)",
            "@k",
            "b",
            "a/b/@k",
            ".",
            "*",
            "node()",
            "text()",
            "comment()",
            "processing-instruction()",
            "*|text()",
            "text()|comment()|*",
            "*|a",
            "@*|node()",
            "*|@*",
            "$number + 1",
            "$number * n - 2",
            "$number - 1",
            "-$whole * $whole + 7",
            "$whole mod 2 = 1",
            "$whole mod 0",
            "$whole > 2 and 5 != $whole",
            "$whole * 9000000000000000000",
            "$whole + $number",
            "substring(@k, $whole - 4)",
            "substring(b, 1, $whole)",
            "substring($text, $whole * $whole * $whole, -$whole)",
            "-$number",
            "$text = 'x'",
            "$number > 2",
            "b * 2",
            "$tree",
            "$text",
            "$nodes",
        ];
        let (mut ran, mut failed) = (0, 0);
        for version in ["1.0", "2.0", "3.0"] {
            for expression in expressions {
                let shown = expression.replace('<', "&lt;").replace('>', "&gt;");
                let list = match expression {
                    "*"
                    | "node()"
                    | "text()"
                    | "comment()"
                    | "processing-instruction()"
                    | "*|text()"
                    | "text()|comment()|*"
                    | "*|a"
                    | "@*|node()"
                    | "*|@*"
                    | "b"
                    | "a/b/@k"
                    | "@k"
                    | "."
                    | "self::*"
                    | "self::text()"
                    | "self::a" => {
                        format!(
                            "<xsl:for-each select='{shown}'>(<xsl:value-of select='position()'/>/<xsl:value-of select='last()'/> <xsl:value-of select='name()'/>)</xsl:for-each>"
                        )
                    }
                    _ => String::new(),
                };
                let quoted = shown.replace('\'', "&apos;");
                let in_pattern = match shown.contains('$') {
                    true => String::new(),
                    false => format!(
                        "<xsl:template match='*[{quoted}]' mode='m'>M</xsl:template><xsl:template match='node()' mode='m'>-</xsl:template>"
                    ),
                };
                let sheet = format!(
                    "<xsl:stylesheet version='{version}' xmlns:xsl='http://www.w3.org/1999/XSL/Transform' xmlns:q='urn:q' exclude-result-prefixes='q'>
                    <xsl:template match='/'><o><xsl:for-each select='//node()|//@*'>
                    <xsl:variable name='text' select='\"x\"'/><xsl:variable name='number' select='3'/><xsl:variable name='whole' select='count(//n) + 2'/>
                    <xsl:variable name='tree'><xsl:value-of select='name()'/></xsl:variable><xsl:variable name='nodes' select='b'/>
                    [<xsl:value-of select='{quoted}'/>|<xsl:if test='{quoted}'>true</xsl:if>|<v a='{{{quoted}}}'/>{list}
                    <xsl:for-each select='*'><xsl:sort select='{quoted}' order='descending'/><xsl:value-of select='name()'/>,</xsl:for-each>
                    <xsl:apply-templates select='.' mode='m'/>]</xsl:for-each></o></xsl:template>{in_pattern}</xsl:stylesheet>"
                );
                let fast = transformed(&sheet);
                OFF.set(true);
                let general = transformed(&sheet);
                OFF.set(false);
                failed += usize::from(general.is_err());
                ran += 1;
                match (&fast, &general) {
                    (Err(_), Err(_)) => {}
                    _ => assert_eq!(fast, general, "{version} {expression}"),
                }
            }
        }
        assert!(ran > 200 && failed < ran / 2, "{ran} {failed}");
    }
}
