//! Whether the profile that release builds are laid out by knows their functions. That it does not makes them slower and
//! nothing else, and recording takes a quarter of an hour: so this says it, and passes.

use busbar_tests::suite::say;
use std::path::Path;
use std::process::Command;

#[test]
fn the_profile_of_release_builds_is_of_this_compiler_and_these_dependencies() {
    let pgo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pgo");
    let output = Command::new(pgo.join("dependencies")).output().expect("pgo/dependencies runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let now = String::from_utf8_lossy(&output.stdout);
    let recorded = std::fs::read_to_string(pgo.join("recorded")).expect("pgo/recorded");
    assert!(now.lines().count() > 100 && recorded.starts_with("rustc "), "no list of dependencies:\n{now}");
    if let Some((was, is)) = difference(&recorded, &now) {
        say(&format!(
            "notice: pgo/busbar.profdata was recorded with other dependencies or another compiler, and does not know the functions of \
             release builds any more (`{was}` was there, `{is}` is there now). They are right and slower until `pgo/record` has run."
        ));
    }
}

/// The first line that differs, in both.
fn difference<'a>(was: &'a str, is: &'a str) -> Option<(&'a str, &'a str)> {
    fn bare(line: Option<&str>) -> &str {
        line.unwrap_or("nothing").trim_start_matches(['|', '`', '-', ' '])
    }
    let (mut before, mut after) = (was.lines(), is.lines());
    loop {
        match (before.next(), after.next()) {
            (None, None) => return None,
            (was, is) if was == is => {}
            (was, is) => return Some((bare(was), bare(is))),
        }
    }
}

#[test]
fn the_first_difference_is_named() {
    for (was, is, wanted) in [
        ("", "", None),
        ("rustc 1\na v1 []\n", "rustc 1\na v1 []\n", None),
        ("rustc 1\na v1 []\n", "rustc 2\na v1 []\n", Some(("rustc 1", "rustc 2"))),
        ("r\n|-- a v1 []\n", "r\n|-- a v1 [std]\n", Some(("a v1 []", "a v1 [std]"))),
        ("r\n", "r\n|   `-- a v1 []\n", Some(("nothing", "a v1 []"))),
    ] {
        assert_eq!(difference(was, is), wanted);
    }
}
