//! Operations on whole files and directories: `file.copy`, `move`, `rename`, `delete`, `createDirectory`, `checkExist`.

use super::list::{DEEPEST, MOST, entries};
use super::locks::lock;
use super::{Body, Failure, Files, Job, JobResult, Reason, compile, is_wanted, pattern, required};
use crate::operation::operation;
use crate::parameter::Parameters;
use crate::response::{OVERWRITE, VARIABLE};
use files::partial::{Existing, Partial, directories, is_partial};
use flow::{Context, Definition, Pattern};
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) const COPY: Definition = operation(
    "file.copy",
    "Copies a file or a directory into a directory.",
    parameters!("sourcePath", "targetPath", "sourceFilePattern", "includeParent", "overwrite", "renameTo"),
    |element, compiler| compile(element, "copy", Body::Unread, copy, compiler),
);

pub(super) const MOVE: Definition = operation(
    "file.move",
    "Moves a file or a directory into a directory.",
    parameters!(
        "sourcePath",
        "targetPath",
        "filePattern",
        "createParentDirectories",
        "includeParent",
        "overwrite",
        "renameTo",
        "isSourceMounted",
        "isTargetMounted"
    ),
    |element, compiler| compile(element, "move", Body::Unread, relocate, compiler),
);

pub(super) const RENAME: Definition = operation(
    "file.rename",
    "Gives a file or a directory another name.",
    parameters!("path", "renameTo", "overwrite"),
    |element, compiler| compile(element, "rename", Body::Unread, rename, compiler),
);

pub(super) const DELETE: Definition = operation(
    "file.delete",
    "Deletes a file or a directory, or files of a directory.",
    &["path", "matchingPattern", "maxRetries", "retryDelay", "diskShareAccessMask", VARIABLE, OVERWRITE],
    |element, compiler| compile(element, "delete", Body::Unread, delete, compiler),
);

pub(super) const CREATE_DIRECTORY: Definition = operation(
    "file.createDirectory",
    "Makes a directory, and those above it.",
    &["directoryPath", "maxRetries", "retryDelay", "diskShareAccessMask", VARIABLE, OVERWRITE],
    |element, compiler| compile(element, "createDirectory", Body::Unread, create_directory, compiler),
);

pub(super) const CHECK_EXIST: Definition = operation(
    "file.checkExist",
    "Tells whether there is a file or a directory.",
    &["path", "includeResultTo", "resultPropertyName", "diskShareAccessMask", VARIABLE, OVERWRITE],
    |element, compiler| compile(element, CHECK, Body::Unread, check_exist, compiler),
);

/// Whether something is there: the operation and the member of its result.
pub(super) const CHECK: &str = "checkExist";
pub(super) const EXISTS: &str = "fileExists";

fn check_exist(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let path = required(parameters, "path", context)?;
    Ok(Arc::new(move |files| {
        let path = files.path(&path)?;
        let mut done = JobResult::default();
        done.members.insert(EXISTS.to_owned(), is_there(&path)?.into());
        Ok(done)
    }))
}

/// Whether a file or a directory exists.
pub(super) fn is_there(path: &Path) -> Result<bool, Failure> {
    match fs::metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if is_missing(&error) => Ok(false),
        Err(error) => Err(Failure::io(path, &error)),
    }
}

/// Whether an error means that the file or directory does not exist.
pub(super) fn is_missing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn create_directory(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let path = required(parameters, "directoryPath", context)?;
    Ok(Arc::new(move |files| {
        let path = files.path(&path)?;
        directories(&path).map_err(|error| Failure::io(&path, &error))?;
        Ok(JobResult::default())
    }))
}

