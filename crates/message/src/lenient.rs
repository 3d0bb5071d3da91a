//! JSON texts as WSO2 reads them: by the standard, and where that does not fit as Gson's lenient reader does.
//!
//! Lenient are quotes (`'a'`, none around a word), separators (`=`, `=>`, `;`), comments (`//`, `/* */`, `#`), what is left
//! out between commas of an array (null), control characters in texts, and case (`TRUE`). What begins neither as an
//! object nor as an array, has something behind its end, or lacks its end is not JSON either way.

use serde_json::{Error, Map, Value};

/// Deepest nesting, as of the strict reader.
const MAX_DEPTH: usize = 127;

/// The value of a text.
///
/// # Errors
/// That of the strict reader, where neither can read it.
pub fn read(text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).or_else(|error| Reader { text, at: 0 }.document().ok_or(error))
}

/// Reads on at a place. `None` means everywhere: not readable, and the strict reader says why.
struct Reader<'t> {
    text: &'t str,
    /// In bytes, always between characters.
    at: usize,
}

impl<'t> Reader<'t> {
    fn document(&mut self) -> Option<Value> {
        let value = match self.next()? {
            '{' | '[' => self.value(0)?,
            _ => return None,
        };
        self.next().is_none().then_some(value)
    }

    /// The next character that is neither white space nor in a comment; it is not taken.
    fn next(&mut self) -> Option<char> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n']);
            self.at += rest.len() - trimmed.len();
            let end = match trimmed {
                _ if trimmed.starts_with("/*") => trimmed[2..].find("*/")? + 4,
                _ if trimmed.starts_with("//") || trimmed.starts_with('#') => {
                    trimmed.find(['\n', '\r']).unwrap_or(trimmed.len())
                }
                _ => return trimmed.chars().next(),
            };
            self.at += end;
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Takes the next character if it is one of these.
    fn take(&mut self, wanted: &[char]) -> Option<char> {
        let next = self.next().filter(|next| wanted.contains(next))?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.next()? {
            '{' => self.object(depth),
            '[' => self.array(depth),
            '"' | '\'' => self.quoted().map(Value::String),
            _ => {
                let word = self.word()?;
                Some(match word {
                    _ if word.eq_ignore_ascii_case("true") => Value::Bool(true),
                    _ if word.eq_ignore_ascii_case("false") => Value::Bool(false),
                    _ if word.eq_ignore_ascii_case("null") => Value::Null,
                    _ => match serde_json::from_str(word) {
                        Ok(number @ Value::Number(_)) => number,
                        _ => Value::String(word.to_owned()),
                    },
                })
            }
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.take(&['{'])?;
        let mut members = Map::new();
        if self.take(&['}']).is_some() {
            return Some(Value::Object(members));
        }
        loop {
            let name = match self.next()? {
                '"' | '\'' => self.quoted()?,
                _ => self.word()?.to_owned(),
            };
            if self.take(&[':', '='])? == '=' && self.rest().starts_with('>') {
                self.at += 1;
            }
            members.insert(name, self.value(depth + 1)?);
            if self.take(&[',', ';', '}'])? == '}' {
                return Some(Value::Object(members));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        self.take(&['['])?;
        let mut items = Vec::new();
        if self.take(&[']']).is_some() {
            return Some(Value::Array(items));
        }
        loop {
            items.push(match self.next()? {
                ',' | ';' | ']' => Value::Null,
                _ => self.value(depth + 1)?,
            });
            if self.take(&[',', ';', ']'])? == ']' {
                return Some(Value::Array(items));
            }
        }
    }

    /// A word without quotes.
    fn word(&mut self) -> Option<&'t str> {
        let rest = self.rest();
        let end = rest.find(|c| "/\\;#={}[]:, \t\r\n\u{c}".contains(c)).unwrap_or(rest.len());
        self.at += end;
        Some(&rest[..end]).filter(|word| !word.is_empty())
    }

    fn quoted(&mut self) -> Option<String> {
        let quote = self.take(&['"', '\''])?;
        let mut out = String::new();
        loop {
            let rest = self.rest();
            let end = rest.find([quote, '\\'])?;
            out.push_str(&rest[..end]);
            self.at += end + 1;
            if rest[end..].starts_with(quote) {
                return Some(out);
            }
            let escape = self.rest().chars().next()?;
            self.at += escape.len_utf8();
            out.push(match escape {
                't' => '\t',
                'b' => '\u{8}',
                'n' => '\n',
                'r' => '\r',
                'f' => '\u{c}',
                '\n' | '"' | '\'' | '\\' | '/' => escape,
                'u' => self.unicode()?,
                _ => return None,
            });
        }
    }

    /// What stands behind `\u`: a character, or the two halves of one.
    fn unicode(&mut self) -> Option<char> {
        let first = self.unit()?;
        if !(0xD800..0xDC00).contains(&first) {
            return char::from_u32(first);
        }
        self.at += self.rest().starts_with("\\u").then_some(2)?;
        let second = self.unit().filter(|unit| (0xDC00..0xE000).contains(unit))?;
        char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))
    }

