//! For tests here and in `cli`: an authority that is made on the spot, answers of OCSP that it signs, and a server that gives them. DER is
//! written apart from what is tested.
#![allow(clippy::unwrap_used, dead_code)] // helpers of tests; not every test uses all of them

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256, SerialNumber, SigningKey,
};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// ecdsa-with-SHA256.
const BY_ECDSA: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
/// sha256WithRSAEncryption, with its parameters.
const BY_RSA: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b, 0x05, 0x00];
const SHA1: &[u8] = &[0x2b, 0x0e, 0x03, 0x02, 0x1a];
const NONCE: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 2];

pub const SEQUENCE: u8 = 0x30;
const OCTETS: u8 = 0x04;
const INTEGER: u8 = 0x02;
const OID: u8 = 0x06;

/// A value as DER.
pub fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = match content.len() {
        short @ 0..=0x7f => vec![short as u8],
        middle @ 0x80..=0xff => vec![0x81, middle as u8],
        long => [&[0x82][..], &u16::try_from(long).unwrap().to_be_bytes()].concat(),
    };
    [&[tag][..], &length, &content].concat()
}

/// In seconds since 1970.
pub fn now() -> i64 {
    Timestamp::now().as_second()
}

/// An authority.
pub struct Authority {
    pub name: String,
    pub der: Vec<u8>,
    pub key: KeyPair,
    pub issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new(name: &str) -> Authority {
        Authority::with(name, KeyPair::generate().unwrap())
    }

    /// With this key: of P-256, or of RSA.
    pub fn with(name: &str, key: KeyPair) -> Authority {
        let asked = Authority::asked(name);
        let der = asked.self_signed(&key).unwrap().der().to_vec();
        let copy = KeyPair::from_pem(&key.serialize_pem()).unwrap();
        Authority { name: name.to_owned(), der, key, issuer: Issuer::new(asked, copy) }
    }

    fn asked(name: &str) -> CertificateParams {
        let mut asked = CertificateParams::new(Vec::new()).unwrap();
        asked.distinguished_name = DistinguishedName::new();
        asked.distinguished_name.push(DnType::CommonName, name);
        asked.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        asked.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        asked
    }

    /// An authority below this one.
    pub fn below(&self, name: &str, serial: u64) -> Authority {
        self.below_with(name, serial, |_| {})
    }

    pub fn below_with(
        &self,
        name: &str,
        serial: u64,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut asked = Authority::asked(name);
        asked.serial_number = Some(SerialNumber::from(serial));
        change(&mut asked);
        let der = asked.signed_by(&key, &self.issuer).unwrap().der().to_vec();
        let copy = KeyPair::from_pem(&key.serialize_pem()).unwrap();
        Authority { name: name.to_owned(), der, key, issuer: Issuer::new(asked, copy) }
    }

    /// A certificate, with the URL of a server.
    pub fn issue(&self, serial: u64, server: &str) -> Vec<u8> {
        self.made(serial, |asked| asked.custom_extensions.push(named(server))).0
    }

    pub fn made(&self, serial: u64, change: impl FnOnce(&mut CertificateParams)) -> (Vec<u8>, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let mut asked = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        asked.serial_number = Some(SerialNumber::from(serial));
        change(&mut asked);
        (asked.signed_by(&key, &self.issuer).unwrap().der().to_vec(), key)
    }

    /// A certificate for signing answers, if `appointed`.
    pub fn signer(&self, appointed: bool) -> (Vec<u8>, KeyPair) {
        self.made(77, |asked| {
            if appointed {
                asked.extended_key_usages = vec![ExtendedKeyUsagePurpose::OcspSigning];
            }
        })
    }

    /// The same key, for whoever keeps it.
    pub fn key(&self) -> KeyPair {
        KeyPair::from_pem(&self.key.serialize_pem()).unwrap()
    }

    /// An answer about one of its certificates, which it signs itself.
    pub fn says(&self, serial: u8, said: &SingleResponse) -> Vec<u8> {
        self.signed(serial, said, &self.key, &[])
    }

