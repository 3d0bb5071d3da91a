//! Servers are asked whether certificates of clients, of backends and of signers are revoked, and what it means that they do not answer.

use crate::authority::{Authority, Server, good, named, revoked};
use crate::support::{Process, configuration, free_port};
use crate::wss;
use rcgen::{KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256};
use security::Exchange;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};

/// How the servers of a test are called, by serial number of the certificates: one that says that a certificate is good, one that says
/// that it is revoked, one that does not answer, and none.
struct Servers {
    good: Server,
    revoked: Server,
    silent: Server,
}

const GOOD: u8 = 1;
const REVOKED: u8 = 2;
const SILENT: u8 = 3;
const GONE: u8 = 4;

impl Servers {
    fn of(ours: &Authority) -> Servers {
        let (is_good, is_revoked) = (ours.says(GOOD, &good()), ours.says(REVOKED, &revoked()));
        Servers {
            good: Server::start(move |_| Some((200, is_good.clone()))),
            revoked: Server::start(move |_| Some((200, is_revoked.clone()))),
            silent: Server::start(|_| None),
        }
    }

    fn url(&self, serial: u8) -> &str {
        match serial {
            GOOD => &self.good.url,
            REVOKED => &self.revoked.url,
            SILENT => &self.silent.url,
            _ => "http://127.0.0.1:1/",
        }
    }

    /// A certificate and its key, as PEM.
    fn issued(&self, ours: &Authority, serial: u8) -> (String, String) {
        let (der, key) = ours.made(u64::from(serial), |asked| {
            asked.custom_extensions.push(named(self.url(serial)));
        });
        (certificate(&der), key.serialize_pem())
    }
}

fn certificate(der: &[u8]) -> String {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).unwrap();
    path
}

fn chain(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).map(Result::unwrap).collect()
}

fn private(pem: &str) -> PrivateKeyDer<'static> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap()
}

/// What a client with this certificate gets over https; nothing where its connection is closed.
fn get(address: &str, root: &str, (pem, key): &(String, String)) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(chain(root).remove(0)).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(chain(pem), private(key))
        .unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(address).unwrap());
    let request = b"POST /services/Echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/xml\r\nContent-Length: 4\r\nConnection: close\r\n\r\n<a/>";
    let mut got = Vec::new();
    _ = stream.write_all(request).and_then(|()| stream.read_to_end(&mut got));
    String::from_utf8(got).unwrap()
}

#[test]
fn a_client_whose_certificate_is_revoked_is_not_let_in() {
    let ours = Authority::new("clients");
    let servers = Servers::of(&ours);
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let pem = file("ocsp-bus.pem", &own.cert.pem());
    let key = file("ocsp-bus.key", &own.signing_key.serialize_pem());
    let roots = file("ocsp-clients.pem", &certificate(&ours.der));
    let echo = configuration(
        "ocsp-clients",
        "<proxy name='Echo' transports='https'><target><inSequence><respond/></inSequence></target></proxy>",
    );
    let start = |name: &str, demand: &str, more: &str| {
        let text = format!(
            "[tls]\ncertificate = '{}'\nkey = '{}'\nclient_roots = '{}'\nclient_verify = 'require'\n{demand}\n[ocsp]\ntimeout = '2s'\n{more}",
            pem.display(),
            key.display(),
            roots.display()
        );
        let settings = file(&format!("ocsp-{name}.toml"), &text);
        Process::run(&echo, &["--https", "127.0.0.1:0", "--config", settings.to_str().unwrap()])
    };
    let clients: Vec<_> =
        [GOOD, REVOKED, SILENT, GONE].map(|serial| (serial, servers.issued(&ours, serial))).into();
    for (name, demand, let_in) in [
        ("off", "", &[GOOD, REVOKED, SILENT, GONE][..]),
        ("soft", "ocsp = 'soft'", &[GOOD, SILENT, GONE]),
        ("hard", "ocsp = 'hard'", &[GOOD]),
    ] {
        let bus = start(name, demand, "");
        for (serial, client) in &clients {
            let got = get(bus.field("https"), &own.cert.pem(), client);
            let expected = if let_in.contains(serial) { "HTTP/1.1 200" } else { "" };
            assert_eq!(
                got.get(..12).unwrap_or_default(),
                expected,
                "{name} {serial}: {got}\n{}",
                bus.stderr()
            );
        }
        let asked = [&servers.good, &servers.revoked, &servers.silent].map(Server::asked);
        match name {
            "off" => assert_eq!(asked, [0, 0, 0]),
            "soft" => {
                assert_eq!(asked, [1, 1, 1]);
                // Again: what is known is not asked.
                for (_, client) in &clients[..3] {
                    get(bus.field("https"), &own.cert.pem(), client);
                }
                assert_eq!([&servers.good, &servers.revoked, &servers.silent].map(Server::asked), asked);
                bus.says("a certificate that was shown is revoked: its key was compromised", 1);
                bus.says("whether a certificate is revoked is not known", 2);
            }
            _ => assert_eq!(asked, [2, 2, 2]),
        }
    }
    // A certificate names a server that this bus may not ask.
    let bus = start("closed", "ocsp = 'hard'", "[http]\ndynamic_addresses = ['ocsp.example']\n");
    assert_eq!(get(bus.field("https"), &own.cert.pem(), &clients[0].1), "");
    bus.says("none of http.dynamic_addresses", 1);
    assert_eq!(servers.good.asked(), 2);
    // The server of the settings is asked, whatever a certificate names.
    let responder =
        format!("responder = '{}'\n[http]\ndynamic_addresses = ['ocsp.example']\n", servers.good.url);
    let bus = start("responder", "ocsp = 'hard'", &responder);
    assert!(get(bus.field("https"), &own.cert.pem(), &clients[0].1).starts_with("HTTP/1.1 200"));
    assert_eq!(servers.good.asked(), 3);
}

