//! What Rhino understands and a JavaScript engine of today does not: XML literals, `..`, `::`, `@` and `for each`.
//! They are rewritten, line by line in place, into what the `XML` object of the prelude offers. What cannot be rewritten throws when
//! it runs, and is answered with its place and with what to write instead; a script that cannot be read is refused.
//!
//! | written | becomes |
//! |---|---|
//! | `<a b={x}>{y}</a>` | a tagged template |
//! | `x..a`, `x..*::a`, `x..@id` | `x["..a"]`, `x["..*::a"]`, `x["..@id"]` |
//! | `x.*`, `x.*::a`, `x.@id`, `x.@*` | `x["*"]`, `x["*::a"]`, `x["@id"]`, `x["@*"]` |
//! | `x.ns::a`, `x..ns::a` | `x[XML.qualified(ns, "a", "")]`, … |
//! | `for each (var a in b)` | `for (var a of XML.each(b))` |
//! | `a + <b/>`, `x.a += <b/>` | `XML.joined(a, <b/>)`, `x.a = XML.joined(x.a, <b/>)` |
//! | `x.(…)` | see [`filter`] |

mod filter;

use crate::Reads;
use crate::tokens::{Piece, Token, TokenKind, brackets, markup_pieces, tokens};
use std::ops::Range;

/// What is wrong with a script, and where in its text, in bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub at: usize,
    pub message: String,
    pub help: &'static str,
}

/// A script as the engine can read it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Translated {
    /// `None`: as it is.
    pub code: Option<String>,
    /// What throws when it runs.
    pub refused: Vec<Refused>,
}

/// The script as the engine can read it.
pub(crate) fn translate(text: &str) -> Result<Translated, Refused> {
    let mut translated = translate_xml(text)?;
    if let Some(code) = with_packages(translated.code.as_deref().unwrap_or(text)) {
        translated.code = Some(code);
    }
    Ok(translated)
}

/// The script with `Packages.org.apache.Name` in the place of `org.apache.Name`, which the engines of WSO2 have: `org`, `com`, `edu` and
/// `net` alone are names that scripts give to other things. `None`: it names no class in this way.
fn with_packages(text: &str) -> Option<String> {
    let tokens = tokens(text);
    let (mut out, mut done) = (String::new(), 0);
    for at in 0..tokens.len() {
        if is_root(text, &tokens, at) && class_at(text, &tokens, at).is_some() {
            let start = tokens[at].at.start;
            out.push_str(&text[done..start]);
            out.push_str("Packages.");
            done = start;
        }
    }
    (done > 0 || !out.is_empty()).then(|| out + &text[done..])
}

/// Whether the word at `at` begins the name of a class that is reached without `Packages`, and is no name of the script's own.
fn is_root(text: &str, tokens: &[Token], at: usize) -> bool {
    let word = |at: usize| tokens.get(at).map_or("", |token| &text[token.at.clone()]);
    let member = |at: usize| at > 0 && matches!(word(at - 1), "." | "?.");
    let root = word(at);
    let defines = |at: usize| {
        let before = at.checked_sub(1).map_or("", word);
        word(at) == root
            && !member(at)
            && (matches!(before, "var" | "let" | "const" | "function" | "class" | "(" | "," | "{")
                && word(at + 1) != "."
                || word(at + 1) == "=")
    };
    matches!(root, "org" | "com" | "edu" | "net")
        && !member(at)
        && word(at + 1) == "."
        && !(0..tokens.len()).any(defines)
}

/// The class that the words from `at` on name, with at least two packages before it.
fn class_at(text: &str, tokens: &[Token], at: usize) -> Option<String> {
    let word = |at: usize| tokens.get(at).map_or("", |token| &text[token.at.clone()]);
    let mut end = at;
    while !is_class(word(end)) && word(end + 1) == "." {
        end += 2;
    }
    let names: Vec<&str> = (at..=end).step_by(2).map(word).collect();
    (is_class(word(end)) && names.len() > 2).then(|| names.join("."))
}

fn is_class(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
}

/// As [`translate`], without what begins with the name of a package.
fn translate_xml(text: &str) -> Result<Translated, Refused> {
    let Some(joined) = joined(text) else { return translate_joined(text) };
    let back = |refused: Refused| Refused { at: same_place(&joined, refused.at, text), ..refused };
    let translated = translate_joined(&joined).map_err(back)?;
    let refused = translated.refused.into_iter().map(back).collect();
    Ok(Translated { code: Some(translated.code.unwrap_or_else(|| joined.clone())), refused })
}

