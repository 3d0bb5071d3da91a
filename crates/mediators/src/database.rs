//! What `dblookup`, `dbreport` and `transaction` share: the connection, the statements, the transaction of a message.

mod data_source;
mod message_store;
mod transaction;

pub use self::data_source::{pool_named, pool_with};
pub(crate) use self::message_store::message_store;
pub(crate) use self::transaction::Transaction;

use self::data_source::connection;
use self::transaction::{Refused, Session};
use config::Element;
use diagnostics::Diagnostic;
use flow::{Attribute, Compiler, Context, Expression, Fault, Flow, Inside, Need, Values};
use message::Value;
use sql::{Columns, Error, Kind, Parameter, Pool, Reason, Row, Statement};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};

/// The attribute of both.
pub(crate) const TRANSACTION: Attribute =
    Attribute::optional("useTransaction", Values::Boolean, "requires a transaction").or("false");

/// The children of both, as their pages describe them.
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
    let target = match &pool {
        Some(Ok(pool)) => Some(pool.target()),
        _ => None,
    };
    let mut statements = Vec::new();
    for child in element.children_named("statement") {
        match statement(child, target, compiler, reads) {
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

/// Compiles a `statement`; `reads`: its results go into properties. `None` after a recorded error.
fn statement(
    element: &Element,
    target: Option<&sql::Target>,
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
    let statement = match target {
        Some(target) => Statement::new(&target.escaped_call(&text), target.dialect),
        None => Statement::new(&text, sql::Dialect::Sqlite),
    };
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

/// Compiles a `parameter`; a literal is parsed here. `None` after a recorded error.
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

/// Records an error for each child whose name is none of `names`; `None` if there was one.
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
        let failed = |error: Error| self.fault(&self.statements[0], &error);
        if let Some(transaction) = transaction {
            let joined = transaction.enlist(pool).await.map_err(|why| match why {
                Refused::Fault(fault) => *fault,
                Refused::Sql(error) => failed(error),
            })?;
            if let Some(session) = joined {
                return Ok(session);
            }
        }
        if self.needs_transaction {
            return Err(Fault::new("there is no transaction that this step could take part in")
                .because("useTransaction=\"true\" needs <transaction action=\"new\"/> before it"));
        }
        let mut lease = pool.get().await.map_err(failed)?;
        if !pool.autocommit() {
            lease.begin().await.map_err(failed)?;
        }
        Ok(Session::Own(Box::new(lease)))
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

/// Where a column is in a row.
///
/// # Errors
/// The result has no such column.
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

#[cfg(test)]
mod tests;
