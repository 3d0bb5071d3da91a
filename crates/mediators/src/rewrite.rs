//! `rewrite`: changes parts of an address by rules.
//!
//! An action takes its operand as plain text: the part that it changes is decoded, changed and encoded anew. Parts
//! that no action touches stay as they are written.

use crate::address::{PARTS, Part, Parts};
use crate::condition::{Condition, EQUAL, MATCH};
use config::Element;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Expression, Family, Fault, Flow, Inside,
    Mediator, Need, Page, Search, Values,
};
use message::Value;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use std::sync::Arc;

/// `<rewrite [inProperty] [outProperty]><rewriterule><condition>…</condition>?<action …/>+</rewriterule>+</rewrite>`
pub const DEFINITION: Definition = Definition {
    name: "rewrite",
    summary: "Changes parts of the To address, or of an address in a property, by rules.",
    attributes: &[
        Attribute::optional("inProperty", Values::Text, "the property with the address; absent: To"),
        Attribute::optional("outProperty", Values::Text, "the property for the result; absent: To"),
    ],
    children: Children::Elements(&["rewriterule"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Transformation,
    semantics: "The address is that of `inProperty`, a property of default scope, else To; without one it is empty. The result goes to `outProperty`, else To: a
`send` or `call` without an endpoint uses it. The part of the request's URL after the name of the service is appended when the message
is sent, unless the axis2 property `REST_URL_POSTFIX` is removed.

The rules apply in order, each if its condition holds or it has none, and all actions of a rule in order. A condition that cannot be
evaluated does not hold, and the log has a warning. Conditions see the address with the changes of earlier rules.

An action changes a `fragment`. `set` replaces it with the operand, `append` and `prepend` add the operand (to a query with `&`), `replace` replaces
each match of `regex` (`$1` is a group), `remove` removes the fragment, and `remove-query-param` the first parameter of that name. `full` and
`port` can only be set. A fragment is decoded before an action and encoded after it; fragments without an action stay as written. With
`resolve=\"true\"` each `{name}` is replaced by the property of that name; if there is none, the fragment becomes empty.",
    inside: &[
        Inside::new("rewriterule+", "a rule", &[]),
        Inside::new("rewriterule/condition?", "when it applies: one of these", &[]),
        Inside::new("rewriterule/condition/and?", "all conditions inside hold", &[]).with("two conditions or more"),
        Inside::new("rewriterule/condition/or?", "one condition inside holds", &[]).with("two conditions or more"),
        Inside::new("rewriterule/condition/not?", "the condition inside does not hold", &[]).with("one condition"),
        Inside::new(
            "rewriterule/condition/match?",
            "the whole value matches, see [`conditionalRouter`](conditionalRouter.md)",
            MATCH,
        ),
        Inside::new("rewriterule/condition/equal?", "the value is this, in any case", EQUAL),
        Inside::new(
            "rewriterule/action+",
            "a change; all but `remove` need a `value` or an `xpath`",
            &[
                Attribute::optional("type", Values::OneOf(TYPES), "what is done").or("set"),
                Attribute::optional("fragment", Values::OneOf(PARTS), "the part; `ref` is what follows `#`").or("full"),
                Attribute::optional("value", Values::Text, "the operand"),
                Attribute::optional("xpath", Values::Expression, "what gives the operand; wins over `value`"),
                Attribute::optional("regex", Values::Regex, "for `replace`: what is replaced"),
                Attribute::optional("resolve", Values::Boolean, "fill in properties for `{name}`").or("false"),
            ],
        ),
    ],
    needs: &[
        (Need::Headers, "conditions and operands look at the address, properties and headers"),
        (Need::Whole, "a condition or an operand looks at the body"),
    ],
    refused: &[
        ("<rewrite/>", "`rewrite` has no `rewriterule`"),
        ("<rewrite><rewriterule/></rewrite>", "`rewriterule` needs an `action`"),
        ("<rewrite><rewriterule><action/></rewriterule></rewrite>", "`action` of type `set` needs a `value` or an `xpath`"),
        (
            "<rewrite><rewriterule><action type=\"replace\" value=\"b\"/></rewriterule></rewrite>",
            "`action` of type `replace` needs a `regex`",
        ),
        (
            "<rewrite><rewriterule><action fragment=\"path\" type=\"remove-query-param\" value=\"id\"/></rewriterule></rewrite>",
            "`remove-query-param` changes the query only",
        ),
    ],
    faults: &[
        (
            "0",
            "the address, or the result, is not valid (a blank, a port that is not a number, a path without `/` after the host), or a \
             replacement names a group that does not exist",
        ),
        (
            "601000",
            "an operand is taken of the body, and it is not what its content type says, or larger than a flow may hold",
        ),
    ],
};

/// The attributes of `action`.
const ACTION: &[&str] = &["type", "value", "xpath", "fragment", "regex", "resolve"];

const TYPES: &[&str] = &["set", "append", "prepend", "replace", "remove", "remove-query-param"];

/// What Java's `URI` quotes in the parts of an address, besides what is not ASCII.
const QUOTED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');
const QUOTED_PATH: &AsciiSet = &QUOTED.add(b'?').add(b'#').add(b'[').add(b']');
const QUOTED_USER: &AsciiSet = &QUOTED_PATH.add(b'/').add(b'@');
const QUOTED_QUERY: &AsciiSet = &QUOTED.add(b'#');

struct Rewrite {
    from: Option<Arc<str>>,
    to: Option<Arc<str>>,
    rules: Vec<Rule>,
}

struct Rule {
    condition: Option<Condition>,
    actions: Vec<Action>,
}

struct Action {
    change: Change,
    part: Part,
    operand: Operand,
    resolve: bool,
}

enum Change {
    Set,
    Append,
    Prepend,
    Replace(Search),
    Remove,
    RemoveParameter,
}

enum Operand {
    None,
    Literal(String),
    Expression(Expression),
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let mut rules = Vec::new();
    for rule in element.children_named("rewriterule") {
        let condition = match rule.child("condition") {
            Some(_) => Some(Condition::compile(rule, compiler)?),
            None => None,
        };
        let actions: Option<Vec<_>> =
            rule.children_named("action").map(|action| action_of(action, compiler)).collect();
        let actions = actions?;
        if actions.is_empty() {
            let place = rule.start_tag();
            compiler.error("missing-element", "`rewriterule` needs an `action`", place, "what to change");
            return None;
        }
        rules.push(Rule { condition, actions });
    }
    if rules.is_empty() {
        let place = element.start_tag();
        compiler.warning("missing-element", "`rewrite` has no `rewriterule`", place, "nothing is changed");
    }
    let name = |attribute: &str| element.attr(attribute).filter(|name| !name.is_empty()).map(Arc::from);
    Some(Box::new(Rewrite { from: name("inProperty"), to: name("outProperty"), rules }))
}

fn action_of(element: &Element, compiler: &mut Compiler<'_>) -> Option<Action> {
    for attribute in element.attributes() {
        if !ACTION.contains(&&*attribute.name.local) {
            let message = format!("`action` has no attribute `{}`", attribute.name.local);
            compiler.warning("unknown-attribute", message, attribute.name_span, "this has no effect");
        }
    }
    let mut word = |name: &str, default: &'static str, words: &[&str]| -> Option<String> {
        let Some(attribute) = element.attribute(name) else { return Some(default.to_owned()) };
        let value = attribute.value.trim();
        if words.contains(&value) {
            return Some(value.to_owned());
        }
        let message = format!("`{name}` cannot be `{value}`");
        compiler.error("bad-value", message, attribute.value_span, format!("expected {}", words.join(", ")));
        None
    };
    let kind = word("type", "set", TYPES)?;
    let part = Part::of(&word("fragment", "full", PARTS)?)?;
    let operand = match (element.attribute("xpath"), element.attr("value")) {
        (Some(_), _) => Operand::Expression(compiler.expression(element, "xpath")?),
        (None, Some(value)) => Operand::Literal(value.to_owned()),
        (None, None) => Operand::None,
    };
    if matches!(operand, Operand::None) && kind != "remove" {
        let message = format!("`action` of type `{kind}` needs a `value` or an `xpath`");
        compiler.error("missing-attribute", message, element.start_tag(), "expected one of them");
        return None;
    }
    let change = match kind.as_str() {
        "append" => Change::Append,
        "prepend" => Change::Prepend,
        "remove" => Change::Remove,
        "remove-query-param" => Change::RemoveParameter,
        "replace" => {
            let Some(regex) = element.attribute("regex") else {
                let place = element.start_tag();
                compiler.error(
                    "missing-attribute",
                    "`action` of type `replace` needs a `regex`",
                    place,
                    "regex",
                );
                return None;
            };
            match Search::compile(&regex.value) {
                Ok(search) => Change::Replace(search),
                Err(why) => {
                    let message = format!("`{}` is not a valid regular expression", regex.value);
                    compiler.error("bad-pattern", message, regex.value_span, why);
                    return None;
                }
            }
        }
        _ => Change::Set,
    };
    if matches!(change, Change::RemoveParameter) && part != Part::Query {
        let place = element.start_tag();
        compiler.error(
            "bad-value",
            "`remove-query-param` changes the query only",
            place,
            "fragment=\"query\"",
        );
        return None;
    }
    Some(Action { change, part, operand, resolve: crate::target::is_true(element, "resolve") })
}

impl Mediator for Rewrite {
    fn need(&self) -> Need {
        let of = |rule: &Rule| {
            let operands = rule.actions.iter().map(|action| match &action.operand {
                Operand::Expression(expression) => expression.need(),
                _ => Need::Nothing,
            });
            operands.chain(rule.condition.as_ref().map(Condition::need)).max().unwrap_or(Need::Nothing)
        };
        self.rules.iter().map(of).max().unwrap_or(Need::Nothing).max(Need::Headers)
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let url = match &self.from {
            Some(name) => context.properties.get(name).map(ToString::to_string),
            None => context.to(),
        };
        let mut url = Url::parse(url.unwrap_or_default().trim())?;
        for rule in &self.rules {
            if rule.holds(context, &url)? {
                for action in &rule.actions {
                    action.apply(&mut url, context)?;
                }
            }
        }
        let made = url.write()?;
        match &self.to {
            Some(name) => context.properties.set(Arc::clone(name), Value::from(made)),
            None => context.addressing.to = Some(made),
        }
        Ok(Flow::Next)
    }
}

impl Rule {
    /// A condition that cannot be decided does not hold, as in WSO2.
    ///
    /// # Errors
    /// The run has to end before it is decided.
    fn holds(&self, context: &mut Context, url: &Url) -> Result<bool, Fault> {
        let Some(condition) = &self.condition else { return Ok(true) };
        let url = url.write().unwrap_or_default();
        let holds = meter::finished(condition.holds(context, &url))?;
        Ok(holds.unwrap_or_else(|fault| {
            tracing::warn!(message_id = %context.message_id(), place = context.place(), "a rule of rewrite is skipped: {fault}");
            false
        }))
    }
}

impl Action {
    fn apply(&self, url: &mut Url, context: &mut Context) -> Result<(), Fault> {
        let operand = match &self.operand {
            Operand::None => None,
            Operand::Literal(text) => Some(text.clone()),
            Operand::Expression(expression) => expression.string(context)?,
        };
        match self.part {
            Part::Whole => *url = Url::parse(operand.unwrap_or_default().trim())?,
            Part::Port => {
                url.port = match operand.as_deref().map(str::trim) {
                    None | Some("") => None,
                    Some(port) => Some(
                        port.parse::<u16>()
                            .map_err(|_| Fault::new(format!("`{port}` is not a port")))?
                            .to_string(),
                    ),
                }
            }
            part => {
                let now = url.decoded(part);
                let changed = self.changed(part, now.as_deref(), operand)?;
                url.set(part, changed.map(|text| if self.resolve { resolved(&text, context) } else { text }));
            }
        }
        Ok(())
    }

    /// The part after the change, decoded. A missing operand makes it empty; a missing part counts as empty.
    fn changed(
        &self,
        part: Part,
        now: Option<&str>,
        operand: Option<String>,
    ) -> Result<Option<String>, Fault> {
        let text = now.unwrap_or_default();
        if matches!(self.change, Change::Remove) {
            return Ok(None);
        }
        let Some(operand) = operand else { return Ok(Some(String::new())) };
        let join = |first: &str, second: &str| {
            let between = if part == Part::Query && !text.is_empty() { "&" } else { "" };
            format!("{first}{between}{second}")
        };
        Ok(Some(match &self.change {
            Change::Set | Change::Remove => operand,
            Change::Append => join(text, &operand),
            Change::Prepend => join(&operand, text),
            Change::Replace(search) => search
                .replace_all(text, &operand)
                .map_err(|why| Fault::new("rewrite cannot replace in the address").because(why))?,
            Change::RemoveParameter => {
                let named = |pair: &str| pair.split_once('=').is_some_and(|(name, _)| name == operand);
                let at = text.split('&').position(named);
                let kept = text.split('&').enumerate().filter(|(index, _)| Some(*index) != at);
                kept.map(|(_, pair)| pair).collect::<Vec<_>>().join("&")
            }
        }))
    }
}

/// Replaces each `{name}` by the property of that name. Without one, nothing stays of the part, as in WSO2.
fn resolved(text: &str, context: &Context) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once('{') {
        let Some((name, behind)) = behind.split_once('}') else { break };
        let value = context.properties.get(name).map(ToString::to_string).unwrap_or_default();
        if value.is_empty() {
            tracing::error!(message_id = %context.message_id(), place = context.place(), "rewrite: the property `{name}` is not set");
            return String::new();
        }
        out.push_str(before);
        out.push_str(&value);
        rest = behind;
    }
    out + rest
}

