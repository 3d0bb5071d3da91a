//! XPaths that are one property, or compare one with a literal, as most expressions of flows are: `$trp:Host`,
//! `get-property('axis2', 'HTTP_METHOD')`, `$ctx:kind = 'order'`. They are answered without running XPath.
//!
//! What only XPath can answer (a property that holds XML, a name that is computed or missing) is left to it, so the
//! answers are the same.

use crate::expression::library::{self, Scope};
use crate::runtime::context::Context;
use crate::text::quoted;
use message::Value;

/// See the module.
pub(crate) struct Direct {
    scope: Scope,
    name: String,
    /// By `get-property`, which looks further where nothing is set.
    function: bool,
    /// The literal, and whether it has to be equal.
    compared: Option<(String, bool)>,
}

/// Up to here all whole numbers are doubles too.
const EXACT: u64 = 1 << 53;

/// Scopes whose `get-property` is what is set there, by name.
const SCOPES: &[&str] = &["default", "synapse", "axis2", "axis2-client", "transport", "operation"];

impl Direct {
    /// Reads an XPath; `None`: it is none of these.
    pub(crate) fn of(text: &str) -> Option<Direct> {
        let (scope, name, function, rest) = property(text.trim())?;
        let direct = |compared| Some(Direct { scope, name: name.to_owned(), function, compared });
        let rest = rest.trim();
        if rest.is_empty() {
            return direct(None);
        }
        let (equal, literal) = match rest.strip_prefix("!=") {
            Some(literal) => (false, literal),
            None => (true, rest.strip_prefix('=')?),
        };
        let (literal, rest) = quoted(literal.trim_start())?;
        rest.is_empty().then(|| direct(Some((literal.to_owned(), equal))))?
    }

    /// What is set, as XPath gives it; `None`: XPath has to be asked.
    fn found(&self, context: &Context) -> Option<Option<Value>> {
        Some(match self.scope.get(context, &self.name) {
            Some(Value::Xml(_)) => return None,
            None if self.function => return None,
            // XPath's numbers are doubles; a LONG that none of them is stays what it is.
            Some(Value::Integer(number)) if number.unsigned_abs() <= EXACT => {
                Some(Value::Double(number as f64))
            }
            Some(json @ Value::Json(_)) => Some(Value::from(json.to_string())),
            other => other,
        })
    }

    /// The value (`None` inside: nothing is set); `None`: XPath has to be asked.
    pub(crate) fn value(&self, context: &Context) -> Option<Option<Value>> {
        match &self.compared {
            None => self.found(context),
            Some(_) => self.boolean(context).map(|truth| Some(Value::Boolean(truth))),
        }
    }

    /// The value where it is a text that lies in the message; `None`: [`Direct::value`] tells what it is.
    pub(crate) fn text<'c>(&self, context: &'c Context) -> Option<&'c str> {
        if self.compared.is_none() { self.scope.text(context, &self.name) } else { None }
    }

    /// The truth of a comparison; `None`: XPath has to be asked.
    pub(crate) fn boolean(&self, context: &Context) -> Option<bool> {
        let (literal, equal) = self.compared.as_ref()?;
        if let Some(text) = self.scope.text(context, &self.name) {
            return Some((*text == **literal) == *equal);
        }
        match self.found(context)?? {
            Value::String(text) => Some((*text == **literal) == *equal),
            _ => None,
        }
    }
}

/// The property whose value an XPath starts with, `$ctx:a/b` or `get-property('a')`: its scope, its name, and whether the
/// function reads it.
pub(crate) fn holder(text: &str) -> Option<(Scope, &str, bool)> {
    let text = text.trim();
    let Some((scope, rest)) = library::property_prefix(text) else {
        return property(text).map(|(scope, name, function, _)| (scope, name, function));
    };
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c))).unwrap_or(rest.len());
    (end > 0).then_some((scope, &rest[..end], false))
}

