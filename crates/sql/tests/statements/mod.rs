//! Statements that are run to their end, on a runtime of one thread.

use busbar_sql::{Error, Lease, Parameter, Row, Statement, Value};

pub fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// All rows of a statement.
pub async fn all(lease: &mut Lease, text: &str, parameters: &[Parameter]) -> Result<Vec<Vec<Value>>, Error> {
    let statement = Statement::new(text, lease.pool().dialect());
    let mut rows = Vec::new();
    let take = |row: Row| {
        rows.push(row.values);
        Ok(true)
    };
    lease.run(&statement, parameters, take).await?;
    Ok(rows)
}
