use super::*;
use crate::testing::{self, Tested};

fn tested(inside: &str) -> Tested {
    let registry = testing::registry(Vec::new());
    let text = format!(
        "<definitions xmlns='{}'>{inside}<sequence name='S'/><sequence name='main'/><sequence name='fault'/></definitions>",
        config::SYNAPSE
    );
    testing::configuration(&registry, &text)
}

fn parameter(name: &str, value: &str) -> String {
    format!("<parameter name='{name}'>{value}</parameter>")
}

#[test]
fn what_loading_says() {
    let port = parameter("inbound.http.port", "8285");
    for (attributes, parameters, found, label) in [
        (
            "protocol='http'",
            String::new(),
            "missing-parameter: the inbound endpoint needs the parameter `inbound.http.port`",
            "the port to listen on",
        ),
        (
            "protocol='http'",
            parameter("inbound.http.port", "0"),
            "bad-value: `0` is not a port",
            "expected 1 to 65535",
        ),
        (
            "protocol='http'",
            parameter("inbound.http.port", "-1"),
            "bad-value: `-1` is not a port",
            "expected 1 to 65535",
        ),
        (
            "protocol='http'",
            parameter("inbound.http.port", "18446744073709551616"),
            "bad-value: `18446744073709551616` is not a port",
            "expected 1 to 65535",
        ),
        (
            "protocol='http'",
            parameter("inbound.http.port", "  "),
            "missing-parameter: the inbound endpoint needs the parameter `inbound.http.port`",
            "the port to listen on",
        ),
        (
            "protocol='http'",
            parameter("Inbound.HTTP.Port", "8285"),
            "unknown-parameter: an inbound endpoint has no parameter `Inbound.HTTP.Port`",
            "this has no effect",
        ),
        (
            "protocol='http'",
            format!("{port}{port}"),
            "duplicate-parameter: the parameter `inbound.http.port` is there twice",
            "this one counts",
        ),
        (
            "protocol='http'",
            format!("{port}{}", parameter("api.dispatching.enabled", "yes")),
            "bad-value: the parameter `api.dispatching.enabled` cannot be `yes`",
            "expected true or false",
        ),
        (
            "protocol='https'",
            format!("{port}{}", parameter("keystore", "a.pem")),
            "bad-value: the parameter `keystore` is an element",
            "expected a store",
        ),
        // A store that cannot be read must not let every client in.
        (
            "protocol='https'",
            format!("{port}{}", parameter("SSLVerifyClient", "require")),
            "missing-parameter: certificates of clients cannot be checked without a `keystore` that can be read",
            "else everybody would be let in",
        ),
        (
            "protocol='https'",
            format!(
                "{port}{}{}",
                parameter("keystore", "<KeyStore><Location>a.jks</Location></KeyStore>"),
                parameter("SSLVerifyClient", "Optional")
            ),
            "missing-parameter: certificates of clients cannot be checked without a `keystore` that can be read",
            "else everybody would be let in",
        ),
        (
            "protocol='https'",
            format!(
                "{port}{}{}",
                parameter("keystore", "<KeyStore><Location>a.pem</Location></KeyStore>"),
                parameter("SSLVerifyClient", "REQUIRE")
            ),
            "missing-parameter: certificates of clients cannot be checked without a `truststore` that can be read",
            "else everybody would be let in",
        ),
        (
            "protocol='http'",
            parameter("inbound.http.port", "65536"),
            "bad-value: `65536` is not a port",
            "expected 1 to 65535",
        ),
        (
            "protocol='http'",
            parameter("inbound.http.port", "http"),
            "bad-value: `http` is not a port",
            "expected 1 to 65535",
        ),
        (
            "protocol='http'",
            parameter("inbound.htp.port", "1"),
            "unknown-parameter: an inbound endpoint has no parameter `inbound.htp.port`",
            "this has no effect",
        ),
        (
            "protocol='http'",
            format!("{port}{}", parameter("dispatch.filter.pattern", "(")),
            "bad-pattern: `(` is not a valid regular expression",
            "",
        ),
        (
            "protocol='http'",
            format!("{port}{}", parameter("inbound.worker.pool.size.core", "5")),
            "not-needed: the parameter `inbound.worker.pool.size.core` has no effect",
            "messages wait without threads",
        ),
        (
            "protocol='http'",
            format!("{port}{}", parameter("keystore", "x")),
            "ignored-parameter: the parameter `keystore` has no effect",
            "the protocol is one without TLS",
        ),
        (
            "protocol='https'",
            format!(
                "{port}{}",
                parameter("keystore", "<KeyStore><Location>a.jks</Location><Type>JKS</Type></KeyStore>")
            ),
            "unsupported-keystore: the store `a.jks` cannot be read: there is no such file",
            "JKS, PKCS#12 or PEM",
        ),
        (
            "protocol='https'",
            format!("{port}{}", parameter("keystore", "<KeyStore/>")),
            "missing-element: `KeyStore` has no `Location`",
            "the file of the store",
        ),
        (
            "protocol='https'",
            format!(
                "{port}{}{}",
                parameter("keystore", "<KeyStore><Location>a.pem</Location></KeyStore>"),
                parameter("SSLVerifyClient", "required")
            ),
            "bad-value: `SSLVerifyClient` cannot be `required`",
            "expected none, optional or require",
        ),
        (
            "protocol='ws'",
            port.clone(),
            "missing-parameter: the inbound endpoint needs the parameter `inbound.ws.port`",
            "the port to listen on",
        ),
        (
            "protocol='ws'",
            [parameter("inbound.ws.port", "8286"), parameter("ws.outflow.dispatch.sequence", "S")].concat(),
            "ignored-parameter: the parameter `ws.outflow.dispatch.sequence` has no effect",
            "what a client says runs through `sequence`",
        ),
        (
            "protocol='ws'",
            [parameter("inbound.ws.port", "8286"), parameter("ws.client.side.broadcast.level", "3")].concat(),
            "bad-value: the parameter `ws.client.side.broadcast.level` cannot be `3`",
            "expected 0",
        ),
        (
            "protocol='httpws'",
            [parameter("port", "8286"), parameter("protocolVersions", "2.0")].concat(),
            "not-needed: the parameter `protocolVersions` has no effect",
            "each client says what it speaks",
        ),
        (
            "protocol='jms'",
            String::new(),
            "unsupported-artifact: an inbound endpoint of the protocol `jms` needs a client for its message broker",
            "expected",
        ),
        (
            "protocol='file'",
            String::new(),
            "missing-parameter: the parameter `transport.vfs.FileURI` is needed to take files",
            "a directory",
        ),
        (
            "class='com.example.Mine'",
            String::new(),
            "unsupported-artifact: an inbound endpoint of the class `com.example.Mine` needs Java, which is not there; a `task`",
            "expected",
        ),
        (
            "class='com.example.Mine'",
            parameter("inbound.behavior", "listening"),
            "unsupported-artifact: an inbound endpoint of the class `com.example.Mine` needs Java, which is not there; for HTTP",
            "expected",
        ),
        (
            "class='org.wso2.carbon.inbound.kafka.KafkaMessageConsumer'",
            parameter("inbound.behavior", "polling"),
            "needs a client for its message broker",
            "expected",
        ),
    ] {
        let inside = format!(
            "<inboundEndpoint name='I' sequence='S' {attributes}><parameters>{parameters}</parameters></inboundEndpoint>"
        );
        let tested = tested(&inside);
        assert!(tested.reports(found), "{inside}: {:?}", tested.found);
        assert!(tested.reasons.iter().any(|reason| reason.contains(label)), "{inside}: {:?}", tested.reasons);
    }
}

