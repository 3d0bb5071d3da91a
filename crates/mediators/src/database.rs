//! What `dblookup`, `dbreport` and `transaction` share: the connection, the statements, the transaction of a message.

use config::{DataSource, Element, Key};
use diagnostics::{Diagnostic, Severity, Span};
use flow::{Attribute, Compiler, Context, Expression, Fault, Flow, Inside, Need, Values};
use message::Value;
use sql::{Columns, Error, Kind, Lease, Options, Parameter, Pool, Pools, Reason, Row, Source, Statement};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use tokio::sync::{Mutex, MutexGuard};

/// The attribute of both.
pub(crate) const TRANSACTION: Attribute =
    Attribute::optional("useTransaction", Values::Boolean, "requires a transaction").or("false");

/// What both may have inside.
pub(crate) const CONNECTION: Inside = Inside::new("connection", "the database", &[]);
pub(crate) const DATA_SOURCE: Inside = Inside::new(
    "connection/pool",
    "a data source by `dsName`, or `driver`, `url`, `user` and `password`, each as text or with the `key` of an entry",
    &[],
)
.with("elements");
/// What statements read of a message.
pub(crate) const NEEDS: &[(Need, &str)] = &[
    (Need::Nothing, "no parameter is an expression"),
    (Need::Headers, "parameters are of properties and headers"),
    (Need::Whole, "a parameter is of the body"),
];
pub(crate) const STATEMENT: Inside = Inside::new("statement+", "a statement", &[]);
pub(crate) const SQL: Inside =
    Inside::new("statement/sql", "its text, with question marks for parameters", &[]).with("text");
pub(crate) const PARAMETER: Inside = Inside::new(
    "statement/parameter*",
    "a parameter, in order",
    &[
        Attribute::optional("value", Values::Text, "a text"),
        Attribute::optional("expression", Values::Expression, "or an expression"),
        Attribute::required("type", Values::OneOf(&Kind::NAMES), "its type in JDBC"),
    ],
);

/// Elements of `pool`.
const POOL: &[&str] = &["driver", "url", "user", "password", "dsName", "icClass", "property"];

/// What one of the mediators does with a database.
pub(crate) struct Work {
    /// The database, or why there is none: messages that come then fault.
    pub pool: Result<Arc<Pool>, String>,
    pub needs_transaction: bool,
    pub statements: Vec<Prepared>,
}

/// A statement with where its parameters come from and where its results go.
pub(crate) struct Prepared {
    /// As it is written.
    written: String,
    statement: Statement,
    parameters: Vec<Input>,
    results: Vec<(Arc<str>, Column)>,
}

struct Input {
    value: From,
    kind: Kind,
}

enum From {
    Text(Parameter),
    Expression(Expression),
}

/// A column by name or number, from 0.
enum Column {
    Name(String),
    Number(usize),
}

/// Compiles what both have in common; `None` after an error.
pub(crate) fn compile(element: &Element, compiler: &mut Compiler<'_>, reads: bool) -> Option<Work> {
    let mut ok = true;
    let pool = connection(element, compiler);
    let dialect = match &pool {
        Some(Ok(pool)) => pool.dialect(),
        _ => sql::Dialect::Sqlite,
    };
    let mut statements = Vec::new();
    for child in element.children_named("statement") {
        match statement(child, dialect, compiler, reads) {
            Some(prepared) => statements.push(prepared),
            None => ok = false,
        }
    }
    if statements.is_empty() && ok {
        missing(element, "a `statement`", compiler);
        return None;
    }
    let needs_transaction = flow::truth(element, "useTransaction", false);
    Some(Work { pool: pool.filter(|_| ok)?, needs_transaction, statements })
}

/// The rules of what another machine may have: there the step runs.
const ELSEWHERE: &[&str] =
    &["unknown-data-source", "unsupported-database", "unresolved-value", "unknown-secret"];

/// The database of a step; the reason where there is none here, which is a warning, as a server looks for it when a message comes. `None`
/// after a recorded error.
fn connection(element: &Element, compiler: &mut Compiler<'_>) -> Option<Result<Arc<Pool>, String>> {
    let outer = std::mem::take(compiler.diagnostics);
    let pool = pool_for(element, compiler);
    let findings = std::mem::replace(compiler.diagnostics, outer);
    let is_elsewhere = |finding: &&Diagnostic| ELSEWHERE.contains(&finding.rule);
    let mut errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    let reason = match pool.is_none() && errors.all(|finding| is_elsewhere(&finding)) {
        true => {
            let message = findings.iter().find(is_elsewhere).map(|finding| finding.message.clone());
            Some(message.unwrap_or_else(|| "its address is not known".to_owned()))
        }
        false => None,
    };
    for finding in findings.iter().cloned() {
        compiler.diagnostics.push(match reason.is_some() && is_elsewhere(&&finding) {
            true => Diagnostic { severity: Severity::Warning, ..finding }
                .help("messages that come to this step fault; the rest runs"),
            false => finding,
        });
    }
    pool.map(Ok).or(reason.map(Err))
}

fn pool_for(element: &Element, compiler: &mut Compiler<'_>) -> Option<Arc<Pool>> {
    let Some(pool) = element.child("connection").and_then(|connection| connection.child("pool")) else {
        missing(element, "a `connection` with a `pool`", compiler);
        return None;
    };
    check_children(pool, POOL, compiler)?;
    let mut options = Options { query_timeout: compiler.services.settings.sql_timeout, ..Options::inline() };
    let mut overrides = Vec::new();
    for property in pool.children_named("property") {
        let (Some(name), Some(value)) = (property.attribute("name"), property.attribute("value")) else {
            missing(property, "a `name` and a `value`", compiler);
            return None;
        };
        overrides.push((name.value.trim().to_owned(), Key::of(value)));
    }
    let ds_name = text_of(pool, "dsName", compiler)?;
    let url = text_of(pool, "url", compiler)?;
    if let Some(name) = ds_name.filter(|name| !name.value.trim().is_empty()) {
        // With a factory of JNDI it is the URL of that factory, which nothing here can ask; the name may be known all the same.
        return named(&name, overrides, compiler);
    }
    let Some(url) = url.filter(|url| !url.value.trim().is_empty()) else {
        missing(pool, "a `dsName`, or a `driver` and a `url`", compiler);
        return None;
    };
    let user = text_of(pool, "user", compiler)?;
    let password = text_of(pool, "password", compiler)?;
    set(&mut options, &overrides, false, compiler)?;
    let settings = Settings { url, user, password, options };
    open(&format!("{}", compiler.artifact_identity()), &settings, pool.start_tag(), compiler)
}

