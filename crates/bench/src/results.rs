//! What a run of a method measured: the machine, the systems, and a cell for each thing that was measured. As JSON it is what reports
//! are made from.

use serde::{Deserialize, Serialize};

/// A run of one method.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// The method: `2010`, `6.5`, `evaluate`, `xslt`, `tune`, `soak`, `generator`, `profile`, `budgets`.
    pub method: String,
    /// Whether it was shortened.
    pub quick: bool,
    /// Whether it was ended before all of it was measured.
    pub is_cut: bool,
    /// When it began, UTC.
    pub begun: String,
    /// How long it took, in seconds.
    pub took: f64,
    /// The command that was run.
    pub command: String,
    /// Version and commit of Busbar.
    pub version: String,
    /// What it ran on.
    pub machine: Machine,
    /// What was measured.
    pub systems: Vec<System>,
    /// What is not measured, and why: one line each.
    pub absent: Vec<String>,
    /// The measurements.
    pub cells: Vec<Cell>,
    /// What is compared with a bound.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<Budget>,
    /// Where the CPU time of flows goes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<Profile>,
}

/// What some work may cost, and what it does cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// The work.
    pub work: String,
    /// What is measured: `x nginx`, `ms`, `MiB`.
    pub unit: String,
    /// The bound.
    pub bound: f64,
    /// Whether it is the least; otherwise it is the most.
    pub is_least: bool,
    /// What was measured: of what (a size of messages), and the value. Of several turns it is the median.
    pub values: Vec<(String, f64)>,
    /// Between which values the middle half of the turns lies, for those that take turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spread: Vec<(String, (f64, f64))>,
    /// The same values, were the system calls of a relay all that the work takes: what is better than these cannot be had.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub floor: Vec<(String, f64)>,
    /// Microseconds of CPU that the bound leaves for each request beyond these system calls; less than none: it is out of reach.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<(String, f64)>,
    /// Why it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
}

impl Budget {
    /// Whether all values are within the bound; `None`: nothing was measured.
    pub fn is_met(&self) -> Option<bool> {
        (!self.values.is_empty()).then(|| self.values.iter().all(|(_, value)| self.is_within(*value)))
    }

    /// Of which cases (sizes of messages) the bound is beyond what the system calls alone allow.
    pub fn out_of_reach(&self) -> impl Iterator<Item = &str> {
        self.floor.iter().filter(|(_, value)| !self.is_within(*value)).map(|(case, _)| case.as_str())
    }

    fn is_within(&self, value: f64) -> bool {
        if self.is_least { value >= self.bound } else { value <= self.bound }
    }

    /// The value that is nearest to the bound, or the farthest beyond it.
    pub fn worst(&self) -> Option<f64> {
        let values = self.values.iter().map(|(_, value)| *value);
        if self.is_least { values.reduce(f64::min) } else { values.reduce(f64::max) }
    }
}

/// Where the CPU time of one flow goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Profile {
    /// What is sent.
    pub scenario: String,
    /// Bytes of the message.
    pub size: usize,
    /// Requests that were counted.
    pub requests: u64,
    /// Microseconds of CPU of the process for each request, with nobody looking.
    pub whole: f64,
    /// The same while steps are timed.
    pub watched: f64,
    /// Of that what the kernel takes.
    pub kernel: f64,
    /// The steps, in the order in which they ran first.
    pub steps: Vec<Step>,
}

/// A step of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Step {
    /// The list that it stands in.
    pub list: String,
    /// The mediator.
    pub name: String,
    /// File and line.
    pub place: String,
    /// How often it runs for each request.
    pub runs: f64,
    /// Microseconds of CPU for each request.
    pub cpu: f64,
}

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Model of the processor.
    pub processor: String,
    /// Its cores.
    pub cores: usize,
    /// MiB of memory.
    pub memory: u64,
    /// Kernel.
    pub system: String,
    /// Processes that wanted to run in the minute before the run.
    pub load: f64,
}

