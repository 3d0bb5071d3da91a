//! `throwError`: raises a fault of the configuration's own.

use config::Element;
use flow::{
    Attribute, Children, Code, Compiled, Compiler, Context, Definition, Family, Fault, Flow, KeyValue,
    Mediator, Need, Page, Values,
};
use message::Value;

/// `<throwError [type="TYPE"] errorMessage="text | {EXPR}"/>`
pub const DEFINITION: Definition = Definition {
    name: "throwError",
    summary: "Raises a fault: ERROR_CODE is the type, ERROR_MESSAGE the message.",
    attributes: &[
        Attribute::optional("type", Values::Text, "becomes ERROR_CODE").or("ANY"),
        Attribute::optional("errorMessage", Values::Key, "a text, or an expression in braces")
            .or("Error occurred in the mediation flow"),
    ],
    children: Children::None,
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Core,
    semantics: "The flow ends here and the fault sequence runs: that of `onError`, of the proxy or the API, or `fault`, as for any other error. There
ERROR_CODE is the `type`, a word or a number as it is written, and ERROR_MESSAGE the message. They replace those of an earlier error; ERROR_DETAIL is
not set, so it may still be that of an earlier error. In a fault sequence, `throwError` runs the next outer fault sequence.

The message is an expression only with braces around the whole of it, `{concat('order ', //order/id)}` or `{${payload.id}}`; a `${…}` without
them is literal. A property or header that is not there gives the default message, a path that selects nothing the empty one. `type` is
never an expression.",
    inside: &[],
    needs: &[
        (Need::Nothing, "the message is a text"),
        (Need::Headers, "the message is made of properties and headers"),
        (Need::Whole, "the message is made of the body"),
    ],
    refused: &[
        ("<throwError errorMessage=\"{//a[}\"/>", "not a valid expression"),
        ("<throwError><drop/></throwError>", "`drop` has no effect inside of `throwError`"),
    ],
    faults: &[
        ("ANY", "always, where it has no `type`"),
        ("LIMIT", "always, where this is its `type`, as in the example"),
        (
            "601000",
            "the message is made of the body, which is not what its content type says, or larger than a flow may hold",
        ),
    ],
};

struct ThrowError {
    code: String,
    message: Option<KeyValue>,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    if let Some(attribute) = element.attribute("errorMessage")
        && attribute.value.contains("${")
        && !attribute.value.trim_start().starts_with('{')
    {
        let message = "the `${…}` in `errorMessage` is text";
        let advice = "to evaluate it, put all of the value into one: {${'text ' + …}}";
        compiler.warning("expression", message, attribute.value_span, advice);
    }
    if let Some(attribute) = element.attribute("type")
        && attribute.value.starts_with('{')
        && attribute.value.ends_with('}')
    {
        let message = "the `type` of `throwError` is never an expression";
        compiler.warning("expression", message, attribute.value_span, "this text becomes the ERROR_CODE");
    }
    let code = element.attr("type").filter(|code| !code.is_empty()).unwrap_or("ANY").to_owned();
    let message = match element.attr("errorMessage") {
        Some(_) => Some(compiler.key_value(element, "errorMessage")?),
        None => None,
    };
    Some(Box::new(ThrowError { code, message }))
}

impl Mediator for ThrowError {
    fn need(&self) -> Need {
        self.message.as_ref().map_or(Need::Nothing, KeyValue::need)
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let message = match &self.message {
            Some(message) => message.resolve(context)?,
            None => None,
        };
        let message = message.as_deref().unwrap_or("Error occurred in the mediation flow").to_owned();
        // Set here, because the engine does not touch the properties of an earlier error.
        context.properties.set("ERROR_CODE", Value::from(self.code.as_str()));
        context.properties.set("ERROR_MESSAGE", Value::from(message.as_str()));
        Err(Fault { code: Code::Word(self.code.clone()), ..Fault::new(message) })
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing;

    #[test]
    fn a_type_that_looks_like_an_expression_is_said() {
        for (value, said) in [("{json-eval($.t)}", true), ("STOCK", false), ("{", false)] {
            let text = format!("<throwError type='{value}'/>");
            let tested = testing::main(&registry(testing::endpoints), &text);
            assert_eq!(tested.reports("is never an expression"), said, "{value}: {:?}", tested.found);
        }
    }

    #[test]
    fn type_and_message_reach_the_fault_sequence() {
        for (attributes, wanted) in [
            (r#"type="STOCK" errorMessage="none left""#, "STOCK: none left"),
            (r#"errorMessage="{concat('no ', $ctx:what)}""#, "ANY: no bolts"),
            (r#"errorMessage="{${'no ' + props.synapse.what}}""#, "ANY: no bolts"),
            (r#"errorMessage="{${payload.none}}""#, "ANY: "),
            (r#"errorMessage="no ${props.synapse.what}""#, "ANY: no ${props.synapse.what}"),
            ("", "ANY: Error occurred in the mediation flow"),
        ] {
            let text = format!(
                r#"<property name="what" value="bolts"/><property name="ERROR_CODE" value="7"/><throwError {attributes}/>
                   <property name="after" value="1"/><!--top-->
                   <sequence name="fault"><property name="seen" expression="concat($ctx:ERROR_CODE, ': ', $ctx:ERROR_MESSAGE)"/></sequence>"#
            );
            let tested = testing::main(&registry(testing::endpoints), &text);
            assert_eq!(tested.reports("is text"), attributes.contains("\"no ${"), "{:?}", tested.found);
            let end = tested.run(&[], "");
            assert_eq!(end.property("seen").as_deref(), Some(wanted));
            assert_eq!((end.property("after"), end.property("ERROR_DETAIL")), (None, None));
        }
    }
}
