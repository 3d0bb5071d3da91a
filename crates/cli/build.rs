//! Lists the files of `examples/round`, so that `busbar demo` has them without the source tree.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let round = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("../../examples/round").canonicalize()?;
    println!("cargo::rerun-if-changed={}", round.display());
    let mut files = Vec::new();
    collect(&round, &mut files)?;
    files.sort();
    let mut table = String::from("&[\n");
    for file in files {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = file.strip_prefix(&round).map_err(io::Error::other)?;
        // Strings of Rust: Debug escapes what has to be.
        table += &format!("    ({:?}, include_str!({:?})),\n", name.display().to_string(), file);
    }
    table += "]\n";
    fs::write(Path::new(&variable("OUT_DIR")?).join("round.rs"), table)
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