/// The text of a child, which may be in an entry (`key`); `Some(None)`: there is none, `None` after an error.
fn text_of(pool: &Element, name: &str, compiler: &mut Compiler<'_>) -> Option<Option<Key>> {
    let Some(child) = pool.child(name) else { return Some(None) };
    let Some(key) = child.attribute("key") else {
        return Some(Some(Key { value: child.text().trim().to_owned(), span: child.text_span() }));
    };
    match compiler.configuration.content(key.value.trim()) {
        Ok(Some(content)) => {
            let value = String::from_utf8_lossy(&content.bytes).trim().to_owned();
            Some(Some(Key { value, span: key.value_span }))
        }
        Ok(None) | Err(_) => {
            let message = format!("there is no entry `{}`", key.value);
            compiler.error(
                "unknown-entry",
                message,
                key.value_span,
                format!("the `{name}` of the data source is read from it"),
            );
            None
        }
    }
}

/// What a pool is made of, before secrets are looked up.
struct Settings {
    url: Key,
    user: Option<Key>,
    password: Option<Key>,
    options: Options,
}

/// The pool of a data source of the configuration, by its name; `None` after a recorded error.
pub fn pool_named(name: &Key, compiler: &mut Compiler<'_>) -> Option<Arc<Pool>> {
    named(name, Vec::new(), compiler)
}

/// The pool of a data source with settings of its own; `place`: where they are. `None` after a recorded error.
pub fn pool_with(source: &DataSource, place: Span, compiler: &mut Compiler<'_>) -> Option<Arc<Pool>> {
    pool_of(source, Vec::new(), place, compiler)
}

/// A data source of the configuration.
fn named(name: &Key, overrides: Vec<(String, Key)>, compiler: &mut Compiler<'_>) -> Option<Arc<Pool>> {
    let sources = &compiler.configuration.data_sources;
    let Some(source) = sources.iter().find(|source| source.is_named(&name.value)).cloned() else {
        let names: Vec<String> = sources
            .iter()
            .flat_map(|source| source.jndi.clone().into_iter().chain([source.name.value.clone()]))
            .collect();
        let message = format!("there is no data source `{}`", name.value.trim());
        compiler.diagnostics.push(
            Diagnostic::error("unknown-data-source", message)
                .at(name.span, "neither a `*-datasources.xml`, a project nor a `deployment.toml` has it")
                .did_you_mean(name.value.trim(), names.iter().map(String::as_str)),
        );
        return None;
    };
    pool_of(&source, overrides, name.span, compiler)
}

