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
        <endpoint name="F"><address uri="$secret{backend}"/></endpoint>"#,
    );
    let output = check(&path, &["--format", "json"]);
    let lines = String::from_utf8_lossy(&output.stdout);
    let found: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let rules = |severity: &str| {
        let all = found.iter().filter(|own| own["severity"] == severity);
        all.map(|own| own["rule"].as_str().unwrap_or_default()).collect::<Vec<_>>()
    };
    assert_eq!(rules("warning"), ["unresolved-value", "unknown-secret", "unknown-template"], "{lines}");
    assert_eq!(rules("error"), ["unresolved-value", "unknown-secret"], "{lines}");
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
        ("check-five.xml:6:", "`//a[1` is no valid expression"),
        ("check-five.xml:7:18", "did you mean `RefuseOrder`?"),
        ("check-five.xml:8:4", "Java classes cannot run here"),
    ] {
        assert_eq!(shown.matches(line).count(), 1, "{line}: {shown}");
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(shown.contains("4 errors, 2 warnings"), "{shown}");
}

#[test]
fn the_example_round_and_what_busbar_supplies_itself_are_clean() {
    let round = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/round");
    let https = "<endpoint name='E'><address uri='https://example.com/'/></endpoint>";
    for path in [round, configuration("check-empty", ""), configuration("check-https", https)] {
        let output = check(&path, &["--strict"]);
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && shown.contains(" 0 errors, 0 warnings"), "{shown}");
        // Notes name what is no configuration: the README beside the example.
        let lines = check(&path, &["--format", "json"]).stdout;
        assert!(String::from_utf8_lossy(&lines).lines().all(|line| line.contains("\"severity\":\"note\"")));
    }
}
