//! Plays the consoles of the documentation: each page's commands run in order in a directory of their own, and what they print is what
//! the page shows.
//!
//! A block ```` ```xml NAME ```` is written to the file NAME. The commands of a block ```` ```console play ```` run, lines behind a
//! command are its output: `…` alone stands for any lines, within a line for any text. What differs from run to run (ids of messages,
//! times, ports of clients) is not compared. `busbar run` and `busbar backend` go on in the background, `kill %N` ends the Nth of them.
//!
//! `BUSBAR_DOCS=write` puts what the commands print in the place of what the pages show, `BUSBAR_PAGES=recipes/` plays only the pages whose
//! path contains that.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Pages that are played, and how many of them at a time.
const FOLDERS: &[&str] = &["", "docs", "docs/mediators", "docs/connectors", "docs/recipes", "docs/rules"];
const AT_A_TIME: usize = 3;

/// The ports that pages name; each page gets others.
const PORTS: [u16; 3] = [8280, 9000, 9164];

/// A part of a page.
enum Part<'p> {
    /// What is kept as it is.
    Text(&'p str),
    /// A file to write.
    File { name: &'p str, text: String },
    /// A command with the lines that it is shown to print.
    Command { shown: String, command: String },
}

/// The parts of a page; together they are its text.
fn parts(page: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut lines = page.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        parts.push(Part::Text(line));
        let mut block =
            || std::iter::from_fn(|| lines.next_if(|line| line.trim_end() != "```")).collect::<Vec<&str>>();
        let fence = line.trim_end().strip_prefix("```").unwrap_or_default();
        match fence.split_once(' ') {
            Some(("console", "play")) => {
                for line in block() {
                    match (line.strip_prefix("$ "), parts.last_mut()) {
                        (None, Some(Part::Command { command, .. })) if is_open(command) => {
                            command.push('\n');
                            command.push_str(line.trim_end());
                        }
                        (Some(command), _) => {
                            let command = command.trim_end().to_owned();
                            parts.push(Part::Command { shown: String::new(), command });
                        }
                        (None, Some(Part::Command { shown, .. })) => shown.push_str(line),
                        (None, _) => parts.push(Part::Text(line)),
                    }
                }
            }
            Some((_, named)) if named.contains('.') => {
                let name = named.rsplit(' ').next().unwrap_or(named);
                let text = block();
                parts.push(Part::File { name, text: text.concat() });
                parts.extend(text.into_iter().map(Part::Text));
            }
            _ if !fence.is_empty() => parts.extend(block().into_iter().map(Part::Text)),
            _ => {}
        }
    }
    parts
}

/// Whether a command goes on in the next line.
fn is_open(command: &str) -> bool {
    command.ends_with('\\') || command.matches('\'').count() % 2 == 1
}

/// A page that is played: its directory, its ports, and what runs.
struct Stage {
    folder: PathBuf,
    ports: [u16; 3],
    running: Vec<(String, Child)>,
}

