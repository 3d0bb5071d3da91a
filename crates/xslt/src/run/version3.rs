//! The instructions of XSLT 3.0.

use super::construction::lookup;
use super::dynamic::MergeGroup;
use super::out::Out;
use super::sort::TypedKey;
use super::{Engine, Focus, Frame, NO_RULE, Res};
use crate::collation::CollationKey;
use crate::error::XsltError;
use crate::model::{Place, Scope};
use crate::version2::Content;
use crate::version3::{
    CAUGHT, Catch, ERRORS, ErrorTest, IterateParam, MergeKey, MergeSource, Part, Version3,
};
use std::cmp::Ordering;
use std::sync::Arc;
use xml::NodeKind;
use xpath::atomic::{Atomic, NameValue};
use xpath::{Item, Map, Node, Value};

/// The outcome of an iteration of `xsl:iterate`.
pub(super) enum Control {
    /// The next one, with values of its parameters by slot.
    Next(Vec<(usize, Value)>),
    /// None follows.
    Break,
}

/// An item of a source of `xsl:merge` with its keys.
struct Merged {
    keys: Vec<TypedKey>,
    values: Vec<Value>,
    node: Node,
    source: usize,
}

impl<'e> Engine<'e> {
    pub(super) fn version3(
        &self,
        op: &Version3,
        focus: Focus,
        frame: &mut Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        match op {
            Version3::Iterate { select, params, body, completion } => {
                let mark = self.mark();
                let items = self.items(select, focus, frame, place)?;
                for IterateParam { slot, value, .. } in params {
                    frame.locals[*slot] = self.binding(value, focus, frame, place)?;
                }
                let size = items.len() as u32;
                let outer = frame.control.take();
                let mut broken = false;
                for (at, node) in items.into_iter().enumerate() {
                    self.tick(out)?;
                    let focus = Focus { node, position: at as u32 + 1, size, rule: NO_RULE, ..focus };
                    self.exec(body, focus, frame, out)?;
                    match frame.control.take().map(|control| *control) {
                        None => {}
                        Some(Control::Break) => {
                            broken = true;
                            break;
                        }
                        Some(Control::Next(values)) => {
                            for (slot, value) in values {
                                let declared =
                                    params.iter().find(|p| p.slot == slot).and_then(|p| p.declared.as_ref());
                                frame.locals[slot] = match declared {
                                    Some(declared) => {
                                        self.converted(value, declared, declared.code, place)?
                                    }
                                    None => value,
                                };
                            }
                        }
                    }
                }
                frame.control = outer;
                if let (Some(completion), false) = (completion, broken) {
                    let focus = Focus { node: Node::ABSENT, position: 0, size: 0, rule: NO_RULE, ..focus };
                    self.write_content(completion, focus, frame, place, out)?;
                }
                self.release(mark);
            }
            Version3::NextIteration { arguments } => {
                let mut values = Vec::with_capacity(arguments.len());
                for (slot, argument) in arguments {
                    values.push((*slot, self.binding(&argument.value, focus, frame, argument.place)?));
                }
                frame.control = Some(Box::new(Control::Next(values)));
            }
            Version3::Break { content } => {
                self.write_content(content, focus, frame, place, out)?;
                frame.control = Some(Box::new(Control::Break));
            }
            Version3::Try { content, rollback, catches } => {
                let mark = self.mark();
                // Its output is written when it is known not to fail.
                let destination = out.inner(true);
                let mut had_output = false;
                let tried = match &content.select {
                    Some(select) => self.value(select, focus, frame, place),
                    None => {
                        let body = &content.body;
                        self.sequence_with(body, focus, frame, place, destination, &mut had_output)
                    }
                };
                let error = match tried {
                    Ok(value) => return self.write_items(&value, false, out, place),
                    Err(error) => error,
                };
                self.release(mark);
                let is_final = destination != super::out::Destination::Temporary;
                if had_output && is_final && !rollback && !self.is_exceeded() {
                    let message =
                        format!("XTDE3530: output is not taken back (rollback-output): {}", error.message);
                    return Err(self.fail(place, message));
                }
                // An error that ends the transformation is not caught.
                meter::spend(1).map_err(|stop| self.fail(place, stop.to_string()))?;
                if self.is_exceeded() {
                    return Err(error);
                }
                let (mut code, description) = parted(&error.message);
                if let Some(raised) = &error.raised {
                    code.0 = &raised.namespace;
                }
                // The place is in the other variables.
                let description = description.split(" (in the expression \"").next().unwrap_or_default();
                let Some(catch) = catches.iter().find(|catch| catch.is_about(&code)) else {
                    return Err(error);
                };
                self.caught(catch, &error, code, description, frame);
                self.write_content(&catch.content, focus, frame, place, out)?;
            }
            Version3::Map { body } => {
                let value = self.sequence_of(body, focus, frame, place)?;
                let mut map = Map::new();
                for item in value.items() {
                    let Item::Atomic(Atomic::Map(part)) = item else {
                        let message = "XTTE3375: xsl:map holds maps only (xsl:map-entry)";
                        return Err(self.fail(place, message.into()));
                    };
                    self.spend(part.len() as u64)?;
                    for (key, value) in part.entries() {
                        if map.get(key).is_some() {
                            let message = format!("XTDE3365: the map has two values for {}", key.to_text());
                            return Err(self.fail(place, message));
                        }
                        map = map
                            .put(key.clone(), value.clone())
                            .map_err(|e| self.fail(place, format!("FOER0000: {e}")))?;
                    }
                }
                let value = Value::Atomic(Atomic::Map(Arc::new(map)));
                self.write_items(&value, false, out, place)?;
            }
            Version3::MapEntry { key, content } => {
                let key = self.value(key, focus, frame, place)?;
                let (1, Some(key)) = (key.len(), key.item(0)) else {
                    let message = format!("XPTY0004: a key is a single value, these are {} items", key.len());
                    return Err(self.fail(place, message));
                };
                let key = self.atom(key);
                if key.is_function() {
                    return Err(self.fail(place, format!("FOTY0013: {} cannot be a key", key.describe())));
                }
                let value = self.content_value(content, focus, frame, place)?;
                let entry =
                    Map::new().put(key, value).map_err(|e| self.fail(place, format!("FOER0000: {e}")))?;
                let value = Value::Atomic(Atomic::Map(Arc::new(entry)));
                self.write_items(&value, false, out, place)?;
            }
            Version3::WherePopulated { body } => {
                let value = self.sequence_to(body, focus, frame, place, out.inner(true))?;
                let mut kept = Vec::new();
                for item in value.items() {
                    if self.is_populated(&item)? {
                        kept.push(item);
                    }
                }
                self.write_items(&Value::from_items(kept), false, out, place)?;
            }
            Version3::Conditional { parts } => self.conditional(parts, focus, frame, place, out)?,
            Version3::SourceDocument { href, accumulators, body } => {
                let href = self.avt(href, focus, frame, place)?;
                let base = self.plan.bases.get(place.base as usize).map_or("", String::as_str);
                let node = match self.load_with(&href, base, accumulators) {
                    Ok(Some(node)) => node,
                    Ok(None) => {
                        return Err(self.fail(place, format!("FODC0002: there is no document \"{href}\"")));
                    }
                    Err(message) => return Err(self.fail(place, format!("FODC0002: {message}"))),
                };
                let focus = Focus { node, position: 1, size: 1, rule: NO_RULE, ..focus };
                self.exec(body, focus, frame, out)?;
            }
            Version3::Assert { test, content, code, scope } => {
                if !self.boolean(test, focus, frame, place)? {
                    let value = self.content_value(content, focus, frame, place)?;
                    let text = self.joined(&value, " ");
                    let code = match code {
                        Some(code) => Some(self.avt(code, focus, frame, place)?),
                        None => None,
                    };
                    let message = format!("xsl:assert: {text}");
                    return Err(self.raised(code.as_deref(), "XTMM9001", scope, value, message, place));
                }
            }
            Version3::Evaluate(evaluate) => self.evaluate(evaluate, focus, frame, place, out)?,
            Version3::Merge { sources, action } => {
                let mark = self.mark();
                self.merge(sources, action, focus, frame, place, out)?;
                self.release(mark);
            }
            Version3::ContextItem { required, absent, declared } => match self.item(focus.node) {
                None if *required => {
                    return Err(self.fail(place, "XTTE3090: the template needs a context item".into()));
                }
                Some(item) if !absent => {
                    if let Some(declared) = declared {
                        let host = super::host::DocHost { engine: self };
                        let cx =
                            xpath::Context::at(self.doc(xpath::DocId(0)), Node::new(xml::Document::ROOT));
                        if !declared.ty.matches(&Value::from(item), &cx.with_host(&host)) {
                            let wanted = declared.ty.text();
                            let message = format!("XTTE0590: the template needs {wanted} as context item");
                            return Err(self.fail(place, message));
                        }
                    }
                }
                _ => {}
            },
        }
        Ok(())
    }

