//! Reads answers as they arrive: the head, then the body by its framing.

use crate::Fields;

/// The longest head, and the longest line of a chunk, that is read.
const HEAD: usize = 64 << 10;
const FIELDS: usize = 96;

/// An answer that is being read.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// The bytes of the head, the last informational one not included.
    head: Vec<u8>,
    state: State,
    pub(crate) status: u16,
    /// The server closes the connection behind it.
    pub(crate) closes: bool,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Head,
    /// So many bytes of body are missing.
    Length(u64),
    /// The line with the size of a chunk.
    Size(Vec<u8>),
    /// So many bytes of a chunk, its line end included.
    Chunk(u64),
    /// The lines behind the last chunk: what has come of the one that is being read.
    Trailer(usize),
    UntilClose,
    Whole,
}

/// What has become of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// More has to come.
    Partial,
    /// It is whole.
    Whole,
}

impl Reader {
    /// Whether nothing of the answer has arrived.
    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    /// Begins with the next answer; buffers stay.
    pub(crate) fn reset(&mut self) {
        self.head.clear();
        self.state = State::Head;
        self.status = 0;
        self.closes = false;
    }

    /// Takes what has arrived; `body` is called with the pieces of the body.
    pub(crate) fn take(
        &mut self,
        mut bytes: &[u8],
        is_head: bool,
        body: &mut dyn FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<Reading, String> {
        loop {
            match &mut self.state {
                State::Head => match self.take_head(bytes, is_head)? {
                    None => return Ok(Reading::Partial),
                    Some(rest) => bytes = &bytes[bytes.len() - rest..],
                },
                State::Length(0) => self.state = State::Whole,
                State::Length(missing) => {
                    let (now, rest) = split(bytes, *missing);
                    body(now)?;
                    *missing -= now.len() as u64;
                    let is_whole = *missing == 0;
                    bytes = rest;
                    if !is_whole {
                        return Ok(Reading::Partial);
                    }
                }
                State::Size(line) => {
                    let Some(end) = bytes.iter().position(|b| *b == b'\n') else {
                        line.extend_from_slice(bytes);
                        return if line.len() > HEAD {
                            Err("a chunk's size has no end".into())
                        } else {
                            Ok(Reading::Partial)
                        };
                    };
                    line.extend_from_slice(&bytes[..=end]);
                    bytes = &bytes[end + 1..];
                    let size = match httparse::parse_chunk_size(line) {
                        Ok(httparse::Status::Complete((_, size))) => size,
                        _ => return Err(format!("no size of a chunk: {}", crate::check::excerpt(line))),
                    };
                    self.state = match size {
                        0 => State::Trailer(0),
                        size => State::Chunk(size.checked_add(2).ok_or("a chunk is too large")?),
                    };
                }
                State::Chunk(missing) => {
                    let (now, rest) = split(bytes, *missing);
                    let data =
                        now.len().min(usize::try_from(missing.saturating_sub(2)).unwrap_or(usize::MAX));
                    body(&now[..data])?;
                    *missing -= now.len() as u64;
                    bytes = rest;
                    if *missing > 0 {
                        return Ok(Reading::Partial);
                    }
                    self.state = State::Size(Vec::new());
                }
                State::Trailer(length) => {
                    let Some(end) = bytes.iter().position(|b| *b == b'\n') else {
                        *length += bytes.iter().filter(|b| **b != b'\r').count();
                        return if *length > HEAD {
                            Err("a trailer has no end".into())
                        } else {
                            Ok(Reading::Partial)
                        };
                    };
                    let line = *length + bytes[..end].iter().filter(|b| **b != b'\r').count();
                    bytes = &bytes[end + 1..];
                    self.state = if line == 0 { State::Whole } else { State::Trailer(0) };
                }
                State::UntilClose => {
                    body(bytes)?;
                    return Ok(Reading::Partial);
                }
                State::Whole if bytes.is_empty() => return Ok(Reading::Whole),
                State::Whole => return Err(format!("{} bytes behind the answer", bytes.len())),
            }
        }
    }

    /// The server has closed the connection: whether the answer is whole by that.
    pub(crate) fn close(&mut self) -> bool {
        self.closes = true;
        matches!(self.state, State::UntilClose)
    }

    /// How many bytes stand behind the head, once that is whole.
    fn take_head(&mut self, bytes: &[u8], is_head: bool) -> Result<Option<usize>, String> {
        let before = self.head.len();
        self.head.extend_from_slice(bytes);
        let (length, status, closes, state) = {
            let mut fields = [httparse::EMPTY_HEADER; FIELDS];
            let mut response = httparse::Response::new(&mut fields);
            let length = match response.parse(&self.head) {
                Ok(httparse::Status::Complete(length)) => length,
                Ok(httparse::Status::Partial) if self.head.len() <= HEAD => return Ok(None),
                Ok(httparse::Status::Partial) => return Err(format!("the head has more than {HEAD} bytes")),
                Err(error) => {
                    return Err(format!("no HTTP ({error}): {}", crate::check::excerpt(&self.head)));
                }
            };
            let (mut closes, mut content_length, mut chunked) = (response.version == Some(0), None, false);
            for field in response.headers.iter() {
                let value = field.value.trim_ascii();
                if field.name.eq_ignore_ascii_case("content-length") {
                    let number = std::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok());
                    content_length = Some(number.ok_or("the Content-Length is not a number")?);
                } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
                    chunked = value.to_ascii_lowercase().ends_with(b"chunked");
                } else if field.name.eq_ignore_ascii_case("connection") {
                    closes = value.eq_ignore_ascii_case(b"close")
                        || closes && !value.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            let status = response.code.unwrap_or_default();
            let state = match (status, content_length) {
                (204 | 304, _) => State::Whole,
                _ if is_head => State::Whole,
                _ if chunked => State::Size(Vec::new()),
                (_, Some(length)) => State::Length(length),
                (_, None) => State::UntilClose,
            };
            (length, status, closes, state)
        };
        let rest = self.head.len() - length;
        debug_assert!(length > before, "a head that was whole was not taken");
        if (100..200).contains(&status) && status != 101 {
            // An informational answer in front of the answer.
            self.head.drain(..length);
            let rest = std::mem::take(&mut self.head);
            if rest.is_empty() {
                return Ok(None);
            }
            return match self.take_head(&rest, is_head)? {
                Some(behind) => Ok(Some(behind)),
                None => Ok(None),
            };
        }
        self.head.truncate(length);
        self.status = status;
        self.closes = closes || matches!(state, State::UntilClose) || status == 101;
        self.state = state;
        Ok(Some(rest))
    }

    /// Calls `with` with the fields of the head.
    pub(crate) fn fields<T>(&self, with: impl FnOnce(&Fields<'_>) -> T) -> T {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        let _ = response.parse(&self.head);
        let fields: Vec<(&str, &[u8])> =
            response.headers.iter().map(|field| (field.name, field.value)).collect();
        with(&fields)
    }
}

/// As much of it as is missing, and the rest.
fn split(bytes: &[u8], missing: u64) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.len().min(usize::try_from(missing).unwrap_or(usize::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Status, body, whether it closes; however it is cut in pieces.
    fn read(
        wire: &[u8],
        piece: usize,
        is_head: bool,
        then_close: bool,
    ) -> Result<(u16, Vec<u8>, bool), String> {
        let (mut reader, mut body) = (Reader::default(), Vec::new());
        let mut whole = false;
        for bytes in wire.chunks(piece) {
            if whole {
                return Err("whole too early".into());
            }
            let mut take = |bytes: &[u8]| {
                body.extend_from_slice(bytes);
                Ok(())
            };
            whole = reader.take(bytes, is_head, &mut take)? == Reading::Whole;
        }
        if !(whole || then_close && reader.close()) {
            return Err("partial".into());
        }
        Ok((reader.status, body, reader.closes))
    }

    #[test]
    fn framings_in_pieces_of_any_size() {
        type Case = (&'static str, bool, bool, Result<(u16, &'static str, bool), &'static str>);
        let cases: [Case; 15] = [
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", false, false, Ok((200, "abc", false))),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false, false, Ok((200, "", false))),
            ("HTTP/1.1 204 \r\n\r\n", false, false, Ok((204, "", false))),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", true, false, Ok((200, "", false))),
            (
                "HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 1\r\n\r\nx",
                false,
                false,
                Ok((200, "x", true)),
            ),
            ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", false, false, Ok((200, "x", true))),
            (
                "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx",
                false,
                false,
                Ok((200, "x", false)),
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n",
                false,
                false,
                Ok((200, "abc0123456789", false)),
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nT: v\r\n\r\n",
                false,
                false,
                Ok((200, "a", false)),
            ),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
                false,
                false,
                Ok((200, "x", false)),
            ),
            ("HTTP/1.1 200 OK\r\n\r\nabc", false, true, Ok((200, "abc", true))),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", false, true, Err("partial")),
            ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", false, false, Err("Content-Length")),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
                false,
                false,
                Err("size of a chunk"),
            ),
            ("SSH-2.0\r\n\r\n", false, false, Err("no HTTP")),
        ];
        for (wire, is_head, close, want) in cases {
            for piece in [1, 2, 3, 7, 1000] {
                match (read(wire.as_bytes(), piece, is_head, close), &want) {
                    (Ok((status, body, closes)), Ok(want)) => {
                        assert_eq!(
                            (status, &*String::from_utf8_lossy(&body), closes),
                            *want,
                            "{wire:?} by {piece}"
                        );
                    }
                    (Err(found), Err(want)) => assert!(found.contains(want), "{wire:?} by {piece}: {found}"),
                    (found, _) => panic!("{wire:?} by {piece}: {found:?} instead of {want:?}"),
                }
            }
        }
        let more = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxy";
        assert_eq!(read(more, 1000, false, false).unwrap_err(), "1 bytes behind the answer");
    }
}
