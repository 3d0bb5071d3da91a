//! The operations of the http connector against backends that answer, refuse and are not there.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use flow::testing::{self, Ended};
use support::{JSON, XML, main};

fn entry(base: &str, more: &str) -> String {
    format!(
        "<!--top--><localEntry key='conn'><http.init><connectionType>HTTP</connectionType><baseUrl>{base}</baseUrl>{more}<name>conn</name></http.init></localEntry>"
    )
}

/// Runs operations over a connection to an echo.
fn echoed(operations: &str, headers: &[(&str, &str)], body: &str) -> Ended {
    let backend = testing::backend("");
    let tested = main(&format!("{operations}{}", entry(&format!("{backend}/base"), "")));
    assert!(tested.found.is_empty(), "{operations}: {:?}", tested.found);
    tested.run(headers, body)
}

fn line(end: &Ended) -> &str {
    end.context.headers.get("X-Request").unwrap_or_default()
}

#[test]
fn methods_and_paths() {
    for (operation, wanted) in [
        ("<http.get configKey='conn'><relativePath>/a</relativePath></http.get>", "GET /base/a HTTP/1.1"),
        (
            "<http.get configKey='conn'><relativePath>a?q=1</relativePath></http.get>",
            "GET /base/a?q=1 HTTP/1.1",
        ),
        ("<http.get configKey='conn'><relativePath>?q=1</relativePath></http.get>", "GET /base?q=1 HTTP/1.1"),
        ("<http.get configKey='conn'/>", "GET /base HTTP/1.1"),
        ("<http.options configKey='conn'/>", "OPTIONS /base HTTP/1.1"),
        ("<http.delete configKey='conn'/>", "DELETE /base HTTP/1.1"),
        ("<http.put configKey='conn'/>", "PUT /base HTTP/1.1"),
        ("<http.patch configKey='conn'/>", "PATCH /base HTTP/1.1"),
        (
            "<http.post configKey='conn'><relativePath>/${payload.id}/x</relativePath></http.post>",
            "POST /base/7/x HTTP/1.1",
        ),
        (
            "<http.post configKey='conn'><relativePath>{${'/' + payload.id}}</relativePath></http.post>",
            "POST /base/7 HTTP/1.1",
        ),
        ("<http.post configKey=\"{'conn'}\"/>", "POST /base HTTP/1.1"),
        (
            "<http.get configKey='conn'><relativePath>/a b/{x}</relativePath></http.get>",
            "GET /base/a%20b/%7Bx%7D HTTP/1.1",
        ),
    ] {
        let end = echoed(operation, &[JSON], r#"{"id":"7"}"#);
        assert_eq!((end.fault(), line(&end)), (None, wanted), "{operation}");
        // What the URL was made of is not left with the message.
        assert!(end.context.client.get("uri.var.connection.base").is_none());
    }
}

#[test]
fn a_head_has_no_body() {
    let backend = testing::backend("HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n");
    let tested = main(&format!("<http.head configKey='conn'/>{}", entry(&backend, "")));
    let end = tested.run(&[JSON], "{}");
    assert_eq!((end.fault(), end.context.status), (None, Some(204)));
}

#[test]
fn bodies() {
    for (inside, headers, body, wanted, content_type) in [
        ("", JSON, r#"{"a":1}"#, r#"{"a":1}"#, "application/json"),
        (
            r#"<requestBodyType>JSON</requestBodyType><requestBodyJson>{"b":"${payload.a}","n":${payload.a}}</requestBodyJson>"#,
            JSON,
            r#"{"a":1}"#,
            r#"{"b":"1","n":1}"#,
            "application/json",
        ),
        (
            r#"<requestBodyType>JSON</requestBodyType><requestBodyJson>'{"b":"${payload.a}"}'</requestBodyJson>"#,
            JSON,
            r#"{"a":"x\"y\\"}"#,
            r#"{"b":"x\"y\\"}"#,
            "application/json",
        ),
        (
            "<requestBodyType>JSON</requestBodyType><requestBodyJson>{${payload.a}}</requestBodyJson>",
            JSON,
            r#"{"a":{"b":2}}"#,
            r#"{"b":2}"#,
            "application/json",
        ),
        (
            "<requestBodyType>XML</requestBodyType><requestBodyXml><![CDATA[<o>${payload.a}</o>]]></requestBodyXml>",
            JSON,
            r#"{"a":1}"#,
            "<o>1</o>",
            "application/xml",
        ),
        (
            "<requestBodyType>XML</requestBodyType><requestBodyXml><o xmlns=''>x</o></requestBodyXml>",
            XML,
            "<a/>",
            "<o>x</o>",
            "application/xml",
        ),
        (
            "<requestBodyType>XML</requestBodyType><requestBodyXml><o xmlns='' b='${payload.a}>'>${payload.a}</o></requestBodyXml>",
            JSON,
            r#"{"a":"1\" y=\"2</o><b/>&"}"#,
            "<o b=\"1&quot; y=&quot;2&lt;/o>&lt;b/>&amp;>\">1\" y=\"2&lt;/o&gt;&lt;b/&gt;&amp;</o>",
            "application/xml",
        ),
        (
            "<requestBodyType>XML</requestBodyType><requestBodyXml><o xmlns=''>${payload.a}</o></requestBodyXml>",
            JSON,
            r#"{"a":"</x><x>"}"#,
            "<o>&lt;/x&gt;&lt;x&gt;</o>",
            "application/xml",
        ),
        (
            "<requestBodyType>XML</requestBodyType><requestBodyXml><o xmlns=''>${payload.a}</o></requestBodyXml>",
            JSON,
            r#"{"a":"<b>1</b><c/>"}"#,
            "<o><b>1</b><c/></o>",
            "application/xml",
        ),
        // As the tools of the editor write it.
        (
            "<requestBodyType>XML</requestBodyType><requestBodyXml>{${xpath('$body/node()')}}</requestBodyXml>",
            XML,
            "<o>x</o>",
            "<o>x</o>",
            "application/xml",
        ),
        (
            "<requestBodyType>XML</requestBodyType><requestBodyXml>\n  {${xpath('$body/node()')}}\n</requestBodyXml>",
            XML,
            "<o>x</o>",
            "<o>x</o>",
            "application/xml",
        ),
        // Of several elements, and of one with text around it, the first one is sent.
        (
            "<requestBodyType>XML</requestBodyType><requestBodyXml><![CDATA[ here: <o>${payload.a}</o><p/> ]]></requestBodyXml>",
            JSON,
            r#"{"a":1}"#,
            "<o>1</o>",
            "application/xml",
        ),
        (
            "<requestBodyType>TEXT</requestBodyType><requestBodyText>Hi ${payload.a}!</requestBodyText>",
            JSON,
            r#"{"a":1}"#,
            "Hi 1!",
            "text/plain",
        ),
    ] {
        let mut end = echoed(&format!("<http.post configKey='conn'>{inside}</http.post>"), &[headers], body);
        assert_eq!(end.fault(), None, "{inside}: {:?}", end.property("ERROR_DETAIL"));
        let _ = end.payload();
        let bytes = end.context.payload.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        assert_eq!(bytes.as_deref(), Some(wanted), "{inside}");
        let value = end.context.headers.get("Content-Type").unwrap_or_default();
        assert!(value.starts_with(content_type), "{inside}: {value}");
    }
}

/// What the editor writes for a request without a body; the message's own must not go instead.
#[test]
fn an_empty_json_body_is_none() {
    for inside in
        ["<requestBodyJson></requestBodyJson>", "", "<requestBodyJson>{${payload.none}}</requestBodyJson>"]
    {
        let operation = format!(
            "<http.post configKey='conn'><requestBodyType>JSON</requestBodyType>{inside}</http.post>"
        );
        let mut end = echoed(&operation, &[JSON], r#"{"a":1}"#);
        assert_eq!(end.fault(), None, "{inside}: {:?}", end.property("ERROR_DETAIL"));
        let _ = end.payload();
        assert!(end.context.payload.is_empty(), "{inside}");
    }
}

/// A backend that answers with the head of the request.
fn heads() -> String {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 8192];
            let length = stream.read(&mut head).unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..length]).into_owned();
            let head = head.split("\r\n\r\n").next().unwrap_or("").to_owned();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{head}",
                head.len()
            );
        }
    });
    format!("http://{address}")
}

