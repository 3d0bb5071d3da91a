//! A data service as it runs: immutable, made by `compile`.

use crate::output::Type;
use crate::value::{Check, Given};
use config::DataDirection;
use sql::{Dialect, Fill, Kind, Named, Pool, Statement};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A data service, immutable.
pub(crate) struct Service {
    pub name: String,
    pub namespace: Arc<str>,
    pub description: Option<String>,
    /// Where it is written.
    pub location: String,
    pub batch: bool,
    pub boxcarring: bool,
    pub held: bool,
    pub operations: Vec<Operation>,
    pub queries: Vec<Query>,
    /// The databases whose tables are served.
    pub odata: Vec<crate::odata::Source>,
}

/// What clients may ask for.
pub(crate) struct Operation {
    /// Its name, or method and path.
    pub label: String,
    /// The names that requests may have; the first one is that of its element.
    pub names: Vec<String>,
    /// Method and path of a resource.
    pub resource: Option<(String, Vec<Segment>)>,
    pub description: Option<String>,
    pub call: Call,
    pub status: bool,
    pub held: bool,
}

/// A part of a path.
#[derive(Debug, PartialEq)]
pub(crate) enum Segment {
    Literal(String),
    Variable(String),
}

/// Where a value comes from. Names are in small letters.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Column(String),
    Parameter(String),
    Constant(String),
    /// A URI that RDF refers to.
    Reference(crate::rdf::Template),
}

/// That a query is run.
pub(crate) struct Call {
    pub query: usize,
    /// Parameters of the query, each with its source.
    pub parameters: Vec<(String, Source)>,
}

/// What rows a query gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Those of its result.
    Own,
    /// The keys that were made.
    Keys,
    /// One: how many rows it changed.
    Count,
}

/// A query.
pub(crate) struct Query {
    pub id: String,
    /// `None`: it reads a file.
    pub pool: Option<Arc<Pool>>,
    pub table: Option<Table>,
    pub text: Named,
    /// For each question mark its parameter.
    pub marks: Vec<usize>,
    /// The statement, where it is the same for all requests.
    pub fixed: Option<Statement>,
    pub parameters: Vec<Parameter>,
    pub rows: Rows,
    /// The column of a key that was made.
    pub result: Option<Shape>,
    /// What it does counts when it has run.
    pub autocommit: bool,
    /// Most rows; the others are not sent.
    pub most: usize,
    /// Its own longest run.
    pub longest: Option<Duration>,
}

/// A parameter of a query.
pub(crate) struct Parameter {
    /// In small letters.
    pub name: String,
    pub kind: ParameterKind,
    pub direction: DataDirection,
    pub is_array: bool,
    /// Where a request has none.
    pub default: Option<Given>,
    pub optional: bool,
    pub checks: Vec<Check>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParameterKind {
    /// It is bound.
    Bound(Kind),
    /// It stands in the statement as it is (`QUERY_STRING`).
    Written,
}

/// What becomes of the rows of a query.
pub(crate) struct Shape {
    pub element: String,
    pub row: String,
    pub namespace: Arc<str>,
    pub group: Group,
    /// How many fields there are in all.
    pub slots: usize,
    /// A row asks other queries.
    pub is_nested: bool,
    pub column_numbers: bool,
    /// It is RDF: what a row is about.
    pub about: Option<crate::rdf::Template>,
}

/// What stands in an element.
pub(crate) struct Group {
    pub name: String,
    pub namespace: Arc<str>,
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
    /// Its number among all of the result.
    pub slot: usize,
    pub name: String,
    pub namespace: Arc<str>,
    pub value: Source,
    pub xsd_type: Type,
    /// The local name of the type.
    pub xsd_name: String,
    pub optional: bool,
    /// Later operations of the request know it by this name; whether all values.
    pub export: Option<(String, bool)>,
}

impl Service {
    /// Whether an operation answers in RDF, which is XML whatever the client asks for.
    pub fn is_rdf(&self, operation: usize) -> bool {
        fn group(service: &Service, group_plan: &Group) -> bool {
            group_plan.parts.iter().any(|part| match part {
                Part::Field(_) => false,
                Part::Group(inner) => group(service, inner),
                Part::Call(call) => query(service, call.query),
            })
        }
        // No query is part of its own result.
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

impl Query {
    /// Which database it asks.
    pub fn dialect(&self) -> Dialect {
        self.pool.as_ref().map_or(Dialect::Sqlite, |pool| pool.dialect())
    }

    /// The statement for these parameters; `counts`: how many values each parameter has.
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
                (DataDirection::Out, Dialect::Postgres) if self.text.text.trim_start().starts_with('{') => {
                    Fill::Drop
                }
                _ => match texts.get(&at) {
                    Some(text) => Fill::Text(text.clone()),
                    None => Fill::Marks(counts(at)),
                },
            }
        });
        Statement::new(&text, dialect).within(self.longest)
    }

    /// Whether a mark is filled with a value that is bound.
    pub fn is_bound(&self, at: usize) -> bool {
        let parameter = &self.parameters[at];
        match (parameter.direction, self.dialect()) {
            (DataDirection::Out | DataDirection::InOut, Dialect::MySql) => false,
            (DataDirection::Out, Dialect::Postgres) => !self.text.text.trim_start().starts_with('{'),
            _ => parameter.kind != ParameterKind::Written,
        }
    }

    /// Whether values come back in parameters, by variables of the session.
    pub fn has_variables(&self) -> bool {
        self.dialect() == Dialect::MySql
            && self.parameters.iter().any(|p| p.direction != DataDirection::In)
    }
}

/// The variable of the session that stands for a parameter of MySQL that comes back.
pub(crate) fn variable(at: usize) -> String {
    format!("@busbar_out_{at}")
}

/// A file whose lines are rows.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub file: PathBuf,
    pub form: TableForm,
    /// The row with the names of the columns, from 1; `None`: they are called by their numbers.
    pub header: Option<usize>,
    /// The first row with values, from 1.
    pub first: usize,
    /// Most rows.
    pub most: usize,
}

/// What a file of rows is.
#[derive(Clone, Debug)]
pub(crate) enum TableForm {
    /// CSV with this between values.
    Lines(u8),
    /// A sheet of a workbook of Excel or OpenDocument; `None`: the first one.
    Sheet(Option<String>),
}
