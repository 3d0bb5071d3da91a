//! Running a compiled path: segment by segment over a list of nodes.

use super::ast::{Bound, Call, Expr, Function, Operand, Operator, Query, Segment, Selector, position};
use super::compare::{self, Pattern};
use super::{Dialect, Failure, MAX_MATCHES, MAX_VISITS, NormalizedPath, Step, functions};
use serde_json::Value;
use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;

/// A selected value; its trail only where paths are asked for.
pub(super) struct Node<'v> {
    pub value: Cow<'v, Value>,
    trail: Option<Rc<Trail>>,
}

struct Trail {
    parent: Option<Rc<Trail>>,
    step: Step,
}

impl Node<'_> {
    pub fn path(&self) -> NormalizedPath {
        let mut steps = Vec::new();
        let mut trail = self.trail.as_ref();
        while let Some(link) = trail {
            steps.push(link.step.clone());
            trail = link.parent.as_ref();
        }
        steps.reverse();
        NormalizedPath(steps)
    }
}

/// How many visits compiling a pattern while running counts as.
const PATTERN_COST: u64 = 5_000;

/// One run of a path.
pub(super) struct Run<'p> {
    dialect: Dialect,
    paths: bool,
    /// What `{0}`, `{1}`, … in the path stand for.
    parameters: &'p [Value],
    visits: Cell<u64>,
}

type Selection<'v> = Result<Vec<Node<'v>>, Failure>;

