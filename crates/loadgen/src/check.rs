//! Which answer is the right one.

use std::fmt;
use std::sync::Arc;

/// The fields of an answer's head: names in any case.
pub type Fields<'a> = [(&'a str, &'a [u8])];

/// An answer as it came in.
#[derive(Copy, Clone, Debug)]
pub struct ReceivedResponse<'a> {
    /// HTTP status.
    pub status: u16,
    /// Header fields.
    pub fields: &'a Fields<'a>,
    /// The entity.
    pub body: &'a [u8],
}

type HeadCheck = dyn Fn(u16, &Fields<'_>) -> Result<(), String> + Send + Sync;
type BodyCheck = dyn Fn(&[u8]) -> Result<(), String> + Send + Sync;

/// What makes an answer the right one. All answers are checked; bytes are compared while they arrive, without holding them.
#[derive(Clone)]
pub enum Check {
    /// Any body, with this status.
    Status(u16),
    /// Status 200 and the very bytes of the request's body.
    Echo,
    /// Status 200 and these bytes.
    Bytes(Arc<[u8]>),
    /// The head passes the first, the body the second function. Each says what is wrong.
    ///
    /// The first is called for each answer. The second is not called for a body whose bytes are those of the last one that it found
    /// right for the same request, so it must depend on the body only.
    Predicate(Arc<HeadCheck>, Arc<BodyCheck>),
}

impl Check {
    /// Status 200 and all of these texts in the body.
    pub fn contains(parts: Vec<String>) -> Check {
        let body = move |body: &[u8]| match parts.iter().find(|part| !contains(body, part.as_bytes())) {
            None => Ok(()),
            Some(part) => Err(format!("'{part}' is not in the body: {}", excerpt(body))),
        };
        Check::Predicate(Arc::new(|status, _| right_status(status, 200)), Arc::new(body))
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Check::Status(status) => write!(f, "status {status}"),
            Check::Echo => f.write_str("echo"),
            Check::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Check::Predicate(..) => f.write_str("predicate"),
        }
    }
}

fn contains(body: &[u8], part: &[u8]) -> bool {
    part.is_empty() || body.windows(part.len()).any(|window| window == part)
}

fn right_status(got: u16, want: u16) -> Result<(), String> {
    if got == want { Ok(()) } else { Err(format!("status {got} instead of {want}")) }
}

/// The beginning of a body, on one line.
pub(crate) fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(480)]);
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(120).collect();
    if line.len() < body.len() { format!("{line}… ({} bytes)", body.len()) } else { line }
}

/// The longest body that is held to be looked at.
const HELD: usize = 256 << 20;

/// A body while it arrives.
#[derive(Debug)]
pub(crate) enum Arriving {
    /// Only counted.
    Counted(usize),
    /// So many bytes are those of what it is compared with.
    Same(usize),
    /// Held, because it is compared with nothing, or differs.
    Held(Vec<u8>),
}

impl Arriving {
    /// `expected`: the bytes that it is compared with.
    pub(crate) fn new(check: &Check, expected: Option<&[u8]>) -> Arriving {
        match (check, expected) {
            (Check::Status(_), _) => Arriving::Counted(0),
            (_, Some(_)) => Arriving::Same(0),
            (_, None) => Arriving::Held(Vec::new()),
        }
    }

    /// Takes a piece of the body.
    pub(crate) fn take(&mut self, bytes: &[u8], expected: Option<&[u8]>) -> Result<(), String> {
        match self {
            Arriving::Counted(count) => *count += bytes.len(),
            Arriving::Same(count) => {
                let expected = expected.unwrap_or_default();
                let rest = &expected[(*count).min(expected.len())..];
                if rest.len() >= bytes.len() && rest[..bytes.len()] == *bytes {
                    *count += bytes.len();
                } else {
                    let mut held = expected[..*count].to_vec();
                    held.extend_from_slice(bytes);
                    *self = Arriving::Held(held);
                }
            }
            Arriving::Held(held) if held.len() + bytes.len() > HELD => {
                return Err(format!("the body has more than {HELD} bytes"));
            }
            Arriving::Held(held) => held.extend_from_slice(bytes),
        }
        Ok(())
    }

