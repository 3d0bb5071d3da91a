//! How many connections each address has open at a listener, where there is a bound on that (`ServerLimits::connections_per_address`).

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::clock;

/// A flood is logged no more often than that.
const REPORTED_AGAIN: Duration = Duration::from_secs(10);

/// The counts of all workers.
#[derive(Default)]
pub(crate) struct Addresses(Mutex<Open>);

#[derive(Default)]
struct Open {
    by_address: HashMap<IpAddr, usize>,
    reported: Option<Instant>,
    /// Refused since that.
    refused: u64,
}

/// The address has too many connections. The number refused since the last log line, if one is due.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMany(pub(crate) Option<u64>);

impl Addresses {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection for as long as what comes back lives.
    pub(crate) fn enter(self: &Arc<Self>, peer: IpAddr, most: usize) -> Result<OfAddress, TooMany> {
        let address = network(peer);
        let mut open = self.lock();
        let count = open.by_address.entry(address).or_insert(0);
        if *count < most {
            *count += 1;
            return Ok(OfAddress { addresses: Arc::clone(self), address });
        }
        open.refused += 1;
        let now = clock::now();
        if open.reported.is_some_and(|reported| now.saturating_duration_since(reported) < REPORTED_AGAIN) {
            return Err(TooMany(None));
        }
        open.reported = Some(now);
        Err(TooMany(Some(std::mem::take(&mut open.refused))))
    }
}

/// One connection of an address.
pub(crate) struct OfAddress {
    addresses: Arc<Addresses>,
    address: IpAddr,
}

impl Drop for OfAddress {
    fn drop(&mut self) {
        let mut open = self.addresses.lock();
        if let Some(count) = open.by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.by_address.remove(&self.address);
            }
        }
    }
}

/// The network that counts as one address: of IPv6 that of a site (64 bits), within which a client can choose any address.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_a_bound_of_its_own() {
        let addresses = Arc::<Addresses>::default();
        let enter = |address: &str| addresses.enter(address.parse().unwrap(), 2);
        let (one, two) = (enter("192.0.2.1").unwrap(), enter("::ffff:192.0.2.1").unwrap());
        // Logged once, not for each.
        assert_eq!(enter("192.0.2.1").err(), Some(TooMany(Some(1))));
        assert_eq!(enter("192.0.2.1").err(), Some(TooMany(None)));
        let _other = enter("192.0.2.2").unwrap();
        drop(one);
        let _three = enter("192.0.2.1").unwrap();
        drop(two);
        // Addresses of one network of IPv6 are one.
        let _six = (enter("2001:db8::1").unwrap(), enter("2001:db8::2").unwrap());
        assert!(enter("2001:db8::3").is_err());
        let _elsewhere = enter("2001:db8:0:1::1").unwrap();
        drop(_six);
        assert!(enter("2001:db8::3").is_ok());
        drop((_other, _three, _elsewhere));
        assert!(addresses.lock().by_address.is_empty());
    }
}
