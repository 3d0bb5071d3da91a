//! The email connector, against servers of the tests.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use flow::services::TlsProfiles;
use flow::testing::{self, Tested};
use std::sync::Arc;
use support::mail::{Mood, PASSWORD, Server, USER, start};
use support::{XML, registry};

const FIRST: &str = "Message-ID: <1@x>\nFrom: Bob B <bob@example.org>\nTo: ann@example.org\nSubject: Order 7\nDate: Fri, 17 Jul 2026 08:00:00 +0000\n\
                     MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\n.dot\n--b\nContent-Type: text/csv\n\
                     Content-Disposition: attachment; filename=a.csv\nContent-Transfer-Encoding: base64\n\nYSxiCg==\n--b--\n";
const SECOND: &str = "Message-ID: <2@x>\nFrom: eve@example.org\nSubject: Invoice\nDate: Sat, 18 Jul 2026 08:00:00 +0000\nContent-Type: text/html\n\n<p>x</p>";

/// Steps with a connection of this type to a server, and what else it says.
fn steps(server: &Server, kind: &str, more: &str, steps: &str) -> String {
    let password =
        if more.contains("<password>") { String::new() } else { format!("<password>{PASSWORD}</password>") };
    format!(
        "{steps}<!--top--><localEntry key=\"Mail\"><email.init><connectionType>{kind}</connectionType><host>localhost</host>\
         <port>{}</port><username>{USER}</username>{password}{more}</email.init></localEntry>",
        server.port
    )
}

