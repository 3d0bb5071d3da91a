//! `validate`: checks the message against XML Schemas or a JSON Schema, and runs `on-fail` where it does not fit.

use crate::entry_cache::{EntryCache, warn_missing};
use crate::resources::{RESOURCE, Resources};
use config::Element;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Expression, Family, Fault, Flow, Inside,
    KeyValue, ListId, Mediator, Need, Page, Values,
};
use message::Value;
use schema::{Draft, JsonSchema, Resolver, Source, Violation, XmlSchema};
use std::sync::Arc;
use xml::NodeKind;

/// `<validate [source] [cache-schema] [json-source]><schema key/>+<feature/>*<resource/>*<on-fail/></validate>`
pub const DEFINITION: Definition = Definition {
    name: "validate",
    summary: "Checks the message against XML Schemas or a JSON Schema; what does not fit goes through `on-fail`.",
    attributes: &[
        Attribute::optional("source", Values::Expression, "what is checked; JSON: `json-eval(…)` or `${…}`")
            .or("the first element of the body; the JSON payload"),
        Attribute::optional(
            "cache-schema",
            Values::Boolean,
            "not needed here: a schema is compiled again when its text changes",
        )
        .or("true"),
        Attribute::optional("json-source", Values::Boolean, "checks every message as JSON").or("false"),
    ],
    children: Children::Elements(&["schema", "feature", "property", "resource", "on-fail"]),
    page: PAGE,
    compile,
};

/// JSON of at most so many bytes is checked on the worker.
pub(crate) const SHORT: usize = 16 << 10;

const PAGE: Page = Page {
    family: Family::Routing,
    semantics: "JSON messages are checked against a JSON Schema (with `json-source` all messages are), others against XML Schemas. The text of the last `schema` decides which kind the schemas
are. If it is JSON, it is a JSON Schema, and the only schema that counts; its draft is 4 unless `$schema` names 6, 7, 2019-09 or 2020-12. Otherwise
all schemas together are one XML Schema 1.0. A schema of another kind than the message is a fault, and so is a missing or wrong schema. `busbar check`
warns of a missing or wrong one, unless a key is an expression.

A valid message goes on after `validate`. An invalid one runs `on-fail`, and then also goes on, unless `on-fail` ends the flow
(`respond`, `drop`, …). In `on-fail` the property `ERROR_DETAIL` has a line for each violation (of a JSON Schema at most 1,000, and only one where there may be more than 100,000), with the place in the message; `ERROR_MESSAGE` has all violations
of an XML Schema, or the first of a JSON Schema. `ERROR_CODE` is not set.

In XML the first element of the body is checked, or the first that `source` selects; if there is none, the message is invalid. In JSON it is the whole
payload, or what `source` finds; an empty result and `null` are checked as `{}`. An empty body, whatever its type, is checked by the kind of the schema: as `{}`, or as a
message without that element.

The documents that a schema imports or includes are the `resource` of that location, else an entry or a registry resource: relative to the schema's own key, or of that name.",
    inside: &[
        Inside::new(
            "schema+",
            "a schema",
            &[Attribute::required("key", Values::Key, "the local entry or registry resource with its text")],
        ),
        Inside::new(
            "feature*",
            "a feature of the XML parser in WSO2; without effect here",
            &[
                Attribute::required("name", Values::Text, "its URI"),
                Attribute::optional("value", Values::Boolean, "`true` or `false`"),
            ],
        ),
        Inside::new(
            "property*",
            "the same in old configurations",
            &[
                Attribute::required("name", Values::Text, "its URI"),
                Attribute::optional("value", Values::Boolean, "`true` or `false`"),
            ],
        ),
        RESOURCE,
        Inside::new("on-fail", "runs if the message does not fit; at least one mediator", &[]).with("mediator*"),
    ],
    needs: &[(Need::Whole, "always")],
    refused: &[
        ("<validate><on-fail><drop/></on-fail></validate>", "`validate` needs a schema"),
        ("<validate><schema/><on-fail><drop/></on-fail></validate>", "`schema` needs `key`"),
        ("<validate><schema key=\"s\"/></validate>", "`validate` needs `on-fail` with a mediator in it"),
        (
            "<validate source=\"//a[\"><schema key=\"s\"/><on-fail><drop/></on-fail></validate>",
            "not a valid expression",
        ),
        (
            "<validate><schema key=\"s\"/><resource key=\"t\"/><on-fail><drop/></on-fail></validate>",
            "`resource` needs `location` and `key`",
        ),
        (
            "<validate><schema key=\"s\"/><feature value=\"true\"/><on-fail><drop/></on-fail></validate>",
            "a feature needs a `name`",
        ),
    ],
    faults: &[
        (
            "0",
            "the schema is missing, wrong, or of the other kind than the message, or the source of a JSON message is an XPath",
        ),
        ("601000", "the body is not what its content type says, or larger than a flow may hold"),
    ],
};

