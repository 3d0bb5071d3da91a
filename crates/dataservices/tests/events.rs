//! What a data service does around its queries: events, stylesheets, and parts of results that certain roles see only.

#![allow(clippy::unwrap_used)]

mod support;

use flow::testing::{Response, Tested};
use std::net::TcpListener;
use std::time::Duration;
use support::{SOAP, ask, call, get, get_json, json, loaded, memory, operation, query, run, soap, tested};

const SOON: Duration = Duration::from_secs(10);
/// How long is waited for what must not come.
const A_WHILE: Duration = Duration::from_millis(300);

/// Asks, and waits until all that goes on for the message has ended.
fn settled(tested: &Tested, ask: impl FnOnce() -> Response) -> Response {
    let response = ask();
    run(async { assert!(tested.bus.services().scopes.drained(SOON).await, "the work goes on") });
    response
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    text.split_once(start).and_then(|(_, rest)| rest.split_once(end)).map_or("", |(inside, _)| inside)
}

const ACCOUNTS: &str = "<result element='Accounts' rowName='Account'><element name='id' column='id' xsdType='integer'/>\
    <element name='balance' column='balance' xsdType='decimal'/></result>";

fn trigger(id: &str, expression: &str, topic: &str, subscriptions: &[String]) -> String {
    let subscriptions = subscriptions.iter().map(|address| format!("<subscription>{address}</subscription>"));
    format!(
        "<event-trigger id='{id}' language='XPath'><expression>{expression}</expression><target-topic>{topic}</target-topic>\
         <subscriptions>{}</subscriptions></event-trigger>",
        subscriptions.collect::<String>()
    )
}

/// A service with accounts: `low` looks at what is to be written, `poor` at what is read.
fn accounts(name: &str, address: &str) -> Tested {
    let with =
        |text: String, attribute: &str| text.replacen(" useConfig", &format!(" {attribute} useConfig"), 1);
    let parameters = "<param name='Balance' sqlType='DOUBLE'/><param name='Id' sqlType='INTEGER'/>";
    let update = "update accounts set balance = :Balance where id = :Id";
    let fail = "update nowhere set balance = :Balance where id = :Id";
    let inside = [
        query("create", "create table if not exists accounts (id integer, balance real)", ""),
        query("fill", "insert into accounts values (1, 300), (2, 10)", ""),
        with(query("UpdateBalance", update, parameters), "input-event-trigger='low'"),
        with(query("Fail", fail, parameters), "input-event-trigger='low'"),
        with(
            query("all", "select id, balance from accounts order by id", ACCOUNTS),
            "output-event-trigger='poor'",
        ),
        query(
            "outer",
            "select 1 a",
            &format!(
                "<result element='Outer' rowName='Row'><element name='a' column='a'/>{}</result>",
                call("all", &[])
            ),
        ),
        operation("create", &[]),
        operation("fill", &[]),
        operation("UpdateBalance", &["Balance", "Id"]),
        operation("Fail", &["Balance", "Id"]),
        operation("all", &[]),
        operation("outer", &[]),
        trigger(
            "low",
            "/UpdateBalance/Balance &lt; 200 or /Fail",
            "accounts/low",
            &[format!("{address}/one"), format!("{address}/two")],
        ),
        trigger(
            "poor",
            "//*[local-name() = 'balance'] &lt; 20 and /d:Accounts/d:Account",
            "",
            &[format!("{address}/poor")],
        )
        .replace("<expression>", "<expression xmlns:d='http://ws.wso2.org/dataservice'>"),
    ]
    .concat();
    let flow = format!(
        "<eventSource name='E'><subscriptionManager class='x.DefaultInMemorySubscriptionManager'/>\
         <subscription id='s'><filter source='accounts' dialect='urn:topic'/><endpoint><address uri='{address}/topic'/></endpoint></subscription></eventSource>\
         <proxy name='P'><target><inSequence><dataServiceCall serviceName='Shop'><source type='inline'/><operations type='single'>\
         <operation name='UpdateBalance'><param name='Balance' value='3'/><param name='Id' value='1'/></operation></operations>\
         <target type='property' name='none'/></dataServiceCall><property name='After' value='1' scope='transport'/><respond/></inSequence></target></proxy>"
    );
    let tested = tested("enableBoxcarring='true' enableBatchRequests='true'", &memory(name), &inside, &flow);
    // The subscription manager without `topicHeaderName` gets topics from those who name them.
    assert!(tested.found.iter().all(|found| found.starts_with("no-topic")), "{:?}", tested.found);
    for name in ["create", "fill"] {
        assert_eq!(get(&tested, name).status, 202);
    }
    tested
}

