//! OData of tables on the three databases: SQLite, and PostgreSQL and MariaDB where they are installed (`tests/services/install`).

#![allow(clippy::unwrap_used)]

mod support;

use flow::testing::{Response, Tested};
use serde_json::{Value, json};
use support::{Server, ask, get, memory, operation, query, source, with_odata};

const BASE: &str = "/odata/Shop/db";

/// A service whose operations make the tables, and which serves them.
fn shop(properties: &str, dialect: &str) -> Tested {
    let (key, stamp, bytes, guid) = match dialect {
        "postgresql" => ("id serial primary key", "timestamp", "bytea", "uuid"),
        "mysql" => ("id integer primary key auto_increment", "datetime", "blob", "varchar(36)"),
        _ => ("id integer primary key autoincrement", "timestamp", "blob", "varchar(36)"),
    };
    let inside = [
        query("one", &format!("create table items ({key}, name varchar(40) not null, price decimal(10,2), sold boolean, since date, at {stamp}, data {bytes}, tag {guid}, big bigint, part double precision)"), ""),
        query("two", "create table parts (item integer, number varchar(10), weight double precision, primary key (item, number))", ""),
        query("three", "create view cheap as select name, price from items where price < 2", ""),
        operation("one", &[]),
        operation("two", &[]),
        operation("three", &[]),
    ]
    .concat();
    let more = format!("<config id='none'>{properties}</config>{inside}");
    let tested = with_odata(properties, &more);
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    for name in ["one", "two", "three"] {
        let made = get(&tested, name);
        assert_eq!(made.status, 202, "{made:?}");
    }
    tested
}

fn read(tested: &Tested, path: &str) -> (u16, Value) {
    let response = ask(tested, "GET", &format!("{BASE}{path}"), &[], "");
    let body = serde_json::from_str(&response.body).unwrap_or_else(|_| Value::from(response.body.as_str()));
    (response.status, body)
}

fn send(tested: &Tested, method: &str, path: &str, body: &Value) -> Response {
    let json = [("Content-Type", "application/json")];
    ask(tested, method, &format!("{BASE}{path}"), &json, &body.to_string())
}

/// The ids of a collection.
fn ids(tested: &Tested, query: &str) -> Vec<i64> {
    let query = query.replace(' ', "%20");
    let (status, body) = read(tested, &format!("/items?{query}"));
    assert_eq!(status, 200, "{query}: {body}");
    body["value"].as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap()).collect()
}

