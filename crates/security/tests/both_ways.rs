//! What one side secures, the other one opens; and what was changed on the way it does not.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use busbar_security::{Exchange, FailureKind, Role};
use common::*;
use xml::Document;
use xml::c14n::{self, Algorithm};

const ALL: &str = "<sp:SignedParts><sp:Body/><sp:Header Namespace='urn:h'/></sp:SignedParts><sp:EncryptedParts><sp:Body/><sp:Header Namespace='urn:h' Name='Route'/></sp:EncryptedParts>";
const BODY: &str =
    "<sp:SignedParts><sp:Body/></sp:SignedParts><sp:EncryptedParts><sp:Body/></sp:EncryptedParts>";
const SIGN: &str = "<sp:SignedParts/>";
const ELEMENTS: &str = "<sp:SignedElements><sp:XPath>//order</sp:XPath></sp:SignedElements><sp:EncryptedElements><sp:XPath>//price</sp:XPath></sp:EncryptedElements>";

fn user(assertion: &str, token: &str) -> String {
    format!(
        "<sp:{assertion}><wsp:Policy><sp:UsernameToken><wsp:Policy>{token}</wsp:Policy></sp:UsernameToken></wsp:Policy></sp:{assertion}>"
    )
}

fn policies() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> =
        (1..=8).map(|number| (format!("scenario {number}"), scenario(number))).collect();
    for binding in ["asymmetric", "references", "embedded", "symmetric", "derived"] {
        for order in ["<sp:SignBeforeEncrypting/>", "<sp:EncryptBeforeSigning/>"] {
            for parts in [ALL, BODY, ELEMENTS] {
                all.push((
                    format!("{binding} {order} {parts}"),
                    policy(binding, "Basic128Sha256", order, parts),
                ));
            }
        }
        all.push((format!("{binding} sign"), policy(binding, "Basic256", "<sp:ProtectTokens/>", SIGN)));
        all.push((
            format!("{binding} encrypted signature"),
            policy(binding, "Basic128", "<sp:EncryptSignature/>", ALL),
        ));
        for (assertion, token) in [
            ("SignedSupportingTokens", "<sp:HashPassword/>"),
            ("SignedEncryptedSupportingTokens", ""),
            ("EncryptedSupportingTokens", ""),
            ("SupportingTokens", "<sp:NoPassword/>"),
        ] {
            let parts = format!("{BODY}{}", user(assertion, token));
            all.push((format!("{binding} {assertion}"), policy(binding, "Basic256", "", &parts)));
        }
    }
    for binding in ["asymmetric", "references", "symmetric", "derived"] {
        for (assertion, include, more) in [
            ("EndorsingSupportingTokens", "AlwaysToRecipient", ""),
            ("EndorsingSupportingTokens", "Never", "<sp:EncryptBeforeSigning/>"),
            ("EndorsingSupportingTokens", "AlwaysToRecipient", "<sp:ProtectTokens/>"),
            ("SignedEndorsingSupportingTokens", "AlwaysToRecipient", "<sp:EncryptSignature/>"),
        ] {
            let parts = format!("{ALL}{}", endorsing(assertion, include));
            all.push((
                format!("{binding} {assertion} {include} {more}"),
                policy(binding, "Basic256", more, &parts),
            ));
        }
    }
    for suite in [
        "Basic256Rsa15",
        "Basic192",
        "TripleDes",
        "TripleDesSha256Rsa15",
        "Basic256Sha256Rsa15",
        "Basic128GCM",
        "Basic256GCM",
    ] {
        all.push((suite.to_owned(), policy("asymmetric", suite, "", ALL)));
        all.push((suite.to_owned(), policy("symmetric", suite, "", ALL)));
    }
    for layout in ["Strict", "Lax", "LaxTsFirst", "LaxTsLast"] {
        let more = format!("<sp:Layout><wsp:Policy><sp:{layout}/></wsp:Policy></sp:Layout>");
        all.push((layout.to_owned(), policy("asymmetric", "Basic256", &more, BODY)));
    }
    all
}

