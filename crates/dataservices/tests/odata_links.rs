//! OData over foreign keys (`$expand`, paths), pages, and batches, on the three databases.

#![allow(clippy::unwrap_used)]

mod support;

use flow::testing::{Response, Tested};
use serde_json::{Value, json};
use support::{Server, ask, get, memory, operation, query, source, with_odata};

const BASE: &str = "/odata/Shop/db";

/// Makers with goods, which have notes; and a good may be a part of another one.
fn shop(properties: &str) -> Tested {
    let tables = [
        "create table makers (id integer primary key, name varchar(40) not null)",
        "create table goods (id integer primary key, maker integer, name varchar(40) not null, price integer, part_of integer, \
         foreign key (maker) references makers (id), foreign key (part_of) references goods (id))",
        "create table notes (good integer not null, number integer not null, text varchar(40), primary key (good, number), \
         foreign key (good) references goods (id))",
    ];
    let mut inside = format!("<config id='none'>{properties}</config>");
    for (number, table) in tables.iter().enumerate() {
        let name = format!("make{number}");
        inside += &(query(&name, table, "") + &operation(&name, &[]));
    }
    let tested = with_odata(properties, &inside);
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    for number in 0..tables.len() {
        let made = get(&tested, &format!("make{number}"));
        assert_eq!(made.status, 202, "{made:?}");
    }
    let rows = [
        ("makers", json!({ "id": 1, "name": "Nut & Co" })),
        ("makers", json!({ "id": 2, "name": "Idle" })),
        ("goods", json!({ "id": 10, "maker": 1, "name": "engine", "price": 9 })),
        ("goods", json!({ "id": 11, "maker": 1, "name": "bolt", "price": 1, "part_of": 10 })),
        ("goods", json!({ "id": 12, "maker": null, "name": "screw", "price": 2, "part_of": 10 })),
        ("notes", json!({ "good": 11, "number": 1, "text": "rusty" })),
        ("notes", json!({ "good": 11, "number": 2, "text": "old" })),
    ];
    for (table, row) in rows {
        let made = send(&tested, "POST", &format!("/{table}"), &[], &row);
        assert_eq!(made.status, 201, "{made:?}");
    }
    tested
}

fn send(tested: &Tested, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Response {
    let headers = [headers, &[("Content-Type", "application/json")][..]].concat();
    ask(tested, method, &format!("{BASE}{path}"), &headers, &body.to_string())
}

fn read(tested: &Tested, path: &str) -> (u16, Value) {
    let response = ask(tested, "GET", &format!("{BASE}{}", path.replace(' ', "%20")), &[], "");
    let body = serde_json::from_str(&response.body).unwrap_or_else(|_| Value::from(response.body.as_str()));
    (response.status, body)
}

/// A value without what OData says about it.
fn plain(value: &Value) -> Value {
    match value {
        Value::Array(all) => all.iter().map(plain).collect(),
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !name.starts_with("@odata"));
            Value::Object(kept.map(|(name, value)| (name.clone(), plain(value))).collect())
        }
        other => other.clone(),
    }
}

fn promises(properties: &str) {
    let tested = shop(properties);
    expands(&tested);
    paths(&tested);
    pages(&tested);
    changes(&tested);
    parts(&tested);
    json_batches(&tested);
    let pools = tested.bus.services().kept.get::<sql::Pools>().all();
    assert_eq!(pools.iter().map(|pool| pool.status().in_use).sum::<usize>(), 0);
}

