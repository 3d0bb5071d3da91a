//! The order service: the echo of the ESB performance rounds, which reads what it echoes.
//!
//! It answers a `buyStocks` message with the very bytes of that message, and refuses every other message. So an answer
//! proves that the bus sent an order message, and `Orders-Accepted` how many orders were in it.

use super::soap::{self, Blame, Call};
use super::{BackendRequest, BackendResponse, echo};
use crate::messages::ORDERS;

pub fn answer(request: &BackendRequest<'_>) -> BackendResponse {
    let call = match Call::read(request) {
        Ok(call) => call,
        Err(fault) => return fault,
    };
    let document = &call.document;
    if !document.is_element(call.payload, ORDERS, "buyStocks") {
        let (namespace, name) = (document.namespace(call.payload), call.operation());
        let why =
            format!("not an order message: expected {{{ORDERS}}}buyStocks, found {{{namespace}}}{name}");
        return soap::fault(call.format, Blame::Client, call.message_id.as_deref(), &why);
    }
    let orders =
        document.children(call.payload).filter(|&node| document.is_element(node, "", "order")).count();
    echo(request, vec![("Orders-Accepted", orders.to_string())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{Schema, Variant, order_message, orders};

    fn ask(body: &[u8]) -> BackendResponse {
        let headers = [("Content-Type", "text/xml; charset=UTF-8")];
        answer(&BackendRequest { method: "POST", path: "/services/OrderService", headers: &headers, body })
    }

    #[test]
    fn order_messages_are_counted_and_echoed() {
        for size in [512, 10 << 10, 1 << 20] {
            let variant = Variant::default();
            let message = order_message(size, &variant);
            let response = ask(&message);
            assert_eq!((response.status, response.bytes(&message)), (200, &message[..]));
            assert_eq!(response.header("Orders-Accepted"), Some(&*orders(size, &variant).len().to_string()));
            assert_eq!(response.header("Content-Type"), Some("text/xml; charset=UTF-8"));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let reversed = order_message(512, &Variant { schema: Schema::Reversed, ..Variant::default() });
        let mut broken = order_message(512, &Variant::default());
        broken.truncate(500);
        for body in [reversed, broken, b"<buyStocks/>".to_vec(), Vec::new()] {
            let response = ask(&body);
            assert!(response.status >= 400);
            assert_eq!(response.header("Orders-Accepted"), None);
        }
    }
}
