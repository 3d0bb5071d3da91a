//! XSLT 2.0: the features that stylesheets of buses use, as tables of templates and what comes out. Results were worked out
//! from the specification.

#![allow(clippy::unwrap_used)]

mod sheets;

use busbar_xslt::{CompileOptions, Processor, RunOptions, Stylesheet};
use sheets::{INPUT, check, compile, root, run, sheet};
use xml::{Document, ParseOptions};

#[test]
fn values_and_sequences() {
    check(&[
        (root!("<xsl:value-of select='a'/>"), "one two three"),
        (root!("<xsl:value-of select='a' separator=', '/>"), "one, two, three"),
        (root!("<xsl:value-of separator='-'><xsl:sequence select='1 to 3'/></xsl:value-of>"), "1-2-3"),
        (root!("<xsl:value-of>x<xsl:sequence select='1, 2'/></xsl:value-of>"), "x12"),
        (root!("<xsl:value-of select='()'/>"), ""),
        (root!("<xsl:value-of select='1 to 3, true(), 1.50'/>"), "1 2 3 true 1.5"),
        (root!("<o z='{{}}' x='{a/@id}' y='{1 to 3}'/>"), "<o z=\"{}\" x=\"1 2 10\" y=\"1 2 3\"/>"),
        (root!("<o><xsl:sequence select='1 to 3'/></o>"), "<o>1 2 3</o>"),
        (
            root!("<o><xsl:for-each select='1 to 3'><xsl:sequence select='.'/></xsl:for-each></o>"),
            "<o>1 2 3</o>",
        ),
        (
            root!(
                "<o><xsl:sequence select='1'/><i/><xsl:sequence select='2'/>x<xsl:sequence select='3'/></o>"
            ),
            "<o>1<i/>2x3</o>",
        ),
        (
            root!("<o><xsl:sequence select='a[1]/@id, a[1]'/></o>"),
            "<o id=\"1\"><a id=\"1\" g=\"x\">one</a></o>",
        ),
        (root!("<xsl:copy-of select='b, 5, 6'/>"), "<b>2</b>5 6"),
        (
            root!(
                "<xsl:for-each select=\"tokenize('a,b', ',')\">[<xsl:value-of select='.'/>/<xsl:value-of select='position()'/>/<xsl:value-of select='last()'/>]</xsl:for-each>"
            ),
            "[a/1/2][b/2/2]",
        ),
        (root!("<xsl:for-each select='1 to 2'><xsl:copy/></xsl:for-each>"), "1 2"),
        (
            root!(
                "<xsl:for-each select='1 to 2'><xsl:call-template name='t'/></xsl:for-each></xsl:template><xsl:template name='t'><xsl:value-of select='. * 2'/>;"
            ),
            "2;4;",
        ),
        (
            root!(
                "<xsl:for-each select='1 to 2'><xsl:variable name='i' select='.'/><xsl:for-each select=\"'p', 'q'\"><xsl:value-of select='$i, ., current()'/>;</xsl:for-each></xsl:for-each>"
            ),
            "1 p p;1 q q;2 p p;2 q q;",
        ),
        (root!("<xsl:for-each select='1'><xsl:value-of select='a'/></xsl:for-each>"), "!XPTY0020"),
        (root!("<xsl:apply-templates select='1'/>"), "!node"),
        (
            root!(
                "<o><xsl:attribute name='x' select='1, 2'/><xsl:attribute name='y' select='1, 2' separator='-'/><xsl:attribute name='z'>a<xsl:value-of select='1, 2'/></xsl:attribute></o>"
            ),
            "<o x=\"1 2\" y=\"1-2\" z=\"a1 2\"/>",
        ),
        (
            root!("<xsl:comment select='1, 2'/><xsl:processing-instruction name='p' select=\"'x'\"/>"),
            "<!--1 2--><?p x?>",
        ),
        (root!("<o><xsl:namespace name='q' select=\"'urn:q'\"/></o>"), "<o xmlns:q=\"urn:q\"/>"),
        (root!("<xsl:value-of select='b + 1, b div 4, 1 idiv 2'/>"), "3 0.5 0"),
        (root!("<xsl:value-of select='if (b > 1) then 1e0 else 0'/>"), "1"),
        (root!("<xsl:value-of select='1e7, 1 div 3e0'/>"), "1.0E7 0.3333333333333333"),
        (root!("<xsl:value-of select='/r/a[1] + 1'/>"), "!FORG0001"),
        (root!("<xsl:value-of select='system-property(\"xsl:version\")'/>"), "2.0"),
    ]);
}

