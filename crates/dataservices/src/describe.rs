//! The descriptions of a data service: WSDL, OpenAPI.

use crate::output::escape;
use crate::plan::{Call, Group, Part, Query, Segment, Service, Shape, Source, With};
use sql::Kind;
use std::fmt::Write;

fn quoted(text: &str) -> String {
    let mut out = String::new();
    escape(text, &mut out);
    out
}

/// The XML Schema type of a parameter.
fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "string",
        Kind::Decimal => "decimal",
        Kind::Boolean => "boolean",
        Kind::TinyInt => "byte",
        Kind::SmallInt => "short",
        Kind::Integer => "int",
        Kind::BigInt => "long",
        Kind::Real => "float",
        Kind::Double => "double",
        Kind::Date => "date",
        Kind::Time => "time",
        Kind::Timestamp => "dateTime",
        Kind::Bytes => "base64Binary",
    }
}

/// The parameters of a request: name, type, whether it is optional, whether it may be repeated.
fn parameters(call: &Call, query: &Query) -> Vec<(String, &'static str, bool, bool)> {
    let mut all: Vec<(String, &'static str, bool, bool)> = Vec::new();
    for With { name, source, written: outer } in &call.parameters {
        if !matches!(source, Source::Parameter(_) | Source::Column(_)) {
            continue;
        }
        let Some(parameter) = query.parameters.iter().find(|p| p.name == *name) else { continue };
        if all.iter().any(|(listed_name, ..)| listed_name.eq_ignore_ascii_case(outer)) {
            continue;
        }
        let kind = match parameter.kind {
            crate::plan::ParameterKind::Bound(kind) => type_of(kind),
            crate::plan::ParameterKind::Written => "string",
        };
        all.push((
            outer.clone(),
            kind,
            parameter.optional || parameter.default.is_some(),
            parameter.is_array,
        ));
    }
    all
}

/// The content of a row.
fn content(group: &Group, service: &Service, out: &mut String) {
    out.push_str("<xs:sequence>");
    for part in &group.parts {
        match part {
            Part::Field(field) => {
                let least = if field.optional { " minOccurs=\"0\"" } else { "" };
                let _ = write!(
                    out,
                    "<xs:element name=\"{}\" type=\"xs:{}\" nillable=\"true\"{least}/>",
                    quoted(&field.name),
                    quoted(&field.xsd_name)
                );
            }
            Part::Group(inner) => {
                let _ = write!(out, "<xs:element name=\"{}\"><xs:complexType>", quoted(&inner.name));
                content(inner, service, out);
                out.push_str("</xs:complexType></xs:element>");
            }
            Part::Call(call) => {
                if let Some(shape) = &service.queries[call.query].result {
                    element(shape, service, out);
                }
            }
        }
    }
    out.push_str("</xs:sequence>");
    for field in &group.attributes {
        let _ = write!(
            out,
            "<xs:attribute name=\"{}\" type=\"xs:{}\"/>",
            quoted(&field.name),
            quoted(&field.xsd_name)
        );
    }
}

fn element(shape: &Shape, service: &Service, out: &mut String) {
    let row = |out: &mut String| {
        let _ = write!(
            out,
            "<xs:element name=\"{}\" minOccurs=\"0\" maxOccurs=\"unbounded\"><xs:complexType>",
            quoted(&shape.row)
        );
        content(&shape.group, service, out);
        out.push_str("</xs:complexType></xs:element>");
    };
    match (shape.element.is_empty(), shape.row.is_empty()) {
        (true, true) => {}
        (true, false) => row(out),
        (false, is_plain) => {
            let _ = write!(out, "<xs:element name=\"{}\"><xs:complexType>", quoted(&shape.element));
            if is_plain {
                content(&shape.group, service, out);
            } else {
                out.push_str("<xs:sequence>");
                row(out);
                out.push_str("</xs:sequence>");
            }
            out.push_str("</xs:complexType></xs:element>");
        }
    }
}

/// The WSDL 1.1. Its operations take the elements of their names and answer with the elements of their results.
pub(crate) fn wsdl(service: &Service) -> String {
    let namespace = quoted(&service.namespace);
    let name = quoted(&service.name);
    let (mut schema, mut messages, mut port, mut bindings) =
        (String::new(), String::new(), String::new(), [const { String::new() }; 2]);
    let mut answers: Vec<&str> = Vec::new();
    for operation in service.operations.iter().filter(|o| o.resource.is_none()) {
        let operation_name = quoted(&operation.names[0]);
        let query = &service.queries[operation.call.query];
        let _ = write!(schema, "<xs:element name=\"{operation_name}\"><xs:complexType><xs:sequence>");
        for (name, kind, optional, many) in parameters(&operation.call, query) {
            let least = if optional { " minOccurs=\"0\"" } else { "" };
            let most = if many { " maxOccurs=\"unbounded\"" } else { "" };
            let _ = write!(
                schema,
                "<xs:element name=\"{}\" type=\"xs:{kind}\" nillable=\"true\"{least}{most}/>",
                quoted(&name)
            );
        }
        schema.push_str("</xs:sequence></xs:complexType></xs:element>");
        let result_part = match &query.result {
            Some(shape) if !shape.element.is_empty() => {
                if *shape.namespace == *service.namespace && !answers.contains(&shape.element.as_str()) {
                    answers.push(&shape.element);
                    element(shape, service, &mut schema);
                }
                let elsewhere = *shape.namespace != *service.namespace;
                Some(match elsewhere {
                    true => format!(
                        "<part xmlns:own=\"{}\" name=\"parameters\" element=\"own:{}\"/>",
                        quoted(&shape.namespace),
                        quoted(&shape.element)
                    ),
                    false => format!("<part name=\"parameters\" element=\"ns:{}\"/>", quoted(&shape.element)),
                })
            }
            Some(_) => Some("<part name=\"parameters\" type=\"xs:anyType\"/>".to_owned()),
            None if operation.status => Some(format!(
                "<part xmlns:own=\"{}\" name=\"parameters\" element=\"own:REQUEST_STATUS\"/>",
                config::DATA_SERVICE_NAMESPACE
            )),
            None => None,
        };
        let _ = write!(
            messages,
            "<message name=\"{operation_name}Request\"><part name=\"parameters\" element=\"ns:{operation_name}\"/></message>"
        );
        let documentation = operation
            .description
            .as_deref()
            .map(|text| format!("<documentation>{}</documentation>", quoted(text)));
        let _ = write!(
            port,
            "<operation name=\"{operation_name}\">{}<input message=\"ns:{operation_name}Request\"/>",
            documentation.unwrap_or_default()
        );
        if let Some(part) = &result_part {
            let _ = write!(messages, "<message name=\"{operation_name}Response\">{part}</message>");
            let _ = write!(port, "<output message=\"ns:{operation_name}Response\"/>");
        }
        port.push_str("</operation>");
        for (binding, prefix) in bindings.iter_mut().zip(["soap", "soap12"]) {
            let body = format!("<{prefix}:body use=\"literal\"/>");
            let output =
                if result_part.is_some() { format!("<output>{body}</output>") } else { String::new() };
            let _ = write!(
                binding,
                "<operation name=\"{operation_name}\"><{prefix}:operation soapAction=\"urn:{operation_name}\" style=\"document\"/><input>{body}</input>{output}</operation>"
            );
        }
    }
    let [soap, soap12] = bindings;
    let about =
        service.description.as_deref().map(|text| format!("<documentation>{}</documentation>", quoted(text)));
    format!(
        "<definitions xmlns=\"http://schemas.xmlsoap.org/wsdl/\" xmlns:ns=\"{namespace}\" xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" \
         xmlns:soap=\"http://schemas.xmlsoap.org/wsdl/soap/\" xmlns:soap12=\"http://schemas.xmlsoap.org/wsdl/soap12/\" \
         targetNamespace=\"{namespace}\">{}<types><xs:schema targetNamespace=\"{namespace}\" elementFormDefault=\"qualified\">{schema}</xs:schema></types>\
         {messages}<portType name=\"{name}PortType\">{port}</portType>\
         <binding name=\"{name}Soap11Binding\" type=\"ns:{name}PortType\"><soap:binding transport=\"http://schemas.xmlsoap.org/soap/http\" style=\"document\"/>{soap}</binding>\
         <binding name=\"{name}Soap12Binding\" type=\"ns:{name}PortType\"><soap12:binding transport=\"http://schemas.xmlsoap.org/soap/http\" style=\"document\"/>{soap12}</binding>\
         <service name=\"{name}\"><port name=\"SOAP11Endpoint\" binding=\"ns:{name}Soap11Binding\"><soap:address location=\"\"/></port>\
         <port name=\"SOAP12Endpoint\" binding=\"ns:{name}Soap12Binding\"><soap12:address location=\"\"/></port></service></definitions>",
        about.unwrap_or_default()
    )
}

/// The OpenAPI 3.0 of its resources.
pub(crate) fn openapi(service: &Service, address: &str) -> serde_json::Value {
    use serde_json::{Map, Value, json};
    let schema = |kind: &str| match kind {
        "int" | "long" | "short" | "byte" => json!({ "type": "integer" }),
        "float" | "double" | "decimal" => json!({ "type": "number" }),
        "boolean" => json!({ "type": "boolean" }),
        "date" => json!({ "type": "string", "format": "date" }),
        "dateTime" => json!({ "type": "string", "format": "date-time" }),
        "base64Binary" => json!({ "type": "string", "format": "byte" }),
        _ => json!({ "type": "string" }),
    };
    let mut paths = Map::new();
    for operation in &service.operations {
        let Some((method, segments)) = &operation.resource else { continue };
        let query = &service.queries[operation.call.query];
        let (mut path, mut variables) = (String::new(), Vec::new());
        for segment in segments {
            path.push('/');
            match segment {
                Segment::Literal(text) => path.push_str(text),
                Segment::Variable(name) => {
                    variables.push(name.to_ascii_lowercase());
                    let _ = write!(path, "{{{name}}}");
                }
            }
        }
        let has_body = matches!(method.as_str(), "POST" | "PUT" | "PATCH");
        let (mut listed, mut members, mut required) = (Vec::new(), Map::new(), Vec::new());
        for (name, kind, optional, many) in parameters(&operation.call, query) {
            let value_schema =
                if many { json!({ "type": "array", "items": schema(kind) }) } else { schema(kind) };
            if variables.contains(&name.to_ascii_lowercase()) {
                let written = segments.iter().find_map(|segment| match segment {
                    Segment::Variable(variable) if variable.eq_ignore_ascii_case(&name) => {
                        Some(variable.as_str())
                    }
                    _ => None,
                });
                listed
                    .push(json!({ "name": written, "in": "path", "required": true, "schema": value_schema }));
            } else if has_body {
                if !optional {
                    required.push(Value::from(name.as_str()));
                }
                members.insert(name, value_schema);
            } else {
                listed.push(
                    json!({ "name": name, "in": "query", "required": !optional, "schema": value_schema }),
                );
            }
        }
        let (status, text) = match query.result.is_some() || operation.status {
            true => ("200", "the rows"),
            false => ("202", "done"),
        };
        let mut description = json!({
            "parameters": listed,
            "responses": { status: { "description": text }, "default": { "description": "a DataServiceFault" } },
        });
        if let Some(text) = &operation.description {
            description["summary"] = text.as_str().into();
        }
        if has_body {
            let mut body = json!({ "type": "object", "properties": members });
            if !required.is_empty() {
                body["required"] = required.into();
            }
            description["requestBody"] = json!({ "content": { "application/json": { "schema": body } } });
        }
        let entry = paths.entry(path).or_insert_with(|| json!({}));
        entry[method.to_ascii_lowercase()] = description;
    }
    json!({
        "openapi": "3.0.3",
        "info": { "title": service.name, "description": service.description.as_deref().unwrap_or_default(), "version": "1.0" },
        "servers": [{ "url": address }],
        "paths": paths,
    })
}
