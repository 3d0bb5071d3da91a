//! Evaluation while the document is being read, with early decision.
//!
//! An expression is streamable when its value is a boolean, a number or a string and its paths only look forwards:
//! `child`, `descendant`, `descendant-or-self`, `self`, `attribute`, with name tests, positions, and predicates that look
//! at attributes or into the element itself. [`StreamPlan`] is such an expression compiled; [`Run`] is one evaluation,
//! fed the events of a document in order. After each event [`Run::decision`] says whether the answer is fixed: what comes
//! later in the document cannot change it, and reading may stop.
//!
//! ```
//! use busbar_xpath::{CompileOptions, Decision, Expression};
//! let e = Expression::compile("//symbol = 'IBM'", &CompileOptions::default()).unwrap();
//! let plan = e.streaming().unwrap();
//! let mut run = plan.start(&()).unwrap();
//! run.start_element("", "order", &());
//! run.start_element("", "symbol", &[("", "exchange", "NYSE")]);
//! run.text("IBM");
//! assert_eq!(run.decision(), Decision::Undecided);
//! run.end_element();
//! assert_eq!(run.decision(), Decision::True);
//! ```
//!
//! [`Run::read`] does all this for bytes as they arrive, and far faster: the tokenizer skips everything that no
//! state of the run waits for.
//!
//! Memory is bounded by the depth of the document, the size of the expression and the text being compared; the latter
//! two by limits whose excess is [`Decision::Failed`].

mod class;
mod known;
mod lower;
mod run;

pub use run::Run;

use crate::ast::BinaryOp;
use crate::compile::Program;
use crate::context::{Context, Host};
use crate::error::{NotStreamable, XPathError};
use crate::eval::Eval;
use crate::plan::{Core, Op};
use crate::value::Value;
use known::Known;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use xml::Interest;

/// The result type of a streamed expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamAs {
    /// Its value; a node-set is not streamable.
    Value = 0,
    /// `boolean()` of its value.
    Boolean = 1,
    /// `string()` of its value: of a node-set that of the first node.
    String = 2,
    /// Its value; of a node-set the text of the only node: of an attribute its value, of an element its own text without
    /// that of its descendants and without the white space around. Empty if there is no node. Where there are several, or one without such a
    /// text, the run fails with a limit and the tree has to be used: the host determines their meaning.
    Text = 3,
}

impl StreamAs {
    /// The number of result types.
    pub(crate) const COUNT: usize = 4;
}

/// The context node of relative paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamContext {
    /// The document node.
    Document = 0,
    /// The document element.
    RootElement = 1,
    /// The document element, which is a SOAP envelope: no `Header` follows once its `Body` begins (SOAP 1.1 section 4, SOAP 1.2 part 1
    /// section 5), so that what reads the header is decided there.
    Envelope = 2,
}

impl StreamContext {
    /// The number of context nodes.
    pub(crate) const COUNT: usize = 3;
}

/// The state of the decision.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// More of the document is needed.
    Undecided,
    /// The value is true, whatever follows.
    True,
    /// The value is false, whatever follows.
    False,
    /// The value is this number or string, whatever follows.
    Value(Value),
    /// A limit was reached or the host failed; the tree may still answer.
    Failed(XPathError),
}

/// The attributes of a start tag, namespace declarations excluded.
pub trait Attributes {
    /// Calls `f` with namespace, local name and value of each attribute in order until it returns `false`.
    fn each(&self, f: &mut dyn FnMut(&str, &str, &str) -> bool);
}

impl Attributes for xml::Attributes<'_> {
    fn each(&self, f: &mut dyn FnMut(&str, &str, &str) -> bool) {
        let _ = self.into_iter().all(|a| f(a.name.namespace(), a.name.local(), a.value));
    }
}

/// No attributes.
impl Attributes for () {
    fn each(&self, _: &mut dyn FnMut(&str, &str, &str) -> bool) {}
}

impl Attributes for &[(&str, &str, &str)] {
    fn each(&self, f: &mut dyn FnMut(&str, &str, &str) -> bool) {
        let _ = self.iter().all(|(ns, local, value)| f(ns, local, value));
    }
}

impl<const N: usize> Attributes for [(&str, &str, &str); N] {
    fn each(&self, f: &mut dyn FnMut(&str, &str, &str) -> bool) {
        self.as_slice().each(f);
    }
}

/// A streamable expression, compiled.
#[derive(Debug)]
pub struct StreamPlan {
    /// Different for each plan: cached states of a run belong to one plan.
    id: u64,
    /// The name tests of elements, with their bits.
    tests: Vec<(ItemTest, u32)>,
    /// The classes of the bodies of an envelope whose header is waited for.
    bodies: u32,
    program: Arc<Program>,
    /// The whole expression first, then predicates.
    scopes: Vec<ScopePlan>,
    /// Parts that do not use the document, evaluated once at the start.
    constants: Vec<Op>,
}

impl StreamPlan {
    pub(crate) fn compile(
        program: &Arc<Program>,
        wanted: StreamAs,
        context: StreamContext,
    ) -> Result<StreamPlan, NotStreamable> {
        let (mut scopes, constants) = lower::lower(program, wanted, context)?;
        let steps = scopes.iter_mut().flat_map(|s| &mut s.leaves).flat_map(|l| &mut l.path);
        let mut tests = class::number(steps);
        let bodies = if context == StreamContext::Envelope { class::bodies(&mut tests) } else { 0 };
        let id = PLANS.fetch_add(1, Ordering::Relaxed);
        Ok(StreamPlan { id, tests, bodies, program: program.clone(), scopes, constants })
    }

