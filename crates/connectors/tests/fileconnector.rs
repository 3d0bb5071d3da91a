//! The operations of the file connector before version 4, each with what it does and with how it fails.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use flow::testing::Ended;
use message::Format;
use std::fs;
use std::io::{Read, Write};
use support::place::Place;
use support::{JSON, main};

/// A directory for one test, with these files.
fn prepared(name: &str, files: &[(&str, &str)]) -> Place {
    Place::new(&format!("fileconnector-{name}")).with(files)
}

impl Place {
    /// One operation; `@` is the directory.
    fn run(&self, name: &str, inside: &str) -> Ended {
        let inside = inside.replace('@', self.0.to_str().unwrap());
        let step = format!("<fileconnector.{name}>{inside}</fileconnector.{name}>");
        main(&step).run(&[JSON], r#"{"a":1}"#)
    }

    /// The body that an operation leaves, or its ERROR_CODE.
    fn outcome(&self, name: &str, inside: &str) -> String {
        let mut end = self.run(name, inside);
        match end.fault() {
            None => end.write(Format::Xml).replace(self.0.to_str().unwrap(), "@"),
            Some(_) => end.property("ERROR_CODE").unwrap(),
        }
    }
}

const TRUE: &str = "<success>true</success>";
const FALSE: &str = "<success>false</success>";

#[test]
fn texts_are_added_and_files_are_made() {
    let place = prepared("text", &[("a.txt", "one\ntwo\n")]);
    for (name, inside, file, wanted) in [
        (
            "append",
            "<destination>@/a.txt</destination><inputContent>three</inputContent>",
            "a.txt",
            "one\ntwo\nthree",
        ),
        (
            "append",
            "<destination>file://@/a.txt</destination><inputContent>zero</inputContent><position>1</position>",
            "a.txt",
            "zero\none\ntwo\nthree\n",
        ),
        (
            "append",
            "<destination>@/a.txt</destination><inputContent>end</inputContent><position>first</position>",
            "a.txt",
            "zero\none\ntwo\nthree\nend",
        ),
        (
            "append",
            "<destination>@/new/b c.txt</destination><inputContent>b</inputContent>",
            "new/b c.txt",
            "b",
        ),
        (
            "append",
            "<destination>file://@/new/b%20c.txt</destination><inputContent>{json-eval($.a)}</inputContent>",
            "new/b c.txt",
            "b1",
        ),
        ("create", "<filePath>@/c.txt</filePath><inputContent>c</inputContent>", "c.txt", "c"),
        ("create", "<source>@/c.txt</source><inputContent>d</inputContent>", "c.txt", "cd"),
        ("create", "<source>@/c.txt</source>", "c.txt", "cd"),
        ("create", "<source>@/deep/er/e.txt</source>", "deep/er/e.txt", ""),
        (
            "create",
            "<source>@/f.bin</source><inputContent>aGk=</inputContent><isBinaryContent>true</isBinaryContent>",
            "f.bin",
            "hi",
        ),
        ("send", "<address>@/s.json</address>", "s.json", r#"{"a":1}"#),
        ("send", "<address>@/s.json</address><append>true</append>", "s.json", r#"{"a":1}{"a":1}"#),
        ("send", "<address>@/new/</address>", "new/response.xml", r#"{"a":1}"#),
    ] {
        assert_eq!(place.outcome(name, inside), TRUE, "{name} {inside}");
        assert_eq!(place.read(file).as_deref(), Some(wanted), "{name} {inside}");
    }
    assert_eq!(
        place.outcome("create", "<source>@/folder/below</source><inputContent>x</inputContent>"),
        TRUE
    );
    assert!(place.0.join("folder/below").is_dir());
    let bytes = "<source>@/u.txt</source><inputContent>ä</inputContent><encoding>UTF-16</encoding>";
    assert_eq!(place.outcome("create", bytes), TRUE);
    assert_eq!(fs::read(place.0.join("u.txt")).unwrap(), [0xFE, 0xFF, 0, 0xE4]);
    for (name, inside, code) in [
        ("append", "<destination>@/a.txt</destination>", "700107"),
        ("append", "<inputContent>x</inputContent>", "700107"),
        ("append", "<destination>@/a.txt</destination><inputContent>{${vars.none}}</inputContent>", "700107"),
        ("append", "<destination>@/folder</destination><inputContent>x</inputContent>", "700102"),
        (
            "append",
            "<destination>@/a.txt</destination><inputContent>x</inputContent><encoding>no</encoding>",
            "700107",
        ),
        ("append", "<destination>relative.txt</destination><inputContent>x</inputContent>", "700102"),
        (
            "append",
            "<destination>sftp://u:p@host/a.txt</destination><inputContent>x</inputContent>",
            "700101",
        ),
        ("create", "<inputContent>x</inputContent>", "700107"),
        ("create", "<source>@/a.txt/b.txt</source>", "700102"),
        (
            "create",
            "<source>@/g.bin</source><inputContent>*</inputContent><isBinaryContent>true</isBinaryContent>",
            "700107",
        ),
        ("create", "<source>/dev/full/x.txt</source>", "700102"),
        ("send", "<address>@/a.txt/b.txt</address>", "700102"),
        ("send", "", "700107"),
    ] {
        assert_eq!(place.outcome(name, inside), code, "{name} {inside}");
    }
    assert_eq!(
        place.outcome("append", "<destination>/dev/full</destination><inputContent>x</inputContent>"),
        "700108"
    );
}

#[test]
fn files_are_copied_moved_and_deleted() {
    let files = [("in/a.txt", "a"), ("in/b.csv", "b"), ("in/deep/c.txt", "c")];
    for (name, inside, there) in [
        ("copy", "<source>@/in/a.txt</source><destination>@/out</destination>", "out/a.txt"),
        ("copy", "<source>@/in/a.txt</source><destination>@/out/z.txt</destination>", "out/z.txt"),
        ("copy", "<source>@/in</source><destination>@/out</destination>", "out/deep/c.txt"),
        (
            "copy",
            "<source>@/in</source><destination>@/out</destination><includeParentDirectory>true</includeParentDirectory>",
            "out/in/b.csv",
        ),
        (
            "copy",
            "<source>@/in</source><destination>@/out</destination><filePattern>.*txt</filePattern>",
            "out/deep/c.txt",
        ),
        ("move", "<source>@/in/a.txt</source><destination>@/out</destination>", "out/a.txt"),
        (
            "move",
            "<source>file://@/in/a.txt</source><destination>file://@/new/z.txt</destination>",
            "new/z.txt",
        ),
        ("move", "<source>@/in</source><destination>@/out</destination>", "out/deep/c.txt"),
        (
            "move",
            "<source>@/in</source><destination>@/out</destination><includeParentDirectory>true</includeParentDirectory>",
            "out/in/deep/c.txt",
        ),
        (
            "move",
            "<source>@/in</source><destination>@/out</destination><filePattern>.*txt</filePattern>",
            "out/deep/c.txt",
        ),
    ] {
        let place = prepared("transfer", &files);
        assert_eq!(place.outcome(name, inside), TRUE, "{name} {inside}");
        assert!(place.0.join(there).is_file(), "{name} {inside}: {:?}", place.names_in("out"));
        let left = place.names_in("in");
        match name {
            "copy" => assert_eq!(left, ["a.txt", "b.csv", "deep"]),
            _ if inside.contains("filePattern") => assert_eq!(left, ["b.csv", "deep"]),
            _ => assert!(!left.contains(&"a.txt".to_owned()), "{left:?}"),
        }
        if inside.contains("filePattern") {
            assert!(!place.0.join("out/b.csv").exists(), "{inside}");
        }
    }
    // Without directories below.
    let shallow = "<source>@/in</source><destination>@/out</destination><includeSubDirectories>false</includeSubDirectories>";
    for name in ["copy", "move"] {
        let place = prepared("shallow", &files);
        assert_eq!(place.outcome(name, shallow), TRUE);
        assert_eq!(place.names_in("out"), ["a.txt", "b.csv"], "{name}");
        assert!(place.0.join("in/deep/c.txt").exists());
    }
    // What is there is replaced.
    let place = prepared("replaced", &[("in/a.txt", "new"), ("out/a.txt", "old")]);
    let both = "<source>@/in/a.txt</source><destination>@/out</destination>";
    assert_eq!(
        (place.outcome("copy", both), place.read("out/a.txt").as_deref()),
        (TRUE.to_owned(), Some("new"))
    );
    fs::write(place.0.join("in/a.txt"), "newer").unwrap();
    assert_eq!(
        (place.outcome("move", both), place.read("out/a.txt").as_deref()),
        (TRUE.to_owned(), Some("newer"))
    );
    for (inside, left) in [
        ("<source>@/in/a.txt</source>", vec!["b.csv", "deep"]),
        ("<source>@/in</source>", vec![]),
        ("<source>@/in</source><filePattern>*</filePattern>", vec![]),
        ("<source>@/in</source><filePattern>.*txt</filePattern>", vec!["b.csv", "deep"]),
        (
            "<source>@/in</source><filePattern>.*txt</filePattern><includeSubDirectories>true</includeSubDirectories>",
            vec!["b.csv", "deep"],
        ),
    ] {
        let place = prepared("deleted", &files);
        assert_eq!(place.outcome("delete", inside), TRUE, "{inside}");
        assert_eq!(place.names_in("in"), left, "{inside}");
        let is_deep = inside.contains("includeSubDirectories");
        assert_eq!(place.0.join("in/deep/c.txt").exists(), !left.is_empty() && !is_deep, "{inside}");
    }
    // A source that is not there is no fault; what cannot be done is one.
    let place = prepared("missing", &files);
    let to = "<destination>@/out</destination>";
    for name in ["copy", "move", "delete", "archives"] {
        let to = if name == "delete" { "" } else { to };
        assert_eq!(place.outcome(name, &format!("<source>@/none</source>{to}")), FALSE, "{name}");
        assert_eq!(place.outcome(name, &format!("<source>ftp://host/a</source>{to}")), "700101", "{name}");
        assert_eq!(place.outcome(name, to), "700107", "{name}");
    }
    for (name, inside, code) in [
        ("copy", "<source>@/in</source><destination>@/in/deep/x</destination>", "700102"),
        ("copy", "<source>@/in</source><destination>@/in/a.txt</destination>", "700102"),
        (
            "copy",
            "<source>@/in</source><destination>@/out</destination><filePattern>(</filePattern>",
            "700107",
        ),
        ("move", "<source>@/in</source><destination>@/in/deep/x</destination>", "700102"),
        ("move", "<source>@/in/a.txt</source><destination>@/in/b.csv/x</destination>", "700102"),
        ("delete", "<source>/</source>", "700102"),
        ("delete", "<source>@/in</source><filePattern>{${vars.none}}</filePattern>", "700107"),
    ] {
        assert_eq!(place.outcome(name, inside), code, "{name} {inside}");
    }
    assert_eq!(place.names_in("in"), ["a.txt", "b.csv", "deep"]);
}

#[test]
fn files_are_read_and_found() {
    let place =
        prepared("read", &[("in/a.txt", "one\ntwo\nthree\n"), ("in/b.xml", "<b/>"), ("in/deep/c.txt", "c")]);
    let list = |names: &str| {
        format!("<ns:result xmlns:ns=\"http://org.wso2.esbconnectors.FileConnector\">{names}</ns:result>")
    };
    for (name, inside, wanted) in [
        ("isFileExist", "<source>@/in/a.txt</source>", "<fileExist>true</fileExist>".to_owned()),
        ("isFileExist", "<source>file://@/none</source>", "<fileExist>false</fileExist>".to_owned()),
        ("getSize", "<source>@/in/a.txt</source>", "<fileSize>14</fileSize>".to_owned()),
        (
            "search",
            "<source>@/in</source><filePattern>.*\\.txt</filePattern>",
            list("<ns:file>@/in/a.txt</ns:file>"),
        ),
        (
            "search",
            "<source>@/in</source><filePattern>.*\\.txt</filePattern><recursiveSearch>true</recursiveSearch>",
            list("<ns:file>@/in/a.txt</ns:file><ns:file>@/in/deep/c.txt</ns:file>"),
        ),
        (
            "search",
            "<source>@/in</source><filePattern>none</filePattern>",
            list("").replace("></ns:result>", "/>"),
        ),
        ("read", "<source>@/in/b.xml</source>", "<b/>".to_owned()),
        ("read", "<source>@/in</source><filePattern>b.*</filePattern>", "<b/>".to_owned()),
    ] {
        assert_eq!(place.outcome(name, inside), wanted, "{name} {inside}");
    }
    for (name, inside, wanted) in [
        ("read", "<source>@/in</source><contentType>text/plain</contentType>", "one\ntwo\nthree\n"),
        ("read", "<source>@/in/a.txt</source><streaming>true</streaming>", "one\ntwo\nthree\n"),
        ("readALine", "<source>@/in/a.txt</source><lineNumber>2</lineNumber>", "two"),
        ("readALine", "<source>@/in/a.txt</source><lineNumber>9</lineNumber>", ""),
        ("readSpecifiedLines", "<source>@/in/a.txt</source><start>2</start><end>3</end>", "two\nthree"),
        ("readSpecifiedLines", "<source>@/in/a.txt</source><end>2</end>", "one\ntwo"),
        (
            "readSpecifiedLines",
            "<source>@/in/a.txt</source><start>3</start><contentType>text/plain</contentType>",
            "three",
        ),
    ] {
        let mut end = place.run(name, inside);
        assert_eq!(end.fault(), None, "{name} {inside}: {:?}", end.property("ERROR_DETAIL"));
        assert_eq!(end.write(Format::Text), wanted, "{name} {inside}");
        let property = end.property("readingFileName");
        assert_eq!(property.as_deref(), (name == "read").then_some("a.txt"), "{name} {inside}");
    }
    let modified = place.outcome("getLastModifiedTime", "<source>@/in</source>");
    let time =
        modified.strip_prefix("<lastModifiedTime>").unwrap().strip_suffix("</lastModifiedTime>").unwrap();
    let shape: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "00/00/0000 00:00:00");
    // With a variable the message stays as it was.
    let mut end = place.run("getSize", "<source>@/in/a.txt</source><responseVariable>v</responseVariable>");
    let variable = end.context.variables.get("v").unwrap().to_string();
    assert!(variable.contains(r#""payload":{"fileSize":14}"#), "{variable}");
    assert_eq!(end.write(Format::Json), r#"{"a":1}"#);
    for (name, inside, code) in [
        ("isFileExist", "", "700107"),
        ("isFileExist", "<source>smb://h/s</source>", "700101"),
        ("getSize", "<source>@/none</source>", "700102"),
        ("getSize", "<source>@/in</source>", "700102"),
        ("getLastModifiedTime", "<source>@/none</source>", "700102"),
        ("search", "<source>@/none</source><filePattern>.*</filePattern>", "700102"),
        ("search", "<source>@/in</source>", "700107"),
        ("search", "<source>@/in</source><filePattern>*.txt</filePattern>", "700107"),
        ("read", "<source>@/none</source>", "700102"),
        ("read", "<source>@/in</source><filePattern>none</filePattern>", "700108"),
        ("readALine", "<source>@/in/a.txt</source>", "700107"),
        ("readALine", "<source>@/in/a.txt</source><lineNumber>0</lineNumber>", "700107"),
        ("readALine", "<source>@/none</source><lineNumber>1</lineNumber>", "700102"),
        ("readSpecifiedLines", "<source>@/in/a.txt</source><start>3</start><end>2</end>", "700107"),
        ("readSpecifiedLines", "<source>@/in/a.txt</source><start>x</start>", "700107"),
        ("readSpecifiedLines", "<source>@/none</source>", "700102"),
    ] {
        assert_eq!(place.outcome(name, inside), code, "{name} {inside}");
    }
}

#[test]
fn archives_parts_and_wholes() {
    let files = [("in/a.txt", "1\n2\n3\n"), ("in/deep/c.txt", "c"), ("o.xml", "<o><p>1</p><q/><p>2</p></o>")];
    let place = prepared("archives", &files);
    let list = |names: &str| {
        format!("<ns:result xmlns:ns=\"http://org.wso2.esbconnectors.FileConnector\">{names}</ns:result>")
    };
    for (inside, names) in [
        ("<source>@/in</source>", "<ns:file>a.txt</ns:file><ns:file>deep/c.txt</ns:file>"),
        (
            "<source>@/in</source><includeSubDirectories>false</includeSubDirectories>",
            "<ns:file>a.txt</ns:file>",
        ),
        ("<source>@/in/a.txt</source>", "<ns:file>a.txt</ns:file>"),
        ("<inputContent>x</inputContent>", "<ns:file>output.txt</ns:file>"),
        ("<inputContent>x</inputContent><fileName>d/n.txt</fileName>", "<ns:file>d/n.txt</ns:file>"),
    ] {
        let packed = place.outcome("archives", &format!("{inside}<destination>@/z/a.zip</destination>"));
        assert_eq!(packed, TRUE, "{inside}");
        assert_eq!(place.outcome("listFileZip", "<source>@/z/a.zip</source>"), list(names), "{inside}");
    }
    let both = "<source>@/z/a.zip</source><destination>@/unpacked</destination>";
    assert_eq!(place.outcome("unzip", both), TRUE);
    assert_eq!(place.read("unpacked/d/n.txt").as_deref(), Some("x"));
    for (inside, parts) in [
        (
            "<numberOfLines>2</numberOfLines><chunkSize>1</chunkSize>",
            vec![("a.txt0", "1\n2\n"), ("a.txt1", "3\n")],
        ),
        ("<chunkSize>4</chunkSize>", vec![("a.txt0", "1\n2\n"), ("a.txt1", "3\n")]),
    ] {
        let _ = fs::remove_dir_all(place.0.join("parts"));
        let to = "<source>@/in/a.txt</source><destination>@/parts</destination>";
        assert_eq!(place.outcome("splitFile", &format!("{to}{inside}")), TRUE);
        assert_eq!(place.names_in("parts"), parts.iter().map(|part| part.0).collect::<Vec<_>>());
        for (name, text) in parts {
            assert_eq!(place.read(&format!("parts/{name}")).as_deref(), Some(text));
        }
    }
    let xpath =
        "<source>@/o.xml</source><destination>@/x</destination><xpathExpression>//p</xpathExpression>";
    assert_eq!(place.outcome("splitFile", xpath), TRUE);
    assert_eq!(place.names_in("x"), ["o1.xml", "o2.xml"]);
    assert!(place.read("x/o2.xml").unwrap().ends_with("<o><p>2</p></o>"));
    let merge = "<source>@/parts</source><destination>@/merged.txt</destination>";
    assert_eq!(place.outcome("mergeFiles", merge), TRUE);
    assert_eq!(place.outcome("mergeFiles", &format!("{merge}<filePattern>.*1</filePattern>")), TRUE);
    assert_eq!(place.read("merged.txt").as_deref(), Some("1\n2\n3\n3\n"));
    // An archive whose names lead out of the directory.
    let mut evil = zip::ZipWriter::new(fs::File::create(place.0.join("evil.zip")).unwrap());
    evil.start_file("../out.txt", zip::write::SimpleFileOptions::default()).unwrap();
    evil.write_all(b"x").unwrap();
    evil.finish().unwrap();
    for (name, inside, code) in [
        (
            "archives",
            "<inputContent>x</inputContent><fileName>../n</fileName><destination>@/b.zip</destination>",
            "700102",
        ),
        ("archives", "<source>@/in</source>", "700107"),
        ("archives", "<source>@/in</source><destination>@/o.xml/b.zip</destination>", "700102"),
        ("unzip", "<source>@/evil.zip</source><destination>@/unpacked</destination>", "700102"),
        ("unzip", "<source>@/o.xml</source><destination>@/unpacked</destination>", "700108"),
        ("unzip", "<source>@/none</source><destination>@/unpacked</destination>", "700102"),
        ("listFileZip", "<source>@/o.xml</source>", "700108"),
        ("listFileZip", "<source>@/none</source>", "700102"),
        ("splitFile", "<source>@/o.xml</source><destination>@/y</destination>", "700107"),
        (
            "splitFile",
            "<source>@/o.xml</source><destination>@/y</destination><chunkSize>0</chunkSize>",
            "700107",
        ),
        (
            "splitFile",
            "<source>@/none</source><destination>@/y</destination><chunkSize>1</chunkSize>",
            "700102",
        ),
        (
            "splitFile",
            "<source>@/in/a.txt</source><destination>@/y</destination><xpathExpression>//p</xpathExpression>",
            "700108",
        ),
        (
            "splitFile",
            "<source>@/o.xml</source><destination>@/y</destination><xpathExpression>//p[</xpathExpression>",
            "700107",
        ),
        (
            "splitFile",
            "<source>@/o.xml</source><destination>@/y</destination><xpathExpression>count(//p)</xpathExpression>",
            "700107",
        ),
        (
            "splitFile",
            "<source>@/o.xml</source><destination>@/y</destination><xpathExpression>//p/text()</xpathExpression>",
            "700108",
        ),
        ("mergeFiles", "<source>@/none</source><destination>@/m</destination>", "700102"),
        ("mergeFiles", "<source>@/in/a.txt</source><destination>@/m</destination>", "700102"),
        (
            "mergeFiles",
            "<source>@/in</source><destination>@/m</destination><filePattern>*.txt*</filePattern>",
            "700107",
        ),
    ] {
        assert_eq!(place.outcome(name, inside), code, "{name} {inside}");
    }
    assert!(place.names_in("y").is_empty(), "nothing is left of what failed");
    let mut archive = zip::ZipArchive::new(fs::File::open(place.0.join("z/a.zip")).unwrap()).unwrap();
    let mut text = String::new();
    archive.by_index(0).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "x");
}

#[test]
fn what_loading_says() {
    for (step, says, label) in [
        (
            "<fileconnector.read><source>sftp://u:secret@h/a</source></fileconnector.read>",
            "unsupported-connector",
            "over `sftp`",
        ),
        (
            "<fileconnector.read><source>a.txt</source></fileconnector.read>",
            "is not a path of this machine",
            "absolute path",
        ),
        ("<fileconnector.read/>", "has no `source`", "fault"),
        ("<fileconnector.create/>", "has no `filePath`", "fault"),
        (
            "<fileconnector.archives><destination>/d</destination></fileconnector.archives>",
            "has no `source`",
            "fault",
        ),
        (
            "<fileconnector.ftpOverProxy/>",
            "`fileconnector.ftpOverProxy` is not executable here",
            "no such operation",
        ),
        ("<fileconnector.red/>", "`fileconnector.red` is not executable here", "no such operation"),
        (
            "<fileconnector.copy><source>/a</source><destination>/b</destination><filePatern>x</filePatern></fileconnector.copy>",
            "filePatern",
            "",
        ),
        (
            "<fileconnector.delete><source>/a</source><filePattern>(</filePattern></fileconnector.delete>",
            "`filePattern` of `fileconnector.delete` cannot be `(`",
            "not a regular expression",
        ),
    ] {
        let tested = main(step);
        assert!(tested.reports(says), "{step}: {:?}", tested.found);
        assert!(tested.reasons.iter().any(|reason| reason.contains(label)), "{step}: {:?}", tested.reasons);
        let all = [tested.found.join(" "), tested.reasons.join(" ")].concat();
        assert!(!all.contains("secret"), "{all}");
    }
    // Parameters about servers say nothing.
    let quiet = main(
        "<fileconnector.read><source>/a</source><setTimeout>1</setTimeout><setPassiveMode>true</setPassiveMode></fileconnector.read>",
    );
    assert!(quiet.found.is_empty(), "{:?}", quiet.found);
}
