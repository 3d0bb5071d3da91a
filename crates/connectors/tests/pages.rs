//! The pages of the connectors name each operation and each parameter, and `docs/elements.md` each operation.

use flow::Children;
use std::path::Path;

#[test]
fn every_operation_and_parameter_is_described() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let read =
        |name: &str| std::fs::read_to_string(docs.join(name)).unwrap_or_else(|why| panic!("{name}: {why}"));
    let (index, elements) = (read("connectors.md"), read("elements.md"));
    let mut missing = Vec::new();
    for definition in busbar_connectors::definitions() {
        let connector = definition.name.split('.').next().unwrap_or_default().to_lowercase();
        let page = read(&format!("connectors/{connector}.md"));
        let names = |text: &str| text.contains(&format!("`{}`", definition.name));
        // The other spelling of a name is said once.
        if !definition.summary.starts_with("As `") {
            if !names(&page) && !definition.name.ends_with(".init") {
                missing.push(definition.name.to_owned());
            }
            if !names(&index) && !definition.name.ends_with(".init") {
                missing.push(format!("{} in connectors.md", definition.name));
            }
            if !names(&elements) {
                missing.push(format!("{} in elements.md", definition.name));
            }
        }
        let Children::Elements(parameters) = definition.children else { continue };
        for parameter in parameters.iter().filter(|parameter| !page.contains(&format!("`{parameter}`"))) {
            missing.push(format!("{} {parameter}", definition.name));
        }
    }
    missing.dedup();
    assert!(missing.is_empty(), "{missing:#?}");
}
