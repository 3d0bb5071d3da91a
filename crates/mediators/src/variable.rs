//! `variable`: sets or removes a variable, which lives beside the properties and keeps its type.

use crate::xml_value;
use config::Element;
use diagnostics::Span;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Expression, Family, Fault, Flow, Mediator,
    Need, Page, Values,
};
use message::Value;
use std::sync::Arc;

/// `<variable name="n" [action="set|remove"] [type="…"] value="literal" | expression="EXPR"/>`
pub const DEFINITION: Definition = Definition {
    name: "variable",
    summary: "Sets or removes a variable; an expression keeps the type of what it finds.",
    attributes: &[
        Attribute::required("name", Values::Text, "the name, read as `${vars.name}` or `$var:name`"),
        Attribute::optional("action", Values::Word(&["set", "remove"]), "what to do").or("set"),
        Attribute::optional("type", Values::OneOf(TYPES), "the type of the value"),
        Attribute::optional("value", Values::Text, "the value"),
        Attribute::optional("expression", Values::Expression, "gives the value"),
    ],
    children: Children::None,
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Core,
    semantics: "Variables stand beside the properties, with names of their own. They belong to the message: its answer has them too, each part of a `clone` or
`iterate` a copy. Read them with `${vars.NAME}`, with a path into JSON as in `${vars.order.items[0]}`, or in an XPath with `$var:NAME`, whose path goes
on into XML: `$var:first/name`.

A `value` is converted to its `type` when the configuration loads; without a type it is a text. As `BOOLEAN` only `true`, in any case, is true.

Without a `type`, the result of an expression keeps its type: an object stays an object, elements stay elements. `STRING` makes text of
anything. `BOOLEAN`, `INTEGER`, `LONG` and `DOUBLE` convert no text and round no fraction: `\"5\"` in JSON is no `INTEGER`. A number of an XPath is a `DOUBLE`,
never an `INTEGER`; a whole number of a `${…}` may be either. `JSON` accepts any JSON value but a string, and the text of a `${…}` only
if it is JSON itself. `XML` accepts elements, and text that is XML.

A path, `json-eval` or `${…}` that finds nothing sets an empty text. If the expression names a property or a header that does not exist (`$ctx:NAME`, `$trp:NAME`),
the variable keeps its value.",
    inside: &[],
    needs: &[
        (Need::Nothing, "a `value`, or `remove`"),
        (Need::Headers, "an expression on variables, properties and headers"),
        (Need::Whole, "an expression on the body, or an XPath with a path"),
    ],
    refused: &[
        ("<variable name=\"v\"/>", "`variable` needs a value"),
        ("<variable value=\"1\"/>", "`variable` needs the attribute `name`"),
        ("<variable name=\"v\" value=\"1\" type=\"FLOAT\"/>", "`type` cannot be `FLOAT`"),
        ("<variable name=\"v\" value=\"x\" type=\"INTEGER\"/>", "`x` is not a number of this type"),
        ("<variable name=\"v\" value=\"{\" type=\"JSON\"/>", "it is not JSON"),
        ("<variable name=\"v\" value=\"a\" type=\"XML\"/>", "it is not well-formed XML"),
        ("<variable name=\"v\" expression=\"//a[\"/>", "not a valid expression"),
    ],
    faults: &[
        ("0", "the expression gives something that is not of the `type`, or cannot be evaluated"),
        (
            "601000",
            "the expression reads the body, and it is not what its content type says, or larger than a flow may hold",
        ),
    ],
};

const TYPES: &[&str] = &["STRING", "BOOLEAN", "INTEGER", "LONG", "DOUBLE", "JSON", "XML"];

