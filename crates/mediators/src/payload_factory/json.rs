//! Whether a JSON template can make JSON at all, and whether it did. What fills a place in it may be a value, members, items or nothing, so only what is
//! wrong whatever comes there is a fault.

use super::filling::{Filling, is_bare};
use super::template::Part;
use flow::Context;
use std::ops::Range;

/// Objects and arrays inside of each other; deeper templates are not checked.
const DEEPEST: usize = 200;

/// Why a template makes no JSON.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Where in the template, in bytes.
    pub at: usize,
    pub why: String,
}

/// The first fault of a template with its places that are filled in.
pub(super) fn fault(text: &str, holes: &[Range<usize>]) -> Option<Fault> {
    let mut reader = Reader { text, holes, at: 0 };
    if matches!(reader.next(), Next::End) {
        return None;
    }
    let read = reader.value(0).and_then(|()| match reader.next() {
        // Templates that go on behind a place which is filled in may be made of several.
        Next::End | Next::Hole(_) => Ok(()),
        Next::Character(_) => Err(reader.fault("nothing may follow the value")),
    });
    read.err().filter(|fault| !fault.why.is_empty())
}

/// Logs that a template made no JSON: as in WSO2 the message has it all the same.
pub(super) fn warn_of_no_json(text: &str, template: &str, context: &Context) {
    let text = text.trim();
    if !text.is_empty()
        && let Err(why) = serde_json::from_str::<serde_json::Value>(text)
    {
        let place = context.place();
        tracing::warn!(message_id = %context.message_id(), place, cause = %why, "what {template} made is not JSON");
    }
}

/// Whether what fills a place without quotes may be no JSON there.
pub(super) fn is_doubtful(filling: &Filling<'_>, literal: bool) -> bool {
    match filling {
        Filling::Text(text) => !is_bare(text),
        Filling::Markup(_) | Filling::Json(_) => literal,
        Filling::Nothing => true,
    }
}

/// Whether JSON that has come so far, and goes on with `next`, has to have a value here: `{"a":` before `}`.
pub(super) fn needs_value(before: &str, next: Option<&Part>) -> bool {
    let Some(Part::Literal(next)) = next else { return false };
    let next = next.trim_start().as_bytes().first();
    match before.trim_end().as_bytes().last() {
        Some(b':' | b',') => matches!(next, Some(b',' | b'}' | b']')),
        Some(b'[') => next == Some(&b','),
        _ => false,
    }
}

/// Whether nothing stands between the brackets around this place: `[` before `]`, `{` before `}`. Nothing is JSON there.
pub(super) fn is_bracketed(before: &str, next: Option<&Part>) -> bool {
    let Some(Part::Literal(next)) = next else { return false };
    let next = next.trim_start().as_bytes().first();
    match before.trim_end().as_bytes().last() {
        Some(b'[') => next == Some(&b']'),
        Some(b'{') => next == Some(&b'}'),
        _ => false,
    }
}

struct Reader<'a> {
    text: &'a str,
    holes: &'a [Range<usize>],
    at: usize,
}

enum Next {
    Hole(usize),
    Character(char),
    End,
}

type Read = Result<(), Fault>;

