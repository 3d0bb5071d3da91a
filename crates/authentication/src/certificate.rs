//! Certificates of clients: the identities in them. TLS has verified them before.

use crate::{from_hex, sha256, to_hex};
use std::fmt::Write;
use x509_parser::extensions::GeneralName;
use x509_parser::x509::X509Name;

/// The identity in a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The subject as RFC 4514 writes it: `CN=alice,O=Partner,C=DE`, the last part of the certificate first.
    pub subject: String,
    /// The issuer, written in the same way.
    pub issuer: String,
    /// The serial number in hexadecimal digits.
    pub serial: String,
    /// The alternative names: `dns:shop.example`, `uri:spiffe://…`, `email:…`, `ip:…`.
    pub names: Vec<String>,
    /// SHA-256 of the certificate in hexadecimal digits.
    pub fingerprint: String,
}

impl Identity {
    /// Reads a certificate in DER; `None`: it is not a certificate.
    pub fn read(der: &[u8]) -> Option<Identity> {
        let (rest, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
        if !rest.is_empty() {
            return None;
        }
        let mut names = Vec::new();
        if let Ok(Some(extension)) = certificate.subject_alternative_name() {
            for name in &extension.value.general_names {
                match name {
                    GeneralName::DNSName(name) => {
                        names.push(format!("dns:{}", without_blanks(name).to_ascii_lowercase()));
                    }
                    GeneralName::URI(uri) => names.push(format!("uri:{}", without_blanks(uri))),
                    GeneralName::RFC822Name(mailbox) => {
                        names.push(format!("email:{}", without_blanks(mailbox)));
                    }
                    GeneralName::IPAddress(octets) => names.extend(address(octets)),
                    _ => {}
                }
            }
        }
        Some(Identity {
            subject: name(certificate.subject()),
            issuer: name(certificate.issuer()),
            serial: to_hex(certificate.raw_serial()),
            names,
            fingerprint: to_hex(&sha256(der)),
        })
    }
}

/// When a certificate in DER begins and ends to be valid, in seconds since 1970 (RFC 5280, section 4.1.2.5); `None`: it is none.
pub fn validity(der: &[u8]) -> Option<(i64, i64)> {
    let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
    let validity = certificate.validity();
    Some((validity.not_before.timestamp(), validity.not_after.timestamp()))
}

/// A name with its blanks and control characters percent-encoded: flows get all names as one text, separated by blanks, and no name may look
/// like two.
fn without_blanks(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for character in name.chars() {
        if character.is_whitespace() || character.is_control() {
            for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(out, "%{byte:02X}");
            }
        } else {
            out.push(character);
        }
    }
    out
}

fn address(bytes: &[u8]) -> Option<String> {
    let address: std::net::IpAddr = match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok()?.into(),
        16 => <[u8; 16]>::try_from(bytes).ok()?.into(),
        _ => return None,
    };
    Some(format!("ip:{address}"))
}

/// The short names of attributes (RFC 4514, section 3, and e-mail).
const SHORT: [(&str, &str); 11] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.6", "C"),
    ("2.5.4.9", "STREET"),
    ("2.5.4.5", "SERIALNUMBER"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("1.2.840.113549.1.9.1", "EMAIL"),
];

/// A name as RFC 4514 writes it. What separates parts is escaped, so that no value can look like another part.
fn name(name: &X509Name<'_>) -> String {
    let mut parts = Vec::new();
    for part in name.iter() {
        let mut text = String::new();
        for attribute in part.iter() {
            if !text.is_empty() {
                text.push('+');
            }
            let kind = attribute.attr_type().to_id_string();
            text.push_str(SHORT.iter().find(|(id, _)| *id == kind).map_or(&*kind, |(_, short)| short));
            text.push('=');
            match attribute.as_str() {
                Ok(value) => escape(value, &mut text),
                Err(_) => {
                    let _ = write!(text, "#{}", to_hex(attribute.as_slice()));
                }
            }
        }
        parts.push(text);
    }
    parts.reverse();
    parts.join(",")
}

fn escape(value: &str, out: &mut String) {
    let last = value.chars().count().saturating_sub(1);
    for (at, character) in value.chars().enumerate() {
        match character {
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' | '=' => {
                out.push('\\');
                out.push(character);
            }
            ' ' if at == 0 || at == last => out.push_str("\\ "),
            '#' if at == 0 => out.push_str("\\#"),
            character if character.is_control() => {
                for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(out, "\\{byte:02x}");
                }
            }
            character => out.push(character),
        }
    }
}

