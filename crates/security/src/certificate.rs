//! X.509 certificates, as far as WS-Security refers to them. Whether a path leads to a trusted authority is decided by
//! webpki ([`crate::keys::Trust`]).

use crate::algorithm::{PublicKey, sha1};
use der::{BIT_STRING, INTEGER, OCTETS, OID, Reader, SEQUENCE, SET, Value};
use jiff::Timestamp;
use std::fmt;

/// Largest certificate that is read, in bytes.
pub const LARGEST: usize = 64 * 1024;

/// A certificate.
pub struct Certificate {
    /// As it is, in DER.
    pub der: Vec<u8>,
    /// SHA-1 of that.
    pub thumbprint: [u8; 20],
    /// The serial number, as DER has it: without leading zeroes, and with one where the first bit is set.
    pub serial: Vec<u8>,
    /// The issuer, for people and for references.
    pub issuer: String,
    /// The subject, for people.
    pub subject: String,
    /// The subject key identifier: of the extension, else made of the key (RFC 3280, 4.2.1.2).
    pub key_identifier: Vec<u8>,
    /// Its public key.
    pub public: PublicKey,
    /// Bits of the modulus, where it is a key of RSA.
    pub bits: usize,
    issuer_parts: Vec<(String, String)>,
    not_before: Timestamp,
    not_after: Timestamp,
    /// The bits of the key usage, the first one highest; `None`: the certificate does not say.
    usage: Option<u16>,
}

impl fmt::Debug for Certificate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Certificate({})", self.subject)
    }
}

/// Bits of the key usage.
const DIGITAL_SIGNATURE: u16 = 0x8000;
const KEY_ENCIPHERMENT: u16 = 0x2000;

const RSA_ENCRYPTION: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];

impl Certificate {
    /// Reads one.
    ///
    /// # Errors
    /// It is not a certificate, or has no RSA key.
    pub fn read(der: &[u8]) -> Result<Certificate, &'static str> {
        if der.len() > LARGEST {
            return Err("the certificate is too large");
        }
        parse(der).ok_or("this is not an X.509 certificate with a key of RSA")
    }

    /// Whether it is valid at a time.
    pub fn is_valid_at(&self, now: Timestamp) -> bool {
        self.not_before <= now && now <= self.not_after
    }

    /// Until when it is valid.
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// Whether its key may sign messages. A certificate without a key usage does not allow it.
    pub fn may_sign(&self) -> bool {
        self.usage.is_some_and(|usage| usage & DIGITAL_SIGNATURE != 0)
    }

    /// Whether keys may be encrypted for it. A certificate without a key usage allows it.
    pub fn may_encipher(&self) -> bool {
        self.usage.is_none_or(|usage| usage & KEY_ENCIPHERMENT != 0)
    }

    /// Whether it is the one of this issuer with this serial number (a decimal number).
    pub fn is_of(&self, issuer: &str, serial: &str) -> bool {
        let Some(serial) = of_decimal(serial) else { return false };
        // The sign is ignored: a certificate with a negative serial number lacks the leading zero.
        trimmed(&self.serial) == trimmed(&serial) && {
            let mut wanted = name_parts(issuer);
            wanted.sort();
            wanted == self.issuer_parts
        }
    }

    /// The serial number as a decimal number.
    pub fn decimal_serial(&self) -> String {
        to_decimal(&self.serial)
    }
}

fn trimmed(bytes: &[u8]) -> &[u8] {
    let first = bytes.iter().position(|&byte| byte != 0).unwrap_or(bytes.len());
    &bytes[first..]
}