fn expands(tested: &Tested) {
    let metadata = ask(tested, "GET", &format!("{BASE}/$metadata"), &[], "").body;
    for says in [
        "<NavigationProperty Name=\"goods\" Type=\"Collection(Shop.db.goods)\"/>",
        "<NavigationProperty Name=\"makers\" Type=\"Shop.db.makers\"><ReferentialConstraint Property=\"maker\" ReferencedProperty=\"id\"/></NavigationProperty>",
        "<NavigationProperty Name=\"goods\" Type=\"Shop.db.goods\"><ReferentialConstraint Property=\"part_of\" ReferencedProperty=\"id\"/></NavigationProperty>",
        "<NavigationProperty Name=\"goods_part_of\" Type=\"Collection(Shop.db.goods)\"/>",
        "<NavigationPropertyBinding Path=\"makers\" Target=\"makers\"/>",
    ] {
        assert!(metadata.contains(says), "{says}: {metadata}");
    }
    for (path, wanted) in [
        (
            "/makers?$expand=goods($select=name;$orderby=price desc)&$orderby=id",
            json!([{ "id": 1, "name": "Nut & Co", "goods": [{ "name": "engine" }, { "name": "bolt" }] }, { "id": 2, "name": "Idle", "goods": [] }]),
        ),
        (
            "/goods?$select=name&$expand=makers&$orderby=id",
            json!([
                { "name": "engine", "makers": { "id": 1, "name": "Nut & Co" } },
                { "name": "bolt", "makers": { "id": 1, "name": "Nut & Co" } },
                { "name": "screw", "makers": null },
            ]),
        ),
        (
            "/makers?$select=id&$expand=goods($select=id;$filter=price gt 5;$count=true)&$filter=id eq 1",
            json!([{ "id": 1, "goods@odata.count": 1, "goods": [{ "id": 10 }] }]),
        ),
        (
            "/makers?$select=id&$expand=goods($select=id;$top=1;$skip=1;$count=true;$orderby=name)&$filter=id eq 1",
            json!([{ "id": 1, "goods@odata.count": 2, "goods": [{ "id": 10 }] }]),
        ),
        (
            "/makers?$select=id&$filter=id eq 1&$expand=goods($select=id;$orderby=id;$expand=notes($select=text;$orderby=number),goods_part_of($select=name;$orderby=id))",
            json!([{ "id": 1, "goods": [
                { "id": 10, "notes": [], "goods_part_of": [{ "name": "bolt" }, { "name": "screw" }] },
                { "id": 11, "notes": [{ "text": "rusty" }, { "text": "old" }], "goods_part_of": [] },
            ] }]),
        ),
    ] {
        let (status, body) = read(tested, path);
        assert_eq!((status, plain(&body["value"])), (200, wanted), "{path}: {body}");
    }
    let (_, body) = read(tested, "/makers?$select=name&$expand=goods($select=id)");
    assert!(body["@odata.context"].as_str().unwrap().ends_with("$metadata#makers(name,goods(id))"), "{body}");
    let (_, one) = read(tested, "/goods(11)?$expand=*");
    assert_eq!(one["notes"].as_array().unwrap().len(), 2, "{one}");
    assert_eq!((&one["goods"]["name"], &one["makers"]["id"]), (&json!("engine"), &json!(1)), "{one}");
    assert!(one["goods"]["@odata.etag"].is_string(), "{one}");
    let deep = "goods_part_of($expand=".repeat(6) + "notes" + &")".repeat(6);
    for (path, status) in [
        ("/makers?$expand=nobody", 400),
        ("/makers?$expand=goods(", 400),
        ("/makers?$expand=goods($top=x)", 400),
        ("/makers?$expand=goods(top)", 400),
        ("/makers?$expand=goods($select=nobody)", 400),
        ("/makers?$expand=goods($filter=1 or 1=1)", 400),
        ("/makers?$expand=goods($levels=3)", 501),
        ("/makers?$expand=goods/$ref", 501),
        (&format!("/goods?$expand={deep}"), 400),
    ] {
        let (found, body) = read(tested, path);
        assert_eq!(found, status, "{path}: {body}");
        assert!(body["error"]["message"].is_string(), "{body}");
    }
}

fn paths(tested: &Tested) {
    let (status, body) = read(tested, "/makers(1)/goods?$filter=price lt 5&$select=name");
    assert_eq!((status, plain(&body["value"])), (200, json!([{ "name": "bolt" }])));
    assert_eq!(read(tested, "/makers(1)/goods/$count").1, 2);
    assert_eq!(read(tested, "/makers(2)/goods").1["value"], json!([]));
    assert_eq!(read(tested, "/goods(11)/makers").1["name"], "Nut & Co");
    assert_eq!(read(tested, "/goods(11)/makers/name/$value").1, "Nut & Co");
    assert_eq!(read(tested, "/goods(11)/goods/goods_part_of(12)/name").1["value"], "screw");
    // The link of a row leads to no row, to none of these, or the row is not there.
    assert_eq!(read(tested, "/goods(12)/makers").0, 204);
    for path in ["/makers(2)/goods(10)", "/makers(9)/goods", "/goods(12)/makers/name", "/makers(1)/nobody"] {
        assert_eq!(read(tested, path).0, 404, "{path}");
    }
    let made = send(tested, "POST", "/makers(2)/goods", &[], &json!({ "id": 20, "name": "wheel" }));
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(read(tested, "/goods(20)").1["maker"], 2);
    assert_eq!(send(tested, "DELETE", "/makers(1)/goods(20)", &[], &json!({})).status, 404);
    assert_eq!(send(tested, "DELETE", "/makers(2)/goods(20)", &[], &json!({})).status, 204);
}

