//! SARIF 2.1.0, the format that code hosts read.

use super::quote;
use crate::{Diagnostic, Fix, SourceFile, SourceMap, Span};

/// The description of a rule.
#[derive(Clone, Copy, Debug)]
pub struct RuleText<'a> {
    /// One sentence.
    pub summary: &'a str,
    /// The explanation and the remedy, as paragraphs.
    pub reason: &'a str,
}

/// Renders all diagnostics as one SARIF log. `version` is the version of the tool, `describe` gives the description of a rule.
pub fn sarif<'a>(
    diagnostics: &[Diagnostic],
    sources: &SourceMap,
    version: &str,
    describe: impl Fn(&str) -> Option<RuleText<'a>>,
) -> String {
    let mut rules: Vec<&str> = diagnostics.iter().map(|d| d.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    let described = rules.iter().map(|rule| match describe(rule) {
        None => format!("{{\"id\":{}}}", quote(rule)),
        Some(RuleText { summary, reason }) => format!(
            "{{\"id\":{},\"shortDescription\":{{\"text\":{}}},\"help\":{{\"text\":{}}}}}",
            quote(rule),
            quote(summary),
            quote(if reason.is_empty() { summary } else { reason }),
        ),
    });
    let described: Vec<String> = described.collect();
    let results: Vec<String> = diagnostics.iter().map(|d| result(d, &rules, sources)).collect();
    format!(
        "{{\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\",\"version\":\"2.1.0\",\"runs\":[{{\
         \"tool\":{{\"driver\":{{\"name\":\"busbar\",\"version\":{},\"rules\":[{}]}}}},\
         \"columnKind\":\"unicodeCodePoints\",\"results\":[{}]}}]}}\n",
        quote(version),
        described.join(","),
        results.join(","),
    )
}

fn result(diagnostic: &Diagnostic, rules: &[&str], sources: &SourceMap) -> String {
    let diagnostic = &*diagnostic.shown(sources);
    let mut message = diagnostic.message.clone();
    for help in &diagnostic.help {
        message.push_str(". ");
        message.push_str(help);
    }
    let mut places = diagnostic.labels.iter().filter_map(|(span, text)| location(*span, text, sources));
    let first = places.next().unwrap_or_default();
    let related: Vec<String> = places.collect();
    format!(
        "{{\"ruleId\":{},\"ruleIndex\":{},\"level\":\"{}\",\"message\":{{\"text\":{}}},\
         \"locations\":[{first}],\"relatedLocations\":[{}]{}}}",
        quote(diagnostic.rule),
        rules.binary_search(&diagnostic.rule).unwrap_or(0),
        diagnostic.severity.as_str(),
        quote(&message),
        related.join(","),
        diagnostic.fix.as_ref().map_or(String::new(), |fix| fixes(fix, sources)),
    )
}

fn fixes(fix: &Fix, sources: &SourceMap) -> String {
    let changes = fix.edits.iter().filter_map(|edit| {
        let file = sources.get(edit.span.file)?;
        Some(format!(
            "{{\"artifactLocation\":{{\"uri\":{}}},\"replacements\":[{{\"deletedRegion\":{{{}}},\
             \"insertedContent\":{{\"text\":{}}}}}]}}",
            quote(&uri(file.path())),
            region(edit.span, file),
            quote(&edit.text),
        ))
    });
    let changes: Vec<String> = changes.collect();
    format!(
        ",\"fixes\":[{{\"description\":{{\"text\":{}}},\"artifactChanges\":[{}]}}]",
        quote(&fix.title),
        changes.join(",")
    )
}

fn region(span: Span, file: &SourceFile) -> String {
    let (from, to) = (file.place(span.start), file.place(span.end));
    format!(
        "\"startLine\":{},\"startColumn\":{},\"endLine\":{},\"endColumn\":{}",
        from.line, from.column, to.line, to.column
    )
}

fn location(span: Span, text: &str, sources: &SourceMap) -> Option<String> {
    let file = sources.get(span.file)?;
    Some(format!(
        "{{\"physicalLocation\":{{\"artifactLocation\":{{\"uri\":{}}},\"region\":{{{}}}}},\"message\":{{\"text\":{}}}}}",
        quote(&uri(file.path())),
        region(span, file),
        quote(text),
    ))
}

/// A path as a URI reference, percent-encoded.
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                out.push(byte as char)
            }
            b'\\' => out.push('/'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Edit;

    #[test]
    fn it_is_a_sarif_log() {
        let mut sources = SourceMap::new();
        let file = sources.add("dir/a b.xml", "<a>\n</a>");
        let log = sarif(
            &[
                Diagnostic::error("z", "m").at(Span::new(file, 0, 3), "l").at(Span::new(file, 4, 8), "r"),
                Diagnostic::warning("a", "n").help("h").at(Span::new(file, 1, 2), "").fix(
                    "write `b`",
                    vec![Edit { span: Span::new(file, 1, 2), was: "a".to_owned(), text: "b".to_owned() }],
                ),
            ],
            &sources,
            "0.1.0",
            |rule| (rule == "z").then_some(RuleText { summary: "Last.", reason: "" }),
        );
        let value: serde_json::Value = serde_json::from_str(&log).expect("json");
        let run = &value["runs"][0];
        assert_eq!(run["tool"]["driver"]["rules"][1]["id"], "z");
        assert_eq!(run["results"][0]["ruleIndex"], 1);
        let place = &run["results"][0]["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "dir/a%20b.xml");
        assert_eq!(place["region"]["endColumn"], 4);
        assert_eq!(run["results"][0]["relatedLocations"].as_array().map(Vec::len), Some(1));
        assert_eq!(run["results"][1]["level"], "warning");
        assert_eq!(run["results"][1]["message"]["text"], "n. h");
        assert_eq!(run["tool"]["driver"]["rules"][1]["help"]["text"], "Last.");
        let change = &run["results"][1]["fixes"][0]["artifactChanges"][0]["replacements"][0];
        assert_eq!(change["deletedRegion"]["startColumn"], 2);
        assert_eq!(change["insertedContent"]["text"], "b");
    }
}
