//! Running a compiled stylesheet on a tree.
//!
//! [`Engine`] is one transformation: shared, immutable except for caches that only grow, so that functions called from
//! XPath can run templates too. The state of instructions (variables, the output) is passed along.

mod accumulators;
mod docs;
mod fast;
mod host;
mod identity;
mod matching;
mod memo;
mod nodes;
mod number;
mod out;
mod results;
mod sort;
mod stream;
mod version2;
mod version3;
mod window;

use crate::arithmetic::{Arithmetic, Simple};
use crate::error::XsltError;
use crate::expr::{Expr, XPath};
use crate::model::{
    Argument, Avt, AvtPart, Binding, Declared, Instruction, Literal, Op, Place, Plan, Scope, Template,
};
use crate::names::{Name, NameStep, Names};
use crate::output::Method;
use crate::pattern::{NoMatch, Quick, Rules};
use crate::resolver::Resolver;
use crate::stack;
use docs::{Bound, Docs};
use host::ExprHost;
use host::KeyIndex;
use out::{Destination, Out};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use stream::Action;
use version2::{Dynamic, NO_DYNAMIC};
use xml::{Builder, Document, NodeId, NodeKind, WriteOptions};
use xpath::atomic::{Atomic, Moment};
use xpath::{Context, DocId, Expression, Node, NodeSet, Value, XPathError};

/// The names of all expressions: namespace and local name.
pub(crate) type Pool = [(Box<str>, Box<str>)];

type Res<T> = Result<T, Box<XsltError>>;

/// Limits of a transformation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// Nesting of instructions and templates. Default 60,000 (some 20,000 nested templates).
    pub depth: usize,
    /// Instructions executed. Default 2^40.
    pub steps: u64,
    /// Bytes of text and attribute values written, in all results together. Default 4 GiB.
    pub output: usize,
    /// Documents and result tree fragments of one transformation. Default 16 Mi.
    pub documents: usize,
    /// Documents of `xsl:result-document` of one transformation. Default 10,000.
    pub results: usize,
    /// Bytes of a document that are held at once when it is streamed. Default 128 KiB.
    pub window: usize,
}

impl Default for RunLimits {
    fn default() -> Self {
        LIMITS
    }
}

/// Options of a transformation.
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    /// Bounds.
    pub limits: &'a RunLimits,
    /// Finds the documents of `document()`; none by default.
    pub resolver: &'a dyn Resolver,
    /// Which parts of a document type declaration in them are read; none by default.
    pub dtd: &'a xml::Dtd,
    /// Receives the text of `xsl:message`; dropped by default.
    pub messages: Option<&'a (dyn Fn(&str) + Sync)>,
    /// Receives the documents of `xsl:result-document`; without it, one that has an `href` is an error.
    pub results: Option<&'a dyn crate::Results>,
    /// The input was parsed with [`crate::Stylesheet::strip_space`]: nothing is left to strip.
    pub stripped: bool,
    /// Where the result would decide the output method, it is XML, also for `html`.
    pub as_xml: bool,
    /// URI of the input, for relative references in it.
    pub input_uri: &'a str,
    /// The initial template: `local` or `{namespace}local`.
    pub initial_template: Option<&'a str>,
    /// The initial mode: the same, or `#unnamed`, `#default`.
    pub initial_mode: Option<&'a str>,
    /// There is no source document: no initial context item, and none for global variables.
    pub no_input: bool,
}

const LIMITS: RunLimits = RunLimits {
    depth: 60_000,
    steps: 1 << 40,
    output: 4 << 30,
    documents: 16 << 20,
    results: 10_000,
    window: 128 << 10,
};
static REFUSE: xml::Dtd = xml::Dtd::Refuse;

impl Default for RunOptions<'_> {
    fn default() -> Self {
        RunOptions {
            limits: const { &LIMITS },
            resolver: &crate::resolver::NoResolver,
            dtd: &REFUSE,
            messages: None,
            results: None,
            stripped: false,
            as_xml: false,
            input_uri: "",
            initial_template: None,
            initial_mode: None,
            no_input: false,
        }
    }
}

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
    /// The last position that a pattern counted, see `Engine::position`; the last size, and the last children that several
    /// predicates with positions selected.
    place: Mutex<Option<CountedPlace>>,
    size: Mutex<Option<(StepOfParent, usize)>>,
    kept: Mutex<Option<(StepOfParent, Vec<Node>)>>,
    /// The last node that `xsl:number` counted.
    counted: Mutex<number::CountedNumbers>,
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

/// Step (its address), document and parent; the child; its position among those that the step selects.
type CountedPlace = (StepOfParent, NodeId, usize);
type StepOfParent = (usize, DocId, NodeId);

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

pub use stream::StreamStats;
pub(crate) use stream::run as run_stream;
pub(crate) use window::Pump;

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