struct Validate {
    keys: Vec<KeyValue>,
    resources: Resources,
    source: Option<Expression>,
    as_json: bool,
    /// Of literal keys that are there: compiled with the plan.
    fixed: Option<Result<Arc<Schemas>, Fault>>,
    schemas: EntryCache<Vec<Arc<str>>, Texts, Schemas>,
    on_fail: ListId,
}

/// Of the keys, in order.
type Texts = Vec<Arc<[u8]>>;

/// Compiled schemas.
enum Schemas {
    Xml(Box<XmlSchema>),
    Json(JsonSchema),
}

/// Finds what a schema refers to among the resources, else by key in entries and registry.
pub(crate) struct Entries<'a> {
    pub(crate) resources: &'a Resources,
    pub(crate) entry: &'a dyn Fn(&str) -> Option<Arc<[u8]>>,
}

impl Resolver for Entries<'_> {
    fn resolve(&self, location: &str, base: &str) -> Result<Source, String> {
        let keys = match self.resources.key(location) {
            Some(key) => vec![key.to_owned()],
            None => vec![xslt::resolver::join(base, location), location.to_owned()],
        };
        for key in &keys {
            if let Some(bytes) = (self.entry)(key) {
                return Ok(Source { name: key.clone(), bytes: bytes.to_vec() });
            }
        }
        Err(format!("there is no entry or registry resource `{}`", keys[0]))
    }
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let mut keys = Vec::new();
    for child in element.children_named("schema") {
        if child.attr("key").is_none() {
            let help = "the local entry or resource with the schema";
            compiler.error("missing-attribute", "`schema` needs `key`", child.start_tag(), help);
            return None;
        }
        keys.push(compiler.key_value(child, "key")?);
    }
    if keys.is_empty() {
        compiler.error(
            "missing-element",
            "`validate` needs a schema",
            element.start_tag(),
            "add <schema key=\"…\"/>",
        );
        return None;
    }
    let on_fail = element.child("on-fail").filter(|child| child.elements().next().is_some());
    let Some(on_fail) = on_fail else {
        let help = "say in <on-fail> what happens to a message that does not fit";
        compiler.error(
            "missing-element",
            "`validate` needs `on-fail` with a mediator in it",
            element.start_tag(),
            help,
        );
        return None;
    };
    let resources = Resources::compile(element, compiler);
    for feature in element.children_named("feature").chain(element.children_named("property")) {
        if feature.attr("name").is_none() {
            compiler.error(
                "missing-attribute",
                "a feature needs a `name`",
                feature.start_tag(),
                "name and value",
            );
            return None;
        }
    }
    let source = match element.attribute("source") {
        Some(_) => Some(compiler.expression(element, "source")?),
        None => None,
    };
    let as_json = crate::target::is_true(element, "json-source");
    let fixed = fixed(element, &keys, &resources, compiler);
    let on_fail = compiler.list(on_fail, "on-fail of validate");
    Some(Box::new(Validate {
        keys,
        resources,
        source,
        as_json,
        fixed,
        schemas: EntryCache::default(),
        on_fail,
    }))
}

