//! `xsl:result-document` (XSLT 2.0 section 19): further results, and the principal one with properties of its own.

use super::construction::lookup;
use super::out::{Destination, Out};
use super::{Engine, Focus, Frame, Res};
use crate::model::{Avt, Place};
use crate::names::Name;
use crate::output::{OutputProperties, Writing};
use crate::version2::ResultDocument;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The results of one transformation.
#[derive(Default)]
pub(super) struct Written {
    uris: Mutex<HashSet<String>>,
    /// The principal result, by an instruction.
    principal: AtomicBool,
}

impl Engine<'_> {
    /// At the end: whether there is a principal result. Where there are others it may be absent (section 2.4).
    pub(super) fn end(&self, out: &Out<'_>) -> Res<bool> {
        if out.is_broken() {
            return Err(self.fail(Place::default(), twice("the principal result")));
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
        let bytes = self.written(op, focus, frame, place, out)?;
        results.take(&uri, bytes).map_err(named)
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
        if !out.makes_bytes() || !op.has_properties() {
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
        let writing;
        let writing = if op.has_properties() {
            writing = Writing::new(&self.properties(op, focus, frame, place)?, true);
            &writing
        } else {
            &self.plan.writing
        };
        let mut bytes = Vec::new();
        let mut further = Out::bytes(&mut bytes, writing.method()).of(Destination::Further);
        // One limit for all results.
        further.written = out.written;
        let done = self.exec(&op.body, focus, frame, &mut further);
        out.count(further.written);
        done?;
        self.tick(out)?;
        further.finish();
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
        for (property, value) in &op.properties {
            let value = self.avt(value, focus, frame, place)?;
            output.set(property, &value, true).map_err(|message| self.fail(place, message))?;
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
    }
}

fn twice(destination: &str) -> String {
    format!("XTDE1490: two results for {destination}")
}
