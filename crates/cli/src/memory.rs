//! How much memory the process may have.

use rustix::process::{Resource, getrlimit};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Below this address space, in bytes, what the allocators reserve of it is missed.
const RESERVED: usize = 2 << 30;

/// What the environment says so that the allocators reserve none: the C library's 64 MiB for each thread, ours 1 GiB.
const SPARING: [(&str, &str); 2] = [("MALLOC_ARENA_MAX", "1"), ("MIMALLOC_ARENA_RESERVE", "0")];

/// Where nothing can be found out.
const UNKNOWN: usize = 1 << 30;

/// How much of it messages may hold by default, in bytes: half of what its cgroup and the machine have, and a quarter of its address space
/// (`ulimit -v`), of which threads and code take a part and in which a message needs room in one piece.
pub fn for_messages() -> usize {
    share(resident(), addresses())
}

fn share(resident: Option<usize>, addresses: Option<usize>) -> usize {
    let shares = [resident.map(|bytes| bytes / 2), addresses.map(|bytes| bytes / 4)];
    shares.into_iter().flatten().min().unwrap_or(UNKNOWN)
}

/// What its cgroup and the machine have, in bytes.
pub fn resident() -> Option<usize> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| of_machine(&text));
    let group = std::fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| of_group(&text));
    [machine, group].into_iter().flatten().min()
}

/// Its address space (`ulimit -v`), in bytes; `None`: it has no limit.
pub fn addresses() -> Option<usize> {
    getrlimit(Resource::As).current.and_then(|bytes| usize::try_from(bytes).ok())
}

/// Starts the program again, as the same process, with allocators that reserve no address space, where that is limited: they read the
/// environment before `main`. Where that fails, [`remark`] says what to do.
pub fn spare_addresses() {
    if is_sparing() || addresses().is_none_or(|bytes| bytes >= RESERVED) {
        return;
    }
    let Ok(program) = std::env::current_exe() else { return };
    let mut arguments = std::env::args_os();
    let mut again = Command::new(program);
    if let Some(name) = arguments.next() {
        again.arg0(name);
    }
    // It returns only with an error.
    let _ = again.args(arguments).envs(SPARING).exec();
}

fn is_sparing() -> bool {
    std::env::var_os(SPARING[1].0).is_some()
}

/// What is to be known of an address space that is too small for what it is asked: below 256 MiB, or below what allocators reserve
/// unless they are told not to.
pub fn remark() -> Option<String> {
    narrow(addresses()?, is_sparing())
}

fn narrow(addresses: usize, is_sparing: bool) -> Option<String> {
    const LEAST: usize = 256 << 20;
    let shown = format!("the address space is limited to {} MiB (`ulimit -v`)", addresses >> 20);
    match (addresses < LEAST, is_sparing || addresses >= RESERVED) {
        (true, _) => Some(format!(
            "{shown}: the process ends when a message finds no room in it (\"memory allocation of … bytes failed\"); it needs 256 MiB to refuse such messages. \
             To bound its memory, set limits.memory or the limit of its cgroup"
        )),
        (false, false) => Some(format!(
            "{shown}, of which the allocators reserve up to 1 GiB, so that a message may find no room and end the process: start it with \
             MALLOC_ARENA_MAX=1 and MIMALLOC_ARENA_RESERVE=0 in its environment"
        )),
        (false, true) => None,
    }
}

/// `MemTotal` of `/proc/meminfo`.
fn of_machine(text: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
}

/// The smallest bound of the group that `/proc/self/cgroup` names and those above it.
fn of_group(text: &str) -> Option<usize> {
    let group = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    let below = Path::new(group.trim_start_matches('/'));
    let bound = |group: &Path| {
        let file = Path::new("/sys/fs/cgroup").join(group).join("memory.max");
        std::fs::read_to_string(file).ok()?.trim().parse::<usize>().ok()
    };
    below.ancestors().filter_map(bound).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says() {
        assert_eq!(of_machine("MemTotal:       24576000 kB\nMemFree: 1 kB\n"), Some(24_576_000 * 1024));
        for text in ["", "MemTotal: many", "MemTotal: 99999999999999999999 kB"] {
            assert_eq!(of_machine(text), None);
        }
        for (addresses, is_sparing, says) in [
            (200 << 20, true, "200 MiB (`ulimit -v`): the process ends"),
            (200 << 20, false, "the process ends"),
            (500 << 20, false, "MIMALLOC_ARENA_RESERVE=0"),
            (500 << 20, true, ""),
            (4 << 30, false, ""),
        ] {
            let remark = narrow(addresses, is_sparing).unwrap_or_default();
            assert!(remark.contains(says) && remark.is_empty() == says.is_empty(), "{addresses}: {remark}");
        }
        assert_eq!(of_group("1:name=systemd:/x\n"), None);
        assert!(for_messages() > 1 << 20);
        for (resident, addresses, wanted) in [
            (None, None, UNKNOWN),
            (Some(800), None, 400),
            (Some(800), Some(800), 200),
            (Some(100), Some(800), 50),
        ] {
            assert_eq!(share(resident, addresses), wanted);
        }
    }
}
