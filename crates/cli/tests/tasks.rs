//! Tasks from outside: reloads and stops in the middle of a run, and the admin address.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::{Process, ask, configuration, configure};

/// A backend that takes a second for each request, and how many it got.
fn slow() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, count) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let counted = Arc::clone(&counted);
            std::thread::spawn(move || {
                let mut head = [0; 4096];
                while stream.read(&mut head).is_ok_and(|length| length > 0) {
                    counted.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_secs(1));
                    let response =
                        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok";
                    if stream.write_all(response).is_err() {
                        break;
                    }
                }
            });
        }
    });
    (format!("http://{address}/"), count)
}

fn reached(count: &AtomicUsize, wanted: usize) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while count.load(Ordering::Relaxed) < wanted {
        assert!(Instant::now() < deadline, "{} of {wanted}", count.load(Ordering::Relaxed));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A task that asks a backend and says when it has its answer.
fn task(trigger: &str, backend: &str) -> String {
    format!(
        "<task name='T'><trigger {trigger}/><property name='injectTo' value='sequence'/><property name='sequenceName' value='S'/>\
         <property name='message' value='x'/></task><sequence name='S'><call><endpoint><address uri='{backend}'/></endpoint></call>\
         <log level='custom'><property name='state' value='answered'/></log></sequence>"
    )
}

fn fact(bus: &Process, name: &str) -> serde_json::Value {
    let (status, _, body) = ask(bus.field("admin"), "GET", "/artifacts/task/T", b"").unwrap();
    assert_eq!(status, 200);
    serde_json::from_slice::<serde_json::Value>(&body).unwrap()[name].clone()
}

fn act(bus: &Process, action: &str) -> u16 {
    ask(bus.field("admin"), "POST", &format!("/artifacts/task/T/{action}"), b"").unwrap().0
}

#[test]
fn a_stop_waits_for_a_run() {
    let (backend, count) = slow();
    let mut bus = Process::run(&configuration("task-stop", &task("once='true'", &backend)), &[]);
    reached(&count, 1);
    bus.signal("TERM");
    assert_eq!(bus.wait(), Some(0));
    bus.says("answered", 1);
    assert!(!bus.stderr().contains("given up"), "{}", bus.stderr());
}

#[test]
fn a_stop_that_does_not_wait_names_the_run() {
    let (backend, count) = slow();
    let path = configuration("task-cut", &task("once='true'", &backend));
    let mut bus = Process::run(&path, &["--set", "limits.drain=100ms"]);
    reached(&count, 1);
    bus.signal("TERM");
    assert_eq!(bus.wait(), Some(0));
    assert!(
        bus.stderr().contains("given up at the end of the drain") && !bus.stderr().contains("answered"),
        "{}",
        bus.stderr()
    );
}

#[test]
fn a_reload_in_the_middle_of_a_run() {
    let (backend, count) = slow();
    let path = configuration("task-reload", &task("interval='3600'", &backend));
    let bus = Process::run(&path, &[]);
    reached(&count, 1);
    assert_eq!(fact(&bus, "last")["outcome"], "running");
    // Other artifacts change: the run goes on, and the task does not begin anew.
    configure(&path, &[task("interval='3600'", &backend), "<sequence name='Other'/>".to_owned()].concat());
    bus.signal("HUP");
    bus.says("reloaded: ", 1);
    bus.says("answered", 1);
    assert_eq!((fact(&bus, "runs"), fact(&bus, "state")), (1.into(), "active".into()));
    // It is gone in the middle of a run, which ends all the same.
    assert_eq!(act(&bus, "trigger"), 200);
    reached(&count, 2);
    configure(&path, "<sequence name='Other'/>");
    bus.signal("HUP");
    bus.says("reloaded: ", 2);
    bus.says("answered", 2);
    // It is back, with another trigger, and is switched off.
    configure(&path, &task("count='1'", &backend));
    bus.signal("HUP");
    bus.says("reloaded: ", 3);
    bus.says("answered", 3);
    assert_eq!(fact(&bus, "state"), "completed");
    assert_eq!(act(&bus, "deactivate"), 200);
    bus.signal("HUP");
    bus.says("reloaded: ", 4);
    assert_eq!(fact(&bus, "state"), "inactive");
    assert_eq!(act(&bus, "trigger"), 200);
    bus.says("answered", 4);
    assert_eq!(act(&bus, "nonsense"), 404);
    let (_, _, metrics) = ask(bus.field("admin"), "GET", "/metrics", b"").unwrap();
    let metrics = String::from_utf8(metrics).unwrap();
    assert!(metrics.contains("busbar_requests_total{kind=\"task\",service=\"T\"} 4"), "{metrics}");
    assert!(metrics.contains("busbar_task_passed_over_total{task=\"T\"} 0"), "{metrics}");
}
