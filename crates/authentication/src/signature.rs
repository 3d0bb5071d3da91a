//! Signatures of webhooks: a header has an HMAC over the body, and over a time where one is part of it. The forms of GitHub
//! (`X-Hub-Signature-256: sha256=…`), Slack, Stripe and the Standard Webhooks are settings of one.

use crate::from_hex;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::{digest, hmac};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use zeroize::Zeroizing;

/// Most signatures in one header that are looked at.
const MOST: usize = 16;

/// The digest of the HMAC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Digest {
    /// Only for senders that support nothing better.
    Sha1,
    /// The usual one.
    #[default]
    Sha256,
    /// The longest one.
    Sha512,
}

/// How a signature is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// Hexadecimal digits.
    #[default]
    Hex,
    /// Base64 with its padding.
    Base64,
}

/// How messages are signed.
#[derive(Clone)]
pub struct Scheme {
    /// The header with the signature.
    pub header: String,
    /// The text before the signature: `sha256=`, `v1,`.
    pub prefix: String,
    /// The digest.
    pub digest: Digest,
    /// Its encoding.
    pub encoding: Encoding,
    /// What is signed: `{body}`, with `{timestamp}` and `{id}` where these are headers.
    pub signed: String,
    /// The header with the time of the message, in seconds since 1970.
    pub timestamp_header: Option<String>,
    /// The header with the id of the message.
    pub id_header: Option<String>,
    /// How far that time may be from now, in seconds.
    pub tolerance: u64,
    /// A message is good for once, while its time is near enough to now. Only where there is a time.
    pub once: bool,
    secrets: Vec<Zeroizing<Vec<u8>>>,
}

/// A message that must not come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The digest of what is signed.
    pub digest: [u8; 32],
    /// Its last second since 1970: later it is too old anyway.
    pub until: u64,
}

impl fmt::Debug for Scheme {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Scheme({}, {} secrets)", self.header, self.secrets.len())
    }
}

impl Scheme {
    /// The scheme of GitHub with these secrets: the first one signs, each of them verifies.
    ///
    /// # Errors
    /// There is none, or one is empty.
    pub fn new(secrets: Vec<Vec<u8>>) -> Result<Scheme, String> {
        if secrets.is_empty() || secrets.iter().any(Vec::is_empty) {
            return Err("a signature needs a secret that is not empty".to_owned());
        }
        Ok(Scheme {
            header: "X-Hub-Signature-256".to_owned(),
            prefix: "sha256=".to_owned(),
            digest: Digest::Sha256,
            encoding: Encoding::Hex,
            signed: "{body}".to_owned(),
            timestamp_header: None,
            id_header: None,
            tolerance: 300,
            once: false,
            secrets: secrets.into_iter().map(Zeroizing::new).collect(),
        })
    }

    /// Checks that what is signed can be built.
    ///
    /// # Errors
    /// It has no body in it, or a header that is not set.
    pub fn check(&self) -> Result<(), String> {
        let names = |placeholder: &str| self.signed.contains(placeholder);
        if !names("{body}") {
            return Err("what is signed has no {body} in it".to_owned());
        }
        for (placeholder, header, setting) in [
            ("{timestamp}", &self.timestamp_header, "timestamp_header"),
            ("{id}", &self.id_header, "id_header"),
        ] {
            if names(placeholder) != header.is_some() {
                return Err(format!(
                    "`{setting}` is set where what is signed has {placeholder} in it, and only there"
                ));
            }
        }
        if let Some((before, behind)) = self.signed.split_once("{id}")
            && (before.ends_with('}') || behind.starts_with('{'))
        {
            return Err("what is signed has nothing between {id} and its neighbour".to_owned());
        }
        if self.once && self.timestamp_header.is_none() {
            return Err(
                "`once` needs a time that is signed: without one, a message is never too old".to_owned()
            );
        }
        Ok(())
    }

    /// Whether what is signed can be read in one way only. An id with a separator in it could take up the time and a part of the body, and
    /// a number in the body would be the time of another message.
    fn is_unambiguous(&self, id: &str) -> bool {
        let Some((before, behind)) = self.signed.split_once("{id}") else { return true };
        ![before.chars().next_back(), behind.chars().next()]
            .into_iter()
            .flatten()
            .any(|next| id.contains(next))
    }

    fn algorithm(&self) -> hmac::Algorithm {
        match self.digest {
            Digest::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Digest::Sha256 => hmac::HMAC_SHA256,
            Digest::Sha512 => hmac::HMAC_SHA512,
        }
    }

