//! `datamapper`: makes the payload another one by a mapping: a function in JavaScript, with a schema of what comes in and
//! one of what goes out; or a stylesheet.
//!
//! The mapping is the generated text of WSO2's editor: `map_S_IN_S_OUT = function () { … }`, which reads `inputIN` and
//! returns what goes out. It runs on the room `script`, with its limits. How XML and CSV become what it reads, and come
//! of what it returns, is in `data_mapper/model.rs`. Where a project has only the TypeScript that the editor of today makes the
//! mapping of, `data_mapper/typescript.rs` does so.

mod model;
mod typescript;

use crate::entry_cache::{EntryCache, warn_missing};
use crate::script::{self, Target};
use crate::stylesheet::Style;
use ::script::{Argument, Limits, Script};
use config::Element;
use flow::library::Scope;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Family, Fault, Flow, KeyValue, Mediator,
    Need, Page, Values,
};
use message::{Envelope, Kind, Reading, SoapVersion, Value, XmlValue};
use model::Schema;
use serde_json::Value as Json;
use std::sync::Arc;
use typescript::BuiltMapping;
use xml::Document;

/// `<datamapper config="KEY" inputSchema="KEY" outputSchema="KEY" [inputType] [outputType] [xsltStyleSheet] [target]/>`
pub const DEFINITION: Definition = Definition {
    name: "datamapper",
    summary: "Makes the payload another one by a mapping in JavaScript, or by its stylesheet.",
    attributes: &[
        Attribute::required("config", Values::Key, "the entry or registry resource with the mapping"),
        Attribute::required("inputSchema", Values::Key, "the entry with the schema of what comes in"),
        Attribute::required("outputSchema", Values::Key, "the entry with the schema of what goes out"),
        Attribute::optional("inputType", Values::Text, "XML, JSON or CSV; by default what the schema says"),
        Attribute::optional("outputType", Values::Text, "XML, JSON or CSV; by default what the schema says"),
        Attribute::optional("xsltStyleSheet", Values::Key, "is used instead where XML becomes XML"),
        Attribute::optional("target", Values::OneOf(&["body", "variable"]), "where the result goes")
            .or("body"),
        Attribute::optional("target-variable", Values::Text, "the variable that gets it"),
    ],
    children: Children::None,
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Transformation,
    semantics: "The mapping is what WSO2's editor generates: JavaScript with a function `map_S_IN_S_OUT`, named by the titles of the two schemas, which reads
`inputIN` and returns the result. If it is missing, it is generated from the TypeScript of the same name (`NAME.ts` for `NAME.dmc`), and so are
missing schemas. [Data mappings](../scripts.md#data-mappings) describes attributes, texts, arrays, rows of CSV and
properties in it. The schemas have the names, the order of columns and the types. A text that is no number is an error if the input schema requires
a number; values of the result are converted to the types of the output schema, if possible. The schemas do not validate the message; use [validate](validate.md) for that.

JSON input is the JSON form of any body. XML and CSV are read from its first element, or XML from the whole envelope if the title of the input schema is `Envelope`. The result replaces the
body and its content type: `application/json`, `application/xml`, for CSV `text/xml`. If the result is a SOAP envelope,
it becomes the whole message. With `target=\"variable\"` it becomes a variable, and the message stays.

`xsltStyleSheet` runs instead of the mapping if input and result are XML in the body, unless the editor has marked it as `notXSLTCompatible`.
`xsl:evaluate` (3.0) is off in it: only [xslt](xslt.md) can allow it.

A mapping is compiled when the configuration loads; with dynamic keys when it is first used, and again when its entries have
changed. A long mapping runs on a compute thread; time, memory and stack are limited as for [scripts](../settings.md#limits).",
    inside: &[],
    needs: &[(Need::Whole, "always")],
    refused: &[
        ("<datamapper config=\"c\" inputSchema=\"i\"/>", "`datamapper` needs the attribute `outputSchema`"),
        ("<datamapper config=\"c\" inputSchema=\"i\" outputSchema=\"o\"/>", "there is no entry `c`"),
        (
            "<datamapper config=\"c\" inputSchema=\"i\" outputSchema=\"o\" inputType=\"YAML\"/>",
            "`YAML` is not a type of the data mapper",
        ),
        (
            "<datamapper config=\"c\" inputSchema=\"i\" outputSchema=\"o\" target=\"variable\"/>",
            "`target=\"variable\"` needs `target-variable`",
        ),
        (
            "<datamapper config=\"c\" inputSchema=\"i\" outputSchema=\"o\" xsltStyleSheet=\"none\"/>",
            "there is no stylesheet `none`",
        ),
    ],
    faults: &[
        (
            "0",
            "\"DataMapper mediator : mapping failed\": the body is empty or has not the types of the input schema, an entry is missing, \
             the mapping throws, returns nothing or runs into a limit, or what it returns cannot be written as it should; ERROR_DETAIL \
             says what",
        ),
        (
            "601000",
            "the body is not what its content type or Content-Encoding says, or larger than a flow may hold",
        ),
    ],
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kinds {
    Xml,
    Json,
    Csv,
}

/// Attributes of the keys.
const KEYS: [&str; 3] = ["config", "inputSchema", "outputSchema"];

struct DataMapper {
    keys: [KeyValue; 3],
    /// What the attributes say.
    input: Option<Kinds>,
    output: Option<Kinds>,
    /// Of literal keys that are there: compiled with the plan.
    fixed: Option<Arc<Mapping>>,
    mappings: EntryCache<[Arc<str>; 3], Texts, Mapping>,
    stylesheet: Option<Style>,
    target: Target,
    limits: Limits,
}

/// The texts that the three keys name.
#[derive(PartialEq)]
struct Texts {
    code: Code,
    input: Option<Arc<[u8]>>,
    output: Option<Arc<[u8]>>,
}

/// The text of the mapping.
#[derive(PartialEq)]
enum Code {
    JavaScript(Arc<[u8]>),
    /// The source that a build makes the JavaScript and both schemas of: schemas may be missing.
    TypeScript(Arc<[u8]>),
}

impl Texts {
    /// The texts that `find` has for the keys.
    ///
    /// # Errors
    /// Which of them are missing.
    fn find(keys: [&str; 3], mut find: impl FnMut(&str) -> Option<Arc<[u8]>>) -> Result<Texts, [bool; 3]> {
        let [config, input, output] = keys.map(|key| find(key.trim()));
        let code = match config {
            Some(text) => Some(Code::JavaScript(text)),
            None => typescript::source_of(keys[0]).and_then(|key| find(&key)).map(Code::TypeScript),
        };
        match code {
            Some(code @ Code::TypeScript(_)) => Ok(Texts { code, input, output }),
            Some(code) if input.is_some() && output.is_some() => Ok(Texts { code, input, output }),
            code => Err([code.is_none(), input.is_none(), output.is_none()]),
        }
    }
}

struct Mapping {
    script: Script,
    input: Schema,
    output: Schema,
    from: Kinds,
    to: Kinds,
    /// Scopes and names of the properties that it reads.
    properties: Vec<(String, String)>,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let [config, input, output] = KEYS.map(|name| compiler.key_value(element, name));
    let keys = [config?, input?, output?];
    let mut kind = |name: &str| match element.attribute(name) {
        None => Some(None),
        Some(attribute) => match Kinds::of(&attribute.value) {
            Some(kind) => Some(Some(kind)),
            None => {
                compiler.none_of(attribute, "a type of the data mapper", &["XML", "JSON", "CSV"]);
                None
            }
        },
    };
    let (input, output) = (kind("inputType")?, kind("outputType")?);
    let target = Target::compile(element, compiler)?;
    // The editor marks stylesheets that say less than the mapping, and leaves them empty where not XML becomes XML.
    let says_all = |compiler: &Compiler<'_>| {
        let entry = element.attr("xsltStyleSheet").and_then(|key| compiler.entry(key.trim()));
        entry.is_none_or(|entry| {
            let text = String::from_utf8_lossy(&entry.bytes);
            !text.trim().is_empty() && !text.to_ascii_lowercase().contains("notxsltcompatible")
        })
    };
    let is_xml = |kind: Option<Kinds>| kind.is_none_or(|kind| kind == Kinds::Xml);
    let stylesheet = match element.attribute("xsltStyleSheet") {
        Some(_) if says_all(compiler) && is_xml(input) && is_xml(output) => {
            Some(Style::named(element, "xsltStyleSheet", compiler)?)
        }
        _ => None,
    };
    let fixed = match fixed(element, &keys, compiler) {
        None => None,
        Some(texts) => match Mapping::load(&texts, input, output) {
            Ok(mapping) => Some(Arc::new(mapping)),
            Err(why) => {
                let place = element.value_span(KEYS[0]);
                compiler.warning(
                    "bad-mapping",
                    why,
                    place,
                    "this mapping cannot run: messages that come here fault",
                );
                None
            }
        },
    };
    let (mappings, limits) = (EntryCache::default(), script::limits(compiler));
    Some(Box::new(DataMapper { keys, input, output, fixed, mappings, stylesheet, target, limits }))
}

/// The texts of literal keys that are all there.
fn fixed(element: &Element, keys: &[KeyValue; 3], compiler: &mut Compiler<'_>) -> Option<Texts> {
    let [Some(config), Some(input), Some(output)] = keys.each_ref().map(KeyValue::literal) else {
        return None;
    };
    let keys = [config, input, output];
    match Texts::find(keys, |key| compiler.entry(key).map(|entry| entry.bytes)) {
        Ok(texts) => Some(texts),
        Err(missing) => {
            for ((key, attribute), _) in keys.iter().zip(KEYS).zip(missing).filter(|(_, missing)| *missing) {
                warn_missing("entry", key.trim(), element.value_span(attribute), compiler);
            }
            None
        }
    }
}

impl Kinds {
    fn of(text: &str) -> Option<Kinds> {
        match text.trim().to_ascii_uppercase().as_str() {
            "XML" => Some(Kinds::Xml),
            "JSON" => Some(Kinds::Json),
            "CSV" => Some(Kinds::Csv),
            _ => None,
        }
    }
}

impl Mapping {
    fn load(texts: &Texts, from: Option<Kinds>, to: Option<Kinds>) -> Result<Mapping, String> {
        let (config, made) = match &texts.code {
            Code::JavaScript(text) => (String::from_utf8_lossy(text), None),
            Code::TypeScript(text) => {
                let BuiltMapping { code, input, output } = typescript::made(&String::from_utf8_lossy(text))?;
                (code.into(), Some((input, output)))
            }
        };
        // An empty schema beside TypeScript is one that is not built yet.
        let text = |given: &Option<Arc<[u8]>>, made: Option<String>| -> Arc<[u8]> {
            let given = given.clone().filter(|text| made.is_none() || !text.is_empty());
            given.or(made.map(|made| made.into_bytes().into())).unwrap_or_default()
        };
        let (made_input, made_output) = made.unzip();
        let input = Schema::read(&text(&texts.input, made_input), "input")?;
        let output = Schema::read(&text(&texts.output, made_output), "output")?;
        let kind = |given: Option<Kinds>, schema: &Schema, member: &str| {
            let by_schema = || schema.member(member).and_then(Kinds::of);
            given
                .or_else(by_schema)
                .ok_or_else(|| format!("neither an attribute nor the schema says the {member}"))
        };
        let (from, to) = (kind(from, &input, "inputType")?, kind(to, &output, "outputType")?);
        let function = function_of(&config, &input, &output).ok_or(
            "the mapping has no function `map_S_…_S_…`: it is the text that the editor of WSO2 generates",
        )?;
        // The mapping's own variables, so that they end with the run.
        let variable = format!("input{}", model::identifier(input.title()));
        let before = format!("var {variable},DM_PROPERTIES,{function};");
        let after = format!(
            "function busbar__map(mc,input,properties){{{variable}=input;DM_PROPERTIES=properties;return {function}(input);}}"
        );
        let script = Script::compile(&[before.as_str(), &config, after.as_str()], Some("busbar__map"))
            .map_err(|failure| {
                let place = failure.place.filter(|place| place.source == 1);
                let place = place.map(|at| format!(" (line {}, column {})", at.line, at.column));
                format!("{}{}", failure.message, place.unwrap_or_default())
            })?;
        let properties = properties_of(&config);
        Ok(Mapping { script, input, output, from, to, properties })
    }

    /// What the mapping makes of the payload.
    fn run(&self, context: &mut Context, limits: &Limits) -> Result<Json, Fault> {
        let input = self.read(context)?;
        let mut properties = serde_json::Map::new();
        for (scope, name) in &self.properties {
            let value =
                scope_of(scope).and_then(|scope| scope.get(context, name)).map(|value| value.to_string());
            let members =
                properties.entry(scope.as_str()).or_insert_with(|| Json::Object(Default::default()));
            if let Json::Object(members) = members {
                members.insert(name.clone(), Json::from(value.unwrap_or_default()));
            }
        }
        let arguments =
            [Argument::Json(input.to_string()), Argument::Json(Json::Object(properties).to_string())];
        let returned = script::run(&self.script, context, &arguments, limits)?;
        let returned = returned.map_err(|failure| {
            let place = failure.place.filter(|place| place.source == 1);
            let place = place.map(|at| format!(" (line {}, column {} of the mapping)", at.line, at.column));
            wrong(format!("{}{}", failure.message, place.unwrap_or_default()))
        })?;
        match returned.value {
            Some(Value::Json(json)) => Ok((*json).clone()),
            Some(Value::String(text)) => Ok(Json::from(&*text)),
            Some(other) => serde_json::from_str(&other.to_string()).map_err(|error| wrong(error.to_string())),
            None => Err(wrong("the mapping returned nothing".to_owned())),
        }
    }

    fn read(&self, context: &mut Context) -> Result<Json, Fault> {
        let limits = context.services().limits.clone();
        match self.from {
            Kinds::Json if context.payload.is_empty() => Err(wrong("there is no JSON payload".to_owned())),
            Kinds::Json => Ok(context.payload.as_json(&limits)?),
            Kinds::Xml => {
                let envelope = context.envelope()?;
                let whole = model::local(self.input.title()) == "Envelope";
                let node = if whole { Some(envelope.root) } else { envelope.payload() };
                let node = node.ok_or_else(|| wrong("the body is empty".to_owned()))?;
                self.input.of_xml(&envelope.document, node).map_err(wrong)
            }
            Kinds::Csv => {
                let envelope = context.envelope()?;
                let node = envelope.payload().ok_or_else(|| wrong("the body is empty".to_owned()))?;
                let text = envelope.document.string_value(node).into_owned();
                self.input.of_csv(&text).map_err(wrong)
            }
        }
    }

    /// The result in the form that the output has.
    fn written(&self, made: Json) -> Result<Value, Fault> {
        Ok(match self.to {
            Kinds::Json => Value::Json(Arc::new(self.output.json(made))),
            Kinds::Xml => {
                let mut document = Document::new();
                let root = self.output.xml(&made, &mut document).map_err(wrong)?;
                Value::Xml(Arc::new(XmlValue { document: Arc::new(document), nodes: vec![root] }))
            }
            Kinds::Csv => Value::from(model::csv(&made).map_err(wrong)?),
        })
    }
}

/// The function that maps: the one of the two roots, else the first that is one.
fn function_of(config: &str, input: &Schema, output: &Schema) -> Option<String> {
    let name_of = |schema: &Schema| model::identifier(model::local(schema.title()));
    let wanted = format!("map_S_{}_S_{}", name_of(input), name_of(output));
    let mut first = None;
    for (at, _) in config.match_indices("map_S_") {
        let end = config[at..].find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '$'));
        let name = &config[at..end.map_or(config.len(), |end| at + end)];
        if name == wanted {
            return Some(wanted);
        }
        first.get_or_insert(name);
    }
    first.map(str::to_owned)
}

