//! Data services on the three databases: SQLite, and PostgreSQL and MariaDB where they are installed (`tests/services/install`). Where one is not,
//! the test says so in a line; with `CI=true` it fails.

#![allow(clippy::unwrap_used)]

mod support;

use flow::testing::Tested;
use std::collections::HashMap;
use support::{Server, ask, call, get, get_json, json, memory, operation, query, soap, source, tested};

/// What every database must do.
fn promises(properties: &str, dialect: &str) {
    let key = match dialect {
        "postgresql" => "id serial primary key",
        "mysql" => "id integer primary key auto_increment",
        _ => "id integer primary key autoincrement",
    };
    // Which connection it is.
    let session = match dialect {
        "postgresql" => "select pg_backend_pid() id",
        "mysql" => "select connection_id() id",
        _ => "select 1 id",
    };
    let row = "<result element='Items' rowName='Item'><attribute name='id' column='ID' xsdType='xs:integer'/>\
         <element name='name' column='name' xsdType='xs:string'/><element name='price' column='price' xsdType='xs:decimal'/>\
         <element name='note' column='note' xsdType='xs:string'/></result>";
    let parameters = "<param name='name' sqlType='STRING'><validateLength minimum='1' maximum='40'/></param>\
         <param name='price' sqlType='DECIMAL' defaultValue='1.50'/><param name='note' sqlType='STRING' defaultValue='#{NULL}'/>";
    let nested = "<result element='Orders' rowName='Order'><element name='id' column='id' xsdType='integer'/>\
         <call-query href='byId'><with-param name='id' column='item'/></call-query></result>";
    let types = "select cast('2026-11-23' as date) d, 1.5e0 f, 7 i, NULL n, 'a&<b' t";
    let inside = [
        query("create", &format!("create table items ({key}, name varchar(40), price decimal(10,2), note varchar(40))"), ""),
        query("createOrders", "create table orders (id integer, item integer)", ""),
        query("order", "insert into orders values (:id, :item)", "<param name='id' sqlType='INTEGER'/><param name='item' sqlType='INTEGER'/>"),
        query("orders", "select id, item from orders order by id", nested),
        query("add", "insert into items (name, price, note) values (:name, :price, :note)", parameters),
        query("all", "select id, name, price, note from items order by id", row),
        query("byId", "select id, name, price, note from items where id = ?", &format!("<param name='id' sqlType='INTEGER'/>{row}")),
        query(
            "some",
            "select id, name, price, note from items where id in (:ids) and name like :like order by id",
            &format!("<param name='ids' sqlType='INTEGER' paramType='ARRAY'/><param name='like' sqlType='STRING' defaultValue='%'/>{row}"),
        ),
        query("sorted", "select id, name, price, note from items order by :by", &format!("<param name='by' sqlType='QUERY_STRING'/>{row}")),
        query("types", types, "<result element='Types'><element name='d' column='d'/><element name='f' column='f' xsdType='double'/>\
            <element name='i' column='i' xsdType='integer'/><element name='n' column='n'/><element name='t' column='t'/></result>"),
        query("many", "with recursive n(a) as (select 1 union all select a + 1 from n where a < 900) select a from n", 
            "<result element='N' rowName='R'><element name='a' column='a' xsdType='integer'/></result>"),
            "<query id='keyed' useConfig='db' returnGeneratedKeys='true' keyColumns='id'><sql>insert into items (name, price) values (:name, 2)</sql>\
             <param name='name' sqlType='STRING'/><result element='GeneratedKeys' rowName='Entry'><element name='ID' column='ID' xsdType='integer'/></result></query>\
             <query id='remove' useConfig='db' returnUpdatedRowCount='true'><sql>delete from items where name = :name</sql><param name='name' sqlType='STRING'/>\
             <result element='UpdatedRowCount' rowName=''><element name='Value' column='1' xsdType='integer'/></result></query>"
        .to_owned(),
        query("wrong", "select * from nowhere", row),
        query("session", session, "<result element='Session' rowName=''><element name='id' column='id' xsdType='integer'/></result>"),
        query("template", "select id, name from items order by id", "<result outputType='json'>{\"items\":{\"item\":[{\"id\":\"$id(type:integer)\",\"of\":{\"name\":\"$name\"}}]}}</result>"),
        operation("create", &[]),
        operation("session", &[]),
        operation("createOrders", &[]),
        operation("order", &["id", "item"]),
        operation("orders", &[]),
        operation("add", &["name", "price", "note"]),
        operation("all", &[]),
        operation("byId", &["id"]),
        operation("some", &["ids", "like"]),
        operation("sorted", &["by"]),
        operation("types", &[]),
        operation("many", &[]),
        operation("keyed", &["name"]),
        operation("remove", &["name"]),
        operation("wrong", &[]),
        operation("template", &[]),
        format!("<operation name='done' returnRequestStatus='true'>{}</operation>", call("order", &["id", "item"])),
        format!("<resource path='items' method='GET'>{}</resource>", call("all", &[])),
        format!("<resource path='items/{{id}}' method='GET'>{}</resource>", call("byId", &["id"])),
        format!("<resource path='items' method='POST'>{}</resource>", call("add", &["name", "price", "note"])),
    ]
    .concat();
    let tested = tested("enableBatchRequests='true' enableBoxcarring='true'", properties, &inside, "");
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    for name in ["create", "createOrders"] {
        let made = get(&tested, name);
        assert_eq!(made.status, 202, "{made:?}");
    }

    // Nothing yet: an empty answer.
    assert_eq!(get(&tested, "items").body, "<Items xmlns=\"http://ws.wso2.org/dataservice\"></Items>");
    assert_eq!(get_json(&tested, "items").body, r#"{"Items":{"Item":[]}}"#);

    // XML, JSON, forms and queries add; what a request leaves out has its default.
    let added = soap(
        &tested,
        "<d:add xmlns:d='http://ws.wso2.org/dataservice'><d:name>bolt</d:name><d:price>1.25</d:price></d:add>",
    );
    assert_eq!((added.status, added.body.as_str()), (202, ""), "{added:?}");
    assert_eq!(
        json(&tested, "POST", "items", r#"{"_postitems":{"name":"n'ut; --","note":null}}"#).status,
        202
    );
    assert_eq!(json(&tested, "POST", "items", r#"{"name":"é","price":3}"#).status, 202);
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    assert_eq!(ask(&tested, "POST", "/services/Shop/add", &form, "name=a+b&note=x%26y").status, 202);
    let item = |id: u32, name: &str, price: &str, note: &str| {
        let nil = " xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:nil=\"true\"/>";
        let note = if note.is_empty() { format!("<note{nil}") } else { format!("<note>{note}</note>") };
        format!("<Item id=\"{id}\"><name>{name}</name><price>{price}</price>{note}</Item>")
    };
    let around = |inside: &str| format!("<Items xmlns=\"http://ws.wso2.org/dataservice\">{inside}</Items>");
    // SQLite has no decimals.
    let half = if dialect == "sqlite" { "1.5" } else { "1.50" };
    let three = if dialect == "sqlite" { "3" } else { "3.00" };
    let whole = [
        item(1, "bolt", "1.25", ""),
        item(2, "n'ut; --", half, ""),
        item(3, "é", three, ""),
        item(4, "a b", half, "x&amp;y"),
    ];
    assert_eq!(get(&tested, "items").body, around(&whole.concat()));
    assert_eq!(get(&tested, "items/2").body, around(&whole[1]));
    assert_eq!(get(&tested, "byId?id=4").body, around(&whole[3]));
    assert_eq!(
        get_json(&tested, "items/4").body,
        format!(r#"{{"Items":{{"Item":[{{"@id":4,"name":"a b","price":{half},"note":"x&y"}}]}}}}"#)
    );
    let response = soap(&tested, "<byId><id>3</id></byId>");
    assert!(
        response.status == 200
            && response.body.contains(&around(&whole[2]))
            && response.body.contains("Envelope"),
        "{response:?}"
    );
    assert!(
        response.headers.get("Content-Type").is_some_and(|value| value.starts_with("text/xml")),
        "{response:?}"
    );

    // Arrays, and texts that are part of a statement.
    let some = soap(&tested, "<some><ids>1</ids><ids>4</ids><ids>9</ids></some>");
    assert!(some.body.contains(&around(&[whole[0].as_str(), &whole[3]].concat())), "{some:?}");
    assert_eq!(get(&tested, "some?ids=3").body, around(&whole[2]));
    assert_eq!(get(&tested, "some?ids=1&ids=2&like=b%25").body, around(&whole[0]));
    // More values than any of them takes: a fault, and the next request works.
    let huge = format!(r#"{{"some":{{"ids":[{}]}}}}"#, vec!["3"; 70_000].join(","));
    let refused = json(&tested, "POST", "some", &huge);
    assert!(refused.status == 500 && refused.body.contains("DATABASE_ERROR"), "{}", refused.status);
    assert_eq!(get(&tested, "some?ids=3").body, around(&whole[2]));
    let sorted: String = whole.iter().rev().map(String::as_str).collect();
    assert_eq!(get(&tested, "sorted?by=id%20DESC").body, around(&sorted));

    // What looks like SQL does nothing, wherever it is.
    for (path, status) in [
        ("items/1%20or%201=1", 400),
        ("byId?id=1;drop%20table%20items", 400),
        ("some?ids=1)%20or%20(1=1", 400),
        ("some?ids=1&like='%20or%20'1'='1", 200),
        ("sorted?by=id;%20drop%20table%20items", 400),
        ("sorted?by=(select%20name%20from%20items)", 400),
        ("sorted?by=id--", 400),
    ] {
        let response = get(&tested, path);
        assert_eq!(response.status, status, "{path}: {response:?}");
        assert!(status == 400 || response.body == around(""), "{path}: {response:?}");
    }
    assert_eq!(get(&tested, "items").body, around(&whole.concat()));

    // Faults have the codes and the fields of WSO2.
    let missing = soap(&tested, "<byId/>");
    for says in [
        "INCOMPATIBLE_PARAMETERS_ERROR",
        "<current_request_name>byId<",
        "<data_service_name>Shop<",
        "name:id",
    ] {
        assert!(missing.status == 500 && missing.body.contains(says), "{says}: {missing:?}");
    }
    let invalid = json(&tested, "POST", "items", r#"{"name":""}"#);
    assert!(invalid.status == 400 && invalid.body.contains("VALIDATION_ERROR"), "{invalid:?}");
    let wrong = get(&tested, "wrong");
    assert!(wrong.status == 500 && wrong.body.contains("<ds_code>DATABASE_ERROR</ds_code>"), "{wrong:?}");
    assert!(wrong.body.contains("nowhere") && wrong.body.contains("<nested_exception>"), "{wrong:?}");
    let unknown = get(&tested, "nothing/at/all");
    assert_eq!(unknown.status, 404, "{unknown:?}");

    // Types, keys, counts, templates.
    let types = get_json(&tested, "types");
    assert!(
        types.body.contains(r#""f":1.5"#) && types.body.contains(r#""i":7,"n":null,"t":"a&<b""#),
        "{types:?}"
    );
    assert!(types.body.contains("2026-11-23") || dialect == "sqlite", "{types:?}");
    let types = get(&tested, "types");
    assert!(types.body.contains("<t>a&amp;&lt;b</t></Types>"), "{types:?}");
    let keyed = get(&tested, "keyed?name=key");
    assert_eq!(
        keyed.body,
        "<GeneratedKeys xmlns=\"http://ws.wso2.org/dataservice\"><Entry><ID>5</ID></Entry></GeneratedKeys>"
    );
    let removed = get(&tested, "remove?name=key");
    assert_eq!(
        removed.body,
        "<UpdatedRowCount xmlns=\"http://ws.wso2.org/dataservice\"><Value>1</Value></UpdatedRowCount>"
    );
    let template = get_json(&tested, "template");
    assert!(
        template.body.starts_with(r#"{"items":{"item":[{"id":1,"of":{"name":"bolt"}},{"id":2,"#),
        "{template:?}"
    );

    // Batches and boxes count as a whole; a resource has batches as an operation has.
    let batch =
        r#"{"_postitems_batch_req":{"_postitems":[{"name":"b1","price":4},{"name":"b2","price":"x"}]}}"#;
    let refused = json(&tested, "POST", "items_batch_req", batch);
    assert!(refused.status == 400 && refused.body.contains("parameter price"), "{refused:?}");
    assert_eq!(get(&tested, "items").body, around(&whole.concat()));
    let batch = batch.replace("\"x\"", "5");
    assert_eq!(json(&tested, "POST", "items_batch_req", &batch).status, 202);
    let xml = "<_postitems_batch_req><_postitems><name>b3</name></_postitems></_postitems_batch_req>";
    let posted =
        ask(&tested, "POST", "/services/Shop/items_batch_req", &[("Content-Type", "application/xml")], xml);
    assert_eq!(posted.status, 202, "{posted:?}");
    let all = get(&tested, "items").body;
    assert!(["b1", "b2", "b3"].iter().all(|name| all.contains(&format!("<name>{name}</name>"))), "{all}");
    for name in ["b1", "b2", "b3"] {
        assert_eq!(get(&tested, &format!("remove?name={name}")).status, 200);
    }
    let batch = r#"{"order_batch_req":{"order":[{"id":1,"item":4},{"id":2,"item":1}]}}"#;
    assert_eq!(json(&tested, "POST", "order_batch_req", batch).status, 202);
    let batch = "<order_batch_req><order><id>3</id><item>2</item></order><order><id>4</id><item>x</item></order></order_batch_req>";
    assert_eq!(soap(&tested, batch).status, 500);
    let boxed = soap(
        &tested,
        "<request_box><done><id>5</id><item>2</item></done><byId><id>1</id></byId></request_box>",
    );
    assert!(
        boxed.status == 200
            && boxed.body.contains("<DATA_SERVICE_REQUEST_BOX_RESPONSE")
            && !boxed.body.contains("SUCCESSFUL")
            && boxed.body.contains("<Item id=\"1\">"),
        "{boxed:?}"
    );
    let session = get(&tested, "session").body;
    let boxed = soap(&tested, "<request_box><order><id>6</id><item>2</item></order><wrong/></request_box>");
    assert_eq!(boxed.status, 500);
    assert_eq!(get(&tested, "session").body, session, "the connection of a failed box stays in use");
    // In JSON an operation that comes several times is an array. Nothing in a box is passed over.
    let boxed = r#"{"request_box":{"done":[{"id":7,"item":2},{"id":8,"item":2}],"orders":null}}"#;
    let boxed = json(&tested, "POST", "request_box", boxed);
    assert!(boxed.status == 200 && boxed.body.contains(r#"{"id":8,"#), "{boxed:?}");
    for wrong in [r#"[{"id":9,"item":1},2]"#, r#""9""#, r#"[[{"id":9,"item":1}]]"#] {
        let refused =
            json(&tested, "POST", "request_box", &format!(r#"{{"request_box":{{"done":{wrong}}}}}"#));
        assert!(refused.status == 400 && refused.body.contains("`done`"), "{wrong}: {refused:?}");
    }
    let several = json(&tested, "POST", "items", r#"{"_postitems":[{"name":"b1"},{"name":"b2"}]}"#);
    assert!(several.status == 400 && several.body.contains("a batch has several"), "{several:?}");
    let orders = get(&tested, "orders");
    let order = |id: u32, item: &str| format!("<Order><id>{id}</id><Items>{item}</Items></Order>");
    let wanted = [
        order(1, &whole[3]),
        order(2, &whole[0]),
        order(5, &whole[1]),
        order(7, &whole[1]),
        order(8, &whole[1]),
    ]
    .concat();
    assert_eq!(orders.body, format!("<Orders xmlns=\"http://ws.wso2.org/dataservice\">{wanted}</Orders>"));
    let orders = get_json(&tested, "orders");
    assert!(
        orders.body.starts_with(r#"{"Orders":{"Order":[{"id":1,"Items":{"Item":[{"@id":4,"#),
        "{orders:?}"
    );

    // More than fits at once comes as a stream.
    let many = get(&tested, "many");
    let rows: String = (1..=900).map(|a| format!("<R><a>{a}</a></R>")).collect();
    assert_eq!(many.body, format!("<N xmlns=\"http://ws.wso2.org/dataservice\">{rows}</N>"));
    let pools = tested.bus.services().kept.get::<sql::Pools>().all();
    assert_eq!(pools.iter().map(|pool| pool.status().in_use).sum::<usize>(), 0);
}

/// `dblookup`, `dbreport` and `transaction` over a database: each type of JDBC there and back, what is no value of it, and what looks like SQL.
fn flows(properties: &str, dialect: &str) {
    let (double, stamp) = match dialect {
        "postgresql" => ("double precision", "timestamp"),
        "mysql" => ("double", "datetime(3)"),
        _ => ("double", "timestamp"),
    };
    let sqlite = dialect == "sqlite";
    // The type, its column, a value, what it is when it comes back, whether texts are such values.
    let types = [
        ("CHAR", "char(3)", "abc", "abc"),
        ("VARCHAR", "varchar(40)", "it's; --", "it's; --"),
        ("LONGVARCHAR", "varchar(400)", "${x} \\ \"q\"", "${x} \\ \"q\""),
        ("NUMERIC", "numeric(12,2)", "12.50", if sqlite { "12.5" } else { "12.50" }),
        ("DECIMAL", "decimal(12,2)", "-0.05", "-0.05"),
        ("BIT", "boolean", "true", if sqlite { "1" } else { "true" }),
        ("TINYINT", "smallint", "-7", "-7"),
        ("SMALLINT", "smallint", "32767", "32767"),
        ("INTEGER", "integer", "-2147483648", "-2147483648"),
        ("BIGINT", "bigint", "9223372036854775807", "9223372036854775807"),
        ("REAL", "real", "1.5", "1.5"),
        ("FLOAT", double, "-0.1", "-0.1"),
        ("DOUBLE", double, "1e10", "1.0E10"),
        ("DATE", "date", "2026-11-23", "2026-11-23"),
        ("TIME", "time", "10:15:30", "10:15:30"),
        ("TIMESTAMP", stamp, "2026-11-23 10:15:30.5", "2026-11-23 10:15:30.5"),
    ];
    let settings = properties.replace("<property name='", "<").replace("</property>", "|");
    let settings: String = settings
        .split('|')
        .filter_map(|one| one.strip_prefix('<')?.split_once("'>"))
        .map(|(name, value)| format!("<{name}>{value}</{name}>"))
        .collect();
    let pool = "<connection><pool><dsName>jdbc/Flows</dsName></pool></connection>";
    let statement =
        |sql: &str, more: &str| format!("<statement><sql><![CDATA[{sql}]]></sql>{more}</statement>");
    let report = |sql: &str, more: &str| format!("<dbreport>{pool}{}</dbreport>", statement(sql, more));
    let look = |sql: &str, more: &str| {
        let result = "<result name='got' column='1'/>";
        format!("<dblookup>{pool}{}</dblookup>", statement(sql, &format!("{more}{result}")))
    };
    let proxy = |name: &str, inside: &str| {
        let got = "<property name='Got' expression='$ctx:got' scope='transport'/><respond/>";
        let fault = "<property name='Why' expression='$ctx:ERROR_DETAIL' scope='transport'/>\
             <property name='HTTP_SC' value='500' scope='axis2'/><respond/>";
        format!(
            "<proxy name='{name}'><target><inSequence>{inside}{got}</inSequence><faultSequence>{fault}</faultSequence></target></proxy>"
        )
    };
    let columns: String = types.iter().map(|(kind, column, ..)| format!(", v_{kind} {column}")).collect();
    let key = "<parameter expression='//id' type='INTEGER'/>";
    let mut more = format!(
        "<datasource><name>Flows</name><jndiConfig><name>jdbc/Flows</name></jndiConfig><definition type='RDBMS'>\
         <configuration>{settings}</configuration></definition></datasource>"
    );
    more += &proxy("Create", &report(&format!("create table flows (id integer primary key{columns})"), ""));
    more += &proxy("Count", &look("select count(*) from flows", ""));
    for (kind, ..) in &types {
        let value = format!("<parameter expression='//v' type='{kind}'/>");
        more += &proxy(
            kind,
            &[
                report(&format!("insert into flows (id, v_{kind}) values (?, ?)"), &format!("{key}{value}")),
                look(&format!("select v_{kind} from flows where id = ?"), key),
            ]
            .concat(),
        );
    }
    // Two writes that count together, the second of which fails where there is an `also`.
    let add = |expression: &str| {
        report(
            "insert into flows (id) values (?)",
            &format!("<parameter expression='{expression}' type='INTEGER'/>"),
        )
    };
    let both = [
        "<transaction action='new'/>".to_owned(),
        add("//id"),
        add("//also"),
        "<transaction action='commit'/>".to_owned(),
        look("select count(*) from flows", ""),
    ];
    more += &proxy("Both", &both.concat());
    let one = query("one", "select 1 a", "<result element='R'><element name='a' column='a'/></result>");
    let tested = tested("", properties, &format!("{one}{}", operation("one", &[])), &more);
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    let send = |name: &str, id: u32, value: &str| {
        let value = value.replace('&', "&amp;").replace('<', "&lt;");
        let body = format!("<a><id>{id}</id><v>{value}</v></a>");
        let response =
            ask(&tested, "POST", &format!("/services/{name}"), &[("Content-Type", "application/xml")], &body);
        let header = |name: &str| response.headers.get(name).unwrap_or_default().to_owned();
        (response.status, header("Got"), header("Why"))
    };
    let got = |name: &str, id: u32, value: &str| {
        let (status, got, why) = send(name, id, value);
        assert_eq!((status, why.as_str()), (200, ""), "{dialect} {name} {value}");
        got
    };
    got("Create", 0, "");
    let mut id = 0;
    for (kind, _, value, wanted) in &types {
        id += 1;
        assert_eq!(got(kind, id, value), *wanted, "{dialect} {kind}");
        // An empty text is NULL, which leaves the property alone.
        id += 1;
        assert_eq!(got(kind, id, ""), "", "{dialect} {kind}");
        for attack in ["1); drop table flows; --", "' or '1'='1", "1 or 1=1", "'\"`"] {
            let (status, back, why) = send(kind, id + 1, attack);
            match status {
                // Into `char(3)` it does not fit.
                200 => assert!(back == attack || *kind == "BIT", "{dialect} {kind} {attack}: {back}"),
                500 => assert!(!why.is_empty(), "{dialect} {kind} {attack}"),
                other => panic!("{dialect} {kind} {attack}: {other}"),
            }
            id += 1;
        }
    }
    let count = |text: String| text.parse::<u32>().unwrap();
    let before = count(got("Count", 0, ""));
    assert!(before >= 2 * types.len() as u32, "{dialect}: {before}");
    // The same key again: SQLSTATE or number of the database, and nothing of it counts.
    let (status, _, why) = send("INTEGER", 1, "5");
    let code = match dialect {
        "postgresql" => "SQLSTATE 23505",
        "mysql" => "error 1062",
        _ => "error 1555",
    };
    assert!(status == 500 && why.contains(code), "{dialect}: {status} {why}");
    let both = |also: u32| {
        let body = format!("<a><id>9000</id><also>{also}</also></a>");
        ask(&tested, "POST", "/services/Both", &[("Content-Type", "application/xml")], &body).status
    };
    assert_eq!(both(1), 500, "{dialect}");
    assert_eq!(count(got("Count", 0, "")), before, "{dialect}: what failed is taken back");
    assert_eq!(both(9001), 200, "{dialect}");
    assert_eq!(count(got("Count", 0, "")), before + 2, "{dialect}");
    let pools = tested.bus.services().kept.get::<sql::Pools>().all();
    assert_eq!(pools.iter().map(|pool| pool.status().in_use).sum::<usize>(), 0);
}

/// What looks like SQL, as a parameter of each type, alone and in an array, of SOAP, REST and JSON.
fn injections(properties: &str, dialect: &str) {
    const TYPES: [&str; 28] = [
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
        "ANYURI",
        "QUERY_STRING",
    ];
    let count = "<result element='N'><element name='n' column='n' xsdType='integer'/></result>";
    let mut inside = [
        query("create", "create table victims (v varchar(100))", ""),
        query("fill", "insert into victims values ('a'), ('b'), ('c')", ""),
        query("count", "select count(*) n from victims", count),
        operation("create", &[]),
        operation("fill", &[]),
        operation("count", &[]),
    ]
    .concat();
    for kind in TYPES {
        let one = format!("<param name='v' sqlType='{kind}'/>{count}");
        let many = format!("<param name='v' sqlType='{kind}' paramType='ARRAY'/>{count}");
        inside += &query(&format!("one{kind}"), "select count(*) n from victims where v = :v", &one);
        inside += &query(&format!("many{kind}"), "select count(*) n from victims where v in (:v)", &many);
        inside += &operation(&format!("one{kind}"), &["v"]);
        inside += &operation(&format!("many{kind}"), &["v"]);
    }
    let tested = tested("", properties, &inside, "");
    // Where a column may be named and a value is compared.
    assert!(tested.found.len() == 2, "{:?}", tested.found);
    assert!(
        tested.found.iter().all(|found| found.contains("is a QUERY_STRING and a value")),
        "{:?}",
        tested.found
    );
    assert_eq!((get(&tested, "create").status, get(&tested, "fill").status), (202, 202));
    let none = "<N xmlns=\"http://ws.wso2.org/dataservice\"><n>0</n></N>";
    for kind in TYPES {
        for attack in
            ["' or '1'='1", "a'); drop table victims; --", "1 or 1=1", "v", "\\' or 1=1 #", "1) or (1=1"]
        {
            let encoded: String = attack.bytes().map(|byte| format!("%{byte:02X}")).collect();
            let text = attack.replace('&', "&amp;").replace('<', "&lt;");
            let json = serde_json::to_string(attack).unwrap();
            for response in [
                get(&tested, &format!("one{kind}?v={encoded}")),
                get(&tested, &format!("many{kind}?v={encoded}&v=z")),
                soap(&tested, &format!("<one{kind}><v>{text}</v></one{kind}>")),
                self::json(
                    &tested,
                    "POST",
                    &format!("many{kind}"),
                    &format!(r#"{{"many{kind}":{{"v":[{json},"z"]}}}}"#),
                ),
            ] {
                match response.status {
                    // A column may be named: that is what a QUERY_STRING is for.
                    200 if kind == "QUERY_STRING" && attack == "v" => {}
                    // Whatever is not true is false, and for MySQL a text is 0 beside it.
                    200 if dialect == "mysql" && matches!(kind, "BIT" | "BOOLEAN") => {}
                    200 => assert!(
                        response.body.contains("<n>0</n>") || response.body.contains("\"n\":0"),
                        "{dialect} {kind} {attack}: {response:?}"
                    ),
                    400 | 500 => {
                        assert!(response.body.contains("_ERROR"), "{dialect} {kind} {attack}: {response:?}")
                    }
                    other => panic!("{dialect} {kind} {attack}: {other}"),
                }
            }
        }
        assert_eq!(get(&tested, "count").body, none.replace("0</n>", "3</n>"), "{dialect} {kind}");
    }
}

#[test]
fn on_sqlite() {
    promises(&memory("promises"), "sqlite");
    flows(&memory("flows-of-types"), "sqlite");
    injections(&memory("injections"), "sqlite");
}

#[test]
fn on_postgresql() {
    let Some(server) = Server::start("postgresql") else { return };
    let url = format!("jdbc:postgresql://127.0.0.1:{}/bus", server.port);
    promises(&source(&url), "postgresql");
    flows(&source(&url), "postgresql");
    injections(&source(&url), "postgresql");
    let make = "create function double_it(a integer) returns integer language sql as 'select a * 2'";
    functions(&source(&url), make, "double_it");
    outage(&server, &url, "select n a, repeat('x', 1000) b from generate_series(1, 1000000) n");
}

#[test]
fn on_mariadb() {
    let Some(server) = Server::start("mariadb") else { return };
    let url = format!("jdbc:mariadb://127.0.0.1:{}/bus", server.port);
    promises(&source(&url), "mysql");
    flows(&source(&url), "mysql");
    injections(&source(&url), "mysql");
    let inside = [
        query("make", "create procedure double_it(in a integer, out b integer, inout c integer) begin set b = a * 2; set c = c + 1; end", ""),
        query(
            "double",
            "{call double_it(:a, :b, :c)}",
            "<param name='a' sqlType='INTEGER'/><param name='b' sqlType='INTEGER' type='OUT'/><param name='c' sqlType='INTEGER' type='INOUT'/>\
             <result element='R'><element name='b' column='b' xsdType='integer'/><element name='c' column='c' xsdType='integer'/></result>",
        ),
        operation("make", &[]),
        operation("double", &["a", "c"]),
    ]
    .concat();
    let tested = tested("", &source(&url), &inside, "");
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    let made = get(&tested, "make");
    assert_eq!(made.status, 202, "{made:?}");
    assert_eq!(get_json(&tested, "double?a=21&c=1").body, r#"{"R":{"b":42,"c":2}}"#);
    let make = "create function twice(a integer) returns integer deterministic return a * 2";
    functions(&source(&url), make, "twice");
    outage(&server, &url, "select seq a, repeat('x', 1000) b from seq_1_to_1000000");
}

/// A function is called by its name and by places, and its value comes back in the column of the OUT parameter.
fn functions(source: &str, make: &str, function: &str) {
    let result = "<result element='R'><element name='got' column='Value Of' xsdType='integer'/></result>";
    let out = "<param name='Value Of' sqlType='INTEGER' type='OUT' ordinal='1'/>";
    let inside = [
        query("make", make, ""),
        query(
            "named",
            &format!("{{? = call {function}(:a)}}"),
            &format!("{out}<param name='a' sqlType='INTEGER'/>{result}"),
        ),
        query(
            "placed",
            &format!(" {{ ?=CALL {function} ( ? ) }} ; "),
            &format!("{out}<param name='a' sqlType='INTEGER' ordinal='2'/>{result}"),
        ),
        operation("make", &[]),
        operation("named", &["a"]),
        operation("placed", &["a"]),
    ]
    .concat();
    let tested = tested("", source, &inside, "");
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    assert_eq!(get(&tested, "make").status, 202);
    for operation in ["named", "placed"] {
        let answer = get_json(&tested, &format!("{operation}?a=21"));
        assert_eq!(answer.body, r#"{"R":{"got":42}}"#, "{operation} with {source}");
    }
}

/// What a client has received of an answer, and whether it came to its end.
async fn received(
    mut body: message::Body,
    mut text: Vec<u8>,
    most: usize,
) -> (Vec<u8>, Option<message::Body>, bool) {
    loop {
        let message::Body::Stream(stream) = &mut body else { return (text, None, true) };
        text.extend(stream.take());
        if text.len() >= most {
            return (text, Some(body), true);
        }
        match std::future::poll_fn(|cx| stream.poll_more(cx)).await {
            Ok(true) => {}
            Ok(false) => return (text, None, true),
            Err(_) => return (text, None, false),
        }
    }
}

/// The server is killed in the middle of an answer of a million rows, and comes back: the answer ends in the middle, there is a fault while the
/// server is away, an answer afterwards.
fn outage(server: &Server, url: &str, million: &str) {
    let inside = [
        query("one", "select 1 a", "<result element='R'><element name='a' column='a'/></result>"),
        query(
            "million",
            million,
            "<result element='M' rowName='R'><element name='a' column='a'/><element name='b' column='b'/></result>",
        ),
        operation("one", &[]),
        operation("million", &[]),
    ];
    let tested = tested("", &source(url), &inside.concat(), "");
    let ok = "<R xmlns=\"http://ws.wso2.org/dataservice\"><a>1</a></R>";
    assert_eq!(get(&tested, "one").body, ok);
    support::run(async {
        let (status, _, body) = tested.begin("GET", "/services/Shop/million", &[], b"").await;
        assert_eq!(status, 200);
        let (text, body, _) = received(body, Vec::new(), 1 << 20).await;
        let body = body.expect("more than fits at once");
        let text_of = String::from_utf8_lossy(&text);
        assert!(text_of.contains("<a>1</a>") && !text_of.contains("<a>100000</a>"));
        server.ask("kill");
        let (text, _, is_whole) = received(body, text, usize::MAX).await;
        assert!(!is_whole && !text.ends_with(b"</M>"), "{} bytes", text.len());
        // What was on its way is a small part of a thousand megabytes.
        assert!(text.len() < 100 << 20, "{}", text.len());
    });
    let pools = tested.bus.services().kept.get::<sql::Pools>().all();
    assert_eq!(pools.iter().map(|pool| pool.status().in_use).sum::<usize>(), 0);
    let away = get(&tested, "one");
    assert!(away.status >= 500 && away.body.contains("_ERROR</ds_code>"), "{away:?}");
    let away = get(&tested, "one");
    assert!(away.status == 503 && away.body.contains("CONNECTION_UNAVAILABLE_ERROR"), "{away:?}");
    server.ask("start");
    assert_eq!(get(&tested, "one").body, ok);
}

/// Slow statements, no free connection: each is the fault that is documented, and the next request works.
fn trouble(url: &str, slow: &str) {
    let result = "<result element='R' rowName='W'><element name='a' column='a'/></result>";
    let inside = [
        query("one", "select 1 a", result),
        query("slow", slow, result),
        operation("one", &[]),
        operation("slow", &[]),
    ]
    .concat();
    let limits = "<property name='queryTimeout'>3</property><property name='maxWait'>200</property>";
    let properties = source(url).replace(">4<", ">1<") + limits;
    let tested = tested("", &properties, &inside, "");
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    let works = || {
        let one = get(&tested, "one");
        assert!(one.status == 200 && one.body.contains("<a>1</a>"), "{one:?}");
    };
    works();
    let late = get(&tested, "slow");
    assert!(late.status == 500 && late.body.contains("did not answer within 3 s"), "{late:?}");
    assert!(late.body.contains("<ds_code>DATABASE_ERROR</ds_code>"), "{late:?}");
    works();
    // The one connection is in use.
    let pools = tested.bus.services().kept.get::<sql::Pools>().all();
    std::thread::scope(|scope| {
        scope.spawn(|| get(&tested, "slow"));
        while pools.iter().all(|pool| pool.status().in_use == 0) {
            std::thread::yield_now();
        }
        let none = get(&tested, "one");
        assert!(none.status == 503 && none.body.contains("CONNECTION_UNAVAILABLE_ERROR"), "{none:?}");
        assert!(none.body.contains("in use"), "{none:?}");
    });
    works();
}

#[test]
fn trouble_with_sqlite() {
    let folder = std::env::temp_dir().join(format!("busbar-data-slow-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let slow = "with recursive n(a) as (select 1 union all select a + 1 from n) select count(*) a from n";
    trouble(&format!("jdbc:sqlite:{}/slow.db", folder.display()), slow);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_is_wrong_is_found_when_it_loads() {
    let one = query(
        "one",
        "select :a",
        "<param name='a' sqlType='INTEGER'/><result element='R'><element name='a' column='1'/></result>",
    );
    for (inside, says) in [
        (format!("{one}{}", operation("one", &["a"])), ""),
        (format!("{one}{}", operation("one", &[])), "the query `one` is given no `a`"),
        (format!("{one}{}", operation("one", &["a", "b"])), "has no parameter `b`"),
        (format!("{one}{}", operation("two", &[])), "there is no query `two`"),
        (
            format!("{one}{}{}", query("two", "select 1", ""), operation("one", &["a"])),
            "nothing runs the query `two`",
        ),
        (
            format!(
                "{one}{}{}",
                query(
                    "two",
                    "select 1",
                    "<result element='a'><element name='b'><call-query href='on'/></element></result>"
                ),
                operation("one", &["a"])
            ),
            "there is no query `on`",
        ),
        (
            format!(
                "{}{}",
                query("one", "select 1", "<param name='a' sqlType='INT'/>"),
                operation("one", &["a"])
            ),
            "`sqlType` cannot be `INT`",
        ),
        (
            format!("{}{}", query("one", "select ?", ""), operation("one", &[])),
            "question mark 1 of the query `one` has no parameter",
        ),
        (
            format!("{}{}", query("one", "select :b", "<param name='a'/>"), operation("one", &["a"])),
            "`:b` of the query `one` is not a parameter of it",
        ),
        (
            format!("<query id='one' useConfig='other'><sql>select 1</sql></query>{}", operation("one", &[])),
            "the data service has no config `other`",
        ),
        (
            format!(
                "{}{}",
                query("one", "select 1 nin", "<result outputType='json'>{ results:{ nin:$nin} }</result>"),
                operation("one", &[])
            ),
            "",
        ),
        (
            format!(
                "{}{}",
                query("one", "select 1", "<result outputType='json'>{\"a\":1}</result>"),
                operation("one", &[])
            ),
            "the description of the result of the query `one` cannot be read",
        ),
        (
            format!(
                "{}{}",
                query(
                    "one",
                    "select 1 a",
                    "<result element='a' rowName='b'><call-query href='one'/></result>"
                ),
                operation("one", &[])
            ),
            "the query `one` runs itself",
        ),
    ] {
        let tested = tested("", &memory("wrong"), &inside, "");
        match says {
            "" => assert!(tested.found.is_empty(), "{:?}", tested.found),
            says => assert!(tested.reports(says), "{says}: {:?}", tested.found),
        }
    }
    for (properties, says) in [
        (
            "<property name='gspread_datasource'>a</property>",
            "data of a Google spreadsheet cannot be queried here",
        ),
        ("<property name='mongoDB_servers'>h</property>", "data of MongoDB cannot be queried here"),
        ("<property name='carbon_datasource_name'>none</property>", "there is no data source `none`"),
        (
            "<property name='org.wso2.ws.dataservice.protocol'>jdbc:oracle:thin:@h:1:x</property>",
            "no driver for Oracle",
        ),
    ] {
        let tested = tested("", properties, &format!("{one}{}", operation("one", &["a"])), "");
        assert!(tested.reports(says), "{says}: {:?}", tested.found);
    }
}

#[test]
fn what_stands_there_twice_counts_as_it_does_in_wso2() {
    let numbers = |id: &str, sql: &str| {
        query(id, sql, "<result element='R'><element name='n' column='n' xsdType='integer'/></result>")
    };
    let inside = format!(
        "{}{}{}{}{}",
        numbers("one", "select 1 n"),
        numbers("one", "select 2 n"),
        numbers("two", "select 3 n"),
        with_resource("two", "path='number' method='GET'"),
        with_resource("one", "path='/number' method='get'"),
    );
    let tested = tested("", &memory("twice"), &inside, "");
    assert!(tested.reports("two queries have the id `one`"), "{:?}", tested.found);
    assert!(tested.reports("`GET number` is there twice"), "{:?}", tested.found);
    let response = get_json(&tested, "number");
    assert_eq!((response.status, response.body.as_str()), (200, "{\"R\":{\"n\":2}}"));
}

fn with_resource(query: &str, attributes: &str) -> String {
    format!("<resource {attributes}>{}</resource>", call(query, &[]))
}

#[test]
fn descriptions_in_json_are_read_as_wso2_does() {
    // Without quotes, with a comma before a bracket, with the line ends of Windows.
    let rows = "<result outputType='json'>{&#xd;\"rows\": {\"row\": [&#xd; {\"n\": $n(type:integer), 'inner': {\"again\": $n,}, \"@other\":$n-&gt;m, } ] } }</result>";
    let inside = format!(
        "<query id='one' useConfig='db'><sql>select 7 n -- :nothing&#xd;&#xa;</sql>{}</query>{}{}",
        rows.replace("$n(type:integer)", "\"$n(type:integer)\""),
        query(
            "other",
            "select :m + 1 o",
            "<param name='m' sqlType='INTEGER'/><result outputType='json'>{\"more\": {\"o\": $o}}</result>"
        ),
        operation("one", &[])
    );
    let tested = tested("", &memory("lenient"), &inside, "");
    assert!(!tested.reports("cannot be read"), "{:?}", tested.found);
    let response = get_json(&tested, "one");
    let wanted = "{\"rows\":{\"row\":[{\"n\":7,\"inner\":{\"again\":\"7\"},\"more\":{\"o\":\"8\"}}]}}";
    assert_eq!((response.status, response.body.as_str()), (200, wanted));
}

#[test]
fn a_description_in_json_can_have_optional_columns() {
    let rows = |column: &str| {
        let row = format!("{{\"n\": \"$n(type:integer)\", \"m\": \"{column}\"}}");
        format!("<result outputType='json'>{{\"rows\": {{\"row\": [{row}]}}}}</result>")
    };
    for (column, body) in [
        ("$m(type:integer;optional:true)", "{\"rows\":{\"row\":[{\"n\":7}]}}"),
        ("$m( optional : TRUE )", "{\"rows\":{\"row\":[{\"n\":7}]}}"),
        // What is behind the last bracket does not count.
        ("$n(type:integer;optional:false) of n", "{\"rows\":{\"row\":[{\"n\":7,\"m\":7}]}}"),
        ("$m(optional:false)", "cannot find parameter with type:column name:m"),
    ] {
        let inside = format!("{}{}", query("one", "select 7 n", &rows(column)), operation("one", &[]));
        let tested = tested("", &memory("optional"), &inside, "");
        assert!(tested.found.is_empty(), "{column}: {:?}", tested.found);
        let response = get_json(&tested, "one");
        assert!(response.body.contains(body), "{column}: {}", response.body);
    }
}

#[test]
fn a_type_that_does_not_exist_is_reported() {
    let template = |name: &str| {
        format!(
            "<result outputType='json'>{{\"rows\": {{\"row\": [{{\"n\": \"$n(type:{name})\"}}]}}}}</result>"
        )
    };
    let elements = |name: &str| {
        format!("<result element='R' rowName='r'><element name='n' column='n' xsdType='{name}'/></result>")
    };
    for (result, says) in [
        (template("Integer"), "`Integer` is not a type of XML Schema"),
        (elements("interger"), "`interger` is not a type of XML Schema"),
        (elements("xs:foo"), "`foo` is not a type of XML Schema"),
        (template("number"), ""),
        (elements("xs:dateTime"), ""),
        (elements("negativeInteger"), ""),
    ] {
        let inside = format!("{}{}", query("one", "select -7 n", &result), operation("one", &[]));
        let tested = tested("", &memory("types"), &inside, "");
        match says {
            "" => assert!(tested.found.is_empty(), "{result}: {:?}", tested.found),
            says => assert!(tested.reports(says), "{result}: {:?}", tested.found),
        }
        // It serves all the same.
        assert_eq!(get_json(&tested, "one").status, 200, "{result}");
    }
}

#[test]
fn a_request_that_cannot_be_read_is_the_clients_fault() {
    let one = query(
        "one",
        "select :a a",
        "<param name='a'/><result element='R'><element name='a' column='a'/></result>",
    );
    let tested = tested("", &memory("unreadable"), &format!("{one}{}", operation("one", &["a"])), "");
    for (media_type, body) in [("application/json", "{\"a\": tru"), ("application/xml", "<one><a>1</one>")] {
        let response = ask(&tested, "POST", "/services/Shop/one", &[("Content-Type", media_type)], body);
        assert_eq!(response.status, 400, "{}", response.body);
        assert!(response.body.contains("the request cannot be read"), "{}", response.body);
        assert!(response.body.contains("INCOMPATIBLE_PARAMETERS_ERROR"), "{}", response.body);
    }
    // The description of the resources is what its schema says: texts are texts.
    let described: serde_json::Value = serde_json::from_str(&get(&tested, "?openapi.json").body).unwrap();
    assert_eq!(described["info"]["description"], "");
}

#[test]
fn a_query_has_a_time_of_its_own() {
    let endless = "with recursive n(a) as (select 1 union all select a + 1 from n) select max(a) m from n";
    let of = |seconds: &str| {
        let more = format!(
            "<properties><property name='org.wso2.ws.dataservice.query_timeout'>{seconds}</property></properties>\
             <result element='R'><element name='m' column='m'/></result>"
        );
        format!("{}{}", query("one", endless, &more), operation("one", &[]))
    };
    let tested = tested("", &memory("time"), &of("1"), "");
    let response = get(&tested, "one");
    assert_eq!(response.status, 500);
    assert!(response.body.contains("did not answer within 1 s"), "{}", response.body);
}

#[test]
fn rows_are_written_as_rdf() {
    let rdf = |about: &str, inside: &str| {
        format!(
            "<result outputType='rdf' {about} defaultNamespace='http://shop.example/terms'>{inside}</result>"
        )
    };
    let elements = "<element name='name' column='name' xsdType='xs:string'/><element name='price' column='price' xsdType='xs:decimal'/>\
         <element name='line' rdf-ref-uri='http://shop.example/lines/{Line}/{of}'/><element name='of' query-param='of' xsdType='string'/>";
    let rows = "select 1 id, :of asked, 'b<o>lt' name, 1.5 price, 'a b' line union all select 2, '', 'nut', null, 'c' order by 1";
    let of = "<param name='of' sqlType='STRING'/>";
    let about = "rdfBaseURI='http://shop.example/items/{id}'";
    let inside = [
        query("all", rows, &format!("{of}{}", rdf(about, elements))),
        query("none", "select 1 id where 1 = 0", &rdf(about, "<element name='id' column='id'/>")),
        query("gone", "select 1 id", &rdf(about, "<element name='x' column='nothing'/>")),
        operation("all", &["of"]),
        operation("none", &[]),
        operation("gone", &[]),
    ]
    .concat();
    let tested = tested("", &memory("rdf"), &inside, "");
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    let head = "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns=\"http://shop.example/terms\">";
    let typed = |name: &str, kind: &str, value: &str| {
        format!("<{name} rdf:datatype=\"http://www.w3.org/2001/XMLSchema#{kind}\">{value}</{name}>")
    };
    let one = |id: u32, inside: &str, line: &str| {
        format!(
            "<rdf:Description rdf:about=\"http://shop.example/items/{id}\">{inside}<line rdf:resource=\"http://shop.example/lines/{line}/x%3Cy\"/>{}</rdf:Description>",
            typed("of", "string", "x&lt;y")
        )
    };
    let first = typed("name", "string", "b&lt;o&gt;lt") + &typed("price", "decimal", "1.5");
    // What is NULL is not said.
    let wanted = format!(
        "{head}{}{}</rdf:RDF>",
        one(1, &first, "a%20b"),
        one(2, &typed("name", "string", "nut"), "c")
    );
    assert_eq!(get(&tested, "all?of=x%3Cy").body, wanted);
    // RDF is XML, whatever the client would like.
    let json = get_json(&tested, "all?of=x%3Cy");
    assert_eq!(
        (json.body.as_str(), json.headers.get("Content-Type")),
        (wanted.as_str(), Some("application/xml; charset=UTF-8"))
    );
    assert!(soap(&tested, "<all><of>x&lt;y</of></all>").body.contains(&wanted));
    assert_eq!(get(&tested, "none").body, format!("{head}</rdf:RDF>"));
    let gone = get(&tested, "gone");
    assert!(gone.status == 500 && gone.body.contains("INCOMPATIBLE_PARAMETERS_ERROR"), "{gone:?}");
    assert_eq!(ask(&tested, "GET", "/services/Shop?wsdl", &[], "").status, 200);
    for (about, inside, says) in [
        ("", "<element name='a' column='a'/>", "says not what it is about"),
        ("rdfBaseURI='http://h/{a'", "<element name='a' column='a'/>", "`rdfBaseURI` cannot be"),
        (about, "<element name='a' rdf-ref-uri='{}'/>", "`rdf-ref-uri` cannot be"),
        (about, "<attribute name='a' column='a'/>", "has more than values"),
        (about, "<element name='a'><element name='b' column='a'/></element>", "has more than values"),
    ] {
        let inside = format!("{}{}", query("one", "select 1 a", &rdf(about, inside)), operation("one", &[]));
        let tested = support::tested("", &memory("rdf"), &inside, "");
        assert!(tested.reports(says), "{says}: {:?}", tested.found);
    }
}

#[test]
fn faults_have_names_as_they_are_written() {
    let one = query(
        "one",
        "select :itemNumber a",
        "<param name='itemNumber' sqlType='INTEGER'/><result element='R'><element name='a' column='a'/></result>",
    );
    let tested = tested("", &memory("written"), &format!("{one}{}", operation("one", &["itemNumber"])), "");
    for (body, says) in [
        ("<one><itemNumber>x</itemNumber></one>", "<current_params>{itemNumber=x}<"),
        ("<one><itemnumber>x</itemnumber></one>", "parameter itemNumber: "),
        ("<one/>", "type:query-param name:itemNumber"),
    ] {
        let response = soap(&tested, body);
        assert!(response.status >= 400 && response.body.contains(says), "{body}: {response:?}");
    }
}

/// Clients are generated from descriptions: names in them are those of the service, not those in lower case.
#[test]
fn descriptions_and_faults_have_names_as_they_are_written() {
    let two = query(
        "two",
        "select :a a, :b b",
        "<param name='a' sqlType='INTEGER'/><param name='b' sqlType='INTEGER'/><result element='R'><element name='a' column='a'/></result>",
    );
    let calls = "<call-query href='two'><with-param name='a' query-param='itemNumber'/><with-param name='b' query-param='Shelf'/></call-query>";
    let parts = format!(
        "{two}<operation name='two'>{calls}</operation><resource path='r/{{itemNumber}}' method='GET'>{calls}</resource>\
         <resource path='r' method='POST'>{calls}</resource><resource path='r/{{itemNumber}}/of/{{nobody}}' method='GET'>{calls}</resource>"
    );
    let tested = tested("", &memory("described"), &parts, "");
    let wsdl = ask(&tested, "GET", "/services/Shop?wsdl", &[], "").body;
    assert!(wsdl.contains("name=\"itemNumber\"") && wsdl.contains("name=\"Shelf\""), "{wsdl}");
    let openapi = ask(&tested, "GET", "/services/Shop?swagger.json", &[], "").body;
    let openapi: serde_json::Value = serde_json::from_str(&openapi).unwrap();
    let parameters = &openapi["paths"]["/r/{itemNumber}"]["get"]["parameters"];
    assert_eq!(
        (&parameters[0]["name"], &parameters[0]["in"]),
        (&"itemNumber".into(), &"path".into()),
        "{openapi}"
    );
    assert_eq!(
        (&parameters[1]["name"], &parameters[1]["in"]),
        (&"Shelf".into(), &"query".into()),
        "{openapi}"
    );
    let variables = openapi["paths"]["/r/{itemNumber}/of/{nobody}"]["get"]["parameters"].as_array().unwrap();
    let variables: Vec<_> = variables.iter().filter(|p| p["in"] == "path").map(|p| &p["name"]).collect();
    assert_eq!(variables, ["itemNumber", "nobody"], "{openapi}");
    let body = &openapi["paths"]["/r"]["post"]["requestBody"]["content"]["application/json"]["schema"];
    assert!(body["properties"]["itemNumber"].is_object() && body["required"][1] == "Shelf", "{openapi}");
    let fault = soap(&tested, "<two><itemNumber>1</itemNumber></two>").body;
    assert!(fault.contains("type:query-param name:Shelf"), "{fault}");
}

/// A variable is a whole segment; anything else is a path that hardly anybody means.
#[test]
fn variables_in_a_part_of_a_segment_are_said() {
    for (path, said) in
        [("items/{id}", false), ("items/{id}.json", true), ("items/{a}-{b}", true), ("{a}/{b}", false)]
    {
        let resource = format!("<resource path='{path}' method='GET'>{}</resource>", call("one", &[]));
        let one = query("one", "select 1 a", "<result element='R'><element name='a' column='a'/></result>");
        let tested = tested("", &memory("segments"), &format!("{one}{resource}"), "");
        assert_eq!(tested.reports("is no variable"), said, "{path}: {:?}", tested.found);
    }
}

/// SOAP 1.2 is answered in SOAP 1.2, with faults of its own form.
#[test]
fn soap_has_two_versions() {
    let one = query(
        "one",
        "select :a a",
        "<param name='a' sqlType='INTEGER'/><result element='R'><element name='a' column='a'/></result>",
    );
    let tested =
        tested("enableBoxcarring='true'", &memory("soap"), &format!("{one}{}", operation("one", &["a"])), "");
    const V12: &str = "http://www.w3.org/2003/05/soap-envelope";
    let send = |body: &str| {
        let headers = [("Content-Type", "application/soap+xml; charset=UTF-8; action=\"urn:one\"")];
        let envelope = format!("<s:Envelope xmlns:s='{V12}'><s:Body>{body}</s:Body></s:Envelope>");
        ask(&tested, "POST", "/services/Shop", &headers, &envelope)
    };
    for (body, status, says) in [
        ("<one><a>7</a></one>", 200, "<a>7</a></R></soapenv:Body>"),
        ("<one><a>x</a></one>", 500, "ds:DATABASE_ERROR</soapenv:Value></soapenv:Subcode>"),
        ("<one/>", 500, "<ds_code>INCOMPATIBLE_PARAMETERS_ERROR</ds_code>"),
        ("<two/>", 500, "INCOMPATIBLE_PARAMETERS_ERROR"),
        // Sessions of requests: the way out is said.
        (
            "<request_box><begin_boxcar/></request_box>",
            500,
            "send those that count together in one `request_box`",
        ),
    ] {
        let response = send(body);
        let kind = response.headers.get("Content-Type").unwrap_or_default();
        assert!(response.status == status && response.body.contains(says), "{body}: {response:?}");
        assert!(
            kind.starts_with("application/soap+xml") && response.body.contains(V12),
            "{body}: {response:?}"
        );
    }
    let session = get(&tested, "begin_boxcar");
    assert!(session.status == 404 && session.body.contains("`request_box`"), "{session:?}");
}

#[test]
fn bounds_of_validators_are_numbers() {
    let with = |validator: &str| {
        let one = query(
            "one",
            "select :a a",
            &format!(
                "<param name='a' sqlType='STRING'>{validator}</param><result element='R'><element name='a' column='a'/></result>"
            ),
        );
        tested("", &memory("validators"), &format!("{one}{}", operation("one", &["a"])), "")
    };
    for validator in [
        "<validateLength minimum='x'/>",
        "<validateLength maximum='NaN'/>",
        "<validateLongRange minimum='ten'/>",
        "<validateLongRange maximum='NaN'/>",
        "<validateDoubleRange minimum='NaN'/>",
        "<validateDoubleRange maximum='1,5'/>",
        "<validatePattern pattern='['/>",
    ] {
        let tested = with(validator);
        assert!(tested.reports("bad-value"), "{validator}: {:?}", tested.found);
    }
    for (validator, fits, fails) in [
        ("<validateLongRange minimum='9223372036854775806'/>", "9223372036854775807", "9223372036854775805"),
        ("<validateLongRange minimum='-99999999999999999999' maximum='10.0'/>", "10", "11"),
        ("<validateLongRange minimum='' maximum='5'/>", "-5", "NaN"),
        ("<validateDoubleRange minimum='-1e308' maximum='INF'/>", "1e300", "NaN"),
        ("<validateLength minimum='0' maximum='99999999999999999999'/>", "", ""),
    ] {
        let tested = with(validator);
        assert!(tested.found.is_empty(), "{validator}: {:?}", tested.found);
        assert_eq!(get(&tested, &format!("one?a={fits}")).status, 200, "{validator} {fits}");
        if !fails.is_empty() {
            let refused = get(&tested, &format!("one?a={fails}"));
            assert!(
                refused.status == 400 && refused.body.contains("VALIDATION_ERROR"),
                "{validator}: {refused:?}"
            );
        }
    }
}

/// Whatever stands in an attribute, loading ends with findings or a service, and requests with answers.
#[test]
fn attributes_may_be_anything() {
    let text = "<data xmlns='' name='Shop' serviceNamespace='urn:a' transports='http' enableBatchRequests='true' enableBoxcarring='true' \
         disableStreaming='false' serviceStatus='active' enableDTP='false'><config id='db' enableOData='true'>\
         <property name='url'>jdbc:sqlite:file:anything?mode=memory</property><property name='queryTimeout'>3</property></config>\
         <query id='one' useConfig='db' returnGeneratedKeys='false' keyColumns='a,b' returnUpdatedRowCount='false'>\
         <sql dialect='sqlite'>select :a a, :b b, ? c</sql>\
         <param name='a' sqlType='INTEGER' type='IN' paramType='SCALAR' ordinal='0' defaultValue='1' optional='true'>\
         <validateLongRange minimum='0' maximum='9'/></param>\
         <param name='b' sqlType='DECIMAL' defaultValue='1.5'><validateDoubleRange minimum='0' maximum='9'/></param>\
         <param name='c' sqlType='STRING' ordinal='3' defaultValue='c'><validateLength minimum='0' maximum='9'/><validatePattern pattern='.*'/></param>\
         <properties><property name='org.wso2.ws.dataservice.max_rows'>10</property></properties>\
         <result element='R' rowName='Row' defaultNamespace='urn:b' outputType='xml' useColumnNumbers='false' escapeNonPrintableChar='false'>\
         <attribute name='a' column='a' xsdType='integer' optional='true'/><element name='b' column='b' xsdType='decimal' export='e' exportType='SCALAR' namespace='urn:c'/>\
         <element name='g'><element name='v' value='w'/><element name='q' query-param='c'/></element></result></query>\
         <operation name='one' returnRequestStatus='true' disableStreaming='false'>\
         <call-query href='one'><with-param name='a' query-param='a'/></call-query></operation>\
         <resource path='one/{a}' method='GET'><call-query href='one'><with-param name='a' query-param='a'/></call-query></resource></data>";
    let whole = support::loaded(text);
    assert!(whole.found.is_empty(), "{:?}", whole.found);
    let wanted =
        "<R xmlns=\"urn:b\"><Row a=\"7\"><b xmlns=\"urn:c\">1.5</b><g><v>w</v><q>c</q></g></Row></R>";
    assert_eq!(get(&whole, "one/7").body, wanted);
    let mut served = 0;
    let all: Vec<String> = support::spoiled(text).collect();
    assert!(all.len() > 400, "{}", all.len());
    for text in all {
        let tested = support::loaded(&text);
        for path in ["one?a=7", "one/7"] {
            let response = get(&tested, path);
            assert!(matches!(response.status, 200..=299 | 400..=599), "{response:?}");
            served += usize::from(response.status == 200);
        }
    }
    assert!(served > 0);
}

/// What has no effect is named: nothing is ignored in silence.
#[test]
fn what_has_no_effect_is_named() {
    let one = query("one", "select 1 a", "<result element='R'><element name='a' column='a'/></result>");
    let twice = "<operation name='one'><call-query href='one'/><call-query href='one'/></operation>\
         <xa-datasource id='x' class='c'/><authorization_provider class='c'/><passwordManager/>";
    let tested = tested("enableDTP='true'", &memory("silence"), &format!("{one}{twice}"), "");
    for says in ["xa-datasource", "authorization_provider", "passwordManager", "enableDTP"] {
        let says = format!("ignored-parameter: `{says}` of a data service has no effect");
        assert!(tested.reports(&says), "{says}: {:?}", tested.found);
    }
    assert!(tested.reports("only the first `call-query` of `one` is run"), "{:?}", tested.found);
    assert_eq!(get(&tested, "one").status, 200);
}

/// What is misspelt beside the names of elements: words, properties, variables of a path.
#[test]
fn what_is_misspelt_has_no_effect_and_is_named() {
    let property = "<property name='org.wso2.ws.dataservice.query_timout'>5</property>";
    let inside = format!(
        "<query id='one' useConfig='db' returnGeneratedKeys='yes'><sql>select :id as a</sql>\
         <param name='id' sqlType='STRING' paramType='LIST'/><properties>{property}</properties>\
         <result element='R' outputType='jsn'><element name='a' column='a' export='e' exportType='LIST' optional='1'/></result></query>\
         <resource path='a/{{idd}}' method='GET'><call-query href='one'><with-param name='id' query-parm='id'/></call-query></resource>\
         <resource path='b/{{ID}}' method='GET'><call-query href='one'><with-param name='id' query-param='id'/></call-query></resource>\
         <resource path='c/{{id}}' method='GET'><call-query href='one'/></resource>",
    );
    let tested = tested("enableBoxcarring='1' disableStreaming='True'", &memory("misspelt"), &inside, "");
    let wanted = [
        "bad-value: `enableBoxcarring` cannot be `1`",
        "bad-value: `returnGeneratedKeys` cannot be `yes`",
        "bad-value: `paramType` cannot be `LIST`",
        "bad-value: `outputType` cannot be `jsn`",
        "bad-value: `exportType` cannot be `LIST`",
        "bad-value: `optional` cannot be `1`",
        "unknown-option: there is no property `org.wso2.ws.dataservice.query_timout` of a query",
        "unknown-attribute: `with-param` has no attribute `query-parm`",
        "unmapped-parameter: `{idd}` of the path is no parameter of the query",
    ];
    for says in wanted {
        assert_eq!(
            tested.found.iter().filter(|finding| finding.contains(says)).count(),
            1,
            "{says}: {:?}",
            tested.found
        );
    }
    assert!(
        !tested.reports("{ID}") && !tested.reports("{id}") && !tested.reports("disableStreaming"),
        "{:?}",
        tested.found
    );
    let many = "<query id='one'><sql>select 1 a</sql><properties><property name='org.wso2.ws.dataservice.max_rows'>many</property></properties></query>";
    let found = support::tested("", &memory("many"), many, "");
    assert!(
        found.reports("bad-value: `org.wso2.ws.dataservice.max_rows` cannot be `many`"),
        "{:?}",
        found.found
    );
}

/// A taker that lets an answer lie has the database wait: what was written for it and not taken is bounded.
#[test]
fn a_slow_client_has_the_database_wait() {
    let million = "with recursive n(a) as (select 1 union all select a + 1 from n where a < 1000000) select a, printf('%0200d', a) b from n";
    let inside = [
        query(
            "million",
            million,
            "<result element='M' rowName='R'><element name='a' column='a'/><element name='b' column='b'/></result>",
        ),
        operation("million", &[]),
    ];
    let tested = tested("", &memory("slow"), &inside.concat(), "");
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    support::run(async {
        let (_, _, body) = tested.begin("GET", "/services/Shop/million", &[], b"").await;
        let message::Body::Stream(mut stream) = body else { panic!("it is no stream") };
        for _ in 0..40 {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            // The room of the pipe, a row, and what was left before.
            assert!(stream.buffered().len() < 67 << 10, "{}", stream.buffered().len());
            stream.consume(stream.buffered().len().saturating_sub(1000));
            assert!(std::future::poll_fn(|cx| stream.poll_more(cx)).await.unwrap());
        }
    });
    // Who goes away ends the query, and the connection is free again.
    let pools = tested.bus.services().kept.get::<sql::Pools>().all();
    assert_eq!(pools.iter().map(|pool| pool.status().in_use).sum::<usize>(), 0);
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let inside = [
        query("one", "select :a", "<param name='a' sqlType='INT'/>"),
        query("two", "select ?", ""),
        "<query id='three' useConfig='other'><sql>select :b</sql><param name='b' sqlType='DAY'/></query>"
            .to_owned(),
        operation("one", &["a"]),
        operation("two", &[]),
        operation("three", &["b"]),
        operation("four", &[]),
    ]
    .concat();
    let tested = tested("", &memory("faults"), &inside, "");
    for says in [
        "`sqlType` cannot be `INT`",
        "question mark 1 of the query `two` has no parameter",
        "the data service has no config `other`",
        "`sqlType` cannot be `DAY`",
        "there is no query `four`",
    ] {
        assert_eq!(
            tested.found.iter().filter(|finding| finding.contains(says)).count(),
            1,
            "{says}: {:?}",
            tested.found
        );
    }
}

/// SQLite lets one write at a time: the others wait for it.
#[test]
fn many_clients_write_into_one_file() {
    let folder = std::env::temp_dir().join(format!("busbar-data-many-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let inside = [
        query("create", "create table t (client integer, number integer)", ""),
        query(
            "add",
            "insert into t values (:client, :number)",
            "<param name='client' sqlType='INTEGER'/><param name='number' sqlType='INTEGER'/>",
        ),
        query(
            "count",
            "select count(*) n from t",
            "<result element='R'><element name='n' column='n' xsdType='integer'/></result>",
        ),
        operation("create", &[]),
        operation("add", &["client", "number"]),
        operation("count", &[]),
    ]
    .concat();
    let url = format!("<property name='url'>jdbc:sqlite:{}/many.db</property>", folder.display());
    let tested = tested("", &url, &inside, "");
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    assert_eq!(get(&tested, "create").status, 202);
    std::thread::scope(|scope| {
        for client in 0..50 {
            let tested = &tested;
            scope.spawn(move || {
                for number in 0..40 {
                    let added = get(tested, &format!("add?client={client}&number={number}"));
                    assert_eq!(added.status, 202, "{added:?}");
                }
            });
        }
    });
    assert_eq!(get_json(&tested, "count").body, r#"{"R":{"n":2000}}"#);
    drop(tested);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A workbook with one sheet of such rows.
fn workbook(file: &std::path::Path, rows: &str) {
    use std::io::Write;
    const MAIN: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    const PACKAGE: &str = "http://schemas.openxmlformats.org/package/2006";
    const OFFICE: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let link = |kind: &str, target: &str| {
        format!(
            "<Relationships xmlns='{PACKAGE}/relationships'><Relationship Id='r1' Type='{OFFICE}/{kind}' Target='{target}'/></Relationships>"
        )
    };
    let mut zip = zip::ZipWriter::new(std::fs::File::create(file).unwrap());
    for (name, text) in [
        (
            "[Content_Types].xml",
            format!(
                "<Types xmlns='{PACKAGE}/content-types'><Default Extension='xml' ContentType='application/xml'/></Types>"
            ),
        ),
        ("_rels/.rels", link("officeDocument", "xl/workbook.xml")),
        (
            "xl/workbook.xml",
            format!(
                "<workbook xmlns='{MAIN}' xmlns:r='{OFFICE}'><sheets><sheet name='Items' sheetId='1' r:id='r1'/></sheets></workbook>"
            ),
        ),
        ("xl/_rels/workbook.xml.rels", link("worksheet", "worksheets/sheet1.xml")),
        (
            "xl/worksheets/sheet1.xml",
            format!("<worksheet xmlns='{MAIN}'><sheetData>{rows}</sheetData></worksheet>"),
        ),
    ] {
        zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap();
}

#[test]
fn sheets_are_tables() {
    let file = std::env::temp_dir().join(format!("busbar-data-{}.xlsx", std::process::id()));
    let text = |at: &str, text: &str| format!("<c r='{at}' t='inlineStr'><is><t>{text}</t></is></c>");
    let rows = [
        format!("<row r='2'>{}{}{}</row>", text("B2", "id"), text("C2", "name"), text("D2", "price")),
        format!("<row r='3'><c r='B3'><v>1</v></c>{}<c r='D3'><v>1.25</v></c></row>", text("C3", "b&lt;olt")),
        format!("<row r='4'><c r='B4'><v>2</v></c>{}</row>", text("C4", "nut")),
        format!("<row r='5'><c r='B5'><v>3</v></c>{}</row>", text("C5", "pin")),
    ];
    workbook(&file, &rows.concat());
    let properties = format!("<property name='excel_datasource'>{}</property>", file.display());
    let with = |excel: &str| {
        format!(
            "<query id='all' useConfig='db'>{excel}<result element='R' rowName='Row'><element name='id' column='ID' xsdType='integer'/>\
             <element name='name' column='name'/><element name='price' column='price' xsdType='decimal'/></result></query>{}",
            operation("all", &[])
        )
    };
    let sheet = "<excel><workbookname>items</workbookname><hasheader>true</hasheader><headerrow>2</headerrow><startingrow>3</startingrow>\
         <maxrowcount>2</maxrowcount></excel>";
    let sheet_tested = tested("", &properties, &with(sheet), "");
    assert!(sheet_tested.found.is_empty(), "{:?}", sheet_tested.found);
    assert_eq!(
        get_json(&sheet_tested, "all").body,
        r#"{"R":{"Row":[{"id":1,"name":"b<olt","price":1.25},{"id":2,"name":"nut","price":null}]}}"#
    );
    let all_rows = tested("", &properties, &with(&sheet.replace("<maxrowcount>2</maxrowcount>", "")), "");
    let none = tested("", &properties, &with(&sheet.replace("items", "Orders")), "");
    let none = get_json(&none, "all");
    assert!(none.status == 500 && none.body.contains("it has no sheet Orders: Items"), "{none:?}");
    let with_sql = tested("", &properties, &with("<sql>select * from Items</sql>"), "");
    assert!(with_sql.reports("the query `all` of a workbook has no `excel`"), "{:?}", with_sql.found);
    // A few bytes that stand for gigabytes: cells at both ends of a sheet.
    let far = "<row r='2'><c r='A2'><v>1</v></c></row><row r='1048576'><c r='XFD1048576'><v>2</v></c></row>";
    workbook(&file, far);
    let answer = get_json(&all_rows, "all");
    assert!(answer.status == 500 && answer.body.contains("has more than 67108864 bytes"), "{answer:?}");
    workbook(&file, &far.replace("XFD1048576", "XFE1048577"));
    let answer = get_json(&all_rows, "all");
    assert!(answer.status == 500 && answer.body.contains("DATABASE_ERROR"), "{answer:?}");
    std::fs::write(&file, "no workbook").unwrap();
    let broken = get_json(&sheet_tested, "all");
    assert!(broken.status == 500 && broken.body.contains("DATABASE_ERROR"), "{broken:?}");
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn files_are_tables() {
    let file = std::env::temp_dir().join(format!("busbar-data-{}.csv", std::process::id()));
    std::fs::write(&file, "\u{FEFF}id;name\n1;bolt\n2;\"a;b\"\n3\n4;x\n").unwrap();
    let properties = format!(
        "<property name='csv_datasource'>{}</property><property name='csv_columnseperator'>;</property>\
         <property name='csv_hasheader'>true</property><property name='csv_startingrow'>2</property><property name='csv_maxrowcount'>3</property>",
        file.display()
    );
    let all = "<query id='all' useConfig='db'><result element='R' rowName='Row'><element name='id' column='ID' xsdType='integer'/>\
        <element name='name' column='name'/></result></query>";
    let tested = tested("", &properties, &format!("{all}{}", operation("all", &[])), "");
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    let response = get_json(&tested, "all");
    assert_eq!(
        response.body,
        r#"{"R":{"Row":[{"id":1,"name":"bolt"},{"id":2,"name":"a;b"},{"id":3,"name":null}]}}"#
    );
    std::fs::remove_file(&file).unwrap();
    let gone = get_json(&tested, "all");
    assert!(gone.status == 500 && gone.body.contains("DATABASE_ERROR"), "{gone:?}");
}

/// Excel writes CSV in the code page of the machine, and as UTF-16.
#[test]
fn files_may_have_any_charset() {
    let file = std::env::temp_dir().join(format!("busbar-data-charset-{}.csv", std::process::id()));
    let all = "<query id='all' useConfig='db'><result element='R' rowName='Row'><element name='name' column='Größe'/></result></query>";
    let text = "Größe\nzwölf €\n";
    let windows = b"Gr\xf6\xdfe\nzw\xf6lf \x80\n".to_vec();
    let utf16 = |bytes: fn(u16) -> [u8; 2]| {
        "\u{FEFF}".encode_utf16().chain(text.encode_utf16()).flat_map(bytes).collect()
    };
    let with = |charset: &str| {
        let properties = format!(
            "<property name='csv_datasource'>{}</property><property name='csv_hasheader'>true</property><property name='csv_startingrow'>2</property>\
             <property name='csv_charset'>{charset}</property>",
            file.display()
        );
        tested("", &properties, &format!("{all}{}", operation("all", &[])), "")
    };
    for (charset, bytes) in [
        ("", text.as_bytes().to_vec()),
        ("windows-1252", windows.clone()),
        ("ISO-8859-1", windows.clone()),
        ("", utf16(u16::to_le_bytes)),
        ("", utf16(u16::to_be_bytes)),
        ("windows-1252", utf16(u16::to_le_bytes)),
    ] {
        std::fs::write(&file, &bytes).unwrap();
        let tested = with(charset);
        assert!(tested.found.is_empty(), "{:?}", tested.found);
        let response = get_json(&tested, "all");
        assert_eq!(response.body, r#"{"R":{"Row":[{"name":"zwölf €"}]}}"#, "{charset} {bytes:?}");
    }
    // What is not in the charset is there all the same, and the log says so.
    std::fs::write(&file, b"Gr\xc3\xb6\xc3\x9fe\nzw\xf6lf\n").unwrap();
    assert_eq!(get_json(&with(""), "all").body, "{\"R\":{\"Row\":[{\"name\":\"zw\u{FFFD}lf\"}]}}");
    std::fs::remove_file(&file).unwrap();
    assert!(with("latin-99").reports("there is no charset `latin-99`"));
}

#[test]
fn flows_ask_without_http() {
    let add = "<param name='a' sqlType='INTEGER'/>";
    let inside = [
        query("create", "create table if not exists t (a integer)", ""),
        query("add", "insert into t values (:a)", add),
        query(
            "sum",
            "select sum(a) s from t",
            "<result element='R'><element name='s' column='s' xsdType='integer'/></result>",
        ),
        operation("create", &[]),
        operation("add", &["a"]),
        operation("sum", &[]),
    ]
    .concat();
    let flow = "<proxy name='P'><target><inSequence>\
        <dataServiceCall serviceName='Shop'><source type='inline'/><operations type='single'><operation name='create'/></operations><target type='property' name='none'/></dataServiceCall>\
        <dataServiceCall serviceName='Shop'><source type='inline'/><operations type='batch'>\
        <operation name='add'><param name='a' value='1'/></operation><operation name='add'><param name='a' expression='//n'/></operation></operations><target type='property' name='none'/></dataServiceCall>\
        <dataServiceCall serviceName='Shop'><source type='inline'/><operations type='single'><operation name='sum'/></operations><target type='property' name='sum'/></dataServiceCall>\
        <dataServiceCall serviceName='Shop'><source type='body'/><target type='body'/></dataServiceCall>\
        <property name='Sum' expression='$ctx:sum' scope='transport'/><property name='S' expression=\"$ctx:sum//*[local-name()='s']\" scope='transport'/><respond/></inSequence></target></proxy>";
    let tested = tested("", &memory("flows"), &inside, flow);
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    let response =
        ask(&tested, "POST", "/services/P", &[("Content-Type", "application/xml")], "<sum><n>41</n></sum>");
    assert!(response.status == 200 && response.body.contains("<s>42</s>"), "{response:?}");
    assert!(response.headers.get("Sum").is_some_and(|sum| sum.contains("<s>42</s>")), "{response:?}");
    assert_eq!(response.headers.get("S"), Some("42"), "the property is XML");
}

/// By the name of the parameter of the query, or of that of the operation.
#[test]
fn what_is_exported_in_a_box_goes_to_parameters_of_its_name() {
    let inside = [
        query(
            "first",
            "select 1 a union select 2 a",
            "<result element='R' rowName='r'><element name='a' column='a' export='Found' exportType='ARRAY'/></result>",
        ),
        query(
            "second",
            "select count(*) c, sum(a) s from (select 1 a union select 2 a union select 3 a) where a in (:ids)",
            "<param name='ids' sqlType='INTEGER' paramType='ARRAY'/><result element='S'><element name='c' column='c'/></result>",
        ),
        operation("first", &[]),
        "<operation name='second'><call-query href='second'><with-param name='ids' query-param='found'/></call-query></operation>".to_owned(),
    ]
    .concat();
    let tested = tested("enableBoxcarring='true'", &memory("exported"), &inside, "");
    let boxed = soap(&tested, "<request_box><first/><second/></request_box>");
    assert!(boxed.status == 200 && boxed.body.contains("<c>2</c>"), "{boxed:?}");
    // What the request has comes first.
    let boxed = soap(&tested, "<request_box><first/><second><found>3</found></second></request_box>");
    assert!(boxed.status == 200 && boxed.body.contains("<c>1</c>"), "{boxed:?}");
}

/// WSO2 names the requests for resources in small letters, and answers a box with what the last one says.
#[test]
fn the_answer_to_a_box_is_that_of_the_last_request() {
    let inside = [
        query(
            "one",
            "select :A a",
            "<param name='A' sqlType='INTEGER'/><result element='R'><element name='a' column='a' xsdType='integer'/></result>",
        ),
        query("none", "create table if not exists t (a integer)", ""),
        format!("<resource path='Items/{{A}}' method='GET'>{}</resource>", call("one", &["A"])),
        format!("<resource path='Items' method='POST'>{}</resource>", call("none", &[])),
    ]
    .concat();
    let flow = "<proxy name='P'><target><inSequence><dataServiceCall serviceName='Shop'><source type='inline'/>\
        <operations type='request-box'><operation name='_postitems'/><operation name='_getitems_a'><param name='A' value='7'/></operation>\
        </operations></dataServiceCall><respond/></inSequence></target></proxy>";
    let tested = tested("enableBoxcarring='true'", &memory("boxes"), &inside, flow);
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    for (requests, wanted) in [
        (r#""_getitems_a":{"A":1},"_getItems_A":{"A":2}"#, r#"{"R":{"a":2}}"#),
        (r#""_postitems":{},"_getitems_a":{"A":3}"#, r#"{"R":{"a":3}}"#),
        (r#""_getitems_a":{"A":3},"_postitems":{}"#, "{}"),
    ] {
        let answer = json(&tested, "POST", "request_box", &format!(r#"{{"request_box":{{{requests}}}}}"#));
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.body, format!(r#"{{"DATA_SERVICE_REQUEST_BOX_RESPONSE":{wanted}}}"#), "{requests}");
    }
    let called = ask(&tested, "POST", "/services/P", &[("Content-Type", "application/xml")], "<a/>");
    assert!(
        called.body.contains("DATA_SERVICE_REQUEST_BOX_RESPONSE") && called.body.contains("<a>7</a>"),
        "{called:?}"
    );
}

/// As every key that leads nowhere: a warning when the configuration loads, a fault of the message that needs it.
#[test]
fn a_flow_that_asks_for_what_is_not_there_faults_when_it_gets_there() {
    let calls = |service: &str, operation: &str| {
        format!(
            "<proxy name='P'><target><inSequence><filter source='//n' regex='1'><then><dataServiceCall serviceName='{service}'>\
             <source type='inline'/><operations type='single'><operation name='{operation}'/></operations></dataServiceCall>\
             </then></filter><respond/></inSequence></target></proxy>"
        )
    };
    let inside = format!(
        "{}{}",
        query("one", "select 1 a", "<result element='R'><element name='a' column='a'/></result>"),
        operation("one", &[])
    );
    for (service, name, found) in [
        ("Shopp", "one", "unknown-data-service: there is no data service `Shopp`"),
        ("Shop", "two", "unknown-query: the data service `Shop` has no operation `two`"),
    ] {
        let tested = tested("", &memory("not_there"), &inside, &calls(service, name));
        assert_eq!(tested.found, [found], "{service}");
        let headers = [("Content-Type", "application/xml")];
        let passes = ask(&tested, "POST", "/services/P", &headers, "<r><n>0</n></r>");
        assert_eq!(passes.status, 200, "{passes:?}");
        let faults = ask(&tested, "POST", "/services/P", &headers, "<r><n>1</n></r>");
        assert_eq!(faults.status, 500, "{faults:?}");
    }
}

fn with_one_resource(one: &str, resource: &str) -> Tested {
    tested("", &memory("openapi"), &format!("{one}{resource}"), "")
}

#[test]
fn it_says_what_it_is() {
    let one = query(
        "one",
        "select :a a",
        "<param name='a' sqlType='INTEGER'/><result element='R' rowName='Row'><element name='a' column='a' xsdType='integer'/></result>",
    );
    let tested = tested(
        "serviceNamespace='urn:shop'",
        &memory("wsdl"),
        &format!("{one}{}", operation("one", &["a"])),
        "",
    );
    let wsdl = ask(&tested, "GET", "/services/Shop?wsdl", &[], "");
    for says in [
        "targetNamespace=\"urn:shop\"",
        "name=\"one\"",
        "type=\"xs:int\"",
        "maxOccurs=\"unbounded\"",
        "/services/Shop\"",
    ] {
        assert!(wsdl.status == 200 && wsdl.body.contains(says), "{says}: {wsdl:?}");
    }
    let resource = format!("<resource path='r/{{A}}' method='GET'>{}</resource>", call("one", &["a"]));
    let described = with_one_resource(&one, &resource);
    let openapi = ask(&described, "GET", "/services/Shop?swagger.json", &[], "");
    assert!(openapi.status == 200 && openapi.body.contains(r#""/r/{A}":{"get""#), "{openapi:?}");
    let openapi = ask(&described, "GET", "/services/Shop?openapi.yaml", &[], "");
    assert!(openapi.status == 200 && openapi.body.contains("\n  \"/r/{A}\":\n    \"get\":\n"), "{openapi:?}");
    let response = get(&tested, "one?a=1");
    assert_eq!(response.body, "<R xmlns=\"urn:shop\"><Row><a>1</a></Row></R>");
}

/// What makes classes of a WSDL refuses one that declares an element twice, or that answers with one that is declared nowhere.
#[test]
fn a_wsdl_declares_each_element_of_its_messages_once() {
    let result = |name: &str, more: &str, column: &str| {
        format!(
            "<result element='{name}' rowName='row' {more}><element name='{column}' column='{column}' xsdType='integer'/></result>"
        )
    };
    let inside = [
        // A result that is called like its operation, and two results of one name.
        query("items", "select 1 a", &result("items", "", "a")),
        query("one", "select 1 a", &result("R", "", "a")),
        query("two", "select 1 b", &result("R", "", "b")),
        query("far", "select 1 a", &result("F", "defaultNamespace='urn:far'", "a")),
        query(
            "mixed",
            "select 1 a",
            "<result element='M' rowName='row'><element name='a' column='a' namespace='urn:far' requiredRoles='clerk'/><call-query href='one'/></result>",
        ),
        query("save", "select 1", ""),
        ["items", "one", "two", "far", "mixed"].map(|name| operation(name, &[])).concat(),
        "<operation name='save' returnRequestStatus='true'><call-query href='save'/></operation>".to_owned(),
    ]
    .concat();
    let attributes = "serviceNamespace='urn:shop' enableBatchRequests='true' enableBoxcarring='true'";
    let described = tested(attributes, &memory("declared"), &inside, "");
    let wsdl = ask(&described, "GET", "/services/Shop?wsdl", &[], "").body;
    let mut schemas = HashMap::new();
    for schema in wsdl.split("<xs:schema targetNamespace=\"").skip(1) {
        let (namespace, rest) = schema.split_once('"').unwrap();
        let inside = rest.split_once('>').unwrap().1.split_once("</xs:schema>").unwrap().0;
        assert!(schemas.insert(namespace, inside).is_none(), "{namespace}");
    }
    let parts: Vec<(&str, &str)> = wsdl
        .split("<part xmlns:own=\"")
        .skip(1)
        .map(|part| {
            let (namespace, rest) = part.split_once('"').unwrap();
            (namespace, rest.split_once("element=\"own:").unwrap().1.split_once('"').unwrap().0)
        })
        .collect();
    assert_eq!(parts.len(), 8, "{parts:?}");
    for (namespace, name) in parts {
        let declaration = format!("<xs:element name=\"{name}\"");
        assert!(schemas[namespace].contains(&declaration), "{namespace} {name}: {wsdl}");
    }
    for request in ["items_batch_req", "save_batch_req", "request_box"] {
        assert!(wsdl.contains(&format!("element=\"ns:{request}\"")), "{request}: {wsdl}");
    }
    // A schema that is not valid is reported where the configuration loads.
    for (namespace, inside) in &schemas {
        let entry = format!(
            "<localEntry key='schema'><xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' xmlns:ns='urn:shop' targetNamespace='{namespace}' elementFormDefault='qualified'>{inside}</xs:schema></localEntry>\
             <proxy name='V'><target><inSequence><validate><schema key='schema'/><on-fail><respond/></on-fail></validate><respond/></inSequence></target></proxy>"
        );
        let validating = tested("", &memory("validating"), "", &entry);
        assert!(
            validating.found.iter().all(|finding| !finding.contains("schema")),
            "{namespace}: {:?}",
            validating.found
        );
    }
    // What is sent is what is described.
    let entry = format!(
        "<localEntry key='schema'><xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' xmlns:ns='urn:shop' targetNamespace='urn:shop' elementFormDefault='qualified'>{}</xs:schema></localEntry>\
         <proxy name='V'><target><inSequence><validate><schema key='schema'/><on-fail><payloadFactory media-type='xml'><format><invalid xmlns=''/></format><args/></payloadFactory><respond/></on-fail></validate><respond/></inSequence></target></proxy>",
        schemas["urn:shop"]
    );
    let validating = tested("", &memory("validating2"), "", &entry);
    for name in ["items", "one", "two", "mixed"] {
        let sent = get(&described, name).body;
        let answer = ask(&validating, "POST", "/services/V", &[("Content-Type", "application/xml")], &sent);
        assert!(answer.status == 200 && !answer.body.contains("invalid"), "{name}: {sent}: {answer:?}");
    }
}
