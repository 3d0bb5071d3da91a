//! The resources of a registry: files that are cached for as long as the registry says, read again when they change,
//! and written.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Most bytes and most resources in the cache. Beyond, all are read again.
const MAX_BYTES: usize = 64 << 20;
const MAX_COUNT: usize = 1_000;

/// How long the number of files is trusted after a write was refused for it.
const RECOUNT: Duration = Duration::from_secs(1);

/// Bounds on what flows write into a registry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegistryLimits {
    /// Largest file that is written, in bytes. Default 16 MiB.
    pub size: usize,
    /// Most files and directories in the registry: beyond, no new ones are made. Default 10,000.
    pub files: usize,
}

impl Default for RegistryLimits {
    fn default() -> RegistryLimits {
        RegistryLimits { size: 16 << 20, files: 10_000 }
    }
}

/// The content of a key.
#[derive(Debug)]
pub struct ResourceContent {
    /// The content.
    pub bytes: Arc<[u8]>,
    /// Why the last content is served: its file cannot be read any more. Given once, until it can be read again.
    pub stale: Option<io::Error>,
}

/// The cache of what was read, by key.
#[derive(Default)]
pub(crate) struct Resources {
    cache: Mutex<ResourceCache>,
    /// One writes at a time: properties are read, changed and written again, and files are counted.
    writing: Mutex<Option<Count>>,
    /// What was written, by its path below the root. Shared with the registries of later configurations: messages in
    /// flight may write into this one.
    written: Arc<Mutex<HashSet<String>>>,
}

/// Files and directories below the root, and when they were counted.
struct Count {
    number: usize,
    counted: Instant,
}

#[derive(Default)]
struct ResourceCache {
    resources: HashMap<String, CachedResource>,
    bytes: usize,
}

struct CachedResource {
    bytes: Arc<[u8]>,
    stamp: Stamp,
    /// When its file was checked; `None`: it comes from the configuration before, and was not checked since.
    looked: Option<Instant>,
    /// It is older than its file, and that was reported.
    stale: bool,
}

