//! Keys, policies and both sides of a conversation, for tests.
#![allow(dead_code, clippy::unwrap_used, missing_docs)]

use busbar_security::algorithm::Secret;
use busbar_security::keys::{KeyStore, Trust};
use busbar_security::{Environment, Exchange, Failure, Opened, Policy, Replays, Role, Side};
use jiff::Timestamp;
use rcgen::{CertificateParams, IsCa, KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256};
use std::sync::{Arc, OnceLock};
use xml::{Document, ParseOptions};

mod policies;
#[allow(unused_imports)] // Each test uses some of them.
pub use policies::{endorsing, policy, profiles, scenario};

/// A key and its certificate as PEM.
pub struct Pair {
    pub key: String,
    pub certificate: String,
}

impl Pair {
    pub fn both(&self) -> String {
        format!("{}{}", self.key, self.certificate)
    }
}

pub fn pair(name: &str, usages: &[KeyUsagePurpose]) -> Pair {
    let key = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.distinguished_name.push(rcgen::DnType::OrganizationName, "Busbar, tests");
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = usages.to_vec();
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2040, 1, 1);
    let certificate = params.self_signed(&key).unwrap();
    Pair { key: key.serialize_pem(), certificate: certificate.pem() }
}

const BOTH: &[KeyUsagePurpose] = &[KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];

pub fn client() -> &'static Pair {
    static OWN: OnceLock<Pair> = OnceLock::new();
    OWN.get_or_init(|| pair("client", BOTH))
}

pub fn service() -> &'static Pair {
    static OWN: OnceLock<Pair> = OnceLock::new();
    OWN.get_or_init(|| pair("service", BOTH))
}

pub fn side(role: Role, policy: &str) -> Side {
    let mut policy = Policy::parse(policy.as_bytes()).unwrap();
    policy.config.user = "alice".to_owned();
    let (mine, theirs) = match role {
        Role::Initiator => (client(), service()),
        Role::Recipient => (service(), client()),
    };
    let mine_store = KeyStore::read(mine.both().as_bytes(), "", None).unwrap();
    let other = KeyStore::read(theirs.certificate.as_bytes(), "", None).unwrap();
    let trust = Arc::new(Trust::new(&other, &[]).unwrap());
    let peer = (role == Role::Initiator).then(|| Arc::clone(&other.certificates[0].1));
    let identity = mine_store.identities.first().cloned();
    let mut store = mine_store;
    store.add(other);
    Side {
        role,
        policy: Arc::new(policy),
        store: Arc::new(store),
        trust,
        own: identity,
        peer,
        parse: ParseOptions::default(),
    }
}

pub struct World {
    pub replays: Replays,
    pub now: Timestamp,
    pub secure: bool,
}

impl Default for World {
    fn default() -> World {
        World { replays: Replays::default(), now: Timestamp::now(), secure: true }
    }
}

fn password(user: &str) -> Option<Secret> {
    (user == "alice").then(|| Secret::new(b"wonder<land>".to_vec()))
}

impl World {
    pub fn environment(&self) -> Environment<'_> {
        Environment {
            now: self.now,
            password: &password,
            replays: &self.replays,
            secure: self.secure,
            client_certificate: false,
        }
    }

    pub fn secure(&self, text: &str, side: &Side, exchange: &mut Exchange) -> Result<String, Failure> {
        let mut document = parse(text);
        busbar_security::secure(&mut document, side, exchange, &self.environment())?;
        Ok(xml::to_string(&document, Document::ROOT))
    }

    pub fn open(&self, text: &str, side: &Side, exchange: &mut Exchange) -> Result<Opened, Failure> {
        busbar_security::open(parse(text), side, exchange, &self.environment())
    }
}

pub fn parse(text: &str) -> Document {
    Document::parse(text.as_bytes().to_vec(), &ParseOptions::default()).unwrap()
}

pub const REQUEST: &str = r#"<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:q="urn:q"><soapenv:Header><h:Route xmlns:h="urn:h" level="1">a</h:Route></soapenv:Header><soapenv:Body><m:buy xmlns:m="urn:m" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="q:Order"><order id="1"><price>12 &lt; 13 &amp; "ä"</price></order> and <order xmlns="urn:other" id='2'/></m:buy></soapenv:Body></soapenv:Envelope>"#;

pub const ANSWER: &str = r#"<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body><bought xmlns="urn:m">yes</bought></soapenv:Body></soapenv:Envelope>"#;
