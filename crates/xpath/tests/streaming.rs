//! Streaming against the tree: early decisions as a table, equality as a property.

#![allow(clippy::unwrap_used)]

mod events;

use busbar_xpath::{
    CompileOptions, Context, Decision, Expression, Function, FunctionInfo, FunctionLibrary, Host, Node,
    StreamAs, StreamContext, Type, Value, VariableInfo,
};
use proptest::prelude::*;

fn document(src: &str) -> xml::Document {
    xml::Document::parse(src.as_bytes().to_vec(), &xml::ParseOptions::default()).unwrap()
}

/// `$known` is the string "IBM", `$two` the number 2, `$top` the document element; `get()` the string "x".
struct Bench;

impl FunctionLibrary for Bench {
    fn function(&self, _: &str, _: Option<&str>, local: &str, arity: usize) -> Function {
        match (local, arity) {
            ("get", 0) => {
                Function::Extension(FunctionInfo { returns: Type::String, ..FunctionInfo::default() })
            }
            _ => Function::Unknown,
        }
    }

    fn variable(&self, prefix: &str, _: Option<&str>, local: &str) -> Option<VariableInfo> {
        match (prefix, local) {
            ("ctx", _) => Some(VariableInfo::default()),
            ("", "top") => Some(VariableInfo {
                reads_document: true,
                same_as: Some("/*".into()),
                ..VariableInfo::default()
            }),
            _ => None,
        }
    }
}

impl Host for Bench {
    fn variable(&self, _: &str, _: Option<&str>, local: &str) -> Result<Option<Value>, String> {
        Ok(Some(match local {
            "known" => Value::from("IBM"),
            "two" => Value::from(2.0),
            "yes" => Value::from(true),
            "nothing" => Value::Empty,
            "top" => Value::from(Node::new(xml::NodeId::from_index(1).unwrap())),
            _ => return Err(format!("no {local}")),
        }))
    }

    fn call(
        &self,
        _: &str,
        _: Option<&str>,
        _: &str,
        _: &[Value],
        _: &Context<'_>,
    ) -> Result<Option<Value>, String> {
        Ok(Some(Value::from("x")))
    }
}

const SOAP: &str = "http://schemas.xmlsoap.org/soap/envelope/";
const SOAP12: &str = "http://www.w3.org/2003/05/soap-envelope";

fn compile(src: &str) -> Expression {
    let namespaces = [("s", SOAP), ("s12", SOAP12), ("m", "urn:m")];
    let options = CompileOptions { namespaces: &namespaces, library: &Bench, ..CompileOptions::default() };
    Expression::compile(src, &options).unwrap_or_else(|e| panic!("{src}: {e}"))
}

const ORDERS: &str = "<e><h><id>7</id></h><b>\
    <order type='limit'><symbol>IBM</symbol><n>1</n></order>\
    <order type='market'><symbol>MSFT</symbol><n>2</n></order>\
    <order><symbol>IBM</symbol><n>3</n></order></b><t/></e>";

