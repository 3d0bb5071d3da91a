//! OData 4.0 of the tables of a config (`enableOData="true"`): `/odata/SERVICE/CONFIG/…`.
//!
//! Names of tables and columns are those that the database reports ([`model`]); values are bound ([`expression`], [`filter`]); rows are streamed ([`rows`]).

mod expression;
mod filter;
mod model;
mod rows;

use self::filter::Sql;
use self::model::{Column, Table, quoted};
use self::rows::Out;
use crate::fault::{Trouble, code};
use crate::output::Pipe;
use crate::plan::Service;
use crate::service::{ROOM, Reply, Work, begun};
use flow::{Context, Fault, Flow};
use message::Body;
use serde_json::{Map, Value as Json, json};
use sql::{Dialect, Lease, Outcome, Parameter, Reason, Row, Statement};
use std::sync::Arc;

pub(crate) use self::model::Source;

/// The prefix of the paths of OData services.
const PREFIX: &str = "/odata/";

const JSON: &str = "application/json;odata.metadata=minimal;charset=UTF-8";
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";

/// Whether a request is one for OData.
pub(crate) fn is_asked(context: &Context) -> bool {
    let before = context.inbound.target.get(..context.inbound.service_length).unwrap_or_default();
    let path = match before.split_once("://") {
        Some((_, rest)) => &rest[rest.find('/').unwrap_or(rest.len())..],
        None => before,
    };
    path.starts_with(PREFIX)
}

/// The path after the config, and the options.
struct Asked<'a> {
    service: &'a Service,
    source: &'a Source,
    method: String,
    /// `items(1)`, `name`, `$value`.
    segments: Vec<String>,
    options: Vec<(String, String)>,
    body: Option<Json>,
    /// The address of the config.
    base: String,
    /// `If-Match` and `If-None-Match`.
    if_match: Option<String>,
    if_none_match: Option<String>,
}

fn failed(status: u16, message: impl Into<String>) -> Trouble {
    Trouble { status, ..Trouble::new(code::UNKNOWN, message) }
}

/// An error of the database that the request has caused is a client error.
fn of(error: &sql::Error, table: &str) -> Trouble {
    let class = error.state.as_deref().and_then(|state| state.get(..2));
    let is_constraint = match (class, error.number) {
        (Some(class), _) => class == "23",
        (None, Some(number)) => error.reason == Reason::Refused && number & 0xFF == 19,
        _ => false,
    };
    let trouble = Trouble::of(error, table);
    match () {
        // A constraint, or a concurrent transaction.
        () if is_constraint || class == Some("40") => Trouble { status: 409, ..trouble },
        () if class == Some("22") => Trouble { status: 400, ..trouble },
        () => trouble,
    }
}

/// Answers a request.
///
/// # Errors
/// The body cannot be received.
pub(crate) async fn run(service: &Arc<Service>, context: &mut Context) -> Result<Flow, Fault> {
    let answered = match read(service, context).await? {
        Ok(request) => {
            let (most, id) = (context.services().limits.held, context.message_id().to_owned());
            request.answer(service.held.then_some(most), id).await
        }
        Err(trouble) => Err(trouble),
    };
    let reply = answered.unwrap_or_else(|trouble| {
        let why = if trouble.nested.is_empty() { &trouble.message } else { &trouble.nested };
        let request = format!("{} {}", context.inbound.method.as_str(), context.inbound.path());
        tracing::warn!(
            target: "busbar::dataservice",
            message_id = %context.message_id(),
            service = %service.name,
            request = %request,
            code = trouble.code,
            "{why}",
        );
        let words = message::reason_phrase(trouble.status).replace(' ', "");
        let body = json!({ "error": { "code": words, "message": trouble.message } }).to_string();
        let headers = if trouble.status == 405 { vec![("Allow", METHODS.to_owned())] } else { Vec::new() };
        Reply {
            status: trouble.status,
            media_type: JSON,
            headers,
            body: Body::Bytes(body.into()),
            is_fault: true,
        }
    });
    reply.with("OData-Version", "4.0").send(context);
    context.addressing.to = None;
    context.response = true;
    Ok(Flow::Respond)
}

