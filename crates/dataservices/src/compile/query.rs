//! Queries: their databases, their statements, and the positions of the parameters in these.

use crate::plan::{Parameter, ParameterKind, Query, Rows, Table, TableForm};
use crate::value::{Check, RequestValue};
use config::{DataConfig, DataDirection, DataParameter, DataQuery, DataSource, DataValidator, Key};
use diagnostics::Diagnostic;
use flow::{Compiler, Pattern};
use message::Charset;
use sql::{Dialect, Kind, Named, Pool, Statement};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Names of properties in older services, and the present ones.
const OLD: [(&str, &str); 10] = [
    ("org.wso2.ws.dataservice.driver", "driverClassName"),
    ("org.wso2.ws.dataservice.protocol", "url"),
    ("org.wso2.ws.dataservice.user", "username"),
    ("org.wso2.ws.dataservice.password", "password"),
    ("org.wso2.ws.dataservice.max_wait", "maxWait"),
    ("org.wso2.ws.dataservice.max_idle", "maxIdle"),
    ("org.wso2.ws.dataservice.validation_query", "validationQuery"),
    ("org.wso2.ws.dataservice.test_on_borrow", "testOnBorrow"),
    ("org.wso2.ws.dataservice.autocommit", "defaultAutoCommit"),
    ("org.wso2.ws.dataservice.transaction_isolation", "defaultTransactionIsolation"),
];

/// Properties of a config that is not a database, and what it is.
const OTHERS: [(&str, &str); 11] = [
    ("gspread_datasource", "a Google spreadsheet"),
    ("rdf_datasource", "an RDF file"),
    ("sparql_datasource", "a SPARQL endpoint"),
    ("mongoDB_servers", "MongoDB"),
    ("cassandraServers", "Cassandra"),
    ("web_harvest_config", "web pages"),
    ("jndi_resource_name", "a data source of another JNDI"),
    ("custom_tabular_class", "a class of Java"),
    ("custom_query_class", "a class of Java"),
    ("custom_query_datasource_class", "a class of Java"),
    ("custom_tabular_datasource_class", "a class of Java"),
];

/// The pool of a config.
fn pool(config: &DataConfig, service: &str, compiler: &mut Compiler<'_>) -> Option<Arc<Pool>> {
    if let Some(name) = config.property("carbon_datasource_name") {
        return mediators::database::pool_named(name, compiler);
    }
    if let Some((key, kind)) = OTHERS.iter().find_map(|(name, kind)| Some((config.property(name)?, kind))) {
        let found =
            Diagnostic::error("unsupported-database", format!("data of {kind} cannot be queried here"))
                .at(key.span, "the queries of this config cannot run")
                .help("load it into a database, or put a service in front of it");
        compiler.diagnostics.push(found);
        return None;
    }
    let mut values = Vec::new();
    for (name, value) in &config.properties {
        let old = OLD.iter().find(|(old, _)| old.eq_ignore_ascii_case(name));
        let name = old.map_or(name.as_str(), |(_, new)| new);
        let is_ignored = name.is_empty()
            || name.starts_with("dynamicUserAuth")
            || (name.starts_with("org.wso2.ws.dataservice.") && old.is_none() && !name.ends_with("poolsize"));
        if !is_ignored && !value.value.trim().is_empty() {
            values.push((name.to_owned(), value.clone()));
        }
    }
    let label =
        if config.id.value == "default" { service.to_owned() } else { format!("{service}/{}", config.id) };
    let name = Key { value: label, span: config.id.span };
    let source = DataSource { name, jndi: None, values, span: config.span };
    mediators::database::pool_with(&source, config.id.span, compiler)
}

/// As [`pool`], once for each config.
pub(super) fn pool_of<'a>(
    config: &'a DataConfig,
    service: &str,
    pools: &mut HashMap<&'a str, Option<Arc<Pool>>>,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<Pool>> {
    if let Some(pool) = pools.get(config.id.value.as_str()) {
        return pool.clone();
    }
    let made = pool(config, service, compiler);
    pools.insert(&config.id.value, made.clone());
    made
}

