//! Copies of a message that run for a mediator which goes on with what they bring.

use flow::{Branched, Context, Fault, ListId, run_branch};
use tokio::task::JoinSet;

/// Most copies of one message that run at the same time.
const AT_ONCE: usize = 64;

/// See the module.
pub(crate) struct Branches<I> {
    waiting: std::iter::Enumerate<I>,
    running: JoinSet<(usize, Branched)>,
    parallel: bool,
}

impl<I: Iterator<Item = (Box<Context>, ListId)>> Branches<I> {
    /// Copies with the lists they run through. They are made when it is their turn.
    pub(crate) fn new(copies: I, parallel: bool) -> Branches<I> {
        Branches { waiting: copies.enumerate(), running: JoinSet::new(), parallel }
    }

    /// The next one that has ended, with its number (from 0); `None`: all have.
    ///
    /// # Errors
    /// It panicked.
    pub(crate) async fn next(&mut self) -> Result<Option<(usize, Branched)>, Fault> {
        if !self.parallel {
            return Ok(match self.waiting.next() {
                Some((index, (copy, list))) => Some((index, run_branch(copy, list).await)),
                None => None,
            });
        }
        while self.running.len() < AT_ONCE
            && let Some((index, (copy, list))) = self.waiting.next()
        {
            self.running.spawn(async move { (index, run_branch(copy, list).await) });
        }
        match self.running.join_next().await {
            None => Ok(None),
            Some(Ok(ended)) => Ok(Some(ended)),
            Some(Err(error)) => Err(Fault::new("a copy of the message was lost").because(error.to_string())),
        }
    }

    /// Nobody waits for the others any more; those that run end by themselves.
    pub(crate) fn leave(mut self) {
        self.running.detach_all();
    }
}
