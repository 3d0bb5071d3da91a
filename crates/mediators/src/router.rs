//! `conditionalRouter` and `router`: routes with a condition and a target each, tried in order.
//!
//! A router compiles to a chain of lists: a route is a step that enters its target, the rest of the routes, or one
//! after the other; behind the chain stands a step that ends the flow unless `continueAfter` is true.

use crate::target::Target;
use config::Element;
use flow::endpoint::EndpointRef;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Expression, Fault, Flow, ListId, Mediator,
    Need, Pattern, Values,
};
use std::sync::Arc;

const CONTINUE_AFTER: Attribute =
    Attribute::optional("continueAfter", Values::Boolean, "go on behind the router").or("false");

/// `<conditionalRouter><conditionalRoute><condition>…</condition><target …/></conditionalRoute>*</conditionalRouter>`
pub const CONDITIONAL: Definition = Definition {
    name: "conditionalRouter",
    summary: "Runs the target of the first route whose condition holds; the flow ends behind it.",
    attributes: &[CONTINUE_AFTER],
    children: Children::Elements(&["conditionalRoute"]),
    compile: |element, compiler| {
        compile(element, compiler, "conditionalRoute", "breakRoute", conditional_route)
    },
};

/// `<router><route expression="EXPR" [match="PATTERN"]><target …/></route>+</router>`
pub const ROUTER: Definition = Definition {
    name: "router",
    summary: "Runs the target of the first route whose expression is true or matches; the flow ends behind it.",
    attributes: &[CONTINUE_AFTER],
    children: Children::Elements(&["route"]),
    compile: |element, compiler| compile(element, compiler, "route", "breakRouter", route),
};

/// What a route depends on.
enum Condition {
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
    /// The whole value matches.
    Match(Source, Pattern),
    /// The value is this, whatever the case.
    Equal(Source, String),
    Truth(Expression),
}

/// Where a value comes from.
enum Source {
    Header(String),
    Parameter(String),
    /// A part of the To address.
    Url(Part),
    Property(String),
    Expression(Expression),
}

#[derive(Clone, Copy)]
enum Part {
    Whole,
    Protocol,
    User,
    Host,
    Port,
    Path,
    Query,
    Fragment,
}

/// One step: the target if the condition holds, else the rest.
struct Route {
    condition: Condition,
    /// The target alone, or followed by the rest where the route does not break.
    taken: ListId,
    rest: ListId,
}

struct Goes(Target);

struct Enters(ListId);

struct Ends;

