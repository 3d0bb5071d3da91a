//! Names of a schema, interned: an expanded name is two integers.

use std::collections::HashMap;

/// An interned string.
pub type Sym = u32;
/// The empty string: no namespace.
pub const NONE: Sym = 0;
/// The namespace of XML Schema.
pub const XS: Sym = 1;
/// The namespace of the attributes `xsi:…`.
pub const XSI: Sym = 2;
/// The namespace of the prefix `xml`.
pub const XML: Sym = 3;
/// A string of a document that no schema mentions.
pub const UNKNOWN: Sym = Sym::MAX;

/// The namespace of XML Schema.
pub const XS_NS: &str = "http://www.w3.org/2001/XMLSchema";
/// The namespace of the attributes `xsi:…`.
pub const XSI_NS: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// An expanded name.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Name {
    /// The namespace, [`NONE`] for none.
    pub ns: Sym,
    /// The local name.
    pub local: Sym,
}

/// The strings of a schema.
#[derive(Debug)]
pub struct Names {
    strings: Vec<Box<str>>,
    table: HashMap<Box<str>, Sym>,
}

impl Default for Names {
    fn default() -> Names {
        let mut names = Names { strings: Vec::new(), table: HashMap::new() };
        for namespace in ["", XS_NS, XSI_NS, xml::XML_NS] {
            names.intern(namespace);
        }
        names
    }
}

impl Names {
    /// The symbol of `text`, new when it has none yet.
    pub fn intern(&mut self, text: &str) -> Sym {
        if let Some(&sym) = self.table.get(text) {
            return sym;
        }
        let sym = self.strings.len() as Sym;
        self.strings.push(text.into());
        self.table.insert(text.into(), sym);
        sym
    }

    /// The symbol of `text`, [`UNKNOWN`] when the schema does not mention it.
    pub fn find(&self, text: &str) -> Sym {
        self.table.get(text).copied().unwrap_or(UNKNOWN)
    }

    /// The text of `sym`.
    pub fn text(&self, sym: Sym) -> &str {
        self.strings.get(sym as usize).map_or("?", |s| s)
    }

    /// The name for messages: `local` or `{namespace}local`.
    pub fn show(&self, name: Name) -> String {
        match self.text(name.ns) {
            "" => self.text(name.local).to_owned(),
            XS_NS => format!("xs:{}", self.text(name.local)),
            ns => format!("{{{ns}}}{}", self.text(name.local)),
        }
    }
}
