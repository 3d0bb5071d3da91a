//! The store in a table of a database (`JDBCMessageStore`): what waits in it outlives the process.
//!
//! The table is that of WSO2: `indexId`, a number that the database counts up, `msg_id` and `message`. The message with the lowest number is the next.
//! What is in the column is [`crate::format`].

use crate::{Message, Store, StoreError, StoreFuture, format};
use sql::{Dialect, Lease, Parameter, Pool, Reason, Row, Statement, Value};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the module.
pub struct Table {
    name: String,
    pool: Arc<Pool>,
    table: String,
    insert: Statement,
    next: Statement,
    delete: Statement,
    delete_at: Statement,
    /// The message that was read last, and its `indexId`: the table has no index by `msg_id`.
    last: Mutex<Option<(String, i64)>>,
    count: Statement,
    clear: Statement,
}

impl Table {
    /// The name of the table where none is configured.
    pub const DEFAULT: &'static str = "jdbc_message_store";

    /// A store of that name in a table. `None`: that is no name of a table, with or without its schema; it becomes part of statements, so letters,
    /// digits, `_`, `$`, `#` and points are all it may have.
    pub fn new(name: &str, pool: Arc<Pool>, table: &str) -> Option<Table> {
        let part = |part: &str| {
            part.starts_with(|first: char| first.is_alphabetic() || first == '_')
                && part.chars().all(|each| each.is_alphanumeric() || "_$#".contains(each))
        };
        if !table.split('.').all(part) {
            return None;
        }
        let dialect = pool.dialect();
        let statement = |text: String| Statement::new(&text, dialect);
        let next = match dialect {
            Dialect::SqlServer => format!("SELECT TOP 1 indexId, message FROM {table} ORDER BY indexId"),
            _ => format!("SELECT indexId, message FROM {table} ORDER BY indexId LIMIT 1"),
        };
        Some(Table {
            name: name.to_owned(),
            table: table.to_owned(),
            insert: statement(format!("INSERT INTO {table} (msg_id, message) VALUES (?, ?)")),
            next: statement(next),
            delete: statement(format!("DELETE FROM {table} WHERE msg_id = ?")),
            delete_at: statement(format!("DELETE FROM {table} WHERE indexId = ? AND msg_id = ?")),
            last: Mutex::default(),
            count: statement(format!("SELECT COUNT(*) FROM {table}")),
            clear: statement(format!("DELETE FROM {table}")),
            pool,
        })
    }

    /// What makes the table.
    fn definition(&self) -> String {
        let (number, bytes) = match self.pool.dialect() {
            Dialect::Sqlite => ("INTEGER PRIMARY KEY AUTOINCREMENT", "BLOB"),
            Dialect::MySql => ("BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY", "LONGBLOB"),
            Dialect::Postgres => ("BIGSERIAL PRIMARY KEY", "BYTEA"),
            Dialect::SqlServer => ("BIGINT IDENTITY PRIMARY KEY", "VARBINARY(MAX)"),
        };
        format!("CREATE TABLE {} (indexId {number}, msg_id VARCHAR(200), message {bytes})", self.table)
    }

    async fn lease(&self) -> Result<Lease, StoreError> {
        self.pool.get().await.map_err(|error| self.failed(&error))
    }

    /// Runs a statement; the values of its first row.
    async fn run(
        &self,
        statement: &Statement,
        parameters: &[Parameter],
    ) -> Result<(Vec<Value>, u64), StoreError> {
        let mut first = Vec::new();
        let take = |row: Row| {
            if first.is_empty() {
                first = row.values;
            }
            Ok(true)
        };
        let done = self.lease().await?.run(statement, parameters, take).await;
        let done = done.map_err(|error| self.failed(&error))?;
        Ok((first, done.affected))
    }

    fn failed(&self, error: &sql::Error) -> StoreError {
        match error.reason {
            Reason::Unavailable | Reason::Interrupted => StoreError::Unreachable { reason: error.detail() },
            Reason::Refused if lacks_table(error) => StoreError::Refused {
                reason: format!("{}; this makes the table: {}", error.detail(), self.definition()),
            },
            Reason::Refused | Reason::Value => StoreError::Refused { reason: error.detail() },
        }
    }

    async fn first(&self) -> Result<Option<Arc<Message>>, StoreError> {
        let (row, _) = self.run(&self.next, &[]).await?;
        let mut row = row.into_iter();
        let (Some(index), Some(message)) = (row.next(), row.next()) else { return Ok(None) };
        let read = match &message {
            Value::Bytes(bytes) => format::decode(bytes),
            _ => Err("it is not a column of bytes".to_owned()),
        };
        let number = match index {
            Value::Integer(number) => Some(number),
            _ => None,
        };
        let message = read.map_err(|why| StoreError::Unreadable {
            reason: format!(
                "the message with indexId {} in {}: {why}",
                index.text().unwrap_or_default(),
                self.table
            ),
        })?;
        *self.last() = number.map(|number| (message.id.clone(), number));
        Ok(Some(Arc::new(message)))
    }

    fn last(&self) -> MutexGuard<'_, Option<(String, i64)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the database says that there is no such table: by its SQLSTATE (PostgreSQL, MySQL), its number (SQL Server), or its words (SQLite).
fn lacks_table(error: &sql::Error) -> bool {
    matches!(error.state.as_deref(), Some("42P01" | "42S02"))
        || error.number == Some(208)
        || error.message.contains("no such table")
}

impl Store for Table {
    fn name(&self) -> &str {
        &self.name
    }

    /// Without user and password: those may change, and the table stays.
    fn place(&self) -> Option<String> {
        let target = self.pool.target();
        let schema = target.option("currentSchema").unwrap_or_default();
        // Databases in memory have their names as hosts.
        Some(format!("{target} {} {schema} {}", target.host, self.table))
    }

    fn capacity(&self) -> Option<usize> {
        None
    }

    fn size(&self) -> StoreFuture<'_, usize> {
        Box::pin(async {
            let (row, _) = self.run(&self.count, &[]).await?;
            let count = row.into_iter().next().and_then(Value::text).and_then(|text| text.parse().ok());
            Ok(count.unwrap_or_default())
        })
    }

    fn store(&self, message: Message) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let (bytes, most) = (format::encode(&message), self.pool.largest_value());
            if bytes.len() > most {
                // It could not be read back, and all that is behind it would wait.
                let reason = format!("it has {} bytes, and sql.value allows {most}", bytes.len());
                return Err(StoreError::TooLarge { reason });
            }
            let parameters = [Parameter::Text(message.id.clone()), Parameter::Bytes(bytes)];
            self.run(&self.insert, &parameters).await.map(drop)
        })
    }

    fn peek(&self) -> StoreFuture<'_, Option<Arc<Message>>> {
        Box::pin(self.first())
    }

    fn ack<'a>(&'a self, id: &'a str) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let number = self.last().take().filter(|(last, _)| last == id).map(|(_, number)| number);
            let id = Parameter::Text(id.to_owned());
            let (_, deleted) = match number {
                Some(number) => self.run(&self.delete_at, &[Parameter::BigInt(number), id]).await?,
                None => self.run(&self.delete, &[id]).await?,
            };
            Ok(deleted > 0)
        })
    }

    fn clear(&self) -> StoreFuture<'_, usize> {
        Box::pin(async {
            let (_, deleted) = self.run(&self.clear, &[]).await?;
            Ok(usize::try_from(deleted).unwrap_or(usize::MAX))
        })
    }
}
