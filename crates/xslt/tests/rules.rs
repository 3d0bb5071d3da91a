//! The rules of the language as tables: what comes out, what is refused, what is bounded. Every result is made twice,
//! straight to bytes and through a result tree, and both must agree.

#![allow(clippy::unwrap_used)]

use busbar_xslt::{CompileOptions, RunLimits, RunOptions, Stylesheet};
use xml::{Document, ParseOptions};

fn sheet(body: &str) -> String {
    format!(
        "<xsl:stylesheet version=\"1.0\" xmlns:xsl=\"http://www.w3.org/1999/XSL/Transform\" \
         xmlns:e=\"http://exslt.org/common\" xmlns:str=\"http://exslt.org/strings\" xmlns:m=\"urn:m\" \
         exclude-result-prefixes=\"e str m\"><xsl:output omit-xml-declaration=\"yes\"/>{body}</xsl:stylesheet>"
    )
}

fn run(body: &str, input: &str, limits: &RunLimits) -> Result<String, String> {
    let sheet = Stylesheet::compile(sheet(body).as_bytes(), &CompileOptions::default())
        .map_err(|errors| format!("compile: {}", errors[0].message))?;
    let doc = Document::parse(input.to_owned(), &ParseOptions::default()).unwrap();
    let options = RunOptions { limits, ..RunOptions::default() };
    let mut bytes = Vec::new();
    sheet.transform_to(&doc, Document::ROOT, &[], &options, &mut bytes).map_err(|e| e.message)?;
    let tree = sheet.transform(&doc, Document::ROOT, &[], &options).unwrap().document;
    let mut written = Vec::new();
    xml::write(&tree, Document::ROOT, sheet.write_options(&tree), &mut written);
    let bytes = String::from_utf8(bytes).unwrap();
    assert_eq!(bytes, String::from_utf8(written).unwrap(), "bytes and tree differ: {body}");
    Ok(bytes)
}

