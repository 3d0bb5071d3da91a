//! The receive buffer of a connection and the free list it comes from.
//!
//! A connection holds storage only while there are bytes in it: ten thousand idle connections hold none.

use std::cell::RefCell;
use std::sync::atomic::AtomicUsize;

use crate::counted::Counted;

/// Bytes received, in three parts: entity bytes (decoded, not yet consumed), a gap left by transfer
/// decoding, and wire bytes (not yet decoded). `start <= mid <= raw <= end`.
#[derive(Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    /// The storage was taken from the budget of large ones, whatever has become of its size.
    large: Option<Counted>,
    start: usize,
    mid: usize,
    raw: usize,
    end: usize,
}

impl Buffer {
    /// Decoded bytes.
    pub(crate) fn entity(&self) -> &[u8] {
        &self.bytes[self.start..self.mid]
    }

    /// Bytes as received.
    pub(crate) fn wire(&self) -> &[u8] {
        &self.bytes[self.raw..self.end]
    }

    /// Consumes entity bytes.
    pub(crate) fn consume(&mut self, n: usize) {
        self.start = self.mid.min(self.start + n);
    }

    /// Drops wire bytes: a head, or the framing around a chunk.
    pub(crate) fn skip(&mut self, n: usize) {
        self.raw = self.end.min(self.raw + n);
    }

