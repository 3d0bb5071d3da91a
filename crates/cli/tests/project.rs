//! The example project runs as it lies in its repository.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use support::{Process, ask, exchange, free_port};

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let place = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &place),
            false => _ = fs::copy(entry.path(), place).unwrap(),
        }
    }
}

#[test]
fn the_example_project_runs() {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("project");
    let _ = fs::remove_dir_all(&root);
    let (project, data) = (root.join("project"), root.join("data"));
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/project"), &project);
    let address = format!("127.0.0.1:{}", free_port());
    let dropped = data.join("dropped");
    fs::create_dir_all(&dropped).unwrap();
    let shown = data.display();
    let values = format!(
        "WAREHOUSE=http://{address}/warehouse\nORDERS_DIRECTORY={shown}\nORDERS_DROPPED=file://{shown}/dropped\nORDERS_REFUSED=file://{shown}/refused\n"
    );
    fs::write(project.join(".env"), values).unwrap();
    let mut bus = Process::start(&[
        "run",
        project.to_str().unwrap(),
        "--http",
        &address,
        "--admin",
        "127.0.0.1:0",
        "--strict",
    ]);
    // The task asks the bus itself when it begins: the listeners are there before it.
    let (deadline, report) = (Instant::now() + Duration::from_secs(20), data.join("report.json"));
    while !report.exists() {
        assert!(Instant::now() < deadline, "{}", bus.stderr());
        std::thread::sleep(Duration::from_millis(20));
    }
    let get = |path: &str| {
        let (status, _, body) = ask(bus.http(), "GET", path, b"").unwrap();
        (status, String::from_utf8(body).unwrap())
    };
    assert_eq!(get("/orders/report"), (200, "{\"pieces\":12}".to_owned()));
    assert_eq!(get("/orders/stock/bolt"), (200, "{\"article\": \"bolt\", \"pieces\": 12}".to_owned()));
    let mut open = std::net::TcpStream::connect(bus.http()).unwrap();
    let order = br#"{"id":"A-1","pieces":2}"#;
    let (status, _, body) =
        exchange(&mut open, "POST", "/orders/", order, "Content-Type: application/json\r\n").unwrap();
    assert_eq!(
        (status, String::from_utf8_lossy(&body).as_ref()),
        (200, "{\"kept\": \"A-1\"}"),
        "{}",
        bus.stderr()
    );
    let kept: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(data.join("orders/A-1.json")).unwrap()).unwrap();
    assert_eq!(kept["pieces"], 2);
    // An order as a file: its name is there at once and as a whole.
    fs::write(data.join("A-2"), br#"{"id":"A-2","pieces":3}"#).unwrap();
    fs::rename(data.join("A-2"), dropped.join("two.json")).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while dropped.join("two.json").exists() {
        assert!(Instant::now() < deadline, "{}", bus.stderr());
        std::thread::sleep(Duration::from_millis(20));
    }
    let kept: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(data.join("orders/A-2.json")).unwrap()).unwrap();
    assert_eq!(kept["pieces"], 3);
    assert!(!bus.stderr().contains("warning") && !bus.stderr().contains("ERROR"), "{}", bus.stderr());
    bus.signal("TERM");
    assert_eq!(bus.wait(), Some(0), "{}", bus.stderr());
}