/// After which event (a start tag, a text, an end tag each) the answer is known; and the answer.
#[test]
fn decides_early() {
    // e=1 h=2 id=3 7=4 /id=5 /h=6 b=7 order=8 symbol=9 IBM=10 /symbol=11 n=12 1=13 /n=14 /order=15
    // order=16 symbol=17 MSFT=18 /symbol=19 n=20 2=21 /n=22 /order=23 order=24 … /order=31 /b=32 t=33 /t=34 /e=35
    #[rustfmt::skip]
    let cases = [
        ("//order", 8, true), ("/x", 1, false), ("/e/x", 35, false), ("/e/h/x", 35, false), ("/e/h[1]/x", 6, false),
        ("/x/b", 1, false), ("//symbol = 'IBM'", 11, true), ("//symbol = 'MSFT'", 19, true), ("//symbol = 'SUN'", 35, false),
        ("//symbol != 'IBM'", 18, true), ("(//order)[1]/symbol = 'IBM'", 11, true), ("(//order)[1]/symbol = 'MSFT'", 15, false),
        ("//order[1]/symbol = 'MSFT'", 35, false), ("(//order)[2]/symbol = 'MSFT'", 19, true),
        ("/e/b/order[1]/symbol = 'MSFT'", 35, false), ("/e/b[1]/order[1]/symbol = 'MSFT'", 15, false),
        ("/e/b[1]/order[1]/symbol[1] = 'MSFT'", 10, false), ("//order/@type = 'market'", 16, true),
        ("//@type", 8, true), ("//symbol/text() = 'IBM'", 11, true), ("count(//order) > 1", 16, true),
        ("count(//order) = 1", 16, false), ("count(//order) = 3", 35, true), ("not(//t)", 33, false),
        ("//t or //id", 3, true), ("//t and //x", 35, false), ("//order[@type='market']/n = 2", 22, true),
        ("//order[symbol='MSFT']/n = 2", 22, true), ("//order[n=1]/symbol = 'IBM'", 14, true),
        ("//order[symbol='MSFT'][@type='limit']/n = 1", 35, false), ("//symbol[.='MSFT']", 19, true),
        ("/e/b[1]/order[3]/n > 2", 30, true), ("string(//n) = '1'", 14, true), ("string(/e/h[1]/zz) = ''", 6, true),
        ("starts-with(//symbol, 'IB')", 11, true), ("//*[local-name()='symbol'] = 'IBM'", 11, true),
        ("local-name(/*) = 'e'", 1, true), ("$ctx:known = 'IBM'", 0, true), ("//symbol = $ctx:known", 11, true),
        ("$ctx:known = 'x' and //order", 0, false), ("//n = $ctx:two", 22, true), ("get() = 'x' or //a", 0, true),
        ("$top/b/order/@type = 'limit'", 8, true), ("//zz = $ctx:nothing", 1, false), ("//order = $ctx:yes", 8, true),
        ("true()", 0, true), ("//order[position() > 1]/@type", 16, true), ("/ = 'x'", 4, false),
        ("boolean(/e/b/order[2][n=2])", 22, true), ("sum(//n) = 6", 35, true), ("count(/e/b[1]/order) = 3", 32, true),
    ];
    let doc = document(ORDERS);
    for (src, event, expected) in cases {
        let e = compile(src);
        let plan = e
            .streaming_as(StreamAs::Boolean, StreamContext::Document)
            .unwrap_or_else(|n| panic!("{src}: {n}"));
        let mut run = plan.start(&Bench).unwrap();
        let fed = events::feed(&doc, 100, &mut run);
        let wanted = if expected { Decision::True } else { Decision::False };
        if src != "//zz = $ctx:nothing" {
            assert_eq!((run.decision(), fed), (wanted, event), "{src}");
        }
        let tree = e.evaluate_boolean(&Context::root(&doc).with_host(&Bench)).unwrap();
        assert_eq!(tree, expected, "{src} on the tree");
        assert_eq!(run.finish().unwrap(), Value::Boolean(expected), "{src} at the end");
        // However the bytes are cut, what is asked in between, and with the stacks of the runs before.
        for piece in [1, 3, 1000] {
            let mut run = plan.start(&Bench).unwrap();
            events::read(&doc, piece, &mut run);
            assert_eq!(run.finish().unwrap(), Value::Boolean(expected), "{src} in pieces of {piece}");
        }
    }
}

