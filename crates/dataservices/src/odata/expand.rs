//! `$expand`: rows with the rows that their links lead to.
//!
//! The rows of a link are read for many rows at once, and found again by the values of the foreign key.

use super::filter::Sql;
use super::model::{Column, Link, Model, Table, quoted};
use super::options::{Options, parenthesised, split};
use super::rows::{self, string};
use super::{failed, of, selected};
use crate::fault::Trouble;
use sql::{Dialect, Error, Lease, Reason, Row, TimeSlice};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

/// Most levels of links, and most links in one request.
const DEEP: usize = 5;
const LINKS: usize = 50;

/// Rows whose links are read with one statement. The sizes are few, so that few statements are prepared.
const SIZES: [usize; 4] = [1, 10, 50, 200];

/// A link that is expanded.
pub(super) struct Expand {
    link: Link,
    table: Arc<Table>,
    options: Options,
    columns: Vec<Column>,
    inside: Vec<Expand>,
}

/// The links that `$expand` names.
pub(super) fn read(options: &Options, table: &Table, model: &Model) -> Result<Vec<Expand>, Trouble> {
    let mut left = LINKS;
    links(options, table, model, 1, &mut left)
}

fn links(
    options: &Options,
    table: &Table,
    model: &Model,
    level: usize,
    left: &mut usize,
) -> Result<Vec<Expand>, Trouble> {
    let Some(text) = options.get("expand") else { return Ok(Vec::new()) };
    if level > DEEP {
        return Err(failed(400, format!("$expand: more than {DEEP} levels")));
    }
    let mut all: Vec<Expand> = Vec::new();
    for item in split(text, ',').into_iter().map(str::trim) {
        let (name, inside) = parenthesised(item)?;
        if name.contains('/') {
            return Err(failed(501, format!("$expand: `{name}` is not served here")));
        }
        let given = inside.map(|inside| split(inside, ';')).unwrap_or_default();
        let given = given.into_iter().filter(|option| !option.trim().is_empty());
        let options = given.map(|option| {
            let wrong = || failed(400, format!("$expand: `{option}` is not like $option=value"));
            let (name, value) = option.split_once('=').ok_or_else(wrong)?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        });
        let options = Options(options.collect::<Result<_, Trouble>>()?);
        options.check(&["select", "filter", "orderby", "top", "skip", "count", "expand"])?;
        let unknown = || failed(400, format!("$expand: `{}` has no link `{name}`", table.name));
        let names = |link: &&Link| name == "*" || link.name == name;
        let found: Vec<&Link> = table.links.iter().filter(names).collect();
        if found.is_empty() && name != "*" {
            return Err(unknown());
        }
        for link in found {
            if all.iter().any(|other| other.link.name == link.name) {
                continue;
            }
            *left = left
                .checked_sub(1)
                .ok_or_else(|| failed(400, format!("$expand: more than {LINKS} links")))?;
            let target = Arc::clone(model.table(&link.table).ok_or_else(unknown)?);
            let columns = options.columns(&target)?;
            let inside = links(&options, &target, model, level + 1, left)?;
            all.push(Expand { link: link.clone(), table: target, options: options.clone(), columns, inside });
        }
    }
    Ok(all)
}

/// The columns to read: those that a response has, then those that the links need.
pub(super) fn needed(columns: &[Column], table: &Table, links: &[Expand]) -> Vec<Column> {
    let mut all = columns.to_vec();
    for &(at, _) in links.iter().flat_map(|expand| &expand.link.columns) {
        add(&mut all, &table.columns[at]);
    }
    all
}

fn add(all: &mut Vec<Column>, column: &Column) {
    if !all.iter().any(|other| other.name == column.name) {
        all.push(column.clone());
    }
}

/// `(id,name,parts(number))`: the part of a context URL that says which columns a response has; empty for all.
pub(super) fn select_list(table: &Table, columns: &[Column], links: &[Expand]) -> String {
    let is_part = columns.len() < table.columns.len();
    let mut names: Vec<String> =
        columns.iter().filter(|_| is_part).map(|column| column.name.clone()).collect();
    for expand in links {
        let inside = select_list(&expand.table, &expand.columns, &expand.inside);
        if is_part || !inside.is_empty() {
            let inside = if inside.is_empty() { "()".to_owned() } else { inside };
            names.push(expand.link.name.clone() + &inside);
        }
    }
    if names.is_empty() { String::new() } else { format!("({})", names.join(",")) }
}

