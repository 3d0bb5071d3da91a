//! Counters of listeners and clients. Each worker has its own; readers add them up.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter that many may read.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// Adds one, where only the thread of the worker counts: without a locked operation.
    pub(crate) fn bump(&self) {
        self.0.store(self.0.load(Relaxed).wrapping_add(1), Relaxed);
    }

    pub(crate) fn sub(&self, n: u64) {
        self.0.fetch_sub(n, Relaxed);
    }

    pub(crate) fn set(&self, n: u64) {
        self.0.store(n, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

macro_rules! counters {
    ($(#[$outer:meta])* $public:ident, $inner:ident { $($(#[$doc:meta])* $field:ident,)* }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $public { $($(#[$doc])* pub $field: u64,)* }

        #[derive(Debug, Default)]
        pub(crate) struct $inner { $(pub(crate) $field: Counter,)* }

        impl $inner {
            pub(crate) fn add_to(&self, sum: &mut $public) {
                $(sum.$field += self.$field.get();)*
            }
        }
    };
}

counters! {
    /// What a listener did since it started, and what is open now.
    ServerStats, ServerCounters {
        /// Connections open now.
        open,
        /// Connections accepted.
        accepted,
        /// Requests whose head was valid.
        requests,
        /// Requests refused by the transport itself (4xx, 5xx of framing and limits).
        refused,
        /// Clients that went away before they had their whole response.
        aborted,
        /// Accepts or TLS handshakes that failed.
        failed,
        /// Connections open now that speak HTTP/2.
        http2,
        /// Streams open on them now: requests that are not answered yet.
        streams,
    }
}

counters! {
    /// What a client did since it started, and what is open now.
    ClientStats, ClientCounters {
        /// Connections in use now.
        active,
        /// Connections idle in the pool now.
        idle,
        /// Connections made.
        created,
        /// Requests sent on a pooled connection.
        reused,
        /// Requests sent again on a fresh connection because the pooled one was dead.
        retried,
        /// Requests sent.
        requests,
        /// Requests without a response.
        failed,
        /// Requests that were not sent for want of a connection, for which the target is not to blame.
        shed,
    }
}
