//! Stylesheets over messages of all kinds, in flows without a network.

use super::is_one_element;
use flow::testing;

const XML: &[(&str, &str)] = &[("Content-Type", "application/xml")];
const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];
const SOAP: &[(&str, &str)] = &[("Content-Type", "text/xml"), ("SOAPAction", "x")];

/// An entry `s` with these templates.
fn sheet(inside: &str) -> String {
    format!(
        "<!--top--><localEntry key='s'><x:stylesheet xmlns='' version='1.0' xmlns:x='http://www.w3.org/1999/XSL/Transform'>{inside}</x:stylesheet></localEntry>"
    )
}

fn run(mediator: &str, inside: &str, headers: &[(&str, &str)], body: &str) -> Result<String, String> {
    let tested = testing::main(&crate::registry(testing::endpoints), &format!("{mediator}{}", sheet(inside)));
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    let mut end = tested.run(headers, body);
    end.outcome().map_err(|fault| fault + " / " + &end.property("ERROR_DETAIL").unwrap_or_default())
}

/// What is around the payload of a SOAP message has no part in what becomes of it: the way of bytes gives what the way of
/// trees gives.
#[test]
fn soap_messages_become_the_same_in_place_and_as_trees() {
    let copy =
        "<x:template match='@*|node()'><x:copy><x:apply-templates select='@*|node()'/></x:copy></x:template>";
    let renamed = "<x:template match='/'><o xmlns='urn:o'><x:for-each select='//i'><p><x:value-of select='.'/></p></x:for-each></o></x:template>";
    let names = "<x:output omit-xml-declaration='yes'/><x:template match='/'><r><x:for-each select='/*/namespace::*'><x:sort select='name()'/><n><x:value-of select='name()'/></n></x:for-each><x:value-of select='count(/node())'/></r></x:template>";
    let text = "<x:output method='text'/><x:template match='/'>only text</x:template>";
    let two = "<x:template match='/'><a/><b/></x:template>";
    let nothing = "<x:template match='/'/>";
    let open = "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/' xmlns:p='urn:p' k='1'>";
    for body in [
        "<s:Body><a><i>1</i><i>2 &amp; 3</i></a></s:Body></s:Envelope>",
        "<s:Header><p:h>1</p:h></s:Header><s:Body id='b'>\n <p:a p:k='&lt;'><i/><!--c--></p:a> </s:Body>\n</s:Envelope>\n",
        "<s:Body><a xmlns='urn:a'/><b/></s:Body></s:Envelope>",
        "<s:Body><a/><!--behind--></s:Body></s:Envelope>",
        "<s:Body><a/></s:Body><!--behind--></s:Envelope>",
        "<s:Body xmlns='urn:d'><a/></s:Body></s:Envelope>",
        "<s:Body>text</s:Body></s:Envelope>",
        "<s:Body/></s:Envelope>",
        "<s:Body><a></s:Body></s:Envelope>",
    ] {
        let message = format!("{open}{body}");
        for inside in [copy, renamed, names, text, two, nothing] {
            let [bytes, trees] = ["<xslt key='s'/>", "<xslt key='s' source='$body/*[1]'/>"].map(|mediator| {
                let entry = sheet(inside);
                let tested =
                    testing::main(&crate::registry(testing::endpoints), &format!("{mediator}{entry}"));
                assert!(tested.found.is_empty(), "{:?}", tested.found);
                let mut end = tested.run(SOAP, &message);
                let fault = end.fault();
                let written = end.write(message::Format::Soap(message::SoapVersion::V11));
                let mut envelope =
                    match xml::Document::parse(written.clone().into_bytes(), &xml::ParseOptions::default()) {
                        Ok(document) => xml::to_string(&document, xml::Document::ROOT),
                        Err(_) => written,
                    };
                // The one way repeats declarations that the other leaves to the envelope.
                for declaration in
                    [" xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"", " xmlns:p=\"urn:p\""]
                {
                    envelope = envelope.replace(declaration, "");
                }
                (fault, envelope)
            });
            // Without an element `source` selects nothing, which is an error.
            if trees.0.as_ref().is_some_and(|fault| fault.contains("selects no element")) {
                continue;
            }
            assert_eq!(bytes, trees, "{message} {inside}");
        }
    }
}

