//! Revocation lists of certificates (RFC 5280, 5.1): which of them is the newest.

use crate::{INTEGER, Reader, SEQUENCE};

/// Puts lists in an order in which a newer one of an issuer is before an older one: whoever looks for the list of an issuer takes the
/// first, and an older list does not know who was revoked since. A list that cannot be read is last.
pub fn newest_first<L: AsRef<[u8]>>(lists: &mut [L]) {
    lists.sort_by_cached_key(|list| std::cmp::Reverse(this_update(list.as_ref())));
}

/// When a list was issued, as digits that compare like times.
fn this_update(list: &[u8]) -> Option<String> {
    let mut fields = Reader(list).enter(SEQUENCE)?.enter(SEQUENCE)?;
    let mut first = fields.any()?;
    if first.tag == INTEGER {
        first = fields.any()?;
    }
    // The first is the algorithm, the next one the issuer.
    (first.tag == SEQUENCE).then_some(())?;
    fields.value(SEQUENCE)?;
    fields.any()?.time_digits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GENERALIZED_TIME, UTC_TIME, tlv};

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
        let mut lists = ordered.to_vec();
        for _ in 0..lists.len() {
            lists.rotate_left(1);
            let mut sorted = lists.clone();
            newest_first(&mut sorted);
            assert_eq!(sorted, ordered);
        }
    }
}