    /// Four hexadecimal digits.
    fn unit(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4).filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn what_gson_reads_is_read() {
        for (text, wanted) in [
            ("{'a': 'one', \"l\": [1,2]}", r#"{"a":"one","l":[1,2]}"#),
            ("{a: one, b_2: -1.50}", r#"{"a":"one","b_2":-1.50}"#),
            (r#"{"a": 1; "b"=2; c => 3}"#, r#"{"a":1,"b":2,"c":3}"#),
            ("# c\n/* d */ {\"a\": 1 // x\n}", r#"{"a":1}"#),
            (r#"["a", , 1, ]"#, r#"["a",null,1,null]"#),
            ("[;]", "[null,null]"),
            (r#"{"a": TRUE, "b": False, "c": Null}"#, r#"{"a":true,"b":false,"c":null}"#),
            (
                r#"{"a": NaN, "b": 01, "c": +1, "d": .5, "e": 0x10}"#,
                r#"{"a":"NaN","b":"01","c":"+1","d":".5","e":"0x10"}"#,
            ),
            (r#"{'a': 'it\'s', "b": 'say "x"'}"#, r#"{"a":"it's","b":"say \"x\""}"#),
            ("{'a': 'tab\there\\\nnew'}", r#"{"a":"tab\there\nnew"}"#),
            (r"{'a': '\u00e9\ud83d\ude00\t'}", "{\"a\":\"é😀\\t\"}"),
            ("{'a': {}, 'b': []}", r#"{"a":{},"b":[]}"#),
            ("{'a': 1, 'a': 2}", r#"{"a":2}"#),
            // The strict reader's own.
            ("\"text\"", "\"text\""),
            (" 1e+400 ", "1e+400"),
        ] {
            assert_eq!(read(text).map(|value| value.to_string()).ok().as_deref(), Some(wanted), "{text}");
        }
    }

    #[test]
    fn what_nobody_reads_is_an_error_of_the_strict_reader() {
        let deep = "['".repeat(300);
        let nested = format!("{}'a'{}", "[".repeat(200), "]".repeat(200));
        for text in [
            "",
            "nope",
            "'a'",
            "{'a': 1",
            "{'a': 1} x",
            "{'a': 1,}",
            "{'a' 1}",
            "{a: two words}",
            "{'a': '\\x'}",
            "{'a': '",
            "{'a': '\\",
            "{'a': '\\u12",
            "{'a': '\\ud800x'}",
            "{'a': '\\ud800\\u0041'}",
            "{:1}",
            "{'a':}",
            "/* {",
            "[1",
            "{'a': '\\udc00'}",
            &deep,
            &nested,
        ] {
            let strict = serde_json::from_str::<serde_json::Value>(text).map_err(|error| error.to_string());
            assert_eq!(read(text).map_err(|error| error.to_string()), strict, "{text}");
            assert!(strict.is_err(), "{text}");
        }
    }
}
