//! When the next request is due.

use crate::request::Random;
use std::time::{Duration, Instant};

/// When requests are sent.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Pace {
    /// Each connection sends its next request as soon as its last one was answered: the load is as high as the server is fast.
    Closed,
    /// So many requests a second are due, whether or not earlier ones were answered.
    Open {
        /// Requests a second, over all connections.
        rate: f64,
        /// Whether the times between them are exponentially distributed (arrivals of many independent clients), not equal.
        poisson: bool,
    },
}

/// When the requests of an open loop are due.
#[derive(Debug)]
pub(crate) struct Arrivals {
    next: Instant,
    mean: f64,
    random: Option<Random>,
}

impl Arrivals {
    pub(crate) fn new(pace: Pace, from: Instant) -> Option<Arrivals> {
        match pace {
            Pace::Closed => None,
            Pace::Open { rate, poisson } => Some(Arrivals {
                next: from,
                mean: 1.0 / rate,
                random: poisson.then_some(Random(0x0B05_BA12)),
            }),
        }
    }

    /// When the next one is due.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// The next one is taken; the one behind it is due then.
    pub(crate) fn advance(&mut self) {
        let gap = match &mut self.random {
            None => self.mean,
            // uniform in (0, 1]: never the logarithm of 0
            Some(random) => -self.mean * (((random.next() >> 11) as f64 + 1.0) / (1_u64 << 53) as f64).ln(),
        };
        self.next += Duration::from_secs_f64(gap.min(3600.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_the_mean_of_the_rate() {
        let from = Instant::now();
        for poisson in [false, true] {
            let mut arrivals = Arrivals::new(Pace::Open { rate: 1000.0, poisson }, from).unwrap();
            let mut shortest = Duration::MAX;
            for _ in 0..20_000 {
                let before = arrivals.next();
                arrivals.advance();
                shortest = shortest.min(arrivals.next() - before);
            }
            let took = (arrivals.next() - from).as_secs_f64();
            assert!((19.0..21.0).contains(&took), "{poisson}: {took}");
            assert_eq!(shortest < Duration::from_micros(100), poisson, "{shortest:?}");
        }
        assert!(Arrivals::new(Pace::Closed, from).is_none());
    }
}
