use flow::testing::{self, Tested};
use message::{Body, BodyError, BodyStream, Payload};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task;
use std::time::Duration;

const XML: [(&str, &str); 1] = [("Content-Type", "application/xml")];

fn tested(mediators: &str) -> Tested {
    testing::main(&crate::registry(testing::endpoints), mediators)
}

/// A pool in memory of its own for a test.
fn pool(name: &str, more: &str) -> String {
    format!(
        "<connection><pool><driver>d</driver><url>jdbc:sqlite:file:{name}?mode=memory</url><user/><password/>{more}</pool></connection>"
    )
}

fn statement(sql: &str, more: &str) -> String {
    format!("<statement><sql><![CDATA[{sql}]]></sql>{more}</statement>")
}

#[test]
fn what_is_wrong_is_found_when_it_loads() {
    let pool_element = pool("checked", "");
    let whole = statement("select ?", "<parameter value='1' type='INTEGER'/><result name='a' column='1'/>");
    for (name, inside, says) in [
        ("dblookup", format!("{pool_element}{whole}"), ""),
        ("dbreport", format!("{pool_element}{}", statement("a", "")), ""),
        ("dbreport", format!("{pool_element}{whole}"), "`result` cannot stand inside of `statement`"),
        ("dblookup", whole.clone(), "needs a `connection`"),
        (
            "dblookup",
            format!("<connection><pool><driver>a</driver></pool></connection>{whole}"),
            "needs a `dsName`",
        ),
        ("dblookup", pool_element.clone(), "needs a `statement`"),
        ("dblookup", format!("{pool_element}<statement/>"), "needs an `sql`"),
        (
            "dblookup",
            format!("{pool_element}{}", statement("select ?", "<parameter value='1' type='INT'/>")),
            "needs a `type`",
        ),
        (
            "dblookup",
            format!("{pool_element}{}", statement("select ?", "<parameter value='x' type='INTEGER'/>")),
            "`x` is not of the type INTEGER",
        ),
        (
            "dblookup",
            format!("{pool_element}{}", statement("select ?", "<parameter type='BIT'/>")),
            "needs a `value`",
        ),
        (
            "dblookup",
            format!("{pool_element}{}", statement("select ?", "<parameter expression='//[' type='BIT'/>")),
            "not a valid expression",
        ),
        (
            "dblookup",
            format!("{pool_element}{}", statement("select '?'", "<parameter value='1' type='BIT'/>")),
            "0 question marks",
        ),
        ("dblookup", format!("{pool_element}{}", statement("a", "<result name='a'/>")), "a `column`"),
        (
            "dblookup",
            format!("{pool_element}{}", statement("a", "<result name='a' column='0'/>")),
            "a `column` from 1",
        ),
        (
            "dblookup",
            format!("{}{whole}", pool("p", "<property name='maxactiv' value='1'/>")),
            "no option `maxactiv`",
        ),
        (
            "dblookup",
            format!("{}{whole}", pool("p", "<property name='maxactive' value='x'/>")),
            "`maxactive` cannot be `x`",
        ),
        (
            "dblookup",
            format!("<connection><pool><driver>d</driver><url key='none'/></pool></connection>{whole}"),
            "there is no entry `none`",
        ),
        (
            "dblookup",
            format!(
                "<connection><pool><driver>d</driver><url>jdbc:h2:mem:a</url></pool></connection>{whole}"
            ),
            "there is no driver for H2",
        ),
        (
            "dblookup",
            format!(
                "<connection><pool><driver>d</driver><url>jdbc:mysql://h/d</url><password>$secret{{none}}</password></pool></connection>{whole}"
            ),
            "the secret `none` is not available",
        ),
    ] {
        let tested = tested(&format!("<{name}>{inside}</{name}>"));
        match says {
            "" => assert!(tested.found.is_empty(), "{:?}", tested.found),
            says => assert!(tested.reports(says), "{inside}: {:?}", tested.found),
        }
    }
    let h2 = format!(
        "<dblookup><connection><pool><driver>d</driver><url>jdbc:h2:mem:a</url></pool></connection>{whole}</dblookup>"
    );
    let registry = crate::registry(testing::endpoints);
    let tested = testing::main_with(&registry, &h2, |services| services.settings.sql_embedded = true);
    assert!(tested.found.is_empty(), "{:?}", tested.found);
}

