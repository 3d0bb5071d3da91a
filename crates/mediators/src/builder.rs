//! `builder`: nothing to do. A body is read when the first mediator needs it, by its content type.

use config::Element;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Family, Fault, Flow, Inside, Mediator,
    Need, Page, Values,
};

/// `<builder><messageBuilder contentType="…" class="…"/>*</builder>`
pub const DEFINITION: Definition = Definition {
    name: "builder",
    summary: "Has no effect: a body is read by the first mediator that needs it.",
    attributes: &[
        Attribute::optional("class", Values::Text, "of no effect"),
        Attribute::optional("formatterClass", Values::Text, "of no effect"),
    ],
    children: Children::Elements(&["messageBuilder"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Core,
    semantics: "In WSO2 it reads the body with Java classes, at this place of the flow. In Busbar a body is read by the first mediator that needs it, according
to its content type, so `builder` does nothing. It is accepted so that configurations with it run; if it
names classes, there is a warning when the configuration loads.",
    inside: &[Inside::new(
        "messageBuilder*",
        "of no effect",
        &[
            Attribute::optional("contentType", Values::Text, "of no effect"),
            Attribute::optional("class", Values::Text, "of no effect"),
            Attribute::optional("formatterClass", Values::Text, "of no effect"),
        ],
    )],
    needs: &[(Need::Nothing, "always")],
    refused: &[
        ("<builder class=\"a.B\"/>", "`builder` names Java classes"),
        ("<builder><drop/></builder>", "`drop` has no effect inside of `builder`"),
    ],
    faults: &[],
};

struct Nothing;

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    if element.child("messageBuilder").is_some() || element.attribute("class").is_some() {
        let place = element.start_tag();
        compiler.warning(
            "no-effect",
            "`builder` names Java classes",
            place,
            "bodies are read by their content type",
        );
    }
    Some(Box::new(Nothing))
}

impl Mediator for Nothing {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn mediate(&self, _: &mut Context) -> Result<Flow, Fault> {
        Ok(Flow::Next)
    }
}

#[cfg(test)]
mod tests {
    use flow::testing;

    #[test]
    fn it_does_nothing_and_says_so_where_something_was_wanted() {
        let run = |text: &str| testing::main(&crate::registry(testing::endpoints), text);
        let tested = run("<builder/><property name='a' value='1'/>");
        assert!(tested.found.is_empty(), "{:?}", tested.found);
        assert_eq!(tested.run(&[], "<a").property("a").as_deref(), Some("1"));
        let tested = run("<builder><messageBuilder contentType='a/b' class='c.D'/></builder>");
        assert!(tested.reports("names Java classes"), "{:?}", tested.found);
    }
}
