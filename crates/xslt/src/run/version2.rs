//! The instructions of XSLT 2.0; their common parts are in `items`, `sequences`, `functions`, `groups` and `dynamic`.

use super::out::Out;
use super::{Engine, Focus, Frame, NO_RULE, Res};
use crate::expr::Expr;
use crate::model::Place;
use crate::version2::{Content, Version2};
use std::sync::Arc;
use xpath::atomic::Atomic;
use xpath::{Item, Value};

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
                let text = self.content(content, focus, frame, place, out.inner(self.plan.version3))?;
                out.text(&text, *raw);
            }
            Version2::TextTemplate(text) => {
                let text = self.avt(text, focus, frame, place)?;
                out.text(&text, false);
            }
            Version2::Attribute { name, namespace, scope, content } => {
                let name = self.attribute_name(name, namespace.as_ref(), scope, focus, frame, place)?;
                let text = self.content(content, focus, frame, place, out.inner(self.plan.version3))?;
                let (prefix, uri, local) = name.parts();
                self.put_attribute(prefix, uri, local, &text, place, out)?;
            }
            Version2::Comment { content } => {
                let text = self.content(content, focus, frame, place, out.inner(self.plan.version3))?;
                out.comment(&text);
            }
            Version2::Pi { name, content } => {
                let name = self.avt(name, focus, frame, place)?;
                let text = self.content(content, focus, frame, place, out.inner(self.plan.version3))?;
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
                let uri = self.content(content, focus, frame, place, out.inner(self.plan.version3))?;
                if !(prefix.is_empty() || xml::is_ncname(&prefix)) || prefix == "xmlns" {
                    return Err(self.fail(place, format!("XTDE0920: \"{prefix}\" cannot be a prefix")));
                }
                if uri.is_empty() {
                    return Err(self.fail(place, "XTDE0930: the namespace of xsl:namespace is empty".into()));
                }
                if uri == xml::XMLNS_NS {
                    let message = "XTDE0905: no prefix can stand for the namespace of xmlns";
                    return Err(self.fail(place, message.into()));
                }
                if (prefix == "xml") != (uri == xml::XML_NS) {
                    let message = format!(
                        "XTDE0925: the prefix xml and its namespace belong together, not \"{prefix}\" and \"{uri}\""
                    );
                    return Err(self.fail(place, message));
                }
                self.put_namespace(&prefix, &uri, place, out)?;
            }
            Version2::CopyOf { select, namespaces } => {
                let value = self.value(select, focus, frame, place)?;
                self.copy_items(&value, *namespaces, out, place)?;
            }
            Version2::Copy { select: Some(select), sets, body, namespaces, inherits } => {
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
                            _ => self.copy(sets, body, (*namespaces, *inherits), focus, frame, place, out)?,
                        }
                    }
                    _ => {
                        let message = "XTTE3180: select of xsl:copy must be at most one item";
                        return Err(self.fail(place, message.into()));
                    }
                }
                self.release(mark);
            }
            Version2::Isolate => out.isolate(),
            Version2::Copy { select: None, sets, body, namespaces, inherits } => {
                match self.item(focus.node) {
                    Some(Item::Atomic(atom)) => self.write_items(&Value::from(atom), false, out, place)?,
                    Some(_) => self.copy(sets, body, (*namespaces, *inherits), focus, frame, place, out)?,
                    None => {
                        let message = "XTTE0945: xsl:copy needs a context item";
                        return Err(self.fail(place, message.into()));
                    }
                }
            }
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
                        let destination = out.inner(self.plan.version3);
                        let value = self.sequence_to(body, focus, frame, place, destination)?;
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
            Version2::Message { content, terminate, code, scope } => {
                let text = match self.message_text(content, focus, frame, place) {
                    // From 3.0 on an error in a message does not end the transformation (section 23.1).
                    Err(error) if self.plan.version3 && error.has_code() && !self.is_exceeded() => {
                        error.message
                    }
                    text => text?,
                };
                if let Some(messages) = self.options.messages {
                    messages(&text);
                }
                let terminate = self.avt(terminate, focus, frame, place)?;
                let allowed = ["yes", "no", "true", "false", "1", "0"];
                if !allowed.contains(&terminate.trim()) {
                    let message = format!("XTDE0030: terminate=\"{terminate}\" must be yes or no");
                    return Err(self.fail(place, message));
                }
                if matches!(terminate.trim(), "yes" | "true" | "1") {
                    let message = format!("xsl:message ended the transformation: {}", text.trim());
                    let code = match code {
                        Some(code) => Some(self.avt(code, focus, frame, place)?),
                        None => None,
                    };
                    // For `$err:value` of a catch; its errors were reported above.
                    let value = match self.plan.version3 {
                        true => self.message_document(content, focus, frame, place),
                        false => Ok(Value::from(text)),
                    };
                    let value = value.unwrap_or_default();
                    return Err(self.raised(code.as_deref(), "XTMM9000", scope, value, message, place));
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

    /// The message as a document.
    #[cold]
    fn message_document(
        &self,
        content: &Content,
        focus: Focus,
        frame: &mut Frame,
        place: Place,
    ) -> Res<Value> {
        let Some(select) = &content.select else { return self.tree(&content.body, focus, frame, place) };
        let mut items: Vec<Item> = self.value(select, focus, frame, place)?.items().collect();
        items.extend(self.sequence_of(&content.body, focus, frame, place)?.items());
        self.document_of(&Value::from_items(items), place)
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
}
