//! Classification: from the plan for the tree to a plan for the event stream, or the reason why not.

use super::{
    ItemTest, Known, Leaf, LeafKind, ScopePlan, StepKind, StreamAs, StreamContext, StreamOp, StreamPredicate,
    StreamStep,
};
use crate::ast::{Axis, BinaryOp};
use crate::compile::Program;
use crate::error::{NotStreamable, Span};
use crate::plan::{Core, From, Op, Path, Predicate, Step, Test};
use crate::sequence::plan::Seq;
use crate::value::Type;

/// Why operations of XPath 2.0 do not stream.
const LATER: &str = "what only XPath 2.0 has needs the tree";

type Lowered<T> = Result<T, NotStreamable>;

pub(super) fn lower(
    program: &Program,
    wanted: StreamAs,
    context: StreamContext,
) -> Lowered<(Vec<ScopePlan>, Vec<Op>)> {
    let mut l = Lower { program, context, scopes: vec![None], constants: Vec::new() };
    let mut scope = Scope { index: 0, leaves: Vec::new() };
    let op = match wanted {
        StreamAs::Boolean => l.truth(&program.op, &mut scope)?,
        StreamAs::Value if program.op.ty() == Type::NodeSet => {
            return Err(not(
                op_span(&program.op),
                "the result is a node-set: only its boolean or string value can stream",
            ));
        }
        StreamAs::Text if program.op.ty() == Type::NodeSet && !l.is_constant(&program.op) => {
            let path = l.nodes(&program.op, &scope)?;
            certain(&path, op_span(&program.op), "the text of the only node")?;
            scope.leaf(LeafKind::Only, path)?
        }
        StreamAs::Value | StreamAs::Text => l.scalar(&program.op, &mut scope)?,
        StreamAs::String => StreamOp::Call(Core::String, vec![l.scalar(&program.op, &mut scope)?]),
    };
    l.scopes[0] = Some(ScopePlan { op, leaves: scope.leaves, immediate: false });
    // Every slot was filled when its predicate was lowered.
    Ok((l.scopes.into_iter().flatten().collect(), l.constants))
}

fn not(span: Span, reason: impl Into<String>) -> NotStreamable {
    NotStreamable { reason: reason.into(), span: span.range() }
}

struct Lower<'p> {
    program: &'p Program,
    context: StreamContext,
    scopes: Vec<Option<ScopePlan>>,
    constants: Vec<Op>,
}

/// The scope under construction.
struct Scope {
    index: usize,
    leaves: Vec<Leaf>,
}

impl Scope {
    fn is_top(&self) -> bool {
        self.index == 0
    }

    fn leaf(&mut self, kind: LeafKind, path: Vec<StreamStep>) -> Lowered<StreamOp> {
        self.leaves.push(Leaf { kind, path });
        Ok(StreamOp::Leaf(self.leaves.len() - 1))
    }
}

