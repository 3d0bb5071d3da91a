//! The resources of a registry: files that are kept for as long as the registry says, read again when they are others,
//! and written.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Most bytes of all resources that are kept, and most resources. Beyond, all are read anew.
const MAX_BYTES: usize = 64 << 20;
const MAX_COUNT: usize = 1_000;

/// What was read, by key.
#[derive(Default)]
pub(crate) struct Resources {
    known: Mutex<Known>,
    /// Properties are read, changed and written again by one at a time.
    writing: Mutex<()>,
}

#[derive(Default)]
struct Known {
    resources: HashMap<String, Resource>,
    bytes: usize,
}

struct Resource {
    bytes: Arc<[u8]>,
    stamp: Stamp,
    looked: Instant,
}

/// What tells a file from the one that it was.
#[derive(Clone, Copy, PartialEq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
}

impl fmt::Debug for Resources {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Resources")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Resources {
    /// The bytes of a key, whose file `path` finds. `fresh`: for how long nobody looks whether the file is another one;
    /// `None`: for ever. A file that is there but cannot be read any more is what it was.
    pub(crate) fn read(
        &self,
        key: &str,
        fresh: Option<Duration>,
        path: impl FnOnce() -> Option<PathBuf>,
    ) -> io::Result<Option<Arc<[u8]>>> {
        let known =
            lock(&self.known).resources.get(key).map(|own| (Arc::clone(&own.bytes), own.stamp, own.looked));
        if let Some((bytes, _, looked)) = &known
            && fresh.is_none_or(|fresh| looked.elapsed() < fresh)
        {
            return Ok(Some(Arc::clone(bytes)));
        }
        let Some(path) = path().filter(|path| path.is_file()) else {
            self.forget(key);
            return Ok(None);
        };
        let read = || -> io::Result<(Arc<[u8]>, Stamp)> {
            let metadata = std::fs::metadata(&path)?;
            let stamp = Stamp { modified: metadata.modified().ok(), length: metadata.len() };
            match &known {
                Some((bytes, own, _)) if *own == stamp => Ok((Arc::clone(bytes), stamp)),
                _ => Ok((Arc::from(std::fs::read(&path)?), stamp)),
            }
        };
        let (bytes, stamp) = match (read(), known) {
            (Ok(read), _) => read,
            (Err(_), Some((bytes, ..))) => return Ok(Some(bytes)),
            (Err(error), None) => return Err(error),
        };
        lock(&self.known).keep(key, Resource { bytes: Arc::clone(&bytes), stamp, looked: Instant::now() });
        Ok(Some(bytes))
    }

    fn forget(&self, key: &str) {
        let mut known = lock(&self.known);
        if let Some(old) = known.resources.remove(key) {
            known.bytes -= old.bytes.len();
        }
    }

    /// Writes a file below `root`, as a whole or not at all.
    pub(crate) fn write(&self, root: &Path, relative: &str, content: &[u8]) -> io::Result<()> {
        let path = writable(root, relative)?;
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let beside = path.with_file_name(format!(".{}.{number}.new", std::process::id()));
        let written = std::fs::write(&beside, content).and_then(|()| std::fs::rename(&beside, &path));
        if written.is_err() {
            let _ = std::fs::remove_file(&beside);
        }
        // The same file may be known by other keys as well.
        *lock(&self.known) = Known::default();
        written
    }

    /// Sets a property in the properties file `relative`.
    pub(crate) fn write_property(
        &self,
        root: &Path,
        relative: &str,
        name: &str,
        value: &str,
    ) -> io::Result<()> {
        let _alone = lock(&self.writing);
        let text = match std::fs::read(root.join(relative)) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let mut properties = crate::properties(&text);
        properties.insert(name.to_owned(), value.to_owned());
        self.write(root, relative, crate::properties::written(&properties).as_bytes())
    }
}

impl Known {
    fn keep(&mut self, key: &str, resource: Resource) {
        if resource.bytes.len() > MAX_BYTES {
            return;
        }
        if self.resources.len() >= MAX_COUNT || self.bytes + resource.bytes.len() > MAX_BYTES {
            *self = Known::default();
        }
        self.bytes += resource.bytes.len();
        if let Some(old) = self.resources.insert(key.to_owned(), resource) {
            self.bytes -= old.bytes.len();
        }
    }
}

