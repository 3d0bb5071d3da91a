//! The client side of LDAP 3 (RFC 4511), as far as it takes to authenticate a user: simple binds, and searches. What the user writes is
//! never syntax: a filter is parsed before the value is put in, and names escape it (RFC 4514).

use der::{BOOLEAN, ENUMERATED, Head, INTEGER, OCTETS, Reader, SEQUENCE, SET, tlv};
use std::fmt;

/// Most bytes of one message of a server.
pub const LARGEST: usize = 1 << 20;
/// Longest name of a user.
pub const LONGEST_NAME: usize = 256;
/// Deepest nesting of a filter.
const DEEPEST: usize = 8;

/// The name of an entry with a place for the user: `uid={user},ou=people,dc=example`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    /// Reads a name.
    ///
    /// # Errors
    /// It has no `{user}`, or is not a name.
    pub fn read(text: &str) -> Result<Name, String> {
        match text.contains("{user}") && text.contains('=') {
            true => Ok(Name(text.to_owned())),
            false => {
                Err(format!("`{text}` is not a name with {{user}}, like uid={{user}},ou=people,dc=example"))
            }
        }
    }

    /// The name of the entry of a user.
    pub fn of(&self, user: &str) -> String {
        self.0.replace("{user}", &escaped(user))
    }
}

fn escaped(value: &str) -> String {
    let mut out = String::new();
    let last = value.chars().count().saturating_sub(1);
    for (at, character) in value.chars().enumerate() {
        match character {
            '\0' => out.push_str("\\00"),
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' | '=' => out.extend(['\\', character]),
            ' ' if at == 0 || at == last => out.push_str("\\ "),
            '#' if at == 0 => out.push_str("\\#"),
            character => out.push(character),
        }
    }
    out
}

/// A filter (RFC 4515). `{user}` and `{dn}` in values are filled in.
#[derive(Clone, PartialEq, Eq)]
pub struct Filter {
    text: String,
    root: Node,
}

impl fmt::Debug for Filter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    /// `=`, `>=`, `<=`, `~=`, each by its tag.
    Compared(u8, String, String),
    /// `a*b*c`: the parts between the stars, of which the first and the last may be empty.
    Parts(String, Vec<String>),
    Present(String),
    /// `name:dn:rule:=value`
    Matched(Matched),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Matched {
    rule: Option<String>,
    name: Option<String>,
    value: String,
    of_dn: bool,
}

const EQUAL: u8 = 0xa3;
const AT_LEAST: u8 = 0xa5;
const AT_MOST: u8 = 0xa6;
const ABOUT: u8 = 0xa8;

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// It is not a filter.
    pub fn read(text: &str) -> Result<Filter, String> {
        let mut rest = text.trim();
        let root = node(&mut rest, 0).filter(|_| rest.is_empty());
        match root {
            Some(root) => Ok(Filter { text: text.to_owned(), root }),
            None => Err(format!("`{text}` is not a filter, like (&(objectClass=person)(uid={{user}}))")),
        }
    }

    /// What every entry is.
    pub fn any() -> Filter {
        Filter { text: "(objectClass=*)".to_owned(), root: Node::Present("objectClass".to_owned()) }
    }

    fn write(&self, user: &str, dn: &str, out: &mut Vec<u8>) {
        self.root.write(&|value| filled(value, user, dn), out);
    }
}

/// A value of a filter with the user and its entry. What is filled in is not looked at again: a user may be called `{dn}`.
fn filled(value: &str, user: &str, dn: &str) -> String {
    let (mut out, mut rest) = (String::new(), value);
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let found = [("{user}", user), ("{dn}", dn)];
        let found = found.iter().find_map(|(name, with)| Some((rest.strip_prefix(name)?, with)));
        let (behind, with) = found.unwrap_or((&rest[1..], &"{"));
        out.push_str(with);
        rest = behind;
    }
    out + rest
}

