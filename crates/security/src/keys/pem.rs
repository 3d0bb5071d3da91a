//! PEM: certificates, and private keys as PKCS #8 (encrypted or not) or PKCS #1.

use super::{Entry, sealed};
use crate::algorithm::Secret;
use crate::certificate::Certificate;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

pub(super) fn read(bytes: &[u8], password: &str) -> Result<Vec<Entry>, String> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| "it is not a key store: expected PEM, PKCS#12 or JKS".to_owned())?;
    let (mut keys, mut certificates) = (Vec::new(), Vec::new());
    let mut rest = text;
    while let Some((_, from)) = rest.split_once("-----BEGIN ") {
        let Some((label, from)) = from.split_once("-----") else { break };
        let end = format!("-----END {label}-----");
        let Some((body, after)) = from.split_once(&end) else {
            return Err(format!("the end of {label} is missing"));
        };
        rest = after;
        let broken = || format!("this {label} is damaged");
        let body: String = body.split_whitespace().collect();
        // An encrypted key in the old way has headers, whose colon is no Base64.
        let der = Secret::new(STANDARD.decode(body).map_err(|_| broken())?);
        match label {
            "CERTIFICATE" | "TRUSTED CERTIFICATE" | "X509 CERTIFICATE" => certificates.push(der.to_vec()),
            "PRIVATE KEY" | "RSA PRIVATE KEY" => keys.push(der),
            "ENCRYPTED PRIVATE KEY" => keys.push(sealed::open(&der, password)?),
            _ => {}
        }
    }
    match (keys.len(), certificates.len()) {
        (0, 0) => Err("it is not a key store: expected PEM, PKCS#12 or JKS".to_owned()),
        (0, _) => Ok(certificates
            .into_iter()
            .map(|certificate| Entry { alias: alias(&certificate), key: None, chain: vec![certificate] })
            .collect()),
        (1, 0) => Err("there is a private key and no certificate beside it".to_owned()),
        (1, _) => {
            let (first, others) = certificates.split_at(1);
            let mut entries = vec![Entry { alias: alias(&first[0]), key: keys.pop(), chain: first.to_vec() }];
            entries.extend(others.iter().map(|certificate| Entry {
                alias: alias(certificate),
                key: None,
                chain: vec![certificate.clone()],
            }));
            Ok(entries)
        }
        _ => Err("one private key for each file, please".to_owned()),
    }
}

/// PEM has no names: the common name of the subject.
fn alias(der: &[u8]) -> String {
    let Ok(certificate) = Certificate::read(der) else { return String::new() };
    let name = certificate.subject.split(',').find_map(|part| part.trim().strip_prefix("CN="));
    name.unwrap_or(&certificate.subject).to_owned()
}

/// All things of this label in a file, if it is PEM and none of them is damaged.
pub(super) fn all(bytes: &[u8], label: &str) -> Option<Vec<Vec<u8>>> {
    let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
    let mut rest = std::str::from_utf8(bytes).ok()?;
    let mut found = Vec::new();
    while let Some((_, from)) = rest.split_once(&begin) {
        let (body, after) = from.split_once(&end)?;
        found.push(STANDARD.decode(body.split_whitespace().collect::<String>()).ok()?);
        rest = after;
    }
    (!found.is_empty()).then_some(found)
}
