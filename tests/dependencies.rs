//! Every dependency has a licence that `deny.toml` allows and is no release that it denies, and the binary has no feature that is
//! for tests. Offline.

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use toml::Table;

#[test]
fn dependencies_are_allowed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let deny: Table =
        std::fs::read_to_string(root.join("deny.toml")).expect("deny.toml").parse().expect("TOML");
    let allowed: Vec<&str> = strings(&deny["licenses"]["allow"]);
    let denied = deny["bans"]["deny"].as_array().expect("a list");

    let packages = packages(&root);
    assert!(packages.len() > 50, "only {} packages were found", packages.len());
    let mut wrong = Vec::new();
    for package in &packages {
        let (name, version) = (text(package, "name"), text(package, "version"));
        if package["source"].is_null() {
            continue;
        }
        let licence = text(package, "license");
        if !is_allowed(licence, &allowed) {
            wrong.push(format!("{name} {version}: licence {licence:?}"));
        }
        for entry in denied {
            let (banned, versions) =
                entry["crate"].as_str().and_then(|c| c.split_once(':')).expect("crate = \"name:versions\"");
            if name == banned && is_in(version, versions) {
                wrong.push(format!("{name} {version}: {}", entry["reason"]));
            }
        }
    }
    assert!(wrong.is_empty(), "deny.toml does not allow:\n{}", wrong.join("\n"));
}

/// Whatever the build of this test has, the binary has no feature of our crates but the default one, which is empty: the seam of the simulation
/// and what fuzzing reaches of the inside are in no release.
#[test]
fn the_binary_has_no_feature_of_tests() {
    // Lines of the form `busbar-flow v0.1.0 (path) features=a,b`.
    let ours = |package: &str, more: &[&str]| -> Vec<String> {
        let arguments =
            ["tree", "--offline", "--locked", "--prefix", "none", "-f", "{p} features={f}", "-p", package];
        let tree = run(Path::new(env!("CARGO_MANIFEST_DIR")), &cargo(), &[&arguments[..], more].concat());
        tree.lines()
            .filter(|line| line.starts_with("busbar"))
            .map(|line| line.trim_end_matches(" (*)").to_owned())
            .collect()
    };
    let of_binary = ours("busbar", &["-e", "no-dev"]);
    assert!(of_binary.len() > 20, "{of_binary:?}");
    let others: Vec<_> = of_binary.iter().filter(|line| !line.ends_with("features=")).collect();
    assert!(others.is_empty(), "{others:?}");
    // A feature would be found by this.
    let of_tests = ours("busbar-tests", &["--features", "simulation"]);
    assert!(
        of_tests
            .iter()
            .any(|line| line.starts_with("busbar-transport ") && line.ends_with("features=simulation")),
        "{of_tests:?}"
    );
}

fn cargo() -> String {
    std::env::var("CARGO").unwrap_or("cargo".to_owned())
}

fn run(root: &Path, program: &str, arguments: &[&str]) -> String {
    // The features that a package has for itself.
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root).env_remove("CARGO_RESOLVER_FEATURE_UNIFICATION");
    let output = command.output().expect(program);
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The packages that are built for this platform.
fn packages(root: &Path) -> Vec<Value> {
    let version = run(root, "rustc", &["-vV"]);
    let host = version.lines().find_map(|l| l.strip_prefix("host: ")).expect("rustc names its host");
    let arguments = ["metadata", "--offline", "--locked", "--format-version", "1", "--filter-platform", host];
    let metadata: Value = serde_json::from_str(&run(root, &cargo(), &arguments)).expect("JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

fn text<'a>(package: &'a Value, key: &str) -> &'a str {
    package[key].as_str().unwrap_or("")
}

fn strings(list: &toml::Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().filter_map(toml::Value::as_str).collect()
}

/// Whether a licence expression (SPDX; `/` is an old form of OR) can be met with the allowed ones. AND binds tighter than OR.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let value = any(&tokens, &mut at, allowed);
    value && at == tokens.len()
}

fn any(tokens: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    let mut value = all(tokens, at, allowed);
    while tokens.get(*at) == Some(&"OR") {
        *at += 1;
        value |= all(tokens, at, allowed);
    }
    value
}

fn all(tokens: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    let mut value = one(tokens, at, allowed);
    while tokens.get(*at) == Some(&"AND") {
        *at += 1;
        value &= one(tokens, at, allowed);
    }
    value
}

fn one(tokens: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    let Some(token) = tokens.get(*at) else { return false };
    *at += 1;
    if *token == "(" {
        let value = any(tokens, at, allowed);
        *at += 1;
        return value;
    }
    let mut licence = (*token).to_owned();
    if tokens.get(*at) == Some(&"WITH") {
        licence = format!("{licence} WITH {}", tokens.get(*at + 1).unwrap_or(&""));
        *at += 2;
    }
    allowed.contains(&licence.as_str())
}

/// Whether a version is in a list of comparisons that all must hold (`>=1.2, <2`), `*` for every version.
fn is_in(version: &str, comparisons: &str) -> bool {
    let numbers = |v: &str| -> Vec<u64> {
        let release = v.split(['-', '+']).next().unwrap_or("");
        let mut parts: Vec<u64> = release.split('.').map(|p| p.trim().parse().expect("a version")).collect();
        parts.resize(3, 0);
        parts
    };
    let version = numbers(version);
    comparisons.split(',').map(str::trim).all(|c| match c.find(|x: char| x.is_ascii_digit()) {
        None => c == "*",
        Some(digit) => {
            let order = version.cmp(&numbers(&c[digit..]));
            match c[..digit].trim() {
                "<" => order.is_lt(),
                "<=" => order.is_le(),
                ">" => order.is_gt(),
                ">=" => order.is_ge(),
                "=" => order.is_eq(),
                other => panic!("{other:?} is no comparison"),
            }
        }
    })
}

#[test]
fn licences_and_versions() {
    let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"];
    #[rustfmt::skip]
    let licences = [
        ("MIT", true), ("GPL-3.0", false), ("GPL-3.0 OR MIT", true), ("MIT AND GPL-3.0", false), ("MIT/Apache-2.0", true),
        ("ISC AND (GPL-3.0 OR MIT)", true), ("(GPL-3.0 OR MIT) AND OpenSSL", false), ("GPL-3.0 AND ISC OR MIT", true),
        ("Apache-2.0 WITH LLVM-exception", true), ("Apache-2.0", false), ("", false), ("MIT MIT", false), ("(MIT", false),
    ];
    for (expression, expected) in licences {
        assert_eq!(is_allowed(expression, &allowed), expected, "{expression:?}");
    }
    #[rustfmt::skip]
    let versions = [
        ("1.2.3", "*", true), ("1.2.3", "<1.2.3", false), ("1.2.3", ">=1.2.0, <2", true), ("1.10.0", "<1.9", false),
        ("0.15.0", "=0.15.0", true), ("1.2.3-rc.1+5", ">=1.2.3", true),
    ];
    for (version, comparisons, expected) in versions {
        assert_eq!(is_in(version, comparisons), expected, "{version} {comparisons}");
    }
}
