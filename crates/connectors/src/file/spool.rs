//! The body of a message, written while it is received: into an unnamed file in the target directory, which gets its name when it is complete,
//! or is appended to the file. So a slow client occupies no thread and no file, and one that disconnects leaves nothing.

use super::write::{Mode, described};
use super::{Connection, Failure, Files, Reason};
use crate::parameter::Parameters;
use bytes::Bytes;
use files::partial::{Existing, Partial};
use files::places;
use files::stream::FileBody;
use flow::{Context, Fault, NotDone, lock, no_thread};
use message::{Body, MediaType, PayloadError};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How many bytes are written at a time.
const CHUNK: usize = 128 << 10;
/// How long a message waits for its turn; then it is shed with 503.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// A body that was written.
#[derive(Clone)]
pub(super) struct Spooled(Arc<Written>);

struct Written {
    partial: Mutex<Option<Partial>>,
    /// The file to read again; `None`: the target is a device.
    file: Option<File>,
    length: u64,
}

impl Spooled {
    pub(super) fn length(&self) -> u64 {
        self.0.length
    }

    /// Takes the file, to give it its name.
    ///
    /// # Errors
    /// An earlier attempt has taken it.
    pub(super) fn take(&self) -> Result<Partial, Failure> {
        let gone =
            || Failure::new(Reason::Operation, "a body that is written as it comes is not written again");
        lock(&self.0.partial).take().ok_or_else(gone)
    }

    /// A reader of the content, from its beginning.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn reader(&self) -> Result<File, Failure> {
        match lock(&self.0.partial).as_ref() {
            Some(partial) => Ok(partial.reader()?),
            None => Err(Failure::new(Reason::Operation, "the body is no longer there")),
        }
    }

    /// Gives the body back to the message.
    pub(super) fn put_back(self, context: &mut Context) {
        if let Some(file) = self.0.file.as_ref().and_then(|file| file.try_clone().ok()) {
            context.payload.put_back(Body::Stream(Box::new(FileBody::new(file, self.0.length))));
        }
    }
}

/// Writes the body, if it is still being received and is written unchanged; `None`: it was received already.
pub(super) async fn spool(
    parameters: &Parameters,
    connection: &Arc<Connection>,
    context: &mut Context,
) -> Result<Option<Spooled>, Failure> {
    if !context.payload.is_unread() || !goes_as_it_came(context) {
        let limits = context.services().limits.clone();
        context.payload.buffer(&limits).await.map_err(Fault::from)?;
        return Ok(None);
    }
    let writing = described(parameters, context)?;
    let cancel = meter::Cancel::default();
    let files =
        Files { connection: Arc::clone(connection), cancel, held: 0, time: Duration::ZERO, lock: false };
    let begin = move || -> Result<(PathBuf, Partial), Failure> {
        let (path, _) = writing.place(&files)?;
        if writing.mode == Mode::Append {
            fs::metadata(&path).map_err(|error| Failure::io(&path, &error))?;
        }
        let existing = if writing.mode == Mode::CreateNew { Existing::Refuse } else { Existing::Replace };
        let parents = writing.parents && writing.mode != Mode::Append;
        let partial = Partial::begin(&path, existing, parents)?;
        Ok((path, partial))
    };
    let (path, mut partial) = in_turn(begin).await??;
    let mut body = context.payload.take_body();
    let mut length = 0;
    loop {
        let mut over = body.is_complete();
        while !over && body.buffered().len() < CHUNK {
            let more = body.more().await;
            over = !more.map_err(|error| Fault::from(PayloadError::Receiving(error)))?;
        }
        let chunk = Bytes::copy_from_slice(body.buffered());
        body.consume(chunk.len());
        length += chunk.len() as u64;
        let over = over || (body.is_complete() && body.buffered().is_empty());
        let at = path.clone();
        let write = move || -> Result<(Partial, Option<File>), Failure> {
            partial.file()?.write_all(&chunk).map_err(|error| Failure::io(&at, &error))?;
            let file = if over { partial.reader().ok() } else { None };
            Ok((partial, file))
        };
        let (next, file) = in_turn(write).await??;
        partial = next;
        if over {
            let file = file.filter(|file| file.metadata().is_ok_and(|m| m.is_file()));
            return Ok(Some(Spooled(Arc::new(Written { partial: Mutex::new(Some(partial)), file, length }))));
        }
    }
}

/// Whether the body would be sent as the bytes that were received.
fn goes_as_it_came(context: &Context) -> bool {
    let received =
        context.headers.get("Content-Type").map(|value| MediaType::parse(value).essence.to_ascii_lowercase());
    let wanted = context.axis2("messageType").map(|value| value.to_string());
    let wanted = wanted.map(|value| MediaType::parse(&value).essence.to_ascii_lowercase());
    let is_coded =
        context.headers.get("Content-Encoding").is_some_and(|value| !value.eq_ignore_ascii_case("identity"));
    !is_coded && (wanted.is_none() || wanted == received)
}

/// Runs blocking work on another thread.
async fn in_turn<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    match tokio::time::timeout(LONGEST_WAIT, places::run(job)).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(NotDone::NoThread)) => Err(no_thread().into()),
        Ok(Err(NotDone::Panicked)) => Err(Failure::new(Reason::Operation, "writing panicked")),
        Err(_) => {
            let why = format!("too busy: no file operation ended within {} s", LONGEST_WAIT.as_secs());
            Err(Fault { status: 503, ..Fault::new(why) }.into())
        }
    }
}
