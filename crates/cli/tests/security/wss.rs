//! WS-Security from outside: services and endpoints with `enableSec`, and what attackers send.

use crate::support::{self, Process, exchange};
use rcgen::{CertificateParams, DnType, KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256};
use security::algorithm::Secret;
use security::keys::{KeyStore, Trust};
use security::{Environment, Exchange, Policy, Replays, Role, Side};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use xml::{Document, ParseOptions};

pub(crate) const PASSWORD: &str = "opensesame";
const REQUEST: &str = "<soapenv:Envelope xmlns:soapenv='http://schemas.xmlsoap.org/soap/envelope/'><soapenv:Header><r:Route xmlns:r='urn:r'>a</r:Route></soapenv:Header><soapenv:Body><m:buy xmlns:m='urn:m'><price>12</price></m:buy></soapenv:Body></soapenv:Envelope>";

fn pem(name: &str) -> (String, String) {
    let key = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    let certificate = params.self_signed(&key).unwrap().pem();
    (format!("{}{certificate}", key.serialize_pem()), certificate)
}

/// A scenario with the keys of a side.
fn policy(number: u32, client: bool) -> String {
    let file = format!("{}/../../examples/security/scenario{number:02}.xml", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(file).unwrap();
    if !client {
        return text;
    }
    let merlin = "org.apache.ws.security.crypto.merlin";
    let property = |name: &str, value: &str| {
        format!("<rampart:property name=\"{merlin}.{name}\">{value}</rampart:property>")
    };
    let crypto = format!(
        "<rampart:user>alice</rampart:user><rampart:signatureCrypto><rampart:crypto>{}{}</rampart:crypto></rampart:signatureCrypto>",
        property("file", "client.pem"),
        property("truststore.file", "service.crt")
    );
    text.replace("useReqSigCert", "service")
        .replace("<rampart:timestampTTL>", &format!("{crypto}<rampart:timestampTTL>"))
}

/// A configuration with a service and a way to it for each scenario, and a backend that counts.
pub(crate) fn directory(name: &str, port: u16) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("security-{name}"));
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).unwrap();
    for name in ["client", "service"] {
        let (both, certificate) = pem(name);
        fs::write(root.join(format!("{name}.pem")), both).unwrap();
        fs::write(root.join(format!("{name}.crt")), certificate).unwrap();
    }
    let mut text = String::from("<definitions xmlns='http://ws.apache.org/ns/synapse'>");
    for number in 2..=8 {
        for (side, client) in [("client", true), ("service", false)] {
            fs::write(root.join(format!("{side}{number}.xml")), policy(number, client)).unwrap();
            text.push_str(&format!("<localEntry key='{side}{number}' src='file:{side}{number}.xml'/>"));
        }
        text.push_str(&format!(
            "<proxy name='Secure{number}' transports='http'><target><inSequence><log level='custom'><property name='came' value='through'/>\
             <property name='user' expression=\"get-property('WS_SECURITY_USER')\"/></log><respond/></inSequence><faultSequence><log level='custom'>\
             <property name='came' value='through'/></log><respond/></faultSequence></target><policy key='service{number}'/><enableSec/></proxy>\
             <proxy name='Plain{number}' transports='http'><target><endpoint><address uri='http://127.0.0.1:{port}/services/Secure{number}' format='soap11'>\
             <enableSec policy='client{number}'/></address></endpoint></target></proxy>"
        ));
    }
    // An endpoint whose service does not secure its answers.
    text.push_str(&format!(
        "<proxy name='Open' transports='http'><target><inSequence><respond/></inSequence></target></proxy>\
         <proxy name='ToOpen' transports='http'><target><endpoint><address uri='http://127.0.0.1:{port}/services/Open' format='soap11'>\
         <enableSec policy='client2'/></address></endpoint><faultSequence><log level='custom'><property name='open' expression='$ctx:ERROR_MESSAGE'/></log>\
         <makefault version='soap11'><code value='soapenv:Server' xmlns:soapenv='http://schemas.xmlsoap.org/soap/envelope/'/><reason value='no'/></makefault><respond/></faultSequence></target></proxy>"
    ));
    // Steps that call with security, one of them with a policy for each direction; a client that does not speak SOAP too.
    for (name, policies) in
        [("Callout", "policy='client5'"), ("CalloutTwo", "outboundPolicy='client5' inboundPolicy='client5'")]
    {
        text.push_str(&format!(
            "<proxy name='{name}' transports='http'><target><inSequence><callout serviceURL='http://127.0.0.1:{port}/services/Secure5'>\
             <source xpath='$body/*[1]'/><target key='answer'/><enableSec {policies}/></callout>\
             <enrich><source type='property' property='answer'/><target type='body'/></enrich><respond/></inSequence></target></proxy>"
        ));
    }
    // One-way: nobody answers.
    text.push_str(&format!(
        "<proxy name='Nothing' transports='http'><target><inSequence><drop/></inSequence></target></proxy>\
         <proxy name='ToNothing' transports='http'><target><endpoint><address uri='http://127.0.0.1:{port}/services/Nothing' format='soap11'>\
         <enableSec policy='client2'/></address></endpoint></target></proxy>"
    ));
    // Only requests are secured, and the answer of the backend is passed on as it comes.
    text.push_str(&format!(
        "<proxy name='In' transports='http'><target><outSequence><header name='X-Seen' value='y' scope='transport'/><property name='messageType' \
         value='text/xml' scope='axis2'/><send/></outSequence><endpoint><address uri='http://127.0.0.1:{port}/services/Open'/></endpoint></target>\
         <policy key='service5' type='in'/><enableSec/></proxy>"
    ));
    text.push_str("</definitions>");
    fs::write(root.join("synapse.xml"), text).unwrap();
    root
}