enum Source {
    Literal(Value),
    Expression(Expression, Option<&'static str>),
}

struct Variable {
    name: Arc<str>,
    /// `None`: remove.
    source: Option<Source>,
    span: Span,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let span = element.start_tag();
    let name = Arc::from(element.attr("name").unwrap_or_default());
    let kind = element.attr("type").and_then(|kind| TYPES.iter().copied().find(|name| *name == kind.trim()));
    let source = if element.attr("action").map(str::trim) == Some("remove") {
        None
    } else if let Some(value) = element.attribute("value") {
        if kind == Some("BOOLEAN") {
            warn_of_no_boolean(value, compiler);
        }
        match literal(&value.value, kind.unwrap_or("STRING")) {
            Ok(value) => Some(Source::Literal(value)),
            Err(why) => {
                compiler.error("bad-value", why, value.value_span, "it is converted when this is loaded");
                return None;
            }
        }
    } else if element.attr("expression").is_some() {
        Some(Source::Expression(compiler.expression(element, "expression")?, kind))
    } else {
        compiler.error(
            "missing-attribute",
            "`variable` needs a value",
            span,
            "expected `value` or `expression`",
        );
        return None;
    };
    Some(Box::new(Variable { name, source, span }))
}

/// A text that is neither true nor false counts as false.
fn warn_of_no_boolean(value: &config::Attribute, compiler: &mut Compiler<'_>) {
    let text = value.value.trim();
    if !["true", "false"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
        let message = format!("`{text}` counts as false");
        compiler.warning("bad-value", message, value.value_span, "expected `true` or `false`");
    }
}

fn literal(text: &str, kind: &str) -> Result<Value, String> {
    let number = || format!("`{text}` is not a number of this type");
    Ok(match kind {
        "INTEGER" => Value::Integer(text.trim().parse::<i32>().map_err(|_| number())?.into()),
        "LONG" => Value::Integer(text.trim().parse().map_err(|_| number())?),
        "DOUBLE" => Value::JavaDouble(text.trim().parse().map_err(|_| number())?),
        "BOOLEAN" => Value::Boolean(text.trim().eq_ignore_ascii_case("true")),
        "JSON" => {
            Value::Json(Arc::new(serde_json::from_str(text).map_err(|why| format!("it is not JSON: {why}"))?))
        }
        "XML" => xml_value::parse(text)?,
        _ => Value::from(text),
    })
}

/// What an expression found, as a value of the type that is asked for; `Err` with what it is. `calculated`: it is a
/// `${…}`, whose numbers have no width and whose text may be JSON.
fn typed(value: Value, kind: &str, calculated: bool) -> Result<Value, &'static str> {
    use serde_json::Value as Json;
    let json = match &value {
        Value::Json(json) => Some(&**json),
        _ => None,
    };
    match (kind, &value, json) {
        ("STRING", ..) => Ok(Value::from(value.to_string())),
        ("INTEGER", Value::Integer(number), _) if i32::try_from(*number).is_err() => Err("another number"),
        // A whole number that was calculated is as good a double.
        ("DOUBLE", Value::Integer(number), _) => Ok(Value::JavaDouble(*number as f64)),
        ("DOUBLE", Value::Double(number), _) => Ok(Value::JavaDouble(*number)),
        ("JSON", Value::Integer(_) | Value::Boolean(_) | Value::Double(_) | Value::JavaDouble(_), _)
            if calculated =>
        {
            serde_json::from_str(&value.to_string())
                .map(|json| Value::Json(Arc::new(json)))
                .map_err(|_| "no JSON")
        }
        ("JSON", Value::String(text), _) if calculated => serde_json::from_str(text)
            .map(|json| Value::Json(Arc::new(json)))
            .map_err(|_| "text that is not JSON"),
        ("BOOLEAN", Value::Boolean(_), _) | ("INTEGER" | "LONG", Value::Integer(_), _) => Ok(value),
        ("DOUBLE", Value::JavaDouble(_), _) | ("JSON", Value::Json(_), _) => Ok(value),
        ("BOOLEAN", _, Some(Json::Bool(truth))) => Ok(Value::Boolean(*truth)),
        ("INTEGER" | "LONG", _, Some(Json::Number(number))) => match number.as_i64() {
            Some(whole) if kind == "LONG" || i32::try_from(whole).is_ok() => Ok(Value::Integer(whole)),
            _ => Err("another number"),
        },
        ("DOUBLE", _, Some(Json::Number(number))) => {
            Ok(Value::JavaDouble(number.as_f64().unwrap_or(f64::NAN)))
        }
        ("XML", Value::Xml(_), _) => Ok(value),
        ("XML", Value::String(text), _) => xml_value::parse(text).map_err(|_| "text that is not XML"),
        ("XML", _, Some(Json::String(text))) => xml_value::parse(text).map_err(|_| "text that is not XML"),
        (_, Value::String(_), _) => Err("text"),
        (_, Value::Xml(_), _) => Err("XML"),
        (_, Value::Boolean(_), _) => Err("a Boolean"),
        (_, _, Some(_)) => Err("JSON of another type"),
        _ => Err("another number"),
    }
}

/// The value with its type: `json-eval` on a JSON payload gives JSON.
fn raw(expression: &Expression, context: &mut Context) -> Result<Option<Value>, Fault> {
    if expression.is_json() && context.payload.is_json() {
        return Ok(Some(match expression.json_values(context)? {
            Some(serde_json::Value::String(text)) => Value::from(text),
            Some(value) => Value::Json(Arc::new(value)),
            None => Value::from(""),
        }));
    }
    expression.value(context)
}

impl Mediator for Variable {
    fn need(&self) -> Need {
        match &self.source {
            Some(Source::Expression(expression, _)) => expression.need(),
            _ => Need::Nothing,
        }
    }

