//! `<handlers>` of APIs. One that is not there is an error when the configuration loads, as a class that is not there is in
//! WSO2: an API must not be open because its guard is missing.

use super::Compiler;
use crate::runtime::artifacts::{Cors, Handler, Resource};
use crate::runtime::guard::{Guard, Profile, USER_STORE};
use diagnostics::{Diagnostic, Span};
use std::sync::Arc;

/// Handlers that only count: without effect here.
const WITHOUT_EFFECT: &[&str] =
    &["APIMgtLatencyStatsHandler", "APIMgtUsageHandler", "APIMgtGoogleAnalyticsTrackingHandler"];

/// The class of the handler for other origins.
const CORS: &str = "CORSRequestHandler";

/// Those of an API, in order.
pub(super) fn compile(
    api: &config::Api,
    resources: &[Resource],
    compiler: &mut Compiler<'_>,
) -> Vec<Handler> {
    let mut handlers: Vec<Handler> =
        api.handlers.iter().filter_map(|entry| handler(entry, resources, compiler)).collect();
    // Which pages may send requests is decided first, so that they can read what the other handlers answer.
    handlers.sort_by_key(|handler| !matches!(handler, Handler::Cors(_)));
    handlers
}

/// What guards a service: its parameters `accessProfile` and `accessScopes`. `what`: the service, as messages call it.
pub(super) fn of_service(
    parameters: &[config::Parameter],
    what: &str,
    place: Span,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<Guard>> {
    let parameter = |name: &str| parameters.iter().find(|parameter| parameter.name == name);
    let text = |name: &str| parameter(name)?.value.text().map(|text| text.trim().to_owned());
    let access_profile = parameter("accessProfile")?;
    let name = access_profile.value.text().map(str::trim).unwrap_or_default().to_owned();
    let profile = profile(&name, place, what, compiler)?;
    let scopes = words(&text("accessScopes").unwrap_or_default());
    Some(Arc::new(Guard { profile, scopes, of_resources: Vec::new(), forbids: false }))
}

/// A profile of the settings; `None` after a recorded error: an artifact without its guard must not be open.
fn profile(name: &str, place: Span, what: &str, compiler: &mut Compiler<'_>) -> Option<Arc<Profile>> {
    let found = compiler.services.settings.access.get(name).cloned();
    if found.is_none() {
        let names = compiler.services.settings.access.keys().map(String::as_str);
        let meant = diagnostics::nearest(name, names);
        let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
        let message = format!("there is no access profile `{name}`{meant}");
        let error = Diagnostic::error("no-access-profile", message)
            .at(place, format!("{what} is left out: without it, it would be open to everybody"))
            .help(format!("set [access.{name}] in busbar.toml"));
        compiler.diagnostics.push(error);
    }
    found
}

/// Names between blanks or commas.
fn words(text: &str) -> Vec<String> {
    text.split([' ', ',', '\t', '\n', '\r']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// `AccessHandler`: a profile, and the scopes of the API and of its resources.
fn guard(handler: &config::Handler, resources: &[Resource], compiler: &mut Compiler<'_>) -> Option<Handler> {
    let property = |name: &str| {
        handler.properties.iter().find(|(key, _)| key == name).map(|(_, value)| value.trim().to_owned())
    };
    let name = property("profile").unwrap_or_else(|| "default".to_owned());
    let profile = profile(&name, handler.class.span, "the API", compiler)?;
    let mut of_resources = vec![Vec::new(); resources.len()];
    let mut is_good = true;
    for (name, value) in &handler.properties {
        // `scopes GET /orders/{id}`: those of one resource.
        let mut parts = name.splitn(3, ' ');
        let ("scopes", Some(method), Some(path)) =
            (parts.next().unwrap_or_default(), parts.next(), parts.next())
        else {
            continue;
        };
        let mut found = false;
        for (resource, scopes) in resources.iter().zip(&mut of_resources) {
            let takes = method == "*" || resource.methods.split(' ').any(|allowed| allowed == method);
            if takes && resource.label == path.trim() {
                scopes.extend(words(value));
                found = true;
            }
        }
        if !found {
            is_good = false;
            let message = format!("`{name}` names no resource of this API");
            compiler.diagnostics.push(
                Diagnostic::error("no-access-profile", message)
                    .at(handler.class.span, "the API is left out: the resource that is meant would be open")
                    .help(
                        "write `scopes`, the method or *, and the template or mapping as the resource has it",
                    ),
            );
        }
    }
    let scopes = words(&property("scopes").unwrap_or_default());
    is_good.then(|| Handler::Guard(Arc::new(Guard { profile, scopes, of_resources, forbids: false })))
}

/// The class without its package.
fn short_name(handler: &config::Handler) -> &str {
    handler.class.rsplit('.').next().unwrap_or_default()
}

/// What the handlers of an API that is left out say of other origins: a page shall learn why its request failed.
pub(super) fn cors_of(api: &config::Api) -> Vec<Arc<Cors>> {
    let handlers = api.handlers.iter().filter(|handler| short_name(handler) == CORS);
    handlers.map(|handler| Arc::new(cors(handler))).collect()
}

fn cors(handler: &config::Handler) -> Cors {
    let value = |name: &str| {
        let found = handler.properties.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim()).unwrap_or_default()
    };
    let list = |name: &str| {
        let words = value(name).split(',').map(str::trim).filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join(", ")
    };
    let origins = value("allowedOrigins");
    Cors {
        disabled: false,
        origins: Cors::read_origins(if origins.is_empty() { "*" } else { origins }),
        headers: list("allowHeaders"),
        methods: list("allowedMethods"),
        credentials: value("allowCredentials").eq_ignore_ascii_case("true"),
    }
}

fn handler(
    handler: &config::Handler,
    resources: &[Resource],
    compiler: &mut Compiler<'_>,
) -> Option<Handler> {
    match short_name(handler) {
        "RESTBasicAuthHandler" | "BasicAuthHandler" => {
            if let Some(profile) = compiler.services.settings.access.get(USER_STORE).cloned() {
                let (scopes, of_resources) = (Vec::new(), Vec::new());
                return Some(Handler::Guard(Arc::new(Guard {
                    profile,
                    scopes,
                    of_resources,
                    forbids: true,
                })));
            }
            if compiler.services.settings.users.is_empty() {
                compiler.warning(
                    "no-users",
                    "there are no users that this handler could let in",
                    handler.class.span,
                    "all requests are answered with 401 or 403: name users in the setting http.users",
                );
            }
            Some(Handler::BasicAuthentication)
        }
        "AccessHandler" | "APIAuthenticationHandler" => guard(handler, resources, compiler),
        CORS => {
            let cors = cors(handler);
            let Cors { origins, credentials, .. } = &cors;
            for origin in origins.iter().filter(|origin| !Cors::is_origin(origin)) {
                compiler.warning(
                    "bad-value",
                    format!("`{origin}` in `allowedOrigins` is no origin that a browser sends"),
                    handler.class.span,
                    "it lets nobody in: expected `https://HOST`, with a port if it is not the usual one, or `*`",
                );
            }
            if *credentials && origins.iter().any(|origin| origin == "*") {
                compiler.warning(
                    "credentials-for-all",
                    "`allowCredentials` has no effect where all origins are allowed",
                    handler.class.span,
                    "each site could read what a user sees who is logged in: name the origins in `allowedOrigins`",
                );
            } else if *credentials && origins.iter().any(|origin| origin == Cors::OPAQUE) {
                compiler.warning(
                    "credentials-for-all",
                    "`allowCredentials` has no effect for the origin `null`",
                    handler.class.span,
                    "each site can make frames with this origin, and could read what a user sees who is logged in",
                );
            }
            Some(Handler::Cors(Arc::new(cors)))
        }
        name if WITHOUT_EFFECT.contains(&name) => {
            let message = format!("the handler `{name}` has no effect here");
            compiler.warning(
                "unsupported-handler",
                message,
                handler.class.span,
                "the metrics count requests",
            );
            None
        }
        name => {
            let message = format!("the handler `{name}` is not executable here");
            let lower = name.to_ascii_lowercase();
            let help = match lower.contains("oauth") || lower.contains("jwt") {
                true => {
                    "AccessHandler checks such tokens: describe their issuer under [access.NAME] in busbar.toml \
                     (jwks, issuers, audiences), and give the handler `<property name=\"profile\" value=\"NAME\"/>`"
                }
                false => "available are AccessHandler, RESTBasicAuthHandler and CORSRequestHandler",
            };
            compiler.diagnostics.push(
                Diagnostic::error("unsupported-handler", message)
                    .at(handler.class.span, "a Java class; the API is left out, because it may be its guard")
                    .help(help),
            );
            None
        }
    }
}
