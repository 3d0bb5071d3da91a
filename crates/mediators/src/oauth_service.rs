//! `oauthService`: asks the key manager of a WSO2 server whether the access token of a request is valid.
//!
//! The question is a SOAP request to its admin service OAuth2TokenValidationService, as user and password allow. Nothing of an
//! answer is kept: a token that is revoked is refused with the next request.

use crate::support::address_endpoint;
use base64::Engine;
use config::{Attribute as Written, Element, Key};
use flow::endpoint::Destination;
use flow::reference::EndpointRef;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Family, Fault, Flow, Mediator, Need, Page,
    Step, Values,
};
use message::{Envelope, SoapVersion};
use std::sync::Arc;
use xml::{Document, NodeId};

/// `<oauthService remoteServiceUrl="…" username="…" password="…"/>`
pub const DEFINITION: Definition = Definition {
    name: "oauthService",
    summary: "Lets a request go on only if a WSO2 key manager says that its access token is valid.",
    attributes: &[
        Attribute::required(
            "remoteServiceUrl",
            Values::Text,
            "the address of the admin services: `https://HOST:9443/services`",
        ),
        Attribute::required("username", Values::Text, "who may call them"),
        Attribute::required("password", Values::Text, "the password of this user"),
    ],
    children: Children::None,
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Quality,
    semantics: "The request needs the header `Authorization: Bearer TOKEN`. The key manager is asked about the token with each request: `validate` of
`OAuth2TokenValidationService` in SOAP 1.2, with user and password as basic authentication. Nothing is kept of its answer. If it has a
JWT, that becomes the transport header `X-JWT-Assertion`; without one that header is removed. The body of the request is not read.

These properties (default scope) change what is asked:

* `oauth_context_param_key_0` and `oauth_context_param_value_0`, `…_1` and so on are sent as the context of the question.
* `oauth2_scope_validation_enabled` is `true`: the token must have the scope in the property `scope`, or without it the one that is
  named like the API or the proxy service.

If the token is not valid, or there is none, the message faults; a client that no fault sequence answers gets 401. If the key manager
cannot be asked, it gets 502. Requests with OAuth 1.0a fault, because such signatures are not checked here.

The three values may come from outside (`$SYSTEM:NAME`, `$secret{alias}`). For new services, an [access profile](../security.md) keeps
answers and needs no step in the flow.",
    inside: &[],
    needs: &[(Need::Headers, "always")],
    refused: &[
        (
            "<oauthService username=\"u\" password=\"p\"/>",
            "`oauthService` needs the attribute `remoteServiceUrl`",
        ),
        (
            "<oauthService remoteServiceUrl=\"ftp://host/services\" username=\"u\" password=\"p\"/>",
            "`ftp://host/services` is not an address of admin services",
        ),
    ],
    faults: &[(
        "0",
        "there is no access token, it is not valid or has not the scope, or the key manager cannot be asked (ERROR_DETAIL says why)",
    )],
};

/// The namespace of the operation.
const SERVICE: &str = "http://org.apache.axis2/xsd";
/// The namespace of its parameters.
const PARAMETERS: &str = "http://dto.oauth2.identity.carbon.wso2.org/xsd";
/// Settings of the endpoint: longest wait for an answer, and it is never suspended, as WSO2 asks without an endpoint.
const SETTINGS: [&str; 3] = [
    "<timeout><duration>30000</duration><responseAction>fault</responseAction></timeout>",
    "<suspendOnFailure><errorCodes>-1</errorCodes></suspendOnFailure>",
    "<markForSuspension><errorCodes>-1</errorCodes></markForSuspension>",
];
/// What begins the header, as WSO2 compares it.
const SCHEME: &str = "Bearer ";

/// The header with what the key manager says of the caller.
const ASSERTION: &str = "X-JWT-Assertion";

const REFUSED: &str = "OAuth 2.0 authentication failed";
const NOT_ASKED: &str = "Error occured while validating oauth 2.0 access token";

