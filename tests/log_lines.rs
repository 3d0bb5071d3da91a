//! No log line gives a field the name `message`: the text of the line is in the field of this name, and one hides the other.

use std::path::{Path, PathBuf};

#[test]
fn no_field_hides_the_text_of_a_log_line() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates"), &mut files);
    assert!(files.len() > 50, "only {} files were found", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source can be read");
        for (nth, line) in text.lines().enumerate() {
            if line.contains("message = %") || line.contains("message = ?") {
                wrong.push(format!("{}:{}: {}", file.display(), nth + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "these fields need another name, as `message_id`:\n{}", wrong.join("\n"));
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder can be read").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
