//! Base64 as XML has it: blanks and line ends may be anywhere.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// What a text stands for.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    decode_to(text, &mut out)?;
    Some(out)
}

/// Appends what a text stands for.
pub(crate) fn decode_to(text: &str, out: &mut Vec<u8>) -> Option<()> {
    // Nothing that is not a blank is below one.
    if text.bytes().fold(false, |any, byte| any | (byte <= b' ')) {
        let mut compact = Vec::with_capacity(text.len());
        for run in text.as_bytes().split(u8::is_ascii_whitespace) {
            compact.extend_from_slice(run);
        }
        return append(&compact, out);
    }
    append(text.as_bytes(), out)
}

fn append(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    out.resize(start + base64::decoded_len_estimate(text.len()), 0);
    let length = STANDARD.decode_slice(text, &mut out[start..]).ok()?;
    out.truncate(start + length);
    Some(())
}

/// The text for some bytes.
pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// Appends the text for some bytes.
pub(crate) fn encode_to(bytes: &[u8], out: &mut String) {
    STANDARD.encode_string(bytes, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_do_not_count_and_nothing_else_is_let_pass() {
        for (text, bytes) in [
            ("", Some("")),
            ("YWJj", Some("abc")),
            (" YW\r\nJj\t", Some("abc")),
            ("YWI=", Some("ab")),
            ("Y W I =", Some("ab")),
        ] {
            assert_eq!(decode(text).as_deref(), bytes.map(str::as_bytes), "{text}");
        }
        for text in ["YWI", "Y", "YW-_", "YWJj=", "=", "YWI=YWI=", "YW\u{b}Jj", "YWä="] {
            assert_eq!(decode(text), None, "{text}");
        }
        let mut out = b"before".to_vec();
        decode_to("YWJj", &mut out).unwrap();
        assert_eq!(out, b"beforeabc");
        let mut text = "x".to_owned();
        encode_to(b"abc", &mut text);
        assert_eq!(text, "xYWJj");
    }
}
