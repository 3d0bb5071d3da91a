//! The operations of the CSV module.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use support::{JSON, XML, main};

const TEXT: (&str, &str) = ("Content-Type", "text/plain");
const CSV: &str = "id,name,n\n1,\"a, b\",3\n2,,x\n";

#[test]
fn csv_becomes_json() {
    for (inside, body, wanted) in [
        ("", "1,a\n2,b\n", r#"[{"key-1":"1","key-2":"a"},{"key-1":"2","key-2":"b"}]"#),
        (
            "<headerPresent>Present</headerPresent><skipHeader>true</skipHeader>",
            CSV,
            r#"[{"id":"1","name":"a, b","n":"3"},{"id":"2","name":null,"n":"x"}]"#,
        ),
        ("<headerPresent>Present</headerPresent>", "id\n1\n", r#"[{"id":"id"},{"id":"1"}]"#),
        (
            "<headerPresent>Present</headerPresent><skipHeader>true</skipHeader><csvEmptyValues>Empty</csvEmptyValues><columnsToSkip>1</columnsToSkip>\
             <dataTypes>string,integer</dataTypes><dataRowsToSkip>0</dataRowsToSkip><rootJsonKey>rows</rootJsonKey>",
            CSV,
            r#"{"rows":[{"name":"a, b","n":3},{"name":"","n":"x"}]}"#,
        ),
        (
            "<valueSeparator>;</valueSeparator><jsonKeys>a,b</jsonKeys><dataTypes>number,boolean</dataTypes><dataRowsToSkip>1</dataRowsToSkip>",
            "0;0\n1.5;TRUE\n",
            r#"[{"a":1.5,"b":true}]"#,
        ),
        (
            "<dataTypes>number,number,boolean,boolean,boolean,number</dataTypes>",
            "1,12345678901234567890,yes,False,1,+2\n",
            r#"[{"key-1":1,"key-2":12345678901234567890,"key-3":"yes","key-4":false,"key-5":"1","key-6":2.0}]"#,
        ),
        ("<columnsToSkip>2:*</columnsToSkip>", "1\n1,2,3\n", r#"[{"key-1":"1"},{"key-1":"1"}]"#),
        (
            "<headerPresent>Present</headerPresent><skipHeader>true</skipHeader><columnsToSkip>\"a,b:c\"</columnsToSkip>",
            "id,\"a,b:c\"\n1,2\n",
            r#"[{"id":"1"}]"#,
        ),
        (
            "<headerPresent>Present</headerPresent><skipHeader>true</skipHeader>",
            "id,,,id\n1,2,3,4\n",
            r#"[{"id":"1","key-2":"2","key-3":"3","key-4":"4"}]"#,
        ),
        (
            "<headerPresent>Present</headerPresent><skipHeader>true</skipHeader>\
             <dataTypes>[{\"Column Name Or Index\":\"n\",\"Is Column Name\":\"Yes\",\"Data Type\":\"Number\"},{\"Column Name Or Index\":\"1\",\"Is Column Name\":\"No\",\"Data Type\":\"Integer\"}]</dataTypes>",
            CSV,
            r#"[{"id":1,"name":"a, b","n":3},{"id":2,"name":null,"n":"x"}]"#,
        ),
        ("<valueSeparator>tab</valueSeparator>", "1\t2\n", r#"[{"key-1":"1","key-2":"2"}]"#),
        ("", "", "[]"),
    ] {
        let tested = main(&format!("<CSV.csvToJson>{inside}</CSV.csvToJson>"));
        assert!(tested.found.is_empty(), "{inside}: {:?}", tested.found);
        let mut end = tested.run(&[TEXT], body);
        assert_eq!((end.fault(), end.payload().as_str()), (None, wanted), "{inside}");
    }
}

#[test]
fn csv_becomes_xml_and_csv() {
    for (operation, inside, wanted) in [
        (
            "csvToXml",
            "<headerPresent>Present</headerPresent><skipHeader>true</skipHeader><columnsToSkip>\"n\"</columnsToSkip>",
            "<root><group><id>1</id><name>a, b</name></group><group><id>2</id><name></name></group></root>",
        ),
        (
            "csvToXml",
            "<dataRowsToSkip>2</dataRowsToSkip><rootElementTag>r</rootElementTag><rootElementNamespaceURI>u</rootElementNamespaceURI>\
             <groupElementTag>g</groupElementTag><groupElementNamespace>p</groupElementNamespace><groupElementNamespaceURI>v</groupElementNamespaceURI><tagNames>a,b</tagNames>",
            "<r xmlns=\"u\"><p:g xmlns:p=\"v\"><a>2</a><b></b><key-3>x</key-3></p:g></r>",
        ),
        (
            "csvToCsv",
            "<headerPresent>Present</headerPresent><columnsToSkip>2</columnsToSkip>",
            "id,n\n1,3\n2,x\n",
        ),
        (
            "csvToCsv",
            "<headerPresent>Present</headerPresent><orderByColumn>1</orderByColumn><columnOrdering>Descending</columnOrdering><customHeader>a,b,c</customHeader><customValueSeparator>;</customValueSeparator>",
            "a;b;c\n2;;x\n1;a, b;3\n",
        ),
        (
            "csvToCsv",
            "<headerPresent>Present</headerPresent><orderByColumn>\"name\"</orderByColumn>",
            "id,name,n\n2,,x\n1,\"a, b\",3\n",
        ),
        (
            "csvToCsv",
            "<headerPresent>Present</headerPresent><skipHeader>true</skipHeader>",
            "1,\"a, b\",3\n2,,x\n",
        ),
    ] {
        let tested = main(&format!("<CSV.{operation}>{inside}</CSV.{operation}>"));
        assert!(tested.found.is_empty(), "{inside}: {:?}", tested.found);
        let mut end = tested.run(&[TEXT], CSV);
        assert_eq!(end.fault(), None, "{inside}: {:?}", end.property("ERROR_DETAIL"));
        let text =
            if operation == "csvToXml" { end.outcome().unwrap() } else { end.write(message::Format::Text) };
        assert_eq!(text.replace("<name/>", "<name></name>").replace("<b/>", "<b></b>"), wanted, "{inside}");
    }
}

#[test]
fn json_and_xml_become_csv() {
    for (operation, inside, header, body, wanted) in [
        (
            "jsonToCsv",
            "",
            JSON,
            r#"[{"a":1,"b":"x,y"},{"a":null,"b":"\"q\""}]"#,
            "a,b\n1,\"x,y\"\n,\"\"\"q\"\"\"\n",
        ),
        (
            "jsonToCsv",
            "<customHeader>A,B</customHeader><customValueSeparator>;</customValueSeparator>",
            JSON,
            r#"[{"a":1,"b":2}]"#,
            "A;B\n1;2\n",
        ),
        ("xmlToCsv", "", XML, "<r><g><a>1</a><b>x</b></g><g><a>2</a><b/></g></r>", "a,b\n1,x\n2,\n"),
        // By name, wherever it stands; a name that comes later is one more column.
        (
            "jsonToCsv",
            "",
            JSON,
            r#"[{"a":1,"b":2},{"b":3,"a":4},{"a":5},{"c":6,"a":7}]"#,
            "a,b,c\n1,2\n4,3\n5,\n7,,6\n",
        ),
        (
            "xmlToCsv",
            "",
            XML,
            "<r><g><a>1</a><b>2</b></g><g><b>3</b><a>4</a><a>5</a></g></r>",
            "a,b,a\n1,2\n4,3,5\n",
        ),
        ("xmlToCsv", "<customHeader>A</customHeader>", XML, "<r><g><a>1</a></g></r>", "A\n1\n"),
        // Rows without a cell.
        ("jsonToCsv", "", JSON, "[{}]", ""),
        ("jsonToCsv", "<customHeader>A</customHeader>", JSON, "[{},{}]", "A\n"),
        ("xmlToCsv", "", XML, "<r>\n <g/> </r>", ""),
        ("xmlToCsv", "", XML, "<r><g><a>1</a></g> <g>\n</g></r>", "a\n1\n\"\"\n"),
    ] {
        let tested = main(&format!("<CSV.{operation}>{inside}</CSV.{operation}>"));
        let mut end = tested.run(&[header], body);
        assert_eq!(end.fault(), None, "{inside}: {:?}", end.property("ERROR_DETAIL"));
        assert_eq!(end.write(message::Format::Text), wanted, "{operation} {inside}");
        assert_eq!(end.context.headers.get("Content-Type"), Some("text/csv"));
    }
}

#[test]
fn results_go_where_they_are_asked_for() {
    let convert =
        |inside: &str| main(&format!("<csv.csvToJson>{inside}</csv.csvToJson>")).run(&[TEXT], "1\n");
    let mut end = convert("<responseVariable>v</responseVariable>");
    assert_eq!(end.write(message::Format::Text), "1\n");
    assert!(end.context.variables.get("v").unwrap().to_string().contains(r#""payload":[{"key-1":"1"}]"#));
    let mut end = convert("<responseVariable>v</responseVariable><overwriteBody>true</overwriteBody>");
    assert_eq!(end.payload(), r#"[{"key-1":"1"}]"#);
    assert!(!end.context.variables.get("v").unwrap().to_string().contains("payload"));
}

#[test]
fn what_is_none_faults() {
    for (operation, inside, header, body, wanted) in [
        (
            "csvToJson",
            "<headerPresent>Present</headerPresent>",
            TEXT,
            "",
            "CSV.csvToJson: the body has no header",
        ),
        ("csvToJson", "<valueSeparator>abc</valueSeparator>", TEXT, "1", "valueSeparator is not a character"),
        ("csvToJson", "<columnsToSkip>x</columnsToSkip>", TEXT, "1", "columnsToSkip names no columns"),
        ("csvToJson", "<dataRowsToSkip>-1</dataRowsToSkip>", TEXT, "1", "dataRowsToSkip is not a number"),
        ("csvToXml", "<tagNames>a b</tagNames>", TEXT, "1", "the result is not XML"),
        ("csvToXml", "<headerPresent>Present</headerPresent>", TEXT, "a/><b\n1\n", "the result is not XML"),
        ("csvToXml", "<headerPresent>Present</headerPresent>", TEXT, "a x='1'\n1\n", "the result is not XML"),
        ("csvToCsv", "<orderByColumn>0</orderByColumn>", TEXT, "1", "orderByColumn is a column from 1"),
        (
            "csvToCsv",
            "<orderByColumn>\"name\"</orderByColumn>",
            TEXT,
            "1",
            "orderByColumn is a column from 1, or a name",
        ),
        ("csvToJson", "<dataTypes>[{}]</dataTypes>", TEXT, "1", "dataTypes are none"),
        ("jsonToCsv", "", JSON, r#"{"a":1}"#, "the body is not a list of JSON objects"),
        ("csvToJson", "", JSON, r#"{"a":1}"#, "the body is JSON, and no CSV"),
        ("jsonToCsv", "", JSON, "[1]", "the body is not a list of JSON objects"),
        ("xmlToCsv", "", XML, "<r><a>1</a></r>", "the row `a` has text that is in no cell"),
        ("xmlToCsv", "", XML, "<r><g>x<a>1</a></g></r>", "the row `g` has text that is in no cell"),
        ("xmlToCsv", "", XML, "<r>x<g><a>1</a></g></r>", "`r` has text beside its rows"),
        ("xmlToCsv", "", JSON, r#"{"a":1}"#, "the row `a` has text that is in no cell"),
    ] {
        let end = main(&format!("<CSV.{operation}>{inside}</CSV.{operation}>")).run(&[header], body);
        let fault = end.fault().unwrap_or_default();
        assert!(fault.contains(wanted), "{operation} {inside}: {fault}");
    }
}

#[test]
fn a_large_body_is_converted() {
    let body: String = (0..15_000).map(|n| format!("{n},name {n},\"a \"\"quoted\"\" text\"\n")).collect();
    let mut end = main("<CSV.csvToJson/><CSV.jsonToCsv/>").run(&[TEXT], &body);
    assert_eq!(end.fault(), None);
    assert_eq!(end.write(message::Format::Text).lines().count(), 15_001);
}

#[test]
fn a_quote_that_does_not_close_faults() {
    let header = "<headerPresent>Present</headerPresent>";
    for (operation, inside, body, line) in [
        ("csvToJson", header, "a,b\n\"unclosed,2\nx,y\n", Some(2)),
        ("csvToXml", "", "1,\"a\n2,\"\"b\"\"\n\n", Some(1)),
        ("csvToCsv", "<orderByColumn>1</orderByColumn>", "1\n\n2,3\r\n4,\"", Some(4)),
        ("csvToJson", "", "\u{feff}\"a,b", Some(1)),
        ("csvToJson", header, "\"a,b", Some(1)),
        ("csvToJson", "<valueSeparator>;</valueSeparator>", "a,\"b;\"c\nd;\"\"", Some(1)),
        ("csvToJson", "", "a,\"b\n\nc\",\"d\ne", Some(3)),
        // These close.
        ("csvToJson", "", "a,\"b\nc\"", None),
        ("csvToJson", "", "a,b\"c\n", None),
        ("csvToJson", "", "a,\"b\"c\"\n", None),
        ("csvToJson", "", "\u{feff}\"a\"\"\"", None),
        ("csvToJson", "", "\"\"", None),
        ("csvToJson", "", "", None),
    ] {
        let end = main(&format!("<CSV.{operation}>{inside}</CSV.{operation}>")).run(&[TEXT], body);
        let detail = end.property("ERROR_DETAIL").unwrap_or_default();
        let wanted = line.map(|line| format!("the quote at line {line} does not close")).unwrap_or_default();
        assert_eq!(detail, wanted, "{body:?}");
        assert_eq!(end.fault().is_some(), line.is_some(), "{body:?}: {:?}", end.fault());
    }
}