/// `DM_PROPERTIES.SCOPE['name']`, `DM_PROPERTIES['SCOPE']['name']`, `DM_PROPERTIES.SCOPE.name`, `getPropertyValue("scope", "name")`.
fn properties_of(config: &str) -> Vec<(String, String)> {
    let step = |rest: &str| -> Option<(String, usize)> {
        let bytes = rest.as_bytes();
        match bytes.first()? {
            b'.' => {
                let end =
                    rest[1..].find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len() - 1);
                (end > 0).then(|| (rest[1..1 + end].to_owned(), 1 + end))
            }
            b'[' => {
                let quote = *bytes.get(1).filter(|byte| matches!(byte, b'\'' | b'"'))? as char;
                let end = rest[2..].find(quote)?;
                rest[2 + end + 1..].starts_with(']').then(|| (rest[2..2 + end].to_owned(), end + 4))
            }
            _ => None,
        }
    };
    // The string in front of `mark`, and what is behind it.
    fn argument(rest: &str, mark: char) -> Option<(&str, &str)> {
        let rest = rest.trim_start();
        let (quoted, rest) =
            rest.get(1..)?.split_once(rest.chars().next().filter(|c| matches!(c, '"' | '\''))?)?;
        Some((quoted.trim(), rest.trim_start().strip_prefix(mark)?))
    }
    let mut found = Vec::new();
    for (at, matched) in config.match_indices("getPropertyValue") {
        let rest = config[at + matched.len()..].trim_start().strip_prefix('(');
        let Some((scope, rest)) = rest.and_then(|rest| argument(rest, ',')) else { continue };
        if let Some((name, _)) = argument(rest, ')') {
            found.push((scope.to_ascii_uppercase(), name.to_owned()));
        }
    }
    for (at, matched) in config.match_indices("DM_PROPERTIES") {
        let rest = &config[at + matched.len()..];
        let Some((scope, length)) = step(rest) else { continue };
        let Some((name, _)) = step(&rest[length..]) else { continue };
        if !found.contains(&(scope.clone(), name.clone())) {
            found.push((scope, name));
        }
    }
    found
}

