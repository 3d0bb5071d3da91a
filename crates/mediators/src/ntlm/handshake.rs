//! The three messages of NTLM (\[MS-NLMP\] 2.2.1) and what proves the password in them (3.3).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use des::Des;
use des::cipher::{BlockCipherEncrypt, KeyInit as _};
use flow::Fault;
use hmac::{Hmac, Mac};
use md4::{Digest, Md4};
use md5::Md5;
use std::time::{SystemTime, UNIX_EPOCH};

const SIGNATURE: &[u8; 8] = b"NTLMSSP\0";
const UNICODE: u32 = 0x0000_0001;
const REQUEST_TARGET: u32 = 0x0000_0004;
const NTLM: u32 = 0x0000_0200;
const ALWAYS_SIGN: u32 = 0x0000_8000;
const TARGET_INFO: u32 = 0x0080_0000;
const EXTENDED_SECURITY: u32 = 0x0008_0000;

/// In the list of what the backend says of itself: its clock.
const TIMESTAMP: u16 = 7;

/// Largest challenge, decoded.
const LARGEST: usize = 16 << 10;

/// How a password is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V2,
}

impl Version {
    /// `v1` or `v2`, in any case.
    pub(super) fn of(text: &str) -> Option<Version> {
        match text.trim().to_ascii_lowercase().as_str() {
            "v1" | "1" => Some(Version::V1),
            "v2" | "2" => Some(Version::V2),
            _ => None,
        }
    }
}

/// Who asks.
pub(super) struct Account {
    pub(super) user: String,
    pub(super) password: String,
    pub(super) host: String,
    pub(super) domain: String,
    pub(super) version: Version,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "NTLM({}\\{})", self.domain, self.user)
    }
}

/// What is new in each handshake.
pub(super) struct Fresh {
    /// Tenths of microseconds since 1601.
    time: u64,
    challenge: [u8; 8],
}

impl Fresh {
    /// # Errors
    /// There is no randomness.
    pub(super) fn now() -> Result<Fresh, Fault> {
        let mut challenge = [0; 8];
        aws_lc_rs::rand::fill(&mut challenge)
            .map_err(|_| Fault::new("there are no random numbers for NTLM"))?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = (since.as_secs() + 11_644_473_600) * 10_000_000 + u64::from(since.subsec_nanos() / 100);
        Ok(Fresh { time, challenge })
    }
}

/// What the backend says in its challenge.
#[derive(Debug)]
struct Challenge<'a> {
    nonce: [u8; 8],
    flags: u32,
    /// Pairs of number and value about the backend.
    about: &'a [u8],
}

impl Account {
    /// The first message, as `Authorization`.
    pub(super) fn negotiate(&self) -> String {
        let extended = if self.version == Version::V2 { EXTENDED_SECURITY | TARGET_INFO } else { 0 };
        let mut out = SIGNATURE.to_vec();
        out.extend_from_slice(&1u32.to_le_bytes());
        let flags = UNICODE | REQUEST_TARGET | NTLM | ALWAYS_SIGN | extended;
        out.extend_from_slice(&flags.to_le_bytes());
        // No domain and no workstation: they come with the third message.
        out.extend_from_slice(&[0; 16]);
        format!("NTLM {}", STANDARD.encode(out))
    }

    /// The third message, as `Authorization`: the answer to the second one, which is in Base64.
    ///
    /// # Errors
    /// That is not a challenge.
    pub(super) fn authenticate(&self, challenge: &str, fresh: &Fresh) -> Result<String, String> {
        if challenge.len() > LARGEST / 3 * 4 {
            return Err("it is too large".to_owned());
        }
        let bytes = STANDARD.decode(challenge).map_err(|_| "it is not Base64".to_owned())?;
        let challenge = Challenge::read(&bytes)?;
        let (lm, nt) = match self.version {
            Version::V1 => self.first(&challenge, fresh),
            Version::V2 => self.second(&challenge, fresh),
        };
        let parts = [lm, nt, utf16(&self.domain), utf16(&self.user), utf16(&self.host), Vec::new()];
        const HEAD: usize = 64;
        let mut out = SIGNATURE.to_vec();
        out.extend_from_slice(&3u32.to_le_bytes());
        let mut at = HEAD;
        for part in &parts {
            let length = u16::try_from(part.len()).map_err(|_| "the answer would be too long".to_owned())?;
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(&u32::try_from(at).unwrap_or(u32::MAX).to_le_bytes());
            at += part.len();
        }
        let extended = challenge.flags & EXTENDED_SECURITY;
        let flags =
            UNICODE | NTLM | (challenge.flags & (ALWAYS_SIGN | TARGET_INFO | REQUEST_TARGET)) | extended;
        out.extend_from_slice(&flags.to_le_bytes());
        for part in &parts {
            out.extend_from_slice(part);
        }
        Ok(format!("NTLM {}", STANDARD.encode(out)))
    }

