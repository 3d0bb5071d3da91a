//! The entity data model of a database: entity sets with properties and keys, as the database reports them.

use crate::fault::Trouble;
use sql::{Dialect, Error, Kind, Lease, Pool, Reason, Row, Statement, Value};
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the reported tables are cached; for an unknown table, and where the database does not know one, it is queried again after a shorter time.
const FRESH: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_secs(2);

/// Most columns of all tables of a database.
const MOST: usize = 50_000;

/// A database whose tables are served.
pub(crate) struct Source {
    /// The id of its config, which is a part of the path.
    pub config: String,
    pub pool: Arc<Pool>,
    cached: Mutex<Option<Cached>>,
}

/// The tables as they were.
#[derive(Clone)]
struct Cached {
    since: Instant,
    model: Arc<Model>,
    /// The database did not know a table or a column.
    is_doubted: bool,
}

impl Source {
    pub fn new(config: &str, pool: Arc<Pool>) -> Source {
        Source { config: config.to_owned(), pool, cached: Mutex::default() }
    }

    /// The tables, from the cache or from the database. `wanted`: a table that should be among them.
    pub async fn model(&self, lease: &mut Lease, wanted: Option<&str>) -> Result<Arc<Model>, Trouble> {
        let cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(cached) = cached {
            let is_there = wanted.is_none_or(|name| cached.model.table(name).is_some());
            if cached.since.elapsed() < if is_there && !cached.is_doubted { FRESH } else { AGAIN } {
                return Ok(cached.model);
            }
        }
        let made = Arc::new(read(lease).await.map_err(|error| Trouble::of(&error, "tables"))?);
        let kept = Some(Cached { since: Instant::now(), model: Arc::clone(&made), is_doubted: false });
        *self.cached.lock().unwrap_or_else(PoisonError::into_inner) = kept;
        Ok(made)
    }

    /// A table or a column does not exist: the tables are read again, as for an unknown one.
    pub fn doubt(&self) {
        if let Some(cached) = &mut *self.cached.lock().unwrap_or_else(PoisonError::into_inner) {
            cached.is_doubted = true;
        }
    }
}

/// All tables and views.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub tables: Vec<Arc<Table>>,
}

/// A table or a view.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    pub links: Vec<Link>,
}

/// A navigation property: a foreign key, seen from one of its two tables.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub name: String,
    /// The table it leads to.
    pub table: String,
    /// Columns of this table by number, and the columns of the other one that are equal to them.
    pub columns: Vec<(usize, usize)>,
    /// It leads to any number of rows: the foreign key is there.
    pub many: bool,
}

/// A column.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub name: String,
    pub edm: Edm,
    /// The type of its parameters.
    pub kind: Kind,
    /// The type to cast its parameters to, as the database writes it.
    pub cast: Option<String>,
    pub nullable: bool,
    pub key: bool,
}

/// A primitive type of the Entity Data Model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edm {
    Boolean,
    Int32,
    Int64,
    Single,
    Double,
    Decimal,
    String,
    Date,
    TimeOfDay,
    DateTimeOffset,
    Binary,
    Guid,
}

impl Edm {
    fn name(self) -> &'static str {
        match self {
            Edm::Boolean => "Edm.Boolean",
            Edm::Int32 => "Edm.Int32",
            Edm::Int64 => "Edm.Int64",
            Edm::Single => "Edm.Single",
            Edm::Double => "Edm.Double",
            Edm::Decimal => "Edm.Decimal",
            Edm::String => "Edm.String",
            Edm::Date => "Edm.Date",
            Edm::TimeOfDay => "Edm.TimeOfDay",
            Edm::DateTimeOffset => "Edm.DateTimeOffset",
            Edm::Binary => "Edm.Binary",
            Edm::Guid => "Edm.Guid",
        }
    }
}

