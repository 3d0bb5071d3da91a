//! Templates in FreeMarker for `payloadFactory`: what a template may see of the message, and the engine behind it.
//!
//! The engine is a library whose templates belong to one thread: each worker parses a template when it first needs it.
//! That it parses at all is checked when the configuration loads.

mod bounded;
mod ranges;

use crate::known::Known;
use crate::written::Written;
use bounded::Bounded;
use diagnostics::Span;
use flow::{Compiler, Context, Fault, KeyValue};
use freemarker::template::{Configuration, TModel, Template, TemplateHashModel, TemplateHashModelEx};
use freemarker::value::TNumber;
use freemarker::{TemplateError, parser};
use message::Value;
use serde_json::Value as Json;
use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Most templates that a thread keeps parsed.
const MAX_PARSED: usize = 64;
/// Deepest payload that a template may walk: the engine recurses with it.
const MAX_DEPTH: usize = 100;
/// Deepest nesting of brackets in a template: its parser recurses with them.
const MAX_BRACKETS: usize = 100;

/// What filling in a template may take.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes of the result.
    bytes: usize,
    /// A template holds its worker for as long as it runs.
    time: Duration,
}

/// What is wrong with a template, or with filling it in; lines count from 1, 0: unknown.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) message: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// What a template sees.
pub(crate) enum Model {
    /// A text.
    Text(String),
    /// JSON: maps, lists and scalars.
    Json(Json),
    /// A document.
    Xml(String),
    /// Texts by name; `true`: in any case.
    Texts(Vec<(String, String)>, bool),
    /// Models by name.
    Models(Vec<(String, Model)>),
}

/// The templates of one mediator.
pub(crate) enum Templates {
    /// Known when the configuration was loaded.
    Fixed(FreeMarker),
    /// Named by an expression, or not there yet.
    Keyed { key: KeyValue, known: Known<Arc<str>, Arc<[u8]>, FreeMarker> },
}

/// A template with the names that it sees.
pub(crate) struct FreeMarker {
    id: u64,
    text: String,
    /// Members of `axis2` that the template names: many are only known by name.
    axis2: Vec<String>,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

impl FreeMarker {
    fn new(text: String) -> Result<FreeMarker, Wrong> {
        refused(&text)?;
        check(&text)?;
        let axis2 = members(&text, "axis2");
        Ok(FreeMarker { id: NEXT.fetch_add(1, Ordering::Relaxed), text, axis2 })
    }

    /// Whether the template reads the payload.
    pub(crate) fn reads_payload(&self) -> bool {
        self.text.contains("payload")
    }