    /// The hash of the password.
    fn secret(&self) -> [u8; 16] {
        Md4::digest(utf16(&self.password)).into()
    }

    /// LM and NT response of version 1.
    fn first(&self, challenge: &Challenge<'_>, fresh: &Fresh) -> (Vec<u8>, Vec<u8>) {
        let secret = self.secret();
        if challenge.flags & EXTENDED_SECURITY == 0 {
            let nt = sealed(&secret, &challenge.nonce);
            return (nt.clone(), nt);
        }
        let mut lm = fresh.challenge.to_vec();
        lm.resize(24, 0);
        let mut both = Md5::new();
        both.update(challenge.nonce);
        both.update(fresh.challenge);
        let both: [u8; 16] = both.finalize().into();
        let mut nonce = [0; 8];
        nonce.copy_from_slice(&both[..8]);
        (lm, sealed(&secret, &nonce))
    }

    /// LM and NT response of version 2.
    fn second(&self, challenge: &Challenge<'_>, fresh: &Fresh) -> (Vec<u8>, Vec<u8>) {
        let name = format!("{}{}", self.user.to_uppercase(), self.domain);
        let key = keyed(&self.secret(), &[&utf16(&name)]);
        let clock = challenge.clock();
        let mut about = vec![1, 1, 0, 0, 0, 0, 0, 0];
        about.extend_from_slice(&clock.unwrap_or(fresh.time).to_le_bytes());
        about.extend_from_slice(&fresh.challenge);
        about.extend_from_slice(&[0; 4]);
        about.extend_from_slice(challenge.about);
        about.extend_from_slice(&[0; 4]);
        let mut nt = keyed(&key, &[&challenge.nonce, &about]).to_vec();
        nt.extend_from_slice(&about);
        // A backend that says what time it is wants no LM response.
        let lm = match clock {
            Some(_) => vec![0; 24],
            None => {
                let mut lm = keyed(&key, &[&challenge.nonce, &fresh.challenge]).to_vec();
                lm.extend_from_slice(&fresh.challenge);
                lm
            }
        };
        (lm, nt)
    }
}