    /// Makes the next `n` wire bytes entity bytes. Moves them only if framing lies between.
    pub(crate) fn decode(&mut self, n: usize) {
        let n = n.min(self.end - self.raw);
        if self.start == self.mid {
            self.start = self.raw;
            self.mid = self.raw;
        } else if self.mid != self.raw {
            self.bytes.copy_within(self.raw..self.raw + n, self.mid);
        }
        self.mid += n;
        self.raw += n;
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_vacant(&self) -> bool {
        self.start == self.mid && self.raw == self.end
    }

    /// Bytes of memory that go along with the decoded ones. Storage of a size that is kept for others does not.
    pub(crate) fn storage(&self) -> usize {
        if self.bytes.len() <= KEEP_SIZE { self.entity().len() } else { self.bytes.len() }
    }

    /// Takes all decoded bytes. Storage that has grown beyond what is kept for others goes along, so that nothing is copied;
    /// else it is worth a copy.
    pub(crate) fn take_entity(&mut self) -> Vec<u8> {
        if self.bytes.len() <= KEEP_SIZE || self.raw < self.end {
            let entity = self.entity().to_vec();
            self.start = self.mid;
            return entity;
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.truncate(self.mid);
        // Mostly nothing, and moved within the storage.
        bytes.drain(..self.start);
        (self.start, self.mid, self.raw, self.end) = (0, 0, 0, 0);
        self.large = None;
        bytes
    }

    pub(crate) fn has_storage(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Whether bytes can be received without growing.
    pub(crate) fn has_room(&self, size: usize) -> bool {
        (self.mid - self.start) + (self.end - self.raw) < self.bytes.len().max(size)
    }

    /// Exchanges small storage for large, while it is vacant.
    pub(crate) fn prefer(&mut self, large: bool) {
        if large && self.bytes.len() < LARGE && self.is_vacant() {
            self.release();
        }
    }

    /// Where to receive into: never empty. `size` is the usual size of storage; it grows beyond only when full
    /// of bytes that nobody consumes. `large`: much is to come, so fewer and larger reads are worth more storage,
    /// as far as the budget goes. `left`: so many bytes of the message are still to come, as far as that is known.
    pub(crate) fn room(&mut self, size: usize, large: bool, left: u64) -> &mut [u8] {
        if self.bytes.is_empty() {
            self.large =
                if large && size < LARGE { Counted::below(&LARGE_IN_USE, LARGE_AT_MOST) } else { None };
            self.bytes = take(if self.large.is_some() { LARGE } else { size.max(512) });
        }
        if self.is_vacant() {
            (self.start, self.mid, self.raw, self.end) = (0, 0, 0, 0);
        } else if self.end == self.bytes.len() {
            self.compact();
            if self.end == self.bytes.len() {
                self.grow(size, left);
            }
        }
        &mut self.bytes[self.end..]
    }

    /// At least doubles. A message whose length is known has all of its room at once, and is not copied from size to size; what its sender
    /// only says of it counts up to some times what has come.
    fn grow(&mut self, size: usize, left: u64) {
        let full = self.bytes.len();
        let whole = usize::try_from(left).unwrap_or(usize::MAX).saturating_add(full).saturating_add(size);
        let larger = match whole <= KEEP_SIZE {
            // Few sizes, so that storage which is kept finds another use.
            true => full * whole.div_ceil(full).next_power_of_two(),
            false => whole,
        };
        let larger = larger.min(full * TRUST).max(full * 2);
        // Fresh memory is zero already.
        let mut bytes = vec![0; larger];
        bytes[..full].copy_from_slice(&self.bytes);
        give(std::mem::replace(&mut self.bytes, bytes));
    }

    /// `n` bytes were received into [`room`](Buffer::room).
    pub(crate) fn received(&mut self, n: usize) {
        self.end = self.bytes.len().min(self.end + n);
    }

    /// Gives the storage back if there is nothing in it.
    pub(crate) fn release(&mut self) {
        if self.is_vacant() && !self.bytes.is_empty() {
            (self.start, self.mid, self.raw, self.end) = (0, 0, 0, 0);
            give(std::mem::take(&mut self.bytes));
            self.large = None;
        }
    }

    fn compact(&mut self) {
        let entity = self.mid - self.start;
        let wire = self.end - self.raw;
        self.bytes.copy_within(self.start..self.mid, 0);
        self.bytes.copy_within(self.raw..self.end, entity);
        (self.start, self.mid, self.raw, self.end) = (0, entity, entity, entity + wire);
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if !self.bytes.is_empty() {
            give(std::mem::take(&mut self.bytes));
        }
    }
}

/// Storage grows by this factor at most at a time.
const TRUST: usize = 8;
/// Size of storage for long bodies.
const LARGE: usize = 128 * 1024;
/// So many in the process at a time (32 MiB); beyond, long bodies go through storage of the usual size.
const LARGE_AT_MOST: usize = 256;
static LARGE_IN_USE: AtomicUsize = AtomicUsize::new(0);

/// Free buffers per size and thread.
const KEEP: usize = 64;
/// Larger ones (grown while peeking) are not kept.
const KEEP_SIZE: usize = LARGE;

thread_local! {
    static FREE: RefCell<Vec<Vec<Vec<u8>>>> = const { RefCell::new(Vec::new()) };
}

/// Storage of that length; its contents are left over from earlier use and never read before written.
fn take(size: usize) -> Vec<u8> {
    let free = FREE.try_with(|free| {
        let mut classes = free.borrow_mut();
        classes.iter_mut().find(|c| c.last().is_some_and(|b| b.len() == size))?.pop()
    });
    free.ok().flatten().unwrap_or_else(|| vec![0; size])
}

fn give(bytes: Vec<u8>) {
    if bytes.len() > KEEP_SIZE {
        return;
    }
    // Fails only while the thread ends.
    let _ = FREE.try_with(|free| {
        let mut classes = free.borrow_mut();
        let class = classes.iter().position(|c| c.last().is_none_or(|b| b.len() == bytes.len()));
        match class {
            Some(i) if classes[i].len() < KEEP => classes[i].push(bytes),
            None if classes.len() < 8 => classes.push(vec![bytes]),
            _ => {}
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    fn receive(b: &mut Buffer, bytes: &[u8]) {
        let room = b.room(512, false, 0);
        room[..bytes.len()].copy_from_slice(bytes);
        b.received(bytes.len());
    }

    #[test]
    fn decodes_around_framing_without_losing_what_is_peeked() {
        let mut b = Buffer::default();
        receive(&mut b, b"HEADab..cd..ef");
        b.skip(4);
        b.decode(2);
        assert_eq!(b.entity(), b"ab");
        b.skip(2);
        b.decode(2);
        assert_eq!(b.entity(), b"abcd");
        b.consume(1);
        b.skip(2);
        b.decode(9);
        assert_eq!(b.entity(), b"bcdef");
        assert!(b.wire().is_empty());
        b.consume(99);
        assert!(b.is_vacant());
        b.release();
        assert!(!b.has_storage());
    }

    /// A held body makes its storage grow beyond the size that it was taken with.
    #[test]
    fn large_storage_is_given_back_whatever_its_size_became() {
        for _ in 0..2 * LARGE_AT_MOST {
            let mut b = Buffer::default();
            assert_eq!(b.room(512, true, 0).len(), LARGE);
            b.received(LARGE);
            b.decode(LARGE);
            assert_eq!(b.room(512, true, 0).len(), LARGE);
        }
        // One that grew to that very size was never taken from them.
        let mut b = Buffer::default();
        let mut full = 512;
        b.room(512, false, 0);
        b.received(512);
        while full < LARGE {
            let more = b.room(512, false, 0).len();
            b.received(more);
            full += more;
        }
        let kept = Counted::below(&LARGE_IN_USE, LARGE_AT_MOST).expect("all were given back");
        drop(b);
        drop(kept);
        assert_eq!(LARGE_IN_USE.load(Relaxed), 0);
    }

    #[test]
    fn what_has_grown_is_taken_and_not_copied() {
        for (wire, taken) in [(LARGE / 2, false), (LARGE, false), (3 * LARGE, true)] {
            let mut b = Buffer::default();
            let mut full = 0;
            while full < wire {
                let n = b.room(512, false, 0).len().min(wire - full);
                b.room(512, false, 0)[..n].fill(full as u8);
                b.received(n);
                b.decode(n);
                full += n;
            }
            b.consume(10);
            let at = b.entity().as_ptr();
            let bytes = b.take_entity();
            assert_eq!(bytes.len(), wire - 10);
            // Moved by what was consumed, where it was taken over.
            assert_eq!(bytes.as_ptr() == at.wrapping_sub(10), taken, "{wire}");
            assert!(b.is_vacant() && b.has_storage() != taken);
        }
        // Bytes behind the body belong to the next message.
        let mut b = Buffer::default();
        b.room(4 * LARGE, false, 0);
        b.received(300_000);
        b.decode(200_000);
        assert_eq!(b.take_entity().len(), 200_000);
        assert_eq!(b.wire().len(), 100_000);
    }

    #[test]
    fn compacts_before_it_grows() {
        let mut b = Buffer::default();
        receive(&mut b, &[1; 512]);
        b.decode(256);
        b.consume(200);
        assert_eq!(b.room(512, false, 0).len(), 200);
        receive(&mut b, &[2; 200]);
        assert!(!b.has_room(512));
        assert_eq!(b.room(512, false, 0).len(), 512);
        assert_eq!((b.entity().len(), b.wire().len()), (56, 456));
    }

    #[test]
    fn a_message_of_known_length_has_its_room_at_once() {
        let endless = 1 << 60;
        for (usual, left, larger) in [
            (512, 0, 1024),
            (512, 1, 2048),
            (512, 1000, 2048),
            (512, 3072, 4096),
            (512, 5000, 4096),
            (512, endless, 4096),
            (LARGE, 1 << 19, 2 * LARGE + (1 << 19)),
            (LARGE, endless, 8 * LARGE),
        ] {
            let mut b = Buffer::default();
            b.room(usual, false, left).fill(7);
            b.received(usual);
            b.decode(usual);
            assert_eq!(b.room(usual, false, left).len(), larger - usual, "{left}");
            assert!(b.entity().len() == usual && b.entity().iter().all(|&byte| byte == 7));
        }
    }
}
