//! Modes: `xsl:mode`, and the modes that templates and `xsl:apply-templates` name.

use super::{Compiler, XSLT};
use crate::pattern::{NoMatch, Test};
use crate::version2::CURRENT_MODE;
use xml::NodeId;

impl Compiler<'_> {
    /// `xsl:mode`.
    pub(super) fn mode_declaration(&mut self, node: NodeId) {
        self.attributes(
            node,
            &[
                "name",
                "on-no-match",
                "on-multiple-match",
                "warning-on-no-match",
                "warning-on-multiple-match",
                "streamable",
                "visibility",
                "typed",
                "use-accumulators",
            ],
            &[],
        );
        self.empty(node);
        let mode = match self.attribute(node, "name") {
            Some(name) if name.trim() != "#unnamed" => self.mode(node, &name),
            _ => 0,
        };
        self.declared_modes.insert(mode);
        for name in [
            "on-no-match",
            "on-multiple-match",
            "streamable",
            "typed",
            "use-accumulators",
            "visibility",
            "warning-on-multiple-match",
            "warning-on-no-match",
        ] {
            let Some(value) = self.attribute(node, name) else { continue };
            let mut words: Vec<String> = value.split_ascii_whitespace().map(str::to_owned).collect();
            if name == "use-accumulators" {
                let names = words.iter().filter(|word| !word.starts_with('#'));
                let names: Vec<String> = names.cloned().collect();
                words.retain(|word| word.starts_with('#'));
                words.extend(names.iter().filter_map(|word| {
                    let (namespace, local) = self.expand(node, word)?;
                    Some(format!("Q{{{namespace}}}{local}"))
                }));
            }
            words.sort_unstable();
            let place = self.place(node);
            self.mode_attributes.say((mode, name), self.precedence, words.join(" "), place);
        }
        if self.attribute(node, "use-accumulators").is_some() {
            self.plan.modes[mode].accumulators = self.applicable(node);
        }
        for flag in ["warning-on-no-match", "warning-on-multiple-match", "streamable"] {
            self.yes_no(node, flag);
        }
        let one_of =
            |value: Option<String>, allowed: &[&str]| value.filter(|value| !allowed.contains(&value.trim()));
        let typed = ["yes", "no", "true", "false", "1", "0", "strict", "lax", "unspecified"];
        if let Some(value) = one_of(self.attribute(node, "typed"), &typed) {
            self.error(node, format!("XTSE0020: typed=\"{value}\" is not one of {}", typed.join(", ")));
        }
        let ways = if mode == 0 { &["private"][..] } else { &["public", "private", "final"] };
        if let Some(value) = one_of(self.attribute(node, "visibility"), ways) {
            self.error(node, format!("XTSE0020: visibility=\"{value}\" is not one of {}", ways.join(", ")));
        }
        if let Some(value) = one_of(self.attribute(node, "on-multiple-match"), &["use-last", "fail"]) {
            self.error(node, format!("XTSE0020: on-multiple-match=\"{value}\" is use-last or fail"));
        }
        if let Some(value) = self.attribute(node, "typed") {
            let value = value.trim().to_owned();
            self.plan.modes[mode].typed = !matches!(&*value, "no" | "false" | "0" | "unspecified");
            self.plan.modes[mode].strict = value == "strict";
            self.plan.modes[mode].place = self.place(node);
        }
        if let Some(value) = self.attribute(node, "on-multiple-match") {
            self.plan.modes[mode].one_match = value.trim() == "fail";
        }
        let Some(value) = self.attribute(node, "on-no-match") else { return };
        let no_match = match value.trim() {
            "text-only-copy" => NoMatch::TextOnlyCopy,
            "shallow-copy" => NoMatch::ShallowCopy,
            "deep-copy" => NoMatch::DeepCopy,
            "shallow-skip" => NoMatch::ShallowSkip,
            "deep-skip" => NoMatch::DeepSkip,
            "fail" => NoMatch::Fail,
            other => {
                return self.error(node, format!("XTSE0020: on-no-match=\"{other}\" is not one of the ways"));
            }
        };
        self.plan.modes[mode].no_match = no_match;
        self.plan.modes[mode].place = self.place(node);
    }

    /// `xsl:global-context-item` (XSLT 3.0 section 5.3.2).
    pub(super) fn global_context_item(&mut self, node: NodeId) {
        self.attributes(node, &["as", "use"], &[]);
        self.empty(node);
        let usage = self.attribute(node, "use").unwrap_or_else(|| "optional".to_owned());
        if !matches!(usage.trim(), "required" | "optional" | "absent") {
            self.error(node, format!("XTSE0020: use=\"{usage}\" is required, optional or absent"));
        }
        let declared = self.declared(node, "XTTE0590", "the global context item");
        let absent = usage.trim() == "absent";
        if absent && declared.is_some() {
            self.error(node, "XTSE3089: a context item that is absent has no type".into());
        }
        if self.plan.global_context.is_some() {
            self.error(node, "XTSE3087: there are two xsl:global-context-item".into());
        }
        let required = usage.trim() == "required";
        let place = self.place(node);
        self.plan.global_context = Some(crate::version3::GlobalContext { required, absent, declared, place });
    }

    /// The patterns of a mode with `typed="strict"` name declared elements only, and there are no schemas.
    pub(super) fn check_strict_modes(&mut self) {
        let mut wrong = Vec::new();
        for mode in self.plan.modes.iter().filter(|mode| mode.strict) {
            let named = mode.rules.iter().find(|rule| {
                let first = rule.alternative.steps.first();
                first.is_some_and(|step| !step.attribute && matches!(step.test, Test::Name(_)))
            });
            wrong.extend(named.map(|rule| self.plan.templates[rule.template].place));
        }
        for place in wrong {
            let message = "XTSE3105: the mode is strict, and there is no schema that declares the element";
            self.error_there(place, message.into());
        }
    }

    /// The mode where no attribute names one: that of the nearest `default-mode` (XSLT 3.0 section 3.5.3).
    pub(super) fn default_mode(&mut self, node: NodeId) -> usize {
        if !self.plan.version3 {
            return 0;
        }
        let module = self.module.clone();
        let doc = &module.doc;
        let mut at = Some(node);
        while let Some(element) = at {
            let ns = if doc.namespace(element) == XSLT { "" } else { XSLT };
            match doc.attribute(element, ns, "default-mode").map(str::trim) {
                Some("#unnamed") => return 0,
                Some(name) => {
                    let name = name.to_owned();
                    return self.mode(element, &name);
                }
                None => at = doc.parent(element),
            }
        }
        0
    }

    /// The modes of a template rule; `None`: all.
    pub(super) fn template_modes(&mut self, node: NodeId) -> Option<Vec<usize>> {
        let Some(list) = self.attribute(node, "mode") else {
            let mode = self.default_mode(node);
            self.check_declared_mode(node, mode);
            return Some(vec![mode]);
        };
        let mut modes = Vec::new();
        let words: Vec<&str> = list.split_ascii_whitespace().collect();
        if words.len() > 1 && words.contains(&"#all") {
            self.error(node, "XTSE0550: #all stands alone in a list of modes".into());
        }
        if let Some((_, twice)) = words.iter().enumerate().find(|(at, word)| words[..*at].contains(word)) {
            self.error(node, format!("XTSE0550: the mode {twice} stands twice in the list"));
        }
        for mode in words {
            match mode {
                "#all" => return None,
                "#default" => {
                    let default = self.default_mode(node);
                    modes.push(default);
                }
                "#unnamed" if self.plan.version3 => modes.push(0),
                mode => modes.push(self.mode(node, mode)),
            }
        }
        if modes.is_empty() {
            self.error(node, "XTSE0550: the mode attribute is empty".into());
        }
        modes.dedup();
        modes.iter().for_each(|mode| self.check_declared_mode(node, *mode));
        Some(modes)
    }

    /// The mode of an `xsl:apply-templates`.
    pub(super) fn applied_mode(&mut self, node: NodeId) -> usize {
        let mode = self.named_mode(node);
        self.check_declared_mode(node, mode);
        mode
    }

    fn named_mode(&mut self, node: NodeId) -> usize {
        match self.attribute(node, "mode").as_deref().map(str::trim) {
            None | Some("#default") => self.default_mode(node),
            Some("#unnamed") if self.plan.version3 => 0,
            Some("#current") => CURRENT_MODE,
            Some(mode) => {
                let mode = mode.to_owned();
                self.mode(node, &mode)
            }
        }
    }
}
