//! How backends are reached: whether HTTP/2 is offered, and which forward proxy is between.

use message::regex::Pattern;
use std::net::Ipv4Addr;
use transport::{Proxy, Scheme, Target};

/// See the module.
#[derive(Default)]
pub struct Routes {
    /// Backends with https are offered HTTP/2.
    pub http2: bool,
    /// Who goes through which proxy: the first that matches counts.
    pub proxies: Vec<Route>,
    /// Where messages may be sent whose address is computed while they run (`http.dynamic_addresses`): see [`Routes::permits`]. `None`:
    /// everywhere.
    pub dynamic: Option<Vec<String>>,
}

/// Some backends, and the proxy to them.
pub struct Route {
    /// Which.
    pub hosts: Vec<Hosts>,
    /// `None`: they are reached without one.
    pub proxy: Option<Proxy>,
}

/// Names of hosts.
pub enum Hosts {
    /// With `*` for any letters.
    Written(String),
    /// As a regular expression for the whole name.
    Pattern(Pattern),
}

impl Hosts {
    fn contain(&self, host: &str) -> bool {
        match self {
            Hosts::Written(written) => fits(written.as_bytes(), host.as_bytes()),
            Hosts::Pattern(pattern) => pattern.matches(host) == Ok(true),
        }
    }
}

/// Whether a name is what is written, where `*` stands for any letters.
fn fits(written: &[u8], host: &[u8]) -> bool {
    // Where the last star was, and how far it reaches.
    let (mut at, mut from, mut star) = (0, 0, None);
    while from < host.len() {
        if written.get(at) == Some(&b'*') {
            star = Some((at, from));
            at += 1;
        } else if written.get(at).is_some_and(|letter| letter.eq_ignore_ascii_case(&host[from])) {
            (at, from) = (at + 1, from + 1);
        } else if let Some((of, reaches)) = star {
            star = Some((of, reaches + 1));
            (at, from) = (of + 1, reaches + 1);
        } else {
            return false;
        }
    }
    written[at..].iter().all(|letter| *letter == b'*')
}

/// Whether it is written for addresses of IPv4: digits, dots and stars, with a port or without.
fn is_of_addresses(written: &str) -> bool {
    written.contains(|letter: char| letter.is_ascii_digit())
        && written.split(':').next().is_some_and(|host| {
            host.contains('.')
                && host.chars().all(|letter| letter.is_ascii_digit() || matches!(letter, '.' | '*'))
        })
}

impl Routes {
    /// Whether a message may be sent to an address that was computed: `host` (of IPv6 without brackets) and `port` of a server.
    pub fn permits(&self, scheme: &str, host: &str, port: u16) -> bool {
        let Some(permitted) = &self.dynamic else { return true };
        let host = host.trim_end_matches('.');
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        permitted.iter().any(|written| {
            let (permitted_scheme, rest) = match written.split_once("://") {
                Some((permitted, rest)) => (Some(permitted), rest),
                None => (None, written.as_str()),
            };
            let with_port = rest.rsplit(']').next().unwrap_or(rest).contains(':');
            let server = if with_port { format!("{host}:{port}") } else { host.clone() };
            permitted_scheme.is_none_or(|permitted| permitted.eq_ignore_ascii_case(scheme))
                && fits(rest.as_bytes(), server.as_bytes())
                // `10.*` means addresses, and no name that begins like one: whoever owns `10.example` says where that leads.
                && (!is_of_addresses(rest) || host.parse::<Ipv4Addr>().is_ok())
        })
    }

    /// As [`Routes::permits`], for an address that is no server: of a file, or of a service of this bus.
    pub fn permits_text(&self, address: &str) -> bool {
        let Some(permitted) = &self.dynamic else { return true };
        let lower = address.to_ascii_lowercase();
        let leads_up = lower.split(['/', '\\', '?', '#']).any(|part| part.replace("%2e", ".") == "..");
        !leads_up && permitted.iter().any(|written| fits(written.as_bytes(), address.trim().as_bytes()))
    }