pub(crate) fn start(root: &Path, port: u16, settings: &[String]) -> Process {
    let (path, http) = (root.join("synapse.xml"), format!("127.0.0.1:{port}"));
    let mut arguments =
        vec!["run", path.to_str().unwrap(), "--http", &http, "--admin", "127.0.0.1:0", "--workers", "2"];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    Process::start(&arguments)
}

fn with_keys(root: &Path, port: u16) -> Process {
    let file = |name: &str, file: &str| format!("{name}={}", root.join(file).display());
    let users = format!("http.users.alice={PASSWORD}");
    start(
        root,
        port,
        &[file("security.keystore", "service.pem"), file("security.truststore", "client.crt"), users],
    )
}

/// The client, as a program of its own.
pub(crate) fn client(root: &Path, number: u32) -> Side {
    let mut policy = Policy::parse(policy(number, true).as_bytes()).unwrap();
    policy.config.user = "alice".to_owned();
    let read = |file: &str| KeyStore::read(&fs::read(root.join(file)).unwrap(), "", None).unwrap();
    let (mut store, service) = (read("client.pem"), read("service.crt"));
    let trust = Arc::new(Trust::new(&service, &[]).unwrap());
    let (identity, peer) = (store.identities.first().cloned(), Some(Arc::clone(&service.certificates[0].1)));
    store.add(service);
    Side {
        role: Role::Initiator,
        policy: Arc::new(policy),
        store: Arc::new(store),
        trust,
        own: identity,
        peer,
        parse: ParseOptions::default(),
    }
}

pub(crate) fn secured(side: &Side, exchange: &mut Exchange, password: &str) -> String {
    let password = |_: &str| Some(Secret::new(password.as_bytes().to_vec()));
    let replays = Replays::default();
    let environment = Environment {
        now: jiff::Timestamp::now(),
        password: &password,
        replays: &replays,
        secure: false,
        client_certificate: false,
    };
    let mut document = Document::parse(REQUEST.as_bytes().to_vec(), &ParseOptions::default()).unwrap();
    security::secure(&mut document, side, exchange, &environment).unwrap();
    xml::to_string(&document, Document::ROOT)
}

