//! What came of a run.

use crate::{Process, Sample};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The percentiles that a report has.
pub const PERCENTILES: [f64; 8] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 100.0];

/// Times, in a histogram of three significant digits. In JSON a summary in milliseconds.
#[derive(Clone, Debug)]
pub struct Latency(Histogram<u64>);

impl Default for Latency {
    fn default() -> Latency {
        // One nanosecond to one hour: what takes longer counts as an hour.
        let histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 3);
        Latency(histogram.expect("the bounds are in order and three digits are allowed"))
    }
}

impl Latency {
    pub(crate) fn record(&mut self, time: Duration) {
        self.0.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1));
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// How many times there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The mean, in milliseconds; 0 without any.
    pub fn mean(&self) -> f64 {
        self.0.mean() / 1e6
    }

    /// The standard deviation, in milliseconds.
    pub fn deviation(&self) -> f64 {
        self.0.stdev() / 1e6
    }

    /// The time that so many percent do not exceed, in milliseconds.
    pub fn percentile(&self, percent: f64) -> f64 {
        if self.0.is_empty() { 0.0 } else { self.0.value_at_percentile(percent) as f64 / 1e6 }
    }

    /// How many took longer than this.
    pub fn above(&self, time: Duration) -> u64 {
        let low = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0
            .iter_recorded()
            .filter(|step| step.value_iterated_to() > low)
            .map(|step| step.count_since_last_iteration())
            .sum()
    }
}

/// What went wrong with a request.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// No connection.
    Connect,
    /// The connection was closed or reset before the answer was whole.
    Closed,
    /// No whole answer in time.
    Timeout,
    /// The answer was no HTTP, or TLS failed.
    Protocol,
    /// The answer was not the right one.
    Wrong,
    /// More requests were due than can wait.
    NotSent,
}

impl ErrorKind {
    /// In plain words.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Connect => "not connected",
            ErrorKind::Closed => "connection closed",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Protocol => "protocol error",
            ErrorKind::Wrong => "wrong answer",
            ErrorKind::NotSent => "not sent",
        }
    }
}

/// Errors of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// What kind.
    pub kind: ErrorKind,
    /// How many.
    pub count: u64,
    /// What the first one was.
    pub first: String,
}

/// A part of a run.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Where it ends: seconds since the measured part of the run began.
    pub at: f64,
    /// Right answers in it, a second.
    pub rate: f64,
    /// Median of the latencies in it, in milliseconds.
    pub p50: f64,
    /// 99th percentile of them.
    pub p99: f64,
}

/// What came of a run, without its warm-up.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Right answers.
    pub right: u64,
    /// Everything else.
    pub errors: Vec<Errors>,
    /// Requests under way when the time was over, which count as nothing.
    pub unfinished: u64,
    /// Time from the begin of the measured part to its end.
    pub elapsed: Duration,
    /// Bytes of requests that were answered, heads included.
    pub sent: u64,
    /// Bytes of answers, heads included.
    pub received: u64,
    /// Latencies of right answers: in the open loop from when a request was due, else from when it was sent (or its connection opened).
    pub latency: Latency,
    /// Times of right answers from when their requests were sent. In the open loop this is what a generator with coordinated omission
    /// would have seen.
    pub service: Latency,
    /// The course of the run.
    pub intervals: Vec<Interval>,
    /// What the processes used, over time; the last sample is at the end.
    pub processes: Vec<(Process, Vec<Sample>)>,
}

impl Outcome {
    /// Right answers a second.
    pub fn rate(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.right as f64 / seconds } else { 0.0 }
    }

    /// Errors of all kinds.
    pub fn failed(&self) -> u64 {
        self.errors.iter().map(|errors| errors.count).sum()
    }

    /// CPU time of the process of that name for each right answer, in microseconds.
    pub fn cpu_per_request(&self, process: &str) -> Option<f64> {
        let (_, samples) = self.processes.iter().find(|(found, _)| found.name == process)?;
        let cpu = samples.last()?.cpu;
        // Nothing answers for nothing: the process was not seen.
        (self.right > 0 && cpu > 0.0).then(|| cpu * 1e6 / self.right as f64)
    }

    /// The largest resident memory that was seen of the process of that name, in bytes.
    pub fn resident(&self, process: &str) -> Option<u64> {
        let (_, samples) = self.processes.iter().find(|(found, _)| found.name == process)?;
        samples.iter().map(|sample| sample.resident).max()
    }

    pub(crate) fn error(&mut self, kind: ErrorKind, reason: impl FnOnce() -> String) {
        match self.errors.iter_mut().find(|errors| errors.kind == kind) {
            Some(errors) => errors.count += 1,
            None => self.errors.push(Errors { kind, count: 1, first: reason() }),
        }
    }

    /// All of it as JSON; times in milliseconds.
    pub fn json(&self) -> serde_json::Value {
        let latency = |latency: &Latency| {
            let mut figures = serde_json::Map::new();
            figures.insert("mean".into(), round(latency.mean()).into());
            figures.insert("deviation".into(), round(latency.deviation()).into());
            for percent in PERCENTILES {
                figures.insert(format!("p{percent}"), round(latency.percentile(percent)).into());
            }
            figures
        };
        let processes = self.processes.iter().map(|(process, samples)| {
            serde_json::json!({
                "name": process.name, "id": process.id, "cpu_us_per_request": self.cpu_per_request(&process.name).map(round),
                "resident_max": self.resident(&process.name), "samples": samples,
            })
        });
        let processes = processes.collect();
        serde_json::json!({
            "right": self.right,
            "failed": self.failed(),
            "errors": self.errors,
            "unfinished": self.unfinished,
            "seconds": self.elapsed.as_secs_f64(),
            "rate": round(self.rate()),
            "bytes_sent": self.sent,
            "bytes_received": self.received,
            "latency_ms": latency(&self.latency),
            "service_ms": latency(&self.service),
            "intervals": self.intervals,
            "processes": serde_json::Value::Array(processes),
        })
    }
}

/// Four digits behind the point.
fn round(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}
