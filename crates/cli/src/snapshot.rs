//! What lies below the path that is run, told apart without reading it: two of these show whether anything has changed between them.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most files and directories that are looked at; as many as a configuration may have.
const MAX_ENTRIES: usize = 100_000;
/// Directories may be nested this deep.
const MAX_DEPTH: usize = 64;

/// Endings of files that no configuration is made of: copies that editors and programs of transfer make while they write, and logs.
const PASSING: [&str; 13] = [
    "back",
    "bak",
    "crdownload",
    "lock",
    "log",
    "orig",
    "out",
    "part",
    "partial",
    "pid",
    "swp",
    "temp",
    "tmp",
];

/// Endings of databases in files, and what databases append to the names of files of their own: these change with every write.
const DATABASES: [&str; 4] = ["db", "db3", "sqlite", "sqlite3"];
const BESIDE_DATABASES: [&str; 3] = ["-journal", "-shm", "-wal"];

/// Directories that tools of developers fill.
const BUILT: [&str; 2] = ["node_modules", "target"];

/// What of the home of a server belongs to its configuration.
const HOME: [&str; 7] = [
    ".env",
    "busbar.toml",
    "conf",
    "registry",
    "repository/conf",
    "repository/deployment",
    "repository/resources",
];

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    stamps: BTreeMap<PathBuf, Stamp>,
    directories: Vec<PathBuf>,
}

/// What tells a file from the one that was there before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stamp {
    /// Time of the content and of the entry (seconds, nanoseconds), length, device, number.
    File((i64, i64), (i64, i64), u64, u64, u64),
    /// It cannot be looked at.
    Unknown(ErrorKind),
}

impl Snapshot {
    /// Looks at a configuration: a file with what belongs beside it, or all of a directory. `settings`: a file that is named otherwise.
    pub fn of(path: &Path, settings: Option<&Path>) -> Snapshot {
        let mut looked = Looking::default();
        let parent = match path.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => path,
        };
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() => {
                // A link that is replaced shows in the directory that it is in.
                if path.is_symlink() {
                    looked.snapshot.directories.push(parent.to_owned());
                }
                let is_home = ["repository/deployment/server", "repository/conf/synapse-config"];
                match is_home.iter().any(|inside| path.join(inside).is_dir()) {
                    true => HOME.iter().for_each(|inside| looked.perhaps(&path.join(inside))),
                    false => looked.directory(path, &metadata),
                }
            }
            _ => {
                looked.snapshot.directories.push(parent.to_owned());
                looked.file(path);
                looked.perhaps(&parent.join("registry"));
            }
        }
        looked.perhaps(&parent.join("busbar.toml"));
        settings.into_iter().for_each(|file| looked.file(file));
        looked.snapshot
    }

    /// Looks at the registry too, where it lies elsewhere.
    pub fn with_registry(self, root: Option<&Path>) -> Snapshot {
        let Some(root) = root.filter(|root| !self.directories.iter().any(|directory| directory == root))
        else {
            return self;
        };
        let mut looked = Looking { snapshot: self, ..Looking::default() };
        looked.perhaps(root);
        looked.snapshot
    }

    /// Whether a file has come, gone or changed since; changes that `is_ours` accepts do not count.
    pub fn differs(&self, before: &Snapshot, is_ours: impl Fn(&Path) -> bool) -> bool {
        let is_theirs = |(path, _): &(&PathBuf, _)| !is_ours(path);
        self.stamps != before.stamps
            && !self.stamps.iter().filter(is_theirs).eq(before.stamps.iter().filter(is_theirs))
    }

    /// The directories that tell of changes.
    pub fn directories(&self) -> &[PathBuf] {
        &self.directories
    }
}

#[derive(Default)]
struct Looking {
    snapshot: Snapshot,
    entries: usize,
    /// The directories that are being listed, one in the other: device and number.
    within: Vec<(u64, u64)>,
}

impl Looking {
    fn directory(&mut self, path: &Path, metadata: &Metadata) {
        let inode = (metadata.dev(), metadata.ino());
        // A link may lead back.
        if self.within.len() >= MAX_DEPTH || self.within.contains(&inode) {
            return;
        }
        self.snapshot.directories.push(path.to_owned());
        let entries = match std::fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) => {
                self.snapshot.stamps.insert(path.to_owned(), Stamp::Unknown(error.kind()));
                return;
            }
        };
        self.within.push(inode);
        for entry in entries.flatten() {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                break;
            }
            if is_looked_at(&entry.file_name().to_string_lossy()) {
                self.entry(&entry.path());
            }
        }
        self.within.pop();
    }

    /// The target of a link counts, not the link.
    fn entry(&mut self, path: &Path) {
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() => self.directory(path, &metadata),
            found => self.stamp(path, found),
        }
    }

    /// A file or directory that may be absent.
    fn perhaps(&mut self, path: &Path) {
        if path.symlink_metadata().is_ok() {
            self.entry(path);
        }
    }

    fn file(&mut self, path: &Path) {
        self.stamp(path, path.metadata());
    }

    fn stamp(&mut self, path: &Path, found: std::io::Result<Metadata>) {
        let stamp = match found {
            Ok(metadata) => Stamp::File(
                (metadata.mtime(), metadata.mtime_nsec()),
                (metadata.ctime(), metadata.ctime_nsec()),
                metadata.len(),
                metadata.dev(),
                metadata.ino(),
            ),
            Err(error) => Stamp::Unknown(error.kind()),
        };
        self.snapshot.stamps.insert(path.to_owned(), stamp);
    }
}

