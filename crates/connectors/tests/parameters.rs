//! Parameters of operations and connections that no other test has, each with what it does.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;
#[path = "parameters/table.rs"]
mod table;

use flow::services::TlsProfiles;
use flow::testing::{self, Tested};
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use support::mail::{Mood, PASSWORD, Server, USER, scripted, start, tokens};
use support::{JSON, XML, main, registry};

fn mailbox(server: &Server, kind: &str, more: &str, steps: &str) -> Tested {
    let text = format!(
        "{steps}<!--top--><localEntry key=\"Mail\"><email.init><connectionType>{kind}</connectionType><host>127.0.0.1</host>\
         <port>{}</port><username>{USER}</username><password>{PASSWORD}</password>{more}</email.init></localEntry>",
        server.port
    );
    let mut roots = rustls::RootCertStore::empty();
    roots.add(server.certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let profile = transport::ClientTls::from_config(Arc::new(config), None);
    testing::main_with(&registry(), &text, |services| {
        services.tls = Arc::new(TlsProfiles::for_all(profile));
    })
}

const SEND: &str =
    "<email.send configKey=\"Mail\"><from>a@x.org</from><to>b@x.org</to><content>x</content></email.send>";

#[test]
fn lists_of_mails_are_narrowed_down() {
    let server = start("imap", Mood::Good);
    for (id, flags, sent, received) in [
        ("1", &["\\Answered"][..], "17 Jul 2026 08:00:00", "17-Jul-2026 08:00:00 +0000"),
        ("2", &["\\Recent"], "18 Jul 2026 08:00:00", "18-Jul-2026 08:00:00 +0000"),
    ] {
        let text = format!("Message-ID: <{id}@x>\nFrom: a@x\nSubject: s\nDate: {sent} +0000\n\nx\n");
        server.deliver(&text, flags, received);
    }
    for (inside, wanted) in [
        ("<answered>true</answered>", "1"),
        ("<answered>false</answered>", "2"),
        ("<recent>true</recent>", "2"),
        ("<recent>false</recent>", "1"),
        ("<receivedSince>2026-07-17T12:00:00Z</receivedSince>", "2"),
        ("<receivedUntil>2026-07-17T12:00:00Z</receivedUntil>", "1"),
        ("<sentSince>2026-07-17T12:00:00Z</sentSince>", "2"),
        ("<sentUntil>2026-07-17T12:00:00Z</sentUntil>", "1"),
    ] {
        let step = format!(
            "<email.list configKey='Mail'>{inside}<responseVariable>r</responseVariable></email.list>"
        );
        let end = mailbox(&server, "IMAP", "", &step).run(&[XML], "<a/>");
        assert_eq!(end.fault(), None, "{inside}: {:?}", end.property("ERROR_DETAIL"));
        let listed = end.context.variables.get("r").unwrap().to_string();
        let found: Vec<&str> = ["1", "2"]
            .into_iter()
            .filter(|id| {
                listed.contains(&format!("\"emailID\":\"{id}@x\"")) || listed.contains(&format!("<{id}@x>"))
            })
            .collect();
        assert_eq!(found.join(","), wanted, "{inside}: {listed}");
    }
}

#[test]
fn mails_have_the_encoding_and_the_images_that_are_asked_for() {
    let image = r#"<inlineImages>[{"contentID":"logo","fileName":"l.png","content":"aGk="}]</inlineImages>"#;
    for (inside, wanted) in [
        (
            "<contentTransferEncoding>Quoted-Printable</contentTransferEncoding><content>a=b</content>",
            "a=3Db",
        ),
        ("<contentTransferEncoding>Base64</contentTransferEncoding><content>hi</content>", "aGk="),
        ("<contentTransferEncoding>8Bit</contentTransferEncoding><content>über</content>", "w7xiZXI="),
        (image, "Content-ID: <logo>"),
    ] {
        let server = start("smtp", Mood::Good);
        let step = format!(
            "<email.send configKey='Mail'><from>a@x.org</from><to>b@x.org</to><contentType>text/html</contentType>{inside}</email.send>"
        );
        let end = mailbox(&server, "SMTP", "", &step).run(&[XML], "<a/>");
        assert_eq!(end.fault(), None, "{inside}: {:?}", end.property("ERROR_DETAIL"));
        let content = server.mailbox.lock().unwrap().sent[0].2.clone();
        assert!(content.contains(wanted), "{inside}: {content}");
    }
}

#[test]
fn connections_to_mail_servers_are_as_many_and_as_sure_as_is_said() {
    // The certificate is for another name than the one that is asked for.
    let server = start("smtps", Mood::Good);
    let end = mailbox(&server, "SMTPS", "", SEND).run(&[XML], "<a/>");
    assert_eq!(end.property("ERROR_CODE").as_deref(), Some("700203"));
    // Without idle connections each step has its own.
    for (more, wanted) in [("", 1), ("<maxIdleConnections>0</maxIdleConnections>", 2)] {
        let server = start("smtp", Mood::Good);
        let end = mailbox(&server, "SMTP", more, &SEND.repeat(2)).run(&[XML], "<a/>");
        assert_eq!((end.fault(), server.mailbox.lock().unwrap().connections), (None, wanted), "{more}");
    }
    // A message that finds all connections in use.
    for more in ["<exhaustedAction>WHEN_EXHAUSTED_FAIL</exhaustedAction>", "<maxWaitTime>50</maxWaitTime>"] {
        let server = start("smtp", Mood::Silent);
        let more =
            format!("<maxActiveConnections>1</maxActiveConnections><readTimeout>3000</readTimeout>{more}");
        let tested = mailbox(&server, "SMTP", &more, SEND);
        let details: Vec<String> = std::thread::scope(|scope| {
            let first =
                scope.spawn(|| tested.run(&[XML], "<a/>").property("ERROR_DETAIL").unwrap_or_default());
            while server.mailbox.lock().unwrap().connections == 0 {
                std::thread::sleep(Duration::from_millis(5));
            }
            let second = tested.run(&[XML], "<a/>").property("ERROR_DETAIL").unwrap_or_default();
            vec![first.join().unwrap(), second]
        });
        assert!(details[1].contains("1 connections are in use"), "{details:?}");
    }
    // A server that takes nothing more.
    let greetings = ["220 hi\r\n", "250 hi\r\n", "250 ok\r\n", "250 ok\r\n", "354 go on\r\n"];
    let script = greetings.iter().map(|text| (*text).to_owned()).collect();
    let port = scripted(script, Duration::from_secs(3));
    let server = Server { port, mailbox: Arc::default(), certificate: server.certificate };
    let step = SEND.replace("<content>x</content>", "<content>${payload.x}</content>");
    let more = "<writeTimeout>300</writeTimeout><requireAuthentication>false</requireAuthentication><readTimeout>20000</readTimeout>";
    let body = format!(r#"{{"x":"{}"}}"#, "x".repeat(16 << 20));
    let end = mailbox(&server, "SMTP", more, &step).run(&[JSON], &body);
    let why = end.property("ERROR_DETAIL").unwrap_or_default();
    assert!(
        why.contains("the server takes nothing")
            || why.contains("reset")
            || why.contains("pipe")
            || why.contains("closed"),
        "{why}"
    );
}

#[test]
fn the_rest_of_files_and_csv() {
    let directory = std::env::temp_dir().join(format!("busbar-parameters-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(directory.join("in")).unwrap();
    fs::write(directory.join("in/a.txt"), b"\xe4").unwrap();
    let steps = |inside: &str| {
        format!(
            "{inside}<!--top--><localEntry key='d'><file.init><workingDir>{}</workingDir></file.init></localEntry>",
            directory.display()
        )
    };
    let mut end = main(&steps(
        "<file.read configKey='d'><path>in/a.txt</path><charset>ISO-8859-1</charset></file.read>",
    ))
    .run(&[XML], "<a/>");
    assert_eq!(end.write(message::Format::Text), "ä");
    let zip = "<file.compress configKey='d'><sourceDirectoryPath>in</sourceDirectoryPath><targetFilePath>a.zip</targetFilePath></file.compress>";
    for (inside, has_names) in [("", true), ("<includeFileNames>false</includeFileNames>", false)] {
        let unzip = format!(
            "<file.unzip configKey='d'><sourceFilePath>a.zip</sourceFilePath><targetDirectory>out</targetDirectory>{inside}<responseVariable>r</responseVariable></file.unzip>"
        );
        let end = main(&steps(&format!("{zip}{unzip}"))).run(&[XML], "<a/>");
        assert_eq!(end.fault(), None, "{:?}", end.property("ERROR_DETAIL"));
        let result = end.context.variables.get("r").unwrap().to_string();
        assert_eq!(result.contains("a.txt"), has_names, "{result}");
    }
    fs::remove_dir_all(&directory).unwrap();

    let csv = "<CSV.csvToXml><rootElementTag>r</rootElementTag><rootElementNamespace>p</rootElementNamespace>\
               <rootElementNamespaceURI>u</rootElementNamespaceURI><tagNames>a</tagNames></CSV.csvToXml>";
    let mut end = main(csv).run(&[("Content-Type", "text/csv")], "1\n");
    assert_eq!(end.outcome().unwrap(), "<p:r xmlns:p=\"u\"><group><a>1</a></group></p:r>");
}

#[test]
fn connections_of_http_fetch_tokens_and_are_suspended() {
    let backend = testing::backend("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nok");
    for (mode, in_body) in [("Payload", true), ("Header", false)] {
        let (port, requests) = tokens(&[r#"200 {"access_token":"T"}"#]);
        let connection = format!(
            "<baseUrl>{backend}</baseUrl><authType>OAuth</authType><oauthGrantType>Client Credentials</oauthGrantType><clientId>me</clientId>\
             <clientSecret>s</clientSecret><tokenUrl>http://localhost:{port}/t</tokenUrl><oauthAuthorizationMode>{mode}</oauthAuthorizationMode>\
             <additionalProperties>[[\"audience\",\"a b\"]]</additionalProperties>"
        );
        let tested = main(&format!(
            "<http.get configKey='c'/><!--top--><localEntry key='c'><http.init>{connection}</http.init></localEntry>"
        ));
        assert!(tested.found.is_empty(), "{:?}", tested.found);
        assert_eq!(tested.run(&[JSON], "{}").fault(), None);
        let requests = requests.lock().unwrap();
        assert!(
            requests[0].contains("audience=a+b") || requests[0].contains("audience=a%20b"),
            "{requests:?}"
        );
        assert_eq!(requests[0].contains("client_id=me"), in_body, "{requests:?}");
    }
    // The first failure suspends the connection; one that is only marked is tried once more.
    for (more, codes) in [
        (
            "<suspendErrorCodes>101503</suspendErrorCodes><suspendInitialDuration>60000</suspendInitialDuration>\
             <suspendProgressionFactor>2</suspendProgressionFactor><suspendMaximumDuration>60000</suspendMaximumDuration>",
            ["101503", "303001", "303001"],
        ),
        (
            "<retryErrorCodes>101503</retryErrorCodes><retryCount>1</retryCount><retryDelay>0</retryDelay>\
             <suspendErrorCodes>101500</suspendErrorCodes><suspendInitialDuration>60000</suspendInitialDuration>",
            ["101503", "101503", "303001"],
        ),
    ] {
        let tested = main(&format!(
            "<http.get configKey='c'/><!--top--><localEntry key='c'><http.init><baseUrl>http://localhost:1</baseUrl>{more}</http.init></localEntry>"
        ));
        assert!(tested.found.is_empty(), "{:?}", tested.found);
        for code in codes {
            let end = tested.run(&[JSON], "{}");
            assert_eq!(end.property("ERROR_CODE").as_deref(), Some(code), "{more}");
        }
    }
}
