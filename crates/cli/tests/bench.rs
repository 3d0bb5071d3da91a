//! `busbar bench` from outside: what it counts beside other generators, peers of every kind, and what is left when it is ended.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use support::Process;

const BUSBAR: &str = env!("CARGO_BIN_EXE_busbar");

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("busbar-test-bench-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn bench(arguments: &[&str]) -> Output {
    Command::new(BUSBAR).arg("bench").args(arguments).output().unwrap()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.clone(), output.stderr.clone()].concat()).into_owned()
}

fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn results(folder: &Path) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(folder.join("runs.json")).unwrap()).unwrap()
}

/// Cells of a system in the results.
fn cells<'a>(results: &'a serde_json::Value, system: &str) -> Vec<&'a serde_json::Value> {
    let runs = results.as_array().unwrap().iter();
    runs.flat_map(|run| run["cells"].as_array().unwrap()).filter(|cell| cell["system"] == system).collect()
}

fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Answers 200 to every request, a few milliseconds later, and counts them.
fn counting() -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, count) = (listener.local_addr().unwrap(), Arc::<AtomicU64>::default());
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counted = Arc::clone(&counted);
            std::thread::spawn(move || answer(stream, &counted));
        }
    });
    (format!("http://{address}/x"), count)
}

fn answer(stream: TcpStream, counted: &AtomicU64) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().ok()?;
            }
            if line.is_empty() {
                break;
            }
        }
        stream.read_exact(&mut vec![0; length]).ok()?;
        counted.fetch_add(1, Relaxed);
        std::thread::sleep(Duration::from_millis(4));
        stream
            .get_mut()
            .write_all(b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok")
            .ok()?;
    }
}

/// What three generators say of the same server: each counts what the server counted, and all agree on the time of an answer.
#[test]
fn the_generator_agrees_with_wrk_and_ab() {
    if !has("wrk") || !has("ab") {
        assert!(std::env::var_os("CI").is_none(), "CI needs wrk and apache2-utils");
        println!("skipped: wrk or ab is not installed");
        return;
    }
    let (url, count) = counting();
    let work = folder("generators");
    let body = work.join("body");
    fs::write(&body, "order").unwrap();
    let body = body.display().to_string();

    let output = bench(&["load", &url, "--file", &body, "-c", "5", "-n", "200", "--json"]);
    let ours: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((ours["right"].as_u64(), count.swap(0, Relaxed)), (Some(200), 200), "{ours}");
    let median = ours["latency_ms"]["p50"].as_f64().unwrap();

    let output =
        Command::new("ab").args(["-q", "-k", "-c", "5", "-n", "200", "-p", &body, &url]).output().unwrap();
    let text = printed(&output);
    assert!(text.contains("Complete requests:      200"), "{text}");
    let line = text.lines().find(|line| line.trim_start().starts_with("50%")).unwrap();
    let ab: f64 = line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap();
    // ab sends up to one request more for each connection.
    assert!((200..=205).contains(&count.swap(0, Relaxed)));

    let output = Command::new("wrk").args(["-t1", "-c5", "-d1s", "--latency", &url]).output().unwrap();
    let text = printed(&output);
    let requests = text.lines().find_map(|line| line.trim().split_once(" requests in ")).unwrap().0;
    let requests: u64 = requests.parse().unwrap();
    let counted = count.swap(0, Relaxed);
    assert!(requests <= counted && counted <= requests + 5, "wrk says {requests} of {counted}");
    let line = text.lines().map(str::trim).find_map(|line| line.strip_prefix("50%")).unwrap().trim();
    let wrk: f64 = line.strip_suffix("ms").unwrap_or_else(|| panic!("{line}")).parse().unwrap();
    // The server sleeps 4 ms: none can be below, and ab has whole milliseconds.
    assert!(median >= 4.0 && wrk >= 4.0 && ab >= 3.0, "{median} {wrk} {ab}");
    fs::remove_dir_all(work).unwrap();
}

#[test]
fn ten_thousand_connections_from_one_thread() {
    let backend = Process::backend(&[]);
    let url = format!("http://{}/services/EchoService", backend.http());
    let body = folder("many").join("body");
    fs::write(&body, "order").unwrap();
    let limit = Command::new("sh").args(["-c", "ulimit -Hn"]).output().unwrap();
    let limit: usize = String::from_utf8_lossy(&limit.stdout).trim().parse().unwrap_or(1_000_000);
    // As far as the machine lets both sides have descriptors.
    let connections = 10_000.min(limit.saturating_sub(500));
    let (connections, requests) = (connections.to_string(), (2 * connections) as u64);
    let output = bench(&[
        "load",
        &url,
        "--file",
        body.to_str().unwrap(),
        "--expect",
        "echo",
        "-c",
        &connections,
        "-n",
        &requests.to_string(),
        "--timeout",
        "120",
        "--json",
    ]);
    let found: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", printed(&output)));
    assert_eq!((found["right"].as_u64(), found["failed"].as_u64()), (Some(requests), Some(0)), "{found}");
    fs::remove_dir_all(body.parent().unwrap()).unwrap();
}

