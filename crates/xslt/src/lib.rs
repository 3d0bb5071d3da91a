//! XSLT 1.0 with EXSLT and 2.0: stylesheets compiled once, run on trees.
//!
//! A stylesheet whose version is 2.0 or later runs in a processor of 2.0 (without schemas), others in one of 1.0. What only
//! 2.0 has is in [`version2`] (the plan), `compile::version2` and `run::version2`; the rest is shared.
//!
//! [`Stylesheet::compile`] reads a stylesheet with all it includes and imports and turns it into a plan:
//! names and variables are numbers, template rules are found by tables, expressions are compiled XPath.
//! [`Stylesheet::transform`] gives a result tree, [`Stylesheet::transform_to`] bytes as `xsl:output` asks.
//!
//! ```
//! let sheet = br#"<out xsl:version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:value-of select="/a"/></out>"#;
//! let sheet = busbar_xslt::Stylesheet::compile(sheet, &busbar_xslt::CompileOptions::default()).unwrap();
//! # use busbar_xslt as xslt;
//! let input = xml::Document::parse("<a>1</a>", &xml::ParseOptions::default()).unwrap();
//! let mut out = Vec::new();
//! sheet.transform_to(&input, xml::Document::ROOT, &[], &xslt::RunOptions::default(), &mut out).unwrap();
//! assert_eq!(String::from_utf8(out).unwrap(), r#"<?xml version="1.0" encoding="UTF-8"?><out>1</out>"#);
//! ```

mod arithmetic;
mod collation;
mod compile;
mod error;
mod expr;
mod functions;
mod model;
mod names;
mod output;
mod pattern;
pub mod resolver;
mod results;
mod run;
mod simple;
mod stack;
mod stream;
mod version2;
mod version3;

pub use compile::{CompileOptions, Processor};
pub use error::XsltError;
pub use output::{OutputMethod, OutputProperties};
pub use resolver::{FileResolver, NoResolver, Resolver};
pub use results::{FileResults, Results};
pub use run::{RunLimits, RunOptions, StreamStats};
pub use stream::{NotStreamable, Streaming, TemplateStreaming};

use model::{Plan, SpaceRule};
use names::{Name, Names};
use run::Engine;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use xml::{Document, NodeId, NodeKind, WriteOptions};
use xpath::Value;

/// A compiled stylesheet; used from any number of threads.
#[derive(Debug)]
pub struct Stylesheet {
    plan: Plan,
    symbols: Names,
    pool: Vec<(Box<str>, Box<str>)>,
    classified: OnceLock<stream::Classified>,
}

/// The result of a transformation into a tree.
#[derive(Debug)]
pub struct Output {
    /// The result tree. It may have any number of top-level elements and texts.
    pub document: Document,
}

impl Stylesheet {
    /// Compiles a stylesheet. `source` may also be a document that refers to its stylesheet in `<?xml-stylesheet?>`.
    /// Errors: all errors with their places.
    pub fn compile(source: &[u8], options: &CompileOptions<'_>) -> Result<Stylesheet, Vec<XsltError>> {
        static SHEETS: AtomicU64 = AtomicU64::new(1);
        let mut compiled = compile::compile(source, options)?;
        compiled.plan.number = SHEETS.fetch_add(1, Ordering::Relaxed);
        Ok(Stylesheet {
            classified: OnceLock::new(),
            plan: compiled.plan,
            symbols: compiled.symbols,
            pool: compiled.pool,
        })
    }

    /// Transforms `node` of `input` (usually its root) into a tree. `params`: values of top-level parameters, names
    /// as `local` or `{namespace}local`; those the stylesheet does not declare are ignored.
    pub fn transform(
        &self,
        input: &Document,
        node: NodeId,
        params: &[(&str, Value)],
        run: &RunOptions<'_>,
    ) -> Result<Output, XsltError> {
        let stripped = self.stripped(input, run);
        let input = stripped.as_ref().unwrap_or(input);
        let engine =
            Engine::new((&self.plan, &self.symbols, &self.pool), input, self.parameters(params), run);
        engine.to_tree(node).map(|document| Output { document }).map_err(|error| *error)
    }

    /// Transforms `node` of `input` and appends the result to `out`, serialised as `xsl:output` asks.
    pub fn transform_to(
        &self,
        input: &Document,
        node: NodeId,
        params: &[(&str, Value)],
        run: &RunOptions<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), XsltError> {
        let stripped = self.stripped(input, run);
        let input = stripped.as_ref().unwrap_or(input);
        let engine =
            Engine::new((&self.plan, &self.symbols, &self.pool), input, self.parameters(params), run);
        engine.to_bytes(node, out).map_err(|error| *error)
    }

    /// Whether [`Stylesheet::transform_stream`] accepts it.
    pub fn streams(&self) -> bool {
        self.classified().whole.is_none()
    }

    /// Which templates stream, and why others do not.
    pub fn streaming(&self) -> Streaming {
        let classified = self.classified();
        let describe = |(template, why): (&model::Template, &Option<NotStreamable>)| {
            let place = template.place;
            let uri = self.plan.modules.get(place.module as usize).map_or("", String::as_str);
            TemplateStreaming {
                title: template.title.to_string(),
                place: format!("{uri}:{}:{}", place.line, place.column),
                buffers: why.clone(),
            }
        };
        Streaming {
            whole: classified.whole.clone(),
            templates: self.plan.templates.iter().zip(&classified.templates).map(describe).collect(),
        }
    }

