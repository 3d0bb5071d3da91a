//! Templates in FreeMarker for `payloadFactory`: what a template sees of the message. The language itself is the crate
//! `template`.

use crate::entry_cache::EntryCache;
use crate::written::Written;
use config::Element;
use diagnostics::{Diagnostic, Span};
use flow::{Compiler, Context, Fault, KeyValue};
use message::Value;
use serde_json::Value as Json;
use std::borrow::Cow;
use std::sync::Arc;
use template::{Error, Template};
use xml::Document;

/// What a template sees under a name.
pub(crate) enum Model {
    /// A text.
    Text(String),
    /// JSON: maps, lists and scalars.
    Json(Arc<Json>),
    /// A document.
    Xml(Box<Document>),
    /// Texts by name; `true`: in any case.
    Texts(Vec<(String, String)>, bool),
    /// Models by name.
    Models(Vec<(String, Model)>),
    /// The JSON that is the payload, which is lent and not copied.
    Payload,
}

/// The templates of one mediator.
pub(crate) enum Templates {
    /// Known when the configuration was loaded.
    Fixed(FreeMarker),
    /// Named by an expression, or not there yet.
    Keyed { key: KeyValue, templates: EntryCache<Arc<str>, Arc<[u8]>, FreeMarker> },
}

/// A template with the names that it sees.
pub(crate) struct FreeMarker {
    template: Template,
    /// The models whose names occur in it.
    names: Vec<&'static str>,
    /// Members of `axis2` that the template names: many are only known by name.
    axis2: Vec<String>,
}

/// Whether the `template-type` of a `payloadFactory` is FreeMarker; what it does not know counts as the other one.
pub(crate) fn is_free_marker(element: &Element, compiler: &mut Compiler<'_>) -> bool {
    const TYPES: [&str; 2] = ["default", "freemarker"];
    let Some(attribute) = element.attribute("template-type") else { return false };
    let value = attribute.value.trim();
    if !value.is_empty() && !TYPES.iter().any(|name| value.eq_ignore_ascii_case(name)) {
        compiler.diagnostics.push(
            Diagnostic::warning("bad-value", format!("`template-type` should not be `{value}`"))
                .at(attribute.value_span, "counts as `default`; expected `default` or `freemarker`")
                .did_you_mean(value, TYPES),
        );
    }
    value.eq_ignore_ascii_case(TYPES[1])
}

const NAMES: &[&str] = &["payload", "args", "ctx", "axis2", "trp", "vars"];

impl FreeMarker {
    fn new(text: &str) -> Result<FreeMarker, Error> {
        let template = Template::parse(text)?;
        let names = NAMES.iter().copied().filter(|name| text.contains(name)).collect();
        Ok(FreeMarker { template, names, axis2: members(text, "axis2") })
    }

    /// Whether the template reads the payload.
    pub(crate) fn reads_payload(&self) -> bool {
        self.names.contains(&"payload")
    }

    /// The result for a message; `arguments` are called `arg1`, `arg2`, ….
    pub(crate) fn fill(&self, arguments: Vec<Model>, context: &mut Context) -> Result<String, Fault> {
        let limit = context.services().limits.held;
        let mut arguments = Some(arguments);
        let mut models = Vec::with_capacity(self.names.len());
        for &name in &self.names {
            models.push((name, self.model(name, &mut arguments, context)?));
        }
        let payload = context.payload.built_json();
        let lent: Vec<(&'static str, template::Model<'_>)> =
            models.iter().map(|(name, model)| (*name, model.lent(payload))).collect();
        self.template.fill(&lent, limit).map_err(|error| {
            let place = match error.place.line {
                0 => String::new(),
                line => format!(" (line {line}, column {})", error.place.column),
            };
            Fault::new("Error parsing the FreeMarker template").because(format!("{error}{place}"))
        })
    }