fn node(rest: &mut &str, depth: usize) -> Option<Node> {
    *rest = rest.strip_prefix('(')?;
    if depth > DEEPEST {
        return None;
    }
    let list = |rest: &mut &str| {
        let mut nodes = Vec::new();
        while rest.starts_with('(') {
            nodes.push(node(rest, depth + 1)?);
        }
        (!nodes.is_empty()).then_some(nodes)
    };
    let parsed = match rest.chars().next()? {
        '&' => {
            *rest = &rest[1..];
            Node::And(list(rest)?)
        }
        '|' => {
            *rest = &rest[1..];
            Node::Or(list(rest)?)
        }
        '!' => {
            *rest = &rest[1..];
            Node::Not(Box::new(node(rest, depth + 1)?))
        }
        _ => {
            let end = rest.find(')')?;
            let (name, value) = rest[..end].split_once('=')?;
            *rest = &rest[end..];
            comparison(name, value)?
        }
    };
    *rest = rest.strip_prefix(')')?;
    Some(parsed)
}

/// What stands before and behind the first `=`.
fn comparison(name: &str, value: &str) -> Option<Node> {
    if value.contains('(') {
        return None;
    }
    let is_name = |name: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-.;".contains(&byte);
        !name.is_empty() && name.bytes().all(is_part)
    };
    if let Some(before) = name.strip_suffix(':') {
        let mut parts = before.split(':');
        let name = parts.next().filter(|name| !name.is_empty()).map(str::to_owned);
        let mut rule = parts.next();
        let of_dn = rule.is_some_and(|word| word.eq_ignore_ascii_case("dn"));
        if of_dn {
            rule = parts.next();
        }
        let rule = rule.map(str::to_owned);
        let all_named = [&name, &rule].into_iter().flatten().all(|text| is_name(text));
        // One of both says what is compared.
        if !all_named || parts.next().is_some() || (name.is_none() && rule.is_none()) {
            return None;
        }
        return Some(Node::Matched(Matched { rule, name, value: plain(value)?, of_dn }));
    }
    let (tag, name) = match name.as_bytes().last()? {
        b'>' => (AT_LEAST, &name[..name.len() - 1]),
        b'<' => (AT_MOST, &name[..name.len() - 1]),
        b'~' => (ABOUT, &name[..name.len() - 1]),
        _ => (EQUAL, name),
    };
    if !is_name(name) {
        return None;
    }
    match value {
        "*" if tag == EQUAL => Some(Node::Present(name.to_owned())),
        value if value.contains('*') => {
            let parts: Vec<String> = value.split('*').map(plain).collect::<Option<_>>()?;
            let inner = parts.get(1..parts.len() - 1)?;
            let is_good = tag == EQUAL && inner.iter().all(|part| !part.is_empty());
            is_good.then(|| Node::Parts(name.to_owned(), parts))
        }
        value => Some(Node::Compared(tag, name.to_owned(), plain(value)?)),
    }
}

/// A value without its escapes (`\2a` is a star).
fn plain(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(digit(digits[0])? << 4 | digit(digits[1])?);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}

impl Node {
    fn write(&self, fill: &dyn Fn(&str) -> String, out: &mut Vec<u8>) {
        let mut content = Vec::new();
        let tag = match self {
            Node::And(nodes) => {
                nodes.iter().for_each(|node| node.write(fill, &mut content));
                0xa0
            }
            Node::Or(nodes) => {
                nodes.iter().for_each(|node| node.write(fill, &mut content));
                0xa1
            }
            Node::Not(node) => {
                node.write(fill, &mut content);
                0xa2
            }
            Node::Compared(tag, name, value) => {
                put(OCTETS, name.as_bytes(), &mut content);
                put(OCTETS, fill(value).as_bytes(), &mut content);
                *tag
            }
            Node::Parts(name, parts) => {
                put(OCTETS, name.as_bytes(), &mut content);
                let mut pieces = Vec::new();
                for (at, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
                    let tag = match at {
                        0 => 0x80,
                        at if at + 1 == parts.len() => 0x82,
                        _ => 0x81,
                    };
                    put(tag, fill(part).as_bytes(), &mut pieces);
                }
                put(SEQUENCE, &pieces, &mut content);
                0xa4
            }
            Node::Matched(Matched { rule, name, value, of_dn }) => {
                for (tag, text) in [(0x81, rule), (0x82, name)] {
                    text.iter().for_each(|text| put(tag, text.as_bytes(), &mut content));
                }
                put(0x83, fill(value).as_bytes(), &mut content);
                if *of_dn {
                    put(0x84, &[0xff], &mut content);
                }
                0xa9
            }
            Node::Present(name) => {
                content.extend_from_slice(name.as_bytes());
                0x87
            }
        };
        put(tag, &content, out);
    }
}

