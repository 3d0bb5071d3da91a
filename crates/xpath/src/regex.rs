//! Regular expressions of XPath (F&O section 7.6.1; XML Schema part 2 appendix F) on the engine that the bus uses
//! everywhere. Class escapes, blocks and subtraction are translated; a feature of neither is an error with its reason.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// A compiled regular expression.
#[derive(Debug)]
pub struct Regex {
    engine: meter::regex::Regex,
    matches_empty: bool,
    /// Pattern and replacement are literal (flag `q`).
    literal: bool,
}

/// The error in a pattern, flags or a replacement: code and message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegexError {
    /// The error code of the specification.
    pub code: &'static str,
    /// The message.
    pub message: String,
}

/// Longest pattern in bytes.
const MAX_PATTERN: usize = 1 << 14;
/// Most characters of a range whose variants in case are written out.
const MAX_VARIANTS: usize = 2048;
/// Deepest nesting of groups.
const MAX_GROUPS: usize = 100;
/// Most compiled patterns in the cache of a thread.
const CACHED: usize = 64;

/// Compiled patterns by flags and source.
type Cache = HashMap<(Box<str>, Box<str>), Arc<Regex>>;

impl RegexError {
    fn pattern(message: impl Into<String>) -> RegexError {
        RegexError { code: "FORX0002", message: message.into() }
    }
}

impl Regex {
    /// Compiles a pattern with flags (`s`, `m`, `i`, `x`, `q`).
    pub fn new(pattern: &str, flags: &str) -> Result<Regex, RegexError> {
        if let Some(unknown) = flags.chars().find(|c| !matches!(c, 's' | 'm' | 'i' | 'x' | 'q')) {
            return Err(RegexError {
                code: "FORX0001",
                message: format!("there is no flag `{unknown}` (only s, m, i, x, q)"),
            });
        }
        if pattern.len() > MAX_PATTERN {
            return Err(RegexError::pattern(format!("the pattern is longer than {MAX_PATTERN} bytes")));
        }
        let mut translated = String::with_capacity(pattern.len() + 8);
        let engine_flags: String = flags.chars().filter(|c| matches!(c, 's' | 'm' | 'i')).collect();
        if !engine_flags.is_empty() {
            let _ = write!(translated, "(?{engine_flags})");
        }
        let mut t = Translator {
            rest: pattern,
            out: translated,
            blanks: flags.contains('x'),
            insensitive: flags.contains('i'),
            cased: false,
            expands: false,
            groups: 0,
            open: Vec::new(),
        };
        let literal = flags.contains('q');
        if literal {
            for c in pattern.chars() {
                if c.is_ascii_punctuation() {
                    t.out.push('\\');
                }
                t.out.push(c);
            }
        } else {
            t.run()?;
        }
        let engine = meter::regex::Regex::new(&t.out)
            .map_err(|e| RegexError::pattern(format!("the pattern cannot be compiled: {e}")))?;
        let matches_empty = engine.is_match("").map_err(exhausted)?;
        Ok(Regex { engine, matches_empty, literal })
    }

    /// The same, cached by the thread: for patterns that are known at run time only.
    pub fn cached(pattern: &str, flags: &str) -> Result<Arc<Regex>, RegexError> {
        thread_local! {
            static KNOWN: RefCell<Cache> = RefCell::new(HashMap::new());
        }
        KNOWN.with_borrow_mut(|cache| {
            let key = (Box::from(flags), Box::from(pattern));
            if let Some(regex) = cache.get(&key) {
                return Ok(regex.clone());
            }
            let regex = Arc::new(Regex::new(pattern, flags)?);
            if regex.engine.is_light() {
                if cache.len() >= CACHED {
                    cache.clear();
                }
                cache.insert(key, regex.clone());
            }
            Ok(regex)
        })
    }

    /// Whether it matches a part of `text`.
    pub fn is_match(&self, text: &str) -> Result<bool, RegexError> {
        self.engine.is_match(text).map_err(exhausted)
    }

    /// An error where it matches the empty string.
    fn not_empty(&self) -> Result<(), RegexError> {
        if self.matches_empty {
            return Err(RegexError {
                code: "FORX0003",
                message: "the pattern matches the empty string".into(),
            });
        }
        Ok(())
    }

