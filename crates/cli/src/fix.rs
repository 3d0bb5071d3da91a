//! `busbar check --fix`: the changes that findings bring along, in the files.
//!
//! Only a file that can be changed is: not a member of an archive, not a text in another encoding than UTF-8, not one that may not be
//! written. All of its other bytes stay, and it is replaced in one step.

use diagnostics::{Diagnostic, Edit, FileId, SourceFile, SourceMap, io_reason};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What was done.
#[derive(Default)]
pub struct Fixed {
    /// `file:line:column: write …` of each change.
    pub changes: Vec<String>,
    /// Why files were left as they are.
    pub errors: Vec<String>,
}

/// Applies the fixes of findings.
pub fn apply<'a>(found: impl IntoIterator<Item = &'a Diagnostic>, sources: &SourceMap) -> Fixed {
    let mut fixed = Fixed::default();
    // The fixes of a file by their places: one that overlaps another waits for the next round.
    let mut files: BTreeMap<FileId, Vec<(&'a [Edit], &'a str)>> = BTreeMap::new();
    for diagnostic in found {
        if let Some(fix) = &diagnostic.fix
            && let Some(first) = fix.edits.first()
            && fix
                .edits
                .iter()
                .all(|edit| edit.span.file == first.span.file && sources.text(edit.span) == edit.was)
        {
            let edits_of_file = files.entry(first.span.file).or_default();
            let mut taken = edits_of_file.iter().flat_map(|(edits, _)| edits.iter());
            if !taken.any(|other| fix.edits.iter().any(|edit| overlap(edit, other))) {
                edits_of_file.push((&fix.edits, &fix.title));
            }
        }
    }
    for (id, fixes) in files {
        let Some(file) = sources.get(id) else { continue };
        let mut edits: Vec<&Edit> = fixes.iter().flat_map(|(edits, _)| edits.iter()).collect();
        edits.sort_by_key(|edit| edit.span.start);
        match change(file, &edits) {
            Ok(()) => fixed.changes.extend(fixes.iter().filter_map(|(edits, title)| {
                Some(format!("{}: {title}", edits.first()?.span.place(sources)))
            })),
            Err(why) => fixed.errors.push(format!("{}: not changed: {why}", file.path())),
        }
    }
    fixed
}

fn overlap(one: &Edit, other: &Edit) -> bool {
    one.span.start < other.span.end && other.span.start < one.span.end
}

fn change(file: &SourceFile, edits: &[&Edit]) -> Result<(), String> {
    let path = Path::new(file.path());
    if !path.exists()
        && let Some(archive) = path.ancestors().skip(1).find(|outer| outer.is_file())
    {
        let archive = archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Err(format!("it is in the archive {archive}: change its source and pack it anew"));
    }
    // A link is followed: the file behind it is replaced.
    let path = path.canonicalize().map_err(|error| io_reason(&error))?;
    let before = fs::read(&path).map_err(|error| io_reason(&error))?;
    let mark = if before.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    if before.get(mark..) != Some(file.text().as_bytes()) {
        return Err("it is not in UTF-8, or has changed meanwhile".to_owned());
    }
    let after = edited(&before, mark, edits);
    // A file that is no longer well-formed would be worse than the finding.
    let text = String::from_utf8_lossy(after.get(mark..).unwrap_or_default()).into_owned();
    if config::parse(FileId::BUILT_IN, &text).is_err() {
        return Err("the change would break it".to_owned());
    }
    let metadata = fs::metadata(&path).map_err(|error| io_reason(&error))?;
    if metadata.permissions().readonly() {
        return Err("it is read-only".to_owned());
    }
    replace(&path, &after, metadata.permissions()).map_err(|error| io_reason(&error))
}

fn edited(before: &[u8], mark: usize, edits: &[&Edit]) -> Vec<u8> {
    let mut after = Vec::with_capacity(before.len() + 100);
    let mut at = 0;
    for edit in edits {
        let (start, end) = (edit.span.start as usize + mark, edit.span.end as usize + mark);
        after.extend_from_slice(before.get(at..start).unwrap_or_default());
        after.extend_from_slice(edit.text.as_bytes());
        at = end;
    }
    after.extend_from_slice(before.get(at..).unwrap_or_default());
    after
}

/// Puts a file in the place of another in one step: after a crash it is the old one or the new one.
fn replace(path: &Path, content: &[u8], permissions: fs::Permissions) -> io::Result<()> {
    let beside = beside(path);
    let written = File::create_new(&beside).and_then(|mut file| {
        file.write_all(content)?;
        file.set_permissions(permissions)?;
        file.sync_all()
    });
    let replaced = written.and_then(|()| fs::rename(&beside, path));
    if replaced.is_err() {
        let _ = fs::remove_file(&beside);
    }
    replaced
}

fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    path.with_file_name(format!(".{name}.{}.busbar", std::process::id()))
}