struct OAuthService {
    key_manager: Arc<EndpointRef>,
    /// The `Authorization` of the bus itself.
    credentials: String,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let written = element.attribute("remoteServiceUrl")?;
    let mut value = |attribute: &Written| compiler.outside(&Key::of(attribute));
    let url = value(written)?;
    let user = value(element.attribute("username")?)?;
    let password = value(element.attribute("password")?)?;
    let url = url.trim();
    if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) && !config::is_unresolved(url) {
        let shown = diagnostics::without_credentials(url);
        let message = format!("`{shown}` is not an address of admin services");
        compiler.error("bad-address", message, written.value_span, "expected https://HOST:PORT/services");
        return None;
    }
    let address = format!("{}/OAuth2TokenValidationService", url.trim_end_matches('/'));
    let key_manager =
        address_endpoint(&address, r#"format="soap12""#, &SETTINGS.concat(), written.value_span, compiler)?;
    let both = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    Some(Box::new(OAuthService { key_manager, credentials: format!("Basic {both}") }))
}

/// What the key manager says of a token.
#[derive(Debug, PartialEq)]
struct Verdict {
    valid: bool,
    scopes: Vec<String>,
    jwt: Option<String>,
}

impl OAuthService {
    /// Asks about a token.
    async fn ask(&self, token: &str, context: &mut Context) -> Result<Verdict, Fault> {
        let parameters = parameters(context);
        let mut inquiry = context.inquiry();
        inquiry.headers.set("Authorization", &*self.credentials);
        inquiry.soap_action = Some("urn:validate".to_owned());
        inquiry.payload.set_envelope(question(token, &parameters));
        let destination = Destination {
            reference: Some(Arc::clone(&self.key_manager)),
            blocking: true,
            ..Destination::implicit()
        };
        inquiry.send_and_receive(destination).await?;
        inquiry.receive_body().await?;
        flow::work_out(&mut inquiry, read).await
    }
}

/// Reads the answer of the key manager.
fn read(answer: &mut Context) -> Result<Verdict, Fault> {
    let status = answer.status.filter(|status| !(200..300).contains(status));
    let envelope = answer.envelope()?;
    let reason = envelope.any_fault().map(|fault| envelope.fault_texts(fault).0);
    match (reason, status) {
        (Some(reason), _) => Err(Fault::new(format!("it answered with the fault `{}`", reason.trim()))),
        (None, Some(status)) => Err(Fault::new(format!("it answered with {status}"))),
        (None, None) => {
            verdict(envelope).ok_or_else(|| Fault::new("its answer does not say whether the token is valid"))
        }
    }
}

/// What properties add to the question: keys and values.
fn parameters(context: &Context) -> Vec<(String, String)> {
    let text = |name: String| {
        let value = context.properties.get(&name)?.to_string();
        Some(value).filter(|value| !value.is_empty())
    };
    let pair = |number: usize| {
        Some((
            text(format!("oauth_context_param_key_{number}"))?,
            text(format!("oauth_context_param_value_{number}"))?,
        ))
    };
    (0..).map_while(pair).collect()
}

fn question(token: &str, parameters: &[(String, String)]) -> Envelope {
    let mut envelope = Envelope::empty(SoapVersion::V12);
    let body = envelope.body;
    let document = &mut envelope.document;
    let validate = document.append_element(body, "s", SERVICE, "validate");
    document.declare_namespace(validate, "s", SERVICE);
    document.declare_namespace(validate, "p", PARAMETERS);
    let request = document.append_element(validate, "s", SERVICE, "validationReqDTO");
    let pair = |document: &mut Document, name: &str, texts: [(&str, &str); 2]| {
        let parent = document.append_element(request, "p", PARAMETERS, name);
        for (name, text) in texts {
            let child = document.append_element(parent, "p", PARAMETERS, name);
            document.append_text(child, text);
        }
    };
    pair(document, "accessToken", [("identifier", token), ("tokenType", "bearer")]);
    for (key, value) in parameters {
        pair(document, "context", [("key", key), ("value", value)]);
    }
    envelope
}

