//! Lists the files of `examples/round` and `examples/sql`, so that `busbar demo` has them without the source tree, and says for `busbar --version` which
//! commit and profile the binary is made of.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    for example in ["round", "sql"] {
        list(example, &out)?;
    }
    println!("cargo::rustc-env=VERSION_OF_BUILD={}", version(&out)?);
    Ok(())
}

/// Writes the table of the files of an example.
fn list(example: &str, out: &Path) -> io::Result<()> {
    let examples = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("../../examples");
    let folder = examples.join(example).canonicalize()?;
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    collect(&folder, &mut files)?;
    files.sort();
    let mut table = String::from("&[\n");
    for file in files {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = file.strip_prefix(&folder).map_err(io::Error::other)?;
        // Strings of Rust: Debug escapes what has to be.
        table += &format!("    ({:?}, include_str!({:?})),\n", name.display().to_string(), file);
    }
    table += "]\n";
    fs::write(out.join(format!("{example}.rs")), table)
}

/// `0.1.0 (commit 0123456789, profile release)`; without a commit where the source is no checkout.
fn version(out: &Path) -> io::Result<String> {
    // OUT_DIR is TARGET/PROFILE/build/PACKAGE/out. The directory of the profile `dev` is `debug`.
    let profile = match out.ancestors().nth(3).and_then(Path::file_name).and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let commit = match git(&["rev-parse", "--short=10", "HEAD"]) {
        Some(commit) => {
            // HEAD names the branch, whose file has the commit; `packed-refs` has it where there is no such file.
            let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
            for name in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
                if let Some(path) =
                    git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists())
                {
                    println!("cargo::rerun-if-changed={path}");
                }
            }
            format!("commit {commit}, ")
        }
        None => String::new(),
    };
    Ok(format!("{} ({commit}profile {profile})", variable("CARGO_PKG_VERSION")?))
}

/// What git says in the directory of this package.
fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            println!("cargo::rerun-if-changed={}", path.display());
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(|error| io::Error::other(format!("{name}: {error}")))
}
