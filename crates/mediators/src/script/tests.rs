//! Scripts in flows, without a network.

use flow::Need;
use flow::testing::{self, Ended, Tested};

const XML: &[(&str, &str)] = &[("Content-Type", "application/xml")];
const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];
const SOAP: &[(&str, &str)] = &[("Content-Type", "text/xml"), ("SOAPAction", "urn:a")];

fn flow(text: &str) -> Tested {
    testing::main(&crate::registry(testing::endpoints), text)
}

fn inline(script: &str) -> Tested {
    flow(&format!("<script language='js'><![CDATA[{script}]]></script>"))
}

fn run(script: &str, headers: &[(&str, &str)], body: &str) -> Ended {
    let flow = inline(script);
    assert!(flow.found.is_empty(), "{script}: {:?}", flow.found);
    let end = flow.run(headers, body);
    assert_eq!(end.fault(), None, "{script}");
    end
}

#[test]
fn a_flow_that_waits_for_its_branches_waits_behind_a_script_too() {
    let text = "<clone continueParent='true'><target><sequence><call><endpoint><address uri='ADDRESS'/></endpoint></call>\
         <payloadFactory media-type='json'><format>{\"of\":\"the branch\"}</format></payloadFactory><respond/></sequence></target></clone>\
         <script language='js'>mc.setProperty('a', 'b')</script>";
    let text = text.replace("ADDRESS", &testing::backend(""));
    let response = flow(&text).ask("POST", "/", JSON, "{}");
    assert_eq!((response.status, response.body.as_str()), (200, r#"{"of":"the branch"}"#));
}

#[test]
fn json_for_a_message_without_a_type_has_that_of_json() {
    for (method, headers, wanted) in [
        ("GET", &[][..], "application/json"),
        ("POST", &[], "application/json"),
        ("POST", XML, "application/xml"),
    ] {
        let text = "<script language='js'>mc.setPayloadJSON({a: 1});</script><respond/>";
        let answer = flow(text).ask(method, "/", headers, if headers.is_empty() { "" } else { "<a/>" });
        let media_type = answer.headers.get("Content-Type").unwrap_or_default();
        assert!(media_type.starts_with(wanted), "{method} {headers:?}: {media_type}");
    }
}

#[test]
fn payloads_are_read_and_replaced() {
    for (script, headers, body, expected) in [
        (
            "var p = mc.getPayloadJSON(); p.total = p.a + p.b; mc.setPayloadJSON(p);",
            JSON,
            r#"{"a":1,"b":2.5}"#,
            r#"{"a":1,"b":2.5,"total":3.5}"#,
        ),
        ("mc.setPayloadJSON(JSON.parse(mc.getPayloadText()).l);", JSON, r#"{"l":[1,10]}"#, "[1,10]"),
        ("mc.setPayloadJSON({none: mc.getPayloadJSON()});", XML, "<a/>", r#"{"none":{}}"#),
        ("mc.setPayloadJSON('text');", XML, "<a/>", r#""text""#),
        ("mc.setJsonText(mc, '{\"a\": 1}');", XML, "<a/>", r#"{"a": 1}"#),
        ("mc.setPayloadXML('<b>1</b>');", XML, "<a/>", "<b>1</b>"),
        (
            "mc.setPayloadXML(<b>{mc.getPayloadXML()..*::c.toString()}</b>);",
            XML,
            "<a xmlns='u'><c>x&amp;</c></a>",
            "<b>x&amp;</b>",
        ),
        ("mc.setPayloadXML(<b/>);", XML, "", "<b/>"),
        ("mc.setPayloadXML(mc.getPayloadXML().b);", JSON, r#"{"b":3}"#, "<b>3</b>"),
    ] {
        let mut end = run(script, headers, body);
        assert_eq!(end.payload(), expected, "{script}");
    }
    let body = "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Header><h/></s:Header><s:Body><a/></s:Body></s:Envelope>";
    let mut end = run("mc.setPayloadXML(<b/>); mc.addHeader(true, <i/>);", SOAP, body);
    let written = end.write(message::Format::Soap(message::SoapVersion::V11));
    assert!(
        written.contains("<h/><i ") && written.contains("mustUnderstand=\"1\"") && written.contains("<b/>"),
        "{written}"
    );
    let mut end = run("mc.setEnvelope(mc.getEnvelopeXML());", SOAP, body);
    assert!(end.write(message::Format::Soap(message::SoapVersion::V11)).contains("<h/>"));
}

#[test]
fn what_the_client_speaks_is_known_until_a_script_says_otherwise() {
    for (headers, set, wanted) in [
        (XML, "", "true"),
        (SOAP, "", "false"),
        (XML, "mc.setDoingPOX(false);", "false"),
        (SOAP, "mc.setDoingPOX(true);", "true"),
    ] {
        let script = format!("{set} mc.setProperty('p', String(mc.isDoingPOX()));");
        let flow = flow(&format!("<script language='js'><![CDATA[{script}]]></script>"));
        assert_eq!(flow.run(headers, "<a/>").property("p").as_deref(), Some(wanted), "{set}");
    }
}

#[test]
fn properties_and_facts_are_read_and_set() {
    let script = "mc.setProperty('a', mc.getProperty('x') + 1);
        mc.setProperty('messageType', 'application/json', 'axis2'); mc.setProperty('X-H', 'h', 'transport');
        mc.setProperty('o', 'op', 'operation'); mc.setVariable('v', {k: [1]}); mc.removeProperty('gone');
        mc.setTo('http://to'); mc.setReplyTo(mc.getTo()); mc.setSoapAction('urn:b'); mc.setResponse(true);
        mc.setProperty('read', [mc.getProperty('X-H', 'transport'), mc.getProperty('o', 'operation'), mc.isSOAP11(), mc.isResponse(), mc.getReplyTo().getAddress()].join());
        mc.setProperty('count', mc.getPropertyKeySet().length);
        var keys = mc.getPropertyKeySet(), all = []; for (var it = keys.iterator(); it.hasNext();) all.push(it.next());
        mc.setProperty('keys', [keys.contains('x'), keys.contains('none'), keys.size() === all.length, keys.isEmpty(), keys.toArray().length === all.length].join());
        mc.getServiceLog().info('said');
        mc.setProperty('entry', String(mc.getEntry('e').*::b));";
    let text = format!(
        "<property name='x' value='1' type='INTEGER'/><property name='gone' value='1'/><script language='nashornJs'><![CDATA[{script}]]></script><!--top--><localEntry key='e'><a><b>in</b></a></localEntry>"
    );
    let flow = flow(&text);
    let end = flow.run(SOAP, "<a/>");
    assert_eq!(end.fault(), None);
    assert_eq!(end.property("a").as_deref(), Some("2"));
    assert_eq!(end.property("read").as_deref(), Some("h,op,true,true,http://to"));
    assert_eq!(end.property("count").as_deref(), Some("3"));
    assert_eq!(end.property("keys").as_deref(), Some("true,false,true,false,true"));
    assert_eq!(end.property("entry").as_deref(), Some("in"));
    assert_eq!(end.context.headers.get("Content-Type"), Some("application/json"));
    assert_eq!(end.context.addressing.to.as_deref(), Some("http://to"));
    assert_eq!(end.context.soap_action.as_deref(), Some("urn:b"));
    assert_eq!(end.context.variables.get("v").map(ToString::to_string).as_deref(), Some(r#"{"k":[1]}"#));
    assert!(end.context.response);
}

#[test]
fn a_script_reads_no_more_than_it_names() {
    for (script, need) in [
        ("mc.setProperty('a', 1);", Need::Headers),
        ("mc.setPayloadJSON({});", Need::Replaces),
        ("mc.setPayloadXML(<a/>);", Need::Whole),
        ("mc.getPayloadJSON();", Need::Whole),
        ("eval(mc.getProperty('code'));", Need::Whole),
    ] {
        assert_eq!(inline(script).needs(), [need], "{script}");
    }
}

#[test]
fn false_ends_the_flow() {
    for (script, goes_on) in [
        ("false;", false),
        ("true;", true),
        ("mc.getProperty('none') == 'x'", false),
        ("1", true),
        ("", true),
    ] {
        let text = format!("<script language='js'>{script}</script><property name='after' value='1'/>");
        assert_eq!(flow(&text).run(XML, "<a/>").property("after").is_some(), goes_on, "{script}");
    }
}

#[test]
fn functions_of_entries_are_called() {
    let entries = "<!--top--><localEntry key='k'><![CDATA[function mediate(mc) { mc.setProperty('r', 'm'); }
        function other(mc, a, b) { mc.setProperty('r', twice(a) + typeof b); return false; }
        function give(mc) { return {x: 1}; }]]></localEntry>
        <localEntry key='w'><x><![CDATA[function mediate(mc) { mc.setProperty('r', 'wrapped'); }]]></x></localEntry>
        <localEntry key='i'><![CDATA[function twice(x) { return 2 * x; }]]></localEntry>";
    for (script, expected) in [
        ("<script language='js' key='k'/>", Some("m")),
        ("<script language='js' key='{concat(\"k\", \"\")}'/>", Some("m")),
        ("<script language='rhinoJs' key='w'/>", Some("wrapped")),
        (
            "<script language='js' key='k' function='other'><include key='i'/><inputs><argument type='number' value='4'/><argument type='json' expression='&quot;[1]&quot;'/></inputs></script>",
            Some("8object"),
        ),
        (
            "<script language='js' key='k' function='give' target='variable' target-variable='v'/><property name='r' expression='json-eval($var:v.x)'/>",
            Some("1"),
        ),
        (
            "<script language='js' key='k' function='give' target='body'/><property name='r' expression='json-eval($.x)'/>",
            Some("1"),
        ),
    ] {
        let end = flow(&format!("{script}{entries}")).run(XML, "<a/>");
        assert_eq!(end.fault(), None, "{script}");
        assert_eq!(end.property("r").as_deref(), expected, "{script}");
    }
}

#[test]
fn what_cannot_run_is_said_when_it_loads() {
    for (text, says) in [
        ("<script language='groovy'>x</script>", "`groovy` is not executable here"),
        ("<script language='rb'>x</script>", "`rb` is not executable here"),
        ("<script>x</script>", "needs the attribute `language`"),
        ("<script language='js'>var a = ;</script>", "SyntaxError"),
        ("<script language='js'>return false;</script>", "return"),
        ("<script language='js'>importClass(Packages.a.B);</script>", "Java class `a.B` is not available"),
        ("<script language='js'>function mediate(mc) { }</script>", "nothing calls the function `mediate`"),
        (r#"<script language='js'>mc.getProperty('a').split("\\.")</script>"#, "looks for a backslash"),
        ("<script language='js' function='f'>1</script>", "`function` has no meaning here"),
        ("<script language='js' key='none'/>", "there is no script `none`"),
        ("<script language='js'><include key='none'/>1</script>", "there is no script `none`"),
        ("<script language='js'><include/>1</script>", "`include` needs a `key`"),
        (
            "<script language='js' key='bad'/><!--top--><localEntry key='bad'>function (</localEntry>",
            "SyntaxError",
        ),
        ("<script language='js' key='k' target='variable'/>", "needs `target-variable`"),
        ("<script language='js' key='k'><inputs><argument/></inputs></script>", "`argument` needs a value"),
        (
            "<script language='js' key='k'><inputs><argument type='number' value='x'/></inputs></script>",
            "`x` is not of the type number",
        ),
    ] {
        assert!(flow(text).reports(says), "{text}: {:?}", flow(text).found);
    }
}

#[test]
fn a_class_that_is_not_here_is_named_with_its_line() {
    let entries = "<!--top--><localEntry key='k'><![CDATA[function mediate(mc) {\n  new java.io.File('a') }]]></localEntry>";
    for (script, place) in [
        ("<script language='js' key='k'/>", "in k, line 2, column 7: what uses it is a fault"),
        ("<script language='js'><include key='k'/>1</script>", "in k, line 2, column 7"),
        ("<script language='js'>new java.io.File('a')</script>", "what uses it is a fault"),
    ] {
        let flow = flow(&format!("{script}{entries}"));
        assert!(flow.reports("the Java class `java.io.File` is not available here"), "{flow:?}");
        assert!(flow.reasons.iter().any(|reason| reason.starts_with(place)), "{:?}", flow.reasons);
    }
}

#[test]
fn a_missing_include_costs_the_step_and_not_the_artifact() {
    let flow = flow("<script language='js'><include key='none'/>1</script>");
    let end = flow.run(XML, "<a/>");
    assert!(
        end.fault().is_some_and(|fault| fault.contains("there is no script `none`")),
        "{:?}",
        end.fault()
    );
}

#[test]
fn scripts_write_the_registry_within_its_limits() {
    let root = std::env::temp_dir().join(format!("busbar-script-registry-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&root);
    std::fs::create_dir_all(&root).unwrap();
    let run = |script: &str| {
        let text = format!(
            r#"<definitions xmlns="http://ws.apache.org/ns/synapse"><sequence name="main"><script language="js"><![CDATA[{script}]]></script></sequence></definitions>"#
        );
        let registry = crate::registry(testing::endpoints);
        let options = config::LoadOptions::default();
        testing::configuration_in(&registry, &text, &root, &options, |services| {
            services.settings.registry = config::RegistryLimits { size: 100, files: 4 };
        })
        .run(XML, "<a/>")
    };
    let end = run(
        "mc.setProperty('conf:a/b', 'one', 'registry'); mc.setProperty('conf:a/b@p', 2, 'registry'); \
                   mc.setProperty('seen', mc.getProperty('conf:a/b', 'registry') + mc.getProperty('conf:a/b@p', 'registry'));",
    );
    assert_eq!((end.fault(), end.property("seen").as_deref()), (None, Some("one2")));
    for (script, why) in [
        ("mc.setProperty('conf:c', '1', 'registry');", "`limits.registry_files` allows (4)"),
        (
            "mc.setProperty('conf:a/b', new Array(200).join('x'), 'registry');",
            "`limits.registry_size` allows (100)",
        ),
    ] {
        let end = run(script);
        let detail = end.property("ERROR_DETAIL").unwrap_or_default();
        assert!(end.fault().is_some() && detail.contains(why), "{script}: {detail}");
    }
    let _ = std::fs::remove_dir_all(&root);
}

#[test]
fn a_body_that_cannot_be_read_has_the_code_of_that_unless_the_script_catches_it() {
    let deep = "[".repeat(100_000);
    for (script, headers, body) in [
        ("mc.getPayloadXML();", XML, "<a"),
        ("mc.getPayloadJSON();", JSON, "{"),
        ("mc.getPayloadJSON();", JSON, deep.as_str()),
    ] {
        let fault = inline(script).run(headers, body).fault().unwrap_or_default();
        assert!(fault.starts_with("601000: "), "{script}: {fault}");
        let caught = format!("try {{ {script} }} catch (e) {{ mc.setProperty('p', 'caught'); }}");
        let end = inline(&caught).run(headers, body);
        assert_eq!((end.fault(), end.property("p").as_deref()), (None, Some("caught")), "{script}");
    }
}

#[test]
fn what_a_script_throws_runs_the_fault_sequence() {
    for (script, headers, body, detail) in [
        ("throw 'broken';", XML, "<a/>", "broken"),
        ("var a;\na.b;", XML, "<a/>", "line 2"),
        ("mc.setJsonText(mc, '{');", XML, "<a/>", "not JSON"),
        ("mc.setEnvelope(<a/>);", XML, "<a/>", "not a SOAP"),
        ("mc.setProperty('a', 1, 'nowhere');", XML, "<a/>", "there is no scope `nowhere`"),
        ("mc.setProperty('conf:../a', 1, 'registry');", XML, "<a/>", "out of the registry"),
        ("mc.getPayloadXML().b.c.d = 1;", XML, "", "cannot be assigned"),
    ] {
        let end = inline(script).run(headers, body);
        let fault = end.fault().unwrap_or_else(|| panic!("{script} gives no fault"));
        assert_eq!(
            fault,
            "0: The script engine returned an error executing the inlined js script function mediate"
        );
        let found = end.property("ERROR_DETAIL").unwrap_or_default();
        assert!(found.contains(detail), "{script}: {found}");
    }
    let missing = flow(
        "<script language='js' key='k' function='g'/><!--top--><localEntry key='k'>function f() {}</localEntry>",
    );
    let fault = missing.run(XML, "<a/>").fault().unwrap_or_default();
    assert_eq!(
        fault,
        "0: The script engine returned a NoSuchMethodException executing the external js script function g"
    );
    let absent =
        flow("<script language='js' key='{\"none\"}'/>").run(XML, "<a/>").fault().unwrap_or_default();
    assert!(absent.contains("Cannot find the script none"), "{absent}");
}
