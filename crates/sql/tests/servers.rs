//! Every type of JDBC, every failure and every limit on the three databases: SQLite, and PostgreSQL and MariaDB where they are installed
//! (`tests/services/install`). Where one is not, the test says so in a line; with `CI=true` it fails.

#![allow(clippy::unwrap_used)]

mod statements;

use busbar_sql::{
    Dialect, Error, Kind, Lease, Options, Parameter, Pool, Pools, Reason, Row, Sink, Source, State,
    Statement, Value,
};
use statements::{all, run};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A server of a test, which ends with it.
struct Server {
    script: PathBuf,
    directory: PathBuf,
    port: u16,
    scheme: &'static str,
}

impl Server {
    /// `None`: it is not installed.
    fn start(name: &str, scheme: &'static str) -> Option<Server> {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/services").join(name);
        let port = tests::ports::free().unwrap();
        let directory = std::env::temp_dir().join(format!("busbar-sql-{}-{port}", std::process::id()));
        let server = Server { script, directory, port, scheme };
        let started = server.ask("start");
        if started == Some(3) {
            let needed =
                std::env::var_os("CI").is_some() && std::env::var_os("BUSBAR_SERVICES_ABSENT").is_none();
            assert!(!needed, "{name} is not installed: tests/services/install");
            eprintln!("skipped: {name} is not installed (tests/services/install)");
            return None;
        }
        assert_eq!(started, Some(0), "{name} does not start: {}", server.directory.display());
        Some(server)
    }

