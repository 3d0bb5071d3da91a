//! The outside suites `conformance/xmldsig` and `conformance/xmlenc`: signatures and cipher texts of others, read with the algorithms of this
//! crate, against the committed ledgers. What the crate refuses on purpose (transforms, references out of the message, DSA, shortened
//! HMACs, wrapped keys) is in the ledgers with that as its reason; a signature that is not valid must never verify.
#![allow(clippy::unwrap_used)] // helpers of tests

#[path = "../../xml/tests/ledger/mod.rs"]
mod ledger;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use busbar_security::Certificate;
use busbar_security::algorithm::{Cipher, Digest, PublicKey, Signing, Transport, is_mac};
use busbar_security::keys::PrivateKey;
use ledger::Suite;
use serde_json::Value;
use std::sync::Arc;
use xml::c14n::{Algorithm, Options, canonicalize};
use xml::{Document, Dtd, FileResolver, NodeId, ParseOptions};

const DSIG: &str = "http://www.w3.org/2000/09/xmldsig#";
const ENC: &str = "http://www.w3.org/2001/04/xmlenc#";

#[test]
fn signatures_of_others() {
    let Some(suite) = ledger::suite("xmldsig") else { return };
    let mut ledger = ledger::Ledger::open("xmldsig.txt");
    for case in suite.cases() {
        let verified = verify(&suite, &case);
        let outcome = match (case["compare"].as_str(), verified) {
            (Some("invalid"), Ok(())) => Err("it is not valid, and verifies".to_owned()),
            (Some("invalid"), Err(_)) => Ok(()),
            (_, verified) => verified,
        };
        ledger.note(case["id"].as_str().unwrap(), outcome);
    }
    ledger.close();
}

#[test]
fn cipher_texts_of_others() {
    let Some(suite) = ledger::suite("xmlenc") else { return };
    let mut ledger = ledger::Ledger::open("xmlenc.txt");
    for case in suite.cases() {
        let decrypted = decrypt(&suite, &case);
        let outcome = match (case["compare"].as_str(), decrypted) {
            (Some("must-fail"), Ok(_)) => Err("it is not whole, and is decrypted".to_owned()),
            (Some("must-fail"), Err(_)) => Ok(()),
            (_, decrypted) => decrypted.and_then(|found| {
                let wanted = suite.read(case["expected"].as_str().unwrap());
                // The vectors are whole documents; what was encrypted is a part of one.
                let holds = found == wanted || !found.is_empty() && contains(&wanted, &found);
                holds.then_some(()).ok_or_else(|| "another plain text".to_owned())
            }),
        };
        ledger.note(case["id"].as_str().unwrap(), outcome);
    }
    ledger.close();
}

fn contains(all: &[u8], part: &[u8]) -> bool {
    all.windows(part.len()).any(|window| window == part)
}

fn parse(suite: &Suite, case: &Value) -> Result<Document, String> {
    let file = case["files"]["input"].as_str().unwrap();
    let options = ParseOptions {
        dtd: Dtd::External(Arc::new(FileResolver::default())),
        base_uri: Some(suite.path(file).to_string_lossy().into_owned()),
        ..ParseOptions::default()
    };
    Document::parse(suite.read(file), &options).map_err(|error| format!("the document: {error}"))
}

fn find(document: &Document, from: NodeId, namespace: &str, local: &str) -> Option<NodeId> {
    document.descendants(from).find(|&node| document.is_element(node, namespace, local))
}

fn child(document: &Document, from: NodeId, namespace: &str, local: &str) -> Option<NodeId> {
    document.children(from).find(|&node| document.is_element(node, namespace, local))
}

fn octets(document: &Document, node: NodeId) -> Option<Vec<u8>> {
    let text: String = document.string_value(node).split_whitespace().collect();
    STANDARD.decode(text).ok()
}

fn method(document: &Document, node: Option<NodeId>) -> Result<&str, String> {
    node.and_then(|node| document.attribute(node, "", "Algorithm"))
        .ok_or_else(|| "a method is lacking".to_owned())
}

/// The canonical form of an algorithm; `None`: it is none.
fn canonical(uri: &str) -> Option<Options> {
    let (uri, comments) = match uri.strip_suffix("WithComments") {
        Some(uri) => (uri.trim_end_matches('#'), true),
        None => (uri.trim_end_matches('#'), false),
    };
    let algorithm = match uri {
        "http://www.w3.org/TR/2001/REC-xml-c14n-20010315" => Algorithm::Inclusive10,
        "http://www.w3.org/2006/12/xml-c14n11" => Algorithm::Inclusive11,
        "http://www.w3.org/2001/10/xml-exc-c14n" => Algorithm::Exclusive,
        _ => return None,
    };
    Some(Options { algorithm, comments, inclusive_prefixes: Vec::new() })
}

