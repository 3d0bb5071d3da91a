//! What `ARCHITECTURE.md` says of the crates is so: the table of imports, the files and modules that it names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use toml::Table;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What stands between backticks.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn folder(name: &str) -> PathBuf {
    if name == "tests" { root().join("tests") } else { root().join("crates").join(name) }
}

/// All crates.
fn crates() -> BTreeSet<String> {
    let crates = std::fs::read_dir(root().join("crates")).expect("crates").flatten();
    let mut names: BTreeSet<String> =
        crates.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.insert("tests".to_owned());
    names
}

#[test]
fn the_table_of_imports_is_that_of_the_manifests() {
    let (text, known) = (read(&root().join("ARCHITECTURE.md")), crates());
    let mut described = BTreeSet::new();
    for row in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let (Some(name), [_, _, imports]) = (names(row).next(), cells.as_slice()) else { continue };
        let manifest: Table = read(&folder(name).join("Cargo.toml")).parse().expect("TOML");
        let own = manifest["dependencies"].as_table().into_iter().flat_map(Table::keys).map(String::as_str);
        let own: BTreeSet<&str> = own.filter(|name| known.contains(*name)).collect();
        assert_eq!(names(imports).collect::<BTreeSet<_>>(), own, "imports of {name}");
        described.insert(name.to_owned());
    }
    assert_eq!(described, known);
}

#[test]
fn files_and_modules_that_are_named_are_there() {
    let (text, known) = (read(&root().join("ARCHITECTURE.md")), crates());
    let mut seen = 0;
    for name in
        text.lines().flat_map(names).filter(|name| !name.contains([' ', '{']) && !name.contains("NAME"))
    {
        if let Some((first, _)) = name.split_once('/')
            && ["crates", "tests", "docs", "examples", "bench", "fuzz"].contains(&first)
        {
            assert!(root().join(name).exists(), "there is no {name}");
            seen += 1;
        }
        if let Some((first, rest)) = name.split_once("::")
            && known.contains(first)
        {
            let library = read(&folder(first).join("src/lib.rs"));
            let second = rest.split("::").next().unwrap_or(rest);
            assert!(library.contains(second), "{first} has no {second}");
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} names were found");
}

/// Work of a message is a child of its scope: a task that is spawned past it is waited for by no drain and no acknowledgement.
#[test]
fn no_work_is_spawned_past_a_scope() {
    // The scope itself; and processors, which are no work of a message but take messages. What blocks (`spawn_blocking`) is waited for
    // where it begins.
    let allowed = ["flow/src/scope.rs", "flow/src/processor/mod.rs"];
    let mut wrong = Vec::new();
    for name in ["flow", "mediators", "endpoints"] {
        sources(&folder(name).join("src"), &mut |path, text| {
            if allowed.iter().any(|allowed| path.ends_with(allowed)) || path.ends_with("tests.rs") {
                return;
            }
            let tests = text.find("#[cfg(test)]").unwrap_or(text.len());
            for (number, line) in text[..tests].lines().enumerate() {
                let spawns = ["tokio::spawn(", "task::spawn(", "spawn_local", "JoinSet", ".handle().spawn"];
                if spawns.iter().any(|spawn| line.contains(spawn)) && !line.trim_start().starts_with("//") {
                    wrong.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
                }
            }
        });
    }
    assert!(
        wrong.is_empty(),
        "work of a message begins with `Context::child` or `Context::silent_child`:\n{}",
        wrong.join("\n")
    );
}

/// Calls `look` with each source file below a folder.
fn sources(folder: &Path, look: &mut dyn FnMut(&Path, &str)) {
    for entry in std::fs::read_dir(folder).expect("a folder can be read").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, look);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            look(&path, &read(&path));
        }
    }
}
