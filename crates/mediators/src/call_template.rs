//! `call-template`: runs a sequence template with parameters.

use config::{Element, Key};
use diagnostics::Span;
use flow::mediator::Parameters;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Entry, Expression, Family, Fault, Flow,
    Inside, ListId, Mediator, Need, Page, Parameter, Values,
};
use message::{Value, XmlValue};
use std::sync::Arc;

/// `<call-template target="T" [onError="SEQ"]><with-param name="p" value="…"/>*</call-template>`
pub const DEFINITION: Definition = Definition {
    name: "call-template",
    summary: "Runs a sequence template; its parameters are read as `$func:name`.",
    attributes: &[
        Attribute::required("target", Values::Text, "the template"),
        Attribute::optional("onError", Values::Text, "the fault handler while the template runs"),
    ],
    children: Children::Elements(&["with-param"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Core,
    semantics: "The sequence of the template runs here, with the parameters that it declares; it reads them as `$func:name`,
`get-property('func', 'name')` or `${params.functionParams.name}`. A `value` is a text, or an expression in braces that is evaluated here, once;
of several nodes the first one is passed (in the dialect of Apache Synapse their string). In two pairs of braces it is evaluated in the template, each time it is read. What the
template does not declare is not passed.

A parameter that is not given has its `defaultValue`; without one it does not exist. If a mandatory parameter is not given, the call fails, even
with a default. What ends the template's sequence ends the flow.",
    inside: &[Inside::new(
        "with-param*",
        "a parameter",
        &[
            Attribute::required("name", Values::Text, "as the template declares it"),
            Attribute::required("value", Values::Key, "a text, or an expression in braces; in two pairs: evaluated by the template"),
        ],
    )],
    needs: &[
        (Need::Nothing, "all parameters are texts"),
        (Need::Headers, "a parameter reads properties or headers"),
        (Need::Whole, "a parameter reads the body"),
    ],
    refused: &[
        ("<call-template/>", "`call-template` needs the attribute `target`"),
        ("<call-template target=\"none\"/>", "there is no template `none`"),
        ("<call-template target=\"t\"><with-param name=\"p\"/></call-template>", "`with-param` needs name and value"),
        ("<call-template target=\"t\"><with-param name=\"p\" value=\"{//a[}\"/></call-template>", "not a valid expression"),
    ],
    faults: &[
        ("500101", "a mandatory parameter is not given"),
        (
            "601000",
            "a parameter reads the body, and it is not what its content type says, or larger than a flow may hold",
        ),
    ],
};

enum Argument {
    /// A literal, or `{{…}}`.
    Ready(Parameter),
    /// `{…}`.
    Expression(Expression),
}

struct CallTemplate {
    target: String,
    on_error: Option<ListId>,
    arguments: Vec<(Arc<str>, Argument)>,
    span: Span,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let target = element.attr("target").unwrap_or_default().trim().to_owned();
    if let Some(attribute) = element.attribute("target") {
        let configuration = compiler.configuration;
        let java = configuration.library_templates().find(|template| *template.template.name == target);
        let names = configuration.sequence_templates.names().map(str::to_owned);
        let names =
            names.chain(configuration.library_templates().map(|template| template.template.name.to_string()));
        let names: Vec<_> = names.collect();
        if let Some(class) = java.and_then(|template| template.class.as_deref()) {
            let message =
                format!("the template `{target}` is not executable here: messages that come here fault");
            let why = format!("it runs the Java class `{class}`");
            compiler.warning("unsupported-connector", message, attribute.value_span, why);
        } else if !names.contains(&target) {
            compiler.diagnostics.push(
                diagnostics::Diagnostic::warning(
                    "unknown-template",
                    format!("there is no template `{target}`"),
                )
                .at(attribute.value_span, "messages that come here fault")
                .did_you_mean(&target, names.iter().map(String::as_str)),
            );
        }
    }
    let on_error = element.attribute("onError").and_then(|key| compiler.handler(&Key::of(key)));
    let mut arguments = Vec::new();
    for child in element.children_named("with-param") {
        let (Some(name), Some(value)) = (child.attr("name"), child.attribute("value")) else {
            compiler.error(
                "missing-attribute",
                "`with-param` needs name and value",
                child.start_tag(),
                "expected `name` and `value`",
            );
            return None;
        };
        let argument = match config::Value::of(value, child) {
            config::Value::Literal(key) => Argument::Ready(Parameter::Value(Value::from(key.value))),
            config::Value::Expression(expression) => Argument::Expression(compiler.expression_text(
                &expression.source,
                expression.span,
                &expression.scope,
            )?),
            config::Value::Deferred(key) => {
                let inner = key.value.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
                let inner = inner.unwrap_or(&key.value);
                let expression = compiler.expression_text(inner, key.span, child.scope())?;
                Argument::Ready(Parameter::Deferred(Arc::new(expression)))
            }
        };
        // WSO2: of several of one name the last one counts.
        arguments.retain(|(earlier, _): &(Arc<str>, _)| &**earlier != name);
        arguments.push((Arc::from(name), argument));
    }
    Some(Box::new(CallTemplate { target, on_error, arguments, span: element.start_tag() }))
}

/// Of several nodes only the first is passed.
fn first_node(value: Value) -> Value {
    match value {
        Value::Xml(xml) if xml.nodes.len() > 1 => {
            Value::Xml(Arc::new(XmlValue { nodes: vec![xml.nodes[0]], document: Arc::clone(&xml.document) }))
        }
        other => other,
    }
}

impl CallTemplate {
    /// `Some(None)`: passed, but null.
    fn argument(&self, name: &str, context: &mut Context) -> Result<Option<Option<Parameter>>, Fault> {
        let Some((_, argument)) = self.arguments.iter().find(|(parameter, _)| &**parameter == name) else {
            return Ok(None);
        };
        Ok(Some(match argument {
            Argument::Ready(parameter) => Some(parameter.clone()),
            Argument::Expression(expression) => {
                let value = match expression.value(context)? {
                    // Apache Synapse passes the string of several nodes.
                    Some(Value::Xml(xml))
                        if xml.nodes.len() > 1 && context.services().settings.synapse_dialect =>
                    {
                        expression.string(context)?.map(Value::from)
                    }
                    value => value.map(first_node),
                };
                value.map(Parameter::Value)
            }
        }))
    }
}

impl Mediator for CallTemplate {
    fn need(&self) -> Need {
        let needs = self.arguments.iter().map(|(_, argument)| match argument {
            Argument::Expression(expression) => expression.need(),
            // Read whenever the template likes.
            Argument::Ready(Parameter::Deferred(expression)) => expression.need(),
            Argument::Ready(Parameter::Value(_)) => Need::Nothing,
        });
        needs.max().unwrap_or(Need::Nothing)
    }

    fn template(&self) -> Option<&str> {
        Some(&self.target)
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let Some(template) = context.plan().template(&self.target) else {
            return Err(Fault::new(format!("Sequence template {} cannot be found", self.target)));
        };
        let defaults_count = context.services().settings.synapse_dialect;
        let mut parameters = Parameters::with_capacity(template.parameters.len());
        for declared in &template.parameters {
            let default =
                || declared.default.as_deref().map(|default| Parameter::Value(Value::from(default)));
            let parameter = match self.argument(&declared.name, context)? {
                Some(passed) => passed,
                None if declared.mandatory && !defaults_count => {
                    return Err(Fault::with_code(
                        flow::fault::code::TEMPLATE_PARAMETER,
                        format!(
                            "Neither a value nor default value is provided for mandatory parameter: {} in {}",
                            declared.name, self.target
                        ),
                    )
                    .at(self.span));
                }
                None => default(),
            };
            parameters.extend(parameter.map(|parameter| (Arc::clone(&declared.name), parameter)));
        }
        Ok(Flow::EnterWith(
            template.list,
            Entry { on_error: self.on_error, parameters: Some(parameters), absorbs: false },
        ))
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing;

    const TEMPLATES: &str = r#"<!--top-->
        <template name="T"><parameter name="p"/><parameter name="q" defaultValue="dq"/><sequence>
            <property name="p" expression="$func:p"/><property name="q" expression="get-property('func', 'q')"/></sequence></template>
        <template name="A"><parameter name="p"/><sequence><property name="p" expression="$func:p/@id"/></sequence></template>
        <template name="M"><parameter name="p" isMandatory="true" defaultValue="d"/><sequence/></template>
        <template name="L"><parameter name="p"/><sequence><property name="before" expression="$func:p"/>
            <property name="x" value="2"/><property name="p" expression="$func:p"/></sequence></template>
        <sequence name="fault"><property name="seen" expression="$ctx:ERROR_MESSAGE"/></sequence>
        <sequence name="own"><property name="own" value="1"/></sequence>"#;

    #[test]
    fn a_template_that_is_missing_faults() {
        let text = r#"<call-template target="None"/><property name="after" value="1"/>
            <!--top--><sequence name="fault"><property name="fault" value="1"/></sequence>"#;
        let registry = registry(testing::endpoints);
        for flow in [testing::main(&registry, text), testing::synapse(&registry, text)] {
            let end = flow.run(&[], "");
            assert_eq!((end.property("fault").as_deref(), end.property("after")), (Some("1"), None));
        }
    }

    #[test]
    fn of_several_nodes_wso2_passes_the_first_one_and_apache_synapse_their_string() {
        let text = format!(
            r#"<call-template target="T"><with-param name="p" value="{{//i}}"/></call-template>{TEMPLATES}"#
        );
        let registry = registry(testing::endpoints);
        for (flow, wanted) in
            [(testing::main(&registry, &text), "a"), (testing::synapse(&registry, &text), "ab")]
        {
            let end = flow.run(&[("Content-Type", "application/xml")], "<o><i id='7'>a</i><i>b</i></o>");
            assert_eq!(end.property("p").as_deref(), Some(wanted));
        }
    }

    #[test]
    fn arguments_become_parameters() {
        for (arguments, p, q) in [
            (r#"<with-param name="p" value="1"/>"#, Some("1"), Some("dq")),
            (r#"<with-param name="p" value=""/><with-param name="q" value="2"/>"#, Some(""), Some("2")),
            (r#"<with-param name="p" value="{//i}"/>"#, Some("a"), Some("dq")),
            (r#"<with-param name="p" value="{count(//i)}"/>"#, Some("2"), Some("dq")),
            (r#"<with-param name="q" value="{$ctx:none}"/>"#, None, None),
            (r#"<with-param name="other" value="1"/>"#, None, Some("dq")),
            (r#"<with-param name="p" value="{{//i[2]}}"/>"#, Some("b"), Some("dq")),
        ] {
            let text = format!(
                r#"<call-template target="T">{arguments}</call-template><property name="after" value="1"/>{TEMPLATES}"#
            );
            let flow = testing::main(&registry(testing::endpoints), &text);
            let end = flow.run(&[("Content-Type", "application/xml")], "<o><i id='7'>a</i><i>b</i></o>");
            assert_eq!((end.property("p").as_deref(), end.property("q").as_deref()), (p, q), "{arguments}");
            assert_eq!(end.property("after").as_deref(), Some("1"));
        }
    }

    #[test]
    fn an_element_stays_xml() {
        let text = format!(
            r#"<call-template target="A"><with-param name="p" value="{{//i}}"/></call-template>{TEMPLATES}"#
        );
        let flow = testing::main(&registry(testing::endpoints), &text);
        let end = flow.run(&[("Content-Type", "application/xml")], "<o><i id='7'>a</i><i id='8'>b</i></o>");
        assert_eq!(end.property("p").as_deref(), Some("7"), "{:?}", end.fault());
    }

    #[test]
    fn deferred_arguments_are_evaluated_when_they_are_read() {
        let text = format!(
            r#"<property name="x" value="1"/><call-template target="L"><with-param name="p" value="{{{{$ctx:x}}}}"/></call-template>{TEMPLATES}"#
        );
        let end = testing::main(&registry(testing::endpoints), &text).run(&[], "");
        assert_eq!((end.property("before").as_deref(), end.property("p").as_deref()), (Some("1"), Some("2")));
    }

    #[test]
    fn synapse_expressions_and_json_paths_are_evaluated_now_or_when_they_are_read() {
        for (value, wanted) in [
            ("{${payload.a}}", "7/7"),
            ("{json-eval($.a)}", "7/7"),
            ("{{${payload.a + props.synapse.x}}}", "8/9"),
            ("{{json-eval($.a)}}", "7/7"),
            ("{{${params.functionParams.p}}}", "/"),
            ("${payload.a}", "${payload.a}/${payload.a}"),
        ] {
            let text = format!(
                r#"<property name="x" value="1"/><call-template target="S"><with-param name="p" value="{value}"/></call-template>
                   <!--top--><template name="S"><parameter name="p"/><sequence><property name="one" expression="$func:p"/>
                   <property name="x" value="2"/><property name="two" expression="${{params.functionParams.p}}"/></sequence></template>"#
            );
            let flow = testing::main(&registry(testing::endpoints), &text);
            let end = flow.run(&[("Content-Type", "application/json")], r#"{"a":7}"#);
            let seen = |name| end.property(name).unwrap_or_default();
            assert_eq!(format!("{}/{}", seen("one"), seen("two")), wanted, "{value} {:?}", end.fault());
        }
    }

    #[test]
    fn missing_templates_and_mandatory_parameters_fault() {
        for (call, wanted) in [
            (r#"<call-template target="none"/>"#, "0: Sequence template none cannot be found"),
            (
                r#"<call-template target="M"/>"#,
                "500101: Neither a value nor default value is provided for mandatory parameter: p in M",
            ),
            (r#"<call-template target="T"/><property name="p" expression="$func:p"/>"#, "0: "),
        ] {
            let flow = testing::main(&registry(testing::endpoints), &format!("{call}{TEMPLATES}"));
            let end = flow.run(&[], "");
            assert!(end.fault().unwrap().starts_with(wanted), "{:?}", end.fault());
            assert_eq!(end.property("seen"), end.property("ERROR_MESSAGE"));
        }
        let text = format!(
            r#"<call-template target="F" onError="own"/>{TEMPLATES}
            <template name="F"><sequence><throwError errorMessage="x"/></sequence></template>"#
        );
        let end = testing::main(&registry(testing::endpoints), &text).run(&[], "");
        assert_eq!((end.property("own").as_deref(), end.property("seen")), (Some("1"), None));
        let flow = testing::main(&registry(testing::endpoints), r#"<call-template target="X"/>"#);
        assert!(flow.reports("there is no template `X`"));
    }
}
