//! Base64 and percent-encoding.

use super::{Arguments, Function, Result, text};
use crate::evaluate::Failure;
use crate::value::Value;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use message::charset::{Charset, Unmappable};
use message::coding::BASE64;
use std::borrow::Cow;
use std::fmt::Write;

pub(super) const FUNCTIONS: &[Function] = &[
    Function { name: "base64encode", arity: 1..=2, run: base64_encode },
    Function { name: "base64decode", arity: 1..=1, run: base64_decode },
    Function { name: "urlEncode", arity: 1..=2, run: url_encode },
    Function { name: "urlDecode", arity: 1..=1, run: url_decode },
];

fn owned<'v>(text: String) -> Result<'v> {
    Ok(Value::Text(Cow::Owned(text)))
}

/// The character set that the second argument names; UTF-8 without.
fn charset(arguments: &[Value<'_>]) -> std::result::Result<Charset, Failure> {
    if arguments.len() < 2 {
        return Ok(Charset::UTF8);
    }
    let label = text(arguments, 1)?;
    Charset::for_label(&label).ok_or_else(|| Failure(format!("there is no character set {label}")))
}

fn base64_encode<'v>(arguments: Arguments<'_, 'v>) -> Result<'v> {
    let plain = text(arguments, 0)?;
    owned(STANDARD.encode(charset(arguments)?.encode(&plain, Unmappable::Question)))
}

fn base64_decode<'v>(arguments: Arguments<'_, 'v>) -> Result<'v> {
    let compact: String = text(arguments, 0)?.split_whitespace().collect();
    let bytes = BASE64.decode(compact).map_err(|why| Failure(format!("this is not base64: {why}")))?;
    owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// All but letters, digits and `-_.`. As in WSO2, forms of other character sets than UTF-8 are those of HTML: a blank is a
/// plus sign, and an asterisk itself.
fn url_encode<'v>(arguments: Arguments<'_, 'v>) -> Result<'v> {
    let mut out = String::new();
    let charset = charset(arguments)?;
    let html = !charset.is_utf8();
    for byte in charset.encode(&text(arguments, 0)?, Unmappable::Question) {
        if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) || (html && byte == b'*') {
            out.push(char::from(byte));
        } else if html && byte == b' ' {
            out.push('+');
        } else {
            let _ = write!(out, "%{byte:02X}"); // writing to a String cannot fail
        }
    }
    owned(out)
}

fn url_decode<'v>(arguments: Arguments<'_, 'v>) -> Result<'v> {
    let encoded = text(arguments, 0)?;
    let mut out = Vec::with_capacity(encoded.len());
    let mut bytes = encoded.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let digits =
                    [bytes.next(), bytes.next()].map(|digit| char::from(digit.unwrap_or(0)).to_digit(16));
                let [Some(high), Some(low)] = digits else {
                    return Err(Failure("a % is not followed by two hexadecimal digits".to_owned()));
                };
                out.push((high * 16 + low) as u8);
            }
            byte => out.push(byte),
        }
    }
    owned(String::from_utf8_lossy(&out).into_owned())
}
