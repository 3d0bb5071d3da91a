//! Policies for tests of this crate and of the binary.
#![allow(dead_code, clippy::unwrap_used, missing_docs)]

/// The text of one of the scenarios in `examples/security`.
pub fn scenario(number: u32) -> String {
    let path = format!("{}/../../examples/security/scenario{number:02}.xml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

/// A policy of parts: binding, order, and what is beside it.
pub fn policy(binding: &str, suite: &str, more: &str, parts: &str) -> String {
    let sp = "http://docs.oasis-open.org/ws-sx/ws-securitypolicy/200702";
    let token = |name: &str, include: &str, assertions: &str| {
        format!(
            "<sp:{name}><wsp:Policy><sp:X509Token sp:IncludeToken='{sp}/IncludeToken/{include}'><wsp:Policy>{assertions}<sp:WssX509V3Token10/></wsp:Policy></sp:X509Token></wsp:Policy></sp:{name}>"
        )
    };
    let (name, tokens) = match binding {
        "asymmetric" => (
            "AsymmetricBinding",
            token("InitiatorToken", "AlwaysToRecipient", "")
                + &token("RecipientToken", "Never", "<sp:RequireIssuerSerialReference/>"),
        ),
        "references" => (
            "AsymmetricBinding",
            token("InitiatorToken", "Never", "<sp:RequireKeyIdentifierReference/>")
                + &token("RecipientToken", "Never", "<sp:RequireThumbprintReference/>"),
        ),
        "embedded" => (
            "AsymmetricBinding",
            token("InitiatorToken", "Never", "<sp:RequireEmbeddedTokenReference/>")
                + &token("RecipientToken", "Always", "<sp:RequireThumbprintReference/>"),
        ),
        "symmetric" => {
            ("SymmetricBinding", token("ProtectionToken", "Never", "<sp:RequireThumbprintReference/>"))
        }
        "derived" => (
            "SymmetricBinding",
            token("ProtectionToken", "Never", "<sp:RequireDerivedKeys/><sp:RequireThumbprintReference/>"),
        ),
        _ => panic!(),
    };
    format!(
        "<wsp:Policy xmlns:wsp='http://www.w3.org/ns/ws-policy' xmlns:sp='{sp}'><sp:{name}><wsp:Policy>{tokens}\
         <sp:AlgorithmSuite><wsp:Policy><sp:{suite}/></wsp:Policy></sp:AlgorithmSuite><sp:IncludeTimestamp/>{more}\
         </wsp:Policy></sp:{name}><sp:Wss11><wsp:Policy><sp:RequireSignatureConfirmation/></wsp:Policy></sp:Wss11>{parts}</wsp:Policy>"
    )
}

/// An assertion about an endorsing certificate.
pub fn endorsing(assertion: &str, include: &str) -> String {
    let token = "<sp:RequireIssuerSerialReference/><sp:WssX509V3Token10/>";
    format!(
        "<sp:{assertion}><wsp:Policy><sp:X509Token sp:IncludeToken='http://docs.oasis-open.org/ws-sx/ws-securitypolicy/200702/IncludeToken/{include}'>\
         <wsp:Policy>{token}</wsp:Policy></sp:X509Token></wsp:Policy></sp:{assertion}>"
    )
}

/// What is tried with another implementation: a name, the policy, and what that implementation is told to do.
pub fn profiles() -> Vec<(&'static str, String, &'static str)> {
    let encrypted_first = "<sp:EncryptBeforeSigning/>";
    let body = "<sp:SignedParts><sp:Body/></sp:SignedParts><sp:EncryptedParts><sp:Body/></sp:EncryptedParts>";
    let endorsed = format!("{body}{}", endorsing("EndorsingSupportingTokens", "AlwaysToRecipient"));
    vec![
        ("endorsed", policy("asymmetric", "Basic256", "", &endorsed), "sign,encrypt,endorsed"),
        (
            "endorsed-symmetric",
            policy("symmetric", "Basic256", "", &endorsed),
            "sign,encrypt,symmetric,endorsed",
        ),
        (
            "endorsed-derived",
            policy("derived", "Basic256", "", &endorsed),
            "sign,encrypt,symmetric,derived,endorsed",
        ),
        ("2", scenario(2), "sign"),
        ("3", scenario(3), "sign,symmetric,derived"),
        ("4", scenario(4), "encrypt,symmetric,derived"),
        ("5", scenario(5), "sign,encrypt"),
        ("6", scenario(6), "sign,encrypt,symmetric,derived"),
        ("7", scenario(7), "encrypt,symmetric,derived,user"),
        ("8", scenario(8), "sign,encrypt,symmetric,derived,user"),
        ("issuer", policy("asymmetric", "Basic256Sha256RsaSha256", "", body), "sign,encrypt,issuer,sha256"),
        ("ski", policy("references", "Basic256Rsa15", "", body), "sign,encrypt,ski,references,rsa15"),
        ("first", policy("asymmetric", "Basic256", encrypted_first, body), "sign,encrypt,first"),
        ("symmetric", policy("symmetric", "Basic256", "", body), "sign,encrypt,symmetric"),
        ("gcm", policy("asymmetric", "Basic256GCM", "", body), "sign,encrypt,gcm,sha256"),
        ("sealed", policy("asymmetric", "Basic256", "<sp:EncryptSignature/>", body), "sign,encrypt,sealed"),
    ]
}
