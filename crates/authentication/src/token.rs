//! JSON Web Tokens (RFC 7519) and the sets of keys that they are signed with (RFC 7517), by the rules of RFC 8725: the algorithm is
//! one that the settings allow and that fits the key, never the token's choice alone; keys are never taken from the token; what
//! `crit` names is not understood.

pub use crate::claims::Rules;
pub use jsonwebtoken::Algorithm;

use crate::{Caller, claims};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, PublicKeyUse};
use jsonwebtoken::{AlgorithmFamily, DecodingKey, crypto};
use serde_json::{Map, Value};
use std::str::FromStr;

/// Longest token, in bytes.
pub const LONGEST: usize = 16 * 1024;
/// Most keys of a set.
const MOST_KEYS: usize = 100;
/// Most keys that are tried for a token that names none.
const MOST_TRIED: usize = 8;

/// The algorithms with a public key, which are allowed where the settings name none.
pub const ASYMMETRIC: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// Reads names of algorithms.
///
/// # Errors
/// A name is unknown.
pub fn algorithms(names: &[String]) -> Result<Vec<Algorithm>, String> {
    let read = |name: &String| {
        Algorithm::from_str(name)
            .map_err(|_| format!("`{name}` is not an algorithm for tokens: RS256, ES256, …"))
    };
    names.iter().map(read).collect()
}

/// One key.
struct Key {
    id: Option<String>,
    algorithm: Option<Algorithm>,
    key: DecodingKey,
}

/// Keys that tokens may be signed with.
pub struct Keys(Vec<Key>);

impl std::fmt::Debug for Keys {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} keys", self.0.len())
    }
}

impl Keys {
    /// Reads a set of public keys (JWKS). Keys for other purposes, of kinds that are not understood, and symmetric ones, which nobody
    /// should publish, are left out (RFC 7517, 5), so that there may be none.
    ///
    /// # Errors
    /// It is not a set of keys, or has too many.
    pub fn read(json: &[u8]) -> Result<Keys, String> {
        let mut set: Value = serde_json::from_slice(json).map_err(|_| "it is not JSON".to_owned())?;
        let Some(Value::Array(list)) = set.get_mut("keys").map(Value::take) else {
            return Err("it is not a set of keys: it has no list `keys`".to_owned());
        };
        if list.len() > MOST_KEYS {
            return Err(format!("it has more than {MOST_KEYS} keys"));
        }
        Ok(Keys(list.into_iter().filter_map(key).collect()))
    }

    /// Whether no token can be verified: an issuer that publishes no keys has withdrawn them.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The secret that tokens are signed with (HS256, HS384, HS512).
    pub fn secret(secret: &[u8]) -> Keys {
        Keys(vec![Key { id: None, algorithm: None, key: DecodingKey::from_secret(secret) }])
    }
}

fn key(jwk: Value) -> Option<Key> {
    // A key may be restricted to a use in two ways.
    let operations = jwk.get("key_ops").and_then(Value::as_array);
    if operations.is_some_and(|list| !list.iter().any(|operation| operation == "verify")) {
        return None;
    }
    let algorithm = match jwk.get("alg").and_then(Value::as_str).map(Algorithm::from_str) {
        None => None,
        Some(Ok(algorithm)) => Some(algorithm),
        Some(Err(_)) => return None,
    };
    let jwk: Jwk = serde_json::from_value(jwk).ok()?;
    if jwk.common.public_key_use.as_ref().is_some_and(|usage| *usage != PublicKeyUse::Signature)
        || matches!(jwk.algorithm, AlgorithmParameters::OctetKey(_))
    {
        return None;
    }
    let key = DecodingKey::from_jwk(&jwk).ok()?;
    Some(Key { id: jwk.common.key_id, algorithm, key })
}

/// Why a token is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Its signature fits no known key: the issuer may have new ones.
    UnknownKey(String),
    /// It is not valid, whatever the keys.
    Invalid(String),
}

/// Whether a text has the form of a token: three parts between dots.
pub fn is_token(text: &str) -> bool {
    text.split('.').count() == 3
}

