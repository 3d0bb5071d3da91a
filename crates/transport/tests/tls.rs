//! TLS and mutual TLS on both sides.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use busbar_transport::{
    Body, Client, ClientLimits, ClientTls, ClientTlsOptions, ClientVerify, ConnectionInfo, Handler,
    HostNames, Request, Response, Roots, SendErrorKind, Server, ServerLimits, ServerTls, ServerTlsOptions,
    Target, TlsRules, Workers,
};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, RevokedCertParams, SerialNumber,
};
use support::*;

/// A CA, a server certificate for `localhost`, a client certificate; as files.
struct Files {
    dir: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Files {
    fn new(name: &str) -> Files {
        let dir = std::env::temp_dir().join(format!("busbar-tls-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let ca_key = KeyPair::generate().unwrap();
        let mut ca = CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        std::fs::write(dir.join("ca.pem"), ca.self_signed(&ca_key).unwrap().pem()).unwrap();
        let issuer = Issuer::new(ca, ca_key);
        for (number, who) in [(1, "localhost"), (2, "partner"), (3, "*.shop.example")] {
            let key = KeyPair::generate().unwrap();
            let mut asked = CertificateParams::new(vec![who.to_owned()]).unwrap();
            asked.serial_number = Some(SerialNumber::from(number));
            let certificate = asked.signed_by(&key, &issuer).unwrap();
            let who = who.trim_start_matches("*.");
            std::fs::write(dir.join(format!("{who}.pem")), certificate.pem()).unwrap();
            std::fs::write(dir.join(format!("{who}.key")), key.serialize_pem()).unwrap();
        }
        // Who is revoked, since when there is the list, and by when it is old.
        for (name, number, since, until) in [
            ("server", 1, 2021, 2040),
            ("client", 2, 2021, 2040),
            ("nobody", 9, 2020, 2040),
            ("old", 9, 2020, 2021),
            ("shop", 3, 2021, 2040),
        ] {
            let list = CertificateRevocationListParams {
                this_update: rcgen::date_time_ymd(since, 1, 1),
                next_update: rcgen::date_time_ymd(until, 1, 1),
                crl_number: SerialNumber::from(1),
                issuing_distribution_point: None,
                revoked_certs: vec![RevokedCertParams {
                    serial_number: SerialNumber::from(number),
                    revocation_time: rcgen::date_time_ymd(2020, 1, 1),
                    reason_code: None,
                    invalidity_date: None,
                }],
                key_identifier_method: rcgen::KeyIdMethod::Sha256,
            };
            let list = list.signed_by(&issuer).unwrap();
            std::fs::write(dir.join(format!("{name}.crl")), list.pem().unwrap()).unwrap();
            std::fs::write(dir.join(format!("{name}.der")), list.der()).unwrap();
        }
        Files { dir, issuer }
    }

    /// Another certificate and key in `who`'s place, which end after so many seconds.
    fn renew(&self, who: &str, seconds: u64) {
        let key = KeyPair::generate().unwrap();
        let mut asked = CertificateParams::new(vec![who.to_owned()]).unwrap();
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        asked.not_after = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(now + seconds);
        let certificate = asked.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.at(&format!("{who}.pem")), certificate.pem()).unwrap();
        std::fs::write(self.at(&format!("{who}.key")), key.serialize_pem()).unwrap();
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn server(&self, verify: ClientVerify) -> (Server, Workers) {
        self.server_of(&self.options(verify))
    }

    fn options(&self, verify: ClientVerify) -> ServerTlsOptions {
        ServerTlsOptions {
            certificates: self.at("localhost.pem"),
            key: self.at("localhost.key"),
            client_roots: (verify != ClientVerify::None).then(|| self.at("ca.pem")),
            client_verify: verify,
            ..ServerTlsOptions::default()
        }
    }

    fn server_of(&self, options: &ServerTlsOptions) -> (Server, Workers) {
        let tls = ServerTls::new(options).unwrap();
        let server =
            Server::bind("127.0.0.1:0".parse().unwrap(), Some(tls), ServerLimits::default()).unwrap();
        let workers = Workers::start(1).unwrap();
        server.serve(&workers, Arc::new(Who)).unwrap();
        (server, workers)
    }

    fn profile(&self, roots: Roots, identity: bool) -> ClientTlsOptions {
        ClientTlsOptions {
            roots,
            identity: identity.then(|| (self.at("partner.pem"), self.at("partner.key"))),
            ..ClientTlsOptions::default()
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Says how many certificates the client showed, behind what it sent.
struct Who;

impl Handler for Who {
    async fn handle(&self, request: Request, peer: &ConnectionInfo) -> Response {
        let shown = peer.tls.as_ref().map_or(99, |tls| tls.client_certificates.len());
        Response::new(200, request.body).with("X-Shown", shown.to_string())
    }
}

async fn ask(
    client: &Client,
    target: &Target,
    body: impl Into<Body>,
) -> Result<(String, Vec<u8>), SendErrorKind> {
    let response = post(client, target, body).await.map_err(|e| e.kind)?;
    let shown = response.head.headers.get("x-shown").unwrap_or_default().to_owned();
    Ok((shown, response.body.collect(1 << 30).await.expect("body").to_vec()))
}

#[test]
fn bodies_pass_and_connections_are_kept() {
    let files = Files::new("plain");
    let (server, _workers) = files.server(ClientVerify::None);
    let profile = ClientTls::new(&files.profile(Roots::File(files.at("ca.pem")), false)).unwrap();
    let target = Target::https("localhost", server.local_addr().port(), profile);
    let client = Client::new(ClientLimits::default());
    block_on(async {
        for size in [1, 1000, 5_000_000, 20] {
            let body: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            let (shown, got) = ask(&client, &target, body.clone()).await.unwrap();
            assert_eq!(shown, "0");
            assert!(got == body, "{size}");
        }
        assert_eq!((client.stats().created, client.stats().reused), (1, 3));
    });
}

/// Nothing is verified in a session that is resumed, but the time goes on.
#[test]
fn a_certificate_that_has_expired_is_not_good_in_a_resumed_session() {
    for (who, verify) in [("partner", ClientVerify::Require), ("localhost", ClientVerify::None)] {
        // A slow machine needs longer for the first two connections.
        let ended = [3, 10, 60].into_iter().any(|seconds| {
            let files = Files::new(&format!("resumed-{who}"));
            files.renew(who, seconds);
            let (server, _workers) = files.server(verify);
            let profile = files.profile(Roots::File(files.at("ca.pem")), verify == ClientVerify::Require);
            let profile = ClientTls::new(&profile).unwrap();
            let target = Target::https("localhost", server.local_addr().port(), profile);
            // Each on a connection of its own.
            let asked = || block_on(ask(&Client::new(ClientLimits::default()), &target, "hello")).is_ok();
            let began = std::time::Instant::now();
            if !(asked() && asked()) {
                return false;
            }
            std::thread::sleep(Duration::from_secs(seconds + 1).saturating_sub(began.elapsed()));
            assert!(!asked(), "{who} has expired");
            true
        });
        assert!(ended, "{who}: no connection before its end");
    }
}

/// Over TLS the handshake says whether HTTP/2 is spoken, and nothing else does.
#[test]
fn who_did_not_agree_on_http2_does_not_speak_it() {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let files = Files::new("alpn");
    let (server, _workers) = files.server(ClientVerify::None);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(files.at("ca.pem")).unwrap()).unwrap();
    for (offered, http2) in [(&[&b"http/1.1"[..]][..], false), (&[], false), (&[b"h2"], true)] {
        let mut config =
            rustls::ClientConfig::builder().with_root_certificates(roots.clone()).with_no_client_auth();
        config.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
        let session =
            rustls::ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
        let mut stream = rustls::StreamOwned::new(session, connect(server.local_addr()));
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).unwrap();
        // A frame of settings, or what HTTP/1.1 says of the line.
        assert_eq!(first[3] == 4, http2, "{offered:?}: {first:?}");
        assert_eq!(&first == b"HTTP/1.1 505", !http2, "{offered:?}: {first:?}");
    }
}

/// What the kernel cannot move from socket to socket, because one of them is TLS, has the same deadlines.
#[test]
fn a_client_that_stops_in_the_middle_of_a_long_body_is_left() {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let files = Files::new("pausing");
    let (sent, seen) = std::sync::mpsc::channel();
    let backend = backend(move |_, mut s| {
        read_head(&mut s).unwrap();
        let mut all = Vec::new();
        let _ = s.read_to_end(&mut all);
        sent.send(all.len()).unwrap();
    });
    let tls = ServerTls::new(&files.options(ClientVerify::None)).unwrap();
    let limits = ServerLimits { body: Duration::from_millis(300), ..ServerLimits::default() };
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), Some(tls), limits).unwrap();
    let workers = Workers::start(1).unwrap();
    server.serve(&workers, Arc::new(Relay::to(backend))).unwrap();

    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(files.at("ca.pem")).unwrap()).unwrap();
    let config = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let session = rustls::ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    let mut stream = rustls::StreamOwned::new(session, connect(server.local_addr()));
    stream.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n").unwrap();
    stream.write_all(&[b'x'; 300_000]).unwrap();
    // The backend gives up after ten seconds.
    let began = std::time::Instant::now();
    let got = seen.recv_timeout(Duration::from_secs(15)).unwrap();
    assert!(got <= 300_000 && began.elapsed() < Duration::from_secs(8), "{got} in {:?}", began.elapsed());
}

/// What came with an answer and was asked for by nobody may be decrypted already, where the kernel knows nothing of it.
#[test]
fn what_tls_holds_back_is_no_answer_to_the_next_request() {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    const SIZE: usize = 512;
    let files = Files::new("unasked");
    let certificate = CertificateDer::from_pem_file(files.at("localhost.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(files.at("localhost.key")).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let addr = backend(move |_, socket| {
        let mut stream =
            rustls::StreamOwned::new(rustls::ServerConnection::new(config.clone()).unwrap(), socket);
        let mut received = Vec::new();
        loop {
            while !received.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                match stream.read(&mut byte) {
                    Ok(1) => received.push(byte[0]),
                    _ => return,
                }
            }
            received.clear();
            // The first answer ends where the client's buffer does, and in the same record there is another one.
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 400\r\nX: ";
            let filler = "x".repeat(SIZE - 400 - 4 - head.len());
            let unasked = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
            stream
                .write_all(format!("{head}{filler}\r\n\r\n{}{unasked}", "g".repeat(400)).as_bytes())
                .unwrap();
        }
    });
    let profile = ClientTls::new(&files.profile(Roots::File(files.at("ca.pem")), false)).unwrap();
    let target = Target::https("localhost", addr.port(), profile);
    let client = Client::new(ClientLimits { io_buffer_size: SIZE, ..ClientLimits::default() });
    block_on(async {
        for round in 0..3 {
            let (_, got) = ask(&client, &target, Body::Empty).await.unwrap();
            assert!(got == [b'g'; 400], "{round}: {}", String::from_utf8_lossy(&got));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
}

#[test]
fn certificates_are_replaced_while_connections_go_on() {
    let (old, new) = (Files::new("old"), Files::new("new"));
    let (server, _workers) = old.server(ClientVerify::None);
    let target = |files: &Files| {
        let profile = ClientTls::new(&files.profile(Roots::File(files.at("ca.pem")), false)).unwrap();
        Target::https("localhost", server.local_addr().port(), profile)
    };
    let (trusts_old, trusts_new) = (target(&old), target(&new));
    let client = Client::new(ClientLimits::default());
    block_on(async {
        assert!(ask(&client, &trusts_old, "1").await.is_ok());
        assert!(ask(&client, &trusts_new, "1").await.is_err());
        server.set_tls(
            ServerTls::new(&ServerTlsOptions {
                certificates: new.at("localhost.pem"),
                key: new.at("localhost.key"),
                client_roots: None,
                client_verify: ClientVerify::None,
                ..ServerTlsOptions::default()
            })
            .unwrap(),
        );
        assert!(ask(&client, &trusts_old, "2").await.is_ok(), "on the connection that was open");
        assert!(ask(&client, &trusts_new, "2").await.is_ok());
        client.close_idle();
        assert!(ask(&client, &trusts_old, "3").await.is_err());
    });
}

#[test]
fn certificates_are_demanded_and_checked() {
    let files = Files::new("mutual");
    let trusted = || Roots::File(files.at("ca.pem"));
    let client = Client::new(ClientLimits::default());
    let mut wrong_name = files.profile(trusted(), false);
    wrong_name.server_name = Some("elsewhere".into());
    let any_name = ClientTlsOptions { host_names: HostNames::Any, ..wrong_name.clone() };
    let cases = [
        // who listens, with which profile, what is shown; nothing: the handshake fails
        (ClientVerify::Require, files.profile(trusted(), true), Some("1")),
        (ClientVerify::Require, files.profile(trusted(), false), None),
        (ClientVerify::Optional, files.profile(trusted(), true), Some("1")),
        (ClientVerify::Optional, files.profile(trusted(), false), Some("0")),
        (ClientVerify::None, files.profile(trusted(), true), Some("0")),
        (ClientVerify::None, files.profile(Roots::Insecure, false), Some("0")),
        (ClientVerify::None, files.profile(Roots::File(files.at("partner.pem")), false), None),
        (ClientVerify::None, wrong_name, None),
        (ClientVerify::None, any_name, Some("0")),
    ];
    for (number, (verify, profile, expected)) in cases.into_iter().enumerate() {
        let (server, _workers) = files.server(verify);
        let target =
            Target::https("localhost", server.local_addr().port(), ClientTls::new(&profile).unwrap());
        let got = block_on(ask(&client, &target, "hello"));
        match expected {
            Some(shown) => assert_eq!(got.unwrap(), (shown.to_owned(), b"hello".to_vec()), "case {number}"),
            None => assert!(got.is_err(), "case {number}"),
        }
    }
}

#[test]
fn versions_ciphers_and_revocation_are_agreed_on_or_not_at_all() {
    let files = Files::new("rules");
    let client = Client::new(ClientLimits::default());
    let rules = |versions: &[&str], ciphers: &[&str], revoked: &[&str]| TlsRules {
        versions: versions.iter().map(|version| (*version).to_owned()).collect(),
        ciphers: ciphers.iter().map(|cipher| (*cipher).to_owned()).collect(),
        revoked: revoked.iter().map(|file| files.at(file)).collect(),
        ocsp: None,
    };
    let any = || rules(&[], &[], &[]);
    // The number of the list becomes that of the list which it changes.
    let mut list = std::fs::read(files.at("server.der")).unwrap();
    std::fs::write(files.at("cut.der"), &list[..list.len() / 2]).unwrap();
    let number = list.windows(3).position(|oid| oid == [0x55, 0x1d, 0x14]).unwrap();
    list[number + 2] = 0x1b;
    std::fs::write(files.at("delta.der"), list).unwrap();
    const OLD: &str = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
    const NEW: &str = "TLS_AES_256_GCM_SHA384";
    // Who listens, and who asks: do they get together?
    for (number, (server, asking, wanted)) in [
        (any(), any(), true),
        (rules(&["TLSv1.3"], &[], &[]), rules(&["TLSv1.2"], &[], &[]), false),
        (rules(&["TLSv1.2"], &[], &[]), rules(&["1.2"], &[], &[]), true),
        (rules(&["TLSv1.2"], &[OLD], &[]), any(), true),
        (rules(&[], &[OLD], &[]), rules(&["TLSv1.3"], &[], &[]), false),
        (rules(&[], &[NEW], &[]), rules(&["TLSv1.2"], &[], &[]), false),
        (rules(&[], &[&NEW.to_lowercase()], &[]), any(), true),
        (rules(&[], &["TLS_AES_128_GCM_SHA256"], &[]), rules(&[], &[NEW], &[]), false),
        (any(), rules(&[], &[], &["server.crl"]), false),
        (any(), rules(&[], &[], &["server.der"]), false),
        (any(), rules(&[], &[], &["nobody.crl"]), true),
        (any(), rules(&[], &[], &["old.crl"]), false),
        // The newest list counts, wherever it is.
        (any(), rules(&[], &[], &["nobody.crl", "server.crl"]), false),
        (any(), rules(&[], &[], &["old.crl", "client.crl"]), true),
        (rules(&[], &[], &["nobody.crl", "client.der"]), any(), false),
        (rules(&[], &[], &["client.crl"]), any(), false),
        (rules(&[], &[], &["nobody.der"]), any(), true),
        (rules(&[], &[], &["old.der"]), any(), false),
    ]
    .into_iter()
    .enumerate()
    {
        let verify = if server.revoked.is_empty() { ClientVerify::None } else { ClientVerify::Require };
        let (server, _workers) =
            files.server_of(&ServerTlsOptions { rules: server, ..files.options(verify) });
        let profile = files.profile(Roots::File(files.at("ca.pem")), true);
        let profile = ClientTls::new(&ClientTlsOptions { rules: asking, ..profile }).unwrap();
        let target = Target::https("localhost", server.local_addr().port(), profile);
        assert_eq!(block_on(ask(&client, &target, "hello")).is_ok(), wanted, "case {number}");
    }
    for (wrong, reason) in [
        (rules(&["TLSv1.1"], &[], &[]), "`TLSv1.1` is not a version of TLS that is safe"),
        (rules(&["SSLv3"], &[], &[]), "SSLv3"),
        (
            rules(&[], &["TLS_RSA_WITH_AES_128_CBC_SHA"], &[]),
            "no safe cipher suite `TLS_RSA_WITH_AES_128_CBC_SHA`",
        ),
        (rules(&["TLSv1.3"], &[OLD], &[]), "none of the cipher suites is of TLSv1.3"),
        (rules(&[], &[], &["ca.pem"]), "no revocation list"),
        (rules(&[], &[], &["none.crl"]), "none.crl"),
        (rules(&[], &[], &["cut.der"]), "cut.der cannot be used"),
        (
            rules(&[], &[], &["server.crl", "delta.der"]),
            "delta.der cannot be used: it has the changes since another list only",
        ),
        (
            rules(&[], &[], &["delta.der"]),
            "delta.der cannot be used: it has the changes since another list only",
        ),
    ] {
        let options = ServerTlsOptions { rules: wrong, ..files.options(ClientVerify::Require) };
        let error = ServerTls::new(&options).expect_err(reason).to_string();
        assert!(error.contains(reason), "{error}");
    }
    let (kept, left_out) = TlsRules::lenient(
        &["TLSv1".to_owned(), "TLSv1.2".to_owned(), "TLS".to_owned()],
        &["TLS_RSA_WITH_AES_128_CBC_SHA".to_owned(), OLD.to_owned()],
    );
    assert_eq!(kept, rules(&["TLSv1.2"], &[OLD], &[]));
    assert_eq!(left_out, ["TLSv1", "TLS_RSA_WITH_AES_128_CBC_SHA"]);
}

#[test]
fn each_client_sees_the_certificate_of_the_host_that_it_asks_for() {
    let files = Files::new("hosts");
    let more = vec![
        (files.at("shop.example.pem"), files.at("shop.example.key")),
        (files.at("partner.pem"), files.at("partner.key")),
    ];
    let (server, _workers) = files.server_of(&ServerTlsOptions { more, ..files.options(ClientVerify::None) });
    let client = Client::new(ClientLimits::default());
    for (host, names, wanted) in [
        ("localhost", HostNames::Asked, true),
        ("a.shop.example", HostNames::Asked, true),
        ("A.Shop.Example", HostNames::Asked, true),
        ("partner", HostNames::Asked, true),
        ("a.b.shop.example", HostNames::Asked, false),
        ("elsewhere", HostNames::Asked, false),
        ("elsewhere", HostNames::Any, true),
        ("elsewhere", HostNames::AskedOrLocalhost, false),
        ("127.0.0.1", HostNames::AskedOrLocalhost, true),
        ("127.0.0.1", HostNames::Asked, false),
    ] {
        let profile = files.profile(Roots::File(files.at("ca.pem")), false);
        let profile = ClientTlsOptions { server_name: Some(host.to_owned()), host_names: names, ..profile };
        let target =
            Target::https("localhost", server.local_addr().port(), ClientTls::new(&profile).unwrap());
        assert_eq!(block_on(ask(&client, &target, "x")).is_ok(), wanted, "{host} {names:?}");
    }
    // The issuer is checked all the same.
    let other = Files::new("others");
    let profile = ClientTlsOptions {
        host_names: HostNames::AskedOrLocalhost,
        ..files.profile(Roots::File(other.at("ca.pem")), false)
    };
    let target = Target::https("localhost", server.local_addr().port(), ClientTls::new(&profile).unwrap());
    assert!(block_on(ask(&client, &target, "x")).is_err());
}

/// The name of a host comes before a `*`, and a key that the client can verify before one that it cannot, in whatever order they are.
#[test]
fn of_several_certificates_for_a_host_the_one_that_fits_best_counts() {
    let files = Files::new("several");
    files.renew("a.shop.example", 3600);
    let key = KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048).unwrap();
    let asked = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(files.at("rsa.pem"), asked.signed_by(&key, &files.issuer).unwrap().pem()).unwrap();
    std::fs::write(files.at("rsa.key"), key.serialize_pem()).unwrap();
    let file = |name: &str| (files.at(&format!("{name}.pem")), files.at(&format!("{name}.key")));
    let more = vec![file("shop.example"), file("a.shop.example"), file("rsa")];
    let (server, _workers) = files.server_of(&ServerTlsOptions { more, ..files.options(ClientVerify::None) });
    let client = Client::new(ClientLimits::default());
    let all = "";
    for (host, revoked, cipher, wanted) in [
        // The certificates with a `*` and of `[tls]` are revoked.
        ("a.shop.example", "shop.crl", all, true),
        ("A.SHOP.example", "shop.crl", all, true),
        ("b.shop.example", "shop.crl", all, false),
        ("b.shop.example", "nobody.crl", all, true),
        ("localhost", "server.crl", all, false),
        ("localhost", "server.crl", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", true),
        ("localhost", "nobody.crl", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", true),
        ("b.shop.example", "nobody.crl", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", false),
    ] {
        let ciphers = if cipher.is_empty() { Vec::new() } else { vec![cipher.to_owned()] };
        let rules = TlsRules { ciphers, revoked: vec![files.at(revoked)], ..TlsRules::default() };
        let profile = files.profile(Roots::File(files.at("ca.pem")), false);
        let profile = ClientTlsOptions { server_name: Some(host.to_owned()), rules, ..profile };
        let target =
            Target::https("localhost", server.local_addr().port(), ClientTls::new(&profile).unwrap());
        assert_eq!(block_on(ask(&client, &target, "x")).is_ok(), wanted, "{host} {revoked} {cipher}");
    }
}

#[test]
fn faulty_files_are_named() {
    let files = Files::new("faulty");
    let options = ServerTlsOptions {
        certificates: files.at("localhost.pem"),
        key: files.at("nothing.key"),
        ..ServerTlsOptions::default()
    };
    let error = ServerTls::new(&options).expect_err("no key").to_string();
    assert!(error.contains("nothing.key"), "{error}");
    let options = ServerTlsOptions { key: files.at("partner.key"), ..options };
    let error = ServerTls::new(&options).expect_err("wrong key").to_string();
    assert!(error.contains("localhost.pem"), "{error}");
}
