//! What is known when a stylesheet is compiled is done a shorter way: each of these ways beside the same stylesheet written so that it
//! has to go the long way.

#![allow(clippy::unwrap_used)]

use busbar_xslt::{CompileOptions, RunOptions, Stylesheet};
use xml::{Document, ParseOptions};

const INPUT: &str = "<r xmlns:p='urn:p' k='7'><a n='2'>b<b>1</b></a><a n='10'>B</a><a n=''/><b>é</b><a n='x'> a </a><b/><b><!--c-->t<?p d?></b>\
                     <p:a n='3'>Z</p:a><c><a n='1'>q</a><a n='-1.5'>r</a><b>s</b></c>tail</r>";

fn sheet(version: &str, output: &str, content: &str) -> String {
    format!(
        "<xsl:stylesheet version='{version}' xmlns:xsl='http://www.w3.org/1999/XSL/Transform' xmlns:p='urn:p' xmlns:q='urn:q' \
         xmlns:exsl='http://exslt.org/common' exclude-result-prefixes='exsl p q'>{output}{content}</xsl:stylesheet>"
    )
}

fn compiled(sheet: &str) -> Stylesheet {
    Stylesheet::compile(sheet.as_bytes(), &CompileOptions::default())
        .unwrap_or_else(|errors| panic!("{errors:?} {sheet}"))
}

fn run(sheet: &str) -> Result<String, String> {
    let sheet = compiled(sheet);
    let doc = Document::parse(INPUT.to_owned(), &ParseOptions::default()).unwrap();
    let mut out = Vec::new();
    sheet.transform_to(&doc, Document::ROOT, &[], &RunOptions::default(), &mut out).map_err(|e| e.message)?;
    Ok(String::from_utf8(out).unwrap())
}

fn alike(short: &str, long: &str) {
    assert_eq!(run(short), run(long), "{short}\n{long}");
}

/// Fragments that are only text are kept as that.
#[test]
fn fragments_of_text() {
    let bodies = [
        "7",
        "<xsl:value-of select='/r/@k'/>",
        "<xsl:value-of select='/..'/>",
        "<xsl:text> 1</xsl:text><xsl:value-of select='2'/><xsl:if test='r'>.5</xsl:if>",
        "<xsl:choose><xsl:when test='/r/a'>&lt;&amp;</xsl:when><xsl:otherwise>no</xsl:otherwise></xsl:choose>",
        "<xsl:for-each select='//b'><xsl:variable name='w' select='.'/><xsl:value-of select='$w'/>;</xsl:for-each>",
        "<xsl:choose><xsl:when test='false()'>x</xsl:when></xsl:choose>",
    ];
    let uses = [
        "<xsl:value-of select='$v'/>",
        "<xsl:copy-of select='$v'/>",
        "<xsl:value-of select='$v * 2'/>/<xsl:value-of select='$v = 7'/>/<xsl:value-of select='7 = $v'/>/<xsl:value-of select='$v &lt; 8'/>",
        "<xsl:value-of select='boolean($v)'/>/<xsl:value-of select='not($v)'/>/<xsl:value-of select='$v = true()'/>/<xsl:value-of select='$v = $v'/>",
        "<xsl:value-of select='string-length($v)'/>/<xsl:value-of select='concat($v, \"-\")'/>/<xsl:value-of select='/r/@k = $v'/>/<xsl:value-of select='$v != //b'/>",
        "<xsl:value-of select='count(exsl:node-set($v))'/>/<xsl:value-of select='count(exsl:node-set($v)/node())'/>",
        "<xsl:for-each select='exsl:node-set($v)/text()'>[<xsl:value-of select='.'/>|<xsl:value-of select='count(..)'/>]</xsl:for-each>",
        "<xsl:apply-templates select='exsl:node-set($v)'/>",
        "<xsl:for-each select='exsl:node-set($v)'>[<xsl:value-of select='.'/>|<xsl:value-of select='string-length()'/>|<xsl:copy-of select='.'/>]</xsl:for-each>",
        "<x a='{$v}'><xsl:attribute name='b'><xsl:value-of select='$v'/></xsl:attribute></x>",
        "<xsl:variable name='u'><xsl:copy-of select='$v'/><y/></xsl:variable><xsl:copy-of select='$u'/><xsl:value-of select='$u'/>",
        "<xsl:value-of select='generate-id(exsl:node-set($v)) = generate-id(exsl:node-set($v))'/>",
        "<xsl:call-template name='t'><xsl:with-param name='p' select='$v'/></xsl:call-template>",
        "<xsl:for-each select='//a'><xsl:sort select='$v'/><xsl:value-of select='.'/></xsl:for-each>",
    ];
    for version in ["1.0", "2.0", "3.0"] {
        for body in bodies {
            for used in uses {
                for global in [true, false] {
                    let with = |more: &str| {
                        let variable = format!("<xsl:variable name='v'>{body}{more}</xsl:variable>");
                        let (outside, inside) = if global { (&*variable, "") } else { ("", &*variable) };
                        let named = "<xsl:template name='t'><xsl:param name='p'/>(<xsl:value-of select='$p'/><xsl:copy-of select='$p'/>)</xsl:template>";
                        sheet(
                            version,
                            "",
                            &format!(
                                "{outside}{named}<xsl:template match='/'><o>{inside}{used}</o></xsl:template>"
                            ),
                        )
                    };
                    alike(&with(""), &with("<xsl:copy-of select='/..'/>"));
                }
            }
        }
    }
}

