//! What `ARCHITECTURE.md` says of the crates is so: the table of imports, the files and modules that it names.

use std::collections::{BTreeMap, BTreeSet};
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
    let (text, members) = (read(&root().join("ARCHITECTURE.md")), crates());
    let mut described = BTreeSet::new();
    for row in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let (Some(name), [_, _, imports]) = (names(row).next(), cells.as_slice()) else { continue };
        if name.contains("::") {
            continue; // a layer of a crate
        }
        let manifest: Table = read(&folder(name).join("Cargo.toml")).parse().expect("TOML");
        let listed = manifest.get("dependencies").and_then(toml::Value::as_table);
        let listed = listed.into_iter().flat_map(Table::keys).map(String::as_str);
        let listed: BTreeSet<&str> = listed.filter(|name| members.contains(*name)).collect();
        assert_eq!(names(imports).collect::<BTreeSet<_>>(), listed, "imports of {name}");
        described.insert(name.to_owned());
    }
    assert_eq!(described, members);
}

#[test]
fn files_and_modules_that_are_named_are_there() {
    let (text, members) = (read(&root().join("ARCHITECTURE.md")), crates());
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
            && members.contains(first)
        {
            let library = read(&folder(first).join("src/lib.rs"));
            let second = rest.split("::").next().unwrap_or(rest);
            assert!(library.contains(second), "{first} has no {second}");
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} names were found");
}

/// The layers inside of `flow`: each module imports from those that its row names, and none is left out.
#[test]
fn layers_import_as_the_table_says() {
    let text = read(&root().join("ARCHITECTURE.md"));
    let mut layers: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in text.lines().filter(|line| line.starts_with("| `flow::")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let (Some(name), [_, _, imports]) = (names(row).next(), cells.as_slice()) else { continue };
        let name = name.trim_start_matches("flow::");
        let imports: BTreeSet<String> = names(imports).map(str::to_owned).collect();
        let below = imports.iter().find(|import| !layers.contains_key(*import));
        assert_eq!(below, None, "{name} imports from what stands below it");
        layers.insert(name.to_owned(), imports);
    }
    let mut found = imports_inside("flow");
    found.remove("testing");
    assert_eq!(found, layers, "left: what the modules import; right: what the table says");
}

/// Between the top-level modules of a crate imports go one way. What does not yet is named in `ARCHITECTURE.md`, circle by circle.
#[test]
fn modules_import_in_no_circle() {
    let text = read(&root().join("ARCHITECTURE.md"));
    let list =
        text.split("In no crate do top-level modules").nth(1).and_then(|rest| rest.split("\n\n").next());
    let mut excepted: BTreeSet<(String, BTreeSet<String>)> = BTreeSet::new();
    for circle in list.expect("the list of circles").split("`)") {
        let Some((before, modules)) = circle.rsplit_once('(') else { continue };
        let Some(name) = names(before).last() else { continue };
        let modules = format!("{modules}`");
        excepted.insert((name.to_owned(), names(&modules).map(str::to_owned).collect()));
    }
    let mut found = BTreeSet::new();
    for name in crates().iter().filter(|name| *name != "tests") {
        found.extend(circles(&imports_inside(name)).into_iter().map(|circle| (name.clone(), circle)));
    }
    let new: Vec<_> = found.difference(&excepted).collect();
    assert!(new.is_empty(), "modules that import each other in a circle: {new:#?}");
    let gone: Vec<_> = excepted.difference(&found).collect();
    assert!(gone.is_empty(), "ARCHITECTURE.md still names circles that are gone: {gone:#?}");
}

/// What each top-level module of a crate imports from the others. Tests may import what they like.
fn imports_inside(name: &str) -> BTreeMap<String, BTreeSet<String>> {
    let folder = folder(name).join("src");
    let mut texts: Vec<(String, String)> = Vec::new();
    sources(&folder, &mut |path, text| {
        let module = path.strip_prefix(&folder).expect("below the folder").to_string_lossy().into_owned();
        let module = module.split(['/', '.']).next().unwrap_or_default();
        if !matches!(module, "lib" | "main") && !path.ends_with("tests.rs") {
            texts.push((module.to_owned(), code(text)));
        }
    });
    let mut imports: BTreeMap<String, BTreeSet<String>> =
        texts.iter().map(|(module, _)| (module.clone(), BTreeSet::new())).collect();
    let modules: BTreeSet<String> = imports.keys().cloned().collect();
    for (module, text) in &texts {
        for rest in text.split("crate::").skip(1) {
            for import in first_names(rest).filter(|import| *import != module) {
                let is_module = modules.contains(import);
                // Elsewhere, the root may stand for where a thing is.
                assert!(
                    is_module || name != "flow",
                    "{module} of flow imports `{import}` from the root: name its module"
                );
                if is_module && let Some(imports) = imports.get_mut(module) {
                    imports.insert(import.to_owned());
                }
            }
        }
    }
    imports
}

/// A source text without comments and what is for tests only.
fn code(text: &str) -> String {
    let tests = text.find("#[cfg(test)]\nmod tests").unwrap_or(text.len());
    let lines = text[..tests].lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The first names of what stands behind `crate::`: one, or those in braces.
fn first_names(rest: &str) -> impl Iterator<Item = &str> {
    let group = rest.starts_with('{');
    let mut depth = 0;
    let end = rest.find(|c| {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        depth == 0 && (group || !(c.is_alphanumeric() || c == '_'))
    });
    let inside = rest[..end.unwrap_or(rest.len())].trim_start_matches('{');
    let mut depth = 0;
    let parts = inside.split(move |c| {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        c == ',' && depth == 0
    });
    let name = |part: &str| part.trim().find(|c: char| !(c.is_alphanumeric() || c == '_'));
    parts
        .map(move |part| &part.trim()[..name(part).unwrap_or(part.trim().len())])
        .filter(|name| !name.is_empty())
}

/// The largest sets of modules that all lead to each other.
fn circles(imports: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<BTreeSet<String>> {
    let reach = |from: &String| {
        let (mut seen, mut waiting) = (BTreeSet::new(), vec![from]);
        while let Some(next) = waiting.pop() {
            waiting.extend(imports.get(next).into_iter().flatten().filter(|to| seen.insert((*to).clone())));
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        imports.keys().map(|module| (module, reach(module))).collect();
    let circle = |module: &String| -> BTreeSet<String> {
        reached[module].iter().filter(|other| reached[other].contains(module)).cloned().collect()
    };
    imports.keys().map(circle).filter(|circle| circle.len() > 1).collect()
}

#[test]
fn names_behind_crate_are_found() {
    let of = |text| first_names(text).collect::<Vec<_>>();
    assert_eq!(of("a::b::{c, d};"), ["a"]);
    assert_eq!(of("{a::{b, c}, d, e::F};\nx"), ["a", "d", "e"]);
    assert_eq!(of("a, b"), ["a"]);
}

/// Work of a message is a child of its scope: a task that is spawned past it is waited for by no drain and no acknowledgement.
#[test]
fn no_work_is_spawned_past_a_scope() {
    // The scope itself; processors, sources of files and checks of backends, which are no work of a message. What blocks (`spawn_blocking`) is waited for
    // where it begins. What reads and writes a connection to a node of a cluster ends with the connection.
    let allowed = [
        "connectors/src/redis/node.rs",
        "flow/src/runtime/scope.rs",
        "flow/src/processor/mod.rs",
        "flow/src/vfs/mod.rs",
        "flow/src/health/mod.rs",
    ];
    let mut wrong = Vec::new();
    for name in ["flow", "mediators", "connectors", "dataservices", "endpoints"] {
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
