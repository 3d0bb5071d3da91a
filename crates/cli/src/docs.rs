//! Tests of the documentation: its snippets work with the code beside it.
//!
//! The first line of a fenced block says what it is:
//!
//! * `xml` is a configuration (or one artifact) without errors, `xml fragment` a piece of a sequence, `xml faulty` a
//!   configuration with errors; a file name behind it is for `tests/console.rs`, as is `console play`;
//! * `toml` is a `busbar.toml`;
//! * `console` has commands behind `$ `; those of `busbar` have known verbs and options.
//!
//! `reference.rs` beside this writes the pages of the mediators.

use crate::Cli;
use crate::settings::Settings;
use clap::Parser;
use config::{LoadOptions, load_text};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A fenced block of a page.
struct Block {
    /// Page and line, for messages.
    place: String,
    /// What stands behind the fence.
    kind: String,
    text: String,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages: in the root, in `docs/` and below, and those beside examples.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for folder in [
        "",
        "docs",
        "docs/mediators",
        "docs/connectors",
        "docs/recipes",
        "docs/rules",
        "examples/round",
        "examples/sql",
    ] {
        let Ok(entries) = std::fs::read_dir(root().join(folder)) else { continue };
        let files = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
        pages.extend(files.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    pages.sort();
    pages
}

fn blocks(wanted: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page can be read");
        let name = page.strip_prefix(root()).unwrap_or(&page).display().to_string();
        let mut open: Option<Block> = None;
        for (number, line) in text.lines().enumerate() {
            match (&mut open, line.trim_start().strip_prefix("```")) {
                (Some(_), Some("")) => blocks.extend(open.take()),
                (Some(block), _) => {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
                (None, Some(kind)) => {
                    let place = format!("{name}:{}", number + 1);
                    open = Some(Block { place, kind: kind.trim().to_owned(), text: String::new() });
                }
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{name}: a block is not closed");
    }
    blocks.retain(|block| block.kind.split(' ').next() == Some(wanted));
    assert!(!blocks.is_empty(), "no blocks of the kind {wanted}");
    blocks
}

/// A configuration compiled, and what was found.
pub(crate) fn compiled(text: &str) -> (flow::Plan, diagnostics::Diagnostics) {
    let loaded = load_text("docs.xml", text, &root(), &LoadOptions::default());
    let mut found = loaded.diagnostics;
    let services = flow::Services::new(transport::Client::new(transport::ClientLimits::default()));
    let registry = crate::load::registry();
    let plan =
        flow::compile(&loaded.configuration, loaded.sources, loaded.faulty, &registry, &services, &mut found);
    (plan, found)
}

/// A piece of a sequence as a configuration.
pub(crate) fn fragment(text: &str) -> String {
    format!("<sequence xmlns=\"http://ws.apache.org/ns/synapse\" name=\"docs\">{text}</sequence>")
}

/// What is wrong with a configuration.
fn errors(text: &str) -> Vec<String> {
    let (_, found) = compiled(text);
    let errors = found.iter().filter(|found| found.severity == diagnostics::Severity::Error);
    errors.map(|error| format!("{}: {}", error.rule, error.message)).collect()
}

#[test]
fn configurations_load() {
    for block in blocks("xml") {
        let text = match block.kind.as_str() {
            "xml fragment" => fragment(&block.text),
            _ => block.text,
        };
        let errors = errors(&text);
        assert_eq!(errors.is_empty(), !block.kind.starts_with("xml faulty"), "{}: {errors:#?}", block.place);
    }
}

#[test]
fn settings_are_read() {
    // Others are files that a page makes: those of a server of WSO2.
    let named_so = |block: &Block| block.kind == "toml" || block.kind.ends_with("busbar.toml");
    for block in blocks("toml").into_iter().filter(named_so) {
        let table: toml::Table =
            block.text.parse().unwrap_or_else(|error| panic!("{}: {error}", block.place));
        if let Err(error) = Settings::deserialize(table) {
            panic!("{}: {error}", block.place);
        }
    }
}

#[test]
fn every_setting_is_described() {
    let page = std::fs::read_to_string(root().join("docs/settings.md")).expect("the page can be read");
    let source = include_str!("settings.rs");
    let fields = source.lines().filter_map(|line| line.trim().strip_prefix("pub "));
    let names = fields.filter_map(|field| field.split_once(": ")).map(|(name, _)| name);
    for name in names.filter(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')) {
        let described = [format!("`{name}`"), format!("[{name}]")];
        assert!(described.iter().any(|text| page.contains(text)), "docs/settings.md says nothing of {name}");
    }
}

/// Each rule that a finding names stands on a page.
#[test]
fn every_rule_is_described() {
    let page =
        |name: &str| std::fs::read_to_string(root().join("docs").join(name)).expect("the page can be read");
    let pages = page("configuration.md") + &page("rules.md");
    let mut names = std::collections::BTreeSet::new();
    let mut folders: Vec<PathBuf> = ["config", "flow", "endpoints", "mediators", "lint", "cli"]
        .map(|name| root().join("crates").join(name).join("src"))
        .into();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let source = std::fs::read_to_string(&path).expect("the source can be read");
            for severity in ["error", "warning", "note"] {
                let call = format!("Diagnostic::{severity}(");
                let calls = source.split(&call).skip(1);
                let named = calls.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split_once('"'));
                names.extend(named.map(|(name, _)| name.to_owned()));
            }
        }
    }
    // Tests of the diagnostics themselves have rules of one letter.
    names.retain(|name| name.len() > 1 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'));
    assert!(names.len() > 40, "only {} rules were found", names.len());
    for name in names {
        assert!(
            pages.contains(&format!("`{name}`")),
            "docs/configuration.md says nothing of the rule {name}"
        );
    }
}

/// Elements that do not run, or have no effect, say so: a rule, or none where nothing of the kind could be missed.
#[test]
fn elements_without_effect_say_so() {
    for (artifact, rule) in [
        ("<eventSource name='E'><subscriptionManager class='a.B'/></eventSource>", "unsupported-artifact"),
        ("<taskManager provider='a.B'/>", ""),
        (
            "<description>of all</description><sequence name='a'><description>of one</description><log/></sequence>",
            "",
        ),
        (
            "<endpoint name='D'><dynamicLoadbalance><membershipHandler class='a.B'/></dynamicLoadbalance></endpoint>",
            "unsupported-endpoint",
        ),
        (
            "<endpoint name='D'><serviceDynamicLoadbalance configuration='a.xml'/></endpoint>",
            "unsupported-endpoint",
        ),
        ("<endpoint name='C'><class name='a.B'/></endpoint>", "unsupported-endpoint"),
        (
            "<endpoint name='H'><http method='get' uri-template='http://h/'><serverPushSequence>s</serverPushSequence></http></endpoint>",
            "unsupported-element",
        ),
        (
            "<endpoint name='S'><address uri='http://h/'><enableSec policy='p'/></address></endpoint>",
            "bad-policy",
        ),
        (
            "<endpoint name='R'><address uri='http://h/'><enableRM/></address></endpoint>",
            "unsupported-element",
        ),
        (
            "<proxy name='P'><target><inSequence><respond/></inSequence></target><enableRM/></proxy>",
            "unsupported-element",
        ),
        (
            "<messageStore name='M' class='org.apache.synapse.message.store.impl.jms.JmsStore'><parameter name='a'>b</parameter></messageStore>",
            "unsupported-artifact",
        ),
        (
            "<inboundEndpoint name='I' protocol='kafka' sequence='main'><parameters><parameter name='a'>b</parameter></parameters></inboundEndpoint>",
            "unsupported-artifact",
        ),
        ("<registry provider='org.wso2.carbon.mediation.registry.WSO2Registry'/>", ""),
    ] {
        let text = format!("<definitions xmlns='http://ws.apache.org/ns/synapse'>{artifact}</definitions>");
        let (_, found) = compiled(&text);
        let found: Vec<_> = found.iter().map(|found| found.rule).collect();
        let wanted: Vec<_> = [rule].into_iter().filter(|rule| !rule.is_empty()).collect();
        assert_eq!(found, wanted, "{artifact}");
    }
}

/// The table of all elements misses none of the language, and the tests that it names are there.
#[test]
fn every_element_is_in_the_table() {
    let page =
        |name: &str| std::fs::read_to_string(root().join("docs").join(name)).expect("the page can be read");
    let table = page("elements.md");
    // The operations of connectors are not part of the schema; `crates/connectors/tests/pages.rs` looks after their pages.
    let registry = mediators::registry(endpoints::endpoint);
    let mut text = table.clone() + &page("mediators.md");
    for definition in &registry.definitions {
        text += &page(&format!("mediators/{}.md", definition.name));
    }
    let schema = crate::verbs::schema::schema(&registry);
    let names: std::collections::BTreeSet<&str> = schema
        .split("<xs:element name=\"")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once('"')?.0))
        .collect();
    assert!(names.len() > 150, "only {} elements were found", names.len());
    let missing: Vec<_> = names
        .iter()
        .filter(|name| !text.contains(&format!("`{name}`")) && !text.contains(&format!("/{name}`")))
        .collect();
    assert!(missing.is_empty(), "docs/elements.md says nothing of {missing:?}");
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let test = row.trim_end_matches(" |").rsplit("| ").next().unwrap_or_default().trim_matches('`');
        let (path, name) = test.split_once("::").unwrap_or((test, ""));
        let path = root().join(path);
        assert!(!test.is_empty() && path.exists(), "there is no test `{test}`: {row}");
        if !name.is_empty() {
            let source = std::fs::read_to_string(&path).expect("a test can be read");
            assert!(source.contains(&format!("fn {name}(")), "{} has no `{name}`", path.display());
        }
    }
}