    fn ask(&self, command_name: &str) -> Option<i32> {
        let mut command = Command::new(&self.script);
        command
            .arg(command_name)
            .arg(&self.directory)
            .arg(self.port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command.status().unwrap().code()
    }

    fn source(&self, query: &str, options: Options) -> Source {
        let url = format!("jdbc:{}://127.0.0.1:{}/bus{query}", self.scheme, self.port);
        Source::new(&url, "bus", "secret", options, false).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ask("stop");
        _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn postgres() -> Option<Server> {
    Server::start("postgresql", "postgresql")
}

fn mariadb() -> Option<Server> {
    Server::start("mariadb", "mariadb")
}

fn memory(name: &str) -> Source {
    Source::new(&format!("jdbc:sqlite:file:{name}?mode=memory"), "", "", Options::default(), false).unwrap()
}

async fn change(lease: &mut Lease, text: &str, parameters: &[Parameter]) -> Result<u64, Error> {
    let statement = Statement::new(text, lease.pool().dialect());
    Ok(lease.run(&statement, parameters, |_| Ok(true)).await?.affected)
}

fn text(value: &str) -> Parameter {
    Parameter::Text(value.to_owned())
}

/// Types, NULL, injection, errors, transactions: what every database must do.
async fn promises(pool: &Arc<Pool>) {
    let dialect = pool.dialect();
    let mut lease = pool.get().await.unwrap();
    let (double, bytes, stamp, bit) = match dialect {
        Dialect::Postgres => ("double precision", "bytea", "timestamp", "boolean"),
        Dialect::MySql => ("double", "blob", "datetime(3)", "boolean"),
        Dialect::Sqlite => ("double", "blob", "timestamp", "boolean"),
        Dialect::SqlServer => unreachable!("there is none (sqlserver.rs)"),
    };
    let create = format!(
        "create table types (k integer primary key, c char(3), v varchar(200), n decimal(30,10), b {bit}, t smallint, i integer, \
         l bigint, r real, d {double}, day date, tm time, ts {stamp}, bin {bytes})"
    );
    assert_eq!(change(&mut lease, &create, &[]).await.unwrap(), 0);
    let names = "k c v n b t i l r d day tm ts bin";
    let insert =
        format!("insert into types ({}) values (?,?,?,?,?,?,?,?,?,?,?,?,?,?)", names.replace(' ', ","));
    let given = [
        ("INTEGER", "1"),
        ("CHAR", "abc"),
        ("VARCHAR", "it's é 漢 '); drop table types; --"),
        ("DECIMAL", "12345678901234567890.5"),
        ("BIT", "true"),
        ("TINYINT", "-7"),
        ("INTEGER", "-2147483648"),
        ("BIGINT", "9223372036854775807"),
        ("REAL", "1.5"),
        ("DOUBLE", "-0.1"),
        ("DATE", "2026-11-23"),
        ("TIME", "10:15:30"),
        ("TIMESTAMP", "2026-11-23 10:15:30.25"),
        ("BLOB", "AAEC/w=="),
    ];
    let of = |key: &str, given: &[(&str, &str)]| -> Vec<Parameter> {
        let mut all: Vec<_> = given
            .iter()
            .map(|(kind, value)| Kind::named(kind).unwrap().parse(Some(value)).unwrap())
            .collect();
        all[0] = Kind::Integer.parse(Some(key)).unwrap();
        all
    };
    assert_eq!(change(&mut lease, &insert, &of("1", &given)).await.unwrap(), 1);
    let nothing: Vec<(&str, &str)> = given.iter().map(|(kind, _)| (*kind, "")).collect();
    assert_eq!(change(&mut lease, &insert, &of("2", &nothing)).await.unwrap(), 1);
    let select = format!("select {} from types where k = ?", names.replace(' ', ","));
    // Each of them again and again: the statement is kept, also where NULL came before.
    for key in [1, 2, 1, 2, 1] {
        let rows = all(&mut lease, &select, &[Parameter::Integer(key)]).await.unwrap();
        let texts: Vec<Option<String>> = rows[0].iter().cloned().map(Value::text).collect();
        let texts: Vec<&str> = texts.iter().map(|text| text.as_deref().unwrap_or("NULL")).collect();
        if key == 2 {
            assert_eq!(texts[1..], ["NULL"; 13], "{dialect}");
            continue;
        }
        let decimal = if dialect == Dialect::Sqlite {
            "1.2345678901234567E19"
        } else {
            "12345678901234567890.5000000000"
        };
        let truth = if dialect == Dialect::Sqlite { "1" } else { "true" };
        let stamp = "2026-11-23 10:15:30.25";
        let wanted = [
            "1",
            "abc",
            "it's é 漢 '); drop table types; --",
            decimal,
            truth,
            "-7",
            "-2147483648",
            "9223372036854775807",
            "1.5",
            "-0.1",
            "2026-11-23",
            "10:15:30",
            stamp,
            "AAEC/w==",
        ];
        assert_eq!(texts, wanted, "{dialect}");
    }
    // What is compared is the value, by its type.
    for (column, kind, value) in [
        ("c", "CHAR", "abc"),
        ("i", "INTEGER", "-2147483648"),
        ("l", "BIGINT", "9223372036854775807"),
        ("day", "DATE", "2026-11-23"),
        ("ts", "TIMESTAMP", "2026-11-23 10:15:30.25"),
        ("b", "BIT", "true"),
        ("bin", "BLOB", "AAEC/w=="),
    ] {
        let parameter = Kind::named(kind).unwrap().parse(Some(value)).unwrap();
        let found =
            all(&mut lease, &format!("select k from types where {column} = ?"), &[parameter]).await.unwrap();
        assert_eq!(found, [[Value::Integer(1)]], "{dialect} {column}");
    }
    // No text is ever part of a statement.
    for attack in
        ["' or '1'='1", "x'; delete from types; --", "\\' or 1=1 --", "abc\" or \"\"=\"", "%' or v like '%"]
    {
        let found = all(&mut lease, "select k from types where v = ?", &[text(attack)]).await.unwrap();
        assert!(found.is_empty(), "{dialect} {attack}");
    }
    assert_eq!(all(&mut lease, "select count(*) from types", &[]).await.unwrap(), [[Value::Integer(2)]]);

    // Errors have the codes of the database, and the connection goes on.
    let (state, number) = match dialect {
        Dialect::Postgres => (Some("23505"), None),
        Dialect::MySql => (Some("23000"), Some(1062)),
        Dialect::Sqlite => (None, Some(1555)),
        Dialect::SqlServer => unreachable!("there is none (sqlserver.rs)"),
    };
    let error = change(&mut lease, &insert, &of("1", &given)).await.unwrap_err();
    assert_eq!(
        (error.state.as_deref(), error.number, error.reason),
        (state, number, Reason::Refused),
        "{error:?}"
    );
    let error = all(&mut lease, "select nonsense from types", &[]).await.unwrap_err();
    assert_eq!(error.reason, Reason::Refused, "{dialect} {error:?}");
    let error = all(&mut lease, "select k from types where k = ?", &[]).await.unwrap_err();
    assert_eq!(error.reason, Reason::Value);
    assert_eq!(
        change(&mut lease, "update types set v = ? where k > ?", &[text("x"), Parameter::Integer(0)])
            .await
            .unwrap(),
        2
    );
    assert_eq!(
        change(&mut lease, "update types set v = ? where k > ?", &[text("x"), Parameter::Integer(9)])
            .await
            .unwrap(),
        0
    );

    // Transactions.
    lease.begin().await.unwrap();
    change(&mut lease, "delete from types where k = ?", &[Parameter::Integer(2)]).await.unwrap();
    lease.roll_back().await.unwrap();
    let count = |rows: Vec<Vec<Value>>| rows[0][0].clone();
    assert_eq!(count(all(&mut lease, "select count(*) from types", &[]).await.unwrap()), Value::Integer(2));
    lease.begin().await.unwrap();
    change(&mut lease, "delete from types where k = ?", &[Parameter::Integer(2)]).await.unwrap();
    lease.commit().await.unwrap();
    assert_eq!(count(all(&mut lease, "select count(*) from types", &[]).await.unwrap()), Value::Integer(1));
    // One that is dropped in the middle is taken back.
    lease.begin().await.unwrap();
    change(&mut lease, "delete from types", &[]).await.unwrap();
    drop(lease);
    let mut lease = pool.get().await.unwrap();
    assert_eq!(
        count(all(&mut lease, "select count(*) from types", &[]).await.unwrap()),
        Value::Integer(1),
        "{dialect}"
    );

    every_kind(&mut lease, dialect).await;
    prepared(&mut lease, dialect).await;

    // Rows are taken one by one, and no more than are wanted.
    let numbers =
        "with recursive n(a) as (select 1 union all select a + 1 from n where a < 5000) select a from n";
    let numbers = if dialect == Dialect::MySql { "select seq from seq_1_to_5000" } else { numbers };
    let statement = Statement::new(numbers, dialect);
    let mut seen = 0;
    let take = |_| {
        seen += 1;
        Ok(seen < 100)
    };
    lease.run(&statement, &[], take).await.unwrap();
    assert_eq!(seen, 100);
    assert_eq!(all(&mut lease, numbers, &[]).await.unwrap().len(), 5000);
    change(&mut lease, "drop table types", &[]).await.unwrap();
}

/// A connection keeps what it has prepared: a table that is changed after that, and the same text with parameters of other types.
async fn prepared(lease: &mut Lease, dialect: Dialect) {
    change(lease, "create table changing (k integer, v varchar(10))", &[]).await.unwrap();
    change(lease, "insert into changing values (?, ?)", &[Parameter::Integer(1), text("a")]).await.unwrap();
    let (ask, one) = ("select * from changing where k = ?", [Parameter::Integer(1)]);
    let row = |values: &[Value]| vec![values.to_vec()];
    let (number, letter) = (Value::Integer(1), Value::Text("a".into()));
    assert_eq!(all(lease, ask, &one).await.unwrap(), row(&[number.clone(), letter.clone()]));
    change(lease, "alter table changing add column more varchar(10)", &[]).await.unwrap();
    assert_eq!(
        all(lease, ask, &one).await.unwrap(),
        row(&[number.clone(), letter.clone(), Value::Null]),
        "{dialect}"
    );
    change(lease, "alter table changing drop column v", &[]).await.unwrap();
    // Within a transaction that is the end of it in PostgreSQL; behind it all is well.
    lease.begin().await.unwrap();
    let within = all(lease, ask, &one).await;
    assert_eq!(within.is_err(), dialect == Dialect::Postgres, "{within:?}");
    lease.roll_back().await.unwrap();
    let left = row(&[number.clone(), Value::Null]);
    assert_eq!(all(lease, ask, &one).await.unwrap(), left, "{dialect}");
    for parameter in
        [Parameter::BigInt(1), Parameter::SmallInt(1), Parameter::Decimal("1".into()), Parameter::Double(1.0)]
    {
        assert_eq!(
            all(lease, ask, std::slice::from_ref(&parameter)).await.unwrap(),
            left,
            "{dialect} {parameter:?}"
        );
    }
    // Four letters are no number of 32 bits.
    match (dialect, all(lease, ask, &[text("abcd")]).await) {
        (Dialect::Postgres, Err(error)) => assert_eq!(error.state.as_deref(), Some("42883"), "{error}"),
        (Dialect::MySql | Dialect::Sqlite, Ok(rows)) => assert_eq!(rows.len(), 0),
        other => panic!("{other:?}"),
    }
    assert_eq!(all(lease, ask, &one).await.unwrap(), left);
    change(lease, "drop table changing", &[]).await.unwrap();
}

/// Texts that are none of what they are given for, bound as each type: a fault of the parameter, of the database, or a value; never SQL, and the
/// connection goes on.
async fn every_kind(lease: &mut Lease, dialect: Dialect) {
    const HOSTILE: [&str; 12] = [
        "'",
        "x'; drop table kept; --",
        "1; drop table kept",
        "1 or 1=1",
        "\\",
        "\0",
        "${jndi:x}",
        "NaN",
        "-Infinity",
        "1e400",
        "99999999999999999999999999",
        "9999-12-31 23:59:59.999999999",
    ];
    change(lease, "create table kept (a integer)", &[]).await.unwrap();
    change(lease, "create table taken (v varchar(100))", &[]).await.unwrap();
    let names = Kind::NAMES.iter().chain(&["STRING", "BOOLEAN", "BLOB", "UUID", "MONEY", "CLOB"]);
    for name in names {
        let kind = Kind::named(name).unwrap();
        for text in HOSTILE.into_iter().chain(["", "\u{10FFFF}", &"9".repeat(5000), &"x".repeat(100_000)]) {
            let Ok(parameter) = kind.parse(Some(text)) else { continue };
            for statement in ["select count(*) from taken where v = ?", "insert into taken values (?)"] {
                let done = change(lease, statement, std::slice::from_ref(&parameter)).await;
                let refused = done.err().map(|error| error.reason);
                assert!(
                    matches!(refused, None | Some(Reason::Refused | Reason::Value)),
                    "{dialect} {name} {text:.40}: {refused:?}"
                );
            }
            // A text is kept as it is.
            if kind == Kind::Text
                && HOSTILE.contains(&text)
                && !(text == "\0" && dialect == Dialect::Postgres)
            {
                let kept = all(lease, "select count(*) from taken where v = ?", &[parameter]).await.unwrap();
                assert_eq!(kept, [[Value::Integer(1)]], "{dialect} {text}");
            }
            change(lease, "delete from taken", &[]).await.unwrap();
        }
    }
    assert_eq!(all(lease, "select count(*) from kept", &[]).await.unwrap(), [[Value::Integer(0)]]);
    // Floats that are no numbers: a value where the database has such, else refused, else NULL.
    let double = if dialect == Dialect::Postgres { "double precision" } else { "double" };
    change(lease, &format!("create table floats (v {double})"), &[]).await.unwrap();
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let given = Parameter::Double(number);
        let done =
            change(lease, "insert into floats values (?)", &[given]).await.map_err(|error| error.reason);
        let kept = all(lease, "select v from floats", &[]).await.unwrap();
        match dialect {
            Dialect::Postgres => {
                assert_eq!(done, Ok(1));
                assert_eq!(kept[0][0].clone().text(), Value::Double(number).text(), "{number}");
            }
            Dialect::Sqlite if number.is_nan() => assert_eq!((done, &kept[0][0]), (Ok(1), &Value::Null)),
            Dialect::Sqlite => assert_eq!((done, &kept[0][0]), (Ok(1), &Value::Double(number))),
            _ => assert_eq!((done, kept.len()), (Err(Reason::Refused), 0), "{number}"),
        }
        change(lease, "delete from floats", &[]).await.unwrap();
    }
    for table in ["kept", "taken", "floats"] {
        change(lease, &format!("drop table {table}"), &[]).await.unwrap();
    }
}

/// TLS as options of URLs ask for it. `modes`: nothing checked, the authority checked, the host checked too.
fn encrypted(server: &Server, option: &str, modes: [&str; 3], ask: &str) {
    let roots = server.directory.join("ca.crt");
    if !server.directory.join("server.crt").is_file() {
        assert!(std::env::var_os("CI").is_none(), "openssl is not installed: tests/services/install");
        eprintln!("skipped: openssl is not installed (tests/services/install)");
        return;
    }
    let roots = roots.to_str().unwrap();
    run(async {
        let pools = Pools::default();
        for (mode, with, host, works) in [
            (modes[0], "", "127.0.0.1", true),
            (modes[1], roots, "127.0.0.1", true),
            (modes[1], "", "127.0.0.1", false),
            (modes[2], roots, "127.0.0.1", true),
            (modes[2], roots, "localhost", true),
            // The same server by an address that its certificate does not have.
            (modes[2], roots, "[::ffff:127.0.0.1]", false),
            (modes[2], "", "localhost", false),
            (modes[2], "/nowhere/ca.crt", "localhost", false),
        ] {
            let roots = if with.is_empty() { String::new() } else { format!("&sslrootcert={with}") };
            let url = format!("jdbc:{}://{host}:{}/bus?{option}={mode}{roots}", server.scheme, server.port);
            let options = Options { connect_timeout: Duration::from_secs(5), ..Options::default() };
            let source = Source::new(&url, "bus", "secret", options, false).unwrap();
            match pools.get("tls", source).get().await {
                Ok(mut lease) => {
                    assert!(works, "{url}");
                    let row = all(&mut lease, ask, &[]).await.unwrap().remove(0);
                    let version =
                        row.into_iter().filter_map(Value::text).find(|text| text.starts_with("TLS"));
                    assert!(version.is_some(), "{url} is not encrypted");
                }
                Err(error) => {
                    assert!(!works, "{url}: {error:?}");
                    assert_eq!(error.reason, Reason::Unavailable, "{url}: {error:?}");
                    assert!(!error.detail().contains("secret"), "{error:?}");
                    let is_certificate = error.message.to_lowercase().contains("certificate");
                    let is_other = with.contains("nowhere") || error.message.contains("no connection");
                    assert!(is_certificate || is_other, "{url}: {error:?}");
                }
            }
        }
    });
}

#[test]
fn sqlite_keeps_the_promises() {
    run(async { promises(&Pools::default().get("memory", memory("promises"))).await });
}

#[test]
fn postgresql_keeps_the_promises() {
    let Some(server) = postgres() else { return };
    run(async {
        let pools = Pools::default();
        promises(&pools.get("pg", server.source("", Options::default()))).await;
        // With TLS, which the server has where openssl is there.
        promises(&pools.get("tls", server.source("?sslmode=require", Options::default()))).await;
        let unknown = pools.get("full", server.source("?sslmode=verify-full", Options::default()));
        let refused = unknown.get().await.err().unwrap();
        assert!(
            refused.message.contains("certificate") && refused.reason == Reason::Unavailable,
            "{refused:?}"
        );

        let mut lease = pools.get("pg", server.source("", Options::default())).get().await.unwrap();
        let texts = "select 1::numeric(5,2), 'a'::text, '{1,2}'::int[], '{\"a\": 1}'::jsonb, 'infinity'::date, \
                     'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, interval '1 year 2 days 3 hours', inet '10.0.0.1', \
                     b'101', 0.0001::numeric, 'NaN'::numeric, 12.34::money, -5::smallint";
        let row = all(&mut lease, texts, &[]).await.unwrap().remove(0);
        let row: Vec<String> = row.into_iter().filter_map(Value::text).collect();
        let uuid = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        let wanted = [
            "1.00",
            "a",
            "{1,2}",
            "{\"a\": 1}",
            "infinity",
            uuid,
            "1 year 2 days 03:00:00",
            "10.0.0.1",
            "101",
            "0.0001",
            "NaN",
            "12.34",
            "-5",
        ];
        assert_eq!(row, wanted);
        // What consists of other values comes as the server itself writes it.
        all(&mut lease, "create type pair as (x int, \"a b\" text)", &[]).await.unwrap();
        // Extensions, where they are installed.
        let mut more = Vec::new();
        for (extension, value) in
            [("ltree", "'a.b'::ltree"), ("hstore", "'a=>1,\"b c\"=>\"x\\\"y\",d=>NULL'::hstore")]
        {
            let made = all(&mut lease, &format!("create extension {extension}"), &[]).await;
            more.extend(made.is_ok().then_some(value));
        }
        for value in [
            "'{{1,2},{3,4}}'::int[]",
            "'{{{a,\"b c\"},{NULL,\"null\"}}}'::text[]",
            "array['2026-01-01'::date]",
            "'[1,5)'::int4range",
            "'(,1.50]'::numrange",
            "'empty'::int8range",
            "'[2026-01-01,2026-02-01 10:00:00.5)'::tsrange",
            "'[2026-01-01,)'::tstzrange",
            "daterange(null, null)",
            "row(1, 'a \"b\"', null, ''::text, true, 1.5::float8, '\\x01ff'::bytea, '(,)'::text, '10:15:30.5'::time, '2026-01-01'::timestamp, row(2, 'x'::text))",
            "row(7, 'a,b')::pair",
            "row(null, null)::pair",
            "array[row(1, 'x')::pair, row(2, 'a b')::pair]",
            "point(1, -2.5)",
            "box(point(0, 0), point(1e20, 1))",
            "'<(1,2),3>'::circle",
            "'((1,2),(3,4))'::path",
            "'[(1,2),(3,4)]'::path",
            "'((1,2),(3,4),(5,6))'::polygon",
            "'[(1,2),(3,4)]'::lseg",
            "'{1,2,3}'::line",
            "'16/B374D848'::pg_lsn",
            "'$.a[*]'::jsonpath",
            "'08:00:2b:01:02:03:04:05'::macaddr8",
        ]
        .into_iter()
        .chain(more)
        {
            let row = all(&mut lease, &format!("select {value}, ({value})::text"), &[]).await;
            let row = row.unwrap_or_else(|error| panic!("{value}: {}", error.detail())).remove(0);
            assert_eq!(row[0], row[1], "{value}");
        }
        let unknown = all(&mut lease, "select '{[1,3)}'::int4multirange", &[]).await.unwrap_err();
        assert!(unknown.message.contains("cast it to text"), "{unknown:?}");
        drop(lease);
        let mut lease = pools.get("pg", server.source("", Options::default())).get().await.unwrap();
        let error = all(&mut lease, "select ?::varchar", &[text("a\0b")]).await.unwrap_err();
        assert_eq!(error.reason, Reason::Value, "a NUL is refused before anything is sent");
    });
    let ask = "select version from pg_stat_ssl where pid = pg_backend_pid()";
    encrypted(&server, "sslmode", ["require", "verify-ca", "verify-full"], ask);
    values_and_takers(|options| server.source("", options), "select repeat('x', LENGTH)", MANY);
    others_run_while_rows_are_taken(server.source("", Options::default()), MANY);
    slow_takers_get_all_rows(
        |options| server.source("", options),
        &LONG_ROWS.replace("VALUE", "repeat('x', 1000000)"),
    );
    limits(&server);
    cuts(&server);
    outages(&server);
}

#[test]
fn mariadb_keeps_the_promises() {
    let Some(server) = mariadb() else { return };
    run(async {
        let pools = Pools::default();
        promises(&pools.get("my", server.source("", Options::default()))).await;
        let mut lease =
            pools.get("my", server.source("?tinyInt1isBit=false", Options::default())).get().await.unwrap();
        change(&mut lease, "create table own (id bigint unsigned auto_increment primary key, t tinyint(1), y year, e enum('a','b'))", &[]).await.unwrap();
        let insert = Statement::new("insert into own (t, y, e) values (?, 2026, 'b')", Dialect::MySql);
        let done = lease.run(&insert, &[Parameter::SmallInt(2)], |_| Ok(true)).await.unwrap();
        assert_eq!(done.generated, Some(1));
        let rows = all(&mut lease, "select id, t, y, e from own", &[]).await.unwrap();
        assert_eq!(
            rows,
            [[Value::Unsigned(1), Value::Integer(2), Value::Integer(2026), Value::Text("b".into())]]
        );
    });
    let ask = "show session status like 'Ssl_version'";
    encrypted(&server, "sslMode", ["REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"], ask);
    values_and_takers(|options| server.source("", options), "select repeat('x', LENGTH)", MANY);
    others_run_while_rows_are_taken(server.source("", Options::default()), MANY);
    slow_takers_get_all_rows(
        |options| server.source("", options),
        &LONG_ROWS.replace("VALUE", "repeat('x', 1000000)"),
    );
    limits(&server);
    cuts(&server);
    outages(&server);
}

/// How each server sleeps.
fn sleep(server: &Server, seconds: u32) -> String {
    if server.scheme == "postgresql" {
        format!("select pg_sleep({seconds})")
    } else {
        format!("select sleep({seconds})")
    }
}

/// Waits until the server has ended the statements that were given up.
async fn nothing_runs(pool: &Arc<Pool>, server: &Server) {
    let count = if server.scheme == "postgresql" {
        "select count(*) from pg_stat_activity where state = 'active' and query like 'select pg_sleep%'"
    } else {
        "select count(*) from information_schema.processlist where info like 'select sleep%'"
    };
    let mut lease = pool.get().await.unwrap();
    let began = Instant::now();
    while all(&mut lease, count, &[]).await.unwrap() != [[Value::Integer(0)]] {
        assert!(began.elapsed() < Duration::from_secs(15), "the server still works for nobody");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Limits and deadlines of pools.
fn limits(server: &Server) {
    run(async {
        let pools = Pools::default();
        let options = Options {
            most: 2,
            wait: Duration::from_millis(200),
            query_timeout: Duration::from_secs(3),
            ..Options::default()
        };
        let pool = pools.get("small", server.source("", options.clone()));
        let (first, second) = (pool.get().await.unwrap(), pool.get().await.unwrap());
        let refused = pool.get().await.err().unwrap();
        assert!(refused.message.contains("all 2 connections"), "{refused:?}");
        let status = pool.status();
        assert_eq!((status.in_use, status.idle, status.waits.0, status.state), (2, 0, 1, State::Up));
        drop((first, second));
        assert_eq!((pool.status().in_use, pool.status().idle), (0, 2));

        // A statement that takes too long: the connection is closed, the next message gets another one.
        let mut lease = pool.get().await.unwrap();
        let began = Instant::now();
        let late = all(&mut lease, &sleep(server, 30), &[]).await.unwrap_err();
        assert!(late.reason == Reason::Interrupted && began.elapsed() < Duration::from_secs(10), "{late:?}");
        drop(lease);
        let closed = pool.status().opened.1;
        assert!(closed >= 1);
        nothing_runs(&pool, server).await;

        // A message that is given up: the same.
        let mut lease = pool.get().await.unwrap();
        let text = sleep(server, 30);
        let given_up = tokio::time::timeout(Duration::from_millis(100), all(&mut lease, &text, &[])).await;
        assert!(given_up.is_err());
        drop(lease);
        assert_eq!(pool.status().opened.1, closed + 1);
        let mut lease = pool.get().await.unwrap();
        assert_eq!(all(&mut lease, "select 1", &[]).await.unwrap(), [[Value::Integer(1)]]);
        drop(lease);
        nothing_runs(&pool, server).await;
        assert_eq!((pool.status().in_use, pool.status().waiting), (0, 0));
        // The server has no more connections than that: what it says, and it works when others are closed.
        let crowd =
            pools.get("crowd", server.source("", Options { most: 60, most_idle: 0, ..options.clone() }));
        let mut leases = Vec::new();
        let full = loop {
            match crowd.get().await {
                Ok(lease) => leases.push(lease),
                Err(error) => break error,
            }
        };
        assert!(leases.len() >= 10, "{}", leases.len());
        assert_eq!((full.reason, crowd.status().state), (Reason::Unavailable, State::Down), "{full:?}");
        assert!(full.state.as_deref() == Some("53300") || full.number == Some(1040), "{full:?}");
        // Who comes then waits for one of those that there are.
        let patient = pools.get("patient", server.source("", Options { most: 60, ..Options::default() }));
        drop((leases.pop(), leases.pop()));
        let mut taken = Vec::new();
        for _ in 0..200 {
            match tokio::time::timeout(Duration::from_millis(500), patient.get()).await {
                Ok(Ok(lease)) => taken.push(lease),
                // The server has not closed those of the others yet, or is slow.
                _ if taken.is_empty() => tokio::time::sleep(Duration::from_millis(20)).await,
                _ => break,
            }
        }
        assert!(!taken.is_empty() && taken.len() < 10, "{}", taken.len());
        let (waits, comes_back) = tokio::join!(patient.get(), async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            drop(taken.pop());
        });
        assert!(waits.is_ok());
        drop((comes_back, taken, leases));
        let mut tries = 0..200;
        let mut lease = loop {
            match crowd.get().await {
                Ok(lease) => break lease,
                // The server has not closed those of the others yet.
                Err(error) => {
                    assert!(error.reason == Reason::Unavailable && tries.next().is_some(), "{error:?}")
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        assert_eq!(all(&mut lease, "select 1", &[]).await.unwrap(), [[Value::Integer(1)]]);
        drop(lease);
        assert_eq!(crowd.status().state, State::Up);
        // A pool that may be larger than the server allows does not ask the server for each message.
        let greedy = pools.get("greedy", server.source("", Options { most: 60, ..Options::default() }));
        let ask = async || {
            for _ in 0..20 {
                let mut lease = greedy.get().await.unwrap();
                assert_eq!(all(&mut lease, "select 1", &[]).await.unwrap(), [[Value::Integer(1)]]);
            }
        };
        futures_util::future::join_all((0..50).map(|_| ask())).await;
        let (opened, _, failed) = greedy.status().opened;
        assert!(opened < 60 && failed < 60, "{opened} opened, {failed} failed for 1000 messages");
        // Wrong passwords and databases are said by the server, in words and with its code.
        let mut wrong = server.source("", Options::default());
        wrong.password = "geheim".to_owned();
        let refused = pools.get("wrong", wrong).get().await.err().unwrap();
        assert!(refused.reason == Reason::Unavailable && refused.state.is_some(), "{refused:?}");
        assert!(!refused.detail().contains("geheim"));
    });
}

/// The server is stopped, killed in the middle of an answer and started again: each gives an error, and the next request works.
fn outages(server: &Server) {
    run(async {
        let pools = Pools::default();
        let pool = pools.get(
            "out",
            server.source("", Options { connect_timeout: Duration::from_secs(2), ..Options::default() }),
        );
        let mut leases = Vec::new();
        for _ in 0..3 {
            leases.push(pool.get().await.unwrap());
        }
        drop(leases);
        assert_eq!(pool.status().idle, 3);
        let text = sleep(server, 60);
        let mut lease = pool.get().await.unwrap();
        let (query, _) = tokio::join!(all(&mut lease, &text, &[]), async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            server.ask("kill");
        });
        let error = query.unwrap_err();
        assert!(matches!(error.reason, Reason::Interrupted | Reason::Refused), "{error:?}");
        drop(lease);
        let refused = pool.get().await.err().unwrap();
        assert_eq!((refused.reason, pool.status().state), (Reason::Unavailable, State::Down));
        server.ask("start");
        let mut lease = pool.get().await.unwrap();
        assert_eq!(all(&mut lease, "select 1", &[]).await.unwrap(), [[Value::Integer(1)]]);
        assert_eq!(pool.status().state, State::Up);
        drop(lease);
        // Stopped while connections lie idle: they are asked before they are used.
        server.ask("stop");
        server.ask("start");
        tokio::time::sleep(Duration::from_millis(1100)).await;
        let mut lease = pool.get().await.unwrap();
        assert_eq!(all(&mut lease, "select 1", &[]).await.unwrap(), [[Value::Integer(1)]]);
    });
}

/// Stands between a client and a server, or instead of one, until it is dropped.
struct Between {
    port: u16,
    /// So many bytes of the server still get through; then the connection is cut.
    left: Arc<AtomicUsize>,
    ends: Arc<AtomicBool>,
}

impl Between {
    fn new(serve: impl Fn(TcpStream, &Arc<AtomicUsize>) + Send + 'static) -> Between {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (left, ends) = (Arc::new(AtomicUsize::new(usize::MAX)), Arc::new(AtomicBool::new(false)));
        let (left_in_thread, end) = (Arc::clone(&left), Arc::clone(&ends));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if end.load(Relaxed) {
                    return;
                }
                serve(client, &left_in_thread);
            }
        });
        Between { port, left, ends }
    }

    /// In front of a server.
    fn of(server: u16) -> Between {
        Between::new(move |client, left| {
            let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { return };
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || {
                _ = std::io::copy(&mut from, &mut to);
                _ = to.shutdown(Shutdown::Both);
            });
            let left = Arc::clone(left);
            std::thread::spawn(move || relay(server, client, &left));
        })
    }
}

fn relay(mut server: TcpStream, mut client: TcpStream, left: &AtomicUsize) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = server.read(&mut buffer) {
        let passes = length.min(left.load(Relaxed));
        left.fetch_sub(passes, Relaxed);
        if client.write_all(&buffer[..passes]).is_err() || passes < length {
            break;
        }
    }
    _ = client.shutdown(Shutdown::Both);
    _ = server.shutdown(Shutdown::Both);
}

