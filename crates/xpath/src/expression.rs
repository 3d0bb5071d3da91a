//! The compiled expression and its evaluations.

use crate::ast::Expr;
use crate::compile::{NOTHING, Program, compile};
use crate::context::{Context, ExtensionName};
use crate::error::{NotStreamable, XPathError};
use crate::eval::Eval;
use crate::options::{CompileOptions, Version};
use crate::parser::parse;
use crate::sequence::single::is_single_operand;
use crate::stream::{StreamAs, StreamContext, StreamPlan};
use crate::value::{Item, Node, NodeSet, Type, Value};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// An expression, compiled once and evaluated often, from any thread.
#[derive(Debug)]
pub struct Expression {
    source: Box<str>,
    version: Version,
    pub(crate) program: Arc<Program>,
    streams: [OnceLock<Box<Result<StreamPlan, NotStreamable>>>; StreamAs::COUNT * StreamContext::COUNT],
    needs: Needs,
}

/// The needs of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    /// Any node of the document: the context node, paths, variables and functions that the library says read it.
    /// `false` means the message body need not be there at all.
    pub document: bool,
    /// The context position.
    pub position: bool,
    /// The context size.
    pub size: bool,
    /// Variables, each once.
    pub variables: Vec<ExtensionName>,
    /// Extension functions, each once.
    pub functions: Vec<ExtensionName>,
}

impl Expression {
    /// Compiles the source text. Syntax errors, unknown functions and variables, undeclared prefixes of names, wrong
    /// numbers of arguments and operands that can never fit are errors here.
    pub fn compile(src: &str, options: &CompileOptions<'_>) -> Result<Expression, XPathError> {
        Expression::from_ast(&parse(src, options.version)?, src, options)
    }

    /// Compiles a part of a syntax tree (a predicate of an XSLT pattern, say). `src` is the text the tree was parsed
    /// from; spans count in it.
    pub fn from_ast(ast: &Expr, src: &str, options: &CompileOptions<'_>) -> Result<Expression, XPathError> {
        let program = compile(ast, src, options)?;
        let needs = Needs {
            document: program.uses.document,
            position: program.uses.position,
            size: program.uses.size,
            variables: program.variables.iter().map(|v| v.name.clone()).collect(),
            functions: program.functions.clone(),
        };
        Ok(Expression {
            source: src.into(),
            version: options.version,
            program: Arc::new(program),
            streams: Default::default(),
            needs,
        })
    }

    /// The version of the language it was compiled as.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The source text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The static type of the result.
    pub fn returns(&self) -> Type {
        self.program.op.ty()
    }

    /// What evaluating it touches.
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// The plan that computes the value while the document is being read, from the document node as context node; or
    /// the reason why it cannot be streamed. A node-set cannot: use [`Expression::streaming_as`].
    pub fn streaming(&self) -> Result<&StreamPlan, NotStreamable> {
        self.streaming_as(StreamAs::Value, StreamContext::Document)
    }

    /// The same with the value converted by `boolean()` or `string()`, and from a choice of context nodes. Classified
    /// and compiled at the first call.
    pub fn streaming_as(
        &self,
        wanted: StreamAs,
        context: StreamContext,
    ) -> Result<&StreamPlan, NotStreamable> {
        let plan = &self.streams[wanted as usize * StreamContext::COUNT + context as usize];
        let plan = plan.get_or_init(|| Box::new(StreamPlan::compile(&self.program, wanted, context)));
        (**plan).as_ref().map_err(Clone::clone)
    }

    /// The value.
    pub fn evaluate(&self, cx: &Context<'_>) -> Result<Value, XPathError> {
        let eval = Eval::new(&self.program, cx);
        let found = eval.value(&self.program.op, eval.frame());
        eval.end();
        found.map_err(|e| *e)
    }

    /// The value; or, where the expression ends with a call of an extension function whose slot is in `slots`, that call: its
    /// slot and arguments, for a caller that makes it in place of this evaluation.
    #[allow(clippy::type_complexity)]
    pub fn evaluate_to_call(
        &self,
        cx: &Context<'_>,
        slots: std::ops::Range<u32>,
    ) -> Result<Result<Value, (u32, Vec<Value>)>, XPathError> {
        let eval = Eval::new(&self.program, cx);
        eval.value_or_call(&self.program.op, eval.frame(), &slots).map_err(|e| *e)
    }