fn with_prefixes(document: &Document, method: NodeId, options: Options) -> Options {
    let list = find(document, method, "http://www.w3.org/2001/10/xml-exc-c14n#", "InclusiveNamespaces");
    let prefixes = list.and_then(|node| document.attribute(node, "", "PrefixList")).unwrap_or_default();
    Options { inclusive_prefixes: prefixes.split_whitespace().map(str::to_owned).collect(), ..options }
}

enum Key {
    Public(Box<PublicKey>),
    Secret(Vec<u8>),
}

/// The keys of a case: those of its files, else what its KeyInfo has.
fn keys(suite: &Suite, case: &Value, document: &Document, signature: NodeId) -> Vec<Key> {
    let mut keys = Vec::new();
    let certificate =
        |der: &[u8]| Certificate::read(der).ok().map(|certificate| Key::Public(Box::new(certificate.public)));
    for entry in case["keys"].as_array().into_iter().flatten() {
        for file in entry["files"].as_array().into_iter().flatten() {
            let bytes = suite.read(file.as_str().unwrap());
            match entry["type"].as_str().unwrap() {
                "hmac-key" => keys.push(Key::Secret(bytes)),
                kind if kind.contains("certificate") => keys.extend(certificate(&bytes)),
                _ => {}
            }
        }
    }
    for node in document.descendants(signature) {
        if document.is_element(node, DSIG, "X509Certificate") {
            keys.extend(octets(document, node).and_then(|der| certificate(&der)));
        } else if document.is_element(node, DSIG, "RSAKeyValue") {
            let part = |local: &str| octets(document, child(document, node, DSIG, local)?);
            if let (Some(modulus), Some(exponent)) = (part("Modulus"), part("Exponent")) {
                let key = sequence(&[integer(&modulus), integer(&exponent)].concat(), 0x30);
                keys.push(Key::Public(Box::new(PublicKey::new(&key))));
            }
        }
    }
    keys
}

/// DER: a value with its tag and length.
fn sequence(content: &[u8], tag: u8) -> Vec<u8> {
    let length = content.len();
    let head = match length {
        0..=127 => vec![tag, length as u8],
        128..=255 => vec![tag, 0x81, length as u8],
        _ => vec![tag, 0x82, (length >> 8) as u8, length as u8],
    };
    [head, content.to_vec()].concat()
}

fn integer(bytes: &[u8]) -> Vec<u8> {
    let bytes = &bytes[bytes.iter().position(|&byte| byte != 0).unwrap_or(0)..];
    let zero: &[u8] = if bytes.first().is_some_and(|&byte| byte & 0x80 != 0) { &[0] } else { &[] };
    sequence(&[zero, bytes].concat(), 2)
}

fn verify(suite: &Suite, case: &Value) -> Result<(), String> {
    let document = parse(suite, case)?;
    let signature = find(&document, Document::ROOT, DSIG, "Signature").ok_or("there is no signature")?;
    let info = child(&document, signature, DSIG, "SignedInfo").ok_or("there is no SignedInfo")?;
    let form = child(&document, info, DSIG, "CanonicalizationMethod");
    let uri = method(&document, form)?;
    let options = canonical(uri).ok_or_else(|| format!("the canonical form {uri}"))?;
    let options = with_prefixes(&document, form.unwrap(), options);
    let how = child(&document, info, DSIG, "SignatureMethod");
    let uri = method(&document, how)?;
    let signing = Signing::of(uri).ok_or_else(|| format!("the signature algorithm {uri}"))?;
    if find(&document, how.unwrap(), DSIG, "HMACOutputLength").is_some() {
        return Err("a shortened HMAC".to_owned());
    }
    let mut signed = Vec::new();
    canonicalize(&document, info, &options, &mut signed);
    let value = child(&document, signature, DSIG, "SignatureValue").and_then(|node| octets(&document, node));
    let value = value.ok_or("the signature value is none")?;
    let keys = keys(suite, case, &document, signature);
    if keys.is_empty() {
        return Err("no key of RSA and no secret".to_owned());
    }
    let is_good = keys.iter().any(|key| match (key, signing) {
        (Key::Public(public), Signing::Rsa(digest)) => public.is_signed(digest, &signed, &value),
        (Key::Secret(secret), Signing::Hmac(digest)) => is_mac(digest, secret, &signed, &value),
        _ => false,
    });
    if !is_good {
        return Err("the signature value, with the keys that are read here".to_owned());
    }
    let references: Vec<NodeId> =
        document.children(info).filter(|&node| document.is_element(node, DSIG, "Reference")).collect();
    if references.is_empty() {
        return Err("no reference".to_owned());
    }
    references.into_iter().try_for_each(|reference| digested(suite, case, &document, reference))
}

