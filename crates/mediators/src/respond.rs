//! `respond`: answers the client with the message as it is.

use config::Element;
use flow::{Children, Compiled, Compiler, Context, Definition, Fault, Flow, Mediator, Need, Page};

/// `<respond/>`
pub const DEFINITION: Definition = Definition {
    name: "respond",
    summary: "Answers the client with the message and ends the flow.",
    attributes: &[],
    children: Children::None,
    page: Page::UNWRITTEN,
    compile,
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
        let answer = flow.ask("POST", "/", &headers, r#"{"a":1}"#);
        assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"a":1}"#));
        assert_eq!(answer.headers.get("X-Own"), Some("1"));
        assert!(!answer.headers.contains("Host"));
    }

    #[test]
    fn an_unknown_attribute_is_reported() {
        let flow = testing::main(&registry(testing::endpoints), r#"<respond status="200"/>"#);
        assert!(flow.reports("`respond` has no attribute `status`"), "{flow:?}");
    }
}