fn compile(
    element: &Element,
    compiler: &mut Compiler<'_>,
    child: &str,
    breaks: &str,
    condition: fn(&Element, &mut Compiler<'_>) -> Option<Condition>,
) -> Compiled {
    let name = if child == "route" { ROUTER.name } else { CONDITIONAL.name };
    let mut rest = compiler.list_of(element, name, "no route", Vec::new());
    // From the last route to the first: each knows what comes behind it.
    for own in element.children_named(child).rev() {
        let condition = condition(own, compiler)?;
        let Some(target) = own.child("target") else {
            compiler.error(
                "missing-element",
                format!("`{child}` needs a target"),
                own.start_tag(),
                "expected `target`",
            );
            return None;
        };
        let target = Target::compile(target, format!("target of {child}"), compiler)?;
        let mut steps: Vec<Box<dyn Mediator>> = vec![Box::new(Goes(target))];
        if own.attr(breaks).map(str::trim) == Some("false") {
            steps.push(Box::new(Enters(rest)));
        }
        let taken = compiler.list_of(own, name, format!("{child} taken"), steps);
        let step = Box::new(Route { condition, taken, rest });
        rest = compiler.list_of(own, name, format!("{child} and what is behind it"), vec![step]);
    }
    let mut steps: Vec<Box<dyn Mediator>> = vec![Box::new(Enters(rest))];
    if element.attr("continueAfter").map(str::trim) != Some("true") {
        steps.push(Box::new(Ends));
    }
    Some(Box::new(Enters(compiler.list_of(element, name, name, steps))))
}

fn route(element: &Element, compiler: &mut Compiler<'_>) -> Option<Condition> {
    if element.attr("expression").is_none() {
        return needs(element, "expression", compiler);
    }
    let expression = compiler.expression(element, "expression")?;
    Some(match element.attr("match") {
        None => Condition::Truth(expression),
        Some(_) => Condition::Match(Source::Expression(expression), compiler.pattern(element, "match")?),
    })
}

fn conditional_route(element: &Element, compiler: &mut Compiler<'_>) -> Option<Condition> {
    if element.attr("asynchronous").map(str::trim) == Some("true") {
        compiler.warning(
            "no-effect",
            "routes are not asynchronous here",
            element.start_tag(),
            "the target runs in place: nothing waits for it",
        );
    }
    match element.child("condition").and_then(|condition| condition.elements().next()) {
        Some(evaluator) => evaluator_of(evaluator, compiler),
        None => needs(element, "condition", compiler),
    }
}

fn evaluator_of(element: &Element, compiler: &mut Compiler<'_>) -> Option<Condition> {
    let mut inside = |least: usize, most: usize| -> Option<Vec<Condition>> {
        let count = element.elements().count();
        if !(least..=most).contains(&count) {
            let expected =
                if most == 1 { "expected one condition" } else { "expected two conditions or more" };
            compiler.error(
                "bad-value",
                format!("`{}` holds {count}", element.local()),
                element.start_tag(),
                expected,
            );
            return None;
        }
        element.elements().map(|child| evaluator_of(child, compiler)).collect()
    };
    match element.local() {
        "and" => Some(Condition::And(inside(2, usize::MAX)?)),
        "or" => Some(Condition::Or(inside(2, usize::MAX)?)),
        "not" => Some(Condition::Not(Box::new(inside(1, 1)?.pop()?))),
        "match" if element.attr("regex").is_none() => needs(element, "regex", compiler),
        "match" => {
            let pattern = compiler.pattern(element, "regex");
            Some(Condition::Match(source_of(element, compiler)?, pattern?))
        }
        "equal" => match element.attr("value") {
            Some(value) => Some(Condition::Equal(source_of(element, compiler)?, value.to_owned())),
            None => needs(element, "value", compiler),
        },
        other => {
            let message = format!("`{other}` is no condition");
            compiler.error(
                "unknown-element",
                message,
                element.name_span(),
                "expected and, or, not, match or equal",
            );
            None
        }
    }
}

fn source_of(element: &Element, compiler: &mut Compiler<'_>) -> Option<Source> {
    let source = element.attr("source").unwrap_or_default().to_owned();
    let kind = element.attr("type").map_or("header", str::trim);
    if source.is_empty() && kind != "url" {
        return needs(element, "source", compiler);
    }
    Some(match kind {
        "header" => Source::Header(source),
        "param" => Source::Parameter(source),
        "property" => Source::Property(source),
        "soap" => Source::Expression(compiler.expression(element, "source")?),
        "url" => Source::Url(match source.as_str() {
            "" | "full" => Part::Whole,
            "protocol" => Part::Protocol,
            "user" => Part::User,
            "host" => Part::Host,
            "port" => Part::Port,
            "path" => Part::Path,
            "query" => Part::Query,
            "ref" => Part::Fragment,
            _ => return needs(element, "source", compiler),
        }),
        _ => return needs(element, "type", compiler),
    })
}

fn needs<T>(element: &Element, what: &str, compiler: &mut Compiler<'_>) -> Option<T> {
    let expected = match what {
        "type" => "expected header, param, url, property or soap",
        "source" if element.attr("type") == Some("url") => {
            "expected protocol, user, host, port, path, query or ref, or nothing"
        }
        _ => "it is missing or wrong here",
    };
    let message = format!("`{}` needs a {what}", element.local());
    compiler.error("missing-attribute", message, element.start_tag(), expected);
    None
}

impl Source {
    fn value(&self, context: &mut Context) -> Result<Option<String>, Fault> {
        Ok(match self {
            Source::Header(name) => context.headers.get_bytes(name).map(flow::library::header_text),
            Source::Property(name) => context.properties.get(name).map(ToString::to_string),
            Source::Expression(expression) => return expression.string(context),
            Source::Parameter(name) => {
                let to = context.to().unwrap_or_default();
                let query =
                    to.split('#').next().and_then(|to| to.split_once('?')).map_or("", |(_, query)| query);
                message::form::pairs(query).into_iter().find(|(own, _)| own == name).map(|(_, value)| value)
            }
            Source::Url(part) => part.of(&context.to().unwrap_or_default()).map(str::to_owned),
        })
    }
}

impl Part {
    /// This part of an address; `None` if it has none.
    fn of(self, url: &str) -> Option<&str> {
        let (rest, fragment) = match url.split_once('#') {
            Some((rest, fragment)) => (rest, Some(fragment)),
            None => (url, None),
        };
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        let (protocol, authority, path) = match rest.split_once("://") {
            Some((protocol, rest)) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                (Some(protocol), Some(authority), path)
            }
            None => (None, None, rest),
        };
        let user = authority.and_then(|authority| authority.rsplit_once('@'));
        let host_port = user.map(|(_, host)| host).or(authority);
        // The colons of an IPv6 address are inside of its brackets.
        let colon = host_port
            .and_then(|own| own.rfind(':').filter(|&at| own.rfind(']').is_none_or(|bracket| bracket < at)));
        match self {
            Part::Whole => Some(url),
            Part::Protocol => protocol,
            Part::User => user.map(|(user, _)| user),
            Part::Host => host_port.map(|own| &own[..colon.unwrap_or(own.len())]),
            Part::Port => Some(&host_port?[colon? + 1..]),
            Part::Path => Some(path),
            Part::Query => query,
            Part::Fragment => fragment,
        }
    }
}

