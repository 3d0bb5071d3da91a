//! OpenAPI definitions (2.0, 3.0, 3.1, as JSON) as checks of requests and responses: parameters of path, query and header, and bodies:
//! JSON, and XML and forms, whose texts get the types of the schema.
//!
//! Each schema of a definition becomes a [`JsonSchema`] of its own when the definition is loaded, with those of the components that it
//! leads to. What the definition does not describe (a path, a status, a body of another type) is not checked.

mod convert;
mod fit;
mod path;

use crate::{Draft, JsonSchema, Violation};
use convert::{Dialect, Direction};
use path::PathTemplate;
use serde_json::{Map, Value, json};

/// A compiled definition.
#[derive(Debug)]
pub struct OpenApi {
    /// Those whose paths have the fewest variables first, so that `/pet/mine` is taken before `/pet/{id}`.
    operations: Vec<Operation>,
}

/// One method of one path.
#[derive(Debug)]
pub struct Operation {
    method: String,
    path: PathTemplate,
    parameters: Vec<Parameter>,
    body: Option<RequestBody>,
    /// By status as written: `200`, `2XX`, `default`.
    responses: Vec<(String, Content)>,
}

#[derive(Debug)]
struct Parameter {
    name: String,
    place: Place,
    required: bool,
    written: Written,
    /// Its schema has the type string.
    is_text: bool,
    schema: Option<Checked>,
}

/// The serialization of a parameter's value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Written {
    /// A single text.
    Scalar,
    /// Items with this separator. Empty: each item is a parameter of its own.
    Array(&'static str),
    /// `name[member]=value`.
    Deep,
    /// Each member is a parameter; their names.
    Members(Vec<String>),
    /// `member,value,member,value`, or `member=value,…`.
    Pairs { equals: bool },
    /// As JSON.
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Path,
    Query,
    Header,
}

#[derive(Debug)]
struct RequestBody {
    required: bool,
    content: Content,
}

/// Media types (`application/json`, `text/*`) with the schemas of those that are validated. Empty: any.
type Content = Vec<(String, Option<Checked>)>;

/// A schema, or why it cannot be used.
type Checked = Result<Described, String>;

/// A compiled schema, and its source.
#[derive(Debug)]
struct Described {
    schema: JsonSchema,
    whole: Value,
}

/// A request.
pub struct Request<'a> {
    /// The path below the API, as sent: percent-encoded, without the query.
    pub path: &'a str,
    /// Names and values of the query, decoded.
    pub query: &'a [(&'a str, String)],
    /// The value of a header.
    pub header: &'a dyn Fn(&str) -> Option<String>,
    /// The media type of the body without its parameters, in lower case.
    pub media: &'a str,
    /// The body.
    pub body: Sent<'a>,
}

