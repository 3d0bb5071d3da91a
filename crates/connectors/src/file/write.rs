//! `file.write`: a text, or the body of the message, into a file.

use super::locks::lock;
use super::spool::Spooled;
use super::{Body, Failure, Files, Job, JobResult, Reason, compile, gives_nothing, required};
use crate::operation::operation;
use crate::parameter::Parameters;
use crate::response::{OVERWRITE, VARIABLE};
use base64::Engine;
use bytes::Bytes;
use files::claim::turn;
use files::partial::{Existing, Partial, copy, directories};
use flow::{Context, Definition, Fault};
use message::{Format, PayloadError, memory};
use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use zip::write::SimpleFileOptions;

/// The parameter with the content.
const CONTENT: &str = "contentOrExpression";

pub(super) const WRITE: Definition = operation(
    "file.write",
    "Writes a text or the body into a file.",
    &[
        "filePath",
        "contentOrExpression",
        "mimeType",
        "writeMode",
        "appendPosition",
        "encoding",
        "compress",
        "appendNewLine",
        "enableStreaming",
        "enableLock",
        "createParentDirectories",
        "updateLastModified",
        "maxRetries",
        "retryDelay",
        "diskShareAccessMask",
        "includeResultTo",
        "resultPropertyName",
        "fileWriteResultProperty",
        VARIABLE,
        OVERWRITE,
    ],
    |element, compiler| compile(element, "write", Body::Written, prepare, compiler),
);

/// The content.
enum Content {
    Bytes(Bytes),
    /// The body, which is in the target directory already.
    Spooled(Spooled),
}

impl Content {
    fn len(&self) -> u64 {
        match self {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::Spooled(spool) => spool.length(),
        }
    }

    fn reader(&self) -> Result<Box<dyn Read + '_>, Failure> {
        Ok(match self {
            Content::Bytes(bytes) => Box::new(&bytes[..]),
            Content::Spooled(spool) => Box::new(spool.reader()?),
        })
    }
}

/// Whether the body is written while it is received.
pub(super) fn streams(parameters: &Parameters) -> bool {
    parameters.is_literally("enableStreaming", "true")
        && parameters.is_absent(CONTENT)
        && (parameters.is_absent("mimeType") || parameters.is_literally("mimeType", "automatic"))
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    CreateNew,
    Overwrite,
    Append,
}

pub(super) struct Writing {
    pub path: String,
    pub mode: Mode,
    content: Content,
    /// The content comes from a parameter, not from the body.
    is_text: bool,
    /// The line that an appended text becomes; `None`: the last one.
    position: Option<usize>,
    new_line: bool,
    pub compress: bool,
    pub parents: bool,
    /// The file keeps its modification time.
    keeps_time: bool,
}

fn prepare(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let media = parameters
        .text("mimeType", context)?
        .filter(|media_type| !media_type.eq_ignore_ascii_case("automatic"));
    let text = match parameters.is_absent(CONTENT) {
        true => None,
        false => parameters.value(CONTENT, context)?.map(|value| value.to_string()),
    };
    if text.as_ref().is_none_or(String::is_empty) && !parameters.is_absent(CONTENT) {
        return Err(gives_nothing(CONTENT));
    }
    let is_text = text.is_some();
    let content = match text {
        Some(text) if media.as_deref() == Some("application/binary") => {
            let text: String = text.split_whitespace().collect();
            let decoded = base64::engine::general_purpose::STANDARD.decode(text);
            Bytes::from(decoded.map_err(|why| {
                Failure::new(Reason::Configuration, format!("the content is not base64: {why}"))
            })?)
        }
        Some(text) => Bytes::from(encoded(text, parameters.text("encoding", context)?.as_deref())?),
        None => body(media.as_deref(), context)?,
    };
    let write = writing(parameters, Content::Bytes(content), is_text, context)?;
    Ok(Arc::new(move |files| write.run(files)))
}

