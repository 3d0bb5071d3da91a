//! `file.read`: a file, or lines of it, as the body or the payload of a variable.

use super::locks::lock;
use super::write::encoded;
use super::{
    Body, Content, Failure, Files, Job, JobResult, Reason, compile, is_wanted, number, pattern, required,
};
use crate::operation::operation;
use crate::parameter::Parameters;
use crate::response::Place;
use files::claim::Claim;
use files::partial::is_partial;
use files::stream::FileBody;
use flow::{Context, Definition};
use message::memory::Held;
use message::{Kind, MediaType, Reading, Value};
use serde_json::{Map, Value as Json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

pub(super) const READ: Definition = operation(
    "file.read",
    "Reads a file, or lines of it.",
    parameters!(
        "path",
        "filePattern",
        "readMode",
        "startLineNum",
        "endLineNum",
        "lineNum",
        "contentType",
        "encoding",
        "charset",
        "includeResultTo",
        "resultPropertyName",
        "enableStreaming",
        "enableLock"
    ),
    |element, compiler| compile(element, "read", Body::Unread, prepare, compiler),
);

/// Which part of a file is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    All,
    /// Only the attributes of the file.
    Facts,
    /// From a line to a line, both from 1 and included.
    Lines(u64, u64),
}

fn prepare(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let path = required(parameters, "path", context)?;
    let pattern = pattern(parameters, "filePattern", context)?;
    let part = part(parameters, context)?;
    let streams = streams(parameters, context)?;
    let content_type = parameters.text("contentType", context)?;
    let encoding = match parameters.text("encoding", context)? {
        Some(encoding) => Some(encoding),
        None => parameters.text("charset", context)?,
    };
    if let Some(name) = &encoding {
        encoded(String::new(), Some(name))?;
    }
    Ok(reading(path, pattern, part, streams, content_type, encoding))
}

/// Reads a part of a file, or of the first file of a directory that the pattern matches.
pub(super) fn reading(
    path: String,
    pattern: Option<Arc<flow::Pattern>>,
    part: Part,
    streams: bool,
    content_type: Option<String>,
    encoding: Option<String>,
) -> Job {
    Arc::new(move |files| {
        if content_type.as_ref().is_some_and(|name| name.bytes().any(|byte| byte.is_ascii_control())) {
            return Err(Failure::new(Reason::Configuration, "`contentType` has a control character in it"));
        }
        let path = chosen(files.path(&path)?, pattern.as_deref())?;
        let lock = lock(&path, files)?;
        let attributes = facts(&path, files)?;
        if part == Part::Facts {
            return Ok(JobResult { attributes, ..JobResult::default() });
        }
        let (bytes, held, open) = match streams {
            true => (Vec::new(), Held::NONE, Some(open(&path, part, lock, files)?)),
            false => read(&path, part, files).map(|(bytes, held)| (bytes, held, None))?,
        };
        let content_type = content_type.clone().unwrap_or_else(|| content_type_of(&path).to_owned());
        let content_type = match &encoding {
            Some(encoding) if MediaType::parse(&content_type).charset().is_none() => {
                format!("{content_type}; charset={encoding}")
            }
            _ => content_type,
        };
        Ok(JobResult {
            content: Some(Content { bytes, content_type, held, open }),
            attributes,
            ..JobResult::default()
        })
    })
}

/// Whether the file becomes a body that is read while it is sent. A variable or a property needs the whole content.
fn streams(parameters: &Parameters, context: &mut Context) -> Result<bool, Failure> {
    Ok(becomes_body(parameters, context)? && parameters.is_true("enableStreaming", false, context)?)
}

/// Whether the content becomes the body.
pub(super) fn becomes_body(parameters: &Parameters, context: &mut Context) -> Result<bool, Failure> {
    let to = parameters.text("includeResultTo", context)?.unwrap_or_default();
    let to_property = to.eq_ignore_ascii_case("Message Property")
        && parameters.text("resultPropertyName", context)?.is_some();
    Ok(match Place::of(parameters, context)? {
        Place::Body => !to_property,
        Place::BodyAndVariable(_) => true,
        Place::Variable(_) => false,
    })
}

/// A part of an open file.
pub(super) struct Open {
    file: File,
    length: u64,
    /// The lock, held until the message has ended.
    lock: Option<Claim>,
}

/// Opens a file at the beginning of the part.
fn open(path: &Path, part: Part, lock: Option<Claim>, files: &Files) -> Result<Open, Failure> {
    let failed = |error: std::io::Error| Failure::io(path, &error);
    let mut file = File::open(path).map_err(failed)?;
    let (start, length) = match part {
        Part::Lines(from, to) => range(&file, path, from, to, files)?,
        Part::All | Part::Facts => (0, file.metadata().map_err(failed)?.len()),
    };
    file.seek(SeekFrom::Start(start)).map_err(failed)?;
    Ok(Open { file, length, lock })
}

