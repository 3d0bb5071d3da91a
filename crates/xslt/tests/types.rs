//! `as` of XSLT 2.0: what is declared, converted and refused, with the code of each error and its place.

#![allow(clippy::unwrap_used)]

mod sheets;

use busbar_xslt::RunOptions;
use sheets::{INPUT, check, compile, root};
use xml::{Document, ParseOptions};

/// A called template with this parameter, passed this.
fn called(parameter: &str, argument: &str, body: &str) -> String {
    format!(
        "<xsl:template match='/r'><xsl:call-template name='t'>{argument}</xsl:call-template></xsl:template>\
         <xsl:template name='t'>{parameter}{body}</xsl:template>"
    )
}

fn tables(cases: &[(String, &str)]) {
    check(&cases.iter().map(|(body, expected)| (body.as_str(), *expected)).collect::<Vec<_>>());
}

/// A template rule for `b` whose result has the type.
fn result(ty: &str, body: &str) -> String {
    format!(
        "<xsl:template match='/r'><o><xsl:apply-templates select='b'/></o></xsl:template>\
         <xsl:template match='b' as='{ty}'>{body}</xsl:template>"
    )
}

#[test]
fn results_of_templates() {
    let case = |ty: &str, body: &str, expected: &'static str| (result(ty, body), expected);
    tables(&[
        case("item()*", "<x/>t<xsl:sequence select='1, 2'/>", "<o><x/>t1 2</o>"),
        case("element(x)", "<x a='{.}'/>", "<o><x a=\"2\"/></o>"),
        case("element(x)", "<x><y/><x/></x>", "<o><x><y/><x/></x></o>"),
        case("element(x)", "<y/>", "!XTTE0505: the result of the template: element(x) is wanted"),
        case("element()", "<x/><y/>", "!XTTE0505"),
        case("element()+", "<x/><y/>", "<o><x/><y/></o>"),
        case("element()?", "<xsl:if test='false()'><x/></xsl:if>", "<o/>"),
        case("element()", "<xsl:if test='false()'><x/></xsl:if>", "!XTTE0505"),
        case("element()*", "<x/>text", "!XTTE0505"),
        case("node()*", "<x/>text<xsl:comment>c</xsl:comment>", "<o><x/>text<!--c--></o>"),
        case("node()*", "<xsl:sequence select='1'/>", "!XTTE0505"),
        case("attribute(q)", "<xsl:attribute name='q'>v</xsl:attribute>", "<o q=\"v\"/>"),
        case("attribute(q)", "<xsl:attribute name='p'>v</xsl:attribute>", "!XTTE0505"),
        case("text()", "<xsl:value-of select='.'/>", "<o>2</o>"),
        case("document-node()", "<xsl:document><x/></xsl:document>", "<o><x/></o>"),
        case("empty-sequence()", "<xsl:message>m</xsl:message>", "<o/>"),
        case("empty-sequence()", "x", "!XTTE0505"),
        // Atomic types: nodes become what they hold, untyped values are cast, numbers and URIs promoted.
        case("xs:integer", "<xsl:sequence select='.'/>", "<o>2</o>"),
        case("xs:integer", "<xsl:sequence select='../a[1]'/>", "!FORG0001"),
        case("xs:double", "<xsl:sequence select='1, 2'/>", "!XTTE0505"),
        case("xs:double*", "<xsl:sequence select='1, 2.5'/>", "<o>1 2.5</o>"),
        case("xs:string", "<xsl:sequence select='xs:anyURI(\"urn:a\")'/>", "<o>urn:a</o>"),
        case("xs:string", "<xsl:sequence select='5'/>", "!XTTE0505"),
        case("xs:integer", "<xsl:sequence select='1.5'/>", "!XTTE0505"),
        case("xs:untypedAtomic", "<xsl:sequence select='.'/>", "<o>2</o>"),
        case("xs:string?", "<xsl:value-of select='.'/>", "<o>2</o>"),
    ]);
    // By name, in another template that has a type, and far in.
    tables(&[
        (
            "<xsl:template match='/r'><xsl:variable name='v' as='xs:integer*'><xsl:call-template name='t'/></xsl:variable>\
             <xsl:value-of select='sum($v), $v[1] instance of xs:integer'/></xsl:template>\
             <xsl:template name='t' as='xs:integer*'><xsl:sequence select='b, n'/></xsl:template>"
                .to_owned(),
            "25 true",
        ),
        (
            "<xsl:template match='/r'><xsl:call-template name='t'><xsl:with-param name='n' select='9'/></xsl:call-template></xsl:template>\
             <xsl:template name='t' as='element()*'><xsl:param name='n' as='xs:integer'/>\
             <xsl:if test='$n > 0'><i n='{$n}'/><xsl:call-template name='t'><xsl:with-param name='n' select='$n - 3'/></xsl:call-template></xsl:if></xsl:template>"
                .to_owned(),
            "<i n=\"9\"/><i n=\"6\"/><i n=\"3\"/>",
        ),
    ]);
}

