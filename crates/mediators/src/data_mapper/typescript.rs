//! Mappings in TypeScript, as WSO2's editor for VS Code writes them: a function `mapFunction`, whose types describe both sides. The project
//! has only that file; its build makes the JavaScript and the schemas that `datamapper` names. They are made here in the same way.

use super::model;
use script::typescript::{self, Declared, Module, Shape};
use serde_json::{Map, Value as Json, json};

/// Most types of a schema.
const MOST_TYPES: usize = 10_000;

/// The helper functions that a mapping imports as `dmUtils`.
const HELPERS: &str = "{sum:(...n)=>n.reduce((a,b)=>a+b,0),max:Math.max,min:Math.min,average:(...n)=>n.reduce((a,b)=>a+b,0)/n.length,\
    ceiling:Math.ceil,floor:Math.floor,round:Math.round,toNumber:Number,toBoolean:s=>s.toLowerCase()==='true',\
    numberToString:n=>n.toString(),booleanToString:b=>b.toString(),concat:(...s)=>s.join(''),split:(s,by)=>s.split(by),\
    toUppercase:s=>s.toUpperCase(),toLowercase:s=>s.toLowerCase(),stringLength:s=>s.length,startsWith:(s,by)=>s.startsWith(by),\
    endsWith:(s,by)=>s.endsWith(by),substring:(s,from,to)=>s.substring(from,to),trim:s=>s.trim(),\
    replaceFirst:(s,old,by)=>s.replace(old,by),match:(s,by)=>by.test(s),\
    getPropertyValue:(scope,name)=>(DM_PROPERTIES[scope.trim().toUpperCase()]||{})[name.trim()]||''}";

/// The key of the TypeScript of a mapping, by the key of its JavaScript.
pub(super) fn source_of(key: &str) -> Option<String> {
    key.trim().strip_suffix(".dmc").map(|stem| format!("{stem}.ts"))
}

/// What the build makes of a mapping.
pub(super) struct BuiltMapping {
    /// The JavaScript.
    pub code: String,
    /// The schema of the input, as JSON.
    pub input: String,
    /// The schema of the output, as JSON.
    pub output: String,
}

/// Makes the JavaScript and the schemas of the text of a mapping.
///
/// # Errors
/// It has no function `mapFunction`, or imports something other than the helper functions.
pub(super) fn made(text: &str) -> Result<BuiltMapping, String> {
    let module = typescript::read(text);
    let function = module.functions.iter().find(|function| function.name == "mapFunction");
    let function = function.ok_or("the mapping has no function `mapFunction`")?;
    let input = schema(&module, "inputType", &function.parameter);
    let output = schema(&module, "outputType", &function.returns);
    let title = |schema: &Json| {
        let title = schema.get("title").and_then(Json::as_str).unwrap_or_default();
        model::identifier(model::local(title))
    };
    let mut first = String::new();
    for import in &module.imports {
        if !import.from.trim_end_matches(".ts").ends_with("dm-utils") {
            return Err(format!("the mapping imports `{}`: only `dm-utils` is here", import.from));
        }
        let member = if import.name == "*" { String::new() } else { format!(".{}", import.name) };
        first.push_str(&format!("var {}=({HELPERS}){member};", import.local));
    }
    let (from, to) = (title(&input), title(&output));
    let variable = model::identifier(input.get("title").and_then(Json::as_str).unwrap_or_default());
    let code = format!(
        "{first}{}\nfunction map_S_{from}_S_{to}(){{return mapFunction(input{variable})}}",
        module.code
    );
    Ok(BuiltMapping { code, input: input.to_string(), output: output.to_string() })
}

/// The schema of the type whose comment says the `member`, or else of the type in the signature.
fn schema(module: &Module, member: &str, signature: &Shape) -> Json {
    let item = match signature {
        Shape::List(item) => item,
        one => one,
    };
    let named = match item {
        Shape::Named(name) => module.types.iter().find(|declared| declared.name == *name),
        _ => None,
    };
    let declared = module.types.iter().rfind(|declared| declared.comment.contains(member)).or(named);
    let comment = declared.map_or("", |declared| declared.comment.as_str());
    let title = text_of(comment, "title").or_else(|| declared.map(|declared| declared.name.clone()));
    let prefixes = namespaces(comment);
    let shape = declared.map_or(item, |declared| &declared.shape);
    let mut maker = Maker { types: &module.types, prefixes: &prefixes, open: Vec::new(), left: MOST_TYPES };
    let mut schema = maker.of(shape);
    if matches!(signature, Shape::List(_)) {
        schema = json!({"type": "array", "items": [schema]});
    }
    if let Some(members) = schema.as_object_mut() {
        members.insert("title".to_owned(), Json::from(title.unwrap_or_else(|| "root".to_owned())));
        for member in ["inputType", "outputType"] {
            if let Some(kind) = text_of(comment, member) {
                members.insert(member.to_owned(), Json::from(kind));
            }
        }
        members.insert("namespaces".to_owned(), Json::Array(prefixes));
    }
    schema
}

/// What a comment says: `name : "…"`.
fn text_of(comment: &str, name: &str) -> Option<String> {
    comment.match_indices(name).find_map(|(at, _)| {
        let rest = comment[at + name.len()..].trim_start().strip_prefix(':')?.trim_start();
        match rest.strip_prefix('"') {
            Some(rest) => rest.split_once('"').map(|(quoted, _)| quoted.to_owned()),
            None => {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                (end > 0).then(|| rest[..end].to_owned())
            }
        }
    })
}