/// Appends a value with its tag and length.
fn put(tag: u8, content: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&tlv(tag, &[content]));
}

fn message(number: u8, tag: u8, operation: &[u8]) -> Vec<u8> {
    let (mut content, mut out) = (Vec::new(), Vec::new());
    put(INTEGER, &[number & 0x7f], &mut content);
    put(tag, operation, &mut content);
    put(SEQUENCE, &content, &mut out);
    out
}

/// A simple bind (section 4.2). With an empty password it would be an anonymous one, which succeeds: callers refuse that before.
pub fn bind(number: u8, dn: &str, password: &str) -> Vec<u8> {
    let mut content = Vec::new();
    put(INTEGER, &[3], &mut content);
    put(OCTETS, dn.as_bytes(), &mut content);
    put(0x80, password.as_bytes(), &mut content);
    message(number, 0x60, &content)
}

/// What is searched for.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// The entry below which it is.
    pub base: &'a str,
    /// It is that entry itself.
    pub only_base: bool,
    /// What it is.
    pub filter: &'a Filter,
    /// What stands for `{user}` and `{dn}` in the filter.
    pub user: &'a str,
    /// See `user`.
    pub dn: &'a str,
    /// The one attribute that is asked for.
    pub attribute: &'a str,
    /// Most entries.
    pub most: u16,
}

/// A search (section 4.5).
pub fn search(number: u8, what: &Search<'_>) -> Vec<u8> {
    let Search { base, only_base, filter, user, dn, attribute, most } = *what;
    let (mut content, mut attributes) = (Vec::new(), Vec::new());
    put(OCTETS, base.as_bytes(), &mut content);
    put(ENUMERATED, &[if only_base { 0 } else { 2 }], &mut content);
    put(ENUMERATED, &[0], &mut content);
    // As short as it can be and positive (X.690, 8.3.2).
    let bytes = u32::from(most).to_be_bytes();
    let start = (0..3).find(|&at| bytes[at] != 0 || bytes[at + 1] & 0x80 != 0).unwrap_or(3);
    put(INTEGER, &bytes[start..], &mut content);
    put(INTEGER, &[5], &mut content);
    put(BOOLEAN, &[0], &mut content);
    filter.write(user, dn, &mut content);
    put(OCTETS, attribute.as_bytes(), &mut attributes);
    put(SEQUENCE, &attributes, &mut content);
    message(number, 0x63, &content)
}

/// The value of an attribute in the first part of a name: `a, b` in `cn=a\, b,ou=groups`; `None`: the first part has another one.
pub fn first_value(dn: &str, attribute: &str) -> Option<String> {
    let (name, rest) = dn.split_once('=')?;
    if !name.trim().eq_ignore_ascii_case(attribute) {
        return None;
    }
    let (mut value, mut bytes, mut kept) = (Vec::new(), rest.trim_start().bytes().peekable(), 0);
    while let Some(byte) = bytes.next() {
        match byte {
            b',' | b'+' | b';' => break,
            b'\\' => {
                let first = bytes.next()?;
                let second = bytes.peek().copied().filter(u8::is_ascii_hexdigit);
                let pair = second.filter(|_| first.is_ascii_hexdigit());
                match pair {
                    Some(second) => {
                        bytes.next();
                        value.extend(crate::from_hex(std::str::from_utf8(&[first, second]).ok()?)?);
                    }
                    None => value.push(first),
                }
                // A blank at the end counts only if it is escaped.
                kept = value.len();
            }
            byte => value.push(byte),
        }
    }
    while value.len() > kept && value.last() == Some(&b' ') {
        value.pop();
    }
    String::from_utf8(value).ok().filter(|text| !text.is_empty())
}