    /// The same, signed with this key; `certificates` go with it.
    pub fn signed(
        &self,
        serial: u8,
        said: &SingleResponse,
        key: &KeyPair,
        certificates: &[Vec<u8>],
    ) -> Vec<u8> {
        let common_name = tlv(SEQUENCE, &[&tlv(OID, &[&[0x55, 4, 3]]), &tlv(0x0c, &[self.name.as_bytes()])]);
        let name = tlv(SEQUENCE, &[&tlv(0x31, &[&common_name])]);
        let sha1 = |bytes: &[u8]| tlv(OCTETS, &[digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref()]);
        let issuer = sha1(self.key.public_key_raw());
        let id = tlv(
            SEQUENCE,
            &[
                &tlv(SEQUENCE, &[&tlv(OID, &[SHA1]), &[5, 0]]),
                &sha1(&name),
                &issuer,
                &tlv(INTEGER, &[&[serial]]),
            ],
        );
        let until = said.until.map(|until| tlv(0xa0, &[&time(until)])).unwrap_or_default();
        let entry = tlv(SEQUENCE, &[&id, &said.status, &time(said.from), &until, &said.more]);
        let entries = [&entry[..], &said.beside].concat();
        let nonce = said.nonce.as_ref().map(|nonce| {
            let extension = tlv(SEQUENCE, &[&tlv(OID, &[NONCE]), &tlv(OCTETS, &[&tlv(OCTETS, &[nonce])])]);
            tlv(0xa1, &[&tlv(SEQUENCE, &[&extension])])
        });
        let who = tlv(0xa2, &[&issuer]);
        let list = tlv(SEQUENCE, &[&entries]);
        let data = tlv(SEQUENCE, &[&who, &time(said.from), &list, nonce.as_deref().unwrap_or_default()]);
        let signature = key.sign(&data).unwrap();
        let signed = if key.is_compatible(&PKCS_RSA_SHA256) { BY_RSA } else { BY_ECDSA };
        let certificates = tlv(0xa0, &[&tlv(SEQUENCE, &[&certificates.concat()])]);
        let basic = tlv(
            SEQUENCE,
            &[&data, &tlv(SEQUENCE, &[signed]), &tlv(0x03, &[&[0], &signature]), &certificates],
        );
        let kind = tlv(OID, &[&[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1]]);
        let bytes = tlv(SEQUENCE, &[&kind, &tlv(OCTETS, &[&basic])]);
        tlv(SEQUENCE, &[&tlv(0x0a, &[&[0]]), &tlv(0xa0, &[&bytes])])
    }
}

/// The extension that names a server of OCSP.
pub fn named(server: &str) -> CustomExtension {
    let location = tlv(0x86, &[server.as_bytes()]);
    let method = tlv(OID, &[&[0x2b, 6, 1, 5, 5, 7, 0x30, 1]]);
    let access = tlv(SEQUENCE, &[&tlv(SEQUENCE, &[&method, &location])]);
    CustomExtension::from_oid_content(&[1, 3, 6, 1, 5, 5, 7, 1, 1], access)
}

/// What a server says of a certificate.
#[derive(Clone)]
pub struct SingleResponse {
    /// In DER: good, revoked, or unknown.
    pub status: Vec<u8>,
    pub from: i64,
    pub until: Option<i64>,
    pub nonce: Option<Vec<u8>>,
    /// Extensions of the entry, in DER.
    pub more: Vec<u8>,
    /// Entries behind it, in DER.
    pub beside: Vec<u8>,
}

/// Good for an hour.
pub fn good() -> SingleResponse {
    let now = now();
    let (status, more, beside) = (tlv(0x80, &[]), Vec::new(), Vec::new());
    SingleResponse { status, from: now - 60, until: Some(now + 3600), nonce: None, more, beside }
}

/// Its key was compromised.
pub fn revoked() -> SingleResponse {
    let reason = tlv(0xa0, &[&tlv(0x0a, &[&[1]])]);
    SingleResponse { status: tlv(0xa1, &[&time(good().from - 9999), &reason]), ..good() }
}

pub fn unknown() -> SingleResponse {
    SingleResponse { status: tlv(0x82, &[]), ..good() }
}

/// A time in DER.
fn time(seconds: i64) -> Vec<u8> {
    let time = Timestamp::from_second(seconds).unwrap();
    tlv(0x18, &[time.strftime("%Y%m%d%H%M%SZ").to_string().as_bytes()])
}

/// A server: where it is, and what it was asked.
pub struct Server {
    pub url: String,
    pub asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// `answer` gets the number of the question and gives status and body; `None`: silence. What is answered names the server itself as
    /// another place to ask.
    pub fn start(answer: impl Fn(usize) -> Option<(u16, Vec<u8>)> + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/ocsp", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let (seen, number, location) = (Arc::clone(&asked), AtomicUsize::new(0), url.clone());
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                seen.lock().unwrap().push(question(&mut BufReader::new(&stream)));
                match answer(number.fetch_add(1, SeqCst)) {
                    None => silent.push(stream),
                    Some((status, body)) => {
                        let head = format!(
                            "HTTP/1.1 {status} X\r\nLocation: {location}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                            body.len()
                        );
                        _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
                    }
                }
            }
        });
        Server { url, asked }
    }

    /// How often it was asked.
    pub fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

/// A request to its end; its head.
fn question(reader: &mut impl BufRead) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).is_ok_and(|read| read > 0) {}
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    _ = reader.take(length.unwrap_or(0)).read_to_end(&mut Vec::new());
    head
}
