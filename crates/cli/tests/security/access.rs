//! Access profiles from outside: tokens, keys, users and signatures, and what is not let in.

use crate::support::{Process, exchange};
use authentication::signature::Scheme;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A server that issues tokens: its keys at `/keys`, what it says of tokens at `/introspect`.
struct Issuer {
    address: SocketAddr,
    keys: Arc<Mutex<String>>,
    /// The paths that were asked for.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Issuer {
    fn start() -> Issuer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (keys, asked) = (Arc::<Mutex<String>>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (published, noted) = (keys.clone(), asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = issue(stream, &published, &noted);
            }
        });
        Issuer { address, keys, asked }
    }

    fn publish(&self, keys: &[&Value]) {
        *self.keys.lock().unwrap() = json!({ "keys": keys }).to_string();
    }

    fn times(&self, path: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked_path| *asked_path == path).count()
    }
}

fn issue(mut stream: TcpStream, keys: &Mutex<String>, asked: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let from = head.len();
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
        if let Some((name, value)) = head[from..].split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let (path, body) = (head.split(' ').nth(1).unwrap_or_default(), String::from_utf8_lossy(&body));
    asked.lock().unwrap().push(path.to_owned());
    let response = match path {
        "/keys" => keys.lock().unwrap().clone(),
        // Basic bus:secret
        _ if !head.contains("Basic YnVzOnNlY3JldA==") => "{}".to_owned(),
        _ => json!({"active": body.contains("token=opaque-good&"), "sub": "carol", "scope": "read"})
            .to_string(),
    };
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{response}",
        response.len()
    )
}

/// A key: what signs, and what is published.
fn pair(id: &str) -> (EncodingKey, Value) {
    let rng = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &rng).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref()).unwrap();
    let point = pair.public_key().as_ref();
    let (x, y) = (URL_SAFE_NO_PAD.encode(&point[1..33]), URL_SAFE_NO_PAD.encode(&point[33..65]));
    let public = json!({"kty": "EC", "crv": "P-256", "kid": id, "use": "sig", "x": x, "y": y});
    (EncodingKey::from_ec_der(pkcs8.as_ref()), public)
}

fn token(key: &EncodingKey, id: &str, changes: Value) -> String {
    let ends = jiff::Timestamp::now().as_second() + 600;
    let mut claims =
        json!({"iss": "https://id.example", "aud": "shop", "sub": "alice", "scope": "read", "exp": ends});
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    let header = Header { kid: Some(id.to_owned()), ..Header::new(Algorithm::ES256) };
    jsonwebtoken::encode(&header, &claims, key).unwrap()
}

/// A configuration, in a directory of its own, with its settings.
pub(super) fn directory(name: &str, artifacts: &str, settings: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("access-{name}"));
    let _ = std::fs::remove_dir_all(&root);
    std::fs::create_dir_all(&root).unwrap();
    crate::support::configure(&root.join("synapse.xml"), artifacts);
    std::fs::write(root.join("busbar.toml"), settings).unwrap();
    root
}

/// Answers with the name of the caller, and with the credentials that the flow sees.
const WHO: &str = "<payloadFactory media-type='json'><format>{\"who\": \"$1\", \"way\": \"$2\", \"seen\": \"$3$4\"}</format><args>\
    <arg expression=\"get-property('ACCESS_SUBJECT')\"/><arg expression=\"get-property('ACCESS_WAY')\"/>\
    <arg expression=\"get-property('transport','Authorization')\"/><arg expression=\"get-property('transport','X-API-Key')\"/>\
    </args></payloadFactory><respond/>";

/// An API at `/NAME` that a profile guards.
pub(super) fn api(name: &str, more: &str) -> String {
    format!(
        "<api name='{name}' context='/{name}'><resource methods='GET' uri-template='/orders'><inSequence>{WHO}</inSequence></resource>\
         <resource methods='POST DELETE' uri-template='/orders/{{id}}'><inSequence>{WHO}</inSequence></resource>\
         <handlers><handler class='org.busbar.AccessHandler'><property name='profile' value='{name}'/>{more}</handler></handlers></api>"
    )
}

pub(super) struct Answered {
    pub status: u16,
    pub head: String,
    pub body: String,
}