/// One key whose kind is known is sorted with nothing around it.
#[test]
fn one_sort_key() {
    for select in [
        "@n",
        ".",
        "name()",
        "b",
        "position()",
        "local-name(.)",
        "string-length(.)",
        "..",
        "'x'",
        "last() - position()",
    ] {
        for attributes in [
            "",
            "data-type='number'",
            "data-type='text' order='descending'",
            "data-type='number' order='descending'",
            "case-order='upper-first'",
            "order='descending' case-order='upper-first'",
        ] {
            for nodes in ["//a", "//b | //a", "r/*", "//a[1]", "//nothing", "//node()"] {
                for instruction in ["for-each", "apply-templates"] {
                    let with = |more: &str| {
                        let sorts = format!("<xsl:sort select=\"{select}\" {attributes}/>{more}");
                        let inner = match instruction {
                            "for-each" => format!(
                                "<xsl:for-each select='{nodes}'>{sorts}[<xsl:value-of select='.'/>/<xsl:value-of select='position()'/>]</xsl:for-each>"
                            ),
                            _ => format!(
                                "<xsl:apply-templates select='{nodes}' mode='m'>{sorts}</xsl:apply-templates>"
                            ),
                        };
                        sheet(
                            "1.0",
                            "",
                            &format!(
                                "<xsl:template match='/'><o>{inner}</o></xsl:template><xsl:template match='node()' mode='m'>[<xsl:value-of select='.'/>/<xsl:value-of select='position()'/>/<xsl:value-of select='last()'/>]</xsl:template>"
                            ),
                        )
                    };
                    alike(&with(""), &with("<xsl:sort select=\"'same'\"/>"));
                }
            }
        }
    }
}

