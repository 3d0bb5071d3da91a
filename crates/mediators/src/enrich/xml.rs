//! Nodes and texts go from place to place of the XML view.

use super::{Action, Enrich, Source, Target, filled, invalid_target, parsed};
use flow::library::Scope;
use flow::{Context, Fault};
use message::{Envelope, Value, XmlValue};
use serde_json::Value as Json;
use std::sync::Arc;
use xml::{Document, NodeId, NodeKind};

/// What an XML source gives: nodes of a document of their own, or a text.
enum Part {
    Nodes(Arc<XmlValue>),
    /// Shared with a property: it may be large.
    Text(Arc<str>),
}

impl Enrich {
    pub(super) fn xml(&self, context: &mut Context) -> Result<(), Fault> {
        if self.action == Action::Remove || matches!(self.target, Target::Key(..)) {
            return match self.target {
                Target::Body | Target::Property(..) => Ok(()),
                _ => Err(invalid_target()),
            };
        }
        let (part, moved) = self.xml_source(context)?;
        let part = match part {
            Some(part) => part,
            None => {
                tracing::error!(message_id = %context.message_id(), place = context.place(), "enrich: the source is empty");
                match &self.target {
                    // What is to be added to a property does not take its place.
                    Target::Property(Scope::Default, name) if self.action != Action::Child => {
                        context.properties.set(Arc::clone(name), Value::from(""));
                    }
                    Target::Envelope => return Err(invalid_target()),
                    _ => {}
                }
                return Ok(());
            }
        };
        // What a property holds is changed where it is.
        if let Target::Custom(expression) = &self.target
            && let Some((scope, name, false)) = expression.property()
        {
            let (held, place) = expression.node_of_property(context)?.ok_or_else(invalid_target)?;
            detach(&moved, context)?;
            return self.put_in_property(scope, name, &held, place, &part, context);
        }
        match &self.target {
            Target::Property(scope, name) => {
                let (value, in_tree) = self.for_property(*scope, name, part, context)?;
                // What a property only holds stays in the message.
                if in_tree {
                    detach(&moved, context)?;
                }
                return match value {
                    Some(value) => crate::property::set(*scope, Arc::clone(name), value, context),
                    None => Ok(()),
                };
            }
            Target::Envelope => {
                let Part::Nodes(xml) = &part else { return Err(invalid_target()) };
                let mut whole = Document::new();
                if let Some(&first) = xml.nodes.first() {
                    whole.copy_from(Document::ROOT, &xml.document, first);
                }
                let envelope = Envelope::of_document(whole).map_err(|why| invalid_target().because(why))?;
                context.payload.set_envelope(envelope);
                return Ok(());
            }
            Target::Body => {
                if let (Part::Text(text), Action::Replace) = (&part, self.action)
                    && text.trim_start().starts_with(['{', '['])
                    && let Ok(value) = serde_json::from_str::<Json>(text)
                {
                    context.payload.set_json_value(value);
                    return Ok(());
                }
            }
            Target::Custom(_) | Target::Key(..) => {}
        }
        let place = match &self.target {
            Target::Custom(expression) => {
                let node = expression.nodes(context)?.first().copied().ok_or_else(invalid_target)?;
                Some(target(&context.envelope()?.document, node)?)
            }
            _ => context.envelope()?.payload(),
        };
        let document = &context.envelope()?.document;
        if place.is_none_or(|place| document.kind(place) != NodeKind::Attribute) {
            detach(&moved, context)?;
        }
        let action = self.action;
        let envelope = context.envelope_mut()?;
        match place {
            // The `Body` of an envelope has no other in its place: its content is replaced.
            Some(place) if place == envelope.body && action == Action::Replace => {
                fill(&mut envelope.document, place, &part);
            }
            Some(place) => put(&mut envelope.document, place, &part, action),
            None => append(&mut envelope.document, envelope.body, &part),
        }
        envelope.refresh().map_err(|why| Fault::new(format!("enrich broke the SOAP envelope: {why}")))
    }

