//! `propertyGroup`: several properties under one heading.

use crate::property::Property;
use config::Element;
use flow::{
    Children, Compiled, Compiler, Context, Definition, Family, Fault, Flow, Inside, ListId, Mediator, Need,
    Page,
};

/// `<propertyGroup><property …/>+</propertyGroup>`
pub const DEFINITION: Definition = Definition {
    name: "propertyGroup",
    summary: "Sets or removes several properties in order.",
    attributes: &[],
    children: Children::Elements(&["property"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Core,
    semantics: "The properties are set or removed from first to last, each as `property` does, so that one can use those before it. Where one fails, those before it stay set and
those behind it are not. The group changes nothing else; it is for people, who may give it a `description`.",
    inside: &[Inside::new(
        "property+",
        "as the mediator [`property`](property.md), with all of its attributes",
        crate::property::DEFINITION.attributes,
    )
    .with("element")],
    needs: &[
        (Need::Nothing, "all of them are a `value`"),
        (Need::Headers, "an expression looks at properties and headers"),
        (Need::Whole, "an expression looks at the body"),
    ],
    refused: &[
        ("<propertyGroup><log/></propertyGroup>", "`log` has no effect inside of `propertyGroup`"),
        ("<propertyGroup><property name=\"p\"/></propertyGroup>", "`property` needs a value"),
    ],
    faults: &[
        ("0", "as `property`: a value cannot have its type, for one"),
        ("601000", "an expression reads the body, and it is not what its content type says"),
    ],
};

/// Each property is a step of its own: what one takes long over is not done anew for those before it.
struct PropertyGroup {
    properties: ListId,
    /// Of the dearest one.
    need: Need,
    reason: String,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let (mut steps, mut need, mut reason) = (Vec::new(), Need::Nothing, String::new());
    for child in element.children_named("property") {
        let property = Property::compile(child, compiler)?;
        if steps.is_empty() || property.need() > need {
            (need, reason) = (property.need(), property.reason());
        }
        steps.push((child.start_tag(), Box::new(property) as Box<dyn Mediator>));
    }
    let properties = compiler.list_at(element, "property", "properties", steps);
    Some(Box::new(PropertyGroup { properties, need, reason }))
}

impl Mediator for PropertyGroup {
    fn need(&self) -> Need {
        self.need
    }

    fn reason(&self) -> String {
        self.reason.clone()
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        vec![("properties".to_owned(), self.properties)]
    }

    fn mediate(&self, _: &mut Context) -> Result<Flow, Fault> {
        Ok(Flow::Enter(self.properties))
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing;

    #[test]
    fn properties_are_set_in_order_up_to_the_first_fault() {
        let text = r#"<propertyGroup><property name="a" value="1"/><property name="b" expression="$ctx:a"/>
            <property name="c" expression="'x'" type="INTEGER"/><property name="d" value="1"/></propertyGroup>"#;
        let end = testing::main(&registry(testing::endpoints), text).run(&[], "");
        assert_eq!((end.property("b").as_deref(), end.property("d")), (Some("1"), None));
        assert!(end.fault().is_some());
        let flow = testing::main(&registry(testing::endpoints), "<propertyGroup><log/></propertyGroup>");
        assert!(flow.reports("`log` has no effect inside of `propertyGroup`"), "{flow:?}");
        // As by `property` itself.
        for (wrong, said) in [
            ("type=\"foo\"", "`type` cannot be `foo`"),
            ("scope=\"axis\"", "`scope` cannot be `axis`"),
            ("type=\"INTEGER\"", "`x` is not a whole number of this type"),
        ] {
            let text = format!("<propertyGroup><property name='a' value='x' {wrong}/></propertyGroup>");
            let flow = testing::main(&registry(testing::endpoints), &text);
            assert!(flow.reports(said), "{flow:?}");
        }
    }
}