/// The schemas of literal keys. What is wrong with them is told now, and each message that comes faults, as in WSO2.
fn fixed(
    element: &Element,
    keys: &[KeyValue],
    resources: &Resources,
    compiler: &mut Compiler<'_>,
) -> Option<Result<Arc<Schemas>, Fault>> {
    let mut sources = Vec::new();
    for (key, child) in keys.iter().zip(element.children_named("schema")) {
        let name = key.literal()?;
        let Some(entry) = compiler.entry(name) else {
            warn_missing("schema", name, child.start_tag(), compiler);
            return None;
        };
        sources.push(Source { name: name.to_owned(), bytes: entry.bytes.to_vec() });
    }
    let shared = &*compiler;
    let find = |key: &str| shared.entry(key).map(|entry| entry.bytes);
    match load(sources, &Entries { resources, entry: &find }) {
        Ok(schemas) => Some(Ok(Arc::new(schemas))),
        Err(fault) => {
            let why = fault.detail.clone();
            let first = why.lines().next().unwrap_or("").to_owned();
            // The schema that has it, as far as its key stands in front of the message.
            let has_it = |(key, _): &(&KeyValue, &Element)| {
                key.literal()
                    .is_some_and(|key| first.strip_prefix(key).is_some_and(|rest| rest.starts_with(':')))
            };
            let schema = keys.iter().zip(element.children_named("schema")).find(has_it);
            let place = schema.map_or(element, |(_, schema)| schema).start_tag();
            compiler.warning("bad-schema", format!("the schema cannot be used: {first}"), place, why);
            Some(Err(fault))
        }
    }
}

/// One XML Schema of all of them, or the last JSON Schema (as in WSO2).
fn load(mut sources: Vec<Source>, resolver: &dyn Resolver) -> Result<Schemas, Fault> {
    let names: Vec<String> = sources.iter().map(|source| source.name.clone()).collect();
    let wrong = |violations: Vec<Violation>| {
        let sentences: Vec<String> = violations.iter().map(ToString::to_string).collect();
        Fault::new(format!("Error creating a validator for the schema {}", names.join(", ")))
            .because(sentences.join("\n"))
    };
    let is_xml =
        |source: &Source| !matches!(source.bytes.trim_ascii_start().first(), Some(b'{' | b'[' | b't' | b'f'));
    match sources.pop() {
        Some(last) if !is_xml(&last) => {
            JsonSchema::load(last, Draft::Draft4, resolver).map(Schemas::Json).map_err(wrong)
        }
        last => {
            sources.extend(last);
            XmlSchema::load(sources, resolver).map(|schema| Schemas::Xml(Box::new(schema))).map_err(wrong)
        }
    }
}

/// What checking gave.
enum Verdict {
    Valid,
    /// For `ERROR_MESSAGE` and `ERROR_DETAIL`.
    Invalid(String, String),
}

impl Validate {
    fn schemas(&self, context: &mut Context) -> Result<Arc<Schemas>, Fault> {
        match &self.fixed {
            Some(Ok(schemas)) => return Ok(Arc::clone(schemas)),
            Some(Err(fault)) => return Err(fault.clone()),
            None => {}
        }
        let mut names = Vec::with_capacity(self.keys.len());
        for key in &self.keys {
            names.push(Arc::from(key.resolve(context)?.unwrap_or_default().trim()));
        }
        let plan = context.plan();
        let mut texts: Texts = Vec::with_capacity(names.len());
        for name in &names {
            let missing = || {
                Fault::new(format!("Schema {name} cannot be found"))
                    .because("there is no entry or registry resource of this key")
            };
            texts.push(plan.entry(name).ok_or_else(missing)?.bytes);
        }
        self.schemas.get_or_make(&names, texts, |texts| {
            let source = |(name, text): (&Arc<str>, &Arc<[u8]>)| Source {
                name: name.to_string(),
                bytes: text.to_vec(),
            };
            let find = |key: &str| plan.entry(key).map(|entry| entry.bytes);
            let sources = names.iter().zip(texts).map(source).collect();
            load(sources, &Entries { resources: &self.resources, entry: &find })
        })
    }