#[test]
fn results() {
    let input = "<r><a id='1'>x</a><b>y</b><a id='2'>z</a></r>";
    for (body, expected) in [
        ("<xsl:template match='a'><i><xsl:value-of select='@id'/></i></xsl:template>", "<i>1</i>y<i>2</i>"),
        // Attributes have the order of the stylesheet.
        (
            "<xsl:template match='/'><o a='1' b='{1+1}' c='&lt;3' d='{2+2}'/></xsl:template>",
            "<o a=\"1\" b=\"2\" c=\"&lt;3\" d=\"4\"/>",
        ),
        (
            "<xsl:template match='/'><xsl:value-of select='element-available(\"e:document\")'/>,<xsl:value-of select='element-available(\"e:nothing\")'/></xsl:template>",
            "true,false",
        ),
        // Conflicts: priority, then the last in the stylesheet.
        ("<xsl:template match='a'>1</xsl:template><xsl:template match='r/a'>2</xsl:template>", "2y2"),
        ("<xsl:template match='a'>1</xsl:template><xsl:template match='a'>2</xsl:template>", "2y2"),
        ("<xsl:template match='a[2]'>!</xsl:template>", "xy!"),
        ("<xsl:template match='a[@id=1]'>!</xsl:template>", "!yz"),
        (
            "<xsl:template match='r'><xsl:for-each select='a'><xsl:sort select='@id' order='descending'/><xsl:value-of select='.'/></xsl:for-each></xsl:template>",
            "zx",
        ),
        (
            "<xsl:template match='r'><o x='{count(a)}{{'><xsl:attribute name='x'>7</xsl:attribute></o></xsl:template>",
            "<o x=\"7\"/>",
        ),
        // Namespaces: declared once, where they are needed.
        (
            "<xsl:template match='r'><m:o xmlns:m='urn:m'><m:i/><n xmlns='urn:n'><p xmlns=''/></n></m:o></xsl:template>",
            "<m:o xmlns:m=\"urn:m\"><m:i/><n xmlns=\"urn:n\"><p xmlns=\"\"/></n></m:o>",
        ),
        (
            "<xsl:template match='r'><o><xsl:attribute name='q' namespace='urn:q'>1</xsl:attribute></o></xsl:template>",
            "<o xmlns:ns0=\"urn:q\" ns0:q=\"1\"/>",
        ),
        (
            "<xsl:template match='r'><xsl:element name='p:x' namespace='urn:1'><xsl:attribute name='p:y' namespace='urn:2'/></xsl:element></xsl:template>",
            "<p:x xmlns:p=\"urn:1\" xmlns:ns0=\"urn:2\" ns0:y=\"\"/>",
        ),
        ("<xsl:template match='r'><xsl:copy-of select='a[1]'/></xsl:template>", "<a id=\"1\">x</a>"),
        (
            "<xsl:template match='@*|node()'><xsl:copy><xsl:apply-templates select='@*|node()'/></xsl:copy></xsl:template>",
            "<r><a id=\"1\">x</a><b>y</b><a id=\"2\">z</a></r>",
        ),
        (
            "<xsl:variable name='v'><k/><k/></xsl:variable><xsl:template match='r'><xsl:value-of select='count(e:node-set($v)/k)'/></xsl:template>",
            "2",
        ),
        (
            "<xsl:key name='k' match='a' use='@id'/><xsl:template match='r'><xsl:value-of select=\"key('k','2')\"/></xsl:template>",
            "z",
        ),
        ("<xsl:template match='a'><xsl:number/>.</xsl:template><xsl:template match='b'/>", "1.2."),
        (
            "<xsl:template match='r'><xsl:call-template name='t'><xsl:with-param name='p' select='3'/></xsl:call-template></xsl:template>\
          <xsl:template name='t'><xsl:param name='p' select='1'/><xsl:param name='q' select='$p+1'/><xsl:value-of select='$p+$q'/></xsl:template>",
            "7",
        ),
        (
            "<xsl:template match='r'><xsl:for-each select=\"str:tokenize('a,b',',')\"><xsl:value-of select='.'/>;</xsl:for-each></xsl:template>",
            "a;b;",
        ),
        (
            "<xsl:template match='r'>&lt;&amp;&gt;<o a='&lt;\"&amp;&#10;'/></xsl:template>",
            "&lt;&amp;&gt;<o a=\"&lt;&quot;&amp;&#10;\"/>",
        ),
        (
            "<xsl:template match='r'><xsl:comment>a--b-</xsl:comment><xsl:processing-instruction name='p'>d</xsl:processing-instruction></xsl:template>",
            "<!--a- -b- --><?p d?>",
        ),
        (
            "<xsl:template match='r'><xsl:apply-templates select='a' mode='n'/></xsl:template><xsl:template match='a' mode='n'><xsl:value-of select=\"concat(position(),'/',last(),' ')\"/></xsl:template>",
            "1/2 2/2 ",
        ),
    ] {
        assert_eq!(run(body, input, &RunLimits::default()).as_deref(), Ok(expected), "{body}");
    }
}

#[test]
fn refusals() {
    for (body, message) in [
        ("<xsl:template match='a'><xsl:value-of select='$v'/></xsl:template>", "variable"),
        ("<xsl:template match='a'><xsl:call-template name='t'/></xsl:template>", "there is no template"),
        ("<xsl:template match='a'><xsl:value-of/></xsl:template>", "select"),
        ("<xsl:template match='a['/>", "expected"),
        ("<xsl:template match='a'><xsl:if/></xsl:template>", "test"),
        ("<xsl:template match='a'><xsl:nothing/></xsl:template>", "not allowed"),
        ("<xsl:variable name='a' select='$b'/><xsl:variable name='b' select='$a'/>", "its own value"),
        ("<xsl:template match='a'><o x='{'/></xsl:template>", "without"),
        ("<xsl:attribute-set name='s' use-attribute-sets='s'/>", "uses itself"),
        ("<xsl:template name='t'/><xsl:template name='t'/>", "two templates"),
    ] {
        let error = run(body, "<a/>", &RunLimits::default()).unwrap_err();
        assert!(error.starts_with("compile: ") && error.contains(message), "{body}: {error}");
    }
}

