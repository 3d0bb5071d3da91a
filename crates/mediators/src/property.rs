//! `property`: sets or removes a property of one of the scopes.

use crate::support::{can_be_sent, set_header};
use crate::xml_value;
use config::Element;
use diagnostics::Span;
use flow::library::{Scope, set_system};
use flow::{
    Attribute, Children, Compiler, Context, Definition, Expression, Family, Fault, Flow, KeyValue, Mediator,
    Need, Page, Pattern, Values,
};
use message::Value;
use std::sync::Arc;

/// `<property name="…" value="…" | expression="…" scope="…" type="…" …/>`
pub const DEFINITION: Definition = Definition {
    name: "property",
    summary: "Sets or removes a property of the message; what an expression cannot find leaves it as it was.",
    attributes: &[
        Attribute::required("name", Values::Key, "the name, or an expression in braces that gives it"),
        Attribute::optional("value", Values::Text, "the value; wins over a child element and `expression`"),
        Attribute::optional("expression", Values::Expression, "gives the value"),
        Attribute::optional("scope", Values::OneOf(SCOPES), "where the property lives").or("default"),
        Attribute::optional("type", Values::OneOf(TYPES), "what the value is converted to").or("STRING"),
        Attribute::optional("action", Values::Word(&["set", "remove"]), "what to do").or("set"),
        Attribute::optional(
            "pattern",
            Values::Regex,
            "the whole text must match it, else the value is empty",
        ),
        Attribute::optional("group", Values::Integer, "the group of `pattern` that is the value").or("0"),
    ],
    children: Children::Elements(&["*"]),
    page: PAGE,
    compile: |element, compiler| {
        Property::compile(element, compiler).map(|property| Box::new(property) as Box<dyn Mediator>)
    },
};

const PAGE: Page = Page {
    family: Family::Core,
    semantics: "The value is `value`, else the element inside, else that of the expression. It is converted to the `type`: a `value` when the configuration loads, the others for
each message. `BOOLEAN` is true for `true`, `yes` and `1`; `INTEGER` and `SHORT` cut off the fraction of a calculation, `LONG` refuses it; `OM` is XML, a
copy of the selected element; `JSON` is JSON, or a JSON string if the text is not JSON. With a `pattern`, the value is the `group` of the match if the whole text matches,
else it is empty.

Scopes: `default` properties belong to the message, and its answer has them too; read them with `$ctx:NAME`. `transport` properties are headers: of the request
that `call` or `send` makes, or of the answer; line breaks in them become blanks. `axis2` properties control the transport (`HTTP_SC`, `messageType`, …) and are removed when the
backend answers; `axis2-client` are options of the next call. `operation` properties are shared by request and answer, `system` ones by the whole
process. `analytics` properties are kept with those of axis2, `trace` ones nowhere, and `registry` writes the resource `name`, or with
`KEY@NAME` a property of it: files below the registry's root, each written as a whole, within the settings `limits.registry_size` and `limits.registry_files`.

An expression that finds nothing sets an empty text if it is a path, `json-eval` or `${…}`. If it names a property or a header that does not exist, the value is
null: then a `default` property keeps its value, a header becomes empty, and properties of the other scopes are removed.

`RESPONSE` in default scope, with the value `true`, makes the message a response. `messageType` in axis2 scope is the content type as well.",
    inside: &[],
    needs: &[
        (Need::Nothing, "a `value`"),
        (Need::Headers, "an expression on properties and headers"),
        (Need::Whole, "an expression on the body"),
    ],
    refused: &[
        ("<property name=\"p\"/>", "`property` needs a value"),
        ("<property value=\"1\"/>", "`property` needs the attribute `name`"),
        ("<property name=\"p\" value=\"1\" scope=\"axis\"/>", "`scope` cannot be `axis`"),
        ("<property name=\"p\" value=\"1.5\" type=\"INTEGER\"/>", "`1.5` is not a whole number of this type"),
        ("<property name=\"p\" value=\"1\" group=\"1\"/>", "`group` has no meaning here"),
        ("<property name=\"p\" value=\"1\" pattern=\"(\"/>", "not a valid regular expression"),
        ("<property name=\"a b\" value=\"1\" scope=\"transport\"/>", "`a b` is not a header name"),
    ],
    faults: &[
        (
            "0",
            "the value cannot have its type, or the registry resource cannot be written",
        ),
        (
            "601000",
            "the expression reads the body, and it is not what its content type says, or larger than a flow may hold",
        ),
    ],
};

