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

/// `format` and `parse` of a date (pattern, milliseconds or text, time zone), `zone` (name), `digest` (algorithm, bytes), `hmac` (algorithm,
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
            let time: f64 = argument(1).parse().map_err(|_| format!("`{}` is not a time", argument(1)))?;
            DatePattern::simple(argument(0))?.format(&Moment::of_named(time as i64, argument(2))?)
        }
        "zone" => ::expression::zone_name(argument(0))
            .ok_or_else(|| format!("DateTimeException: Unknown time-zone ID: {}", argument(0))),
        "parse" => {
            let moment = DatePattern::simple(argument(0))?.parse(argument(1));
            let moment =
                moment.map_err(|_| format!("ParseException: Unparseable date: \"{}\"", argument(1)))?;
            Ok(moment.milliseconds(argument(2))?.to_string())
        }
        "digest" => Ok(STANDARD.encode(digested(argument(0), &bytes(1)?)?)),
        "hmac" => Ok(STANDARD.encode(library::hmac(&bytes(2)?, &bytes(1)?, argument(0))?)),
        "uuid" => {
            let mut bytes = random(16)?;
            bytes[6] = bytes[6] & 0x0f | 0x40;
            bytes[8] = bytes[8] & 0x3f | 0x80;
            let hex = crate::text::hex(&bytes);
            Ok(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
        }
        "random" => {
            let size = argument(0).parse::<usize>().ok().filter(|size| *size <= MOST_RANDOM);
            let size = size.ok_or_else(|| format!("`{}` bytes are too many", argument(0)))?;
            Ok(STANDARD.encode(random(size)?))
        }
        "encode" => Ok(STANDARD.encode(Charset::of(argument(0))?.encode(argument(1)))),
        "decode" => Ok(Charset::of(argument(0))?.decode(&bytes(1)?)),
        other => Err(format!("`{other}` is not available here")),
    }
}

fn digested(algorithm: &str, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let algorithm_of = match algorithm.to_ascii_uppercase().as_str() {
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
    Ok(digest::digest(algorithm_of, bytes).as_ref().to_vec())
}

fn random(size: usize) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; size];
    rand::fill(&mut bytes).map_err(|_| "there are no random numbers".to_owned())?;
    Ok(bytes)
}

/// A character set of Java. The labels of the web take ISO-8859-1 and US-ASCII for windows-1252, and write no UTF-16.
enum Charset {
    Ascii,
    Latin1,
    /// UTF-16 whose order its mark says: written with one and the more significant byte first, which is also what no mark means.
    Utf16,
    Utf16Be,
    Utf16Le,
    Of(&'static Encoding),
}

impl Charset {
    /// By a name or alias of Java, in any case.
    fn of(name: &str) -> Result<Charset, String> {
        match name.to_ascii_uppercase().as_str() {
            "US-ASCII" | "ASCII" | "US" | "ISO646-US" | "ASCII7" | "ISO-IR-6" | "ANSI_X3.4-1968"
            | "CP367" | "IBM367" | "646" => Ok(Charset::Ascii),
            "ISO-8859-1" | "ISO8859-1" | "ISO8859_1" | "ISO_8859_1" | "ISO_8859-1" | "8859_1" | "LATIN1"
            | "L1" | "ISO-IR-100" | "CP819" | "IBM819" | "IBM-819" | "819" => Ok(Charset::Latin1),
            "UTF-16" | "UTF_16" | "UTF16" | "UNICODE" | "UNICODEBIG" => Ok(Charset::Utf16),
            "UTF-16BE" | "UTF_16BE" | "X-UTF-16BE" | "UNICODEBIGUNMARKED" | "ISO-10646-UCS-2" => {
                Ok(Charset::Utf16Be)
            }
            "UTF-16LE" | "UTF_16LE" | "X-UTF-16LE" | "UNICODELITTLEUNMARKED" => Ok(Charset::Utf16Le),
            _ => match Encoding::for_label(name.as_bytes()) {
                // One that is only read would be written in another one.
                Some(encoding) if encoding.output_encoding() == encoding => Ok(Charset::Of(encoding)),
                _ => Err(format!("UnsupportedEncodingException: {name}")),
            },
        }
    }

    /// What it does not have becomes `?`.
    fn encode(&self, text: &str) -> Vec<u8> {
        let up_to =
            |last: u32| text.chars().map(|c| if u32::from(c) <= last { c as u8 } else { b'?' }).collect();
        let units = text.encode_utf16();
        match self {
            Charset::Ascii => up_to(0x7F),
            Charset::Latin1 => up_to(0xFF),
            Charset::Utf16 => {
                let mark = (!text.is_empty()).then_some(0xFEFF_u16);
                mark.into_iter().chain(units).flat_map(u16::to_be_bytes).collect()
            }
            Charset::Utf16Be => units.flat_map(u16::to_be_bytes).collect(),
            Charset::Utf16Le => units.flat_map(u16::to_le_bytes).collect(),
            Charset::Of(encoding) => encoded(encoding, text),
        }
    }

