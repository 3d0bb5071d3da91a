//! How far an expression reaches from its context node: whether it reads the node's content, and whether it leaves the
//! node for more than names and attributes of ancestors. Conservative: an unknown construct reaches everything.

use xpath::Version;
use xpath::ast::{Axis, Expr, ExprKind, NodeTest, Start, Step};

/// Where a node lies, relative to the context node of the instruction (the focus).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// The focus itself; its content may be incomplete.
    Focus,
    /// An ancestor.
    Above,
    /// Inside of the focus, or of another complete node.
    Below,
    /// An attribute or namespace node of the focus or an ancestor.
    Attribute,
    /// The value of a variable.
    Variable,
    /// In another document, or no node.
    Elsewhere,
}

/// The use of the nodes of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Their string value.
    Value,
    /// Their existence, number and names, or a further step.
    Exists,
}

/// The result.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// It reads the content of the focus.
    pub content: bool,
    /// It leaves the focus: the reason.
    pub leaves: Option<&'static str>,
    /// It asks for the size of the focus: `last()`.
    pub size: bool,
}

/// The reach of `tree`, evaluated at `base`, and where its nodes lie. `functions`: the stylesheet has functions of its
/// own.
pub(crate) fn reach(tree: &Expr, version: Version, using: Use, base: At, functions: bool) -> (Reach, At) {
    let version2 = version != Version::V1;
    let mut walk = Walk { found: Reach::default(), focus: base, functions, version2 };
    let at = walk.expr(tree, using, base, false);
    (walk.found, at)
}

struct Walk {
    found: Reach,
    /// Where `current()` is.
    focus: At,
    functions: bool,
    /// XPath 2.0: functions and operations may return nodes of their arguments.
    version2: bool,
}

impl Walk {
    /// `inner`: in a predicate, which has a position and size of its own.
    fn expr(&mut self, expr: &Expr, using: Use, base: At, inner: bool) -> At {
        match &expr.kind {
            ExprKind::Number(_) | ExprKind::Literal(_) => At::Elsewhere,
            ExprKind::Variable(_) => At::Variable,
            ExprKind::Or(list) | ExprKind::And(list) => {
                list.iter().for_each(|e| {
                    self.expr(e, Use::Exists, base, inner);
                });
                At::Elsewhere
            }
            ExprKind::Binary(_, a, b) => {
                self.expr(a, Use::Value, base, inner);
                self.expr(b, Use::Value, base, inner);
                At::Elsewhere
            }
            ExprKind::Negate(a) => {
                self.expr(a, Use::Value, base, inner);
                At::Elsewhere
            }
            ExprKind::Union(list) => {
                let all: Vec<At> = list.iter().map(|e| self.expr(e, using, base, inner)).collect();
                farthest(&all)
            }
            ExprKind::Filter(e, predicates) => {
                let at = self.expr(e, using, base, inner);
                predicates.iter().for_each(|p| {
                    self.expr(p, Use::Exists, at, true);
                });
                at
            }
            ExprKind::Call(name, arguments) => {
                self.call(&name.prefix, &name.local, arguments, using, base, inner)
            }
            ExprKind::Path(start, steps) => {
                let mut at = match start {
                    Start::Root => {
                        self.leave("it begins at the root of the document");
                        At::Elsewhere
                    }
                    Start::Context => base,
                    Start::Expr(e) => self.expr(e, Use::Exists, base, inner),
                };
                for step in steps {
                    at = self.step(step, at);
                    for predicate in &step.predicates {
                        self.expr(predicate, Use::Exists, at, true);
                    }
                }
                self.end(at, using);
                at
            }
            ExprKind::Integer(_) | ExprKind::Large(_) | ExprKind::Decimal(_) => At::Elsewhere,
            ExprKind::Let(..)
            | ExprKind::SimpleMap(..)
            | ExprKind::NamedFunction(..)
            | ExprKind::Inline(..)
            | ExprKind::Apply(..)
            | ExprKind::Placeholder
            | ExprKind::Map(_)
            | ExprKind::Array(_)
            | ExprKind::CurlyArray(_)
            | ExprKind::Lookup(..) => {
                self.found.content = true;
                self.leave("what is new in XPath 3 is not followed");
                At::Elsewhere
            }
            ExprKind::ContextItem => {
                self.end(base, using);
                base
            }
            ExprKind::Sequence(list) => {
                let all: Vec<At> = list.iter().map(|e| self.expr(e, using, base, inner)).collect();
                farthest(&all)
            }
            ExprKind::If(parts) => {
                let [condition, then, other] = &**parts;
                self.expr(condition, Use::Exists, base, inner);
                let all = [self.expr(then, using, base, inner), self.expr(other, using, base, inner)];
                farthest(&all)
            }
            ExprKind::For(bindings, result) => {
                // A variable is not followed: its definition was checked.
                bindings.iter().for_each(|(_, e)| {
                    self.expr(e, Use::Value, base, inner);
                });
                self.expr(result, using, base, inner)
            }
            ExprKind::Quantified(_, bindings, condition) => {
                bindings.iter().for_each(|(_, e)| {
                    self.expr(e, Use::Value, base, inner);
                });
                self.expr(condition, Use::Exists, base, inner);
                At::Elsewhere
            }
            ExprKind::ValueComparison(_, a, b) => {
                self.expr(a, Use::Value, base, inner);
                self.expr(b, Use::Value, base, inner);
                At::Elsewhere
            }
            ExprKind::Operation(_, a, b) => {
                let all = [self.expr(a, Use::Value, base, inner), self.expr(b, Use::Value, base, inner)];
                farthest(&all)
            }
            ExprKind::Slash(a, b) => {
                let at = self.expr(a, Use::Exists, base, inner);
                self.expr(b, using, at, true)
            }
            ExprKind::Treat(e, _) => self.expr(e, Use::Value, base, inner),
            ExprKind::Plus(e)
            | ExprKind::InstanceOf(e, _)
            | ExprKind::Cast(e, ..)
            | ExprKind::Castable(e, ..) => {
                self.expr(e, Use::Value, base, inner);
                At::Elsewhere
            }
        }
    }

