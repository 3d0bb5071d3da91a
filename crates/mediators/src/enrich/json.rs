//! Both sides speak JSON: values go from place to place.

use super::{Action, Enrich, Source, Target, filled, invalid_target};
use flow::{Context, Expression, Fault};
use message::Value;
use message::jsonpath::JsonPath;
use serde_json::Value as Json;
use std::sync::Arc;

impl Enrich {
    pub(super) fn json(&self, context: &mut Context) -> Result<(), Fault> {
        let mut root = context.payload.json()?.cloned().unwrap_or(Json::Null);
        if let Source::Paths(paths) = &self.source {
            return self.remove(paths, root, context);
        }
        let value = self.json_source(&root, context)?;
        if !self.clone
            && let Source::Custom(expression) = &self.source
            && let Some(path) = expression.json_path()
            && path.delete(&mut root)? > 0
        {
            context.payload.set_json_value(root.clone());
        }
        match (&self.target, self.action) {
            (Target::Custom(_) | Target::Body | Target::Property(..), Action::Sibling) => {
                skip("JSON has no siblings", context)
            }
            (Target::Custom(expression), action) => put(value, fixed(expression)?, action, root, context),
            (Target::Body, Action::Replace) if value.is_object() || value.is_array() => {
                context.payload.set_json_value(value);
                Ok(())
            }
            (Target::Body, _) => skip("only an object or array can replace a JSON payload", context),
            (Target::Property(_, name), Action::Child) => {
                match context.properties.get(name).and_then(json_of) {
                    Some(Json::Array(mut items)) => {
                        items.push(value);
                        context.properties.set(Arc::clone(name), Value::Json(Arc::new(Json::Array(items))));
                        Ok(())
                    }
                    _ => skip("the property holds no JSON array", context),
                }
            }
            (Target::Property(_, name), _) => {
                context.properties.set(Arc::clone(name), property_of(value));
                Ok(())
            }
            (Target::Key(parent, member), _) => rename(value, parent, member, root, context),
            (Target::Envelope, _) => Err(invalid_target()),
        }
    }

    fn json_source(&self, root: &Json, context: &mut Context) -> Result<Json, Fault> {
        let missing = || Fault::new("Failed to get the source for Enriching");
        match &self.source {
            Source::Custom(expression) => expression.json_values(context)?.ok_or_else(missing),
            Source::Body => Ok(root.clone()),
            Source::Property(name) => {
                let value = context.properties.get(name).ok_or_else(missing)?;
                Ok(json_of(value).unwrap_or_else(|| Json::String(value.to_string())))
            }
            Source::Text { pieces, .. } => {
                let text = filled(pieces, context, |text, out| match serde_json::from_str::<Json>(text) {
                    Ok(value) if value.is_object() || value.is_array() => out.push_str(text),
                    _ => message::json::escape(text, out),
                })?;
                Ok(serde_json::from_str(&text).unwrap_or(Json::String(text)))
            }
            Source::Entry(key) => {
                let value = context.plan().entry(key).ok_or_else(missing)?.value;
                Ok(json_of(&value).unwrap_or_else(|| Json::String(value.to_string())))
            }
            Source::Paths(_) | Source::Envelope | Source::Element(_) => Err(missing()),
        }
    }

    fn remove(&self, paths: &[JsonPath], root: Json, context: &mut Context) -> Result<(), Fault> {
        let mut value = match &self.target {
            Target::Property(_, name) => context
                .properties
                .get(name)
                .and_then(json_of)
                .ok_or_else(|| Fault::new(format!("enrich: the property {name} holds no JSON")))?,
            Target::Body => root,
            _ => return Err(invalid_target()),
        };
        for path in paths {
            if path.is_root() {
                value = Json::Object(serde_json::Map::new());
            } else if path.delete(&mut value)? == 0 && path.is_definite() {
                return Err(Fault::new(format!("enrich: the path {} leads nowhere", path.source())));
            }
        }
        match &self.target {
            Target::Property(_, name) => context.properties.set(Arc::clone(name), property_of(value)),
            _ => context.payload.set_json_value(value),
        }
        Ok(())
    }
}

/// Where nothing can be done, nothing is done.
fn skip(why: &str, context: &Context) -> Result<(), Fault> {
    tracing::error!(message_id = %context.message_id(), place = context.place(), "enrich does nothing: {why}");
    Ok(())
}

/// Puts a value where a path leads: in the place of what is there, or into it.
fn put(
    value: Json,
    path: &JsonPath,
    action: Action,
    mut root: Json,
    context: &mut Context,
) -> Result<(), Fault> {
    let mut refused = false;
    let changed = if action == Action::Child {
        path.update(&mut root, |found| match (found, &value) {
            (Json::Array(items), value) => items.push(value.clone()),
            (Json::Object(members), Json::Object(more)) => members.extend(more.clone()),
            _ => refused = true,
        })?
    } else {
        path.set(&mut root, &value)?
    };
    if changed == 0 && path.is_definite() {
        return Err(Fault::new(format!("enrich: the path {} leads nowhere", path.source())));
    }
    if refused {
        let why =
            format!("an array takes any child, an object another object; {} leads to neither", path.source());
        skip(&why, context)?;
    }
    context.payload.set_json_value(root);
    Ok(())
}

/// Gives a member the name that a value is.
fn rename(
    value: Json,
    parent: &JsonPath,
    member: &str,
    mut root: Json,
    context: &mut Context,
) -> Result<(), Fault> {
    let new = match value {
        Json::String(text) => text,
        Json::Number(_) | Json::Bool(_) => value.to_string(),
        _ => return Err(Fault::new("enrich: the new name of a member has to be a text")),
    };
    let mut renamed = false;
    parent.update(&mut root, |object| {
        if let Json::Object(members) = object
            && let Some(value) = members.shift_remove(member)
        {
            members.insert(new.clone(), value);
            renamed = true;
        }
    })?;
    if !renamed {
        return Err(Fault::new(format!("enrich: there is no member {member} to rename")));
    }
    context.payload.set_json_value(root);
    Ok(())
}

fn fixed(expression: &Expression) -> Result<&JsonPath, Fault> {
    expression.json_path().ok_or_else(|| {
        Fault::new(format!("{} cannot be a target: it is not a plain JSONPath", expression.source()))
    })
}

/// A property as JSON, if it is some.
fn json_of(value: &Value) -> Option<Json> {
    match value {
        Value::Json(json) => Some((**json).clone()),
        other => serde_json::from_str(&other.to_string()).ok(),
    }
}

/// JSON as a property: its text, strings in quotes.
fn property_of(value: Json) -> Value {
    match value {
        Json::String(_) => Value::from(value.to_string()),
        other => Value::Json(Arc::new(other)),
    }
}