    /// What is not text becomes U+FFFD.
    fn decode(&self, bytes: &[u8]) -> String {
        let of =
            |encoding: &'static Encoding, bytes| encoding.decode_without_bom_handling(bytes).0.into_owned();
        match self {
            Charset::Ascii => {
                bytes.iter().map(|&byte| if byte.is_ascii() { byte.into() } else { '\u{FFFD}' }).collect()
            }
            Charset::Latin1 => bytes.iter().copied().map(char::from).collect(),
            Charset::Utf16 => match bytes {
                [0xFF, 0xFE, rest @ ..] => of(encoding_rs::UTF_16LE, rest),
                [0xFE, 0xFF, rest @ ..] => of(encoding_rs::UTF_16BE, rest),
                _ => of(encoding_rs::UTF_16BE, bytes),
            },
            Charset::Utf16Be => of(encoding_rs::UTF_16BE, bytes),
            Charset::Utf16Le => of(encoding_rs::UTF_16LE, bytes),
            Charset::Of(encoding) => of(encoding, bytes),
        }
    }
}

/// The encodings of the web write what they do not have as references of HTML; here it becomes `?`.
fn encoded(encoding: &'static Encoding, text: &str) -> Vec<u8> {
    let (bytes, _, has_unmappable) = encoding.encode(text);
    if !has_unmappable {
        return bytes.into_owned();
    }
    let has = |c: char| !encoding.encode(c.encode_utf8(&mut [0; 4])).2;
    let text: String = text.chars().map(|c| if has(c) { c } else { '?' }).collect();
    encoding.encode(&text).0.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls() {
        let call = |what: &str, arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
            call(what, &arguments)
        };
        let text = |result: Result<String, String>| result.unwrap_or_else(|why| format!("!{why}"));
        for (what, arguments, expected) in [
            ("format", &["yyyy-MM-dd'T'HH:mm:ss.SSSZ", "0", "UTC"][..], "1970-01-01T00:00:00.000+0000"),
            ("format", &["HH:mm", "0", "GMT+5:30"], "05:30"),
            ("format", &["HH:mm", "1.7e12", "Asia/Tokyo"], "07:13"),
            ("format", &["HH:mm", "0", "Nowhere/Atall"], "00:00"),
            ("format", &["yyyy", "never", "UTC"], "!`never` is not a time"),
            ("parse", &["yyyy-MM-dd HH:mm", "1970-01-02 00:00", "UTC"], "86400000"),
            ("parse", &["yyyy-MM-dd", "1970-01-02", "GMT-1"], "90000000"),
            ("parse", &["yyyy", "x", ""], "!ParseException: Unparseable date: \"x\""),
            ("digest", &["MD5", "YWJj"], "kAFQmDzST7DWlj99KOF/cg=="),
            ("digest", &["SHA-256", "YWJj"], "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="),
            ("digest", &["SHA-3000", ""], "!NoSuchAlgorithmException: SHA-3000 MessageDigest not available"),
            ("encode", &["ISO-8859-1", "é"], "6Q=="),
            ("encode", &["ISO-8859-1", "ä€😀"], "5D8/"),
            ("encode", &["latin1", "\u{80}"], "gA=="),
            ("encode", &["us-ascii", "aä"], "YT8="),
            ("encode", &["UTF-16", "ä"], "/v8A5A=="),
            ("encode", &["UTF-16", ""], ""),
            ("encode", &["UTF-16LE", "ä"], "5AA="),
            ("encode", &["windows-1252", "€ю&#1;"], "gD8mIzE7"),
            ("encode", &["replacement", "a"], "!UnsupportedEncodingException: replacement"),
            ("decode", &["UTF-8", "w6k="], "é"),
            ("decode", &["ISO-8859-1", "gOQ="], "\u{80}ä"),
            ("decode", &["US-ASCII", "YeQ="], "a\u{FFFD}"),
            ("decode", &["UTF-16", "//7kAA=="], "ä"),
            ("decode", &["UTF-16", "AOQ="], "ä"),
            ("decode", &["UTF-16BE", "AOQA"], "ä\u{FFFD}"),
            ("decode", &["nothing", ""], "!UnsupportedEncodingException: nothing"),
            ("random", &["99999999"], "!`99999999` bytes are too many"),
            ("random", &["0"], ""),
            ("launch", &[], "!`launch` is not available here"),
        ] {
            assert_eq!(text(call(what, arguments)), expected, "{what} {arguments:?}");
        }
        let uuid = text(call("uuid", &[]));
        assert!(uuid.len() == 36 && uuid.as_bytes()[14] == b'4', "{uuid}");
        assert!(call("hmac", &["HmacSHA256", "aw==", "bQ=="]).is_ok_and(|code| code.len() == 44));
    }
}