/// Whether a file or directory of this name may be part of a configuration.
fn is_looked_at(name: &str) -> bool {
    let passes = |ending: &str| {
        let ending = ending.to_ascii_lowercase();
        let database =
            BESIDE_DATABASES.iter().find_map(|beside| ending.strip_suffix(beside)).unwrap_or(&ending);
        PASSING.contains(&&*ending) || DATABASES.contains(&database)
    };
    name == ".env"
        || !(name.starts_with(['.', '#'])
            || name.ends_with('~')
            || BUILT.contains(&name)
            || name.rsplit_once('.').is_some_and(|(_, ending)| passes(ending)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("busbar-snapshot-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("api")).unwrap();
        path
    }

    #[test]
    fn what_a_configuration_is_made_of_counts_and_nothing_else() {
        let root = scratch("counts");
        fs::write(root.join("api/A.xml"), "1").unwrap();
        let mut before = Snapshot::of(&root, None);
        let changes = |before: &mut Snapshot| {
            let after = Snapshot::of(&root, None);
            let differs = after.differs(before, |_| false);
            *before = after;
            differs
        };
        assert!(!changes(&mut before));
        let steps: [(&str, bool); 17] = [
            ("api/B.xml", true),
            ("api/deep/er/C.xml", true),
            ("registry/x.xslt", true),
            (".env", true),
            ("busbar.toml", true),
            ("api/.A.xml.swp", false),
            ("api/A.xml~", false),
            ("api/#A.xml#", false),
            ("api/A.xml.back", false),
            ("api/D.xml.part", false),
            ("orders.db", false),
            ("orders.DB-journal", false),
            ("data/orders.sqlite", false),
            ("data/orders.sqlite3-wal", false),
            ("orders-wal", true),
            ("target/a/b.xml", false),
            (".git/index", false),
        ];
        for (name, expected) in steps {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), "1").unwrap();
            assert_eq!(changes(&mut before), expected, "{name}");
            // Another file of the same length, with the same time.
            fs::write(root.join("new"), "2").unwrap();
            changes(&mut before);
            fs::rename(root.join("new"), root.join(name)).unwrap();
            assert!(changes(&mut before), "{name}");
            fs::write(root.join("new"), "2").unwrap();
            changes(&mut before);
            fs::remove_file(root.join("new")).unwrap();
            changes(&mut before);
        }
        fs::remove_file(root.join("api/A.xml")).unwrap();
        assert!(changes(&mut before));
        fs::remove_dir_all(&root).unwrap();
        assert!(changes(&mut before), "it is gone");
        assert!(!changes(&mut before));
    }

    /// A directory of links into `..data`, which is swapped as a whole.
    #[test]
    fn what_links_lead_to_counts() {
        let root = scratch("links");
        for version in ["..1", "..2"] {
            fs::create_dir_all(root.join(version)).unwrap();
            fs::write(root.join(version).join("P.xml"), "same").unwrap();
        }
        symlink("..1", root.join("..data")).unwrap();
        symlink("..data/P.xml", root.join("P.xml")).unwrap();
        // Links that lead nowhere, and back.
        symlink("nowhere", root.join("N.xml")).unwrap();
        symlink("..", root.join("api/back")).unwrap();
        let before = Snapshot::of(&root, None);
        symlink("..2", root.join("..data_tmp")).unwrap();
        fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
        let after = Snapshot::of(&root, None);
        assert!(after.differs(&before, |_| false));
        assert!(!after.differs(&before, |path| path.ends_with("P.xml")));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_file_is_told_of_by_its_directory() {
        let root = scratch("file");
        fs::write(root.join("c.xml"), "1").unwrap();
        let before = Snapshot::of(&root.join("c.xml"), None);
        assert_eq!(before.directories(), std::slice::from_ref(&root));
        fs::write(root.join("other.xml"), "1").unwrap();
        assert!(!Snapshot::of(&root.join("c.xml"), None).differs(&before, |_| false));
        let registry = || Snapshot::of(&root.join("c.xml"), None).with_registry(Some(&root.join("api")));
        let told = registry();
        assert_eq!(told.directories(), [root.clone(), root.join("api")]);
        fs::write(root.join("api/s.xml"), "1").unwrap();
        assert!(registry().differs(&told, |_| false));
        fs::write(root.join("busbar.toml"), "").unwrap();
        assert!(Snapshot::of(&root.join("c.xml"), None).differs(&before, |_| false));
        fs::remove_dir_all(&root).unwrap();
    }
}
