//! `busbar schema`: the XML Schema of the configuration language.
//!
//! It is made of the shapes that artifacts are read with (`config::language`) and of the definitions of the mediators, so it says what the
//! loader says. The order of elements and how often they are there is left to the loader, which WSO2 does not mind either.

use config::ArtifactKind;
use config::language::{BOOLEANS, Content, Part, SWITCHES, parts};
use flow::{Attribute, Children, Definition, Inside, Registry, Values};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Writes the XML Schema of the configuration language, for editors.
///
/// It knows the names of elements and attributes, and the values of attributes that are one of some words. `busbar check` finds more.
#[derive(clap::Args)]
pub struct Args {
    /// Where it is written; standard output where nothing is named.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    let schema = schema(&crate::load::registry());
    match args.output {
        Some(path) => {
            if let Err(error) = std::fs::write(&path, schema) {
                eprintln!("busbar schema: {}: {}", path.display(), diagnostics::io_reason(&error));
                return ExitCode::FAILURE;
            }
        }
        // A reader that has seen enough (`| head`) is no error.
        None => _ = std::io::stdout().lock().write_all(schema.as_bytes()),
    }
    ExitCode::SUCCESS
}

/// Artifacts that are in no namespace in the files of their own, and may be so here.
const NAMELESS: [&str; 2] = ["data", "datasource"];

/// A complex type.
#[derive(Default)]
struct Type {
    /// The attributes: name, type, required, documentation.
    attributes: Vec<(String, String, bool, String)>,
    /// The elements by name, each with its type.
    elements: BTreeMap<String, String>,
    /// Mediators may stand in it.
    mediators: bool,
    /// Text may.
    text: bool,
    /// Any element may.
    others: bool,
    /// Elements of other namespaces may.
    foreign: bool,
    documentation: String,
}

/// The schema.
pub fn schema(registry: &Registry) -> String {
    let mut types: BTreeMap<String, Type> = BTreeMap::new();
    let shapes = parts();
    for part in &shapes {
        types.insert(type_of(part.way), artifact(part, &shapes));
    }
    let mut mediators: BTreeMap<String, String> = BTreeMap::new();
    // Operations that are not here may have any name.
    for definition in registry.definitions.iter().filter(|definition| definition.name != flow::OPERATION) {
        let name = format!("mediator.{}", definition.name);
        mediators.insert(definition.name.to_owned(), name);
        mediator(definition, &mut types);
    }
    for (name, _) in &registry.unsupported {
        mediators.entry((*name).to_owned()).or_insert_with(|| "any".to_owned());
    }
    let mut out = String::from(HEAD);
    out += "\n  <xs:element name=\"definitions\" type=\"s:definitions\"/>\n";
    let artifacts = ArtifactKind::all().skip(1).map(|kind| (kind.element(), kind.element()));
    // The spelling of older samples.
    let artifacts: Vec<_> = artifacts.chain([("priorityExecutor", "priority-executor")]).collect();
    for (name, type_name) in &artifacts {
        let _ = writeln!(out, "  <xs:element name=\"{name}\" type=\"s:{type_name}\"/>");
    }
    out += "\n  <xs:complexType name=\"definitions\">\n    <xs:choice minOccurs=\"0\" maxOccurs=\"unbounded\">\n";
    out += "      <xs:element name=\"description\" type=\"s:description\"/>\n";
    for (name, _) in &artifacts {
        let _ = writeln!(out, "      <xs:element ref=\"s:{name}\"/>");
    }
    for name in NAMELESS {
        let _ = writeln!(out, "      <xs:element name=\"{name}\" form=\"unqualified\" type=\"s:{name}\"/>");
    }
    out += "    </xs:choice>\n    <xs:attribute name=\"name\" type=\"xs:string\"/>\n    <xs:attribute name=\"description\" type=\"xs:string\"/>\n    <xs:anyAttribute namespace=\"##other\" processContents=\"lax\"/>\n  </xs:complexType>\n";
    out += "\n  <xs:group name=\"mediators\">\n    <xs:choice>\n";
    for (name, type_name) in &mediators {
        let _ = writeln!(out, "      <xs:element name=\"{name}\" type=\"s:{type_name}\"/>");
    }
    out += "    </xs:choice>\n  </xs:group>\n";
    for (name, part_type) in &types {
        write_type(&mut out, name, part_type, &mediators);
    }
    out += "</xs:schema>\n";
    out
}