    /// Calls back with each match, from left to right, until that says no.
    fn for_each<'t>(
        &self,
        text: &'t str,
        mut each: impl FnMut(&fancy_regex::Captures<'t, str>, fancy_regex::Match<'t>) -> Result<bool, meter::Stop>,
    ) -> Result<(), RegexError> {
        let all: Result<(), meter::regex::Failure> =
            self.engine.for_each(text, |captures| match captures.get(0) {
                Some(whole) => Ok(each(&captures, whole)?),
                None => Ok(true),
            });
        all.map_err(exhausted)
    }

    /// `replace()`.
    pub fn replace(&self, text: &str, replacement: &str) -> Result<String, RegexError> {
        self.not_empty()?;
        let groups = self.engine.engine().captures_len().saturating_sub(1);
        let parts = match self.literal {
            true => vec![Part::Text(replacement.to_owned())],
            false => replacement_parts(replacement, groups)?,
        };
        let mut out = String::with_capacity(text.len());
        let (mut done, mut too_long) = (0, None);
        self.for_each(text, |found, whole| {
            out.push_str(&text[done..whole.start()]);
            let before = out.len();
            for part in &parts {
                match part {
                    Part::Text(text) => out.push_str(text),
                    Part::Group(number) => out.push_str(found.get(*number).map_or("", |m| m.as_str())),
                }
                // One match may make as much as all of them.
                too_long = meter::string_of(out.len()).err();
                if too_long.is_some() {
                    return Ok(false);
                }
            }
            done = whole.end();
            meter::spend_bytes(out.len() - before).map(|()| true)
        })?;
        if let Some(message) = too_long {
            return Err(RegexError { code: "FOER0000", message });
        }
        out.push_str(&text[done..]);
        Ok(out)
    }

    /// `tokenize()`. Of more than `most` tokens, the rest of the text is the last one.
    pub fn tokenize<'t>(&self, text: &'t str, most: usize) -> Result<Vec<&'t str>, RegexError> {
        self.not_empty()?;
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let mut out = Vec::new();
        let mut done = 0;
        self.for_each(text, |_, whole| {
            out.push(&text[done..whole.start()]);
            done = whole.end();
            Ok(out.len() < most)
        })?;
        out.push(&text[done..]);
        Ok(out)
    }

    /// The parts of `text` in order, for `xsl:analyze-string`: matches with their groups, and the text between them.
    /// `empty`: the pattern may match the empty string (XSLT 3.0).
    pub fn analyze<'t>(&self, text: &'t str, empty: bool) -> Result<Vec<Analyzed<'t>>, RegexError> {
        if self.matches_empty && !empty {
            return Err(RegexError {
                code: "XTDE1150",
                message: "the pattern matches the empty string".into(),
            });
        }
        let mut out = Vec::new();
        let mut done = 0;
        self.for_each(text, |found, whole| {
            if whole.start() > done {
                out.push(Analyzed { text: &text[done..whole.start()], groups: None });
            }
            let groups = found.iter().map(|g| g.map_or("", |m| m.as_str())).collect();
            out.push(Analyzed { text: whole.as_str(), groups: Some(groups) });
            done = whole.end();
            Ok(true)
        })?;
        if done < text.len() {
            out.push(Analyzed { text: &text[done..], groups: None });
        }
        Ok(out)
    }
}

impl Regex {
    /// The same with the positions of the groups of each match, for `analyze-string()`.
    pub(crate) fn analyze_nested(&self, text: &str) -> Result<Vec<Place>, RegexError> {
        self.not_empty()?;
        let mut out = Vec::new();
        let mut done = 0;
        self.for_each(text, |found, whole| {
            if whole.start() > done {
                out.push(Place { from: done, to: whole.start(), groups: None });
            }
            let groups = found.iter().enumerate().skip(1);
            let groups = groups.filter_map(|(n, group)| group.map(|m| (n, m.start(), m.end())));
            let mut groups: Vec<(usize, usize, usize)> = groups.collect();
            groups.sort_by_key(|(n, start, _)| (*start, *n));
            out.push(Place { from: whole.start(), to: whole.end(), groups: Some(groups) });
            done = whole.end();
            Ok(true)
        })?;
        if done < text.len() {
            out.push(Place { from: done, to: text.len(), groups: None });
        }
        Ok(out)
    }
}

/// A part of a string, by offsets; for a match its groups in the order of their beginnings: number, start, end.
#[derive(Debug)]
pub(crate) struct Place {
    pub from: usize,
    pub to: usize,
    pub groups: Option<Vec<(usize, usize, usize)>>,
}

/// A part of a string that was searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analyzed<'t> {
    /// The part.
    pub text: &'t str,
    /// For a match the texts of its groups, group 0 the whole.
    pub groups: Option<Vec<&'t str>>,
}

