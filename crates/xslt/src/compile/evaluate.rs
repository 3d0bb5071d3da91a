//! Compiling `xsl:evaluate` (XSLT 3.0 section 10.4).

use super::{Compiler, XSLT};
use crate::model::Op;
use crate::version2::Version2;
use crate::version3::{Evaluate, Version3};
use xml::NodeId;

impl Compiler<'_> {
    /// `xsl:evaluate`. Where it is not allowed, its `xsl:fallback` runs, or it fails when it is reached.
    pub(super) fn evaluate(&mut self, node: NodeId) -> Option<Op> {
        let attributes =
            ["xpath", "as", "base-uri", "with-params", "context-item", "namespace-context", "schema-aware"];
        self.attributes(node, &attributes, &["xpath"]);
        self.only(node, &["with-param"]);
        let xpath = self.expression_attribute(node, "xpath")?;
        let base = self.avt_attribute(node, "base-uri");
        let with_params = self.expression_attribute(node, "with-params");
        let context_item = self.expression_attribute(node, "context-item");
        let namespace_context = self.expression_attribute(node, "namespace-context");
        let declared = self.declared(node, "XPTY0004", "the result of xsl:evaluate");
        let arguments = self.arguments(node);
        if !self.options.evaluate {
            let place = self.place(node);
            let module = self.module.clone();
            if !module.doc.children(node).any(|n| module.doc.is_element(n, XSLT, "fallback")) {
                self.plan.forbidden.get_or_insert(place);
            }
            return Some(match self.unknown(node) {
                Op::Unknown { fallback, .. } => {
                    Op::Unknown { message: "XTDE3175: xsl:evaluate is not allowed here".into(), fallback }
                }
                other => other,
            });
        }
        let evaluate = Evaluate {
            xpath,
            declared,
            base,
            with_params,
            context_item,
            namespace_context,
            arguments,
            default: self.default_namespace(node).as_str().into(),
            scope: self.scope(node),
        };
        Some(Op::Version2(Box::new(Version2::Version3(Box::new(Version3::Evaluate(Box::new(evaluate)))))))
    }
}