    /// Transforms a document while it is read, and writes the result while it is made: the memory depends on the
    /// depth of the document and on what templates use as a whole, not on its size. The result is that of
    /// [`Stylesheet::transform_to`].
    ///
    /// `limits` are those of the document. `insist`: an error instead of the whole document in memory. Errors:
    /// those of a transformation, of the document, of reading and writing, and of a stylesheet that does not stream
    /// ([`Stylesheet::streaming`]). Part of the result may have been written then.
    pub fn transform_stream(
        &self,
        input: &mut (dyn Read + Send),
        limits: &xml::Limits,
        params: &[(&str, Value)],
        run: &RunOptions<'_>,
        insist: bool,
        out: &mut (dyn Write + Send),
    ) -> Result<StreamStats, XsltError> {
        let classified = self.classified();
        if let Some(why) = &classified.whole {
            return Err(XsltError {
                message: format!("the stylesheet does not stream: {}", why.reason),
                uri: why.uri.clone(),
                line: why.line,
                column: why.column,
                raised: None,
            });
        }
        let empty = Document::new();
        let engine =
            Engine::new((&self.plan, &self.symbols, &self.pool), &empty, self.parameters(params), run);
        let pump = run::Pump::new(input, limits, run.limits.window);
        run::run_stream(&engine, classified, pump, insist, out)
    }

    fn classified(&self) -> &stream::Classified {
        self.classified.get_or_init(|| stream::classify(&self.plan))
    }

    /// Java functions that it calls: a transformation fails when it calls one. Each with the place of the first call.
    pub fn unavailable(&self) -> Vec<XsltError> {
        let placed = |(message, place): &(String, model::Place)| XsltError {
            message: message.clone(),
            uri: self.plan.modules.get(place.module as usize).cloned().unwrap_or_default(),
            line: place.line,
            column: place.column,
            raised: None,
        };
        self.plan.unavailable.iter().map(placed).collect()
    }

    /// The first `xsl:evaluate` that is not allowed to run ([`CompileOptions::evaluate`]) and has no fallback: a transformation that reaches
    /// it fails.
    pub fn forbidden(&self) -> Option<XsltError> {
        let place = self.plan.forbidden?;
        Some(XsltError {
            message: "xsl:evaluate is not allowed".into(),
            uri: self.plan.modules.get(place.module as usize).cloned().unwrap_or_default(),
            line: place.line,
            column: place.column,
            raised: None,
        })
    }

    /// The URIs of its modules: the stylesheet, and what it includes and imports.
    pub fn modules(&self) -> &[String] {
        &self.plan.modules
    }

    /// The properties of `xsl:output`.
    pub fn output(&self) -> &OutputProperties {
        &self.plan.output
    }

    /// How a result tree of [`Stylesheet::transform`] is to be written.
    pub fn write_options(&self, result: &Document) -> &WriteOptions {
        let first = result.children(Document::ROOT).find(|n| {
            result.kind(*n) == NodeKind::Element
                || (result.kind(*n) == NodeKind::Text && !result.text(*n).trim_ascii().is_empty())
        });
        let first = first.filter(|n| result.kind(*n) == NodeKind::Element);
        self.plan.writing.method().by(first.map(|n| (result.namespace(n), result.local(n))))
    }

    /// For parsing input documents: leaves out the white space that `xsl:strip-space` selects, which is cheaper than
    /// removing it later. Then set [`RunOptions::stripped`].
    pub fn strip_space(&self) -> Option<xml::StripSpace> {
        strip_space(&self.plan)
    }

    fn parameters(&self, params: &[(&str, Value)]) -> HashMap<Name, Value> {
        let mut values = HashMap::new();
        for (name, value) in params {
            let (namespace, local) = match name.strip_prefix('{').and_then(|n| n.split_once('}')) {
                Some((namespace, local)) => (namespace, local),
                None => ("", *name),
            };
            if let Some(name) = self.symbols.find(namespace, local) {
                values.insert(name, value.clone());
            }
        }
        values
    }

    /// A copy of the input without the white space to be stripped; `None` where there is none.
    fn stripped(&self, input: &Document, run: &RunOptions<'_>) -> Option<Document> {
        if run.stripped || !self.plan.space.iter().any(|rule| rule.strip) {
            return None;
        }
        let mut doomed = Vec::new();
        for node in input.descendants(Document::ROOT) {
            if input.kind(node) != NodeKind::Text
                || !input.text(node).bytes().all(|b| b.is_ascii_whitespace())
            {
                continue;
            }
            let Some(parent) = input.parent(node) else { continue };
            if input.kind(parent) == NodeKind::Element
                && self.plan.strips(input.namespace(parent), input.local(parent))
                && !preserves(input, parent)
            {
                doomed.push(node);
            }
        }
        if doomed.is_empty() {
            return None;
        }
        let mut copy = input.clone();
        for node in doomed {
            copy.detach(node);
        }
        Some(copy)
    }
}

/// Whether `xml:space="preserve"` holds at an element.
fn preserves(doc: &Document, element: NodeId) -> bool {
    let mut at = Some(element);
    while let Some(node) = at {
        match doc.attribute(node, xml::XML_NS, "space") {
            Some("preserve") => return true,
            Some("default") => return false,
            _ => at = doc.parent(node),
        }
    }
    false
}

fn strip_space(plan: &Plan) -> Option<xml::StripSpace> {
    if !plan.space.iter().any(|rule| rule.strip) {
        return None;
    }
    let rules: Vec<SpaceRule> = plan.space.clone();
    let plan = Plan { space: rules, ..Plan::default() };
    Some(xml::StripSpace(Arc::new(move |namespace: &str, local: &str| plan.strips(namespace, local))))
}
