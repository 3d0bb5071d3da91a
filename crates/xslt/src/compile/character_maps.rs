//! Character maps (`xsl:character-map`): declared, then each with those that it uses.

use super::{Compiler, XSLT};
use crate::model::Place;
use crate::names::Name;
use std::collections::BTreeMap;
use xml::NodeId;

const MAX_NESTED_MAPS: usize = 100;

/// The maps that an `xsl:character-map` uses, and its own characters.
pub(crate) type CharacterMap = (Vec<Name>, Vec<(char, String)>, Place);

impl Compiler<'_> {
    /// `xsl:character-map`.
    pub(super) fn character_map(&mut self, node: NodeId) {
        self.attributes(node, &["name", "use-character-maps"], &["name"]);
        self.only(node, &["output-character"]);
        let Some(name) = self.symbol_attribute(node, "name") else { return };
        let module = self.module.clone();
        let doc = &module.doc;
        let used = self.attribute(node, "use-character-maps").unwrap_or_default();
        let uses = used.split_ascii_whitespace().filter_map(|used| self.symbol(node, used)).collect();
        let mut entries = Vec::new();
        for child in doc.children(node).filter(|n| doc.is_element(*n, XSLT, "output-character")) {
            self.attributes(child, &["character", "string"], &["character", "string"]);
            let character = self.attribute(child, "character").unwrap_or_default();
            let mut chars = character.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => entries.push((c, self.attribute(child, "string").unwrap_or_default())),
                _ => {
                    let message = format!("character=\"{character}\" must be one character");
                    self.error_as(child, "XTSE0020", message);
                }
            }
        }
        if self.map_precedence.insert(name, self.precedence) == Some(self.precedence) {
            let shown = self.symbols.show(name);
            self.error(node, format!("XTSE1580: there are two character maps \"{shown}\""));
        }
        let place = self.place(node);
        self.character_maps.insert(name, (uses, entries, place));
    }

    /// The characters that each map replaces, with those it uses; then those of each `xsl:output`.
    pub(super) fn resolve_character_maps(&mut self) {
        let mut names: Vec<(Place, Name)> =
            self.character_maps.iter().map(|(name, (_, _, place))| (*place, *name)).collect();
        names.sort_by_key(|(place, _)| (place.module, place.line, place.column));
        for (place, name) in names {
            if let Err(message) = self.character_map_of(name, &mut Vec::new()) {
                self.unplaced(message, place);
            }
        }
        for (output, (maps, place)) in std::mem::take(&mut self.used_maps) {
            let mut all = BTreeMap::new();
            for map in maps {
                match self.plan.character_maps.get(&map) {
                    Some(map) => all.extend(map.iter().map(|(c, text)| (*c, text.clone()))),
                    None => self.unplaced(no_map(&self.symbols.show(map)), place),
                }
            }
            let output = match output {
                None => &mut self.plan.output,
                Some(name) => self.plan.outputs.entry(name).or_default(),
            };
            output.character_map.extend(all);
            if let (true, Some(message)) = (self.plan.version2, output.contradiction()) {
                self.unplaced(message.to_owned(), place);
            }
        }
    }

    /// The replacements of a map: the last one counts, and its own come after those of the maps it uses.
    fn character_map_of(&mut self, name: Name, open: &mut Vec<Name>) -> Result<(), String> {
        if self.plan.character_maps.contains_key(&name) {
            return Ok(());
        }
        let shown = self.symbols.show(name);
        if open.contains(&name) {
            return Err(format!("XTSE1600: the character map \"{shown}\" uses itself"));
        }
        if open.len() >= MAX_NESTED_MAPS {
            return Err(format!("character maps use one another more than {MAX_NESTED_MAPS} deep"));
        }
        let Some((uses, entries, _)) = self.character_maps.get(&name).cloned() else {
            return Err(no_map(&shown));
        };
        open.push(name);
        let mut all = BTreeMap::new();
        for used in uses {
            self.character_map_of(used, open)?;
            if let Some(map) = self.plan.character_maps.get(&used) {
                all.extend(map.iter().map(|(c, text)| (*c, text.clone())));
            }
        }
        open.pop();
        all.extend(entries);
        self.plan.character_maps.insert(name, all);
        Ok(())
    }

    fn unplaced(&mut self, message: String, place: Place) {
        let uri = self.plan.modules.get(place.module as usize).cloned().unwrap_or_default();
        let (line, column) = (place.line, place.column);
        self.errors.push(crate::XsltError { message, uri, line, column, raised: None });
    }
}

fn no_map(name: &str) -> String {
    format!("XTSE1590: there is no character map \"{name}\"")
}
