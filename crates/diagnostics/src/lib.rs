//! Source spans, labels, rule ids and the rendering of errors.
//!
//! A [`Diagnostic`] says what is wrong (`message`), by which rule (`rule`, a stable id that documentation,
//! `--format json` and SARIF share), where (`labels`, the first one is the place, the others explain it)
//! and what to do (`help`). It holds no text of the configuration itself: [`SourceMap`] keeps that, and the
//! renderers ([`render`]) put both together.

#![forbid(unsafe_code)]

mod failure;
mod nearest;
pub mod render;
mod secret;
mod source;

pub use failure::io_reason;
pub use nearest::{did_you_mean, nearest, respelt};
pub use secret::{is_secret, without_credentials, without_secrets};
pub use source::{FileId, Place, SourceFile, SourceMap, Span};

use std::borrow::Cow;

/// How bad a diagnostic is. Ordered: `Note < Warning < Error`.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Note,
    /// Probably not what the author meant; it is deployed as it is.
    Warning,
    /// The artifact cannot be used.
    Error,
}

impl Severity {
    /// `error`, `warning` or `note`: also the SARIF level.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One finding with its places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// Stable id of the rule, in kebab case.
    pub rule: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// One sentence without a final stop.
    pub message: String,
    /// Places with an explanation (may be empty); the first is the place of the diagnostic itself.
    pub labels: Vec<(Span, String)>,
    /// What the reader can do about it.
    pub help: Vec<String>,
    /// The change that mends it, where there is one that nobody has to think about.
    pub fix: Option<Box<Fix>>,
}

/// A change of texts that is certainly what the author meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fix {
    /// What it does, as a command: `` write `inSequence` ``.
    pub title: String,
    /// The runs of bytes that are replaced; they do not overlap.
    pub edits: Vec<Edit>,
}

/// A run of bytes and what stands there instead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// What is replaced.
    pub span: Span,
    /// The text that stands there: nothing is changed where it does not.
    pub was: String,
    /// The text that stands there afterwards, as XML has it.
    pub text: String,
}

impl Diagnostic {
    /// A diagnostic without any place yet.
    pub fn new(rule: &'static str, severity: Severity, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            rule,
            severity,
            message: message.into(),
            labels: Vec::new(),
            help: Vec::new(),
            fix: None,
        }
    }

    /// An error.
    pub fn error(rule: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(rule, Severity::Error, message)
    }

    /// A warning.
    pub fn warning(rule: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(rule, Severity::Warning, message)
    }

    /// Adds a place; the first one added is the place of the diagnostic.
    #[must_use]
    pub fn at(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push((span, text.into()));
        self
    }

    /// Adds a line of help.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help.push(text.into());
        self
    }

    /// Adds "did you mean `x`?" when `name` is close to one of `candidates`.
    #[must_use]
    pub fn did_you_mean<'a>(
        mut self,
        name: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Diagnostic {
        self.help.extend(did_you_mean(name, candidates));
        self
    }

    /// Adds the change that mends it.
    #[must_use]
    pub fn fix(mut self, title: impl Into<String>, edits: Vec<Edit>) -> Diagnostic {
        self.fix = Some(Box::new(Fix { title: title.into(), edits }));
        self
    }

    /// As it may be shown: a secret that is hidden in the source lines of its places is hidden in its texts, too. Shorter ones
    /// than three characters are not looked for: they would hide parts of ordinary words.
    pub fn shown(&self, sources: &SourceMap) -> Cow<'_, Diagnostic> {
        let places =
            self.labels.iter().filter_map(|(span, _)| Some(sources.get(span.file)?.hidden_words(*span)));
        let mut hidden: Vec<&str> = places.flatten().filter(|word| word.chars().count() >= 3).collect();
        if hidden.is_empty() {
            return Cow::Borrowed(self);
        }
        hidden.sort_by_key(|word| std::cmp::Reverse(word.len()));
        let mut shown = self.clone();
        let labels = shown.labels.iter_mut().map(|(_, text)| text);
        for text in labels.chain(&mut shown.help).chain([&mut shown.message]) {
            for word in &hidden {
                *text = text.replace(word, &"*".repeat(word.len()));
            }
        }
        Cow::Owned(shown)
    }

    /// The place of the diagnostic.
    pub fn span(&self) -> Option<Span> {
        self.labels.first().map(|(span, _)| *span)
    }
}

/// The findings of a pass over the configuration so far.
#[derive(Clone, Default, Debug)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// No findings.
    pub fn new() -> Diagnostics {
        Diagnostics::default()
    }

    /// Adds a finding.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Whether one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.has_errors_since(0)
    }

    /// Whether one of those added after the first `mark` (an earlier [`len`](Self::len)) is an error.
    pub fn has_errors_since(&self, mark: usize) -> bool {
        self.first_error_since(mark).is_some()
    }

    /// The first error among those added after the first `mark`.
    pub fn first_error_since(&self, mark: usize) -> Option<&Diagnostic> {
        self.0.get(mark..).into_iter().flatten().find(|d| d.severity == Severity::Error)
    }

    /// Adds a place to all that were added after the first `mark`, and do not have it.
    pub fn also_at_since(&mut self, mark: usize, span: Span, text: &str) {
        for diagnostic in self.0.get_mut(mark..).into_iter().flatten() {
            if diagnostic.labels.iter().all(|(place, _)| *place != span) {
                diagnostic.labels.push((span, text.to_owned()));
            }
        }
    }

    /// The number of errors.
    pub fn errors(&self) -> usize {
        self.0.iter().filter(|d| d.severity == Severity::Error).count()
    }

    /// The number of warnings.
    pub fn warnings(&self) -> usize {
        self.0.iter().filter(|d| d.severity == Severity::Warning).count()
    }

    /// The number of notes.
    pub fn notes(&self) -> usize {
        self.0.iter().filter(|d| d.severity == Severity::Note).count()
    }

    /// The number of findings.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no findings.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In the order in which they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    /// As a slice.
    pub fn as_slice(&self) -> &[Diagnostic] {
        &self.0
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<I: IntoIterator<Item = Diagnostic>>(&mut self, iter: I) {
        self.0.extend(iter);
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