#[test]
fn parameters_and_results_cause_events() {
    let (address, events) = flow::testing::subscriber();
    let tested = accounts("events", &address);
    let paths = |count: usize| {
        let mut all: Vec<_> = (0..count).map(|_| events.recv_timeout(SOON).unwrap()).collect();
        all.sort();
        assert!(events.recv_timeout(A_WHILE).is_err(), "more than {count}: {all:?}");
        all
    };
    let update = |balance: &str| {
        soap(&tested, &format!("<UpdateBalance><Balance>{balance}</Balance><Id>1</Id></UpdateBalance>"))
    };
    // Nothing is sent where the expression is not true.
    assert_eq!(settled(&tested, || update("250")).status, 202);
    assert!(events.recv_timeout(A_WHILE).is_err());

    let done = settled(&tested, || update("150"));
    assert_eq!((done.status, done.body.as_str()), (202, ""));
    let all = paths(3);
    assert_eq!(all.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), ["/one", "/topic", "/two"]);
    for (path, body) in all.iter().filter(|(path, _)| path != "/topic") {
        assert!(body.contains("<soapenv:Body><data-services-event>"), "{path}: {body}");
        assert_eq!(between(body, "<service-name>", "</"), "Shop");
        assert_eq!(between(body, "<query-id>", "</"), "UpdateBalance");
        let content = "<UpdateBalance><Balance>150</Balance><Id>1</Id></UpdateBalance>";
        assert_eq!(between(body, "<content>", "</content>"), content);
        // As Java writes dates: `Sun Nov 29 02:46:21 UTC 2026`.
        assert_eq!(between(body, "<time>", "</time>").split(' ').count(), 6, "{body}");
    }

    // The result, whatever the client gets: XML, JSON, or as a part of another result.
    let rows = "<Account><id>1</id><balance>150.0</balance></Account><Account><id>2</id><balance>10.0</balance></Account>";
    let result = format!("<Accounts xmlns=\"http://ws.wso2.org/dataservice\">{rows}</Accounts>");
    let read = settled(&tested, || get(&tested, "all"));
    assert_eq!((read.status, read.body.as_str()), (200, result.as_str()));
    let read_json = settled(&tested, || get_json(&tested, "all"));
    assert_eq!(
        read_json.body,
        r#"{"Accounts":{"Account":[{"id":1,"balance":150.0},{"id":2,"balance":10.0}]}}"#
    );
    let outer = settled(&tested, || get_json(&tested, "outer"));
    assert!(outer.body.starts_with(r#"{"Outer":{"Row":[{"a":"1","Accounts":{"Account":["#), "{outer:?}");
    for (path, body) in paths(3) {
        assert_eq!(path, "/poor");
        assert_eq!(between(&body, "<content>", "</content>"), result);
    }

    // A request that fails causes none, nor a box of which one does.
    let failed = settled(&tested, || soap(&tested, "<Fail><Balance>1</Balance><Id>1</Id></Fail>"));
    assert_eq!(failed.status, 500);
    let both = r#"{"request_box":{"UpdateBalance":{"Balance":7,"Id":1},"Fail":{"Balance":1,"Id":1}}}"#;
    assert_eq!(settled(&tested, || json(&tested, "POST", "request_box", both)).status, 500);
    assert!(events.recv_timeout(A_WHILE).is_err());
    // Of a batch each request causes its own.
    let batch = r#"{"UpdateBalance_batch_req":{"UpdateBalance":[{"Balance":7,"Id":1},{"Balance":900,"Id":1},{"Balance":8,"Id":2}]}}"#;
    assert_eq!(settled(&tested, || json(&tested, "POST", "UpdateBalance_batch_req", batch)).status, 202);
    assert_eq!(paths(6).iter().filter(|(path, _)| path == "/one").count(), 2);

    // From a flow, which goes on.
    let xml = [("Content-Type", "application/xml")];
    let called = settled(&tested, || ask(&tested, "POST", "/services/P", &xml, "<a/>"));
    assert_eq!((called.status, called.headers.get("After")), (200, Some("1")));
    assert_eq!(paths(3).len(), 3);
}

/// Who is not there costs neither the request nor the other subscribers.
#[test]
fn a_subscriber_that_is_not_there_costs_nothing() {
    let (address, events) = flow::testing::subscriber();
    let inside =
        [
            query("one", "select 1 a", "<result element='R'><element name='a' column='a'/></result>")
                .replacen(" useConfig", " output-event-trigger='t' useConfig", 1),
            operation("one", &[]),
            trigger("t", "true()", "", &["http://127.0.0.1:1/".to_owned(), format!("{address}/there")]),
        ];
    let tested = tested("", &memory("nobody"), &inside.concat(), "");
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    assert_eq!(settled(&tested, || get(&tested, "one")).status, 200);
    assert_eq!(events.recv_timeout(SOON).unwrap().0, "/there");
}

/// Events to a subscriber that never answers do not fill the bus: 256 of a trigger wait, further ones are dropped.
#[test]
fn a_subscriber_that_hangs_takes_no_room_from_clients() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let hanging = std::thread::spawn(move || listener.incoming().take(256).collect::<Vec<_>>());
    let inside =
        [
            query("one", "select 1 a", "<result element='R'><element name='a' column='a'/></result>")
                .replacen(" useConfig", " input-event-trigger='t' useConfig", 1),
            operation("one", &[]),
            trigger("t", "true()", "", &[address]),
        ];
    let tested = tested("enableBatchRequests='true'", &memory("hanging"), &inside.concat(), "");
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    let (lines, ()) = flow::testing::logged("busbar::dataservice", || {
        for _ in 0..266 {
            assert_eq!(get(&tested, "one").status, 200);
        }
    });
    assert!(tested.bus.services().scopes.open() <= 257, "{}", tested.bus.services().scopes.open());
    let dropped = lines.iter().filter(|line| line.contains("further ones are dropped")).count();
    assert_eq!(dropped, 1, "{lines:?}");
    drop(tested);
    drop(hanging);
}