const HEAD: &str = r###"<?xml version="1.0" encoding="UTF-8"?>
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:s="http://ws.apache.org/ns/synapse" targetNamespace="http://ws.apache.org/ns/synapse" elementFormDefault="qualified">
  <xs:annotation>
    <xs:documentation>The configuration language as this version of Busbar reads it. Written by `busbar schema`.</xs:documentation>
  </xs:annotation>

  <xs:simpleType name="boolean">
    <xs:restriction base="xs:token">
      <xs:pattern value="[tT][rR][uU][eE]|[fF][aA][lL][sS][eE]"/>
    </xs:restriction>
  </xs:simpleType>
  <xs:simpleType name="integer">
    <xs:restriction base="xs:token">
      <xs:pattern value="[+\-]?[0-9]+"/>
    </xs:restriction>
  </xs:simpleType>
  <xs:simpleType name="switch">
    <xs:restriction base="xs:token">
      <xs:enumeration value="enable"/>
      <xs:enumeration value="disable"/>
    </xs:restriction>
  </xs:simpleType>
  <xs:complexType name="text" mixed="true">
    <xs:anyAttribute namespace="##other" processContents="lax"/>
  </xs:complexType>
  <xs:complexType name="any" mixed="true">
    <xs:sequence>
      <xs:any namespace="##any" processContents="skip" minOccurs="0" maxOccurs="unbounded"/>
    </xs:sequence>
    <xs:anyAttribute namespace="##any" processContents="skip"/>
  </xs:complexType>
"###;

fn type_of(way: &str) -> String {
    way.replace('/', ".")
}

fn artifact(part: &Part, shapes: &[Part]) -> Type {
    let mut part_type = Type::default();
    for name in &part.attributes {
        let values = if BOOLEANS.contains(name) {
            "s:boolean"
        } else if SWITCHES.contains(name) {
            "s:switch"
        } else {
            "xs:string"
        };
        part_type.attributes.push(((*name).to_owned(), values.to_owned(), false, String::new()));
    }
    for name in &part.elements {
        let inside = format!("{}/{name}", part.way);
        let has = |way: &str| shapes.iter().any(|other| other.way == way);
        let type_name = if has(&inside) {
            type_of(&inside)
        } else if has(name) {
            (*name).to_owned()
        } else {
            "text".to_owned()
        };
        part_type.elements.insert((*name).to_owned(), type_name);
    }
    part_type.mediators = part.content == Content::Mediators;
    part_type.text = matches!(part.content, Content::Text | Content::Any);
    part_type.others = part.content == Content::Any;
    if part_type.mediators {
        part_type.elements.insert("description".to_owned(), "description".to_owned());
    }
    part_type
}

/// The types of a mediator and of the elements inside of it.
fn mediator(definition: &Definition, types: &mut BTreeMap<String, Type>) {
    let name = format!("mediator.{}", definition.name);
    let inside = definition.page.inside;
    let mut mediator_type = Type { documentation: definition.summary.to_owned(), ..Type::default() };
    mediator_type.attributes = attributes(definition.attributes);
    for common in flow::COMMON_ATTRIBUTES {
        if !definition.attributes.iter().any(|attribute| attribute.name == *common) {
            mediator_type.attributes.push((
                (*common).to_owned(),
                "xs:string".to_owned(),
                false,
                String::new(),
            ));
        }
    }
    match definition.children {
        Children::Mediators => mediator_type.mediators = true,
        Children::None => {}
        Children::Elements(names) => {
            mediator_type.mediators = names.contains(&"#mediators");
            mediator_type.others = names.contains(&"*");
            mediator_type.text = names.contains(&"*") || names.contains(&"text()");
            // The parameters of operations are told by their names only.
            let told = names.iter().filter(|name| !name.contains(['#', '*', '(', ':']));
            mediator_type.elements.extend(told.map(|name| ((*name).to_owned(), "any".to_owned())));
        }
    }
    children(&name, "", inside, &mut mediator_type);
    mediator_type.elements.entry("description".to_owned()).or_insert_with(|| "description".to_owned());
    types.insert(name.clone(), mediator_type);
    for child in inside {
        // An element of another language is checked by who reads it.
        if child.way().contains(':') {
            continue;
        }
        let way = format!("{name}.{}", type_of(child.way()));
        let mut way_type = Type { documentation: child.meaning.to_owned(), ..Type::default() };
        way_type.attributes = attributes(child.attributes);
        if !way_type.attributes.iter().any(|(name, ..)| name == "description") {
            way_type.attributes.push((
                "description".to_owned(),
                "xs:string".to_owned(),
                false,
                String::new(),
            ));
        }
        way_type.mediators = child.content == "mediator*";
        way_type.text = !way_type.mediators && !child.content.is_empty();
        way_type.others = way_type.text;
        way_type.foreign = !way_type.mediators;
        if way_type.mediators {
            // A list of its own may have a handler.
            for more in ["onError", "name", "trace", "statistics"] {
                if !way_type.attributes.iter().any(|(name, ..)| name == more) {
                    way_type.attributes.push((more.to_owned(), "xs:string".to_owned(), false, String::new()));
                }
            }
            way_type.elements.insert("description".to_owned(), "description".to_owned());
        }
        children(&name, child.way(), inside, &mut way_type);
        types.insert(way, way_type);
    }
}

