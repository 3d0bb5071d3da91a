//! The schemas of a data mapping, and by them: XML and CSV as what the mapping reads, and what it returns as XML, JSON
//! and CSV.
//!
//! | written | in the mapping |
//! |---|---|
//! | element `a`, `p:a` (its namespace by the schema's `namespaces`) | member `a`, `p_a` |
//! | attribute `b` | member `attr_b` |
//! | text beside attributes | member `_ELEMVAL` |
//! | an element that is an `array` in the schema | an array, however many there are |

use serde_json::{Map, Value as Json};
use xml::{Document, NodeId, NodeKind};

/// Deepest nesting that is read or written.
const MAX_DEPTH: usize = 128;
/// What the names of attributes begin with.
pub(super) const ATTRIBUTE: &str = "attr_";
/// The text of an element that has attributes.
pub(super) const TEXT: &str = "_ELEMVAL";

/// The JSON Schema of one side, in the dialect of WSO2's editor.
pub(super) struct Schema(Json);

/// The part of a name behind its prefix.
pub(super) fn local(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}

/// A name as JavaScript may have it.
pub(super) fn identifier(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || matches!(c, '_' | '$') { c } else { '_' }).collect()
}

/// The named members of a schema: its `properties`, or its `attributes`.
fn named_members<'s>(schema: &'s Json, list: &str) -> Option<&'s Map<String, Json>> {
    schema.get(list)?.as_object()
}

/// The name of a schema and the schema, for a member of the mapping.
fn member<'s>(schema: &'s Json, list: &str, name: &str) -> Option<(&'s str, &'s Json)> {
    let members = named_members(schema, list)?;
    if let Some((key, schema)) = members.get_key_value(name) {
        return Some((key, schema));
    }
    members.iter().find(|(key, _)| identifier(key) == name).map(|(key, schema)| (key.as_str(), schema))
}

fn kind(schema: &Json) -> &str {
    match schema.get("type") {
        Some(Json::String(kind)) => kind,
        Some(Json::Array(kinds)) => {
            kinds.iter().filter_map(Json::as_str).find(|kind| *kind != "null").unwrap_or("")
        }
        _ => "",
    }
}

/// The schema of the items of an array.
fn items(schema: &Json) -> &Json {
    match schema.get("items") {
        Some(Json::Array(items)) => items.first().unwrap_or(&Json::Null),
        Some(one) => one,
        None => &Json::Null,
    }
}

fn too_deep(depth: usize) -> Result<(), String> {
    match depth > MAX_DEPTH {
        true => Err(format!("it nests deeper than {MAX_DEPTH}")),
        false => Ok(()),
    }
}

impl Schema {
    /// Reads the schema of the `side`.
    pub(super) fn read(bytes: &[u8], side: &str) -> Result<Schema, String> {
        let schema: Json = serde_json::from_slice(bytes)
            .map_err(|error| format!("the {side} schema is not JSON: {error}"))?;
        match schema {
            Json::Object(_) => Ok(Schema(schema)),
            _ => Err(format!("the {side} schema is not a JSON object")),
        }
    }

    /// The name of the root.
    pub(super) fn title(&self) -> &str {
        self.member("title").unwrap_or("root")
    }

