//! What several declarations of the same import precedence say about one thing must be the same.

use crate::model::Place;
use std::collections::HashMap;
use std::hash::Hash;

/// Values by what they are about: the import precedence, the value, and the place of a declaration of that precedence that says
/// something else.
pub(super) struct Agreement<K> {
    said: HashMap<K, (u32, String, Option<Place>)>,
}

impl<K> Default for Agreement<K> {
    fn default() -> Self {
        Agreement { said: HashMap::new() }
    }
}

impl<K: Eq + Hash> Agreement<K> {
    /// A declaration says `value`; they come in ascending precedence.
    pub fn say(&mut self, about: K, precedence: u32, value: String, place: Place) {
        let earlier = self.said.remove(&about);
        let contrary = earlier
            .filter(|(before, said, contrary)| {
                *before == precedence && (contrary.is_some() || *said != value)
            })
            .map(|(_, _, contrary)| contrary.unwrap_or(place));
        self.said.insert(about, (precedence, value, contrary));
    }

    /// What they contradict each other about, and where.
    pub fn contraries(self) -> impl Iterator<Item = (K, Place)> {
        self.said.into_iter().filter_map(|(about, (_, _, contrary))| Some((about, contrary?)))
    }
}