/// The job for a body that is in the target directory already.
pub(super) fn prepare_spooled(
    parameters: &Parameters,
    spooled: &Spooled,
    context: &mut Context,
) -> Result<Job, Failure> {
    let write = writing(parameters, Content::Spooled(spooled.clone()), false, context)?;
    Ok(Arc::new(move |files| write.run(files)))
}

/// The parameters without the content.
pub(super) fn described(parameters: &Parameters, context: &mut Context) -> Result<Writing, Failure> {
    writing(parameters, Content::Bytes(Bytes::new()), false, context)
}

fn writing(
    parameters: &Parameters,
    content: Content,
    is_text: bool,
    context: &mut Context,
) -> Result<Writing, Failure> {
    let mode = parameters.text("writeMode", context)?.unwrap_or_default();
    let mode = match mode.to_ascii_lowercase().replace([' ', '_'], "").as_str() {
        "" | "overwrite" => Mode::Overwrite,
        "append" => Mode::Append,
        "createnew" => Mode::CreateNew,
        _ => return Err(Failure::new(Reason::Configuration, format!("there is no writeMode {mode}"))),
    };
    let position = match parameters.text("appendPosition", context)? {
        None => None,
        Some(text) => match text.parse::<i64>() {
            Ok(0) => None,
            Ok(line) if line > 0 => usize::try_from(line).ok(),
            _ => {
                let why = format!("the parameter `appendPosition` is not a line: {text}");
                return Err(Failure::new(Reason::Configuration, why));
            }
        },
    };
    Ok(Writing {
        path: required(parameters, "filePath", context)?,
        mode,
        content,
        is_text,
        position,
        new_line: parameters.is_true("appendNewLine", false, context)?,
        compress: parameters.is_true("compress", false, context)?,
        parents: parameters.is_true("createParentDirectories", true, context)?,
        keeps_time: !parameters.is_true("updateLastModified", true, context)?,
    })
}

/// The body as it would be sent, or as `media`. The message is not changed.
fn body(media: Option<&str>, context: &mut Context) -> Result<Bytes, Fault> {
    if context.payload.is_consumed() {
        // Nothing empty is written in its place.
        return Err(Fault::from(PayloadError::Consumed));
    }
    let media_type = match media {
        Some(media) => media.to_owned(),
        None => context.axis2("messageType").map(|value| value.to_string()).unwrap_or_default(),
    };
    let limits = context.services().limits.clone();
    let rest = context.is_rest();
    let format = match Format::of(message::MediaType::parse(&media_type).essence, rest) {
        // A JSON body is its own text, not that of an element.
        Format::Text | Format::Binary if context.payload.is_json() => Format::Json,
        format => format,
    };
    Ok(context.payload.write(format, &limits)?)
}

/// The body for a step that has no parameter for its type.
pub(super) fn body_as_sent(context: &mut Context) -> Result<Bytes, Fault> {
    body(None, context)
}

/// A text in an encoding; characters that it does not have become `?`.
pub(super) fn encoded(text: String, encoding: Option<&str>) -> Result<Vec<u8>, Failure> {
    let Some(name) = encoding else { return Ok(text.into_bytes()) };
    let units = |big: bool, mark: bool| {
        let mark = mark.then_some(0xFEFF_u16);
        let units = mark.into_iter().chain(text.encode_utf16());
        units.flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
    };
    match name.to_ascii_uppercase().as_str() {
        "UTF-8" | "UTF8" => return Ok(text.into_bytes()),
        "UTF-16" => return Ok(units(true, true)),
        "UTF-16BE" => return Ok(units(true, false)),
        "UTF-16LE" => return Ok(units(false, false)),
        "US-ASCII" | "ASCII" => {
            return Ok(text.chars().map(|c| if c.is_ascii() { c as u8 } else { b'?' }).collect());
        }
        // ISO-8859-1 itself, not the Windows code page that browsers use for this name.
        "ISO-8859-1" | "ISO8859-1" | "ISO8859_1" | "LATIN1" => {
            return Ok(text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect());
        }
        _ => {}
    }
    let unknown = || Failure::new(Reason::Configuration, format!("there is no encoding {name}"));
    let encoding = encoding_rs::Encoding::for_label(name.as_bytes()).ok_or_else(unknown)?;
    if encoding.output_encoding() != encoding {
        return Err(unknown());
    }
    let mut out = Vec::with_capacity(text.len());
    for c in text.chars() {
        let mut buffer = [0; 4];
        let (bytes, _, unmappable) = encoding.encode(c.encode_utf8(&mut buffer));
        match unmappable {
            true => out.push(b'?'),
            false => out.extend_from_slice(&bytes),
        }
    }
    Ok(out)
}

