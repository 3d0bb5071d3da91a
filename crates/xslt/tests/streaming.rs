//! Streaming gives what the tree gives: on every stylesheet and document of the suites that streams, and on stylesheets and
//! documents made by chance; with windows of one element and with larger ones.

#![allow(clippy::unwrap_used)]

mod generate;
#[allow(dead_code)] // no ledger: all must agree
#[path = "../../xml/tests/ledger/mod.rs"]
mod ledger;

use busbar_xslt::{CompileOptions, FileResolver, Processor, RunLimits, RunOptions, Stylesheet};
use generate::Chance;
use xml::{Document, Limits, ParseOptions};

/// Both ways, streaming with windows of `window` bytes.
fn both(sheet: &Stylesheet, input: &[u8], window: usize, uri: &str) -> [Result<String, String>; 2] {
    let limits = RunLimits { window, depth: 2_000, steps: 2_000_000, ..RunLimits::default() };
    let resolver = FileResolver::default();
    let options =
        RunOptions { limits: &limits, resolver: &resolver, input_uri: uri, ..RunOptions::default() };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let mut tree = Vec::new();
    let parse = ParseOptions {
        strip_space: sheet.strip_space(),
        limits: Limits::trusted(),
        ..ParseOptions::default()
    };
    let tree = Document::parse(input.to_vec(), &parse).map_err(|e| e.to_string()).and_then(|doc| {
        let options = RunOptions { stripped: true, ..options };
        sheet.transform_to(&doc, Document::ROOT, &[], &options, &mut tree).map_err(|e| e.message)?;
        Ok(text(tree))
    });
    let mut stream = Vec::new();
    let streamed = sheet
        .transform_stream(&mut &*input, &Limits::trusted(), &[], &options, false, &mut stream)
        .map(|_| text(stream))
        .map_err(|e| e.message);
    [tree, streamed]
}

fn agree(name: &str, sheet: &Stylesheet, input: &[u8], uri: &str) {
    for window in [1, 400, 20_000] {
        let [tree, streamed] = both(sheet, input, window, uri);
        match (tree, streamed) {
            (Ok(tree), Ok(streamed)) => {
                let at = tree.bytes().zip(streamed.bytes()).take_while(|(a, b)| a == b).count();
                let around = |s: &str| {
                    String::from_utf8_lossy(&s.as_bytes()[at.saturating_sub(60)..s.len().min(at + 60)])
                        .into_owned()
                };
                assert!(
                    tree == streamed,
                    "{name}, window {window}: tree …{}… stream …{}…",
                    around(&tree),
                    around(&streamed)
                );
            }
            (Err(_), Err(_)) => {}
            (tree, streamed) => panic!("{name}, window {window}: tree {tree:.200?}, stream {streamed:.200?}"),
        }
    }
}

#[test]
fn suites() {
    // Those of 1.0 as such, and with the semantics of 2.0.
    for (name, processor, least) in [
        ("xslt10", Processor::V1, 5),
        ("xsltmark", Processor::V1, 5),
        ("xslt10", Processor::V2, 5),
        ("xsltmark", Processor::V2, 5),
    ] {
        let Some(suite) = ledger::suite(name) else { return };
        let (mut all, mut streamed) = (0, 0);
        for case in suite.cases() {
            let file = |name: &str| {
                case["files"][name].as_str().map(|f| suite.path(f).to_string_lossy().into_owned())
            };
            let input = file("input").unwrap();
            let stylesheet = file("stylesheet").unwrap_or_else(|| input.clone());
            let resolver = FileResolver::default();
            let options = CompileOptions {
                uri: &stylesheet,
                resolver: &resolver,
                processor,
                ..CompileOptions::default()
            };
            all += 1;
            let Ok(sheet) = Stylesheet::compile(&std::fs::read(&stylesheet).unwrap(), &options) else {
                continue;
            };
            if sheet.streaming().whole.is_some() {
                continue;
            }
            streamed += 1;
            agree(case["id"].as_str().unwrap(), &sheet, &std::fs::read(&input).unwrap(), &input);
        }
        println!("{name}: {streamed} of {all} stylesheets stream");
        assert!(streamed * least > all, "{streamed} of {all} stream");
    }
}

#[test]
fn by_chance() {
    let number =
        |name: &str, default: u64| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    let (first, count) = (number("BUSBAR_SEED", 1), number("BUSBAR_DIFFERENTIAL", 3000));
    let mut streamed = 0;
    for seed in first..first + count {
        let mut chance = Chance::new(seed);
        let text = generate::streamable(&mut chance);
        let sheet = Stylesheet::compile(text.as_bytes(), &CompileOptions::default())
            .unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        let input = generate::document(&mut chance);
        if sheet.streaming().whole.is_none() {
            streamed += 1;
            agree(&format!("BUSBAR_SEED={seed}\n{text}\n{input}\n"), &sheet, input.as_bytes(), "");
        }
    }
    println!("{streamed} of {count} stylesheets stream");
    assert!(streamed * 4 > count);
}
