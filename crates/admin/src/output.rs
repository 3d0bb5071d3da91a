//! Where log lines go.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

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

/// An open [`Output`]. The standard streams are written past their locks, which nobody else shall have to wait for
/// while a write blocks.
pub(crate) struct Sink {
    file: File,
    /// What it can be opened by again.
    path: Option<PathBuf>,
}

/// The rest of a write that failed.
#[derive(Debug)]
pub(crate) struct Unwritten {
    /// The first byte that was not written.
    pub(crate) from: usize,
    /// Why.
    pub(crate) error: io::Error,
}

impl Sink {
    pub(crate) fn open(output: &Output) -> io::Result<Sink> {
        let duplicate = |stream: BorrowedFd<'_>| Ok::<_, io::Error>(File::from(stream.try_clone_to_owned()?));
        Ok(match output {
            Output::Stdout => Sink { file: duplicate(io::stdout().as_fd())?, path: None },
            Output::Stderr => Sink { file: duplicate(io::stderr().as_fd())?, path: None },
            Output::File(path) => Sink { file: append_to(path)?, path: Some(path.clone()) },
        })
    }

    /// Opens the file again by its name, after somebody moved it away. On an error the old one stays.
    pub(crate) fn reopen(&mut self) -> io::Result<()> {
        if let Some(path) = &self.path {
            self.file = append_to(path)?;
        }
        Ok(())
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Unwritten> {
        let mut from = 0;
        while from < bytes.len() {
            match self.file.write(&bytes[from..]) {
                Ok(0) => return Err(Unwritten { from, error: io::ErrorKind::WriteZero.into() }),
                Ok(n) => from += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Other processes that share the stream may have made it non-blocking.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(error) => return Err(Unwritten { from, error }),
            }
        }
        Ok(())
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot open the log file {}: {error}", path.display()))
    })
}
