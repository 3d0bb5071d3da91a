//! The parts of an address, as routers and rewriting rules name them.

/// A part of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    Protocol,
    User,
    Host,
    Port,
    Path,
    Query,
    /// What follows `#`.
    Reference,
}

/// Their names in configuration.
pub(crate) const PARTS: &[&str] = &["protocol", "user", "host", "port", "path", "query", "ref", "full"];

impl Part {
    /// The part of a name; nothing: the whole address.
    pub(crate) fn of(name: &str) -> Option<Part> {
        Some(match name {
            "" | "full" => Part::Whole,
            "protocol" => Part::Protocol,
            "user" => Part::User,
            "host" => Part::Host,
            "port" => Part::Port,
            "path" => Part::Path,
            "query" => Part::Query,
            "ref" => Part::Reference,
            _ => return None,
        })
    }
}

/// An address in its parts, as written: nothing is decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    pub(crate) protocol: Option<&'a str>,
    pub(crate) user: Option<&'a str>,
    /// An IPv6 address with its brackets.
    pub(crate) host: Option<&'a str>,
    pub(crate) port: Option<&'a str>,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    pub(crate) reference: Option<&'a str>,
}

impl<'a> Parts<'a> {
    /// Takes an address apart. There is none that cannot be: what looks like no URL is a path.
    pub(crate) fn of(url: &'a str) -> Parts<'a> {
        let (rest, reference) = cut(url, '#');
        let (rest, query) = cut(rest, '?');
        let (protocol, rest) = match rest.split_once("://") {
            Some((protocol, _)) => (Some(protocol), &rest[protocol.len() + 1..]),
            None => (None, rest),
        };
        let Some(rest) = rest.strip_prefix("//") else {
            return Parts { protocol, path: rest, query, reference, ..Parts::default() };
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        // The colons of an IPv6 address are inside of its brackets.
        let colon = host.rfind(':').filter(|&at| host.rfind(']').is_none_or(|bracket| bracket < at));
        let (host, port) = match colon {
            Some(at) => (&host[..at], Some(&host[at + 1..])),
            None => (host, None),
        };
        Parts { protocol, user, host: Some(host), port, path, query, reference }
    }

    /// One part; the whole address has to be asked elsewhere.
    pub(crate) fn part(&self, part: Part) -> Option<&'a str> {
        match part {
            Part::Whole => None,
            Part::Protocol => self.protocol,
            Part::User => self.user,
            Part::Host => self.host,
            Part::Port => self.port,
            Part::Path => Some(self.path),
            Part::Query => self.query,
            Part::Reference => self.reference,
        }
    }
}

fn cut(text: &str, at: char) -> (&str, Option<&str>) {
    match text.split_once(at) {
        Some((before, behind)) => (before, Some(behind)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_parts() {
        for (url, host, port, path) in [
            ("http://h/x?q", Some("h"), None, "/x"),
            ("http://u:p@h:81", Some("h"), Some("81"), ""),
            ("http://[::1]:8080", Some("[::1]"), Some("8080"), ""),
            ("http://[::1]/", Some("[::1]"), None, "/"),
            ("//h/x", Some("h"), None, "/x"),
            ("/only?x=http://y", None, None, "/only"),
            ("urn:a", None, None, "urn:a"),
            ("", None, None, ""),
        ] {
            let parts = Parts::of(url);
            assert_eq!((parts.host, parts.port, parts.path), (host, port, path), "{url}");
        }
        let parts = Parts::of("http://u@h/p?q?#r#s");
        assert_eq!((parts.user, parts.query, parts.reference), (Some("u"), Some("q?"), Some("r#s")));
        for name in PARTS {
            assert!(Part::of(name).is_some(), "{name}");
        }
        assert_eq!(Part::of("hosts"), None);
    }
}
