//! docs/promises.md names a test for each promise: they exist.

use std::path::Path;

#[test]
fn the_test_of_each_promise_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::fs::read_to_string(root.join("docs/promises.md")).expect("the page can be read");
    let (held, _) = page.split_once("## Not held by a test").expect("there is such a section");
    let mut missing = Vec::new();
    let mut promises = 0;
    for row in held.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| promise |")) {
        let cell = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        let tests: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        if tests.is_empty() {
            missing.push(format!("no test for: {row}"));
        }
        promises += 1;
        for test in tests {
            let found = match test.split_once("::") {
                None => root.join(test).exists(),
                Some((file, name)) => std::fs::read_to_string(root.join(file)).is_ok_and(|text| {
                    let begin = text.find(&format!("fn {name}("));
                    // The attribute stands above it, with documentation perhaps.
                    begin.is_some_and(|at| {
                        text[..at].rsplit("\n}").next().is_some_and(|above| above.contains("test"))
                    })
                }),
            };
            if !found {
                missing.push(format!("{test} does not exist"));
            }
        }
    }
    assert!(promises > 40, "{promises} promises were found");
    assert!(missing.is_empty(), "docs/promises.md:\n{}", missing.join("\n"));
}
