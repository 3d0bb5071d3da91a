//! Which API takes a request.
//!
//! Pure data, like the rest of [`resource`](super): [`ApiOrder`] sorts the APIs once, when the plan is built, and
//! then yields for a request those whose context, version, host and port fit, best first.

use super::Protocol;
use std::borrow::Cow;
use std::cmp::Reverse;

/// How the version of an API is part of its address.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum VersionStrategy {
    /// It has none.
    Default,
    /// It stands in the context in place of `{version}`.
    Context,
    /// It is the segment behind the context.
    Url,
}

/// What is known of an API when a request is to be given to one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiRule {
    /// Normalised by [`normalize_context`]: without a trailing slash, empty for `/`.
    pub context: String,
    /// Its version, exactly; only read with [`VersionStrategy::Url`].
    pub version: String,
    /// How the version is found.
    pub strategy: VersionStrategy,
    /// The host name in the header Host, exactly.
    pub hostname: Option<String>,
    /// The port in the header Host.
    pub port: Option<u16>,
    /// The one transport it is limited to.
    pub transport: Option<Protocol>,
}

/// What of a request decides about the API.
#[derive(Copy, Clone, Debug)]
pub struct ApiFacts<'a> {
    /// The request target as received, with its query; scheme and host of an absolute one do not count.
    pub path: &'a str,
    /// The header Host; where it is missing the listener's own `host:port` may stand in.
    pub host: Option<&'a str>,
    /// Whether it came over TLS.
    pub secure: bool,
}

/// An API that fits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiCandidate<'a> {
    /// Its position among the APIs.
    pub index: usize,
    /// `REST_SUB_REQUEST_PATH`: behind the context and the version of the url strategy, with the query; begins
    /// with `/`.
    pub sub_path: Cow<'a, str>,
    /// It is not offered on this transport: note `TRANSPORT_DENIED` and go on to the next.
    pub transport_denied: bool,
}

/// The context of an API without trailing slashes (so `/` is empty), `{version}` replaced with the context
/// strategy.
pub fn normalize_context(context: &str, version: &str, strategy: VersionStrategy) -> String {
    let context = match strategy {
        VersionStrategy::Context => Cow::Owned(context.replace("{version}", version)),
        _ => Cow::Borrowed(context),
    };
    context.trim_end_matches('/').to_owned()
}

/// The order in which APIs are asked.
#[derive(Clone, Default, Debug)]
pub struct ApiOrder(Vec<usize>);

impl ApiOrder {
    /// Those with a version first, then those without; longer contexts before shorter ones, `/` last of all, and
    /// otherwise in the order of definition.
    pub fn new(apis: &[ApiRule]) -> ApiOrder {
        let mut order: Vec<usize> = (0..apis.len()).collect();
        order.sort_by_key(|index| {
            apis.get(*index).map(|api| {
                (api.context.is_empty(), api.strategy == VersionStrategy::Default, Reverse(api.context.len()))
            })
        });
        ApiOrder(order)
    }

    /// The APIs that fit, best first. The first whose transport is not denied takes the request; where there is
    /// none, the main sequence does.
    pub fn candidates<'a>(
        &'a self,
        apis: &'a [ApiRule],
        request: ApiFacts<'a>,
    ) -> impl Iterator<Item = ApiCandidate<'a>> + 'a {
        let path = origin_form(request.path);
        self.0.iter().filter_map(move |index| {
            let api = apis.get(*index)?;
            let sub_path = behind(path, api)?;
            api.is_at(&request).then(|| ApiCandidate {
                index: *index,
                sub_path: match sub_path.starts_with('/') {
                    true => Cow::Borrowed(sub_path),
                    false => Cow::Owned(format!("/{sub_path}")),
                },
                transport_denied: api
                    .transport
                    .is_some_and(|only| (only == Protocol::Https) != request.secure),
            })
        })
    }
}

/// [`ApiOrder::candidates`] for an order that is not kept.
pub fn choose_api<'a>(apis: &[ApiRule], request: ApiFacts<'a>) -> Vec<ApiCandidate<'a>> {
    let candidates = ApiOrder::new(apis);
    let found = candidates.candidates(apis, request);
    found.map(|found| ApiCandidate { sub_path: Cow::Owned(found.sub_path.into_owned()), ..found }).collect()
}

impl ApiRule {
    /// For everything below a context.
    pub fn of_context(context: &str) -> ApiRule {
        ApiRule {
            context: normalize_context(context, "", VersionStrategy::Default),
            version: String::new(),
            strategy: VersionStrategy::Default,
            hostname: None,
            port: None,
            transport: None,
        }
    }

