//! PKCS#12 key stores (RFC 7292), as openssl and Java write them.

use super::{Entry, sealed};
use crate::algorithm::{Digest, Secret, is_mac};
use der::{OCTETS, OID, Reader, SEQUENCE, SET};

const DAMAGED: &str = "it is not a PKCS#12 key store, or damaged";

const DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01];
const ENCRYPTED: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x06];
const BAG: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x0c, 0x0a, 0x01];
const FRIENDLY_NAME: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x14];
const LOCAL_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x15];
const SHA1: &[u8] = &[0x2b, 0x0e, 0x03, 0x02, 0x1a];
const SHA2: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];

/// Most rounds of key derivation of the authentication.
const ROUNDS: u32 = 5_000_000;

struct Bag {
    name: Option<String>,
    id: Option<Vec<u8>>,
    key: Option<Secret>,
    certificate: Option<Vec<u8>>,
}

pub(super) fn read(bytes: &[u8], password: &str) -> Result<Vec<Entry>, String> {
    let mut pfx = Reader(bytes).enter(SEQUENCE).ok_or(DAMAGED)?;
    let parts = || {
        pfx.number().filter(|version| *version == 3)?;
        let mut content = pfx.enter(SEQUENCE)?;
        (content.value(OID)?.content == DATA).then_some(())?;
        let safe = content.enter(0xa0)?.value(OCTETS)?.content;
        Some((safe, pfx.enter(SEQUENCE)))
    };
    let mut parts = parts;
    let (safe, mac) = parts().ok_or(DAMAGED)?;
    match mac {
        None => {
            return Err("it is not authenticated by its password, so anybody may have changed it".to_owned());
        }
        Some(mac) => {
            if !is_authentic(mac, safe, password)
                .ok_or("it is authenticated in a way that is not known here")?
            {
                return Err("the password is wrong, or the key store is damaged".to_owned());
            }
        }
    }
    let mut bags = Vec::new();
    let mut contents = Reader(safe).enter(SEQUENCE).ok_or(DAMAGED)?;
    while let Some(mut content) = contents.enter(SEQUENCE) {
        let kind = content.value(OID).ok_or(DAMAGED)?.content;
        let mut inside = content.enter(0xa0).ok_or(DAMAGED)?;
        if kind == DATA {
            let data = inside.value(OCTETS).ok_or(DAMAGED)?.content;
            read_bags(data, password, &mut bags)?;
        } else if kind == ENCRYPTED {
            let parts = || {
                let mut data = inside.enter(SEQUENCE)?;
                data.number()?;
                let mut info = data.enter(SEQUENCE)?;
                info.value(OID)?;
                Some((info.value(SEQUENCE)?, info.value(0x80)?.content))
            };
            let mut parts = parts;
            let (algorithm, data) = parts().ok_or(DAMAGED)?;
            read_bags(&sealed::decrypt(algorithm, data, password)?, password, &mut bags)?;
        }
    }
    Ok(entries(bags))
}

fn is_authentic(mut mac: Reader<'_>, safe: &[u8], password: &str) -> Option<bool> {
    let mut digest = mac.enter(SEQUENCE)?;
    let oid = digest.enter(SEQUENCE)?.value(OID)?.content;
    let how = match (oid == SHA1, oid.strip_prefix(SHA2)) {
        (true, _) => Digest::Sha1,
        (_, Some([1])) => Digest::Sha256,
        (_, Some([2])) => Digest::Sha384,
        (_, Some([3])) => Digest::Sha512,
        _ => return None,
    };
    let value = digest.value(OCTETS)?.content;
    let salt = mac.value(OCTETS)?.content;
    let rounds = if mac.is_empty() { 1 } else { mac.number()? };
    if rounds > ROUNDS {
        return None;
    }
    let key = sealed::pkcs12(how, 3, password, salt, rounds, how.hash(b"").as_ref().len());
    Some(is_mac(how, &key, safe, value))
}

fn read_bags(data: &[u8], password: &str, out: &mut Vec<Bag>) -> Result<(), String> {
    let mut bags = Reader(data).enter(SEQUENCE).ok_or(DAMAGED)?;
    while let Some(mut bag) = bags.enter(SEQUENCE) {
        let kind = bag.value(OID).ok_or(DAMAGED)?.content;
        let mut inside = bag.enter(0xa0).ok_or(DAMAGED)?;
        let mut parsed = Bag { name: None, id: None, key: None, certificate: None };
        match kind.strip_prefix(BAG) {
            Some([1]) => parsed.key = Some(Secret::new(inside.any().ok_or(DAMAGED)?.whole.to_vec())),
            Some([2]) => parsed.key = Some(sealed::open(inside.any().ok_or(DAMAGED)?.whole, password)?),
            Some([3]) => {
                let parts = || {
                    let mut cert_bag = inside.enter(SEQUENCE)?;
                    cert_bag.value(OID)?;
                    cert_bag.enter(0xa0)?.value(OCTETS)
                };
                let mut parts = parts;
                parsed.certificate = Some(parts().ok_or(DAMAGED)?.content.to_vec());
            }
            _ => continue,
        }
        let mut attributes = bag.enter(SET).unwrap_or(Reader(&[]));
        while let Some(mut attribute) = attributes.enter(SEQUENCE) {
            let oid = attribute.value(OID).ok_or(DAMAGED)?.content;
            let value = attribute.enter(SET).and_then(|mut values| values.any()).ok_or(DAMAGED)?;
            if oid == FRIENDLY_NAME {
                let units = value.content.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
                parsed.name =
                    Some(char::decode_utf16(units).map(|unit| unit.unwrap_or('\u{fffd}')).collect());
            } else if oid == LOCAL_KEY {
                parsed.id = Some(value.content.to_vec());
            }
        }
        out.push(parsed);
    }
    Ok(())
}

/// Keys find their certificates by the local id, or there is only one of each.
fn entries(mut bags: Vec<Bag>) -> Vec<Entry> {
    let mut entries = Vec::new();
    let keys: Vec<Bag> = bags.extract_if(.., |bag| bag.key.is_some()).collect();
    let single = keys.len() == 1;
    for key in keys {
        let mine = |bag: &Bag| key.id.is_some() && bag.id == key.id;
        let at = bags.iter().position(mine).or_else(|| (single && !bags.is_empty()).then_some(0));
        let certificate = at.map(|at| bags.remove(at));
        let name = key.name.or_else(|| certificate.as_ref().and_then(|bag| bag.name.clone()));
        let chain = certificate.and_then(|bag| bag.certificate).into_iter().collect();
        entries.push(Entry { alias: name.unwrap_or_default(), key: key.key, chain });
    }
    for bag in bags {
        let chain = bag.certificate.into_iter().collect();
        entries.push(Entry { alias: bag.name.unwrap_or_default(), key: None, chain });
    }
    entries
}