fn scope_of(name: &str) -> Option<Scope> {
    Some(match name {
        "DEFAULT" | "SYNAPSE" => Scope::Default,
        "TRANSPORT" => Scope::Transport,
        "AXIS2" => Scope::Axis2,
        "AXIS2-CLIENT" | "AXIS2_CLIENT" => Scope::Axis2Client,
        "OPERATION" => Scope::Operation,
        "FUNCTION" | "FUNC" => Scope::of("func")?,
        _ => return None,
    })
}

fn wrong(why: String) -> Fault {
    Fault::new("DataMapper mediator : mapping failed").because(why)
}

impl Mediator for DataMapper {
    fn need(&self) -> Need {
        Need::Whole
    }

    fn reason(&self) -> String {
        "maps the whole payload".to_owned()
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let mapping = self.mapping(context)?;
        if let Some(style) = &self.stylesheet
            && (mapping.from, mapping.to) == (Kinds::Xml, Kinds::Xml)
            && !matches!(self.target, Target::Variable(_))
        {
            styled(style, context)
                .map_err(|fault| Fault { message: "DataMapper mediator : mapping failed".into(), ..fault })?;
            return Ok(Flow::Next);
        }
        let made = mapping.run(context, &self.limits)?;
        let value = mapping.written(made)?;
        match &self.target {
            Target::Variable(name) => context.variables.set(Arc::clone(name), value),
            Target::None | Target::Body => place(value, context)?,
        }
        Ok(Flow::Next)
    }
}

