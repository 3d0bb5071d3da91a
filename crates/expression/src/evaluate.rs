//! Evaluation.

use crate::ast::{Access, Arithmetic, Call, Comparison, Expr, Logic, Path, Root, XPathText};
use crate::number::Number;
use crate::value::Value;
use message::{Value as Own, XmlValue};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;
use xml::{Document, ParseOptions};

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub String);

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

type Result<'h> = std::result::Result<Value<'h>, Failure>;

pub(crate) fn failure<T>(why: impl Into<String>) -> std::result::Result<T, Failure> {
    Err(Failure(why.into()))
}

/// Where a named value is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `headers`: transport headers.
    Header,
    /// `props.synapse`, and where query and path parameters are.
    Default,
    /// `props.axis2`.
    Axis2,
    /// `params.functionParams`: parameters of the template that runs.
    Parameter,
    /// `configs`: what the operator sets.
    Configuration,
}

/// The message that an expression is evaluated on.
pub trait Host {
    /// The payload as JSON.
    ///
    /// # Errors
    /// There is none, or it cannot be read as JSON.
    fn json(&self) -> std::result::Result<&Json, String>;

    /// `payload` alone.
    ///
    /// # Errors
    /// As [`Host::json`].
    fn payload(&self) -> std::result::Result<Value<'_>, String>;

    /// A variable.
    fn variable(&self, name: &str) -> Option<&Own>;

    /// A named value; its type as it is kept.
    fn lookup(&self, scope: Scope, name: &str) -> Option<Own>;

    /// The text of a registry resource, or a property of it.
    fn registry(&self, path: &str, property: Option<&str>) -> Option<String>;

    /// The result of an XPath on the message, or on `on`.
    ///
    /// # Errors
    /// It has none.
    fn xpath(
        &self,
        xpath: &xpath::Expression,
        on: Option<&Arc<XmlValue>>,
    ) -> std::result::Result<Option<Own>, String>;

    /// A secret, by the arguments of `wso2-vault`.
    ///
    /// # Errors
    /// It cannot be had.
    fn secret(&self, path: &[String]) -> std::result::Result<String, String>;

    /// A secret of another server, by the arguments of `hashicorp-vault`.
    ///
    /// # Errors
    /// It cannot be had.
    fn remote_secret(&self, path: &[String]) -> std::result::Result<String, String>;
}

pub(crate) fn evaluate<'h>(expr: &'h Expr, host: &'h dyn Host) -> Result<'h> {
    Ok(match expr {
        Expr::Null => Value::Null,
        Expr::Boolean(truth) => Value::Boolean(*truth),
        Expr::Number(number) => Value::Number(*number),
        Expr::Text(text) => Value::Text(Cow::Borrowed(text)),
        Expr::Array(items) => {
            let items: std::result::Result<Vec<_>, _> =
                items.iter().map(|item| Ok(evaluate(item, host)?.into_json())).collect();
            Value::Json(Cow::Owned(Json::Array(items?)))
        }
        Expr::Access(access) => look_up(access, host)?,
        Expr::Call(call) => run(call, host)?,
        Expr::Arithmetic(first, rest) => {
            let mut left = evaluate(first, host)?;
            for (operator, right) in rest {
                left = arithmetic(left, *operator, evaluate(right, host)?)?;
            }
            left
        }
        Expr::Comparison(first, rest) => {
            let mut left = evaluate(first, host)?;
            for (operator, right) in rest {
                left = Value::Boolean(compare(&left, *operator, &evaluate(right, host)?)?);
            }
            left
        }
        Expr::Logic(operands, operators) => {
            // Both sides are always evaluated, so that a failure does not depend on the other side.
            let truths: std::result::Result<Vec<bool>, _> =
                operands.iter().map(|operand| truth(&evaluate(operand, host)?)).collect();
            let mut truths = truths?.into_iter().rev();
            let mut result = truths.next().unwrap_or(false);
            for (left, operator) in truths.zip(operators.iter().rev()) {
                result = match operator {
                    Logic::And => left && result,
                    Logic::Or => left || result,
                };
            }
            Value::Boolean(result)
        }
        Expr::Conditional(parts) => {
            let [condition, then, other] = &**parts;
            let taken = if truth(&evaluate(condition, host)?)? { then } else { other };
            evaluate(taken, host)?
        }
    })
}

fn truth(value: &Value<'_>) -> std::result::Result<bool, Failure> {
    match value {
        Value::Boolean(truth) => Ok(*truth),
        other => failure(format!("true or false is wanted, not {}", other.kind())),
    }
}

