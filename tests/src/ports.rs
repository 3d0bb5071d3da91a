//! Ports for what a test starts.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;
use std::sync::{Mutex, PoisonError};

/// A port on which nobody listens, below those that Linux gives to connections, and never given out twice by this process: what is to
/// listen there may start seconds later. `None`: there is none.
pub fn free() -> Option<u16> {
    static GIVEN: Mutex<Option<HashSet<u16>>> = Mutex::new(None);
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let given = given.get_or_insert_default();
    let random = RandomState::new();
    let mut ports = (0..2000_u32).map(|n| 15_000 + (random.hash_one(n) % 17_000) as u16);
    ports.find(|&port| {
        !given.contains(&port) && TcpListener::bind(("127.0.0.1", port)).is_ok() && given.insert(port)
    })
}