/// `synapse` is another name of `default`.
const SCOPES: &[&str] = &[
    "default",
    "synapse",
    "axis2",
    "axis2-client",
    "transport",
    "operation",
    "registry",
    "system",
    "trace",
    "analytics",
];

const TYPES: &[&str] = &["STRING", "INTEGER", "BOOLEAN", "DOUBLE", "FLOAT", "LONG", "SHORT", "OM", "JSON"];

/// What a text is converted to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    String,
    /// INTEGER and SHORT, with their bounds.
    Integer(i64, i64),
    Long,
    Boolean,
    Double,
    Float,
    Xml,
    Json,
}

/// Where the value comes from.
enum Source {
    Literal(Value),
    Expression(Expression, Type),
}

/// A `property` element, also inside of `propertyGroup`.
pub(crate) struct Property {
    name: KeyValue,
    scope: Scope,
    /// `None`: remove.
    source: Option<Source>,
    pick: Option<(Pattern, usize)>,
    span: Span,
}

/// Reports an attribute with another value than these.
fn one_of(element: &Element, name: &str, words: &[&str], compiler: &mut Compiler<'_>) -> Option<()> {
    match element.attribute(name) {
        Some(attribute) if !words.contains(&attribute.value.trim()) => {
            let message = format!("`{name}` cannot be `{}`", attribute.value.trim());
            let expected = words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
            compiler.error("bad-value", message, attribute.value_span, format!("expected {expected}"));
            None
        }
        _ => Some(()),
    }
}

impl Property {
    pub(crate) fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Option<Property> {
        let name = compiler.key_value(element, "name")?;
        if name.literal().is_some_and(str::is_empty) {
            let span = element.value_span("name");
            compiler.error("empty-name", "the property has no name", span, "expected a name");
            return None;
        }
        // Those of the mediator itself are looked at before; in a group nobody has done so.
        for (name, words) in [("scope", SCOPES), ("type", TYPES)] {
            one_of(element, name, words, compiler)?;
        }
        let span = element.start_tag();
        let scope = element.attr("scope").map_or(Some(Scope::Default), |scope| Scope::of(scope.trim()))?;
        if element.attr("action").map(str::trim) == Some("remove") {
            return Some(Property { name, scope, source: None, pick: None, span });
        }
        if scope == Scope::Transport
            && let Some(literal) = name.literal()
            && !can_be_sent(literal, element.value_span("name"), compiler)?
        {
            return Some(Property { name, scope, source: None, pick: None, span });
        }
        let kind = type_of(element.attr("type").map_or("STRING", str::trim));
        let source = if let Some(value) = element.attribute("value") {
            warn_of_no_boolean(value, kind, compiler);
            warn_of_no_json(value, kind, compiler);
            match convert(&value.value, kind, false) {
                Ok(value) => Source::Literal(value?),
                Err(why) => {
                    compiler.error("bad-value", why, value.value_span, "it is converted when this is loaded");
                    return None;
                }
            }
        } else if let Some(child) = xml_value::inside(element) {
            match xml_value::of_element(child) {
                Ok(value) => Source::Literal(value),
                Err(why) => {
                    compiler.error("bad-value", why, child.start_tag(), "this is the value");
                    return None;
                }
            }
        } else if element.attr("expression").is_some() {
            Source::Expression(compiler.expression(element, "expression")?, kind)
        } else {
            compiler.error(
                "missing-attribute",
                "`property` needs a value",
                span,
                "expected `value`, `expression` or an element inside",
            );
            return None;
        };
        config::read::stray_text(element, compiler.diagnostics);
        let group = match element.attribute("group") {
            None => 0,
            Some(group) => match (group.value.trim().parse(), element.attr("pattern")) {
                (Ok(number), Some(_)) => number,
                (_, pattern) => {
                    let why = if pattern.is_none() { "there is no `pattern`" } else { "it is negative" };
                    compiler.error("bad-value", "`group` has no meaning here", group.value_span, why);
                    return None;
                }
            },
        };
        let pick = match element.attr("pattern") {
            Some(_) => {
                let pattern = compiler.pattern(element, "pattern")?;
                if group > pattern.groups() {
                    let message = format!("the pattern has no group {group}: the value is always empty");
                    let label = format!("its groups: {}; 0 is all of it", pattern.groups());
                    compiler.warning("bad-value", message, element.value_span("group"), label);
                }
                Some((pattern, group))
            }
            None => None,
        };
        Some(Property { name, scope, source: Some(source), pick, span })
    }