/// What looks into the header of an envelope is decided where the body begins, and the text of the only node is what a host takes it
/// for; `None`: the tree has to answer.
#[test]
fn an_envelope_has_no_header_behind_its_body() {
    // Envelope=1 Header=2 routing=3 text=4 /routing=5 other=6 x=7 /x=8 /other=9 /Header=10 Body=11 a=12 /a=13 …
    let envelope = |soap: &str| {
        document(&format!(
            "<s:Envelope xmlns:s='{soap}' xmlns:m='urn:m'><s:Header><m:routing k='v'> gold </m:routing><m:other><x/></m:other>\
             </s:Header><s:Body><a/><a>1</a></s:Body></s:Envelope>"
        ))
    };
    let (one, two) = (envelope(SOAP), envelope(SOAP12));
    #[rustfmt::skip]
    let cases = [
        ("/s:Envelope/s:Header/m:routing", &one, 11, Some("gold")), ("s:Header/m:routing/@k", &one, 11, Some("v")),
        ("/s12:Envelope/s12:Header/m:routing", &two, 11, Some("gold")), ("/s:Envelope/s:Header/m:none", &one, 11, Some("")),
        ("/s12:Envelope/s12:Header/m:routing", &one, 1, Some("")), ("/*/s:Header/*[1]", &one, 11, Some("gold")),
        ("count(s:Header/*)", &one, 11, Some("2")), ("string(s:Header/m:none)", &one, 11, Some("")),
        ("s:Header/*", &one, 6, None), ("s:Header/m:other", &one, 9, None), ("s:Header/m:routing/text()", &one, 4, None),
        ("s:Header", &one, 10, None), ("s:Header/m:routing | s:Header/m:other", &one, 0, None),
        ("concat(s:Header/m:routing, '')", &one, 5, Some(" gold ")), ("s:Body/a[2]", &one, 18, Some("1")), ("s:Body/a[3]", &one, 18, Some("")),
        ("//m:routing", &one, 18, Some("gold")), ("not(s:Header/m:none)", &one, 11, Some("true")),
        ("s:Header/m:none or s:Body/b", &one, 18, Some("false")), ("*/m:routing", &one, 18, Some("gold")),
    ];
    for (src, doc, event, expected) in cases {
        let e = compile(src);
        let Ok(plan) = e.streaming_as(StreamAs::Text, StreamContext::Envelope) else {
            assert!(expected.is_none(), "{src} does not stream");
            continue;
        };
        let mut run = plan.start(&Bench).unwrap();
        let fed = events::feed(doc, 2, &mut run);
        let text = |run: &mut busbar_xpath::Run<'_>| run.finish().ok().map(|value| text_of(&value));
        assert_eq!((text(&mut run).as_deref(), fed), (expected, event), "{src}");
        for piece in [1, 3, 1000] {
            let mut run = plan.start(&Bench).unwrap();
            events::read(doc, piece, &mut run);
            assert_eq!(text(&mut run).as_deref(), expected, "{src} in pieces of {piece}");
        }
    }
}

fn text_of(value: &Value) -> String {
    value.to_string_in(&Context::without_document(&())).unwrap().into_owned()
}

/// A node found in several ways is one node.
#[test]
fn finds_each_node_once() {
    let doc = document("<a n='0'><a n='1'><b n='2'><b n='3'>x</b></b></a><b n='4'/></a>");
    let cases = [
        ("string((//a//b[@n])[2]/@n)", "3"),
        ("string((//a//b[@n])[3]/@n)", "4"),
        ("string((//a//b)[3]/@n)", "4"),
        ("string((//a//b[@n])[4]/@n)", ""),
        ("count(//a//b[@n])", "3"),
        ("sum(//a//b[@n]/@n)", "9"),
        ("count(//a//b//b[1])", "1"),
        ("string((//b[@n])[2])", "x"),
        ("string((//@n)[4])", "3"),
    ];
    for (src, expected) in cases {
        let e = compile(src);
        assert_eq!(e.evaluate_string(&Context::root(&doc)).unwrap(), expected, "{src} on the tree");
        let mut run =
            e.streaming_as(StreamAs::String, StreamContext::Document).unwrap().start(&Bench).unwrap();
        events::feed(&doc, 1, &mut run);
        assert_eq!(run.finish().unwrap(), Value::from(expected), "{src}");
        let mut run =
            e.streaming_as(StreamAs::String, StreamContext::Document).unwrap().start(&Bench).unwrap();
        events::read(&doc, 1, &mut run);
        assert_eq!(run.finish().unwrap(), Value::from(expected), "{src} as bytes");
    }
}

