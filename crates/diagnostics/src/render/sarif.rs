//! SARIF 2.1.0, the format that code hosts read.

use super::quote;
use crate::{Diagnostic, SourceMap, Span};

/// Renders all diagnostics as one SARIF log. `version` is the version of the tool.
pub fn sarif(diagnostics: &[Diagnostic], sources: &SourceMap, version: &str) -> String {
    let mut rules: Vec<&str> = diagnostics.iter().map(|d| d.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    let described: Vec<String> = rules.iter().map(|rule| format!("{{\"id\":{}}}", quote(rule))).collect();
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
         \"locations\":[{first}],\"relatedLocations\":[{}]}}",
        quote(diagnostic.rule),
        rules.binary_search(&diagnostic.rule).unwrap_or(0),
        diagnostic.severity.as_str(),
        quote(&message),
        related.join(","),
    )
}

fn location(span: Span, text: &str, sources: &SourceMap) -> Option<String> {
    let file = sources.get(span.file)?;
    let (from, to) = (file.place(span.start), file.place(span.end));
    Some(format!(
        "{{\"physicalLocation\":{{\"artifactLocation\":{{\"uri\":{}}},\"region\":{{\"startLine\":{},\
         \"startColumn\":{},\"endLine\":{},\"endColumn\":{}}}}},\"message\":{{\"text\":{}}}}}",
        quote(&uri(file.path())),
        from.line,
        from.column,
        to.line,
        to.column,
        quote(text),
    ))
}

/// A path as a URI reference: what URIs do not allow is percent-encoded.
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

    #[test]
    fn it_is_a_sarif_log() {
        let mut sources = SourceMap::new();
        let file = sources.add("dir/a b.xml", "<a>\n</a>");
        let log = sarif(
            &[
                Diagnostic::error("z", "m").at(Span::new(file, 0, 3), "l").at(Span::new(file, 4, 8), "r"),
                Diagnostic::warning("a", "n").help("h"),
            ],
            &sources,
            "0.1.0",
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
    }
}
