//! One JSON object per diagnostic, for editors and scripts.

use super::quote;
use crate::{Diagnostic, Edit, SourceMap, Span};

/// Renders one diagnostic as one line (without the line feed):
/// `{"rule","severity","message","labels":[{"file","line","column","end_line","end_column","start","end","text"}],"help":[]}`,
/// and where there is a fix, `"fix":{"title","edits":[{"file","start","end","text"}]}`.
/// The first label is the place; lines and columns (in characters) count from 1, `start` and `end` are byte offsets.
pub fn json(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let diagnostic = &*diagnostic.shown(sources);
    let labels: Vec<String> =
        diagnostic.labels.iter().filter_map(|(span, text)| label(*span, text, sources)).collect();
    let help: Vec<String> = diagnostic.help.iter().map(|help| quote(help)).collect();
    let fix = diagnostic.fix.as_ref().map_or(String::new(), |fix| {
        let edits: Vec<String> = fix.edits.iter().filter_map(|edit| change(edit, sources)).collect();
        format!(",\"fix\":{{\"title\":{},\"edits\":[{}]}}", quote(&fix.title), edits.join(","))
    });
    format!(
        "{{\"rule\":{},\"severity\":\"{}\",\"message\":{},\"labels\":[{}],\"help\":[{}]{fix}}}",
        quote(diagnostic.rule),
        diagnostic.severity.as_str(),
        quote(&diagnostic.message),
        labels.join(","),
        help.join(","),
    )
}

fn change(edit: &Edit, sources: &SourceMap) -> Option<String> {
    let Edit { span, text, .. } = edit;
    let file = quote(sources.get(span.file)?.path());
    Some(format!(
        "{{\"file\":{file},\"start\":{},\"end\":{},\"text\":{}}}",
        span.start,
        span.end,
        quote(text)
    ))
}

fn label(span: Span, text: &str, sources: &SourceMap) -> Option<String> {
    let file = sources.get(span.file)?;
    let (from, to) = (file.place(span.start), file.place(span.end));
    Some(format!(
        "{{\"file\":{},\"line\":{},\"column\":{},\"end_line\":{},\"end_column\":{},\"start\":{},\"end\":{},\"text\":{}}}",
        quote(file.path()),
        from.line,
        from.column,
        to.line,
        to.column,
        span.start,
        span.end,
        quote(text),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_json() {
        let mut sources = SourceMap::new();
        let file = sources.add("a \"b\"\\.xml", "<a>\n</a>");
        let diagnostic = Diagnostic::error("r", "bad\u{1}").at(Span::new(file, 1, 6), "é").help("h");
        let line = json(&diagnostic, &sources);
        let value: serde_json::Value = serde_json::from_str(&line).expect("json");
        assert_eq!(value["message"], "bad\u{1}");
        assert_eq!(value["labels"][0]["file"], "a \"b\"\\.xml");
        assert_eq!(value["labels"][0]["end_line"], 2);
        assert_eq!(value["help"][0], "h");
        assert!(!line.contains('\n') && value.get("fix").is_none());
        let edit = Edit { span: Span::new(file, 0, 3), was: "<a>".to_owned(), text: "<b>".to_owned() };
        let fixed = json(&diagnostic.fix("write `b`", vec![edit]), &sources);
        let value: serde_json::Value = serde_json::from_str(&fixed).expect("json");
        assert_eq!(value["fix"]["title"], "write `b`");
        assert_eq!(value["fix"]["edits"][0]["end"], 3);
    }
}
