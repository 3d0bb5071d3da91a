//! Numbers and ids of messages, which no other message has.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A number that no other message has. Threads draw blocks of them, so that they rarely meet.
pub(crate) fn next_number() -> u64 {
    const BLOCK: u64 = 1024;
    static NEXT_BLOCK: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NEXT: Cell<u64> = const { Cell::new(0) };
    }
    NEXT.with(|next| {
        let mut number = next.get();
        if number % BLOCK == 0 {
            number = NEXT_BLOCK.fetch_add(BLOCK, Ordering::Relaxed) + 1;
        }
        next.set(number + 1);
        number
    })
}

/// A message id that no other message has.
pub(crate) fn next_id() -> String {
    unique(next_number())
}

/// `urn:uuid:` and [the id of a number](uuid).
pub(crate) fn unique(number: u64) -> String {
    let mut id = String::with_capacity(48);
    push_unique(number, &mut id);
    id
}

pub(super) fn push_unique(number: u64, id: &mut String) {
    id.push_str("urn:uuid:");
    id.push_str(std::str::from_utf8(&uuid(number)).unwrap_or_default());
}

/// A UUID-shaped id that is unique in this process and, by its start time and process id, beyond it.
pub(crate) fn uuid(number: u64) -> [u8; 36] {
    use std::sync::LazyLock;
    static FRONT: LazyLock<[u8; 36]> = LazyLock::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let start = (since.as_nanos() as u64).rotate_left(20) ^ u64::from(std::process::id());
        let front = format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-",
            (start >> 32) as u32,
            (start >> 16) as u16,
            (start >> 4) as u16 & 0xfff,
            0x8000 | (start as u16 & 0x3fff),
        );
        let mut id = [0; 36];
        id[..24].copy_from_slice(front.as_bytes());
        id
    });
    let mut id = *FRONT;
    for (at, digit) in id[24..].iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(number >> (44 - 4 * at)) as usize & 15];
    }
    id
}
