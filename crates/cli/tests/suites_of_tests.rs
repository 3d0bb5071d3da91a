//! `busbar test`: suites of the unit-test framework of Synapse.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const NS: &str = "xmlns='http://ws.apache.org/ns/synapse'";

/// Writes a project, with these suites by their names.
fn project(name: &str, suites: &[(&str, String)]) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("suites-{name}"));
    let _ = fs::remove_dir_all(&root);
    let put = |path: &str, text: &str| {
        let path = root.join("Shop").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put(
        "main/api.xml",
        &format!(
            "<api {NS} name='Menu' context='/menu'><resource methods='GET' uri-template='/items/{{id}}'><inSequence><call><endpoint key='Stock'/></call>\
             <filter source='$axis2:HTTP_SC' regex='404'><then><property name='HTTP_SC' scope='axis2' value='410'/></then></filter>\
             <property name='X-Done' scope='transport' value='yes'/><respond/></inSequence></resource></api>"
        ),
    );
    put(
        "main/stock.xml",
        &format!("<endpoint {NS} name='Stock'><address uri='http://stock.invalid/stock?of=7'/></endpoint>"),
    );
    put(
        "main/tag.xml",
        &format!(
            "<s:sequence {} name='Tag'><s:property name='n' expression='//order/@n'/><s:property name='file' expression=\"get-property('registry','gov:shop/a.xml')\"/>\
             <s:property name='from' expression='$ctx:given'/><s:property name='p' value='v' scope='axis2'/></s:sequence>",
            NS.replace("xmlns=", "xmlns:s=")
        ),
    );
    for (kind, context) in [("url", "/v"), ("context", "/v/{version}")] {
        let api = format!(
            "<api {NS} name='V{kind}' context='{context}{kind}' version='2' version-type='{kind}'><resource uri-template='/x'><inSequence><respond/></inSequence></resource></api>"
        );
        put(&format!("main/{kind}.xml"), &api);
    }
    put("main/bad.xml", &format!("<sequence {NS} name='Bad'>\n<loog/></sequence>"));
    put(
        "mocks/stock.xml",
        "<mock-service><service-name>Stock</service-name><port>9090</port><context>/stock</context><resources>\
         <resource><sub-context>?of=7</sub-context><method>GET</method><response><status-code>200</status-code><payload><![CDATA[{\"left\": 3}]]></payload>\
         <headers><header name='X-Mock' value='one'/></headers></response></resource></resources></mock-service>",
    );
    for (name, text) in suites {
        put(&format!("test/{name}.xml"), text);
    }
    root
}

/// A suite of an artifact, with what stands beside it and its tests.
fn suite(artifact: &str, more: &str, cases: &str, mocks: &str) -> String {
    format!(
        "<unit-test><artifacts><test-artifact><artifact>{artifact}</artifact></test-artifact>{more}</artifacts><test-cases>{cases}</test-cases>{mocks}</unit-test>"
    )
}

fn case(name: &str, input: &str, assertions: &[(&str, Option<&str>)]) -> String {
    let assertion = |(actual, expected): &(&str, Option<&str>)| match expected {
        Some(expected) => format!(
            "<assertEquals><actual>{actual}</actual><expected><![CDATA[{expected}]]></expected><message>of {actual}</message></assertEquals>"
        ),
        None => {
            format!("<assertNotNull><actual>{actual}</actual><message>of {actual}</message></assertNotNull>")
        }
    };
    let assertions: String = assertions.iter().map(assertion).collect();
    format!(
        "<test-case name='{name}'><input>{input}</input><assertions>{assertions}</assertions></test-case>"
    )
}

fn test(words: &[&str]) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_busbar")).arg("test").args(words).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output, text)
}

