//! What a message asks, and which questions are the same.

use flow::Context;
use message::{Envelope, Kind};
use moka::sync::Cache;
use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};
use xml::NodeKind;

/// Most serialisations that one finder remembers of messages whose XML is in the cache.
const SPELLINGS: u64 = 10_000;

/// Headers that differ between equal questions.
const NOT_ASKED: &[&str] =
    &["date", "user-agent", "activityid", "connection", "keep-alive", "content-length", "transfer-encoding"];

/// What makes a question, besides the body.
pub(super) enum KeyParts {
    /// Address, method, and these headers.
    All(Considered),
    /// The body alone.
    Body,
}

/// Header names in lower case.
pub(super) enum Considered {
    Only(Vec<String>),
    AllBut(Vec<String>),
    None,
}

pub(super) type Digest = (u64, u64);

#[derive(Clone, Copy)]
pub(super) struct Question {
    pub(super) key: Digest,
    /// By what the question is found next time without being read.
    spelling: Option<Digest>,
}

/// Reads the questions of messages.
pub(super) struct Questions {
    asked: KeyParts,
    /// The bytes of an XML message to the question that they spell.
    spellings: Cache<Digest, Digest>,
    secrets: [RandomState; 2],
}

impl Questions {
    pub(super) fn of(asked: KeyParts) -> Questions {
        Questions { asked, spellings: Cache::new(SPELLINGS), secrets: Default::default() }
    }

    /// Whether the body of a message with this method counts.
    pub(super) fn reads_body(&self, method: &str) -> bool {
        matches!(self.asked, KeyParts::Body) || !matches!(method, "GET" | "HEAD" | "DELETE")
    }

    /// There is an answer to the question: the next message with this spelling need not be read.
    pub(super) fn remember(&self, question: Question) {
        if let Some(spelling) = question.spelling {
            self.spellings.insert(spelling, question.key);
        }
    }

    /// The question that a message asks, and the spelling that it is found by next time; `None`: its body cannot be had, so that it
    /// is asked by itself.
    pub(super) fn ask(&self, method: &str, context: &mut Context) -> Option<Question> {
        let (key, spelling) = self.digests(method, context)?;
        Some(Question { key, spelling })
    }

    fn digests(&self, method: &str, context: &mut Context) -> Option<(Digest, Option<Digest>)> {
        let mut mix = Mix([self.secrets[0].build_hasher(), self.secrets[1].build_hasher()]);
        if let KeyParts::All(considered) = &self.asked {
            mix.field(method.as_bytes());
            mix.field(context.to().unwrap_or_default().as_bytes());
            considered.mix(context, &mut mix);
            if !self.reads_body(method) {
                return Some((mix.digest(), None));
            }
        }
        let is_xml = !context.payload.is_json()
            && (context.payload.is_changed()
                || matches!(context.payload.reading().kind, Kind::Xml | Kind::Soap11 | Kind::Soap12));
        let spelling = context.payload.bytes().map(|bytes| {
            let mut spelling = mix.clone();
            spelling.field(bytes);
            spelling.digest()
        });
        match spelling {
            Some(key) if !is_xml => return Some((key, None)),
            Some(spelling) => {
                if let Some(key) = self.spellings.get(&spelling) {
                    return Some((key, Some(spelling)));
                }
            }
            None => {}
        }
        // XML is the same question however it is written, and whatever the header blocks of its envelope say. What
        // cannot be read is a question by its bytes.
        match (context.envelope(), spelling) {
            (Ok(envelope), _) => mix.body(envelope),
            (Err(_), Some(spelling)) => return Some((spelling, None)),
            (Err(_), None) => return None,
        }
        Some((mix.digest(), spelling))
    }
}

impl Considered {
    fn mix(&self, context: &Context, mix: &mut Mix) {
        let wanted = |name: &String| {
            let name = name.as_str();
            match self {
                Considered::None => false,
                Considered::Only(names) => names.iter().any(|included| included == name),
                Considered::AllBut(names) => {
                    !NOT_ASKED.contains(&name) && !names.iter().any(|included| included == name)
                }
            }
        };
        let headers = context.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value));
        let mut headers: Vec<_> = headers.filter(|(name, _)| wanted(name)).collect();
        headers.sort();
        for (name, value) in headers {
            mix.field(name.as_bytes());
            mix.field(value);
        }
        mix.field(b"");
    }
}

/// Two hashes with secret keys: a client cannot construct two questions that look the same.
#[derive(Clone)]
struct Mix([DefaultHasher; 2]);

impl Mix {
    fn field(&mut self, bytes: &[u8]) {
        for hasher in &mut self.0 {
            hasher.write_usize(bytes.len());
            hasher.write(bytes);
        }
    }

    fn digest(&self) -> Digest {
        (self.0[0].finish(), self.0[1].finish())
    }

    /// The content of the body: names, attributes and texts with their depth.
    fn body(&mut self, envelope: &Envelope) {
        let document = &envelope.document;
        let mut above = vec![envelope.body];
        for node in document.descendants(envelope.body) {
            while above.len() > 1 && above.last().copied() != document.parent(node) {
                above.pop();
            }
            let depth = above.len().to_le_bytes();
            match document.kind(node) {
                NodeKind::Element => {
                    for part in
                        [&depth[..], document.namespace(node).as_bytes(), document.local(node).as_bytes()]
                    {
                        self.field(part);
                    }
                    let attributes = document.attributes(node);
                    let mut attributes: Vec<_> = attributes
                        .map(|attribute| {
                            [
                                document.namespace(attribute),
                                document.local(attribute),
                                document.text(attribute),
                            ]
                        })
                        .collect();
                    attributes.sort_unstable();
                    for part in attributes.iter().flatten() {
                        self.field(part.as_bytes());
                    }
                    above.push(node);
                }
                NodeKind::Text => {
                    self.field(&depth);
                    self.field(document.text(node).as_bytes());
                }
                _ => {}
            }
        }
    }
}