pub(super) fn compile_query<'a>(
    service: &'a config::DataService,
    query: &'a DataQuery,
    pools: &mut HashMap<&'a str, Option<Arc<Pool>>>,
    compiler: &mut Compiler<'_>,
) -> Option<Query> {
    let config = match &query.config {
        None => service.configs.first(),
        Some(id) => service.configs.iter().find(|c| c.id.value == id.value),
    };
    if config.is_none() {
        let (id, span) = query.config.as_ref().map_or(("default", query.span), |id| (&*id.value, id.span));
        let names = service.configs.iter().map(|c| c.id.value.as_str());
        compiler.diagnostics.push(
            Diagnostic::error("unknown-data-source", format!("the data service has no config `{id}`"))
                .at(span, "the query would ask it")
                .did_you_mean(id, names),
        );
    }
    if let Some((config, file)) = config.and_then(|c| Some((c, c.property("csv_datasource")?))) {
        return compile_lines(config, file, query, compiler);
    }
    if let Some(file) = config.and_then(|c| c.property("excel_datasource")) {
        return compile_sheet(file, query, compiler);
    }
    let pool = config.and_then(|config| pool_of(config, &service.name.value, pools, compiler));
    // Without a pool the rest is checked all the same, so that all errors are reported at once.
    let dialect = pool.as_ref().map_or(Dialect::MySql, |pool| pool.dialect());
    let names: &[&str] = match dialect {
        Dialect::Postgres => &["postgresql"],
        Dialect::MySql => &["mysql", "mariadb"],
        Dialect::Sqlite => &["sqlite", "h2", "derby"],
        Dialect::SqlServer => &["sqlserver", "mssql", "jtds"],
    };
    let is_ours = |dialects: &[String]| {
        dialects.iter().any(|dialect_name| names.contains(&dialect_name.to_ascii_lowercase().as_str()))
    };
    let sql = query.sql.iter().find(|(dialects, _)| is_ours(dialects));
    let sql = sql.or_else(|| query.sql.iter().find(|(dialects, _)| dialects.is_empty() || pool.is_none()));
    let Some((_, sql)) = sql.filter(|(_, sql)| !sql.value.is_empty()) else {
        let (message, span) = match &query.other {
            Some(other) => (format!("the query `{}` is not SQL but `{other}`", query.id), other.span),
            None => (format!("the query `{}` has no `sql` for {dialect}", query.id), query.span),
        };
        compiler.error("missing-element", message, span, "it cannot run");
        return None;
    };
    let parameters: Vec<_> =
        query.parameters.iter().map(|p| compile_parameter(p, dialect, compiler)).collect();
    let parameters = parameters.into_iter().collect::<Option<Vec<_>>>()?;
    let number = |name: &str| query.parameters.iter().position(|parameter| parameter.name.value == name);
    let written = match &pool {
        Some(pool) => pool.target().escaped_call(&sql.value),
        None => Cow::Borrowed(&*sql.value),
    };
    let mut text = Named::new(&written, dialect, |name| number(name).is_some());
    let mut marks = Vec::new();
    for (at, name) in text.names.iter().enumerate() {
        let found = match name {
            Some(name) => number(name),
            // Parameters without an ordinal are numbered in order.
            None => {
                query.parameters.iter().position(|parameter| parameter.ordinal == at + 1).or_else(|| {
                    (at < query.parameters.len() && query.parameters[at].ordinal == 0).then_some(at)
                })
            }
        };
        let Some(found) = found else {
            let message = format!("question mark {} of the query `{}` has no parameter", at + 1, query.id);
            compiler.error("parameter-count", message, sql.span, "each needs a `param`, by name or in order");
            return None;
        };
        let name = &query.parameters[found].name;
        if parameters[found].kind == ParameterKind::Written && is_compared(text.before(at)) {
            let message =
                format!("the parameter `{name}` of the query `{}` is a QUERY_STRING and a value", query.id);
            let found = Diagnostic::warning("written-value", message)
                .at(name.span, "a client may name a column, and so see all rows")
                .help("a QUERY_STRING is for names of columns and tables; a value needs another sqlType, such as STRING");
            compiler.diagnostics.push(found);
        }
        marks.push(found);
    }
    let wrong = std::cell::RefCell::new(None);
    Named::new(&sql.value, dialect, |name| {
        if number(name).is_none() {
            wrong.borrow_mut().get_or_insert_with(|| name.to_owned());
        }
        false
    });
    if let Some(name) = wrong.into_inner() {
        let message = format!("`:{name}` of the query `{}` is not a parameter of it", query.id);
        let found = Diagnostic::warning("unmapped-parameter", message)
            .at(sql.span, "the database gets it as it stands")
            .did_you_mean(&name, query.parameters.iter().map(|parameter| parameter.name.value.as_str()));
        compiler.diagnostics.push(found);
    }
    for (at, parameter) in query.parameters.iter().enumerate() {
        if !marks.contains(&at) && parameter.direction == DataDirection::In {
            let message = format!("the query `{}` does not use its parameter `{}`", query.id, parameter.name);
            compiler.warning(
                "unmapped-parameter",
                message,
                parameter.name.span,
                "its statement has neither its name nor its place",
            );
        }
    }
    let is_call = text.text.trim_start().starts_with('{');
    // The first OUT parameter is the value of the function.
    if let Some(of_function) = marks.first().map(|&at| &query.parameters[at])
        && of_function.direction == DataDirection::Out
        && text.select_function(&of_function.name.value, dialect)
    {
        marks.remove(0);
    }
    let rows = match (query.row_count, query.generated_keys) {
        (true, _) => Rows::Count,
        (_, true) => Rows::Keys,
        _ => Rows::Own,
    };
    if rows == Rows::Keys
        && dialect == Dialect::Postgres
        && !sql.value.to_ascii_lowercase().contains("returning")
    {
        let columns = match query.key_columns.as_slice() {
            [] => "*".to_owned(),
            columns => {
                let quoted = columns.iter().map(|column| format!("\"{}\"", column.replace('"', "\"\"")));
                quoted.collect::<Vec<_>>().join(", ")
            }
        };
        text.append(&format!(" RETURNING {columns}"));
    }
    let property = |end: &str| {
        let found = query.properties.iter().find(|(name, _)| name.ends_with(end));
        found.map(|(_, value)| value.value.trim().to_owned()).filter(|value| !value.is_empty())
    };
    let is_same = parameters.iter().all(|parameter: &Parameter| {
        !parameter.is_array
            && parameter.kind != ParameterKind::Written
            && parameter.direction == DataDirection::In
    });
    let longest = property("query_timeout")
        .and_then(|value| value.parse().ok())
        .filter(|&seconds| seconds > 0)
        .map(Duration::from_secs);
    let pool = pool?;
    Some(Query {
        id: query.id.value.clone(),
        fixed: is_same.then(|| Statement::new(&text.text, dialect).within(longest)),
        text,
        is_call,
        marks,
        parameters,
        rows,
        result: None,
        stylesheet: None,
        input_trigger: None,
        output_trigger: None,
        autocommit: property("autocommit").map_or(pool.autocommit(), |value| value != "false"),
        most: property("max_rows")
            .and_then(|value| value.parse().ok())
            .filter(|&most| most > 0)
            .unwrap_or(usize::MAX),
        longest,
        pool: Some(pool),
        table: None,
    })
}