impl Condition {
    fn holds(&self, context: &mut Context) -> Result<bool, Fault> {
        Ok(match self {
            Condition::And(all) => {
                for one in all {
                    if !one.holds(context)? {
                        return Ok(false);
                    }
                }
                true
            }
            Condition::Or(all) => {
                for one in all {
                    if one.holds(context)? {
                        return Ok(true);
                    }
                }
                false
            }
            Condition::Not(one) => !one.holds(context)?,
            Condition::Match(source, pattern) => {
                source.value(context)?.is_some_and(|value| pattern.matches(&value))
            }
            Condition::Equal(source, wanted) => {
                source.value(context)?.is_some_and(|value| value.to_lowercase() == wanted.to_lowercase())
            }
            Condition::Truth(expression) => expression.boolean(context)?,
        })
    }

    fn need(&self) -> Need {
        match self {
            Condition::And(all) | Condition::Or(all) => {
                all.iter().map(Condition::need).max().unwrap_or(Need::Nothing)
            }
            Condition::Not(one) => one.need(),
            Condition::Truth(expression)
            | Condition::Match(Source::Expression(expression), _)
            | Condition::Equal(Source::Expression(expression), _) => expression.need(),
            Condition::Match(..) | Condition::Equal(..) => Need::Headers,
        }
    }
}

impl Mediator for Route {
    fn need(&self) -> Need {
        self.condition.need()
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        vec![("taken".to_owned(), self.taken), ("else".to_owned(), self.rest)]
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        Ok(Flow::Enter(if self.condition.holds(context)? { self.taken } else { self.rest }))
    }
}

impl Mediator for Goes {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        self.0.list().map(|list| ("target".to_owned(), list)).into_iter().collect()
    }

    fn endpoints(&self) -> Vec<Arc<EndpointRef>> {
        self.0.endpoint().into_iter().collect()
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        self.0.flow(context)
    }
}

impl Mediator for Enters {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        vec![(String::new(), self.0)]
    }

    fn mediate(&self, _: &mut Context) -> Result<Flow, Fault> {
        Ok(Flow::Enter(self.0))
    }
}

impl Mediator for Ends {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn mediate(&self, _: &mut Context) -> Result<Flow, Fault> {
        Ok(Flow::Stop)
    }
}

#[cfg(test)]
mod tests {
    use super::Part;
    use crate::registry;
    use flow::testing::{self, Ended};

    fn run(text: &str) -> Ended {
        let flow = testing::main(&registry(testing::endpoints), text);
        assert!(flow.found.is_empty(), "{text}: {flow:?}");
        flow.run(&[("Content-Type", "application/xml"), ("X-K", "Gold")], "<a><b>1</b></a>")
    }