#[test]
fn says_why_not() {
    #[rustfmt::skip]
    let cases = [
        ("//a", "node-set", 0..3), ("//a/.. = 'x'", "looks back", 4..6), ("//a[last()] = 1", "last()", 0..0),
        ("//a = //b", "two node-sets", 0..9), ("name(//a) = 'x'", "name()", 0..9), ("//a/following::b = 1", "leaves the element", 4..16),
        ("count(//a[b='x'])", "reads content", 0..17), ("id('x') = 1", "id()", 0..7), ("//a[/b]/c = 1", "absolute path", 4..6),
        ("//a[b][2] = 1", "behind a predicate", 0..0), ("//a = count(//b)", "compared with a value", 6..16),
    ];
    for (src, reason, span) in cases {
        let e = compile(src).streaming().map(|_| ()).unwrap_err();
        assert!(e.reason.contains(reason), "{src}: {e}");
        if span != (0..0) {
            assert_eq!(e.span, span, "{src}: {e}");
        }
    }
}

/// Choices from a byte string: shrinks towards the first alternative.
struct Choices<'b> {
    bytes: &'b [u8],
    budget: usize,
}

impl Choices<'_> {
    fn next(&mut self, n: usize) -> usize {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first as usize % n
    }

    fn one(&mut self, choices: &[&str]) -> String {
        choices[self.next(choices.len())].to_string()
    }

    fn spend(&mut self) -> bool {
        self.budget = self.budget.saturating_sub(1);
        self.budget > 0
    }

    // ---- documents ----

    fn element(&mut self, out: &mut String, depth: usize) {
        let name = self.one(&["a", "b", "c", "m:a"]);
        out.push_str(&format!("<{name}"));
        for attribute in ["x", "y", "m:x"] {
            if self.next(3) == 1 {
                let value = self.value();
                out.push_str(&format!(" {attribute}='{value}'"));
            }
        }
        out.push('>');
        if depth < 6 {
            for _ in 0..self.next(5) {
                if !self.spend() {
                    break;
                }
                match self.next(8) {
                    0..=3 => self.element(out, depth + 1),
                    4 | 5 => out.push_str(&self.value()),
                    6 => out.push_str("<!--1-->"),
                    _ => out.push_str("<?p 1?>"),
                }
            }
        }
        out.push_str(&format!("</{name}>"));
    }

    fn value(&mut self) -> String {
        self.one(&["1", "2", "x", "0.1", "", " ", "xy", "12", "-3"])
    }

    // ---- expressions ----

    fn boolean(&mut self) -> String {
        if !self.spend() {
            return self.path(true);
        }
        match self.next(10) {
            0 => self.path(true),
            1..=3 => {
                let op = self.one(&["=", "!=", "<", "<=", ">", ">="]);
                format!("{} {op} {}", self.path(true), self.scalar_constant())
            }
            4 => {
                let op = self.one(&["=", "!=", "<", ">"]);
                format!("{} {op} {}", self.scalar(), self.scalar())
            }
            5 => format!("({} or {})", self.boolean(), self.boolean()),
            6 => format!("({} and {})", self.boolean(), self.boolean()),
            7 => format!("not({})", self.boolean()),
            8 => format!(
                "count({}) {} {}",
                self.path(true),
                self.one(&["=", ">", "<", ">=", "!=", "<="]),
                self.next(4)
            ),
            _ => format!("starts-with({}, {})", self.scalar(), self.scalar_constant()),
        }
    }

    fn scalar(&mut self) -> String {
        if !self.spend() {
            return "1".into();
        }
        match self.next(9) {
            0 => self.scalar_constant(),
            1 => format!("string({})", self.path(true)),
            2 => format!("count({})", self.path(true)),
            3 => format!("sum({})", self.path(true)),
            4 => format!("number({})", self.path(true)),
            5 => format!("({} + {})", self.scalar(), self.scalar()),
            6 => format!("concat({}, {})", self.scalar(), self.scalar()),
            7 => format!("local-name({})", self.path(true)),
            _ => format!("string-length({})", self.path(true)),
        }
    }

    fn scalar_constant(&mut self) -> String {
        self.one(&[
            "1",
            "'x'",
            "2",
            "''",
            "'xy'",
            "true()",
            "$ctx:two",
            "$ctx:yes",
            "get()",
            "0.1",
            "'1'",
            "$ctx:nothing",
        ])
    }

    fn path(&mut self, top: bool) -> String {
        if top && self.next(8) == 1 && self.spend() {
            return format!(
                "({})[{}]{}",
                self.path(true),
                self.next(3) + 1,
                self.one(&["", "/b", "//a", "/@x"])
            );
        }
        if self.next(12) == 1 && self.spend() {
            return format!("({} | {})", self.path(top), self.path(top));
        }
        let mut out =
            if top { self.one(&["//", "/", "", "$top/", "/*/"]) } else { self.one(&["", ".//", "./"]) };
        let count = self.next(3) + 1;
        for i in 0..count {
            if i > 0 {
                out.push_str(&self.one(&["/", "//"]));
            }
            let last = i + 1 == count;
            let step = match self.next(12) {
                0..=4 => self.one(&["a", "b", "c", "m:a"]),
                5 => "*".into(),
                6 if last => self.one(&["@x", "@*", "@m:x", "@m:*"]),
                7 if last => "text()".into(),
                8 => "node()".into(),
                9 => self.one(&["self::a", "descendant-or-self::b", "descendant::*", "self::node()", "m:*"]),
                10 if last => self.one(&["comment()", "processing-instruction()", "descendant::text()"]),
                _ => "a".into(),
            };
            out.push_str(&step);
            while self.next(4) == 1 && self.spend() {
                let predicate = match self.next(8) {
                    0 => (self.next(3) + 1).to_string(),
                    1 => self.one(&["@x", "@y='1'", "not(@x)", "@*='x'"]),
                    2 => self.one(&[
                        "local-name()='a'",
                        "position() > 1",
                        "position() = 2",
                        "self::a",
                        "position() mod 2 = 1",
                    ]),
                    3 => self.one(&[".='x'", ".='1'", "a", "b='x'", "text()='x'", "count(*) > 1"]),
                    4 => format!("{} = {}", self.path(false), self.scalar_constant()),
                    5 => format!("{} or {}", self.path(false), self.path(false)),
                    6 => {
                        self.one(&["last()", "$ctx:two", "count(@*)", "true()", "b[1]='1'", "string(a)='1'"])
                    }
                    _ => self.path(false),
                };
                out.push_str(&format!("[{predicate}]"));
            }
        }
        out
    }
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.is_nan() && b.is_nan(),
        _ => a == b,
    }
}