    /// `boolean()` of the value; stops at the first node that decides.
    pub fn evaluate_boolean(&self, cx: &Context<'_>) -> Result<bool, XPathError> {
        let eval = Eval::new(&self.program, cx);
        let found = eval.boolean(&self.program.op, eval.frame());
        eval.end();
        found.map_err(|e| *e)
    }

    /// `number()` of the value.
    pub fn evaluate_number(&self, cx: &Context<'_>) -> Result<f64, XPathError> {
        let eval = Eval::new(&self.program, cx);
        let found = eval.number(&self.program.op, eval.frame());
        eval.end();
        found.map_err(|e| *e)
    }

    /// `string()` of the value: of a node-set that of its first node, borrowed where the document has it in one piece.
    pub fn evaluate_string<'a>(&'a self, cx: &'a Context<'a>) -> Result<Cow<'a, str>, XPathError> {
        let eval = Eval::new(&self.program, cx);
        let found = eval.string(&self.program.op, eval.frame());
        eval.end();
        found.map_err(|e| *e)
    }

    /// Whether it is an operation of XPath 2.0 or 3.1 on single values, or a path whose only node may be found without a list.
    pub fn is_single(&self) -> bool {
        self.program.version2 && !self.program.compatible && is_single_operand(&self.program.op)
    }

    /// The text of the value as `xs:string`, where the expression [is such an operation](Expression::is_single), and its value and its
    /// operands are single at run time. `None`: another evaluation is needed. Errors: those of the evaluation.
    pub fn evaluate_single_text<'a>(
        &'a self,
        cx: &'a Context<'a>,
    ) -> Result<Option<Cow<'a, str>>, XPathError> {
        if !self.is_single() {
            return Ok(None);
        }
        let eval = Eval::new(&self.program, cx);
        let found = eval.single_of(&self.program.op, eval.frame());
        eval.end();
        Ok(found.map_err(|e| *e)?.map(|single| single.into_text()))
    }

    /// The nodes in document order; an error if the value is not a node-set.
    pub fn evaluate_nodes(&self, cx: &Context<'_>) -> Result<Vec<Node>, XPathError> {
        let eval = Eval::new(&self.program, cx);
        self.wants_nodes()?;
        match &self.program.op {
            op if op.ty() == Type::NodeSet => eval.nodes(op, eval.frame()).map_err(|e| *e),
            op => match eval.value(op, eval.frame()).map_err(|e| *e)? {
                Value::NodeSet(set) => Ok(set.as_slice().to_vec()),
                Value::Empty => Ok(Vec::new()),
                // In the order of the sequence.
                Value::Sequence(items) if items.iter().all(|item| item.node().is_some()) => {
                    Ok(items.iter().filter_map(Item::node).collect())
                }
                other => Err(self.no_nodes(other.type_of())),
            },
        }
    }

    /// The first node in document order.
    pub fn evaluate_first(&self, cx: &Context<'_>) -> Result<Option<Node>, XPathError> {
        self.wants_nodes()?;
        let eval = Eval::new(&self.program, cx);
        eval.first(&self.program.op, eval.frame()).map_err(|e| *e)
    }

    fn wants_nodes(&self) -> Result<(), XPathError> {
        match self.returns() {
            Type::NodeSet | Type::Any => Ok(()),
            other => Err(self.no_nodes(other)),
        }
    }

    fn no_nodes(&self, ty: Type) -> XPathError {
        XPathError::new(format!("the result is a {}, not a node-set", ty.name()), 0..self.source.len())
    }
}

impl Value {
    /// `string()` of the value; nodes are resolved through the context.
    pub fn to_string_in<'a>(&self, cx: &'a Context<'a>) -> Result<Cow<'a, str>, XPathError> {
        Eval::new(&NOTHING, cx).value_string(self).map_err(|e| *e)
    }

    /// `number()` of the value.
    pub fn to_number_in(&self, cx: &Context<'_>) -> Result<f64, XPathError> {
        Eval::new(&NOTHING, cx).value_number(self).map_err(|e| *e)
    }
}

impl NodeSet {
    /// Nodes in any order, sorted into document order, duplicates removed.
    pub fn sorted(mut nodes: Vec<Node>, cx: &Context<'_>) -> Result<NodeSet, XPathError> {
        Eval::new(&NOTHING, cx).sort(&mut nodes).map_err(|e| *e)?;
        Ok(NodeSet::from_ordered(&nodes))
    }
}
