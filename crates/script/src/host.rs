//! What a script can do with its message: the interface that the bus implements, and the functions through which the
//! prelude reaches it.
//!
//! While a script runs, its message and trees lie in a slot of the thread; the functions find them there, so that they
//! are made once per engine and not once per message.

use crate::trees::{Insertion, List, Selected, Trees};
use message::regex::{Pattern, Search};
use message::{Value, XmlValue};
use rquickjs::function::Opt;
use rquickjs::{Array, Ctx, Exception, Function, IntoJs, Object, Result, Value as Js};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

/// The message of a script. An error is thrown in the script, as an `Error` with this text.
pub trait Host {
    /// A property; the scope as written in the script.
    ///
    /// # Errors
    /// There is no such scope.
    fn property(&mut self, scope: &str, name: &str) -> std::result::Result<Option<Value>, String>;

    /// Sets a property, or removes it (`None`).
    ///
    /// # Errors
    /// There is no such scope, or it cannot be written.
    fn set_property(
        &mut self,
        scope: &str,
        name: &str,
        value: Option<Value>,
    ) -> std::result::Result<(), String>;

    /// The names of the properties (default scope) or variables (`variable`).
    fn names(&mut self, scope: &str) -> Vec<String>;

    /// The first element of the body; `None` if there is none.
    ///
    /// # Errors
    /// The body is not what its type says.
    fn payload(&mut self) -> std::result::Result<Option<XmlValue>, String>;

    /// Replaces the payload by an element.
    ///
    /// # Errors
    /// The body is not what its type says.
    fn set_payload(
        &mut self,
        document: &xml::Document,
        element: xml::NodeId,
    ) -> std::result::Result<(), String>;

    /// The text of a JSON payload; `None` if the payload is something else.
    ///
    /// # Errors
    /// It cannot be read.
    fn json(&mut self) -> std::result::Result<Option<String>, String>;

    /// Makes a JSON text the payload; empty: none. `sound`: the engine has written it, it is JSON.
    ///
    /// # Errors
    /// It is not JSON.
    fn set_json(&mut self, text: String, sound: bool) -> std::result::Result<(), String>;

    /// The whole envelope.
    ///
    /// # Errors
    /// The body is not what its type says.
    fn envelope(&mut self) -> std::result::Result<XmlValue, String>;

    /// Replaces the envelope.
    ///
    /// # Errors
    /// It is none.
    fn set_envelope(
        &mut self,
        document: &xml::Document,
        element: xml::NodeId,
    ) -> std::result::Result<(), String>;

    /// Appends a header block.
    ///
    /// # Errors
    /// The body is not what its type says.
    fn add_header(
        &mut self,
        must_understand: bool,
        document: &xml::Document,
        element: xml::NodeId,
    ) -> std::result::Result<(), String>;

    /// A fact of the message that is a text: `To`, `From`, `ReplyTo`, `FaultTo`, `WSAAction`, `SoapAction`, `MessageID`,
    /// `RelatesTo`.
    fn text(&mut self, what: &str) -> Option<String>;

    /// Sets one of the facts of [`Host::text`].
    fn set_text(&mut self, what: &str, text: Option<String>);

    /// A fact that is true or false: `Response`, `FaultResponse`, `DoingPOX`, `DoingGET`, `DoingMTOM`, `DoingSWA`, `SOAP11`.
    fn flag(&mut self, what: &str) -> bool;

    /// Sets one of the facts of [`Host::flag`].
    fn set_flag(&mut self, what: &str, value: bool);

    /// A local entry or registry resource.
    fn entry(&mut self, key: &str) -> Option<Value>;

    /// Writes a line to the log: `trace`, `debug`, `info`, `warn`, `error`.
    fn log(&mut self, level: &str, text: &str);

    /// What classes of Java need of the bus: `format` and `parse` of dates, `digest`, `hmac`, `uuid`, `random`, `encode` and
    /// `decode` of character sets; bytes as Base64.
    ///
    /// # Errors
    /// There is no such thing, or the arguments do not fit.
    fn java(&mut self, what: &str, arguments: &[String]) -> std::result::Result<String, String> {
        let _ = arguments;
        Err(format!("{what} is not available here"))
    }

    /// Itself, for who handed it in to take the message out again.
    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any>;
}