fn arithmetic<'h>(left: Value<'h>, operator: Arithmetic, right: Value<'h>) -> Result<'h> {
    if let (Value::Number(a), Value::Number(b)) = (&left, &right) {
        let by_zero = || Failure("division by zero".to_owned());
        return Ok(Value::Number(match operator {
            Arithmetic::Add => a.plus(*b),
            Arithmetic::Subtract => a.subtract(*b),
            Arithmetic::Multiply => a.multiply(*b),
            Arithmetic::Divide => a.divide(*b).ok_or_else(by_zero)?,
            Arithmetic::Remainder => a.remainder(*b).ok_or_else(by_zero)?,
        }));
    }
    if operator == Arithmetic::Add
        && let (Some(_), Some(end)) = (left.as_text(), right.as_text())
    {
        let mut text = left.into_text().into_owned();
        text.push_str(&end);
        return Ok(Value::Text(Cow::Owned(text)));
    }
    let advice = if operator == Arithmetic::Add { ": string(…) makes a text of a value" } else { "" };
    failure(format!("{} and {} cannot be calculated with{advice}", left.kind(), right.kind()))
}

fn compare(left: &Value<'_>, operator: Comparison, right: &Value<'_>) -> std::result::Result<bool, Failure> {
    let numbers = match (left, right) {
        (Value::Number(a), Value::Number(b)) => Some((*a, *b)),
        _ => None,
    };
    if let Comparison::Equal | Comparison::NotEqual = operator {
        let equal = match (left, right, numbers) {
            (Value::Null, Value::Null, _) => true,
            (Value::Null, ..) | (_, Value::Null, _) => false,
            (.., Some((a, b))) => a.order(b) == Some(Ordering::Equal),
            (Value::Json(a), Value::Json(b), _) => a == b,
            _ => left.clone().into_text() == right.clone().into_text(),
        };
        return Ok(equal == (operator == Comparison::Equal));
    }
    let Some((a, b)) = numbers else {
        return failure(format!("{} and {} have no order: only numbers do", left.kind(), right.kind()));
    };
    let order = a.order(b);
    Ok(match operator {
        Comparison::Less => order == Some(Ordering::Less),
        Comparison::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Comparison::Greater => order == Some(Ordering::Greater),
        _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    })
}

fn look_up<'h>(access: &'h Access, host: &'h dyn Host) -> Result<'h> {
    let Some(path) = &access.path else {
        return match &access.root {
            Root::Payload => host.payload().map_err(Failure),
            Root::Variable(name) => variable(name, host).map(Value::of),
            Root::Scope(scope, name) => scoped(*scope, name, host),
            Root::Value(value) => evaluate(value, host),
        };
    };
    let root = match &access.root {
        Root::Payload => Cow::Borrowed(host.json().map_err(Failure)?),
        Root::Variable(name) => json_of(Value::of(variable(name, host)?))?,
        Root::Scope(scope, name) => json_of(scoped(*scope, name, host)?)?,
        Root::Value(value) => json_of(evaluate(value, host)?)?,
    };
    follow(root, path, host)
}

fn variable<'h>(name: &str, host: &'h dyn Host) -> std::result::Result<&'h Own, Failure> {
    host.variable(name).ok_or_else(|| Failure(format!("there is no variable {name}")))
}

/// A header, property, parameter or configured value: a number where it looks like one.
fn scoped<'h>(scope: Scope, name: &str, host: &'h dyn Host) -> Result<'h> {
    match host.lookup(scope, name) {
        None => failure(match scope {
            Scope::Header => format!("there is no header {name}"),
            Scope::Default | Scope::Axis2 => format!("there is no property {name}"),
            Scope::Parameter => format!("the template has no parameter {name}, or there is no template here"),
            Scope::Configuration => format!("there is no configured value {name}"),
        }),
        Some(Own::String(text)) => Ok(match numeric(&text) {
            Some(number) => Value::Number(number),
            None => Value::Text(Cow::Owned(text.as_ref().to_owned())),
        }),
        Some(other) => Ok(Value::of_owned(other)),
    }
}

/// Digits, with a sign and a fraction if need be; an exponent does not make a number of a text.
fn numeric(text: &str) -> Option<Number> {
    if text.contains(['e', 'E']) { None } else { Number::parse(text) }
}

/// A value that a path leads into: JSON, or text that is JSON.
fn json_of(value: Value<'_>) -> std::result::Result<Cow<'_, Json>, Failure> {
    match value {
        Value::Json(json) => Ok(json),
        Value::Text(text) => match serde_json::from_str(&text) {
            Ok(json) => Ok(Cow::Owned(json)),
            Err(_) => failure("a path leads into JSON only, and this text is none"),
        },
        other => failure(format!("a path leads into JSON only, not into {}", other.kind())),
    }
}

fn follow<'h>(root: Cow<'h, Json>, path: &'h Path, host: &'h dyn Host) -> Result<'h> {
    let parameters: std::result::Result<Vec<Json>, Failure> =
        path.parameters.iter().map(|parameter| Ok(evaluate(parameter, host)?.into_json())).collect();
    let parameters = parameters?;
    match root {
        Cow::Borrowed(root) => select(root, path, &parameters),
        Cow::Owned(root) => select(&root, path, &parameters).map(Value::into_owned),
    }
}

