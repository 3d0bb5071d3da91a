//! `in` and `out`: mediators for requests, and for responses; and `rules`, for both.

use config::Element;
use flow::{
    Children, Compiled, Compiler, Context, Definition, Family, Fault, Flow, ListId, Mediator, Need, Page,
};

/// `<in>mediator*</in>`
pub const IN: Definition = Definition {
    name: "in",
    summary: "Runs the mediators inside on requests only.",
    attributes: &[],
    children: Children::Mediators,
    page: PAGE_IN,
    compile: |element, compiler| compile(element, compiler, Some(false)),
};

const PAGE_IN: Page = Page {
    family: Family::Routing,
    semantics: "A message is a request until a backend has answered a `send`, or `loopback`, `makefault` or the property `RESPONSE` (`true`, in default scope) has
made it a response; `call` does not change that. A request runs the mediators inside and then those after `in`, unless one of them ends the flow; a response goes on after `in` at once.

It is for sequences that both directions run: the `main` sequence, or one that is the in and the out sequence of a proxy.",
    inside: &[],
    needs: &[(Need::Nothing, "always; the mediators inside say for themselves what they read")],
    refused: &[("<in><nothing/></in>", "there is no mediator `nothing`")],
    faults: &[],
};

/// `<out>mediator*</out>`
pub const OUT: Definition = Definition {
    name: "out",
    summary: "Runs the mediators inside on responses only.",
    attributes: &[],
    children: Children::Mediators,
    page: PAGE_OUT,
    compile: |element, compiler| compile(element, compiler, Some(true)),
};

const PAGE_OUT: Page = Page {
    family: Family::Routing,
    semantics: "The counterpart of `in`: a response runs the mediators inside and then those after `out`, unless one of them ends the flow; a request goes on after `out`
at once. A response is what a backend has answered to a `send`, or what `loopback`, `makefault` or the property `RESPONSE` has made one; behind a
`call` a request is a request still.",
    inside: &[],
    needs: &[(Need::Nothing, "always; the mediators inside say for themselves what they read")],
    refused: &[("<out><nothing/></out>", "there is no mediator `nothing`")],
    faults: &[],
};

/// `<rules>mediator*</rules>`
pub const RULES: Definition = Definition {
    name: "rules",
    summary: "Runs the mediators inside.",
    attributes: &[],
    children: Children::Mediators,
    page: RULES_PAGE,
    compile: |element, compiler| compile(element, compiler, None),
};

const RULES_PAGE: Page = Page {
    family: Family::Core,
    semantics: "The mediators inside run one after the other, as if `rules` were not there; what ends one of them (`drop`, `respond`, `send`) ends the
flow. Old configurations of Apache Synapse have it in the main sequence, with `in` and `out` inside. It is the same as an inline `sequence`.",
    inside: &[],
    needs: &[(Need::Nothing, "always; the mediators inside have needs of their own")],
    refused: &[],
    faults: &[],
};

struct Direction {
    response: Option<bool>,
    list: ListId,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>, response: Option<bool>) -> Compiled {
    let list = compiler.list(element, element.local());
    Some(Box::new(Direction { response, list }))
}

impl Mediator for Direction {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        vec![(String::new(), self.list)]
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        match self.response {
            Some(response) if response != context.response => Ok(Flow::Next),
            _ => Ok(Flow::Enter(self.list)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing;

    #[test]
    fn each_direction_has_its_list() {
        let echo = testing::backend("");
        let text = format!(
            r#"<rules><in><property name="in" value="1"/>
               <send><endpoint><address uri="{echo}"/></endpoint></send></in></rules>
               <out><property name="out" value="1"/><sequence key="none"/></out>"#
        );
        let flow = testing::main(&registry(testing::endpoints), &text);
        let end = flow.run(&[("Content-Type", "text/plain")], "x");
        assert_eq!((end.property("in").as_deref(), end.property("out").as_deref()), (Some("1"), Some("1")));
        assert_eq!(end.fault().as_deref(), Some("0: Sequence named none cannot be found"));
    }

    #[test]
    fn the_property_response_makes_a_response() {
        let flow = testing::main(
            &registry(testing::endpoints),
            r#"<property name="RESPONSE" value="True"/><in><property name="in" value="1"/></in><out><drop/></out>"#,
        );
        assert_eq!(flow.run(&[], "").property("in"), None);
    }
}
