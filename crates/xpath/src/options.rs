//! What the embedder provides when an expression is compiled: namespaces, further functions and variables.

use crate::value::Type;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

/// The version of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// XPath 1.0.
    #[default]
    V1,
    /// XPath 2.0, without schemas.
    V2,
    /// XPath 3.1, without schemas.
    V31,
}

impl Version {
    /// Whether it is 2.0 or later.
    pub(crate) fn is_version2(self) -> bool {
        self != Version::V1
    }
}

/// Prefixes to namespace names. The default namespace never applies to unprefixed names in an expression.
pub trait NamespaceResolver {
    /// The namespace bound to `prefix`, or `None` if the prefix is not declared.
    fn namespace(&self, prefix: &str) -> Option<&str>;

    /// All prefixes with their namespaces, the default namespace with the empty prefix: for names that are known at
    /// run time only (XPath 3.0 `cast as xs:QName`). Default none.
    fn declared(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// No prefixes.
impl NamespaceResolver for () {
    fn namespace(&self, _: &str) -> Option<&str> {
        None
    }
}

impl NamespaceResolver for [(&str, &str)] {
    fn namespace(&self, prefix: &str) -> Option<&str> {
        self.iter().rev().find(|(p, _)| *p == prefix).map(|(_, u)| *u)
    }
}

impl<const N: usize> NamespaceResolver for [(&str, &str); N] {
    fn namespace(&self, prefix: &str) -> Option<&str> {
        self.as_slice().namespace(prefix)
    }
}

impl NamespaceResolver for [(String, String)] {
    fn namespace(&self, prefix: &str) -> Option<&str> {
        self.iter().rev().find(|(p, _)| *p == prefix).map(|(_, u)| u.as_str())
    }

    fn declared(&self) -> Vec<(String, String)> {
        self.to_vec()
    }
}

impl NamespaceResolver for Vec<(String, String)> {
    fn namespace(&self, prefix: &str) -> Option<&str> {
        self.as_slice().namespace(prefix)
    }

    fn declared(&self) -> Vec<(String, String)> {
        self.clone()
    }
}

impl NamespaceResolver for HashMap<String, String> {
    fn namespace(&self, prefix: &str) -> Option<&str> {
        self.get(prefix).map(String::as_str)
    }
}

impl NamespaceResolver for BTreeMap<String, String> {
    fn namespace(&self, prefix: &str) -> Option<&str> {
        self.get(prefix).map(String::as_str)
    }
}

/// The answer of a [`FunctionLibrary`] about a function call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Function {
    /// There is no such function.
    Unknown,
    /// There is one with another number of arguments; the text says what is expected.
    WrongArity(String),
    /// It is not available; the text gives the reason and an alternative.
    Unavailable(String),
    /// Another name of the XPath core function with the same local name (`fn:concat`).
    Core,
    /// XSLT's `current()`: resolved by [`Host::current`](crate::Host::current) without a call.
    Current,
    /// A function evaluated by [`Host::call`](crate::Host::call).
    Extension(FunctionInfo),
}

/// The static properties of an extension function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionInfo {
    /// A number of the embedder, passed back with each call ([`ExtensionName::slot`](crate::ExtensionName)).
    pub slot: u32,
    /// The type of its results.
    pub returns: Type,
    /// It reads the document beyond its arguments (`key()`, `id()`, …).
    pub reads_document: bool,
    /// How long its results stay the same.
    pub results: Results,
}

/// How long the results of a function stay the same within an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Results {
    /// They may change at any time, or are new nodes each time.
    Change,
    /// They are the same for the same context item and arguments (`key()`).
    FollowContext,
    /// They depend on nothing but the arguments, or on the context item where there are none (`generate-id()`), in all evaluations as long as
    /// documents do not change.
    FollowArguments,
    /// They are the same for the same arguments, whatever the context item is (`current()`).
    Stay,
}

impl Default for FunctionInfo {
    fn default() -> Self {
        FunctionInfo { slot: 0, returns: Type::Any, reads_document: false, results: Results::Change }
    }
}

/// The static properties of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableInfo {
    /// A number of the embedder, passed back with each reference.
    pub slot: u32,
    /// The type of its values.
    pub returns: Type,
    /// Its value comes from the document (Synapse's `$body`).
    pub reads_document: bool,
    /// An XPath 1.0 expression over the document root with the same value, if there is one (`$body`:
    /// `/*[1]/*[local-name()='Body'][1]`). It makes paths from the variable streamable.
    pub same_as: Option<String>,
}