    /// The source, copied, and the elements of the message that have to leave their places where they get another.
    fn xml_source(&self, context: &mut Context) -> Result<(Option<Part>, Vec<NodeId>), Fault> {
        let as_part = |value: Option<&Value>| match value {
            Some(Value::Xml(xml)) => Some(Part::Nodes(Arc::clone(xml))),
            Some(Value::String(text)) => Some(Part::Text(Arc::clone(text))),
            Some(value @ Value::Json(_)) => Some(Part::Text(value.to_string().into())),
            _ => None,
        };
        let nodes = match &self.source {
            Source::Custom(expression) => {
                let nodes = expression.nodes(context)?;
                if nodes.is_empty() {
                    let value = expression.value(context)?;
                    let empty = matches!(&value, Some(Value::String(text)) if text.is_empty());
                    return Ok((as_part(value.as_ref().filter(|_| !empty)), Vec::new()));
                }
                let document = &context.envelope()?.document;
                let kinds = [NodeKind::Element, NodeKind::Text];
                let nodes: Vec<_> =
                    nodes.into_iter().filter(|&node| kinds.contains(&document.kind(node))).collect();
                if nodes.iter().all(|&node| document.kind(node) == NodeKind::Text) && !nodes.is_empty() {
                    let text = match *nodes {
                        [node] => Arc::from(document.text(node)),
                        _ => nodes.iter().map(|&node| document.text(node)).collect::<String>().into(),
                    };
                    return Ok((Some(Part::Text(text)), Vec::new()));
                }
                nodes
            }
            Source::Envelope => vec![context.envelope()?.root],
            Source::Body => context.envelope()?.payload().into_iter().collect(),
            Source::Property(name) => return Ok((as_part(context.properties.get(name)), Vec::new())),
            Source::Element(xml) => return Ok((Some(Part::Nodes(Arc::clone(xml))), Vec::new())),
            Source::Entry(key) => {
                return Ok((
                    as_part(context.plan().entry(key).map(|entry| entry.value).as_ref()),
                    Vec::new(),
                ));
            }
            Source::Text { pieces, markup } => {
                let markup = *markup;
                let text = filled(pieces, context, |text, out| {
                    if !markup || text.trim_start().starts_with('<') {
                        out.push_str(text);
                    } else {
                        let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                        out.push_str(&escaped);
                    }
                })?;
                let part = match parsed(&text) {
                    Some(xml) => Part::Nodes(Arc::new(xml)),
                    None => Part::Text(text.into()),
                };
                return Ok((Some(part), Vec::new()));
            }
            Source::Paths(_) => Vec::new(),
        };
        if nodes.is_empty() {
            return Ok((None, nodes));
        }
        let copy = XmlValue::copy_of(&context.envelope()?.document, &nodes);
        let moves = !self.clone && !matches!(self.source, Source::Envelope);
        Ok((Some(Part::Nodes(Arc::new(copy))), if moves { nodes } else { Vec::new() }))
    }

    /// Puts the source at, into or behind a node of the XML that a property holds.
    fn put_in_property(
        &self,
        scope: Scope,
        name: &str,
        held: &XmlValue,
        place: NodeId,
        part: &Part,
        context: &mut Context,
    ) -> Result<(), Fault> {
        let moves = self.action != Action::Child && matches!(part, Part::Nodes(_));
        if moves && held.document.kind(place) == NodeKind::Element && held.nodes.contains(&place) {
            return Err(invalid_target()
                .because("the element is the whole value of the property: nothing has a place beside it"));
        }
        let place = target(&held.document, place)?;
        let mut document = (*held.document).clone();
        put(&mut document, place, part, self.action);
        let value = XmlValue { document: Arc::new(document), nodes: held.nodes.clone() };
        let value = Value::Xml(Arc::new(value));
        match scope {
            Scope::Default | Scope::Axis2 | Scope::Operation => {
                crate::property::set(scope, Arc::from(name), value, context)
            }
            Scope::Variable => {
                context.variables.set(name, value);
                Ok(())
            }
            _ => Err(invalid_target()),
        }
    }

