//! WS-Security headers: whatever comes in is refused or opened, nothing panics, and what is opened is what was signed. The first byte chooses
//! a policy, and whether the rest is a message, or changes to one that is in order.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rcgen::{CertificateParams, DnType, KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256};
use security::algorithm::Secret;
use security::keys::{KeyStore, Trust};
use security::{Environment, Exchange, Policy, Replays, Role, Side};
use std::sync::{Arc, OnceLock};
use xml::{Document, NodeId, ParseOptions, c14n};

const POLICIES: [&str; 5] = [
    include_str!("../../examples/security/scenario02.xml"),
    include_str!("../../examples/security/scenario03.xml"),
    include_str!("../../examples/security/scenario05.xml"),
    include_str!("../../examples/security/scenario06.xml"),
    include_str!("../../examples/security/scenario08.xml"),
];
const MESSAGE: &str = "<soapenv:Envelope xmlns:soapenv='http://schemas.xmlsoap.org/soap/envelope/'><soapenv:Header/><soapenv:Body><m:buy xmlns:m='urn:m'><price>12</price></m:buy></soapenv:Body></soapenv:Envelope>";

/// A service, and a message of a client for it.
struct Case {
    service: Side,
    message: Vec<u8>,
    body: Vec<u8>,
}

fn store(name: &str) -> KeyStore {
    let key = KeyPair::generate_for(&PKCS_RSA_SHA256).expect("a key is made");
    let mut asked = CertificateParams::default();
    asked.distinguished_name.push(DnType::CommonName, name);
    asked.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    let pem = asked.self_signed(&key).expect("a certificate is made").pem();
    KeyStore::read(format!("{}{pem}", key.serialize_pem()).as_bytes(), "", None).expect("it is a key store")
}

/// Always the same: a message is valid for some minutes, and runs are longer.
fn now() -> jiff::Timestamp {
    static NOW: OnceLock<jiff::Timestamp> = OnceLock::new();
    *NOW.get_or_init(jiff::Timestamp::now)
}

fn within<T>(work: impl FnOnce(&Environment<'_>) -> T) -> T {
    let password = |_: &str| Some(Secret::new(b"opensesame".to_vec()));
    let replays = Replays::default();
    work(&Environment {
        now: now(),
        password: &password,
        replays: &replays,
        secure: true,
        client_certificate: false,
    })
}

fn body(document: &Document) -> Option<NodeId> {
    let root = document.document_element()?;
    document.children(root).find(|&node| document.local(node) == "Body")
}

/// What is in the body, in canonical form.
fn content(document: &Document) -> Vec<u8> {
    let mut out = Vec::new();
    let options = c14n::Options { algorithm: c14n::Algorithm::Exclusive, ..Default::default() };
    for node in document.children(body(document).expect("it has a body")) {
        c14n::canonicalize(document, node, &options, &mut out);
    }
    out
}

fn cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(|| {
        let (client, service) = (store("client"), store("service"));
        let side = |role, keys: &KeyStore, other: &KeyStore, policy: &str| {
            let mut policy = Policy::parse(policy.as_bytes()).expect("it is a policy");
            policy.config.user = "alice".to_owned();
            let peer = Arc::clone(&other.identities[0].certificate);
            let mut trusted = KeyStore::default();
            trusted.certificates.push(("other".to_owned(), Arc::clone(&peer)));
            let mut all = keys.clone();
            all.add(trusted.clone());
            Side {
                role,
                policy: Arc::new(policy),
                store: Arc::new(all),
                trust: Arc::new(Trust::new(&trusted, &[]).expect("it can be trusted")),
                own: keys.identities.first().cloned(),
                peer: (role == Role::Initiator).then_some(peer),
                parse: ParseOptions::default(),
            }
        };
        let plain =
            Document::parse(MESSAGE.as_bytes().to_vec(), &ParseOptions::default()).expect("it is one");
        let case = |policy: &&str| {
            let asking = side(Role::Initiator, &client, &service, policy);
            let mut document = plain.clone();
            within(|around| security::secure(&mut document, &asking, &mut Exchange::default(), around))
                .expect("it is secured");
            let message = xml::to_string(&document, Document::ROOT).into_bytes();
            let case = Case {
                service: side(Role::Recipient, &service, &client, policy),
                message,
                body: content(&plain),
            };
            assert!(opened(&case, case.message.clone()), "a message in order is refused");
            case
        };
        POLICIES.iter().map(case).collect()
    })
}

/// Whether it is let in; its body is the one that was signed then.
fn opened(case: &Case, message: Vec<u8>) -> bool {
    let Ok(document) = Document::parse(message, &ParseOptions::default()) else { return false };
    match within(|around| security::open(document, &case.service, &mut Exchange::default(), around)) {
        Ok(opened) => {
            assert_eq!(content(&opened.document), case.body, "a message that nobody signed was let in");
            true
        }
        Err(failure) => {
            assert!(!failure.why.is_empty());
            false
        }
    }
}

/// Cuts some bytes out and puts others in their place, a few times.
fn changed(message: &[u8], mut how: &[u8]) -> Vec<u8> {
    let mut out = message.to_vec();
    while let [high, low, cut, put, rest @ ..] = how {
        let at = usize::from(u16::from_be_bytes([*high, *low])) % (out.len() + 1);
        let end = (at + usize::from(*cut)).min(out.len());
        let (new, after) = rest.split_at(usize::from(*put).min(rest.len()));
        // Pieces of the message itself are what wraps signatures.
        let replacement: Vec<u8> = match *put {
            255 => out[at / 2..at].to_vec(),
            _ => new.to_vec(),
        };
        out.splice(at..end, replacement);
        how = after;
        if out.len() > 1 << 17 {
            break;
        }
    }
    out
}

fuzz_target!(|data: &[u8]| {
    let cases = cases();
    let Some((&choice, rest)) = data.split_first() else { return };
    let case = &cases[usize::from(choice) / 2 % cases.len()];
    match choice % 2 {
        0 => opened(case, rest.to_vec()),
        _ => opened(case, changed(&case.message, rest)),
    };
});
