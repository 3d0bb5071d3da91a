//! What is taken of each part, and how one message is made of it: pieces of the parts where they are, a changed tree of the
//! first part, or JSON.

use super::Core;
use flow::aggregation::Extracted;
use flow::{Context, Expression, Fault};
use message::{Assembly, Envelope, Kind, Piece, Shell, Value, XmlValue};
use std::sync::Arc;
use xml::{NodeId, NodeKind};

impl Core {
    /// What is taken of a part that is not the first.
    ///
    /// # Errors
    /// The run has to end; what is wrong with the part is a fault of the aggregate.
    pub(super) fn taken(&self, part: &mut Context) -> Result<Extracted, Fault> {
        let taken = match &self.expression {
            Some(expression) if expression.is_json() => expression
                .json_values(part)
                .and_then(|values| values.ok_or_else(|| nothing(expression)))
                .map(Extracted::Json),
            _ => self.pieces(part).map(Extracted::Pieces),
        };
        Ok(meter::finished(taken)?.unwrap_or_else(|fault| Extracted::Failed(Box::new(fault))))
    }

    /// The elements (and texts) of a part that are aggregated, where they are.
    fn pieces(&self, part: &mut Context) -> Result<Vec<Piece>, Fault> {
        let nodes = self.selected(part)?;
        let envelope = part.shared_envelope()?;
        if nodes.iter().any(|&node| node == envelope.root || node == envelope.body) {
            return Err(of_the_envelope());
        }
        // The whole of what a split made this part of is where it was: the tree that was built to look at it can go.
        if let [node] = nodes[..]
            && envelope.payload() == Some(node)
            && part.payload.is_assembled()
        {
            let limits = part.services().limits.clone();
            return Ok(part.payload.first_piece(&limits)?.into_iter().collect());
        }
        Ok(nodes.into_iter().map(|node| (Arc::clone(&envelope), node)).collect())
    }

    /// Adds the others to the first message, in the order in which they arrived.
    pub(super) fn merge(&self, first: &mut Context, others: Vec<Extracted>) -> Result<(), Fault> {
        match &self.expression {
            Some(expression) if expression.is_json() => self.merge_json(expression, first, others),
            _ => self.merge_xml(first, others),
        }
    }

    fn merge_json(
        &self,
        expression: &Expression,
        first: &mut Context,
        others: Vec<Extracted>,
    ) -> Result<(), Fault> {
        let mut values = Vec::with_capacity(others.len() + 1);
        values.push(expression.json_values(first)?.ok_or_else(|| nothing(expression))?);
        for other in others {
            match other {
                Extracted::Json(value) => values.push(value),
                Extracted::Failed(fault) => return Err(*fault),
                Extracted::Pieces(_) => return Err(nothing(expression)),
            }
        }
        let mut merged = if self.child { one_object(values)? } else { serde_json::Value::Array(values) };
        if let Some(name) = &self.enclosing {
            let (element, root) = enclosing(name, first)?;
            let name = element.document.local(root).to_owned();
            merged = serde_json::Value::Object([(name, merged)].into_iter().collect());
        }
        first.payload.set_json_value(merged);
        Ok(())
    }

    fn merge_xml(&self, first: &mut Context, others: Vec<Extracted>) -> Result<(), Fault> {
        let nodes = self.selected(first)?;
        let enclosing = self.enclosing.as_ref().map(|name| enclosing(name, first)).transpose()?;
        if let Some(merged) = self.assembled(first, &nodes, &enclosing, &others)? {
            first.payload.set_assembly(merged);
            return Ok(());
        }
        self.merge_trees(first, nodes, enclosing, &others)
    }

    pub(super) fn merge_trees(
        &self,
        first: &mut Context,
        nodes: Vec<NodeId>,
        enclosing: Option<(Arc<XmlValue>, NodeId)>,
        others: &[Extracted],
    ) -> Result<(), Fault> {
        failure(others)?;
        let envelope = first.envelope_mut()?;
        let body = envelope.body;
        // What was selected further down moves up, and what held it goes.
        let mut holders = Vec::new();
        for node in nodes {
            if node == envelope.root || node == body || Some(node) == envelope.header {
                return Err(of_the_envelope());
            }
            if envelope.document.parent(node) == Some(body) {
                continue;
            }
            let mut top = node;
            while let Some(parent) = envelope.document.parent(top).filter(|&parent| parent != body) {
                top = parent;
            }
            if envelope.document.parent(top) == Some(body) && !holders.contains(&top) {
                holders.push(top);
            }
            envelope.document.append(body, node);
        }
        for holder in holders {
            envelope.document.detach(holder);
        }
        for (piece_envelope, node) in pieces_of(others) {
            envelope.document.copy_from(body, &piece_envelope.document, *node);
        }
        if let Some((element, root)) = enclosing {
            let children: Vec<NodeId> = envelope.document.children(body).collect();
            let around = envelope.document.copy_from(body, &element.document, root);
            for child in children {
                envelope.document.append(around, child);
            }
        }
        Ok(())
    }

