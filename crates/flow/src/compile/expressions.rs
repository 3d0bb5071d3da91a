//! Expressions, texts with expressions, regular expressions and values from outside, each with its findings.

use super::Compiler;
use crate::expression::synapse::Text;
use crate::expression::{Expression, KeyValue, Outcome};
use crate::vault::{Lookup, lookups};
use config::{Element, Key};
use diagnostics::{Diagnostic, Span};
use message::jsonpath::{Dialect, JsonPath, JsonPathError};
use message::regex::Pattern;
use std::sync::Arc;

/// How a comparison of a computed number with a text goes wrong where the text fits only one way to write numbers: `2` here, `2.0` in WSO2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberForm {
    /// It fits numbers as WSO2 writes them, and those here never.
    Never,
    /// It fits numbers as they are here, and those of WSO2 never.
    HereOnly,
    /// It fits numbers without a point, which are not written with `java_numbers`.
    NeverAsDouble,
}

impl NumberForm {
    /// That of what fits texts. `java`: numbers are written as in WSO2. `None`: nothing goes wrong.
    pub fn of(fits: impl Fn(&str) -> bool, java: bool) -> Option<NumberForm> {
        let plain = (0..=100).any(|number: u32| fits(&number.to_string()));
        let double = (0..=100).any(|number: u32| fits(&format!("{number}.0")));
        match (plain, double) {
            (false, true) if !java => Some(NumberForm::Never),
            (true, false) if !java => Some(NumberForm::HereOnly),
            (true, false) => Some(NumberForm::NeverAsDouble),
            _ => None,
        }
    }
}

