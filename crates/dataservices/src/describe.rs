//! The descriptions of a data service: WSDL, OpenAPI.

use crate::output::{Type, escape};
use crate::plan::{Call, Field, Group, Part, Query, Segment, Service, Shape, Source, With};
use crate::request::{BATCH, BOX};
use crate::run::BOX_ANSWER;
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

/// The type of a field: a text, where XML Schema does not have its type.
fn type_of_field(field: &Field) -> &str {
    let is_type = Type::names().any(|name| name == field.xsd_name);
    if is_type { &field.xsd_name } else { "string" }
}

/// What is in another namespace than the schema, or in none that can be described.
const ANYTHING: &str = "<xs:any minOccurs=\"0\" maxOccurs=\"unbounded\" processContents=\"skip\"/>";

/// An element of any content.
fn anything(name: &str) -> String {
    format!(
        "<xs:element name=\"{}\"><xs:complexType mixed=\"true\"><xs:sequence>{ANYTHING}</xs:sequence><xs:anyAttribute processContents=\"skip\"/></xs:complexType></xs:element>",
        quoted(name)
    )
}

/// The content of a row, in the schema of a namespace.
fn content(group: &Group, service: &Service, namespace: &str, out: &mut String) {
    // Elements of other namespaces would have to be global in schemas of their own.
    let is_elsewhere = |part: &Part| match part {
        Part::Field(field) => *field.namespace != *namespace,
        Part::Group(inner) => *inner.namespace != *namespace,
        Part::Call(call) => {
            service.queries[call.query].result.as_ref().is_some_and(|shape| *shape.namespace != *namespace)
        }
    };
    out.push_str("<xs:sequence>");
    if group.parts.iter().any(is_elsewhere) {
        out.push_str(ANYTHING);
    } else {
        for part in &group.parts {
            part_of(part, service, namespace, out);
        }
    }
    out.push_str("</xs:sequence>");
    for field in &group.attributes {
        let _ = write!(
            out,
            "<xs:attribute name=\"{}\" type=\"xs:{}\"/>",
            quoted(&field.name),
            type_of_field(field)
        );
    }
}

fn part_of(part: &Part, service: &Service, namespace: &str, out: &mut String) {
    // Those who have none of its roles get a row without it.
    let least = |may_be_absent: bool| if may_be_absent { " minOccurs=\"0\"" } else { "" };
    match part {
        Part::Field(field) => {
            let _ = write!(
                out,
                "<xs:element name=\"{}\" type=\"xs:{}\" nillable=\"true\"{}/>",
                quoted(&field.name),
                type_of_field(field),
                least(field.optional || !field.roles.is_empty())
            );
        }
        Part::Group(inner) => {
            let _ = write!(
                out,
                "<xs:element name=\"{}\"{}><xs:complexType>",
                quoted(&inner.name),
                least(!inner.roles.is_empty())
            );
            content(inner, service, namespace, out);
            out.push_str("</xs:complexType></xs:element>");
        }
        Part::Call(call) => {
            if let Some(shape) = &service.queries[call.query].result {
                element(shape, service, least(!call.roles.is_empty()), out);
            }
        }
    }
}

/// The element of a result; `least`: how often it is there at least, if it may be absent.
fn element(shape: &Shape, service: &Service, least: &str, out: &mut String) {
    let row = |out: &mut String| {
        let _ = write!(
            out,
            "<xs:element name=\"{}\" minOccurs=\"0\" maxOccurs=\"unbounded\"><xs:complexType>",
            quoted(&shape.row)
        );
        content(&shape.group, service, &shape.namespace, out);
        out.push_str("</xs:complexType></xs:element>");
    };
    match (shape.element.is_empty(), shape.row.is_empty()) {
        (true, true) => {}
        (true, false) => row(out),
        (false, is_plain) => {
            let _ = write!(out, "<xs:element name=\"{}\"{least}><xs:complexType>", quoted(&shape.element));
            if is_plain {
                content(&shape.group, service, &shape.namespace, out);
            } else {
                out.push_str("<xs:sequence>");
                row(out);
                out.push_str("</xs:sequence>");
            }
            out.push_str("</xs:complexType></xs:element>");
        }
    }
}

/// The elements of messages, in the schemas of their namespaces.
struct Schemas(Vec<(String, Vec<(String, String)>)>);

impl Schemas {
    /// Declares an element. A schema has one of each name: what is declared in two ways (a request that is called like a result, results of two queries) may have any content.
    fn declare(&mut self, namespace: &str, name: &str, declaration: String) {
        let at = self.0.iter().position(|(own, _)| own == namespace).unwrap_or_else(|| {
            self.0.push((namespace.to_owned(), Vec::new()));
            self.0.len() - 1
        });
        let elements = &mut self.0[at].1;
        match elements.iter_mut().find(|(own, _)| own == name) {
            None => elements.push((name.to_owned(), declaration)),
            Some((_, first)) if *first != declaration => *first = anything(name),
            Some(_) => {}
        }
    }

    fn written(&self) -> String {
        let mut out = String::new();
        for (namespace, elements) in &self.0 {
            let _ = write!(
                out,
                "<xs:schema targetNamespace=\"{}\" elementFormDefault=\"qualified\">",
                quoted(namespace)
            );
            elements.iter().for_each(|(_, declaration)| out.push_str(declaration));
            out.push_str("</xs:schema>");
        }
        out
    }
}

/// The operations of a description: messages, and what port type and bindings say of them.
#[derive(Default)]
struct Operations {
    messages: String,
    port: String,
    bindings: [String; 2],
}

