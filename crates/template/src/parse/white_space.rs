//! The white space that tags leave: what FreeMarker strips of lines that consist of tags, what it leaves out between tags that
//! write nothing, and what `<#t>`, `<#lt>`, `<#rt>` and `<#nt>` say of their lines.

use super::{Placed, Tag, Token};

/// Strips the texts of a template. `strip`: also where no `<#t>` or the like asks for it.
pub(super) fn strip_white_space(tokens: &mut Vec<Placed>, strip: bool) {
    // What stands before the first case of a switch is no part of it.
    let mut behind_switch = false;
    tokens.retain(|placed| {
        let before =
            std::mem::replace(&mut behind_switch, matches!(placed.token, Token::Open(Tag::Switch(_))));
        !(before && matches!(&placed.token, Token::Text(text) if is_blank(text)))
    });
    let lines = tokens.iter().map(Lines::of).collect();
    let gone = vec![false; tokens.len()];
    let mut stripping = Stripping { tokens, lines, gone };
    // Where the open blocks begin.
    let mut blocks = Vec::new();
    for at in 0..stripping.tokens.len() {
        match &stripping.tokens[at].token {
            Token::Text(_) => stripping.text(at, strip),
            Token::Open(tag) if strip && tag.is_block() => blocks.push(at),
            Token::Open(tag) if strip && tag.is_branch() => {
                stripping.close(&mut blocks, at, false);
                blocks.push(at);
            }
            Token::Close(name) if strip => {
                let is_sep = name == "sep";
                stripping.close(&mut blocks, at, is_sep);
            }
            _ => {}
        }
    }
    if strip && stripping.tokens.len() > 1 {
        stripping.leave_out(0, stripping.tokens.len());
    }
    let mut gone = stripping.gone.into_iter();
    tokens.retain(|_| !gone.next().unwrap_or(false));
}

/// The lines on which a token begins and ends, and whether it begins at their start.
struct Lines {
    first: u32,
    last: u32,
    at_start: bool,
}

impl Lines {
    fn of(placed: &Placed) -> Lines {
        Lines { first: placed.place.line, last: placed.end, at_start: placed.place.column == 1 }
    }
}

struct Stripping<'t> {
    tokens: &'t mut [Placed],
    lines: Vec<Lines>,
    /// What a block that is closed has left out.
    gone: Vec<bool>,
}

