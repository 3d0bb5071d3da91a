//! The stack for nesting that depends on a stylesheet ([`meter::stack`]). The depth is counted; the stack that it took is
//! measured from time to time.

use crate::error::XsltError;
pub(crate) use meter::stack::is_left;

/// Bytes that a transformation may use of the stack of the calling thread (of at least 2 MiB), in addition to the
/// levels of one stride of the engine.
const CALLER: usize = 1 << 20;

/// Runs `f` on this thread, with the share of its stack that a transformation may use.
pub(crate) fn on_this<R>(f: impl FnOnce() -> R) -> R {
    let _share = meter::stack::Share::of(CALLER);
    f()
}

/// Continues in a thread with its own stack.
pub(crate) fn on_new<R: Send>(f: impl FnOnce() -> Res<R> + Send) -> Res<R> {
    meter::stack::on_new(f).unwrap_or_else(|why| Err(Box::new(XsltError::new(why))))
}

type Res<T> = Result<T, Box<XsltError>>;
