//! Patterns of XML Schema (Part 2, appendix F), translated into the linear-time engine of the `regex` crate.

use super::blocks::BLOCKS;
use std::fmt::Write;

/// A compiled pattern; it matches whole values.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The source text.
    pub source: Box<str>,
    regex: regex::Regex,
}

/// Deepest nesting of groups and classes.
const MAX_DEPTH: usize = 100;
/// Most memory of a compiled pattern: `\p{L}{1,1000}` is common in schemas.
const MAX_SIZE: usize = 64 << 20;

const CATEGORIES: &str =
    " L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po Z Zs Zl Zp S Sm Sc Sk So C Cc Cf Co Cn ";
const NAME_START: &str = r":A-Z_a-z\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{2FF}\x{370}-\x{37D}\x{37F}-\x{1FFF}\x{200C}-\x{200D}\x{2070}-\x{218F}\x{2C00}-\x{2FEF}\x{3001}-\x{D7FF}\x{F900}-\x{FDCF}\x{FDF0}-\x{FFFD}\x{10000}-\x{EFFFF}";
const NAME_MORE: &str = r"\-.0-9\x{B7}\x{300}-\x{36F}\x{203F}-\x{2040}";

impl Pattern {
    /// Translates and compiles.
    pub fn compile(source: &str) -> Result<Pattern, String> {
        let mut translator = Translator { rest: source, out: String::from(r"\A(?:"), depth: 0 };
        translator.alternatives()?;
        if !translator.rest.is_empty() {
            return Err(format!("`{}` has no `(`", &translator.rest[..1]));
        }
        translator.out.push_str(r")\z");
        let regex =
            regex::RegexBuilder::new(&translator.out).size_limit(MAX_SIZE).build().map_err(|error| {
                match error {
                    regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
                    error => error.to_string().lines().last().unwrap_or_default().to_owned(),
                }
            })?;
        Ok(Pattern { source: source.into(), regex })
    }

    /// Whether the whole of `text` matches.
    pub fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

struct Translator<'a> {
    rest: &'a str,
    out: String,
    depth: usize,
}

type Res<T> = Result<T, String>;

