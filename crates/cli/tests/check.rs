//! `busbar check` from outside.

mod support;

use std::path::{Path, PathBuf};
use std::process::Output;
use support::configuration;

fn check(path: &Path, more: &[&str]) -> Output {
    support::busbar(&[&["check", path.to_str().expect("UTF-8")], more].concat())
}

#[test]
fn what_only_the_machine_that_runs_it_has_may_be_absent() {
    let path = configuration(
        "check-absent",
        r#"<sequence name="main"><property name="p" expression="wso2:vault-lookup('no-such-secret')"/><call-template target="no"/></sequence>
        <endpoint name="E"><address uri="$SYSTEM:NO_SUCH_VARIABLE"/></endpoint>
        <sequence name="wrong"><property name="p" expression="wso2:vault-lookup('a', 'CELLAR')"/></sequence>
        <endpoint name="F"><address uri="$secret{backend}"/></endpoint>
        <sequence name="data"><dblookup><connection><pool><driver>d</driver><url>${configs.no_such_url}</url></pool></connection>
            <statement><sql>select 1</sql></statement></dblookup></sequence>
        <proxy name="P" pinnedServers="$SYSTEM:NO_SUCH_SERVER"><target><inSequence><drop/></inSequence></target></proxy>"#,
    );
    let output = check(&path, &["--format", "json"]);
    let lines = String::from_utf8_lossy(&output.stdout);
    let found: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let rules = |severity: &str| {
        let all = found.iter().filter(|finding| finding["severity"] == severity);
        all.map(|finding| finding["rule"].as_str().unwrap_or_default()).collect::<Vec<_>>()
    };
    // A value that an expression cannot have faults the step; the artifact stays in force.
    let absent = "unresolved-value";
    let warnings = [absent, absent, "unknown-secret", "unknown-template", "unknown-secret", absent];
    assert_eq!(rules("warning"), warnings, "{lines}");
    assert_eq!(rules("error"), ["unresolved-value"], "{lines}");
}

/// Such a value is known nowhere, so no rule may find fault with it.
#[test]
fn absent_values_are_not_wrong_ones() {
    let path = configuration(
        "check-absent-values",
        r#"<endpoint name="L"><loadbalance><member hostName="$SYSTEM:NO_SUCH_HOST" httpPort="$SYSTEM:NO_SUCH_PORT"/></loadbalance></endpoint>
        <sequence name="S"><drop/></sequence>
        <inboundEndpoint name="I" protocol="http" sequence="S" onError="S"><parameters><parameter name="inbound.http.port">$SYSTEM:NO_SUCH_PORT</parameter></parameters></inboundEndpoint>
        <inboundEndpoint name="F" protocol="file" sequence="S" onError="S"><parameters><parameter name="interval">1000</parameter>
            <parameter name="transport.vfs.FileURI">$SYSTEM:NO_SUCH_DIRECTORY</parameter><parameter name="transport.vfs.ContentType">text/plain</parameter></parameters></inboundEndpoint>"#,
    );
    let output = check(&path, &[]);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(shown.matches("warning[unresolved-value]").count(), 4, "{shown}");
    assert!(shown.contains("0 errors, 4 warnings"), "{shown}");
}

