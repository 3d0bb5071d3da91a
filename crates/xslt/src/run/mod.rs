//! Running a compiled stylesheet on a tree.
//!
//! [`Engine`] is one transformation: shared, immutable except for caches that only grow, so that functions called from
//! XPath can run templates too. The state of instructions (variables, the output) is passed along.

mod accumulators;
mod built_in;
mod construction;
mod docs;
mod dynamic;
mod evaluate;
mod evaluation;
mod fast;
mod functions;
mod groups;
mod host;
mod identity;
mod instructions;
mod items;
mod keys;
mod loading;
mod matching;
mod memo;
mod name_path;
mod nodes;
mod number;
mod options;
mod out;
mod results;
mod sequences;
mod simple;
mod sort;
mod step_values;
mod stream;
mod templates;
mod variables;
mod version2;
mod version3;
mod window;

pub use options::{RunLimits, RunOptions};
pub use stream::StreamStats;
pub(crate) use stream::run as run_stream;
pub(crate) use templates::MAX_PARAMETERS;
pub(crate) use window::Pump;

use crate::error::XsltError;
use crate::model::{Place, Plan};
use crate::names::{Name, Names};
use crate::stack;
use docs::Docs;
use dynamic::{Dynamic, NO_DYNAMIC};
use keys::KeyIndex;
use out::{Destination, Out};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use step_values::StepValues;
use templates::Tail;
use xml::{Builder, Document, NodeId};
use xpath::atomic::{Atomic, Moment};
use xpath::{DocId, Node, NodeSet, Value};

/// The names of all expressions: namespace and local name.
pub(crate) type Pool = [(Box<str>, Box<str>)];

type Res<T> = Result<T, Box<XsltError>>;

/// One transformation.
pub(crate) struct Engine<'e> {
    plan: &'e Plan,
    symbols: &'e Names,
    options: &'e RunOptions<'e>,
    docs: Docs<'e>,
    globals: Vec<OnceLock<Value>>,
    /// Globals under computation.
    busy: Vec<AtomicBool>,
    parameters: HashMap<Name, Value>,
    keys: Mutex<HashMap<(Name, DocId), Arc<KeyIndex>>>,
    /// Keys under construction.
    building: Mutex<HashSet<(Name, DocId)>>,
    loaded: Mutex<HashMap<String, Option<DocId>>>,
    steps: AtomicU64,
    /// A limit was exceeded: nothing catches that, or each level of a deep recursion could begin another one.
    exceeded: AtomicBool,
    /// By step and parent: the last child whose position a pattern counted, see `Engine::position`; the size, and the children
    /// that several predicates with positions selected.
    place: Mutex<StepValues<(NodeId, usize)>>,
    size: Mutex<StepValues<usize>>,
    kept: Mutex<StepValues<Vec<Node>>>,
    /// By step and node: whether the predicates of a step hold for an ancestor of the nodes that are matched.
    above: Mutex<StepValues<bool>>,
    /// The last node that `xsl:number` counted.
    counted: Mutex<number::CountedNumbers>,
    /// The last nodes that `path()` counted.
    positions: xpath::Positions,
    comparands: xpath::Comparands,
    /// While streaming: the open element.
    opening: Option<stream::Opening<'e>>,
    /// Context items that are not nodes, innermost last.
    atoms: Mutex<Vec<Atomic>>,
    /// The nodes of a document that a pattern selects, by the address of its expression.
    selected: Mutex<matching::SelectedNodes>,
    /// Values of accumulators.
    accumulated: accumulators::Accumulated,
    /// Cached results of functions.
    memo: memo::Memo,
    evaluated: evaluate::Evaluated,
    /// The dynamic context of instructions, innermost last.
    dynamics: Mutex<Vec<Arc<Dynamic>>>,
    /// Text nodes with `disable-output-escaping`; whether there are any.
    raw: Mutex<HashSet<Node>>,
    has_raw: AtomicBool,
    /// The time of `current-dateTime()`.
    now: OnceLock<Moment>,
    /// The results written by `xsl:result-document`, the same for all windows of a document.
    results: Arc<results::Written>,
}