/// The pool of a data source; `place`: where it is named.
fn pool_of(
    source: &DataSource,
    overrides: Vec<(String, Key)>,
    place: Span,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<Pool>> {
    let value = |names: &[&str]| source.value(names).cloned();
    let Some(url) = value(&["url", "jdbcUrl"]) else {
        let message = format!("the data source `{}` has no `url`", source.name.value);
        compiler.error("missing-element", message, place, "its address is missing");
        return None;
    };
    let (user, password) = (value(&["username", "user"]), value(&["password"]));
    let not_options =
        ["url", "jdbcurl", "username", "user", "password", "driverclassname", "id", "description"];
    let mut written: Vec<(String, Key)> = source.values.clone();
    written.retain(|(name, _)| !not_options.contains(&&*name.to_ascii_lowercase()));
    let mut options = Options { query_timeout: compiler.services.settings.sql_timeout, ..Options::default() };
    set(&mut options, &written, true, compiler)?;
    set(&mut options, &overrides, false, compiler)?;
    let settings = Settings { url, user, password, options };
    open(&source.name.value.clone(), &settings, place, compiler)
}

/// Sets options. Those of a data source that are unknown may mean something to a driver of Java: they are said once, and have no effect.
fn set(
    options: &mut Options,
    all: &[(String, Key)],
    of_source: bool,
    compiler: &mut Compiler<'_>,
) -> Option<()> {
    for (name, value) in all {
        match options.set(name, &value.value) {
            Ok(_) => {}
            Err(Some(why)) => {
                let message = format!("`{name}` cannot be `{}`", value.value);
                compiler.error("bad-value", message, value.span, why);
                return None;
            }
            Err(None) => {
                let message = format!("a data source has no option `{name}`");
                let label = if of_source { "it has no effect here" } else { "it has no effect" };
                compiler.warning("unknown-option", message, value.span, label);
            }
        }
    }
    Some(())
}

fn open(name: &str, settings: &Settings, place: Span, compiler: &mut Compiler<'_>) -> Option<Arc<Pool>> {
    let url = compiler.outside(&settings.url)?;
    let mut outside =
        |key: &Option<Key>| key.as_ref().map_or(Some(String::new()), |key| compiler.outside(key));
    let (user, password) = (outside(&settings.user)?, outside(&settings.password)?);
    // Said already; what it is is known on the machine that runs it.
    if url.trim().is_empty() || config::is_unresolved(&url) {
        return None;
    }
    let embedded = compiler.services.settings.sql_embedded;
    let mut source = match Source::new(&url, &user, &password, settings.options.clone(), embedded) {
        Ok(source) => source,
        Err(unusable) => {
            let found = Diagnostic::error("unsupported-database", unusable.message)
                .at(place, "the data source cannot be used");
            compiler.diagnostics.push(found.help(unusable.help));
            return None;
        }
    };
    source.options.connect_timeout = compiler.services.settings.connect_timeout;
    source.options.longest = compiler.services.settings.sql_value;
    for (option, why) in source.target.not_honoured() {
        compiler.warning(
            "unknown-option",
            format!("`{option}` of the URL has no effect"),
            settings.url.span,
            why,
        );
    }
    // Relative to the configuration, as all its files.
    if source.target.dialect == sql::Dialect::Sqlite
        && let Some(file) = source.target.database.take()
    {
        let path = std::path::Path::new(&file);
        source.target.database = Some(match path.is_absolute() {
            true => file,
            false => compiler.configuration.root.join(path).to_string_lossy().into_owned(),
        });
    }
    Some(compiler.services.kept.get::<Pools>().get(name, source))
}

fn statement(
    element: &Element,
    dialect: sql::Dialect,
    compiler: &mut Compiler<'_>,
    reads: bool,
) -> Option<Prepared> {
    let children: &[&str] = if reads { &["sql", "parameter", "result"] } else { &["sql", "parameter"] };
    check_children(element, children, compiler)?;
    let text = element.child("sql").map(Element::text).unwrap_or_default();
    if text.trim().is_empty() {
        missing(element, "an `sql`", compiler);
        return None;
    }
    let statement = Statement::new(&text, dialect);
    let mut parameters = Vec::new();
    for child in element.children_named("parameter") {
        parameters.push(parameter(child, compiler)?);
    }
    if parameters.len() != statement.parameters() {
        let (has, given) = (statement.parameters(), parameters.len());
        let message = format!("the statement has {has} question marks, and {given} parameters");
        let place = element.child("sql").map_or(element.start_tag(), Element::text_span);
        compiler.error("parameter-count", message, place, "each question mark needs a `parameter`, in order");
        return None;
    }
    let mut results = Vec::new();
    for result in element.children_named("result") {
        let (Some(name), Some(column)) = (result.attr("name"), result.attr("column")) else {
            missing(result, "a `name` and a `column`", compiler);
            return None;
        };
        let column = match column.trim().parse::<usize>() {
            Ok(0) => {
                missing(result, "a `column` from 1", compiler);
                return None;
            }
            Ok(number) => Column::Number(number - 1),
            Err(_) => Column::Name(column.trim().to_owned()),
        };
        results.push((Arc::from(name), column));
    }
    let written = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(Prepared { written, statement, parameters, results })
}

fn parameter(element: &Element, compiler: &mut Compiler<'_>) -> Option<Input> {
    let Some(kind) =
        element.attr("type").filter(|name| Kind::NAMES.contains(&name.trim())).and_then(Kind::named)
    else {
        let message = "`parameter` needs a `type` of JDBC".to_owned();
        let found = Diagnostic::error("bad-value", message)
            .at(
                element.attribute("type").map_or(element.start_tag(), |element| element.value_span),
                format!("expected one of {}", Kind::NAMES.join(", ")),
            )
            .did_you_mean(element.attr("type").unwrap_or_default(), Kind::NAMES);
        compiler.diagnostics.push(found);
        return None;
    };
    if element.attribute("expression").is_some() {
        return Some(Input { value: From::Expression(compiler.expression(element, "expression")?), kind });
    }
    let Some(value) = element.attribute("value") else {
        missing(element, "a `value` or an `expression`", compiler);
        return None;
    };
    match kind.parse(Some(&value.value)) {
        Ok(parameter) => Some(Input { value: From::Text(parameter), kind }),
        Err(why) => {
            compiler.error(
                "bad-value",
                format!("`{}` is not of the type {}", value.value, kind.name()),
                value.value_span,
                why,
            );
            None
        }
    }
}

pub(crate) fn check_children(element: &Element, names: &[&str], compiler: &mut Compiler<'_>) -> Option<()> {
    let mut ok = Some(());
    for child in element.elements().filter(|child| !names.contains(&child.local())) {
        let message = format!("`{}` cannot stand inside of `{}`", child.local(), element.local());
        let label = format!("expected {}", names.join(", "));
        compiler.error("unknown-element", message, child.name_span(), label);
        ok = None;
    }
    ok
}

fn missing(element: &Element, needed: &str, compiler: &mut Compiler<'_>) {
    let message = format!("`{}` needs {needed}", element.local());
    compiler.error("missing-element", message, element.start_tag(), "it is missing or wrong here");
}

/// What a statement did.
pub(crate) struct Ran {
    /// The first row of its result.
    pub first: Option<Row>,
    /// How many rows it changed.
    pub affected: u64,
}

impl Work {
    /// What the parameters read of a message.
    pub fn need(&self) -> Need {
        let parameters = self.statements.iter().flat_map(|statement| &statement.parameters);
        let need = parameters.filter_map(|parameter| match &parameter.value {
            From::Expression(expression) => Some(expression.need()),
            From::Text(_) => None,
        });
        match need.max().unwrap_or(Need::Nothing) {
            // It is evaluated when a connection is asked for, and cannot wait for more of the body then.
            Need::Prefix => Need::Whole,
            need => need,
        }
    }

    /// Why, in words.
    pub fn reason(&self) -> String {
        let parameters = self.statements.iter().flat_map(|statement| &statement.parameters);
        let expressions = parameters.filter_map(|parameter| match &parameter.value {
            From::Expression(expression) => Some(expression),
            From::Text(_) => None,
        });
        let dearest = expressions.max_by_key(|expression| expression.need());
        dearest.map_or_else(String::new, |expression| format!("a parameter is {}", expression.source()))
    }

    /// Runs the statements in order on one connection; `done` has what each did. `commits`: where the pool has no `autocommit`, what they
    /// do together counts at the end; else it is taken back.
    ///
    /// # Errors
    /// There is no connection, a parameter is wrong, the database refuses a statement, or `done` does what it did.
    pub async fn run(
        self: &Arc<Work>,
        context: &mut Context,
        commits: bool,
        done: fn(&Prepared, Ran, &mut Context) -> Result<(), Error>,
    ) -> Result<Flow, Fault> {
        let transaction = context.attached::<Transaction>();
        let mut session = None;
        for (at, statement) in self.statements.iter().enumerate() {
            let work = Arc::clone(self);
            let parameters =
                flow::work_out(context, move |context| work.statements[at].parameters(context)).await?;
            // Only once the parameters of the first statement are worked out: no connection is held while a body arrives.
            let session = match &mut session {
                Some(session) => session,
                none => none.insert(wait(context, self.session(transaction.as_deref())).await?),
            };
            let mut first = None;
            let take = |row| {
                first = Some(row);
                Ok(false)
            };
            let failed = |error| -> Fault { self.fault(statement, &error) };
            let lease = session.lease().map_err(failed)?;
            let run = async { lease.run(&statement.statement, &parameters, take).await.map_err(failed) };
            let affected = wait(context, run).await?.affected;
            // A column may be large.
            let size = first.as_ref().map_or(0, Row::size);
            let work = Arc::clone(self);
            flow::compute::by_size(context, size, move |context| {
                let statement = &work.statements[at];
                done(statement, Ran { first, affected }, context)
                    .map_err(|error| work.fault(statement, &error))
            })
            .await?;
        }
        if let (Some(session), Some(last)) = (session, self.statements.last()) {
            session.end(commits).await.map_err(|error| self.fault(last, &error))?;
        }
        Ok(Flow::Next)
    }

    /// A connection for the statements: that of the message's transaction, else one of its own.
    async fn session<'a>(&self, transaction: Option<&'a Transaction>) -> Result<Session<'a>, Fault> {
        let pool = self.pool.as_ref().map_err(|why| {
            let message = "there is no database for this step";
            Fault { status: 503, ..Fault::new(message).because(why.clone()) }
        })?;
        match transaction {
            Some(transaction) => transaction.enlist(pool).await.map_err(|why| match why {
                Refused::Fault(fault) => *fault,
                Refused::Sql(error) => self.fault(&self.statements[0], &error),
            }),
            None if self.needs_transaction => {
                Err(Fault::new("there is no transaction that this step could take part in")
                    .because("useTransaction=\"true\" needs <transaction action=\"new\"/> before it"))
            }
            None => {
                let failed = |error: Error| self.fault(&self.statements[0], &error);
                let mut lease = pool.get().await.map_err(failed)?;
                if !pool.autocommit() {
                    lease.begin().await.map_err(failed)?;
                }
                Ok(Session::Own(Box::new(lease)))
            }
        }
    }

    /// As faults of WSO2 say it, with what the database says in the detail.
    pub fn fault(&self, of: &Prepared, error: &Error) -> Fault {
        let (name, detail) = match &self.pool {
            Ok(pool) => (pool.name(), format!("{}: {}", pool.target(), error.detail())),
            Err(why) => ("none", why.clone()),
        };
        let message = format!(
            "SQL Exception occurred while executing statement: {} against DataSource : {name}",
            of.written
        );
        let status = if error.reason == Reason::Unavailable { 503 } else { 500 };
        Fault { status, ..Fault::new(message).because(detail) }
    }
}

