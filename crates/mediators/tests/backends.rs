//! Backends that refuse: those that want to know who asks (OAuth and user and password of http endpoints, NTLM), and
//! what a refusal does to an endpoint.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flow::testing::{self, Tested};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];

/// What a backend was asked: the number of the connection, head and body.
type Seen = Arc<Mutex<Vec<(usize, String, String)>>>;

/// A backend on threads of its own, whose connections stay open. `respond` gets the number of the request, its head and
/// body, and gives status line, fields and body of the response.
fn backend(
    respond: impl Fn(usize, &str, &str) -> (String, String) + Send + Sync + 'static,
) -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback can be bound");
    let address = listener.local_addr().expect("a bound listener has an address");
    let seen = Seen::default();
    let (respond, all) = (Arc::new(respond), Arc::clone(&seen));
    std::thread::spawn(move || {
        for (connection, stream) in listener.incoming().flatten().enumerate() {
            let (respond, all) = (Arc::clone(&respond), Arc::clone(&all));
            std::thread::spawn(move || serve(stream, connection, &*respond, &all));
        }
    });
    (format!("http://{address}"), seen)
}

fn serve(
    mut stream: TcpStream,
    connection: usize,
    respond: &dyn Fn(usize, &str, &str) -> (String, String),
    all: &Seen,
) -> Option<()> {
    let (mut received, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&received).into_owned();
        let whole = text.split_once("\r\n\r\n").and_then(|(head, rest)| {
            let length = field(head, "content-length").map_or(0, |text| text.parse().expect("a number"));
            (rest.len() >= length).then(|| (head.to_owned(), rest[..length].to_owned()))
        });
        if let Some((head, body)) = whole {
            received.drain(..head.len() + 4 + body.len());
            let number = {
                let mut all = all.lock().expect("nobody panics with it");
                all.push((connection, head.clone(), body.clone()));
                all.len() - 1
            };
            let (begin, body) = respond(number, &head, &body);
            write!(stream, "{begin}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).ok()?;
            if begin.contains("Connection: close") {
                return None;
            }
            continue;
        }
        match stream.read(&mut chunk).ok()? {
            0 => return None,
            count => received.extend_from_slice(&chunk[..count]),
        }
    }
}

fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, text)| text.trim())
}

/// A flow that calls the endpoint `e` and answers with what comes; a fault answers with its properties.
fn flow(before: &str, call: &str, endpoint: &str) -> Tested {
    let text = format!(
        "{before}{call}<respond/><!--top--><endpoint name='e'>{endpoint}</endpoint>\
         <sequence name='fault'><payloadFactory media-type='text'><format>$1: $2 / $3</format><args>\
         <arg expression=\"get-property('ERROR_CODE')\"/><arg expression=\"get-property('ERROR_MESSAGE')\"/>\
         <arg expression=\"get-property('ERROR_DETAIL')\"/></args></payloadFactory><respond/></sequence>"
    );
    let tested = testing::main(&busbar_mediators::registry(endpoints::endpoint), &text);
    // A value that is not set is reported, and the messages that need it fault.
    let others: Vec<_> = tested.found.iter().filter(|found| !found.starts_with("unresolved-value")).collect();
    assert!(others.is_empty(), "{others:?}");
    tested
}

const CALL: &str = "<call><endpoint key='e'/></call>";

fn ok(body: &str) -> (String, String) {
    // Each test message has an event loop of its own, so connections cannot be kept.
    ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json".to_owned(), body.to_owned())
}

fn oauth(backend: &str, inside: &str) -> String {
    format!(
        "<http method='post' uri-template='{backend}/x'><authentication><oauth>{inside}</oauth></authentication></http>"
    )
}