fn parse(der: &[u8]) -> Option<Certificate> {
    let mut input = Reader(der);
    let mut outer = input.enter(SEQUENCE)?;
    if !input.is_empty() {
        return None;
    }
    let mut body = outer.enter(SEQUENCE)?;
    _ = body.value(0xa0);
    let serial = body.value(INTEGER)?.content.to_vec();
    _ = body.value(SEQUENCE)?;
    let issuer = body.value(SEQUENCE)?;
    let mut validity = body.enter(SEQUENCE)?;
    let not_before = time(validity.any()?)?;
    let not_after = time(validity.any()?)?;
    let subject = body.value(SEQUENCE)?;
    let public = body.value(SEQUENCE)?;
    let mut info = public.inside();
    let algorithm = info.enter(SEQUENCE)?.value(OID)?.content;
    let (&[0], key) = info.value(BIT_STRING)?.content.split_first_chunk::<1>()? else { return None };
    if algorithm != RSA_ENCRYPTION || serial.is_empty() || serial.len() > 40 {
        return None;
    }
    let modulus = Reader(key).enter(SEQUENCE)?.value(INTEGER)?.content;
    let modulus = trimmed(modulus);
    let bits = modulus.len() * 8 - modulus.first().map_or(0, |first| first.leading_zeros() as usize);
    let (mut usage, mut key_identifier) = (None, None);
    _ = body.value(0x81);
    _ = body.value(0x82);
    if let Some(mut extensions) = body.enter(0xa3).and_then(|mut tagged| tagged.enter(SEQUENCE)) {
        while let Some(mut extension) = extensions.enter(SEQUENCE) {
            let oid = extension.value(OID)?.content;
            _ = extension.value(0x01);
            let mut value = extension.enter(OCTETS)?;
            match oid {
                [0x55, 0x1d, 0x0e] => key_identifier = Some(value.value(OCTETS)?.content.to_vec()),
                [0x55, 0x1d, 0x0f] => {
                    let (_, bits) = value.value(BIT_STRING)?.content.split_first()?;
                    let byte = |at: usize| u16::from(bits.get(at).copied().unwrap_or(0));
                    usage = Some(byte(0) << 8 | byte(1));
                }
                _ => {}
            }
        }
    }
    let (issuer, mut issuer_parts) = name(issuer)?;
    issuer_parts.sort();
    Some(Certificate {
        thumbprint: sha1(der),
        serial,
        issuer,
        subject: name(subject)?.0,
        key_identifier: key_identifier.unwrap_or_else(|| sha1(key).to_vec()),
        public: PublicKey::new(public.whole),
        bits,
        issuer_parts,
        not_before,
        not_after,
        usage,
        der: der.to_vec(),
    })
}

fn time(value: Value<'_>) -> Option<Timestamp> {
    let text = value.time_digits()?;
    let part = |from: usize, to: usize| &text[from..to];
    let (date, time) = (
        format!("{}-{}-{}", part(0, 4), part(4, 6), part(6, 8)),
        format!("{}:{}:{}", part(8, 10), part(10, 12), part(12, 14)),
    );
    // The date that stands for no end.
    if date.starts_with("9999") {
        return Some(Timestamp::MAX);
    }
    format!("{date}T{time}Z").parse().ok()
}

/// Short names of attributes.
const TYPES: [(&str, &[u8]); 12] = [
    ("CN", &[0x55, 0x04, 0x03]),
    ("SERIALNUMBER", &[0x55, 0x04, 0x05]),
    ("C", &[0x55, 0x04, 0x06]),
    ("L", &[0x55, 0x04, 0x07]),
    ("ST", &[0x55, 0x04, 0x08]),
    ("STREET", &[0x55, 0x04, 0x09]),
    ("O", &[0x55, 0x04, 0x0a]),
    ("OU", &[0x55, 0x04, 0x0b]),
    ("T", &[0x55, 0x04, 0x0c]),
    ("DC", &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x19]),
    ("UID", &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x01]),
    ("EMAILADDRESS", &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x01]),
];

/// A name as RFC 2253 writes it, and its parts for comparing.
fn name(value: Value<'_>) -> Option<(String, Vec<(String, String)>)> {
    let mut sets = value.inside();
    let mut rdns = Vec::new();
    let mut parts = Vec::new();
    while let Some(mut set) = sets.enter(SET) {
        let mut rdn = String::new();
        while let Some(mut attribute) = set.enter(SEQUENCE) {
            let oid = attribute.value(OID)?.content;
            let value = attribute.any()?;
            let kind =
                TYPES.iter().find(|(_, known_oid)| *known_oid == oid).map(|(name, _)| (*name).to_owned());
            let text = match value.tag {
                // UTF8String, PrintableString, IA5String, NumericString, VisibleString.
                0x0c | 0x12 | 0x13 | 0x16 | 0x1a => String::from_utf8_lossy(value.content).into_owned(),
                0x1e => {
                    let units =
                        value.content.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
                    char::decode_utf16(units).map(|unit| unit.unwrap_or('\u{fffd}')).collect()
                }
                // Latin-1, which is how everybody reads T61String.
                _ => value.content.iter().map(|&byte| char::from(byte)).collect(),
            };
            let kind = kind.unwrap_or_else(|| dotted(oid));
            if !rdn.is_empty() {
                rdn.push('+');
            }
            rdn.push_str(&kind);
            rdn.push('=');
            escape(&text, &mut rdn);
            parts.push((kind, folded(&text)));
        }
        rdns.push(rdn);
    }
    rdns.reverse();
    Some((rdns.join(","), parts))
}

fn dotted(oid: &[u8]) -> String {
    let mut out = String::new();
    let mut number = 0u64;
    let mut first = true;
    for &byte in oid.iter().take(64) {
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            if first {
                let (a, b) = if number >= 80 { (2, number - 80) } else { (number / 40, number % 40) };
                out = format!("{a}.{b}");
                first = false;
            } else {
                out.push_str(&format!(".{number}"));
            }
            number = 0;
        }
    }
    out
}

