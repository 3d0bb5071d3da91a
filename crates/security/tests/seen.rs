//! What the flow sees of a message, and what it learns of the sender: nothing that no signature covers, and nobody who was not checked.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use busbar_security::{Exchange, FailureKind, Role};
use common::*;
use xml::Document;

const WSU: &str = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd";

/// What is signed of the request, with its end tag.
fn part<'a>(request: &'a str, start: &str, end: &str) -> &'a str {
    let from = request.find(start).unwrap_or_else(|| panic!("no {start} in {request}"));
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

/// What is signed by an expression counts where the expression finds it, and is seen there.
#[test]
fn a_signed_element_is_where_the_policy_looks_for_it() {
    let envelope = "/soapenv:Envelope[namespace-uri()='http://schemas.xmlsoap.org/soap/envelope/']";
    let at = |path: &str| {
        policy(
            "asymmetric",
            "Basic256",
            "",
            &format!(
                "<sp:SignedElements xmlns:soapenv='http://schemas.xmlsoap.org/soap/envelope/' xmlns:m='urn:m' xmlns:h='urn:h'>\
                 <sp:XPath>{path}</sp:XPath></sp:SignedElements>"
            ),
        )
    };
    let exact = at(&format!("{envelope}/soapenv:Body/m:buy/order"));
    let anywhere = at("//order");
    let reading = |text: &str, message: &str, world: &World| {
        let fresh = World { now: world.now, ..World::default() };
        let opened = fresh.open(message, &side(Role::Recipient, text), &mut Exchange::default());
        opened.map(|opened| xml::to_string(&opened.document, Document::ROOT)).map_err(|failure| failure.kind)
    };
    for (text, is_exact) in [(exact, true), (anywhere, false)] {
        let world = World::default();
        let request = world.secure(REQUEST, &side(Role::Initiator, &text), &mut Exchange::default()).unwrap();
        assert!(reading(&text, &request, &world).unwrap().contains("<price>"));
        let order = part(&request, "<order xmlns:wsu", "</order>").to_owned();
        let without = request.replace(&order, "");
        let inside = |end: &str, wrapped: &str| without.replacen(end, &format!("{wrapped}{end}"), 1);
        let wrapped = format!("<w xmlns:w='urn:w'>{order}</w>");
        let reference = format!("<wsse:SecurityTokenReference>{wrapped}</wsse:SecurityTokenReference>");
        for (what, message, is_lost) in [
            ("in a header", inside("</soapenv:Header>", &wrapped), false),
            ("a header", inside("</soapenv:Header>", &order), false),
            ("within a reference to a token", inside("</wsse:Security>", &reference), true),
            ("within the timestamp", inside("</wsu:Timestamp>", &wrapped), true),
            ("within the value of the signature", inside("</ds:SignatureValue>", &wrapped), true),
            ("elsewhere in the body", inside("</soapenv:Body>", &wrapped), false),
        ] {
            assert_ne!(message, without, "{what}");
            match reading(&text, &message, &world) {
                Err(kind) => {
                    assert_eq!(kind, FailureKind::Invalid, "{what}");
                    assert!(is_exact || is_lost, "{what} is what {text} asks for");
                }
                // It is where the policy allows it, and it is seen.
                Ok(seen) => {
                    assert!(!is_exact && !is_lost && seen.contains("<price>"), "{what}: {text} {seen}")
                }
            }
        }
    }
    // A part of a header: the header is seen.
    let text = at(&format!("{envelope}/soapenv:Header/h:Route/h:next"));
    let world = World::default();
    let asked = REQUEST.replace(">a</h:Route>", ">a<h:next>b</h:next></h:Route><h:Other xmlns:h='urn:h'/>");
    let request = world.secure(&asked, &side(Role::Initiator, &text), &mut Exchange::default()).unwrap();
    let seen = reading(&text, &request, &world).unwrap();
    assert!(seen.contains(">b</h:next>") && seen.contains("<h:Route"), "{seen}");
    assert!(!seen.contains("h:Other") && !seen.contains("level") && !seen.contains(">a<"), "{seen}");
    let next = part(&request, "<h:next", "</h:next>").to_owned();
    let without = request.replace(&next, "");
    let next = next.replacen("<h:next", "<h:next xmlns:h='urn:h'", 1);
    for moved in [
        without.replacen("<h:Other", &format!("{next}<h:Other"), 1),
        without.replacen("</soapenv:Body>", &format!("{next}</soapenv:Body>"), 1),
    ] {
        assert_ne!(moved, without);
        assert_eq!(reading(&text, &moved, &world), Err(FailureKind::Invalid));
    }
}

