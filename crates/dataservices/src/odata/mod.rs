//! OData 4.0 of the tables of a config (`enableOData="true"`): `/odata/SERVICE/CONFIG/…`.
//!
//! Names of tables, columns and links are those that the database reports ([`model`]); values are bound ([`expression`], [`filter`]). This file finds
//! what a path means; [`reading`] and [`writing`] do it, [`expand`] adds the rows of links, [`batch`] does several. Rows are streamed ([`rows`]).

mod batch;
mod expand;
mod expression;
mod filter;
mod model;
mod options;
mod reading;
mod rows;
mod writing;

use self::filter::Sql;
use self::model::{Column, Model, Table, quoted};
use self::options::Options;
use crate::fault::{Trouble, code};
use crate::plan::Service;
use crate::service::{Reply, Work, begun};
use flow::{Context, Fault, Flow};
use message::Body;
use serde_json::{Value as Json, json};
use sql::{Dialect, Lease, Outcome, Parameter, Reason, Row, Statement};
use std::sync::Arc;

pub(crate) use self::model::Source;

/// The prefix of the paths of OData services.
const PREFIX: &str = "/odata/";

const JSON: &str = "application/json;odata.metadata=minimal;charset=UTF-8";
const LINKS_ARE_COLUMNS: &str = "links are changed by the columns of their foreign keys";
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

/// A request: the path after the config, and the options.
struct Asked<'a> {
    service: &'a Service,
    source: &'a Source,
    method: String,
    /// `items(1)`, `name`, `$value`.
    segments: Vec<String>,
    /// The same as it came.
    path: String,
    options: Options,
    body: Option<Json>,
    /// The address of the config.
    base: String,
    /// `If-Match`, `If-None-Match`, `Prefer`.
    if_match: Option<String>,
    if_none_match: Option<String>,
    prefer: Vec<(String, String)>,
}

fn failed(status: u16, message: impl Into<String>) -> Trouble {
    Trouble { status, ..Trouble::new(code::UNKNOWN, message) }
}

/// An error of the database that the request has caused is a client error.
fn of(error: &sql::Error, table: &str) -> Trouble {
    let class = error.state.as_deref().and_then(|state| state.get(..2));
    let is_constraint = match (class, error.number) {
        // MariaDB: a column that must have a value, and has no default.
        (Some("HY"), Some(1364)) => true,
        (Some(class), _) => class == "23",
        (None, Some(number)) => error.reason == Reason::Refused && number & 0xFF == 19,
        _ => false,
    };
    let trouble = Trouble::of(error, table);
    match () {
        // A constraint, or a concurrent transaction.
        () if is_constraint || class == Some("40") => Trouble { status: 409, ..trouble },
        // A value that does not fit, or one for a column that only the database sets.
        () if class == Some("22") || error.state.as_deref() == Some("428C9") => {
            Trouble { status: 400, ..trouble }
        }
        () => trouble,
    }
}

/// Answers a request.
///
/// # Errors
/// The body cannot be received.
pub(crate) async fn run(service: &Arc<Service>, context: &mut Context) -> Result<Flow, Fault> {
    let (most, id) = (context.services().limits.held, context.message_id().to_owned());
    let answered = match read(service, context).await? {
        Ok(Request::One(asked)) => asked.answer(service.held.then_some(most), most, id).await,
        Ok(Request::Batch(batch)) => batch.answer(most).await,
        Err(trouble) => Err(trouble),
    };
    let reply = answered.unwrap_or_else(|trouble| {
        let request = format!("{} {}", context.inbound.method.as_str(), context.inbound.path());
        log(service, &context.message_id().to_string(), &request, &trouble);
        refusal(&trouble)
    });
    reply.with("OData-Version", "4.0").send(context);
    context.addressing.to = None;
    context.response = true;
    Ok(Flow::Respond)
}

