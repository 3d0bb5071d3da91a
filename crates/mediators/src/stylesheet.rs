//! Stylesheets of `xslt` and `fastXSLT`: found by key, compiled when the configuration loads or, for keys that an
//! expression gives, when they are first used.

use crate::entry_cache::{EntryCache, warn_missing};
use crate::resources::Resources;
use crate::transforming::{LARGE, Transformed};
use config::{Element, Key};
use diagnostics::Diagnostic;
use flow::{Compiler, Context, Fault, KeyValue, Plan, fault::code};
use message::{BodyError, BodyStream, Coding, PayloadError};
use std::future::poll_fn;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use xslt::{CompileOptions, Processor, Resolver, RunOptions, Stylesheet};

/// `<attribute name="…" value="1.0"/>`: the version of XSLT that a mediator's stylesheet is run by, `1.0` or `2.0`; by
/// default that of the stylesheet.
pub(crate) const PROCESSOR: &str = "http://busbar.dev/xslt/processor";

/// Stylesheets declare entities (`&nbsp;`), and so may the documents that they read.
static DTD: xml::Dtd = xml::Dtd::Complete;

/// `<attribute name="…" value="true"/>`: `xsl:evaluate` may run in the stylesheets of the mediator.
pub(crate) const EVALUATE: &str = "http://busbar.dev/xslt/evaluate";

/// See the module.
pub(crate) struct Style {
    source: Source,
    /// `<resource location key>`: what `href`s of include, import and `document()` mean.
    resources: Arc<Resources>,
    language: Language,
}

/// How stylesheets are compiled.
#[derive(Clone, Copy, Default)]
struct Language {
    processor: Processor,
    /// `xsl:evaluate` may run.
    evaluate: bool,
}

enum Source {
    Fixed(Arc<str>, Arc<Stylesheet>),
    Keyed { key: KeyValue, stylesheets: EntryCache<Arc<str>, Arc<[u8]>, Stylesheet> },
}

/// Finds modules among the resources, else by key in entries and registry; never elsewhere.
struct Modules<'a> {
    resources: &'a Resources,
    entry: &'a (dyn Fn(&str) -> Option<Arc<[u8]>> + Sync),
}

impl Resolver for Modules<'_> {
    fn absolute(&self, href: &str, base: &str) -> String {
        match self.resources.key(href) {
            Some(_) => href.to_owned(),
            None => xslt::resolver::join(base, href),
        }
    }

    fn read(&self, uri: &str) -> Result<Vec<u8>, String> {
        let key = self.resources.key(uri).unwrap_or(uri);
        let bytes =
            (self.entry)(key).ok_or_else(|| format!("there is no entry or registry resource `{key}`"))?;
        Ok(bytes.to_vec())
    }
}

