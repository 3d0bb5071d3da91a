//! `enqueue`: runs a sequence where WSO2 hands it to a priority executor.

use crate::steps::Enters;
use config::Element;
use flow::{Attribute, Children, Compiled, Compiler, Definition, Family, Need, Page, Values};

/// `<enqueue executor="E" sequence="S" [priority="N"]/>`
pub const DEFINITION: Definition = Definition {
    name: "enqueue",
    summary: "Runs a sequence in place: messages do not wait for threads here, so there is nothing to queue for.",
    attributes: &[
        Attribute::optional("executor", Values::Key, "the priority executor; of no effect here"),
        Attribute::required("sequence", Values::Key, "the sequence"),
        Attribute::optional("priority", Values::Integer, "of no effect here").or("0"),
    ],
    children: Children::None,
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Core,
    semantics: "In WSO2 it hands the message to the threads of a priority executor, and the flow ends. Here messages hold no thread while they wait, so
there is nothing to queue for: the sequence runs in place, at once, whatever `executor` and `priority` say, and what ends it ends the
flow. Mediators behind `enqueue` run after the sequence.",
    inside: &[],
    needs: &[
        (Need::Nothing, "the sequence is named"),
        (Need::Headers, "an expression on properties or headers names it"),
        (Need::Whole, "an expression on the body names it"),
    ],
    refused: &[
        ("<enqueue executor=\"e\"/>", "`enqueue` needs the attribute `sequence`"),
        ("<enqueue executor=\"e\" sequence=\"s\" priority=\"high\"/>", "`priority` cannot be `high`"),
    ],
    faults: &[("0", "there is no such sequence")],
};

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    Some(Box::new(Enters(compiler.sequence(element, "sequence")?)))
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing;

    #[test]
    fn the_sequence_runs_and_a_missing_one_is_a_fault() {
        let text = r#"<enqueue executor="e" sequence="a" priority="3"/><enqueue executor="e" sequence="b"/>
            <!--top--><sequence name="a"><property name="ran" value="1"/></sequence>
            <sequence name="fault"><property name="seen" expression="$ctx:ERROR_MESSAGE"/></sequence>"#;
        let end = testing::main(&registry(testing::endpoints), text).run(&[], "");
        assert_eq!(end.property("ran").as_deref(), Some("1"));
        assert_eq!(end.property("seen").as_deref(), Some("Sequence named b cannot be found"));
    }
}
