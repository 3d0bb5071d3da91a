//! Every configuration of the outside cases loads (`BUSBAR_SUITES`, default `../shared` beside the workspace).

use busbar_config::{LoadOptions, load, load_text};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[test]
fn the_configurations_of_all_cases_load() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let suites = std::env::var_os("BUSBAR_SUITES").map_or(workspace.join("../shared"), PathBuf::from);
    let suites = if suites.is_relative() { workspace.join(suites) } else { suites };
    let cases = [suites.join("cases"), workspace.join("../../shared/cases")];
    let Some(cases) = cases.iter().find(|path| path.is_dir()) else {
        println!("skipped: no cases at {}", suites.display());
        assert!(std::env::var_os("CI").is_none(), "the cases are missing");
        return;
    };
    let mut count = 0;
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in configurations(cases) {
        count += 1;
        let directory = path.parent().expect("a file has a directory");
        let id = directory.strip_prefix(cases).expect("below the cases").display().to_string();
        let text = std::fs::read_to_string(&path).expect("readable");
        let text = ports(&text.replace("@DIR@", &directory.display().to_string()));
        let loaded = load_text(&path.display().to_string(), &text, directory, &LoadOptions::default());
        if std::env::var_os("SHOW").is_some() {
            for diagnostic in &loaded.diagnostics {
                println!("{}", diagnostics::render::log_line(diagnostic, &loaded.sources));
            }
        }
        for faulty in &loaded.faulty {
            let name = faulty.name.clone().unwrap_or_default();
            found
                .entry(id.clone())
                .or_default()
                .push(format!("{} `{name}`: {}", faulty.kind, faulty.message));
        }
    }
    println!("{count} configurations");
    assert!(count > 300, "only {count} configurations in {}", cases.display());
    assert!(found.is_empty(), "left out: {found:#?}");
}

/// `GROUP/NAME/config.xml`.
fn configurations(cases: &Path) -> Vec<PathBuf> {
    let below = |path: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    let groups = below(cases).into_iter().filter(|path| path.is_dir());
    let mut files: Vec<PathBuf> = groups
        .flat_map(|group| below(&group))
        .map(|case| case.join("config.xml"))
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}

/// `@PORT:name@` stands for a port.
fn ports(text: &str) -> String {
    let mut out = String::new();
    for (index, part) in text.split("@PORT:").enumerate() {
        match part.split_once('@') {
            Some((_, rest)) if index > 0 => {
                out.push_str("8080");
                out.push_str(rest);
            }
            _ => out.push_str(part),
        }
    }
    out
}

#[test]
fn a_missing_path_is_a_diagnostic() {
    let loaded = load(Path::new("/nonexistent/busbar"), &LoadOptions::default());
    assert!(loaded.diagnostics.has_errors());
}