pub(crate) fn post(bus: &Process, path: &str, message: &str) -> (u16, String) {
    let mut stream = std::net::TcpStream::connect(bus.http()).unwrap();
    let more = "Content-Type: text/xml; charset=UTF-8\r\nSOAPAction: \"urn:buy\"\r\nConnection: close\r\n";
    let (status, _, body) = exchange(&mut stream, "POST", path, message.as_bytes(), more).unwrap();
    (status, String::from_utf8(body).unwrap())
}

#[test]
fn both_sides_of_a_bus_understand_each_other() {
    let port = support::free_port();
    let root = directory("both", port);
    let bus = with_keys(&root, port);
    for number in 2..=8 {
        let (status, body) = post(&bus, &format!("/services/Plain{number}"), REQUEST);
        assert_eq!(status, 200, "{number}: {body}\n{}", bus.stderr());
        assert!(body.contains("<price>12</price>") && !body.contains("Security"), "{number}: {body}");
        // And a client that is no part of the bus.
        let side = client(&root, number);
        let mut asked = Exchange::default();
        let request = secured(&side, &mut asked, PASSWORD);
        let (status, response) = post(&bus, &format!("/services/Secure{number}"), &request);
        assert_eq!(status, 200, "{number}: {response}\n{}", bus.stderr());
        let replays = Replays::default();
        let nobody = |_: &str| None;
        let environment = Environment {
            now: jiff::Timestamp::now(),
            password: &nobody,
            replays: &replays,
            secure: false,
            client_certificate: false,
        };
        let document = Document::parse(response.into_bytes(), &ParseOptions::default()).unwrap();
        let opened = security::open(document, &side, &mut asked, &environment).unwrap();
        assert!(xml::to_string(&opened.document, Document::ROOT).contains("<price>12</price>"));
    }
    for name in ["Callout", "CalloutTwo"] {
        let plain = "<m:buy xmlns:m='urn:m'><price>12</price></m:buy>";
        for (message, media_type) in [(REQUEST, "text/xml"), (plain, "application/xml")] {
            let mut stream = std::net::TcpStream::connect(bus.http()).unwrap();
            let more = format!("Content-Type: {media_type}\r\nConnection: close\r\n");
            let path = format!("/services/{name}");
            let (status, _, body) = exchange(&mut stream, "POST", &path, message.as_bytes(), &more).unwrap();
            let body = String::from_utf8(body).unwrap();
            assert_eq!(status, 200, "{name} {media_type}: {body}\n{}", bus.stderr());
            assert!(body.contains("<price>12</price>") && !body.contains("Security"), "{name}: {body}");
        }
    }
    assert_eq!(post(&bus, "/services/ToNothing", REQUEST).0, 202, "{}", bus.stderr());
    let request = secured(&client(&root, 5), &mut Exchange::default(), PASSWORD);
    let (status, response) = post(&bus, "/services/In", &request);
    assert!(
        status == 200 && response.contains("<price>12</price>") && !response.contains("Security"),
        "{response}"
    );
    assert_eq!(post(&bus, "/services/In", REQUEST).0, 500);
    // What is not secured is no answer.
    let (status, body) = post(&bus, "/services/ToOpen", REQUEST);
    assert!(status == 500 && !body.contains("price"), "{status} {body}");
    // Lines of the log may come behind the answer.
    let (message, until) =
        ("the answer is not secured as the policy asks for", Instant::now() + Duration::from_secs(10));
    while !bus.stderr().contains(message) {
        assert!(Instant::now() < until, "{}", bus.stderr());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!bus.stderr().contains(PASSWORD) && !bus.stderr().contains("PRIVATE"));
}

