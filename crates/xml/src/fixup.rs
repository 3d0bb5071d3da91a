//! The prefix of a name in a start tag: the one place where it is chosen, for all that write start tags (the tree, the
//! serialiser, the fast path of XSLT).
//!
//! A requested prefix is used if it is bound to the namespace, or can be bound to it in this tag without changing
//! the other names of the tag: the element's, those of attributes written before, declarations made before.

/// A start tag that is being written.
pub trait StartTag {
    /// The namespace of a prefix in this tag. `None`: it is not bound.
    fn bound(&self, prefix: &str) -> Option<&str>;

    /// Whether the tag declares the prefix.
    fn declares(&self, prefix: &str) -> bool;

    /// Whether the name of the element, or of an attribute of the tag, has the prefix.
    fn uses(&self, prefix: &str) -> bool;

    /// A non-empty prefix that is bound to a namespace in this tag.
    fn prefix_of(&self, namespace: &str) -> Option<String>;

    /// Declares a prefix at this tag.
    fn declare(&mut self, prefix: &str, namespace: &str);

    /// A number for generated prefixes.
    fn next_number(&mut self) -> u32;

    /// The prefix for an attribute in a namespace; it is declared where that is needed.
    fn prefix_for_attribute(&mut self, wanted: &str, namespace: &str) -> String {
        if namespace.is_empty() {
            return String::new();
        }
        if namespace == crate::XML_NS {
            return "xml".to_owned();
        }
        if !wanted.is_empty() && wanted != "xml" && wanted != "xmlns" {
            if self.bound(wanted) == Some(namespace) {
                return wanted.to_owned();
            }
            if !self.declares(wanted) && !self.uses(wanted) {
                self.declare(wanted, namespace);
                return wanted.to_owned();
            }
        }
        if let Some(prefix) = self.prefix_of(namespace) {
            return prefix;
        }
        loop {
            let prefix = format!("ns{}", self.next_number());
            if self.bound(&prefix).is_none_or(str::is_empty) && !self.uses(&prefix) {
                self.declare(&prefix, namespace);
                return prefix;
            }
        }
    }

    /// A namespace node of the element: it is declared where it is not in force; one that contradicts the names of the tag is
    /// left out. `false`: it was left out.
    fn add_namespace(&mut self, prefix: &str, namespace: &str) -> bool {
        if prefix == "xml" || prefix == "xmlns" || (namespace.is_empty() && !prefix.is_empty()) {
            return false;
        }
        if self.bound(prefix).unwrap_or("") == namespace {
            return true;
        }
        if self.declares(prefix) || self.uses(prefix) {
            return false;
        }
        self.declare(prefix, namespace);
        true
    }
}
