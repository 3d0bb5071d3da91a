//! What there is to be used: functions, types and properties of the system, at run time and in `use-when`.

use super::statics::{Preparation, StaticVariable};
use super::{Compiler, ReadAhead, XSLT};
use std::collections::HashMap;
use xml::{Document, NodeId};
use xpath::{Context, ExtensionName, FunctionInfo, FunctionLibrary, Host, Value};

/// Whether a function of XPath 2.0 or XSLT 2.0 (`version3`: of 3.1 or 3.0) has that name.
pub(crate) fn function_available(namespace: &str, local: &str, version3: bool) -> bool {
    const FUNCTIONS: &str = "http://www.w3.org/2005/xpath-functions";
    match namespace {
        "" | FUNCTIONS => {
            xpath::is_function(local)
                || version3 && xpath::is_function_of(FUNCTIONS, local)
                || crate::functions::find("", local, true).is_some()
        }
        // These cannot be the target of a cast.
        "http://www.w3.org/2001/XMLSchema" if matches!(local, "NOTATION" | "anyAtomicType") => false,
        "http://www.w3.org/2001/XMLSchema" => xpath::atomic::AtomicType::find(local).is_some(),
        other => crate::functions::find(other, local, true).is_some() || xpath::is_function_of(other, local),
    }
}

/// `type-available()`.
pub(crate) fn type_available(namespace: &str, local: &str) -> bool {
    namespace == "http://www.w3.org/2001/XMLSchema"
        && (matches!(local, "anyType" | "anySimpleType" | "untyped")
            || xpath::atomic::AtomicType::find(local).is_some())
}

/// What decides what is available, of a processor of XSLT 2.0 or later.
#[derive(Clone, Copy)]
pub(crate) struct Language {
    /// Of 3.0.
    pub version3: bool,
    /// `xsl:evaluate` may run.
    pub evaluates: bool,
}

/// `system-property()`; `version2`: of a processor of XSLT 2.0.
pub(crate) fn system_property(namespace: &str, local: &str, version2: bool, language: Language) -> Value {
    if namespace != XSLT {
        return Value::from("");
    }
    let yes_no = |is: bool| Value::from(if is { "yes" } else { "no" });
    if language.version3 {
        match local {
            "version" => return Value::from("3.0"),
            "xpath-version" => return Value::from("3.1"),
            "xsd-version" => return Value::from("1.0"),
            "supports-higher-order-functions" => return Value::from("yes"),
            "supports-dynamic-evaluation" => return yes_no(language.evaluates),
            "supports-streaming" => return yes_no(false),
            _ => {}
        }
    }
    match (local, version2) {
        ("version", false) => Value::Number(1.0),
        ("version", true) => Value::from("2.0"),
        ("vendor", _) => Value::from("Busbar"),
        ("vendor-url", _) => Value::from("https://busbar.dev/"),
        ("product-name", true) => Value::from("Busbar"),
        ("product-version", true) => Value::from(env!("CARGO_PKG_VERSION")),
        ("is-schema-aware" | "supports-namespace-axis", true) => yes_no(local != "is-schema-aware"),
        ("supports-serialization" | "supports-backwards-compatibility", true) => Value::from("yes"),
        _ => Value::from(""),
    }
}

/// The names in the namespace of XSLT for which [`system_property`] has a value in a processor of XSLT 3.0.
pub(crate) const SYSTEM_PROPERTIES: [&str; 14] = [
    "version",
    "vendor",
    "vendor-url",
    "product-name",
    "product-version",
    "is-schema-aware",
    "supports-serialization",
    "supports-backwards-compatibility",
    "supports-namespace-axis",
    "supports-streaming",
    "supports-dynamic-evaluation",
    "supports-higher-order-functions",
    "xpath-version",
    "xsd-version",
];

/// The functions of `use-when`.
pub(super) struct Static<'s> {
    pub variables: &'s [StaticVariable],
}

const STATIC: [&str; 4] = ["system-property", "element-available", "function-available", "type-available"];

