//! The file connector before its version 4, `fileconnector.…`: it has no connections, and names files by paths and `file:` addresses.
//!
//! Its operations on files are those of the present connector; parameters, names and results differ. Each result replaces the
//! body: `<success>true</success>`. A missing source is not a fault of `copy`, `move`, `delete` and `archives`, but a result of
//! `false`, as in WSO2.

use super::list::{DEEPEST, entries};
use super::locks::Scheme;
use super::parts::{Naming, Part, divide, join};
use super::path::Root;
use super::read::{Part as Lines, becomes_body, reading, time};
use super::transfer::{copy_all, is_missing, is_there, outside, put, too_deep, without_links};
use super::write::{Mode, Writing, body_as_sent, encoded, zip_into};
use super::{
    Connection, Failure, Files, Job, JobResult, Operation, Prepare, Reason, Where, archive, elements,
    gives_nothing, is_wanted, number, pattern, required,
};
use crate::operation::operation;
use crate::parameter::{Form, Parameters, place_of};
use crate::response::{OVERWRITE, VARIABLE};
use crate::result::escaped;
use base64::Engine;
use bytes::Bytes;
use config::Element;
use files::partial::{Existing, Partial, directories};
use flow::{Compiled, Compiler, Context, Definition, Need, Pattern};
use serde_json::{Map, Value as Json};
use std::fmt::Write;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The parameters of an operation, with those of file servers and those of all operations.
macro_rules! parameters {
    ($($parameter:literal),*) => {
        &[
            $($parameter,)*
            "setTimeout",
            "setPassiveMode",
            "setSoTimeout",
            "setUserDirIsRoot",
            "setStrictHostKeyChecking",
            "setAvoidPermission",
            "sftpIdentities",
            "sftpIdentityPassphrase",
            "sourceSftpIdentities",
            "sourceSftpIdentityPassphrase",
            "targetSftpIdentities",
            "targetSftpIdentityPassphrase",
            VARIABLE,
            OVERWRITE,
        ]
    };
}

/// The namespace of lists of files.
const NAMESPACE: &str = "http://org.wso2.esbconnectors.FileConnector";
/// The member with a list of files.
const FILES: &str = "file";
/// The name of the file in an archive of a text.
const OUTPUT: &str = "output.txt";
/// The file that `send` writes into a directory.
const RESPONSE: &str = "response.xml";

/// The operations.
pub(crate) const OPERATIONS: &[&Definition] = &[
    &APPEND,
    &ARCHIVES,
    &COPY,
    &CREATE,
    &DELETE,
    &IS_FILE_EXIST,
    &LIST_FILE_ZIP,
    &MOVE,
    &READ,
    &SEARCH,
    &UNZIP,
    &SEND,
    &GET_SIZE,
    &GET_LAST_MODIFIED_TIME,
    &SPLIT_FILE,
    &MERGE_FILES,
    &READ_SPECIFIED_LINES,
    &READ_A_LINE,
];

const APPEND: Definition = operation(
    "fileconnector.append",
    "Adds a text to a file.",
    parameters!("destination", "inputContent", "position", "encoding"),
    |element, compiler| compile(element, "append", &["destination", "inputContent"], append, compiler),
);

const ARCHIVES: Definition = operation(
    "fileconnector.archives",
    "Packs a file, a directory or a text into a zip archive.",
    parameters!("source", "destination", "inputContent", "fileName", "includeSubDirectories"),
    |element, compiler| compile(element, "archives", &["destination"], archives, compiler),
);

const COPY: Definition = operation(
    "fileconnector.copy",
    "Copies a file or a directory.",
    parameters!("source", "destination", "filePattern", "includeParentDirectory", "includeSubDirectories"),
    |element, compiler| compile(element, "copy", &["source", "destination"], copy, compiler),
);

const CREATE: Definition = operation(
    "fileconnector.create",
    "Makes a file or a directory.",
    parameters!("filePath", "source", "inputContent", "encoding", "isBinaryContent"),
    |element, compiler| compile(element, "create", &[], create, compiler),
);

const DELETE: Definition = operation(
    "fileconnector.delete",
    "Deletes a file or a directory, or files of a directory.",
    parameters!("source", "filePattern", "includeSubDirectories"),
    |element, compiler| compile(element, "delete", &["source"], delete, compiler),
);