/// A quoted name in a statement. It is one that the database reported.
pub(crate) fn quoted(name: &str, dialect: Dialect) -> String {
    match dialect {
        // SQLite takes a name in quotes that it does not know for a text.
        Dialect::MySql | Dialect::Sqlite => format!("`{}`", name.replace('`', "``")),
        _ => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

impl Model {
    pub fn table(&self, name: &str) -> Option<&Arc<Table>> {
        self.tables.iter().find(|t| t.name == name)
    }

    /// `$metadata`.
    pub fn metadata(&self, namespace: &str) -> String {
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<edmx:Edmx xmlns:edmx=\"http://docs.oasis-open.org/odata/ns/edmx\" Version=\"4.0\"><edmx:DataServices>\
             <Schema xmlns=\"http://docs.oasis-open.org/odata/ns/edm\" Namespace=\"{namespace}\">"
        );
        for table in &self.tables {
            let _ = write!(out, "<EntityType Name=\"{}\">", table.name);
            let keys: String =
                table.keys().map(|key| format!("<PropertyRef Name=\"{}\"/>", key.name)).collect();
            if !keys.is_empty() {
                let _ = write!(out, "<Key>{keys}</Key>");
            }
            for column in &table.columns {
                let nullable = if column.nullable { "" } else { " Nullable=\"false\"" };
                let scale = if column.edm == Edm::Decimal { " Scale=\"variable\"" } else { "" };
                let _ = write!(
                    out,
                    "<Property Name=\"{}\" Type=\"{}\"{nullable}{scale}/>",
                    column.name,
                    column.edm.name()
                );
            }
            table.links.iter().for_each(|link| self.navigation(table, link, namespace, &mut out));
            out.push_str("</EntityType>");
        }
        out.push_str("<EntityContainer Name=\"Container\">");
        for table in &self.tables {
            let _ = write!(out, "<EntitySet Name=\"{0}\" EntityType=\"{namespace}.{0}\"", table.name);
            out.push_str(if table.links.is_empty() { "/>" } else { ">" });
            for Link { name, table: target, .. } in &table.links {
                let _ = write!(out, "<NavigationPropertyBinding Path=\"{name}\" Target=\"{target}\"/>");
            }
            out.push_str(if table.links.is_empty() { "" } else { "</EntitySet>" });
        }
        out + "</EntityContainer></Schema></edmx:DataServices></edmx:Edmx>"
    }

    /// The `NavigationProperty` of a link.
    fn navigation(&self, table: &Table, link: &Link, namespace: &str, out: &mut String) {
        let (name, target) = (&link.name, &link.table);
        if link.many {
            let _ = write!(
                out,
                "<NavigationProperty Name=\"{name}\" Type=\"Collection({namespace}.{target})\"/>"
            );
            return;
        }
        let _ = write!(out, "<NavigationProperty Name=\"{name}\" Type=\"{namespace}.{target}\">");
        for &(here, there) in &link.columns {
            let referenced = self.table(target).map_or("", |target| &target.columns[there].name);
            let _ = write!(
                out,
                "<ReferentialConstraint Property=\"{}\" ReferencedProperty=\"{referenced}\"/>",
                table.columns[here].name
            );
        }
        out.push_str("</NavigationProperty>");
    }
}

impl Table {
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    pub fn keys(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| column.key)
    }

    pub fn link(&self, name: &str) -> Option<&Link> {
        self.links.iter().find(|link| link.name == name)
    }

    /// Adds a link that is named by its table; where that name is taken, by the columns of its foreign key too.
    fn add_link(&mut self, table: &str, of_key: &str, columns: Vec<(usize, usize)>, many: bool) {
        let long = format!("{table}_{of_key}");
        let numbered = (2..).map(|number| format!("{long}_{number}"));
        let names = [table.to_owned(), long.clone()].into_iter().chain(numbered);
        let is_free = |name: &String| self.column(name).is_none() && self.link(name).is_none();
        let Some(name) = names.take(MOST).find(is_free) else { return };
        self.links.push(Link { name, table: table.to_owned(), columns, many });
    }
}

const POSTGRES: &str = "SELECT c.relname::text, a.attname::text, t.typname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull::text, \
     (EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND a.attnum = ANY(i.indkey)))::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid \
     WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname = current_schema() AND a.attnum > 0 AND NOT a.attisdropped \
     ORDER BY c.relname, a.attnum";

const MYSQL: &str = "SELECT table_name, column_name, data_type, column_type, IF(is_nullable = 'NO', 'true', 'false'), \
     IF(column_key = 'PRI', 'true', 'false') \
     FROM information_schema.columns WHERE table_schema = DATABASE() ORDER BY table_name, ordinal_position";

const SQLITE: &str = "SELECT m.name, p.name, p.type, p.type, CASE WHEN p.\"notnull\" OR p.pk THEN 'true' ELSE 'false' END, \
     CASE WHEN p.pk THEN 'true' ELSE 'false' END \
     FROM sqlite_schema m, pragma_table_info(m.name) p WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
     ORDER BY m.name, p.cid";

