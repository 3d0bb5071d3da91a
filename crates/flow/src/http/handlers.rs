//! What the `<handlers>` of APIs do.

use super::cors;
use crate::runtime::artifacts::Handler;
use crate::runtime::context::Context;
use base64::Engine;
use transport::Response;

impl Handler {
    /// Whether it says who may ask from other origins.
    pub(crate) fn is_cors(&self) -> bool {
        matches!(self, Handler::Cors(_))
    }

    /// The answer for a request that goes no further.
    pub(crate) fn request(&self, context: &mut Context) -> Option<Response> {
        match self {
            Handler::BasicAuthentication => authenticate(context),
            Handler::Cors(cors) => (!cors::note(cors, context)).then(|| Response::empty(403)),
        }
    }
}

/// As WSO2: 401 without credentials, 403 with wrong ones.
fn authenticate(context: &Context) -> Option<Response> {
    let Some(given) = context.headers.get("Authorization") else {
        return Some(Response::empty(401).with("WWW-Authenticate", "Basic realm=\"Busbar\""));
    };
    let credentials = given.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"));
    let decoded = credentials
        .and_then(|(_, encoded)| base64::engine::general_purpose::STANDARD.decode(encoded.trim()).ok())
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let known = decoded.as_deref().and_then(|text| text.split_once(':')).is_some_and(|(name, password)| {
        let own = context.services.settings.users.get(name);
        // The time that it takes tells nothing about where they differ.
        own.is_some_and(|own| {
            aws_lc_rs::constant_time::verify_slices_are_equal(own.as_bytes(), password.as_bytes()).is_ok()
        })
    });
    if known {
        return None;
    }
    tracing::warn!(message_id = %context.message_id(), "the user or the password of an API is wrong");
    Some(Response::empty(403))
}
