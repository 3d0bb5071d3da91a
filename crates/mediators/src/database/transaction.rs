//! The transaction of a message, and the connection that a step has: its own, or that of the transaction.

use flow::{Context, Fault};
use sql::{Error, Lease, Pool, Reason};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::sync::{Mutex, MutexGuard};

/// The transaction of a message. It has the connection of the first data source that takes part, and goes with the message and its copies; when
/// the last of them is gone without an end, it is taken back.
pub(crate) struct Transaction {
    lease: Mutex<Option<Lease>>,
    /// It was committed or taken back. A copy of the message that comes later has none.
    is_over: AtomicBool,
    /// Who it is of, for the log.
    message: String,
}

/// A connection, for as long as a step needs it.
pub(crate) enum Session<'a> {
    /// Of this step alone.
    Own(Box<Lease>),
    /// Of the transaction of the message.
    Shared(MutexGuard<'a, Option<Lease>>),
}

impl Session<'_> {
    /// The connection.
    ///
    /// # Errors
    /// That of the transaction broke before.
    pub fn lease(&mut self) -> Result<&mut Lease, Error> {
        match self {
            Session::Own(lease) => Ok(lease),
            Session::Shared(lease) => {
                lease.as_mut().ok_or_else(|| Error::new(Reason::Interrupted, "the transaction is over"))
            }
        }
    }

    /// Ends what this step began: without `autocommit` what it did counts now, or never.
    pub async fn end(self, commits: bool) -> Result<(), Error> {
        match self {
            Session::Own(mut lease) if lease.in_transaction() => match commits {
                true => lease.commit().await,
                false => lease.roll_back().await,
            },
            _ => Ok(()),
        }
    }
}

/// Why a step cannot take part.
pub(super) enum Refused {
    Fault(Box<Fault>),
    Sql(Error),
}

impl Transaction {
    /// One that no step takes part in yet.
    pub fn new(context: &Context) -> Transaction {
        Transaction {
            lease: Mutex::new(None),
            is_over: AtomicBool::new(false),
            message: context.message_id(),
        }
    }

    /// Whether it was committed or taken back, by the message or a copy of it.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    /// Its connection, which the first step opens; `None`: it is over.
    ///
    /// # Errors
    /// It is over another data source, or the connection cannot be had.
    pub(super) async fn enlist(&self, pool: &Arc<Pool>) -> Result<Option<Session<'_>>, Refused> {
        let mut lease_of_message = self.lease.lock().await;
        if self.is_over() {
            return Ok(None);
        }
        match lease_of_message.as_ref() {
            Some(lease) if !Arc::ptr_eq(lease.pool(), pool) => {
                let message = format!(
                    "a transaction is over one data source: it is over {}, and this step is for {}",
                    lease.pool().name(),
                    pool.name()
                );
                return Err(Refused::Fault(Box::new(Fault::new(message))));
            }
            Some(_) => {}
            None => {
                let mut lease = pool.get().await.map_err(Refused::Sql)?;
                lease.begin().await.map_err(Refused::Sql)?;
                *lease_of_message = Some(lease);
            }
        }
        Ok(Some(Session::Shared(lease_of_message)))
    }

    /// Ends it.
    pub async fn end(&self, commits: bool) -> Result<(), Fault> {
        let mut lease_of_message = self.lease.lock().await;
        self.is_over.store(true, Relaxed);
        let lease = lease_of_message.take();
        drop(lease_of_message);
        let Some(mut lease) = lease else { return Ok(()) };
        let name = lease.pool().name().to_owned();
        let is_open = lease.in_transaction();
        let done = match commits {
            true if is_open => lease.commit().await,
            true => Err(Error::new(Reason::Interrupted, "its connection broke before: nothing of it counts")),
            // Where the connection breaks, the database takes back what was done with it.
            false if is_open => match lease.roll_back().await {
                Err(error) if error.reason == Reason::Interrupted => Ok(()),
                done => done,
            },
            // The connection is gone, and what was done with it.
            false => Ok(()),
        };
        done.map_err(|error| {
            let message = match (commits, error.reason) {
                // The answer is lost, not the request.
                (true, Reason::Interrupted) if is_open => {
                    format!("it is not known whether the transaction over {name} is committed")
                }
                (true, _) => format!("the transaction over {name} cannot be committed"),
                (false, _) => format!("the transaction over {name} cannot be rolled back"),
            };
            Fault::new(message).because(error.detail())
        })
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.lease.get_mut().as_ref().is_some_and(Lease::in_transaction) {
            tracing::warn!(
                target: "busbar::sql",
                message_id = %self.message,
                "the transaction of the message ended with neither commit nor rollback: it is taken back"
            );
        }
    }
}