fn flow(server: &Server, kind: &str, more: &str, step: &str) -> Tested {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(server.certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let profile = transport::ClientTls::from_config(Arc::new(config), None);
    testing::main_with(&registry(), &steps(server, kind, more, step), |services| {
        services.tls = Arc::new(TlsProfiles::for_all(profile));
    })
}

fn full(kind: &'static str) -> Server {
    let server = start(kind, Mood::Good);
    server.deliver(FIRST, &["\\Seen"], "17-Jul-2026 08:00:01 +0000");
    server.deliver(SECOND, &[], "18-Jul-2026 10:00:01 +0200");
    server
}

const SEND: &str = "<email.send configKey=\"Mail\"><from>bus@example.org</from><personalName>The Bus</personalName><to>a@example.org, B &lt;b@example.org></to>\
    <cc>c@example.org</cc><bcc>d@example.org</bcc><replyTo>r@example.org</replyTo><subject>Order ${payload.id}</subject><headers>X-A: 1, X-B: 2</headers>\
    <content><p>Hello ${payload.name}</p></content><attachments>[{\"fileName\":\"a.txt\",\"content\":\"aGk=\"}]</attachments></email.send>";

#[test]
fn mails_are_sent() {
    for (protocol, kind, more) in [
        ("smtp", "SMTP", ""),
        ("smtp", "smtp", "<requireTLS>true</requireTLS>"),
        ("smtps", "SMTPS", ""),
        ("smtps", "SMTPS", "<trustedHosts>*</trustedHosts><disablePooling>true</disablePooling>"),
    ] {
        let server = start(protocol, Mood::Good);
        let tested = flow(&server, kind, more, SEND);
        assert!(tested.found.is_empty(), "{:?}", tested.found);
        let mut end = tested.run(&[support::JSON], r#"{"id":7,"name":"Ann"}"#);
        assert_eq!(end.fault(), None, "{kind} {more}: {:?}", end.property("ERROR_DETAIL"));
        assert_eq!(end.outcome().unwrap(), "<result><success>true</success></result>");
        let mailbox = server.mailbox.lock().unwrap();
        let (from, to, content) = &mailbox.sent[0];
        assert_eq!(from, "MAIL FROM:<bus@example.org>");
        assert_eq!(to.join(""), "<a@example.org><b@example.org><c@example.org><d@example.org>");
        for wanted in [
            "From: \"The Bus\" <bus@example.org>",
            "Subject: Order 7\r\n",
            "X-A: 1\r\n",
            "X-B: 2\r\n",
            "Reply-To: r@example.org",
            "filename=\"a.txt\"",
            "PHA+SGVsbG8gQW5uPC9wPg==",
        ] {
            assert!(content.contains(wanted), "{wanted}: {content}");
        }
        assert!(!content.contains("d@example.org"));
    }
}

#[test]
fn connections_are_used_again() {
    for (mood, wanted) in [(Mood::Good, 1), (Mood::Forgetful, 3)] {
        let server = start("smtp", mood);
        let tested = flow(
            &server,
            "SMTP",
            "",
            &SEND.repeat(3).replace("${payload.id}", "1").replace("${payload.name}", "x"),
        );
        let end = tested.run(&[XML], "<a/>");
        assert_eq!(end.fault(), None, "{:?}", end.property("ERROR_DETAIL"));
        let mailbox = server.mailbox.lock().unwrap();
        assert_eq!((mailbox.connections, mailbox.sent.len()), (wanted, 3), "{mood:?}");
    }
    let server = full("imap");
    let mark = "<email.markAsRead configKey=\"Mail\"><emailId>&lt;2@x></emailId></email.markAsRead>";
    let end = flow(&server, "IMAP", "", &mark.repeat(2)).run(&[XML], "<a/>");
    assert_eq!((end.fault(), server.mailbox.lock().unwrap().connections), (None, 1));
}

#[test]
fn mails_are_listed() {
    for (protocol, kind, more) in [
        ("imap", "IMAP", ""),
        ("imap", "IMAP", "<requireTLS>true</requireTLS>"),
        ("imaps", "IMAPS", ""),
        ("pop3", "POP3", ""),
        ("pop3s", "POP3S", ""),
        ("pop3", "POP3", "<requireTLS>true</requireTLS>"),
    ] {
        let is_imap = kind.starts_with("IMAP");
        for (inside, wanted) in [
            ("", "1,2"),
            ("<seen>false</seen><deleted>false</deleted>", if is_imap { "2" } else { "1,2" }),
            ("<subjectRegex>order \\d</subjectRegex>", ""),
            ("<subjectRegex>Order \\d</subjectRegex>", "1"),
            ("<subjectRegex>invoice</subjectRegex>", "2"),
            ("<fromRegex>bob@</fromRegex>", "1"),
            ("<sentSince>2026-07-17T20:00:00Z</sentSince>", "2"),
            ("<receivedUntil>2026-07-17T20:00:00Z</receivedUntil>", "1"),
            ("<offset>1</offset><limit>5</limit>", "2"),
            ("<limit>1</limit>", "1"),
            ("<offset>9</offset>", ""),
        ] {
            let server = full(protocol);
            let list = format!(
                "<email.list configKey=\"Mail\">{inside}<responseVariable>m</responseVariable></email.list><property name=\"ids\" expression=\"${{vars.m.payload.emails[*].emailID}}\"/>"
            );
            let end = flow(&server, kind, more, &list).run(&[XML], "<a/>");
            assert_eq!(end.fault(), None, "{kind} {inside}: {:?}", end.property("ERROR_DETAIL"));
            let payload = end.context.variables.get("m").unwrap().to_string();
            let ids: Vec<&str> =
                ["1", "2"].into_iter().filter(|id| payload.contains(&format!("<{id}@x>"))).collect();
            assert_eq!(ids.join(","), wanted, "{kind} {more} {inside}: {payload}");
        }
    }
}

#[test]
fn a_list_is_a_body_as_well_and_its_mails_are_read() {
    for (protocol, kind) in [("imap", "IMAP"), ("pop3", "POP3")] {
        let server = full(protocol);
        let mut end =
            flow(&server, kind, "", "<email.list configKey=\"Mail\"><limit>1</limit></email.list><respond/>")
                .run(&[XML], "<a/>");
        assert_eq!(
            end.outcome().unwrap(),
            "<emails><email><index>0</index><emailID>&lt;1@x&gt;</emailID><to>ann@example.org</to><from>Bob B &lt;bob@example.org&gt;</from>\
             <subject>Order 7</subject><attachments><attachment><index>0</index><name>a.csv</name><contentType>text/csv</contentType></attachment></attachments></email></emails>"
        );
        let steps = "<email.list configKey=\"Mail\"/><email.getEmailBody configKey=\"Mail\"><emailIndex>0</emailIndex></email.getEmailBody>\
            <email.getEmailAttachment configKey=\"Mail\"><emailIndex>0</emailIndex><attachmentIndex>0</attachmentIndex></email.getEmailAttachment>";
        let mut end = flow(&server, kind, "", steps).run(&[XML], "<a/>");
        assert_eq!(end.fault(), None, "{:?}", end.property("ERROR_DETAIL"));
        assert_eq!(end.property("SUBJECT").as_deref(), Some("Order 7"));
        assert_eq!(end.property("TEXT_CONTENT").as_deref().map(str::trim_end), Some(".dot"));
        assert_eq!(end.property("ATTACHMENT_NAME").as_deref(), Some("a.csv"));
        assert_eq!(end.write(message::Format::Text), "a,b\n");
        let steps = "<email.getEmailBody configKey=\"Mail\"><emailId>&lt;2@x></emailId><responseVariable>b</responseVariable></email.getEmailBody>\
            <email.getEmailAttachment configKey=\"Mail\"><emailID>1@x</emailID><attachmentIndex>0</attachmentIndex><responseVariable>f</responseVariable></email.getEmailAttachment>";
        let end = flow(&server, kind, "", steps).run(&[XML], "<a/>");
        assert_eq!(end.fault(), None, "{:?}", end.property("ERROR_DETAIL"));
        let text = |name: &str| end.context.variables.get(name).unwrap().to_string();
        assert!(text("b").contains(r#""htmlContent":"<p>x</p>"#), "{}", text("b"));
        assert!(text("f").contains(r#""base64Content":"YSxiCg==""#), "{}", text("f"));
    }
}

#[test]
fn mails_are_deleted_and_marked() {
    for (protocol, kind, step, wanted, flags) in [
        (
            "imap",
            "IMAP",
            "<email.delete configKey=\"Mail\"><emailId>&lt;1@x></emailId></email.delete>",
            vec![11],
            0,
        ),
        (
            "pop3",
            "POP3",
            "<email.delete configKey=\"Mail\"><emailId>&lt;1@x></emailId></email.delete>",
            vec![11],
            0,
        ),
        (
            "imap",
            "IMAP",
            "<email.markAsDeleted configKey=\"Mail\"><emailId>&lt;2@x></emailId></email.markAsDeleted>",
            vec![10, 11],
            1,
        ),
        (
            "imap",
            "IMAP",
            "<email.markAsRead configKey=\"Mail\"><emailId>&lt;2@x></emailId><folder>Entwürfe</folder></email.markAsRead>",
            vec![10, 11],
            1,
        ),
        (
            "imap",
            "IMAP",
            "<email.markAsDeleted configKey=\"Mail\"><emailId>&lt;2@x></emailId></email.markAsDeleted><email.expungeFolder configKey=\"Mail\"/>",
            vec![10],
            0,
        ),
        (
            "imap",
            "IMAP",
            "<email.list configKey=\"Mail\"><deleteAfterRetrieve>true</deleteAfterRetrieve><limit>1</limit></email.list>",
            vec![11],
            0,
        ),
        (
            "pop3",
            "POP3",
            "<email.list configKey=\"Mail\"><deleteAfterRetrieve>true</deleteAfterRetrieve></email.list>",
            vec![],
            0,
        ),
    ] {
        let server = full(protocol);
        let end = flow(&server, kind, "", step).run(&[XML], "<a/>");
        assert_eq!(end.fault(), None, "{kind} {step}: {:?}", end.property("ERROR_DETAIL"));
        assert_eq!(server.uids(), wanted, "{kind} {step}");
        let mailbox = server.mailbox.lock().unwrap();
        let second = mailbox.messages.iter().find(|m| m.uid == 11);
        assert_eq!(second.map_or(0, |m| m.flags.len()), flags, "{step}");
    }
}

#[test]
fn what_fails_has_the_codes_of_the_connector() {
    let send = |inside: &str| {
        format!("<email.send configKey=\"Mail\"><from>a@x.org</from><to>b@x.org</to>{inside}</email.send>")
    };
    let delete = "<email.delete configKey=\"Mail\"><emailId>&lt;9@x></emailId></email.delete>".to_owned();
    let list = "<email.list configKey=\"Mail\"/>".to_owned();
    // Where one of them ends, a busy machine must not let the other one end first.
    let slow_answer = "<readTimeout>200</readTimeout><connectionTimeout>20000</connectionTimeout>";
    let slow_connect = "<readTimeout>20000</readTimeout><connectionTimeout>200</connectionTimeout>";
    let wrong = "<password>x</password>";
    for (protocol, mood, kind, more, step, code, detail) in [
        ("smtp", Mood::Silent, "SMTP", slow_answer, send(""), "700203", "did not answer within 200 ms"),
        ("imap", Mood::Silent, "IMAP", slow_answer, list.clone(), "700203", "did not answer within 200 ms"),
        (
            "pop3",
            Mood::Silent,
            "POP3S",
            slow_connect,
            list.clone(),
            "700203",
            "connecting took longer than 200 ms",
        ),
        ("smtp", Mood::Closes, "SMTP", "", send(""), "700203", "localhost:"),
        ("imap", Mood::Closes, "IMAP", "", list.clone(), "700203", "localhost:"),
        ("pop3", Mood::Closes, "POP3", "", list.clone(), "700203", "localhost:"),
        ("smtp", Mood::Picky, "SMTP", "", send("<cc>no@x.org</cc>"), "700203", "550 5.1.1 no such user"),
        ("smtp", Mood::Good, "SMTP", wrong, send(""), "700206", "535 5.7.8 bad credentials"),
        (
            "smtp",
            Mood::Good,
            "SMTP",
            "<requireAuthentication>false</requireAuthentication>",
            send(""),
            "700206",
            "530 5.7.0",
        ),
        ("imap", Mood::Good, "IMAP", wrong, list.clone(), "700206", "AUTHENTICATIONFAILED"),
        ("pop3", Mood::Good, "POP3", wrong, list.clone(), "700206", "-ERR no"),
        ("imap", Mood::Good, "IMAP", "", delete.clone(), "700201", "there is no e-mail <9@x>"),
        ("pop3", Mood::Good, "POP3", "", delete.clone(), "700201", "there is no e-mail <9@x>"),
        (
            "imap",
            Mood::Good,
            "IMAP",
            "",
            "<email.list configKey=\"Mail\"><folder>None</folder></email.list>".to_owned(),
            "700202",
            "no such mailbox",
        ),
        (
            "pop3",
            Mood::Good,
            "POP3",
            "",
            "<email.list configKey=\"Mail\"><folder>None</folder></email.list>".to_owned(),
            "700202",
            "POP3 has no folder",
        ),
        (
            "pop3",
            Mood::Good,
            "POP3",
            "",
            "<email.expungeFolder configKey=\"Mail\"/>".to_owned(),
            "700204",
            "needs IMAP",
        ),
        ("imap", Mood::Good, "IMAP", "", send(""), "700204", "needs a connection of the type SMTP"),
        ("smtp", Mood::Good, "SMTP", "", list.clone(), "700204", "needs a connection of the type IMAP"),
        (
            "smtp",
            Mood::Good,
            "SMTP",
            "",
            "<email.send configKey=\"Mail\"><to>a</to></email.send>".to_owned(),
            "700204",
            "`to` is not a list",
        ),
        ("smtp", Mood::Good, "SMTP", "", send("<attachments>/none.txt</attachments>"), "700204", "/none.txt"),
        (
            "smtp",
            Mood::Good,
            "SMTP",
            "",
            send("<headers>Bcc: x@y.org</headers>"),
            "700204",
            "made of other parameters",
        ),
        (
            "imap",
            Mood::Good,
            "IMAP",
            "",
            "<email.markAsRead configKey=\"Mail\"/>".to_owned(),
            "700204",
            "`emailId` is not given",
        ),
        (
            "imap",
            Mood::Good,
            "IMAP",
            "",
            "<email.list configKey=\"Mail\"><limit>x</limit></email.list>".to_owned(),
            "700204",
            "`limit` is not a number",
        ),
        (
            "imap",
            Mood::Good,
            "IMAP",
            "",
            "<email.list configKey=\"Mail\"><sentSince>x</sentSince></email.list>".to_owned(),
            "700204",
            "is not a time",
        ),
        (
            "imap",
            Mood::Good,
            "IMAP",
            "",
            "<email.getEmailBody configKey=\"Mail\"><emailIndex>0</emailIndex></email.getEmailBody>"
                .to_owned(),
            "700204",
            "needs `email.list`",
        ),
        (
            "imap",
            Mood::Good,
            "IMAP",
            "",
            "<email.getEmailAttachment configKey=\"Mail\"><emailId>1@x</emailId></email.getEmailAttachment>"
                .to_owned(),
            "700201",
            "no e-mail",
        ),
        ("smtp", Mood::Good, "SMTP", "<enableOAuth2>true</enableOAuth2>", send(""), "700204", "enableOAuth2"),
        ("smtp", Mood::Good, "SMTPS", "", send(""), "700203", ""),
    ] {
        let server = start(protocol, mood);
        let step = match step.strip_suffix("/>") {
            Some(open) => format!(
                "{open}><responseVariable>r</responseVariable></{}>",
                &open[1..].split(' ').next().unwrap()
            ),
            None => step.replacen("</email.", "<responseVariable>r</responseVariable></email.", 1),
        };
        let end = flow(&server, kind, more, &step).run(&[XML], "<a/>");
        let (found, why) = (end.property("ERROR_CODE"), end.property("ERROR_DETAIL").unwrap_or_default());
        assert_eq!(found.as_deref(), Some(code), "{kind} {more} {step}: {why}");
        assert!(why.contains(detail) && !why.contains(PASSWORD), "{step}: {why}");
        let variable = end.context.variables.get("r").unwrap().to_string();
        assert!(variable.contains(&format!(r#""code":"{code}""#)), "{variable}");
    }
}

#[test]
fn a_server_that_is_gone_and_one_that_nobody_trusts() {
    let server = start("smtps", Mood::Good);
    let end = flow(&server, "SMTPS", "", SEND).run(&[support::JSON], "{}");
    assert_eq!(end.fault(), None);
    let other = start("smtps", Mood::Good);
    // Its certificate is another one than that of the profile.
    let xml = steps(&other, "SMTPS", "", SEND);
    let tested = flow(&server, "SMTPS", "", &xml.replace("<!--top-->", "<!--top--><!-- -->"));
    drop(tested);
    let gone = Server { port: 1, mailbox: Arc::default(), certificate: server.certificate.clone() };
    let end = flow(&gone, "SMTP", "", SEND).run(&[support::JSON], "{}");
    assert_eq!(end.property("ERROR_CODE").as_deref(), Some("700203"));
    let stranger =
        Server { port: other.port, mailbox: Arc::default(), certificate: server.certificate.clone() };
    let end = flow(&stranger, "SMTPS", "", SEND).run(&[support::JSON], "{}");
    let why = end.property("ERROR_DETAIL").unwrap_or_default();
    assert!(why.contains("certificate"), "{why}");
}

#[test]
fn loading_says_what_is_wrong() {
    let server =
        Server { port: 25, mailbox: Arc::default(), certificate: start("smtps", Mood::Good).certificate };
    for (kind, more, wanted) in [
        ("SMPT", "", "bad-value: there is no connectionType `SMPT`"),
        ("SMTP", "<readTimeout>soon</readTimeout>", "bad-value: `readTimeout` is not a number: soon"),
        ("SMTP", "<usernam>x</usernam>", "ignored-element: `usernam` has no effect in `email.init`"),
        ("SMTP", "<enableOAuth2>true</enableOAuth2>", "bad-value: `enableOAuth2` needs `refreshToken`"),
        (
            "SMTP",
            "<enableOAuth2>true</enableOAuth2><grantType>PASSWORD</grantType>",
            "bad-value: there is no grantType `PASSWORD`",
        ),
    ] {
        let tested = flow(&server, kind, more, SEND);
        assert!(tested.found.iter().any(|finding| finding == wanted), "{:?}", tested.found);
    }
    let tested = flow(&server, "SMTP", "", "<email.send configKey=\"Mail\"><too>x</too></email.send>");
    assert!(tested.found.iter().any(|finding| finding.contains("too")), "{:?}", tested.found);
}