    fn xml(&self, schema: &XmlSchema, context: &mut Context) -> Result<Verdict, Fault> {
        let node = match &self.source {
            None => context.envelope()?.payload(),
            Some(source) => source.nodes(context)?.first().copied(),
        };
        let document = &context.envelope()?.document;
        let Some(node) = node.filter(|&node| document.kind(node) == NodeKind::Element) else {
            let source =
                self.source.as_ref().map_or("the first element of the body", |source| source.source());
            let message = format!("Error occurred while accessing source element: {source}");
            return Ok(Verdict::Invalid(message, "there is no such element in the message".to_owned()));
        };
        let violations = meter::finished(schema.validate(document, node))?;
        if violations.is_empty() {
            return Ok(Verdict::Valid);
        }
        let message = violations.iter().map(|v| format!("{}: {}\n", v.rule, v.message)).collect();
        Ok(Verdict::Invalid(message, listed(&violations)))
    }

    fn json(&self, schema: &JsonSchema, context: &mut Context) -> Result<Verdict, Fault> {
        // The library behind it cannot be broken off.
        if context.payload.bytes().is_none_or(|bytes| bytes.len() > SHORT) {
            meter::not_inline()?;
        }
        let empty = || serde_json::Value::Object(serde_json::Map::new());
        let owned = match &self.source {
            Some(source) if source.xpath().is_some() => {
                let why = "the source of a JSON message must be json-eval(…) or ${…}";
                return Err(Fault::new(format!("Invalid source expression {}", source.source()))
                    .because(why)
                    .at(source.span()));
            }
            Some(source) if source.is_json() => Some(source.json_values(context)?.unwrap_or_else(empty)),
            Some(source) => Some(match source.value(context)? {
                Some(Value::Json(value)) => (*value).clone(),
                Some(other) => {
                    let text = other.to_string();
                    serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text))
                }
                None => empty(),
            }),
            None if context.payload.is_empty() => Some(empty()),
            None if context.payload.is_json() => None,
            None => {
                let limits = context.services().limits.clone();
                Some(context.payload.as_json(&limits)?)
            }
        };
        let holder;
        let value = match (&owned, context.payload.is_json()) {
            (Some(serde_json::Value::Null), _) => {
                holder = empty();
                &holder
            }
            (Some(value), _) => value,
            (None, _) => match context.payload.json()? {
                Some(value) => value,
                None => {
                    holder = empty();
                    &holder
                }
            },
        };
        if schema.is_valid(value) {
            return Ok(Verdict::Valid);
        }
        let violations = schema.validate(value);
        let message = violations
            .first()
            .map_or_else(|| "the document does not fit".to_owned(), |first| first.message.clone());
        Ok(Verdict::Invalid(message, format!("Error while validating Json message {}", listed(&violations))))
    }
}