/// Start tags to which nothing can be added, names that are known, attributes whose names differ.
#[test]
fn start_tags() {
    let outputs = [
        "",
        "<xsl:output method='html'/>",
        "<xsl:output method='html' indent='no'/>",
        "<xsl:output indent='yes'/>",
        "<xsl:output method='xml' cdata-section-elements='x td'/>",
        "<xsl:output method='html' encoding='us-ascii'/>",
    ];
    // Short, long.
    let pairs = [
        (
            "<td class='x'>text &lt; &#160;é</td>",
            "<td class='x'><xsl:if test='1'>text &lt; &#160;é</xsl:if></td>",
        ),
        (
            "<html><head><title>t</title></head><body><br/><p/></body></html>",
            "<html><xsl:if test='1'><head><xsl:if test='1'><title><xsl:if test='1'>t</xsl:if></title></xsl:if></head><body><xsl:if test='1'><br/><p/></xsl:if></body></xsl:if></html>",
        ),
        (
            "<p:x q:a='1' b='&lt;'><p:y/></p:x>",
            "<p:x q:a='1' b='&lt;'><xsl:if test='1'><p:y/></xsl:if></p:x>",
        ),
        (
            "<script>a &lt; b</script><input checked='checked' href='é x' title='a&lt;&amp;\"é'/>",
            "<script><xsl:if test='1'>a &lt; b</xsl:if></script><input checked='{\"checked\"}' href='{\"é x\"}' title='{concat(\"a&lt;&amp;\", &apos;\"é&apos;)}'/>",
        ),
        ("<x a='{@k}' b='{.}' c='{r/@k}'/>", "<x a='{@k}{\"\"}' b='{.}{\"\"}' c='{r/@k}{\"\"}'/>"),
        (
            "<xsl:element name='x'><xsl:attribute name='a'>1</xsl:attribute>t</xsl:element>",
            "<xsl:element name='{\"x\"}'><xsl:attribute name='{\"a\"}'>1</xsl:attribute>t</xsl:element>",
        ),
        (
            "<xsl:element name='p:x'><xsl:attribute name='q:a'>1</xsl:attribute><xsl:attribute name='xml:lang'>de</xsl:attribute></xsl:element>",
            "<xsl:element name='{\"p:x\"}'><xsl:attribute name='{\"q:a\"}'>1</xsl:attribute><xsl:attribute name='{\"xml:lang\"}'>de</xsl:attribute></xsl:element>",
        ),
        (
            "<x a='1' b='2'><xsl:attribute name='a'>3</xsl:attribute><xsl:attribute name='ab'>4</xsl:attribute><xsl:attribute name='b'>5</xsl:attribute><xsl:attribute name='ab'>6</xsl:attribute></x>",
            "<x a='3' b='5' ab='6'><xsl:if test='1'/></x>",
        ),
        (
            "<x p:a='1'><xsl:attribute name='a'>2</xsl:attribute><xsl:attribute name='p:a'>3</xsl:attribute><xsl:attribute name='q:a'>4</xsl:attribute></x>",
            "<x><xsl:attribute name='{\"p:a\"}'>3</xsl:attribute><xsl:attribute name='{\"a\"}'>2</xsl:attribute><xsl:attribute name='{\"q:a\"}'>4</xsl:attribute></x>",
        ),
        (
            "<x>late<xsl:attribute name='a'>1</xsl:attribute></x>",
            "<x><xsl:if test='1'>late</xsl:if><xsl:attribute name='{\"a\"}'>1</xsl:attribute></x>",
        ),
        (
            "<x><!-- --><xsl:comment>c</xsl:comment><xsl:attribute name='a'>1</xsl:attribute></x>",
            "<x><xsl:if test='1'><xsl:comment>c</xsl:comment></xsl:if><xsl:attribute name='{\"a\"}'>1</xsl:attribute></x>",
        ),
    ];
    for output in outputs {
        for (short, long) in pairs {
            for wrap in [
                "BODY",
                "<o>BODY</o>",
                "<xsl:variable name='v'>BODY</xsl:variable><o><xsl:copy-of select='$v'/></o>",
            ] {
                let with = |body: &str| {
                    sheet(
                        "1.0",
                        output,
                        &format!("<xsl:template match='/'>{}</xsl:template>", wrap.replace("BODY", body)),
                    )
                };
                let (short, long) = (with(short), with(long));
                // The order of attributes is nobody's.
                let sorted = |text: Result<String, String>| {
                    text.map(|text| match output {
                        "" => {
                            xml::c14n::of_text(text.clone(), xml::c14n::Algorithm::default()).unwrap_or(text)
                        }
                        _ => text,
                    })
                };
                assert_eq!(sorted(run(&short)), sorted(run(&long)), "{short}\n{long}");
            }
        }
    }
}

