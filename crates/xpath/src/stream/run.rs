//! One evaluation on an event stream.
//!
//! A *cursor* waits for nodes that the next step of a path may find: among the children of one element, or anywhere below
//! it. A node that passes a step with predicates not yet decided becomes a *candidate*; what is found below it counts once
//! the predicates turn out true. A *collector* gathers the string-value of a found node. All of them lie on stacks and
//! are removed when the element ends at which they were made.
//!
//! The set of classes of nodes that are waited for is known at any time (see [`super::class`]): those of the cursors among
//! the children of the innermost frame, and those of the cursors below and of text for collectors. Other events cannot change
//! the state, so [`Run::read`] has the tokenizer skip them. An element at which nothing was made has no frame.
//!
//! A leaf counts the cursors, collectors and pending candidates that can still change it. When there are none, it is final:
//! this is how "no" is known early.

mod cursors;
mod decide;
mod found;
mod state;

use super::class::UNKNOWN;
use super::known::Known;
use super::{Attributes, Decision, Item, LeafKind, StreamPlan};
use crate::ast::BinaryOp;
use crate::error::XPathError;
use crate::value::Value;
use state::{Collector, Cursor, Frame, Gather, State};
use xml::{Interest, Tokenizer, XmlError};

/// Most text held at once for values being compared.
const MAX_TEXT: usize = 16 << 20;
/// Most cursors, collectors and candidates at once.
const MAX_ACTIVE: usize = 1 << 16;

/// Bytes given to the tokenizer at once: the first piece, doubled each time up to the largest. Bytes after
/// the place of the decision are neither copied nor checked, and the largest piece stays in the processor's cache.
const FIRST_PIECE: usize = 256;
const LARGEST_PIECE: usize = 16 << 10;

/// Added to the numbers that a tokenizer gives to elements.
const READ: u64 = 1 << 32;

/// No candidate: found nodes count at once.
const NONE: u32 = u32::MAX;

/// One evaluation of a [`StreamPlan`]. Feed it the events of a document in order, ask for the [`Run::decision`] after any.
#[derive(Debug)]
pub struct Run<'p> {
    plan: &'p StreamPlan,
    /// Constants as the host gave them, and in the form in which streaming compares them.
    values: Vec<Value>,
    comparable: Vec<Known>,
    decision: Decision,
    s: State,
    buffering: usize,

    /// Open elements.
    depth: usize,
    /// Classes waited for among the children of the innermost frame's element, and anywhere.
    wanted_children: u32,
    wanted_anywhere: u32,
    /// The classes of elements that only certain texts pass, see [`Run::finds`].
    wanted_leaves: u32,
    /// Open elements when [`Run::read`] began, and the size of its next piece.
    outside: usize,
    piece: usize,
    in_text: bool,
    /// Depth and number of the element around the current node.
    around: (usize, u64),
    /// The number of elements so far, of events that are given one by one.
    numbered: u64,
    /// The current node: its number in the stream, attributes counted below it.
    item: u64,
    /// A change that may decide a scope.
    dirty: bool,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        std::mem::take(&mut self.s).keep();
    }
}