impl DataMapper {
    /// The mapping for this message.
    fn mapping(&self, context: &mut Context) -> Result<Arc<Mapping>, Fault> {
        if let Some(mapping) = &self.fixed {
            return Ok(Arc::clone(mapping));
        }
        let mut names: [Arc<str>; 3] = Default::default();
        for (key, name) in self.keys.iter().zip(&mut names) {
            *name = Arc::from(key.resolve(context)?.unwrap_or_default().trim());
        }
        let keys = names.each_ref().map(|name| &**name);
        let find = |key: &str| context.plan().entry(key).map(|entry| entry.bytes);
        let texts = Texts::find(keys, find).map_err(|missing| {
            let name = names.iter().zip(missing).find(|(_, missing)| *missing).map_or("", |(name, _)| name);
            wrong(format!("there is no entry or registry resource `{name}`"))
        })?;
        self.mappings
            .get_or_make(&names, texts, |texts| Mapping::load(texts, self.input, self.output).map_err(wrong))
    }
}

/// Puts what a stylesheet makes of the first element of the body in its place.
fn styled(style: &Style, context: &mut Context) -> Result<(), Fault> {
    let (key, sheet) = style.find(context)?;
    let envelope = context.envelope()?;
    let node = envelope.payload().ok_or_else(|| wrong("the body is empty".to_owned()))?;
    let mut input = Document::new();
    input.copy_from(Document::ROOT, &envelope.document, node);
    let result =
        style.run(&key, context, false, |options| sheet.transform(&input, Document::ROOT, &[], options));
    crate::xslt::place(&key, node, result?.document, context)
}