/// A body.
pub enum Sent<'a> {
    /// There is none.
    Nothing,
    /// JSON.
    Json(&'a Value),
    /// XML or a form as JSON: the content of the root element, or the fields. The schema decides what is a number or a list.
    Texts(&'a Value),
    /// Another media type, which is not validated.
    Other,
}

const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

impl OpenApi {
    /// Loads a definition.
    ///
    /// # Errors
    /// It is not JSON, or not a definition; a text with the reason.
    pub fn load(bytes: &[u8]) -> Result<OpenApi, String> {
        let root: Value =
            serde_json::from_slice(bytes).map_err(|error| format!("it is not JSON: {error}"))?;
        let dialect = Dialect::of(&root).ok_or("it is neither `openapi` 3 nor `swagger` 2")?;
        let document = Document { root: &root, dialect };
        let mut operations = Vec::new();
        for (path, item) in root.get("paths").and_then(Value::as_object).into_iter().flatten() {
            let item = document.resolved(item);
            for method in METHODS {
                if let Some(operation) = item.get(method) {
                    operations.push(document.operation(path, method, item, operation));
                }
            }
        }
        operations.sort_by_key(|operation| operation.path.variables());
        Ok(OpenApi { operations })
    }

    /// The number of the operation that a request is for; `path` as in [`Request`].
    pub fn find(&self, method: &str, path: &str) -> Option<usize> {
        let mut operations = self.operations.iter();
        operations.position(|o| o.method.eq_ignore_ascii_case(method) && o.path.values(path).is_some())
    }

    /// The operation of a number that [`find`](Self::find) gave.
    pub fn operation(&self, number: usize) -> Option<&Operation> {
        self.operations.get(number)
    }

    /// The parts of the definition that cannot be used, one per line.
    pub fn faults(&self) -> Vec<String> {
        self.operations.iter().flat_map(Operation::faults).collect()
    }
}

impl Operation {
    /// `POST /pet/{id}`.
    pub fn label(&self) -> String {
        format!("{} {}", self.method.to_ascii_uppercase(), self.path.source())
    }

    /// Whether requests have anything to validate.
    pub fn checks_requests(&self) -> bool {
        !self.parameters.is_empty() || self.body.is_some()
    }

    /// Whether responses of this status have anything to validate.
    pub fn checks_responses(&self, status: u16) -> bool {
        self.response(status).is_some_and(|content| content.iter().any(|(_, schema)| schema.is_some()))
    }

    /// Whether any response has something to validate.
    pub fn describes_answers(&self) -> bool {
        self.responses.iter().any(|(_, content)| content.iter().any(|(_, schema)| schema.is_some()))
    }

    /// The violations of a request.
    ///
    /// # Errors
    /// A schema of the definition cannot be used; a text with the reason.
    pub fn request(&self, sent: &Request<'_>) -> Result<Vec<Violation>, String> {
        let mut found = Vec::new();
        let variables = self.path.values(sent.path).unwrap_or_default();
        for parameter in &self.parameters {
            let values: Vec<(&str, String)> = match parameter.place {
                Place::Path => variables.iter().map(|(variable, value)| (*variable, value.clone())).collect(),
                Place::Query => sent.query.to_vec(),
                Place::Header => {
                    let name = parameter.name.as_str();
                    (sent.header)(name).into_iter().map(|value| (name, value)).collect()
                }
            };
            parameter.check(&values, &mut found)?;
        }
        let Some(body) = &self.body else { return Ok(found) };
        match &sent.body {
            Sent::Nothing if body.required => {
                found.push(violation("", "required", "there is no body".to_owned()))
            }
            Sent::Nothing => {}
            Sent::Json(_) | Sent::Texts(_) | Sent::Other if !takes(&body.content, sent.media) => {
                let takes: Vec<&str> = body.content.iter().map(|(media, _)| media.as_str()).collect();
                let message = format!("the body is {}, and may be {}", sent.media, takes.join(", "));
                found.push(violation("", "", message));
            }
            Sent::Json(value) => check(&body.content, sent.media, value, false, &mut found)?,
            Sent::Texts(value) => check(&body.content, sent.media, value, true, &mut found)?,
            Sent::Other => {}
        }
        Ok(found)
    }

    /// Whether the body of a request of this media type is validated.
    pub fn checks_body(&self, media: &str) -> bool {
        self.body.as_ref().is_some_and(|body| chosen(&body.content, media).is_some())
    }

    /// Whether the body of a response is.
    pub fn checks_answer(&self, status: u16, media: &str) -> bool {
        self.response(status).is_some_and(|content| chosen(content, media).is_some())
    }

    /// The violations of the body of a response; `media` as in [`Request`], `texts`: it is XML or a form, as in [`Sent::Texts`].
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn answer(
        &self,
        status: u16,
        media: &str,
        body: &Value,
        texts: bool,
    ) -> Result<Vec<Violation>, String> {
        let mut found = Vec::new();
        if let Some(content) = self.response(status) {
            check(content, media, body, texts, &mut found)?;
        }
        Ok(found)
    }

    fn response(&self, status: u16) -> Option<&Content> {
        let (exact, class) = (status.to_string(), format!("{}XX", status / 100));
        let written = [exact.as_str(), class.as_str(), "default"];
        let mut found = written.iter().filter_map(|name| {
            self.responses
                .iter()
                .find(|(range, _)| range.eq_ignore_ascii_case(name))
                .map(|(_, content)| content)
        });
        found.next()
    }

    fn faults(&self) -> Vec<String> {
        let bodies = self
            .body
            .iter()
            .map(|body| &body.content)
            .chain(self.responses.iter().map(|(_, content)| content));
        let bodies = bodies.flatten().filter_map(|(media, schema)| Some((media, schema.as_ref()?)));
        let parameters = self.parameters.iter().filter_map(|p| Some((&p.name, p.schema.as_ref()?)));
        let all = parameters.chain(bodies).filter_map(|(part, schema)| Some((part, schema.as_ref().err()?)));
        all.map(|(part, why)| format!("{}, {part}: {why}", self.label())).collect()
    }
}

impl Parameter {
    /// Validates a parameter. `sent`: the names and values at its place.
    fn check(&self, sent: &[(&str, String)], found: &mut Vec<Violation>) -> Result<(), String> {
        let place = format!("{} {}", self.place.label(), self.name);
        let values: Vec<&str> =
            sent.iter().filter(|(name, _)| *name == self.name).map(|(_, value)| value.as_str()).collect();
        let object = self.object(sent, values.first().copied());
        if object.is_none() && values.is_empty() {
            if self.required {
                found.push(violation(&place, "required", "it is missing".to_owned()));
            }
            return Ok(());
        }
        let Some(described) = &self.schema else { return Ok(()) };
        let Described { schema, whole } =
            described.as_ref().map_err(|why| format!("the schema of {place} cannot be used: {why}"))?;
        let first = values.first().copied().unwrap_or_default();
        // A text may be a string, or the number, boolean or null that it spells.
        let scalar = |text: &str| match serde_json::from_str(text) {
            Ok(value @ (Value::Number(_) | Value::Bool(_) | Value::Null)) => value,
            _ => Value::from(text),
        };
        let (texts, scalars) = match (&self.written, object) {
            (_, Some(object)) => {
                let fitted = fit::fitted(&object, whole);
                (fitted.clone(), fitted)
            }
            (Written::Json, None) => match serde_json::from_str::<Value>(first) {
                Ok(value) => (value.clone(), value),
                Err(_) => {
                    found.push(violation(&place, "", "it is not JSON".to_owned()));
                    return Ok(());
                }
            },
            (Written::Array(separator), None) => {
                let items: Vec<&str> = match *separator {
                    "" => values,
                    separator => first.split(separator).collect(),
                };
                (
                    items.iter().map(|item| Value::from(*item)).collect(),
                    items.iter().map(|item| scalar(item)).collect(),
                )
            }
            _ => (Value::from(first), scalar(first)),
        };
        if schema.is_valid(&texts) || schema.is_valid(&scalars) {
            return Ok(());
        }
        let violations = schema.validate(if self.is_text { &texts } else { &scalars });
        found.extend(
            violations
                .into_iter()
                .map(|violation| Violation { place: format!("{place}{}", violation.place), ..violation }),
        );
        Ok(())
    }

    /// The object of a parameter, if it has one; its members are texts.
    fn object(&self, sent: &[(&str, String)], first: Option<&str>) -> Option<Value> {
        let members: Vec<(&str, &str)> = match &self.written {
            Written::Deep => {
                let inside = |name: &'_ str| -> Option<(usize, usize)> {
                    let rest = name.strip_prefix(self.name.as_str())?.strip_prefix('[')?.strip_suffix(']')?;
                    (!rest.is_empty()).then(|| (self.name.len() + 1, name.len() - 1))
                };
                let members = sent.iter().filter_map(|(name, value)| {
                    let (from, to) = inside(name)?;
                    Some((&name[from..to], value.as_str()))
                });
                members.collect()
            }
            Written::Members(names) => {
                let members = sent.iter().filter(|(name, _)| names.iter().any(|n| n == name));
                members.map(|(name, value)| (*name, value.as_str())).collect()
            }
            Written::Pairs { equals: true } => {
                first?.split(',').map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect()
            }
            Written::Pairs { equals: false } => {
                let parts: Vec<&str> = first?.split(',').collect();
                parts.chunks(2).map(|pair| (pair[0], pair.get(1).copied().unwrap_or_default())).collect()
            }
            _ => return None,
        };
        if members.is_empty() {
            return None;
        }
        Some(fit::object(members.into_iter().map(|(name, value)| (name, Value::from(value)))))
    }
}

