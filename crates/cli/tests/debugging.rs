//! docs/debugging.md shows what the program prints: this runs its commands and compares. `BUSBAR_DOCS=write` writes the page.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use std::path::Path;
use support::{Process, ask, configure, free_port};

/// A text with everything that differs from run to run as `_`.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut line = line.to_owned();
        while let Some((before, rest)) = line.split_once("Date").filter(|(_, rest)| rest.contains(" GMT")) {
            line = format!("{before}date{}", rest.split_once(" GMT").unwrap().1);
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        for (at, word) in words.iter().enumerate() {
            let time = words.get(at + 1).is_some_and(|unit| ["ms", "s"].contains(unit));
            let number = word.trim_start_matches('+').parse::<f64>().is_ok();
            let changing = ["urn:uuid:", "message_id=", "127.0.0.1:", "client="];
            let stamp = word.starts_with("20") && word.ends_with('Z');
            let made =
                word.get(..36).is_some_and(|id| id.as_bytes()[8] == b'-' && id.matches('-').count() == 4);
            let word = if made { &word[36..] } else { word };
            let cut = changing.iter().filter_map(|start| word.find(start)).min();
            match cut {
                _ if time && number || stamp => out.push('_'),
                // The port, and what is made new for each message.
                Some(at) => out.push_str(&word[..at]),
                None => out.push_str(word),
            }
            out.push(' ');
        }
        out.push('\n');
    }
    out
}

/// What a `curl` command of the page prints.
fn run(bus: &Process, command: &str) -> String {
    let (mut method, mut body, mut headers, mut url) = ("", "", String::new(), "");
    let words = words(command);
    let mut words = words.iter().map(String::as_str);
    assert_eq!(words.next(), Some("curl"));
    while let Some(word) = words.next() {
        match word {
            "-s" => {}
            "-X" => method = words.next().unwrap(),
            "-d" => body = words.next().unwrap(),
            "-H" => headers += &format!("{}\r\n", words.next().unwrap()),
            word => url = word,
        }
    }
    let (address, path) = url.strip_prefix("http://").and_then(|url| url.split_once('/')).unwrap();
    let address = if address.ends_with("9164") { bus.field("admin") } else { bus.http() };
    let method = match (method, body) {
        ("", "") => "GET",
        ("", _) => "POST",
        (method, _) => method,
    };
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let path = format!("/{path}");
    let response = match headers.as_str() {
        "" => ask(address, method, &path, body.as_bytes()),
        headers => support::exchange(&mut stream, method, &path, body.as_bytes(), headers),
    };
    String::from_utf8(response.unwrap().2).unwrap()
}

fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, piece) in command.split('\'').enumerate() {
        match at % 2 {
            1 => words.push(piece.to_owned()),
            _ => words.extend(piece.split_whitespace().map(str::to_owned)),
        }
    }
    words
}

#[test]
fn the_page_shows_what_the_program_prints() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/debugging.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (_, rest) = text.split_once("```xml\n").unwrap();
    let (configuration, _) = rest.split_once("```").unwrap();
    let port = free_port().to_string();
    // Named by the places in the traces.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("debugging");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("quotes.xml");
    configure(&file, "");
    std::fs::write(&file, configuration.replace("8280", &port)).unwrap();
    let http = format!("127.0.0.1:{port}");
    let bus = Process::start(&["run", file.to_str().unwrap(), "--http", &http, "--admin", "127.0.0.1:0"]);

    let mut written = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        written += &format!("{line}\n");
        let block = match line {
            "```console" | "```text wire" => {
                lines.by_ref().take_while(|line| *line != "```").collect::<Vec<_>>()
            }
            _ => continue,
        };
        if line == "```text wire" {
            bus.says("to client | <price>", 1);
            let log = bus.stderr();
            let wire = log.lines().filter(|line| line.contains(" busbar::wire "));
            wire.for_each(|line| written += &format!("{}\n", line.replace(&port, "8280")));
        }
        for command in block.iter().filter_map(|line| line.strip_prefix("$ ")) {
            let printed =
                run(&bus, command).replace(&format!("{}/", folder.display()), "").replace(&port, "8280");
            written += &format!("$ {command}\n{}\n", printed.trim_end());
        }
        written += "```\n";
    }
    if std::env::var("BUSBAR_DOCS").is_ok_and(|value| value == "write") {
        std::fs::write(&page, &written).unwrap();
        return;
    }
    for (shown, printed) in plain(&text).lines().zip(plain(&written).lines()) {
        assert_eq!(shown, printed, "BUSBAR_DOCS=write cargo test -p busbar --test debugging writes the page");
    }
    assert_eq!(text.lines().count(), written.lines().count());
}
