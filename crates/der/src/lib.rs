//! Values of ASN.1 in their encoded form (X.690): tag, length, content. Certificates, key stores and answers of OCSP have them in DER,
//! messages of LDAP in BER.
//!
//! Read are tags of one byte and definite lengths of up to four bytes, also those that could be shorter: whoever needs the one form of
//! DER compares the bytes of a value ([`Value::whole`]), as signatures do.

pub mod revocation_list;

/// The tag of truth values (X.690, section 8, as those below).
pub const BOOLEAN: u8 = 0x01;
/// The tag of integers.
pub const INTEGER: u8 = 0x02;
/// The tag of strings of bits.
pub const BIT_STRING: u8 = 0x03;
/// The tag of strings of octets.
pub const OCTETS: u8 = 0x04;
/// The tag of object identifiers.
pub const OID: u8 = 0x06;
/// The tag of enumerated values.
pub const ENUMERATED: u8 = 0x0a;
/// The tag of times with a year of two digits.
pub const UTC_TIME: u8 = 0x17;
/// The tag of times with a year of four digits.
pub const GENERALIZED_TIME: u8 = 0x18;
/// The tag of sequences.
pub const SEQUENCE: u8 = 0x30;
/// The tag of sets.
pub const SET: u8 = 0x31;

/// The bit of a tag whose content is values.
const CONSTRUCTED: u8 = 0x20;
/// The class of tags that have a meaning only where they are.
const CONTEXT: u8 = 0x80;

/// The bytes that are left to read.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(pub &'a [u8]);

/// One value.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    /// Its first byte.
    pub tag: u8,
    /// What follows its length.
    pub content: &'a [u8],
    /// With its tag and length.
    pub whole: &'a [u8],
}

/// The bytes of a value before its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its first byte.
    pub tag: u8,
    /// Bytes of the content, which may not be there yet.
    pub content: usize,
    /// Bytes of tag and length.
    pub length: usize,
}

impl Head {
    /// The head at the start of some bytes; `None`: they end within it.
    ///
    /// # Errors
    /// The tag has several bytes, or the length more than four or none.
    pub fn read(bytes: &[u8]) -> Result<Option<Head>, Unreadable> {
        let Some((&tag, rest)) = bytes.split_first() else { return Ok(None) };
        if tag & 0x1f == 0x1f {
            return Err(Unreadable);
        }
        let Some((&first, rest)) = rest.split_first() else { return Ok(None) };
        match first {
            0..=0x7f => Ok(Some(Head { tag, content: usize::from(first), length: 2 })),
            0x81..=0x84 => {
                let count = usize::from(first & 0x7f);
                let Some(bytes) = rest.get(..count) else { return Ok(None) };
                let content = bytes.iter().fold(0, |length, &byte| length << 8 | usize::from(byte));
                Ok(Some(Head { tag, content, length: 2 + count }))
            }
            _ => Err(Unreadable),
        }
    }
}

/// Bytes are in no form that is read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

impl<'a> Value<'a> {
    /// The values in it.
    pub fn inside(self) -> Reader<'a> {
        Reader(self.content)
    }

    /// The number of a tag of the context, `[0]` in ASN.1; `None`: it is of another class.
    pub fn number_in_context(self) -> Option<u8> {
        (self.tag & 0xc0 == CONTEXT).then_some(self.tag & 0x1f)
    }

    /// The digits of a time of a certificate or a list (RFC 5280, 4.1.2.5), year to second, the year with four: they compare as the times do.
    /// `None`: it is no such time.
    pub fn time_digits(self) -> Option<String> {
        let text = std::str::from_utf8(self.content).ok()?.strip_suffix('Z')?;
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        match (self.tag, text.len()) {
            (UTC_TIME, 12) if text < "50" => Some(format!("20{text}")),
            (UTC_TIME, 12) => Some(format!("19{text}")),
            (GENERALIZED_TIME, 14) => Some(text.to_owned()),
            _ => None,
        }
    }
}

