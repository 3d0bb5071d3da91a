//! What a proxy service publishes of itself.

use super::Compiler;
use crate::wsdl::bindings::regenerate;
use crate::wsdl::contract::Contract;
use crate::wsdl::{Wsdl, ports, references, without_policies};
use config::{PublishWsdl, WsdlSource};
use diagnostics::{Diagnostic, Span};
use xml::Document;

/// Most documents that one WSDL imports, directly and through others.
const MOST_IMPORTS: usize = 1000;

/// Whether a parameter of the service is `true`.
fn is_set(proxy: &config::Proxy, name: &str) -> bool {
    proxy.parameter(name).is_some_and(|text| text.trim().eq_ignore_ascii_case("true"))
}

pub(super) fn compile(proxy: &config::Proxy, compiler: &mut Compiler<'_>) -> Wsdl {
    let Some(published) = &proxy.publish_wsdl else { return Wsdl::default() };
    let safe = is_set(proxy, "enablePublishWSDLSafeMode");
    let (bytes, span) = match &published.source {
        WsdlSource::Inline(element) => (Some(element.to_xml_in_scope().into_bytes()), published.span),
        WsdlSource::Key(key) => (compiler.entry(&key.value).map(|entry| entry.bytes.to_vec()), key.span),
        // The bus may start before its backends: the service starts without their WSDL.
        WsdlSource::Uri(uri) if uri.value.starts_with("http:") || uri.value.starts_with("https:") => {
            let fetched = compiler.configuration.fetch.as_ref().map(|fetch| (fetch.once)(uri.value.trim()));
            let (message, why) = match fetched {
                Some(Ok(bytes)) => return of(proxy, published, bytes, uri.span, compiler),
                Some(Err(why)) => ("the WSDL of this proxy cannot be fetched", why),
                None => {
                    let message = "the WSDL of this proxy is fetched when the bus starts, and not now";
                    compiler.warning("not-fetched", message, uri.span, "");
                    return Wsdl::default();
                }
            };
            let effect = if safe { "the service is inactive" } else { "a generated one is published" };
            compiler.warning("unreadable-wsdl", message, uri.span, format!("{effect}: {why}"));
            return Wsdl { inactive: safe, ..Wsdl::default() };
        }
        WsdlSource::Uri(uri) => {
            let path = uri.value.strip_prefix("file:").unwrap_or(&uri.value).trim_start_matches("//");
            (config::read_file(&compiler.configuration.root.join(path)).ok(), uri.span)
        }
        WsdlSource::Endpoint(key) => {
            compiler.warning(
                "wsdl-of-endpoint",
                "the WSDL of an endpoint is not fetched",
                key.span,
                "the configuration is read without the network; use key, uri or an inline WSDL",
            );
            return Wsdl::default();
        }
    };
    let Some(bytes) = bytes else {
        if matches!(&published.source, WsdlSource::Key(key) if compiler.is_not_fetched(&key.value)) {
            return Wsdl::default();
        }
        let message = "the WSDL of this proxy cannot be read";
        if safe {
            let label = "nothing is there; enablePublishWSDLSafeMode: the service is inactive";
            compiler.warning("unreadable-wsdl", message, span, label);
            return Wsdl { inactive: true, ..Wsdl::default() };
        }
        // Samples and projects name files and resources that come with a server of WSO2 and not with the project.
        let what = if matches!(published.source, WsdlSource::Uri(_)) { "file" } else { "resource" };
        let label = format!("there is no such {what}: a generated one is published");
        compiler.warning("unreadable-wsdl", message, span, label);
        return Wsdl::default();
    };
    of(proxy, published, bytes, span, compiler)
}

/// What a document at `span` says.
fn of(
    proxy: &config::Proxy,
    published: &PublishWsdl,
    bytes: Vec<u8>,
    span: Span,
    compiler: &mut Compiler<'_>,
) -> Wsdl {
    let mut imports = imports(published, &bytes, compiler);
    match Document::parse(bytes, &xml::ParseOptions::trusted()) {
        Ok(mut document) => {
            if !published.preserve_policy {
                without_policies(&mut document);
                imports.iter_mut().for_each(|(_, bytes)| strip(bytes));
            }
            let contract = Contract::of(&document);
            let ports = ports(&document);
            let bindings = match &contract {
                Some(contract) if !is_set(proxy, "useOriginalwsdl") => {
                    regenerate(&mut document, contract, &proxy.name.value)
                }
                _ => Vec::new(),
            };
            let keeps_addresses = proxy
                .parameter("modifyUserWSDLPortAddress")
                .is_some_and(|text| text.trim().eq_ignore_ascii_case("false"));
            Wsdl {
                document: Some(document),
                bindings,
                imports,
                contract,
                lax: is_set(proxy, "disableOperationValidation"),
                keeps_addresses,
                absolute: is_set(proxy, "showAbsoluteSchemaURL") || is_set(proxy, "showProxySchemaURL"),
                ports,
                inactive: false,
            }
        }
        Err(error) => {
            compiler.error("bad-wsdl", "the WSDL of this proxy is not well-formed", span, error.to_string());
            Wsdl::default()
        }
    }
}

