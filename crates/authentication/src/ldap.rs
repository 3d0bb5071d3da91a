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

/// A filter (RFC 4515): `&`, `|`, `!`, `=` and presence. `{user}` and `{dn}` in values are filled in.
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
    Equal(String, String),
    Present(String),
}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// It is not a filter, or uses more of RFC 4515 than that.
    pub fn read(text: &str) -> Result<Filter, String> {
        let mut rest = text.trim();
        let root = node(&mut rest, 0).filter(|_| rest.is_empty());
        match root {
            Some(root) => Ok(Filter { text: text.to_owned(), root }),
            None => Err(format!(
                "`{text}` is not a filter of `&`, `|`, `!` and `=`, like (&(objectClass=person)(uid={{user}}))"
            )),
        }
    }

    fn write(&self, user: &str, dn: &str, out: &mut Vec<u8>) {
        self.root.write(&|value| value.replace("{user}", user).replace("{dn}", dn), out);
    }
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
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-.;".contains(&byte);
            if name.is_empty() || !name.bytes().all(is_name) || value.contains(['(', '\\']) {
                return None;
            }
            *rest = &rest[end..];
            match value {
                "*" => Node::Present(name.to_owned()),
                value if value.contains('*') => return None,
                value => Node::Equal(name.to_owned(), value.to_owned()),
            }
        }
    };
    *rest = rest.strip_prefix(')')?;
    Some(parsed)
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
            Node::Equal(name, value) => {
                put(OCTETS, name.as_bytes(), &mut content);
                put(OCTETS, fill(value).as_bytes(), &mut content);
                0xa3
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

/// A search of the subtree below an entry (section 4.5), for at most `most` entries and one attribute of them.
pub fn search(
    number: u8,
    base: &str,
    filter: &Filter,
    user: &str,
    dn: &str,
    attribute: &str,
    most: u16,
) -> Vec<u8> {
    let (mut content, mut attributes) = (Vec::new(), Vec::new());
    put(OCTETS, base.as_bytes(), &mut content);
    put(ENUMERATED, &[2], &mut content);
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

/// The end of the connection (section 4.3).
pub fn unbind(number: u8) -> Vec<u8> {
    message(number, 0x42, &[])
}

/// A response of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// A bind or search has ended, with this code (section 4.1.9).
    Done(u32),
    /// An entry: its name, and the values of its attributes.
    Entry(String, Vec<String>),
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
    // Message 0 is a notification of the server: it disconnects (section 4.4.1).
    if id != [number] {
        return (id == [0] && operation.tag == 0x78).then_some(Response::Done(u32::MAX));
    }
    let mut inside = operation.inside();
    match operation.tag {
        0x61 | 0x65 => {
            let code = inside.value(ENUMERATED)?.content;
            let code = (code.len() <= 4).then_some(code)?;
            Some(Response::Done(code.iter().fold(0, |code, byte| code << 8 | u32::from(*byte))))
        }
        0x64 => {
            let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
            let dn = text(inside.value(OCTETS)?.content)?;
            let mut values = Vec::new();
            let mut attributes = inside.enter(SEQUENCE)?;
            while let Some(mut attribute) = attributes.enter(SEQUENCE) {
                attribute.value(OCTETS)?;
                let mut set = attribute.enter(SET)?;
                while let Some(value) = set.value(OCTETS) {
                    values.extend(text(value.content));
                }
            }
            Some(Response::Entry(dn, values))
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
            "(uid=a*b)",
            "(uid>=1)",
            "(u d=a)",
            "(uid=\\2a)",
            "(!)",
        ] {
            assert!(Filter::read(text).is_err(), "{text}");
        }
        assert!(Filter::read(&format!("{}(a=b){}", "(!".repeat(100), ")".repeat(100))).is_err());
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
            let request = search(1, "b", &filter, "", "", "cn", most);
            // Behind the scope and the aliases, before the time.
            let expected = [b"\x0a\x01\x02\x0a\x01\x00", integer, b"\x02\x01\x05"].concat();
            assert!(request.windows(expected.len()).any(|part| part == expected), "{most}: {request:02x?}");
        }
    }

    #[test]
    fn answers_are_read_whole_or_not_at_all() {
        let bound = b"\x30\x0c\x02\x01\x01\x61\x07\x0a\x01\x31\x04\x00\x04\x00";
        assert_eq!(read(bound, 1), Ok(Some((Response::Done(49), 14))));
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
            Ok(Some((Response::Entry("cn=a".into(), vec!["x".into(), "y".into()]), length)))
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
        assert_eq!(read(b"\x30\x05\x02\x01\x00\x78\x00", 1), Ok(Some((Response::Done(u32::MAX), 7))));
    }
}
