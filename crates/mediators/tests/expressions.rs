//! Every name, scope, variable and function of the expression languages, row by row, as a `property` sees it.

use config::{Injector, LoadOptions};
use flow::testing::{self, Ended, Tested};
use flow::{Inbound, Need};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SOAP: &str = r#"<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Header><h:t xmlns:h="urn:h">ht</h:t></soapenv:Header><soapenv:Body><m:o xmlns:m="urn:m"><m:s k="v">IBM</m:s><m:s>SUN</m:s><m:n>2</m:n></m:o></soapenv:Body></soapenv:Envelope>"#;
const JSON: &str = r#"{"a": {"b": 1.50, "e": 1e3, "n": null, "t": true, "s": "x", "members": {"m": 1}},
    "list": [{"i": 1, "w": "abc"}, {"i": 2, "w": "b"}], "nums": [1, 2, 3], "": 0, "é": "ü"}"#;

/// What the message has before the expression is asked.
const BEFORE: &str = r#"
    <property name="s" value="text"/>
    <property name="j" value='{"a":{"b":1.50,"n":null},"l":[1,2]}'/>
    <property name="k" value="a"/>
    <property name="m" type="JSON" value='{"entry":"of a map","n":1}'/>
    <property name="x" value="av" scope="axis2"/>
    <property name="op" value="opv" scope="operation"/>
    <property name="cl" value="clv" scope="axis2-client"/>
    <property name="X-J" value='{"q":5}' scope="transport"/>
    <property name="om" type="OM"><k xmlns="" a="1">v<z>w</z></k></property>
    <variable name="v" value="vv"/>
    <variable name="o" type="JSON" value='{"f":{"g":[1,2]},"x":"&lt;r>&lt;c>1&lt;/c>&lt;/r>"}'/>"#;

