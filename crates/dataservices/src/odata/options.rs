//! System query options of a request, or of an expanded link.

use super::filter::Sql;
use super::model::{Column, Table};
use crate::fault::Trouble;

use super::failed;

/// Options by their names, with or without `$`.
#[derive(Clone, Debug, Default)]
pub(super) struct Options(pub Vec<(String, String)>);

impl Options {
    pub fn get(&self, name: &str) -> Option<&str> {
        let is_it = |given: &str| given.strip_prefix('$').unwrap_or(given) == name;
        self.0.iter().find(|(given, _)| is_it(given)).map(|(_, value)| value.trim())
    }

    /// Refuses system query options that are not supported here, and those that are given twice (OData 4.01, part 2, 5.1).
    pub fn check(&self, supported: &[&str]) -> Result<(), Trouble> {
        for (at, (name, value)) in self.0.iter().enumerate() {
            let plain = name.strip_prefix('$').unwrap_or(name);
            let is_same = |(other, _): &(String, String)| other.strip_prefix('$').unwrap_or(other) == plain;
            let is_system = name.starts_with('$') || supported.contains(&plain);
            if is_system && self.0[..at].iter().any(is_same) {
                return Err(failed(400, format!("${plain} is given more than once")));
            }
            if plain == "format" {
                if value.trim() != "json" && !value.starts_with("application/json") {
                    return Err(failed(406, "answers are JSON"));
                }
            } else if name.starts_with('$') && !supported.contains(&plain) {
                return Err(failed(501, format!("{name} is not served here")));
            }
        }
        Ok(())
    }

    /// The selected columns.
    pub fn columns(&self, table: &Table) -> Result<Vec<Column>, Trouble> {
        let Some(list) = self.get("select").filter(|list| *list != "*" && !list.is_empty()) else {
            return Ok(table.columns.clone());
        };
        let mut all: Vec<Column> = Vec::new();
        for name in list.split(',').map(str::trim) {
            let unknown = || failed(400, format!("$select: `{}` has no property `{name}`", table.name));
            let Some(at) = table.column(name) else {
                // A selected link is one that is expanded, or only its address.
                match table.links.iter().any(|link| link.name == name) {
                    true => continue,
                    false => return Err(unknown()),
                }
            };
            let column = &table.columns[at];
            if !all.iter().any(|other| other.name == column.name) {
                all.push(column.clone());
            }
        }
        if all.is_empty() {
            // Only links: the keys say whose they are.
            all.extend(table.keys().cloned());
        }
        Ok(if all.is_empty() { table.columns.clone() } else { all })
    }

    /// A number of rows.
    pub fn number(&self, name: &str) -> Result<Option<u64>, Trouble> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let number = text.parse::<u64>().ok().filter(|&number| i64::try_from(number).is_ok());
        number.map(Some).ok_or_else(|| failed(400, format!("${name} is not a number of rows")))
    }

    /// Whether the number of rows is asked for.
    pub fn counts(&self) -> Result<bool, Trouble> {
        match self.get("count") {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(failed(400, "$count is true or false")),
        }
    }

    /// The condition of `$filter`, after `before`.
    pub fn filter(&self, sql: &mut Sql<'_>, before: &str) -> Result<(), Trouble> {
        let Some(filter) = self.get("filter") else { return Ok(()) };
        sql.text.push_str(before);
        sql.condition(filter).map_err(|why| failed(400, format!("$filter: {why}")))
    }

    /// ` ORDER BY …`: as `$orderby` says, or where `needs` an order, by the key.
    pub fn order(&self, sql: &mut Sql<'_>, table: &Table, needs: bool) -> Result<(), Trouble> {
        if let Some(order) = self.get("orderby") {
            sql.text.push_str(" ORDER BY ");
            return sql.order(order).map_err(|why| failed(400, format!("$orderby: {why}")));
        }
        for (number, key) in table.keys().enumerate().filter(|_| needs) {
            sql.text.push_str(if number == 0 { " ORDER BY " } else { ", " });
            sql.name(key);
        }
        Ok(())
    }
}

/// Splits a text at `separator`, but not within parentheses and texts in quotes.
pub(super) fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut from, mut depth, mut is_quoted) = (Vec::new(), 0, 0_usize, false);
    for (at, c) in text.char_indices() {
        match c {
            '\'' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            c if c == separator && depth == 0 => {
                parts.push(&text[from..at]);
                from = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

/// A name and what stands in parentheses behind it.
///
/// # Errors
/// The parentheses do not end at the end of the text.
pub(super) fn parenthesised(text: &str) -> Result<(&str, Option<&str>), Trouble> {
    let Some(at) = text.find('(') else { return Ok((text, None)) };
    let inside = text[at + 1..].strip_suffix(')');
    Ok((&text[..at], Some(inside.ok_or_else(|| failed(400, format!("`)` is missing in `{text}`")))?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_split_outside_of_parentheses_and_quotes() {
        assert_eq!(split("a,b(c,d),'e,(f'", ','), ["a", "b(c,d)", "'e,(f'"]);
        assert_eq!(split("", ','), [""]);
        assert_eq!(split("a))b;c", ';'), ["a))b", "c"]);
        assert_eq!(parenthesised("a(b(c))").unwrap(), ("a", Some("b(c)")));
        assert_eq!(parenthesised("a").unwrap(), ("a", None));
        assert!(parenthesised("a(b").is_err() && parenthesised("a(b)c").is_err());
    }
}
