//! Projects, homes and archives as they lie on disk.

use busbar_config::{LastGood, LoadOptions, Loaded, load};
use diagnostics::Severity;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use zip::write::SimpleFileOptions;

/// A fresh directory below the target directory.
fn directory(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("layouts").join(name);
    let _ = std::fs::remove_dir_all(&root);
    std::fs::create_dir_all(&root).expect("created");
    for (path, text) in files {
        write(&root.join(path), text.as_bytes());
    }
    root
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().expect("below the root")).expect("created");
    std::fs::write(path, bytes).expect("written");
}

fn zipped(files: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in files {
        zip.start_file(*name, SimpleFileOptions::default()).expect("an entry");
        zip.write_all(text.as_bytes()).expect("written");
    }
    zip.finish().expect("a zip file").into_inner()
}

/// `proxies/P apis/A …`: what was loaded.
fn artifacts(loaded: &Loaded) -> String {
    let configuration = &loaded.configuration;
    let mut all: Vec<String> = Vec::new();
    let mut add = |kind: &str, names: Vec<&str>| {
        all.extend(names.into_iter().map(|name| format!("{kind}/{name}")));
    };
    add("api", configuration.apis.names().collect());
    add("proxy", configuration.proxies.names().collect());
    let sequences = configuration.sequences.iter().filter(|s| !s.built_in);
    add("sequence", sequences.filter_map(|s| s.name.as_deref().map(String::as_str)).collect());
    add("endpoint", configuration.endpoints.names().collect());
    add("entry", configuration.local_entries.names().collect());
    add("template", configuration.sequence_templates.names().collect());
    add("store", configuration.message_stores.names().collect());
    add("task", configuration.tasks.names().collect());
    all.join(" ")
}

/// `severity rule message` of each finding.
fn reported(loaded: &Loaded) -> Vec<String> {
    let shown = |diagnostic: &diagnostics::Diagnostic| {
        format!("{} {} {}", diagnostic.severity.as_str(), diagnostic.rule, diagnostic.message)
    };
    loaded.diagnostics.iter().map(shown).collect()
}

fn resource(loaded: &Loaded, key: &str) -> Option<String> {
    let content = loaded.configuration.content(key).expect("readable")?;
    Some(String::from_utf8_lossy(&content.bytes).into_owned())
}

const NS: &str = "xmlns='http://ws.apache.org/ns/synapse'";

fn api(name: &str) -> String {
    format!(
        "<api {NS} name='{name}' context='/{name}'><resource methods='GET'><inSequence><respond/></inSequence></resource></api>"
    )
}

fn sequence(name: &str) -> String {
    format!("<sequence {NS} name='{name}'><drop/></sequence>")
}

fn proxy(name: &str) -> String {
    format!("<proxy {NS} name='{name}'><target><inSequence><respond/></inSequence></target></proxy>")
}