impl Default for VariableInfo {
    fn default() -> Self {
        VariableInfo { slot: 0, returns: Type::Any, reads_document: false, same_as: None }
    }
}

/// Functions and variables beyond the core library, known statically.
///
/// Unprefixed core functions are found before the library is asked. `uri` is `None` when the prefix is not declared
/// (and when there is no prefix): the library decides by the prefix, as Synapse does for `$ctx:name`.
pub trait FunctionLibrary {
    /// The function `prefix:local` with `arity` arguments.
    fn function(&self, prefix: &str, uri: Option<&str>, local: &str, arity: usize) -> Function {
        let _ = (prefix, uri, local, arity);
        Function::Unknown
    }

    /// Names of its functions, of which the one that is nearest to a misspelt name is suggested.
    fn names(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// The types of the parameters and of the result of an extension function, for references to it; `None`: they are not known.
    fn types(&self, uri: Option<&str>, local: &str, arity: usize) -> Option<FunctionTypes> {
        let _ = (uri, local, arity);
        None
    }

    /// The variable `$prefix:local`; `None` is a compile error.
    fn variable(&self, prefix: &str, uri: Option<&str>, local: &str) -> Option<VariableInfo> {
        let _ = (prefix, uri, local);
        None
    }
}

/// The declared types of a function; `None`: any.
#[derive(Debug, Clone)]
pub struct FunctionTypes {
    /// Those of its parameters.
    pub params: Vec<Option<crate::SeqType>>,
    /// That of its result.
    pub result: Option<crate::SeqType>,
}

/// The core functions only, no variables.
impl FunctionLibrary for () {}

/// Names used by many expressions, numbered once, so that one [`BoundNames`](crate::BoundNames) resolves them all
/// against a document (a stylesheet's expressions). Without a pool each expression resolves its own names at each
/// evaluation.
#[derive(Debug, Default)]
pub struct NamePool {
    names: RefCell<Names>,
}

/// (namespace uri, local) pairs and their numbers.
#[derive(Debug, Default, Clone)]
pub(crate) struct Names {
    pub list: Vec<(Box<str>, Box<str>)>,
    index: HashMap<(Box<str>, Box<str>), u32>,
}

impl Names {
    pub fn intern(&mut self, uri: &str, local: &str) -> u32 {
        let key = (Box::from(uri), Box::from(local));
        if let Some(i) = self.index.get(&key) {
            return *i;
        }
        let i = self.list.len() as u32;
        self.list.push(key.clone());
        self.index.insert(key, i);
        i
    }
}

impl NamePool {
    /// An empty pool.
    pub fn new() -> NamePool {
        NamePool::default()
    }

    /// The number of a name, the same for the same name.
    pub fn intern(&self, uri: &str, local: &str) -> u32 {
        self.names.borrow_mut().intern(uri, local)
    }

    /// All names so far, in the order of their numbers.
    pub fn names(&self) -> Vec<(Box<str>, Box<str>)> {
        self.names.borrow().list.clone()
    }
}

/// Options of compilation.
#[derive(Clone, Copy)]
pub struct CompileOptions<'a> {
    /// The prefixes in scope of the expression.
    pub namespaces: &'a dyn NamespaceResolver,
    /// Functions and variables beyond the core.
    pub library: &'a dyn FunctionLibrary,
    /// The language version, 1.0 by default.
    pub version: Version,
    /// Shared numbering of names, none by default.
    pub names: Option<&'a NamePool>,
    /// XPath 2.0's default element namespace; `""` as in XPath 1.0 by default.
    pub default_element_namespace: &'a str,
    /// XPath 2.0's 1.0 compatibility mode: of sequences the first item counts, and values are converted to strings and numbers
    /// where those are required. Default `false`.
    pub compatible: bool,
}

impl Default for CompileOptions<'_> {
    fn default() -> Self {
        CompileOptions {
            namespaces: &(),
            library: &(),
            version: Version::V1,
            names: None,
            default_element_namespace: "",
            compatible: false,
        }
    }
}

impl std::fmt::Debug for CompileOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompileOptions").field("version", &self.version).finish_non_exhaustive()
    }
}
