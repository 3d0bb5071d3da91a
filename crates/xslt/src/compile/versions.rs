//! The version of XSLT in effect: that of the stylesheet, and that of an element.

use super::{Compiler, XSLT};
use xml::{Document, NodeId, NodeKind};

/// The version in effect at an element: the nearest `version` attribute.
pub(super) fn version_of(doc: &Document, node: NodeId) -> f64 {
    let mut at = Some(node);
    while let Some(element) = at {
        if let Some(version) = own_version(doc, element) {
            return version.trim().parse().unwrap_or(2.0);
        }
        at = doc.parent(element);
    }
    1.0
}

/// The `version` attribute of an element, if it is the standard one.
pub(super) fn own_version(doc: &Document, element: NodeId) -> Option<&str> {
    if doc.kind(element) != NodeKind::Element {
        return None;
    }
    if doc.namespace(element) == XSLT {
        if doc.local(element) == "output" { None } else { doc.attribute(element, "", "version") }
    } else {
        doc.attribute(element, XSLT, "version")
    }
}

impl Compiler<'_> {
    /// Whether some module is of version 2.0 or later: then all of the stylesheet runs in a processor of 2.0.
    pub(super) fn is_version2_stylesheet(&self) -> bool {
        matches!(self.options.processor, super::Processor::V2 | super::Processor::V3)
            || self.options.processor != super::Processor::V1
                && self.declarations.iter().any(|d| {
                    let version = own_version(&d.module.doc, d.module.root);
                    version.and_then(|v| v.trim().parse::<f64>().ok()).is_some_and(|v| v >= 2.0)
                })
    }

    /// Whether some module is of version 3.0 or later: an unimplemented feature is an error then.
    pub(super) fn is_version3_stylesheet(&self) -> bool {
        self.options.processor == super::Processor::V3
            || self.options.processor != super::Processor::V1
                && self.declarations.iter().any(|d| {
                    let version = own_version(&d.module.doc, d.module.root);
                    version.and_then(|v| v.trim().parse::<f64>().ok()).is_some_and(|v| v >= 3.0)
                })
    }

    /// The version in effect at an element decides how expressions and errors are treated.
    pub(super) fn at_version_of(&mut self, node: NodeId) {
        if self.plan.version2 {
            let version = version_of(&self.module.doc, node);
            self.forwards = version > if self.plan.version3 { 3.0 } else { 2.0 };
            self.version2 = version >= 2.0;
        } else {
            self.forwards = self.is_forwards(node);
        }
    }
}