/// Properties that WSO2's documents name: each is honoured, or the page says why not.
const PROPERTIES: &str = "OUT_ONLY RESPONSE RECEIVING_SEQUENCE PRESERVE_WS_ADDRESSING preserveProcessedHeaders \
    FORCE_ERROR_ON_SOAP_FAULT RETRY_ON_SOAPFAULT STOP_TARGET_EXECUTION_ON_FAILURE SKIP_MAIN_SEQUENCE RESPONSE_WRITTEN \
    ClientApiNonBlocking NonBlockingTransport TRANSPORT_OUT_DESCRIPTION disableAddressingForOutMessages \
    enforceWSAddressing LB_COOKIE_HEADER ENDPOINT_PREFIX SEND_TIMEOUT proxy.name SERVER_IP SERVER_HOST SERVICE_PREFIX \
    TransportInURL TRANSPORT_IN_NAME IN_TRANSPORT REMOTE_ADDR REMOTE_HOST CLIENT_REMOTE_PORT ssl.client.auth.cert \
    BLOCKING_SENDER_PRESERVE_REQ_HEADERS NON_ERROR_HTTP_STATUS_CODES ERROR_HTTP_STATUS_CODES blocking.sender.error \
    transport.http.statusCode FORCE_COLLECT_PAYLOAD HTTP_SC HTTP_SC_DESC ORIGINAL_STATUS_CODE HTTP_REASON_PHRASE \
    FAULTS_AS_HTTP_200 FORCE_SC_ACCEPTED IGNORE_SC_ACCEPTED SC_ACCEPTED HTTP_202_RECEIVED NO_ENTITY_BODY HTTP_METHOD \
    REST_URL_POSTFIX FULL_URI POST_TO_URI REQUEST_HOST_HEADER DISABLE_CHUNKING FORCE_HTTP_1.0 FORCE_HTTP_CONTENT_LENGTH \
    COPY_CONTENT_LENGTH_FROM_INCOMING ORGINAL_CONTEN_LENGTH NO_KEEPALIVE FORCE_POST_PUT_NOBODY EXCESS_TRANSPORT_HEADERS \
    TRANSPORT_HEADERS setCharacterEncoding CHARACTER_SET_ENCODING messageType ContentType NoDefaultContentType enableMTOM \
    enableSwA WRITE_XML_DECLARATION HTTP_ETAG PROXY_PROFILE_TARGET_HOST FORCE_SOAP_FAULT FORCE_CONNECTION_CLOSE \
    HTTP_REQUEST_METHOD REQUEST_ACCEPTS_GZIP MESSAGE_SIZE_VALIDATION_SUM message.builder.invoked relay_early_build \
    RAW_PAYLOAD JSON_STRING preserve.json.stream QUOTE_STRING_IN_PAYLOAD_FACTORY_JSON transform.xslt.result.disableBuild \
    DISABLE_SMOOKS_RESULT_PAYLOAD PRESERVE_SPACES PRESERVE_ENVELOPE IsClientDoingREST IsClientDoingSOAP11 \
    synapse.RelatesToForPox ATTACHMENTS ANALYTICS_METADATA DROP_MESSAGE_DUE_TO_SIZE_LIMIT_EXCEEDED SET_ROLLBACK_ONLY \
    SET_REQUEUE_ON_ROLLBACK ACKNOWLEDGE distributedTx REST_API_CONTEXT SYNAPSE_REST_API REST_FULL_REQUEST_PATH \
    REST_SUB_REQUEST_PATH RESOURCE_PATH REST_METHOD OPENAPI_VALIDATED ERROR_CODE ERROR_MESSAGE ERROR_DETAIL \
    ERROR_EXCEPTION SENDING_FAULT BASE_ERROR_CODE PROTOCOL_STATE_ON_FAILURE HTTP_SOCKET_TIMEOUT SET_ROOT_CONTENT_TYPE";

