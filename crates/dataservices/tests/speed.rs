//! What a `dblookup` by key costs beside the driver alone: the same statement on PostgreSQL, for 1, 8 and 64 clients that take turns in one process.
//!
//! `cargo test --release -p busbar-dataservices --test speed -- --ignored --nocapture`

#![allow(clippy::unwrap_used)]

mod support;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Executor, Row};
use std::time::{Duration, Instant};
use support::{Server, source, tested};

/// So long is one measurement.
const LONG: Duration = Duration::from_millis(1500);
const ROUNDS: usize = 3;
const CONNECTIONS: usize = 16;

/// Microseconds for each of what `clients` do again and again at the same time.
async fn cost<W: AsyncFn(usize)>(clients: usize, work: W) -> f64 {
    let end = Instant::now() + LONG;
    let begin = Instant::now();
    let one = async |client: usize| {
        let mut count = 0_u64;
        while Instant::now() < end {
            work(client).await;
            count += 1;
        }
        count
    };
    let counts = futures_util::future::join_all((0..clients).map(one)).await;
    begin.elapsed().as_secs_f64() * 1e6 / counts.iter().sum::<u64>() as f64
}

#[test]
#[ignore = "measures"]
fn a_lookup_costs_little_more_than_the_driver() {
    let Some(server) = Server::start("postgresql") else { return };
    let lookup = "<dblookup><connection><pool><dsName>Shop</dsName></pool></connection><statement><sql>SELECT name, price FROM items WHERE id = ?</sql>\
         <parameter value='500' type='INTEGER'/><result name='name' column='name'/><result name='price' column='price'/></statement></dblookup>";
    let url = format!("jdbc:postgresql://127.0.0.1:{}/bus", server.port);
    let proxy = |name: &str, inside: &str| {
        format!("<proxy name='{name}'><target><inSequence>{inside}<respond/></inSequence></target></proxy>")
    };
    let configuration = source(&url).replace("<property name='", "<").replace("</property>", "|");
    // The properties of a config as elements of a data source.
    let settings: String = configuration
        .split('|')
        .filter_map(|one| {
            let (name, value) = one.strip_prefix('<')?.split_once("'>")?;
            let value = if name == "maxActive" { "16" } else { value };
            Some(format!("<{name}>{value}</{name}>"))
        })
        .collect();
    let more = format!(
        "<datasource><name>Shop</name><definition type='RDBMS'><configuration>{settings}</configuration></definition></datasource>{}{}",
        proxy("With", lookup),
        proxy("Without", "")
    );
    let one = "<query id='one' useConfig='db'><sql>select 1 a</sql><result element='R'><element name='a' column='a'/></result></query>\
         <operation name='one'><call-query href='one'/></operation>";
    let tested = tested("", &source(&url), one, &more);
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(server.port)
            .username("bus")
            .password("secret")
            .database("bus")
            .disable_statement_logging();
        let mut pool: Vec<PgConnection> = Vec::new();
        for _ in 0..CONNECTIONS {
            pool.push(options.connect().await.unwrap());
        }
        pool[0]
            .execute("create table items (id integer primary key, name varchar(40), price numeric(10,2))")
            .await
            .unwrap();
        pool[0]
            .execute("insert into items select n, 'item ' || n, n * 1.25 from generate_series(1, 1000) n")
            .await
            .unwrap();
        // Who has no connection waits for one, as in a pool.
        let (free, taken) = async_channel(pool);
        let bare = async |_: usize| {
            let mut connection = taken.lock().await.recv().await.unwrap();
            let row = sqlx::query("SELECT name, price::text FROM items WHERE id = $1")
                .bind(500_i32)
                .fetch_one(&mut connection)
                .await
                .unwrap();
            let (name, price): (String, String) = (row.get(0), row.get(1));
            assert!(name == "item 500" && price == "625.00");
            free.send(connection).unwrap();
        };
        let flow = async |name: &str| {
            let (status, ..) = tested.answer("GET", &format!("/services/{name}"), &[], b"").await;
            assert!(status < 300, "{status}");
        };
        println!("clients, driver µs, dblookup µs (with its flow less the same flow without it), ratio");
        for clients in [1, 8, 64] {
            let (mut driver, mut with, mut without) = (f64::MAX, f64::MAX, f64::MAX);
            for _ in 0..ROUNDS {
                driver = driver.min(cost(clients, bare).await);
                with = with.min(cost(clients, async |_: usize| flow("With").await).await);
                without = without.min(cost(clients, async |_: usize| flow("Without").await).await);
            }
            let busbar = with - without;
            println!("{clients}, {driver:.1}, {busbar:.1}, {:.2}", busbar / driver);
        }
    });
}

type Sender = tokio::sync::mpsc::UnboundedSender<PgConnection>;
type Receiver = tokio::sync::Mutex<tokio::sync::mpsc::UnboundedReceiver<PgConnection>>;

fn async_channel(all: Vec<PgConnection>) -> (Sender, Receiver) {
    let (free, taken) = tokio::sync::mpsc::unbounded_channel();
    for one in all {
        free.send(one).unwrap();
    }
    (free, tokio::sync::Mutex::new(taken))
}