/// The end of the connection (section 4.3).
pub fn unbind(number: u8) -> Vec<u8> {
    message(number, 0x42, &[])
}

/// An entry that a search has found (section 4.5.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub dn: String,
    /// The descriptions of its attributes, each with its values.
    pub attributes: Vec<(String, Vec<String>)>,
}

impl Entry {
    /// The values of an attribute.
    pub fn values(self, attribute: &str) -> impl Iterator<Item = String> {
        let asked = self.attributes.into_iter().filter(move |(description, _)| is_of(description, attribute));
        asked.flat_map(|(_, values)| values)
    }
}

/// Whether the description of an attribute is the one that was asked for, or the same with more options: these are subtypes, which servers send too
/// (section 4.5.1.8; RFC 4512, 2.5.2).
fn is_of(description: &str, asked: &str) -> bool {
    let (name, options) = description.split_once(';').unwrap_or((description, ""));
    let mut wanted = asked.split(';');
    wanted.next().is_some_and(|wanted| wanted.eq_ignore_ascii_case(name))
        && wanted.all(|wanted| options.split(';').any(|option| option.eq_ignore_ascii_case(wanted)))
}

/// A response of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// A bind has ended, with this code (section 4.1.9).
    Bound(u32),
    /// A search has ended, with this code.
    Searched(u32),
    /// The server ends the connection (section 4.4.1).
    Disconnects,
    /// An entry.
    Entry(Entry),
    /// A message that does not matter here.
    Other,
}

/// The first message in some bytes, and its length; `None`: it is incomplete.
///
/// # Errors
/// It is not LDAP, is too large, or is a response to another request.
pub fn read(bytes: &[u8], number: u8) -> Result<Option<(Response, usize)>, &'static str> {
    const NONE: &str = "its response is not LDAP";
    let Some(head) = Head::read(bytes).map_err(|_| NONE)? else { return Ok(None) };
    if head.tag != SEQUENCE || head.content > LARGEST {
        return Err(NONE);
    }
    let Some(message) = Reader(bytes).any() else { return Ok(None) };
    let response = operation(message.inside(), number).ok_or(NONE)?;
    Ok(Some((response, message.whole.len())))
}