#[test]
fn groups() {
    check(&[
        (
            root!(
                "<xsl:for-each-group select='a' group-by='@g'><k v='{current-grouping-key()}' n='{count(current-group())}'><xsl:copy-of select='current-group()/@id'/></k></xsl:for-each-group>"
            ),
            "<k v=\"x\" n=\"2\" id=\"10\"/><k v=\"y\" n=\"1\" id=\"2\"/>",
        ),
        (
            root!(
                "<xsl:for-each-group select='a' group-by='@g'><xsl:value-of select='position(), last(), @id, sum(current-group()/@id)'/>;</xsl:for-each-group>"
            ),
            "1 2 1 11;2 2 2 2;",
        ),
        (
            root!(
                "<xsl:for-each-group select='1 to 10' group-by='. mod 3'><xsl:value-of select='current-grouping-key()'/>:<xsl:value-of select='current-group()'/>;</xsl:for-each-group>"
            ),
            "1:1 4 7 10;2:2 5 8;0:3 6 9;",
        ),
        (
            root!(
                "<xsl:for-each-group select='a' group-by='@g, string-length(.)'><xsl:value-of select='current-grouping-key()'/>=<xsl:value-of select='current-group()/@id'/>;</xsl:for-each-group>"
            ),
            "x=1 10;3=1 2;y=2;5=10;",
        ),
        (
            root!(
                "<xsl:for-each-group select='*' group-adjacent='name()'><xsl:value-of select='current-grouping-key(), count(current-group())'/>;</xsl:for-each-group>"
            ),
            "a 1;b 1;a 2;n 2;",
        ),
        (
            root!(
                "<xsl:for-each-group select='*' group-starting-with='a'><g><xsl:value-of select='current-group()/name()'/></g></xsl:for-each-group>"
            ),
            "<g>a b</g><g>a</g><g>a n n</g>",
        ),
        (
            root!(
                "<xsl:for-each-group select='*' group-ending-with='b | n[1]'><g><xsl:value-of select='current-group()/name()'/></g></xsl:for-each-group>"
            ),
            "<g>a b</g><g>a a n</g><g>n</g>",
        ),
        (
            root!(
                "<xsl:for-each-group select='a' group-by='@g'><xsl:sort select='current-grouping-key()' order='descending'/><xsl:value-of select='current-grouping-key()'/></xsl:for-each-group>"
            ),
            "yx",
        ),
        (
            root!(
                "<xsl:for-each-group select='a' group-by='@g'><xsl:sort select='count(current-group())'/><xsl:value-of select='current-grouping-key()'/></xsl:for-each-group>"
            ),
            "yx",
        ),
        (
            root!(
                "<xsl:for-each-group select='a' group-by='@g'><xsl:for-each select='current-group()'><xsl:value-of select='@id, current-grouping-key()'/>;</xsl:for-each></xsl:for-each-group>"
            ),
            "1 x;10 x;2 y;",
        ),
        (
            root!(
                "<xsl:for-each-group select='a' group-by='@g'><xsl:call-template name='t'/></xsl:for-each-group></xsl:template><xsl:template name='t'><xsl:value-of select='current-group()/@id'/>;"
            ),
            "1 10;2;",
        ),
        (
            root!(
                "<xsl:for-each-group select='1, 1.0, 1e0, \"1\"' group-by='.'><xsl:value-of select='count(current-group())'/>;</xsl:for-each-group>"
            ),
            "3;1;",
        ),
        (root!("<xsl:for-each-group select='a' group-adjacent='()'/>"), "!XTTE1100"),
        (root!("<xsl:for-each-group select='1' group-starting-with='a'/>"), "!XTTE1120"),
        (root!("<xsl:for-each-group select='a'/>"), "!XTSE1080"),
        (root!("<xsl:for-each-group select='a' group-by='@g' group-adjacent='@g'/>"), "!XTSE1080"),
        (
            root!(
                "<xsl:for-each-group select='()' group-by='.'>x</xsl:for-each-group>-<xsl:value-of select='count(current-group())'/>"
            ),
            "-0",
        ),
    ]);
}

#[test]
fn functions() {
    check(&[
        (
            "<xsl:function name='f:double' as='xs:integer'><xsl:param name='n' as='xs:integer'/><xsl:sequence select='$n * 2'/></xsl:function><xsl:template match='/r'><xsl:value-of select='f:double(4), f:double(b)'/></xsl:template>",
            "8 4",
        ),
        (
            "<xsl:function name='f:fact' as='xs:integer'><xsl:param name='n' as='xs:integer'/><xsl:sequence select='if ($n le 1) then 1 else $n * f:fact($n - 1)'/></xsl:function><xsl:template match='/r'><xsl:value-of select='f:fact(15)'/></xsl:template>",
            "1307674368000",
        ),
        (
            "<xsl:function name='f:g'><xsl:param name='n'/><xsl:choose><xsl:when test='$n = 1'>one</xsl:when><xsl:otherwise><x/></xsl:otherwise></xsl:choose></xsl:function><xsl:template match='/r'><xsl:copy-of select='f:g(1), f:g(2)'/></xsl:template>",
            "one<x/>",
        ),
        (
            "<xsl:function name='f:n'><xsl:sequence select='0'/></xsl:function><xsl:function name='f:n'><xsl:param name='a'/><xsl:sequence select='1'/></xsl:function><xsl:template match='/r'><xsl:value-of select='f:n(), f:n(5)'/></xsl:template>",
            "0 1",
        ),
        // Text nodes side by side are one.
        (
            "<xsl:function name='f:t'>0</xsl:function><xsl:template match='/r'><xsl:value-of select='f:t(), f:t(), 1'/></xsl:template>",
            "00 1",
        ),
        (
            "<xsl:function name='f:items' as='element()*'><xsl:param name='n'/><xsl:for-each select='1 to $n'><i><xsl:value-of select='.'/></i></xsl:for-each></xsl:function><xsl:template match='/r'><xsl:value-of select='count(f:items(3)), f:items(3)[2], count(f:items(3)/..), count(f:items(2)/following-sibling::*)'/></xsl:template>",
            "3 2 0 0",
        ),
        (
            "<xsl:function name='f:x' as='xs:integer'><xsl:sequence select=\"'a'\"/></xsl:function><xsl:template match='/r'><xsl:value-of select='f:x()'/></xsl:template>",
            "!XTTE0780",
        ),
        (
            "<xsl:function name='f:x'><xsl:param name='n' as='xs:integer'/>1</xsl:function><xsl:template match='/r'><xsl:value-of select=\"f:x('a')\"/></xsl:template>",
            "!XTTE0790",
        ),
        (
            "<xsl:function name='f:x'><xsl:value-of select='.'/></xsl:function><xsl:template match='/r'><xsl:value-of select='f:x()'/></xsl:template>",
            "!XPDY0002",
        ),
        ("<xsl:template match='/r'><xsl:value-of select='f:none(1)'/></xsl:template>", "!f:none"),
        ("<xsl:function name='x'/><xsl:template match='/r'/>", "!XTSE0740"),
        ("<xsl:function name='f:x'/><xsl:function name='f:x'/><xsl:template match='/r'/>", "!XTSE0770"),
        (
            "<xsl:function name='f:loop'><xsl:param name='n'/><xsl:sequence select='f:loop($n + 1)'/></xsl:function><xsl:template match='/r'><xsl:value-of select='f:loop(1)'/></xsl:template>",
            "!",
        ),
        (
            "<xsl:function name='f:deep'><xsl:param name='n'/><xsl:sequence select='if ($n = 0) then 0 else 1 + f:deep($n - 1)'/></xsl:function><xsl:template match='/r'><xsl:value-of select='f:deep(2000)'/></xsl:template>",
            "2000",
        ),
        (
            "<xsl:function name='f:s' as='xs:string*'><xsl:sequence select='1 to 2'/></xsl:function><xsl:template match='/r'><xsl:value-of select='f:s()'/></xsl:template>",
            "!XTTE0780",
        ),
        (
            "<xsl:function name='f:s' as='xs:string*'><xsl:param name='e'/><xsl:sequence select='$e'/></xsl:function><xsl:template match='/r'><xsl:value-of select='f:s(a)' separator='|'/></xsl:template>",
            "one|two|three",
        ),
    ]);
}

