//! Default priorities, modes and the structure of instructions of XSLT 3.0: what was found to differ from Saxon-HE 12.5. The
//! expectations are those of the specification.

#![allow(clippy::unwrap_used)]

mod sheets;

use busbar_xslt::{CompileOptions, Processor, Stylesheet};
use sheets::{check_with, transformed};

const INPUT: &str = "<r xmlns:p='urn:p'><a id='1'>one</a><b><c>two</c><p:c>three</p:c></b></r>";

fn compile(sheet: &str, processor: Processor) -> Result<Stylesheet, String> {
    let options = CompileOptions { processor, ..CompileOptions::default() };
    Stylesheet::compile(sheet.as_bytes(), &options)
        .map_err(|errors| format!("compile: {}", errors[0].message))
}

fn sheet(outermost: &str, version: &str, body: &str) -> String {
    format!(
        "<xsl:{outermost} version=\"{version}\" xmlns:xsl=\"http://www.w3.org/1999/XSL/Transform\" \
         xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" xmlns:f=\"urn:f\" xmlns:p=\"urn:p\" \
         exclude-result-prefixes=\"#all\"><xsl:output omit-xml-declaration=\"yes\"/>{body}</xsl:{outermost}>"
    )
}

fn run(body: &str) -> Result<String, String> {
    transformed(&compile(&sheet("stylesheet", "3.0", body), Processor::ByStylesheet)?, INPUT, body)
}

/// Declarations whose rules are applied in mode `m` to all elements and attributes of the document.
fn rules(body: &str) -> Result<String, String> {
    let select = "//*, //@*, /";
    run(&format!(
        "<xsl:template match='/'><xsl:apply-templates select='{select}' mode='m'/></xsl:template>\
         <xsl:template match='node()|@*' mode='m' priority='-3'>-</xsl:template>{body}"
    ))
}

fn body(body: &str) -> Result<String, String> {
    run(&format!("<xsl:template match='/'>{body}</xsl:template>"))
}

/// Namespace nodes have rules as other nodes do.
#[test]
fn namespace_nodes() {
    let apply = "<xsl:template match='/'><xsl:apply-templates select='r/namespace::*'/></xsl:template>";
    for (rules, expected) in [
        ("namespace-node()|{name()}", "xmlp"),
        (
            "namespace::p|{name(snapshot()/..)} {count(snapshot()/../*)} {snapshot()} {copy-of()}",
            "r 0 urn:p urn:p",
        ),
        ("namespace::p|{name()}", "p"),
        ("r/namespace::*[name() = 'p']|P", "P"),
        ("r/namespace-node()|1;namespace::*|2", "11"),
        ("namespace::p|1;namespace-node()|2", "21"),
        (".[name() = 'p']|1;namespace-node()|2", "21"),
    ] {
        let rule = |rule: &str| {
            let (pattern, text) = rule.split_once('|').unwrap();
            format!("<xsl:template match=\"{pattern}\" expand-text='yes'>{text}</xsl:template>")
        };
        let all: String = rules.split(';').map(rule).collect();
        assert_eq!(run(&format!("{apply}{all}")), Ok(expected.to_owned()), "{rules}");
    }
}

/// The value of a predicate decides what it is: a number is a position, and what has no effective boolean value matches nothing.
#[test]
fn predicates_by_their_values() {
    let rule = |pattern: &str| {
        let rule = format!("<xsl:template match=\"{pattern}\" mode='m'>M</xsl:template>");
        rules(&format!(
            "<xsl:variable name='two' select='2'/><xsl:variable name='numbers' select='3, 2, 1'/>\
             <xsl:variable name='nodes' select='/*'/>{rule}"
        ))
    };
    for (second, first) in
        [("$two", "1"), ("$numbers[2]", "$numbers[3]"), ("(2)[1]", "(1)[1]"), ("(1, 2)[2]", "(1, 2)[1]")]
    {
        let [second, first] = [second, first].map(|p| rule(&format!("*[{p}]")));
        assert_eq!((&second, &first), (&rule("*[2]"), &rule("*[1]")));
        assert_ne!(second, first);
    }
    let (all, none) = (rule("*[true()]"), rule("*[false()]"));
    assert_eq!(rule("*[$nodes[1]]"), all);
    for predicate in
        ["1 to 2", "(1, 2)", "xs:date('2020-01-02')", "$numbers", "1 to 2][1", "position()][1 to 2"]
    {
        assert_eq!(rule(&format!("*[{predicate}]")), none, "{predicate}");
    }
}

