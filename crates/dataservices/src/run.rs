//! Runs a request: parameters to statements, rows to a response.

use crate::event::{self, Causes};
use crate::fault::{Trouble, code};
use crate::output::{Form, Pipe, TooLarge, Writer};
use crate::plan::{
    Call, Field, Group, Operation, ParameterKind, Part, Query, Rows, Service, Shape, Source, With, variable,
};
use crate::rdf::Template;
use crate::request::Ask;
use crate::table;
use crate::value::{self, Givens, RequestValue};
use config::DataDirection;
use sql::{Columns, Error, Kind, Lease, Parameter, Pool, Reason, Row, Sink, Statement, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The element around the answer to a request box.
pub(crate) const BOX_ANSWER: &str = "DATA_SERVICE_REQUEST_BOX_RESPONSE";

/// The limits of a run, and who it is for.
pub(crate) struct Terms {
    pub form: Form,
    /// Most bytes of a response that is complete before it is sent; `None`: it is streamed.
    pub most: Option<usize>,
    /// Most bytes of rows that are collected because each runs another query.
    pub collected: usize,
    /// The roles of the client, where results have parts for certain roles only.
    pub roles: Vec<String>,
    /// What event triggers are to look at; `None`: no query of the request has one.
    pub causes: Option<Arc<Causes>>,
}

impl Terms {
    /// Whether the client sees what these roles see.
    fn sees(&self, roles: &[String]) -> bool {
        roles.is_empty() || flow::roles::suffice(&self.roles, roles)
    }
}

/// A running request.
struct Run {
    service: Arc<Service>,
    writer: Writer,
    terms: Terms,
    /// Its connections, one for each pool.
    leases: Vec<Lease>,
    /// It is a transaction: all is committed at its end, or nothing.
    together: bool,
    exports: Givens,
}

/// Runs a request, and writes the response into a pipe. `false`: there is no response.
///
/// # Errors
/// Something failed; a transaction is rolled back.
pub(crate) async fn perform(
    service: Arc<Service>,
    ask: Ask,
    pipe: Arc<Pipe>,
    terms: Terms,
) -> Result<bool, Trouble> {
    let writer = Writer::new(terms.form, pipe, terms.most);
    let together = !matches!(ask, Ask::One(..));
    let mut run = Run {
        service: Arc::clone(&service),
        writer,
        terms,
        leases: Vec::new(),
        together,
        exports: Givens::new(),
    };
    let done = run.ask(&ask).await;
    let answered = match done {
        Ok(answered) => answered,
        Err(trouble) => {
            run.roll_back().await;
            return Err(trouble.during(ask.name(&service), &Givens::new(), &[]));
        }
    };
    for lease in &mut run.leases {
        if lease.in_transaction() {
            lease.commit().await.map_err(|error| Trouble::of(&error, "commit"))?;
        }
    }
    run.leases.clear();
    run.writer.flush().map_err(|TooLarge| too_large(run.terms.most))?;
    Ok(answered)
}

fn too_large(most: Option<usize>) -> Trouble {
    let most = most.unwrap_or_default();
    Trouble::new(
        code::UNKNOWN,
        format!("the answer is larger than the {most} bytes that one may have before it leaves"),
    )
}

/// The values of parameters and fields.
#[derive(Clone, Copy)]
struct Scope<'a> {
    parameters: &'a Givens,
    row: Option<&'a Row>,
    numbers: bool,
}

impl Scope<'_> {
    /// A column as a value of a request.
    fn column(&self, name: &str) -> Option<RequestValue> {
        let row = self.row?;
        let at = place(&row.columns, name, self.numbers)?;
        Some(RequestValue::One(row.values.get(at).and_then(value::text).map(Cow::into_owned)))
    }

    /// As in WSO2, a column may stand for a parameter and the other way round.
    fn value(&self, source: &Source) -> Option<RequestValue> {
        match source {
            Source::Constant(text) => Some(RequestValue::One(Some(text.clone()))),
            Source::Reference(_) => None,
            Source::Column(name) => self.column(name).or_else(|| self.parameters.get(name).cloned()),
            Source::Parameter(name) => self.parameters.get(name).cloned().or_else(|| self.column(name)),
        }
    }
}

