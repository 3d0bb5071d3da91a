//! The form for people: the source line, underlined.
//!
//! ```text
//! error[unknown-element]: `endpont` is not known in `send`
//!   --> synapse.xml:4:10
//!    |
//!  4 |     <send><endpont key="e"/></send>
//!    |            ^^^^^^^ expected one of: endpoint
//!    |
//!    = help: did you mean `endpoint`?
//! ```

use crate::{Diagnostic, Severity, SourceMap, Span, without_credentials};
use std::fmt::Write;

/// How the form for people is rendered.
#[derive(Copy, Clone, Debug)]
pub struct Human {
    /// With ANSI colours: only when the output is a terminal.
    pub colour: bool,
    /// Source lines are cut to this many columns around the label.
    pub width: usize,
}

impl Default for Human {
    /// No colours, 120 columns.
    fn default() -> Human {
        Human { colour: false, width: 120 }
    }
}

/// Renders one diagnostic; ends with a line feed.
pub fn human(diagnostic: &Diagnostic, sources: &SourceMap, options: Human) -> String {
    let diagnostic = &*diagnostic.shown(sources);
    let paint = Paint(options.colour);
    let level = diagnostic.severity.as_str();
    let mut out = format!(
        "{}{}\n",
        paint.severity(diagnostic.severity, &format!("{level}[{}]", diagnostic.rule)),
        paint.bold(&format!(": {}", diagnostic.message)),
    );
    let groups = by_line(diagnostic, sources);
    let gutter = groups.iter().map(|group| group.line.to_string().len()).max().unwrap_or(1);
    let bar = paint.frame(&format!(" {:gutter$} |", ""));
    let mut file = None;
    for group in &groups {
        let Some(source) = sources.get(group.labels[0].span.file) else { continue };
        if file != Some(group.labels[0].span.file) {
            let arrow = if file.is_none() { "-->" } else { ":::" };
            let place = source.place(group.labels[0].span.start);
            let _ = writeln!(out, " {:gutter$}{} {}:{place}", "", paint.frame(arrow), source.path(),);
            let _ = writeln!(out, "{bar}");
            file = Some(group.labels[0].span.file);
        } else {
            let _ = writeln!(out, "{}", paint.frame(&format!(" {:gutter$} ...", "")));
        }
        let number = paint.frame(&format!(" {:>gutter$} |", group.line));
        let (start, text) = source.line(group.line);
        let line = Line::cut(start, text, group.labels[0].span, options.width);
        let _ = writeln!(out, "{number} {}", line.text);
        for label in &group.labels {
            let (from, len) = line.columns(label.span);
            let mark = if label.primary { "^" } else { "-" };
            let mut underline = mark.repeat(len);
            if !label.text.is_empty() {
                underline.push(' ');
                underline.push_str(label.text);
            }
            let painted = match label.primary {
                true => paint.severity(diagnostic.severity, &underline),
                false => paint.frame(&underline),
            };
            let _ = writeln!(out, "{bar} {:from$}{painted}", "");
        }
    }
    let advises = !diagnostic.help.is_empty() || diagnostic.fix.is_some();
    if !groups.is_empty() && advises {
        let _ = writeln!(out, "{bar}");
    }
    for help in &diagnostic.help {
        let _ = writeln!(
            out,
            " {:gutter$} {} {}",
            "",
            paint.frame("="),
            paint.bold("help:").to_owned() + " " + help
        );
    }
    if let Some(fix) = &diagnostic.fix {
        let mark = paint.frame("=");
        let _ = writeln!(out, " {:gutter$} {mark} {} {} (--fix)", "", paint.bold("fix:"), fix.title);
    }
    without_credentials(&out).into_owned()
}

/// One line for a log: `file:line:column: error[rule]: message (help)`.
pub fn log_line(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let diagnostic = &*diagnostic.shown(sources);
    let place = diagnostic.span().map_or(String::new(), |span| span.place(sources) + ": ");
    let mut line =
        format!("{place}{}[{}]: {}", diagnostic.severity.as_str(), diagnostic.rule, diagnostic.message);
    if !diagnostic.help.is_empty() {
        let _ = write!(line, " ({})", diagnostic.help.join("; "));
    }
    without_credentials(&line).replace(['\n', '\r'], " ")
}

