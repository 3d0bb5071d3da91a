//! What an API says of itself: `?openapi.json`, `?openapi.yaml`, `?swagger.json`, `?swagger.yaml`.

use crate::http::respond::text;
use crate::resource::PathRule;
use crate::runtime::artifacts::Api;
use crate::runtime::request::Inbound;
use message::{Body, Method};
use serde_json::{Map, Value as Json, json};
use transport::Response;

/// The forms of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `?openapi.json`, `?swagger.json`.
    Json,
    /// `?openapi.yaml`, `?swagger.yaml`.
    Yaml,
}

impl Form {
    /// The form that the query of a request asks for; `None`: it asks for something else.
    pub fn of_query(query: &str) -> Option<Form> {
        match query.split(['&', '=']).next()? {
            "openapi.json" | "swagger.json" => Some(Form::Json),
            "openapi.yaml" | "swagger.yaml" => Some(Form::Yaml),
            _ => None,
        }
    }

    /// The media type, with its charset.
    pub fn media_type(self) -> &'static str {
        match self {
            Form::Json => "application/json; charset=UTF-8",
            Form::Yaml => "application/yaml; charset=UTF-8",
        }
    }

    /// The definition as text.
    pub fn written(self, definition: &Json) -> String {
        match self {
            Form::Json => definition.to_string(),
            Form::Yaml => {
                let mut out = String::new();
                yaml(definition, 0, &mut out);
                out
            }
        }
    }
}

/// The answer to a request for the definition; `None`: it asks for something else.
pub(crate) fn answer(api: &Api, sub_path: &str, inbound: &Inbound) -> Option<Response> {
    if inbound.method != Method::Get {
        return None;
    }
    let form = Form::of_query(sub_path.strip_prefix("/?")?)?;
    let definition = match &api.definition {
        None => generated(api, inbound),
        Some(bytes) => match serde_json::from_slice::<Json>(bytes) {
            Ok(definition) => here(definition, api, inbound),
            // It is neither JSON nor YAML that can be read, and goes out as it is.
            Err(_) if form == Form::Yaml => return Some(answered(form, bytes.to_vec())),
            Err(_) => {
                return Some(text(
                    404,
                    "the definition cannot be read as JSON or YAML: ask for ?openapi.yaml to see it\n",
                ));
            }
        },
    };
    Some(answered(form, form.written(&definition).into_bytes()))
}

/// As [`answer`] at `/NAME?swagger.json`, where WSO2 has the definition of an API whatever its context is.
pub(crate) fn answer_by_name<'a>(
    mut apis: impl Iterator<Item = &'a Api>,
    inbound: &Inbound,
) -> Option<Response> {
    let (path, query) = inbound.target.split_once('?')?;
    let name = path.strip_prefix('/')?;
    let api = apis.find(|api| api.qualified_name() == name)?;
    answer(api, &format!("/?{query}"), inbound)
}

fn answered(form: Form, bytes: Vec<u8>) -> Response {
    Response::new(200, Body::Bytes(bytes.into())).with("Content-Type", form.media_type())
}

/// A definition that was given, with this server's address in it.
fn here(mut definition: Json, api: &Api, inbound: &Inbound) -> Json {
    let Some(object) = definition.as_object_mut() else { return definition };
    let base = api.path();
    if object.contains_key("swagger") {
        object.insert("host".to_owned(), (&*inbound.host).into());
        object.insert("basePath".to_owned(), if base.is_empty() { "/".into() } else { base.into() });
        object.insert("schemes".to_owned(), json!([inbound.scheme()]));
    } else {
        let url = format!("{}://{}{base}", inbound.scheme(), inbound.host);
        object.insert("servers".to_owned(), json!([{ "url": url }]));
    }
    definition
}

