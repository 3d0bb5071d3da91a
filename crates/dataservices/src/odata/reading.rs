//! Reads rows, and values of them.

use super::filter::Sql;
use super::model::{Column, Model, Table, quoted};
use super::rows::{self, Out};
use super::{Asked, JSON, Place, expand, failed, first_row, of, selected};
use crate::fault::Trouble;
use crate::output::Pipe;
use crate::service::{ROOM, Reply};
use serde_json::Value as Json;
use sql::{Dialect, Lease, Parameter, Row, Statement};
use std::sync::Arc;

/// Most rows of a page.
const MOST: u64 = 1_000_000;

/// A collection that is about to be read.
pub(super) struct Page {
    statement: Statement,
    parameters: Vec<Parameter>,
    table: String,
    out: Out,
    /// Where the rows after this page are.
    next: Option<String>,
}

impl Page {
    pub fn pipe(&self) -> &Arc<Pipe> {
        &self.out.pipe
    }

    /// Reads its rows into the pipe.
    pub async fn run(&mut self, lease: &mut Lease) -> Result<(), Trouble> {
        let ran = lease.run(&self.statement, &self.parameters, &mut self.out).await;
        ran.map_err(|error| of(&error, &self.table))?;
        self.out.text.push(']');
        if let Some(next) = self.next.as_ref().filter(|_| self.out.has_more) {
            self.out.text += &format!(",\"@odata.nextLink\":{}", Json::from(next.as_str()));
        }
        self.out.text.push('}');
        self.out.pipe.put(&mut self.out.text);
        Ok(())
    }
}

/// The part of a collection that a request wants.
struct Extent {
    /// Rows of a page, if the client prefers pages.
    page: Option<u64>,
    skip: u64,
    /// Most rows to read.
    limit: Option<u64>,
    next: Option<String>,
}

