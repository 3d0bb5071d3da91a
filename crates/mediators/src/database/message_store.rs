//! `JDBCMessageStore`: a message store in a table.

use super::data_source::{here, pool_at, pool_named};
use config::{Key, MessageStore, ParameterValue, ProcessorKind, StoreKind};
use flow::Compiler;
use std::sync::Arc;
use stores::{Absent, Store, Table};

/// Parameters that have a meaning.
const PARAMETERS: &[&str] = &[
    "store.jdbc.dsName",
    "store.jdbc.connection.url",
    "store.jdbc.username",
    "store.jdbc.password",
    "store.jdbc.table",
    "store.producer.guaranteed.delivery.enable",
    "store.failover.message.store.name",
];

/// Parameters that WSO2 needs, and why they have no effect here.
const NOT_NEEDED: &[(&str, &str)] = &[
    ("store.jdbc.driver", "the URL says which database it is"),
    ("store.jdbc.icClass", "data sources have names without JNDI"),
];

/// Makes the store; `None` after a recorded error.
pub fn message_store(store: &MessageStore, compiler: &mut Compiler<'_>) -> Option<Arc<dyn Store>> {
    for parameter in &store.parameters {
        compiler.check_parameter("a message store in a database", parameter, PARAMETERS, NOT_NEEDED);
    }
    let (name, url) = (text(store, "store.jdbc.dsName"), text(store, "store.jdbc.connection.url"));
    let consequence = "what goes into this store faults, and nothing comes out of it; the rest runs";
    let pool = here(compiler, consequence, |compiler| match (name, url) {
        // Before the URL, as in WSO2.
        (Some(name), _) => pool_named(&name, compiler),
        (None, Some(url)) => {
            let (user, password) = (text(store, "store.jdbc.username"), text(store, "store.jdbc.password"));
            pool_at(url, user, password, compiler)
        }
        (None, None) => {
            let message = format!("the message store `{}` names no database", store.name.value);
            let label = "expected the parameter `store.jdbc.dsName` or `store.jdbc.connection.url`";
            compiler.error("missing-element", message, store.span, label);
            None
        }
    })?;
    let pool = match pool {
        Ok(pool) => pool,
        Err(why) => return Some(Arc::new(Absent::new(&store.name.value, why))),
    };
    let table = text(store, "store.jdbc.table");
    let named = table.as_ref().map_or(Table::DEFAULT, |table| &table.value);
    let Some(made) = Table::new(&store.name.value, pool, named) else {
        let place = table.as_ref().map_or(store.span, |table| table.span);
        let message = format!("`{named}` is not the name of a table");
        let label = "expected letters, digits, `_`, `$` and `#`, and a point behind the schema";
        compiler.error("bad-value", message, place, label);
        return None;
    };
    check_shared(store, compiler);
    Some(Arc::new(made))
}

/// Warns of another store in the same table, where processors of both send what is in it: whose turn it is would decide who sends a message.
fn check_shared(store: &MessageStore, compiler: &mut Compiler<'_>) {
    let configuration = compiler.configuration;
    let is_sent = |store: &MessageStore| {
        configuration.message_processors.iter().any(|processor| {
            processor.kind != ProcessorKind::Sampling && processor.message_store.value == store.name.value
        })
    };
    let table = |store: &MessageStore| {
        let value = |name: &str| text(store, name).map(|key| key.value);
        let database = value("store.jdbc.dsName").or_else(|| value("store.jdbc.connection.url"));
        (database, value("store.jdbc.table").unwrap_or_else(|| Table::DEFAULT.to_owned()))
    };
    let mut before =
        configuration.message_stores.iter().take_while(|other| other.name.value != store.name.value);
    let shared = before.find(|other| {
        other.kind == StoreKind::Jdbc && table(other) == table(store) && is_sent(other) && is_sent(store)
    });
    if let Some(other) = shared {
        let (one, two) = (&other.name.value, &store.name.value);
        let message = format!(
            "the message stores `{one}` and `{two}` are the same table, and processors of both send what is in it"
        );
        compiler.warning(
            "conflict",
            message,
            store.name.span,
            "each message is sent by the one whose turn it is: let one processor send them",
        );
    }
}

