//! Where a request goes: scheme, host, port and TLS profile.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Arc, LazyLock};

use crate::{ClientTls, Proxy};

/// `http` or `https`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scheme {
    /// Plain TCP.
    Http,
    /// TLS.
    Https,
}

impl Scheme {
    /// Port used when none is given.
    pub fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// A backend; the key of its connection pool. Cheap to clone, compared by value.
#[derive(Clone)]
pub struct Target(Arc<Inner>);

struct Inner {
    scheme: Scheme,
    host: String,
    port: u16,
    /// Value of the Host field: the port only where it is not the scheme's own.
    authority: String,
    /// `Host: authority CR LF`, unless that could break out of its line.
    host_line: Option<String>,
    tls: Option<ClientTls>,
    /// The same target in HTTP/1.1, of one that is spoken to in HTTP/2: with TLS if the server takes it.
    http1: Option<Target>,
    /// What is between here and there.
    proxy: Option<Proxy>,
    /// The proxy opens a tunnel although neither TLS nor HTTP/2 is spoken.
    tunnelled: bool,
    /// Of all that is compared, made once because a pool is looked up per request.
    hash: u64,
}

static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

impl Target {
    /// A target without TLS. `host` is a name or an address, IPv6 with or without brackets.
    pub fn http(host: &str, port: u16) -> Target {
        Target::build(Scheme::Http, host, port, None, None, None, false)
    }

    /// A target with TLS after that profile.
    pub fn https(host: &str, port: u16, profile: ClientTls) -> Target {
        Target::build(Scheme::Https, host, port, Some(profile), None, None, false)
    }

    /// The same target, spoken to in HTTP/2: where it has TLS if the server takes it, else whatever the server speaks.
    pub fn http2(&self) -> Target {
        if self.0.http1.is_some() {
            return self.clone();
        }
        self.with(Some(self.clone()), self.0.proxy.clone())
    }

    /// The same target, reached through a proxy.
    pub fn through(&self, proxy: &Proxy) -> Target {
        let http1 = self.0.http1.as_ref().map(|http1| http1.through(proxy));
        self.with(http1, Some(proxy.clone()))
    }

    fn with(&self, http1: Option<Target>, proxy: Option<Proxy>) -> Target {
        let parts = &*self.0;
        Target::build(parts.scheme, &parts.host, parts.port, parts.tls.clone(), http1, proxy, false)
    }

    /// The same target for a WebSocket, if that is another one: what a proxy passes on as a message loses its upgrade there, so
    /// it is asked for a tunnel (RFC 6455, 4.1).
    pub(crate) fn for_upgrade(&self) -> Option<Target> {
        let parts = &*self.0;
        let proxy = parts.proxy.as_ref().filter(|_| parts.tls.is_none() && !parts.tunnelled)?;
        Some(Target::build(parts.scheme, &parts.host, parts.port, None, None, Some(proxy.clone()), true))
    }

    fn build(
        scheme: Scheme,
        host: &str,
        port: u16,
        tls: Option<ClientTls>,
        http1: Option<Target>,
        proxy: Option<Proxy>,
        tunnelled: bool,
    ) -> Target {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let name = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let authority = if port == scheme.default_port() { name } else { format!("{name}:{port}") };
        let profile = tls.as_ref().map(ClientTls::id);
        let hash = HASHER.hash_one((scheme, &authority, profile, http1.is_some(), &proxy, tunnelled));
        let sound = authority.bytes().all(|b| b.is_ascii_graphic());
        let host_line = sound.then(|| format!("Host: {authority}\r\n"));
        Target(Arc::new(Inner {
            scheme,
            host,
            port,
            authority,
            host_line,
            tls,
            http1,
            proxy,
            tunnelled,
            hash,
        }))
    }

    /// Scheme of the target.
    pub fn scheme(&self) -> Scheme {
        self.0.scheme
    }

    /// Host name or address, lower case, without brackets.
    pub fn host(&self) -> &str {
        &self.0.host
    }

    /// Port number.
    pub fn port(&self) -> u16 {
        self.0.port
    }

    /// What the Host field says: `host[:port]`.
    pub fn authority(&self) -> &str {
        &self.0.authority
    }

    /// What a tunnel leads to: always with the port.
    pub(crate) fn host_and_port(&self) -> String {
        let Inner { host, port, .. } = &*self.0;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// The Host field; `None` if the authority has to be checked.
    pub(crate) fn host_line(&self) -> Option<&str> {
        self.0.host_line.as_deref()
    }

    /// The same target in HTTP/1.1, where this one is spoken to in HTTP/2.
    pub(crate) fn http1(&self) -> Option<&Target> {
        self.0.http1.as_ref()
    }

    /// What is between here and there, and is asked for a tunnel.
    pub(crate) fn tunnel(&self) -> Option<&Proxy> {
        let parts = &*self.0;
        parts.proxy.as_ref().filter(|_| parts.tls.is_some() || parts.http1.is_some() || parts.tunnelled)
    }

    /// What is between here and there.
    pub(crate) fn proxy(&self) -> Option<&Proxy> {
        self.0.proxy.as_ref()
    }

    /// The TLS profile of an https target.
    pub fn tls(&self) -> Option<&ClientTls> {
        self.0.tls.as_ref()
    }
}

impl PartialEq for Target {
    fn eq(&self, other: &Target) -> bool {
        let (a, b) = (&*self.0, &*other.0);
        Arc::ptr_eq(&self.0, &other.0)
            || (a.hash == b.hash
                && a.scheme == b.scheme
                && a.authority == b.authority
                && a.http1.is_some() == b.http1.is_some()
                && a.proxy == b.proxy
                && a.tunnelled == b.tunnelled
                && a.tls.as_ref().map(ClientTls::id) == b.tls.as_ref().map(ClientTls::id))
    }
}

impl Eq for Target {}

impl Hash for Target {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.0.scheme == Scheme::Http { "http" } else { "https" };
        write!(f, "{scheme}://{}", self.0.authority)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authority_and_equality() {
        for (host, port, authority) in [
            ("Example.COM", 80, "example.com"),
            ("a", 8080, "a:8080"),
            ("[::1]", 80, "[::1]"),
            ("::1", 9000, "[::1]:9000"),
        ] {
            assert_eq!(Target::http(host, port).authority(), authority);
        }
        assert_eq!(Target::http("A", 1), Target::http("a", 1));
        assert_ne!(Target::http("a", 1), Target::http("a", 2));
        assert_eq!(Target::http("a", 1).to_string(), "http://a:1");
        let http2 = Target::http("a", 1).http2();
        assert_ne!(http2, Target::http("a", 1));
        assert_eq!(http2, Target::http("a", 1).http2());
        assert_eq!(http2.http2().http1(), Some(&Target::http("a", 1)));
        let (one, other) = (Proxy::new("p", 1, None), Proxy::new("p", 1, Some("Basic x".into())));
        let through = Target::http("a", 1).through(&one);
        assert_ne!(through, Target::http("a", 1));
        assert_ne!(through, Target::http("a", 1).through(&other));
        assert_eq!(through.http2(), Target::http("a", 1).http2().through(&one));
        // A tunnel for what the proxy would read otherwise.
        let upgrade = through.for_upgrade().expect("through a proxy, and without TLS");
        assert_ne!(upgrade, through);
        assert!(
            through.tunnel().is_none() && upgrade.tunnel().is_some() && through.http2().tunnel().is_some()
        );
        assert!(upgrade.for_upgrade().is_none() && Target::http("a", 1).for_upgrade().is_none());
    }
}
