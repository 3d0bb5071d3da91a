//! Projects and archives from outside: `check`, `explain`, `run` and `migrate` take them as they lie.

mod support;

use std::path::{Path, PathBuf};
use support::{Process, busbar};

const NS: &str = "xmlns='http://ws.apache.org/ns/synapse'";

fn project(name: &str, files: &[(&str, String)]) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("projects").join(name);
    let _ = std::fs::remove_dir_all(&root);
    for (path, text) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("below the root")).expect("created");
        std::fs::write(path, text).expect("written");
    }
    root
}

fn small() -> Vec<(&'static str, String)> {
    let main = |path: &str| -> &'static str { Box::leak(format!("src/main/wso2mi/{path}").into_boxed_str()) };
    vec![
        ("pom.xml", "<project/>".to_owned()),
        (
            main("artifacts/apis/A.xml"),
            format!(
                "<api {NS} name='A' context='/a'><resource methods='GET'><inSequence><payloadFactory media-type='text'>\
                 <format key='resources:texts/hello.txt'/><args/></payloadFactory><respond/></inSequence></resource></api>"
            ),
        ),
        (main("resources/texts/hello.txt"), "hello".to_owned()),
        (
            main("artifacts/proxy-services/Jms.xml"),
            format!(
                "<proxy {NS} name='Jms' transports='jms'><target><inSequence><log><els/></log><drop/></inSequence></target></proxy>"
            ),
        ),
        (
            main("artifacts/proxy-services/Java.xml"),
            format!(
                "<proxy {NS} name='Java'><target><inSequence><class name='a.B'/><respond/></inSequence></target></proxy>"
            ),
        ),
        (
            main("artifacts/sequences/odd.xml"),
            format!("<sequence {NS} name='odd'><log level='custom'>text</log></sequence>"),
        ),
        ("deployment/deployment.toml", "[mediation]\nsynapse.core_threads = 20\nunheard = 1\n".to_owned()),
    ]
}

#[test]
fn a_project_runs_as_it_lies() {
    let mut files = small();
    let definition = "openapi: 3.0.1\ninfo: {title: Written, version: '1'}\npaths: {}\n";
    files.push(("src/main/wso2mi/resources/api-definitions/A.yaml", definition.to_owned()));
    let root = project("runs", &files);
    let path = root.to_str().expect("UTF-8");
    let process = Process::run(&root, &[]);
    assert!(process.ready.contains("artifacts=4"), "{}", process.ready);
    let (status, head, body) = support::ask(process.http(), "GET", "/a", b"").expect("an answer");
    assert_eq!((status, &*body), (200, &b"hello"[..]), "{head}");
    // As an archive of the project has it.
    let (status, head, body) =
        support::ask(process.http(), "GET", "/a?swagger.json", b"").expect("an answer");
    assert!(status == 200 && String::from_utf8_lossy(&body).contains("Written"), "{head}");
    // A step that cannot be executed faults, and nothing else of its artifact does.
    let (status, head, _) =
        support::ask(process.http(), "POST", "/services/Java", b"<a/>").expect("an answer");
    assert_eq!(status, 500, "{head}");
    let explained = busbar(&["explain", path]);
    assert!(String::from_utf8_lossy(&explained.stdout).contains("/a"), "{explained:?}");
}

