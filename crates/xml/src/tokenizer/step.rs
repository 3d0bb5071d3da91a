//! One token of any form, errors included: what [`Tokenizer::fast`] leaves over.

use super::{Open, Piece, Resolved, Source, State, Token, Tokenizer};
use crate::Limits;
use crate::error::{ErrorKind, Res, end, fault, limit, syntax};
use crate::is_space;
use crate::lex::{self, RawAttribute, Reference};
use crate::names::{Names, PrefixId, UNBOUND, XMLNS_PREFIX, XMLNS_QNAME, XMLNS_URI};
use crate::scan::text_end;

impl Tokenizer {
    /// Reads the next token into `current`; `false` where the input ends but may continue, and at the end.
    pub(super) fn token(&mut self) -> Res<bool> {
        self.scratch.clear();
        match self.step() {
            Ok(token) => {
                self.searched = 0;
                self.quote = 0;
                Ok(token)
            }
            Err(fault) if fault.kind == ErrorKind::UnexpectedEnd => {
                if let Some(mut bad) = self.bad.take() {
                    bad.at = self.usable;
                    return Err(bad);
                }
                if self.finished {
                    return Err(fault);
                }
                let waiting = self.usable - self.at;
                if waiting > self.limits.text_length.saturating_add(self.limits.name_length + 64) {
                    return limit("text_length", self.limits.text_length, self.at);
                }
                Ok(false)
            }
            Err(fault) => Err(fault),
        }
    }

    fn step(&mut self) -> Res<bool> {
        if self.over {
            return limit("total", self.limits.total, self.at);
        }
        loop {
            let input = &self.buffer[..self.usable];
            let p = self.at;
            match self.state {
                State::Start => {
                    if matches!(self.source, Source::Undetected) {
                        return end("the prolog", p);
                    }
                    if input.len() < 6 && b"<?xml".starts_with(&input[..input.len().min(5)]) && !self.finished
                    {
                        return end("the prolog", p);
                    }
                    if input.starts_with(b"<?xml") && input.get(5).is_some_and(|&b| is_space(b)) {
                        self.at = lex::xml_decl(input, false)?.end;
                    }
                    self.state = State::Prolog;
                }
                State::Prolog | State::Epilog => {
                    self.at = lex::spaces(input, p);
                    let p = self.at;
                    let Some(&b) = input.get(p) else {
                        if self.state == State::Epilog && self.finished && self.bad.is_none() {
                            return Ok(false);
                        }
                        return end("the prolog: there is no root element", p);
                    };
                    if b != b'<' {
                        return syntax("text outside the root element", p);
                    }
                    return match lex::byte(input, p + 1, "a tag")? {
                        b'?' => self.pi(),
                        b'!' => {
                            let rest = &input[p..];
                            if rest.starts_with(b"<!--") {
                                return self.comment();
                            }
                            if rest.starts_with(b"<!DOCTYPE") && self.state == State::Prolog {
                                return fault(
                                    ErrorKind::Doctype,
                                    "a document type declaration is not allowed here",
                                    p,
                                );
                            }
                            if b"<!--".starts_with(rest) || b"<!DOCTYPE".starts_with(rest) {
                                return end("markup", p);
                            }
                            syntax("expected the root element, a comment or a processing instruction", p)
                        }
                        _ if self.state == State::Epilog => syntax("markup behind the root element", p),
                        _ => self.start_tag(),
                    };
                }
                State::Failed => return end("an element", p),
                State::Content => {
                    let Some(&b) = input.get(p) else { return end("an element", p) };
                    if b != b'<' {
                        return self.text();
                    }
                    return match lex::byte(input, p + 1, "a tag")? {
                        b'/' => self.end_tag(),
                        b'?' => self.pi(),
                        b'!' => {
                            let rest = &input[p..];
                            if rest.starts_with(b"<!--") {
                                return self.comment();
                            }
                            if rest.starts_with(b"<![CDATA[") {
                                if self.cdata()? {
                                    return Ok(true);
                                }
                                // An empty section is not an event.
                                continue;
                            }
                            if b"<!--".starts_with(rest) || b"<![CDATA[".starts_with(rest) {
                                return end("markup", p);
                            }
                            syntax("expected a comment or a CDATA section", p)
                        }
                        _ => self.start_tag(),
                    };
                }
            }
        }
    }

