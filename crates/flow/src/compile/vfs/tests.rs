//! Each parameter with what it says, and with what it cannot say.

use crate::runtime::source::{Action, Source};
use crate::testing::{self, Tested};
use std::collections::HashSet;
use std::fmt::Debug;
use std::sync::Arc;

const URI: (&str, &str) = ("transport.vfs.FileURI", "file:///in");
const TYPE: (&str, &str) = ("transport.vfs.ContentType", "text/plain");

fn parameters(given: &[(&str, &str)]) -> String {
    let one = |(name, value): &(&str, &str)| format!("<parameter name='{name}'>{value}</parameter>");
    given.iter().map(one).collect()
}

/// A proxy service with these parameters; blank ones beside those that each has.
fn proxy(given: &[(&str, &str)]) -> Tested {
    let defaults: Vec<_> = [URI, TYPE]
        .into_iter()
        .filter(|(name, _)| given.iter().all(|parameter| parameter.0 != *name))
        .collect();
    let parameters = parameters(&[defaults.as_slice(), given].concat());
    tested(&format!("<proxy name='P' transports='vfs'><target inSequence='S'/>{parameters}</proxy>"))
}

fn inbound(given: &[(&str, &str)]) -> Tested {
    let defaults: Vec<_> = [URI, TYPE, ("interval", "1000")]
        .into_iter()
        .filter(|(name, _)| given.iter().all(|parameter| parameter.0 != *name))
        .collect();
    let parameters = parameters(&[defaults.as_slice(), given].concat());
    tested(&format!(
        "<inboundEndpoint name='P' protocol='file' sequence='S'><parameters>{parameters}</parameters></inboundEndpoint>"
    ))
}

fn tested(inside: &str) -> Tested {
    let registry = testing::registry(Vec::new());
    let synapse = config::SYNAPSE;
    testing::configuration(
        &registry,
        &format!(
            "<definitions xmlns='{synapse}'>{inside}<sequence name='S'/><sequence name='main'/><sequence name='fault'/></definitions>"
        ),
    )
}

fn source(tested: &Tested) -> Option<Arc<Source>> {
    tested.bus.plan().sources().next().cloned()
}

/// A service that WSO2 deploys is deployed, whatever it cannot take files from; an inbound endpoint is nothing without them.
#[test]
fn a_proxy_service_without_a_directory_is_deployed() {
    let is_there = |tested: &Tested| tested.bus.plan().has_service("P");
    for (given, says) in [
        ("", "missing-parameter: the parameter `transport.vfs.FileURI` is needed to take files"),
        ("  ", "missing-parameter: the parameter `transport.vfs.FileURI` is needed to take files"),
        ("sftp://u:p@host/in", "unsupported-transport: files over `sftp` need a transport"),
    ] {
        let tested = proxy(&[("transport.vfs.FileURI", given)]);
        assert!(source(&tested).is_none() && is_there(&tested), "{given}: {:?}", tested.found);
        assert!(tested.reports(says), "{given}: {:?}", tested.found);
    }
    let none = tested("<proxy name='P' transports='https vfs'><target inSequence='S'/></proxy>");
    assert!(source(&none).is_none() && is_there(&none), "{:?}", none.found);
    assert!(none.reports("missing-parameter: the parameter `transport.vfs.FileURI`"), "{:?}", none.found);
    // What is wrong is wrong on any server.
    let wrong = proxy(&[("transport.vfs.FileURI", "sftp://host/in"), ("transport.vfs.Build", "maybe")]);
    assert!(!is_there(&wrong), "{:?}", wrong.found);
}

fn shown(value: impl Debug) -> String {
    format!("{value:?}")
}

type Good = (&'static [(&'static str, &'static str)], fn(&Source) -> String, &'static str);

