//! A list that is cheap to copy, and so is a part of it: a recursion that takes the first item off a sequence at each step copies
//! it a few times altogether, not at each step.

use std::ops::{Deref, Range};
use std::sync::Arc;

/// The list, or a part of one, of at most `u32::MAX` elements.
#[derive(Debug, Clone)]
pub struct Shared<T> {
    all: Arc<[T]>,
    from: u32,
    len: u32,
}

impl<T> Shared<T> {
    fn of(all: Arc<[T]>) -> Shared<T> {
        let len = u32::try_from(all.len()).unwrap_or(u32::MAX);
        Shared { all, from: 0, len }
    }

    /// Whether it is not a part of a longer list.
    pub fn is_whole(&self) -> bool {
        self.len as usize == self.all.len()
    }
}

impl<T: Clone> Shared<T> {
    /// The part at these indexes, as far as they are there. What is at most half of the list is copied, so that a few elements do not
    /// keep a long list.
    pub fn part(&self, range: Range<usize>) -> Shared<T> {
        let to = range.end.min(self.len as usize);
        let from = range.start.min(to);
        if to - from <= self.all.len() / 2 {
            return Shared::from(&self[from..to]);
        }
        Shared { all: Arc::clone(&self.all), from: self.from + from as u32, len: (to - from) as u32 }
    }
}

impl<T> Deref for Shared<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        let from = self.from as usize;
        &self.all[from..from + self.len as usize]
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Shared<T>) -> bool {
        **self == **other
    }
}

impl<T> From<Vec<T>> for Shared<T> {
    fn from(list: Vec<T>) -> Shared<T> {
        Shared::of(list.into())
    }
}

impl<T: Clone> From<&[T]> for Shared<T> {
    fn from(list: &[T]) -> Shared<T> {
        Shared::of(list.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
