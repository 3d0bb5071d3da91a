//! One file into many and many into one: `file.splitFile`, `file.mergeFiles`.

use super::list::{MOST, entries};
use super::made::{CreatedFiles, is_new};
use super::{
    Body, Failure, Files, Job, JobResult, Reason, compile, elements, is_wanted, number, pattern, required,
};
use crate::operation::operation;
use crate::parameter::Parameters;
use files::claim::turn;
use files::partial::{Existing, Partial, copy, directories};
use flow::{Context, Definition};
use serde_json::{Map, Value as Json};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::sync::Arc;

pub(super) const SPLIT: Definition = operation(
    "file.splitFile",
    "Splits a file by size, by lines, or by the elements that an XPath selects.",
    parameters!(
        "sourceFilePath",
        "targetDirectory",
        "splitMode",
        "chunkSize",
        "lineCount",
        "xpathExpression"
    ),
    |element, compiler| compile(element, "splitFile", Body::Unread, split, compiler),
);

pub(super) const MERGE: Definition = operation(
    "file.mergeFiles",
    "Makes one file of the files of a directory, in the order of their names.",
    parameters!("sourceDirectoryPath", "targetFilePath", "filePattern", "writeMode"),
    |element, compiler| compile(element, "mergeFiles", Body::Unread, merge, compiler),
);

/// How a file is divided.
pub(super) enum Part {
    Bytes(u64),
    Lines(u64),
    /// Elements that an expression selects.
    Element(Arc<xpath::Expression>),
}

/// Where the number of a part is in its name.
#[derive(Clone, Copy)]
pub(super) enum Naming {
    /// In front of the first dot: `a0.txt`.
    Within,
    /// At the end: `a.txt0`.
    Behind,
}

fn split(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let from = required(parameters, "sourceFilePath", context)?;
    let to = required(parameters, "targetDirectory", context)?;
    let mode = required(parameters, "splitMode", context)?;
    let mut size = |name: &str| {
        number(parameters, name, context)?.filter(|size| *size > 0).ok_or_else(|| {
            Failure::new(
                Reason::Configuration,
                format!("the splitMode {mode} needs `{name}`, a number from 1"),
            )
        })
    };
    let part = match mode.to_ascii_lowercase().replace([' ', '_'], "").as_str() {
        "chunksize" => Part::Bytes(size("chunkSize")?),
        "linecount" => Part::Lines(size("lineCount")?),
        "xpathexpression" => {
            Part::Element(elements::compiled(&required(parameters, "xpathExpression", context)?)?)
        }
        _ => return Err(Failure::new(Reason::Configuration, format!("there is no splitMode {mode}"))),
    };
    Ok(Arc::new(move |files| {
        let number = divide(&files.path(&from)?, &files.path(&to)?, &part, Naming::Within, files)?;
        let mut done = JobResult::default();
        done.members.insert("numberOfSplits".to_owned(), number.into());
        Ok(done)
    }))
}

/// Divides a file into files of a directory; returns their number.
pub(super) fn divide(
    from: &Path,
    to: &Path,
    part: &Part,
    naming: Naming,
    files: &Files,
) -> Result<usize, Failure> {
    let failed = |error: std::io::Error| Failure::io(from, &error);
    let metadata = fs::metadata(from).map_err(failed)?;
    if !metadata.is_file() {
        return Err(Failure::no_file(from));
    }
    match part {
        Part::Element(expression) => return elements::divide(from, to, expression, files),
        Part::Bytes(bytes) if metadata.len().div_ceil(*bytes) > MOST as u64 => return Err(too_many(from)),
        Part::Bytes(_) | Part::Lines(_) => {}
    }
    directories(to).map_err(|error| Failure::io(to, &error))?;
    let mut reader = BufReader::with_capacity(64 << 10, File::open(from).map_err(failed)?);
    let (mut number, mut made) = (0, CreatedFiles::default());
    while !reader.fill_buf().map_err(failed)?.is_empty() {
        if number >= MOST {
            return Err(too_many(from));
        }
        let path = to.join(named(from, naming, number));
        let is_new = is_new(&path);
        let mut partial = Partial::begin(&path, Existing::Replace, false)?;
        match part {
            Part::Bytes(bytes) => {
                partial.copy_from(&mut (&mut reader).take(*bytes), &files.cancel)?;
            }
            Part::Lines(lines) => copy_lines(&mut reader, partial.file()?, *lines, from, files)?,
            Part::Element(_) => {}
        }
        partial.finish()?;
        made.add(path, is_new);
        number += 1;
    }
    made.keep();
    Ok(number)
}

