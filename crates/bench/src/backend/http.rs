//! The backend as a handler of the HTTP transport.

use super::{BackendRequest, BackendResponse, Mode, ResponseBody, Service, answer_in};
use bytes::Bytes;
use message::{Body, BodyError, RequestHead};
use std::time::Duration;
use transport::{ConnectionInfo, Handler, Request, Response};

/// The largest request body, in bytes, that a service reads; beyond: 413. Echoes have no limit.
const LARGEST: u64 = 64 << 20;

/// An echo begins when the request is complete or this many bytes of it are here.
const HELD: usize = 16 << 20;

/// Serves the services of its modes.
#[derive(Clone, Debug)]
pub struct Backend {
    modes: Vec<Mode>,
    delay: Duration,
}

impl Default for Backend {
    /// Every service, at once.
    fn default() -> Backend {
        Backend::new(Mode::ALL.to_vec(), Duration::ZERO)
    }
}

impl Backend {
    /// A backend with these services that takes at least `delay` for every answer.
    pub fn new(modes: Vec<Mode>, delay: Duration) -> Backend {
        Backend { modes, delay }
    }

    /// Answers with the whole body at hand.
    fn answer(&self, head: &RequestHead, body: &[u8]) -> BackendResponse {
        let header = |name| head.headers.get(name).map(|value| (name, value));
        let mut headers = [("", ""); 2];
        let copied = ["content-type", "host"].into_iter().filter_map(header);
        let count = headers.iter_mut().zip(copied).map(|(place, found)| *place = found).count();
        let request = BackendRequest {
            method: head.method.as_str(),
            path: &head.target,
            headers: &headers[..count],
            body,
        };
        answer_in(&self.modes, &request)
    }
}

impl Handler for Backend {
    async fn handle(&self, request: Request, _: &ConnectionInfo) -> Response {
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        let Request { head, mut body } = request;
        if !Service::at(&head.target).is_some_and(Service::needs_body) {
            // the body goes back as it is, but not before it is here: many clients cannot read while they write
            while body.buffered().len() < HELD {
                match body.more().await {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => return unreadable(&error),
                }
            }
            return respond(self.answer(&head, &[]), body);
        }
        match body.collect(LARGEST).await {
            Ok(bytes) => respond(self.answer(&head, &bytes), Body::Bytes(bytes)),
            Err(error) => unreadable(&error),
        }
    }
}

fn respond(answer: BackendResponse, request_body: Body) -> Response {
    let body = match answer.body {
        ResponseBody::Request => request_body,
        ResponseBody::Bytes(bytes) if bytes.is_empty() => Body::Empty,
        ResponseBody::Bytes(bytes) => Body::Bytes(Bytes::from(bytes)),
    };
    let response = Response::new(answer.status, body);
    answer.headers.iter().fold(response, |response, (name, value)| response.with(name, value))
}

fn unreadable(error: &BodyError) -> Response {
    let status = if matches!(error, BodyError::TooLarge(_)) { 413 } else { 400 };
    let text = Body::Bytes(Bytes::from(format!("{error}\n")));
    let mut response = Response::new(status, text).with("Content-Type", "text/plain");
    response.close = true;
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{Variant, order_message};
    use crate::scenarios::{ROUND, find};
    use message::{Headers, Method, Version};

    /// Runs a handler without a network.
    fn ask(
        backend: &Backend,
        method: &str,
        target: &str,
        content_type: &str,
        body: Body,
    ) -> (Response, Vec<u8>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let mut headers = Headers::new();
        if !content_type.is_empty() {
            headers.append("Content-Type", content_type);
        }
        headers.append("Host", "localhost:9000");
        let head = RequestHead {
            method: Method::new(method),
            target: target.into(),
            absolute: None,
            version: Version::Http11,
            headers,
        };
        let address = "127.0.0.1:1".parse().unwrap();
        let peer = ConnectionInfo { id: 1, peer: address, local: address, worker: 0, tls: None };
        runtime.block_on(async {
            let mut response = backend.handle(Request { head, body }, &peer).await;
            let body = std::mem::take(&mut response.body).collect(u64::MAX).await.unwrap();
            (response, body.to_vec())
        })
    }

    #[test]
    fn an_echo_has_the_status_headers_and_bytes_of_the_logic() {
        let message = order_message(1024, &Variant::default());
        for (target, accepted) in [("/echo", None), ("/services/OrderService", Some("10"))] {
            let body = Body::Bytes(message.clone().into());
            let (response, bytes) = ask(&Backend::default(), "POST", target, "text/xml", body);
            assert_eq!((response.head.status, bytes), (200, message.clone()));
            assert_eq!(response.head.headers.get("content-type"), Some("text/xml"));
            let count = response.head.headers.get("orders-accepted");
            assert_eq!(count.is_some(), accepted.is_some());
        }
    }

    #[test]
    fn the_wsdl_knows_the_host() {
        let at = "/services/SimpleStockQuoteService?wsdl";
        let (_, bytes) = ask(&Backend::default(), "GET", at, "", Body::Empty);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("http://localhost:9000/services/SimpleStockQuoteService\""), "{text}");
    }

    #[test]
    fn what_the_modes_leave_out_is_404_and_a_delay_is_kept() {
        let backend = Backend::new(vec![Mode::Echo], Duration::from_millis(20));
        let start = std::time::Instant::now();
        let (response, _) = ask(&backend, "POST", "/services/SimpleStockQuoteService", "", Body::Empty);
        assert_eq!(response.head.status, 404);
        assert!(start.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    fn the_measured_echo_scenarios_go_through_the_handler() {
        assert!(ROUND.iter().filter(|scenario| scenario.is_measured()).count() > 10);
        let case = find("AppendProxy").unwrap().case(512);
        let body = Body::Bytes(case.request.body.clone().into());
        let (response, bytes) = ask(&Backend::default(), "POST", "/services/AppendService", "text/xml", body);
        let headers: Vec<(&str, &str)> = response
            .head
            .headers
            .iter()
            .filter_map(|(n, v)| Some((n, std::str::from_utf8(v).ok()?)))
            .collect();
        let answer =
            crate::check::ReceivedResponse { status: response.head.status, headers: &headers, body: &bytes };
        assert_eq!(case.check(&answer), Ok(()));
    }
}