/// Statements as samples of WSO2 have them for databases inside of a Java machine.
#[test]
fn samples_of_h2_and_derby_run_on_sqlite() {
    for url in ["jdbc:h2:mem:company;DB_CLOSE_DELAY=-1", "jdbc:derby:memory:company;create=true"] {
        let pool = format!(
            "<connection><pool><driver>d</driver><url>{url}</url><user>wso2</user><password>wso2</password></pool></connection>"
        );
        let create =
            "CREATE TABLE IF NOT EXISTS company(name varchar(10) primary key, id varchar(10), price double)";
        let set = "<parameter expression='//price' type='DOUBLE'/><parameter expression='//symbol' type='VARCHAR'/>";
        let look = "<parameter expression='//symbol' type='VARCHAR'/><result name='id' column='id'/><result name='price' column='3'/>";
        let text = format!(
            "<dbreport>{pool}{}{}{}</dbreport><dbreport>{pool}{}</dbreport><dblookup>{pool}{}</dblookup>",
            statement(create, ""),
            statement("delete from company", ""),
            statement("insert into company values ('IBM','c1',0.0), ('SUN','c2',0.0)", ""),
            statement("update company set price=? where name =?", set),
            statement("select * from company where name =?", look),
        );
        let registry = crate::registry(testing::endpoints);
        let tested = testing::main_with(&registry, &text, |services| services.settings.sql_embedded = true);
        assert!(tested.found.is_empty(), "{url}: {:?}", tested.found);
        let end = tested.run(&XML, "<order><symbol>SUN</symbol><price>155.5</price></order>");
        let found = ["id", "price", "DBREPORT_MODIFIED_RAW_COUNT"].map(|name| end.property(name));
        assert_eq!(end.fault(), None, "{url}");
        assert_eq!(found.each_ref().map(Option::as_deref), [Some("c2"), Some("155.5"), Some("1")], "{url}");
    }
}

/// Whatever stands in an option or an attribute, loading ends with findings or a step, and messages with an end.
#[test]
fn attributes_may_be_anything() {
    let options = [
        "autocommit='true'",
        "isolation='TRANSACTION_SERIALIZABLE'",
        "initialsize='1'",
        "maxactive='2'",
        "maxidle='1'",
        "maxopenstatements='5'",
        "maxwait='100'",
        "minidle='0'",
        "poolstatements='true'",
        "testonborrow='true'",
        "testonreturn='false'",
        "testwhileidle='false'",
        "validationquery='select 1'",
        "queryTimeout='5'",
        "maxAge='1'",
        "minEvictableIdleTimeMillis='1'",
        "validationInterval='1'",
        "defaultReadOnly='false'",
        "initSQL='select 1'",
    ];
    let huge = "9".repeat(40_000);
    let values = [
        "",
        " ",
        "NaN",
        "-1",
        "0",
        "1e400",
        "9223372036854775807",
        "9223372036854775808",
        "true",
        "'; drop",
        &huge,
    ];
    let mut ran = 0;
    for option in options {
        let (name, _) = option.split_once('=').unwrap();
        for value in values {
            let value = value.replace('\'', "&apos;");
            let more = format!("<property name='{name}' value='{value}'/>");
            let look = statement("select 1", "<result name='a' column='1'/>");
            let text = format!("<dblookup>{}{look}</dblookup>", pool("anything", &more));
            let end = tested(&text).run(&XML, "<a/>");
            ran += usize::from(end.property("a").as_deref() == Some("1"));
        }
    }
    assert!(ran > options.len(), "{ran}");
    for (kind, value, column) in [
        ("INTEGER", "", "1"),
        ("INTEGER", "NaN", "1"),
        ("DOUBLE", "NaN", "1"),
        ("REAL", "1e400", "1"),
        ("DECIMAL", &huge, "1"),
        ("TIMESTAMP", "9999-99-99 99:99:99", "1"),
        ("DATE", "é026-11-23", "1"),
        ("TIME", "é", "1"),
        ("VARCHAR", &huge, "1"),
        ("VARCHAR", "a", "18446744073709551615"),
        ("VARCHAR", "a", "18446744073709551616"),
        ("VARCHAR", "a", "-1"),
        ("VARCHAR", "a", ""),
        ("VARCHAR", "a", "0"),
        ("", "a", "1"),
        ("VARCHAR ", "a", "1"),
        (&huge, "a", "1"),
    ] {
        let parameter =
            format!("<parameter value='{value}' type='{kind}'/><result name='r' column='{column}'/>");
        let expression =
            format!("<parameter expression='//a' type='{kind}'/><result name='r' column='{column}'/>");
        for inside in [parameter, expression] {
            let text =
                format!("<dblookup>{}{}</dblookup>", pool("anything", ""), statement("select ?", &inside));
            let end = tested(&text).run(&XML, &format!("<a>{value}</a>"));
            drop((end.fault(), end.property("r")));
        }
    }
}