/// A query of a CSV file.
fn compile_lines(
    config: &DataConfig,
    file: &Key,
    query: &DataQuery,
    compiler: &mut Compiler<'_>,
) -> Option<Query> {
    let text = |name: &str| config.property(name).map(|key| key.value.trim().to_owned());
    let separator =
        text("csv_columnseperator").or_else(|| text("csv_columnseparator")).unwrap_or_else(|| ",".to_owned());
    let separator = match separator.as_str() {
        "\\t" | "tab" => b'\t',
        other => match *other.as_bytes() {
            [byte] if byte.is_ascii() => byte,
            _ => {
                let message = format!("`csv_columnseperator` cannot be `{other}`");
                compiler.error("bad-value", message, config.span, "expected one character");
                return None;
            }
        },
    };
    let charset = match config.property("csv_charset").filter(|label| !label.value.trim().is_empty()) {
        None => Charset::UTF8,
        Some(label) => match Charset::for_label(&label.value) {
            Some(charset) => charset,
            None => {
                let message = format!("there is no charset `{}`", label.value.trim());
                compiler.error(
                    "bad-value",
                    message,
                    label.span,
                    "expected UTF-8, windows-1252, ISO-8859-1, …",
                );
                return None;
            }
        },
    };
    let number = |name: &str| text(name).and_then(|t| t.parse::<usize>().ok()).filter(|&n| n > 0);
    let has_header = text("csv_hasheader").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let table = Table {
        file: path_of(file, compiler),
        form: TableForm::Lines { separator, charset, is_said: Arc::default() },
        header: has_header.then(|| number("csv_headerrow").unwrap_or(1)),
        first: number("csv_startingrow").unwrap_or(1),
        most: number("csv_maxrowcount").unwrap_or(usize::MAX),
    };
    of_table(table, query, compiler)
}