/// The position of an instruction in the source document, and the depth.
#[derive(Clone, Copy)]
pub(crate) struct Focus {
    node: Node,
    position: u32,
    size: u32,
    /// The current template rule by its number in its mode ([`NO_RULE`]: none), and the mode, for `xsl:apply-imports` and
    /// `xsl:next-match`.
    rule: u32,
    mode: u32,
    depth: u32,
    /// The depth at which a new stack begins (or the limit is reached).
    next: u32,
    /// The number of the present [`Dynamic`] ([`NO_DYNAMIC`]: none).
    dynamic: u32,
}

impl Focus {
    /// A single node.
    fn new(node: Node, depth: u32, next: u32) -> Focus {
        Focus { node, position: 1, size: 1, rule: NO_RULE, mode: 0, depth, next, dynamic: NO_DYNAMIC }
    }
}

/// Instructions that are counted together, as that many units of work.
const TICKS: u64 = 16;

const UNITS: u64 = 64;

const NO_RULE: u32 = u32::MAX;

/// The variables of a running template.
#[derive(Default)]
pub(crate) struct Frame {
    /// In `func:function` the last one is its result.
    locals: SmallVec<[Value; 8]>,
    /// Passed parameters: a bit by slot.
    passed: u64,
    /// The tail call of the template: made when it has ended.
    tail: Option<Box<Tail>>,
    /// The next iteration of an `xsl:iterate`.
    control: Option<Box<version3::Control>>,
}

impl Frame {
    /// Makes room for a number of variables.
    #[inline]
    fn reserve(&mut self, slots: usize) {
        self.locals.extend(std::iter::repeat_with(|| Value::Empty).take(slots));
    }

    /// Whether it holds nothing that has to be dropped.
    #[inline]
    fn is_bare(&self) -> bool {
        !self.locals.spilled() && self.locals.is_empty() && self.tail.is_none() && self.control.is_none()
    }
}

/// How much a call from an expression counts towards the depth.
const EXPRESSION: u32 = 4;

/// Nesting that certainly fits into the stack of the calling thread. (Frames of debug builds are several times as
/// large.)
const FIRST_SEGMENT: u32 = if cfg!(debug_assertions) { 120 } else { 400 };

/// How much deeper it may go before the stack is checked again, in the calling thread and in one of its own.
const STRIDE: u32 = if cfg!(debug_assertions) { 10 } else { 50 };

const OWN_STRIDE: u32 = 1000;

impl<'e> Engine<'e> {
    pub fn new(
        compiled: (&'e Plan, &'e Names, &'e Pool),
        source: &'e Document,
        parameters: HashMap<Name, Value>,
        options: &'e RunOptions<'e>,
    ) -> Engine<'e> {
        let (plan, symbols, pool) = compiled;
        Engine {
            plan,
            symbols,
            options,
            docs: Docs::new(source, options.input_uri, plan.number, pool, &plan.names),
            globals: (0..plan.globals.len()).map(|_| OnceLock::new()).collect(),
            busy: (0..plan.globals.len()).map(|_| AtomicBool::new(false)).collect(),
            parameters,
            keys: Mutex::default(),
            building: Mutex::default(),
            loaded: Mutex::default(),
            steps: AtomicU64::new(0),
            exceeded: AtomicBool::new(false),
            place: Mutex::default(),
            size: Mutex::default(),
            kept: Mutex::default(),
            above: Mutex::default(),
            counted: Mutex::default(),
            positions: xpath::Positions::default(),
            comparands: xpath::Comparands::default(),
            opening: None,
            atoms: Mutex::default(),
            selected: Mutex::default(),
            accumulated: accumulators::Accumulated::default(),
            memo: memo::Memo::default(),
            evaluated: evaluate::Evaluated::default(),
            dynamics: Mutex::default(),
            raw: Mutex::default(),
            has_raw: AtomicBool::new(false),
            now: OnceLock::new(),
            results: Arc::default(),
        }
    }

    /// Transforms into a tree.
    pub fn to_tree(&self, node: NodeId) -> Res<Document> {
        let mut doc = Document::new();
        let mut out = Out::tree(Builder::new(&mut doc, Document::ROOT)).of(Destination::Principal);
        self.start(node, &mut out)?;
        self.end(&out)?;
        out.finish_tree();
        Ok(doc)
    }