#[test]
fn default_priorities() {
    check_with(
        rules,
        &[
            // A kind test with a type is 0, like a name; a name with a type is 0.25.
            (
                "<xsl:template match='element(a)' mode='m'>A</xsl:template><xsl:template match='element(*, xs:untyped)' mode='m'>U</xsl:template>",
                "UUUUU-U",
            ),
            (
                "<xsl:template match='element(a, xs:untyped)' mode='m'>A</xsl:template><xsl:template match='a' mode='m'>N</xsl:template>",
                "-A-----",
            ),
            (
                "<xsl:template match='attribute(*, xs:untypedAtomic)' mode='m'>T</xsl:template><xsl:template match='@*' mode='m' >N</xsl:template>",
                "-----T-",
            ),
            (
                "<xsl:template match='document-node(element(r))' mode='m'>R</xsl:template><xsl:template match='document-node()' mode='m'>D</xsl:template>",
                "------R",
            ),
            (
                "<xsl:template match='Q{urn:p}c' mode='m'>Q</xsl:template><xsl:template match='Q{urn:p}*' mode='m'>S</xsl:template>",
                "----Q--",
            ),
            (
                "<xsl:template match='Q{}c' mode='m'>Q</xsl:template><xsl:template match='*:c' mode='m'>S</xsl:template>",
                "---QS--",
            ),
        ],
    );
}

#[test]
fn typed_modes() {
    check_with(
        rules,
        &[
            ("<xsl:mode name='m' typed='yes'/>", "!XTTE3100"),
            ("<xsl:mode name='m' typed='lax'/><xsl:template match='a' mode='m'/>", "!XTTE3100"),
            ("<xsl:mode name='m' typed='no'/>", "-------"),
            ("<xsl:mode name='m' typed='strict'/><xsl:template match='a' mode='m'/>", "!XTSE3105"),
        ],
    );
}

/// Attributes and children have positions of their own in the built-in rules.
#[test]
fn positions_in_built_in_rules() {
    check_with(
        run,
        &[
            (
                "<xsl:mode on-no-match='shallow-skip'/><xsl:template match='a/@*|a/text()'>[<xsl:value-of select='position(), last()'/>]</xsl:template>",
                "[1 1][1 1]",
            ),
            (
                "<xsl:mode on-no-match='shallow-copy'/><xsl:template match='a/text()'>[<xsl:value-of select='position(), last()'/>]</xsl:template><xsl:template match='b'/>",
                "<r xmlns:p=\"urn:p\"><a id=\"1\">[1 1]</a></r>",
            ),
        ],
    );
}

