//! SQL Server, of which there is none here: against a small server of the tests that speaks its protocol (`tds`), so that what is asked, what is made
//! of each type and what is done about each failure are seen.

#![allow(clippy::unwrap_used)]

mod statements;
mod tds;

use busbar_sql::{Kind, Options, Parameter, Pool, Pools, Reason, Source, State, Statement, Value};
use statements::{all, run};
use std::sync::Arc;
use std::time::Duration;
use tds::{BIGINT, INT, NVARCHAR, NVARCHAR_MAX, Reply, Tds, bytes, columns, done, error, nvarchar, row};

fn source(server: &Tds, more: &str, password: &str, options: Options) -> Source {
    let url = format!("jdbc:sqlserver://127.0.0.1:{};databaseName=shop;encrypt=false{more}", server.port);
    Source::new(&url, "bus", password, options, false).unwrap()
}

fn pool(server: &Tds, options: Options) -> Arc<Pool> {
    Pools::default().get("Shop", source(server, "", "secret", options))
}

/// What a server answers to a statement that changes rows and is asked how many.
fn changed(rows: i32, key: Option<i64>) -> Vec<u8> {
    [
        done(0x11, rows as u64),
        columns(&[("busbar_changed", INT), ("busbar_key", BIGINT)]),
        row(&[bytes(&rows.to_le_bytes()), key.map_or(vec![0], |key| bytes(&key.to_le_bytes()))]),
        done(0x10, 1),
    ]
    .concat()
}

#[test]
fn parameters_go_by_their_types_and_columns_come_by_theirs() {
    let server = Tds::start(|_| {
        let types: [(&str, &[u8]); 12] = [
            ("i", INT),
            ("v", NVARCHAR),
            ("b", &[0x68, 1]),
            ("n", &[0x6C, 17, 20, 2]),
            ("m", &[0x6E, 8]),
            ("d", &[0x6D, 8]),
            ("day", &[0x28]),
            ("tm", &[0x29, 7]),
            ("ts", &[0x2A, 7]),
            ("old", &[0x6F, 8]),
            ("id", &[0x24, 16]),
            ("bin", &[0xA5, 0x40, 0x1F]),
        ];
        let day = 739_942_u32.to_le_bytes();
        let noon = 432_005_000_000_u64.to_le_bytes();
        let filled = row(&[
            bytes(&(-5_i32).to_le_bytes()),
            nvarchar("é 漢 😀"),
            bytes(&[1]),
            bytes(&[&[0][..], &1250_u64.to_le_bytes()].concat()),
            bytes(&[0_i32.to_le_bytes(), 125_000_u32.to_le_bytes()].concat()),
            bytes(&1e10_f64.to_le_bytes()),
            bytes(&day[..3]),
            bytes(&noon[..5]),
            bytes(&[&noon[..5], &day[..3]].concat()),
            bytes(&[46_347_i32.to_le_bytes(), 300_u32.to_le_bytes()].concat()),
            bytes(&[
                0xFF, 0x19, 0x96, 0x6F, 0x86, 0x8B, 0xD0, 0x11, 0xB4, 0x2D, 0, 0xC0, 0x4F, 0xC9, 0x64, 0xFF,
            ]),
            vec![3, 0, 0, 1, 2],
        ]);
        let nothing: Vec<Vec<u8>> = types
            .iter()
            .map(
                |(_, type_info)| if matches!(type_info[0], 0xE7 | 0xA5) { vec![0xFF, 0xFF] } else { vec![0] },
            )
            .collect();
        Reply::Tokens([columns(&types), filled, row(&nothing), done(0x10, 2)].concat())
    });
    run(async {
        let pool = pool(&server, Options::default());
        let mut lease = pool.get().await.unwrap();
        let parse = |name: &str, text: &str| Kind::named(name).unwrap().parse(Some(text)).unwrap();
        let given = [
            parse("INTEGER", "-5"),
            parse("VARCHAR", "x'; drop table t; --"),
            parse("DECIMAL", "-12.50"),
            parse("DATE", "2026-11-23"),
            parse("TIMESTAMP", "2026-11-23 12:00:00.5"),
            parse("TIME", "12:00:00"),
            parse("BIT", "true"),
            parse("BLOB", "AAEC"),
            parse("DOUBLE", "1"),
            Parameter::Null(Kind::Text),
            Parameter::Null(Kind::Decimal),
        ];
        let found =
            all(&mut lease, "select * from t where a in (?,?,?,?,?,?,?,?,?,?,?)", &given).await.unwrap();
        let text = |text: &str| Value::Text(text.into());
        let wanted = vec![
            Value::Integer(-5),
            text("é 漢 😀"),
            Value::Boolean(true),
            Value::Decimal("-12.50".into()),
            Value::Decimal("12.5000".into()),
            Value::Double(1e10),
            Value::Date("2026-11-23".into()),
            Value::Time("12:00:00".into()),
            Value::Timestamp("2026-11-23 12:00:00.5".into()),
            Value::Timestamp("2026-11-23 00:00:01.0".into()),
            text("6F9619FF-8B86-11D0-B42D-00C04FC964FF"),
            Value::Bytes(vec![0, 1, 2]),
        ];
        assert_eq!(found, [wanted, vec![Value::Null; 12]]);
        // What came is a statement with its parameters beside it.
        let seen = server.seen.lock().unwrap().last().unwrap().clone();
        let parts: Vec<&str> = seen.split(" | ").collect();
        assert_eq!(parts[0], "select * from t where a in (@P1,@P2,@P3,@P4,@P5,@P6,@P7,@P8,@P9,@P10,@P11)");
        let types = "@P1 int,@P2 nvarchar(4000),@P3 numeric(4,2),@P4 date,@P5 datetime2,@P6 time,@P7 bit,@P8 varbinary(8000),@P9 float(53),\
             @P10 nvarchar(4000),@P11 numeric";
        assert_eq!(parts[1], types);
        assert_eq!((parts[2], parts[3]), ("26:fbffffff", "x'; drop table t; --"));
        assert!(
            parts[5].ends_with("664a0b") && parts[8].ends_with(":01") && parts[9] == "a5:000102",
            "{parts:?}"
        );
        assert_eq!(
            *server.logins.lock().unwrap(),
            [["bus".to_owned(), "shop".to_owned(), "busbar".to_owned()]]
        );
    });
}