/// The labels of one source line.
struct Group<'a> {
    line: u32,
    labels: Vec<Label<'a>>,
}

struct Label<'a> {
    span: Span,
    text: &'a str,
    primary: bool,
}

/// Labels grouped by line: the line of the primary label first, then as they come.
fn by_line<'a>(diagnostic: &'a Diagnostic, sources: &SourceMap) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (index, (span, text)) in diagnostic.labels.iter().enumerate() {
        let Some(file) = sources.get(span.file) else { continue };
        let line = file.place(span.start).line;
        let label = Label { span: *span, text, primary: index == 0 };
        match groups.iter_mut().find(|group| group.line == line && group.labels[0].span.file == span.file) {
            Some(group) => group.labels.push(label),
            None => groups.push(Group { line, labels: vec![label] }),
        }
    }
    groups
}

/// A source line as it is shown, with the column of every byte.
struct Line {
    text: String,
    /// Offset in the file of the first byte shown, and the columns in front of it (of the ellipsis).
    start: usize,
    /// Column of each byte offset from `start` on, and of the end.
    columns: Vec<usize>,
}

impl Line {
    /// Expands tabs and cuts a line that is too wide around `focus`.
    fn cut(start: usize, text: &str, focus: Span, width: usize) -> Line {
        let width = width.max(20);
        let at = (focus.start as usize).saturating_sub(start).min(text.len());
        let mut from = 0;
        let mut ellipsis = "";
        let mut columns = 0;
        let too_wide = text.chars().any(|c| {
            columns += columns_of(c);
            columns > width
        });
        if too_wide {
            // A third of the width in front of the focus, the rest behind it.
            let end = (at..=text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(at);
            from = text[..end].char_indices().rev().nth(width / 3 - 2).map_or(0, |(index, _)| index);
            ellipsis = if from > 0 { "…" } else { "" };
        }
        let mut line = Line { text: ellipsis.to_owned(), start: start + from, columns: Vec::new() };
        let mut column = ellipsis.chars().count();
        for c in text[from..].chars() {
            if column + columns_of(c) > width {
                line.text.push('…');
                break;
            }
            line.columns.extend(std::iter::repeat_n(column, c.len_utf8()));
            match c {
                '\t' => line.text.push_str("    "),
                c if c.is_control() => line.text.push('\u{fffd}'),
                c => line.text.push(c),
            }
            column += columns_of(c);
        }
        line.columns.push(column);
        line
    }

    /// First column and number of columns (at least one) of the part of `span` that is shown.
    fn columns(&self, span: Span) -> (usize, usize) {
        let column = |offset: u32| {
            let index = (offset as usize).saturating_sub(self.start).min(self.columns.len() - 1);
            self.columns[index]
        };
        let from = column(span.start);
        (from, column(span.end).saturating_sub(from).max(1))
    }
}

/// Columns that a terminal gives a character.
fn columns_of(c: char) -> usize {
    match c as u32 {
        0x09 => 4,
        0x0300..=0x036F | 0x200B..=0x200F | 0xFE00..=0xFE0F => 0,
        0x1100..=0x115F
        | 0x2E80..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1FAFF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

/// ANSI colours, or none.
struct Paint(bool);

impl Paint {
    fn with(&self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn severity(&self, severity: Severity, text: &str) -> String {
        let code = match severity {
            Severity::Error => "1;31",
            Severity::Warning => "1;33",
            Severity::Note => "1;36",
        };
        self.with(code, text)
    }

    fn bold(&self, text: &str) -> String {
        self.with("1", text)
    }

    fn frame(&self, text: &str) -> String {
        self.with("1;34", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(text: &str, part: &str) -> (SourceMap, Span) {
        let mut sources = SourceMap::new();
        let file = sources.add("synapse.xml", text);
        let start = text.find(part).expect("part of the text");
        (sources, Span::new(file, start, start + part.len()))
    }

    #[test]
    fn a_hidden_secret_is_in_no_text() {
        let (sources, span) =
            sample("<property name=\"client_secret\" expression=\"'hunter2 x\"/>", "'hunter2 x");
        let diagnostic = Diagnostic::error("bad-expression", "`'hunter2 x` is not a valid expression")
            .at(span, "after `'hunter2`")
            .help("close 'hunter2");
        let shown = [human(&diagnostic, &sources, Human::default()), log_line(&diagnostic, &sources)];
        for text in shown {
            assert!(text.contains("`******** x` is not a valid expression"), "{text}");
            assert!(text.contains("close ********") && !text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn the_source_line_is_underlined() {
        let (sources, span) = sample("<definitions>\n\t<send><endpont/></send>\n", "endpont");
        let diagnostic = Diagnostic::error("unknown-element", "`endpont` is not known in `send`")
            .at(span, "expected one of: endpoint")
            .did_you_mean("endpont", ["endpoint"]);
        assert_eq!(
            human(&diagnostic, &sources, Human::default()),
            "\
error[unknown-element]: `endpont` is not known in `send`
  --> synapse.xml:2:9
   |
 2 |     <send><endpont/></send>
   |            ^^^^^^^ expected one of: endpoint
   |
   = help: did you mean `endpoint`?
"
        );
        assert_eq!(
            log_line(&diagnostic, &sources),
            "synapse.xml:2:9: error[unknown-element]: `endpont` is not known in `send` \
             (did you mean `endpoint`?)"
        );
        let coloured = human(&diagnostic, &sources, Human { colour: true, width: 120 });
        assert!(coloured.starts_with("\x1b[1;31merror[unknown-element]\x1b[0m"), "{coloured}");
    }

    #[test]
    fn other_lines_and_files_follow() {
        let (mut sources, first) = sample("<a>\n<b name='x'/>\n<b name='x'/>\n</a>", "<b");
        let second = Span { start: first.start + 14, end: first.end + 14, ..first };
        let other = sources.add("other.xml", "<c/>");
        let diagnostic = Diagnostic::error("duplicate-key", "`x` is defined twice")
            .at(second, "again here")
            .at(first, "first here")
            .at(Span::new(other, 0, 4), "and there");
        assert_eq!(
            human(&diagnostic, &sources, Human::default()),
            "\
error[duplicate-key]: `x` is defined twice
  --> synapse.xml:3:1
   |
 3 | <b name='x'/>
   | ^^ again here
   ...
 2 | <b name='x'/>
   | -- first here
  ::: other.xml:1:1
   |
 1 | <c/>
   | ---- and there
"
        );
    }

    #[test]
    fn wide_characters_and_long_lines_keep_the_caret_in_place() {
        let (sources, span) = sample("<a é='日本'><b/></a>", "<b/>");
        let rendered = human(&Diagnostic::warning("r", "m").at(span, ""), &sources, Human::default());
        assert!(rendered.ends_with(" 1 | <a é='日本'><b/></a>\n   |             ^^^^\n"), "{rendered}");
        let long = format!("{}<b/>{}", "x".repeat(5000), "y".repeat(5000));
        let (sources, span) = sample(&long, "<b/>");
        let rendered = human(&Diagnostic::warning("r", "m").at(span, "here"), &sources, Human::default());
        let lines: Vec<&str> = rendered.lines().collect();
        assert!(lines[3].chars().count() < 130, "{rendered}");
        assert_eq!(lines[3].find("<b/>").map(|i| lines[3][..i].chars().count()), lines[4].find("^^^^"));
    }

    #[test]
    fn no_place_is_no_frame() {
        let sources = SourceMap::new();
        let diagnostic = Diagnostic::error("r", "m").at(Span::BUILT_IN, "x").help("h");
        assert_eq!(human(&diagnostic, &sources, Human::default()), "error[r]: m\n   = help: h\n");
    }
}