/// What lies in the slot.
struct Running {
    host: Box<dyn Host>,
    trees: Trees,
    /// The envelope that the script has been given to change, as `mc.getEnvelope()` gives it.
    envelope: Option<List>,
}

impl Running {
    /// What the script has changed in the envelope becomes the message.
    fn settle(&mut self) -> std::result::Result<(), String> {
        if self.trees.take_changed()
            && let Some(list) = self.envelope
        {
            let (document, element) =
                self.trees.element(list).ok_or("the envelope must be an XML element")?;
            self.host.set_envelope(document, element)?;
        }
        Ok(())
    }

    /// The envelope of the message as it is now; what is changed in it is changed in the message.
    fn envelope(&mut self) -> std::result::Result<List, String> {
        if let Some(list) = self.envelope {
            return Ok(list);
        }
        let list = self.trees.of_value(&self.host.envelope()?)?;
        self.trees.watch(Some(list));
        self.envelope = Some(list);
        Ok(list)
    }

    /// The message has another envelope than the one that the script was given.
    fn replaced(&mut self) {
        self.envelope = None;
        self.trees.watch(None);
    }
}

thread_local! {
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
}

/// Lays the message into the slot for as long as `run` runs.
pub(crate) fn with_host<T>(
    host: Box<dyn Host>,
    limits: xml::Limits,
    run: impl FnOnce() -> T,
) -> (Option<Box<dyn Host>>, T) {
    RUNNING.with_borrow_mut(|slot| *slot = Some(Running { host, trees: Trees::new(limits), envelope: None }));
    let result = run();
    let host = RUNNING.with_borrow_mut(Option::take).map(|running| running.host);
    (host, result)
}

/// Takes over what the script has changed in the envelope.
pub(crate) fn settle() -> std::result::Result<(), String> {
    RUNNING.with_borrow_mut(|slot| slot.as_mut().map_or(Ok(()), Running::settle))
}

/// Does something with the message, turning an error into an exception.
fn with<'js, T>(
    ctx: &Ctx<'js>,
    act: impl FnOnce(&mut dyn Host, &mut Trees) -> std::result::Result<T, String>,
) -> Result<T> {
    with_running(ctx, |running| act(running.host.as_mut(), &mut running.trees))
}

fn with_running<'js, T>(
    ctx: &Ctx<'js>,
    act: impl FnOnce(&mut Running) -> std::result::Result<T, String>,
) -> Result<T> {
    let result = RUNNING.with_borrow_mut(|slot| match slot {
        Some(running) => act(running),
        None => Err("there is no message here".to_owned()),
    });
    result.map_err(|why| Exception::throw_message(ctx, &why))
}

/// Reads or replaces what the message holds, after what the script has changed in the envelope.
fn with_content<'js, T>(
    ctx: &Ctx<'js>,
    replaces: bool,
    act: impl FnOnce(&mut dyn Host, &mut Trees) -> std::result::Result<T, String>,
) -> Result<T> {
    with_running(ctx, |running| {
        running.settle()?;
        let done = act(running.host.as_mut(), &mut running.trees)?;
        if replaces {
            running.replaced();
        }
        Ok(done)
    })
}

/// A value for the script: what is no plain value is an array of what it is (`xml`, `json`) and a list or text.
fn to_js<'js>(ctx: &Ctx<'js>, value: Option<Value>) -> Result<Js<'js>> {
    match value {
        None => Ok(Js::new_null(ctx.clone())),
        Some(Value::String(text)) => text.as_ref().into_js(ctx),
        Some(Value::Integer(number)) => match i32::try_from(number) {
            Ok(small) => small.into_js(ctx),
            Err(_) => (number as f64).into_js(ctx),
        },
        Some(Value::Double(number) | Value::JavaDouble(number)) => number.into_js(ctx),
        Some(Value::Boolean(is)) => is.into_js(ctx),
        Some(Value::Xml(value)) => list(ctx, |_, trees| trees.of_value(&value).map(Some)),
        Some(Value::Json(value)) => {
            let pair = Array::new(ctx.clone())?;
            pair.set(0, "json")?;
            pair.set(1, value.to_string())?;
            Ok(pair.into_value())
        }
    }
}