const IS_FILE_EXIST: Definition = operation(
    "fileconnector.isFileExist",
    "Tells whether there is a file or a directory.",
    parameters!("source"),
    |element, compiler| compile(element, "isFileExist", &["source"], is_file_exist, compiler),
);

const LIST_FILE_ZIP: Definition = operation(
    "fileconnector.listFileZip",
    "Lists the files of a zip archive.",
    parameters!("source"),
    |element, compiler| compile(element, "listFileZip", &["source"], list_file_zip, compiler),
);

const MOVE: Definition = operation(
    "fileconnector.move",
    "Moves a file or a directory.",
    parameters!("source", "destination", "filePattern", "includeParentDirectory", "includeSubDirectories"),
    |element, compiler| compile(element, "move", &["source", "destination"], relocate, compiler),
);

const READ: Definition = operation(
    "fileconnector.read",
    "Reads a file.",
    parameters!("source", "filePattern", "contentType", "streaming", "includeParentDirectory"),
    |element, compiler| compile(element, "read", &["source"], read, compiler),
);

const SEARCH: Definition = operation(
    "fileconnector.search",
    "Lists the files of a directory that a pattern matches.",
    parameters!("source", "filePattern", "recursiveSearch", "includeParentDirectory"),
    |element, compiler| compile(element, "search", &["source", "filePattern"], search, compiler),
);

const UNZIP: Definition = operation(
    "fileconnector.unzip",
    "Unpacks a zip archive into a directory.",
    parameters!("source", "destination"),
    |element, compiler| compile(element, "unzip", &["source", "destination"], unzip, compiler),
);

const SEND: Definition = operation(
    "fileconnector.send",
    "Writes the body into a file.",
    parameters!("address", "append"),
    |element, compiler| compile(element, "send", &["address"], send, compiler),
);

const GET_SIZE: Definition = operation(
    "fileconnector.getSize",
    "How many bytes a file has.",
    parameters!("source"),
    |element, compiler| compile(element, "getSize", &["source"], get_size, compiler),
);

const GET_LAST_MODIFIED_TIME: Definition = operation(
    "fileconnector.getLastModifiedTime",
    "When a file or a directory was changed.",
    parameters!("source"),
    |element, compiler| {
        compile(element, "getLastModifiedTime", &["source"], get_last_modified_time, compiler)
    },
);

const SPLIT_FILE: Definition = operation(
    "fileconnector.splitFile",
    "Splits a file by lines, by size, or by the elements that an XPath selects.",
    parameters!("source", "destination", "chunkSize", "numberOfLines", "xpathExpression"),
    |element, compiler| compile(element, "splitFile", &["source", "destination"], split_file, compiler),
);

const MERGE_FILES: Definition = operation(
    "fileconnector.mergeFiles",
    "Adds the files of a directory to a file.",
    parameters!("source", "destination", "filePattern"),
    |element, compiler| compile(element, "mergeFiles", &["source", "destination"], merge_files, compiler),
);

const READ_SPECIFIED_LINES: Definition = operation(
    "fileconnector.readSpecifiedLines",
    "Reads lines of a file.",
    parameters!("source", "contentType", "start", "end"),
    |element, compiler| compile(element, "readSpecifiedLines", &["source"], read_specified_lines, compiler),
);

const READ_A_LINE: Definition = operation(
    "fileconnector.readALine",
    "Reads a line of a file.",
    parameters!("source", "lineNumber"),
    |element, compiler| compile(element, "readALine", &["source", "lineNumber"], read_a_line, compiler),
);

/// Compiles an operation. `needed`: its required parameters.
fn compile(
    element: &Element,
    name: &'static str,
    needed: &[&str],
    prepare: Prepare,
    compiler: &mut Compiler<'_>,
) -> Compiled {
    let parameters = Parameters::compile(element, |_| Form::Plain, compiler)?;
    parameters.check_given(needed, element, compiler);
    check(name, &parameters, element, compiler);
    let message_need = match name {
        "send" => Need::Whole,
        _ if parameters.get(VARIABLE).is_none() => Need::Replaces,
        _ => Need::Nothing,
    };
    let need = message_need.max(parameters.need());
    let connection = Connection { root: Root::machine(), locks: Scheme::Local, absent: None };
    let place = Where::Machine(Arc::new(connection));
    Some(Box::new(Operation {
        connector: "fileconnector",
        name,
        place,
        parameters,
        prepare,
        need,
        streams: false,
    }))
}