#[test]
fn what_is_wrong_with_a_trigger_is_found_when_it_loads() {
    let with = |attributes: &str, more: &str| {
        let one = query("one", "select 1 a", "<result element='R'><element name='a' column='a'/></result>");
        let one = one.replacen(" useConfig", &format!(" {attributes} useConfig"), 1);
        tested("", &memory("wrong_triggers"), &format!("{one}{}{more}", operation("one", &[])), "")
    };
    let good = trigger("good", "true()", "t", &[]);
    for (attributes, more, says) in [
        ("input-event-trigger='goood'", good.clone(), "unknown-trigger: there is no event trigger `goood`"),
        ("", good.clone(), "ignored-parameter: no query has the event trigger `good`"),
        (
            "output-event-trigger='good'",
            trigger("good", "//a[", "t", &[]),
            "bad-expression: the expression of the event trigger `good` is not valid",
        ),
        (
            "output-event-trigger='good'",
            trigger("good", "true()", "", &[]),
            "missing-element: nobody gets the events of the trigger `good`",
        ),
        (
            "output-event-trigger='good'",
            good.replace("XPath", "JSONPath"),
            "bad-value: `language` of the event trigger `good` cannot be `JSONPath`",
        ),
        (
            "output-event-trigger='good'",
            good.replace("<expression>true()</expression>", ""),
            "missing-element: the event trigger `good` has no expression",
        ),
    ] {
        let tested = with(attributes, &more);
        assert!(tested.found.iter().any(|found| found == says), "{says}: {:?}", tested.found);
        let status = if says.contains("expression") { 503 } else { 200 };
        assert_eq!(get(&tested, "one").status, status, "{says}");
    }
}

