//! Deterministic simulation: the real engine, endpoints, transport and stores run random flows on a simulated network and a
//! paused clock, with random clients, backends, faults, reloads and stops.
//!
//! A run is its seed. It checks that each request gets one answer, its own, whole and in time; that nothing acknowledged is
//! lost without a word; that connections, aggregates and counters return to zero; and that the next good request is served. A
//! fault prints the seed and the log of its run.
//!
//! * `BUSBAR_SIMULATION_RUNS=10000`: how many runs (CI: 1,500; on a desk 300).
//! * `BUSBAR_SIMULATION_SEED=17`: this run alone, with its log.

mod backend;
mod client;
mod flows;
mod http;
mod log;
mod network;
mod random;
mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

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
    let usual = if std::env::var_os("CI").is_some() { 1_500 } else { 300 };
    let runs = variable("BUSBAR_SIMULATION_RUNS").unwrap_or(usual);
    let first = variable("BUSBAR_SIMULATION_FIRST").unwrap_or(1);
    let (next, answers, acknowledged) = (AtomicU64::new(first), AtomicUsize::new(0), AtomicUsize::new(0));
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + runs || network::lock(&failed).len() >= 20 {
                        return;
                    }
                    let outcome = world::run(seed);
                    answers.fetch_add(outcome.answers, Ordering::Relaxed);
                    acknowledged.fetch_add(outcome.acknowledged, Ordering::Relaxed);
                    if let Some(fault) = outcome.faults.first() {
                        let more = outcome.faults.len() - 1;
                        network::lock(&failed).push((
                            seed,
                            format!("BUSBAR_SIMULATION_SEED={seed}: {fault} (and {more} more)"),
                        ));
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap_or_default();
    failed.sort();
    let lines: Vec<_> = failed.into_iter().map(|(_, line)| line).collect();
    println!(
        "{runs} runs, {} answers, {} messages acknowledged",
        answers.into_inner(),
        acknowledged.into_inner()
    );
    assert!(lines.is_empty(), "{} runs broke a promise:\n{}", lines.len(), lines.join("\n"));
}
