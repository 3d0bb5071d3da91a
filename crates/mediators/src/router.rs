//! `conditionalRouter` and `router`: routes with a condition and a target each, tried in order.
//!
//! A router compiles to a chain of lists: a route is a step that enters its target, the rest of the routes, or one
//! after the other; behind the chain stands a step that ends the flow unless `continueAfter` is true.

use crate::condition::{Condition, EQUAL, MATCH, Source, needs};
use crate::steps::Enters;
use crate::target::{TARGET, TARGET_ENDPOINT, TARGET_SEQUENCE, Target};
use config::Element;
use flow::reference::EndpointRef;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Entry, Family, Fault, Flow, Inside, ListId,
    Mediator, Need, Page, SequenceRef, Values,
};
use std::sync::Arc;

const CONTINUE_AFTER: Attribute =
    Attribute::optional("continueAfter", Values::Boolean, "the flow goes on after the router").or("false");

/// `<conditionalRouter><conditionalRoute><condition>…</condition><target …/></conditionalRoute>*</conditionalRouter>`
pub const CONDITIONAL: Definition = Definition {
    name: "conditionalRouter",
    summary: "Runs the target of the first route whose condition holds; the flow ends after it.",
    attributes: &[CONTINUE_AFTER],
    children: Children::Elements(&["conditionalRoute"]),
    page: CONDITIONAL_PAGE,
    compile: |element, compiler| {
        compile(element, compiler, "conditionalRoute", "breakRoute", conditional_route)
    },
};

const CONDITIONAL_PAGE: Page = Page {
    family: Family::Routing,
    semantics: "The routes are tried in order. The first whose condition holds runs its target; with `breakRoute=\"false\"` the next ones are tried as
well. Then the flow ends, even if no route fits, unless `continueAfter` is true or a target has called an endpoint (`call`, not blocking).

A condition is one of `and` and `or` (two conditions or more), `not` (one), `match` and `equal`. These two have a `type` that says what
`source` is: the name of a transport `header` (the default), of a parameter of the query (`param`), of a property of default scope
(`property`), a part of the To address (`url`: protocol, user, host, port, path, query, ref; absent: all of it), or an XPath (`soap`). `match`
holds if `regex` matches the whole value, `equal` if the value is `value`, ignoring case. With a missing value neither holds.

A target runs the first of these that it has: the sequence inside, the sequence that it names, the endpoint inside, the endpoint that it names. If it
ends early (`drop`), only the target ends.",
    inside: &[
        Inside::new(
            "conditionalRoute*",
            "a route",
            &[
                Attribute::optional("breakRoute", Values::Boolean, "no further routes are tried").or("true"),
                Attribute::optional("asynchronous", Values::Boolean, "of no effect here: nothing waits for it").or("false"),
            ],
        ),
        Inside::new("conditionalRoute/condition", "when it is taken: one of these", &[]),
        Inside::new("conditionalRoute/condition/and?", "all conditions inside hold", &[]).with("two conditions or more"),
        Inside::new("conditionalRoute/condition/or?", "one condition inside holds", &[]).with("two conditions or more"),
        Inside::new("conditionalRoute/condition/not?", "the condition inside does not hold", &[]).with("one condition"),
        Inside::new(
            "conditionalRoute/condition/match?",
            "the whole value matches",
            MATCH,
        ),
        Inside::new(
            "conditionalRoute/condition/equal?",
            "the value is this, in any case",
            EQUAL,
        ),
        Inside {
            path: "conditionalRoute/target",
            meaning: "where the message goes",
            ..TARGET
        },
        Inside { path: "conditionalRoute/target/sequence?", ..TARGET_SEQUENCE },
        Inside { path: "conditionalRoute/target/endpoint?", ..TARGET_ENDPOINT },
    ],
    needs: &[
        (Need::Nothing, "there is no route"),
        (Need::Headers, "conditions look at headers, properties and the address"),
        (
            Need::Whole,
            "a condition is an XPath (`soap`) on the body, or a target is named by one: the body is read when that route is tried or taken",
        ),
    ],
    refused: &[
        ("<conditionalRouter><conditionalRoute><target/></conditionalRoute></conditionalRouter>", "`conditionalRoute` needs"),
        (
            "<conditionalRouter><conditionalRoute><condition><match source=\"a\" regex=\"b\"/></condition></conditionalRoute></conditionalRouter>",
            "`conditionalRoute` needs a target",
        ),
        (
            "<conditionalRouter><conditionalRoute><condition><and><match source=\"a\" regex=\"b\"/></and></condition><target/></conditionalRoute></conditionalRouter>",
            "`and` holds 1",
        ),
    ],
    faults: &[
        ("0", "a target names a sequence that does not exist"),
        (
            "601000",
            "a condition reads the body, and it is not what its content type says, or larger than a flow may hold",
        ),
    ],
};

