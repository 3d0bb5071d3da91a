//! A list that is cheap to copy, and so are a part of it and a longer one: a recursion that takes the first item off a sequence at each
//! step, or adds one to what it has so far, copies it a few times altogether, not at each step.

use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Shorter lists are copied when something is added.
const LONG: usize = 32;

/// A property of elements ([`Shared::mark`]) that all other properties imply: they are neither maps nor arrays nor functions.
pub(crate) const FLAT: usize = 5;

/// Whether elements that have the first property have the second.
fn implies(property: usize, other: usize) -> bool {
    property == other || property != 0 && other == FLAT
}

/// The list, of at most `u32::MAX` elements.
#[derive(Debug, Clone)]
pub struct Shared<T>(Repr<T>);

#[derive(Debug, Clone)]
enum Repr<T> {
    One(Piece<T>),
    Several(Arc<Joined<T>>),
}

/// A list, or a part of one.
#[derive(Debug, Clone)]
struct Piece<T> {
    all: Arc<[T]>,
    from: u32,
    len: u32,
}

/// Several pieces as one list. From both ends towards one of them, each is at least twice as long as the one before, so that they are few:
/// about twice the binary logarithm of the length.
#[derive(Debug)]
struct Joined<T> {
    pieces: Vec<Piece<T>>,
    len: usize,
    /// How many elements were stored to make it.
    made: usize,
    /// The same in one piece, once somebody has wanted that.
    whole: OnceLock<Piece<T>>,
    /// What was known of the list that was made longer: which elements of this one those are, and a mark ([`Shared::mark`]).
    before: Option<(Range<usize>, usize)>,
    /// A property of all elements; 0: none is known.
    mark: AtomicUsize,
}

impl<T> Piece<T> {
    fn of(all: Arc<[T]>) -> Piece<T> {
        let len = u32::try_from(all.len()).unwrap_or(u32::MAX);
        Piece { all, from: 0, len }
    }

    fn len(&self) -> usize {
        self.len as usize
    }

    fn is_whole(&self) -> bool {
        self.len() == self.all.len()
    }
}

impl<T> Deref for Piece<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        let from = self.from as usize;
        &self.all[from..from + self.len as usize]
    }
}

impl<T: Clone> Piece<T> {
    fn part(&self, range: Range<usize>) -> Piece<T> {
        let to = range.end.min(self.len());
        let from = range.start.min(to);
        if to - from <= self.all.len() / 2 {
            return Piece::of(self[from..to].into());
        }
        Piece { all: Arc::clone(&self.all), from: self.from + from as u32, len: (to - from) as u32 }
    }
}

impl<T> Shared<T> {
    /// How many elements.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::One(piece) => piece.len(),
            Repr::Several(joined) => joined.len,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it shares no elements with a longer list.
    pub fn is_whole(&self) -> bool {
        match &self.0 {
            Repr::One(piece) => piece.is_whole(),
            Repr::Several(_) => false,
        }
    }

