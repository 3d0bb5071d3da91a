//! What the kernel knows of this process (`/proc/self`); nothing where there is no such directory.

use std::fs;

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Process {
    /// Resident memory in bytes.
    pub resident: Option<u64>,
    /// Largest resident memory so far, in bytes.
    pub peak: Option<u64>,
    /// Virtual memory in bytes.
    pub size: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
    /// User and system time in seconds.
    pub cpu: Option<f64>,
    /// Open file descriptors.
    pub files: Option<u64>,
    /// Most file descriptors that may be open.
    pub file_limit: Option<u64>,
}

impl Process {
    /// As it is now.
    pub(crate) fn read() -> Process {
        let text = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
        let status = text("status");
        Process {
            resident: kilobytes(&status, "VmRSS:"),
            peak: kilobytes(&status, "VmHWM:"),
            size: kilobytes(&status, "VmSize:"),
            threads: field(&status, "Threads:"),
            cpu: cpu(&text("stat"), ticks_per_second()),
            // One of them is the directory itself.
            files: fs::read_dir("/proc/self/fd")
                .ok()
                .map(|entries| (entries.count() as u64).saturating_sub(1)),
            file_limit: field(&text("limits"), "Max open files"),
        }
    }
}

/// The first number of the line that begins with `name`.
fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

fn kilobytes(status: &str, name: &str) -> Option<u64> {
    field(status, name).map(|kilobytes| kilobytes * 1024)
}

/// `utime` and `stime` of `/proc/self/stat`: the 14th and 15th field; the second one, the name in parentheses, may
/// contain anything.
fn cpu(stat: &str, ticks_per_second: u64) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system) as f64 / ticks_per_second as f64)
}

/// The unit of CPU times, from the auxiliary vector: pairs of words.
fn ticks_per_second() -> u64 {
    const AT_CLKTCK: usize = 17;
    const USUAL: u64 = 100;
    const WORD: usize = size_of::<usize>();
    let vector = fs::read("/proc/self/auxv").unwrap_or_default();
    let mut words = vector.as_chunks::<WORD>().0.iter().map(|word| usize::from_ne_bytes(*word));
    while let (Some(key), Some(value)) = (words.next(), words.next()) {
        if key == AT_CLKTCK && value > 0 {
            return value as u64;
        }
    }
    USUAL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found() {
        let status = "Name:\tbusbar\nVmHWM:\t    9000 kB\nVmRSS:\t    8192 kB\nThreads:\t4\n";
        assert_eq!(kilobytes(status, "VmRSS:"), Some(8192 * 1024));
        assert_eq!(field(status, "Threads:"), Some(4));
        assert_eq!(field(status, "VmSize:"), None);
        let stat = "12 (bus) bar) S 1 12 12 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 4 0 999 1 2";
        assert_eq!(cpu(stat, 100), Some(2.0));
        assert_eq!(cpu("", 100), None);
        assert_eq!(
            field("Max open files            1024                 4096   files\n", "Max open files"),
            Some(1024)
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_facts() {
        let process = Process::read();
        assert!(process.resident > Some(100_000) && process.peak >= process.resident, "{process:?}");
        assert!(
            process.files > Some(2) && process.threads >= Some(1) && process.cpu.is_some(),
            "{process:?}"
        );
    }
}