#[test]
fn what_cannot_be_is_said_before_anything_is_measured() {
    let file = folder("strange").join("file");
    fs::write(&file, "").unwrap();
    let file = file.display().to_string();
    let inside = format!("{file}/report");
    let cases: [(&[&str], &str); 12] = [
        (&["load", "http://127.0.0.1:1/", "--duration", "0"], "no time"),
        (&["load", "http://127.0.0.1:1/", "-n", "1", "--timeout", "0"], "no time"),
        (&["load", "http://127.0.0.1:1/", "-n", "1", "-H", "Content-Length: 3"], "by the generator itself"),
        (
            &["load", "http://127.0.0.1:1/", "-n", "1", "--process", "a=1", "--process", "a=2"],
            "two processes",
        ),
        (&["round", "--alone", "--out", &inside], "Not a directory"),
        (&["round", "--alone", "--seconds", "0"], "at least"),
        (&["round", "--alone", "--per-client", "0"], "is not main"),
        (&["round", "--alone", "--scenario", "Nothing"], "no method has"),
        (&["profile", "--scenario", "Nothing", "--out", "/tmp"], "no scenario"),
        (&["all", "--part", "nothing"], "invalid value"),
        (&["soak", "--hours", "0"], "not between"),
        (&["project", "/tmp", "--artifacts", "3"], "is not in"),
    ];
    for (arguments, want) in cases {
        let output = bench(arguments);
        assert!(
            !output.status.success() && printed(&output).contains(want),
            "{arguments:?}: {}",
            printed(&output)
        );
    }
    fs::remove_dir_all(Path::new(&file).parent().unwrap()).unwrap();
}