/// Resources by their keys, values from outside that are not there, and data sources.
#[test]
fn names_that_are_nearly_right_are_said() {
    let steps = "<xslt key='resources:Xslt/order.xslt'/><validate><schema key='gov:/s/ordr.xsd'/><on-fail><drop/></on-fail></validate>\
        <xslt key='nothing-like-it'/><respond/>";
    let files = [
        ("pom.xml", "<project/>".to_owned()),
        (
            "src/main/wso2mi/artifacts/apis/A.xml",
            format!("<api {NS} name='A' context='/a'><resource methods='GET'><inSequence>{steps}</inSequence></resource></api>"),
        ),
        (
            "src/main/wso2mi/artifacts/endpoints/E.xml",
            format!("<endpoint {NS} name='E'><address uri='${{configs.no_such_value}}'/></endpoint>"),
        ),
        (
            "src/main/wso2mi/artifacts/data-sources/D.xml",
            "<datasource><name>D</name><definition type='RDBMS'><configuration><ulr>jdbc:x</ulr></configuration></definition></datasource>"
                .to_owned(),
        ),
        ("src/main/wso2mi/resources/xslt/order.xslt", "<x/>".to_owned()),
        ("src/main/wso2mi/resources/registry/gov/s/order.xsd", "<x/>".to_owned()),
    ];
    let root = project("nearly", &files);
    let checked = busbar(&["check", root.to_str().expect("UTF-8")]);
    let shown = String::from_utf8_lossy(&checked.stdout);
    for wanted in [
        "did you mean `resources:xslt/order.xslt`?",
        "did you mean `gov:s/order.xsd`?",
        "there is no stylesheet `nothing-like-it`",
        "the data source `D` has no `url`",
        "is `ulr` meant to be `url`?",
    ] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    assert_eq!(shown.matches("did you mean").count(), 2, "{shown}");
    assert!(!shown.contains("expression-in-address"), "{shown}");
}

/// As editors of stylesheets write them, and old configurations. What is in other files is not read, and not missing in silence.
#[test]
fn entities_that_a_file_declares_are_read() {
    let entry = Path::new(env!("CARGO_TARGET_TMPDIR")).join("projects/entities/src/main/wso2mi/e.xml");
    let steps = "<xslt key='conf:s.xsl'/><respond/>";
    let resource = |path: &str, steps: &str| {
        format!("<resource methods='POST' uri-template='{path}'><inSequence>{steps}</inSequence></resource>")
    };
    let copy = "<payloadFactory><format><r xmlns=''>$1</r></format><args><arg expression=\"get-property('e')//x\"/></args></payloadFactory>&end;";
    let missing = "<xslt key='conf:t.xsl'/><respond/>";
    let stylesheet = |declared: &str| {
        format!(
            "<!DOCTYPE xsl:stylesheet{declared}>\n<xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>\
             <xsl:template match='/'><r>a&nbsp;b</r></xsl:template></xsl:stylesheet>"
        )
    };
    let files = [
        ("pom.xml", "<project/>".to_owned()),
        (
            "src/main/wso2mi/artifacts/apis/A.xml",
            format!(
                "<!DOCTYPE api [<!ENTITY end '<respond/>'>]>\n<api {NS} name='A' context='/a'>{}{}{}</api>",
                resource("/x", steps),
                resource("/e", copy),
                resource("/m", missing)
            ),
        ),
        (
            "src/main/wso2mi/artifacts/local-entries/e.xml",
            format!("<localEntry {NS} key='e' src='file:{}'/>", entry.display()),
        ),
        ("src/main/wso2mi/e.xml", "<!DOCTYPE e [<!ENTITY v 'value'>]><e><x>&v;</x></e>".to_owned()),
        ("src/main/wso2mi/resources/registry/conf/s.xsl", stylesheet(" [<!ENTITY nbsp '&#160;'>]")),
        ("src/main/wso2mi/resources/registry/conf/t.xsl", stylesheet(" SYSTEM 'html.dtd'")),
    ];
    let root = project("entities", &files);
    let process = Process::run(&root, &[]);
    for (path, expected) in [("/a/x", "<r>a\u{a0}b</r>"), ("/a/e", "<r>value</r>")] {
        let (status, head, body) = support::ask(process.http(), "POST", path, b"<a/>").expect("an answer");
        assert_eq!((status, &*String::from_utf8_lossy(&body)), (200, expected), "{head}");
    }
    let (status, _, _) = support::ask(process.http(), "POST", "/a/m", b"<a/>").expect("an answer");
    assert_eq!(status, 500);
    let checked = busbar(&["check", root.to_str().expect("UTF-8")]);
    let shown = String::from_utf8_lossy(&checked.stdout);
    assert!(shown.contains("`nbsp` is not declared in this file, and other files are not read"), "{shown}");
}