fn list<'js>(
    ctx: &Ctx<'js>,
    find: impl FnOnce(&mut dyn Host, &mut Trees) -> std::result::Result<Option<List>, String>,
) -> Result<Js<'js>> {
    pair(ctx, with_content(ctx, false, find)?)
}

fn pair<'js>(ctx: &Ctx<'js>, list: Option<List>) -> Result<Js<'js>> {
    let Some(list) = list else { return Ok(Js::new_null(ctx.clone())) };
    let pair = Array::new(ctx.clone())?;
    pair.set(0, "xml")?;
    pair.set(1, list)?;
    Ok(pair.into_value())
}

/// A value of the script, as a property keeps it: whole numbers are integers. `None`: null, undefined.
pub(crate) fn of_js(value: &Js<'_>) -> Option<Value> {
    if let Some(is) = value.as_bool() {
        return Some(Value::Boolean(is));
    }
    if let Some(number) = value.as_int() {
        return Some(Value::Integer(number.into()));
    }
    if let Some(number) = value.as_float() {
        let whole = number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0;
        return Some(if whole { Value::Integer(number as i64) } else { Value::Double(number) });
    }
    let text = value.as_string()?.to_string().ok()?;
    Some(Value::from(text))
}

/// The kind (`text`, `xml`, `json`) and content that the prelude makes of a value which is no plain one.
fn of_pair(trees: &Trees, kind: &str, content: &Js<'_>) -> std::result::Result<Option<Value>, String> {
    match kind {
        "xml" => {
            let list = content.as_int().unwrap_or(-1) as List;
            Ok(Some(trees.value(list).map_or(Value::from(""), |value| Value::Xml(Arc::new(value)))))
        }
        "json" => {
            let text = content.as_string().and_then(|text| text.to_string().ok()).unwrap_or_default();
            let value = serde_json::from_str(&text)
                .map_err(|error| format!("the value has no JSON form: {error}"))?;
            Ok(Some(Value::Json(Arc::new(value))))
        }
        _ => Ok(of_js(content)),
    }
}

fn given<'a>(number: i32, text: &'a str) -> Insertion<'a> {
    if number < 0 { Insertion::Text(text) } else { Insertion::List(number as List) }
}

/// A regular expression of Java on a text: `matches`, `find` (the places of all matches, in units of UTF-16, as JSON), `groups` (those of
/// their groups), `names` (of its groups), `all` and `first` (the text with them replaced).
fn regex(what: &str, given: &[&str]) -> std::result::Result<String, String> {
    let (&[text, pattern], by) = given.split_first_chunk().ok_or("too few arguments")?;
    let wrong = |why: String| format!("PatternSyntaxException: {why}");
    if what == "matches" {
        let is = Pattern::compile(pattern).map_err(wrong)?.matches(text).map_err(|stop| stop.to_string())?;
        return Ok(is.to_string());
    }
    let search = Search::compile(pattern).map_err(wrong)?;
    match what {
        "groups" => groups(&search, text),
        "names" => {
            let names: Vec<Option<&str>> = search.names().collect();
            serde_json::to_string(&names).map_err(|error| error.to_string())
        }
        "all" => search.replace_all(text, by.first().unwrap_or(&"")),
        "first" => search.replace_first(text, by.first().unwrap_or(&"")),
        _ => {
            let (mut units, mut at) = (0, 0);
            let mut place = |byte: usize| {
                units += text.get(at..byte).unwrap_or("").encode_utf16().count();
                at = byte;
                units
            };
            let found = search.matches(text)?;
            let places: Vec<[usize; 2]> =
                found.iter().map(|one| [place(one.start), place(one.end)]).collect();
            serde_json::to_string(&places).map_err(|error| error.to_string())
        }
    }
}

/// The places of the groups of all matches, in units of UTF-16, as JSON.
fn groups(search: &Search, text: &str) -> std::result::Result<String, String> {
    let found = search.captures(text)?;
    let ends = found.iter().flatten().flatten().flat_map(|range| [range.start, range.end]);
    let mut bytes: Vec<usize> = ends.collect();
    bytes.sort_unstable();
    bytes.dedup();
    let (mut units, mut at) = (Vec::with_capacity(bytes.len()), 0);
    for &byte in &bytes {
        let before = units.last().copied().unwrap_or(0);
        units.push(before + text.get(at..byte).unwrap_or("").encode_utf16().count());
        at = byte;
    }
    let place = |byte: usize| bytes.binary_search(&byte).ok().and_then(|at| units.get(at)).copied();
    let places: Vec<Vec<Option<[Option<usize>; 2]>>> = found
        .iter()
        .map(|groups| {
            let place_of = |range: &Range<usize>| [place(range.start), place(range.end)];
            groups.iter().map(|group| group.as_ref().map(place_of)).collect()
        })
        .collect();
    serde_json::to_string(&places).map_err(|error| error.to_string())
}