impl FunctionLibrary for Static<'_> {
    fn variable(&self, _: &str, uri: Option<&str>, local: &str) -> Option<xpath::VariableInfo> {
        let named =
            |variable: &StaticVariable| variable.namespace == uri.unwrap_or("") && variable.local == local;
        let slot = self.variables.iter().position(named)? as u32;
        Some(xpath::VariableInfo { slot, ..xpath::VariableInfo::default() })
    }

    fn function(&self, _: &str, uri: Option<&str>, local: &str, _: usize) -> xpath::Function {
        match STATIC.iter().position(|name| *name == local && uri.is_none()) {
            Some(slot) => xpath::Function::Extension(FunctionInfo {
                slot: slot as u32,
                reads_document: false,
                ..FunctionInfo::default()
            }),
            None => xpath::Function::Unknown,
        }
    }
}

/// Resolves them with the prefixes of an element.
pub(super) struct Named<'d> {
    pub doc: &'d Document,
    pub node: NodeId,
    pub language: Language,
}

impl Host for Named<'_> {
    fn static_base_uri(&self) -> Option<String> {
        let base = super::base_within(self.doc, self.node, self.doc.base_uri().unwrap_or_default());
        (!base.is_empty()).then(|| crate::resolver::as_uri(&base))
    }

    fn call_by_name(
        &self,
        name: &ExtensionName,
        args: &[Value],
        cx: &Context<'_>,
    ) -> Result<Option<Value>, String> {
        let text = match args.first() {
            Some(value) => value.to_string_in(cx).map_err(|e| e.message)?.trim().to_owned(),
            None => return Ok(None),
        };
        let (prefix, local) = text.split_once(':').unwrap_or(("", &text));
        let namespace = crate::expr::namespace_of(self.doc, self.node, prefix).unwrap_or("");
        Ok(Some(match &*name.local {
            "system-property" => system_property(namespace, local, true, self.language),
            "element-available" => Value::Boolean(
                namespace == XSLT
                    && super::is_available_in_2(local)
                    && (local != "evaluate" || self.language.evaluates)
                    || super::Extension::find(namespace, local).is_some(),
            ),
            "type-available" => Value::Boolean(type_available(namespace, local)),
            _ => {
                let namespace = if prefix.is_empty() { "" } else { namespace };
                Value::Boolean(function_available(namespace, local, self.language.version3))
            }
        }))
    }
}

impl Compiler<'_> {
    /// Removes the elements whose `use-when` is false, before anything else is read. Returns the modules that were read for their
    /// static variables, by the elements that import or include them.
    pub(super) fn use_when(&mut self, doc: &mut Document, uri: &str) -> HashMap<NodeId, ReadAhead> {
        let mut modules = HashMap::new();
        let mut errors = Vec::new();
        let preparation = Preparation {
            given: self.options.static_parameters,
            always: self.options.processor == super::Processor::V3,
            evaluates: self.options.evaluate,
            levels: self.levels.clone(),
        };
        let mut variables = std::mem::take(&mut self.statics);
        self.reading.push(uri.to_owned());
        let mut read = |doc: &Document, node: NodeId, variables: &mut Vec<StaticVariable>| {
            let Some(href) = doc.attribute(node, "", "href") else { return };
            let base = super::base_within(doc, node, uri);
            let absolute = self.options.resolver.absolute(href, &base);
            let file = absolute.split_once('#').map_or(&*absolute, |(file, _)| file);
            // (A circle is reported where modules are collected.)
            if self.reading.iter().any(|outer| outer == file) {
                return;
            }
            let is_import = doc.local(node) == "import";
            if is_import {
                self.next_level += 1;
                self.levels.push(self.next_level);
            }
            std::mem::swap(&mut self.statics, variables);
            let before = self.errors.len();
            let module = match crate::stack::is_left() {
                true => self.load(href, &base),
                false => crate::stack::on_new(|| Ok(self.load(href, &base))).unwrap_or_else(|error| {
                    self.errors.push(*error);
                    None
                }),
            };
            let errors = self.errors.split_off(before);
            std::mem::swap(&mut self.statics, variables);
            if is_import {
                self.levels.pop();
            }
            modules.insert(node, ReadAhead { module, errors });
        };
        super::statics::prepare(doc, &mut variables, &preparation, &mut read, &mut errors);
        self.reading.pop();
        self.statics = variables;
        for message in errors {
            self.fail(uri, message);
        }
        modules
    }
}