impl Prepared {
    /// The parameters of a message.
    ///
    /// # Errors
    /// An expression fails, or gives no value of the type.
    pub fn parameters(&self, context: &mut Context) -> Result<Vec<Parameter>, Fault> {
        let mut values = Vec::with_capacity(self.parameters.len());
        for (at, input) in self.parameters.iter().enumerate() {
            values.push(match &input.value {
                From::Text(parameter) => parameter.clone(),
                From::Expression(expression) => {
                    let mut text = expression.string(context)?;
                    // An element without a text is given as XML, which is no value.
                    if text.as_deref().is_some_and(|text| text.starts_with('<'))
                        && expression.value(context)?.is_some_and(|value| is_empty_element(&value))
                    {
                        text = None;
                    }
                    input.kind.parse(text.as_deref()).map_err(|why| {
                        let message =
                            format!("parameter {} of the statement {} is wrong", at + 1, self.written);
                        Fault::new(message).because(format!("{}: {why}", expression.source()))
                    })?
                }
            });
        }
        Ok(values)
    }

    /// Puts the columns of a row into properties; NULL leaves a property as it was.
    pub fn keep(&self, row: Row, context: &mut Context) -> Result<(), Error> {
        let columns = Arc::clone(&row.columns);
        let places: Vec<usize> =
            self.results.iter().map(|(_, column)| place(column, &columns)).collect::<Result<_, _>>()?;
        let mut values = row.values;
        for (index, (name, _)) in self.results.iter().enumerate() {
            let at = places[index];
            let again = places[index + 1..].contains(&at);
            let value = values.get_mut(at).map(|column| match again {
                true => column.clone(),
                // A large text is not copied.
                false => std::mem::replace(column, sql::Value::Null),
            });
            if let Some(text) = value.and_then(sql::Value::text) {
                context.properties.set(Arc::clone(name), message::Value::from(text));
            }
        }
        Ok(())
    }
}

/// Whether it is one element that has neither text nor elements nor attributes, but for what XML Schema says of instances (`xsi:nil`).
fn is_empty_element(value: &Value) -> bool {
    const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";
    let Value::Xml(element) = value else { return false };
    let &[node] = element.nodes.as_slice() else { return false };
    let document = &element.document;
    document.kind(node) == xml::NodeKind::Element
        && document.children(node).all(|child| document.kind(child) != xml::NodeKind::Element)
        && document.string_value(node).trim().is_empty()
        && document.attributes(node).all(|attribute| document.namespace(attribute) == INSTANCE)
}

/// So much of a request that no step has read is received while its flow waits for a database.
const AHEAD: usize = 64 << 10;

/// Waits for a database. That a client has gone is seen behind its request only, so one that no step has read is received meanwhile, if it is
/// not large.
///
/// # Errors
/// Those of the work; the request does not arrive whole.
pub(crate) async fn wait<T>(
    context: &mut Context,
    work: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    let mut work = pin!(work);
    let mut watches = !context.response;
    let services = Arc::clone(context.services());
    poll_fn(|cx| {
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(done);
        }
        while watches && let Some(stream) = context.payload.stream_mut() {
            if stream.buffered().len() > AHEAD.min(services.limits.held) {
                watches = false;
            } else if stream.is_complete()
                || !ready!(stream.poll_more(cx)).map_err(message::PayloadError::Receiving)?
            {
                // All is here, so it ends at once. Where there is no memory for it, it stays where it is.
                let taken = pin!(context.payload.buffer(&services.limits)).poll(cx);
                watches = matches!(taken, Poll::Ready(Ok(())));
            }
        }
        Poll::Pending
    })
    .await
}

fn place(column: &Column, columns: &Columns) -> Result<usize, Error> {
    let (found, wanted) = match column {
        Column::Name(name) => (columns.named(name), name.clone()),
        Column::Number(number) => {
            (Some(*number).filter(|&at| at < columns.names().len()), (number + 1).to_string())
        }
    };
    found.ok_or_else(|| {
        let message = format!("the result has no column {wanted}; it has {}", columns.names().join(", "));
        Error::new(Reason::Value, message)
    })
}

/// A connection, for as long as a step needs it.
pub(crate) enum Session<'a> {
    /// Of this step alone.
    Own(Box<Lease>),
    /// Of the transaction of the message.
    Shared(MutexGuard<'a, Option<Lease>>),
}

