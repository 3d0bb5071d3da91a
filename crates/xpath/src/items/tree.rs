//! A list that shares structure with the lists it was made from: a balanced tree with immutable branches.
//! Every operation takes logarithmic time, so that a fold that adds one member at each step is not quadratic.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The nesting depth of the content: bounds the recursion of everything that walks it, dropping included.
pub(crate) trait Nested {
    /// 0: it contains nothing.
    fn nesting(&self) -> u32;
}

/// The list.
#[derive(Debug)]
pub(crate) struct Tree<T>(Option<Arc<Branch<T>>>);

#[derive(Debug)]
struct Branch<T> {
    left: Tree<T>,
    item: T,
    right: Tree<T>,
    len: usize,
    height: u32,
    nesting: u32,
    /// The last property that all its items were found to have ([`Tree::all`]); 0: none.
    property: AtomicU64,
}

impl<T> Clone for Tree<T> {
    fn clone(&self) -> Tree<T> {
        Tree(self.0.clone())
    }
}

impl<T> Default for Tree<T> {
    fn default() -> Tree<T> {
        Tree(None)
    }
}

impl<T: Clone + Nested> Tree<T> {
    fn node(left: Tree<T>, item: T, right: Tree<T>) -> Tree<T> {
        let (len, height) = (left.len() + right.len() + 1, left.height().max(right.height()) + 1);
        let nesting = item.nesting().max(left.nesting()).max(right.nesting());
        let property = AtomicU64::new(0);
        Tree(Some(Arc::new(Branch { left, item, right, len, height, nesting, property })))
    }

    /// A list of items, in linear time.
    pub fn of(items: Vec<T>) -> Tree<T> {
        fn build<T: Clone + Nested>(items: &mut std::vec::IntoIter<T>, len: usize) -> Tree<T> {
            if len == 0 {
                return Tree(None);
            }
            let left = build(items, len / 2);
            match items.next() {
                Some(item) => Tree::node(left, item, build(items, len - len / 2 - 1)),
                None => left,
            }
        }
        let len = items.len();
        build(&mut items.into_iter(), len)
    }

    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |b| b.len)
    }

    fn height(&self) -> u32 {
        self.0.as_ref().map_or(0, |b| b.height)
    }

    /// The deepest nesting of its items.
    pub fn nesting(&self) -> u32 {
        self.0.as_ref().map_or(0, |b| b.nesting)
    }

    /// The item at an index from 0.
    pub fn get(&self, mut at: usize) -> Option<&T> {
        let mut tree = self;
        loop {
            let branch = tree.0.as_ref()?;
            let before = branch.left.len();
            match at.cmp(&before) {
                std::cmp::Ordering::Less => tree = &branch.left,
                std::cmp::Ordering::Equal => return Some(&branch.item),
                std::cmp::Ordering::Greater => {
                    at -= before + 1;
                    tree = &branch.right;
                }
            }
        }
    }

    /// The first index whose item is not `before`; those that are come first.
    pub fn partition(&self, before: impl Fn(&T) -> bool) -> usize {
        let (mut tree, mut at) = (self, 0);
        while let Some(branch) = &tree.0 {
            if before(&branch.item) {
                at += branch.left.len() + 1;
                tree = &branch.right;
            } else {
                tree = &branch.left;
            }
        }
        at
    }

    /// The same with another item at `at`, which must be in range.
    pub fn set(&self, at: usize, item: T) -> Tree<T> {
        let Some(branch) = &self.0 else { return Tree(None) };
        let before = branch.left.len();
        let (left, right) = (branch.left.clone(), branch.right.clone());
        match at.cmp(&before) {
            std::cmp::Ordering::Less => Tree::node(left.set(at, item), branch.item.clone(), right),
            std::cmp::Ordering::Equal => Tree::node(left, item, right),
            std::cmp::Ordering::Greater => {
                Tree::node(left, branch.item.clone(), right.set(at - before - 1, item))
            }
        }
    }

    /// Both lists with an item between.
    pub fn join(left: &Tree<T>, item: T, right: &Tree<T>) -> Tree<T> {
        match (&left.0, &right.0) {
            (Some(l), _) if l.height > right.height() + 1 => {
                Tree::balanced(l.left.clone(), l.item.clone(), Tree::join(&l.right, item, right))
            }
            (_, Some(r)) if r.height > left.height() + 1 => {
                Tree::balanced(Tree::join(left, item, &r.left), r.item.clone(), r.right.clone())
            }
            _ => Tree::node(left.clone(), item, right.clone()),
        }
    }

    /// Rebalances heights that differ by two at most.
    fn balanced(left: Tree<T>, item: T, right: Tree<T>) -> Tree<T> {
        if let Some(l) = &left.0
            && l.height > right.height() + 1
        {
            return match &l.right.0 {
                Some(inner) if l.right.height() > l.left.height() => Tree::node(
                    Tree::node(l.left.clone(), l.item.clone(), inner.left.clone()),
                    inner.item.clone(),
                    Tree::node(inner.right.clone(), item, right),
                ),
                _ => Tree::node(l.left.clone(), l.item.clone(), Tree::node(l.right.clone(), item, right)),
            };
        }
        if let Some(r) = &right.0
            && r.height > left.height() + 1
        {
            return match &r.left.0 {
                Some(inner) if r.left.height() > r.right.height() => Tree::node(
                    Tree::node(left, item, inner.left.clone()),
                    inner.item.clone(),
                    Tree::node(inner.right.clone(), r.item.clone(), r.right.clone()),
                ),
                _ => Tree::node(Tree::node(left, item, r.left.clone()), r.item.clone(), r.right.clone()),
            };
        }
        Tree::node(left, item, right)
    }

    /// The items before `at`, and the others.
    pub fn split(&self, at: usize) -> (Tree<T>, Tree<T>) {
        let Some(branch) = &self.0 else { return (Tree(None), Tree(None)) };
        let before = branch.left.len();
        if at <= before {
            let (first, second) = branch.left.split(at);
            (first, Tree::join(&second, branch.item.clone(), &branch.right))
        } else {
            let (first, second) = branch.right.split(at - before - 1);
            (Tree::join(&branch.left, branch.item.clone(), &first), second)
        }
    }

    /// Concatenates two lists.
    pub fn concat(&self, other: &Tree<T>) -> Tree<T> {
        match other.get(0) {
            None => self.clone(),
            Some(first) => Tree::join(self, first.clone(), &other.split(1).1),
        }
    }

    /// The same with another item inserted at `at`.
    pub fn insert(&self, at: usize, item: T) -> Tree<T> {
        let Some(branch) = &self.0 else { return Tree::node(Tree(None), item, Tree(None)) };
        let before = branch.left.len();
        if at <= before {
            Tree::balanced(branch.left.insert(at, item), branch.item.clone(), branch.right.clone())
        } else {
            let right = branch.right.insert(at - before - 1, item);
            Tree::balanced(branch.left.clone(), branch.item.clone(), right)
        }
    }

    /// The same with the item at `at` removed.
    pub fn remove(&self, at: usize) -> Tree<T> {
        let (first, second) = self.split(at);
        first.concat(&second.split(1).1)
    }

    /// Whether all items have a property. If it has a name, the branches whose items have it remember that, so that of a list made
    /// from this one only what is new is looked at.
    pub fn all<E>(
        &self,
        property: Option<NonZeroU64>,
        has: &mut impl FnMut(&T) -> Result<bool, E>,
    ) -> Result<bool, E> {
        let Some(branch) = &self.0 else { return Ok(true) };
        if property.is_some_and(|name| branch.property.load(Ordering::Relaxed) == name.get()) {
            return Ok(true);
        }
        let all = branch.left.all(property, has)? && has(&branch.item)? && branch.right.all(property, has)?;
        if let (true, Some(name)) = (all, property) {
            branch.property.store(name.get(), Ordering::Relaxed);
        }
        Ok(all)
    }

    /// The items in order.
    pub fn iter(&self) -> Iter<'_, T> {
        let mut iter = Iter { above: Vec::new() };
        iter.down(self);
        iter
    }
}

