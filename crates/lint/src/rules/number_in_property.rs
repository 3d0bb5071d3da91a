//! `number-in-property`: a computed property that is compared with a text, where the two engines write numbers in two ways. Sources that are numbers
//! themselves are looked at when the configuration loads.

use crate::Rule;
use crate::look::{Finding, Look};
use crate::xpaths;
use config::{Attribute, Element};
use diagnostics::{Severity, Span};
use flow::{NumberForm, Pattern};
use std::collections::HashMap;
use xpath::ast::{BinaryOp, Expr, ExprKind};

pub const RULE: Rule = Rule {
    id: "number-in-property",
    severity: Severity::Warning,
    summary: "A property with a computed number is compared with a text that fits only one way to write numbers: `2` here, `2.0` in WSO2.",
    reason: "A number that an XPath has computed is `2` here and `2.0` in WSO2. A pattern or a text that fits only one of them decides in another way than there.
Reported are properties that every `property` of their name sets to such a number, or to a fixed text that does not fit (`value=\"0\"` of a counter). (Sources that are numbers themselves are `number-form`.)

`string(count(//item))` is `2` in both. `java_numbers = true` in busbar.toml writes numbers as WSO2 does.",
    example: r#"<sequence name="Route">
  <property name="items" expression="count(//item)"/>
  <filter source="$ctx:items" regex="2\.0">
    <then>
      <respond/>
    </then>
    <else>
      <drop/>
    </else>
  </filter>
</sequence>"#,
    mended: r#"<sequence name="Route">
  <property name="items" expression="string(count(//item))"/>
  <filter source="$ctx:items" regex="2">
    <then>
      <respond/>
    </then>
    <else>
      <drop/>
    </else>
  </filter>
</sequence>"#,
    check,
};

fn check(look: &mut Look<'_>) {
    let java = look.settings.java_numbers;
    let steps = look.steps();
    let computed = computed(&steps);
    let mut found = Vec::new();
    for step in steps.into_iter().filter(|_| !computed.is_empty()) {
        for xpath in xpaths::of(&look.language, step) {
            if &*xpath.attribute.name.local == "source"
                && let Some(computed) = property(&xpath.expression).and_then(|name| computed.get(name))
            {
                found.extend(patterns(step).into_iter().filter_map(|pattern| {
                    let compiled = Pattern::compile(&pattern.value).ok()?;
                    let fits = |text: &str| compiled.matches(text) == Ok(true);
                    computed.unlike(fits, java, pattern.value_span)
                }));
            }
            xpaths::walk(&xpath.expression, &mut |part| {
                if let ExprKind::Binary(BinaryOp::Equal | BinaryOp::NotEqual, left, right) = &part.kind {
                    for (side, other) in [(left, right), (right, left)] {
                        if let ExprKind::Literal(text) = &side.kind
                            && let Some(computed) = property(other).and_then(|name| computed.get(name))
                        {
                            found.extend(computed.unlike(|form| form == text, java, xpath.place(side.span)));
                        }
                    }
                }
            });
        }
    }
    found.into_iter().for_each(|finding| look.report(finding));
}

/// What a property is set to that is a number somewhere.
struct Computed<'e> {
    /// Where it is set to a computed number.
    number: Span,
    /// The fixed texts that it is set to as well.
    texts: Vec<&'e str>,
}

impl Computed<'_> {
    /// The finding about what fits only one of the two forms.
    fn unlike(&self, fits: impl Fn(&str) -> bool, java: bool, place: Span) -> Option<Finding> {
        // It may be there for that text.
        if self.texts.iter().any(|text| fits(text)) {
            return None;
        }
        let (message, label, help) = match NumberForm::of(fits, java)? {
            NumberForm::Never => (
                "the number in this property is `2` here and `2.0` in WSO2: this never fits",
                "fits numbers as WSO2 writes them",
                "write it without `.0`, or set java_numbers = true in busbar.toml",
            ),
            NumberForm::HereOnly => (
                "the number in this property is `2` here and `2.0` in WSO2: this fits here only",
                "fits whole numbers without a point",
                "string(…) around what the property is set to means the same in both",
            ),
            NumberForm::NeverAsDouble => (
                "with java_numbers the number in this property is `2.0`: this never fits",
                "fits whole numbers without a point",
                "write it with `.0`, or put string(…) around what the property is set to",
            ),
        };
        let set = "the number is computed here";
        Some(Finding::new(message, place, label).and(self.number, set).help(help))
    }
}

