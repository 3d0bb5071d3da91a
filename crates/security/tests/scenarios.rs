//! The policies of WSO2's scenarios in `examples/security`: each one is kept, or refused with the reason that the documentation gives.
#![allow(clippy::unwrap_used)] // helpers of tests

use busbar_security::Policy;
use std::path::Path;

/// What is said of those that cannot be kept.
fn refused(number: u32) -> Option<&'static str> {
    match number {
        1..=8 => None,
        9..=15 => Some("secure conversations are not held here yet"),
        16 | 17 => Some("IssuedToken: tokens of a security token service (SAML) are not taken here"),
        _ => Some("KerberosToken: Kerberos is not spoken here"),
    }
}

#[test]
fn every_policy_is_kept_or_refused_with_its_reason() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/security");
    let guide = std::fs::read_to_string(folder.join("../../docs/security.md")).unwrap();
    let mut ids = Vec::new();
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let number: u32 = path.file_stem().unwrap().to_str().unwrap()[8..].parse().unwrap();
        let id = text.split('"').nth(1).unwrap().to_owned();
        match (Policy::parse(text.as_bytes()), refused(number)) {
            (Ok(policy), None) => assert_eq!(policy.id, id),
            (Err(why), Some(reason)) => assert!(why.contains(reason), "{number}: {why}"),
            (parsed, wanted) => panic!("{number}: {parsed:?}, and not {wanted:?}"),
        }
        assert!(
            guide.contains(&format!("| {number} | `{id}` |")),
            "docs/security.md does not name {number}, {id}"
        );
        // Whoever opens the file is told too.
        assert_eq!(text.contains("is left out."), refused(number).is_some(), "{number}");
        ids.push(id);
        numbers.push(number);
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=17).chain([20]).collect::<Vec<_>>());
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), numbers.len(), "two policies have one id");
}