/// Checks a token. `now` is in seconds since 1970; `certificate` the one that the client showed, for tokens that are bound to one.
///
/// # Errors
/// It is not valid.
pub fn verify(
    token: &str,
    keys: &Keys,
    algorithms: &[Algorithm],
    rules: &Rules,
    now: u64,
    certificate: Option<&[u8]>,
) -> Result<Caller, Problem> {
    let invalid = |why: &str| Problem::Invalid(why.to_owned());
    if token.len() > LONGEST {
        return Err(invalid("it is too long"));
    }
    let (signed, signature) = token.rsplit_once('.').unwrap_or_default();
    let parts = signed.split_once('.').filter(|(_, claims)| !claims.contains('.'));
    let Some((Some(header), Some(claims))) = parts.map(|(header, claims)| (json_of(header), json_of(claims)))
    else {
        return Err(invalid("its header or its claims cannot be read"));
    };
    let text = |name: &str| match header.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(invalid("its header cannot be read")),
    };
    let algorithm = text("alg")?.and_then(|name| Algorithm::from_str(name).ok());
    let Some(algorithm) = algorithm.filter(|algorithm| algorithms.contains(algorithm)) else {
        return Err(invalid("its algorithm is not allowed"));
    };
    // Whatever it demands, `null` included (RFC 7515, 4.1.11).
    if header.contains_key("crit") {
        return Err(invalid("its header demands what is not understood here (crit)"));
    }
    if let Some(kind) = text("typ")? {
        let kind = kind.to_ascii_lowercase();
        let kind = kind.strip_prefix("application/").unwrap_or(&kind);
        if !matches!(kind, "jwt" | "at+jwt") {
            return Err(invalid("it is of another type"));
        }
    }
    let (family, named) = (algorithm.family(), text("kid")?);
    let fits = |key: &&Key| {
        key.key.family() == family
            && key.algorithm.is_none_or(|of_key| of_key == algorithm)
            && named.is_none_or(|id| key.id.as_ref().is_none_or(|key_id| key_id == id))
    };
    let mut fitting = keys.0.iter().filter(fits).take(MOST_TRIED).peekable();
    if fitting.peek().is_none() {
        return Err(Problem::UnknownKey("it is signed with a key that is not there".to_owned()));
    }
    let is_verified =
        fitting.any(|key| crypto::verify(signature, signed.as_bytes(), &key.key, algorithm).unwrap_or(false));
    if !is_verified {
        let why = "its signature is wrong".to_owned();
        return Err(if named.is_some() || family == AlgorithmFamily::Hmac {
            Problem::Invalid(why)
        } else {
            Problem::UnknownKey(why)
        });
    }
    let ends = claims::lifetime(&claims, rules, now).map_err(Problem::Invalid)?;
    if ends.is_none() {
        return Err(invalid("it does not say when it ends (exp)"));
    }
    claims::meant(&claims, rules, true).map_err(Problem::Invalid)?;
    claims::bound(&claims, certificate).map_err(Problem::Invalid)?;
    Ok(claims::caller("jwt", claims))
}

