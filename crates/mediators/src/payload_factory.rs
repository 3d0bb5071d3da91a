//! `payloadFactory`: replaces the payload with a filled-in template.
//!
//! The template is cut into literal runs and places for arguments when the configuration loads (one that a dynamic
//! key names: when it is first used), and escaping is decided per place. What comes out is well-formed by construction
//! wherever no argument puts markup into the template, and is then not parsed again.

mod filling;
mod json;
mod template;

use crate::entry_cache::{EntryCache, warn_missing};
use crate::free_marker::{Templates, is_free_marker};
use crate::target::is_true;
use config::Element;
use diagnostics::Span;
use filling::{
    Argument, Filling, filling, is_list_of_json, json_of_markup, json_text, push_found, push_json,
    push_json_as_xml, push_text, push_xml,
};
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Expression, Family, Fault, Flow, Inside,
    KeyValue, Mediator, Need, Page, Values,
};
use json::{is_bracketed, is_doubtful, needs_value, warn_of_no_json};
use message::media::Kind;
use message::{Envelope, Reading, SoapVersion, Value};
use std::sync::Arc;
use template::{Media, Part, Template, entry_text, without_blanks};
use xml::{Document, ParseOptions};

/// `<payloadFactory [media-type] [template-type] [escapeXmlChars]><format [key]>…</format><args><arg …/>*</args></payloadFactory>`
pub const DEFINITION: Definition = Definition {
    name: "payloadFactory",
    summary: "Replaces the payload with a template whose $1, $2, … and ${…} are filled in.",
    attributes: &[
        Attribute {
            name: "media-type",
            required: false,
            values: Values::Text,
            default: "xml",
            meaning: "what the template makes: xml, json or text",
        },
        Attribute {
            name: "template-type",
            required: false,
            values: Values::Text,
            default: "default",
            meaning: "the language of the template: default or freemarker",
        },
        Attribute {
            name: "escapeXmlChars",
            required: false,
            values: Values::Boolean,
            default: "false",
            meaning: "JSON: escape the line breaks and other control characters in the strings of an argument that is JSON as text",
        },
    ],
    children: Children::Elements(&["format", "args"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Transformation,
    semantics: "The payload becomes the `format`, in which `$1`, `$2`, … stand for the arguments and `${…}` for the value of the expression. For XML it is the first element of
`format` (write `xmlns=\"\"` on it, or it is in the namespace of the configuration), for `json` and `text` its text. With a `key` the format is a local
entry or a registry resource; a key in braces is evaluated for each message. The content type follows the `media-type`; for XML, an existing `text/xml`, `application/xml` or
`application/soap+xml` stays. SOAP header blocks stay too. An `Envelope` as the root is the whole message.

In XML, a text is escaped; XML, as text or as nodes, is inserted unchanged; JSON objects and arrays become elements. An element with text of its own stands
for that text. In JSON, a text is escaped as part of a string, so write `\"$1\"` for texts and `$1` for anything else; XML becomes JSON;
a text that is a JSON object or array is inserted unchanged, unless the argument is `literal`. An expression that selects nothing is an empty text, but as an unquoted `${…}` in JSON it is `null`. In
quotes (`\"${…}\"`) everything is text; without quotes a `${…}` is a JSON value, and gets quotes if it is a text. The first `$n` without an argument, and all `$n` after it, are
copied unchanged, with a warning when the configuration loads.

With `template-type=\"freemarker\"` the format is a FreeMarker template that sees `payload`, `args.arg1`, …, `ctx`, `axis2`, `trp` and `vars`.

The result is checked: XML must be well-formed. JSON must begin like JSON; that the rest is none is a warning in the log, and when the configuration loads if it is certain.",
    inside: &[
        Inside::new(
            "format",
            "the template",
            &[Attribute::optional("key", Values::Key, "an entry with the template, instead of what is inside")],
        )
        .with("element or text"),
        Inside::new("args?", "the arguments", &[]),
        Inside::new(
            "args/arg*",
            "`$1` is the first",
            &[
                Attribute::optional("value", Values::Text, "a text or XML"),
                Attribute::optional("expression", Values::Expression, "gives the value"),
                Attribute::optional("evaluator", Values::OneOf(&["xml", "json"]), "json: the expression is a JSONPath, bare or in `json-eval(…)`")
                    .or("xml"),
                Attribute::optional("literal", Values::Boolean, "JSON: always a text").or("false"),
                Attribute::optional("deepCheck", Values::Boolean, "has no effect").or("true"),
            ],
        ),
    ],
    needs: &[
        (Need::Whole, "an argument or an expression reads the body"),
        (Need::Replaces, "no argument and no expression does"),
    ],
    refused: &[
        ("<payloadFactory/>", "`payloadFactory` needs a `format`"),
        ("<payloadFactory><format><a>$1</a></format><args><arg/></args></payloadFactory>", "`arg` needs a value"),
        (
            "<payloadFactory media-type=\"json\"><format>{\"a\":${payload.}}</format></payloadFactory>",
            "cannot be evaluated: each message faults here",
        ),
        (
            "<payloadFactory><format><a>$1</a></format><args><arg expression=\"//a[\"/></args></payloadFactory>",
            "not a valid expression",
        ),
        (
            "<payloadFactory template-type=\"freemarker\" media-type=\"json\"><format>${payload.a</format></payloadFactory>",
            "`${` has no `}`",
        ),
    ],
    faults: &[
        (
            "0",
            "there is no entry of that key, the result is not well-formed XML or does not begin as JSON does, or a FreeMarker template \
             fails",
        ),
        (
            "601000",
            "an argument or an expression reads the body, and it is not what its content type says, or larger than a flow may hold",
        ),
    ],
};

struct PayloadFactory {
    media: Media,
    template: Source,
    arguments: Vec<Argument>,
    /// `escapeXmlChars`: control characters in the strings of JSON that an argument brings as text are escaped.
    escapes_controls: bool,
}

/// Where the template comes from.
enum Source {
    Fixed(Template),
    Keyed { key: KeyValue, templates: Cut, scope: Box<config::Scope>, span: Span },
    FreeMarker(Templates),
}

type Cut = EntryCache<Arc<str>, Arc<[u8]>, Template>;

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let place = element.start_tag();
    let media = match element.attr("media-type").unwrap_or("xml") {
        kind if kind.contains("json") => Media::Json,
        kind if kind.contains("text") => Media::Text,
        _ => Media::Xml,
    };
    let Some(format) = element.child("format") else {
        compiler.error("missing-element", "`payloadFactory` needs a `format`", place, "the template");
        return None;
    };
    if let (Media::Xml, Some(second)) = (media, format.elements().nth(1)) {
        compiler.warning(
            "unused-element",
            "`format` has more than one element",
            second.start_tag(),
            "only the first one is the payload; put them into one",
        );
    }
    if media == Media::Xml && format.elements().next().is_some() && !format.text().trim().is_empty() {
        compiler.warning(
            "stray-text",
            "text in `format` is ignored",
            format.text_span(),
            "only the element is the payload",
        );
    }
    let mut arguments = Vec::new();
    if let Some(args) = element.child("args") {
        for arg in args.children_named("arg") {
            arguments.push(Argument::compile(arg, compiler)?);
        }
    }
    let free_marker = is_free_marker(element, compiler);
    let template = match (free_marker, format.attribute("key")) {
        (true, _) => Source::FreeMarker(Templates::compile(format, written(format, media), compiler)?),
        (false, Some(_)) => behind_key(format, media, &arguments, compiler)?,
        (false, None) => {
            // In XML the text is written anew, so that only the element's place is known.
            let span = format.text_span();
            let (template, missing) =
                Template::cut(&written(format, media), media, arguments.len(), |expression, at| {
                    let place = if media == Media::Xml { span } else { span.part(at, expression.len()) };
                    compiler.expression_in_text(expression, place, format.scope()).ok_or(())
                })
                .ok()?;
            report(missing, span, compiler);
            let place = |open| if media == Media::Xml { span } else { span.part(open, 2) };
            compiler.check_closed(&written(format, media), place);
            report_fault(&template, media, &arguments, |fault| format.place_in_text(fault.at), compiler);
            Source::Fixed(template)
        }
    };
    let escapes_controls = is_true(element, "escapeXmlChars");
    Some(Box::new(PayloadFactory { media, template, arguments, escapes_controls }))
}

/// The template that stands inside.
fn written(format: &Element, media: Media) -> String {
    match (media, format.elements().next()) {
        (Media::Xml, Some(root)) => without_blanks(root.to_xml()),
        _ => format.text(),
    }
}

fn behind_key(
    format: &Element,
    media: Media,
    arguments: &[Argument],
    compiler: &mut Compiler<'_>,
) -> Option<Source> {
    let key = compiler.key_value(format, "key")?;
    let span = format.start_tag();
    let Some(entry) = key.literal().and_then(|key| compiler.entry(key)) else {
        if let Some(name) = key.literal() {
            warn_missing("template", name, format.value_span("key"), compiler);
        }
        let scope = Box::new(format.scope().clone());
        return Some(Source::Keyed { key, templates: EntryCache::default(), scope, span });
    };
    let text = entry_text(&entry.bytes, media);
    let cut = Template::cut(&text, media, arguments.len(), |expression, _| {
        compiler.expression_in_text(expression, span, format.scope()).ok_or(())
    });
    let (template, missing) = cut.ok()?;
    report(missing, span, compiler);
    report_fault(&template, media, arguments, |_| span, compiler);
    Some(Source::Fixed(template))
}

fn report_fault(
    template: &Template,
    media: Media,
    arguments: &[Argument],
    place: impl Fn(&json::Fault) -> Span,
    compiler: &mut Compiler<'_>,
) {
    if media != Media::Json {
        return;
    }
    let message = "the result of this template is not JSON";
    if let Some(fault) = &template.fault {
        compiler.warning("bad-json-template", message, place(fault), fault.why.as_str());
    } else if let Some((argument, why)) = template.fault_of_text(arguments) {
        let label = format!("its place in the template has no quotes: {why}");
        compiler.warning("bad-json-template", message, argument.span, label);
    }
}

fn report(missing: Option<usize>, place: Span, compiler: &mut Compiler<'_>) {
    if let Some(number) = missing {
        compiler.warning(
            "missing-argument",
            format!("the template has ${number}, but there is no such argument"),
            place,
            "from there on, the template is copied without changes",
        );
    }
}

impl Mediator for PayloadFactory {
    fn need(&self) -> Need {
        let key = match &self.template {
            Source::Keyed { key, .. } => key.need(),
            Source::FreeMarker(templates) if templates.reads_payload() => Need::Whole,
            Source::Fixed(_) | Source::FreeMarker(_) => Need::Nothing,
        };
        let expressions = match &self.template {
            Source::Fixed(template) => template.expressions.as_slice(),
            Source::Keyed { .. } | Source::FreeMarker(_) => &[],
        };
        let expressions = expressions.iter().map(Expression::need);
        if self.arguments.iter().map(Argument::need).chain([key]).chain(expressions).any(Need::is_whole) {
            Need::Whole
        } else {
            Need::Replaces
        }
    }

    fn reason(&self) -> String {
        "replaces the payload".into()
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let built;
        let template = match &self.template {
            Source::Fixed(template) => template,
            Source::FreeMarker(templates) => {
                let mut arguments = Vec::with_capacity(self.arguments.len());
                for argument in &self.arguments {
                    arguments.push(argument.evaluate(false, context)?.model());
                }
                let text = templates.fill(arguments, context)?;
                if self.media == Media::Json {
                    warn_of_no_json(&text, "the FreeMarker template", context);
                }
                built = Arc::new(Template {
                    parts: vec![Part::Literal(text)],
                    sound: false,
                    expressions: Vec::new(),
                    fault: None,
                });
                &built
            }
            Source::Keyed { key, templates: cache, scope, span } => {
                built = self.keyed(key, cache, (&**scope, *span), context)?;
                &built
            }
        };
        let mut fillings = Vec::with_capacity(self.arguments.len());
        let filled_in = matches!(self.template, Source::FreeMarker(_));
        let as_string = self.media == Media::Xml && context.services().settings.synapse_dialect;
        for argument in self.arguments.iter().filter(|_| !filled_in) {
            fillings.push(argument.evaluate(as_string, context)?);
        }
        let mut found = Vec::with_capacity(template.expressions.len());
        for expression in &template.expressions {
            found.push(filling(expression, context)?);
        }
        match self.media {
            Media::Xml => self.xml(template, &fillings, &found, context)?,
            Media::Json => self.json(template, &fillings, &found, context)?,
            Media::Text => {
                let mut out = String::new();
                for part in &template.parts {
                    match part {
                        Part::Literal(text) => out.push_str(text),
                        Part::Slot { argument: at, .. } | Part::Expression { number: at, .. } => {
                            let list = if matches!(part, Part::Slot { .. }) { &fillings } else { &found };
                            match &list[*at] {
                                Filling::Text(text) | Filling::Markup(text) => out.push_str(text),
                                Filling::Json(value) => push_json(value, &mut out),
                                Filling::Nothing => {}
                            }
                        }
                    }
                }
                let reading = Reading { kind: Kind::Text, ..Reading::XML };
                context.payload.set_made(out.trim().to_owned(), reading);
                context.set_axis2("messageType", Value::from("text/plain"));
            }
        }
        context.remove_axis2("NO_ENTITY_BODY");
        Ok(Flow::Next)
    }
}

impl PayloadFactory {
    /// The template behind a key, compiled anew when its text has changed.
    fn keyed(
        &self,
        key: &KeyValue,
        templates: &Cut,
        (scope, span): (&config::Scope, Span),
        context: &mut Context,
    ) -> Result<Arc<Template>, Fault> {
        let key = key.resolve(context)?.unwrap_or_default();
        let entry = context.plan().entry(key.trim());
        let entry = entry.ok_or_else(|| {
            Fault::new(format!("Key {} not found for the format of payloadFactory", key.trim()))
        })?;
        templates.get_or_make(&key, entry.bytes, |bytes| {
            let text = entry_text(bytes, self.media);
            let settings = &context.services().settings;
            let (template, _) = Template::cut(&text, self.media, self.arguments.len(), |expression, _| {
                Expression::compile(expression, scope, span, settings).map_err(|error| {
                    let why = format!("{expression} is not a valid expression: {}", error.message);
                    Fault::new(format!("In the template {key}, {why}"))
                })
            })?;
            Ok(template)
        })
    }

    fn xml(
        &self,
        template: &Template,
        fillings: &[Filling<'_>],
        found: &[Filling<'_>],
        context: &mut Context,
    ) -> Result<(), Fault> {
        let mut out = String::new();
        let mut sound = template.sound;
        // Apache Synapse puts arguments in as they are.
        let unescaped = context.services().settings.synapse_dialect;
        for part in &template.parts {
            let (filling, in_text) = match part {
                Part::Literal(text) => {
                    out.push_str(text);
                    continue;
                }
                Part::Slot { argument, in_text, .. } => (&fillings[*argument], in_text),
                Part::Expression { number, in_text, .. } => (&found[*number], in_text),
            };
            match filling {
                Filling::Nothing => {}
                // There is no XML in an attribute value.
                Filling::Json(value) if !in_text => {
                    sound &= push_xml(&value.to_string(), false, &mut out);
                }
                Filling::Text(text) if unescaped => {
                    sound = false;
                    out.push_str(text);
                }
                Filling::Text(text) => sound &= push_xml(text, *in_text, &mut out),
                Filling::Markup(text) => {
                    let text = text.trim();
                    sound &= in_text;
                    // An XML declaration can only stand at the beginning.
                    match text.strip_prefix("<?xml ").and_then(|rest| rest.split_once("?>")) {
                        Some((_, rest)) => out.push_str(rest.trim_start()),
                        None => out.push_str(text),
                    }
                }
                Filling::Json(value) => {
                    sound = false;
                    push_json_as_xml(value, &mut out);
                }
            }
        }
        self.set_xml(out, sound, context)?;
        let kept = context.axis2("messageType").is_some_and(|value| {
            matches!(value.to_string().trim(), "application/xml" | "text/xml" | "application/soap+xml")
        });
        if !kept {
            context.set_axis2("messageType", Value::from("application/xml"));
        }
        Ok(())
    }

    /// Puts XML into the body. Headers of an envelope stay; without any, sound XML need not be parsed.
    fn set_xml(&self, text: String, sound: bool, context: &mut Context) -> Result<(), Fault> {
        let invalid = |why: String| Fault::new("Generated content is not a valid XML payload").because(why);
        let reading = context.payload.reading();
        let soap = match reading.kind {
            Kind::Soap12 => true,
            Kind::Soap11 => !reading.rest,
            _ => false,
        };
        if soap && !context.payload.is_empty() {
            context.envelope()?;
        }
        let header = context.payload.frame().is_some_and(|envelope| envelope.header.is_some());
        if sound && !header {
            context.payload.set_made(text, Reading { kind: Kind::Xml, charset: None, ..Reading::XML });
            return Ok(());
        }
        let limits = &context.services().limits.xml;
        let options = ParseOptions { limits: limits.clone(), ..ParseOptions::default() };
        let document =
            Document::parse(text.into_bytes(), &options).map_err(|error| invalid(error.to_string()))?;
        let Some(root) = document.document_element() else { return Err(invalid("it is empty".into())) };
        let envelope = if SoapVersion::of_envelope(&document, root).is_some() {
            Envelope::of_document(document).map_err(invalid)?
        } else {
            let mut envelope = match context.payload.frame() {
                Some(old) => crate::support::envelope_with_headers(old),
                None if reading.kind == Kind::Soap12 => Envelope::empty(SoapVersion::V12),
                None => Envelope::empty(SoapVersion::V11),
            };
            envelope.document.copy_from(envelope.body, &document, root);
            envelope
        };
        context.payload.set_envelope(envelope);
        Ok(())
    }

    fn json(
        &self,
        template: &Template,
        fillings: &[Filling<'_>],
        found: &[Filling<'_>],
        context: &mut Context,
    ) -> Result<(), Fault> {
        let quote =
            context.properties.get("QUOTE_STRING_IN_PAYLOAD_FACTORY_JSON").is_some_and(Value::is_true);
        let mut out = String::new();
        // Something may stand where it makes no JSON.
        let mut doubtful = template.fault.is_some();
        for (at, part) in template.parts.iter().enumerate() {
            match part {
                Part::Literal(text) => out.push_str(text),
                Part::Expression { number, quoted: false, .. }
                    if found[*number].is_empty() && is_bracketed(&out, template.parts.get(at + 1)) => {}
                Part::Expression { number, quoted, .. } => push_found(&found[*number], *quoted, &mut out),
                Part::Slot { argument, quoted: false, .. }
                    if fillings[*argument].is_empty() && needs_value(&out, template.parts.get(at + 1)) =>
                {
                    out.push_str("null");
                }
                Part::Slot { argument, quoted, .. } => {
                    let literal = self.arguments[*argument].literal;
                    doubtful |= if *quoted { quote } else { is_doubtful(&fillings[*argument], literal) };
                    match &fillings[*argument] {
                        Filling::Nothing => {}
                        Filling::Json(value) if literal => push_text(&value.to_string(), quote, &mut out),
                        // WSO2 does not see the quotes around it: what it makes is no JSON.
                        Filling::Json(value) if *quoted => {
                            message::json::escape(&value.to_string(), &mut out)
                        }
                        Filling::Json(value) => push_json(value, &mut out),
                        Filling::Markup(text) if !literal && *quoted => {
                            message::json::escape(&json_of_markup(text), &mut out);
                        }
                        Filling::Markup(text) if !literal => out.push_str(&json_of_markup(text)),
                        Filling::Text(text) => {
                            match json_text(text, self.escapes_controls).filter(|_| !literal) {
                                Some(json) if *quoted => message::json::escape(&json, &mut out),
                                Some(json) => out.push_str(&json),
                                // Objects with commas between them, for the brackets of the template.
                                None if !literal && !quoted && is_list_of_json(text) => out.push_str(text),
                                None => push_text(text, quote, &mut out),
                            }
                        }
                        Filling::Markup(text) => push_text(text, quote, &mut out),
                    }
                }
            }
        }
        // WSO2: nothing is an object without members.
        if out.trim_start().is_empty() {
            out = "{}".to_owned();
        }
        let text = out.trim_start();
        let starts_like_json = text.starts_with(['{', '[', '"', '-', 't', 'f', 'n'])
            || text.starts_with(|c: char| c.is_ascii_digit());
        if !starts_like_json {
            let start: String = text.chars().take(20).collect();
            return Err(Fault::new(format!(
                "Generated content is not a valid JSON payload: it starts with {start}"
            )));
        }
        if doubtful {
            warn_of_no_json(&out, "the template", context);
        }
        let reading = Reading { kind: Kind::Json, ..Reading::XML };
        context.payload.set_bytes(out, reading);
        context.set_axis2("messageType", Value::from("application/json"));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