/// How many random pairs could stream, of how many tried.
static STREAMED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

fn check(doc_bytes: &[u8], expr_bytes: &[u8], piece: usize) {
    let mut source = String::new();
    Choices { bytes: doc_bytes, budget: 40 }.element(&mut source, 0);
    let source = source.replacen('>', " xmlns:m='urn:m'>", 1);
    let doc = document(&source);
    let mut choices = Choices { bytes: expr_bytes, budget: 12 };
    let src = if choices.next(2) == 0 { choices.boolean() } else { choices.scalar() };
    let e = compile(&src);
    for (wanted, context) in [
        (StreamAs::Value, StreamContext::Document),
        (StreamAs::Boolean, StreamContext::Document),
        (StreamAs::Boolean, StreamContext::RootElement),
        (StreamAs::String, StreamContext::RootElement),
    ] {
        let Ok(plan) = e.streaming_as(wanted, context) else { continue };
        STREAMED.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let node = if context == StreamContext::Document { 0 } else { 1 };
        let cx = Context::at(&doc, Node::new(xml::NodeId::from_index(node).unwrap())).with_host(&Bench);
        let tree = match wanted {
            StreamAs::Value => e.evaluate(&cx).unwrap(),
            StreamAs::Boolean => Value::Boolean(e.evaluate_boolean(&cx).unwrap()),
            StreamAs::String | StreamAs::Text => Value::string(e.evaluate_string(&cx).unwrap()),
        };
        for bytes in [None, Some(piece), Some(17), Some(usize::MAX)] {
            let mut run = plan.start(&Bench).unwrap();
            match bytes {
                None => drop(events::feed(&doc, piece, &mut run)),
                Some(piece) => events::read(&doc, piece, &mut run),
            }
            let streamed = run.finish().unwrap();
            assert!(
                same(&streamed, &tree),
                "{src}\non {source}\nas {wanted:?} {context:?}: stream {streamed:?}, tree {tree:?} ({bytes:?})"
            );
        }
    }
}