/// A copied attribute or document must fit where it comes.
#[test]
fn copies_that_do_not_fit() {
    check_with(
        run,
        &[
            ("<xsl:template match='/'><x>t<xsl:copy select='//@id'/></x></xsl:template>", "!XTDE0410"),
            ("<xsl:template match='/'><xsl:copy select='//@id'/></xsl:template>", "!XTDE0420"),
            (
                "<xsl:mode name='c' on-no-match='shallow-copy'/><xsl:template match='/'><x>t<xsl:apply-templates select='//@id' mode='c'/></x></xsl:template>",
                "!XTDE0410",
            ),
            (
                "<xsl:mode name='c' on-no-match='deep-copy'/><xsl:template match='/'><x>t<xsl:apply-templates select='//@id' mode='c'/></x></xsl:template>",
                "!XTDE0410",
            ),
            // Where the result is a sequence, a document stays a document.
            (
                "<xsl:mode name='c' on-no-match='shallow-copy'/><xsl:template match='/'><xsl:variable name='v' as='document-node()'><xsl:apply-templates select='/' mode='c'/></xsl:variable>\
                 <xsl:value-of select='$v/r/a, $v instance of document-node(element(r)), $v is /'/></xsl:template>",
                "one true false",
            ),
            (
                "<xsl:mode name='c' on-no-match='deep-copy'/><xsl:template match='/'><xsl:variable name='v' as='document-node()'><xsl:apply-templates select='/' mode='c'/></xsl:variable>\
                 <xsl:value-of select='$v/r/a, $v is /'/></xsl:template>",
                "one false",
            ),
            (
                "<xsl:template match='/|node()|@*' mode='c'><xsl:copy><xsl:apply-templates select='@*|node()' mode='c'/></xsl:copy></xsl:template>\
                 <xsl:template match='/'><xsl:variable name='v' as='document-node()'><xsl:apply-templates select='/' mode='c'/></xsl:variable><xsl:value-of select='$v/r/a, $v is /'/></xsl:template>",
                "one false",
            ),
            // No other prefix can stand for the namespace of xml.
            (
                "<xsl:template match='/'><xsl:element name='p:x' namespace='http://www.w3.org/XML/1998/namespace'/></xsl:template>",
                "<xml:x/>",
            ),
        ],
    );
}

/// `data-type="text"` takes the string value of every key: that of none is the empty text.
#[test]
fn keys_that_are_absent() {
    let sorted = |data_type: &str| {
        format!(
            "<xsl:template match='/'><xsl:variable name='v'><i k=''>1</i><i>2</i><i k='x'>3</i><i k=''>4</i></xsl:variable>\
             <xsl:for-each select='$v/i'><xsl:sort select='@k' {data_type}/><xsl:value-of select='.'/></xsl:for-each></xsl:template>"
        )
    };
    check_with(run, &[(&sorted(""), "2143"), (&sorted("data-type='text'"), "1243")]);
}

