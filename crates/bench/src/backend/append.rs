//! The append service: a service that works on its payload, a string, as little as one can.

use super::soap::{self, Blame, Call};
use super::{BackendRequest, BackendResponse};

/// What is appended.
pub const SUFFIX: &str = " appended by the backend";

/// Answers a request element `{ns}op` that holds text with `{ns}opResponse`, whose `return` is that text and [`SUFFIX`].
pub fn answer(request: &BackendRequest<'_>) -> BackendResponse {
    let call = match Call::read(request) {
        Ok(call) => call,
        Err(fault) => return fault,
    };
    let id = call.message_id.as_deref();
    let operation = call.operation();
    if operation == "Fault" {
        return soap::fault(call.format, Blame::Client, id, "a fault is not a request");
    }
    let namespace = soap::escape(call.document.namespace(call.payload)).replace('"', "&quot;");
    let text = call.document.string_value(call.payload);
    let text = soap::escape(text.trim());
    let payload = format!(
        "<a:{operation}Response xmlns:a=\"{namespace}\"><return>{text}{SUFFIX}</return></a:{operation}Response>"
    );
    let payload = if namespace.is_empty() {
        // no prefix can stand for "no namespace"
        format!("<{operation}Response><return>{text}{SUFFIX}</return></{operation}Response>")
    } else {
        payload
    };
    soap::answer(call.format, operation, id, &payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{append_message, append_payload};

    fn ask(content_type: &str, body: &[u8]) -> (u16, String) {
        let headers = [("content-type", content_type)];
        let request =
            BackendRequest { method: "POST", path: "/services/AppendService", headers: &headers, body };
        let response = answer(&request);
        (response.status, String::from_utf8(response.bytes(body).to_vec()).unwrap())
    }

    #[test]
    fn the_suffix_comes_behind_the_payload() {
        let (status, text) = ask("text/xml", &append_message(1024));
        assert_eq!(status, 200);
        let want = format!("<return>{}{SUFFIX}</return></a:appendResponse>", append_payload(1024));
        assert!(text.contains(&want), "{text}");
        let (status, text) = ask("application/xml", b"<x>a &lt; b</x>");
        assert_eq!(
            (status, &*text),
            (200, &*format!("<xResponse><return>a &lt; b{SUFFIX}</return></xResponse>"))
        );
    }

    #[test]
    fn bad_input_is_a_fault() {
        assert_eq!(ask("text/xml", b"<x>").0, 500);
        assert_eq!(ask("application/xml", b"").0, 400);
    }
}