/// The place of a column. A generated key has one, whatever its name is.
fn place(columns: &Columns, name: &str, numbers: bool) -> Option<usize> {
    if columns.names() == [ANY] {
        return Some(0);
    }
    if numbers {
        return name
            .parse::<usize>()
            .ok()
            .and_then(|at| at.checked_sub(1))
            .filter(|&at| at < columns.names().len());
    }
    columns.named(name)
}

/// The name of the single column of keys and counts.
const ANY: &str = "GENERATED_KEY";

impl Run {
    /// Takes back what a failed request has done, so that its connections can be used again: requests that fail one after the other must not make
    /// as many new ones. A connection that fails in this is closed, and the database takes back; so does one of a request that is cancelled.
    async fn roll_back(&mut self) {
        for lease in self.leases.iter_mut().filter(|lease| lease.in_transaction()) {
            // It closes the connection and counts the error.
            _ = lease.roll_back().await;
        }
    }

    async fn ask(&mut self, ask: &Ask) -> Result<bool, Trouble> {
        self.writer.begin();
        let answered = match ask {
            Ask::One(at, givens) => self.operation(*at, givens).await?,
            Ask::Batch(at, all) => Box::pin(self.batch(*at, all)).await?,
            Ask::Box(all) => Box::pin(self.several(all)).await?,
        };
        self.writer.end();
        Ok(answered)
    }

    /// Runs several operations. As in WSO2, the response is that of the last one, in an element of its own.
    async fn several(&mut self, all: &[Ask]) -> Result<bool, Trouble> {
        let Some((last, before)) = all.split_last() else { return Ok(false) };
        for ask in before {
            let writer = self.unheard();
            let done = self.boxed(ask).await;
            self.writer = writer;
            done?;
        }
        let namespace: Arc<str> = Arc::from(config::DATA_SERVICE_NAMESPACE);
        self.writer.start(BOX_ANSWER, &namespace);
        self.writer.started();
        self.boxed(last).await?;
        self.writer.end_element(BOX_ANSWER);
        Ok(true)
    }

    /// Runs what is in a request box.
    async fn boxed(&mut self, ask: &Ask) -> Result<bool, Trouble> {
        match ask {
            Ask::One(at, givens) => self.operation(*at, givens).await,
            Ask::Batch(at, all) => self.batch(*at, all).await,
            Ask::Box(_) => Err(Trouble::new(code::UNKNOWN, "a request_box cannot be in another one")),
        }
    }

    /// What is written from now on goes nowhere. The writer before.
    fn unheard(&mut self) -> Writer {
        let pipe = Pipe::new(usize::MAX);
        std::mem::replace(&mut self.writer, Writer::new(Form::Xml, pipe, Some(self.terms.collected)))
    }

    async fn batch(&mut self, at: usize, all: &[Givens]) -> Result<bool, Trouble> {
        let service = Arc::clone(&self.service);
        let operation: &Operation = &service.operations[at];
        self.may_run(operation)?;
        for givens in all {
            // As in WSO2, the responses of a batch are dropped.
            let writer_before = self.unheard();
            let done =
                self.call(&operation.call, Scope { parameters: givens, row: None, numbers: false }, 0).await;
            self.writer = writer_before;
            done.map_err(|trouble| trouble.during(&operation.label, givens, &operation.call.parameters))?;
        }
        if operation.status {
            self.writer.status();
        }
        Ok(operation.status)
    }

    async fn operation(&mut self, at: usize, givens: &Givens) -> Result<bool, Trouble> {
        let service = Arc::clone(&self.service);
        let operation = &service.operations[at];
        self.may_run(operation)?;
        let has_result = service.queries[operation.call.query].result.is_some();
        let scope = Scope { parameters: givens, row: None, numbers: false };
        self.call(&operation.call, scope, 0)
            .await
            .map_err(|trouble| trouble.during(&operation.label, givens, &operation.call.parameters))?;
        if !has_result && operation.status {
            self.writer.status();
        }
        Ok(has_result || operation.status)
    }

    /// Refuses a client who has none of the roles that the query of an operation is for: there is nothing else to answer.
    fn may_run(&self, operation: &Operation) -> Result<(), Trouble> {
        if self.terms.sees(&operation.call.roles) {
            return Ok(());
        }
        let why = format!("it is for the roles {}", operation.call.roles.join(", "));
        let refused = Trouble { status: 403, ..Trouble::new(code::UNKNOWN, why) };
        Err(refused.during(&operation.label, &Givens::new(), &operation.call.parameters))
    }