    /// Begins an evaluation. The host provides variables and functions now, once.
    pub fn start(&self, host: &dyn Host) -> Result<Run<'_>, XPathError> {
        let cx = Context::without_document(host);
        let eval = Eval::new(&self.program, &cx);
        let mut constants = Vec::with_capacity(self.constants.len());
        for op in &self.constants {
            constants.push(eval.value(op, eval.frame()).map_err(|e| *e)?);
        }
        let comparable =
            constants.iter().map(|v| Known::from_value(v, &cx)).collect::<Result<Vec<_>, _>>()?;
        Ok(Run::new(self, constants, comparable))
    }
}

static PLANS: AtomicU64 = AtomicU64::new(1);

/// An expression with its own context item: the whole, or a predicate of a step.
#[derive(Debug)]
struct ScopePlan {
    op: StreamOp,
    leaves: Vec<Leaf>,
    /// Every leaf is decided by the start tag (or the attribute) of the scope.
    immediate: bool,
}

/// An operation on the results of the leaves.
#[derive(Debug)]
enum StreamOp {
    Literal(Known),
    /// Index into [`StreamPlan::constants`].
    Constant(usize),
    /// Index into [`ScopePlan::leaves`].
    Leaf(usize),
    Position,
    Or(Vec<StreamOp>),
    And(Vec<StreamOp>),
    Compare(BinaryOp, Box<(StreamOp, StreamOp)>),
    Arithmetic(BinaryOp, Box<(StreamOp, StreamOp)>),
    Negate(Box<StreamOp>),
    Call(Core, Vec<StreamOp>),
    /// A predicate of unknown type: a number means the position.
    PositionOrTruth(usize),
}

/// A path and the use of its nodes.
#[derive(Debug)]
struct Leaf {
    kind: LeafKind,
    path: Vec<StreamStep>,
}

#[derive(Debug)]
enum LeafKind {
    /// Whether there is a node.
    Exists,
    /// Whether a node has a string-value that compares with this value.
    Compare(BinaryOp, StreamOp),
    Count,
    Sum,
    /// The string-value of the first node.
    First,
    /// The text of the only node, see [`StreamAs::Text`].
    Only,
    /// `local-name()` or `namespace-uri()` of the first node.
    FirstName(Core),
}

#[derive(Debug)]
struct StreamStep {
    kind: StepKind,
    test: ItemTest,
    predicates: Vec<StreamPredicate>,
    /// The classes of nodes that may pass the test (see [`class`]); if `exact`, all of them do.
    mask: u32,
    exact: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepKind {
    Child,
    Descendant,
    DescendantOrSelf,
    /// `descendant-or-self::node()/child::…`: anywhere below, positions counted among the children of each parent.
    ChildBelow,
    SelfItem,
    Attribute,
    /// `(path)[n]`: the n-th of all nodes that the path so far finds.
    Nth(usize),
}

#[derive(Debug)]
enum StreamPredicate {
    Position(usize),
    Never,
    /// A scope decided at once.
    Immediate(usize),
    /// A scope that looks into the element.
    Content(usize),
}

/// A node test on events.
#[derive(Debug, Clone, PartialEq)]
enum ItemTest {
    Node,
    Text,
    Comment,
    Instruction(Option<Box<str>>),
    /// Any element, or any attribute on the attribute axis.
    Any,
    Namespace(Box<str>),
    Name(Box<str>, Box<str>),
}

/// A node, as far as an event shows it.
#[derive(Clone, Copy)]
enum Item<'i> {
    Document,
    Element {
        ns: &'i str,
        local: &'i str,
        attributes: &'i dyn Attributes,
        class: u32,
    },
    Attribute {
        ns: &'i str,
        local: &'i str,
        value: &'i str,
    },
    /// Text begins; its value follows.
    Text,
    Comment(&'i str),
    Instruction(&'i str, &'i str),
}

impl StreamStep {
    fn new(kind: StepKind, test: ItemTest, predicates: Vec<StreamPredicate>) -> StreamStep {
        StreamStep { kind, test, predicates, mask: 0, exact: false }
    }

    /// Whether it finds only headers of envelopes in this namespace.
    fn finds_header(&self, namespace: &str) -> bool {
        matches!(&self.test, ItemTest::Name(uri, name) if &**name == "Header" && **uri == *namespace)
    }

    /// Whether an item passes the test.
    #[inline]
    fn meets(&self, item: &Item<'_>) -> bool {
        let class = match item {
            Item::Element { class, .. } => *class,
            Item::Text => Interest::TEXT,
            Item::Comment(_) => Interest::COMMENT,
            Item::Instruction(..) => Interest::INSTRUCTION,
            Item::Document | Item::Attribute { .. } => return self.test.matches(item),
        };
        class & self.mask != 0 && (self.exact || self.test.matches(item))
    }
}

impl ItemTest {
    #[inline]
    fn matches(&self, item: &Item<'_>) -> bool {
        match (self, item) {
            (
                ItemTest::Name(uri, name),
                Item::Element { ns, local, .. } | Item::Attribute { ns, local, .. },
            ) => **name == **local && **uri == **ns,
            (ItemTest::Any, Item::Element { .. } | Item::Attribute { .. }) => true,
            (ItemTest::Namespace(uri), Item::Element { ns, .. } | Item::Attribute { ns, .. }) => {
                **uri == **ns
            }
            (ItemTest::Node, _) | (ItemTest::Text, Item::Text) | (ItemTest::Comment, Item::Comment(_)) => {
                true
            }
            (ItemTest::Instruction(None), Item::Instruction(..)) => true,
            (ItemTest::Instruction(Some(wanted)), Item::Instruction(target, _)) => **wanted == **target,
            _ => false,
        }
    }
}