/// An address that is being changed; its parts are encoded.
#[derive(Debug, Default)]
struct Url {
    protocol: Option<String>,
    user: Option<String>,
    host: Option<String>,
    port: Option<String>,
    path: String,
    query: Option<String>,
    reference: Option<String>,
}

impl Url {
    fn parse(text: &str) -> Result<Url, Fault> {
        let malformed = |why: &str| Fault::new(format!("Malformed input URI: {text}")).because(why);
        let illegal = |c: char| {
            c.is_ascii_control() || matches!(c, ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}')
        };
        if let Some(bad) = text.chars().find(|&c| illegal(c)) {
            return Err(malformed(&format!("`{bad}` cannot stand in an address")));
        }
        let mut escapes = text.split('%').skip(1);
        if escapes
            .any(|escape| !escape.get(..2).is_some_and(|two| two.bytes().all(|b| b.is_ascii_hexdigit())))
        {
            return Err(malformed("a `%` is not followed by two hexadecimal digits"));
        }
        let parts = Parts::of(text);
        let opaque =
            parts.host.is_none() && parts.path.split('/').next().is_some_and(|first| first.contains(':'));
        if opaque {
            return Err(malformed("it has no path that could be changed"));
        }
        let owned = |part: Option<&str>| part.map(|part| utf8_percent_encode(part, CONTROLS).to_string());
        Ok(Url {
            protocol: owned(parts.protocol),
            user: owned(parts.user),
            host: parts.host.filter(|host| !host.is_empty()).map(str::to_owned),
            port: owned(parts.port.filter(|port| !port.is_empty())),
            path: utf8_percent_encode(parts.path, CONTROLS).to_string(),
            query: owned(parts.query),
            reference: owned(parts.reference),
        })
    }

