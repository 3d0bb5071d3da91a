//! Deterministic simulation: the real engine, endpoints, transport and stores run random flows on a simulated network and a
//! paused clock, with random clients, backends, faults, reloads and stops.
//!
//! A run is its seed. It checks that each request gets one answer, its own, whole and in time; that nothing acknowledged is
//! lost without a word; that connections, aggregates and counters return to zero; and that the next good request is served. A
//! fault prints the seed and the log of its run.
//!
//! * `BUSBAR_SIMULATION_RUNS=20000`: how many runs (CI: 10,000; on a desk 500), from the seed `BUSBAR_SIMULATION_FIRST` on.
//! * `BUSBAR_SIMULATION_SEED=17`: this run alone, with its log.
//!
//! Some counts of the bus are those of its process, so each processor runs its share of the seeds in a process of its own.

mod backend;
mod client;
mod flows;
mod http;
mod log;
mod network;
mod panics;
mod random;
mod records;
mod world;

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Real time after which a run that has not ended is a fault: a run takes milliseconds.
const ENDLESS: Duration = Duration::from_secs(120);

/// Faults after which no more runs are made.
const ENOUGH: usize = 20;

/// How a process that runs a share begins its last line: runs, answers, messages acknowledged.
const SUM: &str = "simulated:";

/// How a line about a broken promise begins.
const BROKEN: &str = "BUSBAR_SIMULATION_SEED=";

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_worlds_keep_their_promises() {
    log::record_panics();
    if let Some(seed) = variable("BUSBAR_SIMULATION_SEED") {
        let outcome = world::run(seed);
        outcome.log.iter().for_each(|line| println!("{line}"));
        assert!(outcome.faults.is_empty(), "seed {seed}:\n{}", outcome.faults.join("\n"));
        return;
    }
    let usual = if std::env::var_os("CI").is_some() { 10_000 } else { 500 };
    let runs = variable("BUSBAR_SIMULATION_RUNS").unwrap_or(usual);
    let first = variable("BUSBAR_SIMULATION_FIRST").unwrap_or(1);
    let shares = std::thread::available_parallelism().map_or(2, |count| count.get() as u64).min(runs);
    match variable("BUSBAR_SIMULATION_SHARE") {
        Some(share) => run_share((first..first + runs).skip(share as usize).step_by(shares as usize)),
        None => run_all(shares),
    }
}

/// Has a process run each share.
fn run_all(shares: u64) {
    let program = std::env::current_exe().expect("a test knows its program");
    let children: Vec<_> = (0..shares)
        .map(|share| {
            Command::new(&program)
                .args(["--exact", "random_worlds_keep_their_promises", "--nocapture"])
                .env("BUSBAR_SIMULATION_SHARE", share.to_string())
                .stdout(Stdio::piped())
                .spawn()
                .expect("the program of this test can be started")
        })
        .collect();
    let (mut broken, mut sums) = (Vec::new(), [0; 3]);
    for child in children {
        let output = child.wait_with_output().expect("it was started");
        let text = String::from_utf8_lossy(&output.stdout);
        broken.extend(text.lines().filter(|line| line.starts_with(BROKEN)).map(str::to_owned));
        match text.lines().find_map(|line| line.strip_prefix(SUM)) {
            Some(counts) => counts
                .split_whitespace()
                .zip(&mut sums)
                .for_each(|(count, sum)| *sum += count.parse().unwrap_or(0)),
            None => broken.push(format!("a share of the runs ended early: {}\n{text}", output.status)),
        }
    }
    let [runs, answers, acknowledged] = sums;
    broken.iter().for_each(|line| println!("{line}"));
    println!("{runs} runs, {answers} answers, {acknowledged} messages acknowledged");
    assert!(broken.is_empty(), "{} runs broke a promise, see above", broken.len());
}

/// Runs these seeds, and prints what came out.
fn run_share(seeds: impl Iterator<Item = u64>) {
    let current = Arc::new(AtomicU64::new(0));
    let _watched = watch(Arc::clone(&current));
    let mut broken = 0;
    let mut sums = [0; 3];
    for seed in seeds {
        current.store(seed, Ordering::Relaxed);
        let outcome = world::run(seed);
        if let Some(fault) = outcome.faults.first() {
            println!("{BROKEN}{seed}: {fault} (and {} more)", outcome.faults.len() - 1);
            broken += 1;
        }
        for (sum, count) in sums.iter_mut().zip([1, outcome.answers, outcome.acknowledged]) {
            *sum += count;
        }
        if broken == ENOUGH {
            break;
        }
    }
    let [runs, answers, acknowledged] = sums;
    println!("{SUM} {runs} {answers} {acknowledged}");
}

/// Ends the process where a run does not end.
fn watch(current: Arc<AtomicU64>) -> mpsc::Sender<()> {
    let (over, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let mut last = 0;
        while ended.recv_timeout(ENDLESS) == Err(mpsc::RecvTimeoutError::Timeout) {
            let now = current.load(Ordering::Relaxed);
            if now == last {
                println!("{BROKEN}{now}: the run does not end");
                std::process::exit(1);
            }
            last = now;
        }
    });
    over
}