    /// Transforms into bytes.
    pub fn to_bytes(&self, node: NodeId, bytes: &mut Vec<u8>) -> Res<()> {
        if self.plan.output.collects() && !self.options.as_xml {
            return self.collect(node, bytes).map(|_| ());
        }
        let start = bytes.len();
        let method = self.plan.writing.method();
        let method = if self.options.as_xml { method.or_xml() } else { method };
        let mut out = Out::bytes(bytes, method).of(Destination::Principal);
        self.start(node, &mut out)?;
        let is_result = self.end(&out)?;
        let written = out.finish();
        if !is_result {
            bytes.truncate(start);
            return Ok(());
        }
        written.map_err(|error| self.fail(self.plan.output_place, error.to_string()))?;
        Ok(())
    }

    fn start(&self, node: NodeId, out: &mut Out<'_>) -> Res<()> {
        let next = FIRST_SEGMENT.min(self.depth_limit());
        for global in &self.plan.globals {
            if let (Some(message), false) =
                (global.value.required(), self.parameters.contains_key(&global.name))
            {
                return Err(self.fail(global.place, message.to_owned()));
            }
        }
        if let Some(context) = &self.plan.global_context {
            if context.required && self.options.no_input {
                let message = "XTDE3086: the stylesheet needs a document";
                return Err(self.fail(context.place, message.into()));
            }
            if let (Some(declared), false) = (&context.declared, self.options.no_input) {
                let host = host::DocHost { engine: self };
                let root = Node::new(Document::ROOT);
                let cx = xpath::Context::at(self.doc(DocId(0)), root).with_host(&host);
                if !declared.ty.matches(&Value::from(root), &cx) {
                    let message = format!("XTTE0590: the global context item must be {}", declared.ty.text());
                    return Err(self.fail(context.place, message));
                }
            }
        }
        let name_id = |name: &str| match name.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            Some((namespace, local)) => self.symbols.find(namespace, local),
            None => self.symbols.find("", name),
        };
        let mode = match self.options.initial_mode {
            None | Some("#default") => self.plan.initial_mode,
            Some("#unnamed") => 0,
            Some(name) => {
                let found = name_id(name).and_then(|name| self.plan.mode_names.get(&name));
                let message = || format!("XTDE0045: the stylesheet has no mode \"{name}\"");
                *found.ok_or_else(|| self.fail(Place::default(), message()))?
            }
        };
        if let (Some(mode), None) = (self.plan.modes.get(mode), self.options.initial_template) {
            self.limit_accumulators(&mode.accumulators);
        }
        let node = if self.options.no_input { Node::ABSENT } else { Node::new(node) };
        let focus = Focus::new(node, 0, next);
        let Some(name) = self.options.initial_template else {
            if self.options.no_input {
                let message = "XTDE0040: without a document the transformation begins at a named template";
                return Err(self.fail(Place::default(), message.into()));
            }
            return stack::on_this(|| self.apply(focus, mode, &[], out));
        };
        let message = || format!("XTDE0040: the stylesheet has no template named \"{name}\"");
        let template = name_id(name).and_then(|name| self.plan.named.get(&name));
        let template = *template.ok_or_else(|| self.fail(Place::default(), message()))?;
        stack::on_this(|| self.run_template(template, (NO_RULE, mode as u32), &focus, &[], out))
    }

    /// Counts towards the limits: everything that can run for long passes here.
    #[inline]
    fn tick(&self, out: &Out<'_>) -> Res<()> {
        let steps = self.steps.load(Ordering::Relaxed) + 1;
        self.steps.store(steps, Ordering::Relaxed);
        if steps > self.options.limits.steps || out.written > self.options.limits.output {
            return Err(self.exhausted(steps));
        }
        if steps.is_multiple_of(TICKS) { self.spend(UNITS) } else { Ok(()) }
    }

    /// The same where nothing is written.
    fn tick_alone(&self) -> Res<()> {
        let steps = self.steps.load(Ordering::Relaxed) + 1;
        self.steps.store(steps, Ordering::Relaxed);
        if steps > self.options.limits.steps {
            return Err(self.exhausted(steps));
        }
        self.spend(UNITS / TICKS)
    }

    /// Counts work for the caller of the transformation ([`meter::spend`]).
    pub(super) fn spend(&self, units: u64) -> Res<()> {
        meter::spend(units).map_err(|stop| self.fail(Place::default(), stop.to_string()))
    }

    #[cold]
    fn exhausted(&self, steps: u64) -> Box<XsltError> {
        let message = if steps > self.options.limits.steps {
            format!("the limit of steps ({}) is exceeded", self.options.limits.steps)
        } else {
            format!("the limit on the size of the result ({} bytes) is exceeded", self.options.limits.output)
        };
        self.limit(Place::default(), message)
    }

    /// The depth guard: all nesting of a stylesheet passes here, or [`Engine::enter_from_expression`].
    #[inline(always)]
    fn enter<R: Send>(
        &self,
        focus: Focus,
        place: impl FnOnce() -> Place,
        go_on: impl FnOnce(Focus) -> Res<R> + Send,
    ) -> Res<R> {
        let focus = Focus { depth: focus.depth + 1, ..focus };
        if focus.depth >= focus.next {
            return self.deeper(focus, place(), go_on);
        }
        go_on(focus)
    }

    /// The same for calls from expressions and patterns, which have used an unknown amount of stack.
    #[inline(never)]
    fn enter_from_expression<R: Send>(
        &self,
        focus: Focus,
        place: Place,
        go_on: impl FnOnce(Focus) -> Res<R> + Send,
    ) -> Res<R> {
        self.deeper(Focus { depth: focus.depth + EXPRESSION, ..focus }, place, go_on)
    }

    /// At a depth where a new stack may have to begin: continues, unless it is too deep.
    #[cold]
    #[inline(never)]
    fn deeper<R: Send>(
        &self,
        focus: Focus,
        place: Place,
        go_on: impl FnOnce(Focus) -> Res<R> + Send,
    ) -> Res<R> {
        let limit = self.depth_limit();
        if focus.depth >= limit {
            return Err(self.limit(
                place,
                format!(
                    "XPDY0130: templates are nested too deeply (limit {}): an endless recursion?",
                    limit - 1
                ),
            ));
        }
        let further = |stride: u32| Focus { next: focus.depth.saturating_add(stride).min(limit), ..focus };
        if stack::is_left() {
            return go_on(further(STRIDE));
        }
        stack::on_new(|| go_on(further(OWN_STRIDE)))
    }

    /// The depth limit.
    fn depth_limit(&self) -> u32 {
        u32::try_from(self.options.limits.depth).unwrap_or(u32::MAX - 1) + 1
    }

    fn doc(&self, id: DocId) -> &Document {
        static EMPTY: OnceLock<Document> = OnceLock::new();
        self.docs.get(id).unwrap_or_else(|| EMPTY.get_or_init(Document::new))
    }

    /// The atomic value that is the context item.
    #[cold]
    fn kept_atom(&self, node: Node) -> Option<Atomic> {
        self.atoms.lock().ok()?.get(node.as_atomic()?).cloned()
    }

    /// A message without its code, where the language has none: XSLT 1.0.
    fn coded(&self, message: String) -> String {
        if self.plan.version2 {
            message
        } else {
            message[message.find(' ').map_or(0, |at| at + 1)..].to_owned()
        }
    }

    /// Whether a limit was exceeded: then the transformation fails.
    fn is_exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Relaxed)
    }

    /// The error of a limit, which `xsl:try` does not catch.
    #[cold]
    fn limit(&self, place: Place, message: String) -> Box<XsltError> {
        self.exceeded.store(true, Ordering::Relaxed);
        self.fail(place, message)
    }

    #[cold]
    fn fail(&self, place: Place, message: String) -> Box<XsltError> {
        let uri = self.plan.modules.get(place.module as usize).cloned().unwrap_or_default();
        Box::new(XsltError { message, uri, line: place.line, column: place.column, raised: None })
    }
}

/// Used by the functions on node-sets.
fn node_set(value: &Value) -> Option<NodeSet> {
    match value {
        Value::NodeSet(nodes) => Some(nodes.clone()),
        Value::Empty => Some(NodeSet::new()),
        _ => None,
    }
}