async fn read<'a>(
    service: &'a Arc<Service>,
    context: &mut Context,
) -> Result<Result<Asked<'a>, Trouble>, Fault> {
    let postfix = context.inbound.postfix().to_owned();
    let (path, query) = postfix.split_once('?').unwrap_or((&postfix, ""));
    let mut segments: Vec<String> =
        path.split('/').filter(|part| !part.is_empty()).map(message::form::decode_percent).collect();
    let config = if segments.is_empty() { String::new() } else { segments.remove(0) };
    let Some(source) = service.odata.iter().find(|s| s.config == config) else {
        let configs: Vec<&str> = service.odata.iter().map(|s| s.config.as_str()).collect();
        let message = format!("the tables of {} are at {}", service.name, configs.join(", "));
        return Ok(Err(failed(404, message)));
    };
    let options = message::form::pairs(query);
    let options = options.into_iter().map(|(name, value)| (message::form::decode(name), value)).collect();
    let method = context.inbound.method.as_str().to_owned();
    let mut body = None;
    if matches!(method.as_str(), "POST" | "PUT" | "PATCH") {
        if !context.payload.is_json() {
            return Ok(Err(failed(415, "the body is not JSON")));
        }
        let taken = flow::work_out(context, |context| Ok(context.payload.json()?.cloned())).await;
        body = match taken {
            Ok(body) => body,
            Err(fault) if fault.status >= 500 && context.payload.bytes().is_some() => {
                return Ok(Err(failed(400, fault.message)));
            }
            Err(fault) => return Err(fault),
        };
    }
    let base = format!(
        "{}://{}{PREFIX}{}/{}",
        context.inbound.scheme(),
        context.inbound.host,
        service.name,
        source.config
    );
    let header = |name: &str| context.headers.get(name).map(str::to_owned);
    let (if_match, if_none_match) = (header("If-Match"), header("If-None-Match"));
    Ok(Ok(Asked { service, source, method, segments, options, body, base, if_match, if_none_match }))
}

/// The target of a path in a table.
struct Place<'a> {
    table: Arc<Table>,
    /// The key in parentheses; `None`: all rows.
    key: Option<String>,
    rest: &'a [String],
}

