//! Why the operating system refused something, in words.

use std::io::{Error, ErrorKind};

/// The reason without numbers of errors: `permission denied`, `there is no such file`.
pub fn io_reason(error: &Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        ErrorKind::IsADirectory => "it is a directory".to_owned(),
        ErrorKind::ReadOnlyFilesystem => "its file system is read-only".to_owned(),
        ErrorKind::StorageFull => "the disk is full".to_owned(),
        ErrorKind::InvalidData => "it is not UTF-8".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_no_numbers() {
        for (kind, reason) in [
            (ErrorKind::NotFound, "there is no such file"),
            (ErrorKind::PermissionDenied, "permission denied"),
            (ErrorKind::InvalidData, "it is not UTF-8"),
        ] {
            assert_eq!(io_reason(&Error::from(kind)), reason);
        }
    }
}
