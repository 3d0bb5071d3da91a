//! Java key stores (JKS): the format that WSO2's servers come with.

use super::Entry;
use crate::algorithm::{Digest, Secret, sha1};
use der::{OCTETS, OID, Reader, SEQUENCE};

const DAMAGED: &str = "it is not a JKS key store, or damaged";

/// 1.3.6.1.4.1.42.2.17.1.1
const PROTECTOR: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x2a, 0x02, 0x11, 0x01, 0x01];

/// What is left to be read.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<String> {
        let length = u16::from_be_bytes(self.bytes(2)?.try_into().ok()?);
        Some(String::from_utf8_lossy(self.bytes(usize::from(length))?).into_owned())
    }

    fn block(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.bytes(length as usize)
    }

    fn certificate(&mut self, version: u32) -> Option<Vec<u8>> {
        if version == 2 {
            self.text()?;
        }
        self.block().map(<[u8]>::to_vec)
    }
}

fn utf16(password: &str) -> Secret {
    Secret::new(password.encode_utf16().flat_map(u16::to_be_bytes).collect())
}

pub(super) fn read(bytes: &[u8], password: &str, key_password: &str) -> Result<Vec<Entry>, String> {
    let (body, digest) = bytes.split_at_checked(bytes.len().saturating_sub(20)).ok_or(DAMAGED)?;
    let mut keyed = utf16(password);
    keyed.extend_from_slice(b"Mighty Aphrodite");
    keyed.extend_from_slice(body);
    if Digest::Sha1.hash(&keyed).as_ref() != digest {
        return Err("the password is wrong, or the key store is damaged".to_owned());
    }
    let mut input = Input(body);
    let mut entries = Vec::new();
    let header = (input.number(), input.number(), input.number());
    let (_, Some(version @ (1 | 2)), Some(count)) = header else { return Err(DAMAGED.to_owned()) };
    for _ in 0..count.min(super::ENTRIES as u32 + 1) {
        let (kind, alias) = (input.number().ok_or(DAMAGED)?, input.text().ok_or(DAMAGED)?);
        input.bytes(8).ok_or(DAMAGED)?;
        match kind {
            1 => {
                let sealed = input.block().ok_or(DAMAGED)?;
                let count = input.number().ok_or(DAMAGED)?;
                let chain: Option<Vec<_>> = (0..count.min(64)).map(|_| input.certificate(version)).collect();
                let key = open(sealed, key_password)
                    .ok_or_else(|| format!("the password of the private key {alias} is wrong"))?;
                entries.push(Entry { alias, key: Some(key), chain: chain.ok_or(DAMAGED)? });
            }
            2 => {
                let chain = vec![input.certificate(version).ok_or(DAMAGED)?];
                entries.push(Entry { alias, key: None, chain });
            }
            _ => return Err(DAMAGED.to_owned()),
        }
    }
    Ok(entries)
}

/// A key as Sun's own protector keeps it: a stream of SHA-1 over password and what came before.
fn open(sealed: &[u8], password: &str) -> Option<Secret> {
    let mut info = Reader(sealed).enter(SEQUENCE)?;
    (info.enter(SEQUENCE)?.value(OID)?.content == PROTECTOR).then_some(())?;
    let data = info.value(OCTETS)?.content;
    let (salt, data) = data.split_at_checked(20)?;
    let (data, check) = data.split_at_checked(data.len().checked_sub(20)?)?;
    let password = utf16(password);
    let after = |more: &[u8]| {
        let mut keyed = password.clone();
        keyed.extend_from_slice(more);
        sha1(&keyed)
    };
    let mut plain = Secret::new(Vec::with_capacity(data.len()));
    let mut stream = after(salt);
    for chunk in data.chunks(20) {
        plain.extend(chunk.iter().zip(stream).map(|(byte, key)| byte ^ key));
        stream = after(&stream);
    }
    (after(&plain) == *check).then_some(plain)
}