impl<'a> Reader<'a> {
    /// Whether all was read.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The next value; `None`: there is none, or it is unreadable.
    pub fn any(&mut self) -> Option<Value<'a>> {
        let head = Head::read(self.0).ok()??;
        let (whole, rest) = self.0.split_at_checked(head.length.checked_add(head.content)?)?;
        self.0 = rest;
        Some(Value { tag: head.tag, content: &whole[head.length..], whole })
    }

    /// The next value, if it has this tag; else nothing is read.
    pub fn value(&mut self, tag: u8) -> Option<Value<'a>> {
        self.next_if(|value| value.tag == tag)
    }

    /// What is in the next value, if it has this tag; else nothing is read.
    pub fn enter(&mut self, tag: u8) -> Option<Reader<'a>> {
        self.value(tag).map(Value::inside)
    }

    /// What is in the next value, if its tag is of the context and has this number; else nothing is read.
    pub fn tagged(&mut self, number: u8) -> Option<Reader<'a>> {
        self.next_if(|value| value.number_in_context() == Some(number)).map(Value::inside)
    }

    /// The bytes of the next value, a bit string without unused bits.
    pub fn bits(&mut self) -> Option<&'a [u8]> {
        match self.value(BIT_STRING)?.content.split_first() {
            Some((0, bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// The next value, an integer from 0 to `u32::MAX`.
    pub fn number(&mut self) -> Option<u32> {
        let bytes = self.value(INTEGER)?.content;
        let significant = match bytes {
            [0, rest @ ..] => rest,
            [0x80..=0xff, ..] => return None,
            whole => whole,
        };
        (significant.len() <= 4)
            .then(|| significant.iter().fold(0, |value, &byte| value << 8 | u32::from(byte)))
    }

    fn next_if(&mut self, wanted: impl Fn(&Value<'a>) -> bool) -> Option<Value<'a>> {
        let before = *self;
        let value = self.any().filter(wanted);
        if value.is_none() {
            *self = before;
        }
        value
    }
}

/// A value in DER: the content is the parts, one after the other.
pub fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut out = Vec::with_capacity(length + 6);
    out.push(tag);
    match u8::try_from(length) {
        Ok(short @ 0..=0x7f) => out.push(short),
        _ => {
            let bytes = length.to_be_bytes();
            let significant = &bytes[bytes.iter().take_while(|&&byte| byte == 0).count()..];
            out.push(0x80 | significant.len() as u8);
            out.extend_from_slice(significant);
        }
    }
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out
}

/// A value whose content is other values, under a tag of the context.
pub fn tagged(number: u8, parts: &[&[u8]]) -> Vec<u8> {
    tlv(CONTEXT | CONSTRUCTED | number, parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for length in [0, 1, 0x7f, 0x80, 0xff, 0x100, 0xffff, 0x10000] {
            let content = vec![7; length];
            let bytes = tlv(OCTETS, &[&content[..length / 2], &content[length / 2..]]);
            let mut reader = Reader(&bytes);
            let value = reader.any().unwrap();
            assert_eq!((value.tag, value.content, value.whole), (OCTETS, &content[..], &bytes[..]));
            assert!(reader.is_empty());
            for end in [0, 1, bytes.len() - 1] {
                assert!(Reader(&bytes[..end]).any().is_none(), "{length} {end}");
            }
        }
    }

    #[test]
    fn a_value_of_another_tag_is_left() {
        let bytes =
            [tlv(INTEGER, &[&[0, 0xff]]), tagged(1, &[&tlv(OID, &[b"x"])]), tlv(BIT_STRING, &[b"\0ab"])]
                .concat();
        let mut reader = Reader(&bytes);
        assert!(reader.value(OCTETS).is_none() && reader.tagged(1).is_none() && reader.bits().is_none());
        assert_eq!(reader.number(), Some(255));
        assert!(reader.number().is_none() && reader.tagged(0).is_none());
        assert_eq!(reader.tagged(1).and_then(|mut inside| inside.value(OID)).unwrap().content, b"x");
        assert_eq!(reader.bits(), Some(&b"ab"[..]));
        assert!(reader.is_empty() && reader.any().is_none());
    }

    #[test]
    fn a_head_is_read_before_its_content() {
        let head = |tag, content, length| Ok(Some(Head { tag, content, length }));
        for (bytes, expected) in [
            (&b""[..], Ok(None)),
            (b"\x30", Ok(None)),
            (b"\x30\x05", head(SEQUENCE, 5, 2)),
            (b"\x30\x84\0\0\0\x05", head(SEQUENCE, 5, 6)),
            (b"\x30\x84\xff\xff\xff\xff", head(SEQUENCE, 0xffff_ffff, 6)),
            (b"\x30\x82\x01", Ok(None)),
            (b"\x30\x80", Err(Unreadable)),
            (b"\x30\x85\0\0\0\0\x05", Err(Unreadable)),
            (b"\x1f\x01", Err(Unreadable)),
        ] {
            assert_eq!(Head::read(bytes), expected, "{bytes:02x?}");
        }
    }

    #[test]
    fn numbers_are_positive_and_have_32_bits() {
        for (content, expected) in [
            (&[0x7f][..], Some(0x7f)),
            (&[0, 0xff, 0xff, 0xff, 0xff], Some(u32::MAX)),
            (&[1, 0, 0, 0, 0], None),
            (&[0xff], None),
        ] {
            assert_eq!(Reader(&tlv(INTEGER, &[content])).number(), expected, "{content:02x?}");
        }
    }
}
