//! Documents and texts that are read by URI while a stylesheet runs: `document()`, `unparsed-text()`.

use super::Engine;
use super::docs::Origin;
use xml::{Document, ParseOptions};
use xpath::{DocId, Node};

impl Engine<'_> {
    /// `document()`: the root of a document (or the element its fragment identifier names), read once.
    pub(super) fn load(&self, reference: &str, base: &str) -> Result<Option<Node>, String> {
        let found = self.load_document(reference, base)?;
        if let Some(node) = found {
            self.allow_accumulators(node.doc);
        }
        Ok(found)
    }

    /// The same for one that does not have all accumulators ([`Engine::load_with`]).
    pub(super) fn load_document(&self, reference: &str, base: &str) -> Result<Option<Node>, String> {
        let absolute = self.options.resolver.absolute(reference, base);
        let (uri, fragment) = match absolute.split_once('#') {
            Some((uri, fragment)) => (uri.to_owned(), Some(fragment.to_owned())),
            None => (absolute, None),
        };
        let id = self.loaded.lock().map_err(|_| "the documents are locked")?.get(&uri).copied();
        let id = match id {
            Some(id) => id,
            None => {
                let id = self.read(&uri)?;
                self.loaded.lock().map_err(|_| "the documents are locked")?.insert(uri.clone(), id);
                id
            }
        };
        let Some(id) = id else { return Ok(None) };
        let node = match fragment.as_deref() {
            None | Some("") => Some(Document::ROOT),
            Some(fragment) => {
                let name = fragment.strip_prefix("xpointer(id('").and_then(|f| f.strip_suffix("'))"));
                self.doc(id).element_by_id(name.unwrap_or(fragment))
            }
        };
        Ok(node.map(|node| Node::in_document(id, node)))
    }

    pub(super) fn read(&self, uri: &str) -> Result<Option<DocId>, String> {
        if !self.options.input_uri.is_empty() && uri == self.options.input_uri {
            return Ok(Some(DocId(0)));
        }
        let bytes = match self.options.resolver.read(uri) {
            Ok(bytes) => bytes,
            Err(_) if self.plan.modules.first().is_some_and(|principal| principal == uri) => {
                self.plan.principal.to_vec()
            }
            // From 3.0 on an error cannot be recovered from.
            Err(message) if self.plan.version3 => return Err(message),
            // A recoverable error of section 12.1: the node-set is empty, as in other processors.
            Err(message) => {
                if let Some(messages) = self.options.messages {
                    messages(&format!("document(): {message}"));
                }
                return Ok(None);
            }
        };
        let options = ParseOptions {
            dtd: self.options.dtd.clone(),
            base_uri: Some(uri.to_owned()),
            strip_space: super::super::strip_space(self.plan),
            ..ParseOptions::trusted()
        };
        let doc = match Document::parse(bytes, &options) {
            Ok(doc) => doc,
            Err(error) => return Err(format!("{uri}:{error}")),
        };
        if self.docs.count() >= self.options.limits.documents {
            return Err("the limit of documents is exceeded".into());
        }
        Ok(self.docs.add(doc, uri.to_owned().into(), Origin::Read))
    }

    /// `unparsed-text()`: a file as text; encoding by byte order mark, argument, UTF-8.
    pub(super) fn unparsed_text(
        &self,
        href: &str,
        base: &str,
        encoding: Option<&str>,
    ) -> Result<String, String> {
        let code = |number: u16| match self.plan.version3 {
            true => format!("FOUT{number}"),
            false => format!("XTDE{number}"),
        };
        if href.contains('#') {
            return Err(format!("{}: \"{href}\" has a fragment identifier", code(1170)));
        }
        let uri = self.options.resolver.absolute(href, base);
        let bytes = self.options.resolver.read(&uri).map_err(|e| format!("{}: {e}", code(1170)))?;
        let (label, skip) = match bytes.as_slice() {
            [0xEF, 0xBB, 0xBF, ..] => ("UTF-8", 3),
            [0xFE, 0xFF, ..] => ("UTF-16BE", 2),
            [0xFF, 0xFE, ..] => ("UTF-16LE", 2),
            _ => (encoding.unwrap_or("UTF-8"), 0),
        };
        let text = xml::decode(bytes[skip..].to_vec(), Some(label))
            .map_err(|e| format!("{}: {uri}: {e}", code(1190)))?;
        let text = String::from_utf8(text.text.to_vec())
            .map_err(|_| format!("{}: {uri} is not in {label}", code(1190)))?;
        if text.chars().any(|c| c < ' ' && !matches!(c, '\t' | '\n' | '\r')) {
            return Err(format!("{}: {uri} holds characters that XML does not have", code(1190)));
        }
        Ok(text)
    }
}