impl Drop for Between {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// The connection is cut behind so many bytes of the server, in its greeting, in the answer, in the middle of a value: a fault each time, and the
/// next request works.
fn cuts(server: &Server) {
    run(async {
        let between = Between::of(server.port);
        let plain = if server.scheme == "postgresql" { "sslmode=disable" } else { "sslMode=DISABLED" };
        let url = format!("jdbc:{}://127.0.0.1:{}/bus?{plain}", server.scheme, between.port);
        let source = Source::new(&url, "bus", "secret", Options::default(), false).unwrap();
        let pool = Pools::default().get("cut", source);
        for most in [1, 30, 100, 300, 400, 1000, 20_000] {
            for fresh in [true, false] {
                if fresh {
                    // All that lie idle are cut, so that a new one is opened with so many bytes.
                    between.left.store(0, Relaxed);
                    if let Ok(mut lease) = pool.get().await {
                        _ = all(&mut lease, "select 1", &[]).await;
                    }
                }
                between.left.store(most, Relaxed);
                let query = async {
                    let mut lease = pool.get().await?;
                    all(&mut lease, "select repeat('x', 100000)", &[]).await
                };
                let error = query.await.map(|rows| rows.len()).unwrap_err();
                assert!(
                    matches!(error.reason, Reason::Unavailable | Reason::Interrupted),
                    "{} {most}: {error:?}",
                    server.scheme
                );
                between.left.store(usize::MAX, Relaxed);
                let mut lease = pool.get().await.unwrap();
                assert_eq!(all(&mut lease, "select 1", &[]).await.unwrap(), [[Value::Integer(1)]]);
            }
        }
        // Whether the commit or its answer is lost, nobody can say.
        let mut lease = pool.get().await.unwrap();
        lease.begin().await.unwrap();
        assert_eq!(all(&mut lease, "select 1", &[]).await.unwrap(), [[Value::Integer(1)]]);
        between.left.store(0, Relaxed);
        let error = lease.commit().await.unwrap_err();
        between.left.store(usize::MAX, Relaxed);
        assert!(
            error.reason == Reason::Interrupted && error.message.contains("may be committed or not"),
            "{error:?}"
        );
        drop(lease);
        assert_eq!((pool.status().in_use, pool.status().state), (0, State::Up));
    });
}

/// Who listens there is no database: it says nothing, something else, or goes.
#[test]
fn who_is_no_database_is_a_database_that_is_down() {
    for scheme in ["postgresql", "mariadb"] {
        let greetings: [Option<&'static [u8]>; 5] =
            [None, Some(b""), Some(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Some(&[0xFF; 64]), Some(&[0; 64])];
        for greeting in greetings {
            let kept = Mutex::new(Vec::new());
            let between = Between::new(move |mut client, _| match greeting {
                None => kept.lock().unwrap().push(client),
                Some(greeting) => _ = client.write_all(greeting),
            });
            run(async {
                let url = format!("jdbc:{scheme}://127.0.0.1:{}/bus", between.port);
                let options = Options { connect_timeout: Duration::from_millis(300), ..Options::default() };
                let pool =
                    Pools::default().get("none", Source::new(&url, "bus", "secret", options, false).unwrap());
                let error = pool.get().await.err().unwrap();
                assert_eq!(error.reason, Reason::Unavailable, "{scheme} {greeting:?}: {error:?}");
                let status = pool.status();
                assert_eq!((status.in_use, status.idle, status.state), (0, 0, State::Down));
            });
        }
    }
}

/// A taker that has no room for a while after each row, as a slow client.
struct Slow {
    rows: usize,
    room: Option<std::pin::Pin<Box<tokio::time::Sleep>>>,
}

impl Sink for Slow {
    fn row(&mut self, _: Row) -> Result<bool, Error> {
        self.rows += 1;
        self.room = Some(Box::pin(tokio::time::sleep(Duration::from_millis(60))));
        Ok(true)
    }

    fn poll_room(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        self.room.as_mut().map_or(std::task::Poll::Ready(()), |room| room.as_mut().poll(cx))
    }
}

struct Lent<'a>(&'a mut Slow);
impl Sink for Lent<'_> {
    fn row(&mut self, row: Row) -> Result<bool, Error> {
        self.0.row(row)
    }
    fn poll_room(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        self.0.poll_room(cx)
    }
}

/// Values have a bound, and the database waits for who takes its rows, which no deadline counts.
fn values_and_takers(source: impl Fn(Options) -> Source, long: &str, many: &str) {
    run(async {
        let pools = Pools::default();
        let options =
            Options { longest: 2 << 20, query_timeout: Duration::from_secs(3), ..Options::default() };
        let pool = pools.get("values", source(options));
        let mut lease = pool.get().await.unwrap();
        for (length, fits) in [(1 << 20, true), ((2 << 20) - 100, true), (3 << 20, false)] {
            let rows = all(&mut lease, &long.replace("LENGTH", &length.to_string()), &[]).await;
            match (rows, fits) {
                (Ok(rows), true) => assert_eq!(rows[0][0], Value::Text("x".repeat(length))),
                (Err(error), false) => {
                    assert!(error.reason == Reason::Value && error.message.contains("sql.value"), "{error:?}")
                }
                (other, _) => panic!("{length}: {:?}", other.map(|rows| rows.len())),
            }
        }
        // The connection is as good as before.
        assert_eq!(pool.status().opened, (1, 0, 0));
        let mut slow = Slow { rows: 0, room: None };
        let statement = Statement::new(many, pool.dialect());
        lease.run(&statement, &[], Lent(&mut slow)).await.unwrap();
        assert_eq!(slow.rows, 70);
    });
}

/// The time in which nobody takes rows (four seconds) is not that of the statement, for the server neither.
fn slow_takers_get_all_rows(source: impl Fn(Options) -> Source, long_rows: &str) {
    run(async {
        let pools = Pools::default();
        let options = Options { query_timeout: Duration::from_secs(3), ..Options::default() };
        let pool = pools.get("slow", source(options));
        let mut lease = pool.get().await.unwrap();
        let mut slow = Slow { rows: 0, room: None };
        // More than the buffers between hold, so that the server waits.
        let statement = Statement::new(long_rows, pool.dialect());
        lease.run(&statement, &[], Lent(&mut slow)).await.unwrap();
        assert_eq!(slow.rows, 70);
    });
}

/// Who takes a large result leaves its worker to others now and then, however fast the database is.
fn others_run_while_rows_are_taken(source: Source, many: &str) {
    run(async {
        let pools = Pools::default();
        let pool = pools.get("turns", source);
        let mut lease = pool.get().await.unwrap();
        let turns = Arc::new(AtomicUsize::new(0));
        let other = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move {
                loop {
                    turns.fetch_add(1, Relaxed);
                    tokio::task::yield_now().await;
                }
            }
        });
        // Rows in all, those since the other task ran, and the most of these.
        let (mut rows, mut alone, mut longest, mut last) = (0, 0, 0, 0);
        let take = |_: Row| {
            let now = turns.load(Relaxed);
            alone = if now == last { alone + 1 } else { 1 };
            (last, longest, rows) = (now, longest.max(alone), rows + 1);
            let began = Instant::now();
            while began.elapsed() < Duration::from_micros(200) {}
            Ok(true)
        };
        lease.run(&Statement::new(many, pool.dialect()), &[], take).await.unwrap();
        other.abort();
        // A slice is a millisecond: five such rows, and one more where it ends in the middle of one.
        assert!(rows == 70 && longest <= 6, "{longest} of {rows} rows in a row");
    });
}