    /// Runs a query with the parameters of a call.
    fn call<'a>(
        &'a mut self,
        call: &'a Call,
        scope: Scope<'a>,
        level: usize,
    ) -> Pin<Box<dyn Future<Output = Result<(), Trouble>> + Send + 'a>> {
        Box::pin(async move {
            let service = Arc::clone(&self.service);
            let query = &service.queries[call.query];
            let givens = self.parameters(query, call, scope, level)?;
            self.query(query, &givens, level).await
        })
    }

    /// The checked parameters of a query.
    fn parameters(
        &self,
        query: &Query,
        call: &Call,
        scope: Scope<'_>,
        level: usize,
    ) -> Result<Givens, Trouble> {
        let mut all = Givens::new();
        for parameter in &query.parameters {
            let with = call.parameters.iter().find(|with| with.name == parameter.name);
            let given = match with {
                Some(with) => scope.value(&with.source),
                // A parameter without `with-param`: the request may have it all the same.
                None if level == 0 => scope.parameters.get(&parameter.name).cloned(),
                None => None,
            };
            // An empty list of JSON is no element in XML, so that nothing is given.
            let is_nothing =
                |given: &RequestValue| matches!(given, RequestValue::Many(values) if values.is_empty());
            let given = given
                .filter(|given| parameter.is_array || !is_nothing(given))
                .or_else(|| self.exports.get(&parameter.name).cloned())
                .or_else(|| match &with?.source {
                    Source::Parameter(name) => self.exports.get(name).cloned(),
                    _ => None,
                })
                .or_else(|| parameter.default.clone());
            let given = match given {
                Some(given) => given,
                None if parameter.optional || parameter.direction == DataDirection::Out => {
                    RequestValue::One(None)
                }
                None => {
                    let (kind, name) = match with {
                        Some(With { source: Source::Column(_), written, .. }) => ("column", written),
                        Some(With { source: Source::Parameter(_), written, .. }) => ("query-param", written),
                        _ => ("query-param", &parameter.written),
                    };
                    let message = format!(
                        "Error in 'CallQuery.extractParams', cannot find parameter with type:{kind} name:{name}"
                    );
                    return Err(Trouble::new(code::PARAMETERS, message));
                }
            };
            let given = match given {
                RequestValue::One(value) if parameter.is_array => RequestValue::Many(vec![value]),
                RequestValue::Many(values) if !parameter.is_array => match <[_; 1]>::try_from(values) {
                    Ok([value]) => RequestValue::One(value),
                    Err(_) => {
                        return Err(invalid(&parameter.written, "it is expected once, and came more often"));
                    }
                },
                given => given,
            };
            let values: &[Option<String>] = match &given {
                RequestValue::One(value) => std::slice::from_ref(value),
                RequestValue::Many(values) => values,
            };
            for value in values.iter().flatten() {
                if let Some(why) = parameter.checks.iter().find_map(|check| check.refuses(value)) {
                    return Err(invalid(&parameter.written, &why));
                }
                if parameter.kind == ParameterKind::Written && !value::is_harmless(value) {
                    let why =
                        "a QUERY_STRING has names, numbers, texts in quotes and directions of order only";
                    return Err(invalid(&parameter.written, why));
                }
            }
            all.insert(parameter.name.clone(), given);
        }
        Ok(all)
    }

    /// The index of the connection to a pool.
    async fn lease(&mut self, query: &Query) -> Result<usize, Trouble> {
        let none = || Trouble::new(code::UNKNOWN, format!("the query {} asks no database", query.id));
        let pool: &Arc<Pool> = query.pool.as_ref().ok_or_else(none)?;
        if let Some(at) = self.leases.iter().position(|lease| Arc::ptr_eq(lease.pool(), pool)) {
            return Ok(at);
        }
        let failed = |error| Trouble::of(&error, &query.id);
        let mut lease = pool.get().await.map_err(failed)?;
        if self.together || !query.autocommit {
            lease.begin().await.map_err(failed)?;
        }
        self.leases.push(lease);
        Ok(self.leases.len() - 1)
    }

    /// Runs a query, and keeps what its event triggers are to look at.
    async fn query(&mut self, query: &Query, givens: &Givens, level: usize) -> Result<(), Trouble> {
        let Some(causes) = &self.terms.causes else { return self.rows_of(query, givens, level).await };
        let (causes, most) = (Arc::clone(causes), self.terms.collected);
        if let Some(trigger) = query.input_trigger {
            causes.add(trigger, &query.id, event::of_parameters(query, givens), most)?;
        }
        let Some(trigger) = query.output_trigger else {
            return Box::pin(self.rows_of(query, givens, level)).await;
        };
        self.writer.copy();
        let done = Box::pin(self.rows_of(query, givens, level)).await;
        let copy = self.writer.copied();
        done?;
        // A query without a result has none to look at.
        if copy.is_empty() { Ok(()) } else { causes.add(trigger, &query.id, copy, most) }
    }

    /// Writes the rows of a query.
    async fn rows_of(&mut self, query: &Query, givens: &Givens, level: usize) -> Result<(), Trouble> {
        if let (Some(table), Some(shape)) = (&query.table, &query.result) {
            let rows = Box::pin(table::rows(table, &query.id, self.terms.collected)).await?;
            return Box::pin(self.rows(shape, givens, rows, level)).await;
        }
        let (statement, parameters) = bind(query, givens)?;
        let at = self.lease(query).await?;
        let failed = |error: Error| Trouble::of(&error, &query.id);
        let Some(shape) = &query.result else {
            self.leases[at].run(&statement, &parameters, |_| Ok(false)).await.map_err(failed)?;
            return Ok(());
        };
        if query.has_variables() {
            let rows = Box::pin(self.returned(query, givens, &statement, &parameters, at)).await?;
            return Box::pin(self.rows(shape, givens, rows, level)).await;
        }
        match query.rows {
            Rows::Own => {}
            Rows::Keys if query.dialect() == sql::Dialect::Postgres => {}
            Rows::Keys | Rows::Count => {
                let done =
                    self.leases[at].run(&statement, &parameters, |_| Ok(false)).await.map_err(failed)?;
                let value = match query.rows {
                    Rows::Count => Some(Value::Unsigned(done.affected)),
                    _ => done.generated.map(Value::Integer),
                };
                let columns = Arc::new(Columns::new(vec![ANY.to_owned()]));
                let rows = value.map(|value| Row { columns, values: vec![value] }).into_iter().collect();
                return Box::pin(self.rows(shape, givens, rows, level)).await;
            }
        }
        if shape.is_nested {
            let rows = Box::pin(self.collect(query, &statement, &parameters, at)).await?;
            return Box::pin(self.rows(shape, givens, rows, level)).await;
        }
        start(&mut self.writer, shape);
        let mut sink = Writing {
            row: Rowing::new(shape, givens, self.together, &mut self.exports, &self.terms),
            writer: &mut self.writer,
            left: query.most,
            count: 0,
            trouble: None,
        };
        let ran = self.leases[at].run(&statement, &parameters, Lent(&mut sink)).await;
        if let Some(trouble) = sink.trouble {
            return Err(trouble);
        }
        let count = sink.count;
        ran.map_err(failed)?;
        end(&mut self.writer, shape, count);
        Ok(())
    }

    /// Collects all rows of a query, within the limit.
    async fn collect(
        &mut self,
        query: &Query,
        statement: &Statement,
        parameters: &[Parameter],
        at: usize,
    ) -> Result<Vec<Row>, Trouble> {
        let (mut rows, mut size, most) = (Vec::new(), 0, self.terms.collected);
        let mut left = query.most;
        let take = |row: Row| {
            size += row.size();
            if size > most {
                let message =
                    format!("the rows, each of which asks another query, take more than {most} bytes");
                return Err(Error::new(Reason::Value, message));
            }
            rows.push(row);
            left -= 1;
            Ok(left > 0)
        };
        self.leases[at]
            .run(statement, parameters, take)
            .await
            .map_err(|error| Trouble::of(&error, &query.id))?;
        Ok(rows)
    }

    /// The rows of a MySQL procedure, each with the OUT parameters.
    async fn returned(
        &mut self,
        query: &Query,
        givens: &Givens,
        statement: &Statement,
        parameters: &[Parameter],
        at: usize,
    ) -> Result<Vec<Row>, Trouble> {
        let failed = |error: Error| Trouble::of(&error, &query.id);
        let dialect = query.dialect();
        let (mut names, mut variables) = (Vec::new(), Vec::new());
        for (number, parameter) in query.parameters.iter().enumerate() {
            if parameter.direction == DataDirection::In {
                continue;
            }
            let set = Statement::new(&format!("SET {} = ?", variable(number)), dialect);
            let value = match (parameter.direction, givens.get(&parameter.name), parameter.kind) {
                (DataDirection::InOut, Some(RequestValue::One(value)), ParameterKind::Bound(kind)) => {
                    bound(&parameter.written, kind, value.as_deref())?
                }
                _ => Parameter::Null(Kind::Text),
            };
            self.leases[at].run(&set, &[value], |_| Ok(false)).await.map_err(failed)?;
            names.push(parameter.name.clone());
            variables.push(variable(number));
        }
        let rows = self.collect(query, statement, parameters, at).await?;
        let ask = Statement::new(&format!("SELECT {}", variables.join(", ")), dialect);
        let mut came = None;
        let take = |row: Row| {
            came = Some(row.values);
            Ok(false)
        };
        self.leases[at].run(&ask, &[], take).await.map_err(failed)?;
        let came: Vec<Value> = came.unwrap_or_default();
        if rows.is_empty() {
            return Ok(vec![Row { columns: Arc::new(Columns::new(names)), values: came }]);
        }
        let mut columns: Option<Arc<Columns>> = None;
        let with = |mut row: Row| {
            let columns = columns.get_or_insert_with(|| {
                let all = row.columns.names().iter().chain(&names).cloned();
                Arc::new(Columns::new(all.collect()))
            });
            row.columns = Arc::clone(columns);
            row.values.extend(came.iter().cloned());
            row
        };
        Ok(rows.into_iter().map(with).collect())
    }

    /// Writes collected rows.
    async fn rows(
        &mut self,
        shape: &Shape,
        givens: &Givens,
        rows: Vec<Row>,
        level: usize,
    ) -> Result<(), Trouble> {
        start(&mut self.writer, shape);
        for (count, row) in rows.iter().enumerate() {
            self.writer.room().await;
            if let Some(about) = &shape.about {
                let (mut rowing, writer) = self.rowing(shape, givens);
                rowing.describe(about, row, writer)?;
                self.writer.flush().map_err(|TooLarge| too_large(self.terms.most))?;
                continue;
            }
            if !start_row(&mut self.writer, shape, count) {
                break;
            }
            let scope = Scope { parameters: givens, row: Some(row), numbers: shape.column_numbers };
            self.attributes(&shape.group, shape, givens, row)?;
            started(&mut self.writer, shape);
            self.parts(&shape.group, shape, scope, level).await?;
            end_row(&mut self.writer, shape);
            self.writer.flush().map_err(|TooLarge| too_large(self.terms.most))?;
        }
        end(&mut self.writer, shape, rows.len());
        Ok(())
    }

    fn rowing<'a>(&'a mut self, shape: &'a Shape, givens: &'a Givens) -> (Rowing<'a>, &'a mut Writer) {
        let rowing = Rowing::new(shape, givens, self.together, &mut self.exports, &self.terms);
        (rowing, &mut self.writer)
    }

    fn attributes(
        &mut self,
        group: &Group,
        shape: &Shape,
        givens: &Givens,
        row: &Row,
    ) -> Result<(), Trouble> {
        let (mut rowing, writer) = self.rowing(shape, givens);
        group.attributes.iter().try_for_each(|field| rowing.field(field, true, row, writer))
    }

    /// Writes the parts of a row, with the rows of other queries.
    fn parts<'a>(
        &'a mut self,
        group: &'a Group,
        shape: &'a Shape,
        scope: Scope<'a>,
        level: usize,
    ) -> Pin<Box<dyn Future<Output = Result<(), Trouble>> + Send + 'a>> {
        Box::pin(async move {
            let Some(row) = scope.row else { return Ok(()) };
            for part in &group.parts {
                match part {
                    Part::Field(field) => {
                        let (mut rowing, writer) = self.rowing(shape, scope.parameters);
                        rowing.field(field, false, row, writer)?;
                    }
                    Part::Group(inner) if !self.terms.sees(&inner.roles) => {}
                    Part::Group(inner) => {
                        self.writer.start(&inner.name, &inner.namespace);
                        self.attributes(inner, shape, scope.parameters, row)?;
                        self.writer.started();
                        self.parts(inner, shape, scope, level).await?;
                        self.writer.end_element(&inner.name);
                    }
                    Part::Call(call) if !self.terms.sees(&call.roles) => {}
                    Part::Call(call) => self.call(call, scope, level + 1).await?,
                }
            }
            Ok(())
        })
    }
}