#[test]
fn what_changes_rows_says_how_many_and_which_key() {
    let server = Tds::start(|text| match text {
        text if text.starts_with("insert into t values (@P1)\n;SELECT @@ROWCOUNT") => {
            Reply::Tokens(changed(1, Some(42)))
        }
        text if text.starts_with("update") => Reply::Tokens(changed(3, None)),
        text if text.starts_with("insert into k") => {
            let broken = error(2627, 14, "Violation of PRIMARY KEY constraint 'PK_k'.");
            Reply::Tokens([broken, done(2, 0)].concat())
        }
        // Of two results the first one counts.
        text if text.starts_with("EXEC dbo.p @P1") => Reply::Tokens(
            [
                columns(&[("a", INT)]),
                row(&[bytes(&7_i32.to_le_bytes())]),
                done(0x11, 1),
                columns(&[("b", INT)]),
                row(&[bytes(&8_i32.to_le_bytes())]),
                done(0x10, 1),
            ]
            .concat(),
        ),
        _ => Reply::Tokens(done(0, 0)),
    });
    run(async {
        let pool = pool(&server, Options::default());
        let mut lease = pool.get().await.unwrap();
        let dialect = pool.dialect();
        let one = [Parameter::Integer(1)];
        let insert = Statement::new("insert into t values (?);", dialect);
        let did = lease.run(&insert, &one, |_| Ok(true)).await.unwrap();
        assert_eq!((did.affected, did.generated), (1, Some(42)));
        let update = Statement::new("update t set a = 1", dialect);
        assert_eq!(lease.run(&update, &[], |_| Ok(true)).await.unwrap().affected, 3);
        let refused = all(&mut lease, "insert into k values (?)", &one).await.unwrap_err();
        assert_eq!((refused.reason, refused.number), (Reason::Refused, Some(2627)));
        assert!(refused.detail().starts_with("error 2627, Violation"), "{}", refused.detail());
        // The connection is as good as before.
        assert_eq!(all(&mut lease, "{call dbo.p(?)}", &one).await.unwrap(), [[Value::Integer(7)]]);
        lease.begin().await.unwrap();
        lease.run(&update, &[], |_| Ok(true)).await.unwrap();
        lease.commit().await.unwrap();
        lease.begin().await.unwrap();
        lease.roll_back().await.unwrap();
        drop(lease);
        let seen = server.seen.lock().unwrap().clone();
        let of_transactions: Vec<&str> = seen
            .iter()
            .map(String::as_str)
            .filter(|statement| {
                statement.starts_with("BEGIN")
                    || statement.starts_with("COMMIT")
                    || statement.starts_with("ROLL")
            })
            .collect();
        assert_eq!(of_transactions, ["BEGIN TRANSACTION", "COMMIT", "BEGIN TRANSACTION", "ROLLBACK"]);
        assert_eq!((pool.status().opened.0, pool.status().idle), (1, 1));
    });
}

