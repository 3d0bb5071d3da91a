//! The language, as tables of expressions and what they give.

use super::*;
use message::{Value as Own, XmlValue};
use serde_json::{Value as Json, json};

struct Message {
    payload: Json,
    variables: Vec<(&'static str, Own)>,
}

struct XPaths;

impl XPathCompiler for XPaths {
    fn compile(&self, source: &str) -> Result<xpath::Expression, String> {
        xpath::Expression::compile(source, &xpath::CompileOptions::default()).map_err(|error| error.message)
    }
}

fn compile(text: &str) -> Result<Expression, Error> {
    let xpaths: Arc<dyn XPathCompiler> = Arc::new(XPaths);
    Expression::compile(text, &xpaths)
}

impl Host for Message {
    fn json(&self) -> Result<&Json, String> {
        if self.payload.is_null() { Err("there is no payload".into()) } else { Ok(&self.payload) }
    }

    fn payload(&self) -> Result<Value<'_>, String> {
        self.json().map(|json| Value::of_json(std::borrow::Cow::Borrowed(json)))
    }

    fn variable(&self, name: &str) -> Option<&Own> {
        self.variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    fn lookup(&self, scope: Scope, name: &str) -> Option<Own> {
        let text = match (scope, name) {
            (Scope::Header, "Num") => "007",
            (Scope::Header, "X-Id") => "i9",
            (Scope::Header, "Exp") => "1e5",
            (Scope::Default, "p") => "5",
            (Scope::Default, "query.param.q") => "a b",
            (Scope::Default, "uri.var.id") => "42",
            (Scope::Default, "obj") => r#"{"k":1}"#,
            (Scope::Default, "flag") => return Some(Own::Boolean(true)),
            (Scope::Axis2, "HTTP_METHOD") => "POST",
            (Scope::Parameter, "t") => "1.50",
            (Scope::Configuration, "c") => "conf",
            _ => return None,
        };
        Some(Own::from(text))
    }

    fn registry(&self, path: &str, property: Option<&str>) -> Option<String> {
        match (path, property) {
            ("r", None) => Some(r#"{"a":[1,{"b":"deep"}]}"#.into()),
            ("r", Some("p")) => Some("prop".into()),
            _ => None,
        }
    }

    fn xpath(&self, xpath: &xpath::Expression, on: Option<&Arc<XmlValue>>) -> Result<Option<Own>, String> {
        let document = match on {
            Some(xml) => xml.document.clone(),
            None => Arc::new(xml::Document::parse("<m><n>5</n></m>", &xml::ParseOptions::default()).unwrap()),
        };
        let cx = xpath::Context::at(&document, xpath::Node::new(xml::Document::ROOT));
        let text = xpath.evaluate_string(&cx).map_err(|error| error.message)?;
        Ok(Some(Own::from(text.into_owned())))
    }

    fn secret(&self, path: &[String]) -> Result<String, String> {
        if path == ["db"] { Ok("s3cret".into()) } else { Err("no vault".into()) }
    }

    fn remote_secret(&self, path: &[String]) -> Result<String, String> {
        if path == ["secret/db", "password"] { Ok("r3mote".into()) } else { Err("no vault".into()) }
    }
}

fn message() -> Message {
    let payload = json!({
        "name": "John", "n": 5, "d": 1.5, "nul": null, "yes": true, "text": " Hello World ", "csv": "x,y,,",
        "i": 1, "cars": ["Ford", "BMW", "Fiat", "Honda"], "nums": [3, 1, 2], "odd key": "ok", "it's": "quote",
        "size": 7, "and": 8, "num": "10", "o": {"x": 1, "none": null},
        "items": [
            {"n": "a", "v": 2, "tags": ["p", "q"]}, {"n": "b", "v": 7, "tags": []}, {"n": "c", "v": 30, "gone": true}
        ],
    });
    let xml = Own::from("<a><b>1</b></a>");
    let variables = vec![
        ("i", Own::Integer(7)),
        ("long", Own::Integer(5_000_000_000)),
        ("d", Own::Double(2.0)),
        ("java", Own::JavaDouble(2.0)),
        ("small", Own::JavaDouble(-0.125)),
        ("s", Own::from("12")),
        ("b", Own::Boolean(true)),
        ("j", Own::Json(Arc::new(json!({"n": 2, "nul": null, "a": [1, 2]})))),
        ("js", Own::from(r#"{"k":[1,2]}"#)),
        ("x", xml),
        (
            "call",
            Own::Json(Arc::new(json!({"payload": "<r><q>9</q></r>", "attributes": {"statusCode": 200}}))),
        ),
    ];
    Message { payload, variables }
}

/// What an expression gives, or `!` with why it gives nothing.
fn given(text: &str) -> String {
    let compiled = compile(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    match compiled.evaluate(&message()) {
        Ok(value) => value.into_text().into_owned(),
        Err(Failure(why)) => format!("!{why}"),
    }
}

fn check(table: &[(&str, &str)]) {
    for (text, wanted) in table {
        let found = given(text);
        match wanted.strip_prefix('!') {
            Some(why) => assert!(found.starts_with('!') && found.contains(why), "{text}: {found}"),
            None => assert_eq!(found, *wanted, "{text}"),
        }
    }
}

#[test]
fn literals_and_operators() {
    check(&[
        ("5", "5"),
        ("-5.50", "-5.5"),
        ("5.0", "5.0"),
        ("true", "true"),
        ("null", ""),
        (r#""it's""#, "it's"),
        (r#"'say "x"'"#, r#"say "x""#),
        (r#""a\"b\\c\d\n""#, "a\"b\\c\\d\n"),
        (r#"[1, "a", true, null, payload.n]"#, r#"[1,"a",true,null,5]"#),
        ("[]", "[]"),
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("10 - 2 - 3", "5"),
        ("5-3", "2"),
        ("5 -3", "2"),
        ("5 * -2", "-10"),
        ("0.1 + 0.2", "0.3"),
        ("7 / 2", "3.5"),
        ("10.00 / 8", "1.25"),
        ("10 % 3", "1"),
        ("1 / 0", "!division by zero"),
        ("'a' + \"b\"", "ab"),
        ("'a' + 1", "!a text and a number cannot be calculated with: string(…)"),
        ("'a' - 'b'", "!cannot be calculated with"),
        ("'a' + null", "!null"),
        ("'5' + '3'", "53"),
        ("1 == 1.0", "true"),
        ("1 == '1'", "true"),
        ("1 != 2", "true"),
        ("null == null", "true"),
        ("null == 'null'", "false"),
        ("null != null", "false"),
        ("true == 'true'", "true"),
        ("5 > -3.4", "true"),
        ("5 >= 5", "true"),
        ("vars.long > 3", "true"),
        ("now() > 5", "true"),
        ("'5' > 3", "!no order"),
        ("true >= false", "!no order"),
        ("5 > 3 == true", "true"),
    ]);
}

#[test]
fn logic_groups_to_the_right_and_binds_tighter_than_comparisons() {
    check(&[
        ("true and false or true", "true"),
        ("false and true or true", "false"),
        ("true || false && false", "true"),
        ("(1 == 1) and (2 == 2)", "true"),
        ("(payload.n > 3) && (payload.n < 10)", "true"),
        ("1 == 1 and 2 == 2", "!true or false is wanted"),
        ("'x' or true", "!true or false is wanted, not a text"),
        ("true or payload.missing", "!leads nowhere"),
        ("true ? 1 : payload.missing", "1"),
        ("false ? true : false ? false : true", "true"),
        ("true ? false ? false : true : false", "true"),
        ("'bla' ? 1 : 2", "!true or false is wanted"),
        ("payload.n >= 5 ? 'yes' : 'no'", "yes"),
    ]);
    assert_eq!(compile("1 == 1 and 2 == 2").unwrap().warnings().len(), 1);
    assert!(compile("(1 == 1) and (2 == 2)").unwrap().warnings().is_empty());
    let read = compile("configs.a + vars.b + configs['c d'].e").unwrap();
    let read: Vec<_> = read.configured().iter().map(|read| (read.name.as_str(), read.span.clone())).collect();
    assert_eq!(read, [("a", 0..9), ("c d", 21..35)]);
}

#[test]
fn roots_and_paths() {
    check(&[
        ("payload.name", "John"),
        ("payload[\"name\"]", "John"),
        ("payload['it\\'s']", "quote"),
        ("$.name", "John"),
        ("$['name']", "John"),
        ("payload[\"odd key\"]", "ok"),
        ("payload.size", "7"),
        ("payload.and", "8"),
        ("payload.random", "!leads nowhere"),
        ("payload.nul", ""),
        ("payload.nul == null", "true"),
        ("payload.cars[1]", "BMW"),
        ("payload.cars[-1]", "Honda"),
        ("payload.cars[10]", "!leads nowhere"),
        ("$.cars[$.i]", "BMW"),
        ("$.cars[$.i,3]", r#"["BMW","Honda"]"#),
        ("$.cars[$.i:3]", r#"["BMW","Fiat"]"#),
        ("$.cars[:2]", r#"["Ford","BMW"]"#),
        ("$.cars[-1:]", r#"["Honda"]"#),
        ("$.cars[0:3:2]", r#"["Ford","BMW","Fiat"]"#),
        ("payload.cars[payload.i + 1:]", r#"["Fiat","Honda"]"#),
        ("payload[\"na\" + \"me\"]", "John"),
        ("payload.cars.[:1]", r#"["Ford"]"#),
        ("payload.o.*", "[1,null]"),
        ("payload.items[*].n", r#"["a","b","c"]"#),
        ("payload..v", "[2,7,30]"),
        ("payload.items.length()", "3"),
        ("payload.nums.max()", "3.0"),
        ("payload.o.keys()", r#"["x","none"]"#),
        ("payload.cars.first()", "Ford"),
        ("payload.items[?(@.v > vars.i)].n", r#"["c"]"#),
        ("payload.items[?(@.v >= vars.i && @.n != 'c')].n", r#"["b"]"#),
        ("payload.items[?(@.v > 1 and @.n == \"a\")].v", "[2]"),
        ("payload.items[?(@.n in ['a','q'])].v", "[2]"),
        ("payload.items[?(@.n == payload.items[1].n)].v", "[7]"),
        ("payload.items[?(@.v == length(\"abcdefg\"))].n", r#"["b"]"#),
        ("payload.items[?(@.v == (payload.n + 2))].n", r#"["b"]"#),
        ("payload.items[?(@.gone)].n", r#"["c"]"#),
        ("payload.items[?(!@.gone)].n", r#"["a","b"]"#),
        ("payload.items[?(@.n =~ /A|B/i)].v", "[2,7]"),
        ("payload.items[?((@.v < 3 || @.v > 20) && @.n)].n", r#"["a","c"]"#),
        ("payload.items[?(@.tags[0] == 'p')].v", "[2]"),
        ("payload.items[?(@.tags empty true)].n", r#"["b"]"#),
        ("payload.items[?(@.v > 100)]", "[]"),
        ("length(payload.items[?(@.v > 2)])", "2"),
        ("vars.i + vars.i", "14"),
        ("vars.j.n + vars.j.n", "4"),
        ("vars.j.nul == null", "true"),
        ("vars[\"j\"][\"a\"][1]", "2"),
        ("vars['i']", "7"),
        ("vars.js.k[1]", "2"),
        ("vars.s + '1'", "121"),
        ("vars.s + 1", "!a text and a number"),
        ("vars.none", "!there is no variable none"),
        ("vars.i.x", "!leads into JSON only, not into a number"),
        ("vars.call.attributes.statusCode", "200"),
        ("headers.Num + 1", "8"),
        ("headers[\"X-Id\"]", "i9"),
        ("headers.X-Id", "i9"),
        ("headers.Exp", "1e5"),
        ("headers.none", "!there is no header none"),
        ("props.synapse.p + 1", "6"),
        ("properties.axis2.HTTP_METHOD", "POST"),
        ("props.synapse.flag ? 1 : 2", "1"),
        ("props.synapse.obj.k", "1"),
        ("params.queryParams.q", "a b"),
        ("params.pathParams.id + 1", "43"),
        ("params.functionParams.t", "1.5"),
        ("configs.c", "conf"),
        ("registry(\"r\").a[1].b", "deep"),
        ("registry(\"r\").property(\"p\")", "prop"),
        ("registry(\"r\", \"p\")", "prop"),
        ("registry(\"none\")", "!the registry has no none"),
        ("wso2-vault(\"db\")", "s3cret"),
        ("wso2-vault(\"none\", \"FILE\", \"false\")", "!no vault"),
        ("xpath('/m/n')", "5"),
        ("xpath(\"/m/\" + 'n') + 'x'", "5x"),
        ("xpath('//b', 'x')", "1"),
        ("xpath('//q', 'call.payload')", "9"),
        ("xpath('//q', 'i')", "!i holds no XML"),
        ("xpath('//q', 'none')", "!there is no variable none"),
    ]);
    let empty = Message { payload: Json::Null, variables: Vec::new() };
    assert!(compile("payload.x").unwrap().evaluate(&empty).is_err());
}

#[test]
fn functions_do_what_they_say() {
    check(&[
        ("length('äö😀')", "4"),
        ("length(payload.cars)", "4"),
        ("length(payload.o)", "!not an object"),
        ("length(5)", "!a text is wanted, not a number"),
        ("toUpper(payload.name)", "JOHN"),
        ("toLower('ÄB')", "äb"),
        ("toUpper(payload.yes)", "TRUE"),
        ("toUpper(payload.n)", "5"),
        ("toLower(5)", "!a text is wanted"),
        ("toUpper(true)", "!a text is wanted"),
        ("trim(2.5)", "!a text is wanted"),
        ("trim(payload.cars)", "!a text is wanted"),
        ("trim(payload.text)", "Hello World"),
        ("subString('hello', 1)", "ello"),
        ("subString('hello', 1, 3)", "el"),
        ("subString('hello', 4, 2)", "!no such part"),
        ("subString('hello', 9)", "!no such part"),
        ("subString('hello', -1)", "!0 or more"),
        ("subString('ä😀x', 3)", "x"),
        ("startsWith('abc', 'ab')", "true"),
        ("endsWith('abc', 'ab')", "false"),
        ("contains('abc', 'b')", "true"),
        ("contains(payload.nums, 2)", "!a text is wanted"),
        ("replace('a.b.c', '.', '$1')", "a$1b$1c"),
        ("split(payload.csv, ',')", r#"["x","y"]"#),
        ("split('a1b22c', '[0-9]+')", r#"["a","b","c"]"#),
        ("split('a|b', '\\|')", r#"["a","b"]"#),
        ("split('abc', '')", r#"["a","b","c"]"#),
        ("split('abc', '(')", "!not a regular expression"),
        ("split('', ',')", r#"[""]"#),
        ("indexOf('hello', 'l', 3)", "3"),
        ("indexOf('hello', 'z')", "-1"),
        ("charAt('abc', 1)", "b"),
        ("charAt('abc', 9)", "!shorter"),
        ("abs(-5.5)", "5.5"),
        ("abs(payload.cars)", "!a number is wanted, not an array"),
        ("floor(-5.4)", "-6"),
        ("floor(5.9) == 5", "true"),
        ("ceil(5.1)", "6"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-2"),
        ("round(8.89 + 0.22, 1)", "9.1"),
        ("round(0.115, 2)", "0.12"),
        ("round(123.456, 0)", "!1 to 100 digits"),
        ("round(0.1, 'x')", "!a number is wanted"),
        ("sqrt(6.25)", "2.5"),
        ("sqrt(-1)", "!the result is not a number"),
        ("pow(2, 3)", "8"),
        ("pow(2, -2)", "0.25"),
        ("pow(10, 400)", "!the result is not a number"),
        ("log(1000)", "3"),
        ("log(1024, 2)", "10"),
        ("log('x')", "!a number is wanted"),
        ("string(12) + '!'", "12!"),
        ("string(payload.o)", r#"{"x":1,"none":null}"#),
        ("string(null)", "!null"),
        ("integer('007')", "7"),
        ("integer(xpath('//b', 'x')) + 1", "2"),
        ("float(xpath('//b', 'x')) * 1.5", "1.5"),
        ("integer('1.5')", "!not a whole number"),
        ("integer(34.5)", "!not a whole number"),
        ("float('-34.5')", "-34.5"),
        ("float('x')", "!not a number"),
        ("boolean('TRUE')", "true"),
        ("boolean('1')", "false"),
        ("boolean(payload.cars)", "false"),
        ("not(payload.yes)", "false"),
        ("not('true')", "!true or false is wanted"),
        ("array('[1,2]')[1]", "2"),
        ("array(payload.o)", "!not an array"),
        ("object('{\"k\":1}').k", "1"),
        ("object('[1]')", "!not an object"),
        ("object(34)", "!JSON is wanted"),
        ("array('oops')", "!not JSON"),
        ("isString('a')", "true"),
        ("isString(1)", "false"),
        ("isNumber('1')", "false"),
        ("isNumber(payload.n)", "true"),
        ("isArray(payload.nums)", "true"),
        ("isObject(vars.js)", "true"),
        ("isArray(vars.js)", "false"),
        ("exists(payload.name)", "true"),
        ("exists(payload.nul)", "false"),
        ("not(exists(payload.missing))", "true"),
        ("exists(vars.none)", "false"),
        ("base64encode('äö')", "w6TDtg=="),
        ("base64decode(base64encode('äö'))", "äö"),
        ("base64decode('%')", "!not base64"),
        ("base64decode('YWI')", "ab"),
        ("base64decode('YWJ')", "ab"),
        ("base64encode('a', 'UTF-16')", "/v8AYQ=="),
        ("base64encode('x', 'UTF-99')", "!no character set"),
        ("base64encode(34)", "!a text is wanted"),
        ("urlEncode('ä *~-_.+&=/')", "%C3%A4%20%2A%7E-_.%2B%26%3D%2F"),
        ("urlEncode('ä *', 'ISO-8859-1')", "%E4+*"),
        ("urlDecode('a%20b%2Bc+d')", "a b+c d"),
        ("urlDecode('%zz')", "!hexadecimal"),
        ("formatDateTime('29/09/1988', 'dd/MM/yyyy', 'yyyy-MM-dd')", "1988-09-29"),
        ("formatDateTime('x', 'dd/MM/yyyy', 'yyyy')", "!does not follow the pattern"),
        ("formatDateTime(0, 'yyyy') == '1970'", "true"),
        ("formatDateTime('2024', 'jjjj', 'yyyy')", "!means nothing"),
        ("formatDateTime(99999999999999999, 'yyyy')", "!too far away"),
    ]);
}

#[test]
fn mistakes_are_found_when_compiling() {
    for (text, wanted, at) in [
        ("", "the expression is empty", 0..0),
        ("  ", "the expression is empty", 0..2),
        ("paylod.x", "there is no `paylod`: did you mean `payload`?", 0..6),
        ("header.x", "did you mean `headers`?", 0..6),
        ("lenght(x)", "there is no `x`", 7..8),
        ("lenght('x')", "there is no function `lenght`: did you mean `length`?", 0..6),
        ("length", "it is a function: `length(…)`", 0..6),
        ("length()", "`length` takes 1 argument, not 0", 0..8),
        ("replace('a')", "`replace` takes 3 arguments, not 1", 0..12),
        ("1 +", "expected a value, found the end", 3..3),
        ("1 2", "expected an operator or the end, found `2`", 2..3),
        ("(1", "expected `)`, found the end", 2..2),
        ("true ? 1", "expected `:`, found the end", 8..8),
        ("'open", "the text has no closing '", 0..5),
        ("props.x", "there is no `x` here: expected synapse, axis2", 5..7),
        ("params.uriParams.a", "there is no `uriParams` here: write `pathParams`", 6..16),
        ("props.synaps.x", "did you mean `synapse`?", 5..12),
        ("vars", "expected `.` and the name of a variable", 4..4),
        ("payload.", "expected a name", 8..8),
        ("payload.x.lenght()", "a path cannot end with `lenght()`: did you mean `length`?", 10..16),
        ("payload[:]", "a slice needs a bound", 8..9),
        ("payload.items[?(@.x =~ 5)]", "expected a regular expression", 23..24),
        ("!payload.x", "write `not(…)`", 0..1),
        ("-payload.x", "only a number can have a sign", 0..8),
        ("a # b", "'#' cannot stand here", 2..3),
        ("1 # 2", "'#' cannot stand here", 2..3),
        ("xpath('//[')", "in the XPath:", 5..12),
        ("1 === 2", "expected `==`", 2..5),
    ] {
        let error = compile(text).expect_err(text);
        assert!(error.message.contains(wanted), "{text}: {error:?}");
        assert_eq!(error.span, at, "{text}: {error:?}");
    }
    for deep in [
        "(".repeat(10_000),
        "[".repeat(10_000),
        "not(".repeat(10_000),
        "true ? ".repeat(5_000),
        format!("payload{}", "[payload".repeat(5_000)),
        format!("payload[?({}", "!".repeat(10_000)),
        format!("payload[?({}", "(".repeat(10_000)),
    ] {
        assert!(compile(&deep).is_err());
    }
    assert_eq!(given(&vec!["1"; 10_000].join("+")), "10000");
    assert_eq!(given(&vec!["true"; 5_000].join(" and ")), "true");
}

#[test]
fn what_the_path_library_reads_itself_is_found_when_it_evaluates() {
    for (text, found, wanted) in [
        ("payload.items[(@.length-1)].n", Found::Faulting, "write `[-1]` for the last element"),
        ("vars.j.a[(@.length-1)]", Found::Faulting, "write `[-1]` for the last element"),
        ("payload.items[last]", Found::Faulting, "there is no `last`"),
        ("payload.items[?(@.v = 1)]", Found::Loading, "'=' cannot stand here"),
        ("payload[:]", Found::Faulting, "a slice needs a bound"),
        ("payload.items[payload.items[(@)]]", Found::Faulting, "write `[-1]`"),
        ("payload.items[lenght('x')]", Found::Evaluating, "there is no function"),
        ("payload.items[(@.length-1)", Found::Loading, "write `[-1]`"),
        ("payload.items[0", Found::Loading, "expected `]`"),
        ("payload.x.", Found::Loading, "expected a name"),
    ] {
        let error = compile(text).expect_err(text);
        assert!(error.message.contains(wanted), "{text}: {error:?}");
        assert_eq!(error.found, found, "{text}: {error:?}");
    }
}

#[test]
fn what_an_expression_reads_is_known() {
    for (text, reads) in [
        ("1 + 2", Reads::Nothing),
        ("headers.x", Reads::Headers),
        ("vars.x.payload", Reads::Headers),
        ("exists(payload.x)", Reads::Json),
        ("$.x", Reads::Json),
        ("true ? 1 : payload", Reads::Json),
        ("xpath('//x')", Reads::Xml),
        ("xpath('1 + 1')", Reads::Headers),
        ("xpath('//x', 'v')", Reads::Headers),
        ("vars.a[payload.i]", Reads::Json),
        ("now()", Reads::Nothing),
    ] {
        assert_eq!(compile(text).unwrap().reads(), reads, "{text}");
    }
    assert!(compile("payload").unwrap().is_payload() && compile("$").unwrap().is_payload());
    assert!(compile("payload.a[0]").unwrap().payload_path().is_some());
    assert!(compile("payload.a[vars.i]").unwrap().payload_path().is_none());
}

#[test]
fn nothing_panics_on_mangled_expressions() {
    let pieces = [
        "", "'", "\"", "[", "]", "(", ")", ".", "..", "?", ":", "{0}", "é", "\\", "$", "@", "-", "9", " ",
        "/",
    ];
    let message = message();
    for seed in [
        "payload.items[?(@.v > vars.i && @.n =~ /a/i)].n[0:2] + 'x'",
        "subString(payload.name, payload.i, 3) == [1, null] ? $..n : xpath('//b', 'x')",
    ] {
        for (at, c) in seed.char_indices() {
            for piece in pieces {
                for skipped in [0, c.len_utf8()] {
                    let text = format!("{}{piece}{}", &seed[..at], &seed[at + skipped..]);
                    match compile(&text) {
                        Ok(compiled) => drop(compiled.evaluate(&message)),
                        Err(error) => assert!(text.get(error.span.clone()).is_some(), "{text}: {error:?}"),
                    }
                }
            }
        }
    }
}

/// What has the type DOUBLE keeps its `.0` where it is only passed on.
#[test]
fn doubles_are_written_as_java_does() {
    check(&[
        ("vars.java", "2.0"),
        ("string(vars.java)", "2.0"),
        ("\"a\" + string(vars.java)", "a2.0"),
        ("vars.java + 1", "3"),
        ("vars.java == 2", "true"),
        ("vars.small", "-0.125"),
        ("vars.d", "2"),
    ]);
}
