//! Reading and writing DER, as far as certificates and key stores need it.

/// Tags.
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTETS: u8 = 0x04;
pub(crate) const OID: u8 = 0x06;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;

/// The bytes that are left to read.
#[derive(Clone, Copy)]
pub(crate) struct Der<'a>(pub(crate) &'a [u8]);

/// One value.
#[derive(Clone, Copy)]
pub(crate) struct Value<'a> {
    pub(crate) tag: u8,
    /// Its content.
    pub(crate) content: &'a [u8],
    /// With its tag and length.
    pub(crate) whole: &'a [u8],
}

impl<'a> Value<'a> {
    pub(crate) fn inside(self) -> Der<'a> {
        Der(self.content)
    }
}

impl<'a> Der<'a> {
    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The next value; `None`: there is none, or it is not DER.
    pub(crate) fn any(&mut self) -> Option<Value<'a>> {
        let input = self.0;
        let (&tag, rest) = input.split_first()?;
        if tag & 0x1f == 0x1f {
            return None;
        }
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let count = usize::from(first & 0x7f);
                let bytes = rest.get(..count)?;
                let length = bytes.iter().fold(0usize, |length, &byte| length << 8 | usize::from(byte));
                (length, &rest[count..])
            }
            _ => return None,
        };
        let content = rest.get(..length)?;
        self.0 = &rest[length..];
        Some(Value { tag, content, whole: &input[..input.len() - self.0.len()] })
    }

    /// The next value, if it has this tag; else nothing is read.
    pub(crate) fn value(&mut self, tag: u8) -> Option<Value<'a>> {
        let before = *self;
        let value = self.any().filter(|value| value.tag == tag);
        if value.is_none() {
            *self = before;
        }
        value
    }

    /// What is in the next value of this tag.
    pub(crate) fn enter(&mut self, tag: u8) -> Option<Der<'a>> {
        self.value(tag).map(Value::inside)
    }

    /// A small number.
    pub(crate) fn number(&mut self) -> Option<u32> {
        let bytes = self.value(INTEGER)?.content;
        let significant = match bytes {
            [0, rest @ ..] => rest,
            whole => whole,
        };
        (significant.len() <= 4)
            .then(|| significant.iter().fold(0, |value, &byte| value << 8 | u32::from(byte)))
    }
}

/// A value as DER.
pub(crate) fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut out = vec![tag];
    match length {
        0..=0x7f => out.push(length as u8),
        _ => {
            let bytes = length.to_be_bytes();
            let first = bytes.iter().position(|&byte| byte != 0).unwrap_or(bytes.len() - 1);
            out.push(0x80 | (bytes.len() - first) as u8);
            out.extend_from_slice(&bytes[first..]);
        }
    }
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out
}
