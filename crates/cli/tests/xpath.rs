//! `busbar xpath` from outside.

#![allow(clippy::unwrap_used)]

mod support;

const DOC: &str = "<s:E xmlns:s=\"u\"><s:B><o n=\"1\">IBM</o><!--c--><o n=\"2\">x&lt;y</o></s:B></s:E>";

/// Exit code, stdout, stderr.
fn xpath(args: &[&str], input: &str) -> (i32, String, String) {
    support::fed(&[&["xpath"], args].concat(), input)
}

#[test]
fn prints_values() {
    #[rustfmt::skip]
    let cases: &[(&[&str], &str)] = &[
        (&["//o"], "<o n=\"1\">IBM</o>\n<o n=\"2\">x&lt;y</o>\n"),
        (&["//o/@n"], "1\n2\n"),
        (&["//o[2] = 'x<y'"], "true\n"),
        (&["//o", "--json"], r#"{"type":"node-set","nodes":["/{u}E[1]/{u}B[1]/o[1]","/{u}E[1]/{u}B[1]/o[2]"],"string":"IBM"}"#),
        (&["//p:B/o[2]/@n", "--ns", "p=u", "--json"], r#"{"type":"node-set","nodes":["/{u}E[1]/{u}B[1]/o[2]/@n"],"string":"2"}"#),
        (&["o[1]", "--context", "//*[2]/.. | /*/*", "--json"], r#"{"type":"node-set","nodes":["/{u}E[1]/{u}B[1]/o[1]"],"string":"IBM"}"#),
        (&["count(//o) + 0.5", "--json"], r#"{"type":"number","value":2.5,"string":"2.5"}"#),
        (&["-1 div 0", "--json"], r#"{"type":"number","value":"-Infinity","string":"-Infinity"}"#),
        (&["not(//o)", "--json", "--stream", "always"], r#"{"type":"boolean","value":false,"string":"false"}"#),
        (&["string(//o)", "--stream", "never"], "IBM\n"),
        (&["string(//o)", "--stream", "always"], "IBM\n"),
        (&["name(//*[3])"], "\n"),
        (&["name(/*)", "--stream", "auto"], "s:E\n"),
        (&["for $o in //o return upper-case($o)", "--xpath-version", "2.0"], "IBM\nX<Y\n"),
        (&["count(//o)", "--xpath-version", "2.0", "--json"], r#"{"type":"number","value":2,"string":"2","atomic":"xs:integer"}"#),
        (&["(1.5, //o[1], 'a')", "--xpath-version", "2.0", "--json"], r#"{"type":"sequence","items":[{"type":"number","value":1.5,"string":"1.5","atomic":"xs:decimal"},{"type":"node","node":"/{u}E[1]/{u}B[1]/o[1]"},{"type":"string","value":"a","string":"a","atomic":"xs:string"}],"string":"1.5 IBM a"}"#),
        (&["xs:date('2001-02-03')", "--xpath-version", "2.0", "--json"], r#"{"type":"string","value":"2001-02-03","string":"2001-02-03","atomic":"xs:date"}"#),
        (&["()", "--xpath-version", "2.0", "--json"], r#"{"type":"node-set","nodes":[],"string":""}"#),
        (&["//o = 'IBM'", "--xpath-version", "2.0", "--json", "--stream", "always"], r#"{"type":"boolean","value":true,"string":"true","atomic":"xs:boolean"}"#),
    ];
    for (args, expected) in cases {
        let (code, out, err) = xpath(args, DOC);
        assert_eq!((code, out.trim_end()), (0, expected.trim_end()), "{args:?}: {err}");
    }
}

#[test]
fn explains_errors() {
    #[rustfmt::skip]
    let cases: &[(&[&str], &str, &str)] = &[
        (&["a + + b"], DOC, "error: expected an expression, found `+`\n  a + + b\n      ^"),
        (&["//x:o"], DOC, "the prefix `x` is not declared"),
        (&["foo(1)"], DOC, "there is no function `foo()`"),
        (&["1 eq 1"], DOC, "XPath 2.0 syntax, but the expression is XPath 1.0"),
        (&["1 +", "--xpath-version", "2.0"], DOC, "error: XPST0003: expected an expression"),
        (&["//o/xs:integer(.)", "--xpath-version", "2.0"], DOC, "error: FORG0001: \"IBM\" is not an xs:integer\n  //o/xs:integer(.)\n      ^^^^^^^^^^^^^"),
        (&["count(//o)", "--xpath-version", "2.0", "--stream", "always"], DOC, "what only XPath 2.0 has needs the tree"),
        (&["//o", "--stream", "always"], DOC, "not streamable"),
        (&["//o/.. = 1", "--stream", "always"], DOC, "looks back"),
        (&["//o"], "<a><b></a>", "stdin: 1:"),
        (&["//b = ''"], "<a><b/><c></a>", "stdin: 1:"),
        (&["//o"], "<!DOCTYPE o><o/>", "stdin: 1:"),
        (&["//o", "no-such-file.xml"], "", "no-such-file.xml"),
        (&["//o", "--context", "//zzz"], DOC, "no such node"),
    ];
    for (args, input, expected) in cases {
        let (code, out, err) = xpath(args, input);
        assert_eq!((code, out.as_str()), (1, ""), "{args:?}");
        assert!(err.contains(expected), "{args:?}: {err}");
    }
    // Decided before the fault.
    assert_eq!(xpath(&["//b = ''", "--stream", "always"], "<a><b/><c></a>").1, "true\n");
    assert_eq!(
        xpath(&["//o", "--dtd", "internal"], "<!DOCTYPE o [<!ENTITY e 'x'>]><o>&e;</o>").1,
        "<o>x</o>\n"
    );
}