    /// Sets or removes it.
    pub(crate) fn apply(&self, context: &mut Context) -> Result<(), Fault> {
        let Some(name) = self.name.resolve(context)? else {
            return Err(Fault::new("the name of the property is null").at(self.span));
        };
        let Some(source) = &self.source else {
            remove(self.scope, &name, context);
            return Ok(());
        };
        let value = match source {
            Source::Literal(value) => Some(value.clone()),
            Source::Expression(expression, kind) => evaluate(expression, *kind, context)?,
        };
        let value = match (value, &self.pick) {
            (Some(Value::String(text)), Some((pattern, group))) => {
                pattern.group(&text, *group)?.map(Value::from)
            }
            (value, _) => value,
        };
        let Some(value) = value else {
            match self.scope {
                // A default property keeps what it had; a header becomes empty.
                Scope::Default => {}
                Scope::Transport => {
                    return set(self.scope, name, Value::from(""), context)
                        .map_err(|fault| fault.at(self.span));
                }
                Scope::Registry => {
                    let why = format!("The registry resource {name} cannot be written: there is no value");
                    return Err(Fault::new(why).at(self.span));
                }
                scope => remove(scope, &name, context),
            }
            return Ok(());
        };
        set(self.scope, name, value, context).map_err(|fault| fault.at(self.span))
    }
}

/// Sets a property.
///
/// # Errors
/// The registry cannot be written.
pub(crate) fn set(scope: Scope, name: Arc<str>, value: Value, context: &mut Context) -> Result<(), Fault> {
    match scope {
        Scope::Default => {
            if &*name == "RESPONSE" && value.as_str().is_some_and(|text| text.eq_ignore_ascii_case("true")) {
                context.response = true;
            }
            context.properties.set(name, value);
        }
        Scope::Transport => set_header(&name, &value.to_string(), context),
        Scope::Registry => {
            let text = value.to_string();
            context.plan().write_registry(&name, &text).map_err(|why| {
                Fault::new(format!("The registry resource {name} cannot be written: {why}"))
            })?;
        }
        Scope::Axis2 => {
            if matches!(&*name, "SET_ROLLBACK_ONLY" | "ACKNOWLEDGE" | "SET_REQUEUE_ON_ROLLBACK") {
                context.set_operation(Arc::clone(&name), Some(value.clone()));
            }
            context.set_axis2(name, value);
        }
        Scope::Axis2Client => context.client.set(name, value),
        Scope::Operation => context.set_operation(name, Some(value)),
        Scope::System => set_system(&name, value),
        Scope::Analytics => context.set_axis2(format!("ANALYTICS_METADATA.{name}"), value),
        // Trace is recorded nowhere; the others cannot be written.
        _ => {}
    }
    Ok(())
}

/// Removes a property.
pub(crate) fn remove(scope: Scope, name: &str, context: &mut Context) {
    match scope {
        Scope::Default => {
            context.properties.remove(name);
        }
        Scope::Axis2 => context.remove_axis2(name),
        Scope::Axis2Client => {
            context.client.remove(name);
        }
        Scope::Transport => {
            context.remove_header(name);
        }
        Scope::Operation => context.set_operation(name, None),
        Scope::Analytics => context.remove_axis2(format!("ANALYTICS_METADATA.{name}")),
        _ => {}
    }
}