/// The place in `text` of one in `changed`, which has the same lines: the same line and, as far as it goes, the same column.
fn same_place(changed: &str, at: usize, text: &str) -> usize {
    let before = &changed[..at];
    let column = at - before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count();
    let start = match line.checked_sub(1) {
        None => 0,
        Some(nth) => text.match_indices('\n').nth(nth).map_or(text.len(), |(newline, _)| newline + 1),
    };
    let length = text[start..].find('\n').unwrap_or(text.len() - start);
    let mut place = start + column.min(length);
    while !text.is_char_boundary(place) {
        place -= 1;
    }
    place
}

/// As [`translate_xml`], where no XML is joined by `+` any more.
fn translate_joined(text: &str) -> Result<Translated, Refused> {
    let tokens = tokens(text);
    let mut translation = Translation::of(text, &tokens, 0);
    translation.run()?;
    let refused = translation.refused;
    if translation.done == 0 {
        return Ok(Translated { code: None, refused });
    }
    translation.out.push_str(&text[translation.done..]);
    Ok(Translated { code: Some(translation.out), refused })
}

/// Whether the script may change what all scripts share, so that it needs a world of its own for each message: it does
/// something with `prototype` other than reading a method of a built-in one, or extending a function of its own.
pub(crate) fn changes_the_world(text: &str) -> bool {
    let tokens = tokens(text);
    let word = |at: usize| tokens.get(at).map_or("", |token| &text[token.at.clone()]);
    let is_defined_here = |name: &str| {
        (0..tokens.len()).any(|at| match word(at) {
            "function" | "class" => word(at + 1) == name,
            defined => defined == name && word(at + 1) == "=" && matches!(word(at + 2), "function" | "class"),
        })
    };
    let assigns = |mark: &str| {
        matches!(mark, "++" | "--" | "=")
            || (mark.ends_with('=') && !matches!(mark, "==" | "===" | "!=" | "!==" | "<=" | ">="))
    };
    (0..tokens.len()).filter(|&at| tokens[at].kind == TokenKind::Word).any(|at| match word(at) {
        "__proto__" | "setPrototypeOf" | "getPrototypeOf" => true,
        "prototype" if at < 2 || word(at - 1) != "." => true,
        "prototype" if is_defined_here(word(at - 2)) => false,
        "prototype" => {
            let reads = word(at + 1) == "." && !assigns(word(at + 3));
            !reads || (at > 2 && word(at - 3) == "delete")
        }
        _ => false,
    })
}

/// What the script reads of the message.
pub(crate) fn reads(text: &str) -> Reads {
    let of = |token: &Token| match &text[token.at.clone()] {
        "setPayloadJSON" | "setJsonText" => Reads::Replaces,
        "getPayloadXML" | "setPayloadXML" | "getPayloadJSON" | "getJsonText" | "getPayloadText"
        | "getEnvelope" | "getEnvelopeXML" | "setEnvelope" | "addHeader" => Reads::Payload,
        // What is in a text may read it.
        "eval" | "Function" => Reads::Payload,
        _ => Reads::Headers,
    };
    tokens(text).iter().map(of).max().unwrap_or(Reads::Headers)
}

/// Whether the script takes no longer than its message is large: each of its statements runs once, and no function of the
/// language that it names goes on for longer than its input is long.
pub(crate) fn is_brief(text: &str) -> bool {
    const LONG: &[&str] = &[
        "for",
        "while",
        "do",
        "class",
        "yield",
        "await",
        "async",
        "eval",
        "Function",
        "RegExp",
        "Array",
        "Promise",
        "repeat",
        "fill",
        "padStart",
        "padEnd",
        "sort",
        "match",
        "matchAll",
        "search",
        "call",
        "apply",
        "from",
        "callee",
        "BigInt",
        "BigInteger",
        "BigDecimal",
        "DecimalFormat",
        "Pattern",
        "matches",
        "replaceAll",
        "replaceFirst",
        "getXpathResult",
        "AXIOMXPath",
    ];
    let tokens = tokens(text);
    let word = |at: usize| tokens.get(at).map_or("", |token| &text[token.at.clone()]);
    let functions: Vec<&str> = (1..tokens.len()).filter(|&at| word(at - 1) == "function").map(word).collect();
    (0..tokens.len()).all(|at| match (tokens[at].kind, word(at)) {
        (TokenKind::Word, _) if at > 0 && word(at - 1) == "function" => true,
        // The methods of a text of Java take regular expressions.
        (TokenKind::Word, "String") if at > 1 && word(at - 2) == "lang" => false,
        (TokenKind::Word, name) => !LONG.contains(&name) && !functions.contains(&name),
        // A function without a name, or a filter, which looks at each item.
        (TokenKind::Mark, "(") if at > 0 && matches!(word(at - 1), "function" | ".") => false,
        (TokenKind::Mark, "{") if at > 0 && word(at - 1) == ")" => {
            // A statement or a function that nobody calls, but no method of an object.
            let mut depth = 0;
            let open = (0..at).rev().find(|&at| {
                match word(at) {
                    ")" => depth += 1,
                    "(" => depth -= 1,
                    _ => {}
                }
                depth == 0
            });
            let open = open.unwrap_or(0);
            let (head, before) = (word(open.saturating_sub(1)), word(open.saturating_sub(2)));
            open > 0
                && (matches!(head, "if" | "switch" | "catch" | "with") || open > 1 && before == "function")
        }
        (TokenKind::Mark, mark) => mark != "=>",
        // A regular expression, a template with code in it, a BigInt, or the name of a class.
        (TokenKind::Literal, literal) => {
            let is_big = literal.ends_with('n') && literal.starts_with(|c: char| c.is_ascii_digit());
            let is_class = literal.trim_matches(['"', '\'', '`']).starts_with("java.");
            !(literal.starts_with('/')
                || literal.starts_with('`') && literal.contains("${")
                || is_big
                || is_class)
        }
        (TokenKind::Markup, markup) => !markup.contains('{'),
    })
}