fn namespaces(comment: &str) -> Vec<Json> {
    let list = comment.find("namespaces").and_then(|at| {
        let line = comment[at..].lines().next()?;
        let (begin, end) = (line.find('[')?, line.rfind(']')?);
        serde_json::from_str(line.get(begin..=end)?).ok()
    });
    list.unwrap_or_default()
}

/// Makes the schemas of types.
struct Maker<'m> {
    types: &'m [Declared],
    prefixes: &'m [Json],
    /// The names that are being made: a type that has itself ends there.
    open: Vec<&'m str>,
    /// How many types may still be made.
    left: usize,
}

impl<'m> Maker<'m> {
    fn of(&mut self, shape: &'m Shape) -> Json {
        let Some(left) = self.left.checked_sub(1) else { return json!({}) };
        self.left = left;
        match shape {
            Shape::Any | Shape::Nothing => json!({}),
            Shape::Text => json!({"type": "string"}),
            Shape::Number => json!({"type": "number"}),
            Shape::Boolean => json!({"type": "boolean"}),
            Shape::List(item) => json!({"type": "array", "items": [self.of(item)]}),
            Shape::Named(name) => match self.types.iter().find(|declared| declared.name == *name) {
                Some(declared) if !self.open.contains(&name.as_str()) => {
                    self.open.push(name);
                    let made = self.of(&declared.shape);
                    self.open.pop();
                    made
                }
                _ => json!({}),
            },
            Shape::Members(members) => {
                let (mut properties, mut attributes, mut value) = (Map::new(), Map::new(), None);
                for (name, shape) in members {
                    let schema = self.of(shape);
                    if name == model::TEXT {
                        value = Some(schema);
                    } else if let Some(name) = name.strip_prefix(model::ATTRIBUTE) {
                        attributes.insert(prefixed(name, self.prefixes), schema);
                    } else {
                        properties.insert(prefixed(name, self.prefixes), schema);
                    }
                }
                let mut made = json!({"type": "object", "properties": properties, "attributes": attributes});
                if let (Some(members), Some(value)) = (made.as_object_mut(), value) {
                    members.insert("value".to_owned(), value);
                }
                made
            }
        }
    }
}

/// `p_a` as `p:a`, if `p` is a prefix of the schema.
fn prefixed(name: &str, prefixes: &[Json]) -> String {
    let is_declared = |prefix: &str| {
        prefixes.iter().any(|namespace| namespace.get("prefix").and_then(Json::as_str) == Some(prefix))
    };
    match name.split_once('_') {
        Some((prefix, local)) if is_declared(prefix) => format!("{prefix}:{local}"),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schemas(text: &str) -> [Json; 2] {
        let made = made(text).expect("a mapping");
        [made.input, made.output].map(|schema| serde_json::from_str(&schema).expect("JSON"))
    }

    #[test]
    fn schemas_are_made_of_types() {
        let [input, output] = schemas(
            "/*\n * title : \"n:cart\",\n * inputType : \"XML\",\n * namespaces : [{\"prefix\": \"n\", \"url\": \"urn:n\"}]\n */\n\
             interface Cart { attr_id: number, n_line: Line[], cart_no: string; text: { _ELEMVAL: boolean } }\n\
             interface Line { sku: string | null, again: Line }\n\
             /** outputType:CSV */\nexport interface Rows { sku: string }\n\
             export function mapFunction(input: Cart): Rows[] { return [] }",
        );
        assert_eq!((&input["title"], &input["inputType"]), (&json!("n:cart"), &json!("XML")));
        assert_eq!(input["namespaces"], json!([{"prefix": "n", "url": "urn:n"}]));
        assert_eq!(input["attributes"], json!({"id": {"type": "number"}}));
        let line = &input["properties"]["n:line"];
        assert_eq!(line["type"], "array");
        assert_eq!(line["items"][0]["properties"]["sku"], json!({"type": "string"}));
        assert_eq!(input["properties"]["cart_no"], json!({"type": "string"}));
        assert_eq!(input["properties"]["text"]["value"], json!({"type": "boolean"}));
        assert_eq!((&output["title"], &output["outputType"]), (&json!("Rows"), &json!("CSV")));
        assert_eq!(
            (&output["type"], &output["items"][0]["properties"]["sku"]),
            (&json!("array"), &json!({"type": "string"}))
        );
    }

    #[test]
    fn without_comments_the_signature_says_the_types() {
        let [input, output] = schemas(
            "interface A { a: string }\nexport function mapFunction(input: A): { b: number } { return {} }",
        );
        assert_eq!((&input["title"], &input["properties"]["a"]["type"]), (&json!("A"), &json!("string")));
        assert_eq!(
            (&output["title"], &output["properties"]["b"]["type"]),
            (&json!("root"), &json!("number"))
        );
    }

    #[test]
    fn what_is_no_mapping_is_refused() {
        for (text, says) in [
            ("export const a = 1", "no function `mapFunction`"),
            ("import { x } from './other'; export function mapFunction(a: A) {}", "imports `./other`"),
        ] {
            assert!(made(text).is_err_and(|why| why.contains(says)), "{text}");
        }
        assert_eq!(source_of("gov:/datamapper/m/m.dmc").as_deref(), Some("gov:/datamapper/m/m.ts"));
        assert_eq!(source_of("m"), None);
    }
}