fn exhausted(error: meter::regex::Failure) -> RegexError {
    RegexError::pattern(format!("the pattern cannot be matched in bounded time: {error}"))
}

enum Part {
    Text(String),
    Group(usize),
}

/// `$1`, `\$` and `\\` in a replacement.
fn replacement_parts(replacement: &str, groups: usize) -> Result<Vec<Part>, RegexError> {
    let wrong = |message: &str| RegexError { code: "FORX0004", message: message.to_owned() };
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut chars = replacement.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | '$')) => text.push(c),
                _ => return Err(wrong("in a replacement a `\\` must be followed by `\\` or `$`")),
            },
            '$' => {
                let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) else {
                    return Err(wrong("in a replacement a `$` must be followed by a digit or written `\\$`"));
                };
                chars.next();
                let mut number = digit as usize;
                // As many digits as there are groups.
                while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
                    let further = number * 10 + digit as usize;
                    if further > groups {
                        break;
                    }
                    chars.next();
                    number = further;
                }
                parts.push(Part::Text(std::mem::take(&mut text)));
                parts.push(Part::Group(number));
            }
            c => text.push(c),
        }
    }
    parts.push(Part::Text(text));
    Ok(parts)
}

struct Translator<'p> {
    rest: &'p str,
    out: String,
    /// White space in the pattern is ignored.
    blanks: bool,
    /// Characters match without regard to case (flag `i`); categories and blocks do not (F&O 3.1 section 5.6.2).
    insensitive: bool,
    /// A category or block that tells cases apart was met.
    cased: bool,
    /// Characters in a class stand for their variants in case as well.
    expands: bool,
    groups: usize,
    /// Numbers of the open groups (0: a group that does not capture).
    open: Vec<usize>,
}

