//! Making nodes of the result: literal result elements, `xsl:element`, `xsl:attribute`, attribute sets, and texts of bodies.

use super::out::{Destination, Fit, Out};
use super::{Engine, Focus, Frame, Res};
use crate::model::Place;
use crate::model::{Avt, Instruction, Literal, Op, Scope};
use std::borrow::Cow;
use xpath::Value;

impl Engine<'_> {
    /// The start of a literal result element with computed attributes, or for an output other than plain XML.
    #[inline(never)]
    pub(super) fn start_literal(
        &self,
        literal: &Literal,
        focus: &Focus,
        frame: &mut Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        if literal.bindings.is_some()
            && let Some(fast) = out.fast()
        {
            fast.start_literal(literal);
            if !literal.sets.is_empty() {
                self.attribute_sets(&literal.sets, *focus, out)?;
                for a in &literal.attributes {
                    let value = self.avt(&a.value, *focus, frame, place)?;
                    out.attribute(&a.prefix, &a.namespace, &a.local, &value);
                }
                return Ok(());
            }
            for attribute in &literal.attributes[literal.fixed_count..] {
                let value = self.avt(&attribute.value, *focus, frame, place)?;
                if let Some(fast) = out.fast() {
                    fast.literal_attribute(&attribute.lead, &value);
                }
            }
            return Ok(());
        }
        if literal.closed && !literal.more && out.literal(literal) {
            return Ok(());
        }
        out.start_element(&literal.prefix, &literal.namespace, &literal.local);
        for (prefix, uri) in &literal.namespaces {
            out.namespace(prefix, uri);
        }
        self.attribute_sets(&literal.sets, *focus, out)?;
        for attribute in &literal.attributes {
            let value = self.avt(&attribute.value, *focus, frame, place)?;
            out.attribute(&attribute.prefix, &attribute.namespace, &attribute.local, &value);
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn element(
        &self,
        name: &Avt,
        namespace: Option<&Avt>,
        scope: &Scope,
        sets: &[usize],
        body: &[Instruction],
        focus: Focus,
        frame: &mut Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        let name = self.avt(name, focus, frame, place)?;
        let name = name.trim();
        if !crate::compile::is_qname(name) {
            return Err(
                self.fail(place, self.coded(format!("XTDE0820: \"{name}\" is not the name of an element")))
            );
        }
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        let uri = match namespace {
            Some(namespace) => self.namespace_of(namespace, "XTDE0835", focus, frame, place)?,
            None => match lookup(scope, prefix) {
                Some(uri) => Cow::Borrowed(uri),
                None if prefix.is_empty() => Cow::Borrowed(""),
                None => {
                    let message = self.coded(format!("XTDE0830: the prefix \"{prefix}\" is not declared"));
                    return Err(self.fail(place, message));
                }
            },
        };
        let is_foreign = prefix == "xmlns" || prefix == "xml";
        let prefix = match &*uri {
            xml::XML_NS => "xml",
            "" => "",
            _ if is_foreign => "",
            _ => prefix,
        };
        out.start_element(prefix, &uri, local);
        self.attribute_sets(sets, focus, out)?;
        self.exec(body, focus, frame, out)?;
        out.end_element();
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn attribute(
        &self,
        name: &Avt,
        namespace: Option<&Avt>,
        scope: &Scope,
        body: &[Instruction],
        focus: Focus,
        frame: &mut Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        let name = self.attribute_name(name, namespace, scope, focus, frame, place)?;
        let value = self.text_of(body, focus, frame, out.inner(self.plan.version3))?;
        let (prefix, uri, local) = name.parts();
        self.put_attribute(prefix, uri, local, &value, place, out)
    }

    /// Writes an attribute. After content it is left out in XSLT 1.0, as section 7.1.3 allows, and an error in 2.0.
    pub(super) fn put_attribute(
        &self,
        prefix: &str,
        uri: &str,
        local: &str,
        value: &str,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        if out.attribute(prefix, uri, local, value) || !self.plan.version2 {
            return Ok(());
        }
        Err(self.fail(place, self.misplaced(&format!("the attribute {local}"), out)))
    }

    /// Writes a namespace node, which must fit (XSLT 2.0 section 5.7.1). In XSLT 1.0 one that does not is left out.
    pub(super) fn put_namespace(&self, prefix: &str, uri: &str, place: Place, out: &mut Out<'_>) -> Res<()> {
        if !self.plan.version2 {
            out.namespace(prefix, uri);
            return Ok(());
        }
        // The namespace of the prefix xml is in force everywhere.
        if prefix == "xml" && uri == xml::XML_NS {
            return Ok(());
        }
        let message = match out.made_namespace(prefix, uri) {
            Fit::Fits => return Ok(()),
            Fit::Misplaced => self.misplaced(&format!("the namespace \"{uri}\""), out),
            Fit::Contradicts => {
                format!("XTDE0430: the prefix \"{prefix}\" stands for another namespace than \"{uri}\" there")
            }
            Fit::NoNamespace => {
                format!("XTDE0440: the element is in no namespace, \"{uri}\" cannot be its default namespace")
            }
        };
        Err(self.fail(place, message))
    }

    /// The error of an attribute or namespace after content, or outside of an element.
    #[cold]
    fn misplaced(&self, node: &str, out: &Out<'_>) -> String {
        match out.is_at_top() {
            true => format!("XTDE0420: {node} is in no element"),
            false => format!("XTDE0410: {node} comes behind the content of its element"),
        }
    }

    /// The name that `xsl:attribute` computes. `scope`: the namespaces of the instruction.
    pub(super) fn attribute_name<'t>(
        &'t self,
        name: &'t Avt,
        namespace: Option<&'t Avt>,
        scope: &'t Scope,
        focus: Focus,
        frame: &Frame,
        place: Place,
    ) -> Res<AttributeName<'t>> {
        let written = self.avt(name, focus, frame, place)?;
        let name = written.trim();
        if !crate::compile::is_qname(name) || (name == "xmlns" && namespace.is_none()) {
            let code = if name == "xmlns" { "XTDE0855" } else { "XTDE0850" };
            let message = self.coded(format!("{code}: \"{name}\" is not the name of an attribute"));
            return Err(self.fail(place, message));
        }
        let prefix = name.split_once(':').map_or("", |(prefix, _)| prefix);
        let uri = match namespace {
            Some(namespace) => self.namespace_of(namespace, "XTDE0865", focus, frame, place)?,
            None if prefix.is_empty() => Cow::Borrowed(""),
            None => match lookup(scope, prefix) {
                Some(uri) => Cow::Borrowed(uri),
                None => {
                    let message = self.coded(format!("XTDE0860: the prefix \"{prefix}\" is not declared"));
                    return Err(self.fail(place, message));
                }
            },
        };
        Ok(AttributeName { written, uri })
    }

    /// The namespace that an instruction computes; `code`: of the error where it is not a URI, from 2.0 on.
    fn namespace_of<'t>(
        &'t self,
        namespace: &'t Avt,
        code: &str,
        focus: Focus,
        frame: &Frame,
        place: Place,
    ) -> Res<Cow<'t, str>> {
        let uri = self.avt(namespace, focus, frame, place)?;
        if self.plan.version2 && uri.split('#').count() > 2 {
            return Err(self.fail(place, format!("{code}: \"{uri}\" is not a URI")));
        }
        Ok(uri)
    }

    pub(super) fn attribute_sets(&self, sets: &[usize], focus: Focus, out: &mut Out<'_>) -> Res<()> {
        for set in sets {
            for part in &self.plan.sets[*set].parts {
                self.attribute_sets(&part.uses, focus, out)?;
                let mut frame = Frame::default();
                frame.locals.resize(part.slots, Value::Empty);
                self.exec(&part.body, focus, &mut frame, out)?;
            }
        }
        Ok(())
    }

    /// The text of a body: the value of an attribute, comment or processing instruction. `destination`: see [`Out::inner`].
    pub(super) fn text_of<'t>(
        &'t self,
        body: &'t [Instruction],
        focus: Focus,
        frame: &mut Frame,
        destination: Destination,
    ) -> Res<Cow<'t, str>> {
        match body {
            [] => Ok(Cow::Borrowed("")),
            [Instruction { op: Op::Text { text, .. }, .. }] => Ok(Cow::Borrowed(text)),
            [Instruction { op: Op::ValueOf { select, .. }, place }] => {
                if let Some(path) = self.name_path(select, focus.node)
                    && let Some(text) = if select.is_many() { path.only_text() } else { path.text() }
                {
                    return Ok(Cow::Borrowed(text));
                }
                if select.is_many() {
                    return self.items_text(select, focus, frame, *place).map(Cow::Owned);
                }
                self.string(select, focus, frame, *place).map(Cow::Owned)
            }
            body => {
                let mut out = Out::text_only(self.plan.version2).of(destination);
                self.exec(body, focus, frame, &mut out)?;
                Ok(Cow::Owned(out.into_text()))
            }
        }
    }
}

/// The name of an attribute that was computed.
pub(super) struct AttributeName<'t> {
    /// A qualified name, perhaps with white space around it.
    written: Cow<'t, str>,
    uri: Cow<'t, str>,
}

impl AttributeName<'_> {
    /// Prefix, namespace and local name. Without a namespace there is no prefix, and `xmlns` is none.
    pub(super) fn parts(&self) -> (&str, &str, &str) {
        let name = self.written.trim();
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        let prefix = if self.uri.is_empty() || prefix == "xmlns" { "" } else { prefix };
        (prefix, &self.uri, local)
    }
}

/// The namespace of a prefix.
pub(super) fn lookup<'s>(scope: &'s Scope, prefix: &str) -> Option<&'s str> {
    if prefix == "xml" {
        return Some(xml::XML_NS);
    }
    scope.iter().find(|(p, _)| **p == *prefix).map(|(_, uri)| &**uri)
}
