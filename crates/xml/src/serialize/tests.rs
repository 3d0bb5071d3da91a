//! Documents as they are written.

use super::{html, *};
use crate::{Document, ParseOptions};

fn written(text: &str, options: &WriteOptions) -> String {
    let doc = Document::parse(text.to_owned(), &ParseOptions::default()).unwrap();
    let mut out = Vec::new();
    crate::write(&doc, Document::ROOT, options, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn methods() {
    let html = WriteOptions { method: Method::Html, include_content_type: false, ..WriteOptions::default() };
    let meta = WriteOptions { method: Method::Html, ..WriteOptions::default() };
    let indent = WriteOptions { indent: true, ..WriteOptions::default() };
    let cdata = WriteOptions {
        cdata_elements: vec![(String::new(), "a".into())],
        encoding: Some("us-ascii".into()),
        ..WriteOptions::default()
    };
    let text = WriteOptions { method: Method::Text, ..WriteOptions::default() };
    for (input, options, want) in [
        ("<html><br/><p/>a&lt;\u{A0}</html>", &html, "<html><br><p></p>a&lt;&nbsp;</html>"),
        ("<script>a&lt;b &amp;&amp; c</script>", &html, "<script>a<b && c</script>"),
        (
            "<option selected='selected' title='a&lt;b&amp;c'/>",
            &html,
            "<option selected title=\"a<b&amp;c\"></option>",
        ),
        ("<a href='\u{E9} x?a=1&amp;b'/>", &html, "<a href=\"%C3%A9 x?a=1&amp;b\"></a>"),
        ("<x:br xmlns:x='urn:x'/>", &html, "<x:br xmlns:x=\"urn:x\"/>"),
        (
            "<html><head/></html>",
            &meta,
            "<html><head><meta http-equiv=\"Content-Type\" content=\"text/html; charset=UTF-8\"></head></html>",
        ),
        ("<a><b/><c>t</c></a>", &indent, "<a>\n  <b/>\n  <c>t</c>\n</a>\n"),
        ("<a>x]]&gt;&lt;\u{E9}</a>", &cdata, "<a><![CDATA[x]]]]><![CDATA[><]]>&#233;</a>"),
        ("<a>x&#13;]]&#13;></a>", &cdata, "<a><![CDATA[x]]>&#13;<![CDATA[]]]]>&#13;<![CDATA[>]]></a>"),
        ("<a>x&lt;<b>y</b></a>", &text, "x<y"),
    ] {
        assert_eq!(written(input, options), want);
    }
}

#[test]
fn xhtml() {
    let plain =
        WriteOptions { method: Method::Xhtml, include_content_type: false, ..WriteOptions::default() };
    let meta = WriteOptions { method: Method::Xhtml, ..WriteOptions::default() };
    let raw_uris = WriteOptions { escape_uri_attributes: false, ..plain.clone() };
    let indent = WriteOptions { indent: true, declaration: true, ..plain.clone() };
    let doctype = WriteOptions {
        doctype_public: Some("-//W3C//DTD XHTML 1.0 Strict//EN".into()),
        doctype_system: Some("xhtml1-strict.dtd".into()),
        ..plain.clone()
    };
    let cdata = WriteOptions { cdata_elements: vec![(html::XHTML.into(), "style".into())], ..plain.clone() };
    let inside = |content: &str| format!("<html xmlns=\"{}\">{content}</html>", html::XHTML);
    for (input, options, want) in [
        // An empty element: with a space before `/>` where it must be empty, else with an end tag.
        (
            inside("<br/><hr></hr><p/><script/><P/>"),
            &plain,
            inside("<br /><hr /><p></p><script></script><P></P>"),
        ),
        (inside("<x xmlns='urn:x'/><br xmlns=''/>"), &plain, inside("<x xmlns=\"urn:x\"/><br xmlns=\"\"/>")),
        (
            format!("<h:br xmlns:h='{}'/>", html::XHTML),
            &plain,
            format!("<h:br xmlns:h=\"{}\" />", html::XHTML),
        ),
        ("<br/>".into(), &plain, "<br/>".into()),
        // As XML: no names of entities, no attributes without values, escaped scripts.
        (
            inside("<option selected='selected'>\u{A0}&lt;</option><script>a&lt;b</script>"),
            &plain,
            inside("<option selected=\"selected\">\u{A0}&lt;</option><script>a&lt;b</script>"),
        ),
        (inside("<style>a&lt;b</style>"), &cdata, inside("<style><![CDATA[a<b]]></style>")),
        // URIs: composed, then escaped.
        (inside("<a href='e\u{301}'/>"), &plain, inside("<a href=\"%C3%A9\"></a>")),
        (inside("<a href='\u{E9}'/>"), &raw_uris, inside("<a href=\"\u{E9}\"></a>")),
        (inside("<a title='\u{E9}'/>"), &plain, inside("<a title=\"\u{E9}\"></a>")),
        // The encoding in the head, once.
        (
            inside("<head><meta http-equiv='content-type' content='x'/><title/></head>"),
            &meta,
            inside(
                "<head><meta http-equiv=\"Content-Type\" content=\"text/html; charset=UTF-8\" /><title></title></head>",
            ),
        ),
        (
            inside("<head><meta name='a' content='x'/></head><meta http-equiv='Content-Type'/>"),
            &meta,
            inside(
                "<head><meta http-equiv=\"Content-Type\" content=\"text/html; charset=UTF-8\" /><meta name=\"a\" content=\"x\" /></head><meta http-equiv=\"Content-Type\" />",
            ),
        ),
        (
            format!("<h:html xmlns:h='{0}'><h:head/></h:html>", html::XHTML),
            &meta,
            format!(
                "<h:html xmlns:h=\"{0}\"><h:head><h:meta http-equiv=\"Content-Type\" content=\"text/html; charset=UTF-8\" /></h:head></h:html>",
                html::XHTML
            ),
        ),
        (
            inside("<body><p>a<b>c</b></p><pre> <i/></pre></body>"),
            &indent,
            format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<html xmlns=\"{}\">\n  <body>\n    <p>a<b>c</b></p>\n    <pre> <i></i></pre>\n  </body>\n</html>\n",
                html::XHTML
            ),
        ),
        // White space around these would show.
        (
            inside("<body><b>a</b><wbr/><script/><mark>b</mark></body>"),
            &indent,
            format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<html xmlns=\"{}\">\n  <body><b>a</b><wbr /><script></script><mark>b</mark>\n  </body>\n</html>\n",
                html::XHTML
            ),
        ),
        (
            inside(""),
            &doctype,
            format!(
                "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\" \"xhtml1-strict.dtd\">\n{}",
                inside("")
            ),
        ),
    ] {
        assert_eq!(written(&input, options), want, "{input}");
    }
}