/// Makes the result the payload, with its type.
fn place(value: Value, context: &mut Context) -> Result<(), Fault> {
    let media = match value {
        Value::Json(json) => {
            context.payload.set_json_value((*json).clone());
            "application/json"
        }
        Value::Xml(xml) => {
            let result = XmlValue::copy_of(&xml.document, &xml.nodes);
            let envelope = match result.nodes.first() {
                Some(&root) if result.document.local(root) == "Envelope" => {
                    Envelope::of_document((*result.document).clone()).ok()
                }
                _ => None,
            };
            let envelope = envelope.unwrap_or_else(|| {
                let mut envelope = match context.payload.frame() {
                    Some(built) => crate::support::envelope_with_headers(built),
                    None => Envelope::empty(SoapVersion::V11),
                };
                for &node in &result.nodes {
                    envelope.document.copy_from(envelope.body, &result.document, node);
                }
                envelope
            });
            context.payload.set_envelope(envelope);
            "application/xml"
        }
        text => {
            let reading = Reading { kind: Kind::Text, ..Reading::XML };
            context.payload.set_made(text.to_string(), reading);
            "text/xml"
        }
    };
    context.set_axis2("messageType", Value::from(media));
    context.remove_axis2("NO_ENTITY_BODY");
    Ok(())
}

#[cfg(test)]
mod tests {
    use flow::testing::{self, Ended, Tested};

    const XML: &[(&str, &str)] = &[("Content-Type", "application/xml"), ("X-Who", "me")];
    const JSON: &[(&str, &str)] = &[("Content-Type", "application/json"), ("X-Who", "me")];
    const TEXT: &[(&str, &str)] = &[("Content-Type", "text/plain")];

    fn flow(attributes: &str, config: &str, input: &str, output: &str) -> Tested {
        let text = format!(
            "<property name='p' value='prop'/><datamapper config='c' inputSchema='i' outputSchema='o' {attributes}/><!--top-->\
             <localEntry key='c'><![CDATA[{config}]]></localEntry><localEntry key='i'><![CDATA[{input}]]></localEntry>\
             <localEntry key='o'><![CDATA[{output}]]></localEntry>\
             <localEntry key='s'><x:stylesheet xmlns='' version='1.0' xmlns:x='http://www.w3.org/1999/XSL/Transform'>\
             <x:template match='/'><styled/></x:template></x:stylesheet></localEntry>"
        );
        testing::main(&crate::registry(testing::endpoints), &text)
    }