/// Whether it names `sleep`, as a word or as the key of a member.
pub(crate) fn names_sleep(text: &str) -> bool {
    tokens(text).iter().any(|token| match token.kind {
        TokenKind::Word => &text[token.at.clone()] == "sleep",
        TokenKind::Literal => text[token.at.clone()].trim_matches(['"', '\'', '`']) == "sleep",
        TokenKind::Markup => text[token.at.clone()].contains("sleep"),
        TokenKind::Mark => false,
    })
}

/// Whether the last statement is a call of a setter of `mc`, whose value is not used.
pub(crate) fn ends_with_setter(text: &str) -> bool {
    let tokens = tokens(text);
    let word = |at: usize| tokens.get(at).map_or("", |token| &text[token.at.clone()]);
    let mut end = tokens.len();
    while end > 0 && word(end - 1) == ";" {
        end -= 1;
    }
    if end == 0 || word(end - 1) != ")" {
        return false;
    }
    let (mut at, mut depth) = (end, 0usize);
    while at > 0 {
        at -= 1;
        match word(at) {
            ")" | "]" | "}" => depth += 1,
            "(" | "[" | "{" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    // `mc . setX (`
    let setter = at >= 3
        && ["set", "add", "remove"].iter().any(|verb| word(at - 1).starts_with(verb))
        && word(at - 2) == "."
        && word(at - 3) == "mc";
    if !setter {
        return false;
    }
    let start = at - 3;
    start == 0
        || word(start - 1) == ";"
        || (word(start - 1) == "}" && tokens[start].after_break)
        || (tokens[start].after_break
            && (word(start - 1) == ")"
                || tokens[start - 1].kind == TokenKind::Literal
                || word(start - 1) == "]"))
}

/// The classes of Java that a script names and that are not here, with the places of the names; of packages that are imported
/// and have no class here `PACKAGE.*`.
pub(crate) fn missing_classes(text: &str) -> Vec<(usize, String)> {
    let tokens = tokens(text);
    let word = |at: usize| tokens.get(at).map_or("", |token| &text[token.at.clone()]);
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut note = |at: usize, name: String, reached: bool| {
        let quoted = format!("'{name}'");
        let is_here = reached && crate::engine::JAVA.contains(&quoted);
        if !is_here && !found.iter().any(|(_, other)| *other == name) {
            found.push((at, name));
        }
    };
    for (at, token) in tokens.iter().enumerate() {
        let member = at > 0 && matches!(word(at - 1), "." | "?.");
        match word(at) {
            "Packages" | "java" | "javax" | "org" | "com" | "edu" | "net"
                if !member && word(at + 1) == "." =>
            {
                let start = if word(at) == "Packages" { at + 2 } else { at };
                let mut end = start;
                while !is_class(word(end)) && word(end + 1) == "." {
                    end += 2;
                }
                let names: Vec<&str> = (start..=end).step_by(2).map(word).collect();
                let imported = at > 1 && word(at - 1) == "(" && word(at - 2) == "importPackage";
                if imported && !is_class(word(end)) {
                    let name = names.join(".");
                    let quoted = format!("'{name}.");
                    if !crate::engine::JAVA.split(&quoted).skip(1).any(is_class) {
                        note(token.at.start, format!("{name}.*"), false);
                    }
                // `org.total` may be anything.
                } else if is_class(word(end)) && (names.len() > 2 || start > at) {
                    let reached = start > at || word(at).starts_with("java") || is_root(text, &tokens, at);
                    note(token.at.start, names.join("."), reached);
                }
            }
            "Java" if !member && word(at + 1) == "." && word(at + 2) == "type" && word(at + 3) == "(" => {
                let name = word(at + 4).trim_matches(['\'', '"']);
                if name.contains('.') && !name.ends_with("[]") {
                    note(token.at.start, name.to_owned(), true);
                }
            }
            _ => {}
        }
    }
    found
}

/// Most sums of XML that are rewritten in one script; further ones are refused.
const SUMS: usize = 200;

/// The script with `XML.joined(a, b)` in the place of `a + b` where one of them is an XML literal; `None`: it has none.
fn joined(text: &str) -> Option<String> {
    // Most scripts are not read once more for this.
    if !text.contains('<') || !text.contains('+') {
        return None;
    }
    let mut changed: Option<String> = None;
    for _ in 0..SUMS {
        let text = changed.as_deref().unwrap_or(text);
        let Some(next) = next_joined(text) else { break };
        changed = Some(next);
    }
    changed
}

/// The script with its first sum of XML written as a call.
fn next_joined(text: &str) -> Option<String> {
    let tokens = tokens(text);
    let operands = Operands { text, tokens: &tokens, brackets: brackets(text, &tokens) };
    let is_markup = |at: usize| tokens.get(at).is_some_and(|token| token.kind == TokenKind::Markup);
    (1..tokens.len()).find_map(|at| {
        let assigns = operands.word(at) == "+=";
        if !(assigns && is_markup(at + 1)
            || operands.word(at) == "+" && (is_markup(at - 1) || is_markup(at + 1)))
        {
            return None;
        }
        let mut first = operands.begin(at - 1)?;
        let mut last = operands.end(at + 1)?;
        // What was added before belongs to the left side, and all that follows to an assignment.
        while !assigns && first > 1 && operands.word(first - 1) == "+" {
            first = operands.begin(first - 2)?;
        }
        while assigns && operands.word(last + 1) == "+" {
            last = operands.end(last + 2)?;
        }
        let before = if first == 0 { "" } else { operands.word(first - 1) };
        if matches!(before, "-" | "*" | "/" | "%" | "!" | "~" | "++" | "--" | "." | "..") {
            return None;
        }
        let left = &text[tokens[first].at.start..tokens[at - 1].at.end];
        let right = &text[tokens[at + 1].at.start..tokens[last].at.end];
        let begin = if assigns { format!("{left} = ") } else { String::new() };
        let (head, tail) = (&text[..tokens[first].at.start], &text[tokens[last].at.end..]);
        // The lines stay as they are.
        let between = &text[tokens[at - 1].at.end..tokens[at + 1].at.start];
        let breaks: String = between.chars().filter(|c| *c == '\n').collect();
        Some(format!("{head}{begin}XML.joined({left},{breaks} {right}){tail}"))
    })
}

/// Where operands begin and end.
struct Operands<'a> {
    text: &'a str,
    tokens: &'a [Token],
    /// See [`brackets`].
    brackets: Vec<Option<usize>>,
}

impl<'a> Operands<'a> {
    fn word(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| &self.text[token.at.clone()])
    }

    fn is_primary(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind != TokenKind::Mark) || self.word(at) == "*"
    }

    /// The first token of the operand that ends with a token: `x.a[1].b()`.
    fn begin(&self, mut at: usize) -> Option<usize> {
        loop {
            let bracketed = matches!(self.word(at), ")" | "]");
            if bracketed {
                at = self.brackets[at]?;
            } else if !self.is_primary(at) {
                return None;
            }
            let Some(before) = at.checked_sub(1) else { return Some(at) };
            match self.word(before) {
                "." | ".." | "::" | "@" | "?." => at = before.checked_sub(1)?,
                ")" | "]" if bracketed => at = before,
                "new" => return Some(before),
                "return" | "case" | "in" | "of" | "else" | "do" | "typeof" | "void" | "delete" | "throw" => {
                    return Some(at);
                }
                _ if bracketed && self.tokens[before].kind == TokenKind::Word => at = before,
                _ => return Some(at),
            }
            // `x.@a`, `x..*::a`
            while matches!(self.word(at), "." | ".." | "::" | "@") {
                at = at.checked_sub(1)?;
            }
        }
    }

    /// The last token of the operand that begins with a token.
    fn end(&self, mut at: usize) -> Option<usize> {
        if self.word(at) == "new" {
            at += 1;
        }
        if !self.is_primary(at) && self.word(at) != "(" {
            return None;
        }
        if self.word(at) == "(" {
            at = self.brackets[at]?;
        }
        loop {
            match self.word(at + 1) {
                "." | ".." | "::" | "@" | "?." => {
                    at += 2;
                    while matches!(self.word(at), "@" | "::") {
                        at += 1;
                    }
                    if self.word(at) == "(" {
                        at = self.brackets[at]?;
                    }
                }
                "(" | "[" => at = self.brackets[at + 1]?,
                _ => return (at < self.tokens.len()).then_some(at),
            }
        }
    }
}

