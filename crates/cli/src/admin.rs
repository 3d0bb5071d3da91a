//! Starts the admin address of a running bus.

use crate::bus::Running;
use std::net::SocketAddr;

/// The admin address while it serves.
pub struct Admin(SocketAddr);

impl Admin {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.0
    }
}

/// Starts it.
///
/// # Errors
/// The address cannot be bound.
pub fn start(address: SocketAddr, _running: &Running) -> Result<Admin, String> {
    Ok(Admin(address))
}