/// The definition that the resources make.
fn generated(api: &Api, inbound: &Inbound) -> Json {
    let name = api.name.split(":v").next().unwrap_or(&api.name);
    let version = if api.version.is_empty() { "1.0.0" } else { api.version.as_str() };
    let mut paths = Map::new();
    for (resource, rule) in api.resources.iter().zip(&api.rules) {
        let written = match rule.path {
            PathRule::Default => "/*",
            _ => resource.label.as_str(),
        };
        let (path, query) = written.split_once('?').unwrap_or((written, ""));
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let methods: Vec<&str> = match resource.methods.as_str() {
            "" => vec!["GET", "POST", "PUT", "DELETE"],
            methods => methods.split(' ').collect(),
        };
        let operations = paths.entry(plain(&path)).or_insert_with(|| json!({}));
        for method in methods {
            operations[method.to_ascii_lowercase()] = operation(&path, query, method);
        }
    }
    json!({
        "openapi": "3.0.3",
        "info": { "title": name, "description": format!("API Definition of {name}"), "version": version },
        "servers": [{ "url": format!("{}://{}{}", inbound.scheme(), inbound.host, api.path()) }],
        "paths": paths,
    })
}

/// A template as a path of OpenAPI: expressions without operators.
fn plain(path: &str) -> String {
    let mut out = String::new();
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((inside, behind)) = after.split_once('}') else { break };
        out.push_str(before);
        if inside.starts_with('/') && !before.ends_with('/') {
            out.push('/');
        }
        out.push_str(&format!("{{{}}}", variable(inside)));
        rest = behind;
    }
    out + rest
}

/// The name in an expression: `{+a:3}` has `a`.
fn variable(inside: &str) -> &str {
    let name = inside.trim_start_matches(['+', '#', '.', '/']);
    name.split(':').next().unwrap_or(name)
}

/// The names of the expressions in a text.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|part| part.split_once('}')).map(|(inside, _)| variable(inside))
}

fn operation(path: &str, query: &str, method: &str) -> Json {
    let parameter = |name: &str, place: &str| json!({ "name": name, "in": place, "required": place == "path", "schema": { "type": "string" } });
    let mut parameters: Vec<Json> = variables(path).map(|name| parameter(name, "path")).collect();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        parameters.push(parameter(pair.split('=').next().unwrap_or(pair), "query"));
    }
    let mut operation = json!({ "responses": { "default": { "description": "Default response" } } });
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if matches!(method, "POST" | "PUT" | "PATCH") {
        operation["requestBody"] = json!({
            "description": "Sample Payload",
            "required": false,
            "content": {
                "application/json": { "schema": { "type": "object" } },
                "application/xml": { "schema": { "type": "object" } },
            },
        });
    }
    operation
}

/// Writes a JSON value as YAML, in blocks; every text is quoted, so that none is taken for a number.
fn yaml(value: &Json, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Json::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                out.push_str(&format!("{indent}{}:", Json::from(name.as_str())));
                nested(value, depth + 1, out);
            }
        }
        Json::Array(items) if !items.is_empty() => {
            for item in items {
                out.push_str(&format!("{indent}-"));
                nested(item, depth + 1, out);
            }
        }
        scalar => out.push_str(&format!("{indent}{scalar}\n")),
    }
}

fn nested(value: &Json, depth: usize, out: &mut String) {
    let is_block = match value {
        Json::Object(members) => !members.is_empty(),
        Json::Array(items) => !items.is_empty(),
        _ => false,
    };
    if is_block {
        out.push('\n');
        yaml(value, depth, out);
    } else {
        // JSON of one line is YAML.
        out.push_str(&format!(" {value}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_become_paths() {
        for (path, expected, names) in [
            ("/a/{b}", "/a/{b}", vec!["b"]),
            ("/{+a}/x{/b}", "/{a}/x/{b}", vec!["a", "b"]),
            ("/{a:3}.{b", "/{a}.{b", vec!["a"]),
            ("/*", "/*", vec![]),
        ] {
            assert_eq!(plain(path), expected);
            assert_eq!(variables(path).collect::<Vec<_>>(), names, "{path}");
        }
    }

    #[test]
    fn yaml_is_written_in_blocks() {
        let mut out = String::new();
        yaml(&json!({ "a": [{ "b": "1" }, []], "c": {}, "d": 2 }), 0, &mut out);
        assert_eq!(out, "\"a\":\n  -\n    \"b\": \"1\"\n  - []\n\"c\": {}\n\"d\": 2\n");
    }
}
