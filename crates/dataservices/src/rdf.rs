//! Responses as RDF/XML (`outputType="rdf"`): each row describes a resource, whose URI is a template with columns and parameters in it.

use std::fmt::Write;

/// The namespace of RDF.
pub(crate) const NAMESPACE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";

/// A URI with the names of columns and parameters in braces: `http://shop.example/items/{id}`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    /// A name in lower case.
    Name(String),
}

impl Template {
    /// # Errors
    /// A brace is not closed, or braces are empty.
    pub fn parse(text: &str) -> Result<Template, &'static str> {
        let mut pieces = Vec::new();
        let mut rest = text.trim();
        while let Some((before, behind)) = rest.split_once('{') {
            let (name, after) = behind.split_once('}').ok_or("a `{` has no `}`")?;
            if name.trim().is_empty() || name.contains('{') {
                return Err("a column or a parameter is expected between `{` and `}`");
            }
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            pieces.push(Piece::Name(name.trim().to_ascii_lowercase()));
            rest = after;
        }
        if rest.contains('}') {
            return Err("a `}` has no `{`");
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Template(pieces))
    }

    /// The URI; `value` gives the value of a name. Characters that a URI cannot have are percent-encoded.
    ///
    /// # Errors
    /// The errors of `value`.
    pub fn fill<E>(&self, mut value: impl FnMut(&str) -> Result<Option<String>, E>) -> Result<String, E> {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Name(name) => escape(&value(name)?.unwrap_or_default(), &mut out),
            }
        }
        Ok(out)
    }
}

/// Characters that an IRI cannot have (RFC 3987, 2.2) are percent-encoded; a slash in a value stays.
fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '\0'..=' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}' | '%' | '\u{7F}' => {
                let _ = write!(out, "%{:02X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_have_names_in_braces() {
        for (text, wanted) in [
            ("http://shop.example/items/{ID}", "http://shop.example/items/a%20%3Cb%3E%7B"),
            ("{id}{id}/x", "a%20%3Cb%3E%7Ba%20%3Cb%3E%7B/x"),
            ("http://shop.example/", "http://shop.example/"),
            ("urn:{none}", "urn:"),
            ("", ""),
        ] {
            let filled = Template::parse(text)
                .unwrap()
                .fill(|name| Ok::<_, ()>((name == "id").then(|| "a <b>{".to_owned())));
            assert_eq!(filled.as_deref(), Ok(wanted), "{text}");
        }
        for text in ["{", "a}", "{}", "{a{b}}", "{a", "{ }"] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }
}
