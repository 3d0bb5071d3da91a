//! Mailboxes by IMAP (RFC 3501).

use super::wire::{SHORT, Wire};
use super::{CONNECTIVITY, CREDENTIALS, Converse, FOLDER, Failure, Login, Server};
use flow::Services;
use message::memory::Held;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// How long a connection that was idle may take to answer NOOP.
const ALIVE: Duration = Duration::from_secs(5);
/// Most bytes of the lines of a response about messages.
const LONGEST: usize = 16 << 20;
/// Deepest list in a response.
const DEEPEST: usize = 32;

/// A session in the authenticated state.
pub(super) struct Session {
    wire: Wire,
    next: u32,
    /// The capabilities of the server, in upper case.
    can: Vec<String>,
}

/// A value in a response.
#[derive(Debug, PartialEq)]
enum Item {
    Atom(String),
    Bytes(Vec<u8>),
    List(Vec<Item>),
}

/// A line of a response: text, and literals within it.
enum Piece {
    Text(String),
    Block(Vec<u8>),
}

/// The data of a message.
#[derive(Default)]
pub(super) struct Fetched {
    pub uid: u32,
    pub size: usize,
    pub received: Option<String>,
    pub content: Vec<u8>,
}

impl Converse for Session {
    async fn open(server: &Server, login: Login<'_>, services: &Services) -> Result<Session, Failure> {
        let mut session = Session { wire: Wire::connect(server, services).await?, next: 0, can: Vec::new() };
        let greeting = session.wire.line(SHORT).await?;
        if !greeting.starts_with("* OK") && !greeting.starts_with("* PREAUTH") {
            return Err(session.wire.broken(format!("the server says {}", printable(&greeting))));
        }
        session.capabilities().await?;
        if server.start_tls {
            if !session.can("STARTTLS") {
                return Err(session.wire.broken("the server has no STARTTLS".to_owned()));
            }
            session.ask("STARTTLS", 0).await?;
            let wire = session.wire.start_tls(server, services).await?;
            session = Session { wire, ..session };
            session.capabilities().await?;
        }
        if !greeting.starts_with("* PREAUTH") {
            match login {
                Login::Token(user, token) => session.show_token(user, token).await?,
                Login::Password(user, password) => session.login(user, password).await?,
                Login::Nobody => session.login("", "").await?,
            }
            session.capabilities().await?;
        }
        Ok(session)
    }
}

impl Session {
    /// Whether an idle connection still works.
    pub(super) async fn is_alive(&mut self) -> bool {
        let before = self.wire.patience(ALIVE);
        let alive = self.ask("NOOP", 0).await.is_ok();
        self.wire.patience(before);
        alive
    }

    /// Selects a folder.
    pub(super) async fn select(&mut self, folder: &str, changes: bool) -> Result<(), Failure> {
        let verb = if changes { "SELECT" } else { "EXAMINE" };
        let name = quoted(&utf7(folder)).ok_or_else(|| {
            Failure::new(FOLDER, format!("{}: no folder has such a name", self.wire.peer()))
        })?;
        match self.ask(&format!("{verb} {name}"), 0).await {
            Ok(_) => Ok(()),
            Err(failure) if failure.reason == CONNECTIVITY && is_refusal(&failure, verb) => {
                Err(failure.with(FOLDER))
            }
            Err(failure) => Err(failure),
        }
    }