#[test]
fn structure() {
    check_with(
        body,
        &[
            (
                "<xsl:fork><xsl:sequence select='1'/><xsl:for-each-group select='//a' group-by='@id'/></xsl:fork>",
                "!XTSE0010",
            ),
            (
                "<xsl:fork><xsl:for-each-group select='//a' group-by='@id'/><xsl:for-each-group select='//a' group-by='@id'/></xsl:fork>",
                "!XTSE0010",
            ),
            (
                "<xsl:fork><xsl:fallback/><xsl:sequence select='1'/><xsl:sequence select='2'/></xsl:fork>",
                "1 2",
            ),
            ("<xsl:iterate select='1'><x/><xsl:on-completion select='1'/></xsl:iterate>", "!XTSE0010"),
            (
                "<xsl:iterate select='1'><xsl:on-completion select='1'/><xsl:param name='p' select='1'/></xsl:iterate>",
                "!XTSE0010",
            ),
            ("<xsl:iterate select='1'><xsl:param name='p' required='yes'/></xsl:iterate>", "!XTSE3520"),
            ("<xsl:iterate select='1'><xsl:param name='p' as='xs:integer'/></xsl:iterate>", "!XTSE3520"),
            ("<xsl:iterate select='1'><xsl:param name='p' as='xs:integer?'/><x/></xsl:iterate>", "<x/>"),
            ("<xsl:try><xsl:catch/><x/></xsl:try>", "!XTSE0010"),
            (
                "<xsl:merge><xsl:merge-source name='x' select='1'><xsl:merge-key select='.'/></xsl:merge-source><xsl:merge-source name='x' select='1'><xsl:merge-key select='.'/></xsl:merge-source><xsl:merge-action/></xsl:merge>",
                "!XTSE3190",
            ),
            ("<xsl:perform-sort select='1'><xsl:sort/><x/></xsl:perform-sort>", "!XTSE1040"),
            ("<xsl:perform-sort select='2, 1'><xsl:sort order=\"{'up'}\"/></xsl:perform-sort>", "!XTDE0030"),
            (
                "<xsl:perform-sort select='2, 1'><xsl:sort order=\" {'descending'} \"/></xsl:perform-sort>",
                "2 1",
            ),
            (
                "<xsl:merge><xsl:merge-source select=\"'9', '10'\"><xsl:merge-key select='.' data-type='number'/></xsl:merge-source><xsl:merge-action><x><xsl:value-of select='current-merge-key()'/></x></xsl:merge-action></xsl:merge>",
                "<x>9</x><x>10</x>",
            ),
            (
                "<xsl:merge><xsl:merge-source select='10, 9'><xsl:merge-key select='.' data-type='text'/></xsl:merge-source><xsl:merge-action><x><xsl:value-of select='.'/></x></xsl:merge-action></xsl:merge>",
                "<x>10</x><x>9</x>",
            ),
            (
                "<xsl:merge><xsl:merge-source select=\"'a', 'B', 'c'\"><xsl:merge-key select='.' lang='en'/></xsl:merge-source><xsl:merge-action><x><xsl:value-of select='.'/></x></xsl:merge-action></xsl:merge>",
                "<x>a</x><x>B</x><x>c</x>",
            ),
            ("<xsl:sequence select='1'>x</xsl:sequence>", "!XTSE3185"),
            ("<xsl:message terminate='maybe'/>", "!XTSE0020"),
            ("<xsl:message terminate=\"{'maybe'}\"/>", "!XTDE0030"),
            ("<f:e xsl:extension-element-prefixes='f'/>", "!XTDE1450"),
            ("<xsl:for-each select='//a'><xsl:apply-imports/></xsl:for-each>", "!XTDE0560"),
            ("<xsl:element name='xml:a' namespace='urn:x'/>", "<a xmlns=\"urn:x\"/>"),
        ],
    );
}

#[test]
fn output_that_is_not_taken_back() {
    check_with(
        body,
        &[
            (
                "<xsl:try rollback-output='no'><x/><xsl:value-of select='1 div 0'/><xsl:catch><e/></xsl:catch></xsl:try>",
                "!XTDE3530",
            ),
            // Nothing was written; not a final result; the default.
            (
                "<xsl:try rollback-output='no'><xsl:value-of select='1 div 0'/><xsl:catch><e/></xsl:catch></xsl:try>",
                "<e/>",
            ),
            (
                "<xsl:variable name='v'><xsl:try rollback-output='no'><x/><xsl:value-of select='1 div 0'/><xsl:catch><e/></xsl:catch></xsl:try></xsl:variable><xsl:copy-of select='$v'/>",
                "<e/>",
            ),
            ("<xsl:try><x/><xsl:value-of select='1 div 0'/><xsl:catch><e/></xsl:catch></xsl:try>", "<e/>"),
        ],
    );
}