const LONG_ROWS: &str =
    "with recursive n(a) as (select 1 union all select a + 1 from n where a < 70) select VALUE from n";

const MANY: &str =
    "with recursive n(a) as (select 1 union all select a + 1 from n where a < 70) select a from n";

#[test]
fn sqlite_bounds_values_and_waits_for_takers() {
    let source =
        |options| Source::new("jdbc:sqlite:file:values?mode=memory", "", "", options, false).unwrap();
    values_and_takers(source, "select replace(hex(zeroblob(LENGTH/2)), '0', 'x')", MANY);
    others_run_while_rows_are_taken(memory("turns"), MANY);
    slow_takers_get_all_rows(source, &LONG_ROWS.replace("VALUE", "hex(zeroblob(500000))"));
}

#[test]
fn a_database_in_memory_outlives_its_connections() {
    run(async {
        let pools = Pools::default();
        let pool = pools.get("memory", memory("outlives"));
        let mut lease = pool.get().await.unwrap();
        change(&mut lease, "create table t (a integer)", &[]).await.unwrap();
        lease.begin().await.unwrap();
        change(&mut lease, "insert into t values (1)", &[]).await.unwrap();
        let endless =
            "with recursive n(a) as (select 1 union all select a + 1 from n) select count(*) from n";
        let given_up = tokio::time::timeout(Duration::from_millis(100), all(&mut lease, endless, &[])).await;
        assert!(given_up.is_err());
        drop(lease);
        let mut lease = pools.get("other", memory("outlives")).get().await.unwrap();
        assert_eq!(all(&mut lease, "select count(*) from t", &[]).await.unwrap(), [[Value::Integer(0)]]);
    });
}