#[test]
fn attackers_get_one_answer_and_nothing_goes_through() {
    let port = support::free_port();
    let root = directory("attacks", port);
    let bus = with_keys(&root, port);
    let mut refusals = Vec::new();
    let mut refused = |what: &str, path: &str, message: &str| {
        let (status, body) = post(&bus, path, message);
        assert_eq!(status, 500, "{what}: {body}");
        refusals.push((what.to_owned(), body));
    };
    for number in [2, 3, 5, 6] {
        let path = format!("/services/Secure{number}");
        let side = client(&root, number);
        let make = || secured(&side, &mut Exchange::default(), PASSWORD);
        refused("nothing secured", &path, REQUEST);
        refused("no XML", &path, "hello");
        refused("no envelope", &path, "<a/>");
        refused("a DTD", &path, &format!("<!DOCTYPE a [<!ENTITY e 'x'>]>{REQUEST}"));
        let message = make();
        let (before, rest) = message.split_once("<soapenv:Body").unwrap();
        refused(
            "another body",
            &path,
            &format!("{before}<soapenv:Body><evil/></soapenv:Body></soapenv:Envelope>"),
        );
        let (body, _) = rest.split_once("</soapenv:Body>").unwrap();
        let wrapped = before.replace(
            "</soapenv:Header>",
            &format!("<w><soapenv:Body{body}</soapenv:Body></w></soapenv:Header>"),
        );
        refused(
            "a wrapped body",
            &path,
            &format!("{wrapped}<soapenv:Body><evil/></soapenv:Body></soapenv:Envelope>"),
        );
        for (tag, what) in [
            ("SignatureValue>", "signature"),
            ("DigestValue>", "digest"),
            ("CipherValue>", "cipher text"),
            ("BinarySecurityToken", "token"),
        ] {
            if let Some(at) = make().find(tag) {
                let mut changed = make();
                let at = changed[at..].find('>').map_or(at, |more| at + more) + 6;
                let new = if &changed[at..=at] == "B" { "C" } else { "B" };
                changed.replace_range(at..=at, new);
                refused(&format!("a changed {what}"), &path, &changed);
            }
        }
        let whole = make();
        assert_eq!(post(&bus, &path, &whole).0, 200);
        refused("a replay", &path, &whole);
        let cut = make();
        let (from, to) = (
            cut.find("<wsu:Timestamp").unwrap(),
            cut.find("</wsu:Timestamp>").unwrap() + "</wsu:Timestamp>".len(),
        );
        refused("no timestamp", &path, &format!("{}{}", &cut[..from], &cut[to..]));
    }
    let first = refusals[0].1.clone();
    assert!(first.contains("wsse:InvalidSecurity"), "{first}");
    for (what, body) in &refusals {
        assert_eq!(*body, first, "{what}");
    }
    let side = client(&root, 8);
    let (status, body) =
        post(&bus, "/services/Secure8", &secured(&side, &mut Exchange::default(), "guessed"));
    assert!(status == 500 && body.contains("wsse:FailedAuthentication"), "{body}");
    // Four messages were in order.
    bus.says("came = through", 4);
    assert_eq!(bus.stderr().matches("came = through").count(), 4, "{}", bus.stderr());
    assert!(!bus.stderr().contains(PASSWORD) && !bus.stderr().contains("guessed"));
}

/// A backend that answers each request in the way that its path names.
fn odd_backend() -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            while !head.ends_with("\r\n\r\n") {
                let from = head.len();
                if reader.read_line(&mut head).unwrap_or(0) == 0 {
                    break;
                }
                if let Some((name, value)) = head[from..].split_once(':')
                    && name.eq_ignore_ascii_case("content-length")
                {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut request = vec![0; length];
            reader.read_exact(&mut request).unwrap();
            let envelope = "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body><a>\u{e4}</a></s:Body></s:Envelope>";
            let latin = |text: &str| text.chars().map(|letter| letter as u8).collect::<Vec<_>>();
            let (kind, body) = match head.split(' ').nth(1).unwrap_or_default() {
                "/latin" => ("text/xml; charset=ISO-8859-1", latin(envelope)),
                "/json" => ("application/json", "{\"a\": \"\u{e4}\"}".into()),
                "/plain" => ("application/xml; charset=UTF-8", "<a>\u{e4}</a>".into()),
                "/text" => ("text/plain; charset=UTF-8", "\u{e4}".into()),
                _ => ("text/xml; charset=UTF-8", envelope.into()),
            };
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(&[head.as_bytes(), &body].concat());
        }
    });
    address
}

