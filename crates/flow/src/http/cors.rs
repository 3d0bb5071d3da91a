//! Cross-origin requests to APIs: what `synapse.rest.CORSConfig.*` says for all of them, and what a `CORSRequestHandler`
//! says for one.

use crate::runtime::artifacts::Cors;
use crate::runtime::context::Context;
use message::Headers;
use std::sync::Arc;

/// What the answer to one request says, noted when it came: the answer has other headers.
#[derive(Debug)]
pub(crate) struct Allowed {
    cors: Arc<Cors>,
    /// The origin that may read the answer.
    origin: String,
}

/// Whether any origin is allowed. Then the answer is nobody's in particular: it has no credentials.
fn is_for_all(cors: &Cors) -> bool {
    cors.origins.iter().any(|allowed| allowed == "*")
}

/// What `Access-Control-Allow-Origin` says to a request; empty: nothing.
fn origin_for(cors: &Cors, origin: Option<&str>) -> String {
    match origin {
        _ if is_for_all(cors) => "*".to_owned(),
        Some(origin) if cors.origins.iter().any(|allowed| allowed == origin) => origin.to_owned(),
        _ => String::new(),
    }
}

/// What the answer to a request will say, and whether its origin is none of those that are listed; `None`: nothing is said.
fn judge(cors: &Arc<Cors>, headers: &Headers) -> Option<(Allowed, bool)> {
    if cors.disabled || cors.origins.is_empty() && cors.headers.is_empty() {
        return None;
    }
    let mut of_request = headers.get_all("Origin");
    let first = of_request.next();
    // Of two, a proxy before this may have looked at the other one.
    let only = first.filter(|_| of_request.next().is_none());
    let origin = origin_for(cors, only.and_then(|origin| std::str::from_utf8(origin).ok()));
    let is_refused = first.is_some() && origin.is_empty() && !cors.origins.is_empty();
    Some((Allowed { cors: Arc::clone(cors), origin }, is_refused))
}

/// Notes what the answer will say; `false`: the origin is none of those that are listed.
pub(crate) fn note(cors: &Arc<Cors>, context: &mut Context) -> bool {
    let Some((allowed, is_refused)) = judge(cors, &context.headers) else { return true };
    context.attach(Arc::new(allowed));
    !is_refused
}

/// As [`complete`], for the answer to a request that is refused before anything is noted: `cors` is what holds for it, of which the last counts.
#[cold]
pub(crate) fn complete_refusal<'a>(
    cors: impl Iterator<Item = &'a Arc<Cors>>,
    request: &Headers,
    headers: &mut Headers,
) {
    let judged = cors.filter_map(|cors| judge(cors, request)).last();
    if let Some((allowed, _)) = judged.filter(|(allowed, _)| !allowed.origin.is_empty()) {
        admit(&allowed.cors, Some(&allowed), headers);
    }
}

/// Puts into the headers of an answer what it says to other origins. `methods` are those of the resource.
pub(crate) fn announce(context: &Context, methods: &str, headers: &mut Headers) {
    let noted = context.attached::<Allowed>();
    let cors = noted.as_ref().map_or(&context.services().settings.cors, |noted| &noted.cors);
    if cors.disabled {
        return;
    }
    let methods = if cors.methods.is_empty() { methods } else { &cors.methods };
    headers.set("Access-Control-Allow-Methods", methods);
    admit(cors, noted.as_deref(), headers);
}

/// Puts into the headers of an answer that no flow has made who may read it: a page shall learn why its request failed.
pub(crate) fn complete(context: &Context, headers: &mut Headers) {
    let noted = context.attached::<Allowed>();
    if let Some(noted) = noted.filter(|noted| !noted.origin.is_empty())
        && !headers.contains("Access-Control-Allow-Origin")
    {
        admit(&noted.cors, Some(&noted), headers);
    }
}

fn admit(cors: &Cors, noted: Option<&Allowed>, headers: &mut Headers) {
    if !cors.origins.is_empty() && !is_for_all(cors) {
        // What is said to one origin, or to none, a cache must not give to another.
        headers.append("Vary", "Origin");
    }
    if !cors.origins.is_empty() {
        // Who may read the answer, and whether with credentials, is said here and not by a backend.
        headers.remove("Access-Control-Allow-Origin");
        headers.remove("Access-Control-Allow-Credentials");
    }
    let Some(noted) = noted.filter(|noted| !noted.origin.is_empty()) else { return };
    headers.set("Access-Control-Allow-Origin", &noted.origin);
    if !cors.headers.is_empty() {
        headers.set("Access-Control-Allow-Headers", &cors.headers);
    }
    // Not where all origins are allowed: each site could read what a user sees who is logged in. Each can also have the opaque origin.
    if cors.credentials && !is_for_all(cors) && noted.origin != Cors::OPAQUE {
        headers.set("Access-Control-Allow-Credentials", "true");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins() {
        let cors = |origins: &[&str], credentials| Cors {
            origins: origins.iter().map(|&origin| origin.to_owned()).collect(),
            credentials,
            ..Cors::default()
        };
        for (cors, origin, expected) in [
            (cors(&["*"], false), Some("http://a"), "*"),
            (cors(&["*"], false), None, "*"),
            (cors(&["*"], true), Some("http://a"), "*"),
            (cors(&["http://a"], true), Some("http://a"), "http://a"),
            (cors(&["http://a", "http://b"], false), Some("http://b"), "http://b"),
            (cors(&["http://a"], false), Some("http://a.evil"), ""),
            (cors(&["http://a"], false), Some("null"), ""),
            (cors(&[], false), Some("http://a"), ""),
        ] {
            assert_eq!(origin_for(&cors, origin), expected, "{cors:?} {origin:?}");
        }
    }
}