fn canonical(document: &Document) -> String {
    let mut out = Vec::new();
    c14n::canonicalize(
        document,
        Document::ROOT,
        &c14n::Options { algorithm: Algorithm::Exclusive, ..Default::default() },
        &mut out,
    );
    String::from_utf8(out).unwrap()
}

/// Without the ids that signing leaves.
fn plain(document: &Document) -> String {
    let text = canonical(document);
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once(" wsu:Id=\"") {
        out.push_str(before);
        rest = after.split_once('"').unwrap().1;
    }
    out.push_str(rest);
    let declared =
        " xmlns:wsu=\"http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd\"";
    out.replace(declared, "")
}

#[test]
fn both_sides_understand_each_other() {
    for (name, policy) in policies() {
        let world = World::default();
        let (client, service) = (side(Role::Initiator, &policy), side(Role::Recipient, &policy));
        let (mut asked, mut answers) = (Exchange::default(), Exchange::default());
        let request =
            world.secure(REQUEST, &client, &mut asked).unwrap_or_else(|why| panic!("{name}: {why}"));
        let encrypted = service.policy.encrypts();
        if encrypted {
            assert!(!request.contains("<price>"), "{name}");
        }
        let opened = world
            .open(&request, &service, &mut answers)
            .unwrap_or_else(|why| panic!("{name}: {why}\n{request}"));
        let text = plain(&opened.document);
        assert!(text.contains("<price>12 &lt; 13 &amp; \"ä\"</price>"), "{name}: {text}");
        assert!(!text.contains("Security"), "{name}: {text}");
        if text.contains("Route") && service.policy.signed.elements.is_empty() {
            assert_eq!(text, plain(&parse(REQUEST)), "{name}");
        }
        assert_eq!(opened.user.as_deref(), client.policy.user.map(|_| "alice"), "{name}");
        let response =
            world.secure(ANSWER, &service, &mut answers).unwrap_or_else(|why| panic!("{name}: {why}"));
        if service.policy.encrypted.body {
            assert!(!response.contains("bought"), "{name}");
        }
        let back = world
            .open(&response, &client, &mut asked)
            .unwrap_or_else(|why| panic!("{name}: {why}\n{response}"));
        assert_eq!(
            plain(&back.document),
            plain(&parse(ANSWER)).replace("<soapenv:Header></soapenv:Header>", ""),
            "{name}"
        );
        // A second time it is refused.
        let again = world.open(&request, &service, &mut Exchange::default());
        if service.policy.signs() || encrypted {
            assert_eq!(again.map(|_| ()).unwrap_err().kind, FailureKind::Invalid, "{name}");
        }
        // And what says nothing is refused as well.
        assert!(world.open(REQUEST, &service, &mut Exchange::default()).is_err(), "{name}");
    }
}

#[test]
fn whatever_is_changed_is_noticed() {
    for number in [2, 3, 5, 6, 8] {
        let policy = scenario(number);
        let (client, service) = (side(Role::Initiator, &policy), side(Role::Recipient, &policy));
        let world = World::default();
        let request = world.secure(REQUEST, &client, &mut Exchange::default()).unwrap();
        // Each text and attribute value in turn, by one character.
        let places: Vec<usize> = request
            .char_indices()
            .filter(|(at, c)| c.is_ascii_alphanumeric() && (at % 13 == number as usize))
            .map(|(at, _)| at)
            .collect();
        let mut accepted = Vec::new();
        for at in places {
            let mut changed = request.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            let Ok(document) = Document::parse(changed.clone().into_bytes(), &Default::default()) else {
                continue;
            };
            let fresh = World { now: world.now, ..World::default() };
            if let Ok(opened) =
                busbar_security::open(document, &service, &mut Exchange::default(), &fresh.environment())
            {
                let text = canonical(&opened.document);
                if !text.contains("<price>12 &lt; 13 &amp; \"ä\"</price>") || text.contains("wsse:") {
                    accepted.push(request[at.saturating_sub(40)..(at + 40).min(request.len())].to_owned());
                }
            }
        }
        assert!(accepted.is_empty(), "scenario {number}: {accepted:#?}");
    }
}