    fn decoded(&self, part: Part) -> Option<String> {
        let encoded = match part {
            Part::Protocol => self.protocol.as_deref(),
            Part::User => self.user.as_deref(),
            Part::Host => self.host.as_deref(),
            Part::Path => Some(self.path.as_str()),
            Part::Query => self.query.as_deref(),
            Part::Reference => self.reference.as_deref(),
            Part::Whole | Part::Port => None,
        };
        encoded.map(|text| percent_decode_str(text).decode_utf8_lossy().into_owned())
    }

    fn set(&mut self, part: Part, text: Option<String>) {
        let quoted =
            |set: &'static AsciiSet| text.as_deref().map(|text| utf8_percent_encode(text, set).to_string());
        match part {
            Part::Protocol => self.protocol = text.filter(|text| !text.is_empty()),
            Part::Host => self.host = text.filter(|text| !text.is_empty()),
            Part::User => self.user = quoted(QUOTED_USER),
            Part::Path => self.path = quoted(QUOTED_PATH).unwrap_or_default(),
            Part::Query => self.query = quoted(QUOTED_QUERY),
            Part::Reference => self.reference = quoted(QUOTED_QUERY),
            Part::Whole | Part::Port => {}
        }
    }

    fn write(&self) -> Result<String, Fault> {
        let wrong =
            |why: String| Err(Fault::new("Error while constructing a URI from the fragments").because(why));
        let mut out = String::new();
        if let Some(protocol) = &self.protocol {
            let letter = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
            if !protocol.chars().all(letter) || !protocol.starts_with(|c: char| c.is_ascii_alphabetic()) {
                return wrong(format!("`{protocol}` is not a protocol"));
            }
            out.push_str(protocol);
            out.push(':');
        }
        if let Some(host) = &self.host {
            let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
            let fits = match inner {
                Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
                None => host.chars().all(|c| c.is_ascii_alphanumeric() || "-._~".contains(c)),
            };
            if !fits {
                return wrong(format!("`{host}` is not a host"));
            }
            out.push_str("//");
            if let Some(user) = self.user.as_ref().filter(|user| !user.is_empty()) {
                out.push_str(user);
                out.push('@');
            }
            out.push_str(host);
            if let Some(port) = &self.port {
                out.push(':');
                out.push_str(port);
            }
        }
        let absolute = self.protocol.is_some() || self.host.is_some();
        if absolute && !self.path.is_empty() && !self.path.starts_with('/') {
            return wrong(format!("the path `{}` behind a host has to begin with `/`", self.path));
        }
        out.push_str(&self.path);
        for (sign, part) in [('?', &self.query), ('#', &self.reference)] {
            if let Some(part) = part {
                out.push(sign);
                out.push_str(part);
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing;

    /// The address that one rule makes of another one.
    fn rewritten(url: &str, inside: &str) -> Result<String, String> {
        let text = format!(
            r#"<property name="v" value="V"/><rewrite inProperty="in" outProperty="out"><rewriterule>{inside}</rewriterule></rewrite>"#
        );
        // A long address takes a busy machine its time.
        let tested = testing::main_with(&registry(testing::endpoints), &text, |services| {
            services.settings.script_time = std::time::Duration::from_secs(600);
        });
        assert!(tested.found.is_empty(), "{inside}: {:?}", tested.found);
        let end = tested.run_with(
            &[("Content-Type", "application/xml"), ("X-K", "k")],
            "<a><b>/x</b></a>",
            |context| {
                context.properties.set("in", message::Value::from(url));
            },
        );
        match end.fault() {
            Some(_) => Err(end.property("ERROR_MESSAGE").unwrap_or_default()),
            None => Ok(end.property("out").unwrap_or_default()),
        }
    }

    #[test]
    fn actions_change_their_part() {
        // What WSO2 makes of them, but for the parts that nobody touches: those keep their encoding here.
        for (url, action, made) in [
            (
                "http://h/a%20b/c?x=%26y#f",
                r#"fragment="path" type="append" value="/d e""#,
                "http://h/a%20b/c/d%20e?x=%26y#f",
            ),
            ("http://h/a", r#"fragment="path" value="/a%20b""#, "http://h/a%2520b"),
            ("http://h/a%20b", r#"fragment="path" type="replace" regex="a b" value="x""#, "http://h/x"),
            (
                "http://h/a/1",
                r#"fragment="path" type="replace" regex="/([a-z])/(\d)" value="/$2/$1""#,
                "http://h/1/a",
            ),
            ("http://h/a", r#"fragment="query" type="append" value="y=2""#, "http://h/a?y=2"),
            ("http://h/a?x=1", r#"fragment="query" type="append" value="y=2""#, "http://h/a?x=1&y=2"),
            ("http://h/a?x=1", r#"fragment="query" type="prepend" value="y=2""#, "http://h/a?y=2&x=1"),
            (
                "http://h/a?x=1&y=2&y=3",
                r#"fragment="query" type="remove-query-param" value="y""#,
                "http://h/a?x=1&y=3",
            ),
            (
                "http://h/a?xy=1&y=2",
                r#"fragment="query" type="remove-query-param" value="y""#,
                "http://h/a?xy=1",
            ),
            (
                "http://h/a?V=1&b=2",
                r#"fragment="query" type="remove-query-param" xpath="$ctx:v""#,
                "http://h/a?b=2",
            ),
            ("http://h/a?x=1", r#"fragment="query" type="remove""#, "http://h/a"),
            ("http://u:p@h:80/a#r", r#"fragment="user" type="remove""#, "http://h:80/a#r"),
            ("http://h/a", r#"fragment="user" value="u@:""#, "http://u%40:@h/a"),
            ("http://h/a#r", r#"fragment="ref" value="new""#, "http://h/a#new"),
            ("http://u:p@h:80/a", r#"fragment="host" type="remove""#, "http:/a"),
            ("http://h:80/a", r#"fragment="port" type="remove""#, "http://h/a"),
            ("http://h:80/a", r#"fragment="port" type="append" value="81""#, "http://h:81/a"),
            ("http://[::1]:80/a", r#"fragment="port" value="81""#, "http://[::1]:81/a"),
            ("http://h:80/a", r#"fragment="protocol" type="remove""#, "//h:80/a"),
            ("http://h:80/a", r#"fragment="protocol" value="https""#, "https://h:80/a"),
            ("/rel/x?y=1", r#"fragment="host" value="hh""#, "//hh/rel/x?y=1"),
            ("/rel/x?y=1", r#"fragment="path" type="prepend" value="/p""#, "/p/rel/x?y=1"),
            ("", r#"fragment="path" value="/p""#, "/p"),
            ("http://h/a", r#"fragment="full" value="/only/path""#, "/only/path"),
            ("http://h/a", r#"type="append" value="/b""#, "/b"),
            ("http://h/a", r#"fragment="full" type="remove""#, ""),
            ("http://h/a", r#"fragment="path" type="append" xpath="//b""#, "http://h/a/x"),
            ("http://h/a", r#"fragment="path" type="append" xpath="//nothing""#, "http://h/a"),
            ("http://h/a", r#"fragment="path" type="append" xpath="$ctx:nothing""#, "http://h"),
            ("http://h/a", r#"fragment="path" type="append" value="/{v}""#, "http://h/a/%7Bv%7D"),
            (
                "http://h/a",
                r#"fragment="path" type="append" value="/{v}{" resolve="true""#,
                "http://h/a/V%7B",
            ),
            ("http://h/a", r#"fragment="path" type="append" value="/{none}" resolve="true""#, "http://h"),
            ("http://h/ä", r#"fragment="host" value="i""#, "http://i/%C3%A4"),
            ("http://h/a", r#"fragment="query" value="a=b c&amp;d=#""#, "http://h/a?a=b%20c&d=%23"),
        ] {
            assert_eq!(rewritten(url, &format!("<action {action}/>")).as_deref(), Ok(made), "{url} {action}");
        }
    }

    #[test]
    fn what_cannot_be_an_address_is_a_fault() {
        let wrong = "Error while constructing a URI";
        for (url, action, says) in [
            ("http://h/a b", r#"fragment="port" value="1""#, "Malformed input URI"),
            ("http://h/%4", r#"fragment="port" value="1""#, "Malformed input URI"),
            ("urn:a:b", r#"fragment="path" type="append" value="c""#, "Malformed input URI"),
            ("http://h", r#"fragment="full" value="a|b""#, "Malformed input URI"),
            ("http://h/a", r#"fragment="path" value="b""#, wrong),
            ("http://h/a", r#"fragment="host" value="h2:99""#, wrong),
            ("http://h/a", r#"fragment="host" value="[::x]""#, wrong),
            ("http://h/a", r#"fragment="protocol" value="a/b""#, wrong),
            ("http://h/a", r#"fragment="port" value="x""#, "`x` is not a port"),
            ("http://h/a", r#"fragment="path" type="replace" regex="a" value="$1""#, "cannot replace"),
        ] {
            let made = rewritten(url, &format!("<action {action}/>"));
            assert!(made.as_ref().is_err_and(|fault| fault.contains(says)), "{url} {action}: {made:?}");
        }
        let long = format!("http://h/{}", "a".repeat(1_000_000));
        let made = rewritten(&long, r#"<action fragment="path" type="replace" regex="a" value="b"/>"#);
        assert_eq!(made.map(|made| made.len()), Ok(long.len()));
    }

    #[test]
    fn rules_apply_in_order_where_their_condition_holds() {
        for (condition, holds) in [
            (r#"<equal type="url" source="host" value="h"/>"#, true),
            (r#"<equal type="url" source="host" value="i"/>"#, false),
            (r#"<match type="url" regex="http://h/a.*"/>"#, true),
            (r#"<equal type="param" source="x" value="1"/>"#, true),
            (r#"<equal source="X-K" value="K"/>"#, true),
            (
                r#"<and><equal type="property" source="v" value="v"/><equal type="soap" source="//b" value="/x"/></and>"#,
                true,
            ),
            // It cannot be evaluated.
            (r#"<equal type="soap" source="$func:none" value="1"/>"#, false),
        ] {
            let inside = format!(r#"<condition>{condition}</condition><action fragment="ref" value="yes"/>"#);
            let tail = if holds { "#yes" } else { "" };
            assert_eq!(
                rewritten("http://h/a?x=1", &inside),
                Ok(format!("http://h/a?x=1{tail}")),
                "{condition}"
            );
        }
        // A rule sees what the one before it made; several actions of one apply in order.
        let inside = r#"<action fragment="host" value="i"/><action fragment="port" value="1"/></rewriterule>
            <rewriterule><condition><equal type="url" source="host" value="i"/></condition>
            <action fragment="path" type="append" value="/z"/>"#;
        assert_eq!(rewritten("http://h/a", inside).as_deref(), Ok("http://i:1/a/z"));
    }

    #[test]
    fn the_to_address_is_the_default_and_mistakes_are_found_when_the_configuration_loads() {
        let text = r#"<header name="To" value="http://h/a"/><rewrite><rewriterule><action fragment="path" value="/b"/></rewriterule></rewrite>"#;
        let tested = testing::main(&registry(testing::endpoints), text);
        assert_eq!(tested.needs()[1], flow::Need::Headers);
        assert_eq!(tested.run(&[], "").context.to().as_deref(), Some("http://h/b"));
        for (inside, says) in [
            ("", "has no `rewriterule`"),
            ("<rewriterule/>", "needs an `action`"),
            ("<rewriterule><action/></rewriterule>", "needs a `value` or an `xpath`"),
            ("<rewriterule><action value='a' type='add'/></rewriterule>", "`type` cannot be `add`"),
            ("<rewriterule><action value='a' fragment='hash'/></rewriterule>", "`fragment` cannot be `hash`"),
            ("<rewriterule><action value='a' type='replace'/></rewriterule>", "needs a `regex`"),
            (
                "<rewriterule><action value='a' type='replace' regex='('/></rewriterule>",
                "not a valid regular expression",
            ),
            (
                "<rewriterule><action value='a' type='remove-query-param'/></rewriterule>",
                "changes the query only",
            ),
            ("<rewriterule><action xpath='//['/></rewriterule>", "not a valid expression"),
            ("<rewriterule><action valu='a'/></rewriterule>", "no attribute `valu`"),
            ("<rewriterule><condition/><action value='a'/></rewriterule>", "needs a condition"),
        ] {
            let tested =
                testing::main(&registry(testing::endpoints), &format!("<rewrite>{inside}</rewrite>"));
            assert!(tested.reports(says), "{inside}: {:?}", tested.found);
        }
    }
}
