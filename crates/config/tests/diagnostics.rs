//! What is found in faulty configurations, and how it is shown.

use busbar_config::{Injector, LoadOptions, Loaded, load, load_text};
use diagnostics::render::{Human, human};
use proptest::prelude::*;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

const API: &str =
    r#"<api name="A" context="/a"><resource><inSequence><respond/></inSequence></resource></api>"#;
const PROXY: &str = r#"<proxy name="P"><target><inSequence><respond/></inSequence></target></proxy>"#;

fn read(artifacts: &str) -> Loaded {
    let text =
        format!("<definitions xmlns=\"http://ws.apache.org/ns/synapse\">\n{artifacts}\n</definitions>");
    let injector = Injector::new().with_environment(HashMap::from([("HOST".into(), "http://h".into())]));
    load_text(
        "synapse.xml",
        &text,
        Path::new("/nonexistent"),
        &LoadOptions { injector: Some(injector), ..LoadOptions::default() },
    )
}

/// `rule line:column` of every finding.
fn findings(loaded: &Loaded) -> Vec<String> {
    let place = |d: &diagnostics::Diagnostic| {
        let place = d.span().map_or(String::new(), |span| span.place(&loaded.sources));
        place.strip_prefix("synapse.xml:").map(str::to_owned).unwrap_or(place)
    };
    loaded.diagnostics.iter().map(|d| format!("{} {}", d.rule, place(d))).collect()
}