/// The path of a file that may be written, its directories made; never outside of `root`, also not through a link.
fn writable(root: &Path, relative: &str) -> io::Result<PathBuf> {
    let refused = |why: &str| io::Error::new(ErrorKind::InvalidInput, why.to_owned());
    let relative = Path::new(relative.trim_start_matches('/'));
    if relative.components().any(|part| !matches!(part, Component::Normal(_))) {
        return Err(refused("it leads out of the registry"));
    }
    if relative.file_name().is_none() {
        return Err(refused("it names no resource"));
    }
    std::fs::create_dir_all(root)?;
    let real_root = root.canonicalize()?;
    let path = root.join(relative);
    // What is there already must be inside before anything is made in it.
    let there = path.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
    if !there.is_some_and(|there| there.starts_with(&real_root)) {
        return Err(refused("it leads out of the registry"));
    }
    if path.is_dir() {
        return Err(refused("it is a collection"));
    }
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that ends with the test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let path = std::env::temp_dir().join(format!("busbar-resources-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(&path).expect("a directory for the test");
            Scratch(path)
        }

        fn read(&self, resources: &Resources, name: &str, fresh: Option<Duration>) -> Option<String> {
            let bytes = resources.read(name, fresh, || Some(self.0.join(name))).expect("readable");
            bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_resource_is_read_again_when_it_is_another_one() {
        let scratch = Scratch::new("again");
        let file = scratch.0.join("a");
        for (fresh, later) in
            [(None, "one"), (Some(Duration::from_secs(600)), "one"), (Some(Duration::ZERO), "three")]
        {
            let resources = Resources::default();
            std::fs::write(&file, "one").expect("writable");
            assert_eq!(scratch.read(&resources, "a", fresh).as_deref(), Some("one"));
            std::fs::write(&file, "three").expect("writable");
            assert_eq!(scratch.read(&resources, "a", fresh).as_deref(), Some(later), "{fresh:?}");
            std::fs::remove_file(&file).expect("removable");
            let gone = scratch.read(&resources, "a", fresh);
            assert_eq!(gone.is_none(), fresh == Some(Duration::ZERO), "{fresh:?}");
        }
        // The same bytes as long as it is the same file.
        std::fs::write(&file, "one").expect("writable");
        let resources = Resources::default();
        let read = || {
            resources
                .read("a", Some(Duration::ZERO), || Some(file.clone()))
                .expect("readable")
                .expect("there")
        };
        assert!(Arc::ptr_eq(&read(), &read()));
        assert_eq!(scratch.read(&resources, "none", None), None);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut known = Known::default();
        let resource = |size: usize| Resource {
            bytes: vec![0; size].into(),
            stamp: Stamp { modified: None, length: 0 },
            looked: Instant::now(),
        };
        (0..3 * MAX_COUNT).for_each(|n| known.keep(&n.to_string(), resource(1)));
        assert!(known.resources.len() <= MAX_COUNT && known.bytes == known.resources.len());
        (0..5).for_each(|_| known.keep("a", resource(MAX_BYTES / 2)));
        assert!(known.bytes <= MAX_BYTES);
        known.keep("b", resource(MAX_BYTES + 1));
        assert!(!known.resources.contains_key("b"));
    }

    #[test]
    fn resources_and_properties_are_written_inside_only() {
        let scratch = Scratch::new("write");
        let root = scratch.0.join("root");
        let resources = Resources::default();
        let read = |name: &str| std::fs::read_to_string(root.join(name)).ok();
        resources.write(&root, "config/a/b.txt", b"one").expect("writable");
        resources.write(&root, "config/a/b.txt", b"two").expect("writable");
        assert_eq!(read("config/a/b.txt").as_deref(), Some("two"));
        for (name, value) in [("p", "1"), ("a b=", "x\ny: é"), ("p", "2")] {
            resources.write_property(&root, "config/a/b.txt.properties", name, value).expect("writable");
        }
        let properties = crate::properties(&read("config/a/b.txt.properties").expect("written"));
        assert_eq!(properties.len(), 2);
        assert_eq!((properties["p"].as_str(), properties["a b="].as_str()), ("2", "x\ny: é"));
        for (relative, why) in [
            ("../out", "out of the registry"),
            ("a/../../out", "out of the registry"),
            ("", "no resource"),
            ("config/a", "a collection"),
        ] {
            let error = resources.write(&root, relative, b"x").expect_err(relative);
            assert!(error.to_string().contains(why), "{relative}: {error}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&scratch.0, root.join("link")).expect("a link");
            let error = resources.write(&root, "link/out", b"x").expect_err("outside");
            assert!(error.to_string().contains("out of the registry"), "{error}");
        }
        // Nothing is left over.
        let names = std::fs::read_dir(root.join("config/a")).expect("a directory");
        assert!(names.flatten().all(|entry| !entry.file_name().to_string_lossy().starts_with('.')));
    }
}