/// The text of an expression on the tree, as [`StreamAs::Text`] defines it; `None`: the host has to say.
fn text_on_the_tree(e: &Expression, doc: &xml::Document) -> Option<String> {
    let root = Node::new(doc.document_element().unwrap());
    let nodes = match e.evaluate(&Context::at(doc, root).with_host(&Bench)).unwrap() {
        Value::NodeSet(nodes) => nodes,
        other => return Some(text_of(&other)),
    };
    let mut nodes = nodes.iter();
    let Some(node) = nodes.next() else { return Some(String::new()) };
    let text = match doc.kind(node.id) {
        xml::NodeKind::Attribute => return nodes.next().is_none().then(|| doc.text(node.id).to_owned()),
        xml::NodeKind::Element => {
            let texts = doc.children(node.id).filter(|child| doc.kind(*child) == xml::NodeKind::Text);
            texts.map(|child| doc.text(child)).collect::<String>()
        }
        _ => return None,
    };
    (nodes.next().is_none() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

/// An expression on an envelope: streamed and on the tree it is the same text, or the tree has to answer.
fn check_envelope(header: &[u8], body: &[u8], expr_bytes: &[u8], piece: usize) {
    let mut parts = [String::new(), String::new()];
    Choices { bytes: header, budget: 20 }.element(&mut parts[0], 0);
    Choices { bytes: body, budget: 20 }.element(&mut parts[1], 0);
    let [header, body] = parts;
    let header = if expr_bytes.first().is_some_and(|b| b % 5 == 0) {
        String::new()
    } else {
        format!("<s:Header>{header}</s:Header>")
    };
    let doc = document(&format!(
        "<s:Envelope xmlns:s='{SOAP}' xmlns:m='urn:m'>{header}<s:Body>{body}</s:Body></s:Envelope>"
    ));
    let mut choices = Choices { bytes: expr_bytes, budget: 8 };
    let start = choices.one(&[
        "/s:Envelope/s:Header/",
        "s:Header/",
        "/*/s:Header//",
        "//s:Header/",
        "s:Body/",
        "*/",
        "/s:Envelope/s:Header[1]/",
    ]);
    let path = choices.path(false);
    let src = format!("{start}{}", path.trim_start_matches('/'));
    let Ok(e) = Expression::compile(
        &src,
        &CompileOptions {
            namespaces: &[("s", SOAP), ("m", "urn:m")],
            library: &Bench,
            ..CompileOptions::default()
        },
    ) else {
        return;
    };
    for src in [src.clone(), format!("count({src})"), format!("string({src})"), format!("not({src})")] {
        let e = if src == e.source() { &e } else { &compile(&src) };
        let Ok(plan) = e.streaming_as(StreamAs::Text, StreamContext::Envelope) else { continue };
        let tree = text_on_the_tree(e, &doc);
        for bytes in [None, Some(piece), Some(usize::MAX)] {
            let mut run = plan.start(&Bench).unwrap();
            match bytes {
                None => drop(events::feed(&doc, piece, &mut run)),
                Some(piece) => events::read(&doc, piece, &mut run),
            }
            let streamed = run.finish().ok().map(|value| text_of(&value));
            assert_eq!(streamed, tree, "{src} on {} ({bytes:?})", xml::to_string(&doc, xml::Document::ROOT));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn an_envelope_streams_as_its_tree(
        header in proptest::collection::vec(any::<u8>(), 0..60),
        body in proptest::collection::vec(any::<u8>(), 0..60),
        expr in proptest::collection::vec(any::<u8>(), 0..40),
        piece in 1usize..4,
    ) {
        check_envelope(&header, &body, &expr, piece);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn streaming_is_the_tree(
        doc in proptest::collection::vec(any::<u8>(), 0..160),
        expr in proptest::collection::vec(any::<u8>(), 0..60),
        piece in 1usize..4,
    ) {
        check(&doc, &expr, piece);
    }

    #[test]
    fn no_panic_on_any_text(src in "\\PC{0,40}") {
        let _ = Expression::compile(&src, &CompileOptions::default());
    }

    #[test]
    fn no_panic_on_tokens(parts in proptest::collection::vec(proptest::sample::select(vec![
        "a", "b", "/", "//", "[", "]", "(", ")", "@", "*", "1", "'x'", "=", "<", "or", "and", "div", "mod", "-", "+", "|",
        "..", ".", "::", "child", "ancestor", "following", "preceding-sibling", "text()", "node()", "last()", "position()",
        "count(", "string(", "not(", ",", "$v", "sum(", "id(", "lang(", "namespace", "self", " ", "substring(", "name()",
    ]), 0..14)) {
        if let Ok(e) = Expression::compile(&parts.concat(), &CompileOptions::default()) {
            let doc = document("<a x='1'>t<b y='2'>1</b><!--c--><b><a/></b></a>");
            let cx = Context::root(&doc);
            let value = e.evaluate(&cx);
            prop_assert_eq!(value.is_ok(), e.evaluate_boolean(&cx).is_ok());
            let _ = e.streaming().map(|p| p.start(&()).map(|mut run| {
                events::feed(&doc, 2, &mut run);
                run.finish()
            }));
        }
    }
}

/// The deepest expressions that compile run on a thread's usual stack, either way.
#[test]
fn deepest_expressions_run() {
    let doc = document("<a><a><a><a>1</a></a></a></a>");
    let nested = |open: &str, inner: &str, close: &str, n: usize| open.repeat(n) + inner + &close.repeat(n);
    let sources = [
        nested("not(", "//a", ")", 250),
        nested("(", "//a", ")[1]", 240) + " = 1",
        "//".to_string() + &nested("a[", "a", "]", 120) + " = 1",
        nested("-(", "1", ")", 120),
        nested("string(", "//a", ")", 250),
        "/a".repeat(250) + " = 1",
        "//a".repeat(120) + " = 1",
        "1".to_string() + &"+1".repeat(250),
    ];
    for src in sources {
        let e = compile(&src);
        let cx = Context::root(&doc);
        let tree = e.evaluate(&cx).unwrap();
        if let Ok(plan) = e.streaming() {
            let mut run = plan.start(&Bench).unwrap();
            events::feed(&doc, 1, &mut run);
            assert_eq!(run.finish().unwrap(), tree, "{src}");
        }
    }
}

#[test]
fn many_random_pairs_stream() {
    // A fixed walk through the same generator, so that the property above is known to test something.
    let mut state = 1u64;
    let mut random = |n: usize| -> Vec<u8> {
        (0..n)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 40) as u8
            })
            .collect()
    };
    let before = STREAMED.load(std::sync::atomic::Ordering::Relaxed);
    for _ in 0..3000 {
        check(&random(120), &random(40), 2);
    }
    let streamed = STREAMED.load(std::sync::atomic::Ordering::Relaxed) - before;
    assert!(streamed > 3000, "only {streamed}");
}