impl Place {
    fn label(self) -> &'static str {
        match self {
            Place::Path => "path",
            Place::Query => "query",
            Place::Header => "header",
        }
    }
}

fn violation(place: &str, rule: &'static str, message: String) -> Violation {
    Violation { document: None, place: place.to_owned(), line: 0, column: 0, rule, message }
}

fn takes(content: &Content, media: &str) -> bool {
    content.is_empty() || content.iter().any(|(range, _)| covers(range, media))
}

/// The schema of the most specific media range.
fn chosen<'a>(content: &'a Content, media: &str) -> Option<&'a Checked> {
    let exact = content.iter().find(|(range, _)| range == media);
    let chosen = exact.or_else(|| {
        let mut ranges: Vec<_> = content.iter().filter(|(range, _)| covers(range, media)).collect();
        ranges.sort_by_key(|(range, _)| std::cmp::Reverse(range.len()));
        ranges.first().copied()
    });
    chosen?.1.as_ref()
}

/// Validates a body with it; `texts`: as [`Sent::Texts`].
fn check(
    content: &Content,
    media: &str,
    value: &Value,
    texts: bool,
    found: &mut Vec<Violation>,
) -> Result<(), String> {
    let Some(described) = chosen(content, media) else { return Ok(()) };
    let Described { schema, whole } =
        described.as_ref().map_err(|why| format!("the schema of {media} cannot be used: {why}"))?;
    let fitted;
    let value = match texts {
        true => {
            fitted = fit::fitted(value, whole);
            &fitted
        }
        false => value,
    };
    if !schema.is_valid(value) {
        found.extend(schema.validate(value));
    }
    Ok(())
}