/// Each misspelt word has its nearest one beside it.
#[test]
fn misspelt_words() {
    let steps = [
        ("<enrich><source type='body'/><target action='replce' xpath='//a'/></enrich>", "replace"),
        ("<enrich><source type='bdy'/><target type='property' property='p'/></enrich>", "body"),
        ("<enrich><source type='body'/><target type='proprety' property='p'/></enrich>", "property"),
        ("<scatter-gather target='bdy' result-content-type='JSON'/>", "body"),
        ("<scatter-gather target='body' result-content-type='JSN'/>", "JSON"),
        (
            "<foreach collection='${payload}' update-original='false' target-variable='v' result-content-type='JSN'><sequence/></foreach>",
            "JSON",
        ),
        ("<datamapper config='c' inputSchema='i' outputSchema='o' inputType='JSN'/>", "JSON"),
        (
            "<jsontransform><property name='synapse.commons.json.output.autoPrimitve' value='true'/></jsontransform>",
            "synapse.commons.json.output.autoPrimitive",
        ),
        ("<property name='p' expression=\"get-proprty('q')\"/>", "get-property"),
        ("<property name='p' expression='url-encod(//a)'/>", "url-encode"),
    ];
    let sequences = steps
        .iter()
        .enumerate()
        .map(|(number, (step, meant))| (format!("<sequence name='S{number}'>{step}</sequence>"), *meant));
    let artifacts = [
        (
            "<messageStore name='M' class='org.apache.synapse.message.store.impl.memory.InMemoryStor'/>",
            "InMemoryStore",
        ),
        (
            "<messageStore name='M'/><messageProcessor name='P' class='org.apache.synapse.message.processor.impl.sampler.SamplingProcesor' messageStore='M'/>",
            "SamplingProcessor",
        ),
        (
            "<task name='T' class='org.apache.synapse.startup.tasks.MesageInjector'><trigger once='true'/></task>",
            "MessageInjector",
        ),
    ];
    let artifacts = artifacts.iter().map(|(artifact, meant)| ((*artifact).to_owned(), *meant));
    for (number, (text, meant)) in sequences.chain(artifacts).enumerate() {
        let path = configuration(&format!("check-misspelt-{number}"), &text);
        let shown = String::from_utf8_lossy(&check(&path, &[]).stdout).into_owned();
        let suggested = shown.split("did you mean `").skip(1).filter_map(|rest| rest.split('`').next());
        assert!(suggested.into_iter().any(|name| name.ends_with(meant)), "{text}\n{shown}");
    }
}

/// Where the items are replaced, nothing is collected.
#[test]
fn how_foreach_collects_has_no_effect_where_it_does_not() {
    let path = configuration(
        "check-foreach",
        "<sequence name='S'><foreach collection='${payload}' target-variable='v' result-content-type='JSON'><sequence/></foreach></sequence>",
    );
    let shown = String::from_utf8_lossy(&check(&path, &[]).stdout).into_owned();
    assert_eq!(shown.matches("warning[no-effect]").count(), 2, "{shown}");
    assert!(shown.contains("update-original=\"false\" collects the results"), "{shown}");
}

#[test]
fn the_exit_code_says_whether_there_are_errors() {
    let good = configuration("check-good", "<sequence name='main'><drop/></sequence>");
    let warned = configuration("check-warned", "<proxy name='P'><target inSequence='mian'/></proxy>");
    let bad = configuration("check-bad", "<proxy name='P'/>");
    for (path, more, code) in [
        (&good, &[][..], 0),
        (&good, &["--strict"], 0),
        (&warned, &[], 0),
        (&warned, &["--strict"], 1),
        (&bad, &[], 1),
        (&bad, &["--format", "json"], 1),
        (&PathBuf::from("/nonexistent"), &[], 1),
    ] {
        let output = check(path, more);
        assert_eq!(output.status.code(), Some(code), "{} {more:?}", path.display());
    }
    let shown = check(&warned, &[]);
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.contains("did you mean `main`?") && shown.contains("0 errors, 1 warning"), "{shown}");
}

#[test]
fn json_and_sarif_are_json() {
    let bad = configuration("check-formats", "<proxy name='P'/><api name='A'/>");
    let lines = check(&bad, &["--format", "json"]).stdout;
    let lines = String::from_utf8(lines).expect("UTF-8");
    assert!(lines.lines().count() >= 2);
    for line in lines.lines() {
        let value: serde_json::Value = serde_json::from_str(line).expect("json");
        assert_eq!(value["severity"], "error");
    }
    let log: serde_json::Value =
        serde_json::from_slice(&check(&bad, &["--format", "sarif"]).stdout).expect("json");
    assert_eq!(log["version"], "2.1.0");
}