/// What is secured is the envelope in UTF-8, whatever the message came in and is to leave in.
#[test]
fn messages_of_every_charset_coding_and_packing_are_secured() {
    let port = support::free_port();
    let root = directory("codings", port);
    let backend = odd_backend();
    let mut more = String::new();
    for kind in ["latin", "json", "plain", "text"] {
        more += &format!(
            "<proxy name='Back-{kind}' transports='http'><target><endpoint><address uri='http://{backend}/{kind}'/></endpoint>\
             <outSequence><send/></outSequence></target><policy key='service5'/><enableSec/></proxy>\
             <proxy name='From-{kind}' transports='http'><target><endpoint><address uri='http://127.0.0.1:{port}/services/Back-{kind}' format='soap11'>\
             <enableSec policy='client5'/></address></endpoint></target></proxy>"
        );
    }
    for (name, step, attribute) in [
        ("latin", "<property name='CHARACTER_SET_ENCODING' value='ISO-8859-1' scope='axis2'/>", ""),
        ("coded", "<header name='Content-Encoding' value='gzip' scope='transport'/>", ""),
        ("mtom", "<property name='enableMTOM' value='true' scope='axis2'/>", ""),
        ("swa", "<property name='enableSwA' value='true' scope='axis2'/>", ""),
        ("related", "<property name='messageType' value='multipart/related' scope='axis2'/>", ""),
        ("encoding", "", "encoding='ISO-8859-1'"),
        ("optimize", "", "optimize='mtom'"),
    ] {
        more += &format!(
            "<proxy name='To-{name}' transports='http'><target><inSequence>{step}</inSequence><endpoint><address format='soap11' {attribute} \
             uri='http://127.0.0.1:{port}/services/Secure5'><enableSec policy='client5'/></address></endpoint></target></proxy>"
        );
    }
    // A service that hands on what it has got.
    more += &format!(
        "<proxy name='Forward' transports='http'><target><inSequence><log level='custom'><property name='came' value='through'/></log></inSequence>\
         <endpoint><address uri='http://{backend}/'/></endpoint></target><policy key='service2'/><enableSec/></proxy>"
    );
    // What only says who asks leaves the rest to the transport.
    let service = policy(1, false);
    let (before, binding) = service.split_once("<sp:TransportBinding>").unwrap();
    let (_, behind) = binding.split_once("</sp:TransportBinding>").unwrap();
    let service = format!("{before}{behind}").replace("SignedSupportingTokens", "SupportingTokens");
    fs::write(root.join("service1.xml"), service).unwrap();
    fs::write(root.join("client1.xml"), policy(1, true)).unwrap();
    more += &format!(
        "<localEntry key='service1' src='file:service1.xml'/><localEntry key='client1' src='file:client1.xml'/>\
         <proxy name='User' transports='http'><target><inSequence><log level='custom'><property name='user' expression=\"get-property('WS_SECURITY_USER')\"/></log>\
         <respond/></inSequence></target><policy key='service1' type='in'/><enableSec/></proxy>\
         <proxy name='ToUser' transports='http'><target><inSequence><call><endpoint><address format='soap11' uri='http://127.0.0.1:{port}/services/User'>\
         <enableSec outboundPolicy='client1'/></address></endpoint></call><respond/></inSequence></target></proxy>"
    );
    let file = root.join("synapse.xml");
    let text = fs::read_to_string(&file).unwrap().replace("</definitions>", &format!("{more}</definitions>"));
    fs::write(&file, text).unwrap();
    let bus = with_keys(&root, port);
    let ask = |path: &str, kind: &str, body: &[u8]| {
        let mut stream = std::net::TcpStream::connect(bus.http()).unwrap();
        let more = format!("Content-Type: {kind}\r\nSOAPAction: \"urn:buy\"\r\nConnection: close\r\n");
        let (status, _, body) = exchange(&mut stream, "POST", path, body, &more).unwrap();
        (status, String::from_utf8_lossy(&body).into_owned())
    };
    let utf8 = "text/xml; charset=UTF-8";
    for kind in ["latin", "json", "plain", "text"] {
        let (status, body) = ask(&format!("/services/From-{kind}"), utf8, REQUEST.as_bytes());
        assert!(status == 200 && body.contains('\u{e4}'), "{kind}: {body}\n{}", bus.stderr());
    }
    let request = REQUEST.replace("12", "\u{e4}");
    for name in ["mtom", "swa", "related", "optimize"] {
        let (status, body) = ask(&format!("/services/To-{name}"), utf8, request.as_bytes());
        assert!(status == 200 && body.contains("<price>\u{e4}<"), "{name}: {body}\n{}", bus.stderr());
    }
    // The service answers with the headers of the request.
    let (status, body) = ask("/services/To-coded", utf8, request.as_bytes());
    assert!(status == 200 && body.starts_with('\u{1f}'), "{body}\n{}", bus.stderr());
    for name in ["latin", "encoding"] {
        let (status, body) = ask(&format!("/services/To-{name}"), utf8, request.as_bytes());
        assert!(status == 200 && body.contains("<price>"), "{name}: {body}\n{}", bus.stderr());
    }
    let latin: Vec<u8> = request.chars().map(|letter| letter as u8).collect();
    let (status, body) = ask("/services/Plain5", "text/xml; charset=ISO-8859-1", &latin);
    assert!(status == 200 && body.contains("<price>"), "{body}\n{}", bus.stderr());
    // Attachments are not covered: none leaves in the clear, and none that anybody may have added comes to a flow.
    let packed = |envelope: &str| {
        format!(
            "--b\r\nContent-Type: text/xml; charset=UTF-8\r\nContent-ID: <root>\r\n\r\n{envelope}\r\n\
             --b\r\nContent-Type: text/plain\r\nContent-ID: <more>\r\n\r\nsomebody else's\r\n--b--\r\n"
        )
    };
    let related = "multipart/related; boundary=b; type=\"text/xml\"; start=\"<root>\"";
    for (name, status) in [("Plain5", 500), ("To-swa", 500), ("Open", 200)] {
        let (got, body) = ask(&format!("/services/{name}"), related, packed(REQUEST).as_bytes());
        assert!(got == status && (status == 200 || !body.contains("somebody")), "{name}: {got} {body}");
    }
    bus.says("the message has attachments, which WS-Security does not cover here", 2);
    // Both ways, where nothing is signed or encrypted: with the user to the service, and back with its answer.
    let (status, body) = ask("/services/ToUser", related, packed(REQUEST).as_bytes());
    assert!(status == 200 && body.contains("somebody else's"), "{status} {body}\n{}", bus.stderr());
    bus.says("user = alice", 1);
    for number in [2, 5] {
        let side = client(&root, number);
        let make = || secured(&side, &mut Exchange::default(), PASSWORD);
        let path =
            if number == 2 { "/services/Forward".to_owned() } else { format!("/services/Secure{number}") };
        assert_eq!(ask(&path, utf8, make().as_bytes()).0, 200, "{}", bus.stderr());
        let (status, body) = ask(&path, related, packed(&make()).as_bytes());
        assert!(status == 500 && body.contains("wsse:InvalidSecurity"), "{number}: {body}");
    }
    bus.says("the message has attachments, which its signature does not cover", 2);
    bus.says("came = through", 10);
    assert_eq!(bus.stderr().matches("came = through").count(), 10, "{}", bus.stderr());
}

