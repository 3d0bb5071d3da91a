//! Media types: what a Content-Type header says, and which reading of a body it asks for.

use std::sync::{PoisonError, RwLock};

/// The type of the root part of an XOP package, and of one that is relayed alone.
pub const XOP: &str = "application/xop+xml";

/// A parsed `Content-Type` value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaType<'a> {
    /// `type/subtype`, trimmed, case as written.
    pub essence: &'a str,
    parameters: &'a str,
}

impl<'a> MediaType<'a> {
    /// Reads a header value; never fails, since whatever a peer sends must be answerable.
    pub fn parse(value: &'a str) -> MediaType<'a> {
        // Media types are short: a loop has found their end before a vectorised search has begun.
        let end = value.bytes().position(|b| b == b';' || b == b',').unwrap_or(value.len());
        let parameters = value[end..].strip_prefix(';').unwrap_or("");
        MediaType { essence: trim(&value[..end]), parameters }
    }

    /// The value of a parameter, without its quotes.
    pub fn parameter(&self, name: &str) -> Option<&'a str> {
        if self.parameters.is_empty() { None } else { parameter(self.parameters, name) }
    }

    /// The `charset` parameter.
    pub fn charset(&self) -> Option<&'a str> {
        self.parameter("charset").filter(|charset| !charset.is_empty())
    }

    /// Which reading of the body the type asks for.
    pub fn kind(&self) -> Kind {
        Kind::of(self.essence)
    }

    /// Of a `multipart/related` type: how its root part is read, by `start-info` for XOP packages, else by `type`.
    pub fn root_kind(&self) -> Kind {
        let type_of_root = self.parameter("type").unwrap_or("");
        let root = if type_of_root.eq_ignore_ascii_case(XOP) {
            self.parameter("start-info").unwrap_or("")
        } else {
            type_of_root
        };
        // A start-info may have parameters of its own.
        match Kind::of(MediaType::parse(root).essence) {
            Kind::Soap12 => Kind::Soap12,
            Kind::Xml => Kind::Xml,
            _ => Kind::Soap11,
        }
    }
}

/// The value of one of the parameters `a=1; b="2"`, without its quotes: what is inside of quotes separates nothing.
pub fn parameter<'a>(parameters: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = parameters;
    while !rest.is_empty() {
        let mut quoted = false;
        let mut escaped = false;
        let end = rest.bytes().position(|byte| {
            if escaped {
                escaped = false;
            } else if quoted && byte == b'\\' {
                escaped = true;
            } else if byte == b'"' {
                quoted = !quoted;
            }
            byte == b';' && !quoted
        });
        let (one, tail) = match end {
            Some(end) => (&rest[..end], &rest[end + 1..]),
            // A quote that nothing closes quotes nothing.
            None if quoted => rest.split_once(';').unwrap_or((rest, "")),
            None => (rest, ""),
        };
        rest = tail;
        if let Some((key, value)) = one.split_once('=')
            && key.trim().eq_ignore_ascii_case(name)
        {
            let value = value.trim();
            let inside = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
            return Some(inside.unwrap_or_else(|| value.trim_matches('"')));
        }
    }
    None
}

/// As [`str::trim`]; most values have nothing to trim, which their ends show.
fn trim(text: &str) -> &str {
    match text.as_bytes() {
        [first, .., last] if first.is_ascii_graphic() && last.is_ascii_graphic() => text,
        _ => text.trim(),
    }
}

/// The media types that [`Kind::name`] was given.
static NAMED: RwLock<Vec<(String, Kind)>> = RwLock::new(Vec::new());

/// How a body of some media type is read and written (the builders and formatters of WSO2's default mapping).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `text/xml`: a SOAP 1.1 envelope, or plain XML from a REST client.
    Soap11,
    /// `application/soap+xml`: a SOAP 1.2 envelope.
    Soap12,
    /// `application/xml` and every other XML type: plain XML.
    Xml,
    /// `application/json`, `…+json`.
    Json,
    /// `application/x-www-form-urlencoded`.
    Form,
    /// `text/plain`, `text/csv`, `text/event-stream`.
    Text,
    /// `application/octet-stream`, `application/binary`, images and other bytes.
    Binary,
    /// `multipart/form-data`: fields and files of a form.
    FormData,
    /// `multipart/related`: an envelope with attachments (MTOM, SwA).
    Related,
    /// An unregistered type: read as XML where it must be read at all.
    Unknown,
}