    /// Hands on the bytes that are signed, in their order: a body may be large, and is not copied.
    fn write<'a>(&'a self, body: &'a [u8], timestamp: &'a str, id: &'a str, mut out: impl FnMut(&'a [u8])) {
        let mut rest = self.signed.as_str();
        while let Some(at) = rest.find('{') {
            out(&rest.as_bytes()[..at]);
            rest = &rest[at..];
            let placeholders: [(&str, &[u8]); 3] =
                [("{body}", body), ("{timestamp}", timestamp.as_bytes()), ("{id}", id.as_bytes())];
            match placeholders.iter().find_map(|(name, value)| Some((rest.strip_prefix(name)?, value))) {
                Some((behind, value)) => {
                    out(value);
                    rest = behind;
                }
                None => {
                    out(b"{");
                    rest = &rest[1..];
                }
            }
        }
        out(rest.as_bytes());
    }

    /// The HMAC with one of the secrets.
    fn tag(&self, secret: &[u8], body: &[u8], timestamp: &str, id: &str) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&hmac::Key::new(self.algorithm(), secret));
        self.write(body, timestamp, id, |bytes| context.update(bytes));
        context.sign()
    }

    /// Checks a message. `now` is in seconds since 1970. Where it is good for once, it is for the caller to remember it.
    ///
    /// # Errors
    /// It is not signed, or not with one of the secrets, or it is too old.
    pub fn verify<'a>(
        &self,
        header: &dyn Fn(&str) -> Option<&'a str>,
        body: &[u8],
        now: u64,
    ) -> Result<Option<Mark>, String> {
        let value_of = |name: &Option<String>| -> Result<&'a str, String> {
            match name {
                None => Ok(""),
                Some(name) => header(name).ok_or_else(|| format!("it has no header {name}")),
            }
        };
        let shown = header(&self.header).ok_or_else(|| format!("it has no header {}", self.header))?;
        let (timestamp, id) = (value_of(&self.timestamp_header)?, value_of(&self.id_header)?);
        let mut until = None;
        if self.timestamp_header.is_some() {
            let time: u64 = timestamp.trim().parse().map_err(|_| "its time is not a number".to_owned())?;
            if time.abs_diff(now) > self.tolerance {
                return Err("its time is too far from now".to_owned());
            }
            until = self.once.then(|| time.saturating_add(self.tolerance));
        }
        if !self.is_unambiguous(id) {
            return Err("its id has a separator in it".to_owned());
        }
        // One header may hold several signatures, while secrets change: separated by blanks, as the Standard Webhooks write them.
        let signatures: Vec<Vec<u8>> = shown
            .split_ascii_whitespace()
            .take(MOST)
            .filter_map(|part| part.strip_prefix(self.prefix.as_str()))
            .filter_map(|text| match self.encoding {
                Encoding::Hex => from_hex(text),
                Encoding::Base64 => STANDARD.decode(text).ok(),
            })
            .collect();
        // The body is read once for each secret, however many signatures a client writes.
        let is_right = !signatures.is_empty()
            && self.secrets.iter().any(|secret| {
                let tag = self.tag(secret, body, timestamp, id);
                signatures.iter().any(|shown| verify_slices_are_equal(tag.as_ref(), shown).is_ok())
            });
        if !is_right {
            return Err("its signature is wrong".to_owned());
        }
        Ok(until.map(|until| {
            let mut digest = digest::Context::new(&digest::SHA256);
            self.write(body, timestamp, id, |bytes| digest.update(bytes));
            let mut mark = Mark { digest: [0; 32], until };
            mark.digest.copy_from_slice(digest.finish().as_ref());
            mark
        }))
    }

    /// The headers of a message that is signed. `now` is in seconds since 1970.
    pub fn sign(&self, body: &[u8], id: &str, now: u64) -> Vec<(String, String)> {
        let timestamp = now.to_string();
        let mut headers = Vec::new();
        if let Some(secret) = self.secrets.first() {
            let tag = self.tag(secret, body, &timestamp, id);
            let text = match self.encoding {
                Encoding::Hex => crate::to_hex(tag.as_ref()),
                Encoding::Base64 => STANDARD.encode(tag.as_ref()),
            };
            headers.push((self.header.clone(), format!("{}{text}", self.prefix)));
        }
        headers.extend(self.timestamp_header.clone().map(|name| (name, timestamp)));
        headers.extend(self.id_header.clone().map(|name| (name, id.to_owned())));
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verify(
        scheme: &Scheme,
        headers: &[(String, String)],
        body: &[u8],
        now: u64,
    ) -> Result<Option<Mark>, String> {
        let find =
            |name: &str| headers.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str());
        scheme.verify(&find, body, now)
    }

    #[test]
    fn the_example_of_github() {
        // docs.github.com, "Validating webhook deliveries".
        let scheme = Scheme::new(vec![b"It's a Secret to Everybody".to_vec()]).unwrap();
        let headers = scheme.sign(b"Hello, World!", "", 0);
        let wanted = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert_eq!(headers, [("X-Hub-Signature-256".to_owned(), wanted.to_owned())]);
        assert!(verify(&scheme, &headers, b"Hello, World!", 0).is_ok());
        for (value, body) in [
            (wanted, "Hello, World?"),
            (&wanted[7..], "Hello, World!"),
            ("sha256=", "Hello, World!"),
            ("sha256=zz", "Hello, World!"),
            (&wanted[..wanted.len() - 2], "Hello, World!"),
            ("", "Hello, World!"),
        ] {
            let headers = [("X-Hub-Signature-256".to_owned(), value.to_owned())];
            assert!(verify(&scheme, &headers, body.as_bytes(), 0).is_err(), "{value} {body}");
        }
        assert!(verify(&scheme, &[], b"Hello, World!", 0).is_err());
    }

    #[test]
    fn times_and_ids_are_signed_too() {
        let (old, new) = (b"old secret".to_vec(), b"new secret".to_vec());
        let standard = |secrets: &[&Vec<u8>]| Scheme {
            header: "webhook-signature".into(),
            prefix: "v1,".into(),
            encoding: Encoding::Base64,
            signed: "{id}.{timestamp}.{body}".into(),
            timestamp_header: Some("webhook-timestamp".into()),
            id_header: Some("webhook-id".into()),
            ..Scheme::new(secrets.iter().map(|secret| (*secret).clone()).collect()).unwrap()
        };
        let (before, both) = (standard(&[&old]), standard(&[&new, &old]));
        assert!(both.check().is_ok());
        let headers = before.sign(b"{id}", "msg_1", 1000);
        assert!(verify(&both, &headers, b"{id}", 1300).is_ok());
        assert!(verify(&both, &headers, b"{id}", 1301).unwrap_err().contains("too far"));
        assert!(verify(&both, &headers, b"{id}", 699).unwrap_err().contains("too far"));
        for (name, value) in
            [("webhook-id", "msg_2"), ("webhook-timestamp", "1001"), ("webhook-timestamp", "x")]
        {
            let mut changed = headers.clone();
            changed
                .iter_mut()
                .filter(|(field, _)| field == name)
                .for_each(|header| header.1 = value.to_owned());
            assert!(verify(&both, &changed, b"{id}", 1000).is_err(), "{name}: {value}");
        }
        // Signed with both, while the secrets change.
        let mut several = headers.clone();
        several[0].1 = format!("v1,AAAA {} v2,x", several[0].1);
        assert!(verify(&standard(&[&old]), &several, b"{id}", 1000).is_ok());
        assert!(verify(&standard(&[&new]), &several, b"{id}", 1000).is_err());
        let unset = Scheme { timestamp_header: None, ..both.clone() };
        assert!(unset.check().unwrap_err().contains("timestamp_header"));
        assert!(Scheme { signed: "{id}".into(), ..both }.check().is_err());
        assert!(Scheme::new(vec![]).is_err() && Scheme::new(vec![vec![]]).is_err());
    }

    #[test]
    fn a_number_in_the_body_is_no_time() {
        let scheme = Scheme {
            signed: "{id}.{timestamp}.{body}".into(),
            timestamp_header: Some("time".into()),
            id_header: Some("id".into()),
            ..Scheme::new(vec![b"secret".to_vec()]).unwrap()
        };
        // What somebody wrote was sent on an hour ago, and is cut in another place now.
        let body = br#"{"comment": "x.4600.{"role":"admin"}"}"#;
        let (first, rest) = std::str::from_utf8(body).unwrap().split_once(".4600.").unwrap();
        let mut headers = scheme.sign(body, "msg_1", 1000);
        assert!(verify(&scheme, &headers, body, 1000).is_ok());
        headers[1].1 = "4600".to_owned();
        headers[2].1 = format!("msg_1.1000.{first}");
        assert!(verify(&scheme, &headers, rest.as_bytes(), 4600).unwrap_err().contains("separator"));
        for (signed, is_right) in [
            ("{id}{timestamp}{body}", false),
            ("{timestamp}.{id}{body}", false),
            ("{timestamp}{body}:{id}", true),
        ] {
            assert_eq!(
                Scheme { signed: signed.into(), ..scheme.clone() }.check().is_ok(),
                is_right,
                "{signed}"
            );
        }
    }

    #[test]
    fn what_is_good_for_once_has_a_mark() {
        let scheme = |once: bool| Scheme {
            signed: "{timestamp}.{body}".into(),
            timestamp_header: Some("time".into()),
            once,
            ..Scheme::new(vec![b"secret".to_vec()]).unwrap()
        };
        let (headers, later) = (scheme(true).sign(b"a", "", 1000), scheme(true).sign(b"a", "", 1001));
        assert_eq!(verify(&scheme(false), &headers, b"a", 1000), Ok(None));
        let mark = verify(&scheme(true), &headers, b"a", 900).unwrap().unwrap();
        assert_eq!(mark.until, 1300);
        // Another form of the same signature has the same mark, another time has another one.
        let mut upper = headers.clone();
        upper[0].1 = format!("sha256={} ", upper[0].1[7..].to_ascii_uppercase());
        assert_eq!(verify(&scheme(true), &upper, b"a", 1200), Ok(Some(mark)));
        assert_ne!(verify(&scheme(true), &later, b"a", 1000).unwrap().unwrap().digest, mark.digest);
        assert!(Scheme { timestamp_header: None, signed: "{body}".into(), ..scheme(true) }.check().is_err());
    }
}