fn invalid(name: &str, why: &str) -> Trouble {
    let message = format!("Field Name: {name}: {why}");
    Trouble { status: 400, ..Trouble::new(code::VALIDATION, message) }
}

fn bound(name: &str, kind: Kind, value: Option<&str>) -> Result<Parameter, Trouble> {
    // An empty text is a text; for all other types it is NULL.
    if let (Kind::Text, Some("")) = (kind, value) {
        return Ok(Parameter::Text(String::new()));
    }
    kind.parse(value).map_err(|why| {
        let message = format!("Error in 'SQLQuery.processPreNormalQuery': parameter {name}: {why}");
        Trouble { status: 400, ..Trouble::new(code::DATABASE, message) }
    })
}

/// The statement of a query and its bound parameters.
fn bind(query: &Query, givens: &Givens) -> Result<(Statement, Vec<Parameter>), Trouble> {
    let given = |at: usize| givens.get(&query.parameters[at].name);
    let counts = |at: usize| match given(at) {
        Some(RequestValue::Many(values)) => values.len(),
        _ => 1,
    };
    let mut texts = HashMap::new();
    for (at, parameter) in query.parameters.iter().enumerate() {
        if parameter.kind == ParameterKind::Written {
            let text = match given(at) {
                Some(RequestValue::One(Some(text))) => text.clone(),
                Some(RequestValue::Many(values)) => {
                    values.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(",")
                }
                _ => String::new(),
            };
            if !value::is_harmless(&text) {
                return Err(invalid(&parameter.written, "a QUERY_STRING needs a value"));
            }
            texts.insert(at, text);
        }
    }
    let mut all = Vec::with_capacity(query.marks.len());
    for &at in query.marks.iter().filter(|&&at| query.is_bound(at)) {
        let parameter = &query.parameters[at];
        let ParameterKind::Bound(kind) = parameter.kind else { continue };
        match given(at) {
            // The statement has NULL for an empty list: nothing is equal to NULL.
            Some(RequestValue::Many(values)) if values.is_empty() => {}
            Some(RequestValue::Many(values)) => {
                for value in values {
                    all.push(bound(&parameter.written, kind, value.as_deref())?);
                }
            }
            Some(RequestValue::One(value)) => all.push(bound(&parameter.written, kind, value.as_deref())?),
            None => all.push(Parameter::Null(kind)),
        }
    }
    if let Some(why) = value::unstorable(&all, query.dialect()) {
        let message = format!("Error in 'SQLQuery.processPreNormalQuery' of the query {}: {why}", query.id);
        return Err(Trouble { status: 400, ..Trouble::new(code::DATABASE, message) });
    }
    Ok((query.statement(&counts, &texts), all))
}