impl<'p> Run<'p> {
    pub fn new(dialect: Dialect, paths: bool, parameters: &'p [Value]) -> Run<'p> {
        Run { dialect, paths, parameters, visits: Cell::new(0) }
    }

    pub fn select<'v>(&self, query: &Query, root: &'v Value) -> Selection<'v> {
        self.query(query, root, root)
    }

    fn query<'v>(&self, query: &Query, root: &'v Value, current: &'v Value) -> Selection<'v> {
        let start = if query.absolute { root } else { current };
        let mut nodes = vec![Node { value: Cow::Borrowed(start), trail: None }];
        // Whether everything up to here is definite: there Jayway raises where the path leads nowhere.
        let mut definite = true;
        for (i, segment) in query.segments.iter().enumerate() {
            let strict = definite && self.dialect == Dialect::Jayway;
            let leaf = i + 1 == query.segments.len();
            nodes = match segment {
                Segment::Child(selectors) => {
                    let selectors = &*self.given(selectors)?;
                    // Of several names within a path, those that are absent are left out.
                    let needs_member = !leaf && selectors.len() == 1;
                    let mut out = Vec::new();
                    for node in &nodes {
                        for selector in selectors {
                            if strict {
                                check_kind(selector, node, needs_member)?;
                            }
                            self.apply(selector, node, root, &mut out)?;
                        }
                    }
                    out
                }
                Segment::Descendant(selectors) => self.descend(selectors, nodes, root)?,
                Segment::Function(call) => self.call(call, nodes, root, definite)?,
            };
            definite &= segment.is_definite();
        }
        if nodes.is_empty() && query.definite && self.dialect == Dialect::Jayway {
            return Err(Failure::NotFound("the path leads nowhere".to_owned()));
        }
        Ok(nodes)
    }

    /// Selectors with what is given for their parameters.
    fn given<'s>(&self, selectors: &'s [Selector]) -> Result<Cow<'s, [Selector]>, Failure> {
        let is_open =
            |selector: &Selector| matches!(selector, Selector::Parameter(_) | Selector::SliceOf { .. });
        if !selectors.iter().any(is_open) {
            return Ok(Cow::Borrowed(selectors));
        }
        let whole = |number: usize| {
            let value = self.parameters.get(number);
            let index = value.and_then(|value| match value {
                Value::Number(number) => number.as_i64().or_else(|| {
                    number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 1e15).map(|n| n as i64)
                }),
                _ => None,
            });
            index.ok_or_else(|| Failure::NotFound("an index is not a whole number".to_owned()))
        };
        let bound = |bound: &Option<Bound>| match bound {
            None => Ok(None),
            Some(Bound::Fixed(index)) => Ok(Some(*index)),
            Some(Bound::Parameter(number)) => whole(*number).map(Some),
        };
        selectors
            .iter()
            .map(|selector| {
                Ok(match selector {
                    Selector::Parameter(number) => match self.parameters.get(*number) {
                        Some(Value::String(name)) => Selector::Name(name.clone()),
                        _ => Selector::Index(whole(*number)?),
                    },
                    Selector::SliceOf { start, end } => {
                        Selector::Slice { start: bound(start)?, end: bound(end)?, step: 1 }
                    }
                    fixed => fixed.clone(),
                })
            })
            .collect::<Result<Vec<_>, _>>()
            .map(Cow::Owned)
    }

    fn visit(&self) -> Result<(), Failure> {
        meter::spend(1)?;
        let visits = self.visits.get() + 1;
        self.visits.set(visits);
        if visits > MAX_VISITS {
            return Err(Failure::Limit(format!("the JSONPath visits more than {MAX_VISITS} values")));
        }
        Ok(())
    }

    /// The members and elements of a node, in document order.
    fn children<'v>(&self, node: &Node<'v>) -> Result<Vec<Node<'v>>, Failure> {
        let mut out = Vec::new();
        match node.value.as_ref() {
            Value::Object(members) => {
                for name in members.keys() {
                    self.visit()?;
                    out.extend(self.member(node, name));
                }
            }
            Value::Array(elements) => {
                for index in 0..elements.len() {
                    self.visit()?;
                    out.extend(self.element(node, index));
                }
            }
            _ => {}
        }
        Ok(out)
    }

    fn member<'v>(&self, node: &Node<'v>, name: &str) -> Option<Node<'v>> {
        let value = project(&node.value, |value| value.as_object()?.get(name))?;
        Some(Node { value, trail: self.trail(node, || Step::Name(name.to_owned())) })
    }

    fn element<'v>(&self, node: &Node<'v>, index: usize) -> Option<Node<'v>> {
        let value = project(&node.value, |value| value.as_array()?.get(index))?;
        Some(Node { value, trail: self.trail(node, || Step::Index(index)) })
    }

    fn trail(&self, node: &Node<'_>, step: impl FnOnce() -> Step) -> Option<Rc<Trail>> {
        self.paths.then(|| Rc::new(Trail { parent: node.trail.clone(), step: step() }))
    }

    fn apply<'v>(
        &self,
        selector: &Selector,
        node: &Node<'v>,
        root: &'v Value,
        out: &mut Vec<Node<'v>>,
    ) -> Result<(), Failure> {
        self.visit()?;
        if out.len() > MAX_MATCHES {
            return Err(Failure::Limit(format!("the JSONPath has more than {MAX_MATCHES} matches")));
        }
        match selector {
            Selector::Name(name) => out.extend(self.member(node, name)),
            Selector::Members(names) if self.paths => {
                out.extend(names.iter().filter_map(|name| self.member(node, name)));
            }
            Selector::Members(names) => {
                if let Value::Object(members) = node.value.as_ref() {
                    let merged = names.iter().filter_map(|n| Some((n.clone(), members.get(n)?.clone())));
                    out.push(Node { value: Cow::Owned(Value::Object(merged.collect())), trail: None });
                }
            }
            Selector::Index(index) => {
                if let Value::Array(elements) = node.value.as_ref() {
                    out.extend(position(*index, elements.len()).and_then(|i| self.element(node, i)));
                }
            }
            Selector::Slice { start, end, step } => {
                if let Value::Array(elements) = node.value.as_ref() {
                    let len = elements.len() as i64;
                    match self.dialect {
                        Dialect::Rfc9535 => self.slice(node, len, *start, *end, *step, out)?,
                        Dialect::Jayway => self.jayway_slice(node, len, *start, *end, out)?,
                    }
                }
            }
            Selector::Wildcard => out.extend(self.children(node)?),
            // Replaced by what they stand for before this is reached.
            Selector::Parameter(_) | Selector::SliceOf { .. } => {}
            Selector::Filter(expr) => {
                // Jayway asks an object itself, the standard asks its members.
                if self.dialect == Dialect::Jayway && node.value.is_object() {
                    if self.holds(expr, root, &node.value)? {
                        out.push(Node { value: node.value.clone(), trail: node.trail.clone() });
                    }
                    return Ok(());
                }
                for child in self.children(node)? {
                    if self.holds(expr, root, &child.value)? {
                        out.push(child);
                    }
                }
            }
        }
        Ok(())
    }

    /// RFC 9535, 2.3.4.2.
    fn slice<'v>(
        &self,
        node: &Node<'v>,
        len: i64,
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
        out: &mut Vec<Node<'v>>,
    ) -> Result<(), Failure> {
        if step == 0 {
            return Ok(());
        }
        let (default_start, default_end) = if step > 0 { (0, len) } else { (len - 1, -len - 1) };
        let normal = |bound: i64| if bound >= 0 { bound } else { len + bound };
        let (start, end) = (normal(start.unwrap_or(default_start)), normal(end.unwrap_or(default_end)));
        let (mut index, last) = if step > 0 {
            (start.clamp(0, len), end.clamp(0, len))
        } else {
            (start.clamp(-1, len - 1), end.clamp(-1, len - 1))
        };
        while if step > 0 { index < last } else { index > last } {
            self.visit()?;
            out.extend(usize::try_from(index).ok().and_then(|index| self.element(node, index)));
            index = index.saturating_add(step);
        }
        Ok(())
    }

    /// Jayway's: with both bounds a negative one is not turned into a position first, every index of the range
    /// is looked up by itself; the step is not read.
    fn jayway_slice<'v>(
        &self,
        node: &Node<'v>,
        len: i64,
        start: Option<i64>,
        end: Option<i64>,
        out: &mut Vec<Node<'v>>,
    ) -> Result<(), Failure> {
        let from_end = |bound: i64| if bound < 0 { len + bound } else { bound };
        let range = match (start, end) {
            (Some(start), Some(end)) => start.max(-len)..end.min(len),
            (Some(start), None) => from_end(start).max(0)..len,
            (None, Some(end)) => 0..from_end(end).min(len),
            (None, None) => 0..len,
        };
        for index in range {
            self.visit()?;
            out.extend(position(index, len as usize).and_then(|index| self.element(node, index)));
        }
        Ok(())
    }

    /// `..`: every node and what is below it, parents first.
    fn descend<'v>(&self, selectors: &[Selector], nodes: Vec<Node<'v>>, root: &'v Value) -> Selection<'v> {
        let selectors = &*self.given(selectors)?;
        let mut out = Vec::new();
        let mut pending = nodes;
        pending.reverse();
        while let Some(node) = pending.pop() {
            for selector in selectors {
                let applies = match selector {
                    // Only objects that have all of them.
                    Selector::Members(names) => {
                        let members = node.value.as_object();
                        members.is_some_and(|members| names.iter().all(|name| members.contains_key(name)))
                    }
                    // Jayway asks the array itself first.
                    Selector::Filter(expr) if self.dialect == Dialect::Jayway && node.value.is_array() => {
                        self.holds(expr, root, &node.value)?
                    }
                    _ => true,
                };
                if applies {
                    self.apply(selector, &node, root, &mut out)?;
                }
            }
            let first = pending.len();
            pending.extend(self.children(&node)?);
            if let Some(children) = pending.get_mut(first..) {
                children.reverse();
            }
        }
        Ok(out)
    }

    fn call<'v>(&self, call: &Call, nodes: Vec<Node<'v>>, root: &'v Value, definite: bool) -> Selection<'v> {
        let aggregate = matches!(
            call.function,
            Function::Min | Function::Max | Function::Avg | Function::Sum | Function::Stddev
        );
        // Numbers selected one by one are aggregated together: one by one would be of no use to anyone.
        let gathers =
            call.gathers || (aggregate && !definite && nodes.iter().all(|node| !node.value.is_array()));
        let nodes = if gathers {
            let list = nodes.into_iter().map(|node| node.value.into_owned()).collect();
            vec![Node { value: Cow::Owned(Value::Array(list)), trail: None }]
        } else {
            nodes
        };
        let mut out = Vec::with_capacity(nodes.len());
        for node in nodes {
            self.visit()?;
            let mut args = Vec::with_capacity(call.args.len());
            for arg in &call.args {
                // An argument that leads nowhere counts as not given.
                args.extend(self.operand(arg, root, &node.value)?.map(Cow::into_owned));
            }
            let value = Cow::Owned(functions::call(call.function, &node.value, &args, gathers)?);
            out.push(Node { value, trail: node.trail });
        }
        Ok(out)
    }

    fn holds(&self, expr: &Expr, root: &Value, current: &Value) -> Result<bool, Failure> {
        self.visit()?;
        match expr {
            Expr::Or(terms) => {
                for term in terms {
                    if self.holds(term, root, current)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Expr::And(terms) => {
                for term in terms {
                    if !self.holds(term, root, current)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Expr::Not(term) => Ok(!self.holds(term, root, current)?),
            Expr::Exists(query) if query.singular => Ok(query.singular(root, current).is_some()),
            Expr::Exists(query) => Ok(!self.inner(query, root, current)?.is_empty()),
            Expr::Matches { text, pattern, whole } => {
                let text = self.operand(text, root, current)?;
                let Some(Value::String(text)) = text.as_deref() else { return Ok(false) };
                if let Operand::Pattern(pattern) = pattern {
                    return Ok(pattern.is_match(text)?);
                }
                let source = self.operand(pattern, root, current)?;
                let Some(Value::String(source)) = source.as_deref() else { return Ok(false) };
                // A pattern out of the document is compiled each time: it costs like many visits.
                self.visits.set(self.visits.get().saturating_add(PATTERN_COST));
                match Pattern::iregexp(source, *whole) {
                    Ok(pattern) => Ok(pattern.is_match(text)?),
                    Err(_) => Ok(false),
                }
            }
            Expr::Compare(Operand::Pattern(pattern), Operator::Matches, text)
            | Expr::Compare(text, Operator::Matches, Operand::Pattern(pattern)) => {
                let value = self.operand(text, root, current)?;
                let is_match = |value: &Value| match value {
                    Value::String(text) => pattern.is_match(text),
                    Value::Number(_) | Value::Bool(_) => pattern.is_match(&value.to_string()),
                    _ => Ok(false),
                };
                let matched = match value.as_deref() {
                    Some(Value::Array(list)) => {
                        list.iter().map(is_match).find(|matched| *matched != Ok(false)).unwrap_or(Ok(false))
                    }
                    Some(value) => is_match(value),
                    None => Ok(false),
                };
                Ok(matched?)
            }
            Expr::Compare(left, operator, right) => {
                let left = self.operand(left, root, current)?;
                let right = self.operand(right, root, current)?;
                Ok(compare::holds(self.dialect, left.as_deref(), *operator, right.as_deref()))
            }
        }
    }

    /// A path within a filter: leading nowhere is an empty list there, and nobody asks for places.
    fn inner<'v>(&self, query: &Query, root: &'v Value, current: &'v Value) -> Selection<'v> {
        let visits = Cell::new(self.visits.get());
        let run = Run { dialect: self.dialect, paths: false, parameters: self.parameters, visits };
        let found = run.query(query, root, current);
        self.visits.set(run.visits.get());
        match found {
            Err(Failure::NotFound(_)) => Ok(Vec::new()),
            found => found,
        }
    }

    fn operand<'v>(
        &'v self,
        operand: &'v Operand,
        root: &'v Value,
        current: &'v Value,
    ) -> Result<Option<Cow<'v, Value>>, Failure> {
        Ok(match operand {
            Operand::Literal(value) => Some(Cow::Borrowed(value)),
            Operand::Parameter(number) => self.parameters.get(*number).map(Cow::Borrowed),
            Operand::Pattern(_) => None,
            Operand::Query(query) if query.singular => query.singular(root, current).map(Cow::Borrowed),
            Operand::Query(query) => {
                let mut nodes = self.inner(query, root, current)?;
                if query.definite {
                    nodes.pop().map(|node| node.value)
                } else {
                    Some(Cow::Owned(nodes.into_iter().map(|node| node.value.into_owned()).collect()))
                }
            }
            Operand::Length(inner) => {
                let value = self.operand(inner, root, current)?;
                value.as_deref().and_then(compare::length).map(|len| Cow::Owned(Value::from(len)))
            }
            Operand::Count(query) => Some(Cow::Owned(Value::from(self.inner(query, root, current)?.len()))),
            Operand::ValueOf(query) => {
                let mut nodes = self.inner(query, root, current)?;
                if nodes.len() == 1 { nodes.pop().map(|node| node.value) } else { None }
            }
        })
    }
}

/// A part of a value, borrowed from the document where the value is.
fn project<'v>(value: &Cow<'v, Value>, part: impl Fn(&Value) -> Option<&Value>) -> Option<Cow<'v, Value>> {
    match value {
        Cow::Borrowed(value) => part(value).map(Cow::Borrowed),
        Cow::Owned(value) => part(value).map(|part| Cow::Owned(part.clone())),
    }
}

/// What Jayway raises where everything up to here is definite.
fn check_kind(selector: &Selector, node: &Node<'_>, needs_member: bool) -> Result<(), Failure> {
    let found = |what: &str| Err(Failure::NotFound(format!("the path leads nowhere: {what}")));
    match (selector, node.value.as_ref()) {
        (Selector::Name(name), Value::Object(members)) => {
            if needs_member && !members.contains_key(name) {
                return found(&format!("there is no member {name:?}"));
            }
        }
        (Selector::Members(_), Value::Object(_)) => {}
        (Selector::Name(_) | Selector::Members(_), _) => return found("not an object"),
        (Selector::Index(_) | Selector::Slice { .. }, Value::Array(_)) => {}
        (Selector::Index(_) | Selector::Slice { .. }, _) => return found("not an array"),
        (Selector::Filter(_), Value::Array(_) | Value::Object(_)) | (Selector::Wildcard, _) => {}
        (Selector::Parameter(_) | Selector::SliceOf { .. }, _) => {}
        (Selector::Filter(_), _) => return found("a filter on a single value"),
    }
    Ok(())
}