#[test]
fn a_file_that_cannot_be_opened_is_named() {
    run(async {
        let source =
            Source::new("jdbc:sqlite:/nowhere/at/all.db", "", "", Options::default(), false).unwrap();
        let error = Pools::default().get("file", source).get().await.err().unwrap();
        assert!(
            error.reason == Reason::Unavailable && error.message.contains("/nowhere/at/all.db"),
            "{error:?}"
        );
    });
}

/// Else the rollback of the flow would fail, and with it the sequence that answers its client.
#[test]
fn a_transaction_that_postgresql_ends_because_it_is_idle_is_over() {
    let Some(server) = postgres() else { return };
    run(async {
        let pool = Pools::default().get("idle", server.source("", Options::default()));
        let mut lease = pool.get().await.unwrap();
        change(&mut lease, "set idle_in_transaction_session_timeout = 50", &[]).await.unwrap();
        lease.begin().await.unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let error = change(&mut lease, "select 1", &[]).await.unwrap_err();
        assert_eq!((error.state.as_deref(), lease.in_transaction()), (Some("25P03"), false), "{error:?}");
        drop(lease);
        assert_eq!((pool.status().in_use, pool.status().idle), (0, 0));
    });
}

/// As after a failover: the name of the server leads to another one by now.
#[test]
fn a_connection_to_a_server_that_only_reads_is_not_used_again() {
    for (server, only_reads) in [
        (postgres(), "set default_transaction_read_only = on"),
        (mariadb(), "set session transaction read only"),
    ] {
        let Some(server) = server else { continue };
        run(async {
            let pool = Pools::default()
                .get("failover", server.source("", Options { most: 1, ..Options::default() }));
            change(&mut pool.get().await.unwrap(), "create table failover (k integer)", &[]).await.unwrap();
            let insert = "insert into failover values (1)";
            let mut lease = pool.get().await.unwrap();
            change(&mut lease, only_reads, &[]).await.unwrap();
            // So old is it before it is closed.
            tokio::time::sleep(Duration::from_millis(1100)).await;
            let error = change(&mut lease, insert, &[]).await.unwrap_err();
            assert_eq!(error.state.as_deref(), Some("25006"), "{error:?}");
            drop(lease);
            assert_eq!(pool.status().idle, 0);
            change(&mut pool.get().await.unwrap(), insert, &[]).await.unwrap();
        });
    }
}

