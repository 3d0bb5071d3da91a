//! Source texts, and places in them.

use crate::{without_credentials, without_secrets};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A file of a [`SourceMap`].
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileId(u32);

impl FileId {
    /// The "file" of built-in artifacts, e.g. the default main sequence.
    pub const BUILT_IN: FileId = FileId(u32::MAX);
}

/// A run of bytes of one file: `start..end`.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// Offset of the first byte.
    pub start: u32,
    /// Offset behind the last byte.
    pub end: u32,
}

impl Span {
    /// The place of built-in artifacts; [`place`](Self::place) prints `built in`.
    pub const BUILT_IN: Span = Span { file: FileId::BUILT_IN, start: 0, end: 0 };

    /// `start..end` of `file`. Offsets beyond 4 GiB are held at the limit.
    pub fn new(file: FileId, start: usize, end: usize) -> Span {
        let narrow = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Span { file, start: narrow(start), end: narrow(end.max(start)) }
    }

    /// From the start of `self` to the end of `other` (of the same file).
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span { end: other.end.max(self.start), ..self }
    }

    /// The part of the span that starts `from` bytes in and has `len` bytes, for places inside an expression.
    #[must_use]
    pub fn part(self, from: usize, len: usize) -> Span {
        let start = (self.start as usize).saturating_add(from).min(self.end as usize);
        Span::new(self.file, start, start.saturating_add(len).min(self.end as usize))
    }

    /// Whether another one begins within it.
    pub fn contains(self, other: Span) -> bool {
        self.file == other.file && (self.start..=self.end).contains(&other.start)
    }

    /// `file:line:column` as log lines and answers show it.
    pub fn place(self, sources: &SourceMap) -> String {
        match sources.get(self.file) {
            Some(file) => format!("{}:{}", file.path(), file.place(self.start)),
            None => "built in".to_owned(),
        }
    }
}

/// Line and column, both from 1; columns count characters, not bytes.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Bytes between two counts of characters.
const BLOCK: usize = 1024;

/// Characters that begin in these bytes of UTF-8.
fn characters(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count() as u32
}

/// One text with the path it was read from.
#[derive(Debug)]
pub struct SourceFile {
    path: String,
    text: Arc<str>,
    /// Offsets of the first byte of every line, found when the first place is asked for.
    lines: OnceLock<Vec<u32>>,
    /// The number of characters before each block of [`BLOCK`] bytes, so that a place in a long line is found without a scan of it.
    characters: OnceLock<Vec<u32>>,
    /// The text without secrets, made when the first line is shown; `None`: it contains none.
    shown: OnceLock<Option<Box<str>>>,
}

impl SourceFile {
    /// The path for messages.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The text; spans index its bytes.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Line and column of a byte offset; an offset inside a character or behind the end is moved back.
    pub fn place(&self, offset: u32) -> Place {
        let line = self.lines().partition_point(|start| *start <= offset).max(1);
        let start = self.lines()[line - 1] as usize;
        let column =
            self.characters_before(self.floor(offset)).saturating_sub(self.characters_before(start)) + 1;
        Place { line: line as u32, column }
    }

    fn characters_before(&self, offset: usize) -> u32 {
        let bytes = self.text.as_bytes();
        let blocks = self.characters.get_or_init(|| {
            let sums = bytes.chunks(BLOCK).scan(0, |sum, block| {
                *sum += characters(block);
                Some(*sum)
            });
            std::iter::once(0).chain(sums).collect()
        });
        let offset = offset.min(bytes.len());
        let block = offset / BLOCK;
        blocks[block] + characters(&bytes[block * BLOCK..offset])
    }

    /// The text of a line (from 1) without its end, and the offset of its first byte. For messages: secrets are replaced by `*`.
    pub fn line(&self, line: u32) -> (usize, &str) {
        let lines = self.lines();
        let index = (line.max(1) as usize - 1).min(lines.len() - 1);
        let start = lines[index] as usize;
        let end = lines.get(index + 1).map_or(self.text.len(), |next| *next as usize);
        (start, self.shown()[start..end].trim_end_matches(['\n', '\r']))
    }

    /// The words that [`SourceFile::line`] replaces by `*` in the lines of a span.
    pub(crate) fn hidden_words(&self, span: Span) -> Vec<&str> {
        let shown = self.shown().as_bytes();
        if std::ptr::eq(shown, self.text.as_bytes()) {
            return Vec::new();
        }
        let (from, to) = (self.floor(span.start), self.floor(span.end));
        let begin = self.text[..from].rfind('\n').map_or(0, |at| at + 1);
        let end = self.text[to..].find('\n').map_or(self.text.len(), |at| to + at);
        let (text, mut words, mut at) = (self.text.as_bytes(), Vec::new(), begin);
        while at < end {
            let length = shown[at..end].iter().take_while(|byte| **byte == b'*').count();
            if text[at..at + length] != shown[at..at + length] {
                // Whole characters are replaced, byte by byte.
                words.extend(self.text.get(at..at + length));
            }
            at += length.max(1);
        }
        words
    }

    fn shown(&self) -> &str {
        // Masked before it is cut: half a URL is not recognised as one with a password.
        let hidden = self.shown.get_or_init(|| {
            let text = without_secrets(&self.text);
            match (without_credentials(&text), &text) {
                (Cow::Owned(text), _) => Some(text.into()),
                (Cow::Borrowed(_), Cow::Owned(text)) => Some(text.as_str().into()),
                (Cow::Borrowed(_), Cow::Borrowed(_)) => None,
            }
        });
        hidden.as_deref().unwrap_or(&self.text)
    }