/// Whether a media range covers a media type.
fn covers(range: &str, media: &str) -> bool {
    match range.strip_suffix('*') {
        Some("*/") => true,
        Some(start) => media.starts_with(start),
        None => range == media,
    }
}

/// Whether bodies of this media type, or some of this range, are validated: JSON, XML and forms.
fn is_read(media: &str) -> bool {
    media.ends_with("json") || media.ends_with("/*") || media.ends_with("xml") || is_form(media)
}

fn is_form(media: &str) -> bool {
    matches!(media, "application/x-www-form-urlencoded" | "multipart/form-data")
}

/// A definition while it is read.
struct Document<'a> {
    root: &'a Value,
    dialect: Dialect,
}

/// Longest chain of references.
const MAX_REFERENCES: usize = 32;

impl<'a> Document<'a> {
    /// The target of a reference, or the value itself.
    fn resolved(&self, value: &'a Value) -> &'a Value {
        let mut value = value;
        for _ in 0..MAX_REFERENCES {
            let pointer = value.get("$ref").and_then(Value::as_str).and_then(convert::pointer);
            match pointer.and_then(|pointer| self.root.pointer(&pointer)) {
                Some(next) => value = next,
                None => break,
            }
        }
        value
    }

    fn operation(&self, path: &str, method: &str, item: &'a Value, operation: &'a Value) -> Operation {
        // Parameters of the operation replace those of the path.
        let mut written: Vec<&Value> = Vec::new();
        for parameter in list(operation, "parameters").chain(list(item, "parameters")) {
            let parameter = self.resolved(parameter);
            let same = |other: &&Value| ["name", "in"].iter().all(|key| other.get(key) == parameter.get(key));
            if !written.iter().any(same) {
                written.push(parameter);
            }
        }
        Operation {
            method: method.to_owned(),
            path: PathTemplate::new(path),
            parameters: written.iter().filter_map(|parameter| self.parameter(parameter)).collect(),
            body: self.body(operation, &written),
            responses: self.responses(operation),
        }
    }

    fn parameter(&self, parameter: &'a Value) -> Option<Parameter> {
        let name = parameter.get("name")?.as_str()?;
        let place = match parameter.get("in")?.as_str()? {
            "path" => Place::Path,
            "query" => Place::Query,
            // A definition describes these headers elsewhere.
            "header"
                if ["accept", "content-type", "authorization"]
                    .iter()
                    .any(|header| name.eq_ignore_ascii_case(header)) =>
            {
                return None;
            }
            "header" => Place::Header,
            _ => return None,
        };
        // In Swagger 2 the parameter itself is the schema.
        let schema = match self.dialect {
            Dialect::Swagger2 => Some(parameter),
            _ => parameter.get("schema").or_else(|| in_json(parameter)),
        };
        let kind = schema.and_then(|s| self.resolved(s).get("type")).and_then(Value::as_str);
        let schema = schema.filter(|_| kind != Some("file"));
        let written = match kind {
            _ if in_json(parameter).is_some() => Written::Json,
            Some("array") => Written::Array(self.separator(parameter, place)),
            Some("object") => self.object(parameter, place, schema),
            _ => Written::Scalar,
        };
        Some(Parameter {
            name: name.to_owned(),
            place,
            required: parameter.get("required").is_some_and(|flag| flag == true),
            written,
            is_text: kind == Some("string"),
            schema: schema.map(|s| self.schema(s, Direction::Request)),
        })
    }

    fn separator(&self, parameter: &Value, place: Place) -> &'static str {
        let text = |key: &str| parameter.get(key).and_then(Value::as_str);
        if self.dialect == Dialect::Swagger2 {
            return match text("collectionFormat") {
                Some("multi") => "",
                Some("ssv") => " ",
                Some("tsv") => "\t",
                Some("pipes") => "|",
                _ => ",",
            };
        }
        let explode = parameter.get("explode").and_then(Value::as_bool);
        match (place, text("style")) {
            (Place::Query, None | Some("form")) if explode.unwrap_or(true) => "",
            (Place::Query, Some("spaceDelimited")) => " ",
            (Place::Query, Some("pipeDelimited")) => "|",
            _ => ",",
        }
    }

