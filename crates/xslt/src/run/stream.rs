//! Running on a document while it is read: where a template selects the children of an element that has not ended, they are
//! read, processed and dropped, window after window (see [`crate::stream`]).

use super::out::{Destination, Out};
use super::window::{Pump, Window};
use super::{Engine, Focus, Frame, NO_RULE, Res};
use crate::error::XsltError;
use crate::expr::Expr;
use crate::model::{Body, Place};
use crate::names::Name;
use crate::stream::{Classified, NotStreamable, Selection, key};
use std::io::Write;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use xml::{Document, NodeId, NodeKind};
use xpath::{DocId, Node, Value};

/// Result bytes that are passed to the writer at once.
const WORTH_WRITING: usize = 32 << 10;

/// The input and output of a streaming run. (A trait, so that engines for windows live shorter than the reader.)
pub(super) trait Feed: Sync {
    fn classified(&self) -> &Classified;
    /// Whether the whole document may be built where a template needs it.
    fn insists(&self) -> bool;
    fn pump<'p>(
        &'p self,
        act: &mut dyn FnMut(&mut Pump<'_>) -> Result<(), XsltError>,
    ) -> Result<(), XsltError>;
    fn write(&self, bytes: &[u8]) -> Result<(), XsltError>;
}

struct Stream<'s> {
    classified: &'s Classified,
    insists: bool,
    pump: Mutex<Pump<'s>>,
    writer: Mutex<&'s mut (dyn Write + Send)>,
}

impl Feed for Stream<'_> {
    fn classified(&self) -> &Classified {
        self.classified
    }

    fn insists(&self) -> bool {
        self.insists
    }

    fn pump<'p>(
        &'p self,
        act: &mut dyn FnMut(&mut Pump<'_>) -> Result<(), XsltError>,
    ) -> Result<(), XsltError> {
        act(&mut self.pump.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn write(&self, bytes: &[u8]) -> Result<(), XsltError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.write_all(bytes).map_err(|e| XsltError::new(format!("the result cannot be written: {e}")))
    }
}

/// The open element that templates run on, and its window.
pub(super) struct Opening<'e> {
    feed: &'e (dyn Feed + 'e),
    window: &'e Window,
    /// The number of open elements around its content; 0 is the document.
    level: std::sync::atomic::AtomicUsize,
}

/// The action on the selected nodes.
pub(super) enum Action<'a> {
    Apply { mode: usize, arguments: &'a [(Name, Value)] },
    Loop(&'a Body),
}

/// A selection that goes through windows.
#[derive(Clone, Copy)]
struct Pass<'a> {
    /// `None`: all children.
    select: Option<(&'a Expr, Place)>,
    action: &'a Action<'a>,
    selection: Selection,
    /// That of the element whose content is selected from.
    level: usize,
    /// The focus on that element.
    parent: Focus,
    /// Nodes selected so far.
    position: u32,
    /// This is the first window: the one with the attributes.
    first: bool,
}

/// Statistics of a streaming run.
#[derive(Debug, Clone, Copy, Default)]
pub struct StreamStats {
    /// Bytes read.
    pub read: u64,
    /// The size of the largest window, in bytes.
    pub window: usize,
}

/// Runs a stylesheet that streams. `outer`: an engine on an empty document, for everything that does not change.
pub(crate) fn run<'s>(
    outer: &Engine<'_>,
    classified: &'s Classified,
    pump: Pump<'s>,
    insists: bool,
    writer: &'s mut (dyn Write + Send),
) -> Result<StreamStats, XsltError> {
    let stream = Stream { classified, insists, pump: Mutex::new(pump), writer: Mutex::new(writer) };
    let mut window = None;
    stream.pump(&mut |pump| {
        window = Some(pump.first(outer.plan)?);
        Ok(())
    })?;
    let mut window = window.unwrap_or_default();
    let root = Node::new(Document::ROOT);
    let mut bytes = Vec::new();
    let mut out = Out::bytes(&mut bytes, outer.plan.writing.method()).of(Destination::Principal);
    let begin = |engine: &Engine<'_>, out: &mut Out<'_>| {
        let next = super::FIRST_SEGMENT.min(engine.depth_limit());
        let focus = Focus::new(root, 0, next);
        crate::stack::on_this(|| engine.apply(focus, 0, &[], out)).map_err(|error| *error)
    };
    let why = outer.within(&stream, &window, 0).buffers(0, root, (0, 1)).map_err(|error| *error)?;
    match why {
        None => begin(&outer.within(&stream, &window, 0), &mut out)?,
        Some(why) => {
            refuse(&stream, &why)?;
            stream.pump(&mut |pump| pump.complete(&mut window, 0, outer.plan))?;
            begin(&outer.on(&window.doc), &mut out)?;
        }
    }
    // The document must be well-formed to its end, whatever part was used.
    stream.pump(&mut |pump| pump.skip(0))?;
    let is_result = outer.end(&out).map_err(|error| *error)?;
    out.finish().map_err(|error| *outer.fail(outer.plan.output_place, error.to_string()))?;
    if is_result {
        stream.write(&bytes)?;
    }
    let pump = stream.pump.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(StreamStats { read: pump.read, window: pump.largest })
}

