//! `drop`: ends the flow without an answer.

use config::Element;
use flow::{Children, Compiled, Compiler, Context, Definition, Family, Fault, Flow, Mediator, Need, Page};

/// `<drop/>`
pub const DEFINITION: Definition = Definition {
    name: "drop",
    summary: "Ends the flow here; a client whose request was not answered gets 202.",
    attributes: &[],
    children: Children::None,
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Core,
    semantics: "The message ends here: no later step runs, in this sequence or in those around it. This is no error, so no fault
sequence runs.

In the request path the client gets 202 without a body, unless it was answered before. In the response path the
backend's answer is discarded, and the client gets 202 too.",
    inside: &[],
    needs: &[(Need::Nothing, "always")],
    refused: &[("<drop><respond/></drop>", "`respond` has no effect inside of `drop`")],
    faults: &[],
};

struct Drop;

fn compile(_: &Element, _: &mut Compiler<'_>) -> Compiled {
    Some(Box::new(Drop))
}

impl Mediator for Drop {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        context.addressing.to = None;
        Ok(Flow::Stop)
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing;

    #[test]
    fn enclosing_lists_end_too_and_the_client_gets_202() {
        let flow = testing::main(
            &registry(testing::endpoints),
            r#"<sequence key="inner"/><respond/><!--top--><sequence name="inner"><drop/></sequence>"#,
        );
        assert_eq!(flow.run(&[], "x").how, "nothing");
        let response = flow.ask("POST", "/", &[("Content-Type", "text/plain")], "x");
        assert_eq!((response.status, response.body.as_str()), (202, ""));
    }
}