    /// The serialization of an object.
    fn object(&self, parameter: &Value, place: Place, schema: Option<&'a Value>) -> Written {
        let style = parameter.get("style").and_then(Value::as_str);
        let explode = parameter.get("explode").and_then(Value::as_bool);
        match (place, style) {
            (Place::Query, Some("deepObject")) => Written::Deep,
            (Place::Query, None | Some("form")) if explode.unwrap_or(true) => {
                let schema = schema.map(|s| self.resolved(s));
                let members = schema.and_then(|s| s.get("properties")).and_then(Value::as_object);
                Written::Members(members.into_iter().flatten().map(|(name, _)| name.clone()).collect())
            }
            _ => Written::Pairs { equals: place != Place::Query && explode == Some(true) },
        }
    }

    fn body(&self, operation: &'a Value, parameters: &[&'a Value]) -> Option<RequestBody> {
        let required = |value: &Value| value.get("required").is_some_and(|flag| flag == true);
        if self.dialect != Dialect::Swagger2 {
            let body = self.resolved(operation.get("requestBody")?);
            return Some(RequestBody {
                required: required(body),
                content: self.content(body, Direction::Request),
            });
        }
        let Some(body) = parameters.iter().find(|p| p.get("in").is_some_and(|place| place == "body")) else {
            return self.form(operation, parameters);
        };
        let content = self.content_of_swagger(operation, "consumes", body, Direction::Request);
        Some(RequestBody { required: required(body), content })
    }

    /// The form of Swagger 2's `formData` parameters.
    fn form(&self, operation: &'a Value, parameters: &[&'a Value]) -> Option<RequestBody> {
        let fields = || {
            parameters.iter().filter(|parameter| parameter.get("in").is_some_and(|place| place == "formData"))
        };
        fields().next()?;
        let name =
            |parameter: &Value| parameter.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let is_required = |parameter: &Value| parameter.get("required").is_some_and(|flag| flag == true);
        let is_file = |parameter: &Value| parameter.get("type").is_some_and(|kind| kind == "file");
        let shape = |parameter: &Value| if is_file(parameter) { json!({}) } else { parameter.clone() };
        let properties: Map<String, Value> = fields().map(|p| (name(p), shape(p))).collect();
        let mut schema = json!({ "type": "object", "properties": properties });
        let required: Vec<String> = fields().filter(|p| is_required(p)).map(|p| name(p)).collect();
        let any = !required.is_empty();
        if any {
            schema["required"] = required.into();
        }
        let listed =
            operation.get("consumes").or_else(|| self.root.get("consumes")).and_then(Value::as_array);
        let mut media: Vec<String> = listed
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(essence)
            .filter(|m| is_form(m))
            .collect();
        if media.is_empty() {
            media = vec!["application/x-www-form-urlencoded".to_owned(), "multipart/form-data".to_owned()];
        }
        let content = media.into_iter().map(|media| (media, Some(self.schema(&schema, Direction::Request))));
        Some(RequestBody { required: any, content: content.collect() })
    }

    fn responses(&self, operation: &'a Value) -> Vec<(String, Content)> {
        let responses = operation.get("responses").and_then(Value::as_object).into_iter().flatten();
        responses
            .map(|(status, response)| {
                let response = self.resolved(response);
                let content = match self.dialect {
                    Dialect::Swagger2 => {
                        self.content_of_swagger(operation, "produces", response, Direction::Response)
                    }
                    _ => self.content(response, Direction::Response),
                };
                (status.clone(), content)
            })
            .collect()
    }

    fn content(&self, body: &'a Value, direction: Direction) -> Content {
        let content = body.get("content").and_then(Value::as_object).into_iter().flatten();
        content
            .map(|(media, described)| {
                let media = essence(media);
                let schema = described.get("schema").filter(|_| is_read(&media));
                (media, schema.map(|s| self.schema(s, direction)))
            })
            .collect()
    }

    /// Swagger 2 lists the media types separately, per operation or globally.
    fn content_of_swagger(
        &self,
        operation: &'a Value,
        key: &str,
        body: &'a Value,
        direction: Direction,
    ) -> Content {
        let listed = operation.get(key).or_else(|| self.root.get(key)).and_then(Value::as_array);
        let mut listed: Vec<String> =
            listed.into_iter().flatten().filter_map(Value::as_str).map(essence).collect();
        if listed.is_empty() {
            listed.push("*/*".to_owned());
        }
        let schema = body.get("schema").filter(|s| s.get("type").is_none_or(|kind| kind != "file"));
        let checked = |media: &String| schema.filter(|_| is_read(media)).map(|s| self.schema(s, direction));
        listed.into_iter().map(|media| (media.clone(), checked(&media))).collect()
    }

    fn schema(&self, schema: &Value, direction: Direction) -> Checked {
        let whole = convert::standing_alone(self.root, schema, self.dialect, direction);
        let draft = match self.dialect {
            Dialect::OpenApi31 => Draft::Draft202012,
            _ => Draft::Draft4,
        };
        let schema = JsonSchema::of_value(&whole, "the definition", draft).map_err(|faults| {
            faults.first().map_or_else(|| "it is not a schema".to_owned(), |fault| fault.message.clone())
        })?;
        Ok(Described { schema, whole })
    }
}