/// A tail call of a template.
struct Tail {
    template: usize,
    frame: Frame,
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

/// Names and values of `xsl:with-param`.
type Arguments = SmallVec<[(Name, Value); 8]>;

/// Most tail calls in a row.
const MAX_TAILS: usize = 10_000_000;

/// How much a call from an expression counts towards the depth.
const EXPRESSION: u32 = 4;

/// Most parameters of a template.
pub(crate) const MAX_PARAMETERS: usize = 64;

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
            place: Mutex::default(),
            size: Mutex::default(),
            kept: Mutex::default(),
            counted: Mutex::default(),
            opening: None,
            atoms: Mutex::default(),
            selected: Mutex::default(),
            accumulated: accumulators::Accumulated::default(),
            memo: memo::Memo::default(),
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
        out.finish();
        Ok(doc)
    }

    /// Transforms into bytes.
    pub fn to_bytes(&self, node: NodeId, bytes: &mut Vec<u8>) -> Res<()> {
        let start = bytes.len();
        let method = self.plan.writing.method();
        let method = if self.options.as_xml { method.or_xml() } else { method };
        let mut out = Out::bytes(bytes, method).of(Destination::Principal);
        self.start(node, &mut out)?;
        let is_result = self.end(&out)?;
        out.finish();
        if !is_result {
            bytes.truncate(start);
        }
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

    // Template rules.

    /// Applies the best template rule to the node of `focus`.
    fn apply(&self, focus: Focus, mode: usize, arguments: &[(Name, Value)], out: &mut Out<'_>) -> Res<()> {
        let rules = &self.plan.modes[mode];
        match self.find_rule(rules, &focus, 0..u32::MAX)? {
            Some(rule) => self.run_rule(rules.numbered(rule), mode, &focus, arguments, out),
            None => self.built_in(focus, mode, arguments, out),
        }
    }

    /// Runs a template rule: template and number.
    fn run_rule(
        &self,
        (template, rule): (usize, u32),
        mode: usize,
        focus: &Focus,
        arguments: &[(Name, Value)],
        out: &mut Out<'_>,
    ) -> Res<()> {
        if self.plan.templates[template].identity.is_some_and(|identity| identity.stays_in(mode))
            && !self.is_open(focus.node)
        {
            return self.identical((template, rule), mode, focus, false, out);
        }
        self.run_template(template, (rule, mode as u32), focus, arguments, out)
    }

    /// Runs a template; `rule`: the template rule and mode that are current in it.
    fn run_template(
        &self,
        template: usize,
        rule: (u32, u32),
        focus: &Focus,
        arguments: &[(Name, Value)],
        out: &mut Out<'_>,
    ) -> Res<()> {
        let template = &self.plan.templates[template];
        self.tick(out)?;
        if template.body.is_empty() && template.returns.is_none() {
            return Ok(());
        }
        let mut frame = Frame::default();
        if template.slots > 0 {
            frame.reserve(template.slots);
            for (name, slot) in &template.parameters {
                if let Some((_, value)) = arguments.iter().find(|(argument, _)| argument == name) {
                    frame.locals[*slot] = value.clone();
                    frame.passed |= 1 << slot;
                }
            }
        }
        self.run_body(template, rule, focus, &mut frame, out)?;
        match frame.tail.take() {
            // Most templates have no variables: nothing must be dropped, and a search for it would cost as much as the call.
            None if frame.is_bare() => {
                std::mem::forget(frame);
                Ok(())
            }
            None => Ok(()),
            Some(tail) => self.run_tails(tail, rule, focus, out),
        }
    }

    /// Runs the tail calls of a template, at the depth of the template.
    #[inline(never)]
    fn run_tails(&self, mut tail: Box<Tail>, rule: (u32, u32), focus: &Focus, out: &mut Out<'_>) -> Res<()> {
        for _ in 0..MAX_TAILS {
            self.tick(out)?;
            let Tail { template, frame } = &mut *tail;
            self.run_body(&self.plan.templates[*template], rule, focus, frame, out)?;
            match frame.tail.take() {
                None => return Ok(()),
                Some(next) => tail = next,
            }
        }
        let place = self.plan.templates[tail.template].place;
        Err(self.fail(
            place,
            format!("the template goes on with itself (limit {MAX_TAILS} times): an endless recursion?"),
        ))
    }

    /// `xsl:call-template`: the arguments are written to the slots of the template's parameters.
    fn call(
        &self,
        template: usize,
        arguments: &[Argument],
        focus: Focus,
        caller: &mut Frame,
        out: &mut Out<'_>,
    ) -> Res<()> {
        self.tick(out)?;
        let mut frame = Frame::default();
        self.fill_frame(&mut frame, template, arguments, focus, caller)?;
        let (template, rule) = (&self.plan.templates[template], (focus.rule, focus.mode));
        self.run_body(template, rule, &focus, &mut frame, out)?;
        match frame.tail.take() {
            None => Ok(()),
            Some(tail) => self.run_tails(tail, rule, &focus, out),
        }
    }

    /// Fills in the variables of a template that is called.
    #[inline]
    fn fill_frame(
        &self,
        frame: &mut Frame,
        template: usize,
        arguments: &[Argument],
        focus: Focus,
        caller: &mut Frame,
    ) -> Res<()> {
        let template = &self.plan.templates[template];
        frame.reserve(template.slots);
        for argument in arguments {
            let value = self.binding(&argument.value, focus, caller, argument.place)?;
            if let Some((_, slot)) = template.parameters.iter().find(|(name, _)| *name == argument.name) {
                frame.locals[*slot] = value;
                frame.passed |= 1 << slot;
            }
        }
        Ok(())
    }

    #[inline]
    fn run_body(
        &self,
        template: &Template,
        rule: (u32, u32),
        focus: &Focus,
        frame: &mut Frame,
        out: &mut Out<'_>,
    ) -> Res<()> {
        // The work of `exec` inline, so that a focus is copied once.
        let focus = Focus { rule: rule.0, mode: rule.1, depth: focus.depth + 1, ..*focus };
        if template.absent || template.returns.is_some() || focus.depth >= focus.next {
            return self.run_body_with_care(template, Focus { depth: focus.depth - 1, ..focus }, frame, out);
        }
        self.exec_here(&template.body, &focus, frame, out)
    }

    /// As [`Engine::run_body`], of a template whose result has a type, that has no focus, or at a depth where the stack is checked.
    #[cold]
    #[inline(never)]
    fn run_body_with_care(
        &self,
        template: &Template,
        mut focus: Focus,
        frame: &mut Frame,
        out: &mut Out<'_>,
    ) -> Res<()> {
        if template.absent {
            focus = Focus { node: Node::ABSENT, position: 0, size: 0, rule: NO_RULE, ..focus };
        }
        if let Some(declared) = &template.returns {
            return self.typed_result(template, declared, focus, frame, out);
        }
        self.exec(&template.body, focus, frame, out)
    }

    /// Runs a template whose result has a declared type: the result is collected, then written.
    #[cold]
    fn typed_result(
        &self,
        template: &Template,
        declared: &Declared,
        focus: Focus,
        frame: &mut Frame,
        out: &mut Out<'_>,
    ) -> Res<()> {
        let destination = match out.destination() {
            Destination::Temporary => Destination::Temporary,
            // It may write results of its own.
            _ => Destination::Further,
        };
        let value = self.sequence_to(&template.body, focus, frame, template.place, destination)?;
        let value = self.converted(value, declared, declared.code, template.place)?;
        self.write_items(&value, false, out, template.place)?;
        Ok(())
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

    /// Counts work for the caller of the transformation ([`meter::spend`]).
    pub(super) fn spend(&self, units: u64) -> Res<()> {
        meter::spend(units).map_err(|stop| self.fail(Place::default(), stop.to_string()))
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

    #[cold]
    fn exhausted(&self, steps: u64) -> Box<XsltError> {
        let message = if steps > self.options.limits.steps {
            format!("the limit of steps ({}) is exceeded", self.options.limits.steps)
        } else {
            format!("the limit on the size of the result ({} bytes) is exceeded", self.options.limits.output)
        };
        self.fail(Place::default(), message)
    }

    /// The built-in rules (section 5.8).
    /// Those of XSLT 2.0 pass parameters on.
    fn built_in(&self, focus: Focus, mode: usize, arguments: &[(Name, Value)], out: &mut Out<'_>) -> Res<()> {
        let arguments = if self.plan.version2 { arguments } else { &[] };
        let node = focus.node;
        let no_match = self.plan.modes[mode].no_match;
        if node.doc == DocId::ATOMIC {
            return self.no_match_of_item(no_match, focus, mode, arguments, out);
        }
        let doc = self.doc(node.doc);
        if node.is_namespace() {
            if matches!(no_match, NoMatch::ShallowCopy | NoMatch::DeepCopy) {
                self.copy_deep(node, out);
            }
            return Ok(());
        }
        if no_match != NoMatch::TextOnlyCopy {
            return self.no_match(no_match, focus, mode, arguments, out);
        }
        match doc.kind(node.id) {
            NodeKind::Document | NodeKind::Element => self.apply_children(focus, mode, arguments, out),
            NodeKind::Text | NodeKind::Attribute => {
                out.text(doc.text(node.id), false);
                Ok(())
            }
            NodeKind::Comment | NodeKind::ProcessingInstruction => Ok(()),
        }
    }

    /// The built-in rules for items that are not nodes.
    #[cold]
    fn no_match_of_item(
        &self,
        way: NoMatch,
        focus: Focus,
        mode: usize,
        arguments: &[(Name, Value)],
        out: &mut Out<'_>,
    ) -> Res<()> {
        let Some(item) = self.item(focus.node) else { return Ok(()) };
        match (way, &item) {
            (NoMatch::Fail, _) => {
                let message = "XTDE0555: an item has no template rule in this mode";
                Err(self.fail(Place::default(), message.into()))
            }
            (NoMatch::DeepSkip, _) => Ok(()),
            // Rules are applied to the members.
            (NoMatch::TextOnlyCopy | NoMatch::ShallowSkip, xpath::Item::Atomic(Atomic::Array(array))) => {
                let mark = self.mark();
                let members = Value::from_items(array.members().flat_map(Value::items).collect());
                let nodes = self.kept(&members);
                self.enter(focus, Place::default, |focus| {
                    self.apply_nodes(&nodes, mode, arguments, focus, out)
                })?;
                self.release(mark);
                Ok(())
            }
            (NoMatch::ShallowSkip, _) => Ok(()),
            (NoMatch::TextOnlyCopy, xpath::Item::Atomic(atom)) if atom.is_function() => Ok(()),
            (NoMatch::TextOnlyCopy, item) => {
                out.text(&self.item_text(item), false);
                Ok(())
            }
            _ => self.write_items(&Value::from(item), true, out, Place::default()),
        }
    }

    /// The built-in rules that `xsl:mode` chooses.
    #[cold]
    fn no_match(
        &self,
        way: NoMatch,
        focus: Focus,
        mode: usize,
        arguments: &[(Name, Value)],
        out: &mut Out<'_>,
    ) -> Res<()> {
        let node = focus.node;
        let doc = self.doc(node.doc);
        let kind = doc.kind(node.id);
        let inside = Focus { depth: focus.depth + 1, ..focus };
        match (way, kind) {
            (NoMatch::Fail, _) => {
                Err(self.fail(Place::default(), "XTDE0555: a node has no template rule in this mode".into()))
            }
            (NoMatch::DeepCopy, _) => {
                self.copy_deep(node, out);
                Ok(())
            }
            (NoMatch::DeepSkip, NodeKind::Document) => self.apply_children(focus, mode, arguments, out),
            (NoMatch::ShallowCopy | NoMatch::ShallowSkip, NodeKind::Document) => {
                self.enter(focus, Place::default, |focus| self.apply_all(focus, mode, arguments, out))
            }
            (NoMatch::ShallowSkip, NodeKind::Element) => {
                self.enter(focus, Place::default, |focus| self.apply_all(focus, mode, arguments, out))
            }
            (NoMatch::ShallowCopy, NodeKind::Element) => {
                out.start_element(doc.prefix(node.id), doc.namespace(node.id), doc.local(node.id));
                doc.each_in_scope_namespace(node.id, &mut |prefix, uri| out.namespace(prefix, uri));
                self.enter(inside, Place::default, |focus| self.apply_all(focus, mode, arguments, out))?;
                out.end_element();
                Ok(())
            }
            (NoMatch::ShallowCopy, _) => {
                self.copy_deep(node, out);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn apply_children(
        &self,
        focus: Focus,
        mode: usize,
        arguments: &[(Name, Value)],
        out: &mut Out<'_>,
    ) -> Res<()> {
        if focus.node.doc == DocId::ATOMIC {
            let message =
                "XTTE0510: xsl:apply-templates without a select attribute needs a node as context item";
            return Err(self.fail(Place::default(), message.into()));
        }
        if focus.node.is_namespace() {
            return Ok(());
        }
        if self.is_open(focus.node) {
            let action = Action::Apply { mode, arguments };
            return self.consume(None, action, focus, &mut Frame::default(), out);
        }
        self.enter(focus, Place::default, |focus| self.apply_children_here(focus, mode, arguments, out))
    }

    fn apply_children_here(
        &self,
        focus: Focus,
        mode: usize,
        arguments: &[(Name, Value)],
        out: &mut Out<'_>,
    ) -> Res<()> {
        let id = focus.node.doc;
        let doc = self.doc(id);
        let rules = &self.plan.modes[mode];
        let bound = self.docs.bound(id);
        let size = if self.plan.needs_size { doc.children(focus.node.id).count() as u32 } else { 0 };
        let mut focus = Focus { size, position: 0, ..focus };
        for child in doc.children(focus.node.id) {
            focus.position += 1;
            let kind = doc.kind(child);
            let rule = if rules.one_match { Quick::Ask } else { quick_rule(rules, bound, doc, child) };
            if rule == Quick::BuiltIn && kind == NodeKind::Text {
                out.text(doc.text(child), false);
                continue;
            }
            focus.node = Node::in_document(id, child);
            match rule {
                Quick::Template(template, rule) => {
                    self.run_rule((template as usize, rule), mode, &focus, arguments, out)?
                }
                Quick::Nothing => self.tick(out)?,
                // An element with only a text, for which there is no template either, or one that does nothing.
                Quick::BuiltIn
                    if self.opening.is_none()
                        && matches!(rules.of_text(), Quick::BuiltIn | Quick::Nothing)
                        && let Some(text) = doc.whole_text(child) =>
                {
                    self.tick(out)?;
                    if !text.is_empty() && rules.of_text() == Quick::BuiltIn {
                        out.text(text, false);
                    }
                }
                Quick::BuiltIn => {
                    let arguments = if self.plan.version2 { arguments } else { &[] };
                    self.apply_children(focus, mode, arguments, out)?;
                }
                Quick::Ask => self.apply(focus, mode, arguments, out)?,
            }
        }
        Ok(())
    }

    /// The depth limit.
    fn depth_limit(&self) -> u32 {
        u32::try_from(self.options.limits.depth).unwrap_or(u32::MAX - 1) + 1
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
            return Err(self.fail(
                place,
                format!("templates are nested too deeply (limit {}): an endless recursion?", limit - 1),
            ));
        }
        let further = |stride: u32| Focus { next: focus.depth.saturating_add(stride).min(limit), ..focus };
        if stack::is_left() {
            return go_on(further(STRIDE));
        }
        stack::on_new(|| go_on(further(OWN_STRIDE)))
    }

    // Instructions.

    fn exec(&self, body: &[Instruction], focus: Focus, frame: &mut Frame, out: &mut Out<'_>) -> Res<()> {
        let place = || body.first().map_or_else(Place::default, |instruction| instruction.place);
        self.enter(focus, place, |focus| self.exec_here(body, &focus, frame, out))
    }

    /// Frequent instructions run here; the rest in [`Engine::step`], which needs more stack.
    fn exec_here(
        &self,
        body: &[Instruction],
        focus: &Focus,
        frame: &mut Frame,
        out: &mut Out<'_>,
    ) -> Res<()> {
        for instruction in body {
            match &instruction.op {
                Op::Text { text, escaped, raw } => out.fixed_text(text, escaped, *raw),
                Op::Literal(literal) => {
                    out.decide_at(&literal.namespace, &literal.local);
                    match out.fast() {
                        Some(fast) if literal.bindings.is_some() && !literal.more => {
                            fast.start_literal(literal);
                        }
                        _ => self.start_literal(literal, focus, frame, instruction.place, out)?,
                    }
                }
                Op::EndLiteral { close, plain } => match out.fast() {
                    Some(fast) if *plain => fast.end_literal(close),
                    _ => out.end_element(),
                },
                Op::Leaf(leaf) => {
                    let literal = &leaf.literal;
                    out.decide_at(&literal.namespace, &literal.local);
                    match out.fast() {
                        Some(fast) if literal.bindings.is_some() => {
                            let mark = fast.start_leaf(literal);
                            if !leaf.raw
                                && let Some(path) = self.name_path(&leaf.select, focus.node)
                                && let Some(text) =
                                    if leaf.select.is_many() { path.only_text() } else { path.text() }
                            {
                                let length = fast.leaf(literal, mark, text);
                                out.written += length;
                                continue;
                            }
                            self.value_of(&leaf.select, leaf.raw, focus, frame, instruction.place, out)?;
                            if let Some(fast) = out.fast() {
                                fast.end_leaf(literal, mark);
                            }
                        }
                        _ => {
                            self.start_literal(literal, focus, frame, instruction.place, out)?;
                            self.value_of(&leaf.select, leaf.raw, focus, frame, instruction.place, out)?;
                            out.end_element();
                        }
                    }
                }
                Op::ValueOf { select, raw } => {
                    self.value_of(select, *raw, focus, frame, instruction.place, out)?;
                }
                Op::ApplyTemplates { select: None, mode, sorts, arguments }
                    if sorts.is_empty() && arguments.is_empty() =>
                {
                    self.apply_children(*focus, mode_of(*mode, focus), &[], out)?;
                }
                Op::If { test, body } => {
                    if self.boolean(test, *focus, frame, instruction.place)? {
                        self.exec(body, *focus, frame, out)?;
                    }
                }
                Op::Choose { when, otherwise } => {
                    let mut chosen = otherwise;
                    for (test, body) in when {
                        if self.boolean(test, *focus, frame, instruction.place)? {
                            chosen = body;
                            break;
                        }
                    }
                    self.exec(chosen, *focus, frame, out)?;
                }
                _ => self.step(instruction, *focus, frame, out)?,
            }
        }
        Ok(())
    }

    #[inline]
    fn value_of(
        &self,
        select: &Expr,
        raw: bool,
        focus: &Focus,
        frame: &Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        if let Some(path) = self.name_path(select, focus.node) {
            if !select.is_many() {
                if let Some(node) = path.first() {
                    write_value(path.doc, node, raw, out);
                }
                return Ok(());
            }
            if let Some(text) = path.only_text() {
                out.text(text, raw);
                return Ok(());
            }
        }
        self.other_value_of(select, raw, focus, frame, place, out)
    }

    #[inline(never)]
    fn other_value_of(
        &self,
        select: &Expr,
        raw: bool,
        focus: &Focus,
        frame: &Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        if let Some(text) = self.quick_text(select, focus.node, frame) {
            out.text(&text, raw);
            return Ok(());
        }
        if select.is_many() {
            let value = self.value(select, *focus, frame, place)?;
            let text = self.text_of_items(value, place)?;
            out.text(&text, raw);
            return Ok(());
        }
        self.with(select, *focus, frame, place, |expression, cx| {
            out.text(&expression.evaluate_string(cx)?, raw);
            Ok(())
        })
    }

    #[inline(never)]
    fn step(&self, instruction: &Instruction, focus: Focus, frame: &mut Frame, out: &mut Out<'_>) -> Res<()> {
        let place = instruction.place;
        match &instruction.op {
            Op::Text { .. }
            | Op::Literal(_)
            | Op::EndLiteral { .. }
            | Op::Leaf(_)
            | Op::ValueOf { .. }
            | Op::If { .. }
            | Op::Choose { .. } => {
                return self.exec_here(std::slice::from_ref(instruction), &focus, frame, out);
            }
            Op::ApplyTemplates { select, mode, sorts, arguments } => {
                let mode = &mode_of(*mode, &focus);
                if arguments.iter().any(|argument| argument.tunnel) {
                    return self.with_arguments(arguments, focus, frame, |arguments, focus, frame| {
                        self.apply_selected(
                            select.as_ref(),
                            *mode,
                            sorts,
                            arguments,
                            focus,
                            frame,
                            place,
                            out,
                        )
                    });
                }
                let arguments = self.arguments(arguments, focus, frame)?;
                if let Some(select) = select
                    && self.is_open(focus.node)
                    && self.selects_step_by_step(place)
                {
                    let action = Action::Apply { mode: *mode, arguments: &arguments };
                    return self.consume(Some((select, place)), action, focus, frame, out);
                }
                self.apply_selected(select.as_ref(), *mode, sorts, &arguments, focus, frame, place, out)?;
            }
            Op::ApplyImports { arguments } => {
                if focus.rule == NO_RULE {
                    return Err(self.fail(place, "xsl:apply-imports needs a current template rule".into()));
                }
                let mode = focus.mode as usize;
                let rules = &self.plan.modes[mode];
                let current = &self.plan.templates[rules.rules[focus.rule as usize].template];
                let range = current.imports_from..current.precedence;
                self.with_arguments(arguments, focus, frame, |arguments, focus, _| {
                    match self.find_rule(rules, &focus, range)? {
                        Some(rule) => self.run_rule(rules.numbered(rule), mode, &focus, arguments, out),
                        None => self.built_in(focus, mode, arguments, out),
                    }
                })?;
            }
            Op::CallTemplate { template, arguments, tail: true } => {
                let template = *template;
                let mut tail = Box::new(Tail { template, frame: Frame::default() });
                self.fill_frame(&mut tail.frame, template, arguments, focus, frame)?;
                frame.tail = Some(tail);
            }
            Op::CallTemplate { template, arguments, .. } => {
                if arguments.iter().any(|argument| argument.tunnel) {
                    return self.with_arguments(arguments, focus, frame, |arguments, focus, _| {
                        self.run_template(*template, (focus.rule, focus.mode), &focus, arguments, out)
                    });
                }
                if self.plan.version3
                    && self.dynamic(focus.dynamic).is_some_and(|dynamic| dynamic.merged.is_some())
                {
                    // A template that is called is in no group of xsl:merge (XSLT 3.0 section 5.3.4).
                    let none = |dynamic: &mut Dynamic| {
                        (dynamic.merged, dynamic.merge_key) = (None, Value::Empty);
                    };
                    return self.with_dynamic(focus, none, |focus| {
                        self.call(*template, arguments, focus, frame, out)
                    });
                }
                self.call(*template, arguments, focus, frame, out)?;
            }
            Op::ForEach { select, body, .. }
                if self.is_open(focus.node) && self.selects_step_by_step(place) =>
            {
                return self.consume(Some((select, place)), Action::Loop(body), focus, frame, out);
            }
            Op::ForEach { select, sorts, body } => {
                let mark = if self.plan.version2 { self.mark() } else { 0 };
                let mut nodes = if self.plan.version2 {
                    self.items(select, focus, frame, place)?
                } else {
                    self.nodes(select, focus, frame, place)?
                };
                if !sorts.is_empty() {
                    self.sort(&mut nodes, sorts, focus, frame)?;
                }
                let mut inner = Focus { position: 0, size: nodes.len() as u32, rule: NO_RULE, ..focus };
                self.spend(nodes.len() as u64 >> 3)?;
                for node in nodes {
                    inner.node = node;
                    inner.position += 1;
                    self.tick(out)?;
                    self.exec(body, inner, frame, out)?;
                }
                if self.plan.version2 {
                    self.release(mark);
                }
            }
            Op::Element { fixed: Some(fixed), sets, body, .. } => {
                out.start_element(&fixed.prefix, &fixed.namespace, &fixed.local);
                self.attribute_sets(sets, focus, out)?;
                self.exec(body, focus, frame, out)?;
                out.end_element();
            }
            Op::Element { name, namespace, scope, sets, body, .. } => {
                self.element(name, namespace.as_ref(), scope, sets, body, focus, frame, place, out)?;
            }
            Op::Attribute { fixed: Some(fixed), body, .. } => {
                let value = self.text_of(body, focus, frame)?;
                self.put_attribute(&fixed.prefix, &fixed.namespace, &fixed.local, &value, place, out)?;
            }
            Op::Attribute { name, namespace, scope, body, .. } => {
                self.attribute(name, namespace.as_ref(), scope, body, focus, frame, place, out)?;
            }
            Op::Comment { body } => {
                let text = self.text_of(body, focus, frame)?;
                out.comment(&text);
            }
            Op::Pi { name, body } => {
                let name = self.avt(name, focus, frame, place)?;
                let text = self.text_of(body, focus, frame)?;
                if !xml::is_ncname(&name) || name.eq_ignore_ascii_case("xml") {
                    return Err(self
                        .fail(place, format!("\"{name}\" cannot be the name of a processing instruction")));
                }
                out.pi(&name, text.trim_start());
            }
            Op::Copy { sets, body } => self.copy(sets, body, true, focus, frame, out)?,
            Op::Version2(version2) => self.version2(version2, focus, frame, place, out)?,
            Op::CopyOf { select } => {
                let value = self.value(select, focus, frame, place)?;
                match &value {
                    Value::NodeSet(nodes) => {
                        for node in nodes.iter() {
                            self.copy_deep(node, out);
                        }
                    }
                    // In an element of version 1.0 in a 2.0 stylesheet.
                    value @ (Value::Sequence(_) | Value::Atomic(_)) => {
                        self.write_items(value, true, out, place)?
                    }
                    value => {
                        let text = self.string_of(value, focus, place)?;
                        out.text(&text, false);
                    }
                }
            }
            Op::Number(number) => {
                let text = self.number(number, focus, frame, place)?;
                out.text(&text, false);
            }
            Op::Variable { slot, value } => {
                let value = self.binding(value, focus, frame, place)?;
                frame.locals[*slot] = value;
            }
            Op::Param { slot, value } => {
                if frame.passed & (1 << slot) == 0 {
                    let value = self.binding(value, focus, frame, place)?;
                    frame.locals[*slot] = value;
                }
            }
            Op::Message { body, terminate } => {
                let text = self.message(body, focus, frame)?;
                if let Some(messages) = self.options.messages {
                    messages(&text);
                }
                if *terminate {
                    let shown = text.trim();
                    return Err(self.fail(place, format!("xsl:message ended the transformation: {shown}")));
                }
            }
            Op::Unknown { message, fallback } => match fallback {
                Some(body) => self.exec(body, focus, frame, out)?,
                None => return Err(self.fail(place, message.to_string())),
            },
            Op::Result { value } => {
                let value = self.binding(value, focus, frame, place)?;
                if let Some(result @ Value::Empty) = frame.locals.last_mut() {
                    *result = value;
                }
            }
        }
        Ok(())
    }

    /// `select="@* | node()"`.
    fn apply_all(
        &self,
        focus: Focus,
        mode: usize,
        arguments: &[(Name, Value)],
        out: &mut Out<'_>,
    ) -> Res<()> {
        let node = focus.node;
        let doc = self.doc(node.doc);
        if node.is_namespace() || !matches!(doc.kind(node.id), NodeKind::Element | NodeKind::Document) {
            return Ok(());
        }
        let size = if self.plan.needs_size {
            (doc.attributes(node.id).count() + doc.children(node.id).count()) as u32
        } else {
            0
        };
        let mut inner = Focus { position: 0, size, ..focus };
        for id in doc.attributes(node.id).chain(doc.children(node.id)) {
            inner.node = Node::in_document(node.doc, id);
            inner.position += 1;
            self.apply(inner, mode, arguments, out)?;
        }
        Ok(())
    }

    /// `xsl:apply-templates` with its arguments known.
    #[allow(clippy::too_many_arguments)]
    fn apply_selected(
        &self,
        select: Option<&Expr>,
        mode: usize,
        sorts: &[crate::model::Sort],
        arguments: &[(Name, Value)],
        focus: Focus,
        frame: &mut Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        let Some(select) = select else {
            if focus.node.doc == DocId::ATOMIC {
                let message =
                    "XTTE0510: xsl:apply-templates needs a node as context item, or a select attribute";
                return Err(self.fail(place, message.into()));
            }
            if sorts.is_empty() {
                return self.apply_children(focus, mode, arguments, out);
            }
            let doc = self.doc(focus.node.doc);
            let mut nodes: Vec<Node> = if focus.node.is_namespace() {
                Vec::new()
            } else {
                doc.children(focus.node.id).map(|n| Node::in_document(focus.node.doc, n)).collect()
            };
            self.sort(&mut nodes, sorts, focus, frame)?;
            return self.apply_nodes(&nodes, mode, arguments, focus, out);
        };
        if let Expr::XPath(xpath) = select
            && xpath.all
            && sorts.is_empty()
        {
            return self.apply_all(focus, mode, arguments, out);
        }
        if self.plan.version3 {
            // Items of any kind.
            let mark = self.mark();
            let mut items = self.items(select, focus, frame, place)?;
            if !sorts.is_empty() {
                self.sort(&mut items, sorts, focus, frame)?;
            }
            self.apply_nodes(&items, mode, arguments, focus, out)?;
            self.release(mark);
            return Ok(());
        }
        let mut nodes = self.nodes(select, focus, frame, place)?;
        if !sorts.is_empty() {
            self.sort(&mut nodes, sorts, focus, frame)?;
        }
        self.apply_nodes(&nodes, mode, arguments, focus, out)
    }

    fn apply_nodes(
        &self,
        nodes: &[Node],
        mode: usize,
        arguments: &[(Name, Value)],
        focus: Focus,
        out: &mut Out<'_>,
    ) -> Res<()> {
        let mut inner = Focus { position: 0, size: nodes.len() as u32, ..focus };
        let rules = &self.plan.modes[mode];
        for node in nodes {
            inner.node = *node;
            inner.position += 1;
            if !rules.one_match
                && !node.is_namespace()
                && let Some(doc) = self.docs.get(node.doc)
                && let Quick::Template(template, rule) =
                    quick_rule(rules, self.docs.bound(node.doc), doc, node.id)
            {
                self.run_rule((template as usize, rule), mode, &inner, arguments, out)?;
                continue;
            }
            self.apply(inner, mode, arguments, out)?;
        }
        Ok(())
    }

    fn arguments(&self, arguments: &[Argument], focus: Focus, frame: &mut Frame) -> Res<Arguments> {
        if arguments.is_empty() {
            return Ok(Arguments::new());
        }
        arguments
            .iter()
            .map(|argument| Ok((argument.name, self.binding(&argument.value, focus, frame, argument.place)?)))
            .collect()
    }

    /// The start of a literal result element with computed attributes, or for an output other than plain XML.
    #[inline(never)]
    fn start_literal(
        &self,
        literal: &Literal,
        focus: &Focus,
        frame: &mut Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        if literal.bindings.is_some()
            && let Some(fast) = out.fast()
        {
            fast.start_literal(literal);
            if !literal.sets.is_empty() {
                self.attribute_sets(&literal.sets, *focus, out)?;
                for a in &literal.attributes {
                    let value = self.avt(&a.value, *focus, frame, place)?;
                    out.attribute(&a.prefix, &a.namespace, &a.local, &value);
                }
                return Ok(());
            }
            for attribute in &literal.attributes {
                if let avt @ Avt::Parts(_) = &attribute.value {
                    let value = self.avt(avt, *focus, frame, place)?;
                    if let Some(fast) = out.fast() {
                        fast.literal_attribute(&attribute.lead, &value);
                    }
                }
            }
            return Ok(());
        }
        if literal.closed && !literal.more && out.literal(literal) {
            return Ok(());
        }
        out.start_element(&literal.prefix, &literal.namespace, &literal.local);
        for (prefix, uri) in &literal.namespaces {
            out.namespace(prefix, uri);
        }
        self.attribute_sets(&literal.sets, *focus, out)?;
        for attribute in &literal.attributes {
            let value = match &attribute.value {
                Avt::Fixed(value) => Cow::Borrowed(&**value),
                avt => self.avt(avt, *focus, frame, place)?,
            };
            out.attribute(&attribute.prefix, &attribute.namespace, &attribute.local, &value);
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn element(
        &self,
        name: &Avt,
        namespace: Option<&Avt>,
        scope: &Scope,
        sets: &[usize],
        body: &[Instruction],
        focus: Focus,
        frame: &mut Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        let name = self.avt(name, focus, frame, place)?;
        let name = name.trim();
        if !crate::compile::is_qname(name) {
            return Err(self.fail(place, format!("\"{name}\" is not the name of an element")));
        }
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        let uri = match namespace {
            Some(namespace) => self.namespace_of(namespace, "XTDE0835", focus, frame, place)?,
            None => match lookup(scope, prefix) {
                Some(uri) => Cow::Borrowed(uri),
                None if prefix.is_empty() => Cow::Borrowed(""),
                None => return Err(self.fail(place, format!("the prefix \"{prefix}\" is not declared"))),
            },
        };
        let prefix = if uri.is_empty() || prefix == "xmlns" { "" } else { prefix };
        out.start_element(prefix, &uri, local);
        self.attribute_sets(sets, focus, out)?;
        self.exec(body, focus, frame, out)?;
        out.end_element();
        Ok(())
    }

    /// The namespace that an instruction computes; `code`: of the error where it is not a URI, from 2.0 on.
    fn namespace_of<'t>(
        &'t self,
        namespace: &'t Avt,
        code: &str,
        focus: Focus,
        frame: &Frame,
        place: Place,
    ) -> Res<Cow<'t, str>> {
        let uri = self.avt(namespace, focus, frame, place)?;
        if self.plan.version2 && uri.split('#').count() > 2 {
            return Err(self.fail(place, format!("{code}: \"{uri}\" is not a URI")));
        }
        Ok(uri)
    }

    /// The expanded name that `xsl:attribute` computes: prefix, namespace, local name.
    fn attribute_name(
        &self,
        name: &Avt,
        namespace: Option<&Avt>,
        scope: &Scope,
        focus: Focus,
        frame: &Frame,
        place: Place,
    ) -> Res<(String, String, String)> {
        let name = self.avt(name, focus, frame, place)?;
        let name = name.trim();
        if !crate::compile::is_qname(name) || (name == "xmlns" && namespace.is_none()) {
            return Err(self.fail(place, format!("\"{name}\" is not the name of an attribute")));
        }
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        let uri = match namespace {
            Some(namespace) => self.namespace_of(namespace, "XTDE0865", focus, frame, place)?,
            None if prefix.is_empty() => Cow::Borrowed(""),
            None => match lookup(scope, prefix) {
                Some(uri) => Cow::Borrowed(uri),
                None => return Err(self.fail(place, format!("the prefix \"{prefix}\" is not declared"))),
            },
        };
        let prefix = if uri.is_empty() || prefix == "xmlns" { "" } else { prefix };
        Ok((prefix.to_owned(), uri.into_owned(), local.to_owned()))
    }

    #[allow(clippy::too_many_arguments)]
    fn attribute(
        &self,
        name: &Avt,
        namespace: Option<&Avt>,
        scope: &Scope,
        body: &[Instruction],
        focus: Focus,
        frame: &mut Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        let name = self.avt(name, focus, frame, place)?;
        let name = name.trim();
        if !crate::compile::is_qname(name) || (name == "xmlns" && namespace.is_none()) {
            return Err(self.fail(place, format!("\"{name}\" is not the name of an attribute")));
        }
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        let uri = match namespace {
            Some(namespace) => self.namespace_of(namespace, "XTDE0865", focus, frame, place)?,
            None if prefix.is_empty() => Cow::Borrowed(""),
            None => match lookup(scope, prefix) {
                Some(uri) => Cow::Borrowed(uri),
                None => return Err(self.fail(place, format!("the prefix \"{prefix}\" is not declared"))),
            },
        };
        let prefix = if uri.is_empty() || prefix == "xmlns" { "" } else { prefix };
        let value = self.text_of(body, focus, frame)?;
        self.put_attribute(prefix, &uri, local, &value, place, out)
    }

    /// Writes an attribute. After content it is left out in XSLT 1.0, as section 7.1.3 allows, and an error in 2.0.
    fn put_attribute(
        &self,
        prefix: &str,
        uri: &str,
        local: &str,
        value: &str,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        if out.attribute(prefix, uri, local, value) || !self.plan.version2 {
            return Ok(());
        }
        Err(self.fail(place, self.misplaced(&format!("the attribute {local}"), out)))
    }

    /// The error of an attribute or namespace after content, or outside of an element.
    #[cold]
    fn misplaced(&self, node: &str, out: &Out<'_>) -> String {
        match out.is_at_top() {
            true => format!("XTDE0420: {node} is in no element"),
            false => format!("XTDE0410: {node} comes behind the content of its element"),
        }
    }

    /// The text of a body: the value of an attribute, comment or processing instruction.
    fn text_of<'t>(&'t self, body: &'t [Instruction], focus: Focus, frame: &mut Frame) -> Res<Cow<'t, str>> {
        match body {
            [] => Ok(Cow::Borrowed("")),
            [Instruction { op: Op::Text { text, .. }, .. }] => Ok(Cow::Borrowed(text)),
            [Instruction { op: Op::ValueOf { select, .. }, place }] => {
                if let Some(path) = self.name_path(select, focus.node)
                    && let Some(text) = if select.is_many() { path.only_text() } else { path.text() }
                {
                    return Ok(Cow::Borrowed(text));
                }
                if select.is_many() {
                    let value = self.value(select, focus, frame, *place)?;
                    return self.text_of_items(value, *place).map(Cow::Owned);
                }
                self.string(select, focus, frame, *place).map(Cow::Owned)
            }
            body => {
                let mut out = Out::text_only(self.plan.version2);
                self.exec(body, focus, frame, &mut out)?;
                Ok(Cow::Owned(out.into_text()))
            }
        }
    }

    fn attribute_sets(&self, sets: &[usize], focus: Focus, out: &mut Out<'_>) -> Res<()> {
        for set in sets {
            for part in &self.plan.sets[*set].parts {
                self.attribute_sets(&part.uses, focus, out)?;
                let mut frame = Frame::default();
                frame.locals.resize(part.slots, Value::Empty);
                self.exec(&part.body, focus, &mut frame, out)?;
            }
        }
        Ok(())
    }

    fn message(&self, body: &[Instruction], focus: Focus, frame: &mut Frame) -> Res<String> {
        let options = WriteOptions::default();
        let mut bytes = Vec::new();
        let mut out = Out::bytes(&mut bytes, Method::Fixed(&options));
        self.exec(body, focus, frame, &mut out)?;
        out.finish();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    // Values.

    fn binding(&self, binding: &Binding, focus: Focus, frame: &mut Frame, place: Place) -> Res<Value> {
        match binding {
            Binding::Select(expr) => self.value(expr, focus, frame, place),
            Binding::Empty => Ok(Value::from("")),
            Binding::Sequence(body) => self.sequence_of(body, focus, frame, place),
            Binding::As(typed) => {
                let value = self.binding(&typed.value, focus, frame, place)?;
                self.converted(value, &typed.declared, typed.declared.code, place)
            }
            Binding::Required(message) => Err(self.fail(place, message.to_string())),
            Binding::Text(body) => {
                let text = self.text_of(body, focus, frame)?.into_owned();
                self.add_text(text, place)
            }
            Binding::Body(body) => {
                let mut doc = Document::new();
                let mut out = Out::tree(Builder::new(&mut doc, Document::ROOT));
                self.exec(body, focus, frame, &mut out)?;
                out.finish();
                self.add_fragment(doc, place)
            }
        }
    }

    /// The value of a global variable: requested within an expression.
    fn global_binding(&self, binding: &Binding, focus: Focus, frame: &mut Frame, place: Place) -> Res<Value> {
        match binding {
            Binding::Body(body) | Binding::Text(body) => self.tree(body, focus, frame, place),
            Binding::Sequence(body) => self.sequence_of(body, focus, frame, place),
            Binding::As(typed) => {
                let value = self.global_binding(&typed.value, focus, frame, place)?;
                self.converted(value, &typed.declared, typed.declared.code, place)
            }
            _ => self.binding(binding, focus, frame, place),
        }
    }

    /// Keeps a result tree fragment; its value is the root.
    fn add_fragment(&self, doc: Document, place: Place) -> Res<Value> {
        if self.docs.count() >= self.options.limits.documents {
            return Err(self.fail(place, "the limit of result tree fragments is exceeded".into()));
        }
        let uri = self.plan.bases.get(place.base as usize).map_or("", String::as_str);
        match self.docs.add(doc, Cow::Borrowed(uri), true) {
            Some(id) => Ok(Value::from(Node::in_document(id, Document::ROOT))),
            None => Err(self.fail(place, "there are too many result tree fragments".into())),
        }
    }

    /// The same for a fragment that holds only this text.
    fn add_text(&self, text: String, place: Place) -> Res<Value> {
        if self.docs.count() >= self.options.limits.documents {
            return Err(self.fail(place, "the limit of result tree fragments is exceeded".into()));
        }
        let uri = self.plan.bases.get(place.base as usize).map_or("", String::as_str);
        match self.docs.add_text(text, uri) {
            Some(id) => Ok(Value::from(Node::in_document(id, Document::ROOT))),
            None => Err(self.fail(place, "there are too many result tree fragments".into())),
        }
    }

    /// The value of global variable `at`.
    fn global(&self, at: usize, depth: u32, next: u32) -> Res<Value> {
        if let Some(value) = self.globals[at].get() {
            return Ok(value.clone());
        }
        let global = &self.plan.globals[at];
        if global.is_parameter
            && let Some(value) = self.parameters.get(&global.name)
        {
            // A value from outside is a text that is converted to the declared or required type.
            let value = match value {
                Value::String(text) if self.plan.version2 => Value::from(Atomic::Untyped(text.clone())),
                value => value.clone(),
            };
            let Binding::As(typed) = &global.value else { return Ok(value) };
            let value = self.converted(value, &typed.declared, "XTTE0590", global.place)?;
            return Ok(self.globals[at].get_or_init(|| value).clone());
        }
        if self.busy[at].swap(true, Ordering::Relaxed) {
            let message =
                format!("XTDE0640: the variable ${} needs its own value", self.symbols.show(global.name));
            return Err(self.fail(global.place, self.coded(message)));
        }
        let mut frame = Frame::default();
        frame.locals.resize(global.slots, Value::Empty);
        let node = if self.options.no_input { Node::ABSENT } else { Node::new(Document::ROOT) };
        let focus = Focus::new(node, depth, next);
        let value = self.enter_from_expression(focus, global.place, |focus| {
            self.global_binding(&global.value, focus, &mut frame, global.place)
        });
        self.busy[at].store(false, Ordering::Relaxed);
        let value = value?;
        Ok(self.globals[at].get_or_init(|| value).clone())
    }

    /// The atomic value that is the context item.
    #[cold]
    fn kept_atom(&self, node: Node) -> Option<Atomic> {
        self.atoms.lock().ok()?.get(node.as_atomic()?).cloned()
    }

    fn doc(&self, id: DocId) -> &Document {
        static EMPTY: OnceLock<Document> = OnceLock::new();
        self.docs.get(id).unwrap_or_else(|| EMPTY.get_or_init(Document::new))
    }

    /// Runs `f` with the expression and its context.
    fn with<R>(
        &self,
        expr: &Expr,
        focus: Focus,
        frame: &Frame,
        place: Place,
        f: impl FnOnce(&Expression, &Context<'_>) -> Result<R, XPathError>,
    ) -> Res<R> {
        let xpath = match expr {
            Expr::XPath(xpath) => xpath,
            Expr::Deferred(message) => return Err(self.fail(place, message.to_string())),
        };
        let host = ExprHost {
            engine: self,
            locals: &frame.locals,
            current: focus.node,
            xpath,
            depth: focus.depth,
            next: focus.next,
            dynamic: focus.dynamic,
            failed: Default::default(),
        };
        let atom = if focus.node.doc == DocId::ATOMIC { self.kept_atom(focus.node) } else { None };
        let cx = Context {
            doc: self.doc(focus.node.doc),
            node: focus.node,
            item: atom.as_ref(),
            position: focus.position as usize,
            size: focus.size as usize,
            locals: &frame.locals,
            host: &host,
            names: self.docs.bound(focus.node.doc).map(|b| &b.pool),
        };
        f(&xpath.expression, &cx).map_err(|error| match host.failed(&error) {
            // The message includes the reason, mostly with its place.
            Some(inner) if inner.line > 0 => inner,
            Some(inner) => self.fail(place, inner.message),
            None => self.xpath_failed(place, &xpath.expression, &error),
        })
    }

    #[cold]
    fn xpath_failed(&self, place: Place, expression: &Expression, error: &XPathError) -> Box<XsltError> {
        self.fail(place, format!("{} (in the expression \"{}\")", error.sentence(), expression.source()))
    }

    fn value(&self, expr: &Expr, focus: Focus, frame: &Frame, place: Place) -> Res<Value> {
        if let Expr::XPath(xpath) = expr
            && let Some(slot) = xpath.local
            && let Some(value) = frame.locals.get(slot as usize)
        {
            return Ok(value.clone());
        }
        if let Expr::XPath(xpath) = expr {
            if let Some(text) = &xpath.literal {
                return Ok(Value::String(text.clone()));
            }
            match self.simple(xpath, focus.node, frame) {
                Some(Known::Number(number)) => return Ok(Value::Number(number)),
                Some(Known::Boolean(boolean)) => return Ok(Value::Boolean(boolean)),
                None => {}
            }
        }
        self.with(expr, focus, frame, place, |expression, cx| expression.evaluate(cx))
    }

    fn boolean(&self, expr: &Expr, focus: Focus, frame: &Frame, place: Place) -> Res<bool> {
        if let Some(path) = self.name_path(expr, focus.node) {
            return Ok(path.first().is_some());
        }
        if let Expr::XPath(xpath) = expr {
            match self.simple(xpath, focus.node, frame) {
                Some(Known::Number(number)) => return Ok(number != 0.0 && !number.is_nan()),
                Some(Known::Boolean(boolean)) => return Ok(boolean),
                None => {}
            }
        }
        self.with(expr, focus, frame, place, |expression, cx| expression.evaluate_boolean(cx))
    }

    fn nodes(&self, expr: &Expr, focus: Focus, frame: &Frame, place: Place) -> Res<Vec<Node>> {
        if let Some(path) = self.name_path(expr, focus.node) {
            let mut nodes = Vec::new();
            path.each(path.node, path.steps, &mut |id| {
                nodes.push(Node::in_document(focus.node.doc, id));
                false
            });
            return Ok(nodes);
        }
        self.with(expr, focus, frame, place, |expression, cx| expression.evaluate_nodes(cx))
    }

    /// The expression as a path of names at a node, if it is one and the names of the document are bound.
    #[inline]
    fn name_path<'x>(&'x self, expr: &'x Expr, node: Node) -> Option<NamePath<'x>> {
        let Expr::XPath(xpath) = expr else { return None };
        let steps = xpath.names.as_deref()?;
        if node.is_namespace() {
            return None;
        }
        let bound = self.docs.bound(node.doc)?;
        Some(NamePath { doc: self.docs.get(node.doc)?, bound, node: node.id, steps })
    }

    /// The number of an arithmetic expression, if its variables are numbers or texts.
    #[inline]
    fn simple(&self, xpath: &XPath, node: Node, frame: &Frame) -> Option<Known> {
        Some(match xpath.simple.as_ref()? {
            Simple::Number(number) => Known::Number(self.arithmetic(number, node, frame)?.0),
            Simple::Test(op, a, b) => {
                let (a, b) = (self.arithmetic(a, node, frame)?, self.arithmetic(b, node, frame)?);
                // Some operators compare two texts as texts.
                if !a.1 && !b.1 {
                    return None;
                }
                Known::Boolean(xpath::number::relation(*op, a.0, b.0))
            }
        })
    }

    /// The number, and whether it is one, or a text that was converted.
    fn arithmetic(&self, number: &Arithmetic, node: Node, frame: &Frame) -> Option<(f64, bool)> {
        Some(match number {
            Arithmetic::Number(number) => (*number, true),
            Arithmetic::Local(slot) => match frame.locals.get(*slot as usize)? {
                Value::Number(number) => (*number, true),
                Value::String(text) => (xpath::number::parse(text), false),
                Value::NodeSet(nodes) => (xpath::number::parse(self.fragment_text(nodes)?), false),
                _ => return None,
            },
            Arithmetic::Path(steps) => {
                if node.is_namespace() {
                    return None;
                }
                let (doc, bound) = (self.docs.get(node.doc)?, self.docs.bound(node.doc)?);
                (xpath::number::parse(NamePath { doc, bound, node: node.id, steps }.text()?), true)
            }
            Arithmetic::Negate(a) => (-self.arithmetic(a, node, frame)?.0, true),
            Arithmetic::Binary(op, both) => {
                let (a, b) = (self.arithmetic(&both.0, node, frame)?, self.arithmetic(&both.1, node, frame)?);
                (xpath::number::arithmetic(*op, a.0, b.0), true)
            }
        })
    }

    /// The text of a node-set that is a text fragment.
    #[inline]
    fn fragment_text(&self, nodes: &NodeSet) -> Option<&str> {
        let [node] = nodes.as_slice() else { return None };
        if node.id != Document::ROOT || node.is_namespace() {
            return None;
        }
        self.docs.text(node.doc)
    }

    /// The text of an expression that is a local variable or arithmetic, where it is a single value of XSLT 1.0.
    #[inline]
    fn quick_text<'t>(&'t self, expr: &Expr, node: Node, frame: &'t Frame) -> Option<Cow<'t, str>> {
        let Expr::XPath(xpath) = expr else { return None };
        if let Some(slot) = xpath.local {
            return match frame.locals.get(slot as usize)? {
                Value::String(text) => Some(Cow::Borrowed(text)),
                Value::NodeSet(nodes) => self.fragment_text(nodes).map(Cow::Borrowed),
                Value::Number(number) if !self.plan.version2 => Some(xpath::number::format(*number)),
                _ => None,
            };
        }
        match self.simple(xpath, node, frame)? {
            Known::Number(number) => Some(xpath::number::format(number)),
            Known::Boolean(_) => None,
        }
    }

    fn string(&self, expr: &Expr, focus: Focus, frame: &Frame, place: Place) -> Res<String> {
        if let Some(text) = self.quick_text(expr, focus.node, frame) {
            return Ok(text.into_owned());
        }
        self.with(expr, focus, frame, place, |expression, cx| {
            Ok(expression.evaluate_string(cx)?.into_owned())
        })
    }

    fn avt<'t>(&'t self, avt: &'t Avt, focus: Focus, frame: &Frame, place: Place) -> Res<Cow<'t, str>> {
        match avt {
            Avt::Fixed(text) => Ok(Cow::Borrowed(text)),
            Avt::Parts(parts) => {
                if let [AvtPart::Expr(expr)] = &**parts
                    && let Some(path) = self.name_path(expr, focus.node)
                    && let Some(text) = path.text()
                {
                    return Ok(Cow::Borrowed(text));
                }
                let mut text = String::new();
                for part in parts {
                    match part {
                        AvtPart::Text(part) => text.push_str(part),
                        AvtPart::Expr(expr) if let Some(value) = self.quick_text(expr, focus.node, frame) => {
                            text.push_str(&value);
                        }
                        AvtPart::Expr(expr) if let Some(path) = self.name_path(expr, focus.node) => {
                            if let Some(node) = path.first() {
                                path.doc.push_string_value(node, &mut text);
                            }
                        }
                        AvtPart::Items(expr) => {
                            if let Some(path) = self.name_path(expr, focus.node)
                                && path.steps.last().is_none_or(|step| step.attribute)
                                && path.steps.len() < 2
                            {
                                if let Some(node) = path.first() {
                                    text.push_str(&path.doc.string_value(node));
                                }
                                continue;
                            }
                            let value = self.value(expr, focus, frame, place)?;
                            if let Value::String(value) = &value {
                                text.push_str(value);
                                continue;
                            }
                            text.push_str(&self.text_of_items(value, place)?);
                        }
                        AvtPart::Expr(expr) => self.with(expr, focus, frame, place, |expression, cx| {
                            text.push_str(&expression.evaluate_string(cx)?);
                            Ok(())
                        })?,
                    }
                }
                Ok(Cow::Owned(text))
            }
        }
    }

    /// The items of a value as text, separated by spaces.
    fn text_of_items(&self, value: Value, place: Place) -> Res<String> {
        match &value {
            Value::String(text) => Ok(text.to_string()),
            Value::Empty => Ok(String::new()),
            Value::NodeSet(nodes) if nodes.len() < 2 => {
                Ok(nodes.first().map_or_else(String::new, |node| self.node_string(node)))
            }
            _ => {
                let value = self.with_text(value, place)?;
                Ok(self.joined(&value, " "))
            }
        }
    }

    /// `string()` of a value.
    fn string_of(&self, value: &Value, focus: Focus, place: Place) -> Res<String> {
        if let Value::String(text) = value {
            return Ok(text.to_string());
        }
        let host = host::DocHost { engine: self };
        let cx = Context::at(self.doc(focus.node.doc), focus.node).with_host(&host);
        match value.to_string_in(&cx) {
            Ok(text) => Ok(text.into_owned()),
            Err(error) => Err(self.fail(place, error.message)),
        }
    }

    /// A message without its code, where the language has none: XSLT 1.0.
    fn coded(&self, message: String) -> String {
        if self.plan.version2 {
            message
        } else {
            message[message.find(' ').map_or(0, |at| at + 1)..].to_owned()
        }
    }

    #[cold]
    fn fail(&self, place: Place, message: String) -> Box<XsltError> {
        let uri = self.plan.modules.get(place.module as usize).cloned().unwrap_or_default();
        Box::new(XsltError { message, uri, line: place.line, column: place.column })
    }
}

/// The value of a [`Simple`].
enum Known {
    Number(f64),
    Boolean(bool),
}

/// A path of names at a node.
struct NamePath<'x> {
    doc: &'x Document,
    bound: &'x docs::Bound,
    node: NodeId,
    steps: &'x [NameStep],
}

impl<'x> NamePath<'x> {
    /// The first node in document order.
    #[inline]
    fn first(&self) -> Option<NodeId> {
        match self.steps {
            [] => Some(self.node),
            [step] => {
                let name = self.bound.id(step.name)?;
                if step.attribute {
                    return self.doc.attribute_by_name(self.node, name);
                }
                self.doc.child_named(self.node, name)
            }
            _ => {
                let mut first = None;
                self.each(self.node, self.steps, &mut |node| {
                    first = Some(node);
                    true
                });
                first
            }
        }
    }

    /// The string value of the first node, where it is in one piece.
    #[inline]
    fn text(&self) -> Option<&'x str> {
        self.first().map_or(Some(""), |node| self.doc.whole_text(node))
    }

    /// The string value of the only node (empty: there is none), where it is in one piece.
    #[inline]
    fn only_text(&self) -> Option<&'x str> {
        let node = match self.steps {
            [step] if !step.attribute => {
                let Some(name) = self.bound.id(step.name) else { return Some("") };
                let Some(first) = self.doc.child_named(self.node, name) else { return Some("") };
                if self.doc.sibling_named(first, name).is_some() {
                    return None;
                }
                first
            }
            [] | [_] => match self.first() {
                Some(node) => node,
                None => return Some(""),
            },
            _ => {
                let (mut found, mut count) = (self.node, 0);
                self.each(self.node, self.steps, &mut |node| {
                    found = node;
                    count += 1;
                    count > 1
                });
                match count {
                    0 => return Some(""),
                    1 => found,
                    _ => return None,
                }
            }
        };
        self.doc.whole_text(node)
    }

    /// Calls `f` with each node in document order until it says `true`.
    fn each(&self, node: NodeId, steps: &[NameStep], f: &mut impl FnMut(NodeId) -> bool) -> bool {
        let Some((step, rest)) = steps.split_first() else { return f(node) };
        let Some(name) = self.bound.id(step.name) else { return false };
        if step.attribute {
            return self.doc.attribute_by_name(node, name).is_some_and(f);
        }
        let mut at = self.doc.child_named(node, name);
        while let Some(child) = at {
            if if rest.is_empty() { f(child) } else { self.each(child, rest, f) } {
                return true;
            }
            at = self.doc.sibling_named(child, name);
        }
        false
    }
}

/// The rule of a child, as far as kind and name determine it.
#[inline]
fn quick_rule(rules: &Rules, bound: Option<&Bound>, doc: &Document, child: NodeId) -> Quick {
    match (doc.kind(child), bound) {
        (NodeKind::Text, _) => rules.of_text(),
        (NodeKind::Element, Some(bound)) => rules.of_element(bound.name_of(doc, child)),
        _ => Quick::Ask,
    }
}

/// Writes the string value of a node without concatenation.
#[inline]
fn write_value(doc: &Document, node: NodeId, raw: bool, out: &mut Out<'_>) {
    if let Some(text) = doc.whole_text(node) {
        return out.text(text, raw);
    }
    for node in doc.descendants(node) {
        if doc.kind(node) == NodeKind::Text {
            out.text(doc.text(node), raw);
        }
    }
}

fn lookup<'s>(scope: &'s Scope, prefix: &str) -> Option<&'s str> {
    if prefix == "xml" {
        return Some(xml::XML_NS);
    }
    scope.iter().find(|(p, _)| **p == *prefix).map(|(_, uri)| &**uri)
}

impl Focus {
    /// A single node.
    fn new(node: Node, depth: u32, next: u32) -> Focus {
        Focus { node, position: 1, size: 1, rule: NO_RULE, mode: 0, depth, next, dynamic: NO_DYNAMIC }
    }
}

/// The mode of an `xsl:apply-templates`.
fn mode_of(mode: usize, focus: &Focus) -> usize {
    if mode == crate::version2::CURRENT_MODE { focus.mode as usize } else { mode }
}

/// Used by the functions on node-sets.
fn node_set(value: &Value) -> Option<NodeSet> {
    match value {
        Value::NodeSet(nodes) => Some(nodes.clone()),
        Value::Empty => Some(NodeSet::new()),
        _ => None,
    }
}