/// The elements directly in one.
fn children(mediator: &str, way: &str, inside: &[Inside], parent: &mut Type) {
    for child in inside {
        let Some(rest) = (match way {
            "" => Some(child.way()),
            way => child.way().strip_prefix(way).and_then(|rest| rest.strip_prefix('/')),
        }) else {
            continue;
        };
        if rest.contains('/') && !rest.contains(':') {
            continue;
        }
        if rest.contains(':') {
            parent.foreign = true;
        } else if rest == "endpoint" {
            parent.elements.insert(rest.to_owned(), "endpoint".to_owned());
        } else {
            parent.elements.insert(rest.to_owned(), format!("{mediator}.{}", type_of(child.way())));
        }
    }
}

fn attributes(attributes: &[Attribute]) -> Vec<(String, String, bool, String)> {
    let plain = attributes.iter().filter(|attribute| !attribute.name.contains(':'));
    plain
        .map(|attribute| {
            (
                attribute.name.to_owned(),
                values(attribute.values),
                attribute.required,
                attribute.meaning.to_owned(),
            )
        })
        .collect()
}

/// The name of a simple type, or its words behind a `|`.
fn values(values: Values) -> String {
    match values {
        Values::Boolean => "s:boolean".to_owned(),
        Values::Integer => "s:integer".to_owned(),
        Values::OneOf(words) | Values::Action(words) | Values::Word(words) => format!("|{}", words.join("|")),
        Values::Text | Values::Expression | Values::Key | Values::Regex => "xs:string".to_owned(),
    }
}

fn write_type(out: &mut String, name: &str, written: &Type, mediators: &BTreeMap<String, String>) {
    let mixed = if written.text { " mixed=\"true\"" } else { "" };
    let _ = writeln!(out, "\n  <xs:complexType name=\"{name}\"{mixed}>");
    if !written.documentation.is_empty() {
        let _ = writeln!(
            out,
            "    <xs:annotation><xs:documentation>{}</xs:documentation></xs:annotation>",
            escaped(&written.documentation)
        );
    }
    let any = !written.elements.is_empty() || written.mediators || written.others || written.foreign;
    if any {
        out.push_str("    <xs:choice minOccurs=\"0\" maxOccurs=\"unbounded\">\n");
        let is_open =
            written.others && !written.mediators && written.elements.keys().all(|name| name == "description");
        for (element, type_name) in written.elements.iter().filter(|_| !is_open) {
            let _ = writeln!(out, "      <xs:element name=\"{element}\" type=\"s:{type_name}\"/>");
        }
        // One name has one type in an element: a part goes before a mediator that is called like it.
        let clash = written.elements.keys().any(|name| mediators.contains_key(name));
        if written.mediators && !clash {
            out.push_str("      <xs:group ref=\"s:mediators\"/>\n");
        } else if written.mediators {
            for (element, type_name) in
                mediators.iter().filter(|(name, _)| !written.elements.contains_key(*name))
            {
                let _ = writeln!(out, "      <xs:element name=\"{element}\" type=\"s:{type_name}\"/>");
            }
        }
        if written.others && is_open {
            // Inline documents may be in the namespace of the language where nobody took them out of it.
            out.push_str("      <xs:any namespace=\"##any\" processContents=\"skip\"/>\n");
        } else if written.others || written.foreign {
            out.push_str("      <xs:any namespace=\"##other\" processContents=\"lax\"/>\n");
            out.push_str("      <xs:any namespace=\"##local\" processContents=\"lax\"/>\n");
        }
        out.push_str("    </xs:choice>\n");
    }
    let mut seen = BTreeSet::new();
    for (attribute, type_name, required, meaning) in &written.attributes {
        if seen.insert(attribute) {
            write_attribute(out, attribute, type_name, *required, meaning);
        }
    }
    out.push_str(
        "    <xs:anyAttribute namespace=\"##other\" processContents=\"lax\"/>\n  </xs:complexType>\n",
    );
}

