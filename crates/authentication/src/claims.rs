//! What the claims of a token and the response of an introspection have in common (RFC 7519, RFC 7662, RFC 8705).

use crate::{Caller, sha256};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The accepted issuers and audiences of a token, and how far clocks may differ.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The accepted issuers (`iss`); empty: the claim is not checked.
    pub issuers: Vec<String>,
    /// The accepted audiences (`aud`), one of which must be named; empty: the claim is not checked.
    pub audiences: Vec<String>,
    /// How far the clocks of the issuer and of this machine may differ, in seconds.
    pub leeway: u64,
}

/// Reads an object in which no name comes twice.
pub(crate) fn object(json: &[u8]) -> Option<Map<String, Value>> {
    let object: Map<String, Value> = serde_json::from_slice(json).ok()?;
    (members(json) == object.len()).then_some(object)
}

/// How many members an object has, those whose name comes again included. `json` is well-formed.
fn members(json: &[u8]) -> usize {
    let (mut depth, mut count) = (0_usize, 0);
    let (mut in_text, mut is_escaped) = (false, false);
    for &byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b':' if depth == 1 => count += 1,
            _ => {}
        }
    }
    count
}

/// Beyond this (2^53) a number is no time: readers of JSON disagree on its value.
const LAST: u64 = 1 << 53;

/// A claim in seconds since 1970, without fractions.
fn seconds(claims: &Map<String, Value>, name: &str) -> Result<Option<u64>, String> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => {
            let whole = number.as_u64().or_else(|| {
                number.as_f64().filter(|seconds| (0.0..9e15).contains(seconds)).map(|seconds| seconds as u64)
            });
            let whole = whole.filter(|&seconds| seconds <= LAST);
            whole.map(Some).ok_or_else(|| format!("its claim {name} is not a time"))
        }
        Some(_) => Err(format!("its claim {name} is not a time")),
    }
}

/// A text, or a list of texts; any other value has none.
fn texts(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// When it expires, where it says so. Checks the times.
pub(crate) fn lifetime(claims: &Map<String, Value>, rules: &Rules, now: u64) -> Result<Option<u64>, String> {
    let ends = seconds(claims, "exp")?;
    if ends.is_some_and(|ends| now >= ends.saturating_add(rules.leeway)) {
        return Err("it has expired".to_owned());
    }
    for (name, why) in [("nbf", "it is not valid yet"), ("iat", "it was issued in the future")] {
        let begins = seconds(claims, name)?;
        if begins.is_some_and(|begins| begins > now.saturating_add(rules.leeway)) {
            return Err(why.to_owned());
        }
        // Whatever the clocks say, such a token was never valid.
        if begins > ends && ends.is_some() {
            return Err("it ends before it begins".to_owned());
        }
    }
    Ok(ends)
}

/// Checks issuer and audience. `required`: a claim that is absent is an error.
pub(crate) fn meant(claims: &Map<String, Value>, rules: &Rules, required: bool) -> Result<(), String> {
    let issuer = claims.get("iss");
    let is_absent = |value: Option<&Value>| !required && matches!(value, None | Some(Value::Null));
    if !rules.issuers.is_empty()
        && !is_absent(issuer)
        && !issuer
            .and_then(Value::as_str)
            .is_some_and(|issuer| rules.issuers.iter().any(|accepted| accepted == issuer))
    {
        return Err("it is of another issuer".to_owned());
    }
    let audience = claims.get("aud");
    if !rules.audiences.is_empty()
        && !is_absent(audience)
        && !texts(audience).iter().any(|audience| rules.audiences.iter().any(|accepted| accepted == audience))
    {
        return Err("it is for another audience".to_owned());
    }
    Ok(())
}

/// A token that is bound to a key is valid only from the owner of that key: a certificate is compared (RFC 8705), other
/// bindings cannot be checked here.
pub(crate) fn bound(claims: &Map<String, Value>, certificate: Option<&[u8]>) -> Result<(), String> {
    let Some(binding) = claims.get("cnf").filter(|binding| !binding.is_null()) else { return Ok(()) };
    let thumbprint = binding.as_object().filter(|members| members.len() == 1);
    let Some(thumbprint) = thumbprint.and_then(|members| members.get("x5t#S256")).and_then(Value::as_str)
    else {
        return Err("it is bound to a key in a way that is not checked here".to_owned());
    };
    let shown = certificate.map(|der| URL_SAFE_NO_PAD.encode(sha256(der)));
    match shown {
        Some(shown) if shown == thumbprint.trim_end_matches('=') => Ok(()),
        Some(_) => Err("it is bound to another certificate".to_owned()),
        None => Err("it is bound to a certificate, and the client showed none".to_owned()),
    }
}

/// The subject of the claims.
pub(crate) fn caller(way: &'static str, claims: Map<String, Value>) -> Caller {
    // Some issuers write their users as numbers.
    let one = |name: &&str| match claims.get(*name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if number.is_u64() => Some(number.to_string()),
        _ => None,
    };
    let text = |names: &[&str]| names.iter().find_map(one).unwrap_or_default();
    let mut scopes = Vec::new();
    for name in ["scope", "scp", "scopes"] {
        for list in texts(claims.get(name)) {
            scopes.extend(list.split_ascii_whitespace().map(str::to_owned));
        }
    }
    Caller {
        way,
        subject: text(&["sub", "username"]),
        client: text(&["client_id", "azp"]),
        issuer: text(&["iss"]),
        scopes,
        claims: Some(Arc::new(Value::Object(claims))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_once() {
        for (json, members) in [
            (r#"{}"#, Some(0)),
            (r#"{"a": 1, "b": {"a": 1, "c": [{"d": 2}, ":"]}, "c:\"{": ":,\\"}"#, Some(3)),
            (r#"{"a": 1, "a": 1}"#, None),
            (r#"{"a": 1, "\u0061": 2}"#, None),
            (r#"[{"a": 1}]"#, None),
            (r#"{"a": 1"#, None),
        ] {
            assert_eq!(object(json.as_bytes()).map(|object| object.len()), members, "{json}");
        }
    }
}