#[test]
fn the_payload_or_the_selected_element_is_transformed() {
    let bare = "<x:output omit-xml-declaration='yes'/>";
    let root = format!(
        "{bare}<x:template match='/'><r><x:value-of select='name(*)'/><x:value-of select='//i'/></r></x:template>"
    );
    let param = format!(
        "{bare}<x:param name='p' select='0'/><x:param name='q' select='7'/><x:template match='/'><r><x:value-of select='$p'/>-<x:value-of select='$q'/></r></x:template>"
    );
    for (mediator, inside, headers, body, out) in [
        ("<xslt key='s'/>", &root, XML, "<a><i>1</i></a>", "<r>a1</r>"),
        ("<xslt key=\"{concat('s', '')}\"/>", &root, XML, "<a><i>1</i></a>", "<r>a1</r>"),
        ("<xslt key='s' source='//i'/>", &root, XML, "<a><i>1</i><k/></a>", "<a><r>i1</r><k/></a>"),
        ("<xslt key='s' source='$body'/>", &root, XML, "<a><i>1</i></a>", ""),
        ("<xslt key='s' target='t'/>", &root, XML, "<a><i>1</i></a>", "<a><i>1</i></a>"),
        ("<xslt key='s'/>", &root, JSON, r#"{"i":1}"#, "<r>jsonObject1</r>"),
        ("<xslt key='s'/>", &root, XML, "", ""),
        (
            "<xslt key='s'><property name='p' value='x'/><property name='q' expression='$ctx:none'/></xslt>",
            &param,
            XML,
            "<a/>",
            "<r>x-7</r>",
        ),
        (
            "<xslt key='s'><property name='p' expression='//i'/></xslt>",
            &param,
            XML,
            "<a><i>5</i></a>",
            "<r>5-7</r>",
        ),
        (
            "<xslt key='s'/>",
            &"<x:output method='text'/><x:template match='/'>a&amp;b</x:template>".to_owned(),
            XML,
            "<a/>",
            "<text xmlns=\"http://ws.apache.org/commons/ns/payload\">a&amp;b</text>",
        ),
    ] {
        assert_eq!(run(mediator, inside, headers, body).as_deref(), Ok(out), "{mediator} {body}");
    }
}

/// Following mediators read JSON, and the client gets it; `adaptive` is for people.
#[test]
fn maps_become_json_messages() {
    let sheet = |output: &str, select: &str| {
        format!(
            "<!--top--><localEntry key='s'><x:stylesheet xmlns='' version='3.0' xmlns:x='http://www.w3.org/1999/XSL/Transform'>\
            <x:output method='{output}'/><x:param name='json' select=\"'[]'\"/><x:template match='/'><x:sequence select=\"{select}\"/></x:template></x:stylesheet></localEntry>"
        )
    };
    let soap = "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body><a><i>1</i></a></s:Body></s:Envelope>";
    let made = "map {'i': //i/number(), 'all': array {parse-json($json)?*}, 'e': '\u{20ac}'}";
    let one = r#"{"i":1,"all":[],"e":"€"}"#.replace("\\u20ac", "\u{20ac}");
    let two = r#"{"i":2,"all":[1,"x"],"e":"€"}"#.replace("\\u20ac", "\u{20ac}");
    let parameter = "<xslt key='s'><property name='json' expression='json-eval($.l)'/></xslt>";
    for (mediator, output, headers, body, out) in [
        ("<xslt key='s'/>", "json", XML, "<a><i>1</i></a>", &one),
        ("<xslt key='s'/>", "json", SOAP, soap, &one),
        ("<xslt key='s' source='//i'/>", "json", XML, "<a><i>1</i></a>", &one),
        ("<xslt key='s'/>", "json' encoding='UTF-16", XML, "<a><i>1</i></a>", &one),
        (parameter, "json", JSON, r#"{"i":2,"l":[1,"x"]}"#, &two),
    ] {
        let read = "<property name='p' expression='json-eval($.i)'/>";
        let text = format!("{mediator}{read}{}", sheet(output, made));
        let tested = testing::main(&crate::registry(testing::endpoints), &text);
        assert!(tested.found.is_empty(), "{:?}", tested.found);
        let mut end = tested.run(headers, body);
        assert_eq!(end.outcome().as_ref(), Ok(out), "{mediator} {body}");
        assert!(end.property("p").is_some_and(|p| out.contains(&p)), "{mediator} {body}");
        let media = end.context.headers.get("Content-Type");
        assert_eq!(media, Some("application/json"), "{mediator} {body}");
    }
    let registry = crate::registry(testing::endpoints);
    let target = format!("<xslt key='s' target='t'/>{}", sheet("json", made));
    let mut end = testing::main(&registry, &target).run(XML, "<a><i>1</i></a>");
    assert_eq!(end.outcome().as_deref(), Ok("<a><i>1</i></a>"));
    assert_eq!(end.property("t").as_ref(), Some(&one));
    let adaptive = format!("<xslt key='s'/>{}", sheet("adaptive", "map {'a': (1, 'x')}"));
    let text = "<text xmlns=\"http://ws.apache.org/commons/ns/payload\">map{\"a\":(1,\"x\")}</text>";
    assert_eq!(testing::main(&registry, &adaptive).run(XML, "<a/>").outcome().as_deref(), Ok(text));
    for (select, says) in [("(1, 2)", "SERE0023"), ("map {'a': true#0}", "SERE0021")] {
        let text = format!("<xslt key='s'/>{}", sheet("json", select));
        let end = testing::main(&registry, &text).run(XML, "<a/>");
        let why = end.property("ERROR_DETAIL").unwrap_or_default();
        assert!(end.fault().is_some_and(|fault| fault.starts_with("0: Unable")), "{select}");
        assert!(why.contains(says), "{why}");
    }
}

#[test]
fn soap_headers_stay_and_an_envelope_replaces_everything() {
    let body = "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Header><h/></s:Header><s:Body><a/></s:Body></s:Envelope>";
    let whole = "<x:template match='/'><e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'><e:Body><n/></e:Body></e:Envelope></x:template>";
    for (mediator, inside, has_header) in [
        ("<xslt key='s'/><respond/>", "<x:template match='/'><n/></x:template>", true),
        ("<xslt key='s' source='/*'/><respond/>", whole, false),
    ] {
        let tested =
            testing::main(&crate::registry(testing::endpoints), &format!("{mediator}{}", sheet(inside)));
        let response = tested.ask("POST", "/", SOAP, body).body;
        assert!(response.contains("<n") && !response.contains("<a"), "{response}");
        assert_eq!(response.contains("<h"), has_header, "{response}");
    }
    // A plain message that becomes an envelope.
    let tested =
        testing::main(&crate::registry(testing::endpoints), &format!("<xslt key='s'/>{}", sheet(whole)));
    assert!(tested.run(XML, "<a/>").payload().starts_with("<n"));
}

/// What is not a single element, an envelope or a page of HTML is made once all the same.
#[test]
fn results_are_made_once() {
    let says = "<x:message>made</x:message>";
    let soap =
        "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body><a/></s:Body></s:Envelope>";
    for (inside, wanted) in [
        ("<n/>", Some("<n/>")),
        ("<n/><m/>", Some("<n/>")),
        ("text<n>1</n>text", Some("<n>1</n>")),
        ("<html><br/></html>", Some("<html><br/></html>")),
        ("<n xmlns='urn:n'><n/></n>", Some("<n xmlns=\"urn:n\"><n/></n>")),
        ("<x:comment>c</x:comment><n/>", Some("<n/>")),
        ("<x:text disable-output-escaping='yes'>&lt;n/&gt;&lt;m/&gt;</x:text>", Some("<n/>")),
        ("<x:text disable-output-escaping='yes'>&lt;n&gt;</x:text>", None),
        ("text", None),
        ("", None),
    ] {
        let entry = sheet(&format!(
            "<x:output omit-xml-declaration='yes'/><x:template match='/'>{says}{inside}</x:template>"
        ));
        for (headers, body) in [(XML, "<a/>"), (SOAP, soap)] {
            let tested =
                testing::main(&crate::registry(testing::endpoints), &format!("<xslt key='s'/>{entry}"));
            assert!(tested.found.is_empty(), "{:?}", tested.found);
            let (lines, mut end) = testing::logged("busbar_mediators", || tested.run(headers, body));
            let made = lines.iter().filter(|line| line.contains("xsl:message: made")).count();
            assert_eq!(made, 1, "{inside} {body}: {lines:?}");
            let payload = end.outcome().ok();
            let around = " xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"";
            let payload = payload.map(|payload| testing::without_envelope(&payload).replace(around, ""));
            assert_eq!(payload.as_deref(), wanted, "{inside} {body}");
        }
    }
}

#[test]
fn modules_are_resources_or_entries() {
    let text = format!(
        "<xslt key='s'><resource location='lib/m.xsl' key='module'/></xslt>{}\
        <localEntry key='module'><x:stylesheet xmlns='' version='1.0' xmlns:x='http://www.w3.org/1999/XSL/Transform'>\
        <x:template match='/'><m/></x:template></x:stylesheet></localEntry>",
        sheet("<x:include href='lib/m.xsl'/>")
    );
    let tested = testing::main(&crate::registry(testing::endpoints), &text);
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    assert!(tested.run(XML, "<a/>").payload().ends_with("<m/>"));
}

#[test]
fn what_cannot_be_transformed_faults() {
    let stop = "<x:template match='/'><x:message terminate='yes'>no</x:message></x:template>";
    let two = "<x:template match='/'><a/><b/></x:template>";
    for (mediator, inside, body, says) in [
        ("<xslt key='s'/>", stop, "<a/>", "Unable to perform XSLT transformation using : s"),
        ("<xslt key='s' source='//@b'/>", two, "<a b='1'/>", "selects no element"),
        ("<xslt key='s' source='//z'/>", two, "<a/>", "selects no element"),
        ("<xslt key='s'/>", "<x:template match='/'>text</x:template>", "<a/>", "no element"),
        ("<xslt key='{$ctx:none}'/>", two, "<a/>", "no entry"),
    ] {
        let fault = run(mediator, inside, XML, body);
        assert!(
            fault.as_ref().is_err_and(|fault| fault.starts_with("0: ") && fault.contains(says)),
            "{mediator}: {fault:?}"
        );
    }
    let fault = run("<xslt key='s'/>", two, XML, "<a");
    assert!(
        fault.as_ref().is_err_and(|fault| fault.starts_with("601000: the payload is not well-formed")),
        "{fault:?}"
    );
}

#[test]
fn the_version_can_be_chosen() {
    let inside = "<x:output omit-xml-declaration='yes'/><x:template match='/'><r><x:value-of select=\"system-property('x:version')\"/></r></x:template>";
    let chosen = |version: &str| {
        format!("<xslt key='s'><attribute name='http://busbar.dev/xslt/processor' value='{version}'/></xslt>")
    };
    for (mediator, out) in [("<xslt key='s'/>", "1"), (&*chosen("1.0"), "1"), (&*chosen("2.0"), "2.0")] {
        assert_eq!(run(mediator, inside, XML, "<a/>"), Ok(format!("<r>{out}</r>")), "{mediator}");
    }
}

#[test]
fn expressions_are_evaluated_where_that_is_allowed() {
    let sheet = "<!--top--><localEntry key='s'><x:stylesheet xmlns='' version='3.0' xmlns:x='http://www.w3.org/1999/XSL/Transform'>\
        <x:output omit-xml-declaration='yes'/><x:template match='/'><r><x:evaluate xpath='/*/@x' context-item='/'/></r></x:template></x:stylesheet></localEntry>";
    let registry = crate::registry(testing::endpoints);
    let body = "<a x='count(//b)'><b/><b/></a>";
    let allowed = "<xslt key='s'><attribute name='http://busbar.dev/xslt/evaluate' value='true'/></xslt>";
    let tested = testing::main(&registry, &format!("{allowed}{sheet}"));
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    assert_eq!(tested.run(XML, body).outcome().as_deref(), Ok("<r>2</r>"));
    let tested = testing::main(&registry, &format!("<xslt key='s'/>{sheet}"));
    assert!(tested.reports("has xsl:evaluate, which is not allowed"), "{:?}", tested.found);
    let detail = tested.run(XML, body).property("ERROR_DETAIL").unwrap_or_default();
    assert!(detail.contains("XTDE3175"), "{detail}");
}

#[test]
fn mistakes_are_found_when_the_configuration_loads() {
    for (mediator, inside, says) in [
        (
            "<xslt key='s'><attribute name='http://busbar.dev/xslt/processor' value='3.0'/></xslt>",
            "",
            "not a version of XSLT",
        ),
        (
            "<xslt key='s'><attribute name='http://busbar.dev/xslt/evaluate' value='1'/></xslt>",
            "",
            "neither true nor false",
        ),
        ("<xslt key='s'/>", "<x:nonsense/>", "cannot be compiled"),
        ("<xslt key='s'/>", "<x:include href='gone'/>", "cannot be compiled"),
        ("<xslt key='gone'/>", "", "no stylesheet `gone`"),
        ("<xslt/>", "", "needs the attribute `key`"),
        ("<xslt key='s'><property name='p'/></xslt>", "", "needs a value"),
        ("<xslt key='s'><feature name='urn:f' value='true'/></xslt>", "", "no meaning here"),
    ] {
        let tested =
            testing::main(&crate::registry(testing::endpoints), &format!("{mediator}{}", sheet(inside)));
        assert!(tested.reports(says), "{mediator}: {:?}", tested.found);
    }
}

#[test]
fn one_element_is_seen_from_outside() {
    for (out, one) in [
        ("<a/>", true),
        ("<?xml version=\"1.0\"?>\n<a b='>'><b/></a>\n", true),
        ("<p:a><p:b/></p:a>", true),
        ("<a/><a/>", false),
        ("<a></a><a></a>", false),
        ("<a><a></a></a>", false),
        ("<s:Envelope></s:Envelope>", false),
        ("text", false),
        ("<a/>text", false),
        ("<!--c--><a/>", false),
        ("", false),
        ("<", false),
    ] {
        assert_eq!(is_one_element(out.as_bytes()), one, "{out}");
    }
}