    fn step(&mut self, step: &Step, at: At) -> At {
        match (step.axis, at) {
            (_, At::Elsewhere) => at,
            (Axis::SelfAxis, _) => at,
            (Axis::Attribute | Axis::Namespace, At::Focus | At::Above) => At::Attribute,
            (Axis::Attribute | Axis::Namespace, _) => at,
            (Axis::Child | Axis::Descendant | Axis::DescendantOrSelf, At::Focus) => {
                self.found.content = true;
                At::Below
            }
            (Axis::Child | Axis::Descendant | Axis::DescendantOrSelf, At::Above) => {
                self.leave("it reads the content of an ancestor");
                At::Below
            }
            (Axis::Child | Axis::Descendant | Axis::DescendantOrSelf, _) => at,
            (Axis::Parent | Axis::Ancestor | Axis::AncestorOrSelf, At::Variable) => {
                self.leave("it goes up from a variable");
                At::Above
            }
            (Axis::Parent | Axis::Ancestor | Axis::AncestorOrSelf, _) => At::Above,
            _ => {
                self.leave("it looks at siblings, or at what precedes or follows");
                at
            }
        }
    }

    fn end(&mut self, at: At, using: Use) {
        match (at, using) {
            (At::Focus, Use::Value) => self.found.content = true,
            (At::Above, Use::Value) => self.leave("it reads the content of an ancestor"),
            _ => {}
        }
    }

    fn leave(&mut self, why: &'static str) {
        self.found.leaves.get_or_insert(why);
    }

    fn call(
        &mut self,
        prefix: &str,
        name: &str,
        arguments: &[Expr],
        using: Use,
        base: At,
        inner: bool,
    ) -> At {
        let prefixed = !prefix.is_empty();
        if prefixed && self.functions && name != "node-set" {
            self.leave("it may call a function of the stylesheet");
            return At::Elsewhere;
        }
        // Functions of the language may have a prefix (`fn:last()`), which is not resolved here.
        match name {
            "last" => self.found.size |= !inner,
            "current" => {
                self.end(self.focus, using);
                return self.focus;
            }
            "key" | "id" => self.leave("it looks nodes up in the whole document"),
            "current-group" => return At::Below,
            "root" | "idref" | "element-with-id" | "collection" => {
                self.leave("it looks nodes up in the whole document");
            }
            "generate-id" | "unparsed-entity-uri" | "unparsed-entity-public-id" => {
                self.leave("it needs the whole document");
            }
            "path" => self.leave("it looks at siblings, or at what precedes or follows"),
            // The context node, with its content.
            "string" | "number" | "string-length" | "normalize-space" | "data" | "has-children"
            | "copy-of" | "snapshot"
                if arguments.is_empty() =>
            {
                self.end(base, Use::Value);
            }
            "count" | "name" | "local-name" | "namespace-uri" | "boolean" | "not" => {
                arguments.iter().for_each(|a| {
                    self.expr(a, Use::Exists, base, inner);
                });
            }
            "evaluate" | "map" | "closure" if prefixed => self.leave("it evaluates a text"),
            _ => {
                let all: Vec<At> = arguments.iter().map(|a| self.expr(a, Use::Value, base, inner)).collect();
                if self.version2 && name != "document" && name != "doc"
                    || name != "node-set" && name != "document" && prefixed
                {
                    return farthest(&all);
                }
            }
        }
        At::Elsewhere
    }
}

