//! A data service ready to run: immutable, made by `compile`.

use crate::output::Type;
use crate::value::{Check, RequestValue};
use config::DataDirection;
use message::Charset;
use sql::{Dialect, Fill, Kind, Named, Pool, Statement};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A data service, immutable.
pub(crate) struct Service {
    pub name: String,
    pub namespace: Arc<str>,
    pub description: Option<String>,
    /// Its file.
    pub location: String,
    pub batch: bool,
    pub boxcarring: bool,
    pub held: bool,
    pub operations: Vec<Operation>,
    pub queries: Vec<Query>,
    /// The event triggers that queries refer to.
    pub triggers: Vec<crate::event::Trigger>,
    /// Some parts of results are for certain roles only.
    pub has_roles: bool,
    /// The databases that are served as OData.
    pub odata: Vec<crate::odata::Source>,
}

/// An operation or resource.
pub(crate) struct Operation {
    /// Its name, or method and path.
    pub label: String,
    /// The names of its requests; the first one is that of its element.
    pub names: Vec<String>,
    /// Method and path of a resource.
    pub resource: Option<(String, Vec<Segment>)>,
    pub description: Option<String>,
    pub call: Call,
    pub status: bool,
    /// Its response is complete before it is sent.
    pub held: bool,
    /// It runs a query that has an event trigger.
    pub has_events: bool,
}

/// A segment of a path.
#[derive(Debug, PartialEq)]
pub(crate) enum Segment {
    Literal(String),
    Variable(String),
}

/// The source of a value. Names are in lower case.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Column(String),
    Parameter(String),
    Constant(String),
    /// A URI that RDF refers to.
    Reference(crate::rdf::Template),
}

/// What a parameter of a called query gets (`with-param`).
pub(crate) struct With {
    /// The name of the parameter, in lower case.
    pub name: String,
    pub source: Source,
    /// The name in the source as it is written: descriptions and faults show it.
    pub written: String,
}

/// A call of a query.
pub(crate) struct Call {
    pub query: usize,
    /// The parameters of the query that get values.
    pub parameters: Vec<With>,
    /// The roles that see its rows in a result; empty: everybody does.
    pub roles: Vec<String>,
}

/// Which rows a query has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// The rows of its result.
    Own,
    /// The generated keys.
    Keys,
    /// One row: the number of changed rows.
    Count,
}

/// A query.
pub(crate) struct Query {
    pub id: String,
    /// `None`: it reads a file.
    pub pool: Option<Arc<Pool>>,
    pub table: Option<Table>,
    pub text: Named,
    /// It is written as the call of a procedure or function: `{call p(?)}`, `{? = call f(?)}`.
    pub is_call: bool,
    /// The parameter of each question mark.
    pub marks: Vec<usize>,
    /// The statement, where it is the same for all requests.
    pub fixed: Option<Statement>,
    pub parameters: Vec<Parameter>,
    pub rows: Rows,
    /// The column of the generated key.
    pub result: Option<Shape>,
    /// Transforms the result, where an operation or a resource runs the query.
    pub stylesheet: Option<mediators::ResultStylesheet>,
    /// The trigger that looks at its parameters.
    pub input_trigger: Option<usize>,
    /// The trigger that looks at its result.
    pub output_trigger: Option<usize>,
    /// Autocommit: its changes are committed at once.
    pub autocommit: bool,
    /// Most rows; further ones are not sent.
    pub most: usize,
    /// Its time limit.
    pub longest: Option<Duration>,
}

/// A parameter of a query.
pub(crate) struct Parameter {
    /// Its name in lower case.
    pub name: String,
    /// Its name as errors show it.
    pub written: String,
    pub kind: ParameterKind,
    pub direction: DataDirection,
    pub is_array: bool,
    /// The value where a request has none.
    pub default: Option<RequestValue>,
    pub optional: bool,
    pub checks: Vec<Check>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParameterKind {
    /// A bound value.
    Bound(Kind),
    /// Inserted into the statement as it is (`QUERY_STRING`).
    Written,
}

/// The plan of a result.
pub(crate) struct Shape {
    pub element: String,
    pub row: String,
    pub namespace: Arc<str>,
    pub group: Group,
    /// The number of its fields.
    pub slots: usize,
    /// It runs other queries for each row.
    pub is_nested: bool,
    pub column_numbers: bool,
    /// The subject of RDF; `None`: it is not RDF.
    pub about: Option<crate::rdf::Template>,
}

/// The content of an element.
pub(crate) struct Group {
    pub name: String,
    pub namespace: Arc<str>,
    /// The roles that see it; empty: everybody does.
    pub roles: Vec<String>,
    pub attributes: Vec<Field>,
    pub parts: Vec<Part>,
}

pub(crate) enum Part {
    Field(Field),
    Group(Group),
    Call(Call),
}

/// An element or attribute with a value.
pub(crate) struct Field {
    /// Its number in the result.
    pub slot: usize,
    pub name: String,
    pub namespace: Arc<str>,
    pub value: Source,
    pub xsd_type: Type,
    /// The local name of the type.
    pub xsd_name: String,
    pub optional: bool,
    /// The name of an export to later operations of the request; whether all values are exported.
    pub export: Option<(String, bool)>,
    /// The roles that see it; empty: everybody does.
    pub roles: Vec<String>,
}

impl Service {
    /// The stylesheet of the result of an operation.
    pub fn stylesheet(&self, operation: usize) -> Option<&mediators::ResultStylesheet> {
        self.queries[self.operations[operation].call.query].stylesheet.as_ref()
    }

