//! What a call costs beside its two operations with a private key: a request of a client is opened and an answer secured, as the secure proxy of
//! the example round does it, on one thread and without a network. Prints for each size the quickest of all rounds in microseconds, which
//! others on the machine disturb least.
//!
//! `cargo run --profile quick -p busbar-security --example cost [ROUNDS [SIZE…]]`
#![allow(clippy::unwrap_used)]

use busbar_security::algorithm::{Digest, Secret, Transport};
use busbar_security::keys::{KeyStore, Trust};
use busbar_security::{Environment, Exchange, Policy, Replays, Role, Side};
use rcgen::{CertificateParams, DnType, KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256};
use std::sync::Arc;
use std::time::{Duration, Instant};
use xml::{Document, ParseOptions, WriteOptions};

fn store(name: &str) -> KeyStore {
    let key = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap();
    let mut asked = CertificateParams::default();
    asked.distinguished_name.push(DnType::CommonName, name);
    asked.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    let pem = asked.self_signed(&key).unwrap().pem();
    KeyStore::read(format!("{}{pem}", key.serialize_pem()).as_bytes(), "", None).unwrap()
}

fn side(role: Role, keys: &KeyStore, other: &KeyStore) -> Side {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/round/local-entries/SecureOrders.xml");
    let entry = Document::parse(std::fs::read(path).unwrap(), &ParseOptions::trusted()).unwrap();
    let policy = entry.descendants(Document::ROOT).find(|&node| entry.local(node) == "Policy").unwrap();
    let policy = Policy::parse(xml::to_string(&entry, policy).as_bytes()).unwrap();
    let peer = Arc::clone(&other.identities[0].certificate);
    let mut trusted = KeyStore::default();
    trusted.certificates.push(("other".to_owned(), Arc::clone(&peer)));
    let mut all = keys.clone();
    all.add(trusted.clone());
    Side {
        role,
        policy: Arc::new(policy),
        store: Arc::new(all),
        trust: Arc::new(Trust::new(&trusted, &[]).unwrap()),
        own: keys.identities.first().cloned(),
        peer: (role == Role::Initiator).then_some(peer),
        parse: ParseOptions::default(),
    }
}

fn message(size: usize) -> String {
    let mut body = String::new();
    let mut number = 0;
    while body.len() < size {
        body.push_str(&format!(
            "<m:order><m:symbol>IBM</m:symbol><m:buyerID>asankha{number}</m:buyerID><m:price>140.34</m:price>\
             <m:volume>2000</m:volume></m:order>"
        ));
        number += 1;
    }
    format!(
        "<soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\"><soapenv:Header/><soapenv:Body>\
         <m:buyStocks xmlns:m=\"http://services.samples/xsd\">{body}</m:buyStocks></soapenv:Body></soapenv:Envelope>"
    )
}

fn quickest(all: &[Duration]) -> f64 {
    all.iter().min().map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().unwrap());
    let rounds: usize = arguments.next().unwrap_or(300);
    let sizes: Vec<usize> = arguments.collect();
    let sizes = if sizes.is_empty() { vec![1_000, 10_000, 100_000] } else { sizes };
    let (client, service) = (store("client"), store("service"));
    let (asking, answering) =
        (side(Role::Initiator, &client, &service), side(Role::Recipient, &service, &client));
    let (replays, nobody) = (Replays::default(), |_: &str| None);
    let around = Environment {
        now: jiff::Timestamp::now(),
        password: &nobody,
        replays: &replays,
        secure: true,
        client_certificate: false,
    };
    let identity = answering.own.as_ref().unwrap();
    let sealed = identity.certificate.public.encrypt(Transport::Oaep, &Secret::new(vec![7; 32])).unwrap();
    let mut operations = Vec::new();
    for _ in 0..rounds {
        let began = Instant::now();
        identity.key.decrypt(Transport::Oaep, &sealed).unwrap();
        identity.key.sign(Digest::Sha1, b"what is signed").unwrap();
        operations.push(began.elapsed());
    }
    let bare = quickest(&operations);
    println!("the two operations with a private key: {bare:.0} µs");
    println!("{:>8} {:>8} {:>8} {:>8} {:>8} {:>6}", "size", "parse", "open", "secure", "beside", "part");
    for size in sizes {
        let plain = message(size);
        let (mut parsed, mut opened, mut secured) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let mut document = Document::parse(plain.clone(), &ParseOptions::default()).unwrap();
            let mut asked = Exchange::default();
            busbar_security::secure(&mut document, &asking, &mut asked, &around).unwrap();
            let request = xml::to_string(&document, Document::ROOT).into_bytes();
            drop(document);
            let response = plain.clone().into_bytes();

            let began = Instant::now();
            let document = Document::parse(request, &answering.parse).unwrap();
            let read = began.elapsed();
            let mut exchange = Exchange::default();
            let open = busbar_security::open(document, &answering, &mut exchange, &around).unwrap();
            let done = began.elapsed();
            drop(open);
            let began = Instant::now();
            let mut document = Document::parse(response, &answering.parse).unwrap();
            busbar_security::secure(&mut document, &answering, &mut exchange, &around).unwrap();
            let mut out = Vec::with_capacity(document.source().len() * 2 + 8192);
            xml::write(&document, Document::ROOT, &WriteOptions::default(), &mut out);
            secured.push(began.elapsed());
            parsed.push(read);
            opened.push(done - read);
        }
        let (parsed, opened, secured) = (quickest(&parsed), quickest(&opened), quickest(&secured));
        let all = parsed + opened + secured;
        println!(
            "{size:>8} {parsed:>8.0} {opened:>8.0} {secured:>8.0} {:>8.0} {:>5.0}%",
            all - bare,
            bare / all * 100.0
        );
    }
}