const STOCK: &str = "<supportive-artifacts><artifact>main/stock.xml</artifact></supportive-artifacts>";
const MOCK: &str = "<mock-services><mock-service>mocks/stock.xml</mock-service></mock-services>";
/// An archive of the connector `greet` with the operation `hi`, in Base64.
const GREETING: &str = "UEsDBBQAAAAAAAAAIQD6U7KAagAAAGoAAAANAAAAY29ubmVjdG9yLnhtbDxjb25uZWN0b3I+PGNvbXBvbmVudCBuYW1lPSdncmVldCcgcGFja2FnZT0nb3JnLmdyZWV0Jz48ZGVwZW5kZW5jeSBjb21wb25lbnQ9J28nLz48L2NvbXBvbmVudD48L2Nvbm5lY3Rvcj5QSwMEFAAAAAAAAAAhAPUfguWLAAAAiwAAAA8AAABvL2NvbXBvbmVudC54bWw8Y29tcG9uZW50IG5hbWU9J28nIHR5cGU9J3N5bmFwc2UvdGVtcGxhdGUnPjxzdWJDb21wb25lbnRzPjxjb21wb25lbnQgbmFtZT0naGknPjxmaWxlPmhpLnhtbDwvZmlsZT48L2NvbXBvbmVudD48L3N1YkNvbXBvbmVudHM+PC9jb21wb25lbnQ+UEsDBBQAAAAAAAAAIQA7FHYfewAAAHsAAAAIAAAAby9oaS54bWw8dGVtcGxhdGUgeG1sbnM9J2h0dHA6Ly93cy5hcGFjaGUub3JnL25zL3N5bmFwc2UnIG5hbWU9J2hpJz48c2VxdWVuY2U+PHByb3BlcnR5IG5hbWU9J2hpJyB2YWx1ZT0nMScvPjwvc2VxdWVuY2U+PC90ZW1wbGF0ZT5QSwECFAMUAAAAAAAAACEA+lOygGoAAABqAAAADQAAAAAAAAAAAAAAgAEAAAAAY29ubmVjdG9yLnhtbFBLAQIUAxQAAAAAAAAAIQD1H4LliwAAAIsAAAAPAAAAAAAAAAAAAACAAZUAAABvL2NvbXBvbmVudC54bWxQSwECFAMUAAAAAAAAACEAOxR2H3sAAAB7AAAACAAAAAAAAAAAAAAAgAFNAQAAby9oaS54bWxQSwUGAAAAAAMAAwCuAAAA7gEAAAAA";
const GET: &str = "<request-path>/items/7</request-path><request-method>GET</request-method>";

#[test]
fn a_suite_runs() {
    let response = [
        ("$body", Some("{\"left\":\n3}")),
        ("$statusCode", Some("200")),
        ("$httpVersion", Some("HTTP/1.1")),
        ("$trp:X-Done", Some("yes")),
        ("$trp:X-Mock", None),
        ("${payload.left}", Some("3")),
    ];
    let https = GET.replace("GET", "get") + "<request-protocol>https</request-protocol>";
    let input = "<payload><![CDATA[<order n='5'><i/></order>]]></payload><properties><property name='given' value='g'/>\
        <property name='H' value='h' scope='transport'/><property name='A' value='a' scope='axis2'/></properties>";
    let message = [
        ("$body", Some("<order n=\"5\"> <i></i></order>")),
        ("$ctx:n", Some("5")),
        ("$ctx:from", Some("g")),
        ("$ctx:file", Some("<kept/>")),
        ("$axis2:p", Some("v")),
        ("$axis2:A", Some("a")),
        ("$trp:H", Some("h")),
        ("//order/@n", Some("5")),
    ];
    let version = case("version", "<request-path>/x</request-path>", &[("$statusCode", Some("200"))]);
    let resources = "<registry-resources><registry-resource><file-name>a.xml</file-name><artifact><kept/></artifact>\
        <registry-path>/_system/governance/shop</registry-path></registry-resource></registry-resources>";
    let texts = [
        case("xml", input, &message),
        case("text", "<payload>hello</payload>", &[("$body", Some("hello"))]),
        case(
            "json",
            "<payload>{\"a\": 1}</payload>",
            &[("$body", Some("{\"a\":1}")), ("json-eval($.a)", Some("1"))],
        ),
        case("nothing", "", &[("$body", Some(""))]),
    ]
    .concat();
    let root = project(
        "run",
        &[
            (
                "api",
                suite(
                    "main/api.xml",
                    STOCK,
                    &(case("seven", GET, &response) + &case("https", &https, &response)),
                    MOCK,
                ),
            ),
            ("tag", suite("/Shop/main/tag.xml", resources, &texts, "")),
            ("url", suite("main/url.xml", "", &version, "")),
            ("context", suite("main/context.xml", "", &version, "")),
            ("other", "<something/>".to_owned()),
        ],
    );
    let (output, text) = test(&[root.to_str().unwrap()]);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.ends_with("4 suites: 8 passed, 0 failed\n"), "{text}");
}