fn escape(text: &str, out: &mut String) {
    for (at, c) in text.char_indices() {
        let edge = at == 0 && matches!(c, ' ' | '#') || at + 1 == text.len() && c == ' ';
        if edge || matches!(c, ',' | '+' | '"' | '\\' | '<' | '>' | ';') {
            out.push('\\');
        }
        out.push(c);
    }
}

fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// The parts of a name as it is written in references, in whatever order and with whatever short names.
fn name_parts(text: &str) -> Vec<(String, String)> {
    let mut parts = Vec::new();
    let mut current = String::new();
    let mut chars = text.chars();
    let mut quoted = false;
    loop {
        let next = chars.next();
        match next {
            Some('"') => quoted = !quoted,
            Some('\\') => match chars.next() {
                Some(c) if c.is_ascii_hexdigit() => {
                    let low = chars.next().and_then(|c| c.to_digit(16)).unwrap_or(0);
                    let byte = c.to_digit(16).unwrap_or(0) << 4 | low;
                    current.push(char::from(byte as u8));
                }
                Some(c) => current.push(c),
                None => {}
            },
            Some(c) if quoted || !matches!(c, ',' | ';' | '+') => current.push(c),
            _ => {
                if let Some((kind, value)) = current.split_once('=') {
                    let kind = kind.trim().to_uppercase();
                    let kind = match kind.strip_prefix("OID.").unwrap_or(&kind) {
                        "S" => "ST",
                        "E" | "EMAIL" | "1.2.840.113549.1.9.1" => "EMAILADDRESS",
                        "0.9.2342.19200300.100.1.25" => "DC",
                        other => other,
                    };
                    parts.push((kind.to_owned(), folded(value)));
                }
                current.clear();
                if next.is_none() {
                    break;
                }
            }
        }
    }
    parts
}

fn of_decimal(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || digits.len() > 100 {
        return None;
    }
    let mut out: Vec<u8> = vec![0];
    for digit in digits.chars() {
        let mut carry = digit.to_digit(10)?;
        for byte in out.iter_mut().rev() {
            carry += u32::from(*byte) * 10;
            *byte = carry as u8;
            carry >>= 8;
        }
        if carry > 0 {
            out.insert(0, carry as u8);
        }
    }
    if text.starts_with('-') {
        // Two's complement, as DER has it.
        let mut carry = true;
        for byte in out.iter_mut().rev() {
            let (sum, over) = (!*byte).overflowing_add(u8::from(carry));
            (*byte, carry) = (sum, over);
        }
    }
    Some(out)
}

fn to_decimal(bytes: &[u8]) -> String {
    let mut digits: Vec<u8> = vec![0];
    for &byte in bytes {
        let mut carry = u32::from(byte);
        for digit in digits.iter_mut().rev() {
            carry += u32::from(*digit) * 256;
            *digit = (carry % 10) as u8;
            carry /= 10;
        }
        while carry > 0 {
            digits.insert(0, (carry % 10) as u8);
            carry /= 10;
        }
    }
    let first = digits.iter().position(|&digit| digit != 0).unwrap_or(digits.len() - 1);
    digits[first..].iter().map(|&digit| char::from(b'0' + digit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_length_are_read_and_written() {
        for (text, bytes) in [
            ("0", &[0][..]),
            ("255", &[255]),
            ("256", &[1, 0]),
            ("1311768467463790320", &[0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0]),
            ("340282366920938463463374607431768211455", &[255; 16]),
        ] {
            assert_eq!(of_decimal(text).as_deref(), Some(bytes));
            assert_eq!(to_decimal(bytes), text);
        }
        assert_eq!(of_decimal("-1"), Some(vec![255]));
        for text in ["", "x", "1x", "-"] {
            assert_eq!(of_decimal(text), None, "{text}");
        }
    }

    #[test]
    fn names_are_the_same_however_they_are_written() {
        let sorted = |text: &str| {
            let mut parts = name_parts(text);
            parts.sort();
            parts
        };
        let wanted = sorted("CN=a b,O=Acme\\, Inc.,C=LK");
        for text in
            ["C=LK, O=\"Acme, Inc.\", CN=A  B", "cn=a b;o=Acme\\, Inc.;c=lk", "CN=a b+O=Acme\\2c Inc.,C=LK"]
        {
            assert_eq!(sorted(text), wanted, "{text}");
        }
        assert_eq!(sorted("E=x@y,S=z"), sorted("EMAILADDRESS=x@y,ST=z"));
        assert_ne!(sorted("CN=a,CN=a"), sorted("CN=a"));
    }

    #[test]
    fn junk_is_no_certificate() {
        for der in [&[][..], &[0x30], &[0x30, 0x80], &[0x30, 0x84, 255, 255, 255, 255], &[0x30, 2, 0x30, 0]] {
            assert!(Certificate::read(der).is_err());
        }
    }
}