#[test]
fn strings_analyzed() {
    check(&[
        (
            root!(
                "<xsl:analyze-string select=\"'a1b22'\" regex='[0-9]+'><xsl:matching-substring><d><xsl:value-of select='.'/></d></xsl:matching-substring><xsl:non-matching-substring><t><xsl:value-of select='., position(), last()'/></t></xsl:non-matching-substring></xsl:analyze-string>"
            ),
            "<t>a 1 4</t><d>1</d><t>b 3 4</t><d>22</d>",
        ),
        (
            root!(
                "<xsl:analyze-string select=\"'2001-02-03'\" regex='^(\\d{{4}})-(\\d\\d)-(\\d\\d)$'><xsl:matching-substring><xsl:value-of select='regex-group(3), regex-group(2), regex-group(1), regex-group(7)' separator='/'/></xsl:matching-substring></xsl:analyze-string>"
            ),
            "03/02/2001/",
        ),
        (
            root!(
                "<xsl:analyze-string select=\"'aXb'\" regex='x' flags='i'><xsl:matching-substring>!</xsl:matching-substring></xsl:analyze-string>"
            ),
            "!",
        ),
        (
            root!(
                "<xsl:analyze-string select=\"''\" regex='x'><xsl:non-matching-substring>never</xsl:non-matching-substring></xsl:analyze-string>"
            ),
            "",
        ),
        (
            root!(
                "<xsl:analyze-string select=\"'a'\" regex='x*'><xsl:matching-substring/></xsl:analyze-string>"
            ),
            "!XTDE1150",
        ),
        (
            root!(
                "<xsl:analyze-string select=\"'a'\" regex='['><xsl:matching-substring/></xsl:analyze-string>"
            ),
            "!XTDE1140",
        ),
        (root!("<xsl:analyze-string select=\"'a'\" regex='a'/>"), "!XTSE1130"),
        (
            root!(
                "<xsl:value-of select=\"replace('a-b', '-', '+'), tokenize('1 2', ' ')[2], matches('abc', 'b'), upper-case('x')\"/>"
            ),
            "a+b 2 true X",
        ),
    ]);
}

#[test]
fn templates() {
    check(&[
        (
            "<xsl:template match='/r'><xsl:apply-templates select='b' mode='m'/><xsl:apply-templates select='b' mode='n'/><xsl:apply-templates select='b'/></xsl:template><xsl:template match='b' mode='m n'>1</xsl:template><xsl:template match='b' mode='#default'>2</xsl:template>",
            "112",
        ),
        (
            "<xsl:template match='/r'><xsl:apply-templates select='b' mode='q'/><xsl:apply-templates select='b'/></xsl:template><xsl:template match='b' mode='#all'>*</xsl:template>",
            "**",
        ),
        (
            "<xsl:template match='/r'><xsl:apply-templates select='.' mode='m'/></xsl:template><xsl:template match='r' mode='m'><xsl:apply-templates select='b' mode='#current'/></xsl:template><xsl:template match='b' mode='m'>m</xsl:template><xsl:template match='b'>d</xsl:template>",
            "m",
        ),
        // Tunnel parameters reach further in, others do not.
        (
            "<xsl:template match='/r'><xsl:apply-templates select='b'><xsl:with-param name='p' select='1' tunnel='yes'/><xsl:with-param name='q' select='2'/></xsl:apply-templates></xsl:template><xsl:template match='b'><xsl:call-template name='t'/></xsl:template><xsl:template name='t'><xsl:param name='p' tunnel='yes' select='0'/><xsl:param name='q' select='0'/><xsl:value-of select='$p, $q'/></xsl:template>",
            "1 0",
        ),
        (
            "<xsl:template match='/'><xsl:apply-templates><xsl:with-param name='p' select='7' tunnel='yes'/></xsl:apply-templates></xsl:template><xsl:template match='a|n'/><xsl:template match='b'><xsl:param name='p' as='xs:integer' tunnel='yes'/><xsl:value-of select='$p + 1'/></xsl:template>",
            "8",
        ),
        (
            "<xsl:template match='/r'><xsl:call-template name='t'/></xsl:template><xsl:template name='t'><xsl:param name='p' required='yes'/>x</xsl:template>",
            "!XTSE0690",
        ),
        (
            "<xsl:template match='/r'><xsl:call-template name='t'><xsl:with-param name='p' select='\"a\"'/></xsl:call-template></xsl:template><xsl:template name='t'><xsl:param name='p' as='xs:integer'/>x</xsl:template>",
            "!XTTE0590",
        ),
        (
            "<xsl:template match='/r'><xsl:call-template name='t'><xsl:with-param name='p' select='b'/></xsl:call-template></xsl:template><xsl:template name='t'><xsl:param name='p' as='xs:integer'/><xsl:value-of select='$p instance of xs:integer'/></xsl:template>",
            "true",
        ),
        // The next rule for the same node.
        (
            "<xsl:template match='/r'><xsl:apply-templates select='b'/></xsl:template><xsl:template match='b' priority='3'>(<xsl:next-match/>)</xsl:template><xsl:template match='b' priority='2'>[<xsl:next-match/>]</xsl:template><xsl:template match='b'>x</xsl:template>",
            "([x])",
        ),
        (
            "<xsl:template match='/r'><xsl:apply-templates select='b'/></xsl:template><xsl:template match='b'>(<xsl:next-match/>)</xsl:template>",
            "(2)",
        ),
        (
            "<xsl:template match='/r'><xsl:apply-templates select='b'/></xsl:template><xsl:template match='b' priority='2'><xsl:next-match><xsl:with-param name='p' select='5'/></xsl:next-match></xsl:template><xsl:template match='b'><xsl:param name='p'/><xsl:value-of select='$p'/></xsl:template>",
            "5",
        ),
        // Patterns of 2.0.
        (
            "<xsl:template match='/r'><xsl:apply-templates select='*'/></xsl:template><xsl:template match='element(b)'>B</xsl:template><xsl:template match='*:n'>N</xsl:template><xsl:template match='a'/>",
            "BNN",
        ),
        ("<xsl:template match='document-node()'>doc</xsl:template>", "doc"),
        (
            "<xsl:template match='/r'><xsl:apply-templates select='a'/></xsl:template><xsl:template match='a[2]'>2</xsl:template><xsl:template match='a[@id eq \"10\"]'>10</xsl:template><xsl:template match='a'/>",
            "210",
        ),
        // Built-in rules pass parameters on.
        (
            "<xsl:template match='/'><xsl:apply-templates><xsl:with-param name='p' select='3'/></xsl:apply-templates></xsl:template><xsl:template match='text()'/><xsl:template match='b'><xsl:param name='p'/><xsl:value-of select='$p'/></xsl:template>",
            "3",
        ),
    ]);
}