pub(super) fn ask(bus: &Process, method: &str, path: &str, fields: &str, body: &str) -> Answered {
    let mut stream = TcpStream::connect(bus.http()).unwrap();
    let more = format!("Connection: close\r\n{fields}");
    let (status, head, body) = exchange(&mut stream, method, path, body.as_bytes(), &more).unwrap();
    Answered { status, head, body: String::from_utf8_lossy(&body).into_owned() }
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

#[test]
fn tokens_let_in_whom_they_are_for() {
    let issuer = Issuer::start();
    let settings = format!(
        "[access.shop]\nissuers = ['https://id.example']\naudiences = ['shop']\njwks = 'http://{0}/keys'\n\
         introspection = 'http://{0}/introspect'\nclient_id = 'bus'\nclient_secret = 'secret'\n\
         [access.gone]\nissuers = ['https://id.example']\njwks = 'http://127.0.0.1:1/keys'\n",
        issuer.address
    );
    let scopes =
        "<property name='scopes' value='read'/><property name='scopes DELETE /orders/{id}' value='write'/>";
    let artifacts = api("shop", scopes)
        + &api("gone", "")
        + &api("absent", "")
        + "<proxy name='Absent' transports='http'><target><inSequence><respond/></inSequence></target><parameter name='accessProfile'>absent</parameter></proxy>";
    let ((first, first_public), (second, second_public), (other, _)) = (pair("1"), pair("2"), pair("1"));
    issuer.publish(&[&first_public]);
    let bus = Process::run(&directory("tokens", &artifacts, &settings), &[]);

    let good = token(&first, "1", json!({}));
    let response = ask(&bus, "GET", "/shop/orders", &bearer(&good), "");
    assert_eq!(response.status, 200, "{}\n{}", response.body, bus.stderr());
    assert_eq!(
        serde_json::from_str::<Value>(&response.body).unwrap(),
        json!({"who": "alice", "way": "jwt", "seen": ""})
    );
    let writer = token(&first, "1", json!({"scope": "read write"}));
    let past = jiff::Timestamp::now().as_second() - 600;
    let mut forged = token(&first, "1", json!({}));
    let claims = URL_SAFE_NO_PAD.encode(json!({"iss": "https://id.example", "sub": "root"}).to_string());
    forged = forged
        .split('.')
        .enumerate()
        .map(|(at, part)| if at == 1 { &claims } else { part })
        .collect::<Vec<_>>()
        .join(".");
    let tokens = [
        ("expired", token(&first, "1", json!({"exp": past}))),
        ("another issuer", token(&first, "1", json!({"iss": "https://evil.example"}))),
        ("another audience", token(&first, "1", json!({"aud": "bank"}))),
        ("another key", token(&other, "1", json!({}))),
        ("a key that is not there", token(&second, "2", json!({}))),
        ("other claims", forged),
        ("no signature", format!("{}.", good.rsplit_once('.').unwrap().0)),
        ("no token", "x".to_owned()),
    ];
    for (what, token) in &tokens {
        let response = ask(&bus, "GET", "/shop/orders", &bearer(token), "");
        assert_eq!(response.status, 401, "{what}: {}", response.body);
        assert!(
            response.head.contains("WWW-Authenticate: Bearer realm=\"shop\", error=\"invalid_token\""),
            "{what}: {}",
            response.head
        );
        assert_eq!(response.body, "{\"error\":\"invalid_token\"}\n", "{what}");
    }
    for (what, method, path, fields, status) in [
        ("nothing", "GET", "/shop/orders", String::new(), 401),
        ("nothing, and no such resource", "GET", "/shop/none", String::new(), 401),
        ("another scheme", "GET", "/shop/orders", "Authorization: Basic YTpi\r\n".to_owned(), 401),
        ("two of them", "GET", "/shop/orders", bearer(&good) + &bearer(&good), 401),
        ("no such resource", "GET", "/shop/none", bearer(&good), 404),
        ("a scope less", "DELETE", "/shop/orders/1", bearer(&good), 403),
        ("all scopes", "DELETE", "/shop/orders/1", bearer(&writer), 200),
        ("a scope of its resource less", "POST", "/shop/orders/1", bearer(&good), 403),
        ("no scope at all", "GET", "/shop/orders", bearer(&token(&first, "1", json!({"scope": ""}))), 403),
        ("keys that cannot be had", "GET", "/gone/orders", bearer(&good), 503),
        ("a profile that is not set", "GET", "/absent/orders", bearer(&good), 503),
        ("the same of a proxy service", "POST", "/services/Absent", bearer(&good), 503),
    ] {
        let response = ask(&bus, method, path, &fields, "");
        assert_eq!(response.status, status, "{what}: {}\n{}", response.body, bus.stderr());
        if status == 403 {
            assert!(response.head.contains("error=\"insufficient_scope\""), "{what}: {}", response.head);
        }
    }
    // A token of the key that was not there has made the bus look again: once.
    assert_eq!(issuer.times("/keys"), 2);

    // What is no JSON Web Token is asked about, once while the answer is good.
    for _ in 0..2 {
        let response = ask(&bus, "GET", "/shop/orders", &bearer("opaque-good"), "");
        assert!(response.status == 200 && response.body.contains("carol"), "{}", response.body);
    }
    assert_eq!(ask(&bus, "GET", "/shop/orders", &bearer("opaque-bad"), "").status, 401);
    // `x` from above, and these two.
    assert_eq!(issuer.times("/introspect"), 3);

    let log = bus.stderr();
    for secret in
        tokens.iter().map(|(_, token)| token).filter(|token| token.len() > 1).chain([&good, &writer])
    {
        assert!(!log.contains(secret.as_str()), "{log}");
    }
    assert!(!log.contains("opaque-") && log.contains("it has expired"), "{log}");
    drop(second_public);
}

#[test]
fn keys_are_rotated_without_a_restart() {
    let issuer = Issuer::start();
    let settings =
        format!("[access.shop]\nissuers = ['https://id.example']\njwks = 'http://{}/keys'\n", issuer.address);
    let ((first, first_public), (second, second_public)) = (pair("1"), pair("2"));
    issuer.publish(&[&first_public]);
    let bus = Process::run(&directory("rotated", &api("shop", ""), &settings), &[]);
    let status = |key: &EncodingKey, id: &str| {
        ask(&bus, "GET", "/shop/orders", &bearer(&token(key, id, json!({}))), "").status
    };
    assert_eq!(status(&first, "1"), 200);
    issuer.publish(&[&first_public, &second_public]);
    assert_eq!((status(&second, "2"), status(&first, "1")), (200, 200), "{}", bus.stderr());
    assert_eq!(issuer.times("/keys"), 2);
}

/// Who changed something at the admin address is in the log, without the token.
#[test]
fn changes_at_the_admin_address_have_a_name() {
    let settings = "[admin]\ntokens = { ops = 'of-operators' }\n";
    let proxy = "<proxy name='P'><target><inSequence><respond/></inSequence></target></proxy>";
    let bus = Process::run(&directory("admin", proxy, settings), &[]);
    for (method, path, token, status) in [
        ("GET", "/loggers/busbar", "of-operators", 200),
        ("PUT", "/loggers/nothing", "of-operators", 404),
        ("POST", "/artifacts/proxy/P/stop", "of-operators", 200),
        ("POST", "/artifacts/proxy/P/start", "guessed", 401),
    ] {
        let mut stream = TcpStream::connect(bus.field("admin")).unwrap();
        let more = format!("Authorization: Bearer {token}\r\nConnection: close\r\n");
        assert_eq!(exchange(&mut stream, method, path, b"info", &more).unwrap().0, status, "{method} {path}");
    }
    bus.says("the admin address was asked for POST /artifacts/proxy/P/stop user=ops status=200", 1);
    let log = bus.stderr();
    assert_eq!(log.matches("was asked for").count(), 2, "{log}");
    assert!(!log.contains("of-operators") && !log.contains("guessed"), "{log}");
}

/// What an issuer publishes counts, also that there are no keys any more; an error of its server does not.
#[test]
fn keys_that_are_withdrawn_let_nobody_in() {
    let (withdraws, fails) = (Issuer::start(), Issuer::start());
    let profile = |name: &str, issuer: &Issuer| {
        format!(
            "[access.{name}]\nissuers = ['https://id.example']\njwks = 'http://{}/keys'\nrefresh = '1ms'\n",
            issuer.address
        )
    };
    let (first, first_public) = pair("1");
    withdraws.publish(&[&first_public]);
    fails.publish(&[&first_public]);
    let settings = profile("withdraws", &withdraws) + &profile("fails", &fails);
    let artifacts = api("withdraws", "") + &api("fails", "");
    let bus = Process::run(&directory("withdrawn", &artifacts, &settings), &[]);
    let status = |name: &str| {
        let token = bearer(&token(&first, "1", json!({})));
        ask(&bus, "GET", &format!("/{name}/orders"), &token, "").status
    };
    assert_eq!((status("withdraws"), status("fails")), (200, 200));
    withdraws.publish(&[]);
    *fails.keys.lock().unwrap() = "down".to_owned();
    assert_eq!((status("withdraws"), status("fails")), (401, 200), "{}", bus.stderr());
}

/// A page of an origin that is let in can read why it is refused, and pages of others cannot.
#[test]
fn answers_of_no_flow_say_who_may_read_them() {
    let api = "<api name='page' context='/page'>\
         <resource methods='GET' uri-template='/orders'><inSequence><respond/></inSequence></resource>\
         <resource methods='GET' uri-template='/fails'><inSequence><throwError type='NOT_NOW' errorMessage='no'/></inSequence></resource>\
         <handlers><handler class='org.busbar.AccessHandler'><property name='profile' value='page'/></handler>\
         <handler class='org.wso2.micro.integrator.rest.handler.CORSRequestHandler'><property name='allowedOrigins' value='https://Shop.example:443/, null'/>\
         <property name='allowCredentials' value='true'/></handler></handlers></api>";
    let settings = "[access.page]\nkeys = { one = 'key-of-one' }\n";
    let bus = Process::run(&directory("cors", api, settings), &[]);
    let (here, elsewhere) = ("Origin: https://shop.example\r\n", "Origin: https://evil.example\r\n");
    let (good, wrong) = ("X-API-Key: key-of-one\r\n", "X-API-Key: guessed\r\n");
    for (what, method, path, key, status) in [
        ("an answer", "GET", "/page/orders", good, 200),
        ("no credentials", "GET", "/page/orders", "", 401),
        ("wrong ones", "GET", "/page/orders", wrong, 401),
        ("no resource", "GET", "/page/none", good, 404),
        ("another method", "PUT", "/page/orders", good, 405),
        ("a failure", "GET", "/page/fails", good, 500),
    ] {
        let response = ask(&bus, method, path, &format!("{here}{key}"), "");
        assert_eq!(response.status, status, "{what}: {}\n{}", response.body, bus.stderr());
        for said in [
            "Access-Control-Allow-Origin: https://shop.example\r\n",
            "Access-Control-Allow-Credentials: true\r\n",
            "Vary: Origin\r\n",
        ] {
            assert_eq!(response.head.matches(said).count(), 1, "{what}: {}", response.head);
        }
        for origins in [elsewhere.to_owned(), format!("{here}{elsewhere}")] {
            let response = ask(&bus, method, path, &format!("{origins}{key}"), "");
            assert_eq!(response.status, 403, "{what}: {}", response.head);
            assert!(!response.head.contains("Access-Control-Allow-Origin"), "{what}: {}", response.head);
        }
    }
    // Anybody can make a page of this origin.
    let response = ask(&bus, "GET", "/page/orders", &format!("Origin: null\r\n{good}"), "");
    assert!(
        response.status == 200 && response.head.contains("Access-Control-Allow-Origin: null\r\n"),
        "{}",
        response.head
    );
    assert!(!response.head.contains("Access-Control-Allow-Credentials"), "{}", response.head);
}

/// A page shall learn why its request failed, also where the API does not run at all.
#[test]
fn refusals_of_apis_that_do_not_run_say_who_may_read_them() {
    let api = |name: &str, handler: &str| {
        format!(
            "<api name='{name}' context='/{name}'><resource methods='GET POST'><inSequence><respond/></inSequence></resource><handlers>{handler}\
             <handler class='org.wso2.micro.integrator.rest.handler.CORSRequestHandler'><property name='allowedOrigins' value='https://shop.example'/></handler>\
             <handler class='org.wso2.micro.integrator.security.handler.RESTBasicAuthHandler'/></handlers></api>"
        )
    };
    let open = "<api name='open' context='/open'><resource methods='POST'><inSequence><enrich><source type='body'/>\
        <target type='property' property='b'/></enrich><respond/></inSequence></resource></api>";
    let artifacts =
        [api("stopped", ""), api("broken", "<handler class='com.example.Guard'/>"), api("busy", "")].concat();
    let settings = "[http.users]\nalice = 'opensesame'\n[limits]\nflows = 1\n";
    let bus = Process::run(&directory("cors-503", &(artifacts + open), settings), &[]);
    let mut stream = TcpStream::connect(bus.field("admin")).unwrap();
    let stopped = exchange(&mut stream, "POST", "/artifacts/api/stopped/stop", b"", "Connection: close\r\n");
    assert_eq!(stopped.unwrap().0, 200);
    let (here, elsewhere) = ("Origin: https://shop.example\r\n", "Origin: https://evil.example\r\n");
    let says = |path: &str, origin: &str, allows: bool| {
        let response = ask(&bus, "GET", path, origin, "");
        assert_eq!(response.status, 503, "{path}: {}", response.body);
        let said = "Access-Control-Allow-Origin: https://shop.example\r\n";
        assert_eq!(response.head.matches(said).count(), usize::from(allows), "{path}: {}", response.head);
        assert_eq!(response.head.matches("Access-Control-Allow-Origin").count(), usize::from(allows));
        assert_eq!(response.head.contains("Vary: Origin\r\n"), allows, "{path}: {}", response.head);
    };
    for path in ["/stopped", "/broken"] {
        says(path, here, true);
        let other = ask(&bus, "GET", path, elsewhere, "");
        assert!(!other.head.contains("Access-Control-Allow-Origin"), "{path}: {}", other.head);
    }
    // Its request is sent only after that, and gets the 503.
    let asks = format!("{here}Access-Control-Request-Method: GET\r\n");
    let response = ask(&bus, "OPTIONS", "/stopped", &asks, "");
    assert!(
        response.status == 200 && response.head.contains("Access-Control-Allow-Origin: https://shop.example"),
        "{}",
        response.head
    );
    assert_eq!(ask(&bus, "OPTIONS", "/stopped", "", "").status, 503);
    // One message takes all the room.
    let mut held = TcpStream::connect(bus.http()).unwrap();
    held.write_all(b"POST /open HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nContent-Length: 4\r\n\r\n<")
        .unwrap();
    let mut attempts = 0;
    while ask(&bus, "GET", "/busy", here, "").status != 503 {
        attempts += 1;
        assert!(attempts < 1000, "there still is room");
    }
    says("/busy", here, true);
    assert!(
        !ask(&bus, "GET", "/busy", elsewhere, "").head.contains("Access-Control-Allow"),
        "another origin"
    );
    assert!(!ask(&bus, "GET", "/services/None", here, "").head.contains("Access-Control-Allow"), "no API");
}

#[test]
fn keys_users_and_signatures_let_in() {
    let settings = "[http.users]\nalice = 'opensesame'\n\
        [access.partners]\nkeys = { one = 'key-of-one' }\nusers = true\n\
        [access.both]\nkeys = { one = 'key-of-one' }\nusers = true\nevery = true\n\
        [access.hooks]\n[access.hooks.signature]\nsecrets = ['shared secret']\n";
    let hook = "<proxy name='Hook' transports='http'><target><inSequence><respond/></inSequence></target><parameter name='accessProfile'>hooks</parameter></proxy>";
    let handled = "<api name='handled' context='/handled'><resource methods='GET' uri-template='/orders'><inSequence><respond/></inSequence></resource>\
         <handlers><handler class='org.wso2.micro.integrator.security.handler.RESTBasicAuthHandler'/></handlers></api>";
    let artifacts = api("partners", "") + &api("both", "") + handled + hook;
    let bus = Process::run(&directory("keys", &artifacts, settings), &[]);
    let basic = |both: &str| format!("Authorization: Basic {}\r\n", STANDARD.encode(both));
    let key = |key: &str| format!("X-API-Key: {key}\r\n");
    for (path, fields, status, says) in [
        (
            "/partners/orders",
            key("key-of-one"),
            200,
            "\"who\": \"one\", \"way\": \"api-key\", \"seen\": \"\"",
        ),
        (
            "/partners/orders",
            basic("alice:opensesame"),
            200,
            "\"who\": \"alice\", \"way\": \"basic\", \"seen\": \"\"",
        ),
        ("/partners/orders", String::new(), 401, ""),
        ("/partners/orders", key("key-of-two"), 401, "invalid_token"),
        // No blank of HTTP.
        ("/partners/orders", key("key-of-one\u{a0}"), 401, "invalid_token"),
        ("/partners/orders", key("key-of-one") + &key("key-of-one"), 401, "invalid_token"),
        ("/partners/orders", basic("alice:guessed"), 401, "invalid_token"),
        ("/partners/orders", basic("nobody:"), 401, "invalid_token"),
        ("/partners/orders", basic("alice"), 401, "invalid_token"),
        ("/partners/orders", "Authorization: Basic ***\r\n".to_owned(), 401, "invalid_token"),
        // Wrong credentials are refused, whatever others the request has.
        ("/partners/orders", key("key-of-one") + &basic("alice:guessed"), 401, "invalid_token"),
        ("/handled/orders", basic("alice:opensesame"), 200, ""),
        // Of two, another reader could take the other one.
        ("/handled/orders", basic("alice:opensesame") + &basic("bob:guessed"), 403, ""),
        ("/both/orders", key("key-of-one") + &basic("alice:opensesame"), 200, "alice"),
        ("/both/orders", key("key-of-one"), 401, ""),
        ("/both/orders", basic("alice:opensesame"), 401, ""),
    ] {
        let response = ask(&bus, "GET", path, &fields, "");
        assert_eq!(response.status, status, "{path} {fields}: {}\n{}", response.body, bus.stderr());
        assert!(response.body.contains(says), "{path} {fields}: {}", response.body);
    }
    let scheme = Scheme::new(vec![b"shared secret".to_vec()]).unwrap();
    let signed = |body: &str| {
        let headers = scheme.sign(body.as_bytes(), "", 0);
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect::<String>()
    };
    for (fields, body, status) in [
        (signed("<order/>"), "<order/>", 200),
        (signed("<order/>"), "<order2/>", 401),
        (signed("<order/>") + &signed("<order2/>"), "<order/>", 401),
        (String::new(), "<order/>", 401),
    ] {
        let response = ask(&bus, "POST", "/services/Hook", &fields, body);
        assert_eq!(response.status, status, "{fields} {body}: {}\n{}", response.body, bus.stderr());
    }
    let log = bus.stderr();
    for secret in ["opensesame", "guessed", "key-of-", "shared secret"] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}

/// A signature is checked against the body also where a body that is too large for the memory would go to a file.
#[test]
fn a_signature_of_nothing_fits_no_large_body() {
    let settings =
        "[access.hooks.signature]\nsecrets = ['shared secret']\n[limits]\nbody = '64k'\nspill = '1m'\n";
    let hook = "<proxy name='Hook' transports='http'><target><inSequence><respond/></inSequence></target><parameter name='accessProfile'>hooks</parameter></proxy>";
    let bus = Process::run(&directory("spilled", hook, settings), &[]);
    let scheme = Scheme::new(vec![b"shared secret".to_vec()]).unwrap();
    let large = format!("<order>{}</order>", "x".repeat(100 << 10));
    for (signed, body, status) in [
        ("", "", 200),
        ("<a/>", "<a/>", 200),
        ("", large.as_str(), 413),
        (large.as_str(), large.as_str(), 413),
    ] {
        let headers = scheme.sign(signed.as_bytes(), "", 0);
        let fields: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let response = ask(&bus, "POST", "/services/Hook", &fields, body);
        assert_eq!(response.status, status, "{} bytes: {}\n{}", body.len(), response.body, bus.stderr());
    }
}

/// A webhook with a signed time is good for once, also after a reload; the sender signs it again with another time.
#[test]
fn a_webhook_is_accepted_once() {
    let settings = "[access.once.signature]\nsecrets = ['shared secret']\nsigned = '{timestamp}.{body}'\ntimestamp_header = 'X-Time'\n\
        [access.often.signature]\nsecrets = ['shared secret']\nsigned = '{timestamp}.{body}'\ntimestamp_header = 'X-Time'\nonce = false\n";
    let hook = |profile: &str| {
        format!(
            "<proxy name='{profile}' transports='http'><target><inSequence><respond/></inSequence></target><parameter name='accessProfile'>{profile}</parameter></proxy>"
        )
    };
    let bus = Process::run(&directory("once", &(hook("once") + &hook("often")), settings), &[]);
    let mut scheme = Scheme::new(vec![b"shared secret".to_vec()]).unwrap();
    scheme.signed = "{timestamp}.{body}".to_owned();
    scheme.timestamp_header = Some("X-Time".to_owned());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let send = |profile: &str, body: &str, time: u64| {
        let headers = scheme.sign(body.as_bytes(), "", time);
        let fields: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        ask(&bus, "POST", &format!("/services/{profile}"), &fields, body).status
    };
    assert_eq!((send("once", "<a/>", now), send("once", "<a/>", now)), (200, 401), "{}", bus.stderr());
    assert_eq!((send("once", "<b/>", now), send("once", "<a/>", now - 1)), (200, 200), "{}", bus.stderr());
    crate::support::ask(bus.field("admin"), "POST", "/reload", b"").unwrap();
    assert_eq!((send("once", "<b/>", now), send("once", "<c/>", now)), (401, 200), "{}", bus.stderr());
    assert_eq!((send("often", "<a/>", now), send("often", "<a/>", now)), (200, 200), "{}", bus.stderr());
    bus.says("not let in: it was here before", 1);
}

/// Anybody may send a large body with a signature that is wrong: that is found out where it delays no other message.
#[test]
fn signatures_of_large_bodies_delay_nobody() {
    let service = "<proxy name='Hook' transports='http'><target><inSequence><respond/></inSequence></target><parameter name='accessProfile'>hook</parameter></proxy>";
    let settings = "[access.hook.signature]\nsecrets = ['shared secret']\n";
    let bus = Process::run(&directory("large-hook", service, settings), &[]);
    let runs = || {
        let (_, _, metrics) = crate::support::ask(bus.field("admin"), "GET", "/metrics", b"").unwrap();
        let metrics = String::from_utf8(metrics).unwrap();
        let count = metrics.lines().find_map(|line| line.strip_prefix("busbar_compute_runs_total "));
        count.unwrap().parse::<u64>().unwrap()
    };
    let before = runs();
    let signatures = format!("X-Hub-Signature-256:{}\r\n", format!(" sha256={}", "0".repeat(64)).repeat(16));
    assert_eq!(ask(&bus, "POST", "/services/Hook", &signatures, &"x".repeat(2_000_000)).status, 401);
    // A second one frees the body.
    assert!(runs() > before, "{before}");
}

/// A reload takes the keys of a file even if nothing else has changed.
#[test]
fn a_set_of_keys_is_read_again() {
    let ((old, old_public), (new, new_public)) = (pair("a"), pair("b"));
    let root = directory("keys-file", &api("file", ""), "");
    let file = root.join("keys.json");
    let publish = |key: &Value| std::fs::write(&file, json!({ "keys": [key] }).to_string()).unwrap();
    publish(&old_public);
    let settings = format!("[access.file]\nissuers = ['https://id.example']\njwks = '{}'\n", file.display());
    std::fs::write(root.join("busbar.toml"), settings).unwrap();
    let bus = Process::run(&root.join("synapse.xml"), &[]);
    let status = |key: &EncodingKey, id: &str| {
        ask(&bus, "GET", "/file/orders", &bearer(&token(key, id, json!({}))), "").status
    };
    assert_eq!((status(&old, "a"), status(&new, "b")), (200, 401));
    publish(&new_public);
    crate::support::ask(bus.field("admin"), "POST", "/reload", b"").unwrap();
    assert_eq!((status(&old, "a"), status(&new, "b")), (401, 200), "{}", bus.stderr());
}