    fn map(
        attributes: &str,
        config: &str,
        schemas: (&str, &str),
        headers: &[(&str, &str)],
        body: &str,
    ) -> Ended {
        let flow = flow(attributes, config, schemas.0, schemas.1);
        assert!(flow.found.is_empty(), "{:?}", flow.found);
        let end = flow.run(headers, body);
        assert_eq!(end.fault().map(|fault| (fault, end.property("ERROR_DETAIL"))), None);
        end
    }

    const EMPLOYEES: &str = r#"{"title":"employees","type":"object","inputType":"XML","namespaces":[{"prefix":"m","url":"urn:m"}],
        "properties":{"employee":{"type":"array","items":[{"type":"object","attributes":{"id":{"type":"integer"}},
        "properties":{"first":{"type":"string"},"last":{"type":"string"},"age":{"type":"number"},"m:boss":{"type":"boolean"}}}]},
        "tag":{"type":"array","items":[{"type":"string"}]}}}"#;
    const ENGINEERS: &str = r#"{"title":"engineers","type":"object","outputType":"JSON","properties":{"engineer":{"type":"array",
        "items":[{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"string"},"id":{"type":"number"}}}]}}}"#;
    const CONFIG: &str = "map_S_employees_S_engineers = function(){\nvar outputengineers={};\noutputengineers.engineer=[];\nvar count = 0;\n\
        for (i_employee in inputemployees.employee) {\nvar e = inputemployees.employee[i_employee];\n\
        outputengineers.engineer[count] = {};\noutputengineers.engineer[count].name = e.first.concat(' ', e.last, e.m_boss ? '!' : '');\n\
        outputengineers.engineer[count].age = e.age + 1;\noutputengineers.engineer[count].id = String(e.attr_id);\ncount++;\n}\nreturn outputengineers;\n};";

    #[test]
    fn xml_becomes_json_by_the_schemas() {
        let body = "<employees><employee id='7'><first>A</first><last>B</last><age>3.5</age><b:boss xmlns:b='urn:m'>true</b:boss></employee>\
            <employee id='8'><first>C</first><last>D</last><age>4</age></employee></employees>";
        let mut end = map("", CONFIG, (EMPLOYEES, ENGINEERS), XML, body);
        assert_eq!(
            end.payload(),
            r#"{"engineer":[{"name":"A B!","age":"4.5","id":7},{"name":"C D","age":"5","id":8}]}"#
        );
        assert_eq!(end.context.headers.get("Content-Type"), Some("application/json"));
        // One of several is a list all the same, and nothing of one message is left for the next.
        let flow = flow("", CONFIG, EMPLOYEES, ENGINEERS);
        let one =
            "<employees><employee id='1'><first>E</first><last>F</last><age>1</age></employee></employees>";
        for _ in 0..2 {
            assert_eq!(flow.run(XML, one).payload(), r#"{"engineer":[{"name":"E F","age":"2","id":1}]}"#);
        }
    }

    #[test]
    fn json_becomes_xml() {
        let input = r#"{"title":"root","type":"object","properties":{"name":{"type":"string"}}}"#;
        let output = r#"{"title":"m:order","type":"object","namespaces":[{"prefix":"m","url":"urn:m"}],
            "properties":{"m:line":{"type":"array","items":[{"type":"object","attributes":{"no":{"type":"string"}}}]},"note":{"type":"string"},"none":{"type":"null"}}}"#;
        let config = "map_S_root_S_order = function(){ return {attr_v: 1, m_line: [{attr_no: 'a', _ELEMVAL: inputroot.name}, {attr_no: 2}], note: '<&', none: null,\
            all: DM_PROPERTIES.DEFAULT['p'] + DM_PROPERTIES['TRANSPORT']['X-Who'] + DM_PROPERTIES.AXIS2['HTTP_METHOD'] + DM_PROPERTIES.DEFAULT['missing']}; };";
        let mut end =
            map("inputType='json' outputType='XML'", config, (input, output), JSON, r#"{"name":"N"}"#);
        assert_eq!(
            end.payload(),
            "<m:order xmlns:m=\"urn:m\" v=\"1\"><m:line no=\"a\">N</m:line><m:line no=\"2\"/><note>&lt;&amp;</note><all>propmePOST</all></m:order>"
        );
        assert_eq!(end.context.headers.get("Content-Type"), Some("application/xml"));
        let mut end = map(
            "inputType='JSON' outputType='XML' target='variable' target-variable='v'",
            config,
            (input, output),
            JSON,
            r#"{"name":"N"}"#,
        );
        assert_eq!(end.payload(), r#"{"name":"N"}"#);
        assert!(end.context.variables.get("v").is_some_and(|value| value.to_string().contains("line")));
    }

    const TYPESCRIPT: &str = "import * as dmUtils from './dm-utils';\ndeclare var DM_PROPERTIES: any;\n\
        /*\n * title : \"order\",\n * inputType : \"XML\",\n */\ninterface Order {\n    attr_no: number\n    ship_to: string\n    line: {\n        sku: string\n        n: number\n    }[]\n}\n\
        /* outputType : \"JSON\" */\ninterface Shipped { order_no: string; ship_to: string; parts: { sku: string, n: number }[]; by: string }\n\
        /**\n * functionName : map_S_order_S_Shipped\n * inputVariable : inputorder\n */\nexport function mapFunction(input: Order): Shipped {\n\
        return { order_no: dmUtils.numberToString(input.attr_no), ship_to: dmUtils.toUppercase(input.ship_to) as string,\n\
        parts: input.line.map((own): { sku: string, n: number } => { return { sku: own.sku, n: own.n! + 1 } }),\n\
        by: dmUtils.concat(dmUtils.getPropertyValue(\"default\", \"p\"), \"/\", DM_PROPERTIES.TRANSPORT['X-Who']) };\n}";

    #[test]
    fn a_mapping_may_be_there_as_typescript_only() {
        let text = |attributes: &str, entries: &str| {
            let text = format!(
                "<property name='p' value='prop'/><datamapper config='m/m.dmc' inputSchema='m/m_inputSchema.json' outputSchema='m/m_outputSchema.json' {attributes}/>\
                 <!--top--><localEntry key='m/m.ts'><![CDATA[{TYPESCRIPT}]]></localEntry>{entries}"
            );
            testing::main(&crate::registry(testing::endpoints), &text)
        };
        let order = "<order no='7'><ship_to>me</ship_to><line><sku>a</sku><n>1</n></line></order>";
        let flow = text("", "");
        assert!(flow.found.is_empty(), "{:?}", flow.found);
        assert_eq!(
            flow.run(XML, order).payload(),
            r#"{"order_no":"7","ship_to":"ME","parts":[{"sku":"a","n":2}],"by":"prop/me"}"#
        );
        assert_eq!(
            text("outputType='XML'", "").run(XML, order).payload(),
            "<Shipped><order_no>7</order_no><ship_to>ME</ship_to><parts><sku>a</sku><n>2</n></parts><by>prop/me</by></Shipped>"
        );
        // What is built is what counts.
        let built = "<localEntry key='m/m.dmc'><![CDATA[var DataMapper;(()=>{\"use strict\";var e={};function t(e,t){return e<t?{built:e}:{}}\
            e.mapFunction=void 0,e.mapFunction=function(e){return t(e.attr_no,9)},DataMapper=e})();\n\nfunction mapFunction(input) {\n\
            return DataMapper.mapFunction(input);\n}\n\nfunction map_S_order_S_o() {\n return mapFunction(inputorder);\n}]]></localEntry>\
            <localEntry key='m/m_inputSchema.json'>{\"title\": \"order\", \"type\": \"object\", \"inputType\": \"XML\", \"attributes\": {\"no\": {\"type\": \"number\"}}}</localEntry>\
            <localEntry key='m/m_outputSchema.json'>{\"title\": \"o\", \"outputType\": \"JSON\"}</localEntry>";
        assert_eq!(text("", built).run(XML, order).payload(), r#"{"built":7}"#);
        let half =
            built.split_once("</localEntry>").map_or("", |(first, _)| first).to_owned() + "</localEntry>";
        assert!(text("", &half).reports("there is no entry `m/m_inputSchema.json`"));
    }

    #[test]
    fn a_colon_behind_what_is_no_prefix_is_an_underscore() {
        let input = r#"{"title":"root","type":"object","properties":{"a:b":{"type":"number"}}}"#;
        let config = "map_S_root_S_root = function(){ return {a_b: inputroot.a_b}; };";
        for (to, wanted) in [("JSON", r#"{"a_b":1}"#), ("XML", "<root><a_b>1</a_b></root>")] {
            let attributes = format!("inputType='JSON' outputType='{to}'");
            assert_eq!(map(&attributes, config, (input, input), JSON, r#"{"a_b":1}"#).payload(), wanted);
        }
    }

    #[test]
    fn csv_comes_and_goes() {
        let rows = r#"{"title":"root","type":"array","items":[{"type":"object","properties":{"name":{"type":"string"},"n":{"type":"number"}}}]}"#;
        let config = "map_S_root_S_root = function(){ var out=[]; for (var i in inputroot) { out.push({n: inputroot[i].n * 2, name: inputroot[i].name}); } return out; };";
        for (input, output, headers, body, wanted) in [
            (
                "CSV",
                "JSON",
                TEXT,
                "name,n\r\n\"a, \"\"b\"\"\",1\r\nc,2\r\n",
                r#"[{"n":2,"name":"a, \"b\""},{"n":4,"name":"c"}]"#,
            ),
            ("CSV", "JSON", TEXT, "x,5", r#"[{"n":10,"name":"x"}]"#),
        ] {
            let attributes = format!("inputType='{input}' outputType='{output}'");
            assert_eq!(map(&attributes, config, (rows, rows), headers, body).payload(), wanted, "{body}");
        }
        let mut end = map(
            "inputType='JSON' outputType='CSV'",
            config,
            (rows, rows),
            JSON,
            r#"[{"name":"a,b","n":1},{"name":"x\"y","n":2}]"#,
        );
        assert_eq!(end.write(message::Format::Text), "2,\"a,b\"\n4,\"x\"\"y\"\n");
    }

    #[test]
    fn a_stylesheet_is_used_where_xml_becomes_xml() {
        let xml = "inputType='XML' outputType='XML' xsltStyleSheet='s'";
        let mut end = map(xml, CONFIG, (EMPLOYEES, ENGINEERS), XML, "<employees/>");
        assert_eq!(end.payload(), "<styled/>");
        let mut end = map("xsltStyleSheet='s'", CONFIG, (EMPLOYEES, ENGINEERS), XML, "<employees/>");
        assert_eq!(end.payload(), r#"{"engineer":[]}"#);
    }

    #[test]
    fn what_cannot_be_mapped_faults() {
        let run = |attributes: &str, config: &str, headers: &[(&str, &str)], body: &str| {
            let schema = r#"{"title":"root","type":"object","properties":{"a":{"type":"number"}}}"#;
            let end = flow(attributes, config, schema, schema).run(headers, body);
            format!(
                "{} / {}",
                end.fault().unwrap_or_default(),
                end.property("ERROR_DETAIL").unwrap_or_default()
            )
        };
        let json = "inputType='JSON' outputType='JSON'";
        let ok = "map_S_root_S_root = function(){ return inputroot; };";
        for (attributes, config, headers, body, says) in [
            (json, "map_S_root_S_root = function(){\n return inputroot.x.y; };", JSON, "{}", "line 2"),
            (json, "map_S_root_S_root = function(){ };", JSON, "{}", "returned nothing"),
            (json, "map_S_root_S_root = function(){ while (true) {} };", JSON, "{}", "longer than"),
            (json, ok, JSON, "", "no JSON payload"),
            (json, ok, JSON, "{", "JSON"),
            ("inputType='XML' outputType='JSON'", ok, XML, "", "empty"),
            ("inputType='XML' outputType='JSON'", ok, XML, "<root><a>x</a></root>", "not a number"),
            ("inputType='XML' outputType='JSON'", ok, XML, "<a", "not well-formed"),
            ("inputType='CSV' outputType='JSON'", ok, TEXT, "", "empty"),
            (
                "inputType='JSON' outputType='XML'",
                "map_S_root_S_root = function(){ return {'a b': 1}; };",
                JSON,
                "{}",
                "not a name",
            ),
            (
                "inputType='JSON' outputType='XML'",
                "map_S_root_S_root = function(){ return 5; };",
                JSON,
                "{}",
                "not an object",
            ),
        ] {
            let fault = run(attributes, config, headers, body);
            assert!(fault.contains(says), "{config} {body}: {fault}");
        }
        let missing = testing::main(
            &crate::registry(testing::endpoints),
            "<datamapper config='{$ctx:c}' inputSchema='x' outputSchema='y'/>",
        );
        assert!(missing.run(JSON, "{}").fault().is_some_and(|fault| fault.contains("mapping failed")));
    }

    #[test]
    fn mistakes_are_found_when_the_configuration_loads() {
        let schema = r#"{"title":"root","type":"object"}"#;
        let ok = "map_S_root_S_root = function(){ return 1; };";
        for (attributes, config, input, says) in [
            ("", ok, schema, "neither an attribute nor the schema"),
            ("inputType='YAML'", ok, schema, "`YAML` is not a type"),
            ("inputType='XML' outputType='XML'", "function () {", schema, "map_S_"),
            ("inputType='XML' outputType='XML'", "map_S_root_S_root = function( {", schema, "SyntaxError"),
            ("inputType='XML' outputType='XML'", ok, "[", "the input schema is not JSON"),
            ("inputType='XML' outputType='XML' target='variable'", ok, schema, "needs `target-variable`"),
            ("inputType='XML' outputType='XML' xsltStyleSheet='none'", ok, schema, "no stylesheet `none`"),
        ] {
            let tested = flow(attributes, config, input, schema);
            assert!(tested.reports(says), "{attributes}: {:?}", tested.found);
        }
        let tested = testing::main(
            &crate::registry(testing::endpoints),
            "<datamapper config='c' inputSchema='i' outputSchema='o'/>",
        );
        assert!(tested.reports("there is no entry `c`"), "{:?}", tested.found);
    }
}