/// Signature wrapping: the signed body is moved away, and another one stands in its place.
#[test]
fn a_signed_body_that_was_moved_is_not_the_body() {
    let policy = scenario(2);
    let (client, service) = (side(Role::Initiator, &policy), side(Role::Recipient, &policy));
    let world = World::default();
    let request = world.secure(REQUEST, &client, &mut Exchange::default()).unwrap();
    let (start, end) = (
        request.find("<soapenv:Body").unwrap(),
        request.find("</soapenv:Body>").unwrap() + "</soapenv:Body>".len(),
    );
    let body = &request[start..end];
    let id = body.split("wsu:Id=\"").nth(1).unwrap().split('"').next().unwrap();
    let evil = "<soapenv:Body><evil xmlns='urn:e'/></soapenv:Body>";
    let evil_same_id = evil.replace("<soapenv:Body>", &format!("<soapenv:Body xmlns:wsu='http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd' wsu:Id='{id}'>"));
    let with = |header: &str, body: &str| {
        let text = request[..start].replace("</soapenv:Header>", &format!("{header}</soapenv:Header>"));
        format!("{text}{body}{}", &request[end..])
    };
    let in_security = |more: &str, body: &str| {
        let text = request[..start].replace("</wsse:Security>", &format!("{more}</wsse:Security>"));
        format!("{text}{body}{}", &request[end..])
    };
    for (what, message) in [
        ("in another header", with(&format!("<w xmlns='urn:w'>{body}</w>"), evil)),
        ("in another header, with the same id", with(&format!("<w xmlns='urn:w'>{body}</w>"), &evil_same_id)),
        ("as a header", with(body, evil)),
        ("in the security header", in_security(body, evil)),
        (
            "in the security header, within",
            in_security(
                &format!("<ds:Object xmlns:ds='http://www.w3.org/2000/09/xmldsig#'>{body}</ds:Object>"),
                evil,
            ),
        ),
        (
            "in the other body",
            with("", &evil.replace("<evil xmlns='urn:e'/>", &format!("<evil xmlns='urn:e'/>{body}"))),
        ),
        ("two bodies, the signed one first", with("", &format!("{body}{evil}"))),
        ("two bodies, the signed one last", with("", &format!("{evil}{body}"))),
        ("behind the body", format!("{}{evil}<x>{body}</x>{}", &request[..start], &request[end..])),
        ("no reference to the body", request.replace(&format!("URI=\"#{id}\""), "URI=\"#nothing\"")),
        ("to somewhere else", request.replace(&format!("URI=\"#{id}\""), "URI=\"http://127.0.0.1:1/\"")),
        ("the whole document", request.replace(&format!("URI=\"#{id}\""), "URI=\"\"")),
        ("no signature", {
            let (from, to) =
                (request.find("<ds:Signature ").unwrap(), request.find("</ds:Signature>").unwrap() + 15);
            format!("{}{}", &request[..from], &request[to..])
        }),
    ] {
        let failure = world
            .open(&message, &service, &mut Exchange::default())
            .map(|opened| canonical(&opened.document));
        assert_eq!(
            failure.as_ref().map_err(|failure| failure.kind),
            Err(FailureKind::Invalid),
            "{what}: {failure:?}"
        );
    }
    // Headers that are not signed are not seen.
    let opened =
        world.open(&with("<z:Evil xmlns:z='urn:z'/>", body), &service, &mut Exchange::default()).unwrap();
    let text = canonical(&opened.document);
    assert!(!text.contains("Evil") && !text.contains("Route") && text.contains("price"), "{text}");
}

#[test]
fn times_are_held_in_both_directions() {
    let policy = scenario(2);
    let (client, service) = (side(Role::Initiator, &policy), side(Role::Recipient, &policy));
    let now = jiff::Timestamp::from_second(1_800_000_000).unwrap();
    let world =
        |offset: i64| World { now: now + jiff::SignedDuration::from_secs(offset), ..World::default() };
    for (offset, fits) in
        [(-299, true), (-301, false), (0, true), (599, true), (601, false), (100_000, false)]
    {
        let request = world(0).secure(REQUEST, &client, &mut Exchange::default()).unwrap();
        assert_eq!(
            world(offset).open(&request, &service, &mut Exchange::default()).is_ok(),
            fits,
            "{offset}"
        );
    }
    // One that ends before it was made is not valid at any time, however far clocks may differ.
    let mut client = client;
    std::sync::Arc::get_mut(&mut client.policy).unwrap().config.ttl = -1;
    let request = world(0).secure(REQUEST, &client, &mut Exchange::default()).unwrap();
    assert!(world(0).open(&request, &service, &mut Exchange::default()).is_err());
}

