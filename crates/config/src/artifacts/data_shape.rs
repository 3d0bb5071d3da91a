//! What the elements of a data service may have: attributes, elements, words, properties. What is something else is named.

use super::Reading;
use super::data_source::value;
use crate::element::Element;
use crate::read::{self, Shape};
use crate::value::Key;
use diagnostics::{Diagnostic, Severity};

pub(crate) const SHAPE: Shape = Shape {
    attributes: &[
        "name",
        "serviceNamespace",
        "baseURI",
        "serviceGroup",
        "transports",
        "serviceStatus",
        "enableBatchRequests",
        "enableBoxcarring",
        "disableLegacyBoxcarringMode",
        "enableDTP",
        "disableStreaming",
        "txManagerJNDIName",
        "publishSwagger",
        "description",
        "xsdPath",
        "contractFirst",
    ],
    elements: &[
        "description",
        "config",
        "query",
        "operation",
        "resource",
        "event-trigger",
        "xa-datasource",
        "policy",
        "enableSec",
        "parameter",
        "authorization_provider",
        "passwordManager",
    ],
};
pub(super) const TRIGGER: Shape =
    Shape { attributes: &["id", "language"], elements: &["expression", "target-topic", "subscriptions"] };
pub(super) const QUERY: Shape = Shape {
    attributes: &[
        "id",
        "useConfig",
        "returnGeneratedKeys",
        "keyColumns",
        "returnUpdatedRowCount",
        "input-event-trigger",
        "output-event-trigger",
        "inputNamespace",
        "description",
    ],
    elements: &[
        "sql",
        "param",
        "properties",
        "result",
        "excel",
        "gspread",
        "sparql",
        "expression",
        "query",
        "scraperVariable",
        "description",
    ],
};
pub(super) const PARAM: Shape = Shape {
    attributes: &[
        "name",
        "sqlType",
        "type",
        "paramType",
        "ordinal",
        "defaultValue",
        "optional",
        "structType",
        "forceDefault",
    ],
    elements: &[
        "validateLength",
        "validateLongRange",
        "validateDoubleRange",
        "validatePattern",
        "validateCustom",
    ],
};
pub(super) const RESULT: Shape = Shape {
    attributes: &[
        "element",
        "rowName",
        "defaultNamespace",
        "outputType",
        "rdfBaseURI",
        "xsltPath",
        "useColumnNumbers",
        "escapeNonPrintableChar",
    ],
    elements: &["element", "attribute", "call-query", "call-query-group"],
};
pub(super) const FIELD: Shape = Shape {
    attributes: &[
        "name",
        "column",
        "query-param",
        "value",
        "xsdType",
        "optional",
        "export",
        "exportType",
        "namespace",
        "requiredRoles",
        "arrayName",
        "rdf-ref-uri",
    ],
    elements: &["element", "attribute", "call-query", "call-query-group"],
};
pub(super) const CALL: Shape = Shape { attributes: &["href", "requiredRoles"], elements: &["with-param"] };
pub(super) const CONFIG: Shape = Shape { attributes: &["id", "enableOData"], elements: &["property"] };
pub(super) const WITH: Shape =
    Shape { attributes: &["name", "column", "query-param", "value"], elements: &[] };
/// The attributes whose value is one of a few words. Another one has no effect, as in WSO2.
const WORDS: [(&[&str], &[&str]); 4] = [
    (
        &[
            "enableBatchRequests",
            "enableBoxcarring",
            "disableLegacyBoxcarringMode",
            "enableDTP",
            "disableStreaming",
            "enableOData",
            "returnGeneratedKeys",
            "returnUpdatedRowCount",
            "returnRequestStatus",
            "useColumnNumbers",
            "escapeNonPrintableChar",
            "optional",
            "forceDefault",
        ],
        &["true", "false"],
    ),
    (&["outputType"], &["xml", "json", "rdf"]),
    (&["paramType", "exportType"], &["SCALAR", "ARRAY"]),
    (&["serviceStatus"], &["active", "inactive"]),
];
/// The properties of a query, and whether each is a number.
const PROPERTIES: [(&str, bool); 8] = [
    ("query_timeout", true),
    ("fetch_size", true),
    ("fetch_direction", false),
    ("max_rows", true),
    ("max_field_size", true),
    ("autocommit", false),
    ("force_stored_proc", false),
    ("force_jdbc_batch_requests", false),
];
pub(super) const OPERATION: Shape = Shape {
    attributes: &["name", "path", "method", "returnRequestStatus", "disableStreaming", "description"],
    elements: &["call-query", "call-query-group", "description"],
};

/// WSO2 reads these files without a schema and ignores what it does not know, so this is a warning.
pub(super) fn check(shape: &Shape, element: &Element, reading: &mut Reading<'_>) {
    let warn = |mut found: Diagnostic| {
        found.severity = Severity::Warning;
        found
    };
    for attribute in element.attributes() {
        if !attribute.name.prefix.is_empty() {
            continue;
        }
        let (name, value) = (&*attribute.name.local, attribute.value.trim());
        if !shape.attributes.contains(&name) {
            reading.diagnostics.push(warn(read::unknown_attribute(element, attribute, shape.attributes)));
        } else if let Some((_, words)) = WORDS.iter().find(|(names, _)| names.contains(&name))
            && !value.is_empty()
            && !words.iter().any(|word| word.eq_ignore_ascii_case(value))
        {
            let span = element.value_span(name);
            let found = read::bad_setting(name, value, span, words.join(" or "));
            let nearest = words.iter().copied();
            reading.diagnostics.push(warn(found.did_you_mean(value, nearest)));
        }
    }
    for child in element.elements().filter(|child| !shape.elements.contains(&child.local())) {
        reading.diagnostics.push(warn(read::unknown_element(element, child, shape.elements)));
    }
}

/// A property of a query.
pub(super) fn property(element: &Element, reading: &mut Reading<'_>) -> (String, Key) {
    const PREFIX: &str = "org.wso2.ws.dataservice.";
    let name = element.attr("name").unwrap_or_default().trim().to_owned();
    let value = value(element, reading);
    let end = name.strip_prefix(PREFIX).unwrap_or(&name);
    let span = element.value_span("name");
    match PROPERTIES.iter().find(|(listed, _)| *listed == end) {
        None => {
            let message = format!("there is no property `{name}` of a query");
            let found = Diagnostic::warning("unknown-option", message).at(span, "it has no effect");
            reading.diagnostics.push(found.did_you_mean(end, PROPERTIES.iter().map(|(listed, _)| *listed)));
        }
        Some((_, true)) if !value.value.trim().is_empty() && value.value.trim().parse::<i64>().is_err() => {
            let error = read::bad_setting(&name, value.value.trim(), value.span, "a whole number");
            reading.diagnostics.push(error);
        }
        Some(_) => {}
    }
    (name, value)
}
