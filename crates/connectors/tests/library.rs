//! Operations of libraries, from archives.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use flow::testing::{self, Tested};
use std::io::Write;
use std::path::{Path, PathBuf};
use support::{XML, registry};

const CONNECTOR: &str = r#"<connector><component name="greet" package="org.example"><dependency component="config"/><dependency component="ops"/></component></connector>"#;
const CONFIG: &str = r#"<component name="config" type="synapse/template"><subComponents><component name="init"><file>init.xml</file></component></subComponents></component>"#;
const OPS: &str = r#"<component name="ops" type="synapse/template"><subComponents>
    <component name="hello"><file>hello.xml</file></component><component name="twice"><file>twice.xml</file></component>
    <component name="java"><file>java.xml</file></component><component name="self"><file>self.xml</file></component>
    <component name="data"><file>data.xml</file></component><component name="faulty"><file>faulty.xml</file></component>
    <component name="gone"><file>gone.xml</file></component><component name="broken"><file>broken.xml</file></component></subComponents></component>"#;

fn template(name: &str, inside: &str) -> String {
    format!(r#"<template xmlns="http://ws.apache.org/ns/synapse" name="{name}">{inside}</template>"#)
}

fn files() -> Vec<(&'static str, String)> {
    vec![
        ("connector.xml", CONNECTOR.to_owned()),
        ("config/component.xml", CONFIG.to_owned()),
        ("ops/component.xml", OPS.to_owned()),
        (
            "config/init.xml",
            template(
                "init",
                r#"<parameter name="word"/><sequence><property name="word" expression="$func:word"/></sequence>"#,
            ),
        ),
        (
            "ops/hello.xml",
            template(
                "hello",
                r#"<parameter name="who"/><parameter name="end" defaultValue="!"/><sequence><property name="said" expression="fn:concat($ctx:word, ' ', $func:who, $func:end)"/></sequence>"#,
            ),
        ),
        (
            "ops/twice.xml",
            template(
                "twice",
                r#"<parameter name="who" isMandatory="true"/><sequence><greet.hello><who>{$func:who}</who><end>?</end></greet.hello></sequence>"#,
            ),
        ),
        (
            "ops/java.xml",
            template(
                "java",
                r#"<sequence><filter source="1" regex="1"><then><class name="org.example.Java"/></then></filter></sequence>"#,
            ),
        ),
        (
            "ops/self.xml",
            template(
                "self",
                r#"<parameter name="n"/><sequence><property name="n" expression="$func:n - 1"/>
                <filter xpath="$ctx:n &gt; 0"><then><greet.self><n>{$ctx:n}</n></greet.self><greet.self><n>0</n></greet.self></then></filter></sequence>"#,
            ),
        ),
        (
            "ops/data.xml",
            template(
                "data",
                r#"<sequence><payloadFactory media-type="xml"><format><class name="a"/></format></payloadFactory></sequence>"#,
            ),
        ),
        ("ops/faulty.xml", template("faulty", "<sequence><property/></sequence>")),
        ("ops/broken.xml", "<template".to_owned()),
    ]
}

fn zipped() -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in files() {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("library-{name}"));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(path.join("sequences")).unwrap();
    path
}

/// A configuration with the library and these steps as its main sequence.
fn with(name: &str, place: &str, steps: &str) -> Tested {
    let root = folder(name);
    let write = |path: PathBuf, bytes: &[u8]| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    match place {
        "directory" => files()
            .into_iter()
            .for_each(|(name, text)| write(root.join("synapse-libs/greet").join(name), text.as_bytes())),
        "missing" => {}
        "truncated" => write(root.join("synapse-libs/greet-connector-1.0.0.zip"), &zipped()[..200]),
        _ => write(root.join("synapse-libs/greet-connector-1.0.0.zip"), &zipped()),
    }
    let head = r#"xmlns="http://ws.apache.org/ns/synapse""#;
    write(
        root.join("sequences/main.xml"),
        format!("<sequence {head} name=\"main\">{steps}</sequence>").as_bytes(),
    );
    write(
        root.join("local-entries/own.xml"),
        format!("<localEntry {head} key=\"Own\"><greet.init><word>Hi</word></greet.init></localEntry>")
            .as_bytes(),
    );
    if let "disabled" | "missing" = place {
        let status = if place == "disabled" { "disabled" } else { "enabled" };
        write(
            root.join("imports/greet.xml"),
            format!("<import {head} name=\"greet\" package=\"org.example\" status=\"{status}\"/>").as_bytes(),
        );
    }
    if place == "synapse" {
        let artifacts = r#"<artifacts><artifact name="Lib" package="org.lib"><dependency artifact="parts"/><dependency artifact="none"/></artifact></artifacts>"#;
        let part = r#"<artifact name="parts" type="synapse/template"><subArtifacts><artifact name="one"><file>one.xml</file></artifact>
            <artifact name="java"><file>java.xml</file></artifact></subArtifacts></artifact>"#;
        let one = r#"<parameter name="p"/><sequence><property name="said" expression="$func:p"/></sequence>"#;
        let java = r#"<sequence><class name="org.example.Java"/></sequence>"#;
        for (name, text) in [
            ("artifacts.xml", artifacts.to_owned()),
            ("elsewhere/artifact.xml", part.to_owned()),
            ("elsewhere/one.xml", template("one", one)),
            ("elsewhere/java.xml", template("java", java)),
        ] {
            write(root.join("synapse-libs/Lib").join(name), text.as_bytes());
        }
        write(
            root.join("imports/lib.xml"),
            format!("<import {head} name=\"Lib\" package=\"org.lib\"/>").as_bytes(),
        );
    }
    testing::directory(&registry(), &root)
}