/// Reports literals that are wrong.
fn check(name: &str, parameters: &Parameters, element: &Element, compiler: &mut Compiler<'_>) {
    for name in ["source", "destination", "filePath", "address"] {
        let Some(text) = parameters.literal(name).filter(|t| !t.is_empty()) else { continue };
        let Err(failure) = Root::machine().resolve(text) else { continue };
        let operation = element.local();
        let (rule, message) = match failure.reason {
            Reason::Connection => (
                "unsupported-connector",
                format!("`{operation}` cannot be used: messages that come to it fault"),
            ),
            _ => ("bad-value", format!("`{name}` of `{operation}` is not a path of this machine")),
        };
        compiler.warning(rule, message, place_of(element, name), failure.detail);
    }
    if name == "create" && parameters.is_absent("source") {
        parameters.check_given(&["filePath"], element, compiler);
    }
    if name == "archives" && parameters.is_absent("inputContent") {
        parameters.check_given(&["source"], element, compiler);
    }
    let given = |name: &&str| !parameters.is_absent(name);
    if name == "splitFile" && !["numberOfLines", "chunkSize", "xpathExpression"].iter().any(given) {
        parameters.check_given(&["chunkSize"], element, compiler);
    }
    for name in ["start", "end", "lineNumber", "chunkSize", "numberOfLines"] {
        parameters.check(name, element, compiler, |text| match text.parse::<u64>() {
            Ok(1..) => Ok(()),
            _ => Err("expected a whole number of at least 1".to_owned()),
        });
    }
    let truths = [
        "includeParentDirectory",
        "includeSubDirectories",
        "recursiveSearch",
        "streaming",
        "append",
        "isBinaryContent",
    ];
    parameters.check_truths(&truths, element, compiler);
    parameters.check("filePattern", element, compiler, |text| match text {
        "*" if name == "delete" => Ok(()),
        text => Pattern::compile(text).map(|_| ()).map_err(|why| format!("not a regular expression: {why}")),
    });
    parameters.check("encoding", element, compiler, |text| {
        encoded(String::new(), Some(text)).map(|_| ()).map_err(|failure| failure.detail)
    });
    parameters.check("xpathExpression", element, compiler, |text| {
        elements::compiled(text).map(|_| ()).map_err(|failure| failure.detail)
    });
    parameters.check("fileName", element, compiler, |text| {
        entry_name(text).map(|_| ()).map_err(|failure| failure.detail)
    });
}

/// Makes a result the body: the element of its member, or the list of files.
pub(super) fn xml(result: &Map<String, Json>) -> String {
    let mut out = String::new();
    if let Some(Json::Array(list)) = result.get(FILES) {
        let _ = write!(out, "<ns:result xmlns:ns=\"{NAMESPACE}\">");
        for name in list.iter().filter_map(Json::as_str) {
            let _ = write!(out, "<ns:file>{}</ns:file>", escaped(name));
        }
        out.push_str("</ns:result>");
    } else if let Some((name, value)) = result.iter().next() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let _ = write!(out, "<{name}>{}</{name}>", escaped(&text));
    }
    out
}

fn result(name: &str, value: impl Into<Json>) -> JobResult {
    let mut done = JobResult::default();
    done.members.insert(name.to_owned(), value.into());
    done
}

fn success() -> JobResult {
    result("success", true)
}

/// A result of `false` where the source is missing; otherwise the failure.
fn unless_missing(path: &Path, ran: Result<(), Failure>) -> Result<JobResult, Failure> {
    match ran {
        Ok(()) => Ok(success()),
        Err(failure) => match fs::symlink_metadata(path) {
            Err(error) if is_missing(&error) => {
                let missing = Some(format!("{} is not there", path.display()));
                Ok(JobResult { missing, ..result("success", false) })
            }
            _ => Err(failure),
        },
    }
}