/// Foreign keys: an id, table and column, table and column that are referred to (SQLite: empty for its key).
const POSTGRES_KEYS: &str = "SELECT k.oid::text, a.relname::text, ac.attname::text, b.relname::text, bc.attname::text \
     FROM (SELECT oid, conrelid, confrelid, unnest(conkey) AS here, unnest(confkey) AS there, generate_subscripts(conkey, 1) AS number \
     FROM pg_constraint WHERE contype = 'f') k JOIN pg_class a ON a.oid = k.conrelid JOIN pg_class b ON b.oid = k.confrelid \
     JOIN pg_namespace an ON an.oid = a.relnamespace JOIN pg_namespace bn ON bn.oid = b.relnamespace \
     JOIN pg_attribute ac ON ac.attrelid = a.oid AND ac.attnum = k.here JOIN pg_attribute bc ON bc.attrelid = b.oid AND bc.attnum = k.there \
     WHERE an.nspname = current_schema() AND bn.nspname = current_schema() ORDER BY a.relname, k.oid, k.number";

const MYSQL_KEYS: &str = "SELECT constraint_name, table_name, column_name, referenced_table_name, referenced_column_name \
     FROM information_schema.key_column_usage WHERE referenced_table_name IS NOT NULL AND table_schema = DATABASE() \
     AND referenced_table_schema = DATABASE() ORDER BY table_name, constraint_name, ordinal_position";

const SQLITE_KEYS: &str = "SELECT f.id, m.name, f.\"from\", f.\"table\", coalesce(f.\"to\", '') \
     FROM sqlite_schema m, pragma_foreign_key_list(m.name) f WHERE m.type = 'table' ORDER BY m.name, f.id DESC, f.seq";

/// The rows of a query about the database, as texts.
async fn texts(lease: &mut Lease, text: &str) -> Result<Vec<Vec<String>>, Error> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let take = |row: Row| {
        if rows.len() >= MOST {
            return Err(Error::new(Reason::Value, format!("the tables have more than {MOST} columns")));
        }
        rows.push(row.values.into_iter().map(|value| Value::text(value).unwrap_or_default()).collect());
        Ok(true)
    };
    let statement = Statement::new(text, lease.pool().dialect());
    lease.run(&statement, &[], take).await?;
    Ok(rows)
}

/// Adds the links of foreign keys to the tables of both ends.
fn link(tables: &mut [Table], rows: &[Vec<String>]) {
    for key in rows.chunk_by(|a, b| a.get(..2) == b.get(..2)) {
        let Some([_, here, _, there, _]) = key.first().map(Vec::as_slice) else { continue };
        let find = |name: &str| {
            let exact = tables.iter().position(|table| table.name == *name);
            exact.or_else(|| tables.iter().position(|table| table.name.eq_ignore_ascii_case(name)))
        };
        let (Some(here), Some(there)) = (find(here), find(there)) else { continue };
        let column = |table: &Table, name: &str| {
            let is_it = |column: &Column| column.name.eq_ignore_ascii_case(name);
            table.column(name).or_else(|| table.columns.iter().position(is_it))
        };
        let pair = |row: &Vec<String>| {
            let [_, _, from, _, to] = row.as_slice() else { return None };
            let to = match to.as_str() {
                "" if key.len() == 1 => tables[there].columns.iter().position(|column| column.key)?,
                name => column(&tables[there], name)?,
            };
            Some((column(&tables[here], from)?, to))
        };
        let Some(pairs) = key.iter().map(pair).collect::<Option<Vec<(usize, usize)>>>() else { continue };
        let of_key: Vec<&str> = pairs.iter().map(|&(at, _)| tables[here].columns[at].name.as_str()).collect();
        let of_key = of_key.join("_");
        let (from, to) = (tables[here].name.clone(), tables[there].name.clone());
        let back = pairs.iter().map(|&(a, b)| (b, a)).collect();
        tables[here].add_link(&to, &of_key, pairs, false);
        tables[there].add_link(&from, &of_key, back, true);
    }
}