#[test]
fn headers_and_transport_parameters() {
    let backend = heads();
    for (inside, more, wanted) in [
        (r#"<headers>[["X-A","1"],{"X-B":" ${payload.a} "}]</headers>"#, "", &["x-a: 1", "x-b: 2"][..]),
        ("<headers>{${'[[\"X-A\",\"3\"]]'}}</headers>", "", &["x-a: 3"]),
        ("<noKeepAlive>true</noKeepAlive>", "", &["connection: close"]),
        ("<requestHostHeader>other</requestHostHeader>", "", &["host: other"]),
        ("<forceHttp10>true</forceHttp10>", "", &["http/1.0"]),
        ("<disableChunking>true</disableChunking>", "", &["content-length: 7"]),
        (
            "",
            "<authType>Basic Auth</authType><username>u</username><password>p</password>",
            &["authorization: basic dtpw"],
        ),
        // As the connector's own documentation writes them.
        (
            r#"<headers>[["X-A","],}"],]</headers>"#,
            "<authType>Basic Auth</authType><basicCredentialsUsername>u</basicCredentialsUsername><basicCredentialsPassword>p</basicCredentialsPassword>",
            &["authorization: basic dtpw", "x-a: ],}"],
        ),
    ] {
        let operation = format!("<http.post configKey='conn'>{inside}</http.post>");
        let tested = main(&format!("{operation}{}", entry(&backend, more)));
        assert!(tested.found.is_empty(), "{inside}: {:?}", tested.found);
        let mut end = tested.run(&[JSON], r#"{"a":2}"#);
        assert_eq!(end.fault(), None, "{inside}");
        let head = end.write(message::Format::Text).to_lowercase();
        assert!(wanted.iter().all(|wanted| head.contains(wanted)), "{inside}: {head}");
    }
}

#[test]
fn responses_go_where_they_are_asked_for() {
    let response = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nX-B: 1\r\n\r\n{\"r\":1}";
    for (inside, body, variable) in [
        ("", r#"{"r":1}"#, None),
        ("<overwriteBody>true</overwriteBody>", r#"{"r":1}"#, None),
        ("<responseVariable>v</responseVariable>", r#"{"a":1}"#, Some(r#"{"r":1}"#)),
        (
            "<responseVariable>v</responseVariable><overwriteBody>false</overwriteBody>",
            r#"{"a":1}"#,
            Some(r#"{"r":1}"#),
        ),
        (
            "<responseVariable>{${'v'}}</responseVariable><overwriteBody>true</overwriteBody>",
            r#"{"r":1}"#,
            Some("null"),
        ),
    ] {
        let backend = testing::backend(response);
        let tested = main(&format!(
            "<http.get configKey='conn'>{inside}</http.get><property name='status' expression='$axis2:HTTP_SC'/>{}",
            entry(&backend, "")
        ));
        let mut end = tested.run(&[JSON, ("X-A", "1")], r#"{"a":1}"#);
        assert_eq!((end.fault(), end.payload().as_str()), (None, body), "{inside}");
        assert_eq!(end.property("status").as_deref(), Some("201"));
        let value = end.context.variables.get("v").map(ToString::to_string);
        match variable {
            None => assert_eq!(value, None),
            Some(payload) => {
                let value: serde_json::Value = serde_json::from_str(&value.unwrap()).unwrap();
                assert_eq!(value["payload"].to_string(), payload, "{inside}");
                assert_eq!(
                    (&value["attributes"]["statusCode"], &value["headers"]["X-B"]),
                    (&201.into(), &"1".into())
                );
                let kept = end.context.headers.get("X-A");
                assert_eq!(kept.is_some(), body.contains('a'), "{inside}");
            }
        }
    }
}

#[test]
fn an_error_status_is_no_fault_and_a_failure_is() {
    let backend = testing::backend("HTTP/1.1 503 No\r\nContent-Type: text/plain\r\n\r\nx");
    let fault = "<sequence name='fault'><property name='seen' expression='$ctx:ERROR_CODE'/></sequence>";
    let call = "<http.get configKey='conn'><responseVariable>v</responseVariable></http.get><property name='after' value='1'/>";
    let end = main(&format!("{call}{}{fault}", entry(&backend, ""))).run(&[JSON], "{}");
    assert_eq!((end.fault(), end.property("after").as_deref()), (None, Some("1")));
    let end = main(&format!("{call}{}{fault}", entry("http://127.0.0.1:1", ""))).run(&[JSON], "{}");
    assert_eq!((end.property("seen").as_deref(), end.property("after")), (Some("101503"), None));
}

#[test]
fn two_operations_share_the_state_of_their_connection() {
    let more = "<suspendInitialDuration>60000</suspendInitialDuration><suspendProgressionFactor>1</suspendProgressionFactor>\
        <timeoutDuration>1000</timeoutDuration><timeoutAction>Fault</timeoutAction>";
    let tested = main(&format!(
        "<filter source='$trp:Which' regex='get'><then><http.get configKey='conn'/></then><else><http.post configKey='conn'/></else></filter>{}",
        entry("http://127.0.0.1:1", more)
    ));
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    let plan = tested.bus.plan();
    let listed = plan.inline_endpoints().iter().filter(|e| &*e.artifact.artifact == "conn").count();
    assert_eq!(listed, 1, "a connection is one endpoint, which the admin address lists");
    let code = |which| tested.run(&[JSON, ("Which", which)], "{}").property("ERROR_CODE");
    assert_eq!((code("get").as_deref(), code("post").as_deref()), (Some("101503"), Some("303001")));
}

#[test]
fn a_connection_that_is_late_slow_or_absent() {
    // Behind the operation, and named by an init ahead of it.
    let backend = testing::backend("");
    let tested = main(&format!("<http.init><baseUrl>{backend}</baseUrl></http.init><http.post/>"));
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    assert_eq!(line(&tested.run(&[JSON], "{}")), "POST / HTTP/1.1");
    // Each init in a sequence is a connection of its own.
    let other = testing::backend("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nother");
    let tested = main(&format!(
        "<http.init><baseUrl>{backend}</baseUrl></http.init><http.post/><http.init><baseUrl>{other}</baseUrl></http.init><http.post/>"
    ));
    assert_eq!(tested.run(&[JSON], "{}").write(message::Format::Text), "other");
    for (operation, found, fault) in [
        (
            "<http.get configKey='other'/>",
            "unknown-connection: there is no connection `other`",
            "0: there is no connection other",
        ),
        (
            "<http.get configKey='text'/>",
            "unknown-connection: the local entry `text` has no `http.init`",
            "0: there is no connection text",
        ),
        ("<http.get/>", "", "0: the operation has no connection"),
        (
            "<http.get configKey='conn'><headers>x</headers></http.get>",
            "bad-value: `headers` is not a list of headers",
            "0: the headers of http.get are not a list of headers",
        ),
        (
            "<http.post configKey='conn'><requestBodyType>YAML</requestBodyType></http.post>",
            "bad-value: `requestBodyType` of `http.post` cannot be `YAML`",
            "0: the requestBodyType of http.post is YAML",
        ),
        (
            "<http.post configKey='conn'><requestBodyType>JSON</requestBodyType><requestBodyJson>{\"a\":</requestBodyJson></http.post>",
            "bad-value: `requestBodyJson` of `http.post` cannot be `{\"a\":`",
            "0: the body of http.post is not JSON",
        ),
        (
            "<http.post configKey='conn'><requestBodyType>XML</requestBodyType><requestBodyXml>a</requestBodyXml></http.post>",
            "bad-value: `requestBodyXml` of `http.post` cannot be `a`",
            "0: the body of http.post is not XML",
        ),
        (
            "<http.post configKey='conn'><headers>[[\"a b\",\"1\"]]</headers></http.post>",
            "",
            "0: `a b` is not a header name",
        ),
        ("<http.post configKey='{$ctx:none}'/>", "", "0: there is no connection "),
    ] {
        let tested =
            main(&format!("{operation}{}<localEntry key='text'>x</localEntry>", entry(&backend, "")));
        assert!(
            found.is_empty() == tested.found.is_empty()
                && tested.found.iter().all(|finding| finding == found),
            "{operation}: {:?}",
            tested.found
        );
        let end = tested.run(&[JSON], "{}");
        let seen = end.fault().unwrap_or_default();
        assert!(seen.starts_with(fault), "{operation}: {seen}");
    }
}

#[test]
fn what_is_misspelt_is_said() {
    for (configuration, wanted) in [
        (
            "<http.get configKey='conn'><relativPath>/</relativPath></http.get>",
            "`relativPath` has no effect inside of `http.get`",
        ),
        (
            "<http.gett configKey='conn'/>",
            "unsupported-connector: connector operation `http.gett` is not executable here",
        ),
        (
            "<salesforce.query/>",
            "unsupported-connector: connector operation `salesforce.query` is not executable here",
        ),
    ] {
        let tested = main(&format!("{configuration}{}", entry("http://h", "")));
        assert!(tested.reports(wanted), "{configuration}: {:?}", tested.found);
    }
    let tested = main(&format!(
        "<http.get configKey='conn'/>{}",
        entry("http://h", "<timeoutDuraton>1</timeoutDuraton>")
    ));
    assert!(tested.reports("`timeoutDuraton` has no effect in `http.init`"), "{:?}", tested.found);
    // Once, also where the connection is a step.
    for init in [
        "<http.init><baseUrl>http://h</baseUrl><bad>1</bad></http.init>",
        "<redis.init><bad>1</bad></redis.init>",
    ] {
        let tested = main(init);
        let reports: Vec<_> = tested.found.iter().filter(|finding| finding.contains("`bad`")).collect();
        assert_eq!(reports.len(), 1, "{:?}", tested.found);
    }
    // A connection to another machine is one finding, whatever it is described by.
    let server = "<connectionType>SFTP</connectionType><host>h</host><port>22</port><username>u</username><password>p</password>\
        <userDirIsRoot>false</userDirIsRoot><sftpConnectionTimeout>1</sftpConnectionTimeout><strictHostKeyChecking>false</strictHostKeyChecking>";
    let entry = format!("<localEntry key='F'><file.init>{server}</file.init></localEntry>");
    let tested = main(&format!("<file.delete configKey='F'><path>a</path></file.delete><!--top-->{entry}"));
    assert_eq!(tested.found.len(), 1, "{:?}", tested.found);
    let tested = main(r#"<http.get configKey='conn'><headers>["a","b"]</headers></http.get>"#);
    assert!(tested.reports("in `headers` is not a header: it is left out"), "{:?}", tested.found);
    // As in WSO2, the type of the body takes the place of such a header.
    for (kind, given, sent) in [
        ("XML", "text/xml; charset=UTF-8", "application/xml"),
        ("JSON", "text/plain", "application/json"),
        ("TEXT", "text/csv", "text/plain"),
        ("JSON", "application/json; charset=UTF-8", ""),
        ("XML", "${vars.type}", ""),
    ] {
        let tested = main(&format!(
            r#"<http.post configKey='conn'><headers>[["content-type","{given}"]]</headers><requestBodyType>{kind}</requestBodyType></http.post>"#
        ));
        let wanted = format!("the header `Content-Type` has no effect: the body is sent as {sent}");
        assert_eq!(tested.reports(&wanted), !sent.is_empty(), "{kind} {given}: {:?}", tested.found);
    }
}

#[test]
fn an_operation_that_is_not_here_faults_alone() {
    let tested = main(
        "<filter source='$trp:Which' regex='a'><then><mongodb.find/></then><else><property name='b' value='1'/></else></filter>",
    );
    assert!(
        tested.reasons.iter().any(|why| why.contains("a driver for its database")),
        "{:?}",
        tested.reasons
    );
    assert_eq!(tested.run(&[XML, ("Which", "b")], "<a/>").property("b").as_deref(), Some("1"));
    let fault = tested.run(&[XML, ("Which", "a")], "<a/>").fault().unwrap_or_default();
    assert!(fault.contains("`mongodb.find` is not executable here") && fault.contains("a driver"), "{fault}");
}

#[test]
fn what_a_connection_lacks_is_said_and_nothing_goes_elsewhere() {
    let backend = testing::backend("");
    for (more, says) in [
        ("<authType>Basic</authType><username>u</username><password>p</password>", "no authType `Basic`"),
        ("<authType>OAuth</authType><oauthGrantType>Pasword</oauthGrantType>", "no oauthGrantType `Pasword`"),
        (
            "<authType>OAuth</authType><oauthClientId>a</oauthClientId><oauthClientSecret>b</oauthClientSecret><oauthTokenUrl>http://h/t</oauthTokenUrl>\
             <oauthRefreshToken>r</oauthRefreshToken><oauthAdditionalProperties>x=1</oauthAdditionalProperties>",
            "`oauthAdditionalProperties` is not a list of names and values",
        ),
    ] {
        let found = main(&format!("<http.get configKey='conn'/>{}", entry(&backend, more))).found;
        assert!(found.iter().any(|finding| format!("{finding:?}").contains(says)), "{more}: {found:?}");
    }
    // Words in any case.
    let more = "<authType>basic auth</authType><username>u</username><password>p</password>";
    let tested = main(&format!("<http.get configKey='conn'/>{}", entry(&backend, more)));
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    // Without a base a path does not say which host is asked.
    let path = format!("<relativePath>{backend}/x</relativePath>");
    for base in ["", "{$ctx:none}"] {
        let tested = main(&format!("<http.get configKey='conn'>{path}</http.get>{}", entry(base, "")));
        assert_eq!(tested.reports("has no `baseUrl`"), base.is_empty(), "{:?}", tested.found);
        let fault = tested.run(&[XML], "<a/>").fault().unwrap_or_default();
        assert!(fault.contains("has no baseUrl"), "{fault}");
    }
}

#[test]
fn an_answer_that_cannot_be_read_leaves_the_message_as_it_was() {
    let backend = testing::backend(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nX-B: 1\r\n\r\nno gzip",
    );
    let call = "<http.get configKey='conn'><responseVariable>v</responseVariable></http.get>";
    let fault = "<sequence name='fault'><property name='seen' value='1'/></sequence>";
    let tested = main(&format!("{call}{}{fault}", entry(&backend, "")));
    let mut end = tested.run(&[JSON, ("X-A", "1")], r#"{"a":1}"#);
    assert_eq!(end.property("seen").as_deref(), Some("1"));
    assert_eq!(end.payload(), r#"{"a":1}"#);
    let header = |name| end.context.headers.get(name);
    assert_eq!((header("X-A"), header("X-B"), header("Content-Encoding")), (Some("1"), None, None));
}
