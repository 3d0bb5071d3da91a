//! `xsl:for-each-group`: the groups of a population, by keys or by patterns, and their order.

use super::out::Out;
use super::{Engine, Focus, Frame, NO_RULE, Res};
use crate::model::{Avt, Place, Sort};
use crate::version2::{ForEachGroup, Grouping};
use xpath::atomic::{Alike, Atomic};
use xpath::{Collation, Item, Node, Value};

impl Engine<'_> {
    pub(super) fn for_each_group(
        &self,
        op: &ForEachGroup,
        focus: Focus,
        frame: &mut Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        let mark = self.mark();
        let population = self.items(&op.select, focus, frame, place)?;
        let size = population.len() as u32;
        let mut groups: Vec<(Value, Vec<Node>)> = Vec::new();
        let at =
            |at: usize, node: Node| Focus { node, position: at as u32 + 1, size, rule: NO_RULE, ..focus };
        let collation = self.collation(&op.collation, "XTDE1110", focus, frame, place)?;
        let same = |a: &Atomic, b: &Atomic| collation.atom(a).is_alike(&collation.atom(b));
        match &op.by {
            Grouping::By(key) if op.composite => {
                let mut numbers: Alike<usize> = Alike::default();
                for (index, node) in population.iter().enumerate() {
                    self.tick(out)?;
                    let value = self.value(key, at(index, *node), frame, place)?;
                    let atoms: Vec<Atomic> = value.items().map(|item| self.key_atom(item)).collect();
                    let collated: Vec<Atomic> =
                        atoms.iter().map(|atom| collation.atom(atom).into_owned()).collect();
                    let number = *numbers.get_or_add(&collated, || {
                        let key = Value::from_items(atoms.into_iter().map(Item::Atomic).collect());
                        groups.push((key, Vec::new()));
                        groups.len() - 1
                    });
                    groups[number].1.push(*node);
                }
            }
            Grouping::Adjacent(key) if op.composite => {
                for (index, node) in population.iter().enumerate() {
                    self.tick(out)?;
                    let value = self.value(key, at(index, *node), frame, place)?;
                    let atoms: Vec<Atomic> = value.items().map(|item| self.key_atom(item)).collect();
                    let is_its = |key: &Value| {
                        key.len() == atoms.len()
                            && key.items().zip(&atoms).all(|(key, atom)| same(&self.atom(key), atom))
                    };
                    match groups.last_mut() {
                        Some((key, members)) if is_its(key) => members.push(*node),
                        _ => {
                            let key = Value::from_items(atoms.into_iter().map(Item::Atomic).collect());
                            groups.push((key, vec![*node]));
                        }
                    }
                }
            }
            Grouping::By(key) => {
                let mut numbers: Alike<usize> = Alike::default();
                // By group: the item of the population that was added to it last.
                let mut latest: Vec<usize> = Vec::new();
                for (index, node) in population.iter().enumerate() {
                    self.tick(out)?;
                    let value = self.value(key, at(index, *node), frame, place)?;
                    for item in value.items() {
                        let atom = self.key_atom(item);
                        let collated = collation.atom(&atom);
                        let number = *numbers.get_or_add(std::slice::from_ref(&*collated), || {
                            groups.push((Value::from(atom.clone()), Vec::new()));
                            groups.len() - 1
                        });
                        // An item with the same key twice is in the group once.
                        latest.resize(groups.len(), usize::MAX);
                        if std::mem::replace(&mut latest[number], index) != index {
                            groups[number].1.push(*node);
                        }
                    }
                }
            }
            Grouping::Adjacent(key) => {
                for (index, node) in population.iter().enumerate() {
                    self.tick(out)?;
                    let value = self.value(key, at(index, *node), frame, place)?;
                    let (1, Some(item)) = (value.len(), value.item(0)) else {
                        let message = format!(
                            "XTTE1100: a key of group-adjacent must be one item, these are {}",
                            value.len()
                        );
                        return Err(self.fail(place, message));
                    };
                    let atom = self.key_atom(item);
                    match groups.last_mut() {
                        Some((key, members)) if key.single_atomic().is_some_and(|key| same(&key, &atom)) => {
                            members.push(*node);
                        }
                        _ => groups.push((Value::from(atom), vec![*node])),
                    }
                }
            }
            Grouping::StartingWith(pattern) | Grouping::EndingWith(pattern) => {
                let ends = matches!(op.by, Grouping::EndingWith(_));
                let mut begin = true;
                for node in &population {
                    if node.as_atomic().is_some() && !self.plan.version3 {
                        return Err(
                            self.fail(place, "XTTE1120: patterns group nodes, not atomic values".into())
                        );
                    }
                    self.tick(out)?;
                    let matches = self.matches(pattern, &Focus { node: *node, ..focus }, frame)?;
                    match groups.last_mut() {
                        Some((_, members)) if !begin && (ends || !matches) => members.push(*node),
                        _ => groups.push((Value::Empty, vec![*node])),
                    }
                    begin = ends && matches;
                }
            }
        }
        if !op.sorts.is_empty() {
            self.sort_groups(&mut groups, &op.sorts, focus, frame)?;
        }
        let mut inner = Focus { position: 0, size: groups.len() as u32, rule: NO_RULE, ..focus };
        let keyed = !self.plan.version3 || matches!(op.by, Grouping::By(_) | Grouping::Adjacent(_));
        for (key, members) in groups {
            self.tick(out)?;
            inner.node = members.first().copied().unwrap_or(Node::ABSENT);
            inner.position += 1;
            let group = self.value_of_kept(&members);
            self.with_dynamic(
                inner,
                |dynamic| {
                    dynamic.group = Some(group);
                    dynamic.key = keyed.then_some(key);
                },
                |focus| self.exec(&op.body, focus, frame, out),
            )?;
        }
        self.release(mark);
        Ok(())
    }

    fn sort_groups(
        &self,
        groups: &mut Vec<(Value, Vec<Node>)>,
        sorts: &[Sort],
        focus: Focus,
        frame: &mut Frame,
    ) -> Res<()> {
        let firsts: Vec<Node> =
            groups.iter().map(|(_, members)| members.first().copied().unwrap_or(Node::ABSENT)).collect();
        let seen = |at: usize| (self.value_of_kept(&groups[at].1), groups[at].0.clone());
        let order = self.sorted_order(&firsts, sorts, focus, frame, Some(&seen))?;
        let mut slots: Vec<Option<(Value, Vec<Node>)>> =
            std::mem::take(groups).into_iter().map(Some).collect();
        *groups = order.into_iter().filter_map(|at| slots[at].take()).collect();
        Ok(())
    }

    /// A grouping key: untyped values count as strings.
    pub(super) fn key_atom(&self, item: Item) -> Atomic {
        match self.atom(item) {
            Atomic::Untyped(text) => Atomic::String(text),
            atom => atom,
        }
    }

    /// The collation of an attribute; `code`: of the error where it is unknown.
    pub(super) fn collation(
        &self,
        uri: &Option<Avt>,
        code: &str,
        focus: Focus,
        frame: &Frame,
        place: Place,
    ) -> Res<Collation> {
        let Some(uri) = uri else { return Ok(Collation::default()) };
        let uri = self.avt(uri, focus, frame, place)?;
        Collation::find(&uri).map_err(|message| self.fail(place, format!("{code}: {message}")))
    }
}