#[test]
fn faulty_artifacts_are_found_and_left_out() {
    // (artifacts, findings, artifacts left out)
    let table: &[(&str, &[&str], usize)] = &[
        (API, &[], 0),
        (PROXY, &[], 0),
        // Top level.
        ("<proxi name='x'/>", &["unknown-element 2:2"], 1),
        ("<sequence/>", &["missing-attribute 2:1"], 1),
        ("<endpoint><default/></endpoint>", &["missing-attribute 2:1"], 1),
        (
            "<endpoint name='E'><http uri-template='http://x/'/><address uri='http://x/'/></endpoint>",
            &["conflict 2:21"],
            0,
        ),
        (
            "<endpoint name='E'><address uri='http://x/'/></endpoint><endpoint name='F' key='E'><default/></endpoint>",
            &["conflict 2:85"],
            0,
        ),
        ("<proxy xmlns='' name='P'/>", &["wrong-namespace 2:2"], 1),
        ("<registry provider='a.R'/><registry provider='a.R'/>", &["duplicate-key 2:27"], 1),
        // Names: one key space for sequences, endpoints, entries and templates, another for every other kind.
        ("<sequence name='x'/><localEntry key='x'>t</localEntry>", &["duplicate-key 2:38"], 1),
        ("<sequence name='x'/><endpoint name=' x '><default/></endpoint>", &["duplicate-key 2:37"], 1),
        ("<sequence name='x'/><messageStore name='x'/>", &[], 0),
        // In no namespace; mediators are looked up by theirs.
        ("<localEntry xmlns='' key='x'>t</localEntry>", &["wrong-namespace 2:2"], 0),
        (
            "<messageStore xmlns='' name='S'><parameter name='a'>b</parameter></messageStore>",
            &["wrong-namespace 2:2"],
            0,
        ),
        (
            "<inboundEndpoint xmlns='' name='I' protocol='http' sequence='main'><parameters><parameter name='inbound.http.port'>1</parameter></parameters></inboundEndpoint>",
            &["wrong-namespace 2:2"],
            0,
        ),
        ("<sequence xmlns='' name='s'><log/></sequence>", &["wrong-namespace 2:2"], 1),
        // What WSO2 ignores.
        ("<endpoint name='E'><address uri='u'/><timeout/></endpoint>", &["ignored-element 2:39"], 0),
        (
            "<proxy name='P'><target><log/><inSequence><respond/></inSequence></target></proxy>",
            &["ignored-element 2:26"],
            0,
        ),
        (
            "<api name='A' context='/a'><resource><inSequence/><property name='a' value='b'/></resource></api>",
            &["ignored-element 2:52"],
            0,
        ),
        (
            "<template name='T'><property name='a' value='b'/><sequence><drop/></sequence></template>",
            &["ignored-element 2:21"],
            0,
        ),
        ("<proxy name='P'><target xmlns=''/></proxy>", &["wrong-namespace 2:18", "missing-target 2:1"], 1),
        (
            "<priority-executor name='E'><queues isFixedSize='false'><queue priority='1'/><queue priority='2'/></queues></priority-executor>",
            &[],
            0,
        ),
        // Proxies.
        ("<proxy name='P'/>", &["missing-target 2:1"], 1),
        ("<proxy name='P'><target/></proxy>", &["missing-target 2:17"], 1),
        ("<proxy name='P'><target faultSequence='fault'/></proxy>", &["missing-target 2:17"], 1),
        ("<proxy name='P'><target endpoint='E'/></proxy><endpoint name='E'><default/></endpoint>", &[], 0),
        ("<proxy name='P'><target inSequence='none'/></proxy>", &["unknown-reference 2:37"], 0),
        ("<proxy name='P' startOnLoad='yes'><target inSequence='main'/></proxy>", &["bad-value 2:30"], 0),
        (
            "<proxy name='P' transport='http'><target inSequence='main'/></proxy>",
            &["unknown-attribute 2:17"],
            0,
        ),
        ("<proxy name='P'><target inSequence='main'/><publishWSDL/></proxy>", &["missing-attribute 2:44"], 1),
        // APIs.
        ("<api name='A' context='/a'/>", &["missing-element 2:1"], 1),
        ("<api name='A' context='a'><resource/></api>", &["bad-value 2:24"], 1),
        ("<api name='A' context='/a' version='1'><resource/></api>", &["missing-attribute 2:37"], 1),
        ("<api name='A' context='/a' version='1' version-type='x'><resource/></api>", &["bad-value 2:54"], 1),
        (
            "<api name='A' context='/a/{version}' version='1' version-type='url'><resource/></api>",
            &["bad-value 2:24"],
            0,
        ),
        (
            "<api name='A' context='/a/1.0' version='1.0' version-type='url'><resource/></api>",
            &["bad-value 2:24"],
            0,
        ),
        ("<api name='A' context='/a/{version}'><resource/></api>", &["bad-value 2:24"], 0),
        (
            "<api name='A' context='/a' version='' version-type='url'><resource/></api>",
            &["bad-value 2:53"],
            0,
        ),
        ("<api name='A' context='/a/{version}' version='1' version-type='context'><resource/></api>", &[], 0),
        ("<api name='A' context='/a' hostname='h:80'><resource/></api>", &["bad-value 2:38"], 0),
        ("<api name='A' context='/a'><resource/><resource/></api>", &["duplicate-resource 2:39"], 1),
        ("<api name='A' context='/a'><resource methods='GET,POST'/></api>", &["bad-value 2:47"], 1),
        ("<api name='A' context='/a'><resource methods='GET  POST'/></api>", &["bad-value 2:51"], 1),
        ("<api name='A' context='/a'><resource methods='get'/></api>", &["bad-value 2:47"], 1),
        (
            "<api name='A' context='/a'><resource methods='GET' uri-template='/x'/><resource uri-template='/x'/></api>",
            &["duplicate-resource 2:71"],
            1,
        ),
        (
            "<api name='A' context='/a'><resource methods='GET' uri-template='/x'/><resource methods='PUT' uri-template='/x'/></api>",
            &[],
            0,
        ),
        ("<api name='A' context='/a'><resource uri-template='/x/{a'/></api>", &["bad-uri-template 2:55"], 1),
        ("<api name='A' context='/a'><resource uri-template='/x{?a}'/></api>", &["bad-uri-template 2:54"], 1),
        ("<api name='A' context='/a'><resource uri-template='/{p+}'/></api>", &["bad-value 2:54"], 0),
        ("<api name='A' context='/a'><resource uri-template='/{uri.var.id}'/></api>", &["bad-value 2:54"], 0),
        (
            "<api name='A' context='/a'><resource uri-template='/{a,b c:3}/{+d.e-f_g}'/></api>",
            &["bad-value 2:56"],
            0,
        ),
        (
            "<api name='A' context='/a'><resource uri-template='x/{a}'/></api>",
            &["unmatched-template 2:52"],
            0,
        ),
        (
            "<api name='A' context='/a'><resource uri-template='/x/**'/></api>",
            &["unmatched-template 2:55"],
            0,
        ),
        ("<api name='A' context='/a'><resource uri-template='?x={a}'/></api>", &[], 0),
        ("<api name='A' context='/a'><resource uri-template='{+a}'/></api>", &[], 0),
        (
            "<api name='A' context='/a'><resource/></api><api name='B' context='/a/'><resource/></api>",
            &["duplicate-context 2:68"],
            1,
        ),
        (
            "<api name='A' context='/a'><resource/></api><api name='B' context='/a' version='1' version-type='url'><resource/></api>",
            &[],
            0,
        ),
        // Endpoints.
        ("<endpoint name='E'/>", &["empty-endpoint 2:1"], 1),
        ("<endpoint name='E'><address/></endpoint>", &["missing-attribute 2:20"], 1),
        (
            "<endpoint name='E'><adress uri='x'/></endpoint>",
            &["ignored-element 2:21", "empty-endpoint 2:1"],
            1,
        ),
        ("<endpoint name='E'><address uri='$SYSTEM:HOST'/></endpoint>", &[], 0),
        ("<endpoint name='E'><address uri='$SYSTEM:NONE'/></endpoint>", &["unresolved-value 2:34"], 1),
        (
            "<endpoint name='E'><http method='get' uri-template='http://h/'><authentication><oauth><clientCredentials><clientId>c</clientId><clientSecret>s</clientSecret><tokenUrl>$SYSTEM:NONE</tokenUrl></clientCredentials></oauth></authentication></http></endpoint>",
            &["unresolved-value 2:168"],
            0,
        ),
        ("<endpoint name='E'><address uri='u' format='soap13'/></endpoint>", &["bad-value 2:45"], 0),
        ("<endpoint name='E'><http uri-template='u' method='got'/></endpoint>", &["bad-value 2:51"], 0),
        (
            "<endpoint name='E'><address uri='u'><timeout><duration>x</duration></timeout></address></endpoint>",
            &["bad-value 2:56"],
            1,
        ),
        (
            "<endpoint name='E'><default><timeout><duration>x</duration><responseAction>y</responseAction></timeout></default></endpoint>",
            &["bad-value 2:48", "bad-value 2:76"],
            1,
        ),
        (
            "<endpoint name='E'><default><timeout><duration>-5</duration></timeout><markForSuspension><retryDelay>-2</retryDelay></markForSuspension><suspendOnFailure><initialDuration>-1</initialDuration><progressionFactor>-2</progressionFactor></suspendOnFailure></default></endpoint>",
            &["bad-value 2:48", "bad-value 2:102", "bad-value 2:211"],
            0,
        ),
        // As Studio writes an endpoint that is never suspended.
        (
            "<endpoint name='E'><default><suspendOnFailure><errorCodes>-1</errorCodes><initialDuration>-1</initialDuration><progressionFactor>-1</progressionFactor><maximumDuration>0</maximumDuration></suspendOnFailure></default></endpoint>",
            &[],
            0,
        ),
        (
            "<endpoint name='E'><failover dynamic='no'><endpoint><default/></endpoint></failover></endpoint>",
            &["bad-value 2:39"],
            0,
        ),
        (
            "<endpoint name='E'><default><property name='a' value='b'/></default></endpoint>",
            &["ignored-element 2:29"],
            0,
        ),
        ("<endpoint name='E'><failover/></endpoint>", &["missing-element 2:20"], 1),
        (
            "<endpoint name='E'><loadBalance policy='roundRobin' algorithm='a.B'><endpoint><default/></endpoint></loadBalance></endpoint>",
            &["conflict 2:64"],
            1,
        ),
        (
            "<endpoint name='E'><failover><endpoint key='a'/><endpoint key='a'/></failover></endpoint><endpoint name='a'><default/></endpoint>",
            &["duplicate-reference 2:64"],
            1,
        ),
        // The others.
        ("<template name='T'/>", &["missing-element 2:1"], 1),
        ("<localEntry key='e' src='http://h/x'/>", &["not-fetched 2:26"], 0),
        ("<localEntry key='e' src='ftp://h/x'/>", &["remote-source 2:26"], 1),
        ("<localEntry key='e' src='jar:/x'/>", &["remote-source 2:26"], 1),
        ("<localEntry key='e' src='gov:/x'/>", &["remote-source 2:26"], 1),
        ("<localEntry key='e' src='file:none.xml'/>", &["unreadable-source 2:26"], 1),
        ("<task name='T' class='a.B'/>", &["missing-element 2:1"], 1),
        ("<task name='T' class='a.B'><trigger once='true' interval='5'/></task>", &["conflict 2:59"], 1),
        ("<task name='T' class='a.B'><trigger interval='5s'/></task>", &["bad-value 2:47"], 1),
        (
            "<task name='T' class='a.B'><trigger interval='5s' count='x'/></task>",
            &["bad-value 2:58", "bad-value 2:47"],
            1,
        ),
        ("<import name='a' package='b' status='on'/>", &["bad-value 2:38"], 0),
        (
            "<messageProcessor name='M' class='a.SamplingProcessor' messageStore='S'/><messageStore name='S'/>",
            &["missing-parameter 2:1"],
            1,
        ),
        ("<messageProcessor name='M' class='a.B' messageStore='S'/>", &["unknown-reference 2:54"], 0),
        ("<inboundEndpoint name='I'/>", &["missing-attribute 2:1"], 1),
        ("<inboundEndpoint name='I' protocol='htp'/>", &["bad-value 2:37"], 1),
        (
            "<priority-executor name='E'><queues><queue priority='1' size='1'/></queues></priority-executor>",
            &["missing-element 2:29"],
            1,
        ),
        ("<import name='n'/>", &["missing-attribute 2:1"], 1),
    ];
    for (artifacts, expected, faulty) in table {
        let loaded = read(artifacts);
        assert_eq!(findings(&loaded), *expected, "{artifacts}");
        assert_eq!(loaded.faulty.len(), *faulty, "{artifacts}");
    }
}