#[test]
fn variables_and_trees() {
    check(&[
        (
            root!(
                "<xsl:variable name='t'><x><y>1</y><y>2</y></x></xsl:variable><xsl:value-of select='count($t/x/y), $t/x/y[2]'/>"
            ),
            "2 2",
        ),
        (
            root!(
                "<xsl:variable name='t'><y>1</y><y>2</y></xsl:variable><xsl:for-each select='$t/y'>[<xsl:value-of select='.'/>]</xsl:for-each><xsl:apply-templates select='$t/y'/></xsl:template><xsl:template match='y'>(<xsl:value-of select='.'/>)"
            ),
            "[1][2](1)(2)",
        ),
        (
            root!(
                "<xsl:variable name='v' as='xs:integer*'><xsl:sequence select='1 to 3'/></xsl:variable><xsl:value-of select='sum($v)'/>"
            ),
            "6",
        ),
        (
            root!(
                "<xsl:variable name='v' as='xs:integer' select='b'/><xsl:value-of select='$v instance of xs:integer'/>"
            ),
            "true",
        ),
        (
            root!("<xsl:variable name='v' as='xs:integer' select='n'/><xsl:value-of select='$v'/>"),
            "!XTTE0570",
        ),
        (
            root!("<xsl:variable name='v' as='element(x)'><x/></xsl:variable><xsl:copy-of select='$v'/>"),
            "<x/>",
        ),
        (
            root!("<xsl:variable name='v' as='element(x)'><y/></xsl:variable><xsl:copy-of select='$v'/>"),
            "!XTTE0570",
        ),
        (
            root!(
                "<xsl:variable name='v' as='item()*'><x/>t<xsl:sequence select='5'/><xsl:attribute name='q'>w</xsl:attribute></xsl:variable><o><xsl:copy-of select='$v[4]'/><xsl:value-of select='count($v), $v[3] + 1, $v[2]' separator='|'/></o>"
            ),
            "<o q=\"w\">4|6|t</o>",
        ),
        (
            root!(
                "<xsl:variable name='v' as='xs:string'>abc</xsl:variable><xsl:value-of select='string-length($v)'/>"
            ),
            "3",
        ),
        (
            root!(
                "<xsl:variable name='v' as='xs:date' select=\"xs:date('2001-02-28')\"/><xsl:value-of select=\"$v + xs:dayTimeDuration('P1D'), format-date($v, '[D01].[M01].[Y]')\"/>"
            ),
            "2001-03-01 28.02.2001",
        ),
        (
            "<xsl:variable name='g' as='xs:integer*' select='1, 2'/><xsl:template match='/r'><xsl:value-of select='$g'/></xsl:template>",
            "1 2",
        ),
        (
            "<xsl:variable name='g' as='element()*'><x/><y/></xsl:variable><xsl:template match='/r'><xsl:value-of select='count($g), $g/name()'/></xsl:template>",
            "2 x y",
        ),
        (
            "<xsl:param name='p' as='xs:integer' select='5'/><xsl:template match='/r'><xsl:value-of select='$p + 1'/></xsl:template>",
            "6",
        ),
        (
            "<xsl:param name='p' required='yes'/><xsl:template match='/r'><xsl:value-of select='$p'/></xsl:template>",
            "!XTDE0050",
        ),
        (
            root!(
                "<xsl:variable name='v' select='1'/><xsl:for-each select='1 to 2'><xsl:variable name='v' select='$v + .'/><xsl:value-of select='$v'/>;</xsl:for-each>"
            ),
            "2;3;",
        ),
        (
            root!(
                "<xsl:variable name='d'><xsl:document><x/></xsl:document></xsl:variable><xsl:copy-of select='$d'/>"
            ),
            "<x/>",
        ),
        (root!("<xsl:variable name='v' as='foo'/>"), "!XPST0051"),
    ]);
}