fn evaluate(expression: &Expression, kind: Type, context: &mut Context) -> Result<Option<Value>, Fault> {
    let fault = |why: String| {
        Fault::new(format!("The value of {} cannot be used: {why}", expression.source()))
            .at(expression.span())
    };
    if kind == Type::Xml {
        return match expression.value(context)? {
            None => Ok(None),
            Some(Value::Xml(xml)) if !xml.nodes.is_empty() => {
                let first = message::XmlValue::copy_of(&xml.document, &xml.nodes[..1]);
                Ok(Some(Value::Xml(Arc::new(first))))
            }
            Some(other) => xml_value::parse(&other.to_string()).map(Some).map_err(fault),
        };
    }
    match (expression.string(context)?, kind) {
        (Some(text), _) => convert(&text, kind, true).map_err(fault),
        (None, Type::Boolean) => Ok(Some(Value::Boolean(false))),
        (None, Type::Integer(..) | Type::Long | Type::Double | Type::Float) => {
            Err(fault("it has no value, which is not a number".to_owned()))
        }
        (None, _) => Ok(None),
    }
}

/// A text that is neither true nor false counts as false.
fn warn_of_no_boolean(value: &config::Attribute, kind: Type, compiler: &mut Compiler<'_>) {
    let words = ["true", "false", "yes", "no", "1", "0"];
    let text = value.value.trim();
    if matches!(kind, Type::Boolean) && !words.iter().any(|word| text.eq_ignore_ascii_case(word)) {
        let message = format!("`{text}` counts as false");
        compiler.warning("bad-value", message, value.value_span, "expected `true` or `false`");
    }
}

/// A text that begins as JSON and is none becomes a JSON string.
fn warn_of_no_json(value: &config::Attribute, kind: Type, compiler: &mut Compiler<'_>) {
    let text = value.value.trim();
    if matches!(kind, Type::Json)
        && text.starts_with(['{', '[', '"'])
        && !config::is_unresolved(text)
        && let Err(why) = serde_json::from_str::<serde_json::Value>(text)
    {
        let message = format!("`{text}` is not JSON: it becomes a JSON string");
        compiler.warning("bad-value", message, value.value_span, why.to_string());
    }
}

fn type_of(name: &str) -> Type {
    match name {
        "INTEGER" => Type::Integer(i32::MIN.into(), i32::MAX.into()),
        "SHORT" => Type::Integer(i16::MIN.into(), i16::MAX.into()),
        "LONG" => Type::Long,
        "BOOLEAN" => Type::Boolean,
        "DOUBLE" => Type::Double,
        "FLOAT" => Type::Float,
        "OM" => Type::Xml,
        "JSON" => Type::Json,
        _ => Type::String,
    }
}

/// A text as a value of a type; `None` is null. `computed`: the text is an expression's.
fn convert(text: &str, kind: Type, computed: bool) -> Result<Option<Value>, String> {
    let integer = |low: i64, high: i64| {
        let number = text.parse::<i64>().ok().filter(|number| (low..=high).contains(number));
        number.ok_or_else(|| format!("`{text}` is not a whole number of this type"))
    };
    Ok(Some(match kind {
        Type::String => Value::from(text),
        // The result of a calculation may have a fraction, which is cut off.
        Type::Integer(low, high) if computed && text.contains('.') => match text.parse::<f64>() {
            Ok(number) => Value::Integer((number as i64).clamp(low, high)),
            Err(_) => return Err(format!("`{text}` is not a number")),
        },
        Type::Integer(low, high) => Value::Integer(integer(low, high)?),
        Type::Long => Value::Integer(integer(i64::MIN, i64::MAX)?),
        Type::Boolean => {
            let truths = ["true", "yes", "1"];
            Value::Boolean(truths.iter().any(|truth| text.trim().eq_ignore_ascii_case(truth)))
        }
        Type::Double | Type::Float => match text.trim() {
            "NaN" => Value::JavaDouble(f64::NAN),
            "Infinity" | "+Infinity" => Value::JavaDouble(f64::INFINITY),
            "-Infinity" => Value::JavaDouble(f64::NEG_INFINITY),
            // Rust reads more words than Java does.
            other if other.bytes().any(|b| b.is_ascii_alphabetic() && !matches!(b, b'e' | b'E')) => {
                return Err(format!("`{text}` is not a number"));
            }
            other => {
                let number: f64 = other.parse().map_err(|_| format!("`{text}` is not a number"))?;
                // A float has some seven digits, whatever was written.
                let float = || (number as f32).to_string().parse().unwrap_or(number);
                Value::JavaDouble(if matches!(kind, Type::Float) { float() } else { number })
            }
        },
        Type::Xml => xml_value::parse(text)?,
        Type::Json => Value::Json(Arc::new(
            serde_json::from_str(text).unwrap_or_else(|_| serde_json::Value::from(text)),
        )),
    }))
}