    /// A text in the schema.
    pub(super) fn member(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Json::as_str)
    }

    fn namespaces(&self) -> impl Iterator<Item = (&str, &str)> {
        let namespaces = self.0.get("namespaces").and_then(Json::as_array).into_iter().flatten();
        namespaces.filter_map(|namespace| {
            Some((namespace.get("prefix")?.as_str()?, namespace.get("url")?.as_str()?))
        })
    }

    /// The name of a node with the prefix that the schema has for its namespace.
    fn name(&self, document: &Document, node: NodeId) -> String {
        let local = document.local(node);
        match self.namespaces().find(|(_, url)| *url == document.namespace(node)) {
            Some((prefix, _)) if !prefix.is_empty() => format!("{prefix}:{local}"),
            _ => local.to_owned(),
        }
    }

    /// An element as the mapping reads it.
    pub(super) fn of_xml(&self, document: &Document, node: NodeId) -> Result<Json, String> {
        self.element(document, node, &self.0, 0)
    }

    fn element(
        &self,
        document: &Document,
        node: NodeId,
        schema: &Json,
        depth: usize,
    ) -> Result<Json, String> {
        too_deep(depth)?;
        let children: Vec<NodeId> =
            document.children(node).filter(|&child| document.kind(child) == NodeKind::Element).collect();
        let attributes: Vec<NodeId> = document
            .attributes(node)
            .filter(|&attribute| document.namespace(attribute) != "http://www.w3.org/2001/XMLSchema-instance")
            .collect();
        let composed = matches!(kind(schema), "object" | "array")
            || (kind(schema).is_empty() && !(children.is_empty() && attributes.is_empty()));
        let text = document.string_value(node);
        if !composed {
            return simple(&text, schema, document.local(node));
        }
        // An array of the root stands for the root itself: its items are what is in it.
        let schema = if kind(schema) == "array" { items(schema) } else { schema };
        let mut made = Map::new();
        for attribute in attributes {
            let name = self.name(document, attribute);
            let described = member(schema, "attributes", &name)
                .or_else(|| member(schema, "properties", &format!("{ATTRIBUTE}{name}")))
                .or_else(|| member(schema, "properties", &format!("@{name}")));
            let described = described.map_or(&Json::Null, |(_, described)| described);
            let value = simple(document.text(attribute), described, &name)?;
            made.insert(format!("{ATTRIBUTE}{}", identifier(&name)), value);
        }
        if children.is_empty() && !text.trim().is_empty() {
            let described = schema.get("value").unwrap_or(&Json::Null);
            made.insert(TEXT.to_owned(), simple(&text, described, document.local(node))?);
        }
        for child in children {
            let name = self.name(document, child);
            let described = member(schema, "properties", &name).map(|(_, described)| described);
            let key = identifier(&name);
            match described {
                Some(list) if kind(list) == "array" => {
                    let item = self.element(document, child, items(list), depth + 1)?;
                    match made.entry(key).or_insert_with(|| Json::Array(Vec::new())) {
                        Json::Array(values) => values.push(item),
                        other => *other = item,
                    }
                }
                described => {
                    let value = self.element(document, child, described.unwrap_or(&Json::Null), depth + 1)?;
                    made.insert(key, value);
                }
            }
        }
        Ok(Json::Object(made))
    }

    /// Rows as an array of objects, whose names are those of the schema in order. A first row that has these names
    /// is their heading.
    pub(super) fn of_csv(&self, text: &str) -> Result<Json, String> {
        let row = if kind(&self.0) == "array" { items(&self.0) } else { &self.0 };
        let columns: Vec<(&String, &Json)> = named_members(row, "properties").into_iter().flatten().collect();
        let mut rows = rows(text);
        if rows.is_empty() {
            return Err("the text is empty".to_owned());
        }
        let heading = |first: &Vec<String>| {
            !columns.is_empty()
                && first.len() == columns.len()
                && first.iter().zip(&columns).all(|(field, (name, _))| field.trim() == *name)
        };
        if rows.first().is_some_and(heading) {
            rows.remove(0);
        }
        let mut made = Vec::with_capacity(rows.len());
        for fields in rows {
            let mut object = Map::new();
            for (index, field) in fields.iter().enumerate() {
                let (name, described) = match columns.get(index) {
                    Some((name, described)) => (identifier(name), *described),
                    None => (format!("column{}", index + 1), &Json::Null),
                };
                let value = simple(field, described, &name)?;
                object.insert(name, value);
            }
            made.push(Json::Object(object));
        }
        Ok(Json::Array(made))
    }

    /// What the mapping made, with the names and types of the schema.
    pub(super) fn json(&self, made: Json) -> Json {
        self.typed(made, &self.0, 0)
    }

    /// A value with the types of the schema, where it can have them.
    fn typed(&self, value: Json, schema: &Json, depth: usize) -> Json {
        if depth > MAX_DEPTH {
            return value;
        }
        match (value, kind(schema)) {
            (Json::Object(members), _) => {
                let renamed =
                    members.into_iter().map(|(key, value)| match member(schema, "properties", &key) {
                        Some((name, described)) => (
                            self.name_of_member(name, &key).to_owned(),
                            self.typed(value, described, depth + 1),
                        ),
                        None => (key, value),
                    });
                Json::Object(renamed.collect())
            }
            (Json::Array(values), _) => {
                let described = items(schema);
                Json::Array(values.into_iter().map(|item| self.typed(item, described, depth + 1)).collect())
            }
            (value @ (Json::Number(_) | Json::Bool(_)), "string") => Json::from(plain(&value)),
            (Json::String(text), "number" | "integer") => match serde_json::from_str(text.trim()) {
                Ok(number @ Json::Number(_)) => number,
                _ => Json::String(text),
            },
            (Json::String(text), "boolean") if matches!(text.as_str(), "true" | "false") => {
                Json::Bool(text == "true")
            }
            (value, _) => value,
        }
    }

    /// What the mapping made as an element; answers with it.
    pub(super) fn xml(&self, made: &Json, document: &mut Document) -> Result<NodeId, String> {
        if !made.is_object() {
            return Err("what the mapping returned is not an object, so it is not XML".to_owned());
        }
        let root = self.open(self.title(), Document::ROOT, document)?;
        for (prefix, url) in self.namespaces() {
            if !prefix.is_empty() && xml::is_ncname(prefix) {
                document.declare_namespace(root, prefix, url);
            }
        }
        self.fill(made, &self.0, root, document, 0)?;
        Ok(root)
    }

    /// The name of a member by that in the schema: the editor writes `p:a` also for a member `p_a`, where `p` is no prefix.
    fn name_of_member<'n>(&self, name: &'n str, key: &'n str) -> &'n str {
        match name.split_once(':') {
            Some((prefix, _))
                if !self.namespaces().any(|(declared, _)| declared == prefix) && identifier(name) == key =>
            {
                key
            }
            _ => name,
        }
    }

    /// A new element by its name in the schema.
    fn open(&self, name: &str, parent: NodeId, document: &mut Document) -> Result<NodeId, String> {
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        if !xml::is_ncname(local) {
            return Err(format!("`{name}` is not a name of an element"));
        }
        let declared =
            self.namespaces().find(|(declared_prefix, _)| *declared_prefix == prefix && !prefix.is_empty());
        let (prefix, url) = declared.unwrap_or(("", ""));
        Ok(document.append_element(parent, prefix, url, local))
    }

    fn fill(
        &self,
        value: &Json,
        schema: &Json,
        node: NodeId,
        document: &mut Document,
        depth: usize,
    ) -> Result<(), String> {
        too_deep(depth)?;
        let Json::Object(members) = value else {
            let text = plain(value);
            if !text.is_empty() {
                document.append_text(node, &text);
            }
            return Ok(());
        };
        for (key, value) in
            members.iter().filter(|(key, value)| key.starts_with(ATTRIBUTE) && !value.is_null())
        {
            let key = &key[ATTRIBUTE.len()..];
            let described = member(schema, "attributes", key).map_or(key, |(name, _)| name);
            let name = self.name_of_member(described, key);
            let (prefix, local) = name.split_once(':').unwrap_or(("", name));
            if !xml::is_ncname(local) {
                return Err(format!("`{name}` is not a name of an attribute"));
            }
            let declared = self
                .namespaces()
                .find(|(declared_prefix, _)| *declared_prefix == prefix && !prefix.is_empty());
            let (prefix, url) = declared.unwrap_or(("", ""));
            document.set_attribute(node, prefix, url, local, &plain(value));
        }
        for (key, value) in members {
            if key.starts_with(ATTRIBUTE) || value.is_null() {
                continue;
            }
            if key == TEXT {
                document.append_text(node, &plain(value));
                continue;
            }
            let (name, described) = member(schema, "properties", key).unwrap_or((key, &Json::Null));
            let name = self.name_of_member(name, key);
            let (values, described) = match value {
                Json::Array(values) => {
                    (values.as_slice(), if kind(described) == "array" { items(described) } else { described })
                }
                one => (
                    std::slice::from_ref(one),
                    if kind(described) == "array" { items(described) } else { described },
                ),
            };
            for item in values {
                let child = self.open(name, node, document)?;
                self.fill(item, described, child, document, depth + 1)?;
            }
        }
        Ok(())
    }
}