#[test]
fn the_others_stay() {
    let loaded = read(&format!("{API}<proxy name='bad'/>{PROXY}<sequence name='s'><log/></sequence>"));
    let configuration = &loaded.configuration;
    assert_eq!(configuration.artifacts(), 3);
    assert_eq!(loaded.faulty[0].name.as_deref(), Some("bad"));
    assert!(configuration.apis.get("A").is_some() && configuration.proxies.get("P").is_some());
    let sequence = configuration.sequences.get("s").expect("s");
    assert_eq!(sequence.mediators().map(|m| m.local().to_owned()).collect::<Vec<_>>(), ["log"]);
    for name in ["main", "fault"] {
        assert!(configuration.sequences.get(name).is_some_and(|s| s.built_in), "{name}");
    }
}

#[test]
fn findings_are_shown_with_their_source() {
    let artifacts = [
        "<proxy name='P'><tagret inSequence='main'/></proxy>",
        "<proxy name='P' transports='htpp'><target inSequence='mian'/></proxy>",
        "<api name='A' contxt='/a'>\n\t<resource methods='GET post'/>\n</api>",
        "<endpoint name='E'><http uri-template='http://h/{x}' metod='GET'/></endpoint>",
        "<sequence name='x'/>\n<localEntry key='x'>é</localEntry>",
        "<endpoint name='E'><address uri='u'><timeout><durration>5</durration></timeout></address></endpoint>",
        "<api name='A' context='/a'><resource/></api>\n<api name='B' context='/a'><resource/></api>",
        "<task name='T'><trigger interval='5' cron='0 * * * * ?'/></task>",
        "<proxy name='P'>\n  <target><inSequence><log/></inSequnce></target>\n</proxy>",
        "<proxy xmlns='urn:x' name='P'/>",
    ];
    let mut shown = String::new();
    for artifacts in artifacts {
        let loaded = read(artifacts);
        for diagnostic in &loaded.diagnostics {
            shown += &human(diagnostic, &loaded.sources, Human::default());
            shown.push('\n');
        }
    }
    insta::assert_snapshot!(shown);
}

