//! Accumulators (XSLT 3.0 section 18.2): values computed by rules while a document is traversed, by node and name. They are computed for
//! all nodes of a document on first use.

use super::{Engine, Focus, Frame, Res};
use crate::model::Place;
use crate::names::Name;
use crate::version3::{Accumulator, Applicable};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use xml::{NodeId, NodeKind};
use xpath::{DocId, Node, Value};

/// The most memory of the values of one accumulator for one document, in bytes (each item that is not shared counts 32, and a single text its length).
const MAX_HELD: usize = 256 << 20;

/// The values before and after each node, by its number.
type Values = Arc<HashMap<NodeId, (Value, Value)>>;

/// An accumulator and a tree: its document, and its root (a document of the engine may hold several trees).
type Key = (Name, DocId, NodeId);

/// The computed values, and those under computation.
#[derive(Default)]
pub(super) struct Accumulated {
    values: Mutex<HashMap<Key, Values>>,
    busy: Mutex<HashSet<Key>>,
    /// The documents that do not have all accumulators.
    limited: Mutex<HashMap<DocId, Applicable>>,
}

impl Engine<'_> {
    /// Reads a document for which `use-accumulators` says which accumulators have values in it. One that was read without that
    /// before, by `doc()`, has all.
    pub(super) fn load_with(
        &self,
        reference: &str,
        base: &str,
        applicable: &Applicable,
    ) -> Result<Option<Node>, String> {
        let before = self.docs.count();
        let found = self.load_document(reference, base)?;
        if let Some(node) = found {
            let mut limited = self.accumulated.limited.lock().unwrap_or_else(PoisonError::into_inner);
            let is_new = self.docs.count() > before;
            let known = limited.get(&node.doc).map(|known| known.and(applicable));
            if let Some(applicable) = known.or_else(|| is_new.then(|| applicable.clone())) {
                limited.insert(node.doc, applicable);
            }
        }
        Ok(found)
    }

    /// Which accumulators have values in the source document.
    pub(super) fn limit_accumulators(&self, applicable: &Applicable) {
        if !self.plan.accumulators.is_empty() {
            let mut limited = self.accumulated.limited.lock().unwrap_or_else(PoisonError::into_inner);
            limited.insert(DocId(0), applicable.clone());
        }
    }

    /// A document that `doc()` or `document()` read has all accumulators.
    pub(super) fn allow_accumulators(&self, id: DocId) {
        if !self.plan.accumulators.is_empty() && id != DocId(0) {
            self.accumulated.limited.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        }
    }

    /// `accumulator-before()` and, with `after`, `accumulator-after()` of a node.
    pub(super) fn accumulator_value(&self, name: Name, focus: &Focus, after: bool) -> Res<Value> {
        let node = focus.node;
        let Some(accumulator) = self.plan.accumulators.get(&name) else {
            let shown = self.symbols.show(name);
            return Err(self.fail(Place::default(), format!("XTDE3340: there is no accumulator \"{shown}\"")));
        };
        if node.doc == DocId::ATOMIC {
            let code = if self.item(node).is_some() { "XTTE3360" } else { "XTDE3350" };
            let message =
                format!("{code}: an accumulator has values for nodes: there is no node as context item");
            return Err(self.fail(Place::default(), message));
        }
        if node.is_namespace() || self.doc(node.doc).kind(node.id) == NodeKind::Attribute {
            let message = "XTTE3360: an accumulator has no value for attributes and namespaces";
            return Err(self.fail(Place::default(), message.into()));
        }
        let limited = self.accumulated.limited.lock().unwrap_or_else(PoisonError::into_inner);
        let has_values = limited.get(&node.doc).is_none_or(|applicable| applicable.has(name));
        drop(limited);
        if !has_values {
            let shown = self.symbols.show(name);
            let message = format!(
                "XTDE3362: the accumulator \"{shown}\" is not one of the document's: use-accumulators of the initial mode, of \
                 xsl:source-document or of xsl:merge-source does not name it"
            );
            return Err(self.fail(Place::default(), message));
        }
        let top = self.doc(node.doc).root_of(node.id);
        let key = (name, node.doc, top);
        let failed = || self.fail(accumulator.place, "an accumulator could not be computed".into());
        let kept = self.accumulated.values.lock().map_err(|_| failed())?.get(&key).cloned();
        let values = match kept {
            Some(values) => values,
            None => {
                if !self.accumulated.busy.lock().map_err(|_| failed())?.insert(key) {
                    let shown = self.symbols.show(name);
                    let message = format!("XTDE3400: the accumulator \"{shown}\" needs its own value");
                    return Err(self.fail(accumulator.place, message));
                }
                let computed = self.enter_from_expression(*focus, accumulator.place, |focus| {
                    self.accumulate(accumulator, &focus, top)
                });
                if let Ok(mut busy) = self.accumulated.busy.lock() {
                    busy.remove(&key);
                }
                let values = Arc::new(computed?);
                self.accumulated.values.lock().map_err(|_| failed())?.insert(key, values.clone());
                values
            }
        };
        let (before, behind) = values.get(&node.id).cloned().unwrap_or_default();
        Ok(if after { behind } else { before })
    }

    /// Traverses the tree of the focus's node.
    fn accumulate(
        &self,
        accumulator: &Accumulator,
        focus: &Focus,
        top: NodeId,
    ) -> Res<HashMap<NodeId, (Value, Value)>> {
        let id = focus.node.doc;
        let doc = self.doc(id);
        let place = accumulator.place;
        let start = Focus::new(Node::in_document(id, top), focus.depth, focus.next);
        let mut frame = Frame::default();
        frame.locals.resize(accumulator.slots, Value::Empty);
        let mut value = self.value(&accumulator.initial, start, &frame, place)?;
        if let Some(declared) = &accumulator.declared {
            value = self.converted(value, declared, declared.code, place)?;
        }
        let mut held = 0;
        let mut values: HashMap<NodeId, (Value, Value)> = HashMap::new();
        let mut at = top;
        loop {
            value = self.apply_rules(
                accumulator,
                Node::in_document(id, at),
                false,
                value,
                &start,
                (&mut frame, &mut held),
            )?;
            values.insert(at, (value.clone(), Value::Empty));
            if let Some(child) = doc.first_child(at) {
                at = child;
                continue;
            }
            loop {
                value = self.apply_rules(
                    accumulator,
                    Node::in_document(id, at),
                    true,
                    value,
                    &start,
                    (&mut frame, &mut held),
                )?;
                if let Some(entry) = values.get_mut(&at) {
                    entry.1 = value.clone();
                }
                if at == top {
                    return Ok(values);
                }
                if let Some(next) = doc.next_sibling(at) {
                    at = next;
                    break;
                }
                match doc.parent(at) {
                    Some(parent) => at = parent,
                    None => return Ok(values),
                }
            }
        }
    }

    /// The value after a node's begin or end: that of the last matching rule.
    fn apply_rules(
        &self,
        accumulator: &Accumulator,
        node: Node,
        end: bool,
        value: Value,
        start: &Focus,
        (frame, held): (&mut Frame, &mut usize),
    ) -> Res<Value> {
        self.tick_alone()?;
        for rule in accumulator.rules.iter().rev().filter(|rule| rule.at_end == end) {
            let focus = Focus { node, position: 1, size: 1, ..*start };
            if !self.matches(&rule.pattern, &focus, &super::matching::NO_FRAME)? {
                continue;
            }
            frame.locals[accumulator.slot] = value.clone();
            let before = value;
            let value = self.content_value(&rule.content, focus, frame, rule.place)?;
            let value = match &accumulator.declared {
                Some(declared) => self.converted(value, declared, declared.code, rule.place)?,
                None => value,
            };
            let added = value.added_to(&before);
            self.spend(added as u64 >> 2)?;
            *held += match &value {
                Value::String(text) => 32 + text.len(),
                Value::Atomic(atom) => 32 + atom.as_text().map_or(0, |text| text.len()),
                _ => 32 * (1 + added),
            };
            if *held > MAX_HELD {
                let most = MAX_HELD >> 20;
                let message =
                    format!("the values of an accumulator for one document hold more than {most} MiB");
                return Err(self.limit(rule.place, message));
            }
            return Ok(value);
        }
        Ok(value)
    }
}