    /// The same backend, as it is to be reached.
    pub fn reach(&self, target: Target) -> Target {
        let target = match self
            .proxies
            .iter()
            .find(|route| route.hosts.iter().any(|names| names.contain(target.host())))
        {
            Some(Route { proxy: Some(proxy), .. }) => target.through(proxy),
            _ => target,
        };
        if self.http2 && target.scheme() == Scheme::Https { target.http2() } else { target }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_written_with_stars() {
        for (written, host, wanted) in [
            ("localhost", "LOCALHOST", true),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", false),
            ("10.*", "10.0.0.1", true),
            ("*a*b", "xaxbxb", true),
            ("*a*b", "xaxbx", false),
            ("*", "", true),
            ("", "a", false),
        ] {
            assert_eq!(fits(written.as_bytes(), host.as_bytes()), wanted, "{written} {host}");
        }
    }

    #[test]
    fn computed_addresses_are_those_that_are_listed() {
        let routes = |addresses: &[&str]| Routes {
            dynamic: Some(addresses.iter().map(|address| (*address).to_owned()).collect()),
            ..Routes::default()
        };
        assert!(Routes::default().permits("http", "169.254.169.254", 80));
        let permitted = routes(&[
            "*.inner.example",
            "10.0.0.7:8080",
            "https://bank.example",
            "vfs:file:///out/*",
            "[::1]:1",
            "192.168.*",
            "*.7.7:70",
        ]);
        for (scheme, host, port, wanted) in [
            ("http", "a.inner.example", 80, true),
            ("http", "A.INNER.example.", 81, true),
            ("http", "inner.example", 80, false),
            ("http", "a.inner.example.evil", 80, false),
            ("http", "10.0.0.7", 8080, true),
            ("http", "10.0.0.7", 80, false),
            ("https", "bank.example", 443, true),
            ("http", "bank.example", 80, false),
            ("http", "169.254.169.254", 80, false),
            ("http", "::1", 1, true),
            ("http", "::1", 2, false),
            ("http", "192.168.3.4", 80, true),
            ("http", "192.168.evil.example", 80, false),
            ("http", "1.2.7.7", 70, true),
            ("http", "a.7.7", 70, false),
        ] {
            assert_eq!(permitted.permits(scheme, host, port), wanted, "{scheme}://{host}:{port}");
        }
        for (address, wanted) in [
            ("vfs:file:///out/a/b.txt", true),
            ("vfs:file:///out/../etc/passwd", false),
            ("vfs:file:///out/%2E%2e/etc/passwd", false),
            ("vfs:file:///etc/passwd", false),
            ("local://services/Inner", false),
        ] {
            assert_eq!(permitted.permits_text(address), wanted, "{address}");
        }
        assert!(!routes(&[]).permits("http", "a", 80) && !routes(&[]).permits_text("local://services/A"));
        assert!(routes(&["*", "local://*"]).permits("http", "::1", 80));
    }

    #[test]
    fn the_first_route_counts() {
        let proxy = Proxy::new("p", 3128, None);
        let routes = Routes {
            dynamic: None,
            http2: false,
            proxies: vec![
                Route { hosts: vec![Hosts::Written("inner".into())], proxy: None },
                Route {
                    hosts: vec![Hosts::Pattern(Pattern::compile("x[0-9]+").unwrap())],
                    proxy: Some(Proxy::new("other", 1, None)),
                },
                Route { hosts: vec![Hosts::Written("*".into())], proxy: Some(proxy.clone()) },
            ],
        };
        let direct = Target::http("inner", 80);
        assert_eq!(routes.reach(direct.clone()), direct);
        assert_eq!(routes.reach(Target::http("a", 80)), Target::http("a", 80).through(&proxy));
        assert_ne!(routes.reach(Target::http("x12", 80)), Target::http("x12", 80).through(&proxy));
        assert_ne!(routes.reach(Target::http("x12", 80)), Target::http("x12", 80));
    }
}