    /// The error of an instruction with `error-code`, which may be any name; one that is none, or whose prefix is not declared, counts as
    /// absent (sections 23.1 and 23.2).
    #[cold]
    pub(super) fn raised(
        &self,
        code: Option<&str>,
        default: &str,
        scope: &Scope,
        value: Value,
        message: String,
        place: Place,
    ) -> Box<XsltError> {
        let name = code.map(str::trim).and_then(|code| {
            if let Some((uri, local)) = code.strip_prefix("Q{").and_then(|code| code.split_once('}')) {
                return xml::is_ncname(local).then_some(("", uri.trim(), local));
            }
            if !crate::compile::is_qname(code) {
                return None;
            }
            match code.split_once(':') {
                Some((prefix, local)) => Some((prefix, lookup(scope, prefix)?, local)),
                None => Some(("", "", code)),
            }
        });
        let (prefix, namespace, local) = name.unwrap_or(("err", ERRORS, default));
        let raised = xpath::Raised { prefix: prefix.into(), namespace: namespace.into(), value };
        let mut error = self.fail(place, format!("{local}: {message}"));
        error.raised = Some(Arc::new(raised));
        error
    }

    /// The value of `select` or a body.
    pub(super) fn content_value(
        &self,
        content: &Content,
        focus: Focus,
        frame: &mut Frame,
        place: Place,
    ) -> Res<Value> {
        match &content.select {
            Some(select) => self.value(select, focus, frame, place),
            None => self.sequence_of(&content.body, focus, frame, place),
        }
    }