#[test]
fn contexts() {
    check_with(
        run,
        &[
            (
                "<xsl:function name='f:a'><xsl:sequence select='position()'/></xsl:function><xsl:template match='/'><xsl:value-of select='f:a()'/></xsl:template>",
                "!XPDY0002",
            ),
            (
                "<xsl:function name='f:a'><xsl:sequence select='last()'/></xsl:function><xsl:template match='/'><xsl:value-of select='f:a()'/></xsl:template>",
                "!XPDY0002",
            ),
            (
                "<xsl:function name='f:a'><xsl:param name='x'/><xsl:param name='x'/></xsl:function><xsl:template match='/'/>",
                "!XTSE0580",
            ),
            // A parentless attribute has no parent.
            (
                "<xsl:template match='/'><xsl:variable name='v' as='attribute()'><xsl:attribute name='q'>1</xsl:attribute></xsl:variable><e><xsl:copy-of select='$v'/></e><xsl:value-of select='count($v/..), count($v/ancestor-or-self::node()), string(root($v)), count(copy-of(//@id)/..)'/></xsl:template>",
                "<e q=\"1\"/>0 1 1 0",
            ),
            (
                "<xsl:key name='k' match='q' use='@i'/><xsl:template match='/'><xsl:variable name='e' as='element()'><q i='1'/></xsl:variable><xsl:value-of select=\"count(key('k', '1', $e))\"/></xsl:template>",
                "!XTDE1270",
            ),
            (
                "<xsl:template match='/'><xsl:value-of select=\"count(document-uri(parse-xml('&lt;a/>')))\"/></xsl:template>",
                "0",
            ),
            (
                "<xsl:template match='/'><xsl:value-of select=\"function-available('element-with-id'), function-available('uri-collection'), function-available('stream-available'), stream-available('urn:nowhere'), count(element-with-id('1'))\"/></xsl:template>",
                "true true true false 0",
            ),
            // Several trees of one variable have accumulators of their own.
            (
                "<xsl:accumulator name='n' initial-value='0'><xsl:accumulator-rule match='q' select='$value + 1'/></xsl:accumulator><xsl:template match='/'><xsl:variable name='v' as='element()*'><q/><z><q/><q/></z></xsl:variable><xsl:value-of select=\"$v/accumulator-after('n')\"/></xsl:template>",
                "1 2",
            ),
        ],
    );
}

#[test]
fn packages() {
    let run = |body: &str| {
        let sheet = sheet("package name='urn:x' package-version='1.0'", "3.0", body)
            .replace("</xsl:package name='urn:x' package-version='1.0'>", "</xsl:package>");
        transformed(&compile(&sheet, Processor::ByStylesheet)?, INPUT, body)
    };
    let template = "<xsl:template match='/'><x/></xsl:template>";
    check_with(
        run,
        &[
            (&format!("<xsl:mode/>{template}"), "<x/>"),
            (&format!("<xsl:mode/><xsl:template name='f:t' visibility='abstract'/>{template}"), "!XTSE3080"),
            (&format!("<xsl:mode/><xsl:function name='f:t' visibility='seen'/>{template}"), "!XTSE0020"),
            ("<xsl:mode/><xsl:template match='/' visibility='public'/>", "!XTSE0500"),
            (
                &format!(
                    "<xsl:mode/><xsl:expose component='function' names='*' visibility='public'/>{template}"
                ),
                "<x/>",
            ),
            (
                &format!("<xsl:mode/><xsl:expose component='all' names='*' visibility='public'/>{template}"),
                "!XTSE0020",
            ),
            (template, "!XTSE3085"),
            (
                "<xsl:mode/><xsl:template match='/'><xsl:apply-templates mode='q'/></xsl:template>",
                "!XTSE3085",
            ),
            (
                &format!("<xsl:mode/><xsl:use-package name='urn:other'/>{template}"),
                "!XTSE3000: xsl:use-package: there is no package \"urn:other\"",
            ),
        ],
    );
}

/// A stylesheet of version 3.0 has 3.0 in a processor of at least 2.0, since what 2.0 does not know would be ignored.
#[test]
fn at_least_the_version_of_the_stylesheet() {
    let body = "<xsl:template match='/' expand-text='yes'>{count(//a) ! (. + 1)}</xsl:template>";
    let of_three = compile(&sheet("stylesheet", "3.0", body), Processor::V2).unwrap();
    assert_eq!(transformed(&of_three, INPUT, body).unwrap(), "2");
    assert!(compile(&sheet("stylesheet", "2.0", body), Processor::V2).is_err());
}