    fn model(
        &self,
        name: &str,
        arguments: &mut Option<Vec<Model>>,
        context: &mut Context,
    ) -> Result<Model, Fault> {
        Ok(match name {
            "payload" => payload(context)?,
            "args" => {
                let all = arguments.take().unwrap_or_default().into_iter().enumerate();
                Model::Models(all.map(|(index, model)| (format!("arg{}", index + 1), model)).collect())
            }
            "ctx" => {
                let all = context.properties.iter().map(|(name, value)| (name.to_owned(), value.to_string()));
                Model::Texts(all.collect(), false)
            }
            "axis2" => {
                let named = self.axis2.iter();
                let named = named.filter_map(|name| Some((name.clone(), context.axis2(name)?.to_string())));
                Model::Texts(named.collect(), false)
            }
            "trp" => {
                let all =
                    context.headers.iter().map(|(name, value)| (name.to_owned(), flow::header_text(value)));
                Model::Texts(all.collect(), true)
            }
            _ => {
                let all = context.variables.iter().map(|(name, value)| (name.to_owned(), Model::of(value)));
                Model::Models(all.collect())
            }
        })
    }
}

impl Model {
    /// Of a property or variable.
    pub(crate) fn of(value: &Value) -> Model {
        match value {
            Value::Json(json) => Model::Json(Arc::clone(json)),
            Value::Integer(number) => Model::Json(Arc::new(Json::from(*number))),
            Value::Double(number) | Value::JavaDouble(number) => Model::Json(Arc::new(Json::from(*number))),
            Value::Boolean(is) => Model::Json(Arc::new(Json::from(*is))),
            Value::Xml(xml) if xml.nodes.len() == 1 => Model::document(&xml.document, xml.nodes[0]),
            other => Model::Text(other.to_string()),
        }
    }

    /// Of well-formed elements; a text where they are more than one.
    pub(crate) fn of_markup(text: &str) -> Model {
        match crate::xml_value::parse(text) {
            Ok(Value::Xml(xml)) => Model::document(&xml.document, xml.nodes[0]),
            _ => Model::Text(text.to_owned()),
        }
    }

    /// An element as a document of its own, so that what is around it is not seen.
    fn document(document: &Document, element: xml::NodeId) -> Model {
        let mut single = Document::new();
        single.copy_from(Document::ROOT, document, element);
        Model::Xml(Box::new(single))
    }

    fn lent<'m>(&'m self, payload: Option<&'m Json>) -> template::Model<'m> {
        match self {
            Model::Text(text) => template::Model::Text(Cow::Borrowed(text)),
            Model::Json(json) => template::Model::Json(json),
            Model::Payload => template::Model::Json(payload.unwrap_or(&Json::Null)),
            Model::Xml(document) => template::Model::Xml(document),
            Model::Texts(texts, any_case) => template::Model::Texts(texts, *any_case),
            Model::Models(models) => template::Model::Models(
                models.iter().map(|(name, model)| (name.clone(), model.lent(payload))).collect(),
            ),
        }
    }
}

fn payload(context: &mut Context) -> Result<Model, Fault> {
    let limits = context.services().limits.clone();
    if context.payload.json()?.is_some() {
        return Ok(Model::Payload);
    }
    let envelope = context.payload.envelope(&limits)?;
    let Some(payload) = envelope.payload() else { return Ok(Model::Text(String::new())) };
    let document = &envelope.document;
    if document.namespace(payload) == message::envelope::PAYLOAD && document.local(payload) == "text" {
        return Ok(Model::Text(document.string_value(payload).into_owned()));
    }
    Ok(Model::document(document, payload))
}