/// `<router><route expression="EXPR" [match="PATTERN"]><target …/></route>+</router>`
pub const ROUTER: Definition = Definition {
    name: "router",
    summary: "Runs the target of the first route whose expression is true or matches; the flow ends after it.",
    attributes: &[CONTINUE_AFTER],
    children: Children::Elements(&["route"]),
    page: ROUTER_PAGE,
    compile: |element, compiler| compile(element, compiler, "route", "breakRouter", route),
};

const ROUTER_PAGE: Page = Page {
    family: Family::Routing,
    semantics: "The routes are tried in order. A route fits if its expression is true, or with `match` if the pattern matches the whole text of its
value; a missing value matches nothing. The first that fits runs its target; with `breakRouter=\"false\"` the next ones are tried as well, on
the message as the target has left it. Then the flow ends, even if no route fits, unless `continueAfter` is true or a target has called an
endpoint (`call`, not blocking).

A target runs the first of these that it has: the sequence inside, the sequence that it names, the endpoint inside, the endpoint that it names. `to` and
`soapAction` are set before. If it ends early (`drop`), only the target ends; if it answers or sends, the flow ends.",
    inside: &[
        Inside::new(
            "route*",
            "a route",
            &[
                Attribute::required("expression", Values::Expression, "the condition, or with `match` the value"),
                Attribute::optional("match", Values::Regex, "a regular expression of Java's dialect"),
                Attribute::optional("breakRouter", Values::Boolean, "no further routes are tried").or("true"),
            ],
        ),
        Inside { path: "route/target", meaning: "where the message goes", ..TARGET },
        Inside { path: "route/target/sequence?", ..TARGET_SEQUENCE },
        Inside { path: "route/target/endpoint?", ..TARGET_ENDPOINT },
    ],
    needs: &[
        (Need::Nothing, "there is no route"),
        (Need::Headers, "expressions look at headers and properties"),
        (Need::Whole, "an expression looks at the body: it is read when that route is tried or taken"),
    ],
    refused: &[
        ("<router><route><target/></route></router>", "`route` needs an expression"),
        ("<router><route expression=\"//a\"/></router>", "`route` needs a target"),
        ("<router><route expression=\"//a[\"><target/></route></router>", "not a valid expression"),
        (
            "<router><route expression=\"//a\" match=\"(\"><target/></route></router>",
            "not a valid regular expression",
        ),
    ],
    faults: &[
        ("0", "a target names a sequence that does not exist"),
        (
            "601000",
            "an expression reads the body, and it is not what its content type says, or larger than a flow may hold",
        ),
    ],
};

/// One step: the target if the condition holds, else the rest.
struct Route {
    condition: Condition,
    /// The condition may ask for the address.
    url: bool,
    /// The target alone, or followed by the rest where the route does not break.
    taken: ListId,
    rest: ListId,
}

struct Goes(Target);