fn start(writer: &mut Writer, shape: &Shape) {
    if shape.about.is_some() {
        return writer.start_rdf(&shape.namespace);
    }
    if !shape.element.is_empty() {
        writer.start(&shape.element, &shape.namespace);
        // Without an element for rows their attributes belong to the element around them.
        if !shape.row.is_empty() || shape.group.attributes.is_empty() {
            writer.started();
        }
    }
    if !shape.row.is_empty() {
        writer.start_rows(&shape.row);
    }
}

/// Begins a row; `false`: there is no place for another one.
fn start_row(writer: &mut Writer, shape: &Shape, count: usize) -> bool {
    if shape.row.is_empty() {
        // Without an element for rows an object has place for one row.
        return count == 0 || (!writer.is_json() && shape.group.attributes.is_empty());
    }
    writer.start_row(&shape.row, &shape.namespace);
    true
}

/// Ends the attributes of a row.
fn started(writer: &mut Writer, shape: &Shape) {
    if !shape.row.is_empty() || (!shape.element.is_empty() && !shape.group.attributes.is_empty()) {
        writer.started();
    }
}

fn end_row(writer: &mut Writer, shape: &Shape) {
    if !shape.row.is_empty() {
        writer.end_element(&shape.row);
    }
}

fn end(writer: &mut Writer, shape: &Shape, count: usize) {
    if shape.about.is_some() {
        return writer.end_rdf();
    }
    if count == 0 && shape.row.is_empty() && !shape.element.is_empty() && !shape.group.attributes.is_empty() {
        writer.started();
    }
    if !shape.row.is_empty() {
        writer.end_rows();
    }
    if !shape.element.is_empty() {
        writer.end_element(&shape.element);
    }
}