impl Asked<'_> {
    fn is_read(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD")
    }

    fn option(&self, name: &str) -> Option<&str> {
        let found = self
            .options
            .iter()
            .find(|(option_name, _)| option_name.strip_prefix('$').unwrap_or(option_name) == name);
        found.map(|(_, value)| value.trim())
    }

    /// Refuses system query options that are not supported here.
    fn check_options(&self, supported: &[&str]) -> Result<(), Trouble> {
        for (name, value) in &self.options {
            let plain = name.strip_prefix('$').unwrap_or(name);
            let is_known = supported.contains(&plain);
            if plain == "format" {
                let is_json = value.trim() == "json" || value.starts_with("application/json");
                if !is_json {
                    return Err(failed(406, "answers are JSON"));
                }
            } else if name.starts_with('$') && !is_known {
                return Err(failed(501, format!("{name} is not served here")));
            }
        }
        Ok(())
    }

    async fn answer(self, most: Option<usize>, id: String) -> Result<Reply, Trouble> {
        let first = self.segments.first().map_or("", String::as_str);
        if !matches!(first, "" | "$metadata") && first.starts_with('$') {
            return Err(failed(501, format!("{first} is not served here")));
        }
        let name = first.split('(').next().unwrap_or("");
        let wanted = Some(name).filter(|name| !name.is_empty() && !name.starts_with('$'));
        let mut lease = self.source.pool.get().await.map_err(|error| of(&error, name))?;
        let model = self.source.model(&mut lease, wanted).await?;
        let Some(name) = wanted else {
            if !self.is_read() {
                return Err(failed(405, format!("{} is not for that", self.method)));
            }
            self.check_options(&[])?;
            if first == "$metadata" {
                let text = model.metadata(&namespace(&self.service.name, &self.source.config));
                return Ok(Reply::new(200, "application/xml;charset=UTF-8", text));
            }
            let sets = model.tables.iter();
            let sets: Vec<Json> =
                sets.map(|set| json!({ "name": set.name, "kind": "EntitySet", "url": set.name })).collect();
            let about = json!({ "@odata.context": format!("{}/$metadata", self.base), "value": sets });
            return Ok(Reply::new(200, JSON, about.to_string()));
        };
        let unknown = || failed(404, format!("there is no table `{name}`"));
        let table = Arc::clone(model.table(name).ok_or_else(unknown)?);
        let key = match &first[name.len()..] {
            "" => None,
            key => {
                let inside = key.strip_prefix('(').and_then(|key| key.strip_suffix(')'));
                Some(inside.ok_or_else(|| failed(400, "a key stands in parentheses"))?.to_owned())
            }
        };
        let place = Place { table, key, rest: &self.segments[1..] };
        let rest: Vec<&str> = place.rest.iter().map(String::as_str).collect();
        match (self.method.as_str(), &place.key, rest.as_slice()) {
            ("GET" | "HEAD", None, []) => self.collection(lease, &place.table, most, id).await,
            ("GET" | "HEAD", None, ["$count"]) => {
                self.check_options(&["filter"])?;
                let count = self.count(&mut lease, &place.table).await?;
                Ok(Reply::new(200, "text/plain;charset=UTF-8", count.to_string()))
            }
            ("GET" | "HEAD", Some(key), []) => self.entity(&mut lease, &place.table, key).await,
            ("GET" | "HEAD", Some(key), [property] | [property, "$value"]) => {
                let is_raw = rest.len() == 2;
                self.property(&mut lease, &place.table, key, property, is_raw).await
            }
            ("POST", None, []) => {
                within(&mut lease, async |lease| self.create(lease, &place.table).await).await
            }
            ("PUT" | "PATCH", Some(key), []) => {
                within(&mut lease, async |lease| self.change(lease, &place.table, key).await).await
            }
            ("DELETE", Some(key), []) => {
                within(&mut lease, async |lease| self.remove(lease, &place.table, key).await).await
            }
            ("GET" | "HEAD", ..) => Err(failed(404, "there is nothing of that name")),
            _ => Err(failed(405, format!("{} is not for that", self.method))),
        }
    }

    /// The selected columns.
    fn columns(&self, table: &Table) -> Result<Vec<Column>, Trouble> {
        let Some(list) = self.option("select").filter(|list| *list != "*" && !list.is_empty()) else {
            return Ok(table.columns.clone());
        };
        let mut all: Vec<Column> = Vec::new();
        for name in list.split(',').map(str::trim) {
            let unknown = || failed(400, format!("$select: `{}` has no property `{name}`", table.name));
            let column = &table.columns[table.column(name).ok_or_else(unknown)?];
            if !all.iter().any(|c| c.name == column.name) {
                all.push(column.clone());
            }
        }
        Ok(all)
    }

    /// ` WHERE …`, where there is a filter.
    fn filter(&self, sql: &mut Sql<'_>) -> Result<(), Trouble> {
        if let Some(filter) = self.option("filter") {
            sql.text.push_str(" WHERE ");
            sql.condition(filter).map_err(|why| failed(400, format!("$filter: {why}")))?;
        }
        Ok(())
    }

    fn number(&self, name: &str) -> Result<Option<u64>, Trouble> {
        let Some(text) = self.option(name) else { return Ok(None) };
        let number = text.parse::<u64>().ok().filter(|&number| i64::try_from(number).is_ok());
        number.map(Some).ok_or_else(|| failed(400, format!("${name} is not a number of rows")))
    }

    async fn count(&self, lease: &mut Lease, table: &Table) -> Result<i64, Trouble> {
        let dialect = lease.pool().dialect();
        let mut sql = Sql::new(table, dialect);
        sql.text = format!("SELECT count(*) FROM {}", quoted(&table.name, dialect));
        self.filter(&mut sql)?;
        let row = first_row(lease, &sql, &table.name).await?;
        match row.and_then(|row| row.values.into_iter().next()) {
            Some(sql::Value::Integer(count)) => Ok(count),
            Some(other) => other.to_string().parse().map_err(|_| failed(500, "the rows cannot be counted")),
            None => Err(failed(500, "the rows cannot be counted")),
        }
    }

    async fn collection(
        &self,
        mut lease: Lease,
        table: &Arc<Table>,
        most: Option<usize>,
        id: String,
    ) -> Result<Reply, Trouble> {
        self.check_options(&["filter", "select", "orderby", "top", "skip", "count"])?;
        let dialect = lease.pool().dialect();
        let columns = self.columns(table)?;
        let mut sql = Sql::new(table, dialect);
        sql.text = format!("SELECT {} FROM {}", selected(&columns, dialect), quoted(&table.name, dialect));
        self.filter(&mut sql)?;
        let (top, skip) = (self.number("top")?, self.number("skip")?);
        match self.option("orderby") {
            Some(order) => {
                sql.text.push_str(" ORDER BY ");
                sql.order(order).map_err(|why| failed(400, format!("$orderby: {why}")))?;
            }
            // Paging needs an order.
            None if top.is_some() || skip.is_some() => {
                let keys: Vec<Column> = table.keys().cloned().collect();
                if !keys.is_empty() {
                    sql.text += &format!(" ORDER BY {}", names(&keys, dialect));
                }
            }
            None => {}
        }
        if top.is_some() || skip.is_some() {
            match (top, dialect) {
                (Some(top), _) => sql.text += &format!(" LIMIT {top}"),
                (None, Dialect::MySql) => sql.text += " LIMIT 9223372036854775807",
                (None, Dialect::Sqlite) => sql.text += " LIMIT -1",
                (None, Dialect::Postgres | Dialect::SqlServer) => {}
            }
            sql.text += &format!(" OFFSET {}", skip.unwrap_or(0));
        }
        let count = match self.option("count") {
            None | Some("false") => None,
            Some("true") => Some(self.count(&mut lease, table).await?),
            Some(_) => return Err(failed(400, "$count is true or false")),
        };
        let mut text = format!("{{\"@odata.context\":{}", Json::from(self.context(table, &columns, false)));
        if let Some(count) = count {
            text += &format!(",\"@odata.count\":{count}");
        }
        text += ",\"value\":[";
        let pipe = Pipe::new(ROOM);
        let is_whole = columns.len() == table.columns.len();
        let mut out = Out { text, pipe: Arc::clone(&pipe), columns, count: 0, is_whole, most };
        let statement = Statement::new(&sql.text, dialect);
        let (parameters, name) = (sql.parameters, table.name.clone());
        let work: Work = Box::pin(async move {
            lease.run(&statement, &parameters, &mut out).await.map_err(|error| of(&error, &name))?;
            out.text.push_str("]}");
            out.pipe.put(&mut out.text);
            Ok(true)
        });
        let about = format!("data service {}, OData of {}", self.service.name, table.name);
        let body = begun(work, pipe, most.is_some(), about, id).await?.unwrap_or(Body::Empty);
        Ok(Reply { body, ..Reply::new(200, JSON, String::new()) })
    }

    /// The context URL of a response.
    fn context(&self, table: &Table, columns: &[Column], is_entity: bool) -> String {
        let mut out = format!("{}/$metadata#{}", self.base, table.name);
        if columns.len() < table.columns.len() {
            let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
            out += &format!("({})", names.join(","));
        }
        out + if is_entity { "/$entity" } else { "" }
    }

    async fn entity(&self, lease: &mut Lease, table: &Table, key: &str) -> Result<Reply, Trouble> {
        self.check_options(&["select"])?;
        let columns = self.columns(table)?;
        let row = by_key(lease, table, &columns, key, false).await?;
        let reply = Reply::new(200, JSON, self.written(table, &columns, &row));
        if columns.len() < table.columns.len() {
            return Ok(reply);
        }
        let etag = rows::etag(&row, &columns);
        let is_known = self.if_none_match.as_deref().is_some_and(|list| rows::is_among(&etag, list));
        Ok(if is_known { Reply::nothing(304) } else { reply }.with("ETag", &etag))
    }

    /// Whether the row is still the one that the client has read (`If-Match`). It cannot change until the transaction ends.
    async fn unchanged(&self, lease: &mut Lease, table: &Table, key: &str) -> Result<(), Trouble> {
        let Some(list) = &self.if_match else { return Ok(()) };
        let row = by_key(lease, table, &table.columns, key, true).await?;
        match rows::is_among(&rows::etag(&row, &table.columns), list) {
            true => Ok(()),
            false => Err(failed(412, format!("the row {key} of `{}` is not as it was read", table.name))),
        }
    }

    fn written(&self, table: &Table, columns: &[Column], row: &Row) -> String {
        let mut out = format!("{{\"@odata.context\":{},", Json::from(self.context(table, columns, true)));
        if columns.len() == table.columns.len() {
            out += &format!("\"@odata.etag\":{},", Json::from(rows::etag(row, columns)));
        }
        rows::members(row, columns, &mut out);
        out.push('}');
        out
    }

    async fn property(
        &self,
        lease: &mut Lease,
        table: &Table,
        key: &str,
        property: &str,
        is_raw: bool,
    ) -> Result<Reply, Trouble> {
        self.check_options(&[])?;
        let unknown = || failed(404, format!("`{}` has no property `{property}`", table.name));
        let column = table.columns[table.column(property).ok_or_else(unknown)?].clone();
        let row = by_key(lease, table, std::slice::from_ref(&column), key, false).await?;
        let value = row.values.first().unwrap_or(&sql::Value::Null);
        match rows::plain(value, column.edm) {
            None => Ok(Reply::nothing(204)),
            Some(text) if is_raw => Ok(Reply::new(200, "text/plain;charset=UTF-8", text)),
            Some(_) => {
                let place = format!("{}/$metadata#{}({key})/{property}", self.base, table.name);
                let mut out = format!("{{\"@odata.context\":{},\"value\":", Json::from(place));
                rows::write(value, column.edm, &mut out);
                Ok(Reply::new(200, JSON, out + "}"))
            }
        }
    }

    /// The columns that a body gives, with their values.
    fn given_columns<'t>(&self, table: &'t Table) -> Result<Vec<(&'t Column, Parameter)>, Trouble> {
        let none = Map::new();
        let members = match &self.body {
            Some(Json::Object(members)) => members,
            None => &none,
            Some(_) => return Err(failed(400, "the body is not a JSON object")),
        };
        let mut all = Vec::new();
        for (name, value) in members.iter().filter(|(name, _)| !name.contains('@')) {
            let unknown = || failed(400, format!("`{}` has no property `{name}`", table.name));
            let column = &table.columns[table.column(name).ok_or_else(unknown)?];
            all.push((column, rows::parameter(value, column).map_err(|why| failed(400, why))?));
        }
        Ok(all)
    }

    async fn create(&self, lease: &mut Lease, table: &Table) -> Result<Reply, Trouble> {
        self.check_options(&[])?;
        let dialect = lease.pool().dialect();
        let given = self.given_columns(table)?;
        let mut sql = Sql::new(table, dialect);
        sql.text = format!("INSERT INTO {} ", quoted(&table.name, dialect));
        let columns: Vec<Column> = given.iter().map(|(column, _)| (*column).clone()).collect();
        match (given.is_empty(), dialect) {
            (true, Dialect::MySql) => sql.text += "() VALUES ()",
            (true, _) => sql.text += "DEFAULT VALUES",
            (false, _) => {
                sql.text += &format!("({}) VALUES (", names(&columns, dialect));
                for (number, (column, parameter)) in given.iter().enumerate() {
                    sql.text.push_str(if number > 0 { ", " } else { "" });
                    sql.value(parameter.clone(), column);
                }
                sql.text.push(')');
            }
        }
        let row = if dialect == Dialect::MySql {
            let done = changed(lease, &sql, &table.name).await?;
            self.created(lease, table, &given, done).await?
        } else {
            sql.text += &format!(" RETURNING {}", selected(&table.columns, dialect));
            first_row(lease, &sql, &table.name).await?
        };
        let Some(row) = row else { return Ok(Reply::nothing(204)) };
        let reply = Reply::new(201, JSON, self.written(table, &table.columns, &row));
        let reply = reply.with("ETag", &rows::etag(&row, &table.columns));
        let mut key = Vec::new();
        for (value, column) in row.values.iter().zip(&table.columns).filter(|(_, column)| column.key) {
            let text = rows::plain(value, column.edm).unwrap_or_default();
            let is_text = matches!(value, sql::Value::Text(_)) && column.cast.is_none();
            let text = if is_text { format!("'{}'", text.replace('\'', "''")) } else { text };
            key.push((column.name.as_str(), percent(&text)));
        }
        let key = match key.as_slice() {
            [] => return Ok(reply),
            [(_, value)] => value.clone(),
            all => all.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(","),
        };
        let place = format!("{}/{}({key})", self.base, table.name);
        Ok(reply.with("OData-EntityId", &place).with("Location", &place))
    }

    /// The row that was inserted into MySQL: by the key that was given, or by the generated one.
    async fn created(
        &self,
        lease: &mut Lease,
        table: &Table,
        given: &[(&Column, Parameter)],
        done: Outcome,
    ) -> Result<Option<Row>, Trouble> {
        let dialect = lease.pool().dialect();
        let mut sql = Sql::new(table, dialect);
        sql.text = format!(
            "SELECT {} FROM {} WHERE ",
            selected(&table.columns, dialect),
            quoted(&table.name, dialect)
        );
        for (number, column) in table.keys().enumerate() {
            let value = given.iter().find(|(c, _)| c.name == column.name).map(|(_, v)| v.clone());
            let made = || done.generated.map(Parameter::BigInt);
            let Some(value) = value.filter(|v| !matches!(v, Parameter::Null(_))).or_else(made) else {
                return Ok(None);
            };
            sql.text.push_str(if number > 0 { " AND " } else { "" });
            sql.name(column);
            sql.text.push_str(" = ");
            sql.value(value, column);
        }
        if table.keys().next().is_none() {
            return Ok(None);
        }
        first_row(lease, &sql, &table.name).await
    }

    async fn change(&self, lease: &mut Lease, table: &Table, key: &str) -> Result<Reply, Trouble> {
        self.check_options(&[])?;
        let dialect = lease.pool().dialect();
        // The key does not change.
        let given: Vec<_> =
            self.given_columns(table)?.into_iter().filter(|(column, _)| !column.key).collect();
        self.unchanged(lease, table, key).await?;
        let mut sql = Sql::new(table, dialect);
        sql.text = format!("UPDATE {} SET ", quoted(&table.name, dialect));
        let mut count = 0;
        for column in table.columns.iter().filter(|c| !c.key) {
            let value = given.iter().find(|(c, _)| c.name == column.name);
            if value.is_none() && self.method == "PATCH" {
                continue;
            }
            sql.text.push_str(if count > 0 { ", " } else { "" });
            count += 1;
            sql.name(column);
            sql.text.push_str(" = ");
            match value {
                Some((column, parameter)) => sql.value(parameter.clone(), column),
                // PUT resets what it does not give to the defaults of a new row.
                None if dialect != Dialect::Sqlite => sql.text.push_str("DEFAULT"),
                None if column.nullable => sql.text.push_str("NULL"),
                None => return Err(failed(400, format!("`{}` is missing", column.name))),
            }
        }
        if count == 0 {
            by_key(lease, table, &table.columns, key, false).await?;
            return Ok(Reply::nothing(204));
        }
        sql.text.push_str(" WHERE ");
        sql.key(key).map_err(|why| failed(400, why))?;
        match changed(lease, &sql, &table.name).await?.affected {
            0 => Err(no_row(table, key)),
            _ => Ok(Reply::nothing(204)),
        }
    }

    async fn remove(&self, lease: &mut Lease, table: &Table, key: &str) -> Result<Reply, Trouble> {
        self.check_options(&[])?;
        let dialect = lease.pool().dialect();
        let mut sql = Sql::new(table, dialect);
        self.unchanged(lease, table, key).await?;
        sql.text = format!("DELETE FROM {} WHERE ", quoted(&table.name, dialect));
        sql.key(key).map_err(|why| failed(400, why))?;
        match changed(lease, &sql, &table.name).await?.affected {
            0 => Err(no_row(table, key)),
            _ => Ok(Reply::nothing(204)),
        }
    }
}