/// Positions in patterns that are known, templates that do nothing, elements that hold only text.
#[test]
fn template_rules() {
    let root = "<xsl:template match='/'><o><xsl:apply-templates/></o></xsl:template>";
    let pairs = [
        (
            "<xsl:template match='a[2]'>[2]</xsl:template>",
            "<xsl:template match='a[position() = 1 + 1]'>[2]</xsl:template>",
        ),
        (
            "<xsl:template match='a[1]'>[1]</xsl:template>",
            "<xsl:template match='a[position() = 3 - 2]'>[1]</xsl:template>",
        ),
        (
            "<xsl:template match='r/*[position() = 3]'>[3]</xsl:template>",
            "<xsl:template match='r/*[position() = 1 + 2]'>[3]</xsl:template>",
        ),
        (
            "<xsl:template match='a[last()]'>[l]</xsl:template>",
            "<xsl:template match='a[position() + 0 = last()]'>[l]</xsl:template>",
        ),
        (
            "<xsl:template match='*[last() = position()]'>[l]</xsl:template>",
            "<xsl:template match='*[position() + 0 = last()]'>[l]</xsl:template>",
        ),
        (
            "<xsl:template match='a[1][b]'>[b]</xsl:template>",
            "<xsl:template match='a[position() = 2 - 1][b]'>[b]</xsl:template>",
        ),
        (
            "<xsl:template match='@*[1]'>[@]</xsl:template><xsl:template match='a'><xsl:apply-templates select='@*'/></xsl:template>",
            "<xsl:template match='@*[position() = 2 - 1]'>[@]</xsl:template><xsl:template match='a'><xsl:apply-templates select='@*'/></xsl:template>",
        ),
        (
            "<xsl:template match='text()'/>",
            "<xsl:template match='text()'><xsl:if test='false()'>x</xsl:if></xsl:template>",
        ),
        (
            "<xsl:template match='text()'/><xsl:template match='b'>[b]</xsl:template>",
            "<xsl:template match='text()'><xsl:if test='false()'>x</xsl:if></xsl:template><xsl:template match='b'>[b]</xsl:template>",
        ),
        (
            "<xsl:template match='a'/>",
            "<xsl:template match='a'><xsl:if test='false()'>x</xsl:if></xsl:template>",
        ),
        (
            "<xsl:template match='*'/>",
            "<xsl:template match='*'><xsl:if test='false()'>x</xsl:if></xsl:template>",
        ),
        (
            "<xsl:template match='r'><xsl:apply-templates/></xsl:template>",
            "<xsl:template match='r'><xsl:apply-templates/></xsl:template><xsl:template match='text()'><xsl:value-of select='.'/></xsl:template>",
        ),
        (
            "<xsl:template match='b' priority='2'/><xsl:template match='b' priority='1'>[b]</xsl:template>",
            "<xsl:template match='b' priority='2'><xsl:if test='false()'>x</xsl:if></xsl:template>",
        ),
        (
            "<xsl:template match='r'><xsl:apply-templates select='a|b|text()'/></xsl:template><xsl:template match='a'>[a<xsl:value-of select='position()'/>]</xsl:template>",
            "<xsl:template match='r'><xsl:apply-templates select='(a|b|text())[true()]'/></xsl:template><xsl:template match='a'>[a<xsl:value-of select='position()'/>]</xsl:template>",
        ),
    ];
    for version in ["1.0", "2.0", "3.0"] {
        for (short, long) in pairs {
            alike(
                &sheet(version, "", &format!("{root}{short}")),
                &sheet(version, "", &format!("{root}{long}")),
            );
        }
    }
}

/// From XPath 2.0 on, nodes whose values are compared, added, sorted or written need no atomic values of their own.
#[test]
fn values_of_nodes() {
    let paths = ["@n", "a/@n", "a", "b", "n", ".", "c/a", "nothing", "node()", "r/a", "comment()", "//@n"];
    for version in ["2.0", "3.0"] {
        let (mut right, mut wrong) = (0, 0);
        let mut both = |short: &str, long: &str| {
            let made = [short, long].map(|content| {
                run(&sheet(version, "", &format!("<xsl:template match='/'><o>{content}</o></xsl:template>")))
            });
            match &made {
                [Err(_), Err(_)] => wrong += 1,
                [short_made, long_made] => {
                    right += 1;
                    assert_eq!(short_made, long_made, "{version} {short} {long}");
                }
            }
        };
        for path in paths {
            for one in ["//a", "//b", "/", "//*", "//a[1]"] {
                let each = |content: &str| format!("<xsl:for-each select='{one}'>[{content}]</xsl:for-each>");
                let written = |expression: &str| each(&format!("<xsl:value-of select='{expression}'/>"));
                let values = format!("(for $n in {path} return data($n))");
                both(&written(&format!("sum({path})")), &written(&format!("sum({values})")));
                both(&written(&format!("sum({path}, 1)")), &written(&format!("sum({values}, 1)")));
                for op in ["=", "!=", "&lt;", "&gt;="] {
                    for other in ["2", "10", "-1.5", "3e0", "9007199254740993", "number(\"x\")"] {
                        let compared = |from: &str| written(&format!("({from}) {op} {other}"));
                        both(&compared(path), &compared(&values));
                        let filtered = |from: &str| written(&format!("count(.[{from} {op} {other}])"));
                        both(&filtered(path), &filtered(&values));
                    }
                }
                let general = format!("({path})[true()]");
                let attribute = |value: &str| each(&format!("<x v='{{{value}}}' w='-{{{value}}}-'/>"));
                both(&attribute(path), &attribute(&general));
                let items = |select: &str| {
                    each(&format!(
                        "<xsl:for-each select='{select}'>({{<xsl:value-of select='position(), last(), .'/>}})</xsl:for-each>"
                    ))
                };
                both(&items(path), &items(&general));
                for attributes in ["", "data-type='number'", "data-type='text' order='descending'"] {
                    let sorted = |select: &str| {
                        format!(
                            "<xsl:for-each select='{one}'><xsl:sort select='{select}' {attributes}/><xsl:sort select='position()' order='descending'/><xsl:value-of select='., name()'/>,</xsl:for-each>"
                        )
                    };
                    both(&sorted(path), &sorted(&general));
                }
            }
        }
        assert!(right > 1_000 && wrong > 50, "{right} {wrong}");
    }
}