/// The position of lines in a file: their first byte, and the bytes up to the end of the last one.
fn range(file: &File, path: &Path, from: u64, to: u64, files: &Files) -> Result<(u64, u64), Failure> {
    let failed = |error: std::io::Error| Failure::io(path, &error);
    let mut reader = BufReader::with_capacity(128 << 10, file);
    let (mut at, mut line, mut start) = (0_u64, 1_u64, (from == 1).then_some(0));
    loop {
        files.go_on()?;
        let buffer = reader.fill_buf().map_err(failed)?;
        if buffer.is_empty() {
            return Ok(start.map_or((at, 0), |start| (start, at - start)));
        }
        for (offset, _) in buffer.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            if line == to {
                let end = at + offset as u64;
                return Ok(start.map_or((end, 0), |start| (start, end - start)));
            }
            line += 1;
            if line == from {
                start = Some(at + offset as u64 + 1);
            }
        }
        let length = buffer.len();
        at += length as u64;
        reader.consume(length);
    }
}

fn part(parameters: &Parameters, context: &mut Context) -> Result<Part, Failure> {
    let mode = parameters.text("readMode", context)?.unwrap_or_default();
    let mut line = |name: &str| {
        let line = number(parameters, name, context)?;
        line.filter(|line| *line > 0).ok_or_else(|| {
            Failure::new(Reason::Configuration, format!("the readMode {mode} needs `{name}`, a line from 1"))
        })
    };
    let part = match mode.to_ascii_lowercase().replace([' ', '_'], "").as_str() {
        "" | "completefile" => Part::All,
        "metadataonly" => Part::Facts,
        "startingfromline" => Part::Lines(line("startLineNum")?, u64::MAX),
        "uptoline" => Part::Lines(1, line("endLineNum")?),
        "betweenlines" => Part::Lines(line("startLineNum")?, line("endLineNum")?),
        "specificline" => {
            let line = line("lineNum")?;
            Part::Lines(line, line)
        }
        _ => return Err(Failure::new(Reason::Configuration, format!("there is no readMode {mode}"))),
    };
    match part {
        Part::Lines(from, to) if to < from => {
            Err(Failure::new(Reason::Configuration, "`endLineNum` is before `startLineNum`"))
        }
        part => Ok(part),
    }
}

/// The file to read: of a directory the first one, by name, that the pattern matches.
fn chosen(path: PathBuf, pattern: Option<&flow::Pattern>) -> Result<PathBuf, Failure> {
    let metadata = fs::metadata(&path).map_err(|error| Failure::io(&path, &error))?;
    if metadata.is_file() {
        return Ok(path);
    }
    if !metadata.is_dir() {
        return Err(Failure::new(Reason::IllegalPath, format!("{} is not a file", path.display())));
    }
    let entries = fs::read_dir(&path).map_err(|error| Failure::io(&path, &error))?;
    let mut first: Option<String> = None;
    for entry in entries {
        let entry = entry.map_err(|error| Failure::io(&path, &error))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let is_first = first.as_ref().is_none_or(|first| name < *first);
        let is_file = is_first && !is_partial(&name) && fs::metadata(entry.path()).is_ok_and(|m| m.is_file());
        if is_file && is_wanted(&name, pattern)? {
            first = Some(name);
        }
    }
    first.map(|name| path.join(name)).ok_or_else(|| {
        Failure::new(
            Reason::Operation,
            format!("there is no file in {} that the filePattern matches", path.display()),
        )
    })
}

