use super::*;
use serde_json::json;

fn store() -> Value {
    json!({
        "store": {
            "book": [
                {"category": "reference", "author": "Nigel Rees", "title": "Sayings", "price": 8.95},
                {"category": "fiction", "author": "Evelyn Waugh", "title": "Sword", "price": 12.99, "tags": ["war", "old"]},
                {"category": "fiction", "author": "J. R. R. Tolkien", "title": "Rings", "price": 22.99, "isbn": "0-395", "tags": []},
            ],
            "bicycle": {"color": "red", "price": 19.95, "odd key": 1},
        },
        "limit": 10,
        "nums": [3, 1, 2],
        "none": null,
        "members": {"members": [1]},
        "cats": ["fiction", "poetry"],
    })
}

#[test]
fn json_eval() {
    let root = store();
    for (path, expected) in [
        ("$.store.bicycle.color", Some("red")),
        ("store.bicycle.color", Some("red")),
        ("$['store']['bicycle']['odd key']", Some("1")),
        ("$.limit.", Some("10")),
        ("$.none", Some("null")),
        ("$.missing", None),
        ("$.missing.x[*]", None),
        ("$.store.missing[*]", None),
        ("$.store.*.missing", Some("[]")),
        ("$.nums[-1]", Some("2")),
        ("$.nums[9]", None),
        ("$.nums[0,2]", Some("[3,2]")),
        ("$.nums[1:]", Some("[1,2]")),
        ("$.nums[:2]", Some("[3,1]")),
        ("$.nums.[0]", Some("3")),
        ("$.limit[*]", Some("[]")),
        ("$.members", Some(r#"{"members":[1]}"#)),
        ("$..color", Some(r#"["red"]"#)),
        ("$..book[0].title", Some(r#"["Sayings"]"#)),
        ("$.store.book[*].price", Some("[8.95,12.99,22.99]")),
        ("$.store.bicycle['color','price']", Some(r#"{"color":"red","price":19.95}"#)),
        ("$.store['book','bicycle'].color", Some(r#"["red"]"#)),
        ("$.store.book[?(@.price > 10)].title", Some(r#"["Sword","Rings"]"#)),
        ("$.store.book[?(@.price > $.limit && @.isbn)].title", Some(r#"["Rings"]"#)),
        ("$.store.book[?(@.author =~ /.*tolkien/i)].title", Some(r#"["Rings"]"#)),
        ("$.store.book[?(@.author =~ /Tolkien/)].title", Some("[]")),
        ("$.store.book[?(!(@.isbn))].title", Some(r#"["Sayings","Sword"]"#)),
        ("$.store.book[?(!@.isbn || @.price<9)].title", Some(r#"["Sayings","Sword"]"#)),
        ("$.store.book[?(@.category in ['fiction', 'x'])].title", Some(r#"["Sword","Rings"]"#)),
        ("$.store.book[?(@.category in $.cats)].title", Some(r#"["Sword","Rings"]"#)),
        ("$.store.book[?(@.category nin ['fiction'])].title", Some(r#"["Sayings"]"#)),
        ("$.store.book[?(@.tags subsetof ['war','old','x'])].title", Some(r#"["Sword","Rings"]"#)),
        ("$.store.book[?(@.tags anyof ['war'])].title", Some(r#"["Sword"]"#)),
        ("$.store.book[?(@.tags noneof ['war'])].title", Some(r#"["Rings"]"#)),
        ("$.store.book[?(@.tags size 2)].title", Some(r#"["Sword"]"#)),
        ("$.store.book[?(@.tags empty true)].title", Some(r#"["Rings"]"#)),
        ("$.store.book[?(@.tags.length() > 1)].title", Some(r#"["Sword"]"#)),
        ("$.store.book[?(@.price == '8.95')].title", Some(r#"["Sayings"]"#)),
        ("$.store.bicycle[?(@.price > 10)].color", Some(r#"["red"]"#)),
        ("$..[?(@.isbn)].title", Some(r#"["Rings"]"#)),
        // Of several names within a path, those that are absent are left out.
        ("$['none','store'].bicycle.color", Some(r#"["red"]"#)),
        ("$['none','store'].none", Some("[]")),
        ("$['none'].bicycle", None),
        ("$.nums.length()", Some("3")),
        ("$.store.book.size()", Some("3")),
        ("$.nums.sum()", Some("6.0")),
        ("$.nums.avg()", Some("2.0")),
        ("$.nums.min()", Some("1.0")),
        ("$.nums.max()", Some("3.0")),
        ("$..price.max()", Some("22.99")),
        ("$.store.book[*].price.min()", Some("[8.95]")),
        ("$.nums.first()", Some("3")),
        ("$.nums.last()", Some("2")),
        ("$.nums.append(7, \"x\")", Some(r#"[3,1,2,7,"x"]"#)),
        ("$.store.bicycle.keys()", Some(r#"["color","price","odd key"]"#)),
        ("$.concat($.store.bicycle.color, \"-\", $.limit)", Some("red-10")),
        ("$.sum($.nums, 4)", Some("10.0")),
        ("$.cats.sum()", None),
        // What follows a bracket, `*` or a function needs no dot.
        ("$.store.book[0]title", Some("Sayings")),
        ("$.store['bicycle']color", Some("red")),
        ("$.store.book[?(@.isbn)]title", Some(r#"["Rings"]"#)),
        ("$.store.book[0]length()", Some("4")),
        ("$.store.*color", Some(r#"["red"]"#)),
        ("$.store[*][0]*.title", Some("[]")),
        ("$[*]book[?(@['price']title == 1)].title", Some("[]")),
        // One last character there is not read.
        ("$.nums[0]]", Some("3")),
        ("$.nums[0])", Some("3")),
        ("$.nums[0];", Some("3")),
        ("$.nums[0]x", Some("3")),
        ("$.nums[0]é", Some("3")),
        ("$.nums[0]*", Some("3")),
        ("$.nums[", Some("[3,1,2]")),
        ("$.store.book[?(@.tags[0]*)].title", Some(r#"["Sword"]"#)),
        ("$.store.book[?(@.tags[0]x == 'war')].title", Some(r#"["Sword"]"#)),
        ("$.nums.length())", Some("3")),
        // `$.` goes before a path without it, also where that begins with a dot.
        (".color", Some(r#"["red"]"#)),
        (".limit", Some("[10]")),
        // A function that does not exist is found when the path is run.
        ("$.limit.nope()", None),
        ("$.limit.nope($.nums, (1))", None),
    ] {
        let compiled = JsonPath::compile(path, Dialect::Jayway).unwrap_or_else(|e| panic!("{path}: {e}"));
        assert_eq!(compiled.json_eval_text(&root).unwrap().as_deref(), expected, "{path}");
    }
}

#[test]
fn numbers_as_text() {
    let root: Value = serde_json::from_str(
        r#"{"a":1.50,"b":1e3,"c":12345678.9,"d":123456789012345678901234567890,"e":[1.50]}"#,
    )
    .expect("valid JSON");
    for (path, expected) in [
        ("a", "1.5"),
        ("b", "1000"),
        ("c", "12345678.9"),
        ("d", "123456789012345678901234567890"),
        ("e", "[1.50]"),
    ] {
        let compiled = JsonPath::compile(path, Dialect::Jayway).expect("valid path");
        assert_eq!(compiled.json_eval_text(&root).unwrap().as_deref(), Some(expected), "{path}");
    }
}

#[test]
fn places() {
    let root = json!({"a": [{"b'": 1}, {"b'": 2}], "x/y~": 3});
    let path = JsonPath::compile("$.a[*][\"b'\"]", Dialect::Rfc9535).expect("valid path");
    let places = path.pointers(&root).unwrap();
    assert_eq!(
        places.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [r"$['a'][0]['b\'']", r"$['a'][1]['b\'']"]
    );
    assert_eq!(places.first().map(NormalizedPath::to_pointer).as_deref(), Some("/a/0/b'"));
    let path = JsonPath::compile("$['x/y~']", Dialect::Jayway).expect("valid path");
    let place = path.pointers(&root).unwrap().remove(0);
    assert_eq!(place.to_pointer(), "/x~1y~0");
    assert_eq!(place.get(&root), Some(&json!(3)));
}

#[test]
fn changes() {
    let before = json!({"a": [1, 2, 3, 4], "o": {"x": 1, "y": 2}});
    for (path, set, delete) in [
        (
            "$.a[0]",
            json!({"a": [9, 2, 3, 4], "o": {"x": 1, "y": 2}}),
            json!({"a": [2, 3, 4], "o": {"x": 1, "y": 2}}),
        ),
        (
            "$.a[?(@ > 2)]",
            json!({"a": [1, 2, 9, 9], "o": {"x": 1, "y": 2}}),
            json!({"a": [1, 2], "o": {"x": 1, "y": 2}}),
        ),
        (
            "$.o['x','y']",
            json!({"a": [1, 2, 3, 4], "o": {"x": 9, "y": 9}}),
            json!({"a": [1, 2, 3, 4], "o": {}}),
        ),
        ("$.o.z", before.clone(), before.clone()),
        ("$", json!(9), before.clone()),
        ("$..*", json!({"a": 9, "o": 9}), json!({})),
    ] {
        let compiled = JsonPath::compile(path, Dialect::Jayway).expect("valid path");
        let mut root = before.clone();
        compiled.set(&mut root, &json!(9)).unwrap();
        assert_eq!(root, set, "set {path}");
        let mut root = before.clone();
        compiled.delete(&mut root).unwrap();
        assert_eq!(root, delete, "delete {path}");
    }
}

#[test]
fn standard() {
    let root = store();
    for (path, expected) in [
        ("$.nums[::-1]", json!([2, 1, 3])),
        ("$.store.book[?@.price<10 || @.isbn].title", json!(["Sayings", "Rings"])),
        ("$.store.bicycle[?@ == 'red']", json!(["red"])),
        ("$.store.book[?match(@.author, 'J.*')].price", json!([22.99])),
        ("$.store.book[?count(@.*) > 5].title", json!(["Rings"])),
        ("$.missing", json!([])),
    ] {
        let compiled = JsonPath::compile(path, Dialect::Rfc9535).unwrap_or_else(|e| panic!("{path}: {e}"));
        let found: Value = compiled.select(&root).nodes.into_iter().map(Cow::into_owned).collect();
        assert_eq!(found, expected, "{path}");
    }
}

#[test]
fn remarks() {
    for (path, spans) in [
        ("$.a[0]", &[][..]),
        ("$.a[0]name", &[]),
        ("$.a[0]]", &[(6, 7)]),
        ("$.a.nope()", &[(4, 8)]),
        ("$.a.nope())", &[(4, 8), (10, 11)]),
    ] {
        let compiled = JsonPath::compile(path, Dialect::Jayway).unwrap_or_else(|e| panic!("{path}: {e}"));
        let found: Vec<_> =
            compiled.remarks().iter().map(|remark| (remark.span.start, remark.span.end)).collect();
        assert_eq!(found, spans, "{path}");
    }
}

#[test]
fn errors() {
    for (path, dialect, span) in [
        ("$.a b", Dialect::Jayway, 3..4),
        ("$.a[?(@.b ==)]", Dialect::Jayway, 12..13),
        ("$.a.nope(", Dialect::Jayway, 8..9),
        ("$a", Dialect::Jayway, 1..2),
        ("$$", Dialect::Jayway, 1..2),
        ("$.a[0] b", Dialect::Jayway, 6..7),
        ("$..", Dialect::Jayway, 1..2),
        ("", Dialect::Jayway, 0..0),
        ("$.a[?(@.b =~ /(/)]", Dialect::Jayway, 13..16),
        ("a", Dialect::Rfc9535, 0..1),
        ("$[?@.*==1]", Dialect::Rfc9535, 3..6),
        ("$[01]", Dialect::Rfc9535, 2..4),
    ] {
        let error = JsonPath::compile(path, dialect).expect_err(path);
        assert_eq!(error.span, span, "{path}: {error}");
    }
    let deep = format!("$[?({}@.a{})]", "(".repeat(5000), ")".repeat(5000));
    for dialect in [Dialect::Jayway, Dialect::Rfc9535] {
        assert!(JsonPath::compile(&deep, dialect).is_err());
    }
}

#[test]
fn work_is_limited() {
    let mut root = json!(1);
    for _ in 0..60 {
        root = json!([root, 1, 2, 3]);
    }
    let path = JsonPath::compile("$..*..*..*..*..*..*", Dialect::Rfc9535).expect("valid path");
    assert!(matches!(path.select(&root).failure, Some(Failure::Limit(_))));
}

#[test]
fn a_selection_that_is_stopped_is_no_empty_one() {
    let mut root = Value::Array((0..1000).map(|id| json!({ "id": id })).collect());
    let path = JsonPath::compile("$..id", Dialect::Jayway).expect("valid path");
    let stopped = Failure::Stopped(Stop::Long);
    let (found, _) = meter::inline(100, || {
        let selected = path.select(&root).failure;
        let text = path.json_eval_text(&root);
        let changed = [path.set(&mut root, &json!(0)), path.delete(&mut root)];
        (selected, text, path.pointers(&root).err(), changed)
    });
    let none = || Err(stopped.clone());
    assert_eq!(found, (Some(stopped.clone()), Err(stopped.clone()), Some(stopped.clone()), [none(), none()]));
    assert_eq!((root[7]["id"].clone(), path.pointers(&root).map(|all| all.len())), (json!(7), Ok(1000)));
    let by_pattern = JsonPath::compile("$[?(@.id =~ /[0-9].*/)]", Dialect::Jayway).expect("valid path");
    let long = json!([{ "id": "1".repeat(20_000) }]);
    let (found, _) = meter::inline(1000, || by_pattern.select(&long).failure);
    assert_eq!(found, Some(stopped));
}

/// Every text one edit away from a path compiles or is refused, with a span inside of it, and runs.
#[test]
fn edited_paths() {
    let root = store();
    let pieces = [
        "", "[", "]", "(", ")", "'", "\"", "\\", "..", "*", "?", "@", "$", "!", "/", "-", ":", ",", "9", " ",
        "é", "\0", "&&", "=~",
    ];
    for seed in [
        "$.store.book[?(@.price > 10 && !@.isbn)].title",
        "$..book[?(@.author =~ /.*R/i)]['a', 'title'][-1:2]",
        "$.concat($.limit, \"-\", @.nums.sum())",
        "$..[?match(@.author, 'J.*') || length(@.tags) == 2][0, 'a', ::-1]",
        "$[?(@.tags subsetof ['war', {\"a\": 1.5e3}])]",
    ] {
        for (at, c) in seed.char_indices() {
            for piece in pieces {
                for skipped in [0, c.len_utf8()] {
                    let text = format!("{}{piece}{}", &seed[..at], &seed[at + skipped..]);
                    for dialect in [Dialect::Jayway, Dialect::Rfc9535] {
                        match JsonPath::compile(&text, dialect) {
                            Ok(path) => drop(path.select_with_paths(&root)),
                            Err(error) => {
                                assert!(text.get(error.span.clone()).is_some(), "{text}: {:?}", error.span)
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn places_are_filled_when_the_path_is_run() {
    let root = json!({"a": [1, 2, 3, 4], "b": [{"n": "x", "v": 1}, {"n": "y", "v": 9}]});
    for (path, given, expected) in [
        ("$.a[{0}]", json!([1]), json!([2])),
        ("$['a'][{0}]", json!([-1]), json!([4])),
        ("$[{0}][0]", json!(["a"]), json!([1])),
        ("$.a[{0},3]", json!([0]), json!([1, 4])),
        ("$.a[{0}:]", json!([2.0]), json!([3, 4])),
        ("$.a[1:{0}]", json!([3]), json!([2, 3])),
        ("$.b[?(@.v > {0} && @.n == {1})].n", json!([5, "y"]), json!(["y"])),
        ("$.b[?(@.n in {0})].v", json!([["x", "z"]]), json!([1])),
        ("$.a[{0}]", json!(["x"]), json!([])),
        ("$.a[{0}]", json!([7]), json!([])),
        ("$.a[{0}]", json!([]), json!([])),
    ] {
        let compiled = JsonPath::compile_open(path).unwrap();
        let selection = compiled.select_given(&root, given.as_array().unwrap());
        let found: Value = selection.nodes.into_iter().map(std::borrow::Cow::into_owned).collect();
        assert_eq!(found, expected, "{path} {given}");
    }
    for path in ["$.a[{x}]", "$.a[{0}", "$.a[?(@ == {0)]"] {
        assert!(JsonPath::compile_open(path).is_err(), "{path}");
    }
    assert!(JsonPath::compile("$.a[{0}]", Dialect::Jayway).is_err());
}