/// A system that was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct System {
    /// What reports call it.
    pub name: String,
    /// Its version.
    pub version: String,
    /// How it was started.
    pub command: String,
    /// Seconds of load on each scenario before it was measured there for the first time.
    pub warm_up: f64,
}

/// One measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cell {
    /// The system.
    pub system: String,
    /// The scenario.
    pub scenario: String,
    /// What was set for it, in a method that varies settings; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub setting: String,
    /// Bytes of the message.
    pub size: usize,
    /// Clients at once.
    pub clients: usize,
    /// Counts from 0.
    pub repetition: usize,
    /// Seconds since the run began, when it ended.
    pub at: f64,
    /// Length of the measured part, in seconds.
    pub seconds: f64,
    /// Right answers.
    pub right: u64,
    /// Everything else.
    pub failed: u64,
    /// What the first failure was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Right answers a second.
    pub rate: f64,
    /// Latency in milliseconds: the mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// The longest.
    pub max: f64,
    /// Microseconds of CPU of the system for each right answer.
    pub cpu: Option<f64>,
    /// The same, of the backend.
    pub backend_cpu: Option<f64>,
    /// MiB of resident memory of the system, the largest that was seen.
    pub resident: Option<f64>,
    /// Memory over time: seconds since it began, MiB. Only of long measurements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<(f64, f64)>,
}

impl Run {
    /// The names of systems, scenarios, or whatever else of the cells, in the order in which they were measured.
    pub fn distinct<T: PartialEq>(&self, of: impl Fn(&Cell) -> T) -> Vec<T> {
        let mut all = Vec::new();
        for cell in &self.cells {
            let one = of(cell);
            if !all.contains(&one) {
                all.push(one);
            }
        }
        all
    }

    /// CPU for each right answer of two works, each of a system in a scenario, from the turns in which both were measured.
    /// What the machine does beside them changes from turn to turn, and is much the same for both of one turn.
    pub fn pairs(
        &self,
        (one, other): ((&str, &str), (&str, &str)),
        is_meant: impl Fn(&Cell) -> bool,
    ) -> Vec<(f64, f64)> {
        let of =
            |(system, scenario)| self.of(system, scenario).filter(|cell| cell.right > 0 && is_meant(cell));
        let second = |turn: usize| of(other).find(|cell| cell.repetition == turn)?.cpu;
        of(one).filter_map(|cell| Some((cell.cpu?, second(cell.repetition)?))).collect()
    }

    /// The cells of a system in a scenario.
    pub fn of<'a>(&'a self, system: &'a str, scenario: &'a str) -> impl Iterator<Item = &'a Cell> {
        self.cells.iter().filter(move |cell| cell.system == system && cell.scenario == scenario)
    }
}

impl Machine {
    /// This one.
    pub fn this() -> Machine {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
        let memory: u64 = memory.split(' ').next().and_then(|kilo| kilo.parse().ok()).unwrap_or_default();
        Machine {
            processor: field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown".to_owned()),
            // Those of the machine: this thread may be pinned to one.
            cores: read("/proc/cpuinfo").lines().filter(|line| line.starts_with("processor")).count().max(1),
            memory: memory / 1024,
            system: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            load: read("/proc/loadavg")
                .split(' ')
                .next()
                .and_then(|load| load.parse().ok())
                .unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_survives_json() {
        let cell = Cell {
            system: "busbar".into(),
            scenario: "DirectProxy".into(),
            rate: 1234.5,
            cpu: Some(14.25),
            ..Cell::default()
        };
        let run =
            Run { method: "2010".into(), machine: Machine::this(), cells: vec![cell], ..Run::default() };
        let text = serde_json::to_string(&run).unwrap();
        assert_eq!(serde_json::from_str::<Run>(&text).unwrap(), run);
        assert!(run.machine.cores > 0 && run.machine.memory > 0, "{:?}", run.machine);
        assert_eq!(run.distinct(|cell| cell.system.clone()), ["busbar"]);
        assert_eq!(run.of("busbar", "DirectProxy").count(), 1);
    }
}