fn read(path: &Path, part: Part, files: &Files) -> Result<(Vec<u8>, Held), Failure> {
    let failed = |error: std::io::Error| Failure::io(path, &error);
    let too_large = || {
        let why = format!("{} has more than a flow may hold ({} bytes)", path.display(), files.held);
        Failure::new(Reason::Configuration, why)
    };
    let file = File::open(path).map_err(failed)?;
    let mut held = Held::NONE;
    let Part::Lines(from, to) = part else {
        let length = usize::try_from(file.metadata().map_err(failed)?.len()).unwrap_or(usize::MAX);
        if length > files.held {
            return Err(too_large());
        }
        held.try_grow(length)?;
        let mut bytes = Vec::with_capacity(length);
        // Another process may append meanwhile.
        file.take(files.held as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
        held.try_grow(bytes.capacity())?;
        return if bytes.len() > files.held { Err(too_large()) } else { Ok((bytes, held)) };
    };
    let (mut reader, mut bytes, mut number) = (BufReader::new(file), Vec::new(), 0);
    let mut line = Vec::new();
    while number < to {
        line.clear();
        // A line without end counts as too long.
        let length =
            (&mut reader).take(files.held as u64 + 1).read_until(b'\n', &mut line).map_err(failed)?;
        if length == 0 {
            break;
        }
        number += 1;
        if number % 1024 == 0 {
            files.go_on()?;
        }
        if length > files.held {
            return Err(too_large());
        }
        if number < from {
            continue;
        }
        let content = line.strip_suffix(b"\n").unwrap_or(&line);
        let content = content.strip_suffix(b"\r").unwrap_or(content);
        if number > from {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(content);
        if bytes.len() > files.held {
            return Err(too_large());
        }
        held.try_grow(bytes.capacity() + line.capacity())?;
    }
    Ok((bytes, held))
}

/// The attributes of a file.
pub(super) fn facts(path: &Path, files: &Files) -> Result<Map<String, Json>, Failure> {
    let metadata = fs::metadata(path).map_err(|error| Failure::io(path, &error))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut facts = Map::new();
    let mut set = |key: &str, value: String| facts.insert(key.to_owned(), Json::String(value));
    let modified = metadata.modified().map_err(|error| Failure::io(path, &error))?;
    set("FILE_LAST_MODIFIED_TIME", time(modified));
    set("FILE_IS_DIR", metadata.is_dir().to_string());
    set("FILE_PATH", files.connection.root.shown(path));
    set("FILE_URL", format!("file://{}", path.display()));
    set("FILE_NAME_WITHOUT_EXTENSION", name.split('.').next().unwrap_or_default().to_owned());
    set("FILE_NAME", name);
    set("FILE_SIZE", metadata.len().to_string());
    Ok(facts)
}

/// The content of a file, within the memory limit.
pub(super) fn whole(path: &Path, files: &Files) -> Result<(Vec<u8>, Held), Failure> {
    if !fs::metadata(path).map_err(|error| Failure::io(path, &error))?.is_file() {
        return Err(Failure::no_file(path));
    }
    read(path, Part::All, files)
}

/// A time as the connector writes it, in the zone of the system.
pub(super) fn time(time: std::time::SystemTime) -> String {
    let stamp = jiff::Timestamp::try_from(time).unwrap_or_default();
    stamp.to_zoned(jiff::tz::TimeZone::system()).strftime("%m/%d/%Y %H:%M:%S").to_string()
}

/// The media type of a file by its name; unknown ones are bytes.
fn content_type_of(path: &Path) -> &'static str {
    let extension = path
        .extension()
        .map(|extension| extension.to_string_lossy().to_ascii_lowercase())
        .unwrap_or_default();
    match extension.as_str() {
        "xml" | "xsd" | "wsdl" | "xsl" | "xslt" => "application/xml",
        "json" => "application/json",
        "txt" | "text" | "log" | "md" | "properties" => "text/plain",
        "csv" => "text/csv",
        "htm" | "html" => "text/html",
        _ => "application/octet-stream",
    }
}

impl Content {
    /// The content as the payload of a variable: JSON as JSON, bytes as base64, all else as text.
    pub(super) fn value(self) -> Result<Json, Failure> {
        match Kind::of(MediaType::parse(&self.content_type).essence) {
            Kind::Json => {
                let no_json =
                    |why: &str| Failure::new(Reason::Operation, format!("the file is not JSON: {why}"));
                let (text, _, malformed) = self.encoding().decode(&self.bytes);
                if malformed {
                    return Err(no_json("it has bytes that its encoding does not have"));
                }
                serde_json::from_str(&text).map_err(|why| no_json(&why.to_string()))
            }
            Kind::Binary if std::str::from_utf8(&self.bytes).is_err() => {
                use base64::Engine;
                Ok(base64::engine::general_purpose::STANDARD.encode(&self.bytes).into())
            }
            _ => Ok(self.text().into()),
        }
    }

    /// The content as text.
    pub(super) fn text(&self) -> String {
        self.encoding().decode(&self.bytes).0.into_owned()
    }

    /// The encoding of the media type; a byte order mark in the content takes precedence.
    fn encoding(&self) -> &'static encoding_rs::Encoding {
        let content_type = MediaType::parse(&self.content_type);
        let encoding =
            content_type.charset().and_then(|name| encoding_rs::Encoding::for_label(name.as_bytes()));
        encoding.unwrap_or(encoding_rs::UTF_8)
    }

    /// Makes the content the body.
    pub(super) fn into_body(self, context: &mut Context) {
        let reading = Reading::of(Some(&self.content_type), None, context.is_rest());
        match self.open {
            Some(Open { file, length, lock }) => {
                context.payload.set_stream(Box::new(FileBody::new(file, length)), reading);
                if let Some(lock) = lock {
                    context.attach(Arc::new(Mutex::new(lock)));
                }
            }
            None => context.payload.set_bytes(self.bytes, reading),
        }
        let essence = MediaType::parse(&self.content_type).essence.to_owned();
        context.set_axis2("messageType", Value::from(essence));
        context.headers.set("Content-Type", self.content_type.as_bytes());
    }
}