#[test]
fn a_certificate_that_is_not_for_signing_does_not_sign() {
    use busbar_security::keys::{KeyStore, Trust};
    use rcgen::KeyUsagePurpose::{DigitalSignature, KeyEncipherment};
    use std::sync::Arc;
    let policy = scenario(2);
    for (usages, fits) in [(&[DigitalSignature][..], true), (&[KeyEncipherment][..], false), (&[][..], false)]
    {
        let other = pair("other", usages);
        let mut client = side(Role::Initiator, &policy);
        let store = KeyStore::read(other.both().as_bytes(), "", None).unwrap();
        client.own = store.identities.first().cloned();
        let mut service = side(Role::Recipient, &policy);
        let world = World::default();
        let request = world.secure(REQUEST, &client, &mut Exchange::default()).unwrap();
        // Its certificate is not trusted yet.
        assert!(world.open(&request, &service, &mut Exchange::default()).is_err());
        let trusted = KeyStore::read(other.certificate.as_bytes(), "", None).unwrap();
        service.trust = Arc::new(Trust::new(&trusted, &[]).unwrap());
        assert_eq!(world.open(&request, &service, &mut Exchange::default()).is_ok(), fits, "{usages:?}");
    }
}

#[test]
fn a_wrong_password_is_told_only_where_all_else_is_right() {
    let policy = scenario(8);
    let (mut client, service) = (side(Role::Initiator, &policy), side(Role::Recipient, &policy));
    let mut policy = busbar_security::Policy::parse(policy.as_bytes()).unwrap();
    policy.config.user = "mallory".to_owned();
    client.policy = std::sync::Arc::new(policy);
    let world = World::default();
    let mut environment = world.environment();
    let any = |_: &str| Some(busbar_security::algorithm::Secret::new(b"guess".to_vec()));
    environment.password = &any;
    let mut document = parse(REQUEST);
    busbar_security::secure(&mut document, &client, &mut Exchange::default(), &environment).unwrap();
    let request = xml::to_string(&document, Document::ROOT);
    let failure = world.open(&request, &service, &mut Exchange::default()).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Authentication, "{failure}");
    let broken = request.replace("<ds:SignatureValue>", "<ds:SignatureValue>AAAA");
    assert_eq!(
        world.open(&broken, &service, &mut Exchange::default()).unwrap_err().kind,
        FailureKind::Invalid
    );
}

