//! Mediators of the language that cannot be executed here (yet), with what to do about it.

const JAVA: &str = "Java classes cannot run here: write the logic as script or as a service of its own";

/// Element names, each with what to do.
pub(crate) const UNSUPPORTED: &[(&str, &str)] = &[
    ("class", JAVA),
    ("pojoCommand", JAVA),
    ("annotatedCommand", JAVA),
    ("spring", "Spring beans cannot run here: write the logic as a service of its own"),
    ("bean", "Java beans cannot run here: write the logic as a service of its own"),
    ("ejb", "Enterprise beans cannot be called from here: put a service in front of them"),
    ("xquery", "write the query as XSLT"),
    ("smooks", "Smooks is a Java library: write the transformation as XSLT"),
    (
        "rule",
        "the rules engine is a Java library: write the rules as filter and switch, or as a service of its own",
    ),
    ("entitlementService", "it asks a WSO2 identity server: ask its decision point with `call`"),
    ("kerberosService", "put a proxy that speaks Kerberos in front of the backend"),
    ("opa", "ask the policy agent with `call` and decide with `filter`"),
    ("RMSequence", "keep messages that must not be lost in a message store"),
];

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing;

    #[test]
    fn each_is_reported_by_name_unless_it_is_executable() {
        let registry = registry(testing::endpoints);
        for (name, why) in super::UNSUPPORTED {
            assert!(why.len() > 20, "{name}");
            if registry.definition(name).is_none() {
                // The steps before it and the other branches run.
                let steps = format!(
                    r#"<property name="before" value="1"/><filter xpath="//no"><then><{name}/></then></filter><{name} name="a.B"><x/></{name}>"#
                );
                let flow = testing::main(&registry, &steps);
                let message = format!("`{name}` is not executable here");
                assert!(flow.reports(&format!("{message}: messages that come here fault")), "{flow:?}");
                let end = flow.run(&[("Content-Type", "application/xml")], "<a/>");
                assert_eq!(end.property("ERROR_MESSAGE"), Some(format!("{message}: {why}")), "{name}");
                assert_eq!(end.property("before").as_deref(), Some("1"), "{name}");
            }
        }
        let flow = testing::main(&registry, "<lib.operation/><lgo/>");
        assert!(flow.reports("connector operation `lib.operation`"), "{flow:?}");
        assert!(flow.reports("there is no mediator `lgo`"), "{flow:?}");
    }
}
