//! What the classes of Java that scripts use need of the bus: dates by patterns, digests, character sets. Bytes are
//! written in Base64.

use crate::expression::library;
use ::expression::{DatePattern, Moment};
use aws_lc_rs::{digest, rand};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use encoding_rs::Encoding;

/// Most bytes that a script can ask for by chance at once.
const MOST_RANDOM: usize = 1 << 20;

/// `format` and `parse` of a date (pattern, milliseconds or text, time zone), `digest` (algorithm, bytes), `hmac` (algorithm,
/// key, bytes), `uuid`, `random` (how many), `encode` (character set, text), `decode` (character set, bytes).
///
/// # Errors
/// There is no such thing, or the arguments do not fit; in the words of Java's exceptions where scripts may look at them.
pub fn call(what: &str, arguments: &[String]) -> Result<String, String> {
    let argument = |at: usize| arguments.get(at).map_or("", String::as_str);
    let bytes = |at: usize| STANDARD.decode(argument(at)).map_err(|error| error.to_string());
    match what {
        "format" => {
            // A large number of JavaScript may be written as `1.7e12`.
            let time: f64 = argument(1).parse().map_err(|_| format!("`{}` is no time", argument(1)))?;
            DatePattern::simple(argument(0))?.format(&Moment::of_named(time as i64, argument(2))?)
        }
        "parse" => {
            let moment = DatePattern::simple(argument(0))?.parse(argument(1));
            let moment =
                moment.map_err(|_| format!("ParseException: Unparseable date: \"{}\"", argument(1)))?;
            Ok(moment.milliseconds(argument(2))?.to_string())
        }
        "digest" => Ok(STANDARD.encode(digested(argument(0), &bytes(1)?)?)),
        "hmac" => Ok(STANDARD.encode(library::hmac(&bytes(2)?, &bytes(1)?, argument(0))?)),
        "uuid" => {
            let mut own = random(16)?;
            own[6] = own[6] & 0x0f | 0x40;
            own[8] = own[8] & 0x3f | 0x80;
            let hex = crate::text::hex(&own);
            Ok(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
        }
        "random" => {
            let size = argument(0).parse::<usize>().ok().filter(|size| *size <= MOST_RANDOM);
            let size = size.ok_or_else(|| format!("`{}` bytes are too many", argument(0)))?;
            Ok(STANDARD.encode(random(size)?))
        }
        "encode" => Ok(STANDARD.encode(charset(argument(0))?.encode(argument(1)).0)),
        "decode" => Ok(charset(argument(0))?.decode_without_bom_handling(&bytes(1)?).0.into_owned()),
        other => Err(format!("`{other}` is not available here")),
    }
}

fn digested(algorithm: &str, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let own = match algorithm.to_ascii_uppercase().as_str() {
        "MD5" => {
            use md5::Digest;
            return Ok(md5::Md5::digest(bytes).to_vec());
        }
        "SHA-1" | "SHA1" | "SHA" => &digest::SHA1_FOR_LEGACY_USE_ONLY,
        "SHA-224" => &digest::SHA224,
        "SHA-256" | "SHA256" => &digest::SHA256,
        "SHA-384" => &digest::SHA384,
        "SHA-512" | "SHA512" => &digest::SHA512,
        _ => return Err(format!("NoSuchAlgorithmException: {algorithm} MessageDigest not available")),
    };
    Ok(digest::digest(own, bytes).as_ref().to_vec())
}

fn random(size: usize) -> Result<Vec<u8>, String> {
    let mut own = vec![0; size];
    rand::fill(&mut own).map_err(|_| "there are no random numbers".to_owned())?;
    Ok(own)
}

fn charset(name: &str) -> Result<&'static Encoding, String> {
    Encoding::for_label(name.trim().as_bytes()).ok_or_else(|| format!("UnsupportedEncodingException: {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls() {
        let call = |what: &str, arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|&own| own.to_owned()).collect();
            call(what, &arguments)
        };
        let text = |result: Result<String, String>| result.unwrap_or_else(|why| format!("!{why}"));
        for (what, arguments, expected) in [
            ("format", &["yyyy-MM-dd'T'HH:mm:ss.SSSZ", "0", "UTC"][..], "1970-01-01T00:00:00.000+0000"),
            ("format", &["HH:mm", "0", "GMT+5:30"], "05:30"),
            ("format", &["HH:mm", "1.7e12", "Asia/Tokyo"], "07:13"),
            ("format", &["HH:mm", "0", "Nowhere/Atall"], "00:00"),
            ("format", &["yyyy", "never", "UTC"], "!`never` is no time"),
            ("parse", &["yyyy-MM-dd HH:mm", "1970-01-02 00:00", "UTC"], "86400000"),
            ("parse", &["yyyy-MM-dd", "1970-01-02", "GMT-1"], "90000000"),
            ("parse", &["yyyy", "x", ""], "!ParseException: Unparseable date: \"x\""),
            ("digest", &["MD5", "YWJj"], "kAFQmDzST7DWlj99KOF/cg=="),
            ("digest", &["SHA-256", "YWJj"], "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="),
            ("digest", &["SHA-3000", ""], "!NoSuchAlgorithmException: SHA-3000 MessageDigest not available"),
            ("encode", &["ISO-8859-1", "é"], "6Q=="),
            ("decode", &["UTF-8", "w6k="], "é"),
            ("decode", &["nothing", ""], "!UnsupportedEncodingException: nothing"),
            ("random", &["99999999"], "!`99999999` bytes are too many"),
            ("random", &["0"], ""),
            ("launch", &[], "!`launch` is not available here"),
        ] {
            assert_eq!(text(call(what, arguments)), expected, "{what} {arguments:?}");
        }
        let uuid = text(call("uuid", &[]));
        assert!(uuid.len() == 36 && uuid.as_bytes()[14] == b'4', "{uuid}");
        assert!(call("hmac", &["HmacSHA256", "aw==", "bQ=="]).is_ok_and(|own| own.len() == 44));
    }
}