/// Certificates of an authority, the lists of what it revoked, and tokens that bring the path to it.
#[test]
fn certificates_are_those_of_an_authority_that_did_not_revoke_them() {
    use busbar_security::keys::{KeyStore, Trust};
    use rcgen::{
        BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer, KeyPair,
        KeyUsagePurpose, PKCS_RSA_SHA256, RevokedCertParams, SerialNumber,
    };
    use std::sync::Arc;
    let named = |name: &str, number: u64| {
        let mut asked = CertificateParams::new(Vec::new()).unwrap();
        asked.distinguished_name.push(DnType::CommonName, name);
        asked.serial_number = Some(SerialNumber::from(number));
        asked
    };
    let authority = |name: &str| {
        let key = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap();
        let mut asked = named(name, 1);
        asked.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        asked.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let pem = asked.self_signed(&key).unwrap().pem();
        (Issuer::new(asked, key), pem)
    };
    let ((issuer, authority_pem), (_, other_pem)) = (authority("authority"), authority("other"));
    let key = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap();
    let mut asked = named("client", 7);
    asked.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    let certificate = asked.signed_by(&key, &issuer).unwrap();
    let list = |number: u64, until: i32| {
        let list = CertificateRevocationListParams {
            this_update: rcgen::date_time_ymd(2020, 1, 1),
            next_update: rcgen::date_time_ymd(until, 1, 1),
            crl_number: SerialNumber::from(1u64),
            issuing_distribution_point: None,
            revoked_certs: vec![RevokedCertParams {
                serial_number: SerialNumber::from(number),
                revocation_time: rcgen::date_time_ymd(2020, 1, 1),
                reason_code: None,
                invalidity_date: None,
            }],
            key_identifier_method: rcgen::KeyIdMethod::Sha256,
        };
        list.signed_by(&issuer).unwrap().der().to_vec()
    };
    let policy = scenario(2);
    let mut client = side(Role::Initiator, &policy);
    let both = format!("{}{}", key.serialize_pem(), certificate.pem());
    client.own = KeyStore::read(both.as_bytes(), "", None).unwrap().identities.first().cloned();
    for (what, trusted, lists, fits) in [
        ("its authority", &authority_pem, vec![], true),
        ("another authority", &other_pem, vec![], false),
        ("somebody else is revoked", &authority_pem, vec![list(8, 2040)], true),
        ("it is revoked", &authority_pem, vec![list(7, 2040)], false),
        ("the list is old", &authority_pem, vec![list(8, 2021)], false),
    ] {
        let mut service = side(Role::Recipient, &policy);
        let store = KeyStore::read(trusted.as_bytes(), "", None).unwrap();
        service.trust = Arc::new(Trust::new(&store, &lists).unwrap());
        let world = World::default();
        let request = world.secure(REQUEST, &client, &mut Exchange::default()).unwrap();
        let opened = world.open(&request, &service, &mut Exchange::default());
        assert_eq!(opened.is_ok(), fits, "{what}: {:?}", opened.err());
    }
}

/// No signature covers comments: one that is put into a text does not cut it in two.
#[test]
fn comments_are_not_seen() {
    for number in [2, 5] {
        let policy = scenario(number);
        let (client, service) = (side(Role::Initiator, &policy), side(Role::Recipient, &policy));
        let world = World::default();
        let asked = REQUEST.replace("12 &lt;", "1<!--a-->2 &lt;<!-- b --><!---->");
        let mut request = world.secure(&asked, &client, &mut Exchange::default()).unwrap();
        if number == 2 {
            request = request
                .replace("13 &amp;", "1<!--c-->3 &amp;")
                .replace("<soapenv:Body", "<!--d--><soapenv:Body");
        }
        let opened = world.open(&request, &service, &mut Exchange::default()).unwrap().document;
        let price = opened.descendants(Document::ROOT).find(|&node| opened.local(node) == "price").unwrap();
        let children: Vec<_> = opened.children(price).collect();
        assert_eq!(children.len(), 1, "{number}");
        assert_eq!(opened.text(children[0]), "12 < 13 & \"ä\"", "{number}");
        assert!(!xml::to_string(&opened, Document::ROOT).contains("<!--"), "{number}");
    }
}

/// The elements of the security header of a request, with their names.
fn blocks(request: &str) -> Vec<(String, String)> {
    let document = parse(request);
    let header =
        document.descendants(Document::ROOT).find(|&node| document.local(node) == "Security").unwrap();
    let children = document.children(header);
    let write = |node| {
        let options =
            xml::WriteOptions { declaration: false, inherited_namespaces: true, ..Default::default() };
        let mut out = Vec::new();
        xml::write(&document, node, &options, &mut out);
        String::from_utf8(out).unwrap()
    };
    children.map(|node| (document.local(node).to_owned(), write(node))).collect()
}

/// A request with another security header.
fn with_blocks(request: &str, blocks: &[&str]) -> String {
    let start = request.find("<wsse:Security").unwrap();
    let inside = start + request[start..].find('>').unwrap() + 1;
    let end = request.find("</wsse:Security>").unwrap();
    format!("{}{}{}", &request[..inside], blocks.concat(), &request[end..])
}