impl Session<'_> {
    /// The connection.
    ///
    /// # Errors
    /// That of the transaction broke before.
    pub fn lease(&mut self) -> Result<&mut Lease, Error> {
        match self {
            Session::Own(lease) => Ok(lease),
            Session::Shared(lease) => {
                lease.as_mut().ok_or_else(|| Error::new(Reason::Interrupted, "the transaction is over"))
            }
        }
    }

    /// Ends what this step began: without `autocommit` what it did counts now, or never.
    pub async fn end(self, commits: bool) -> Result<(), Error> {
        match self {
            Session::Own(mut lease) if lease.in_transaction() => match commits {
                true => lease.commit().await,
                false => lease.roll_back().await,
            },
            _ => Ok(()),
        }
    }
}

/// The transaction of a message. It has the connection of the first data source that takes part, and goes with the message and its copies; when
/// the last of them is gone without an end, it is taken back.
pub(crate) struct Transaction {
    lease: Mutex<Option<Lease>>,
    /// Who it is of, for the log.
    message: String,
}

/// Why a step cannot take part.
enum Refused {
    Fault(Box<Fault>),
    Sql(Error),
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.lease.get_mut().as_ref().is_some_and(Lease::in_transaction) {
            tracing::warn!(
                target: "busbar::sql",
                message_id = %self.message,
                "the transaction of the message ended with neither commit nor rollback: it is taken back"
            );
        }
    }
}

impl Transaction {
    /// One that no step takes part in yet.
    pub fn new(context: &Context) -> Transaction {
        Transaction { lease: Mutex::new(None), message: context.message_id() }
    }

    /// Its connection, which the first step opens.
    async fn enlist(&self, pool: &Arc<Pool>) -> Result<Session<'_>, Refused> {
        let mut lease_of_message = self.lease.lock().await;
        match lease_of_message.as_ref() {
            Some(lease) if !Arc::ptr_eq(lease.pool(), pool) => {
                let message = format!(
                    "a transaction is over one data source: it is over {}, and this step is for {}",
                    lease.pool().name(),
                    pool.name()
                );
                return Err(Refused::Fault(Box::new(Fault::new(message))));
            }
            Some(_) => {}
            None => {
                let mut lease = pool.get().await.map_err(Refused::Sql)?;
                lease.begin().await.map_err(Refused::Sql)?;
                *lease_of_message = Some(lease);
            }
        }
        Ok(Session::Shared(lease_of_message))
    }

    /// Ends it.
    pub async fn end(&self, commits: bool) -> Result<(), Fault> {
        let Some(mut lease) = self.lease.lock().await.take() else { return Ok(()) };
        let name = lease.pool().name().to_owned();
        let done = match commits {
            true if lease.in_transaction() => lease.commit().await,
            true => Err(Error::new(Reason::Interrupted, "its connection broke before: nothing of it counts")),
            false if lease.in_transaction() => lease.roll_back().await,
            // The connection is gone, and what was done with it.
            false => Ok(()),
        };
        done.map_err(|error| {
            let ending = if commits { "committed" } else { "rolled back" };
            Fault::new(format!("the transaction over {name} cannot be {ending}")).because(error.detail())
        })
    }
}

#[cfg(test)]
mod tests {
    use flow::testing::{self, Tested};
    use message::{Body, BodyError, BodyStream, Payload};
    use std::any::Any;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::task;
    use std::time::Duration;

    const XML: [(&str, &str); 1] = [("Content-Type", "application/xml")];

    fn tested(mediators: &str) -> Tested {
        testing::main(&crate::registry(testing::endpoints), mediators)
    }

    /// A pool in memory of its own for a test.
    fn pool(name: &str, more: &str) -> String {
        format!(
            "<connection><pool><driver>d</driver><url>jdbc:sqlite:file:{name}?mode=memory</url><user/><password/>{more}</pool></connection>"
        )
    }

    fn statement(sql: &str, more: &str) -> String {
        format!("<statement><sql><![CDATA[{sql}]]></sql>{more}</statement>")
    }

    #[test]
    fn what_is_wrong_is_found_when_it_loads() {
        let pool_element = pool("checked", "");
        let whole =
            statement("select ?", "<parameter value='1' type='INTEGER'/><result name='a' column='1'/>");
        for (name, inside, says) in [
            ("dblookup", format!("{pool_element}{whole}"), ""),
            ("dbreport", format!("{pool_element}{}", statement("a", "")), ""),
            ("dbreport", format!("{pool_element}{whole}"), "`result` cannot stand inside of `statement`"),
            ("dblookup", whole.clone(), "needs a `connection`"),
            (
                "dblookup",
                format!("<connection><pool><driver>a</driver></pool></connection>{whole}"),
                "needs a `dsName`",
            ),
            ("dblookup", pool_element.clone(), "needs a `statement`"),
            ("dblookup", format!("{pool_element}<statement/>"), "needs an `sql`"),
            (
                "dblookup",
                format!("{pool_element}{}", statement("select ?", "<parameter value='1' type='INT'/>")),
                "needs a `type`",
            ),
            (
                "dblookup",
                format!("{pool_element}{}", statement("select ?", "<parameter value='x' type='INTEGER'/>")),
                "`x` is not of the type INTEGER",
            ),
            (
                "dblookup",
                format!("{pool_element}{}", statement("select ?", "<parameter type='BIT'/>")),
                "needs a `value`",
            ),
            (
                "dblookup",
                format!(
                    "{pool_element}{}",
                    statement("select ?", "<parameter expression='//[' type='BIT'/>")
                ),
                "not a valid expression",
            ),
            (
                "dblookup",
                format!("{pool_element}{}", statement("select '?'", "<parameter value='1' type='BIT'/>")),
                "0 question marks",
            ),
            ("dblookup", format!("{pool_element}{}", statement("a", "<result name='a'/>")), "a `column`"),
            (
                "dblookup",
                format!("{pool_element}{}", statement("a", "<result name='a' column='0'/>")),
                "a `column` from 1",
            ),
            (
                "dblookup",
                format!("{}{whole}", pool("p", "<property name='maxactiv' value='1'/>")),
                "no option `maxactiv`",
            ),
            (
                "dblookup",
                format!("{}{whole}", pool("p", "<property name='maxactive' value='x'/>")),
                "`maxactive` cannot be `x`",
            ),
            (
                "dblookup",
                format!("<connection><pool><driver>d</driver><url key='none'/></pool></connection>{whole}"),
                "there is no entry `none`",
            ),
            (
                "dblookup",
                format!(
                    "<connection><pool><driver>d</driver><url>jdbc:h2:mem:a</url></pool></connection>{whole}"
                ),
                "there is no driver for H2",
            ),
            (
                "dblookup",
                format!(
                    "<connection><pool><driver>d</driver><url>jdbc:mysql://h/d</url><password>$secret{{none}}</password></pool></connection>{whole}"
                ),
                "the secret `none` is not available",
            ),
        ] {
            let tested = tested(&format!("<{name}>{inside}</{name}>"));
            match says {
                "" => assert!(tested.found.is_empty(), "{:?}", tested.found),
                says => assert!(tested.reports(says), "{inside}: {:?}", tested.found),
            }
        }
        let h2 = format!(
            "<dblookup><connection><pool><driver>d</driver><url>jdbc:h2:mem:a</url></pool></connection>{whole}</dblookup>"
        );
        let registry = crate::registry(testing::endpoints);
        let tested = testing::main_with(&registry, &h2, |services| services.settings.sql_embedded = true);
        assert!(tested.found.is_empty(), "{:?}", tested.found);
    }

