//! Cipher texts as WSO2's tool writes them, and the key that reads them.
//!
//! They are Base64: of what RSA made, or of JSON that also says how (`{"c": CIPHER, "t": TRANSFORMATION, …}`). The key is
//! that of WSO2's keystore, exported as PEM.

use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, Pkcs1PrivateDecryptingKey, PrivateDecryptingKey,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use std::path::Path;

/// Largest file with a key, in bytes.
const MAX_KEY: usize = 64 * 1024;

/// A private key of RSA.
pub struct Key {
    oaep: OaepPrivateDecryptingKey,
    pkcs1: Pkcs1PrivateDecryptingKey,
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Key")
    }
}

/// How a cipher text was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// With SHA-1, as Java has it by default.
    Oaep,
    Pkcs1,
}

impl Key {
    /// Reads a key from a PEM file (PKCS #8).
    ///
    /// # Errors
    /// It cannot be read, or is no such key: what to do instead.
    pub fn read(path: &Path) -> Result<Key, String> {
        let place = |why: String| format!("{}: {why}", path.display());
        let bytes = std::fs::read(path).map_err(|error| place(error.to_string()))?;
        if bytes.len() > MAX_KEY {
            return Err(place("it is too large for a key".to_owned()));
        }
        Key::of_pem(&String::from_utf8_lossy(&bytes)).map_err(place)
    }

    fn of_pem(text: &str) -> Result<Key, String> {
        const WAY: &str = "expected a private key of RSA as PEM (PKCS #8): `openssl pkcs12 -in wso2carbon.p12 -nodes \
                           -nocerts | openssl pkcs8 -topk8 -nocrypt -out key.pem`";
        let encoded = text
            .split_once("-----BEGIN PRIVATE KEY-----")
            .and_then(|(_, rest)| rest.split_once("-----END PRIVATE KEY-----"));
        let Some((encoded, _)) = encoded else { return Err(WAY.to_owned()) };
        let encoded: String = encoded.split_whitespace().collect();
        let der = STANDARD.decode(encoded).map_err(|_| WAY.to_owned())?;
        let key = || PrivateDecryptingKey::from_pkcs8(&der).map_err(|why| format!("{WAY} ({why})"));
        let failed = |_| WAY.to_owned();
        Ok(Key {
            oaep: OaepPrivateDecryptingKey::new(key()?).map_err(failed)?,
            pkcs1: Pkcs1PrivateDecryptingKey::new(key()?).map_err(failed)?,
        })
    }

    /// The plain text of a cipher text.
    ///
    /// # Errors
    /// It is none, was encrypted in a way that is not known here, or for another key.
    pub fn decrypt(&self, text: &str) -> Result<String, String> {
        const NONE: &str = "it is no cipher text of WSO2's tool";
        let encoded: String = text.split_whitespace().collect();
        let bytes = STANDARD.decode(encoded).map_err(|_| NONE.to_owned())?;
        let (cipher, ways) = match serde_json::from_slice::<serde_json::Value>(&bytes) {
            Ok(own) if own.is_object() => {
                let text = |name: &str| own.get(name).and_then(serde_json::Value::as_str);
                let cipher = text("c").and_then(|own| STANDARD.decode(own).ok()).ok_or(NONE)?;
                (cipher, vec![way(text("t").unwrap_or("RSA"))?])
            }
            // Which of the two, by default, depends on the version.
            _ => (bytes, vec![Way::Oaep, Way::Pkcs1]),
        };
        let plain = ways.into_iter().find_map(|way| self.open(way, &cipher));
        let plain = plain.ok_or("it was encrypted for another key than that of the setting `vault.key`")?;
        String::from_utf8(plain).map_err(|_| "it is no text".to_owned())
    }

    fn open(&self, way: Way, cipher: &[u8]) -> Option<Vec<u8>> {
        let mut room = vec![0; self.oaep.key_size_bytes()];
        let plain = match way {
            Way::Oaep => self.oaep.decrypt(&OAEP_SHA1_MGF1SHA1, cipher, &mut room, None),
            Way::Pkcs1 => self.pkcs1.decrypt(cipher, &mut room),
        };
        plain.ok().map(|plain| plain.to_vec())
    }
}

