//! Syntax tree to plan: names, functions and variables resolved, paths rewritten and analysed.

use crate::ast::{Axis, BinaryOp, Expr, ExprKind, NodeTest, QName, Start};
use crate::context::ExtensionName;
use crate::error::{Span, XPathError};
use crate::eval::direct::is_direct;
use crate::invariant::is_invariant;
use crate::options::{CompileOptions, Function, Names, Results, Version};
use crate::plan::{Core, From, Op, Path, Predicate, Shape, Step, Test};
use crate::sequence::plan::Seq;
use crate::value::Type;
use xml::NodeKind;

/// The result of compiling: the plan and its tables.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub op: Op,
    /// Names in node tests: (namespace, local, number in the shared pool).
    pub names: Vec<(Box<str>, Box<str>, Option<u32>)>,
    pub variables: Vec<VariableRef>,
    pub functions: Vec<ExtensionName>,
    /// Parallel to `functions`: whether it reads the document beyond its arguments.
    pub function_reads: Vec<bool>,
    pub uses: Uses,
    /// See [`CompileOptions::compatible`].
    pub compatible: bool,
    /// The version is 2.0 or later.
    pub version2: bool,
}

/// A referenced variable.
#[derive(Debug, Clone)]
pub(crate) struct VariableRef {
    pub name: ExtensionName,
    pub reads_document: bool,
    /// A plan over the document root with the same value.
    pub same_as: Option<Op>,
}

/// The needs of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Uses {
    pub document: bool,
    pub position: bool,
    pub size: bool,
}

/// An empty program: conversions need no more.
pub(crate) static NOTHING: Program = Program {
    op: Op::Number(0.0),
    names: Vec::new(),
    variables: Vec::new(),
    functions: Vec::new(),
    function_reads: Vec::new(),
    uses: Uses { document: false, position: false, size: false },
    compatible: false,
    version2: false,
};

pub(crate) fn compile(
    expr: &Expr,
    source: &str,
    options: &CompileOptions<'_>,
) -> Result<Program, XPathError> {
    let mut c = Compiler::new(options, source);
    let op = c.op(expr).map_err(|e| match options.version {
        // XPath 1.0 has no error codes.
        Version::V1 => e.with_code(""),
        _ => e,
    })?;
    Ok(c.finished(op))
}

pub(crate) struct Compiler<'o> {
    pub options: &'o CompileOptions<'o>,
    pub source: &'o str,
    /// Variables of `for`, `some` and `every` in scope: namespace and local name; their places are their slots.
    pub locals: Vec<(Option<String>, String)>,
    /// The places of those that have one value throughout an evaluation.
    pub(crate) fixed_locals: Vec<u32>,
    /// How many references to what changes during an evaluation are compiled: to these variables, and to functions whose results change, …
    pub(crate) changes: usize,
    /// … and how many were when the compilation of the present expression began.
    changes_before: usize,
    names: Names,
    variables: Vec<VariableRef>,
    functions: Vec<ExtensionName>,
    function_reads: Vec<bool>,
    pub uses: Uses,
    /// What is compiled is evaluated again and again: in so many predicates and the like.
    pub(crate) repeated: usize,
    /// How many operations are evaluated once.
    pub(crate) kept: u32,
    /// Compiling a variable's equivalent expression: it may not refer to variables again.
    inside_equivalent: bool,
}

pub(crate) type Compiled<T> = Result<T, XPathError>;