    fn text(&mut self) -> Res<bool> {
        let input = &self.buffer[..self.usable];
        let start = self.at;
        let mut p = start;
        let mut copied = false;
        let piece = loop {
            let e = text_end(input, p);
            let mut run = &input[p..e];
            if self.brackets && e == input.len() && !self.finished && self.bad.is_none() {
                // `]]` at the end may be the start of `]]>`.
                let held = run.iter().rev().take(2).take_while(|&&b| b == b']').count();
                run = &run[..run.len() - held];
            }
            if self.brackets
                && let Some(i) = memchr::memmem::find(run, b"]]>")
            {
                return syntax("`]]>` in text", p + i);
            }
            let stop = p + run.len();
            if !copied && (e == input.len() || input[e] == b'<') {
                p = stop;
                break Piece { from: start, to: stop, side: false };
            }
            copied = true;
            self.scratch.push_str(lex::text(run));
            p = stop;
            match input.get(stop) {
                Some(b'&') => match lex::reference(input, p, &self.limits) {
                    Ok((Reference::Char(c), e)) => {
                        self.scratch.push(c);
                        p = e;
                    }
                    Ok((Reference::Entity, e)) => {
                        let name = lex::text(&input[p + 1..e - 1]);
                        return fault(ErrorKind::Entity, format!("the entity `{name}` is not declared"), p);
                    }
                    // Return the text so far; the reference comes with the next piece.
                    Err(f) if f.kind == ErrorKind::UnexpectedEnd && p > start => {
                        break Piece { from: 0, to: self.scratch.len(), side: true };
                    }
                    Err(f) => return Err(f),
                },
                Some(b'\r') => match input.get(p + 1) {
                    None if cut_at_end(self.finished, self.bad.is_some()) => {
                        if p > start {
                            break Piece { from: 0, to: self.scratch.len(), side: true };
                        }
                        return end("text", p);
                    }
                    next => {
                        self.scratch.push('\n');
                        p += 1 + usize::from(next == Some(&b'\n'));
                    }
                },
                _ => break Piece { from: 0, to: self.scratch.len(), side: true },
            }
        };
        if piece.from == piece.to {
            return end("text", p);
        }
        self.continued = self.text_length > 0;
        self.text_length += p - start;
        if self.text_length > self.limits.text_length {
            return limit("text_length", self.limits.text_length, start);
        }
        self.at = p;
        self.current = Token::Text(piece);
        Ok(true)
    }

    /// A CDATA section; `false` for an empty one.
    fn cdata(&mut self) -> Res<bool> {
        let from = self.at + 9;
        let to = self.find(from, b"]]>", "a CDATA section")?;
        self.continued = self.text_length > 0;
        self.text_length += to - from;
        if self.text_length > self.limits.text_length {
            return limit("text_length", self.limits.text_length, from);
        }
        self.at = to + 3;
        self.searched = 0;
        if from == to {
            return Ok(false);
        }
        self.current = Token::Text(self.lines(from, to));
        Ok(true)
    }

    /// The offset of `needle` at or after `from`; the search continues where the last one stopped.
    fn find(&mut self, from: usize, needle: &[u8], construct: &'static str) -> Res<usize> {
        let start = from.max(self.at + self.searched);
        let input = &self.buffer[..self.usable];
        match memchr::memmem::find(&input[start.min(input.len())..], needle) {
            Some(i) => Ok(start + i),
            None => {
                self.searched = (input.len() - self.at).saturating_sub(needle.len() - 1);
                end(construct, input.len())
            }
        }
    }

    /// A range of the buffer with its line ends normalised.
    fn lines(&mut self, from: usize, to: usize) -> Piece {
        let raw = &self.buffer[from..to];
        if memchr::memchr(b'\r', raw).is_none() {
            return Piece { from, to, side: false };
        }
        let start = self.scratch.len();
        lex::push_lines(&mut self.scratch, lex::text(raw));
        Piece { from: start, to: self.scratch.len(), side: true }
    }