impl Compiler<'_> {
    /// The expression in an attribute; `None` if it is absent, or wrong (recorded).
    pub fn expression(&mut self, element: &Element, attribute: &str) -> Option<Expression> {
        let attribute = element.attribute(attribute)?;
        self.expression_text(&attribute.value, attribute.value_span, element.scope())
    }

    /// An expression; `None` if it is wrong (recorded).
    pub fn expression_text(&mut self, text: &str, span: Span, scope: &config::Scope) -> Option<Expression> {
        self.read_expression(text, span, scope, true)
    }

    /// An expression within a text. WSO2 reads such ones when a message comes, so that a wrong one (recorded) is a fault of its step.
    pub fn expression_in_text(
        &mut self,
        text: &str,
        span: Span,
        scope: &config::Scope,
    ) -> Option<Expression> {
        self.read_expression(text, span, scope, false)
    }

    fn read_expression(
        &mut self,
        text: &str,
        span: Span,
        scope: &config::Scope,
        when_loading: bool,
    ) -> Option<Expression> {
        if text.trim().is_empty() {
            self.error(
                "empty-expression",
                "the expression is empty",
                span,
                "expected an XPath, json-eval(…) or ${…}",
            );
            return None;
        }
        match Expression::compile(text, scope, span, &self.services.settings) {
            Ok(expression) => {
                let start = text.len() - text.trim_start().len() + 2;
                for warning in expression.warnings() {
                    let place = span.part(start + warning.span.start, warning.span.len().max(1));
                    self.warning("expression", warning.message.clone(), place, warning.advice.clone());
                }
                self.check_configured(&expression, start, span);
                let (path, remarks) = expression.json_remarks();
                let start = text.find(path).unwrap_or(0);
                self.report_json_remarks(text, remarks, start, span);
                let is_remarked = !remarks.is_empty();
                if !expression.is_synapse() && !expression.is_json() {
                    self.check_point(text, span);
                }
                if let Some(stray) = stray_bracket(text).filter(|_| !is_remarked) {
                    self.warning(
                        "bad-expression",
                        format!("`{}` gives nothing", text.trim()),
                        span.part(stray, 1),
                        "this closing bracket belongs to no opening one, so it is taken for a part of a name",
                    );
                }
                self.check_secrets(text, span);
                Some(expression)
            }
            Err(error) => {
                let place = span.part(error.offset.start, error.offset.len().max(1));
                let text = text.trim();
                let outcome = match error.outcome {
                    Outcome::Refused if !when_loading => Outcome::Fault,
                    other => other,
                };
                let found = match outcome {
                    Outcome::Refused => {
                        Diagnostic::error("bad-expression", format!("`{text}` is not a valid expression"))
                    }
                    Outcome::Nothing if error.message.contains("is not declared") => {
                        Diagnostic::warning("undeclared-prefix", format!("`{text}` will select nothing"))
                    }
                    Outcome::Nothing => {
                        Diagnostic::warning("bad-expression", format!("`{text}` will give nothing"))
                    }
                    Outcome::Fault => Diagnostic::warning(
                        "bad-expression",
                        format!("`{text}` cannot be evaluated: each message faults here"),
                    ),
                };
                let found = found.at(place, error.message.clone());
                let written_apart =
                    text.strip_prefix("json-eval").is_some_and(|rest| rest.trim_start() != rest);
                self.diagnostics.push(match error.is_xpath2 {
                    true => found.help(
                        "it is XPath 2.0: with `\"synapse.xpath.dom.failover.enabled\" = true` under [wso2] in busbar.toml it runs, on the first child of the body",
                    ),
                    false if text.starts_with("json-eval(") && !text.ends_with(')') => found.help(
                        "write `json-eval(…)`, with the bracket at the very end: the whole expression is one JSONPath",
                    ),
                    false if written_apart => found.help("write `json-eval(…)` without a space before the bracket"),
                    false if text.contains("json-eval(") => found.help(
                        "json-eval(…) is an expression of its own and no function of XPath: put its value into a property, and read `$ctx:NAME`",
                    ),
                    false if text.starts_with("xpath(") => {
                        found.help(format!("xpath(…) is a function of `${{…}}`: write `${{{text}}}`, or the XPath alone"))
                    }
                    false if text == "$" || text.starts_with("$.") || text.starts_with("$[") => found.help(
                        format!("it is read as XPath: a JSONPath is written `json-eval({text})`"),
                    ),
                    false => found,
                });
                let runs = outcome != Outcome::Refused;
                runs.then(|| Expression::broken(text, span, error.message, outcome))
            }
        }
    }

    /// A bare JSONPath that begins `start` bytes into what `span` covers; `None` if it is wrong (recorded).
    pub fn json_path(&mut self, text: &str, start: usize, span: Span) -> Option<JsonPath> {
        match JsonPath::compile(text, Dialect::Jayway) {
            Ok(path) => {
                self.report_json_remarks(text, path.remarks(), start, span);
                Some(path)
            }
            Err(error) => {
                let place = span.part(start + error.span.start, error.span.len().max(1));
                self.error("bad-expression", format!("`{text}` is not a JSONPath"), place, error.message);
                None
            }
        }
    }

    /// Warns of what Jayway reads in a JSONPath, though nobody means it.
    fn report_json_remarks(&mut self, text: &str, remarks: &[JsonPathError], start: usize, span: Span) {
        for remark in remarks {
            let place = span.part(start + remark.span.start, remark.span.len().max(1));
            let message = format!("`{}` is hardly what was meant", text.trim());
            self.warning("bad-expression", message, place, remark.message.clone());
        }
    }

    /// A text with `${…}` in it.
    pub fn text(&mut self, text: &str, span: Span, scope: &config::Scope) -> Option<Text> {
        self.check_closed(text, |open| span.part(open, 2));
        let cut = ::expression::Template::cut(text, |expression, at| {
            self.expression_in_text(expression, span.part(at, expression.len()), scope).ok_or(())
        });
        cut.ok().map(Text::of)
    }

    /// An attribute that is a literal, or an expression in braces.
    pub fn key_value(&mut self, element: &Element, attribute: &str) -> Option<KeyValue> {
        let attribute = element.attribute(attribute)?;
        match config::Value::of(attribute, element) {
            config::Value::Literal(key) => Some(KeyValue::Literal(Arc::from(key.value))),
            config::Value::Deferred(key) => Some(KeyValue::Literal(Arc::from(key.value))),
            config::Value::Expression(expression) => self
                .expression_text(&expression.source, expression.span, &expression.scope)
                .map(KeyValue::Dynamic),
        }
    }

    /// A regular expression of Java's dialect that has to match a whole value.
    pub fn pattern(&mut self, element: &Element, attribute: &str) -> Option<Pattern> {
        let attribute = element.attribute(attribute)?;
        match Pattern::compile(&attribute.value) {
            Ok(pattern) => Some(pattern),
            Err(why) => {
                self.error(
                    "bad-pattern",
                    format!("`{}` is not a valid regular expression", attribute.value),
                    attribute.value_span,
                    why,
                );
                None
            }
        }
    }

    /// Warns where a text has a `${` that is not closed. `place` gives that of an offset.
    pub fn check_closed(&mut self, text: &str, place: impl FnOnce(usize) -> Span) {
        if let Some(open) = ::expression::unclosed(text) {
            let label = "so what follows is text, not an expression";
            self.warning("expression", "the `${` is not closed", place(open), label);
        }
    }

    /// Warns where an expression gives numbers and what they are compared with fits only one way to write them: `2` here,
    /// `2.0` in WSO2.
    pub fn check_numbers(&mut self, source: &Expression, pattern: &Pattern, place: Span) {
        if !source.gives_number() {
            return;
        }
        let fits = |form: &str| pattern.matches(form) == Ok(true);
        let (message, label) = match NumberForm::of(fits, self.services.settings.java_numbers) {
            Some(NumberForm::Never) => (
                "a number is `2` here and `2.0` in WSO2: this never matches",
                "write it without `.0`, or set java_numbers = true in busbar.toml",
            ),
            Some(NumberForm::HereOnly) => (
                "a number is `2` here and `2.0` in WSO2: this matches here only",
                "string(…) around the source means the same in both",
            ),
            Some(NumberForm::NeverAsDouble) => (
                "with java_numbers a number is `2.0`: this never matches",
                "write it with `.0`, or put string(…) around the source",
            ),
            None => return,
        };
        self.warning("number-form", message, place, label);
    }

    /// Warns where a text is taken out of a number by its point, which numbers have in WSO2 only.
    fn check_point(&mut self, text: &str, span: Span) {
        let dense: String = text.split_whitespace().collect();
        let cut = ["substring-before(", "substring-after("].iter().find_map(|name| dense.split_once(name));
        let by_point = cut.is_some_and(|(_, rest)| rest.contains(",'.')") || rest.contains(",\".\")"));
        if self.services.settings.java_numbers || !by_point {
            return;
        }
        self.warning(
            "number-form",
            "a whole number has no point here; in WSO2 `3` that an XPath has computed is `3.0`",
            span,
            "the part before the point of such a number is empty here: leave the function out, or set java_numbers = true in busbar.toml",
        );
    }

    /// Warns of values of the configuration (`${configs.NAME}`) that are not set, once for each name.
    fn check_configured(&mut self, expression: &Expression, start: usize, span: Span) {
        let values = expression.synapse().map_or(&[][..], ::expression::Expression::configured);
        for value in values {
            let name = value.name.as_str();
            let injector = &self.configuration.injector;
            if injector.environment(name).is_some()
                || injector.property(name).is_some()
                || self.services.settings.system.contains_key(name)
            {
                continue;
            }
            let message = format!("`{name}` is set neither as environment variable nor in file.properties");
            if !self.diagnostics.iter().any(|found| found.message == message) {
                let place = span.part(start + value.span.start, value.span.len());
                self.warning(
                    "unresolved-value",
                    message,
                    place,
                    "this has no value as long as it is not set",
                );
            }
        }
    }

    /// Warns of the secrets that an expression names and that cannot be had now: messages that need one fault.
    fn check_secrets(&mut self, text: &str, span: Span) {
        for Lookup { remote, arguments, place } in lookups(text) {
            let argument = |at: usize| arguments.get(at).copied();
            let secret = match remote {
                true => self.vault.remote(&arguments, true),
                false => self.vault.look_up(argument(0).unwrap_or_default(), argument(1), argument(2)),
            };
            if let Err(missing) = secret {
                let place = span.part(place.start, place.len());
                let message =
                    format!("the secret of `{}` is not available: messages that need it fault", text.trim());
                self.warning("unknown-secret", message, place, missing.why);
            }
        }
    }

    /// A value of a configuration that may come from outside: `$SYSTEM:NAME` and its kind, `$env{NAME}`, a secret as `$secret{alias}` or as
    /// `{wso2:vault-lookup('alias')}`. `None` if it cannot be had (recorded).
    pub fn outside(&mut self, key: &Key) -> Option<String> {
        let text = key.value.trim();
        let within = |mark: &str| text.strip_prefix(mark).and_then(|rest| rest.strip_suffix('}'));
        if let Some(name) = within("$env{") {
            let value = self.configuration.injector.environment(name.trim());
            if value.is_none() {
                let message = format!("the environment variable `{name}` is not set");
                let found = match self.services.settings.check_only {
                    true => Diagnostic::warning("unresolved-value", message),
                    false => Diagnostic::error("unresolved-value", message),
                };
                self.diagnostics.push(found.at(key.span, "needed for this value"));
                return self.services.settings.check_only.then(String::new);
            }
            return value;
        }
        let call = text.trim_start_matches(['$', '{']).trim_end_matches('}').trim();
        let looked_up = match (within("$secret{"), lookups(call).first()) {
            (Some(alias), _) => Some((alias.to_owned(), self.vault.look_up(alias, None, None))),
            (None, Some(Lookup { remote, arguments, place }))
                if place.end == call.len() && !call[..place.start].contains(' ') =>
            {
                let argument = |at: usize| arguments.get(at).copied();
                let alias = argument(0).unwrap_or_default();
                let secret = match remote {
                    true => self.vault.remote(arguments, true),
                    false => self.vault.look_up(alias, argument(1), argument(2)),
                };
                Some((alias.to_owned(), secret))
            }
            _ => None,
        };
        let Some((alias, secret)) = looked_up else {
            let mark = self.diagnostics.len();
            let resolved = self.configuration.injector.resolve(key.clone(), self.diagnostics);
            if self.diagnostics.has_errors_since(mark) {
                return None;
            }
            if resolved.value == key.value && within("${").is_some() && !config::is_unresolved(&key.value) {
                // It may be a password.
                let message = "the value is taken as it is, with its `${` and `}`";
                let advice = "for an environment variable write `$SYSTEM:NAME` or `$env{NAME}`";
                self.warning("unresolved-value", message, key.span, advice);
            }
            return Some(resolved.value);
        };
        match secret {
            Ok(secret) => Some(secret),
            Err(missing) => {
                let message = format!("the secret `{alias}` is not available");
                if missing.absent && self.services.settings.check_only {
                    let found = Diagnostic::warning("unknown-secret", message).at(key.span, missing.why);
                    self.diagnostics.push(found.help("the machine that runs it needs it"));
                    return Some(String::new());
                }
                self.error("unknown-secret", message, key.span, missing.why);
                None
            }
        }
    }
}