/// The columns of the fields of a result.
struct Rowing<'a> {
    shape: &'a Shape,
    givens: &'a Givens,
    /// For these columns the index of each field's column, by slot: `None` where the column is absent.
    places: Option<(Arc<Columns>, Vec<Option<usize>>)>,
    together: bool,
    exports: &'a mut Givens,
    terms: &'a Terms,
}

impl<'a> Rowing<'a> {
    fn new(
        shape: &'a Shape,
        givens: &'a Givens,
        together: bool,
        exports: &'a mut Givens,
        terms: &'a Terms,
    ) -> Rowing<'a> {
        Rowing { shape, givens, places: None, together, exports, terms }
    }

    /// Sets the columns of the next row.
    fn look(&mut self, columns: &Arc<Columns>) {
        if self.places.as_ref().is_some_and(|(c, _)| Arc::ptr_eq(c, columns)) {
            return;
        }
        let mut places = vec![None; self.shape.slots];
        fill(&self.shape.group, columns, self.shape.column_numbers, &mut places);
        self.places = Some((Arc::clone(columns), places));
    }

    /// The value of a field, inner `None` for NULL; outer `None` where the field is left out.
    fn value<'r>(&mut self, field: &'r Field, row: &'r Row) -> Result<Option<Option<Cow<'r, str>>>, Trouble>
    where
        'a: 'r,
    {
        if !self.terms.sees(&field.roles) {
            return Ok(None);
        }
        self.look(&row.columns);
        let at = self.places.as_ref().and_then(|(_, places)| places.get(field.slot).copied().flatten());
        let value: Option<Cow<'r, str>> = match (&field.value, at) {
            (Source::Constant(text), _) => Some(Cow::Borrowed(text)),
            (Source::Reference(uri), _) => Some(Cow::Owned(self.uri(uri, row)?)),
            (_, Some(at)) => row.values.get(at).and_then(value::text),
            (Source::Column(name) | Source::Parameter(name), None) => match parameter(self.givens, name) {
                Some(value) => value,
                None if field.optional => return Ok(None),
                None => return Err(no_column(name)),
            },
        };
        if let (Some((name, all)), true) = (&field.export, self.together) {
            let text = value.as_deref().map(str::to_owned);
            match (all, self.exports.get_mut(name)) {
                (true, Some(RequestValue::Many(values))) => values.push(text),
                (true, _) => _ = self.exports.insert(name.clone(), RequestValue::Many(vec![text])),
                (false, _) => _ = self.exports.insert(name.clone(), RequestValue::One(text)),
            }
        }
        Ok(Some(value))
    }

    fn field(
        &mut self,
        field: &Field,
        is_attribute: bool,
        row: &Row,
        writer: &mut Writer,
    ) -> Result<(), Trouble> {
        let Some(value) = self.value(field, row)? else { return Ok(()) };
        match is_attribute {
            true => writer.attribute(&field.name, value.as_deref(), field.xsd_type),
            false => writer.field(&field.name, &field.namespace, value.as_deref(), field.xsd_type),
        }
        Ok(())
    }

    /// A URI from a template.
    fn uri(&self, uri: &Template, row: &Row) -> Result<String, Trouble> {
        uri.fill(|name| match place(&row.columns, name, false) {
            Some(at) => Ok(row.values.get(at).and_then(value::text).map(Cow::into_owned)),
            None => parameter(self.givens, name)
                .map(|value| value.map(Cow::into_owned))
                .ok_or_else(|| no_column(name)),
        })
    }

    /// Writes a row as RDF: the description of its resource.
    fn describe(&mut self, about: &Template, row: &Row, writer: &mut Writer) -> Result<(), Trouble> {
        writer.start_description(&self.uri(about, row)?);
        let shape = self.shape;
        for part in &shape.group.parts {
            let Part::Field(field) = part else { continue };
            let Some(value) = self.value(field, row)? else { continue };
            match (&field.value, value) {
                (Source::Reference(_), Some(uri)) => writer.reference(&field.name, &field.namespace, &uri),
                (_, value) => {
                    writer.literal(&field.name, &field.namespace, value.as_deref(), &field.xsd_name)
                }
            }
        }
        writer.end_description();
        Ok(())
    }

    /// Writes the parts of a row that run no other query.
    fn group(&mut self, group: &Group, row: &Row, writer: &mut Writer) -> Result<(), Trouble> {
        for part in &group.parts {
            match part {
                Part::Field(field) => self.field(field, false, row, writer)?,
                Part::Group(inner) if !self.terms.sees(&inner.roles) => {}
                Part::Group(inner) => {
                    writer.start(&inner.name, &inner.namespace);
                    inner.attributes.iter().try_for_each(|field| self.field(field, true, row, writer))?;
                    writer.started();
                    self.group(inner, row, writer)?;
                    writer.end_element(&inner.name);
                }
                Part::Call(_) => {}
            }
        }
        Ok(())
    }
}

