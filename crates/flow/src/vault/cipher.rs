//! Cipher texts as WSO2's tools write them, and the key that reads them.
//!
//! They are Base64: of what RSA made, or of JSON that also says how (`{"c": CIPHER, "t": TRANSFORMATION, …}`; of AES:
//! `{"cipherText": CIPHER, "iv": VECTOR}`). The key is that of WSO2's keystore, exported as PEM, or the key of AES.

use super::gcm;
use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, Pkcs1PrivateDecryptingKey, PrivateDecryptingKey,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use std::path::Path;

/// Largest file with a key, in bytes.
const MAX_KEY: usize = 64 * 1024;
/// The transformation of symmetric encryption, as Java calls it.
const GCM: &str = "AES/GCM/NOPADDING";
/// What a cipher text is not.
const NONE: &str = "it is not a cipher text of WSO2's tool";

/// What secrets were encrypted for.
pub struct Key(KeyMaterial);

enum KeyMaterial {
    Rsa(Rsa),
    Aes(Box<gcm::Key>),
}

/// A private key of RSA.
struct Rsa {
    oaep: OaepPrivateDecryptingKey,
    pkcs1: Pkcs1PrivateDecryptingKey,
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Key")
    }
}

/// How RSA was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// With SHA-1, as Java has it by default.
    Oaep,
    Pkcs1,
}

/// How a cipher text was made.
enum Sealed {
    /// In one of these ways.
    Rsa(&'static [Way]),
    /// With this initialization vector.
    Aes(Vec<u8>),
}

impl Key {
    /// Reads a key from a file: PEM (PKCS #8) of RSA, or the hexadecimal digits of a key of AES.
    ///
    /// # Errors
    /// It cannot be read, or is no such key: what to do instead.
    pub fn read(path: &Path) -> Result<Key, String> {
        let place = |why: String| format!("{}: {why}", path.display());
        let bytes = config::read_file(path).map_err(place)?;
        if bytes.len() > MAX_KEY {
            return Err(place("it is too large for a key".to_owned()));
        }
        Key::of_text(&String::from_utf8_lossy(&bytes)).map_err(place)
    }

    fn of_text(text: &str) -> Result<Key, String> {
        if let Some(key) = unhex(text.trim()).and_then(|bytes| gcm::Key::new(&bytes)) {
            return Ok(Key(KeyMaterial::Aes(Box::new(key))));
        }
        Rsa::of_pem(text).map(|key| Key(KeyMaterial::Rsa(key)))
    }

