//! For the unit tests: the registry with the address endpoints of `flow::testing`, and `respond`, `drop` and `log` as
//! little as tests need of them, where the real ones are not registered.

use flow::{
    Attribute, Children, Compiled, Context, Definition, Fault, Flow, Mediator, Need, Registry, Values,
    testing,
};

const fn definition(
    name: &'static str,
    compile: fn(&config::Element, &mut flow::Compiler<'_>) -> Compiled,
) -> Definition {
    Definition {
        name,
        summary: "stands in",
        attributes: &[Attribute {
            name: "level",
            required: false,
            values: Values::Text,
            default: "",
            meaning: "",
        }],
        children: Children::Elements(&["property"]),
        compile,
    }
}

const RESPOND: Definition = definition("respond", |_, _| Some(Box::new(Does(|| Flow::Respond))));
const DROP: Definition = definition("drop", |_, _| Some(Box::new(Does(|| Flow::Stop))));
const LOG: Definition = definition("log", |_, _| Some(Box::new(Does(|| Flow::Next))));

struct Does(fn() -> Flow);

impl Mediator for Does {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn mediate(&self, _: &mut Context) -> Result<Flow, Fault> {
        Ok((self.0)())
    }
}

/// See the module.
pub(crate) fn registry() -> Registry {
    let mut registry = crate::registry(testing::endpoints);
    registry.definitions.extend([&RESPOND, &DROP, &LOG]);
    registry
}