fn listed(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl Mediator for Validate {
    fn need(&self) -> Need {
        Need::Whole
    }

    fn reason(&self) -> String {
        "checks the payload against a schema".into()
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        vec![("on-fail".to_owned(), self.on_fail)]
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let schemas = self.schemas(context)?;
        let is_json = self.as_json || context.payload.is_json();
        let verdict = match (&*schemas, is_json) {
            (Schemas::Xml(schema), false) => self.xml(schema, context)?,
            (Schemas::Json(schema), true) => self.json(schema, context)?,
            // Without a body there is nothing that it could be but what the schema is for.
            (Schemas::Json(schema), false) if context.payload.is_empty() => self.json(schema, context)?,
            (Schemas::Json(_), false) => {
                // What cannot be read at all is the sender's fault, with a code of its own.
                context.envelope()?;
                return Err(Fault::new("a JSON Schema cannot check an XML message")
                    .because("set json-source=\"true\" to check it as JSON"));
            }
            (Schemas::Xml(_), true) => {
                if context.payload.is_json() {
                    context.payload.json()?;
                }
                return Err(Fault::new("an XML Schema cannot check a JSON message"));
            }
        };
        let Verdict::Invalid(message, detail) = verdict else { return Ok(Flow::Next) };
        let last = message.lines().last().unwrap_or("").to_owned();
        context.properties.set("ERROR_MESSAGE", Value::from(message));
        context.properties.set("ERROR_DETAIL", Value::from(detail));
        context.properties.set("ERROR_EXCEPTION", Value::from(last));
        Ok(Flow::Enter(self.on_fail))
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing::{self, Tested};

    const XSD: &str = r#"<localEntry key="xsd"><xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:t="urn:t" targetNamespace="urn:o"><xs:import namespace="urn:t" schemaLocation="t.xsd"/><xs:element name="o"><xs:complexType><xs:sequence><xs:element name="n" type="xs:int" maxOccurs="2"/></xs:sequence><xs:attribute name="c" type="t:code"/></xs:complexType></xs:element></xs:schema></localEntry>
<localEntry key="types"><xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t"><xs:simpleType name="code"><xs:restriction base="xs:string"><xs:pattern value="[A-Z]+"/></xs:restriction></xs:simpleType></xs:schema></localEntry>
<localEntry key="js"><![CDATA[{"type":"object","required":["n"],"properties":{"n":{"type":"number","maximum":9}}}]]></localEntry>
<localEntry key="bad"><xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="a" type="xs:strin"/></xs:schema></localEntry>"#;

    fn flow(attributes: &str, schemas: &str) -> Tested {
        let text = format!(
            r#"<validate {attributes}>{schemas}<resource location="t.xsd" key="types"/><on-fail><property name="failed" value="yes"/></on-fail></validate><property name="after" value="yes"/><!--top-->{XSD}"#
        );
        testing::main(&registry(testing::endpoints), &text)
    }

    #[test]
    fn xml_messages() {
        let valid = r#"<o xmlns="urn:o" c="A"><n xmlns="">1</n></o>"#;
        for (attributes, body, message) in [
            ("", valid, None),
            ("", r#"<o xmlns="urn:o" c="a"><n xmlns="">1</n></o>"#, Some("cvc-pattern-valid")),
            (
                "",
                r#"<o xmlns="urn:o"><n xmlns="">x</n><n xmlns="">y</n><n xmlns=""/></o>"#,
                Some("cvc-datatype-valid"),
            ),
            ("", "<x/>", Some("cvc-elt.1")),
            (r#"source="//*[local-name()='o']""#, r#"<w><o xmlns="urn:o"><n xmlns="">1</n></o></w>"#, None),
            (r#"source="//gone""#, valid, Some("Error occurred while accessing source element")),
            (r#"source="'text'""#, valid, Some("Error occurred while accessing source element")),
        ] {
            let flow = flow(attributes, r#"<schema key="xsd"/>"#);
            let end = flow.run(&[("Content-Type", "application/xml")], body);
            assert_eq!(end.property("failed").is_some(), message.is_some(), "{body} {flow:?}");
            assert_eq!(end.property("after").as_deref(), Some("yes"), "{body}");
            assert_eq!(end.property("ERROR_CODE"), None);
            if let Some(message) = message {
                let found = end.property("ERROR_MESSAGE").unwrap_or_default();
                assert!(found.contains(message), "{found}");
                assert!(end.property("ERROR_DETAIL").is_some_and(|detail| !detail.is_empty()));
            }
        }
        let end = flow("", r#"<schema key="xsd"/>"#).run(
            &[("Content-Type", "application/xml")],
            r#"<o xmlns="urn:o"><n xmlns="">x</n><n xmlns="">y</n></o>"#,
        );
        assert_eq!(
            end.property("ERROR_MESSAGE").unwrap_or_default().lines().count(),
            2,
            "all errors are told"
        );
        let end = flow("", r#"<schema key="xsd"/>"#).run(&[("Content-Type", "application/xml")], "");
        assert_eq!(end.property("failed").as_deref(), Some("yes"), "an empty body");
    }

    #[test]
    fn json_messages() {
        for (attributes, body, fails) in [
            ("", r#"{"n":1}"#, false),
            ("", r#"{"n":10}"#, true),
            ("", "{}", true),
            ("", "", true),
            ("", "[1]", true),
            (r#"source="json-eval($.p)""#, r#"{"p":{"n":2}}"#, false),
            (r#"source="json-eval($.p)""#, r#"{"n":2}"#, true),
        ] {
            let flow = flow(attributes, r#"<schema key="xsd"/><schema key="js"/>"#);
            let end = flow.run(&[("Content-Type", "application/json")], body);
            assert_eq!(end.property("failed").is_some(), fails, "{attributes} {body} {:?}", end.fault());
            if fails {
                let detail = end.property("ERROR_DETAIL").unwrap_or_default();
                assert!(detail.starts_with("Error while validating Json message "), "{detail}");
            }
        }
        let end = flow(r#"json-source="true""#, r#"<schema key="js"/>"#)
            .run(&[("Content-Type", "application/xml")], "<jsonObject><n>3</n></jsonObject>");
        assert_eq!(end.property("failed"), None, "{:?}", end.fault());
    }

    #[test]
    fn what_raises() {
        let json = [("Content-Type", "application/json")];
        let plain = [("Content-Type", "application/xml")];
        for (attributes, schemas, headers, body, fault) in [
            ("", r#"<schema key="gone"/>"#, plain, "<a/>", "Schema gone cannot be found"),
            ("", r#"<schema key="bad"/>"#, plain, "<a/>", "Error creating a validator for the schema bad"),
            ("", r#"<schema key="js"/>"#, json, "{", "601000"),
            ("", r#"<schema key="xsd"/>"#, json, "{}", "an XML Schema cannot check"),
            ("", r#"<schema key="js"/>"#, plain, "<a/>", "a JSON Schema cannot check"),
            (r#"source="//a""#, r#"<schema key="js"/>"#, json, "{}", "Invalid source expression"),
        ] {
            let end = flow(attributes, schemas).run(&headers, body);
            let found = end.fault().unwrap_or_default();
            assert!(found.contains(fault), "{schemas} {body}: {found}");
            assert_eq!(end.property("failed"), None, "{schemas}: on-fail is not for that");
        }
        assert!(flow("", r#"<schema key="bad"/>"#).reports("did you mean `string`"));
    }

    #[test]
    fn dynamic_keys_and_wrong_configurations() {
        let flow = flow("", r#"<schema key="{$trp:which}"/>"#);
        let headers = [("Content-Type", "application/json"), ("which", "js")];
        assert_eq!(flow.run(&headers, r#"{"n":1}"#).property("failed"), None);
        assert_eq!(flow.run(&headers, "{}").property("failed").as_deref(), Some("yes"));
        for (mediator, report) in [
            (r#"<validate><on-fail><drop/></on-fail></validate>"#, "needs a schema"),
            (r#"<validate><schema key="a"/></validate>"#, "needs `on-fail`"),
            (r#"<validate><schema key="a"/><on-fail/></validate>"#, "needs `on-fail`"),
        ] {
            let flow = testing::main(&registry(testing::endpoints), mediator);
            assert!(flow.reports(report), "{flow:?}");
        }
    }
}