    /// The result for a message; `arguments` are called `arg1`, `arg2`, ….
    pub(crate) fn fill(&self, arguments: Vec<Model>, context: &mut Context) -> Result<String, Fault> {
        let limits = context.services().limits.clone();
        let mut root = Vec::new();
        if self.reads_payload() {
            root.push(("payload", payload(context)?));
        }
        if self.text.contains("args") {
            let named =
                arguments.into_iter().enumerate().map(|(index, model)| (format!("arg{}", index + 1), model));
            root.push(("args", Model::Models(named.collect())));
        }
        if self.text.contains("ctx") {
            let all = context.properties.iter().map(|(name, value)| (name.to_owned(), value.to_string()));
            root.push(("ctx", Model::Texts(all.collect(), false)));
        }
        if self.text.contains("axis2") {
            let named =
                self.axis2.iter().filter_map(|name| Some((name.clone(), context.axis2(name)?.to_string())));
            root.push(("axis2", Model::Texts(named.collect(), false)));
        }
        if self.text.contains("trp") {
            let all = context
                .headers
                .iter()
                .map(|(name, value)| (name.to_owned(), flow::library::header_text(value)));
            root.push(("trp", Model::Texts(all.collect(), true)));
        }
        if self.text.contains("vars") {
            let all = context.variables.iter().map(|(name, value)| (name.to_owned(), Model::of(value)));
            root.push(("vars", Model::Models(all.collect())));
        }
        let limits = Limits { bytes: limits.held, time: context.services().settings.script_time };
        render(self.id, &self.text, root, limits).map_err(|wrong| {
            let place = if wrong.line > 0 {
                format!(" (line {}, column {})", wrong.line, wrong.column)
            } else {
                String::new()
            };
            Fault::new("Error parsing the FreeMarker template").because(format!("{}{place}", wrong.message))
        })
    }
}

impl Templates {
    /// A template that stands inside, or behind a key; `None` after a recorded error.
    pub(crate) fn compile(
        format: &config::Element,
        text: String,
        compiler: &mut Compiler<'_>,
    ) -> Option<Templates> {
        let report = |wrong: Wrong, span: Span, compiler: &mut Compiler<'_>| {
            let line = if wrong.line > 0 {
                format!("line {}, column {} of the template", wrong.line, wrong.column)
            } else {
                "in the template".into()
            };
            compiler.error("bad-template", wrong.message, span, line);
        };
        let Some(attribute) = format.attribute("key") else {
            let written = Written::of(format);
            let as_written = written.value == text;
            return match FreeMarker::new(text) {
                Ok(template) => Some(Templates::Fixed(template)),
                Err(wrong) => {
                    let exact = as_written.then(|| written.span_of(wrong.line, wrong.column)).flatten();
                    report(wrong, exact.unwrap_or(format.text_span()), compiler);
                    None
                }
            };
        };
        let key = compiler.key_value(format, "key")?;
        match key.literal().and_then(|key| compiler.entry(key)) {
            None => Some(Templates::Keyed { key, known: Known::default() }),
            Some(entry) => match FreeMarker::new(String::from_utf8_lossy(&entry.bytes).into_owned()) {
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
        let (key, known) = match self {
            Templates::Fixed(template) => return template.fill(arguments, context),
            Templates::Keyed { key, known } => (key.resolve(context)?.unwrap_or_default(), known),
        };
        let entry = context.plan().entry(key.trim());
        let entry = entry.ok_or_else(|| {
            Fault::new(format!("Key {} not found for the format of payloadFactory", key.trim()))
        })?;
        let template = known.get_or_make(&key, entry.bytes, |bytes| {
            FreeMarker::new(String::from_utf8_lossy(bytes).into_owned())
                .map_err(|wrong| Fault::new("Error parsing the FreeMarker template").because(wrong.message))
        })?;
        template.fill(arguments, context)
    }
}

/// What a template must not do here: parse templates out of messages, make objects.
fn refused(text: &str) -> Result<(), Wrong> {
    let wrong = |at: usize, message: String| {
        let before = &text[..at];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Wrong {
            message,
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    };
    for built_in in ["?eval", "?interpret", "?new", "?api"] {
        for (at, _) in text.match_indices(built_in) {
            if !text[at + built_in.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_') {
                return Err(wrong(
                    at,
                    format!(
                        "`{built_in}` is not executable here: a template is no place for code of a message"
                    ),
                ));
            }
        }
    }
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_BRACKETS {
            return Err(wrong(at, format!("brackets nest deeper than {MAX_BRACKETS}")));
        }
    }
    if text.matches("<#").count() > 10_000 {
        return Err(wrong(0, "the template has more than 10,000 directives".into()));
    }
    Ok(())
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

fn payload(context: &mut Context) -> Result<Model, Fault> {
    let limits = context.services().limits.clone();
    if let Some(json) = context.payload.json()? {
        if deep(json, MAX_DEPTH) {
            return Err(Fault::new(format!(
                "the payload nests deeper than the {MAX_DEPTH} levels a template may walk"
            )));
        }
        return Ok(Model::Json(json.clone()));
    }
    let envelope = context.payload.envelope(&limits)?;
    let Some(payload) = envelope.payload() else { return Ok(Model::Text(String::new())) };
    let document = &envelope.document;
    if document.namespace(payload) == message::envelope::PAYLOAD && document.local(payload) == "text" {
        return Ok(Model::Text(document.string_value(payload).into_owned()));
    }
    if deep_element(document, payload, MAX_DEPTH) {
        return Err(Fault::new(format!(
            "the payload nests deeper than the {MAX_DEPTH} levels a template may walk"
        )));
    }
    Ok(Model::Xml(xml::to_string(document, payload)))
}

/// Whether elements nest deeper than `limit` below `top`.
fn deep_element(document: &xml::Document, top: xml::NodeId, limit: usize) -> bool {
    let (mut node, mut depth) = (top, 0);
    loop {
        if let Some(child) = document.first_child(node) {
            (node, depth) = (child, depth + 1);
            if depth > limit {
                return true;
            }
            continue;
        }
        while node != top && document.next_sibling(node).is_none() {
            let Some(parent) = document.parent(node) else { return false };
            (node, depth) = (parent, depth - 1);
        }
        match document.next_sibling(node) {
            Some(next) if node != top => node = next,
            _ => return false,
        }
    }
}

/// Whether a value nests deeper than `left`.
fn deep(value: &Json, left: usize) -> bool {
    match value {
        Json::Array(items) => left == 0 || items.iter().any(|item| deep(item, left - 1)),
        Json::Object(members) => left == 0 || members.values().any(|member| deep(member, left - 1)),
        _ => false,
    }
}

impl Model {
    /// Of a property or variable.
    pub(crate) fn of(value: &Value) -> Model {
        match value {
            Value::Json(json) if !deep(json, MAX_DEPTH) => Model::Json((**json).clone()),
            Value::Integer(number) => Model::Json(Json::from(*number)),
            Value::Double(number) => Model::Json(Json::from(*number)),
            Value::Boolean(is) => Model::Json(Json::from(*is)),
            Value::Xml(xml) if xml.nodes.len() == 1 => Model::Xml(xml.to_xml()),
            other => Model::Text(other.to_string()),
        }
    }
}

thread_local! {
    static PARSED: RefCell<HashMap<u64, Rc<(Template, Bounded)>>> = RefCell::default();
    static CONFIGURATION: Rc<Configuration> = Rc::new(Configuration::new());
}

fn parse(text: &str) -> Result<Template, Wrong> {
    caught(|| CONFIGURATION.with(|configuration| parser::parse(configuration, "template", text)))
}

/// Runs the engine; it is young, and its panics are errors like others.
fn caught<T>(run: impl FnOnce() -> Result<T, TemplateError>) -> Result<T, Wrong> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(Wrong::from),
        Err(_) => Err(Wrong { message: "the template engine failed".into(), line: 0, column: 0 }),
    }
}

/// Checks a template.
fn check(text: &str) -> Result<(), Wrong> {
    // First as it is written, so that what is wrong has its place.
    parse(text)?;
    parse(&Bounded::of(text).text).map(drop)
}

/// Fills a template in, within the limits. `id` is one text's for as long as the process lives.
fn render(id: u64, text: &str, root: Vec<(&'static str, Model)>, limits: Limits) -> Result<String, Wrong> {
    let known = PARSED.with_borrow(|parsed| parsed.get(&id).cloned());
    let template = match known {
        Some(template) => template,
        None => {
            let bounded = Bounded::of(text);
            let mut parsed = parse(&bounded.text)?;
            ranges::bind(&mut parsed);
            let template = Rc::new((parsed, bounded));
            PARSED.with_borrow_mut(|parsed| {
                if parsed.len() >= MAX_PARSED {
                    parsed.clear();
                }
                parsed.insert(id, Rc::clone(&template));
            });
            template
        }
    };
    let (template, bounded) = &*template;
    let mut out = Limited { bytes: Vec::new(), limit: limits.bytes };
    caught(|| {
        let mut models = Vec::with_capacity(root.len() + 1);
        for (name, model) in root {
            models.push((name.to_owned(), to_engine(model)?));
        }
        models.push(bounded::question(limits.time));
        models.extend(ranges::methods(limits.time));
        template.process(hash(models, false), &mut out)
    })
    .map_err(|wrong| Wrong { column: bounded.column(wrong.line, wrong.column), ..wrong })?;
    String::from_utf8(out.bytes).map_err(|_| Wrong {
        message: "the result is not UTF-8".into(),
        line: 0,
        column: 0,
    })
}

/// A result that ends where the limit is.
struct Limited {
    bytes: Vec<u8>,
    limit: usize,
}

impl std::io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(std::io::Error::other(format!(
                "the result is larger than the {} bytes a flow may hold",
                self.limit
            )));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn to_engine(model: Model) -> Result<TModel, TemplateError> {
    Ok(match model {
        Model::Text(text) => TModel::from_scalar(text),
        Model::Json(json) => of_json(json),
        Model::Xml(text) => TModel::from_xml_str(&text)?,
        Model::Texts(texts, any_case) => {
            hash(texts.into_iter().map(|(name, text)| (name, TModel::from_scalar(text))).collect(), any_case)
        }
        Model::Models(models) => {
            let mut named = Vec::with_capacity(models.len());
            for (name, model) in models {
                named.push((name, to_engine(model)?));
            }
            hash(named, false)
        }
    })
}

/// JSON; the depth was checked. Null is a missing value, as in Java's maps.
fn of_json(json: Json) -> TModel {
    match json {
        Json::Null => TModel::nothing(),
        Json::Bool(is) => TModel::from_boolean(is),
        Json::String(text) => TModel::from_scalar(text),
        Json::Number(number) => TModel::from_number(match number.as_i64() {
            Some(whole) => TNumber::from_i64(whole),
            None => TNumber::Double(number.as_f64().unwrap_or(f64::NAN)),
        }),
        Json::Array(items) => TModel::from_sequence(items.into_iter().map(of_json).collect()),
        Json::Object(members) => hash(
            members
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name, of_json(value)))
                .collect(),
            false,
        ),
    }
}