    fn set(name: &str) -> String {
        format!(r#"<target><sequence><property name="{name}" value="1"/></sequence></target>"#)
    }

    #[test]
    fn conditions_are_evaluated() {
        let prepare =
            r#"<property name="p" value="v"/><header name="To" value="http://u@h:81/x?q=a%20b&amp;r=2#f"/>"#;
        for (condition, wanted) in [
            (r#"<match source="X-K" regex="G.*"/>"#, true),
            (r#"<match source="X-K" regex="g.*"/>"#, false),
            (r#"<match source="X-None" regex=".*"/>"#, false),
            (r#"<equal source="X-K" value="gOLD"/>"#, true),
            (r#"<equal type="property" source="p" value="v"/>"#, true),
            (r#"<equal type="param" source="q" value="a b"/>"#, true),
            (r#"<equal type="url" source="port" value="81"/>"#, true),
            (r#"<match type="url" regex="http://u@h:81/.*"/>"#, true),
            (r#"<equal type="soap" source="//b" value="1"/>"#, true),
            (r#"<not><equal type="soap" source="//b" value="1"/></not>"#, false),
            (
                r#"<and><equal source="X-K" value="gold"/><equal type="property" source="p" value="w"/></and>"#,
                false,
            ),
            (
                r#"<or><equal source="X-K" value="gold"/><equal type="property" source="p" value="w"/></or>"#,
                true,
            ),
        ] {
            let end = run(&format!(
                r#"{prepare}<conditionalRouter><conditionalRoute><condition>{condition}</condition>{}</conditionalRoute></conditionalRouter>"#,
                set("taken")
            ));
            assert_eq!(end.property("taken").is_some(), wanted, "{condition} {:?}", end.fault());
        }
    }

    #[test]
    fn routes_break_and_the_flow_ends_unless_told_otherwise() {
        for (breaks, after, taken) in
            [("true", "false", "1--"), ("false", "true", "12a"), ("false", "false", "12-")]
        {
            let end = run(&format!(
                r#"<router continueAfter="{after}"><route expression="//b = 2">{}</route>
                   <route expression="//b = 1" breakRouter="{breaks}">{}</route>
                   <route expression="//b" match="\d">{}</route></router><property name="a" value="1"/>"#,
                set("0"),
                set("1"),
                set("2")
            ));
            assert_eq!(end.property("0"), None);
            for (place, name) in ["1", "2", "a"].iter().enumerate() {
                assert_eq!(
                    end.property(name).is_some(),
                    &taken[place..=place] != "-",
                    "{breaks} {after} {name}"
                );
            }
        }
    }

    #[test]
    fn nothing_matches_and_mistakes() {
        let end = run(r#"<conditionalRouter/><property name="a" value="1"/>"#);
        assert_eq!(end.property("a"), None);
        let end = testing::main(
            &registry(testing::endpoints),
            r#"<router><route expression="true()"><target sequence="none"/></route></router><!--top-->
               <sequence name="fault"><property name="seen" expression="$ctx:ERROR_MESSAGE"/></sequence>"#,
        )
        .run(&[], "");
        assert_eq!(end.property("seen").as_deref(), Some("Sequence named none cannot be found"));
        for (inside, wanted) in [
            (r#"<conditionalRoute><target/></conditionalRoute>"#, "`conditionalRoute` needs a condition"),
            (
                r#"<conditionalRoute><condition><and><equal source="a" value="b"/></and></condition><target/></conditionalRoute>"#,
                "`and` holds 1",
            ),
            (
                r#"<conditionalRoute><condition><equal source="a" value="b"/></condition></conditionalRoute>"#,
                "`conditionalRoute` needs a target",
            ),
            (
                r#"<conditionalRoute><condition><like/></condition><target/></conditionalRoute>"#,
                "`like` is no condition",
            ),
            (
                r#"<conditionalRoute><condition><match type="x" source="a" regex="b"/></condition><target/></conditionalRoute>"#,
                "`match` needs a type",
            ),
        ] {
            let text = format!("<conditionalRouter>{inside}</conditionalRouter>");
            let flow = testing::main(&registry(testing::endpoints), &text);
            assert!(flow.reports(wanted), "{flow:?}");
        }
    }

    #[test]
    fn addresses_have_parts() {
        for (url, host, port, path) in [
            ("http://h/x?q", Some("h"), None, "/x"),
            ("http://[::1]:8080", Some("[::1]"), Some("8080"), ""),
            ("http://[::1]/", Some("[::1]"), None, "/"),
            ("/only?x=http://y", None, None, "/only"),
            ("", None, None, ""),
        ] {
            assert_eq!(
                (Part::Host.of(url), Part::Port.of(url), Part::Path.of(url)),
                (host, port, Some(path)),
                "{url}"
            );
        }
    }
}