/// Where streaming is required, the document is not built.
fn refuse(feed: &dyn Feed, why: &NotStreamable) -> Result<(), XsltError> {
    if !feed.insists() {
        return Ok(());
    }
    Err(XsltError {
        message: format!("the whole document would be needed: {}", why.reason),
        uri: why.uri.clone(),
        line: why.line,
        column: why.column,
        raised: None,
    })
}

impl<'e> Engine<'e> {
    /// An engine like this one on a document.
    fn on<'n>(&'n self, doc: &'n Document) -> Engine<'n>
    where
        'e: 'n,
    {
        let mut engine = Engine::new(
            (self.plan, self.symbols, self.docs.pool()),
            doc,
            self.parameters.clone(),
            self.options,
        );
        engine.steps.store(self.steps.load(Ordering::Relaxed), Ordering::Relaxed);
        engine.results = self.results.clone();
        if self.plan.version2 {
            engine.take_dynamics(self);
        }
        engine
    }

    /// The same on a window whose element at `level` has not ended.
    fn within<'n>(&'n self, feed: &'n (dyn Feed + 'n), window: &'n Window, level: usize) -> Engine<'n>
    where
        'e: 'n,
    {
        let mut engine = self.on(&window.doc);
        engine.opening = Some(Opening { feed, window, level: level.into() });
        engine
    }

    /// Whether the content of a node is incomplete.
    #[inline]
    pub(super) fn is_open(&self, node: Node) -> bool {
        let Some(opening) = &self.opening else { return false };
        let level = opening.level.load(Ordering::Relaxed);
        let open = match level.checked_sub(1) {
            None => Some(Document::ROOT),
            Some(at) => opening.window.open_at(at),
        };
        node.doc == DocId(0) && !node.is_namespace() && open == Some(node.id)
    }

    /// Whether a selection can be made window by window.
    pub(super) fn selects_step_by_step(&self, place: Place) -> bool {
        let opening = self.opening.as_ref();
        opening.is_some_and(|opening| opening.feed.classified().selections.contains_key(&key(place)))
    }

    /// Why a node must be complete before templates are applied to it in `mode`.
    fn buffers(&self, mode: usize, node: Node, depth: (u32, u32)) -> Res<Option<NotStreamable>> {
        let Some(opening) = &self.opening else { return Ok(None) };
        let classified = opening.feed.classified();
        let rules = &self.plan.modes[mode];
        let looking = &classified.looking[mode];
        for at in rules.candidates(self.class(node)) {
            if looking[*at as usize] {
                let template = &self.plan.templates[rules.rules[*at as usize].template];
                return Ok(Some(NotStreamable {
                    reason: "the pattern looks into the node".into(),
                    uri: self.plan.modules.get(template.place.module as usize).cloned().unwrap_or_default(),
                    line: template.place.line,
                    column: template.place.column,
                }));
            }
        }
        let rule = self.find_rule(rules, &Focus::new(node, depth.0, depth.1), 0..u32::MAX)?;
        Ok(rule.and_then(|rule| classified.templates[rules.numbered(rule).0].clone()))
    }

    /// Applies templates to, or loops over, what is selected from the content of the open element. `place`: that of
    /// the selection; `None`: its children.
    pub(super) fn consume(
        &self,
        select: Option<(&Expr, Place)>,
        action: Action<'_>,
        focus: Focus,
        frame: &mut Frame,
        out: &mut Out<'_>,
    ) -> Res<()> {
        let Some(opening) = &self.opening else { return Ok(()) };
        let (feed, level) = (opening.feed, opening.level.load(Ordering::Relaxed));
        let children = Selection { predicates: false, streams: true, steps: 1 };
        let selection = match select {
            None => children,
            Some((_, place)) => feed.classified().selections.get(&key(place)).copied().unwrap_or(children),
        };
        let focus = Focus { depth: focus.depth + 5, ..focus };
        let parent = here_in(opening.window, level, &focus);
        let mut pass = Pass { select, action: &action, selection, level, parent, position: 0, first: true };
        let mut kept = self.pass(&mut pass, frame, out)?;
        let mut current: Option<Window> = None;
        loop {
            out.drain(WORTH_WRITING, &mut |bytes| feed.write(bytes))?;
            let mut next = current.as_ref().unwrap_or(opening.window).next(kept);
            // The element itself: it may end in this window.
            pass.parent = here_in(&next, level, &focus);
            pass.first = false;
            let mut ended = false;
            feed.pump(&mut |pump| {
                ended = pump.has_ended(level);
                if !ended {
                    pump.fill(&mut next, level, self.plan)?;
                }
                Ok(())
            })?;
            if ended {
                return Ok(());
            }
            let nested = self.within(feed, &next, level);
            kept = nested.pass(&mut pass, frame, out)?;
            self.go_on_from(&nested);
            drop(nested);
            current = Some(next);
        }
    }

    /// Processes the selected nodes of the present window. Returns how many of its open elements the next one begins with.
    fn pass(&self, pass: &mut Pass<'_>, frame: &mut Frame, out: &mut Out<'_>) -> Res<usize> {
        let Some(Opening { feed, window, .. }) = &self.opening else { return Ok(0) };
        let Pass { select, action, selection, level, parent, .. } = *pass;
        // Open elements: the child, and the element that may be selected.
        let open_child = window.open_at(level);
        let target_level = level + selection.steps;
        let target = window.open_at(target_level - 1);
        let mut selected = false;
        for node in self.selected(select, parent, frame)? {
            if !pass.first && self.doc(DocId(0)).kind(node.id) == NodeKind::Attribute {
                continue;
            }
            if selection.predicates && open_child.is_some_and(|child| self.is_inside(node.id, child)) {
                continue;
            }
            pass.position += 1;
            if Some(node.id) == target {
                selected = true;
            } else {
                self.act(node, pass.position, action, &parent, frame, out)?;
            }
        }
        if selection.predicates && open_child.is_some() {
            // The predicates can be evaluated when the child is complete.
            let mut whole = window.with_open(level);
            feed.pump(&mut |pump| pump.complete(&mut whole, level + 1, self.plan))?;
            let nested = self.within(*feed, &whole, level);
            for node in nested.selected(select, here_in(&whole, level, &parent), frame)? {
                if nested.doc(DocId(0)).kind(node.id) != NodeKind::Attribute {
                    pass.position += 1;
                    nested.act(node, pass.position, action, &parent, frame, out)?;
                }
            }
            self.go_on_from(&nested);
            return Ok(level);
        }
        if let Some(target) = target {
            if selected {
                let focus = Focus { node: Node::new(target), position: pass.position, size: 0, ..parent };
                self.act_on_open(target_level, action, &selection, focus, frame, out)?;
            }
            feed.pump(&mut |pump| pump.skip(target_level))?;
        }
        Ok(target_level - 1)
    }

    /// The selected nodes in the window.
    fn selected(&self, select: Option<(&Expr, Place)>, focus: Focus, frame: &Frame) -> Res<Vec<Node>> {
        match select {
            None => Ok(self.doc(DocId(0)).children(focus.node.id).map(Node::new).collect()),
            Some((select, place)) => self.nodes(select, focus, frame, place),
        }
    }

    fn is_inside(&self, node: NodeId, ancestor: NodeId) -> bool {
        let doc = self.doc(DocId(0));
        let mut at = Some(node);
        while let Some(node) = at {
            if node == ancestor {
                return true;
            }
            at = doc.parent(node);
        }
        false
    }

    /// Applies a template to, or runs the loop on, one node.
    fn act(
        &self,
        node: Node,
        position: u32,
        action: &Action<'_>,
        focus: &Focus,
        frame: &mut Frame,
        out: &mut Out<'_>,
    ) -> Res<()> {
        let focus = Focus { node, position, size: 0, ..*focus };
        match action {
            Action::Apply { mode, arguments } => self.apply(focus, *mode, arguments, out),
            Action::Loop(body) => {
                self.tick(out)?;
                self.exec(body, Focus { rule: NO_RULE, ..focus }, frame, out)
            }
        }
    }

    /// The same for a node that is incomplete; `level`: its level.
    fn act_on_open(
        &self,
        level: usize,
        action: &Action<'_>,
        selection: &Selection,
        focus: Focus,
        frame: &mut Frame,
        out: &mut Out<'_>,
    ) -> Res<()> {
        let Some(opening) = &self.opening else { return Ok(()) };
        let why = match action {
            Action::Apply { mode, .. } => self.buffers(*mode, focus.node, (focus.depth, focus.next))?,
            Action::Loop(_) if selection.streams => None,
            Action::Loop(_) => Some(NotStreamable::default()),
        };
        let Some(why) = why else {
            let before = opening.level.swap(level, Ordering::Relaxed);
            let done = self.act(focus.node, focus.position, action, &focus, frame, out);
            opening.level.store(before, Ordering::Relaxed);
            return done;
        };
        if level == 1 {
            refuse(opening.feed, &why)?;
        }
        let mut whole = opening.window.with_open(level - 1);
        let Some(node) = whole.open_at(level - 1) else { return Ok(()) };
        opening.feed.pump(&mut |pump| pump.complete(&mut whole, level, self.plan))?;
        let nested = self.within(opening.feed, &whole, usize::MAX);
        nested.act(Node::new(node), focus.position, action, &focus, frame, out)?;
        self.go_on_from(&nested);
        Ok(())
    }

    /// The limits count on.
    fn go_on_from(&self, nested: &Engine<'_>) {
        self.steps.store(nested.steps.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// The focus on the element at `level` of a window.
fn here_in(window: &Window, level: usize, focus: &Focus) -> Focus {
    let node = level.checked_sub(1).and_then(|at| window.open_at(at)).unwrap_or(Document::ROOT);
    Focus { node: Node::new(node), ..*focus }
}
