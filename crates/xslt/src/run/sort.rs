//! `xsl:sort` (XSLT 1.0 section 10).

use super::{Engine, Focus, Frame, Res};
use crate::collation::{CollationKey, Texts};
use crate::model::{PlainSort, Sort};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::cmp::Ordering;
use xpath::atomic::Atomic;
use xpath::{Collation, Node, Value};

/// The order of strings.
#[derive(Clone, Copy)]
enum Strings {
    /// By the collation for words, whatever the language.
    Words {
        upper_first: bool,
    },
    By(Collation),
}

enum Keys {
    Text(Box<Texts>),
    Number(Vec<f64>),
    Typed(Vec<TypedKey>),
}

impl Engine<'_> {
    /// Sorts `nodes`, stably.
    pub(super) fn sort(
        &self,
        nodes: &mut Vec<Node>,
        sorts: &[Sort],
        focus: Focus,
        frame: &mut Frame,
    ) -> Res<()> {
        // A single key is computed only if it may have a wrong type.
        if nodes.is_empty() || nodes.len() == 1 && !self.plan.version2 {
            return Ok(());
        }
        if let [sort] = sorts
            && let Some(plain) = sort.plain
        {
            return self.sort_plainly(nodes, sort, plain, focus, frame);
        }
        let order = self.sorted_order(nodes, sorts, focus, frame, None)?;
        *nodes = order.into_iter().map(|at| nodes[at]).collect();
        Ok(())
    }

    /// Sorts by one key whose type is known ([`Sort::plain`]). One number or text for each node, without allocation where
    /// there are few.
    fn sort_plainly(
        &self,
        nodes: &mut [Node],
        sort: &Sort,
        plain: PlainSort,
        focus: Focus,
        frame: &Frame,
    ) -> Res<()> {
        self.spend(nodes.len() as u64)?;
        let mut inner = Focus { position: 0, size: nodes.len() as u32, rule: super::NO_RULE, ..focus };
        if plain.numeric {
            let mut keys: SmallVec<[(f64, Node); 16]> = SmallVec::new();
            for node in &*nodes {
                inner.node = *node;
                inner.position += 1;
                let key = match &sort.select {
                    Some(select) => match self.name_path(select, *node).and_then(|path| path.text()) {
                        Some(text) => self.number_of(text),
                        None => self.number_key(select, inner, frame, sort.place)?,
                    },
                    None => self.number_of(&self.context_text(*node)),
                };
                keys.push((key, *node));
            }
            keys.sort_by(|a, b| {
                let compared = compare_numbers(a.0, b.0);
                if plain.descending { compared.reverse() } else { compared }
            });
            for (node, (_, sorted)) in nodes.iter_mut().zip(keys) {
                *node = sorted;
            }
            return Ok(());
        }
        let mut texts = Texts::new(nodes.len(), plain.upper_first);
        for node in &*nodes {
            inner.node = *node;
            inner.position += 1;
            match &sort.select {
                Some(select) => match self.name_path(select, *node).and_then(|path| path.text()) {
                    Some(text) => texts.push(text),
                    None => match self.quick_text(select, *node, frame) {
                        Some(text) => texts.push(&text),
                        None => self.with(select, inner, frame, sort.place, |e, cx| {
                            texts.push(&e.evaluate_string(cx)?);
                            Ok(())
                        })?,
                    },
                },
                None => texts.push(&self.context_text(*node)),
            }
        }
        texts.prepare();
        let mut order: SmallVec<[(u32, Node); 16]> =
            nodes.iter().enumerate().map(|(at, node)| (at as u32, *node)).collect();
        order.sort_by(|a, b| {
            let compared = texts.compare(a.0 as usize, b.0 as usize);
            if plain.descending { compared.reverse() } else { compared }
        });
        for (node, (_, sorted)) in nodes.iter_mut().zip(order) {
            *node = sorted;
        }
        Ok(())
    }

    /// The order of `nodes` by the sort keys. `groups`: of groups, whose first items `nodes` are, the items and the key.
    pub(super) fn sorted_order<'s>(
        &self,
        nodes: &[Node],
        sorts: &'s [Sort],
        focus: Focus,
        frame: &mut Frame,
        groups: Option<&dyn Fn(usize) -> (Value, Value)>,
    ) -> Res<Vec<usize>> {
        let mut columns = Vec::new();
        for sort in sorts {
            let option = |avt: &'s Option<crate::model::Avt>| match avt {
                Some(avt) => self.avt(avt, focus, frame, sort.place),
                None => Ok(Cow::Borrowed("")),
            };
            let descending = option(&sort.order)?;
            let case_order = option(&sort.case_order)?;
            let data_type = option(&sort.data_type)?;
            if sort.typed {
                self.is_one_of("order", &descending, &["ascending", "descending"], sort.place)?;
                self.is_one_of("case-order", &case_order, &["upper-first", "lower-first"], sort.place)?;
                if !data_type.contains(':') {
                    self.is_one_of("data-type", &data_type, &["text", "number"], sort.place)?;
                }
            }
            let (descending, upper_first) =
                (descending.trim() == "descending", case_order.trim() == "upper-first");
            let data_type = data_type.trim();
            let numeric = data_type == "number";
            let collation = match &sort.collation {
                Some(_) => Some(self.collation(&sort.collation, "XTDE1035", focus, frame, sort.place)?),
                None => None,
            };
            let by_collation = collation.is_some() || !sort.words;
            if sort.typed && (data_type.is_empty() || data_type == "text" && by_collation) {
                let order = match collation {
                    Some(collation) => Strings::By(collation),
                    None if sort.words => Strings::Words { upper_first },
                    None => Strings::By(Collation::default()),
                };
                let keys = self.typed_keys(nodes, sort, focus, frame, order, groups)?;
                columns.push((Keys::Typed(keys), descending));
                continue;
            }
            let size = nodes.len();
            self.spend(size as u64)?;
            let inner = |at: usize, node: &Node| Focus {
                node: *node,
                position: at as u32 + 1,
                size: size as u32,
                rule: super::NO_RULE,
                ..focus
            };
            let mut keys = if numeric {
                Keys::Number(Vec::with_capacity(size))
            } else {
                Keys::Text(Box::new(Texts::new(size, upper_first)))
            };
            for (at, node) in nodes.iter().enumerate() {
                let focus = inner(at, node);
                if let Some(groups) = groups {
                    let (group, key) = groups(at);
                    let change = |dynamic: &mut super::dynamic::Dynamic| {
                        dynamic.group = Some(group);
                        dynamic.key = Some(key);
                    };
                    self.with_dynamic(focus, change, |focus| {
                        self.push_key(&mut keys, sort, *node, focus, frame)
                    })?;
                    continue;
                }
                self.push_key(&mut keys, sort, *node, focus, frame)?;
            }
            columns.push((keys, descending));
        }
        for (keys, _) in &mut columns {
            if let Keys::Text(texts) = keys {
                texts.prepare();
            }
        }
        for ((keys, _), sort) in columns.iter().zip(sorts) {
            if let Keys::Typed(list) = keys
                && !TypedKey::are_comparable(list)
            {
                let message = "XTDE1030: the sort keys are of types that cannot be compared";
                return Err(self.fail(sort.place, message.into()));
            }
        }
        let mut order: Vec<usize> = (0..nodes.len()).collect();
        order.sort_by(|a, b| {
            let (a, b) = (*a, *b);
            for (keys, descending) in &columns {
                let compared = match keys {
                    Keys::Text(list) => list.compare(a, b),
                    Keys::Number(list) => compare_numbers(list[a], list[b]),
                    Keys::Typed(list) => list[a].compare(&list[b]),
                };
                let compared = if *descending { compared.reverse() } else { compared };
                if compared != Ordering::Equal {
                    return compared;
                }
            }
            Ordering::Equal
        });
        Ok(order)
    }

    /// The effective value of an attribute of a sort key is one of those that it may have.
    fn is_one_of(&self, name: &str, value: &str, allowed: &[&str], place: crate::model::Place) -> Res<()> {
        if value.is_empty() || allowed.contains(&value.trim()) {
            return Ok(());
        }
        Err(self.fail(place, format!("XTDE0030: {name}=\"{value}\" must be {}", allowed.join(" or "))))
    }

    /// Adds the key of one item.
    fn push_key(&self, keys: &mut Keys, sort: &Sort, node: Node, focus: Focus, frame: &mut Frame) -> Res<()> {
        if !sort.body.is_empty() {
            let value = self.sequence_of(&sort.body, focus, frame, sort.place)?;
            let text = self.joined(&value, " ");
            match keys {
                Keys::Number(list) => list.push(self.number_of(&text)),
                Keys::Text(list) => list.push(&text),
                Keys::Typed(_) => {}
            }
            return Ok(());
        }
        match keys {
            Keys::Number(list) => list.push(match &sort.select {
                Some(select) if let Some(number) = self.only_number(select, node) => number,
                Some(select) => self.number_key(select, focus, frame, sort.place)?,
                None => self.number_of(&self.context_text(node)),
            }),
            Keys::Text(list) => match &sort.select {
                Some(select) => self.with(select, focus, frame, sort.place, |e, cx| {
                    list.push(&e.evaluate_string(cx)?);
                    Ok(())
                })?,
                None => list.push(&self.context_text(node)),
            },
            Keys::Typed(_) => {}
        }
        Ok(())
    }

    /// `number()` of the value of an expression, by the version of the processor.
    fn number_key(
        &self,
        select: &crate::expr::Expr,
        focus: Focus,
        frame: &Frame,
        place: crate::model::Place,
    ) -> Res<f64> {
        if !self.plan.version2 {
            return self.with(select, focus, frame, place, |e, cx| e.evaluate_number(cx));
        }
        let value = self.value(select, focus, frame, place)?;
        Ok(value.item(0).map_or(f64::NAN, |item| self.atom(item).to_double()))
    }

    /// `number()` of a text, by the version of the processor: from XPath 2.0 on also with an exponent.
    fn number_of(&self, text: &str) -> f64 {
        match self.plan.version2 {
            true => xpath::atomic::parse_double(text).unwrap_or(f64::NAN),
            false => xpath::number::parse(text),
        }
    }

    /// The value of the only node of a path of names, if it is a number by all versions.
    fn only_number(&self, select: &crate::expr::Expr, node: Node) -> Option<f64> {
        Some(xpath::number::parse(self.only_text(select, node)?)).filter(|number| !number.is_nan())
    }

    /// The text of a focus's context item.
    fn context_text(&self, node: Node) -> String {
        self.item(node).map_or_else(String::new, |item| self.item_text(&item))
    }

    /// Keys of XSLT 2.0: at most one atomic value each, untyped ones as strings.
    fn typed_keys(
        &self,
        nodes: &[Node],
        sort: &Sort,
        focus: Focus,
        frame: &mut Frame,
        order: Strings,
        groups: Option<&dyn Fn(usize) -> (Value, Value)>,
    ) -> Res<Vec<TypedKey>> {
        let size = nodes.len() as u32;
        let mut keys = Vec::with_capacity(nodes.len());
        for (at, node) in nodes.iter().enumerate() {
            let inner = Focus { node: *node, position: at as u32 + 1, size, rule: super::NO_RULE, ..focus };
            if let (Some(select), None, Strings::By(collation)) = (&sort.select, groups, order)
                && collation == Collation::default()
                && let Some(text) = self.only_text(select, *node)
                && !text.is_empty()
            {
                keys.push(TypedKey::Value(Atomic::string(text)));
                continue;
            }
            let value = match (&sort.select, groups) {
                (None, None) if !sort.body.is_empty() => {
                    self.sequence_of(&sort.body, inner, frame, sort.place)?
                }
                (None, Some(groups)) if !sort.body.is_empty() => {
                    let (group, key) = groups(at);
                    let change = |dynamic: &mut super::dynamic::Dynamic| {
                        dynamic.group = Some(group);
                        dynamic.key = Some(key);
                    };
                    self.with_dynamic(inner, change, |inner| {
                        self.sequence_of(&sort.body, inner, frame, sort.place)
                    })?
                }
                (None, _) => self.item(*node).map_or(Value::Empty, Value::from),
                (Some(select), None) => self.value(select, inner, frame, sort.place)?,
                (Some(select), Some(groups)) => {
                    let (group, key) = groups(at);
                    let change = |dynamic: &mut super::dynamic::Dynamic| {
                        dynamic.group = Some(group);
                        dynamic.key = Some(key);
                    };
                    self.with_dynamic(inner, change, |inner| self.value(select, inner, frame, sort.place))?
                }
            };
            keys.push(match (value.len(), value.item(0)) {
                // `data-type="text"` takes the string value of every key.
                (0, _) | (_, None) if sort.data_type.is_some() => TypedKey::Value(Atomic::string("")),
                (0, _) | (_, None) => TypedKey::None,
                (1, Some(item)) => match (self.atom(item), order) {
                    (Atomic::Untyped(text) | Atomic::String(text), Strings::Words { upper_first }) => {
                        TypedKey::Words(CollationKey::new(&text, upper_first))
                    }
                    (atom, Strings::By(collation)) => TypedKey::Value(match &*collation.atom(&atom) {
                        Atomic::Untyped(text) => Atomic::String(text.clone()),
                        other if sort.data_type.is_some() => Atomic::string(&*other.to_text()),
                        other => other.clone(),
                    }),
                    (atom, _) => TypedKey::Value(atom),
                },
                (count, _) => {
                    let message = format!("XTTE1020: a sort key must be a single item, these are {count}");
                    return Err(self.fail(sort.place, message));
                }
            });
        }
        Ok(keys)
    }
}

