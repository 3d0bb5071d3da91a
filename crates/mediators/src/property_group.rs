//! `propertyGroup`: several properties under one heading.

use crate::property::Property;
use config::Element;
use flow::{Children, Compiled, Compiler, Context, Definition, Fault, Flow, Mediator, Need, Page};

/// `<propertyGroup><property …/>+</propertyGroup>`
pub const DEFINITION: Definition = Definition {
    name: "propertyGroup",
    summary: "Sets or removes several properties in order.",
    attributes: &[],
    children: Children::Elements(&["property"]),
    page: Page::UNWRITTEN,
    compile,
};

struct PropertyGroup(Vec<Property>);

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let properties: Option<Vec<_>> =
        element.children_named("property").map(|child| Property::compile(child, compiler)).collect();
    Some(Box::new(PropertyGroup(properties?)))
}

impl Mediator for PropertyGroup {
    fn need(&self) -> Need {
        self.0.iter().map(Mediator::need).max().unwrap_or(Need::Nothing)
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        self.0.iter().try_for_each(|property| property.apply(context))?;
        Ok(Flow::Next)
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
        assert!(flow.reports("`log` cannot stand inside of `propertyGroup`"), "{flow:?}");
    }
}