/// A parameter as the value of a field.
fn parameter<'g>(givens: &'g Givens, name: &str) -> Option<Option<Cow<'g, str>>> {
    Some(match givens.get(name)? {
        RequestValue::One(value) => value.as_deref().map(Cow::Borrowed),
        RequestValue::Many(values) => {
            Some(Cow::Owned(values.iter().flatten().map(String::as_str).collect::<String>()))
        }
    })
}

fn no_column(name: &str) -> Trouble {
    let message =
        format!("Error in 'StaticOutputElement.execute', cannot find parameter with type:column name:{name}");
    Trouble::new(code::PARAMETERS, message)
}

fn fill(group: &Group, columns: &Columns, numbers: bool, places: &mut [Option<usize>]) {
    let mut place = |field: &Field| {
        if let (Source::Column(name) | Source::Parameter(name), Some(to)) =
            (&field.value, places.get_mut(field.slot))
        {
            *to = place(columns, name, numbers && matches!(field.value, Source::Column(_)));
        }
    };
    group.attributes.iter().for_each(&mut place);
    group.parts.iter().for_each(|part| {
        if let Part::Field(field) = part {
            place(field)
        }
    });
    for part in &group.parts {
        if let Part::Group(inner) = part {
            fill(inner, columns, numbers, places);
        }
    }
}