/// The text of a parameter; blank counts as absent.
fn text(store: &MessageStore, name: &str) -> Option<Key> {
    let written = store.parameters.iter().rev().find(|parameter| parameter.name == name)?;
    match &written.value {
        ParameterValue::Text(key) if !key.value.trim().is_empty() => {
            Some(Key { value: key.value.trim().to_owned(), span: key.span })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use flow::testing::{self, Tested};
    use sql::{Parameter, Pool, Statement};
    use std::future::Future;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::time::Duration;
    use stores::Store;

    const XML: (&str, &str) = ("Content-Type", "application/xml");
    const CLASS: &str = "org.apache.synapse.message.store.impl.jdbc.JDBCMessageStore";

    fn parameters(all: &str) -> String {
        let all = all.split_whitespace().filter_map(|word| word.split_once('='));
        all.map(|(name, value)| format!("<parameter name='{name}'>{value}</parameter>")).collect()
    }

    /// The store `s` with these parameters, to which everything goes, beside `more`.
    fn tested(given: &str, more: &str) -> Tested {
        let text = format!(
            "<property name='p' value='1'/><property name='OUT_ONLY' value='true'/><store messageStore='s'/><!--top-->\
             <messageStore name='s' class='{CLASS}'>{}</messageStore>{more}",
            parameters(given)
        );
        testing::main(&crate::registry(testing::endpoints), &text)
    }

    /// The parameters of a database in memory of that name.
    fn database(name: &str) -> String {
        format!("store.jdbc.connection.url=jdbc:sqlite:file:{name}?mode=memory")
    }

    fn wait<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime
            .expect("a runtime starts")
            .block_on(async { tokio::time::timeout(Duration::from_secs(30), work).await })
            .expect("it ends")
    }

    /// The pool of the store.
    fn pool(tested: &Tested) -> Arc<Pool> {
        let pools = tested.bus.services().kept.get::<sql::Pools>().all();
        pools.into_iter().next().expect("there is a pool")
    }

    async fn change(pool: &Arc<Pool>, text: &str, parameters: &[Parameter]) -> u64 {
        let statement = Statement::new(text, pool.dialect());
        let mut lease = pool.get().await.expect("it is there");
        lease.run(&statement, parameters, |_| Ok(true)).await.expect("it runs").affected
    }

    const TABLE: &str = "CREATE TABLE jdbc_message_store (indexId INTEGER PRIMARY KEY AUTOINCREMENT, msg_id VARCHAR(200), message BLOB)";

    fn store(tested: &Tested) -> Arc<dyn Store> {
        tested.bus.plan().store("s").expect("there is a store")
    }

    #[test]
    fn mistakes_are_found_when_the_configuration_loads() {
        let good = database("mistakes");
        for (given, says) in [
            (good.as_str(), ""),
            (&format!("{good} store.jdbc.table=esb.messages_1"), ""),
            (&format!("{good} store.jdbc.driver=org.sqlite.JDBC"), "`store.jdbc.driver` has no effect"),
            (&format!("{good} store.jdbc.tabel=x"), "no parameter `store.jdbc.tabel`"),
            (&format!("{good} store.jdbc.table=a;drop"), "`a;drop` is not the name of a table"),
            (&format!("{good} store.jdbc.table=a..b"), "is not the name of a table"),
            ("", "names no database"),
            ("store.jdbc.dsName=none", "there is no data source `none`"),
            ("store.jdbc.connection.url=jdbc:oracle:thin:@h:1521/x", "Oracle"),
        ] {
            let tested = tested(given, "");
            match says {
                "" => assert!(tested.found.is_empty(), "{given}: {:?}", tested.found),
                says => assert!(tested.reports(says), "{given}: {:?}", tested.found),
            }
        }
    }

    #[test]
    fn what_waits_in_a_table_comes_out_in_order_and_as_it_was() {
        let tested = tested(&database("order"), "");
        let end = tested.run(&[XML], "<a/>");
        let detail = end.property("ERROR_DETAIL").unwrap_or_default();
        let made = detail.split_once("this makes the table: ").map(|(_, made)| made.to_owned());
        assert!(detail.contains("no such table"), "{detail}");
        wait(async {
            let pool = pool(&tested);
            change(&pool, &made.expect("the statement is in the error"), &[]).await;
        });
        for n in 0..3 {
            assert_eq!(tested.ask("POST", "/x", &[XML], &format!("<a n='{n}'/>")).status, 202);
        }
        let store = store(&tested);
        wait(async {
            assert_eq!(store.size().await, Ok(3));
            for n in 0..3 {
                let message = store.peek().await.expect("it answers").expect("it is there");
                assert_eq!(message.body, format!("<a n='{n}'/>"));
                assert_eq!(message.properties.get("p").map(ToString::to_string).as_deref(), Some("1"));
                assert_eq!(message.headers.get("Content-Type"), Some("application/xml"));
                assert_eq!(store.ack(&message.id).await, Ok(true));
                assert_eq!(store.ack(&message.id).await, Ok(false), "another process may have it");
            }
            assert!(store.peek().await.expect("it answers").is_none());
        });
    }

    #[test]
    fn a_row_that_is_no_message_is_named_and_stays() {
        let tested = tested(&database("java"), "");
        let store = store(&tested);
        wait(async {
            let pool = pool(&tested);
            change(&pool, TABLE, &[]).await;
            let row =
                [Parameter::Text("urn:uuid:1".to_owned()), Parameter::Bytes(b"\xac\xed\x00\x05sr".to_vec())];
            change(&pool, "INSERT INTO jdbc_message_store (msg_id, message) VALUES (?, ?)", &row).await;
            let error = store.peek().await.expect_err("it cannot be read").to_string();
            assert!(error.contains("indexId 1 in jdbc_message_store: it is an object of Java"), "{error}");
            assert_eq!(store.size().await, Ok(1));
            assert_eq!(store.clear().await, Ok(1));
        });
    }

    #[test]
    fn what_could_not_be_read_back_is_not_taken() {
        let tested = tested(&database("large"), "");
        wait(async { change(&pool(&tested), TABLE, &[]).await });
        let large = format!("<a>{}</a>", "x".repeat(33 << 20));
        assert_eq!(tested.ask("POST", "/x", &[XML], &large).status, 413);
        assert_eq!(tested.ask("POST", "/x", &[XML], "<a/>").status, 202);
        assert_eq!(wait(store(&tested).size()), Ok(1));
    }

    #[test]
    fn two_stores_in_one_table_are_warned_of() {
        let given = database("shared");
        let processor = |name: &str, class: &str, store: &str| {
            format!(
                "<messageProcessor name='{name}' class='a.{class}' messageStore='{store}' targetEndpoint='e'>\
                 <parameter name='sequence'>q</parameter></messageProcessor>"
            )
        };
        let other = |table: &str| {
            format!(
                "<messageStore name='t' class='{CLASS}'>{}{}</messageStore><endpoint name='e'><address uri='http://127.0.0.1:1/'/></endpoint><sequence name='q'/>",
                parameters(&given),
                parameters(table)
            )
        };
        const FORWARDING: &str = "MessageForwardingProcessor";
        for (more, warned) in [
            (other("") + &processor("p", FORWARDING, "s") + &processor("q", FORWARDING, "t"), true),
            (
                other("store.jdbc.table=jdbc_message_store")
                    + &processor("p", FORWARDING, "s")
                    + &processor("q", FORWARDING, "t"),
                true,
            ),
            (
                other("store.jdbc.table=another")
                    + &processor("p", FORWARDING, "s")
                    + &processor("q", FORWARDING, "t"),
                false,
            ),
            (other("") + &processor("p", FORWARDING, "s"), false),
            (other("") + &processor("p", "SamplingProcessor", "s") + &processor("q", FORWARDING, "t"), false),
        ] {
            let tested = tested(&given, &more);
            let is_warned = tested.reports("conflict: the message stores `s` and `t` are the same table");
            assert_eq!(is_warned, warned, "{more}: {:?}", tested.found);
        }
    }

    #[test]
    fn without_its_database_a_store_faults_and_the_rest_runs() {
        let given = "store.jdbc.dsName=none store.producer.guaranteed.delivery.enable=true store.failover.message.store.name=t";
        let failing = tested("store.jdbc.dsName=none", "");
        let end = failing.run(&[XML], "<a/>");
        assert_eq!(end.fault().as_deref(), Some("0: Failed to store message in the message store s"));
        assert!(end.property("ERROR_DETAIL").is_some_and(|detail| detail.contains("no data source `none`")));
        let tested = tested(given, "<messageStore name='t'/>");
        assert_eq!(tested.ask("POST", "/", &[XML], "<a/>").status, 202);
        assert_eq!(wait(tested.bus.plan().store("t").expect("t").size()), Ok(1));
    }

    /// Takes requests until the test ends, and counts them.
    fn counting() -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback can be bound");
        let (address, count) = (listener.local_addr().expect("an address"), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&count);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 4096]);
                counted.fetch_add(1, Relaxed);
                let _ = stream
                    .write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            }
        });
        (format!("http://{address}/"), count)
    }

    fn processor(uri: &str, given: &str) -> String {
        format!(
            "<endpoint name='e'><address uri='{uri}'/></endpoint><messageProcessor name='p' class='a.MessageForwardingProcessor' \
             messageStore='s' targetEndpoint='e'>{}</messageProcessor>",
            parameters(&format!(
                "interval=1 client.retry.interval=1 store.connection.retry.interval=1 {given}"
            ))
        )
    }

    /// Lets the processors work until `done`.
    async fn process(bus: &Arc<flow::Bus>, done: impl AsyncFn() -> bool) {
        let until = async {
            while !done().await {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        flow::processor::run(Arc::clone(bus), until).await;
    }

    #[test]
    fn a_delivered_message_that_cannot_be_taken_out_is_not_delivered_again() {
        let (uri, count) = counting();
        let tested = tested(&database("done"), &processor(&uri, ""));
        assert!(tested.found.is_empty(), "{:?}", tested.found);
        let pool = pool(&tested);
        wait(async {
            change(&pool, TABLE, &[]).await;
            change(&pool, "CREATE TABLE held (n INTEGER)", &[]).await;
            change(&pool, "INSERT INTO held VALUES (0)", &[]).await;
            let trigger = "CREATE TRIGGER refuse BEFORE DELETE ON jdbc_message_store WHEN (SELECT max(n) FROM held) < 5 \
                           BEGIN SELECT RAISE(FAIL, 'not now'); END";
            change(&pool, trigger, &[]).await;
        });
        for _ in 0..2 {
            assert_eq!(tested.ask("POST", "/", &[XML], "<a/>").status, 202);
        }
        let (store, bus) = (store(&tested), Arc::new(tested.bus));
        wait(async {
            // Some time passes in which the message cannot be taken out.
            let turns = AtomicUsize::new(0);
            process(&bus, async || {
                assert_eq!(store.size().await, Ok(2));
                count.load(Relaxed) == 1 && turns.fetch_add(1, Relaxed) == 20
            })
            .await;
            assert_eq!(count.load(Relaxed), 1);
        });
        wait(async {
            // Other processors of the store know what is done.
            change(&pool, "INSERT INTO held VALUES (5)", &[]).await;
            process(&bus, async || store.size().await == Ok(0)).await;
            assert_eq!(count.load(Relaxed), 2);
        });
    }

    #[test]
    fn a_processor_gives_its_store_so_many_attempts() {
        let (uri, count) = counting();
        let tested = tested(&database("attempts"), &processor(&uri, "max.store.connection.attempts=3"));
        let (pool, store) = (pool(&tested), store(&tested));
        wait(async {
            change(&pool, TABLE, &[]).await;
        });
        assert_eq!(tested.ask("POST", "/", &[XML], "<a/>").status, 202);
        let bus = Arc::new(tested.bus);
        wait(async {
            change(&pool, "ALTER TABLE jdbc_message_store RENAME TO aside", &[]).await;
            process(&bus, async || !bus.plan().processors()[0].activation.is_on()).await;
            assert_eq!(count.load(Relaxed), 0);
            change(&pool, "ALTER TABLE aside RENAME TO jdbc_message_store", &[]).await;
            bus.plan().processors()[0].activation.decide(true);
            process(&bus, async || store.size().await == Ok(0)).await;
            assert_eq!(count.load(Relaxed), 1);
        });
    }

    #[test]
    fn values_of_the_table_are_bytes() {
        let tested = tested(&database("bytes"), "");
        let store = store(&tested);
        wait(async {
            let pool = pool(&tested);
            change(
                &pool,
                "CREATE TABLE jdbc_message_store (indexId INTEGER, msg_id TEXT, message TEXT)",
                &[],
            )
            .await;
            change(&pool, "INSERT INTO jdbc_message_store VALUES (7, 'a', 'b')", &[]).await;
            let error = store.peek().await.expect_err("it cannot be read").to_string();
            assert!(
                error.contains("indexId 7 in jdbc_message_store: it is not a column of bytes"),
                "{error}"
            );
        });
    }
}