/// Logs why a request fails, and notes where its tables are others than those that are cached.
fn log(service: &Service, message: &str, request: &str, trouble: &Trouble) {
    let why = if trouble.nested.is_empty() { &trouble.message } else { &trouble.nested };
    tracing::warn!(
        target: "busbar::dataservice",
        message_id = %message,
        service = %service.name,
        request = %request,
        code = trouble.code,
        "{why}",
    );
    if trouble.unknown_name {
        service.odata.iter().for_each(Source::doubt);
    }
}

/// Whether a media type is one of JSON.
fn is_json(media_type: &str) -> bool {
    message::MediaType::parse(media_type.trim()).essence.to_ascii_lowercase().ends_with("json")
}

/// The response to a request that fails.
fn refusal(trouble: &Trouble) -> Reply {
    let words = message::reason_phrase(trouble.status).replace(' ', "");
    let body = json!({ "error": { "code": words, "message": trouble.message } }).to_string();
    let reply = Reply { is_fault: true, ..Reply::new(trouble.status, JSON, body) };
    if trouble.status == 405 { reply.with("Allow", METHODS) } else { reply }
}

enum Request<'a> {
    One(Box<Asked<'a>>),
    Batch(batch::Batch<'a>),
}

async fn read<'a>(
    service: &'a Arc<Service>,
    context: &mut Context,
) -> Result<Result<Request<'a>, Trouble>, Fault> {
    let postfix = context.inbound.postfix().to_owned();
    let (config, path) = match postfix.trim_start_matches('/').split_once(['/', '?']) {
        Some((config, _)) => (config, &postfix.trim_start_matches('/')[config.len()..]),
        None => (postfix.trim_start_matches('/'), ""),
    };
    let config = message::form::decode_percent(config);
    let Some(source) = service.odata.iter().find(|s| s.config == config) else {
        let configs: Vec<&str> = service.odata.iter().map(|s| s.config.as_str()).collect();
        let message = format!("the tables of {} are at {}", service.name, configs.join(", "));
        return Ok(Err(failed(404, message)));
    };
    let base = format!(
        "{}://{}{PREFIX}{}/{}",
        context.inbound.scheme(),
        context.inbound.host,
        service.name,
        source.config
    );
    let method = context.inbound.method.as_str().to_owned();
    if path.trim_start_matches('/').split('?').next() == Some("$batch") {
        if method != "POST" {
            return Ok(Err(failed(405, "a batch is posted")));
        }
        return Ok(batch::Batch::read(service, source, base, context).await?.map(Request::Batch));
    }
    let mut body = None;
    if matches!(method.as_str(), "POST" | "PUT" | "PATCH") {
        if !context.payload.is_json() {
            return Ok(Err(failed(415, "the body is not JSON")));
        }
        body = match json_of(context).await? {
            Ok(body) => body,
            Err(trouble) => return Ok(Err(trouble)),
        };
    }
    let header = |name: &str| context.headers.get(name).map(str::to_owned);
    let asked = Asked::new(service, source, base, method, path, body, header);
    Ok(Ok(Request::One(Box::new(asked))))
}

/// The body of a request as JSON.
async fn json_of(context: &mut Context) -> Result<Result<Option<Json>, Trouble>, Fault> {
    let taken = flow::work_out(context, |context| Ok(context.payload.json()?.cloned())).await;
    match taken {
        Ok(body) => Ok(Ok(body)),
        Err(fault) if fault.status >= 500 && context.payload.bytes().is_some() => {
            Ok(Err(failed(400, fault.message)))
        }
        Err(fault) => Err(fault),
    }
}

/// The rows that a path leads to.
struct Place<'a> {
    table: Arc<Table>,
    /// Values that columns of the rows have, because the path leads to them over a link.
    within: Vec<(Column, Parameter)>,
    /// The key in parentheses; `None`: all rows.
    key: Option<String>,
    /// The link leads to one row at most.
    is_single: bool,
    rest: &'a [String],
}