/// Ends the flow, unless a target has called an endpoint: its answer goes on behind the router, as in WSO2.
struct EndsUncalled;

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
    for route in element.children_named(child).rev() {
        let condition = condition(route, compiler)?;
        let Some(target) = route.child("target") else {
            compiler.error(
                "missing-element",
                format!("`{child}` needs a target"),
                route.start_tag(),
                "expected `target`",
            );
            return None;
        };
        let target = Target::compile(target, format!("target of {child}"), compiler)?;
        let mut steps: Vec<Box<dyn Mediator>> = vec![Box::new(Goes(target))];
        if !flow::truth(route, breaks, true) {
            steps.push(Box::new(Enters(SequenceRef::Known(rest))));
        }
        let taken = compiler.list_of(route, name, format!("{child} taken"), steps);
        let step = Box::new(Route { condition, url: child == "conditionalRoute", taken, rest });
        rest = compiler.list_of(route, name, format!("{child} and what is behind it"), vec![step]);
    }
    let mut steps: Vec<Box<dyn Mediator>> = vec![Box::new(Enters(SequenceRef::Known(rest)))];
    if !flow::truth(element, "continueAfter", false) {
        steps.push(Box::new(EndsUncalled));
    }
    let whole = compiler.list_of(element, name, name, steps);
    Some(Box::new(Enters(SequenceRef::Known(whole))))
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
    if flow::truth(element, "asynchronous", false) {
        compiler.warning(
            "no-effect",
            "routes are not asynchronous here",
            element.start_tag(),
            "the target runs in place: nothing waits for it",
        );
    }
    Condition::compile(element, compiler)
}

impl Mediator for Route {
    fn need(&self) -> Need {
        self.condition.need()
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        vec![("taken".to_owned(), self.taken), ("else".to_owned(), self.rest)]
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let url = if self.url { context.to().unwrap_or_default() } else { String::new() };
        Ok(Flow::Enter(if self.condition.holds(context, &url)? { self.taken } else { self.rest }))
    }
}

impl Goes {
    /// Whatever the target does, the router goes on as it says itself.
    fn absorbing(flow: Flow) -> Flow {
        match flow {
            Flow::Enter(list) => Flow::EnterWith(list, Entry { absorbs: true, ..Entry::default() }),
            other => other,
        }
    }
}

impl Mediator for Goes {
    fn need(&self) -> Need {
        self.0.need()
    }

    fn passes_on(&self) -> bool {
        self.0.passes_on()
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        self.0.list().map(|list| ("target".to_owned(), list)).into_iter().collect()
    }

    fn endpoints(&self) -> Vec<Arc<EndpointRef>> {
        self.0.endpoint().into_iter().collect()
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        self.0.flow(context).map(Goes::absorbing)
    }
}

impl Mediator for EndsUncalled {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        Ok(if context.called_since_entry() { Flow::Next } else { Flow::Stop })
    }
}

#[cfg(test)]
mod tests {
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
    fn a_target_that_ends_early_ends_nothing_else() {
        let route = |child: &str, inside: &str| {
            let condition = r#"<condition><equal source="X-K" value="gold"/></condition>"#;
            match child {
                "conditionalRoute" => format!(
                    r#"<conditionalRoute breakRoute="false">{condition}<target><sequence>{inside}</sequence></target></conditionalRoute>"#
                ),
                _ => format!(
                    r#"<route expression="true()" breakRouter="false"><target><sequence>{inside}</sequence></target></route>"#
                ),
            }
        };
        for (router, child) in [("conditionalRouter", "conditionalRoute"), ("router", "route")] {
            for (first, after) in [
                ("<drop/>", "true"),
                ("<drop/>", "false"),
                (r#"<filter xpath="true()"><then><drop/></then></filter>"#, "true"),
                (r#"<clone><target sequence="nothing"/></clone>"#, "true"),
                (r#"<sequence key="handled"/>"#, "true"),
                (r#"<router continueAfter="false"/>"#, "true"),
            ] {
                let (one, two) = (route(child, first), route(child, r#"<property name="2" value="1"/>"#));
                let text = format!(
                    r#"<sequence key="all"/><property name="b" value="1"/><!--top--><sequence name="all">
                       <{router} continueAfter="{after}">{one}{two}</{router}><property name="a" value="1"/></sequence>
                       <sequence name="nothing"/><sequence name="handled" onError="fault"><drop/></sequence><sequence name="fault"/>"#
                );
                let end = run(&text);
                let ran = ["2", "a", "b"].map(|name| end.property(name).is_some());
                assert_eq!(ran, [true, after == "true", after == "true"], "{router} {first} {after}");
                assert!(end.fault().is_none());
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
                "`like` is not a condition",
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
}
