//! Paths from outside (messages, clients), below a directory of the configuration.

use std::path::{Path, PathBuf};

/// The error of a path that leads out of its root.
pub const OUT: &str = "leads out of the working directory";

/// The path below `root` that a text means, whether it begins with a slash or not. Symbolic links are followed: whoever may make
/// links in the directory decides where they lead.
///
/// # Errors
/// Why it means none: it leads out of `root`.
pub fn below(root: &Path, text: &str) -> Result<PathBuf, &'static str> {
    if text.contains('\0') {
        return Err("a path has no NUL");
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => return Err(OUT),
            ".." => {}
            part => parts.push(part),
        }
    }
    Ok(parts.into_iter().fold(root.to_owned(), |path, part| path.join(part)))
}