/// Reads the rows of links, up to a number of bytes.
pub(super) struct Work<'a> {
    lease: &'a mut Lease,
    /// Bytes that rows and texts may still take, of this many.
    left: usize,
    most: usize,
    slice: TimeSlice,
}

/// The values of a foreign key as texts; `None`: one is NULL, and the link leads nowhere.
type Key = Option<Vec<String>>;

impl<'a> Work<'a> {
    pub fn new(lease: &'a mut Lease, most: usize) -> Work<'a> {
        Work { lease, left: most, most, slice: TimeSlice::default() }
    }

    fn take(&mut self, size: usize) -> Result<(), Trouble> {
        let too_large = || failed(500, format!("the answer is larger than {} bytes", self.most));
        self.left = self.left.checked_sub(size).ok_or_else(too_large)?;
        Ok(())
    }

    /// The rows of a statement.
    pub async fn rows(&mut self, sql: &Sql<'_>, table: &str) -> Result<Vec<Row>, Trouble> {
        let statement = sql.statement()?;
        let (mut rows, mut left, most) = (Vec::new(), self.left, self.most);
        let take = |row: Row| {
            let too_large = || Error::new(Reason::Value, format!("the answer is larger than {most} bytes"));
            left = left.checked_sub(row.size() + 24).ok_or_else(too_large)?;
            rows.push(row);
            Ok(true)
        };
        self.lease.run(&statement, &sql.parameters, take).await.map_err(|error| of(&error, table))?;
        self.left = left;
        Ok(rows)
    }

    /// Rows as JSON objects, with the rows of their links. `needed`: the columns of the rows, which begin with `columns`.
    pub fn written<'w>(
        &'w mut self,
        table: &'w Table,
        columns: &'w [Column],
        needed: &'w [Column],
        links: &'w [Expand],
        rows: &'w [Row],
    ) -> Pin<Box<dyn Future<Output = Result<Vec<String>, Trouble>> + Send + 'w>> {
        Box::pin(async move {
            let mut texts = Vec::with_capacity(rows.len());
            for row in rows {
                let mut text = String::from("{");
                if columns.len() == table.columns.len() {
                    text.push_str("\"@odata.etag\":");
                    string(&rows::etag(row, columns), &mut text);
                    text.push(',');
                }
                rows::members(row, columns, &mut text);
                self.take(text.len())?;
                texts.push(text);
                self.slice.pass().await;
            }
            for expand in links {
                self.link(table, needed, expand, rows, &mut texts).await?;
            }
            texts.iter_mut().for_each(|text| text.push('}'));
            Ok(texts)
        })
    }

    /// Adds the rows of a link to the texts of the rows that have it.
    async fn link(
        &mut self,
        table: &Table,
        needed_here: &[Column],
        expand: &Expand,
        rows: &[Row],
        texts: &mut [String],
    ) -> Result<(), Trouble> {
        let target = &expand.table;
        let here: Vec<usize> = expand
            .link
            .columns
            .iter()
            .filter_map(|&(at, _)| {
                needed_here.iter().position(|column| column.name == table.columns[at].name)
            })
            .collect();
        let mut keys: Vec<Key> = Vec::with_capacity(rows.len());
        for row in rows {
            keys.push(key_of(row, &here));
            self.slice.pass().await;
        }
        // Of each key one row stands for all.
        let mut first: HashMap<&[String], &Row> = HashMap::new();
        for (key, row) in keys.iter().zip(rows) {
            if let Some(key) = key {
                first.entry(key).or_insert(row);
            }
            self.slice.pass().await;
        }
        let mut needed = needed(&expand.columns, target, &expand.inside);
        for &(_, there) in &expand.link.columns {
            add(&mut needed, &target.columns[there]);
        }
        let there: Vec<usize> = expand
            .link
            .columns
            .iter()
            .filter_map(|&(_, at)| needed.iter().position(|column| column.name == target.columns[at].name))
            .collect();
        let mut found: Vec<Row> = Vec::new();
        let mut wanted: Vec<&Row> = first.values().copied().collect();
        while !wanted.is_empty() {
            let size = SIZES.into_iter().find(|&size| size >= wanted.len()).unwrap_or(SIZES[3]);
            let part: Vec<&Row> = wanted.drain(..wanted.len().min(size)).collect();
            let sql = self.statement(expand, &needed, &here, &part, size)?;
            found.extend(self.rows(&sql, &target.name).await?);
        }
        let mut groups: HashMap<Vec<String>, Vec<usize>> = HashMap::new();
        let mut is_known: HashMap<Vec<String>, &[String]> = HashMap::with_capacity(first.len());
        for key in first.keys() {
            is_known.insert(folded(key), key);
            self.slice.pass().await;
        }
        for (number, row) in found.iter().enumerate() {
            self.slice.pass().await;
            let Some(key) = key_of(row, &there) else { continue };
            // A database may take texts for equal that differ in case or in blanks at their end.
            let key = match first.contains_key(key.as_slice()) {
                true => key,
                false => is_known.get(&folded(&key)).map_or(key, |known| known.to_vec()),
            };
            groups.entry(key).or_default().push(number);
        }
        let (top, skip) = (expand.options.number("top")?, expand.options.number("skip")?);
        let as_size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let (top, skip) = (top.map_or(usize::MAX, as_size), skip.map_or(0, as_size));
        let counts = expand.options.counts()?;
        let mut kept: Vec<Row> = Vec::new();
        for &number in groups.values().flat_map(|group| group.iter().skip(skip).take(top)) {
            kept.push(found[number].clone());
            self.slice.pass().await;
        }
        // The texts of the rows in the order of `kept`, which is that of the groups.
        let written = self.written(target, &expand.columns, &needed, &expand.inside, &kept).await?;
        let mut written = written.into_iter();
        let mut of_key: HashMap<&[String], (usize, String)> = HashMap::new();
        for (key, group) in &groups {
            let some = group.iter().skip(skip).take(top).count();
            let texts: Vec<String> = written.by_ref().take(some).collect();
            of_key.insert(key, (group.len(), texts.join(",")));
            self.slice.pass().await;
        }
        for (key, text) in keys.iter().zip(texts) {
            let group = key.as_deref().and_then(|key| of_key.get(key));
            let (count, inside) = group.map_or((0, ""), |(count, inside)| (*count, inside.as_str()));
            self.take(inside.len() + expand.link.name.len() + 8)?;
            if !text.ends_with(['{', ',']) {
                text.push(',');
            }
            if counts && expand.link.many {
                string(&format!("{}@odata.count", expand.link.name), text);
                *text += &format!(":{count},");
            }
            string(&expand.link.name, text);
            text.push(':');
            match expand.link.many {
                true => *text += &format!("[{inside}]"),
                false => text.push_str(if inside.is_empty() { "null" } else { inside }),
            }
            self.slice.pass().await;
        }
        Ok(())
    }

    /// The statement for the rows that a link leads to from `rows`; they stand for `size` rows.
    fn statement<'e>(
        &self,
        expand: &'e Expand,
        needed: &[Column],
        here: &[usize],
        rows: &[&Row],
        size: usize,
    ) -> Result<Sql<'e>, Trouble> {
        let (target, dialect) = (&expand.table, self.lease.pool().dialect());
        let mut sql = Sql::new(target, dialect);
        sql.text =
            format!("SELECT {} FROM {} WHERE (", selected(needed, dialect), quoted(&target.name, dialect));
        for number in 0..size {
            let row = rows[number.min(rows.len() - 1)];
            sql.text.push_str(if number > 0 { " OR (" } else { "(" });
            for (index, (&(_, there), &at)) in expand.link.columns.iter().zip(here).enumerate() {
                sql.text.push_str(if index > 0 { " AND " } else { "" });
                let column = &target.columns[there];
                sql.equals(column, rows::parameter_of(&row.values[at], column)?);
            }
            sql.text.push(')');
        }
        sql.text.push(')');
        expand.options.filter(&mut sql, " AND ")?;
        expand.options.order(&mut sql, target, dialect != Dialect::SqlServer)?;
        Ok(sql)
    }
}

fn key_of(row: &Row, places: &[usize]) -> Key {
    places.iter().map(|&at| row.values.get(at).cloned().and_then(sql::Value::text)).collect()
}

fn folded(key: &[String]) -> Vec<String> {
    key.iter().map(|text| text.trim_end().to_lowercase()).collect()
}
