//! The measurements as CSV.

use crate::results::Run;
use std::fmt::Write;

const HEADS: &str = "method,system,scenario,setting,size,clients,repetition,seconds,right,failed,rate,mean_ms,p50_ms,p90_ms,p99_ms,p999_ms,max_ms,cpu_us,backend_cpu_us,resident_mib";

pub(super) fn write(runs: &[Run]) -> String {
    let mut text = format!("{HEADS}\n");
    for run in runs {
        for cell in &run.cells {
            let optional = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
            let name = |name: &str| name.replace([',', '"', '\n'], " ");
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{:.3},{},{},{:.1},{:.4},{:.4},{:.4},{:.4},{:.4},{:.4},{},{},{}",
                name(&run.method),
                name(&cell.system),
                name(&cell.scenario),
                name(&cell.setting),
                cell.size,
                cell.clients,
                cell.repetition,
                cell.seconds,
                cell.right,
                cell.failed,
                cell.rate,
                cell.mean,
                cell.p50,
                cell.p90,
                cell.p99,
                cell.p999,
                cell.max,
                optional(cell.cpu),
                optional(cell.backend_cpu),
                optional(cell.resident)
            );
        }
    }
    text
}
