//! DER: values one after the other, read by asn1-rs, and written.

use x509_parser::asn1_rs::{Any, Class, FromDer, Tag};

/// What is left to read.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

/// One value.
pub(crate) struct Value<'a> {
    pub(crate) class: Class,
    pub(crate) tag: u32,
    /// Its content.
    pub(crate) content: &'a [u8],
    /// With its tag and length.
    pub(crate) whole: &'a [u8],
}

impl<'a> Input<'a> {
    /// The next value; `None`: there is none, or it is not DER.
    pub(crate) fn any(&mut self) -> Option<Value<'a>> {
        let (rest, any) = Any::from_der(self.0).ok()?;
        let whole = &self.0[..self.0.len() - rest.len()];
        self.0 = rest;
        Some(Value { class: any.class(), tag: any.tag().0, content: any.data, whole })
    }

    /// The next value if it is of this class and tag; else nothing is read.
    fn of(&mut self, class: Class, tag: u32) -> Option<Value<'a>> {
        let before = *self;
        let value = self.any().filter(|value| value.class == class && value.tag == tag);
        if value.is_none() {
            *self = before;
        }
        value
    }

    pub(crate) fn value(&mut self, tag: Tag) -> Option<Value<'a>> {
        self.of(Class::Universal, tag.0)
    }

    /// The content of the next value, if its tag is of the context and has this number.
    pub(crate) fn tagged(&mut self, number: u32) -> Option<Input<'a>> {
        self.of(Class::ContextSpecific, number).map(|value| Input(value.content))
    }

    pub(crate) fn sequence(&mut self) -> Option<Input<'a>> {
        self.value(Tag::Sequence).map(|value| Input(value.content))
    }

    /// The bytes of a bit string, which has no unused bits.
    pub(crate) fn bits(&mut self) -> Option<&'a [u8]> {
        match self.value(Tag::BitString)?.content.split_first() {
            Some((0, bytes)) => Some(bytes),
            _ => None,
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const OCTETS: u8 = 0x04;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const OID: u8 = 0x06;

/// A value as DER.
pub(crate) fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut out = vec![tag];
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