#[test]
fn details() {
    let base = WriteOptions::default();
    let map = std::collections::BTreeMap::from([('e', "&eacute;".to_owned()), ('<', "[lt]".to_owned())]);
    let mapped = WriteOptions { character_map: map.clone(), ..base.clone() };
    let html = WriteOptions { method: Method::Html, ..mapped.clone() };
    let text = WriteOptions { method: Method::Text, ..mapped.clone() };
    let cdata = WriteOptions { cdata_elements: vec![(String::new(), "a".into())], ..mapped.clone() };
    let form = |form| WriteOptions { normalization: Some(form), ..base.clone() };
    let composed = WriteOptions { character_map: map, ..form(Normalization::Nfc) };
    let mark = WriteOptions { byte_order_mark: true, indent: true, ..base.clone() };
    let wide = WriteOptions { byte_order_mark: true, encoding: Some("us-ascii".into()), ..base.clone() };
    for (input, options, want) in [
        ("<a b='e&lt;'>xe&lt;&amp;</a>", &mapped, "<a b=\"&eacute;[lt]\">x&eacute;[lt]&amp;</a>"),
        ("<a href='e\u{E9}' b='e'/>", &html, "<a href=\"e%C3%A9\" b=\"&eacute;\"></a>"),
        ("<a>e&lt;&amp;</a>", &text, "&eacute;[lt]&"),
        ("<a>e<b>e</b></a>", &cdata, "<a><![CDATA[e]]><b>&eacute;</b></a>"),
        ("<a b='e\u{301}'>e\u{301}</a>", &form(Normalization::Nfc), "<a b=\"\u{E9}\">\u{E9}</a>"),
        ("<a>\u{E9}\u{FB01}</a>", &form(Normalization::Nfd), "<a>e\u{301}\u{FB01}</a>"),
        ("<a>\u{FB01}</a>", &form(Normalization::Nfkc), "<a>fi</a>"),
        ("<a>\u{FB01}\u{E9}</a>", &form(Normalization::Nfkd), "<a>fie\u{301}</a>"),
        // Replacements of the map are not normalized.
        ("<a>eo\u{308}</a>", &composed, "<a>&eacute;\u{F6}</a>"),
        ("<a><b/></a>", &mark, "\u{FEFF}<a>\n  <b/>\n</a>\n"),
        ("<a/>", &wide, "<a/>"),
    ] {
        assert_eq!(written(input, options), want, "{input}");
    }
}