#[test]
fn what_does_not_hold_is_said() {
    let wrong = [("$body", Some("{\"left\":4}")), ("$trp:None", None), ("$statusCode", Some("200"))];
    let mock = |response: &str| {
        format!(
            "<mock-services><mock-service><service-name>Stock</service-name><resources><resource><response>{response}</response></resource></resources></mock-service></mock-services>"
        )
    };
    let root = project(
        "wrong",
        &[
            ("1", suite("main/api.xml", STOCK, &case("wrong", GET, &wrong), MOCK)),
            // A request that no mock service takes goes to the backend, which is not there.
            ("2", suite("main/api.xml", STOCK, &case("unmocked", GET, &[("$statusCode", Some("200"))]), "")),
            ("3", suite("main/bad.xml", "", &case("bad", "", &[]), "")),
            ("4", suite("main/gone.xml", "", &case("gone", "", &[]), "")),
            ("5", suite("main/stock.xml", "", &case("endpoint", "", &[("$body", None)]), "")),
            ("6", "<unit-test/>".to_owned()),
            (
                "7",
                suite(
                    "main/api.xml",
                    STOCK,
                    &case("n", GET, &[("$body", None)]).replace("assertNotNull", "assertNotNul"),
                    MOCK,
                ),
            ),
            ("8", suite("main/api.xml", STOCK, "", &mock("<status-code>99</status-code>"))),
            (
                "9",
                suite("main/api.xml", STOCK, "", &mock("<headers><header name='a b' value='c'/></headers>")),
            ),
        ],
    );
    let (output, text) = test(&[root.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    for said in [
        "FAILED wrong\n         assertEquals $body: of $body\n         expected  {\"left\":4}\n         actual    {\"left\": 3}\n         assertNotNull $trp:None: of $trp:None\n         actual    (nothing)\n",
        "FAILED unmocked\n",
        "Shop/main/bad.xml:2:2",
        "did you mean `log`?",
        "there is no file `main/gone.xml` in any directory around the suite",
        "an `endpoint` cannot be tested alone",
        "`artifacts` is missing",
        "`assertNotNul` is no assertion: did you mean `assertNotNull`?",
        "the mock service `Stock`: `99` is no status of an answer: expected 200 to 599",
        "the mock service `Stock`: `a b` with the value `c` is no header",
        "9 suites: 0 passed, 2 failed, 7 could not run\n",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(
        !text.contains("$statusCode: of $statusCode\n         expected  200\n         actual    200"),
        "{text}"
    );
    // As the server of WSO2 answers.
    let (output, text) = test(&[root.join("Shop/test/1.xml").to_str().unwrap(), "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["deploymentStatus"], "PASSED");
    assert_eq!(answer["testCases"][0]["assertionStatus"], "FAILED");
    assert_eq!(answer["testCases"][0]["failureAssertions"][0]["actual"], "{\"left\": 3}");
    let (output, _) = test(&[root.join("Shop/main").to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no suite"));
    assert_eq!(output.status.code(), Some(1));
}

/// A project with these files and suites.
fn files(name: &str, files: &[(&str, &str)], suites: &[(&str, String)]) -> PathBuf {
    let root = project(name, suites);
    for (path, text) in files {
        let path = root.join("Shop").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

/// Connectors by name and in Base64, a registry resource that is an endpoint, an envelope, the same file twice, and what mock services take.
#[test]
fn suites_as_tools_write_them_run() {
    let api = format!(
        "<api {NS} name='Tools' context='/tools'><resource methods='POST' uri-template='/*'><inSequence><greet.hi/>\
         <call><endpoint key='resources:back.xml'/></call><call><endpoint key='gov:own.xml'/></call><respond/></inSequence></resource></api>"
    );
    let own = format!(
        "<endpoint {NS} name='Own'><http method='post' uri-template='http://own.invalid/own'/></endpoint>"
    );
    let back =
        format!("<endpoint {NS}><http method='post' uri-template='http://back.invalid/v1/back'/></endpoint>");
    let tag = format!(
        "<sequence {NS} name='Soap'><property name='n' expression='$body/order/@n'/><property name='where' expression='${{configs.WHERE}}'/></sequence>"
    );
    let data = "<data name='Numbers' serviceNamespace='urn:n'><config id='c'><property name='driverClassName'>org.sqlite.JDBC</property>\
        <property name='url'>jdbc:sqlite::memory:</property></config><query id='q' useConfig='c'><sql>select 7 as n</sql><result element='rows' rowName='row'>\
        <element name='n' column='n' xsdType='integer'/></result></query><resource method='GET' path='one'><call-query href='q'/></resource></data>";
    let mock = |service: &str, resource: &str| {
        format!("<mock-service><service-name>{service}</service-name>{resource}</mock-service>")
    };
    let response = |payload: &str| format!("<response><payload><![CDATA[{payload}]]></payload></response>");
    let mocks = [
        "<mock-services>".to_owned(),
        mock(
            "resources:back.xml",
            // Without a method it takes any, and of a media type the parameters do not count.
            &format!(
                "<context>v1</context><resources><resource><sub-context>back</sub-context><request><headers><header name='content-type' value='Application/JSON'/>\
                 </headers><payload>{{\"b\":2, \"a\":1.0}}</payload></request>{}</resource></resources>",
                response("{\"from\":\"back\"}")
            ),
        ),
        mock(
            "gov:own.xml",
            &format!("<context>/own</context><resources><resource><sub-context>/</sub-context>{}</resource></resources>", response("{\"x\":1,\"y\":[2,{\"p\":3,\"q\":4}]}")),
        ),
        "</mock-services>".to_owned(),
    ]
    .concat();
    let resource = |file: &str, path: &str| {
        format!(
            "<registry-resource><file-name>{file}</file-name><artifact>{file}</artifact><registry-path>{path}</registry-path></registry-resource>"
        )
    };
    let more = format!(
        "<supportive-artifacts><artifact>main/stock.xml</artifact><artifact>tools.xml</artifact><artifact>main/stock.xml</artifact></supportive-artifacts>\
         <registry-resources>{}{}</registry-resources><connector-resources><connector-resource>mi-connector-http-0.1.11</connector-resource>\
         <connector-resource>{GREETING}</connector-resource></connector-resources>",
        resource("back.xml", "/_system/governance/mi-resources"),
        resource("own.xml", "/_system/governance")
    );
    let input = "<payload><![CDATA[{\"a\":1,\"b\":2}]]></payload><properties><property name='Content-Type' scope='transport' value='application/json; charset=UTF-8'/></properties>";
    let envelope = "<request-method>GET</request-method><payload><![CDATA[<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body><order n='5'/></s:Body></s:Envelope>]]></payload>";
    let expected = [("$body", Some("{\"y\":[2,{\"q\":4,\"p\":3}],\"x\":1}"))];
    let root = files(
        "tools",
        &[
            ("tools.xml", &api),
            ("back.xml", &back),
            ("own.xml", &own),
            ("main/soap.xml", &tag),
            ("numbers.dbs", data),
            (".env", "WHERE=here"),
        ],
        &[
            ("api", suite("tools.xml", &more, &case("all", input, &expected), &mocks)),
            (
                "soap",
                suite(
                    "main/soap.xml",
                    "",
                    &case(
                        "soap",
                        envelope,
                        &[
                            ("$body", Some("<order n='5'/>")),
                            ("$ctx:n", Some("5")),
                            ("$ctx:where", Some("here")),
                        ],
                    ),
                    "",
                ),
            ),
            (
                "data",
                suite(
                    "numbers.dbs",
                    "",
                    &case(
                        "data",
                        "<request-path>/one</request-path><request-method>GET</request-method>",
                        &[("$body", Some("<rows xmlns='urn:n'><row><n>7</n></row></rows>"))],
                    ),
                    "",
                ),
            ),
        ],
    );
    let (output, text) = test(&[root.to_str().unwrap()]);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.ends_with("3 suites: 3 passed, 0 failed\n"), "{text}");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The output of a build server is read by many.
#[test]
fn what_is_said_of_requests_has_no_secrets() {
    let sequence = |path: &str| {
        format!(
            "<sequence {NS} name='S'><header name='Authorization' value='Bearer planted' scope='transport'/><payloadFactory media-type='xml'><format>\
             <a xmlns=''><password>planted</password></a></format></payloadFactory><call><endpoint key='Ep'/></call></sequence>"
        ) + "</artifact></test-artifact><supportive-artifacts><artifact>"
            + &format!(
                "<endpoint {NS} name='Ep'><http method='post' uri-template='http://127.0.0.1:1{path}'/></endpoint></artifact></supportive-artifacts>"
            )
    };
    let mock = "<mock-services><mock-service><service-name>Ep</service-name><context>/x</context><resources><resource><sub-context>?access_token=planted</sub-context>\
        <method>POST</method><request><headers><header name='Authorization' value='Bearer plantedToo'/></headers></request></resource></resources></mock-service></mock-services>";
    let of = |path: &str| {
        let cases = case("one", "", &[("$ctx:none", None)]);
        let artifacts = sequence(path);
        format!(
            "<unit-test><artifacts><test-artifact><artifact>{artifacts}</artifacts><test-cases>{cases}</test-cases>{mock}</unit-test>"
        )
    };
    let suites = [("1", of("/x?access_token=planted")), ("2", of("/y?access_token=planted"))];
    let root = files("secrets", &[], &suites);
    for format in [&[][..], &["--format", "json"], &["--format", "junit"]] {
        let (_, text) = test(&[&[root.to_str().unwrap()], format].concat());
        assert!(text.contains("no resource of the mock service") && text.contains("has no path"), "{text}");
        assert!(!text.contains("planted"), "{format:?}: {text}");
    }
}

/// What a suite says wrongly is not passed over, and a test that does not pass says why.
#[test]
fn nothing_is_passed_over() {
    let faulty = format!(
        "<sequence {NS} name='Faulty'>\n<property name='p' value='v'/>\n<filter xpath='$ctx:none'><then><log/></then></filter>\n<foo.bar/></sequence>"
    );
    let fault = case("fault", "", &[("$ctx:p", Some("v"))]);
    let wanted = case("wanted", "", &[("$ctx:ERROR_MESSAGE", None)]);
    let mock = "<mock-services><mock-service><service-name>Stock</service-name><context>/stock</context><resources><resource><sub-context>?of=7</sub-context><method>POST</method>\
        <request><headers><header name='X-A' value='b'/></headers></request></resource></resources></mock-service></mock-services>";
    let api = |more: &str| {
        suite("main/api.xml", STOCK, &(case("stock", GET, &[("$statusCode", Some("200"))]) + more), mock)
    };
    let root = files(
        "passed",
        &[("faulty.xml", &faulty)],
        &[
            ("1", suite("faulty.xml", "", &(fault + &wanted), "")),
            ("2", api("")),
            ("3", api("").replace("?of=7", "/other")),
            ("4", "<unit-test><artifacts></unit-test>".to_owned()),
            ("5", api("").replace("test-cases", "testcases")),
            ("6", api("").replace("<input>", "<input><propertys/>")),
            (
                "7",
                api("").replace(
                    "<input>",
                    "<input><properties><property name='a' value='b' scope='transprt'/></properties>",
                ),
            ),
            ("8", api("").replace("<expected><![CDATA[200]]></expected>", "")),
            ("9", suite("main/tag.xml", "", "", "")),
        ],
    );
    let (output, text) = test(&[root.to_str().unwrap(), "--coverage"]);
    assert_eq!(output.status.code(), Some(1));
    for said in [
        "FAILED fault\n         the sequence ends with a fault: ",
        "Shop/faulty.xml:4:1",
        "ok     wanted\n",
        "3 of 4 steps ran in ",
        "; not 3:33 log",
        "no resource of the mock service `Stock` is like this request, GET /stock?of=7; of the nearest one: the method is POST; the header X-A is b, not absent",
        "the mock service `Stock` has no path /stock?of=7, so the request goes to the backend itself; it has /stock/other",
        "test/4.xml\n  cannot run: error[xml-syntax]",
        "`unit-test` has no `testcases`: did you mean `test-cases`?",
        "`input` has no `propertys`: did you mean `properties`?",
        "the property `a` has the scope `transprt`: did you mean `transport`?",
        "an `assertEquals` has no `expected`",
        "test/9.xml\n  it has no tests\n",
        "9 suites: 1 passed, 3 failed, 5 could not run\n",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    // In its own encoding, or in none.
    let latin = "<?xml version='1.0' encoding='ISO-8859-1'?><unit-test><artifacts><test-artifact><artifact>gone-\u{e9}.xml</artifact></test-artifact></artifacts></unit-test>";
    let other = root.join("other");
    fs::create_dir_all(&other).unwrap();
    let bytes: Vec<u8> = latin.chars().map(|c| c as u8).collect();
    fs::write(other.join("latin.xml"), &bytes).unwrap();
    fs::write(other.join("broken.xml"), [b"<unit-test>", &b"\xff"[..], b"</unit-test>"].concat()).unwrap();
    fs::write(other.join("data.xml"), b"<a>\xff</a>").unwrap();
    let (_, text) = test(&[other.to_str().unwrap()]);
    for said in [
        "there is no file `gone-\u{e9}.xml`",
        "broken.xml: byte 11 is not UTF-8",
        "2 suites: 0 passed, 0 failed, 2 could not run\n",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    // For build servers.
    let (output, text) = test(&[root.join("Shop").to_str().unwrap(), "--format", "junit"]);
    assert_eq!(output.status.code(), Some(1));
    let report = xml::Document::parse(text.clone().into_bytes(), &xml::ParseOptions::default()).unwrap();
    let count = |name: &str| text.matches(&format!("<{name} ")).count();
    assert_eq!(report.local(report.document_element().unwrap()), "testsuites");
    assert_eq!(
        (count("testsuite"), count("testcase"), count("failure"), count("error")),
        (9, 9, 3, 5),
        "{text}"
    );
    // For machines.
    let (_, text) = test(&[root.join("Shop/test/1.xml").to_str().unwrap(), "--format", "json"]);
    let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["mediationStatus"], "FAILED");
    assert_eq!(answer["mediatorCoverage"][0]["totalMediators"], 4);
    assert_eq!(answer["mediatorCoverage"][0]["mediatorDetails"][0]["executed"], true);
    assert!(
        answer["testCases"][0]["log"][0].as_str().unwrap().starts_with("ERROR busbar::fault"),
        "{answer}"
    );
}

/// A sequence that sends and waits for no answer has sent when its test ends, to the address as it is written.
#[test]
fn one_way_messages_are_sent() {
    let backend = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/one", backend.local_addr().unwrap());
    let sending = format!(
        "<sequence {NS} name='Sending'><property name='OUT_ONLY' value='true'/><send><endpoint><address uri='{address}'/></endpoint></send></sequence>"
    );
    let cases = case("sends", "<payload>text</payload>", &[]);
    let root = files("one-way", &[("sending.xml", &sending)], &[("1", suite("sending.xml", "", &cases, ""))]);
    let place = backend.local_addr().unwrap();
    let heard = std::thread::spawn(move || {
        let mut connection = backend.accept().unwrap().0;
        let mut line = [0; 14];
        connection.read_exact(&mut line).unwrap();
        let _ = connection.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
        line
    });
    let (output, text) = test(&[root.join("Shop").to_str().unwrap()]);
    assert!(output.status.success() && text.ends_with("1 suite: 1 passed, 0 failed\n"), "{text}");
    // The first connection, if nothing was sent.
    let _ = std::net::TcpStream::connect(place).and_then(|mut own| own.write_all(b"nothing at all"));
    assert_eq!(String::from_utf8_lossy(&heard.join().unwrap()), "POST /one HTTP");
}

/// What a run has made goes when somebody ends it.
#[test]
fn an_interrupted_run_leaves_nothing() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", silent.local_addr().unwrap());
    let waiting = format!(
        "<sequence {NS} name='Waiting'><call><endpoint><address uri='{address}'/></endpoint></call></sequence>"
    );
    let root = files(
        "interrupted",
        &[("waiting.xml", &waiting)],
        &[("1", suite("waiting.xml", "", &(case("waits", "", &[]) + &case("never", "", &[])), ""))],
    );
    let place = root.join("tmp");
    fs::create_dir_all(&place).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_busbar"));
    let command = command
        .arg("test")
        .arg(root.join("Shop"))
        .env("TMPDIR", &place)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    // The message is on its way.
    let _connection = silent.accept().unwrap();
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("FAILED waits\n         interrupted\n") && !text.contains("never"), "{text}");
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
}
