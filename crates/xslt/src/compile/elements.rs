//! The elements of XSLT: which are instructions, which declarations, and since which version.

/// The instructions of XSLT 1.0.
pub(super) const INSTRUCTIONS: [&str; 18] = [
    "apply-imports",
    "apply-templates",
    "attribute",
    "call-template",
    "choose",
    "comment",
    "copy",
    "copy-of",
    "element",
    "fallback",
    "for-each",
    "if",
    "message",
    "number",
    "processing-instruction",
    "text",
    "value-of",
    "variable",
];

/// Other elements of XSLT 1.0, which may not stand in a template body.
pub(super) const OTHERS: [&str; 16] = [
    "attribute-set",
    "decimal-format",
    "import",
    "include",
    "key",
    "namespace-alias",
    "otherwise",
    "output",
    "preserve-space",
    "sort",
    "strip-space",
    "stylesheet",
    "template",
    "transform",
    "when",
    "with-param",
];

/// Whether XSLT 1.0 has an instruction of that name (but no top-level element).
pub(crate) fn is_instruction(local: &str) -> bool {
    local != "variable" && INSTRUCTIONS.contains(&local)
        || matches!(local, "sort" | "when" | "otherwise" | "with-param")
}

/// Whether it is a top-level element, or belongs into a certain parent.
pub(crate) fn is_declaration(local: &str) -> bool {
    OTHERS.contains(&local)
        || matches!(
            local,
            "character-map"
                | "function"
                | "import-schema"
                | "matching-substring"
                | "non-matching-substring"
                | "output-character"
                | "param"
        )
}

/// The same for XSLT 2.0.
pub(crate) fn is_available_in_2(local: &str) -> bool {
    is_available(local)
        || super::version2::INSTRUCTIONS.contains(&local)
        || super::version3::INSTRUCTIONS.contains(&local)
}

/// Whether it is the outermost element of a module: a package (3.0) is one, too.
pub(super) fn is_outermost(local: &str) -> bool {
    matches!(local, "stylesheet" | "transform" | "package")
}

/// Whether it is an element of XSLT 3.0.
pub(crate) fn is_of_version3(local: &str) -> bool {
    matches!(
        local,
        "accept"
            | "accumulator"
            | "accumulator-rule"
            | "array"
            | "array-member"
            | "assert"
            | "break"
            | "catch"
            | "context-item"
            | "evaluate"
            | "expose"
            | "fork"
            | "global-context-item"
            | "iterate"
            | "map"
            | "map-entry"
            | "merge"
            | "merge-action"
            | "merge-key"
            | "merge-source"
            | "mode"
            | "next-iteration"
            | "on-completion"
            | "on-empty"
            | "on-non-empty"
            | "override"
            | "package"
            | "source-document"
            | "stream"
            | "try"
            | "use-package"
            | "where-populated"
    )
}

/// An instruction of an extension namespace.
#[derive(Copy, Clone, PartialEq)]
pub(crate) enum Extension {
    /// `exsl:document`.
    Document,
    /// Xalan's `redirect:write`.
    RedirectWrite,
}

impl Extension {
    /// The instruction of that name.
    pub fn find(namespace: &str, local: &str) -> Option<Extension> {
        match (namespace, local) {
            (crate::functions::EXSLT_COMMON, "document") => Some(Extension::Document),
            (
                "http://xml.apache.org/xalan/redirect"
                | "org.apache.xalan.lib.Redirect"
                | "xalan://org.apache.xalan.lib.Redirect"
                | "org.apache.xalan.xslt.extensions.Redirect",
                "write",
            ) => Some(Extension::RedirectWrite),
            _ => None,
        }
    }
}

/// For `element-available()`.
pub(crate) fn is_available(local: &str) -> bool {
    INSTRUCTIONS.contains(&local)
}
