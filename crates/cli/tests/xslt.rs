//! `busbar xslt`: where the documents of `xsl:result-document` go, what a stylesheet may read, and what it may evaluate.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory with a stylesheet of this template and a document, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, template: &str) -> Folder {
        Folder::of_version("2.0", name, template)
    }

    fn of_version(version: &str, name: &str, template: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("busbar-xslt-{name}-{}", std::process::id()));
        std::fs::create_dir_all(path.join("out")).unwrap();
        let sheet = format!(
            "<xsl:stylesheet version='{version}' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>\
             <xsl:output omit-xml-declaration='yes'/><xsl:template match='/'>{template}</xsl:template></xsl:stylesheet>"
        );
        std::fs::write(path.join("s.xsl"), sheet).unwrap();
        std::fs::write(path.join("i.xml"), "<r><a n='1'/><a n='2'/></r>").unwrap();
        Folder(path)
    }

    fn run(&self, more: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_busbar"));
        command.current_dir(&self.0).args(["xslt", "s.xsl", "i.xml"]).args(more).output().unwrap()
    }

    /// The files, but for the stylesheet and the document.
    fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![self.0.clone()];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => open.push(path),
                    false => found.push(path.strip_prefix(&self.0).unwrap().display().to_string()),
                }
            }
        }
        found.retain(|name| !matches!(name.as_str(), "s.xsl" | "i.xml"));
        found.sort();
        found
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const EACH: &str = "<xsl:for-each select='r/a'><xsl:result-document href='d/{@n}.xml'><x/></xsl:result-document></xsl:for-each>";

#[test]
fn results_are_files() {
    for (more, prefix) in [(&[][..], ""), (&["--results", "out"], "out/"), (&["--stream", "always"], "")] {
        let folder = Folder::new("files", EACH);
        let done = folder.run(more);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert!(done.stdout.is_empty());
        assert_eq!(folder.files(), [format!("{prefix}d/1.xml"), format!("{prefix}d/2.xml")]);
        assert_eq!(std::fs::read(folder.0.join(prefix).join("d/1.xml")).unwrap(), b"<x/>");
    }
}

#[test]
fn a_stylesheet_may_declare_entities() {
    let folder = Folder::new("entities", "<r>a&amp;sep;b</r>");
    let path = folder.0.join("s.xsl");
    let sheet = std::fs::read_to_string(&path).unwrap().replace("&amp;", "&");
    for (declared, expected) in [
        ("<!DOCTYPE xsl:stylesheet [<!ENTITY sep '&#160;'>]>", Ok("<r>a\u{a0}b</r>")),
        ("<!DOCTYPE xsl:stylesheet SYSTEM 'html.dtd'>", Err("`sep` is not declared in this file")),
        ("", Err("`sep` is not declared")),
    ] {
        std::fs::write(&path, format!("{declared}{sheet}")).unwrap();
        let done = folder.run(&[]);
        let [written, told] =
            [&done.stdout, &done.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        match expected {
            Ok(expected) => assert_eq!(written.trim(), expected, "{told}"),
            Err(message) => assert!(told.contains(message), "{declared}: {told}"),
        }
    }
}

#[test]
fn what_is_refused_leaves_nothing() {
    let outside = "<xsl:result-document href='../outside.xml'/>";
    for (template, more, message) in [
        (format!("{EACH}<xsl:message terminate='yes'>no</xsl:message>"), &[][..], "no"),
        (format!("{EACH}{EACH}"), &[], "XTDE1490"),
        (format!("{EACH}{outside}"), &[], "is not below"),
        (EACH.to_owned(), &["--results", "none"], "none"),
        (EACH.to_owned(), &["--results", "i.xml"], "not a directory"),
    ] {
        let folder = Folder::new("refused", &template);
        let done = folder.run(more);
        let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{template}");
        assert!(stderr.contains(message), "{template}: {stderr}");
        assert_eq!(folder.files(), Vec::<String>::new(), "{template}");
        assert!(!Path::new(&folder.0).join("../outside.xml").exists());
    }
}

/// With `--root` a stylesheet reads what is below, its own modules, and the document.
#[test]
fn documents_are_confined_where_that_is_asked_for() {
    let text = |href: &str| format!("<xsl:value-of select=\"unparsed-text('{href}')\"/>");
    let outside = std::env::temp_dir().join(format!("busbar-xslt-outside-{}", std::process::id()));
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("t.txt"), "text").unwrap();
    let there = outside.join("t.txt").display().to_string();
    let root = outside.display().to_string();
    for (template, more, expected) in [
        (text(&there), &[][..], Ok("text")),
        (text(&there), &["--root", &root], Ok("text")),
        (text(&there), &["--root", "out", "--root", &root], Ok("text")),
        (text(&there), &["--root", "."], Err("may not be read")),
        (text(&format!("file://{there}")), &["--root", "."], Err("may not be read")),
        (text("/etc/passwd"), &["--root", &root], Err("may not be read")),
        (text("out/../../../etc/passwd"), &["--root", "out"], Err("may not be read")),
        ("<xsl:value-of select=\"doc('i.xml')//a[2]/@n\"/>".to_owned(), &["--root", "out"], Ok("2")),
        (
            "<xsl:value-of select=\"name(document('')/*)\"/>".to_owned(),
            &["--root", "out"],
            Ok("xsl:stylesheet"),
        ),
        (text("i.xml"), &["--root", "none"], Err("--root none")),
        (text("i.xml"), &["--root", ".", "--dtd", "external"], Err("--dtd external")),
    ] {
        let folder = Folder::new("roots", &template);
        let done = folder.run(more);
        let (out, error) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        match expected {
            Ok(expected) => assert_eq!(out, expected, "{template}: {error}"),
            Err(expected) => {
                assert!(!done.status.success() && error.contains(expected), "{template}: {error}");
            }
        }
    }
    std::fs::remove_dir_all(&outside).unwrap();
}

#[test]
fn expressions_are_evaluated_where_that_is_allowed() {
    let template = "<xsl:evaluate xpath=\"'count(//a)'\" context-item='.'/>";
    for (more, expected) in [(&["--allow-evaluate"][..], Ok("2")), (&[], Err("XTDE3175"))] {
        let folder = Folder::of_version("3.0", "evaluate", template);
        let done = folder.run(more);
        let (out, error) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        match expected {
            Ok(expected) => assert_eq!(out, expected, "{error}"),
            Err(expected) => assert!(!done.status.success() && error.contains(expected), "{error}"),
        }
    }
}