fn pages(tested: &Tested) {
    for size in [1, 2] {
        for query in ["$select=id", "$select=id&$expand=notes($select=number)"] {
            let (mut ids, mut path) = (Vec::new(), format!("/goods?{query}"));
            let prefer = format!("odata.maxpagesize={size}");
            loop {
                let response = ask(tested, "GET", &format!("{BASE}{path}"), &[("Prefer", &prefer)], "");
                assert_eq!(
                    response.headers.get("Preference-Applied").is_some(),
                    path.is_ascii(),
                    "{response:?}"
                );
                let body: Value = serde_json::from_str(&response.body).unwrap();
                let rows = body["value"].as_array().unwrap();
                assert!(rows.len() <= size, "{body}");
                ids.extend(rows.iter().map(|row| row["id"].as_i64().unwrap()));
                let Some(next) = body["@odata.nextLink"].as_str() else { break };
                path = next.split("/db").nth(1).unwrap().to_owned();
            }
            assert_eq!(ids, [10, 11, 12], "{query}");
        }
    }
    // The rest without the preference has the same pages; `$top` counts over all of them.
    let ask_for =
        |path: &str| ask(tested, "GET", &format!("{BASE}{path}"), &[("Prefer", "odata.maxpagesize=1")], "");
    let first: Value = serde_json::from_str(&ask_for("/goods?$top=2&$orderby=id%20desc").body).unwrap();
    let next = first["@odata.nextLink"].as_str().unwrap().split("/db").nth(1).unwrap();
    let (_, second) = read(tested, next);
    assert_eq!(
        (&second["value"][0]["id"], &second["@odata.nextLink"]),
        (&json!(11), &Value::Null),
        "{second}"
    );
}

fn changes(tested: &Tested) {
    // A row that is not there is added; with `If-Match` it is missed.
    let row = json!({ "name": "Late" });
    assert_eq!(send(tested, "PATCH", "/makers(7)", &[("If-Match", "*")], &row).status, 404);
    let made = send(tested, "PUT", "/makers(7)", &[], &row);
    assert_eq!(made.status, 201, "{made:?}");
    assert!(made.headers.get("Location").is_some_and(|place| place.ends_with("/makers(7)")), "{made:?}");
    assert_eq!(send(tested, "PUT", "/makers(7)", &[("If-None-Match", "*")], &row).status, 412);
    assert_eq!(send(tested, "PUT", "/makers(7)/name", &[], &json!({ "value": "Later" })).status, 204);
    let prefer = [("Prefer", "return=representation")];
    let changed = send(tested, "PATCH", "/makers(7)", &prefer, &json!({ "name": "Latest" }));
    assert_eq!((changed.status, changed.body.contains("\"Latest\"")), (200, true), "{changed:?}");
    let minimal =
        send(tested, "POST", "/makers", &[("Prefer", "return=minimal")], &json!({ "id": 8, "name": "x" }));
    assert_eq!((minimal.status, minimal.body.as_str()), (204, ""), "{minimal:?}");
    assert!(minimal.headers.get("OData-EntityId").is_some(), "{minimal:?}");
    assert_eq!(ask(tested, "DELETE", &format!("{BASE}/goods(10)/price"), &[], "").status, 204);
    assert_eq!(read(tested, "/goods(10)/price").0, 204);
    // Over a link: PUT keeps what the path says, and a row may leave the link.
    let good = json!({ "id": 21, "name": "lamp", "price": 3 });
    assert_eq!(send(tested, "POST", "/makers(7)/goods", &[], &good).status, 201);
    assert_eq!(send(tested, "PUT", "/makers(7)/goods(21)", &[], &json!({ "name": "bulb" })).status, 204);
    assert_eq!(
        plain(&read(tested, "/goods(21)?$select=maker,price").1),
        json!({ "maker": 7, "price": null })
    );
    let moved = send(tested, "PATCH", "/makers(7)/goods(21)", &prefer, &json!({ "maker": 8 }));
    assert_eq!((moved.status, moved.body.contains("\"maker\":8")), (200, true), "{moved:?}");
    assert_eq!(send(tested, "DELETE", "/makers(8)/goods(21)", &[], &json!({})).status, 204);
    let bound = json!({ "id": 21, "name": "lamp", "makers@odata.bind": "makers(7)" });
    assert_eq!(send(tested, "POST", "/goods", &[], &bound).status, 501);
    for path in ["/makers(7)", "/makers(8)"] {
        assert_eq!(send(tested, "DELETE", path, &[], &json!({})).status, 204);
    }
    // A text that the database does not store is the client's.
    let nul = send(tested, "PATCH", "/makers(1)", &[], &json!({ "name": "a\0b" }));
    if nul.status != 204 {
        assert_eq!(nul.status, 400, "{nul:?}");
        assert!(nul.body.contains("NUL"), "{nul:?}");
    }
    assert_eq!(send(tested, "PATCH", "/makers(1)", &[], &json!({ "name": "Nut & Co" })).status, 204);
}