impl Translator<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn peek(&mut self) -> Option<char> {
        if self.blanks {
            self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        }
        self.rest.chars().next()
    }

    fn run(&mut self) -> Result<(), RegexError> {
        // A quantifier has an operand.
        let mut atom = false;
        while let Some(c) = self.next() {
            match c {
                '\\' => {
                    self.escape()?;
                    atom = true;
                }
                '[' => {
                    let class = self.class_by_case()?;
                    self.out.push_str(&class);
                    atom = true;
                }
                '(' => {
                    if self.open.len() >= MAX_GROUPS {
                        return Err(RegexError::pattern(format!(
                            "groups are nested deeper than {MAX_GROUPS}"
                        )));
                    }
                    if self.peek() == Some('?') {
                        let Some(rest) = self.rest.strip_prefix("?:") else {
                            return Err(RegexError::pattern(
                                "`(?` is not part of an XPath regular expression",
                            ));
                        };
                        self.rest = rest;
                        self.out.push_str("(?:");
                        self.open.push(0);
                    } else {
                        self.groups += 1;
                        self.open.push(self.groups);
                        self.out.push('(');
                    }
                    atom = false;
                }
                ')' => {
                    if self.open.pop().is_none() {
                        return Err(RegexError::pattern("a `)` without `(`"));
                    }
                    self.out.push(')');
                    atom = true;
                }
                '|' => {
                    self.out.push('|');
                    atom = false;
                }
                '^' | '$' => {
                    self.out.push(c);
                    atom = true;
                }
                '.' => {
                    self.out.push('.');
                    atom = true;
                }
                '?' | '*' | '+' | '{' => {
                    if !atom {
                        return Err(RegexError::pattern(format!(
                            "nothing stands before the quantifier `{c}`"
                        )));
                    }
                    self.quantifier(c)?;
                    atom = false;
                }
                '}' | ']' => return Err(RegexError::pattern(format!("a `{c}` must be written `\\{c}`"))),
                c => {
                    self.out.push(c);
                    atom = true;
                }
            }
        }
        if self.open.is_empty() { Ok(()) } else { Err(RegexError::pattern("a `(` without `)`")) }
    }

    fn quantifier(&mut self, c: char) -> Result<(), RegexError> {
        self.out.push(c);
        if c == '{' {
            let end = self.rest.find('}').unwrap_or(self.rest.len());
            let inner: String =
                self.rest[..end].chars().filter(|c| !(self.blanks && c.is_ascii_whitespace())).collect();
            let (least, most) = inner.split_once(',').unwrap_or((&inner, &inner));
            let number = |s: &str| s.parse::<u32>().ok().filter(|n| *n <= 10_000 && !s.starts_with('+'));
            let fits = number(least)
                .is_some_and(|least| most.is_empty() || number(most).is_some_and(|m| m >= least));
            if !fits || end == self.rest.len() {
                return Err(RegexError::pattern(
                    "the quantifier `{` must be {n}, {n,} or {n,m}, up to 10000",
                ));
            }
            self.out.push_str(&inner);
            self.out.push('}');
            self.rest = &self.rest[end + 1..];
        }
        if self.peek() == Some('?') {
            self.next();
            self.out.push('?');
        }
        Ok(())
    }

    /// An escape outside a class.
    fn escape(&mut self) -> Result<(), RegexError> {
        if let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            self.next();
            let mut number = digit as usize;
            while let Some(digit) = self.rest.chars().next().and_then(|c| c.to_digit(10)) {
                let further = number * 10 + digit as usize;
                if further > self.groups {
                    break;
                }
                self.next();
                number = further;
            }
            if number == 0 || number > self.groups || self.open.contains(&number) {
                return Err(RegexError::pattern(format!(
                    "`\\{number}` refers to no group that is closed before it"
                )));
            }
            let _ = write!(self.out, "(?:\\{number})");
            return Ok(());
        }
        self.cased = false;
        let set = self.escaped()?;
        if self.insensitive && self.cased {
            let _ = write!(self.out, "(?-i:{set})");
        } else {
            self.out.push_str(&set);
        }
        Ok(())
    }

    /// The meaning of an escape: a character or a set, in a class and outside.
    fn escaped(&mut self) -> Result<String, RegexError> {
        let c = self.rest.chars().next();
        let Some(c) = c else { return Err(RegexError::pattern("a `\\` at the end")) };
        self.rest = &self.rest[c.len_utf8()..];
        Ok(match c {
            'n' => "\\n".into(),
            'r' => "\\r".into(),
            't' => "\\t".into(),
            '\\' | '|' | '.' | '-' | '^' | '?' | '*' | '+' | '{' | '}' | '(' | ')' | '[' | ']' | '$' => {
                format!("\\{c}")
            }
            'd' => "\\p{Nd}".into(),
            'D' => "\\P{Nd}".into(),
            's' => "[ \\t\\n\\r]".into(),
            'S' => "[^ \\t\\n\\r]".into(),
            'w' => "[^\\p{P}\\p{Z}\\p{C}]".into(),
            'W' => "[\\p{P}\\p{Z}\\p{C}]".into(),
            'i' => format!("[{NAME_START}]"),
            'I' => format!("[^{NAME_START}]"),
            'c' => format!("[{NAME_START}{NAME_MORE}]"),
            'C' => format!("[^{NAME_START}{NAME_MORE}]"),
            'p' | 'P' => {
                let Some((name, rest)) = self.rest.strip_prefix('{').and_then(|r| r.split_once('}')) else {
                    return Err(RegexError::pattern("`\\p` needs a category in braces"));
                };
                self.rest = rest;
                self.cased |= name.starts_with("Is") || matches!(name, "Lu" | "Ll" | "Lt");
                property(name, c == 'P')?
            }
            c => {
                return Err(RegexError::pattern(format!(
                    "`\\{c}` is not an escape of XPath regular expressions"
                )));
            }
        })
    }

    /// A character class, after its `[`. With flag `i` and a category that tells cases apart, the engine's own flag is off in it.
    fn class_by_case(&mut self) -> Result<String, RegexError> {
        let start = self.rest;
        self.cased = false;
        let class = self.class(0)?;
        if !self.insensitive || !self.cased {
            return Ok(class);
        }
        self.rest = start;
        self.expands = true;
        let class = self.class(0);
        self.expands = false;
        Ok(format!("(?-i:{})", class?))
    }

    /// Adds what matches characters from `first` to `last` in another case.
    fn push_variants(&self, first: char, last: char, out: &mut String) {
        if !self.expands {
            return;
        }
        for c in (first..=last).take(MAX_VARIANTS) {
            let (mut lower, mut upper) = (c.to_lowercase(), c.to_uppercase());
            for variant in [(lower.next(), lower.next()), (upper.next(), upper.next())] {
                if let (Some(variant), None) = variant
                    && variant != c
                {
                    out.push_str(&class_char(variant));
                }
            }
        }
    }

    /// A character class, after its `[`.
    fn class(&mut self, depth: usize) -> Result<String, RegexError> {
        if depth > 20 {
            return Err(RegexError::pattern("classes are nested too deeply"));
        }
        let mut out = String::from("[");
        let take = |t: &mut Self| -> Option<char> {
            let c = t.rest.chars().next()?;
            t.rest = &t.rest[c.len_utf8()..];
            Some(c)
        };
        if let Some(rest) = self.rest.strip_prefix('^') {
            self.rest = rest;
            out.push('^');
        }
        let unclosed = || RegexError::pattern("a `[` without `]`");
        let mut count = 0;
        loop {
            let c = take(self).ok_or_else(unclosed)?;
            match c {
                ']' if count > 0 => break,
                ']' => {
                    return Err(RegexError::pattern("an empty class, or a `]` that must be written `\\]`"));
                }
                '[' => return Err(RegexError::pattern("a `[` in a class must be written `\\[`")),
                '-' if self.rest.starts_with('[') && count > 0 => {
                    take(self);
                    let without = self.class(depth + 1)?;
                    if take(self) != Some(']') {
                        return Err(RegexError::pattern("a subtraction must end its class"));
                    }
                    // a-z without b: the intersection of a-z and the complement of b.
                    return Ok(format!("[{out}]&&{}]", complement(&without)));
                }
                _ => {}
            }
            count += 1;
            let first = if c == '\\' { self.escaped()? } else { class_char(c) };
            let is_range =
                self.rest.starts_with('-') && !self.rest.starts_with("-]") && !self.rest.starts_with("-[");
            if !is_range {
                out.push_str(&first);
                if c != '\\' {
                    self.push_variants(c, c, &mut out);
                }
                continue;
            }
            let from = c;
            take(self);
            let c = take(self).ok_or_else(unclosed)?;
            let last = if c == '\\' { self.escaped()? } else { class_char(c) };
            let single = |s: &str| !s.starts_with('[') && !s.starts_with("\\p") && !s.starts_with("\\P");
            if !single(&first) || !single(&last) || c == '[' {
                return Err(RegexError::pattern("a range in a class needs a character at each end"));
            }
            let _ = write!(out, "{first}-{last}");
            if from != '\\' && c != '\\' {
                self.push_variants(from, c, &mut out);
            }
        }
        out.push(']');
        Ok(out)
    }
}