fn write_attribute(out: &mut String, name: &str, type_name: &str, required: bool, meaning: &str) {
    let required = if required { " use=\"required\"" } else { "" };
    let documentation = match meaning {
        "" => String::new(),
        text => {
            format!("<xs:annotation><xs:documentation>{}</xs:documentation></xs:annotation>", escaped(text))
        }
    };
    match type_name.strip_prefix('|') {
        None if documentation.is_empty() => {
            let _ = writeln!(out, "    <xs:attribute name=\"{name}\" type=\"{type_name}\"{required}/>");
        }
        None => {
            let _ = writeln!(
                out,
                "    <xs:attribute name=\"{name}\" type=\"{type_name}\"{required}>{documentation}</xs:attribute>"
            );
        }
        Some(words) => {
            let _ = write!(
                out,
                "    <xs:attribute name=\"{name}\"{required}>{documentation}<xs:simpleType><xs:restriction base=\"xs:token\">"
            );
            for word in words.split('|') {
                let _ = write!(out, "<xs:enumeration value=\"{}\"/>", escaped(word));
            }
            out.push_str("</xs:restriction></xs:simpleType></xs:attribute>\n");
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::root;
    use diagnostics::Severity;
    use schema::{Nothing, Source, XmlSchema};
    use std::path::Path;

    /// What the loader says of names and values, for which a document is not valid.
    const RULES: &[&str] = &[
        "unknown-attribute",
        "unknown-element",
        "ignored-element",
        "unknown-mediator",
        "unsupported-mediator",
        "wrong-namespace",
        "stray-text",
        "bad-value",
        "missing-attribute",
        "wrong-root",
        "xml-syntax",
        "unreadable-source",
    ];

    fn configurations(folder: &Path, found: &mut Vec<PathBuf>) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                configurations(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "xml") {
                found.push(path);
            }
        }
    }

    #[test]
    fn what_loads_without_a_finding_is_valid() {
        let text = schema(&crate::load::registry());
        let source = Source { name: "synapse.xsd".to_owned(), bytes: text.into_bytes() };
        let schema = XmlSchema::load(vec![source], &Nothing).unwrap_or_else(|found| panic!("{found:#?}"));
        let mut files = Vec::new();
        let suites = std::env::var("BUSBAR_SUITES").unwrap_or_else(|_| "../shared".to_owned());
        for folder in ["tests/cases".to_owned(), "examples".to_owned(), format!("{suites}/cases")] {
            configurations(&root().join(folder), &mut files);
        }
        let (mut valid, mut wrong) = (0, Vec::new());
        for path in files {
            let Ok(bytes) = std::fs::read(&path) else { continue };
            let Ok(document) = xml::Document::parse(bytes.clone(), &xml::ParseOptions::trusted()) else {
                continue;
            };
            let Some(element) = document.document_element() else { continue };
            if document.namespace(element) != config::SYNAPSE {
                continue;
            }
            let written = String::from_utf8_lossy(&bytes);
            let (_, found) = crate::docs::compiled(&written);
            if found
                .iter()
                .any(|finding| RULES.contains(&finding.rule) && finding.severity >= Severity::Warning)
            {
                continue;
            }
            match schema.validate(&document, element).first() {
                None => valid += 1,
                Some(violation) => wrong.push(format!("{}: {violation}", path.display())),
            }
        }
        assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), wrong.len() + valid, wrong.join("\n"));
        assert!(valid > 60, "only {valid} were checked");
    }

    #[test]
    fn what_the_loader_reports_is_not_valid() {
        let text = schema(&crate::load::registry());
        let source = Source { name: "synapse.xsd".to_owned(), bytes: text.into_bytes() };
        let schema = XmlSchema::load(vec![source], &Nothing).unwrap_or_else(|found| panic!("{found:#?}"));
        for (artifact, is_valid) in [
            ("<sequence name='s'><log level='full'/><send><endpoint key='e'/></send></sequence>", true),
            ("<sequence name='s'><log level='ful'/></sequence>", false),
            ("<sequence name='s'><lgo/></sequence>", false),
            ("<sequence name='s'><log lvel='full'/></sequence>", false),
            ("<proxy name='p' startOnLoad='yes'><target endpoint='e'/></proxy>", false),
            ("<proxy name='p'><taget/></proxy>", false),
            (
                "<api name='a' context='/a'><resource><inSequence><respond/></inSequence></resource></api>",
                true,
            ),
            (
                "<endpoint name='e'><address uri='u'><timeout><duraton>1</duraton></timeout></address></endpoint>",
                false,
            ),
            ("<localEntry key='k'><x xmlns='' a='b'/></localEntry>", true),
            (
                "<data xmlns='' name='d'><config id='c'><property name='url'>u</property></config></data>",
                true,
            ),
            ("<data xmlns='' nam='d'/>", false),
            ("<prxy/>", false),
        ] {
            let text =
                format!("<definitions xmlns='http://ws.apache.org/ns/synapse'>{artifact}</definitions>");
            let document =
                xml::Document::parse(text.into_bytes(), &xml::ParseOptions::trusted()).expect("XML");
            let root = document.document_element().expect("a root");
            assert_eq!(schema.validate(&document, root).is_empty(), is_valid, "{artifact}");
        }
    }
}