    /// The nearest character boundary at or before `offset`.
    pub(crate) fn floor(&self, offset: u32) -> usize {
        let mut offset = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }

    fn lines(&self) -> &[u32] {
        self.lines.get_or_init(|| {
            let ends = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
            std::iter::once(0).chain(ends.map(|(at, _)| u32::try_from(at + 1).unwrap_or(u32::MAX))).collect()
        })
    }
}

/// Every text that was read. Cheap to clone: the texts are shared.
#[derive(Clone, Default, Debug)]
pub struct SourceMap {
    /// By id; `None`: removed, and free for the next text.
    files: Vec<Option<Arc<SourceFile>>>,
}

impl SourceMap {
    /// No files.
    pub fn new() -> SourceMap {
        SourceMap::default()
    }

    /// Adds a text under the path by which it is shown.
    pub fn add(&mut self, path: impl Into<String>, text: impl Into<Arc<str>>) -> FileId {
        let file = SourceFile {
            path: path.into(),
            text: text.into(),
            lines: OnceLock::new(),
            characters: OnceLock::new(),
            shown: OnceLock::new(),
        };
        let free = self.files.iter().position(Option::is_none).unwrap_or(self.files.len());
        if free == self.files.len() {
            self.files.push(None);
        }
        self.files[free] = Some(Arc::new(file));
        FileId(free as u32)
    }

    /// Removes the texts that are not wanted; the others keep their ids.
    pub fn retain(&mut self, wanted: impl Fn(FileId) -> bool) {
        for (index, file) in self.files.iter_mut().enumerate() {
            if !wanted(FileId(index as u32)) {
                *file = None;
            }
        }
    }

    /// Shares the files of another map that are the same there.
    pub fn share(&mut self, other: &SourceMap) {
        let there: HashMap<(&str, &str), &Arc<SourceFile>> =
            other.files.iter().flatten().map(|file| ((file.path(), &*file.text), file)).collect();
        for file in self.files.iter_mut().flatten() {
            if let Some(same) = there.get(&(file.path(), &*file.text)) {
                *file = Arc::clone(same);
            }
        }
    }

    /// The file of a span, if it belongs to this map.
    pub fn get(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(id.0 as usize)?.as_deref()
    }

    /// The text under a span, empty when there is none.
    pub fn text(&self, span: Span) -> &str {
        let Some(file) = self.get(span.file) else { return "" };
        file.text.get(file.floor(span.start)..file.floor(span.end)).unwrap_or("")
    }

    /// Every file with its id.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &SourceFile)> {
        let files = self.files.iter().enumerate();
        files.filter_map(|(index, file)| Some((FileId(index as u32), file.as_deref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_from_one() {
        let mut sources = SourceMap::new();
        let file = sources.add("a.xml", "<a>\r\n\té<b/>\n");
        for (offset, expected) in
            [(0, "1:1"), (2, "1:3"), (5, "2:1"), (6, "2:2"), (7, "2:2"), (8, "2:3"), (13, "3:1"), (99, "3:1")]
        {
            assert_eq!(
                Span::new(file, offset, offset).place(&sources),
                format!("a.xml:{expected}"),
                "{offset}"
            );
        }
        assert_eq!(Span::BUILT_IN.place(&sources), "built in");
        assert_eq!(sources.text(Span::new(file, 8, 12)), "<b/>");
        assert_eq!(sources.text(Span::new(file, 0, 12).part(8, 4)), "<b/>");
        assert_eq!(sources.get(file).map(|f| f.line(2)), Some((5, "\té<b/>")));
    }

    #[test]
    fn places_in_long_lines() {
        let line = "aé日x\u{1F600}".repeat(700);
        let text = format!("{line}\n{line}");
        let mut sources = SourceMap::new();
        let file = sources.add("a.xml", text.as_str());
        let file = sources.get(file).unwrap();
        for (offset, _) in text.char_indices().chain([(text.len(), ' ')]) {
            let before = &text[..offset];
            let column = before.rsplit('\n').next().unwrap().chars().count() as u32 + 1;
            let line = before.matches('\n').count() as u32 + 1;
            assert_eq!(file.place(offset as u32), Place { line, column }, "{offset}");
        }
    }

    #[test]
    fn texts_that_stay_keep_their_ids() {
        let mut sources = SourceMap::new();
        let ids = ["a", "b", "c"].map(|path| sources.add(path, path));
        sources.retain(|id| id == ids[1]);
        let paths =
            |sources: &SourceMap| sources.iter().map(|(_, file)| file.path().to_owned()).collect::<Vec<_>>();
        assert_eq!(paths(&sources), ["b"]);
        assert_eq!(sources.text(Span::new(ids[0], 0, 1)), "");
        // Ids do not grow with each reload.
        assert_eq!([sources.add("d", "d"), sources.add("e", "e")], [ids[0], ids[2]]);
        assert_eq!(sources.text(Span::new(ids[1], 0, 1)), "b");
        assert_eq!(paths(&sources), ["d", "b", "e"]);
    }

    #[test]
    fn a_line_shows_no_password_of_a_url_wherever_it_is_cut() {
        let mut sources = SourceMap::new();
        let text = "<url>jdbc:mysql://é:säcret@h/x?password=säcret</url>\n<b/>";
        let file = sources.add("a.xml", text);
        let file = sources.get(file).unwrap();
        let (start, line) = file.line(1);
        assert!(start == 0 && !line.contains("cret"), "{line}");
        assert_eq!(file.line(2), (text.find("<b/>").unwrap(), "<b/>"));
    }
}