struct Translation<'a> {
    text: &'a str,
    tokens: &'a [Token],
    out: String,
    /// Up to here the text is in `out`.
    done: usize,
    depth: usize,
    /// See [`brackets`].
    brackets: Vec<Option<usize>>,
    /// The closing brackets of the filters that are open.
    filters: Vec<usize>,
    /// What throws when it runs.
    refused: Vec<Refused>,
}

impl<'a> Translation<'a> {
    fn of(text: &'a str, tokens: &'a [Token], depth: usize) -> Translation<'a> {
        let (brackets, filters, refused) = (brackets(text, tokens), Vec::new(), Vec::new());
        Translation { text, tokens, out: String::new(), done: 0, depth, brackets, filters, refused }
    }

    fn word(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| &self.text[token.at.clone()])
    }

    fn run(&mut self) -> Result<(), Refused> {
        let mut closing: Vec<usize> = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            let token = &self.tokens[at];
            if closing.last() == Some(&at) {
                closing.pop();
                self.copy_to(token.at.start);
                self.out.push(')');
            }
            if self.filters.last() == Some(&at) {
                self.end_filter();
                at += 1;
                continue;
            }
            if token.kind == TokenKind::Markup {
                self.markup(at)?;
                at += 1;
                continue;
            }
            if !self.filters.is_empty()
                && let Some(next) = self.name_in_filter(at)?
            {
                at = next;
                continue;
            }
            match self.word(at) {
                "." if at > 0 && self.word(at + 1) == "(" => {
                    at = self.filter(at)?;
                    continue;
                }
                "default"
                    if (self.word(at + 1), self.word(at + 2), self.word(at + 3))
                        == ("xml", "namespace", "=") =>
                {
                    self.refuse(
                        at..at + 4,
                        at + 1,
                        "`default xml namespace` is not executable here".to_owned(),
                        "write `x.*::name` for a name in any namespace, or `x.ns::name` with `var ns = new Namespace(\"uri\")`",
                    );
                    self.out.push(',');
                    at += 4;
                    continue;
                }
                mark @ ("+" | "+=")
                    if self.tokens.get(at + 1).is_some_and(|next| next.kind == TokenKind::Markup) =>
                {
                    self.refuse(
                        at + 1..at + 2,
                        at,
                        format!("`{mark}` cannot join XML here"),
                        "write `x.appendChild(<a/>)`, or one literal with all its parts",
                    );
                    at += 2;
                    continue;
                }
                mark @ (".." | ".") if at > 0 => {
                    if let Some(next) = self.member(at, mark)? {
                        at = next;
                        continue;
                    }
                }
                "for" if self.word(at + 1) == "each" && self.word(at + 2) == "(" => {
                    let (of, close) = self.loop_parts(at + 2).ok_or_else(|| Refused {
                        at: token.at.start,
                        message: "this `for each` has no `in`".into(),
                        help: "write `for each (var x in list) { … }`",
                    })?;
                    self.replace(at + 1, "");
                    self.copy_to(self.tokens[of].at.start);
                    self.out.push_str("of XML.each(");
                    self.done = self.tokens[of].at.end;
                    closing.push(close);
                    at = of + 1;
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        Ok(())
    }

    /// The `in` and the closing bracket of a loop head, from its opening bracket.
    fn loop_parts(&self, open: usize) -> Option<(usize, usize)> {
        let (mut depth, mut of) = (0usize, None);
        for at in open..self.tokens.len() {
            match self.word(at) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => {
                    depth -= 1;
                    if depth == 0 {
                        return Some((of?, at));
                    }
                }
                "in" if depth == 1 && of.is_none() => of = Some(at),
                _ => {}
            }
        }
        None
    }

    fn copy_to(&mut self, end: usize) {
        self.out.push_str(&self.text[self.done..end]);
        self.done = end;
    }

    fn replace(&mut self, at: usize, by: &str) {
        let token = self.tokens[at].at.clone();
        self.copy_to(token.start);
        self.out.push_str(by);
        self.done = token.end;
    }

    /// Puts a call that throws in the place of tokens, and notes why; `at`: the token that cannot be had.
    fn refuse(&mut self, instead_of: Range<usize>, at: usize, message: String, help: &'static str) {
        self.copy_to(self.tokens[instead_of.start].at.start);
        // Messages have neither quotes nor backslashes.
        self.out.push_str(&format!("XML.refused(\"{message}\")"));
        let last = instead_of.end.saturating_sub(1).min(self.tokens.len() - 1);
        // The lines stay as they are.
        let left_out = &self.text[self.done..self.tokens[last].at.end];
        self.out.extend(left_out.chars().filter(|c| *c == '\n'));
        self.done = self.tokens[last].at.end;
        self.refused.push(Refused { at: self.tokens[at].at.start, message, help });
    }

    /// A member that only E4X knows, from its dots on; answers the token behind it.
    fn member(&mut self, dots: usize, mark: &str) -> Result<Option<usize>, Refused> {
        let Some((key, last)) = self.selector(dots + 1, mark)? else { return Ok(None) };
        self.copy_to(self.tokens[dots].at.start);
        self.out.push_str(&key);
        self.done = self.tokens[last].at.end;
        Ok(Some(last + 1))
    }

    /// What only E4X knows behind `mark`, as a key of the engine, with the last token of it.
    fn selector(&self, start: usize, mark: &str) -> Result<Option<(String, usize)>, Refused> {
        let mut at = start;
        let attribute = self.word(at) == "@";
        if attribute {
            at += 1;
        }
        let prefix = format!("{}{}", if mark == ".." { ".." } else { "" }, if attribute { "@" } else { "" });
        if attribute && self.word(at) == "[" {
            // x.@["name"]
            return Ok(Some(("[\"@\" + ".to_owned(), at)));
        }
        let is_name = |at: usize| {
            self.word(at) == "*" || self.tokens.get(at).is_some_and(|token| token.kind == TokenKind::Word)
        };
        let qualified = self.word(at + 1) == "::";
        let special = mark == ".." || attribute || qualified || self.word(at) == "*";
        if !special || !is_name(at) || (qualified && !is_name(at + 2)) {
            if mark == ".." || attribute || qualified {
                return Err(Refused {
                    at: self.tokens[start.saturating_sub(1)].at.start,
                    message: format!("`{}{}` is not understood here", mark, self.word(start)),
                    help: "write `x.name`, `x..name`, `x.*::name`, `x..*::name`, `x.@name` or `x.ns::name`",
                });
            }
            return Ok(None);
        }
        let last = if qualified { at + 2 } else { at };
        let key = match (qualified, self.word(at)) {
            (true, "*") => format!("[\"{prefix}*::{}\"]", self.word(last)),
            (true, namespace) => {
                format!("[XML.qualified({namespace}, \"{}\", \"{prefix}\")]", self.word(last))
            }
            (false, name) => format!("[\"{prefix}{name}\"]"),
        };
        Ok(Some((key, last)))
    }

    /// An XML literal as a tagged template.
    fn markup(&mut self, at: usize) -> Result<(), Refused> {
        let token = self.tokens[at].at.clone();
        let literal = &self.text[token.clone()];
        let refused = |message: &str, help| Refused { at: token.start, message: message.to_owned(), help };
        if self.depth > 32 {
            return Err(refused("XML literals are nested too deep", "build the inner ones first"));
        }
        let Some((pieces, _)) = markup_pieces(literal, self.depth) else {
            return Err(refused("this XML literal does not end", "every element needs its end tag"));
        };
        self.copy_to(token.start);
        self.out.push_str("XML.literal`");
        for piece in pieces {
            match piece {
                Piece::Text(range) => {
                    for c in literal[range].chars() {
                        if matches!(c, '`' | '\\' | '$') {
                            self.out.push('\\');
                        }
                        self.out.push(c);
                    }
                }
                Piece::Expression(range) => {
                    let inner = &literal[range.clone()];
                    let tokens = tokens(inner);
                    let mut nested = Translation::of(inner, &tokens, self.depth + 1);
                    let moved =
                        |wrong: Refused| Refused { at: token.start + range.start + wrong.at, ..wrong };
                    nested.run().map_err(moved)?;
                    nested.copy_to(inner.len());
                    self.refused.extend(nested.refused.into_iter().map(moved));
                    self.out.push_str("${");
                    self.out.push_str(&nested.out);
                    self.out.push('}');
                }
            }
        }
        self.out.push('`');
        self.done = token.end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_built_in_objects_needs_a_world_of_its_own() {
        for (text, changes) in [
            ("var a = 1;", false),
            ("String.prototype.x = 1;", true),
            ("Array.prototype['x'] = 1;", true),
            ("Array.prototype.x += 1;", true),
            ("Array.prototype.x++;", true),
            ("delete Array.prototype.x;", true),
            ("f(Array.prototype);", true),
            ("var p = Object.prototype;", true),
            ("a['prototype']", false),
            ("o.__proto__ = p;", true),
            ("Object.setPrototypeOf(a, b);", true),
            ("var {prototype} = String;", true),
            ("Array.prototype.slice.call(arguments);", false),
            ("if (Array.prototype.slice == null) {}", false),
            ("function P() {} P.prototype.f = 1; P.prototype = {};", false),
            ("class P {} P.prototype.f = 1;", false),
            ("var P = function () {}; P.prototype.f = 1;", false),
            ("function P() {} P.prototype = Object.create(Q.prototype);", true),
        ] {
            assert_eq!(changes_the_world(text), changes, "{text}");
        }
    }

    #[test]
    fn brief_scripts_are_known() {
        for (text, brief) in [
            ("mc.setProperty('a', mc.getPayloadXML()..b.toString())", true),
            (
                "function mediate(mc) { if (mc.getProperty('a') == 'x') { mc.setProperty('b', 1 / 2); } return true; }",
                true,
            ),
            ("var f = function () { f(); }; f()", false),
            ("function f() { f(); } f()", false),
            ("function f() {} x.map(f)", false),
            ("while (true) {}", false),
            ("a.map(x => x)", false),
            ("/(a+)+$/.test(x)", false),
            ("x.match('(a+)+$')", false),
            ("`${x}`", false),
            ("'for while'", true),
            ("'x'.repeat(1e8)", false),
            ("var o = {f(n) { if (n > 0) { o.f(n - 1); o.f(n - 1) } }}; o.f(40)", false),
            ("var o = {get x() { return o.x }}; o.x", false),
            ("var o = {['f'](n) { o.f(n) }}; o.f(1)", false),
            ("var o = {'f'() { o.f() }}; o.f()", false),
            ("function mediate(mc) { arguments.callee(mc); arguments.callee(mc) }", false),
            ("if (f(a, (b))) { c() } switch (d) { case 1: { e() } } try { g() } catch (h) { i() }", true),
            ("var o = {a: 1, b: {c: (2)}}", true),
            ("new java.math.BigInteger(x).modPow(y, z)", false),
            ("java.util.regex.Pattern.compile(p)", false),
            ("new java.lang.String(x).split(y)", false),
            ("Java.type('java.math.BigInteger').ONE.pow(x)", false),
            ("x.matches(y)", false),
            ("3n ** 4n", false),
            ("mc.getXpathResult('//a')", false),
            ("java.lang.System.currentTimeMillis(); java.util.UUID.randomUUID()", true),
        ] {
            assert_eq!(is_brief(text), brief, "{text}");
        }
    }

    #[test]
    fn who_sleeps_says_so() {
        for (text, sleeps) in [
            ("java.lang.Thread.sleep(1)", true),
            ("java.lang.Thread['sleep'](1)", true),
            ("mc.setProperty('a', 'sleepless')", false),
            ("mc.setProperty('a', 'they sleep')", false),
            ("// sleep\nvar asleep = 1", false),
        ] {
            assert_eq!(names_sleep(text), sleeps, "{text}");
        }
    }

    #[test]
    fn e4x_becomes_javascript() {
        for (text, expected) in [
            ("mc.getPayloadXML()..*::symbol.toString()", "mc.getPayloadXML()[\"..*::symbol\"].toString()"),
            ("x..a[0].@id = 3", "x[\"..a\"][0][\"@id\"] = 3"),
            ("x.*::a.*", "x[\"*::a\"][\"*\"]"),
            ("x.@['i' + n]", "x[\"@\" + 'i' + n]"),
            (
                "x.ns::a + x..ns::b.@ns::c",
                "x[XML.qualified(ns, \"a\", \"\")] + x[XML.qualified(ns, \"b\", \"..\")][XML.qualified(ns, \"c\", \"@\")]",
            ),
            (
                "f(<a b={c}>{d..e}\n<f g=\"`$\"/></a>)",
                "f(XML.literal`<a b=${c}>${d[\"..e\"]}\n<f g=\"\\`\\$\"/></a>`)",
            ),
            ("v = <a>{ <b>{c}</b> }</a>;", "v = XML.literal`<a>${ XML.literal`<b>${c}</b>` }</a>`;"),
            (
                "for each (var i in x..item) { y += i; }",
                "for  (var i of XML.each( x[\"..item\"])) { y += i; }",
            ),
        ] {
            assert_eq!(translate(text).unwrap().code.as_deref(), Some(expected), "{text}");
        }
        for text in [
            "a < b && c > d",
            "var a = {'..': 1}; [...a]",
            "x.y * 2 /* x..y */",
            "1..toString()",
            "a ? b::c : d",
        ] {
            let _ = translate(text);
        }
        for text in ["a < b && c > d", "x = [...a]; // x..y", "1..toString()", "org.total = java.x"] {
            assert_eq!(translate(text), Ok(Translated::default()), "{text}");
        }
    }

    #[test]
    fn roots_of_packages_are_found_unless_the_script_has_the_name() {
        for (text, expected) in [
            ("org.apache.A.b(com.x.y.C)", Some("Packages.org.apache.A.b(Packages.com.x.y.C)")),
            ("new org.json.JSONObject()", Some("new Packages.org.json.JSONObject()")),
            ("var org = mc.x; org.apache.A.b()", None),
            ("org = mc.x; org.apache.A.b()", None),
            ("function f(org) { return org.apache.A }", None),
            ("mc.org.apache.A; org.total; com.Name", None),
        ] {
            assert_eq!(translate(text).expect(text).code.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn classes_that_are_not_here_are_named() {
        for (text, expected) in [
            ("java.util.UUID.randomUUID(); new Packages.java.text.SimpleDateFormat('y')", vec![]),
            ("new java.io.File('a'); java.io.File.separator", vec![(4, "java.io.File")]),
            ("Java.type('java.sql.Driver'); Java.type(\"java.lang.Thread\")", vec![(0, "java.sql.Driver")]),
            (
                "Packages.org.apache.commons.codec.binary.Base64; org.apache.commons.codec.binary.Base64",
                vec![],
            ),
            (
                "var org = {}; org.apache.commons.codec.binary.Base64",
                vec![(14, "org.apache.commons.codec.binary.Base64")],
            ),
            (
                "importPackage(Packages.com.acme); new org.json.JSONObject()",
                vec![(14, "com.acme.*"), (38, "org.json.JSONObject")],
            ),
            ("importPackage(java.util); importPackage(Packages.java.text);", vec![]),
            ("importPackage(java.nio)", vec![(14, "java.nio.*")]),
            ("org.total = com.Name; x.java.io.File; throw new java.lang.RuntimeException('a')", vec![]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(at, name)| (at, name.to_owned())).collect();
            assert_eq!(missing_classes(text), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_done_is_told_with_its_place() {
        for (text, at, part, code) in [
            (
                "a - b + <c/>; d..e",
                6,
                "join",
                "a - b + XML.refused(\"`+` cannot join XML here\"); d[\"..e\"]",
            ),
            (
                "default xml namespace = 'u';",
                8,
                "default xml namespace",
                "XML.refused(\"`default xml namespace` is not executable here\"), 'u';",
            ),
            (
                "x.(f(function (a) { return a; }))\n.b",
                5,
                "function",
                "x[\"()\"](() => XML.refused(\"a function or an object inside of a filter `x.(…)` is not executable here\"))\n.b",
            ),
            // Sums that are rewritten move what stands behind them.
            ("var x = <a/> + <b/>; default xml namespace = 'u';", 40, "default", ""),
            ("var x = <a/>\n + <b/>;\nx = <é/> + <b/> - <c/> + <d/>", 52, "join", ""),
        ] {
            let translated = translate(text).unwrap();
            let [refused] = &*translated.refused else { panic!("{text}: {translated:?}") };
            assert!(refused.at == at && refused.message.contains(part), "{text}: {refused:?}");
            assert!(code.is_empty() || translated.code.as_deref() == Some(code), "{text}: {translated:?}");
        }
        for (text, at, part) in
            [("x..3", 1, "not understood"), ("var x = <a/> + <b/>; x..3", 25, "not understood")]
        {
            let refused = translate(text).unwrap_err();
            assert!(refused.at == at && refused.message.contains(part), "{text}: {refused:?}");
        }
    }

    #[test]
    fn a_setter_at_the_end_is_seen() {
        for (text, is) in [
            ("mc.setProperty('a', 1)", true),
            ("var a = 1; mc.setPayloadJSON({a: f(1)});\n", true),
            ("if (a) { b() }\nmc.setProperty('a', 1);", true),
            ("a = 1\nmc.setProperty('a', 1);", true),
            ("x == mc.setProperty('a', 1);", false),
            ("a &&\nmc.setProperty('a', 1);", false),
            ("if (a) { mc.setProperty('a', 1); }", false),
            ("mc.getProperty('a')", false),
            ("false", false),
            ("", false),
            (")", false),
        ] {
            assert_eq!(ends_with_setter(text), is, "{text}");
        }
    }
}