/// Models by name, in order.
struct Named {
    models: Vec<(String, TModel)>,
    /// By name, where there are many.
    index: HashMap<String, usize>,
    any_case: bool,
}

/// Above this many members a hash is indexed.
const FEW: usize = 16;

fn hash(models: Vec<(String, TModel)>, any_case: bool) -> TModel {
    let index = match models.len() > FEW && !any_case {
        true => models.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect(),
        false => HashMap::new(),
    };
    let named = Rc::new(Named { models, index, any_case });
    let mut model = TModel::from_hash(Default::default());
    model.hash = Some(named.clone());
    model.hash_ex = Some(named);
    model
}

impl TemplateHashModel for Named {
    fn get(&self, key: &str) -> Result<Option<TModel>, TemplateError> {
        if !self.index.is_empty() {
            return Ok(self.index.get(key).map(|&at| self.models[at].1.clone()));
        }
        let is = |name: &String| if self.any_case { name.eq_ignore_ascii_case(key) } else { name == key };
        Ok(self.models.iter().find(|(name, _)| is(name)).map(|(_, model)| model.clone()))
    }

    fn is_empty(&self) -> Result<bool, TemplateError> {
        Ok(self.models.is_empty())
    }
}

impl TemplateHashModelEx for Named {
    fn size(&self) -> Result<usize, TemplateError> {
        Ok(self.models.len())
    }