/// The items of a [`Tree`] in order.
pub(crate) struct Iter<'t, T> {
    above: Vec<&'t Branch<T>>,
}

impl<'t, T> Iter<'t, T> {
    fn down(&mut self, mut tree: &'t Tree<T>) {
        while let Some(branch) = &tree.0 {
            self.above.push(branch);
            tree = &branch.left;
        }
    }
}

impl<'t, T> Iterator for Iter<'t, T> {
    type Item = &'t T;

    fn next(&mut self) -> Option<&'t T> {
        let branch = self.above.pop()?;
        self.down(&branch.right);
        Some(&branch.item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Nested for u32 {
        fn nesting(&self) -> u32 {
            *self
        }
    }

    fn check(tree: &Tree<u32>) -> u32 {
        let Some(branch) = &tree.0 else { return 0 };
        let (left, right) = (check(&branch.left), check(&branch.right));
        assert!(left.abs_diff(right) <= 1, "{left} beside {right}");
        assert_eq!(branch.height, left.max(right) + 1);
        assert_eq!(branch.len, branch.left.len() + branch.right.len() + 1);
        branch.height
    }

    #[test]
    fn only_what_is_new_is_looked_at() {
        let (mut tree, mut looks, name) = (Tree::of((0..1000).collect()), 0, NonZeroU64::new(1));
        for at in 0..1000 {
            tree = tree.insert(tree.len() / 2, at).set(at as usize, at);
            let all = tree.all(name, &mut |_| {
                looks += 1;
                Ok::<_, ()>(true)
            });
            assert_eq!(all, Ok(true));
        }
        // All items once, then the branches above the two changed ones.
        assert!(looks < 1000 + 1000 * 2 * 15, "{looks}");
    }

    proptest! {
        /// Against a vector: the same items, balanced at every step.
        #[test]
        fn is_a_list(begin in 0usize..200, steps in proptest::collection::vec((0u8..6, 0usize..1000, 0u32..9), 0..80)) {
            let mut list: Vec<u32> = (0..begin as u32).collect();
            let mut tree = Tree::of(list.clone());
            for (step, at, item) in steps {
                let at = if list.is_empty() { 0 } else { at % list.len() };
                match step {
                    0 => {
                        list.insert(at, item);
                        tree = tree.insert(at, item);
                    }
                    1 if !list.is_empty() => {
                        list.remove(at);
                        tree = tree.remove(at);
                    }
                    2 if !list.is_empty() => {
                        list[at] = item;
                        tree = tree.set(at, item);
                    }
                    3 => {
                        let (first, second) = tree.split(at);
                        check(&first);
                        check(&second);
                        tree = second.concat(&first);
                        list.rotate_left(at);
                    }
                    4 => {
                        list.push(item);
                        tree = tree.insert(tree.len(), item);
                    }
                    _ => prop_assert_eq!(tree.get(at), list.get(at)),
                }
                check(&tree);
                prop_assert_eq!(tree.iter().copied().collect::<Vec<_>>(), list.clone());
                prop_assert_eq!(tree.nesting(), list.iter().copied().max().unwrap_or(0));
                for limit in [4, 9] {
                    let all = tree.all(NonZeroU64::new(limit), &mut |item| Ok::<_, ()>(u64::from(*item) < limit));
                    prop_assert_eq!(all, Ok(list.iter().all(|item| u64::from(*item) < limit)));
                }
            }
        }
    }
}