    fn is_at(&self, request: &ApiFacts<'_>) -> bool {
        if self.hostname.is_none() && self.port.is_none() {
            return true;
        }
        let Some(header) = request.host else { return false };
        let (host, port) = match header.rsplit_once(':') {
            // The colons of an IPv6 address stand within brackets.
            Some((host, port)) if !port.contains(']') => (host, port.parse::<u16>().ok()),
            _ => (header, Some(if request.secure { 443 } else { 80 })),
        };
        self.hostname.as_deref().is_none_or(|wanted| wanted == host)
            && self.port.is_none_or(|wanted| port == Some(wanted))
    }
}

/// An absolute request target without scheme and host.
fn origin_form(target: &str) -> &str {
    if target.starts_with('/') {
        return target;
    }
    match target.split_once("://") {
        Some((_, rest)) => rest.find(['/', '?']).and_then(|at| rest.get(at..)).unwrap_or("/"),
        None => target,
    }
}

/// What is behind the context and, with the url strategy, the version; `None` where they are not there.
fn behind<'a>(path: &'a str, api: &ApiRule) -> Option<&'a str> {
    let ends_here = |rest: &&str| rest.is_empty() || rest.starts_with(['/', '?']);
    let rest = path.strip_prefix(api.context.as_str()).filter(ends_here)?;
    if api.strategy != VersionStrategy::Url {
        return Some(rest);
    }
    rest.strip_prefix('/')?.strip_prefix(api.version.as_str()).filter(ends_here)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(context: &str, version: &str, strategy: VersionStrategy) -> ApiRule {
        let context = normalize_context(context, version, strategy);
        ApiRule {
            context,
            version: version.to_owned(),
            strategy,
            hostname: None,
            port: None,
            transport: None,
        }
    }

    fn plain(context: &str) -> ApiRule {
        ApiRule::of_context(context)
    }

    fn chosen(apis: &[ApiRule], path: &str) -> Vec<(usize, String)> {
        let facts = ApiFacts { path, host: Some("h"), secure: false };
        choose_api(apis, facts).into_iter().map(|c| (c.index, c.sub_path.into_owned())).collect()
    }

    #[test]
    fn contexts_and_versions() {
        let apis = [
            plain("/"),
            plain("/a"),
            plain("/a/b/"),
            api("/a", "1.0", VersionStrategy::Url),
            api("/v/{version}/a", "2", VersionStrategy::Context),
        ];
        for (path, expected) in [
            ("/a/b/c?x=1", vec![(2, "/c?x=1"), (1, "/b/c?x=1"), (0, "/a/b/c?x=1")]),
            ("/a/1.0/c", vec![(3, "/c"), (1, "/1.0/c"), (0, "/a/1.0/c")]),
            ("/a/1.0", vec![(3, "/"), (1, "/1.0"), (0, "/a/1.0")]),
            ("/a/1.0?q", vec![(3, "/?q"), (1, "/1.0?q"), (0, "/a/1.0?q")]),
            ("/a/1.00", vec![(1, "/1.00"), (0, "/a/1.00")]),
            ("/a", vec![(1, "/"), (0, "/a")]),
            ("/a?b=c", vec![(1, "/?b=c"), (0, "/a?b=c")]),
            ("/ab", vec![(0, "/ab")]),
            ("/A/b", vec![(0, "/A/b")]),
            ("/v/2/a/x", vec![(4, "/x"), (0, "/v/2/a/x")]),
            ("http://h:1/a/x", vec![(1, "/x"), (0, "/a/x")]),
            ("http://h", vec![(0, "/")]),
            ("/", vec![(0, "/")]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(i, p)| (i, p.to_owned())).collect();
            assert_eq!(chosen(&apis, path), expected, "{path}");
        }
    }

    #[test]
    fn hosts_ports_and_transports() {
        let apis = [
            ApiRule { hostname: Some("h".into()), ..plain("/a") },
            ApiRule { port: Some(8080), ..plain("/a") },
            ApiRule { port: Some(443), ..plain("/a") },
            ApiRule { transport: Some(Protocol::Https), ..plain("/a") },
        ];
        for (host, secure, expected) in [
            (Some("h"), false, vec![(0, false), (3, true)]),
            (Some("h:8080"), false, vec![(0, false), (1, false), (3, true)]),
            (Some("H"), true, vec![(2, false), (3, false)]),
            (Some("[::1]"), true, vec![(2, false), (3, false)]),
            (Some("[::1]:8080"), false, vec![(1, false), (3, true)]),
            (None, false, vec![(3, true)]),
        ] {
            let found = choose_api(&apis, ApiFacts { path: "/a", host, secure });
            let found: Vec<_> = found.into_iter().map(|c| (c.index, c.transport_denied)).collect();
            assert_eq!(found, expected, "{host:?} {secure}");
        }
    }
}
