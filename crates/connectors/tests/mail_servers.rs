//! The email connector and servers that are broken or mean no good, and servers that want tokens.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use flow::testing::{self, Tested};
use std::time::Duration;
use support::mail::{Mood, USER, scripted, start, tokens};
use support::{XML, registry};

const SEND: &str =
    "<email.send configKey=\"Mail\"><from>a@x.org</from><to>b@x.org</to><content>x</content></email.send>";
const LIST: &str = "<email.list configKey=\"Mail\"/>";
const BODY: &str = "<email.getEmailBody configKey=\"Mail\"><emailId>1@x</emailId></email.getEmailBody>";

fn flow(kind: &str, port: u16, more: &str, step: &str) -> Tested {
    let text = format!(
        "{step}<!--top--><localEntry key=\"Mail\"><email.init><connectionType>{kind}</connectionType><host>localhost</host>\
         <port>{port}</port><username>{USER}</username>{more}</email.init></localEntry>"
    );
    testing::main(&registry(), &text)
}

/// Texts of a server that knows the user, up to the command behind that.
fn login(protocol: &str) -> Vec<String> {
    let texts: &[&str] = match protocol {
        "IMAP" => &[
            "* OK hi\r\n",
            "* CAPABILITY IMAP4rev1\r\nb1 OK\r\n",
            "b2 OK\r\n",
            "* CAPABILITY IMAP4rev1\r\nb3 OK\r\n",
            "b4 OK\r\n",
        ],
        "POP3" => &["+OK hi\r\n", "+OK\r\n", "+OK\r\n"],
        _ => &["220 hi\r\n", "250 hi\r\n", "250 ok\r\n", "250 ok\r\n", "354 go on\r\n"],
    };
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn servers_that_send_too_much_too_little_or_nonsense() {
    let long = "x".repeat(1 << 20);
    let many = |line: &str, count: usize| line.repeat(count);
    let after = |protocol: &str, more: &[&str]| {
        let mut script = login(protocol);
        script.extend(more.iter().map(|text| (*text).to_owned()));
        script
    };
    let too_much = "the server sent more than its answer may have";
    let closed = "the server closed the connection";
    for (name, kind, step, script, wanted) in [
        ("greeting", "SMTP", SEND, vec![many(&format!("220-{long}\r\n"), 40)], too_much),
        ("greeting of short lines", "SMTP", SEND, vec![many("220-x\r\n", 90_000)], too_much),
        ("greeting without end", "SMTP", SEND, vec![long.clone()], too_much),
        ("no greeting", "SMTP", SEND, vec!["hello\r\n".to_owned()], "not SMTP"),
        ("half a greeting", "SMTP", SEND, vec!["220 h".to_owned()], closed),
        ("an answer", "SMTP", SEND, vec!["220 hi\r\n".to_owned(), many("250-x\r\n", 90_000)], too_much),
        ("gone ahead of the end", "SMTP", SEND, after("SMTP", &[""]), closed),
        ("greeting", "IMAP", LIST, vec![format!("* OK {long}\r\n")], too_much),
        ("no greeting", "IMAP", LIST, vec!["* BYE full\r\n".to_owned()], "the server says * BYE full"),
        (
            "remarks without end",
            "IMAP",
            LIST,
            vec!["* OK hi\r\n".to_owned(), many("* OK x\r\n", 40_000)],
            "does not end its answer",
        ),
        (
            "search",
            "IMAP",
            LIST,
            after("IMAP", &[&many("* SEARCH 1\r\n", 300_000)]),
            "does not end its answer",
        ),
        ("gone in an answer", "IMAP", LIST, after("IMAP", &["* SEARCH 1"]), closed),
        ("end", "IMAP", LIST, after("IMAP", &["* BYE shutting down\r\n"]), "* BYE shutting down"),
        (
            "a block that nobody asked for",
            "IMAP",
            LIST,
            after("IMAP", &["* SEARCH 1\r\nb5 OK\r\n", "* 1 FETCH (UID 1 RFC822.SIZE {99999999999}\r\n"]),
            "the server sends more than was asked for",
        ),
        (
            "a block that is larger than said",
            "IMAP",
            BODY,
            after(
                "IMAP",
                &[
                    "* SEARCH 1\r\nb5 OK\r\n",
                    "* 1 FETCH (UID 1 RFC822.SIZE 5)\r\nb6 OK\r\n",
                    "* 1 FETCH (UID 1 BODY[] {99999999}\r\n",
                ],
            ),
            "the server sends more than was asked for",
        ),
        (
            "half a block",
            "IMAP",
            BODY,
            after(
                "IMAP",
                &[
                    "* SEARCH 1\r\nb5 OK\r\n",
                    "* 1 FETCH (UID 1 RFC822.SIZE 50)\r\nb6 OK\r\n",
                    "* 1 FETCH (UID 1 BODY[] {50}\r\nabc",
                ],
            ),
            closed,
        ),
        (
            "lists in lists",
            "IMAP",
            LIST,
            after(
                "IMAP",
                &["* SEARCH 1\r\nb5 OK\r\n", &format!("* 1 FETCH {}\r\nb6 OK\r\n", "(".repeat(100_000))],
            ),
            "not IMAP",
        ),
        ("greeting", "POP3", LIST, vec![format!("+OK {long}\r\n")], too_much),
        (
            "list without end",
            "POP3",
            LIST,
            after("POP3", &[&format!("+OK\r\n{}", many("1 1\r\n", 1_100_000))]),
            "not POP3",
        ),
        ("list of nonsense", "POP3", LIST, after("POP3", &["+OK\r\n1 -1\r\n.\r\n"]), "not POP3"),
        ("gone in a list", "POP3", LIST, after("POP3", &["+OK\r\n1 5\r\n"]), closed),
        (
            "a header without end",
            "POP3",
            BODY,
            after(
                "POP3",
                &["+OK\r\n1 18446744073709551615\r\n.\r\n", &format!("+OK\r\n{}", many("a: b\r\n", 100_000))],
            ),
            "larger than the server said",
        ),
        (
            "a header of one line",
            "POP3",
            BODY,
            after("POP3", &["+OK\r\n1 9999999999\r\n.\r\n", &format!("+OK\r\n{long}")]),
            too_much,
        ),
        (
            "larger than said",
            "POP3",
            LIST,
            after("POP3", &["+OK\r\n1 5\r\n.\r\n", &format!("+OK\r\n{}", many("\r\n", 90_000))]),
            "larger than the server said",
        ),
        (
            "more than a flow may hold",
            "POP3",
            LIST,
            after("POP3", &["+OK\r\n1 99999999999\r\n.\r\n"]),
            "a flow may hold",
        ),
    ] {
        let port = scripted(script, Duration::ZERO);
        let end = flow(kind, port, "<readTimeout>5000</readTimeout>", step).run(&[XML], "<a/>");
        let (code, why) = (end.property("ERROR_CODE"), end.property("ERROR_DETAIL").unwrap_or_default());
        let expected = if wanted == "a flow may hold" { "700205" } else { "700203" };
        assert_eq!(code.as_deref(), Some(expected), "{kind}, {name}: {why}");
        assert!(why.contains(wanted), "{kind}, {name}: {why}");
        assert!(why.len() < 1000, "{kind}, {name}: {}", why.len());
    }
}

#[test]
fn a_server_that_sends_a_little_now_and_then_does_not_keep_a_message() {
    let slow = |line: &str| vec![format!("{line}|").repeat(400)];
    for (kind, step, script) in [
        ("SMTP", SEND, slow("220-x\r\n")),
        ("IMAP", LIST, vec!["* OK hi\r\n".to_owned(), format!("{}|", "* OK x\r\n").repeat(400)]),
        ("POP3", LIST, {
            let mut script = login("POP3");
            script.push(format!("+OK\r\n{}", "1 1\r\n|".repeat(400)));
            script
        }),
    ] {
        let port = scripted(script, Duration::from_millis(50));
        let end = flow(kind, port, "<readTimeout>300</readTimeout>", step).run(&[XML], "<a/>");
        let why = end.property("ERROR_DETAIL").unwrap_or_default();
        assert!(why.contains("the server takes too long for its answer"), "{kind}: {why}");
    }
}

#[test]
fn nobody_goes_on_without_the_tls_that_is_required() {
    for (kind, step, script, wanted) in [
        ("SMTP", SEND, vec!["220 hi\r\n", "250 AUTH PLAIN\r\n"], "the server has no STARTTLS"),
        ("SMTP", SEND, vec!["220 hi\r\n", "250-hi\r\n250 STARTTLS\r\n", "454 not now\r\n"], "454 not now"),
        (
            "SMTP",
            SEND,
            vec!["220 hi\r\n", "250-hi\r\n250 STARTTLS\r\n", "220 go on\r\n250 AUTH PLAIN\r\n"],
            "the server sent more ahead of TLS",
        ),
        (
            "SMTP",
            SEND,
            vec!["220 hi\r\n", "250-hi\r\n250 STARTTLS\r\n", "220 go on\r\n", "no TLS at all\r\n"],
            "",
        ),
        (
            "IMAP",
            LIST,
            vec!["* OK hi\r\n", "* CAPABILITY IMAP4rev1\r\nb1 OK\r\n"],
            "the server has no STARTTLS",
        ),
        // Who is known already is not to be talked into going on without.
        (
            "IMAP",
            LIST,
            vec!["* PREAUTH hi\r\n", "* CAPABILITY IMAP4rev1\r\nb1 OK\r\n"],
            "the server has no STARTTLS",
        ),
        (
            "IMAP",
            LIST,
            vec!["* OK hi\r\n", "* CAPABILITY STARTTLS\r\nb1 OK\r\n", "b2 NO not now\r\n"],
            "NO not now",
        ),
        (
            "IMAP",
            LIST,
            vec!["* OK hi\r\n", "* CAPABILITY STARTTLS\r\nb1 OK\r\n", "b2 OK\r\n* CAPABILITY x\r\n"],
            "the server sent more ahead of TLS",
        ),
        ("POP3", LIST, vec!["+OK hi\r\n", "-ERR what\r\n"], "-ERR what"),
        ("POP3", LIST, vec!["+OK hi\r\n", "+OK\r\n+OK\r\n"], "the server sent more ahead of TLS"),
    ] {
        let script = script.into_iter().map(str::to_owned).collect();
        let port = scripted(script, Duration::ZERO);
        let more = "<requireTLS>true</requireTLS><password>topsecret</password><connectionTimeout>3000</connectionTimeout>";
        let end = flow(kind, port, more, step).run(&[XML], "<a/>");
        let (code, why) = (end.property("ERROR_CODE"), end.property("ERROR_DETAIL").unwrap_or_default());
        assert_eq!(code.as_deref(), Some("700203"), "{kind}: {why}");
        assert!(why.contains(wanted) && !why.contains("topsecret"), "{kind}: {why}");
    }
}

/// A connection to a mail server that shows tokens of the server at `port`.
fn oauth(mail: u16, port: u16, kind: &str, more: &str, step: &str) -> Tested {
    let more = format!(
        "<trustedHosts>*</trustedHosts><enableOAuth2>true</enableOAuth2><clientId>me</clientId><clientSecret>s&amp;cret</clientSecret>\
         <tokenUrl>http://localhost:{port}/token?x=1</tokenUrl>{more}"
    );
    flow(kind, mail, &more, step)
}

const REFRESH: &str = "<grantType>AUTHORIZATION_CODE</grantType><refreshToken>r0</refreshToken>";

#[test]
fn tokens_are_shown_and_kept() {
    for (protocol, kind, step) in
        [("smtp", "SMTP", SEND), ("imap", "IMAP", LIST), ("imaps", "IMAPS", LIST), ("pop3", "POP3", LIST)]
    {
        for (grant, asked_for) in [
            (REFRESH, "client_id=me&client_secret=s%26cret&grant_type=refresh_token&refresh_token=r0"),
            (
                "<grantType>Client Credentials</grantType><scope>mail.all</scope>",
                "client_id=me&client_secret=s%26cret&grant_type=client_credentials&scope=mail.all",
            ),
        ] {
            let server = start(protocol, Mood::Good);
            server.mailbox.lock().unwrap().token = "T1".to_owned();
            let (port, requests) = tokens(&[r#"200 {"access_token":"T1","expires_in":"3600"}"#]);
            let more = format!("{grant}<disablePooling>true</disablePooling>");
            let tested = oauth(server.port, port, kind, &more, &step.repeat(2));
            assert!(tested.found.is_empty(), "{kind}: {:?}", tested.found);
            let end = tested.run(&[XML], "<a/>");
            assert_eq!(end.fault(), None, "{kind}: {:?}", end.property("ERROR_DETAIL"));
            assert_eq!(*requests.lock().unwrap(), [asked_for], "{kind}");
        }
    }
}

#[test]
fn a_token_that_is_refused_is_fetched_anew_once() {
    for (protocol, kind, step) in [("smtp", "SMTP", SEND), ("imap", "IMAP", LIST), ("pop3", "POP3", LIST)] {
        let server = start(protocol, Mood::Good);
        server.mailbox.lock().unwrap().token = "T1".to_owned();
        let (port, requests) =
            tokens(&[r#"200 {"access_token":"T1","refresh_token":"r1"}"#, r#"200 {"access_token":"T2"}"#]);
        let more = format!("{REFRESH}<disablePooling>true</disablePooling>");
        let tested = oauth(server.port, port, kind, &more, step);
        assert_eq!(tested.run(&[XML], "<a/>").fault(), None);
        server.mailbox.lock().unwrap().token = "T2".to_owned();
        let end = tested.run(&[XML], "<a/>");
        assert_eq!(end.fault(), None, "{kind}: {:?}", end.property("ERROR_DETAIL"));
        // The refresh token that the server gave took the place of the first one.
        assert!(requests.lock().unwrap()[1].ends_with("&refresh_token=r1"), "{:?}", requests.lock().unwrap());
        // Where the fresh one is refused too, that is the answer.
        server.mailbox.lock().unwrap().token = "other".to_owned();
        let end = tested.run(&[XML], "<a/>");
        let why = end.property("ERROR_DETAIL").unwrap_or_default();
        assert_eq!(end.property("ERROR_CODE").as_deref(), Some("700206"), "{why}");
        assert!(why.contains("bad token") && !why.contains("T2"), "{kind}: {why}");
        assert_eq!(requests.lock().unwrap().len(), 3, "{kind}");
    }
}

/// One request asks for the token, and one brings the error: who asks further ends the operation.
#[test]
fn a_server_that_asks_for_the_token_again_and_again_is_left() {
    for capability in ["IMAP4rev1", "IMAP4rev1 SASL-IR"] {
        let greeting = ["* OK hi\r\n".to_owned(), format!("* CAPABILITY {capability}\r\nb1 OK\r\n")];
        let asked = std::iter::repeat_n("+ \r\n".to_owned(), 3);
        // The end would be good, if anyone waited for it.
        let script = greeting.into_iter().chain(asked).chain(["b2 OK\r\n".to_owned()]);
        let mail = scripted(script.collect(), Duration::ZERO);
        let (port, _) = tokens(&[r#"200 {"access_token":"T1"}"#]);
        let end = oauth(mail, port, "IMAP", REFRESH, LIST).run(&[XML], "<a/>");
        let why = end.property("ERROR_DETAIL").unwrap_or_default();
        assert_eq!(end.property("ERROR_CODE").as_deref(), Some("700203"), "{why}");
        assert!(why.contains("the server does not end its answer") && !why.contains("T1"), "{why}");
    }
}

#[test]
fn a_token_that_does_not_come_is_a_fault() {
    let server = start("smtp", Mood::Good);
    for (response, code, wanted) in [
        (&[r#"400 {"error":"invalid_grant"}"#], "700206", "it answered with 400"),
        (&["503 busy"], "700203", "it answered with 503"),
        (&["200 <html/>"], "700206", "its answer is not JSON"),
        (&[r#"200 {"access_token":"a\u0001b"}"#], "700206", "its answer has no access_token"),
        (&[r#"200 {}"#], "700206", "its answer has no access_token"),
    ] {
        let (port, _) = tokens(response);
        let end = oauth(server.port, port, "SMTP", REFRESH, SEND).run(&[XML], "<a/>");
        let why = end.property("ERROR_DETAIL").unwrap_or_default();
        assert_eq!(end.property("ERROR_CODE").as_deref(), Some(code), "{why}");
        assert!(why.contains(wanted) && !why.contains("cret") && !why.contains("r0"), "{why}");
    }
    for (port, more, code) in
        [(1, REFRESH, "700203"), (1, "<grantType>AUTHORIZATION_CODE</grantType>", "700204")]
    {
        let end = oauth(server.port, port, "SMTP", more, SEND).run(&[XML], "<a/>");
        assert_eq!(end.property("ERROR_CODE").as_deref(), Some(code), "{more}");
    }
}

#[test]
fn a_server_that_ends_the_conversation_is_asked_no_more() {
    let script = ["220 hi\r\n", "421 closing\r\n", "250 hi\r\n", "250 on\r\n"].map(str::to_owned);
    let port = scripted(script.to_vec(), Duration::ZERO);
    let end = flow("SMTP", port, "<readTimeout>5000</readTimeout>", SEND).run(&[XML], "<a/>");
    let why = end.property("ERROR_DETAIL").unwrap_or_default();
    assert!(why.contains("421 closing"), "{why}");
}