impl<'a> Challenge<'a> {
    fn read(bytes: &'a [u8]) -> Result<Challenge<'a>, String> {
        let number =
            |at: usize| -> Option<u32> { Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?)) };
        if !bytes.starts_with(SIGNATURE) || number(8) != Some(2) {
            return Err("it is not a challenge of NTLM".to_owned());
        }
        let short = || "it is too short".to_owned();
        let nonce = bytes.get(24..32).and_then(|slice| slice.try_into().ok()).ok_or_else(short)?;
        let flags = number(20).ok_or_else(short)?;
        if flags & UNICODE == 0 {
            return Err("it does not offer Unicode".to_owned());
        }
        // Older ones end before it.
        let about = match (number(40), number(44)) {
            (Some(length), Some(at)) if flags & TARGET_INFO != 0 => {
                let (length, at) = ((length & 0xffff) as usize, at as usize);
                let end = at.checked_add(length).ok_or_else(short)?;
                bytes.get(at..end).ok_or_else(short)?
            }
            _ => &[],
        };
        Ok(Challenge { nonce, flags, about })
    }

    /// The time that the backend says.
    fn clock(&self) -> Option<u64> {
        let mut rest = self.about;
        while let [a, b, c, d, tail @ ..] = rest {
            let (number, length) = (u16::from_le_bytes([*a, *b]), usize::from(u16::from_le_bytes([*c, *d])));
            let value = tail.get(..length)?;
            if number == TIMESTAMP {
                return Some(u64::from_le_bytes(value.try_into().ok()?));
            }
            rest = &tail[length..];
        }
        None
    }
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// HMAC-MD5.
fn keyed(key: &[u8; 16], parts: &[&[u8]]) -> [u8; 16] {
    let mut mac = Hmac::<Md5>::new_from_slice(key).expect("a key of any length will do");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// DES of a nonce under the three parts of a hash that is filled up with zeros (DESL).
fn sealed(secret: &[u8; 16], nonce: &[u8; 8]) -> Vec<u8> {
    let mut keys = [0; 21];
    keys[..16].copy_from_slice(secret);
    let mut out = Vec::with_capacity(24);
    for key in keys.chunks_exact(7) {
        // Seven bits in each byte; the eighth is parity, which nobody looks at.
        let mut wide = [0u8; 8];
        let bits = key.iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
        for (index, byte) in wide.iter_mut().enumerate() {
            *byte = ((bits >> (49 - 7 * index)) as u8 & 0x7f) << 1;
        }
        let mut block = des::cipher::Block::<Des>::from(*nonce);
        Des::new(&wide.into()).encrypt_block(&mut block);
        out.extend_from_slice(&block);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The account and the numbers of \[MS-NLMP\] 4.2.
    fn account(version: Version) -> Account {
        let owned = str::to_owned;
        Account {
            user: owned("User"),
            password: owned("Password"),
            host: owned("COMPUTER"),
            domain: owned("Domain"),
            version,
        }
    }

    const FRESH: Fresh = Fresh { time: 0, challenge: [0xaa; 8] };
    const NONCE: [u8; 8] = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef];

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn about() -> Vec<u8> {
        let mut about = Vec::new();
        for (number, text) in [(2u16, "Domain"), (1, "Server")] {
            about.extend_from_slice(&number.to_le_bytes());
            about.extend_from_slice(&12u16.to_le_bytes());
            about.extend_from_slice(&utf16(text));
        }
        about.extend_from_slice(&[0; 4]);
        about
    }

    /// A whole second message.
    fn challenge(flags: u32, about: &[u8]) -> Vec<u8> {
        let mut out = SIGNATURE.to_vec();
        out.extend_from_slice(&2u32.to_le_bytes());
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(&NONCE);
        out.extend_from_slice(&[0; 8]);
        let length = about.len() as u16;
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&48u32.to_le_bytes());
        out.extend_from_slice(about);
        out
    }

    #[test]
    fn the_examples_of_the_specification() {
        let plain = Challenge { nonce: NONCE, flags: UNICODE, about: &[] };
        let (lm, nt) = account(Version::V1).first(&plain, &FRESH);
        assert_eq!(hex(&account(Version::V1).secret()), "a4f49c406510bdcab6824ee7c30fd852");
        assert_eq!((hex(&lm), hex(&nt)), {
            let nt = "67c43011f30298a2ad35ece64f16331c44bdbed927841f94".to_owned();
            (nt.clone(), nt)
        });
        let extended = Challenge { flags: UNICODE | EXTENDED_SECURITY, ..plain };
        let (lm, nt) = account(Version::V1).first(&extended, &FRESH);
        assert_eq!(hex(&lm), "aaaaaaaaaaaaaaaa00000000000000000000000000000000");
        assert_eq!(hex(&nt), "7537f803ae367128ca458204bde7caf81e97ed2683267232");
        let about = about();
        let second = Challenge { nonce: NONCE, flags: UNICODE, about: &about };
        let (lm, nt) = account(Version::V2).second(&second, &FRESH);
        assert_eq!(hex(&lm), "86c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa");
        assert_eq!(hex(&nt[..16]), "68cd0ab851e51c96aabc927bebef6a1c");
    }

    #[test]
    fn the_third_message_answers_the_second() {
        let second = STANDARD.encode(challenge(UNICODE | TARGET_INFO | EXTENDED_SECURITY, &about()));
        let third = account(Version::V2).authenticate(&second, &FRESH).expect("it is a challenge");
        let bytes = STANDARD.decode(third.strip_prefix("NTLM ").expect("the scheme")).expect("Base64");
        let part = |at: usize| {
            let length = usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
            let start = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().expect("four")) as usize;
            bytes[start..start + length].to_vec()
        };
        assert_eq!((&bytes[..8], bytes[8]), (&SIGNATURE[..], 3));
        assert_eq!(hex(&part(12)), "86c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa");
        assert_eq!(hex(&part(20)[..16]), "68cd0ab851e51c96aabc927bebef6a1c");
        assert_eq!((part(28), part(36), part(44)), (utf16("Domain"), utf16("User"), utf16("COMPUTER")));
        // A backend that tells the time gets it back, and no LM response.
        let mut timed = vec![7, 0, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        timed.extend_from_slice(&about());
        let timed_challenge = challenge(UNICODE | TARGET_INFO, &timed);
        let timed_challenge = Challenge::read(&timed_challenge).expect("a challenge");
        let (lm, nt) = account(Version::V2).second(&timed_challenge, &FRESH);
        assert_eq!((lm, &nt[24..32]), (vec![0; 24], &[1, 2, 3, 4, 5, 6, 7, 8][..]));
        assert!(account(Version::V1).negotiate().starts_with("NTLM TlRMTVNTUAAB"));
    }

    #[test]
    fn what_is_no_challenge_is_said() {
        let whole = challenge(UNICODE | TARGET_INFO, &about());
        for (bytes, says) in [
            (b"".to_vec(), "not a challenge"),
            (b"NTLMSSP\0\x01\0\0\0".to_vec(), "not a challenge"),
            (whole[..20].to_vec(), "too short"),
            (whole[..60].to_vec(), "too short"),
            (challenge(0, &[]), "Unicode"),
            (vec![0; LARGEST * 2], "too large"),
        ] {
            let why = account(Version::V2).authenticate(&STANDARD.encode(bytes), &FRESH).expect_err(says);
            assert!(why.contains(says), "{why}");
        }
        assert!(account(Version::V2).authenticate("%", &FRESH).is_err());
        // Every part of one is read without a panic.
        for end in 0..whole.len() {
            let _ = account(Version::V1).authenticate(&STANDARD.encode(&whole[..end]), &FRESH);
        }
    }
}