    /// Whether an operation runs a query that has an event trigger, itself or in its result.
    pub fn causes_events(&self, operation: usize) -> bool {
        // A query is never part of its own result (`compile`).
        let mut open = vec![self.operations[operation].call.query];
        while let Some(at) = open.pop() {
            let query = &self.queries[at];
            if query.input_trigger.is_some() || query.output_trigger.is_some() {
                return true;
            }
            query.result.iter().for_each(|shape| shape.group.queries(&mut open));
        }
        false
    }

    /// Whether the response of an operation is RDF, which is XML whatever the client accepts.
    pub fn is_rdf(&self, operation: usize) -> bool {
        fn group(service: &Service, group_plan: &Group) -> bool {
            group_plan.parts.iter().any(|part| match part {
                Part::Field(_) => false,
                Part::Group(inner) => group(service, inner),
                Part::Call(call) => query(service, call.query),
            })
        }
        // A query is never part of its own result (`compile`).
        fn query(service: &Service, at: usize) -> bool {
            let shape = service.queries[at].result.as_ref();
            shape.is_some_and(|s| s.about.is_some() || group(service, &s.group))
        }
        query(self, self.operations[operation].call.query)
    }

    /// The operation of a name.
    pub fn operation(&self, name: &str) -> Option<usize> {
        self.operations.iter().position(|operation| operation.names.iter().any(|n| n == name))
    }
}

impl Group {
    /// Adds the numbers of the queries that run for each row.
    pub fn queries(&self, found: &mut Vec<usize>) {
        for part in &self.parts {
            match part {
                Part::Field(_) => {}
                Part::Group(inner) => inner.queries(found),
                Part::Call(call) => found.push(call.query),
            }
        }
    }
}

impl Query {
    /// The SQL dialect of its database.
    pub fn dialect(&self) -> Dialect {
        self.pool.as_ref().map_or(Dialect::Sqlite, |pool| pool.dialect())
    }

    /// The statement for these parameters; `counts`: the number of values of each parameter.
    pub fn statement(&self, counts: &dyn Fn(usize) -> usize, texts: &HashMap<usize, String>) -> Statement {
        if let Some(fixed) = &self.fixed {
            return fixed.clone();
        }
        let dialect = self.dialect();
        let text = self.text.filled(|mark| {
            let at = self.marks[mark];
            let parameter = &self.parameters[at];
            match (parameter.direction, dialect) {
                (DataDirection::Out | DataDirection::InOut, Dialect::MySql) => Fill::Text(variable(at)),
                (DataDirection::Out, Dialect::Postgres) if self.is_call => Fill::Drop,
                _ => match texts.get(&at) {
                    Some(text) => Fill::Text(text.clone()),
                    None => Fill::Marks(counts(at)),
                },
            }
        });
        Statement::new(&text, dialect).within(self.longest)
    }

    /// Whether a parameter is bound.
    pub fn is_bound(&self, at: usize) -> bool {
        let parameter = &self.parameters[at];
        match (parameter.direction, self.dialect()) {
            (DataDirection::Out | DataDirection::InOut, Dialect::MySql) => false,
            (DataDirection::Out, Dialect::Postgres) => !self.is_call,
            _ => parameter.kind != ParameterKind::Written,
        }
    }

    /// Whether it has OUT parameters, which MySQL returns in user variables.
    pub fn has_variables(&self) -> bool {
        let is_variable = |&at: &usize| self.parameters[at].direction != DataDirection::In;
        self.dialect() == Dialect::MySql && self.marks.iter().any(is_variable)
    }
}

/// The user variable of an OUT parameter in MySQL.
pub(crate) fn variable(at: usize) -> String {
    format!("@busbar_out_{at}")
}

/// A file that is read as a table.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub file: PathBuf,
    pub form: TableForm,
    /// The row of the header, from 1; `None`: columns are named by their numbers.
    pub header: Option<usize>,
    /// The first data row, from 1.
    pub first: usize,
    /// Most rows.
    pub most: usize,
}

/// The format of a table.
#[derive(Clone, Debug)]
pub(crate) enum TableForm {
    /// CSV.
    Lines {
        separator: u8,
        charset: Charset,
        /// The log has said that the file is not in the charset.
        is_said: Arc<AtomicBool>,
    },
    /// A sheet of a workbook of Excel or OpenDocument; `None`: the first one.
    Sheet(Option<String>),
}
