//! `busbar demo` from outside.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use bench::scenarios::all;
use std::process::Command;
use support::busbar;

#[test]
fn every_scenario_is_shown_and_right() {
    // Somewhere without the source tree.
    let output = Command::new(env!("CARGO_BIN_EXE_busbar"))
        .args(["demo", "--once"])
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    for scenario in all() {
        assert!(stdout.contains(&format!("\n{}  {}\n", scenario.name, scenario.about)), "{}", scenario.name);
    }
    assert!(stdout.contains("signed and encrypted: "), "{stdout}");
    let all = all().count();
    assert!(stdout.contains(&format!("{all} of {all} answers are what they must be")), "{stdout}");
    assert!(!stdout.contains('✗') && !stdout.contains('\x1b'), "{stdout}");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn some_scenarios_of_another_size() {
    let arguments =
        ["demo", "--once", "--scenario", "directproxy", "--scenario", "OrderAPI/delete", "--size", "100k"];
    let output = busbar(&arguments);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{stdout}");
    assert!(stdout.contains("the same 102,400 bytes") && stdout.contains("2 of 2 answers"), "{stdout}");
    assert!(!stdout.contains("CBRProxy"), "{stdout}");
    let output = busbar(&["demo", "--once", "--scenario", "CBRProxi"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("did you mean `CBRProxy`?"));
}

#[test]
fn the_secure_proxy_with_keys_of_ones_own() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("demo-keys");
    let _ = std::fs::remove_dir_all(&folder);
    let output = busbar(&["demo", "--keys", folder.to_str().unwrap()]);
    let line = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    // What it says is what works.
    let round = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/round");
    let mut words: Vec<&str> = line.split_whitespace().skip(1).collect();
    assert_eq!(words[..2], ["run", "examples/round"]);
    words[1] = round;
    let more = ["--http", "127.0.0.1:0", "--https", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--strict"];
    words.extend(more);
    let bus = support::Process::start(&words);
    assert!(!bus.stderr().contains("bad-policy"), "{}", bus.stderr());
    drop(bus);
    // Never written over.
    let output = busbar(&["demo", "--keys", folder.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("bus.pem"));
    // Without keys it is left out, and the rest serves.
    let words = ["run", round, "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let bus = support::Process::start(&words);
    bus.says("set `security.keystore`", 1);
    let mut stream = std::net::TcpStream::connect(bus.http()).unwrap();
    let (status, ..) =
        support::exchange(&mut stream, "GET", "/orders/17", b"", "Connection: close\r\n").unwrap();
    assert_eq!(status, 200, "{}", bus.stderr());
}
