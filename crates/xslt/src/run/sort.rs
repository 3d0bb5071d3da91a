//! `xsl:sort` (XSLT 1.0 section 10).

use super::{Engine, Focus, Frame, Res};
use crate::collation::Texts;
use crate::model::Sort;
use std::borrow::Cow;
use std::cmp::Ordering;
use xpath::Node;

enum Keys {
    Text(Texts),
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
        if nodes.is_empty() {
            return Ok(());
        }
        let mut columns = Vec::new();
        for sort in sorts {
            let option = |avt| match avt {
                Some(avt) => self.avt(avt, focus, frame, sort.place),
                None => Ok(Cow::Borrowed("")),
            };
            let descending = option(sort.order.as_ref())? == "descending";
            let upper_first = option(sort.case_order.as_ref())? == "upper-first";
            let numeric = option(sort.data_type.as_ref())? == "number";
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
                Keys::Text(Texts::new(size, upper_first))
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
                    Keys::Text(list) => match &sort.select {
                        Some(select) => self.with(select, focus, frame, sort.place, |e, cx| {
                            list.push(&e.evaluate_string(cx)?);
                            Ok(())
                        })?,
                        None => list.push(&self.node_string(*node)),
                    },
                }
            }
            columns.push((keys, descending));
        }
        for (keys, _) in &mut columns {
            if let Keys::Text(texts) = keys {
                texts.prepare();
            }
        }
        let mut order: Vec<usize> = (0..nodes.len()).collect();
        order.sort_by(|a, b| {
            for (keys, descending) in &columns {
                let compared = match keys {
                    Keys::Text(list) => list.compare(*a, *b),
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