/// A part of a message that declares a long namespace again and again: in canonical form it is many times as long as the message, before anybody
/// knows who sent it.
#[test]
fn what_is_signed_is_no_longer_than_the_message_allows() {
    let client = side(Role::Initiator, &scenario(2));
    let service = side(Role::Recipient, &scenario(2));
    let world = World::default();
    let signed = world.secure(REQUEST, &client, &mut Exchange::default()).unwrap();
    let long = format!("<soapenv:Envelope xmlns:long='{}'", "u".repeat(100_000));
    let many = "<long:a/>".repeat(100_000);
    // 10 GB each.
    for end in ["</ds:SignedInfo>", "</soapenv:Body>"] {
        let message =
            signed.replacen("<soapenv:Envelope", &long, 1).replacen(end, &format!("{many}{end}"), 1);
        let failure = world.open(&message, &service, &mut Exchange::default()).unwrap_err();
        assert!(failure.why.contains("more than there is"), "{end}: {failure}");
    }
    let asked = REQUEST.replacen("<soapenv:Envelope", &long, 1).replacen(
        "</soapenv:Body>",
        &format!("{many}</soapenv:Body>"),
        1,
    );
    let failure = world.secure(&asked, &client, &mut Exchange::default()).unwrap_err();
    assert!(failure.why.contains("more than there is"), "{failure}");
}

/// An attachment (MTOM) is a text of the document, and not of the input.
#[test]
fn what_is_attached_may_be_signed() {
    let client = side(Role::Initiator, &scenario(2));
    let world = World::default();
    let attached = "QUJD".repeat(500_000);
    let asked = REQUEST.replace("12 &lt; 13", &attached);
    let signed = world.secure(&asked, &client, &mut Exchange::default()).unwrap();
    let mut document = parse(&signed.replace(&attached, ""));
    let price = document.descendants(Document::ROOT).find(|&node| document.local(node) == "price").unwrap();
    let text = document.first_child(price).unwrap();
    let whole = format!("{attached}{}", document.text(text));
    document.set_text(text, &whole);
    let service = side(Role::Recipient, &scenario(2));
    let opened = busbar_security::open(document, &service, &mut Exchange::default(), &world.environment());
    assert!(xml::to_string(&opened.unwrap().document, Document::ROOT).contains(&attached));
}

/// Comments that anybody may put into a signed message are removed at a cost in proportion to their number.
#[test]
fn many_comments_are_removed_at_once() {
    let client = side(Role::Initiator, &scenario(2));
    let world = World::default();
    let signed = world.secure(REQUEST, &client, &mut Exchange::default()).unwrap();
    let comments = format!("{}12 &lt; 13", "<!---->".repeat(3));
    let letters: String = "x<!---->".repeat(100_000);
    let asked = REQUEST.replace("<price>", &format!("<price>{}", "x".repeat(100_000)));
    let long = world.secure(&asked, &client, &mut Exchange::default()).unwrap();
    for (message, text) in [
        (signed.replacen("12 &lt; 13", &comments, 1), "12 < 13 & \"ä\"".to_owned()),
        (long.replacen(&"x".repeat(100_000), &letters, 1), format!("{}12 < 13 & \"ä\"", "x".repeat(100_000))),
        (signed.replacen("<price>", "<!--a--><price><!--b-->", 1), "12 < 13 & \"ä\"".to_owned()),
    ] {
        let fresh = World { now: world.now, ..World::default() };
        let opened =
            fresh.open(&message, &side(Role::Recipient, &scenario(2)), &mut Exchange::default()).unwrap();
        let document = opened.document;
        let price =
            document.descendants(Document::ROOT).find(|&node| document.local(node) == "price").unwrap();
        let texts: Vec<&str> = document.children(price).map(|node| document.text(node)).collect();
        assert!(texts == [text.as_str()], "{} texts", texts.len());
        // Of what was copied for it, nothing is left that is larger than the message.
        assert!(
            document.memory() < (1 << 20) + 40 * message.len(),
            "{} for {}",
            document.memory(),
            message.len()
        );
    }
}