/// The endorsing signature must be over the very signature of the message, and only that signature says what is signed.
#[test]
fn only_what_endorses_the_message_is_accepted() {
    for binding in ["asymmetric", "symmetric"] {
        let text = policy(
            binding,
            "Basic256",
            "",
            &format!("{BODY}{}", endorsing("EndorsingSupportingTokens", "AlwaysToRecipient")),
        );
        let plain_text = policy(binding, "Basic256", "", BODY);
        let (client, service) = (side(Role::Initiator, &text), side(Role::Recipient, &text));
        let world = World::default();
        let make = |text: &str| world.secure(text, &client, &mut Exchange::default()).unwrap();
        let (request, other) = (make(REQUEST), make(REQUEST));
        let (parts, others) = (blocks(&request), blocks(&other));
        let is_of = |part: &&(String, String)| part.0 == "Signature";
        let signatures: Vec<&str> = parts.iter().filter(is_of).map(|part| part.1.as_str()).collect();
        let foreign: Vec<&str> = others.iter().filter(is_of).map(|part| part.1.as_str()).collect();
        let (&[primary, endorsing], &[foreign_primary, foreign_endorsing]) = (&signatures[..], &foreign[..])
        else {
            panic!("{binding}: {signatures:?}")
        };
        let all: Vec<&str> = parts.iter().map(|part| part.1.as_str()).collect();
        let without = |what: &str| all.iter().copied().filter(|part| *part != what).collect::<Vec<_>>();
        let instead = |what: &str, with: &'static str| {
            all.iter().map(|part| if *part == what { with } else { *part }).collect::<Vec<_>>()
        };
        let leak = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
        let open = |message: &str| {
            let fresh = World { now: world.now, ..World::default() };
            fresh
                .open(message, &service, &mut Exchange::default())
                .map(|opened| opened.endorser.unwrap().0.subject.clone())
        };
        // As it is written anew, it is still what was signed; the endorsing signature may come first.
        assert!(open(&with_blocks(&request, &all)).unwrap().contains("client"), "{binding}");
        let mut first = vec![all[0]];
        first.extend(parts.iter().filter(|part| part.0 == "BinarySecurityToken").map(|part| part.1.as_str()));
        first.push(endorsing);
        first.extend(
            all[1..]
                .iter()
                .copied()
                .filter(|part| *part != endorsing && !part.starts_with("<wsse:BinarySecurityToken")),
        );
        assert!(open(&with_blocks(&request, &first)).is_ok(), "{binding}: the endorsing signature first");
        let twice = [&all[..], &[endorsing]].concat();
        let both = [&all[..], &[foreign_primary]].concat();
        for (what, message) in [
            ("not endorsed", with_blocks(&request, &without(endorsing))),
            ("the endorsing signature alone", with_blocks(&request, &without(primary))),
            ("that of another message", with_blocks(&request, &instead(endorsing, leak(foreign_endorsing)))),
            (
                "the signature of another message",
                with_blocks(&request, &instead(primary, leak(foreign_primary))),
            ),
            (
                "both of another message",
                with_blocks(&request, &instead(primary, leak(foreign_primary)))
                    .replace(endorsing, foreign_endorsing),
            ),
            ("endorsed twice", with_blocks(&request, &twice)),
            ("two signatures", with_blocks(&request, &both)),
            (
                "the signature within the other",
                with_blocks(&request, &without(primary))
                    .replace("</ds:Signature>", &format!("<ds:Object>{primary}</ds:Object></ds:Signature>")),
            ),
        ] {
            let opened = open(&message);
            assert!(opened.is_err(), "{binding}, {what}: {opened:?}");
        }
        // A service that asks for no endorsement takes no second signature, and one that does takes no message without.
        let plain_service = side(Role::Recipient, &plain_text);
        assert!(
            World::default().open(&request, &plain_service, &mut Exchange::default()).is_err(),
            "{binding}"
        );
        let plain_client = side(Role::Initiator, &plain_text);
        let plain = world.secure(REQUEST, &plain_client, &mut Exchange::default()).unwrap();
        assert!(open(&plain).is_err(), "{binding}");
    }
}