impl Stripping<'_> {
    fn text(&mut self, at: usize, strip: bool) {
        let left = self.trim_left(at);
        let right = self.trim_right(at);
        // The first text of a template stays as it is.
        if !strip || at == 0 {
            return;
        }
        let back = if left { 0 } else { self.end_to_strip(at) };
        let front = if right { 0 } else { self.front_to_strip(at) };
        if let Token::Text(text) = &mut self.tokens[at].token {
            let end = (text.len() - back).max(front);
            *text = text[front..end].to_owned();
        }
        if front > 0 {
            self.next_line(at);
        }
    }

    /// The first line of a text is gone.
    fn next_line(&mut self, at: usize) {
        self.lines[at].first += 1;
        self.lines[at].at_start = true;
    }

    /// Closes the innermost of the open blocks. A `<#sep>` without an end closes with what it stands in.
    fn close(&mut self, blocks: &mut Vec<usize>, end: usize, is_sep: bool) {
        while let Some(begin) = blocks.pop() {
            self.leave_out(begin + 1, end);
            if is_sep || !matches!(self.tokens[begin].token, Token::Open(Tag::Sep)) {
                break;
            }
        }
    }

    /// Leaves out what a block has no use for once it is closed.
    fn leave_out(&mut self, from: usize, end: usize) {
        for at in from..end {
            self.gone[at] |= self.is_ignorable(at) || matches!(self.tokens[at].token, Token::Trim(_));
        }
    }

    /// The text of a token; empty where it is another one.
    fn text_at(&self, at: usize) -> &str {
        match &self.tokens[at].token {
            Token::Text(text) => text,
            _ => "",
        }
    }

    /// Whether a text is blank between tags that write nothing, or between them and the beginning or end of the template.
    fn is_ignorable(&self, at: usize) -> bool {
        let Token::Text(text) = &self.tokens[at].token else { return false };
        if text.is_empty() {
            return true;
        }
        let silent =
            |token: &Token| matches!(token, Token::Nothing | Token::Open(Tag::Assign(..) | Tag::Setting(..)));
        let before = (0..at).rev().find(|before| !self.gone[*before]);
        let before = before.is_none_or(|before| match &self.tokens[before].token {
            Token::Close(name) => matches!(name.as_str(), "macro" | "function"),
            token => silent(token),
        });
        let behind = self.tokens.get(at + 1).is_none_or(|behind| {
            silent(&behind.token) || matches!(behind.token, Token::Open(Tag::Macro { .. }))
        });
        is_blank(text) && before && behind
    }

    /// Whether a token is something on the line that it ends with (`from_left`: that it begins with).
    fn stands_on_line(&self, at: usize, from_left: bool) -> bool {
        match &self.tokens[at].token {
            Token::Output(_) | Token::Number(..) => true,
            Token::Text(_) if self.is_ignorable(at) => false,
            Token::Text(text) => {
                let part = if from_left { text.split('\n').next() } else { text.rsplit('\n').next() };
                // Blanks without a line break are something, too: they stand between tags.
                !text.contains('\n') || !part.is_none_or(is_blank)
            }
            _ => false,
        }
    }

    /// Tokens before one, as far as they end on the line that it begins on. A macro and a captured text are one there.
    fn before(&self, at: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let mut next = at;
        while let Some(before) = next.checked_sub(1) {
            next = before;
            if self.gone[before] {
                continue;
            }
            if self.lines[before].last != self.lines[at].first {
                break;
            }
            found.push(before);
            if self.tokens[before].token.closes_whole() {
                let mut open = 1;
                while let Some(inside) = next.checked_sub(1).filter(|_| open > 0) {
                    next = inside;
                    open += usize::from(self.tokens[inside].token.closes_whole());
                    open -= usize::from(self.tokens[inside].token.opens_whole());
                }
            }
        }
        found
    }

    /// Tokens behind one, as far as they begin on the line that it ends on. A macro and a captured text are one there.
    fn behind(&self, at: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let mut next = at + 1;
        while next < self.tokens.len() {
            if self.lines[next].first != self.lines[at].last {
                break;
            }
            found.push(next);
            let mut open = usize::from(self.tokens[next].token.opens_whole());
            next += 1;
            while open > 0 && next < self.tokens.len() {
                open += usize::from(self.tokens[next].token.opens_whole());
                open -= usize::from(self.tokens[next].token.closes_whole());
                next += 1;
            }
        }
        found
    }

    /// How much of the beginning goes: the rest of a line of tags, with its line break.
    fn front_to_strip(&self, at: usize) -> usize {
        let text = self.text_at(at);
        let end = second_line(text);
        if end == 0 && !self.lines[at].at_start || !is_blank(&text[..end]) {
            return 0;
        }
        if self.before(at).into_iter().any(|before| self.stands_on_line(before, false)) { 0 } else { end }
    }

    /// How much of the end goes: the indentation of a line of tags.
    fn end_to_strip(&self, at: usize) -> usize {
        let text = self.text_at(at);
        let from = last_line(text);
        if from == 0 && !self.lines[at].at_start || !is_blank(&text[from..]) {
            return 0;
        }
        if self.behind(at).into_iter().any(|behind| self.stands_on_line(behind, true)) {
            0
        } else {
            text.len() - from
        }
    }

    /// Carries out what `<#t>` and `<#lt>` further along the line say of its beginning. Whether something says anything of it.
    fn trim_left(&mut self, at: usize) -> bool {
        let marks = self.marks(self.behind(at), "rt");
        let begins = self.lines[at].at_start;
        if let Token::Text(text) = &mut self.tokens[at].token
            && marks.iter().any(|which| *which != "nt")
            && (text.contains('\n') || begins)
        {
            let from = last_line(text);
            let kept = text[from..].trim_start_matches(|c| c <= ' ').to_owned();
            text.truncate(from);
            text.push_str(&kept);
        }
        !marks.is_empty()
    }

    /// The same of `<#t>` and `<#rt>` before, and the end of the line.
    fn trim_right(&mut self, at: usize) -> bool {
        let marks = self.marks(self.before(at), "lt");
        if !marks.iter().any(|which| *which != "nt") {
            return !marks.is_empty();
        }
        let end = second_line(self.text_at(at));
        if end == 0 {
            return false;
        }
        // Blanks behind the line break go with it where only tags follow on their line.
        let behind = self.behind(at);
        let only_tags = !behind.iter().any(|behind| self.stands_on_line(*behind, false))
            || behind.iter().any(|behind| matches!(self.tokens[*behind].token, Token::Trim("t" | "lt")));
        if let Token::Text(text) = &mut self.tokens[at].token {
            let (line, rest) = text.split_at(end);
            let line = line.trim_end_matches(|c| c <= ' ');
            if line.is_empty() {
                *text = rest.to_owned();
                self.next_line(at);
            } else {
                let rest = if is_blank(rest) && only_tags { "" } else { rest };
                *text = format!("{line}{rest}");
            }
        }
        true
    }

    /// The marks among tokens, but those that are about the other end of the line.
    fn marks(&self, among: Vec<usize>, other: &str) -> Vec<&'static str> {
        let mark = |at: usize| match self.tokens[at].token {
            Token::Trim(which) if which != other => Some(which),
            _ => None,
        };
        among.into_iter().filter_map(mark).collect()
    }
}

impl Token {
    /// Whether it begins or ends what is one thing from outside: a macro, a function, a text that is captured.
    fn opens_whole(&self) -> bool {
        matches!(self, Token::Open(Tag::Macro { .. } | Tag::Capture(..)))
    }

    fn closes_whole(&self) -> bool {
        matches!(self, Token::Close(name) if matches!(name.as_str(), "macro" | "function" | "assign" | "global" | "local"))
    }
}

fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c <= ' ')
}

/// Where the line after the first line break begins; 0: there is none.
fn second_line(text: &str) -> usize {
    text.find('\n').map_or(0, |newline| newline + 1)
}

/// Where the last line begins.
fn last_line(text: &str) -> usize {
    text.rfind('\n').map_or(0, |newline| newline + 1)
}