fn promises(properties: &str, dialect: &str) {
    let tested = shop(properties, dialect);
    let about = read(&tested, "").1;
    let sets: Vec<&str> =
        about["value"].as_array().unwrap().iter().map(|set| set["name"].as_str().unwrap()).collect();
    assert_eq!(sets, ["cheap", "items", "parts"]);
    let metadata = ask(&tested, "GET", &format!("{BASE}/$metadata"), &[], "");
    assert_eq!(metadata.headers.get("OData-Version"), Some("4.0"));
    assert_eq!(metadata.headers.get("Content-Type"), Some("application/xml;charset=UTF-8"));
    for says in [
        "Namespace=\"Shop.db\"",
        "<EntityType Name=\"parts\"><Key><PropertyRef Name=\"item\"/><PropertyRef Name=\"number\"/></Key>",
        "<Property Name=\"name\" Type=\"Edm.String\" Nullable=\"false\"/>",
        "<Property Name=\"price\" Type=\"Edm.Decimal\" Scale=\"variable\"/>",
        "<Property Name=\"sold\" Type=\"Edm.Boolean\"/>",
        "<Property Name=\"since\" Type=\"Edm.Date\"/>",
        "<Property Name=\"at\" Type=\"Edm.DateTimeOffset\"/>",
        "<Property Name=\"data\" Type=\"Edm.Binary\"/>",
        "<Property Name=\"big\" Type=\"Edm.Int64\"/>",
        "<Property Name=\"part\" Type=\"Edm.Double\"/>",
        "<EntitySet Name=\"items\" EntityType=\"Shop.db.items\"/>",
    ] {
        assert!(metadata.body.contains(says), "{says}: {}", metadata.body);
    }

    // Rows come and are found by their keys.
    let tag = "01234567-89ab-cdef-0123-456789abcdef";
    let bolt = json!({
        "name": "bo'lt; --", "price": 1.25, "sold": true, "since": "2026-11-23", "at": "2026-11-23T10:15:30",
        "data": "AAEC_w==", "tag": tag, "big": 9007199254740993_i64, "part": 0.5,
    });
    let made = send(&tested, "POST", "/items", &bolt);
    assert_eq!(made.status, 201, "{made:?}");
    assert!(
        made.headers.get("Location").is_some_and(|location| location.ends_with("/odata/Shop/db/items(1)")),
        "{made:?}"
    );
    let row: Value = serde_json::from_str(&made.body).unwrap();
    assert!(row["@odata.context"].as_str().unwrap().ends_with("$metadata#items/$entity"));
    for (name, wanted) in bolt.as_object().unwrap() {
        let value = &row[name];
        match name.as_str() {
            "at" => assert!(value.as_str().unwrap().starts_with("2026-11-23"), "{row}"),
            "price" => assert_eq!(value.to_string().parse::<f64>().unwrap(), 1.25),
            _ => assert_eq!(value, wanted, "{name} {dialect}"),
        }
    }
    for (name, price) in [("nut", json!(0.75)), ("screw", json!(3)), ("é%", Value::Null)] {
        let made = send(&tested, "POST", "/items", &json!({ "name": name, "price": price, "big": 7 }));
        assert_eq!(made.status, 201, "{made:?}");
    }
    assert_eq!(read(&tested, "/items(2)").1["name"], "nut");
    assert_eq!(read(&tested, "/items(id=3)?$select=name").1["name"], "screw");
    assert_eq!(read(&tested, "/items(1)/name").1["value"], "bo'lt; --");
    assert_eq!(read(&tested, "/items(1)/name/$value").1, "bo'lt; --");
    assert_eq!(read(&tested, "/items(4)/price").0, 204);
    let made = send(&tested, "POST", "/parts", &json!({ "item": 1, "number": "a'b/c", "weight": 1.5 }));
    assert_eq!(made.status, 201, "{made:?}");
    let place = made.headers.get("Location").unwrap().split("/db").nth(1).unwrap().to_owned();
    assert_eq!(place, "/parts(item=1,number='a''b%2Fc')");
    assert_eq!(read(&tested, &place).1["weight"], 1.5);

    // Filters, order, pages.
    let nested = "$filter=".to_owned() + &"floor(".repeat(30) + "price" + &")".repeat(30) + " eq 1";
    for (query, wanted) in [
        ("$orderby=id", &[1, 2, 3, 4][..]),
        ("$orderby=name desc&$filter=id lt 3", &[2, 1]),
        ("$filter=price gt 0.75 and price le 3&$orderby=id", &[1, 3]),
        ("$filter=price eq null", &[4]),
        ("$filter=price ne 3&$orderby=id", &[1, 2, 4]),
        ("$filter=not (price gt 1)", &[2]),
        ("$filter=sold eq true", &[1]),
        ("$filter=sold", &[1]),
        ("$filter=name eq 'bo''lt; --'", &[1]),
        ("$filter=contains(name,'u') and startswith(name,'n')", &[2]),
        ("$filter=endswith(name,'ew') or endswith(name,'%25')&$orderby=id", &[3, 4]),
        ("$filter=tolower(name) eq 'nut' or length(name) eq 5&$orderby=id", &[2, 3]),
        ("$filter=indexof(name,'u') eq 1 and substring(name,1) eq 'ut'", &[2]),
        ("$filter=concat(name,'!') eq 'nut!'", &[2]),
        ("$filter=since eq 2026-11-23 and year(since) eq 2026 and day(since) eq 23", &[1]),
        ("$filter=at gt 2026-11-23T10:00:00 and hour(at) eq 10", &[1]),
        ("$filter=tag eq 01234567-89ab-cdef-0123-456789abcdef", &[1]),
        ("$filter=big eq 9007199254740993", &[1]),
        ("$filter=big mod 2 eq 1 and big add 1 eq 8&$orderby=id", &[2, 3, 4]),
        ("$filter=price mul 2 eq 6", &[3]),
        ("$filter=id in (2,4)&$orderby=id desc", &[4, 2]),
        ("$filter=id in ()", &[]),
        ("$top=2", &[1, 2]),
        ("$skip=3", &[4]),
        ("$top=1&$skip=1&$orderby=id", &[2]),
        ("$top=0", &[]),
        ("$filter=floor(price) eq 1 and ceiling(price) eq 2", &[1]),
        ("$filter=floor(price mul -1) eq -2 and ceiling(price mul -1) eq -1", &[1]),
        (nested.as_str(), &[1]),
        // What looks like SQL is a value.
        ("$filter=name eq ''' or 1=1 --'", &[]),
        ("$filter=contains(name,'%25''; drop table items; --')", &[]),
    ] {
        assert_eq!(ids(&tested, query), wanted, "{query} {dialect}");
    }
    let (_, counted) = read(&tested, "/items?$count=true&$top=1&$select=id,name&$filter=id%20gt%201");
    assert_eq!(counted["@odata.count"], 3);
    assert!(counted["@odata.context"].as_str().unwrap().ends_with("$metadata#items(id,name)"), "{counted}");
    assert_eq!(counted["value"], json!([{ "id": 2, "name": "nut" }]));
    assert_eq!(read(&tested, "/items/$count").1, 4);
    assert_eq!(read(&tested, "/items/$count?$filter=price%20gt%201").1, 2);
    assert_eq!(read(&tested, "/cheap/$count").1, 2);

    // What is no request of OData is the client's, and nothing happens.
    for (method, path, body, status) in [
        ("GET", "/items?$filter=nobody%20eq%201", json!({}), 400),
        ("GET", "/items?$filter=id%20eq%201;drop%20table%20items", json!({}), 400),
        ("GET", "/items?$orderby=(select%201)", json!({}), 400),
        ("GET", "/items?$select=id,1", json!({}), 400),
        ("GET", "/items?$top=-1", json!({}), 400),
        ("GET", "/items?$top=1;x", json!({}), 400),
        ("GET", "/items?$top=1&$top=2", json!({}), 400),
        ("GET", "/items?$top=1&top=2", json!({}), 400),
        ("GET", "/items/$count?$filter=id%20eq%201&$filter=id%20eq%202", json!({}), 400),
        ("GET", "/items(1)?$select=id&$select=name", json!({}), 400),
        ("GET", "/items?$expand=parts", json!({}), 400),
        ("GET", "/items?$search=nut", json!({}), 501),
        ("GET", "/items?$skiptoken=1", json!({}), 400),
        ("GET", "/items?$format=atom", json!({}), 406),
        ("GET", "/items('1')", json!({}), 400),
        ("GET", "/items(1%20or%201=1)", json!({}), 400),
        ("GET", "/items(9)", json!({}), 404),
        ("GET", "/cheap(1)", json!({}), 400),
        ("GET", "/items;drop", json!({}), 404),
        ("GET", "/nobody", json!({}), 404),
        ("GET", "/$batch", json!({}), 405),
        ("POST", "/$batch", json!({}), 400),
        ("POST", "/items", json!({ "name": 7 }), 400),
        ("POST", "/items", json!({ "name": "x", "nobody": 1 }), 400),
        ("POST", "/items", json!({ "name": "x", "price": "cheap" }), 400),
        ("POST", "/items", json!({ "name": null }), 400),
        ("POST", "/items", json!({ "price": 1 }), 409),
        ("POST", "/items", json!([]), 400),
        ("POST", "/items(1)", json!({}), 405),
        ("POST", "/parts", json!({ "item": 1, "number": "a'b/c" }), 409),
        ("PUT", "/items(1)/id", json!({ "value": 7 }), 400),
        ("PUT", "/items(1)/name", json!({ "name": "x" }), 400),
        ("PUT", "/items(9)/name", json!({ "value": "x" }), 404),
        ("PUT", "/items(1)/$ref", json!({}), 501),
        ("PATCH", "/items", json!({ "name": "x" }), 405),
        ("DELETE", "/items", json!({}), 405),
        ("DELETE", "/items(9)", json!({}), 404),
    ] {
        let response = match method {
            "GET" => ask(&tested, "GET", &format!("{BASE}{path}"), &[], ""),
            _ => send(&tested, method, path, &body),
        };
        assert_eq!(response.status, status, "{method} {path} {body}: {response:?}");
        let error: Value = serde_json::from_str(&response.body).unwrap();
        assert!(error["error"]["message"].is_string(), "{response:?}");
    }
    let xml = ask(&tested, "POST", &format!("{BASE}/items"), &[("Content-Type", "text/xml")], "<a/>");
    assert_eq!(xml.status, 415, "{xml:?}");
    let broken = ask(&tested, "POST", &format!("{BASE}/items"), &[("Content-Type", "application/json")], "{");
    assert_eq!(broken.status, 400, "{broken:?}");
    assert_eq!(ids(&tested, "$orderby=id"), [1, 2, 3, 4]);
    // A config without `enableOData`, another service.
    assert_eq!(ask(&tested, "GET", "/odata/Shop/none/items", &[], "").status, 404);
    assert_eq!(ask(&tested, "GET", "/odata/Other/db/items", &[], "").status, 404);

    // Rows change and go.
    assert_eq!(send(&tested, "PATCH", "/items(2)", &json!({ "price": 0.8, "id": 99 })).status, 204);
    let row = read(&tested, "/items(2)").1;
    assert_eq!((row["name"].as_str(), row["big"].as_i64()), (Some("nut"), Some(7)), "{row}");
    assert_eq!(row["price"].to_string().parse::<f64>().unwrap(), 0.8);
    assert_eq!(send(&tested, "PUT", "/items(2)", &json!({ "name": "nuts" })).status, 204);
    let row = read(&tested, "/items(2)").1;
    assert_eq!(
        (&row["name"], &row["price"], &row["big"]),
        (&json!("nuts"), &Value::Null, &Value::Null),
        "{row}"
    );
    let gone = send(&tested, "DELETE", &place, &json!({}));
    assert_eq!((gone.status, gone.body.as_str()), (204, ""), "{gone:?}");
    assert_eq!(read(&tested, &place).0, 404);

    concurrent(&tested);

    // Many rows come as a stream.
    for number in 0..300 {
        let long = "x".repeat(30);
        let made = send(&tested, "POST", "/items", &json!({ "name": format!("{long}{number}") }));
        assert_eq!(made.status, 201, "{made:?}");
    }
    assert_eq!(ids(&tested, "$filter=id gt 4").len(), 300);
    let streamed = read(&tested, "/items?$top=1&$orderby=id").1;
    assert!(
        streamed["value"][0]["@odata.etag"].as_str().is_some_and(|etag| etag.starts_with("W/")),
        "{streamed}"
    );
    let pools = tested.bus.services().kept.get::<sql::Pools>().all();
    assert_eq!(pools.iter().map(|pool| pool.status().in_use).sum::<usize>(), 0);
}

