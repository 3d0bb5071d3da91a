//! Zip archives: `file.compress`, `file.unzip`, `file.exploreZipFile`.

use super::list::{DEEPEST, MOST, entries};
use super::made::{CreatedFiles, is_new};
use super::path::Root;
use super::{Body, Failure, Files, Job, JobResult, Reason, compile, required};
use crate::operation::operation;
use crate::parameter::Parameters;
use files::partial::{Existing, Partial, copy, directories};
use flow::{Context, Definition};
use serde_json::{Map, Value as Json};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

/// Most bytes that one archive may unpack to.
const MOST_BYTES: u64 = 8 << 30;

pub(super) const COMPRESS: Definition = operation(
    "file.compress",
    "Packs a file or a directory into a zip archive.",
    parameters!("sourceDirectoryPath", "targetFilePath", "includeSubDirectories"),
    |element, compiler| compile(element, "compress", Body::Unread, compress, compiler),
);

pub(super) const UNZIP: Definition = operation(
    "file.unzip",
    "Unpacks a zip archive into a directory.",
    parameters!("sourceFilePath", "targetDirectory", "fileNameEncoding", "includeFileNames"),
    |element, compiler| compile(element, "unzip", Body::Unread, unzip, compiler),
);

pub(super) const EXPLORE: Definition = operation(
    "file.exploreZipFile",
    "Lists what is in a zip archive.",
    parameters!("zipFilePath", "fileNameEncoding"),
    |element, compiler| compile(element, "exploreZipFile", Body::Unread, explore, compiler),
);

fn broken(path: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::new(Reason::Operation, format!("{}: {why}", path.display()))
}

fn compress(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let from = required(parameters, "sourceDirectoryPath", context)?;
    let to = required(parameters, "targetFilePath", context)?;
    let deep = parameters.is_true("includeSubDirectories", true, context)?;
    Ok(Arc::new(move |files| {
        let packed = pack_into(&files.path(&from)?, &files.path(&to)?, deep, files)?;
        let mut done = JobResult::default();
        done.members.insert("numberOfFilesAdded".to_owned(), packed.into());
        Ok(done)
    }))
}

/// Packs a file, or a directory, into a new archive. Returns the number of files.
pub(super) fn pack_into(from: &Path, to: &Path, deep: bool, files: &Files) -> Result<u64, Failure> {
    let metadata = fs::metadata(from).map_err(|error| Failure::io(from, &error))?;
    if !metadata.is_dir() && !metadata.is_file() {
        return Err(Failure::no_file(from));
    }
    let mut partial = Partial::begin(to, Existing::Replace, true)?;
    let mut archive = ZipWriter::new(partial.file()?);
    let (mut count, mut packed) = (0, 0);
    if metadata.is_dir() {
        pack(&mut archive, from, "", deep, to, (&mut count, &mut packed), files)?;
    } else {
        let name = from.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        pack_file(&mut archive, from, &name, files)?;
        packed = 1;
    }
    archive.finish().map_err(|why| broken(to, why))?;
    partial.finish()?;
    Ok(packed)
}

fn pack(
    archive: &mut ZipWriter<&mut File>,
    directory: &Path,
    prefix: &str,
    deep: bool,
    target: &Path,
    (count, packed): (&mut usize, &mut u64),
    files: &Files,
) -> Result<(), Failure> {
    if prefix.split('/').count() > DEEPEST {
        return Err(broken(directory, format!("directories nest deeper than {DEEPEST}")));
    }
    for entry in entries(directory, count, files)? {
        let name = format!("{prefix}{}", entry.name);
        if entry.metadata.is_dir() {
            let linked = fs::symlink_metadata(&entry.path).is_ok_and(|m| m.is_symlink());
            if deep && !linked {
                archive
                    .add_directory(&*name, SimpleFileOptions::default())
                    .map_err(|why| broken(target, why))?;
                pack(archive, &entry.path, &format!("{name}/"), deep, target, (count, packed), files)?;
            }
        } else if !entry.metadata.is_file() {
            // Opening a pipe waits for a writer, and a device may have no end.
            return Err(Failure::no_file(&entry.path));
        } else if entry.path != target {
            pack_file(archive, &entry.path, &name, files)?;
            *packed += 1;
        }
    }
    Ok(())
}