/// What identifies a version of a file.
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
    /// The bytes of a key; `path` finds its file. `fresh`: how long the file is not checked for a change;
    /// `None`: for ever. The last content is served when the file is there and cannot be read any more.
    pub(crate) fn read(
        &self,
        key: &str,
        fresh: Option<Duration>,
        path: impl FnOnce() -> io::Result<Option<PathBuf>>,
    ) -> io::Result<Option<ResourceContent>> {
        let cached = lock(&self.cache)
            .resources
            .get(key)
            .map(|resource| (Arc::clone(&resource.bytes), resource.stamp, resource.looked));
        if let Some((bytes, _, looked)) = &cached
            && looked.is_some_and(|looked| fresh.is_none_or(|fresh| looked.elapsed() < fresh))
        {
            return Ok(Some(ResourceContent { bytes: Arc::clone(bytes), stale: None }));
        }
        let read = || -> io::Result<Option<(Arc<[u8]>, Stamp)>> {
            let Some(path) = path()?.filter(|path| path.is_file()) else { return Ok(None) };
            let metadata = std::fs::metadata(&path)?;
            let stamp = Stamp { modified: metadata.modified().ok(), length: metadata.len() };
            Ok(Some(match &cached {
                Some((bytes, known_stamp, _)) if *known_stamp == stamp => (Arc::clone(bytes), stamp),
                _ => (Arc::from(std::fs::read(&path)?), stamp),
            }))
        };
        match (read(), &cached) {
            (Ok(Some((bytes, stamp))), _) => {
                let kept = CachedResource {
                    bytes: Arc::clone(&bytes),
                    stamp,
                    looked: Some(Instant::now()),
                    stale: false,
                };
                lock(&self.cache).keep(key, kept);
                Ok(Some(ResourceContent { bytes, stale: None }))
            }
            (Ok(None), _) => {
                self.forget(key);
                Ok(None)
            }
            (Err(error), Some((bytes, ..))) => {
                let mut cache = lock(&self.cache);
                let was_stale = cache
                    .resources
                    .get_mut(key)
                    .is_some_and(|resource| std::mem::replace(&mut resource.stale, true));
                Ok(Some(ResourceContent { bytes: Arc::clone(bytes), stale: (!was_stale).then_some(error) }))
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Caches the content of a key on another server.
    pub(crate) fn note(&self, key: &str, bytes: &Arc<[u8]>) {
        let stamp = Stamp { modified: None, length: bytes.len() as u64 };
        let kept =
            CachedResource { bytes: Arc::clone(bytes), stamp, looked: Some(Instant::now()), stale: false };
        lock(&self.cache).keep(key, kept);
    }

    /// Whether a flow wrote the file `relative`.
    pub(crate) fn is_written(&self, relative: &str) -> bool {
        lock(&self.written).contains(relative)
    }

    /// What was read so far, by key.
    pub(crate) fn read_so_far(&self) -> HashMap<String, Arc<[u8]>> {
        let cache = lock(&self.cache);
        let read = cache.resources.iter().filter(|(_, resource)| resource.looked.is_some());
        read.map(|(key, resource)| (key.clone(), Arc::clone(&resource.bytes))).collect()
    }

    /// Resources of the same root, after a reload: what flows wrote keeps counting as that, and each file is checked once more. If it
    /// has become unreadable, its last content stays in use.
    pub(crate) fn after(before: &Resources) -> Resources {
        let mut cache = ResourceCache::default();
        for (key, resource) in &lock(&before.cache).resources {
            let kept = CachedResource {
                bytes: Arc::clone(&resource.bytes),
                stamp: resource.stamp,
                looked: None,
                stale: resource.stale,
            };
            cache.keep(key, kept);
        }
        Resources { cache: Mutex::new(cache), written: Arc::clone(&before.written), ..Resources::default() }
    }

    fn forget(&self, key: &str) {
        let mut cache = lock(&self.cache);
        if let Some(old) = cache.resources.remove(key) {
            cache.bytes -= old.bytes.len();
        }
    }

    /// Writes a file below `root`, as a whole or not at all.
    pub(crate) fn write(
        &self,
        root: &Path,
        relative: &str,
        content: &[u8],
        limits: &RegistryLimits,
    ) -> io::Result<()> {
        self.write_alone(root, relative, content, limits, &mut lock(&self.writing))
    }

    /// Sets a property in the properties file `relative`. `others`: what it starts with, where no flow has written the file before.
    pub(crate) fn write_property(
        &self,
        root: &Path,
        relative: &str,
        (name, value): (&str, &str),
        others: impl FnOnce() -> io::Result<Option<Arc<[u8]>>>,
        limits: &RegistryLimits,
    ) -> io::Result<()> {
        let mut count = lock(&self.writing);
        let others = if self.is_written(relative) { None } else { others()? };
        let bytes = match (others, std::fs::read(root.join(relative))) {
            (Some(bytes), _) => bytes.to_vec(),
            (None, Ok(bytes)) => bytes,
            (None, Err(error)) if error.kind() == ErrorKind::NotFound => Vec::new(),
            (None, Err(error)) => return Err(error),
        };
        let mut properties = crate::properties(&String::from_utf8_lossy(&bytes));
        properties.insert(name.to_owned(), value.to_owned());
        let content = crate::properties::written(&properties);
        self.write_alone(root, relative, content.as_bytes(), limits, &mut count)
    }

    fn write_alone(
        &self,
        root: &Path,
        relative: &str,
        content: &[u8],
        limits: &RegistryLimits,
        count: &mut Option<Count>,
    ) -> io::Result<()> {
        if content.len() > limits.size {
            return Err(refused(&format!(
                "it would have {} bytes, more than `limits.registry_size` allows ({})",
                content.len(),
                limits.size
            )));
        }
        let path = writable(root, relative)?;
        let new = path.ancestors().take_while(|p| !p.exists()).count();
        let number = if new > 0 { room(root, new, limits, count)? } else { 0 };
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let beside = path.with_file_name(format!(".{}.{next}.new", std::process::id()));
        let written = std::fs::write(&beside, content).and_then(|()| std::fs::rename(&beside, &path));
        match (&written, count) {
            (Ok(()), Some(count)) if new > 0 => count.number = number + new,
            (Ok(()), _) => {}
            (Err(_), _) => drop(std::fs::remove_file(&beside)),
        }
        if written.is_ok() {
            lock(&self.written).insert(relative.trim_start_matches('/').to_owned());
        }
        // The same file may be cached under other keys too.
        *lock(&self.cache) = ResourceCache::default();
        written
    }
}

/// Whether the limit on files and directories has room for `new` ones.
fn room(root: &Path, new: usize, limits: &RegistryLimits, count: &mut Option<Count>) -> io::Result<usize> {
    let fits = |count: &Count| count.number.saturating_add(new) <= limits.files;
    // Others may have removed files since the count.
    if !count.as_ref().is_some_and(|count| fits(count) || count.counted.elapsed() < RECOUNT) {
        let mut number = 0;
        entries(root, limits.files, &mut number)?;
        *count = Some(Count { number, counted: Instant::now() });
    }
    match count {
        Some(count) if fits(count) => Ok(count.number),
        _ => Err(refused(&format!(
            "it is new, and there are as many files and directories in the registry as `limits.registry_files` allows ({})",
            limits.files
        ))),
    }
}

/// Adds what is below a directory to `number`, until it is `most`.
fn entries(directory: &Path, most: usize, number: &mut usize) -> io::Result<()> {
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory)? {
            if *number >= most {
                return Ok(());
            }
            *number += 1;
            let entry = entry?;
            // A link is not followed: its target may be anything.
            if entry.file_type()?.is_dir() {
                directories.push(entry.path());
            }
        }
    }
    Ok(())
}

