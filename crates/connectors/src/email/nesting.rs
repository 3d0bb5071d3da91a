//! E-mails within e-mails.
//!
//! The parser of the library recurses where it copies and frees them, and an e-mail of a megabyte can nest thirty thousand times.
//! So those that nest deeper than any program makes them, and those that are encoded (which RFC 2046, 5.2.1, rules out, and
//! hides what is inside), are given to it as files.
//!
//! It looks for the first boundary of a multipart in all that comes behind it, which takes long where there are many without one. So there
//! are fewer of them, the larger an e-mail is; one with more is a single file.

use std::borrow::Cow;

/// So deep e-mails nest.
const DEEPEST: usize = 32;

/// So many bytes are looked through for boundaries.
const MOST_SCANNED: usize = 1 << 30;

/// Subtypes of parts that have e-mails in them.
const WORDS: [&[u8]; 3] = [b"rfc822", b"global", b"digest"];
const MULTIPART: &[u8] = b"multipart";
/// As they stand in [`tamed`] e-mails.
const PLAIN: [(&str, &str); 4] =
    [("xfc822", "rfc822"), ("xlobal", "global"), ("xigest", "digest"), ("xultipart", "multipart")];

/// A field of the header of a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    ContentType,
    TransferEncoding,
    Other,
}

/// The e-mail, with other types of the same length where the parser must not look into parts.
pub(super) fn tamed(content: &[u8]) -> Cow<'_, [u8]> {
    let found = Structure::of(content);
    let is_scanned_long = found.multiparts.len().saturating_mul(content.len()) > MOST_SCANNED;
    if !found.is_hostile && !is_scanned_long {
        return Cow::Borrowed(content);
    }
    let mut tamed = content.to_vec();
    let multiparts = found.multiparts.into_iter().filter(|_| is_scanned_long);
    for place in found.places.into_iter().chain(multiparts) {
        if let Some(first) = tamed.get_mut(place) {
            *first = b'x';
        }
    }
    Cow::Owned(tamed)
}

/// A type or subtype as the e-mail has it.
pub(super) fn word(found: &str) -> &str {
    PLAIN.iter().find(|(plain, _)| *plain == found).map_or(found, |(_, word)| word)
}

struct Structure {
    /// Where the subtypes of parts with e-mails in them begin.
    places: Vec<usize>,
    /// Where types of multiparts begin.
    multiparts: Vec<usize>,
    is_hostile: bool,
}

impl Structure {
    /// Looks at everything that may be the header of a part, which is more than the parser takes for one.
    fn of(content: &[u8]) -> Structure {
        let (mut places, mut multiparts, mut field) = (Vec::new(), Vec::new(), Field::Other);
        let (mut block_nests, mut block_is_encoded) = (false, false);
        let (mut has_digest, mut has_encoded, mut is_hostile) = (false, false, false);
        let mut at = 0;
        for line in content.split_inclusive(|byte| *byte == b'\n') {
            let start = at;
            at += line.len();
            if matches!(line, b"\n" | b"\r\n") {
                (field, block_nests, block_is_encoded) = (Field::Other, false, false);
                continue;
            }
            let is_folded = line.starts_with(b" ") || line.starts_with(b"\t");
            match field_of(line) {
                // The line goes on with the field before.
                (Field::Other, _) if is_folded => {}
                (other, _) => field = other,
            }
            match field {
                Field::ContentType => {
                    for (offset, window) in line.windows(6).enumerate() {
                        if WORDS.iter().any(|word| window.eq_ignore_ascii_case(word)) {
                            places.push(start + offset);
                            has_digest |= window.eq_ignore_ascii_case(b"digest");
                            block_nests = true;
                        }
                    }
                    for (offset, window) in line.windows(MULTIPART.len()).enumerate() {
                        if window.eq_ignore_ascii_case(MULTIPART) {
                            multiparts.push(start + offset);
                        }
                    }
                }
                Field::TransferEncoding => {
                    let value = field_of(line).1.unwrap_or(line).trim_ascii();
                    let is_plain = [&b""[..], b"7bit", b"8bit", b"binary"]
                        .iter()
                        .any(|plain| value.eq_ignore_ascii_case(plain));
                    block_is_encoded |= !is_plain;
                    has_encoded |= !is_plain;
                }
                Field::Other => {}
            }
            is_hostile |= block_nests && block_is_encoded;
        }
        // A part of a digest is an e-mail without saying so.
        is_hostile |= places.len() > DEEPEST || (has_digest && has_encoded);
        Structure { places, multiparts, is_hostile }
    }
}

/// The field that a line begins, and its value. The parser passes over white space within names, and colons ahead of them.
fn field_of(line: &[u8]) -> (Field, Option<&[u8]>) {
    let begin =
        line.iter().position(|byte| *byte != b':' && !byte.is_ascii_whitespace()).unwrap_or(line.len());
    let line = &line[begin..];
    let Some(end) = line.iter().position(|byte| *byte == b':') else { return (Field::Other, None) };
    let is = |name: &str| {
        let letters = line[..end].iter().filter(|byte| !byte.is_ascii_whitespace());
        letters.map(u8::to_ascii_lowercase).eq(name.bytes())
    };
    let field = match () {
        () if is("content-type") => Field::ContentType,
        () if is("content-transfer-encoding") => Field::TransferEncoding,
        () => Field::Other,
    };
    (field, Some(&line[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nests_too_deep_or_is_encoded_is_tamed() {
        let nested =
            |times: usize| "Content-Type: message/rfc822\r\n\r\n".repeat(times) + "Subject: s\r\n\r\nt";
        let digest = "Content-Type: multipart/digest; boundary=a\r\n\r\n--a\r\n";
        for (content, is_hostile) in [
            (nested(1), false),
            (nested(DEEPEST), false),
            (nested(DEEPEST + 1), true),
            ("Content-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n\r\nYQ==".to_owned(), false),
            ("Content-Type: message/rfc822\r\nContent-Transfer-Encoding: 7BIT\r\n\r\na".to_owned(), false),
            ("Content-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\na".to_owned(), true),
            (
                "content-transfer-ENCODING:\r\n Base64\r\ncontent-type:\r\n\tMESSAGE/Global\r\n\r\n"
                    .to_owned(),
                true,
            ),
            (
                " :C ontent-Type : (a) message / rfc822\nContent-Transfer-Encoding:=?u?q?b?=\n\n".to_owned(),
                true,
            ),
            (digest.to_owned() + "\r\n\r\na", false),
            (digest.to_owned() + "Content-Transfer-Encoding: quoted-printable\r\n\r\na", true),
            (
                "Subject: global digest of rfc822, base64\r\n\r\nContent-Transfer-Encoding: base64"
                    .to_owned(),
                false,
            ),
            (String::new(), false),
            (":".to_owned(), false),
        ] {
            let tamed = tamed(content.as_bytes());
            assert_eq!(matches!(tamed, Cow::Owned(_)), is_hostile, "{content}");
            assert_eq!(tamed.len(), content.len());
        }
        assert_eq!((word("xfc822"), word("xultipart"), word("plain")), ("rfc822", "multipart", "plain"));
    }
}
