//! Where log lines go.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where log lines go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// Standard error.
    #[default]
    Stderr,
    /// The end of a file, which is made where it is missing.
    File(PathBuf),
}

impl From<&str> for Output {
    /// `stdout`, `stderr`, else a path.
    fn from(text: &str) -> Output {
        match text {
            "stdout" => Output::Stdout,
            "stderr" => Output::Stderr,
            path => Output::File(path.into()),
        }
    }
}

/// An open [`Output`].
pub(crate) enum Sink {
    Stdout,
    Stderr,
    File(PathBuf, File),
}

impl Sink {
    pub(crate) fn open(output: &Output) -> io::Result<Sink> {
        Ok(match output {
            Output::Stdout => Sink::Stdout,
            Output::Stderr => Sink::Stderr,
            Output::File(path) => Sink::File(path.clone(), append_to(path)?),
        })
    }

    /// Opens the file again by its name, after somebody moved it away. On an error the old one stays.
    pub(crate) fn reopen(&mut self) -> io::Result<()> {
        if let Sink::File(path, file) = self {
            *file = append_to(path)?;
        }
        Ok(())
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Sink::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(bytes)?;
                stdout.flush()
            }
            Sink::Stderr => io::stderr().lock().write_all(bytes),
            Sink::File(_, file) => file.write_all(bytes),
        }
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot open the log file {}: {error}", path.display()))
    })
}