/// What a `property` sets.
enum Set<'e> {
    Number(Span),
    Text(&'e str),
    Other,
}

/// The properties of default scope that are numbers or fixed texts wherever they are set, and a number somewhere.
fn computed<'e>(steps: &[&'e Element]) -> HashMap<&'e str, Computed<'e>> {
    let mut all: HashMap<&str, Vec<Set<'e>>> = HashMap::new();
    let groups = steps.iter().filter(|step| step.is("propertyGroup"));
    let grouped = groups.flat_map(|group| group.children_named("property"));
    for step in steps.iter().copied().filter(|step| step.is("property")).chain(grouped) {
        let is_default = matches!(step.attr("scope").map(str::trim), None | Some("" | "default" | "synapse"));
        if !is_default || step.attr("action").is_some_and(|action| action.trim() == "remove") {
            continue;
        }
        if let Some(name) = step.attr("name") {
            all.entry(name.trim()).or_default().push(set(step));
        }
    }
    let computed = all.into_iter().filter_map(|(name, sets)| {
        let (mut number, mut texts) = (None, Vec::new());
        for set in sets {
            match set {
                Set::Number(place) => number = number.or(Some(place)),
                Set::Text(text) => texts.push(text),
                Set::Other => return None,
            }
        }
        Some((name, Computed { number: number?, texts }))
    });
    computed.collect()
}

/// What a `property` sets its property to.
fn set(step: &Element) -> Set<'_> {
    let kind = step.attr("type").unwrap_or("string").trim();
    let is = |name: &&str| kind.eq_ignore_ascii_case(name);
    if let Some(text) = step.attr("value") {
        return match ["string", "integer", "long", "short"].iter().any(is) {
            true => Set::Text(text),
            false => Set::Other,
        };
    }
    match step.attribute("expression").filter(|_| is(&"string")) {
        Some(attribute)
            if xpath::parse(attribute.value.trim(), xpath::Version::V1)
                .is_ok_and(|parsed| is_number(&parsed)) =>
        {
            Set::Number(attribute.value_span)
        }
        _ => Set::Other,
    }
}

/// Whether an XPath gives a number.
fn is_number(expression: &Expr) -> bool {
    match &expression.kind {
        ExprKind::Number(_) | ExprKind::Negate(_) => true,
        ExprKind::Binary(operator, ..) => matches!(
            operator,
            BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Modulo
        ),
        ExprKind::Call(name, _) => {
            name.prefix.is_empty()
                && matches!(
                    name.local.as_str(),
                    "count"
                        | "sum"
                        | "number"
                        | "floor"
                        | "ceiling"
                        | "round"
                        | "string-length"
                        | "position"
                        | "last"
                )
        }
        _ => false,
    }
}

/// The property of default scope that an XPath is.
fn property(expression: &Expr) -> Option<&str> {
    match &expression.kind {
        ExprKind::Variable(name) if name.prefix == "ctx" => Some(&name.local),
        ExprKind::Call(name, arguments) if name.local == "get-property" => match &arguments[..] {
            [Expr { kind: ExprKind::Literal(name), .. }] => Some(name),
            [Expr { kind: ExprKind::Literal(scope), .. }, Expr { kind: ExprKind::Literal(name), .. }]
                if matches!(scope.as_str(), "default" | "synapse") =>
            {
                Some(name)
            }
            _ => None,
        },
        _ => None,
    }
}

/// The patterns that a source is matched with.
fn patterns(step: &Element) -> Vec<&Attribute> {
    match step.local() {
        "filter" => step.attribute("regex").into_iter().collect(),
        "switch" => step.children_named("case").filter_map(|case| case.attribute("regex")).collect(),
        _ => Vec::new(),
    }
}