impl Operations {
    /// `answer`: the part of the message that answers, if there is one.
    fn add(&mut self, name: &str, description: Option<&str>, answer: Option<&str>) {
        let name = quoted(name);
        let _ = write!(
            self.messages,
            "<message name=\"{name}Request\"><part name=\"parameters\" element=\"ns:{name}\"/></message>"
        );
        let about = description.map(|text| format!("<documentation>{}</documentation>", quoted(text)));
        let _ = write!(
            self.port,
            "<operation name=\"{name}\">{}<input message=\"ns:{name}Request\"/>",
            about.unwrap_or_default()
        );
        if let Some(part) = answer {
            let _ = write!(self.messages, "<message name=\"{name}Response\">{part}</message>");
            let _ = write!(self.port, "<output message=\"ns:{name}Response\"/>");
        }
        self.port.push_str("</operation>");
        for (binding, prefix) in self.bindings.iter_mut().zip(["soap", "soap12"]) {
            let body = format!("<{prefix}:body use=\"literal\"/>");
            let output = if answer.is_some() { format!("<output>{body}</output>") } else { String::new() };
            let _ = write!(
                binding,
                "<operation name=\"{name}\"><{prefix}:operation soapAction=\"urn:{name}\" style=\"document\"/><input>{body}</input>{output}</operation>"
            );
        }
    }
}

/// The part of a message that is an element.
fn part(namespace: &str, name: &str) -> String {
    let (namespace, name) = (quoted(namespace), quoted(name));
    format!("<part xmlns:own=\"{namespace}\" name=\"parameters\" element=\"own:{name}\"/>")
}

/// The WSDL 1.1. Its operations take the elements of their names and answer with the elements of their results.
pub(crate) fn wsdl(service: &Service) -> String {
    const STATUS: &str = "REQUEST_STATUS";
    let namespace = quoted(&service.namespace);
    let name = quoted(&service.name);
    let mut schemas = Schemas(vec![(service.namespace.to_string(), Vec::new())]);
    let mut operations = Operations::default();
    let status = |schemas: &mut Schemas| {
        let declaration = format!("<xs:element name=\"{STATUS}\" type=\"xs:string\"/>");
        schemas.declare(config::DATA_SERVICE_NAMESPACE, STATUS, declaration);
        part(config::DATA_SERVICE_NAMESPACE, STATUS)
    };
    let of_requests = |name: &str, content: &str| {
        format!(
            "<xs:element name=\"{}\"><xs:complexType><xs:sequence>{content}</xs:sequence></xs:complexType></xs:element>",
            quoted(name)
        )
    };
    for operation in service.operations.iter().filter(|o| o.resource.is_none()) {
        let operation_name = &operation.names[0];
        let query = &service.queries[operation.call.query];
        let mut given = String::new();
        for (name, kind, optional, many) in parameters(&operation.call, query) {
            let least = if optional { " minOccurs=\"0\"" } else { "" };
            let most = if many { " maxOccurs=\"unbounded\"" } else { "" };
            let _ = write!(
                given,
                "<xs:element name=\"{}\" type=\"xs:{kind}\" nillable=\"true\"{least}{most}/>",
                quoted(&name)
            );
        }
        schemas.declare(&service.namespace, operation_name, of_requests(operation_name, &given));
        let answer = match &query.result {
            Some(shape) if !shape.element.is_empty() && query.stylesheet.is_none() => {
                let mut declaration = String::new();
                element(shape, service, "", &mut declaration);
                schemas.declare(&shape.namespace, &shape.element, declaration);
                Some(part(&shape.namespace, &shape.element))
            }
            Some(_) => Some("<part name=\"parameters\" type=\"xs:anyType\"/>".to_owned()),
            None => operation.status.then(|| status(&mut schemas)),
        };
        operations.add(operation_name, operation.description.as_deref(), answer.as_deref());
        if service.batch {
            let batch = format!("{operation_name}{BATCH}");
            let many = format!("<xs:element ref=\"ns:{}\" maxOccurs=\"unbounded\"/>", quoted(operation_name));
            schemas.declare(&service.namespace, &batch, of_requests(&batch, &many));
            let answer = operation.status.then(|| status(&mut schemas));
            operations.add(&batch, None, answer.as_deref());
        }
    }
    if service.boxcarring {
        schemas.declare(&service.namespace, BOX, anything(BOX));
        schemas.declare(config::DATA_SERVICE_NAMESPACE, BOX_ANSWER, anything(BOX_ANSWER));
        operations.add(BOX, None, Some(&part(config::DATA_SERVICE_NAMESPACE, BOX_ANSWER)));
    }
    let Operations { messages, port, bindings: [soap, soap12] } = operations;
    let schemas = schemas.written();
    let about =
        service.description.as_deref().map(|text| format!("<documentation>{}</documentation>", quoted(text)));
    format!(
        "<definitions xmlns=\"http://schemas.xmlsoap.org/wsdl/\" xmlns:ns=\"{namespace}\" xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" \
         xmlns:soap=\"http://schemas.xmlsoap.org/wsdl/soap/\" xmlns:soap12=\"http://schemas.xmlsoap.org/wsdl/soap12/\" \
         targetNamespace=\"{namespace}\">{}<types>{schemas}</types>\
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
        // Each variable of a path is described, also one that goes nowhere.
        for segment in segments {
            if let Segment::Variable(name) = segment
                && !listed.iter().any(|parameter| parameter["name"] == **name && parameter["in"] == "path")
            {
                listed.push(
                    json!({ "name": name, "in": "path", "required": true, "schema": schema("string") }),
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