    fn reason(&self) -> String {
        match &self.source {
            Some(Source::Expression(expression, _)) => expression.reason(),
            _ => String::new(),
        }
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let value = match &self.source {
            None => {
                context.variables.remove(&self.name);
                return Ok(Flow::Next);
            }
            Some(Source::Literal(value)) => Some(value.clone()),
            Some(Source::Expression(expression, kind)) => match (raw(expression, context)?, kind) {
                (Some(value), Some(kind)) => {
                    Some(typed(value, kind, expression.is_synapse()).map_err(|found| {
                        Fault::new(format!(
                            "The result of {} does not match the expected data type {kind}: it is {found}",
                            expression.source()
                        ))
                        .at(self.span)
                    })?)
                }
                (value, _) => value,
            },
        };
        if let Some(value) = value {
            context.variables.set(Arc::clone(&self.name), value);
        }
        Ok(Flow::Next)
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing;

    const JSON: (&str, &str) = ("Content-Type", "application/json");

    #[test]
    fn values_keep_their_type() {
        for (attributes, wanted) in [
            (r#"value="a""#, r#"String("a")"#),
            (r#"value="7" type="INTEGER""#, "Integer(7)"),
            (r#"value="1.5" type="DOUBLE""#, "JavaDouble(1.5)"),
            (r#"value="true" type="BOOLEAN""#, "Boolean(true)"),
            (r#"value="[1]" type="JSON""#, "Json(Array [Number(1)])"),
            (r#"expression="json-eval($.n)" type="LONG""#, "Integer(5)"),
            (r#"expression="json-eval($.n)""#, "Json(Number(5))"),
            (r#"expression="json-eval($.b)" type="BOOLEAN""#, "Boolean(true)"),
            (r#"expression="json-eval($.o)" type="JSON""#, r#"Json(Object {"x": Number(1)})"#),
            (r#"expression="json-eval($.o)" type="STRING""#, r#"String("{\"x\":1}")"#),
            (r#"expression="1 + 1" type="DOUBLE""#, "JavaDouble(2.0)"),
            (r#"expression="$ctx:none""#, r#"String("old")"#),
            (r#"expression="${payload.n}""#, "Json(Number(5))"),
            (r#"expression="${payload.n + 1}""#, "Integer(6)"),
            (r#"expression="${payload.n / 2}" type="DOUBLE""#, "JavaDouble(2.5)"),
            (r#"expression="${payload.n + 1}" type="DOUBLE""#, "JavaDouble(6.0)"),
            (r#"expression="${payload.n + 1}" type="INTEGER""#, "Integer(6)"),
            (r#"expression="${payload.n &gt; 1}" type="BOOLEAN""#, "Boolean(true)"),
            (r#"expression="${payload.o}" type="JSON""#, r#"Json(Object {"x": Number(1)})"#),
            (r#"expression="${'{}'}" type="JSON""#, "Json(Object {})"),
            (r#"expression="${payload.o}" type="STRING""#, r#"String("{\"x\":1}")"#),
            (r#"expression="${payload.none}""#, r#"String("")"#),
            (r#"expression="${'a' + 'b'}""#, r#"String("ab")"#),
        ] {
            let text = format!(r#"<variable name="v" value="old"/><variable name="v" {attributes}/>"#);
            let flow = testing::main(&registry(testing::endpoints), &text);
            let end = flow.run(&[JSON], r#"{"n":5,"b":true,"o":{"x":1}}"#);
            let value = end.context.variables.get("v").map(|value| format!("{value:?}"));
            assert_eq!(value.as_deref(), Some(wanted), "{attributes}: {flow:?} {:?}", end.fault());
        }
        let text = r#"<variable name="v" value="1"/><variable name="v" action="remove"/>"#;
        let end = testing::main(&registry(testing::endpoints), text).run(&[], "");
        assert!(end.context.variables.is_empty());
    }

    #[test]
    fn other_types_fault_or_are_found_when_loading() {
        for expression in
            ["json-eval($.s)", "2", "'5'", "${payload.s}", "${payload.none}", "${3000000000 + 1}"]
        {
            let text = format!(
                r#"<variable name="v" expression="{expression}" type="INTEGER"/><!--top-->
                   <sequence name="fault"><property name="seen" expression="$ctx:ERROR_CODE"/></sequence>"#
            );
            let end = testing::main(&registry(testing::endpoints), &text).run(&[JSON], r#"{"s":"5"}"#);
            assert_eq!(end.property("seen").as_deref(), Some("0"), "{expression}");
            assert!(end.fault().unwrap().contains("does not match the expected data type"));
        }
        for (attributes, wanted) in [
            (r#"value="x" type="INTEGER""#, "`x` is not a number of this type"),
            (r#"value="{" type="JSON""#, "it is not JSON"),
            ("", "`variable` needs a value"),
        ] {
            let text = format!(r#"<variable name="v" {attributes}/>"#);
            let flow = testing::main(&registry(testing::endpoints), &text);
            assert!(flow.reports(wanted), "{flow:?}");
        }
    }
}
