//! `busbar jsonpath` and `busbar validate` from outside.

#![allow(clippy::unwrap_used)]

mod support;

use std::path::{Path, PathBuf};
use support::fed;

/// Files of a test, in a folder of their own.
fn files(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    for (file, text) in files {
        std::fs::write(folder.join(file), text).unwrap();
    }
    folder
}

const JSON: &str =
    r#"{"b": [{"x": 1.50, "n": null}, {"x": 1000, "y": "é"}, {"z": [1, 2]}], "a": {"odd name": true}}"#;

#[test]
fn jsonpath_prints_an_array() {
    let jayway = ["--dialect", "jayway"];
    #[rustfmt::skip]
    let cases: &[(&str, &[&str], &str)] = &[
        // Numbers as written, members in their order.
        ("$", &[], r#"[{"b":[{"x":1.50,"n":null},{"x":1000,"y":"é"},{"z":[1,2]}],"a":{"odd name":true}}]"#),
        ("$.b[*].x", &[], "[1.50,1000]"),
        ("$.b[0].n", &[], "[null]"),
        ("$.b[?@.x > 2].y", &[], r#"["é"]"#),
        ("$.b[?match(@.y, '.')].x", &[], "[1000]"),
        ("$['a']['odd name']", &["--dialect", "rfc9535"], "[true]"),
        ("$.none", &[], "[]"),
        ("$..z[1]", &[], "[2]"),
        ("$.b[-1].z[0:1]", &[], "[1]"),
        ("$.b[*].x", &["--paths"], r#"["$['b'][0]['x']","$['b'][1]['x']"]"#),
        ("$.none", &["--paths"], "[]"),
        ("$.a", &["--paths", "--dialect", "jayway"], r#"["$['a']"]"#),
        ("$.b[?(@.x > 2)].y", &jayway, r#"["é"]"#),
        ("$.b[?(@.y =~ /É/i)].x", &jayway, "[1000]"),
        ("$.b[2].z.sum()", &jayway, "[3]"),
        ("$.b.length()", &jayway, "[3]"),
        ("$..none", &jayway, "[]"),
    ];
    for (expression, flags, wanted) in cases {
        let args: Vec<&str> = ["jsonpath", expression].iter().chain(*flags).copied().collect();
        let (code, out, err) = fed(&args, JSON);
        let print = |text: &str| text.trim_end().replace("3.0]", "3]");
        assert_eq!((code, print(&out).as_str(), err.as_str()), (0, *wanted, ""), "{args:?}");
    }
    let folder = files("jsonpath", &[("in.json", JSON)]);
    let file = folder.join("in.json").display().to_string();
    for input in [file.as_str(), "-"] {
        assert_eq!(fed(&["jsonpath", "$.b[2].z[0]", input], JSON), (0, "[1]\n".into(), String::new()));
    }
}

#[test]
fn jsonpath_explains_errors() {
    #[rustfmt::skip]
    let cases: &[(&[&str], &str, &str)] = &[
        (&["$.b["], JSON, "\n  $.b[\n"),
        (&["b"], JSON, "^"),
        (&["$.b[?(@.x > 2)"], JSON, "$.b[?(@.x > 2)"),
        (&["$.b[?count(@.x) == 'a'] x"], JSON, "busbar jsonpath: "),
        (&["$.none", "--dialect", "jayway"], JSON, "busbar jsonpath: "),
        (&["$.b.sum(", "--dialect", "jayway"], JSON, "busbar jsonpath: "),
        (&["$.a"], "{\"a\": 1", "standard input: "),
        (&["$.a"], "", "standard input: "),
        (&["$.a", "no-such-file.json"], "", "no-such-file.json: "),
    ];
    for (args, input, wanted) in cases {
        let all: Vec<&str> = std::iter::once("jsonpath").chain(args.iter().copied()).collect();
        let (code, out, err) = fed(&all, input);
        assert_eq!((code, out.as_str()), (1, ""), "{args:?}: {err}");
        assert!(err.contains(wanted), "{args:?}: {err}");
    }
    // Wrong arguments are the caller's fault.
    for args in [&["jsonpath"][..], &["jsonpath", "$", "--dialect", "goessner"]] {
        assert_eq!(fed(args, JSON).0, 2, "{args:?}");
    }
}

const XSD: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="o"><xs:complexType><xs:sequence>
  <xs:element name="n" type="xs:int" maxOccurs="2"/></xs:sequence><xs:attribute name="k" type="xs:date"/></xs:complexType></xs:element></xs:schema>"#;
const PART: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="p" type="xs:boolean"/></xs:schema>"#;
const SCHEMA: &str = r#"{"type": "object", "properties": {"n": {"type": "integer"}, "d": {"format": "date"}}, "required": ["n"]}"#;

#[test]
fn validate_tells_every_violation() {
    let folder = files(
        "validate",
        &[
            ("s.xsd", XSD),
            ("part.xsd", PART),
            (
                "bad.xsd",
                "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><xs:element name='o' type='none'/></xs:schema>",
            ),
            ("cut.xsd", "<xs:schema"),
            ("s.json", SCHEMA),
            (
                "draft4.json",
                r#"{"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": true}"#,
            ),
            ("exclusive4.json", r#"{"minimum": 3, "exclusiveMinimum": true}"#),
            ("const.json", r#"{"const": 1}"#),
            ("tuple.json", r#"{"items": [{"type": "string"}]}"#),
            ("prefix.json", r#"{"prefixItems": [{"type": "string"}]}"#),
            ("then.json", r#"{"if": {}, "then": false}"#),
            ("defs.json", r##"{"$defs": {"a": {"$anchor": "x", "type": "string"}}, "$ref": "#x"}"##),
            ("bad.json", r#"{"type": "text"}"#),
            ("cut.json", "{"),
            ("good.xml", "<o k='2024-02-29'><n>1</n></o>"),
            ("wrong.xml", "<o k='x'><n>a</n><n>1</n><n>2</n></o>"),
            ("p.xml", "<p>true</p>"),
            ("good.in", r#"{"n": 1, "d": "2024-02-29"}"#),
            ("wrong.in", r#"{"n": "x", "d": "2024-02-30"}"#),
            ("three.in", "3"),
            ("list.in", "[1]"),
            ("cut.in", "{"),
        ],
    );
    #[rustfmt::skip]
    let cases: &[(&str, i32, &[&str])] = &[
        ("s.xsd --input good.xml", 0, &[]),
        ("s.xsd --input wrong.xml", 1, &["wrong.xml:1:", "/o/@k: cvc-", "/o/n[1]: cvc-", "/o/n[3]"]),
        ("s.xsd part.xsd --input p.xml", 0, &[]),
        ("s.xsd --input p.xml", 1, &["/p: cvc-"]),
        ("s.xsd --input cut.in", 1, &["cut.in:"]),
        ("s.xsd --input none.xml", 1, &["none.xml: "]),
        ("s.xsd --schema-only", 0, &[]),
        ("bad.xsd --schema-only", 2, &["bad.xsd:1:"]),
        ("bad.xsd --input good.xml", 2, &["bad.xsd:1:"]),
        ("cut.xsd --schema-only", 2, &["cut.xsd:1:"]),
        ("none.xsd --schema-only", 2, &["none.xsd: "]),
        ("s.json --input good.in", 0, &[]),
        ("s.json --input wrong.in", 1, &["wrong.in: /n: type: ", "wrong.in: /d: format: "]),
        ("s.json --input list.in", 1, &["list.in: "]),
        ("s.json --input cut.in", 1, &["cut.in: "]),
        ("s.json --schema-only", 0, &[]),
        ("bad.json --schema-only", 2, &["bad.json"]),
        ("cut.json --schema-only", 2, &["cut.json"]),
        ("s.json s.xsd --schema-only", 2, &["must all be XML Schemas"]),
        ("s.json part.json --schema-only", 2, &["part.json: "]),
        // The draft: of `$schema`, of the flag, 2020-12.
        ("draft4.json --input three.in", 1, &[": exclusiveMinimum: "]),
        ("draft4.json --input three.in --draft 7", 1, &[": exclusiveMinimum: "]),
        ("exclusive4.json --input three.in --draft 4", 1, &[": exclusiveMinimum: "]),
        ("exclusive4.json --schema-only --draft 6", 2, &["exclusive4.json"]),
        ("exclusive4.json --schema-only", 2, &["exclusive4.json"]),
        ("const.json --input three.in --draft 4", 0, &[]),
        ("const.json --input three.in --draft 6", 1, &[": const: "]),
        ("then.json --input three.in --draft 6", 0, &[]),
        ("then.json --input three.in --draft 7", 1, &["three.in: "]),
        ("tuple.json --input list.in --draft 2019-09", 1, &["/0: type: "]),
        ("prefix.json --input list.in --draft 2019-09", 0, &[]),
        ("prefix.json --input list.in --draft 2020-12", 1, &["/0: type: "]),
        ("prefix.json --input list.in", 1, &["/0: type: "]),
        ("defs.json --input three.in --draft 2019-09", 1, &[": type: "]),
        // Wrong arguments.
        ("s.json", 2, &["--input"]),
        ("--input good.in", 2, &["SCHEMAS"]),
        ("s.json --input good.in --schema-only", 2, &["cannot be used with"]),
        ("s.json --input good.in --draft 3", 2, &["possible values: 4, 6, 7, 2019-09, 2020-12"]),
    ];
    for (line, wanted, parts) in cases {
        let args: Vec<String> = line
            .split(' ')
            .map(|word| match word.rsplit_once('.') {
                Some(_) => folder.join(word).display().to_string(),
                None => word.to_owned(),
            })
            .collect();
        let args: Vec<&str> = std::iter::once("validate").chain(args.iter().map(String::as_str)).collect();
        let (code, out, err) = fed(&args, "");
        assert_eq!((code, out.as_str()), (*wanted, ""), "{line}: {err}");
        assert_eq!(err.is_empty(), code == 0, "{line}: {err}");
        for part in *parts {
            assert!(err.contains(part), "{line}: {part} is not in {err}");
        }
    }
    let schema = folder.join("s.json").display().to_string();
    assert_eq!(fed(&["validate", &schema, "--input", "-"], r#"{"n": 1}"#).0, 0);
    let (code, _, err) = fed(&["validate", &schema, "--input", "-"], "{}");
    assert!(code == 1 && err.contains("standard input: ") && err.contains("required"), "{err}");
}
