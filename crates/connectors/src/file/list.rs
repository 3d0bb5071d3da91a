//! `file.listFiles`: the names in a directory.

use super::read::{facts, time, whole};
use super::{
    Body, Failure, Files, Job, JobResult, Reason, compile, compiled, expected, is_wanted, number, pattern,
    required,
};
use crate::operation::operation;
use crate::parameter::Parameters;
use crate::response::VARIABLE;
use base64::Engine;
use files::partial::is_partial;
use flow::{Context, Definition, Pattern};
use message::memory::Held;
use serde_json::{Map, Value as Json};
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Most files and directories that one operation examines.
pub(super) const MOST: usize = 100_000;
/// Deepest directory below the given one.
pub(super) const DEEPEST: usize = 64;

/// The member with the files of a directory.
const FILES: &str = "file";

pub(super) const LIST_FILES: Definition = operation(
    "file.listFiles",
    "Lists the files of a directory.",
    parameters!(
        "directoryPath",
        "matchingPattern",
        "fileFilterType",
        "includeFiles",
        "excludeFiles",
        "maxFileAge",
        "recursive",
        "subDirectoryMaxDepth",
        "responseFormat",
        "sortingAttribute",
        "sortingOrder",
        "appendFileAttributes"
    ),
    |element, compiler| compile(element, "listFiles", Body::Unread, prepare, compiler),
);

pub(super) const FETCH: Definition = operation(
    "file.fetchDirectoryContent",
    "Reads the files of a directory into a list.",
    parameters!(
        "directoryPath",
        "matchingPattern",
        "recursive",
        "sortingAttribute",
        "sortingOrder",
        "resultPropertyName"
    ),
    |element, compiler| compile(element, CONTENTS, Body::Kept, fetch, compiler),
);

/// The operation that returns the contents of files.
pub(super) const CONTENTS: &str = "fetchDirectoryContent";

#[derive(Clone, Copy)]
enum Order {
    Name,
    Size,
    Modified,
}

/// The parameters of a listing.
struct Listing {
    directory: String,
    pattern: Option<Arc<Pattern>>,
    include: Vec<Arc<Pattern>>,
    exclude: Vec<Arc<Pattern>>,
    /// Patterns match the path below the directory, not the name.
    by_path: bool,
    oldest: Option<Duration>,
    depth: usize,
    flat: bool,
    order: Order,
    descending: bool,
    facts: bool,
}

fn prepare(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let listing = listing(parameters, context)?;
    Ok(Arc::new(move |files| listing.run(files)))
}

fn fetch(parameters: &Parameters, context: &mut Context) -> Result<Job, Failure> {
    let listing = Listing { flat: true, ..listing(parameters, context)? };
    if parameters.get(VARIABLE).is_none() {
        required(parameters, "resultPropertyName", context)?;
    }
    Ok(Arc::new(move |files| listing.contents(files)))
}

fn listing(parameters: &Parameters, context: &mut Context) -> Result<Listing, Failure> {
    let mut word = |name: &str, words: &[&str]| -> Result<usize, Failure> {
        let Some(text) = parameters.text(name, context)? else { return Ok(0) };
        words.iter().position(|word| word.eq_ignore_ascii_case(&text)).ok_or_else(|| {
            Failure::new(
                Reason::Configuration,
                format!("there is no {name} {text}: expected {}", words.join(", ")),
            )
        })
    };
    let order = [Order::Name, Order::Size, Order::Modified]
        [word("sortingAttribute", &["Name", "Size", "LastModifiedTime"])?];
    let descending = word("sortingOrder", &["Ascending", "Descending"])? == 1;
    let flat = word("responseFormat", &["Hierarchical", "Flat"])? == 1;
    let ant = word("fileFilterType", &["regex", "ant"])? == 1;
    let mut patterns = |name: &str| -> Result<Vec<Arc<Pattern>>, Failure> {
        let Some(text) = expected(parameters, name, context)? else { return Ok(Vec::new()) };
        if !ant {
            return Ok(vec![compiled(name, &text)?]);
        }
        text.split(',').map(|pattern| compiled(name, &of_ant(pattern.trim()))).collect()
    };
    let (include, exclude) = (patterns("includeFiles")?, patterns("excludeFiles")?);
    let recursive = parameters.is_true("recursive", false, context)?;
    let depth = number(parameters, "subDirectoryMaxDepth", context)?.unwrap_or(DEEPEST as u64);
    Ok(Listing {
        directory: required(parameters, "directoryPath", context)?,
        pattern: pattern(parameters, "matchingPattern", context)?,
        include,
        exclude,
        by_path: ant,
        oldest: number(parameters, "maxFileAge", context)?.map(Duration::from_millis),
        depth: if recursive { (depth as usize).min(DEEPEST) } else { 0 },
        flat,
        order,
        descending,
        facts: parameters.is_true("appendFileAttributes", false, context)?,
    })
}