/// Writes rows as they arrive.
struct Writing<'a> {
    row: Rowing<'a>,
    writer: &'a mut Writer,
    left: usize,
    count: usize,
    trouble: Option<Trouble>,
}

struct Lent<'a, 'b>(&'a mut Writing<'b>);

impl Writing<'_> {
    fn write_row(&mut self, row: &Row) -> Result<bool, Trouble> {
        let shape = self.row.shape;
        if let Some(about) = &shape.about {
            self.row.describe(about, row, self.writer)?;
            return self.written();
        }
        if !start_row(self.writer, shape, self.count) {
            return Ok(false);
        }
        shape.group.attributes.iter().try_for_each(|field| self.row.field(field, true, row, self.writer))?;
        started(self.writer, shape);
        self.row.group(&shape.group, row, self.writer)?;
        end_row(self.writer, shape);
        self.written()
    }

    /// Writes a row; returns whether another one is wanted.
    fn written(&mut self) -> Result<bool, Trouble> {
        self.writer.flush().map_err(|TooLarge| too_large(self.row.terms.most))?;
        self.count += 1;
        self.left = self.left.saturating_sub(1);
        Ok(self.left > 0)
    }
}

impl Sink for Lent<'_, '_> {
    fn row(&mut self, row: Row) -> Result<bool, Error> {
        self.0.write_row(&row).map_err(|trouble| {
            self.0.trouble = Some(trouble);
            Error::new(Reason::Value, "")
        })
    }

    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.writer.poll_room(cx)
    }
}