fn select<'v>(root: &'v Json, path: &Path, parameters: &[Json]) -> Result<'v> {
    if let Some(found) = path.steps.get(root) {
        return Ok(Value::of_json(Cow::Borrowed(found)));
    }
    let selection = path.steps.select_given(root, parameters);
    if let Some(why) = selection.failure {
        return failure(why.to_string());
    }
    let definite = selection.is_definite();
    let mut nodes = selection.nodes.into_iter();
    if !definite {
        return Ok(Value::Json(Cow::Owned(nodes.map(Cow::into_owned).collect())));
    }
    match nodes.next() {
        Some(found) => Ok(Value::of_json(found)),
        None => failure(format!("{} leads nowhere", path.steps.source())),
    }
}

fn run<'h>(call: &'h Call, host: &'h dyn Host) -> Result<'h> {
    match call {
        Call::Plain(function, arguments) => {
            // As in WSO2, what is written as a number or a truth is not text; what stands in the message as one is.
            if let ("toUpper" | "toLower", [Expr::Number(_) | Expr::Boolean(_)]) =
                (function.name, &arguments[..])
            {
                return failure(format!("{}: a text is wanted", function.name));
            }
            let mut values = Vec::with_capacity(arguments.len());
            for argument in arguments {
                match evaluate(argument, host)? {
                    Value::Null => return failure(format!("{}: an argument is null", function.name)),
                    value => values.push(value),
                }
            }
            (function.run)(&mut values).map_err(|Failure(why)| Failure(format!("{}: {why}", function.name)))
        }
        Call::Exists(inner) => Ok(Value::Boolean(!matches!(evaluate(inner, host), Err(_) | Ok(Value::Null)))),
        Call::XPath(text, of) => {
            let on = match of {
                None => None,
                Some(of) => Some(xml_of(&text_of(of, host)?, host)?),
            };
            let computed;
            let xpath = match text {
                XPathText::Known(xpath) => &**xpath,
                XPathText::Computed(text, compiler) => {
                    computed = compiler.compile(&text_of(text, host)?).map_err(Failure)?;
                    &computed
                }
            };
            match host.xpath(xpath, on.as_ref()).map_err(Failure)? {
                Some(value) => Ok(Value::of_owned(value)),
                None => failure(format!("{} gives nothing", xpath.source())),
            }
        }
        Call::Registry(path, property) => {
            let path = text_of(path, host)?;
            let property = property.as_ref().map(|property| text_of(property, host)).transpose()?;
            match host.registry(&path, property.as_deref()) {
                Some(text) => Ok(Value::Text(Cow::Owned(text))),
                None => failure(format!("the registry has no {path}")),
            }
        }
        Call::Secret(arguments) => {
            let path: std::result::Result<Vec<String>, _> =
                arguments.iter().map(|argument| text_of(argument, host)).collect();
            host.secret(&path?).map(|secret| Value::Text(Cow::Owned(secret))).map_err(Failure)
        }
        Call::RemoteSecret(arguments) => {
            let path: std::result::Result<Vec<String>, _> =
                arguments.iter().map(|argument| text_of(argument, host)).collect();
            host.remote_secret(&path?).map(|secret| Value::Text(Cow::Owned(secret))).map_err(Failure)
        }
    }
}

fn text_of(expr: &Expr, host: &dyn Host) -> std::result::Result<String, Failure> {
    match evaluate(expr, host)? {
        Value::Null => failure("an argument is null"),
        value => Ok(value.into_text().into_owned()),
    }
}

/// The XML in a variable, or in a field of one: `name` or `name.field`.
fn xml_of(name: &str, host: &dyn Host) -> std::result::Result<Arc<XmlValue>, Failure> {
    let (variable_name, field) = match host.variable(name) {
        Some(_) => (name, None),
        None => name.split_once('.').map_or((name, None), |(name, field)| (name, Some(field))),
    };
    let value = variable(variable_name, host)?;
    let text = match (value, field) {
        (Own::Xml(xml), None) => return Ok(Arc::clone(xml)),
        (Own::Json(json), Some(field)) => json.get(field).and_then(Json::as_str),
        (Own::String(text), None) => Some(&**text),
        _ => None,
    };
    let document = text
        .and_then(|text| Document::parse(text.trim().to_owned().into_bytes(), &ParseOptions::default()).ok());
    match document.and_then(|document| Some((document.document_element()?, document))) {
        Some((root, document)) => Ok(Arc::new(XmlValue { nodes: vec![root], document: Arc::new(document) })),
        None => failure(format!("{name} holds no XML")),
    }
}
