//! Data sources: `<datasource>` of `*-datasources.xml` and of projects, `[[datasource]]` of `deployment.toml`.

use super::Reading;
use crate::element::Element;
use crate::read::{self, Shape};
use crate::value::Key;
use diagnostics::{Diagnostic, FileId, Span};
use toml::de::{DeTable, DeValue};

/// A database that mediators and data services name.
#[derive(Clone, Debug)]
pub struct DataSource {
    /// Its name.
    pub name: Key,
    /// The JNDI name (`jdbc/Orders`), a second name.
    pub jndi: Option<String>,
    /// The settings by name: `url`, `username`, `password`, `driverClassName`, options of the pool. Secrets are not resolved.
    pub values: Vec<(String, Key)>,
    /// The whole of it.
    pub span: Span,
}

pub(crate) const SHAPE: Shape =
    Shape { attributes: &["name"], elements: &["name", "description", "jndiConfig", "definition"] };

impl DataSource {
    /// A value by one of its names, in any case.
    pub fn value(&self, names: &[&str]) -> Option<&Key> {
        let found =
            self.values.iter().find(|(key, _)| names.iter().any(|name| key.eq_ignore_ascii_case(name)));
        found.map(|(_, value)| value)
    }

    /// The finding for one that says of no database where it is.
    pub(crate) fn without_address(&self) -> Option<Diagnostic> {
        if self.value(&["url", "jdbcUrl", "dataSourceClassName"]).is_some() {
            return None;
        }
        let message = format!("the data source `{}` has no `url`", self.name.value);
        let found =
            Diagnostic::warning("missing-attribute", message).at(self.name.span, "no step can use it");
        Some(match diagnostics::nearest("url", self.values.iter().map(|(name, _)| name.as_str())) {
            Some(near) => found.help(format!("is `{near}` meant to be `url`?")),
            None => found,
        })
    }

    /// Whether `name` is its name or its JNDI name.
    pub fn is_named(&self, name: &str) -> bool {
        let name = name.trim();
        let name = name.strip_prefix("java:comp/env/").or_else(|| name.strip_prefix("java:")).unwrap_or(name);
        self.name.value == name || self.jndi.as_deref() == Some(name)
    }

    pub(crate) fn parse(element: &Element, reading: &mut Reading<'_>) -> Option<DataSource> {
        SHAPE.check(element, reading.diagnostics);
        let name = read::child_text(element, "name").or_else(|| read::optional(element, "name"));
        let Some(name) = name else {
            let error = Diagnostic::error("missing-element", "a data source needs a `name`");
            reading.diagnostics.push(error.at(element.start_tag(), "without a name it cannot be used"));
            return None;
        };
        let jndi =
            element.child("jndiConfig").and_then(|j| read::child_text(j, "name")).map(|name| name.value);
        let mut values = Vec::new();
        let definition = element.child("definition");
        for child in definition.and_then(|d| d.child("configuration")).into_iter().flat_map(Element::elements)
        {
            if child.local() == "dataSourceProps" {
                for property in child.children_named("property") {
                    let name = property.attr("name").unwrap_or_default();
                    values.push((option(name), value(property, reading)));
                }
            } else {
                values.push((child.local().to_owned(), value(child, reading)));
            }
        }
        let source = DataSource { name, jndi, values, span: element.span() };
        let is_database = definition.and_then(|d| d.attr("type")).is_none_or(|kind| kind.trim() == "RDBMS");
        reading.diagnostics.extend(source.without_address().filter(|_| is_database));
        Some(source)
    }

    /// The data sources of a `deployment.toml`. Errors in it are reported where the other settings are read.
    pub(crate) fn of_settings(text: &str, file: FileId) -> Vec<DataSource> {
        let Ok(table) = DeTable::parse(text) else { return Vec::new() };
        let at = |range: std::ops::Range<usize>| Span::new(file, range.start, range.end);
        let text_of = |value: &DeValue<'_>| match value {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Integer(number) => Some(number.as_str().to_owned()),
            DeValue::Boolean(value) => Some(value.to_string()),
            _ => None,
        };
        let list = table.get_ref().get("datasource").map(|list| list.get_ref());
        let Some(DeValue::Array(list)) = list else { return Vec::new() };
        let mut all = Vec::new();
        for table_entry in list.iter() {
            let (DeValue::Table(table), span) = (table_entry.get_ref(), at(table_entry.span())) else {
                continue;
            };
            let (mut values, mut name) = (Vec::new(), None);
            for (key, value) in table.iter() {
                let span = at(value.span());
                if let DeValue::Table(options) = value.get_ref() {
                    let options = options.iter().filter_map(|(key, value)| {
                        let key_value = Key { value: text_of(value.get_ref())?, span: at(value.span()) };
                        Some((option(key.get_ref()), key_value))
                    });
                    values.extend(options);
                    continue;
                }
                let Some(value) = text_of(value.get_ref()) else { continue };
                match key.get_ref().as_ref() {
                    "id" => name = Some(Key { value, span }),
                    "driver" => values.push(("driverClassName".to_owned(), Key { value, span })),
                    // Not an option of the pool.
                    "jmx_enable" | "description" => {}
                    other => values.push((other.to_owned(), Key { value, span })),
                }
            }
            let Some(name) = name else { continue };
            all.push(DataSource { jndi: Some(format!("jdbc/{}", name.value)), name, values, span });
        }
        all
    }
}

/// The name of an option. Sources for distributed transactions have those of the driver behind `xaProperties.`.
fn option(name: &str) -> String {
    let name = name.trim();
    name.strip_prefix("xaProperties.").unwrap_or(name).to_owned()
}

/// A text, or the secret alias in its place.
pub(super) fn value(element: &Element, reading: &mut Reading<'_>) -> Key {
    let span = element.text_span();
    // The attribute `secretAlias` in any namespace (`svns:secretAlias`).
    match element.attributes().iter().find(|attribute| &*attribute.name.local == "secretAlias") {
        Some(alias) => Key { value: format!("$secret{{{}}}", alias.value.trim()), span },
        None => {
            let text = element.text();
            let text = text.trim();
            let key = Key { value: text.to_owned(), span };
            // A name of deployment.toml is resolved where the data source is used.
            if text.starts_with("$secret{") {
                key
            } else {
                reading.injector.resolve(key, reading.diagnostics)
            }
        }
    }
}