    /// The same as content of the result.
    fn write_content(
        &self,
        content: &Content,
        focus: Focus,
        frame: &mut Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        match &content.select {
            Some(select) => {
                let value = self.value(select, focus, frame, place)?;
                self.write_items(&value, false, out, place)
            }
            None => self.exec(&content.body, focus, frame, out),
        }
    }

    /// The variables of an `xsl:catch`.
    fn caught(
        &self,
        catch: &Catch,
        error: &XsltError,
        (namespace, local): (&str, String),
        description: &str,
        frame: &mut Frame,
    ) {
        let prefix = match &error.raised {
            Some(raised) => &*raised.prefix,
            None if namespace.is_empty() => "",
            None => "err",
        };
        let name = NameValue { prefix: prefix.into(), namespace: namespace.into(), local: local.into() };
        let number = |n: u32| if n == 0 { Value::Empty } else { Value::from(i64::from(n)) };
        let values: [Value; CAUGHT.len()] = [
            Value::Atomic(Atomic::Name(Arc::new(name))),
            Value::from(description),
            error.raised.as_ref().map_or(Value::Empty, |raised| raised.value.clone()),
            Value::from(error.uri.as_str()),
            number(error.line),
            number(error.column),
        ];
        for (at, value) in values.into_iter().enumerate() {
            frame.locals[catch.slot + at] = value;
        }
    }

