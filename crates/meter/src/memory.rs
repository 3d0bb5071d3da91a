//! How much memory the process has while something computes.
//!
//! What a run makes is not counted by the byte: most of it is gone again at once. So a run that has time looks at the memory of
//! the process now and then, and ends where that is nearly all that the process may have. Otherwise the system would end the process.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The longest time between two looks of a run. A thread fills some megabytes in it.
pub(crate) const PAUSE: Duration = Duration::from_millis(2);

/// Bytes of memory and of addresses that may be in use while something goes on computing.
static MOST_RESIDENT: AtomicUsize = AtomicUsize::new(usize::MAX);
static MOST_ADDRESSES: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The size of a page; 0 where nothing can be found out.
static PAGE: AtomicUsize = AtomicUsize::new(0);

/// Sets what the process may have, in bytes: memory, and addresses (`ulimit -v`). Runs end above seven eighths of it.
pub fn set_most(resident: Option<usize>, addresses: Option<usize>) {
    let most = |bytes: Option<usize>| bytes.map_or(usize::MAX, |bytes| bytes / 8 * 7);
    MOST_RESIDENT.store(most(resident), Ordering::Relaxed);
    MOST_ADDRESSES.store(most(addresses), Ordering::Relaxed);
    PAGE.store(page().unwrap_or(0), Ordering::Relaxed);
}

/// Whether the process has nearly all that it may have.
pub(crate) fn is_full() -> bool {
    let page = PAGE.load(Ordering::Relaxed);
    if page == 0 {
        return false;
    }
    let Some((addresses, resident)) = pages() else { return false };
    resident.saturating_mul(page) > MOST_RESIDENT.load(Ordering::Relaxed)
        || addresses.saturating_mul(page) > MOST_ADDRESSES.load(Ordering::Relaxed)
}

/// Addresses and memory, in pages.
fn pages() -> Option<(usize, usize)> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let mut numbers = text.split_whitespace().map(str::parse::<usize>);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The size of a page: one file has kilobytes, the other pages. Both grow meanwhile.
fn page() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    let bytes = line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)?;
    let (addresses, _) = pages()?;
    bytes.checked_div(addresses).map(usize::next_power_of_two)
}