#[test]
fn every_property_is_described() {
    let page = std::fs::read_to_string(root().join("docs/properties.md")).expect("the page can be read");
    let mut names: Vec<String> = PROPERTIES.split_whitespace().map(str::to_owned).collect();
    // And those that the engine asks for by name.
    for file in ["engine/exchange", "http/respond", "writing/mod", "engine/mod", "engine/addressing"] {
        let path = root().join(format!("crates/flow/src/{file}.rs"));
        let source = std::fs::read_to_string(path).expect("the source can be read");
        for call in ["axis2_is_true(\"", "axis2.get(\"", "asked(context, \"", "time(context, \""] {
            names.extend(
                source.split(call).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())),
            );
        }
    }
    assert!(names.len() > 120, "the calls are found");
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "docs/properties.md says nothing of {name}");
    }
}

#[test]
fn commands_are_known() {
    for block in blocks("console") {
        for line in block.text.lines() {
            let Some(command) = line.strip_prefix("$ ") else { continue };
            let words = words(command);
            let line = match words.split_first() {
                Some((program, _)) if program == "busbar" => words,
                Some((program, rest)) if program == "cargo" && rest.first().is_some_and(|w| w == "run") => {
                    let arguments = rest.iter().skip_while(|word| *word != "--").skip(1).cloned();
                    std::iter::once("busbar".to_owned()).chain(arguments).collect()
                }
                _ => continue,
            };
            if let Err(error) = Cli::try_parse_from(&line) {
                panic!("{}: {command}\n{error}", block.place);
            }
        }
    }
}

/// The words of a command line up to the first operator of the shell.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut begun = false;
    for character in command.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '\'' | '"') => (quote, begun) = (Some(character), true),
            (None, '&' | '|' | '>' | '<' | ';') => {
                // `2>` is an operator, too.
                begun &= !(character == '>' && word == "2");
                break;
            }
            (None, ' ') if begun => {
                words.push(std::mem::take(&mut word));
                begun = false;
            }
            (None, ' ') => {}
            _ => {
                word.push(character);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

#[test]
fn links_lead_somewhere() {
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page can be read");
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = target.split('#').next().unwrap_or("");
            // Pages that are written by measurements may be absent.
            let is_measured = ["operations.md", "performance.md"].iter().any(|name| path.ends_with(name));
            if path.is_empty() || path.contains("://") || is_measured {
                continue;
            }
            let folder = page.parent().expect("a page is in a folder");
            assert!(folder.join(path).exists(), "{}: {target} leads nowhere", page.display());
        }
    }
}