/// What the answer says; `None`: it is another one.
fn verdict(envelope: &Envelope) -> Option<Verdict> {
    let document = &envelope.document;
    let child = |parent: NodeId, name: &str| {
        let mut children = envelope.elements_of(parent);
        children.find(|&node| document.local(node) == name)
    };
    let text = |node: NodeId| document.string_value(node).trim().to_owned();
    let response = envelope.payload().filter(|&node| document.local(node) == "validateResponse")?;
    let result = child(response, "return")?;
    let valid = match text(child(result, "valid")?).as_str() {
        "true" | "1" => true,
        "false" | "0" => false,
        _ => return None,
    };
    let scopes =
        envelope.elements_of(result).filter(|&node| document.local(node) == "scope").map(text).collect();
    let jwt =
        child(result, "authorizationContextToken").and_then(|token| child(token, "tokenString")).map(text);
    Some(Verdict { valid, scopes, jwt: jwt.filter(|jwt| !jwt.is_empty()) })
}

fn unauthorized(message: &str) -> Fault {
    Fault { status: 401, ..Fault::new(message) }
}

/// The token of a request.
fn token(context: &Context) -> Result<String, Fault> {
    let Some(header) = context.headers.get("Authorization") else {
        return Err(unauthorized("Not a valid OAuth Request"));
    };
    match header.strip_prefix(SCHEME).map(str::trim) {
        Some("") => Err(unauthorized("Invalid or empty OAuth 2.0 token")),
        Some(token) if token.chars().any(char::is_control) => Err(unauthorized(REFUSED)),
        Some(token) => Ok(token.to_owned()),
        None => Err(unauthorized("Error occured while validating oauth consumer")
            .because("only `Authorization: Bearer TOKEN` is checked here, no OAuth 1.0a")),
    }
}

/// Whether scopes are checked, and the one that a token must have then.
fn wanted_scope(context: &Context) -> Option<String> {
    let property = |name: &str| context.properties.get(name).map(|value| value.to_string());
    property("oauth2_scope_validation_enabled").filter(|value| value.eq_ignore_ascii_case("true"))?;
    Some(
        property("scope")
            .or_else(|| property("SYNAPSE_REST_API"))
            .unwrap_or_else(|| context.service_name().to_owned()),
    )
}