/// A query of a sheet of a workbook.
fn compile_sheet(file: &Key, query: &DataQuery, compiler: &mut Compiler<'_>) -> Option<Query> {
    if query.other.as_ref().is_none_or(|other| other.value != "excel") {
        let message = format!("the query `{}` of a workbook has no `excel`", query.id);
        compiler.error(
            "missing-element",
            message,
            query.span,
            "a workbook is not a database: SQL cannot query it",
        );
        return None;
    }
    let text = |name: &str| {
        query.excel.iter().find(|(field_name, _)| field_name == name).map(|(_, key)| key.value.as_str())
    };
    let number = |name: &str| text(name).and_then(|t| t.parse::<usize>().ok()).filter(|&n| n > 0);
    let has_header = text("hasheader").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let table = Table {
        file: path_of(file, compiler),
        form: TableForm::Sheet(text("workbookname").filter(|sheet| !sheet.is_empty()).map(str::to_owned)),
        header: has_header.then(|| number("headerrow").unwrap_or(1)),
        first: number("startingrow").unwrap_or(1),
        most: number("maxrowcount").unwrap_or(usize::MAX),
    };
    of_table(table, query, compiler)
}

/// A file of a config, relative to the configuration.
fn path_of(file: &Key, compiler: &Compiler<'_>) -> std::path::PathBuf {
    let path = std::path::Path::new(file.value.trim().trim_start_matches("file://"));
    compiler.configuration.root.join(path)
}

fn of_table(table: Table, query: &DataQuery, compiler: &mut Compiler<'_>) -> Option<Query> {
    if query.result.is_none() {
        let message = format!("the query `{}` of a file has no `result`", query.id);
        compiler.error("missing-element", message, query.span, "it would do nothing");
        return None;
    }
    Some(Query {
        id: query.id.value.clone(),
        pool: None,
        table: Some(table),
        text: Named::new("", Dialect::Sqlite, |_| false),
        is_call: false,
        marks: Vec::new(),
        fixed: None,
        parameters: Vec::new(),
        rows: Rows::Own,
        result: None,
        stylesheet: None,
        input_trigger: None,
        output_trigger: None,
        autocommit: true,
        most: usize::MAX,
        longest: None,
    })
}

/// The names of types, for the message about an unknown one.
const TYPES: [&str; 27] = [
    "STRING",
    "CHAR",
    "VARCHAR",
    "NVARCHAR",
    "TEXT",
    "CLOB",
    "NUMERIC",
    "DECIMAL",
    "MONEY",
    "SMALLMONEY",
    "BIT",
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "REAL",
    "FLOAT",
    "DOUBLE",
    "DATE",
    "TIME",
    "TIMESTAMP",
    "BINARY",
    "VARBINARY",
    "BLOB",
    "UUID",
    "QUERY_STRING",
];