impl Place<'_> {
    /// Whether it is one row.
    fn is_row(&self) -> bool {
        self.key.is_some() || self.is_single
    }

    /// The condition of its rows, after `before`; whether there is one.
    fn condition(&self, sql: &mut Sql<'_>, before: &str) -> Result<bool, Trouble> {
        let mut between = before;
        for (column, parameter) in &self.within {
            sql.text.push_str(between);
            sql.equals(column, parameter.clone());
            between = " AND ";
        }
        if let Some(key) = &self.key {
            sql.text.push_str(between);
            sql.key(key).map_err(|why| failed(400, why))?;
            between = " AND ";
        }
        Ok(between != before)
    }

    fn no_row(&self) -> Trouble {
        no_row(&self.table, self.key.as_deref().unwrap_or_default())
    }

    /// Its row. `locks`: it cannot change until the transaction ends (a writer of SQLite is alone already).
    async fn row(&self, lease: &mut Lease, columns: &[Column], locks: bool) -> Result<Option<Row>, Trouble> {
        let dialect = lease.pool().dialect();
        let mut sql = Sql::new(&self.table, dialect);
        sql.text =
            format!("SELECT {} FROM {}", selected(columns, dialect), quoted(&self.table.name, dialect));
        self.condition(&mut sql, " WHERE ")?;
        if locks && dialect != Dialect::Sqlite {
            sql.text.push_str(" FOR UPDATE");
        }
        first_row(lease, &sql, &self.table.name).await
    }
}

/// A segment of a path: a name, and a key in parentheses.
fn segment(text: &str) -> Result<(&str, Option<String>), Trouble> {
    let (name, key) = options::parenthesised(text).map_err(|_| failed(400, "a key stands in parentheses"))?;
    Ok((name, key.map(str::to_owned)))
}