/// The text to write, in its encoding; `None`: there is none.
fn content(parameters: &Parameters, context: &mut Context) -> Result<Option<Bytes>, Failure> {
    let Some(value) = parameters.value("inputContent", context)? else { return Ok(None) };
    let encoding = parameters.text("encoding", context)?;
    if parameters.is_true("isBinaryContent", false, context)? {
        let text: String = value.to_string().split_whitespace().collect();
        let bytes = base64::engine::general_purpose::STANDARD.decode(text).map_err(|why| {
            Failure::new(Reason::Configuration, format!("`inputContent` is not base64: {why}"))
        })?;
        return Ok(Some(bytes.into()));
    }
    Ok(Some(encoded(value.to_string(), encoding.as_deref())?.into()))
}

fn append(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let path = required(parameters, "destination", context)?;
    let content = match content(parameters, context)? {
        Some(content) if !content.is_empty() => content,
        _ if parameters.is_absent("inputContent") => {
            return Err(Failure::new(Reason::Configuration, "the parameter `inputContent` is not given"));
        }
        _ => return Err(gives_nothing("inputContent")),
    };
    // A line that the file does not have means its end.
    let position = parameters.text("position", context)?;
    let position = position.and_then(|text| text.parse().ok()).filter(|line| *line > 0);
    let writing = Writing::plain(path, Mode::Append, content, position);
    Ok(Arc::new(move |files| {
        begin(&writing.place(files)?.0)?;
        writing.run(files)?;
        Ok(success())
    }))
}

/// Creates an empty file where there is none, and its directories.
fn begin(path: &Path) -> Result<(), Failure> {
    if fs::metadata(path).is_ok() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        directories(parent).map_err(|error| Failure::io(parent, &error))?;
    }
    let made = OpenOptions::new().append(true).create(true).open(path);
    made.map(|_| ()).map_err(|error| Failure::io(path, &error))
}

fn create(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let path = match parameters.text("filePath", context)? {
        Some(path) => path,
        None => required(parameters, "source", context)?,
    };
    let content = content(parameters, context)?.filter(|content| !content.is_empty());
    Ok(Arc::new(move |files| {
        let place = files.path(&path)?;
        match &content {
            // A name with a slash at the end is a directory.
            _ if !has_extension(&place) => {
                directories(&place).map_err(|error| Failure::io(&place, &error))?;
            }
            None => begin(&place)?,
            // As in WSO2, an existing file is kept.
            Some(content) => {
                let mode = if fs::metadata(&place).is_ok() { Mode::Append } else { Mode::Overwrite };
                Writing::plain(path.clone(), mode, content.clone(), None).run(files)?;
            }
        }
        Ok(success())
    }))
}

/// Whether a missing path counts as a file: its name has an extension.
fn has_extension(path: &Path) -> bool {
    path.extension().is_some_and(|extension| !extension.is_empty())
}

/// The name of a file in an archive.
fn entry_name(text: &str) -> Result<&str, Failure> {
    match text.starts_with('/') || text.split('/').any(|part| part == "..") || text.contains('\0') {
        true => {
            Err(Failure::new(Reason::IllegalPath, format!("`fileName` leads out of the archive: {text}")))
        }
        false => Ok(text),
    }
}

fn archives(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let to = required(parameters, "destination", context)?;
    if let Some(content) = content(parameters, context)?.filter(|c| !c.is_empty()) {
        let name = parameters.text("fileName", context)?.unwrap_or_else(|| OUTPUT.to_owned());
        entry_name(&name)?;
        return Ok(Arc::new(move |files| {
            let to = files.path(&to)?;
            let mut partial = Partial::begin(&to, Existing::Replace, true)?;
            zip_into(&mut partial, &to, &name, &mut &content[..], files)?;
            partial.finish()?;
            Ok(success())
        }));
    }
    let from = required(parameters, "source", context)?;
    let deep = parameters.is_true("includeSubDirectories", true, context)?;
    Ok(Arc::new(move |files| {
        let (from, to) = (files.path(&from)?, files.path(&to)?);
        unless_missing(&from, archive::pack_into(&from, &to, deep, files).map(|_| ()))
    }))
}

/// The parameters of `copy` and `move`.
struct Transfer {
    from: String,
    to: String,
    pattern: Option<Arc<Pattern>>,
    with_parent: bool,
    deep: bool,
}

