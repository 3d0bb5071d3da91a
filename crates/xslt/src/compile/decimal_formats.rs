//! `xsl:decimal-format`.

use super::Compiler;
use crate::model::Place;
use crate::names::Name;
use std::collections::HashMap;
use xml::NodeId;
use xpath::format::DecimalFormat;

impl Compiler<'_> {
    pub(super) fn decimal_format(&mut self, node: NodeId, formats: &mut HashMap<Name, DeclaredFormat>) {
        const CHARACTERS: [&str; 9] = [
            "decimal-separator",
            "grouping-separator",
            "minus-sign",
            "percent",
            "per-mille",
            "zero-digit",
            "digit",
            "pattern-separator",
            "exponent-separator",
        ];
        let characters = if self.plan.version3 { &CHARACTERS[..] } else { &CHARACTERS[..8] };
        let mut allowed = vec!["name", "infinity", "NaN"];
        allowed.extend(characters);
        self.attributes(node, &allowed, &[]);
        self.empty(node);
        let name = match self.attribute(node, "name") {
            Some(name) => match self.symbol(node, &name) {
                Some(name) => name,
                None => return,
            },
            None => self.symbols.intern("", ""),
        };
        // From 2.0 on each attribute counts from the declaration with the highest import precedence that has it.
        let mut declared = match self.plan.version2 {
            true => formats.remove(&name).unwrap_or_default(),
            false => DeclaredFormat::default(),
        };
        for attribute in allowed.iter().copied().filter(|name| *name != "name") {
            let Some(value) = self.attribute(node, attribute) else { continue };
            let given = (self.precedence, value);
            if let Some(before) = declared.given.insert(attribute, given.clone())
                && before.0 == given.0
                && before.1 != given.1
                && self.plan.version2
            {
                self.error(node, format!("XTSE1290: this decimal format has two values for {attribute}"));
            }
        }
        let format = &mut declared.format;
        let mut wrong = Vec::new();
        for attribute in characters.iter().copied() {
            let Some(value) = self.attribute(node, attribute) else { continue };
            let mut chars = value.chars();
            let (Some(character), None) = (chars.next(), chars.next()) else {
                wrong.push(format!("{attribute} must be one character"));
                continue;
            };
            if self.version2 && attribute == "zero-digit" && !xpath::format::is_zero_digit(character) {
                wrong.push(format!("XTSE1295: zero-digit=\"{value}\" is not a digit zero"));
            }
            *match attribute {
                "decimal-separator" => &mut format.decimal_separator,
                "grouping-separator" => &mut format.grouping_separator,
                "minus-sign" => &mut format.minus_sign,
                "percent" => &mut format.percent,
                "per-mille" => &mut format.per_mille,
                "zero-digit" => &mut format.zero_digit,
                "digit" => &mut format.digit,
                "exponent-separator" => &mut format.exponent_separator,
                _ => &mut format.pattern_separator,
            } = character;
        }
        if let Some(infinity) = self.attribute(node, "infinity") {
            format.infinity = infinity;
        }
        if let Some(nan) = self.attribute(node, "NaN") {
            format.nan = nan;
        }
        wrong.into_iter().for_each(|message| self.error(node, message));
        declared.precedence = self.precedence;
        if let Some(other) = formats.get(&name)
            && other.precedence == self.precedence
            && other.format != declared.format
        {
            self.error(node, "this decimal format is declared twice, differently".into());
        }
        declared.place = self.place(node);
        formats.insert(name, declared);
    }

    /// From 2.0 on no character may have two roles in a decimal format (section 16.4.1).
    pub(super) fn check_decimal_format(&mut self, name: Name, declared: &DeclaredFormat) {
        let format = &declared.format;
        let roles = [
            ("decimal-separator", format.decimal_separator),
            ("grouping-separator", format.grouping_separator),
            ("percent", format.percent),
            ("per-mille", format.per_mille),
            ("zero-digit", format.zero_digit),
            ("digit", format.digit),
            ("pattern-separator", format.pattern_separator),
        ];
        for (at, (role, character)) in roles.iter().enumerate() {
            if let Some((other, _)) = roles[..at].iter().find(|(_, c)| c == character) {
                let shown = self.symbols.show(name);
                let place = declared.place;
                let uri = self.plan.modules.get(place.module as usize).cloned().unwrap_or_default();
                let message = format!(
                    "XTSE1300: in the decimal format \"{shown}\" the character \"{character}\" is {other} and {role}"
                );
                let (line, column) = (place.line, place.column);
                self.errors.push(crate::XsltError { message, uri, line, column, raised: None });
                return;
            }
        }
    }
}

/// The attributes of the declarations of a decimal format so far.
#[derive(Default)]
pub(super) struct DeclaredFormat {
    pub format: DecimalFormat,
    precedence: u32,
    /// The last one.
    place: Place,
    /// The attributes that were given, with import precedence and value.
    given: HashMap<&'static str, (u32, String)>,
}