#[test]
fn the_token_is_asked_for_as_the_grant_says() {
    for (grant, headers, wanted) in [
        (
            "<clientCredentials><clientId>me</clientId><clientSecret>s&amp;</clientSecret><tokenUrl>URL/token?a=1</tokenUrl></clientCredentials>",
            vec![("Authorization", "Basic bWU6cyY=")],
            "grant_type=client_credentials",
        ),
        (
            "<clientCredentials><clientId>me</clientId><clientSecret>s&amp;</clientSecret><tokenUrl>URL/token?a=1</tokenUrl><authMode>Payload</authMode></clientCredentials>",
            vec![],
            "grant_type=client_credentials&client_id=me&client_secret=s%26",
        ),
        (
            "<clientCredentials><clientId>me</clientId><clientSecret>s&amp;</clientSecret><tokenUrl>URL/token?a=1</tokenUrl><authMode>{$ctx:mode}</authMode></clientCredentials>",
            vec![],
            "grant_type=client_credentials&client_id=me&client_secret=s%26",
        ),
        (
            "<clientCredentials><clientId>me</clientId><clientSecret>s&amp;</clientSecret><tokenUrl>URL/token?a=1</tokenUrl><authMode>{$ctx:none}</authMode></clientCredentials>",
            vec![("Authorization", "Basic bWU6cyY=")],
            "grant_type=client_credentials",
        ),
        (
            "<passwordCredentials><username>u</username><password>{$ctx:secret}</password><tokenUrl>URL/token?a=1</tokenUrl></passwordCredentials>",
            vec![],
            "grant_type=password&username=u&password=p%20w",
        ),
        (
            "<authorizationCode><clientId>me</clientId><clientSecret>s</clientSecret><refreshToken>r</refreshToken><tokenUrl>URL/token?a=1</tokenUrl>\
             <requestParameters><parameter name='scope'>a b</parameter></requestParameters><customHeaders><header name='X-Own'>{$ctx:secret}</header></customHeaders></authorizationCode>",
            vec![("X-Own", "p w"), ("Authorization", "Basic bWU6cw==")],
            "grant_type=refresh_token&refresh_token=r&scope=a%20b",
        ),
    ] {
        let (tokens, requests) = backend(|_, _, _| ok(r#"{"access_token":"T","expires_in":3600}"#));
        let (address, seen) = backend(|_, _, _| ok("{}"));
        let endpoint = oauth(&address, &grant.replace("URL", &tokens));
        let tested = flow(
            "<property name='secret' value='p w'/><property name='mode' value='payload'/>",
            CALL,
            &endpoint,
        );
        for _ in 0..2 {
            assert_eq!(tested.ask("POST", "/", JSON, "{}").body, "{}", "{grant}");
        }
        let requests = requests.lock().expect("it");
        assert_eq!(requests.len(), 1, "one token for both: {requests:?}");
        let (_, head, body) = &requests[0];
        assert!(head.starts_with("POST /token?a=1 HTTP/1.1"), "{head}");
        assert_eq!(
            (field(head, "Content-Type"), body.as_str()),
            (Some("application/x-www-form-urlencoded"), wanted)
        );
        for name in ["Authorization", "X-Own"] {
            let wanted = headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
            assert_eq!(field(head, name), wanted, "{grant}");
        }
        let seen = seen.lock().expect("it");
        assert!(seen.iter().all(|(_, head, _)| field(head, "Authorization") == Some("Bearer T")), "{seen:?}");
    }
}

const GRANT: &str = "<clientCredentials><clientId>c</clientId><clientSecret>s</clientSecret><tokenUrl>URL/t</tokenUrl></clientCredentials>";

#[test]
fn a_refused_token_is_fetched_anew_once() {
    for (good, status, asks) in [("T1", 200, 2), ("none", 401, 2)] {
        let (tokens, requests) =
            backend(|number, _, _| ok(&format!(r#"{{"access_token":"T{number}","expires_in":"3600"}}"#)));
        let (address, seen) = backend(move |_, head, body| {
            match field(head, "Authorization") == Some(&format!("Bearer {good}")) {
                true => ok(body),
                false => ("HTTP/1.1 401 No\r\nContent-Type: text/plain".to_owned(), "who?".to_owned()),
            }
        });
        let tested = flow("", CALL, &oauth(&address, &GRANT.replace("URL", &tokens)));
        let response = tested.ask("POST", "/", JSON, r#"{"n":1}"#);
        assert_eq!(response.status, status, "{response:?}");
        if status == 200 {
            assert_eq!(response.body, r#"{"n":1}"#);
            assert_eq!(tested.ask("POST", "/", JSON, "{}").status, 200);
        }
        assert_eq!(requests.lock().expect("it").len(), asks);
        let seen = seen.lock().expect("it");
        assert!(seen.iter().take(2).all(|(_, _, body)| body == r#"{"n":1}"#), "{seen:?}");
    }
}

#[test]
fn a_token_that_is_over_is_fetched_anew() {
    let (tokens, requests) = backend(|_, _, _| ok(r#"{"access_token":"T","expires_in":0}"#));
    let (address, _) = backend(|_, _, _| ok("{}"));
    let tested = flow("", CALL, &oauth(&address, &GRANT.replace("URL", &tokens)));
    for _ in 0..3 {
        assert_eq!(tested.ask("POST", "/", JSON, "{}").status, 200);
    }
    assert_eq!(requests.lock().expect("it").len(), 3);
}

#[test]
fn the_token_is_fetched_through_the_proxy_of_the_endpoint() {
    let (proxy, requests) = backend(|_, _, _| ok(r#"{"access_token":"T"}"#));
    let (address, seen) = backend(|_, _, _| ok("{}"));
    let port = proxy.rsplit(':').next().unwrap_or_default();
    let with_proxy = format!(
        "<proxyConfigs><proxyHost>127.0.0.1</proxyHost><proxyPort>{port}</proxyPort><proxyUsername>u</proxyUsername>\
         <proxyPassword>p</proxyPassword><proxyProtocol>http</proxyProtocol></proxyConfigs></clientCredentials>"
    );
    let grant = GRANT.replace("URL", "http://tokens.example").replace("</clientCredentials>", &with_proxy);
    let tested = flow("", CALL, &oauth(&address, &grant));
    assert_eq!(tested.ask("POST", "/", JSON, "{}").status, 200);
    let head = requests.lock().expect("it")[0].1.clone();
    assert!(head.starts_with("POST http://tokens.example/t HTTP/1.1"), "{head}");
    assert_eq!(field(&head, "proxy-authorization").map(str::trim), Some("Basic dTpw"), "{head}");
    // Messages do not go that way.
    let head = seen.lock().expect("it")[0].1.clone();
    assert!(head.starts_with("POST /x ") && head.to_ascii_lowercase().contains("bearer t"), "{head}");
}

#[test]
fn without_a_token_the_fault_sequence_runs() {
    let huge = format!(r#"{{"access_token":"{}"}}"#, "x".repeat(2 << 20));
    for (response, says) in [
        (("HTTP/1.1 500 No".to_owned(), "no".to_owned()), "answered with 500"),
        (ok("<a/>"), "not JSON"),
        (ok(""), "not JSON"),
        (ok("{}"), "no access_token"),
        (ok(r#"{"access_token":5}"#), "no access_token"),
        (ok(r#"{"access_token":"a\nb"}"#), "not a token"),
        (ok(&huge), "larger than"),
    ] {
        let (tokens, _) = backend(move |_, _, _| response.clone());
        let (address, seen) = backend(|_, _, _| ok("{}"));
        for call in
            [CALL, "<call blocking='true'><endpoint key='e'/></call>", "<send><endpoint key='e'/></send>"]
        {
            let tested = flow("", call, &oauth(&address, &GRANT.replace("URL", &tokens)));
            let response = tested.ask("POST", "/", JSON, "{}");
            let wanted = "303003: Could not get an access token for the OAuth endpoint / ";
            assert!(
                response.body.starts_with(wanted) && response.body.contains(says),
                "{call} {says}: {response:?}"
            );
        }
        assert!(seen.lock().expect("it").is_empty());
    }
    // Nobody listens there.
    let dead = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port");
    let tested =
        flow("", CALL, &oauth("http://127.0.0.1:9", &GRANT.replace("URL", &format!("http://{dead}"))));
    assert!(tested.ask("POST", "/", JSON, "{}").body.starts_with("303003: "));
    for (url, says) in
        [("{$ctx:none}", "not an address"), ("$SYSTEM:BUSBAR_NO_TOKENS", "$SYSTEM:BUSBAR_NO_TOKENS")]
    {
        let tested = flow("", CALL, &oauth("http://127.0.0.1:9", &GRANT.replace("URL/t", url)));
        let body = tested.ask("POST", "/", JSON, "{}").body;
        let wanted = "303003: Could not get an access token for the OAuth endpoint / ";
        assert!(body.starts_with(wanted) && body.contains(says), "{body}");
    }
}

#[test]
fn mistakes_of_oauth_are_found_when_the_configuration_loads() {
    for (grant, says) in [
        (GRANT.replace("URL", "nowhere"), "is not an address"),
        (GRANT.replace("<clientId>c</clientId>", ""), "clientId"),
        (GRANT.replace("</clientCredentials>", "<proxyConfigs/></clientCredentials>"), "the address of the proxy"),
        (GRANT.replace("</clientCredentials>", "<sslEnabled>x</sslEnabled></clientCredentials>"), "`sslEnabled` has no effect"),
        (
            GRANT.replace(
                "</clientCredentials>",
                "<proxyConfigs><proxyHost>p</proxyHost><proxyPort>1</proxyPort><proxyProtocol>https</proxyProtocol></proxyConfigs></clientCredentials>",
            ),
            "without TLS",
        ),
    ] {
        let text = format!(
            "<drop/><!--top--><endpoint name='e'>{}</endpoint>",
            oauth("http://localhost", &grant.replace("URL", "http://localhost"))
        );
        let tested = testing::main(&busbar_mediators::registry(endpoints::endpoint), &text);
        assert!(tested.reports(says), "{grant}: {:?}", tested.found);
    }
}

#[test]
fn user_and_password_of_an_endpoint() {
    let (address, seen) = backend(|_, _, _| ok("{}"));
    let endpoint = format!(
        "<http method='post' uri-template='{address}/x'><authentication><basicAuth><username>{{$ctx:u}}</username>\
         <password>p</password></basicAuth></authentication></http>"
    );
    let tested = flow("<property name='u' value='me'/>", CALL, &endpoint);
    assert_eq!(tested.ask("POST", "/", JSON, "{}").status, 200);
    assert_eq!(field(&seen.lock().expect("it")[0].1, "Authorization"), Some("Basic bWU6cA=="));
}

#[test]
fn the_key_of_an_endpoint() {
    let (address, seen) = backend(|_, _, _| ok("{}"));
    let endpoint = |name: &str| {
        format!(
            "<http method='post' uri-template='{address}/x'><authentication><apiKey><name>{name}</name>\
             <value>{{$ctx:k}}</value></apiKey></authentication></http>"
        )
    };
    let tested = flow("<property name='k' value='secret'/>", CALL, &endpoint("X-API-Key"));
    // The client's own is not sent.
    let headers = &[("Content-Type", "application/json"), ("X-Api-Key", "mine")];
    assert_eq!(tested.ask("POST", "/", headers, "{}").status, 200);
    assert_eq!(field(&seen.lock().expect("it")[0].1, "X-API-Key"), Some("secret"));
    let text = format!("<drop/><!--top--><endpoint name='e'>{}</endpoint>", endpoint("X API"));
    let wrong = testing::main(&busbar_mediators::registry(endpoints::endpoint), &text);
    assert!(wrong.reports("`X API` is not a name of a header"), "{:?}", wrong.found);
}

/// A second message of NTLM.
fn challenge() -> String {
    let mut out = b"NTLMSSP\0\x02\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    out.extend_from_slice(&0x0080_0201u32.to_le_bytes());
    out.extend_from_slice(b"12345678\0\0\0\0\0\0\0\0");
    out.extend_from_slice(&[4, 0, 4, 0, 48, 0, 0, 0, 0, 0, 0, 0]);
    STANDARD.encode(out)
}

#[test]
fn the_handshake_of_ntlm_goes_over_one_connection() {
    let ntlm = "<NTLM username='u' password='{$ctx:secret}' domain='d' host='h'/><property name='secret' value='p'/>";
    for (version, call) in [
        ("v1", "<call blocking='true'><endpoint key='e'/></call>"),
        ("v2", "<call blocking='true'><endpoint key='e'/></call>"),
        ("v2", "<callout endpointKey='e' initAxis2ClientOptions='false'/>"),
    ] {
        let (address, seen) = backend(|number, head, _| {
            let refused = |offer: &str| {
                (
                    format!(
                        "HTTP/1.1 401 No\r\nContent-Type: text/plain\r\nWWW-Authenticate: Negotiate\r\nWWW-Authenticate: {offer}"
                    ),
                    "who?".to_owned(),
                )
            };
            let token =
                field(head, "Authorization").and_then(|credentials| credentials.strip_prefix("NTLM "));
            let kind = token.and_then(|text| STANDARD.decode(text).ok()).map(|message| message[8]);
            match (number % 3, kind) {
                (0, None) => refused("NTLM"),
                (1, Some(1)) => refused(&format!("NTLM {}", challenge())),
                (2, Some(3)) => ok(r#"{"in":true}"#),
                _ => ("HTTP/1.1 400 Wrong".to_owned(), String::new()),
            }
        });
        let ntlm = ntlm.replace("<NTLM ", &format!("<NTLM ntlmVersion='{version}' "));
        let (before, after) = ntlm.split_once("/>").expect("two elements");
        let before = format!("{after}{before}/>");
        let tested = flow(&before, call, &format!("<http method='post' uri-template='{address}/x'/>"));
        for _ in 0..2 {
            let response = tested.ask("POST", "/", JSON, r#"{"n":1}"#);
            assert_eq!((response.status, response.body.as_str()), (200, r#"{"in":true}"#), "{call}");
        }
        let seen = seen.lock().expect("it");
        let connections: Vec<_> = seen.iter().map(|(connection, _, _)| *connection).collect();
        assert_eq!(connections, [0, 0, 0, 1, 1, 1]);
        assert!(seen.iter().all(|(_, _, body)| body == r#"{"n":1}"#), "{seen:?}");
    }
}

#[test]
fn ntlm_answers_nothing_but_its_own_challenge() {
    let (blocking, plain) = ("<call blocking='true'><endpoint key='e'/></call>", CALL);
    for (offer, call, requests, says) in [
        ("Basic realm=\"x\"", blocking, 1, "401: Transport error: 401"),
        ("NTLM", plain, 1, "who?"),
        ("NTLM", blocking, 2, "401: Transport error: 401"),
        ("NTLM !", blocking, 1, "0: the NTLM challenge of the backend cannot be answered / it is not Base64"),
    ] {
        let (address, seen) = backend(move |_, _, _| {
            (
                format!("HTTP/1.1 401 No\r\nContent-Type: text/plain\r\nWWW-Authenticate: {offer}"),
                "who?".to_owned(),
            )
        });
        let endpoint = format!("<http method='post' uri-template='{address}/x'/>");
        let tested = flow("<NTLM username='u' password='p'/>", call, &endpoint);
        let response = tested.ask("POST", "/", JSON, "{}");
        assert!(response.body.contains(says), "{offer}: {response:?}");
        assert_eq!(seen.lock().expect("it").len(), requests, "{offer}");
    }
}

#[test]
fn a_refused_blocking_call_suspends_the_endpoint_like_any_failure() {
    for (call, timing, second) in [
        ("<call blocking='true'><endpoint key='e'/></call>", "", "303001: "),
        (
            "<call blocking='true'><endpoint key='e'/></call>",
            "<suspendOnFailure><errorCodes>101503</errorCodes></suspendOnFailure>",
            "404: ",
        ),
        (CALL, "", "gone"),
    ] {
        let (address, _) = backend(|_, _, _| {
            (
                "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Type: text/plain".to_owned(),
                "gone".to_owned(),
            )
        });
        let tested = flow("", call, &format!("<address uri='{address}/x'>{timing}</address>"));
        let first = tested.ask("POST", "/", JSON, "{}").body;
        assert!(first.starts_with(if call == CALL { "gone" } else { "404: " }), "{first}");
        let response = tested.ask("POST", "/", JSON, "{}").body;
        assert!(response.starts_with(second), "{timing}: {response}");
    }
}

#[test]
fn an_envelope_that_a_plain_endpoint_answers_with_is_not_put_into_another() {
    let soap = [("Content-Type", "text/xml; charset=UTF-8"), ("SOAPAction", "\"urn:a\"")];
    let envelope = |uri: &str, content: &str| {
        format!("<s:Envelope xmlns:s=\"{uri}\"><s:Body>{content}</s:Body></s:Envelope>")
    };
    let [uri11, uri12] =
        ["http://schemas.xmlsoap.org/soap/envelope/", "http://www.w3.org/2003/05/soap-envelope"];
    for format in ["pox", "rest"] {
        for (content_type, answer, content) in [
            ("text/xml", envelope(uri11, "<a>1</a>"), "<a>1</a>"),
            ("application/xml", envelope(uri11, "<a>1</a>"), "<a>1</a>"),
            ("application/xml", envelope(uri12, "<a>1</a>"), "<a>1</a>"),
            // Plain documents still become the payload of an envelope, one that only looks like an envelope too.
            ("text/xml", "<a>1</a>".to_owned(), "<a>1</a>"),
            ("application/xml", "<Envelope><Body/></Envelope>".to_owned(), "<Envelope><Body/></Envelope>"),
        ] {
            for change in ["", "<property name='messageType' value='text/xml' scope='axis2'/>"] {
                let body = answer.clone();
                let begin = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: {content_type}");
                let (address, _) = backend(move |_, _, _| (begin.clone(), body.clone()));
                let endpoint = format!("<address uri='{address}/x' format='{format}'/>");
                let tested = flow("", &format!("{CALL}{change}"), &endpoint);
                let answered = tested.ask("POST", "/", &soap, &envelope(uri11, "<q/>"));
                assert_eq!(answered.status, 200, "{answered:?}");
                let body = &answered.body;
                assert_eq!(body.matches(":Envelope ").count(), 1, "{format} {content_type} {change}: {body}");
                assert!(body.contains(uri11) && body.contains(content), "{format} {content_type}: {body}");
            }
        }
    }
}

#[test]
fn an_answer_that_is_labelled_as_soap_and_is_none_reaches_clients_of_either_version() {
    let uri12 = "http://www.w3.org/2003/05/soap-envelope";
    let envelope = format!("<s:Envelope xmlns:s='{uri12}'><s:Body><q/></s:Body></s:Envelope>");
    let client = [("Content-Type", "application/soap+xml")];
    for body in ["<a>1</a>", "<a><b></a>", "no XML"] {
        let answer = move |_: usize, _: &str, _: &str| {
            let begin = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/xml";
            (begin.to_owned(), body.to_owned())
        };
        let (address, _) = backend(answer);
        let tested = flow("", CALL, &format!("<address uri='{address}/x'/>"));
        let answered = tested.ask("POST", "/", &client, &envelope);
        assert_eq!((answered.status, answered.body.as_str()), (200, body));
        assert_eq!(answered.headers.get("Content-Type"), Some("text/xml"), "{body}");
    }
}

/// A backend that answers each request with `response` as it is, and closes.
fn broken_off(response: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback can be bound");
    let address = listener.local_addr().expect("a bound listener has an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let (mut received, mut chunk) = (Vec::new(), [0; 4096]);
                while !received.trim_ascii_end().ends_with(b"}") && !received.ends_with(b"0\r\n\r\n") {
                    match stream.read(&mut chunk) {
                        Ok(count @ 1..) => received.extend_from_slice(&chunk[..count]),
                        _ => return,
                    }
                }
                // Who is not there any more needs no answer.
                let _ = stream.write_all(response.as_bytes());
            });
        }
    });
    format!("http://{address}")
}

#[test]
fn an_answer_that_breaks_off_has_its_code_wherever_it_is_received() {
    let call = |inside: &str| format!("<call><endpoint key='e'/>{inside}</call>");
    let reads = "<property name='p' expression='json-eval($.a)'/>";
    for response in [
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"a\":",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let address = broken_off(response);
        for flow_of in [
            format!("{}{reads}", call("")),
            call("<target type='variable'>v</target>"),
            call("<target type='property'>p</target>"),
            format!("<call blocking='true'><endpoint key='e'/></call>{reads}"),
            format!("<foreach collection='${{payload.l}}'><sequence>{}</sequence></foreach>", call("")),
            format!(
                "<foreach collection='${{payload.l}}' parallel-execution='false'><sequence>{}</sequence></foreach>",
                call("")
            ),
            format!(
                "<scatter-gather target='variable' target-variable='v' result-content-type='JSON'>\
                 <aggregation expression='${{payload}}'/><sequence>{}</sequence></scatter-gather>",
                call("")
            ),
        ] {
            let tested = flow("", &flow_of, &format!("<http method='post' uri-template='{address}/x'/>"));
            let response = tested.ask("POST", "/", JSON, r#"{"l": [{"n": 1}]}"#);
            assert!(response.body.starts_with("101501: the body did not arrive"), "{flow_of}: {response:?}");
        }
    }
}