impl<'o> Compiler<'o> {
    pub fn new(options: &'o CompileOptions<'o>, source: &'o str) -> Compiler<'o> {
        Compiler {
            options,
            source,
            locals: Vec::new(),
            fixed_locals: Vec::new(),
            changes: 0,
            changes_before: 0,
            names: Names::default(),
            variables: Vec::new(),
            functions: Vec::new(),
            function_reads: Vec::new(),
            uses: Uses::default(),
            repeated: 0,
            kept: 0,
            inside_equivalent: false,
        }
    }

    /// The program that ends with `op`.
    pub fn finished(self, op: Op) -> Program {
        let Compiler { names, variables, functions, function_reads, uses, options, .. } = self;
        let names = names
            .list
            .into_iter()
            .map(|(uri, local)| {
                let pooled = options.names.map(|pool| pool.intern(&uri, &local));
                (uri, local, pooled)
            })
            .collect();
        let (compatible, version2) = (options.compatible, options.version.is_version2());
        Program { op, names, variables, functions, function_reads, uses, compatible, version2 }
    }

    /// The needs of an inner function are needs of this expression.
    pub fn includes(&mut self, inner: &Program) {
        if !inner.functions.is_empty() {
            self.changes += 1;
        }
        self.uses.document |= inner.uses.document;
        for (function, reads) in inner.functions.iter().zip(&inner.function_reads) {
            if !self.functions.contains(function) {
                self.functions.push(function.clone());
                self.function_reads.push(*reads);
            }
        }
    }

    /// The operation of an expression.
    pub fn op(&mut self, e: &Expr) -> Compiled<Op> {
        let outer = std::mem::replace(&mut self.changes_before, self.changes);
        let op = self.plain_op(e)?;
        let op = if self.is_steady() { self.once(op) } else { op };
        self.changes_before = outer;
        Ok(op)
    }

    /// Whether none of them is in what is compiled at present.
    fn is_steady(&self) -> bool {
        self.changes == self.changes_before
    }

    fn plain_op(&mut self, e: &Expr) -> Compiled<Op> {
        let version2 = self.options.version.is_version2();
        Ok(match &e.kind {
            ExprKind::Negate(_) | ExprKind::Binary(..) | ExprKind::Filter(..) if version2 => {
                return self.version2(e);
            }
            ExprKind::Number(n) => Op::Number(*n),
            ExprKind::Literal(s) => Op::Text(s.as_str().into()),
            ExprKind::Variable(name) => self.variable(name, e.span)?,
            ExprKind::Or(items) => Op::Or(self.ops(items)?),
            ExprKind::And(items) => Op::And(self.ops(items)?),
            ExprKind::Union(items) => {
                for item in items {
                    self.no_later_than_nodes(item)?;
                }
                let ops = self.ops(items)?;
                for (op, item) in ops.iter().zip(items) {
                    nodes_wanted(op, "`|`", item.span).map_err(|e| e.with_code("XPTY0004"))?;
                }
                Op::Union(ops)
            }
            ExprKind::Negate(a) => Op::Negate(Box::new(self.op(a)?)),
            ExprKind::Binary(op, a, b) => {
                let mut both = Box::new((self.op(a)?, self.op(b)?));
                if op.is_comparison() && (both.0.ty(), both.1.ty()) == (Type::NodeSet, Type::NodeSet) {
                    *both = (self.once_compared(both.0), self.once_compared(both.1));
                }
                match op {
                    BinaryOp::Add
                    | BinaryOp::Subtract
                    | BinaryOp::Multiply
                    | BinaryOp::Divide
                    | BinaryOp::Modulo => match (&both.0, &both.1) {
                        (Op::Number(a), Op::Number(b)) => Op::Number(crate::number::arithmetic(*op, *a, *b)),
                        _ => Op::Arithmetic(*op, both),
                    },
                    _ => Op::Compare(*op, both),
                }
            }
            ExprKind::Call(name, args) => self.call(name, args, e.span)?,
            ExprKind::Filter(primary, predicates) => {
                let inner = self.op(primary)?;
                nodes_wanted(&inner, "a predicate", primary.span)?;
                let filter = self.predicates(predicates)?;
                self.path(From::Op(inner), filter, Vec::new(), e.span)
            }
            ExprKind::Path(start, steps) => {
                let (from, filter, mut plan) = match start {
                    Start::Root => {
                        self.uses.document = true;
                        (From::Root, Vec::new(), Vec::new())
                    }
                    Start::Context => {
                        self.uses.document = true;
                        (From::Context, Vec::new(), Vec::new())
                    }
                    Start::Expr(e) => {
                        let op = self.op(e)?;
                        nodes_wanted(&op, "a path", e.span).map_err(|e| e.with_code("XPTY0019"))?;
                        match op {
                            // `(a/b)/c` is `a/b/c`; a filter stays where it is.
                            Op::Path(p) => {
                                let Path { start, filter, steps, .. } = *p;
                                (start, filter.into_vec(), steps.into_vec())
                            }
                            other => (From::Op(other), Vec::new(), Vec::new()),
                        }
                    }
                };
                self.uses.document = true;
                for s in steps {
                    let test = self.test(&s.test, s.axis, s.span)?;
                    let predicates = self.predicates(&s.predicates)?;
                    plan.push(Step {
                        axis: s.axis,
                        test,
                        needs_size: false,
                        predicates: predicates.into(),
                        join: None,
                        break_one: false,
                        break_many: false,
                        overlaps_one: false,
                        overlaps_many: false,
                        span: s.span,
                    });
                }
                self.path(from, filter, plan, e.span)
            }
            _ => return self.version2(e),
        })
    }

    pub fn ops(&mut self, items: &[Expr]) -> Compiled<Box<[Op]>> {
        items.iter().map(|e| self.op(e)).collect()
    }

    fn no_later_than_nodes(&self, item: &Expr) -> Compiled<()> {
        match item.kind {
            ExprKind::Number(_) | ExprKind::Literal(_) => {
                Err(XPathError::new("`|` joins node-sets only", item.span))
            }
            _ => Ok(()),
        }
    }

    /// Rewrites, analyses and packs a path.
    pub(crate) fn path(&mut self, start: From, filter: Vec<Predicate>, steps: Vec<Step>, span: Span) -> Op {
        let mut steps = join_descendant_steps(steps);
        let filter_single =
            matches!(filter.last(), Some(Predicate::Position(_) | Predicate::Last | Predicate::Never));
        let from_one = analyse(&mut steps, Shape::ONE, |s, b, o| (s.break_one, s.overlaps_one) = (b, o));
        let many = match &start {
            From::Op(Op::Current(_)) => Shape::ONE,
            From::Op(_) if !filter_single => Shape::SET,
            _ => Shape::ONE,
        };
        let from_many = analyse(&mut steps, many, |s, b, o| (s.break_many, s.overlaps_many) = (b, o));
        // The value of a variable of the expression (an `Op::Sequence`) or of an extension function may change.
        let fixed = match &start {
            From::Root | From::Op(Op::Current(_)) => true,
            From::Op(Op::Extension(_, args, .., results)) => args.is_empty() && *results == Results::Stay,
            From::Op(op @ (Op::Sequence(_) | Op::Variable(..))) => is_invariant(op),
            _ => false,
        };
        let invariant = fixed && self.is_steady();
        let direct = is_direct(&start, &filter, &steps);
        self.find_joins(&mut steps, direct);
        let filter_join = match &start {
            From::Op(list) => self.join_of_list(list, &filter),
            _ => None,
        };
        let join = self.join_of_values(&start, &filter, &steps);
        let is_condition =
            |predicate: &Predicate| !matches!(predicate, Predicate::Position(_) | Predicate::Last);
        let plain = direct && !steps.iter().any(|step| step.predicates.iter().any(is_condition));
        let dot = matches!(start, From::Context)
            && filter.is_empty()
            && matches!(&*steps, [step] if step.axis == Axis::SelfAxis && step.test == Test::Node && step.predicates.is_empty());
        Op::Path(Box::new(Path {
            direct,
            plain,
            dot,
            start,
            filter: filter.into(),
            filter_join,
            join,
            steps: steps.into(),
            from_one,
            from_many,
            invariant,
            span,
        }))
    }

    pub fn predicates(&mut self, predicates: &[Expr]) -> Compiled<Vec<Predicate>> {
        let outer = self.uses;
        let mut out = Vec::with_capacity(predicates.len());
        for p in predicates {
            if self.options.version.is_version2() {
                out.push(self.version2_predicate(p)?);
                continue;
            }
            let op = self.repeatedly(|c| c.op(p))?;
            out.push(match op {
                Op::Number(n) => position(n),
                Op::Call(Core::Last, ..) => Predicate::Last,
                Op::Compare(BinaryOp::Equal, both) => match *both {
                    (Op::Call(Core::Position, ..), Op::Number(n))
                    | (Op::Number(n), Op::Call(Core::Position, ..)) => position(n),
                    (Op::Call(Core::Position, ..), Op::Call(Core::Last, ..))
                    | (Op::Call(Core::Last, ..), Op::Call(Core::Position, ..)) => Predicate::Last,
                    other => Predicate::Boolean(Op::Compare(BinaryOp::Equal, Box::new(other))),
                },
                op if op.ty() == Type::Number => Predicate::Number(op),
                op if op.ty() == Type::Any => Predicate::Any(op),
                op => Predicate::Boolean(op),
            });
        }
        // Position and size inside a predicate are the predicate's own.
        self.uses = Uses { document: self.uses.document, ..outer };
        Ok(out)
    }

    fn test(&mut self, test: &NodeTest, axis: Axis, span: Span) -> Compiled<Test> {
        Ok(match test {
            NodeTest::Node => Test::Node,
            NodeTest::Text => Test::Text,
            NodeTest::Comment => Test::Comment,
            NodeTest::NamespaceNode => Test::NamespaceNode,
            NodeTest::ProcessingInstruction(t) => Test::ProcessingInstruction(t.as_deref().map(Box::from)),
            NodeTest::AnyName => Test::Any,
            NodeTest::AnyLocal(prefix) => Test::Namespace(self.namespace(prefix, span)?.into()),
            NodeTest::Name(name) => {
                let uri = if name.prefix.is_empty() && matches!(axis, Axis::Attribute | Axis::Namespace) {
                    String::new()
                } else if name.prefix.is_empty() {
                    self.options.default_element_namespace.to_string()
                } else {
                    self.namespace(&name.prefix, span)?
                };
                Test::Name(self.names.intern(&uri, &name.local))
            }
            NodeTest::AnyNamespace(local) => Test::Local(local.as_str().into()),
            NodeTest::Element(name) => {
                Test::Kind(NodeKind::Element, self.element_name(name.as_ref(), true, span)?)
            }
            NodeTest::Attribute(name) => {
                Test::Kind(NodeKind::Attribute, self.element_name(name.as_ref(), false, span)?)
            }
            NodeTest::Document(None) => Test::Kind(NodeKind::Document, None),
            NodeTest::Document(Some(inner)) => match &**inner {
                NodeTest::Element(name) => Test::DocumentOf(self.element_name(name.as_ref(), true, span)?),
                _ => Test::Kind(NodeKind::Document, None),
            },
        })
    }

    /// The name in a kind test.
    fn element_name(&mut self, name: Option<&QName>, element: bool, span: Span) -> Compiled<Option<u32>> {
        let Some(name) = name else { return Ok(None) };
        let uri = match name.prefix.as_str() {
            "" if element => self.options.default_element_namespace.to_string(),
            "" => String::new(),
            prefix => self.namespace(prefix, span)?,
        };
        Ok(Some(self.names.intern(&uri, &name.local)))
    }

    pub fn lookup<'p>(&'p self, prefix: &'p str) -> Option<&'p str> {
        if prefix == "xml" {
            return Some("http://www.w3.org/XML/1998/namespace");
        }
        if let Some(uri) = prefix.strip_prefix('{') {
            return Some(uri);
        }
        let declared = self.options.namespaces.namespace(prefix);
        match self.options.version {
            Version::V31 => declared.or_else(|| crate::sequence::functions::usual_namespace(prefix)),
            _ => declared,
        }
    }

    pub fn namespace(&self, prefix: &str, span: Span) -> Compiled<String> {
        match self.lookup(prefix) {
            Some(uri) => Ok(uri.to_string()),
            None => {
                Err(XPathError::new(format!("the prefix `{prefix}` is not declared"), span)
                    .with_code("XPST0081"))
            }
        }
    }

    pub fn extension_name(&self, name: &QName, slot: u32) -> ExtensionName {
        let uri = if name.prefix.is_empty() { None } else { self.lookup(&name.prefix) };
        let uri = uri.filter(|uri| !uri.is_empty() || !name.prefix.starts_with('{'));
        ExtensionName {
            prefix: name.prefix.as_str().into(),
            uri: uri.map(Box::from),
            local: name.local.as_str().into(),
            slot,
        }
    }

    pub fn variable(&mut self, name: &QName, span: Span) -> Compiled<Op> {
        if let Some(local) = self.local(name, span) {
            return Ok(local);
        }
        let mut ext = self.extension_name(name, 0);
        let info = self.options.library.variable(&ext.prefix, ext.uri.as_deref(), &ext.local);
        let Some(info) = info.filter(|_| !self.inside_equivalent) else {
            return Err(
                XPathError::new(format!("there is no variable `${name}`"), span).with_code("XPST0008")
            );
        };
        ext.slot = info.slot;
        let same_as = match &info.same_as {
            None => None,
            Some(src) => {
                let place = |e: XPathError| {
                    XPathError::new(format!("the expression behind `${name}` is wrong: {}", e.message), span)
                };
                let ast = crate::parser::parse(src, self.options.version).map_err(place)?;
                self.inside_equivalent = true;
                let uses = self.uses;
                let op = self.op(&ast);
                self.uses = uses;
                self.inside_equivalent = false;
                Some(op.map_err(place)?)
            }
        };
        self.uses.document |= info.reads_document;
        let index = match self.variables.iter().position(|v| v.name == ext) {
            Some(i) => i,
            None => {
                self.variables.push(VariableRef { name: ext, reads_document: info.reads_document, same_as });
                self.variables.len() - 1
            }
        };
        Ok(Op::Variable(index as u32, info.returns, span))
    }

    pub fn call(&mut self, name: &QName, args: &[Expr], span: Span) -> Compiled<Op> {
        let version2 = self.options.version.is_version2();
        if args.iter().any(|arg| matches!(arg.kind, ExprKind::Placeholder)) {
            return self.partial_call(name, args, span);
        }
        if version2 {
            if let Some(op) = self.version2_call(name, args, span)? {
                return Ok(op);
            }
        } else if name.prefix.is_empty() && Core::find(&name.local).is_some() {
            return self.core(&name.local, args, span);
        }
        let mut ext = self.extension_name(name, 0);
        match self.library_function(&ext.prefix, ext.uri.as_deref(), &ext.local, args.len()) {
            Function::Unknown if version2 && ext.uri.is_none() && !name.prefix.is_empty() => {
                let message = format!("the prefix `{}` is not declared", name.prefix);
                Err(XPathError::new(message, span).with_code("XPST0081"))
            }
            Function::Unknown => {
                let alike = |k: &&str| similar(k, &name.local);
                let similar_name = match version2 {
                    true => crate::sequence::functions::names().find(alike),
                    false => Core::names().find(alike),
                };
                let similar_name = similar_name
                    .or_else(|| self.options.library.names().into_iter().find(|name| alike(name)));
                let hint = match similar_name {
                    Some(k) => format!("; did you mean `{k}`?"),
                    None if !version2 && crate::sequence::functions::find(&name.local).is_some() => {
                        " (XPath 2.0 has it, but the expression is XPath 1.0)".to_owned()
                    }
                    None => String::new(),
                };
                Err(XPathError::new(format!("there is no function `{name}()`{hint}"), span)
                    .with_code("XPST0017"))
            }
            Function::Unavailable(why) => {
                Err(XPathError::new(format!("`{name}()`: {why}"), span).with_code("XPST0017"))
            }
            Function::WrongArity(wanted) => Err(XPathError::new(
                format!("`{name}()` with {} argument(s): expected {wanted}", args.len()),
                span,
            )
            .with_code("XPST0017")),
            Function::Core => match crate::sequence::functions::find(&name.local).filter(|_| version2) {
                Some(entry) => self.function(entry, args, span),
                None => self.core(&name.local, args, span),
            },
            Function::Current if args.is_empty() => {
                self.uses.document = true;
                Ok(Op::Current(span))
            }
            Function::Current => Err(XPathError::new("`current()` takes no arguments", span)),
            Function::Extension(info) => {
                ext.slot = info.slot;
                if info.results == Results::Change {
                    self.changes += 1;
                }
                self.uses.document |= info.reads_document;
                let args = self.ops(args)?;
                let index = match self.functions.iter().position(|f| *f == ext) {
                    Some(i) => i,
                    None => {
                        self.functions.push(ext);
                        self.function_reads.push(info.reads_document);
                        self.functions.len() - 1
                    }
                };
                Ok(Op::Extension(index as u32, args, info.returns, span, info.results))
            }
        }
    }

    fn core(&mut self, name: &str, args: &[Expr], span: Span) -> Compiled<Op> {
        let Some((core, min, max)) = Core::find(name) else {
            return Err(XPathError::new(format!("there is no function `{name}()`"), span));
        };
        if args.len() < min || args.len() > max {
            let wanted = arity(min, max);
            return Err(XPathError::new(
                format!("`{name}()` with {} argument(s): expected {wanted}", args.len()),
                span,
            ));
        }
        let ops = self.ops(args)?;
        match core {
            Core::Position => self.uses.position = true,
            Core::Last => self.uses.size = true,
            Core::Id | Core::Lang => self.uses.document = true,
            _ if core.defaults_to_context() && ops.is_empty() => self.uses.document = true,
            _ => {}
        }
        if core.wants_nodes()
            && let Some(first) = ops.first()
        {
            nodes_wanted(first, &format!("`{name}()`"), args[0].span)?;
        }
        Ok(Op::Call(core, ops, span))
    }
}

/// A number of arguments, for a message.
pub(crate) fn arity(least: usize, most: usize) -> String {
    match (least, most) {
        (0, 0) => "none".to_string(),
        (a, b) if a == b => a.to_string(),
        (a, usize::MAX) => format!("at least {a}"),
        (a, b) => format!("{a} to {b}"),
    }
}

/// A number as a predicate.
pub(crate) fn position(n: f64) -> Predicate {
    if n >= 1.0 && n.fract() == 0.0 && n < 1e15 { Predicate::Position(n as usize) } else { Predicate::Never }
}

fn nodes_wanted(op: &Op, by: &str, span: Span) -> Compiled<()> {
    match op.ty() {
        Type::NodeSet | Type::Any => Ok(()),
        other => Err(XPathError::new(format!("{by} needs a node-set, this is a {}", other.name()), span)),
    }
}

/// `descendant-or-self::node()/child::x` is `descendant::x` unless a predicate of `x` counts siblings.
fn join_descendant_steps(steps: Vec<Step>) -> Vec<Step> {
    let mut out: Vec<Step> = Vec::with_capacity(steps.len());
    for step in steps {
        let after_all = out.last().is_some_and(|s| {
            s.axis == Axis::DescendantOrSelf && s.test == Test::Node && s.predicates.is_empty()
        });
        let joined = match step.axis {
            Axis::Child | Axis::Descendant => Axis::Descendant,
            Axis::SelfAxis | Axis::DescendantOrSelf => Axis::DescendantOrSelf,
            other => other,
        };
        if after_all
            && matches!(joined, Axis::Descendant | Axis::DescendantOrSelf)
            && !step.predicates.iter().any(is_positional)
        {
            out.pop();
            out.push(Step { axis: joined, ..step });
        } else {
            out.push(step);
        }
    }
    for i in 1..out.len() {
        let down = matches!(out[i].axis, Axis::Child | Axis::Descendant | Axis::Attribute);
        let all = &mut out[i - 1];
        if down && all.axis == Axis::DescendantOrSelf && all.test == Test::Node && all.predicates.is_empty() {
            all.test = Test::Parent;
        }
    }
    out
}

pub(crate) fn is_positional(p: &Predicate) -> bool {
    match p {
        Predicate::Boolean(op) => {
            let uses = context_use(op);
            uses.position || uses.size
        }
        _ => true,
    }
}

/// Whether `op` uses the position or the size of its own context.
pub(crate) fn context_use(op: &Op) -> Uses {
    let mut uses = Uses::default();
    fn walk(op: &Op, uses: &mut Uses) {
        match op {
            Op::Number(_) | Op::Text(_) | Op::Variable(..) | Op::Current(_) => {}
            Op::Sequence(s) => {
                match &s.kind {
                    Seq::Call(entry, _) => {
                        uses.position |= entry.looks.at_position();
                        uses.size |= entry.looks.at_size();
                    }
                    // `position#0`
                    Seq::Function(code, _) if code.sees_context => {
                        uses.position |= code.program.uses.position;
                        uses.size |= code.program.uses.size;
                    }
                    _ => {}
                }
                s.operands().into_iter().for_each(|o| walk(o, uses));
            }
            Op::Or(items) | Op::And(items) | Op::Union(items) => items.iter().for_each(|o| walk(o, uses)),
            Op::Compare(_, both) | Op::Arithmetic(_, both) => {
                walk(&both.0, uses);
                walk(&both.1, uses);
            }
            Op::Negate(a) => walk(a, uses),
            Op::Path(p) => {
                if let From::Op(start) = &p.start {
                    walk(start, uses);
                }
            }
            Op::Call(core, args, _) => {
                uses.position |= *core == Core::Position;
                uses.size |= *core == Core::Last;
                args.iter().for_each(|o| walk(o, uses));
            }
            // Extension functions get the context; those of which the results follow the context item at most use nothing else of it.
            Op::Extension(_, args, .., results) => {
                if *results == Results::Change {
                    *uses = Uses { position: true, size: true, ..*uses };
                }
                args.iter().for_each(|o| walk(o, uses));
            }
        }
    }
    walk(op, &mut uses);
    uses
}

/// Computes the shape after the last step and where duplicates must be removed in between.
fn analyse(steps: &mut [Step], start: Shape, mut set_break: impl FnMut(&mut Step, bool, bool)) -> Shape {
    let mut shape = start;
    let count = steps.len();
    for (i, step) in steps.iter_mut().enumerate() {
        step.needs_size = step.predicates.iter().any(|p| match p {
            Predicate::Last => true,
            Predicate::Number(op) | Predicate::Boolean(op) | Predicate::Any(op) => context_use(op).size,
            _ => false,
        });
        let before = shape;
        shape = shape.step(step.axis);
        let one_at_most =
            step.predicates.iter().any(|p| matches!(p, Predicate::Position(_) | Predicate::Last))
                || step.axis == Axis::Attribute && matches!(step.test, Test::Name(_));
        if before.single && one_at_most {
            shape = Shape::ONE;
        }
        let must_break = !shape.distinct && i + 1 < count;
        let spreads = matches!(
            step.axis,
            Axis::FollowingSibling
                | Axis::PrecedingSibling
                | Axis::Following
                | Axis::Preceding
                | Axis::Descendant
                | Axis::DescendantOrSelf
        );
        let overlaps =
            spreads && !before.single && !shape.distinct && !step.predicates.iter().any(is_positional);
        set_break(step, must_break, overlaps);
        if overlaps {
            // Subtrees within others are skipped, so that no node is met twice; the order is restored after the step.
            shape.distinct = true;
        }
        if must_break {
            shape = Shape::SET;
        }
    }
    shape
}

/// Whether names differ in case, hyphens or one letter only.
pub(crate) fn similar(a: &str, b: &str) -> bool {
    let plain = |s: &str| s.chars().filter(|c| *c != '-').map(|c| c.to_ascii_lowercase()).collect::<Vec<_>>();
    let (a, b) = (plain(a), plain(b));
    if a == b {
        return true;
    }
    if a.len().abs_diff(b.len()) > 1 || a.len() < 4 {
        return false;
    }
    let head = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let tail = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
    head + tail + 1 >= a.len().max(b.len())
}
