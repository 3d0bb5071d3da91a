//! The secure proxy: its messages are signed and encrypted before they are sent, are good once and for some minutes, and go over https to a Busbar of their
//! own. What makes them is outside of this crate.

use crate::measure::{self, Watch};
use crate::results::Cell;
use crate::scenarios;
use loadgen::{Process, Url};

/// A secure proxy, and messages for it.
pub struct Secured {
    /// Where it is, and how it is spoken to.
    pub url: Url,
    /// Its process.
    pub process: Process,
    /// What there is to send.
    pub batches: Vec<Batch>,
}

/// Messages of one size; no two are the same.
pub struct Batch {
    /// Bytes of a message before it was secured.
    pub size: usize,
    /// The messages.
    pub messages: Vec<Vec<u8>>,
    /// Microseconds of the two operations with a private key that each message needs.
    pub bare: f64,
}

/// How many messages of a size are measured.
pub fn messages(quick: bool) -> usize {
    if quick { 200 } else { 1500 }
}

/// Makes a secure proxy and messages: sizes, and how many of each.
pub type Securing<'a> = dyn FnMut(&[(usize, usize)]) -> Result<Secured, String> + 'a;

impl Secured {
    /// Sends a batch: its first fifth warms the process up, the rest counts.
    ///
    /// # Errors
    /// It cannot be sent.
    pub fn measure(&self, batch: &Batch, clients: usize, watch: &mut Watch<'_>) -> Result<Cell, String> {
        let secure = &scenarios::SECURE;
        let (first, counted) = batch.messages.split_at(batch.messages.len() / 5);
        let process = || self.process.clone();
        if !first.is_empty() {
            measure::once(&self.url, secure, first, clients, process(), &mut |_| true)?;
        }
        let outcome = measure::once(&self.url, secure, counted, clients, process(), watch)?;
        Ok(measure::cell("busbar", secure.name, batch.size, clients, &outcome))
    }
}
