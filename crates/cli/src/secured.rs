//! The secure proxy of the example round from the side of its clients: keys for both sides, made when they are wanted and never part of
//! the source, and messages secured as its policy asks for.

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256};
use security::algorithm::{Digest, Secret, Transport};
use security::keys::{Identity, KeyStore, Trust};
use security::{Environment, Exchange, Policy, Replays, Role, Side};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use xml::{Document, ParseOptions};

/// The entry of the round with the policy, and the policy in it.
const ENTRY: &str = "local-entries/SecureOrders.xml";

/// Files with keys and certificates, in PEM.
#[derive(Clone, Debug)]
pub struct Keys {
    /// Key and certificate of the bus, for messages.
    pub bus: PathBuf,
    /// The certificate of it.
    pub bus_certificate: PathBuf,
    /// Key and certificate of a client, for messages.
    pub client: PathBuf,
    /// The certificate of it.
    pub client_certificate: PathBuf,
    /// The key of the https listener.
    pub tls_key: PathBuf,
    /// Its certificate, for `localhost` and the loopback addresses.
    pub tls_certificate: PathBuf,
}

impl Keys {
    /// Those in a folder.
    pub fn at(folder: &Path) -> Keys {
        let file = |name: &str| folder.join(name);
        Keys {
            bus: file("bus.pem"),
            bus_certificate: file("bus.crt"),
            client: file("client.pem"),
            client_certificate: file("client.crt"),
            tls_key: file("tls.key"),
            tls_certificate: file("tls.crt"),
        }
    }