#[test]
fn a_statement_has_the_time_that_settings_give_it() {
    let endless = "with recursive n(a) as (select 1 union all select a + 1 from n) select count(*) from n";
    let text = format!("<dblookup>{}{}</dblookup>", pool("endless", ""), statement(endless, ""));
    let registry = crate::registry(testing::endpoints);
    let tested = testing::main_with(&registry, &text, |services| {
        services.settings.sql_timeout = Duration::from_millis(100);
    });
    let end = tested.run(&XML, "<a/>");
    assert_eq!(
        end.property("ERROR_DETAIL").as_deref().map(|detail| detail.contains("within 0.1 s")),
        Some(true)
    );
}

/// `${env:NAME}` is of other programs: WSO2 takes it as it is.
#[test]
fn a_value_that_looks_filled_in_and_is_not_is_said() {
    let whole = statement("select 1 as a", "<result name='a' column='a'/>");
    for (user, wanted) in [("${env:DB_USER}", 1), ("sa", 0), ("a${b}", 0)] {
        let text = format!(
            "<dblookup><connection><pool><driver>d</driver><url>jdbc:sqlite::memory:</url><user>{user}</user><password>p</password></pool></connection>{whole}</dblookup>"
        );
        let tested = testing::main(&crate::registry(testing::endpoints), &text);
        assert_eq!(tested.found.len(), wanted, "{user}: {:?}", tested.found);
        assert_eq!(tested.reports("unresolved-value: the value is taken as it is"), wanted == 1);
        assert_eq!(tested.run(&XML, "<a/>").property("a").as_deref(), Some("1"), "{user}");
    }
}

/// A server looks for the database when a message comes: what is not there costs that step a fault, and nothing else.
#[test]
fn a_database_that_is_not_here_is_a_fault_of_the_step() {
    let whole = statement("select 1", "<result name='a' column='1'/>");
    for (pool, says) in [
        ("<dsName>none</dsName>", "unknown-data-source: there is no data source `none`"),
        (
            "<driver>d</driver><url>jdbc:oracle:thin:@h:1521:x</url>",
            "unsupported-database: there is no driver for Oracle",
        ),
        (
            "<driver>d</driver><url>${configs.no_such_url}</url>",
            "unresolved-value: `no_such_url` is set neither as environment variable",
        ),
        (
            "<driver>d</driver><url>$env{NO_SUCH_URL}</url>",
            "unresolved-value: the environment variable `NO_SUCH_URL` is not set",
        ),
        (
            "<driver>d</driver><url>jdbc:sqlite::memory:</url><password>$secret{none}</password>",
            "unknown-secret: the secret `none` is not available",
        ),
    ] {
        for check_only in [false, true] {
            let text = format!(
                "<property name='before' value='ran'/><dblookup><connection><pool>{pool}</pool></connection>{whole}</dblookup>"
            );
            let registry = crate::registry(testing::endpoints);
            let tested = testing::main_with(&registry, &text, |services| {
                services.settings.check_only = check_only;
            });
            assert!(tested.reports(says), "{pool}: {:?}", tested.found);
            assert_eq!(tested.found.len(), 1, "{pool}: {:?}", tested.found);
            if check_only && pool.contains("$secret") {
                continue;
            }
            let end = tested.run(&XML, "<a/>");
            let fault = end.fault().expect("a fault");
            assert!(fault.contains("there is no database for this step"), "{pool}: {fault}");
            assert_eq!(end.property("before").as_deref(), Some("ran"), "{pool}");
        }
    }
    // What is wrong anywhere is an error all the same.
    let text = "<dblookup><connection><pool><dsName>none</dsName></pool></connection></dblookup>";
    let tested = tested(text);
    assert!(tested.reports("needs a `statement`"), "{:?}", tested.found);
    assert!(!tested.bus.plan().faulty.is_empty());
}