impl Transfer {
    fn of(parameters: &Parameters, context: &mut Context) -> Result<Transfer, Failure> {
        Ok(Transfer {
            from: required(parameters, "source", context)?,
            to: required(parameters, "destination", context)?,
            pattern: pattern(parameters, "filePattern", context)?,
            with_parent: parameters.is_true("includeParentDirectory", false, context)?,
            deep: parameters.is_true("includeSubDirectories", true, context)?,
        })
    }

    /// Source and target. The target of a file is the file, or is in the directory, that is named; that of a directory is the directory that
    /// is named, or one in it.
    fn paths(&self, files: &Files) -> Result<(PathBuf, PathBuf, bool), Failure> {
        let (from, mut to) = (files.path(&self.from)?, files.path(&self.to)?);
        let is_directory = fs::metadata(&from).is_ok_and(|m| m.is_dir());
        let into = match is_directory {
            true => self.with_parent,
            false => fs::metadata(&to).map_or_else(|_| !has_extension(&to), |m| m.is_dir()),
        };
        if let (true, Some(name)) = (into, from.file_name()) {
            to = to.join(name);
        }
        if is_directory {
            outside(&from, &to, Path::to_path_buf)?;
        }
        Ok((from, to, is_directory))
    }
}

fn copy(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let transfer = Transfer::of(parameters, context)?;
    Ok(Arc::new(move |files| {
        let (from, to, is_directory) = transfer.paths(files)?;
        unless_missing(&from, copied(&transfer, &from, &to, is_directory, files))
    }))
}

fn copied(
    transfer: &Transfer,
    from: &Path,
    to: &Path,
    is_directory: bool,
    files: &Files,
) -> Result<(), Failure> {
    let mut count = 0;
    if !is_directory {
        return copy_all(from, to, None, Existing::Replace, 0, &mut count, files);
    }
    // The target of a link is copied, not the link.
    outside(from, to, without_links)?;
    if transfer.deep {
        return copy_all(from, to, transfer.pattern.as_deref(), Existing::Replace, 0, &mut count, files);
    }
    directories(to).map_err(|error| Failure::io(to, &error))?;
    for entry in entries(from, &mut count, files)? {
        if entry.metadata.is_file() && is_wanted(&entry.name, transfer.pattern.as_deref())? {
            let name = entry.path.file_name().unwrap_or_default();
            copy_all(&entry.path, &to.join(name), None, Existing::Replace, 0, &mut 0, files)?;
        }
    }
    Ok(())
}

fn relocate(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let transfer = Transfer::of(parameters, context)?;
    Ok(Arc::new(move |files| {
        let (from, to, is_directory) = transfer.paths(files)?;
        unless_missing(&from, moved(&transfer, &from, &to, is_directory, files))
    }))
}

fn moved(
    transfer: &Transfer,
    from: &Path,
    to: &Path,
    is_directory: bool,
    files: &Files,
) -> Result<(), Failure> {
    fs::symlink_metadata(from).map_err(|error| Failure::io(from, &error))?;
    if !is_directory || (transfer.with_parent && transfer.pattern.is_none() && transfer.deep) {
        if let Some(above) = to.parent() {
            directories(above).map_err(|error| Failure::io(above, &error))?;
        }
        return put(from, to, true, files);
    }
    move_members(transfer, from, to, 0, &mut 0, files)
}

/// Moves the wanted files of a directory; the directories themselves stay.
fn move_members(
    transfer: &Transfer,
    from: &Path,
    to: &Path,
    depth: usize,
    count: &mut usize,
    files: &Files,
) -> Result<(), Failure> {
    if depth > DEEPEST {
        return Err(too_deep(from));
    }
    directories(to).map_err(|error| Failure::io(to, &error))?;
    for entry in entries(from, count, files)? {
        let target = to.join(entry.path.file_name().unwrap_or_default());
        let is_directory = fs::symlink_metadata(&entry.path).is_ok_and(|m| m.is_dir());
        match &transfer.pattern {
            _ if is_directory && !transfer.deep => {}
            Some(_) if is_directory => move_members(transfer, &entry.path, &target, depth + 1, count, files)?,
            Some(pattern) if !is_wanted(&entry.name, Some(pattern))? => {}
            _ => put(&entry.path, &target, true, files)?,
        }
    }
    Ok(())
}