const SHEET: &str = "<xsl:stylesheet version='1.0' xmlns='' xmlns:xsl='http://www.w3.org/1999/XSL/Transform' xmlns:d='http://ws.wso2.org/dataservice' exclude-result-prefixes='d'>\
    <xsl:template match='/'><items count='{count(//d:r)}'><xsl:for-each select='//d:r'><n><xsl:value-of select='d:a'/></n></xsl:for-each></items></xsl:template></xsl:stylesheet>";

#[test]
fn a_result_is_transformed() {
    let result = "<result element='R' rowName='r' xsltPath='sheet'><element name='a' column='a' xsdType='integer'/></result>";
    let inside = [
        query("two", "select 1 a union select 2", result),
        query("none", "select 1 a where 1 = 2", &result.replace("'sheet'", "'empty'")),
        query("nested", "select 1 a", &result.replace("'sheet'", "'nested'")),
        operation("two", &[]),
        operation("none", &[]),
        operation("nested", &[]),
    ]
    .concat();
    let entries = format!(
        "<localEntry key='sheet'>{SHEET}</localEntry><localEntry key='empty'>{}</localEntry><localEntry key='nested'>{}</localEntry>\
         <proxy name='P'><target><inSequence><dataServiceCall serviceName='Shop'><source type='inline'/><operations type='single'><operation name='two'/></operations>\
         </dataServiceCall><respond/></inSequence></target></proxy>",
        SHEET.replace("<items count='{count(//d:r)}'>", "").replace("</items>", ""),
        SHEET
            .replace("<items count='{count(//d:r)}'>", "<xsl:comment>c</xsl:comment><n>")
            .replace("</items>", "<n/></n>")
    );
    let tested = tested("", &memory("transformed"), &inside, &entries);
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    let xml = "<items count=\"2\"><n>1</n><n>2</n></items>";
    let plain = get(&tested, "two");
    assert_eq!((plain.status, plain.body.as_str()), (200, xml));
    assert!(plain.headers.get("Content-Type").unwrap().starts_with("application/xml"), "{plain:?}");
    assert_eq!(get_json(&tested, "two").body, r#"{"items":{"@count":"2","n":[1,2]}}"#);
    let enveloped = soap(&tested, "<two/>");
    assert!(enveloped.body.contains(&format!("<soapenv:Body>{xml}</soapenv:Body>")), "{enveloped:?}");
    let called = ask(&tested, "POST", "/services/P", &[("Content-Type", "application/xml")], "<a/>");
    assert_eq!((called.status, called.body.as_str()), (200, xml));
    // One element it is, also where its ends do not tell.
    let nested = get(&tested, "nested");
    assert_eq!((nested.status, nested.body.as_str()), (200, "<!--c--><n><n>1</n><n/></n>"));
    // A stylesheet that makes nothing is a fault that says so.
    let none = get(&tested, "none");
    assert!(none.status == 500 && none.body.contains("the result is not one element"), "{none:?}");
}

#[test]
fn a_stylesheet_that_cannot_be_had_costs_the_service() {
    let with = |path: &str, nested: bool| {
        let result = format!(
            "<result element='R' rowName='r' xsltPath='{path}'><element name='a' column='a'/></result>"
        );
        let outer = format!(
            "<result element='O' rowName='o'><element name='a' column='a'/>{}</result>",
            call("one", &[])
        );
        let inside = [
            query("one", "select 1 a", &result),
            query(
                "outer",
                "select 2 a",
                if nested { &outer } else { "<result element='O'><element name='a' column='a'/></result>" },
            ),
            operation("outer", &[]),
            if nested { String::new() } else { operation("one", &[]) },
        ];
        let entries =
            format!("<localEntry key='sheet'>{SHEET}</localEntry><localEntry key='bad'><a/></localEntry>");
        tested("", &memory("no_sheet"), &inside.concat(), &entries)
    };
    let missing = with("none", false);
    assert!(missing.reports("unknown-entry: there is no stylesheet `none`"), "{:?}", missing.found);
    let bad = with("bad", false);
    assert!(bad.reports("the stylesheet `bad` cannot be compiled"), "{:?}", bad.found);
    assert_eq!((get(&missing, "outer").status, get(&bad, "outer").status), (503, 503));
    let nested = with("sheet", true);
    assert!(nested.reports("`xsltPath` of the query `one` has no effect"), "{:?}", nested.found);
    assert_eq!(get(&nested, "outer").status, 200);
}

#[test]
fn parts_of_a_result_are_for_certain_roles() {
    let result = "<result element='R' rowName='r'><attribute name='id' column='id' requiredRoles='clerk'/><element name='name' column='name'/>\
        <element name='salary' column='salary' requiredRoles='admin, boss'/>\
        <element name='more' requiredRoles='boss'><element name='again' column='name'/></element>\
        <call-query href='inner' requiredRoles='admin'/></result>";
    let json_result = r#"<result outputType='json'>{"rs":{"r":[{"name":"$name","salary":"$salary(requiredRoles:admin,boss)"}]}}</result>"#;
    let rows = "select 1 id, 'ann' name, 5 salary";
    let inside = [
        query("one", rows, result),
        query("described", rows, json_result),
        query("inner", "select 9 n", "<result element='I'><element name='n' column='n'/></result>"),
        operation("one", &[]),
        operation("described", &[]),
    ]
    .concat();
    let flow = "<proxy name='P'><target><inSequence><property name='ACCESS_SCOPES' expression='$trp:Roles'/>\
        <dataServiceCall serviceName='Shop'><source type='inline'/><operations type='single'><operation name='one'/></operations></dataServiceCall><respond/></inSequence></target></proxy>\
        <proxy name='Q'><target><inSequence><property name='ACCESS_SCOPES' expression='$trp:Roles'/>\
        <dataServiceCall serviceName='Shop'><source type='inline'/><operations type='single'><operation name='described'/></operations></dataServiceCall><respond/></inSequence></target></proxy>";
    let tested = tested("", &memory("roles"), &inside, flow);
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    let of = |service: &str, roles: &str| {
        let headers = [("Content-Type", "application/xml"), ("Roles", roles)];
        ask(&tested, "POST", &format!("/services/{service}"), &headers, "<a/>").body
    };
    let around = |attributes: &str, inside: &str| {
        format!("<R xmlns=\"http://ws.wso2.org/dataservice\"><r{attributes}><name>ann</name>{inside}</r></R>")
    };
    // Nobody, as every client without authentication.
    assert_eq!(get(&tested, "one").body, around("", ""));
    assert_eq!(of("P", "reader"), around("", ""));
    assert_eq!(of("P", "reader clerk"), around(" id=\"1\"", ""));
    assert_eq!(of("P", "Admin"), around("", "<salary>5</salary><I><n>9</n></I>"));
    assert_eq!(of("P", "boss"), around("", "<salary>5</salary><more><again>ann</again></more>"));
    assert!(!get_json(&tested, "described").body.contains("salary"));
    assert!(of("Q", "boss").contains("<salary>5</salary>"), "{}", of("Q", "boss"));
    assert!(!of("Q", "clerk").contains("salary"));
}

/// A data service that asks for security must not be open to all.
#[test]
fn a_service_without_its_security_is_left_out() {
    let data = |more: &str| {
        format!(
            "<data xmlns='' name='Shop'>{more}<config id='db'>{}</config>{}{}</data>",
            memory("secured"),
            query("one", "select 1 a", "<result element='R'><element name='a' column='a'/></result>"),
            operation("one", &[])
        )
    };
    for (more, says) in [
        ("<enableSec/>", "the data service `Shop` has `enableSec` and no policy for requests"),
        ("<policy key='none'/><enableSec/>", "there is no policy `none`"),
    ] {
        let tested = loaded(&data(more));
        assert!(tested.reports(says), "{:?}", tested.found);
        assert_eq!(ask(&tested, "POST", "/services/Shop", &SOAP, "<a/>").status, 503, "{says}");
    }
    let open = loaded(&data("<policy key='none'/>"));
    assert!(open.reports("`policy` has no effect without `enableSec`"), "{:?}", open.found);
    assert_eq!(get(&open, "one").status, 200);
}