#[test]
fn several_statements_run_in_order_on_what_was_there_before() {
    let pool_element = pool("order", "");
    let text = format!(
        "<property name='kept' value='old'/><dbreport>{pool_element}{}{}</dbreport><dblookup>{pool_element}{}{}</dblookup>",
        statement("create table t (a integer, b varchar(9))", ""),
        statement(
            "insert into t values (?, ?), (2, 'x')",
            "<parameter value='1' type='INTEGER'/><parameter value='' type='VARCHAR'/>"
        ),
        statement(
            "select a, b from t order by a",
            "<result name='a' column='A'/><result name='kept' column='2'/>"
        ),
        statement(
            "select max(a) + ? from t",
            "<parameter expression='$ctx:a' type='BIGINT'/><result name='next' column='1'/>"
        ),
    );
    let end = tested(&text).run(&XML, "<a/>");
    assert_eq!(end.fault(), None);
    assert_eq!(end.property("DBREPORT_MODIFIED_RAW_COUNT").as_deref(), Some("2"));
    assert_eq!(end.property("kept").as_deref(), Some("old"));
    assert_eq!(end.property("next").as_deref(), Some("3"));
}

#[test]
fn without_autocommit_a_step_counts_as_a_whole() {
    let pool_element = pool("whole", "<property name='autocommit' value='false'/>");
    let text = format!(
        "<dbreport>{pool_element}{}{}</dbreport><dbreport>{pool_element}{}{}</dbreport><!--top--><sequence name='fault'><dblookup>{pool_element}{}</dblookup></sequence>",
        statement("create table t (a integer)", ""),
        statement("insert into t values (1)", ""),
        statement("insert into t values (2)", ""),
        statement("insert into nowhere values (3)", ""),
        statement("select count(*) from t", "<result name='count' column='1'/>"),
    );
    let end = tested(&text).run(&XML, "<a/>");
    assert!(end.fault().is_some_and(|fault| fault.contains("insert into nowhere")), "{:?}", end.fault());
    assert_eq!(end.property("count").as_deref(), Some("1"));
}

