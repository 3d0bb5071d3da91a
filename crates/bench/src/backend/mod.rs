//! The embedded backend: what a bus is tried, shown and measured against, with nothing else installed.
//!
//! | path | service |
//! |---|---|
//! | `/services/EchoService`, `/echo…` | answers with the very bytes of the request, of any content type |
//! | `/services/OrderService` | the echo of the rounds: takes a `buyStocks` message, refuses everything else with a SOAP fault, and answers with the message; the header `Orders-Accepted` says how many orders it read |
//! | `/services/AppendService` | answers with the request's payload string and a suffix |
//! | `/services/SimpleStockQuoteService` | the stock quotes of the Synapse samples |
//!
//! The last three answer `?wsdl`. The logic is a pure function from a request to a response, [`answer`]; [`Backend`] serves it
//! over HTTP.

mod append;
mod http;
mod orders;
mod quotes;
mod soap;
mod wsdl;

pub use append::SUFFIX;
pub use http::Backend;
pub use quotes::quote;

/// A request as the backend sees it.
#[derive(Copy, Clone, Debug)]
pub struct BackendRequest<'a> {
    /// `GET`, `POST`, …
    pub method: &'a str,
    /// Path and query, or an absolute URI.
    pub path: &'a str,
    /// Header names and values; names in any case.
    pub headers: &'a [(&'a str, &'a str)],
    /// The entity.
    pub body: &'a [u8],
}

impl<'a> BackendRequest<'a> {
    /// The value of the first header of that name.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }

    /// The media type of the body, without parameters, in lower case; empty where it is not known.
    pub fn media_type(&self) -> String {
        let value = self.header("content-type").unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// The `charset` of the content type.
    fn charset(&self) -> Option<String> {
        let parameters = self.header("content-type")?.split(';').skip(1);
        let pairs = parameters.filter_map(|parameter| parameter.split_once('='));
        pairs
            .filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))
            .map(|(_, value)| value.trim().trim_matches('"').to_owned())
            .next()
    }

    /// The path alone.
    fn path_only(&self) -> &'a str {
        path_of(self.path).split('?').next().unwrap_or_default()
    }

    /// The query, without the question mark; empty where there is none.
    fn query(&self) -> &'a str {
        self.path.split_once('?').map_or("", |(_, query)| query)
    }
}

/// What the backend answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendResponse {
    /// HTTP status.
    pub status: u16,
    /// Headers, without those about the length and the connection.
    pub headers: Vec<(&'static str, String)>,
    /// The entity.
    pub body: ResponseBody,
}

/// The entity of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseBody {
    /// The very bytes of the request's body: the caller has them already.
    Request,
    /// These bytes; none: no entity.
    Bytes(Vec<u8>),
}

impl BackendResponse {
    /// The entity, given the request's.
    pub fn bytes<'a>(&'a self, request_body: &'a [u8]) -> &'a [u8] {
        match &self.body {
            ResponseBody::Request => request_body,
            ResponseBody::Bytes(bytes) => bytes,
        }
    }

    /// The value of the first header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    fn empty(status: u16) -> BackendResponse {
        BackendResponse { status, headers: Vec::new(), body: ResponseBody::Bytes(Vec::new()) }
    }

    fn new(status: u16, content_type: impl Into<String>, body: impl Into<Vec<u8>>) -> BackendResponse {
        let headers = vec![("Content-Type", content_type.into())];
        BackendResponse { status, headers, body: ResponseBody::Bytes(body.into()) }
    }
}

/// The services of the backend.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// The very bytes back.
    Echo,
    /// Order messages back, anything else refused.
    Orders,
    /// The payload string and a suffix.
    Append,
    /// The stock quote service.
    StockQuote,
}

impl Service {
    /// The service at a path (or absolute URI); a query does not count.
    pub fn at(path: &str) -> Option<Service> {
        let path = path_of(path).split('?').next().unwrap_or_default();
        let Some(service) = path.strip_prefix("/services/") else {
            return path.starts_with("/echo").then_some(Service::Echo);
        };
        match service.split('/').next().unwrap_or_default() {
            "EchoService" => Some(Service::Echo),
            "OrderService" => Some(Service::Orders),
            "AppendService" => Some(Service::Append),
            "SimpleStockQuoteService" => Some(Service::StockQuote),
            _ => None,
        }
    }

    /// Whether the answer depends on the body.
    pub fn needs_body(self) -> bool {
        self != Service::Echo
    }

    /// The mode that switches this service on.
    pub fn mode(self) -> Mode {
        match self {
            Service::Echo | Service::Orders | Service::Append => Mode::Echo,
            Service::StockQuote => Mode::StockQuote,
        }
    }
}

/// What `busbar backend --mode` switches on; without it, everything.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The services that answer with what they got: echo, orders and append.
    Echo,
    /// The stock quote service.
    StockQuote,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Mode; 2] = [Mode::Echo, Mode::StockQuote];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Echo => "echo",
            Mode::StockQuote => "stockquote",
        }
    }
}

impl std::str::FromStr for Mode {
    type Err = String;

    fn from_str(name: &str) -> Result<Mode, String> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name.trim()).ok_or_else(|| {
            format!("there is no mode '{name}', only {}", Mode::ALL.map(Mode::name).join(" and "))
        })
    }
}