/// The header or the claims: of a name that comes twice, readers take different values, so such a token is refused (RFC 7515, 4; RFC 7519, 4).
fn json_of(part: &str) -> Option<Map<String, Value>> {
    claims::object(&URL_SAFE_NO_PAD.decode(part).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
    use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
    use jsonwebtoken::{EncodingKey, Header};
    use serde_json::json;

    const NOW: u64 = 1_700_000_000;

    /// A key of P-256: what signs, and what is published.
    fn pair(id: &str) -> (EncodingKey, Value) {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let der = pair.to_pkcs8v1().unwrap();
        let point = pair.public_key().as_ref();
        let public = json!({
            "kty": "EC", "crv": "P-256", "kid": id, "use": "sig",
            "x": BASE64.encode(&point[1..33]), "y": BASE64.encode(&point[33..65]),
        });
        (EncodingKey::from_ec_der(der.as_ref()), public)
    }

    fn rules() -> Rules {
        Rules { issuers: vec!["me".into()], audiences: vec!["shop".into()], leeway: 60 }
    }

    fn good() -> Value {
        json!({"iss": "me", "aud": ["other", "shop"], "sub": "alice", "exp": NOW + 100, "scope": "read write", "azp": "app"})
    }

    fn with(changes: Value) -> Value {
        let mut claims = good();
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims
    }

    #[test]
    fn claims_are_held_against_the_rules() {
        let (private, public) = pair("1");
        let keys = Keys::read(json!({"keys": [public]}).to_string().as_bytes()).unwrap();
        let header = Header { kid: Some("1".into()), ..Header::new(Algorithm::ES256) };
        let judge = |claims: &Value, certificate: Option<&[u8]>| {
            let token = jsonwebtoken::encode(&header, claims, &private).unwrap();
            verify(&token, &keys, &ASYMMETRIC, &rules(), NOW, certificate)
        };
        let caller = judge(&good(), None).unwrap();
        assert_eq!((caller.subject.as_str(), caller.client.as_str(), caller.way), ("alice", "app", "jwt"));
        assert_eq!(caller.scopes, ["read", "write"]);
        let print = BASE64.encode(crate::sha256(b"certificate"));
        for (claims, certificate, wanted) in [
            (with(json!({"aud": "shop"})), None, ""),
            (with(json!({"exp": NOW - 59})), None, ""),
            (with(json!({"exp": NOW as f64 + 0.5})), None, ""),
            (with(json!({"nbf": NOW + 59, "iat": NOW + 59})), None, ""),
            (with(json!({"cnf": {"x5t#S256": print}})), Some(&b"certificate"[..]), ""),
            (with(json!({"exp": NOW - 60})), None, "expired"),
            (with(json!({"exp": null})), None, "(exp)"),
            (with(json!({"exp": "tomorrow"})), None, "not a time"),
            (with(json!({"exp": -1})), None, "not a time"),
            (with(json!({"exp": 1_u64 << 53})), None, ""),
            (with(json!({"exp": (1_u64 << 53) + 1})), None, "not a time"),
            (with(json!({"exp": u64::MAX})), None, "not a time"),
            (with(json!({"exp": 1e16})), None, "not a time"),
            (with(json!({"nbf": u64::MAX})), None, "not a time"),
            (with(json!({"nbf": NOW + 30, "exp": NOW - 30})), None, "before it begins"),
            (with(json!({"iat": NOW + 30, "exp": NOW + 29})), None, "before it begins"),
            (with(json!({"iat": NOW - 30, "nbf": NOW - 30, "exp": NOW - 30})), None, ""),
            (with(json!({"nbf": NOW + 61})), None, "not valid yet"),
            (with(json!({"iat": NOW + 61})), None, "in the future"),
            (with(json!({"iss": "you"})), None, "issuer"),
            (with(json!({"iss": ["me"]})), None, "issuer"),
            (with(json!({"iss": null})), None, "issuer"),
            (with(json!({"aud": "Shop"})), None, "audience"),
            (with(json!({"aud": []})), None, "audience"),
            (with(json!({"aud": null})), None, "audience"),
            (with(json!({"cnf": {"x5t#S256": print}})), Some(b"other"), "another certificate"),
            (with(json!({"cnf": {"x5t#S256": print}})), None, "showed none"),
            (with(json!({"cnf": {"jkt": "x"}})), None, "not checked here"),
        ] {
            match judge(&claims, certificate) {
                Ok(_) => assert!(wanted.is_empty(), "{claims}"),
                Err(Problem::Invalid(why)) => {
                    assert!(!wanted.is_empty() && why.contains(wanted), "{claims}: {why}");
                }
                Err(other) => panic!("{claims}: {other:?}"),
            }
        }
    }

    #[test]
    fn the_key_decides_and_not_the_token() {
        let ((private, public), (other, _)) = (pair("1"), pair("2"));
        let published = json!({"keys": [{"kty": "new"}, 7, public, {"kty": "oct", "k": "AAAA", "kid": "s"}]});
        let keys = Keys::read(published.to_string().as_bytes()).unwrap();
        assert_eq!(keys.0.len(), 1);
        let named = |id: Option<&str>| Header { kid: id.map(str::to_owned), ..Header::new(Algorithm::ES256) };
        let token = |header: &Header, key: &EncodingKey| jsonwebtoken::encode(header, &good(), key).unwrap();
        let judge = |token: &str| verify(token, &keys, &ASYMMETRIC, &rules(), NOW, None);
        assert!(judge(&token(&named(Some("1")), &private)).is_ok());
        assert!(judge(&token(&named(None), &private)).is_ok());
        // The issuer may have published the key since; not where the key that the token names is there.
        assert!(matches!(judge(&token(&named(Some("2")), &other)), Err(Problem::UnknownKey(_))));
        assert!(matches!(judge(&token(&named(None), &other)), Err(Problem::UnknownKey(_))));
        assert!(matches!(judge(&token(&named(Some("1")), &other)), Err(Problem::Invalid(_))));
        let refused = |token: &str, wanted: &str| match judge(token) {
            Err(Problem::Invalid(why)) => assert!(why.contains(wanted), "{token}: {why}"),
            other => panic!("{token}: {other:?}"),
        };
        // Signed with the public key as if it were a secret.
        let secret = EncodingKey::from_secret(published.to_string().as_bytes());
        refused(&token(&Header::new(Algorithm::HS256), &secret), "not allowed");
        let good_one = token(&named(Some("1")), &private);
        let parts: Vec<&str> = good_one.split('.').collect();
        let forged =
            |header: Value| format!("{}.{}.{}", BASE64.encode(header.to_string()), parts[1], parts[2]);
        refused(&forged(json!({"alg": "none"})), "not allowed");
        refused(&forged(json!({"alg": null})), "not allowed");
        refused(&forged(json!({"alg": ["ES256"]})), "header");
        refused(&forged(json!({"alg": "ES256", "kid": 1})), "header");
        refused(&forged(json!({"kid": "1"})), "not allowed");
        refused(&format!("{good_one}."), "cannot be read");
        refused(&format!("{good_one}="), "signature");
        refused(&format!("{}.{}", parts[0], parts[1]), "cannot be read");
        refused(&forged(json!({"alg": "ES256", "kid": "1"})), "signature");
        refused(&forged(json!({"alg": "ES256", "kid": "1", "typ": "logout+jwt"})), "type");
        refused(&forged(json!({"alg": "ES256", "kid": "1", "crit": ["b64"], "b64": false})), "crit");
        refused(&forged(json!({"alg": "ES256", "kid": "1", "crit": null})), "crit");
        refused(&forged(json!({"alg": "ES256", "kid": "1", "crit": []})), "crit");
        let twice = BASE64.encode(r#"{"alg": "ES256", "kid": "1", "x": 1, "x": 1}"#);
        refused(&format!("{twice}.{}.{}", parts[1], parts[2]), "cannot be read");
        refused(&format!("{}.{}.", parts[0], parts[1]), "signature");
        refused(
            &format!("{}.{}.{}", parts[0], BASE64.encode(with(json!({"sub": "root"})).to_string()), parts[2]),
            "signature",
        );
        refused("a.b.c", "header");
        refused("", "header");
        refused(&"a".repeat(LONGEST + 1), "too long");
        assert!(Keys::read(b"{}").is_err() && Keys::read(b"[").is_err());
        // An issuer that has withdrawn its keys, or has none of a kind that is understood.
        for none in [r#"{"keys": []}"#, r#"{"keys": [{"kty": "new"}]}"#] {
            let none = Keys::read(none.as_bytes()).unwrap();
            assert!(none.is_empty() && !keys.is_empty());
            assert!(matches!(
                verify(&good_one, &none, &ASYMMETRIC, &rules(), NOW, None),
                Err(Problem::UnknownKey(_))
            ));
        }
    }

    #[test]
    fn a_secret_is_used_only_where_it_is_set() {
        let key = EncodingKey::from_secret(b"a secret of 32 bytes, or of more");
        let token = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &good(), &key).unwrap();
        let keys = Keys::secret(b"a secret of 32 bytes, or of more");
        assert!(verify(&token, &keys, &[Algorithm::HS256], &rules(), NOW, None).is_ok());
        assert!(verify(&token, &keys, &ASYMMETRIC, &rules(), NOW, None).is_err());
        let other = Keys::secret(b"another secret");
        assert!(matches!(
            verify(&token, &other, &[Algorithm::HS256], &rules(), NOW, None),
            Err(Problem::Invalid(_))
        ));
        assert!(algorithms(&["RS256".into(), "none".into()]).unwrap_err().contains("`none`"));
    }
}