/// In HTML 5 elements of XHTML are those of HTML, and have no prefixes; a document type is always that of `html`.
#[test]
fn elements_of_html_5() {
    let html = WriteOptions { method: Method::Html, include_content_type: false, ..WriteOptions::default() };
    let html5 = WriteOptions { html5: true, ..html.clone() };
    let doctype = WriteOptions { doctype_system: Some("a.dtd".into()), ..html.clone() };
    let meta = WriteOptions { include_content_type: true, ..html5.clone() };
    let xhtml = "http://www.w3.org/1999/xhtml";
    for (input, options, want) in [
        (
            format!("<h:html xmlns:h='{xhtml}'><h:script>a&lt;b</h:script><h:br/><h:p/></h:html>"),
            &html5,
            format!("<!DOCTYPE html>\n<html xmlns=\"{xhtml}\"><script>a<b</script><br><p></p></html>"),
        ),
        (format!("<h:br xmlns:h='{xhtml}'/>"), &html, format!("<h:br xmlns:h=\"{xhtml}\"/>")),
        (
            "<audio controls='controls' open='open' name='\u{E9}' src='\u{E9}'>&#13;</audio>".to_owned(),
            &html,
            "<audio controls open=\"open\" name=\"\u{E9}\" src=\"%C3%A9\">&#13;</audio>".to_owned(),
        ),
        (
            "<html><head><meta charset='x'/><meta name='y'/></head></html>".to_owned(),
            &meta,
            "<!DOCTYPE html>\n<html><head><meta http-equiv=\"Content-Type\" content=\"text/html; charset=UTF-8\"><meta name=\"y\"></head></html>"
                .to_owned(),
        ),
        (
            "<q:r xmlns:q='urn:q'/>".to_owned(),
            &doctype,
            "<!DOCTYPE html SYSTEM \"a.dtd\">\n<q:r xmlns:q=\"urn:q\"/>".to_owned(),
        ),
    ] {
        assert_eq!(written(&input, options), want, "{input}");
    }
}

/// Characters that the encoding lacks become references where there are any, and are errors elsewhere.
#[test]
fn characters_that_the_encoding_lacks() {
    let write = |text: &str, method: Method, encoding: &str| {
        let doc = Document::parse(text.to_owned(), &ParseOptions::default()).unwrap();
        let options = WriteOptions {
            method,
            encoding: Some(encoding.to_owned()),
            include_content_type: false,
            ..WriteOptions::default()
        };
        let mut out = Vec::new();
        crate::write_encoded(&doc, Document::ROOT, &options, &mut out)
            .map(|()| String::from_utf8_lossy(&out).into_owned())
    };
    let (xml, html, text) = (Method::Xml, Method::Html, Method::Text);
    let ascii = Err(('\u{E9}', "US-ASCII"));
    for (input, method, encoding, expected) in [
        ("<a b='\u{E9}'>\u{E9}</a>", xml, "US-ASCII", Ok("<a b=\"&#233;\">&#233;</a>")),
        ("<a b='\u{E9}'>\u{E9}</a>", html, "US-ASCII", Ok("<a b=\"&#233;\">&#233;</a>")),
        ("<\u{E9}/>", xml, "US-ASCII", ascii),
        ("<a \u{E9}='1'/>", xml, "US-ASCII", ascii),
        ("<a><!--\u{E9}--></a>", xml, "US-ASCII", ascii),
        ("<a><?p \u{E9}?></a>", xml, "US-ASCII", ascii),
        ("<script>\u{E9}</script>", html, "US-ASCII", ascii),
        ("<a>\u{E9}</a>", text, "US-ASCII", ascii),
        ("<a>\u{20AC}</a>", text, "ISO-8859-1", Err(('\u{20AC}', "ISO-8859-1"))),
        ("<a><!--\u{416}--></a>", xml, "windows-1252", Err(('\u{416}', "windows-1252"))),
        ("<a>\u{416}<!--x--></a>", xml, "windows-1252", Ok("<a>&#1046;<!--x--></a>")),
        ("<a><!--\u{416}--></a>", xml, "utf-8", Ok("<a><!--\u{416}--></a>")),
    ] {
        let written = write(input, method, encoding);
        let expected =
            expected.map_err(|(character, encoding)| WriteError::Character { character, encoding });
        assert_eq!(written.as_deref().map_err(|e| *e), expected, "{input} {encoding}");
    }
    // Output without escaping.
    let options = WriteOptions { encoding: Some("us-ascii".into()), ..WriteOptions::default() };
    let mut out = Vec::new();
    let mut s = Serializer::new(&mut out, &options);
    s.raw_text("<\u{E9}");
    s.finish().unwrap();
    assert_eq!(out, b"<&#233;");
}

#[test]
fn namespaces_are_repaired() {
    let options = WriteOptions { declaration: true, ..WriteOptions::default() };
    let mut out = Vec::new();
    let mut s = Serializer::new(&mut out, &options);
    s.start_element("p", "urn:a", "a");
    s.namespace("q", "urn:q");
    s.attribute("p", "urn:b", "x", "1");
    s.attribute("", "urn:q", "y", "2");
    s.start_element("", "", "b");
    s.namespace("q", "urn:q");
    s.end_element();
    s.raw_text("<raw/>");
    s.finish().unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><p:a xmlns:p=\"urn:a\" xmlns:q=\"urn:q\" xmlns:ns0=\"urn:b\" ns0:x=\"1\" q:y=\"2\"><b/><raw/></p:a>"
    );
}