/// NaN before all numbers.
fn compare_numbers(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        _ => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
    }
}

/// A sort key of XSLT 2.0: compared by the type of its values; an absent one comes first.
pub(super) enum TypedKey {
    None,
    /// With `lang`: by the collation for words.
    Words(CollationKey),
    Value(Atomic),
}

impl TypedKey {
    /// Whether all of them have a common order.
    pub fn are_comparable(keys: &[TypedKey]) -> bool {
        let mut values = keys.iter().filter_map(|key| match key {
            TypedKey::Value(atom) => Some(atom),
            _ => None,
        });
        let Some(first) = values.next() else { return true };
        first.is_ordered() && values.all(|other| first.is_ordered_with(other))
    }

    /// The order of two keys of a list that [are comparable](TypedKey::are_comparable): a total one.
    pub fn compare(&self, other: &TypedKey) -> Ordering {
        match (self, other) {
            (TypedKey::None, TypedKey::None) => Ordering::Equal,
            (TypedKey::None, _) => Ordering::Less,
            (_, TypedKey::None) => Ordering::Greater,
            (TypedKey::Words(a), TypedKey::Words(b)) => a.cmp(b),
            (TypedKey::Value(a), TypedKey::Value(b)) => a.total_order(b),
            _ => Ordering::Equal,
        }
    }
}
