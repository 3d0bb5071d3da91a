//! `<wsdl uri="…" service="…" port="…">`: the address of a port of a WSDL 1.1, read when the configuration loads.

use crate::address::Fixed;
use crate::leaf;
use config::endpoint::WsdlEndpoint;
use flow::endpoint::Endpoint;
use flow::fault::code;
use flow::{Compiler, Fault};
use std::sync::Arc;
use transport::Target;
use xml::{Document, NodeId, NodeKind};

const WSDL: &str = "http://schemas.xmlsoap.org/wsdl/";

/// Namespaces of the element `address` of a port.
const ADDRESSES: [&str; 3] = [
    "http://schemas.xmlsoap.org/wsdl/soap/",
    "http://schemas.xmlsoap.org/wsdl/soap12/",
    "http://schemas.xmlsoap.org/wsdl/http/",
];

pub fn compile(
    endpoint: &config::Endpoint,
    kind: &WsdlEndpoint,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn Endpoint>> {
    let span = kind.uri.as_ref().map_or(endpoint.span, |uri| uri.span);
    let written = kind.uri.as_ref().map_or("", |uri| uri.value.trim());
    let is_elsewhere =
        is_remote(written) && compiler.configuration.fetch.is_none() || compiler.is_not_fetched(written);
    if is_elsewhere && kind.inline.is_none() {
        let message = "the WSDL is fetched when the bus starts, and not now";
        compiler.warning("not-fetched", message, span, "whether it has the port is not known here");
        let address = Err(Fault::with_code(code::WSDL_NOT_READY, message));
        return port(endpoint, kind, address, written, compiler);
    }
    let found = read(kind, compiler).and_then(|bytes| {
        let document = Document::parse(bytes, &xml::ParseOptions::trusted()).map_err(|e| e.to_string())?;
        location(&document, kind.service.value.trim(), kind.port.value.trim())
    });
    let location = match found {
        Ok(location) => location,
        Err(why) => {
            compiler.error("bad-wsdl", "the WSDL gives this endpoint no address", span, why);
            return None;
        }
    };
    let address = leaf::fixed(&location, span, compiler);
    port(endpoint, kind, address, &location, compiler)
}

/// The endpoint of a port at `location`.
fn port(
    endpoint: &config::Endpoint,
    kind: &WsdlEndpoint,
    address: Result<(Target, String), Fault>,
    location: &str,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn Endpoint>> {
    let description = format!("wsdl {location}");
    let format = kind.definition.format;
    let port = Fixed { address, written: location.to_owned(), format, not_ready: code::WSDL_NOT_READY };
    leaf::compile(endpoint, &kind.definition, Box::new(port), &description, None, compiler)
}

fn is_remote(uri: &str) -> bool {
    uri.starts_with("http:") || uri.starts_with("https:")
}

/// The WSDL: inline, a key, an http URL, or a file below the configuration.
fn read(kind: &WsdlEndpoint, compiler: &Compiler<'_>) -> Result<Vec<u8>, String> {
    if let Some(inline) = &kind.inline {
        return Ok(inline.to_xml_in_scope().into_bytes());
    }
    let uri = kind.uri.as_ref().map_or("", |uri| uri.value.trim());
    if let Some(entry) = compiler.entry(uri) {
        return Ok(entry.bytes.to_vec());
    }
    if is_remote(uri) {
        return match &compiler.configuration.fetch {
            Some(fetch) => (fetch.once)(uri),
            None => Err("it is not fetched here".to_owned()),
        };
    }
    let path = uri.strip_prefix("file:").unwrap_or(uri).trim_start_matches("//");
    config::read_file(&compiler.configuration.root.join(path)).map_err(|why| format!("{path}: {why}"))
}

/// Where a port is.
fn location(document: &Document, service: &str, port: &str) -> Result<String, String> {
    let inside = |parent: NodeId, local: &'static str, namespaces: &'static [&'static str]| {
        document.children(parent).filter(move |&node| {
            document.kind(node) == NodeKind::Element
                && document.local(node) == local
                && namespaces.contains(&document.namespace(node))
        })
    };
    let named = |parent: NodeId, local: &'static str, name: &str| {
        inside(parent, local, &[WSDL]).find(|&node| document.attribute(node, "", "name") == Some(name))
    };
    let root = document.document_element().ok_or("it is empty")?;
    if document.namespace(root) != WSDL {
        return Err(format!("it is not a WSDL 1.1: its root is `{}`", document.local(root)));
    }
    let of_service =
        named(root, "service", service).ok_or_else(|| format!("it has no service `{service}`"))?;
    let of_port = named(of_service, "port", port).ok_or_else(|| format!("it has no port `{port}`"))?;
    let address = inside(of_port, "address", &ADDRESSES).next();
    let location = address.and_then(|address| document.attribute(address, "", "location"));
    location.map(str::to_owned).ok_or_else(|| format!("the port `{port}` has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_port() {
        let text = r#"<d:definitions xmlns:d="http://schemas.xmlsoap.org/wsdl/" xmlns:s="http://schemas.xmlsoap.org/wsdl/soap/">
            <d:service name="S"><d:port name="P" binding="b"><s:address location="http://h/s?a=1&amp;b=2"/></d:port><d:port name="Q"/></d:service>
            </d:definitions>"#;
        let document = Document::parse(text.as_bytes().to_vec(), &xml::ParseOptions::trusted()).unwrap();
        for (service, port, expected) in [
            ("S", "P", Ok("http://h/s?a=1&b=2")),
            ("S", "Q", Err("the port `Q` has no address")),
            ("S", "R", Err("it has no port `R`")),
            ("T", "P", Err("it has no service `T`")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(location(&document, service, port), expected, "{service} {port}");
        }
        let other = Document::parse(b"<html/>".to_vec(), &xml::ParseOptions::trusted()).unwrap();
        assert_eq!(location(&other, "S", "P"), Err("it is not a WSDL 1.1: its root is `html`".to_owned()));
    }
}