/// One endpoint of a protocol with its port and these parameters.
fn of(protocol: &Protocol, parameters: &[(&str, &str)]) -> Tested {
    let mut parameters_text = parameter(protocol.port, "8285");
    for (name, value) in parameters {
        parameters_text += &parameter(name, value);
    }
    tested(&format!(
        "<inboundEndpoint name='I' sequence='S' protocol='{}'><parameters>{parameters_text}</parameters></inboundEndpoint>",
        protocol.name
    ))
}

const PEM: &str = "<KeyStore><Location>a.pem</Location></KeyStore>";
const TRUSTED: &str = "<TrustStore><Location>b.pem</Location></TrustStore>";

type Good = (&'static [(&'static str, &'static str)], fn(&InboundEndpoint) -> String, &'static str);

/// What each parameter makes of an endpoint with TLS for WebSockets, which has all of them.
const GOOD: &[Good] = &[
    (
        &[],
        |endpoint| format!("{:?} {} {:?}", endpoint.port, endpoint.websocket, endpoint.tls),
        "Some(8285) true Some(OfBus)",
    ),
    (
        &[("api.dispatching.enabled", "TRUE")],
        |endpoint| matches!(endpoint.filter, Filter::Apis).to_string(),
        "true",
    ),
    (
        &[("api.dispatching.enabled", "false")],
        |endpoint| matches!(endpoint.filter, Filter::None).to_string(),
        "true",
    ),
    (
        &[("dispatch.filter.pattern", "/a.*")],
        |endpoint| match &endpoint.filter {
            Filter::Pattern(pattern) => format!("{:?}", (pattern.matches("/ab"), pattern.matches("/b"))),
            _ => String::new(),
        },
        "(Ok(true), Ok(false))",
    ),
    // A pattern is narrower than all APIs, so it counts.
    (
        &[("dispatch.filter.pattern", "/a.*"), ("api.dispatching.enabled", "true")],
        |endpoint| matches!(endpoint.filter, Filter::Pattern(_)).to_string(),
        "true",
    ),
    (&[("keystore", PEM)], |endpoint| names(endpoint), "a.pem a.pem  None"),
    (
        &[("keystore", "<KeyStore><Location>a.pem</Location><KeyLocation>k.pem</KeyLocation></KeyStore>")],
        |endpoint| names(endpoint),
        "k.pem a.pem  None",
    ),
    (
        &[("keystore", PEM), ("truststore", TRUSTED), ("SSLVerifyClient", "Require")],
        |endpoint| names(endpoint),
        "a.pem a.pem b.pem Require",
    ),
    (
        &[("keystore", PEM), ("truststore", TRUSTED), ("SSLVerifyClient", "optional")],
        |endpoint| names(endpoint),
        "a.pem a.pem b.pem Optional",
    ),
    (
        &[("keystore", PEM), ("HttpsProtocols", "TLSv1.2, TLS"), ("PreferredCiphers", SUITE)],
        |endpoint| rules(endpoint),
        "TLSv1.2 TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    ),
    (&[("SSLVerifyClient", "none")], |endpoint| format!("{:?}", endpoint.tls), "Some(OfBus)"),
    (&[], |endpoint| endpoint.text_type.clone(), "text/plain"),
    (
        &[("ws.default.content.type", "application/json")],
        |endpoint| endpoint.text_type.clone(),
        "application/json",
    ),
    (&[], |endpoint| format!("{:?}", endpoint.audience), "Client"),
    (&[("ws.client.side.broadcast.level", "1")], |endpoint| format!("{:?}", endpoint.audience), "All"),
    (&[("ws.client.side.broadcast.level", " 2 ")], |endpoint| format!("{:?}", endpoint.audience), "Others"),
];

const SUITE: &str = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384";

/// What an endpoint with a certificate of its own speaks.
fn rules(endpoint: &InboundEndpoint) -> String {
    let Some(Tls::Own(tls)) = &endpoint.tls else { return String::new() };
    format!("{} {}", tls.rules.versions.join(","), tls.rules.ciphers.join(","))
}

/// The files of a certificate of its own, and what is asked of clients.
fn names(endpoint: &InboundEndpoint) -> String {
    let Some(Tls::Own(tls)) = &endpoint.tls else { return String::new() };
    let name =
        |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let roots = tls.client_roots.as_deref().map(name).unwrap_or_default();
    format!("{} {} {roots} {:?}", name(&tls.key), name(&tls.certificates), tls.client_verify)
}

#[test]
fn good_values() {
    let wss = PROTOCOLS.iter().find(|protocol| protocol.name == "wss").unwrap();
    for (given, shows, wanted) in GOOD {
        let tested = of(wss, given);
        let plan = tested.bus.plan();
        let endpoint =
            plan.inbound_endpoints().first().unwrap_or_else(|| panic!("{given:?}: {:?}", tested.found));
        assert_eq!(shows(endpoint), *wanted, "{given:?}");
        assert!(tested.found.is_empty(), "{given:?}: {:?}", tested.found);
    }
    // What each protocol is.
    for protocol in &PROTOCOLS {
        let tested = of(protocol, &[]);
        let plan = tested.bus.plan();
        let endpoint = plan.inbound_endpoints().first().unwrap();
        let shown = (endpoint.port, endpoint.tls.is_some(), endpoint.websocket);
        assert_eq!(shown, (Some(8285), protocol.secure, protocol.websocket), "{}", protocol.name);
        assert!(tested.found.is_empty(), "{}: {:?}", protocol.name, tested.found);
    }
    // The good values are of all parameters that there are; the wrong ones are in `what_loading_says`.
    let given: Vec<&str> = GOOD.iter().flat_map(|row| row.0.iter().map(|row| row.0)).collect();
    for name in PARAMETERS.iter().chain([&TEXT_TYPE, &AUDIENCE]) {
        assert!(given.contains(name), "{name} has no good value");
    }
}

/// What has no effect says so with its reason, whatever its value, and takes nothing away.
#[test]
fn parameters_without_effect() {
    let wss = PROTOCOLS.iter().find(|protocol| protocol.name == "wss").unwrap();
    let notes = NOT_NEEDED.iter().map(|entry| ("not-needed", entry));
    for (rule, (name, why)) in notes.chain(FRAMES.iter().map(|entry| ("ignored-parameter", entry))) {
        for value in ["10", "-1", "no such value", ""] {
            let tested = of(wss, &[(name, value)]);
            let says = format!("{rule}: the parameter `{name}` has no effect");
            assert!(tested.reports(&says), "{name}={value}: {:?}", tested.found);
            assert!(tested.reasons.iter().any(|reason| reason.contains(why)), "{name}: {:?}", tested.reasons);
            assert_eq!(tested.bus.plan().inbound_endpoints().len(), 1, "{name}={value}");
        }
    }
    // Those of TLS and of WebSockets mean nothing to a protocol without either.
    let http = &PROTOCOLS[0];
    for (name, value) in [("keystore", PEM), ("truststore", TRUSTED), ("SSLVerifyClient", "none")] {
        let tested = of(http, &[(name, value)]);
        assert!(tested.reports("ignored-parameter: "), "{name}: {:?}", tested.found);
    }
    for name in FRAMES.iter().map(|entry| entry.0).chain([TEXT_TYPE, AUDIENCE]) {
        let tested = of(http, &[(name, "1")]);
        assert!(tested.reports("unknown-parameter: "), "{name}: {:?}", tested.found);
    }
}

#[test]
fn what_is_not_there_is_named() {
    let endpoint = |attributes: &str, parameters: &str| {
        tested(&format!(
            "<inboundEndpoint name='I' sequence='S' {attributes}><parameters>{parameters}</parameters></inboundEndpoint>"
        ))
    };
    let protocols = OTHERS.iter().map(|(name, needs)| (format!("protocol='{name}'"), String::new(), *needs));
    let classes =
        CLASSES.iter().map(|(name, needs)| (format!("class='org.wso2.{name}'"), String::new(), *needs));
    let behaviours = BEHAVIOURS.iter().map(|(name, needs)| {
        ("class='com.example.Mine'".to_owned(), parameter("inbound.behavior", name), *needs)
    });
    for (attributes, parameters, needs) in protocols.chain(classes).chain(behaviours) {
        let tested = endpoint(&attributes, &parameters);
        assert!(tested.reports("unsupported-artifact: "), "{attributes}: {:?}", tested.found);
        assert!(
            tested.found.iter().any(|message| message.contains(needs)),
            "{attributes}: {:?}",
            tested.found
        );
        assert!(tested.bus.plan().inbound_endpoints().is_empty(), "{attributes}");
    }
}

/// Java key stores that exist are read when the port is opened; one that does not, or whose password is in a vault, is reported here.
#[test]
fn stores_of_java() {
    let directory = std::env::temp_dir().join(format!("busbar-inbound-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    for name in ["k.jks", "t.p12"] {
        std::fs::write(directory.join(name), "store").unwrap();
    }
    let https = PROTOCOLS.iter().find(|protocol| protocol.name == "https").unwrap();
    let store = |element: &str, name: &str, inside: &str| {
        format!("<{element}><Location>{}/{name}</Location>{inside}</{element}>", directory.display())
    };
    let keys =
        store("KeyStore", "k.jks", "<Type>JKS</Type><Password>p</Password><KeyPassword>k</KeyPassword>");
    let trusted = store("TrustStore", "t.p12", "<Password>t</Password>");
    let tested = of(https, &[("keystore", &keys), ("truststore", &trusted), ("SSLVerifyClient", "require")]);
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    let plan = tested.bus.plan();
    let Some(Tls::Stores(stores)) = &plan.inbound_endpoints()[0].tls else { panic!("no stores") };
    assert_eq!((&*stores.keys.password, stores.keys.key_password.as_deref()), ("p", Some("k")));
    assert_eq!(stores.trusted.as_ref().map(|store| &*store.password), Some("t"));
    assert_eq!(stores.client_verify, ClientVerify::Require);
    assert!(!format!("{stores:?}").contains("password"), "{stores:?}");
    // Clients show no certificates: no trust store is used.
    let tested = of(https, &[("keystore", &keys), ("truststore", &trusted)]);
    let plan = tested.bus.plan();
    assert!(
        matches!(&plan.inbound_endpoints()[0].tls, Some(Tls::Stores(stores)) if stores.trusted.is_none())
    );
    for (keys, says) in [
        (store("KeyStore", "none.jks", "<Password>p</Password>"), "there is no such file"),
        (store("KeyStore", "k.jks", "<Password>$secret{p}</Password>"), "in a vault of the server"),
        (
            store("KeyStore", "k.jks", "<Password>{wso2:vault-lookup('p')}</Password>"),
            "in a vault of the server",
        ),
    ] {
        let tested = of(https, &[("keystore", &keys)]);
        assert!(tested.reports("unsupported-keystore: "), "{keys}: {:?}", tested.found);
        assert!(tested.found.iter().any(|message| message.contains(says)), "{keys}: {:?}", tested.found);
        assert_eq!(tested.bus.plan().inbound_endpoints()[0].tls, Some(Tls::OfBus), "{keys}");
        // Clients are not let in without a certificate.
        let tested =
            of(https, &[("keystore", &keys), ("truststore", &trusted), ("SSLVerifyClient", "require")]);
        assert!(tested.bus.plan().inbound_endpoints().is_empty(), "{keys}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Values that a key leads to, and those of the wrong kind.
#[test]
fn values_of_entries() {
    let inside = |parameters: &str| {
        format!(
            "<localEntry key='port'>8285</localEntry><localEntry key='word'>often</localEntry>\
             <inboundEndpoint name='I' sequence='S' protocol='ws'><parameters>{parameters}</parameters></inboundEndpoint>"
        )
    };
    let good = tested(&inside("<parameter name='inbound.ws.port' key='port'/>"));
    assert!(good.found.is_empty(), "{:?}", good.found);
    assert_eq!(good.bus.plan().inbound_endpoints()[0].port, Some(8285));
    for (parameters, says) in [
        (
            "<parameter name='inbound.ws.port' key='none'/>".to_owned(),
            "unknown-entry: there is no entry `none`",
        ),
        ("<parameter name='inbound.ws.port' key='word'/>".to_owned(), "bad-value: `often` is not a port"),
        (
            format!(
                "{}<parameter name='dispatch.filter.pattern' key='none'/>",
                parameter("inbound.ws.port", "8285")
            ),
            "unknown-entry: there is no entry `none`",
        ),
        (
            format!("{}{}", parameter("inbound.ws.port", "8285"), parameter("truststore", "b.pem")),
            "ignored-parameter: the parameter `truststore` has no effect",
        ),
    ] {
        let tested = tested(&inside(&parameters));
        assert!(tested.reports(says), "{parameters}: {:?}", tested.found);
    }
}

#[test]
fn one_port_has_one_endpoint() {
    let one = |name: &str, port: u16| {
        let port = parameter("inbound.http.port", &port.to_string());
        format!(
            "<inboundEndpoint name='{name}' protocol='http' sequence='S'><parameters>{port}</parameters></inboundEndpoint>"
        )
    };
    let tested = tested(&[one("A", 8285), one("B", 8285), one("C", 8286)].concat());
    assert!(
        tested.reports("port-in-use: the port 8285 is that of the inbound endpoint `A`"),
        "{:?}",
        tested.found
    );
    let plan = tested.bus.plan();
    let ports: Vec<_> =
        plan.inbound_endpoints().iter().map(|endpoint| (endpoint.name.as_str(), endpoint.port)).collect();
    assert_eq!(ports, [("A", Some(8285)), ("C", Some(8286))]);
}

#[test]
fn the_offset_of_the_server_moves_ports_where_that_is_switched_on() {
    let http = parameter("inbound.http.port", "8285");
    let ws = parameter("inbound.ws.port", "9091");
    let moves = parameter("ws.use.port.offset", "true");
    let ports = |offset: i64, inbound: bool, inside: &str| {
        let registry = testing::registry(Vec::new());
        let text = format!(
            "<definitions xmlns='{}'><inboundEndpoint name='I' sequence='S' {inside}</parameters></inboundEndpoint><sequence name='S'/></definitions>",
            config::SYNAPSE
        );
        let tested = testing::configuration_with(&registry, &text, |services| {
            services.settings.offset = crate::PortOffset { ports: offset, inbound };
        });
        let port = tested.bus.plan().inbound_endpoints().iter().find_map(|endpoint| endpoint.port);
        (port, tested.reports("is not a port"))
    };
    let http = format!("protocol='http'><parameters>{http}");
    let (ws, moving) =
        (format!("protocol='ws'><parameters>{ws}"), format!("protocol='ws'><parameters>{ws}{moves}"));
    for (offset, inbound, inside, wanted) in [
        (10, false, &http, (Some(8285), false)),
        (10, true, &http, (Some(8295), false)),
        (0, true, &http, (Some(8285), false)),
        (10, false, &ws, (Some(9091), false)),
        (10, true, &ws, (Some(9101), false)),
        (10, false, &moving, (Some(9101), false)),
        (60_000, true, &http, (None, true)),
        (-8285, true, &http, (None, true)),
        (i64::MIN, true, &http, (None, true)),
    ] {
        assert_eq!(ports(offset, inbound, inside), wanted, "{offset} {inbound} {inside}");
    }
}