impl Kind {
    /// The kind of a media type without parameters.
    pub fn of(essence: &str) -> Kind {
        let is = |name: &str| essence.eq_ignore_ascii_case(name);
        let starts =
            |name: &str| essence.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name));
        let ends = |name: &str| {
            essence.len() >= name.len()
                && essence
                    .get(essence.len() - name.len()..)
                    .is_some_and(|tail| tail.eq_ignore_ascii_case(name))
        };
        if is("text/xml") {
            Kind::Soap11
        } else if is("application/soap+xml") {
            Kind::Soap12
        } else if is("application/json") || is("text/json") || is("text/javascript") || ends("+json") {
            Kind::Json
        } else if is("application/xml") || ends("+xml") {
            Kind::Xml
        } else if is("application/x-www-form-urlencoded") {
            Kind::Form
        } else if is("text/plain") || is("text/csv") || is("text/event-stream") {
            Kind::Text
        } else if starts("multipart/") {
            if is("multipart/related") {
                Kind::Related
            } else if is("multipart/form-data") {
                Kind::FormData
            } else {
                Kind::Unknown
            }
        } else if is("application/octet-stream")
            || is("application/binary")
            || starts("image/")
            || starts("audio/")
            || starts("video/")
        {
            Kind::Binary
        } else {
            let named = NAMED.read().unwrap_or_else(PoisonError::into_inner);
            named.iter().find(|(name, _)| is(name)).map_or(Kind::Unknown, |(_, kind)| *kind)
        }
    }

    /// Sets the kinds of further media types for the whole process, in place of those that were set before.
    pub fn name(types: Vec<(String, Kind)>) {
        *NAMED.write().unwrap_or_else(PoisonError::into_inner) = types;
    }

    /// Whether the body is XML text.
    pub fn is_xml(self) -> bool {
        matches!(self, Kind::Soap11 | Kind::Soap12 | Kind::Xml)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_are_read_with_their_parameters() {
        let soap = MediaType::parse("application/soap+xml; charset=\"UTF-8\"; action=\"urn:x\"");
        assert_eq!(
            (soap.kind(), soap.charset(), soap.parameter("action")),
            (Kind::Soap12, Some("UTF-8"), Some("urn:x"))
        );
        for (parameters, value) in [
            ("; a=1; b=2", Some("2")),
            ("; a=\"; b=no\"; B = \"2\"", Some("2")),
            ("; a=\"\\\"; b=no\"; b=2", Some("2")),
            ("; a=\"; b=2", Some("2")),
            ("; b", None),
            (";b=", Some("")),
        ] {
            assert_eq!(parameter(parameters, "b"), value, "{parameters}");
        }
        for (value, kind) in [
            ("text/xml", Kind::Soap11),
            ("TEXT/XML;charset=utf-8", Kind::Soap11),
            ("application/xml", Kind::Xml),
            ("application/atom+xml", Kind::Xml),
            ("application/vnd.api+json", Kind::Json),
            ("text/plain", Kind::Text),
            ("text/event-stream; charset=utf-8", Kind::Text),
            ("image/png", Kind::Binary),
            ("application/pdf", Kind::Unknown),
            ("multipart/form-data; boundary=b", Kind::FormData),
            ("Multipart/Related", Kind::Related),
            ("multipart/mixed", Kind::Unknown),
            ("", Kind::Unknown),
            ("é", Kind::Unknown),
        ] {
            assert_eq!(MediaType::parse(value).kind(), kind, "{value}");
        }
    }

    #[test]
    fn types_that_nothing_tells_are_what_was_said() {
        let registered = |name: &str, kind| (name.to_owned(), kind);
        Kind::name(vec![
            registered("application/x-own", Kind::Json),
            registered("application/xml", Kind::Binary),
        ]);
        let read = ["application/X-Own", "application/xml", "application/x-other"].map(Kind::of);
        Kind::name(Vec::new());
        assert_eq!(read, [Kind::Json, Kind::Xml, Kind::Unknown]);
        assert_eq!(Kind::of("application/x-own"), Kind::Unknown);
    }
}