/// What follows in a transaction that the database has taken back would be committed statement by statement, beyond any rollback.
#[test]
fn nothing_follows_in_a_transaction_that_the_database_took_back() {
    run(async {
        let pool = Pools::default().get("taken back", memory("taken-back"));
        let mut lease = pool.get().await.unwrap();
        let refuse = "create trigger refuse before insert on taken when new.k = 2 begin select raise(rollback, 'not two'); end";
        for text in ["create table taken (k integer)", refuse] {
            change(&mut lease, text, &[]).await.unwrap();
        }
        is_taken_back(lease, "taken", "insert into taken values (2)").await;
    });
}

/// Runs a statement that ends the transaction, and looks at what follows; the table is empty.
async fn is_taken_back(mut lease: Lease, table: &str, ends: &str) {
    let insert = |number: u8| format!("insert into {table} (k) values ({number})");
    for commits in [true, false] {
        if !lease.in_transaction() {
            lease.begin().await.unwrap();
            change(&mut lease, &insert(1), &[]).await.unwrap();
        }
        let error = change(&mut lease, ends, &[]).await.unwrap_err();
        assert!(error.ends_transaction && lease.in_transaction(), "{error:?}");
        let error = change(&mut lease, &insert(3), &[]).await.unwrap_err();
        assert!(error.message.starts_with("the database took the transaction back: "), "{error:?}");
        match commits {
            true => assert!(lease.commit().await.unwrap_err().message.contains("took the transaction back")),
            false => lease.roll_back().await.unwrap(),
        }
        let count = all(&mut lease, &format!("select count(*) from {table}"), &[]).await.unwrap();
        assert_eq!((count, lease.in_transaction()), (vec![vec![Value::Integer(0)]], false));
        if table != "taken" {
            return;
        }
    }
}