impl Lower<'_> {
    /// Whether it uses neither the document nor context node, position and size.
    fn is_constant(&self, op: &Op) -> bool {
        match op {
            Op::Number(_) | Op::Text(_) => true,
            Op::Or(items) | Op::And(items) | Op::Union(items) => items.iter().all(|o| self.is_constant(o)),
            Op::Compare(_, both) | Op::Arithmetic(_, both) => {
                self.is_constant(&both.0) && self.is_constant(&both.1)
            }
            Op::Negate(a) => self.is_constant(a),
            Op::Path(p) => match &p.start {
                // A filter or steps from a host's nodes read another document.
                From::Op(start) => self.is_constant(start) && p.steps.is_empty() && p.filter.is_empty(),
                _ => false,
            },
            Op::Call(core, args, _) => {
                !core.looks_at_context(args.len()) && args.iter().all(|o| self.is_constant(o))
            }
            Op::Variable(index, ..) => !self.program.variables[*index as usize].reads_document,
            Op::Extension(index, args, ..) => {
                !self.program.function_reads[*index as usize] && args.iter().all(|o| self.is_constant(o))
            }
            Op::Sequence(_) => op.once().is_some_and(|(_, op)| self.is_constant(op)),
            Op::Current(_) => false,
        }
    }

    fn constant(&mut self, op: &Op) -> StreamOp {
        match op {
            Op::Number(n) => StreamOp::Literal(Known::Number(*n)),
            Op::Text(s) => StreamOp::Literal(Known::String(s.clone())),
            _ => {
                self.constants.push(op.clone());
                StreamOp::Constant(self.constants.len() - 1)
            }
        }
    }

    /// Lowers an operation to its boolean value.
    fn truth(&mut self, op: &Op, scope: &mut Scope) -> Lowered<StreamOp> {
        if !self.is_constant(op) {
            match op {
                Op::Union(items) => {
                    let items = items.iter().map(|o| self.truth(o, scope)).collect::<Lowered<Vec<_>>>()?;
                    return Ok(StreamOp::Or(items));
                }
                Op::Path(_) | Op::Variable(..) => {
                    let path = self.nodes(op, scope)?;
                    return scope.leaf(LeafKind::Exists, path);
                }
                _ => {}
            }
        }
        Ok(StreamOp::Call(Core::Boolean, vec![self.scalar(op, scope)?]))
    }

    /// Lowers an operation to its value; for nodes the string-value of the first.
    fn scalar(&mut self, op: &Op, scope: &mut Scope) -> Lowered<StreamOp> {
        if self.is_constant(op) {
            return Ok(self.constant(op));
        }
        match op {
            Op::Number(_) | Op::Text(_) => Ok(self.constant(op)),
            Op::Or(items) => {
                Ok(StreamOp::Or(items.iter().map(|o| self.truth(o, scope)).collect::<Lowered<_>>()?))
            }
            Op::And(items) => {
                Ok(StreamOp::And(items.iter().map(|o| self.truth(o, scope)).collect::<Lowered<_>>()?))
            }
            Op::Compare(op, both) => self.compare(*op, &both.0, &both.1, scope),
            Op::Arithmetic(op, both) => {
                let both = (self.scalar(&both.0, scope)?, self.scalar(&both.1, scope)?);
                Ok(StreamOp::Arithmetic(*op, Box::new(both)))
            }
            Op::Negate(a) => Ok(StreamOp::Negate(Box::new(self.scalar(a, scope)?))),
            Op::Path(_) | Op::Variable(..) => {
                let path = self.nodes(op, scope)?;
                certain(&path, op_span(op), "the string-value of the first node")?;
                scope.leaf(LeafKind::First, path)
            }
            Op::Union(_) => Err(not(op_span(op), "the first node of a union needs all its paths")),
            Op::Call(core, args, span) => self.call(*core, args, *span, scope),
            Op::Extension(_, _, _, span, _) => Err(not(
                *span,
                "the arguments of an extension function come from the document, or it reads it itself",
            )),
            Op::Current(span) => Err(not(*span, "current() needs the tree")),
            Op::Sequence(s) => match &s.kind {
                Seq::Once(_, op) => self.scalar(op, scope),
                _ => Err(not(s.span, LATER)),
            },
        }
    }

    fn call(&mut self, core: Core, args: &[Op], span: Span, scope: &mut Scope) -> Lowered<StreamOp> {
        Ok(match core {
            // The context of the whole expression is one node.
            Core::Position | Core::Last if scope.is_top() => StreamOp::Literal(Known::Number(1.0)),
            Core::Position => StreamOp::Position,
            Core::Last => return Err(not(span, "last() needs to know how many nodes follow")),
            Core::Id => return Err(not(span, "id() needs the whole document")),
            Core::Lang => return Err(not(span, "lang() looks at the ancestors")),
            Core::Name => {
                return Err(not(
                    span,
                    "name() needs the prefix; local-name() and namespace-uri() can stream",
                ));
            }
            Core::LocalName | Core::NamespaceUri => {
                let path = match args.first() {
                    Some(a) => self.nodes(a, scope)?,
                    None => self.context_path(scope),
                };
                certain(&path, span, "the name of the first node")?;
                return scope.leaf(LeafKind::FirstName(core), path);
            }
            Core::Count | Core::Sum => {
                let path = self.nodes(&args[0], scope)?;
                certain(&path, span, &format!("{}()", core.name()))?;
                return scope.leaf(if core == Core::Count { LeafKind::Count } else { LeafKind::Sum }, path);
            }
            Core::Boolean | Core::Not => StreamOp::Call(core, vec![self.truth(&args[0], scope)?]),
            _ if args.is_empty() && core.defaults_to_context() => {
                let path = self.context_path(scope);
                StreamOp::Call(core, vec![scope.leaf(LeafKind::First, path)?])
            }
            _ => StreamOp::Call(core, args.iter().map(|a| self.scalar(a, scope)).collect::<Lowered<_>>()?),
        })
    }

    fn compare(&mut self, op: BinaryOp, a: &Op, b: &Op, scope: &mut Scope) -> Lowered<StreamOp> {
        let plain = |op| Op::once(op).map_or(op, |(_, op)| op);
        let (a, b) = (plain(a), plain(b));
        let from_document = |l: &Self, o: &Op| is_nodes(o) && !l.is_constant(o);
        match (from_document(self, a), from_document(self, b)) {
            (true, true) => Err(not(op_span(a).to(op_span(b)), "two node-sets of the document are compared")),
            (true, false) => self.compare_nodes(op, a, b, scope),
            (false, true) => self.compare_nodes(op.mirrored(), b, a, scope),
            (false, false) => {
                let both = (self.scalar(a, scope)?, self.scalar(b, scope)?);
                Ok(StreamOp::Compare(op, Box::new(both)))
            }
        }
    }

    fn compare_nodes(
        &mut self,
        op: BinaryOp,
        nodes: &Op,
        other: &Op,
        scope: &mut Scope,
    ) -> Lowered<StreamOp> {
        if other.ty() == Type::Boolean {
            let both = (self.truth(nodes, scope)?, self.scalar(other, scope)?);
            return Ok(StreamOp::Compare(op, Box::new(both)));
        }
        if let Op::Union(items) = nodes
            && other.ty() != Type::Any
        {
            let items = items.iter().map(|o| self.compare_nodes(op, o, other, scope));
            return Ok(StreamOp::Or(items.collect::<Lowered<_>>()?));
        }
        if !self.is_constant(other) {
            let reason = "a node-set is compared with a value that is itself read from the document";
            return Err(not(op_span(other), reason));
        }
        let value = self.constant(other);
        let path = self.nodes(nodes, scope)?;
        scope.leaf(LeafKind::Compare(op, value), path)
    }

    /// The path from the document node or the item of a predicate to its own context node.
    fn context_path(&self, scope: &Scope) -> Vec<StreamStep> {
        if scope.is_top() && self.context != StreamContext::Document {
            vec![StreamStep::new(StepKind::Child, ItemTest::Any, Vec::new())]
        } else {
            Vec::new()
        }
    }

    fn nodes(&mut self, op: &Op, scope: &Scope) -> Lowered<Vec<StreamStep>> {
        match op {
            Op::Path(p) => self.path(p, scope),
            Op::Variable(index, _, span) => {
                let program = self.program;
                match &program.variables[*index as usize].same_as {
                    Some(op) if scope.is_top() => self.nodes(op, scope),
                    Some(_) => Err(not(*span, "a variable that reads the document, inside a predicate")),
                    None => Err(not(*span, "the variable reads the document")),
                }
            }
            Op::Union(_) => Err(not(op_span(op), "a union as the start or the argument here")),
            Op::Call(Core::Id, _, span) => Err(not(*span, "id() needs the whole document")),
            other => Err(not(op_span(other), "these nodes do not come from a path")),
        }
    }

    fn path(&mut self, p: &Path, scope: &Scope) -> Lowered<Vec<StreamStep>> {
        let mut steps = match &p.start {
            From::Root if scope.is_top() => Vec::new(),
            From::Root => return Err(not(p.span, "an absolute path inside a predicate may look back")),
            From::Context => self.context_path(scope),
            From::Op(start) => self.nodes(start, scope)?,
        };
        for predicate in &p.filter {
            match predicate {
                Predicate::Position(n) => {
                    certain(&steps, p.span, "a position among all nodes of a path")?;
                    steps.push(StreamStep::new(StepKind::Nth(*n), ItemTest::Node, Vec::new()));
                }
                Predicate::Last => {
                    return Err(not(p.span, "last() needs to know how many nodes follow"));
                }
                Predicate::Boolean(op) if !crate::compile::context_use(op).position => {
                    let predicate = self.predicate(predicate, p.span, &[])?;
                    if matches!(predicate, StreamPredicate::Content(_))
                        && !steps.last().is_some_and(finds_elements)
                    {
                        return Err(not(
                            p.span,
                            "a predicate that reads the value of nodes that are not elements",
                        ));
                    }
                    steps.push(StreamStep::new(StepKind::SelfItem, ItemTest::Node, vec![predicate]));
                }
                Predicate::Never => {
                    let never = vec![StreamPredicate::Never];
                    steps.push(StreamStep::new(StepKind::SelfItem, ItemTest::Node, never));
                }
                _ => return Err(not(p.span, "a computed position among all nodes of a path")),
            }
        }
        for step in &p.steps {
            let mut step = self.step(step, steps.last())?;
            let anywhere = |s: &StreamStep| {
                s.kind == StepKind::DescendantOrSelf && s.test == ItemTest::Node && s.predicates.is_empty()
            };
            if step.kind == StepKind::Child && steps.last().is_some_and(anywhere) {
                steps.pop();
                step.kind = StepKind::ChildBelow;
            }
            steps.push(step);
        }
        Ok(steps)
    }

    fn step(&mut self, step: &Step, before: Option<&StreamStep>) -> Lowered<StreamStep> {
        let kind = match step.axis {
            Axis::Child => StepKind::Child,
            Axis::Descendant => StepKind::Descendant,
            Axis::DescendantOrSelf => StepKind::DescendantOrSelf,
            Axis::SelfAxis => StepKind::SelfItem,
            Axis::Attribute => StepKind::Attribute,
            Axis::Namespace => return Err(not(step.span, "the axis `namespace` needs the tree")),
            axis if axis.is_reverse() => {
                return Err(not(step.span, format!("the axis `{}` looks back", axis.name())));
            }
            axis => return Err(not(step.span, format!("the axis `{}` leaves the element", axis.name()))),
        };
        if before.is_some_and(|b| b.kind == StepKind::Attribute) {
            return Err(not(step.span, "a step behind an attribute"));
        }
        let test = match &step.test {
            Test::Node | Test::Parent => ItemTest::Node,
            Test::Text => ItemTest::Text,
            Test::Comment => ItemTest::Comment,
            Test::ProcessingInstruction(target) => ItemTest::Instruction(target.clone()),
            Test::Any => ItemTest::Any,
            Test::Namespace(uri) => ItemTest::Namespace(uri.clone()),
            Test::Name(index) => {
                let (uri, local, _) = &self.program.names[*index as usize];
                ItemTest::Name(uri.clone(), local.clone())
            }
            Test::Kind(xml::NodeKind::Element, None) if kind != StepKind::Attribute => ItemTest::Any,
            Test::Kind(xml::NodeKind::Element, Some(index)) if kind != StepKind::Attribute => {
                let (uri, local, _) = &self.program.names[*index as usize];
                ItemTest::Name(uri.clone(), local.clone())
            }
            Test::Local(_) | Test::Kind(..) | Test::NamespaceNode | Test::DocumentOf(_) => {
                return Err(not(step.span, LATER));
            }
        };
        let mut predicates = Vec::with_capacity(step.predicates.len());
        for p in &step.predicates {
            let lowered = self.predicate(p, step.span, &predicates)?;
            predicates.push(lowered);
        }
        let step_span = step.span;
        let step = StreamStep::new(kind, test, predicates);
        if step.predicates.iter().any(|p| matches!(p, StreamPredicate::Content(_))) && !finds_elements(&step)
        {
            return Err(not(step_span, "a predicate that reads the value of nodes that are not elements"));
        }
        Ok(step)
    }

    fn predicate(
        &mut self,
        p: &Predicate,
        span: Span,
        before: &[StreamPredicate],
    ) -> Lowered<StreamPredicate> {
        let counts = match p {
            Predicate::Boolean(op) => crate::compile::context_use(op).position,
            _ => true,
        };
        if counts && before.iter().any(|p| matches!(p, StreamPredicate::Content(_))) {
            return Err(not(span, "a position counted behind a predicate that reads content"));
        }
        let op = match p {
            Predicate::Position(n) => return Ok(StreamPredicate::Position(*n)),
            Predicate::Never => return Ok(StreamPredicate::Never),
            Predicate::Last => return Err(not(span, "last() needs to know how many nodes follow")),
            Predicate::Number(op) | Predicate::Boolean(op) | Predicate::Any(op) => op,
        };
        let index = self.scopes.len();
        self.scopes.push(None);
        let mut scope = Scope { index, leaves: Vec::new() };
        let lowered = match p {
            Predicate::Boolean(_) => self.truth(op, &mut scope)?,
            Predicate::Number(_) => {
                let number = self.scalar(op, &mut scope)?;
                StreamOp::Compare(BinaryOp::Equal, Box::new((StreamOp::Position, number)))
            }
            _ if self.is_constant(op) => {
                self.constants.push(op.clone());
                StreamOp::PositionOrTruth(self.constants.len() - 1)
            }
            _ => return Err(not(op_span(op), "a predicate of unknown type reads the document")),
        };
        let immediate = scope.leaves.iter().all(is_immediate);
        self.scopes[index] = Some(ScopePlan { op: lowered, leaves: scope.leaves, immediate });
        Ok(if immediate { StreamPredicate::Immediate(index) } else { StreamPredicate::Content(index) })
    }
}