/// The closing bracket of a `json-eval(…)` that no opening one belongs to, by its offset. Those in quotes do not count.
fn stray_bracket(text: &str) -> Option<usize> {
    let start = text.find("json-eval(").filter(|at| text[..*at].trim().is_empty())?;
    // In a regular expression brackets may be anything.
    if text.contains("=~") {
        return None;
    }
    let end = text.trim_end().len();
    let (mut depth, mut quote) = (0usize, None);
    let mut characters = text[start..end].char_indices();
    while let Some((at, character)) = characters.next() {
        match (character, quote) {
            ('\\', Some(_)) => {
                characters.next();
            }
            (_, Some(open)) if character == open => quote = None,
            (_, Some(_)) => {}
            ('\'' | '"', None) => quote = Some(character),
            ('(', None) => depth += 1,
            // The last one closes the expression.
            (')', None) if depth <= 1 && start + at + 1 < end => return Some(start + at),
            (')', None) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::stray_bracket;

    #[test]
    fn brackets_of_json_eval_that_belong_to_none_are_found() {
        for (text, stray) in [
            ("json-eval($.a)", None),
            ("json-eval($.a))", Some(13)),
            (" json-eval($.a) ) ", Some(14)),
            ("json-eval($.a[?(@.b == ')')].length())", None),
            ("json-eval($.a[?(@.b == 1)]))", Some(26)),
            ("json-eval($.a[?(@.b =~ /x\\)/)])", None),
            ("json-eval($['a)'])", None),
            ("concat('a)', ')')", None),
        ] {
            assert_eq!(stray_bracket(text), stray, "{text}");
        }
    }
}
