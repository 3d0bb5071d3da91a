//! `sequence`: runs a named sequence in place.

use config::Element;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Fault, Flow, ListId, Mediator, Need, Page,
    SequenceRef, Values,
};

/// `<sequence key="NAME | {EXPR}"/>`
pub const DEFINITION: Definition = Definition {
    name: "sequence",
    summary: "Runs a named sequence in place; what ends it ends the caller too.",
    attributes: &[
        Attribute::optional("key", Values::Key, "the sequence, or an expression in braces that names it"),
        Attribute::optional(
            "onError",
            Values::Key,
            "the fault handler of a sequence that is written in place",
        ),
        Attribute::optional("name", Values::Text, "a name, for people; of no effect here"),
    ],
    children: Children::Mediators,
    page: Page::UNWRITTEN,
    compile,
};

struct Sequence {
    sequence: SequenceRef,
    need: Need,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    if element.attr("key").is_none() {
        let list = compiler.list(element, "sequence in place");
        return Some(Box::new(Sequence { sequence: SequenceRef::Known(list), need: Need::Nothing }));
    }
    if let Some(attribute) = element.attribute("onError") {
        compiler.error(
            "contradiction",
            "`onError` cannot stand beside `key`",
            attribute.name_span,
            "write it at the sequence itself",
        );
        return None;
    }
    let sequence = compiler.sequence(element, "key")?;
    let need = match &sequence {
        SequenceRef::Dynamic(expression) => expression.need(),
        _ => Need::Nothing,
    };
    Some(Box::new(Sequence { sequence, need }))
}

impl Mediator for Sequence {
    fn need(&self) -> Need {
        self.need
    }

    fn reason(&self) -> String {
        match &self.sequence {
            SequenceRef::Dynamic(expression) => expression.reason(),
            _ => String::new(),
        }
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        self.sequence.known().map(|list| (String::new(), list)).into_iter().collect()
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        Ok(Flow::Enter(self.sequence.resolve(context)?))
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing;

    #[test]
    fn static_and_dynamic_keys_find_the_sequence() {
        for key in ["b", "{$trp:X-Key}", "{//key}"] {
            let flow = testing::main(
                &registry(testing::endpoints),
                &format!(
                    r#"<sequence key="{key}"/><property name="after" value="1"/>
                       <!--top--><sequence name="b"><property name="b" value="1"/></sequence>"#
                ),
            );
            let end = flow.run(&[("Content-Type", "application/xml"), ("X-Key", "b")], "<x><key>b</key></x>");
            assert_eq!(end.property("b").as_deref(), Some("1"), "{key}");
            assert_eq!(end.property("after").as_deref(), Some("1"), "{key}");
        }
    }

    #[test]
    fn a_missing_sequence_and_an_endless_one_are_faults() {
        for (key, wanted) in [
            ("none", "0: Sequence named none cannot be found"),
            ("{$ctx:none}", "0: Sequence named  cannot be found"),
            ("self", "0: sequences are nested more than 512 deep: does one call itself?"),
        ] {
            let flow = testing::main(
                &registry(testing::endpoints),
                &format!(
                    r#"<sequence key="{key}"/><!--top--><sequence name="self"><sequence key="self"/></sequence>
                       <sequence name="fault"><property name="seen" expression="$ctx:ERROR_MESSAGE"/></sequence>"#
                ),
            );
            let end = flow.run(&[], "");
            assert_eq!(end.fault().as_deref(), Some(wanted));
            assert_eq!(end.property("seen"), end.property("ERROR_MESSAGE"));
        }
        let flow = testing::main(&registry(testing::endpoints), r#"<sequence key="a" onError="b"/>"#);
        assert!(flow.reports("`onError` cannot stand beside `key`"), "{flow:?}");
    }
}
