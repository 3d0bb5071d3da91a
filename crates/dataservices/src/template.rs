//! The description of a result in JSON: `{"rows": {"row": [{"id": "$id(type:integer)", "@orders": "$id->customer"}]}}` says the same as elements do.

use config::{DataCall, DataField, DataOutput, DataResult, DataValue, Key};
use diagnostics::Span;
use serde_json::{Map, Value};

/// What the elements of a result would be.
///
/// # Errors
/// What is wrong with the description.
pub(crate) fn read(of: &DataResult, json: &Key) -> Result<DataResult, String> {
    // Names and columns often stand there without quotes (`{rows: {id: $id}}`), as WSO2 reads them.
    let whole = message::lenient::read(&json.value).map_err(|error| format!("it is no JSON: {error}"))?;
    let Value::Object(whole) = whole else { return Err("it is no object".to_owned()) };
    let (Some((element, inside)), 1) = (whole.iter().next(), whole.len()) else {
        return Err(format!("it has {} members: the one that is around all rows is expected", whole.len()));
    };
    let Value::Object(inside) = inside else { return Err(format!("`{element}` is no object")) };
    let rows = match (inside.iter().next(), inside.len()) {
        (Some((name, Value::Array(rows))), 1) => Some((name, rows)),
        _ => None,
    };
    let (row, inside) = match rows {
        None => (String::new(), inside),
        Some((name, rows)) => match rows.as_slice() {
            [Value::Object(row)] => (name.clone(), row),
            _ => return Err(format!("`{name}` has {} entries: one object, a row, is expected", rows.len())),
        },
    };
    Ok(DataResult { element: element.clone(), row, children: members(inside, json.span)?, ..of.clone() })
}

fn members(of: &Map<String, Value>, span: Span) -> Result<Vec<DataOutput>, String> {
    let mut all = Vec::new();
    for (name, value) in of {
        let key = |value: &str| Key { value: value.to_owned(), span };
        all.push(match (name.strip_prefix('@'), value) {
            (Some(query), value) => {
                let text = value.as_str().unwrap_or_default();
                let mut parameters = Vec::new();
                for one in text.split(',').filter(|one| !one.trim().is_empty()) {
                    let wrong = || format!("`{one}` of `{name}` is not like `$column->parameter`");
                    let (from, to) = one.split_once("->").ok_or_else(wrong)?;
                    let from = from.trim().strip_prefix('$').ok_or_else(wrong)?;
                    parameters.push((key(to.trim()), DataValue::Column(from.trim().to_owned())));
                }
                DataOutput::Call(DataCall { query: key(query), parameters, roles: Vec::new(), span })
            }
            (None, Value::Object(inside)) => DataOutput::Group {
                name: name.clone(),
                namespace: None,
                roles: Vec::new(),
                children: members(inside, span)?,
            },
            (None, Value::Array(_)) => return Err(format!("`{name}` is an array: rows have none")),
            (None, value) => {
                let text = value.as_str().unwrap_or_default().trim();
                let wrong = || format!("`{name}` is not like `$column` or `$column(type:integer)`");
                let text = text.strip_prefix('$').ok_or_else(wrong)?;
                let (column, options) = match text.split_once('(') {
                    None => (text, ""),
                    Some((column, rest)) => (column, rest.strip_suffix(')').ok_or_else(wrong)?),
                };
                let (mut xsd_type, mut roles) = ("string", Vec::new());
                for option in options.split(';').filter(|option| !option.trim().is_empty()) {
                    match option.split_once(':').map(|(name, value)| (name.trim(), value.trim())) {
                        Some(("type", own)) => xsd_type = own,
                        Some(("requiredRoles", own)) => {
                            roles = own.split(',').map(|own| own.trim().to_owned()).collect();
                        }
                        _ => {
                            return Err(format!(
                                "`{option}` of `{name}` is neither `type:…` nor `requiredRoles:…`"
                            ));
                        }
                    }
                }
                DataOutput::Field(DataField {
                    name: key(name),
                    is_attribute: false,
                    value: DataValue::Column(column.trim().to_owned()),
                    xsd_type: xsd_type.to_owned(),
                    optional: false,
                    export: None,
                    namespace: None,
                    roles,
                    span,
                })
            }
        });
    }
    Ok(all)
}
