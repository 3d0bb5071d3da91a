//! `xsl:result-document` (XSLT 2.0 section 19): further results, and the principal one with properties of its own.

use super::construction::lookup;
use super::out::{Destination, Out};
use super::{Engine, Focus, Frame, Res};
use crate::model::{Avt, Place};
use crate::names::Name;
use crate::output::{Method, OutputMethod, OutputProperties, Writing};
use crate::version2::ResultDocument;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use xml::{Builder, Document, NodeId, NodeKind};
use xpath::atomic::Atomic;
use xpath::{Expression, Item, Map, Value};

/// The results of one transformation.
#[derive(Default)]
pub(super) struct Written {
    uris: Mutex<HashSet<String>>,
    /// The principal result, by an instruction.
    principal: AtomicBool,
    place: Mutex<Place>,
    /// The bytes of that, where items are collected.
    bytes: Mutex<Option<Vec<u8>>>,
}

impl Engine<'_> {
    /// At the end: whether there is a principal result. Where there are others it may be absent (section 2.4).
    pub(super) fn end(&self, out: &Out<'_>) -> Res<bool> {
        if out.is_broken() {
            let place = *self.results.place.lock().unwrap_or_else(PoisonError::into_inner);
            return Err(self.fail(place, twice("the principal result")));
        }
        let others = !self.results.uris.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        Ok(!(others && out.is_untouched() && !self.results.principal.load(Ordering::Relaxed)))
    }

    #[cold]
    pub(super) fn result_document(
        &self,
        op: &ResultDocument,
        focus: Focus,
        frame: &mut Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        if out.destination() == Destination::Temporary {
            let message =
                "XTDE1480: xsl:result-document inside a value: a variable, an attribute, a function, …";
            return Err(self.fail(place, message.into()));
        }
        let href = match &op.href {
            Some(href) => self.avt(href, focus, frame, place)?,
            None => "".into(),
        };
        if href.is_empty() {
            return self.principal_document(op, focus, frame, place, out);
        }
        let Some(results) = self.options.results else {
            let message = format!(
                "xsl:result-document href=\"{href}\": there is no place for further results here, only the principal one is written"
            );
            return Err(self.fail(place, message));
        };
        let named = |why: String| self.fail(place, format!("xsl:result-document: {why}"));
        let uri = results.absolute(&href).map_err(named)?;
        {
            let mut uris = self.results.uris.lock().unwrap_or_else(PoisonError::into_inner);
            if uris.len() >= self.options.limits.results {
                let message = format!("the limit of results ({}) is exceeded", self.options.limits.results);
                return Err(self.limit(place, message));
            }
            if !uris.insert(uri.clone()) {
                return Err(self.fail(place, twice(&uri)));
            }
        }
        let output: Option<Arc<str>> = Some(crate::resolver::as_uri(&uri).into());
        let bytes = self.with_dynamic(
            focus,
            |dynamic| dynamic.output = output,
            |focus| self.written(op, focus, frame, place, out),
        )?;
        results.take(&uri, bytes).map_err(named)
    }

    /// The principal result where its items are collected. `false`: there is none.
    #[cold]
    pub(super) fn collect(&self, node: NodeId, bytes: &mut Vec<u8>) -> Res<bool> {
        let mut doc = Document::new();
        let mut out = Out::items(Builder::new(&mut doc, Document::ROOT)).of(Destination::Principal);
        self.start(node, &mut out)?;
        let is_result = self.end(&out)?;
        let pending = out.finish_items();
        if let Some(whole) = self.results.bytes.lock().unwrap_or_else(PoisonError::into_inner).take() {
            bytes.extend_from_slice(&whole);
            return Ok(true);
        }
        if is_result {
            let place = self.plan.output_place;
            let value = self.gathered(pending, doc, place)?;
            self.write_collected(&value, &self.plan.output, self.plan.writing.method(), place, bytes)?;
        }
        Ok(is_result)
    }

    /// Writes collected items: as JSON, for people, or with separators (XSLT and XQuery Serialization 3.1, sections 2, 9 and 10).
    fn write_collected(
        &self,
        value: &Value,
        properties: &OutputProperties,
        method: Method<'_>,
        place: Place,
        bytes: &mut Vec<u8>,
    ) -> Res<()> {
        let failed = |error: xml::WriteError| self.fail(place, error.to_string());
        let (is_json, is_adaptive) = (
            properties.method == Some(OutputMethod::Json),
            properties.method == Some(OutputMethod::Adaptive),
        );
        if is_json || is_adaptive {
            let tree;
            let value = match properties.build_tree {
                Some(true) => {
                    tree = self.document_of(value, place)?;
                    &tree
                }
                _ => value,
            };
            let text = self.serialized(value, properties, place)?;
            let Method::Fixed(options) = method else { return Ok(()) };
            let escape = |c: char, out: &mut String| {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04X}"));
                }
            };
            let escape: Option<xml::Replace<'_>> = if is_json { Some(&escape) } else { None };
            return xml::write_text(&text, options, escape, bytes).map_err(failed);
        }
        let separator = properties.item_separator.as_deref().unwrap_or_default();
        let mut out = Out::bytes(bytes, method);
        let mut first = true;
        let mut items: Vec<Item> = Vec::new();
        self.flatten(value, &mut items)?;
        for item in items {
            self.tick(&out)?;
            if !std::mem::take(&mut first) {
                out.text(separator, false);
            }
            let wrong = match &item {
                Item::Atomic(atom) if atom.is_function() => Some("a map or a function"),
                Item::Atomic(_) => None,
                Item::Node(node) if node.is_namespace() => Some("a namespace node"),
                Item::Node(node) if self.doc(node.doc).kind(node.id) == NodeKind::Attribute => {
                    Some("an attribute")
                }
                Item::Node(_) => None,
            };
            if let Some(what) = wrong {
                return Err(self.fail(place, format!("SENR0001: {what} cannot be written by itself")));
            }
            match item {
                Item::Atomic(atom) => out.text(&atom.to_text(), false),
                node => self.write_items(&Value::from_items(vec![node]), true, &mut out, place)?,
            }
        }
        out.finish().map_err(failed)
    }

    /// The items, with the members of arrays in place of those.
    fn flatten(&self, value: &Value, items: &mut Vec<Item>) -> Res<()> {
        for item in value.items() {
            self.tick_alone()?;
            match item {
                Item::Atomic(Atomic::Array(array)) => {
                    for member in array.members() {
                        self.flatten(member, items)?;
                    }
                }
                item => items.push(item),
            }
        }
        Ok(())
    }

    /// A document with these items.
    pub(super) fn document_of(&self, value: &Value, place: Place) -> Res<Value> {
        let mut doc = Document::new();
        let mut out = Out::tree(Builder::new(&mut doc, Document::ROOT));
        self.write_items(value, true, &mut out, place)?;
        out.finish_tree();
        self.add_fragment(doc, place)
    }

    /// The text of a value by the methods json and adaptive, which `serialize()` has.
    fn serialized(&self, value: &Value, properties: &OutputProperties, place: Place) -> Res<String> {
        let text = |text: &str| Value::from(text);
        let is_json = properties.method == Some(OutputMethod::Json);
        let mut parameters = vec![
            ("method", text(if is_json { "json" } else { "adaptive" })),
            ("indent", Value::Boolean(properties.indent == Some(true))),
            ("allow-duplicate-names", Value::Boolean(properties.allow_duplicate_names == Some(true))),
        ];
        if let Some(method) = &properties.json_node_method {
            parameters.push(("json-node-output-method", text(method)));
        }
        if let (Some(separator), false) = (&properties.item_separator, is_json) {
            parameters.push(("item-separator", text(separator)));
        }
        let deep = |error: xpath::TooDeep| self.fail(place, format!("FOER0000: {error}"));
        let mut characters = Map::new();
        for (from, to) in &properties.character_map {
            characters = characters.put(Atomic::string(from.to_string()), text(to)).map_err(deep)?;
        }
        parameters.push(("use-character-maps", Value::Atomic(Atomic::Map(Arc::new(characters)))));
        let mut map = Map::new();
        for (name, value) in parameters {
            map = map.put(Atomic::string(name), value).map_err(deep)?;
        }
        let map = Value::Atomic(Atomic::Map(Arc::new(map)));
        let both = Map::new().put(Atomic::string("parameters"), map).map_err(deep)?;
        let both = Atomic::Map(Arc::new(both.put(Atomic::string("value"), value.clone()).map_err(deep)?));
        let options =
            xpath::CompileOptions { version: xpath::Version::V31, ..xpath::CompileOptions::default() };
        let failed = |error: xpath::XPathError| self.fail(place, error.sentence());
        let expression = Expression::compile("serialize(?value, ?parameters)", &options).map_err(failed)?;
        let mark = self.mark();
        let node = self.keep(both.clone());
        let host = super::host::DocHost { engine: self };
        let context = xpath::Context::at(self.doc(xpath::DocId(0)), node).with_host(&host);
        let context = xpath::Context { item: Some(&both), ..context };
        let text = expression.evaluate_string(&context).map_err(failed)?.into_owned();
        self.release(mark);
        Ok(text)
    }

    /// Without `href`: the principal result, if nothing else writes it.
    fn principal_document(
        &self,
        op: &ResultDocument,
        focus: Focus,
        frame: &mut Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        if out.destination() != Destination::Principal {
            let message = "xsl:result-document without href inside of another result";
            return Err(self.fail(place, message.into()));
        }
        if self.results.principal.swap(true, Ordering::Relaxed) || !out.is_untouched() {
            return Err(self.fail(place, twice("the principal result")));
        }
        *self.results.place.lock().unwrap_or_else(PoisonError::into_inner) = place;
        if out.takes_items() && op.has_properties() {
            let bytes = self.written(op, focus, frame, place, out)?;
            *self.results.bytes.lock().unwrap_or_else(PoisonError::into_inner) = Some(bytes);
        } else if !out.makes_bytes() || !op.has_properties() {
            if op.has_properties() {
                // A tree is not serialised, but wrong names and values are errors.
                self.properties(op, focus, frame, place)?;
            }
            self.exec(&op.body, focus, frame, out)?;
        } else {
            let bytes = self.written(op, focus, frame, place, out)?;
            out.replace(&bytes);
        }
        out.seal();
        Ok(())
    }

    /// The document, serialised.
    fn written(
        &self,
        op: &ResultDocument,
        focus: Focus,
        frame: &mut Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<Vec<u8>> {
        let (writing, properties);
        let (writing, properties) = if op.has_properties() {
            properties = self.properties(op, focus, frame, place)?;
            writing = Writing::new(&properties, true, self.plan.version3);
            (&writing, &properties)
        } else {
            (&self.plan.writing, &self.plan.output)
        };
        let mut bytes = Vec::new();
        if properties.collects() {
            let value = self.sequence_to(&op.body, focus, frame, place, Destination::Further)?;
            self.tick(out)?;
            self.write_collected(&value, properties, writing.method(), place, &mut bytes)?;
            return Ok(bytes);
        }
        let mut further = Out::bytes(&mut bytes, writing.method()).of(Destination::Further);
        // One limit for all results.
        further.written = out.written;
        let done = self.exec(&op.body, focus, frame, &mut further);
        out.count(further.written);
        done?;
        self.tick(out)?;
        further.finish().map_err(|error| self.fail(place, error.to_string()))?;
        Ok(bytes)
    }

    /// Those of its format, overridden by the instruction's attributes.
    fn properties(
        &self,
        op: &ResultDocument,
        focus: Focus,
        frame: &Frame,
        place: Place,
    ) -> Res<OutputProperties> {
        let mut output = match &op.format {
            None => self.plan.output.clone(),
            Some(format) => {
                let format = self.avt(format, focus, frame, place)?;
                let name_found = self.name_in(op, &format, place, false)?;
                let found = name_found.and_then(|(_, name)| self.plan.outputs.get(&name?));
                let unknown =
                    || self.fail(place, format!("XTDE1460: there is no xsl:output named \"{format}\""));
                found.cloned().ok_or_else(unknown)?
            }
        };
        if let Some(href) = &op.parameter_document {
            let href = self.avt(href, focus, frame, place)?;
            let base = self.plan.bases.get(place.base as usize).map_or("", String::as_str);
            let failed =
                |message: String| self.fail(place, format!("FODC0002: parameter-document: {message}"));
            let node = self.load(href.trim(), base).map_err(failed)?;
            let node = node.ok_or_else(|| failed(format!("there is no document \"{href}\"")))?;
            output.set_by_document(self.doc(node.doc)).map_err(|message| self.fail(place, message))?;
        }
        for (property, value) in &op.properties {
            let value = self.avt(value, focus, frame, place)?;
            output.set(property, &value, true).map_err(|error| self.fail(place, error.coded("XTDE0030")))?;
        }
        let words = |avt: &Option<Avt>| -> Res<Vec<String>> {
            let Some(avt) = avt else { return Ok(Vec::new()) };
            let text = self.avt(avt, focus, frame, place)?;
            Ok(text.split_ascii_whitespace().map(str::to_owned).collect())
        };
        for name in words(&op.cdata_section_elements)? {
            if let Some((expanded, _)) = self.name_in(op, &name, place, true)? {
                output.cdata_section_elements.push(expanded);
            }
        }
        for name in words(&op.suppress_indentation)? {
            if let Some((expanded, _)) = self.name_in(op, &name, place, true)? {
                output.suppress_indentation.push(expanded);
            }
        }
        for name in words(&op.character_maps)? {
            let name_found = self.name_in(op, &name, place, false)?;
            let Some(map) = name_found.and_then(|(_, name)| self.plan.character_maps.get(&name?)) else {
                return Err(self.fail(place, format!("XTSE1590: there is no character map \"{name}\"")));
            };
            output.character_map.extend(map.iter().map(|(c, text)| (*c, text.clone())));
        }
        match output.contradiction() {
            Some(message) => Err(self.fail(place, message.into())),
            None => Ok(output),
        }
    }

    /// A qualified name in the instruction: expanded, and as a name of the stylesheet. `element`: the default namespace
    /// applies. `None`: it is not a qualified name.
    #[allow(clippy::type_complexity)]
    fn name_in(
        &self,
        op: &ResultDocument,
        name: &str,
        place: Place,
        element: bool,
    ) -> Res<Option<((String, String), Option<Name>)>> {
        let name = name.trim();
        if !crate::compile::is_qname(name) {
            return Ok(None);
        }
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        let namespace = match lookup(&op.scope, prefix) {
            Some(_) if prefix.is_empty() && !element => "",
            Some(namespace) => namespace,
            None if prefix.is_empty() => "",
            None => return Err(self.fail(place, format!("the prefix \"{prefix}\" is not declared"))),
        };
        let symbol = self.symbols.find(namespace, local);
        Ok(Some(((namespace.to_owned(), local.to_owned()), symbol)))
    }
}

impl ResultDocument {
    /// Whether it has other properties than `xsl:output`.
    fn has_properties(&self) -> bool {
        self.format.is_some()
            || !self.properties.is_empty()
            || self.cdata_section_elements.is_some()
            || self.suppress_indentation.is_some()
            || self.character_maps.is_some()
            || self.parameter_document.is_some()
    }
}

fn twice(destination: &str) -> String {
    format!("XTDE1490: two results for {destination}")
}