/// The certificates that are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// Every certificate that TLS has verified.
    Verified,
    /// The one with this SHA-256 digest.
    Fingerprint(String),
    /// Those with this alternative name.
    Name(String),
    /// Those of this subject.
    Subject(String),
}

impl Allowed {
    /// `*`, `sha256:…`, `dns:…`, `uri:…`, `email:…`, `ip:…`, or a subject.
    ///
    /// # Errors
    /// The text is none of these.
    pub fn read(text: &str) -> Result<Allowed, String> {
        let text = text.trim();
        if text == "*" {
            return Ok(Allowed::Verified);
        }
        if let Some(digits) = text.strip_prefix("sha256:") {
            let digest = from_hex(digits).filter(|bytes| bytes.len() == 32);
            let digest =
                digest.ok_or_else(|| format!("`{text}` is not a SHA-256 digest of 64 hexadecimal digits"))?;
            return Ok(Allowed::Fingerprint(to_hex(&digest)));
        }
        match text.split_once(':') {
            Some(("dns", name)) => Ok(Allowed::Name(format!("dns:{}", name.to_ascii_lowercase()))),
            Some(("uri" | "email" | "ip", _)) => Ok(Allowed::Name(text.to_owned())),
            _ if text.contains('=') => Ok(Allowed::Subject(text.to_owned())),
            _ => Err(format!(
                "`{text}` is neither `*`, sha256:…, dns:…, uri:…, email:…, ip:… nor a subject like CN=…"
            )),
        }
    }

    /// Whether this certificate is accepted.
    pub fn fits(&self, identity: &Identity) -> bool {
        match self {
            Allowed::Verified => true,
            Allowed::Fingerprint(digest) => identity.fingerprint == *digest,
            Allowed::Name(name) => identity.names.contains(name),
            Allowed::Subject(subject) => identity.subject == *subject,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

    fn certificate(name: &str) -> Vec<u8> {
        let mut parameters =
            CertificateParams::new(vec!["Shop.example".to_owned(), "10.0.0.1".to_owned()]).unwrap();
        parameters.subject_alt_names.push(SanType::URI("spiffe://a/b".try_into().unwrap()));
        parameters.distinguished_name = DistinguishedName::new();
        parameters.distinguished_name.push(DnType::OrganizationName, "Partner");
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn who_a_certificate_is_of() {
        let der = certificate("alice");
        let identity = Identity::read(&der).unwrap();
        assert_eq!(identity.subject, "CN=alice,O=Partner");
        assert_eq!(identity.issuer, identity.subject);
        assert_eq!(identity.names, ["dns:shop.example", "ip:10.0.0.1", "uri:spiffe://a/b"]);
        assert_eq!(identity.fingerprint, to_hex(&sha256(&der)));
        for (allowed, fits) in [
            ("*", true),
            ("CN=alice,O=Partner", true),
            ("CN=alice", false),
            ("CN=alice,O=partner", false),
            ("dns:SHOP.example", true),
            ("dns:example", false),
            ("uri:spiffe://a/b", true),
            ("ip:10.0.0.1", true),
            (&format!("sha256:{}", identity.fingerprint.to_uppercase()), true),
            (&format!("sha256:{}", "00".repeat(32)), false),
        ] {
            assert_eq!(Allowed::read(allowed).unwrap().fits(&identity), fits, "{allowed}");
        }
        assert!(Allowed::read("alice").is_err() && Allowed::read("sha256:12").is_err());
        assert_eq!(Identity::read(&der[..der.len() - 1]), None);
        assert_eq!(Identity::read(b"no"), None);
    }

    #[test]
    fn no_name_looks_like_two() {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.subject_alt_names = vec![
            SanType::URI("urn:a dns:admin.example".try_into().unwrap()),
            SanType::Rfc822Name("\"a\tdns:admin.example\0\"@b".try_into().unwrap()),
            SanType::DnsName("a dns:admin.example".try_into().unwrap()),
        ];
        let der = parameters.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec();
        let names = Identity::read(&der).unwrap().names;
        assert_eq!(
            names,
            [
                "uri:urn:a%20dns:admin.example",
                "email:\"a%09dns:admin.example%00\"@b",
                "dns:a%20dns:admin.example"
            ]
        );
    }

    #[test]
    fn no_value_looks_like_another_part() {
        for (written, wanted) in [
            ("alice,O=Partner", "CN=alice\\,O\\=Partner,O=Partner"),
            (" #a\\ ", "CN=\\ #a\\\\\\ ,O=Partner"),
            ("#1\n", "CN=\\#1\\0a,O=Partner"),
        ] {
            assert_eq!(Identity::read(&certificate(written)).unwrap().subject, wanted);
        }
    }
}