    /// Statements as samples of WSO2 have them for databases inside of a Java machine.
    #[test]
    fn samples_of_h2_and_derby_run_on_sqlite() {
        for url in ["jdbc:h2:mem:company;DB_CLOSE_DELAY=-1", "jdbc:derby:memory:company;create=true"] {
            let pool = format!(
                "<connection><pool><driver>d</driver><url>{url}</url><user>wso2</user><password>wso2</password></pool></connection>"
            );
            let create = "CREATE TABLE IF NOT EXISTS company(name varchar(10) primary key, id varchar(10), price double)";
            let set = "<parameter expression='//price' type='DOUBLE'/><parameter expression='//symbol' type='VARCHAR'/>";
            let look = "<parameter expression='//symbol' type='VARCHAR'/><result name='id' column='id'/><result name='price' column='3'/>";
            let text = format!(
                "<dbreport>{pool}{}{}{}</dbreport><dbreport>{pool}{}</dbreport><dblookup>{pool}{}</dblookup>",
                statement(create, ""),
                statement("delete from company", ""),
                statement("insert into company values ('IBM','c1',0.0), ('SUN','c2',0.0)", ""),
                statement("update company set price=? where name =?", set),
                statement("select * from company where name =?", look),
            );
            let registry = crate::registry(testing::endpoints);
            let tested =
                testing::main_with(&registry, &text, |services| services.settings.sql_embedded = true);
            assert!(tested.found.is_empty(), "{url}: {:?}", tested.found);
            let end = tested.run(&XML, "<order><symbol>SUN</symbol><price>155.5</price></order>");
            let found = ["id", "price", "DBREPORT_MODIFIED_RAW_COUNT"].map(|name| end.property(name));
            assert_eq!(end.fault(), None, "{url}");
            assert_eq!(
                found.each_ref().map(Option::as_deref),
                [Some("c2"), Some("155.5"), Some("1")],
                "{url}"
            );
        }
    }

    /// Whatever stands in an option or an attribute, loading ends with findings or a step, and messages with an end.
    #[test]
    fn attributes_may_be_anything() {
        let options = [
            "autocommit='true'",
            "isolation='TRANSACTION_SERIALIZABLE'",
            "initialsize='1'",
            "maxactive='2'",
            "maxidle='1'",
            "maxopenstatements='5'",
            "maxwait='100'",
            "minidle='0'",
            "poolstatements='true'",
            "testonborrow='true'",
            "testonreturn='false'",
            "testwhileidle='false'",
            "validationquery='select 1'",
            "queryTimeout='5'",
            "maxAge='1'",
            "minEvictableIdleTimeMillis='1'",
            "validationInterval='1'",
            "defaultReadOnly='false'",
            "initSQL='select 1'",
        ];
        let huge = "9".repeat(40_000);
        let values = [
            "",
            " ",
            "NaN",
            "-1",
            "0",
            "1e400",
            "9223372036854775807",
            "9223372036854775808",
            "true",
            "'; drop",
            &huge,
        ];
        let mut ran = 0;
        for option in options {
            let (name, _) = option.split_once('=').unwrap();
            for value in values {
                let value = value.replace('\'', "&apos;");
                let more = format!("<property name='{name}' value='{value}'/>");
                let look = statement("select 1", "<result name='a' column='1'/>");
                let text = format!("<dblookup>{}{look}</dblookup>", pool("anything", &more));
                let end = tested(&text).run(&XML, "<a/>");
                ran += usize::from(end.property("a").as_deref() == Some("1"));
            }
        }
        assert!(ran > options.len(), "{ran}");
        for (kind, value, column) in [
            ("INTEGER", "", "1"),
            ("INTEGER", "NaN", "1"),
            ("DOUBLE", "NaN", "1"),
            ("REAL", "1e400", "1"),
            ("DECIMAL", &huge, "1"),
            ("TIMESTAMP", "9999-99-99 99:99:99", "1"),
            ("DATE", "é026-11-23", "1"),
            ("TIME", "é", "1"),
            ("VARCHAR", &huge, "1"),
            ("VARCHAR", "a", "18446744073709551615"),
            ("VARCHAR", "a", "18446744073709551616"),
            ("VARCHAR", "a", "-1"),
            ("VARCHAR", "a", ""),
            ("VARCHAR", "a", "0"),
            ("", "a", "1"),
            ("VARCHAR ", "a", "1"),
            (&huge, "a", "1"),
        ] {
            let parameter =
                format!("<parameter value='{value}' type='{kind}'/><result name='r' column='{column}'/>");
            let expression =
                format!("<parameter expression='//a' type='{kind}'/><result name='r' column='{column}'/>");
            for inside in [parameter, expression] {
                let text = format!(
                    "<dblookup>{}{}</dblookup>",
                    pool("anything", ""),
                    statement("select ?", &inside)
                );
                let end = tested(&text).run(&XML, &format!("<a>{value}</a>"));
                drop((end.fault(), end.property("r")));
            }
        }
    }