#[test]
fn without_keys_a_service_is_left_out_and_never_open() {
    let port = support::free_port();
    let root = directory("keyless", port);
    let bus = start(&root, port, &[]);
    for number in 2..=8 {
        let (status, body) = post(&bus, &format!("/services/Secure{number}"), REQUEST);
        assert!(status == 503 && !body.contains("price"), "{body}");
    }
    bus.says("there is no key store: set `security.keystore`", 1);
}

#[test]
fn keys_that_cannot_be_read_any_more_stay_in_use() {
    let port = support::free_port();
    let root = directory("rotation", port);
    let bus = with_keys(&root, port);
    let read = |file: &str| fs::read(root.join(file)).unwrap();
    let reload = |times: usize| {
        bus.signal("HUP");
        bus.says("reloaded: ", times);
    };
    let (service, client) = (read("service.pem"), read("client.crt"));
    // A key store that is just being written, one that is gone, and another one's list of trusted certificates that is none.
    let broken: [(&str, Option<&[u8]>); 4] = [
        ("service.pem", Some(&service[..service.len() / 2])),
        ("service.pem", Some(b"")),
        ("service.pem", None),
        ("client.crt", Some(b"-----BEGIN CERTIFICATE-----\nAAAA")),
    ];
    for (at, (file, bytes)) in broken.into_iter().enumerate() {
        match bytes {
            Some(bytes) => fs::write(root.join(file), bytes).unwrap(),
            None => fs::remove_file(root.join(file)).unwrap(),
        }
        reload(2 * at + 1);
        bus.says("the keys of a policy stay as they are", at + 1);
        for number in 2..=8 {
            let (status, body) = post(&bus, &format!("/services/Plain{number}"), REQUEST);
            assert!(status == 200 && body.contains("price"), "{file} {number}: {body}{}", bus.stderr());
            let (status, body) = post(&bus, &format!("/services/Secure{number}"), REQUEST);
            assert!(status == 500 && !body.contains("price"), "{file} {number}: {body}");
        }
        fs::write(root.join("service.pem"), &service).unwrap();
        fs::write(root.join("client.crt"), &client).unwrap();
        reload(2 * at + 2);
    }
    // New keys are taken: nobody trusts them yet.
    let (both, _) = pem("service");
    fs::write(root.join("service.pem"), both).unwrap();
    reload(9);
    let (status, _) = post(&bus, "/services/Plain2", REQUEST);
    assert_ne!(status, 200);
}