/// A text as a value of the type that a schema says.
fn simple(text: &str, schema: &Json, name: &str) -> Result<Json, String> {
    let trimmed = text.trim();
    match kind(schema) {
        "number" | "integer" if trimmed.is_empty() => Ok(Json::Null),
        "number" | "integer" => match serde_json::from_str::<serde_json::Number>(trimmed) {
            Ok(number) => Ok(Json::Number(number)),
            Err(_) => {
                Err(format!("`{name}` is not a number: {}", trimmed.chars().take(40).collect::<String>()))
            }
        },
        "boolean" => Ok(Json::Bool(trimmed.eq_ignore_ascii_case("true"))),
        "null" => Ok(Json::Null),
        _ => Ok(Json::from(text)),
    }
}

/// The text of a value without parts.
fn plain(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Rows of fields (RFC 4180); an empty line is none.
fn rows(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut quoted, mut was_quoted) = (false, false);
    let mut chars = text.chars().peekable();
    let end_row =
        |row: &mut Vec<String>, field: &mut String, was_quoted: &mut bool, rows: &mut Vec<Vec<String>>| {
            if !row.is_empty() || !field.is_empty() || *was_quoted {
                row.push(std::mem::take(field));
                rows.push(std::mem::take(row));
            }
            *was_quoted = false;
        };
    while let Some(character) = chars.next() {
        match character {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if field.is_empty() => (quoted, was_quoted) = (true, true),
            other if quoted => field.push(other),
            ',' => {
                row.push(std::mem::take(&mut field));
                was_quoted = false;
            }
            '\r' => {}
            '\n' => end_row(&mut row, &mut field, &mut was_quoted, &mut rows),
            other => field.push(other),
        }
    }
    end_row(&mut row, &mut field, &mut was_quoted, &mut rows);
    rows
}

/// An array of objects (or one) as rows of their values.
pub(super) fn csv(made: &Json) -> Result<String, String> {
    let rows = match made {
        Json::Array(rows) => rows.as_slice(),
        one => std::slice::from_ref(one),
    };
    let mut out = String::new();
    for row in rows {
        let fields: Vec<&Json> = match row {
            Json::Object(members) => members.values().collect(),
            Json::Array(values) => values.iter().collect(),
            one => vec![one],
        };
        for (index, field) in fields.into_iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            if field.is_object() || field.is_array() {
                return Err("what the mapping returned nests, so it is not CSV".to_owned());
            }
            let text = plain(field);
            if text.contains([',', '"', '\n', '\r']) {
                out.push('"');
                out.push_str(&text.replace('"', "\"\""));
                out.push('"');
            } else {
                out.push_str(&text);
            }
        }
        out.push('\n');
    }
    Ok(out)
}