#[test]
fn modules_of_a_studio_project() {
    let descriptor = "<artifacts><artifact name='A' version='1.0.0' type='synapse/api' serverRole='EnterpriseIntegrator'>\
        <file>src/main/synapse-config/api/A.xml</file></artifact>\
        <artifact name='Old' version='1.0.0' type='synapse/sequence'><file>legacy/Old.xml</file></artifact>\
        <artifact name='Gone' version='1.0.0' type='synapse/sequence'><file>legacy/Gone.xml</file></artifact></artifacts>";
    let resources = "<artifacts><artifact name='x' version='1.0.0' type='registry/resource'><item><file>t.xslt</file>\
        <path>/_system/config/x</path><mediaType>application/xslt+xml</mediaType>\
        <properties><property key='owner' value='me'/></properties></item></artifact>\
        <artifact name='d' version='1.0.0' type='registry/resource'><collection><directory>docs</directory>\
        <path>/_system/governance/docs</path></collection></artifact></artifacts>";
    let root = directory(
        "studio",
        &[
            ("pom.xml", "<project/>"),
            (".project", "<projectDescription/>"),
            ("Configs/pom.xml", "<project/>"),
            ("Configs/artifact.xml", descriptor),
            ("Configs/src/main/synapse-config/api/A.xml", &api("A")),
            ("Configs/src/main/synapse-config/sequences/S.xml", &sequence("S")),
            ("Configs/src/main/synapse-config/sequences/common/T.xml", &sequence("T")),
            (
                "Configs/src/main/synapse-config/local-entries/e.xml",
                &format!("<localEntry {NS} key='e'>v</localEntry>"),
            ),
            (
                "Configs/src/main/synapse-config/complex-endpoints/1545205230452.xml",
                &format!(
                    "<endpoint {NS} name='1545205230452'><loadbalance><endpoint name='a'/></loadbalance></endpoint>"
                ),
            ),
            ("Configs/legacy/Old.xml", &sequence("Old")),
            ("Configs/src/main/resources/metadata/A_swagger.yaml", "openapi: 3.0.1"),
            ("Configs/src/main/resources/metadata/A_metadata.yaml", "key: A"),
            ("Configs/target/capp/artifacts/api/A/A.xml", &api("A")),
            ("Configs/test/resources/mock-services/m.xml", "<mock-service/>"),
            ("Resources/artifact.xml", resources),
            ("Resources/t.xslt", "<t/>"),
            ("Resources/docs/a/one.txt", "one"),
            ("Resources/docs/.meta/~one.xml", "<resource/>"),
            ("CompositeExporter/pom.xml", "<project/>"),
            ("CompositeExporter/target/all_1.0.0.car", "not looked at"),
            ("Connectors/email-connector-1.0.0.zip", "PK\u{5}\u{6}\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
            ("Data/dataservice/D.dbs", "<data name='D'/>"),
            ("Mediators/src/main/java/a/B.java", "class B {}"),
            ("Empty/src/main/java/.gitkeep", ""),
        ],
    );
    let loaded = load(&root, &LoadOptions::default());
    assert_eq!(artifacts(&loaded), "api/A sequence/S sequence/T sequence/Old entry/e");
    assert_eq!(resource(&loaded, "conf:x/t.xslt").as_deref(), Some("<t/>"));
    assert_eq!(resource(&loaded, "/_system/config/x/t.xslt").as_deref(), Some("<t/>"));
    assert_eq!(resource(&loaded, "gov:docs/a/one.txt").as_deref(), Some("one"));
    assert_eq!(loaded.configuration.registry.property("conf:x/t.xslt", "owner").as_deref(), Some("me"));
    let reported = reported(&loaded);
    for wanted in [
        "warning missing-file",
        "(connectors)",
        "`Mediators/src/main/java` is not read (Java code)",
        "(results of a build)",
        "(service metadata)",
        "(tests)",
        "(files for people and tools)",
    ] {
        assert!(reported.iter().any(|line| line.contains(wanted)), "{wanted}: {reported:#?}");
    }
    assert!(
        reported.iter().all(|line| !line.starts_with("error")
            && !line.contains("Empty")
            && !line.contains("(artifacts)")),
        "{reported:#?}"
    );
}

#[test]
fn a_project_of_the_newer_tools() {
    let main = "src/main/wso2mi";
    let at = |path: &str| format!("{main}/{path}");
    let files = [
        ("pom.xml".to_owned(), "<project/>".to_owned()),
        (".env".to_owned(), "# c\nHOST = http://from.env\nexport PORT='81'\n".to_owned()),
        (at("artifacts/apis/A.xml"), api("A")),
        (at("artifacts/proxy-services/P.xml"), proxy("P")),
        (at("artifacts/sequences/S.xml"), sequence("S")),
        (
            at("artifacts/endpoints/E.xml"),
            format!("<endpoint {NS} name='E'><address uri='${{configs.HOST}}'/></endpoint>"),
        ),
        (at("artifacts/data-services/D.dbs"), "<data name='D'/>".to_owned()),
        (at("artifacts/data-sources/D.xml"), "<datasource><name>D</name></datasource>".to_owned()),
        (at("resources/registry/gov/a/b.txt"), "b".to_owned()),
        (at("resources/registry/conf/c.txt"), "c".to_owned()),
        (at("resources/registry/conf/c.txt.properties"), "p=1".to_owned()),
        (at("resources/xslt/x.xsl"), "<x/>".to_owned()),
        (at("resources/api-definitions/A.yaml"), "openapi: 3.0.1".to_owned()),
        (at("resources/metadata/A_metadata.yaml"), "key: A".to_owned()),
        (at("resources/connectors/http-connector.zip"), "PK\u{5}\u{6}".to_owned() + &"\0".repeat(18)),
        (at("resources/connectors/torn-connector.zip"), "PK".to_owned()),
        (at("resources/conf/config.properties"), "HOST:string\nABSENT:string\n".to_owned()),
        ("deployment/deployment.toml".to_owned(), "[server]\nhostname = 'h'\n".to_owned()),
        ("deployment/docker/Dockerfile".to_owned(), "FROM x".to_owned()),
        ("deployment/libs/driver.jar".to_owned(), "PK".to_owned()),
        ("src/test/wso2mi/a-test.xml".to_owned(), "<unit-test/>".to_owned()),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
    let loaded = load(&directory("vscode", &files), &LoadOptions::default());
    assert_eq!(artifacts(&loaded), "api/A proxy/P sequence/S endpoint/E");
    for (key, wanted) in [
        ("gov:a/b.txt", "b"),
        ("a/b.txt", "b"),
        ("conf:c.txt", "c"),
        ("resources:xslt/x.xsl", "<x/>"),
        ("resources:api-definitions/A.yaml", "openapi: 3.0.1"),
    ] {
        assert_eq!(resource(&loaded, key).as_deref(), Some(wanted), "{key}");
    }
    assert_eq!(loaded.configuration.registry.property("conf:c.txt", "p").as_deref(), Some("1"));
    assert_eq!(loaded.configuration.injector.environment("PORT").as_deref(), Some("81"));
    let endpoint = loaded.configuration.endpoints.get("E").expect("loaded");
    assert!(format!("{endpoint:?}").contains("http://from.env"), "{endpoint:?}");
    let reported = reported(&loaded);
    assert!(reported.iter().any(|line| line.contains("`ABSENT` has no value")), "{reported:#?}");
    assert!(
        reported.iter().any(|line| line == "warning broken-library a library cannot be read"),
        "{reported:#?}"
    );
    assert!(reported.iter().all(|line| !line.starts_with("error")), "{reported:#?}");
    assert_eq!(loaded.configuration.settings.len(), 1);
}

const LIBRARIES: &str = "<artifacts><artifact name='mail' version='1.0.0' type='synapse/lib' serverRole='EnterpriseServiceBus'>\
                         <file>mail-connector-1.0.0.zip</file></artifact></artifacts>";

/// A module of a project may have the name of the directory that is the registry elsewhere.
#[test]
fn a_module_with_the_name_registry_is_read_as_a_module() {
    let item = "<artifacts><artifact name='e' version='1' type='registry/resource'><item><file>e.xml</file>\
        <path>/_system/config/endpoints</path></item></artifact></artifacts>";
    let root = directory(
        "module-registry",
        &[
            ("pom.xml", "<project/>"),
            ("flows/pom.xml", "<project/>"),
            ("flows/src/main/synapse-config/sequences/S.xml", &sequence("S")),
            ("registry/pom.xml", "<project/>"),
            ("registry/artifact.xml", item),
            ("registry/e.xml", "<e/>"),
        ],
    );
    let loaded = load(&root, &LoadOptions::default());
    assert_eq!(resource(&loaded, "conf:endpoints/e.xml").as_deref(), Some("<e/>"));
    let findings = reported(&loaded);
    assert!(findings.iter().all(|finding| !finding.starts_with("error")), "{findings:#?}");
    let modules = loaded.diagnostics.iter().flat_map(|found| &found.labels);
    assert!(modules.into_iter().any(|(_, label)| label.contains("`registry/pom.xml`")), "{findings:#?}");
}

/// Descriptors of the newer tools name resources by their paths in the registry; the files lie in the directories of these paths.
#[test]
fn described_resources_lie_where_their_path_says() {
    fn item(file: &str, path: &str) -> String {
        format!(
            "<item><file>{file}</file><path>{path}</path><properties><property key='by' value='{file}'/></properties></item>"
        )
    }
    let artifacts = |items: &[String]| {
        format!(
            "<artifacts><artifact name='a' version='1' type='registry/resource'>{}</artifact></artifacts>",
            items.concat()
        )
    };
    let resources = artifacts(&[
        item("t.xslt", "/_system/governance/mi-resources/deep/xslt"),
        item("top.json", "/_system/governance/mi-resources"),
        item("whole.json", "/_system/governance/mi-resources/json/whole.json"),
        item("old.txt", "/_system/config/texts/"),
        item("none.txt", "/_system/governance/mi-resources/texts"),
        item("m.dmc", "/_system/governance/mi-resources/maps/m"),
        item("m_inputSchema.json", "/_system/governance/mi-resources/maps/m"),
        "<collection><directory>set</directory><path>/_system/governance/mi-resources/set</path></collection>".into(),
    ]);
    let registry = artifacts(&[item("s.xml", "/_system/governance/"), item("e.xml", "/_system/config/a/b")]);
    let root = directory(
        "described",
        &[
            ("pom.xml", "<project/>"),
            ("src/main/wso2mi/artifacts/apis/A.xml", &api("A")),
            ("src/main/wso2mi/resources/artifact.xml", &resources),
            ("src/main/wso2mi/resources/deep/xslt/t.xslt", "<t/>"),
            ("src/main/wso2mi/resources/top.json", "1"),
            ("src/main/wso2mi/resources/maps/m/m.ts", "export function mapFunction(input: A): B {}"),
            ("src/main/wso2mi/resources/json/whole.json", "2"),
            ("src/main/wso2mi/resources/set/one.txt", "one"),
            ("src/main/wso2mi/resources/registry/artifact.xml", &registry),
            ("src/main/wso2mi/resources/registry/gov/s.xml", "<s/>"),
            ("src/main/wso2mi/resources/registry/conf/a/b/e.xml", "<e/>"),
            ("src/main/wso2mi/resources/registry/conf/texts/old.txt", "old"),
        ],
    );
    let loaded = load(&root, &LoadOptions::default());
    for (key, content, by) in [
        ("resources:deep/xslt/t.xslt", "<t/>", Some("t.xslt")),
        ("gov:mi-resources/top.json", "1", Some("top.json")),
        ("resources:json/whole.json", "2", Some("whole.json")),
        ("conf:texts/old.txt", "old", Some("old.txt")),
        ("resources:set/one.txt", "one", None),
        ("resources:maps/m/m.ts", "export function mapFunction(input: A): B {}", None),
        ("gov:s.xml", "<s/>", Some("s.xml")),
        ("conf:a/b/e.xml", "<e/>", Some("e.xml")),
    ] {
        assert_eq!(resource(&loaded, key).as_deref(), Some(content), "{key}");
        assert_eq!(loaded.configuration.registry.property(key, "by").as_deref(), by, "{key}");
    }
    let missing: Vec<String> =
        reported(&loaded).into_iter().filter(|line| !line.contains("not-read")).collect();
    assert_eq!(missing, ["warning missing-file the resource `none.txt` is not there"]);
}

/// A repository may hold a project twice, or what a build made of it: the same artifact in another file is no second artifact.
#[test]
fn copies_of_a_file_are_one_artifact() {
    let changed = api("B").replace("<respond/>", "<drop/>");
    let copy = format!("{}\r\n", api("A"));
    let root = directory(
        "copies",
        &[
            ("one/src/main/synapse-config/api/A.xml", &api("A")),
            ("one/src/main/synapse-config/api/B.xml", &api("B")),
            ("one/src/main/synapse-config/sequences/S.xml", &sequence("S")),
            ("two/src/main/synapse-config/api/A.xml", &copy),
            ("two/src/main/synapse-config/api/B.xml", &changed),
            ("two/src/main/synapse-config/sequences/S.xml", &sequence("S")),
        ],
    );
    let loaded = load(&root, &LoadOptions::default());
    assert_eq!(artifacts(&loaded), "api/A api/B sequence/S");
    assert_eq!(
        reported(&loaded),
        [
            "warning duplicate-key the sequence `S` is in two files with the same content",
            "warning duplicate-key the API `A` is in two files with the same content",
            "error duplicate-context two APIs have the context `/B`",
        ]
    );
    assert_eq!(loaded.faulty.len(), 1);
}

#[test]
fn spellings_of_directories_and_files() {
    let text = sequence("S2");
    let mut wide: Vec<u8> = vec![0xff, 0xfe];
    wide.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    let root = directory(
        "spellings",
        &[
            ("proxy-service/P.XML", &proxy("P")),
            ("apis/v1/A-1.0.0.xml", &format!("\u{feff}{}", api("A"))),
            ("sequences/S.xml", &sequence("S")),
            ("Sequence/T.xml", &sequence("T")),
            ("misc/stray.xml", &sequence("stray")),
            ("misc/data.xml", "<data-of-mine/>"),
            ("misc/x.unknown", ""),
            ("sequences/.hidden.xml", &sequence("hidden")),
            ("apis/._A.xml", "\0\u{5}\u{16}\u{7}"),
            (".stray.xml", &sequence("hidden")),
            ("libraries/artifact.xml", LIBRARIES),
        ],
    );
    write(&root.join("sequences/wide.xml"), &wide);
    write(&root.join("sequences/latin.xml"), b"<?xml version='1.0' encoding='ISO-8859-1'?><sequence xmlns='http://ws.apache.org/ns/synapse' name='caf\xe9'/>");
    let loaded = load(&root, &LoadOptions::default());
    assert_eq!(artifacts(&loaded), "api/A proxy/P sequence/T sequence/S sequence/caf\u{e9} sequence/S2");
    let reported = reported(&loaded);
    for wanted in [
        "`misc/stray.xml` is not read (artifacts)",
        "`misc/data.xml` is not read (XML files)",
        "`misc/x.unknown` is not read (files)",
        "note not-read 3 paths are not read (files for people and tools)",
        "missing-file the library `mail-connector-1.0.0.zip` is not there",
    ] {
        assert!(reported.iter().any(|line| line.contains(wanted)), "{wanted}: {reported:#?}");
    }
    // Where nothing else is, artifacts count wherever they lie.
    let root =
        directory("anywhere", &[("a/one.xml", &sequence("one")), ("two.XML", &proxy("two")), ("n.md", "")]);
    assert_eq!(artifacts(&load(&root, &LoadOptions::default())), "proxy/two sequence/one");
    // An imported directory with a common name is not taken for artifacts by its name alone.
    let root = directory("common", &[("src/api/web.xml", "<web-app/>"), ("sequences/S.xml", &sequence("S"))]);
    let loaded = load(&root, &LoadOptions::default());
    assert_eq!(artifacts(&loaded), "sequence/S");
    assert!(!loaded.diagnostics.has_errors(), "{:?}", loaded.diagnostics);
}

#[test]
fn homes_of_servers() {
    let server = "repository/deployment/server";
    let at = |path: &str| format!("{server}/{path}");
    let files = [
        (at("synapse-configs/default/api/A.xml"), api("A")),
        (at("synapse-configs/default/sequences/sub/S.xml"), sequence("S")),
        (at("synapse-configs/default/proxy-service/P.xml"), proxy("P")),
        (at("synapse-configs/default/sequences/old.XML"), sequence("old")),
        (at("synapse-configs/other/api/B.xml"), api("B")),
        (at("dataservices/D.dbs"), "<data name='D'/>".to_owned()),
        (at("webapps/w.war"), String::new()),
        (at("carbonapps/readme.txt"), String::new()),
        ("conf/deployment.toml".to_owned(), String::new()),
        ("conf/synapse.properties".to_owned(), String::new()),
        ("conf/file.properties".to_owned(), "HOST=http://h".to_owned()),
        ("conf/log4j2.properties".to_owned(), String::new()),
        ("conf/axis2/axis2.xml".to_owned(), "<axisconfig/>".to_owned()),
        ("registry/config/c.txt".to_owned(), "c".to_owned()),
        ("bin/start.sh".to_owned(), String::new()),
        ("lib/a.jar".to_owned(), String::new()),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
    let root = directory("home", &files);
    write(&root.join(at("carbonapps/app_1.0.0.car")), &zipped(&application("App", &[("C", &sequence("C"))])));
    let loaded = load(&root, &LoadOptions::default());
    assert_eq!(artifacts(&loaded), "api/A sequence/C");
    assert_eq!(resource(&loaded, "conf:c.txt").as_deref(), Some("c"));
    assert_eq!(loaded.configuration.injector.property("HOST"), Some("http://h"));
    assert_eq!(loaded.configuration.settings.len(), 3, "{:?}", loaded.configuration.settings);
    let reported = reported(&loaded);
    for wanted in [
        "(artifacts): a server reads only names that end with .xml in small letters",
        "(transports of the server): of axis2.xml only",
        "(tenants)",
        "(web applications",
        "(parts of the server)",
        "(configuration of other parts",
    ] {
        assert!(reported.iter().any(|line| line.contains(wanted)), "{wanted}: {reported:#?}");
    }
    let root = directory(
        "synapse-home",
        &[
            ("repository/conf/synapse-config/proxy-services/P.xml", &proxy("P")),
            ("repository/conf/synapse.properties", ""),
            ("bin/synapse.sh", ""),
        ],
    );
    assert_eq!(artifacts(&load(&root, &LoadOptions::default())), "proxy/P");
}

#[test]
fn data_sources_come_from_everywhere() {
    let one = |name: &str, url: &str| {
        format!(
            "<datasource><name>{name}</name><jndiConfig><name>jdbc/{name}</name></jndiConfig><definition type='RDBMS'>\
             <configuration><url>{url}</url><password svns:secretAlias='{name}.pw' xmlns:svns='http://org.wso2.securevault/configuration'/>\
             </configuration></definition></datasource>"
        )
    };
    let server = "repository/deployment/server/synapse-configs/default/sequences/S.xml";
    let list = format!(
        "<datasources-configuration><providers/><datasources>{}{}</datasources></datasources-configuration>",
        one("A", "jdbc:h2:a"),
        one("B", "b")
    );
    let settings = "[[datasource]]\nid = 'C'\nurl = 'c'\nusername = 'u'\npassword = '$secret{c}'\ndriver = 'd'\n\
                    [datasource.pool_options]\nmaxActive = 7\n[[datasource]]\nid = 'D'\n";
    let home = directory(
        "data-sources-home",
        &[
            (server, &sequence("S")),
            ("conf/datasources/master-datasources.xml", &list),
            ("conf/deployment.toml", settings),
        ],
    );
    let project = directory(
        "data-sources-project",
        &[
            ("pom.xml", "<project/>"),
            ("src/main/wso2mi/artifacts/sequences/S.xml", &sequence("S")),
            ("src/main/wso2mi/artifacts/data-sources/A.xml", &one("A", "a")),
        ],
    );
    let synapse = directory(
        "data-sources-project-old",
        &[("pom.xml", "<project/>"), ("Module/datasource/A.xml", &one("A", "a"))],
    );
    // A source for distributed transactions has its address among the options of the driver.
    let distributed = directory(
        "data-sources-distributed",
        &[
            ("pom.xml", "<project/>"),
            (
                "Module/datasource/X.xml",
                "<datasource><name>X</name><definition type='RDBMS'><configuration>\
                 <dataSourceClassName>com.atomikos.jdbc.AtomikosDataSourceBean</dataSourceClassName><dataSourceProps>\
                 <property name='xaProperties.user'>u</property><property name='xaProperties.url'>jdbc:mysql://h/d</property>\
                 </dataSourceProps></configuration></definition></datasource>",
            ),
        ],
    );
    let loaded = load(&distributed, &LoadOptions::default());
    let source = loaded.configuration.data_sources.get("X").expect("the source");
    assert_eq!(source.value(&["url"]).map(|value| &*value.value), Some("jdbc:mysql://h/d"));
    assert_eq!(source.value(&["user"]).map(|value| &*value.value), Some("u"));
    for (root, names) in [(home, "A B C D"), (project, "A"), (synapse, "A")] {
        let loaded = load(&root, &LoadOptions::default());
        let sources = &loaded.configuration.data_sources;
        assert_eq!(sources.names().collect::<Vec<_>>().join(" "), names, "{:?}", loaded.diagnostics);
        let first = sources.get("A").unwrap();
        assert!(first.is_named("A") && first.is_named("java:comp/env/jdbc/A") && !first.is_named("B"));
        assert_eq!(first.value(&["password"]).map(|value| &*value.value), Some("$secret{A.pw}"));
        let without_url =
            reported(&loaded).iter().any(|line| line.contains("the data source `D` has no `url`"));
        assert_eq!(without_url, sources.get("D").is_some(), "{:?}", loaded.diagnostics);
        if let Some(last) = sources.get("C") {
            assert!(last.is_named("jdbc/C"));
            assert_eq!(last.value(&["MAXACTIVE"]).map(|value| &*value.value), Some("7"));
            assert_eq!(last.value(&["driverClassName"]).map(|value| &*value.value), Some("d"));
        }
        assert!(!loaded.diagnostics.has_errors(), "{:?}", loaded.diagnostics);
    }
}

#[test]
fn modules_of_a_build_lie_beside_artifacts() {
    let root = directory(
        "modules",
        &[
            ("proxy-services/P.xml", &proxy("P")),
            ("proxy-services/exporter/pom.xml", "<project xmlns='http://maven.apache.org/POM/4.0.0'/>"),
        ],
    );
    let loaded = load(&root, &LoadOptions::default());
    assert_eq!(artifacts(&loaded), "proxy/P");
    assert!(reported(&loaded).iter().all(|line| line.starts_with("note")), "{:#?}", reported(&loaded));
}

#[test]
fn what_a_server_has_unpacked_is_no_second_deployment() {
    let unpacked = "server/tmp/carbonapps/-1234/1621700718599App_1.0.0.car";
    let files = [
        ("Configs/src/main/synapse-config/api/A.xml".to_owned(), api("A")),
        (format!("{unpacked}/A_1.0.0/A-1.0.0.xml"), api("A")),
        (
            format!("{unpacked}/A_1.0.0/artifact.xml"),
            "<artifact name='A' version='1.0.0' type='synapse/api'><file>A-1.0.0.xml</file></artifact>".to_owned(),
        ),
        (
            format!("{unpacked}/artifacts.xml"),
            "<artifacts><artifact name='App' version='1.0.0' type='carbon/application'><dependency artifact='A' version='1.0.0'/></artifact></artifacts>".to_owned(),
        ),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
    let loaded = load(&directory("unpacked", &files), &LoadOptions::default());
    assert_eq!(artifacts(&loaded), "api/A");
    let reported = reported(&loaded);
    assert!(reported.iter().all(|line| !line.starts_with("error")), "{reported:#?}");
    assert!(
        reported.iter().any(|line| line.contains("(archives that a server has unpacked)")),
        "{reported:#?}"
    );
}

/// The files of an archive with these sequences.
fn application<'a>(name: &str, members: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let dependencies: String = members
        .iter()
        .map(|(member, _)| format!("<dependency artifact='{member}' version='1.0.0' include='true' serverRole='EnterpriseServiceBus'/>"))
        .collect();
    let mut files = vec![(
        "artifacts.xml",
        leak(format!(
            "<artifacts><artifact name='{name}' version='1.0.0' type='carbon/application'>{dependencies}</artifact></artifacts>"
        )) as &str,
    )];
    for (member, text) in members {
        let descriptor = format!(
            "<artifact name='{member}' version='1.0.0' type='synapse/sequence' serverRole='EnterpriseServiceBus'><file>{member}-1.0.0.xml</file></artifact>"
        );
        files.push((leak(format!("{member}_1.0.0/artifact.xml")), leak(descriptor)));
        files.push((leak(format!("{member}_1.0.0/{member}-1.0.0.xml")), text));
    }
    files
}

#[test]
fn archives_bring_artifacts_and_resources() {
    let (first, main) = (sequence("first"), sequence("main"));
    let mut files = application("App", &[("first", &first), ("main", &main)]);
    files[0].1 = "<artifacts><artifact name='App' version='1.0.0' type='carbon/application'>\
        <dependency artifact='first' version='1.0.0' include='true' serverRole='EnterpriseServiceBus'/>\
        <dependency artifact='main' version='1.0.0' include='true'/>\
        <dependency artifact='r' version='1.0.0' include='true' serverRole='EnterpriseIntegrator'/>\
        <dependency artifact='gateway' version='1.0.0' include='true' serverRole='GovernanceRegistry'/>\
        <dependency artifact='jar' version='1.0.0' include='true'/></artifact></artifacts>";
    files.extend([
        ("r_1.0.0/artifact.xml", "<artifact name='r' version='1.0.0' type='registry/resource'><file>registry-info.xml</file></artifact>"),
        (
            "r_1.0.0/registry-info.xml",
            "<resources><item><file>t.xslt</file><path>/_system/config/x</path><properties><property key='k' value='v'/></properties></item>\
             <collection><directory>d</directory><path>/_system/governance/d</path></collection></resources>",
        ),
        ("r_1.0.0/resources/t.xslt", "<t/>"),
        ("r_1.0.0/resources/d/sub/one.txt", "one"),
        ("r_1.0.0/resources/d/.meta/~one.xml", "<m/>"),
        ("jar_1.0.0/artifact.xml", "<artifact name='jar' version='1.0.0' type='lib/synapse/mediator'><file>m.jar</file></artifact>"),
        ("jar_1.0.0/m.jar", ""),
        ("metadata/A_swagger_1.0.0/artifact.xml", "<artifact name='A_swagger' version='1.0.0' type='synapse/metadata'><file>s.yaml</file></artifact>"),
    ]);
    let root = directory("car", &[("sequences/main.xml", &main)]);
    write(&root.join("app.car"), &zipped(&files));
    let unpacked = directory("unpacked", &files);
    for (path, whole) in [(root.join("app.car"), true), (unpacked, true), (root, false)] {
        let loaded = load(&path, &LoadOptions::default());
        assert_eq!(artifacts(&loaded).split(' ').count(), 2, "{}: {:?}", path.display(), loaded.diagnostics);
        let main = loaded.configuration.sequences.get("main").expect("there");
        let place = main.span.place(&loaded.sources);
        assert!(place.contains("main-1.0.0.xml"), "the archive's goes before: {place}");
        assert_eq!(resource(&loaded, "conf:x/t.xslt").as_deref(), Some("<t/>"));
        assert_eq!(resource(&loaded, "gov:d/sub/one.txt").as_deref(), Some("one"));
        assert_eq!(loaded.configuration.registry.property("conf:x/t.xslt", "k").as_deref(), Some("v"));
        assert_eq!(resource(&loaded, "gov:d/.meta/~one.xml"), None);
        let reported = reported(&loaded);
        assert!(reported.iter().any(|line| line.contains("other-role")), "{reported:#?}");
        assert!(reported.iter().any(|line| line.contains("(Java code)")), "{reported:#?}");
        assert!(reported.iter().any(|line| line.contains("(API definitions)")), "{reported:#?}");
        assert!(!loaded.diagnostics.has_errors(), "{whole} {reported:#?}");
    }
}

/// As in Synapse; a registry whose `synapse.xml` is the file itself brings nothing.
#[test]
fn a_registry_and_nothing_else_is_a_configuration_in_the_registry() {
    let registry = |root: &str| {
        format!(
            "<definitions {NS}><registry provider='org.apache.synapse.registry.url.SimpleURLRegistry'>\
             <parameter name='root'>file:{root}</parameter></registry>{}</definitions>",
            if root == "./more" { sequence("s") } else { String::new() }
        )
    };
    let inner = format!("<definitions {NS}>{}</definitions>", sequence("inner"));
    for (root, expected) in [("./resources", "sequence/inner"), ("./", ""), ("./more", "sequence/s")] {
        let directory = directory("in-registry", &[]);
        write(&directory.join("synapse.xml"), registry(root).as_bytes());
        for other in ["resources", "more"] {
            write(&directory.join(other).join("synapse.xml"), inner.as_bytes());
        }
        let loaded = load(&directory.join("synapse.xml"), &LoadOptions::default());
        assert_eq!(artifacts(&loaded), expected, "{root} {:#?}", reported(&loaded));
        assert!(!loaded.diagnostics.has_errors(), "{root} {:#?}", reported(&loaded));
    }
}

#[test]
fn archives_are_taken_as_a_whole() {
    let (good, other) = (sequence("good"), sequence("other"));
    let bad = format!("<sequence {NS}><drop/></sequence>");
    let cases: [(&str, Vec<u8>, &str); 7] = [
        ("faulty", zipped(&application("Faulty", &[("good", &good), ("bad", &bad)])), "faulty-archive"),
        (
            "missing",
            {
                let mut files = application("Missing", &[("good", &good), ("gone", &other)]);
                files.retain(|(name, _)| !name.starts_with("gone"));
                zipped(&files)
            },
            "missing-dependency",
        ),
        (
            "truncated",
            {
                let mut bytes = zipped(&application("T", &[("good", &good)]));
                bytes.truncate(bytes.len() / 2);
                bytes
            },
            "broken-archive",
        ),
        ("no-zip", b"hello".to_vec(), "broken-archive"),
        ("no-descriptor", zipped(&[("a.xml", "<a/>")]), "broken-archive"),
        ("outside", zipped(&[("../../evil.xml", "<a/>")]), "broken-archive"),
        ("broken-descriptor", zipped(&[("artifacts.xml", "<artifacts>")]), "xml-syntax"),
    ];
    for (name, bytes, rule) in cases {
        let root = directory(&format!("whole-{name}"), &[]);
        write(&root.join("a.car"), &bytes);
        write(&root.join("b.car"), &zipped(&application("B", &[("other", &other)])));
        let loaded = load(&root, &LoadOptions::default());
        assert_eq!(artifacts(&loaded), "sequence/other", "{name}: {:#?}", reported(&loaded));
        assert!(
            loaded.diagnostics.iter().any(|d| d.rule == rule && d.severity == Severity::Error),
            "{name}: {:#?}",
            reported(&loaded)
        );
    }
    // A folder of an archive in an archive.
    let deeper: Vec<(String, &str)> = application("D", &[("good", &good)])
        .into_iter()
        .map(|(name, text)| (format!("D_1/{name}"), text))
        .collect();
    let deeper: Vec<(&str, &str)> = deeper.iter().map(|(name, text)| (&**name, *text)).collect();
    let root = directory("whole-deeper", &[]);
    write(&root.join("a.car"), &zipped(&deeper));
    let loaded = load(&root, &LoadOptions::default());
    let labels: Vec<&str> =
        loaded.diagnostics.iter().flat_map(|found| &found.labels).map(|(_, text)| &**text).collect();
    assert!(labels.iter().any(|label| label.contains("`D_1/` in it has such a file")), "{labels:?}");
    // The same archive twice, and two with the same artifact: the first by name stays.
    let root = directory("whole-twice", &[]);
    write(&root.join("a.car"), &zipped(&application("A", &[("good", &good)])));
    write(&root.join("b.car"), &zipped(&application("A", &[("other", &other)])));
    write(&root.join("c.car"), &zipped(&application("C", &[("other", &other), ("good", &good)])));
    let loaded = load(&root, &LoadOptions::default());
    assert_eq!(artifacts(&loaded), "sequence/good", "{:#?}", reported(&loaded));
    let faulty = ["archive b.car", "sequence good", "archive c.car", "sequence other"];
    assert_eq!(held(&loaded), faulty.map(|line| format!("{line} is left out")));
}

#[test]
fn bombs_and_loops_have_bounds() {
    // 80 MiB of one byte, in 80 KiB.
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    for (name, text) in application("Bomb", &[("s", ""), ("t", "")]) {
        zip.start_file(name, options).expect("an entry");
        if name.ends_with("-1.0.0.xml") {
            let part = vec![b' '; 1 << 20];
            (0..80).for_each(|_| zip.write_all(&part).expect("written"));
        } else {
            zip.write_all(text.as_bytes()).expect("written");
        }
    }
    let root = directory("bomb", &[("sequences/S.xml", &sequence("S"))]);
    write(&root.join("bomb.car"), &zip.finish().expect("a zip file").into_inner());
    std::os::unix::fs::symlink("..", root.join("sequences/loop")).expect("a link");
    std::os::unix::fs::symlink("gone.xml", root.join("sequences/nowhere.xml")).expect("a link");
    let pipe = std::process::Command::new("mkfifo").arg(root.join("sequences/pipe.xml")).status();
    assert!(pipe.expect("mkfifo").success());
    std::os::unix::fs::symlink("itself.xml", root.join("sequences/itself.xml")).expect("a link");
    let odd = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"x-\xff.xml");
    write(&root.join("sequences").join(odd), sequence("odd").as_bytes());
    let loaded = load(&root, &LoadOptions::default());
    assert_eq!(artifacts(&loaded), "sequence/S sequence/odd");
    let reported = reported(&loaded);
    // The second one is not even looked at.
    assert_eq!(reported.iter().filter(|line| line.contains("more than 64 MiB")).count(), 1, "{reported:#?}");
    assert!(reported.iter().any(|line| line.contains("a broken link")), "{reported:#?}");
    assert!(reported.iter().any(|line| line.contains("lead in a circle")), "{reported:#?}");
    assert!(reported.iter().any(|line| line.contains("it is not a file")), "{reported:#?}");
}

#[test]
fn many_files_are_summed_up() {
    let root = directory("many", &[("sequences/S.xml", &sequence("S"))]);
    for number in 0..10_000 {
        std::fs::write(root.join(format!("sequences/{number}.dat")), "").expect("written");
    }
    let loaded = load(&root, &LoadOptions::default());
    assert_eq!(
        reported(&loaded),
        [
            "warning not-read 10000 paths are not read (files): their kind is unknown, and no artifact refers to them"
        ]
    );
}

#[test]
fn a_data_service_in_a_file_of_another_kind_is_named() {
    let service = "<data name='S'><query id='q'/></data>";
    let files = [
        ("sequences/S.xml", &*sequence("S")),
        ("data-services/S.xml", service),
        ("data-services/Plain.xml", "<data/>"),
    ];
    let loaded = load(&directory("dbs", &files), &LoadOptions::default());
    assert_eq!(
        reported(&loaded),
        [
            "warning not-read `data-services/S.xml` is not read (data services): the name of the file of a data service ends with .dbs: rename it",
            "warning not-read `data-services/Plain.xml` is not read (files): their kind is unknown, and no artifact refers to them"
        ]
    );
}

#[test]
fn a_data_service_may_be_in_a_namespace() {
    let service = "<data name='S' xmlns='urn:of-the-tools'><query id='q' useConfig='c'><sql>SELECT 1</sql></query><config id='c'/></data>";
    let loaded = load(&directory("namespaced", &[("dataservices/S.dbs", service)]), &LoadOptions::default());
    assert_eq!(reported(&loaded), ["warning wrong-namespace `data` is in the namespace `urn:of-the-tools`"]);
    assert_eq!(loaded.configuration.data_services.names().collect::<Vec<_>>(), ["S"]);
}

/// A reload: what is in force afterwards, and the faulty ones with whether they are held.
fn reload(root: &Path, last: &LastGood) -> (Loaded, LastGood) {
    let options = LoadOptions { sources: last.sources().clone(), ..LoadOptions::default() };
    let mut loaded = load(root, &options);
    loaded.configuration.fall_back(&mut loaded.faulty, &loaded.sources, last, true);
    let good = LastGood::new(loaded.configuration.clone(), loaded.sources.clone(), &[]);
    (loaded, good)
}

fn held(loaded: &Loaded) -> Vec<String> {
    let shown = |faulty: &busbar_config::FaultyArtifact| {
        let name = faulty.name.as_deref().unwrap_or_default();
        let file = Path::new(name).file_name().unwrap_or_default().to_string_lossy();
        format!("{} {file} {}", faulty.kind, if faulty.held { "stays" } else { "is left out" })
    };
    loaded.faulty.iter().map(shown).collect()
}

/// An archive with these sequences and one resource, `conf:x/t.txt`.
fn with_resource(name: &str, members: &[(&str, &str)], resource: &str) -> Vec<u8> {
    let mut files = application(name, members);
    let dependency = "<dependency artifact='r' version='1.0.0' include='true'/></artifact>";
    let listed = files[0].1.replace("</artifact>", dependency);
    files[0].1 = &listed;
    files.extend([
        (
            "r_1.0.0/artifact.xml",
            "<artifact name='r' version='1.0.0' type='registry/resource'><file>registry-info.xml</file></artifact>",
        ),
        (
            "r_1.0.0/registry-info.xml",
            "<resources><item><file>t.txt</file><path>/_system/config/x</path></item></resources>",
        ),
        ("r_1.0.0/resources/t.txt", resource),
    ]);
    zipped(&files)
}

#[test]
fn a_refused_archive_stays_as_it_was() {
    let (first, second, changed, bad) =
        (sequence("first"), sequence("second"), proxy("first"), format!("<sequence {NS}><drop/></sequence>"));
    let root = directory(
        "refused",
        &[("sequences/own.xml", &sequence("own")), ("sequences/main.xml", &sequence("main"))],
    );
    let car = root.join("app.car");
    let main = sequence("main");
    let good = with_resource("App", &[("first", &first), ("second", &second), ("main", &main)], "one");
    write(&car, &good);
    let loaded = load(&root, &LoadOptions::default());
    let all = "sequence/own sequence/first sequence/second sequence/main";
    assert_eq!(artifacts(&loaded), all, "{:#?}", reported(&loaded));
    let mut last = LastGood::new(loaded.configuration, loaded.sources, &[]);
    let versions: [(&str, Vec<u8>, &[&str]); 5] = [
        // A copy in progress.
        ("truncated", good[..900].to_vec(), &["archive app.car stays"]),
        ("empty", Vec::new(), &["archive app.car stays"]),
        (
            "a faulty artifact",
            with_resource("App", &[("first", &changed), ("second", &second), ("third", &first)], "two"),
            &[
                "sequence first-1.0.0 stays",
                "archive app.car stays",
                "sequence second stays",
                "sequence first stays",
            ],
        ),
        (
            "a new faulty artifact",
            with_resource("App", &[("first", &first), ("new", &bad)], "two"),
            &["sequence  is left out", "archive app.car stays", "sequence first stays"],
        ),
        ("no archive", b"hello".to_vec(), &["archive app.car stays"]),
    ];
    for (case, bytes, faulty) in versions {
        write(&car, &bytes);
        let (loaded, good) = reload(&root, &last);
        let mut names: Vec<String> = artifacts(&loaded).split(' ').map(str::to_owned).collect();
        names.sort();
        assert_eq!(names.join(" "), "sequence/first sequence/main sequence/own sequence/second", "{case}");
        assert_eq!(resource(&loaded, "conf:x/t.txt").as_deref(), Some("one"), "{case}");
        let main = loaded.configuration.sequences.get("main").expect("there").span.place(&loaded.sources);
        assert!(main.contains("app.car"), "{case}: {main}");
        assert_eq!(held(&loaded), faulty, "{case}");
        last = good;
    }
    // What another artifact has taken is that one's; the archive comes back as a whole when it is mended.
    write(&car, b"");
    write(&root.join("sequences/first.xml"), first.as_bytes());
    let (loaded, good) = reload(&root, &last);
    let place = loaded.configuration.sequences.get("first").expect("there").span.place(&loaded.sources);
    assert!(place.contains("sequences/first.xml"), "{place}");
    assert!(loaded.configuration.sequences.get("second").is_some());
    last = good;
    // A renamed file is the same archive; one that is gone is gone.
    std::fs::remove_file(&car).expect("removed");
    std::fs::remove_file(root.join("sequences/first.xml")).expect("removed");
    write(&root.join("app-2.car"), &with_resource("App", &[("second", &second), ("new", &bad)], "two"));
    let (loaded, good) = reload(&root, &last);
    assert_eq!(held(&loaded), ["sequence  is left out", "archive app-2.car stays", "sequence second stays"]);
    assert_eq!(resource(&loaded, "conf:x/t.txt").as_deref(), Some("one"));
    std::fs::remove_file(root.join("app-2.car")).expect("removed");
    let (loaded, _) = reload(&root, &good);
    assert_eq!(
        (artifacts(&loaded).as_str(), resource(&loaded, "conf:x/t.txt")),
        ("sequence/main sequence/own", None)
    );
}

#[test]
fn the_server_has_its_main_back_from_a_refused_archive() {
    let (main, bad) = (sequence("main"), format!("<sequence {NS}><drop/></sequence>"));
    let root = directory("main-back", &[("sequences/main.xml", &main)]);
    write(&root.join("a.car"), &zipped(&application("A", &[("main", &main), ("bad", &bad)])));
    let endpoint = format!("<sequence {NS} name='main'><log/></sequence>");
    write(&root.join("b.car"), &zipped(&application("B", &[("main", &endpoint)])));
    let loaded = load(&root, &LoadOptions::default());
    assert_eq!(artifacts(&loaded), "sequence/main", "{:#?}", reported(&loaded));
    let place = loaded.configuration.sequences.get("main").expect("there").span.place(&loaded.sources);
    assert!(place.contains("b.car"), "{place}");
    // The artifact that caused the refusal is named as well: requests for it are not for nobody.
    assert_eq!(
        held(&loaded),
        ["sequence  is left out", "archive a.car is left out", "sequence main is left out"]
    );
    // Of two in one archive none takes the place of the other in silence.
    let files = application("A", &[("main", &main), ("other", &main)]);
    let root = directory("main-twice", &[]);
    write(&root.join("a.car"), &zipped(&files));
    let loaded = load(&root, &LoadOptions::default());
    assert_eq!(artifacts(&loaded), "", "{:#?}", reported(&loaded));
    assert!(reported(&loaded).iter().any(|line| line.contains("duplicate-key")), "{:#?}", reported(&loaded));
}

#[test]
fn descriptors_are_read_as_far_as_they_are_good() {
    let good = sequence("good");
    let mut files = application("App", &[("good", &good)]);
    files.push(("metadata.xml", "<artifacts>"));
    let twice = files[0]
        .1
        .replace("</artifact>", "<dependency artifact='good' version='1.0.0' include='true'/></artifact>");
    files[0].1 = &twice;
    let root = directory("descriptors", &[]);
    write(&root.join("a.car"), &zipped(&files));
    let loaded = load(&root, &LoadOptions::default());
    assert_eq!(artifacts(&loaded), "sequence/good", "{:#?}", reported(&loaded));
    assert!(!loaded.diagnostics.has_errors(), "{:#?}", reported(&loaded));
    assert!(
        reported(&loaded).iter().any(|line| line.contains("is listed twice")),
        "{:#?}",
        reported(&loaded)
    );
}

#[test]
fn links_lead_to_the_same_files_more_than_once() {
    let main = "src/main/wso2mi";
    let (sequences, text) =
        (format!("{main}/artifacts/sequences/S.xml"), format!("{main}/resources/one/t.txt"));
    let root = directory("links", &[(&sequences, &sequence("S")), (&text, "one")]);
    std::os::unix::fs::symlink("one", root.join(main).join("resources/two")).expect("a link");
    std::os::unix::fs::symlink("..", root.join(main).join("resources/one/up")).expect("a link");
    let loaded = load(&root, &LoadOptions::default());
    for key in ["resources:one/t.txt", "resources:two/t.txt"] {
        assert_eq!(resource(&loaded, key).as_deref(), Some("one"), "{key}");
    }
}

#[test]
fn names_are_not_taken_for_what_they_begin_with() {
    let root = directory(
        "names",
        &[
            ("LicenseCheck.xml", &proxy("LicenseCheck")),
            ("NoticeService.xml", &proxy("NoticeService")),
            ("LICENSE", "text"),
        ],
    );
    assert_eq!(artifacts(&load(&root, &LoadOptions::default())), "proxy/LicenseCheck proxy/NoticeService");
    // Modules and charts with the names of kinds.
    let root = directory(
        "modules",
        &[
            ("api/pom.xml", "<project/>"),
            ("api/src/main/synapse-config/api/A.xml", &api("A")),
            ("api/src/main/synapse-config/registry.xml", &format!("<registry {NS} provider='x'/>")),
            ("templates/pom.xml", "<project/>"),
            ("templates/src/main/synapse-config/sequences/S.xml", &sequence("S")),
            ("tasks/spring.xml", "<beans/>"),
        ],
    );
    let loaded = load(&root, &LoadOptions::default());
    assert_eq!(artifacts(&loaded), "api/A sequence/S", "{:#?}", reported(&loaded));
    assert!(!loaded.diagnostics.has_errors(), "{:#?}", reported(&loaded));
    // A configuration with nothing but one kind, and one whose artifact is broken.
    let root = directory("kind", &[("api/v1/A.xml", &api("A")), ("tasks/readme.md", "")]);
    assert_eq!(artifacts(&load(&root, &LoadOptions::default())), "api/A");
    let root = directory("broken-kind", &[("api/A.xml", "<api name='A")]);
    let loaded = load(&root, &LoadOptions::default());
    assert_eq!(loaded.faulty.len(), 1, "{:#?}", reported(&loaded));
}

#[test]
fn descriptors_lead_nowhere_else() {
    let descriptor = "<artifacts><artifact name='O' version='1' type='synapse/sequence'><file>../../outside.xml</file></artifact>\
        <artifact name='E' version='1' type='synapse/sequence'><file>/etc/passwd</file></artifact>\
        <artifact name='S' version='1' type='synapse/sequence'><file>./src/main/synapse-config/sequences/../sequences/S.xml</file></artifact>\
        <artifact name='T' version='1' type='synapse/sequence'><file>./src/main/synapse-config/./sequences/S.xml</file></artifact></artifacts>";
    let root = directory(
        "leads-out/project/module",
        &[("artifact.xml", descriptor), ("src/main/synapse-config/sequences/S.xml", &sequence("S"))],
    );
    write(&root.join("../../outside.xml"), sequence("outside").as_bytes());
    let loaded = load(root.parent().expect("a directory"), &LoadOptions::default());
    assert_eq!(artifacts(&loaded), "sequence/S", "{:#?}", reported(&loaded));
    assert!(!loaded.diagnostics.has_errors(), "{:#?}", reported(&loaded));
    let reported = reported(&loaded);
    assert_eq!(
        reported.iter().filter(|line| line.contains("leads out of the directory")).count(),
        3,
        "{reported:#?}"
    );
}

#[test]
fn names_are_looked_for_as_words() {
    let text = format!(
        "<sequence {NS} name='S'><xslt key='conf:x/in use.xsl'/><log category='a_other.xsl'/><script key='gov:run.js'/></sequence>"
    );
    let files = [("sequences/S.xml", &*text), ("x/in use.xsl", ""), ("x/other.xsl", ""), ("x/run.js", "")];
    let loaded = load(&directory("words", &files), &LoadOptions::default());
    let reported = reported(&loaded);
    assert!(reported.iter().any(|line| line.contains("`x/other.xsl` is not read (files)")), "{reported:#?}");
}

#[test]
fn values_from_outside_have_one_order() {
    let root = directory(
        "outside-values",
        &[
            ("pom.xml", "<project/>"),
            (".env", "A=outer\nB=outer\n"),
            ("m/pom.xml", "<project/>"),
            ("m/.env", "A=inner\nB=outer\nC=inner\n"),
            ("m/notes/.env", "D=nobody\n"),
            ("m/sequences/S.xml", &sequence("S")),
            ("file.properties", "p=first\n"),
            ("conf/file.properties", "p=second\nq=second\n"),
        ],
    );
    let loaded = load(&root, &LoadOptions::default());
    let injector = &loaded.configuration.injector;
    let environment = ["A", "B", "C", "D"].map(|name| injector.environment(name));
    assert_eq!(
        environment.each_ref().map(Option::as_deref),
        [Some("outer"), Some("outer"), Some("inner"), None]
    );
    assert_eq!((injector.property("p"), injector.property("q")), (Some("first"), Some("second")));
    let reported = reported(&loaded);
    for wanted in ["warning duplicate-key `A` of ", "warning duplicate-key `p` of "] {
        assert!(reported.iter().any(|line| line.starts_with(wanted)), "{wanted}: {reported:#?}");
    }
}

#[test]
fn what_flows_write_outlives_a_reload() {
    let root = directory("written", &[("sequences/S.xml", &sequence("S"))]);
    write(&root.join("app.car"), &with_resource("App", &[], "packaged"));
    let descriptor = "<resources><item><file>t.txt</file><path>/_system/config/x</path><properties>\
        <property key='a' value='1'/><property key='b' value='2'/></properties></item></resources>";
    let mut files = application("Other", &[]);
    files[0].1 = "<artifacts><artifact name='Other' version='1' type='carbon/application'><dependency artifact='r' version='1'/></artifact></artifacts>";
    files.extend([
        ("r_1/artifact.xml", "<artifact name='r' version='1' type='registry/resource'><file>registry-info.xml</file></artifact>"),
        ("r_1/registry-info.xml", descriptor),
        ("r_1/resources/t.txt", "packaged"),
    ]);
    write(&root.join("app.car"), &zipped(&files));
    let loaded = load(&root, &LoadOptions::default());
    let registry = &loaded.configuration.registry;
    registry.write_property("conf:x/t.txt", "a", "new").expect("written");
    registry.write("conf:x/t.txt", "of a flow").expect("written");
    let properties = |registry: &busbar_config::Registry| {
        ["a", "b"].map(|name| registry.property("conf:x/t.txt", name).unwrap_or_default())
    };
    assert_eq!(properties(registry), ["new", "2"]);
    let last = LastGood::new(loaded.configuration, loaded.sources, &[]);
    let mut loaded = load(&root, &LoadOptions { sources: last.sources().clone(), ..LoadOptions::default() });
    loaded.configuration.follow(&last);
    assert_eq!(resource(&loaded, "conf:x/t.txt").as_deref(), Some("of a flow"));
    assert_eq!(properties(&loaded.configuration.registry), ["new", "2"]);
}

#[test]
fn a_faulty_registry_does_not_bring_old_resources_back() {
    let registry = format!("<registry {NS} provider='x'/>");
    let root =
        directory("faulty-registry", &[("sequences/S.xml", &sequence("S")), ("registry.xml", &registry)]);
    write(&root.join("app.car"), &with_resource("App", &[], "one"));
    let loaded = load(&root, &LoadOptions::default());
    let last = LastGood::new(loaded.configuration, loaded.sources, &[]);
    write(&root.join("registry.xml"), format!("<registry {NS}/>").as_bytes());
    write(&root.join("app.car"), &with_resource("App", &[], "two"));
    let (loaded, _) = reload(&root, &last);
    assert_eq!(held(&loaded), ["registry  stays"]);
    assert_eq!(resource(&loaded, "conf:x/t.txt").as_deref(), Some("two"));
    // The directory that nobody reads, where another one is named.
    let other =
        format!("<registry {NS} provider='x'><parameter name='root'>elsewhere</parameter></registry>");
    write(&root.join("registry.xml"), other.as_bytes());
    write(&root.join("registry/config/t.txt"), b"lost");
    write(&root.join("elsewhere/config/t.txt"), b"found");
    let loaded = load(&root, &LoadOptions::default());
    assert_eq!(resource(&loaded, "conf:t.txt").as_deref(), Some("found"));
    assert!(
        reported(&loaded).iter().any(|line| line.contains("`registry` is not read")),
        "{:#?}",
        reported(&loaded)
    );
}

/// The files of an archive with an API `A`, its definition, and what nobody reads.
fn with_left_overs(definition: &str) -> Vec<(&str, &'static str)> {
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let artifact = |name: &str, kind: &str, file: &str| {
        leak(format!("<artifact name='{name}' version='1.0.0' type='{kind}'><file>{file}</file></artifact>"))
    };
    vec![
        (
            "artifacts.xml",
            "<artifacts><artifact name='App' version='1.0.0' type='carbon/application'>\
             <dependency artifact='A' version='1.0.0' include='true'/>\
             <dependency artifact='Odd' version='1.0.0' include='true'/>\
             <dependency artifact='A_swagger' version='1.0.0' include='true'/></artifact></artifacts>",
        ),
        ("A_1.0.0/artifact.xml", artifact("A", "synapse/api", "A-1.0.0.xml")),
        ("A_1.0.0/A-1.0.0.xml", leak(api("A"))),
        ("A_1.0.0/beside.xml", "<beside/>"),
        (
            "metadata/A_swagger_1.0.0/artifact.xml",
            artifact("A_swagger", "synapse/metadata", "A_swagger.json"),
        ),
        ("metadata/A_swagger_1.0.0/A_swagger.json", leak(definition.to_owned())),
        ("Odd_1.0.0/artifact.xml", artifact("Odd", "synapse/seqence", "Odd-1.0.0.xml")),
        ("Odd_1.0.0/Odd-1.0.0.xml", leak(sequence("Odd"))),
        ("loose.xml", leak(sequence("loose"))),
        ("stray_1.0.0/artifact.xml", artifact("stray", "synapse/sequence", "x.xml")),
        ("stray_1.0.0/x.xml", leak(sequence("stray"))),
        ("stray2_1.0.0/x.txt", "x"),
        ("META-INF/MANIFEST.MF", ""),
    ]
}

#[test]
fn nothing_of_an_archive_is_left_out_in_silence() {
    let files = with_left_overs("{}");
    let root = directory("left-over", &[]);
    write(&root.join("app.car"), &zipped(&files));
    for path in [root.join("app.car"), directory("left-over-unpacked", &files)] {
        let loaded = load(&path, &LoadOptions::default());
        assert_eq!(artifacts(&loaded), "api/A");
        let shown: Vec<String> = loaded
            .diagnostics
            .iter()
            .filter(|d| d.rule == "not-read")
            .map(|d| {
                let labels: Vec<&str> = d.labels.iter().map(|(_, text)| text.as_str()).collect();
                format!("{} {} {}", d.message, labels.join(" "), d.help.join(" "))
            })
            .collect();
        for wanted in [
            "seqence",
            "beside.xml",
            "loose.xml",
            "stray_1.0.0",
            "stray2_1.0.0",
            "did you mean `synapse/sequence`",
        ] {
            assert!(shown.iter().any(|line| line.contains(wanted)), "{wanted}: {shown:#?}");
        }
        let reported = reported(&loaded);
        assert!(
            reported.iter().any(|line| line.starts_with("warning") && line.contains("4 paths")),
            "{reported:#?}"
        );
        assert!(
            !shown.iter().any(|line| line.contains("A_swagger") || line.contains("A-1.0.0.xml")),
            "{shown:#?}"
        );
    }
}

#[test]
fn an_api_has_the_definition_that_its_archive_packs() {
    let files = with_left_overs("{\"openapi\":\"3.0.1\"}");
    let loaded = load(&directory("definition", &files), &LoadOptions::default());
    let api = loaded.configuration.apis.get("A").expect("there");
    assert_eq!(api.packed_definition.as_deref(), Some(&b"{\"openapi\":\"3.0.1\"}"[..]));
}

#[test]
fn archives_that_bring_one_resource_differently_are_reported() {
    let with = |name: &'static str, content: &'static str| {
        let mut files = application(name, &[]);
        files[0].1 = Box::leak(
            files[0]
                .1
                .replace(
                    "></artifact>",
                    "><dependency artifact='r' version='1.0.0' include='true'/></artifact>",
                )
                .into_boxed_str(),
        );
        files.push(("r_1.0.0/artifact.xml", "<artifact name='r' version='1.0.0' type='registry/resource'><file>registry-info.xml</file></artifact>"));
        files.push((
            "r_1.0.0/registry-info.xml",
            "<resources><item><file>t.xml</file><path>/_system/config/x</path></item></resources>",
        ));
        files.push(("r_1.0.0/resources/t.xml", content));
        zipped(&files)
    };
    for (name, second, expected) in [("differ", "<b/>", 1), ("same", "<a/>", 0)] {
        let root = directory(name, &[]);
        write(&root.join("one.car"), &with("One", "<a/>"));
        write(&root.join("two.car"), &with("Two", second));
        let reported = reported(&load(&root, &LoadOptions::default()));
        let count =
            reported.iter().filter(|line| line.contains("duplicate-key") && line.contains("config/x/t.xml"));
        assert_eq!(count.count(), expected, "{reported:#?}");
    }
}

/// Wherever they lie: a library, not templates of their own.
#[test]
fn sources_of_a_connector_are_a_library() {
    let template =
        |name: &str| format!("<template {NS} name='{name}'><sequence><drop/></sequence></template>");
    let connector = |name: &str| {
        format!(
            "<connector><component name='{name}' package='p'><dependency component='ops'/></component></connector>"
        )
    };
    let part = "<component name='ops'><subComponents><component name='a'><file>a.xml</file></component></subComponents></component>";
    for (test, place) in [
        ("connector-apart", "my-connector"),
        ("connector-in-project", "Connectors/my-connector"),
        ("connector-itself", "."),
    ] {
        let at = |file: &str| format!("{place}/{file}");
        let root = directory(
            test,
            &[
                (&at("pom.xml"), "<project/>"),
                (&at("src/main/assembly/assemble-connector.xml"), "<assembly/>"),
                (&at("src/main/resources/connector.xml"), &connector("mine")),
                (&at("src/main/resources/ops/component.xml"), part),
                (&at("src/main/resources/ops/a.xml"), &template("a")),
                (&at("src/main/java/a/B.java"), "class B {}"),
            ],
        );
        let loaded = load(&root, &LoadOptions::default());
        let operations = loaded.configuration.libraries.iter().flat_map(|library| &library.operations);
        let operations: Vec<&str> = operations.map(|operation| operation.name.as_str()).collect();
        assert_eq!(operations, ["mine.a"], "{test}");
        assert_eq!(artifacts(&loaded), "", "{test}");
        let reported = reported(&loaded);
        assert!(!reported.iter().any(|line| line.contains("XML files")), "{test}: {reported:#?}");
    }
}
