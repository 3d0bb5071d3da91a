//! The instructions of XSLT 2.0 and their common parts: sequences, groups, temporary trees, tunnel parameters.
//!
//! A context item that is an atomic value is kept by the engine, and a [`Node`] that refers to it is passed like a node:
//! loops, sorts and groups need not distinguish them.

use super::out::{Destination, Out, Pending};
use super::{Engine, Focus, Frame, NO_RULE, Res, host};
use crate::collation::CollationKey;
use crate::expr::Expr;
use crate::model::{Argument, Avt, Declared, Function, Instruction, Op, Place, Sort};
use crate::names::Name;
use crate::version2::{Content, ForEachGroup, Grouping, Version2};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;
use xml::{Builder, Document, NodeId, NodeKind};
use xpath::atomic::Atomic;
use xpath::{Collation, Context, Item, Node, Value};

/// The dynamic context of inner instructions: the current group, the groups of a regular expression, the
/// tunnel parameters.
#[derive(Clone, Default)]
pub(super) struct Dynamic {
    /// The current group, and its key; `None`: there is none.
    pub group: Option<Value>,
    pub key: Option<Value>,
    pub captures: Arc<[Box<str>]>,
    pub tunnel: Arc<[(Name, Value)]>,
    pub merge_key: Value,
    /// The current group of `xsl:merge`: items, with the names of their sources.
    pub merged: Option<Merged>,
    /// The names of the sources of that `xsl:merge`.
    pub sources: Arc<[Box<str>]>,
}

/// A group of `xsl:merge`.
pub(super) type Merged = Arc<[(Option<Box<str>>, Item)]>;

/// The outcome of a function: a value, or a tail call of a function (its slot).
enum End {
    Value(Value),
    Call(u32, Vec<Value>, Place),
}

/// [`Focus::dynamic`] without such a context.
pub(super) const NO_DYNAMIC: u32 = u32::MAX;