#[test]
fn a_transaction_is_over_one_data_source_and_ends_with_its_message() {
    let (pool_element, other) = (pool("one", ""), pool("two", ""));
    let insert = statement("insert into t values (1)", "");
    let create = format!(
        "<dbreport>{pool_element}{}</dbreport>",
        statement("create table if not exists t (a integer)", "")
    );
    let count = format!(
        "<dblookup>{pool_element}{}</dblookup>",
        statement("select count(*) from t", "<result name='count' column='1'/>")
    );
    for (steps, fault, rows) in [
        ("<transaction action='new'/>IN<transaction action='commit'/>", None, "1"),
        (
            "<transaction action='use-existing-or-new'/>IN<transaction action='fault-if-no-tx'/><transaction action='rollback'/>",
            None,
            "0",
        ),
        (
            "<transaction action='new'/>IN<transaction action='use-existing-or-new'/>IN<transaction action='commit'/>",
            None,
            "2",
        ),
        ("<transaction action='new'/><transaction action='commit'/>", None, "0"),
        (
            "<transaction action='new'/><transaction action='new'/>",
            Some("there is a transaction already"),
            "",
        ),
        ("<transaction action='fault-if-no-tx'/>", Some("there is no transaction"), ""),
        ("<transaction action='rollback'/>", Some("there is no transaction"), ""),
        ("<transaction action='suspend'/>", Some("a transaction has no action `suspend`"), ""),
        (
            "<transaction action='new'/>IN<dbreport>OTHER</dbreport>",
            Some("a transaction is over one data source"),
            "",
        ),
        ("<dbreport useTransaction='true'>OWN</dbreport>", Some("there is no transaction"), ""),
    ] {
        let steps = steps.replace("IN", "<dbreport>OWN</dbreport>");
        let steps = steps
            .replace("OWN", &format!("{pool_element}{insert}"))
            .replace("OTHER", &format!("{other}{insert}"));
        let end = tested(&format!("{create}{steps}{count}")).run(&XML, "<a/>");
        match fault {
            None => {
                assert_eq!((end.fault(), end.property("count").as_deref()), (None, Some(rows)), "{steps}")
            }
            Some(says) => {
                assert!(end.fault().is_some_and(|fault| fault.contains(says)), "{:?}", end.fault())
            }
        }
    }
    // One that nobody ends is taken back when its message is gone.
    let begins = format!(
        "{create}<filter xpath='//begin'><then><transaction action='new'/><dbreport>{pool_element}{insert}</dbreport></then></filter>{count}"
    );
    let tested = tested(&begins);
    let end = tested.run(&XML, "<begin/>");
    assert_eq!(end.property("count").as_deref(), Some("1"));
    drop(end);
    assert_eq!(tested.run(&XML, "<look/>").property("count").as_deref(), Some("0"));
}

/// A copy of the message that comes when another one has ended the transaction has none: what it does counts.
#[test]
fn a_copy_behind_the_end_of_a_transaction_has_none() {
    let pool_element = pool("copies", "");
    let report = |text: &str| format!("<dbreport>{pool_element}{}</dbreport>", statement(text, ""));
    let insert = report("insert into t values (1)");
    let flow = format!(
        "{}<filter xpath='//begin'><then><transaction action='new'/>{insert}<clone sequential='true'>\
         <target><sequence><transaction action='commit'/></sequence></target><target><sequence>{insert}</sequence></target></clone></then></filter>\
         <dblookup>{pool_element}{}</dblookup>",
        report("create table if not exists t (id integer)"),
        statement("select count(*) from t", "<result name='count' column='1'/>"),
    );
    let tested = tested(&flow);
    drop(tested.run(&XML, "<begin/>"));
    assert_eq!(tested.run(&XML, "<look/>").property("count").as_deref(), Some("2"));
}

#[test]
fn a_fault_sequence_rolls_back_what_could_not_be_committed() {
    let pool_element = pool("refused", "");
    let text = format!(
        "<dbreport>{pool_element}{}{}</dbreport><transaction action='new'/><dbreport>{pool_element}{}</dbreport><transaction action='commit'/>\
         <!--top--><sequence name='fault'><transaction action='rollback'/><dblookup>{pool_element}{}</dblookup></sequence>",
        statement("pragma foreign_keys = on", "") + &statement("create table p (id integer primary key)", ""),
        statement("create table c (id integer references p(id) deferrable initially deferred)", ""),
        statement("insert into c values (7)", ""),
        statement("select count(*) from c", "<result name='count' column='1'/>"),
    );
    let end = tested(&text).run(&XML, "<a/>");
    assert!(end.fault().is_some_and(|fault| fault.contains("cannot be committed")), "{:?}", end.fault());
    assert_eq!(end.property("count").as_deref(), Some("0"));
}