    fn comment(&mut self) -> Res<bool> {
        let from = self.at + 4;
        let dashes = self.find(from, b"--", "a comment")?;
        let to = lex::comment(&self.buffer[..self.usable], from, dashes)?;
        if to - from > self.limits.text_length {
            return limit("text_length", self.limits.text_length, from);
        }
        self.at = to + 3;
        self.text_length = 0;
        self.current = Token::Comment(self.lines(from, to));
        Ok(true)
    }

    fn pi(&mut self) -> Res<bool> {
        let start = self.at + 2;
        let from = self.at + self.searched;
        let input = &self.buffer[..self.usable];
        let pi = match lex::pi(input, start, from, &self.limits) {
            Ok(pi) => pi,
            Err(f) => {
                if f.kind == ErrorKind::UnexpectedEnd {
                    self.searched = (input.len() - self.at).saturating_sub(1);
                }
                return Err(f);
            }
        };
        if pi.data_end - pi.data > self.limits.text_length {
            return limit("text_length", self.limits.text_length, pi.data);
        }
        self.at = pi.end;
        self.text_length = 0;
        let target = Piece { from: start, to: pi.target_end, side: false };
        self.current = Token::Pi { target, data: self.lines(pi.data, pi.data_end) };
        Ok(true)
    }

    /// Searches the end of an incomplete start tag, from where the last search ended.
    fn find_tag_end(&mut self) -> bool {
        let input = &self.buffer[..self.usable];
        let mut p = self.at + self.searched.max(1);
        let mut quote = self.quote;
        while p < input.len() {
            if quote != 0 {
                match memchr::memchr(quote, &input[p..]) {
                    Some(i) => {
                        p += i + 1;
                        quote = 0;
                    }
                    None => p = input.len(),
                }
                continue;
            }
            match input[p] {
                b'>' | b'<' => {
                    (self.searched, self.quote) = (p - self.at, 0);
                    return true;
                }
                b @ (b'"' | b'\'') => quote = b,
                _ => {}
            }
            p += 1;
        }
        (self.searched, self.quote) = (input.len() - self.at, quote);
        false
    }

    fn start_tag(&mut self) -> Res<bool> {
        if self.searched > 0 && !self.finished && self.bad.is_none() && !self.find_tag_end() {
            return end("a start tag", self.usable);
        }
        let input = &self.buffer[..self.usable];
        let at = self.at + 1;
        let done = self
            .names
            .qname_behind(self.last_tag, input, at, &self.limits, lex::START_TAG)
            .and_then(|(qname, e)| self.tag(qname, e));
        if let Err(f) = &done
            && f.kind == ErrorKind::UnexpectedEnd
        {
            self.find_tag_end();
        }
        done
    }

    /// The start tag at `at`, whose name is `qname` and ends at `e`.
    pub(super) fn tag(&mut self, qname: u32, e: usize) -> Res<bool> {
        let input = &self.buffer[..self.usable];
        let at = self.at + 1;
        let names = &mut self.names;
        let tag = lex::rest_of_start_tag(input, (qname, e), names, &self.limits, &mut self.raw_attributes)?;
        if self.stack.len() >= self.limits.depth {
            return limit("depth", self.limits.depth, at);
        }
        self.last_tag = qname;
        let mark = self.bindings.mark();
        self.resolved.clear();
        let mut declares = false;
        for a in &self.raw_attributes {
            declares |= a.qname == XMLNS_QNAME || names.prefix_of(a.qname) == XMLNS_PREFIX;
        }
        // A single attribute cannot be a duplicate.
        let several = self.raw_attributes.len() > 1;
        if several {
            self.seen.next_element();
        }
        if declares {
            self.declarations()?;
        }
        let input = &self.buffer[..self.usable];
        let prefix = self.names.prefix_of(qname);
        let uri = self.bindings.get(prefix);
        if uri == UNBOUND || prefix == XMLNS_PREFIX {
            return unbound(&self.names, prefix, at);
        }
        let name = self.names.expand(qname, uri);
        for a in &self.raw_attributes {
            let at = a.name as usize;
            let prefix = self.names.prefix_of(a.qname);
            if a.qname == XMLNS_QNAME || prefix == XMLNS_PREFIX {
                continue;
            }
            let name = if prefix == 0 {
                self.names.plain(a.qname)
            } else {
                match self.bindings.get(prefix) {
                    UNBOUND => return unbound(&self.names, prefix, at),
                    uri => self.names.expand(a.qname, uri),
                }
            };
            if several && !self.seen.first(name) {
                let raw = self.names.raw_of(a.qname);
                return syntax(format!("the attribute `{raw}` is there twice"), at);
            }
            let value = if a.plain {
                Piece { from: a.value as usize, to: a.value_end as usize, side: false }
            } else {
                let from = self.scratch.len();
                value(input, a, &self.limits, &mut self.scratch)?;
                Piece { from, to: self.scratch.len(), side: true }
            };
            self.resolved.push(Resolved { name, prefix, value });
        }
        self.serial += 1;
        let open = Open { qname, name, prefix, mark, serial: self.serial };
        if self.stack.is_empty() {
            self.root = Some(open);
        }
        self.tag_mark = mark;
        self.at = tag.end;
        self.text_length = 0;
        self.state = State::Content;
        if tag.empty {
            self.empty = Some(open);
            if self.stack.is_empty() {
                self.state = State::Epilog;
            }
        } else {
            self.stack.push(open);
        }
        self.current = Token::Start { name, prefix, empty: tag.empty };
        Ok(true)
    }

