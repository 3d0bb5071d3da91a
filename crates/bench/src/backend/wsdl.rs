//! The `?wsdl` of the services: document/literal over SOAP 1.1, with the address at which it was asked for.

use super::{BackendRequest, BackendResponse, Service, quotes, soap};
use crate::messages::{APPEND, ORDERS, QUOTES};
use std::fmt::Write;

/// Whether the request asks for the description of the service.
pub fn is_asked_for(request: &BackendRequest<'_>) -> bool {
    let name = request.query().split(['&', '=']).next().unwrap_or_default();
    request.method == "GET" && name.eq_ignore_ascii_case("wsdl")
}

/// The description of a service.
pub fn answer(service: Service, request: &BackendRequest<'_>) -> BackendResponse {
    let (namespace, operations, schema): (_, &[(&str, bool)], _) = match service {
        Service::StockQuote => (QUOTES, &quotes::OPERATIONS, quote_schema()),
        Service::Append => (APPEND, &[("append", true)], APPEND_SCHEMA.to_owned()),
        Service::Orders | Service::Echo => (ORDERS, &[("buyStocks", true)], ORDER_SCHEMA.to_owned()),
    };
    let host = request.header("host").unwrap_or("localhost:9000");
    let address = format!("http://{host}{}", request.path_only());
    let name = request.path_only().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let text = describe(name, namespace, operations, &schema, &address);
    BackendResponse::new(200, "text/xml; charset=UTF-8", text)
}

fn describe(name: &str, namespace: &str, operations: &[(&str, bool)], schema: &str, address: &str) -> String {
    let (name, address) = (soap::escape(name).replace('"', ""), soap::escape(address).replace('"', "&quot;"));
    let mut messages = String::new();
    let mut port_type = String::new();
    let mut binding = String::new();
    for (operation, answers) in operations {
        // the order service answers with the message itself
        let output =
            if *operation == "buyStocks" { operation.to_string() } else { format!("{operation}Response") };
        let _ = write!(
            messages,
            "<wsdl:message name=\"{operation}Request\"><wsdl:part name=\"request\" element=\"m:{operation}\"/></wsdl:message>"
        );
        let _ = write!(
            port_type,
            "<wsdl:operation name=\"{operation}\"><wsdl:input message=\"m:{operation}Request\"/>"
        );
        let _ = write!(
            binding,
            "<wsdl:operation name=\"{operation}\"><soap:operation soapAction=\"urn:{operation}\" style=\"document\"/><wsdl:input><soap:body use=\"literal\"/></wsdl:input>"
        );
        if *answers {
            let _ = write!(
                messages,
                "<wsdl:message name=\"{operation}Answer\"><wsdl:part name=\"answer\" element=\"m:{output}\"/></wsdl:message>"
            );
            let _ = write!(port_type, "<wsdl:output message=\"m:{operation}Answer\"/>");
            binding.push_str("<wsdl:output><soap:body use=\"literal\"/></wsdl:output>");
        }
        port_type.push_str("</wsdl:operation>");
        binding.push_str("</wsdl:operation>");
    }
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<wsdl:definitions xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/" xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:m="{namespace}" targetNamespace="{namespace}"><wsdl:types>{schema}</wsdl:types>{messages}<wsdl:portType name="{name}PortType">{port_type}</wsdl:portType><wsdl:binding name="{name}Soap11" type="m:{name}PortType"><soap:binding style="document" transport="http://schemas.xmlsoap.org/soap/http"/>{binding}</wsdl:binding><wsdl:service name="{name}"><wsdl:port name="{name}Port" binding="m:{name}Soap11"><soap:address location="{address}"/></wsdl:port></wsdl:service></wsdl:definitions>
"#
    )
}

