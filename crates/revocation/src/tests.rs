//! What is asked, and which answers count. The authorities are made here.

use crate::path::{Subject, subjects};
use crate::{Servers, Settings, request, response};
use rcgen::KeyPair;
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use std::task::Poll;
use std::time::Duration;
use transport::Revocation;

#[path = "../tests/authority/mod.rs"]
mod authority;

use authority::{Authority, SEQUENCE, Server, SingleResponse, good, revoked, tlv, unknown};

fn root(of: &Authority) -> TrustAnchor<'static> {
    webpki::anchor_from_trusted_cert(&CertificateDer::from(of.der.as_slice())).unwrap().to_owned()
}

fn subject(of: &Authority, der: &[u8]) -> Subject {
    subjects(der, &[], &[root(of)], UnixTime::now(), false).unwrap().remove(0)
}

#[test]
fn only_answers_count_that_somebody_signed_who_may() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let asked = subject(&ours, &ours.issue(5, "http://ocsp.example/"));
    let now = authority::now();
    let (appointed, appointed_key) = ours.signer(true);
    let (plain, plain_key) = ours.signer(false);
    let (stranger, stranger_key) = other.signer(true);
    let (expired, expired_key) = ours.made(78, |asked| {
        asked.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::OcspSigning];
        asked.not_after = rcgen::date_time_ymd(2020, 1, 1);
    });
    // An authority below may sign certificates, but nobody has appointed it for answers; nor whom it appoints.
    let below = ours.below("below", 90);
    let (nephew, nephew_key) = below.signer(true);
    let said = |change: &dyn Fn(&mut SingleResponse)| {
        let mut said = good();
        change(&mut said);
        said
    };
    let between = |from: i64, until: Option<i64>| said(&|said| (said.from, said.until) = (from, until));
    let nonce = vec![7; 32];
    let with_nonce = said(&|said| said.nonce = Some(nonce.clone()));
    let critical = |name: u8| {
        let parts = tlv(SEQUENCE, &[&tlv(0x06, &[&[0x55, 0x1d, name]]), &[1, 1, 0xff], &tlv(0x04, &[])]);
        said(&|said| said.more = tlv(0xa1, &[&tlv(SEQUENCE, &[&parts])]))
    };
    let ours_says = |said: &SingleResponse| ours.says(5, said);
    for (what, der, nonce, wanted) in [
        ("good", ours_says(&good()), None, Ok(None)),
        ("revoked", ours_says(&revoked()), None, Ok(Some("its key was compromised"))),
        ("unknown", ours_says(&unknown()), None, Err("does not know")),
        ("appointed", ours.signed(5, &good(), &appointed_key, &[appointed]), None, Ok(None)),
        (
            "not appointed",
            ours.signed(5, &good(), &plain_key, std::slice::from_ref(&plain)),
            None,
            Err("not signed"),
        ),
        ("no more", ours.signed(5, &good(), &expired_key, &[expired]), None, Err("not signed")),
        ("of another", ours.signed(5, &good(), &stranger_key, &[stranger]), None, Err("not signed")),
        (
            "another key",
            ours.signed(5, &good(), &other.key, std::slice::from_ref(&ours.der)),
            None,
            Err("not signed"),
        ),
        (
            "below",
            ours.signed(5, &good(), &below.key, std::slice::from_ref(&below.der)),
            None,
            Err("not signed"),
        ),
        (
            "nephew",
            ours.signed(5, &good(), &nephew_key, &[nephew, below.der.clone()]),
            None,
            Err("not signed"),
        ),
        ("another one", ours.says(6, &good()), None, Err("another certificate")),
        ("of the other", other.signed(5, &good(), &ours.key, &[]), None, Err("another certificate")),
        ("old", ours_says(&between(now - 9000, Some(now - 302))), None, Err("too old")),
        ("just", ours_says(&between(now - 9000, Some(now - 290))), None, Ok(None)),
        ("early", ours_says(&between(now + 310, Some(now + 9000))), None, Err("future")),
        ("no end", ours_says(&said(&|said| said.until = None)), None, Ok(None)),
        ("no end, long ago", ours_says(&between(now - 4000, None)), None, Err("too old")),
        ("a nonce", ours_says(&with_nonce), Some(&nonce[..]), Ok(None)),
        ("no nonce", ours_says(&good()), Some(&nonce[..]), Err("nonce")),
        ("another nonce", ours_says(&with_nonce), Some(&[8; 32][..]), Err("nonce")),
        ("a demand", ours_says(&critical(99)), None, Err("demands")),
        ("later", tlv(SEQUENCE, &[&tlv(0x0a, &[&[3]])]), None, Err("try later")),
        ("unauthorised", tlv(SEQUENCE, &[&tlv(0x0a, &[&[6]])]), None, Err("does not answer for")),
        ("no DER", b"<html>".to_vec(), None, Err("not one of OCSP")),
        ("nothing", Vec::new(), None, Err("not one of OCSP")),
    ] {
        match (response::read(&der, &asked, now, nonce), wanted) {
            (Ok(found), Ok(revoked)) => assert_eq!(found.revoked, revoked, "{what}"),
            (Err(why), Err(wanted)) => assert!(why.contains(wanted), "{what}: {why}"),
            (found, wanted) => panic!("{what}: {found:?}, not {wanted:?}"),
        }
    }
    // Whatever is cut off or changed, nothing panics, and nothing of it counts.
    let whole = ours.signed(5, &good(), &ours.key, &[plain]);
    for at in 0..whole.len() {
        assert!(response::read(&whole[..at], &asked, now, None).is_err(), "cut at {at}");
        let mut changed = whole.clone();
        changed[at] ^= 0xff;
        _ = response::read(&changed, &asked, now, None);
    }
}