fn refused(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why.to_owned())
}

impl ResourceCache {
    fn keep(&mut self, key: &str, resource: CachedResource) {
        if resource.bytes.len() > MAX_BYTES {
            return;
        }
        if self.resources.len() >= MAX_COUNT || self.bytes + resource.bytes.len() > MAX_BYTES {
            *self = ResourceCache::default();
        }
        self.bytes += resource.bytes.len();
        if let Some(old) = self.resources.insert(key.to_owned(), resource) {
            self.bytes -= old.bytes.len();
        }
    }
}

/// The path of a file that may be written; never outside of `root`, also not through a link.
fn writable(root: &Path, relative: &str) -> io::Result<PathBuf> {
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
    // What exists must be inside before anything is created in it.
    let there = path.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
    if !there.is_some_and(|there| there.starts_with(&real_root)) {
        return Err(refused("it leads out of the registry"));
    }
    if path.is_dir() {
        return Err(refused("it is a collection"));
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
            let found = resources.read(name, fresh, || Ok(Some(self.0.join(name)))).expect("readable");
            found.map(|found| String::from_utf8_lossy(&found.bytes).into_owned())
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_that_becomes_unreadable_stays_in_use_after_a_reload() {
        let path = std::env::temp_dir().join(format!("busbar-resource-{}", std::process::id()));
        std::fs::write(&path, "first").unwrap();
        let resources = Resources::default();
        let read = |r: &Resources, path: &Path| r.read("key", None, || Ok(Some(path.to_owned()))).unwrap();
        assert_eq!(&*read(&resources, &path).unwrap().bytes, b"first");
        // It is checked once more, although it is cached for ever.
        std::fs::write(&path, "the second").unwrap();
        assert_eq!(&*read(&resources, &path).unwrap().bytes, b"first");
        let resources = Resources::after(&resources);
        assert!(resources.read_so_far().is_empty(), "nobody has read anything yet");
        assert_eq!(&*read(&resources, &path).unwrap().bytes, b"the second");
        // A file that nobody can read.
        let resources = Resources::after(&resources);
        let found = read(&resources, Path::new("/proc/self/mem")).unwrap();
        assert!(&*found.bytes == b"the second" && found.stale.is_some());
        let resources = Resources::after(&resources);
        std::fs::remove_file(&path).unwrap();
        assert!(read(&resources, &path).is_none());
    }

    #[test]
    fn a_resource_is_read_again_when_it_is_another_one() {
        let scratch = Scratch::new("again");
        let file = scratch.0.join("a");
        for (fresh, second) in
            [(None, "one"), (Some(Duration::from_secs(600)), "one"), (Some(Duration::ZERO), "three")]
        {
            let resources = Resources::default();
            std::fs::write(&file, "one").expect("writable");
            assert_eq!(scratch.read(&resources, "a", fresh).as_deref(), Some("one"));
            std::fs::write(&file, "three").expect("writable");
            assert_eq!(scratch.read(&resources, "a", fresh).as_deref(), Some(second), "{fresh:?}");
            std::fs::remove_file(&file).expect("removable");
            let gone = scratch.read(&resources, "a", fresh);
            assert_eq!(gone.is_none(), fresh == Some(Duration::ZERO), "{fresh:?}");
        }
        // The bytes stay the same as long as the file does.
        std::fs::write(&file, "one").expect("writable");
        let resources = Resources::default();
        let read = || {
            resources
                .read("a", Some(Duration::ZERO), || Ok(Some(file.clone())))
                .expect("readable")
                .expect("there")
                .bytes
        };
        assert!(Arc::ptr_eq(&read(), &read()));
        assert_eq!(scratch.read(&resources, "none", None), None);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut cache = ResourceCache::default();
        let resource = |size: usize| CachedResource {
            bytes: vec![0; size].into(),
            stamp: Stamp { modified: None, length: 0 },
            looked: Some(Instant::now()),
            stale: false,
        };
        (0..3 * MAX_COUNT).for_each(|n| cache.keep(&n.to_string(), resource(1)));
        assert!(cache.resources.len() <= MAX_COUNT && cache.bytes == cache.resources.len());
        (0..5).for_each(|_| cache.keep("a", resource(MAX_BYTES / 2)));
        assert!(cache.bytes <= MAX_BYTES);
        cache.keep("b", resource(MAX_BYTES + 1));
        assert!(!cache.resources.contains_key("b"));
    }

    #[test]
    fn resources_and_properties_are_written_inside_only() {
        let scratch = Scratch::new("write");
        let root = scratch.0.join("root");
        let resources = Resources::default();
        let limits = &RegistryLimits::default();
        let read = |name: &str| std::fs::read_to_string(root.join(name)).ok();
        resources.write(&root, "config/a/b.txt", b"one", limits).expect("writable");
        resources.write(&root, "config/a/b.txt", b"two", limits).expect("writable");
        assert_eq!(read("config/a/b.txt").as_deref(), Some("two"));
        for (name, value) in [("p", "1"), ("a b=", "x\ny: é"), ("p", "2")] {
            let file = "config/a/b.txt.properties";
            resources.write_property(&root, file, (name, value), || Ok(None), limits).expect("writable");
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
            let error = resources.write(&root, relative, b"x", limits).expect_err(relative);
            assert!(error.to_string().contains(why), "{relative}: {error}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&scratch.0, root.join("link")).expect("a link");
            let error = resources.write(&root, "link/out", b"x", limits).expect_err("outside");
            assert!(error.to_string().contains("out of the registry"), "{error}");
        }
        // No temporary file is left.
        let names = std::fs::read_dir(root.join("config/a")).expect("a directory");
        assert!(names.flatten().all(|entry| !entry.file_name().to_string_lossy().starts_with('.')));
    }

    #[test]
    fn what_is_written_is_bounded() {
        let scratch = Scratch::new("bounds");
        let root = scratch.0.join("root");
        std::fs::create_dir_all(root.join("there")).expect("a directory");
        let resources = Resources::default();
        let limits = &RegistryLimits { size: 8, files: 4 };
        let write = |relative: &str, content: &[u8]| {
            resources.write(&root, relative, content, limits).map_err(|error| error.to_string())
        };
        assert_eq!(write("a", b"12345678"), Ok(()));
        assert!(write("a", b"123456789").is_err_and(|why| why.contains("`limits.registry_size` allows (8)")));
        // A directory counts as well: `there`, `a`, `d`, `d/b`.
        assert_eq!(write("d/b", b"1"), Ok(()));
        let full = |why: String| why.contains("`limits.registry_files` allows (4)");
        assert!(write("c", b"1").is_err_and(full));
        assert!(write("e/f/g", b"1").is_err_and(full));
        assert!(!root.join("e").exists(), "nothing is made for what is refused");
        let property = |name: &str| {
            let written = resources.write_property(&root, "a.properties", (name, "1"), || Ok(None), limits);
            written.map_err(|error| error.to_string())
        };
        assert!(property("p").is_err_and(full));
        // Existing files may be changed, and removed ones make room as soon as files are counted again.
        assert_eq!(write("a", b"2"), Ok(()));
        std::fs::remove_file(root.join("a")).expect("removable");
        if let Some(count) = &mut *lock(&resources.writing) {
            count.number = 3;
        }
        assert_eq!(property("p"), Ok(()));
        assert!(property("long-name").is_err_and(|why| why.contains("registry_size")));
        // A second registry on the same root counts the same files: there is no room.
        let resources = Resources::default();
        assert!(resources.write(&root, "c", b"1", limits).is_err_and(|error| full(error.to_string())));
    }

    #[test]
    #[cfg(unix)]
    fn a_file_that_cannot_be_read_any_more_is_what_it_was() {
        let scratch = Scratch::new("stale");
        let file = scratch.0.join("a");
        let resources = Resources::default();
        let read = || {
            let path = || match file.canonicalize() {
                Ok(path) => Ok(Some(path)),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            };
            let found = resources.read("a", Some(Duration::ZERO), path).expect("known");
            found.map(|found| (String::from_utf8_lossy(&found.bytes).into_owned(), found.stale.is_some()))
        };
        let one = |stale: bool| Some(("one".to_owned(), stale));
        std::fs::write(&file, "one").expect("writable");
        assert_eq!(read(), one(false));
        for _ in 0..2 {
            std::fs::remove_file(&file).expect("removable");
            std::os::unix::fs::symlink(&file, &file).expect("a link to itself");
            // Reported once.
            assert_eq!((read(), read(), read()), (one(true), one(false), one(false)));
            std::fs::remove_file(&file).expect("removable");
            std::fs::write(&file, "one").expect("writable");
            assert_eq!(read(), one(false));
        }
        std::fs::remove_file(&file).expect("removable");
        assert_eq!(read(), None);
    }
}