/// A client that holds the key of the message endorses with a key of its own, which must be trusted.
#[test]
fn only_trusted_certificates_endorse() {
    use busbar_security::keys::KeyStore;
    let text = policy(
        "symmetric",
        "Basic256",
        "",
        &format!("{BODY}{}", endorsing("SignedEndorsingSupportingTokens", "AlwaysToRecipient")),
    );
    let (mut client, service) = (side(Role::Initiator, &text), side(Role::Recipient, &text));
    let world = World::default();
    let other = pair("other", &[rcgen::KeyUsagePurpose::DigitalSignature]);
    let store = KeyStore::read(other.both().as_bytes(), "", None).unwrap();
    client.own = store.identities.first().cloned();
    let request = world.secure(REQUEST, &client, &mut Exchange::default()).unwrap();
    assert!(world.open(&request, &service, &mut Exchange::default()).is_err());
    // A token that is not signed, where it has to be.
    let not_signed = text.replace("SignedEndorsing", "Endorsing");
    let client = side(Role::Initiator, &not_signed);
    let request = world.secure(REQUEST, &client, &mut Exchange::default()).unwrap();
    let failure = world.open(&request, &service, &mut Exchange::default()).unwrap_err();
    assert!(failure.to_string().contains("endorsing token is not signed"), "{failure}");
}

/// With https, the timestamp is what is endorsed.
#[test]
fn a_timestamp_is_endorsed_where_the_transport_secures_messages() {
    let sp = "http://docs.oasis-open.org/ws-sx/ws-securitypolicy/200702";
    let make = |timestamp: &str, endorsing: &str| {
        format!(
            "<wsp:Policy xmlns:wsp='http://www.w3.org/ns/ws-policy' xmlns:sp='{sp}'><sp:TransportBinding><wsp:Policy><sp:TransportToken><wsp:Policy><sp:HttpsToken/></wsp:Policy></sp:TransportToken>\
             <sp:AlgorithmSuite><wsp:Policy><sp:Basic256Sha256/></wsp:Policy></sp:AlgorithmSuite>{timestamp}</wsp:Policy></sp:TransportBinding>{endorsing}</wsp:Policy>"
        )
    };
    let token = endorsing("EndorsingSupportingTokens", "AlwaysToRecipient");
    let text = make("<sp:IncludeTimestamp/>", &token);
    let (client, service) = (side(Role::Initiator, &text), side(Role::Recipient, &text));
    let world = World::default();
    let (mut asked, mut answers) = (Exchange::default(), Exchange::default());
    let request = world.secure(REQUEST, &client, &mut asked).unwrap();
    let opened = world.open(&request, &service, &mut answers).unwrap();
    assert!(opened.signer.is_none() && opened.endorser.unwrap().0.subject.contains("client"));
    assert!(world.open(&request, &service, &mut Exchange::default()).is_err(), "a replay");
    let answer = world.secure(ANSWER, &service, &mut answers).unwrap();
    assert!(world.open(&answer, &client, &mut asked).is_ok());
    let parts = blocks(&request);
    let unsigned: Vec<&str> =
        parts.iter().filter(|part| part.0 != "Signature").map(|part| part.1.as_str()).collect();
    assert!(
        World::default().open(&with_blocks(&request, &unsigned), &service, &mut Exchange::default()).is_err()
    );
    let mut changed = request.clone();
    let at = changed.find("<wsu:Created>").unwrap() + 13;
    changed.replace_range(at..at + 4, "2025");
    assert!(World::default().open(&changed, &service, &mut Exchange::default()).is_err());
    let parse = |text: &str| busbar_security::Policy::parse(text.as_bytes()).unwrap_err();
    assert!(parse(&make("", &token)).contains("IncludeTimestamp"));
    assert!(parse(&make("<sp:IncludeTimestamp/>", &format!("{token}{token}"))).contains("more than one"));
    assert!(
        parse(&make("<sp:IncludeTimestamp/>", &token.replace("Supporting", "EncryptedSupporting")))
            .contains("not encrypted")
    );
    let signed = endorsing("SignedEndorsingSupportingTokens", "Never");
    assert!(parse(&make("<sp:IncludeTimestamp/>", &signed)).contains("not in the message"));
}