fn delete(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let path = required(parameters, "source", context)?;
    let pattern = match parameters.text("filePattern", context)?.as_deref() {
        Some("*") => None,
        _ => pattern(parameters, "filePattern", context)?,
    };
    let deep = parameters.is_true("includeSubDirectories", false, context)?;
    Ok(Arc::new(move |files| {
        let path = files.path(&path)?;
        unless_missing(&path, deleted(&path, pattern.as_deref(), deep, 0, &mut 0, files))
    }))
}

fn deleted(
    path: &Path,
    pattern: Option<&Pattern>,
    deep: bool,
    depth: usize,
    count: &mut usize,
    files: &Files,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::io(path, &error);
    if !fs::symlink_metadata(path).map_err(failed)?.is_dir() {
        return fs::remove_file(path).map_err(failed);
    }
    let Some(wanted) = pattern else {
        return match path.parent() {
            Some(_) => fs::remove_dir_all(path).map_err(failed),
            None => Err(Failure::new(Reason::IllegalPath, "the root directory is not deleted")),
        };
    };
    if depth > DEEPEST {
        return Err(too_deep(path));
    }
    for entry in entries(path, count, files)? {
        let is_directory = fs::symlink_metadata(&entry.path).is_ok_and(|m| m.is_dir());
        let ran = match is_directory {
            true if deep => deleted(&entry.path, pattern, deep, depth + 1, count, files),
            true => Ok(()),
            false if is_wanted(&entry.name, Some(wanted))? => {
                deleted(&entry.path, None, false, 0, count, files)
            }
            false => Ok(()),
        };
        // Another process was faster.
        if ran.is_err() && fs::symlink_metadata(&entry.path).is_ok() {
            return ran;
        }
    }
    Ok(())
}

fn is_file_exist(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let path = required(parameters, "source", context)?;
    Ok(Arc::new(move |files| {
        let path = files.path(&path)?;
        Ok(result("fileExist", is_there(&path)?))
    }))
}

fn list_file_zip(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let path = required(parameters, "source", context)?;
    Ok(Arc::new(move |files| {
        let names = archive::names(&files.path(&path)?)?;
        let names: Vec<Json> =
            names.into_iter().filter(|name| !name.ends_with('/')).map(Json::from).collect();
        Ok(result(FILES, names))
    }))
}

fn read(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let path = required(parameters, "source", context)?;
    let pattern = pattern(parameters, "filePattern", context)?;
    let content_type = parameters.text("contentType", context)?;
    let streams = becomes_body(parameters, context)? && parameters.is_true("streaming", false, context)?;
    let read = reading(path, pattern, Lines::All, streams, content_type, None);
    Ok(Arc::new(move |files| {
        let mut done = read(files)?;
        let name = done.attributes.remove("FILE_NAME").unwrap_or_default();
        done.attributes = Map::from_iter([("readingFileName".to_owned(), name)]);
        Ok(done)
    }))
}

fn read_specified_lines(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let path = required(parameters, "source", context)?;
    let content_type = parameters.text("contentType", context)?;
    let from = line(parameters, "start", context)?.unwrap_or(1);
    let to = line(parameters, "end", context)?.unwrap_or(u64::MAX);
    if to < from {
        return Err(Failure::new(Reason::Configuration, "`end` is before `start`"));
    }
    Ok(lines(path, from, to, content_type))
}

fn read_a_line(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let path = required(parameters, "source", context)?;
    let line = line(parameters, "lineNumber", context)?
        .ok_or_else(|| Failure::new(Reason::Configuration, "the parameter `lineNumber` is not given"))?;
    Ok(lines(path, line, line, Some("text/plain".to_owned())))
}

fn lines(path: String, from: u64, to: u64, content_type: Option<String>) -> Job {
    let read = reading(path, None, Lines::Lines(from, to), false, content_type, None);
    Arc::new(move |files| Ok(JobResult { attributes: Map::new(), ..read(files)? }))
}

/// A line, from 1.
fn line(parameters: &Parameters, name: &str, context: &mut Context) -> Result<Option<u64>, Failure> {
    from_one(number(parameters, name, context)?, name, "line")
}

fn from_one(number: Option<u64>, name: &str, kind: &str) -> Result<Option<u64>, Failure> {
    match number {
        Some(0) => Err(Failure::new(
            Reason::Configuration,
            format!("the parameter `{name}` is not a {kind} from 1: 0"),
        )),
        number => Ok(number),
    }
}

