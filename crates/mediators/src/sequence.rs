//! `sequence`: runs a named sequence in place.

use crate::steps::Enters;
use config::Element;
use flow::{Attribute, Children, Compiled, Compiler, Definition, Family, Need, Page, SequenceRef, Values};

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
        Attribute::optional("name", Values::Text, "a name, without effect"),
    ],
    children: Children::Mediators,
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Core,
    semantics: "The mediators of the sequence run on the message, and then the flow goes on. What ends the sequence (`drop`, `respond`, `send`) ends the flow
of the caller too. The sequence works on the same message, so properties and variables that it sets stay.

The `key` is the name of a sequence, a key of the registry, or an expression in braces that gives one of them for each message. If the sequence has an
`onError`, that sequence handles faults while it runs. Without `key` the mediators stand inside, with an `onError` of their own.

Sequences may call one another 512 deep.",
    inside: &[],
    needs: &[
        (Need::Nothing, "the key is a name, or the mediators stand inside; these have needs of their own"),
        (Need::Headers, "the key is an expression on properties and headers"),
        (Need::Whole, "the key is an expression on the body"),
    ],
    refused: &[
        ("<sequence/>", "neither `key` nor mediators"),
        ("<sequence key=\"none\"/>", "there is no sequence `none`"),
        ("<sequence key=\"{//a[}\"/>", "not a valid expression"),
        ("<sequence key=\"main\" onError=\"fault\"/>", "`onError` cannot stand beside `key`"),
    ],
    faults: &[
        ("0", "the key names no sequence, or sequences are nested more than 512 deep"),
        (
            "601000",
            "the key is taken of the body, and it is not what its content type says, or larger than a flow may hold",
        ),
    ],
};

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    if element.attr("key").is_none() && element.elements().next().is_none() {
        let message = "`sequence` has neither `key` nor mediators";
        compiler.error("missing-attribute", message, element.span(), "name a sequence");
        return None;
    }
    if element.attr("key").is_none() {
        let list = compiler.list(element, "sequence in place");
        return Some(Box::new(Enters(SequenceRef::Known(list))));
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
    Some(Box::new(Enters(compiler.sequence(element, "key")?)))
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
    fn whoever_names_a_sequence_by_the_body_has_read_it() {
        let echo = testing::backend("");
        for mediator in [
            "<filter xpath='$trp:X-Key'><then sequence='{//key}'/></filter>".to_owned(),
            "<filter xpath='not($trp:X-Key)'><then/><else sequence='{//key}'/></filter>".to_owned(),
            "<filter xpath='//a'><then/><else sequence='{//key}'/></filter>".to_owned(),
            "<router continueAfter='true'><route expression='true()'><target sequence='{//key}'/></route></router>".to_owned(),
            "<enqueue executor='e' sequence='{//key}'/>".to_owned(),
            "<throttle id='t' onAccept='{//key}'/>".to_owned(),
            "<store messageStore='s' sequence='{//key}'/>".to_owned(),
            format!("<send receive='{{//key}}'><endpoint><address uri='{echo}'/></endpoint></send>"),
            "<call><endpoint key-expression='//key'/></call><sequence key='b'/>".to_owned(),
        ] {
            let text = format!(
                r#"{mediator}<!--top--><sequence name="b"><property name="b" value="1"/></sequence><messageStore name="s"/>
                   <endpoint name="e"><address uri="{echo}"/></endpoint>"#
            );
            let flow = testing::main(&registry(testing::endpoints), &text);
            let key = if mediator.contains("key-expression") { "e" } else { "b" };
            let body = format!("<x><key>{key}</key></x>");
            let end = flow.run(&[("Content-Type", "application/xml"), ("X-Key", "1")], &body);
            assert_eq!((end.property("b").as_deref(), end.fault()), (Some("1"), None), "{mediator}");
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