impl Writing {
    /// The job that writes bytes unchanged; `position`: the line of the file at which they are inserted.
    pub(super) fn plain(path: String, mode: Mode, content: Bytes, position: Option<usize>) -> Writing {
        Writing {
            path,
            mode,
            content: Content::Bytes(content),
            is_text: position.is_some(),
            position,
            new_line: false,
            compress: false,
            parents: true,
            keeps_time: false,
        }
    }

    /// The file that is written, and the name of the content in it if it is an archive.
    pub(super) fn place(&self, files: &Files) -> Result<(PathBuf, String), Failure> {
        let mut path = files.path(&self.path)?;
        let entry = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let Some(entry) = entry.filter(|_| !files.connection.root.is(&path)) else {
            return Err(Failure::new(Reason::IllegalPath, format!("{} names no file", self.path)));
        };
        if self.zips() {
            let stem = entry.split('.').next().unwrap_or(&entry).to_owned();
            path.set_file_name(format!("{stem}.zip"));
        }
        Ok((path, entry))
    }

    pub(super) fn zips(&self) -> bool {
        self.compress && self.mode != Mode::Append
    }

    pub(super) fn run(&self, files: &Files) -> Result<JobResult, Failure> {
        let ((path, entry), zips) = (self.place(files)?, self.zips());
        // The lock file is beside the file.
        if let (true, true, Some(parent)) =
            (files.lock, self.parents && self.mode != Mode::Append, path.parent())
        {
            directories(parent).map_err(|error| Failure::io(parent, &error))?;
        }
        let _lock = lock(&path, files)?;
        let before = self.keeps_time.then(|| modified(&path)).flatten();
        let written = match self.mode {
            Mode::Append => self.append(&path, files)?,
            mode => {
                let existing = if mode == Mode::CreateNew { Existing::Refuse } else { Existing::Replace };
                let mut end: &[u8] = if self.new_line { b"\n" } else { b"" };
                // The spooled body gets its name.
                let spooled = match &self.content {
                    Content::Spooled(spool) if !zips => Some(spool.take()?),
                    _ => None,
                };
                let is_there = spooled.is_some();
                let mut partial = match spooled {
                    Some(partial) => partial,
                    None => Partial::begin(&path, existing, self.parents)?,
                };
                let mut content = match is_there {
                    true => Box::new(std::io::empty()),
                    false => self.content.reader()?,
                }
                .chain(&mut end);
                if zips {
                    zip_into(&mut partial, &path, &entry, &mut content, files)?;
                } else {
                    partial.copy_from(&mut content, &files.cancel)?;
                }
                if let Some(before) = before {
                    partial.file()?.set_modified(before).map_err(|error| Failure::io(&path, &error))?;
                }
                partial.finish()?;
                self.content.len() + u64::from(self.new_line)
            }
        };
        if let (Mode::Append, Some(before)) = (self.mode, before) {
            let file = OpenOptions::new().append(true).open(&path);
            file.and_then(|file| file.set_modified(before)).map_err(|error| Failure::io(&path, &error))?;
        }
        let mut done = JobResult::default();
        done.members.insert("writtenBytes".to_owned(), written.into());
        Ok(done)
    }