    /// The plain text of a cipher text.
    ///
    /// # Errors
    /// It is none, was encrypted in a way that is not known here, or for another key.
    pub fn decrypt(&self, text: &str) -> Result<String, String> {
        let (sealed, cipher) = Sealed::of(text)?;
        let plain = match (&self.0, sealed) {
            (KeyMaterial::Rsa(key), Sealed::Rsa(ways)) => ways.iter().find_map(|way| key.open(*way, &cipher)),
            (KeyMaterial::Aes(key), Sealed::Aes(vector)) => key.open(&vector, &cipher),
            (KeyMaterial::Rsa(_), Sealed::Aes(_)) => {
                return Err(
                    "it was encrypted with AES, and the setting `vault.key` names a key of RSA: name a \
                            file with the hexadecimal digits of the symmetric key"
                        .to_owned(),
                );
            }
            (KeyMaterial::Aes(_), Sealed::Rsa(_)) => {
                return Err(
                    "it was encrypted with RSA, and the setting `vault.key` names a key of AES: name \
                            the key of WSO2's keystore as PEM"
                        .to_owned(),
                );
            }
        };
        let plain = plain.ok_or("it was encrypted for another key than that of the setting `vault.key`")?;
        String::from_utf8(plain).map_err(|_| "it is not text".to_owned())
    }
}

impl Sealed {
    /// What a cipher text says of itself, and its bytes.
    fn of(text: &str) -> Result<(Sealed, Vec<u8>), String> {
        let decoded = |text: &str| STANDARD.decode(text).map_err(|_| NONE.to_owned());
        let bytes = decoded(&text.split_whitespace().collect::<String>())?;
        let Ok(serde_json::Value::Object(object)) = serde_json::from_slice(&bytes) else {
            // Which of the two, by default, depends on the version.
            return Ok((Sealed::Rsa(&[Way::Oaep, Way::Pkcs1]), bytes));
        };
        let text = |name: &str| object.get(name).and_then(serde_json::Value::as_str);
        let (way, vector) = (text("t").map(str::to_ascii_uppercase), text("iv"));
        let sealed = match (way.as_deref(), vector) {
            (None | Some(GCM), Some(vector)) => Sealed::Aes(decoded(vector)?),
            (Some(GCM), None) => return Err(NONE.to_owned()),
            (None | Some("RSA" | "RSA/ECB/PKCS1PADDING"), _) => Sealed::Rsa(&[Way::Pkcs1]),
            (Some("RSA/ECB/OAEPWITHSHA1ANDMGF1PADDING" | "RSA/ECB/OAEPWITHSHA-1ANDMGF1PADDING"), _) => {
                Sealed::Rsa(&[Way::Oaep])
            }
            (Some(way), _) => {
                return Err(format!(
                    "{way} is not known here: RSA with OAEP and SHA-1, RSA with PKCS #1, and AES/GCM are"
                ));
            }
        };
        Ok((sealed, decoded(text("cipherText").or_else(|| text("c")).ok_or(NONE)?)?))
    }
}

impl Rsa {
    fn of_pem(text: &str) -> Result<Rsa, String> {
        const WAY: &str = "expected a private key of RSA as PEM (PKCS #8): `openssl pkcs12 -in wso2carbon.p12 -nodes \
                           -nocerts | openssl pkcs8 -topk8 -nocrypt -out key.pem`, or the 64 hexadecimal digits of a \
                           key of AES";
        let encoded = text
            .split_once("-----BEGIN PRIVATE KEY-----")
            .and_then(|(_, rest)| rest.split_once("-----END PRIVATE KEY-----"));
        let Some((encoded, _)) = encoded else { return Err(WAY.to_owned()) };
        let encoded: String = encoded.split_whitespace().collect();
        let der = STANDARD.decode(encoded).map_err(|_| WAY.to_owned())?;
        let key = || PrivateDecryptingKey::from_pkcs8(&der).map_err(|why| format!("{WAY} ({why})"));
        let failed = |_| WAY.to_owned();
        Ok(Rsa {
            oaep: OaepPrivateDecryptingKey::new(key()?).map_err(failed)?,
            pkcs1: Pkcs1PrivateDecryptingKey::new(key()?).map_err(failed)?,
        })
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

/// The bytes that hexadecimal digits are.
pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect();
    let pairs = digits?;
    (pairs.len() % 2 == 0).then(|| pairs.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
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
        (Key::of_text(&pem).unwrap(), move |plain: &[u8]| STANDARD.encode(oaep(&key, plain)))
    }

    #[test]
    fn what_was_encrypted_for_the_key_is_read() {
        let (pem, private) = generated();
        let key = Key::of_text(&format!("Bag Attributes\n    friendlyName: wso2carbon\n{pem}")).unwrap();
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
        let (oaep_cipher, pkcs1_cipher) = (oaep(b"p w"), STANDARD.encode(&pkcs1));
        for (text, wanted) in [
            (lines.as_str(), Ok("p w")),
            (&pkcs1_cipher, Ok("p w")),
            (&json(&oaep_cipher, "RSA/ECB/OAEPwithSHA1andMGF1Padding"), Ok("p w")),
            (&json(&pkcs1, "RSA"), Ok("p w")),
            // One of some hundred such blocks looks like one of PKCS #1; what is in it is not text.
            (&json(&oaep_cipher, "RSA"), Err("it ")),
            (&json(&oaep_cipher, "AES/GCM/NoPadding"), Err("not a cipher text")),
            (&json(&oaep_cipher, "AES/CBC/PKCS5Padding"), Err("AES/CBC/PKCS5PADDING is not known")),
            (SYMMETRIC, Err("names a key of RSA")),
            (&STANDARD.encode("{}"), Err("not a cipher text")),
            (&STANDARD.encode(oaep(b"\xff")), Err("not text")),
            ("AbCd", Err("another key")),
            ("AbC=", Err("not a cipher text")),
            ("not base64", Err("not a cipher text")),
            ("", Err("another key")),
        ] {
            match (key.decrypt(text), wanted) {
                (Ok(oaep_cipher), Ok(wanted)) => assert_eq!(oaep_cipher, wanted, "{text}"),
                (Err(oaep_cipher), Err(wanted)) => {
                    assert!(oaep_cipher.contains(wanted), "{text}: {oaep_cipher}")
                }
                (oaep_cipher, _) => panic!("{text}: {oaep_cipher:?}"),
            }
        }
        let other = Key::of_text(&generated().0).unwrap();
        assert!(other.decrypt(&STANDARD.encode(&oaep_cipher)).is_err_and(|why| why.contains("another key")));
    }

    /// What WSO2's tool makes of `open sesame` with the key below: a vector of 128 bytes, and JSON as Gson writes it.
    pub const SYMMETRIC: &str = "eyJjaXBoZXJUZXh0IjoibVErNjZDSlRTeXBaMnJJQlhGV1lQNnBEQTdxRnZFckZPVGtuIiwiaXYiOiJBUVlMRUJVYUh5UXBMak00UFVKSFRGRldXMkJsYW05MGVYNkRpSTJTbDV5aHBxdXd0YnEveE1uTzA5amQ0dWZzOGZiN0FBVUtEeFFaSGlNb0xUSTNQRUZHUzFCVldsOWthVzV6ZUgyQ2g0eVJscHVncGFxdnRMbSt3OGpOMHRmYzRlYnI4UFg2L3dRSkRoTVlIU0luTERFMk8wQkZTazlVV1Y1amFHMXlkM3dcdTAwM2QifQ==";
    const SYMMETRIC_KEY: &str = "0104070a0d101316191c1f2225282b2e3134373a3d404346494c4f5255585B5E\n";

    /// The symmetric key.
    pub fn symmetric() -> Key {
        Key::of_text(SYMMETRIC_KEY).unwrap()
    }

    #[test]
    fn what_was_encrypted_with_a_symmetric_key_is_read() {
        let key = symmetric();
        let json = |text: &str| STANDARD.encode(text);
        for (text, wanted) in [
            (SYMMETRIC, Ok("open sesame")),
            (
                &json(
                    r#"{"c":"QS94J+RksCtbKuZuiC/clr8PW8k4qXFOWh99","t":"AES/GCM/NoPadding","iv":"AQYLEBUaHyQpLjM4"}"#,
                ),
                Ok("abcdefghijk"),
            ),
            (
                &json(r#"{"c":"QS94J+RksCtbKuZuiC/clr8PW8k4qXFOWh99","iv":"AQYLEBUaHyQpLjM5"}"#),
                Err("another key"),
            ),
            (&json(r#"{"c":"QS94","iv":"AQYLEBUaHyQpLjM4"}"#), Err("another key")),
            (&json(r#"{"c":"QS94","iv":""}"#), Err("another key")),
            (&json(r#"{"c":"QS94","iv":"?"}"#), Err("not a cipher text")),
            (&json(r#"{"iv":"AQYLEBUaHyQpLjM4"}"#), Err("not a cipher text")),
            (&json(r#"{"c":"QS94","t":"AES/GCM/NoPadding"}"#), Err("not a cipher text")),
            ("AbCd", Err("names a key of AES")),
        ] {
            match (key.decrypt(text), wanted) {
                (Ok(result), Ok(wanted)) => assert_eq!(result, wanted, "{text}"),
                (Err(result), Err(wanted)) => assert!(result.contains(wanted), "{text}: {result}"),
                (result, _) => panic!("{text}: {result:?}"),
            }
        }
        let other = Key::of_text(&SYMMETRIC_KEY.replace("01", "02")).unwrap();
        assert!(other.decrypt(SYMMETRIC).is_err_and(|why| why.contains("another key")));
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
            assert!(Key::of_text(text).is_err_and(|why| why.contains("openssl pkcs8 -topk8")), "{text}");
        }
        assert!(
            Key::read(Path::new("/nowhere/key.pem")).is_err_and(|why| why.starts_with("/nowhere/key.pem: "))
        );
    }
}