/// Whether what follows is compared with something: a column there (`id = id`) can be true of all rows.
fn is_compared(before: &str) -> bool {
    let before = before.trim_end();
    let before = before.strip_suffix('(').map_or(before, str::trim_end);
    let word = before.rsplit(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    before.ends_with(['=', '<', '>'])
        || ["like", "in", "between"].iter().any(|one| word.eq_ignore_ascii_case(one))
}

fn compile_parameter(
    parameter: &DataParameter,
    dialect: Dialect,
    compiler: &mut Compiler<'_>,
) -> Option<Parameter> {
    let kind = match &parameter.sql_type {
        None => ParameterKind::Bound(Kind::Text),
        Some(name) if name.trim().eq_ignore_ascii_case("QUERY_STRING") => ParameterKind::Written,
        Some(name) if name.trim().eq_ignore_ascii_case("LONG") => ParameterKind::Bound(Kind::BigInt),
        Some(name) => match Kind::named(name) {
            Some(kind) => ParameterKind::Bound(kind),
            None => {
                let found = Diagnostic::error("bad-value", format!("`sqlType` cannot be `{}`", name.trim()))
                    .at(name.span, format!("expected one of {}", TYPES.join(", ")))
                    .did_you_mean(name.trim(), TYPES);
                compiler.diagnostics.push(found);
                return None;
            }
        },
    };
    let has_no_way_back = match dialect {
        Dialect::Sqlite => Some("SQLite has no procedures"),
        Dialect::SqlServer => Some("parameters of procedures of SQL Server are for input only here"),
        Dialect::Postgres | Dialect::MySql => None,
    };
    if let Some(why) = has_no_way_back.filter(|_| parameter.direction != DataDirection::In) {
        let message = format!("the parameter `{}` comes back, and {why}", parameter.name);
        compiler.error("bad-value", message, parameter.name.span, "`type` is OUT or INOUT");
        return None;
    }
    let default = parameter.default.as_ref().map(|key| {
        let text = key.value.as_str();
        let value = match text.strip_prefix("#{").and_then(|rest| rest.strip_suffix('}')).map(str::trim) {
            None => Some(text.to_owned()),
            Some("NULL") => None,
            Some(list) if list.starts_with("ARRAY(") && list.ends_with(')') => {
                let values = list["ARRAY(".len()..list.len() - 1].split(',');
                return RequestValue::Many(values.map(|value| Some(value.trim().to_owned())).collect());
            }
            Some(column_or_parameter) => {
                let message = format!("`#{{{column_or_parameter}}}` is not known here");
                compiler.warning(
                    "bad-value",
                    message,
                    key.span,
                    "the parameter is NULL where a request has none",
                );
                None
            }
        };
        RequestValue::One(value)
    });
    if let (Some(RequestValue::One(Some(text))), ParameterKind::Bound(kind), Some(key)) =
        (&default, kind, &parameter.default)
        && let Err(why) = kind.parse(Some(text))
    {
        compiler.error("bad-value", format!("`defaultValue` cannot be `{text}`"), key.span, why);
        return None;
    }
    let mut checks = Vec::new();
    for validator in &parameter.validators {
        checks.push(match validator {
            DataValidator::Length(least, most) => Check::Length(*least, *most),
            DataValidator::Long(least, most) => Check::Long(*least, *most),
            DataValidator::Double(least, most) => Check::Double(*least, *most),
            DataValidator::Pattern(key) => match Pattern::compile(&key.value) {
                Ok(pattern) => Check::Pattern(Box::new(pattern), key.value.clone()),
                Err(why) => {
                    compiler.error(
                        "bad-value",
                        format!("`pattern` cannot be `{}`", key.value),
                        key.span,
                        why,
                    );
                    return None;
                }
            },
        });
    }
    Some(Parameter {
        name: parameter.name.to_ascii_lowercase(),
        written: parameter.name.value.clone(),
        kind,
        direction: parameter.direction,
        is_array: parameter.is_array,
        default,
        optional: parameter.optional,
        checks,
    })
}