/// Answers a request; every service is on.
pub fn answer(request: &BackendRequest<'_>) -> BackendResponse {
    answer_in(&Mode::ALL, request)
}

/// Answers a request with the services of these modes; for all other paths the answer is 404.
pub fn answer_in(modes: &[Mode], request: &BackendRequest<'_>) -> BackendResponse {
    let Some(service) = Service::at(request.path).filter(|service| modes.contains(&service.mode())) else {
        return BackendResponse::new(404, "text/plain", format!("no service at {}\n", request.path_only()));
    };
    if service != Service::Echo && wsdl::is_asked_for(request) {
        return wsdl::answer(service, request);
    }
    match service {
        Service::Echo => echo(request, Vec::new()),
        Service::Orders => orders::answer(request),
        Service::Append => append::answer(request),
        Service::StockQuote => quotes::answer(request),
    }
}

/// The request's bytes under the request's content type, and these headers.
fn echo(request: &BackendRequest<'_>, mut headers: Vec<(&'static str, String)>) -> BackendResponse {
    if let Some(content_type) = request.header("content-type") {
        headers.insert(0, ("Content-Type", content_type.to_owned()));
    }
    BackendResponse { status: 200, headers, body: ResponseBody::Request }
}

/// Path and query of a request target, which may be an absolute URI.
fn path_of(target: &str) -> &str {
    match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => rest.find('/').map_or("/", |slash| &rest[slash..]),
        _ => target,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request<'a>(
        method: &'a str,
        path: &'a str,
        headers: &'a [(&'a str, &'a str)],
        body: &'a [u8],
    ) -> BackendRequest<'a> {
        BackendRequest { method, path, headers, body }
    }

    #[test]
    fn echo_gives_the_very_bytes_and_the_content_type_back() {
        for path in
            ["/services/EchoService", "/services/EchoService/a?b=c", "/echo", "/echo/binary", "/echoes"]
        {
            let headers = [("content-type", "image/png; q=1")];
            let response = answer(&request("POST", path, &headers, b"\xFF\0<"));
            assert_eq!((response.status, response.bytes(b"\xFF\0<")), (200, &b"\xFF\0<"[..]), "{path}");
            assert_eq!(response.header("Content-Type"), Some("image/png; q=1"));
        }
        assert!(answer(&request("GET", "/echo", &[], b"")).headers.is_empty());
    }

    #[test]
    fn paths_lead_to_services() {
        let cases = [
            ("/services/EchoService", Some(Service::Echo)),
            ("http://localhost:9000/services/OrderService?x=http://y", Some(Service::Orders)),
            ("/services/AppendService/", Some(Service::Append)),
            ("/services/SimpleStockQuoteService/getQuote?symbol=IBM", Some(Service::StockQuote)),
            ("/services/Nothing", None),
            ("/services/", None),
            ("/services", None),
            ("/", None),
            ("", None),
            ("http://h", None),
        ];
        for (path, want) in cases {
            assert_eq!(Service::at(path), want, "{path}");
        }
        assert_eq!(answer(&request("POST", "/nothing", &[], b"")).status, 404);
    }

    #[test]
    fn no_input_is_too_strange() {
        let message = crate::messages::order_message(400, &crate::messages::Variant::default());
        let types =
            ["text/xml", "application/soap+xml", "application/x-www-form-urlencoded; charset=x", ";", ""];
        for path in
            ["OrderService", "AppendService", "SimpleStockQuoteService", "SimpleStockQuoteService/getQuote"]
        {
            let path = format!("/services/{path}?%&=&wsd\u{e9}=%zz&symbol=%");
            for content_type in types {
                let headers = [("content-type", content_type)];
                for cut in (0..message.len()).step_by(7) {
                    let mut body = message[..cut].to_vec();
                    body.extend([b'<', 0xFF]);
                    for method in ["GET", "POST", ""] {
                        let response = answer(&request(method, &path, &headers, &body));
                        assert!([200, 400, 500].contains(&response.status), "{response:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_charset_of_the_content_type_counts() {
        let headers = [("Content-Type", "application/xml; a=b; Charset=\"ISO-8859-1\"")];
        let response = answer(&request("POST", "/services/AppendService", &headers, b"<x>\xE9</x>"));
        assert_eq!(response.status, 200);
        assert!(String::from_utf8_lossy(response.bytes(b"")).contains("<return>\u{e9} "), "{response:?}");
    }

    #[test]
    fn a_mode_that_is_off_answers_404() {
        let ask = |modes: &[Mode], path| answer_in(modes, &request("GET", path, &[], b"")).status;
        assert_eq!(ask(&[Mode::Echo], "/services/SimpleStockQuoteService?wsdl"), 404);
        assert_eq!(ask(&[Mode::StockQuote], "/services/SimpleStockQuoteService?wsdl"), 200);
        assert_eq!(ask(&[Mode::StockQuote], "/echo"), 404);
        assert_eq!("stockquote".parse(), Ok(Mode::StockQuote));
        assert!("quotes".parse::<Mode>().unwrap_err().contains("echo and stockquote"));
    }
}