#[test]
fn mistakes_inside_of_flows_are_found_with_their_place() {
    let path = configuration(
        "check-five",
        "
<sequence name='main'>
  <sned/>
  <property nmae='x' name='a' value='b'/>
  <property name='a' value='b' scope='axis3'/>
  <filter xpath='//a[1'><then/></filter>
  <sequence key='RefuseOder'/>
  <class name='org.example.Mediator'/>
</sequence>
<sequence name='RefuseOrder'><respond/></sequence>",
    );
    let output = check(&path, &[]);
    assert_eq!(output.status.code(), Some(1));
    let shown = String::from_utf8_lossy(&output.stdout);
    for (line, part) in [
        ("check-five.xml:3:4", "did you mean `send`?"),
        ("check-five.xml:4:13", "did you mean `name`?"),
        ("check-five.xml:5:39", "did you mean `axis2`?"),
        ("check-five.xml:6:", "`//a[1` is not a valid expression"),
        ("check-five.xml:7:18", "did you mean `RefuseOrder`?"),
        ("check-five.xml:8:4", "Java classes cannot run here"),
    ] {
        assert_eq!(shown.matches(line).count(), 1, "{line}: {shown}");
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(shown.contains("3 errors, 3 warnings"), "{shown}");
}

#[test]
fn text_that_nothing_reads_is_said_everywhere_and_once() {
    let path = configuration(
        "check-stray-text",
        r#"t-definitions
        <sequence name="s">t-sequence<log>t-log</log></sequence>
        <template name="t">t-template<sequence>t-in-template<log/></sequence></template>
        <endpoint name="e">t-endpoint<address uri="http://h/">t-address<timeout>t-timeout<duration>1</duration></timeout></address></endpoint>
        <api name="a" context="/a">t-api<resource methods="GET">t-resource<inSequence>t-in<filter xpath="//a">t-filter<then>t-then<log/></then></filter>
        <filter xpath="//a">t-bare<drop/></filter>
        <clone>t-clone<target>t-target<sequence>t-branch<drop/></sequence></target></clone></inSequence></resource></api>
        <proxy name="p">t-proxy<target>t-proxy-target<inSequence>t-proxy-in<respond/></inSequence></target></proxy>
        <task name="k">t-task<trigger interval="10">t-trigger</trigger><property name="injectTo" value="sequence"/>
        <property name="sequenceName" value="s"/><property name="message" value="x"/></task>
        <messageStore name="m">t-store</messageStore>
        <localEntry key="text">this is read</localEntry>"#,
    );
    let output = check(&path, &["--format", "json"]);
    let lines = String::from_utf8_lossy(&output.stdout);
    let text = std::fs::read_to_string(&path).expect("it was written");
    let written = text.matches(">t-").count();
    assert_eq!(lines.matches("\"stray-text\"").count(), written, "{lines}");
}

#[test]
fn parts_of_a_mediator_in_another_case_are_named_and_mended() {
    let path = configuration(
        "check-parts",
        "<sequence name='s'><filter xpath='//a'><Then><drop/></Then><Else><log/></Else></filter></sequence>",
    );
    let shown = check(&path, &[]);
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.contains("did you mean `then`?") && shown.contains("did you mean `else`?"), "{shown}");
    let mended = check(&path, &["--fix"]);
    assert!(mended.status.success(), "{}", String::from_utf8_lossy(&mended.stdout));
    let text = std::fs::read_to_string(&path).expect("it was written");
    assert!(text.contains("<then><drop/></then><else><log/></else>"), "{text}");
}

/// An endpoint has a page of its own, and attributes that the page of `send` does not list.
#[test]
fn attributes_of_parts_that_have_no_effect_are_named() {
    let path = configuration(
        "check-part-attributes",
        "<sequence name='s'><enrich><source clon='true' type='body'/><target type='property' property='p'/></enrich>\
         <call-template target='t'><with-param name='a' valu='b'/></call-template>\
         <send><endpoint name='E'><address uri='http://127.0.0.1:1/'/></endpoint></send></sequence>\
         <template name='t'><parameter name='a'/><sequence/></template>",
    );
    let shown = check(&path, &[]);
    let shown = String::from_utf8_lossy(&shown.stdout);
    for (part, name) in [("source", "clon"), ("with-param", "valu")] {
        assert!(shown.contains(&format!("`{part}` has no attribute `{name}`")), "{shown}");
    }
    assert_eq!(shown.matches("[unknown-attribute]").count(), 2, "{shown}");
}

