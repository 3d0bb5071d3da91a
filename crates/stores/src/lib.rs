//! Message stores: where messages wait, in memory or in a table of a database.
//!
//! A [`Store`] is a queue: messages come out in the order in which they came in. One that is looked at stays until
//! it is acknowledged, so that what takes it out may fail and try again. The trait waits where a store behind it
//! would; [`Memory`] never does.

mod absent;
mod format;
mod memory;
mod table;

pub use absent::Absent;
pub use memory::{Memory, MemoryLimits};
pub use table::Table;

use bytes::Bytes;
use message::{Headers, Method, Properties, SoapVersion};
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

/// A message as a store keeps it: all that another flow needs to go on with it.
#[derive(Debug)]
pub struct Message {
    /// Unique among the messages of all stores.
    pub id: String,
    /// The id of the message that was stored, as logs name it.
    pub message_id: String,
    /// The method of the client's request.
    pub method: Method,
    /// Path and query of the client's request.
    pub target: String,
    /// What the client speaks: SOAP of a version, or plain bodies.
    pub soap: Option<SoapVersion>,
    /// Where the message goes.
    pub to: Option<String>,
    /// The WS-Addressing action.
    pub action: Option<String>,
    /// The SOAP action.
    pub soap_action: Option<String>,
    /// Transport headers.
    pub headers: Headers,
    /// The body, in the form that its Content-Type says.
    pub body: Bytes,
    /// Properties of default scope.
    pub properties: Properties,
    /// Properties that were set in axis2 scope.
    pub axis2: Properties,
}

impl Message {
    /// About how many bytes it takes.
    pub fn size(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len() + 16).sum();
        let properties = self.properties.iter().chain(self.axis2.iter());
        let properties: usize =
            properties.map(|(name, value)| name.len() + value.to_string().len() + 64).sum();
        std::mem::size_of::<Message>() + self.body.len() + self.target.len() + headers + properties
    }
}

/// Why a store cannot do what is asked of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// It holds as much as it may.
    Full {
        /// The bound, in words.
        bound: String,
    },
    /// The message is larger than one may be that it can give back.
    TooLarge {
        /// Its size and the bound, in words.
        reason: String,
    },
    /// What is behind it cannot be reached.
    Unreachable {
        /// Why.
        reason: String,
    },
    /// What is behind it does not do what it was asked for.
    Refused {
        /// Why.
        reason: String,
    },
    /// What waits longest in it is no message.
    Unreadable {
        /// Which, and why.
        reason: String,
    },
}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Full { bound } => write!(out, "the store is full: it holds {bound}"),
            StoreError::TooLarge { reason } => {
                write!(out, "the message is too large for the store: {reason}")
            }
            StoreError::Unreachable { reason } => write!(out, "the store cannot be reached: {reason}"),
            StoreError::Refused { reason } => write!(out, "the store refuses: {reason}"),
            StoreError::Unreadable { reason } => write!(out, "the store cannot be read: {reason}"),
        }
    }
}

impl std::error::Error for StoreError {}

/// What a store answers, perhaps later.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A message store. See the crate.
pub trait Store: Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// Where its messages are, if not in itself: two stores of one place hold the same messages, whatever they are called.
    fn place(&self) -> Option<String> {
        None
    }

    /// Most messages that it holds; `None`: not known.
    fn capacity(&self) -> Option<usize>;

    /// How many messages wait in it.
    fn size(&self) -> StoreFuture<'_, usize>;

    /// Puts a message behind all others. When this has succeeded the message is as safe as the store is.
    fn store(&self, message: Message) -> StoreFuture<'_, ()>;

    /// The message that has waited longest. It stays in the store until it is acknowledged.
    fn peek(&self) -> StoreFuture<'_, Option<Arc<Message>>>;

    /// Takes a message out for good; `false`: it was not there.
    fn ack<'a>(&'a self, id: &'a str) -> StoreFuture<'a, bool>;

    /// Takes all messages out; answers how many there were.
    fn clear(&self) -> StoreFuture<'_, usize>;

    /// How many messages wait in it, where that is known without asking a server.
    fn waiting(&self) -> Option<usize> {
        None
    }

    /// The messages that are lost if the process ends now.
    fn lost_with_process(&self) -> Vec<Arc<Message>> {
        Vec::new()
    }
}

/// The stores of a process, by name. They outlive a reload of the configuration, and what waits in them does too.
#[derive(Default)]
pub struct Stores {
    stores: Mutex<HashMap<String, Arc<dyn Store>>>,
    /// What each in-memory store may hold.
    pub limits: MemoryLimits,
}

impl Stores {
    /// The in-memory store of a name, made when it is first asked for.
    pub fn memory(&self, name: &str) -> Arc<dyn Store> {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || Arc::new(Memory::new(name, self.limits)) as Arc<dyn Store>;
        Arc::clone(stores.entry(name.to_owned()).or_insert_with(made))
    }

    /// The stores whose number of messages is known, by name.
    pub fn waiting(&self) -> std::collections::BTreeMap<String, usize> {
        let stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.iter().filter_map(|(name, store)| Some((name.clone(), store.waiting()?))).collect()
    }

    /// The messages that are lost if the process ends now, each with the name of its store.
    pub fn lost_with_process(&self) -> Vec<(String, Arc<Message>)> {
        let stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let lost = |(name, store): (&String, &Arc<dyn Store>)| {
            let name = name.clone();
            store.lost_with_process().into_iter().map(move |message| (name.clone(), message))
        };
        stores.iter().flat_map(lost).collect()
    }
}

impl fmt::Debug for Stores {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Stores")
    }
}
