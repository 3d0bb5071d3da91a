//! Revocation lists of certificates (RFC 5280, 5.1): which of them is the newest.

use crate::{GENERALIZED_TIME, INTEGER, OCTETS, OID, Reader, SEQUENCE, UTC_TIME};
use std::cmp::Reverse;

/// id-ce-cRLNumber.
const NUMBER: &[u8] = &[0x55, 0x1d, 0x14];

/// Puts lists in an order in which a newer one of an issuer is before an older one, whatever their order was: whoever looks for the list of
/// an issuer takes the first, and an older list does not know who was revoked since. A list that cannot be read is last.
pub fn newest_first<L: AsRef<[u8]>>(lists: &mut [L]) {
    // What is equally new keeps this order.
    lists.sort_unstable_by(|one, other| other.as_ref().cmp(one.as_ref()));
    lists.sort_by_cached_key(|list| Reverse(age(list.as_ref())));
}

/// How new a list is; what is greater is newer.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Age {
    /// When it was issued, as digits that compare like times.
    this_update: String,
    /// Lists of the same second have increasing numbers (RFC 5280, 5.2.3): the significant bytes, and how many there are.
    number: (usize, Vec<u8>),
    /// Without numbers, the one that refuses more.
    revoked: usize,
}

fn age(list: &[u8]) -> Option<Age> {
    let mut fields = Reader(list).enter(SEQUENCE)?.enter(SEQUENCE)?;
    let mut first = fields.any()?;
    if first.tag == INTEGER {
        first = fields.any()?;
    }
    // The first is the algorithm, the next one the issuer.
    (first.tag == SEQUENCE).then_some(())?;
    fields.value(SEQUENCE)?;
    let this_update = fields.any()?.time_digits()?;
    // The next update, where it is named.
    _ = fields.value(UTC_TIME).or_else(|| fields.value(GENERALIZED_TIME));
    let revoked = fields.value(SEQUENCE).map_or(0, |revoked| revoked.content.len());
    let number = fields.tagged(0).and_then(number).unwrap_or_default();
    Some(Age { this_update, number: (number.len(), number), revoked })
}

/// The number of a list among its extensions, without zeros in front.
fn number(mut tagged: Reader<'_>) -> Option<Vec<u8>> {
    let mut extensions = tagged.enter(SEQUENCE)?;
    while let Some(mut extension) = extensions.enter(SEQUENCE) {
        if extension.value(OID)?.content == NUMBER {
            let value = extension.value(OCTETS)?.inside().value(INTEGER)?.content;
            return Some(value.iter().copied().skip_while(|&byte| byte == 0).collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{tagged, tlv};

    /// Whatever the order is in which they are given.
    fn are_put_in_order(ordered: &[Vec<u8>]) {
        let mut lists = ordered.to_vec();
        for _ in 0..lists.len() {
            lists.rotate_left(1);
            let mut sorted = lists.clone();
            newest_first(&mut sorted);
            assert_eq!(sorted, ordered);
        }
    }

    #[test]
    fn newer_lists_are_first() {
        let list = |version: bool, tag: u8, time: &str| {
            let version = if version { tlv(INTEGER, &[&[1]]) } else { Vec::new() };
            let (algorithm, issuer) = (tlv(SEQUENCE, &[]), tlv(SEQUENCE, &[b"x"]));
            let time = tlv(tag, &[time.as_bytes()]);
            tlv(SEQUENCE, &[&tlv(SEQUENCE, &[&version, &algorithm, &issuer, &time])])
        };
        let ordered = [
            list(true, GENERALIZED_TIME, "20500101000000Z"),
            list(true, UTC_TIME, "261128000000Z"),
            list(false, UTC_TIME, "261127000000Z"),
            list(true, UTC_TIME, "991231000000Z"),
            b"no list".to_vec(),
        ];
        are_put_in_order(&ordered);
    }

    #[test]
    fn lists_of_one_second_have_an_order_too() {
        let list = |revoked: &[u8], number: Option<&[u8]>| {
            let (algorithm, issuer) = (tlv(SEQUENCE, &[]), tlv(SEQUENCE, &[b"x"]));
            let times =
                [tlv(UTC_TIME, &[b"261128000000Z"]), tlv(GENERALIZED_TIME, &[b"20501128000000Z"])].concat();
            let revoked = if revoked.is_empty() { Vec::new() } else { tlv(SEQUENCE, &[revoked]) };
            let extension =
                |name: &[u8], value: &[u8]| tlv(SEQUENCE, &[&tlv(OID, &[name]), &tlv(OCTETS, &[value])]);
            let extensions = number.map_or_else(Vec::new, |number| {
                let both = [extension(b"x", b"y"), extension(NUMBER, &tlv(INTEGER, &[number]))].concat();
                tagged(0, &[&tlv(SEQUENCE, &[&both])])
            });
            tlv(SEQUENCE, &[&tlv(SEQUENCE, &[&algorithm, &issuer, &times, &revoked, &extensions])])
        };
        let ordered = [
            list(b"", Some(&[1, 0])),
            list(b"", Some(&[0, 0xff])),
            list(b"bb", Some(&[9])),
            list(b"b", Some(&[9])),
            list(b"aaaa", None),
            list(b"", None),
        ];
        are_put_in_order(&ordered);
    }
}