    /// The settings of a bus with these keys.
    pub fn settings(&self) -> [(&'static str, &Path); 4] {
        [
            ("security.keystore", &self.bus),
            ("security.truststore", &self.client_certificate),
            ("tls.certificate", &self.tls_certificate),
            ("tls.key", &self.tls_key),
        ]
    }

    /// Makes new ones in a folder, which only its owner can read. RSA has 2048 bits.
    ///
    /// # Errors
    /// The cryptographic library refuses, or a file cannot be written; one that is there is never written over.
    pub fn make(folder: &Path) -> Result<Keys, String> {
        let keys = Keys::at(folder);
        let mut folders = fs::DirBuilder::new();
        folders
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        let failed = |error: rcgen::Error| format!("cannot make keys: {error}");
        let sides = [
            ("busbar-demo-bus", &keys.bus, &keys.bus_certificate),
            ("busbar-demo-client", &keys.client, &keys.client_certificate),
        ];
        for (name, both, certificate) in sides {
            let key = KeyPair::generate_for(&PKCS_RSA_SHA256).map_err(failed)?;
            let mut parameters = CertificateParams::default();
            parameters.distinguished_name = DistinguishedName::new();
            parameters.distinguished_name.push(DnType::CommonName, name);
            parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
            let made = parameters.self_signed(&key).map_err(failed)?.pem();
            write(both, &format!("{}{made}", key.serialize_pem()))?;
            write(certificate, &made)?;
        }
        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let made = rcgen::generate_simple_self_signed(names).map_err(failed)?;
        write(&keys.tls_key, &made.signing_key.serialize_pem())?;
        write(&keys.tls_certificate, &made.cert.pem())?;
        Ok(keys)
    }
}

/// Keys are for their owner alone.
fn write(path: &Path, text: &str) -> Result<(), String> {
    let mut open = fs::OpenOptions::new();
    open.write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// A client of the secure proxy.
pub struct Client(Side);

/// A message that was secured; its answer belongs to it.
pub struct SecuredRequest {
    /// What is sent.
    pub bytes: Vec<u8>,
    exchange: Exchange,
}

impl Client {
    /// With keys, for the policy in a folder with the round.
    ///
    /// # Errors
    /// A file cannot be read, or is not what it should be.
    pub fn new(keys: &Keys, round: &Path) -> Result<Client, String> {
        let text = read(&round.join(ENTRY))?;
        Client::of(keys, &text).map_err(|why| format!("the client of the secure proxy: {why}"))
    }

    fn of(keys: &Keys, entry: &[u8]) -> Result<Client, String> {
        let document =
            Document::parse(entry.to_vec(), &ParseOptions::trusted()).map_err(|why| why.to_string())?;
        let policy = document
            .descendants(Document::ROOT)
            .find(|&node| document.kind(node) == xml::NodeKind::Element && document.local(node) == "Policy")
            .ok_or("there is no policy in its entry")?;
        let policy = Policy::parse(xml::to_string(&document, policy).as_bytes())?;
        let store = |path: &Path| KeyStore::read(&read(path)?, "", None);
        let (mut client_store, bus) = (store(&keys.client)?, store(&keys.bus_certificate)?);
        let trust = Trust::new(&bus, &[])?;
        let identity = client_store.identities.first().cloned().ok_or("the client has no key")?;
        let peer = bus.certificates.first().map(|(_, certificate)| Arc::clone(certificate));
        client_store.add(bus);
        Ok(Client(Side {
            role: Role::Initiator,
            policy: Arc::new(policy),
            store: Arc::new(client_store),
            trust: Arc::new(trust),
            own: Some(identity),
            peer,
            parse: ParseOptions::default(),
        }))
    }

    /// Secures a SOAP message.
    ///
    /// # Errors
    /// It is none.
    pub fn secure(&self, message: &[u8]) -> Result<SecuredRequest, String> {
        let mut document = Document::parse(message.to_vec(), &self.0.parse).map_err(|why| why.to_string())?;
        let mut exchange = Exchange::default();
        within(|environment| security::secure(&mut document, &self.0, &mut exchange, environment))
            .map_err(|why| format!("the message cannot be secured: {why}"))?;
        Ok(SecuredRequest { bytes: xml::to_string(&document, Document::ROOT).into_bytes(), exchange })
    }

    /// The plain answer to a message.
    ///
    /// # Errors
    /// It is not secured as the policy asks for; what it is instead is part of the text.
    pub fn open(&self, asked: &mut SecuredRequest, response: &[u8]) -> Result<Vec<u8>, String> {
        let no = |why: &dyn std::fmt::Display| {
            let shown: String = String::from_utf8_lossy(response).chars().take(300).collect();
            format!("the answer is not secured as the policy asks for: {why}: {shown}")
        };
        let document = Document::parse(response.to_vec(), &self.0.parse).map_err(|why| no(&why))?;
        let opened =
            within(|environment| security::open(document, &self.0, &mut asked.exchange, environment))
                .map_err(|why| no(&why))?;
        Ok(xml::to_string(&opened.document, Document::ROOT).into_bytes())
    }
}

fn within<T>(work: impl FnOnce(&Environment<'_>) -> T) -> T {
    let (nobody, replays) = (|_: &str| None, Replays::default());
    work(&Environment {
        now: jiff::Timestamp::now(),
        password: &nobody,
        replays: &replays,
        secure: true,
        client_certificate: false,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// What operations of RSA cost that each call needs: the two with a private key (the key of the request is decrypted, the answer signed), and
/// the two with a public one (the signature of the request is verified, the key of the answer encrypted). The quickest of `rounds` each, on
/// this thread.
///
/// # Errors
/// The key is none of RSA.
pub fn bare_rsa(keys: &Keys, rounds: u32) -> Result<(Duration, Duration), String> {
    let store = KeyStore::read(&read(&keys.bus)?, "", None)?;
    let identity: &Arc<Identity> = store.identities.first().ok_or("there is no private key")?;
    let (session, text) = (Secret::new(vec![7; 32]), b"what is signed");
    let public = &identity.certificate.public;
    let sealed = public.encrypt(Transport::Oaep, &session).ok_or("the key encrypts nothing")?;
    let signature = identity.key.sign(Digest::Sha1, text).ok_or("the key signs nothing")?;
    let quickest = |work: &dyn Fn() -> bool| {
        let mut quickest = Duration::MAX;
        for _ in 0..rounds.max(1) {
            let began = Instant::now();
            if !work() {
                return Err("the key cannot be used".to_owned());
            }
            quickest = quickest.min(began.elapsed());
        }
        Ok(quickest)
    };
    let decrypted = quickest(&|| identity.key.decrypt(Transport::Oaep, &sealed).is_some())?;
    let signed = quickest(&|| identity.key.sign(Digest::Sha1, text).is_some())?;
    let encrypted = quickest(&|| public.encrypt(Transport::Oaep, &session).is_some())?;
    let verified = quickest(&|| public.is_signed(Digest::Sha1, text, &signature))?;
    Ok((decrypted + signed, encrypted + verified))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn keys_are_for_their_owner_and_are_never_written_over() {
        let folder = std::env::temp_dir().join(format!("busbar-keys-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let keys = Keys::make(&folder).unwrap();
        for path in [&keys.bus, &keys.client, &keys.tls_key] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
            assert!(fs::read_to_string(path).unwrap().contains("PRIVATE KEY"));
        }
        assert!(Keys::make(&folder).unwrap_err().contains("bus.pem"));
        let round = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/round");
        let client = Client::new(&keys, &round).unwrap();
        let order = bench::messages::order_message(1024, &bench::messages::Variant::default());
        let mut request = client.secure(&order).unwrap();
        let text = String::from_utf8(request.bytes.clone()).unwrap();
        assert!(text.contains("EncryptedData") && text.contains("SignatureValue"), "{text}");
        assert!(!text.contains("buyStocks"), "{text}");
        let why = client.open(&mut request, &order).unwrap_err();
        assert!(why.contains("not secured"), "{why}");
        let (private, public) = bare_rsa(&keys, 2).unwrap();
        assert!(private > public && public > Duration::ZERO);
        fs::remove_dir_all(&folder).unwrap();
    }
}