/// What compiling a mediator says of such a value is not said again, and what it takes is a warning.
#[test]
fn values_that_attributes_of_parts_do_not_take_are_named_once() {
    let sequence = |name: &str, steps: &str| format!("<sequence name='{name}'>{steps}</sequence>");
    let cases = [
        (
            "<payloadFactory media-type='xml' template-type='freemaker'><format><a>$1</a></format><args>\
             <arg expression='//a' evaluator='jsn' literal='yes' deepCheck='false'/></args></payloadFactory>",
            &[
                ("warning", "`template-type` should not be `freemaker`", "did you mean `freemarker`?"),
                ("warning", "`evaluator` should not be `jsn`", "did you mean `json`?"),
                ("warning", "`literal` should not be `yes`", ""),
            ][..],
        ),
        (
            "<enrich><source type='bdy' clone='1'/><target type='property' property='p'/></enrich>",
            &[("error", "`bdy` is not a kind of source", ""), ("warning", "`clone` should not be `1`", "")],
        ),
        (
            "<rewrite><rewriterule><action type='set' value='a' fragment='hst' resolve='yes'/></rewriterule></rewrite>",
            &[("error", "`fragment` cannot be `hst`", ""), ("warning", "`resolve` should not be `yes`", "")],
        ),
        (
            "<router><route expression='//a' breakRouter='ja'><target sequence='main'/></route></router>",
            &[("warning", "`breakRouter` should not be `ja`", "")],
        ),
        (
            "<cache timeout='20' collector='false'><protocol type='http'/><implementation maxSize='many'/></cache>",
            &[("warning", "`maxSize` should not be `many`", "")],
        ),
        (
            "<aggregate><completeCondition timeout='soon'><messageCount min='2' max='2'/></completeCondition>\
             <onComplete expression='//a' aggregateElementType='chld'><drop/></onComplete></aggregate>",
            &[
                ("error", "`soon` is not a number of seconds", ""),
                ("warning", "`aggregateElementType` should not be `chld`", "did you mean `child`?"),
            ],
        ),
        // An own attribute that is wrong does not keep the parts from being looked at.
        (
            "<clone sequential='ja' iterations='2'><target sequence='main'/></clone>\
             <log level='fll'/><property name='a' expression='//a' pattern='(a)(b)' group='3'/>",
            &[
                ("warning", "`sequential` should not be `ja`", ""),
                ("error", "`level` cannot be `fll`", "did you mean `full`?"),
                ("warning", "the pattern has no group 3", ""),
            ],
        ),
        (
            "<property name='a' expression='json-eval($.a))'/><log xmlns=''/><log xmlns='urn:x'/>",
            &[
                ("warning", "`json-eval($.a))` gives nothing", ""),
                ("warning", "`log` is in no namespace", ""),
                ("error", "`log` is in the namespace `urn:x`", ""),
            ],
        ),
        (
            "<log><property name='a' value='b' expression='//c'/></log>",
            &[("warning", "only one of `value` and `expression` of `property` counts", "")],
        ),
    ];
    let all: String =
        cases.iter().enumerate().map(|(at, (steps, _))| sequence(&format!("s{at}"), steps)).collect();
    let path = configuration("check-part-values", &format!("<sequence name='main'><drop/></sequence>{all}"));
    let shown = check(&path, &["--format", "json"]);
    let lines = String::from_utf8_lossy(&shown.stdout);
    let found: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let mut expected = 0;
    for (severity, message, help) in cases.iter().flat_map(|(_, found)| found.iter()) {
        let named: Vec<_> = found
            .iter()
            .filter(|found| found["message"].as_str().is_some_and(|text| text.contains(message)))
            .collect();
        assert_eq!(named.len(), 1, "{message}: {lines}");
        assert_eq!(named[0]["severity"], *severity, "{message}: {lines}");
        assert!(named[0]["help"].to_string().contains(help), "{message}: {lines}");
        expected += 1;
    }
    let values = |rule: &str| ["bad-value", "bad-expression", "wrong-namespace", "conflict"].contains(&rule);
    let count = found.iter().filter(|found| found["rule"].as_str().is_some_and(values)).count();
    assert_eq!(count, expected, "{lines}");
}

#[test]
fn the_example_round_and_what_busbar_supplies_itself_are_clean() {
    let round = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/round");
    let https = "<endpoint name='E'><address uri='https://example.com/'/></endpoint>";
    let sql = round.with_file_name("sql");
    // Its keys are made by `busbar demo`: without them the secure proxy is left out, which is said once.
    let without_keys = check(&round, &[]);
    let shown = String::from_utf8_lossy(&without_keys.stdout);
    assert!(shown.contains(" 1 error, 0 warnings") && shown.contains("SecureProxy.xml"), "{shown}");
    assert!(shown.contains("set `security.keystore`"), "{shown}");
    for path in [sql, configuration("check-empty", ""), configuration("check-https", https)] {
        let output = check(&path, &["--strict"]);
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && shown.contains(" 0 errors, 0 warnings"), "{shown}");
        // Notes name what is not part of the configuration: the README beside the example.
        let lines = check(&path, &["--format", "json"]).stdout;
        assert!(String::from_utf8_lossy(&lines).lines().all(|line| line.contains("\"severity\":\"note\"")));
    }
}