    /// Appends to an existing file: a text as a line, the body unchanged.
    fn append(&self, path: &Path, files: &Files) -> Result<u64, Failure> {
        let _turn = turn(path, &files.cancel)?;
        let failed = |error: std::io::Error| Failure::io(path, &error);
        let metadata = fs::metadata(path).map_err(failed)?;
        if metadata.file_type().is_char_device() {
            let mut partial = Partial::begin(path, Existing::Replace, false)?;
            let end: &[u8] = if self.is_text || self.new_line { b"\n" } else { b"" };
            let written = partial.copy_from(&mut self.content.reader()?.chain(end), &files.cancel)?;
            partial.finish()?;
            return Ok(written);
        }
        if !metadata.is_file() {
            return Err(Failure::no_file(path));
        }
        if let (true, Some(position)) = (self.is_text, self.position) {
            return self.insert(path, position, files);
        }
        let mut file = OpenOptions::new().read(true).append(true).open(path).map_err(failed)?;
        let ends_line = !self.is_text || ends_line(&mut file).map_err(failed)?;
        let start: &[u8] = if ends_line { b"" } else { b"\n" };
        let end: &[u8] = if self.is_text || self.new_line { b"\n" } else { b"" };
        let before = file.metadata().map_err(failed)?.len();
        let mut added = start.chain(self.content.reader()?).chain(end);
        let copied = copy(&mut added, &mut file, path, &files.cancel);
        if copied.is_err() {
            // A full disk may have taken a part of it.
            let _ = file.set_len(before);
        }
        Ok(copied?)
    }

    /// Inserts the text as a line.
    fn insert(&self, path: &Path, position: usize, files: &Files) -> Result<u64, Failure> {
        let failed = |error: std::io::Error| Failure::io(path, &error);
        let length = fs::metadata(path).map_err(failed)?.len();
        if length > files.held as u64 {
            let why = format!("{} is larger than a flow may hold ({} bytes)", path.display(), files.held);
            return Err(Failure::new(Reason::Configuration, why));
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Content::Bytes(content) = &self.content else { return Err(gives_nothing(CONTENT)) };
        let _held = memory::try_hold(length.saturating_mul(2).saturating_add(content.len()))?;
        let old = fs::read(path).map_err(failed)?;
        let mut new = Vec::with_capacity(old.len() + content.len() + 1);
        let line = |text: &[u8], new: &mut Vec<u8>| {
            new.extend_from_slice(text);
            new.push(b'\n');
        };
        let mut placed = false;
        let lines = old.strip_suffix(b"\n").unwrap_or(&old);
        let lines = lines.split(|byte| *byte == b'\n').take(if old.is_empty() { 0 } else { usize::MAX });
        for (number, old_line) in lines.enumerate() {
            if number + 1 == position {
                line(content, &mut new);
                placed = true;
            }
            line(old_line, &mut new);
        }
        if !placed {
            line(content, &mut new);
        }
        let mut partial = Partial::begin(path, Existing::Replace, false)?;
        partial.copy_from(&mut new.as_slice(), &files.cancel)?;
        partial.finish()?;
        Ok(new.len() as u64)
    }
}

/// Whether appended content begins a new line.
fn ends_line(file: &mut fs::File) -> std::io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

fn modified(path: &PathBuf) -> Option<SystemTime> {
    fs::metadata(path).and_then(|m| m.modified()).ok()
}

/// An archive with one file in it.
pub(super) fn zip_into(
    partial: &mut Partial,
    path: &Path,
    entry: &str,
    content: &mut dyn Read,
    files: &Files,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::io(path, &error);
    let mut archive = zip::ZipWriter::new(partial.file()?);
    archive.start_file(entry, SimpleFileOptions::default()).map_err(|error| failed(error.into()))?;
    copy(content, &mut archive, path, &files.cancel)?;
    archive.finish().map_err(|error| failed(error.into()))?;
    Ok(())
}