/// What `openssl ocsp` answered, by a key that its authority has appointed.
#[test]
fn answers_of_openssl_are_understood() {
    const THEN: u64 = 1_795_771_110;
    let authority = CertificateDer::from(&include_bytes!("../tests/openssl/ca.der")[..]);
    let roots = [webpki::anchor_from_trusted_cert(&authority).unwrap()];
    let (good, bad) = (
        (include_bytes!("../tests/openssl/good.cer.der"), include_bytes!("../tests/openssl/good.answer.der")),
        (include_bytes!("../tests/openssl/bad.cer.der"), include_bytes!("../tests/openssl/bad.answer.der")),
    );
    let about = |certificate: &[u8]| {
        let then = UnixTime::since_unix_epoch(Duration::from_secs(THEN));
        subjects(certificate, &[], &roots, then, false).unwrap().remove(0)
    };
    let judge = |certificate: &[u8], answer: &[u8], seconds: i64| {
        let found = response::read(answer, &about(certificate), THEN as i64 + seconds, None)?;
        assert!(found.until.is_some());
        Ok::<_, String>(found.revoked)
    };
    assert_eq!(about(good.0).responder.as_deref(), Some("http://127.0.0.1:18888/"));
    assert_eq!(judge(good.0, good.1, 0), Ok(None));
    assert_eq!(judge(bad.0, bad.1, 0), Ok(Some("its key was compromised")));
    assert!(judge(good.0, bad.1, 0).unwrap_err().contains("another certificate"));
    assert!(judge(good.0, good.1, 25 * 3600).unwrap_err().contains("too old"));
}