    /// Whether the whole body is right; with what it is to be compared with from now on. `right` is the last body that a predicate found right:
    /// perhaps since this one began to arrive.
    pub(crate) fn finish(
        self,
        check: &Check,
        expected: Option<&[u8]>,
        right: Option<&[u8]>,
        status: u16,
        fields: &Fields<'_>,
    ) -> Result<Option<Arc<[u8]>>, String> {
        match check {
            Check::Status(want) => return right_status(status, *want).map(|()| None),
            Check::Echo | Check::Bytes(_) => right_status(status, 200)?,
            Check::Predicate(head, _) => head(status, fields)?,
        }
        let expected = expected.unwrap_or_default();
        let body = match self {
            Arriving::Same(count) if count == expected.len() => return Ok(None),
            Arriving::Same(count) => expected[..count].to_vec(),
            Arriving::Held(body) => body,
            Arriving::Counted(_) => Vec::new(),
        };
        match check {
            Check::Predicate(..) if right.is_some_and(|right| *right == *body) => Ok(None),
            Check::Predicate(_, is_right) => is_right(&body).map(|()| Some(body.into())),
            _ => {
                let at = expected.iter().zip(&body).take_while(|(a, b)| a == b).count();
                let (want, got) = (expected.len(), body.len());
                let rest = excerpt(&body[at..]);
                Err(format!("the body differs from byte {at} on ({got} bytes instead of {want}): {rest}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    fn check(
        check: &Check,
        expected: Option<&[u8]>,
        status: u16,
        pieces: &[&[u8]],
    ) -> Result<Option<Arc<[u8]>>, String> {
        let mut arriving = Arriving::new(check, expected);
        for piece in pieces {
            arriving.take(piece, expected)?;
        }
        arriving.finish(check, expected, None, status, &[])
    }

    #[test]
    fn bytes_are_compared_as_they_come() {
        let want: &[u8] = b"abcdef";
        let bytes = Check::Bytes(want.into());
        let cases: [(&[&[u8]], &str); 6] = [
            (&[b"abcdef"], ""),
            (&[b"abc", b"", b"def"], ""),
            (&[b"abc"], "from byte 3 on (3 bytes instead of 6)"),
            (&[b"abc", b"xef"], "from byte 3 on (6 bytes instead of 6): xef"),
            (&[b"abcdef", b"g"], "from byte 6 on (7 bytes instead of 6)"),
            (&[], "from byte 0 on (0 bytes instead of 6)"),
        ];
        for (pieces, wrong) in cases {
            let found = check(&bytes, Some(want), 200, pieces).err().unwrap_or_default();
            assert!(found.contains(wrong) && found.is_empty() == wrong.is_empty(), "{pieces:?}: {found}");
        }
        assert_eq!(check(&bytes, Some(want), 202, &[want]).unwrap_err(), "status 202 instead of 200");
        assert_eq!(check(&Check::Status(404), None, 404, &[b"x"]), Ok(None));
        assert!(check(&Check::Echo, Some(b""), 200, &[]).is_ok());
        assert!(check(&Check::Echo, Some(b""), 200, &[b"x"]).is_err());
    }

    #[test]
    fn a_predicate_is_asked_again_only_for_other_bytes() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let right = |body: &[u8]| {
            ASKED.fetch_add(1, Relaxed);
            if body.starts_with(b"a") { Ok(()) } else { Err("no a".to_owned()) }
        };
        let predicate = Check::Predicate(Arc::new(|_, _| Ok(())), Arc::new(right));
        let accepted = check(&predicate, None, 200, &[b"ab"]).unwrap().unwrap();
        assert_eq!((&*accepted, ASKED.load(Relaxed)), (&b"ab"[..], 1));
        assert_eq!(check(&predicate, Some(&accepted), 200, &[b"a", b"b"]), Ok(None));
        assert_eq!(ASKED.load(Relaxed), 1);
        assert_eq!(&*check(&predicate, Some(&accepted), 200, &[b"ac"]).unwrap().unwrap(), b"ac");
        assert!(check(&predicate, Some(&accepted), 200, &[b"b"]).is_err());
        assert_eq!(ASKED.load(Relaxed), 3);
        // Those that began before a body was found right are compared with it when they end.
        let mut arriving = Arriving::new(&predicate, None);
        arriving.take(b"ab", None).unwrap();
        assert_eq!(arriving.finish(&predicate, None, Some(b"ab"), 200, &[]), Ok(None));
        assert_eq!(ASKED.load(Relaxed), 3);
        let both = Check::contains(vec!["x".into(), "yz".into()]);
        assert!(check(&both, None, 200, &[b"yzx"]).is_ok());
        assert!(check(&both, None, 200, &[b"y x"]).unwrap_err().contains("'yz' is not in the body"));
        assert!(check(&both, None, 500, &[b"yzx"]).is_err());
    }
}
