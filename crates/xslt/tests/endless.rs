//! What could go on without end, or nest without end, is an error in one line; what only looks like it runs.
#![allow(clippy::unwrap_used)] // helpers of tests

use busbar_xslt::{CompileOptions, Processor, RunLimits, RunOptions, Stylesheet};

fn sheet(version: &str, inside: &str) -> String {
    format!(
        r#"<xsl:stylesheet version="{version}" xmlns:xsl="http://www.w3.org/1999/XSL/Transform" xmlns:f="urn:f" xmlns:func="http://exslt.org/functions" extension-element-prefixes="func" exclude-result-prefixes="f">{inside}</xsl:stylesheet>"#
    )
}

/// The result without its declaration, or the errors.
fn run(sheet: &str, input: &str, limits: &RunLimits) -> Result<String, String> {
    let options = CompileOptions { processor: Processor::ByStylesheet, ..CompileOptions::default() };
    let compiled = Stylesheet::compile(sheet.as_bytes(), &options)
        .map_err(|errors| errors.iter().map(|e| e.message.clone()).collect::<Vec<_>>().join("; "))?;
    // Classified as the command and the bus do it.
    let _ = compiled.streaming();
    let input = xml::Document::parse(input.to_owned(), &xml::ParseOptions::default()).unwrap();
    let mut out = Vec::new();
    let run = RunOptions { limits, ..RunOptions::default() };
    compiled
        .transform_to(&input, xml::Document::ROOT, &[], &run, &mut out)
        .map_err(|error| error.to_string())?;
    let out = String::from_utf8(out).unwrap();
    Ok(out.split_once("?>").map_or(out.clone(), |(_, rest)| rest.to_owned()))
}

fn check(inside: &str, expected: Result<&str, &str>) {
    check_in("2.0", inside, expected);
}