fn compiled(
    key: &str,
    bytes: &[u8],
    Language { processor, evaluate }: Language,
    resolver: &Modules<'_>,
) -> Result<Stylesheet, String> {
    let options =
        CompileOptions { uri: key, resolver, dtd: &DTD, processor, evaluate, ..CompileOptions::default() };
    Stylesheet::compile(bytes, &options)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

/// Compiles a stylesheet of the configuration.
fn found(
    key: &str,
    bytes: &[u8],
    language: Language,
    resources: &Resources,
    compiler: &Compiler<'_>,
) -> Result<Stylesheet, String> {
    let find = |key: &str| compiler.entry(key).map(|entry| entry.bytes);
    compiled(key, bytes, language, &Modules { resources, entry: &find })
}

impl Style {
    /// Reads `key` and the `resource` children; `None` after a recorded error.
    pub(crate) fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Option<Style> {
        Style::named(element, "key", compiler)
    }

    /// As [`Style::compile`], with another attribute for the key.
    pub(crate) fn named(element: &Element, attribute: &str, compiler: &mut Compiler<'_>) -> Option<Style> {
        let key = compiler.key_value(element, attribute)?;
        let place = element.value_span(attribute);
        let resources = Arc::new(Resources::compile(element, compiler));
        let mut language = Language::default();
        for setting in element.children_named("attribute") {
            if setting.attr("name") == Some(EVALUATE) {
                language.evaluate = match setting.attr("value") {
                    Some("true") => true,
                    Some("false") => false,
                    other => {
                        let message = format!("`{}` is neither true nor false", other.unwrap_or_default());
                        let label = "whether xsl:evaluate may run";
                        compiler.error("bad-value", message, setting.start_tag(), label);
                        return None;
                    }
                };
            }
            if setting.attr("name") != Some(PROCESSOR) {
                continue;
            }
            language.processor = match setting.attr("value") {
                Some("1.0") => Processor::V1,
                Some("2.0") => Processor::V2,
                other => {
                    let message = format!("`{}` is not a version of XSLT", other.unwrap_or_default());
                    compiler.error("bad-value", message, setting.start_tag(), "1.0 or 2.0");
                    return None;
                }
            };
        }
        let name = key.literal().map(Arc::<str>::from);
        let entry = name.as_deref().and_then(|name| compiler.entry(name));
        let (Some(name), Some(entry)) = (&name, entry) else {
            if let Some(name) = name {
                warn_missing("stylesheet", &name, place, compiler);
            }
            return Some(Style {
                source: Source::Keyed { key, stylesheets: EntryCache::default() },
                resources,
                language,
            });
        };
        match found(name, &entry.bytes, language, &resources, compiler) {
            Ok(sheet) => {
                for call in sheet.unavailable() {
                    let message = format!("the stylesheet `{name}` calls Java: {}", call.message);
                    compiler.diagnostics.push(
                        Diagnostic::warning("bad-stylesheet", message)
                            .at(place, call.to_string())
                            .help("messages for which it is called fault"),
                    );
                }
                if let Some(place) = sheet.forbidden() {
                    let message = format!("the stylesheet `{name}` has xsl:evaluate, which is not allowed");
                    compiler.diagnostics.push(
                        Diagnostic::warning("bad-stylesheet", message)
                            .at(element.value_span(attribute), place.to_string())
                            .help(format!(
                                "messages that come to it fault; <attribute name=\"{EVALUATE}\" value=\"true\"/> allows it"
                            )),
                    );
                }
                let source = Source::Fixed(Arc::clone(name), Arc::new(sheet));
                Some(Style { source, resources, language })
            }
            Err(why) => {
                let first = why.lines().next().unwrap_or("").to_owned();
                let message = format!("the stylesheet `{name}` cannot be compiled: {first}");
                // As in WSO2 that costs the messages that come here, not the artifact.
                compiler.diagnostics.push(
                    Diagnostic::warning("bad-stylesheet", message)
                        .at(place, why)
                        .help("messages that come here fault"),
                );
                Some(Style {
                    source: Source::Keyed { key, stylesheets: EntryCache::default() },
                    resources,
                    language,
                })
            }
        }
    }

    /// The stylesheet of a key, without resources and switches of a mediator; `None` after a recorded error.
    pub(crate) fn of_key(key: &Key, compiler: &mut Compiler<'_>) -> Option<Style> {
        let name: Arc<str> = Arc::from(key.value.trim());
        let Some(entry) = compiler.entry(&name) else {
            let message = format!("there is no stylesheet `{name}`");
            let label =
                "expected the key of a local entry, or the path of a registry resource (`conf:/…`, `gov:/…`)";
            compiler.error("unknown-entry", message, key.span, label);
            return None;
        };
        let (resources, language) = (Arc::default(), Language::default());
        match found(&name, &entry.bytes, language, &resources, compiler) {
            Ok(sheet) => Some(Style { source: Source::Fixed(name, Arc::new(sheet)), resources, language }),
            Err(why) => {
                let first = why.lines().next().unwrap_or_default();
                let message = format!("the stylesheet `{name}` cannot be compiled: {first}");
                compiler.error("bad-stylesheet", message, key.span, why);
                None
            }
        }
    }

    /// The stylesheet for this message, with its key.
    pub(crate) fn find(&self, context: &mut Context) -> Result<(Arc<str>, Arc<Stylesheet>), Fault> {
        let (key, stylesheets) = match &self.source {
            Source::Fixed(key, sheet) => return Ok((Arc::clone(key), Arc::clone(sheet))),
            Source::Keyed { key, stylesheets } => (key.resolve(context)?.unwrap_or_default(), stylesheets),
        };
        let plan = Arc::clone(context.plan());
        let entry = plan
            .entry(key.trim())
            .ok_or_else(|| failed(&key, format!("there is no entry or registry resource `{key}`")))?;
        let find = |key: &str| plan.entry(key).map(|entry| entry.bytes);
        let modules = Modules { resources: &self.resources, entry: &find };
        let sheet = stylesheets.get_or_make(&key, entry.bytes, |bytes| {
            compiled(&key, bytes, self.language, &modules).map_err(|why| failed(&key, why))
        })?;
        Ok((key, sheet))
    }

    /// The stylesheet, if bodies may be transformed while they arrive: it is known, and looks only downwards.
    pub(crate) fn streaming(&self) -> Option<&Stylesheet> {
        match &self.source {
            Source::Fixed(_, sheet) if sheet.streams() => Some(sheet),
            _ => None,
        }
    }

    /// The result of the stylesheet on the body that is still arriving, arriving as well; its first bytes are there. `None`:
    /// it is to be received whole, by now some of it or all, because it is not large, in another encoding than UTF-8, or
    /// too many are on their way. `element`: the result must be one element, neither a SOAP envelope nor a fault. `word` words
    /// what goes wrong in the stylesheet.
    ///
    /// # Errors
    /// What goes wrong before the first bytes of the result are there. (Later, the result breaks off.)
    pub(crate) async fn transformed(
        &self,
        context: &mut Context,
        parameters: Vec<(String, xpath::Value)>,
        element: bool,
        word: fn(Fault) -> Fault,
    ) -> Result<Option<Transformed>, Fault> {
        let Source::Fixed(key, sheet) = &self.source else { return Ok(None) };
        let reading = context.payload.reading();
        let plain = reading.coding == Coding::Identity
            && reading.charset.is_none_or(|charset| charset.name() == "UTF-8");
        if !plain || !sheet.streams() || !context.payload.is_unread() {
            return Ok(None);
        }
        let Some(stream) = context.payload.stream_mut() else { return Ok(None) };
        while stream.exact_len().is_none() && stream.buffered().len() <= LARGE {
            let more = poll_fn(|cx| stream.poll_more(cx)).await;
            if !more.map_err(|error| Fault::from(PayloadError::Receiving(error)))? {
                break;
            }
        }
        if stream.exact_len().unwrap_or(stream.buffered().len() as u64) <= LARGE as u64 {
            return Ok(None);
        }
        let body = context.payload.take_body();
        let limits = context.services().limits.clone();
        let (key, sheet, plan) = (Arc::clone(key), Arc::clone(sheet), Arc::clone(context.plan()));
        let resources = Arc::clone(&self.resources);
        let name = Arc::clone(&key);
        let malformed = Arc::new(AtomicBool::new(false));
        let broken = Arc::clone(&malformed);
        let run = move |input: &mut (dyn Read + Send), out: &mut (dyn Write + Send)| {
            let parameters: Vec<(&str, xpath::Value)> =
                parameters.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
            with_options(&name, &resources, &plan, |options| {
                sheet.transform_stream(input, &limits.xml, &parameters, options, false, out)
            })
            .map(|_| ())
            .map_err(|error| {
                broken.store(error.is_of_document(), Ordering::Relaxed);
                error.to_string()
            })
        };
        let held = context.services().limits.held;
        let mut result = match Transformed::start(body, element, held, run) {
            Ok(result) => result,
            Err(body) => {
                context.payload.put_back(body);
                return Ok(None);
            }
        };
        match poll_fn(|cx| result.poll_more(cx)).await {
            Ok(_) => Ok(Some(result)),
            Err(error) if result.input_failed => Err(Fault::from(PayloadError::Receiving(error))),
            Err(error) => {
                let why = match error {
                    BodyError::Io(error) => error.to_string(),
                    other => other.to_string(),
                };
                if result.is_too_large() {
                    return Err(Fault::from(PayloadError::TooLarge { message: why }));
                }
                Err(if malformed.load(Ordering::Relaxed) { not_xml(why) } else { word(failed(&key, why)) })
            }
        }
    }

    /// Runs `transform` with the options of [`with_options`].
    pub(crate) fn run<T>(
        &self,
        key: &str,
        context: &Context,
        stripped: bool,
        transform: impl FnOnce(&RunOptions<'_>) -> Result<T, xslt::XsltError>,
    ) -> Result<T, Fault> {
        with_options(key, &self.resources, context.plan(), |options| {
            transform(&RunOptions { stripped, ..*options })
        })
        .map_err(|error| failed(key, error.to_string()))
    }
}

impl Style {
    /// What the stylesheet writes, decoded.
    pub(crate) fn text(
        &self,
        key: &str,
        sheet: &Stylesheet,
        input: &xml::Document,
        parameters: &[(&str, xpath::Value)],
        stripped: bool,
        context: &Context,
    ) -> Result<String, Fault> {
        let mut out = Vec::new();
        self.run(key, context, stripped, |options| {
            sheet.transform_to(input, xml::Document::ROOT, parameters, options, &mut out)
        })?;
        let text = xml::decode(out, sheet.output().encoding.as_deref())
            .map_err(|why| failed(key, format!("the result cannot be read: {why}")))?;
        Ok(String::from_utf8_lossy(&text.text).into_owned())
    }
}

/// Calls `run` with options by which documents are found where the stylesheet's modules are, and `xsl:message` is logged.
fn with_options<T>(
    key: &str,
    resources: &Resources,
    plan: &Plan,
    run: impl FnOnce(&RunOptions<'_>) -> T,
) -> T {
    let find = |key: &str| plan.entry(key).map(|entry| entry.bytes);
    let modules = Modules { resources, entry: &find };
    let say = |text: &str| tracing::info!(stylesheet = key, "xsl:message: {text}");
    run(&RunOptions { resolver: &modules, dtd: &DTD, messages: Some(&say), ..RunOptions::default() })
}

/// The fault of a body that is not well-formed, as any step that reads it has it.
pub(crate) fn not_xml(why: impl std::fmt::Display) -> Fault {
    Fault::with_code(code::PAYLOAD, format!("the payload is not well-formed XML: {why}"))
}

/// The fault of a transformation, as WSO2 words it.
pub(crate) fn failed(key: &str, why: impl Into<String>) -> Fault {
    Fault::new(format!("Unable to perform XSLT transformation using : {key}")).because(why)
}