    /// Binds the prefixes declared in the tag.
    fn declarations(&mut self) -> Res<()> {
        let input = &self.buffer[..self.usable];
        for a in &self.raw_attributes {
            let at = a.name as usize;
            if a.qname != XMLNS_QNAME && self.names.prefix_of(a.qname) != XMLNS_PREFIX {
                continue;
            }
            let name = self.names.expand(a.qname, XMLNS_URI);
            if self.raw_attributes.len() > 1 && !self.seen.first(name) {
                let raw = self.names.raw_of(a.qname);
                return syntax(format!("the attribute `{raw}` is there twice"), at);
            }
            if a.plain {
                let uri = lex::text(&input[a.value as usize..a.value_end as usize]);
                self.names.bind(&mut self.bindings, a.qname, uri, at)?;
            } else {
                let mut uri = String::new();
                value(input, a, &self.limits, &mut uri)?;
                self.names.bind(&mut self.bindings, a.qname, &uri, at)?;
            }
            if self.bindings.count() > self.limits.namespaces {
                return limit("namespaces", self.limits.namespaces, at);
            }
        }
        Ok(())
    }

    fn end_tag(&mut self) -> Res<bool> {
        let input = &self.buffer[..self.usable];
        let at = self.at + 2;
        let Some(&open) = self.stack.last() else { return syntax("an end tag without start tag", self.at) };
        let e = match self.names.ends(open.qname, input, at) {
            Some(e) => e,
            None => {
                let e = lex::name(input, at, &self.limits, "an end tag")?;
                let name = self.names.raw_of(open.qname);
                if &input[at..e] != name.as_bytes() {
                    let found = lex::text(&input[at..e]);
                    return syntax(format!("expected `</{name}>`, found `</{found}`"), self.at);
                }
                e
            }
        };
        let close = lex::spaces(input, e);
        if lex::byte(input, close, "an end tag")? != b'>' {
            return syntax("expected `>` at the end of an end tag", close);
        }
        self.at = close + 1;
        self.text_length = 0;
        self.stack.pop();
        self.undo = Some(open.mark);
        if self.stack.is_empty() {
            self.state = State::Epilog;
        }
        self.current = Token::End { name: open.name, prefix: open.prefix };
        Ok(true)
    }
}

fn cut_at_end(finished: bool, bad: bool) -> bool {
    !finished && !bad
}

fn value(input: &[u8], a: &RawAttribute, limits: &Limits, out: &mut String) -> Res<()> {
    lex::attribute_value(input, a.value as usize, a.value_end as usize, limits, out, &mut |name, at, _| {
        fault(ErrorKind::Entity, format!("the entity `{name}` is not declared"), at)
    })
}

#[cold]
fn unbound<T>(names: &Names, prefix: PrefixId, at: usize) -> Res<T> {
    fault(ErrorKind::Namespace, format!("the prefix `{}` is not declared", names.prefix_str(prefix)), at)
}
