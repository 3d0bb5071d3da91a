//! CPU time and memory of processes, from `/proc`.

use serde::{Deserialize, Serialize};
use std::fs;
use std::time::Duration;

/// A process to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// What the report calls it.
    pub name: String,
    /// Its id. Its children are not included.
    pub id: u32,
}

/// What a process has used.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// User and system time of all its threads since they began. Threads that have ended count only where the system cannot tell the
    /// time of each thread.
    pub cpu: Duration,
    /// Resident memory in bytes.
    pub resident: u64,
}

/// What a process used up to a moment of the run.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the measured part of the run began.
    pub at: f64,
    /// CPU seconds since then.
    pub cpu: f64,
    /// Resident memory in bytes.
    pub resident: u64,
}

impl Process {
    /// What it has used until now; `None`: it is gone.
    pub fn usage(&self) -> Option<Usage> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id)).ok()?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let resident = resident.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024;
        Some(Usage { cpu: self.threads().or_else(|| self.ticks())?, resident })
    }

    /// Nanoseconds of each thread, from the scheduler.
    fn threads(&self) -> Option<Duration> {
        let mut nanoseconds = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.id)).ok()?.flatten() {
            // A thread may end meanwhile.
            let Ok(text) = fs::read_to_string(thread.path().join("schedstat")) else { continue };
            nanoseconds += text.split_ascii_whitespace().next()?.parse::<u64>().ok()?;
        }
        (nanoseconds > 0).then(|| Duration::from_nanos(nanoseconds))
    }

    /// Hundredths of a second, of the process.
    fn ticks(&self) -> Option<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id)).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok());
        // USER_HZ, which is the same on all machines that this is built for.
        Some(Duration::from_millis((ticks(11)? + ticks(12)?) * 10))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_seen_and_none_is_not() {
        let process = Process { name: "test".into(), id: std::process::id() };
        let before = process.usage().expect("this process");
        assert!(before.resident > 100_000, "{before:?}");
        let mut sum = 0_u64;
        while process.usage().expect("this process").cpu <= before.cpu {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(1));
        }
        assert!(process.ticks().is_some());
        assert_eq!(Process { name: "none".into(), id: u32::MAX }.usage(), None);
    }
}