impl Stage {
    fn new(page: &str) -> Stage {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("console-{}", page.replace('/', "-")));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        // curl shows its progress where it writes to no terminal.
        fs::write(folder.join(".curlrc"), "silent\nshow-error\n").unwrap();
        Stage { folder, ports: PORTS.map(|_| support::free_port()), running: Vec::new() }
    }

    /// A text of the page with the ports of this run.
    fn here(&self, text: &str) -> String {
        with_ports(text, PORTS, self.ports)
    }

    /// A text of this run with the ports of the page.
    fn on_the_page(&self, text: &str) -> String {
        with_ports(text, self.ports, PORTS)
    }

    /// What a command prints. The log is written a moment after the answer: what looks into it looks again.
    fn printed(&mut self, command: &str, shown: &str) -> String {
        let mut printed = self.play(command);
        for _ in 0..40 {
            if is_shown(&lines(shown), &lines(&printed)) || !command.starts_with("grep ") {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
            printed = self.play(command);
        }
        printed
    }

    /// Runs a command and gives what it prints.
    fn play(&mut self, command: &str) -> String {
        if let Some(number) = command.strip_prefix("kill %") {
            let (_, child) = &mut self.running[number.parse::<usize>().unwrap() - 1];
            end(child);
            return String::new();
        }
        let mut here = self.here(command.trim_end_matches(" &"));
        let program = ["busbar run", "busbar backend"].into_iter().find(|program| here.starts_with(program));
        let Some(program) = program else {
            let output = self.shell(&format!("{{ {here}\n}} 2>&1")).output().unwrap();
            return self.on_the_page(&String::from_utf8_lossy(&output.stdout).replace('\r', ""));
        };
        let [http, backend, admin] = self.ports;
        match program {
            "busbar backend" => here += &format!(" --listen 127.0.0.1:{backend} --workers 1"),
            _ => here += &format!(" --http 127.0.0.1:{http} --admin 127.0.0.1:{admin} --workers 2"),
        }
        // One bus at a time has the ports.
        self.running.iter_mut().filter(|(running, _)| running == program).for_each(|(_, child)| end(child));
        let log =
            fs::OpenOptions::new().create(true).append(true).open(self.folder.join("stderr.log")).unwrap();
        let mut child =
            self.shell(&format!("exec {here}")).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        self.running.push((program.to_owned(), child));
        self.on_the_page(&ready)
    }

    fn shell(&self, command: &str) -> Command {
        let binary = Path::new(env!("CARGO_BIN_EXE_busbar")).parent().unwrap();
        let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("bash");
        shell.args(["-c", command]).current_dir(&self.folder).env("PATH", path).env("HOME", &self.folder);
        // The settings of whoever runs the tests are not those of a reader.
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BUSBAR_")).for_each(
            |(name, _)| {
                shell.env_remove(name);
            },
        );
        shell.stdin(Stdio::null());
        shell
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.running.iter_mut().for_each(|(_, child)| end(child));
    }
}

/// A text with other ports, in one pass: the digits of a port that was put in can contain those of another (39000 of 9000).
fn with_ports(text: &str, from: [u16; 3], to: [u16; 3]) -> String {
    let mut changed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let port =
            from.iter().zip(to).find_map(|(from, to)| Some((rest.strip_prefix(&from.to_string())?, to)));
        rest = match port {
            Some((behind, to)) => {
                changed += &to.to_string();
                behind
            }
            None => {
                changed.push(next);
                &rest[next.len_utf8()..]
            }
        };
    }
    changed
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// A line without what differs from run to run.
fn lasting(line: &str) -> String {
    // A line of the log begins with its time.
    let time = line.split_once(' ').filter(|(time, _)| time.ends_with('Z') && time.contains('T'));
    let mut text = time.map_or(line.to_owned(), |(_, rest)| format!("* {rest}"));
    for (before, may_be) in [
        ("urn:uuid:", "0123456789abcdef-"),
        ("client=127.0.0.1:", "0123456789"),
        (" in ", "0123456789.mµs "),
        ("Date: ", "SunMoTueWdhFriatJbApylgcNvD0123456789:, GMT"),
    ] {
        let mut from = 0;
        while let Some(at) = text[from..].find(before) {
            let begin = from + at + before.len();
            let length = text[begin..].find(|c| !may_be.contains(c)).unwrap_or(text.len() - begin);
            let is_number = text[begin..begin + length].contains(|c: char| c.is_ascii_digit());
            if is_number {
                text.replace_range(begin..begin + length, "*");
            }
            from = begin;
        }
    }
    text
}

fn lines(text: &str) -> Vec<&str> {
    text.trim_end().lines().map(str::trim_end).collect()
}

/// Whether a command printed what is shown.
fn is_shown(shown: &[&str], printed: &[&str]) -> bool {
    match shown {
        [] => printed.is_empty(),
        ["…", rest @ ..] => (0..=printed.len()).any(|skip| is_shown(rest, &printed[skip..])),
        [line, rest @ ..] => printed.split_first().is_some_and(|(first, others)| {
            let (line, first) = (lasting(line), lasting(first));
            is_line(&line.split('…').collect::<Vec<_>>(), &first) && is_shown(rest, others)
        }),
    }
}