/// A quote's fields live in a namespace of their own, so there are two schemas.
fn quote_schema() -> String {
    let mut fields = String::new();
    for (name, value) in quotes::quote("IBM") {
        let kind = match name {
            "volume" => "int",
            _ if value.parse::<f64>().is_ok() => "double",
            _ => "string",
        };
        let _ = write!(fields, "<xs:element name=\"{name}\" type=\"xs:{kind}\"/>");
    }
    let mut elements = String::new();
    for (operation, answers) in quotes::OPERATIONS {
        let request = match operation {
            "getMarketActivity" => {
                "<xs:element name=\"symbols\" type=\"xs:string\" maxOccurs=\"unbounded\"/>"
            }
            "placeOrder" => {
                "<xs:element name=\"price\" type=\"xs:double\"/><xs:element name=\"quantity\" type=\"xs:int\"/><xs:element name=\"symbol\" type=\"xs:string\"/>"
            }
            _ => "<xs:element name=\"symbol\" type=\"xs:string\"/>",
        };
        let element = if operation == "placeOrder" { "order" } else { "request" };
        let _ = write!(
            elements,
            "<xs:element name=\"{operation}\"><xs:complexType><xs:sequence><xs:element name=\"{element}\"><xs:complexType><xs:sequence>{request}</xs:sequence></xs:complexType></xs:element></xs:sequence></xs:complexType></xs:element>"
        );
        if answers {
            let kind = match operation {
                "getFullQuote" => "TradeHistory",
                "getMarketActivity" => "Activity",
                _ => "Quote",
            };
            let _ = write!(
                elements,
                "<xs:element name=\"{operation}Response\"><xs:complexType><xs:sequence><xs:element name=\"return\" type=\"x:{kind}\"/></xs:sequence></xs:complexType></xs:element>"
            );
        }
    }
    format!(
        "<xs:schema xmlns:x=\"{ORDERS}\" targetNamespace=\"{ORDERS}\" elementFormDefault=\"qualified\"><xs:complexType name=\"Quote\"><xs:sequence>{fields}</xs:sequence></xs:complexType><xs:complexType name=\"TradeHistory\"><xs:sequence><xs:element name=\"tradeHistory\" maxOccurs=\"unbounded\"><xs:complexType><xs:sequence><xs:element name=\"day\" type=\"xs:int\"/><xs:element name=\"quote\" type=\"x:Quote\"/></xs:sequence></xs:complexType></xs:element></xs:sequence></xs:complexType><xs:complexType name=\"Activity\"><xs:sequence><xs:element name=\"quotes\" type=\"x:Quote\" maxOccurs=\"unbounded\"/></xs:sequence></xs:complexType></xs:schema><xs:schema xmlns:x=\"{ORDERS}\" targetNamespace=\"{QUOTES}\" elementFormDefault=\"qualified\"><xs:import namespace=\"{ORDERS}\"/>{elements}</xs:schema>"
    )
}

const ORDER_SCHEMA: &str = r#"<xs:schema targetNamespace="http://services.samples/xsd" elementFormDefault="unqualified"><xs:element name="buyStocks"><xs:complexType><xs:sequence><xs:element name="order" maxOccurs="unbounded"><xs:complexType><xs:sequence><xs:element name="symbol" type="xs:string"/><xs:element name="buyerID" type="xs:string"/><xs:element name="price" type="xs:double"/><xs:element name="volume" type="xs:int"/></xs:sequence></xs:complexType></xs:element></xs:sequence></xs:complexType></xs:element></xs:schema>"#;

const APPEND_SCHEMA: &str = r#"<xs:schema targetNamespace="urn:busbar:append" elementFormDefault="unqualified"><xs:element name="append"><xs:complexType><xs:sequence><xs:element name="payload" type="xs:string"/></xs:sequence></xs:complexType></xs:element><xs:element name="appendResponse"><xs:complexType><xs:sequence><xs:element name="return" type="xs:string"/></xs:sequence></xs:complexType></xs:element></xs:schema>"#;

#[cfg(test)]
mod tests {
    use crate::backend::{BackendRequest, answer};
    use xml::{Document, ParseOptions};

    #[test]
    fn every_service_describes_itself_where_it_was_asked() {
        for (name, operation) in [
            ("SimpleStockQuoteService", "getMarketActivity"),
            ("OrderService", "buyStocks"),
            ("AppendService", "append"),
        ] {
            for query in ["wsdl", "WSDL=1&a=b"] {
                let path = format!("/services/{name}?{query}");
                let headers = [("Host", "quotes.example:81")];
                let response =
                    answer(&BackendRequest { method: "GET", path: &path, headers: &headers, body: b"" });
                let text = String::from_utf8(response.bytes(b"").to_vec()).unwrap();
                assert_eq!(response.status, 200);
                assert!(
                    text.contains(&format!("location=\"http://quotes.example:81/services/{name}\"")),
                    "{text}"
                );
                assert!(text.contains(&format!("<wsdl:operation name=\"{operation}\">")), "{text}");
                assert!(Document::parse(text.into_bytes(), &ParseOptions::default()).is_ok());
            }
        }
    }
}