#[test]
fn nothing_follows_in_a_transaction_that_mariadb_took_back() {
    let Some(server) = mariadb() else { return };
    run(async {
        let pool = Pools::default().get("deadlock", server.source("", Options::default()));
        let (mut one, mut two) = (pool.get().await.unwrap(), pool.get().await.unwrap());
        for text in [
            "create table rows_ (k integer primary key, v integer) engine=innodb",
            "insert into rows_ values (1, 0), (2, 0)",
            "create table dead (k integer) engine=innodb",
        ] {
            change(&mut one, text, &[]).await.unwrap();
        }
        one.begin().await.unwrap();
        two.begin().await.unwrap();
        // The one that has changed less is the one that is taken back.
        for text in ["update rows_ set v = 1 where k = 2", "insert into rows_ values (3, 0), (4, 0), (5, 0)"]
        {
            change(&mut two, text, &[]).await.unwrap();
        }
        change(&mut one, "insert into dead (k) values (1)", &[]).await.unwrap();
        change(&mut one, "update rows_ set v = 1 where k = 1", &[]).await.unwrap();
        let other = async {
            change(&mut two, "update rows_ set v = 2 where k = 1", &[]).await.unwrap();
            two.commit().await.unwrap();
        };
        let (_, ()) = tokio::join!(is_taken_back(one, "dead", "update rows_ set v = 2 where k = 2"), other);
    });
}

