//! One file into many and many into one: `file.splitFile`, `file.mergeFiles`.

use super::list::{MOST, entries};
use super::made::{Made, is_new};
use super::{Body, Done, Failure, Files, Job, Reason, compile, is_wanted, number, pattern, required};
use crate::operation::operation;
use crate::parameter::Parameters;
use files::claim::turn;
use files::partial::{Existing, Partial, copy, directories};
use flow::{Context, Definition};
use serde_json::{Map, Value as Json};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) const SPLIT: Definition = operation(
    "file.splitFile",
    "Splits a file by size or by lines.",
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

/// How large a part is.
#[derive(Clone, Copy)]
enum Size {
    Bytes(u64),
    Lines(u64),
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
    let size = match mode.to_ascii_lowercase().replace([' ', '_'], "").as_str() {
        "chunksize" => Size::Bytes(size("chunkSize")?),
        "linecount" => Size::Lines(size("lineCount")?),
        "xpathexpression" => {
            let why = "files are not split by XPath here: read the file and use `iterate`";
            return Err(Failure::new(Reason::Configuration, why));
        }
        _ => return Err(Failure::new(Reason::Configuration, format!("there is no splitMode {mode}"))),
    };
    Ok(Arc::new(move |files| {
        let (from, to) = (files.path(&from)?, files.path(&to)?);
        let failed = |error: std::io::Error| Failure::io(&from, &error);
        let known = fs::metadata(&from).map_err(failed)?;
        if !known.is_file() {
            return Err(Failure::new(Reason::IllegalPath, format!("{} is no file", from.display())));
        }
        if let Size::Bytes(bytes) = size
            && known.len().div_ceil(bytes) > MOST as u64
        {
            return Err(too_many(&from));
        }
        directories(&to).map_err(|error| Failure::io(&to, &error))?;
        let mut reader = BufReader::with_capacity(64 << 10, File::open(&from).map_err(failed)?);
        let (mut number, mut made) = (0, Made::default());
        while !reader.fill_buf().map_err(failed)?.is_empty() {
            if number >= MOST {
                return Err(too_many(&from));
            }
            let path = part(&from, &to, number);
            let is_new = is_new(&path);
            let mut partial = Partial::begin(&path, Existing::Replace, false)?;
            match size {
                Size::Bytes(bytes) => {
                    partial.copy_from(&mut (&mut reader).take(bytes), &files.cancel)?;
                }
                Size::Lines(lines) => copy_lines(&mut reader, partial.file()?, lines, &from, files)?,
            }
            partial.finish()?;
            made.add(path, is_new);
            number += 1;
        }
        made.keep();
        let mut done = Done::default();
        done.members.insert("numberOfSplits".to_owned(), number.into());
        Ok(done)
    }))
}

fn too_many(path: &Path) -> Failure {
    Failure::new(Reason::Configuration, format!("{} would become more than {MOST} files", path.display()))
}

/// The path of a part: the name of the file with a number behind its first part.
fn part(from: &Path, directory: &Path, number: usize) -> PathBuf {
    let name = from.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = match name.split_once('.') {
        Some((stem, extension)) => format!("{stem}{number}.{extension}"),
        None => format!("{name}{number}"),
    };
    directory.join(name)
}

/// Copies so many lines, without holding one.
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
        if !fs::metadata(&from).map_err(|error| Failure::io(&from, &error))?.is_dir() {
            return Err(Failure::new(Reason::IllegalPath, format!("{} is no directory", from.display())));
        }
        let _turn = turn(&to, &files.cancel)?;
        let mut partial = Partial::begin(&to, Existing::Replace, true)?;
        if !overwrites && fs::metadata(&to).is_ok() {
            let mut old =
                OpenOptions::new().read(true).open(&to).map_err(|error| Failure::io(&to, &error))?;
            copy(&mut old, partial.file()?, &to, &files.cancel)?;
        }
        let (mut merged, mut total, mut count) = (0_u64, 0_u64, 0);
        for entry in entries(&from, &mut count, files)? {
            let wanted =
                entry.known.is_file() && entry.path != to && is_wanted(&entry.name, pattern.as_deref())?;
            if !wanted {
                continue;
            }
            let mut file = File::open(&entry.path).map_err(|error| Failure::io(&entry.path, &error))?;
            let bytes = partial.copy_from(&mut file, &files.cancel)?;
            // Empty files are not counted.
            merged += u64::from(bytes > 0);
            total += bytes;
        }
        partial.finish()?;
        let mut detail = Map::new();
        detail.insert("numberOfMergedFiles".to_owned(), merged.into());
        detail.insert("totalWrittenBytes".to_owned(), total.into());
        let mut done = Done::default();
        done.members.insert("detail".to_owned(), Json::Object(detail));
        Ok(done)
    }))
}
