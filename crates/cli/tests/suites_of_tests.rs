//! `busbar test`: suites of the unit-test framework of Synapse.

#![allow(clippy::unwrap_used)]

use std::fs;
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
const GET: &str = "<request-path>/items/7</request-path><request-method>GET</request-method>";

#[test]
fn a_suite_runs() {
    let response = [
        ("$body", Some("{\"left\":\n3}")),
        ("$statusCode", Some("200")),
        ("$httpVersion", Some("1.1")),
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