impl Reader<'_> {
    /// What comes next, behind white space.
    fn next(&mut self) -> Next {
        while self.text[self.at..].starts_with(|c: char| c.is_ascii_whitespace()) {
            self.at += 1;
        }
        self.here()
    }

    fn here(&self) -> Next {
        let hole = self.holes.binary_search_by_key(&self.at, |hole| hole.start).ok();
        match (hole, self.text[self.at..].chars().next()) {
            (Some(hole), _) => Next::Hole(self.holes[hole].end),
            (None, Some(character)) => Next::Character(character),
            (None, None) => Next::End,
        }
    }

    fn fault(&self, why: &str) -> Fault {
        Fault { at: self.at.min(self.text.len().saturating_sub(1)), why: why.to_owned() }
    }

    /// A value: what is filled in may be all of it or a part (`-$1`, `$1.50`, `$1$2`).
    fn value(&mut self, depth: usize) -> Read {
        if depth > DEEPEST {
            return Err(Fault { at: self.at, why: String::new() });
        }
        match self.next() {
            Next::Character('{') => self.list(depth, '}', true),
            Next::Character('[') => self.list(depth, ']', false),
            Next::Character('"') => self.string(),
            Next::Hole(_) => self.word(),
            Next::Character(c) if c.is_ascii_alphanumeric() || c == '-' => self.word(),
            Next::Character('\'') => Err(self.fault("texts are in double quotes")),
            Next::Character(',') => Err(self.fault("a value is missing before this `,`")),
            Next::Character(close @ ('}' | ']')) => {
                Err(self.fault(&format!("a value is missing before this `{close}`")))
            }
            Next::Character(_) => Err(self.fault("expected a value")),
            Next::End => Err(self.fault("it ends where a value is expected")),
        }
    }

    fn word(&mut self) -> Read {
        let start = self.at;
        let mut filled = false;
        loop {
            match self.here() {
                Next::Hole(end) => {
                    (self.at, filled) = (end, true);
                }
                Next::Character(c) if c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.' | '_') => {
                    self.at += 1;
                }
                _ => break,
            }
        }
        let word = &self.text[start..self.at];
        // Numbers are not looked at closely: receivers differ in what they take.
        if filled || word.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return Ok(());
        }
        match word {
            "true" | "false" | "null" => Ok(()),
            _ => Err(Fault { at: start, why: format!("the text `{word}` needs double quotes") }),
        }
    }

    fn string(&mut self) -> Read {
        let start = self.at;
        self.at += 1;
        loop {
            match self.here() {
                Next::Hole(end) => self.at = end,
                Next::Character('"') => {
                    self.at += 1;
                    return Ok(());
                }
                Next::Character('\\') => {
                    self.at += 1;
                    if let Next::Character(c) = self.here() {
                        self.at += c.len_utf8();
                    }
                }
                Next::Character(c) => self.at += c.len_utf8(),
                Next::End => {
                    return Err(Fault { at: start, why: "the `\"` is not closed".to_owned() });
                }
            }
        }
    }

    /// The members of an object, or the items of an array.
    fn list(&mut self, depth: usize, close: char, members: bool) -> Read {
        let open = self.at;
        self.at += 1;
        let unclosed =
            || Fault { at: open, why: format!("the `{}` is not closed", if members { '{' } else { '[' }) };
        match self.next() {
            Next::Character(c) if c == close => {
                self.at += 1;
                return Ok(());
            }
            // What an expression gives is an object, or a text without quotes: never members.
            Next::Hole(end)
                if members
                    && self.text[self.at..].starts_with("${")
                    && self.text[end..].trim_start().starts_with('}') =>
            {
                let why = "an object that the expression gives has braces of its own".to_owned();
                return Err(Fault { at: open, why });
            }
            _ => {}
        }
        loop {
            let filled = if members { self.member(depth)? } else { self.item(depth)? };
            match self.next() {
                Next::Character(c) if c == close => {
                    self.at += 1;
                    return Ok(());
                }
                Next::Character(',') => {
                    let comma = self.at;
                    self.at += 1;
                    match self.next() {
                        Next::Character(c) if c == close => {
                            let why = format!("nothing comes between this `,` and the `{close}`");
                            return Err(Fault { at: comma, why });
                        }
                        _ => {}
                    }
                }
                Next::End => return Err(unclosed()),
                // What is filled in may end with a comma.
                _ if filled => {}
                Next::Hole(_) => {}
                Next::Character(_) => {
                    return Err(self.fault(&format!("expected `,` or `{close}` before this")));
                }
            }
        }
    }

    /// Whether it ends with what is filled in.
    fn item(&mut self, depth: usize) -> Result<bool, Fault> {
        self.value(depth + 1)?;
        Ok(self.holes.binary_search_by_key(&self.at, |hole| hole.end).is_ok())
    }

    fn member(&mut self, depth: usize) -> Result<bool, Fault> {
        match self.next() {
            Next::Character('"') => self.string()?,
            Next::Hole(_) => {
                self.word()?;
                // Members, or the name of one.
                if !matches!(self.next(), Next::Character(':')) {
                    return Ok(true);
                }
            }
            Next::Character('\'') => return Err(self.fault("names are in double quotes")),
            Next::End => return Err(self.fault("the object is not closed")),
            Next::Character(c) if c.is_alphanumeric() || c == '_' => {
                return Err(self.fault("a name needs double quotes"));
            }
            Next::Character(_) => return Err(self.fault("expected a name in double quotes")),
        }
        match self.next() {
            Next::Character(':') => self.at += 1,
            Next::Hole(_) => {
                // `"a"$1`: what is filled in brings the colon.
                self.word()?;
                return Ok(true);
            }
            _ => return Err(self.fault("expected `:` before this")),
        }
        // One place alone is the value, and brings no comma.
        if let Next::Hole(end) = self.next() {
            let alone = self.text[end..]
                .starts_with(|c: char| c.is_ascii_whitespace() || matches!(c, ',' | '}' | '"'))
                && self.holes.binary_search_by_key(&end, |hole| hole.start).is_err();
            return self.item(depth).map(|filled| filled && !alone);
        }
        self.item(depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places are `$1` and the like here.
    fn found(text: &str) -> Option<Fault> {
        let places = text.char_indices().filter(|(_, c)| *c == '$').map(|(at, _)| at..at + 2);
        fault(text, &places.collect::<Vec<_>>())
    }

    #[test]
    fn what_can_be_json_is_not_reported() {
        for text in [
            "",
            "  ",
            "$1",
            "$1$2",
            "{}",
            "[ ]",
            r#"{"a": "$1", "b": $2, "c": -$3, "d": $4.50, "e": [1, $5, "x $6 y"], "f": {"g": null}}"#,
            "{ $1 }",
            r#"{ "a": 1, $1 }"#,
            r#"{ $1 "b": 2 }"#,
            r#"{ "a": $1$2 "b": 2 }"#,
            r#"{ "a": $1 $2 "b": 2 }"#,
            r#"{ "a": 1$1 "b": 2 }"#,
            r#"{ "a": [$1] $2 }"#,
            r#"{ "a": 1 $1 }"#,
            r#"{ $1: "v" }"#,
            "[$1]",
            "[$1 $2]",
            "[1, 2 $1]",
            r#""text""#,
            "12.5e3",
            "true",
            r#"{"a": "say \"$1\" \\"}"#,
            "{\"a\": \"two\nlines\"}",
            "{\r\n\t\"a\": 1\r\n}\r\n",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
        let deep = "[".repeat(1_000_000);
        assert_eq!(found(&deep), None);
    }

    #[test]
    fn an_expression_gives_no_members() {
        let text = "{ ${vars.answer} }";
        let place = Range { start: 2, end: 16 };
        let found = fault(text, std::slice::from_ref(&place));
        assert_eq!(found.map(|fault| fault.at), Some(0));
        assert_eq!(fault("${vars.answer}", &[Range { start: 0, end: 14 }]), None);
    }

    #[test]
    fn what_makes_no_json_is_found_with_its_place() {
        for (text, at, why) in [
            (r#"{"a": "$1",}"#, 10, "nothing comes between this `,` and the `}`"),
            ("[1, 2,\n]", 5, "nothing comes between this `,` and the `]`"),
            (r#"{"a": '$1'}"#, 6, "texts are in double quotes"),
            (r#"{'a': 1}"#, 1, "names are in double quotes"),
            (r#"{a: 1}"#, 1, "a name needs double quotes"),
            (r#"{"a": yes}"#, 6, "the text `yes` needs double quotes"),
            (r#"{"a": 1 "b": 2}"#, 8, "expected `,` or `}` before this"),
            (r#"{"a" 1}"#, 5, "expected `:` before this"),
            (r#"{"a": $1 "b": 2}"#, 9, "expected `,` or `}` before this"),
            (r#"{"a": }"#, 6, "a value is missing before this `}`"),
            (r#"{"a": "$1}"#, 6, "the `\"` is not closed"),
            (r#"{"a": {"b": 1}"#, 0, "the `{` is not closed"),
            (r#"{"a": 1}}"#, 8, "nothing may follow the value"),
            ("// why\n{}", 0, "expected a value"),
            ("<a/>", 0, "expected a value"),
        ] {
            assert_eq!(found(text), Some(Fault { at, why: why.to_owned() }), "{text}");
        }
    }
}