impl<'a> Asked<'a> {
    /// A request; `path` is behind the config, with its query.
    fn new(
        service: &'a Service,
        source: &'a Source,
        base: String,
        method: String,
        path: &str,
        body: Option<Json>,
        header: impl Fn(&str) -> Option<String>,
    ) -> Asked<'a> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let segments = path.split('/').filter(|part| !part.is_empty());
        let segments = segments.map(message::form::decode_percent).collect();
        let options = message::form::pairs(query).into_iter();
        let options = options.map(|(name, value)| (message::form::decode(name), value)).collect();
        let prefer = header("Prefer").unwrap_or_default();
        let prefer = prefer.split([',', ';']).filter(|one| !one.trim().is_empty()).map(|one| {
            let (name, value) = one.split_once('=').unwrap_or((one, "true"));
            let name = name.trim().to_ascii_lowercase();
            let name = name.strip_prefix("odata.").map(str::to_owned).unwrap_or(name);
            (name, value.trim().trim_matches('"').to_owned())
        });
        Asked {
            service,
            source,
            method,
            segments,
            path: path.to_owned(),
            options: Options(options),
            body,
            base,
            if_match: header("If-Match"),
            if_none_match: header("If-None-Match"),
            prefer: prefer.collect(),
        }
    }

    fn is_read(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD")
    }

    /// What the client prefers (RFC 7240).
    fn preference(&self, name: &str) -> Option<&str> {
        self.prefer.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// `held`: most bytes of a response that is complete before it is sent; `None`: it may be streamed. `most`: those of rows that are collected.
    async fn answer(self, held: Option<usize>, most: usize, id: String) -> Result<Reply, Trouble> {
        let mut lease = self.lease().await?;
        let model = match self.about(&mut lease).await? {
            Begun::Model(model) => model,
            Begun::Answer(reply) => return Ok(reply),
        };
        let place = self.place(&mut lease, &model).await?;
        // A collection without links leaves while it arrives.
        if self.is_read() && !place.is_row() && place.rest.is_empty() && self.options.get("expand").is_none()
        {
            let (mut page, reply) = self.page(&mut lease, &place, held).await?;
            let pipe = Arc::clone(page.pipe());
            let table = place.table.name.clone();
            let work: Work = Box::pin(async move {
                page.run(&mut lease).await?;
                Ok(true)
            });
            let about = format!("data service {}, OData of {table}", self.service.name);
            let body = begun(work, pipe, held.is_some(), about, id).await?.unwrap_or(Body::Empty);
            return Ok(Reply { body, ..reply });
        }
        self.at(&mut lease, &model, &place, most).await
    }

    async fn lease(&self) -> Result<Lease, Trouble> {
        let table = self.segments.first().map_or("", String::as_str);
        self.source.pool.get().await.map_err(|error| of(&error, table))
    }

    /// The response as a whole, on a connection that others use afterwards.
    async fn held(&self, lease: &mut Lease, most: usize) -> Result<Reply, Trouble> {
        match self.about(lease).await? {
            Begun::Model(model) => {
                let place = self.place(lease, &model).await?;
                self.at(lease, &model, &place, most).await
            }
            Begun::Answer(reply) => Ok(reply),
        }
    }

    /// The model, or the response to a request about it.
    async fn about(&self, lease: &mut Lease) -> Result<Begun, Trouble> {
        let first = self.segments.first().map_or("", String::as_str);
        if !matches!(first, "" | "$metadata") && first.starts_with('$') {
            return Err(failed(501, format!("{first} is not served here")));
        }
        let name = first.split('(').next().unwrap_or("");
        let wanted = Some(name).filter(|name| !name.is_empty() && !name.starts_with('$'));
        let model = self.source.model(lease, wanted).await?;
        if wanted.is_some() {
            return Ok(Begun::Model(model));
        }
        if !self.is_read() {
            return Err(failed(405, format!("{} is not for that", self.method)));
        }
        self.options.check(&[])?;
        if first == "$metadata" {
            let text = model.metadata(&namespace(&self.service.name, &self.source.config));
            return Ok(Begun::Answer(Reply::new(200, "application/xml;charset=UTF-8", text)));
        }
        let sets = model.tables.iter();
        let sets: Vec<Json> =
            sets.map(|set| json!({ "name": set.name, "kind": "EntitySet", "url": set.name })).collect();
        let about = json!({ "@odata.context": format!("{}/$metadata", self.base), "value": sets });
        Ok(Begun::Answer(Reply::new(200, JSON, about.to_string())))
    }

    /// What the path leads to: a table, and from a row of it over links to others.
    async fn place(&self, lease: &mut Lease, model: &Model) -> Result<Place<'_>, Trouble> {
        let unknown = |name: &str| failed(404, format!("there is no table `{name}`"));
        let (first, rest) = self.segments.split_first().ok_or_else(|| unknown(""))?;
        let (name, key) = segment(first)?;
        let table = Arc::clone(model.table(name).ok_or_else(|| unknown(name))?);
        let mut place = Place { table, within: Vec::new(), key, is_single: false, rest };
        while let Some((first, rest)) = place.rest.split_first().filter(|_| place.is_row()) {
            let Ok((name, key)) = segment(first) else { break };
            let Some(link) = place.table.link(name) else { break };
            if key.is_some() && !link.many {
                return Err(failed(400, format!("`{name}` is one row, and has no key here")));
            }
            let target = model.table(&link.table).ok_or_else(|| unknown(&link.table))?;
            let columns: Vec<Column> =
                link.columns.iter().map(|&(at, _)| place.table.columns[at].clone()).collect();
            let row = place.row(lease, &columns, false).await?.ok_or_else(|| place.no_row())?;
            let within = link.columns.iter().zip(&row.values).map(|(&(_, there), value)| {
                let column = target.columns[there].clone();
                let parameter = rows::parameter_of(value, &column)?;
                Ok((column, parameter))
            });
            let within = within.collect::<Result<Vec<_>, Trouble>>()?;
            place = Place { table: Arc::clone(target), within, key, is_single: !link.many, rest };
        }
        Ok(place)
    }

    /// Does what is asked at a place.
    async fn at(
        &self,
        lease: &mut Lease,
        model: &Model,
        place: &Place<'_>,
        most: usize,
    ) -> Result<Reply, Trouble> {
        let rest: Vec<&str> = place.rest.iter().map(String::as_str).collect();
        match (self.method.as_str(), place.is_row(), rest.as_slice()) {
            ("GET" | "HEAD", false, []) if self.options.get("expand").is_none() => {
                let (mut page, reply) = self.page(lease, place, Some(most)).await?;
                page.run(lease).await?;
                let body = Body::Bytes(page.pipe().take().into());
                Ok(Reply { body, ..reply })
            }
            ("GET" | "HEAD", false, []) => self.expanded_page(lease, model, place, most).await,
            ("GET" | "HEAD", false, ["$count"]) => {
                self.options.check(&["filter"])?;
                let count = self.count(lease, place).await?;
                Ok(Reply::new(200, "text/plain;charset=UTF-8", count.to_string()))
            }
            ("GET" | "HEAD", true, []) => self.entity(lease, model, place, most).await,
            ("GET" | "HEAD", true, [property] | [property, "$value"]) => {
                self.property(lease, place, property, rest.len() == 2).await
            }
            ("POST", false, []) => {
                within(lease, async |lease| self.create(lease, place, Vec::new()).await).await
            }
            ("PUT" | "PATCH", true, []) => {
                within(lease, async |lease| {
                    let given = self.given_columns(&place.table)?;
                    self.change(lease, place, given, self.method == "PUT").await
                })
                .await
            }
            ("PUT" | "PATCH" | "DELETE", true, [property]) if !property.starts_with('$') => {
                within(lease, async |lease| self.set_property(lease, place, property).await).await
            }
            ("DELETE", true, []) => within(lease, async |lease| self.remove(lease, place).await).await,
            (_, _, [.., "$ref"]) => Err(failed(501, format!("$ref is not served here: {LINKS_ARE_COLUMNS}"))),
            ("GET" | "HEAD", ..) => Err(failed(404, "there is nothing of that name")),
            _ => Err(failed(405, format!("{} is not for that", self.method))),
        }
    }
}