#[test]
fn an_element_without_a_text_is_null() {
    let pool_element = pool("empty", "");
    let look = |expression: &str, kind: &str| {
        let parameter =
            format!("<parameter expression='{expression}' type='{kind}'/><result name='is' column='1'/>");
        let look = statement("select coalesce(?, 'NULL')", &parameter);
        tested(&format!("<dblookup>{pool_element}{look}</dblookup>"))
    };
    for (body, kind, is) in [
        ("<m><b/></m>", "INTEGER", "NULL"),
        ("<m><b></b></m>", "VARCHAR", "NULL"),
        ("<m><b> <!--none--> </b></m>", "DATE", "NULL"),
        (
            "<m><b xsi:nil='true' xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance'/></m>",
            "INTEGER",
            "NULL",
        ),
        ("<m/>", "INTEGER", "NULL"),
        ("<m><b>5</b></m>", "INTEGER", "5"),
        ("<m><b><c/></b></m>", "VARCHAR", "<b><c/></b>"),
        ("<m><b id='1'/></m>", "VARCHAR", "<b id=\"1\"/>"),
        ("<m><b>&lt;b/></b></m>", "VARCHAR", "<b/>"),
    ] {
        let end = look("//b", kind).run(&XML, body);
        assert_eq!((end.fault(), end.property("is").as_deref()), (None, Some(is)), "{body} {kind}");
    }
    assert!(look("//b", "INTEGER").run(&XML, "<m><b><c/></b></m>").fault().is_some());
}

/// A request that is on its way.
struct Arriving {
    here: Vec<u8>,
    /// What comes, one by one; after that nothing does.
    comes: Vec<Result<bool, BodyError>>,
    done: bool,
    gone: Arc<AtomicBool>,
}

impl BodyStream for Arriving {
    fn buffered(&self) -> &[u8] {
        &self.here
    }

    fn poll_more(&mut self, _: &mut task::Context<'_>) -> task::Poll<Result<bool, BodyError>> {
        let Some(next) = self.comes.pop() else { return task::Poll::Pending };
        match next {
            Ok(true) => self.here.extend([b'x'; 40_000]),
            _ => self.done = true,
        }
        task::Poll::Ready(next)
    }

    fn consume(&mut self, n: usize) {
        self.here.drain(..n);
    }

    fn is_complete(&self) -> bool {
        self.done
    }

    fn exact_len(&self) -> Option<u64> {
        None
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.gone.store(true, Relaxed);
    }
}

#[test]
fn a_request_is_received_while_its_flow_waits_so_that_its_client_is_watched() {
    let tested = tested("<drop/>");
    let wait = |comes: Vec<Result<bool, BodyError>>| {
        let mut context = tested.context(&XML, "");
        let gone = Arc::new(AtomicBool::new(false));
        let arriving = Arriving { here: Vec::new(), comes, done: false, gone: Arc::clone(&gone) };
        let reading = context.payload.reading();
        context.payload = Payload::received(Body::Stream(Box::new(arriving)), reading);
        let work = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok(gone.load(Relaxed))
        };
        let ended = testing::block_on(super::wait(&mut context, work));
        (ended.map_err(|fault| fault.status), context.payload.bytes().map_or(0, |bytes| bytes.len()))
    };
    // It is let go of when it is here, and the connection is watched again.
    assert_eq!(wait(vec![Ok(false), Ok(true)]), (Ok(true), 40_000));
    // Not yet, and one that is large.
    assert_eq!(wait(vec![Ok(true)]), (Ok(false), 0));
    assert_eq!(wait(vec![Ok(false), Ok(true), Ok(true)]), (Ok(false), 0));
    assert_eq!(wait(vec![Err(BodyError::Truncated), Ok(true)]), (Err(400), 0));
}

#[test]
fn a_reload_keeps_the_connections_of_what_stays() {
    let text = |sql: &str| {
        let look = format!(
            "<dblookup>{}{}</dblookup>",
            pool("reloaded", ""),
            statement(sql, "<result name='n' column='1'/>")
        );
        format!(
            "<definitions xmlns='{}'><sequence name='main'>{look}</sequence></definitions>",
            config::SYNAPSE
        )
    };
    let registry = crate::registry(testing::endpoints);
    let tested = testing::configuration(&registry, &text("select 1"));
    let pools = || tested.bus.services().kept.get::<sql::Pools>().all();
    assert_eq!(tested.run(&XML, "<a/>").property("n").as_deref(), Some("1"));
    let before = pools()[0].status();
    testing::reload(&tested.bus, &registry, &text("select 2"));
    assert_eq!(tested.run(&XML, "<a/>").property("n").as_deref(), Some("2"));
    let after = pools()[0].status();
    assert_eq!((pools().len(), before.opened.0, after.opened.0, after.statements.0), (1, 1, 1, 2));
}