#[test]
fn parameters() {
    let one = |parameter: &str, argument: &str, expected: &'static str| {
        (called(parameter, argument, "<xsl:value-of select='$p' separator=','/>"), expected)
    };
    let number = "<xsl:param name='p' as='xs:integer'/>";
    tables(&[
        one(number, "<xsl:with-param name='p' select='b'/>", "2"),
        one(
            number,
            "<xsl:with-param name='p' select='\"a\"'/>",
            "!XTTE0590: the parameter $p: xs:integer is wanted",
        ),
        one(number, "<xsl:with-param name='p' select='n'/>", "!XTTE0590"),
        one(number, "<xsl:with-param name='p' select='()'/>", "!XTTE0590"),
        // The default is of the type too; where there is none, nothing must be of it.
        one("<xsl:param name='p' as='xs:integer' select='7'/>", "", "7"),
        one("<xsl:param name='p' as='xs:integer' select='\"a\"'/>", "", "!XTTE0600: the parameter $p"),
        one(
            "<xsl:param name='p' as='xs:integer' select='\"a\"'/>",
            "<xsl:with-param name='p' select='3'/>",
            "3",
        ),
        one("<xsl:param name='p' as='xs:integer*'><xsl:sequence select='1, 2'/></xsl:param>", "", "1,2"),
        one("<xsl:param name='p' as='element()'>x</xsl:param>", "", "!XTTE0600"),
        one("<xsl:param name='p' as='xs:integer?'/>", "", ""),
        one(number, "", "!XTDE0610: the parameter $p"),
        one(
            "<xsl:param name='p' as='xs:integer' required='yes'/>",
            "<xsl:with-param name='p' select='b'/>",
            "2",
        ),
        one("<xsl:param name='p' as='xs:integer' required='yes'/>", "", "!XTSE0690"),
        one("<xsl:param name='p'/>", "<xsl:with-param name='q' select='1'/>", "!XTSE0680"),
        one("<xsl:param name='p'/>", "<xsl:with-param name='q' select='1' tunnel='yes'/>", ""),
        // Of the argument itself.
        one("<xsl:param name='p'/>", "<xsl:with-param name='p' as='xs:integer' select='b'/>", "2"),
        one(
            "<xsl:param name='p'/>",
            "<xsl:with-param name='p' as='xs:integer' select='n'/>",
            "!XTTE0570: the argument $p",
        ),
        one(
            "<xsl:param name='p'/>",
            "<xsl:with-param name='p' as='xs:double' select='1'>x</xsl:with-param>",
            "!content",
        ),
        // Tunnel parameters.
        one(
            "<xsl:param name='p' as='xs:integer' tunnel='yes' select='4'/>",
            "<xsl:with-param name='p' tunnel='yes' select='b'/>",
            "2",
        ),
        one(
            "<xsl:param name='p' as='xs:integer' tunnel='yes' select='4'/>",
            "<xsl:with-param name='p' tunnel='yes' select='n'/>",
            "!XTTE0590",
        ),
        one("<xsl:param name='p' as='xs:integer' tunnel='yes' select='4'/>", "", "4"),
        one("<xsl:param name='p' as='xs:integer' tunnel='yes' select='n'/>", "", "!XTTE0600"),
    ]);
    check(&[
        (
            "<xsl:param name='p' as='xs:integer' select='\"a\"'/><xsl:template match='/r'><xsl:value-of select='$p'/></xsl:template>",
            "!XTTE0600",
        ),
        (
            "<xsl:variable name='p' as='xs:integer' select='\"a\"'/><xsl:template match='/r'><xsl:value-of select='$p'/></xsl:template>",
            "!XTTE0570: the variable $p",
        ),
        (root!("<xsl:variable name='p' as='xs:integer' select='1'>x</xsl:variable>"), "!content"),
        // A rule whose parameter is not passed needs no error before it runs.
        (
            "<xsl:template match='/r'><xsl:apply-templates select='b'/></xsl:template><xsl:template match='b'><xsl:param name='p' required='yes'/></xsl:template>",
            "!XTDE0700",
        ),
    ]);
}

#[test]
fn functions() {
    check(&[
        (
            "<xsl:function name='f:x' as='xs:integer'><xsl:param name='a' as='xs:integer'/><xsl:sequence select='$a + 1'/></xsl:function><xsl:template match='/r'><xsl:value-of select='f:x(b)'/></xsl:template>",
            "3",
        ),
        (
            "<xsl:function name='f:x'><xsl:param name='a' as='xs:integer'/><xsl:sequence select='$a'/></xsl:function><xsl:template match='/r'><xsl:value-of select='f:x(\"s\")'/></xsl:template>",
            "!XTTE0790: the parameter $a",
        ),
        (
            "<xsl:function name='f:x' as='xs:integer'><xsl:sequence select='\"s\"'/></xsl:function><xsl:template match='/r'><xsl:value-of select='f:x()'/></xsl:template>",
            "!XTTE0780: the result of the function",
        ),
        (
            "<xsl:function name='f:x' as='element()*'><xsl:param name='n' as='xs:double'/><i><xsl:value-of select='$n'/></i></xsl:function><xsl:template match='/r'><xsl:copy-of select='f:x(3)'/></xsl:template>",
            "<i>3</i>",
        ),
    ]);
}

/// The error stands where the type is declared.
#[test]
fn places() {
    let doc = Document::parse(INPUT, &ParseOptions::default()).unwrap();
    for (body, line) in [
        (called("\n<xsl:param name='p' as='xs:integer'/>", "<xsl:with-param name='p' select='n'/>", "x"), 2),
        (called("\n\n<xsl:variable name='p' as='xs:integer' select='n'/>", "", ""), 3),
        (format!("\n{}", result("xs:integer", "x")), 2),
    ] {
        let sheet = compile(&body).unwrap();
        let mut out = Vec::new();
        let options = RunOptions::default();
        let doc = if line == 2 && body.starts_with('\n') {
            &Document::parse("<r><b/></r>", &ParseOptions::default()).unwrap()
        } else {
            &doc
        };
        let error = sheet.transform_to(doc, Document::ROOT, &[], &options, &mut out).unwrap_err();
        assert_eq!((error.line, error.column > 0), (line, true), "{body}: {error}");
    }
}