/// A backend with this certificate, which answers each request; the port.
fn backend((pem, key): &(String, String), stapled: Vec<u8>) -> u16 {
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert_with_ocsp(chain(pem), private(key), stapled)
        .unwrap();
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream.unwrap());
            let mut request = [0; 4096];
            if matches!(stream.read(&mut request), Ok(1..)) {
                let answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: 4\r\nConnection: close\r\n\r\n<b/>";
                _ = stream.write_all(answer).and_then(|()| stream.flush());
            }
        }
    });
    port
}

#[test]
fn a_backend_whose_certificate_is_revoked_gets_nothing() {
    let ours = Authority::new("backends");
    let servers = Servers::of(&ours);
    let roots = file("ocsp-backends.pem", &certificate(&ours.der));
    let mut settings = String::from("[ocsp]\ntimeout = '2s'\n");
    let mut artifacts = String::new();
    let cases = [
        ("SoftGood", "soft", GOOD, Vec::new(), true),
        ("HardGood", "hard", GOOD, Vec::new(), true),
        ("SoftRevoked", "soft", REVOKED, Vec::new(), false),
        ("HardRevoked", "hard", REVOKED, Vec::new(), false),
        ("OffRevoked", "off", REVOKED, Vec::new(), true),
        ("SoftSilent", "soft", SILENT, Vec::new(), true),
        ("HardGone", "hard", GONE, Vec::new(), false),
        ("HardStapled", "hard", GONE + 1, ours.says(GONE + 1, &good()), true),
        ("SoftStapled", "soft", GONE + 2, ours.says(GONE + 2, &revoked()), false),
        ("ForgedStapled", "hard", GONE + 3, ours.says(GONE, &good()), false),
    ];
    for (name, demand, serial, stapled, _) in &cases {
        let port = backend(&servers.issued(&ours, *serial), stapled.clone());
        settings += &format!(
            "[[profile]]\nserver = 'localhost:{port}'\nroots = '{}'\nocsp = '{demand}'\n",
            roots.display()
        );
        artifacts += &format!(
            "<proxy name='{name}' transports='http'><target><inSequence><call><endpoint><address uri='https://localhost:{port}/'/></endpoint></call>\
             <respond/></inSequence></target></proxy>"
        );
    }
    let settings = file("ocsp-backends.toml", &settings);
    let bus =
        Process::run(&configuration("ocsp-backends", &artifacts), &["--config", settings.to_str().unwrap()]);
    for (name, _, _, _, reached) in &cases {
        let (_, _, body) =
            crate::support::ask(bus.http(), "POST", &format!("/services/{name}"), b"<a/>").unwrap();
        let body = String::from_utf8(body).unwrap();
        assert_eq!(body.contains("<b/>"), *reached, "{name}: {body}\n{}", bus.stderr());
    }
    bus.says("the certificate is revoked: its key was compromised", 3);
    assert_eq!((servers.good.asked(), servers.revoked.asked(), servers.silent.asked()), (1, 1, 1));
}

#[test]
fn a_signer_whose_certificate_is_revoked_is_refused() {
    let ours = Authority::with("signers", KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap());
    let servers = Servers::of(&ours);
    let port = free_port();
    let root = wss::directory("ocsp", port);
    fs::write(root.join("signers.pem"), certificate(&ours.der)).unwrap();
    let key = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap();
    let sign = |serial: u8| {
        let mut asked = rcgen::CertificateParams::new(Vec::new()).unwrap();
        asked.serial_number = Some(rcgen::SerialNumber::from(u64::from(serial)));
        asked.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        asked.custom_extensions.push(named(servers.url(serial)));
        let made = asked.signed_by(&key, &ours.issuer).unwrap().pem();
        fs::write(root.join("client.pem"), format!("{}{made}", key.serialize_pem())).unwrap();
        wss::secured(&wss::client(&root, 2), &mut Exchange::default(), wss::PASSWORD)
    };
    for (demand, accepted) in
        [("off", &[GOOD, REVOKED, SILENT, GONE][..]), ("soft", &[GOOD, SILENT, GONE]), ("hard", &[GOOD])]
    {
        let setting = |name: &str, file: &str| format!("{name}={}", root.join(file).display());
        let settings = [
            setting("security.keystore", "service.pem"),
            setting("security.truststore", "signers.pem"),
            format!("security.ocsp='{demand}'"),
            "ocsp.timeout='2s'".to_owned(),
        ];
        let bus = wss::start(&root, port, &settings);
        for serial in [GOOD, REVOKED, SILENT, GONE] {
            let (status, body) = wss::post(&bus, "/services/Secure2", &sign(serial));
            let expected = if accepted.contains(&serial) { 200 } else { 500 };
            assert_eq!(status, expected, "{demand} {serial}: {body}\n{}", bus.stderr());
            if expected == 500 {
                // The reason is for the log.
                assert!(body.contains("InvalidSecurity") && !body.contains("revoked"), "{body}");
            }
        }
        match demand {
            "off" => assert_eq!(servers.good.asked(), 0),
            _ => bus.says("signed it: the certificate is revoked: its key was compromised", 1),
        }
        // The fault sequence, which would say so too, has not seen what was refused.
        bus.says("came = through", accepted.len());
        assert_eq!(bus.stderr().matches("came = through").count(), accepted.len(), "{}", bus.stderr());
    }
}
