//! Where requests go.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// An `http` or `https` URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Whether it is `https`.
    pub https: bool,
    /// Name or address, without the brackets of IPv6.
    pub host: String,
    /// Port; default 80 or 443.
    pub port: u16,
    /// Path and query, at least `/`.
    pub target: String,
}

impl Url {
    /// The first address of the host.
    ///
    /// # Errors
    /// The name has none.
    pub fn address(&self) -> Result<SocketAddr, String> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let mut found = found.map_err(|error| format!("{}: {error}", self.host))?;
        found.next().ok_or_else(|| format!("{} has no address", self.host))
    }

    /// Host and port as the header `Host` has them: a port only where it is not the usual one.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let usual = if self.https { 443 } else { 80 };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }

    /// The same server with another path and query.
    pub fn with_target(&self, target: &str) -> Url {
        Url { target: target.to_owned(), ..self.clone() }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.target)
    }
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Url, String> {
        let (scheme, rest) =
            text.split_once("://").ok_or_else(|| format!("'{text}' is not an http or https URL"))?;
        let https = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            other => return Err(format!("the scheme '{other}' is neither http nor https")),
        };
        let (authority, target) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        let target = target.split('#').next().unwrap_or_default();
        let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
        if target.bytes().any(|b| !b.is_ascii_graphic()) {
            return Err(format!("'{target}' has characters that must be percent-encoded"));
        }
        let bracketed = authority.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let (host, port) = match bracketed {
            Some((host, rest)) => (host, rest.strip_prefix(':')),
            None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
        };
        let port = match port {
            None if https => 443,
            None => 80,
            Some(port) => port.parse().map_err(|_| format!("'{port}' is not a port"))?,
        };
        if host.is_empty() || host.contains('@') {
            return Err(format!("'{text}' names no host"));
        }
        Ok(Url { https, host: host.to_owned(), port, target })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let cases = [
            ("http://h", Some(("http://h/", 80))),
            ("HTTP://h:8280/services/A?b=c#d", Some(("http://h:8280/services/A?b=c", 8280))),
            ("https://h?x", Some(("https://h/?x", 443))),
            ("http://[::1]:9000/", Some(("http://[::1]:9000/", 9000))),
            ("https://h:443/", Some(("https://h/", 443))),
            ("h:80", None),
            ("ftp://h", None),
            ("http://", None),
            ("http://h:x/", None),
            ("http://u@h/", None),
            ("http://h/a b", None),
        ];
        for (text, want) in cases {
            let found = text.parse::<Url>().ok();
            assert_eq!(
                found.map(|url| (url.to_string(), url.port)),
                want.map(|(u, p)| (u.to_owned(), p)),
                "{text}"
            );
        }
    }
}
