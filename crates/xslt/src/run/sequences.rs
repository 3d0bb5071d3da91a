//! Sequence constructors: their values as sequences and trees, and writing sequences to the result.

use super::docs::Origin;
use super::out::{Destination, Out, Pending};
use super::{Engine, Focus, Frame, Res, host};
use crate::model::{Declared, Instruction, Op, Place};
use crate::version2::{Content, Version2};
use std::borrow::Cow;
use xml::{Builder, Document, NodeId, NodeKind};
use xpath::atomic::Atomic;
use xpath::{Context, Item, Node, Shared, Value};

/// The items of a sequence constructor. What adds to a long sequence at each turn does not copy it.
#[derive(Default)]
struct Gathered {
    /// With a long sequence at its end.
    long: Option<Shared<Item>>,
    /// What is behind.
    items: Vec<Item>,
}

impl Gathered {
    fn add(&mut self, items: Shared<Item>) {
        self.long = Some(match self.whole() {
            None => items,
            Some(before) => before.with(&items),
        });
    }

    fn whole(&mut self) -> Option<Shared<Item>> {
        let behind: Option<Shared<Item>> =
            (!self.items.is_empty()).then(|| std::mem::take(&mut self.items).into());
        match (self.long.take(), behind) {
            (Some(long), Some(behind)) => Some(long.with(&behind)),
            (long, behind) => long.or(behind),
        }
    }
}