    fn keys(&self) -> Result<Vec<String>, TemplateError> {
        Ok(self.models.iter().map(|(name, _)| name.clone()).collect())
    }
}

impl From<TemplateError> for Wrong {
    fn from(error: TemplateError) -> Wrong {
        match error {
            TemplateError::Parse { line, col, message, .. } => {
                Wrong { message: one_line(&message), line: line as usize, column: col as usize }
            }
            TemplateError::InvalidReference { ref ctx, .. } | TemplateError::TypeMismatch { ref ctx, .. } => {
                let (line, column) = (ctx.span.line as usize, ctx.span.col as usize);
                Wrong { message: one_line(&error.to_string()), line, column }
            }
            other => Wrong { message: one_line(&other.to_string()), line: 0, column: 0 },
        }
    }
}

/// The message without the tips and the stack behind it.
fn one_line(text: &str) -> String {
    let end = text.find("\n----").unwrap_or(text.len());
    let lines: Vec<&str> = text[..end].lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" ")
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
            ("${payload}", JSON, deep.as_str(), "nests deeper"),
            ("${payload}", XML, nested.as_str(), "nests deeper"),
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
            ("[#macro m][@m/][/#macro][@m/]", "call depth"),
            ("<#list 1..100000000000 as i></#list>", "longer than 20 ms"),
            ("<#list 1..100000 as i><#list 1..100000 as j></#list></#list>", "longer than 20 ms"),
            ("<#list 1..100000000000><#items as i></#items></#list>", "longer than 20 ms"),
            ("<#list 1.. as i></#list>", "longer than 20 ms"),
            ("${(1..100000000000)?map(x -> x)?size}", "a range of 99999999999 items is too long"),
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
