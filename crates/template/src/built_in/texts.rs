//! Built-ins of texts.

use super::BuiltInCall;
use crate::ast::Error;
use crate::number::Number;
use crate::run::{Res, Run};
use crate::value::{Text, Value};
use std::borrow::Cow;

/// The longest text that `?left_pad` and `?right_pad` make, in characters.
const MAX_PADDED: usize = 1_000_000;

impl<'m> BuiltInCall<'m> {
    pub(super) fn text(&self, run: &mut Run<'m>, text: Text<'m>) -> Res<Option<Value<'m>>> {
        let s: &str = &text;
        let boolean = |is: bool| Ok(Some(Value::Boolean(is)));
        let index = |found: Option<usize>| {
            let at = found.map_or(-1, |at| s[..at].chars().count() as i64);
            Ok(Some(Value::Number(Number::int(at))))
        };
        let made = match self.name {
            "length" => return Ok(Some(Value::int(s.chars().count()))),
            "number" => {
                return match Number::parse(s) {
                    Some(number) => Ok(Some(Value::Number(number))),
                    None => self.error(format!("`{}` is not a number, or one that is too large", short(s))),
                };
            }
            "boolean" => match s {
                "true" => return boolean(true),
                "false" => return boolean(false),
                _ => return self.error(format!("`{}` is neither true nor false", short(s))),
            },
            "contains" => return boolean(s.contains(&*self.text_argument(run, 0)?)),
            "starts_with" => return boolean(s.starts_with(&*self.text_argument(run, 0)?)),
            "ends_with" => return boolean(s.ends_with(&*self.text_argument(run, 0)?)),
            "index_of" => {
                let wanted = self.text_argument(run, 0)?;
                let from = match self.arguments.len() {
                    2.. => usize::try_from(self.number_argument(run, 1)?).unwrap_or(0),
                    _ => 0,
                };
                let from = s.char_indices().nth(from).map_or(s.len(), |(at, _)| at);
                return index(s[from..].find(&*wanted).map(|at| from + at));
            }
            "last_index_of" => {
                let wanted = self.text_argument(run, 0)?;
                return index(s.rfind(&*wanted));
            }
            "upper_case" => s.to_uppercase(),
            "lower_case" => s.to_lowercase(),
            "trim" => return Ok(Some(Value::made(s.trim_matches(|c| c <= ' ')))),
            "cap_first" | "uncap_first" => {
                let start = s.len() - s.trim_start().len();
                let mut rest = s[start..].chars();
                let first: String = match (rest.next(), self.name) {
                    (Some(c), "cap_first") => c.to_uppercase().collect(),
                    (Some(c), _) => c.to_lowercase().collect(),
                    (None, _) => String::new(),
                };
                format!("{}{first}{}", &s[..start], rest.as_str())
            }
            "capitalize" => {
                let mut out = String::with_capacity(s.len());
                let mut inside = false;
                for c in s.chars() {
                    match (c.is_whitespace(), inside) {
                        (false, false) => out.extend(c.to_uppercase()),
                        (false, true) => out.extend(c.to_lowercase()),
                        (true, _) => out.push(c),
                    }
                    inside = !c.is_whitespace();
                }
                out
            }
            "chop_linebreak" => {
                let cut = s.strip_suffix("\r\n").or_else(|| s.strip_suffix(['\n', '\r'])).unwrap_or(s);
                cut.to_owned()
            }
            "left_pad" | "right_pad" => return self.padded(run, s),
            "substring" => {
                let length = s.chars().count() as i64;
                let from = self.number_argument(run, 0)?;
                let to = if self.arguments.len() > 1 { self.number_argument(run, 1)? } else { length };
                if from < 0 || to < from || to > length {
                    return self
                        .error(format!("there is no part from {from} to {to} of {length} characters"));
                }
                s.chars().skip(from as usize).take((to - from) as usize).collect()
            }
            "truncate" | "truncate_c" | "truncate_w" => {
                let most = usize::try_from(self.number_argument(run, 0)?).unwrap_or(0);
                if s.chars().count() <= most {
                    return Ok(Some(Value::Text(text)));
                }
                let mark =
                    if self.arguments.len() > 1 { self.text_argument(run, 1)? } else { Text::Lent("[...]") };
                truncated(s, most, &mark, self.name)
            }
            "ensure_starts_with" if self.arguments.len() > 1 => {
                let (start, with) = (self.text_argument(run, 0)?, self.text_argument(run, 1)?);
                let flags =
                    if self.arguments.len() > 2 { self.text_argument(run, 2)? } else { Text::Lent("r") };
                let regex = searched(&start, &flags).or_else(|why| self.error(why))?;
                let mut starts = false;
                self.for_each(&regex, s, |found| {
                    starts = found.get(0).is_some_and(|found| found.start() == 0);
                    Ok(false)
                })?;
                if starts {
                    return Ok(Some(Value::Text(text)));
                }
                format!("{}{s}", &*with)
            }
            "ensure_starts_with" | "ensure_ends_with" => {
                let part = self.text_argument(run, 0)?;
                match self.name {
                    "ensure_starts_with" if !s.starts_with(&*part) => format!("{}{s}", &*part),
                    "ensure_ends_with" if !s.ends_with(&*part) => format!("{s}{}", &*part),
                    _ => return Ok(Some(Value::Text(text))),
                }
            }
            "remove_beginning" => {
                let part = self.text_argument(run, 0)?;
                s.strip_prefix(&*part).unwrap_or(s).to_owned()
            }
            "remove_ending" => {
                let part = self.text_argument(run, 0)?;
                s.strip_suffix(&*part).unwrap_or(s).to_owned()
            }
            "keep_after" | "keep_after_last" | "keep_before" | "keep_before_last" => {
                let found = self.found(run, s)?;
                match (found, self.name.starts_with("keep_after")) {
                    (Some(found), true) => s[found.end..].to_owned(),
                    (Some(found), false) => s[..found.start].to_owned(),
                    (None, true) => String::new(),
                    (None, false) => s.to_owned(),
                }
            }
            "word_list" => {
                let words: Vec<Value<'m>> = s.split_whitespace().map(Value::made).collect();
                run.make(s.len(), self.place)?;
                return self.list(run, words);
            }
            "split" => return self.split(run, s),
            "replace" => return self.replaced(run, s),
            "matches" => {
                let pattern = self.text_argument(run, 0)?;
                let flags = if self.arguments.len() > 1 { Some(self.text_argument(run, 1)?) } else { None };
                let regex = regex(&format!("\\A(?:{})\\z", &*pattern), flags.as_deref().unwrap_or(""));
                let regex = regex.or_else(|why| self.error(why))?;
                let matches = regex.is_match(s);
                return boolean(matches.or_else(|why| self.stopped(why))?);
            }
            "xml" => xml(s).into_owned(),
            "html" | "xhtml" => html(s).into_owned(),
            "rtf" => s.replace('\\', "\\\\").replace('{', "\\{").replace('}', "\\}"),
            "json_string" | "js_string" | "j_string" => escaped(s, self.name),
            "url" => encoded(s, ""),
            "url_path" => encoded(s, "/"),
            _ => return self.error("this is not executable here"),
        };
        self.made(run, made)
    }

    /// Where the text or pattern of the first argument stands, by the flags of the second: the first or the last time.
    fn found(&self, run: &mut Run<'m>, s: &str) -> Res<Option<std::ops::Range<usize>>> {
        let part = self.text_argument(run, 0)?;
        let flags = self.flags(run, 1)?;
        let last = self.name.ends_with("last");
        if flags.is_empty() {
            let at = if last { s.rfind(&*part) } else { s.find(&*part) };
            return Ok(at.map(|at| at..at + part.len()));
        }
        let regex = searched(&part, &flags).or_else(|why| self.error(why))?;
        let mut place = None;
        self.for_each(&regex, s, |captures| {
            place = captures.get(0).map(|found| found.range());
            Ok(last)
        })?;
        Ok(place)
    }

    pub(super) fn stopped<T>(&self, why: meter::regex::Failure) -> Res<T> {
        match why {
            meter::regex::Failure::Stopped(stop) => Err(Error::fatal(stop.to_string(), self.place)),
            why => self.error(why),
        }
    }

    pub(super) fn padded(&self, run: &mut Run<'m>, s: &str) -> Res<Option<Value<'m>>> {
        let wanted = usize::try_from(self.number_argument(run, 0)?).unwrap_or(0);
        if wanted > MAX_PADDED {
            return self.error(format!("a string is padded to {MAX_PADDED} characters at most"));
        }
        let with = if self.arguments.len() > 1 { self.text_argument(run, 1)? } else { Text::Lent(" ") };
        let length = s.chars().count();
        let missing = wanted.saturating_sub(length);
        if missing > 0 && with.is_empty() {
            return self.error("nothing to pad with");
        }
        if missing == 0 {
            return self.made(run, s.to_owned());
        }
        run.make(missing.saturating_mul(with.len().min(4)), self.place)?;
        let padding: String = match self.name {
            "left_pad" => with.chars().cycle().take(missing).collect(),
            // On the right the pattern goes on as if it had begun at the start.
            _ => with.chars().cycle().skip(length % with.chars().count()).take(missing).collect(),
        };
        self.made(run, if self.name == "left_pad" { padding + s } else { format!("{s}{padding}") })
    }

    pub(super) fn flags(&self, run: &mut Run<'m>, at: usize) -> Res<Text<'m>> {
        if self.arguments.len() > at { self.text_argument(run, at) } else { Ok(Text::Lent("")) }
    }

    pub(super) fn split(&self, run: &mut Run<'m>, s: &str) -> Res<Option<Value<'m>>> {
        let by = self.text_argument(run, 0)?;
        let flags = self.flags(run, 1)?;
        let mut parts: Vec<&str> = Vec::new();
        if flags.contains('r') || flags.contains('i') {
            let regex = searched(&by, &flags).or_else(|why| self.error(why))?;
            let mut done = 0;
            // As Java: nothing is before an empty match at the beginning.
            self.for_each(&regex, s, |captures| {
                if let Some(found) = captures.get(0).filter(|found| found.end() > 0) {
                    run.make_items(1, self.place)?;
                    parts.push(&s[done..found.start()]);
                    done = found.end();
                }
                Ok(true)
            })?;
            parts.push(&s[done..]);
            // Empty parts at the end count for nothing, unless there is no other.
            if flags.contains('r') && done > 0 {
                let filled = parts.iter().rposition(|part| !part.is_empty());
                parts.truncate(filled.map_or(0, |last| last + 1));
            }
        } else if by.is_empty() {
            return self.error("a string is not split by nothing");
        } else {
            parts = s.split(&*by).collect();
        }
        run.make(s.len(), self.place)?;
        let parts = parts.into_iter().map(Value::made).collect();
        self.list(run, parts)
    }

    pub(super) fn replaced(&self, run: &mut Run<'m>, s: &str) -> Res<Option<Value<'m>>> {
        let by = self.text_argument(run, 0)?;
        let with = self.text_argument(run, 1)?;
        let flags = self.flags(run, 2)?;
        if !flags.contains('r') && !flags.contains('i') {
            let count = if by.is_empty() { s.len() + 1 } else { s.len() / by.len() };
            // What may come out at most, looked at before it is made.
            let most = s.len().saturating_add(count.saturating_mul(with.len()));
            if most > 1 << 20 {
                let found = s.matches(&*by).count();
                run.make(s.len().saturating_add(found.saturating_mul(with.len())), self.place)?;
            }
            let replaced =
                if flags.contains('f') { s.replacen(&*by, &with, 1) } else { s.replace(&*by, &with) };
            return self.made(run, replaced);
        }
        let regex = searched(&by, &flags).or_else(|why| self.error(why))?;
        let mut out = String::new();
        let mut done = 0;
        self.for_each(&regex, s, |captures| {
            let Some(whole) = captures.get(0) else { return Ok(true) };
            let before = out.len();
            out.push_str(&s[done..whole.start()]);
            if flags.contains('r') {
                expand(&with, &captures, &mut out)
            } else {
                out.push_str(&with)
            }
            done = whole.end();
            run.make(out.len() - before, self.place)?;
            Ok(!flags.contains('f'))
        })?;
        out.push_str(&s[done..]);
        self.made(run, out)
    }

    /// Does something with the matches of a pattern, until it says no.
    pub(super) fn for_each<'t>(
        &self,
        regex: &meter::regex::Regex,
        text: &'t str,
        mut each: impl FnMut(fancy_regex::Captures<'t, str>) -> Res<bool>,
    ) -> Res<()> {
        /// What ends the search: the pattern, or what is done with a match.
        enum Ended {
            Search(meter::regex::Failure),
            Own(Error),
        }
        impl From<meter::regex::Failure> for Ended {
            fn from(why: meter::regex::Failure) -> Ended {
                Ended::Search(why)
            }
        }
        match regex.for_each(text, |captures| each(captures).map_err(Ended::Own)) {
            Ok(()) => Ok(()),
            Err(Ended::Search(why)) => self.stopped(why),
            Err(Ended::Own(error)) => Err(error),
        }
    }
}

/// What is left of a text that is longer than `most` characters. After whole words a space stands before the mark; `truncate`
/// prefers them where the result has three quarters of the length at least.
fn truncated(s: &str, most: usize, mark: &str, name: &str) -> String {
    let chars: Vec<char> = s.chars().collect();
    let room = most.saturating_sub(mark.chars().count());
    let blank = |at: usize| chars.get(at).is_none_or(|c| c.is_whitespace());
    let kept = |length: usize, space: &str| {
        let kept: String = chars[..length].iter().collect();
        format!("{kept}{space}{mark}")
    };
    let words =
        (1..room).rev().find(|&length| !blank(length - 1) && blank(length)).map(|length| kept(length, " "));
    match (name, words) {
        ("truncate_w", words) => return words.unwrap_or_else(|| mark.to_owned()),
        ("truncate", Some(words)) if words.chars().count() * 4 >= most * 3 => return words,
        _ => {}
    }
    let trimmed = |mut length: usize| {
        while length > 0 && blank(length - 1) {
            length -= 1;
        }
        length
    };
    let length = trimmed(room);
    match length {
        0 => mark.to_owned(),
        _ if !blank(length) => kept(length, ""),
        _ if length < room => kept(length, " "),
        // There is no room for the space: one character less.
        _ => match trimmed(length - 1) {
            0 => mark.to_owned(),
            less if less < length - 1 => kept(less, " "),
            less => kept(less, ""),
        },
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// A regular expression of Java's dialect, with FreeMarker's flags.
fn regex(pattern: &str, flags: &str) -> Result<meter::regex::Regex, String> {
    let inline: String = flags
        .chars()
        .filter_map(|flag| match flag {
            'i' => Some('i'),
            'm' => Some('m'),
            's' => Some('s'),
            'c' => Some('x'),
            _ => None,
        })
        .collect();
    let pattern = message::regex::translate(pattern);
    let pattern = if inline.is_empty() { pattern } else { format!("(?{inline}){pattern}") };
    meter::regex::Regex::new(&pattern).map_err(|why| why.to_string().replace('\n', " "))
}

/// What is looked for: a pattern with the flag `r`, a text otherwise.
fn searched(part: &str, flags: &str) -> Result<meter::regex::Regex, String> {
    if flags.contains('r') { regex(part, flags) } else { regex(&fancy_regex::escape(part), flags) }
}

/// `$1` and `\$` in a replacement.
fn expand(with: &str, captures: &fancy_regex::Captures<'_, str>, out: &mut String) {
    let mut chars = with.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            '$' => match chars.peek().and_then(|c| c.to_digit(10)) {
                Some(group) => {
                    chars.next();
                    out.push_str(captures.get(group as usize).map_or("", |matched| matched.as_str()));
                }
                None => out.push('$'),
            },
            c => out.push(c),
        }
    }
}

/// `?xml`.
pub(crate) fn xml(text: &str) -> Cow<'_, str> {
    replaced(text, |c| match c {
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '&' => Some("&amp;"),
        '"' => Some("&quot;"),
        '\'' => Some("&apos;"),
        _ => None,
    })
}

/// `?html`.
pub(crate) fn html(text: &str) -> Cow<'_, str> {
    replaced(text, |c| match c {
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '&' => Some("&amp;"),
        '"' => Some("&quot;"),
        '\'' => Some("&#39;"),
        _ => None,
    })
}

fn replaced(text: &str, with: impl Fn(char) -> Option<&'static str>) -> Cow<'_, str> {
    if !text.chars().any(|c| with(c).is_some()) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match with(c) {
            Some(entity) => out.push_str(entity),
            None => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// `?json_string`, `?js_string` and `?j_string`.
fn escaped(text: &str, name: &str) -> String {
    let (json, java) = (name == "json_string", name == "j_string");
    let mut out = String::with_capacity(text.len() + 8);
    let mut before = '\0';
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{c}' => out.push_str("\\f"),
            '\u{8}' => out.push_str("\\b"),
            '\'' if !json && !java => out.push_str("\\'"),
            '/' if before == '<' && !java => out.push_str("\\/"),
            '>' if matches!(before, ']' | '-') && !java => {
                out.push_str(if json { "\\u003E" } else { "\\>" });
            }
            '!' | '?' if before == '<' && !java => {
                out.pop();
                out.push_str("\\u003C");
                out.push(c);
            }
            c if (c as u32) < 0x20
                || (!java && matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}')) =>
            {
                out.push_str(&format!("\\u{:04X}", c as u32));
            }
            c => out.push(c),
        }
        before = c;
    }
    out
}

/// `?url`: UTF-8, in hexadecimal.
fn encoded(text: &str, kept: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for b in text.bytes() {
        let plain = b.is_ascii_alphanumeric() || b"_-.!~*'()".contains(&b) || kept.as_bytes().contains(&b);
        if plain { out.push(char::from(b)) } else { out.push_str(&format!("%{b:02X}")) }
    }
    out
}