    #[test]
    fn a_statement_has_the_time_that_settings_give_it() {
        let endless =
            "with recursive n(a) as (select 1 union all select a + 1 from n) select count(*) from n";
        let text = format!("<dblookup>{}{}</dblookup>", pool("endless", ""), statement(endless, ""));
        let registry = crate::registry(testing::endpoints);
        let tested = testing::main_with(&registry, &text, |services| {
            services.settings.sql_timeout = Duration::from_millis(100);
        });
        let end = tested.run(&XML, "<a/>");
        assert_eq!(
            end.property("ERROR_DETAIL").as_deref().map(|detail| detail.contains("within 0.1 s")),
            Some(true)
        );
    }

    /// A server looks for the database when a message comes: what is not there costs that step a fault, and nothing else.
    #[test]
    fn a_database_that_is_not_here_is_a_fault_of_the_step() {
        let whole = statement("select 1", "<result name='a' column='1'/>");
        for (pool, says) in [
            ("<dsName>none</dsName>", "unknown-data-source: there is no data source `none`"),
            (
                "<driver>d</driver><url>jdbc:oracle:thin:@h:1521:x</url>",
                "unsupported-database: there is no driver for Oracle",
            ),
            (
                "<driver>d</driver><url>${configs.no_such_url}</url>",
                "unresolved-value: `no_such_url` is set neither as environment variable",
            ),
            (
                "<driver>d</driver><url>$env{NO_SUCH_URL}</url>",
                "unresolved-value: the environment variable `NO_SUCH_URL` is not set",
            ),
            (
                "<driver>d</driver><url>jdbc:sqlite::memory:</url><password>$secret{none}</password>",
                "unknown-secret: the secret `none` is not available",
            ),
        ] {
            for check_only in [false, true] {
                let text = format!(
                    "<property name='before' value='ran'/><dblookup><connection><pool>{pool}</pool></connection>{whole}</dblookup>"
                );
                let registry = crate::registry(testing::endpoints);
                let tested = testing::main_with(&registry, &text, |services| {
                    services.settings.check_only = check_only;
                });
                assert!(tested.reports(says), "{pool}: {:?}", tested.found);
                assert_eq!(tested.found.len(), 1, "{pool}: {:?}", tested.found);
                if check_only && pool.contains("$secret") {
                    continue;
                }
                let end = tested.run(&XML, "<a/>");
                let fault = end.fault().expect("a fault");
                assert!(fault.contains("there is no database for this step"), "{pool}: {fault}");
                assert_eq!(end.property("before").as_deref(), Some("ran"), "{pool}");
            }
        }
        // What is wrong anywhere is an error all the same.
        let text = "<dblookup><connection><pool><dsName>none</dsName></pool></connection></dblookup>";
        let tested = tested(text);
        assert!(tested.reports("needs a `statement`"), "{:?}", tested.found);
        assert!(!tested.bus.plan().faulty.is_empty());
    }

    #[test]
    fn several_statements_run_in_order_on_what_was_there_before() {
        let pool_element = pool("order", "");
        let text = format!(
            "<property name='kept' value='old'/><dbreport>{pool_element}{}{}</dbreport><dblookup>{pool_element}{}{}</dblookup>",
            statement("create table t (a integer, b varchar(9))", ""),
            statement(
                "insert into t values (?, ?), (2, 'x')",
                "<parameter value='1' type='INTEGER'/><parameter value='' type='VARCHAR'/>"
            ),
            statement(
                "select a, b from t order by a",
                "<result name='a' column='A'/><result name='kept' column='2'/>"
            ),
            statement(
                "select max(a) + ? from t",
                "<parameter expression='$ctx:a' type='BIGINT'/><result name='next' column='1'/>"
            ),
        );
        let end = tested(&text).run(&XML, "<a/>");
        assert_eq!(end.fault(), None);
        assert_eq!(end.property("DBREPORT_MODIFIED_RAW_COUNT").as_deref(), Some("2"));
        assert_eq!(end.property("kept").as_deref(), Some("old"));
        assert_eq!(end.property("next").as_deref(), Some("3"));
    }

    #[test]
    fn without_autocommit_a_step_counts_as_a_whole() {
        let pool_element = pool("whole", "<property name='autocommit' value='false'/>");
        let text = format!(
            "<dbreport>{pool_element}{}{}</dbreport><dbreport>{pool_element}{}{}</dbreport><!--top--><sequence name='fault'><dblookup>{pool_element}{}</dblookup></sequence>",
            statement("create table t (a integer)", ""),
            statement("insert into t values (1)", ""),
            statement("insert into t values (2)", ""),
            statement("insert into nowhere values (3)", ""),
            statement("select count(*) from t", "<result name='count' column='1'/>"),
        );
        let end = tested(&text).run(&XML, "<a/>");
        assert!(end.fault().is_some_and(|fault| fault.contains("insert into nowhere")), "{:?}", end.fault());
        assert_eq!(end.property("count").as_deref(), Some("1"));
    }

    #[test]
    fn a_transaction_is_over_one_data_source_and_ends_with_its_message() {
        let (pool_element, other) = (pool("one", ""), pool("two", ""));
        let insert = statement("insert into t values (1)", "");
        let create = format!(
            "<dbreport>{pool_element}{}</dbreport>",
            statement("create table if not exists t (a integer)", "")
        );
        let count = format!(
            "<dblookup>{pool_element}{}</dblookup>",
            statement("select count(*) from t", "<result name='count' column='1'/>")
        );
        for (steps, fault, rows) in [
            ("<transaction action='new'/>IN<transaction action='commit'/>", None, "1"),
            (
                "<transaction action='use-existing-or-new'/>IN<transaction action='fault-if-no-tx'/><transaction action='rollback'/>",
                None,
                "0",
            ),
            (
                "<transaction action='new'/>IN<transaction action='use-existing-or-new'/>IN<transaction action='commit'/>",
                None,
                "2",
            ),
            ("<transaction action='new'/><transaction action='commit'/>", None, "0"),
            (
                "<transaction action='new'/><transaction action='new'/>",
                Some("there is a transaction already"),
                "",
            ),
            ("<transaction action='fault-if-no-tx'/>", Some("there is no transaction"), ""),
            ("<transaction action='rollback'/>", Some("there is no transaction"), ""),
            (
                "<transaction action='new'/>IN<dbreport>OTHER</dbreport>",
                Some("a transaction is over one data source"),
                "",
            ),
            ("<dbreport useTransaction='true'>OWN</dbreport>", Some("there is no transaction"), ""),
        ] {
            let steps = steps.replace("IN", "<dbreport>OWN</dbreport>");
            let steps = steps
                .replace("OWN", &format!("{pool_element}{insert}"))
                .replace("OTHER", &format!("{other}{insert}"));
            let end = tested(&format!("{create}{steps}{count}")).run(&XML, "<a/>");
            match fault {
                None => {
                    assert_eq!((end.fault(), end.property("count").as_deref()), (None, Some(rows)), "{steps}")
                }
                Some(says) => {
                    assert!(end.fault().is_some_and(|fault| fault.contains(says)), "{:?}", end.fault())
                }
            }
        }
        // One that nobody ends is taken back when its message is gone.
        let begins = format!(
            "{create}<filter xpath='//begin'><then><transaction action='new'/><dbreport>{pool_element}{insert}</dbreport></then></filter>{count}"
        );
        let tested = tested(&begins);
        let end = tested.run(&XML, "<begin/>");
        assert_eq!(end.property("count").as_deref(), Some("1"));
        drop(end);
        assert_eq!(tested.run(&XML, "<look/>").property("count").as_deref(), Some("0"));
    }