/// As [`without_policies`], for a document that is published as it is.
fn strip(bytes: &mut Vec<u8>) {
    if let Ok(mut document) = Document::parse(bytes.clone(), &xml::ParseOptions::trusted())
        && let Some(root) = document.document_element()
    {
        without_policies(&mut document);
        bytes.clear();
        xml::write(&document, root, &xml::WriteOptions::default(), bytes);
    }
}

/// The documents that a WSDL imports, by location: those of `resource`, and those that lie beside it in the registry
/// or, for a file, in its directory.
fn imports(published: &PublishWsdl, wsdl: &[u8], compiler: &mut Compiler<'_>) -> Vec<(String, Vec<u8>)> {
    let given = |location: &str, compiler: &Compiler<'_>| {
        let (_, key) = published.resources.iter().find(|(document, _)| document.value == location)?;
        Some(compiler.entry(&key.value)?.bytes.to_vec())
    };
    let beside = |location: &str, compiler: &Compiler<'_>| {
        if location.contains("://") || location.starts_with('/') {
            return None;
        }
        let next_to = |path: &str| match path.rsplit_once('/') {
            Some((directory, _)) => format!("{directory}/{location}"),
            None => location.to_owned(),
        };
        match &published.source {
            WsdlSource::Key(key) => Some(compiler.entry(&next_to(&key.value))?.bytes.to_vec()),
            WsdlSource::Uri(uri) => {
                let path = uri.value.strip_prefix("file:").unwrap_or(&uri.value).trim_start_matches("//");
                let root = compiler.configuration.root.canonicalize().ok()?;
                let path = root.join(next_to(path)).canonicalize().ok()?;
                // Never a file outside of the configuration.
                path.starts_with(&root).then(|| config::read_file(&path).ok()).flatten()
            }
            _ => None,
        }
    };
    let mut found: Vec<(String, Vec<u8>)> = Vec::new();
    let mut missing: Vec<String> = Vec::new();
    let mut waiting = vec![wsdl.to_vec()];
    while let Some(bytes) = waiting.pop() {
        let Ok(document) = Document::parse(bytes, &xml::ParseOptions::trusted()) else { continue };
        for (_, _, location) in references(&document) {
            if found.len() >= MOST_IMPORTS || found.iter().any(|(imported, _)| *imported == location) {
                continue;
            }
            if let Some(bytes) = given(&location, compiler).or_else(|| beside(&location, compiler)) {
                waiting.push(bytes.clone());
                found.push((location, bytes));
            } else if !location.contains("://") && !location.trim().is_empty() && !missing.contains(&location)
            {
                missing.push(location);
            }
        }
    }
    for (location, key) in &published.resources {
        if found.len() < MOST_IMPORTS
            && !found.iter().any(|(imported, _)| *imported == location.value)
            && let Some(entry) = compiler.entry(&key.value)
        {
            found.push((location.value.clone(), entry.bytes.to_vec()));
        }
    }
    for location in missing {
        // A document that is fetched when the bus starts is not there yet.
        let resource = published.resources.iter().find(|(document, _)| document.value == location);
        if resource.is_some_and(|(_, key)| compiler.is_not_fetched(&key.value)) {
            continue;
        }
        let message = format!("the WSDL of this proxy refers to `{location}`, which is not there");
        let label = "clients get 404 for it";
        compiler.diagnostics.push(
            Diagnostic::warning("unreadable-wsdl", message)
                .at(published.span, label)
                .help(format!("add <resource location=\"{location}\" key=\"…\"/> to `publishWSDL`")),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::testing;

    #[test]
    fn a_proxy_is_there_without_the_wsdl_that_it_names() {
        for (source, says) in [
            ("key='gov:w.wsdl'", "there is no such resource"),
            ("uri='file:none/w.wsdl'", "there is no such file"),
        ] {
            let text = format!(
                "<definitions xmlns='{}'><proxy name='P'><target><inSequence/></target><publishWSDL {source}/></proxy></definitions>",
                config::SYNAPSE
            );
            let tested = testing::configuration(&testing::registry(Vec::new()), &text);
            assert!(tested.reports("unreadable-wsdl"), "{source}: {:?}", tested.found);
            let is_reported = tested
                .reasons
                .iter()
                .any(|reason| reason.starts_with(says) && reason.ends_with("a generated one is published"));
            assert!(is_reported, "{source}: {:?}", tested.reasons);
        }
    }
}