fn check_in(version: &str, inside: &str, expected: Result<&str, &str>) {
    let found = run(&sheet(version, inside), "<a><b/></a>", &RunLimits::default());
    match (&found, expected) {
        (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{inside:.200}"),
        (Err(found), Err(expected)) => {
            assert!(found.contains(expected) && found.len() < 400, "{inside:.200}\n{found:.1000}");
        }
        _ => panic!("{inside:.200}\n{found:?}"),
    }
}

const DEEP: &str = "nested too deeply";

#[test]
fn recursion_ends() {
    let function = |body: &str| {
        format!(
            r#"<xsl:function name="f:a"><xsl:param name="n"/>{body}</xsl:function><xsl:template match="/"><xsl:sequence select="f:a(.)"/></xsl:template>"#
        )
    };
    check(
        r#"<xsl:function name="f:a"><xsl:sequence select="f:a()"/></xsl:function><xsl:template match="/"><xsl:sequence select="f:a()"/></xsl:template>"#,
        Err("endless recursion"),
    );
    for body in [
        r#"<xsl:sequence select="1 + f:a($n)"/>"#,
        r#"<xsl:sequence select="(f:a($n), 1)"/>"#,
        r#"<xsl:value-of select="f:a($n)"/>"#,
        r#"<xsl:variable name="v" select="f:a($n)"/><xsl:sequence select="$v"/>"#,
        r#"<x><xsl:sequence select="f:a($n)"/></x>"#,
        r#"<xsl:apply-templates select="$n"/>"#,
        r#"<xsl:sequence select="for $i in 1 to 2 return f:a($i) + 1"/>"#,
        r#"<xsl:for-each-group select="1 to 3" group-by="f:a(.)">1</xsl:for-each-group>"#,
        r#"<xsl:perform-sort select="1 to 3"><xsl:sort select="f:a(.)"/></xsl:perform-sort>"#,
        r#"<xsl:analyze-string select="'a'" regex="a"><xsl:matching-substring><xsl:value-of select="f:a(.)"/></xsl:matching-substring></xsl:analyze-string>"#,
    ] {
        check(&function(body), Err(DEEP));
    }
    // By way of patterns, keys, attribute sets, global variables.
    for inside in [
        r#"<xsl:function name="f:x"><xsl:param name="n"/><xsl:variable name="v"><xsl:apply-templates select="$n"/></xsl:variable><xsl:sequence select="$v = 1"/></xsl:function><xsl:template match="a[f:x(.)]">1</xsl:template>"#,
        r#"<xsl:function name="f:x"><xsl:param name="n"/><xsl:variable name="v"><xsl:apply-templates select="$n"/></xsl:variable><xsl:sequence select="$v = 1"/></xsl:function><xsl:template match="a[1][f:x(.)][1]">1</xsl:template>"#,
        r#"<xsl:attribute-set name="s"><xsl:attribute name="x"><xsl:variable name="v"><e xsl:use-attribute-sets="s"/></xsl:variable><xsl:value-of select="$v/e/@x"/></xsl:attribute></xsl:attribute-set><xsl:template match="/"><e xsl:use-attribute-sets="s"/></xsl:template>"#,
        r#"<xsl:template match="/"><xsl:call-template name="t"/></xsl:template><xsl:template name="t"><x><xsl:call-template name="t"/></x></xsl:template>"#,
        r#"<xsl:template match="node()"><xsl:apply-templates select="."/></xsl:template>"#,
    ] {
        check(inside, Err(DEEP));
    }
    check(
        r#"<xsl:key name="k" match="a[key('k', 'x')]" use="'x'"/><xsl:template match="/"><xsl:value-of select="count(key('k', 'x'))"/></xsl:template>"#,
        Err("needs its own"),
    );
    check(
        r#"<xsl:variable name="a"><xsl:call-template name="t"/></xsl:variable><xsl:template name="t"><xsl:value-of select="$a"/></xsl:template><xsl:template match="/"><xsl:value-of select="$a"/></xsl:template>"#,
        Err("needs its own value"),
    );
    check_in(
        "1.0",
        r#"<func:function name="f:a"><func:result select="1 + f:a()"/></func:function><xsl:template match="/"><xsl:value-of select="f:a()"/></xsl:template>"#,
        Err(DEEP),
    );
}

/// What failed far in is said once, with its own place.
#[test]
fn errors_do_not_nest() {
    let inside = r#"<xsl:function name="f:a"><xsl:param name="n"/><xsl:sequence select="if ($n = 0) then error((), 'far in') else 1 + f:a($n - 1)"/></xsl:function><xsl:template match="/"><xsl:sequence select="f:a(500)"/></xsl:template>"#;
    let error = run(&sheet("2.0", inside), "<a/>", &RunLimits::default()).unwrap_err();
    assert_eq!(error.matches("far in").count(), 2, "the message and the expression: {error}");
    assert!(error.len() < 300, "{error}");
}

#[test]
fn what_is_deep_runs() {
    check(
        r#"<xsl:function name="f:a"><xsl:param name="n"/><xsl:sequence select="if ($n = 0) then 0 else 1 + f:a($n - 1)"/></xsl:function><xsl:template match="/"><xsl:sequence select="f:a(9000)"/></xsl:template>"#,
        Ok("9000"),
    );
    // A chain of global variables.
    let mut chain: String =
        (0..3000).map(|n| format!(r#"<xsl:variable name="v{n}" select="$v{} + 1"/>"#, n + 1)).collect();
    chain += r#"<xsl:variable name="v3000" select="0"/><xsl:template match="/"><xsl:value-of select="$v0"/></xsl:template>"#;
    check(&chain, Ok("3000"));
    // Templates that lead from one to the next.
    let mut chain: String = (0..3000)
        .map(|n| {
            format!(r#"<xsl:template name="t{n}"><x/><xsl:call-template name="t{}"/></xsl:template>"#, n + 1)
        })
        .collect();
    chain += r#"<xsl:template name="t3000">1</xsl:template><xsl:template match="/"><xsl:variable name="v"><xsl:call-template name="t0"/></xsl:variable><xsl:value-of select="$v"/></xsl:template>"#;
    check(&chain, Ok("1"));
}

/// Calls at the end of a template or function go no deeper.
#[test]
fn tail_calls() {
    let limits = RunLimits { depth: 50, ..RunLimits::default() };
    for (version, inside) in [
        (
            "1.0",
            r#"<xsl:template match="/"><xsl:call-template name="t"><xsl:with-param name="n" select="20000"/></xsl:call-template></xsl:template><xsl:template name="t"><xsl:param name="n"/><xsl:param name="s"/><xsl:choose><xsl:when test="$n = 0"><xsl:value-of select="string-length($s)"/></xsl:when><xsl:otherwise><xsl:call-template name="t"><xsl:with-param name="n" select="$n - 1"/><xsl:with-param name="s" select="concat($s, 'x')"/></xsl:call-template></xsl:otherwise></xsl:choose></xsl:template>"#,
        ),
        (
            "2.0",
            r#"<xsl:function name="f:a"><xsl:param name="n"/><xsl:param name="s"/><xsl:sequence select="if ($n = 0) then string-length($s) else f:a($n - 1, concat($s, 'x'))"/></xsl:function><xsl:template match="/"><xsl:sequence select="f:a(20000, '')"/></xsl:template>"#,
        ),
        (
            "2.0",
            r#"<xsl:function name="f:a"><xsl:param name="n"/><xsl:param name="s"/><xsl:variable name="m" select="$n - 1"/><xsl:choose><xsl:when test="$n = 0"><xsl:sequence select="string-length($s)"/></xsl:when><xsl:otherwise><xsl:sequence select="f:b($m, $s)"/></xsl:otherwise></xsl:choose></xsl:function><xsl:function name="f:b"><xsl:param name="n"/><xsl:param name="s"/><xsl:sequence select="f:a($n, concat($s, 'x'))"/></xsl:function><xsl:template match="/"><xsl:sequence select="f:a(20000, '')"/></xsl:template>"#,
        ),
    ] {
        let found = run(&sheet(version, inside), "<a/>", &limits);
        assert_eq!(found.as_deref(), Ok("20000"), "{inside:.100}");
    }
}

#[test]
fn nesting_of_a_stylesheet() {
    let nested = |begin: &str, end: &str, count: usize| {
        format!(r#"<xsl:template match="/">{}{}</xsl:template>"#, begin.repeat(count), end.repeat(count))
    };
    let deep = "XPDY0130: elements are nested too deeply (limit 1000)";
    for (begin, end) in [
        (r#"<xsl:for-each-group select="1" group-by=".">"#, "</xsl:for-each-group>"),
        ("<a>", "</a>"),
        (r#"<xsl:if test="1">"#, "</xsl:if>"),
        (r#"<xsl:element name="a">"#, "</xsl:element>"),
    ] {
        check(&nested(begin, end, 3000), Err(deep));
        let inside = nested(begin, end, 900);
        assert!(run(&sheet("2.0", &inside), "<a/>", &RunLimits::default()).is_ok(), "{begin}");
    }
}

/// A variable refers to what its expressions refer to, not to what their text looks like.
#[test]
fn cycles() {
    check(
        r#"<xsl:variable name="i" select="for $i in 1 to 3 return $i"/><xsl:variable name="a" select="'costs $a'"/><xsl:variable name="c" select="(: $c :) replace('ax', 'a$x', '')"/><xsl:template match="/"><xsl:value-of select="$i, $a, $c"/></xsl:template>"#,
        Ok("1 2 3 costs $a ax"),
    );
    check(
        r#"<xsl:variable name="v"><xsl:variable name="v" select="1"/><xsl:value-of select="$v"/></xsl:variable><xsl:template match="/"><xsl:value-of select="$v"/></xsl:template>"#,
        Ok("1"),
    );
    for inside in [
        r#"<xsl:variable name="a" select="$a"/>"#,
        r#"<xsl:variable name="a" select="$b"/><xsl:variable name="b" select="1, $c"/><xsl:variable name="c"><x y="{$a}"/></xsl:variable>"#,
        r#"<xsl:variable name="a" select="$b"/><xsl:variable name="b"><xsl:for-each select="1"><xsl:if test="$a = 1">1</xsl:if></xsl:for-each></xsl:variable>"#,
    ] {
        check(&format!("{inside}<xsl:template match='/'/>"), Err("needs its own value"));
    }
}

/// Keys of different numeric types have one order; what has none is an error, not a panic.
#[test]
fn sorting_by_keys_of_several_types() {
    let sort = |values: &str| {
        format!(
            r#"<xsl:template match="/"><xsl:variable name="s" as="item()*"><xsl:perform-sort select="{values}"><xsl:sort select="."/></xsl:perform-sort></xsl:variable><xsl:value-of select="$s"/></xsl:template>"#
        )
    };
    check(
        &sort("(9007199254740993, 9007199254740992e0, 9007199254740991, 1.5, 1e0, xs:double('NaN'), 0.1, 0.1e0)")
            .replace("<xsl:template match=\"/\">", "<xsl:template match=\"/\" xmlns:xs=\"http://www.w3.org/2001/XMLSchema\">"),
        Ok("NaN 0.1 0.1 1 1.5 9007199254740991 9.007199254740992E15 9007199254740993"),
    );
    check(&sort("(3, 'a', 2, 'b')"), Err("XTDE1030"));
    // Many keys, by chance.
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 33
    };
    let values: Vec<String> = (0..300)
        .map(|_| {
            let n = 9_007_199_254_740_992_u64 + next() % 8;
            match next() % 3 {
                0 => format!("{n}"),
                1 => format!("{n}e0"),
                _ => format!("{n}.{}", next() % 10),
            }
        })
        .collect();
    let list = format!("({})", values.join(","));
    assert!(run(&sheet("2.0", &sort(&list)), "<a/>", &RunLimits::default()).is_ok());
}