fn delete(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let path = required(parameters, "path", context)?;
    let pattern = pattern(parameters, "matchingPattern", context)?;
    Ok(Arc::new(move |files| {
        let path = files.path(&path)?;
        let failed = |error: std::io::Error| Failure::io(&path, &error);
        let metadata = fs::symlink_metadata(&path).map_err(failed)?;
        let mut done = JobResult::default();
        if !metadata.is_dir() {
            let _lock = lock(&path, files)?;
            fs::remove_file(&path).map_err(failed)?;
            return Ok(done);
        }
        let mut count = 0;
        let deleted = match &pattern {
            Some(pattern) => delete_matching(&path, pattern, 0, &mut count, files)?,
            None if files.connection.root.is(&path) || path.parent().is_none() => {
                let why = "the working directory itself is not deleted: give a matchingPattern";
                return Err(Failure::new(Reason::IllegalPath, why));
            }
            None => {
                let all = count_below(&path, 0, &mut count, files)?;
                fs::remove_dir_all(&path).map_err(failed)?;
                all
            }
        };
        done.members.insert("numOfDeletedFiles".to_owned(), deleted.into());
        Ok(done)
    }))
}

fn count_below(directory: &Path, depth: usize, count: &mut usize, files: &Files) -> Result<u64, Failure> {
    let mut all = 0;
    for entry in entries(directory, count, files)? {
        let is_directory = fs::symlink_metadata(&entry.path).is_ok_and(|m| m.is_dir());
        all += match is_directory {
            true if depth < DEEPEST => count_below(&entry.path, depth + 1, count, files)?,
            true => return Err(too_deep(directory)),
            false => 1,
        };
    }
    Ok(all)
}

fn delete_matching(
    directory: &Path,
    pattern: &Pattern,
    depth: usize,
    count: &mut usize,
    files: &Files,
) -> Result<u64, Failure> {
    let mut deleted = 0;
    for entry in entries(directory, count, files)? {
        let is_directory = fs::symlink_metadata(&entry.path).is_ok_and(|m| m.is_dir());
        if is_directory {
            if depth >= DEEPEST {
                return Err(too_deep(directory));
            }
            deleted += delete_matching(&entry.path, pattern, depth + 1, count, files)?;
        } else if is_wanted(&entry.name, Some(pattern))? {
            match fs::remove_file(&entry.path) {
                Ok(()) => deleted += 1,
                // Another process was faster.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(Failure::io(&entry.path, &error)),
            }
        }
    }
    Ok(deleted)
}

pub(super) fn too_deep(directory: &Path) -> Failure {
    let why = format!("{}: directories nest deeper than {DEEPEST}", directory.display());
    Failure::new(Reason::Configuration, why)
}

/// A new name: without a slash, so that the file stays in its directory.
fn new_name(text: Option<String>) -> Result<Option<String>, Failure> {
    match text {
        Some(name) if name.contains('/') || matches!(name.as_str(), "." | "..") => {
            Err(Failure::new(Reason::IllegalPath, format!("`renameTo` is not a name: {name}")))
        }
        Some(name) if is_partial(&name) => {
            Err(Failure::new(Reason::IllegalPath, format!("`renameTo`: {name}: {}", super::path::NOT_WHOLE)))
        }
        name => Ok(name),
    }
}

fn exists(path: &Path) -> Failure {
    Failure::new(Reason::Exists, format!("{} exists already, and `overwrite` is not true", path.display()))
}

fn rename(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let path = required(parameters, "path", context)?;
    let name = required(parameters, "renameTo", context)?;
    let name = new_name(Some(name))?.unwrap_or_default();
    let overwrite = parameters.is_true("overwrite", false, context)?;
    Ok(Arc::new(move |files| {
        let path = files.path(&path)?;
        let target = path.with_file_name(&name);
        let _lock = lock(&path, files)?;
        put(&path, &target, overwrite, files)?;
        Ok(JobResult::default())
    }))
}

/// Moves one file or directory to a path: by rename within a file system, else as a copy.
pub(super) fn put(from: &Path, to: &Path, overwrite: bool, files: &Files) -> Result<(), Failure> {
    let metadata = fs::symlink_metadata(from).map_err(|error| Failure::io(from, &error))?;
    if files.connection.root.is(from) {
        return Err(Failure::new(Reason::IllegalPath, "the working directory itself is not moved"));
    }
    if from == to {
        return Ok(());
    }
    if to.starts_with(from) {
        let why = format!("{} is within {}", to.display(), from.display());
        return Err(Failure::new(Reason::IllegalPath, why));
    }
    if !overwrite && !metadata.is_dir() {
        // A hard link fails if the name exists, atomically; a rename would replace it.
        match fs::hard_link(from, to) {
            Ok(()) => return fs::remove_file(from).map_err(|error| Failure::io(from, &error)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(exists(to)),
            // Another file system, or one without hard links.
            Err(_) => {}
        }
    }
    if !overwrite && fs::symlink_metadata(to).is_ok() {
        return Err(exists(to));
    }
    match fs::rename(from, to) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::CrossesDevices => {
            carry(from, to, if overwrite { Existing::Replace } else { Existing::Refuse }, files)
        }
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty && overwrite => {
            carry(from, to, Existing::Replace, files)
        }
        Err(error) => Err(Failure::io(to, &error)),
    }
}