#[test]
fn sorting() {
    check(&[
        (
            root!(
                "<xsl:for-each select='n | b'><xsl:sort select='.'/><xsl:value-of select='.'/>;</xsl:for-each>"
            ),
            "2;20;3;",
        ),
        (
            root!(
                "<xsl:for-each select='n | b'><xsl:sort select='number(.)'/><xsl:value-of select='.'/>;</xsl:for-each>"
            ),
            "2;3;20;",
        ),
        (
            root!(
                "<xsl:for-each select='n | b'><xsl:sort select='xs:integer(.)' order='descending'/><xsl:value-of select='.'/>;</xsl:for-each>"
            ),
            "20;3;2;",
        ),
        (
            root!(
                "<xsl:for-each select='3, 1, 2'><xsl:sort select='.'/><xsl:value-of select='.'/></xsl:for-each>"
            ),
            "123",
        ),
        (
            root!(
                "<xsl:for-each select='a'><xsl:sort select='@id' data-type='number' order='descending'/><xsl:value-of select='@id'/>;</xsl:for-each>"
            ),
            "10;2;1;",
        ),
        (
            root!(
                "<xsl:for-each-group select=\"0.1, 1, 0.100000001, xs:float('0.1'), 1e0, 0.1\" group-by='.'>[<xsl:value-of select='current-group()'/>]</xsl:for-each-group>"
            ),
            "[0.1 0.1 0.1][1 1][0.100000001]",
        ),
        (
            concat!(
                "<xsl:key name='k' match='a' use='xs:decimal(@id) div 10'/>",
                root!(
                    "<xsl:value-of select=\"count(key('k', 0.1)), count(key('k', xs:float('0.2'))), count(key('k', 1e0))\"/>"
                )
            ),
            "1 1 1",
        ),
        // Numbers as XPath 2.0 reads them, wherever the key comes from.
        (
            root!(
                "<xsl:variable name='t'><e v='1e1'/><e v='2'/><e v='+3'/><e v='-1'/></xsl:variable>\
                 <xsl:for-each select='$t/e'><xsl:sort select='@v' data-type='number'/><xsl:value-of select='@v'/>;</xsl:for-each>\
                 <xsl:for-each select='$t/e'><xsl:sort select='@v | @w' data-type='{\"number\"}'/><xsl:value-of select='@v'/>;</xsl:for-each>"
            ),
            "-1;2;+3;1e1;-1;2;+3;1e1;",
        ),
        (
            root!(
                "<xsl:for-each select=\"'1e1', '2', '+3', '-1'\"><xsl:sort data-type='number'/><xsl:value-of select='.'/>;</xsl:for-each>"
            ),
            "-1;2;+3;1e1;",
        ),
        (
            root!(
                "<xsl:for-each select=\"'1e1', '2', '+3', '-1'\"><xsl:sort data-type='number'><xsl:value-of select='.'/></xsl:sort><xsl:value-of select='.'/>;</xsl:for-each>"
            ),
            "-1;2;+3;1e1;",
        ),
        (
            root!(
                "<xsl:variable name='s' as='element()*'><xsl:perform-sort select='a'><xsl:sort select='@g'/><xsl:sort select='number(@id)' order='descending'/></xsl:perform-sort></xsl:variable><xsl:value-of select='$s/@id'/>|<xsl:value-of select='for $x in $s return string($x/@id)'/>"
            ),
            "1 2 10|10 1 2",
        ),
        (root!("<xsl:perform-sort select='5, 3, 9'><xsl:sort select='-.'/></xsl:perform-sort>"), "9 5 3"),
        (
            root!("<xsl:perform-sort><xsl:sort select='.'/><xsl:sequence select='2, 1'/></xsl:perform-sort>"),
            "1 2",
        ),
        (
            root!(
                "<xsl:for-each select='xs:date(\"2001-01-02\"), xs:date(\"2000-01-01\")'><xsl:sort select='.'/><xsl:value-of select='.'/>;</xsl:for-each>"
            ),
            "2000-01-01;2001-01-02;",
        ),
        (root!("<xsl:for-each select='a'><xsl:sort select='@g, @id'/>x</xsl:for-each>"), "!XTTE1020"),
        (root!("<xsl:for-each select='1, \"a\"'><xsl:sort select='.'/>x</xsl:for-each>"), "!XTDE1030"),
        // Keys without a total order, and more of them than a sort of few compares each with each.
        (
            root!(
                "<xsl:for-each select='for $i in 1 to 99 return if ($i mod 3) then $i else string($i)'><xsl:sort select='.'/>x</xsl:for-each>"
            ),
            "!XTDE1030",
        ),
        (
            root!(
                "<xsl:variable name='s' as='item()*'><xsl:perform-sort select='for $i in 1 to 200 return if ($i mod 2) then xs:double(9007199254740992) else 9007199254740992 + $i mod 5'><xsl:sort select='.'/></xsl:perform-sort></xsl:variable><xsl:value-of select='count($s)'/>"
            ),
            "200",
        ),
        (root!("<xsl:perform-sort select='1'/>"), "!XTSE0010"),
    ]);
}

