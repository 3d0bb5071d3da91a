//! `xsl:evaluate` (XSLT 3.0 section 10.4): tables of templates and what comes out.

#![allow(clippy::unwrap_used)]

mod sheets;

use busbar_xslt::{CompileOptions, Stylesheet};

const INPUT: &str =
    "<r xmlns:q='urn:q'><a id='1'>one</a><q:a>q</q:a><e x='count(a)' y='$n + 1' z='f:twice(4)'/></r>";

/// Evaluates its argument, with itself as variable.
const AGAIN: &str = "<xsl:function name='f:again' visibility='final'><xsl:param name='x'/><xsl:evaluate xpath='$x'><xsl:with-param name='x' select='$x'/></xsl:evaluate></xsl:function>";

fn compile(body: &str, evaluate: bool) -> Result<Stylesheet, String> {
    let again = if evaluate { AGAIN } else { "" };
    let sheet = format!(
        "<xsl:stylesheet version='3.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform' xmlns:xs='http://www.w3.org/2001/XMLSchema' \
         xmlns:f='urn:f' xmlns:map='http://www.w3.org/2005/xpath-functions/map' xmlns:err='http://www.w3.org/2005/xqt-errors' \
         exclude-result-prefixes='#all'><xsl:output omit-xml-declaration='yes'/>\
         <xsl:variable name='global' select='1'/>\
         <xsl:function name='f:twice' visibility='public'><xsl:param name='x'/><xsl:sequence select='2 * $x'/></xsl:function>\
         <xsl:function name='f:own'><xsl:param name='x'/><xsl:sequence select='$x'/></xsl:function>\
         {again}\
         <xsl:template match='/r'><xsl:variable name='local' select='1'/>{body}</xsl:template></xsl:stylesheet>"
    );
    let options = CompileOptions { evaluate, ..CompileOptions::default() };
    Stylesheet::compile(sheet.as_bytes(), &options)
        .map_err(|errors| format!("compile: {}", errors[0].message))
}