impl<'e> Engine<'e> {
    pub(super) fn version2(
        &self,
        op: &Version2,
        focus: Focus,
        frame: &mut Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        match op {
            Version2::Sequential(body) => self.exec(body, focus, frame, out)?,
            Version2::Sequence { select } => {
                let value = self.value(select, focus, frame, place)?;
                self.write_items(&value, false, out, place)?;
            }
            Version2::Values { content, raw } => {
                let text = self.content(content, focus, frame, place)?;
                out.text(&text, *raw);
            }
            Version2::TextTemplate(text) => {
                let text = self.avt(text, focus, frame, place)?;
                out.text(&text, false);
            }
            Version2::Attribute { name, namespace, scope, content } => {
                let (prefix, uri, local) =
                    self.attribute_name(name, namespace.as_ref(), scope, focus, frame, place)?;
                let text = self.content(content, focus, frame, place)?;
                self.put_attribute(&prefix, &uri, &local, &text, place, out)?;
            }
            Version2::Comment { content } => {
                let text = self.content(content, focus, frame, place)?;
                out.comment(&text);
            }
            Version2::Pi { name, content } => {
                let name = self.avt(name, focus, frame, place)?;
                let text = self.content(content, focus, frame, place)?;
                if !xml::is_ncname(&name) || name.eq_ignore_ascii_case("xml") {
                    let message =
                        format!("XTDE0890: \"{name}\" cannot be the name of a processing instruction");
                    return Err(self.fail(place, message));
                }
                let text = text.trim_start();
                if out.ends_pi(text) {
                    let message = "SERE0015: a processing instruction of HTML cannot hold a >";
                    return Err(self.fail(place, message.into()));
                }
                out.pi(&name, text);
            }
            Version2::Namespace { name, content } => {
                let prefix = self.avt(name, focus, frame, place)?;
                let uri = self.content(content, focus, frame, place)?;
                if !(prefix.is_empty() || xml::is_ncname(&prefix)) || prefix == "xmlns" {
                    return Err(self.fail(place, format!("XTDE0920: \"{prefix}\" cannot be a prefix")));
                }
                if uri.is_empty() {
                    return Err(self.fail(place, "XTDE0930: the namespace of xsl:namespace is empty".into()));
                }
                out.namespace(&prefix, &uri);
            }
            Version2::CopyOf { select, namespaces } => {
                let value = self.value(select, focus, frame, place)?;
                self.copy_items(&value, *namespaces, out, place)?;
            }
            Version2::Copy { select: Some(select), sets, body, namespaces } => {
                let mark = self.mark();
                let items = self.items(select, focus, frame, place)?;
                match items.as_slice() {
                    [] => {}
                    [node] => {
                        let focus = Focus { node: *node, position: 1, size: 1, rule: NO_RULE, ..focus };
                        match self.item(*node) {
                            Some(Item::Atomic(atom)) => {
                                self.write_items(&Value::from(atom), false, out, place)?
                            }
                            _ => self.copy(sets, body, *namespaces, focus, frame, out)?,
                        }
                    }
                    _ => {
                        let message = "XTTE3180: select of xsl:copy must be at most one item";
                        return Err(self.fail(place, message.into()));
                    }
                }
                self.release(mark);
            }
            Version2::Copy { select: None, sets, body, namespaces } => match self.item(focus.node) {
                Some(Item::Atomic(atom)) => self.write_items(&Value::from(atom), false, out, place)?,
                Some(_) => self.copy(sets, body, *namespaces, focus, frame, out)?,
                None => {
                    let message = "XTTE0945: xsl:copy needs a context item";
                    return Err(self.fail(place, message.into()));
                }
            },
            Version2::ForEachGroup(group) => self.for_each_group(group, focus, frame, place, out)?,
            Version2::Analyze { select, regex, flags, matching, other } => {
                let pattern = self.avt(regex, focus, frame, place)?;
                let flags = match flags {
                    Some(flags) => self.avt(flags, focus, frame, place)?,
                    None => "".into(),
                };
                let text = self.analyzed(select, focus, frame, place)?;
                let failed = |e: xpath::regex::RegexError| {
                    let code = match e.code {
                        "FORX0001" => "XTDE1145",
                        "FORX0002" => "XTDE1140",
                        code => code,
                    };
                    self.fail(place, format!("{code}: {}", e.message))
                };
                if !self.plan.version3 && flags.contains('q') {
                    let message = "XTDE1145: the flag q is of XSLT 3.0";
                    return Err(self.fail(place, message.into()));
                }
                let regex = xpath::regex::Regex::cached(&pattern, &flags).map_err(failed)?;
                let parts = regex.analyze(&text, self.plan.version3).map_err(failed)?;
                let mut inner = Focus { position: 0, size: parts.len() as u32, rule: NO_RULE, ..focus };
                for part in parts {
                    let mark = self.mark();
                    inner.node = self.keep(Atomic::string(part.text));
                    inner.position += 1;
                    self.tick(out)?;
                    match part.groups {
                        Some(groups) => {
                            let captures: Arc<[Box<str>]> = groups.into_iter().map(Box::from).collect();
                            self.with_dynamic(
                                inner,
                                |dynamic| dynamic.captures = captures,
                                |focus| self.exec(matching, focus, frame, out),
                            )?;
                        }
                        None => {
                            self.with_dynamic(
                                inner,
                                |dynamic| dynamic.captures = Arc::default(),
                                |focus| self.exec(other, focus, frame, out),
                            )?;
                        }
                    }
                    self.release(mark);
                }
            }
            Version2::PerformSort { select, body, sorts } => {
                let mark = self.mark();
                let mut nodes = match select {
                    Some(select) => self.items(select, focus, frame, place)?,
                    None => {
                        let value = self.sequence_of(body, focus, frame, place)?;
                        self.kept(&value)
                    }
                };
                self.sort(&mut nodes, sorts, focus, frame)?;
                let value = self.value_of_kept(&nodes);
                self.release(mark);
                self.write_items(&value, false, out, place)?;
            }
            Version2::NextMatch { arguments } => {
                if focus.rule == NO_RULE {
                    return Err(
                        self.fail(place, "XTDE0560: xsl:next-match needs a current template rule".into())
                    );
                }
                let mode = focus.mode as usize;
                self.with_arguments(arguments, focus, frame, |arguments, focus, _| {
                    let rules = &self.plan.modes[mode];
                    match self.next_rule(rules, &focus)? {
                        Some(rule) => self.run_rule(rules.numbered(rule), mode, &focus, arguments, out),
                        None => self.built_in(focus, mode, arguments, out),
                    }
                })?;
            }
            Version2::Document { body } => {
                let value = self.tree(body, focus, frame, place)?;
                self.write_items(&value, false, out, place)?;
            }
            Version2::ResultDocument(result) => self.result_document(result, focus, frame, place, out)?,
            Version2::Message { content, terminate } => {
                let text = match self.message_text(content, focus, frame, place) {
                    // From 3.0 on an error in a message does not end the transformation (section 23.1).
                    Err(error) if self.plan.version3 && error.has_code() => error.message,
                    text => text?,
                };
                if let Some(messages) = self.options.messages {
                    messages(&text);
                }
                if matches!(self.avt(terminate, focus, frame, place)?.trim(), "yes" | "true" | "1") {
                    let shown = text.trim();
                    return Err(
                        self.fail(place, format!("XTMM9000: xsl:message ended the transformation: {shown}"))
                    );
                }
            }
            Version2::TunnelParam { slot, name, value, declared } => {
                let passed = self.dynamic(focus.dynamic).and_then(|dynamic| {
                    dynamic.tunnel.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone())
                });
                frame.locals[*slot] = match (passed, declared) {
                    (Some(value), Some(declared)) => self.converted(value, declared, declared.code, place)?,
                    (Some(value), None) => value,
                    (None, _) => self.binding(value, focus, frame, place)?,
                };
            }
            Version2::Version3(op) => self.version3(op, focus, frame, place, out)?,
            Version2::Convert { slot, declared } => {
                if frame.passed & (1 << slot) != 0 {
                    let value = std::mem::replace(&mut frame.locals[*slot], Value::Empty);
                    frame.locals[*slot] = self.converted(value, declared, declared.code, place)?;
                }
            }
        }
        Ok(())
    }

    fn message_text(&self, content: &Content, focus: Focus, frame: &mut Frame, place: Place) -> Res<String> {
        let Some(select) = &content.select else { return self.message(&content.body, focus, frame) };
        let value = self.value(select, focus, frame, place)?;
        let mut text = self.joined(&value, " ");
        text.push_str(&self.message(&content.body, focus, frame)?);
        Ok(text)
    }

    /// The text of `xsl:analyze-string`: a string, or an untyped value.
    fn analyzed(&self, select: &Expr, focus: Focus, frame: &Frame, place: Place) -> Res<String> {
        let value = self.value(select, focus, frame, place)?;
        let wrong = match (value.len(), value.item(0)) {
            (0, _) if self.plan.version3 => return Ok(String::new()),
            (1, Some(item)) => match self.atom(item) {
                Atomic::Untyped(text) | Atomic::String(text) | Atomic::Uri(text) => {
                    return Ok(text.to_string());
                }
                other => format!("this is {}", other.describe()),
            },
            (count, _) => format!("these are {count} items"),
        };
        Err(self.fail(place, format!("XPTY0004: select of xsl:analyze-string must be a string, {wrong}")))
    }

    // Items.

    /// The item of a focus's node; `None`: there is no context item.
    pub(super) fn item(&self, node: Node) -> Option<Item> {
        match node.as_atomic() {
            None => Some(Item::Node(node)),
            Some(number) => self.atoms.lock().ok()?.get(number).cloned().map(Item::Atomic),
        }
    }

    /// Keeps an atomic value; it is released by resetting to the mark set before.
    pub(super) fn keep(&self, atom: Atomic) -> Node {
        let Ok(mut atoms) = self.atoms.lock() else { return Node::ABSENT };
        atoms.push(atom);
        Node::atomic(atoms.len() - 1).unwrap_or(Node::ABSENT)
    }

    pub(super) fn mark(&self) -> usize {
        self.atoms.lock().map_or(0, |atoms| atoms.len())
    }

    pub(super) fn release(&self, mark: usize) {
        if let Ok(mut atoms) = self.atoms.lock() {
            atoms.truncate(mark);
        }
    }

    /// The items of a value; atomic ones are kept.
    pub(super) fn kept(&self, value: &Value) -> Vec<Node> {
        value
            .items()
            .map(|item| match item {
                Item::Node(node) => node,
                Item::Atomic(atom) => self.keep(atom),
            })
            .collect()
    }

    fn value_of_kept(&self, nodes: &[Node]) -> Value {
        Value::from_items(nodes.iter().filter_map(|node| self.item(*node)).collect())
    }

    /// The items of an expression; atomic ones are kept.
    pub(super) fn items(&self, expr: &Expr, focus: Focus, frame: &Frame, place: Place) -> Res<Vec<Node>> {
        let value = self.value(expr, focus, frame, place)?;
        Ok(match &value {
            Value::NodeSet(nodes) => nodes.as_slice().to_vec(),
            value => self.kept(value),
        })
    }

    /// The text of an item: string value or lexical form.
    pub(super) fn item_text(&self, item: &Item) -> String {
        match item {
            Item::Node(node) => self.node_string(*node),
            Item::Atomic(atom) => atom.to_text().into_owned(),
        }
    }

    /// The typed value of an item.
    pub(super) fn atom(&self, item: Item) -> Atomic {
        match item {
            Item::Atomic(atom) => atom,
            Item::Node(node) => Atomic::Untyped(self.node_string(node).into()),
        }
    }

    /// The items as text (section 5.7.2): empty text nodes are left out, adjacent text nodes are joined.
    pub(super) fn joined(&self, value: &Value, separator: &str) -> String {
        let mut text = String::new();
        let (mut first, mut in_text) = (true, false);
        for item in value.items() {
            let item_text = match &item {
                Item::Node(node) if !node.is_namespace() => {
                    let doc = self.doc(node.doc);
                    if doc.kind(node.id) == NodeKind::Text {
                        let node_text = doc.text(node.id);
                        if node_text.is_empty() {
                            continue;
                        }
                        if !in_text && !first {
                            text.push_str(separator);
                        }
                        text.push_str(node_text);
                        (first, in_text) = (false, true);
                        continue;
                    }
                    self.node_string(*node)
                }
                item => self.item_text(item),
            };
            if !first {
                text.push_str(separator);
            }
            text.push_str(&item_text);
            (first, in_text) = (false, false);
        }
        text
    }

    /// Writes items: nodes as copies (where the result is a sequence, themselves), atomic values as text separated
    /// by spaces.
    pub(super) fn write_items(&self, value: &Value, copy: bool, out: &mut Out<'_>, place: Place) -> Res<()> {
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
                Item::Node(node) => self.copy_deep(node, out),
                Item::Atomic(atom) if atom.is_function() => {
                    self.write_function(&atom, copy, out, place)?;
                }
                Item::Atomic(atom) => out.atomic(&atom.to_text()),
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
            return Err(self.fail(place, "the limit of result tree fragments is exceeded".into()));
        }
        let uri = self.docs.uri(node.doc).to_owned();
        match self.docs.add(copy, Cow::Owned(uri), true) {
            Some(id) => Ok(Node::in_document(id, Document::ROOT)),
            None => Err(self.fail(place, "there are too many result tree fragments".into())),
        }
    }

    /// Whether it is a text node made with `disable-output-escaping` that is to be written unescaped.
    fn is_raw(&self, node: Node) -> bool {
        self.has_raw.load(std::sync::atomic::Ordering::Relaxed)
            && self.raw.lock().is_ok_and(|raw| raw.contains(&node))
    }

    /// Maps and functions cannot be in a tree; of an array the members are written.
    fn write_function(&self, atom: &Atomic, copy: bool, out: &mut Out<'_>, place: Place) -> Res<()> {
        if out.item(&Item::Atomic(atom.clone())) {
            return Ok(());
        }
        match atom {
            Atomic::Array(array) => {
                for member in array.members() {
                    self.tick(out)?;
                    self.write_items(member, copy, out, place)?;
                }
                Ok(())
            }
            other => {
                let message = format!("XTDE0450: {} cannot be written to a tree", other.describe());
                Err(self.fail(place, message))
            }
        }
    }

    fn copy_items(&self, value: &Value, namespaces: bool, out: &mut Out<'_>, place: Place) -> Res<()> {
        if namespaces {
            return self.write_items(value, true, out, place);
        }
        for item in value.items() {
            match item {
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
    fn content(&self, content: &Content, focus: Focus, frame: &mut Frame, place: Place) -> Res<String> {
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
            (None, None) => Ok(self.text_of(&content.body, focus, frame)?.into_owned()),
            (None, Some(separator)) => {
                let value = self.sequence_of(&content.body, focus, frame, place)?;
                let value = self.with_text(value, place)?;
                Ok(self.joined(&value, &separator))
            }
        }
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

    /// Calls a function, and its tail calls, at the depth of the function.
    pub(super) fn run_function(&self, function: &Function, args: &[Value], focus: Focus) -> Res<Value> {
        let mut function = function;
        let mut passed: Cow<'_, [Value]> = Cow::Borrowed(args);
        for _ in 0..super::templates::MAX_TAILS {
            self.tick_alone()?;
            let mut frame = Frame::default();
            frame.locals.resize(function.slots, Value::Empty);
            for ((_, slot), value) in function.parameters.iter().zip(passed.iter()) {
                frame.locals[*slot] = value.clone();
                frame.passed |= 1 << slot;
            }
            match self.function_end(&function.body, focus, &mut frame, function.place)? {
                End::Value(value) => {
                    return match &function.returns {
                        Some(declared) => self.converted(value, declared, declared.code, function.place),
                        None => Ok(value),
                    };
                }
                End::Call(slot, args, place) => {
                    let Some(next) = self.plan.functions.get(&slot) else {
                        return Err(self.fail(place, "the function has no definition".into()));
                    };
                    // The conversion to the type was made at the tail call already.
                    let alike = match (&function.returns, &next.returns) {
                        (None, _) => true,
                        (Some(outer), Some(inner)) => outer.ty == inner.ty,
                        (Some(_), None) => false,
                    };
                    if std::ptr::eq(function, next) && args.is_empty() {
                        let message = "the function is its own value: an endless recursion";
                        return Err(self.fail(function.place, message.into()));
                    }
                    if alike && next.version2 {
                        function = next;
                        passed = Cow::Owned(args);
                        continue;
                    }
                    let value = self
                        .enter_from_expression(focus, place, |focus| self.run_function(next, &args, focus))?;
                    return match &function.returns {
                        Some(declared) => self.converted(value, declared, declared.code, function.place),
                        None => Ok(value),
                    };
                }
            }
        }
        let most = super::templates::MAX_TAILS;
        let message = format!("the function goes on with itself (limit {most} times): an endless recursion?");
        Err(self.fail(function.place, message))
    }

    /// The tail of a function's body: `xsl:sequence`, or a choice of it, needs no collection.
    fn function_end(&self, body: &[Instruction], focus: Focus, frame: &mut Frame, place: Place) -> Res<End> {
        let Some((last, before)) = body.split_last() else { return Ok(End::Value(Value::Empty)) };
        let quiet = |op: &Op| match op {
            Op::Variable { .. } | Op::Param { .. } => true,
            Op::Version2(version2) => matches!(**version2, Version2::Convert { .. }),
            _ => false,
        };
        let ends = match &last.op {
            Op::If { .. } | Op::Choose { .. } => true,
            Op::Version2(version2) => matches!(**version2, Version2::Sequence { .. }),
            _ => false,
        };
        if !ends || !before.iter().all(|instruction| quiet(&instruction.op)) {
            return self.sequence_of(body, focus, frame, place).map(End::Value);
        }
        // These write nothing.
        let mut out = Out::text_only(true);
        for instruction in before {
            self.step(instruction, focus, frame, &mut out)?;
        }
        match &last.op {
            Op::If { test, body } => match self.boolean(test, focus, frame, last.place)? {
                true => self.function_end(body, focus, frame, last.place),
                false => Ok(End::Value(Value::Empty)),
            },
            Op::Choose { when, otherwise } => {
                for (test, body) in when {
                    if self.boolean(test, focus, frame, last.place)? {
                        return self.function_end(body, focus, frame, last.place);
                    }
                }
                self.function_end(otherwise, focus, frame, last.place)
            }
            Op::Version2(version2) => {
                let Version2::Sequence { select } = &**version2 else { return Ok(End::Value(Value::Empty)) };
                let ended = self.with(select, focus, frame, last.place, |expression, cx| {
                    expression.evaluate_to_call(cx, crate::expr::USER_FUNCTION..crate::expr::UNKNOWN_FUNCTION)
                })?;
                Ok(match ended {
                    Ok(value) => End::Value(value),
                    Err((slot, args)) => End::Call(slot - crate::expr::USER_FUNCTION, args, last.place),
                })
            }
            _ => Ok(End::Value(Value::Empty)),
        }
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
        self.exec(body, focus, frame, &mut out)?;
        let pending = out.finish_items();
        if pending.iter().all(|p| matches!(p, Pending::Item(_))) {
            let items = pending.into_iter().filter_map(|p| match p {
                Pending::Item(item) => Some(item),
                _ => None,
            });
            return Ok(Value::from_items(items.collect()));
        }
        let mut made: Vec<NodeId> = doc.children(Document::ROOT).collect();
        for node in &made {
            // Each is a separate tree.
            doc.detach(*node);
        }
        made.reverse();
        enum Found {
            Item(Item),
            Here(NodeId),
            /// The element, and the number of its namespace node.
            Namespace(NodeId, u32),
        }
        let mut raw: Vec<NodeId> = Vec::new();
        let mut found = Vec::with_capacity(pending.len());
        for pending in pending {
            match pending {
                Pending::Item(item) => found.push(Found::Item(item)),
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
                    found.extend(doc.attributes(holder).next().map(Found::Here));
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
        let items = found.into_iter().map(|found| match found {
            Found::Item(item) => item,
            Found::Here(id) => Item::Node(Node::in_document(root.doc, id)),
            Found::Namespace(id, namespace) => {
                Item::Node(Node { namespace, ..Node::in_document(root.doc, id) })
            }
        });
        Ok(Value::from_items(items.collect()))
    }

    /// A temporary tree: its root.
    pub(super) fn tree(
        &self,
        body: &[Instruction],
        focus: Focus,
        frame: &mut Frame,
        place: Place,
    ) -> Res<Value> {
        let mut doc = Document::new();
        let mut out = Out::tree(Builder::new(&mut doc, Document::ROOT));
        self.exec(body, focus, frame, &mut out)?;
        out.finish();
        self.add_fragment(doc, place)
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

    // Dynamic context.

    /// Copies the dynamic context of another engine, with the same numbers.
    pub(super) fn take_dynamics(&mut self, from: &Engine<'_>) {
        if let (Ok(dynamics), Ok(other)) = (self.dynamics.get_mut(), from.dynamics.lock()) {
            dynamics.clone_from(&other);
        }
    }

    pub(super) fn dynamic(&self, number: u32) -> Option<Arc<Dynamic>> {
        if number == NO_DYNAMIC {
            return None;
        }
        self.dynamics.lock().ok()?.get(number as usize).cloned()
    }

    /// Runs `f` with a changed dynamic context.
    pub(super) fn with_dynamic<R>(
        &self,
        focus: Focus,
        change: impl FnOnce(&mut Dynamic),
        f: impl FnOnce(Focus) -> Res<R>,
    ) -> Res<R> {
        let mut dynamic = self.dynamic(focus.dynamic).map_or_else(Dynamic::default, |d| (*d).clone());
        change(&mut dynamic);
        let failed = || self.fail(Place::default(), "the state of the transformation is lost".into());
        let number = {
            let mut dynamics = self.dynamics.lock().map_err(|_| failed())?;
            dynamics.push(Arc::new(dynamic));
            (dynamics.len() - 1) as u32
        };
        let result = f(Focus { dynamic: number, ..focus });
        if let Ok(mut dynamics) = self.dynamics.lock() {
            dynamics.truncate(number as usize);
        }
        result
    }

    /// Runs `f` with the arguments of a call: tunnel parameters go into the dynamic context, the others are passed.
    pub(super) fn with_arguments<R>(
        &self,
        arguments: &[Argument],
        focus: Focus,
        frame: &mut Frame,
        f: impl FnOnce(&[(Name, Value)], Focus, &mut Frame) -> Res<R>,
    ) -> Res<R> {
        let mut params = Vec::new();
        let mut tunnel = Vec::new();
        for argument in arguments {
            let value = self.binding(&argument.value, focus, frame, argument.place)?;
            if argument.tunnel { &mut tunnel } else { &mut params }.push((argument.name, value));
        }
        if tunnel.is_empty() {
            return f(&params, focus, frame);
        }
        let change = |dynamic: &mut Dynamic| {
            for (name, value) in dynamic.tunnel.iter() {
                if !tunnel.iter().any(|(n, _)| n == name) {
                    tunnel.push((*name, value.clone()));
                }
            }
            dynamic.tunnel = tunnel.into();
        };
        self.with_dynamic(focus, change, |focus| f(&params, focus, frame))
    }

    // Groups.

    fn for_each_group(
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
        let same = |a: &Atomic, b: &Atomic| same_key(&collation.atom(a), &collation.atom(b));
        match &op.by {
            Grouping::By(key) | Grouping::Adjacent(key) if op.composite => {
                let by = matches!(op.by, Grouping::By(_));
                let mut by_hash: std::collections::HashMap<Vec<xpath::atomic::Bucket>, Vec<usize>> =
                    std::collections::HashMap::new();
                for (index, node) in population.iter().enumerate() {
                    self.tick(out)?;
                    let value = self.value(key, at(index, *node), frame, place)?;
                    let atoms: Vec<Atomic> = value.items().map(|item| self.key_atom(item)).collect();
                    let is_its = |number: usize| {
                        let group_keys = &groups[number].0;
                        group_keys.len() == atoms.len()
                            && group_keys.items().zip(&atoms).all(|(key, atom)| same(&self.atom(key), atom))
                    };
                    let number = if by {
                        let hash = atoms.iter().map(|atom| collation.atom(atom).bucket()).collect();
                        let candidates = by_hash.entry(hash).or_default();
                        let found = candidates.iter().copied().find(|number| is_its(*number));
                        if found.is_none() {
                            candidates.push(groups.len());
                        }
                        found
                    } else {
                        groups.len().checked_sub(1).filter(|last| is_its(*last))
                    };
                    match number {
                        Some(number) => groups[number].1.push(*node),
                        None => {
                            let key = Value::from_items(atoms.into_iter().map(Item::Atomic).collect());
                            groups.push((key, vec![*node]));
                        }
                    }
                }
            }
            Grouping::By(key) => {
                let mut by_hash: std::collections::HashMap<xpath::atomic::Bucket, Vec<usize>> =
                    std::collections::HashMap::new();
                for (index, node) in population.iter().enumerate() {
                    self.tick(out)?;
                    let value = self.value(key, at(index, *node), frame, place)?;
                    let mut numbers: Vec<usize> = Vec::new();
                    for item in value.items() {
                        let atom = self.key_atom(item);
                        let hash = collation.atom(&atom).bucket();
                        let candidates = by_hash.entry(hash).or_default();
                        let is_its = |number: &&usize| {
                            groups[**number].0.single_atomic().is_some_and(|key| same(&key, &atom))
                        };
                        let number = match candidates.iter().find(is_its) {
                            Some(number) => *number,
                            None => {
                                groups.push((Value::from(atom), Vec::new()));
                                candidates.push(groups.len() - 1);
                                groups.len() - 1
                            }
                        };
                        // An item with the same key twice is in the group once.
                        if !numbers.contains(&number) {
                            numbers.push(number);
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

    /// A grouping key: untyped values count as strings.
    pub(super) fn key_atom(&self, item: Item) -> Atomic {
        match self.atom(item) {
            Atomic::Untyped(text) => Atomic::String(text),
            atom => atom,
        }
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
}

/// Whether two grouping keys are the same, where NaN equals itself.
fn same_key(a: &Atomic, b: &Atomic) -> bool {
    a.equals(b) || (a.is_numeric() && b.is_numeric() && a.to_double().is_nan() && b.to_double().is_nan())
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
