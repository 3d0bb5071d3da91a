//! The WebSocket clients on one path of one port, which get the responses to messages of each other
//! (`ws.client.side.broadcast.level`).

use message::memory;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transport::{Mailbox, WebSocketMessage};

/// Most messages that wait for one client, and most bytes of them together: one that takes less is closed.
const WAITING: (usize, usize) = (1024, 4 * 1024 * 1024);
/// Each message counts as at least so many bytes while it waits for a client.
const LEAST: usize = 4096;

type Room = HashMap<u64, Arc<Mailbox>>;

/// Rooms by port and path, of clients by the numbers of their connections.
#[derive(Default)]
pub(crate) struct Rooms(Mutex<HashMap<(u16, String), Room>>);

impl Rooms {
    fn lock(&self) -> MutexGuard<'_, HashMap<(u16, String), Room>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client to the room of its path, for as long as its place lives.
    pub(crate) fn join(self: &Arc<Self>, port: u16, path: &str, client: u64) -> Place {
        let mailbox = Arc::new(Mailbox::new(WAITING.0, WAITING.1));
        let room = (port, path.to_owned());
        self.lock().entry(room.clone()).or_default().insert(client, Arc::clone(&mailbox));
        Place { rooms: Arc::clone(self), room, client, mailbox }
    }
}

/// The place of one client.
pub(crate) struct Place {
    rooms: Arc<Rooms>,
    room: (u16, String),
    client: u64,
    mailbox: Arc<Mailbox>,
}

impl Place {
    pub(crate) fn mailbox(&self) -> Arc<Mailbox> {
        Arc::clone(&self.mailbox)
    }

    /// Sends a message to all others. A client that takes too little to get it is closed.
    ///
    /// # Errors
    /// Messages hold as much memory as they may: no client gets this one.
    pub(crate) fn tell(&self, message: &WebSocketMessage) -> Result<(), memory::Shortage> {
        let others: Vec<_> = match self.rooms.lock().get(&self.room) {
            Some(room) => {
                room.iter().filter(|(id, _)| **id != self.client).map(|(_, outbox)| outbox.clone()).collect()
            }
            None => return Ok(()),
        };
        if others.is_empty() {
            return Ok(());
        }
        let held = memory::try_hold(message.payload.len().max(LEAST))?;
        // All have slices of the same bytes, which are held until the last one is done with them.
        let payload = memory::counted(message.payload.clone(), held);
        for other in others {
            // A client whose queue overflows is closed; its connection logs that.
            let _ = other.put(WebSocketMessage { is_text: message.is_text, payload: payload.clone() });
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut rooms = self.rooms.lock();
        if let Some(room) = rooms.get_mut(&self.room) {
            room.remove(&self.client);
            if room.is_empty() {
                rooms.remove(&self.room);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_lasts_as_long_as_somebody_is_in_it() {
        let rooms = Arc::new(Rooms::default());
        let one = rooms.join(1, "/a", 1);
        let two = rooms.join(1, "/a", 2);
        let elsewhere = rooms.join(1, "/b", 3);
        assert_eq!(rooms.lock().len(), 2);
        let message = WebSocketMessage { is_text: true, payload: "x".into() };
        one.tell(&message).unwrap();
        drop((one, elsewhere));
        assert_eq!(rooms.lock().len(), 1);
        two.tell(&message).unwrap();
        drop(two);
        assert!(rooms.lock().is_empty());
    }
}