#[test]
fn collations() {
    const ASCII: &str = "http://www.w3.org/2005/xpath-functions/collation/html-ascii-case-insensitive";
    const CODEPOINT: &str = "http://www.w3.org/2005/xpath-functions/collation/codepoint";
    let root = |body: &str| {
        format!("<xsl:template match='/r'>{body}</xsl:template>")
            .replace("ASCII", ASCII)
            .replace("CODEPOINT", CODEPOINT)
    };
    let sorted = |sort: &str| {
        root(&format!(
            "<xsl:for-each select='\"b\", \"B\", \"A\", \"a\"'><xsl:sort {sort}/><xsl:value-of select='.'/></xsl:for-each>"
        ))
    };
    let grouped = |how: &str| {
        root(&format!(
            "<xsl:for-each-group select='\"b\", \"B\", \"A\", \"b\"' {how}><xsl:value-of select='current-grouping-key(), count(current-group())'/>;</xsl:for-each-group>"
        ))
    };
    let keyed = |collation: &str| {
        root(
            "<xsl:variable name='t'><i n='X'/><i n='x'/></xsl:variable><xsl:value-of select=\"count(key('k', 'x', $t)), count(key('k', ('X', 'y'), $t))\"/>",
        ) + &format!("<xsl:key name='k' match='i' use='@n' collation='{collation}'/>")
            .replace("ASCII", ASCII)
            .replace("CODEPOINT", CODEPOINT)
    };
    let cases = [
        (sorted("select='.'"), "ABab"),
        (sorted("select='.' collation='CODEPOINT'"), "ABab"),
        (sorted("select='.' collation='{\"CODEPOINT\"}'"), "ABab"),
        (sorted("select='.' collation='ASCII'"), "AabB"),
        (sorted("select='.' collation='ASCII' data-type='text'"), "AabB"),
        (sorted("select='.' data-type='text'"), "ABab"),
        (sorted("select='.' data-type='text' lang='en'"), "aAbB"),
        (sorted("select='.' collation='ASCII' lang='de' order='descending'"), "bBAa"),
        (sorted("select='.' lang='de'"), "aAbB"),
        (sorted("select='string-length(.)' collation='ASCII' data-type='number'"), "bBAa"),
        (sorted("collation='urn:x'"), "!XTDE1035: there is no collation \"urn:x\""),
        (sorted("collation='{\"urn:x\"}'"), "!XTDE1035"),
        (grouped("group-by='.'"), "b 2;B 1;A 1;"),
        (grouped("group-by='.' collation='CODEPOINT'"), "b 2;B 1;A 1;"),
        (grouped("group-by='.' collation='ASCII'"), "b 3;A 1;"),
        (grouped("group-adjacent='.' collation='{\"ASCII\"}'"), "b 2;A 1;b 1;"),
        (grouped("group-by='.' collation='urn:x'"), "!XTDE1110"),
        (grouped("group-by='.' collation='{\"urn:x\"}'"), "!XTDE1110"),
        (keyed("CODEPOINT"), "1 1"),
        (keyed("ASCII"), "2 2"),
        (keyed("urn:x"), "!XTSE1210"),
        (keyed("ASCII") + "<xsl:key name='k' match='a' use='@id'/>", "!XTSE1220"),
        (
            root("<xsl:value-of select='default-collation()' default-collation='urn:x CODEPOINT ASCII'/>"),
            CODEPOINT,
        ),
        (root("<x xsl:default-collation='CODEPOINT'/>"), "<x/>"),
        (root("<xsl:value-of select='1' default-collation='urn:x'/>"), "!XTSE0125"),
        (root("<xsl:value-of select='1' default-collation='ASCII CODEPOINT'/>"), "!XTSE0125"),
        (root("<x xsl:default-collation='urn:x'/>"), "!XTSE0125"),
        (root("<xsl:value-of select='compare(\"a\", \"A\", \"urn:x\")'/>"), "!FOCH0002"),
    ];
    check(&cases.iter().map(|(body, expected)| (body.as_str(), *expected)).collect::<Vec<_>>());
}

#[test]
fn spaces_and_nodes() {
    // Unprefixed names are in the default namespace of expressions.
    let body = "<xsl:strip-space elements='b' xpath-default-namespace='urn:z'/><xsl:template match='/'><xsl:copy-of select='r/*'/></xsl:template>";
    let found = sheets::transformed(&compile(body).unwrap(), "<r><b> </b><b xmlns='urn:z'> </b></r>", body);
    assert_eq!(found.unwrap(), "<b> </b><b xmlns=\"urn:z\"/>");
    check(&[
        (
            "<xsl:variable name='v' select='1, 2'/><xsl:template match='/'><xsl:value-of select='count($v/a)'/></xsl:template>",
            "!XPTY0019",
        ),
        (
            "<xsl:variable name='v' select='1, 2'/><xsl:template match='/'><xsl:value-of select='count($v | /)'/></xsl:template>",
            "!XPTY0004",
        ),
    ]);
}

