//! A document as a stream of events, and as a stream of bytes.

use busbar_xpath::stream::Attributes;
use busbar_xpath::{Decision, Run};
use xml::{Document, NodeId, NodeKind};

struct TreeAttributes<'d>(&'d Document, NodeId);

impl Attributes for TreeAttributes<'_> {
    fn each(&self, f: &mut dyn FnMut(&str, &str, &str) -> bool) {
        let TreeAttributes(doc, n) = self;
        for a in doc.attributes(*n) {
            if !f(doc.namespace(a), doc.local(a), doc.text(a)) {
                return;
            }
        }
    }
}

/// Feeds the bytes of `doc` in pieces through a tokenizer, until the run has decided.
pub fn read(doc: &Document, piece: usize, run: &mut Run<'_>) {
    let text = xml::to_string(doc, Document::ROOT);
    let mut tokenizer = xml::Tokenizer::new(xml::Limits::trusted());
    run.drain(&mut tokenizer).expect("nothing is wrong with nothing");
    for piece in text.as_bytes().chunks(piece) {
        if run.is_decided() {
            return;
        }
        run.read(&mut tokenizer, piece).expect("well-formed");
    }
    tokenizer.finish();
    run.drain(&mut tokenizer).expect("well-formed");
}

/// Feeds the events of `doc`, texts in pieces of `piece` characters, until the run has decided. Returns the number of
/// events fed.
pub fn feed(doc: &Document, piece: usize, run: &mut Run<'_>) -> usize {
    let mut events = 0;
    let mut at = doc.first_child(Document::ROOT);
    while let Some(n) = at {
        if run.decision() != Decision::Undecided {
            return events;
        }
        events += 1;
        match doc.kind(n) {
            NodeKind::Element => run.start_element(doc.namespace(n), doc.local(n), &TreeAttributes(doc, n)),
            NodeKind::Text => {
                let chars: Vec<char> = doc.text(n).chars().collect();
                for c in chars.chunks(piece) {
                    run.text(&c.iter().collect::<String>());
                }
            }
            NodeKind::Comment => run.comment(doc.text(n)),
            NodeKind::ProcessingInstruction => run.processing_instruction(doc.local(n), doc.text(n)),
            _ => {}
        }
        at = doc.first_child(n);
        let mut up = n;
        while at.is_none() {
            if doc.kind(up) == NodeKind::Element {
                if run.decision() != Decision::Undecided {
                    return events;
                }
                events += 1;
                run.end_element();
            }
            at = doc.next_sibling(up);
            if at.is_none() {
                match doc.parent(up) {
                    Some(p) if p != Document::ROOT => up = p,
                    _ => break,
                }
            }
        }
    }
    events
}