/// A directory with a registry and secrets, gone when the test ends.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let root = std::env::temp_dir().join(format!("busbar-expressions-{}-{name}", std::process::id()));
        for (file, text) in [
            ("registry/config/note.txt", "noted"),
            ("registry/config/note.txt.properties", "owner=me\ntwo.words = a b\n"),
            ("registry/config/folder/deep.json", r#"{"d": {"e": 7}}"#),
            ("registry/config/folder.collections.properties", "kind=collection"),
            ("registry/governance/plain.txt", "governed"),
            ("registry/config/lines.txt", "a\r\nb\n\n"),
            ("registry/config/raw.txt", "a\r\nb\n"),
            ("registry/config/.metadata/raw.txt.meta", "mediaType=text/csv\n"),
            ("secrets/db", "s3cret\n"),
            ("conf/security/cipher-text.properties", "cipher=AbCd==\nplain=[open]\n"),
        ] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().expect("below the root")).expect("created");
            std::fs::write(path, text).expect("written");
        }
        std::fs::write(root.join("file.properties"), "both=file\nonly.file=f\ndigits=007\n")
            .expect("written");
        Place(root)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A directory that stays behind harms nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn configured(place: &Path, sequence: &str, beside: &str, failover: bool) -> Tested {
    let environment = HashMap::from([("both", "env"), ("ONLY_ENV", "e")].map(|(k, v)| (k.into(), v.into())));
    let injector = Injector::new().with_file(&place.join("file.properties")).with_environment(environment);
    let options = LoadOptions { injector: Some(injector), ..LoadOptions::default() };
    let text = format!(
        r#"<definitions xmlns="http://ws.apache.org/ns/synapse"><localEntry key="entry">entered</localEntry>
        <localEntry key="rates"><r:rates xmlns:r="urn:r"><rate xmlns="" c="CH">8.1</rate><rate xmlns="" c="DE">19</rate></r:rates></localEntry>
        <localEntry key="leaf"><v xmlns="">7</v></localEntry>
        <sequence name="main" xmlns:m="urn:m">{sequence}</sequence>{beside}</definitions>"#
    );
    testing::configuration_in(
        &busbar_mediators::registry(endpoints::endpoint),
        &text,
        place,
        &options,
        |services| {
            services.settings.vault_directory = Some(place.join("secrets"));
            services.settings.xpath_failover = failover;
        },
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

fn headers(body: &str) -> [(&'static str, &'static str); 3] {
    let kind = if body.starts_with('<') { "text/xml" } else { "application/json" };
    [("Content-Type", kind), ("SOAPAction", "\"urn:act\""), ("X-Y", "hv")]
}

fn run(tested: &Tested, body: &str) -> Ended {
    tested.run_with(&headers(body), body, |context| {
        let inbound = Inbound {
            absolute: None,
            method: message::Method::Post,
            target: "/services/P/sub?Q=a%20b&r=1".to_owned(),
            service_length: "/services/P".len(),
            secure: false,
            tls: None,
            peer: context.inbound.peer,
            local: context.inbound.local,
            host: "bus:8280".into(),
            content_type: context.inbound.content_type.clone(),
            client: context.inbound.client,
            received: context.inbound.received,
            through: None,
        };
        context.inbound = Arc::new(inbound);
    })
}

/// The property that an expression sets: its text, `null`, or `!` and the fault.
fn value(place: &Place, body: &str, expression: &str, failover: bool) -> String {
    let sequence = format!(r#"{BEFORE}<property name="p" expression="{}"/>"#, escaped(expression));
    let tested = configured(&place.0, &sequence, "", failover);
    let wrong = |found: &&String| found.contains("expression:") || found.starts_with("unknown-secret:");
    if let Some(found) = tested.found.iter().find(wrong) {
        return format!("!{found}: {}", tested.reasons.join("\n"));
    }
    let end = run(&tested, body);
    match end.fault() {
        Some(fault) => format!("!{fault}"),
        None => end.property("p").unwrap_or_else(|| "null".to_owned()),
    }
}

/// Each expression gives its text; `!…` is a fault or a finding that contains the rest.
fn table(name: &str, body: &str, failover: bool, rows: &[(&str, &str)]) {
    let place = Place::new(name);
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|(expression, wanted)| {
            let actual = value(&place, body, expression, failover);
            let fits = match (wanted.strip_prefix('!'), actual.strip_prefix('!')) {
                (Some(wanted), Some(actual)) => actual.contains(wanted),
                (None, None) => actual == *wanted,
                _ => false,
            };
            (!fits).then(|| format!("{expression}: {actual}, not {wanted}"))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn properties_by_scope_and_name() {
    table(
        "properties",
        SOAP,
        false,
        &[
            ("get-property('s')", "text"),
            ("get-property('default', 's')", "text"),
            ("synapse:get-property('s')", "text"),
            ("get-property('none')", "null"),
            ("get-property('default', 'none')", "null"),
            ("get-property('entry')", "entered"),
            ("get-property('axis2', 'x')", "av"),
            ("get-property('axis2', 'op')", "opv"),
            ("get-property('axis2', 'cl')", "clv"),
            ("get-property('axis2', 'none')", "null"),
            ("get-property('operation', 'op')", "opv"),
            ("get-property('operation', 'none')", "null"),
            ("get-property('transport', 'X-Y')", "hv"),
            ("get-property('transport', 'x-y')", "hv"),
            ("get-property('transport', 'none')", "null"),
            ("get-property('env', 'ONLY_ENV')", "e"),
            ("get-property('env', 'none')", ""),
            ("get-property('file', 'only.file')", "f"),
            ("get-property('file', 'none')", ""),
            ("get-property('system', 'ONLY_ENV')", "e"),
            ("get-property('system', 'none')", ""),
            ("get-property('registry', 'conf:note.txt')", "noted"),
            ("get-property('registry', 'conf:/note.txt')", "noted"),
            ("get-property('registry', 'plain.txt')", "governed"),
            // As WSO2 reads lines; of another media type nothing is changed.
            ("get-property('registry', 'conf:lines.txt')", "a\nb\n"),
            ("get-property('registry', 'conf:raw.txt')", "a\r\nb\n"),
            ("get-property('registry', 'conf:note.txt@owner')", "me"),
            ("get-property('registry', 'conf:note.txt@two.words')", "a b"),
            ("get-property('registry', 'conf:note.txt@none')", ""),
            ("get-property('registry', 'conf:folder@kind')", "collection"),
            ("get-property('registry', 'conf:none')", ""),
            ("get-property('registry', 'conf:../../secrets/db')", ""),
            ("get-property('func', 'x')", "!no template here"),
            ("get-property('nosuch', 'x')", ""),
            // Computed in any scope.
            ("string-length(get-property('SYSTEM_TIME')) = 13", "true"),
            ("get-property('transport', 'SYSTEM_TIME') > 1700000000000", "true"),
            ("get-property('SYSTEM_DATE', 'yyyy') > 2000", "true"),
            ("get-property('default', 'SYSTEM_DATE', \"'a''b'\")", "a'b"),
            ("contains(get-property('SYSTEM_DATE'), '/')", "true"),
            ("get-property('SYSTEM_DATE', 'Q')", "!means nothing"),
            ("get-property('CURRENT_TIME')", "null"),
            // Names of their own in default scope.
            ("get-property('To')", "/services/P/sub?Q=a%20b&r=1"),
            ("get-property('From')", ""),
            ("get-property('ReplyTo')", ""),
            ("get-property('FaultTo')", ""),
            ("get-property('RelatesTo')", ""),
            ("get-property('Action')", "urn:act"),
            ("starts-with(get-property('MessageID'), 'urn:uuid:')", "true"),
            ("get-property('FAULT')", ""),
            ("get-property('MESSAGE_FORMAT')", "soap11"),
            ("get-property('OperationName')", "mediate"),
            ("get-property('OperationNamespace')", ""),
            // Facts of the request.
            ("get-property('axis2', 'REST_URL_POSTFIX')", "/sub?Q=a%20b&r=1"),
            ("get-property('axis2', 'TransportInURL')", "/services/P/sub?Q=a%20b&r=1"),
            ("get-property('axis2', 'HTTP_METHOD')", "POST"),
            ("get-property('axis2', 'REMOTE_ADDR')", "127.0.0.1"),
            ("get-property('axis2', 'messageType')", "text/xml"),
            ("get-property('axis2', 'ContentType')", "text/xml"),
            ("get-property('axis2', 'CHARACTER_SET_ENCODING')", "UTF-8"),
            ("get-property('SERVER_IP')", "127.0.0.1"),
            ("get-property('IsClientDoingREST')", "false"),
            ("get-property('IsClientDoingSOAP11')", "true"),
        ],
    );
    let formats = [
        ("get-property('MESSAGE_FORMAT')", "pox"),
        ("get-property('FAULT')", ""),
        ("get-property('IsClientDoingREST')", "true"),
    ];
    table("formats", JSON, false, &formats);
    let fault = r#"<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body><soapenv:Fault/></soapenv:Body></soapenv:Envelope>"#;
    table("fault", fault, false, &[("concat(//x, get-property('FAULT'))", "TRUE")]);
}

#[test]
fn variables_of_xpath() {
    table(
        "variables",
        SOAP,
        false,
        &[
            ("local-name($body)", "Body"),
            ("local-name($header)", "Header"),
            ("local-name($env)", "Envelope"),
            ("$body/m:o/m:n", "2"),
            ("$header/*", "ht"),
            ("$ctx:s", "text"),
            ("$ctx:none", "null"),
            ("$ctx:om", "v"),
            ("string($ctx:om)", "vw"),
            ("$ctx:om/z", "w"),
            ("$ctx:om/@a", "1"),
            ("$axis2:x", "av"),
            ("$axis2:none", "null"),
            ("$trp:X-Y", "hv"),
            ("$trp:x-y", "hv"),
            ("$operation:op", "opv"),
            ("$var:v", "vv"),
            ("$var:none", "null"),
            ("$url:q", "a b"),
            ("$url:R", "1"),
            ("$url:none", ""),
            ("$sys:ONLY_ENV", "e"),
            ("$sys:none", ""),
            ("$m:entry", "of a map"),
            ("$m:n", "1"),
            ("$func:x", "!no template here"),
            ("$zz:k", "!has no value"),
            ("$axis2-client:cl", "!has no value"),
            ("$nothing", "!there is no variable"),
        ],
    );
}

#[test]
fn strings_of_xpath_results() {
    table(
        "strings",
        SOAP,
        false,
        &[
            ("//m:n", "2"),
            ("//m:s", r#"<m:s xmlns:m="urn:m" k="v">IBM</m:s><m:s xmlns:m="urn:m">SUN</m:s>"#),
            ("//m:s/text()", "IBMSUN"),
            ("//m:s/@k", "v"),
            ("//m:n/node()", r#"<m:n xmlns:m="urn:m">2</m:n>"#),
            ("//none", ""),
            ("//s", ""),
            ("count(//m:s)", "2"),
            ("100 div 3", "33.333333333333336"),
            ("1 div 0", "Infinity"),
            ("0 div 0", "NaN"),
            ("10000000", "10000000"),
            ("true()", "true"),
            ("name(//m:n)", "m:n"),
            ("//h:t", ""),
        ],
    );
}

#[test]
fn functions_of_xpath() {
    table(
        "functions",
        SOAP,
        false,
        &[
            ("base64Encode('é')", "w6k="),
            ("base64Encode('é', 'ISO-8859-1')", "6Q=="),
            ("base64Encode($ctx:none)", ""),
            ("base64Encode('é', 'nope')", "!unknown charset nope"),
            ("base64Decode('w6k=')", "é"),
            ("base64Decode('6Q==', 'ISO-8859-1')", "é"),
            ("base64Decode('***')", ""),
            ("url-encode('/a b?c=é')", "/a%20b?c=%C3%A9"),
            ("url-encode('é', 'ISO-8859-1')", "%E9"),
            ("url-encode('')", ""),
            ("lower-case('ABÉ')", "abé"),
            ("upper-case('abß')", "ABSS"),
            ("ends-with('abc', 'bc')", "true"),
            ("fn:concat('a', 'b')", "ab"),
            ("fn:upper-case('a')", "A"),
            ("none:concat('a', none:get-property('none'), 'b')", "ab"),
            ("none:nofunc('a')", "!there is no function"),
            ("hmac-generate('a', 'b')", "8abe0fd691e3da3035f7b7ac91be45d99e942b9e"),
            ("hmac-generate('a', 'b', 'Nope')", "!unknown algorithm"),
            ("evaluate('//m:n')", "2"),
            ("evaluate(concat('//m:', 'n'))", "2"),
            ("evaluate(\"'x'\")", "x"),
            ("evaluate('$ctx:s')", "text"),
            ("evaluate('((')", "!evaluate: "),
            ("evaluate(\"evaluate('1 + 1')\")", "2"),
            ("wso2:vault-lookup('db')", "s3cret"),
            ("wso2:vault-lookup('db', 'FILE', 'false')", "s3cret"),
            ("wso2:vault-lookup('plain')", "open"),
            ("wso2:vault-lookup('cipher')", "!is encrypted"),
            ("wso2:vault-lookup('db', 'FILE', 'true')", "!is encrypted"),
            (
                "wso2:vault-lookup('none')",
                "!unknown-secret: the secret of `wso2:vault-lookup('none')` is not available",
            ),
            ("wso2:vault-lookup('none', 'ENV')", "!no secret none"),
            ("concat('', wso2:vault-lookup('../db'))", "!not a name of a secret"),
            // What is computed shows when it runs.
            ("wso2:vault-lookup(concat('no', 'ne'))", "!0: Evaluation of the expression"),
            ("wso2:vault-lookup(concat('cip', 'her'))", "!0: Evaluation of the expression"),
            ("wso2:vault-lookup(concat('d', 'b'))", "s3cret"),
            ("hashicorp:vault-lookup('path', 'field')", "!vault.directory"),
            ("encrypt('a', 'b', 'c', 'd')", "!keystores"),
            ("nofunc('a')", "!there is no function"),
            ("matches('a', 'a')", "!XPath 2.0 has it"),
            ("base64Encode()", "!1 to 2 arguments"),
        ],
    );
}

#[test]
fn json_paths() {
    table(
        "json",
        JSON,
        false,
        &[
            ("json-eval($.a.b)", "1.5"),
            ("json-eval($.a.e)", "1000"),
            ("json-eval($.a.n)", "null"),
            ("json-eval($.a.t)", "true"),
            ("json-eval($.a['s'])", "x"),
            ("json-eval($.a.members)", r#"{"m":1}"#),
            ("json-eval($.a.none)", ""),
            ("json-eval($.list[0].i)", "1"),
            ("json-eval($.list[-1].i)", "2"),
            ("json-eval($.list[*].i)", "[1,2]"),
            ("json-eval($..i)", "[1,2]"),
            ("json-eval($..none)", "[]"),
            ("json-eval($.list[?(@.i > 1)].w)", r#"["b"]"#),
            ("json-eval($.list[?(@.w =~ /A.*/i)].i)", "[1]"),
            ("json-eval($.nums.sum())", "6.0"),
            ("json-eval($.nums.length())", "3"),
            ("json-eval($.é)", "ü"),
            ("json-eval($.)", JSON),
            ("json-eval($)", JSON),
            ("json-eval($ctx:j.a.b)", "1.5"),
            ("json-eval($ctx:j.l)", "[1,2]"),
            ("json-eval($ctx:j.a.n)", "null"),
            ("json-eval($ctx:j.none)", "!leads nowhere in the property j"),
            ("json-eval($ctx:none.a)", ""),
            ("json-eval($ctx:s.a)", "!is not JSON"),
            // The whole of a property is its text, JSON or not.
            ("json-eval($ctx:s)", "text"),
            ("json-eval($ctx:none)", ""),
            ("json-eval($ctx:j)", r#"{"a":{"b":1.50,"n":null},"l":[1,2]}"#),
            ("json-eval($trp:X-J.q)", "5"),
            ("json-eval($axis2:none.a)", ""),
            ("json-eval($var:o.f.g[1])", "2"),
            ("json-eval($.{$ctx:k}.s)", "x"),
            ("json-eval($.a", "!not a valid expression"),
            ("json-eval($.a[?(@.b ==)])", "!cannot be evaluated"),
            ("fn:tokenize('a,b', ',')", "!cannot be evaluated"),
            ("nothing:such(1)", "!cannot be evaluated"),
            ("count(1, 2)", "!cannot be evaluated"),
            // The XML view of JSON.
            ("//jsonObject/a/s", "x"),
            ("count($body/jsonObject/list)", "2"),
        ],
    );
    table("json-of-xml", SOAP, false, &[("json-eval($.o.n)", "2"), ("json-eval($.o.s[1])", "SUN")]);
    let broken = [("json-eval($.a)", "!601000"), ("//a", "!601000"), ("${payload.a}", "!601000")];
    table("json-broken", r#"{"a": 1"#, false, &broken);
    table("json-empty", " ", false, &[("json-eval($.a)", "!601000")]);
    table("json-none", "", false, &[("json-eval($.a)", ""), ("${payload.a}", "")]);
}

#[test]
fn synapse_expressions() {
    table(
        "synapse",
        JSON,
        false,
        &[
            ("${payload.a.b}", "1.5"),
            ("${$.a.s}", "x"),
            ("${payload}", JSON),
            ("${payload.none}", ""),
            ("${vars.v}", "vv"),
            ("${vars[\"v\"]}", "vv"),
            ("${vars['v']}", "vv"),
            ("${vars.o.f.g[1]}", "2"),
            ("${vars.none}", ""),
            ("${headers.X-Y}", "hv"),
            ("${headers[\"X-Y\"]}", "hv"),
            ("${props.synapse.s}", "text"),
            ("${properties.synapse.s}", "text"),
            ("${props.axis2.x}", "av"),
            ("${configs.both}", "env"),
            ("${configs[\"only.file\"]}", "f"),
            ("${configs.ONLY_ENV}", "e"),
            ("${configs.digits + 1}", "8"),
            ("${configs.none}", ""),
            ("${registry(\"conf:note.txt\")}", "noted"),
            ("${registry(\"conf:note.txt\", \"owner\")}", "me"),
            ("${registry(\"conf:note.txt\").property(\"owner\")}", "me"),
            ("${registry(\"conf:folder/deep.json\").d.e}", "7"),
            ("${registry(\"conf:none\")}", ""),
            ("${wso2-vault(\"db\")}", "s3cret"),
            ("${wso2-vault(\"none\")}", "!no secret none"),
            ("${wso2-vault(\"cipher\")}", "!`vault.key` names no key"),
            // No message goes on without a secret that it needs.
            ("${wso2-vault(\"no\" + \"ne\")}", "!0: Evaluation of the expression"),
            ("${hashicorp-vault(\"a\", \"b\")}", "!vault.directory"),
            ("${xpath('//a/s')}", "x"),
            ("${xpath('$var:v')}", "vv"),
            ("${exists(payload.a.n)}", "false"),
            ("${not(exists(payload.none))}", "true"),
            ("${(payload.nums.sum() == 6) and (1 < 2) ? 'y' : 'n'}", "y"),
            ("${payload.list[?(@.i > 1)].w}", r#"["b"]"#),
            ("${payload[\"é\"]}", "ü"),
            ("${split(\"a1b22c\", \"[0-9]+\")}", r#"["a","b","c"]"#),
            ("${1 + }", "!not a valid expression"),
        ],
    );
}

#[test]
fn keys_and_names_may_be_expressions() {
    let place = Place::new("keys");
    for (element, name, wanted) in [
        (r#"<property name="{$ctx:k}" value="1"/>"#, "a", Some("1")),
        (r#"<property name="{json-eval($ctx:j.l[0])}" value="1"/>"#, "1", Some("1")),
        (r#"<property name="{${vars.v}}" value="1"/>"#, "vv", Some("1")),
        (r#"<property name="{concat('x', $ctx:k)}" value="1"/>"#, "xa", Some("1")),
        // Only the whole attribute is an expression.
        (r#"<property name="x{$ctx:k}" value="1"/>"#, "x{$ctx:k}", Some("1")),
        (
            r#"<call-template target="t"><with-param name="x" value="{$ctx:s}"/></call-template>"#,
            "seen",
            Some("text"),
        ),
        // Evaluated where it is read.
        (
            r#"<property name="late" value="early"/><call-template target="t"><with-param name="x" value="{{$ctx:late}}"/></call-template>"#,
            "seen",
            Some("late"),
        ),
        (
            r#"<call-template target="t"><with-param name="x" value="literal"/></call-template>"#,
            "seen",
            Some("literal"),
        ),
        (r#"<call-template target="t"/>"#, "seen", None),
    ] {
        let template = r#"<template name="t"><parameter name="x"/><sequence><property name="late" value="late"/>
            <property name="seen" expression="$func:x"/></sequence></template>"#;
        let tested = configured(&place.0, &format!("{BEFORE}{element}"), template, false);
        let end = run(&tested, SOAP);
        let actual = end.property(name).filter(|actual| wanted.is_some() || !actual.is_empty());
        assert_eq!(actual.as_deref(), wanted, "{element}: {:?} {:?}", tested.found, end.fault());
    }
}

#[test]
fn namespaces_are_those_of_the_place() {
    let place = Place::new("namespaces");
    let body = r#"<a xmlns="urn:1"><b xmlns="urn:2">two</b><b>one</b><b xmlns="">none</b></a>"#;
    for (element, wanted) in [
        (r#"<property name="p" expression="//m:b"/>"#, ""),
        (r#"<property xmlns:m="urn:1" name="p" expression="//m:b"/>"#, "one"),
        (r#"<property xmlns:n="urn:2" name="p" expression="//n:b"/>"#, "two"),
        // The default namespace is none of XPath's.
        (r#"<property name="p" expression="//b"/>"#, "none"),
        // The nearest declaration counts.
        (
            r#"<filter xmlns:n="urn:1" xpath="true()"><then><property xmlns:n="urn:2" name="p" expression="//n:b"/></then></filter>"#,
            "two",
        ),
        (
            r#"<filter xmlns:n="urn:1" xpath="true()"><then><property name="p" expression="//n:b"/></then></filter>"#,
            "one",
        ),
        // An undeclared one selects nothing, with a warning.
        (r#"<property name="p" expression="//q:b"/>"#, ""),
    ] {
        let tested = configured(&place.0, element, "", false);
        assert_eq!(tested.reports("will select nothing"), element.contains("q:b"), "{element}: {tested:?}");
        let end = tested.run(&[("Content-Type", "application/xml")], body);
        assert_eq!(end.property("p").as_deref(), Some(wanted), "{element}");
    }
}

#[test]
fn an_expression_reads_what_it_needs() {
    let place = Place::new("needs");
    for (expression, wanted) in [
        ("$ctx:s", Need::Headers),
        ("get-property('axis2', 'REST_URL_POSTFIX')", Need::Headers),
        ("fn:concat('/', $trp:a)", Need::Headers),
        ("concat('/a', get-property('x'))", Need::Headers),
        ("wso2:vault-lookup('db')", Need::Headers),
        ("${vars.v + configs.x}", Need::Headers),
        ("$body//a[. = $ctx:x]", Need::Whole),
        ("$env", Need::Whole),
        ("evaluate('1')", Need::Whole),
        ("json-eval($ctx:j.a)", Need::Whole),
        ("${payload.a}", Need::Whole),
        ("${xpath('//a')}", Need::Whole),
        ("${xpath('$ctx:a')}", Need::Headers),
    ] {
        let tested =
            configured(&place.0, &format!(r#"<property name="p" expression="{expression}"/>"#), "", false);
        let needs = tested.needs();
        assert_eq!(needs, [wanted], "{expression}: {:?}", tested.found);
    }
}

#[test]
fn what_is_no_xpath_1_may_be_xpath_2() {
    table(
        "failover",
        SOAP,
        true,
        &[
            // XPath 1.0 stays what it is: on the envelope.
            ("//m:n", "2"),
            ("//*[local-name() = 't']", "ht"),
            ("count(//m:s)", "2"),
            // XPath 2.0 sees the first child of the body as a document, and gives the text of the first item.
            ("matches('abc', 'b')", "true"),
            ("matches(//m:n, '[0-9]')", "true"),
            ("for $x in //m:s return string($x)", "IBM"),
            ("string-join(//m:s, ',')", "IBM,SUN"),
            ("string-join(/m:o/m:s, ',')", "IBM,SUN"),
            ("string-join(m:s, ',')", ""),
            ("string-join(//*[local-name() = 't'], ',')", ""),
            ("if (//m:n > 1) then 'big' else 'small'", "big"),
            ("if ($ctx:s = 'text') then 'yes' else 'no'", "yes"),
            ("if (get-property('s') = 'text') then 'yes' else 'no'", "yes"),
            ("replace(//m:s[1], 'I', 'J')", "JBM"),
            ("//m:s[matches(., 'S|I')]", "IBM"),
            ("tokenize('a,b', ',')", "a"),
            ("max(//m:n)", "2"),
            ("1 to 3", "1"),
            ("//m:s[1] eq 'IBM'", "true"),
            ("()", ""),
            ("matches($ctx:none, 'b')", "false"),
            ("matches(//m:s, 'IBM')", "!resulted in an error"),
            ("fn:upper-case('a')", "A"),
            // What is neither is wrong as XPath 1.0.
            ("if (", "!not a valid expression"),
            ("nofunc('a')", "!there is no function"),
        ],
    );
    let place = Place::new("failover-use");
    for (element, wanted) in [
        (
            r#"<filter xpath="matches(//m:s[1], 'B')"><then><property name="p" value="then"/></then><else><property name="p" value="else"/></else></filter>"#,
            "then",
        ),
        (
            r#"<filter xpath="matches(//m:s[1], 'X')"><then><property name="p" value="then"/></then><else><property name="p" value="else"/></else></filter>"#,
            "else",
        ),
        (
            r#"<filter xpath="exists(//m:none)"><then><property name="p" value="then"/></then><else><property name="p" value="else"/></else></filter>"#,
            "else",
        ),
        (
            r#"<switch source="upper-case(lower-case(string-join(//m:s, '')))"><case regex="IBMSUN"><property name="p" value="case"/></case></switch>"#,
            "case",
        ),
    ] {
        let tested = configured(&place.0, element, "", true);
        let end = run(&tested, SOAP);
        assert_eq!(end.property("p").as_deref(), Some(wanted), "{element}: {:?}", tested.found);
    }
    let tested = configured(
        &place.0,
        r#"<iterate expression="for $x in //m:s return $x"><target><sequence/></target></iterate>"#,
        "",
        true,
    );
    let fault = run(&tested, SOAP).fault().unwrap_or_default();
    assert!(fault.contains("XPath 2.0, which gives texts"), "{fault} {:?}", tested.found);
}

#[test]
fn xpath_of_synapse_expressions_may_be_2_0() {
    let body = r#"<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><o><i>3</i><i>5</i></o></s:Body></s:Envelope>"#;
    table(
        "later-synapse",
        body,
        true,
        &[
            ("${xpath('if (//i > 4) then \"large\" else \"small\"')}", "large"),
            ("${xpath('string-join(for $i in //i return string($i), \"-\")')}", "3-5"),
            ("${xpath('/o/i[2] ! 1')}", "!"),
            ("${xpath('matches(//i[1], \"[0-9]\")')}", "true"),
            ("${xpath('max(//i)')}", "5"),
            // What is XPath 1.0 sees the envelope.
            ("${xpath('name(/*)')}", "s:Envelope"),
        ],
    );
    table("earlier-synapse", body, false, &[("${xpath('if (//i) then 1 else 2')}", "!")]);
}

#[test]
fn a_service_with_a_wsdl_knows_the_operation() {
    const WSDL: &str = r#"<w:definitions xmlns:w="http://schemas.xmlsoap.org/wsdl/" xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:t="urn:t" targetNamespace="urn:t">
        <w:message name="in"><w:part name="p" element="t:In"/></w:message>
        <w:portType name="PT"><w:operation name="Op"><w:input message="t:in"/></w:operation><w:operation name="Tell"/></w:portType>
        <w:binding name="B" type="t:PT"><w:operation name="Op"><soap:operation soapAction="urn:act"/></w:operation></w:binding></w:definitions>"#;
    let place = Place::new("operation");
    let proxy = |name: &str, more: &str| {
        let flow = r#"<payloadFactory media-type="text"><format>$1</format><args><arg expression="get-property('OperationName')"/></args></payloadFactory><property name="messageType" value="text/plain" scope="axis2"/><respond/>"#;
        format!(r#"<proxy name="{name}"><target><inSequence>{flow}</inSequence></target>{more}</proxy>"#)
    };
    let lax = r#"<parameter name="disableOperationValidation">true</parameter>"#;
    let published = format!("<publishWSDL>{WSDL}</publishWSDL>");
    let beside =
        [proxy("P", &published), proxy("Lax", &format!("{published}{lax}")), proxy("None", "")].concat();
    let tested = configured(&place.0, "<drop/>", &beside, false);
    let envelope = |body: &str| {
        format!(
            r#"<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>{body}</e:Body></e:Envelope>"#
        )
    };
    let (by_name, none) = (envelope(r#"<Tell xmlns="urn:x"/>"#), envelope(r#"<Other xmlns="urn:t"/>"#));
    let by_element = envelope(r#"<In xmlns="urn:t"/>"#);
    for (path, action, body, expected) in [
        ("P", Some("\"urn:act\""), by_name.as_str(), "Op"),
        ("P", Some("Tell"), &by_element, "Tell"),
        ("P", Some("\"\""), &by_element, "Op"),
        ("P", Some("\"\""), &by_name, "Tell"),
        ("Lax", Some("urn:act"), &none, "Op"),
        ("Lax", Some("urn:other"), &none, "mediate"),
        ("None", Some("urn:act"), &none, "mediate"),
        // A client without SOAP says it in the path.
        ("P/Tell?a=b", None, "<a/>", "Tell"),
        ("P/tell", None, "<a/>", "mediate"),
        ("P", None, "<a/>", "mediate"),
    ] {
        let mut headers = vec![("Content-Type", "text/xml")];
        headers.extend(action.map(|action| ("SOAPAction", action)));
        let answer = tested.ask("POST", &format!("/services/{path}"), &headers, body);
        assert_eq!((answer.status, answer.body.as_str()), (200, expected), "{path} {action:?} {body}");
    }
}

#[test]
fn a_payload_that_is_one_value() {
    for (name, body, rows) in [
        (
            "one-string",
            r#" "a \"b\"" "#,
            &[("${payload}", r#"a "b""#), ("${$}", r#"a "b""#), ("${payload + '!'}", r#"a "b"!"#)][..],
        ),
        ("one-empty-string", r#""""#, &[("${payload}", "")]),
        ("one-number", "5", &[("${payload}", "5"), ("json-eval($)", "5")]),
        ("one-boolean", "true", &[("${payload}", "true")]),
        // As `${payload.member}` of a null.
        ("one-null", "null", &[("${payload}", "")]),
        ("an-array", "[ 1, 2 ]", &[("${payload}", "[ 1, 2 ]"), ("json-eval($)", "[ 1, 2 ]")]),
    ] {
        table(name, body, false, rows);
    }
}

#[test]
fn a_local_entry_with_xml_is_a_node() {
    for (name, body) in [("entry-of-soap", SOAP), ("entry-of-json", JSON)] {
        table(
            name,
            body,
            false,
            &[
                ("get-property('rates')//rate[@c='DE']", "19"),
                ("get-property('rates')/rate[1]", "8.1"),
                ("get-property('default', 'rates')/rate/@c[. = 'CH']", "CH"),
                ("get-property('rates')//rate[@c='CH'] * 2", "16.2"),
                ("string(count(get-property('rates')//*))", "2"),
                ("local-name(get-property('rates'))", "rates"),
                ("string(get-property('rates'))", "8.119"),
                ("get-property('leaf')", "7"),
                ("get-property('leaf')/none", ""),
                // A property goes before an entry, and both can stand in one expression.
                ("concat(get-property('om')/z, get-property('leaf'))", "w7"),
                ("string(get-property('om')/z = 'w' and get-property('rates')/rate = 19)", "true"),
            ],
        );
    }
}
