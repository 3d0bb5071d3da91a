//! What a client or a flow gets of odd values, and where a query has no result.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use support::{ask, get, get_json, json, memory, operation, query, tested};

#[test]
fn texts_in_attributes_are_read_as_they_were_stored() {
    let inside = [
        query(
            "odd",
            "select 'a' || char(10) || 'b' || char(9) || 'c' || char(13) || '<&\">' as text",
            "<result element='rows' rowName='row'><attribute name='text' column='text' xsdType='string'/><element name='text' column='text' xsdType='string'/></result>",
        ),
        operation("odd", &[]),
    ]
    .concat();
    let tested = tested("", &memory("attributes"), &inside, "");
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    let text = "a\nb\tc\r<&\">";
    let answer = get(&tested, "odd");
    let document = xml::Document::parse(answer.body.into_bytes(), &xml::ParseOptions::default()).unwrap();
    let root = document.document_element().unwrap();
    let row = document.children(root).next().unwrap();
    let attribute = document.attributes(row).next().unwrap();
    assert_eq!(
        (document.string_value(attribute).as_ref(), document.string_value(row).as_ref()),
        (text, text)
    );
    let answer: Value = serde_json::from_str(&get_json(&tested, "odd").body).unwrap();
    assert_eq!(
        (&answer["rows"]["row"][0]["@text"], &answer["rows"]["row"][0]["text"]),
        (&text.into(), &text.into())
    );
}

/// As in XML, where an empty list is no element.
#[test]
fn an_empty_list_gives_nothing() {
    let one = |name: &str, more: &str| {
        let param = format!("<param name='id' sqlType='INTEGER' {more}/>");
        let result = "<result element='R'><element name='id' column='id'/></result>";
        query(name, "select :id as id", &format!("{param}{result}")) + &operation(name, &["id"])
    };
    let inside =
        one("needed", "") + &one("default", "defaultValue='5'") + &one("optional", "optional='true'");
    let tested = tested("", &memory("empty-list"), &inside, "");
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    for (name, list, status, says) in [
        ("needed", "[]", 500, "cannot find parameter"),
        ("needed", "[1,2]", 400, "came more often"),
        ("needed", "[7]", 200, "7"),
        ("default", "[]", 200, "5"),
        ("optional", "[]", 200, "null"),
    ] {
        let answer = json(&tested, "POST", name, &format!(r#"{{"{name}":{{"id":{list}}}}}"#));
        assert!(answer.status == status && answer.body.contains(says), "{name} {list}: {answer:?}");
    }
}

/// As in WSO2: there is no answer that the body could be, and the request is no answer either.
#[test]
fn a_call_without_a_result_leaves_an_empty_body() {
    let inside =
        [query("make", "create table if not exists t (a integer)", ""), operation("make", &[])].concat();
    let call = |target: &str| {
        format!(
            "<dataServiceCall serviceName='Shop'><source type='inline'/><operations type='single'><operation name='make'/></operations>{target}</dataServiceCall>"
        )
    };
    let proxy = |name: &str, target: &str| {
        format!(
            "<proxy name='{name}' transports='http'><target><inSequence>{}<log level='custom'/><respond/></inSequence></target></proxy>",
            call(target)
        )
    };
    let more =
        proxy("Body", "<target type='body'/>") + &proxy("Property", "<target type='property' name='p'/>");
    let tested = tested("", &memory("no-result"), &inside, &more);
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    for (content_type, body) in [
        ("application/xml", "<request>1</request>"),
        ("application/json", r#"{"request":1}"#),
        (
            "text/xml",
            "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body><request>1</request></s:Body></s:Envelope>",
        ),
    ] {
        let headers = [("Content-Type", content_type)];
        let emptied = ask(&tested, "POST", "/services/Body", &headers, body);
        assert!(emptied.status < 300 && !emptied.body.contains("request"), "{content_type}: {emptied:?}");
        let kept = ask(&tested, "POST", "/services/Property", &headers, body);
        assert!(kept.status < 300 && kept.body.contains("request"), "{content_type}: {kept:?}");
    }
}