    /// Whether `xsl:where-populated` keeps an item (section 8.4).
    fn is_populated(&self, item: &Item) -> Res<bool> {
        Ok(match item {
            Item::Atomic(Atomic::Map(map)) => !map.is_empty(),
            Item::Atomic(Atomic::Array(array)) => {
                for item in array.members().flat_map(Value::items) {
                    self.tick_alone()?;
                    if self.is_populated(&item)? {
                        return Ok(true);
                    }
                }
                false
            }
            Item::Atomic(atom) => atom.is_function() || !atom.to_text().is_empty(),
            Item::Node(node) if node.is_namespace() => true,
            Item::Node(node) => {
                let doc = self.doc(node.doc);
                match doc.kind(node.id) {
                    NodeKind::Document | NodeKind::Element => doc.first_child(node.id).is_some(),
                    _ => !doc.text(node.id).is_empty(),
                }
            }
        })
    }

    /// Whether an item is empty (`xsl:on-empty`, section 8.4.2).
    fn is_vacuous(&self, item: &Item) -> Res<bool> {
        Ok(match item {
            Item::Atomic(Atomic::Array(array)) => {
                for item in array.members().flat_map(Value::items) {
                    self.tick_alone()?;
                    if !self.is_vacuous(&item)? {
                        return Ok(false);
                    }
                }
                true
            }
            Item::Atomic(atom) => !atom.is_function() && atom.to_text().is_empty(),
            Item::Node(node) if node.is_namespace() => false,
            Item::Node(node) => {
                let doc = self.doc(node.doc);
                match doc.kind(node.id) {
                    NodeKind::Document => doc
                        .children(node.id)
                        .all(|child| doc.kind(child) == NodeKind::Text && doc.text(child).is_empty()),
                    NodeKind::Text => doc.text(node.id).is_empty(),
                    _ => false,
                }
            }
        })
    }

