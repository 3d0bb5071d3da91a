//! The example round is what the scenarios say: every file well-formed, every key there, every address in one place.
#![allow(clippy::unwrap_used)] // helpers of tests

use busbar_bench::scenarios::{ROUND, SECURE};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use xml::{Document, NodeId, NodeKind, ParseOptions};

const FOLDERS: [(&str, &str); 5] = [
    ("endpoints", "endpoint"),
    ("sequences", "sequence"),
    ("local-entries", "localEntry"),
    ("proxy-services", "proxy"),
    ("api", "api"),
];

fn round() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/round")
}

/// Artifact name -> (folder, document).
fn artifacts() -> BTreeMap<String, (&'static str, Document)> {
    let mut found = BTreeMap::new();
    for (folder, root) in FOLDERS {
        for entry in std::fs::read_dir(round().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let document = Document::parse(std::fs::read(&path).unwrap(), &ParseOptions::trusted())
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let element = document.document_element().unwrap();
            assert_eq!(document.local(element), root, "{}", path.display());
            let attribute = if root == "localEntry" { "key" } else { "name" };
            let name = document.attribute(element, "", attribute).unwrap().to_owned();
            assert_eq!(
                Some(&*name),
                path.file_stem().unwrap().to_str(),
                "the file is named like the artifact"
            );
            let commented = document.children(Document::ROOT).any(|n| document.kind(n) == NodeKind::Comment);
            assert!(commented, "{} does not say what it shows", path.display());
            assert!(found.insert(name, (folder, document)).is_none());
        }
    }
    found
}

fn elements(document: &Document) -> impl Iterator<Item = NodeId> + '_ {
    document.descendants(Document::ROOT).filter(|&node| document.kind(node) == NodeKind::Element)
}

#[test]
fn every_key_names_an_artifact_of_the_right_kind() {
    let all = artifacts();
    for (name, (_, document)) in &all {
        for element in elements(document).skip(1) {
            for (attribute, fixed) in
                [("key", None), ("endpoint", Some("endpoints")), ("sequence", Some("sequences"))]
            {
                let Some(key) = document.attribute(element, "", attribute) else { continue };
                let folder = fixed.unwrap_or(match document.local(element) {
                    "endpoint" => "endpoints",
                    "sequence" => "sequences",
                    _ => "local-entries",
                });
                let (found, _) = all.get(key).unwrap_or_else(|| panic!("{name}: there is no '{key}'"));
                assert_eq!(*found, folder, "{name}: '{key}'");
            }
        }
    }
}

#[test]
fn addresses_stand_in_endpoints_only() {
    for (name, (folder, document)) in artifacts() {
        let text = std::fs::read_to_string(round().join(folder).join(format!("{name}.xml"))).unwrap();
        assert_eq!(text.contains("localhost:9000"), folder == "endpoints", "{name}");
        let addresses =
            elements(&document).filter(|&n| document.local(n) == "address" && folder != "local-entries");
        assert_eq!(addresses.count(), usize::from(folder == "endpoints"), "{name}");
    }
}

#[test]
fn every_scenario_has_its_artifact_and_every_proxy_its_scenario() {
    let all = artifacts();
    for scenario in ROUND.iter().chain([&SECURE]) {
        let path = scenario.case(512).request.path;
        if let Some(proxy) = path.strip_prefix("/services/") {
            let proxy = proxy.split('?').next().unwrap();
            assert_eq!(scenario.name.split('/').next(), Some(proxy));
            assert_eq!(all.get(proxy).map(|(folder, _)| *folder), Some("proxy-services"), "{proxy}");
        }
    }
    for (name, (folder, _)) in &all {
        let measured = ROUND.iter().chain([&SECURE]).any(|scenario| scenario.name == name);
        assert!(measured || !matches!(*folder, "proxy-services" | "api"), "{name} has no scenario");
    }
}

#[test]
fn the_stylesheets_turn_every_name_around() {
    use busbar_bench::messages::Schema;
    for (entry, from, to) in [
        ("ReversedToOrder", Schema::Reversed, Schema::Orders),
        ("OrderToReversed", Schema::Orders, Schema::Reversed),
    ] {
        let text = std::fs::read_to_string(round().join(format!("local-entries/{entry}.xml"))).unwrap();
        for (from, to) in from.names().into_iter().zip(to.names()).skip(2) {
            assert!(
                text.contains(&format!("<{to}><xsl:value-of select=\"{from}\"/></{to}>")),
                "{entry}: {to}"
            );
        }
    }
}

/// The cases' configurations are cut out of the example round by tests/cases/round/build.py.
#[test]
fn the_cases_check_what_the_examples_show() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/round");
    let mut configs = Vec::new();
    for entry in std::fs::read_dir(cases).unwrap() {
        if let Ok(text) = std::fs::read_to_string(entry.unwrap().path().join("config.xml")) {
            configs.push(text);
        }
    }
    for (name, (folder, _)) in artifacts() {
        // The secure one needs keys: crates/cli/tests/demo.rs has it.
        if !matches!(folder, "proxy-services" | "api") || name == SECURE.name {
            continue;
        }
        let config = configs.iter().find(|text| text.contains(&format!(" name=\"{name}\"")));
        let config = config.unwrap_or_else(|| panic!("no case for {name}"));
        let text = std::fs::read_to_string(round().join(folder).join(format!("{name}.xml"))).unwrap();
        let (_, text) = text.split_once("-->").unwrap();
        let text = text.replace(" xmlns=\"http://ws.apache.org/ns/synapse\"", "");
        for line in text.lines().filter(|line| !line.contains("<!--")) {
            assert!(config.contains(line), "run tests/cases/round/build.py: {name} has changed: {line}");
        }
    }
}