/// Rows that nobody else has changed: an ETag for each state of a row, and of many who count at once nobody's count is lost.
fn concurrent(tested: &Tested) {
    let made = send(tested, "POST", "/items", &json!({ "name": "counter", "big": 0 }));
    let place = made.headers.get("Location").unwrap().split("/db").nth(1).unwrap().to_owned();
    let etag = |response: &Response| response.headers.get("ETag").unwrap_or_default().to_owned();
    let target = format!("{BASE}{place}");
    let first = etag(&made);
    let read = |headers: &[(&str, &str)]| ask(tested, "GET", &target, headers, "");
    assert!(first.starts_with("W/\"") && etag(&read(&[])) == first, "{made:?}");
    let row: Value = serde_json::from_str(&read(&[]).body).unwrap();
    assert_eq!(row["@odata.etag"], first);
    let unchanged = read(&[("If-None-Match", &first)]);
    assert_eq!((unchanged.status, unchanged.body.as_str()), (304, ""), "{unchanged:?}");
    let change = |method: &str, headers: &[(&str, &str)]| {
        let headers = [headers, &[("Content-Type", "application/json")][..]].concat();
        ask(tested, method, &target, &headers, r#"{"name":"counter","big":1}"#).status
    };
    assert_eq!(change("PATCH", &[("If-Match", "W/\"0\"")]), 412);
    assert_eq!(change("PUT", &[("If-Match", "\"a\", \"b\"")]), 412);
    assert_eq!(change("DELETE", &[("If-Match", "\"a\"")]), 412);
    assert_eq!(change("PATCH", &[("If-Match", &format!("\"x\", {first}"))]), 204);
    assert_eq!(change("PATCH", &[("If-Match", &first)]), 412);
    assert_eq!(change("PATCH", &[("If-Match", "*")]), 204);
    assert_ne!(etag(&read(&[])), first);
    const CLIENTS: i64 = 8;
    const TIMES: i64 = 5;
    let client = async || {
        for _ in 0..TIMES {
            loop {
                let (status, headers, body) = tested.answer("GET", &target, &[], b"").await;
                assert_eq!(status, 200);
                let row: Value = serde_json::from_slice(&body).unwrap();
                let body = json!({ "big": row["big"].as_i64().unwrap() + 1 }).to_string();
                let headers =
                    [("Content-Type", "application/json"), ("If-Match", headers.get("ETag").unwrap())];
                match tested.answer("PATCH", &target, &headers, body.as_bytes()).await.0 {
                    204 => break,
                    412 | 409 => {}
                    other => panic!("{other}"),
                }
            }
        }
    };
    support::run(futures_util::future::join_all((0..CLIENTS).map(|_| client())));
    let row: Value = serde_json::from_str(&read(&[]).body).unwrap();
    assert_eq!(row["big"], 1 + CLIENTS * TIMES);
    // Of many who add the same key at once one does.
    let target = format!("{BASE}/parts");
    let add = async || {
        let body = br#"{"item":77,"number":"x","weight":1}"#;
        tested.answer("POST", &target, &[("Content-Type", "application/json")], body).await.0
    };
    let added = support::run(futures_util::future::join_all((0..CLIENTS).map(|_| add())));
    assert_eq!(added.iter().filter(|status| **status == 201).count(), 1, "{added:?}");
    assert!(added.iter().all(|status| matches!(status, 201 | 409)), "{added:?}");
    for place in [place.as_str(), "/parts(item=77,number='x')"] {
        assert_eq!(send(tested, "DELETE", place, &json!({})).status, 204);
    }
}

#[test]
fn on_sqlite() {
    promises(&memory("odata"), "sqlite");
}

#[test]
fn on_postgresql() {
    let Some(server) = Server::start("postgresql") else { return };
    promises(&source(&format!("jdbc:postgresql://127.0.0.1:{}/bus", server.port)), "postgresql");
}

#[test]
fn on_mariadb() {
    let Some(server) = Server::start("mariadb") else { return };
    promises(&source(&format!("jdbc:mariadb://127.0.0.1:{}/bus", server.port)), "mysql");
}

/// SQLite takes a name in quotes that it does not know for a text: a column that is gone had its own name as its value.
#[test]
fn tables_that_change_are_read_again() {
    let properties = memory("changing");
    let inside = [
        query("make", "create table t (id integer primary key, gone varchar(9))", ""),
        query("fill", "insert into t values (1, 'x')", ""),
        query("change", "alter table t rename column gone to here", ""),
        operation("make", &[]),
        operation("fill", &[]),
        operation("change", &[]),
    ]
    .concat();
    let tested = with_odata(&properties, &format!("<config id='none'>{properties}</config>{inside}"));
    for name in ["make", "fill"] {
        assert_eq!(get(&tested, name).status, 202);
    }
    assert_eq!(read(&tested, "/t").1["value"][0]["gone"], "x");
    assert_eq!(get(&tested, "change").status, 202);
    for _ in 0..3000 {
        let (status, body) = read(&tested, "/t");
        if status == 200 {
            assert_eq!(body["value"][0]["here"], "x", "{body}");
            return;
        }
        assert!(body["error"]["message"].as_str().unwrap_or_default().contains("no such column"), "{body}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the table is not read again");
}

/// Clients of a data service that is left out learn that it is not available; its address is no one else's.
#[test]
fn a_service_that_is_left_out_answers_for_its_tables() {
    let tested = support::loaded(
        "<data xmlns='' name='Shop'><config id='db' enableOData='true'/><query id='q' useConfig='none'><sql>select 1</sql></query></data>
        <sequence name='main'><payloadFactory media-type='text'><format>main</format><args/></payloadFactory><respond/></sequence>",
    );
    assert!(tested.found.iter().any(|finding| finding.contains("has no `url`")), "{:?}", tested.found);
    assert_eq!(ask(&tested, "GET", BASE, &[], "").status, 503);
    let other = ask(&tested, "GET", "/odata/Other/db", &[], "");
    assert_eq!((other.status, other.body.as_str()), (200, "main"));
}