impl Mediator for Property {
    fn need(&self) -> Need {
        let value = match &self.source {
            Some(Source::Expression(expression, _)) => expression.need(),
            _ => Need::Nothing,
        };
        value.max(self.name.need())
    }

    fn reason(&self) -> String {
        match &self.source {
            Some(Source::Expression(expression, _)) => expression.reason(),
            _ => String::new(),
        }
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        self.apply(context)?;
        Ok(Flow::Next)
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing::{self, Ended, Tested};
    use message::Value;

    fn flow(text: &str) -> Tested {
        testing::main(&registry(testing::endpoints), text)
    }

    fn run(text: &str) -> Ended {
        let tested = flow(text);
        assert!(tested.found.is_empty(), "{text}: {tested:?}");
        let headers = [("Content-Type", "application/xml"), ("X-In", "in")];
        tested.run(&headers, "<o><n>3.7</n><k a='1'>x</k><k>y</k><e><f/></e></o>")
    }

    #[test]
    fn values_are_converted() {
        for (attributes, wanted) in [
            (r#"value="1""#, r#"String("1")"#),
            (r#"value="""#, r#"String("")"#),
            (r#"value="201" type="INTEGER""#, "Integer(201)"),
            (r#"value="-3" type="SHORT""#, "Integer(-3)"),
            (r#"value="yes" type="BOOLEAN""#, "Boolean(true)"),
            (r#"value="1" type="BOOLEAN""#, "Boolean(true)"),
            (r#"value="no" type="BOOLEAN""#, "Boolean(false)"),
            (r#"value="0" type="BOOLEAN""#, "Boolean(false)"),
            (r#"value="1e3" type="DOUBLE""#, "JavaDouble(1000.0)"),
            (r#"value="NaN" type="FLOAT""#, "JavaDouble(NaN)"),
            (r#"value="0.333333333333" type="FLOAT""#, "JavaDouble(0.33333334)"),
            (r#"value="0.1" type="FLOAT""#, "JavaDouble(0.1)"),
            (r#"value='{"a":1}' type="JSON""#, r#"Json(Object {"a": Number(1)})"#),
            (r#"value="plain" type="JSON""#, r#"Json(String("plain"))"#),
            (r#"expression="//n""#, r#"String("3.7")"#),
            (r#"expression="//n" type="INTEGER""#, "Integer(3)"),
            (r#"expression="count(//k)""#, r#"String("2")"#),
            (r#"expression="//k/text()""#, r#"String("xy")"#),
            (r#"expression="//none""#, r#"String("")"#),
            (r#"expression="$trp:x-in""#, r#"String("in")"#),
            (r#"value="2024-05-06" pattern="(\d{4})-.*" group="1""#, r#"String("2024")"#),
            (r#"value="2024-05-06" pattern="(\d{4})-.*""#, r#"String("2024-05-06")"#),
            (r#"value="2024" pattern="(\d{4})-.*" group="1""#, r#"String("")"#),
        ] {
            let end = run(&format!(r#"<property name="p" {attributes}/>"#));
            let value = end.context.properties.get("p").map(|value| format!("{value:?}"));
            assert_eq!(value.as_deref(), Some(wanted), "{attributes}");
        }
    }

    #[test]
    fn xml_values_are_copies() {
        for (element, wanted) in [
            (r#"<property name="p" type="OM" value="&lt;a&gt;1&lt;/a&gt;"/>"#, "<a>1</a>"),
            (r#"<property name="p" type="OM" expression="//e"/>"#, "<e><f/></e>"),
            (r#"<property name="p" type="OM" expression="//k"/>"#, r#"<k a="1">x</k>"#),
            (r#"<property name="p"><a xmlns="">1</a></property>"#, "<a>1</a>"),
        ] {
            let end = run(element);
            match end.context.properties.get("p") {
                Some(Value::Xml(xml)) => {
                    // Declarations that the message had in scope may come along.
                    let soap = r#" xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/""#;
                    assert_eq!(xml.to_xml().replace(soap, ""), wanted, "{element}");
                }
                other => panic!("{element}: {other:?}"),
            }
        }
    }

    #[test]
    fn null_keeps_the_old_value_but_not_in_transport_scope() {
        for (scope, wanted) in [("default", Some("old")), ("transport", Some("")), ("axis2-client", None)] {
            let end = run(&format!(
                r#"<property name="p" value="old" scope="{scope}"/>
                   <property name="p" expression="$ctx:none" scope="{scope}"/>"#
            ));
            let scope = flow::library::Scope::of(scope).unwrap();
            let value = scope.get(&end.context, "p").map(|value| value.to_string());
            assert_eq!(value.as_deref(), wanted, "{scope:?}");
        }
    }

    #[test]
    fn of_several_elements_apache_synapse_takes_the_texts() {
        let text = r#"<property name="p" expression="//k"/>"#;
        let registry = registry(testing::endpoints);
        let body = "<o><k>1<z>2</z></k><k><z>3</z></k><k>4</k></o>";
        for (tested, wanted) in [
            (testing::synapse(&registry, text), "1<k><z>3</z></k>4"),
            (testing::main(&registry, text), "<k>1<z>2</z></k><k><z>3</z></k><k>4</k>"),
        ] {
            let soap = r#" xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/""#;
            let found = tested.run(&[("Content-Type", "application/xml")], body).property("p");
            assert_eq!(found.map(|found| found.replace(soap, "")).as_deref(), Some(wanted));
        }
    }

    #[test]
    fn null_of_a_type_is_false_or_no_number() {
        for (attributes, wanted) in [
            (r#"expression="$ctx:none" type="BOOLEAN""#, Some("Boolean(false)")),
            (r#"expression="$ctx:none" type="STRING""#, Some(r#"String("old")"#)),
            (r#"expression="$ctx:none" type="OM""#, Some(r#"String("old")"#)),
            // The group is there, but nothing is in it.
            (r#"expression="'zz'" pattern="(a)?(.*)" group="1""#, Some(r#"String("old")"#)),
            (r#"expression="'zz'" pattern="(a)?(.*)" group="2""#, Some(r#"String("zz")"#)),
            (r#"expression="$ctx:none" type="INTEGER""#, None),
            (r#"expression="$trp:none" type="DOUBLE""#, None),
        ] {
            let end = run(&format!(r#"<property name="p" value="old"/><property name="p" {attributes}/>"#));
            let value = end.context.properties.get("p").map(|value| format!("{value:?}"));
            match wanted {
                Some(_) => assert_eq!(value.as_deref(), wanted, "{attributes}"),
                None => {
                    assert!(end.fault().is_some_and(|fault| fault.contains("not a number")), "{attributes}")
                }
            }
        }
    }

    #[test]
    fn each_scope_sets_and_removes() {
        for scope in super::SCOPES {
            if matches!(*scope, "registry" | "trace" | "system") {
                continue;
            }
            let scope_of = flow::library::Scope::of(scope).unwrap();
            let set = format!(r#"<property name="{{'p'}}" value="1" scope="{scope}"/>"#);
            let end = run(&set);
            assert_eq!(
                scope_of.get(&end.context, "p").map(|v| v.to_string()).as_deref(),
                Some("1"),
                "{scope}"
            );
            let end = run(&format!(r#"{set}<property name="p" action="remove" scope="{scope}"/>"#));
            assert!(scope_of.get(&end.context, "p").is_none(), "{scope}");
        }
        let end = run(r#"<property name="busbar.test" value="1" scope="system"/>
               <property name="p" expression="get-property('system', 'busbar.test')"/>"#);
        assert_eq!(end.property("p").as_deref(), Some("1"));
    }

    #[test]
    fn nothing_of_a_value_or_a_name_breaks_the_head() {
        for (text, wanted) in [
            ("<o><id>\n  17\r\n</id></o>", Some("17")),
            ("<o><id>1&#13;&#10;Evil: 1</id></o>", Some("1  Evil: 1")),
            ("<o><id>é ✓</id></o>", Some("é ✓")),
        ] {
            for set in [
                r#"<property name="X-Id" scope="transport" expression="//id"/>"#,
                r#"<header name="X-Id" scope="transport" expression="//id"/>"#,
            ] {
                let end = flow(set).run(&[("Content-Type", "application/xml")], text);
                assert_eq!(end.context.headers.get("X-Id"), wanted, "{set} {text}");
            }
        }
    }

    #[test]
    fn a_computed_name_that_no_header_can_have_sets_nothing_and_the_flow_goes_on() {
        for text in ["<o><id>a b</id></o>", "<o><id/></o>", "<o><id>a/b</id></o>", "<o><id>ä</id></o>"] {
            let set = r#"<property name="{//id}" scope="transport" value="1"/><property name="after" value="yes"/>"#;
            let end = flow(set).run(&[("Content-Type", "application/xml")], text);
            assert_eq!(end.property("after").as_deref(), Some("yes"), "{text}");
            assert_eq!(end.context.headers.iter().count(), 1, "{text}");
        }
    }

    #[test]
    fn json_paths_in_the_wrong_place_are_explained() {
        for (expression, help) in [
            ("concat(json-eval($.a), 'b')", "no function of XPath"),
            ("$.a.b", "a JSONPath is written `json-eval($.a.b)`"),
            ("xpath('//a')", "write `${xpath('//a')}`"),
        ] {
            let tested = flow(&format!(r#"<property name="p" expression="{expression}"/>"#));
            assert!(
                tested.reasons.iter().any(|reason| reason.contains(help)),
                "{expression}: {:?}",
                tested.reasons
            );
        }
    }

    #[test]
    fn message_type_is_the_content_type() {
        let end = run(r#"<property name="messageType" value="application/json" scope="axis2"/>"#);
        assert_eq!(end.context.headers.get("Content-Type"), Some("application/json"));
    }

    #[test]
    fn what_cannot_be_converted_faults() {
        for (attributes, wanted) in [
            (
                r#"expression="//none" type="INTEGER""#,
                "0: The value of //none cannot be used: `` is not a whole",
            ),
            (r#"expression="//k" type="LONG""#, "0: The value of //k cannot be used:"),
            (
                r#"expression="//n" type="LONG""#,
                "0: The value of //n cannot be used: `3.7` is not a whole number",
            ),
            (r#"expression="'x'" type="DOUBLE""#, "0: The value of 'x' cannot be used: `x` is not a number"),
            (
                r#"expression="'x'" type="OM""#,
                "0: The value of 'x' cannot be used: it is not well-formed XML",
            ),
            (r#"expression="json-eval($.a" "#, ""),
        ] {
            let text = format!(
                r#"<property name="p" {attributes}/><property name="after" value="1"/><!--top-->
                <sequence name="fault"><property name="seen" expression="$ctx:ERROR_MESSAGE"/></sequence>"#
            );
            let tested = flow(&text);
            if wanted.is_empty() {
                assert!(tested.reports("is not a valid expression"), "{tested:?}");
                continue;
            }
            let end = tested.run(&[("Content-Type", "application/xml")], "<o><n>3.7</n><k>x</k></o>");
            let fault = end.fault().unwrap_or_default();
            assert!(fault.starts_with(wanted), "{attributes}: {fault}");
            assert_eq!((end.property("after"), end.property("seen")), (None, end.property("ERROR_MESSAGE")));
        }
    }

    #[test]
    fn the_registry_is_written() {
        let root = std::env::temp_dir().join(format!("busbar-property-registry-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        std::fs::create_dir_all(&root).expect("a directory for the test");
        let run = |mediators: &str| {
            let text = format!(
                r#"<definitions xmlns="http://ws.apache.org/ns/synapse"><sequence name="main" onError="f">{mediators}</sequence><sequence name="f"/></definitions>"#
            );
            let options = config::LoadOptions::default();
            testing::configuration_in(&registry(testing::endpoints), &text, &root, &options, |_| {})
                .run(&[("Content-Type", "application/xml")], "<a><k>7</k></a>")
        };
        for (name, value, key) in [
            ("conf:a/b.txt", "value=\"one\"", "conf:a/b.txt"),
            ("conf:a/b.txt", "expression=\"//k\"", "/_system/config/a/b.txt"),
            ("{concat('gov:n', //k)}", "value=\"x\"", "n7"),
            ("conf:a/b.txt@p", "expression=\"//k\"", "conf:a/b.txt@p"),
            ("conf:a@q", "value=\"of the collection\"", "conf:a@q"),
        ] {
            let end = run(&format!(
                r#"<property name="{name}" {value} scope="registry"/><property name="seen" expression="get-property('registry', '{key}')"/>"#
            ));
            let wanted = if value.starts_with("expression") { "7" } else { value[6..].trim_matches('"') };
            assert_eq!((end.property("seen").as_deref(), end.fault()), (Some(wanted), None), "{name}");
        }
        // Written and read by the same flow, again and again: nothing old is seen.
        let end = run(
            r#"<property name="conf:c" value="1" scope="registry"/><property name="x" expression="get-property('registry', 'conf:c')"/>
               <property name="conf:c" value="2" scope="registry"/><property name="y" expression="get-property('registry', 'conf:c')"/>"#,
        );
        assert_eq!((end.property("x").as_deref(), end.property("y").as_deref()), (Some("1"), Some("2")));
        for (property, why) in [
            (r#"name="conf:../../out" value="1""#, "it leads out of the registry"),
            (r#"name="conf:a" value="1""#, "it is a collection"),
            (r#"name="conf:" value="1""#, "it is a collection"),
            (r#"name="conf:n" expression="$ctx:none""#, "there is no value"),
        ] {
            let fault =
                run(&format!(r#"<property {property} scope="registry"/>"#)).fault().unwrap_or_default();
            assert!(
                fault.starts_with("0: The registry resource conf:") && fault.ends_with(why),
                "{property}: {fault}"
            );
        }
        let end = run(r#"<property name="conf:c" action="remove" scope="registry"/>"#);
        assert_eq!(end.fault(), None);
        let _ = std::fs::remove_dir_all(&root);
    }

    #[test]
    fn mistakes_are_found_when_the_configuration_loads() {
        for (attributes, wanted) in [
            (r#"name="p""#, "`property` needs a value"),
            (r#"name="" value="1""#, "the property has no name"),
            (r#"value="1""#, "`property` needs the attribute `name`"),
            (r#"name="p" value="1" scope="axis""#, "`scope` cannot be `axis`"),
            (r#"name="p" value="1" type="integer""#, "`type` cannot be `integer`"),
            (r#"name="p" value="1.5" type="INTEGER""#, "`1.5` is not a whole number"),
            (r#"name="p" value="70000" type="SHORT""#, "`70000` is not a whole number"),
            (r#"name="p" value="1" group="1""#, "`group` has no meaning here"),
            (r#"name="p" value="2024" pattern="(\d{4})" group="4""#, "the pattern has no group 4"),
            (r#"name="p" value="1" pattern="(" "#, "`(` is not a valid regular expression"),
            (r#"name="a b" value="1" scope="transport""#, "`a b` is not a header name"),
        ] {
            let tested = flow(&format!("<property {attributes}/>"));
            assert!(tested.reports(wanted), "{attributes}: {tested:?}");
        }
    }
}