    #[test]
    fn an_element_without_a_text_is_null() {
        let pool_element = pool("empty", "");
        let look = |expression: &str, kind: &str| {
            let parameter =
                format!("<parameter expression='{expression}' type='{kind}'/><result name='is' column='1'/>");
            let look = statement("select coalesce(?, 'NULL')", &parameter);
            tested(&format!("<dblookup>{pool_element}{look}</dblookup>"))
        };
        for (body, kind, is) in [
            ("<m><b/></m>", "INTEGER", "NULL"),
            ("<m><b></b></m>", "VARCHAR", "NULL"),
            ("<m><b> <!--none--> </b></m>", "DATE", "NULL"),
            (
                "<m><b xsi:nil='true' xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance'/></m>",
                "INTEGER",
                "NULL",
            ),
            ("<m/>", "INTEGER", "NULL"),
            ("<m><b>5</b></m>", "INTEGER", "5"),
            ("<m><b><c/></b></m>", "VARCHAR", "<b><c/></b>"),
            ("<m><b id='1'/></m>", "VARCHAR", "<b id=\"1\"/>"),
            ("<m><b>&lt;b/></b></m>", "VARCHAR", "<b/>"),
        ] {
            let end = look("//b", kind).run(&XML, body);
            assert_eq!((end.fault(), end.property("is").as_deref()), (None, Some(is)), "{body} {kind}");
        }
        assert!(look("//b", "INTEGER").run(&XML, "<m><b><c/></b></m>").fault().is_some());
    }

    /// A request that is on its way.
    struct Arriving {
        here: Vec<u8>,
        /// What comes, one by one; after that nothing does.
        comes: Vec<Result<bool, BodyError>>,
        done: bool,
        gone: Arc<AtomicBool>,
    }

    impl BodyStream for Arriving {
        fn buffered(&self) -> &[u8] {
            &self.here
        }

        fn poll_more(&mut self, _: &mut task::Context<'_>) -> task::Poll<Result<bool, BodyError>> {
            let Some(next) = self.comes.pop() else { return task::Poll::Pending };
            match next {
                Ok(true) => self.here.extend([b'x'; 40_000]),
                _ => self.done = true,
            }
            task::Poll::Ready(next)
        }

        fn consume(&mut self, n: usize) {
            self.here.drain(..n);
        }

        fn is_complete(&self) -> bool {
            self.done
        }

        fn exact_len(&self) -> Option<u64> {
            None
        }

        fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
            self
        }
    }

    impl Drop for Arriving {
        fn drop(&mut self) {
            self.gone.store(true, Relaxed);
        }
    }

    #[test]
    fn a_request_is_received_while_its_flow_waits_so_that_its_client_is_watched() {
        let tested = tested("<drop/>");
        let wait = |comes: Vec<Result<bool, BodyError>>| {
            let mut context = tested.context(&XML, "");
            let gone = Arc::new(AtomicBool::new(false));
            let arriving = Arriving { here: Vec::new(), comes, done: false, gone: Arc::clone(&gone) };
            let reading = context.payload.reading();
            context.payload = Payload::received(Body::Stream(Box::new(arriving)), reading);
            let work = async {
                tokio::time::sleep(Duration::from_millis(1)).await;
                Ok(gone.load(Relaxed))
            };
            let ended = testing::block_on(super::wait(&mut context, work));
            (ended.map_err(|fault| fault.status), context.payload.bytes().map_or(0, |bytes| bytes.len()))
        };
        // It is let go of when it is here, and the connection is watched again.
        assert_eq!(wait(vec![Ok(false), Ok(true)]), (Ok(true), 40_000));
        // Not yet, and one that is large.
        assert_eq!(wait(vec![Ok(true)]), (Ok(false), 0));
        assert_eq!(wait(vec![Ok(false), Ok(true), Ok(true)]), (Ok(false), 0));
        assert_eq!(wait(vec![Err(BodyError::Truncated), Ok(true)]), (Err(400), 0));
    }

    #[test]
    fn a_reload_keeps_the_connections_of_what_stays() {
        let text = |sql: &str| {
            let look = format!(
                "<dblookup>{}{}</dblookup>",
                pool("reloaded", ""),
                statement(sql, "<result name='n' column='1'/>")
            );
            format!(
                "<definitions xmlns='{}'><sequence name='main'>{look}</sequence></definitions>",
                config::SYNAPSE
            )
        };
        let registry = crate::registry(testing::endpoints);
        let tested = testing::configuration(&registry, &text("select 1"));
        let pools = || tested.bus.services().kept.get::<sql::Pools>().all();
        assert_eq!(tested.run(&XML, "<a/>").property("n").as_deref(), Some("1"));
        let before = pools()[0].status();
        testing::reload(&tested.bus, &registry, &text("select 2"));
        assert_eq!(tested.run(&XML, "<a/>").property("n").as_deref(), Some("2"));
        let after = pools()[0].status();
        assert_eq!((pools().len(), before.opened.0, after.opened.0, after.statements.0), (1, 1, 1, 2));
    }
}
