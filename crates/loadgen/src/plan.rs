//! What a run does.

use crate::{Pace, Process, Request, Tls, Url};
use std::net::SocketAddr;
use std::time::Duration;

/// How long a run takes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// It ends after this long, warm-up not included.
    pub duration: Option<Duration>,
    /// It ends after so many requests, those of the warm-up not included. Where both are given, whatever comes first.
    pub requests: Option<u64>,
}

/// What is sent where, how, and for how long.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where to.
    pub url: Url,
    /// The server's address; `None`: the first one of the URL's host.
    pub address: Option<SocketAddr>,
    /// How TLS connections are made, for an https URL.
    pub tls: Option<Tls>,
    /// The requests, which take turns.
    pub requests: Vec<Request>,
    /// When they are sent.
    pub pace: Pace,
    /// How many connections there are at once, at least 1.
    pub connections: usize,
    /// Whether a connection is used for more than one request.
    pub keep_alive: bool,
    /// Load before anything counts.
    pub warm_up: Duration,
    /// How long it counts. One of its two must be given.
    pub extent: Extent,
    /// How long one request may take, from when it is sent, connecting included.
    pub timeout: Duration,
    /// How often processes are sampled and progress is reported.
    pub interval: Duration,
    /// The processes whose CPU time and memory are of interest.
    pub processes: Vec<Process>,
}

impl Plan {
    /// One request over and over, by a closed loop of 20 connections for ten seconds.
    pub fn new(url: Url, request: Request) -> Plan {
        Plan {
            url,
            address: None,
            tls: None,
            requests: vec![request],
            pace: Pace::Closed,
            connections: 20,
            keep_alive: true,
            warm_up: Duration::ZERO,
            extent: Extent { duration: Some(Duration::from_secs(10)), requests: None },
            timeout: Duration::from_secs(30),
            interval: Duration::from_millis(500),
            processes: Vec::new(),
        }
    }
}