impl<'p> Run<'p> {
    pub(super) fn new(plan: &'p StreamPlan, values: Vec<Value>, comparable: Vec<Known>) -> Run<'p> {
        let mut run = Run {
            plan,
            values,
            comparable,
            decision: Decision::Undecided,
            s: State::take(plan.id),
            buffering: 0,
            depth: 0,
            wanted_children: 0,
            wanted_anywhere: 0,
            wanted_leaves: 0,
            outside: 0,
            piece: 0,
            in_text: false,
            around: (0, 0),
            numbered: 0,
            item: 0,
            dirty: false,
        };
        run.s.frames.push(Frame::default());
        run.open_scope(0, 1, NONE, &Item::Document);
        run.settle();
        run.look_out();
        run
    }

    /// Reads the next bytes of a document until they decide, and returns how many were needed. The rest of them may be
    /// given in another call, or never. After the last bytes call [`Tokenizer::finish`], [`Run::drain`] and [`Run::finish`].
    ///
    /// # Errors
    /// The document is not well-formed, or exceeds a limit, up to the decision.
    pub fn read(&mut self, tokenizer: &mut Tokenizer, bytes: &[u8]) -> Result<usize, XmlError> {
        let mut given = 0;
        loop {
            self.drain(tokenizer)?;
            if self.is_decided() || given == bytes.len() {
                return Ok(given);
            }
            self.piece = (self.piece * 2).clamp(FIRST_PIECE, LARGEST_PIECE);
            let piece = &bytes[given..bytes.len().min(given + self.piece)];
            tokenizer.feed(piece);
            given += piece.len();
        }
    }

    /// Processes the events of the tokenizer, until they decide.
    ///
    /// # Errors
    /// As [`Run::read`].
    pub fn drain(&mut self, tokenizer: &mut Tokenizer) -> Result<(), XmlError> {
        if self.piece == 0 {
            self.outside = self.depth - tokenizer.depth().min(self.depth);
            self.piece = 1;
        }
        self.s.know(tokenizer.names());
        while !self.is_decided() {
            let there = if self.s.collectors.last().is_some_and(|c| c.text_node) {
                // The next event ends the text node.
                tokenizer.next()?.is_some()
            } else {
                let frame = self.s.frames.last().map_or(0, |frame| frame.depth);
                tokenizer.skim(&Interest {
                    classes: &self.s.classes,
                    anywhere: self.wanted_anywhere,
                    children: self.wanted_children,
                    level: frame.checked_sub(self.outside).unwrap_or(usize::MAX),
                    leaves: self.wanted_leaves,
                    leaf: Some(&|class, text| self.finds(class, text)),
                })?
            };
            let open = self.outside + tokenizer.depth();
            let around = READ + u64::from(tokenizer.surrounding());
            if !there {
                self.depth = open;
                return Ok(());
            }
            match tokenizer.event() {
                xml::Event::StartElement { name, attributes, empty } => {
                    self.depth = open - usize::from(!empty);
                    self.around = (self.depth, around);
                    let (ns, local) = (name.namespace(), name.local());
                    let class = match self.s.classes.get(name.id().index()) {
                        Some(class) if *class != UNKNOWN => *class,
                        _ => self.s.learn(name.id().index(), self.plan.class(ns, local)),
                    };
                    self.start(Item::Element { ns, local, attributes: &attributes, class }, class);
                }
                xml::Event::EndElement { .. } => {
                    self.depth = open + 1;
                    self.end();
                }
                xml::Event::Text(text) => {
                    self.depth = open;
                    self.around = (open, around);
                    self.in_text &= tokenizer.continues_text();
                    self.piece_of_text(text);
                }
                xml::Event::Comment(value) => {
                    self.depth = open;
                    self.around = (open, around);
                    self.leaf_item(&Item::Comment(value), Interest::COMMENT);
                }
                xml::Event::ProcessingInstruction { target, data } => {
                    self.depth = open;
                    self.around = (open, around);
                    self.leaf_item(&Item::Instruction(target, data), Interest::INSTRUCTION);
                }
            }
        }
        Ok(())
    }

    /// How far the answer is known.
    pub fn decision(&self) -> Decision {
        self.decision.clone()
    }

    /// Whether the result is fixed (or the run failed): further events change nothing.
    #[inline]
    pub fn is_decided(&self) -> bool {
        !matches!(self.decision, Decision::Undecided)
    }

    /// An event of the tokenizer.
    pub fn event(&mut self, event: &xml::Event<'_>) {
        match event {
            xml::Event::StartElement { name, attributes, .. } => {
                self.start_element(name.namespace(), name.local(), attributes);
            }
            xml::Event::EndElement { .. } => self.end_element(),
            xml::Event::Text(text) => self.text(text),
            xml::Event::Comment(value) => self.comment(value),
            xml::Event::ProcessingInstruction { target, data } => self.processing_instruction(target, data),
        }
    }

    /// A start tag. `attributes` without namespace declarations.
    pub fn start_element(&mut self, ns: &str, local: &str, attributes: &dyn Attributes) {
        if self.is_decided() {
            return;
        }
        let class = self.plan.class(ns, local);
        self.come_around();
        self.numbered += 1;
        self.s.open.push(self.numbered);
        self.start(Item::Element { ns, local, attributes, class }, class);
    }

    /// An event that is given by itself: the element around it.
    fn come_around(&mut self) {
        self.around = (self.depth, self.s.open.last().copied().unwrap_or(0));
    }

    /// Whether nodes of a class are waited for here.
    #[inline]
    fn wants(&self, class: u32) -> bool {
        class & self.wanted_anywhere != 0
            || class & self.wanted_children != 0
                && self.s.frames.last().is_some_and(|frame| frame.depth == self.depth)
    }

    fn start(&mut self, item: Item<'_>, class: u32) {
        self.end_text_node();
        let wanted = self.wants(class);
        self.depth += 1;
        if !wanted {
            // A text node may have ended.
            if self.dirty {
                self.settle();
            }
            return self.look_out();
        }
        self.next_item();
        let Some(outer) = self.s.frames.last().copied() else { return };
        let is_child = outer.depth + 1 == self.depth;
        let mine = Frame {
            depth: self.depth,
            children: self.s.children.len(),
            below: self.s.below.len(),
            counters: self.s.counters.len(),
            scopes: self.s.scopes.len(),
            leaves: self.s.leaves.len(),
            candidates: self.s.candidates.len(),
        };
        let at_root = self.s.frames.len() == 1;
        self.s.frames.push(mine);
        if class & self.plan.bodies != 0 && is_child && self.s.frames.len() == 3 {
            self.give_up_header(outer.children..mine.children, &item);
        }
        for i in if is_child { outer.children..mine.children } else { 0..0 } {
            self.try_cursor(false, i, &item);
            if at_root && self.only_finds_elements(self.s.children[i]) {
                // There is one document element.
                self.kill_cursor(false, i);
            }
        }
        for i in 0..mine.below {
            self.try_cursor(true, i, &item);
        }
        self.check_limits();
        self.settle();
        self.fold();
        self.look_out();
    }

    /// The body of the envelope begins: no header follows.
    fn give_up_header(&mut self, cursors: std::ops::Range<usize>, body: &Item<'_>) {
        let Item::Element { ns, .. } = *body else { return };
        for i in cursors {
            let c = self.s.children[i];
            if self.leaf_plan(c.leaf).path[c.step as usize].finds_header(ns) {
                self.kill_cursor(false, i);
            }
        }
    }

    /// Drops the innermost frame if nothing was made at its element, or nothing is left of it. The document's and the
    /// document element's stay: other rules hold for what follows them.
    fn fold(&mut self) {
        let at = self.s.frames.len();
        let Some(frame) = self.s.frames.last() else { return };
        if at > 2
            && self.s.children[frame.children..].iter().all(|c| c.dead)
            && self.s.below[frame.below..].iter().all(|c| c.dead)
            && self.s.scopes.len() == frame.scopes
            && self.s.candidates.len() == frame.candidates
            && self.s.leaves.len() == frame.leaves
            && self.s.collectors.last().is_none_or(|c| c.depth < at)
        {
            let frame = *frame;
            self.s.children.truncate(frame.children);
            self.s.below.truncate(frame.below);
            self.s.counters.truncate(frame.counters);
            self.s.frames.pop();
        }
    }

    /// Computes what is waited for now.
    fn look_out(&mut self) {
        let mut others = 0;
        let mut masks = |cursors: &[Cursor]| {
            let mut all = 0;
            for c in cursors.iter().filter(|c| !c.dead) {
                all |= c.mask;
                others |= if c.compares { 0 } else { c.mask };
            }
            all
        };
        self.wanted_anywhere = masks(&self.s.below);
        self.wanted_children = match &self.s.frames[..] {
            // At the document element the others stop waiting.
            [_] => UNKNOWN,
            [.., frame] => masks(&self.s.children[frame.children..]),
            [] => 0,
        };
        if self.plan.bodies != 0 && self.s.frames.len() == 2 {
            self.wanted_children |= self.plan.bodies;
            others |= self.plan.bodies;
        }
        self.wanted_leaves = if self.s.frames.len() > 1 { !others } else { 0 };
        if self.s.collectors.iter().any(|c| !c.dead) {
            self.wanted_anywhere |= Interest::TEXT;
        }
    }

    /// Whether an element of a class in `wanted_leaves` with just this text is found. (If not, it has no effect: all states
    /// that wait for it compare it.)
    fn finds(&self, class: u32, text: &str) -> bool {
        let children = self.s.frames.last().map_or(0, |frame| frame.children);
        self.s.below.iter().chain(&self.s.children[children..]).any(|c| {
            !c.dead
                && c.mask & class != 0
                && match &self.leaf_plan(c.leaf).kind {
                    LeafKind::Compare(op, other) => match (op, self.constant(other)) {
                        (BinaryOp::Equal, Known::String(wanted)) => **wanted == *text,
                        (op, other) => other.compare_node(*op, text),
                    },
                    _ => true,
                }
        })
    }

    /// A piece of text; consecutive pieces are one text node.
    pub fn text(&mut self, text: &str) {
        self.come_around();
        self.piece_of_text(text);
    }

    fn piece_of_text(&mut self, text: &str) {
        if self.is_decided() || text.is_empty() {
            return;
        }
        // White space around the document element is not a text node.
        if self.depth == 0 {
            return;
        }
        if !self.in_text {
            self.end_text_node();
            self.in_text = true;
            if !self.wants(Interest::TEXT) {
                return;
            }
            self.next_item();
            self.offer(&Item::Text);
        }
        for i in 0..self.s.collectors.len() {
            let Collector { dead, leaf, candidate, depth, kind, .. } = self.s.collectors[i];
            let met = match kind {
                Gather::Match(met) if !dead => met,
                Gather::Direct if !dead && self.s.frames[depth - 1].depth == self.depth => {
                    let leaf_text = &mut self.s.leaves[leaf as usize].text;
                    if leaf_text.len() + text.len() > MAX_TEXT {
                        return self.fail(format!("an element has more than {MAX_TEXT} bytes of text"));
                    }
                    leaf_text.push_str(text);
                    continue;
                }
                _ => continue,
            };
            let (op, wanted) = self.compared_string(leaf);
            if wanted.as_bytes()[met..].starts_with(text.as_bytes()) {
                self.s.collectors[i].kind = Gather::Match(met + text.len());
            } else {
                self.s.collectors[i].dead = true;
                self.release(leaf);
                if op == BinaryOp::NotEqual {
                    self.hit(leaf, candidate);
                }
            }
        }
        // Unused ones at the end are removed.
        while self.s.collectors.last().is_some_and(|c| c.dead && matches!(c.kind, Gather::Match(_))) {
            self.s.collectors.pop();
        }
        if self.buffering > 0 {
            if self.s.text.len() + text.len() > MAX_TEXT {
                self.fail(format!("more than {MAX_TEXT} bytes of text are being compared"));
                return;
            }
            self.s.text.push_str(text);
        }
        self.settle();
        self.fold();
        self.look_out();
    }

    /// A comment.
    pub fn comment(&mut self, value: &str) {
        self.come_around();
        self.leaf_item(&Item::Comment(value), Interest::COMMENT);
    }

    /// A processing instruction.
    pub fn processing_instruction(&mut self, target: &str, value: &str) {
        self.come_around();
        self.leaf_item(&Item::Instruction(target, value), Interest::INSTRUCTION);
    }

    fn leaf_item(&mut self, item: &Item<'_>, class: u32) {
        if self.is_decided() {
            return;
        }
        self.end_text_node();
        if self.wants(class) {
            self.next_item();
            self.offer(item);
            self.settle();
        }
        self.look_out();
    }

    /// The end tag of the innermost open element.
    pub fn end_element(&mut self) {
        self.s.open.pop();
        self.end();
    }

    fn end(&mut self) {
        if self.is_decided() {
            return;
        }
        self.end_text_node();
        let ends = self.s.frames.last().is_some_and(|frame| frame.depth == self.depth);
        self.depth = self.depth.saturating_sub(1);
        if self.s.frames.len() > 1 && ends {
            self.end_frame();
        }
        if self.s.frames.len() == 1 && !self.is_decided() {
            // After the document element only comments and processing instructions can come.
            for i in 0..self.s.below.len() {
                if self.only_finds_elements(self.s.below[i]) {
                    self.kill_cursor(true, i);
                }
            }
        }
        self.settle();
        self.look_out();
    }

    /// The end of the document: everything is decided.
    pub fn finish(&mut self) -> Result<Value, XPathError> {
        while !self.is_decided() && !self.s.frames.is_empty() {
            self.end_frame();
        }
        match &self.decision {
            Decision::True => Ok(Value::Boolean(true)),
            Decision::False => Ok(Value::Boolean(false)),
            Decision::Value(v) => Ok(v.clone()),
            Decision::Failed(e) => Err(e.clone()),
            Decision::Undecided => Err(XPathError::new("the document ended and nothing is decided", 0..0)),
        }
    }
}