#[test]
fn templates_of_a_library_are_operations() {
    for place in ["zip", "directory"] {
        for (steps, expected) in [
            (
                "<greet.init><word>Hello</word></greet.init><greet.hello><who>{//who}</who></greet.hello>",
                "Hello Ann!",
            ),
            (
                "<greet.hello configKey='Own'><who>${xpath('//who')}</who><end>.</end></greet.hello>",
                "Hi Ann.",
            ),
            ("<greet.twice configKey='Own'><who>Bob</who></greet.twice>", "Hi Bob?"),
        ] {
            let tested = with(place, place, steps);
            assert!(
                tested.found.iter().all(|finding| finding.starts_with("broken-library")
                    || finding.contains("gone")
                    || finding.contains("XML")),
                "{:?}",
                tested.found
            );
            let end = tested.run(&[XML], "<a><who>Ann</who></a>");
            assert_eq!(
                (end.fault(), end.property("said").as_deref()),
                (None, Some(expected)),
                "{place} {steps}"
            );
        }
    }
}

#[test]
fn what_a_library_cannot_do_is_named() {
    for (name, place, steps, wanted) in [
        ("java", "zip", "<greet.java/>", "its template runs the Java class `org.example.Java`"),
        ("none", "zip", "<greet.none/>", "has no such operation"),
        ("off", "disabled", "<greet.hello/>", "is not in use: the `status` of its import is not `enabled`"),
        ("gone", "zip", "<greet.gone/>", "its template in `"),
        ("torn", "zip", "<greet.broken/>", "cannot be read: "),
        (
            "cut",
            "truncated",
            "<greet.hello/>",
            "greet-connector-1.0.0.zip` cannot be read: it is not a readable zip file",
        ),
        (
            "elsewhere",
            "zip",
            "<other.hello/>",
            "no archive of a library `other` is in `synapse-libs` or `connectors`",
        ),
        ("missing", "missing", "<greet.hello/>", "its library is imported, and no archive of `greet` is in"),
    ] {
        let tested =
            with(name, place, &format!("<filter source='1' regex='1'><then>{steps}</then></filter>"));
        assert!(
            tested.found.iter().any(|finding| finding.starts_with("unsupported-connector")),
            "{name}: {:?}",
            tested.found
        );
        assert!(tested.reasons.iter().any(|reason| reason.contains(wanted)), "{name}: {:?}", tested.reasons);
        let fault = tested.run(&[XML], "<a/>").fault().unwrap_or_default();
        assert!(fault.contains("is not executable here"), "{name}: {fault}");
    }
    for (name, steps, wanted) in [
        ("key", "<greet.hello configKey='None'/>", "there is no connection `None`"),
        ("dynamic", "<greet.hello configKey='{//none}'/>", "there is no connection ``"),
        ("faulty", "<greet.faulty/>", "the operation greet.faulty is left out as faulty"),
    ] {
        let tested = with(name, "zip", steps);
        let fault = tested.run(&[XML], "<a/>").fault().unwrap_or_default();
        assert!(fault.contains(wanted), "{name}: {fault} {:?}", tested.found);
    }
    let tested = with("misspelt", "zip", "<greet.hello><wo>x</wo></greet.hello>");
    assert!(
        tested.found.iter().any(|finding| finding.contains("`wo` has no effect inside of `greet.hello`")),
        "{:?}",
        tested.found
    );
    let tested = with("mandatory", "zip", "<greet.twice/>");
    let fault = tested.run(&[XML], "<a/>").fault().unwrap_or_default();
    assert!(fault.contains("the parameter `who` of greet.twice is not given"), "{fault}");
}

#[test]
fn templates_may_call_themselves() {
    let tested = with("again", "zip", "<greet.self><n>3</n></greet.self><greet.self><n>2</n></greet.self>");
    let end = tested.run(&[XML], "<a/>");
    assert_eq!((end.fault(), end.property("n").as_deref()), (None, Some("-1")), "{:?}", tested.found);
    let tested = with("data", "zip", "<greet.data/>");
    assert_eq!(tested.run(&[XML], "<a/>").fault(), None, "{:?}", tested.found);
}

#[test]
fn a_connection_may_be_chosen_by_the_message() {
    let tested = with("chosen", "zip", "<greet.hello configKey='{//key}'><who>Ann</who></greet.hello>");
    let end = tested.run(&[XML], "<a><key>Own</key></a>");
    assert_eq!((end.fault(), end.property("said").as_deref()), (None, Some("Hi Ann!")));
}

#[test]
fn libraries_of_apache_synapse_are_called_by_package_or_name() {
    for (name, steps) in [
        ("target", "<call-template target='org.lib.one'><with-param name='p' value='x'/></call-template>"),
        ("element", "<Lib.one><p>x</p></Lib.one>"),
    ] {
        let tested = with(name, "synapse", steps);
        assert!(tested.found.iter().all(|finding| finding.contains("library")), "{name}: {:?}", tested.found);
        let end = tested.run(&[XML], "<a/>");
        assert_eq!((end.fault(), end.property("said").as_deref()), (None, Some("x")), "{name}");
    }
    for steps in ["<call-template target='org.lib.java'/>", "<Lib.java/>"] {
        let tested = with("lib-java", "synapse", steps);
        assert!(
            tested.reasons.iter().any(|reason| reason.contains("runs the Java class `org.example.Java`")),
            "{:?}",
            tested.reasons
        );
        assert!(tested.run(&[XML], "<a/>").fault().is_some());
    }
}