/// Whether the start tag decides: it uses the item's own name and attributes only.
fn is_immediate(leaf: &Leaf) -> bool {
    let selves = leaf.path.iter().take_while(|s| s.kind == StepKind::SelfItem).count();
    let certain_steps =
        leaf.path.iter().all(|s| s.predicates.iter().all(|p| !matches!(p, StreamPredicate::Content(_))));
    certain_steps
        && match leaf.path.get(selves) {
            Some(s) => s.kind == StepKind::Attribute && selves + 1 == leaf.path.len(),
            None => matches!(leaf.kind, LeafKind::Exists | LeafKind::FirstName(_)),
        }
}

/// Whether the nodes of a path are certain when they appear, so that they can be counted and ordered.
fn certain(path: &[StreamStep], span: Span, by: &str) -> Lowered<()> {
    let pending = path.iter().any(|s| s.predicates.iter().any(|p| matches!(p, StreamPredicate::Content(_))));
    if pending { Err(not(span, format!("{by}, with a predicate that reads content"))) } else { Ok(()) }
}

fn finds_elements(step: &StreamStep) -> bool {
    step.kind != StepKind::Attribute
        && matches!(step.test, ItemTest::Any | ItemTest::Namespace(_) | ItemTest::Name(..))
}

fn is_nodes(op: &Op) -> bool {
    matches!(op, Op::Path(_) | Op::Union(_) | Op::Current(_) | Op::Call(Core::Id, ..))
        || matches!(op, Op::Variable(..) | Op::Extension(..)) && matches!(op.ty(), Type::NodeSet | Type::Any)
}

/// The place of an operation, if it has one.
fn op_span(op: &Op) -> Span {
    match op {
        Op::Path(p) => p.span,
        Op::Call(_, _, span)
        | Op::Variable(_, _, span)
        | Op::Extension(_, _, _, span, _)
        | Op::Current(span) => *span,
        Op::Or(items) | Op::And(items) | Op::Union(items) => match (items.first(), items.last()) {
            (Some(a), Some(b)) => op_span(a).to(op_span(b)),
            _ => Span::default(),
        },
        Op::Compare(_, both) | Op::Arithmetic(_, both) => op_span(&both.0).to(op_span(&both.1)),
        Op::Negate(a) => op_span(a),
        Op::Sequence(s) => match &s.kind {
            Seq::Once(_, op) => op_span(op),
            _ => s.span,
        },
        Op::Number(_) | Op::Text(_) => Span::default(),
    }
}