#[test]
fn who_issued_a_certificate_is_found_on_its_path() {
    let ours = Authority::new("root");
    let middle = ours.below("between", 300);
    let leaf = middle.issue(9, "http://a.example/x");
    let chain = [CertificateDer::from(middle.der.as_slice())];
    let now = UnixTime::now();
    let found = subjects(&leaf, &chain, &[root(&ours)], now, true).unwrap();
    let seen: Vec<_> = found.iter().map(|found| (found.serial.clone(), found.responder.clone())).collect();
    assert_eq!(seen, [(vec![9], Some("http://a.example/x".to_owned())), (vec![1, 44], None)]);
    assert_eq!(found[0].issuer_key, root(&middle).subject_public_key_info.to_vec());
    assert_eq!(subjects(&leaf, &chain, &[root(&ours)], now, false).unwrap(), found[..1]);
    // What is trusted by itself nobody could revoke.
    let (own, _) = Authority::new("x").made(1, |_| {});
    let pinned = webpki::anchor_from_trusted_cert(&CertificateDer::from(own.as_slice())).unwrap().to_owned();
    assert_eq!(subjects(&own, &[], &[pinned], now, false), Ok(Vec::new()));
    assert_eq!(subjects(&ours.der, &[], &[root(&ours)], now, false), Ok(Vec::new()));
    assert!(subjects(&leaf, &[], &[root(&ours)], now, false).unwrap_err().contains("no path"));
    assert!(subjects(b"no", &[], &[root(&ours)], now, false).is_err());
    // An address of another kind is not asked.
    assert_eq!(subject(&ours, &ours.issue(4, "ldap://a.example/x")).responder, None);
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn servers(change: impl FnOnce(&mut Settings)) -> Servers {
    let mut settings = Settings { timeout: Duration::from_millis(500), ..Settings::default() };
    change(&mut settings);
    Servers::new(settings, Box::new(|target, _| Some(target)))
}

#[test]
fn what_servers_say_decides_and_is_asked_once() {
    let ours = Authority::new("ours");
    let roots = [root(&ours)];
    let is_good = ours.says(5, &good());
    let huge = vec![0x30; response::LARGEST + 1];
    // What comes, whether it lets in by the soft and by the hard rule, and why it does not.
    for (what, coming, soft, hard) in [
        ("good", Some((200, is_good.clone())), "", ""),
        ("revoked", Some((200, ours.says(5, &revoked()))), "is revoked: its key", "is revoked: its key"),
        ("unknown", Some((200, ours.says(5, &unknown()))), "", "does not know"),
        ("of another", Some((200, ours.says(6, &good()))), "", "another certificate"),
        ("an error", Some((500, is_good.clone())), "", "it answered with 500"),
        ("elsewhere", Some((302, is_good.clone())), "", "it answered with 302"),
        ("garbage", Some((200, b"garbage".to_vec())), "", "not one of OCSP"),
        ("too much", Some((200, huge)), "", "not known"),
        ("silence", None, "", "in time"),
    ] {
        let server = Server::start(move |_| coming.clone());
        let certificate = ours.issue(5, &server.url);
        let servers = servers(|_| {});
        block_on(async {
            for _ in 0..2 {
                for (hard, wanted) in [(false, soft), (true, hard)] {
                    match servers.check(&certificate, &[], &roots, hard).await {
                        Ok(()) => assert_eq!(wanted, "", "{what}, hard: {hard}"),
                        Err(why) => {
                            assert!(
                                !wanted.is_empty() && why.contains(wanted),
                                "{what}, hard: {hard}: {why}"
                            );
                        }
                    }
                }
            }
        });
        assert_eq!(server.asked(), 1, "{what}");
    }
    // Nobody is there.
    let nowhere = ours.issue(5, "http://127.0.0.1:1/");
    let servers = servers(|_| {});
    assert!(block_on(servers.check(&nowhere, &[], &roots, true)).unwrap_err().contains("not known"));
    assert_eq!(block_on(servers.check(&nowhere, &[], &roots, false)), Ok(()));
}

#[test]
fn many_who_want_to_know_the_same_ask_once_together() {
    let ours = Authority::new("ours");
    let roots = [root(&ours)];
    let is_good = ours.says(5, &good());
    let server = Server::start(move |_| {
        std::thread::sleep(Duration::from_millis(100));
        Some((200, is_good.clone()))
    });
    let certificate = ours.issue(5, &server.url);
    let asking = servers(|settings| settings.timeout = Duration::from_secs(20));
    block_on(async {
        let mut all: Vec<_> = (0..20).map(|_| asking.check(&certificate, &[], &roots, true)).collect();
        std::future::poll_fn(|context| {
            all.retain_mut(|one| match one.as_mut().poll(context) {
                Poll::Ready(judged) => {
                    assert_eq!(judged, Ok(()));
                    false
                }
                Poll::Pending => true,
            });
            if all.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    });
    assert_eq!((server.asked(), asking.waiting()), (1, 0));
}

/// Else a backend that is slow to be asked about could never be reached within a shorter deadline of the caller.
#[test]
fn a_caller_that_gives_up_does_not_wait_again() {
    let ours = Authority::new("ours");
    let roots = [root(&ours)];
    let server = Server::start(|_| None);
    let certificate = ours.issue(5, &server.url);
    let asking = servers(|settings| settings.timeout = Duration::from_secs(60));
    block_on(async {
        let check = |hard| asking.check(&certificate, &[], &roots, hard);
        // One that goes away at once says nothing about the server.
        assert!(tokio::time::timeout(Duration::from_millis(50), check(false)).await.is_err());
        assert_eq!(asking.kept(), 0);
        assert!(tokio::time::timeout(Duration::from_millis(1200), check(false)).await.is_err());
        assert_eq!(check(false).await, Ok(()));
        assert!(check(true).await.unwrap_err().contains("gave up"));
    });
    assert_eq!(asking.waiting(), 0);
}

/// Certificates of an authority whose server is silent keep nobody else from being asked about.
#[test]
fn a_silent_server_takes_no_place_of_another() {
    let (ours, others) = (Authority::new("ours"), Authority::new("others"));
    let roots = [root(&ours), root(&others)];
    let silent = Server::start(|_| None);
    let is_good = ours.says(5, &good());
    let server = Server::start(move |_| Some((200, is_good.clone())));
    let unanswered: Vec<_> = (0..100).map(|serial| others.issue(serial + 1, &silent.url)).collect();
    let certificate = ours.issue(5, &server.url);
    let asking = servers(|settings| settings.timeout = Duration::from_secs(60));
    block_on(async {
        let mut waiting: Vec<_> = unanswered.iter().map(|one| asking.check(one, &[], &roots, true)).collect();
        let mut judged = asking.check(&certificate, &[], &roots, true);
        let judged = std::future::poll_fn(|context| {
            for one in &mut waiting {
                assert!(one.as_mut().poll(context).is_pending());
            }
            judged.as_mut().poll(context)
        })
        .await;
        assert_eq!(judged, Ok(()));
    });
    assert!(silent.asked() <= crate::servers::AT_A_TIME, "{}", silent.asked());
    assert_eq!(asking.waiting(), 0);
}

#[test]
fn questions_go_to_whom_the_settings_allow() {
    let ours = Authority::new("ours");
    let roots = [root(&ours)];
    let asked = subject(&ours, &ours.issue(5, "http://x/"));
    let is_good = ours.says(5, &good());
    let server = Server::start(move |_| Some((200, is_good.clone())));
    let named = ours.issue(5, &server.url);
    // Of a certificate that names one which is not allowed.
    let closed = Servers::new(Settings::default(), Box::new(|target, named| (!named).then_some(target)));
    let why = block_on(closed.check(&named, &[], &roots, true)).unwrap_err();
    assert!(why.contains("http.dynamic_addresses"), "{why}");
    // Nor of one that no authority here has issued.
    let asking = servers(|_| {});
    let forged = Authority::new("ours").issue(5, &server.url);
    assert!(block_on(asking.check(&forged, &[], &roots, true)).unwrap_err().contains("no path"));
    assert_eq!(block_on(asking.check(&forged, &[], &roots, false)), Ok(()));
    assert_eq!(server.asked(), 0);
    // That of the settings comes first, and is always allowed.
    let settings = Settings { responder: Some(server.url.clone()), get: true, ..Settings::default() };
    assert_eq!(settings.check(), Ok(()));
    let set = Servers::new(settings, Box::new(|target, named| (!named).then_some(target)));
    let elsewhere = ours.issue(5, "http://127.0.0.1:1/");
    assert_eq!(block_on(set.check(&elsewhere, &[], &roots, true)), Ok(()));
    let head = server.asked.lock().unwrap()[0].clone();
    let path = request::path("/ocsp", &request::write(&asked, None)).unwrap();
    assert!(head.starts_with(&format!("GET {path} HTTP/1.1\r\n")), "{head}");
    // With a nonce, which this server does not repeat.
    let nonce = servers(|settings| settings.nonce = true);
    let why = block_on(nonce.check(&named, &[], &roots, true)).unwrap_err();
    assert!(why.contains("nonce"), "{why}");
    let head = server.asked.lock().unwrap()[1].to_ascii_lowercase();
    assert!(
        head.starts_with("post /ocsp ") && head.contains("content-type: application/ocsp-request"),
        "{head}"
    );
    // Without a server.
    let (nobody, _) = ours.made(8, |_| {});
    assert!(block_on(asking.check(&nobody, &[], &roots, true)).unwrap_err().contains("names no server"));
    assert_eq!(block_on(asking.check(&nobody, &[], &roots, false)), Ok(()));
    for wrong in ["https://a/", "http://", "http://a:b/", "http://a:0/", "ftp://a/", "x", "http://u:p@a/"] {
        let settings = Settings { responder: Some(wrong.to_owned()), ..Settings::default() };
        assert!(settings.check().is_err(), "{wrong}");
    }
}

/// With `chain`, all below the root are asked about.
#[test]
fn an_authority_between_may_be_revoked_too() {
    let ours = Authority::new("root");
    let is_revoked = ours.says(9, &revoked());
    let of_root = Server::start(move |_| Some((200, is_revoked.clone())));
    let below = ours.below_with("between", 9, |asked| {
        asked.custom_extensions.push(authority::named(&of_root.url));
    });
    let is_good = below.says(5, &good());
    let of_below = Server::start(move |_| Some((200, is_good.clone())));
    let leaf = below.issue(5, &of_below.url);
    let (roots, between) = ([root(&ours)], [CertificateDer::from(below.der.as_slice())]);
    assert_eq!(block_on(servers(|_| {}).check(&leaf, &between, &roots, true)), Ok(()));
    let asking = servers(|settings| settings.chain = true);
    assert!(block_on(asking.check(&leaf, &between, &roots, false)).unwrap_err().contains("is revoked"));
}

#[test]
fn a_stapled_response_spares_the_question() {
    let ours = Authority::new("ours");
    let roots = [root(&ours)];
    let server = Server::start(|_| Some((500, Vec::new())));
    let certificate = ours.issue(5, &server.url);
    for said in [good(), revoked()] {
        let asking = servers(|_| {});
        asking.stapled(&certificate, &[], &roots, &ours.says(5, &said));
        let judged = block_on(asking.check(&certificate, &[], &roots, true));
        assert_eq!(judged.is_ok(), said.status == good().status, "{judged:?}");
    }
    assert_eq!(server.asked(), 0);
    // What does not count is not used.
    let forged = ours.signed(5, &good(), &KeyPair::generate().unwrap(), &[]);
    let long_ago = SingleResponse { from: 1_700_000_000, until: Some(1_700_000_100), ..good() };
    let asking = servers(|_| {});
    for stapled in [forged, b"garbage".to_vec(), ours.says(5, &long_ago)] {
        asking.stapled(&certificate, &[], &roots, &stapled);
    }
    assert!(block_on(asking.check(&certificate, &[], &roots, true)).is_err());
    assert_eq!(server.asked(), 1);
    // It cannot repeat a nonce.
    let asking = servers(|settings| settings.nonce = true);
    asking.stapled(&certificate, &[], &roots, &ours.says(5, &good()));
    assert!(block_on(asking.check(&certificate, &[], &roots, true)).is_err());
}

#[test]
fn no_more_answers_are_kept_than_may_be() {
    let ours = Authority::new("ours");
    let roots = [root(&ours)];
    let server = Server::start(|_| Some((500, Vec::new())));
    let asking = servers(|settings| settings.answers = 2);
    block_on(async {
        for serial in 1..=5 {
            let certificate = ours.issue(serial, &server.url);
            assert!(asking.check(&certificate, &[], &roots, true).await.is_err());
        }
    });
    assert_eq!((server.asked(), asking.kept()), (5, 2));
}
