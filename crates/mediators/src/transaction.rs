//! `transaction`: distributed transactions. It is read and checked; nothing runs it yet.

use config::Element;
use flow::{Attribute, Children, Compiled, Compiler, Definition, Family, Page, Values};

const ACTIONS: &[&str] = &["new", "use-existing-or-new", "fault-if-no-tx", "commit", "rollback"];

/// `<transaction action="new|use-existing-or-new|fault-if-no-tx|commit|rollback"/>`
pub const DEFINITION: Definition = Definition {
    name: "transaction",
    summary: "Begins or ends a transaction. It is checked, and not executable yet.",
    attributes: &[Attribute::required("action", Values::OneOf(ACTIONS), "what to do")],
    children: Children::None,
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Quality,
    semantics: "In WSO2 it begins (`new`, `use-existing-or-new`), demands (`fault-if-no-tx`) or ends (`commit`, `rollback`) a distributed transaction of the
application server, bound to the thread that the message is on. Busbar has no distributed transactions: a configuration that has it is read and checked,
and an error says where it stands; the artifact around it is left out, the others serve.

Leave it out, and make what is called idempotent, so that it may be called again where something failed behind it; or let one
service behind the bus do in one transaction what belongs together.",
    inside: &[],
    needs: &[],
    refused: &[
        ("<transaction action=\"commit\"/>", "`transaction` is not executable here"),
        ("<transaction action=\"suspend\"/>", "`action` cannot be `suspend`"),
        ("<transaction/>", "`transaction` needs the attribute `action`"),
    ],
    faults: &[],
};

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    compiler.error(
        "unsupported-mediator",
        "`transaction` is not executable here",
        element.name_span(),
        "there are no distributed transactions yet: leave it out and make the backend's call idempotent",
    );
    None
}

#[cfg(test)]
mod tests {
    use flow::testing;

    #[test]
    fn it_is_checked_and_reported() {
        for (action, says) in
            [("commit", "is not executable here"), ("suspend", "`action` cannot be `suspend`")]
        {
            let text = format!("<transaction action='{action}'/>");
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert!(tested.reports(says) && tested.found.len() == 1, "{:?}", tested.found);
        }
    }
}
