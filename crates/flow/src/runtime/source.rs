//! Directories whose files are messages, as they are once compiled, and how far they have come: `crate::vfs` polls them.

use crate::state::activation::Activation;
use crate::state::lock;
use crate::state::metrics::Counters;
use config::ArtifactKind;
use diagnostics::Span;
use expression::DatePattern;
use files::address::Address;
use files::claim::Locking;
use files::directory::{Order, Version};
use jiff::Timestamp;
use message::regex::Pattern;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A proxy service or an inbound endpoint that takes files.
pub struct Source {
    /// `proxy` or `inboundEndpoint`.
    pub kind: ArtifactKind,
    /// Its name.
    pub name: String,
    /// Where it is written.
    pub span: Span,
    /// Whether it polls.
    pub activation: Arc<Activation>,
    /// A directory, or a file.
    pub address: Address,
    /// How long it waits between two looks.
    pub interval: Duration,
    /// A number for the whole definition.
    pub(crate) definition: u64,
    /// By endings of names, where absent.
    pub(crate) content_type: Option<String>,
    pub(crate) pattern: Option<Pattern>,
    /// Time between two files.
    pub(crate) between: Duration,
    /// Most files of one look.
    pub(crate) most: Option<u64>,
    pub(crate) order: Order,
    pub(crate) processed: Action,
    pub(crate) failed: Action,
    pub(crate) failed_move: Option<PathBuf>,
    pub(crate) moving: Moving,
    pub(crate) locking: Locking,
    /// The body is received before the flow begins.
    pub(crate) build: bool,
    /// Attempts to reach the directory with `reconnect` between them, before it is looked for once in an interval.
    pub(crate) retries: u64,
    pub(crate) reconnect: Duration,
    pub(crate) records: Records,
    pub(crate) largest: Option<u64>,
    pub(crate) stable: Option<Duration>,
    pub(crate) youngest: Option<Duration>,
    pub(crate) oldest: Option<Duration>,
    /// Time before a file is opened.
    pub(crate) wait: Duration,
    /// One file after the other.
    pub(crate) sequential: bool,
    /// Where answers go.
    pub(crate) reply: Option<Reply>,
    pub(crate) state: Arc<State>,
    pub(crate) counters: Arc<Counters>,
}

/// What becomes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Delete,
    Move(PathBuf),
    /// It stays, and comes again with the next look.
    Nothing,
}

/// How files are moved.
#[derive(Clone, Debug)]
pub(crate) struct Moving {
    /// What is put before their names.
    pub(crate) prefix: Option<DatePattern>,
    /// The directory in the target directory that they go to.
    pub(crate) below: Option<DatePattern>,
    /// Directories that are not there are made.
    pub(crate) create: bool,
    /// They count as changed now.
    pub(crate) touch: bool,
}

/// Files that were processed and could be neither moved nor deleted.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    /// Where they are written down.
    pub(crate) file: Option<PathBuf>,
    /// After this time the move is tried again.
    pub(crate) again: Duration,
    pub(crate) format: DatePattern,
}

/// `ReplyFileURI` and `ReplyFileName`.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// As written: an address that can be sent to.
    pub(crate) address: String,
    pub(crate) name: Option<String>,
}

/// How far a source has come; it belongs to its identity.
#[derive(Default)]
pub(crate) struct State(pub(crate) Mutex<Progress>);

#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) status: Status,
    /// Processed, and not moved or deleted yet.
    pub(crate) remembered: HashMap<PathBuf, Remembered>,
    /// What was written down was read.
    pub(crate) is_read: bool,
}

/// A file that was processed, and that is still there.
#[derive(Clone, Debug)]
pub(crate) struct Remembered {
    pub(crate) version: (u64, u128),
    pub(crate) action: Action,
    pub(crate) again: Instant,
}

impl Remembered {
    /// Whether it is still that file.
    pub(crate) fn is(&self, version: &Version) -> bool {
        self.version == (version.length, version.modified)
    }
}

/// What is to be seen of a source.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// When it looked last.
    pub polled: Option<Timestamp>,
    /// Files whose flows go on.
    pub running: u64,
    /// Files whose flows succeeded.
    pub processed: u64,
    /// Files whose flows failed.
    pub failed: u64,
    /// Files whose flows a stop has broken off: they stay, and come again.
    pub released: u64,
    /// Files that were processed and could be neither moved nor deleted.
    pub remembered: u64,
    /// Files that the last look passed over.
    pub skipped: Skipped,
    /// Why the directory cannot be looked at.
    pub trouble: Option<String>,
}

/// Files that were passed over, by the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Another operation or program has them locked.
    pub locked: u64,
    /// They have nothing in them.
    pub empty: u64,
    /// `FileSizeLimit`.
    pub too_large: u64,
    /// `MinimumAge`, `MaximumAge`.
    pub age: u64,
    /// They grow (`CheckSizeInterval`).
    pub growing: u64,
    /// Links, pipes, devices.
    pub special: u64,
    /// They cannot be opened or locked.
    pub unreadable: u64,
    /// The first of these, and why.
    pub first: Option<String>,
}

impl Source {
    /// How it stands.
    pub fn status(&self) -> Status {
        let progress = lock(&self.state.0);
        Status { remembered: progress.remembered.len() as u64, ..progress.status.clone() }
    }

    /// As log lines name it.
    pub(crate) fn label(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }
}