/// A fresh directory below the target directory.
fn directory(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&root);
    for (path, text) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("below the root")).expect("created");
        std::fs::write(path, text).expect("written");
    }
    root
}

const NS: &str = "xmlns=\"http://ws.apache.org/ns/synapse\"";

#[test]
fn a_directory_is_loaded_by_kind() {
    let entry = format!("<localEntry {NS} key='e' src='file:data/e.xml'/>");
    let sequence = format!("<sequence {NS} name='main'><drop/></sequence>");
    let proxy = format!("<proxy {NS} name='P'><target inSequence='conf:seq.xml'/></proxy>");
    let misplaced = format!("<api {NS} name='A' context='/a'><resource/></api>");
    let files = [
        (
            "synapse.xml",
            "<definitions xmlns='http://ws.apache.org/ns/synapse'><registry provider='a.MicroIntegratorRegistry'/><endpoint name='E'><default/></endpoint></definitions>",
        ),
        ("sequences/main.xml", &sequence),
        ("sequences/broken.xml", "<sequence"),
        ("sequences/notes.txt", "not read"),
        ("proxy-services/P.xml", &proxy),
        ("proxy-services/A.xml", &misplaced),
        ("local-entries/e.xml", &entry),
        ("data/e.xml", "<e/>"),
        ("registry.xml", "<registry xmlns='http://ws.apache.org/ns/synapse' provider='a.OtherRegistry'/>"),
        ("registry/config/seq.xml", "<sequence/>"),
        ("registry/config/seq.xml.properties", "owner = me"),
        ("registry/config/dir/a", ""),
        ("registry/config/dir.collections.properties", "kind: collection"),
        ("registry/governance/t.txt", "text"),
    ];
    for (root, home) in [
        (directory("layout", &files), ""),
        (directory("home/repository/deployment/server/synapse-configs/default", &files), "../../../../.."),
    ] {
        let path = root.join(home);
        if !home.is_empty() {
            // In a home, data and registry are at its root.
            for moved in ["data", "registry"] {
                let _ = std::fs::remove_dir_all(path.join(moved));
                std::fs::rename(root.join(moved), path.join(moved)).expect("moved");
            }
        }
        let loaded = load(&path, &LoadOptions::default());
        let configuration = &loaded.configuration;
        let rules: Vec<&str> = loaded.diagnostics.iter().map(|d| d.rule).collect();
        assert_eq!(rules, ["xml-syntax", "wrong-root", "not-read"], "{:?}", loaded.diagnostics);
        assert_eq!(
            loaded.faulty.iter().map(|f| f.name.as_deref()).collect::<Vec<_>>(),
            [Some("broken"), Some("A")]
        );
        assert_eq!(configuration.artifacts(), 4);
        assert!(configuration.sequences.get("main").is_some_and(|s| !s.built_in));
        assert_eq!(configuration.local_entries.get("e").map(|e| e.bytes()), Some(b"<e/>".to_vec()));
        let registry =
            |key: &str| configuration.registry.read(key).expect("readable").map(|found| found.bytes.to_vec());
        assert_eq!(registry("conf:seq.xml"), Some(b"<sequence/>".to_vec()));
        assert_eq!(registry("conf:/seq.xml"), Some(b"<sequence/>".to_vec()));
        assert_eq!(registry("/_system/config/seq.xml"), Some(b"<sequence/>".to_vec()));
        assert_eq!(registry("gov:t.txt"), Some(b"text".to_vec()));
        assert_eq!(registry("t.txt"), Some(b"text".to_vec()));
        let resource = |key: &str| configuration.content(key).expect("readable").map(|r| r.bytes.to_vec());
        assert_eq!(
            (resource("e"), resource("t.txt"), resource("none")),
            (Some(b"<e/>".to_vec()), Some(b"text".to_vec()), None)
        );
        let property = |key: &str, name: &str| configuration.registry.property(key, name);
        assert_eq!(property("conf:seq.xml", "owner").as_deref(), Some("me"));
        assert_eq!(property("conf:/dir/", "kind").as_deref(), Some("collection"));
        assert_eq!((property("conf:seq.xml", "none"), property("conf:none", "owner")), (None, None));
        for outside in ["conf:../../synapse.xml", "../synapse.xml", "gov:none", "conf:"] {
            assert_eq!(registry(outside), None, "{outside}");
        }
    }
}

