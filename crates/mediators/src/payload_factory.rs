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
                    arguments.push(argument.evaluate(context)?.model());
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
        for argument in self.arguments.iter().filter(|_| !filled_in) {
            fillings.push(argument.evaluate(context)?);
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
mod tests {
    use flow::testing;

    /// Before expressions had `${…}`, that was text; what has it still reads it when a message comes.
    #[test]
    fn a_wrong_expression_in_a_template_costs_its_step_only() {
        for format in ["{\"a\": \"${ctx:x}\"}", "{\"a\": ${env:HOME}}", "{\"a\": \"${payload.}\"}"] {
            let text = format!(
                "<payloadFactory media-type='json'><format>{format}</format><args/></payloadFactory><!--top-->
                 <sequence name='fault'><property name='seen' expression='$ctx:ERROR_CODE'/></sequence>"
            );
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert!(
                tested.reports("cannot be evaluated: each message faults here"),
                "{format}: {:?}",
                tested.found
            );
            let end = tested.run(JSON, "{}");
            assert_eq!(end.property("seen").as_deref(), Some("0"), "{format}");
        }
    }

    #[test]
    fn templates_that_lose_something_or_make_no_json_are_reported() {
        for (inside, says) in [
            (
                "<payloadFactory media-type='json'><format>{\"a\": 1,}</format><args/></payloadFactory>",
                "bad-json-template",
            ),
            (
                "<payloadFactory media-type='json'><format><![CDATA[{\"a\": '$1'}]]></format><args><arg value='x'/></args></payloadFactory>",
                "bad-json-template",
            ),
            (
                "<payloadFactory media-type='json'><format>{${payload}}</format></payloadFactory>",
                "bad-json-template",
            ),
            (
                "<payloadFactory media-type='json'><format>{\"a\": $1}</format><args><arg value='a text'/></args></payloadFactory>",
                "bad-json-template",
            ),
            (
                "<payloadFactory media-type='xml'><format>a <b xmlns=''/></format><args/></payloadFactory>",
                "text in `format` is ignored",
            ),
        ] {
            let tested = testing::main(&crate::registry(testing::endpoints), inside);
            assert!(tested.reports(says), "{inside}: {:?}", tested.found);
            assert!(!tested.reports("error"), "{inside}: {:?}", tested.found);
        }
        for inside in [
            "<payloadFactory media-type='json'><format>{\"a\": $1}&#xd;</format><args><arg value='7'/></args></payloadFactory>",
            "<payloadFactory media-type='json'><format>${payload}</format></payloadFactory>",
            "<payloadFactory media-type='json'><format>{\"a\": \"$1\", \"b\": $2, \"c\": -$3.$3}</format>\
             <args><arg value='x'/><arg value='[1]'/><arg value='1'/></args></payloadFactory>",
            "<payloadFactory media-type='json'><format><!-- {a} -->{\"a\": \"${vars.x}\"}</format></payloadFactory>",
            "<payloadFactory media-type='text'><format>{a}</format></payloadFactory>",
            "<payloadFactory media-type='text'><format>Hello $1</format><args><arg value='a text'/></args></payloadFactory>",
            "<payloadFactory><format><a xmlns=''>$1</a></format><args><arg value='a text'/></args></payloadFactory>",
        ] {
            let tested = testing::main(&crate::registry(testing::endpoints), inside);
            assert!(!tested.reports("bad-json-template"), "{inside}: {:?}", tested.found);
        }
    }

    const XML: &[(&str, &str)] = &[("Content-Type", "application/xml")];
    const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];

    fn made(
        media: &str,
        format: &str,
        args: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<String, String> {
        let text = format!(
            "<payloadFactory media-type='{media}'><format>{format}</format><args>{args}</args></payloadFactory>"
        );
        let tested = testing::main(&crate::registry(testing::endpoints), &text);
        assert!(!tested.reports("error"), "{:?}", tested.found);
        let mut end = tested.run(headers, body);
        match end.fault() {
            Some(fault) => Err(fault),
            None => Ok(if media == "text" { end.write(message::Format::Text) } else { end.payload() }),
        }
    }

    #[test]
    fn texts_are_escaped_but_not_in_apache_synapse() {
        let text = r#"<property name="p" value="a &lt; b"/><property name="x" value="&lt;c/>"/>
            <payloadFactory><format><r xmlns="">$1</r></format><args><arg expression="$ctx:ARG"/></args></payloadFactory>"#;
        let registry = crate::registry(flow::testing::endpoints);
        for (name, synapse, wanted) in
            [("p", false, Some("<r>a &lt; b</r>")), ("p", true, None), ("x", true, Some("<r><c/></r>"))]
        {
            let text = text.replace("ARG", name);
            let flow = match synapse {
                true => flow::testing::synapse(&registry, &text),
                false => flow::testing::main(&registry, &text),
            };
            let mut end = flow.run(&[("Content-Type", "application/xml")], "<a/>");
            match wanted {
                Some(wanted) => assert_eq!(end.payload(), wanted, "{name}"),
                None => assert!(end.fault().is_some(), "{name}"),
            }
        }
    }

    #[test]
    fn a_path_that_nothing_reads_is_a_fault_of_its_step() {
        let text = r#"<property name="before" value="1"/><filter xpath="$ctx:skip = 'yes'"><then/><else>
            <payloadFactory media-type="json"><format>{"last": ${payload.items[(@.length-1)].n}}</format></payloadFactory></else></filter>"#;
        let tested = testing::main(&crate::registry(testing::endpoints), text);
        assert!(tested.reports("cannot be evaluated: each message faults here"), "{:?}", tested.found);
        let end = tested.run(JSON, r#"{"items": [{"n": 1}]}"#);
        let fault = end.fault().unwrap_or_default();
        assert!(fault.contains("write `[-1]` for the last element"), "{fault}");
        assert_eq!(end.property("before").as_deref(), Some("1"));
        let skipped = format!("<property name='skip' value='yes'/>{text}");
        let end = testing::main(&crate::registry(testing::endpoints), &skipped).run(JSON, "{}");
        assert_eq!(end.fault(), None);
        // What hardly was meant is said, and runs.
        let text = r#"<property name="p" expression="json-eval($.items[0]])"/><property name="q" expression="json-eval($.items[0]n])"/>"#;
        let tested = testing::main(&crate::registry(testing::endpoints), text);
        assert!(tested.reports("`json-eval($.items[0]])` is hardly what was meant"), "{:?}", tested.found);
        let end = tested.run(JSON, r#"{"items": [{"n": 1, "n]": 2}]}"#);
        assert_eq!(end.property("p").as_deref(), Some(r#"{"n":1,"n]":2}"#));
        assert_eq!(end.property("q").as_deref(), Some("2"));
    }

    #[test]
    fn a_template_that_makes_no_json_is_logged() {
        let free_marker = r#"<payloadFactory media-type="json" template-type="freemarker"><format>{"order": ${payload.order!""}}</format></payloadFactory>"#;
        let slot = r#"<payloadFactory media-type="json"><format>{"a": $1, "b": "$1"}</format><args><arg evaluator="json" expression="$.order"/></args></payloadFactory>"#;
        let quotes = format!(
            "<property name=\"QUOTE_STRING_IN_PAYLOAD_FACTORY_JSON\" value=\"true\"/>{}",
            slot.replace("$1, ", "7, ")
        );
        let none = "WARN what the template made is not JSON";
        for (flow, body, wanted) in [
            (free_marker, r#"{"order": 7}"#, None),
            (free_marker, "{}", Some("WARN what the FreeMarker template made is not JSON")),
            (slot, r#"{"order": 7}"#, None),
            (slot, r#"{"order": {"c": 1}}"#, None),
            (slot, "{}", None),
            (slot, r#"{"order": "t\"q"}"#, Some(none)),
            (&quotes, r#"{"order": 7}"#, None),
            (&quotes, r#"{"order": "text"}"#, Some(none)),
        ] {
            let tested = testing::main(&crate::registry(testing::endpoints), flow);
            let (lines, end) =
                testing::logged("busbar_mediators::payload_factory", || tested.run(JSON, body));
            assert_eq!(end.fault(), None, "{body}");
            assert_eq!(lines, Vec::from_iter(wanted), "{flow} {body}");
        }
    }

    #[test]
    fn control_characters_in_texts_that_are_json_are_escaped_on_request() {
        for (escapes, argument, wanted) in [
            // A text that is not JSON is a part of a string.
            ("false", "{&quot;k&quot;:&quot;a&#10;b&quot;}", r#"{"a":{\"k\":\"a\nb\"}}"#),
            (
                "true",
                "{&quot;k&quot;:&quot;a&#10;b&#9;\\&quot;c&quot;,&#10; &quot;n&quot;:[1]}",
                "{\"a\":{\"k\":\"a\\nb\\t\\\"c\",\n \"n\":[1]}}",
            ),
            ("true", "[&quot;&#13;&quot;]", r#"{"a":["\r"]}"#),
            ("true", "{&#10;}", "{\"a\":{\n}}"),
            ("true", "{&quot;k&#10;", r#"{"a":{\"k\n}"#),
        ] {
            let text = format!(
                "<property name='p' value='{argument}'/><payloadFactory media-type='json' escapeXmlChars='{escapes}'>\
                 <format>{{\"a\":$1}}</format><args><arg expression='$ctx:p'/></args></payloadFactory>"
            );
            let mut end = testing::main(&crate::registry(testing::endpoints), &text).run(JSON, "{}");
            assert_eq!(end.write(message::Format::Json), wanted, "{escapes} {argument}");
        }
    }

    #[test]
    fn arguments_are_escaped_for_the_place_they_go_to() {
        let in_json = r#"{"arr":[1,{"z":2}],"obj":{"p":1},"nul":null,"info":"[INFO] \"x\"","num":1.5,"xml":"<b>1</b>","lt":"a<b&\"c"}"#;
        let in_xml = "<r><t>1</t><t>2</t><k><m>5</m></k><u>a\"b&amp;c</u><v at='7'/></r>";
        let json = |path: &str| format!("<arg evaluator='json' expression='{path}'/>");
        let xpath = |path: &str| format!("<arg expression=\"{path}\"/>");
        for (media, format, arg, headers, body, out) in [
            (
                "xml",
                "<a xmlns=''>$1</a>",
                json("$.arr"),
                JSON,
                in_json,
                "<a><jsonElement>1</jsonElement><jsonElement><z>2</z></jsonElement></a>",
            ),
            ("xml", "<a xmlns=''>$1</a>", json("$.obj"), JSON, in_json, "<a><p>1</p></a>"),
            ("xml", "<a xmlns=''>$1</a>", json("$.nul"), JSON, in_json, "<a>null</a>"),
            ("xml", "<a xmlns=''>$1</a>", json("$.xml"), JSON, in_json, "<a><b>1</b></a>"),
            (
                "xml",
                "<a xmlns='' x='$1'>$1</a>",
                json("json-eval($.lt)"),
                JSON,
                in_json,
                "<a x=\"a&lt;b&amp;&quot;c\">a&lt;b&amp;\"c</a>",
            ),
            ("xml", "<a xmlns=''>$1</a>", xpath("//k"), XML, in_xml, "<a><k><m>5</m></k></a>"),
            ("xml", "<a xmlns=''>$1</a>", xpath("//t"), XML, in_xml, "<a><t>1</t><t>2</t></a>"),
            ("xml", "<a xmlns=''>\n <b>$1</b>\n</a>", xpath("//none"), XML, in_xml, "<a><b></b></a>"),
            ("xml", "<a xmlns=''>$1</a>", "<arg value='x &lt; y'/>".into(), XML, in_xml, "<a>x &lt; y</a>"),
            ("json", r#"{"a":$1}"#, json("$.arr"), JSON, in_json, r#"{"a":[1,{"z":2}]}"#),
            ("json", r#"{"a":"$1"}"#, json("$.info"), JSON, in_json, r#"{"a":"[INFO] \"x\""}"#),
            ("json", r#"{"a":$1}"#, json("$.num"), JSON, in_json, r#"{"a":1.5}"#),
            ("json", r#"{"a":"$1"}"#, json("$.none"), JSON, in_json, r#"{"a":""}"#),
            ("json", r#"{"a":$1}"#, xpath("//k"), XML, in_xml, r#"{"a":{"k":{"m":5}}}"#),
            ("json", r#"{"a":$1}"#, xpath("//t"), XML, in_xml, r#"{"a":{"t":[1,2]}}"#),
            ("json", r#"{"a":"$1"}"#, xpath("//u"), XML, in_xml, r#"{"a":"a\"b&c"}"#),
            (
                "json",
                r#"{"a":$1}"#,
                "<arg value='{&quot;k&quot;:1}'/>".into(),
                XML,
                in_xml,
                r#"{"a":{"k":1}}"#,
            ),
            (
                "json",
                r#"{"a":"$1"}"#,
                "<arg literal='true' value='{&quot;k&quot;:1}'/>".into(),
                XML,
                in_xml,
                r#"{"a":"{\"k\":1}"}"#,
            ),
            (
                "json",
                r#"{"a":"$1"}"#,
                "<arg value='x &amp; &quot;y&quot;'/>".into(),
                XML,
                in_xml,
                r#"{"a":"x & \"y\""}"#,
            ),
            ("json", r#"{"a":"$1"}"#, json("$.obj"), JSON, in_json, r#"{"a":"{\"p\":1}"}"#),
            ("json", r#"{"a":"x $1"}"#, xpath("//k"), XML, in_xml, r#"{"a":"x {\"k\":{\"m\":5}}"}"#),
            (
                "json",
                r#"{"a":[$1],"b":"$1"}"#,
                "<arg value='{&quot;k&quot;:1}, {&quot;k&quot;:2}'/>".into(),
                XML,
                in_xml,
                r#"{"a":[{"k":1}, {"k":2}],"b":"{\"k\":1}, {\"k\":2}"}"#,
            ),
            (
                "json",
                r#"{"a":[$1],"b":{$1},"c":$1}"#,
                xpath("//none"),
                XML,
                in_xml,
                r#"{"a":[],"b":{},"c":null}"#,
            ),
            ("json", " ", String::new(), XML, in_xml, "{}"),
            ("json", "$1", xpath("//none"), XML, in_xml, "{}"),
            ("text", " $1-$1 ", xpath("string(//v/@at)"), XML, in_xml, "7-7"),
        ] {
            // What was taken out of the message brings the namespaces along that it had there.
            let made =
                made(media, format, &arg, headers, body).map(|made| flow::testing::without_envelope(&made));
            assert_eq!(made.as_deref(), Ok(out), "{media} {format} {arg}");
        }
    }

    #[test]
    fn expressions_are_filled_in_as_the_place_wants_them() {
        let body = r#"{"id":"A7","q":"say \"hi\"\n","o":{"x":1,"t":"a\"b"},"arr":[1,"b"],"nul":null,"d":1.50,"yes":true,"num":"12","xs":"<a>1</a>","list":"{\"k\":1},{\"k\":2}"}"#;
        for (media, format, wanted) in [
            (
                "json",
                r#"{"a":"${payload.id}","b":${payload.o},"c":${payload.d}}"#,
                r#"{"a":"A7","b":{"x":1,"t":"a\"b"},"c":1.5}"#,
            ),
            ("json", r#"{"a":"${payload.o}"}"#, r#"{"a":"{\"x\":1,\"t\":\"a\\\"b\"}"}"#),
            ("json", r#"{"a":"x ${payload.id} y ${payload.q}"}"#, r#"{"a":"x A7 y say \"hi\"\n"}"#),
            (
                "json",
                r#"{"a":"${payload.nul}","b":${payload.nul},"c":${payload.none},"d":"${payload.none}"}"#,
                r#"{"a":"","b":null,"c":null,"d":""}"#,
            ),
            (
                "json",
                r#"{"a":${payload.id},"b":${payload.num},"c":${payload.yes}}"#,
                r#"{"a":"A7","b":12,"c":true}"#,
            ),
            (
                "json",
                r#"{"a":"${payload.yes ? "yes" : "no"}","b":"${payload.id + "}"}"}"#,
                r#"{"a":"yes","b":"A7}"}"#,
            ),
            ("json", r#"{"a":"$1","b":"${payload.id}"}"#, r#"{"a":"arg","b":"A7"}"#),
            (
                "json",
                r#"{"a":[${payload.none}],"b":{ ${payload.none} },"c":[1,${payload.none}]}"#,
                r#"{"a":[],"b":{  },"c":[1,null]}"#,
            ),
            ("json", r#"{"a":[${payload.list}]}"#, r#"{"a":[{"k":1},{"k":2}]}"#),
            (
                "json",
                r#"{"a":${xpath('//o')},"b":"${xpath('//id')}"}"#,
                r#"{"a":{"o":{"x":1,"t":"a\"b"}},"b":"A7"}"#,
            ),
            (
                "xml",
                "<a xmlns='' v='${payload.id}' w='${payload.d &gt; 1}'>${payload.o}</a>",
                "<a v=\"A7\" w=\"true\"><x>1</x><t>a\"b</t></a>",
            ),
            (
                "xml",
                "<a xmlns='' v='${payload.o}'>${payload.nul}${payload.none}${payload.arr[0]}</a>",
                "<a v=\"{&quot;x&quot;:1,&quot;t&quot;:&quot;a\\&quot;b&quot;}\">1</a>",
            ),
            (
                "xml",
                "<a xmlns=''>${payload.xs}|${string(payload.xs)}|${xpath('//x')}</a>",
                "<a>&lt;a&gt;1&lt;/a&gt;|<a>1</a>|1</a>",
            ),
            ("text", "t ${payload.id} ${payload.o} ${payload.none}.", "t A7 {\"x\":1,\"t\":\"a\\\"b\"} ."),
        ] {
            let made = made(media, format, "<arg value='arg'/>", JSON, body)
                .map(|made| flow::testing::without_envelope(&made));
            assert_eq!(made.as_deref(), Ok(wanted), "{media} {format}");
        }
    }

    #[test]
    fn a_wrong_expression_in_a_template_is_found_when_loading_or_faults() {
        for format in ["${paylod.x}", "${payload.}", "${1 +}"] {
            let text =
                format!("<payloadFactory media-type='text'><format>{format}</format></payloadFactory>");
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert!(
                tested.reports("cannot be evaluated: each message faults here"),
                "{format} {:?}",
                tested.found
            );
        }
        let text = "<payloadFactory media-type='text'><format key=\"{concat('k', '')}\"/></payloadFactory>\
            <!--top--><localEntry key='k'>${paylod.x}</localEntry>";
        let tested = testing::main(&crate::registry(testing::endpoints), text);
        let fault = tested.run(JSON, "{}").fault();
        assert!(fault.as_ref().is_some_and(|fault| fault.contains("did you mean `payload`?")), "{fault:?}");
    }

    #[test]
    fn a_placeholder_without_argument_ends_the_filling_in() {
        let arg = "<arg value='v'/>";
        for (format, out) in [
            ("$1$1", "vv"),
            ("$1 $2 $1", "v $2 $1"),
            ("$0", "$0"),
            ("a$ $x $", "a$ $x $"),
            ("$99999999999999999999", "$99999999999999999999"),
        ] {
            assert_eq!(made("text", format, arg, XML, "<a/>").as_deref(), Ok(out), "{format}");
        }
    }

    #[test]
    fn an_envelope_replaces_the_envelope_and_headers_stay_else() {
        let soap = [("Content-Type", "text/xml"), ("SOAPAction", "x")];
        let message = "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Header><h/></s:Header><s:Body><a/></s:Body></s:Envelope>";
        let whole = "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body><n xmlns=''/></s:Body></s:Envelope>";
        for (format, has_header) in [("<n xmlns=''/>", true), (whole, false)] {
            let text = format!("<payloadFactory><format>{format}</format></payloadFactory><respond/>");
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            let response = tested.ask("POST", "/", &soap, message);
            assert!(response.body.contains("<n") && !response.body.contains("<a"), "{response:?}");
            assert_eq!(response.body.contains("<h"), has_header, "{response:?}");
        }
    }

    #[test]
    fn the_content_type_follows_the_media_type() {
        for (media, format, sent, became) in [
            ("json", "{}", XML, "application/json"),
            ("text", "x", XML, "text/plain"),
            ("xml", "<a/>", JSON, "application/xml"),
            ("xml", "<a/>", &[("Content-Type", "text/xml; charset=UTF-8")][..], "text/xml; charset=UTF-8"),
            ("xml", "<a/>", &[][..], "application/xml"),
        ] {
            let text =
                format!("<payloadFactory media-type='{media}'><format>{format}</format></payloadFactory>");
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            let end = tested.run(sent, "");
            assert_eq!(end.context.headers.get("Content-Type"), Some(became), "{media} {sent:?}");
        }
    }

    #[test]
    fn what_cannot_be_made_faults() {
        for (media, format, args, body, says) in [
            ("xml", "$1", "<arg value='x'/>", "<a/>", "not a valid XML payload"),
            ("xml", "", "", "<a/>", "not a valid XML payload"),
            (
                "xml",
                "<a xmlns='' b='$1'/>",
                "<arg expression='//k'/>",
                "<a><k><l/></k></a>",
                "not a valid XML payload",
            ),
            ("json", "oops", "", "<a/>", "not a valid JSON payload"),
            ("xml", "<a>$1</a>", "<arg expression='//k'/>", "<a", "not well-formed"),
            ("xml", "<a>$1</a>", "<arg evaluator='json' expression='$.a'/>", "<a", "not well-formed"),
        ] {
            let fault = made(media, format, args, XML, body);
            assert!(fault.as_ref().is_err_and(|fault| fault.contains(says)), "{media} {format}: {fault:?}");
        }
        let text = "<payloadFactory><format key='{$ctx:none}'/></payloadFactory>";
        let tested = testing::main(&crate::registry(testing::endpoints), text);
        assert!(tested.run(XML, "<a/>").fault().is_some_and(|fault| fault.contains("not found")));
        for (text, says) in [
            ("<payloadFactory/>", "needs a `format`"),
            (
                "<payloadFactory template-type='freemarker'><format>${</format></payloadFactory>",
                "bad-template",
            ),
            ("<payloadFactory><format>x</format><args><arg/></args></payloadFactory>", "needs a value"),
            (
                "<payloadFactory media-type='text'><format>$2</format><args><arg value='1'/></args></payloadFactory>",
                "there is no such argument",
            ),
        ] {
            let tested = testing::main(&crate::registry(testing::endpoints), text);
            assert!(tested.reports(says), "{text}: {:?}", tested.found);
        }
    }

    #[test]
    fn templates_of_keys_are_found_when_the_configuration_loads_or_per_message() {
        for key in ["k", "{concat('k', '')}"] {
            let text = format!(
                "<payloadFactory media-type='json'><format key=\"{key}\"/><args><arg value='1'/></args></payloadFactory>\
                <!--top--><localEntry key='k'><![CDATA[{{\"v\":$1}}]]></localEntry>"
            );
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert_eq!(tested.run(XML, "<a/>").payload(), r#"{"v":1}"#, "{key} {:?}", tested.found);
        }
    }

    /// An entry that was written as text is a text, and one that is XML is inserted as markup like any other.
    #[test]
    fn text_entries_that_look_like_xml_are_inserted_whole() {
        let text = "<payloadFactory><format><f xmlns=''>$1</f></format><args><arg expression=\"get-property('k')\"/></args></payloadFactory>\
            <!--top--><localEntry key='k'><![CDATA[<raw>a&amp;b</raw>]]></localEntry>";
        let tested = testing::main(&crate::registry(testing::endpoints), text);
        assert_eq!(tested.run(XML, "<a/>").payload(), "<f><raw>a&amp;b</raw></f>", "{:?}", tested.found);
    }
}
