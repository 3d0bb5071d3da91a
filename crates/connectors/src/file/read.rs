//! `file.read`: a file, or lines of it, as the body or the payload of a variable.

use super::locks::lock;
use super::{
    Body, Content, Done, Failure, Files, Job, Reason, compile, is_wanted, number, pattern, required,
};
use crate::operation::operation;
use crate::parameter::Parameters;
use files::partial::is_partial;
use flow::{Context, Definition};
use message::memory::Held;
use message::{Kind, MediaType, Reading, Value};
use serde_json::{Map, Value as Json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// What of a file is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    All,
    /// Nothing but what is known of the file.
    Facts,
    /// From a line to a line, both from 1 and included.
    Lines(u64, u64),
}

fn prepare(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let path = required(parameters, "path", context)?;
    let pattern = pattern(parameters, "filePattern", context)?;
    let part = part(parameters, context)?;
    let content_type = parameters.text("contentType", context)?;
    let encoding = match parameters.text("encoding", context)? {
        Some(encoding) => Some(encoding),
        None => parameters.text("charset", context)?,
    };
    Ok(Arc::new(move |files| {
        let path = chosen(files.path(&path)?, pattern.as_deref())?;
        let _lock = lock(&path, files)?;
        let attributes = facts(&path, files)?;
        if part == Part::Facts {
            return Ok(Done { attributes, ..Done::default() });
        }
        let (bytes, held) = read(&path, part, files)?;
        let content_type = content_type.clone().unwrap_or_else(|| content_type_of(&path).to_owned());
        let content_type = match &encoding {
            Some(encoding) if MediaType::parse(&content_type).charset().is_none() => {
                format!("{content_type}; charset={encoding}")
            }
            _ => content_type,
        };
        Ok(Done { content: Some(Content { bytes, content_type, held }), attributes, ..Done::default() })
    }))
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

/// The file that is read: of a directory the first one, by name, that the pattern matches.
fn chosen(path: PathBuf, pattern: Option<&flow::Pattern>) -> Result<PathBuf, Failure> {
    let known = fs::metadata(&path).map_err(|error| Failure::io(&path, &error))?;
    if known.is_file() {
        return Ok(path);
    }
    if !known.is_dir() {
        return Err(Failure::new(Reason::IllegalPath, format!("{} is no file", path.display())));
    }
    let entries = fs::read_dir(&path).map_err(|error| Failure::io(&path, &error))?;
    let mut first: Option<String> = None;
    for entry in entries {
        let entry = entry.map_err(|error| Failure::io(&path, &error))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let is_first = first.as_ref().is_none_or(|first| name < *first);
        let is_file =
            is_first && !is_partial(&name) && fs::metadata(entry.path()).is_ok_and(|own| own.is_file());
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
        // Somebody may add to it meanwhile.
        file.take(files.held as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
        held.try_grow(bytes.capacity())?;
        return if bytes.len() > files.held { Err(too_large()) } else { Ok((bytes, held)) };
    };
    let (mut reader, mut bytes, mut number) = (BufReader::new(file), Vec::new(), 0);
    let mut line = Vec::new();
    while number < to {
        line.clear();
        // A line without end is one that is too long.
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
        let own = line.strip_suffix(b"\n").unwrap_or(&line);
        let own = own.strip_suffix(b"\r").unwrap_or(own);
        if number > from {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(own);
        if bytes.len() > files.held {
            return Err(too_large());
        }
        held.try_grow(bytes.capacity() + line.capacity())?;
    }
    Ok((bytes, held))
}

/// What is known of a file.
pub(super) fn facts(path: &Path, files: &Files) -> Result<Map<String, Json>, Failure> {
    let known = fs::metadata(path).map_err(|error| Failure::io(path, &error))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut facts = Map::new();
    let mut set = |key: &str, value: String| facts.insert(key.to_owned(), Json::String(value));
    let modified = known.modified().map_err(|error| Failure::io(path, &error))?;
    set("FILE_LAST_MODIFIED_TIME", time(modified));
    set("FILE_IS_DIR", known.is_dir().to_string());
    set("FILE_PATH", files.connection.root.shown(path));
    set("FILE_URL", format!("file://{}", path.display()));
    set("FILE_NAME_WITHOUT_EXTENSION", name.split('.').next().unwrap_or_default().to_owned());
    set("FILE_NAME", name);
    set("FILE_SIZE", known.len().to_string());
    Ok(facts)
}

/// A time as the connector writes it, in the zone of the system.
pub(super) fn time(time: std::time::SystemTime) -> String {
    let stamp = jiff::Timestamp::try_from(time).unwrap_or_default();
    stamp.to_zoned(jiff::tz::TimeZone::system()).strftime("%m/%d/%Y %H:%M:%S").to_string()
}

/// The type of a file by its name; what is not known is bytes.
fn content_type_of(path: &Path) -> &'static str {
    let extension =
        path.extension().map(|own| own.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
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
                    |why: &str| Failure::new(Reason::Operation, format!("the file is no JSON: {why}"));
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

    /// That of the type; a byte order mark in the content counts more.
    fn encoding(&self) -> &'static encoding_rs::Encoding {
        let content_type = MediaType::parse(&self.content_type);
        let own = content_type.charset().and_then(|own| encoding_rs::Encoding::for_label(own.as_bytes()));
        own.unwrap_or(encoding_rs::UTF_8)
    }

    /// Makes the content the body.
    pub(super) fn into_body(self, context: &mut Context) {
        let reading = Reading::of(Some(&self.content_type), None, context.is_rest());
        context.payload.set_bytes(self.bytes, reading);
        let essence = MediaType::parse(&self.content_type).essence.to_owned();
        context.set_axis2("messageType", Value::from(essence));
        context.headers.set("Content-Type", self.content_type.as_bytes());
    }
}