impl Engine<'_> {
    /// Writes items: nodes as copies (where the result is a sequence, themselves), atomic values as text separated
    /// by spaces.
    pub(super) fn write_items(&self, value: &Value, copy: bool, out: &mut Out<'_>, place: Place) -> Res<()> {
        if !copy
            && let Value::Sequence(items) = value
            && out.items_of(items)
        {
            return Ok(());
        }
        for item in value.items() {
            if !copy && out.item(&item) {
                continue;
            }
            match item {
                Item::Node(node)
                    if self.plan.version2
                        && !node.is_namespace()
                        && self.doc(node.doc).kind(node.id) == NodeKind::Attribute =>
                {
                    let doc = self.doc(node.doc);
                    let (prefix, uri, local) =
                        (doc.prefix(node.id), doc.namespace(node.id), doc.local(node.id));
                    self.put_attribute(prefix, uri, local, doc.text(node.id), place, out)?;
                }
                // Among items a document stays one.
                Item::Node(node)
                    if copy && out.takes_items() && !node.is_namespace() && node.id == Document::ROOT =>
                {
                    out.item(&Item::Node(self.copied_document(node, place)?));
                }
                Item::Node(node) if !copy && self.is_raw(node) => {
                    out.text(self.doc(node.doc).text(node.id), true);
                }
                Item::Node(node) if node.is_namespace() => self.copy_namespace(node, place, out)?,
                Item::Node(node) => self.copy_deep(node, out),
                Item::Atomic(atom) if atom.is_function() => {
                    self.write_function(&atom, copy, out, place)?;
                }
                Item::Atomic(atom) => out.atomic(&atom.to_text()),
            }
        }
        Ok(())
    }

    pub(super) fn copy_items(
        &self,
        value: &Value,
        namespaces: bool,
        out: &mut Out<'_>,
        place: Place,
    ) -> Res<()> {
        if namespaces {
            return self.write_items(value, true, out, place);
        }
        for item in value.items() {
            match item {
                Item::Node(node) if node.is_namespace() => self.copy_namespace(node, place, out)?,
                Item::Node(node) => self.copy_plain(node, out),
                Item::Atomic(atom) if atom.is_function() => self.write_function(&atom, false, out, place)?,
                Item::Atomic(atom) => {
                    if !out.item(&Item::Atomic(atom.clone())) {
                        out.atomic(&atom.to_text());
                    }
                }
            }
        }
        Ok(())
    }

    /// A copy of a document, with its properties.
    pub(super) fn copied_document(&self, node: Node, place: Place) -> Res<Node> {
        let doc = self.doc(node.doc);
        self.spend(doc.node_count() as u64)?;
        let copy = doc.clone();
        if self.docs.count() >= self.options.limits.documents {
            return Err(self.limit(place, "the limit of result tree fragments is exceeded".into()));
        }
        let uri = self.docs.uri(node.doc).to_owned();
        match self.docs.add(copy, Cow::Owned(uri), Origin::Fragment) {
            Some(id) => Ok(Node::in_document(id, Document::ROOT)),
            None => Err(self.fail(place, "there are too many result tree fragments".into())),
        }
    }

    /// Whether it is a text node made with `disable-output-escaping` that is to be written unescaped.
    fn is_raw(&self, node: Node) -> bool {
        self.has_raw.load(std::sync::atomic::Ordering::Relaxed)
            && self.raw.lock().is_ok_and(|raw| raw.contains(&node))
    }

    /// A value whose items have texts: arrays are their members, maps and functions an error.
    pub(super) fn with_text(&self, value: Value, place: Place) -> Res<Value> {
        let is_function = |item: &Item| matches!(item, Item::Atomic(atom) if atom.is_function());
        if matches!(value, Value::NodeSet(_)) || !value.items().any(|item| is_function(&item)) {
            return Ok(value);
        }
        let mut items = Vec::new();
        for item in value.items() {
            match item {
                Item::Atomic(Atomic::Array(array)) => {
                    for member in array.members() {
                        self.tick_alone()?;
                        items.extend(self.with_text(member.clone(), place)?.items());
                        if items.len() > xpath::MAX_ITEMS {
                            let most = xpath::MAX_ITEMS;
                            return Err(
                                self.fail(place, format!("FOER0000: an array holds more than {most} values"))
                            );
                        }
                    }
                }
                Item::Atomic(atom) if atom.is_function() => {
                    return Err(self.fail(place, format!("FOTY0013: {} has no text", atom.describe())));
                }
                item => items.push(item),
            }
        }
        Ok(Value::from_items(items))
    }

    /// Simple content (section 5.7.2): of `select` separated by spaces by default, of a body by nothing.
    pub(super) fn content(
        &self,
        content: &Content,
        focus: Focus,
        frame: &mut Frame,
        place: Place,
        destination: Destination,
    ) -> Res<String> {
        let separator = match &content.separator {
            Some(separator) => Some(self.avt(separator, focus, frame, place)?),
            None => None,
        };
        match (&content.select, separator) {
            (Some(select), separator) => {
                if let Some(path) = self.name_path(select, focus.node)
                    && let Some(text) = path.only_text()
                {
                    return Ok(text.to_owned());
                }
                let value = self.value(select, focus, frame, place)?;
                let value = self.with_text(value, place)?;
                Ok(self.joined(&value, separator.as_deref().unwrap_or(" ")))
            }
            (None, None) => Ok(self.text_of(&content.body, focus, frame, destination)?.into_owned()),
            (None, Some(separator)) => {
                let value = self.sequence_to(&content.body, focus, frame, place, destination)?;
                let value = self.with_text(value, place)?;
                Ok(self.joined(&value, &separator))
            }
        }
    }

    /// A temporary tree: its root.
    pub(super) fn tree(
        &self,
        body: &[Instruction],
        focus: Focus,
        frame: &mut Frame,
        place: Place,
    ) -> Res<Value> {
        self.tree_of(place, |out| self.exec(body, focus, frame, out))
    }

    /// The same of what `write` writes.
    pub(super) fn tree_of(&self, place: Place, write: impl FnOnce(&mut Out<'_>) -> Res<()>) -> Res<Value> {
        let mut doc = Document::new();
        let mut out = Out::tree(Builder::new(&mut doc, Document::ROOT));
        write(&mut out)?;
        out.finish_tree();
        self.add_fragment(doc, place)
    }

    /// The value of a body as a sequence: nodes themselves, atomic values unchanged.
    pub(super) fn sequence_of(
        &self,
        body: &[Instruction],
        focus: Focus,
        frame: &mut Frame,
        place: Place,
    ) -> Res<Value> {
        self.sequence_to(body, focus, frame, place, Destination::Temporary)
    }

    /// The same as [`Engine::sequence_of`]; `destination`: of the result.
    pub(super) fn sequence_to(
        &self,
        body: &[Instruction],
        focus: Focus,
        frame: &mut Frame,
        place: Place,
        destination: Destination,
    ) -> Res<Value> {
        self.sequence_with(body, focus, frame, place, destination, &mut false)
    }

    /// The same; `had_output`: whether something was written before an error.
    pub(super) fn sequence_with(
        &self,
        body: &[Instruction],
        focus: Focus,
        frame: &mut Frame,
        place: Place,
        destination: Destination,
        had_output: &mut bool,
    ) -> Res<Value> {
        match body {
            [] => return Ok(Value::Empty),
            [Instruction { op: Op::Version2(version2), place }] => {
                if let Version2::Sequence { select } = &**version2 {
                    return self.value(select, focus, frame, *place);
                }
            }
            _ => {}
        }
        let mut doc = Document::new();
        let mut out = Out::items(Builder::new(&mut doc, Document::ROOT)).of(destination);
        if let Err(error) = self.exec(body, focus, frame, &mut out) {
            *had_output = out.has_items();
            return Err(error);
        }
        let pending = out.finish_items();
        self.gathered(pending, doc, place)
    }

    /// The value of collected items, whose nodes are made in `doc`.
    pub(super) fn gathered(&self, pending: Vec<Pending>, mut doc: Document, place: Place) -> Res<Value> {
        if pending.iter().all(|p| matches!(p, Pending::Item(_) | Pending::Items(_))) {
            let mut gathered = Gathered::default();
            for pending in pending {
                match pending {
                    Pending::Item(item) => gathered.items.push(item),
                    Pending::Items(items) => gathered.add(items),
                    _ => {}
                }
            }
            return self.value_of_gathered(gathered, place);
        }
        let mut made: Vec<NodeId> = doc.children(Document::ROOT).collect();
        for node in &made {
            // Each is a separate tree.
            doc.detach(*node);
        }
        made.reverse();
        enum Found {
            Item(Item),
            Items(Shared<Item>),
            Here(NodeId),
            /// The element, and the number of its namespace node.
            Namespace(NodeId, u32),
        }
        let mut raw: Vec<NodeId> = Vec::new();
        let mut found = Vec::with_capacity(pending.len());
        for pending in pending {
            match pending {
                Pending::Item(item) => found.push(Found::Item(item)),
                Pending::Items(items) => found.push(Found::Items(items)),
                Pending::Made => found.extend(made.pop().map(Found::Here)),
                Pending::Text(text, is_raw) => {
                    let fragment = doc.create_fragment();
                    let node = doc.append_text(fragment, &text);
                    doc.detach(node);
                    found.push(Found::Here(node));
                    raw.extend(is_raw.then_some(node));
                }
                Pending::Namespace(prefix, uri) => {
                    let holder = doc.create_element("", "", "attributes");
                    doc.declare_namespace(holder, &prefix, &uri);
                    let at = doc.in_scope_namespaces(holder).iter().position(|(p, _)| *p == prefix);
                    found.extend(at.map(|at| Found::Namespace(holder, at as u32 + 2)));
                }
                Pending::Attribute([prefix, namespace, local, value]) => {
                    let holder = doc.create_element("", "", "attributes");
                    doc.set_attribute(holder, &prefix, &namespace, &local, &value);
                    if let Some(attribute) = doc.attributes(holder).next() {
                        doc.detach(attribute);
                        found.push(Found::Here(attribute));
                    }
                }
            }
        }
        let Value::NodeSet(root) = self.add_fragment(doc, place)? else { return Ok(Value::Empty) };
        let Some(root) = root.first() else { return Ok(Value::Empty) };
        if !raw.is_empty()
            && let Ok(mut raw_nodes) = self.raw.lock()
        {
            raw_nodes.extend(raw.into_iter().map(|id| Node::in_document(root.doc, id)));
            self.has_raw.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        let mut gathered = Gathered::default();
        for found in found {
            let node = match found {
                Found::Item(item) => {
                    gathered.items.push(item);
                    continue;
                }
                Found::Items(items) => {
                    gathered.add(items);
                    continue;
                }
                Found::Here(id) => Node::in_document(root.doc, id),
                Found::Namespace(id, namespace) => Node { namespace, ..Node::in_document(root.doc, id) },
            };
            gathered.items.push(Item::Node(node));
        }
        self.value_of_gathered(gathered, place)
    }

    fn value_of_gathered(&self, mut gathered: Gathered, place: Place) -> Res<Value> {
        if gathered.long.is_none() {
            return Ok(Value::from_items(gathered.items));
        }
        let Some(whole) = gathered.whole() else { return Ok(Value::Empty) };
        if whole.len() > xpath::MAX_ITEMS {
            let message = format!("FOER0000: the sequence has more than {} items", xpath::MAX_ITEMS);
            return Err(self.fail(place, message));
        }
        Ok(Value::Sequence(whole))
    }

    /// A value as one of a declared type; `code`: of the error where it cannot be.
    pub(super) fn converted(
        &self,
        value: Value,
        declared: &Declared,
        code: &str,
        place: Place,
    ) -> Res<Value> {
        let host = host::DocHost { engine: self };
        let cx = Context::at(self.doc(xpath::DocId(0)), Node::new(Document::ROOT)).with_host(&host);
        declared.ty.convert(value, &cx).map_err(|error| {
            let code = if error.code == "XPTY0004" { code } else { &error.code };
            self.fail(place, format!("{code}: {}: {}", declared.of, error.message))
        })
    }
}
