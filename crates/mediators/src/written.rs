//! Texts of other languages inside of the configuration, and where their lines stand in its file.

use config::{Child, Element};
use diagnostics::Span;

/// The text of an element.
pub(crate) struct Written {
    /// The text, references resolved.
    pub(crate) value: String,
    span: Span,
    /// Offset from the text to what is written; `None` where references make that unclear.
    marks: Option<usize>,
}

impl Written {
    /// The text directly in an element.
    pub(crate) fn of(element: &Element) -> Written {
        let (value, span) = (element.text(), element.text_span());
        let texts = element
            .children()
            .iter()
            .filter(|child| matches!(child, Child::Text(text) if !text.value.trim().is_empty()));
        let runs = texts.count();
        let marks = match ((span.end - span.start) as usize).checked_sub(value.len()) {
            _ if runs != 1 => None,
            Some(0) => Some(0),
            // `<![CDATA[` and `]]>`, which stand outside of everything that is not blank.
            Some(12) => Some(9),
            _ => None,
        };
        Written { value, span, marks }
    }

    /// Where a line and column of the text, counted from 1, stand in the file.
    pub(crate) fn span_of(&self, line: usize, column: usize) -> Option<Span> {
        let start = match line.checked_sub(2) {
            None => 0,
            Some(newline) => self.value.match_indices('\n').nth(newline)?.0 + 1,
        };
        let text = self.value[start..].lines().next().unwrap_or("");
        let column = text.char_indices().nth(column.saturating_sub(1)).map_or(text.len(), |(at, _)| at);
        Some(self.span.part(start + column + self.marks?, 1))
    }
}
