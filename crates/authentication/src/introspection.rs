//! Responses of introspection (RFC 7662): what the server that issued a token says about it.

use crate::Caller;
use crate::claims::{self, Rules};
use serde_json::Value;

/// What a server says about a valid token.
#[derive(Clone, Debug)]
pub struct Good {
    /// The caller that it lets in.
    pub caller: Caller,
    /// When it ends, in seconds since 1970; `None`: the server does not say.
    pub ends: Option<u64>,
}

/// Reads an answer. `now` is in seconds since 1970; `certificate` the one that the client showed, for tokens that are bound to one.
///
/// # Errors
/// The token is not valid; or (`true`) the response is malformed.
pub fn read(
    response: &[u8],
    rules: &Rules,
    now: u64,
    certificate: Option<&[u8]>,
) -> Result<Good, (String, bool)> {
    // Of `"active"` twice, readers take different ones.
    let Some(claims) = claims::object(response) else {
        let why = "the answer of the introspection is not a JSON object, or a name in it comes twice";
        return Err((why.to_owned(), true));
    };
    match claims.get("active") {
        Some(Value::Bool(true)) => {}
        Some(Value::Bool(false)) => return Err(("it is not active".to_owned(), false)),
        _ => {
            return Err((
                "the answer of the introspection does not say whether it is active".to_owned(),
                true,
            ));
        }
    }
    let invalid = |why: String| (why, false);
    let ends = claims::lifetime(&claims, rules, now).map_err(invalid)?;
    // Issuer and audience may be absent: the server that answers knows them.
    claims::meant(&claims, rules, false).map_err(invalid)?;
    claims::bound(&claims, certificate).map_err(invalid)?;
    Ok(Good { caller: claims::caller("introspection", claims), ends })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_active_tokens_are_good() {
        let rules = Rules { issuers: vec!["me".into()], audiences: vec!["shop".into()], leeway: 0 };
        for (response, wanted) in [
            (r#"{"active": true, "username": "alice", "scope": "a b", "client_id": "app"}"#, Ok("alice")),
            (r#"{"active": true, "sub": "bob", "iss": "me", "aud": "shop", "exp": 101}"#, Ok("bob")),
            (r#"{"active": true, "sub": 17}"#, Ok("17")),
            (r#"{"active": true, "sub": {"a": 1}}"#, Ok("")),
            (r#"{"active": false}"#, Err(("not active", false))),
            (r#"{"active": true, "exp": 100}"#, Err(("expired", false))),
            (r#"{"active": true, "aud": "bank"}"#, Err(("audience", false))),
            (r#"{"active": true, "iss": "you"}"#, Err(("issuer", false))),
            (r#"{"active": true, "cnf": {"x5t#S256": "x"}}"#, Err(("certificate", false))),
            (r#"{"active": "true"}"#, Err(("does not say", true))),
            ("{}", Err(("does not say", true))),
            ("[]", Err(("not a JSON", true))),
            (r#"{"active": false, "active": true}"#, Err(("comes twice", true))),
            (r#"{"active": true, "sub": "bob", "sub": "alice"}"#, Err(("comes twice", true))),
            ("<html/>", Err(("not a JSON", true))),
        ] {
            match (read(response.as_bytes(), &rules, 100, None), wanted) {
                (Ok(good), Ok(wanted)) => assert_eq!(good.caller.subject, wanted, "{response}"),
                (Err((why, faulty)), Err((wanted, of_server))) => {
                    assert!(why.contains(wanted) && faulty == of_server, "{response}: {why}");
                }
                (result, _) => panic!("{response}: {result:?}"),
            }
        }
    }
}