fn pack_file(
    archive: &mut ZipWriter<&mut File>,
    path: &Path,
    name: &str,
    files: &Files,
) -> Result<(), Failure> {
    let mut file = File::open(path).map_err(|error| Failure::io(path, &error))?;
    let length = file.metadata().map_err(|error| Failure::io(path, &error))?.len();
    let options = SimpleFileOptions::default().large_file(length > u64::from(u32::MAX / 2));
    archive.start_file(name, options).map_err(|why| broken(path, why))?;
    copy(&mut file, archive, path, &files.cancel)?;
    Ok(())
}

fn open(path: &Path) -> Result<ZipArchive<File>, Failure> {
    let failed = |error: std::io::Error| Failure::io(path, &error);
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(Failure::new(Reason::IllegalPath, format!("{} is not a file", path.display())));
    }
    let archive = ZipArchive::new(File::open(path).map_err(failed)?).map_err(|why| broken(path, why))?;
    match archive.len() > MOST {
        true => Err(broken(path, format!("it has more than {MOST} entries"))),
        false => Ok(archive),
    }
}

fn unzip(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let from = required(parameters, "sourceFilePath", context)?;
    let to = required(parameters, "targetDirectory", context)?;
    let names = parameters.is_true("includeFileNames", true, context)?;
    Ok(Arc::new(move |files| {
        let unpacked = unpack(&files.path(&from)?, &files.path(&to)?, files)?;
        let unpacked = unpacked.into_iter().filter(|_| names);
        let content: Map<_, _> =
            unpacked.map(|name| (name.replace('/', "--"), Json::from("extracted"))).collect();
        let mut done = JobResult::default();
        done.members.insert("zipFileContent".to_owned(), Json::Object(content));
        Ok(done)
    }))
}

/// Unpacks an archive into a directory: all of it, or nothing but files that were there already. Returns the names of its files.
pub(super) fn unpack(from: &Path, to: &Path, files: &Files) -> Result<Vec<String>, Failure> {
    let mut archive = open(from)?;
    directories(to).map_err(|error| Failure::io(to, &error))?;
    // Names of entries must be paths below the target.
    let inside = Root::at(to);
    let (mut total, mut names, mut made) = (0, Vec::new(), CreatedFiles::default());
    for index in 0..archive.len() {
        files.go_on()?;
        let mut entry = archive.by_index(index).map_err(|why| broken(from, why))?;
        let name = entry.name().map_err(|why| broken(from, why))?.replace('\\', "/");
        let path = inside.resolve(&name).map_err(|why| why.about(from))?;
        if entry.is_dir() {
            directories(&path).map_err(|error| Failure::io(&path, &error))?;
            continue;
        }
        let is_new = is_new(&path);
        let mut partial = Partial::begin(&path, Existing::Replace, true)?;
        // The sizes in an archive are not trusted.
        let mut bounded = (&mut entry).take(MOST_BYTES - total + 1);
        total += partial.copy_from(&mut bounded, &files.cancel)?;
        if total > MOST_BYTES {
            return Err(broken(from, format!("it unpacks to more than {MOST_BYTES} bytes")));
        }
        partial.finish()?;
        made.add(path, is_new);
        names.push(name);
    }
    made.keep();
    Ok(names)
}

fn explore(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let path = required(parameters, "zipFilePath", context)?;
    Ok(Arc::new(move |files| {
        let names = names(&files.path(&path)?)?;
        let mut content = Map::new();
        content.insert("file".to_owned(), names.into_iter().map(Json::from).collect());
        let mut done = JobResult::default();
        done.members.insert("zipFileContent".to_owned(), Json::Object(content));
        Ok(done)
    }))
}

/// The names of the entries of an archive; those of directories end with a slash.
pub(super) fn names(path: &Path) -> Result<Vec<String>, Failure> {
    Ok(open(path)?.file_names().filter_map(|name| Some(name.ok()?.into_owned())).collect())
}