    fn conditional(
        &self,
        parts: &[Part],
        focus: Focus,
        frame: &mut Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        let mut values = Vec::new();
        let mut empty = true;
        for part in parts {
            if let Part::Always(body) = part {
                let value = self.sequence_to(body, focus, frame, place, out.inner(true))?;
                for item in value.items() {
                    empty = empty && self.is_vacuous(&item)?;
                }
                values.push(value);
            }
        }
        let mut values = values.into_iter();
        for part in parts {
            match part {
                Part::Always(_) => {
                    let value = values.next().unwrap_or_default();
                    self.write_items(&value, false, out, place)?;
                }
                Part::OnEmpty(content) if empty => self.write_content(content, focus, frame, place, out)?,
                Part::OnNonEmpty(content) if !empty => {
                    self.write_content(content, focus, frame, place, out)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn merge(
        &self,
        sources: &[MergeSource],
        action: &[crate::model::Instruction],
        focus: Focus,
        frame: &mut Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        let descending: Vec<bool> = match sources.first() {
            Some(source) => source
                .keys
                .iter()
                .map(|key| match &key.descending {
                    Some(order) => Ok(self.avt(order, focus, frame, place)?.trim() == "descending"),
                    None => Ok(false),
                })
                .collect::<Res<_>>()?,
            None => Vec::new(),
        };
        let mut orders: Option<Vec<Vec<String>>> = None;
        for source in sources {
            let key_orders = source
                .keys
                .iter()
                .map(|key| {
                    let all = [&key.descending, &key.lang, &key.case_order, &key.data_type, &key.collation];
                    all.into_iter()
                        .enumerate()
                        .map(|(at, avt)| match avt {
                            Some(avt) => Ok(self.avt(avt, focus, frame, place)?.trim().to_owned()),
                            None => Ok(if at == 0 { "ascending".to_owned() } else { String::new() }),
                        })
                        .collect::<Res<Vec<String>>>()
                })
                .collect::<Res<Vec<_>>>()?;
            if orders.get_or_insert_with(|| key_orders.clone()) != &key_orders {
                let message = "XTDE2210: the keys of the sources of xsl:merge have different orders";
                return Err(self.fail(place, message.into()));
            }
        }
        let compare = |a: &Merged, b: &Merged| {
            for (at, (x, y)) in a.keys.iter().zip(&b.keys).enumerate() {
                let order = x.compare(y);
                let order = if descending.get(at) == Some(&true) { order.reverse() } else { order };
                if order != Ordering::Equal {
                    return order;
                }
            }
            Ordering::Equal
        };
        let mut all: Vec<Merged> = Vec::new();
        for (number, source) in sources.iter().enumerate() {
            for start in self.starts(source, focus, frame, place)? {
                let inner = Focus { node: start, position: 1, size: 1, rule: NO_RULE, ..focus };
                let nodes = self.items(&source.select, inner, frame, place)?;
                let mut merged: Vec<Merged> = Vec::with_capacity(nodes.len());
                for node in nodes {
                    self.tick(out)?;
                    // Each source by itself (section 15.4).
                    let focus = Focus { node, position: 1, size: 1, rule: NO_RULE, ..focus };
                    let count = source.keys.len();
                    let (mut keys, mut values) = (Vec::with_capacity(count), Vec::with_capacity(count));
                    for key in &source.keys {
                        let value = self.content_value(&key.content, focus, frame, place)?;
                        let typed = match (value.len(), value.item(0)) {
                            (0, _) => TypedKey::None,
                            (1, Some(item)) => self.merge_key(key, self.atom(item), focus, frame, place)?,
                            _ => {
                                let message = "XTTE1020: a merge key must be at most one item";
                                return Err(self.fail(place, message.into()));
                            }
                        };
                        keys.push(typed);
                        values.push(value);
                    }
                    merged.push(Merged { keys, values, node, source: number });
                }
                self.comparable(&merged, place)?;
                if source.sort_before {
                    merged.sort_by(compare);
                } else if merged.windows(2).any(|two| compare(&two[0], &two[1]) == Ordering::Greater) {
                    let message = "XTDE2220: a source of xsl:merge is not in the order of its keys";
                    return Err(self.fail(place, message.into()));
                }
                all.append(&mut merged);
            }
        }
        self.comparable(&all, place)?;
        all.sort_by(compare);
        let groups = || all.chunk_by(|a, b| compare(a, b) == Ordering::Equal);
        let mut inner = Focus { position: 0, size: groups().count() as u32, rule: NO_RULE, ..focus };
        for group in groups() {
            self.tick(out)?;
            inner.node = group[0].node;
            inner.position += 1;
            let key = Value::from_items(
                group[0].values.iter().flat_map(|value| value.items().collect::<Vec<_>>()).collect(),
            );
            let mut named: Vec<(Box<str>, Vec<Item>)> =
                sources.iter().filter_map(|source| Some((source.name.clone()?, Vec::new()))).collect();
            let mut whole = Vec::with_capacity(group.len());
            for merged in group {
                let Some(item) = self.item(merged.node) else { continue };
                let source = sources[merged.source].name.as_deref();
                if let Some((_, items)) = named.iter_mut().find(|(name, _)| Some(&**name) == source) {
                    items.push(item.clone());
                }
                whole.push(item);
            }
            let named = named.into_iter().map(|(name, items)| (name, Value::from_items(items)));
            let members = MergeGroup { whole: Value::from_items(whole), named: named.collect() };
            self.with_dynamic(
                inner,
                |dynamic| {
                    dynamic.merge_key = key;
                    dynamic.merged = Some(members);
                },
                |focus| self.exec(action, focus, frame, out),
            )?;
        }
        Ok(())
    }

    /// A key for comparison: as a number or a text where `data-type` says so, texts by the collation or for words (as in `xsl:sort`).
    fn merge_key(
        &self,
        key: &MergeKey,
        atom: Atomic,
        focus: Focus,
        frame: &mut Frame,
        place: Place,
    ) -> Res<TypedKey> {
        let option = |avt: &Option<crate::model::Avt>, frame: &mut Frame| -> Res<String> {
            match avt {
                Some(avt) => Ok(self.avt(avt, focus, frame, place)?.trim().to_owned()),
                None => Ok(String::new()),
            }
        };
        let collation = self.collation(&key.collation, "XTDE1035", focus, frame, place)?;
        let data_type = option(&key.data_type, frame)?;
        if data_type == "number" {
            return Ok(TypedKey::Value(Atomic::Double(atom.to_double())));
        }
        let text = match &atom {
            Atomic::Untyped(text) | Atomic::String(text) => text.clone(),
            other if data_type == "text" => other.to_text().into(),
            other => return Ok(TypedKey::Value(collation.atom(other).into_owned())),
        };
        let for_words = key.collation.is_none() && (key.lang.is_some() || key.case_order.is_some());
        if for_words {
            let upper_first = option(&key.case_order, frame)? == "upper-first";
            return Ok(TypedKey::Words(CollationKey::new(&text, upper_first)));
        }
        Ok(TypedKey::Value(collation.atom(&Atomic::String(text)).into_owned()))
    }

    fn comparable(&self, list: &[Merged], place: Place) -> Res<()> {
        let count = list.first().map_or(0, |merged| merged.keys.len());
        for at in 0..count {
            let mut values = list.iter().filter_map(|merged| match &merged.keys[at] {
                TypedKey::Value(atom) => Some(atom),
                _ => None,
            });
            let Some(first) = values.next() else { continue };
            if !first.is_ordered() || !values.all(|other| first.is_ordered_with(other)) {
                let message = "XTTE2230: the keys of xsl:merge are of types that have no common order";
                return Err(self.fail(place, message.into()));
            }
        }
        Ok(())
    }

    /// The context of a source's selection.
    fn starts(&self, source: &MergeSource, focus: Focus, frame: &Frame, place: Place) -> Res<Vec<Node>> {
        if let Some(each) = &source.each {
            return self.items(each, focus, frame, place);
        }
        let Some(sources) = &source.sources else { return Ok(vec![focus.node]) };
        let base = self.plan.bases.get(place.base as usize).map_or("", String::as_str);
        let uris = self.value(sources, focus, frame, place)?;
        let mut starts = Vec::new();
        for item in uris.items() {
            let uri = self.item_text(&item);
            match self.load_with(&uri, base, &source.accumulators) {
                Ok(Some(node)) => starts.push(node),
                Ok(None) => return Err(self.fail(place, format!("FODC0002: there is no document \"{uri}\""))),
                Err(message) => return Err(self.fail(place, format!("FODC0002: {message}"))),
            }
        }
        Ok(starts)
    }
}

impl Catch {
    fn is_about(&self, (namespace, local): &(&str, String)) -> bool {
        self.errors.is_empty()
            || self.errors.iter().any(|ErrorTest { namespace: n, local: l }| {
                let named = n.as_ref().is_none_or(|n| **n == **namespace);
                named && l.as_ref().is_none_or(|l| **l == **local)
            })
    }
}

/// Code and description of an error: `XPTY0004: …`.
fn parted(message: &str) -> ((&str, String), &str) {
    match message.split_once(": ") {
        Some((code, rest)) if xml::is_ncname(code) => {
            let digits = code.len() == 8
                && code.bytes().take(4).all(|b| b.is_ascii_uppercase())
                && code.bytes().skip(4).all(|b| b.is_ascii_alphanumeric());
            ((if digits { ERRORS } else { "" }, code.to_owned()), rest)
        }
        _ => ((ERRORS, "FOER0000".to_owned()), message),
    }
}
