//! `<handlers>` of APIs: those of WSO2 that need no Java here. Any other is an error when the configuration loads, as a
//! class that is not there is in WSO2: an API must not be open because who guards it is missing.

use crate::compile::Compiler;
use crate::context::Context;
use crate::cors::Cors;
use base64::Engine;
use diagnostics::Diagnostic;
use std::sync::Arc;
use transport::Response;

/// A handler that runs before the resource is chosen.
pub(crate) enum Handler {
    /// `RESTBasicAuthHandler`: only users of the settings.
    BasicAuthentication,
    /// `CORSRequestHandler`.
    Cors(Arc<Cors>),
}

/// Handlers that only count: without effect here.
const WITHOUT_EFFECT: &[&str] =
    &["APIMgtLatencyStatsHandler", "APIMgtUsageHandler", "APIMgtGoogleAnalyticsTrackingHandler"];

impl Handler {
    /// Those of an API, in order.
    pub(crate) fn compile(own: &[config::Handler], compiler: &mut Compiler<'_>) -> Vec<Handler> {
        own.iter().filter_map(|own| Handler::of(own, compiler)).collect()
    }

    fn of(own: &config::Handler, compiler: &mut Compiler<'_>) -> Option<Handler> {
        match own.class.rsplit('.').next().unwrap_or_default() {
            "RESTBasicAuthHandler" | "BasicAuthHandler" => {
                if compiler.services.settings.users.is_empty() {
                    compiler.warning(
                        "no-users",
                        "there are no users that this handler could let in",
                        own.class.span,
                        "all requests are answered with 401 or 403: name users in the setting http.users",
                    );
                }
                Some(Handler::BasicAuthentication)
            }
            "CORSRequestHandler" => {
                let value = |name: &str| {
                    let found = own.properties.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
                    found.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
                };
                let origins = value("allowedOrigins");
                let origins = if origins.is_empty() { "*".to_owned() } else { origins };
                let list = |text: &str| {
                    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
                    words.map(str::to_owned).collect::<Vec<_>>()
                };
                Some(Handler::Cors(Arc::new(Cors {
                    disabled: false,
                    origins: list(&origins),
                    headers: list(&value("allowHeaders")).join(", "),
                    methods: list(&value("allowedMethods")).join(", "),
                    credentials: value("allowCredentials").eq_ignore_ascii_case("true"),
                })))
            }
            name if WITHOUT_EFFECT.contains(&name) => {
                let message = format!("the handler `{name}` has no effect here");
                compiler.warning(
                    "unsupported-handler",
                    message,
                    own.class.span,
                    "the metrics count requests",
                );
                None
            }
            name => {
                let message = format!("the handler `{name}` is not executable here");
                compiler.diagnostics.push(
                    Diagnostic::error("unsupported-handler", message)
                        .at(own.class.span, "a Java class; the API is left out, because it may be its guard")
                        .help("available are RESTBasicAuthHandler and CORSRequestHandler"),
                );
                None
            }
        }
    }

    /// Whether it says who may ask from other origins.
    pub(crate) fn is_cors(&self) -> bool {
        matches!(self, Handler::Cors(_))
    }

    /// The answer for a request that goes no further.
    pub(crate) fn request(&self, context: &mut Context) -> Option<Response> {
        match self {
            Handler::BasicAuthentication => authenticate(context),
            Handler::Cors(cors) => (!cors.note(context)).then(|| Response::empty(403)),
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
