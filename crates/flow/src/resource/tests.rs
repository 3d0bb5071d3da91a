use super::*;

fn template(text: &str) -> ResourceTemplate {
    ResourceTemplate::compile(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn templates() {
    // The values of all variables in their order, or none where it does not match.
    for (text, path, expected) in [
        ("/", "/", Some(vec![])),
        ("/", "/?a=b", Some(vec![])),
        ("/", "/x", None),
        ("/a", "/a/", Some(vec![])),
        ("/a/", "/a", Some(vec![])),
        ("/a", "/a?x=1", Some(vec![])),
        ("/a", "/a/?x=1", Some(vec![])),
        ("/a", "/A", None),
        ("/{a}", "/x", Some(vec!["x"])),
        ("/{a}", "/x?y=1", Some(vec!["x"])),
        ("/{a}", "/", None),
        ("/{a}/{b}", "/x/y/", Some(vec!["x", "y"])),
        ("/{a}/{b}", "/x/y/z", None),
        ("/{a}/{b}", "//y", None),
        ("/{a}", "/x+y", None),
        ("/{a}", "/x,y", None),
        ("/{a}", "/x%2By%20z", Some(vec!["x+y z"])),
        ("/{a}", "/x%2Fy", Some(vec!["x/y"])),
        ("/{a}-{b}", "/x-y-z", Some(vec!["x", "y-z"])),
        ("/{a}.json", "/x.json", Some(vec!["x"])),
        ("/{a:3}", "/abc", Some(vec!["abc"])),
        ("/{a:3}", "/ab", None),
        ("/{a,b}", "/x,y", Some(vec!["x", "y"])),
        ("/{a,b}", "/x", Some(vec!["x", ""])),
        ("/r/{+a}", "/r/x/y?z=1", Some(vec!["x/y?z=1"])),
        ("/r/{+a}/end", "/r/x/end", Some(vec!["x"])),
        ("/r/{+a}/end", "/r/x/y/end", None),
        ("/x{.f}", "/x.json", Some(vec!["json"])),
        ("/x{/s}", "/x/y", Some(vec!["y"])),
        ("/x{/s,t}", "/x/y/z", Some(vec!["y", "z"])),
        ("/{a}/to/{a}", "/x/to/x", Some(vec!["x"])),
        ("/{a}/to/{a}", "/x/to/y", None),
        ("/foo/*", "/foo/", Some(vec![])),
        ("/foo/*", "/foo/x/y?z", Some(vec![])),
        ("/foo/*", "/foo", None),
        ("/foo*", "/foobar", Some(vec![])),
        ("/{a}/*", "/x", Some(vec!["x"])),
        ("/{a}/*", "/x/y/z", Some(vec!["x"])),
        ("/{a}*", "/x?y=1", Some(vec!["x"])),
        ("/*", "/", Some(vec![])),
        ("/s?name={n}&x={y}", "/s?name=a&x=b", Some(vec!["a", "b"])),
        ("/s?name={n}&x={y}", "/s?x=b&name=a", None),
        ("/s?name={n}&x={y}", "/s", None),
        ("/s?name={n}&x={y}", "/s?name=&x=", Some(vec!["", ""])),
        ("/s?name={+n}&x={+y}", "/s?name=a:b&x=c/d", Some(vec!["a:b", "c/d"])),
        ("/s?name={n}", "/s?name=a&z=1", None),
    ] {
        let found = template(text).matches(path).expect("well encoded");
        let found = found.map(|variables| variables.into_iter().map(|(_, value)| value).collect::<Vec<_>>());
        let expected = expected.map(|values| values.into_iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(found, expected, "{text} {path}");
    }
    let other = template("/{a}").matches("/caf%E9").expect("well encoded");
    assert_eq!(other, Some(vec![("a".to_owned(), "caf\u{fffd}".to_owned())]), "not UTF-8");
    for path in ["/%zz", "/%", "/%4"] {
        assert!(template("/{a}").matches(path).is_err(), "{path}");
    }
    assert_eq!(template("/{a}/x/{+b.c}").variables().collect::<Vec<_>>(), ["a", "b.c"]);
}

#[test]
fn what_is_no_operator_belongs_to_the_name() {
    for (text, name) in [("/{path+}", "path+"), ("/{a b}", "a b"), ("/{a*}", "a*")] {
        let found = template(text).matches("/x").expect("well encoded");
        assert_eq!(found, Some(vec![(name.to_owned(), "x".to_owned())]), "{text}");
        assert_eq!(template(text).matches("/x/y").expect("well encoded"), None, "{text} takes one segment");
    }
}

#[test]
fn faulty_templates() {
    for (text, span) in
        [("/{a", 1..2), ("/a}", 2..3), ("/{}", 1..3), ("/{?a}", 1..5), ("/{a,}", 1..5), ("/{a:x}", 1..6)]
    {
        assert_eq!(ResourceTemplate::compile(text).expect_err(text).span, span, "{text}");
    }
}

#[test]
fn mappings() {
    for (mapping, path, expected) in [
        ("/a/b", "/a/b", true),
        ("/a/b/", "/a/b?x", true),
        ("/a/b", "/a/b/", true),
        ("/a/b", "/a/b/c", false),
        ("/a/*", "/a", true),
        ("/a/*", "/a/b/c?x", true),
        ("/a/*", "/ab", false),
        ("/*", "/", true),
        ("/*", "/x", true),
        ("*.jsp", "/a/b.jsp?x", true),
        ("*.jsp", "/a/b?x.jsp", false),
    ] {
        assert_eq!(UrlMapping::compile(mapping).expect(mapping).matches(path), expected, "{mapping} {path}");
    }
    for mapping in ["", "a", "*", "*jsp"] {
        assert!(UrlMapping::compile(mapping).is_err(), "{mapping}");
    }
}

fn rule(methods: &str, path: &str) -> ResourceRule {
    let path = match path.split_once(' ') {
        Some(("map", mapping)) => PathRule::Mapping(UrlMapping::compile(mapping).expect(mapping)),
        _ if path.is_empty() => PathRule::Default,
        _ => PathRule::Template(template(path)),
    };
    let methods = methods.split(' ').filter(|m| !m.is_empty()).map(str::to_owned).collect();
    ResourceRule { methods, path, content_type: None, user_agent: None, protocol: None, binds_to: Vec::new() }
}

fn request<'a>(method: &'a str, sub_path: &'a str) -> RequestFacts<'a> {
    RequestFacts {
        method,
        sub_path,
        content_type: None,
        has_body: false,
        user_agent: None,
        secure: false,
        listener: "default",
        is_last: false,
    }
}

fn index(choice: &Choice) -> Option<usize> {
    match choice {
        Choice::Resource { index, .. } => Some(*index),
        _ => None,
    }
}

#[test]
fn order_of_resources() {
    let resources = [
        rule("GET", "/items/{id}"),
        rule("GET", "/items/special"),
        rule("POST", "/items/{id}"),
        rule("GET", "map /files/*"),
        rule("GET", "map /files/deep/*"),
        rule("GET", "map /files/one"),
        rule("GET", "map *.txt"),
        rule("GET", ""),
        rule("OPTIONS", "map /*"),
    ];
    for (method, path, expected) in [
        ("GET", "/items/5", 0),
        ("GET", "/items/special", 0),
        ("POST", "/items/5", 2),
        ("GET", "/files/x.txt", 3),
        ("GET", "/files/deep/x", 4),
        ("GET", "/files/one/", 5),
        ("GET", "/items/x.txt", 6),
        ("GET", "/else/where", 7),
        ("OPTIONS", "/items/5", 8),
    ] {
        assert_eq!(index(&choose(&resources, &request(method, path))), Some(expected), "{method} {path}");
    }
    let found = choose(&resources, &request("POST", "/items/a%20b"));
    assert_eq!(found, Choice::Resource { index: 2, variables: vec![("id".into(), "a b".into())] });
}

#[test]
fn refusals() {
    let resources = [
        rule("GET PUT", "/a"),
        rule("POST", "/a"),
        rule("GET", "/v/{x}"),
        ResourceRule { content_type: Some("application/xml".into()), ..rule("POST", "/typed") },
        rule("", "/any"),
    ];
    let allow = |methods: &[&str]| methods.iter().map(|m| (*m).to_owned()).collect::<Vec<_>>();
    for (method, path, expected) in [
        ("GET", "/b", Choice::NotFound),
        ("HEAD", "/a", Choice::MethodNotAllowed { allow: allow(&["GET", "POST", "PUT"]) }),
        ("HEAD", "/v/1", Choice::MethodNotAllowed { allow: allow(&["GET"]) }),
        ("GET", "/v/%zz", Choice::BadRequest),
        // Those of the other resource of the path too: a browser that wants to post asks here.
        ("OPTIONS", "/a", Choice::Options { index: 0, allow: allow(&["GET", "PUT", "POST"]) }),
        ("OPTIONS", "/v/1", Choice::Options { index: 2, allow: allow(&["GET"]) }),
        ("OPTIONS", "/any", Choice::Options { index: 4, allow: allow(&["GET", "POST", "PUT", "DELETE"]) }),
        ("OPTIONS", "/b", Choice::NotFound),
        ("PATCH", "/any", Choice::Resource { index: 4, variables: vec![] }),
        ("POST", "/typed", Choice::Resource { index: 3, variables: vec![] }),
    ] {
        assert_eq!(choose(&resources, &request(method, path)), expected, "{method} {path}");
    }
    let listed = [rule("OPTIONS GET", "/a")];
    let options = request("OPTIONS", "/a");
    assert_eq!(index(&choose(&listed, &options)), Some(0));
    let last = RequestFacts { is_last: true, ..options };
    assert_eq!(choose(&listed, &last), Choice::Options { index: 0, allow: allow(&["OPTIONS", "GET"]) });
}

#[test]
fn filters() {
    let typed = |text: &str| [ResourceRule { content_type: Some(text.into()), ..rule("POST", "/a") }];
    for (wanted, given, accepted) in [
        ("application/json", Some("application/json"), true),
        ("application/json", Some("Application/JSON; charset=utf-8"), true),
        ("application/json; charset=UTF-8", Some("application/json;charset=utf-8;x=y"), true),
        ("application/json; charset=UTF-8", Some("application/json"), false),
        ("application/json", Some("application/xml"), false),
        ("application/json", None, false),
    ] {
        let facts = RequestFacts { content_type: given, has_body: true, ..request("POST", "/a") };
        let expected = if accepted { Some(0) } else { None };
        assert_eq!(index(&choose(&typed(wanted), &facts)), expected, "{wanted} {given:?}");
    }
    let by_agent = [
        ResourceRule {
            user_agent: Some(UserAgent::compile("curl/.*|x").expect("valid")),
            ..rule("GET", "/a")
        },
        rule("GET", "/{any}"),
    ];
    for (agent, expected) in [(Some("curl/8"), 0), (Some("my curl/8"), 1), (Some("xx"), 1), (None, 1)] {
        let facts = RequestFacts { user_agent: agent, ..request("GET", "/a") };
        assert_eq!(index(&choose(&by_agent, &facts)), Some(expected), "{agent:?}");
    }
    let secure = [ResourceRule { protocol: Some(Protocol::Https), ..rule("GET", "/a") }];
    assert_eq!(choose(&secure, &request("GET", "/a")), Choice::BadRequest);
    assert_eq!(index(&choose(&secure, &RequestFacts { secure: true, ..request("GET", "/a") })), Some(0));
}

/// Every template and path one edit away from a good one is matched or refused.
#[test]
fn edited_templates() {
    let pieces = ["", "{", "}", "/", "*", "?", "%", "%4", "é", ",", "+", "#", ":", "\0"];
    let edits = |seed: &str| {
        let mut out = Vec::new();
        for (at, c) in seed.char_indices() {
            for piece in pieces {
                out.push(format!("{}{piece}{}", &seed[..at], &seed[at..]));
                out.push(format!("{}{piece}{}", &seed[..at], &seed[at + c.len_utf8()..]));
            }
        }
        out
    };
    let paths = edits("/a/é%20b/c,d.json?x=1");
    for text in edits("/{a}/{b:3}/{+c,d}{.e}{/f}?x={y}*") {
        if let Ok(template) = ResourceTemplate::compile(&text) {
            for path in &paths {
                let _ = template.matches(path);
            }
        }
        if let Ok(mapping) = UrlMapping::compile(&text) {
            for path in &paths {
                let _ = mapping.matches(path);
            }
        }
    }
}