pub(super) fn too_many(path: &Path) -> Failure {
    Failure::new(Reason::Configuration, format!("{} would become more than {MOST} files", path.display()))
}

/// The name of a part: that of the file with a number.
fn named(from: &Path, naming: Naming, number: usize) -> String {
    let name = from.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match (naming, name.split_once('.')) {
        (Naming::Within, Some((stem, extension))) => format!("{stem}{number}.{extension}"),
        _ => format!("{name}{number}"),
    }
}

/// Copies `count` lines, without holding one in memory.
fn copy_lines(
    reader: &mut impl BufRead,
    to: &mut File,
    lines: u64,
    path: &Path,
    files: &Files,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::io(path, &error);
    let mut to = BufWriter::new(to);
    let mut left = lines;
    while left > 0 {
        files.go_on()?;
        let buffer = reader.fill_buf().map_err(failed)?;
        if buffer.is_empty() {
            break;
        }
        let mut length = buffer.len();
        for (at, _) in buffer.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            left -= 1;
            if left == 0 {
                length = at + 1;
                break;
            }
        }
        to.write_all(&buffer[..length]).map_err(failed)?;
        reader.consume(length);
    }
    to.flush().map_err(failed)
}

fn merge(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let from = required(parameters, "sourceDirectoryPath", context)?;
    let to = required(parameters, "targetFilePath", context)?;
    let pattern = pattern(parameters, "filePattern", context)?;
    let overwrites =
        parameters.text("writeMode", context)?.is_some_and(|mode| mode.eq_ignore_ascii_case("overwrite"));
    Ok(Arc::new(move |files| {
        let (from, to) = (files.path(&from)?, files.path(&to)?);
        let (merged, total) = join(&from, &to, pattern.as_deref(), overwrites, files)?;
        let mut detail = Map::new();
        detail.insert("numberOfMergedFiles".to_owned(), merged.into());
        detail.insert("totalWrittenBytes".to_owned(), total.into());
        let mut done = JobResult::default();
        done.members.insert("detail".to_owned(), Json::Object(detail));
        Ok(done)
    }))
}

/// Joins the files of a directory into one, after its present content unless it `overwrites` that. Returns the number of files that were not
/// empty, and their bytes.
pub(super) fn join(
    from: &Path,
    to: &Path,
    pattern: Option<&flow::Pattern>,
    overwrites: bool,
    files: &Files,
) -> Result<(u64, u64), Failure> {
    if !fs::metadata(from).map_err(|error| Failure::io(from, &error))?.is_dir() {
        return Err(Failure::new(Reason::IllegalPath, format!("{} is not a directory", from.display())));
    }
    let _turn = turn(to, &files.cancel)?;
    let mut partial = Partial::begin(to, Existing::Replace, true)?;
    if !overwrites && fs::metadata(to).is_ok() {
        let mut old = OpenOptions::new().read(true).open(to).map_err(|error| Failure::io(to, &error))?;
        copy(&mut old, partial.file()?, to, &files.cancel)?;
    }
    let (mut merged, mut total, mut count) = (0_u64, 0_u64, 0);
    for entry in entries(from, &mut count, files)? {
        if !entry.metadata.is_file() || entry.path == to || !is_wanted(&entry.name, pattern)? {
            continue;
        }
        let mut file = File::open(&entry.path).map_err(|error| Failure::io(&entry.path, &error))?;
        let bytes = partial.copy_from(&mut file, &files.cancel)?;
        merged += u64::from(bytes > 0);
        total += bytes;
    }
    partial.finish()?;
    Ok((merged, total))
}
