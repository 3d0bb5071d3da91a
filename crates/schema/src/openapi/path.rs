//! Paths of a definition: `/pet/{id}/photos`, `/report.{format}`.

/// A path with variables in braces.
#[derive(Debug)]
pub(super) struct PathTemplate {
    source: String,
    segments: Vec<Vec<Part>>,
}

#[derive(Debug)]
enum Part {
    Literal(String),
    Variable(String),
}

impl PathTemplate {
    pub(super) fn new(source: &str) -> PathTemplate {
        let segments = source.trim_end_matches('/').split('/').map(parts).collect();
        PathTemplate { source: source.to_owned(), segments }
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// The number of its variables.
    pub(super) fn variables(&self) -> usize {
        self.segments.iter().flatten().filter(|part| matches!(part, Part::Variable(_))).count()
    }

    /// The decoded variables of a matching path. A trailing slash is ignored.
    pub(super) fn values<'t>(&'t self, path: &str) -> Option<Vec<(&'t str, String)>> {
        let mut values = Vec::new();
        let mut given = path.trim_end_matches('/').split('/');
        for segment in &self.segments {
            take(segment, given.next()?, &mut values)?;
        }
        given.next().is_none().then_some(values)
    }
}

fn parts(segment: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = segment;
    while let Some((before, name, after)) = rest
        .split_once('{')
        .and_then(|(before, inside)| inside.split_once('}').map(|(name, after)| (before, name, after)))
    {
        if !before.is_empty() {
            parts.push(Part::Literal(before.to_owned()));
        }
        parts.push(Part::Variable(name.to_owned()));
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Literal(rest.to_owned()));
    }
    parts
}

/// Matches one segment: a variable has at least one character and ends where the literal after it first occurs.
fn take<'t>(parts: &'t [Part], segment: &str, values: &mut Vec<(&'t str, String)>) -> Option<()> {
    let mut rest = segment;
    let mut parts = parts.iter().peekable();
    while let Some(part) = parts.next() {
        match part {
            Part::Literal(text) => rest = rest.strip_prefix(text.as_str())?,
            Part::Variable(name) => {
                let end = match parts.peek() {
                    Some(Part::Literal(text)) => rest.find(text.as_str())?,
                    _ => rest.len(),
                };
                let (value, behind) = rest.split_at(end);
                if value.is_empty() {
                    return None;
                }
                values.push((name, decode(value)));
                rest = behind;
            }
        }
    }
    rest.is_empty().then_some(())
}

/// Percent-decodes; an invalid escape stays as it is.
pub(super) fn decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.as_bytes();
    while let [first, rest @ ..] = bytes {
        let digit = |at: usize| rest.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                bytes = &rest[2..];
            }
            _ => {
                out.push(*first);
                bytes = rest;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_give_their_variables() {
        for (template, path, wanted) in [
            ("/a/{b}", "/a/1", Some("b=1")),
            ("/a/{b}", "/a/1%2F2/", Some("b=1/2")),
            ("/a/{b}", "/a/", None),
            ("/a/{b}", "/a", None),
            ("/a/{b}", "/a/1/2", None),
            ("/a/", "/a", Some("")),
            ("/", "/", Some("")),
            ("/r.{f}", "/r.pdf", Some("f=pdf")),
            ("/{n}.{f}", "/x.y.z", Some("n=x f=y.z")),
            ("/{n}-", "/x", None),
            ("/{n", "/{n", Some("")),
            ("/a", "/A", None),
        ] {
            let template = PathTemplate::new(template);
            let found = template.values(path);
            let found =
                found.map(|all| all.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(" "));
            assert_eq!(found.as_deref(), wanted, "{} {path}", template.source());
        }
    }

    #[test]
    fn escapes() {
        assert_eq!(decode("a%20b%zz%C3%A9%"), "a b%zzé%");
    }
}