#[test]
fn rules_run_over_what_loads_and_leave_nothing_out() {
    let path = configuration(
        "check-rules",
        "
<proxy name='P'><target><inSequence>
  <respond/>
  <log/>
</inSequence></target></proxy>",
    );
    for (more, code) in [(&[][..], 0), (&["--strict"], 1)] {
        let output = check(&path, more);
        let shown = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{shown}");
        assert!(shown.contains("warning[unreachable-step]: `log` never runs"), "{shown}");
        assert!(shown.contains("1 artifact, 0 errors, 1 warning"), "{shown}");
    }
    let sarif = check(&path, &["--format", "sarif"]).stdout;
    let log: serde_json::Value = serde_json::from_slice(&sarif).expect("json");
    let rule = &log["runs"][0]["tool"]["driver"]["rules"][0];
    assert!(
        rule["shortDescription"]["text"].as_str().is_some_and(|text| text.contains("never runs")),
        "{rule}"
    );
    let lines = check(&path, &["--format", "github"]).stdout;
    let lines = String::from_utf8_lossy(&lines);
    assert!(lines.starts_with("::warning file=") && lines.contains(",line=4,endLine=4,col=3,"), "{lines}");
}

#[test]
fn fixes_change_what_is_certain_and_no_other_byte() {
    let written = "\u{feff}<?xml version='1.0'?>\r\n<definitions xmlns=\"http://ws.apache.org/ns/synapse\">\r\n  <!-- kept -->\r\n  \
        <sequence  name='s'  onerror='f'>\r\n\t<payloadfactory media-type='json'><format>{}</format><args/></payloadfactory>\r\n\t\
        <log level=\"Full\" />\r\n\t<property name='HTTP_SC' value='403'/><sned/>\r\n\t\
        <filter xpath=\"get-property('paid') = true\"><then><respond/></then></filter>\r\n</sequence>\r\n\
        <sequence name='f'><drop/></sequence></definitions>\r\n\r\n";
    let mended = written
        .replace("onerror", "onError")
        .replace("payloadfactory", "payloadFactory")
        .replace("\"Full\"", "\"full\"")
        .replace("property name='HTTP_SC'", "property scope=\"axis2\" name='HTTP_SC'")
        .replace("= true\"", "= 'true'\"");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("check-fix.xml");
    std::fs::write(&path, written).expect("written");
    let output = check(&path, &["--fix"]);
    let shown = String::from_utf8_lossy(&output.stdout);
    let after = std::fs::read_to_string(&path).expect("read");
    // `sned` resembles several names, and rules look at what can run: the sequence is left out.
    let without_rules = mended.replace(" scope=\"axis2\"", "").replace("= 'true'\"", "= true\"");
    assert_eq!(after, without_rules, "{shown}");
    assert_eq!(output.status.code(), Some(1), "`sned` is still there: {shown}");
    assert!(shown.contains("fixed ") && shown.contains("check-fix.xml:4:24: write `onError`"), "{shown}");
    std::fs::write(&path, after.replace("<sned/>", "")).expect("written");
    assert!(check(&path, &["--fix"]).status.success());
    let after = std::fs::read_to_string(&path).expect("read");
    assert_eq!(after, mended.replace("<sned/>", ""));
    // Once more changes nothing.
    let again = check(&path, &["--fix", "--format", "json"]);
    assert!(!String::from_utf8_lossy(&again.stderr).contains("fixed "));
    assert_eq!(std::fs::read_to_string(&path).expect("read"), after);
    let mut beside = std::fs::read_dir(path.parent().expect("a directory")).expect("listed").flatten();
    assert!(beside.all(|entry| !entry.file_name().to_string_lossy().ends_with(".busbar")));
}

