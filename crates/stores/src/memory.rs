//! The in-memory store: a queue with bounds. What waits in it is lost when the process ends.

use crate::{Message, Store, StoreError, StoreFuture};
use message::memory;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The bytes of the messages in all in-memory stores of the process.
static TOGETHER: AtomicUsize = AtomicUsize::new(0);

/// How much an in-memory store holds.
#[derive(Clone, Copy, Debug)]
pub struct MemoryLimits {
    /// Most messages. Default 100,000.
    pub messages: usize,
    /// Most bytes of all messages together. Default 256 MiB.
    pub bytes: usize,
}

impl Default for MemoryLimits {
    fn default() -> MemoryLimits {
        MemoryLimits { messages: 100_000, bytes: 256 << 20 }
    }
}

/// See the module.
pub struct Memory {
    name: String,
    limits: MemoryLimits,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<(Arc<Message>, Share)>,
    bytes: usize,
}

/// So many bytes are counted in [`TOGETHER`] while this lives.
struct Share(usize);

impl Share {
    /// Stores that nobody empties take at most half of what messages may hold: the rest is for messages on their way, which would be
    /// refused otherwise, whether they have to do with a store or not.
    fn of(bytes: usize) -> Result<Share, StoreError> {
        let most = memory::most() / 2;
        let more = |held: usize| held.checked_add(bytes).filter(|&sum| sum <= most);
        match TOGETHER.fetch_update(Relaxed, Relaxed, more) {
            Ok(_) => Ok(Share(bytes)),
            Err(_) => Err(StoreError::Full {
                bound: format!(
                    "together with the other in-memory stores at most {most} bytes, half of `limits.memory`"
                ),
            }),
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        TOGETHER.fetch_sub(self.0, Relaxed);
    }
}

impl Memory {
    /// An empty store.
    pub fn new(name: &str, limits: MemoryLimits) -> Memory {
        Memory { name: name.to_owned(), limits, waiting: Mutex::default() }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, mut message: Message) -> Result<(), StoreError> {
        let size = message.size();
        let mut waiting = self.waiting();
        if waiting.messages.len() >= self.limits.messages {
            return Err(StoreError::Full { bound: format!("{} messages", self.limits.messages) });
        }
        if waiting.bytes.saturating_add(size) > self.limits.bytes {
            return Err(StoreError::Full { bound: format!("at most {} bytes", self.limits.bytes) });
        }
        let share = Share::of(size)?;
        // What it was received into may be twice as large.
        message.body = memory::counted(message.body.to_vec(), memory::hold(message.body.len()));
        waiting.bytes += size;
        waiting.messages.push_back((Arc::new(message), share));
        Ok(())
    }

    fn remove(&self, id: &str) -> bool {
        let mut waiting = self.waiting();
        // Nearly always the first one.
        let Some(at) = waiting.messages.iter().position(|(message, _)| message.id == id) else {
            return false;
        };
        if let Some((_, share)) = waiting.messages.remove(at) {
            waiting.bytes -= share.0;
        }
        true
    }
}

fn ready<'a, T: Send + 'a>(result: Result<T, StoreError>) -> StoreFuture<'a, T> {
    Box::pin(std::future::ready(result))
}

impl Store for Memory {
    fn name(&self) -> &str {
        &self.name
    }

    fn capacity(&self) -> Option<usize> {
        Some(self.limits.messages)
    }

    fn size(&self) -> StoreFuture<'_, usize> {
        ready(Ok(self.waiting().messages.len()))
    }

    fn store(&self, message: Message) -> StoreFuture<'_, ()> {
        ready(self.push(message))
    }

    fn peek(&self) -> StoreFuture<'_, Option<Arc<Message>>> {
        ready(Ok(self.waiting().messages.front().map(|(message, _)| Arc::clone(message))))
    }

    fn ack<'a>(&'a self, id: &'a str) -> StoreFuture<'a, bool> {
        ready(Ok(self.remove(id)))
    }

    fn clear(&self) -> StoreFuture<'_, usize> {
        ready(Ok(std::mem::take(&mut *self.waiting()).messages.len()))
    }

    fn waiting(&self) -> Option<usize> {
        Some(Memory::waiting(self).messages.len())
    }

    fn lost_with_process(&self) -> Vec<Arc<Message>> {
        self.waiting().messages.iter().map(|(message, _)| Arc::clone(message)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use message::{Headers, Method, Properties};
    use std::task::{Context, Poll, Waker};

    fn message(id: &str, length: usize) -> Message {
        Message {
            id: id.to_owned(),
            message_id: String::new(),
            method: Method::Post,
            target: "/".to_owned(),
            soap: None,
            to: None,
            action: None,
            soap_action: None,
            headers: Headers::new(),
            body: Bytes::from(vec![b'x'; length]),
            properties: Properties::new(),
            axis2: Properties::new(),
        }
    }

    /// It never waits.
    fn now<T>(mut response: StoreFuture<'_, T>) -> Result<T, StoreError> {
        match response.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result,
            Poll::Pending => panic!("an in-memory store does not wait"),
        }
    }

    #[test]
    fn messages_come_out_in_the_order_in_which_they_came_in() {
        let store = Memory::new("s", MemoryLimits::default());
        assert_eq!((store.name(), store.capacity()), ("s", Some(100_000)));
        assert!(now(store.peek()).unwrap().is_none());
        for id in ["a", "b", "c"] {
            now(store.store(message(id, 3))).unwrap();
        }
        let first = || now(store.peek()).unwrap().map(|message| message.id.clone());
        // It stays until it is acknowledged.
        assert_eq!((first().as_deref(), first().as_deref()), (Some("a"), Some("a")));
        assert_eq!((now(store.ack("a")), now(store.ack("a"))), (Ok(true), Ok(false)));
        assert_eq!(now(store.ack("c")), Ok(true));
        assert_eq!((first().as_deref(), now(store.size())), (Some("b"), Ok(1)));
        assert_eq!((now(store.clear()), now(store.size()), now(store.clear())), (Ok(1), Ok(0), Ok(0)));
    }

    #[test]
    fn it_is_full_at_either_bound() {
        let store = Memory::new("s", MemoryLimits { messages: 2, bytes: 100_000 });
        for (id, length, error) in [
            ("huge", 200_000, Some("at most 100000 bytes")),
            ("a", 60_000, None),
            ("b", 60_000, Some("at most 100000 bytes")),
            ("c", 0, None),
            ("d", 0, Some("2 messages")),
        ] {
            let stored = now(store.store(message(id, length))).map_err(|error| error.to_string());
            match error {
                None => assert_eq!(stored, Ok(())),
                Some(says) => {
                    assert!(
                        stored.as_ref().is_err_and(|error_text| error_text.contains(says)),
                        "{id}: {stored:?}"
                    )
                }
            }
        }
        assert_eq!(now(store.ack("a")), Ok(true));
        assert_eq!(now(store.store(message("e", 60_000))), Ok(()));
    }
}
