//! Stylesheets of `xslt` and `fastXSLT`: found by key, compiled when the configuration loads or, for keys that an
//! expression gives, when they are first used.

use config::Element;
use flow::{Compiler, Context, Fault, KeyValue};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use xslt::{CompileOptions, Processor, Resolver, RunOptions, Stylesheet};

/// `<attribute name="…" value="1.0"/>`: the version of XSLT that a mediator's stylesheet is run by, `1.0` or `2.0`; by
/// default that of the stylesheet.
pub(crate) const PROCESSOR: &str = "http://busbar.dev/xslt/processor";

/// Most stylesheets of dynamic keys that a mediator keeps compiled.
const MAX_KNOWN: usize = 64;

/// See the module.
pub(crate) struct Style {
    source: Source,
    /// `<resource location key>`: what `href`s of include, import and `document()` mean.
    resources: Vec<(String, String)>,
    processor: Processor,
}

enum Source {
    Fixed(Arc<str>, Arc<Stylesheet>),
    Keyed { key: KeyValue, known: Mutex<HashMap<Arc<str>, Known>> },
}

/// The text that a stylesheet was compiled of, and the stylesheet.
type Known = (Arc<[u8]>, Arc<Stylesheet>);

/// Finds modules among the resources, else by key in entries and registry; never elsewhere.
struct Modules<'a> {
    resources: &'a [(String, String)],
    entry: &'a (dyn Fn(&str) -> Option<Arc<[u8]>> + Sync),
}

impl Resolver for Modules<'_> {
    fn absolute(&self, href: &str, base: &str) -> String {
        match self.resources.iter().any(|(location, _)| location == href) {
            true => href.to_owned(),
            false => xslt::resolver::join(base, href),
        }
    }

    fn read(&self, uri: &str) -> Result<Vec<u8>, String> {
        let key = self.resources.iter().find(|(location, _)| location == uri).map_or(uri, |(_, key)| key);
        let bytes =
            (self.entry)(key).ok_or_else(|| format!("there is no entry or registry resource `{key}`"))?;
        Ok(bytes.to_vec())
    }
}

fn compiled(
    key: &str,
    bytes: &[u8],
    processor: Processor,
    resolver: &Modules<'_>,
) -> Result<Stylesheet, String> {
    let options = CompileOptions { uri: key, resolver, processor, ..CompileOptions::default() };
    Stylesheet::compile(bytes, &options)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

impl Style {
    /// Reads `key` and the `resource` children; `None` after a recorded error.
    pub(crate) fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Option<Style> {
        Style::named(element, "key", compiler)
    }

    /// As [`Style::compile`], with another attribute for the key.
    pub(crate) fn named(element: &Element, attribute: &str, compiler: &mut Compiler<'_>) -> Option<Style> {
        let key = compiler.key_value(element, attribute)?;
        let place =
            element.attribute(attribute).map_or(element.start_tag(), |attribute| attribute.value_span);
        let mut resources = Vec::new();
        for resource in element.children_named("resource") {
            match (resource.attr("location"), resource.attr("key")) {
                (Some(location), Some(key)) => resources.push((location.to_owned(), key.to_owned())),
                _ => compiler.error(
                    "missing-attribute",
                    "`resource` needs `location` and `key`",
                    resource.start_tag(),
                    "which href means which entry",
                ),
            }
        }
        let mut processor = Processor::ByStylesheet;
        for setting in element.children_named("attribute") {
            if setting.attr("name") != Some(PROCESSOR) {
                continue;
            }
            processor = match setting.attr("value") {
                Some("1.0") => Processor::V1,
                Some("2.0") => Processor::V2,
                other => {
                    let message = format!("`{}` is no version of XSLT", other.unwrap_or_default());
                    compiler.error("bad-value", message, setting.start_tag(), "1.0 or 2.0");
                    return None;
                }
            };
        }
        let Some(name) = key.literal().map(Arc::<str>::from) else {
            return Some(Style {
                source: Source::Keyed { key, known: Mutex::default() },
                resources,
                processor,
            });
        };
        let Some(entry) = compiler.entry(&name) else {
            compiler.warning(
                "unknown-entry",
                format!("there is no stylesheet `{name}`"),
                place,
                "messages that come here fault as long as it is missing",
            );
            return Some(Style {
                source: Source::Keyed { key, known: Mutex::default() },
                resources,
                processor,
            });
        };
        let shared = &*compiler;
        let find = |key: &str| shared.entry(key).map(|entry| entry.bytes);
        match compiled(&name, &entry.bytes, processor, &Modules { resources: &resources, entry: &find }) {
            Ok(sheet) => Some(Style { source: Source::Fixed(name, Arc::new(sheet)), resources, processor }),
            Err(why) => {
                let first = why.lines().next().unwrap_or("").to_owned();
                let message = format!("the stylesheet `{name}` cannot be compiled: {first}");
                compiler.error("bad-stylesheet", message, place, why);
                None
            }
        }
    }

    /// The stylesheet for this message, with its key.
    pub(crate) fn find(&self, context: &mut Context) -> Result<(Arc<str>, Arc<Stylesheet>), Fault> {
        let (key, known) = match &self.source {
            Source::Fixed(key, sheet) => return Ok((Arc::clone(key), Arc::clone(sheet))),
            Source::Keyed { key, known } => (key.resolve(context)?.unwrap_or_default(), known),
        };
        let plan = Arc::clone(context.plan());
        let entry = plan
            .entry(key.trim())
            .ok_or_else(|| failed(&key, format!("there is no entry or registry resource `{key}`")))?;
        let lock = || known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((bytes, sheet)) = lock().get(&key)
            && *bytes == entry.bytes
        {
            return Ok((key, Arc::clone(sheet)));
        }
        let find = |key: &str| plan.entry(key).map(|entry| entry.bytes);
        let modules = Modules { resources: &self.resources, entry: &find };
        let sheet =
            compiled(&key, &entry.bytes, self.processor, &modules).map_err(|why| failed(&key, why))?;
        let sheet = Arc::new(sheet);
        let mut known = lock();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(Arc::clone(&key), (entry.bytes, Arc::clone(&sheet)));
        Ok((key, sheet))
    }

    /// Runs `transform` with options that find documents where the stylesheet's modules are found.
    pub(crate) fn run<T>(
        &self,
        key: &str,
        context: &Context,
        stripped: bool,
        transform: impl FnOnce(&RunOptions<'_>) -> Result<T, xslt::XsltError>,
    ) -> Result<T, Fault> {
        let plan = context.plan();
        let find = |key: &str| plan.entry(key).map(|entry| entry.bytes);
        let modules = Modules { resources: &self.resources, entry: &find };
        let say = |text: &str| tracing::info!(stylesheet = key, "xsl:message: {text}");
        let options =
            RunOptions { resolver: &modules, messages: Some(&say), stripped, ..RunOptions::default() };
        transform(&options).map_err(|error| failed(key, error.to_string()))
    }
}

/// The fault of a transformation, as WSO2 words it.
pub(crate) fn failed(key: &str, why: impl Into<String>) -> Fault {
    Fault::new(format!("Unable to perform XSLT transformation using : {key}")).because(why)
}