#[test]
fn copies_and_output() {
    check(&[
        (
            "<xsl:character-map name='m'><xsl:output-character character='e' string='&amp;eacute;'/><xsl:output-character character='&lt;' string='[lt]'/></xsl:character-map><xsl:output use-character-maps='m' omit-xml-declaration='yes'/><xsl:template match='/r'><o x='e'><xsl:value-of select=\"'a&lt;e&amp;'\"/></o></xsl:template>",
            "<o x=\"&eacute;\">a[lt]&eacute;&amp;</o>",
        ),
        ("<xsl:output use-character-maps='none'/><xsl:template match='/r'/>", "!XTSE1590"),
        (
            root!(
                "<xsl:variable name='t'><x xmlns:u='urn:u'><y/></x></xsl:variable><xsl:copy-of select='$t/x' copy-namespaces='no'/>"
            ),
            "<x><y/></x>",
        ),
        (root!("<xsl:result-document><x/></xsl:result-document>"), "<x/>"),
        (
            root!("<xsl:result-document href='other.xml'><x/></xsl:result-document>"),
            "!no place for further results",
        ),
        (
            root!("<xsl:result-document href='{name()}'><x/></xsl:result-document>"),
            "!no place for further results",
        ),
        (root!("<xsl:message select=\"'bye'\" terminate='{\"yes\"}'/>"), "!bye"),
        (root!("<xsl:value-of select=\"error(xs:QName('f:bad'), 'oops')\"/>"), "!bad: oops"),
        (
            root!(
                "<xsl:sequence select='.' use-when=\"system-property('xsl:version') = '1.0'\"/><x use-when='false()' xsl:use-when='true()'/><y xsl:use-when='false()'/>"
            ),
            "<x use-when=\"false()\"/>",
        ),
        (
            "<xsl:template match='/r' xpath-default-namespace='urn:none'><xsl:value-of select='count(a)'/></xsl:template>",
            "one2twothree320",
        ),
        (
            root!(
                "<xsl:value-of select='count(a)' xpath-default-namespace='urn:none'/><xsl:value-of select='count(a)'/>"
            ),
            "03",
        ),
        (
            root!(
                "<xsl:value-of version='1.0' select='a'/>|<xsl:value-of version='1.0' select='a + 1'/>|<o xsl:version='1.0' x='{a}'/>"
            ),
            "one|NaN|<o x=\"one\"/>",
        ),
        (root!("<xsl:value-of version='1.0' select='string-join(a, \"-\")'/>"), "one-two-three"),
        (
            root!(
                "<xsl:value-of select='element-available(\"xsl:for-each-group\"), function-available(\"current-group\"), function-available(\"f:x\"), type-available(\"xs:date\"), function-available(\"matches\")'/>"
            ),
            "true true false true true",
        ),
        (
            root!(
                "<xsl:value-of select=\"format-date(xs:date('2002-12-31'), '[FNn], [D1o] [MNn] [Y]', 'en', (), ())\"/>"
            ),
            "Tuesday, 31st December 2002",
        ),
        (
            root!("<xsl:value-of select=\"format-number(1234.5, '#,##0.00'), format-number(b, '00')\"/>"),
            "1,234.50 02",
        ),
        (
            root!(
                "<xsl:value-of select='unparsed-text-available(\"none.txt\"), generate-id(a[1]) = generate-id(a[1])'/>"
            ),
            "false true",
        ),
        (root!("<xsl:import-schema/>"), "!import-schema"),
        (root!("<xsl:nonsense/>"), "!xsl:nonsense"),
        (
            "<xsl:key name='k' match='a' use='@g'/><xsl:template match='/r'><xsl:value-of select=\"key('k', 'x')/@id, count(key('k', ('x', 'y'))), count(key('k', 'x', b))\"/></xsl:template>",
            "1 10 3 0",
        ),
        (
            "<xsl:key name='k' match='i' use='@n'/><xsl:template match='/r'><xsl:variable name='t'><i n='1'>A</i><i n='2'>B</i></xsl:variable><xsl:value-of select=\"key('k', '2', $t)\"/></xsl:template>",
            "B",
        ),
    ]);
}

/// `--processor 1.0`: the same stylesheet as forwards-compatible 1.0.
#[test]
fn as_a_processor_of_1_0() {
    let body = "<xsl:template match='/r'><xsl:value-of select='a'/>|<xsl:value-of select='system-property(\"xsl:version\")'/>\
                <xsl:sequence select='1'><xsl:fallback>|fallback</xsl:fallback></xsl:sequence></xsl:template>";
    let options = CompileOptions { processor: Processor::V1, ..CompileOptions::default() };
    let sheet = Stylesheet::compile(sheet(body).as_bytes(), &options).unwrap();
    let doc = Document::parse(INPUT, &ParseOptions::default()).unwrap();
    let mut out = Vec::new();
    sheet.transform_to(&doc, Document::ROOT, &[], &RunOptions::default(), &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "one|1|fallback");
    assert_eq!(run(body).unwrap(), "one two three|2.01");
}

/// A parameter from outside is text that becomes the type declared.
#[test]
fn parameters_from_outside() {
    let sheet = compile("<xsl:param name='p' as='xs:integer' required='yes'/><xsl:template match='/r'><xsl:value-of select='$p + 1'/></xsl:template>").unwrap();
    let doc = Document::parse(INPUT, &ParseOptions::default()).unwrap();
    for (value, expected) in [("41", Ok("42")), ("x", Err("FORG0001"))] {
        let mut out = Vec::new();
        let run = sheet.transform_to(
            &doc,
            Document::ROOT,
            &[("p", xpath::Value::from(value))],
            &RunOptions::default(),
            &mut out,
        );
        match expected {
            Ok(text) => assert_eq!(String::from_utf8(out).unwrap(), text),
            Err(code) => assert!(run.unwrap_err().message.contains(code)),
        }
    }
}