fn complement(class: &str) -> String {
    format!("[^{class}]")
}

/// A character in a class; special characters of the engine only are escaped.
fn class_char(c: char) -> String {
    match c {
        '&' | '~' | '-' | '^' | '[' | ']' | '#' => format!("\\{c}"),
        c => c.to_string(),
    }
}

/// NameStartChar, and the further characters of NameChar.
const NAME_START: &str = ":A-Z_a-z\\u{C0}-\\u{D6}\\u{D8}-\\u{F6}\\u{F8}-\\u{2FF}\\u{370}-\\u{37D}\\u{37F}-\\u{1FFF}\\u{200C}-\\u{200D}\\u{2070}-\\u{218F}\\u{2C00}-\\u{2FEF}\\u{3001}-\\u{D7FF}\\u{F900}-\\u{FDCF}\\u{FDF0}-\\u{FFFD}\\u{10000}-\\u{EFFFF}";
const NAME_MORE: &str = "\\-.0-9\\u{B7}\\u{300}-\\u{36F}\\u{203F}-\\u{2040}";

const CATEGORIES: [&str; 37] = [
    "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Ps",
    "Pe", "Pi", "Pf", "Po", "Z", "Zs", "Zl", "Zp", "S", "Sm", "Sc", "Sk", "So", "C", "Cc", "Cf", "Co", "Cn",
    "Cs",
];

/// Texts have no surrogates, which are no characters.
fn surrogates(negated: bool) -> String {
    if negated { "[\\u{0}-\\u{10FFFF}]" } else { "[^\\u{0}-\\u{10FFFF}]" }.into()
}

/// A category or a block (`IsGreek`).
fn property(name: &str, negated: bool) -> Result<String, RegexError> {
    if CATEGORIES.contains(&name) {
        if name == "Cs" {
            return Ok(surrogates(negated));
        }
        return Ok(format!("\\{}{{{name}}}", if negated { 'P' } else { 'p' }));
    }
    if matches!(name, "IsHighSurrogates" | "IsHighPrivateUseSurrogates" | "IsLowSurrogates") {
        return Ok(surrogates(negated));
    }
    let block =
        name.strip_prefix("Is").and_then(|block| BLOCKS.iter().find(|(block_name, ..)| *block_name == block));
    match block {
        Some((_, first, last)) => {
            Ok(format!("[{}\\u{{{first:X}}}-\\u{{{last:X}}}]", if negated { "^" } else { "" }))
        }
        None => Err(RegexError::pattern(format!("there is no category or block `{name}`"))),
    }
}