/// The most restrictive of several places.
fn farthest(all: &[At]) -> At {
    let order = [At::Above, At::Focus, At::Variable, At::Below, At::Attribute];
    order.into_iter().find(|at| all.contains(at)).unwrap_or(At::Elsewhere)
}

/// A selection that can be made window by window: children, attributes, or a path of children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Downward {
    /// Whether it depends on more than kinds and names.
    pub predicates: bool,
    /// The number of steps.
    pub steps: usize,
}

/// Whether `source` selects downwards and step by step: in document order, never a node inside of another, and without
/// counting.
pub(crate) fn downward(tree: &Expr) -> Option<Downward> {
    let alternatives: Vec<&Expr> = match &tree.kind {
        ExprKind::Union(list) => list.iter().collect(),
        _ => vec![tree],
    };
    let mut predicates = false;
    let mut children = 0;
    let mut longest = 1;
    for alternative in &alternatives {
        let ExprKind::Path(Start::Context, steps) = &alternative.kind else { return None };
        let axes = steps.iter().all(|step| step.axis == Axis::Child);
        let attribute = matches!(steps.as_slice(), [step] if step.axis == Axis::Attribute);
        if !(attribute || axes) || steps.is_empty() || (alternatives.len() > 1 && steps.len() > 1) {
            return None;
        }
        // A text or comment can only be selected by the last step.
        if steps.iter().rev().skip(1).any(|step| matches!(step.test, NodeTest::Text | NodeTest::Comment)) {
            return None;
        }
        children += usize::from(axes);
        longest = longest.max(steps.len());
        for predicate in steps.iter().flat_map(|step| &step.predicates) {
            predicates = true;
            if crate::pattern::is_positional(predicate) {
                return None;
            }
        }
    }
    (children > 0).then_some(Downward { predicates, steps: longest })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expression, use: reads content, leaves, asks for the size.
    #[test]
    fn reaches() {
        #[rustfmt::skip]
        let cases = [
            ("1 + 2", Use::Value, false, false, false), ("@x", Use::Value, false, false, false), ("../@x", Use::Value, false, false, false),
            ("ancestor::a[@y]/@x", Use::Value, false, false, false), (".", Use::Value, true, false, false), (".", Use::Exists, false, false, false),
            ("..", Use::Value, false, true, false), ("parent::a", Use::Exists, false, false, false), ("a", Use::Exists, true, false, false),
            ("//a", Use::Exists, false, true, false), (".//a", Use::Exists, true, false, false), ("../a", Use::Exists, false, true, false),
            ("name()", Use::Value, false, false, false), ("name(..)", Use::Value, false, false, false), ("count(ancestor::*)", Use::Value, false, false, false),
            ("normalize-space()", Use::Value, true, false, false), ("position()", Use::Value, false, false, false), ("last()", Use::Value, false, false, true),
            ("a[last()]", Use::Value, true, false, false), ("a[current()/@x = 1]", Use::Value, true, false, false), ("a[../@x]", Use::Value, true, false, false),
            ("a[..]", Use::Value, true, false, false), ("a[.. = 1]", Use::Value, true, true, false), ("a/following-sibling::b", Use::Value, true, true, false),
            ("key('k', @x)", Use::Value, false, true, false), ("$v", Use::Value, false, false, false), ("$v/a", Use::Value, false, false, false),
            ("$v/..", Use::Exists, false, true, false), ("e:node-set($v)/a/..", Use::Value, false, false, false), ("document('x')//a/..", Use::Value, false, false, false),
            ("self::a and not(@b)", Use::Exists, false, false, false), ("string(@x) = 'a' or position() = 1", Use::Exists, false, false, false),
            ("generate-id(@x)", Use::Value, false, true, false), ("concat(@a, b)", Use::Value, true, false, false), ("s:tokenize(@x)", Use::Value, false, false, false),
        ];
        for (source, using, content, leaves, size) in cases {
            let tree = xpath::parse(source, Version::V1).unwrap();
            let (reach, _) = reach(&tree, Version::V1, using, At::Focus, false);
            assert_eq!(
                (reach.content, reach.leaves.is_some(), reach.size),
                (content, leaves, size),
                "{source}"
            );
        }
    }

    #[test]
    fn goes_downwards() {
        let cases = [
            ("a", Some(false)),
            ("@*|node()", Some(false)),
            ("a/b/c", Some(false)),
            ("a|b|text()", Some(false)),
            ("a[@x]/b", Some(true)),
            ("a[b = 1]", Some(true)),
            ("a[1]", None),
            ("a[last()]", None),
            ("@*", None),
            ("a/@x", None),
            ("a/b|c", None),
            (".//a", None),
            ("..", None),
            ("/a", None),
            (".", None),
            ("$v/a", None),
        ];
        for (source, expected) in cases {
            let tree = xpath::parse(source, Version::V1).unwrap();
            assert_eq!(downward(&tree).map(|d| d.predicates), expected, "{source}");
        }
    }
}