/// The server would answer the commit by taking all back, without an error: nobody would know that the rows are lost.
#[test]
fn postgresql_commits_no_transaction_in_which_a_statement_failed() {
    let Some(server) = postgres() else { return };
    run(async {
        let pool =
            Pools::default().get("Commits", server.source("", Options { most: 1, ..Options::default() }));
        let mut lease = pool.get().await.unwrap();
        change(&mut lease, "create table commits (k integer primary key)", &[]).await.unwrap();
        let insert = "insert into commits values (1)";
        lease.begin().await.unwrap();
        change(&mut lease, insert, &[]).await.unwrap();
        change(&mut lease, insert, &[]).await.unwrap_err();
        let error = lease.commit().await.unwrap_err();
        assert_eq!((error.state.as_deref(), lease.in_transaction()), (Some("25P02"), false));
        // Back at a savepoint, it can be committed; and so can the next one.
        lease.begin().await.unwrap();
        for text in [insert, "savepoint s"] {
            change(&mut lease, text, &[]).await.unwrap();
        }
        change(&mut lease, insert, &[]).await.unwrap_err();
        change(&mut lease, "rollback to savepoint s", &[]).await.unwrap();
        lease.commit().await.unwrap();
        lease.begin().await.unwrap();
        change(&mut lease, "insert into commits values (2)", &[]).await.unwrap();
        lease.commit().await.unwrap();
        let rows = all(&mut lease, "select k from commits order by k", &[]).await.unwrap();
        assert_eq!(rows, [[Value::Integer(1)], [Value::Integer(2)]]);
    });
}

/// A column that compares by bytes is one of texts all the same; MariaDB's JSON is one.
#[test]
fn mariadb_has_texts_that_compare_by_bytes() {
    let Some(server) = mariadb() else { return };
    run(async {
        let pool = Pools::default().get("Texts", server.source("", Options::default()));
        let mut lease = pool.get().await.unwrap();
        let create = "create table texts (v varchar(9) collate utf8mb4_bin, t text collate utf8mb4_bin, a char(1) character set ascii collate ascii_bin, \
                      e enum('x') collate utf8mb4_bin, j json, b varbinary(9), l blob)";
        change(&mut lease, create, &[]).await.unwrap();
        change(&mut lease, "insert into texts values ('Ü', 'T', 'a', 'x', '{}', 'b', 'l')", &[])
            .await
            .unwrap();
        let rows = all(&mut lease, "select v, t, a, e, j, concat(v, t), b, l from texts", &[]).await.unwrap();
        let text = |text: &str| Value::Text(text.to_owned());
        let bytes = |text: &str| Value::Bytes(text.into());
        let texts = ["Ü", "T", "a", "x", "{}", "ÜT"].map(text);
        assert_eq!(rows, [[&texts[..], &["b", "l"].map(bytes)].concat()]);
    });
}

#[test]
fn postgresql_has_times_with_a_zone() {
    let Some(server) = postgres() else { return };
    run(async {
        let pool = Pools::default().get("Zones", server.source("", Options::default()));
        let mut lease = pool.get().await.unwrap();
        let select = "select timetz '23:11:12+02', timestamptz '1970-01-01 23:11:12+02', timetz '00:30:00-03:30', timestamptz '1970-01-01 00:30:00-03:30'";
        let rows = all(&mut lease, select, &[]).await.unwrap();
        let texts: Vec<String> = rows[0].iter().cloned().filter_map(Value::text).collect();
        for at in [0, 2] {
            assert!(texts[at + 1].contains(&format!(" {}.", texts[at])), "{texts:?}");
        }
        // The last day of the year 9999 is "for ever" in many tables.
        let select = "select extract(year from z)::int, z, array[z] from (select timestamptz '9999-12-31 09:00:00Z' as z) as t";
        let rows = all(&mut lease, select, &[]).await.unwrap();
        let texts: Vec<String> = rows[0].iter().cloned().filter_map(Value::text).collect();
        assert!(
            texts[0] == "9999"
                && texts[1].starts_with("9999-12-31 ")
                && texts[2].starts_with("{\"9999-12-31 "),
            "{texts:?}"
        );
        let error = all(&mut lease, "select date '12000-01-01'", &[]).await.unwrap_err();
        assert!(error.message.contains("no DATE that is known here"), "{error}");
    });
}
