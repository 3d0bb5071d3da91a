//! `loopback`: makes the request the response and runs the out sequence on it.

use config::Element;
use flow::{Children, Compiled, Compiler, Context, Definition, Family, Fault, Flow, Mediator, Need, Page};

/// `<loopback/>`
pub const DEFINITION: Definition = Definition {
    name: "loopback",
    summary: "Moves a request to the out sequence as if it were the response; a response ends here.",
    attributes: &[],
    children: Children::None,
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Core,
    semantics: "The request becomes the response, with its payload, its properties and its headers, and the out sequence of the proxy or API runs on it, as if
a backend had sent it. If there is no out sequence, the client gets the message as it is. A message that came to no proxy and no API runs
`main` again, as a response: its `out` runs, its `in` does not.

No later step runs, neither in this sequence nor in those around it. If the message already is a response, it ends here.",
    inside: &[],
    needs: &[(Need::Nothing, "always")],
    refused: &[("<loopback><respond/></loopback>", "`respond` has no effect inside of `loopback`")],
    faults: &[("0", "it is reached inside of a `foreach`, whose items are no messages to answer with")],
};

struct Loopback;

fn compile(_: &Element, _: &mut Compiler<'_>) -> Compiled {
    Some(Box::new(Loopback))
}

impl Mediator for Loopback {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn mediate(&self, _: &mut Context) -> Result<Flow, Fault> {
        Ok(Flow::Loopback)
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing;

    #[test]
    fn the_out_sequence_gets_the_request_once() {
        let flow = testing::main(
            &registry(testing::endpoints),
            r#"<in><loopback/><property name="behind" value="1"/></in>
               <out><property name="out" value="1"/><loopback/><property name="behind" value="1"/></out>"#,
        );
        let mut end = flow.run(&[("Content-Type", "application/xml")], "<a/>");
        assert_eq!((end.property("out").as_deref(), end.property("behind")), (Some("1"), None));
        assert_eq!((end.how, end.payload().as_str()), ("nothing", "<a/>"));
    }
}