#[test]
fn failures_have_their_reasons_and_the_next_statement_works() {
    let number = |value: i32| row(&[bytes(&value.to_le_bytes())]);
    let server = Tds::start(move |text| match text {
        "cut" => Reply::Cut([columns(&[("a", INT)]), number(1), number(2)].concat()),
        "slow" => Reply::Late(Duration::from_secs(6)),
        "fatal" => Reply::Tokens(
            [
                error(596, 21, "Cannot continue the execution because the session is in the kill state."),
                done(2, 0),
            ]
            .concat(),
        ),
        // The length of the value is not known, and its parts do not end.
        "endless" => Reply::Endless(
            [columns(&[("a", NVARCHAR_MAX)]), row(&[(u64::MAX - 1).to_le_bytes().to_vec()])].concat(),
        ),
        "long" => Reply::Tokens(
            [columns(&[("a", NVARCHAR)]), row(&[nvarchar(&"x".repeat(2000))]), done(0x10, 1)].concat(),
        ),
        "many" => Reply::Tokens(
            [columns(&[("a", INT)]), (0..20_000).flat_map(number).collect(), done(0x10, 20_000)].concat(),
        ),
        _ => Reply::Tokens([columns(&[("a", INT)]), number(1), done(0x10, 1)].concat()),
    });
    run(async {
        let options = Options { query_timeout: Duration::from_secs(2), longest: 1000, ..Options::default() };
        let patient = Options { query_timeout: Duration::from_secs(60), ..options.clone() };
        let endless =
            all(&mut pool(&server, patient).get().await.unwrap(), "endless", &[]).await.unwrap_err();
        assert_eq!(endless.reason, Reason::Interrupted);
        assert!(endless.detail().contains("more for one row than sql.value allows"), "{}", endless.detail());
        let pool = pool(&server, options.clone());
        for (text, reason, says) in [
            ("cut", Reason::Interrupted, "the connection broke"),
            ("slow", Reason::Interrupted, "did not answer within 2 s"),
            ("fatal", Reason::Interrupted, "kill state"),
            ("long", Reason::Value, "column a has a value of 2000 bytes, and sql.value allows 1000"),
        ] {
            let mut lease = pool.get().await.unwrap();
            let failed = all(&mut lease, text, &[]).await.unwrap_err();
            assert_eq!(failed.reason, reason, "{text}: {failed}");
            assert!(failed.detail().contains(says), "{text}: {}", failed.detail());
            drop(lease);
            let mut lease = pool.get().await.unwrap();
            assert_eq!(all(&mut lease, "select 1", &[]).await.unwrap(), [[Value::Integer(1)]], "{text}");
        }
        let mut lease = pool.get().await.unwrap();
        assert_eq!(all(&mut lease, "many", &[]).await.unwrap().len(), 20_000);
        // More than 38 digits is no number of SQL Server.
        let long = Kind::Decimal.parse(Some(&"9".repeat(39))).unwrap();
        assert_eq!(all(&mut lease, "select ?", &[long]).await.unwrap_err().reason, Reason::Value);
        // A statement may have a shorter time of its own.
        let statement = Statement::new("slow", pool.dialect()).within(Some(Duration::from_millis(50)));
        let failed = lease.run(&statement, &[], |_| Ok(true)).await.unwrap_err();
        assert!(failed.message.contains("within 0.05 s"), "{failed}");

        // All of it over TLS: to a server that is trusted, and to one that is not asked who it is.
        for more in [
            format!(";encrypt=true;sslrootcert={}", server.certificate.display()),
            ";encrypt=true;trustServerCertificate=true".into(),
        ] {
            let pool = Pools::default().get("Shop", source(&server, &more, "secret", options.clone()));
            let mut lease = pool.get().await.unwrap();
            assert_eq!(all(&mut lease, "many", &[]).await.unwrap().len(), 20_000, "{more}");
        }

        // Who may not log in, a server that nobody knows, and one that is not there.
        let elsewhere =
            Tds { port: 1, seen: Arc::default(), logins: Arc::default(), certificate: "/nowhere".into() };
        for (source, number, says) in [
            (source(&server, "", "wrong", options.clone()), Some(18456), "Login failed"),
            (source(&server, ";encrypt=true", "secret", options.clone()), None, "certificate"),
            (source(&elsewhere, "", "secret", options.clone()), None, "no connection can be made"),
        ] {
            let pool = Pools::default().get("Shop", source);
            let failed = pool.get().await.err().unwrap();
            assert_eq!((failed.reason, failed.number), (Reason::Unavailable, number), "{failed}");
            assert!(failed.message.contains(says), "{failed}");
            assert_eq!(pool.status().state, State::Down);
        }
    });
}