/// A property at the beginning: scope, name, whether by `get-property`, and what follows.
fn property(text: &str) -> Option<(Scope, &str, bool, &str)> {
    if let Some((scope, rest)) = library::property_prefix(text) {
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c))).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        let ends = behind.is_empty() || behind.starts_with([' ', '=', '!']);
        let named = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        // A parameter of a template may be an expression of its own.
        return (named && ends && scope != Scope::Function).then_some((scope, name, false, behind));
    }
    let rest = text.strip_prefix("get-property")?.trim_start().strip_prefix('(')?;
    let (first, rest) = quoted(rest.trim_start())?;
    let (scope, name, rest) = match rest.trim_start().strip_prefix(',') {
        None => ("default", first, rest),
        Some(rest) => {
            let (name, rest) = quoted(rest.trim_start())?;
            (first, name, rest)
        }
    };
    let rest = rest.trim_start().strip_prefix(')')?;
    let is_direct = SCOPES.contains(&scope) && !library::is_computed(name);
    is_direct.then_some((Scope::of(scope)?, name, true, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use crate::{Expression, Settings};
    use std::sync::Arc;

    #[test]
    fn which_expressions_are_a_property() {
        for (text, scope, name, compared) in [
            ("$trp:X-Route", Scope::Transport, "X-Route", None),
            (" $ctx:a.b_c ", Scope::Default, "a.b_c", None),
            ("$axis2:HTTP_METHOD='GET'", Scope::Axis2, "HTTP_METHOD", Some(("GET", true))),
            ("$var:v != \"it's\"", Scope::Variable, "v", Some(("it's", false))),
            ("get-property('x y')", Scope::Default, "x y", None),
            ("get-property( 'transport' , \"H\" ) = ''", Scope::Transport, "H", Some(("", true))),
        ] {
            let direct = Direct::of(text).unwrap_or_else(|| panic!("{text} is one"));
            assert_eq!((direct.scope, direct.name.as_str()), (scope, name), "{text}");
            let comparison = direct.compared.as_ref().map(|(literal, equal)| (literal.as_str(), *equal));
            assert_eq!(comparison, compared, "{text}");
        }
        for text in [
            "",
            "$trp:",
            "$body",
            "$func:a",
            "$ctx:a/b",
            "$ctx:a[1]",
            "$ctx:a + 1",
            "$ctx:a = $ctx:b",
            "$ctx:a = 1",
            "$ctx:a = 'x' or true()",
            "$ctx:1",
            "$ctx:a:b",
            "//a",
            "get-property('To')",
            "get-property($ctx:a)",
            "get-property('registry', 'a')",
            "get-property('func', 'a')",
            "get-property('axis2', 'a', 'b')",
            "get-property('a')/b",
            "get-property('a",
            "concat('a', 'b')",
            "$ctx:é",
            "get-property('x', 'SYSTEM_TIME')",
        ] {
            assert!(Direct::of(text).is_none(), "{text}");
        }
    }

    #[test]
    fn which_property_an_expression_starts_with() {
        for (text, found) in [
            ("$ctx:a", Some((Scope::Default, "a", false))),
            (" $axis2:a.b/c[1]", Some((Scope::Axis2, "a.b", false))),
            ("get-property('operation', 'a')", Some((Scope::Operation, "a", true))),
            ("$ctx:", None),
            ("$body/a", None),
            ("//a[. = $ctx:b]", None),
        ] {
            assert_eq!(holder(text), found, "{text}");
        }
    }

    #[test]
    fn whole_numbers_that_are_no_doubles_stay_exact() {
        let registry = testing::registry(Vec::new());
        let tested = testing::main(&registry, "");
        for (number, text) in
            [(9_007_199_254_740_993, "9007199254740993"), (i64::MAX, "9223372036854775807"), (-5, "-5")]
        {
            let mut context = tested.context(&[], "");
            context.properties.set("p", Value::Integer(number));
            let scope = config::Scope::default();
            let settings = Settings::default();
            let expression = Expression::compile("$ctx:p", &scope, diagnostics::Span::BUILT_IN, &settings)
                .expect("it compiles");
            assert_eq!(expression.string(&mut context).ok().flatten().as_deref(), Some(text));
        }
    }

    /// With and without the short way the answers are the same.
    #[test]
    fn answers_are_those_of_xpath() {
        let json = serde_json::json!({"a": 1});
        let registry = testing::registry(Vec::new());
        let tested = testing::main(&registry, "");
        let settings = Settings::default();
        let values = [
            None,
            Some(Value::from("")),
            Some(Value::from("x")),
            Some(Value::Integer(3)),
            Some(Value::Double(0.5)),
            Some(Value::Boolean(false)),
            Some(Value::Json(Arc::new(json))),
        ];
        for value in values {
            for text in [
                "$ctx:p",
                "get-property('p')",
                "$ctx:p = 'x'",
                "$ctx:p != 'x'",
                "$ctx:p = ''",
                "$ctx:p = '3'",
            ] {
                let mut context = tested.context(&[], "");
                if let Some(value) = &value {
                    context.properties.set("p", value.clone());
                }
                let compile = |text: &str| {
                    Expression::compile(
                        text,
                        &config::Scope::default(),
                        diagnostics::Span::BUILT_IN,
                        &settings,
                    )
                    .expect("it compiles")
                };
                // Parentheses are not looked through.
                let (short, long) = (compile(text), compile(&format!("({text})")));
                let both = |expression: &Expression, context: &mut Context| {
                    (
                        format!("{:?}", expression.value(context).ok()),
                        expression.string(context).ok(),
                        expression.with_string(context, |text| text.map(str::to_owned)).ok(),
                        expression.boolean(context).ok(),
                    )
                };
                assert!(Direct::of(text).is_some() && Direct::of(&format!("({text})")).is_none());
                assert_eq!(both(&short, &mut context), both(&long, &mut context), "{text} of {value:?}");
            }
        }
    }

    /// Headers are lent where they are UTF-8 and no step has said something else.
    #[test]
    fn what_is_lent_is_what_is_copied() {
        let registry = testing::registry(Vec::new());
        let tested = testing::main(&registry, "");
        let settings = Settings::default();
        for text in [
            "$trp:X-Route",
            "$trp:content-type",
            "$trp:X-Route = 'b'",
            "get-property('transport', 'X-Route')",
        ] {
            let expression =
                Expression::compile(text, &config::Scope::default(), diagnostics::Span::BUILT_IN, &settings)
                    .expect("it compiles");
            for header in [None, Some(&b"b"[..]), Some(b""), Some("é".as_bytes()), Some(b"caf\xe9")] {
                for said in [None, Some("text/plain")] {
                    let mut context = tested.context(&[("Content-Type", "text/xml")], "");
                    if let Some(header) = header {
                        context.headers.set("x-route", header);
                    }
                    if let Some(said) = said {
                        context.set_header("Content-Type", said);
                    }
                    let lent = expression.with_string(&mut context, |text| text.map(str::to_owned)).ok();
                    assert_eq!(lent, expression.string(&mut context).ok(), "{text}, {header:?}, {said:?}");
                }
            }
        }
    }
}