fn operation(mut fields: Reader<'_>, number: u8) -> Option<Response> {
    let id = fields.value(INTEGER)?.content;
    let operation = fields.any()?;
    // Message 0 is a notification of the server.
    if id != [number] {
        return (id == [0] && operation.tag == 0x78).then_some(Response::Disconnects);
    }
    let mut inside = operation.inside();
    match operation.tag {
        0x61 | 0x65 => {
            let code = inside.value(ENUMERATED)?.content;
            // Without a byte it would be 0, which is success.
            let code = (1..=4).contains(&code.len()).then_some(code)?;
            let code = code.iter().fold(0, |code, byte| code << 8 | u32::from(*byte));
            Some(if operation.tag == 0x61 { Response::Bound(code) } else { Response::Searched(code) })
        }
        0x64 => {
            let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
            let dn = text(inside.value(OCTETS)?.content)?;
            let mut attributes = Vec::new();
            let mut list = inside.enter(SEQUENCE)?;
            while let Some(mut attribute) = list.enter(SEQUENCE) {
                let description = text(attribute.value(OCTETS)?.content)?;
                let (mut set, mut values) = (attribute.enter(SET)?, Vec::new());
                while let Some(value) = set.value(OCTETS) {
                    values.extend(text(value.content));
                }
                attributes.push((description, values));
            }
            Some(Response::Entry(Entry { dn, attributes }))
        }
        _ => Some(Response::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_writes_is_no_syntax() {
        let name = Name::read("uid={user},ou=people").unwrap();
        for (user, wanted) in [
            ("alice", "uid=alice,ou=people"),
            ("a,ou=admins", "uid=a\\,ou\\=admins,ou=people"),
            (" #x\0 ", "uid=\\ #x\\00\\ ,ou=people"),
            ("#1\"\\", "uid=\\#1\\\"\\\\,ou=people"),
            ("{user}", "uid={user},ou=people"),
        ] {
            assert_eq!(name.of(user), wanted);
        }
        assert!(Name::read("uid=alice").is_err() && Name::read("{user}").is_err());
        let filter = Filter::read("(uid={user})").unwrap();
        let mut out = Vec::new();
        filter.write("*)(uid=*", "", &mut out);
        assert_eq!(out, b"\xa3\x0f\x04\x03uid\x04\x08*)(uid=*");
        for (value, user, wanted) in [
            ("{user}", "al{dn}ice", "al{dn}ice"),
            ("{dn}", "{user}", "cn=x"),
            ("{a{user}:{dn}{", "{user}", "{a{user}:cn=x{"),
        ] {
            assert_eq!(filled(value, user, "cn=x"), wanted);
        }
    }

    #[test]
    fn filters_are_written_as_they_are_meant() {
        let filter = Filter::read("(&(objectClass=person)(|(uid={user})(!(mail=*))))").unwrap();
        let mut out = Vec::new();
        filter.write("al", "", &mut out);
        let wanted: &[u8] = b"\xa0\x2c\xa3\x15\x04\x0bobjectClass\x04\x06person\xa1\x13\xa3\x09\x04\x03uid\x04\x02al\xa2\x06\x87\x04mail";
        assert_eq!(out, wanted);
        for text in [
            "",
            "uid=a",
            "(uid=a",
            "(uid=a))",
            "(&)",
            "(u d=a)",
            "(uid=\\2)",
            "(uid=\\zz)",
            "(uid=\\+a)",
            "(uid=a**b)",
            "(uid>=a*)",
            "(:=a)",
            "(a:b:c:=d)",
            "(!)",
        ] {
            assert!(Filter::read(text).is_err(), "{text}");
        }
        assert!(Filter::read(&format!("{}(a=b){}", "(!".repeat(100), ")".repeat(100))).is_err());
    }

    #[test]
    fn all_comparisons_are_written() {
        for (text, wanted) in [
            ("(a=\\2a\\28)", &b"\xa3\x07\x04\x01a\x04\x02*("[..]),
            ("(a>=1)", b"\xa5\x06\x04\x01a\x04\x011"),
            ("(a<=1)", b"\xa6\x06\x04\x01a\x04\x011"),
            ("(a~=1)", b"\xa8\x06\x04\x01a\x04\x011"),
            ("(a=x*)", b"\xa4\x08\x04\x01a\x30\x03\x80\x01x"),
            ("(a=*x)", b"\xa4\x08\x04\x01a\x30\x03\x82\x01x"),
            ("(a=x*y*{user})", b"\xa4\x10\x04\x01a\x30\x0b\x80\x01x\x81\x01y\x82\x03a*b"),
            ("(u:1.2:=2)", b"\xa9\x0b\x81\x031.2\x82\x01u\x83\x012"),
            ("(u:dn:=2)", b"\xa9\x09\x82\x01u\x83\x012\x84\x01\xff"),
            ("(:1.2:=2)", b"\xa9\x08\x81\x031.2\x83\x012"),
        ] {
            let mut out = Vec::new();
            Filter::read(text).unwrap().write("a*b", "", &mut out);
            assert_eq!(out, wanted, "{text}: {out:02x?}");
        }
    }

    #[test]
    fn the_first_part_of_a_name_has_a_value() {
        for (dn, wanted) in [
            ("cn=admins,ou=groups", Some("admins")),
            ("CN = admins ,ou=groups", Some("admins")),
            ("cn=a\\, b\\2C\\c3\\a4\\ ,ou=groups", Some("a, b,\u{e4} ")),
            ("cn=a+ou=b", Some("a")),
            ("cn=", None),
            ("cn=a\\", None),
            ("cn=\\ff", None),
            ("ou=admins,cn=x", None),
            ("admins", None),
        ] {
            assert_eq!(first_value(dn, "cn").as_deref(), wanted, "{dn}");
        }
    }

    #[test]
    fn only_what_was_asked_for_counts() {
        for (description, asked, is_it) in [
            ("cn", "cn", true),
            ("CN", "cn", true),
            ("cn;lang-de", "cn", true),
            ("memberOf;range=0-1499", "memberOf", true),
            ("cn;binary;LANG-de", "cn;lang-DE", true),
            ("cn", "cn;lang-de", false),
            ("cn;lang-de-AT", "cn;lang-de", false),
            ("cname", "cn", false),
            ("other;cn", "cn", false),
            ("", "cn", false),
        ] {
            let entry = Entry { dn: String::new(), attributes: vec![(description.into(), vec!["x".into()])] };
            assert_eq!(entry.values(asked).count(), usize::from(is_it), "{description} {asked}");
        }
    }

    #[test]
    fn limits_are_integers_as_short_as_they_can_be() {
        let filter = Filter::read("(a=*)").unwrap();
        for (most, integer) in [
            (0, &b"\x02\x01\x00"[..]),
            (2, b"\x02\x01\x02"),
            (127, b"\x02\x01\x7f"),
            (200, b"\x02\x02\x00\xc8"),
            (1000, b"\x02\x02\x03\xe8"),
            (u16::MAX, b"\x02\x03\x00\xff\xff"),
        ] {
            let what = Search {
                base: "b",
                only_base: false,
                filter: &filter,
                user: "",
                dn: "",
                attribute: "cn",
                most,
            };
            let request = search(1, &what);
            // Behind the scope and the aliases, before the time.
            let expected = [b"\x0a\x01\x02\x0a\x01\x00", integer, b"\x02\x01\x05"].concat();
            assert!(request.windows(expected.len()).any(|part| part == expected), "{most}: {request:02x?}");
        }
    }

    #[test]
    fn answers_are_read_whole_or_not_at_all() {
        let bound = b"\x30\x0c\x02\x01\x01\x61\x07\x0a\x01\x31\x04\x00\x04\x00";
        assert_eq!(read(bound, 1), Ok(Some((Response::Bound(49), 14))));
        // The end of a search is none of a bind, and a code without a byte is none.
        assert_eq!(
            read(b"\x30\x0c\x02\x01\x01\x65\x07\x0a\x01\x00\x04\x00\x04\x00", 1),
            Ok(Some((Response::Searched(0), 14)))
        );
        assert!(read(b"\x30\x0b\x02\x01\x01\x61\x06\x0a\x00\x04\x00\x04\x00", 1).is_err());
        assert!(read(bound, 2).is_err());
        for end in 0..bound.len() {
            assert_eq!(read(&bound[..end], 1), Ok(None), "{end}");
        }
        let mut entry = Vec::new();
        let mut content = Vec::new();
        put(OCTETS, b"cn=a", &mut content);
        put(SEQUENCE, b"\x30\x0c\x04\x02cn\x31\x06\x04\x01x\x04\x01y", &mut content);
        put(
            SEQUENCE,
            &[b"\x02\x01\x07".to_vec(), {
                let mut out = Vec::new();
                put(0x64, &content, &mut out);
                out
            }]
            .concat(),
            &mut entry,
        );
        let length = entry.len();
        assert_eq!(
            read(&entry, 7),
            Ok(Some((
                Response::Entry(Entry {
                    dn: "cn=a".into(),
                    attributes: vec![("cn".into(), vec!["x".into(), "y".into()])]
                }),
                length
            )))
        );
        for junk in [
            &b"HTTP/1.1 400 Bad"[..],
            b"\x30\x80",
            b"\x30\x84\xff\xff\xff\xff",
            b"\x1f\x01",
            b"\x30\x02\x02\x00",
        ] {
            assert!(read(junk, 1).is_err(), "{junk:?}");
        }
        // A notice of disconnection.
        assert_eq!(read(b"\x30\x05\x02\x01\x00\x78\x00", 1), Ok(Some((Response::Disconnects, 7))));
    }
}