/// The beginning of a response.
enum Begun {
    Model(Arc<Model>),
    Answer(Reply),
}

fn no_row(table: &Table, key: &str) -> Trouble {
    failed(404, format!("`{}` has no row {key}", table.name))
}

/// Runs something in a transaction.
async fn within(
    lease: &mut Lease,
    work: impl AsyncFnOnce(&mut Lease) -> Result<Reply, Trouble>,
) -> Result<Reply, Trouble> {
    // A change set is a transaction of its own.
    if lease.in_transaction() {
        return work(lease).await;
    }
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
    let statement = sql.statement()?;
    let mut first = None;
    let take = |row: Row| {
        first.get_or_insert(row);
        Ok(true)
    };
    lease.run(&statement, &sql.parameters, take).await.map_err(|error| of(&error, table))?;
    Ok(first)
}

async fn changed(lease: &mut Lease, sql: &Sql<'_>, table: &str) -> Result<Outcome, Trouble> {
    let statement = sql.statement()?;
    lease.run(&statement, &sql.parameters, |_| Ok(true)).await.map_err(|error| of(&error, table))
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

impl Sql<'_> {
    /// The statement of its text.
    ///
    /// # Errors
    /// The database has no such values.
    fn statement(&self) -> Result<Statement, Trouble> {
        if let Some(why) = crate::value::unstorable(&self.parameters, self.dialect()) {
            return Err(failed(400, why));
        }
        Ok(Statement::new(&self.text, self.dialect()))
    }
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