/// The schema of a parameter with JSON content.
fn in_json(parameter: &Value) -> Option<&Value> {
    let content = parameter.get("content")?.as_object()?;
    content.iter().find(|(media, _)| essence(media).ends_with("json"))?.1.get("schema")
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// A media type without its parameters, in lower case.
fn essence(media: &str) -> String {
    media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pets() -> OpenApi {
        let definition = json!({
            "openapi": "3.0.3",
            "components": {
                "schemas": {
                    "Pet": {
                        "type": "object",
                        "required": ["id", "name"],
                        "properties": {
                            "id": { "type": "integer", "readOnly": true },
                            "name": { "type": "string", "nullable": true },
                            "friend": { "$ref": "#/components/schemas/Pet" },
                            "secret": { "type": "string", "writeOnly": true }
                        }
                    },
                    "Broken": { "type": "no such type" }
                },
                "parameters": { "Page": { "name": "page", "in": "query", "schema": { "type": "integer", "minimum": 1 } } }
            },
            "paths": {
                "/pet/{id}": {
                    "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "integer" } }],
                    "get": {
                        "parameters": [
                            { "$ref": "#/components/parameters/Page" },
                            { "name": "tag", "in": "query", "schema": { "type": "array", "items": { "enum": ["a", "b"] } } },
                            { "name": "list", "in": "query", "explode": false, "schema": { "type": "array", "items": { "type": "integer" } } },
                            { "name": "X-Key", "in": "header", "required": true, "schema": { "type": "string", "minLength": 3 } }
                        ],
                        "responses": {
                            "200": { "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Pet" } } } },
                            "4XX": { "content": { "application/json": { "schema": { "type": "string" } } } }
                        }
                    }
                },
                "/pet/mine": { "get": { "responses": {} } },
                "/pet": {
                    "post": {
                        "requestBody": {
                            "required": true,
                            "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Pet" } }, "text/xml": {} }
                        },
                        "responses": {}
                    },
                    "put": {
                        "requestBody": { "content": { "*/*": { "schema": { "$ref": "#/components/schemas/Broken" } } } },
                        "responses": {}
                    }
                }
            }
        });
        OpenApi::load(definition.to_string().as_bytes()).expect("it is a definition")
    }

    fn of_request(
        api: &OpenApi,
        method: &str,
        target: &str,
        key: &str,
        media: &str,
        body: Sent<'_>,
    ) -> Vec<String> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query: Vec<(&str, String)> = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(n, v)| (n, v.to_owned()))
            .collect();
        let header = |name: &str| (name == "X-Key" && !key.is_empty()).then(|| key.to_owned());
        let operation =
            api.find(method, path).and_then(|number| api.operation(number)).expect("it is described");
        let sent = Request { path, query: &query, header: &header, media, body };
        match operation.request(&sent) {
            Ok(found) => found.iter().map(ToString::to_string).collect(),
            Err(why) => vec![why],
        }
    }

    #[test]
    fn parameters_are_checked() {
        let api = pets();
        for (target, key, wanted) in [
            ("/pet/7", "abc", ""),
            ("/pet/7/", "abc", ""),
            ("/pet/mine", "", ""),
            ("/pet/x", "abc", "path id: type"),
            ("/pet/%37", "abc", ""),
            ("/pet/7", "", "header X-Key: required"),
            ("/pet/7", "ab", "header X-Key: minLength"),
            ("/pet/7", "123", ""),
            ("/pet/7?page=2", "abc", ""),
            ("/pet/7?page=0", "abc", "query page: minimum"),
            ("/pet/7?page=two", "abc", "query page: type"),
            ("/pet/7?tag=a&tag=b", "abc", ""),
            ("/pet/7?tag=a&tag=c", "abc", "query tag/1: enum"),
            ("/pet/7?list=1,2", "abc", ""),
            ("/pet/7?list=1,x", "abc", "query list/1: type"),
        ] {
            let found = of_request(&api, "GET", target, key, "", Sent::Nothing).join("\n");
            assert!(
                found.is_empty() == wanted.is_empty() && found.contains(wanted),
                "{target} {key}: {found}"
            );
        }
        assert_eq!(api.find("GET", "/other"), None);
        assert_eq!(api.find("DELETE", "/pet/7"), None);
    }

    #[test]
    fn bodies_are_checked() {
        let api = pets();
        let body = |body: &Value| {
            of_request(&api, "POST", "/pet", "", "application/json", Sent::Json(body)).join("\n")
        };
        assert_eq!(body(&json!({ "name": "x" })), "", "what only answers have is not asked for");
        assert_eq!(body(&json!({ "name": null, "friend": { "name": "y" } })), "", "nullable, recursive");
        assert!(body(&json!({})).contains("required"));
        assert!(body(&json!({ "name": "x", "friend": { "name": 1 } })).contains("/friend/name"));
        let missing = of_request(&api, "POST", "/pet", "", "", Sent::Nothing);
        assert_eq!(missing, ["required: there is no body"]);
        assert!(of_request(&api, "POST", "/pet", "", "text/xml", Sent::Other).is_empty());
        let other = of_request(&api, "POST", "/pet", "", "text/plain", Sent::Other);
        assert_eq!(other, ["the body is text/plain, and may be application/json, text/xml"]);
    }

    #[test]
    fn responses_are_checked() {
        let api = pets();
        let get = api.find("GET", "/pet/7").and_then(|index| api.operation(index)).expect("it is described");
        assert!(get.checks_responses(200) && get.checks_responses(404) && !get.checks_responses(500));
        let of = |status, body: Value| {
            get.answer(status, "application/json", &body, false).expect("it can be used").len()
        };
        assert_eq!(of(200, json!({ "id": 1, "name": "x" })), 0);
        assert_eq!(of(200, json!({ "name": "x" })), 1, "an answer has what is read only");
        assert_eq!(of(404, json!("no")), 0);
        assert_eq!(of(404, json!(1)), 1);
        assert_eq!(of(500, json!(1)), 0, "not described");
    }

    #[test]
    fn what_cannot_be_used_is_told() {
        let api = pets();
        let faults = api.faults();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].starts_with("PUT /pet, */*: "), "{faults:?}");
        let body = json!(1);
        let found = of_request(&api, "PUT", "/pet", "", "application/json", Sent::Json(&body)).join("");
        assert!(found.contains("cannot be used"), "{found}");
        for (text, why) in [
            ("openapi: 3.0.0", "not JSON"),
            ("{}", "neither"),
            ("[]", "neither"),
            (r#"{"openapi":"4.0"}"#, "neither"),
            (r#"{"swagger":2.0}"#, "neither"),
        ] {
            assert!(OpenApi::load(text.as_bytes()).is_err_and(|why_not| why_not.contains(why)), "{text}");
        }
        for text in [
            r#"{"openapi":"3.0.0","paths":[]}"#,
            r#"{"openapi":"3.1.0","paths":{"/a":{"get":1,"post":{"parameters":1,"responses":[]}}}}"#,
            r##"{"openapi":"3.0.0","paths":{"/a":{"$ref":"#/paths/~1a"}}}"##,
            r##"{"openapi":"3.0.0","paths":{"/a":{"get":{"requestBody":{"$ref":"#/paths/~1a/get/requestBody"}}}}}"##,
            r##"{"openapi":"3.0.0","paths":{"/a":{"get":{"parameters":[{"in":"query","name":"n","schema":{"$ref":"#/paths/~1a/get/parameters/0/schema"}}]}}}}"##,
        ] {
            assert!(OpenApi::load(text.as_bytes()).is_ok(), "{text}");
        }
    }

    #[test]
    fn swagger_2() {
        let definition = json!({
            "swagger": "2.0",
            "consumes": ["application/json"],
            "definitions": { "Order": { "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } } },
            "paths": { "/order": { "post": {
                "parameters": [
                    { "in": "body", "name": "body", "required": true, "schema": { "$ref": "#/definitions/Order" } },
                    { "in": "query", "name": "ids", "type": "array", "items": { "type": "integer" }, "collectionFormat": "pipes" }
                ],
                "responses": { "200": { "schema": { "type": "file" } }, "default": { "schema": { "$ref": "#/definitions/Order" } } }
            } } }
        });
        let api = OpenApi::load(definition.to_string().as_bytes()).expect("it is a definition");
        assert_eq!(api.faults(), Vec::<String>::new());
        let good = json!({ "n": 1 });
        let of = |target: &str, body: &Value| {
            of_request(&api, "POST", target, "", "application/json", Sent::Json(body))
        };
        assert!(of("/order?ids=1|2", &good).is_empty());
        assert_eq!(of("/order?ids=1,2", &good).len(), 1);
        assert_eq!(of("/order", &json!({})).len(), 1);
        let post = api.operation(0).expect("one");
        assert!(!post.checks_responses(200) && post.checks_responses(500));
    }
}