impl Asked<'_> {
    /// Which rows, by `$top`, `$skip`, `$skiptoken` and the size of a page that the client prefers.
    fn extent(&self) -> Result<Extent, Trouble> {
        let (top, skip) = (self.options.number("top")?, self.options.number("skip")?.unwrap_or(0));
        let wrong = || failed(400, "$skiptoken is not one of a nextLink");
        let number = |text: &str| text.parse::<u64>().ok().filter(|&number| i64::try_from(number).is_ok());
        let token = match self.options.get("skiptoken") {
            None => None,
            Some(token) => {
                let (before, size) = token.split_once('-').ok_or_else(wrong)?;
                Some((number(before).ok_or_else(wrong)?, number(size).ok_or_else(wrong)?))
            }
        };
        let preferred = self.preference("maxpagesize").and_then(number);
        let page = preferred.or(token.map(|(_, size)| size)).filter(|&size| size > 0).map(|s| s.min(MOST));
        let before = token.map_or(0, |(before, _)| before);
        let top = top.map(|top| top.saturating_sub(before));
        let skip = skip.saturating_add(before).min(i64::MAX as u64);
        let Some(size) = page.filter(|&size| top.is_none_or(|top| size < top)) else {
            return Ok(Extent { page: None, skip, limit: top, next: None });
        };
        let mut next = format!("{}{}?", self.base, self.path);
        for (name, value) in &self.options.0 {
            if name.strip_prefix('$').unwrap_or(name) != "skiptoken" {
                next += &format!("{}=", name.replace(['&', '='], ""));
                message::form::encode(value, &mut next);
                next.push('&');
            }
        }
        next += &format!("$skiptoken={}-{size}", before + size);
        // One more shows whether there is another page.
        Ok(Extent { page: Some(size), skip, limit: Some(size + 1), next: Some(next) })
    }

    /// `SELECT …` of a collection.
    fn begin<'t>(
        &self,
        dialect: Dialect,
        place: &'t Place<'_>,
        columns: &[Column],
        extent: &Extent,
    ) -> Result<Sql<'t>, Trouble> {
        let table = &place.table;
        let mut sql = Sql::new(table, dialect);
        sql.text = format!("SELECT {} FROM {}", selected(columns, dialect), quoted(&table.name, dialect));
        let is_part = place.condition(&mut sql, " WHERE ")?;
        self.options.filter(&mut sql, if is_part { " AND " } else { " WHERE " })?;
        let pages = extent.limit.is_some() || extent.skip > 0;
        self.options.order(&mut sql, table, pages)?;
        if pages {
            match (extent.limit, dialect) {
                (Some(limit), _) => sql.text += &format!(" LIMIT {limit}"),
                (None, Dialect::MySql) => sql.text += " LIMIT 9223372036854775807",
                (None, Dialect::Sqlite) => sql.text += " LIMIT -1",
                (None, Dialect::Postgres | Dialect::SqlServer) => {}
            }
            sql.text += &format!(" OFFSET {}", extent.skip);
        }
        Ok(sql)
    }

    /// `{"@odata.context": …, "value": [`
    async fn opening(
        &self,
        lease: &mut Lease,
        place: &Place<'_>,
        context: String,
    ) -> Result<String, Trouble> {
        let mut text = format!("{{\"@odata.context\":{}", Json::from(context));
        if self.options.counts()? {
            text += &format!(",\"@odata.count\":{}", self.count(lease, place).await?);
        }
        Ok(text + ",\"value\":[")
    }

    /// A collection without the rows of links. `held`: most bytes of a response that is complete before it is sent.
    pub(super) async fn page(
        &self,
        lease: &mut Lease,
        place: &Place<'_>,
        held: Option<usize>,
    ) -> Result<(Page, Reply), Trouble> {
        self.options.check(&["filter", "select", "orderby", "top", "skip", "count", "skiptoken"])?;
        let table = &place.table;
        let (columns, extent) = (self.options.columns(table)?, self.extent()?);
        let sql = self.begin(lease.pool().dialect(), place, &columns, &extent)?;
        let text = self.opening(lease, place, self.context(table, &columns, &[], false)).await?;
        let out = Out {
            text,
            pipe: Pipe::new(ROOM),
            is_whole: columns.len() == table.columns.len(),
            columns,
            count: 0,
            page: extent.page,
            has_more: false,
            most: held,
        };
        let statement = sql.statement()?;
        let page =
            Page { statement, parameters: sql.parameters, table: table.name.clone(), out, next: extent.next };
        Ok((page, self.applied(Reply::new(200, JSON, String::new()), extent.page)))
    }

    /// Says which preference counted.
    fn applied(&self, reply: Reply, page: Option<u64>) -> Reply {
        match page.filter(|_| self.preference("maxpagesize").is_some()) {
            Some(size) => reply.with("Preference-Applied", &format!("odata.maxpagesize={size}")),
            None => reply,
        }
    }

    /// A collection with the rows of links, up to `most` bytes.
    pub(super) async fn expanded_page(
        &self,
        lease: &mut Lease,
        model: &Model,
        place: &Place<'_>,
        most: usize,
    ) -> Result<Reply, Trouble> {
        self.options.check(&[
            "filter",
            "select",
            "orderby",
            "top",
            "skip",
            "count",
            "skiptoken",
            "expand",
        ])?;
        let table = &place.table;
        let (columns, extent) = (self.options.columns(table)?, self.extent()?);
        let links = expand::read(&self.options, table, model)?;
        let needed = expand::needed(&columns, table, &links);
        let sql = self.begin(lease.pool().dialect(), place, &needed, &extent)?;
        let context = self.context(table, &columns, &links, false);
        let mut text = self.opening(lease, place, context).await?;
        let mut work = expand::Work::new(lease, most);
        let mut rows = work.rows(&sql, &table.name).await?;
        let has_more = extent.page.is_some_and(|size| rows.len() as u64 > size);
        if let Some(size) = extent.page {
            rows.truncate(usize::try_from(size).unwrap_or(usize::MAX));
        }
        let written = work.written(table, &columns, &needed, &links, &rows).await?;
        text += &written.join(",");
        text.push(']');
        if let Some(next) = extent.next.filter(|_| has_more) {
            text += &format!(",\"@odata.nextLink\":{}", Json::from(next));
        }
        text.push('}');
        Ok(self.applied(Reply::new(200, JSON, text), extent.page))
    }

    pub(super) async fn count(&self, lease: &mut Lease, place: &Place<'_>) -> Result<i64, Trouble> {
        let (table, dialect) = (&place.table, lease.pool().dialect());
        let mut sql = Sql::new(table, dialect);
        sql.text = format!("SELECT count(*) FROM {}", quoted(&table.name, dialect));
        let is_part = place.condition(&mut sql, " WHERE ")?;
        self.options.filter(&mut sql, if is_part { " AND " } else { " WHERE " })?;
        let row = first_row(lease, &sql, &table.name).await?;
        match row.and_then(|row| row.values.into_iter().next()) {
            Some(sql::Value::Integer(count)) => Ok(count),
            Some(other) => other.to_string().parse().map_err(|_| failed(500, "the rows cannot be counted")),
            None => Err(failed(500, "the rows cannot be counted")),
        }
    }

    /// The context URL of a response.
    pub(super) fn context(
        &self,
        table: &Table,
        columns: &[Column],
        links: &[expand::Expand],
        is_entity: bool,
    ) -> String {
        let mut out = format!("{}/$metadata#{}", self.base, table.name);
        out += &expand::select_list(table, columns, links);
        out + if is_entity { "/$entity" } else { "" }
    }

    pub(super) async fn entity(
        &self,
        lease: &mut Lease,
        model: &Model,
        place: &Place<'_>,
        most: usize,
    ) -> Result<Reply, Trouble> {
        self.options.check(&["select", "expand"])?;
        let table = &place.table;
        let columns = self.options.columns(table)?;
        let links = expand::read(&self.options, table, model)?;
        let needed = expand::needed(&columns, table, &links);
        let Some(row) = place.row(lease, &needed, false).await? else {
            // A link without a row is null.
            return if place.is_single { Ok(Reply::nothing(204)) } else { Err(place.no_row()) };
        };
        let mut work = expand::Work::new(lease, most);
        let written = work.written(table, &columns, &needed, &links, std::slice::from_ref(&row)).await?;
        let context = Json::from(self.context(table, &columns, &links, true));
        let object = written.first().map_or("}", |text| &text[1..]);
        let between = if object == "}" { "" } else { "," };
        let reply = Reply::new(200, JSON, format!("{{\"@odata.context\":{context}{between}{object}"));
        if columns.len() < table.columns.len() {
            return Ok(reply);
        }
        let etag = rows::etag(&row, &columns);
        let is_known = self.if_none_match.as_deref().is_some_and(|list| rows::is_among(&etag, list));
        Ok(if is_known { Reply::nothing(304) } else { reply }.with("ETag", &etag))
    }

    /// A row of a table as a response has it.
    pub(super) fn written(&self, table: &Table, row: &Row) -> String {
        let context = Json::from(self.context(table, &table.columns, &[], true));
        let etag = Json::from(rows::etag(row, &table.columns));
        let mut out = format!("{{\"@odata.context\":{context},\"@odata.etag\":{etag},");
        rows::members(row, &table.columns, &mut out);
        out.push('}');
        out
    }

    pub(super) async fn property(
        &self,
        lease: &mut Lease,
        place: &Place<'_>,
        property: &str,
        is_raw: bool,
    ) -> Result<Reply, Trouble> {
        self.options.check(&[])?;
        let table = &place.table;
        let unknown = || failed(404, format!("`{}` has no property `{property}`", table.name));
        let column = table.columns[table.column(property).ok_or_else(unknown)?].clone();
        let row = place.row(lease, std::slice::from_ref(&column), false).await?;
        let row = row.ok_or_else(|| place.no_row())?;
        let value = row.values.first().unwrap_or(&sql::Value::Null);
        match rows::plain(value, column.edm) {
            None => Ok(Reply::nothing(204)),
            Some(text) if is_raw => Ok(Reply::new(200, "text/plain;charset=UTF-8", text)),
            Some(_) => {
                let key = place.key.as_ref().map_or(String::new(), |key| format!("({key})"));
                let context = format!("{}/$metadata#{}{key}/{property}", self.base, table.name);
                let mut out = format!("{{\"@odata.context\":{},\"value\":", Json::from(context));
                rows::write(value, column.edm, &mut out);
                Ok(Reply::new(200, JSON, out + "}"))
            }
        }
    }
}