/// A file or directory that is moved as a copy.
struct Member {
    path: PathBuf,
    /// Of the link itself, if it is one.
    metadata: Metadata,
}

/// Moves one file or directory as a copy: nothing is deleted before all of it is copied, and nothing that was not copied. A file that cannot
/// be copied is a fault before anything is changed.
fn carry(from: &Path, to: &Path, existing: Existing, files: &Files) -> Result<(), Failure> {
    let mut members = Vec::new();
    survey(from.to_owned(), 0, &mut members, files)?;
    let target = |member: &Member| match member.path.strip_prefix(from) {
        Ok(below) if below != Path::new("") => to.join(below),
        _ => to.to_owned(),
    };
    for member in &members {
        copy_member(member, &target(member), existing, files)?;
    }
    // The members of a directory come before it.
    for member in members.iter().rev() {
        let failed = |error: std::io::Error| Failure::io(&member.path, &error);
        if member.metadata.is_dir() {
            // Without the permission the directory keeps the default mode.
            let _ = fs::set_permissions(target(member), member.metadata.permissions());
            fs::remove_dir(&member.path).map_err(failed)?;
            continue;
        }
        match fs::symlink_metadata(&member.path) {
            Ok(now) if state(&now) != state(&member.metadata) => {
                let why = format!("{} was changed while it was moved, and is kept", member.path.display());
                return Err(Failure::new(Reason::Operation, why));
            }
            Ok(_) => fs::remove_file(&member.path).map_err(failed)?,
            // Another process was faster.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}

/// What changes when a file is written: its length, and its time in seconds and nanoseconds.
fn state(metadata: &Metadata) -> (u64, i64, i64) {
    (metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

/// Lists a file or directory with all its members, a directory in front of its members.
fn survey(path: PathBuf, depth: usize, members: &mut Vec<Member>, files: &Files) -> Result<(), Failure> {
    let metadata = fs::symlink_metadata(&path).map_err(|error| Failure::io(&path, &error))?;
    if !metadata.is_dir() && !metadata.is_file() && !metadata.is_symlink() {
        return Err(Failure::no_file(&path));
    }
    if depth > DEEPEST {
        return Err(too_deep(&path));
    }
    if members.len() >= MOST {
        return Err(too_many(&path));
    }
    let is_directory = metadata.is_dir();
    members.push(Member { path: path.clone(), metadata });
    if is_directory {
        for name in names(&path, files)? {
            survey(path.join(name), depth + 1, members, files)?;
        }
    }
    Ok(())
}

/// All names in a directory, also those that are not UTF-8, sorted.
fn names(directory: &Path, files: &Files) -> Result<Vec<OsString>, Failure> {
    let failed = |error: std::io::Error| Failure::io(directory, &error);
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        files.go_on()?;
        if names.len() >= MOST {
            return Err(too_many(directory));
        }
        names.push(entry.map_err(failed)?.file_name());
    }
    names.sort();
    Ok(names)
}

fn too_many(directory: &Path) -> Failure {
    let why = format!("there are more than {MOST} files in {}", directory.display());
    Failure::new(Reason::Configuration, why)
}

/// Copies one member without its own members. A link stays a link, and an existing one is not followed: it may lead back to the source.
fn copy_member(member: &Member, to: &Path, existing: Existing, files: &Files) -> Result<(), Failure> {
    files.go_on()?;
    let (from, metadata) = (member.path.as_path(), &member.metadata);
    let failed = |error: std::io::Error| Failure::io(from, &error);
    let refused = |error: std::io::Error| Failure::io(to, &error);
    let there = fs::symlink_metadata(to).ok();
    if there.as_ref().is_some_and(|target| (target.dev(), target.ino()) == (metadata.dev(), metadata.ino())) {
        let why = format!("{} and {} are the same", from.display(), to.display());
        return Err(Failure::new(Reason::IllegalPath, why));
    }
    if metadata.is_dir() {
        return match there {
            Some(target) if target.is_dir() => Ok(()),
            _ => fs::create_dir(to).map_err(refused),
        };
    }
    if there.as_ref().is_some_and(|target| !target.is_file() && !target.is_symlink()) {
        return Err(Failure::no_file(to));
    }
    if there.is_some() && existing == Existing::Refuse {
        return Err(exists(to));
    }
    if metadata.is_symlink() {
        let link = fs::read_link(from).map_err(failed)?;
        if there.is_some() {
            fs::remove_file(to).map_err(refused)?;
        }
        return symlink(link, to).map_err(refused);
    }
    let mut source = File::open(from).map_err(failed)?;
    let mut partial = Partial::begin_at(to.to_owned(), existing)?;
    partial.copy_from(&mut source, &files.cancel)?;
    let file = partial.file()?;
    // Without the permission the copy keeps the default mode.
    let _ = file.set_permissions(metadata.permissions());
    let _ = metadata.modified().and_then(|time| file.set_modified(time));
    Ok(partial.finish()?)
}

/// A directory is not copied into itself. `real`: the resolved paths.
pub(super) fn outside(from: &Path, to: &Path, real: impl Fn(&Path) -> PathBuf) -> Result<(), Failure> {
    match real(to).starts_with(real(from)) {
        false => Ok(()),
        true => {
            let why = format!("{} is within {}", to.display(), from.display());
            Err(Failure::new(Reason::IllegalPath, why))
        }
    }
}

/// A path without links, as far as it exists.
pub(super) fn without_links(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|above| Some((fs::canonicalize(above).ok()?, above)));
    match there.map(|(real, above)| (real, path.strip_prefix(above))) {
        Some((real, Ok(rest))) => real.join(rest),
        _ => path.to_owned(),
    }
}

/// The parameters of `file.copy` and `file.move`.
struct Transfer {
    from: String,
    to: String,
    name: Option<String>,
    pattern: Option<Arc<Pattern>>,
    with_parent: bool,
    overwrite: bool,
}

impl Transfer {
    fn of(parameters: &Parameters, filter: &str, context: &mut Context) -> Result<Transfer, Failure> {
        Ok(Transfer {
            from: required(parameters, "sourcePath", context)?,
            to: required(parameters, "targetPath", context)?,
            name: new_name(parameters.text("renameTo", context)?)?,
            pattern: pattern(parameters, filter, context)?,
            with_parent: parameters.is_true("includeParent", false, context)?,
            overwrite: parameters.is_true("overwrite", false, context)?,
        })
    }

    /// Source and target. The target of a file is in the directory that is named; that of a directory is this directory, or one in it.
    fn paths(&self, files: &Files) -> Result<(PathBuf, PathBuf, bool), Failure> {
        let (from, mut to) = (files.path(&self.from)?, files.path(&self.to)?);
        let metadata = fs::metadata(&from).map_err(|error| Failure::io(&from, &error))?;
        if !metadata.is_dir() || self.with_parent {
            let own_name = from.file_name().map(|name| name.to_string_lossy().into_owned());
            match self.name.clone().or(own_name) {
                Some(name) => to = to.join(name),
                None => {
                    return Err(Failure::new(Reason::IllegalPath, format!("{} has no name", from.display())));
                }
            }
        }
        if metadata.is_dir() {
            outside(&from, &to, Path::to_path_buf)?;
        }
        Ok((from, to, metadata.is_dir()))
    }

    /// Fails before anything is changed, if a member of the directory exists in the target.
    fn check(&self, members: &[OsString], to: &Path) -> Result<(), Failure> {
        if self.overwrite || fs::symlink_metadata(to).is_err() {
            return Ok(());
        }
        let there = members.iter().map(|name| to.join(name)).find(|path| fs::symlink_metadata(path).is_ok());
        there.map_or(Ok(()), |there| Err(exists(&there)))
    }

    /// The names in a directory that the pattern accepts. Temporary files belong to those who write them.
    fn members(&self, directory: &Path, files: &Files) -> Result<Vec<OsString>, Failure> {
        let mut wanted = Vec::new();
        for name in names(directory, files)? {
            let text = name.to_string_lossy();
            if !is_partial(&text) && is_wanted(&text, self.pattern.as_deref())? {
                wanted.push(name);
            }
        }
        Ok(wanted)
    }

    fn existing(&self) -> Existing {
        if self.overwrite { Existing::Replace } else { Existing::Refuse }
    }
}

fn copy(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let transfer = Transfer::of(parameters, "sourceFilePattern", context)?;
    Ok(Arc::new(move |files| {
        let (from, to, is_directory) = transfer.paths(files)?;
        let _lock = lock(&from, files)?;
        if is_directory {
            // The target of a link is copied, not the link.
            outside(&from, &to, without_links)?;
            transfer.check(&transfer.members(&from, files)?, &to)?;
        }
        let mut count = 0;
        copy_all(&from, &to, transfer.pattern.as_deref(), transfer.existing(), 0, &mut count, files)?;
        Ok(JobResult::default())
    }))
}

/// Copies a file, or the wanted files of a directory.
pub(super) fn copy_all(
    from: &Path,
    to: &Path,
    pattern: Option<&Pattern>,
    existing: Existing,
    depth: usize,
    count: &mut usize,
    files: &Files,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::io(from, &error);
    let metadata = fs::metadata(from).map_err(failed)?;
    if !metadata.is_dir() {
        if !metadata.is_file() {
            return Err(Failure::no_file(from));
        }
        let mut source = File::open(from).map_err(failed)?;
        let mut partial = Partial::begin(to, existing, true)?;
        partial.copy_from(&mut source, &files.cancel)?;
        if partial.file()?.metadata().map_err(failed)?.is_file() {
            // Without the permission the copy keeps the default mode.
            let _ = partial.file()?.set_permissions(metadata.permissions());
        }
        return Ok(partial.finish()?);
    }
    if depth > DEEPEST {
        return Err(too_deep(from));
    }
    directories(to).map_err(|error| Failure::io(to, &error))?;
    for entry in entries(from, count, files)? {
        let is_directory = entry.metadata.is_dir();
        let linked = is_directory && fs::symlink_metadata(&entry.path).is_ok_and(|m| m.is_symlink());
        if linked || (!is_directory && !is_wanted(&entry.name, pattern)?) {
            continue;
        }
        // The name as the system has it, which need not be UTF-8.
        let name = entry.path.file_name().unwrap_or(entry.name.as_ref());
        copy_all(&entry.path, &to.join(name), pattern, existing, depth + 1, count, files)?;
    }
    Ok(())
}

fn relocate(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let transfer = Transfer::of(parameters, "filePattern", context)?;
    let parents = parameters.is_true("createParentDirectories", true, context)?;
    Ok(Arc::new(move |files| {
        let (from, to, is_directory) = transfer.paths(files)?;
        let _lock = lock(&from, files)?;
        let above = if is_directory && !transfer.with_parent { Some(to.as_path()) } else { to.parent() };
        if let Some(above) = above.filter(|above| fs::metadata(above).is_err()) {
            if !parents {
                let why =
                    format!("{} is not there, and `createParentDirectories` is not true", above.display());
                return Err(Failure::new(Reason::IllegalPath, why));
            }
            directories(above).map_err(|error| Failure::io(above, &error))?;
        }
        if !is_directory {
            put(&from, &to, transfer.overwrite, files)?;
            return Ok(JobResult::default());
        }
        let members = transfer.members(&from, files)?;
        transfer.check(&members, &to)?;
        if transfer.with_parent && transfer.pattern.is_none() {
            put(&from, &to, transfer.overwrite, files)?;
            return Ok(JobResult::default());
        }
        directories(&to).map_err(|error| Failure::io(&to, &error))?;
        for name in members {
            put(&from.join(&name), &to.join(&name), transfer.overwrite, files)?;
        }
        Ok(JobResult::default())
    }))
}
