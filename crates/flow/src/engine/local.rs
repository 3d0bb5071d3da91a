//! `local://services/NAME`: a proxy service of this bus, called without the network.

use crate::engine::exchange::client_of;
use crate::runtime::context::Context;
use crate::runtime::request::Inbound;
use message::StandardHeader;
use std::sync::Arc;
use std::time::Duration;
use transport::{OutRequest, Response, SendError, SendErrorKind, Target};

/// Most services that call each other so, one inside of the other: each takes its part of the stack.
const DEEPEST: u8 = 8;

/// The target of a connection for this bus: nothing listens on port 0.
pub fn target() -> Target {
    Target::http("local", 0)
}

/// Whether this is [`target`].
pub fn is_target(target: &Target) -> bool {
    target.port() == 0 && target.host() == "local"
}

/// The path of a service in a `local:` address, which may name a host; `None`: it is another address.
pub fn path(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once(':').filter(|(_, rest)| rest.starts_with('/'))?;
    let named = rest.trim_start_matches('/');
    let behind_host = || named.split_once('/').map(|(_, path)| path).filter(|_| rest.starts_with("//"));
    let is_service = |path: &&str| path.starts_with("services/");
    let path = Some(named).filter(is_service).or_else(|| behind_host().filter(is_service))?;
    scheme.eq_ignore_ascii_case("local").then(|| format!("/{path}"))
}

/// Sends the message of `context` as a request to a service of the same plan, which has so long to answer.
pub(crate) async fn send(
    context: &Context,
    request: OutRequest<'_>,
    longest: Duration,
) -> Result<Response, SendError> {
    let failed = |kind, nothing_processed| {
        Err(SendError { kind, target: target(), nothing_processed, body_intact: nothing_processed })
    };
    if context.progress.spent.local >= DEEPEST {
        let why = "services call each other through local:// one inside of the other too often";
        return failed(SendErrorKind::BadRequest(why), true);
    }
    let mut headers = request.headers.clone();
    headers
        .remove_known(StandardHeader::ContentLength.bit() | StandardHeader::TransferEncoding.bit(), |_| {
            false
        });
    let outer = &context.inbound;
    let content_type = headers.get_known(StandardHeader::ContentType);
    let inbound = Inbound {
        client: client_of(request.method, content_type, &headers),
        content_type: content_type.map(Arc::from),
        method: request.method.clone(),
        target: request.target.to_owned(),
        absolute: None,
        service_length: request.target.len(),
        received: transport::clock::now(),
        host: Arc::clone(&outer.host),
        secure: outer.secure,
        tls: outer.tls.clone(),
        peer: outer.peer,
        local: outer.local,
        through: outer.through,
    };
    let answer =
        context.services.local.get().and_then(|local| local(context, inbound, headers, request.body));
    let answer = match answer {
        Some(Ok(answer)) => answer,
        Some(Err(why)) => {
            return failed(SendErrorKind::LocalShortage(Arc::new(std::io::Error::other(why))), true);
        }
        None => {
            let why = std::io::Error::other(format!("{} is not a service that runs here", request.target));
            return failed(SendErrorKind::Connect(Arc::new(why)), true);
        }
    };
    match tokio::time::timeout(longest, answer).await {
        Ok(response) => Ok(response),
        Err(_) => failed(SendErrorKind::ResponseTimeout, false),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn addresses() {
        for (url, path) in [
            ("local://services/A", Some("/services/A")),
            ("LOCAL:///services/A/b?c=d", Some("/services/A/b?c=d")),
            ("http://local/services/A", None),
            ("local:/services/A", Some("/services/A")),
            ("local://localhost/services/A?b", Some("/services/A?b")),
            ("local:/localhost/services/A", None),
            ("local:services/A", None),
            ("local://axis2services/A", None),
            ("local://axis2services/A/services", None),
            ("local", None),
        ] {
            assert_eq!(super::path(url).as_deref(), path, "{url}");
        }
    }
}
