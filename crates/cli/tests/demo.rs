//! `busbar demo` from outside.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use bench::scenarios::ROUND;
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
    for scenario in ROUND {
        assert!(stdout.contains(&format!("\n{}  {}\n", scenario.name, scenario.about)), "{}", scenario.name);
    }
    let all = ROUND.len();
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