/// Rules that the suites of the W3C ask about, each with what it is for.
#[test]
fn rules_of_2_0() {
    check(&[
        // A document among items stays one.
        (
            root!(
                "<xsl:variable name='d'><x/></xsl:variable><xsl:variable name='all' as='document-node()*'><xsl:copy-of select='$d, $d'/></xsl:variable><xsl:value-of select='count($all), name($all[2]/*)'/>"
            ),
            "2 x",
        ),
        // Namespace nodes by themselves.
        (
            root!(
                "<xsl:variable name='n' as='item()*'><xsl:namespace name='p' select='\"urn:p\"'/></xsl:variable><o><xsl:sequence select='$n'/></o>"
            ),
            "<o xmlns:p=\"urn:p\"/>",
        ),
        // There is no context item in a function.
        (
            root!(
                "<xsl:value-of select='f:f()'/></xsl:template><xsl:function name='f:f' xmlns:f='urn:f'><xsl:copy/></xsl:function><xsl:template name='unused'>"
            ),
            "!XTTE0945",
        ),
        // White space before xsl:sort is none, whatever xml:space says.
        (
            root!(
                "<xsl:for-each select='1 to 2' xml:space='preserve'> <xsl:sort select='-.'/>.</xsl:for-each>"
            ),
            "..",
        ),
        (root!("<xsl:value-of select='(1 to 5) to 6' version='1.0'/>"), "1"),
        (root!("<xsl:value-of select='(1 to 5) to 3' version='1.0' separator='+'/>"), "1+2+3"),
        (root!("<xsl:value-of version='1.0'><xsl:value-of select='floor(none)'/></xsl:value-of>"), "NaN"),
        (
            root!(
                "<xsl:value-of select='(1 + 1) instance of xs:double' version='1.0' xmlns:xs='http://www.w3.org/2001/XMLSchema'/>"
            ),
            "true",
        ),
        (
            root!(
                "<xsl:value-of select=\"substring-before(current-date(), '-') castable as xs:integer\" version='1.0'/>"
            ),
            "true",
        ),
        (
            root!(
                "<xsl:value-of select=\"format-date(xs:date('2003-12-09'), '[FNn,3-5] [FNn,*-3] [FNn]')\" xmlns:xs='http://www.w3.org/2001/XMLSchema'/>"
            ),
            "Tue Tue Tuesday",
        ),
        (
            root!(
                "<xsl:value-of select=\"format-time(xs:time('15:00:00'), '[PN,4-4] [PN] [Pn,1-1]')\" xmlns:xs='http://www.w3.org/2001/XMLSchema'/>"
            ),
            "P.M. PM p",
        ),
        (
            root!(
                "<xsl:value-of select=\"round-half-to-even(xs:float(150.015), 2), round-half-to-even(xs:float(-3), -2)\" xmlns:xs='http://www.w3.org/2001/XMLSchema'/>"
            ),
            "150.01 -0",
        ),
        (root!("<xsl:number value='2' lang='42'/>"), "!XTDE0030"),
        (root!("<xsl:value-of select=\"resolve-uri('##a', 'http://h/')\"/>"), "!FORG0002"),
        (root!("<o><xsl:attribute name='a' namespace='http://##'>1</xsl:attribute></o>"), "!XTDE0865"),
        (
            root!(
                "<xsl:variable name='e' as='element()'><x><y/></x></xsl:variable><xsl:for-each select='$e'><xsl:value-of select='count(/y)'/></xsl:for-each>"
            ),
            "!XPDY0050",
        ),
        (
            root!(
                "<xsl:variable name='t' as='text()'>x</xsl:variable><xsl:value-of select='count(base-uri($t))'/>"
            ),
            "0",
        ),
        (
            root!(
                "<xsl:value-of select=\"function-available('xs:NOTATION'), function-available('xs:integer')\" xmlns:xs='http://www.w3.org/2001/XMLSchema'/>"
            ),
            "false true",
        ),
        (root!("<xsl:value-of select='f:none()' xmlns:f='urn:none'/>"), "!f:none"),
        (root!("<xsl:value-of select='d:new()' xmlns:d='java:java.util.Date'/>"), "!java.util.Date"),
    ]);
}

/// Declarations: what holds of several, and what contradicts.
#[test]
fn declarations_of_2_0() {
    let text =
        |template: &str, more: &str| format!("<xsl:template match='/r'>{template}</xsl:template>{more}");
    for (body, expected) in [
        (
            text(
                "<xsl:value-of select=\"format-number(-1.5, '0.0')\"/>",
                "<xsl:decimal-format minus-sign='~'/><xsl:decimal-format infinity='~'/>",
            ),
            "~1.5",
        ),
        (text("x", "<xsl:decimal-format minus-sign='~'/><xsl:decimal-format minus-sign='_'/>"), "!XTSE1290"),
        (text("x", "<xsl:character-map name='m'/><xsl:character-map name='m'/>"), "!XTSE1580"),
        (
            text(
                "x",
                "<xsl:function name='f:f' xmlns:f='urn:f'><xsl:param name='p' required='no'/></xsl:function>",
            ),
            "!XTSE0090",
        ),
        (text("x", "<xsl:output encoding='none-such'/>"), "!SESU0007"),
        (
            text(
                "<e xmlns='urn:x' k='1'/>",
                "<xsl:namespace-alias stylesheet-prefix='#default' result-prefix='y' xmlns='urn:x' xmlns:y='urn:y'/>",
            ),
            "<y:e xmlns:y=\"urn:y\" k=\"1\"/>",
        ),
    ] {
        let found = match run(&body) {
            Ok(found) => found,
            Err(error) => format!("!{error}"),
        };
        match expected.strip_prefix('!') {
            Some(part) => assert!(found.starts_with('!') && found.contains(part), "{body}: {found}"),
            None => assert_eq!(found, expected, "{body}"),
        }
    }
}

/// What Saxon and the specifications agree on, and no suite asks for.
#[test]
fn details() {
    let of = |body: &str| {
        format!(
            "<xsl:template match='/r'><xsl:variable name='d'><c><s n='3'/><s n='x'/></c><b><s n='5'/></b></xsl:variable>{body}</xsl:template>"
        )
    };
    let numbered = |how: &str| {
        of(&format!("<xsl:for-each select='$d//s'>[<xsl:number {how} count='*'/>]</xsl:for-each>"))
    };
    let cases = [
        // At a single level, what is counted lies within a node that `from` matches.
        (numbered("from='c'"), "[1][2][]"),
        (numbered("level='multiple' from='c'"), "[1.1][1.2][2.1]"),
        (numbered("level='multiple' from='s'"), "[1][2][1]"),
        (numbered("from='nothing'"), "[][][]"),
        (numbered(""), "[1][2][1]"),
        // A pattern that fails does not match.
        (
            of("<xsl:apply-templates select='$d//s'/>")
                + "<xsl:template match='s[@n &gt; 2]'>y</xsl:template><xsl:template match='s'>n</xsl:template>",
            "yny",
        ),
        (
            of("<xsl:apply-templates select='$d//s'/>")
                + "<xsl:template match='c[s[2]/@n &gt; 2]/s[1]'>y</xsl:template><xsl:template match='s'>n</xsl:template>",
            "nnn",
        ),
        (
            of("<xsl:for-each select='$d//s'><xsl:number level='any' count='s[@n &gt; 2]'/></xsl:for-each>"),
            "112",
        ),
        (of("<xsl:analyze-string select='1' regex='a' flags='j'/>"), "!XTDE1145"),
        (of("<xsl:number count='s[current-merge-group()]'/>"), "!XTSE3470"),
        (of("<xsl:number count='s[current-merge-key()]'/>"), "!XTSE3500"),
        (of("<xsl:number value='0, 1' format='1;01' ordinal='yes'/>"), "0th;01st"),
    ];
    check(&cases.iter().map(|(body, expected)| (body.as_str(), *expected)).collect::<Vec<_>>());
}