#[test]
fn a_definition_of_integration_studio_is_that_of_its_api() {
    let main = "Configs/src/main";
    let api = format!(
        "<api {NS} name='B' context='/b'><resource methods='GET'><inSequence><respond/></inSequence></resource></api>"
    );
    let definition = "openapi: 3.0.1\ninfo: {title: Written, version: '1'}\npaths: {}\n";
    let files = [
        (format!("{main}/synapse-config/api/B.xml"), api),
        (format!("{main}/resources/metadata/B_swagger.yaml"), definition.to_owned()),
        (format!("{main}/resources/metadata/B_metadata.yaml"), "key: B\n".to_owned()),
        ("Configs/pom.xml".to_owned(), "<project/>".to_owned()),
    ];
    let files: Vec<(&str, String)> = files.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
    let root = project("studio-definition", &files);
    let process = Process::run(&root, &[]);
    let (status, head, body) =
        support::ask(process.http(), "GET", "/b?swagger.json", b"").expect("an answer");
    assert!(status == 200 && String::from_utf8_lossy(&body).contains("Written"), "{head}");
    let checked = busbar(&["check", root.to_str().expect("UTF-8")]);
    let text = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(text.contains("B_metadata.yaml` is not read") && !text.contains("B_swagger"), "{text}");
}

#[test]
fn a_migration_is_reported() {
    let root = project("migrates", &small());
    let path = root.to_str().expect("UTF-8");
    let shown = busbar(&["migrate", path, "--format", "json"]);
    assert_eq!(shown.status.code(), Some(0));
    let report: serde_json::Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    let statuses: Vec<String> = report["artifacts"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| {
            format!("{} {}", entry["name"].as_str().unwrap_or(""), entry["status"].as_str().unwrap_or(""))
        })
        .collect();
    for wanted in ["A runs", "Jms cannot_run", "Java cannot_run", "odd differs"] {
        assert!(statuses.iter().any(|status| status == wanted), "{wanted}: {statuses:?}");
    }
    assert_eq!(report["summary"]["runs"], 1, "{report}");
    assert_eq!(report["artifact_coverage"], 0.5);
    assert_eq!(report["elements"]["class"]["cannot_run"], 1);
    let settings = report["settings"].to_string();
    assert!(settings.contains("mediation.unheard") && settings.contains("core_threads"), "{settings}");
    let shown = String::from_utf8(busbar(&["migrate", path]).stdout).expect("UTF-8");
    assert!(
        shown.contains("4 artifacts: 1 runs, 1 runs with a difference, 0 need a change, 2 cannot run"),
        "{shown}"
    );
    assert!(shown.contains("Jms.xml:1:"), "{shown}");
    let page = String::from_utf8(busbar(&["migrate", path, "--format", "html"]).stdout).expect("UTF-8");
    assert!(
        page.starts_with("<!DOCTYPE html>") && page.contains("cannot run") && !page.contains("<els"),
        "{page}"
    );
    assert_eq!(busbar(&["migrate", "/nonexistent"]).status.code(), Some(1));

    // A data source of the settings is an artifact with a name, and what is wrong with it is told.
    let home = project(
        "migrates-data-sources",
        &[
            (
                "deployment/synapse-configs/default/sequences/S.xml",
                format!("<sequence {NS} name='S'><drop/></sequence>"),
            ),
            (
                "conf/deployment.toml",
                "[[datasource]]\nid = 'Good'\nurl = 'jdbc:h2:a'\n[[datasource]]\nid = 'Bad'\n".to_owned(),
            ),
        ],
    );
    let shown = busbar(&["migrate", home.to_str().expect("UTF-8"), "--format", "json"]).stdout;
    let report: serde_json::Value = serde_json::from_slice(&shown).expect("JSON");
    for (name, status) in [("Good", "runs"), ("Bad", "differs")] {
        let artifacts = report["artifacts"].as_array().expect("a list");
        let one =
            artifacts.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}: {report}"));
        assert_eq!((&one["status"], one["kind"].as_str()), (&status.into(), Some("data source")), "{report}");
        assert_eq!(one["reasons"].as_array().map(Vec::is_empty), Some(status == "runs"), "{report}");
    }

    let circle = support::configuration(
        "migrates-circle",
        "<sequence name='a'><sequence key='b'/></sequence><sequence name='b'><sequence key='a'/></sequence>",
    );
    let shown = busbar(&["migrate", circle.to_str().expect("UTF-8")]).stdout;
    let shown = String::from_utf8(shown).expect("UTF-8");
    assert!(shown.contains("a circle without an end") && shown.contains("1 needs a change"), "{shown}");
}