/// What each parameter does to a source.
const GOOD: &[Good] = &[
    (&[], |source| shown(&source.address.path), r#""/in""#),
    (
        &[("FileURI", "/in/x%20y/*")],
        |source| shown((&source.address.path, source.address.recursive)),
        r#"("/in/x y", true)"#,
    ),
    (
        &[("FileURI", "vfs:file:///in/a.xml")],
        |source| shown((&source.address.path, source.address.directory)),
        r#"("/in/a.xml", false)"#,
    ),
    (
        &[("ContentType", "text/plain; charset=ISO-8859-1")],
        |source| shown(&source.content_type),
        r#"Some("text/plain; charset=ISO-8859-1")"#,
    ),
    (
        &[("FileNamePattern", "a.*")],
        |source| shown(source.pattern.as_ref().map(|pattern| pattern.matches("ab"))),
        "Some(Ok(true))",
    ),
    (&[], |source| shown(source.pattern.is_none()), "true"),
    (&[("FileProcessInterval", "7")], |source| shown(source.between), "7ms"),
    (&[("FileProcessCount", "7")], |source| shown(source.most), "Some(7)"),
    (&[("FileProcessCount", "0")], |source| shown(source.most), "None"),
    (&[], |source| shown((&source.processed, &source.failed)), "(Delete, Delete)"),
    (
        &[("ActionAfterProcess", "delete"), ("ActionAfterFailure", "none")],
        |source| shown((&source.processed, &source.failed)),
        "(Delete, Nothing)",
    ),
    (
        &[("ActionAfterProcess", "Move"), ("MoveAfterProcess", "file:///done")],
        |source| shown(&source.processed),
        r#"Move("/done")"#,
    ),
    (
        &[("ActionAfterFailure", "MOVE"), ("MoveAfterFailure", "/failed/")],
        |source| shown(&source.failed),
        r#"Move("/failed")"#,
    ),
    (&[("MoveAfterFailedMove", "file:///stuck")], |source| shown(&source.failed_move), r#"Some("/stuck")"#),
    (
        &[("MoveTimestampFormat", "yyyy"), ("SubFolderTimestampFormat", "MM")],
        |source| shown((source.moving.prefix.is_some(), source.moving.below.is_some())),
        "(true, true)",
    ),
    (
        &[],
        |source| {
            shown((
                source.moving.prefix.is_some(),
                source.moving.below.is_some(),
                source.moving.create,
                source.moving.touch,
            ))
        },
        "(false, false, false, true)",
    ),
    (
        &[("CreateFolder", "TRUE"), ("UpdateLastModified", " false ")],
        |source| shown((source.moving.create, source.moving.touch)),
        "(true, false)",
    ),
    (&[], |source| shown(source.locking), "Locking { beside: true, release: None }"),
    (&[("Locking", "Disable")], |source| shown(source.locking.beside), "false"),
    (
        &[("AutoLockRelease", "true"), ("AutoLockReleaseInterval", "500"), ("LockReleaseSameNode", "true")],
        |source| shown(source.locking.release),
        "Some(Release { after: 500ms, own_machine: true })",
    ),
    (&[("Build", "true")], |source| shown(source.build), "true"),
    (&[], |source| shown((source.build, source.retries, source.reconnect)), "(false, 3, 30s)"),
    (
        &[("MaxRetryCount", "0"), ("ReconnectTimeout", "0")],
        |source| shown((source.retries, source.reconnect)),
        "(0, 10ms)",
    ),
    (
        &[("MaxRetryCount", "5"), ("ReconnectTimeout", "2")],
        |source| shown((source.retries, source.reconnect)),
        "(5, 2s)",
    ),
    (&[], |source| shown((&source.records.file, source.records.again)), "(None, 3s)"),
    (
        &[("FailedRecordsFileDestination", "file:///var/records"), ("FailedRecordNextRetryDuration", "5")],
        |source| shown((&source.records.file, source.records.again)),
        r#"(Some("/var/records/vfs-move-failed-records.properties"), 5ms)"#,
    ),
    (
        &[("FailedRecordsFileName", "mine"), ("MoveFailedRecordTimestampFormat", "yyyy")],
        |source| shown(&source.records.file),
        r#"Some("./mine")"#,
    ),
    (
        &[("FileSortAttribute", "size"), ("FileSortAscending", "false")],
        |source| shown(source.order),
        "Order { by: Size, ascending: false }",
    ),
    (
        &[("FileSortAttribute", "Lastmodifiedtimestamp")],
        |source| shown(source.order),
        "Order { by: Modified, ascending: true }",
    ),
    (&[("FileSortAttribute", "NONE")], |source| shown(source.order), "Order { by: Name, ascending: true }"),
    (&[("FileSizeLimit", "10")], |source| shown(source.largest), "Some(10)"),
    (&[("FileSizeLimit", "-1")], |source| shown(source.largest), "None"),
    (&[("CheckSizeInterval", "10")], |source| shown(source.stable), "Some(10ms)"),
    (&[("CheckSizeInterval", "0")], |source| shown(source.stable), "None"),
    (
        &[("MinimumAge", "1"), ("MaximumAge", "2")],
        |source| shown((source.youngest, source.oldest)),
        "(Some(1s), Some(2s))",
    ),
    (&[("waitTimeBeforeRead", "3")], |source| shown(source.wait), "3ms"),
    (&[("WaitTimeBeforeRead", "4")], |source| shown(source.wait), "4ms"),
    (
        &[("ReplyFileURI", "file:///out?transport.vfs.Append=true"), ("ReplyFileName", "a.xml")],
        |source| shown(source.reply.as_ref().map(|reply| (&reply.address, &reply.name))),
        r#"Some(("vfs:file:///out?transport.vfs.Append=true", Some("a.xml")))"#,
    ),
    (
        &[("ReplyFileURI", "VFS:file:///out")],
        |source| shown(source.reply.as_ref().map(|reply| (&reply.address, &reply.name))),
        r#"Some(("VFS:file:///out", None))"#,
    ),
];

#[test]
fn good_values() {
    for (given, shows, wanted) in GOOD {
        let names: Vec<_> = given.iter().map(|(name, _)| format!("transport.vfs.{name}")).collect();
        let given: Vec<_> =
            names.iter().map(String::as_str).zip(given.iter().map(|(_, value)| *value)).collect();
        for tested in [proxy(&given), inbound(&given)] {
            let source = source(&tested).unwrap_or_else(|| panic!("{given:?}: {:?}", tested.found));
            assert_eq!(shows(&source), *wanted, "{given:?}");
            assert!(tested.found.is_empty(), "{given:?}: {:?}", tested.found);
        }
    }
}

#[test]
fn how_often() {
    for (text, wanted) in
        [("", 300_000), ("5", 5000), ("500ms", 500), ("500 MS", 500), ("315360000", 315_360_000_000)]
    {
        let tested = proxy(&[("transport.PollInterval", text)]);
        let source = source(&tested).unwrap_or_else(|| panic!("{text}: {:?}", tested.found));
        assert_eq!(
            (source.interval.as_millis(), tested.found.len()),
            (wanted, 0),
            "{text}: {:?}",
            tested.found
        );
    }
    for (name, tested) in [
        ("transport.PollInterval", proxy(&[("transport.PollInterval", "0")])),
        ("transport.PollInterval", proxy(&[("transport.PollInterval", "0ms")])),
        ("interval", inbound(&[("interval", "0")])),
    ] {
        assert_eq!(tested.found, [format!("bad-value: the parameter `{name}` should not be 0")]);
        assert_eq!(source(&tested).unwrap().interval.as_millis(), 10);
    }
    let source =
        source(&inbound(&[("interval", "5"), ("sequential", "FALSE"), ("inbound.behavior", "polling")]))
            .unwrap();
    assert_eq!((source.interval.as_millis(), source.sequential), (10, false));
}

const IN_SECONDS: &[&str] = &["MinimumAge", "MaximumAge", "ReconnectTimeout"];
const IN_MILLISECONDS: &[&str] = &[
    "FileProcessInterval",
    "AutoLockReleaseInterval",
    "FailedRecordNextRetryDuration",
    "CheckSizeInterval",
    "waitTimeBeforeRead",
    "WaitTimeBeforeRead",
];
const COUNTS: &[&str] = &["FileProcessCount", "MaxRetryCount"];
const TRUTHS: &[&str] = &[
    "CreateFolder",
    "AutoLockRelease",
    "LockReleaseSameNode",
    "Build",
    "FileSortAscending",
    "UpdateLastModified",
];

/// Of numbers and truths each wrong one is an error with what is expected and what is nearest, and leaves the artifact out.
#[test]
fn wrong_numbers_and_truths() {
    let full = |names: &[&str]| names.iter().map(|name| format!("transport.vfs.{name}")).collect::<Vec<_>>();
    let check = |name: &str, value: &str, expected: &str| {
        // A proxy service, and where the name is one of theirs, an inbound endpoint.
        let artifacts = match name {
            "interval" | "sequential" | "coordination" => vec![inbound(&[(name, value)])],
            "transport.PollInterval" => vec![proxy(&[(name, value)])],
            _ => vec![proxy(&[(name, value)]), inbound(&[(name, value)])],
        };
        for tested in artifacts {
            assert!(source(&tested).is_none(), "{name}={value} is taken");
            assert!(
                tested.reports(&format!("bad-value: the parameter `{name}` cannot be `{value}`")),
                "{name}={value}: {:?}",
                tested.found
            );
            assert!(
                tested.reasons.iter().any(|reason| reason.contains(expected)),
                "{name}={value}: {:?}",
                tested.reasons
            );
        }
    };
    for value in ["-1", "1.5", "x", "5s", "99999999999999999999", "1e3", "0x10", "١"] {
        for name in full(IN_SECONDS).iter().map(String::as_str).chain(["transport.PollInterval"]) {
            check(name, value, "expected whole seconds, 0 to 315360000");
        }
        for name in full(IN_MILLISECONDS).iter().map(String::as_str).chain(["interval"]) {
            check(name, value, "expected whole milliseconds, 0 to 315360000000");
        }
        for name in full(COUNTS) {
            check(&name, value, "expected a whole number, 0 to 4294967295");
        }
        if value != "-1" {
            check(
                "transport.vfs.FileSizeLimit",
                value,
                "expected bytes, 0 to 9223372036854775807; -1: files of any size",
            );
        }
    }
    // No clock has such a time.
    check("transport.PollInterval", "18446744073709551615", "expected whole seconds");
    check("transport.PollInterval", "18446744073709551615ms", "expected whole milliseconds");
    check("interval", "18446744073709551615", "expected whole milliseconds");
    check("transport.vfs.FileSizeLimit", "-2", "-1: files of any size");
    for value in ["yes", "1", "0", "wahr"] {
        for name in full(TRUTHS).iter().map(String::as_str).chain(["sequential", "coordination"]) {
            check(name, value, "expected true or false");
        }
    }
}

/// A parameter with a text that is wrong, what is said of it, and whether files are taken all the same.
const WRONG_TEXTS: &[(&str, &str, &str, &str, bool)] = &[
    (
        "FileURI",
        "",
        "missing-parameter: the parameter `transport.vfs.FileURI` is needed to take files",
        "a directory",
        false,
    ),
    (
        "FileURI",
        "in",
        "bad-address: the parameter `transport.vfs.FileURI` is not an address of a directory",
        "expected an absolute path",
        false,
    ),
    (
        "FileURI",
        "sftp://u:secret@host/in",
        "unsupported-transport: files over `sftp` need a transport that is not there yet",
        "expected a directory of this machine",
        false,
    ),
    (
        "FileURI",
        "vfs:FTP://host/in",
        "unsupported-transport: files over `ftp` need a transport",
        "expected a directory of this machine",
        false,
    ),
    (
        "FileURI",
        "smb://host/in",
        "unsupported-transport: files over `smb` need a transport",
        "expected a directory of this machine",
        false,
    ),
    (
        "MoveAfterFailedMove",
        "ftps://host/in",
        "unsupported-transport: files over `ftps` need a transport",
        "expected a directory of this machine",
        false,
    ),
    (
        "FailedRecordsFileDestination",
        "sftp://host/x",
        "unsupported-transport: files over `sftp` need a transport",
        "expected a directory of this machine",
        false,
    ),
    (
        "ReplyFileURI",
        "sftp://u:secret@host/x",
        "bad-address: answers cannot be written",
        "no address of a directory of this machine",
        false,
    ),
    (
        "ReplyFileURI",
        "file:///x?transport.vfs.Append=yes",
        "bad-address: answers cannot be written",
        "expected true or false",
        false,
    ),
    (
        "ReplyFileName",
        "a.xml",
        "ignored-parameter: the parameter `transport.vfs.ReplyFileName` has no effect",
        "there is no `transport.vfs.ReplyFileURI`",
        true,
    ),
    (
        "ContentType",
        "",
        "missing-parameter: the parameter `transport.vfs.ContentType` says how files are read",
        "guessed by the endings",
        true,
    ),
    (
        "ContentType",
        "xml",
        "bad-value: the parameter `transport.vfs.ContentType` cannot be `xml`",
        "a media type",
        false,
    ),
    ("FileNamePattern", "[", "bad-pattern: `[` is not a valid regular expression", "", false),
    ("FileNamePattern", "*.xml", "bad-pattern: `*.xml` is not a valid regular expression", "", false),
    (
        "ActionAfterProcess",
        "MVOE",
        "bad-value: the parameter `transport.vfs.ActionAfterProcess` cannot be `MVOE`",
        "expected one of: DELETE, MOVE, NONE",
        false,
    ),
    (
        "ActionAfterFailure",
        "0",
        "bad-value: the parameter `transport.vfs.ActionAfterFailure` cannot be `0`",
        "expected one of: DELETE, MOVE, NONE",
        false,
    ),
    (
        "ActionAfterProcess",
        "MOVE",
        "missing-parameter: the parameter `transport.vfs.MoveAfterProcess` is needed",
        "is MOVE",
        false,
    ),
    (
        "ActionAfterFailure",
        "MOVE",
        "missing-parameter: the parameter `transport.vfs.MoveAfterFailure` is needed",
        "is MOVE",
        false,
    ),
    (
        "MoveAfterProcess",
        "file:///done",
        "ignored-parameter: the parameter `transport.vfs.MoveAfterProcess` has no effect",
        "is not MOVE: the files are deleted",
        true,
    ),
    (
        "MoveTimestampFormat",
        "bbb",
        "bad-value: the parameter `transport.vfs.MoveTimestampFormat` cannot be `bbb`",
        "SimpleDateFormat",
        false,
    ),
    (
        "SubFolderTimestampFormat",
        "'",
        "bad-value: the parameter `transport.vfs.SubFolderTimestampFormat` cannot be `'`",
        "SimpleDateFormat",
        false,
    ),
    (
        "MoveFailedRecordTimestampFormat",
        "bbb",
        "bad-value: the parameter `transport.vfs.MoveFailedRecordTimestampFormat` cannot be `bbb`",
        "SimpleDateFormat",
        false,
    ),
    (
        "Locking",
        "true",
        "bad-value: the parameter `transport.vfs.Locking` cannot be `true`",
        "expected one of: enable, disable",
        false,
    ),
    (
        "AutoLockReleaseInterval",
        "5",
        "ignored-parameter: the parameter `transport.vfs.AutoLockReleaseInterval` has no effect",
        "is not true",
        true,
    ),
    (
        "LockReleaseSameNode",
        "true",
        "ignored-parameter: the parameter `transport.vfs.LockReleaseSameNode` has no effect",
        "is not true",
        true,
    ),
    (
        "FileSortAttribute",
        "Date",
        "bad-value: the parameter `transport.vfs.FileSortAttribute` cannot be `Date`",
        "expected one of: Name, Size, Lastmodifiedtimestamp",
        false,
    ),
    (
        "FileSizeLimit",
        "0",
        "bad-value: the parameter `transport.vfs.FileSizeLimit` should not be 0",
        "no file is taken",
        true,
    ),
    (
        "filenamepattern",
        "x",
        "unknown-parameter: there is no parameter `transport.vfs.filenamepattern` for files",
        "this has no effect",
        true,
    ),
    (
        "Streaming",
        "maybe",
        "not-needed: the parameter `transport.vfs.Streaming` has no effect",
        "large files are streams",
        true,
    ),
    ("CheckSizeIgnoreEmpty", "true", "not-needed: ", "never taken", true),
    ("DistributedLock", "true", "not-needed: ", "among all servers", true),
    ("DistributedTimeout", "true", "not-needed: ", "among all servers", true),
    ("ClusterAware", "true", "not-needed: ", "among all servers", true),
    ("IsMounted", "true", "not-needed: ", "looked for until it is", true),
    ("ResolveHostsDynamically", "true", "not-needed: ", "no host name", true),
    ("UseTempFile", "true", "not-needed: ", "address of an endpoint", true),
    ("Append", "true", "not-needed: ", "address of an endpoint", true),
    ("SendFileSynchronously", "true", "not-needed: ", "address of an endpoint", true),
    ("FileType", "BINARY", "not-needed: ", "bytes are read as they are", true),
    ("SFTPIdentities", "x", "not-needed: ", "SFTP", true),
    ("SFTPIdentityPassPhrase", "x", "not-needed: ", "SFTP", true),
    ("SFTPUserDirIsRoot", "x", "not-needed: ", "SFTP", true),
    ("SFTPStrictHostKeyChecking", "x", "not-needed: ", "SFTP", true),
    (
        "MoveAfterFailure",
        "file:///failed",
        "ignored-parameter: the parameter `transport.vfs.MoveAfterFailure` has no effect",
        "is not MOVE: the files are deleted",
        true,
    ),
];

#[test]
fn wrong_texts() {
    for &(name, value, says, label, taken) in WRONG_TEXTS {
        let full = format!("transport.vfs.{name}");
        for tested in [proxy(&[(&full, value)]), inbound(&[(&full, value)])] {
            assert!(tested.reports(says), "{name}={value}: {:?}", tested.found);
            assert!(
                tested.reasons.iter().any(|reason| reason.contains(label)),
                "{name}={value}: {:?}",
                tested.reasons
            );
            assert_eq!(source(&tested).is_some(), taken, "{name}={value}: {:?}", tested.found);
            let all = [tested.found.as_slice(), &tested.reasons].concat();
            assert!(!all.iter().any(|text| text.contains("secret")), "{name}={value}: {all:?}");
        }
    }
}

#[test]
fn parameters_that_do_not_fit_together() {
    let vfs = |name: &str| format!("transport.vfs.{name}");
    let (least, most) = (vfs("MinimumAge"), vfs("MaximumAge"));
    let tested = proxy(&[(&least, "3"), (&most, "2")]);
    assert!(
        tested.reports("bad-value: no file is taken: `transport.vfs.MinimumAge` is more than"),
        "{:?}",
        tested.found
    );
    let (locking, releases) = (vfs("Locking"), vfs("AutoLockRelease"));
    let tested = proxy(&[(&locking, "disable"), (&releases, "true")]);
    assert!(
        tested.reports("ignored-parameter: the parameter `transport.vfs.AutoLockRelease` has no effect"),
        "{:?}",
        tested.found
    );
    let (action, target) = (vfs("ActionAfterProcess"), vfs("MoveAfterProcess"));
    let tested = proxy(&[(&action, "MOVE"), (&target, "file:///in")]);
    assert!(tested.reports("endless-loop: "), "{:?}", tested.found);
    let tested = proxy(&[(&action, "DELETE"), (&action, "NONE")]);
    assert!(tested.reports("duplicate-parameter: "), "{:?}", tested.found);
    assert_eq!(source(&tested).unwrap().processed, Action::Nothing);
    let tested = inbound(&[("transport.PollInterval", "5")]);
    assert!(
        tested.reports("ignored-parameter: the parameter `transport.PollInterval` has no effect"),
        "{:?}",
        tested.found
    );
    let tested = inbound(&[("interval", "")]);
    assert!(
        tested.reports("missing-parameter: the parameter `interval` is needed to take files"),
        "{:?}",
        tested.found
    );
    assert!(source(&tested).is_none());
    let tested = inbound(&[("Interval", "5"), ("interval", "")]);
    assert!(
        tested.reports("unknown-parameter: there is no parameter `Interval` for files"),
        "{:?}",
        tested.found
    );
}

/// A service that takes no files would not be noticed.
#[test]
fn services_that_take_no_files() {
    let proxy = |attributes: &str, given: &[(&str, &str)]| {
        let parameters = parameters(given);
        tested(&format!("<proxy name='P' {attributes}><target inSequence='S'/>{parameters}</proxy>"))
    };
    let tested = proxy("transports='http'", &[URI, TYPE]);
    assert!(
        tested.reports("ignored-parameter: the parameters for files have no effect"),
        "{:?}",
        tested.found
    );
    let tested = proxy("", &[("transport.vfs.FileUri", "file:///in"), TYPE]);
    assert!(
        tested.reports("ignored-parameter: the parameters for files have no effect: there is no"),
        "{:?}",
        tested.found
    );
    let tested = proxy("transports='vfs'", &[("transport.vfs.FileUri", "file:///in"), TYPE]);
    assert!(
        tested.reports("missing-parameter: the parameter `transport.vfs.FileURI` is needed"),
        "{:?}",
        tested.found
    );
    let tested = proxy("", &[URI, TYPE]);
    assert!(source(&tested).is_some() && tested.found.is_empty(), "{:?}", tested.found);
    let tested = proxy("", &[("other", "1")]);
    assert!(source(&tested).is_none() && tested.found.is_empty(), "{:?}", tested.found);
}

/// Each parameter that there is stands in the tables above with a value that is good and one that is not.
#[test]
fn each_parameter_is_in_the_tables() {
    let good: HashSet<&str> =
        GOOD.iter().flat_map(|(given, ..)| given.iter().map(|parameter| parameter.0)).collect();
    let wrong = [IN_SECONDS, IN_MILLISECONDS, COUNTS, TRUTHS].concat();
    let wrong: HashSet<&str> = wrong.into_iter().chain(WRONG_TEXTS.iter().map(|row| row.0)).collect();
    for name in super::PARAMETERS {
        assert!(good.contains(name), "{name} has no good value");
        // Any text is the name of a file.
        assert!(wrong.contains(name) || *name == "FailedRecordsFileName", "{name} has no wrong value");
    }
    for (name, _) in super::NOT_NEEDED {
        assert!(wrong.contains(name), "{name}: nobody looks at what is said");
    }
}
