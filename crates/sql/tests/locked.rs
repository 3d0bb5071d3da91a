//! A connection comes within its time, or there is an error that says why: files of SQLite that others have locked, and connections that do not answer.

#![allow(clippy::unwrap_used)]

use busbar_sql::{Options, Pool, Pools, Reason, Source};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A file with a table, which ends with the test.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> File {
        let file = File(std::env::temp_dir().join(format!("busbar-{name}-{}.db", std::process::id())));
        file.open().execute_batch("drop table if exists t; create table t (a integer)").unwrap();
        file
    }

    fn open(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(&self.0).unwrap()
    }

    fn pool(&self, options: Options) -> Arc<Pool> {
        let url = format!("jdbc:sqlite:{}", self.0.display());
        Pools::default().get("locked", Source::new(&url, "", "", options, false).unwrap())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn a_locked_file_is_named_where_a_connection_begins_with_a_statement() {
    let file = File::new("init");
    let timeout = Duration::from_secs(4);
    let init = Some("insert into t values (1)".to_owned());
    let pool = file.pool(Options { init, connect_timeout: timeout, ..Options::default() });
    run(async {
        let other = file.open();
        other.execute_batch("begin exclusive").unwrap();
        let begun = Instant::now();
        let error = pool.get().await.err().unwrap();
        assert!(begun.elapsed() < timeout, "{:?}", begun.elapsed());
        assert_eq!(error.reason, Reason::Unavailable, "{error:?}");
        assert!(error.message.contains("initSQL") && error.message.contains("locked"), "{error:?}");
        other.execute_batch("commit").unwrap();
        drop(pool.get().await.unwrap());
    });
    assert_eq!(file.open().query_row("select count(*) from t", [], |row| row.get::<_, i64>(0)), Ok(1));
}

#[test]
fn a_first_statement_without_an_end_ends_with_the_time_for_a_connection() {
    let file = File::new("endless");
    let endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";
    let timeout = Duration::from_millis(300);
    let pool =
        file.pool(Options { init: Some(endless.to_owned()), connect_timeout: timeout, ..Options::default() });
    let error = run(async { pool.get().await.err().unwrap() });
    assert_eq!(error.reason, Reason::Unavailable, "{error:?}");
}

#[test]
fn of_many_idle_connections_one_shows_that_none_answers() {
    let file = File::new("idle");
    let timeout = Duration::from_secs(2);
    let pool = file.pool(Options {
        connect_timeout: timeout,
        validation: Some(Duration::ZERO),
        validation_query: Some("select count(*) from t".to_owned()),
        ..Options::default()
    });
    run(async {
        let mut leases = Vec::new();
        for _ in 0..8 {
            leases.push(pool.get().await.unwrap());
        }
        drop(leases);
        assert_eq!(pool.status().idle, 8);
        let other = file.open();
        other.execute_batch("begin exclusive").unwrap();
        let begun = Instant::now();
        let lease = pool.get().await.unwrap();
        assert!(begun.elapsed() < 2 * timeout, "{:?}", begun.elapsed());
        assert_eq!(pool.status().idle, 0);
        drop(lease);
    });
}

/// The only connection to a database in memory cannot be exchanged for another one.
#[test]
fn a_database_in_memory_is_not_validated() {
    let options = Options {
        validation: Some(Duration::ZERO),
        validation_query: Some("select 1 from dual".to_owned()),
        ..Options::default()
    };
    let source = Source::new("jdbc:sqlite::memory:", "", "", options, false).unwrap();
    let pool = Pools::default().get("memory", source);
    run(async {
        for _ in 0..3 {
            let lease = tokio::time::timeout(Duration::from_secs(20), pool.get()).await;
            drop(lease.unwrap().unwrap());
        }
    });
}

/// As by the restore of a backup: what was open would show the old rows for ever, and take no new ones.
#[test]
fn a_file_that_is_replaced_is_opened_again() {
    let (file, backup) = (File::new("replaced"), File::new("backup"));
    backup.open().execute_batch("insert into t values (7)").unwrap();
    let pool = file.pool(Options { most: 2, ..Options::default() });
    let sum = async |lease: &mut busbar_sql::Lease| {
        let statement = busbar_sql::Statement::new("select sum(a) from t", pool.dialect());
        let mut sum = None;
        let take = |row: busbar_sql::Row| {
            sum = row.values.into_iter().next().and_then(busbar_sql::Value::text);
            Ok(true)
        };
        lease.run(&statement, &[], take).await.unwrap();
        sum
    };
    let insert = busbar_sql::Statement::new("insert into t values (1)", pool.dialect());
    run(async {
        let mut before = pool.get().await.unwrap();
        before.run(&insert, &[], |_| Ok(true)).await.unwrap();
        let mut open = pool.get().await.unwrap();
        assert_eq!(sum(&mut open).await.as_deref(), Some("1"));
        drop(before);
        std::fs::rename(&backup.0, &file.0).unwrap();
        // One that is in use is closed by its error.
        let error = open.run(&insert, &[], |_| Ok(true)).await.unwrap_err();
        assert!(error.message.contains("readonly"), "{error:?}");
        drop(open);
        assert_eq!(pool.status().idle, 1);
        for _ in 0..2 {
            let mut lease = pool.get().await.unwrap();
            lease.run(&insert, &[], |_| Ok(true)).await.unwrap();
        }
        assert_eq!(sum(&mut pool.get().await.unwrap()).await.as_deref(), Some("9"));
    });
}
