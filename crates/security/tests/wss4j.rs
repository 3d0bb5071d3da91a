//! WSS4J as the other side, in both directions. Skipped where Java is absent, or Maven, which fetches WSS4J (`tests/services/wss4j`).
#![allow(clippy::unwrap_used, missing_docs)]

mod common;
mod interop;

use busbar_security::keys::{KeyStore, Trust};
use busbar_security::{Exchange, Policy, Role, Side};
use common::{ANSWER, REQUEST, World, profiles};
use interop::{Java, keys, libraries};
use std::path::Path;
use std::sync::Arc;

fn side(role: Role, directory: &Path, policy: &str) -> Side {
    let mut policy = Policy::parse(policy.as_bytes()).unwrap();
    policy.config.user = "alice".to_owned();
    let file = if role == Role::Initiator { "client.p12" } else { "service.jks" };
    let bytes = std::fs::read(directory.join(file)).unwrap();
    assert!(KeyStore::read(&bytes, "wrong", None).is_err());
    let store = KeyStore::read(&bytes, "secret", None).unwrap();
    assert_eq!((store.identities.len(), store.certificates.len()), (1, 1));
    let trust = Arc::new(Trust::new(&store, &[]).unwrap());
    let peer = (role == Role::Initiator).then(|| Arc::clone(store.certificate("service").unwrap()));
    let identity = store.identities.first().cloned();
    Side {
        role,
        policy: Arc::new(policy),
        store: Arc::new(store),
        trust,
        own: identity,
        peer,
        parse: Default::default(),
    }
}

/// Whether WSS4J found the signature of the request confirmed, where the policy asks for it.
fn confirms(report: &str, signature: &str, side: &Side) -> bool {
    let signature = signature.trim();
    !side.policy.confirmation
        || report.contains("confirmed=") && (signature.is_empty() || report.contains(signature))
}

#[test]
fn wss4j_and_this_understand_each_other() {
    let Some(libraries) = libraries() else { return };
    let directory = std::env::temp_dir().join(format!("busbar-wss4j-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    keys(&directory);
    let mut java_client = Java::start(&libraries, &directory, "client.p12", "client").unwrap();
    let mut java_service = Java::start(&libraries, &directory, "service.jks", "service").unwrap();
    let mut wrong = Vec::new();
    for (name, policy, how) in profiles() {
        let (client, service) =
            (side(Role::Initiator, &directory, &policy), side(Role::Recipient, &directory, &policy));
        let world = World::default();
        // This asks, WSS4J reads it.
        let mut asked = Exchange::default();
        let request = world.secure(REQUEST, &client, &mut asked).unwrap();
        match java_service.ask("open", "-", &request) {
            Ok((report, text)) => {
                if !text.contains("<price>12 &lt; 13 &amp; \"ä\"</price>")
                    || client.policy.signed.body && !report.contains("Body")
                {
                    wrong.push(format!("{name}, request to WSS4J: {report}: {text}"));
                }
            }
            Err(why) => wrong.push(format!("{name}, request to WSS4J: {why}\n{request}")),
        }
        // WSS4J answers that, and confirms its signature.
        let response = java_service.ask("secure", &format!("answer,{how}"), ANSWER);
        match response.map(|(_, text)| (world.open(&text, &client, &mut asked), text)) {
            Ok((Ok(opened), _))
                if xml::to_string(&opened.document, xml::Document::ROOT).contains("bought") => {}
            Ok((opened, text)) => {
                wrong.push(format!("{name}, answer of WSS4J: {:?}\n{text}", opened.map(|_| ())))
            }
            Err(why) => wrong.push(format!("{name}, WSS4J cannot answer: {why}")),
        }
        // WSS4J asks, this reads and answers, WSS4J reads that.
        let (value, request) = match java_client.ask("secure", how, REQUEST) {
            Ok(envelope) => envelope,
            Err(why) => {
                wrong.push(format!("{name}, WSS4J cannot ask: {why}"));
                continue;
            }
        };
        let mut answers = Exchange::default();
        match world.open(&request, &service, &mut answers) {
            Ok(opened) => {
                let text = xml::to_string(&opened.document, xml::Document::ROOT);
                if !text.contains("<price>12 &lt; 13 &amp; \"ä\"</price>") {
                    wrong.push(format!("{name}, request of WSS4J: {text}"));
                }
                let response = world.secure(ANSWER, &service, &mut answers).unwrap();
                match java_client.ask("open", "-", &response) {
                    Ok((report, text)) if text.contains("bought") && confirms(&report, &value, &client) => {}
                    other => wrong.push(format!("{name}, answer to WSS4J: {other:?}\n{response}")),
                }
            }
            Err(why) => wrong.push(format!("{name}, request of WSS4J: {why}\n{request}")),
        }
    }
    _ = std::fs::remove_dir_all(&directory);
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