fn no_row(table: &Table, key: &str) -> Trouble {
    failed(404, format!("`{}` has no row {key}", table.name))
}

/// Runs something in a transaction.
async fn within(
    lease: &mut Lease,
    work: impl AsyncFnOnce(&mut Lease) -> Result<Reply, Trouble>,
) -> Result<Reply, Trouble> {
    lease.begin().await.map_err(|error| of(&error, "begin"))?;
    // On failure the connection is dropped, which rolls back.
    let reply = work(lease).await;
    match reply {
        Ok(reply) => lease.commit().await.map(|()| reply).map_err(|error| of(&error, "commit")),
        Err(trouble) => {
            // The connection may be broken.
            if lease.in_transaction() {
                _ = lease.roll_back().await;
            }
            Err(trouble)
        }
    }
}

/// The first row of a statement.
async fn first_row(lease: &mut Lease, sql: &Sql<'_>, table: &str) -> Result<Option<Row>, Trouble> {
    let statement = Statement::new(&sql.text, lease.pool().dialect());
    let mut first = None;
    let take = |row: Row| {
        first.get_or_insert(row);
        Ok(true)
    };
    lease.run(&statement, &sql.parameters, take).await.map_err(|error| of(&error, table))?;
    Ok(first)
}

async fn changed(lease: &mut Lease, sql: &Sql<'_>, table: &str) -> Result<Outcome, Trouble> {
    let statement = Statement::new(&sql.text, lease.pool().dialect());
    lease.run(&statement, &sql.parameters, |_| Ok(true)).await.map_err(|error| of(&error, table))
}