/// Whether a line is made of these pieces with anything between them.
fn is_line(pieces: &[&str], line: &str) -> bool {
    match pieces {
        [] => line.is_empty(),
        [only] => line == *only,
        [first, rest @ ..] => line.strip_prefix(first).is_some_and(|line| {
            (0..=line.len()).filter(|&at| line.is_char_boundary(at)).any(|at| is_line(rest, &line[at..]))
        }),
    }
}

/// Plays a page; gives its text with what was printed, and what was not as shown.
fn play(name: &str, page: &str) -> (String, Vec<String>) {
    let mut stage = Stage::new(name);
    let (mut text, mut wrong) = (String::new(), Vec::new());
    for part in parts(page) {
        match part {
            Part::Text(line) => text.push_str(line),
            Part::File { name, text } => {
                let path = stage.folder.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, stage.here(&text)).unwrap();
            }
            Part::Command { shown, command } => {
                let printed = stage.printed(&command, &shown);
                let silent =
                    shown.is_empty() && command.starts_with("busbar ") && printed.contains(" ready ");
                text += &format!("$ {command}\n");
                if silent || is_shown(&lines(&shown), &lines(&printed)) {
                    text += &shown;
                } else {
                    wrong.push(format!("{name}: $ {command}\n--- shown\n{shown}--- printed\n{printed}"));
                    lines(&printed).iter().for_each(|line| text += &format!("{line}\n"));
                }
            }
        }
    }
    (text, wrong)
}

#[test]
fn commands_print_what_the_pages_show() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if Command::new("curl").arg("--version").output().is_err() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "the consoles of the pages need curl");
        eprintln!("skipped: the consoles of the pages need curl");
        return;
    }
    let mut pages: Vec<(String, String)> = Vec::new();
    for folder in FOLDERS {
        let Ok(files) = fs::read_dir(root.join(folder)) else { continue };
        for path in files
            .filter_map(|file| Some(file.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|e| e == "md"))
        {
            let text = fs::read_to_string(&path).unwrap();
            if text.contains("\n```console play\n") {
                pages.push((path.strip_prefix(&root).unwrap().display().to_string(), text));
            }
        }
    }
    pages.sort();
    assert!(pages.len() > 10, "only {} pages are played", pages.len());
    if let Ok(wanted) = std::env::var("BUSBAR_PAGES") {
        pages.retain(|(name, _)| name.contains(&wanted));
    }
    let next = AtomicUsize::new(0);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let players: Vec<_> = (0..AT_A_TIME)
            .map(|_| {
                scope.spawn(|| {
                    let mut all = Vec::new();
                    while let Some((name, page)) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let (text, wrong) = play(name, page);
                        if std::env::var("BUSBAR_DOCS").is_ok_and(|value| value == "write") {
                            fs::write(root.join(name), text).unwrap();
                        }
                        all.extend(wrong);
                    }
                    all
                })
            })
            .collect();
        players.into_iter().flat_map(|player| player.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}\nBUSBAR_DOCS=write cargo test -p busbar --test console", wrong.join("\n"));
}

#[test]
fn ports_are_replaced_once() {
    let (page, here) = ("http://localhost:8280/ and 9000, 9164", "http://localhost:39000/ and 49164, 58280");
    assert_eq!(with_ports(page, PORTS, [39000, 49164, 58280]), here);
    assert_eq!(with_ports(here, [39000, 49164, 58280], PORTS), page);
}

#[test]
fn what_is_shown_may_leave_out() {
    for (shown, printed, is) in [
        ("a\nb", "a\nb", true),
        ("a\n…\nd", "a\nb\nc\nd", true),
        ("a\n…", "a", true),
        ("a\n…\nd", "a\nb", false),
        ("id urn:uuid:12-ab.", "id urn:uuid:34-cd.", true),
        ("ready in 4 ms", "ready in 17 ms", true),
        ("2026-11-23T09:14:21.250Z ERROR a", "2027-01-01T00:00:00.000Z ERROR a", true),
        ("a … c … e", "a b c d e", true),
        ("a … c", "a b d", false),
        ("", "a", false),
    ] {
        assert_eq!(is_shown(&lines(shown), &lines(printed)), is, "{shown:?} {printed:?}");
    }
}
