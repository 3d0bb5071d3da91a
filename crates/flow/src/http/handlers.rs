//! What the `<handlers>` of APIs do.

use super::{cors, guard};
use crate::runtime::artifacts::Handler;
use crate::runtime::context::Context;
use crate::runtime::guard::Guard;
use base64::Engine;
use std::sync::Arc;
use transport::Response;

impl Handler {
    /// Whether it decides which other origins may send requests.
    pub(crate) fn is_cors(&self) -> bool {
        matches!(self, Handler::Cors(_))
    }

    /// What happens to a request before it goes further; `resource`: the one that it is for.
    pub(crate) fn request(&self, resource: Option<usize>, context: &mut Context) -> Option<Next> {
        let response = match self {
            Handler::BasicAuthentication => authenticate(context),
            Handler::Cors(cors) => (!cors::note(cors, context)).then(|| Response::empty(403)),
            Handler::Guard(guard) => match guard::let_in(guard, context) {
                None => return Some(Next::Ask(Arc::clone(guard))),
                Some(caller) => guard::allows(guard, &caller, resource, context),
            },
        };
        response.map(Next::Answer)
    }
}

/// What happens before a request goes further.
pub(crate) enum Next {
    /// It is answered already.
    Answer(Response),
    /// A guard must be asked, which may have to wait ([`guard::check`]); then the handlers are asked again.
    Ask(Arc<Guard>),
}

/// As WSO2: 401 without credentials, 403 with wrong ones.
fn authenticate(context: &Context) -> Option<Response> {
    let given = match guard::single(&context.headers, "Authorization") {
        Ok(Some(given)) => given,
        Ok(None) => return Some(Response::empty(401).with("WWW-Authenticate", "Basic realm=\"Busbar\"")),
        Err(_) => {
            tracing::warn!(message_id = %context.message_id(), "a request has several headers Authorization");
            return Some(Response::empty(403));
        }
    };
    let credentials = given.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"));
    let decoded = credentials
        .and_then(|(_, encoded)| base64::engine::general_purpose::STANDARD.decode(encoded.trim()).ok())
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let is_known_user = decoded
        .as_deref()
        .and_then(|text| text.split_once(':'))
        .is_some_and(|(name, password)| is_user(context, name, password));
    if is_known_user {
        return None;
    }
    tracing::warn!(message_id = %context.message_id(), "the user or the password of an API is wrong");
    Some(Response::empty(403))
}

/// Whether these are a user of the settings and its password. The time that it takes tells nothing about where they differ, nor
/// whether there is such a user.
pub(super) fn is_user(context: &Context, name: &str, password: &str) -> bool {
    let hash = context.services.settings.users.get(name);
    let digest = authentication::sha256(hash.map_or("", String::as_str).as_bytes());
    let shown = authentication::sha256(password.as_bytes());
    let is_equal = aws_lc_rs::constant_time::verify_slices_are_equal(&digest, &shown).is_ok();
    is_equal && hash.is_some()
}
