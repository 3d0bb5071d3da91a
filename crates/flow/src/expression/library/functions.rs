//! The functions that Synapse adds to XPath and that need nothing but their arguments.

use crate::text::hex;
use base64::Engine;
use message::charset::{Charset, Unmappable, for_reading};
use message::coding::BASE64;

/// `base64Encode(text[, charset])`.
pub(super) fn base64_encode(text: &str, charset: Option<&str>) -> Result<String, String> {
    let bytes = match charset {
        Some(charset) => charset_of(charset)?.encode(text, Unmappable::Question),
        None => text.as_bytes().to_vec(),
    };
    Ok(base64::engine::general_purpose::STANDARD.encode(bytes))
}

/// `base64Decode(text[, charset])`: what is not Base64 in it is passed over, as Java's decoder does; white space around the
/// result is cut off, as in WSO2.
pub(super) fn base64_decode(text: &str, charset: Option<&str>) -> Result<String, String> {
    let encoding = match charset {
        Some(charset) => for_reading(charset).ok_or_else(|| unknown(charset))?,
        None => encoding_rs::UTF_8,
    };
    let mut digits: Vec<u8> = text
        .bytes()
        .take_while(|&byte| byte != b'=')
        .filter_map(|byte| match byte {
            b'-' => Some(b'+'),
            b'_' => Some(b'/'),
            byte if byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/') => Some(byte),
            _ => None,
        })
        .collect();
    // One digit alone is less than a byte.
    if digits.len() % 4 == 1 {
        digits.pop();
    }
    let bytes = BASE64.decode(digits).map_err(|error| error.to_string())?;
    Ok(encoding.decode_without_bom_handling(&bytes).0.trim_matches(|c: char| c <= ' ').to_owned())
}

/// `url-encode(text[, charset])`: percent-encoding for a path with a query; what structures a URL stays. A charset that
/// nobody knows is UTF-8, as in WSO2.
pub(super) fn url_encode(text: &str, charset: Option<&str>) -> String {
    let charset = charset.and_then(Charset::for_label).unwrap_or(Charset::UTF8);
    let bytes = charset.encode(text, Unmappable::Question);
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-_.~/?&=:;@+$,!*'()".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// `hmac-generate(payload, secret[, algorithm])`: lower-case hexadecimal; the algorithm by its Java name.
pub(super) fn hmac(payload: &str, secret: &str, algorithm: Option<&str>) -> Result<String, String> {
    Ok(hex(&hmac_bytes(payload.as_bytes(), secret.as_bytes(), algorithm.unwrap_or("HmacSHA1"))?))
}

/// The code of a message by an algorithm with its Java name.
pub(crate) fn hmac_bytes(payload: &[u8], secret: &[u8], algorithm: &str) -> Result<Vec<u8>, String> {
    use aws_lc_rs::hmac;
    let algorithm = match algorithm.to_ascii_uppercase().as_str() {
        "HMACMD5" => return Ok(hmac_md5(payload, secret)),
        "HMACSHA1" => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        "HMACSHA224" => hmac::HMAC_SHA224,
        "HMACSHA256" => hmac::HMAC_SHA256,
        "HMACSHA384" => hmac::HMAC_SHA384,
        "HMACSHA512" => hmac::HMAC_SHA512,
        other => return Err(format!("unknown algorithm {other} (HmacMD5, HmacSHA1, 224, 256, 384 or 512)")),
    };
    let key = hmac::Key::new(algorithm, secret);
    Ok(hmac::sign(&key, payload).as_ref().to_vec())
}

/// The code of RFC 2104 with MD5, which the library of the others does not have.
fn hmac_md5(payload: &[u8], secret: &[u8]) -> Vec<u8> {
    use hmac::{KeyInit, Mac};
    let mut code = hmac::Hmac::<md5::Md5>::new_from_slice(secret).expect("a key may have any length");
    code.update(payload);
    code.finalize().into_bytes().to_vec()
}

fn charset_of(charset: &str) -> Result<Charset, String> {
    Charset::for_label(charset).ok_or_else(|| unknown(charset))
}

fn unknown(charset: &str) -> String {
    format!("unknown charset {charset}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_written_and_read() {
        for (text, charset, encoded) in [
            ("é", None, "w6k="),
            ("é", Some("ISO-8859-1"), "6Q=="),
            ("é", Some("UTF-16LE"), "6QA="),
            ("", None, ""),
        ] {
            assert_eq!(base64_encode(text, charset).as_deref(), Ok(encoded), "{text} {charset:?}");
            assert_eq!(base64_decode(encoded, charset).as_deref(), Ok(text), "{encoded} {charset:?}");
        }
        for (encoded, wanted) in [
            ("ICB4IA==", "x"),
            ("***", ""),
            ("w6k", "é"),
            ("YQ==YQ==", "a"),
            ("Y W\nJj", "abc"),
            ("YWJjZ", "abc"),
            ("8J-YgA", "😀"),
            ("Zh", "f"),
        ] {
            assert_eq!(base64_decode(encoded, None).as_deref(), Ok(wanted), "{encoded}");
        }
        assert!(base64_encode("é", Some("nope")).is_err() && base64_decode("w6k=", Some("nope")).is_err());
    }

    #[test]
    fn url_encode_leaves_the_structure_of_a_url() {
        for (text, charset, wanted) in [
            ("/a b?x=é&y=1%", None, "/a%20b?x=%C3%A9&y=1%25"),
            ("é", Some("ISO-8859-1"), "%E9"),
            ("é", Some("nope"), "%C3%A9"),
            ("!*'()~|^[]{}", None, "!*'()~%7C%5E%5B%5D%7B%7D"),
            ("<>\"#,;:@$+", None, "%3C%3E%22%23,;:@$+"),
            ("", None, ""),
        ] {
            assert_eq!(url_encode(text, charset), wanted, "{text}");
        }
    }

    #[test]
    fn hmacs_are_those_of_rfc_2202_and_4231() {
        let jefe = |algorithm| hmac("what do ya want for nothing?", "Jefe", algorithm);
        for (algorithm, begin, length) in [
            (None, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79", 40),
            (Some("HmacSHA224"), "a30e01098bc6dbbf45690f3a7e9e6d0f", 56),
            (Some("HmacSHA256"), "5bdcc146bf60754e6a042426089575c7", 64),
            (Some("hmacsha384"), "af45d2e376484031617f78d2b58a6b1b", 96),
            (Some("HmacSHA512"), "164b7a7bfcf819e2e395fbe73b56e0a3", 128),
        ] {
            let code = jefe(algorithm).unwrap();
            assert!(code.starts_with(begin) && code.len() == length, "{algorithm:?}: {code}");
        }
        assert_eq!(jefe(Some("HmacMD5")).as_deref(), Ok("750c783e6ab0b503eaa86e310a5db738"));
        assert!(jefe(Some("HmacMD4")).is_err() && jefe(Some("")).is_err());
        assert_eq!(hmac("", "b", None).unwrap(), "90eee90052f4fcbbf7cdde00871a3fb9457022ac");
    }
}
