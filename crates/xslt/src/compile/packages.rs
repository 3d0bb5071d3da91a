//! Packages (XSLT 3.0 section 3.5). A package by itself is a stylesheet whose components have a visibility, which only others that
//! use it would notice; there is no place where other packages are found, so that using one is an error that names it.

use super::{Compiler, XSLT};
use crate::version2::CURRENT_MODE;
use xml::NodeId;

impl Compiler<'_> {
    /// `xsl:package`, the outermost element of a stylesheet.
    pub(super) fn check_package(&mut self, root: NodeId) {
        let allowed = [
            "id",
            "name",
            "package-version",
            "version",
            "declared-modes",
            "exclude-result-prefixes",
            "extension-element-prefixes",
        ];
        self.attributes(root, &allowed, &["version"]);
        self.yes_no(root, "declared-modes");
        if self.modules.first().is_some_and(|first| !std::sync::Arc::ptr_eq(first, &self.module)) {
            let message = "XTSE0165: xsl:package is no module that can be included or imported";
            self.error(root, message.into());
        }
    }

    /// Modes of a package are declared, unless it says otherwise (`declared-modes`, section 3.5.4.1).
    pub(super) fn check_declared_mode(&mut self, node: NodeId, mode: usize) {
        let (doc, root) = (&self.module.doc, self.module.root);
        let asks = self.plan.version3
            && doc.is_element(root, XSLT, "package")
            && !doc
                .attribute(root, "", "declared-modes")
                .is_some_and(|value| matches!(value.trim(), "no" | "false" | "0"));
        if asks && mode != CURRENT_MODE && !self.declared_modes.contains(&mode) {
            let named = self.modes.iter().find(|(_, number)| **number == mode);
            let shown = named.map_or("#unnamed".to_owned(), |(name, _)| self.symbols.show(*name));
            self.error(node, format!("XTSE3085: the package declares no mode {shown} (xsl:mode)"));
        }
    }

    /// `visibility` of a component: no other package sees it, but it must be a value, and what is abstract cannot run.
    pub(super) fn check_visibility(&mut self, node: NodeId) {
        let Some(value) = self.attribute(node, "visibility").filter(|_| self.plan.version3) else { return };
        let name = self.module.doc.qname(node).into_owned();
        match value.trim() {
            "public" | "private" | "final" => {}
            "abstract" => {
                self.error(node, format!("XTSE3080: this {name} is abstract, nothing overrides it"))
            }
            _ => {
                let message =
                    format!("XTSE0020: visibility=\"{value}\" is not public, private, final or abstract");
                self.error(node, message);
            }
        }
        if name.ends_with("template") && self.attribute(node, "name").is_none() {
            self.error(node, "XTSE0500: only a template with a name has a visibility".into());
        }
    }

    /// `xsl:expose`: which components others would see.
    pub(super) fn expose(&mut self, node: NodeId) {
        let required = ["component", "names", "visibility"];
        self.attributes(node, &required, &required);
        self.empty(node);
        let kinds = ["template", "function", "attribute-set", "variable", "mode", "*"];
        let ways = ["public", "private", "final", "abstract", "hidden"];
        for (attribute, allowed) in [("component", &kinds[..]), ("visibility", &ways[..])] {
            if let Some(value) = self.attribute(node, attribute)
                && !allowed.contains(&value.trim())
            {
                let message =
                    format!("XTSE0020: {attribute}=\"{value}\" is not one of {}", allowed.join(", "));
                self.error(node, message);
            }
        }
    }

    /// `xsl:use-package`: there are no other packages.
    pub(super) fn use_package(&mut self, node: NodeId) {
        self.attributes(node, &["name", "package-version"], &["name"]);
        let name = self.attribute(node, "name").unwrap_or_default();
        let message = format!(
            "XTSE3000: xsl:use-package: there is no package \"{name}\": other packages are not supported (xsl:import is)"
        );
        self.error(node, message);
    }
}
