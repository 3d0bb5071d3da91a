//! `xsl:sort` (XSLT 1.0 section 10).

use super::{Engine, Focus, Frame, Res};
use crate::collation::CollationKey;
use crate::model::{Avt, Sort};
use std::cmp::Ordering;
use xpath::Node;

enum Keys {
    Text(Vec<CollationKey>),
    Number(Vec<f64>),
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
        let mut columns = Vec::new();
        for sort in sorts {
            let option = |avt: &Option<Avt>| match avt {
                Some(avt) => self.avt(avt, focus, frame, sort.place).map(std::borrow::Cow::into_owned),
                None => Ok(String::new()),
            };
            let descending = option(&sort.order)? == "descending";
            let upper_first = option(&sort.case_order)? == "upper-first";
            let numeric = option(&sort.data_type)? == "number";
            let size = nodes.len();
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
                Keys::Text(Vec::with_capacity(size))
            };
            for (at, node) in nodes.iter().enumerate() {
                let focus = inner(at, node);
                match &mut keys {
                    Keys::Number(list) => list.push(match &sort.select {
                        Some(select) => {
                            self.with(select, focus, frame, sort.place, |e, cx| e.evaluate_number(cx))?
                        }
                        None => xpath::number::parse(&self.node_string(*node)),
                    }),
                    Keys::Text(list) => list.push(match &sort.select {
                        Some(select) => {
                            CollationKey::new(&self.string(select, focus, frame, sort.place)?, upper_first)
                        }
                        None => CollationKey::new(&self.node_string(*node), upper_first),
                    }),
                }
            }
            columns.push((keys, descending));
        }
        let mut order: Vec<usize> = (0..nodes.len()).collect();
        order.sort_by(|a, b| {
            for (keys, descending) in &columns {
                let compared = match keys {
                    Keys::Text(list) => list[*a].cmp(&list[*b]),
                    Keys::Number(list) => compare_numbers(list[*a], list[*b]),
                };
                let compared = if *descending { compared.reverse() } else { compared };
                if compared != Ordering::Equal {
                    return compared;
                }
            }
            Ordering::Equal
        });
        *nodes = order.into_iter().map(|at| nodes[at]).collect();
        Ok(())
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