    /// What the property holds then (`None`: what it held), and whether the nodes are in the tree that it held.
    fn for_property(
        &self,
        scope: Scope,
        name: &str,
        part: Part,
        context: &mut Context,
    ) -> Result<(Option<Value>, bool), Fault> {
        let held = match self.action {
            Action::Child => scope.get(context, name),
            _ => None,
        };
        match part {
            // An element has no place for a text among its children here, as where the target is in the message.
            Part::Text(_) if matches!(held, Some(Value::Xml(_))) => Ok((None, false)),
            Part::Text(text) => Ok((Some(Value::String(text)), false)),
            Part::Nodes(xml) => {
                let held = match held {
                    Some(Value::Xml(held)) => Some(held),
                    Some(Value::String(text)) if text.trim().is_empty() => None,
                    Some(Value::String(text)) => match parsed(&text) {
                        Some(held) => Some(Arc::new(held)),
                        None => {
                            return Err(invalid_target().because(format!(
                                "the text of the property `{name}` is no XML: it has no children"
                            )));
                        }
                    },
                    _ => None,
                };
                match held.and_then(|held| held.nodes.first().copied().map(|first| (held, first))) {
                    Some((held, first)) => {
                        let mut document = (*held.document).clone();
                        for &node in &xml.nodes {
                            document.copy_from(first, &xml.document, node);
                        }
                        let nodes = held.nodes.clone();
                        let value = XmlValue { document: Arc::new(document), nodes };
                        Ok((Some(Value::Xml(Arc::new(value))), true))
                    }
                    None => Ok((Some(Value::Xml(xml)), false)),
                }
            }
        }
    }
}

/// The node, if something can be put there: neither a comment nor a processing instruction.
fn target(document: &Document, node: NodeId) -> Result<NodeId, Fault> {
    match document.kind(node) {
        NodeKind::Element | NodeKind::Text | NodeKind::Attribute => Ok(node),
        NodeKind::Comment => Err(invalid_target().because("it is a comment")),
        NodeKind::ProcessingInstruction => Err(invalid_target().because("it is a processing instruction")),
        _ => Err(invalid_target()),
    }
}

fn detach(nodes: &[NodeId], context: &mut Context) -> Result<(), Fault> {
    if !nodes.is_empty() {
        let document = &mut context.envelope_mut()?.document;
        nodes.iter().for_each(|&node| document.detach(node));
    }
    Ok(())
}

fn append(document: &mut Document, parent: NodeId, part: &Part) {
    if let Part::Nodes(xml) = part {
        for &node in &xml.nodes {
            document.copy_from(parent, &xml.document, node);
        }
    }
}

/// The nodes become all that an element has; a text stays beside its elements, as elsewhere.
fn fill(document: &mut Document, element: NodeId, part: &Part) {
    match part {
        Part::Text(text) => set_own_text(document, element, text),
        Part::Nodes(_) => {
            let before: Vec<_> = document.children(element).collect();
            before.into_iter().for_each(|node| document.detach(node));
            append(document, element, part);
        }
    }
}

/// The text directly in an element becomes `text`; its child elements stay.
fn set_own_text(document: &mut Document, element: NodeId, text: &str) {
    let texts: Vec<_> =
        document.children(element).filter(|&child| document.kind(child) == NodeKind::Text).collect();
    texts.into_iter().for_each(|node| document.detach(node));
    document.append_text(element, text);
}

/// Puts the part at, into or behind a node.
fn put(document: &mut Document, place: NodeId, part: &Part, action: Action) {
    match (document.kind(place), part) {
        (NodeKind::Attribute, Part::Text(text)) => document.set_text(place, text),
        (NodeKind::Attribute, Part::Nodes(xml)) => {
            let text = xml.nodes.first().map(|&node| xml.document.string_value(node).into_owned());
            document.set_text(place, &text.unwrap_or_default());
        }
        (NodeKind::Text, Part::Text(text)) => match document.parent(place) {
            Some(parent) => set_own_text(document, parent, text),
            None => document.set_text(place, text),
        },
        (NodeKind::Text, Part::Nodes(_)) => {
            if let Some(parent) = document.parent(place) {
                document.detach(place);
                append(document, parent, part);
            }
        }
        (NodeKind::Element, Part::Text(text)) if action == Action::Replace => {
            set_own_text(document, place, text);
        }
        (NodeKind::Element, Part::Text(_)) => {}
        (NodeKind::Element, Part::Nodes(xml)) => match action {
            Action::Child => append(document, place, part),
            _ => {
                let Some(parent) = document.parent(place) else { return };
                for &node in &xml.nodes {
                    if xml.document.kind(node) != NodeKind::Element {
                        continue;
                    }
                    let copy = document.copy_from(parent, &xml.document, node);
                    if action == Action::Sibling {
                        document.insert_after(place, copy);
                    } else {
                        document.insert_before(place, copy);
                    }
                }
                if action == Action::Replace {
                    document.detach(place);
                }
            }
        },
        _ => {}
    }
}
