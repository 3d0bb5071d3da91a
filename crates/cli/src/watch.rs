//! Watches the path that is run, and says when it has changed and come to rest.
//!
//! Whether something has changed is decided by looking ([`Snapshot`]), at least every `deploy.interval`. That the system tells of changes
//! only makes the next look come at once; where it does not (a disk on the network, too many directories, another system), all is the
//! same but later.

use crate::snapshot::Snapshot;
use std::time::{Duration, Instant};

/// Longest wait for rest, in times of `quiet`: where files never cease to change, the files of one moment are read, and what is faulty among
/// them is held back artifact by artifact.
const RESTLESS: u32 = 20;

/// At most one part in so many of the time is spent on taking changes, and at most so long nothing is taken.
const SHARE: u32 = 10;
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How it is watched.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// How often somebody looks, whatever the system tells.
    pub interval: Duration,
    /// For how long nothing may change before changes are taken.
    pub quiet: Duration,
}

impl Watch {
    /// Watches, on a thread of its own, until the process ends or `take` says that it is over. `look` takes a snapshot, `differs` says whether
    /// it differs from the one that was taken last, `take` reads the configuration.
    ///
    /// # Errors
    /// There is no thread.
    pub fn start(
        self,
        look: impl Fn() -> Snapshot + Send + 'static,
        differs: impl Fn(&Snapshot) -> bool + Send + 'static,
        take: impl Fn() -> bool + Send + 'static,
    ) -> std::io::Result<()> {
        let run = move || self.run(&look, &differs, &take);
        std::thread::Builder::new().name("watch".to_owned()).spawn(run).map(drop)
    }

    fn run(&self, look: Look<'_>, differs: &dyn Fn(&Snapshot) -> bool, take: &dyn Fn() -> bool) {
        let mut teller = Teller::new();
        loop {
            let seen = looked(look, &mut teller);
            if !differs(&seen) {
                // At most one look in that time, whatever goes on beside the configuration.
                std::thread::sleep(self.quiet);
                teller.wait(self.interval);
                continue;
            }
            if !differs(&self.at_rest(seen, look, &mut teller)) {
                continue;
            }
            let began = Instant::now();
            if !take() {
                return;
            }
            std::thread::sleep((began.elapsed() * SHARE).min(LONGEST_PAUSE));
        }
    }

    /// Waits until nothing changes any more.
    fn at_rest(&self, mut seen: Snapshot, look: Look<'_>, teller: &mut Teller) -> Snapshot {
        for _ in 0..RESTLESS {
            std::thread::sleep(self.quiet);
            let next = looked(look, teller);
            let is_at_rest = !next.differs(&seen, |_| false);
            seen = next;
            if is_at_rest {
                break;
            }
        }
        seen
    }
}

/// Says what is there.
type Look<'a> = &'a dyn Fn() -> Snapshot;

fn looked(look: Look<'_>, teller: &mut Teller) -> Snapshot {
    loop {
        teller.forget();
        let seen = look();
        // What happened in new directories before they were watched was not told.
        if !teller.follow(seen.directories()) {
            return seen;
        }
    }
}

#[cfg(target_os = "linux")]
use linux::Teller;

#[cfg(target_os = "linux")]
mod linux {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    use rustix::io::Errno;
    use std::collections::HashSet;
    use std::os::fd::OwnedFd;
    use std::path::PathBuf;
    use std::time::Duration;

    /// Tells that something happens in directories. It tells too often rather than too seldom.
    pub struct Teller {
        /// `None`: the system tells nothing.
        inotify: Option<OwnedFd>,
        watched: HashSet<i32>,
        /// Something could not be watched, and that was logged.
        is_incomplete: bool,
    }

    impl Teller {
        pub fn new() -> Teller {
            let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
            let mut teller = Teller { inotify: None, watched: HashSet::new(), is_incomplete: false };
            match inotify {
                Ok(inotify) => teller.inotify = Some(inotify),
                Err(error) => teller.say(error),
            }
            teller
        }

        fn say(&mut self, error: Errno) {
            if !std::mem::replace(&mut self.is_incomplete, true) {
                tracing::info!(
                    target: "busbar::reload",
                    "the system does not tell of all changes ({}): they are found by looking, every `deploy.interval`",
                    std::io::Error::from(error)
                );
            }
        }

        /// Watches these directories and no others. One that was replaced is watched anew. Returns whether there are some that were
        /// not watched before.
        pub fn follow(&mut self, directories: &[PathBuf]) -> bool {
            let Some(inotify) = &self.inotify else { return false };
            let flags = WatchFlags::ATTRIB
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::DELETE_SELF
                | WatchFlags::MODIFY
                | WatchFlags::MOVE
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR;
            let mut watched = HashSet::new();
            let mut failed = None;
            for directory in directories {
                match inotify::add_watch(inotify, directory, flags) {
                    Ok(watch) => _ = watched.insert(watch),
                    // It is gone meanwhile, which was told.
                    Err(Errno::NOENT | Errno::NOTDIR) => {}
                    Err(error) => failed = Some(error),
                }
            }
            for old in self.watched.difference(&watched) {
                // It may have ended by itself.
                let _ = inotify::remove_watch(inotify, *old);
            }
            let has_new = watched.difference(&self.watched).next().is_some();
            self.watched = watched;
            failed.into_iter().for_each(|error| self.say(error));
            has_new
        }

        /// Drops the changes that were told so far.
        pub fn forget(&mut self) {
            let Some(inotify) = &self.inotify else { return };
            let mut buffer = [0; 4096];
            while matches!(rustix::io::read(inotify, &mut buffer), Ok(1..) | Err(Errno::INTR)) {}
        }

        /// Waits until a change is told, at most for this time.
        pub fn wait(&mut self, most: Duration) {
            let Some(inotify) = &self.inotify else { return std::thread::sleep(most) };
            let until = Timespec::try_from(most).ok();
            match poll(&mut [PollFd::new(inotify, PollFlags::IN)], until.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => std::thread::sleep(most),
            }
        }
    }
}

/// Tells nothing.
#[cfg(not(target_os = "linux"))]
struct Teller;

#[cfg(not(target_os = "linux"))]
impl Teller {
    fn new() -> Teller {
        Teller
    }

    fn follow(&mut self, _directories: &[std::path::PathBuf]) -> bool {
        false
    }

    fn forget(&mut self) {}

    fn wait(&mut self, most: Duration) {
        std::thread::sleep(most);
    }
}
