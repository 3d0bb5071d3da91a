//! `script`: runs JavaScript on the message.
//!
//! The script is checked when the configuration loads (one that a dynamic key names: when it is first used) and compiled
//! once per worker. What it can do with the message is in `script/host.rs`; the engine and its limits are the room `script`.

mod host;

pub(crate) use host::run;

use crate::entry_cache::{EntryCache, warn_missing};
use crate::written::Written;
use config::Element;
use diagnostics::{Diagnostic, Severity, Span};
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Expression, Family, Fault, Flow, Inside,
    KeyValue, Mediator, Moves, Need, NotDone, Page, Step, Unsupported, Values, lock, no_thread,
};
use host::set_body;
use message::Value;
use script::{Argument, Failure, Limits, Reads, Returned, Script};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// `<script language="js" [key="KEY" [function="f"]] [target="body|variable|none" [target-variable="v"]]>…</script>`
pub const DEFINITION: Definition = Definition {
    name: "script",
    summary: "Runs JavaScript on the message; a script whose value is `false` ends the flow.",
    attributes: &[
        Attribute::required(
            "language",
            Values::Text,
            "js, javascript, rhinoJs, nashornJs or graalJs: all are JavaScript",
        ),
        Attribute::optional(
            "key",
            Values::Key,
            "the entry or registry resource with the script; absent: it stands inside",
        ),
        Attribute::optional("function", Values::Text, "the function of that script that is called with `mc`")
            .or("mediate"),
        Attribute::optional(
            "target",
            Values::OneOf(&["body", "variable", "none"]),
            "where the value of the function goes",
        ),
        Attribute::optional("target-variable", Values::Text, "the variable that gets it"),
    ],
    children: Children::Elements(&["include", "inputs", "text()"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Extension,
    semantics: "The script has the message as `mc`; [Scripts](../scripts.md) lists its methods, and describes XML in scripts. All language names for JavaScript mean
the same built-in engine; a script in another language faults. The Java classes that scripts use most [are available](../scripts.md#classes-of-java); any
other is a fault, with a warning when the configuration loads. A sleeping script holds a separate thread, and ends if its client is gone; at most 256 sleep at a
time, beyond that the client gets 503.

An inline script runs as a whole, and its value is that of its last expression. Of a script with a `key` (a local entry or registry resource), the
`function` is called with `mc` and the arguments of `inputs`. Scripts that `include` names are loaded first, in order. The value `false` ends the
flow; any other value does not. With `target` the value of the function becomes the body, or a variable, instead.

A script is checked when the configuration loads; one with a dynamic key when it is first used, and again when its entry has changed. The next message
does not see changes of global names. A script with loops, functions of its own or regular
expressions runs on a [compute thread](../settings.md#limits); time, memory and stack are limited.",
    inside: &[
        Inside::new(
            "include*",
            "a script that is loaded before",
            &[Attribute::required("key", Values::Text, "the entry or registry resource")],
        ),
        Inside::new("inputs?", "arguments of the function, after `mc`", &[]),
        Inside::new(
            "inputs/argument*",
            "an argument",
            &[
                Attribute::optional("name", Values::Text, "without effect; the order counts"),
                Attribute::optional("type", Values::Text, "string, number (or integer, long, double, …), boolean, json")
                    .or("string"),
                Attribute::optional("value", Values::Text, "the value; wins over `expression`"),
                Attribute::optional("expression", Values::Expression, "what gives the value; null if it gives nothing"),
            ],
        ),
    ],
    needs: &[
        (Need::Headers, "the script touches properties and headers only"),
        (Need::Replaces, "the script sets the payload and does not read it"),
        (Need::Whole, "the script or an argument reads the payload, or its key is dynamic"),
    ],
    refused: &[
        ("<script language=\"groovy\">true</script>", "`groovy` is not executable here"),
        ("<script language=\"js\">var a = ;</script>", "SyntaxError"),
        ("<script language=\"js\">new java.io.File('a')</script>", "the Java class `java.io.File` is not available here"),
        ("<script language=\"js\" function=\"f\">1</script>", "`function` has no meaning here"),
        ("<script language=\"js\" key=\"none\"/>", "there is no script `none`"),
        ("<script language=\"js\" key=\"k\" target=\"variable\"/>", "needs `target-variable`"),
    ],
    faults: &[
        (
            "0",
            "the script throws, runs into a limit or cannot be found, or an argument is not of its type. The message is WSO2's; \
             `ERROR_DETAIL` has the exception and its line",
        ),
        (
            "601000",
            "an argument is taken of the body, and it is not what its content type says, or larger than a flow may hold",
        ),
    ],
};

/// Languages that are JavaScript, in lower case.
const JAVASCRIPT: &[&str] =
    &["js", "javascript", "ecmascript", "rhino", "rhinojs", "nashorn", "nashornjs", "graaljs", "graal.js"];

struct ScriptMediator {
    source: Source,
    function: Option<Arc<str>>,
    language: Arc<str>,
    arguments: Vec<ScriptArgument>,
    target: Target,
    limits: Limits,
    /// Where the text stands, where it stands inside.
    inside: Option<Written>,
}

enum Source {
    Fixed(Arc<Script>),
    /// The key, those of the includes, and what was checked.
    Keyed {
        key: KeyValue,
        includes: Vec<Arc<str>>,
        scripts: Checked,
    },
}

type Checked = EntryCache<Arc<str>, Vec<Arc<[u8]>>, Script>;

/// `target`: where what comes out of a script goes.
pub(crate) enum Target {
    /// Nothing is said.
    None,
    /// It becomes the payload.
    Body,
    /// The variable of `target-variable`.
    Variable(Arc<str>),
}

struct ScriptArgument {
    value: Result<Argument, Expression>,
    kind: String,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let language = element.attribute("language")?;
    if !JAVASCRIPT.contains(&language.value.trim().to_ascii_lowercase().as_str()) {
        let message = format!("the language `{}` is not executable here", language.value.trim());
        compiler.diagnostics.push(
            Diagnostic::warning("unsupported-language", format!("{message}: messages that come here fault"))
                .at(language.value_span, "expected `js`, `rhinoJs` or `nashornJs`")
                .help("write the script in JavaScript: `mc` has the same methods"),
        );
        return Some(Box::new(Unsupported::new(message)));
    }
    if let (Some(function), None) = (element.attribute("function"), element.attribute("key")) {
        compiler.error(
            "bad-value",
            "`function` has no meaning here",
            function.value_span,
            "it names a function of the script behind `key`; a script that stands inside runs as a whole",
        );
        return None;
    }
    let arguments = arguments(element, compiler)?;
    let target = Target::compile(element, compiler)?;
    let (includes, texts) = match includes(element, compiler) {
        Ok(included) => included,
        Err(instead) => return instead,
    };
    let (source, function, inside) = match element.attribute("key") {
        None => {
            let text = Written::of(element);
            let script = inline(&text, element, &includes, texts, compiler)?;
            (Source::Fixed(Arc::new(script)), None, Some(text))
        }
        Some(_) => {
            let function = Arc::<str>::from(element.attr("function").unwrap_or("mediate").trim());
            (behind_key(&function, element, includes, texts, compiler)?, Some(function), None)
        }
    };
    let (language, limits) = (Arc::from(language.value.trim()), limits(compiler));
    Some(Box::new(ScriptMediator { source, function, language, arguments, target, limits, inside }))
}

/// The keys and texts of what is included; else what stands in the place of the script.
fn includes(
    element: &Element,
    compiler: &mut Compiler<'_>,
) -> Result<(Vec<Arc<str>>, Vec<String>), Compiled> {
    let (mut keys, mut texts) = (Vec::new(), Vec::new());
    for include in element.children_named("include") {
        let Some(key) = include.attr("key") else {
            let place = include.start_tag();
            compiler.error("missing-attribute", "`include` needs a `key`", place, "the script to load first");
            return Err(None);
        };
        let Some(entry) = compiler.entry(key) else {
            if compiler.is_not_fetched(key) {
                return Err(crate::failing::nothing());
            }
            let message = format!("there is no script `{key}`");
            let place = include.value_span("key");
            return Err(crate::failing::failing(
                "unknown-entry",
                message,
                place,
                "it is to be included",
                compiler,
            ));
        };
        keys.push(Arc::from(key));
        texts.push(text_of(&entry));
    }
    Ok((keys, texts))
}

/// The script that stands inside.
fn inline(
    text: &Written,
    element: &Element,
    includes: &[Arc<str>],
    mut texts: Vec<String>,
    compiler: &mut Compiler<'_>,
) -> Option<Script> {
    texts.push(text.value.clone());
    check(&texts, None)
        .map_err(|failure| {
            let place_inside = failure.place.filter(|place| place.source + 1 == texts.len());
            let span = place_inside.and_then(|place| text.span_of(place.line, place.column));
            let name = name_of(includes, &failure, "the script");
            report(Severity::Error, &failure, span.unwrap_or(element.start_tag()), &name, compiler);
        })
        .ok()
        .inspect(|script| {
            let last = texts.len();
            let span_of = |place: script::Place| {
                (place.source + 1 == last).then(|| text.span_of(place.line, place.column)).flatten()
            };
            let name = |place: script::Place| includes.get(place.source).map_or("the script", |key| &**key);
            warn_of_missing(script, span_of, element.start_tag(), name, compiler);
        })
}

/// Names the classes of Java and what of E4X is not here, and what is doubtful: where they are written, or else at `element` with the name of their text.
fn warn_of_missing<'n>(
    script: &Script,
    span_of: impl Fn(script::Place) -> Option<Span>,
    element: Span,
    name_of: impl Fn(script::Place) -> &'n str,
    compiler: &mut Compiler<'_>,
) {
    let written = |place: script::Place| match span_of(place) {
        Some(span) => (span, "what uses it is a fault".to_owned()),
        None => {
            let (name, line, column) = (name_of(place), place.line, place.column);
            (element, format!("in {name}, line {line}, column {column}: what uses it is a fault"))
        }
    };
    for refused in script.refused() {
        let (span, label) = refused.place.map_or((element, String::new()), written);
        compiler.diagnostics.push(
            Diagnostic::warning("bad-script", refused.message.clone()).at(span, label).help(refused.help),
        );
    }
    for doubt in script.doubts() {
        let span = doubt.place.and_then(&span_of).unwrap_or(element);
        let found = Diagnostic::warning("doubtful-script", doubt.message.clone());
        compiler.diagnostics.push(found.at(span, "it runs all the same").help(doubt.help));
    }
    for &(place, ref class) in script.missing_classes() {
        let (span, label) = written(place);
        let classes = match class.strip_suffix(".*") {
            Some(package) => format!("the Java package `{package}`"),
            None => format!("the Java class `{class}`"),
        };
        compiler.diagnostics.push(
            Diagnostic::warning("java-class", format!("{classes} is not available here"))
                .at(span, label)
                .help("docs/scripts.md has those that are here"),
        );
    }
}

fn behind_key(
    function: &str,
    element: &Element,
    includes: Vec<Arc<str>>,
    mut texts: Vec<String>,
    compiler: &mut Compiler<'_>,
) -> Option<Source> {
    let key = compiler.key_value(element, "key")?;
    let place = element.value_span("key");
    if let Some(name) = key.literal() {
        let Some(entry) = compiler.entry(name) else {
            warn_missing("script", name, place, compiler);
            return Some(Source::Keyed { key, includes, scripts: EntryCache::default() });
        };
        texts.push(text_of(&entry));
        match check(&texts, Some(function)) {
            Ok(script) => {
                let name_of = |at: script::Place| includes.get(at.source).map_or(name, |key| &**key);
                warn_of_missing(&script, |_| None, place, name_of, compiler);
                return Some(Source::Fixed(Arc::new(script)));
            }
            // As in WSO2 that costs the messages that come here, not the artifact.
            Err(failure) => {
                let name = name_of(&includes, &failure, name);
                report(Severity::Warning, &failure, place, &name, compiler);
            }
        }
    }
    Some(Source::Keyed { key, includes, scripts: EntryCache::default() })
}

fn check(texts: &[String], function: Option<&str>) -> Result<Script, Failure> {
    Script::compile(&texts.iter().map(String::as_str).collect::<Vec<_>>(), function)
}

/// The script in an entry: its text, or that of the element which wraps it.
fn text_of(entry: &flow::plan::Entry) -> String {
    match &entry.value {
        Value::Xml(value) => value.string_value(),
        _ => String::from_utf8_lossy(&entry.bytes).into_owned(),
    }
}

/// The name of the text that a failure is in.
fn name_of(includes: &[Arc<str>], failure: &Failure, of_script: &str) -> String {
    let included = failure.place.and_then(|place| includes.get(place.source));
    included.map_or_else(|| of_script.to_owned(), |key| key.to_string())
}

fn report(severity: Severity, failure: &Failure, span: Span, name: &str, compiler: &mut Compiler<'_>) {
    let place = failure
        .place
        .map_or_else(String::new, |place| format!(", line {}, column {}", place.line, place.column));
    let mut diagnostic = Diagnostic::new("bad-script", severity, failure.message.clone())
        .at(span, format!("in {name}{place}"));
    if !failure.help.is_empty() {
        diagnostic = diagnostic.help(failure.help);
    }
    compiler.diagnostics.push(diagnostic);
}

fn arguments(element: &Element, compiler: &mut Compiler<'_>) -> Option<Vec<ScriptArgument>> {
    let mut arguments = Vec::new();
    let Some(inputs) = element.child("inputs") else { return Some(arguments) };
    for argument in inputs.children_named("argument") {
        let kind = argument.attr("type").unwrap_or("string").trim().to_ascii_lowercase();
        let value = match (argument.attribute("value"), argument.attr("expression")) {
            (Some(value), _) => Ok(typed(&value.value, &kind).or_else(|| {
                let message = format!("`{}` is not of the type {kind}", value.value);
                compiler.error("bad-value", message, value.value_span, "the type is said by `type`");
                None
            })?),
            (None, Some(_)) => Err(compiler.expression(argument, "expression")?),
            (None, None) => {
                let place = argument.start_tag();
                compiler.error(
                    "missing-attribute",
                    "`argument` needs a value",
                    place,
                    "expected `value` or `expression`",
                );
                return None;
            }
        };
        arguments.push(ScriptArgument { value, kind });
    }
    Some(arguments)
}

/// A text as an argument of a type.
fn typed(text: &str, kind: &str) -> Option<Argument> {
    Some(match kind {
        "integer" | "int" | "long" | "double" | "float" | "number" | "short" => {
            Argument::Number(text.trim().parse().ok()?)
        }
        "boolean" => Argument::Boolean(text.trim().eq_ignore_ascii_case("true")),
        "json" | "object" | "array" => {
            serde_json::from_str::<serde_json::Value>(text).ok()?;
            Argument::Json(text.to_owned())
        }
        _ => Argument::Text(text.to_owned()),
    })
}

impl Target {
    /// Reads `target` and `target-variable`; `None` after a recorded error.
    pub(crate) fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Option<Target> {
        match element.attr("target").map(str::trim) {
            Some("body") => return Some(Target::Body),
            Some("variable") => {}
            _ => return Some(Target::None),
        }
        let name = element.attr("target-variable").map(str::trim).filter(|name| !name.is_empty());
        if name.is_none() {
            let message = "`target=\"variable\"` needs `target-variable`";
            compiler.error("missing-attribute", message, element.start_tag(), "its name");
        }
        name.map(|name| Target::Variable(Arc::from(name)))
    }
}

/// What a script may take, by the settings.
pub(crate) fn limits(compiler: &Compiler<'_>) -> Limits {
    let settings = &compiler.services.settings;
    Limits {
        time: settings.script_time,
        memory: settings.script_memory,
        stack: settings.script_stack,
        xml: compiler.services.limits.xml.clone(),
    }
}

impl Mediator for ScriptMediator {
    fn need(&self) -> Need {
        let script = match &self.source {
            Source::Fixed(script) => match script.reads() {
                Reads::Headers if matches!(self.target, Target::Body) => Need::Replaces,
                Reads::Headers => Need::Headers,
                Reads::Replaces => Need::Replaces,
                Reads::Payload => Need::Whole,
            },
            Source::Keyed { .. } => Need::Whole,
        };
        let arguments =
            self.arguments.iter().filter_map(|given| given.value.as_ref().err().map(Expression::need));
        let arguments = arguments.max().unwrap_or(Need::Nothing);
        // Replacing is no reading: with a reader beside it the whole body is needed.
        if arguments.is_whole() { Need::Whole } else { script.max(arguments) }
    }

    fn reason(&self) -> String {
        match self.need() {
            Need::Whole => "the script reads the payload".into(),
            Need::Replaces => "the script replaces the payload".into(),
            _ => "the script does not touch the body".into(),
        }
    }

    fn moves(&self) -> Moves {
        match &self.source {
            // One that sleeps has a thread of its own.
            Source::Fixed(script) if script.is_brief() || script.sleeps() => Moves::Never,
            // What it has changed cannot be undone, so it does not begin on a worker.
            Source::Fixed(_) | Source::Keyed { .. } => Moves::Always,
        }
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let call = self.call(context)?;
        let result = run(&call.script, context, &call.arguments, &self.limits)?;
        self.accept(result, &call, context)
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        match &self.source {
            Source::Fixed(script) if script.sleeps() => Step::Wait(Box::pin(self.beside(context))),
            Source::Fixed(_) | Source::Keyed { .. } => Step::Done(self.mediate(context)),
        }
    }
}

/// Scripts that may sleep at a time, each of which holds a thread; beyond, the client gets 503.
const MOST_SLEEPERS: usize = 256;

static SLEEPERS: tokio::sync::Semaphore = tokio::sync::Semaphore::const_new(MOST_SLEEPERS);

/// A script on its way, for one message.
struct Call {
    script: Arc<Script>,
    key: Option<Arc<str>>,
    arguments: Vec<Argument>,
}

impl ScriptMediator {
    /// Runs it on a thread that may sleep, until its flow is gone.
    async fn beside(&self, context: &mut Context) -> Result<Flow, Fault> {
        /// Ends the run when the one who waits for it is gone.
        struct Ends(meter::Cancel);
        impl Drop for Ends {
            fn drop(&mut self) {
                self.0.cancel();
            }
        }
        let call = self.call(context)?;
        let Ok(place) = SLEEPERS.try_acquire() else {
            let why = format!("{MOST_SLEEPERS} scripts that may sleep run already");
            return Err(Fault { status: 503, ..Fault::new(why) });
        };
        // A place from which it is taken back where no thread takes it.
        let (waiting, limits) = (Arc::new(Mutex::new(Some(context.take()))), self.limits.clone());
        let taken = Arc::clone(&waiting);
        let cancel = meter::Cancel::default();
        let _ends = Ends(cancel.clone());
        let ran = flow::on_thread(move || {
            let _place = place;
            let mut message = lock(&taken).take()?;
            // The engine has its own time, in which it does not count what it has slept.
            let script = || run(&call.script, &mut message, &call.arguments, &limits);
            let (result, _) = meter::within(Duration::MAX, Some(&cancel), script);
            Some((message, call, result))
        });
        let (message, call, result) = match ran.await {
            Ok(Some(ran)) => ran,
            Err(NotDone::NoThread) => {
                if let Some(message) = lock(&waiting).take() {
                    context.put(message);
                }
                return Err(no_thread());
            }
            Ok(None) | Err(NotDone::Panicked) => {
                return Err(Fault::new("the script engine has lost the message"));
            }
        };
        context.put(message);
        self.accept(result?, &call, context)
    }

    fn call(&self, context: &mut Context) -> Result<Call, Fault> {
        let mut arguments = Vec::with_capacity(self.arguments.len());
        for given in &self.arguments {
            arguments.push(given.evaluate(context)?);
        }
        let (key, script) = match &self.source {
            Source::Fixed(script) => (None, Arc::clone(script)),
            Source::Keyed { key, includes, scripts } => self.keyed(key, includes, scripts, context)?,
        };
        Ok(Call { script, key, arguments })
    }

    fn accept(
        &self,
        result: Result<Returned, Failure>,
        call: &Call,
        context: &mut Context,
    ) -> Result<Flow, Fault> {
        let returned = result.map_err(|failure| self.fault(&failure, call.key.as_deref()))?;
        match &self.target {
            Target::None if returned.stop => return Ok(Flow::Stop),
            Target::None => {}
            Target::Variable(name) => {
                context.variables.set(Arc::clone(name), returned.value.unwrap_or(Value::from("")));
            }
            Target::Body => set_body(returned.value, context)?,
        }
        Ok(Flow::Next)
    }
}

impl ScriptArgument {
    fn evaluate(&self, context: &mut Context) -> Result<Argument, Fault> {
        match &self.value {
            Ok(argument) => Ok(argument.clone()),
            Err(expression) => Ok(match expression.value(context)? {
                None => Argument::Null,
                Some(Value::Integer(number)) => Argument::Number(number as f64),
                Some(Value::Double(number) | Value::JavaDouble(number)) => Argument::Number(number),
                Some(Value::Boolean(is)) => Argument::Boolean(is),
                Some(Value::Json(json)) => Argument::Json(json.to_string()),
                Some(other) => {
                    let text = other.to_string();
                    typed(&text, &self.kind).ok_or_else(|| {
                        Fault::new(format!(
                            "The argument {} is not of the type {}: {text}",
                            expression.source(),
                            self.kind
                        ))
                        .at(expression.span())
                    })?
                }
            }),
        }
    }
}

impl ScriptMediator {
    /// The script behind a key, checked anew when its text has changed.
    fn keyed(
        &self,
        key: &KeyValue,
        includes: &[Arc<str>],
        scripts: &Checked,
        context: &mut Context,
    ) -> Result<(Option<Arc<str>>, Arc<Script>), Fault> {
        let key = key.resolve(context)?.unwrap_or_default();
        let mut entries = Vec::with_capacity(includes.len() + 1);
        for name in includes.iter().chain([&key]).map(|name| name.trim()) {
            entries.push(context.plan().entry(name).ok_or_else(|| {
                Fault::new(format!("Cannot find the script {name} in the registry or local entries"))
            })?);
        }
        let bytes = entries.iter().map(|entry| Arc::clone(&entry.bytes)).collect();
        let script = scripts.get_or_make(&key, bytes, |_| {
            let texts: Vec<String> = entries.iter().map(text_of).collect();
            check(&texts, self.function.as_deref()).map_err(|failure| self.fault(&failure, Some(&key)))
        })?;
        Ok((Some(key), script))
    }

    /// The fault of a script, as WSO2 words it.
    fn fault(&self, failure: &Failure, key: Option<&str>) -> Fault {
        let exception = if failure.no_function { "a NoSuchMethodException" } else { "an error" };
        let which = match (&self.function, key) {
            (None, _) => format!("inlined {} script function mediate", self.language),
            (Some(function), Some(key)) => {
                format!("external {} script : {key} function {function}", self.language)
            }
            (Some(function), None) => format!("external {} script function {function}", self.language),
        };
        let mut detail = failure.message.clone();
        if let Some(place) = failure.place {
            detail.push_str(&format!(" (line {}, column {} of the script)", place.line, place.column));
        }
        let fault = Fault::new(format!("The script engine returned {exception} executing the {which}"))
            .because(detail);
        match (&self.inside, failure.place) {
            (Some(text), Some(place)) => match text.span_of(place.line, place.column) {
                Some(span) => fault.at(span),
                None => fault,
            },
            _ => fault,
        }
    }
}

#[cfg(test)]
mod tests;
