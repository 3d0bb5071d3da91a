//! Errors of XSLT 2.0 (its appendix E) that were not reported, or without their code.

#![allow(clippy::unwrap_used)]

mod sheets;

use sheets::check;

#[test]
fn declarations() {
    check(&[
        ("<xsl:output method='xml'/><xsl:output method='text'/>", "!XTSE1560"),
        ("<xsl:output indent='yes'/><xsl:output indent='no'/>", "!XTSE1560"),
        (
            "<xsl:output name='f:o' encoding='UTF-8'/><xsl:output name='f:o' encoding='ISO-8859-1'/>",
            "!XTSE1560",
        ),
        (
            "<xsl:output method='xml'/><xsl:output method=' xml '/><xsl:template match='/'>x</xsl:template>",
            "x",
        ),
        ("<xsl:output indent='maybe'/>", "!XTSE0020"),
        ("<xsl:output method='zz:x'/>", "!XTSE1570"),
        (
            "<xsl:namespace-alias stylesheet-prefix='f' result-prefix='xs'/><xsl:namespace-alias stylesheet-prefix='f' result-prefix='xsl'/>",
            "!XTSE0810",
        ),
        ("<xsl:namespace-alias stylesheet-prefix='zz' result-prefix='xs'/>", "!XTSE0812"),
        (
            "<xsl:character-map name='f:m'><xsl:output-character character='ab' string='c'/></xsl:character-map>",
            "!XTSE0020",
        ),
        ("<xsl:template match='a' mode='#all x'/>", "!XTSE0550"),
        ("<xsl:template match='a' mode='x x'/>", "!XTSE0550"),
        ("<xsl:template name='t'><xsl:param name='p'/><xsl:param name='p'/></xsl:template>", "!XTSE0580"),
        ("<xsl:function name='f:a'><xsl:param name='p' tunnel='yes'/></xsl:function>", "!XTSE0020"),
        ("<xsl:template match='a' extension-element-prefixes='xsl'><x/></xsl:template>", "!XTSE0085"),
        ("<xsl:template match='a' extension-element-prefixes='zz'><f:x/></xsl:template>", "!XTSE1430"),
        ("<xsl:template match='a' exclude-result-prefixes='zz'><x/></xsl:template>", "!XTSE0808"),
        ("<xsl:template match='a' exclude-result-prefixes='#default'><x/></xsl:template>", "!XTSE0809"),
    ]);
}

#[test]
fn instructions() {
    let run = |body: &str| sheets::run(&format!("<xsl:template match='/'>{body}</xsl:template>"));
    sheets::check_with(
        run,
        &[
            ("<xsl:comment select='1'>x</xsl:comment>", "!XTSE0940"),
            ("<xsl:comment select='1'> </xsl:comment>", "<!--1-->"),
            ("<xsl:processing-instruction name='a' select='1'>x</xsl:processing-instruction>", "!XTSE0880"),
            ("<x><xsl:namespace name='a' select='1'>x</xsl:namespace></x>", "!XTSE0910"),
            ("<xsl:number value='1' letter-value=\"{'x'}\"/>", "!XTDE0030"),
            ("<xsl:number value='1000' grouping-separator=',' grouping-size=\"{'x'}\"/>", "!XTDE0030"),
            ("<xsl:number value='1000' grouping-separator=',' grouping-size=\"{'3'}\"/>", "1,000"),
            ("<xsl:number value='0, 21, 2024' format='w'/>", "zero.twenty one.two thousand and twenty four"),
            ("<xsl:number value='101, 21' format='Ww'/>", "One Hundred and One.Twenty One"),
            (
                "<xsl:number value='21, 1999' format='w' ordinal='yes'/>",
                "twenty-first.one thousand nine hundred and ninety-ninth",
            ),
            ("<xsl:value-of select=\"system-property('zz:a')\"/>", "!XTDE1390"),
            ("<xsl:value-of select=\"function-available('zz:a')\"/>", "!XTDE1400"),
            ("<xsl:value-of select=\"type-available('zz:a')\"/>", "!XTDE1428"),
            ("<xsl:value-of select=\"element-available('zz:a')\"/>", "!XTDE1440"),
            ("<xsl:result-document method=\"{'zz'}\"/>", "!XTSE1570"),
            ("<xsl:result-document indent=\"{'zz'}\"/>", "!XTDE0030"),
        ],
    );
}

/// A sequence with numbers in an element of version 1.0: its items are compared as what they are.
#[test]
fn comparisons_of_version_1() {
    let run = |body: &str| {
        sheets::run(&format!(
            "<xsl:template match='/'><xsl:variable name='s' select=\"('1.0', '3.0')\"/><xsl:variable name='n' select=\"(1, '0.5')\"/><x xsl:version='1.0'><xsl:value-of select=\"{body}\"/></x></xsl:template>"
        ))
    };
    sheets::check_with(
        run,
        &[
            ("$s = $n", "<x>true</x>"),
            ("$n != $s", "<x>true</x>"),
            ("$n &gt; $s", "<x>false</x>"),
            ("$n &lt; $s", "<x>true</x>"),
            ("$n = true()", "<x>true</x>"),
            ("$n = 0.5", "<x>true</x>"),
        ],
    );
}

#[test]
fn modules() {
    use busbar_xslt::{CompileOptions, Stylesheet};
    let message = |sheet: &str| {
        let errors =
            Stylesheet::compile(sheet.as_bytes(), &CompileOptions::default()).err().unwrap_or_default();
        errors.first().map(|error| error.message.clone()).unwrap_or_default()
    };
    let xsl = "xmlns:xsl='http://www.w3.org/1999/XSL/Transform'";
    // What is no stylesheet has no version that would decide: nor a code.
    assert!(message("<r/>").starts_with("a stylesheet begins with"));
    assert!(
        message(&format!("<xsl:stylesheet version='2.0' {xsl}><xsl:sort/></xsl:stylesheet>"))
            .starts_with("XTSE0010")
    );
}
