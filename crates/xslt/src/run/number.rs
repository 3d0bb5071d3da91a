//! `xsl:number` (XSLT 1.0 section 7.7): the number of a node.

use super::matching::NO_FRAME;
use super::{Engine, Focus, Frame, Res};
use crate::model::{Level, Number, Place};
use crate::pattern::Pattern;
use std::collections::HashMap;
use xml::{Document, NameId, NodeId, NodeKind};
use xpath::Node;
use xpath::format::numbering::{NumberFormat, Numeral, format_list};

/// The last counted node of each `xsl:number`, and its number.
pub(super) type CountedNumbers = HashMap<Counted, (NodeId, usize)>;

/// Most of them that are kept.
const MAX_COUNTED: usize = 1024;

/// An `xsl:number` (its address) among the children of one node, or in the whole document.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Counted {
    number: usize,
    parent: Node,
    /// Without a pattern: the kind and the name that are counted.
    alike_to: (u8, Option<NameId>),
}

impl Engine<'_> {
    /// The text that `xsl:number` writes.
    pub(super) fn number(&self, number: &Number, focus: Focus, frame: &Frame, place: Place) -> Res<String> {
        let numbers: Vec<Numeral> = match (&number.value, &number.select) {
            (Some(value), _) if number.version2 => {
                let value = self.value(value, focus, frame, place)?;
                let mut numbers = Vec::with_capacity(value.len());
                for item in value.items() {
                    let atom = self.atom(item);
                    let number = atom.to_double();
                    if number.is_nan() || number.is_infinite() || number < -0.5 {
                        let shown = xpath::number::format(number);
                        let message = format!("XTDE0980: xsl:number cannot write {shown}");
                        return Err(self.fail(place, message));
                    }
                    numbers.push(Numeral::from(&atom));
                }
                numbers
            }
            (Some(value), _) => {
                vec![self.with(value, focus, frame, place, |e, cx| e.evaluate_number(cx))?.into()]
            }
            (None, Some(select)) => {
                let value = self.value(select, focus, frame, place)?;
                match (value.len(), value.item(0)) {
                    (1, Some(xpath::Item::Node(node))) => {
                        let focus = Focus { node, ..focus };
                        self.count(number, &focus, frame)?.into_iter().map(|n| (n as f64).into()).collect()
                    }
                    _ => {
                        let message = "XTTE1000: select of xsl:number must be a single node";
                        return Err(self.fail(place, message.into()));
                    }
                }
            }
            (None, None) => {
                self.count(number, &focus, frame)?.into_iter().map(|n| (n as f64).into()).collect()
            }
        };
        let format = self.avt(&number.format, focus, frame, place)?;
        let text = |avt: &Option<crate::model::Avt>| match avt {
            Some(avt) => self.avt(avt, focus, frame, place).map(|text| Some(text.into_owned())),
            None => Ok(None),
        };
        let separator = text(&number.grouping_separator)?;
        let size = text(&number.grouping_size)?;
        let digits = size.as_ref().and_then(|size| size.trim().parse().ok());
        // No alphabet here has two numbering systems: letter-value and lang have no effect.
        let letter_value = text(&number.letter_value)?;
        if number.version2 {
            let wrong = |name: &str, value: &str| {
                self.fail(place, format!("XTDE0030: {name}=\"{value}\" is not a value of the attribute"))
            };
            if let (Some(size), None) = (&size, digits) {
                return Err(wrong("grouping-size", size));
            }
            if let Some(value) =
                letter_value.filter(|value| !matches!(value.trim(), "alphabetic" | "traditional"))
            {
                return Err(wrong("letter-value", &value));
            }
        }
        let size = digits;
        if let Some(lang) = text(&number.lang)?
            && number.version2
            && !lang.is_empty()
            && !is_language(&lang)
        {
            return Err(self.fail(place, format!("XTDE0030: lang=\"{lang}\" is not a language")));
        }
        let starts: Vec<f64> = match text(&number.start_at)? {
            None => Vec::new(),
            Some(list) => {
                let starts: Result<_, _> = list.split_ascii_whitespace().map(str::parse::<i64>).collect();
                let starts: Vec<i64> = starts.map_err(|_| {
                    self.fail(place, format!("XTSE0020: start-at=\"{list}\" must be integers"))
                })?;
                starts.into_iter().map(|n| n as f64).collect()
            }
        };
        let numbers: Vec<Numeral> = match (starts.as_slice(), &number.value) {
            ([], _) => numbers,
            // The last token counts for all further numbers.
            ([.., last], _) => {
                let started = |(at, n): (usize, &Numeral)| n.number + starts.get(at).unwrap_or(last) - 1.0;
                numbers.iter().enumerate().map(|number| started(number).into()).collect()
            }
        };
        let ordinal = text(&number.ordinal)?.is_some_and(|ordinal| !ordinal.is_empty());
        if numbers.is_empty() && !number.version2 {
            return Ok(String::new());
        }
        if let Some(numeral) = numbers.iter().find(|numeral| !numeral.number.is_finite()) {
            return Ok(xpath::number::format(numeral.number).into_owned());
        }
        let grouping = match (&separator, size) {
            (Some(separator), Some(size)) => Some((separator.as_str(), size)),
            _ => None,
        };
        Ok(format_list(
            &numbers,
            &NumberFormat { format: &format, grouping, version2: number.version2, ordinal },
        ))
    }

    fn count(&self, number: &Number, focus: &Focus, frame: &Frame) -> Res<Vec<usize>> {
        let node = focus.node;
        if node.doc == xpath::DocId::ATOMIC {
            let message = "XTTE0990: xsl:number needs a node as context item, or a value attribute";
            return Err(self.fail(Place::default(), message.into()));
        }
        // A namespace node has no siblings; other nodes that count are ancestors.
        if node.is_namespace() && number.count.is_none() {
            return Ok(vec![1]);
        }
        let doc = self.doc(node.doc);
        let at = |id: NodeId| Node::in_document(node.doc, id);
        let of_node = |pattern: &Option<Pattern>| pattern.as_ref().is_none_or(Pattern::is_of_node);
        let of_node = of_node(&number.count) && of_node(&number.from);
        // Without local variables, what is found out about steps of the patterns is kept.
        let frame = if of_node { &NO_FRAME } else { frame };
        let counts = |id: NodeId| match &number.count {
            Some(pattern) => self.matches(pattern, &Focus { node: at(id), ..*focus }, frame),
            None => Ok(alike(doc, id, node.id)),
        };
        let begins = |id: NodeId| match &number.from {
            Some(pattern) => self.matches(pattern, &Focus { node: at(id), ..*focus }, frame),
            None => Ok(false),
        };
        // Nodes are mostly numbered one after the other: counting starts from the last one.
        // While a document is being read, nodes come and go.
        let remembers = self.opening.is_none() && of_node;
        let alike_to = match number.count {
            None => (doc.kind(node.id) as u8, doc.name_id(node.id)),
            Some(_) => (u8::MAX, None),
        };
        let key = |parent: NodeId| Counted {
            number: std::ptr::from_ref(number).addr(),
            parent: at(parent),
            alike_to,
        };
        let last_counted = |key: &Counted| match remembers {
            true => self.counted.lock().ok().and_then(|counted| counted.get(key).copied()),
            false => None,
        };
        let remember = |key: Counted, id: NodeId, count: usize| {
            if remembers && let Ok(mut counted) = self.counted.lock() {
                if counted.len() >= MAX_COUNTED {
                    counted.clear();
                }
                counted.insert(key, (id, count));
            }
        };
        if number.level == Level::Any {
            let mut count = 0;
            let mut current = Some(node.id);
            let last = last_counted(&key(Document::ROOT));
            while let Some(id) = current {
                self.spend(1)?;
                if let Some((counted_node, before)) = last
                    && counted_node == id
                {
                    count += before;
                    break;
                }
                if counts(id)? {
                    count += 1;
                }
                if begins(id)? {
                    break;
                }
                current = before(doc, id);
            }
            remember(key(Document::ROOT), node.id, count);
            if number.version2 && count == 0 {
                return Ok(Vec::new());
            }
            return Ok(vec![count]);
        }
        let mut numbers = Vec::new();
        let mut current = Some(node.id);
        // From 2.0 on, a single node that is counted lies within a node that `from` matches. (For several levels the suite of the W3C
        // and Saxon count without such a node.)
        let is_single = number.level == Level::Single;
        let mut within = number.from.is_none() || !number.version2 || !is_single;
        let is_enough = |numbers: &[usize]| is_single && !numbers.is_empty();
        while let Some(id) = current {
            if !number.version2 && id != node.id && begins(id)? {
                break;
            }
            if !is_enough(&numbers) && counts(id)? {
                let mut place = 0;
                let mut sibling = Some(id);
                let parent_key = key(doc.parent(id).unwrap_or(Document::ROOT));
                let last = last_counted(&parent_key);
                while let Some(previous) = sibling {
                    self.spend(1)?;
                    if let Some((counted_node, before)) = last
                        && counted_node == previous
                    {
                        place += before;
                        break;
                    }
                    if previous == id || counts(previous)? {
                        place += 1;
                    }
                    sibling = doc.prev_sibling(previous);
                }
                remember(parent_key, id, place);
                numbers.push(place);
                if number.level == Level::Single && !number.version2 {
                    break;
                }
            }
            if number.version2 {
                let begins = begins(id)?;
                within |= begins;
                if begins || within && is_enough(&numbers) {
                    break;
                }
            }
            current = doc.parent(id);
        }
        if !within {
            numbers.clear();
        }
        numbers.reverse();
        Ok(numbers)
    }
}

/// Whether a text is a language tag, as in `xml:lang`.
fn is_language(text: &str) -> bool {
    text.split('-').enumerate().all(|(at, part)| {
        (1..=8).contains(&part.len())
            && part.bytes().all(|b| b.is_ascii_alphabetic() || at > 0 && b.is_ascii_digit())
    })
}

/// The node before `id` in document order, ancestors included.
fn before(doc: &Document, id: NodeId) -> Option<NodeId> {
    let Some(mut at) = doc.prev_sibling(id) else { return doc.parent(id) };
    while let Some(last) = doc.last_child(at) {
        at = last;
    }
    Some(at)
}

/// The default of `count`: same kind and same expanded name.
fn alike(doc: &Document, a: NodeId, b: NodeId) -> bool {
    doc.kind(a) == doc.kind(b)
        && match doc.kind(a) {
            NodeKind::Element | NodeKind::Attribute | NodeKind::ProcessingInstruction => {
                doc.name_id(a) == doc.name_id(b)
            }
            _ => true,
        }
}