impl Mediator for OAuthService {
    fn need(&self) -> Need {
        Need::Headers
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        Step::Wait(Box::pin(async move {
            let token = token(context)?;
            let verdict = self
                .ask(&token, context)
                .await
                .map_err(|fault| Fault { status: 502, ..Fault::new(NOT_ASKED).because(fault.to_string()) })?;
            if !verdict.valid {
                return Err(unauthorized(REFUSED));
            }
            if wanted_scope(context).is_some_and(|scope| !verdict.scopes.contains(&scope)) {
                return Err(unauthorized(REFUSED).because("the token has not the scope"));
            }
            match verdict.jwt {
                Some(jwt) => context.set_header(ASSERTION, &jwt),
                // One that the client sent is no word of the key manager.
                None => drop(context.headers.remove(ASSERTION)),
            }
            Ok(Flow::Next)
        }))
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing;

    fn answer(inside: &str) -> String {
        format!(
            r#"<e:Envelope xmlns:e="http://www.w3.org/2003/05/soap-envelope"><e:Body><n:validateResponse xmlns:n="http://org.apache.axis2/xsd"><n:return xmlns:a="http://dto.oauth2.identity.carbon.wso2.org/xsd">{inside}</n:return></n:validateResponse></e:Body></e:Envelope>"#
        )
    }

    fn backend(status: &str, body: &str) -> String {
        testing::backend(&format!("HTTP/1.1 {status}\r\nContent-Type: application/soap+xml\r\n\r\n{body}"))
    }

    fn steps(address: &str, before: &str) -> String {
        format!(
            r#"{before}<oauthService remoteServiceUrl="{address}/services/" username="admin" password="a&amp;b"/><property name="jwt" expression="$trp:X-JWT-Assertion"/>"#
        )
    }

    const JWT: &str =
        "<a:authorizationContextToken><a:tokenString>h.p.s</a:tokenString></a:authorizationContextToken>";

    #[test]
    fn the_key_manager_decides() {
        let scoped = r#"<property name="oauth2_scope_validation_enabled" value="TRUE"/><property name="scope" value="orders"/>"#;
        let unscoped = r#"<property name="oauth2_scope_validation_enabled" value="true"/>"#;
        let with_scopes = answer("<a:scope>openid</a:scope><a:scope>orders</a:scope><a:valid>true</a:valid>");
        let valid = answer(&format!("{JWT}<a:valid>true</a:valid>"));
        let no_jwt = answer(
            r#"<a:authorizationContextToken xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:nil="true"/><a:valid>1</a:valid>"#,
        );
        for (status, body, before, wanted, jwt) in [
            ("200 OK", valid.clone(), "", None, Some("h.p.s")),
            ("200 OK", no_jwt, "", None, Some("")),
            ("200 OK", answer("<a:valid>false</a:valid>"), "", Some("0: OAuth 2.0 authentication failed"), None),
            ("200 OK", with_scopes.clone(), scoped, None, Some("")),
            ("200 OK", valid.clone(), scoped, Some("0: OAuth 2.0 authentication failed"), None),
            ("200 OK", with_scopes, unscoped, Some("0: OAuth 2.0 authentication failed"), None),
            ("200 OK", answer(""), "", Some(super::NOT_ASKED), None),
            ("200 OK", answer("<a:valid>maybe</a:valid>"), "", Some(super::NOT_ASKED), None),
            ("200 OK", "<a:valid xmlns:a='u'>true</a:valid>".to_owned(), "", Some(super::NOT_ASKED), None),
            ("200 OK", String::new(), "", Some(super::NOT_ASKED), None),
            ("401 Unauthorized", String::new(), "", Some(super::NOT_ASKED), None),
            ("500 Oops", valid, "", Some(super::NOT_ASKED), None),
            ("500 Oops", r#"<e:Envelope xmlns:e="http://www.w3.org/2003/05/soap-envelope"><e:Body><e:Fault/></e:Body></e:Envelope>"#.to_owned(), "", Some(super::NOT_ASKED), None),
        ] {
            let address = backend(status, &body);
            let flow = testing::main(&registry(testing::endpoints), &steps(&address, before));
            assert!(flow.found.is_empty(), "{flow:?}");
            let end = flow.run(&[("Authorization", "Bearer t0ken"), ("X-JWT-Assertion", "forged")], "<a/>");
            match wanted {
                None => assert_eq!(end.fault(), None, "{body}"),
                Some(wanted) => {
                    let fault = end.fault().unwrap_or_default();
                    assert!(fault.contains(wanted), "{status} {body} {before}: {fault}");
                }
            }
            assert_eq!(end.property("jwt").filter(|jwt| !jwt.is_empty()).as_deref(), jwt.filter(|jwt| !jwt.is_empty()));
        }
    }

    #[test]
    fn without_a_token_nobody_is_asked() {
        for (header, wanted) in [
            (None, "0: Not a valid OAuth Request"),
            (Some("Bearer  "), "0: Invalid or empty OAuth 2.0 token"),
            (Some("Basic YTpi"), "0: Error occured while validating oauth consumer"),
            (Some("OAuth oauth_consumer_key=\"k\""), "0: Error occured while validating oauth consumer"),
        ] {
            // Nobody listens there: that it is asked would be another fault.
            let flow = testing::main(&registry(testing::endpoints), &steps("http://127.0.0.1:1", ""));
            let headers: Vec<_> = header.into_iter().map(|value| ("Authorization", value)).collect();
            let end = flow.run(&headers, "<a/>");
            assert_eq!(
                end.fault().as_deref().map(|fault| fault.starts_with(wanted)),
                Some(true),
                "{header:?}"
            );
        }
    }

    #[test]
    fn the_question_names_the_token_and_the_context() {
        let parameters = [("k<".to_owned(), "v&".to_owned())];
        let envelope = super::question("a<b", &parameters);
        let text = xml::to_string(&envelope.document, envelope.body);
        for part in [
            "<p:identifier>a&lt;b</p:identifier><p:tokenType>bearer</p:tokenType>",
            "<p:context><p:key>k&lt;</p:key><p:value>v&amp;</p:value></p:context>",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}