#[test]
fn what_cannot_be_fixed_is_said() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("check-fix-not");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("made");
    let text = "<sequence xmlns='http://ws.apache.org/ns/synapse' name='s'><Respond/></sequence>";
    let read_only = folder.join("read-only.xml");
    std::fs::write(&read_only, text).expect("written");
    let mut permissions = std::fs::metadata(&read_only).expect("there").permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&read_only, permissions).expect("set");
    let utf16 = folder.join("utf16.xml");
    let units: Vec<u8> =
        std::iter::once(0xFEFF).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    std::fs::write(&utf16, &units).expect("written");
    for (path, why) in [(&read_only, "it is read-only"), (&utf16, "it is not in UTF-8")] {
        let before = std::fs::read(path).expect("read");
        let output = check(path, &["--fix"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(&format!("not changed: {why}")), "{stderr}");
        assert_eq!((output.status.code(), std::fs::read(path).expect("read")), (Some(1), before));
    }
}

#[test]
fn messages_say_what_a_person_would_do() {
    for (name, artifacts, parts) in [
        (
            "check-unclosed",
            "\n<sequence name='s'><variable name='a' expression='${payload.x'/><log><message>a ${payload.b</message></log></sequence>",
            &["2:51", "the `${` is not closed"][..],
        ),
        (
            "check-tag",
            "\n<sequence name='s'>\n <drop>\n</sequence>",
            &[
                "`<drop>` opened at 3:2 is not closed",
                "check-tag.xml:4:1",
                "expected `</drop>`",
                "opened here",
            ][..],
        ),
        (
            "check-quote",
            "\n<sequence name='s><drop/></sequence>",
            &["does the value before it lack its closing quote?"][..],
        ),
        (
            "check-ampersand",
            "\n<sequence name='s'><property name='a' value='a & b'/></sequence>",
            &["a bare `&` is written `&amp;`", "check-ampersand.xml:2:48"][..],
        ),
        (
            "check-less",
            "\n<sequence name='s'><filter xpath='//a < 5'><then/></filter></sequence>",
            &["a `<` that is meant is written `&lt;`"][..],
        ),
        (
            "check-nesting",
            "\n<sequence name='s'><then/><inSequence/><case regex='a'/></sequence>\
             \n<sequence name='t'><filter xpath='//a'><then xmlns=''/></filter></sequence>",
            &[
                "`then` belongs into `filter`",
                "`inSequence` belongs into the `target` of a proxy service, or a `resource` of an API",
                "`case` belongs into `switch`",
                "not a mediator: it is in no namespace",
            ][..],
        ),
        (
            "check-parts",
            "\n<sequence name='s'><call endpoint='E'/><send key='E'/></sequence>\
             \n<endpoint name='E'><address uri='http://127.0.0.1:1/'/><timeout><duration>1</duration></timeout></endpoint>",
            &[
                "`endpoint` is an element inside of `call`",
                "`key` is an attribute of `endpoint`, an element inside",
                "it belongs into `address`, `http`, `default` or `wsdl`",
            ][..],
        ),
        (
            "check-abbreviated",
            "\n<sequence name='s'><property name='a' value='1' type='INT'/></sequence>",
            &["did you mean `INTEGER`?"][..],
        ),
        (
            "check-secret",
            "\n<endpoint name='E'><http uri-template='http://u:tiger@x/' passwrd='tiger'><authentication><basicAuth><username>scott</username><password>tiger</password></basicAuth></authentication></http></endpoint>",
            &["passwrd='*****'", "<password>*"][..],
        ),
    ] {
        let path = configuration(name, artifacts);
        let shown = String::from_utf8_lossy(&check(&path, &[]).stdout).into_owned();
        for part in parts {
            assert!(shown.contains(part), "{name}: {part}: {shown}");
        }
        assert!(!shown.contains("tiger"), "{shown}");
    }
}

