//! The load generator: sends requests over many connections, verifies every answer, and says how long they took.
//!
//! * [`Plan`] says what is sent ([`Request`], [`Check`]), where ([`Url`]), how ([`Pace`]: closed or open loop) and for how long ([`Extent`]).
//! * [`run`] sends it from one thread with one event loop, and returns an [`Outcome`]: right answers, errors by kind, latencies
//!   as HDR histograms, and CPU and memory of the [`Process`]es that were named, over time.
//!
//! An answer counts only if it is the right one. In the open loop requests are due at a fixed rate, whether or not earlier ones were
//! answered, and a latency counts from when its request was *due*: a server that stalls delays all that would have come meanwhile,
//! and a generator that waits with it would not see that (coordinated omission). The time from when it was sent is kept beside it.
//!
//! It shares no code with the transport that it measures: sockets and epoll are the system's, heads are read by httparse, TLS is rustls'.

mod check;
mod connection;
mod engine;
mod outcome;
mod pace;
mod plan;
mod processes;
mod request;
mod response;
mod tls;
mod url;

pub use check::{Check, Fields, ReceivedResponse};
pub use engine::{Progress, run};
pub use outcome::{ErrorKind, Errors, Interval, Latency, Outcome, PERCENTILES};
pub use pace::Pace;
pub use plan::{Extent, Plan};
pub use processes::{Process, Sample, Usage};
pub use request::{Request, has_unique_values};
pub use tls::Tls;
pub use url::Url;