#[test]
fn bounds() {
    let endless = "<xsl:template match='/'><xsl:call-template name='t'/></xsl:template>\
                   <xsl:template name='t'><o><xsl:call-template name='t'/></o></xsl:template>";
    let error = run(endless, "<a/>", &RunLimits::default()).unwrap_err();
    assert!(error.contains("nested too deeply"), "{error}");
    let limits = RunLimits { steps: 1000, ..RunLimits::default() };
    assert!(run(endless, "<a/>", &limits).unwrap_err().contains("limit of steps"));
    // Deep, but not too deep: more than one stack is needed.
    let counting = "<xsl:template match='/'><xsl:call-template name='t'/></xsl:template>\
        <xsl:template name='t'><xsl:param name='n' select='0'/><xsl:choose><xsl:when test='$n = 8000'>done</xsl:when>\
        <xsl:otherwise><xsl:call-template name='t'><xsl:with-param name='n' select='$n + 1'/></xsl:call-template>\
        </xsl:otherwise></xsl:choose></xsl:template>";
    assert_eq!(run(counting, "<a/>", &RunLimits::default()).as_deref(), Ok("done"));
}

/// The prefix of an attribute is a wish: no other name of the tag changes its meaning for it.
#[test]
fn namespaces_of_attributes() {
    for (inside, expected) in [
        ("<e p:a='1'><xsl:attribute name='p:k' namespace='u9'>2</xsl:attribute></e>", "u1 u9"),
        (
            "<xsl:element name='e'><xsl:attribute name='p:a'>1</xsl:attribute><xsl:attribute name='p:k' namespace='u9'>2</xsl:attribute></xsl:element>",
            "u1 u9",
        ),
        (
            "<p:e><xsl:attribute name='p:a' namespace='u2'>1</xsl:attribute><xsl:attribute name='p:k' namespace='u9'>2</xsl:attribute></p:e>",
            "u2 u9",
        ),
        (
            "<e><xsl:attribute name='a' namespace='u2'>1</xsl:attribute><xsl:attribute name='k' namespace='u9'>2</xsl:attribute></e>",
            "u2 u9",
        ),
        (
            "<e><xsl:attribute name='ns0:a' namespace='u2'>1</xsl:attribute><xsl:attribute name='k' namespace='u9'>2</xsl:attribute></e>",
            "u2 u9",
        ),
    ] {
        let body = format!("<xsl:template match='/'><p:o xmlns:p='u1'>{inside}</p:o></xsl:template>");
        let sheet = Stylesheet::compile(sheet(&body).as_bytes(), &CompileOptions::default()).unwrap();
        let doc = Document::parse("<x/>", &ParseOptions::default()).unwrap();
        let options = RunOptions::default();
        let mut bytes = Vec::new();
        sheet.transform_to(&doc, Document::ROOT, &[], &options, &mut bytes).unwrap();
        let tree = sheet.transform(&doc, Document::ROOT, &[], &options).unwrap().document;
        let mut written = Vec::new();
        xml::write(&tree, Document::ROOT, sheet.write_options(&tree), &mut written);
        for made in [bytes, written] {
            let shown = String::from_utf8_lossy(&made).into_owned();
            let made =
                Document::parse(made, &ParseOptions::default()).unwrap_or_else(|e| panic!("{e}: {shown}"));
            let outer = made.document_element().unwrap();
            assert_eq!(made.namespace(outer), "u1", "{shown}");
            let element = made.children(outer).next().unwrap();
            let found: Vec<&str> = made.attributes(element).map(|a| made.namespace(a)).collect();
            assert_eq!(found.join(" "), expected, "{shown}");
        }
    }
}