/// The way that Java calls so.
fn way(transformation: &str) -> Result<Way, String> {
    Ok(match transformation.to_ascii_uppercase().as_str() {
        "RSA" | "RSA/ECB/PKCS1PADDING" => Way::Pkcs1,
        "RSA/ECB/OAEPWITHSHA1ANDMGF1PADDING" | "RSA/ECB/OAEPWITHSHA-1ANDMGF1PADDING" => Way::Oaep,
        _ => {
            return Err(format!(
                "{transformation} is not known here: RSA with OAEP and SHA-1, or with PKCS #1, is"
            ));
        }
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
    use aws_lc_rs::rsa::{KeySize, OaepPublicEncryptingKey, Pkcs1PublicEncryptingKey};

    fn pem(der: &[u8]) -> String {
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der))
    }

    fn generated() -> (String, PrivateDecryptingKey) {
        let key = PrivateDecryptingKey::generate(KeySize::Rsa2048).unwrap();
        let der: Pkcs8V1Der<'static> = key.as_der().unwrap();
        (pem(der.as_ref()), key)
    }

    fn oaep(key: &PrivateDecryptingKey, plain: &[u8]) -> Vec<u8> {
        let key = OaepPublicEncryptingKey::new(key.public_key()).unwrap();
        let mut room = vec![0; key.ciphertext_size()];
        key.encrypt(&OAEP_SHA1_MGF1SHA1, plain, &mut room, None).unwrap().to_vec()
    }

    /// A key, and what encrypts for it.
    pub fn key() -> (Key, impl Fn(&[u8]) -> String) {
        let (pem, key) = generated();
        (Key::of_pem(&pem).unwrap(), move |plain: &[u8]| STANDARD.encode(oaep(&key, plain)))
    }

    #[test]
    fn what_was_encrypted_for_the_key_is_read() {
        let (pem, private) = generated();
        let key = Key::of_pem(&format!("Bag Attributes\n    friendlyName: wso2carbon\n{pem}")).unwrap();
        let public = Pkcs1PublicEncryptingKey::new(private.public_key()).unwrap();
        let mut room = vec![0; public.ciphertext_size()];
        let pkcs1 = public.encrypt(b"p w", &mut room).unwrap().to_vec();
        let oaep = |plain: &[u8]| oaep(&private, plain);
        let json = |cipher: &[u8], way: &str| {
            let cipher = STANDARD.encode(cipher);
            STANDARD.encode(format!(r#"{{"c":"{cipher}","t":"{way}","tp":"AB","tpd":"SHA-1"}}"#))
        };
        let lines = STANDARD.encode(oaep(b"p w"));
        let lines = format!("{}\n{}\n", &lines[..76], &lines[76..]);
        let (own, own_pkcs1) = (oaep(b"p w"), STANDARD.encode(&pkcs1));
        for (text, wanted) in [
            (lines.as_str(), Ok("p w")),
            (&own_pkcs1, Ok("p w")),
            (&json(&own, "RSA/ECB/OAEPwithSHA1andMGF1Padding"), Ok("p w")),
            (&json(&pkcs1, "RSA"), Ok("p w")),
            (&json(&own, "RSA"), Err("another key")),
            (&json(&own, "AES/GCM/NoPadding"), Err("AES/GCM/NoPadding is not known")),
            (&STANDARD.encode("{}"), Err("no cipher text")),
            (&STANDARD.encode(oaep(b"\xff")), Err("no text")),
            ("AbCd", Err("another key")),
            ("AbC=", Err("no cipher text")),
            ("not base64", Err("no cipher text")),
            ("", Err("another key")),
        ] {
            match (key.decrypt(text), wanted) {
                (Ok(own), Ok(wanted)) => assert_eq!(own, wanted, "{text}"),
                (Err(own), Err(wanted)) => assert!(own.contains(wanted), "{text}: {own}"),
                (own, _) => panic!("{text}: {own:?}"),
            }
        }
        let other = Key::of_pem(&generated().0).unwrap();
        assert!(other.decrypt(&STANDARD.encode(&own)).is_err_and(|why| why.contains("another key")));
    }

    #[test]
    fn what_is_no_key_says_what_is_expected() {
        let traditional = "-----BEGIN RSA PRIVATE KEY-----\nAA==\n-----END RSA PRIVATE KEY-----";
        let locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----";
        for text in [
            "",
            "junk",
            traditional,
            locked,
            &pem(b"junk"),
            "-----BEGIN PRIVATE KEY-----\n?\n-----END PRIVATE KEY-----",
        ] {
            assert!(Key::of_pem(text).is_err_and(|why| why.contains("openssl pkcs8 -topk8")), "{text}");
        }
        assert!(
            Key::read(Path::new("/nowhere/key.pem")).is_err_and(|why| why.starts_with("/nowhere/key.pem: "))
        );
    }
}