/// Whether what a reference names has the digest that it says.
fn digested(suite: &Suite, case: &Value, document: &Document, reference: NodeId) -> Result<(), String> {
    let uri = document.attribute(reference, "", "URI");
    let mut options = Options::default();
    let mut is_enveloped = false;
    if let Some(transforms) = child(document, reference, DSIG, "Transforms") {
        for transform in
            document.children(transforms).filter(|&node| document.is_element(node, DSIG, "Transform"))
        {
            let algorithm = method(document, Some(transform))?;
            match canonical(algorithm) {
                Some(form) => options = with_prefixes(document, transform, form),
                None if algorithm == format!("{DSIG}enveloped-signature") => is_enveloped = true,
                None => return Err(format!("the transform {algorithm}")),
            }
        }
    }
    // A tree of its own, out of which the signature may be taken.
    let mut copy = parse(suite, case)?;
    let target = match uri {
        Some("") => Document::ROOT,
        Some(uri) if uri.starts_with('#') && !uri.contains('(') => {
            let id = &uri[1..];
            let named = |tree: &Document, node: NodeId| {
                tree.attributes(node)
                    .any(|one| tree.local(one).eq_ignore_ascii_case("id") && tree.string_value(one) == id)
            };
            let mut found = copy.descendants(Document::ROOT).filter(|&node| named(&copy, node));
            let first = found.next().ok_or("the element of a reference is not there")?;
            if found.next().is_some() {
                return Err("two elements with one id".to_owned());
            }
            first
        }
        other => return Err(format!("a reference out of the message ({})", other.unwrap_or("none"))),
    };
    // What `""` and `#id` name has no comments (XML Signature, 4.4.3.3).
    options.comments = false;
    if is_enveloped {
        let signature = find(&copy, Document::ROOT, DSIG, "Signature").ok_or("there is no signature")?;
        copy.detach(signature);
    }
    let mut bytes = Vec::new();
    canonicalize(&copy, target, &options, &mut bytes);
    let how = method(document, child(document, reference, DSIG, "DigestMethod"))?;
    let digest = Digest::of(how).ok_or_else(|| format!("the digest {how}"))?;
    let value = child(document, reference, DSIG, "DigestValue").and_then(|node| octets(document, node));
    match value.is_some_and(|value| digest.hash(&bytes).as_ref() == value) {
        true => Ok(()),
        false => Err("the digest of a reference".to_owned()),
    }
}

fn decrypt(suite: &Suite, case: &Value) -> Result<Vec<u8>, String> {
    let document = parse(suite, case)?;
    let data = find(&document, Document::ROOT, ENC, "EncryptedData").ok_or("there is no EncryptedData")?;
    let uri = method(&document, child(&document, data, ENC, "EncryptionMethod"))?;
    let cipher = Cipher::of(uri).ok_or_else(|| format!("the cipher {uri}"))?;
    let value = |node: NodeId| {
        let value = child(&document, child(&document, node, ENC, "CipherData")?, ENC, "CipherValue")?;
        octets(&document, value)
    };
    let sealed = value(data).ok_or("the cipher text is elsewhere, or none")?;
    let mut keys = Vec::new();
    let inner = find(&document, data, ENC, "EncryptedKey");
    let transport = match inner {
        None => None,
        Some(inner) => {
            let uri = method(&document, child(&document, inner, ENC, "EncryptionMethod"))?;
            let transport = Transport::of(uri).ok_or_else(|| format!("the key is wrapped by {uri}"))?;
            Some((transport, value(inner).ok_or("the encrypted key is none")?))
        }
    };
    for entry in case["keys"].as_array().into_iter().flatten() {
        for file in entry["files"].as_array().into_iter().flatten() {
            let bytes = suite.read(file.as_str().unwrap());
            match entry["type"].as_str().unwrap() {
                "aes-key" | "des-key" => keys.push(bytes),
                "key-store" => {
                    let store = Document::parse(bytes, &ParseOptions::default())
                        .map_err(|error| error.to_string())?;
                    let values = store
                        .descendants(Document::ROOT)
                        .filter(|&node| ["AESKeyValue", "DESKeyValue"].contains(&store.local(node)));
                    keys.extend(values.filter_map(|node| octets(&store, node)));
                }
                "private-key" => {
                    let (transport, sealed) = transport.as_ref().ok_or("there is no encrypted key")?;
                    let der = pem(&bytes).unwrap_or(bytes);
                    let key = PrivateKey::read(&der).ok_or("the private key is not read here")?;
                    keys.extend(key.decrypt(*transport, sealed).map(|secret| secret.to_vec()));
                }
                _ => {}
            }
        }
    }
    let found = keys.iter().find_map(|key| cipher.decrypt(key, &sealed));
    found.ok_or_else(|| "no key that is read here decrypts it".to_owned())
}

fn pem(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let body = text.split("-----").nth(2)?;
    STANDARD.decode(body.split_whitespace().collect::<String>()).ok()
}
