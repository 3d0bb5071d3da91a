//! `<handlers>` of APIs. One that is not there is an error when the configuration loads, as a class that is not there is in
//! WSO2: an API must not be open because who guards it is missing.

use super::Compiler;
use crate::runtime::artifacts::{Cors, Handler};
use diagnostics::Diagnostic;
use std::sync::Arc;

/// Handlers that only count: without effect here.
const WITHOUT_EFFECT: &[&str] =
    &["APIMgtLatencyStatsHandler", "APIMgtUsageHandler", "APIMgtGoogleAnalyticsTrackingHandler"];

/// Those of an API, in order.
pub(super) fn compile(own: &[config::Handler], compiler: &mut Compiler<'_>) -> Vec<Handler> {
    own.iter().filter_map(|own| handler(own, compiler)).collect()
}

fn handler(own: &config::Handler, compiler: &mut Compiler<'_>) -> Option<Handler> {
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
            compiler.warning("unsupported-handler", message, own.class.span, "the metrics count requests");
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