/// What is wrong with a data service is said with its place.
#[test]
fn findings_of_data_services_have_their_places() {
    let text = "<data xmlns='' name='Items'>
  <config id='shop'><property name='carbon_datasource_name'>Shopp</property></config>
  <config id='old'><property name='url'>jdbc:oracle:thin:@h:1521:x</property></config>
  <config id='db'><property name='url'>jdbc:sqlite::memory:</property></config>
  <query id='gone' useConfig='shop'><sql>select 1</sql></query>
  <query id='oracle' useConfig='old'><sql>select 1</sql></query>
  <query id='typed' useConfig='db'><sql>select :a</sql><param name='a' sqlType='INTEGRE'/></query>
  <query id='given' useConfig='db'><sql>select :b</sql><param name='b'/></query>
  <query id='named' useConfig='db'><sql>select :c</sql></query>
  <query id='unused' useConfig='db'><sql>select 1</sql></query>
  <operation name='gone'><call-query href='gone'/></operation>
  <operation name='oracle'><call-query href='oracle'/></operation>
  <operation name='typed'><call-query href='typed'><with-param name='a' query-param='a'/></call-query></operation>
  <operation name='given'><call-query href='given'/></operation>
  <operation name='named'><call-query href='named'/></operation>
  <operation name='none'><call-query href='nowhere'/></operation>
</data>";
    let path = configuration("check-data", text);
    let written = std::fs::read_to_string(&path).expect("there");
    let output = check(&path, &["--format", "json"]);
    let lines = String::from_utf8_lossy(&output.stdout);
    let found: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for (rule, place) in [
        ("unknown-data-source", "Shopp"),
        ("unsupported-database", "old"),
        ("bad-value", "INTEGRE"),
        ("unmapped-parameter", "<call-query href='given'/>"),
        ("unmapped-parameter", "select :c"),
        ("unused-query", "unused"),
        ("unknown-query", "nowhere"),
    ] {
        let at = written.find(place).expect(place);
        let line = written[..at].matches('\n').count() + 1;
        let column = at - written[..at].rfind('\n').map_or(0, |end| end + 1) + 1;
        let is_there = found.iter().any(|finding| {
            let label = &finding["labels"][0];
            finding["rule"] == rule && label["line"] == line as u64 && label["column"] == column as u64
        });
        assert!(is_there, "{rule} at {line}:{column}: {lines}");
    }
}

/// What is wrong with the frame of an artifact hides nothing that is wrong within its flows.
#[test]
fn errors_of_the_frame_hide_nothing_within() {
    let path = configuration(
        "check-frame",
        r#"<proxy name="P" startOnLoad="perhaps"><target><inSequence><sned/></inSequence></target></proxy>
        <api name="A" context="orders"><resource><inSequence><lgo/></inSequence></resource></api>
        <sequence name="main" onError="fault" key="other"><drpo/></sequence>
        <template name="T"><parameter name="p" isMandatory="perhaps"/><sequence><respnod/></sequence></template>
        <sequence name="uses"><sequence key="main"/></sequence>"#,
    );
    let output = check(&path, &["--format", "json"]);
    let lines = String::from_utf8_lossy(&output.stdout);
    let found: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for name in ["sned", "lgo", "respnod"] {
        let reported = found.iter().filter(|one| {
            one["rule"] == "unknown-mediator"
                && one["message"].as_str().is_some_and(|text| text.contains(name))
        });
        assert_eq!(reported.count(), 1, "{name}: {lines}");
    }
    assert_eq!(output.status.code(), Some(1));
}

