//! `enrich`: takes something of the message, a property or the configuration and puts it somewhere else.
//!
//! JSON messages are edited as JSON where both sides speak JSON; everything else works on the XML view.

mod json;
mod xml;

use ::xml::{Document, ParseOptions};
use config::Element;
use flow::library::Scope;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Expression, Family, Fault, Flow, Inside,
    Mediator, Need, Page, Settings, Values,
};
use message::jsonpath::JsonPath;
use message::{Value, XmlValue};
use std::sync::Arc;

/// `<enrich><source [type] [xpath] [property] [key] [clone]>inline</source><target [type] [xpath] [property] [action]/></enrich>`
pub const DEFINITION: Definition = Definition {
    name: "enrich",
    summary: "Copies or moves a part of the message, a property or inline content to another place.",
    attributes: NO_ATTRIBUTES,
    children: Children::Elements(&["source", "target"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Transformation,
    semantics: "`source` says what is taken, `target` and its `action` where it goes.

Sources: `custom` what an expression selects (elements, texts and strings; attributes need `string(@a)`); `body` the first element of the
body, or the JSON; `envelope` the whole envelope; `property` the value of a property of default scope; `inline` an element or a text, in which
`{expressions}` are filled in, or the entry `key`. With `clone=\"false\"` elements are moved, not copied, if the target is in a
tree; if the target is a property, they also stay in the message.

Targets: `custom` the first node that an expression selects, in the message or in the XML that a property holds
(`$ctx:list/item`), or the property that `get-property` with a literal name (of default, axis2 or operation scope) stands for; `body`,
`envelope`, `property`, and for JSON `key`, the name of a
member. Actions: `replace` replaces the target with the source; `child` adds it inside, at the end; `sibling` adds it after the target; `remove` removes the
JSONPaths of the source, separated by commas, from the payload. A text that replaces an element becomes the text of that element. A text that
replaces the body, and is a JSON object or array, becomes the JSON payload. A text property is a text, never XML.

If the payload is JSON, no expression is an XPath and the content is not XML, the JSON is edited: a path that does not exist is an error, because `replace` makes no
members; `child` appends to an array and merges into an object. Otherwise the XML view is edited, and a JSON payload is written back as
JSON. The content type stays. If the source gives nothing, the log says so, and a custom target stays as it is.",
    inside: &[
        Inside::new(
            "source",
            "what is taken",
            &[
                Attribute::optional(
                    "type",
                    Values::OneOf(&["custom", "envelope", "body", "property", "inline"]),
                    "what it is",
                )
                .or("custom"),
                Attribute::optional("xpath", Values::Expression, "for `custom`: the expression"),
                Attribute::optional("property", Values::Text, "for `property`: its name"),
                Attribute::optional("key", Values::Text, "for `inline`: an entry instead of what is inside"),
                Attribute::optional("clone", Values::Boolean, "false: elements are moved").or("true"),
            ],
        )
        .with("element or text"),
        Inside::new(
            "target",
            "where it goes",
            &[
                Attribute::optional(
                    "type",
                    Values::OneOf(&["custom", "envelope", "body", "property", "key"]),
                    "what it is",
                )
                .or("custom"),
                Attribute::optional("xpath", Values::Expression, "for `custom` and `key`: the expression"),
                Attribute::optional("property", Values::Text, "for `property`: its name"),
                Attribute::optional(
                    "action",
                    Values::OneOf(&["replace", "child", "sibling", "remove"]),
                    "how it goes there",
                )
                .or("replace"),
            ],
        ),
    ],
    needs: &[(Need::Whole, "always")],
    refused: &[
        ("<enrich><source type=\"body\"/></enrich>", "`enrich` needs `source` and `target`"),
        ("<enrich><source xpath=\"//a[\"/><target type=\"body\"/></enrich>", "not a valid expression"),
        ("<enrich><source type=\"body\"/><target type=\"envelope\"/></enrich>", "`enrich` cannot do this"),
        ("<enrich><source type=\"property\"/><target type=\"body\"/></enrich>", "needs the attribute `property`"),
        ("<enrich><source type=\"inline\"/><target type=\"body\"/></enrich>", "inline content is missing"),
        ("<enrich><source type=\"body\"/><target xpath=\"//a\" action=\"swap\"/></enrich>", "`swap` is not an action"),
    ],
    faults: &[
        ("0", "a custom target selects nothing, a JSONPath finds nothing, or the new envelope is not an envelope"),
        ("601000", "the body is not what its content type says, or larger than a flow may hold"),
    ],
};

const NO_ATTRIBUTES: &[Attribute] = &[];

struct Enrich {
    source: Source,
    /// The source stays where it is.
    clone: bool,
    target: Target,
    action: Action,
}

enum Source {
    Custom(Expression),
    /// `remove`: the JSONPaths.
    Paths(Vec<JsonPath>),
    Envelope,
    Body,
    Property(Arc<str>),
    Element(Arc<XmlValue>),
    /// Text with expressions in braces; XML if `markup`.
    Text {
        pieces: Vec<Piece>,
        markup: bool,
    },
    Entry(Arc<str>),
}

enum Piece {
    Text(String),
    Expression(Expression),
}

enum Target {
    Custom(Expression),
    /// The object that holds the member, and the member that is renamed.
    Key(JsonPath, String),
    Envelope,
    Body,
    Property(Scope, Arc<str>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Replace,
    Child,
    Sibling,
    Remove,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let (Some(from), Some(to)) = (element.child("source"), element.child("target")) else {
        let place = element.start_tag();
        compiler.error("missing-element", "`enrich` needs `source` and `target`", place, "both of them");
        return None;
    };
    let action = match to.attribute("action") {
        None => Action::Replace,
        Some(action) => match &*action.value {
            "replace" => Action::Replace,
            "child" => Action::Child,
            "sibling" => Action::Sibling,
            "remove" => Action::Remove,
            _ => {
                compiler.none_of(action, "an action", &["replace", "child", "sibling", "remove"]);
                return None;
            }
        },
    };
    let (kind, onto) = (from.attr("type").unwrap_or("custom"), to.attr("type").unwrap_or("custom"));
    let wrong = match (kind, onto, action) {
        (_, "inline", _) => Some("inline content cannot be a target"),
        ("envelope", "custom" | "envelope" | "body", _) => Some("an envelope cannot go into the message"),
        ("body", "envelope" | "body", _) => Some("the body cannot be put there"),
        ("custom", "envelope", _) => Some("a part of the message cannot become the envelope"),
        (_, "envelope", Action::Child | Action::Sibling | Action::Remove) => {
            Some("an envelope can only be replaced")
        }
        ("body", "key", _) => Some("the body cannot be the name of a member"),
        (_, "key", Action::Child | Action::Sibling | Action::Remove) => Some("a name can only be replaced"),
        ("envelope" | "body" | "property" | "inline", _, Action::Remove) => {
            Some("what is removed is named by json-eval")
        }
        _ => None,
    };
    if let Some(why) = wrong {
        let message = format!("`enrich` cannot do this: {why}");
        let label = format!("source {kind}, target {onto}");
        return crate::failing::failing("bad-value", message, element.start_tag(), label, compiler);
    }
    let source = source(kind, action, from, compiler)?;
    let target = target(onto, action, to, compiler)?;
    Some(Box::new(Enrich { source, clone: flow::truth(from, "clone", true), target, action }))
}

/// A required attribute; `None` after a recorded error.
fn required<'e>(
    element: &'e Element,
    name: &str,
    compiler: &mut Compiler<'_>,
) -> Option<&'e config::Attribute> {
    let found = element.attribute(name);
    if found.is_none() {
        let message = format!("this `{}` needs the attribute `{name}`", element.local());
        compiler.error("missing-attribute", message, element.start_tag(), name.to_owned());
    }
    found
}

fn source(kind: &str, action: Action, from: &Element, compiler: &mut Compiler<'_>) -> Option<Source> {
    Some(match kind {
        "custom" => {
            let attribute = required(from, "xpath", compiler)?;
            let text = attribute.value.trim();
            if action == Action::Remove {
                let inner =
                    text.strip_prefix("json-eval(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(text);
                let mut paths = Vec::new();
                for path in split_paths(inner) {
                    let start =
                        attribute.value.find(path).unwrap_or(0) + path.len() - path.trim_start().len();
                    paths.push(compiler.json_path(path.trim(), start, attribute.value_span)?);
                }
                return Some(Source::Paths(paths));
            }
            Source::Custom(compiler.expression(from, "xpath")?)
        }
        "envelope" => Source::Envelope,
        "body" => Source::Body,
        "property" => Source::Property(Arc::from(&*required(from, "property", compiler)?.value)),
        "inline" => {
            if let Some(key) = from.attr("key") {
                return Some(Source::Entry(Arc::from(key)));
            }
            let (text, markup) = match from.elements().next() {
                Some(inside) => (inside.to_xml(), true),
                None => (from.text().trim().to_owned(), false),
            };
            if text.is_empty() {
                let place = from.start_tag();
                compiler.error(
                    "missing-element",
                    "inline content is missing",
                    place,
                    "an element, text or a key",
                );
                return None;
            }
            let pieces = pieces(&text, from, &compiler.services.settings);
            match pieces.as_slice() {
                [Piece::Text(text)] if markup => Source::Element(Arc::new(parsed(text)?)),
                _ => Source::Text { pieces, markup },
            }
        }
        _ => {
            let words = ["custom", "envelope", "body", "property", "inline"];
            compiler.none_of(from.attribute("type")?, "a kind of source", &words);
            return None;
        }
    })
}

fn target(onto: &str, action: Action, to: &Element, compiler: &mut Compiler<'_>) -> Option<Target> {
    Some(match onto {
        "custom" => {
            let attribute = required(to, "xpath", compiler)?;
            let expression = compiler.expression(to, "xpath")?;
            if action == Action::Replace && expression.json_path().is_some_and(JsonPath::is_root) {
                let place = attribute.value_span;
                compiler.error("bad-value", "the whole payload is the type body", place, "use type=\"body\"");
                return None;
            }
            match property_named(expression.source()) {
                Some((scope, name)) => Target::Property(scope, Arc::from(name)),
                None => Target::Custom(expression),
            }
        }
        "key" => {
            let attribute = required(to, "xpath", compiler)?;
            let text = attribute.value.trim();
            let text =
                text.strip_prefix("json-eval(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(text);
            let (parent, member) = text.rsplit_once('.').unwrap_or(("$", text));
            let start = attribute.value.find(text).unwrap_or(0);
            Target::Key(compiler.json_path(parent, start, attribute.value_span)?, member.to_owned())
        }
        "envelope" => Target::Envelope,
        "body" => Target::Body,
        "property" => {
            Target::Property(Scope::Default, Arc::from(&*required(to, "property", compiler)?.value))
        }
        _ => {
            let words = ["custom", "envelope", "body", "property", "key"];
            compiler.none_of(to.attribute("type")?, "a kind of target", &words);
            return None;
        }
    })
}

/// The property that an XPath of nothing but `get-property` with literals names.
fn property_named(xpath: &str) -> Option<(Scope, &str)> {
    let inside = xpath.trim().strip_prefix("get-property(")?.strip_suffix(')')?;
    match inside.split_once(',') {
        None => Some((Scope::Default, literal(inside)?)),
        Some((scope, name)) => {
            let scope = Scope::of(literal(scope)?)?;
            let writable = matches!(scope, Scope::Default | Scope::Axis2 | Scope::Operation);
            Some((scope, literal(name)?)).filter(|_| writable)
        }
    }
}

/// The text of an XPath literal.
fn literal(text: &str) -> Option<&str> {
    let text = text.trim();
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text.strip_prefix(quote)?.strip_suffix(quote).filter(|inside| !inside.contains(quote))
}

/// Splits at the commas between paths: not those in brackets, parentheses or quotes.
fn split_paths(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0usize, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[' | '(') => depth += 1,
            (None, ']' | ')') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Finds the expressions in braces: those without blanks, quotes, commas, brackets or markup inside.
fn pieces(text: &str, element: &Element, settings: &Settings) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mut start, mut from) = (0, 0);
    while let Some(open) = text[from..].find('{').map(|at| at + from) {
        from = open + 1;
        let Some(close) = text[from..].find('}').map(|at| at + from) else { break };
        let inside = &text[from..close];
        let may_be = !inside.is_empty()
            && inside.contains(['$', '/', '('])
            && !inside.contains(|c: char| c.is_whitespace() || "\"',[]{}<>".contains(c));
        if !may_be {
            continue;
        }
        if let Ok(expression) = Expression::compile(inside, element.scope(), element.text_span(), settings) {
            if open > start {
                pieces.push(Piece::Text(text[start..open].to_owned()));
            }
            pieces.push(Piece::Expression(expression));
            start = close + 1;
            from = start;
        }
    }
    if start < text.len() {
        pieces.push(Piece::Text(text[start..].to_owned()));
    }
    pieces
}

fn parsed(text: &str) -> Option<XmlValue> {
    let document = Document::parse(text.as_bytes().to_vec(), &ParseOptions::default()).ok()?;
    let root = document.document_element()?;
    Some(XmlValue { document: Arc::new(document), nodes: vec![root] })
}

impl Mediator for Enrich {
    fn need(&self) -> Need {
        Need::Whole
    }

    fn reason(&self) -> String {
        "edits the message".into()
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        if self.is_json(context) {
            self.json(context)?;
        } else {
            self.xml(context)?;
        }
        if matches!(self.target, Target::Body | Target::Envelope) {
            context.remove_axis2("NO_ENTITY_BODY");
        }
        Ok(Flow::Next)
    }
}

impl Enrich {
    /// Whether both sides speak JSON.
    fn is_json(&self, context: &Context) -> bool {
        let source = match &self.source {
            Source::Custom(expression) => expression.is_json(),
            Source::Paths(_) | Source::Body => true,
            Source::Envelope | Source::Element(_) | Source::Text { markup: true, .. } => false,
            Source::Property(name) => !matches!(context.properties.get(name), Some(Value::Xml(_))),
            Source::Text { .. } => true,
            Source::Entry(key) => {
                !matches!(context.plan().entry(key), Some(entry) if matches!(entry.value, Value::Xml(_)))
            }
        };
        let target = match &self.target {
            Target::Custom(expression) => expression.is_json(),
            Target::Envelope | Target::Property(Scope::Axis2 | Scope::Operation, _) => false,
            _ => true,
        };
        source && target && context.payload.is_json()
    }
}

fn invalid_target() -> Fault {
    Fault::new("Invalid Target object to be enrich.")
}

fn filled(
    pieces: &[Piece],
    context: &mut Context,
    insert: impl Fn(&str, &mut String),
) -> Result<String, Fault> {
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Expression(expression) => {
                insert(&expression.string(context)?.unwrap_or_default(), &mut out);
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::testing;

    const XML: &[(&str, &str)] = &[("Content-Type", "application/xml")];
    const SOAP: &str = r#" xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/""#;
    const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];

    fn run(inside: &str, headers: &[(&str, &str)], body: &str) -> Result<String, String> {
        let tested = testing::main(&crate::registry(testing::endpoints), inside);
        assert!(tested.found.is_empty(), "{:?}", tested.found);
        tested.run(headers, body).outcome()
    }

    #[test]
    fn a_child_that_does_not_fit_is_told() {
        for (target, inline) in [("$", "text"), ("$.s", "{\"x\":1}")] {
            let text = format!(
                "<enrich><source type='inline'>{inline}</source><target action='child' xpath='json-eval({target})'/></enrich>"
            );
            let (lines, out) =
                testing::logged("busbar_mediators::enrich::json", || run(&text, JSON, r#"{"s":"a"}"#));
            assert_eq!(out.as_deref(), Ok(r#"{"s":"a"}"#), "{text}");
            assert!(lines.iter().any(|line| line.contains("enrich does nothing")), "{text}: {lines:?}");
        }
    }

    #[test]
    fn xml_goes_from_place_to_place() {
        let body = "<r><a><i>1</i></a><b ref=\"x\"><n>old</n></b></r>";
        for (source, target, out) in [
            (
                "xpath='//i'",
                "xpath='//b' action='child'",
                "<r><a><i>1</i></a><b ref=\"x\"><n>old</n><i>1</i></b></r>",
            ),
            (
                "xpath='//i' clone='false'",
                "xpath='//b' action='child'",
                "<r><a/><b ref=\"x\"><n>old</n><i>1</i></b></r>",
            ),
            ("xpath='//i'", "xpath='//n'", "<r><a><i>1</i></a><b ref=\"x\"><i>1</i></b></r>"),
            (
                "xpath='//i'",
                "xpath='//a' action='sibling'",
                "<r><a><i>1</i></a><i>1</i><b ref=\"x\"><n>old</n></b></r>",
            ),
            ("xpath='//i/text()'", "xpath='//n/text()'", "<r><a><i>1</i></a><b ref=\"x\"><n>1</n></b></r>"),
            ("xpath='//i/text()'", "xpath='//b/@ref'", "<r><a><i>1</i></a><b ref=\"1\"><n>old</n></b></r>"),
            ("xpath='//i'", "xpath='//b/@ref'", "<r><a><i>1</i></a><b ref=\"1\"><n>old</n></b></r>"),
            ("xpath='string(//b/@ref)'", "xpath='//n'", "<r><a><i>1</i></a><b ref=\"x\"><n>x</n></b></r>"),
            ("xpath='//i'", "xpath='//n/text()'", "<r><a><i>1</i></a><b ref=\"x\"><n><i>1</i></n></b></r>"),
            (
                "xpath='//i/text()' clone='false'",
                "xpath='//n'",
                "<r><a><i>1</i></a><b ref=\"x\"><n>1</n></b></r>",
            ),
            (
                "xpath='//i' clone='false'",
                "xpath='//b/@ref'",
                "<r><a><i>1</i></a><b ref=\"1\"><n>old</n></b></r>",
            ),
            ("xpath='//none'", "xpath='//n'", "<r><a><i>1</i></a><b ref=\"x\"><n>old</n></b></r>"),
            ("xpath='//b/@ref'", "xpath='//n'", "<r><a><i>1</i></a><b ref=\"x\"><n>old</n></b></r>"),
            ("xpath='//i'", "type='body'", "<i>1</i>"),
            (
                "xpath='//i'",
                "type='body' action='child'",
                "<r><a><i>1</i></a><b ref=\"x\"><n>old</n></b><i>1</i></r>",
            ),
        ] {
            let text = format!("<enrich><source {source}/><target {target}/></enrich>");
            assert_eq!(run(&text, XML, body).as_deref(), Ok(out), "{text}");
        }
    }

    #[test]
    fn nothing_to_add_leaves_a_property_as_it_was() {
        let held = "<property name='p' type='OM'><l xmlns=''><i>1</i></l></property>";
        for (target, kept) in [("action='child'", "<l><i>1</i></l>"), ("", "")] {
            for source in ["xpath='//none'", "xpath='//@k'", "type='property' property='none'"] {
                let text = format!(
                    "{held}<enrich><source {source}/><target type='property' property='p' {target}/></enrich>"
                );
                let tested = testing::main(&crate::registry(testing::endpoints), &text);
                assert_eq!(tested.run(XML, "<r k='1'/>").property("p").as_deref(), Some(kept), "{text}");
            }
        }
    }

    #[test]
    fn the_body_of_an_envelope_gets_another_content() {
        let envelope = format!(
            "<soapenv:Envelope{SOAP}><soapenv:Header><h/></soapenv:Header><soapenv:Body><r><i>1</i><i>2</i></r></soapenv:Body></soapenv:Envelope>"
        );
        let soap = &[("Content-Type", "text/xml"), ("SOAPAction", "x")];
        for clone in ["true", "false"] {
            let text = format!(
                "<enrich><source xpath='//i' clone='{clone}'/><target xpath='$body'/></enrich>\
                 <property name='n' expression='concat(count($header/*), count($body/*))'/>"
            );
            assert_eq!(run(&text, XML, "<r><i>1</i></r>").as_deref(), Ok("<i>1</i>"), "{text}");
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert_eq!(tested.run(soap, &envelope).property("n").as_deref(), Some("12"), "{text}");
        }
    }

    #[test]
    fn inline_content_and_properties() {
        for (text, headers, body, out) in [
            (
                "<enrich><source type='inline'><x xmlns=''><y>{//t}</y></x></source><target type='body' action='child'/></enrich>",
                XML,
                "<r><t>1</t></r>",
                "<r><t>1</t><x><y>1</y></x></r>",
            ),
            (
                "<enrich><source type='inline'>so {//t} it</source><target xpath='//t'/></enrich>",
                XML,
                "<r><t>1</t></r>",
                "<r><t>so 1 it</t></r>",
            ),
            (
                "<enrich><source type='inline'>{\"a\":1}</source><target type='body'/></enrich>",
                XML,
                "<r/>",
                r#"{"a":1}"#,
            ),
            (
                "<enrich><source type='body'/><target type='property' property='p'/></enrich><enrich><source type='property' property='p'/><target xpath='//t'/></enrich>",
                XML,
                "<r><t/></r>",
                "<r><r><t/></r></r>",
            ),
            (
                "<enrich><source type='envelope'/><target type='property' property='p'/></enrich><payloadFactory><format><n xmlns=''/></format></payloadFactory>\
              <enrich><source type='property' property='p'/><target type='envelope'/></enrich>",
                XML,
                "<r><t/></r>",
                "<r><t/></r>",
            ),
            (
                "<enrich><source type='inline' key='e'/><target type='body'/></enrich><!--top--><localEntry key='e'><q xmlns=''/></localEntry>",
                XML,
                "<r/>",
                "<q/>",
            ),
            (
                "<enrich><source type='inline' key='e'/><target xpath='json-eval($.a)'/></enrich><!--top--><localEntry key='e'>[1]</localEntry>",
                JSON,
                r#"{"a":0}"#,
                r#"{"a":[1]}"#,
            ),
            (
                "<enrich><source type='inline'>{\"id\":\"{json-eval($.a)}\"}</source><target xpath='json-eval($.b)'/></enrich>",
                JSON,
                r#"{"a":"x\"y","b":0}"#,
                r#"{"a":"x\"y","b":{"id":"x\"y"}}"#,
            ),
        ] {
            assert_eq!(run(text, headers, body).as_deref(), Ok(out), "{text}");
        }
    }

    #[test]
    fn json_is_edited_as_json() {
        let body = r#"{"a":1,"l":[1],"o":{"z":1},"t":"txt"}"#;
        for (source, target, out) in [
            (
                "xpath='json-eval($.t)'",
                "xpath='json-eval($.a)'",
                r#"{"a":"txt","l":[1],"o":{"z":1},"t":"txt"}"#,
            ),
            (
                "xpath='json-eval($.t)' clone='false'",
                "xpath='json-eval($.a)'",
                r#"{"a":"txt","l":[1],"o":{"z":1}}"#,
            ),
            (
                "xpath='json-eval($.t)'",
                "xpath='json-eval($.l)' action='child'",
                r#"{"a":1,"l":[1,"txt"],"o":{"z":1},"t":"txt"}"#,
            ),
            (
                "xpath='json-eval($.o)'",
                "xpath='json-eval($)' action='child'",
                r#"{"a":1,"l":[1],"o":{"z":1},"t":"txt","z":1}"#,
            ),
            ("xpath='json-eval($.l[*])'", "type='body'", "[1]"),
            ("xpath='json-eval($.t)'", "type='body'", body),
            ("xpath='json-eval($.t)'", "type='body' action='sibling'", body),
            ("xpath='json-eval($.l[0],$.o)'", "type='body' action='remove'", r#"{"a":1,"l":[],"t":"txt"}"#),
            ("xpath='json-eval($)'", "type='body' action='remove'", "{}"),
            (
                "xpath='json-eval($.t)'",
                "type='key' xpath='json-eval($.o.z)'",
                r#"{"a":1,"l":[1],"o":{"txt":1},"t":"txt"}"#,
            ),
        ] {
            let text = format!("<enrich><source {source}/><target {target}/></enrich>");
            assert_eq!(run(&text, JSON, body).as_deref(), Ok(out), "{text}");
        }
        let tested = testing::main(
            &crate::registry(testing::endpoints),
            "<enrich><source xpath='json-eval($.t)'/><target type='property' property='p'/></enrich>",
        );
        assert_eq!(tested.run(JSON, body).property("p").as_deref(), Some("\"txt\""));
    }

    #[test]
    fn what_is_hardly_meant_in_a_path_is_said_and_runs() {
        for (text, remarked) in [
            (
                "<enrich><source xpath='json-eval($.t)'/><target type='key' xpath='json-eval($.l[0]].z)'/></enrich>",
                "`$.l[0]]`",
            ),
            (
                "<enrich><source xpath='json-eval($.t, $.l[0]])'/><target type='body' action='remove'/></enrich>",
                "`$.l[0]]`",
            ),
            ("<foreach collection='${payload.l[0]]}'><sequence/></foreach>", "`$.l[0]]`"),
            ("<foreach collection='${vars.v.l[0]]}'><sequence/></foreach>", "`$.l[0]]`"),
            ("<foreach collection='json-eval($.l[0]])'><sequence/></foreach>", "`json-eval($.l[0]])`"),
        ] {
            let tested = testing::main(&crate::registry(testing::endpoints), text);
            assert!(
                tested.reports(&format!("{remarked} is hardly what was meant")),
                "{text}: {:?}",
                tested.found
            );
            assert_eq!(tested.found.len(), 1, "{text}: {:?}", tested.found);
        }
    }

    #[test]
    fn what_a_property_holds_is_changed_where_it_is() {
        let kept = "<enrich><source type='inline'><l xmlns=''><a n='0'>x</a></l></source><target type='property' property='p'/></enrich>";
        let om = "<property name='p' scope='operation' type='OM'><l xmlns=''/></property>";
        for (before, scope, source, target, after) in [
            (kept, "", "xpath='//i'", "action='child' xpath='$ctx:p'", "<l><a n=\"0\">x</a><i>1</i></l>"),
            (kept, "", "xpath='//i'", "action='child' xpath='$ctx:p/a'", "<l><a n=\"0\">x<i>1</i></a></l>"),
            (kept, "", "xpath='//i'", "action='sibling' xpath='$ctx:p/a'", "<l><a n=\"0\">x</a><i>1</i></l>"),
            (kept, "", "xpath='//i'", "xpath='$ctx:p//a'", "<l><i>1</i></l>"),
            (kept, "", "xpath='//i/text()'", "xpath='$ctx:p/a/@n'", "<l><a n=\"1\">x</a></l>"),
            (kept, "", "xpath='//i/text()'", "xpath='$ctx:p'", "<l><a n=\"0\">x</a>1</l>"),
            (kept, "", "xpath='//none'", "xpath='$ctx:p'", "<l><a n=\"0\">x</a></l>"),
            (kept, "", "xpath='//i'", "xpath='get-property(\"p\")'", "<i>1</i>"),
            (
                kept,
                "",
                "xpath='//i'",
                "action='child' xpath='get-property(\"p\")'",
                "<l><a n=\"0\">x</a><i>1</i></l>",
            ),
            (
                kept,
                "",
                "xpath='//i'",
                "action='child' xpath='get-property(\"new\")'",
                "<l><a n=\"0\">x</a></l>",
            ),
            (
                om,
                "operation",
                "xpath='//i'",
                "action='child' xpath='get-property(\"operation\", \"p\")'",
                "<l><i>1</i></l>",
            ),
        ] {
            let read = if scope.is_empty() { "$ctx:p".to_owned() } else { format!("${scope}:p") };
            let text = format!(
                "{before}<enrich><source {source}/><target {target}/></enrich>\
                 <enrich><source xpath='{read}'/><target type='body'/></enrich>"
            );
            assert_eq!(run(&text, XML, "<r><i>1</i></r>").as_deref(), Ok(after), "{source} {target}");
        }
        for target in
            ["xpath='$ctx:p'", "action='sibling' xpath='$ctx:p'", "xpath='$ctx:p/none'", "xpath='$ctx:none'"]
        {
            let text = format!("{kept}<enrich><source xpath='//i'/><target {target}/></enrich>");
            let fault = run(&text, XML, "<r><i>1</i></r>").expect_err(target);
            assert!(fault.contains("Invalid Target"), "{target}: {fault}");
        }
    }

    #[test]
    fn comments_and_processing_instructions_are_no_targets() {
        let body = "<r><!--c--><?pi d?><i/></r>";
        let held = "<enrich><source type='body'/><target type='property' property='p'/></enrich>";
        for (target, action) in [
            ("//comment()", "replace"),
            ("//processing-instruction()", "child"),
            ("//comment()", "sibling"),
            ("$ctx:p/comment()", "replace"),
            ("$ctx:p/processing-instruction('pi')", "child"),
        ] {
            for source in ["<source type='inline'><x xmlns=''/></source>", "<source type='inline'>t</source>"]
            {
                let text =
                    format!("{held}<enrich>{source}<target xpath=\"{target}\" action='{action}'/></enrich>");
                let fault = run(&text, XML, body).expect_err(target);
                assert!(fault.contains("Invalid Target"), "{target}: {fault}");
            }
        }
    }

    #[test]
    fn a_property_is_named_by_get_property_and_what_it_only_holds_stays_in_the_message() {
        let held = "<property name='p' type='OM'><w xmlns=''/></property>";
        for (before, source, target, payload, scope, after) in [
            (
                "",
                "xpath='//a' clone='false'",
                "type='property' property='p'",
                "<r><a>1</a></r>",
                Scope::Default,
                "1",
            ),
            (
                "",
                "type='body' clone='false'",
                "type='property' property='p'",
                "<r><a>1</a></r>",
                Scope::Default,
                "<r><a>1</a></r>",
            ),
            (
                held,
                "xpath='//a' clone='false'",
                "type='property' property='p' action='child'",
                "<r/>",
                Scope::Default,
                "<w><a>1</a></w>",
            ),
            ("", "xpath='//a'", "xpath=\"get-property('p')\"", "<r><a>1</a></r>", Scope::Default, "1"),
            (
                held,
                "xpath='//a'",
                "xpath=\"get-property('p')\" action='child'",
                "<r><a>1</a></r>",
                Scope::Default,
                "<w><a>1</a></w>",
            ),
            ("", "xpath='//a'", "xpath=\"get-property('axis2', 'p')\"", "<r><a>1</a></r>", Scope::Axis2, "1"),
            (
                "",
                "type='inline'>so<",
                "xpath=\"get-property('operation','p')\"",
                "<r><a>1</a></r>",
                Scope::Operation,
                "so",
            ),
        ] {
            let source = match source.strip_suffix("<") {
                Some(open) => format!("<source {open}</source>"),
                None => format!("<source {source}/>"),
            };
            let text = format!("{before}<enrich>{source}<target {target}/></enrich>");
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert!(tested.found.is_empty(), "{:?}", tested.found);
            let mut end = tested.run(XML, "<r><a>1</a></r>");
            let value = scope.get(&end.context, "p").map(|value| value.to_string().replace(SOAP, ""));
            assert_eq!((end.payload().as_str(), value.as_deref()), (payload, Some(after)), "{text}");
        }
        let fault = run(
            "<enrich><source xpath='//a'/><target xpath=\"get-property('transport','p')\"/></enrich>",
            XML,
            "<r><a/></r>",
        );
        assert!(fault.is_err(), "{fault:?}");
    }

    #[test]
    fn what_has_no_place_in_a_property_leaves_it_as_it_was() {
        for (name, before, source, action, headers, body, after) in [
            (
                "json",
                "<property name='p' value='[7]'/>",
                "xpath='json-eval($.a)'",
                "sibling",
                JSON,
                r#"{"a":1}"#,
                "[7]",
            ),
            (
                "text",
                "<property name='p' type='OM'><w xmlns=''><x/></w></property>",
                "xpath='//a/text()'",
                "child",
                XML,
                "<r><a>1</a></r>",
                "<w><x/></w>",
            ),
            (
                "node",
                "<property name='p' type='OM'><w xmlns=''><x/></w></property>",
                "xpath='//a'",
                "child",
                XML,
                "<r><a>1</a></r>",
                "<w><x/><a>1</a></w>",
            ),
        ] {
            let text = format!(
                "{before}<enrich><source {source}/><target type='property' property='p' action='{action}'/></enrich>"
            );
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert_eq!(tested.run(headers, body).property("p").as_deref(), Some(after), "{name}");
        }
    }

    #[test]
    fn what_does_not_fit_faults_and_nothing_panics() {
        for (source, target, headers, body) in [
            ("xpath='//a'", "xpath='//none'", XML, "<r><a/></r>"),
            ("xpath='//a'", "xpath='//b'", XML, "<r"),
            ("type='property' property='p'", "type='envelope'", XML, "<r/>"),
            ("xpath='//a'", "type='key' xpath='$.a'", XML, "<r><a/></r>"),
            ("xpath='json-eval($.none)'", "xpath='json-eval($.a)'", JSON, r#"{"a":1}"#),
            ("xpath='json-eval($.a)'", "xpath='json-eval($.none)'", JSON, r#"{"a":1}"#),
            ("xpath='json-eval($.none)'", "type='body' action='remove'", JSON, r#"{"a":1}"#),
            ("xpath='json-eval($.o)'", "type='key' xpath='$.a'", JSON, r#"{"a":1,"o":{}}"#),
            ("type='property' property='none'", "type='body'", JSON, r#"{"a":1}"#),
            ("xpath='//a'", "xpath='json-eval($.a)'", JSON, r#"{"a":1}"#),
            ("xpath='json-eval($.a)'", "xpath='json-eval($.a)'", JSON, "{"),
        ] {
            let text = format!("<enrich><source {source}/><target {target}/></enrich>");
            let result = run(&text, headers, body);
            assert!(result.is_err(), "{text}: {result:?}");
        }
        for body in ["", "<r/>"] {
            let _ = run("<enrich><source xpath='/*'/><target xpath='/*/*' /></enrich>", XML, body);
            let _ = run(
                "<enrich><source type='body'/><target xpath='//x|/*' action='child'/></enrich>",
                XML,
                body,
            );
        }
    }

    #[test]
    fn mistakes_are_found_when_the_configuration_loads() {
        for text in [
            "<enrich/>",
            "<enrich><source/><target type='body'/></enrich>",
            "<enrich><source type='inline'/><target type='body'/></enrich>",
            "<enrich><source type='body'/><target type='body'/></enrich>",
            "<enrich><source type='envelope'/><target type='body'/></enrich>",
            "<enrich><source xpath='//a'/><target type='inline'/></enrich>",
            "<enrich><source xpath='//a'/><target type='body' action='add'/></enrich>",
            "<enrich><source xpath='json-eval($.a)'/><target xpath='json-eval($)'/></enrich>",
            "<enrich><source type='property'/><target type='body'/></enrich>",
            "<enrich><source type='thing'/><target type='body'/></enrich>",
        ] {
            let tested = testing::main(&crate::registry(testing::endpoints), text);
            assert!(tested.found.iter().any(|found| !found.starts_with("unknown-sequence")), "{text}");
        }
    }

    #[test]
    fn paths_are_split_between_not_inside() {
        assert_eq!(
            split_paths("$.a,$.b['x,y'],$.c[?(@.d in [1,2])]"),
            ["$.a", "$.b['x,y']", "$.c[?(@.d in [1,2])]"]
        );
    }

    #[test]
    fn a_text_that_is_no_xml_has_no_children() {
        let enrich =
            "<enrich><source type='body'/><target type='property' property='p' action='child'/></enrich>";
        for (before, wanted) in [
            ("<property name='p' value='a'/>", None),
            ("<property name='p' value='&lt;w/>'/>", Some("<w><r/></w>")),
            ("<property name='p' value=' '/>", Some("<r/>")),
            ("", Some("<r/>")),
        ] {
            let flow = testing::main(&crate::registry(testing::endpoints), &format!("{before}{enrich}"));
            let end = flow.run(&[("Content-Type", "application/xml")], "<r/>");
            assert_eq!(end.fault().is_none(), wanted.is_some(), "{before}: {:?}", end.fault());
            if let Some(wanted) = wanted {
                assert_eq!(end.property("p").as_deref(), Some(wanted), "{before}");
            } else {
                assert_eq!(end.property("p").as_deref(), Some("a"));
            }
        }
    }
}
