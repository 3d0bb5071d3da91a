//! Annotations of GitHub: commands in the output of a workflow step, shown beside the lines of a change.

use crate::{Diagnostic, Severity, SourceMap, without_credentials};
use std::path::Path;

/// Renders one diagnostic as one line (without the line feed):
/// `::error file=conf/a.xml,line=1,endLine=1,col=2,endColumn=5,title=rule::message. help`.
///
/// GitHub looks for the file below the root of the repository: a path below `root` is shown from there.
pub fn github(diagnostic: &Diagnostic, sources: &SourceMap, root: &Path) -> String {
    let diagnostic = &*diagnostic.shown(sources);
    let command = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let mut properties = Vec::new();
    if let Some(span) = diagnostic.span()
        && let Some(file) = sources.get(span.file)
    {
        let path = Path::new(file.path());
        let path = path.strip_prefix(root).unwrap_or(path).display().to_string();
        let (from, to) = (file.place(span.start), file.place(span.end));
        properties.push(format!("file={}", property(&path)));
        properties.push(format!("line={},endLine={}", from.line, to.line));
        // Columns are read only where both are on one line.
        if from.line == to.line {
            properties.push(format!("col={},endColumn={}", from.column, to.column.max(from.column)));
        }
    }
    properties.push(format!("title={}", property(diagnostic.rule)));
    let mut text = diagnostic.message.clone();
    let label = diagnostic.labels.first().map(|(_, label)| label).filter(|label| !label.is_empty());
    for more in label.into_iter().chain(&diagnostic.help) {
        text.push_str(". ");
        text.push_str(more);
    }
    format!("::{command} {}::{}", properties.join(","), escaped(&without_credentials(&text)))
}

/// The text of a command on one line.
fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property of a command.
fn property(text: &str) -> String {
    escaped(&without_credentials(text)).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;

    #[test]
    fn it_is_one_command() {
        let mut sources = SourceMap::new();
        let file = sources.add("/repo/conf/a,b.xml", "<a>\n  <b/></a>");
        let root = Path::new("/repo");
        let found =
            Diagnostic::warning("r", "50 %\nof it").at(Span::new(file, 6, 10), "here").help("http://u:p@h");
        assert_eq!(
            github(&found, &sources, root),
            "::warning file=conf/a%2Cb.xml,line=2,endLine=2,col=3,endColumn=7,title=r::50 %25%0Aof it. here. http://***@h"
        );
        let two_lines = Diagnostic::error("r", "m").at(Span::new(file, 0, 10), "");
        assert_eq!(
            github(&two_lines, &sources, root),
            "::error file=conf/a%2Cb.xml,line=1,endLine=2,title=r::m"
        );
        assert_eq!(github(&Diagnostic::new("r", Severity::Note, "m"), &sources, root), "::notice title=r::m");
    }
}
