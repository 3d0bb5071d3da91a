//! Parts of a split that are not made.

use flow::{
    Branch, BranchTarget, Children, Context, Definition, Family, Fault, Flow, ListId, Mediator, Need, Page,
    Split, testing,
};
use message::Value;
use std::sync::Arc;

/// Splits in two, of which the second one cannot be made for a fault of the program.
struct Breaks(ListId);

static BREAKS: Definition = Definition {
    name: "breaks",
    summary: "",
    attributes: &[],
    children: Children::Mediators,
    page: Page {
        family: Family::Splitting,
        semantics: "",
        inside: &[],
        needs: &[],
        refused: &[],
        faults: &[],
    },
    compile: |element, compiler| Some(Box::new(Breaks(compiler.list(element, "parts")))),
};

impl Mediator for Breaks {
    fn need(&self) -> Need {
        Need::Whole
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let name = Arc::from("aggregateCorelation");
        context.begin_split(&[&name]);
        let mut first = context.branch();
        first.properties.set(name, Value::from("1"));
        first.properties.set("messageSequence", Value::from("0/2"));
        let first = Branch { context: first, target: BranchTarget::List(self.0) };
        let parts = std::iter::once(first).chain(std::iter::once_with(|| panic!("no second part")));
        Ok(Flow::Split(Split {
            parts: Box::new(parts),
            count: 2,
            continue_parent: false,
            sequential: false,
            stops: false,
            aside: false,
        }))
    }
}

#[test]
fn an_aggregate_that_lacks_a_part_that_was_not_made_is_no_success() {
    let mut registry = busbar_mediators::registry(testing::endpoints);
    registry.definitions.push(&BREAKS);
    let text = "<breaks><aggregate><onComplete expression='//i'><respond/></onComplete></aggregate></breaks>";
    let tested = testing::main(&registry, text);
    let xml = [("Content-Type", "application/xml")];
    let (_, response) = testing::logged("busbar", || tested.ask("POST", "/", &xml, "<a><i>1</i></a>"));
    assert_eq!(response.status, 500, "{response:?}");
}