/// The names in `variable.NAME` and `variable["NAME"]`.
fn members(text: &str, variable: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in text.match_indices(variable) {
        let rest = &text[at + variable.len()..];
        let name: String = match rest.as_bytes() {
            [b'.', ..] => rest[1..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect(),
            [b'[', quote @ (b'"' | b'\''), ..] => {
                rest[2..].split(*quote as char).next().unwrap_or("").to_owned()
            }
            _ => continue,
        };
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

impl Templates {
    /// A template that stands inside, or behind a key; `None` after a recorded error.
    pub(crate) fn compile(
        format: &config::Element,
        text: String,
        compiler: &mut Compiler<'_>,
    ) -> Option<Templates> {
        let report = |wrong: Error, span: Span, compiler: &mut Compiler<'_>| {
            let label = format!("line {}, column {} of the template", wrong.place.line, wrong.place.column);
            compiler.error("bad-template", wrong.message, span, label);
        };
        let Some(attribute) = format.attribute("key") else {
            let written = Written::of(format);
            let as_written = written.value == text;
            return match FreeMarker::new(&text) {
                Ok(template) => Some(Templates::Fixed(template)),
                Err(wrong) => {
                    let (line, column) = (wrong.place.line as usize, wrong.place.column as usize);
                    let exact = as_written.then(|| written.span_of(line, column)).flatten();
                    report(wrong, exact.unwrap_or(format.text_span()), compiler);
                    None
                }
            };
        };
        let key = compiler.key_value(format, "key")?;
        match key.literal().and_then(|key| compiler.entry(key)) {
            None => Some(Templates::Keyed { key, templates: EntryCache::default() }),
            Some(entry) => match FreeMarker::new(&String::from_utf8_lossy(&entry.bytes)) {
                Ok(template) => Some(Templates::Fixed(template)),
                Err(wrong) => {
                    report(wrong, attribute.value_span, compiler);
                    None
                }
            },
        }
    }

    /// Whether the payload is read.
    pub(crate) fn reads_payload(&self) -> bool {
        match self {
            Templates::Fixed(template) => template.reads_payload(),
            Templates::Keyed { .. } => true,
        }
    }

    /// See [`FreeMarker::fill`].
    pub(crate) fn fill(&self, arguments: Vec<Model>, context: &mut Context) -> Result<String, Fault> {
        let (key, templates) = match self {
            Templates::Fixed(template) => return template.fill(arguments, context),
            Templates::Keyed { key, templates } => (key.resolve(context)?.unwrap_or_default(), templates),
        };
        let entry = context.plan().entry(key.trim());
        let entry = entry.ok_or_else(|| {
            Fault::new(format!("Key {} not found for the format of payloadFactory", key.trim()))
        })?;
        let template = templates.get_or_make(&key, entry.bytes, |bytes| {
            FreeMarker::new(&String::from_utf8_lossy(bytes))
                .map_err(|wrong| Fault::new("Error parsing the FreeMarker template").because(wrong.message))
        })?;
        template.fill(arguments, context)
    }
}

#[cfg(test)]
mod tests {
    use flow::testing::{self, Ended, Tested};

    const XML: &[(&str, &str)] = &[("Content-Type", "application/xml"), ("X-Agent", "me")];
    const JSON: &[(&str, &str)] = &[("Content-Type", "application/json"), ("X-Agent", "me")];

    fn flow(media: &str, template: &str, args: &str) -> Tested {
        let text = format!(
            "<property name='p' value='ctx'/><variable name='v' type='JSON' value='{{&quot;a&quot;:[1,2]}}'/><payloadFactory media-type='{media}' template-type='freemarker'>\
            <format><![CDATA[{template}]]></format><args>{args}</args></payloadFactory>"
        );
        testing::main(&crate::registry(testing::endpoints), &text)
    }

    fn fill(media: &str, template: &str, headers: &[(&str, &str)], body: &str) -> Ended {
        let flow = flow(media, template, "<arg value='lit'/><arg expression='1 + 1'/>");
        assert!(flow.found.is_empty(), "{template}: {:?}", flow.found);
        let end = flow.run(headers, body);
        assert_eq!(
            end.fault().map(|fault| format!("{fault} {:?}", end.property("ERROR_DETAIL"))),
            None,
            "{template}"
        );
        end
    }

    #[test]
    fn templates_see_the_message() {
        for (template, headers, body, expected) in [
            (
                r#"{"a":"${payload.a}","n":${payload.l?size}}"#,
                JSON,
                r#"{"a":"x","l":[1,2]}"#,
                r#"{"a":"x","n":2}"#,
            ),
            (
                r#"[<#list payload.l as i>${i.n?c}<#sep>,</#list>]"#,
                JSON,
                r#"{"l":[{"n":1000},{"n":1.5}]}"#,
                "[1000,1.5]",
            ),
            (
                r#"{"c":"${ctx.p}","t":"${trp["x-agent"]}","m":"${axis2.HTTP_METHOD}","g":"${args.arg1}${args.arg2}"}"#,
                JSON,
                "{}",
                r#"{"c":"ctx","t":"me","m":"POST","g":"lit2"}"#,
            ),
            (
                r#"{"v":${vars.v.a[1]},"d":"${payload.none!"dflt"}","e":${payload.none???c}}"#,
                JSON,
                r#"{"none":null}"#,
                r#"{"v":2,"d":"dflt","e":false}"#,
            ),
            (
                r#"{"n":"${payload.n}","c":${payload.n?c}}"#,
                JSON,
                r#"{"n":1234567.25}"#,
                r#"{"n":"1,234,567.25","c":1234567.25}"#,
            ),
            (
                r#"{"b":"${payload.user.name} ${payload.user.@id}","l":[<#list payload.user.i as i>"${i}"<#sep>,</#list>]}"#,
                XML,
                "<user id='7'><name>N</name><i>1</i><i>2</i></user>",
                r#"{"b":"N 7","l":["1","2"]}"#,
            ),
        ] {
            let mut end = fill("json", template, headers, body);
            assert_eq!(end.payload(), expected, "{template}");
            assert_eq!(end.context.headers.get("Content-Type"), Some("application/json"));
        }
        let mut end =
            fill("xml", "<a><#list payload.l as i><b>${i}</b></#list></a>", JSON, r#"{"l":["x","y"]}"#);
        assert_eq!(end.payload(), "<a><b>x</b><b>y</b></a>");
        let mut end = fill("text", "Hello ${payload.a?upper_case}!", JSON, r#"{"a":"x"}"#);
        assert_eq!(end.write(message::Format::Text), "Hello X!");
    }

    #[test]
    fn what_is_wrong_with_a_template_is_said_when_it_loads() {
        for (template, says) in [
            ("<#if x>", "if"),
            ("${", "template"),
            ("${x?nonsense}", "nonsense"),
            ("${payload.a?eval}", "`?eval` is not executable here"),
        ] {
            let flow = flow("json", template, "");
            assert!(
                flow.found.iter().any(|found| found.starts_with("bad-template") && found.contains(says)),
                "{template}: {:?}",
                flow.found
            );
        }
        let deep = format!("${{{}1{}}}", "(".repeat(5000), ")".repeat(5000));
        assert!(flow("json", &deep, "").reports("nest deeper"));
    }

    #[test]
    fn what_goes_wrong_for_a_message_is_a_fault() {
        let deep = format!("{}{}", "[".repeat(110), "]".repeat(110));
        let long = format!("{{\"s\":\"{}\"}}", "x".repeat(1 << 20));
        let nested = format!("{}{}", "<a>".repeat(200), "</a>".repeat(200));
        for (template, headers, body, part) in [
            (r#"{"a":"${payload.none}"}"#, JSON, "{}", "payload.none"),
            ("[${payload.a + 1}]", JSON, r#"{"a":[]}"#, "Expected"),
            ("${payload}", JSON, "{", "JSON"),
            ("${payload}", JSON, deep.as_str(), "is a sequence"),
            ("${payload}", XML, nested.as_str(), "a document is not text"),
            ("<#list 1..100000000 as i>${payload.s}</#list>", JSON, long.as_str(), "67108864"),
        ] {
            let end = flow("json", template, "").run(headers, body);
            let fault = format!(
                "{} {}",
                end.fault().unwrap_or_default(),
                end.property("ERROR_DETAIL").unwrap_or_default()
            );
            assert!(fault.contains(part), "{template}: {fault}");
        }
    }

    #[test]
    fn what_never_ends_is_a_fault() {
        for (template, part) in [
            ("<#macro m><@m/></#macro><@m/>", "call depth"),
            ("<#macro a><@b/></#macro><#macro b><@a/></#macro><@a/>", "call depth"),
            (
                "<#function f x><#return g(x)></#function><#function g x><#return 1 + f(x)></#function>${f(1)}",
                "call depth",
            ),
            ("<#macro a x><@x x/></#macro><@a a/>", "call depth"),
            ("<#list 1..100000000000 as i></#list>", "longer than 20 ms"),
            ("<#list 1..100000 as i><#list 1..100000 as j></#list></#list>", "longer than 20 ms"),
            ("<#list 1..100000000000><#items as i></#items></#list>", "longer than 20 ms"),
            ("<#list 1.. as i></#list>", "longer than 20 ms"),
            ("${(1..100000000000)?map(x -> x)?size}", "a range of 100000000000 items is too long"),
            ("<#assign r = 5..*-100001>${r?join(',')}", "too long"),
            ("${(0..<100001)?reverse?first}", "too long"),
            ("${(1..)?map(x -> x)?join(',')}", "a range without an end"),
            ("${(1..100000)?map(x -> (1..100000)?filter(y -> y gt x)?size)?join(',')}", "longer than 20 ms"),
            ("<#function f n><#return (n..n*n)?map(x -> x)></#function>${f(1000)?size}", "too long"),
            ("${'a'?left_pad(1000000000)}", "padded to 1000000"),
        ] {
            let text = format!(
                "<payloadFactory media-type='json' template-type='freemarker'><format><![CDATA[{template}]]></format></payloadFactory>"
            );
            let tested = testing::main_with(&crate::registry(testing::endpoints), &text, |services| {
                services.settings.script_time = std::time::Duration::from_millis(20);
            });
            assert!(tested.found.is_empty(), "{template}: {:?}", tested.found);
            let end = tested.run(JSON, "{}");
            let detail = end.property("ERROR_DETAIL").unwrap_or_default();
            assert!(end.fault().is_some() && detail.contains(part), "{template}: {detail}");
        }
        // What ends is fine, also where it calls itself.
        let mut end = fill(
            "json",
            "<#macro m n><#if n gt 0>${n}<@m n - 1/></#if></#macro>[\"<@m 5/>\", <#list 1..3 as i>${i}<#sep>,</#list>]",
            JSON,
            "{}",
        );
        assert_eq!(end.payload(), r#"["54321", 1,2,3]"#);
        let short = "[${(1..3)?map(x -> x * 2)?join(',')}, ${[5,6,7,8][1..2]?join(',')}, ${(2..*2)?join(',')}, \"${'abcdef'[1..<3]}${'abcdef'[4..]}\", \
            \"${'7'?left_pad(3, '0')}\", <#list (1..(1..2)?size) as i>${i}<#sep>,</#list>]";
        let mut end = fill("json", short, JSON, "{}");
        assert_eq!(end.payload(), r#"[2,4,6, 6,7, 2,3, "bcef", "007", 1,2]"#);
    }

    #[test]
    fn only_the_tags_of_the_language_are_tags() {
        let template = "[\"<list><items><comment><case><return><compress>[#if x]</list>\", \"${payload[\"//item[2]/q\"]}\"]";
        let mut end = fill("json", template, XML, "<o><item><q>1</q></item><item><q>2</q></item></o>");
        assert_eq!(
            end.payload(),
            "[\"<list><items><comment><case><return><compress>[#if x]</list>\", \"2\"]"
        );
    }

    #[test]
    fn templates_of_keys_are_found() {
        for key in ["k", "{concat('k', '')}"] {
            let text = format!(
                "<payloadFactory media-type='json' template-type='freemarker'><format key=\"{key}\"/></payloadFactory>\
                <!--top--><localEntry key='k'><![CDATA[{{\"v\":${{payload.v}}}}]]></localEntry>"
            );
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert_eq!(tested.run(JSON, r#"{"v":3}"#).payload(), r#"{"v":3}"#, "{key} {:?}", tested.found);
        }
    }
}
