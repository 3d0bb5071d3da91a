//! `respond`: answers the client with the message as it is.

use config::Element;
use flow::{Children, Compiled, Compiler, Context, Definition, Family, Fault, Flow, Mediator, Need, Page};

/// `<respond/>`
pub const DEFINITION: Definition = Definition {
    name: "respond",
    summary: "Answers the client with the message and ends the flow.",
    attributes: &[],
    children: Children::None,
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Core,
    semantics: "The message goes to the client as it is now, and the flow ends: no later step runs, not even in the sequences around it. It
works for requests and responses; a body that no step has read is relayed as it comes, whatever its type.

The status is the property `HTTP_SC` of axis2 scope, else that of the backend's answer, else 200; in a fault sequence 500 once an endpoint
has answered. The answer has the headers of the message, including those that the client sent, except headers that only make
sense in a request (`Host`, `Cookie`, `Accept`, …). `messageType` (axis2) is the type in which the body is written, see
[content types](../mediation.md#content-types).

A client gets only one answer: if several branches of `clone` or `iterate` answer, only the first answer is sent, and the log has a warning for the others.",
    inside: &[],
    needs: &[(Need::Nothing, "always")],
    refused: &[("<respond status=\"200\"/>", "`respond` has no attribute `status`")],
    faults: &[],
};

struct Respond;

fn compile(_: &Element, _: &mut Compiler<'_>) -> Compiled {
    Some(Box::new(Respond))
}

impl Mediator for Respond {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        context.addressing.to = None;
        context.response = true;
        Ok(Flow::Respond)
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing;

    #[test]
    fn the_message_is_the_answer_and_nothing_runs_behind_it() {
        let flow = testing::main(
            &registry(testing::endpoints),
            r#"<respond/><property name="HTTP_SC" scope="axis2" value="500"/>"#,
        );
        let headers = [("Content-Type", "application/json"), ("Host", "here"), ("X-Own", "1")];
        let response = flow.ask("POST", "/", &headers, r#"{"a":1}"#);
        assert_eq!((response.status, response.body.as_str()), (200, r#"{"a":1}"#));
        assert_eq!(response.headers.get("X-Own"), Some("1"));
        assert!(!response.headers.contains("Host"));
    }

    #[test]
    fn an_unknown_attribute_is_reported() {
        let flow = testing::main(&registry(testing::endpoints), r#"<respond status="200"/>"#);
        assert!(flow.reports("`respond` has no attribute `status`"), "{flow:?}");
    }
}