/// The blocks of Unicode 3.1 that XML Schema names, surrogates and planes of private use aside.
#[rustfmt::skip]
const BLOCKS: [(&str, u32, u32); 94] = [
    ("BasicLatin", 0x0000, 0x007F), ("Latin-1Supplement", 0x0080, 0x00FF), ("LatinExtended-A", 0x0100, 0x017F),
    ("LatinExtended-B", 0x0180, 0x024F), ("IPAExtensions", 0x0250, 0x02AF), ("SpacingModifierLetters", 0x02B0, 0x02FF),
    ("CombiningDiacriticalMarks", 0x0300, 0x036F), ("Greek", 0x0370, 0x03FF), ("GreekandCoptic", 0x0370, 0x03FF),
    ("Cyrillic", 0x0400, 0x04FF), ("Armenian", 0x0530, 0x058F), ("Hebrew", 0x0590, 0x05FF), ("Arabic", 0x0600, 0x06FF),
    ("Syriac", 0x0700, 0x074F), ("Thaana", 0x0780, 0x07BF), ("Devanagari", 0x0900, 0x097F), ("Bengali", 0x0980, 0x09FF),
    ("Gurmukhi", 0x0A00, 0x0A7F), ("Gujarati", 0x0A80, 0x0AFF), ("Oriya", 0x0B00, 0x0B7F), ("Tamil", 0x0B80, 0x0BFF),
    ("Telugu", 0x0C00, 0x0C7F), ("Kannada", 0x0C80, 0x0CFF), ("Malayalam", 0x0D00, 0x0D7F), ("Sinhala", 0x0D80, 0x0DFF),
    ("Thai", 0x0E00, 0x0E7F), ("Lao", 0x0E80, 0x0EFF), ("Tibetan", 0x0F00, 0x0FFF), ("Myanmar", 0x1000, 0x109F),
    ("Georgian", 0x10A0, 0x10FF), ("HangulJamo", 0x1100, 0x11FF), ("Ethiopic", 0x1200, 0x137F), ("Cherokee", 0x13A0, 0x13FF),
    ("UnifiedCanadianAboriginalSyllabics", 0x1400, 0x167F), ("Ogham", 0x1680, 0x169F), ("Runic", 0x16A0, 0x16FF),
    ("Khmer", 0x1780, 0x17FF), ("Mongolian", 0x1800, 0x18AF), ("LatinExtendedAdditional", 0x1E00, 0x1EFF),
    ("GreekExtended", 0x1F00, 0x1FFF), ("GeneralPunctuation", 0x2000, 0x206F), ("SuperscriptsandSubscripts", 0x2070, 0x209F),
    ("CurrencySymbols", 0x20A0, 0x20CF), ("CombiningMarksforSymbols", 0x20D0, 0x20FF), ("LetterlikeSymbols", 0x2100, 0x214F),
    ("NumberForms", 0x2150, 0x218F), ("Arrows", 0x2190, 0x21FF), ("MathematicalOperators", 0x2200, 0x22FF),
    ("MiscellaneousTechnical", 0x2300, 0x23FF), ("ControlPictures", 0x2400, 0x243F), ("OpticalCharacterRecognition", 0x2440, 0x245F),
    ("EnclosedAlphanumerics", 0x2460, 0x24FF), ("BoxDrawing", 0x2500, 0x257F), ("BlockElements", 0x2580, 0x259F),
    ("GeometricShapes", 0x25A0, 0x25FF), ("MiscellaneousSymbols", 0x2600, 0x26FF), ("Dingbats", 0x2700, 0x27BF),
    ("BraillePatterns", 0x2800, 0x28FF), ("CJKRadicalsSupplement", 0x2E80, 0x2EFF), ("KangxiRadicals", 0x2F00, 0x2FDF),
    ("IdeographicDescriptionCharacters", 0x2FF0, 0x2FFF), ("CJKSymbolsandPunctuation", 0x3000, 0x303F), ("Hiragana", 0x3040, 0x309F),
    ("Katakana", 0x30A0, 0x30FF), ("Bopomofo", 0x3100, 0x312F), ("HangulCompatibilityJamo", 0x3130, 0x318F), ("Kanbun", 0x3190, 0x319F),
    ("BopomofoExtended", 0x31A0, 0x31BF), ("EnclosedCJKLettersandMonths", 0x3200, 0x32FF), ("CJKCompatibility", 0x3300, 0x33FF),
    ("CJKUnifiedIdeographsExtensionA", 0x3400, 0x4DB5), ("CJKUnifiedIdeographs", 0x4E00, 0x9FFF), ("YiSyllables", 0xA000, 0xA48F),
    ("YiRadicals", 0xA490, 0xA4CF), ("HangulSyllables", 0xAC00, 0xD7A3), ("PrivateUse", 0xE000, 0xF8FF),
    ("CJKCompatibilityIdeographs", 0xF900, 0xFAFF), ("AlphabeticPresentationForms", 0xFB00, 0xFB4F),
    ("ArabicPresentationForms-A", 0xFB50, 0xFDFF), ("CombiningHalfMarks", 0xFE20, 0xFE2F), ("CJKCompatibilityForms", 0xFE30, 0xFE4F),
    ("SmallFormVariants", 0xFE50, 0xFE6F), ("ArabicPresentationForms-B", 0xFE70, 0xFEFE), ("Specials", 0xFEFF, 0xFFFD),
    ("HalfwidthandFullwidthForms", 0xFF00, 0xFFEF), ("OldItalic", 0x10300, 0x1032F), ("Gothic", 0x10330, 0x1034F),
    ("Deseret", 0x10400, 0x1044F), ("ByzantineMusicalSymbols", 0x1D000, 0x1D0FF), ("MusicalSymbols", 0x1D100, 0x1D1FF),
    ("MathematicalAlphanumericSymbols", 0x1D400, 0x1D7FF), ("CJKUnifiedIdeographsExtensionB", 0x20000, 0x2A6D6),
    ("CJKCompatibilityIdeographsSupplement", 0x2F800, 0x2FA1F), ("Tags", 0xE0000, 0xE007F),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches() {
        #[rustfmt::skip]
        let cases = [
            ("abracadabra", "bra", "", true), ("abracadabra", "^a.*a$", "", true), ("abracadabra", "^bra", "", false),
            ("a\nb", "a.b", "", false), ("a\nb", "a.b", "s", true), ("a\nb", "^b$", "m", true), ("a\nb", "^b$", "", false), ("a\n", "a$", "", false),
            ("HELLO", "hello", "i", true), ("helloworld", "hello world", "x", true), ("hello world", "hello\\ sworld", "x", true), ("hello world", "hello[ ]world", "x", true),
            ("x-1", "^\\i\\c*$", "", true), ("1x", "^\\i\\c*$", "", false), ("٣", "^\\d$", "", true), ("a_b", "^\\w+$", "", false), ("a_b", "\\W", "", true),
            ("b", "^[a-z-[aeiou]]$", "", true), ("e", "^[a-z-[aeiou]]$", "", false), ("e", "^[^a-z-[q]]$", "", false), ("&&", "^[&&]+$", "", true),
            ("a", "^\\P{IsHighSurrogates}[^\\p{IsLowSurrogates}]?$", "", true), ("a", "\\p{IsHighSurrogates}", "", false),
            ("α", "^\\p{IsGreek}$", "", true), ("a", "^\\P{IsGreek}$", "", true), ("é", "\\p{Ll}", "", true), ("\u{a0}", "\\s", "", false),
            ("abab", "^(ab)\\1$", "", true), ("ab1", "^(ab)1$", "", true), ("a-b", "^[a\\-b]+$", "", true), ("a-b", "^[ab-]+$", "", true),
            ("$", "^\\$$", "", true), ("a#b", "a#b", "", true), ("aaa", "^a{2,3}?$", "", true), ("a", "(?:a)", "", true),
            ("~", "[~]", "", true), ("x", "[^\\d]", "", true), ("]", "[\\]]", "", true),
            ("a", "\\p{Lu}", "i", false), ("A", "^\\p{Lu}$", "i", true), ("a", "^\\P{Lu}$", "i", true), ("A", "\\p{Ll}", "i", false), ("A", "^\\p{L}$", "i", true),
            ("k", "\\p{IsLatin-1Supplement}", "i", false), ("Q", "^[\\p{Ll}q-s]$", "i", true), ("T", "[\\p{Ll}q-s]", "i", false), ("t", "[\\p{Lu}Q]", "i", false), ("q", "^[\\p{Lu}Q]$", "i", true),
            ("Q", "[^\\p{Ll}q]", "i", false), ("T", "^[^\\p{Ll}q]$", "i", true), ("t", "^[\\p{Ll}-[T]]$", "i", false), ("s", "^[\\p{Ll}-[T]]$", "i", true),
            ("a.b", "a.b", "q", true), ("axb", "a.b", "q", false), ("A(B", "a(b", "qi", true),
        ];
        for (text, pattern, flags, expected) in cases {
            let regex = Regex::new(pattern, flags).unwrap_or_else(|e| panic!("{pattern}: {e:?}"));
            assert_eq!(regex.is_match(text), Ok(expected), "{text} {pattern} {flags}");
        }
    }

    #[test]
    fn refuses() {
        #[rustfmt::skip]
        let cases = [
            ("(", ""), (")", ""), ("[", ""), ("[]", ""), ("[^]", ""), ("*", ""), ("a**", ""), ("a{", ""), ("a{2,1}", ""), ("a{,2}", ""), ("{", ""), ("}", ""),
            ("]", ""), ("\\b", ""), ("\\q", ""), ("\\", ""), ("(?=a)", ""), ("(?i)a", ""), ("\\1", ""), ("(a\\1)", ""), ("\\p{Foo}", ""), ("\\p{IsFoo}", ""),
            ("\\pL", ""), ("[a-\\d]", ""), ("[z-a]", ""), ("a{99999}", ""),
        ];
        for (pattern, flags) in cases {
            assert_eq!(Regex::new(pattern, flags).map(|_| ()).unwrap_err().code, "FORX0002", "{pattern}");
        }
        assert_eq!(Regex::new("a", "y").map(|_| ()).unwrap_err().code, "FORX0001");
        assert!(Regex::new(&"(".repeat(10_000), "").is_err());
        assert!(Regex::new(&"[a-[".repeat(4_000), "").is_err());
        let slow = Regex::new("(a+)+\\1b", "").unwrap();
        assert!(slow.is_match(&"a".repeat(5_000)).is_err() || slow.is_match("aab").is_ok());
    }

    #[test]
    fn replaces_and_splits() {
        let replace = |text: &str, pattern: &str, with: &str| match Regex::new(pattern, "")
            .unwrap()
            .replace(text, with)
        {
            Ok(text) => text,
            Err(error) => error.code.to_owned(),
        };
        #[rustfmt::skip]
        let cases = [
            ("abracadabra", "bra", "*", "a*cada*"), ("abracadabra", "a.*a", "*", "*"), ("abracadabra", "a.*?a", "*", "*c*bra"),
            ("abracadabra", "a", "", "brcdbr"), ("abracadabra", "a(.)", "a$1$1", "abbraccaddabbra"), ("abracadabra", ".*?", "$1", "FORX0003"),
            ("AAAA", "A+", "b", "b"), ("AAAA", "A+?", "b", "bbbb"), ("darted", "^(.*?)d(.*)$", "$1c$2", "carted"), ("a", "a", "\\$\\\\", "$\\"),
            ("a", "a", "$", "FORX0004"), ("a", "a", "\\n", "FORX0004"), ("abc", "(b)", "[$1]$2", "a[b]c"), ("abc", "(b)", "$10", "ab0c"), ("abc", "b", "[$0]", "a[b]c"),
        ];
        for (text, pattern, with, expected) in cases {
            assert_eq!(replace(text, pattern, with), expected, "{text} {pattern} {with}");
        }
        // What would be made is bounded, over all matches and within one.
        let large = "a".repeat(100_000);
        assert_eq!(replace(&large, "a", &large), "FOER0000");
        assert_eq!(replace(&large, "(a+)", &"$1".repeat(100_000)), "FOER0000");
        let tokens = |text, pattern, flags| {
            Regex::new(pattern, flags).unwrap().tokenize(text, 100).unwrap_or_default().join("|")
        };
        assert_eq!(tokens("The cat sat", "\\s+", ""), "The|cat|sat");
        assert_eq!(tokens("1, 15, 24", ",\\s*", ""), "1|15|24");
        assert_eq!(
            tokens("Some unparsed <br> HTML <BR> text", "\\s*<br>\\s*", "i"),
            "Some unparsed|HTML|text"
        );
        assert_eq!(tokens(",a,,b,", ",", ""), "|a||b|");
        assert_eq!(Regex::new(".?", "").unwrap().tokenize("a", 100).unwrap_err().code, "FORX0003");
        let parts = Regex::new("(\\d)(x)?", "").unwrap();
        let parts = parts.analyze("a1b2x", false).unwrap();
        let shown: Vec<_> = parts.iter().map(|p| (p.text, p.groups.clone())).collect();
        assert_eq!(
            shown,
            [("a", None), ("1", Some(vec!["1", "1", ""])), ("b", None), ("2x", Some(vec!["2x", "2", "x"]))]
        );
    }
}