#[test]
fn users_come_from_the_file_user_store_of_a_server() {
    let port = support::free_port();
    let root = directory("store", port);
    let home = root.join("home");
    for (file, text) in [
        (
            "local-entries/service8.xml",
            format!(
                "<localEntry xmlns='http://ws.apache.org/ns/synapse' key='service8'>{}</localEntry>",
                policy(8, false)
            ),
        ),
        (
            "proxy-services/Secure8.xml",
            "<proxy xmlns='http://ws.apache.org/ns/synapse' name='Secure8' transports='http'><target><inSequence><respond/></inSequence></target>\
             <policy key='service8'/><enableSec/></proxy>"
                .to_owned(),
        ),
        (
            "conf/deployment.toml",
            format!("[[internal_apis.users]]\nuser.name = \"alice\"\nuser.password = \"{PASSWORD}\"\n"),
        ),
    ] {
        let file = home.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let setting = |name: &str, file: &str| format!("{name}={}", root.join(file).display());
    let (keystore, truststore) =
        (setting("security.keystore", "service.pem"), setting("security.truststore", "client.crt"));
    let http = format!("127.0.0.1:{port}");
    let bus = Process::start(&[
        "run",
        home.to_str().unwrap(),
        "--http",
        &http,
        "--admin",
        "127.0.0.1:0",
        "--set",
        &keystore,
        "--set",
        &truststore,
    ]);
    let side = client(&root, 8);
    let ask =
        |password: &str| post(&bus, "/services/Secure8", &secured(&side, &mut Exchange::default(), password));
    let (status, body) = ask(PASSWORD);
    assert_eq!(status, 200, "{body}\n{}", bus.stderr());
    let (status, body) = ask("guessed");
    assert!(status == 500 && body.contains("wsse:FailedAuthentication"), "{body}");
    assert!(!bus.stderr().contains(PASSWORD) && !bus.stderr().contains("no-users"), "{}", bus.stderr());
}
