//! The operations of the file connector, in directories of their own.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use flow::testing::{Ended, Tested};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use support::place::Place;
use support::{JSON, XML, main};

/// A directory for one test.
fn prepared(name: &str) -> Place {
    Place::new(&format!("file-{name}"))
}

impl Place {
    fn tested(&self, operations: &str) -> Tested {
        let tested = main(&format!(
            "{operations}<!--top--><localEntry key='disk'><file.init><connectionType>LOCAL</connectionType><workingDir>{}</workingDir><name>disk</name></file.init></localEntry>
             <sequence name='fault'><property name='seen' expression='$ctx:ERROR_CODE'/></sequence>",
            self.0.display()
        ));
        // What can be seen is said; here each message says it.
        assert!(
            tested.found.iter().all(|finding| finding.starts_with("bad-value")),
            "{operations}: {:?}",
            tested.found
        );
        tested
    }

    fn run(&self, operations: &str) -> Ended {
        self.tested(operations).run(&[JSON], r#"{"a":1}"#)
    }

    /// All names below, sorted; no operation leaves a part behind.
    fn names(&self) -> Vec<String> {
        fn walk(path: &Path, top: &Path, names: &mut Vec<String>) {
            for entry in fs::read_dir(path).unwrap().flatten() {
                match entry.file_type().unwrap().is_dir() {
                    true => walk(&entry.path(), top, names),
                    false => names.push(entry.path().strip_prefix(top).unwrap().display().to_string()),
                }
            }
        }
        let mut names = Vec::new();
        walk(&self.0, &self.0, &mut names);
        names.sort();
        names
    }
}

fn operation(name: &str, inside: &str) -> String {
    format!("<file.{name} configKey='disk'>{inside}</file.{name}>")
}

/// `ERROR_CODE` and what the detail says.
fn failed(end: &Ended) -> (String, String) {
    (end.property("seen").unwrap_or_default(), end.property("ERROR_DETAIL").unwrap_or_default())
}

#[test]
fn texts_and_bodies_are_written() {
    for (inside, name, wanted, bytes) in [
        (
            "<filePath>/a.txt</filePath><contentOrExpression>x &amp; y</contentOrExpression>",
            "a.txt",
            "x & y",
            5,
        ),
        ("<filePath>d/e/a.json</filePath>", "d/e/a.json", r#"{"a":1}"#, 7),
        (
            "<filePath>a.xml</filePath><mimeType>application/xml</mimeType>",
            "a.xml",
            "<jsonObject><a>1</a></jsonObject>",
            33,
        ),
        (
            "<filePath>{concat('n', '1')}</filePath><contentOrExpression>{${payload.a}}</contentOrExpression>",
            "n1",
            "1",
            1,
        ),
        (
            "<filePath>a</filePath><contentOrExpression>aGk=</contentOrExpression><mimeType>application/binary</mimeType>",
            "a",
            "hi",
            2,
        ),
        (
            "<filePath>a</filePath><contentOrExpression>x</contentOrExpression><appendNewLine>true</appendNewLine>",
            "a",
            "x\n",
            2,
        ),
        ("<filePath>old.txt</filePath><contentOrExpression>new</contentOrExpression>", "old.txt", "new", 3),
        (
            "<filePath>old.txt</filePath><contentOrExpression>new</contentOrExpression><writeMode>Append</writeMode>",
            "old.txt",
            "one\ntwo\nnew\n",
            5,
        ),
        (
            "<filePath>old.txt</filePath><contentOrExpression>new</contentOrExpression><writeMode>Append</writeMode><appendPosition>2</appendPosition>",
            "old.txt",
            "one\nnew\ntwo\n",
            12,
        ),
        ("<filePath>old.txt</filePath><writeMode>Append</writeMode>", "old.txt", "one\ntwo{\"a\":1}", 7),
        (
            "<filePath>a.txt</filePath><contentOrExpression>x</contentOrExpression><writeMode>Create New</writeMode>",
            "a.txt",
            "x",
            1,
        ),
    ] {
        let place = prepared("write").with(&[("old.txt", "one\ntwo")]);
        let mut end = place.run(&operation("write", inside));
        assert_eq!(end.fault(), None, "{inside}: {:?}", end.property("ERROR_DETAIL"));
        assert_eq!(place.read(name).as_deref(), Some(wanted), "{inside}");
        let result =
            format!("<writeResult><success>true</success><writtenBytes>{bytes}</writtenBytes></writeResult>");
        assert_eq!(end.outcome(), Ok(result), "{inside}");
        assert!(place.names().iter().all(|name| !name.contains(".tmp")), "{:?}", place.names());
    }
}

#[test]
fn encodings_are_written_and_read() {
    let place = prepared("encoding");
    for (encoding, bytes) in [
        ("UTF-8", &b"\xc3\xa4\xe2\x82\xac"[..]),
        ("ISO-8859-15", b"\xe4\xa4"),
        ("ISO-8859-1", b"\xe4?"),
        ("US-ASCII", b"??"),
        ("UTF-16LE", b"\xe4\x00\xac\x20"),
        ("UTF-16", b"\xfe\xff\x00\xe4\x20\xac"),
    ] {
        let end = place.run(&operation(
            "write",
            &format!("<filePath>a.txt</filePath><contentOrExpression>\u{e4}\u{20ac}</contentOrExpression><encoding>{encoding}</encoding>"),
        ));
        assert_eq!(
            (end.fault(), fs::read(place.0.join("a.txt")).unwrap()),
            (None, bytes.to_vec()),
            "{encoding}"
        );
        if encoding == "ISO-8859-15" {
            let mut end =
                place.run(&operation("read", &format!("<path>a.txt</path><encoding>{encoding}</encoding>")));
            assert_eq!(end.write(message::Format::Text), "\u{e4}\u{20ac}");
        }
    }
    let end = place.run(&operation(
        "write",
        "<filePath>a</filePath><contentOrExpression>x</contentOrExpression><encoding>EBCDIC-9</encoding>",
    ));
    assert_eq!(failed(&end).0, "700107");
}

#[test]
fn zip_archives_come_and_go() {
    let place = prepared("zip").with(&[("in/a.txt", "A"), ("in/sub/b.txt", "B")]);
    let end = place.run(
        &[
            operation("write", "<filePath>z/report.csv</filePath><contentOrExpression>1,2</contentOrExpression><compress>true</compress>"),
            operation("unzip", "<sourceFilePath>z/report.zip</sourceFilePath><targetDirectory>out</targetDirectory>"),
            operation("compress", "<sourceDirectoryPath>in</sourceDirectoryPath><targetFilePath>all.zip</targetFilePath>"),
            operation("compress", "<sourceDirectoryPath>in</sourceDirectoryPath><targetFilePath>top.zip</targetFilePath><includeSubDirectories>false</includeSubDirectories>"),
            operation("exploreZipFile", "<zipFilePath>top.zip</zipFilePath><responseVariable>top</responseVariable>"),
            operation("unzip", "<sourceFilePath>all.zip</sourceFilePath><targetDirectory>all</targetDirectory><responseVariable>v</responseVariable>"),
        ]
        .concat(),
    );
    assert_eq!(end.fault(), None, "{:?}", end.property("ERROR_DETAIL"));
    assert_eq!(place.read("out/report.csv").as_deref(), Some("1,2"));
    assert_eq!(
        (place.read("all/a.txt").as_deref(), place.read("all/sub/b.txt").as_deref()),
        (Some("A"), Some("B"))
    );
    let variable = |name| end.context.variables.get(name).map(ToString::to_string).unwrap_or_default();
    assert!(variable("v").contains(r#""sub--b.txt":"extracted""#), "{}", variable("v"));
    assert!(variable("top").contains(r#""file":["a.txt"]"#), "{}", variable("top"));
}

#[test]
fn an_archive_does_not_lead_out_of_its_directory() {
    use std::io::Write;
    let place = prepared("slip");
    for name in ["../out.txt", "a/../../out.txt", "..\\out.txt"] {
        let mut archive = zip::ZipWriter::new(fs::File::create(place.0.join("bad.zip")).unwrap());
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(b"x").unwrap();
        archive.finish().unwrap();
        let end = place.run(&operation(
            "unzip",
            "<sourceFilePath>bad.zip</sourceFilePath><targetDirectory>in</targetDirectory>",
        ));
        let (code, detail) = failed(&end);
        assert_eq!(code, "700102", "{name}");
        assert!(detail.contains("leads out of the target directory"), "{detail}");
        assert_eq!(place.names(), ["bad.zip"], "{name}");
    }
    let place = place.with(&[("no.zip", "this is none")]);
    let end = place.run(&operation(
        "unzip",
        "<sourceFilePath>no.zip</sourceFilePath><targetDirectory>in</targetDirectory>",
    ));
    assert_eq!(failed(&end).0, "700108");
}

#[test]
fn files_are_read() {
    let place = prepared("read").with(&[
        ("a.json", r#"{"b":2}"#),
        ("a.xml", "<o>1</o>"),
        ("l.txt", "one\r\ntwo\nthree\nfour"),
        ("d/2.txt", "second"),
        ("d/1.csv", "first"),
        ("bytes", "raw"),
    ]);
    for (inside, wanted, content_type) in [
        ("<path>a.json</path>", r#"{"b":2}"#, "application/json"),
        ("<path>/a.xml</path>", "<o>1</o>", "application/xml"),
        ("<path>l.txt</path>", "one\r\ntwo\nthree\nfour", "text/plain"),
        (
            "<path>l.txt</path><readMode>Starting From Line</readMode><startLineNum>3</startLineNum>",
            "three\nfour",
            "text/plain",
        ),
        (
            "<path>l.txt</path><readMode>Up To Line</readMode><endLineNum>2</endLineNum>",
            "one\ntwo",
            "text/plain",
        ),
        (
            "<path>l.txt</path><readMode>Between Lines</readMode><startLineNum>2</startLineNum><endLineNum>3</endLineNum>",
            "two\nthree",
            "text/plain",
        ),
        ("<path>l.txt</path><readMode>Specific Line</readMode><lineNum>4</lineNum>", "four", "text/plain"),
        ("<path>l.txt</path><readMode>Specific Line</readMode><lineNum>9</lineNum>", "", "text/plain"),
        ("<path>d</path>", "first", "text/csv"),
        ("<path>d</path><filePattern>.*txt</filePattern>", "second", "text/plain"),
        (
            "<path>l.txt</path><contentType>application/json</contentType><readMode>Specific Line</readMode><lineNum>1</lineNum>",
            "one",
            "application/json",
        ),
        ("<path>bytes</path>", "raw", "application/octet-stream"),
    ] {
        let mut end = place.run(&operation("read", inside));
        assert_eq!(end.fault(), None, "{inside}: {:?}", end.property("ERROR_DETAIL"));
        let bytes = end.context.payload.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        assert_eq!(bytes.unwrap_or_default(), wanted, "{inside}");
        let value = end.context.headers.get("Content-Type").unwrap_or_default();
        assert!(value.starts_with(content_type), "{inside}: {value}");
        assert!(end.property("FILE_NAME").is_some() && end.property("FILE_SIZE").is_some());
        if wanted.starts_with('{') {
            assert_eq!(end.payload(), wanted);
        }
    }
    let mut end = place.run(&operation("read", "<path>a.json</path><responseVariable>v</responseVariable>"));
    let value: serde_json::Value =
        serde_json::from_str(&end.context.variables.get("v").unwrap().to_string()).unwrap();
    assert_eq!((end.payload().as_str(), &value["payload"]["b"]), (r#"{"a":1}"#, &2.into()));
    assert_eq!(
        (&value["attributes"]["FILE_NAME"], &value["attributes"]["FILE_PATH"]),
        (&"a.json".into(), &"/a.json".into())
    );
    let mut end = place.run(&operation(
        "read",
        "<path>a.xml</path><responseVariable>v</responseVariable><overwriteBody>true</overwriteBody>",
    ));
    assert_eq!(end.outcome(), Ok("<o>1</o>".to_owned()));
    let end = place.run(&operation("read", "<path>l.txt</path><readMode>Metadata Only</readMode>"));
    assert_eq!(end.property("FILE_SIZE").as_deref(), Some("19"));
    let end = place.run(&operation("read", "<path>l.txt</path><includeResultTo>Message Property</includeResultTo><resultPropertyName>p</resultPropertyName>"));
    assert!(end.property("p").unwrap().starts_with("one"));
    for (path, exists) in [("l.txt", "true"), ("nothing.txt", "false")] {
        let parameters = format!(
            "<path>{path}</path><includeResultTo>Message Property</includeResultTo><resultPropertyName>p</resultPropertyName>"
        );
        let end = place.run(&operation("checkExist", &parameters));
        assert_eq!(end.property("p").as_deref(), Some(exists), "{path}");
    }
}

#[test]
fn files_are_copied_moved_renamed_and_deleted() {
    type Expected<'a> = Result<&'a [&'a str], &'a str>;
    let cases: &[(&str, &str, Expected<'_>)] = &[
        (
            "copy",
            "<sourcePath>a.txt</sourcePath><targetPath>t</targetPath>",
            Ok(&["a.txt", "b/a.txt", "b/c/d.csv", "t/a.txt"]),
        ),
        (
            "copy",
            "<sourcePath>a.txt</sourcePath><targetPath>/</targetPath><renameTo>z</renameTo>",
            Ok(&["a.txt", "b/a.txt", "b/c/d.csv", "z"]),
        ),
        ("copy", "<sourcePath>a.txt</sourcePath><targetPath>b</targetPath>", Err("700103")),
        (
            "copy",
            "<sourcePath>a.txt</sourcePath><targetPath>b</targetPath><overwrite>true</overwrite>",
            Ok(&["a.txt", "b/a.txt", "b/c/d.csv"]),
        ),
        (
            "copy",
            "<sourcePath>b</sourcePath><targetPath>t</targetPath>",
            Ok(&["a.txt", "b/a.txt", "b/c/d.csv", "t/a.txt", "t/c/d.csv"]),
        ),
        (
            "copy",
            "<sourcePath>b</sourcePath><targetPath>t</targetPath><includeParent>true</includeParent>",
            Ok(&["a.txt", "b/a.txt", "b/c/d.csv", "t/b/a.txt", "t/b/c/d.csv"]),
        ),
        (
            "copy",
            "<sourcePath>b</sourcePath><targetPath>t</targetPath><sourceFilePattern>.*csv</sourceFilePattern>",
            Ok(&["a.txt", "b/a.txt", "b/c/d.csv", "t/c/d.csv"]),
        ),
        ("copy", "<sourcePath>b</sourcePath><targetPath>b/c</targetPath>", Err("700102")),
        ("copy", "<sourcePath>none</sourcePath><targetPath>t</targetPath>", Err("700102")),
        (
            "move",
            "<sourcePath>a.txt</sourcePath><targetPath>t</targetPath>",
            Ok(&["b/a.txt", "b/c/d.csv", "t/a.txt"]),
        ),
        (
            "move",
            "<sourcePath>a.txt</sourcePath><targetPath>t</targetPath><createParentDirectories>false</createParentDirectories>",
            Err("700102"),
        ),
        ("move", "<sourcePath>a.txt</sourcePath><targetPath>b</targetPath>", Err("700103")),
        (
            "move",
            "<sourcePath>a.txt</sourcePath><targetPath>b</targetPath><overwrite>true</overwrite>",
            Ok(&["b/a.txt", "b/c/d.csv"]),
        ),
        (
            "move",
            "<sourcePath>b</sourcePath><targetPath>t</targetPath>",
            Ok(&["a.txt", "t/a.txt", "t/c/d.csv"]),
        ),
        (
            "move",
            "<sourcePath>b</sourcePath><targetPath>t</targetPath><includeParent>true</includeParent><renameTo>x</renameTo>",
            Ok(&["a.txt", "t/x/a.txt", "t/x/c/d.csv"]),
        ),
        (
            "move",
            "<sourcePath>b</sourcePath><targetPath>t</targetPath><filePattern>.*txt</filePattern>",
            Ok(&["a.txt", "b/c/d.csv", "t/a.txt"]),
        ),
        ("rename", "<path>a.txt</path><renameTo>z.txt</renameTo>", Ok(&["b/a.txt", "b/c/d.csv", "z.txt"])),
        ("rename", "<path>b</path><renameTo>e</renameTo>", Ok(&["a.txt", "e/a.txt", "e/c/d.csv"])),
        ("rename", "<path>b/a.txt</path><renameTo>c</renameTo>", Err("700103")),
        ("rename", "<path>a.txt</path><renameTo>../z</renameTo>", Err("700102")),
        ("rename", "<path>none</path><renameTo>z</renameTo>", Err("700102")),
        ("rename", "<path>a.txt</path>", Err("700107")),
        ("delete", "<path>a.txt</path>", Ok(&["b/a.txt", "b/c/d.csv"])),
        ("delete", "<path>b</path>", Ok(&["a.txt"])),
        ("delete", "<path>/</path><matchingPattern>a.*</matchingPattern>", Ok(&["b/c/d.csv"])),
        ("delete", "<path>/</path>", Err("700102")),
        ("delete", "<path>none</path>", Err("700102")),
        ("createDirectory", "<directoryPath>x/y</directoryPath>", Ok(&["a.txt", "b/a.txt", "b/c/d.csv"])),
        ("createDirectory", "<directoryPath>a.txt/y</directoryPath>", Err("700102")),
        ("delete", "<path>../x</path>", Err("700102")),
    ];
    for (name, inside, expected) in cases {
        let place = prepared("transfer").with(&[("a.txt", "A"), ("b/a.txt", "BA"), ("b/c/d.csv", "D")]);
        let end = place.run(&operation(name, inside));
        match expected {
            Ok(names) => {
                assert_eq!(end.fault(), None, "{name} {inside}: {:?}", end.property("ERROR_DETAIL"));
                assert_eq!(place.names(), *names, "{name} {inside}");
            }
            Err(code) => {
                assert_eq!(failed(&end).0, *code, "{name} {inside}: {:?}", failed(&end));
                assert_eq!(place.names(), ["a.txt", "b/a.txt", "b/c/d.csv"], "{name} {inside}");
            }
        }
    }
}

/// What a copy could leave behind: links, a name that is no text, a file that looks like one on its way.
fn hard_to_copy(directory: &Path) {
    fs::create_dir_all(directory.join("real")).unwrap();
    fs::write(directory.join("a.txt"), "a").unwrap();
    fs::write(directory.join("real/c.txt"), "c").unwrap();
    fs::write(directory.join(".busbar-7-7.tmp"), "t").unwrap();
    fs::write(directory.join(OsStr::from_bytes(b"\xff\xfe.dat")), "precious").unwrap();
    symlink("real", directory.join("linkdir")).unwrap();
    symlink("/nonexistent", directory.join("dangling")).unwrap();
    fs::set_permissions(directory.join("real"), fs::Permissions::from_mode(0o750)).unwrap();
}

/// All paths below with what they are, sorted.
fn tree(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let name = format!("{:?}", entry.file_name());
        if kind.is_symlink() {
            found.push(format!("{name} -> {}", fs::read_link(&path).unwrap().display()));
        } else if kind.is_dir() {
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            found.push(format!("{name} {mode:o}"));
            found.extend(tree(&path).into_iter().map(|below| format!("{name}/{below}")));
        } else {
            found.push(format!("{name} = {}", fs::read_to_string(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn a_move_of_a_directory_loses_nothing() {
    let place = prepared("carry");
    let source = place.0.join("d");
    // Onto a directory that is there: members join those of it, and a link in the way is replaced, not followed.
    hard_to_copy(&source);
    let whole = tree(&source);
    fs::create_dir_all(place.0.join("t/d")).unwrap();
    fs::write(place.0.join("t/d/z"), "z").unwrap();
    symlink(source.join("a.txt"), place.0.join("t/d/a.txt")).unwrap();
    let inside = "<sourcePath>d</sourcePath><targetPath>t</targetPath><includeParent>true</includeParent><overwrite>true</overwrite>";
    let end = place.run(&operation("move", inside));
    assert_eq!(end.fault(), None, "{:?}", end.property("ERROR_DETAIL"));
    fs::remove_file(place.0.join("t/d/z")).unwrap();
    assert_eq!((tree(&place.0.join("t/d")), source.exists()), (whole.clone(), false));
    // What cannot be copied is a fault, and the source stays.
    hard_to_copy(&source);
    std::os::unix::net::UnixListener::bind(source.join("socket")).unwrap();
    let end = place.run(&operation("move", inside));
    assert_eq!(failed(&end).0, "700102", "{:?}", failed(&end));
    fs::remove_file(source.join("socket")).unwrap();
    assert_eq!(tree(&source), whole);
    // A directory in the way that leads back to the source.
    fs::remove_dir_all(place.0.join("t/d/real")).unwrap();
    symlink(source.join("real"), place.0.join("t/d/real")).unwrap();
    assert_eq!(failed(&place.run(&operation("move", inside))).0, "700103");
    assert_eq!(tree(&source), whole);
    // Member by member: files on their way stay with those who make them.
    let end = place.run(&operation("move", "<sourcePath>d</sourcePath><targetPath>m</targetPath>"));
    assert_eq!(end.fault(), None, "{:?}", end.property("ERROR_DETAIL"));
    assert_eq!(tree(&source), [r#"".busbar-7-7.tmp" = t"#]);
    assert_eq!(tree(&place.0.join("m")).len() + 1, whole.len());
}

#[test]
fn a_move_to_another_file_system_loses_nothing() {
    let shared = Path::new("/dev/shm");
    let device = |path: &Path| fs::metadata(path).map(|m| m.dev()).ok();
    let place = prepared("devices");
    if device(shared).is_none() || device(shared) == device(&place.0) {
        return;
    }
    let target = shared.join(format!("busbar-file-devices-{}", std::process::id()));
    let target = Place(target);
    let source = place.0.join("d");
    hard_to_copy(&source);
    let whole = tree(&source);
    symlink(&target.0, place.0.join("t")).unwrap();
    let inside = "<sourcePath>d</sourcePath><targetPath>t</targetPath><includeParent>true</includeParent>";
    fs::create_dir_all(&target.0).unwrap();
    std::os::unix::net::UnixListener::bind(source.join("socket")).unwrap();
    assert_eq!(failed(&place.run(&operation("move", inside))).0, "700102");
    fs::remove_file(source.join("socket")).unwrap();
    assert_eq!((tree(&source), tree(&target.0)), (whole.clone(), Vec::new()));
    let end = place.run(&operation("move", inside));
    assert_eq!(end.fault(), None, "{:?}", end.property("ERROR_DETAIL"));
    assert_eq!((tree(&target.0.join("d")), source.exists()), (whole, false));
}

#[test]
fn what_is_no_file_is_not_packed() {
    let place = prepared("nofile").with(&[("d/s/a.txt", "A")]);
    symlink("/dev/zero", place.0.join("d/s/zero")).unwrap();
    symlink("/dev/zero", place.0.join("zero")).unwrap();
    std::os::unix::net::UnixListener::bind(place.0.join("socket")).unwrap();
    for from in ["zero", "socket", "d"] {
        let inside = format!(
            "<sourceDirectoryPath>{from}</sourceDirectoryPath><targetFilePath>o.zip</targetFilePath>"
        );
        let (code, detail) = failed(&place.run(&operation("compress", &inside)));
        assert!(code == "700102" && detail.contains("is not a file"), "{from}: {code} {detail}");
        assert_eq!(place.names(), ["d/s/a.txt", "d/s/zero", "socket", "zero"], "{from}");
    }
}

#[test]
fn a_bound_that_gives_nothing_is_not_everything() {
    let nothing = "{json-eval($.none)}";
    for (name, inside) in [
        ("delete", format!("<path>d</path><matchingPattern>{nothing}</matchingPattern>")),
        (
            "copy",
            format!(
                "<sourcePath>d</sourcePath><targetPath>t</targetPath><sourceFilePattern>{nothing}</sourceFilePattern>"
            ),
        ),
        (
            "move",
            format!(
                "<sourcePath>d</sourcePath><targetPath>t</targetPath><filePattern>{nothing}</filePattern>"
            ),
        ),
        ("write", format!("<filePath>new</filePath><contentOrExpression>{nothing}</contentOrExpression>")),
        (
            "write",
            "<filePath>new</filePath><contentOrExpression>{$ctx:none}</contentOrExpression>".to_owned(),
        ),
    ] {
        let place = prepared("bound").with(&[("d/a.txt", "A"), ("d/b.txt", "B")]);
        let (code, detail) = failed(&place.run(&operation(name, &inside)));
        assert!(code == "700107" && detail.contains("gives nothing"), "{inside}: {code} {detail}");
        assert_eq!(place.names(), ["d/a.txt", "d/b.txt"], "{inside}");
    }
    // A parameter without a value is none.
    let place = prepared("bound");
    let end = place.run(&operation("write", "<filePath>a</filePath><contentOrExpression/>"));
    assert_eq!((end.fault(), place.read("a").as_deref()), (None, Some(r#"{"a":1}"#)));
}

#[test]
fn a_body_is_written_as_a_type_and_stays_as_it_was() {
    for (media, wanted) in [
        ("text/plain", r#"{"a":1}"#),
        ("text/csv", r#"{"a":1}"#),
        ("application/octet-stream", r#"{"a":1}"#),
        ("application/xml", "<jsonObject><a>1</a></jsonObject>"),
    ] {
        let place = prepared("type");
        let inside = format!(
            "<filePath>a</filePath><mimeType>{media}</mimeType><responseVariable>v</responseVariable>"
        );
        let mut end = place.run(&operation("write", &inside));
        assert_eq!((end.fault(), place.read("a").as_deref()), (None, Some(wanted)), "{media}");
        assert_eq!(end.context.headers.get("Content-Type"), Some("application/json"), "{media}");
        assert_eq!(end.context.axis2("messageType").unwrap().to_string(), "application/json", "{media}");
        assert_eq!(end.payload(), r#"{"a":1}"#, "{media}");
    }
}

#[test]
fn json_of_a_file_has_an_encoding() {
    let place = prepared("json");
    for (bytes, inside) in [
        (&b"{\"b\":\"\xe4\"}"[..], "<encoding>ISO-8859-1</encoding>"),
        (b"\xef\xbb\xbf{\"b\":\"\xc3\xa4\"}", ""),
    ] {
        fs::write(place.0.join("a.json"), bytes).unwrap();
        let inside = format!("<path>a.json</path>{inside}<responseVariable>v</responseVariable>");
        let end = place.run(&operation("read", &inside));
        assert_eq!(end.fault(), None, "{:?}", end.property("ERROR_DETAIL"));
        let value = end.context.variables.get("v").unwrap().to_string();
        assert!(value.contains("\"payload\":{\"b\":\"\u{e4}\"}"), "{value}");
    }
    fs::write(place.0.join("a.json"), b"\"\xe4\"").unwrap();
    let inside = "<path>a.json</path><responseVariable>v</responseVariable>";
    assert_eq!(failed(&place.run(&operation("read", inside))).0, "700108");
}

#[test]
fn two_names_of_a_file_have_one_turn() {
    let place = prepared("names").with(&[("log.txt", "")]);
    symlink("log.txt", place.0.join("link.txt")).unwrap();
    let write = |name: &str| {
        let inside = "<contentOrExpression>x</contentOrExpression><writeMode>Append</writeMode><appendPosition>1</appendPosition>";
        place.tested(&operation("write", &format!("<filePath>{name}</filePath>{inside}")))
    };
    std::thread::scope(|scope| {
        for tested in [write("log.txt"), write("link.txt")] {
            scope.spawn(move || {
                for _ in 0..100 {
                    assert_eq!(tested.run(&[JSON], "{}").fault(), None);
                }
            });
        }
    });
    assert_eq!(place.read("log.txt").unwrap().lines().count(), 200);
}

#[test]
fn existence_and_lists() {
    let place = prepared("list").with(&[
        ("a.txt", "AAA"),
        ("b.csv", "B"),
        ("s/c.txt", "C"),
        ("s/t/d.txt", "DD"),
        ("f/g/e.txt", "E"),
        ("f/g/file/h.txt", "H"),
        (".busbar-1-1.tmp", ""),
    ]);
    let value = |inside: &str, name: &str| -> serde_json::Value {
        let end = place.run(&operation(name, &format!("{inside}<responseVariable>v</responseVariable>")));
        assert_eq!(end.fault(), None, "{inside}: {:?}", end.property("ERROR_DETAIL"));
        let value: serde_json::Value =
            serde_json::from_str(&end.context.variables.get("v").unwrap().to_string()).unwrap();
        value["payload"].clone()
    };
    assert_eq!(value("<path>s/t</path>", "checkExist").to_string(), r#"{"success":true,"fileExists":true}"#);
    assert_eq!(value("<path>a.txt/none</path>", "checkExist")["fileExists"], false);
    let list = |inside: &str| {
        value(
            &format!("<directoryPath>/</directoryPath><responseFormat>Flat</responseFormat>{inside}"),
            "listFiles",
        )["fileList"]["file"]
            .to_string()
    };
    for (inside, wanted) in [
        ("", r#"["/a.txt","/b.csv"]"#),
        (
            "<recursive>true</recursive>",
            r#"["/a.txt","/b.csv","/f/g/e.txt","/f/g/file/h.txt","/s/c.txt","/s/t/d.txt"]"#,
        ),
        (
            "<recursive>true</recursive><subDirectoryMaxDepth>1</subDirectoryMaxDepth>",
            r#"["/a.txt","/b.csv","/s/c.txt"]"#,
        ),
        ("<matchingPattern>.*\\.txt</matchingPattern>", r#"["/a.txt"]"#),
        (
            "<fileFilterType>ant</fileFilterType><includeFiles>**/*.txt</includeFiles><excludeFiles>s/t/*</excludeFiles><recursive>true</recursive>",
            r#"["/a.txt","/f/g/e.txt","/f/g/file/h.txt","/s/c.txt"]"#,
        ),
        ("<sortingAttribute>Size</sortingAttribute>", r#"["/b.csv","/a.txt"]"#),
        ("<sortingOrder>Descending</sortingOrder>", r#"["/b.csv","/a.txt"]"#),
        ("<maxFileAge>0</maxFileAge>", "[]"),
    ] {
        assert_eq!(list(inside), wanted, "{inside}");
    }
    let hierarchy = value("<directoryPath>s</directoryPath><recursive>true</recursive>", "listFiles");
    assert_eq!(hierarchy["fileList"].to_string(), r#"{"s":{"file":["c.txt"],"t":{"file":["d.txt"]}}}"#);
    let hierarchy = value("<directoryPath>f/g</directoryPath><recursive>true</recursive>", "listFiles");
    assert_eq!(hierarchy["fileList"].to_string(), r#"{"g":{"file":["e.txt"],"file/":{"file":["h.txt"]}}}"#);
    let facts = value(
        "<directoryPath>/</directoryPath><appendFileAttributes>true</appendFileAttributes>",
        "listFiles",
    );
    assert!(facts.to_string().contains(r#""name":"a.txt","size":3,"lastModifiedTime""#), "{facts}");
    let mut end = place.run(&operation("listFiles", "<directoryPath>s</directoryPath>"));
    assert_eq!(
        end.outcome().unwrap(),
        "<listFilesResult><success>true</success><fileList><s><file>c.txt</file></s></fileList></listFilesResult>"
    );
    for (inside, code) in [
        ("<directoryPath>none</directoryPath>", "700102"),
        ("<directoryPath>a.txt</directoryPath>", "700102"),
        ("", "700107"),
        ("<directoryPath>/</directoryPath><matchingPattern>(</matchingPattern>", "700107"),
        ("<directoryPath>/</directoryPath><sortingOrder>up</sortingOrder>", "700107"),
        ("<directoryPath>/</directoryPath><maxFileAge>-1</maxFileAge>", "700107"),
    ] {
        assert_eq!(failed(&place.run(&operation("listFiles", inside))).0, code, "{inside}");
    }
}

#[test]
fn files_are_split_and_merged() {
    let place = prepared("split").with(&[
        ("in.txt", "1\n2\n3\n4\n5"),
        ("empty.txt", ""),
        ("m/b", "B"),
        ("m/a", "A"),
        ("m/c.x", "C"),
        ("m/e", ""),
    ]);
    let end = place.run(&operation("splitFile", "<sourceFilePath>in.txt</sourceFilePath><targetDirectory>l</targetDirectory><splitMode>Line Count</splitMode><lineCount>2</lineCount><responseVariable>v</responseVariable>"));
    assert!(end.context.variables.get("v").unwrap().to_string().contains(r#""numberOfSplits":3"#));
    assert_eq!(
        ["l/in0.txt", "l/in1.txt", "l/in2.txt"].map(|name| place.read(name)),
        ["1\n2\n", "3\n4\n", "5"].map(|text| Some(text.to_owned()))
    );
    place.run(&operation("splitFile", "<sourceFilePath>in.txt</sourceFilePath><targetDirectory>c</targetDirectory><splitMode>Chunk Size</splitMode><chunkSize>4</chunkSize>"));
    assert_eq!(
        ["c/in0.txt", "c/in1.txt", "c/in2.txt"].map(|name| place.read(name)),
        ["1\n2\n", "3\n4\n", "5"].map(|text| Some(text.to_owned()))
    );
    let mut end = place.run(&operation("mergeFiles", "<sourceDirectoryPath>m</sourceDirectoryPath><targetFilePath>all</targetFilePath><filePattern>[a-z]</filePattern>"));
    assert_eq!(
        end.outcome().unwrap(),
        "<mergeFilesResult><success>true</success><detail><numberOfMergedFiles>2</numberOfMergedFiles><totalWrittenBytes>2</totalWrittenBytes></detail></mergeFilesResult>"
    );
    assert_eq!(place.read("all").as_deref(), Some("AB"));
    place.run(&operation(
        "mergeFiles",
        "<sourceDirectoryPath>m</sourceDirectoryPath><targetFilePath>all</targetFilePath>",
    ));
    assert_eq!(place.read("all").as_deref(), Some("ABABC"));
    place.run(&operation("mergeFiles", "<sourceDirectoryPath>m</sourceDirectoryPath><targetFilePath>all</targetFilePath><writeMode>Overwrite</writeMode>"));
    assert_eq!(place.read("all").as_deref(), Some("ABC"));
    for (inside, code) in [
        (
            "<sourceFilePath>in.txt</sourceFilePath><targetDirectory>l</targetDirectory><splitMode>Line Count</splitMode><lineCount>0</lineCount>",
            "700107",
        ),
        (
            "<sourceFilePath>in.txt</sourceFilePath><targetDirectory>l</targetDirectory><splitMode>XPATH Expression</splitMode>",
            "700107",
        ),
        (
            "<sourceFilePath>none</sourceFilePath><targetDirectory>l</targetDirectory><splitMode>Line Count</splitMode><lineCount>1</lineCount>",
            "700102",
        ),
        (
            "<sourceFilePath>in.txt</sourceFilePath><targetDirectory>in.txt</targetDirectory><splitMode>Line Count</splitMode><lineCount>1</lineCount>",
            "700102",
        ),
    ] {
        assert_eq!(failed(&place.run(&operation("splitFile", inside))).0, code, "{inside}");
    }
}

#[test]
fn what_fails_has_the_code_of_the_connector() {
    let place = prepared("fail").with(&[("there", "x"), ("big.txt", "0123456789"), ("no.json", "{")]);
    fs::write(place.0.join("secret"), "x").unwrap();
    fs::create_dir(place.0.join("closed")).unwrap();
    for (name, inside, code, says) in [
        ("read", "<path>none</path>", "700102", "file.read"),
        ("read", "<path>../x</path>", "700102", "out of the working directory"),
        ("read", "", "700107", "`path` is not given"),
        ("read", "<path>there</path><readMode>Some</readMode>", "700107", "readMode Some"),
        ("read", "<path>there</path><encoding>KLINGON</encoding>", "700107", "there is no encoding KLINGON"),
        ("read", "<path>there</path><readMode>Up To Line</readMode>", "700107", "endLineNum"),
        (
            "read",
            "<path>there</path><readMode>Between Lines</readMode><startLineNum>3</startLineNum><endLineNum>2</endLineNum>",
            "700107",
            "before",
        ),
        ("read", "<path>no.json</path><responseVariable>v</responseVariable>", "700108", "not JSON"),
        ("read", "<path>closed</path>", "700108", "filePattern"),
        (
            "write",
            "<filePath>there</filePath><contentOrExpression>y</contentOrExpression><writeMode>Create New</writeMode>",
            "700103",
            "exists already",
        ),
        (
            "write",
            "<filePath>none</filePath><contentOrExpression>y</contentOrExpression><writeMode>Append</writeMode>",
            "700102",
            "none",
        ),
        (
            "write",
            "<filePath>closed</filePath><contentOrExpression>y</contentOrExpression>",
            "700102",
            "directory",
        ),
        (
            "write",
            "<filePath>there/x</filePath><contentOrExpression>y</contentOrExpression>",
            "700102",
            "there",
        ),
        ("createDirectory", "<directoryPath>there</directoryPath>", "700102", "there"),
        (
            "write",
            "<filePath>.busbar-1.tmp</filePath><contentOrExpression>y</contentOrExpression>",
            "700102",
            "not whole yet",
        ),
        ("read", "<path>closed/.busbar-1.tmp</path>", "700102", "not whole yet"),
        ("rename", "<path>there</path><renameTo>.busbar-1.tmp</renameTo>", "700102", "not whole yet"),
        (
            "write",
            "<filePath>x</filePath><contentOrExpression>y</contentOrExpression><writeMode>Over</writeMode>",
            "700107",
            "writeMode Over",
        ),
        (
            "write",
            "<filePath>there</filePath><contentOrExpression>y</contentOrExpression><writeMode>Append</writeMode><appendPosition>-1</appendPosition>",
            "700107",
            "appendPosition",
        ),
        (
            "write",
            "<filePath>x</filePath><contentOrExpression>no base64!</contentOrExpression><mimeType>application/binary</mimeType>",
            "700107",
            "base64",
        ),
        (
            "write",
            "<filePath>/</filePath><contentOrExpression>y</contentOrExpression>",
            "700102",
            "names no file",
        ),
        ("read", "<path>none</path><maxRetries>x</maxRetries>", "700107", "maxRetries"),
    ] {
        let end = place.run(&operation(name, inside));
        let (seen, detail) = failed(&end);
        assert_eq!(seen, code, "{name} {inside}: {detail}");
        assert!(detail.contains(says), "{name} {inside}: {detail}");
        assert!(end.property("ERROR_MESSAGE").unwrap().starts_with("FILE:"), "{inside}");
    }
    let tested = main("<file.read configKey='none'><path>x</path></file.read>");
    assert!(tested.reports("there is no connection `none`"));
    assert!(tested.run(&[XML], "<a/>").fault().unwrap().starts_with("700101: FILE:CONNECTION_ERROR"));
    let tested = main(
        "<file.read configKey='s'><path>x</path></file.read><!--top--><localEntry key='s'><file.init><connectionType>SFTP</connectionType></file.init></localEntry>",
    );
    assert!(tested.reports("unsupported-connector: the connection `s` cannot be used"), "{:?}", tested.found);
    assert!(tested.run(&[XML], "<a/>").fault().unwrap().starts_with("700101"));
}

#[test]
fn a_failure_is_in_the_variable_too() {
    let place = prepared("variable");
    let mut end = place.run(&operation("read", "<path>none</path><responseVariable>v</responseVariable>"));
    let value: serde_json::Value =
        serde_json::from_str(&end.context.variables.get("v").unwrap().to_string()).unwrap();
    assert_eq!(
        (&value["payload"]["success"], &value["payload"]["error"]["code"]),
        (&false.into(), &"700102".into())
    );
    assert_eq!(end.payload(), r#"{"a":1}"#);
}

#[test]
fn a_full_disk_leaves_nothing() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let place = prepared("full").with(&[("a.txt", "old")]);
    // A device takes what is written at once.
    std::os::unix::fs::symlink("/dev/full", place.0.join("full")).unwrap();
    let write = "<filePath>full</filePath><contentOrExpression>x</contentOrExpression>";
    let (code, detail) = failed(&place.run(&operation("write", write)));
    assert!(code == "700108" && detail.contains("No space left"), "{code} {detail}");
    let (code, detail) =
        failed(&place.run(&operation("write", &format!("{write}<writeMode>Append</writeMode>"))));
    assert!(code == "700108" && detail.contains("No space left"), "{code} {detail}");
    let retried = format!("{write}<maxRetries>2</maxRetries><retryDelay>1</retryDelay>");
    let (code, detail) = failed(&place.run(&operation("write", &retried)));
    assert!(code == "700104" && detail.contains("the last of 3 attempts"), "{code} {detail}");
    assert_eq!(place.names(), ["a.txt", "full"]);
}

#[test]
fn locks_are_taken_and_given_back() {
    let place = prepared("lock").with(&[("a.txt", "x"), ("a.txt.lock", ""), ("b.txt", "y")]);
    let cluster = |operation: &str| {
        let tested = main(&format!(
            "{operation}<!--top--><localEntry key='disk'><file.init><workingDir>{}</workingDir><fileLockScheme>Cluster</fileLockScheme></file.init></localEntry>",
            place.0.display()
        ));
        tested.run(&[JSON], "{}").fault().unwrap_or_default()
    };
    let read = |name: &str| operation("read", &format!("<path>{name}</path><enableLock>true</enableLock>"));
    assert!(cluster(&read("a.txt")).starts_with("700106: FILE:FILE_LOCKING_ERROR"));
    assert_eq!((cluster(&read("b.txt")), cluster(&read("b.txt"))), (String::new(), String::new()));
    let inside = "<filePath>new/l.txt</filePath><contentOrExpression>x</contentOrExpression><enableLock>true</enableLock>";
    assert_eq!(cluster(&operation("write", inside)), "");
    fs::remove_dir_all(place.0.join("new")).unwrap();
    assert_eq!(place.names(), ["a.txt", "a.txt.lock", "b.txt"]);
    // One that was left behind is taken.
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    fs::File::options().write(true).open(place.0.join("a.txt.lock")).unwrap().set_modified(long_ago).unwrap();
    assert_eq!(cluster(&read("a.txt")), "");
    assert_eq!(place.names(), ["a.txt", "b.txt"]);
}

#[test]
fn a_content_type_that_no_header_can_have_is_a_failure() {
    let place = prepared("content-type").with(&[("there", "x")]);
    let there = place.0.join("there");
    for step in [
        "<file.read configKey='d'><path>there</path><contentType>${payload.type}</contentType></file.read>"
            .to_owned(),
        format!(
            "<fileconnector.read><source>{}</source><contentType>${{payload.type}}</contentType></fileconnector.read>",
            there.display()
        ),
    ] {
        let tested = support::main(&format!(
            "{step}<!--top--><localEntry key='d'><file.init><workingDir>{}</workingDir></file.init></localEntry>",
            place.0.display()
        ));
        for (kind, is_good) in [("text/a\\u0000b", false), ("text/a\\r\\nX: b", false), ("text/a", true)] {
            let end = tested.run(&[support::JSON], &format!(r#"{{"type":"{kind}"}}"#));
            let found = (end.property("ERROR_CODE"), end.property("ERROR_DETAIL").unwrap_or_default());
            match is_good {
                true => assert_eq!(found.0, None, "{step}: {}", found.1),
                false => assert!(found.1.contains("control character"), "{step} {kind}: {found:?}"),
            }
            if step.contains("file.read") {
                assert_eq!(found.0.is_some_and(|code| code == "700107"), !is_good, "{kind}");
            }
        }
    }
}

#[test]
fn what_takes_the_place_of_a_file_keeps_its_mode_and_its_time_where_asked() {
    let place = prepared("mode").with(&[("a.txt", "old")]);
    let path = place.0.join("a.txt");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs::File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    let end = place.run(&operation("write", "<filePath>a.txt</filePath><contentOrExpression>new</contentOrExpression><updateLastModified>false</updateLastModified>"));
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!(
        (end.fault(), metadata.permissions().mode() & 0o777, metadata.modified().unwrap()),
        (None, 0o640, long_ago)
    );
    let end = place.run(&operation("read", "<path>a.txt</path><readMode>Metadata Only</readMode>"));
    assert!(
        end.property("FILE_LAST_MODIFIED_TIME").unwrap().starts_with("09/0"),
        "{:?}",
        end.property("FILE_LAST_MODIFIED_TIME")
    );
}

#[test]
fn appends_at_the_same_time_are_all_there() {
    let place = prepared("append").with(&[("log.txt", "")]);
    let tested = place.tested(&operation("write", "<filePath>log.txt</filePath><contentOrExpression>{${payload.a}}</contentOrExpression><writeMode>Append</writeMode>"));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let tested = &tested;
            scope.spawn(move || {
                for number in 0..25 {
                    let end = tested.run(&[JSON], &format!("{{\"a\":\"{thread}-{number}\"}}"));
                    assert_eq!(end.fault(), None);
                }
            });
        }
    });
    let text = place.read("log.txt").unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 200);
}

#[test]
fn fields_of_a_connection_that_are_misspelt_are_said() {
    for (fields, says) in [
        ("<workingdir>/srv</workingdir>", "`workingdir` has no effect in `file.init`"),
        ("<fileLockScheme>Clustr</fileLockScheme>", "there is no fileLockScheme `Clustr`"),
        ("<workingDir>{$ctx:dir}</workingDir>", "the connection `s` cannot be used"),
    ] {
        let tested = main(&format!(
            "<file.read configKey='s'><path>x</path></file.read><!--top--><localEntry key='s'><file.init>{fields}</file.init></localEntry>"
        ));
        assert!(tested.reports(says), "{fields}: {:?}", tested.found);
    }
}

#[test]
fn what_made_several_files_and_fails_leaves_none_of_them() {
    use std::io::Write;
    let place = prepared("several").with(&[("in.txt", "1\n2\n3\n"), ("out/b", "old")]);
    let mut archive = zip::ZipWriter::new(fs::File::create(place.0.join("bad.zip")).unwrap());
    for name in ["a", "b", "../c"] {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(b"new").unwrap();
    }
    archive.finish().unwrap();
    let inside = "<sourceFilePath>bad.zip</sourceFilePath><targetDirectory>out</targetDirectory>";
    assert_eq!(failed(&place.run(&operation("unzip", inside))).0, "700102");
    // What took the place of a file stays.
    assert_eq!(place.names(), ["bad.zip", "in.txt", "out/b"]);
    assert_eq!(place.read("out/b").as_deref(), Some("new"));
    // The third part cannot be made: its name is that of a directory.
    fs::create_dir_all(place.0.join("parts/in2.txt")).unwrap();
    let inside = "<sourceFilePath>in.txt</sourceFilePath><targetDirectory>parts</targetDirectory><splitMode>Line Count</splitMode><lineCount>1</lineCount>";
    assert_eq!(failed(&place.run(&operation("splitFile", inside))).0, "700102");
    assert_eq!(place.names(), ["bad.zip", "in.txt", "out/b"]);
}

#[test]
fn names_that_are_not_utf_8_are_listed_and_kept() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let place = prepared("names").with(&[("d/a.txt", "a")]);
    let odd = OsStr::from_bytes(b"bad\xff.txt");
    fs::write(place.0.join("d").join(odd), "b").unwrap();
    let mut end = place.run(&operation("listFiles", "<directoryPath>d</directoryPath>"));
    let listed = end.outcome().unwrap();
    assert!(listed.contains("a.txt") && listed.contains("bad\u{fffd}.txt"), "{listed}");
    place.run(&operation("copy", "<sourcePath>d</sourcePath><targetPath>e</targetPath>"));
    let copied = |top: &str| fs::read(place.0.join(top).join(odd)).ok();
    assert_eq!(copied("e").or_else(|| copied("e/d")).as_deref(), Some(&b"b"[..]));
}

#[test]
fn a_directory_is_not_copied_into_what_a_link_to_it_names() {
    let place = prepared("links").with(&[("s/a.txt", "a")]);
    std::os::unix::fs::symlink("..", place.0.join("s/up")).unwrap();
    for to in ["cup", "s/cup", "s/up/s/deep/cup"] {
        let inside = format!("<sourcePath>s/up</sourcePath><targetPath>{to}</targetPath>");
        let (code, detail) = failed(&place.run(&operation("copy", &inside)));
        assert!(code == "700102" && detail.contains("is within"), "{code}: {detail}");
        assert_eq!(place.names(), ["s/a.txt", "s/up"], "{to}");
    }
}

#[test]
fn a_document_is_split_by_the_elements_that_are_selected() {
    let orders = "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><p:orders xmlns:p=\"u\" day=\"1\"><p:order n=\"1\">\u{e4}</p:order><other/><p:order n=\"2\"><line/></p:order></p:orders>";
    let place = prepared("elements")
        .with(&[("d.xml", "<!DOCTYPE a [<!ENTITY e \"x\">]><a>&e;</a>"), ("bad.xml", "<a>")]);
    let latin: Vec<u8> = orders.chars().map(|c| c as u8).collect();
    fs::write(place.0.join("in.xml"), latin).unwrap();
    let split = |from: &str, xpath: &str| {
        let inside = format!(
            "<sourceFilePath>{from}</sourceFilePath><targetDirectory>out</targetDirectory><splitMode>XPATH Expression</splitMode>\
             <xpathExpression>{xpath}</xpathExpression><responseVariable>v</responseVariable>"
        );
        place.run(&operation("splitFile", &inside))
    };
    let end = split("in.xml", "//*[local-name() = 'order']");
    assert_eq!(end.fault(), None, "{:?}", end.property("ERROR_DETAIL"));
    assert!(end.context.variables.get("v").unwrap().to_string().contains(r#""numberOfSplits":2"#));
    let parts = ["out/p:orders1.xml", "out/p:orders2.xml"].map(|name| place.read(name).unwrap());
    assert!(
        parts[0].ends_with("<p:orders xmlns:p=\"u\"><p:order n=\"1\">\u{e4}</p:order></p:orders>"),
        "{parts:?}"
    );
    assert!(
        parts[1].ends_with("<p:orders xmlns:p=\"u\"><p:order n=\"2\"><line/></p:order></p:orders>"),
        "{parts:?}"
    );
    assert!(
        parts.iter().all(|part| part.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>")),
        "{parts:?}"
    );
    // The root has nothing around it, and what selects nothing makes nothing.
    let end = split("in.xml", "/*");
    assert_eq!(
        (end.fault(), place.read("out/p:orders1.xml").map(|text| text.contains("other"))),
        (None, Some(true))
    );
    let end = split("in.xml", "//none");
    assert!(end.context.variables.get("v").unwrap().to_string().contains(r#""numberOfSplits":0"#));
    let there = place.names();
    for (from, xpath, code, says) in [
        ("in.xml", "//p:order", "700107", "prefix"),
        ("in.xml", "1 + 1", "700107", "selects no elements"),
        ("in.xml", "//@n", "700108", "not an element"),
        ("in.xml", "{${vars.none}}", "700107", "not given"),
        ("bad.xml", "//a", "700108", "bad.xml"),
        ("d.xml", "//a", "700108", "d.xml"),
        ("none.xml", "//a", "700102", "none.xml"),
    ] {
        let (found, detail) = failed(&split(from, xpath));
        assert!(found == code && detail.contains(says), "{from} {xpath}: {found} {detail}");
    }
    assert_eq!(place.names(), there, "what fails leaves nothing");
}

#[test]
fn the_contents_of_a_directory_are_a_list() {
    let place = prepared("contents").with(&[
        ("d/b.txt", "bb"),
        ("d/a.txt", "a"),
        ("d/c.csv", "c"),
        ("d/deep/z.txt", "z"),
    ]);
    let property = "<resultPropertyName>all</resultPropertyName>";
    for (inside, wanted) in [
        ("<directoryPath>d</directoryPath>", r#"["YQ==","YmI=","Yw=="]"#),
        ("<directoryPath>d</directoryPath><matchingPattern>.*txt</matchingPattern>", r#"["YQ==","YmI="]"#),
        (
            "<directoryPath>d</directoryPath><recursive>true</recursive><sortingOrder>Descending</sortingOrder>",
            r#"["eg==","Yw==","YmI=","YQ=="]"#,
        ),
        (
            "<directoryPath>d</directoryPath><sortingAttribute>Size</sortingAttribute><sortingOrder>Descending</sortingOrder>",
            r#"["YmI=","Yw==","YQ=="]"#,
        ),
    ] {
        let mut end = place.run(&operation("fetchDirectoryContent", &format!("{inside}{property}")));
        assert_eq!(end.fault(), None, "{inside}: {:?}", end.property("ERROR_DETAIL"));
        assert_eq!(end.property("all").as_deref(), Some(wanted), "{inside}");
        assert_eq!(end.write(message::Format::Json), r#"{"a":1}"#, "the message stays as it was");
    }
    let inside = "<directoryPath>d</directoryPath><responseVariable>v</responseVariable>";
    let end = place.run(&operation("fetchDirectoryContent", inside));
    let variable = end.context.variables.get("v").unwrap().to_string();
    assert!(variable.contains(r#""fetchDirectoryContent":["YQ==","YmI=","Yw=="]"#), "{variable}");
    for (inside, code) in [
        (format!("<directoryPath>none</directoryPath>{property}"), "700102"),
        (format!("<directoryPath>d/a.txt</directoryPath>{property}"), "700102"),
        (format!("<directoryPath>d</directoryPath><matchingPattern>(</matchingPattern>{property}"), "700107"),
        ("<directoryPath>d</directoryPath>".to_owned(), "700107"),
    ] {
        assert_eq!(failed(&place.run(&operation("fetchDirectoryContent", &inside))).0, code, "{inside}");
    }
}