    /// Whether both are the same elements of the same list: a matter of identity, not of equality.
    pub(crate) fn is_same(&self, other: &Shared<T>) -> bool {
        match (&self.0, &other.0) {
            (Repr::One(a), Repr::One(b)) => Arc::ptr_eq(&a.all, &b.all) && (a.from, a.len) == (b.from, b.len),
            (Repr::Several(a), Repr::Several(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// Whether it is worth sharing rather than copying, where something is added.
    pub fn is_long(&self) -> bool {
        self.len() >= LONG
    }

    fn pieces(&self) -> &[Piece<T>] {
        match &self.0 {
            Repr::One(piece) => std::slice::from_ref(piece),
            Repr::Several(joined) => &joined.pieces,
        }
    }

    /// The element at an index.
    pub fn get(&self, mut at: usize) -> Option<&T> {
        for piece in self.pieces() {
            match at.checked_sub(piece.len()) {
                None => return piece.get(at),
                Some(behind) => at = behind,
            }
        }
        None
    }

    /// The first element.
    pub fn first(&self) -> Option<&T> {
        self.get(0)
    }

    /// The elements in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.pieces().iter().flat_map(|piece| piece.iter())
    }

    /// How many elements were stored that `before` does not hold: it is what this was made from, or the same.
    pub fn added_to(&self, before: &Shared<T>) -> usize {
        match (&self.0, &before.0) {
            (Repr::Several(a), Repr::Several(b)) if Arc::ptr_eq(a, b) => 0,
            (Repr::One(a), Repr::One(b)) if Arc::ptr_eq(&a.all, &b.all) => 0,
            (Repr::Several(joined), _) => joined.made,
            (Repr::One(piece), _) => piece.len(),
        }
    }

    /// Remembers that all elements have some property, named by a number other than 0, unless it is known already; of several the last one.
    pub fn mark(&self, property: usize) {
        if let Repr::Several(joined) = &self.0
            && !implies(joined.mark.load(Ordering::Relaxed), property)
        {
            joined.mark.store(property, Ordering::Relaxed);
        }
    }

    /// The elements of which it is not known that they have the property.
    pub fn unmarked(&self, property: usize) -> impl Iterator<Item = &T> {
        let mut known = 0..0;
        if let Repr::Several(joined) = &self.0 {
            if implies(joined.mark.load(Ordering::Relaxed), property) {
                known = 0..joined.len;
            } else if let Some((range, _)) =
                joined.before.as_ref().filter(|(_, mark)| implies(*mark, property))
            {
                known = range.clone();
            }
        }
        let mut start = 0;
        self.pieces().iter().flat_map(move |piece| {
            let at = start;
            start += piece.len();
            // What of the piece is before and behind the known elements.
            let inside = |index: usize| index.clamp(at, at + piece.len()) - at;
            let (from, to) = (inside(known.start), inside(known.end));
            piece[..from].iter().chain(&piece[to.max(from)..])
        })
    }
}

impl<T: Clone> Shared<T> {
    /// The part at these indexes, as far as they are there. What is at most half of a stored list is copied, so that a few elements do
    /// not keep a long list.
    pub fn part(&self, range: Range<usize>) -> Shared<T> {
        let joined = match &self.0 {
            Repr::One(piece) => return Shared(Repr::One(piece.part(range))),
            Repr::Several(joined) => joined,
        };
        let to = range.end.min(joined.len);
        let from = range.start.min(to);
        let mut start = 0;
        let mut pieces = Vec::with_capacity(joined.pieces.len());
        for piece in &joined.pieces {
            let (begin, end) = (from.max(start), to.min(start + piece.len()));
            if begin < end {
                pieces.push(piece.part(begin - start..end - start));
            }
            start += piece.len();
        }
        let copied = pieces.iter().filter(|piece| piece.is_whole()).map(Piece::len).sum();
        Shared::of(pieces, copied, None)
    }

    /// This list, and behind it the other one.
    #[must_use]
    pub fn with(&self, other: &Shared<T>) -> Shared<T> {
        if self.is_empty() || other.is_empty() {
            return if other.is_empty() { self.clone() } else { other.clone() };
        }
        let (longer, added, at_end) =
            if self.len() >= other.len() { (self, other, true) } else { (other, self, false) };
        let mut pieces = longer.pieces().to_vec();
        let (added, mut made) = match &added.0 {
            Repr::One(piece) if piece.is_whole() => (piece.clone(), piece.len()),
            Repr::One(piece) => (piece.clone(), 0),
            Repr::Several(_) => (Piece::of(added.iter().cloned().collect()), added.len()),
        };
        let before = match &longer.0 {
            Repr::Several(joined) => {
                let start = if at_end { 0 } else { added.len() };
                Some((start..start + longer.len(), joined.mark.load(Ordering::Relaxed)))
            }
            Repr::One(_) => None,
        };
        // As in a binary counter: the pieces at that end that are shorter than twice what comes behind them are joined with it, so that
        // each element is copied as often as the logarithm of the length.
        let (mut joined, mut count) = (added.len(), 0);
        let near = |at: usize| if at_end { pieces.iter().rev().nth(at) } else { pieces.get(at) };
        while let Some(next) = near(count).filter(|next| next.len() < 2 * joined) {
            joined += next.len();
            count += 1;
        }
        let at = if at_end { pieces.len() - count } else { 0 };
        let added = if count == 0 {
            added
        } else {
            made = joined;
            let neighbours: Vec<Piece<T>> = pieces.drain(at..at + count).collect();
            let neighbours = neighbours.iter().flat_map(|piece| piece.iter().cloned());
            Piece::of(match at_end {
                true => neighbours.chain(added.iter().cloned()).collect(),
                false => added.iter().cloned().chain(neighbours).collect(),
            })
        };
        pieces.insert(at, added);
        Shared::of(pieces, made, before)
    }

    fn of(mut pieces: Vec<Piece<T>>, made: usize, before: Option<(Range<usize>, usize)>) -> Shared<T> {
        let len: usize = pieces.iter().map(Piece::len).sum();
        match pieces.pop() {
            Some(piece) if pieces.is_empty() => Shared(Repr::One(piece)),
            last if len < LONG => Shared::from(
                pieces.iter().chain(&last).flat_map(|piece| piece.iter().cloned()).collect::<Vec<T>>(),
            ),
            last => {
                pieces.extend(last);
                let (whole, mark) = (OnceLock::new(), AtomicUsize::new(0));
                Shared(Repr::Several(Arc::new(Joined { pieces, len, made, whole, before, mark })))
            }
        }
    }
}

impl<T: Clone> Deref for Shared<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Repr::One(piece) => piece,
            Repr::Several(joined) => joined.whole.get_or_init(|| Piece::of(self.iter().cloned().collect())),
        }
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Shared<T>) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<T> From<Vec<T>> for Shared<T> {
    fn from(list: Vec<T>) -> Shared<T> {
        Shared(Repr::One(Piece::of(list.into())))
    }
}

impl<T: Clone> From<&[T]> for Shared<T> {
    fn from(list: &[T]) -> Shared<T> {
        Shared(Repr::One(Piece::of(list.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    #[allow(clippy::reversed_empty_ranges)] // what ends before it begins is empty
    fn parts_of_parts() {
        let all = Shared::from(vec![0, 1, 2, 3, 4, 5]);
        let part = all.part(1..5);
        assert_eq!(
            (&*part, &*part.part(1..2), &*part.part(2..9)),
            (&[1, 2, 3, 4][..], &[2][..], &[3, 4][..])
        );
        assert!(part.part(4..9).is_empty() && part.part(7..9).is_empty() && part.part(3..2).is_empty());
        assert_eq!(part.part(1..3), Shared::from(vec![2, 3]));
        assert!(all.is_whole() && !part.is_whole() && part.part(1..3).is_whole());
    }

    #[test]
    fn additions_share() {
        let mut list = Shared::from((0..40).collect::<Vec<u32>>());
        let (mut stored, mut unknown) = (0, 0);
        for n in 0..4000 {
            list.mark(7);
            let one = Shared::from(vec![n]);
            let longer = if n % 2 == 0 { list.with(&one) } else { one.with(&list) };
            stored += longer.added_to(&list);
            unknown += longer.unmarked(7).count();
            assert!(longer.unmarked(7).any(|element| *element == n));
            assert_eq!(longer.unmarked(8).count(), longer.len());
            list = longer;
        }
        assert!(stored < 4000 * 20 && unknown < 4000 * 20, "{stored}, {unknown}");
        assert_eq!((list.len(), list.added_to(&list.clone())), (4040, 0));
    }

    proptest! {
        /// Against a vector: the same elements after every step, in few pieces.
        #[test]
        fn is_a_list(steps in proptest::collection::vec((0u8..4, 0usize..300, 1usize..80), 0..120)) {
            let mut vector: Vec<usize> = (0..40).collect();
            let mut list = Shared::from(vector.clone());
            for (step, at, count) in steps {
                let more: Vec<usize> = (at..at + count).collect();
                match step {
                    0 => {
                        list = list.with(&Shared::from(more.clone()));
                        vector.extend(more);
                    }
                    1 => {
                        list = Shared::from(more.clone()).with(&list);
                        vector.splice(0..0, more);
                    }
                    2 => {
                        let from = (count / 4).min(vector.len());
                        let to = vector.len() - (at / 40).min(vector.len() - from);
                        list = list.part(from..to);
                        vector = vector[from..to].to_vec();
                    }
                    _ => {
                        let doubled = list.part(0..at).with(&list);
                        vector = [&vector[..at.min(vector.len())], &vector[..]].concat();
                        list = doubled;
                    }
                }
                prop_assert!(list.pieces().len() <= 2 * (vector.len() + 2).ilog2() as usize + 4);
                prop_assert_eq!(list.len(), vector.len());
                prop_assert!(list.iter().eq(&vector) && list.get(at) == vector.get(at));
                prop_assert_eq!(list.first(), vector.first());
            }
            prop_assert_eq!(&*list, &vector[..]);
        }
    }
}