#[test]
fn broken_archives_and_empty_directories_are_refused() {
    for (name, file, rules) in [
        ("archive", "a.car", &["broken-archive"][..]),
        ("empty", "notes.txt", &["no-configuration", "not-read"]),
    ] {
        let loaded = load(&directory(name, &[(file, "")]), &LoadOptions::default());
        assert_eq!(loaded.diagnostics.iter().map(|d| d.rule).collect::<Vec<_>>(), rules);
    }
}

#[test]
fn one_artifact_is_a_configuration() {
    let loaded = load(
        &directory("single", &[("p.xml", &PROXY.replace("<proxy", &format!("<proxy {NS}")))]).join("p.xml"),
        &LoadOptions::default(),
    );
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    assert!(loaded.configuration.proxies.get("P").is_some());
}

#[test]
fn endpoint_templates_have_instances() {
    let loaded = read(
        "<template name='T'><parameter name='ms'/><endpoint name='$name'><address uri='$uri'><timeout>\
         <duration>$ms</duration><responseAction>fault</responseAction></timeout></address></endpoint></template>\
         <endpoint name='E' template='T' uri='http://h'><parameter name='ms' value='250'/></endpoint>",
    );
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    let configuration = &loaded.configuration;
    let Some(busbar_config::EndpointKind::Template(instance)) =
        configuration.endpoints.get("E").map(|endpoint| &endpoint.kind)
    else {
        panic!("an instance")
    };
    let mut found = diagnostics::Diagnostics::new();
    let endpoint = configuration.endpoint_templates.get("T").expect("T").instantiate(
        "E",
        instance.uri.as_deref().map(String::as_str),
        &instance.parameters,
        &configuration.injector,
        &mut found,
    );
    assert!(found.is_empty(), "{found:?}");
    let Some(busbar_config::EndpointKind::Address(address)) = endpoint.map(|endpoint| endpoint.kind) else {
        panic!("an address")
    };
    assert_eq!(address.uri.value, "http://h");
    assert!(address.definition.timeout.is_some());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the bytes are, loading ends with findings, not with a panic; every place is in the text.
    #[test]
    fn mutated_configurations_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 0..12)
    ) {
        let seed = format!(
            "<definitions {NS}>{API}{PROXY}<endpoint name='E'><loadbalance><endpoint key='x'/></loadbalance>\
             </endpoint><localEntry key='l'><x xmlns:p='u'>é&amp;<![CDATA[<]]></x></localEntry>\
             <task name='T'><trigger interval='5'/></task></definitions>"
        );
        let mut bytes = seed.into_bytes();
        for (at, byte, how) in changes {
            if bytes.is_empty() { break; }
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => { bytes.remove(at); }
                _ => bytes.insert(at, byte),
            }
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let loaded = load_text("synapse.xml", &text, Path::new("/nonexistent"), &LoadOptions::default());
        for diagnostic in &loaded.diagnostics {
            human(diagnostic, &loaded.sources, Human::default());
            for (span, _) in &diagnostic.labels {
                prop_assert!(span.end as usize <= text.len());
            }
        }
    }
}