#[test]
fn an_artifact_in_the_directory_of_another_kind_is_told() {
    let root = project(
        "other-kind",
        &[
            ("pom.xml", "<project/>".to_owned()),
            (
                "src/main/wso2mi/artifacts/sequences/S.xml",
                format!("<sequence {NS} name='S'><drop/></sequence>"),
            ),
            ("src/main/wso2mi/artifacts/templates/E.xml", format!("<localEntry {NS} key='E'>x</localEntry>")),
            ("uses/B.xml", format!("<sequence {NS} name='B'><drop/></sequence>")),
        ],
    );
    let path = root.to_str().expect("UTF-8");
    for verb in ["check", "migrate"] {
        let shown = String::from_utf8(busbar(&[verb, path]).stdout).expect("UTF-8");
        assert!(shown.contains("its directory is that of another kind of artifact"), "{shown}");
        assert!(shown.contains("only those in a directory of artifacts are read"), "{shown}");
    }
}

#[test]
fn what_has_no_effect_is_said() {
    let steps = [
        ("<log xmlns=''><property name='a' value='b'/></log>", "no namespace"),
        ("<filter xpath='//a'><then><drop/></then><els><drop/></els></filter>", "did you mean `else`"),
        ("<filter xpath='//a'><then><drop/></then><then><drop/></then></filter>", "a second `then`"),
        ("<filter xpath='//a'>oops<then><drop/></then></filter>", "text in `filter` is ignored"),
        (
            "<aggregate><completeCondition><messageCount max='abc'/></completeCondition><onComplete expression='//a'><drop/></onComplete></aggregate>",
            "`max` of `messageCount` is not a number",
        ),
        ("<property name='a' type='BOOLEAN' value='maybe'/>", "`maybe` counts as false"),
        ("<variable name='a' type='BOOLEAN' value='maybe'/>", "`maybe` counts as false"),
        (
            "<script language='js'>importPackage(Packages.com.acme); new Thing();</script>",
            "the Java package `com.acme` is not available here",
        ),
        ("<send><endpoint><address uri='jms:/q?a=b'/></endpoint></send>", "no transport `jms`"),
        ("<send><endpoint><address uri='vfs:sftp://h/x'/></endpoint></send>", "no transport `sftp`"),
        ("<send><endpoint><address uri='mailto:a@b.example'/></endpoint></send>", "no transport `mailto`"),
    ];
    for (number, (step, wanted)) in steps.iter().enumerate() {
        let path = support::configuration(
            &format!("silent-{number}"),
            &format!("<sequence name='main'>{step}<drop/></sequence>"),
        );
        let shown = busbar(&["check", path.to_str().expect("UTF-8")]);
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(text.contains(wanted) && text.contains("0 errors"), "{step}: {text}");
    }
    let path = support::configuration(
        "silent-proxy",
        "<proxy name='P' transports='mailto jms'><target><inSequence><drop/></inSequence></target></proxy>",
    );
    let text = String::from_utf8(busbar(&["check", path.to_str().expect("UTF-8")]).stdout).expect("UTF-8");
    assert!(text.contains("no request reaches this proxy: it is offered on mailto, jms only"), "{text}");
}