/// The regular expression of an Ant pattern: `*` and `?` within a name, `**` across directories.
fn of_ant(pattern: &str) -> String {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        if let Some(tail) = rest.strip_prefix("**/") {
            out.push_str("(.*/)?");
            rest = tail;
        } else if let Some(tail) = rest.strip_prefix("**") {
            out.push_str(".*");
            rest = tail;
        } else {
            match c {
                '*' => out.push_str("[^/]*"),
                '?' => out.push_str("[^/]"),
                c if c.is_alphanumeric() || c == '/' || c == '_' => out.push(c),
                c => {
                    out.push('\\');
                    out.push(c);
                }
            }
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// One entry of a directory.
pub(super) struct Entry {
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) metadata: Metadata,
}

/// The entries of a directory, by name. `count`: how many the operation has examined so far.
pub(super) fn entries(directory: &Path, count: &mut usize, files: &Files) -> Result<Vec<Entry>, Failure> {
    let failed = |error: std::io::Error| Failure::io(directory, &error);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        files.go_on()?;
        let entry = entry.map_err(failed)?;
        // Bytes that are not UTF-8 are replaced.
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_partial(&name) {
            continue;
        }
        *count += 1;
        if *count > MOST {
            let why = format!("there are more than {MOST} files in {}", directory.display());
            return Err(Failure::new(Reason::Configuration, why));
        }
        // A file that has vanished, or a broken link, is skipped.
        let Ok(metadata) = fs::metadata(entry.path()) else { continue };
        found.push(Entry { path: entry.path(), name, metadata });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

impl Listing {
    fn directory(&self, files: &Files) -> Result<PathBuf, Failure> {
        let directory = files.path(&self.directory)?;
        let metadata = fs::metadata(&directory).map_err(|error| Failure::io(&directory, &error))?;
        match metadata.is_dir() {
            true => Ok(directory),
            false => {
                Err(Failure::new(Reason::IllegalPath, format!("{} is not a directory", directory.display())))
            }
        }
    }

    /// The contents of the files in base64, in their order.
    fn contents(&self, files: &Files) -> Result<JobResult, Failure> {
        let directory = self.directory(files)?;
        let (mut count, mut all, mut held, mut total) = (0, Vec::new(), Held::NONE, 0);
        self.below(&directory, &directory, 0, &mut count, &mut all, files)?;
        self.sort(&mut all);
        let mut contents = Vec::new();
        for entry in &all {
            let (bytes, _own) = match whole(&entry.path, files) {
                Ok(read) => read,
                // Another process has removed it.
                Err(_) if fs::symlink_metadata(&entry.path).is_err() => continue,
                Err(failure) => return Err(failure),
            };
            total += bytes.len();
            if total > files.held {
                let why = format!(
                    "the files of {} have more than a flow may hold ({} bytes)",
                    directory.display(),
                    files.held
                );
                return Err(Failure::new(Reason::Configuration, why));
            }
            held.try_grow(bytes.len() / 3 * 4)?;
            contents.push(Json::String(base64::engine::general_purpose::STANDARD.encode(bytes)));
        }
        let mut done = JobResult { held, ..JobResult::default() };
        done.members.insert(CONTENTS.to_owned(), Json::Array(contents));
        Ok(done)
    }

    fn run(&self, files: &Files) -> Result<JobResult, Failure> {
        let directory = self.directory(files)?;
        let mut count = 0;
        let mut all = Vec::new();
        let tree = self.below(&directory, &directory, 0, &mut count, &mut all, files)?;
        let list = if self.flat {
            let mut list = Map::new();
            list.insert(FILES.to_owned(), self.sorted(all, files, true)?);
            list
        } else {
            let name = directory
                .file_name()
                .map_or_else(|| "/".to_owned(), |name| name.to_string_lossy().into_owned());
            let mut list = Map::new();
            list.insert(name, Json::Object(tree));
            list
        };
        let mut done = JobResult::default();
        done.members.insert("fileList".to_owned(), Json::Object(list));
        Ok(done)
    }

    fn below(
        &self,
        top: &Path,
        directory: &Path,
        depth: usize,
        count: &mut usize,
        all: &mut Vec<Entry>,
        files: &Files,
    ) -> Result<Map<String, Json>, Failure> {
        let (mut listed, mut deeper) = (Vec::new(), Vec::new());
        for entry in entries(directory, count, files)? {
            if entry.metadata.is_dir() {
                // A linked directory may lead back here.
                let linked = fs::symlink_metadata(&entry.path).is_ok_and(|m| m.is_symlink());
                if depth < self.depth && !linked {
                    deeper.push(entry);
                }
            } else if self.lists(top, &entry)? {
                listed.push(entry);
            }
        }
        let mut members = Map::new();
        if self.flat {
            all.append(&mut listed);
        } else {
            members.insert(FILES.to_owned(), self.sorted(listed, files, false)?);
        }
        for entry in deeper {
            let inside = self.below(top, &entry.path, depth + 1, count, all, files)?;
            // File names have no slash, so this key cannot collide with one.
            let name = if entry.name == FILES { format!("{FILES}/") } else { entry.name };
            members.insert(name, Json::Object(inside));
        }
        Ok(members)
    }

    fn lists(&self, top: &Path, entry: &Entry) -> Result<bool, Failure> {
        let below = entry.path.strip_prefix(top).unwrap_or(&entry.path).to_string_lossy().into_owned();
        let name = if self.by_path { below.as_str() } else { entry.name.as_str() };
        let any = |patterns: &[Arc<Pattern>]| -> Result<bool, Failure> {
            for pattern in patterns {
                if is_wanted(name, Some(pattern))? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        let age = entry.metadata.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok());
        let young = match (self.oldest, age) {
            (Some(oldest), Some(age)) => age <= oldest,
            _ => true,
        };
        Ok(young
            && is_wanted(&entry.name, self.pattern.as_deref())?
            && (self.include.is_empty() || any(&self.include)?)
            && !any(&self.exclude)?)
    }

    fn sort(&self, list: &mut [Entry]) {
        match self.order {
            Order::Name => {}
            Order::Size => list.sort_by_key(|entry| entry.metadata.len()),
            Order::Modified => list.sort_by_key(|entry| entry.metadata.modified().ok()),
        }
        if self.descending {
            list.reverse();
        }
    }

    fn sorted(&self, mut list: Vec<Entry>, files: &Files, paths: bool) -> Result<Json, Failure> {
        self.sort(&mut list);
        let shown =
            |entry: &Entry| if paths { files.connection.root.shown(&entry.path) } else { entry.name.clone() };
        if !self.facts {
            return Ok(list.iter().map(|entry| Json::String(shown(entry))).collect());
        }
        list.iter()
            .filter_map(|entry| facts(&entry.path, files).ok().map(|facts| (entry, facts)))
            .map(|(entry, _)| {
                let mut members = Map::new();
                members.insert("name".to_owned(), shown(entry).into());
                members.insert("size".to_owned(), entry.metadata.len().into());
                if let Ok(modified) = entry.metadata.modified() {
                    members.insert("lastModifiedTime".to_owned(), time(modified).into());
                }
                Ok(Json::Object(members))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn patterns_of_ant() {
        for (pattern, name, matches) in [
            ("*.txt", "a.txt", true),
            ("*.txt", "d/a.txt", false),
            ("**/*.txt", "d/e/a.txt", true),
            ("**/*.txt", "a.txt", true),
            ("a?.csv", "ab.csv", true),
            ("a+b(1).x", "a+b(1).x", true),
            ("d/**", "d/e/f", true),
        ] {
            let compiled = flow::Pattern::compile(&super::of_ant(pattern)).unwrap();
            assert_eq!(compiled.matches(name), Ok(matches), "{pattern} {name}");
        }
    }
}
