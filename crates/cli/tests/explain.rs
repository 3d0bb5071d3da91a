//! `busbar explain` from outside: the example round as it is explained, and the same as JSON.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use std::path::Path;
use std::process::{Command, Output};
use support::{busbar, configuration};

/// Runs it at the root of the workspace, so that places are the same everywhere.
fn explain(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO_BIN_EXE_busbar"))
        .args(["explain", "examples/round"])
        .args(arguments)
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// `BUSBAR_UPDATE=1 cargo test -p busbar --test explain` writes the file anew.
#[test]
fn the_example_round() {
    let text = String::from_utf8(explain(&[]).stdout).unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/explain-round.txt");
    if std::env::var_os("BUSBAR_UPDATE").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &text).unwrap();
    }
    let want = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = text.lines().zip(want.lines()).find(|(got, want)| got != want);
    assert!(
        text == want,
        "not as in {} (BUSBAR_UPDATE=1 writes it anew); first: {differs:#?}",
        file.display()
    );
}

#[test]
fn one_flow_as_json() {
    let value: serde_json::Value = serde_json::from_slice(&explain(&["CBRProxy", "--json"]).stdout).unwrap();
    let flow = &value["flows"][0];
    assert_eq!((&value["io_buffer"], &value["body_limit"]), (&(16 << 10).into(), &(64 << 20).into()));
    assert_eq!(
        (&flow["kind"], &flow["name"], &flow["need"]),
        (&"proxy".into(), &"CBRProxy".into(), &"whole".into())
    );
    assert_eq!(flow["dearest"]["mediator"], "makefault");
    assert_eq!(flow["place"], "examples/round/proxy-services/CBRProxy.xml:3:1");
    let filter = &flow["parts"][0]["steps"][0];
    assert_eq!((&filter["mediator"], &filter["need"]), (&"filter".into(), &"prefix".into()));
    assert!(filter["why"].as_str().unwrap().contains("is decided while the body arrives"));
    assert_eq!(filter["branches"][0]["label"], "then");
    let send = &filter["branches"][0]["steps"][0];
    assert_eq!(send["endpoints"][0]["addresses"][0], "http://localhost:9000/services/EchoService");
    let refused = &filter["branches"][1]["steps"][0];
    assert_eq!(refused["branches"][0]["sequence"], "RefuseOrder");
    let stage = &flow["stages"][0];
    assert_eq!((&stage["name"], &stage["place"]), (&"WS-Addressing".into(), &"before".into()));
    assert_eq!(stage["need"], "prefix");
}

#[test]
fn sequences_in_circles_groups_and_misspelt_names() {
    let path = configuration(
        "explain-circle",
        "<sequence name='a'><sequence key='b'/></sequence><sequence name='b'><sequence key='a'/></sequence>\
         <proxy name='P'><target inSequence='a'><endpoint><failover>\
         <endpoint><address uri='http://one/'><enableAddressing/></address></endpoint>\
         <endpoint><address uri='http://two/' format='soap12'/></endpoint></failover></endpoint></target></proxy>",
    );
    let path = path.to_str().unwrap();
    let output = busbar(&["explain", path, "P"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("in sequence a") && text.contains("sequence a (see above)"), "{text}");
    assert!(text.contains("reads the whole body"), "{text}");
    assert!(text.contains("sent as SOAP 1.2, WS-Addressing headers are written, kept"), "{text}");
    assert!(text.contains("to be sent again: http://one/, http://two/"), "{text}");
    let output = busbar(&["explain", path, "PP"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("did you mean `P`?"));
    let output = busbar(&["explain", path, "b"]);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("sequence b  "));
}

/// A fault sequence that stores the message has it still when it could not be sent.
#[test]
fn what_is_kept_for_the_fault_sequence() {
    let path = configuration(
        "explain-kept",
        "<messageStore name='letters'/><proxy name='P'><target><inSequence><send><endpoint><address uri='http://one/'/></endpoint></send></inSequence>\
         <faultSequence><store messageStore='letters'/></faultSequence></target></proxy>",
    );
    let output = busbar(&["explain", path.to_str().unwrap(), "P"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("reads the whole body") && text.contains("kept for the fault sequence"), "{text}");
}