/// The functions that the prelude is given.
#[rustfmt::skip] // one line each
pub(crate) fn functions<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    macro_rules! function {
        ($name:literal, $function:expr) => {
            object.set($name, Function::new(ctx.clone(), $function)?)?;
        };
    }
    // Properties.
    function!("get", |ctx: Ctx<'js>, scope: String, name: String| {
        let value = with(&ctx, |host, _| host.property(&scope, &name))?;
        to_js(&ctx, value)
    });
    function!("set", |ctx: Ctx<'js>, scope: String, name: String, kind: String, content: Js<'js>| {
        with(&ctx, |host, trees| match of_pair(trees, &kind, &content)? {
            Some(value) => host.set_property(&scope, &name, Some(value)),
            None => Ok(()),
        })
    });
    function!("remove", |ctx: Ctx<'js>, scope: String, name: String| {
        with(&ctx, |host, _| host.set_property(&scope, &name, None))
    });
    function!("names", |ctx: Ctx<'js>, scope: String| with(&ctx, |host, _| Ok(host.names(&scope))));
    // The message.
    function!("payload", |ctx: Ctx<'js>| list(&ctx, |host, trees| {
        match host.payload()? {
            Some(value) => trees.of_value(&value).map(Some),
            None => trees.empty().map(Some),
        }
    }));
    function!("setPayload", |ctx: Ctx<'js>, list: List| with_content(&ctx, true, |host, trees| {
        let (document, element) = trees.element(list).ok_or("the payload must be an XML element")?;
        host.set_payload(document, element)
    }));
    function!("json", |ctx: Ctx<'js>| with_content(&ctx, false, |host, _| host.json()));
    function!("setJson", |ctx: Ctx<'js>, text: String, sound: bool| {
        with_content(&ctx, true, |host, _| host.set_json(text, sound))
    });
    function!("envelope", |ctx: Ctx<'js>| list(&ctx, |host, trees| {
        let envelope = host.envelope()?;
        trees.of_value(&envelope).map(Some)
    }));
    function!("ownEnvelope", |ctx: Ctx<'js>| {
        let envelope = with_running(&ctx, Running::envelope)?;
        pair(&ctx, Some(envelope))
    });
    function!("setEnvelope", |ctx: Ctx<'js>, list: List| with_content(&ctx, true, |host, trees| {
        let (document, element) = trees.element(list).ok_or("the envelope must be an XML element")?;
        host.set_envelope(document, element)
    }));
    function!("addHeader", |ctx: Ctx<'js>, must: bool, list: List| with_content(&ctx, true, |host, trees| {
        let (document, element) = trees.element(list).ok_or("a header must be an XML element")?;
        host.add_header(must, document, element)
    }));
    function!("text", |ctx: Ctx<'js>, what: String| with(&ctx, |host, _| Ok(host.text(&what))));
    function!("setText", |ctx: Ctx<'js>, what: String, text: Opt<Option<String>>| with(&ctx, |host, _| {
        host.set_text(&what, text.0.flatten());
        Ok(())
    }));
    function!("flag", |ctx: Ctx<'js>, what: String| with(&ctx, |host, _| Ok(host.flag(&what))));
    function!("setFlag", |ctx: Ctx<'js>, what: String, is: bool| with(&ctx, |host, _| {
        host.set_flag(&what, is);
        Ok(())
    }));
    function!("entry", |ctx: Ctx<'js>, key: String| {
        let value = with(&ctx, |host, _| Ok(host.entry(&key)))?;
        to_js(&ctx, value)
    });
    function!("java", |ctx: Ctx<'js>, what: String, arguments: Vec<String>| {
        with(&ctx, |host, _| host.java(&what, &arguments))
    });
    function!("javaLate", |ctx: Ctx<'js>| crate::engine::java_late(&ctx));
    function!("regex", |ctx: Ctx<'js>, what: String, given: Vec<String>| {
        let given: Vec<&str> = given.iter().map(String::as_str).collect();
        regex(&what, &given).map_err(|why| Exception::throw_message(&ctx, &why))
    });
    function!("sleep", |ctx: Ctx<'js>, milliseconds: f64| {
        crate::engine::sleep(milliseconds).map_err(|why| Exception::throw_message(&ctx, &why))
    });
    function!("work", |ctx: Ctx<'js>, units: f64| {
        crate::engine::work(units).map_err(|why| Exception::throw_message(&ctx, &why))
    });
    function!("log", |ctx: Ctx<'js>, level: String, text: String| with(&ctx, |host, _| {
        host.log(&level, &text);
        Ok(())
    }));
    // XML.
    function!("xmlParse", |ctx: Ctx<'js>, text: String| with(&ctx, |_, trees| trees.parse(&text)));
    function!("xmlEmpty", |ctx: Ctx<'js>| with(&ctx, |_, trees| trees.empty()));
    function!("xmlGet", |ctx: Ctx<'js>, list: List, key: String| with(&ctx, |_, trees| trees.get(list, &key)));
    function!("xmlStep", |ctx: Ctx<'js>, list: List, kind: String| with(&ctx, |_, trees| trees.step(list, &kind)));
    function!("xmlCopy", |ctx: Ctx<'js>, list: List| with(&ctx, |_, trees| trees.copy(list)));
    function!("xmlJoin", |ctx: Ctx<'js>, list: List, other: List| with(&ctx, |_, trees| trees.join(list, other)));
    function!("xmlPick", |ctx: Ctx<'js>, list: List, positions: String| {
        with(&ctx, |_, trees| trees.pick(list, &positions))
    });
    function!("xmlLength", |ctx: Ctx<'js>, list: List| with(&ctx, |_, trees| Ok(trees.length(list))));
    function!("xmlText", |ctx: Ctx<'js>, list: List| with(&ctx, |_, trees| Ok(trees.text(list))));
    function!("xmlString", |ctx: Ctx<'js>, list: List| with(&ctx, |_, trees| Ok(trees.string_value(list))));
    function!("xmlMarkup", |ctx: Ctx<'js>, list: List| with(&ctx, |_, trees| Ok(trees.xml(list))));
    function!("xmlSimple", |ctx: Ctx<'js>, list: List| with(&ctx, |_, trees| Ok(trees.is_simple(list))));
    function!("xmlFact", |ctx: Ctx<'js>, list: List, what: String| with(&ctx, |_, trees| Ok(trees.fact(list, &what))));
    function!("xmlSet", |ctx: Ctx<'js>, list: List, key: String, number: i32, text: String| with(&ctx, |_, trees| {
        trees.set(list, &key, given(number, &text))
    }));
    function!("xmlInsert", |ctx: Ctx<'js>, list: List, how: String, number: i32, text: String| with(&ctx, |_, trees| {
        trees.insert(list, &how, given(number, &text))
    }));
    function!("xmlDelete", |ctx: Ctx<'js>, list: List, key: String| with(&ctx, |_, trees| trees.delete(list, &key)));
    function!("xmlDetach", |ctx: Ctx<'js>, list: List| with(&ctx, |_, trees| {
        trees.detach(list);
        Ok(())
    }));
    function!("xmlBeside", |ctx: Ctx<'js>, list: List, before: bool, number: i32, text: String| {
        with(&ctx, |_, trees| trees.beside(list, before, given(number, &text)))
    });
    function!("xpath", |ctx: Ctx<'js>, list: List, how: String, source: String, names: Vec<String>| {
        match with(&ctx, |_, trees| trees.xpath(list, &how, &source, &names))? {
            Selected::Nothing => Ok(Js::new_null(ctx.clone())),
            Selected::Nodes(list) => pair(&ctx, Some(list)),
            Selected::Text(text) => text.into_js(&ctx),
            Selected::Number(number) => number.into_js(&ctx),
            Selected::Boolean(is) => is.into_js(&ctx),
        }
    });
    function!("xmlRename", |ctx: Ctx<'js>, list: List, local: String| with(&ctx, |_, trees| trees.rename(list, &local)));
    Ok(object)
}