fn batch(tested: &Tested, content_type: &str, prefer: &str, body: &str) -> Response {
    let headers = [("Content-Type", content_type), ("Prefer", prefer)];
    ask(tested, "POST", &format!("{BASE}/$batch"), &headers, body)
}

fn part(boundary: &str, id: &str, request: &str, body: &str) -> String {
    format!(
        "--{boundary}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: {id}\r\n\r\n\
         {request} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\r\n{body}\r\n"
    )
}

fn parts(tested: &Tested) {
    let set = |parts: &[String]| {
        format!("--b\r\nContent-Type: multipart/mixed; boundary=s\r\n\r\n{}--s--\r\n", parts.concat())
    };
    let whole = [
        part("b", "1", "GET makers(1)?$select=name", ""),
        set(&[
            part("s", "2", "POST makers", r#"{"id":30,"name":"Set"}"#),
            part("s", "3", "POST $2/goods", r#"{"id":31,"name":"of set"}"#),
            part("s", "4", "PATCH http://localhost/odata/Shop/db/goods(31)", r#"{"price":5}"#),
        ]),
        part("b", "5", "GET /odata/Shop/db/makers(30)/goods?$select=price", ""),
        "--b--\r\n".to_owned(),
    ]
    .concat();
    let answer = batch(tested, "multipart/mixed; boundary=b", "", &whole);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(
        answer.headers.get("Content-Type").unwrap().starts_with("multipart/mixed; boundary="),
        "{answer:?}"
    );
    let statuses: Vec<&str> =
        answer.body.match_indices("HTTP/1.1 ").map(|(at, _)| &answer.body[at + 9..at + 12]).collect();
    assert_eq!(statuses, ["200", "201", "201", "204", "200"], "{}", answer.body);
    assert!(
        answer.body.contains("\"name\":\"Nut & Co\"") && answer.body.contains("\"price\":5"),
        "{}",
        answer.body
    );
    assert!(answer.body.contains("Content-ID: 3"), "{}", answer.body);

    // A change set happens as a whole or not at all; what follows is left out, unless the client wants it.
    let failing = [
        set(&[
            part("s", "1", "POST makers", r#"{"id":40,"name":"lost"}"#),
            part("s", "2", "POST makers", r#"{"id":1,"name":"there already"}"#),
        ]),
        part("b", "3", "GET makers/$count", ""),
        "--b--\r\n".to_owned(),
    ]
    .concat();
    for (prefer, wanted) in [("", &["409"][..]), ("odata.continue-on-error", &["409", "200"])] {
        let answer = batch(tested, "multipart/mixed; boundary=b", prefer, &failing);
        let statuses: Vec<&str> =
            answer.body.match_indices("HTTP/1.1 ").map(|(at, _)| &answer.body[at + 9..at + 12]).collect();
        assert_eq!((answer.status, statuses.as_slice()), (200, wanted), "{}", answer.body);
        assert_eq!(read(tested, "/makers(40)").0, 404);
    }
    let get = part("b", "1", "GET makers", "");
    for (content_type, body, status) in [
        ("multipart/mixed; boundary=b", "--b\r\n", 400),
        ("multipart/mixed", get.as_str(), 400),
        ("text/plain", "x", 415),
        ("multipart/mixed; boundary=b", "--b\r\nContent-Type: text/plain\r\n\r\nGET x\r\n--b--\r\n", 400),
        ("multipart/mixed; boundary=b", "--b\r\nContent-Type: application/http\r\n\r\n\r\n--b--\r\n", 400),
    ] {
        let answer = batch(tested, content_type, "", body);
        assert_eq!(answer.status, status, "{content_type} {body}: {answer:?}");
    }
    assert_eq!(send(tested, "DELETE", "/goods(31)", &[], &json!({})).status, 204);
    assert_eq!(send(tested, "DELETE", "/makers(30)", &[], &json!({})).status, 204);
}

fn json_batches(tested: &Tested) {
    let run = |prefer: &str, requests: Value| {
        let answer = batch(tested, "application/json", prefer, &json!({ "requests": requests }).to_string());
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        let responses = body["responses"].as_array().unwrap().clone();
        let statuses: Vec<(String, u64)> = responses
            .iter()
            .map(|one| (one["id"].as_str().unwrap().to_owned(), one["status"].as_u64().unwrap()))
            .collect();
        (statuses, responses)
    };
    let id = |id: &str, status: u64| (id.to_owned(), status);
    let (statuses, responses) = run(
        "",
        json!([
            { "id": "a", "method": "GET", "url": "makers(1)/name/$value" },
            { "id": "b", "atomicityGroup": "g", "method": "POST", "url": "/makers", "body": { "id": 50, "name": "Json" } },
            { "id": "c", "atomicityGroup": "g", "method": "post", "url": "$b/goods", "body": { "id": 51, "name": "of json" } },
            { "id": "d", "method": "GET", "url": "/odata/Shop/db/makers(50)/goods?$select=id", "dependsOn": ["c"] },
        ]),
    );
    assert_eq!(statuses, [id("a", 200), id("b", 201), id("c", 201), id("d", 200)], "{responses:?}");
    assert_eq!(responses[0]["body"], "Nut & Co");
    assert_eq!(responses[3]["body"]["value"], json!([{ "id": 51 }]));
    let failing = json!([
        { "id": "a", "atomicityGroup": "g", "method": "POST", "url": "makers", "body": { "id": 60, "name": "lost" } },
        { "id": "b", "atomicityGroup": "g", "method": "POST", "url": "makers", "body": { "id": 1, "name": "there" } },
        { "id": "c", "method": "GET", "url": "makers(1)", "dependsOn": ["a"] },
        { "id": "d", "method": "GET", "url": "http://else.where/makers(1)" },
        { "id": "e", "method": "DELETE", "url": "makers(50)/goods(51)" },
        { "id": "f", "method": "GET", "url": "makers(1)", "dependsOn": ["g"] },
        { "id": "h", "method": "GET", "url": "makers(1)", "dependsOn": ["e"] },
    ]);
    let (statuses, _) = run("", failing.clone());
    assert_eq!(statuses, [id("a", 424), id("b", 409)]);
    let (statuses, _) = run("continue-on-error", failing);
    assert_eq!(
        statuses,
        [id("a", 424), id("b", 409), id("c", 424), id("d", 400), id("e", 204), id("f", 424), id("h", 200)]
    );
    assert_eq!(read(tested, "/makers(60)").0, 404);
    assert_eq!(send(tested, "DELETE", "/makers(50)", &[], &json!({})).status, 204);
    for wrong in [
        json!([]),
        json!({ "requests": 1 }),
        json!({ "requests": [1] }),
        json!({ "requests": [{ "id": "a" }] }),
        json!({ "requests": [{ "id": "a", "method": "GET", "url": "x" }, { "id": "a", "method": "GET", "url": "x" }] }),
        json!({ "requests": [{ "id": "a", "method": "GET", "url": "makers", "dependsOn": ["a"] }] }),
        json!({ "requests": [{ "id": "a", "method": "GET", "url": "makers", "dependsOn": ["b"] }, { "id": "b", "method": "GET", "url": "makers" }] }),
        json!({ "requests": [{ "id": "a", "method": "GET", "url": "makers", "dependsOn": "b" }] }),
    ] {
        assert_eq!(batch(tested, "application/json", "", &wrong.to_string()).status, 400, "{wrong}");
    }
}

#[test]
fn on_sqlite() {
    promises(&memory("odata-links"));
}

#[test]
fn on_postgresql() {
    let Some(server) = Server::start("postgresql") else { return };
    promises(&source(&format!("jdbc:postgresql://127.0.0.1:{}/bus", server.port)));
}

#[test]
fn on_mariadb() {
    let Some(server) = Server::start("mariadb") else { return };
    promises(&source(&format!("jdbc:mariadb://127.0.0.1:{}/bus", server.port)));
}