fn search(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let path = required(parameters, "source", context)?;
    required(parameters, "filePattern", context)?;
    let pattern = pattern(parameters, "filePattern", context)?;
    let deep = parameters.is_true("recursiveSearch", false, context)?;
    Ok(Arc::new(move |files| {
        let mut found = Vec::new();
        find(&files.path(&path)?, pattern.as_deref(), deep, 0, &mut 0, &mut found, files)?;
        Ok(result(FILES, found))
    }))
}

fn find(
    directory: &Path,
    pattern: Option<&Pattern>,
    deep: bool,
    depth: usize,
    count: &mut usize,
    found: &mut Vec<Json>,
    files: &Files,
) -> Result<(), Failure> {
    for entry in entries(directory, count, files)? {
        // A linked directory may lead back here.
        let linked = fs::symlink_metadata(&entry.path).is_ok_and(|m| m.is_symlink());
        if entry.metadata.is_dir() {
            if deep && !linked && depth < DEEPEST {
                find(&entry.path, pattern, deep, depth + 1, count, found, files)?;
            }
        } else if entry.metadata.is_file() && is_wanted(&entry.name, pattern)? {
            found.push(entry.path.to_string_lossy().into());
        }
    }
    Ok(())
}

fn unzip(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let from = required(parameters, "source", context)?;
    let to = required(parameters, "destination", context)?;
    Ok(Arc::new(move |files| {
        archive::unpack(&files.path(&from)?, &files.path(&to)?, files)?;
        Ok(success())
    }))
}

fn send(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let path = required(parameters, "address", context)?;
    let appends = parameters.is_true("append", false, context)?;
    let body = body_as_sent(context)?;
    Ok(Arc::new(move |files| {
        let mut place = files.path(&path)?;
        let mut path = path.clone();
        if fs::metadata(&place).is_ok_and(|m| m.is_dir()) {
            place.push(RESPONSE);
            path = format!("{}/{RESPONSE}", path.trim_end_matches('/'));
        }
        if appends {
            begin(&place)?;
        }
        let mode = if appends { Mode::Append } else { Mode::Overwrite };
        Writing::plain(path, mode, body.clone(), None).run(files)?;
        Ok(success())
    }))
}

fn get_size(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let path = required(parameters, "source", context)?;
    Ok(Arc::new(move |files| {
        let path = files.path(&path)?;
        let metadata = fs::metadata(&path).map_err(|error| Failure::io(&path, &error))?;
        match metadata.is_file() {
            true => Ok(result("fileSize", metadata.len())),
            false => Err(Failure::no_file(&path)),
        }
    }))
}

fn get_last_modified_time(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let path = required(parameters, "source", context)?;
    Ok(Arc::new(move |files| {
        let path = files.path(&path)?;
        let modified = fs::metadata(&path).and_then(|m| m.modified());
        let modified = modified.map_err(|error| Failure::io(&path, &error))?;
        Ok(result("lastModifiedTime", time(modified)))
    }))
}

fn split_file(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let from = required(parameters, "source", context)?;
    let to = required(parameters, "destination", context)?;
    let mut size = |name: &str| from_one(number(parameters, name, context)?, name, "number");
    // As in WSO2, the first of these counts.
    let part = match (size("numberOfLines")?, size("chunkSize")?) {
        (Some(lines), _) => Part::Lines(lines),
        (None, Some(bytes)) => Part::Bytes(bytes),
        (None, None) => match parameters.text("xpathExpression", context)? {
            Some(text) => Part::Element(elements::compiled(&text)?),
            None => {
                let why = "none of `numberOfLines`, `chunkSize` and `xpathExpression` is given";
                return Err(Failure::new(Reason::Configuration, why));
            }
        },
    };
    Ok(Arc::new(move |files| {
        divide(&files.path(&from)?, &files.path(&to)?, &part, Naming::Behind, files)?;
        Ok(success())
    }))
}

fn merge_files(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let from = required(parameters, "source", context)?;
    let to = required(parameters, "destination", context)?;
    let pattern = pattern(parameters, "filePattern", context)?;
    Ok(Arc::new(move |files| {
        join(&files.path(&from)?, &files.path(&to)?, pattern.as_deref(), false, files)?;
        Ok(success())
    }))
}
