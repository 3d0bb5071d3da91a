//! How the bytes of a payload are to be read: what its transport headers said when it arrived.

use crate::charset::for_reading;
use crate::coding::Coding;
use crate::headers::{Headers, StandardHeader};
use crate::media::{Kind, MediaType};
use encoding_rs::Encoding;
use std::cell::RefCell;

/// How the bytes of a payload are to be read: the facts of its transport headers, taken when it arrived.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// By media type.
    pub kind: Kind,
    /// The `charset` parameter, if it names a known encoding.
    pub charset: Option<&'static Encoding>,
    /// The peer speaks REST: `text/xml` is plain XML, not SOAP.
    pub rest: bool,
    /// `Content-Encoding`.
    pub coding: Coding,
}

impl Reading {
    /// The reading that header values ask for. `rest` as in [`Reading::rest`].
    pub fn of(content_type: Option<&str>, content_encoding: Option<&str>, rest: bool) -> Reading {
        Reading::of_bytes(content_type.map(str::as_bytes), content_encoding, rest)
    }

    /// Whether it is XML without an envelope.
    pub(super) fn is_plain_xml(&self) -> bool {
        match self.kind {
            Kind::Xml => true,
            Kind::Soap11 => self.rest,
            _ => false,
        }
    }

    /// The reading of a body that arrived with these headers. `rest` as in [`Reading::rest`].
    #[inline]
    pub fn arrived(headers: &Headers, rest: bool) -> Reading {
        let content_type = headers.get_known_bytes(StandardHeader::ContentType);
        Reading::of_bytes(content_type, headers.get_known(StandardHeader::ContentEncoding), rest)
    }

    /// As [`Reading::of`], of the header as it arrived.
    pub fn of_bytes(content_type: Option<&[u8]>, content_encoding: Option<&str>, rest: bool) -> Reading {
        let (kind, charset) = match content_type {
            Some(content_type) => kind_and_charset(content_type),
            None => (Kind::Binary, None),
        };
        Reading { kind, charset, rest, coding: Coding::of(content_encoding) }
    }

    /// Plain XML in UTF-8.
    pub const XML: Reading = Reading { kind: Kind::Xml, charset: None, rest: true, coding: Coding::Identity };
}

/// What a Content-Type says. The answer to the last one is kept by the thread: most messages have the type of the one
/// before.
fn kind_and_charset(content_type: &[u8]) -> (Kind, Option<&'static Encoding>) {
    const LONGEST: usize = 64;
    type Last = (Vec<u8>, Kind, Option<&'static Encoding>);
    thread_local! {
        static LAST: RefCell<Last> = const { RefCell::new((Vec::new(), Kind::Unknown, None)) };
    }
    let parsed = || match std::str::from_utf8(content_type).map(MediaType::parse) {
        Ok(media) => (media.kind(), media.charset().and_then(for_reading)),
        Err(_) => (Kind::Binary, None),
    };
    if content_type.len() > LONGEST {
        return parsed();
    }
    // Fails only while the thread ends.
    let kept = LAST.try_with(|last| {
        let mut last = last.borrow_mut();
        if last.0 != content_type {
            let (kind, charset) = parsed();
            last.0.clear();
            last.0.extend_from_slice(content_type);
            (last.1, last.2) = (kind, charset);
        }
        (last.1, last.2)
    });
    kept.unwrap_or_else(|_| parsed())
}