/// A folder of a WSO2 installation is copied, gets the round, is started with an offset of its ports, measured, and ended with all that it has started.
#[test]
fn an_installation_is_a_peer_by_its_path() {
    let work = folder("wso2");
    let home = work.join("wso2mi-4.4.0");
    // As the real one, it waits for what it starts. What it is asked to start is a Busbar.
    let text = format!(
        "#!/bin/sh\nhome=$(dirname \"$(dirname \"$(readlink -f \"$0\")\")\")\nfor word in \"$@\"; do case $word in -DportOffset=*) offset=${{word#*=}};; esac; done\n\
         \"{BUSBAR}\" run \"$home/repository/deployment/server/synapse-configs/default\" --http 127.0.0.1:$((8280 + offset)) --admin 127.0.0.1:0\n"
    );
    script(&home.join("bin/micro-integrator.sh"), &text);
    let out = work.join("report");
    let output = bench(&[
        "round",
        "--method",
        "2010",
        "--quick",
        "--seconds",
        "0.05",
        "--scenario",
        "DirectProxy",
        "--scenario",
        "XSLTProxy",
        "--peer",
        home.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{}", printed(&output));
    let found = results(&out);
    let name = "WSO2 Micro Integrator 4.4.0";
    let cells = cells(&found, name);
    // Two scenarios, two sizes, three numbers of clients.
    assert_eq!(cells.len(), 12, "{}", printed(&output));
    // On a busy machine none of many clients may get its answer in a time as short as these.
    for scenario in ["DirectProxy", "XSLTProxy"] {
        let is_right =
            |cell: &serde_json::Value| cell["scenario"] == scenario && cell["right"].as_u64() > Some(0);
        assert!(cells.iter().any(|cell| is_right(cell)), "{scenario}: {cells:?}");
    }
    // The kernel counts processor time in steps, so that a measurement as short as these may have none.
    assert!(cells.iter().any(|cell| cell["cpu"].as_f64() > Some(0.0)), "{cells:?}");
    assert!(!home.join("repository").exists(), "the installation stays as it is");
    let html = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(html.contains(name) && html.contains("-DportOffset="), "{name}");
    fs::remove_dir_all(work).unwrap();
}

/// Peers that answer wrongly, are absent, or end in the middle are left out with a line, and the others are measured.
#[test]
fn peers_that_fail_are_lines_of_the_report() {
    let work = folder("peers");
    let peer = |name: &str, text: &str| {
        script(&work.join(name).join("start"), &format!("#!/bin/sh\n{text}\n"));
        fs::write(
            work.join(name).join("about"),
            format!("name: {name}\nversion: 1\nscenarios: DirectProxy\nwarm-up: 0\n"),
        )
        .unwrap();
        work.join(name).display().to_string()
    };
    // It has no such paths: 404 for each.
    let wrong = peer("wrong", &format!("exec \"{BUSBAR}\" backend --listen 127.0.0.1:$1"));
    let ends = peer("ends", "echo it cannot start; exit 3");
    // It gives the right answers until it is killed.
    let dies = peer(
        "dies",
        &format!(
            "\"{BUSBAR}\" run \"$ROUND\" --http 127.0.0.1:$1 --admin 127.0.0.1:0 & (sleep 6; kill -9 $!; kill -9 $$) & wait"
        ),
    );
    let twice = format!("wrong={dies}");
    let out = work.join("report");
    let mut arguments = vec![
        "round",
        "--method",
        "2010",
        "--quick",
        "--seconds",
        "1",
        "--repeat",
        "4",
        "--scenario",
        "DirectProxy",
    ];
    for one in [&wrong, &ends, &dies, "no-such-peer", &twice] {
        arguments.extend(["--peer", one]);
    }
    arguments.extend(["--out", out.to_str().unwrap()]);
    let output = bench(&arguments);
    let text = printed(&output);
    assert!(!output.status.success(), "answers were missing: {text}");
    let found = results(&out);
    let absent = found[0]["absent"].to_string();
    for line in [
        "wrong does not answer DirectProxy",
        "it cannot start",
        "no-such-peer is not a peer",
        "dies has ended after",
        "there is a system 'wrong' already",
    ] {
        assert!(absent.contains(line), "{line}: {absent}");
    }
    let (ours, theirs) = (cells(&found, "busbar").len(), cells(&found, "dies").len());
    assert_eq!(ours, 24, "{absent}");
    assert!(theirs < 24, "{theirs}");
    fs::remove_dir_all(work).unwrap();
}

/// The processes below one, with all of theirs.
fn below(id: u32) -> Vec<u32> {
    let children = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let children = children.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<u32> = children
        .flat_map(|text| text.split_ascii_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>())
        .collect();
    children.iter().copied().chain(children.iter().flat_map(|child| below(*child))).collect()
}

fn is_there(id: u32) -> bool {
    fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// A run that has begun to measure.
fn measuring(out: &Path, more: &[&str]) -> (Child, Vec<u32>) {
    let mut child = Command::new(BUSBAR)
        .args([
            "bench",
            "all",
            "--quick",
            "--alone",
            "--part",
            "2010",
            "--part",
            "profile",
            "--out",
            out.to_str().unwrap(),
        ])
        .args(more)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let (send, lines) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in stderr.lines().map_while(Result::ok) {
            let _ = send.send(line);
        }
    });
    let mut all = String::new();
    loop {
        let line = lines
            .recv_timeout(Duration::from_secs(60))
            .unwrap_or_else(|_| panic!("nothing is measured: {all}"));
        all.push_str(&line);
        if line.contains(" a second, p50") {
            break;
        }
    }
    let below = below(child.id());
    assert!(below.len() >= 2, "a backend and a bus: {below:?}");
    (child, below)
}

fn signal(child: &Child, name: &str) {
    assert!(
        Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap().success()
    );
}

fn all_gone(ids: &[u32]) {
    let until = Instant::now() + Duration::from_secs(20);
    while ids.iter().any(|id| is_there(*id)) {
        assert!(
            Instant::now() < until,
            "left running: {:?}",
            ids.iter().filter(|id| is_there(**id)).collect::<Vec<_>>()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_run_that_is_interrupted_has_a_report_and_leaves_nothing_running() {
    let out = folder("interrupted");
    let (mut child, others) = measuring(&out, &[]);
    signal(&child, "INT");
    child.wait().unwrap();
    all_gone(&others);
    let found = results(&out);
    let runs = found.as_array().unwrap();
    assert!(runs.len() == 1 && runs[0]["is_cut"] == true, "{runs:?}");
    assert!(!cells(&found, "busbar").is_empty());
    assert!(
        fs::read_to_string(out.join("report.md"))
            .unwrap()
            .contains("Ended before all of it was measured: 2010")
    );
    fs::remove_dir_all(out).unwrap();
}

#[test]
fn a_run_that_is_killed_leaves_nothing_running() {
    if !has("setpriv") {
        println!("skipped: setpriv (util-linux) is not installed");
        return;
    }
    let out = folder("killed");
    let (mut child, others) = measuring(&out, &[]);
    signal(&child, "KILL");
    child.wait().unwrap();
    all_gone(&others);
    fs::remove_dir_all(out).unwrap();
}

#[test]
fn a_report_that_cannot_be_written_goes_to_the_temporary_folder() {
    let work = folder("full");
    let out = work.join("report");
    // A folder where a file of the report is to be.
    fs::create_dir_all(out.join("report.html/inside")).unwrap();
    let temporary = work.join("tmp");
    fs::create_dir_all(&temporary).unwrap();
    let output = Command::new(BUSBAR)
        .args([
            "bench",
            "profile",
            "--scenario",
            "DirectProxy",
            "--seconds",
            "0.1",
            "--out",
            out.to_str().unwrap(),
        ])
        .env("TMPDIR", &temporary)
        .output()
        .unwrap();
    let text = printed(&output);
    assert!(!output.status.success() && text.contains("the report is in "), "{text}");
    let other = text.split("the report is in ").nth(1).unwrap().trim();
    assert!(
        Path::new(other).starts_with(&temporary) && !cells(&results(Path::new(other)), "busbar").is_empty(),
        "{text}"
    );
    fs::remove_dir_all(work).unwrap();
}

/// The steps of a flow have their place and their time, and the bus is not left with a clock at its steps.
#[test]
fn a_profile_names_the_steps_of_a_flow() {
    let out = folder("profile");
    let output = bench(&[
        "profile",
        "--scenario",
        "XSLTProxy",
        "--scenario",
        "CBRProxy",
        "--seconds",
        "0.3",
        "--out",
        out.to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{}", printed(&output));
    let found = results(&out);
    let profiles = found[0]["profiles"].as_array().unwrap();
    let of = |scenario: &str| profiles.iter().find(|one| one["scenario"] == scenario).unwrap();
    let xslt = of("XSLTProxy")["steps"].as_array().unwrap();
    let names: Vec<&str> = xslt.iter().map(|step| step["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["xslt", "send", "xslt", "send"], "{xslt:?}");
    for step in xslt.iter().filter(|step| step["name"] == "xslt") {
        assert!(
            step["cpu"].as_f64() > Some(0.0) && step["place"].as_str().unwrap().contains("XSLTProxy.xml:"),
            "{step}"
        );
        // As often as requests, but for those under way when it began and ended.
        assert!((0.5..=1.5).contains(&step["runs"].as_f64().unwrap()), "{step}");
    }
    let whole = |scenario: &str| of(scenario)["whole"].as_f64().unwrap();
    assert!(whole("XSLTProxy") > 0.0 && whole("CBRProxy") > 0.0, "{profiles:?}");
    fs::remove_dir_all(out).unwrap();
}

#[test]
fn a_plan_says_what_it_would_take_and_measures_nothing() {
    let out = folder("plan");
    let output = bench(&["all", "--alone", "--plan", "--out", out.to_str().unwrap()]);
    let text = printed(&output);
    assert!(output.status.success() && text.contains("all of it: about "), "{text}");
    for part in [
        "budgets",
        "round of 2010",
        "round 6.5",
        "evaluation",
        "XSLT",
        "profile",
        "memory over time",
        "load generator",
    ] {
        assert!(
            text.lines().any(|line| line.starts_with(part) && line.contains(" measurements, about ")),
            "{part}: {text}"
        );
    }
    assert!(!out.join("runs.json").exists());
    fs::remove_dir_all(out).unwrap();
}

/// Results of an older version and of another machine are taken, and the report says that they are not to be compared.
#[test]
fn results_of_other_machines_are_taken_with_a_warning() {
    let work = folder("merged");
    let run = |processor: &str| {
        format!(
            "[{{\"method\":\"2010\",\"machine\":{{\"processor\":\"{processor}\",\"cores\":2}},\"systems\":[{{\"name\":\"busbar\"}}],\
         \"cells\":[{{\"system\":\"busbar\",\"scenario\":\"DirectProxy\",\"size\":1024,\"clients\":20,\"right\":1,\"rate\":1.0}}]}}]"
        )
    };
    for (name, processor) in [("a", "one"), ("b", "another")] {
        fs::write(work.join(name), run(processor)).unwrap();
    }
    fs::write(work.join("broken"), "[{\"method\":").unwrap();
    let path = |name: &str| work.join(name).display().to_string();
    let out = path("out");
    let output = bench(&["report", &path("a"), &path("b"), "--out", &out]);
    assert!(output.status.success(), "{}", printed(&output));
    assert!(fs::read_to_string(work.join("out/report.md")).unwrap().contains("of different machines"));
    let output = bench(&["report", &path("a"), "--out", &out]);
    assert!(
        output.status.success()
            && !fs::read_to_string(work.join("out/report.md")).unwrap().contains("of different machines")
    );
    let output = bench(&["report", &path("broken"), "--out", &out]);
    assert!(!output.status.success() && printed(&output).contains("broken"), "{}", printed(&output));
    fs::remove_dir_all(work).unwrap();
}