/// Queries the database for its tables.
async fn read(lease: &mut Lease) -> Result<Model, Error> {
    let dialect = lease.pool().dialect();
    let (text, keys) = match dialect {
        Dialect::Postgres => (POSTGRES, POSTGRES_KEYS),
        Dialect::MySql => (MYSQL, MYSQL_KEYS),
        // The tables of SQL Server are not served (`compile`).
        Dialect::Sqlite | Dialect::SqlServer => (SQLITE, SQLITE_KEYS),
    };
    let (rows, keys) = (texts(lease, text).await?, texts(lease, keys).await?);
    let mut tables: Vec<Table> = Vec::new();
    for row in rows {
        let [name, column, plain, full, not_null, key] = row.as_slice() else { continue };
        // A name that OData does not allow is not served.
        if !is_name(name) || !is_name(column) {
            continue;
        }
        if tables.last().is_none_or(|table| table.name != *name) {
            tables.push(Table { name: name.clone(), ..Table::default() });
        }
        let Some(table) = tables.last_mut() else { continue };
        let (edm, kind, cast) = match dialect {
            Dialect::Postgres => of_postgres(plain, full),
            Dialect::MySql => of_mysql(plain, full),
            Dialect::Sqlite | Dialect::SqlServer => of_sqlite(plain),
        };
        table.columns.push(Column {
            name: column.clone(),
            edm,
            kind,
            cast,
            nullable: not_null != "true",
            key: key == "true",
        });
    }
    link(&mut tables, &keys);
    Ok(Model { tables: tables.into_iter().map(Arc::new).collect() })
}

fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    text.len() <= 128
        && letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

type Of = (Edm, Kind, Option<String>);

fn of_postgres(name: &str, full: &str) -> Of {
    let (edm, kind) = match name {
        "bool" => (Edm::Boolean, Kind::Boolean),
        "int2" | "int4" => (Edm::Int32, Kind::Integer),
        "int8" => (Edm::Int64, Kind::BigInt),
        "float4" => (Edm::Single, Kind::Real),
        "float8" => (Edm::Double, Kind::Double),
        "numeric" => (Edm::Decimal, Kind::Decimal),
        "date" => (Edm::Date, Kind::Date),
        "time" => (Edm::TimeOfDay, Kind::Time),
        "timestamp" | "timestamptz" => (Edm::DateTimeOffset, Kind::Timestamp),
        "bytea" => (Edm::Binary, Kind::Bytes),
        "text" | "varchar" | "bpchar" => (Edm::String, Kind::Text),
        "uuid" => return (Edm::Guid, Kind::Text, Some(full.to_owned())),
        _ => return (Edm::String, Kind::Text, Some(full.to_owned())),
    };
    (edm, kind, None)
}

fn of_mysql(name: &str, full: &str) -> Of {
    let unsigned = full.contains("unsigned");
    let (edm, kind) = match name {
        "tinyint" if full.starts_with("tinyint(1)") => (Edm::Boolean, Kind::Boolean),
        "bit" if full == "bit(1)" => (Edm::Boolean, Kind::Boolean),
        "int" if unsigned => (Edm::Int64, Kind::BigInt),
        "tinyint" | "smallint" | "mediumint" | "int" | "year" => (Edm::Int32, Kind::Integer),
        "bigint" if unsigned => (Edm::Decimal, Kind::Decimal),
        "bigint" => (Edm::Int64, Kind::BigInt),
        "decimal" => (Edm::Decimal, Kind::Decimal),
        "float" => (Edm::Single, Kind::Real),
        "double" => (Edm::Double, Kind::Double),
        "date" => (Edm::Date, Kind::Date),
        "time" => (Edm::TimeOfDay, Kind::Time),
        "datetime" | "timestamp" => (Edm::DateTimeOffset, Kind::Timestamp),
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => {
            (Edm::Binary, Kind::Bytes)
        }
        _ => (Edm::String, Kind::Text),
    };
    (edm, kind, None)
}

/// SQLite allows any type name, and derives the affinity from it.
fn of_sqlite(name: &str) -> Of {
    let name = name.to_ascii_uppercase();
    let has = |part: &str| name.contains(part);
    let (edm, kind) = match () {
        () if has("INT") => (Edm::Int64, Kind::BigInt),
        () if has("CHAR") || has("CLOB") || has("TEXT") || name.is_empty() => (Edm::String, Kind::Text),
        () if has("BLOB") || has("BINARY") => (Edm::Binary, Kind::Bytes),
        () if has("REAL") || has("FLOA") || has("DOUB") => (Edm::Double, Kind::Double),
        () if has("BOOL") || name == "BIT" => (Edm::Boolean, Kind::Boolean),
        () if has("DATETIME") || has("TIMESTAMP") => (Edm::DateTimeOffset, Kind::Timestamp),
        () if has("DATE") => (Edm::Date, Kind::Date),
        () if has("TIME") => (Edm::TimeOfDay, Kind::Time),
        () if has("DEC") || has("NUM") => (Edm::Decimal, Kind::Decimal),
        () => (Edm::String, Kind::Text),
    };
    (edm, kind, None)
}
