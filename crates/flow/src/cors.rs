//! Cross-origin requests to APIs: what `synapse.rest.CORSConfig.*` says for all of them, and what a `CORSRequestHandler`
//! says for one.

use crate::context::Context;
use message::Headers;
use std::sync::Arc;

/// Who may ask from other origins, and with which headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cors {
    /// Answers say nothing of it.
    pub disabled: bool,
    /// `*`, or origins as browsers send them.
    pub origins: Vec<String>,
    /// The headers that requests may have, as they stand in the answer; empty: the answer does not say.
    pub headers: String,
    /// The methods, as they stand in the answer; empty: those of the resource.
    pub methods: String,
    /// Whether requests may have credentials.
    pub credentials: bool,
}

/// What the answer to one request says, noted when it came: the answer has other headers.
#[derive(Debug)]
pub(crate) struct Allowed {
    cors: Arc<Cors>,
    /// The origin that may read the answer.
    origin: String,
}

impl Cors {
    /// What `Access-Control-Allow-Origin` says to a request; empty: nothing.
    fn origin_for(&self, origin: Option<&str>) -> String {
        match origin {
            // With credentials, browsers do not take `*`.
            Some(origin) if self.credentials && self.origins.iter().any(|own| own == "*") => {
                origin.to_owned()
            }
            _ if self.origins.iter().any(|own| own == "*") => "*".to_owned(),
            Some(origin) if self.origins.iter().any(|own| own == origin) => origin.to_owned(),
            _ => String::new(),
        }
    }

    /// Notes what the answer will say; `false`: the origin is none of those that are listed.
    pub(crate) fn note(self: &Arc<Cors>, context: &mut Context) -> bool {
        if self.disabled || self.origins.is_empty() && self.headers.is_empty() {
            return true;
        }
        let asked = context.headers.get("Origin").map(str::to_owned);
        let origin = self.origin_for(asked.as_deref());
        let refused = asked.is_some() && origin.is_empty() && !self.origins.is_empty();
        context.attach(Arc::new(Allowed { cors: Arc::clone(self), origin }));
        !refused
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
    let Some(noted) = noted.as_ref().filter(|noted| !noted.origin.is_empty()) else { return };
    headers.set("Access-Control-Allow-Origin", &noted.origin);
    if !cors.headers.is_empty() {
        headers.set("Access-Control-Allow-Headers", &cors.headers);
    }
    if cors.credentials {
        headers.set("Access-Control-Allow-Credentials", "true");
    }
    if noted.origin != "*" {
        // A cache must not give it to other origins.
        headers.append("Vary", "Origin");
    }
}

/// The methods of a resource as answers list them; none: those that WSO2 lists then.
pub(crate) fn methods(own: &[&str]) -> String {
    let named: Vec<&str> = own.iter().copied().filter(|method| *method != "OPTIONS").collect();
    if named.is_empty() { "GET, POST, PUT, DELETE".to_owned() } else { named.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins() {
        let cors = |origins: &[&str], credentials| Cors {
            origins: origins.iter().map(|&own| own.to_owned()).collect(),
            credentials,
            ..Cors::default()
        };
        for (cors, origin, expected) in [
            (cors(&["*"], false), Some("http://a"), "*"),
            (cors(&["*"], false), None, "*"),
            (cors(&["*"], true), Some("http://a"), "http://a"),
            (cors(&["http://a", "http://b"], false), Some("http://b"), "http://b"),
            (cors(&["http://a"], false), Some("http://a.evil"), ""),
            (cors(&["http://a"], false), Some("null"), ""),
            (cors(&[], false), Some("http://a"), ""),
        ] {
            assert_eq!(cors.origin_for(origin), expected, "{cors:?} {origin:?}");
        }
        assert_eq!(methods(&["GET", "OPTIONS", "POST"]), "GET, POST");
        assert_eq!(methods(&[]), "GET, POST, PUT, DELETE");
    }
}
