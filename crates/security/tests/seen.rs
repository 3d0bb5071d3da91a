//! What the flow sees of a message, and what it learns of the sender: nothing that no signature covers, and nobody who was not checked.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use busbar_security::{Exchange, FailureKind, Role};
use common::*;
use xml::Document;

const WSU: &str = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd";

/// What is signed of the request, with its end tag.
fn part<'a>(request: &'a str, start: &str, end: &str) -> &'a str {
    let from = request.find(start).unwrap();
    let to = from + request[from..].find(end).unwrap() + end.len();
    &request[from..to]
}

/// A token and a signature that the policy does not ask for say nothing about the sender.
#[test]
fn who_is_not_asked_for_is_nobody() {
    let client = side(Role::Initiator, &scenario(2));
    let world = World::default();
    let signed = world.secure(REQUEST, &client, &mut Exchange::default()).unwrap();
    let token = |more: &str| {
        format!(
            "<wsse:UsernameToken><wsse:Username>alice</wsse:Username>{more}</wsse:UsernameToken></wsse:Security>"
        )
    };
    for more in ["", "<wsse:Password>wrong</wsse:Password>", "<wsse:Password>wonder&lt;land></wsse:Password>"]
    {
        let claimed = signed.replace("</wsse:Security>", &token(more));
        let mut exchange = Exchange::default();
        let fresh = World { now: world.now, ..World::default() };
        let opened = fresh.open(&claimed, &side(Role::Recipient, &scenario(2)), &mut exchange).unwrap();
        assert_eq!((opened.user, exchange.user), (None, None), "{more}");
        assert!(opened.signer.unwrap().subject.contains("client"));
    }
    // The password is right, and the signature that somebody else made of another message says nothing.
    let claimed =
        signed.replace("</wsse:Security>", &token("<wsse:Password>wonder&lt;land></wsse:Password>"));
    let opened = World { now: world.now, ..World::default() }
        .open(&claimed, &side(Role::Recipient, &scenario(1)), &mut Exchange::default())
        .unwrap();
    assert_eq!(opened.user.as_deref(), Some("alice"));
    assert!(opened.signer.is_none());
}

/// Everything around the signed body: headers, security headers for others, attributes and texts.
#[test]
fn what_no_signature_covers_is_not_seen() {
    let policy = scenario(2);
    let client = side(Role::Initiator, &policy);
    let world = World::default();
    let request = world.secure(REQUEST, &client, &mut Exchange::default()).unwrap();
    let header = |more: &str| request.replace("<soapenv:Header>", &format!("<soapenv:Header>{more}"));
    let for_other = |actor: &str| {
        let name = part(&request, "<wsse:Security", ">");
        let name = name.split_once(' ').unwrap().1.trim_end_matches('>');
        header(&format!("<wsse:Security {name} soapenv:actor='{actor}'><evil/></wsse:Security>"))
    };
    for (what, message) in [
        ("a security header for somebody else", for_other("urn:somebody")),
        (
            "an attribute of the envelope",
            request.replacen("<soapenv:Envelope", "<soapenv:Envelope evil='1'", 1),
        ),
        (
            "an attribute of the envelope with a prefix",
            request.replacen("<soapenv:Envelope", "<soapenv:Envelope xmlns:e='urn:e' e:evil='1'", 1),
        ),
        ("an attribute of the header", request.replacen("<soapenv:Header", "<soapenv:Header evil='1'", 1)),
        ("a text in the header", header("evil")),
        ("a text in the envelope", request.replacen("<soapenv:Header", "evil<soapenv:Header", 1)),
        ("a text behind the body", request.replace("</soapenv:Body>", "</soapenv:Body>evil")),
        ("an instruction in the header", header("<?evil evil?>")),
    ] {
        assert_ne!(message, request, "{what}");
        let fresh = World { now: world.now, ..World::default() };
        let opened = fresh.open(&message, &side(Role::Recipient, &policy), &mut Exchange::default());
        let text = xml::to_string(&opened.unwrap().document, Document::ROOT);
        assert!(!text.contains("evil") && text.contains("<price>"), "{what}: {text}");
    }
    // What SOAP says of the envelope stays.
    let encoded = request.replacen("<soapenv:Envelope", "<soapenv:Envelope soapenv:encodingStyle='urn:x'", 1);
    let fresh = World { now: world.now, ..World::default() };
    let opened = fresh.open(&encoded, &side(Role::Recipient, &policy), &mut Exchange::default()).unwrap();
    assert!(xml::to_string(&opened.document, Document::ROOT).contains("encodingStyle"));
}

/// A signed header that is moved away would be missing without a word (the optional element of McIntosh and Austel).
#[test]
fn a_signed_header_that_was_moved_away_is_missed() {
    let text = policy(
        "asymmetric",
        "Basic256",
        "",
        "<sp:SignedParts><sp:Body/><sp:Header Namespace='urn:h'/></sp:SignedParts>",
    );
    let headers_only = policy(
        "asymmetric",
        "Basic256",
        "",
        "<sp:SignedParts><sp:Header Namespace='urn:h'/></sp:SignedParts>",
    );
    for text in [text, headers_only] {
        let client = side(Role::Initiator, &text);
        let service = side(Role::Recipient, &text);
        let world = World::default();
        let request = world.secure(REQUEST, &client, &mut Exchange::default()).unwrap();
        let route = part(&request, "<h:Route", "</h:Route>");
        assert!(route.contains(WSU) || route.contains("wsu:Id"), "{route}");
        let without = request.replace(route, "");
        let inside = |end: &str, wrapped: &str| without.replacen(end, &format!("{wrapped}{end}"), 1);
        let wrapped = format!("<w xmlns='urn:w'>{route}</w>");
        let reference = format!("<wsse:SecurityTokenReference>{wrapped}</wsse:SecurityTokenReference>");
        for (what, message) in [
            ("within another header", inside("</soapenv:Header>", &wrapped)),
            ("within a reference to a token", inside("</wsse:Security>", &reference)),
            ("within the timestamp", inside("</wsu:Timestamp>", &wrapped)),
            ("within the value of the signature", inside("</ds:SignatureValue>", &wrapped)),
            ("in the body", inside("</soapenv:Body>", route)),
            (
                "in the security header of somebody else",
                inside("</soapenv:Header>", &format!("<x xmlns='urn:x' soapenv:actor='urn:y'>{wrapped}</x>")),
            ),
        ] {
            assert_ne!(message, without, "{what}");
            let fresh = World { now: world.now, ..World::default() };
            let opened = fresh.open(&message, &service, &mut Exchange::default());
            let failure = opened.map(|opened| xml::to_string(&opened.document, Document::ROOT));
            assert_eq!(
                failure.as_ref().map_err(|failure| failure.kind),
                Err(FailureKind::Invalid),
                "{what}: {failure:?}"
            );
        }
        // At another place among the headers it is seen.
        let moved = inside("</soapenv:Header>", route);
        let opened =
            World { now: world.now, ..World::default() }.open(&moved, &service, &mut Exchange::default());
        assert!(xml::to_string(&opened.unwrap().document, Document::ROOT).contains("Route"));
    }
}
