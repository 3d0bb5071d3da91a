//! `jsontransform`: writes the payload as JSON with switches of its own, and gives its values the types of a schema.

use crate::entry_cache::{EntryCache, warn_missing};
use crate::resources::Resources;
use crate::validate::Entries;
use config::Element;
use diagnostics::Diagnostic;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Family, Fault, Flow, Inside, KeyValue,
    Mediator, Need, Page, Values,
};
use message::json::{Mapping, SWITCHES, Switch, is_json_number};
use message::regex::Search;
use schema::{Draft, JsonSchema, Resolver, Source, Violation};
use serde_json::Value as Json;
use std::sync::Arc;

/// `<jsontransform [schema="KEY"]><property name="synapse.commons.json.…" value="…"/>*</jsontransform>`
pub const DEFINITION: Definition = Definition {
    name: "jsontransform",
    summary: "Writes the payload as JSON with settings of its own, or converts its values to the types of a JSON Schema and validates it.",
    attributes: &[Attribute::optional(
        "schema",
        Values::Key,
        "the entry or registry resource with the schema",
    )],
    children: Children::Elements(&["property"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Transformation,
    semantics: "With a `schema` the values are converted to its types: texts of digits become numbers, `true` and `false` Booleans, numbers and Booleans texts, and a single value
becomes an array if the schema requires one. This applies to objects and arrays that the schema describes with `properties`, `patternProperties`,
`additionalProperties`, `items` and `additionalItems`; other values stay.
Then the result must be valid by the schema, as with `validate`. A value that cannot be converted or breaks
a rule is an error that names its place.

With `property` elements the first element of the body, which may be the XML view of JSON, is written as JSON anew, with these
switches instead of the global ones: `synapse.commons.json.output.autoPrimitive`, `….output.disableAutoPrimitive.regex`,
`….output.jsonoutAutoArray`, `….output.namespaceSepChar`, `….output.enableNSDeclarations`, `….preserve.namespace`, `….buildValidNCNames`,
`….output.jsonoutMultiplePI`, `….output.xmloutMultiplePI`, `synapse.json.to.xml.processing.instruction.enabled`,
`synapse.commons.json.json.output.disableAutoPrimitive.customReplaceRegex` and then `….customReplaceSequence`,
`synapse.commons.enableXmlNilReadWrite` and `synapse.commons.enableXmlNullForEmptyElement`. The schema, if there is one, is applied after that.

The content type stays: if the message was XML, set `messageType` to `application/json` (scope axis2) after it.",
    inside: &[Inside::new(
        "property*",
        "a switch of the JSON mapping",
        &[
            Attribute::required("name", Values::Text, "its name; an unknown one is a warning"),
            Attribute::required("value", Values::Text, "its value"),
        ],
    )],
    needs: &[(Need::Whole, "always")],
    refused: &[
        ("<jsontransform/>", "`jsontransform` does nothing"),
        (
            "<jsontransform><property name=\"synapse.commons.json.output.autoPrimitive\"/></jsontransform>",
            "`property` needs `name` and `value`",
        ),
        (
            "<jsontransform><property name=\"synapse.commons.json.output.disableAutoPrimitive.regex\" value=\"(\"/></jsontransform>",
            "`(` is not a regular expression",
        ),
    ],
    faults: &[
        (
            "0",
            "a value cannot have its type or breaks a rule, or there is no such schema or it is not a JSON object",
        ),
        ("601000", "the body is not what its content type says, or larger than a flow may hold"),
    ],
};

/// Deepest nesting that is walked, of values and of references in schemas.
const MAX_DEPTH: usize = 128;

struct JsonTransform {
    /// `None`: the payload is read as it is anywhere.
    mapping: Option<Mapping>,
    types: Types,
}

enum Types {
    None,
    Fixed(Arc<str>, Arc<Schema>),
    Keyed { key: KeyValue, schemas: EntryCache<Arc<str>, Arc<[u8]>, Schema> },
}

/// A schema and its key.
type KeyedSchema = (Arc<str>, Arc<Schema>);

/// A schema: the types to give, and the rules that hold for what has them.
struct Schema {
    types: Json,
    /// `None`: it is no schema of a draft that is known; only types, `required` and `enum` count.
    rules: Option<JsonSchema>,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let mut mapping = None;
    for property in element.children_named("property") {
        let (Some(name), Some(value)) = (property.attribute("name"), property.attribute("value")) else {
            let place = property.start_tag();
            compiler.error(
                "missing-attribute",
                "`property` needs `name` and `value`",
                place,
                "a switch of the JSON mapping",
            );
            return None;
        };
        let switches: &mut Mapping = mapping.get_or_insert_with(|| (*compiler.services.limits.json).clone());
        let text = value.value.trim();
        match switch(name.value.trim()) {
            // As Java reads a boolean.
            Some(Switch::Flag(field)) => *field(switches) = text.eq_ignore_ascii_case("true"),
            Some(Switch::Text(set)) => {
                if let Err(why) = set(switches, text) {
                    let message = format!("`{text}` {why}");
                    compiler.error("bad-value", message, value.value_span, "not a value of this switch");
                    return None;
                }
            }
            None => {
                let message = format!("`{}` is not a switch of the JSON mapping", name.value);
                let found = Diagnostic::warning("unknown-property", message)
                    .at(name.value_span, "this has no effect")
                    .did_you_mean(name.value.trim(), SWITCHES.iter().map(|(name, _)| *name));
                compiler.diagnostics.push(found);
            }
        }
    }
    let types = match element.attribute("schema") {
        None if mapping.is_none() => {
            let place = element.start_tag();
            compiler.error(
                "missing-attribute",
                "`jsontransform` does nothing",
                place,
                "expected `schema` or a `property`",
            );
            return None;
        }
        None => Types::None,
        Some(attribute) => {
            let key = compiler.key_value(element, "schema")?;
            let name = key.literal().map(Arc::<str>::from);
            match name.as_deref().and_then(|name| compiler.entry(name)) {
                Some(entry) => match load(name.as_deref().unwrap_or_default(), &entry.bytes, compiler) {
                    Ok((schema, wrong)) => {
                        if let Some(wrong) = wrong {
                            compiler.warning(
                                "bad-schema",
                                format!("the rules of the schema are not checked: {wrong}"),
                                attribute.value_span,
                                "types, `required` and `enum` are",
                            );
                        }
                        Types::Fixed(name.unwrap_or_default(), Arc::new(schema))
                    }
                    Err(why) => {
                        let label = "expected a JSON Schema: messages that come here fault";
                        compiler.warning("bad-schema", why, attribute.value_span, label);
                        Types::Keyed { key, schemas: EntryCache::default() }
                    }
                },
                None => {
                    if let Some(name) = name {
                        warn_missing("schema", &name, attribute.value_span, compiler);
                    }
                    Types::Keyed { key, schemas: EntryCache::default() }
                }
            }
        }
    };
    Some(Box::new(JsonTransform { mapping, types }))
}

/// A schema that is there when the configuration loads.
fn load(name: &str, bytes: &[u8], compiler: &Compiler<'_>) -> Result<(Schema, Option<Violation>), String> {
    let find = |key: &str| compiler.entry(key).map(|entry| entry.bytes);
    Schema::load(name, bytes, &Entries { resources: &Resources::default(), entry: &find })
}

/// What all names of switches may begin with.
const PREFIX: &str = "synapse.commons.";

/// The switch of this name, also without the prefix.
fn switch(name: &str) -> Option<&'static Switch> {
    let short = |name: &'static str| name.strip_prefix(PREFIX).unwrap_or(name);
    let name = name.strip_prefix(PREFIX).unwrap_or(name);
    SWITCHES.iter().find(|(whole, _)| short(whole) == name).map(|(_, switch)| switch)
}

impl Schema {
    /// With what is wrong with its rules.
    fn load(name: &str, bytes: &[u8], others: &dyn Resolver) -> Result<(Schema, Option<Violation>), String> {
        let types: Json = serde_json::from_slice(bytes)
            .map_err(|error| format!("the schema `{name}` is not JSON: {error}"))?;
        if !types.is_object() {
            return Err(format!("the schema `{name}` is not a JSON object"));
        }
        let source = Source { name: name.to_owned(), bytes: bytes.to_vec() };
        Ok(match JsonSchema::load(source, Draft::Draft4, others) {
            Ok(rules) => (Schema { types, rules: Some(rules) }, None),
            Err(wrong) => (Schema { types, rules: None }, wrong.into_iter().next()),
        })
    }

    /// The value with the types of the schema, which keeps its rules.
    fn apply(&self, value: Json) -> Result<Json, String> {
        let typed = self.typed(value, &self.types, "", 0)?;
        let valid = self.rules.as_ref().is_none_or(|rules| rules.is_valid(&typed));
        let broken = self.rules.as_ref().filter(|_| !valid).map(|rules| rules.validate(&typed));
        match broken.and_then(|broken| broken.into_iter().next()) {
            Some(first) => Err(format!("{}: {}", name(&first.place), first.message)),
            None => Ok(typed),
        }
    }

    /// Behind references inside of the schema.
    fn target<'s>(&'s self, mut schema: &'s Json) -> &'s Json {
        for _ in 0..MAX_DEPTH {
            let pointer =
                schema.get("$ref").and_then(Json::as_str).and_then(|reference| reference.strip_prefix('#'));
            match pointer.and_then(|pointer| self.types.pointer(pointer)) {
                Some(target) => schema = target,
                None => break,
            }
        }
        schema
    }

    fn typed(&self, value: Json, schema: &Json, place: &str, depth: usize) -> Result<Json, String> {
        let schema = self.target(schema);
        let typed = self.converted(value, schema, place, depth)?;
        match schema.get("enum") {
            Some(Json::Array(values)) if !values.contains(&typed) => {
                Err(format!("{} is none of the values in the schema's enum: {}", name(place), short(&typed)))
            }
            _ => Ok(typed),
        }
    }

    fn converted(&self, value: Json, schema: &Json, place: &str, depth: usize) -> Result<Json, String> {
        if depth > MAX_DEPTH {
            return Err(format!("{place} nests deeper than {MAX_DEPTH}"));
        }
        let kind = match schema.get("type") {
            Some(Json::String(kind)) => kind.as_str(),
            // One of several: the value's own where it is one of them, else the first that it can be.
            Some(Json::Array(kinds)) => {
                let kinds: Vec<&str> = kinds.iter().filter_map(Json::as_str).collect();
                match kinds.iter().copied().find(|kind| is(&value, kind)) {
                    Some(kind) => kind,
                    None => {
                        let fits = |kind: &&str| scalar(value.clone(), kind, place).is_ok();
                        kinds.iter().copied().find(fits).unwrap_or(kinds.first().copied().unwrap_or(""))
                    }
                }
            }
            _ if schema.get("properties").is_some() && value.is_object() => "object",
            _ => return Ok(value),
        };
        match kind {
            "object" => {
                let Json::Object(members) = value else {
                    return Err(format!("{} is not a JSON object: {}", name(place), short(&value)));
                };
                let required = schema
                    .get("required")
                    .and_then(Json::as_array)
                    .into_iter()
                    .flatten()
                    .filter_map(Json::as_str);
                if let Some(missing) = required.into_iter().find(|wanted| !members.contains_key(*wanted)) {
                    return Err(format!("{} has no `{missing}`, which is required", name(place)));
                }
                let declared = schema.get("properties").and_then(Json::as_object);
                let by_pattern = patterns(schema);
                let others = schema.get("additionalProperties").filter(|others| others.is_object());
                let mut typed = serde_json::Map::new();
                for (key, mut member) in members {
                    let place = format!("{place}/{key}");
                    let by_name = declared.and_then(|declared| declared.get(&key)).into_iter();
                    let alike = by_pattern.iter().filter(|(pattern, _)| pattern.is_match(&key) == Ok(true));
                    let mut rules: Vec<&Json> = by_name.chain(alike.map(|(_, schema)| *schema)).collect();
                    if rules.is_empty() {
                        rules.extend(others);
                    }
                    for schema in rules {
                        member = self.typed(member, schema, &place, depth + 1)?;
                    }
                    typed.insert(key, member);
                }
                Ok(Json::Object(typed))
            }
            "array" => {
                let items = match value {
                    Json::Array(items) => items,
                    one => vec![one],
                };
                let mut typed = Vec::with_capacity(items.len());
                for (index, item) in items.into_iter().enumerate() {
                    let place = format!("{place}/{index}");
                    let schema = match schema.get("items") {
                        Some(Json::Array(each)) => {
                            let others = || schema.get("additionalItems").filter(|others| others.is_object());
                            each.get(index).or_else(others)
                        }
                        other => other,
                    };
                    typed.push(match schema {
                        Some(schema) => self.typed(item, schema, &place, depth + 1)?,
                        None => item,
                    });
                }
                Ok(Json::Array(typed))
            }
            kind => scalar(value, kind, place),
        }
    }
}

/// `patternProperties`; what is not a regular expression is found when the rules are loaded.
fn patterns(schema: &Json) -> Vec<(Search, &Json)> {
    let by_pattern = schema.get("patternProperties").and_then(Json::as_object).into_iter().flatten();
    by_pattern.filter_map(|(pattern, schema)| Some((Search::compile(pattern).ok()?, schema))).collect()
}

fn is(value: &Json, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

/// A value as one of a type without parts.
fn scalar(value: Json, kind: &str, place: &str) -> Result<Json, String> {
    if is(&value, kind) {
        return Ok(value);
    }
    let text = match &value {
        Json::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    let composed = value.is_object() || value.is_array();
    match kind {
        "string" if !composed && !value.is_null() => Ok(Json::String(text)),
        "boolean" if value.is_string() && text.eq_ignore_ascii_case("true") => Ok(Json::Bool(true)),
        "boolean" if value.is_string() && text.eq_ignore_ascii_case("false") => Ok(Json::Bool(false)),
        "integer" if is_json_number(&text) && !text.contains(['.', 'e', 'E']) => parsed(&text, kind, place),
        "number" if is_json_number(&text) => parsed(&text, kind, place),
        "null" if matches!(text.as_str(), "" | "null") => Ok(Json::Null),
        "string" | "boolean" | "integer" | "number" | "null" => {
            Err(format!("{} cannot be converted to {kind}: {}", name(place), short(&value)))
        }
        _ => Ok(value),
    }
}

/// A number with its digits as written.
fn parsed(text: &str, kind: &str, place: &str) -> Result<Json, String> {
    serde_json::from_str(text).map_err(|_| format!("{} cannot be converted to {kind}: {text}", name(place)))
}

fn name(place: &str) -> &str {
    if place.is_empty() { "the payload" } else { place }
}

/// The beginning of a value, for messages.
fn short(value: &Json) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl Mediator for JsonTransform {
    fn need(&self) -> Need {
        Need::Whole
    }

    fn reason(&self) -> String {
        "rewrites the payload".into()
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        // The type of the message stays: under an XML type the result is written as XML.
        if !context.payload.is_json()
            && let Some(message_type) = context.axis2("messageType")
        {
            context.set_axis2("messageType", message_type);
        }
        let mut value: Option<Json> = None;
        if let Some(mapping) = &self.mapping {
            let envelope = context.envelope()?;
            let Some(payload) = envelope.payload() else { return Ok(Flow::Next) };
            let text = mapping.from_xml(&envelope.document, payload);
            match self.types {
                Types::None => {
                    context.payload.set_json(&text)?;
                    return Ok(Flow::Next);
                }
                _ => {
                    let parsed = serde_json::from_str(&text);
                    value = Some(
                        parsed
                            .map_err(|error| Fault::new(format!("The payload has no JSON form: {error}")))?,
                    );
                }
            }
        }
        let schema = self.schema(context)?;
        let Some((key, schema)) = schema else { return Ok(Flow::Next) };
        let limits = context.services().limits.clone();
        let value = match value {
            Some(value) => value,
            None => context.payload.as_json(&limits)?,
        };
        let typed = schema.apply(value).map_err(|why| {
            Fault::new(format!("The payload does not have the types of the schema {key}: {why}")).because(why)
        })?;
        context.payload.set_json_value(typed);
        Ok(Flow::Next)
    }
}

impl JsonTransform {
    /// The schema for this message, with its key.
    fn schema(&self, context: &mut Context) -> Result<Option<KeyedSchema>, Fault> {
        let (key, schemas) = match &self.types {
            Types::None => return Ok(None),
            Types::Fixed(key, schema) => return Ok(Some((Arc::clone(key), Arc::clone(schema)))),
            Types::Keyed { key, schemas } => (key.resolve(context)?.unwrap_or_default(), schemas),
        };
        let plan = context.plan();
        let entry = plan
            .entry(key.trim())
            .ok_or_else(|| Fault::new(format!("Schema does not exist in the specified location : {key}")))?;
        let find = |key: &str| plan.entry(key).map(|entry| entry.bytes);
        let others = Entries { resources: &Resources::default(), entry: &find };
        let load = |bytes: &Arc<[u8]>| -> Result<Schema, Fault> {
            let (schema, wrong) = Schema::load(&key, bytes, &others).map_err(Fault::new)?;
            if let Some(wrong) = wrong {
                tracing::warn!("the rules of the schema {key} are not checked: {wrong}");
            }
            Ok(schema)
        };
        let schema = schemas.get_or_make(&key, entry.bytes, load)?;
        Ok(Some((key, schema)))
    }
}

#[cfg(test)]
mod tests {
    use flow::testing::{self, Tested};

    const XML: &[(&str, &str)] = &[("Content-Type", "application/xml")];
    const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];

    fn flow(text: &str) -> Tested {
        testing::main(&crate::registry(testing::endpoints), text)
    }

    fn with_schema(schema: &str) -> Tested {
        flow(&format!(
            "<jsontransform schema='s'/><!--top--><localEntry key='s'><![CDATA[{schema}]]></localEntry>"
        ))
    }

    #[test]
    fn switches_decide_how_xml_becomes_json() {
        let body = "<r><a>1</a><b>true</b><c>1x</c><d/></r>";
        for (name, value, expected) in [
            ("output.autoPrimitive", "false", r#"{"r":{"a":"1","b":"true","c":"1x","d":null}}"#),
            ("output.autoPrimitive", "true", r#"{"r":{"a":1,"b":true,"c":"1x","d":null}}"#),
            (
                "output.disableAutoPrimitive.regex",
                "^[0-9]+$",
                r#"{"r":{"a":"1","b":true,"c":"1x","d":null}}"#,
            ),
        ] {
            let text = format!(
                "<jsontransform><property name='synapse.commons.json.{name}' value='{value}'/></jsontransform>"
            );
            let flow = flow(&text);
            assert!(flow.found.is_empty(), "{:?}", flow.found);
            let mut end = flow.run(XML, body);
            assert_eq!(end.payload(), expected, "{name}");
        }
        let marked = "<jsontransform>\
            <property name='json.json.output.disableAutoPrimitive.customReplaceRegex' value='^s:'/>\
            <property name='json.json.output.disableAutoPrimitive.customReplaceSequence' value='n'/></jsontransform>";
        let mut end = flow(marked).run(XML, "<r><a>s:1</a><b>1</b></r>");
        assert_eq!(end.payload(), r#"{"r":{"a":"n1","b":1}}"#);
        let long = "<jsontransform><property name='synapse.commons.json.output.namespaceSepChar' value='__'/></jsontransform>";
        assert!(flow(long).found.iter().any(|found| found.contains("`__` is not one character")));
        let text = "<jsontransform><property name='synapse.commons.json.output.autoPrimitive' value='false'/></jsontransform>";
        assert_eq!(
            flow(text).run(JSON, r#"{"a":1,"l":[true,"x"]}"#).payload(),
            r#"{"a":"1","l":["true","x"]}"#
        );
    }

    #[test]
    fn a_schema_gives_values_their_types() {
        for (schema, body, expected) in [
            (
                r#"{"type":"object","properties":{"a":{"type":"string"}}}"#,
                r#"{"a":7,"b":7}"#,
                r#"{"a":"7","b":7}"#,
            ),
            (r#"{"type":"object","properties":{"a":{"type":"string"}}}"#, r#"{"a":1.50}"#, r#"{"a":"1.50"}"#),
            (r#"{"type":"object","properties":{"a":{"type":"integer"}}}"#, r#"{"a":" 5 "}"#, r#"{"a":5}"#),
            (
                r#"{"type":"object","properties":{"a":{"type":"number"}}}"#,
                r#"{"a":"-2.50"}"#,
                r#"{"a":-2.50}"#,
            ),
            (
                r#"{"type":"object","properties":{"a":{"type":"boolean"}}}"#,
                r#"{"a":"false"}"#,
                r#"{"a":false}"#,
            ),
            (r#"{"type":"object","properties":{"a":{"type":"null"}}}"#, r#"{"a":""}"#, r#"{"a":null}"#),
            (
                r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}}}"#,
                r#"{"a":"1"}"#,
                r#"{"a":[1]}"#,
            ),
            (
                r#"{"type":"array","items":[{"type":"string"},{"type":"integer"}]}"#,
                r#"[1,"2",3]"#,
                r#"["1",2,3]"#,
            ),
            (
                r##"{"definitions":{"n":{"type":"integer"}},"type":"object","properties":{"a":{"$ref":"#/definitions/n"}}}"##,
                r#"{"a":"1"}"#,
                r#"{"a":1}"#,
            ),
            (
                r#"{"type":"object","properties":{"a":{"type":["integer","null"]}}}"#,
                r#"{"a":""}"#,
                r#"{"a":null}"#,
            ),
            (r#"{"type":"object","additionalProperties":{"type":"integer"}}"#, r#"{"z":"3"}"#, r#"{"z":3}"#),
            (
                r#"{"type":"object","properties":{"n":{}},"patternProperties":{"^n":{"type":"integer"},"x$":{"type":"string"}},"additionalProperties":{"type":"boolean"}}"#,
                r#"{"n":"1","n2":"2","ax":3,"other":"true"}"#,
                r#"{"n":1,"n2":2,"ax":"3","other":true}"#,
            ),
            (
                r#"{"type":"array","items":[{"type":"string"}],"additionalItems":{"type":"integer"}}"#,
                r#"[1,"2","3"]"#,
                r#"["1",2,3]"#,
            ),
        ] {
            let flow = with_schema(schema);
            assert!(flow.found.is_empty(), "{:?}", flow.found);
            let mut end = flow.run(JSON, body);
            assert_eq!(end.fault(), None, "{schema}");
            assert_eq!(end.payload(), expected, "{schema}");
        }
        let schema = r#"{"type":"object","properties":{"o":{"type":"object","properties":{"l":{"type":"array"},"id":{"type":"string"}}}}}"#;
        let mut end = with_schema(schema).run(XML, "<o><id>007</id><l><s>1</s></l></o>");
        assert_eq!(end.payload(), r#"{"o":{"id":"007","l":[{"s":1}]}}"#);
    }

    #[test]
    fn values_that_do_not_fit_are_faults() {
        let schema = r#"{"type":"object","required":["n"],"properties":{"n":{"type":"integer"},
            "o":{"type":"object"},"b":{"type":"boolean"},"s":{"type":"string","enum":["x"]}}}"#;
        for (body, part) in [
            (r#"{"n":5.5}"#, "cannot be converted to integer: 5.5"),
            (r#"{"n":"x"}"#, "cannot be converted to integer"),
            (r#"{"n":5,"b":1}"#, "cannot be converted to boolean"),
            (r#"{"n":5,"o":""}"#, "is not a JSON object"),
            (r#"{"n":5,"s":null}"#, "cannot be converted to string"),
            (r#"{"n":5,"s":"y"}"#, "enum"),
            ("{}", "required"),
            ("[1]", "the payload is not a JSON object"),
            ("", "the payload is not a JSON object"),
        ] {
            let fault = with_schema(schema).run(JSON, body).fault().unwrap_or_default();
            assert!(fault.contains(part), "{body}: {fault}");
        }
        let deep = format!("{}{}", "[".repeat(120), "]".repeat(120));
        let recursive = with_schema(r##"{"type":"array","items":{"$ref":"#"}}"##);
        assert_eq!(recursive.run(JSON, &deep).fault(), None);
        let malformed = with_schema("{}").run(JSON, "{").fault().unwrap_or_default();
        assert!(malformed.contains("JSON"), "{malformed}");
        assert!(with_schema(r##"{"$ref":"#"}"##).run(JSON, "1").fault().is_none());
    }

    #[test]
    fn all_rules_of_the_schema_hold_for_what_has_its_types() {
        for (member, good, bad) in [
            (r#"{"type":"integer","minimum":5}"#, r#""5""#, r#""4""#),
            (r#"{"type":"number","maximum":5,"exclusiveMaximum":true}"#, "4.9", "5"),
            (r#"{"type":"number","multipleOf":0.5}"#, "1.5", "1.4"),
            (r#"{"type":"string","pattern":"^a+$"}"#, r#""aa""#, r#""b""#),
            (r#"{"type":"string","minLength":2,"maxLength":3}"#, "12", "1234"),
            (r#"{"type":"string","format":"date"}"#, r#""2026-11-22""#, r#""today""#),
            (r#"{"type":"array","minItems":1,"items":{"type":"integer"}}"#, "1", "[]"),
            (r#"{"type":"array","uniqueItems":true,"items":{"type":"string"}}"#, "[1,2]", r#"[1,"1"]"#),
            (r#"{"type":"object","maxProperties":1}"#, r#"{"a":1}"#, r#"{"a":1,"b":2}"#),
            (
                r#"{"type":"object","additionalProperties":false,"properties":{"a":{}}}"#,
                r#"{"a":1}"#,
                r#"{"b":1}"#,
            ),
            (r#"{"not":{"type":"null"}}"#, "0", "null"),
        ] {
            let schema = format!(r#"{{"type":"object","properties":{{"m":{member}}}}}"#);
            let flow = with_schema(&schema);
            assert!(flow.found.is_empty(), "{:?}", flow.found);
            let run = |value: &str| flow.run(JSON, &format!(r#"{{"m":{value}}}"#)).fault();
            assert_eq!(run(good), None, "{member}");
            let fault = run(bad).unwrap_or_default();
            assert!(fault.contains("/m: "), "{member}: {fault}");
        }
        // What is no schema of a known draft still gives types.
        let flow = with_schema(r#"{"type":"object","properties":{"m":{"type":"string","required":true}}}"#);
        assert!(flow.reports("the rules of the schema are not checked"), "{:?}", flow.found);
        assert_eq!(flow.run(JSON, r#"{"m":1}"#).payload(), r#"{"m":"1"}"#);
    }

    #[test]
    fn what_cannot_be_done_is_said_when_it_loads() {
        for (text, says) in [
            ("<jsontransform/>", "does nothing"),
            ("<jsontransform><property name='x'/></jsontransform>", "needs `name` and `value`"),
            ("<jsontransform><property name='x' value='y'/></jsontransform>", "is not a switch"),
            ("<jsontransform schema='none'/>", "there is no schema `none`"),
            ("<jsontransform schema='s'/><!--top--><localEntry key='s'>nothing</localEntry>", "is not JSON"),
            (
                "<jsontransform schema='s'/><!--top--><localEntry key='s'><![CDATA[[3]]]></localEntry>",
                "is not a JSON object",
            ),
            (
                "<jsontransform><property name='synapse.commons.json.output.disableAutoPrimitive.regex' value='('/></jsontransform>",
                "not a regular expression",
            ),
        ] {
            assert!(flow(text).reports(says), "{text}: {:?}", flow(text).found);
        }
        let missing = flow("<jsontransform schema='none'/>").run(JSON, "{}").fault().unwrap_or_default();
        assert!(missing.contains("Schema does not exist"), "{missing}");
    }
}