#[test]
fn expressions_of_documents() {
    let run = |body: &str| sheets::transformed(&compile(body, true)?, INPUT, body);
    sheets::check_with(
        run,
        &[
            ("<xsl:evaluate xpath=\"'1 + ' || 2\"/>", "3"),
            ("<xsl:evaluate xpath='e/@x' context-item='.'/>", "1"),
            (
                "<xsl:for-each select='e/@*'><xsl:try><xsl:evaluate xpath='.' context-item='..'><xsl:with-param name='n' select='5'/></xsl:evaluate><xsl:catch select='$err:code'/></xsl:try>,</xsl:for-each>",
                "0,6,8,",
            ),
            // What is in scope is what is passed.
            (
                "<xsl:evaluate xpath=\"'$n'\" with-params=\"map { xs:QName('n'): (1, 2) }\"><xsl:with-param name='n' select='5'/></xsl:evaluate>",
                "1 2",
            ),
            (
                "<xsl:evaluate xpath=\"'$f:n - $o'\" with-params=\"map { QName('urn:f', 'p:n'): 7 }\"><xsl:with-param name='o' select='5'/></xsl:evaluate>",
                "2",
            ),
            (
                "<xsl:evaluate xpath=\"'$n, position(), last(), .'\" context-item='9'><xsl:with-param name='n' as='xs:string'><xsl:text>t</xsl:text></xsl:with-param></xsl:evaluate>",
                "t 1 1 9",
            ),
            ("<xsl:evaluate xpath=\"'$local'\"/>", "!XTDE3160"),
            ("<xsl:evaluate xpath=\"'$global'\"/>", "!XTDE3160"),
            ("<xsl:evaluate xpath=\"'.'\"/>", "!XPDY0002"),
            ("<xsl:evaluate xpath=\"'.'\" context-item='()'/>", "!XPDY0002"),
            ("<xsl:evaluate xpath=\"'f:own(1)'\"/>", "!XTDE3160"),
            ("<xsl:evaluate xpath=\"'current()'\" context-item='.'/>", "!XTDE3160"),
            ("<xsl:evaluate xpath=\"'system-property(&quot;xsl:version&quot;)'\"/>", "!XTDE3160"),
            ("<xsl:evaluate xpath=\"'1 +'\"/>", "!XTDE3160"),
            ("<xsl:evaluate xpath=\"'1', '2'\"/>", "!XPTY0004"),
            ("<xsl:evaluate xpath=\"'a'\" context-item='*'/>", "!XTTE3210"),
            ("<xsl:evaluate xpath=\"'a'\" with-params='1'/>", "!XTTE3165"),
            ("<xsl:evaluate xpath=\"'a'\" with-params='map { 1: 2 }'/>", "!XTTE3165"),
            ("<xsl:evaluate xpath=\"'a'\" namespace-context='a, a'/>", "!XTTE3170"),
            ("<xsl:evaluate xpath=\"'1 idiv 0'\"/>", "!FOAR0001"),
            (
                "<xsl:try><xsl:evaluate xpath=\"'1 idiv 0'\"/><xsl:catch errors='err:FOAR0001' select='\"caught\"'/></xsl:try>",
                "caught",
            ),
            (
                "<xsl:try><xsl:evaluate xpath=\"')'\"/><xsl:catch errors='err:XTDE3160' select='\"caught\"'/></xsl:try>",
                "caught",
            ),
            // Namespaces.
            ("<xsl:evaluate xpath=\"'string(q:a)'\" context-item='.' namespace-context='e'/>", "q"),
            ("<xsl:evaluate xpath=\"'string(q:a)'\" context-item='.'/>", "!XTDE3160"),
            ("<xsl:evaluate xpath=\"'string(a)'\" context-item='.' xpath-default-namespace='urn:q'/>", "q"),
            // The type of the result, functions, and the base URI.
            (
                "<xsl:variable name='v' as='xs:integer'><xsl:evaluate xpath=\"'(1, 2)'\" as='xs:integer'/></xsl:variable>",
                "!XPTY0004",
            ),
            (
                "<xsl:variable name='v' as='item()*'><xsl:evaluate xpath=\"'a/@id'\" as='xs:double' context-item='.'/></xsl:variable><xsl:value-of select='$v instance of xs:double'/>",
                "true",
            ),
            (
                "<xsl:variable name='v' as='item()*'><xsl:evaluate xpath=\"'function($x) { f:twice($x) + $n }'\"><xsl:with-param name='n' select='1'/></xsl:evaluate></xsl:variable><xsl:value-of select='$v(3)'/>",
                "7",
            ),
            ("<xsl:evaluate xpath=\"'static-base-uri()'\" base-uri='http://b/{1 + 1}/c'/>", "http://b/2/c"),
            (
                "<xsl:value-of select=\"system-property('xsl:supports-dynamic-evaluation'), element-available('xsl:evaluate')\"/>",
                "yes true",
            ),
            ("<xsl:evaluate xpath=\"'1'\"><xsl:fallback>2</xsl:fallback></xsl:evaluate>", "1"),
            ("<xsl:evaluate xpath=\"'1'\" use='1'/>", "!XTSE0090"),
            ("<xsl:evaluate/>", "!XTSE0010"),
            // The same text with other variables and namespaces.
            (
                "<xsl:for-each select='1, 2'><xsl:evaluate xpath=\"'$x * 2'\"><xsl:with-param name='x' select='.'/></xsl:evaluate>;</xsl:for-each>",
                "2;4;",
            ),
        ],
    );
}

/// Expressions that evaluate one another end.
#[test]
fn recursion_ends() {
    let body = "<xsl:evaluate xpath=\"'f:again($x)'\"><xsl:with-param name='x' select=\"'f:again($x)'\"/></xsl:evaluate>";
    let error = sheets::transformed(&compile(body, true).unwrap(), INPUT, body).unwrap_err();
    assert!(error.contains("too deep"), "{error}");
}

#[test]
fn what_is_not_allowed_fails_where_it_is_reached() {
    let run = |body: &str| {
        let sheet = compile(body, false)?;
        let result = sheets::transformed(&sheet, INPUT, body);
        assert_eq!(
            sheet.forbidden().is_some(),
            !body.contains("fallback") && body.contains("<xsl:evaluate"),
            "{body}"
        );
        result
    };
    sheets::check_with(
        run,
        &[
            ("<xsl:evaluate xpath=\"'1'\"/>", "!XTDE3175"),
            ("<xsl:evaluate xpath=\"'1'\"><xsl:fallback>2</xsl:fallback></xsl:evaluate>", "2"),
            ("<xsl:if test='z'><xsl:evaluate xpath=\"'1'\"/></xsl:if>", ""),
            (
                "<xsl:try><xsl:evaluate xpath=\"'1'\"/><xsl:catch errors='err:XTDE3175' select='\"caught\"'/></xsl:try>",
                "caught",
            ),
            (
                "<xsl:value-of select=\"system-property('xsl:supports-dynamic-evaluation'), element-available('xsl:evaluate')\"/>",
                "no false",
            ),
            ("<o xsl:use-when=\"element-available('xsl:evaluate')\"/>", ""),
        ],
    );
}