    /// The UIDs of the messages that meet all criteria.
    pub(super) async fn search(&mut self, criteria: &str) -> Result<Vec<u32>, Failure> {
        let answers = self.ask(&format!("UID SEARCH {criteria}"), 0).await?;
        let mut found = Vec::new();
        for response in &answers {
            if let Some(Piece::Text(text)) = response.first()
                && let Some(rest) = text.strip_prefix("* SEARCH")
            {
                found.extend(rest.split_ascii_whitespace().filter_map(|number| number.parse::<u32>().ok()));
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    /// The UIDs of messages with this `Message-ID`.
    pub(super) async fn find(&mut self, id: &str) -> Result<Vec<u32>, Failure> {
        match quoted(id) {
            Some(id) => self.search(&format!("HEADER Message-ID {id}")).await,
            None => Ok(Vec::new()),
        }
    }

    /// Fetches data items of messages, whose UIDs are in ascending order. `most`: the bytes that a response may have beside its lines.
    pub(super) async fn fetch(
        &mut self,
        numbers: &[u32],
        data_items: &str,
        most: usize,
    ) -> Result<Vec<Fetched>, Failure> {
        let answers = self.ask(&format!("UID FETCH {} ({data_items})", set(numbers)), most).await?;
        fetched(answers, numbers)
            .ok_or_else(|| self.wire.broken("the answer of the server is not IMAP".to_owned()))
    }

    /// Adds a flag to messages.
    pub(super) async fn flag(&mut self, numbers: &[u32], flag: &str) -> Result<(), Failure> {
        for some in numbers.chunks(1000) {
            self.ask(&format!("UID STORE {} +FLAGS.SILENT ({flag})", set(some)), 0).await?;
        }
        Ok(())
    }

    /// Expunges messages that are flagged as deleted: these, where the server has UIDPLUS (RFC 4315); all where no number is given.
    pub(super) async fn expunge(&mut self, numbers: &[u32]) -> Result<(), Failure> {
        if numbers.is_empty() || !self.can("UIDPLUS") {
            return self.ask("EXPUNGE", 0).await.map(|_| ());
        }
        for some in numbers.chunks(1000) {
            self.ask(&format!("UID EXPUNGE {}", set(some)), 0).await?;
        }
        Ok(())
    }

    fn can(&self, capability: &str) -> bool {
        self.can.iter().any(|c| c == capability)
    }

    async fn capabilities(&mut self) -> Result<(), Failure> {
        let answers = self.ask("CAPABILITY", 0).await?;
        let lines = answers.iter().filter_map(|response| match response.first() {
            Some(Piece::Text(text)) => text.strip_prefix("* CAPABILITY "),
            _ => None,
        });
        self.can = lines.flat_map(|line| line.split(' ')).map(str::to_ascii_uppercase).collect();
        Ok(())
    }

    async fn login(&mut self, user: &str, password: &str) -> Result<(), Failure> {
        if self.can("LOGINDISABLED") {
            let why = "the server takes credentials only with TLS (`requireTLS`)";
            return Err(Failure::new(CREDENTIALS, format!("{}: {why}", self.wire.peer())));
        }
        let quoted_words = [user, password].map(quoted);
        let [Some(user), Some(password)] = quoted_words else {
            let why = "user name or password has a line end in it";
            return Err(Failure::new(CREDENTIALS, format!("{}: {why}", self.wire.peer())));
        };
        match self.ask(&format!("LOGIN {user} {password}"), 0).await {
            Ok(_) => Ok(()),
            Err(failure) if is_refusal(&failure, "LOGIN") => Err(failure.with(CREDENTIALS)),
            Err(failure) => Err(failure),
        }
    }

    async fn show_token(&mut self, user: &str, token: &str) -> Result<(), Failure> {
        let shown = super::oauth::shown(user, token);
        // With the command where the server has SASL-IR (RFC 4959), else after its continuation request.
        let (command, response) = match self.can("SASL-IR") {
            true => (format!("AUTHENTICATE XOAUTH2 {shown}"), None),
            false => ("AUTHENTICATE XOAUTH2".to_owned(), Some(shown)),
        };
        self.begin(&command).await?;
        let tag = format!("b{} ", self.next);
        let (mut response, mut left) = (response, SHORT);
        let mut continuations = 0;
        loop {
            let line = self.wire.line(left).await?;
            left = left.saturating_sub(line.len() + 64);
            if line.starts_with('+') {
                // Each answer to one begins another wait.
                continuations += 1;
                if continuations > 2 {
                    return Err(self.wire.broken("the server does not end its answer".to_owned()));
                }
                // A second continuation request has the error, and an empty line acknowledges it.
                let line = response.take().unwrap_or_default();
                self.wire.send(format!("{line}\r\n").as_bytes()).await?;
            } else if let Some(end) = line.strip_prefix(&tag) {
                return match end.starts_with("OK") {
                    true => Ok(()),
                    false => {
                        let failure = self.wire.broken(format!("AUTHENTICATE: {}", printable(end)));
                        Err(if end.starts_with("NO") { failure.with(CREDENTIALS) } else { failure })
                    }
                };
            } else if line.starts_with("* BYE") {
                return Err(self.wire.broken(printable(&line)));
            }
        }
    }

    /// Sends a command with a new tag.
    async fn begin(&mut self, command: &str) -> Result<(), Failure> {
        self.next = self.next.wrapping_add(1);
        self.wire.send(format!("b{} {command}\r\n", self.next).as_bytes()).await
    }

    /// Sends a command and reads its responses.
    async fn ask(&mut self, command: &str, most: usize) -> Result<Vec<Vec<Piece>>, Failure> {
        self.begin(command).await?;
        let tag = format!("b{}", self.next);
        let (mut answers, mut left, mut lines) = (Vec::new(), most, 0_usize);
        // UIDs and data of messages are many; all other responses are short.
        let longest = if command.starts_with("UID ") { LONGEST } else { SHORT };
        // Counts the memory while the response is read.
        let mut held = Held::NONE;
        loop {
            let mut pieces = Vec::new();
            loop {
                let line = self.wire.line(longest).await?;
                // Text takes memory too.
                lines += line.len() + 64;
                if lines > longest {
                    return Err(self.wire.broken("the server does not end its answer".to_owned()));
                }
                held.try_grow(lines + most - left)?;
                // Text for people has no literals.
                let is_remark = pieces.is_empty() && is_remark(&line, &tag);
                let Some(length) = block_of(&line).filter(|_| !is_remark) else {
                    pieces.push(Piece::Text(line));
                    break;
                };
                left = left
                    .checked_sub(length)
                    .ok_or_else(|| self.wire.broken("the server sends more than was asked for".to_owned()))?;
                held.try_grow(lines + most - left)?;
                pieces.push(Piece::Text(line));
                pieces.push(Piece::Block(self.wire.block(length).await?));
            }
            match pieces.first() {
                Some(Piece::Text(text)) if text.starts_with("* BYE") && command != "LOGOUT" => {
                    return Err(self.wire.broken(printable(text)));
                }
                Some(Piece::Text(text)) => match text.strip_prefix(&tag) {
                    Some(end) if end.starts_with(" OK") => return Ok(answers),
                    Some(end) => {
                        let verb = command.split(' ').next().unwrap_or_default();
                        return Err(self.wire.broken(format!("{verb}:{} ", printable(end))));
                    }
                    None => answers.push(pieces),
                },
                _ => {}
            }
        }
    }
}

/// A line of a server without control characters, for a message.
fn printable(line: &str) -> String {
    line.chars().take(200).map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Whether a server answered a command with NO.
fn is_refusal(failure: &Failure, verb: &str) -> bool {
    failure.detail.contains(&format!(": {verb}: NO "))
}

/// Whether a line is the tagged response or an untagged status response.
fn is_remark(line: &str, tag: &str) -> bool {
    let rest = line.strip_prefix("* ").or_else(|| line.strip_prefix(tag)?.strip_prefix(' '));
    let word = rest.and_then(|rest| rest.split(' ').next()).unwrap_or_default();
    matches!(word, "OK" | "NO" | "BAD" | "BYE" | "PREAUTH")
}

/// The length of a literal: `{123}` at the end of a line.
fn block_of(line: &str) -> Option<usize> {
    line.strip_suffix('}')?.rsplit_once('{')?.1.parse().ok()
}

/// A sequence set, with ranges for consecutive numbers.
fn set(numbers: &[u32]) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < numbers.len() {
        let mut end = at;
        while end + 1 < numbers.len() && numbers[end + 1] == numbers[end].wrapping_add(1) {
            end += 1;
        }
        let comma = if out.is_empty() { "" } else { "," };
        let _ = match end == at {
            true => write!(out, "{comma}{}", numbers[at]),
            false => write!(out, "{comma}{}:{}", numbers[at], numbers[end]),
        };
        at = end + 1;
    }
    out
}

/// A quoted string; `None`: it has characters that a quoted string cannot have.
fn quoted(text: &str) -> Option<String> {
    if text.contains(['\r', '\n', '\0']) {
        return None;
    }
    Some(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

/// The name of a folder in modified UTF-7 (RFC 3501, 5.1.3).
fn utf7(name: &str) -> String {
    use base64::Engine;
    use base64::alphabet::IMAP_MUTF7;
    use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
    let engine = GeneralPurpose::new(&IMAP_MUTF7, NO_PAD);
    let (mut out, mut wide) = (String::new(), Vec::new());
    let flush = |wide: &mut Vec<u8>, out: &mut String| {
        if !wide.is_empty() {
            let _ = write!(out, "&{}-", engine.encode(&*wide));
            wide.clear();
        }
    };
    for c in name.chars() {
        if c == ' ' || c.is_ascii_graphic() {
            flush(&mut wide, &mut out);
            out.push(c);
            if c == '&' {
                out.push('-');
            }
        } else {
            wide.extend(c.encode_utf16(&mut [0; 2]).iter().flat_map(|unit| unit.to_be_bytes()));
        }
    }
    flush(&mut wide, &mut out);
    out
}

/// The values of a response; `None`: its syntax is wrong.
fn parsed(pieces: Vec<Piece>) -> Option<Vec<Item>> {
    let mut open: Vec<Vec<Item>> = vec![Vec::new()];
    for piece in pieces {
        let text = match piece {
            Piece::Block(bytes) => {
                open.last_mut()?.push(Item::Bytes(bytes));
                continue;
            }
            Piece::Text(text) => text,
        };
        let is_ahead_of_block = block_of(&text).is_some();
        let text = match is_ahead_of_block {
            true => text.rsplit_once('{').map_or("", |(before, _)| before),
            false => &text,
        };
        let mut rest = text;
        loop {
            rest = rest.trim_start_matches(' ');
            let Some(first) = rest.chars().next() else { break };
            match first {
                '(' if open.len() < DEEPEST => {
                    open.push(Vec::new());
                    rest = &rest[1..];
                }
                ')' if open.len() > 1 => {
                    let list = open.pop()?;
                    open.last_mut()?.push(Item::List(list));
                    rest = &rest[1..];
                }
                '(' | ')' => return None,
                '"' => {
                    let (text, after) = string(&rest[1..])?;
                    open.last_mut()?.push(Item::Bytes(text.into_bytes()));
                    rest = after;
                }
                _ => {
                    let (atom, after) = rest.split_at(end_of_atom(rest));
                    open.last_mut()?.push(Item::Atom(atom.to_owned()));
                    rest = after;
                }
            }
        }
    }
    if open.len() == 1 { open.pop() } else { None }
}

/// The end of an atom; a section in square brackets is part of it.
fn end_of_atom(text: &str) -> usize {
    let mut inside = false;
    for (at, c) in text.char_indices() {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            ' ' | '(' | ')' | '"' if !inside => return at,
            _ => {}
        }
    }
    text.len()
}

/// The text after an opening quote, and the rest.
fn string(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((out, &text[at + 1..])),
            '\\' => out.push(chars.next()?.1),
            c => out.push(c),
        }
    }
    None
}

/// The data of these messages, by UID; `None`: the syntax is wrong. A server may report the flags of any message meanwhile, in a
/// response of its own (RFC 3501, 7.4.2).
fn fetched(answers: Vec<Vec<Piece>>, numbers: &[u32]) -> Option<Vec<Fetched>> {
    let mut found: BTreeMap<u32, Fetched> = BTreeMap::new();
    for response in answers {
        let items = parsed(response)?;
        // `* 7 FETCH (…)`
        let [Item::Atom(star), Item::Atom(_), Item::Atom(verb), Item::List(facts)] = &items[..] else {
            continue;
        };
        let uid = uid_of(facts).filter(|uid| numbers.binary_search(uid).is_ok());
        if let Some(uid) = uid.filter(|_| star == "*" && verb.eq_ignore_ascii_case("FETCH")) {
            add_facts(facts, found.entry(uid).or_insert_with(|| Fetched { uid, ..Fetched::default() }));
        }
    }
    Some(found.into_values().collect())
}

fn uid_of(facts: &[Item]) -> Option<u32> {
    facts.chunks_exact(2).find_map(|pair| match pair {
        [Item::Atom(name), Item::Atom(number)] if name.eq_ignore_ascii_case("UID") => number.parse().ok(),
        _ => None,
    })
}

fn add_facts(facts: &[Item], fetched: &mut Fetched) {
    for pair in facts.chunks_exact(2) {
        let Item::Atom(name) = &pair[0] else { continue };
        match (name.to_ascii_uppercase().as_str(), &pair[1]) {
            ("RFC822.SIZE", Item::Atom(number)) => fetched.size = number.parse().unwrap_or(usize::MAX),
            ("INTERNALDATE", Item::Bytes(text)) => {
                fetched.received = Some(String::from_utf8_lossy(text).trim().to_owned());
            }
            (name, Item::Bytes(content)) if name.starts_with("BODY[") => fetched.content.clone_from(content),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let text = |text: &str| Piece::Text(text.to_owned());
        let response = vec![
            text(
                r#"* 7 FETCH (UID 12 FLAGS (\Seen) INTERNALDATE " 1-Jul-2026 10:00:00 +0200" BODY[HEADER.FIELDS (A B)] {3}"#,
            ),
            Piece::Block(b"a\"(".to_vec()),
            text(" RFC822.SIZE 99)"),
        ];
        let flags = |uid: &str| vec![text(&format!(r#"* 9 FETCH ({uid}FLAGS (\Seen))"#))];
        let answers = vec![flags(""), response, flags("UID 13 "), flags("UID 12 ")];
        let found = fetched(answers, &[5, 12]).unwrap();
        let [fetched] = &found[..] else { panic!("{}", found.len()) };
        assert_eq!((fetched.uid, fetched.size, &fetched.content[..]), (12, 99, &b"a\"("[..]));
        assert_eq!(fetched.received.as_deref(), Some("1-Jul-2026 10:00:00 +0200"));
        for broken in ["* 1 FETCH (", ")", "\"a", "((((((((((((((((((((((((((((((((((("] {
            assert!(parsed(vec![text(broken)]).is_none(), "{broken}");
        }
    }

    #[test]
    fn commands_are_written() {
        assert_eq!(set(&[1, 2, 3, 5, 9, 10]), "1:3,5,9:10");
        assert_eq!(set(&[u32::MAX, 0]), "4294967295:0");
        assert_eq!(quoted("a\"b\\"), Some("\"a\\\"b\\\\\"".to_owned()));
        assert_eq!(quoted("a\r\nb"), None);
        for (name, wanted) in
            [("INBOX", "INBOX"), ("a&b", "a&-b"), ("Entwürfe", "Entw&APw-rfe"), ("台北", "&U,BTFw-")]
        {
            assert_eq!(utf7(name), wanted);
        }
        assert_eq!(block_of("x {12}"), Some(12));
        assert_eq!((block_of("x {}"), block_of("{x}"), block_of("")), (None, None, None));
    }
}