/// The row of a key. `locks`: it cannot change until the transaction ends (a writer of SQLite is alone already).
async fn by_key(
    lease: &mut Lease,
    table: &Table,
    columns: &[Column],
    key: &str,
    locks: bool,
) -> Result<Row, Trouble> {
    let dialect = lease.pool().dialect();
    let mut sql = Sql::new(table, dialect);
    sql.text = format!("SELECT {} FROM {} WHERE ", selected(columns, dialect), quoted(&table.name, dialect));
    sql.key(key).map_err(|why| failed(400, why))?;
    if locks && dialect != Dialect::Sqlite {
        sql.text.push_str(" FOR UPDATE");
    }
    first_row(lease, &sql, &table.name).await?.ok_or_else(|| no_row(table, key))
}

fn names(columns: &[Column], dialect: Dialect) -> String {
    columns.iter().map(|column| quoted(&column.name, dialect)).collect::<Vec<_>>().join(", ")
}

/// The columns of a result. Columns of types without an OData type are cast to text.
fn selected(columns: &[Column], dialect: Dialect) -> String {
    let select = |column: &Column| {
        let name = quoted(&column.name, dialect);
        if column.cast.is_some() { format!("CAST({name} AS text) AS {name}") } else { name }
    };
    columns.iter().map(select).collect::<Vec<_>>().join(", ")
}

/// Percent-encodes a text as a path segment.
fn percent(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'\'' | b':' => {
                out.push(char::from(byte));
            }
            _ => out += &format!("%{byte:02X}"),
        }
    }
    out
}

/// The namespace of a model: names, separated by dots.
fn namespace(service: &str, config: &str) -> String {
    let name = |text: &str| {
        let namespace: String =
            text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        if namespace.starts_with(|c: char| c.is_ascii_alphabetic()) {
            namespace
        } else {
            format!("_{namespace}")
        }
    };
    format!("{}.{}", name(service), name(config))
}