impl Translator<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.rest.starts_with(c);
        if found {
            self.rest = &self.rest[c.len_utf8()..];
        }
        found
    }

    fn enter(&mut self) -> Res<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(format!("it nests deeper than {MAX_DEPTH}")) } else { Ok(()) }
    }

    fn alternatives(&mut self) -> Res<()> {
        self.enter()?;
        while let Some(c) = self.rest.chars().next() {
            match c {
                ')' => break,
                '|' => {
                    self.next();
                    self.out.push('|');
                }
                _ => self.piece()?,
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn piece(&mut self) -> Res<()> {
        match self.next() {
            Some('(') => {
                self.out.push_str("(?:");
                self.alternatives()?;
                if !self.eat(')') {
                    return Err("a `(` is not closed".into());
                }
                self.out.push(')');
            }
            Some('[') => self.class()?,
            Some('.') => self.out.push_str(r"[^\n\r]"),
            Some('\\') => {
                let escape = self.escape()?;
                match escape {
                    Escape::Char(c) => literal(c, &mut self.out),
                    Escape::Set(set) => {
                        let _ = write!(self.out, "[{set}]");
                    }
                }
            }
            Some(c @ ('?' | '*' | '+' | '{' | '}' | ']')) => {
                return Err(format!("`{c}` stands where nothing can be repeated; write `\\{c}`"));
            }
            Some(c) => literal(c, &mut self.out),
            None => {}
        }
        self.quantifier()
    }

    fn quantifier(&mut self) -> Res<()> {
        match self.rest.chars().next() {
            Some(c @ ('?' | '*' | '+')) => {
                self.next();
                self.out.push(c);
            }
            Some('{') => {
                let end = self.rest.find('}').ok_or("a `{` is not closed")?;
                let quantity = &self.rest[1..end];
                let (low, high) = quantity.split_once(',').unwrap_or((quantity, quantity));
                let number = |text: &str| {
                    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u32>().ok()).flatten()
                };
                let least = number(low).ok_or_else(|| format!("`{{{quantity}}}` is not a quantity"))?;
                if high.is_empty() && quantity.contains(',') {
                    let _ = write!(self.out, "{{{least},}}");
                } else {
                    let most = number(high).filter(|&most| most >= least);
                    let most = most.ok_or_else(|| format!("`{{{quantity}}}` is not a quantity"))?;
                    let _ = write!(self.out, "{{{least},{most}}}");
                }
                self.rest = &self.rest[end + 1..];
            }
            _ => return Ok(()),
        }
        // XML Schema does not allow a second quantifier; for the engine it would be a lazy or possessive one.
        match self.rest.chars().next() {
            Some(c @ ('?' | '*' | '+' | '{')) => Err(format!("`{c}` stands where nothing can be repeated")),
            _ => Ok(()),
        }
    }

    /// A character class after its `[`.
    fn class(&mut self) -> Res<()> {
        self.enter()?;
        self.out.push_str("[[");
        if self.eat('^') {
            self.out.push('^');
        }
        let mut empty = true;
        let mut subtracted = false;
        loop {
            if self.rest.starts_with("-[") && !empty {
                self.rest = &self.rest[2..];
                self.out.push_str("]--");
                self.class()?;
                if !self.eat(']') {
                    return Err("a subtraction must be the last part of a class".into());
                }
                subtracted = true;
                break;
            }
            let Some(c) = self.next() else { return Err("a `[` is not closed".into()) };
            let first = match c {
                ']' if empty => return Err("a class is empty".into()),
                ']' => break,
                '[' => return Err("`[` stands in a class; write `\\[`".into()),
                // A hyphen is a literal at the start and at the end.
                '-' if !(empty || self.rest.starts_with(']') || self.rest.starts_with("-[")) => {
                    return Err("`-` stands in a class without a range; write `\\-`".into());
                }
                '\\' => match self.escape()? {
                    Escape::Char(c) => c,
                    Escape::Set(set) => {
                        let _ = write!(self.out, "[{set}]");
                        empty = false;
                        if self.rest.starts_with('-')
                            && !self.rest.starts_with("-]")
                            && !self.rest.starts_with("-[")
                        {
                            return Err("a range begins with a set".into());
                        }
                        continue;
                    }
                },
                c => c,
            };
            empty = false;
            literal(first, &mut self.out);
            let is_range =
                self.rest.starts_with('-') && !self.rest.starts_with("-]") && !self.rest.starts_with("-[");
            if !is_range || c == '-' {
                continue;
            }
            self.next();
            let last = match self.next() {
                Some('\\') => match self.escape()? {
                    Escape::Char(c) => c,
                    Escape::Set(_) => return Err("a range ends with a set".into()),
                },
                Some('[') | None => return Err("a range does not end".into()),
                Some(c) => c,
            };
            if last < first {
                return Err(format!("the range `{first}-{last}` is backwards"));
            }
            self.out.push('-');
            literal(last, &mut self.out);
        }
        if !subtracted {
            self.out.push(']');
        }
        self.out.push(']');
        self.depth -= 1;
        Ok(())
    }

    /// An escape after its backslash.
    fn escape(&mut self) -> Res<Escape> {
        let set = |text: &str| Ok(Escape::Set(text.to_owned()));
        match self.next() {
            Some('n') => Ok(Escape::Char('\n')),
            Some('r') => Ok(Escape::Char('\r')),
            Some('t') => Ok(Escape::Char('\t')),
            Some(
                c @ ('\\' | '|' | '.' | '?' | '*' | '+' | '(' | ')' | '{' | '}' | '-' | '[' | ']' | '^'),
            ) => Ok(Escape::Char(c)),
            Some('s') => set(r" \t\n\r"),
            Some('S') => set(r"^ \t\n\r"),
            Some('d') => set(r"\p{Nd}"),
            Some('D') => set(r"^\p{Nd}"),
            Some('w') => set(r"^\p{P}\p{Z}\p{C}"),
            Some('W') => set(r"\p{P}\p{Z}\p{C}"),
            Some('i') => set(NAME_START),
            Some('I') => Ok(Escape::Set(format!("^{NAME_START}"))),
            Some('c') => Ok(Escape::Set(format!("{NAME_START}{NAME_MORE}"))),
            Some('C') => Ok(Escape::Set(format!("^{NAME_START}{NAME_MORE}"))),
            Some(c @ ('p' | 'P')) => {
                let end = self
                    .rest
                    .find('}')
                    .filter(|_| self.rest.starts_with('{'))
                    .ok_or("`\\p` without `{…}`")?;
                let property = &self.rest[1..end];
                self.rest = &self.rest[end + 1..];
                let negative = if c == 'P' { "^" } else { "" };
                if let Some(block) = property.strip_prefix("Is") {
                    if matches!(block, "HighSurrogates" | "HighPrivateUseSurrogates" | "LowSurrogates") {
                        // Surrogates are no characters.
                        let all = r"\x{0}-\x{10FFFF}";
                        return Ok(Escape::Set(if c == 'P' { all.into() } else { format!("^{all}") }));
                    }
                    let (_, first, last) = BLOCKS
                        .iter()
                        .find(|(name, ..)| *name == block)
                        .ok_or_else(|| format!("there is no Unicode block `{block}`"))?;
                    return Ok(Escape::Set(format!(r"{negative}\x{{{first:X}}}-\x{{{last:X}}}")));
                }
                if property.is_empty()
                    || property.contains(' ')
                    || !CATEGORIES.contains(&format!(" {property} "))
                {
                    return Err(format!("there is no Unicode category `{property}`"));
                }
                Ok(Escape::Set(format!(r"{negative}\p{{{property}}}")))
            }
            Some(c) => Err(format!("`\\{c}` is not an escape")),
            None => Err("it ends with `\\`".into()),
        }
    }
}

enum Escape {
    Char(char),
    /// The content of a class in the syntax of the engine.
    Set(String),
}

/// A literal character, inside and outside of classes.
fn literal(c: char, out: &mut String) {
    match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | ' ' => out.push(c),
        c if c.is_ascii_punctuation() => {
            out.push('\\');
            out.push(c);
        }
        c => {
            let _ = write!(out, r"\x{{{:X}}}", c as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches() {
        for (pattern, good, bad) in [
            ("", vec![""], vec!["a"]),
            (r"[A-Z]{2}-\d{1,4}", vec!["AB-1", "AB-٣"], vec!["AB-", "xAB-1", "AB-1\n"]),
            ("a|b|", vec!["a", "b", ""], vec!["ab"]),
            ("[a-z-[aeiou]]+", vec!["xyz"], vec!["a", "xa", "-"]),
            ("[^a-z-[X]]", vec!["A", "-"], vec!["X", "b"]),
            (r"[\w-[0-5]]", vec!["9", "a"], vec!["0", "-"]),
            ("[-a]|[b-]", vec!["-", "a", "b"], vec!["c"]),
            (r"^a$", vec!["^a$"], vec!["a"]),
            (r"[a&&b]", vec!["&", "a", "b"], vec!["c"]),
            (r"\i\c*", vec!["a:b", "_1", "é"], vec!["1", "-a"]),
            (r"\p{IsBasicLatin}\P{Lu}", vec!["aa", "Aa"], vec!["AA", "éa"]),
            (".", vec!["x", "\t"], vec!["\n", ""]),
            (r"[\p{IsHighSurrogates}a]\P{IsLowSurrogates}", vec!["ab", "a\u{10000}"], vec!["bb", "a"]),
            (r"a{0}b{2}c{1,}", vec!["bbc", "bbcc"], vec!["abbc", "bc"]),
        ] {
            let compiled = Pattern::compile(pattern).unwrap_or_else(|e| panic!("{pattern}: {e}"));
            good.iter().for_each(|text| assert!(compiled.matches(text), "{pattern} {text:?}"));
            bad.iter().for_each(|text| assert!(!compiled.matches(text), "{pattern} {text:?}"));
        }
    }

    #[test]
    fn refused() {
        for bad in [
            "(",
            ")",
            "a)",
            "[",
            "[]",
            "[a",
            "a**",
            "a+?",
            "*",
            "{1}",
            "a{2,1}",
            "a{,2}",
            "a{x}",
            r"\q",
            r"\p{Xx}",
            r"\p{IsNowhere}",
            r"\pL",
            "[z-a]",
            "[a-[b]c]",
            "[[a]",
            r"\",
            r"[\d-z]",
            r"[a-\d]",
            "(?:a)",
            "a{99999999999}",
        ] {
            assert!(Pattern::compile(bad).is_err(), "{bad}");
        }
        assert!(Pattern::compile(&"(".repeat(100_000)).is_err());
    }
}