    /// The same in pieces, which most aggregates are until they are sent; `None`: the tree of the first message has to be
    /// changed.
    pub(super) fn assembled(
        &self,
        first: &mut Context,
        nodes: &[NodeId],
        enclosing: &Option<(Arc<XmlValue>, NodeId)>,
        others: &[Extracted],
    ) -> Result<Option<Assembly>, Fault> {
        if matches!(first.payload.reading().kind, Kind::Related | Kind::FormData) {
            return Ok(None);
        }
        let envelope = first.shared_envelope()?;
        let Some(kept) = body_of(&envelope, nodes) else { return Ok(None) };
        let mut pieces: Vec<Piece> = Vec::with_capacity(kept.len() + others.len());
        pieces.extend(kept.into_iter().map(|node| (Arc::clone(&envelope), node)));
        failure(others)?;
        pieces.extend(pieces_of(others).cloned());
        let mut shell = envelope.emptied();
        let place = match enclosing {
            Some((element, root)) => shell.document.copy_from(shell.body, &element.document, *root),
            None => shell.body,
        };
        Ok(Some(Assembly::new(Arc::new(Shell::within(shell, place)), pieces)))
    }

    /// The elements (and texts) of a message that are aggregated.
    pub(super) fn selected(&self, context: &mut Context) -> Result<Vec<NodeId>, Fault> {
        let missing = || Fault::new("Could not find matching elements to aggregate.");
        let Some(expression) = &self.expression else {
            return Ok(vec![context.shared_envelope()?.payload().ok_or_else(missing)?]);
        };
        if expression.need().is_whole() {
            context.shared_envelope()?;
        }
        let nodes = expression.nodes(context)?;
        let document = &context.envelope()?.document;
        let kinds = [NodeKind::Element, NodeKind::Text];
        let nodes: Vec<_> = nodes.into_iter().filter(|&node| kinds.contains(&document.kind(node))).collect();
        if nodes.is_empty() { Err(missing()) } else { Ok(nodes) }
    }
}

/// What is in the body of the first message once the nodes that were selected are there and what held them is gone.
/// `None`: nodes are in each other or beside the body, or are the envelope's own.
fn body_of(envelope: &Envelope, nodes: &[NodeId]) -> Option<Vec<NodeId>> {
    let document = &envelope.document;
    if !document.is_ordered() || !nodes.is_sorted() {
        return None;
    }
    let (mut moved, mut holders) = (Vec::new(), Vec::new());
    for &node in nodes {
        let mut top = node;
        loop {
            let parent = document.parent(top)?;
            if parent == envelope.body {
                break;
            }
            if nodes.binary_search(&parent).is_ok() {
                return None;
            }
            top = parent;
        }
        if top != node {
            moved.push(node);
            if holders.last() != Some(&top) {
                holders.push(top);
            }
        }
    }
    let stays = |child: &NodeId| holders.binary_search(child).is_err();
    let mut kept: Vec<NodeId> = document.children(envelope.body).filter(stays).collect();
    kept.append(&mut moved);
    Some(kept)
}

fn of_the_envelope() -> Fault {
    Fault::new("parts of the SOAP envelope itself cannot be aggregated")
}

pub(super) fn nothing(expression: &Expression) -> Fault {
    Fault::new(format!("Error evaluating expression: {}", expression.source())).because("it selects nothing")
}

/// The element that a property holds.
pub(super) fn enclosing(name: &str, context: &Context) -> Result<(Arc<XmlValue>, NodeId), Fault> {
    let missing =
        || Fault::new(format!("the enclosingElementProperty {name} of aggregate holds no XML element"));
    let Some(Value::Xml(element)) = context.properties.get(name) else { return Err(missing()) };
    let root =
        element.nodes.first().copied().filter(|&node| element.document.kind(node) == NodeKind::Element);
    Ok((Arc::clone(element), root.ok_or_else(missing)?))
}

/// Objects merged into one; the values of a key that several have become an array.
pub(super) fn one_object(values: Vec<serde_json::Value>) -> Result<serde_json::Value, Fault> {
    use serde_json::Value as Json;
    let mut merged = serde_json::Map::new();
    for value in values {
        let Json::Object(members) = value else {
            return Err(Fault::new("aggregateElementType=\"child\" merges JSON objects; a part is none"));
        };
        for (name, value) in members {
            match merged.get_mut(&name) {
                None => {
                    merged.insert(name, value);
                }
                Some(Json::Array(existing)) => match value {
                    Json::Array(more) => existing.extend(more),
                    value => existing.push(value),
                },
                Some(existing) => {
                    let first = existing.take();
                    let mut list = vec![first];
                    match value {
                        Json::Array(more) => list.extend(more),
                        one => list.push(one),
                    }
                    *existing = Json::Array(list);
                }
            }
        }
    }
    Ok(Json::Object(merged))
}

/// The fault of the first part that nothing could be taken of.
fn failure(parts: &[Extracted]) -> Result<(), Fault> {
    let failed =
        parts.iter().find_map(|part| if let Extracted::Failed(fault) = part { Some(fault) } else { None });
    failed.map_or(Ok(()), |fault| Err((**fault).clone()))
}

fn pieces_of(parts: &[Extracted]) -> impl Iterator<Item = &Piece> {
    parts.iter().flat_map(|part| match part {
        Extracted::Pieces(pieces) => pieces.as_slice(),
        Extracted::Json(_) | Extracted::Failed(_) => &[],
    })
}