/// What is not served, not there or no JSON is said when the configuration loads.
#[test]
fn what_has_no_effect_or_faults_is_not_silent() {
    let wsdl = r#"<wsdl:definitions xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/" xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t"><wsdl:types><xs:schema targetNamespace="urn:t"><xs:include schemaLocation="inc.xsd"/></xs:schema></wsdl:types></wsdl:definitions>"#;
    let proxy = |attributes: &str, more: &str| {
        format!(
            "<proxy name='P' {attributes}><target><inSequence><respond/></inSequence></target>{more}</proxy>"
        )
    };
    let sequence = |steps: &str| format!("<sequence name='s'>{steps}</sequence>");
    let endpoint = |inside: &str| format!("<endpoint name='E'>{inside}</endpoint>");
    let cases = [
        (proxy("transports='http jms'", ""), "[unserved-transport]: nothing reaches this proxy through jms", 1),
        (proxy("transports='htp'", ""), "[unknown-transport]: there is no transport `htp`", 1),
        (proxy("transports='http https ws'", ""), "", 0),
        (proxy("", &format!("<publishWSDL>{wsdl}</publishWSDL>")), "refers to `inc.xsd`, which is not there", 1),
        (
            proxy("", &format!("<publishWSDL>{wsdl}<resource location='inc.xsd' key='inc'/></publishWSDL>"))
                + "<localEntry key='inc'><xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:t'/></localEntry>",
            "",
            0,
        ),
        (
            endpoint("<recipientlist><endpoints value='jms:/a,http://localhost:9000/b,mailto:c@d' max-cache='2'/></recipientlist>"),
            "[unsupported-transport]: there is no transport `mailto` here",
            2,
        ),
        (endpoint("<address uri='local://services/Q'/>") + &proxy("", ""), "[unknown-reference]: there is no proxy service `Q`", 1),
        (endpoint("<address uri='local://services/P/x?y=z'/>") + &proxy("", ""), "", 0),
        (sequence("<header name='To' value='jms:/x'/><send/>"), "[unsupported-transport]: there is no transport `jms` here", 1),
        (sequence("<header name='To' value='http://localhost:9000/a'/><send/>"), "", 0),
        (
            sequence("<payloadFactory media-type='json'><format>{\"a\": $1 \"b\":2}</format><args><arg value='1'/></args></payloadFactory>"),
            "[bad-json-template]",
            1,
        ),
        (sequence("<property name='j' type='JSON' value='{a'/>"), "`{a` is not JSON: it becomes a JSON string", 1),
        (sequence("<property name='j' type='JSON' value='a text'/>"), "", 0),
        (sequence("<clone><target/></clone>"), "[missing-element]: the `target` is empty", 1),
        (sequence("<property name='x' value='y'>foo</property>"), "[stray-text]: text in `property` is ignored", 1),
        (sequence("<property name='x' expression='$foo:y'/>"), "[unknown-scope]: there is no scope `foo`", 1),
        (sequence("<property name='x' expression='json-eval($.a.b'/>"), "`json-eval(` is not closed", 1),
        (sequence("<log category='warning'/>"), "did you mean `WARN`?", 1),
        (
            sequence("<switch source='//a'><case regex='a'><log/></case><default/><default/></switch>"),
            "[duplicate-element]: a second `default` in `switch` is ignored",
            1,
        ),
        (
            "<api name='A' context='/a'><resource methods='GET' uri-template='/a{;x}'><inSequence><respond/></inSequence></resource></api>".to_owned(),
            "[bad-uri-template]",
            1,
        ),
        (
            endpoint("<address uri='http://localhost:9000/a'><timeout><duration>1</duration><responseAction>faultt</responseAction></timeout></address>"),
            "`responseAction` cannot be `faultt`",
            1,
        ),
        (endpoint("<address uri='http://user:word@localhost:9000/a'/>"), "use `authentication` of an `http` endpoint", 1),
    ];
    for (number, (artifacts, wanted, count)) in cases.iter().enumerate() {
        let path = configuration(&format!("check-silent-{number}"), artifacts);
        let shown = check(&path, &["--format", "json"]);
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        let found: Vec<&str> = text.lines().filter(|line| !line.contains("\"severity\":\"note\"")).collect();
        assert_eq!(found.len(), *count, "{artifacts}: {text}");
        let human = check(&path, &[]);
        let human = String::from_utf8_lossy(&human.stdout).into_owned();
        assert!(human.contains(wanted), "{artifacts}: {wanted}: {human}");
    }
}

/// A certificate or `--https` decides whether a service that is on https only is there at all.
#[test]
fn what_is_on_https_only_is_told_where_https_is_off() {
    let flow = "<inSequence><respond/></inSequence>";
    let artifacts = format!(
        "<proxy name='P' transports='https'><target>{flow}</target></proxy><proxy name='Both' transports='http https'><target>{flow}</target></proxy>
        <api name='A' context='/a' transports='https'><resource methods='GET'>{flow}</resource></api>
        <api name='B' context='/b'><resource methods='GET' protocol='https' uri-template='/x'>{flow}</resource><resource methods='GET' uri-template='/y'>{flow}</resource></api>"
    );
    let path = configuration("check-https-only", &artifacts);
    let shown = String::from_utf8(check(&path, &["--strict"]).stdout).expect("UTF-8");
    for wanted in ["the proxy service `P`", "the API `A`", "a resource of the API `B`"] {
        let line = format!("note[https-is-off]: no request reaches {wanted}: https is off");
        assert_eq!(shown.matches(&line).count(), 1, "{line}: {shown}");
    }
    assert!(shown.contains("3 notes"), "{shown}");
    let port = "<parameters><parameter name='inbound.http.port'>8243</parameter></parameters>";
    let inbound = format!(
        "<sequence name='s'/><inboundEndpoint name='I' protocol='https' sequence='s' onError='s'>{port}</inboundEndpoint>"
    );
    let path = configuration("check-https-inbound", &(artifacts + &inbound));
    let shown = String::from_utf8(check(&path, &[]).stdout).expect("UTF-8");
    assert!(!shown.contains("https-is-off"), "{shown}");
}
