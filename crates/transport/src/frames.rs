//! Messages out of the frames of a WebSocket (RFC 6455, 5), and frames of messages.
//!
//! Nothing is held but the message that has begun, which counts itself as held, and grows as its bytes come: what a frame says of its
//! length reserves nothing. When a message has been given away, nothing is left of it here.

use bytes::Bytes;
use message::memory::{self, Held, Shortage};

/// A message of a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSocketMessage {
    /// It is a text, and UTF-8; otherwise it is binary.
    pub is_text: bool,
    /// The payload.
    pub payload: Bytes,
}

/// Longest payload of a frame that is no part of a message.
const CONTROL: usize = 125;

/// What came to its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Message(WebSocketMessage),
    /// To be answered with the same payload.
    Ping(Vec<u8>),
    Pong,
    /// Code and reason, where they are given.
    Close(Option<(u16, String)>),
}

/// Why no more is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    /// The code for the Close frame.
    pub(crate) code: u16,
    pub(crate) why: &'static str,
}

const fn protocol(why: &'static str) -> Broken {
    Broken { code: 1002, why }
}
const NOT_TEXT: Broken = Broken { code: 1007, why: "a text that is not UTF-8" };
const TOO_LARGE: Broken = Broken { code: 1009, why: "a message that is too large" };
const SHORT: Broken = Broken { code: 1013, why: "messages hold as much memory as they may" };

impl From<Shortage> for Broken {
    fn from(_: Shortage) -> Broken {
        SHORT
    }
}

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// Reads what a client sends.
pub(crate) struct Reading {
    /// Most bytes of a message.
    most: usize,
    header: [u8; 14],
    have: usize,
    /// A frame whose header is whole.
    frame: Option<Frame>,
    /// The message that has begun, and whether it is a text.
    message: Option<(bool, Vec<u8>)>,
    /// So much of a text is known to be valid.
    valid: usize,
    held: Held,
    control: Vec<u8>,
}

struct Frame {
    opcode: u8,
    is_last: bool,
    mask: [u8; 4],
    at: usize,
    left: usize,
}

impl Reading {
    pub(crate) fn new(most: usize) -> Reading {
        Reading {
            most,
            header: [0; 14],
            have: 0,
            frame: None,
            message: None,
            valid: 0,
            held: Held::NONE,
            control: Vec::new(),
        }
    }

    /// Nothing more is read: gives back what is held.
    pub(crate) fn give_up(&mut self) {
        *self = Reading::new(0);
    }

    /// Whether a frame or a message has begun and not ended.
    pub(crate) fn is_within(&self) -> bool {
        self.have > 0 || self.frame.is_some() || self.message.is_some()
    }

    /// Reads of what came, to the end of the bytes or of something that is to be looked at. How many bytes that were.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<(usize, Option<Event>), Broken> {
        let mut at = 0;
        loop {
            if self.frame.is_none() {
                while self.have < self.header_size() {
                    let Some(byte) = bytes.get(at) else { return Ok((at, None)) };
                    self.header[self.have] = *byte;
                    (self.have, at) = (self.have + 1, at + 1);
                    if self.have == 2 && byte & 0x80 == 0 {
                        return Err(protocol("a frame without a mask"));
                    }
                }
                self.frame = Some(self.begin()?);
                self.have = 0;
            }
            let Some(frame) = &mut self.frame else { return Ok((at, None)) };
            let n = frame.left.min(bytes.len() - at);
            let into = match (frame.opcode, &mut self.message) {
                (CONTINUATION..=BINARY, Some((_, message))) => {
                    if message.capacity() - message.len() < n {
                        // Twice as much, so that a message of many pieces is not copied for each.
                        let wanted = (message.len() + n).max(2 * message.len()).min(self.most);
                        self.held.try_grow(wanted)?;
                        message.reserve_exact(wanted - message.len());
                    }
                    message
                }
                _ => &mut self.control,
            };
            let from = into.len();
            into.extend_from_slice(&bytes[at..at + n]);
            unmask(&mut into[from..], frame.mask, frame.at);
            (frame.at, frame.left, at) = ((frame.at + n) % 4, frame.left - n, at + n);
            let (whole, opcode, is_last) = (frame.left == 0, frame.opcode, frame.is_last);
            if opcode <= BINARY && n > 0 {
                self.look_at_text()?;
            }
            if !whole {
                return Ok((at, None));
            }
            self.frame = None;
            if let Some(event) = self.end(opcode, is_last)? {
                return Ok((at, Some(event)));
            }
        }
    }

    /// Bytes of the header, as far as it has been seen; at least the two that say it.
    fn header_size(&self) -> usize {
        match (self.have, self.header[1] & 0x7F) {
            (..2, _) => 2,
            (_, 126) => 8,
            (_, 127) => 14,
            _ => 6,
        }
    }

    /// The frame whose header has come.
    fn begin(&mut self) -> Result<Frame, Broken> {
        let [first, second, ..] = self.header;
        let (is_last, opcode) = (first & 0x80 != 0, first & 0x0F);
        if first & 0x70 != 0 {
            return Err(protocol("reserved bits of a frame are set"));
        }
        let wide = |bytes: &[u8]| bytes.iter().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
        let (length, least, mask) = match second & 0x7F {
            126 => (wide(&self.header[2..4]), 126, &self.header[4..8]),
            127 => (wide(&self.header[2..10]), 1 << 16, &self.header[10..14]),
            short => (u64::from(short), 0, &self.header[2..6]),
        };
        // RFC 6455, 5.2: one way to write each length.
        if length < least {
            return Err(protocol("a length in more bytes than it needs"));
        }
        let mask = [mask[0], mask[1], mask[2], mask[3]];
        let length = usize::try_from(length).ok().filter(|length| *length <= isize::MAX as usize);
        let left = length.ok_or(protocol("a length that no frame has"))?;
        match (opcode, &self.message) {
            (CLOSE..=PONG, _) if !is_last || left > CONTROL => {
                return Err(protocol("a control frame that is too long, or in fragments"));
            }
            (CLOSE..=PONG, _) => {}
            (CONTINUATION, Some((_, message))) if left > self.most - message.len() => return Err(TOO_LARGE),
            (CONTINUATION, Some(_)) => {}
            (TEXT | BINARY, None) if left > self.most => return Err(TOO_LARGE),
            (TEXT | BINARY, None) => self.message = Some((opcode == TEXT, Vec::new())),
            (CONTINUATION, None) => return Err(protocol("a fragment of no message")),
            (TEXT | BINARY, Some(_)) => return Err(protocol("a message within another")),
            _ => return Err(protocol("an unknown kind of frame")),
        }
        Ok(Frame { opcode, is_last, mask, at: 0, left })
    }

    /// A text is refused at the first byte that is not UTF-8, not at its end.
    fn look_at_text(&mut self) -> Result<(), Broken> {
        let Some((true, message)) = &self.message else { return Ok(()) };
        match std::str::from_utf8(&message[self.valid..]) {
            Ok(_) => self.valid = message.len(),
            // The rest of a character may be on its way.
            Err(error) if error.error_len().is_none() => self.valid += error.valid_up_to(),
            Err(_) => return Err(NOT_TEXT),
        }
        Ok(())
    }

    /// A frame has come to its end.
    fn end(&mut self, opcode: u8, is_last: bool) -> Result<Option<Event>, Broken> {
        let event = match opcode {
            CLOSE => Event::Close(reason(&std::mem::take(&mut self.control))?),
            PING => Event::Ping(std::mem::take(&mut self.control)),
            PONG => {
                self.control.clear();
                Event::Pong
            }
            _ if !is_last => return Ok(None),
            _ => {
                let Some((is_text, message)) = self.message.take() else { return Ok(None) };
                if is_text && self.valid < message.len() {
                    return Err(NOT_TEXT);
                }
                self.valid = 0;
                let payload = memory::counted(message, std::mem::take(&mut self.held));
                Event::Message(WebSocketMessage { is_text, payload })
            }
        };
        Ok(Some(event))
    }
}

/// What a Close frame says.
fn reason(payload: &[u8]) -> Result<Option<(u16, String)>, Broken> {
    let [high, low, text @ ..] = payload else {
        return if payload.is_empty() { Ok(None) } else { Err(protocol("half a code in a Close frame")) };
    };
    let code = u16::from_be_bytes([*high, *low]);
    // Those that are never sent, and those that nobody has given a meaning (RFC 6455, 7.4).
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(protocol("a code in a Close frame that cannot be"));
    }
    let text = std::str::from_utf8(text).map_err(|_| NOT_TEXT)?;
    Ok(Some((code, text.to_owned())))
}

fn unmask(bytes: &mut [u8], mask: [u8; 4], at: usize) {
    let mask: [u8; 4] = std::array::from_fn(|i| mask[(at + i) % 4]);
    let whole = u32::from_ne_bytes(mask);
    let (fours, rest) = bytes.as_chunks_mut::<4>();
    for four in fours {
        *four = (u32::from_ne_bytes(*four) ^ whole).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask) {
        *byte ^= mask;
    }
}

/// A frame that is written: not masked, as those of servers are.
pub(crate) struct Writing {
    header: [u8; 10],
    header_size: usize,
    payload: Bytes,
    written: usize,
}

impl Writing {
    fn new(opcode: u8, payload: Bytes) -> Writing {
        let mut header = [0x80 | opcode, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let header_size = match (u8::try_from(payload.len()), u16::try_from(payload.len())) {
            (Ok(short @ ..126), _) => {
                header[1] = short;
                2
            }
            (_, Ok(middle)) => {
                header[1] = 126;
                header[2..4].copy_from_slice(&middle.to_be_bytes());
                4
            }
            _ => {
                header[1] = 127;
                header[2..10].copy_from_slice(&(payload.len() as u64).to_be_bytes());
                10
            }
        };
        Writing { header, header_size, payload, written: 0 }
    }

    /// A message in one frame.
    pub(crate) fn message(message: WebSocketMessage) -> Writing {
        Writing::new(if message.is_text { TEXT } else { BINARY }, message.payload)
    }

    pub(crate) fn pong(payload: Vec<u8>) -> Writing {
        Writing::new(PONG, payload.into())
    }

    /// A Close frame, with a code and a reason.
    pub(crate) fn close(code: u16, why: &str) -> Writing {
        let mut payload = code.to_be_bytes().to_vec();
        // A control frame holds no more; a character is not cut in two.
        let end = why.floor_char_boundary(CONTROL - 2);
        payload.extend_from_slice(&why.as_bytes()[..end]);
        Writing::new(CLOSE, payload.into())
    }

    /// The response to a Close frame without a code.
    pub(crate) fn bare_close() -> Writing {
        Writing::new(CLOSE, Bytes::new())
    }

    /// What is still to be written.
    pub(crate) fn rest(&self) -> [&[u8]; 2] {
        let header = &self.header[..self.header_size];
        let of_payload = self.written.saturating_sub(header.len());
        [&header[self.written.min(header.len())..], &self.payload[of_payload..]]
    }

    /// So much of it was written; whether that was all.
    pub(crate) fn wrote(&mut self, n: usize) -> bool {
        self.written += n;
        self.written >= self.header_size + self.payload.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASK: [u8; 4] = [0x11, 0x22, 0x33, 0x44];

    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut out = Writing::new(0, Bytes::copy_from_slice(payload)).rest().concat();
        let payload = out.split_off(out.len() - payload.len());
        out[0] = first;
        out[1] |= 0x80;
        out.extend(MASK);
        out.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        out
    }

    /// All that comes of bytes which are given in pieces of a size.
    fn read(bytes: &[u8], piece: usize, most: usize) -> Result<Vec<Event>, Broken> {
        let (mut reading, mut events) = (Reading::new(most), Vec::new());
        for mut piece in bytes.chunks(piece) {
            while !piece.is_empty() {
                let (n, event) = reading.read(piece)?;
                events.extend(event);
                piece = &piece[n..];
            }
        }
        assert!(!reading.is_within() || events.is_empty());
        Ok(events)
    }

    fn message_event(is_text: bool, payload: &[u8]) -> Event {
        Event::Message(WebSocketMessage { is_text, payload: Bytes::copy_from_slice(payload) })
    }

    #[test]
    fn messages_are_the_same_however_they_are_cut() {
        let large: Vec<u8> = (0..70_000_u32).map(|n| (n % 251) as u8).collect();
        let wire = [
            frame(0x81, "h\u{e9}llo".as_bytes()),
            frame(0x82, &large),
            frame(0x82, &large[..126]),
            frame(0x01, "tw\u{f6}".as_bytes().split_at(3).0),
            frame(0x89, b"ping"),
            frame(0x00, b""),
            frame(0x8A, b""),
            frame(0x80, "tw\u{f6}".as_bytes().split_at(3).1),
            frame(0x81, b""),
            frame(0x88, &[0x0F, 0xA0, b'b', b'y', b'e']),
        ]
        .concat();
        let wanted = [
            message_event(true, "h\u{e9}llo".as_bytes()),
            message_event(false, &large),
            message_event(false, &large[..126]),
            Event::Ping(b"ping".to_vec()),
            Event::Pong,
            message_event(true, "tw\u{f6}".as_bytes()),
            message_event(true, b""),
            Event::Close(Some((4000, "bye".to_owned()))),
        ];
        for piece in [1, 2, 3, 7, 4096, usize::MAX] {
            assert!(read(&wire, piece, 1 << 20).unwrap() == wanted, "{piece}");
        }
    }

    #[test]
    fn what_is_not_valid_says_so_as_soon_as_it_is_seen() {
        let long = frame(0x81, &[b'x'; 101]);
        for (wire, code) in [
            (long[..6].to_vec(), 1009),
            ([frame(0x01, &[b'x'; 60]), frame(0x00, &[b'x'; 41])[..6].to_vec()].concat(), 1009),
            (frame(0x82, &[0; 70_000])[..14].to_vec(), 1009),
            (vec![0x82, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 1002),
            (vec![0x82, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0], 1009),
            (frame(0x81, b"\xFF"), 1007),
            // Half a character at the end of the message, or where another one would have to go on.
            (frame(0x81, b"\xC3"), 1007),
            ([frame(0x01, b"\xC3"), frame(0x80, b"a")].concat(), 1007),
            (frame(0x01, b"ok \xED\xA0\x80"), 1007),
            (frame(0xC1, b""), 1002),
            (frame(0x83, b""), 1002),
            (frame(0x8B, b""), 1002),
            (frame(0x09, b""), 1002),
            (frame(0x89, &[0; 126])[..8].to_vec(), 1002),
            (vec![0x82, 0xFE, 0, 125, 0, 0, 0, 0], 1002),
            (vec![0x82, 0xFF, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0], 1002),
            (frame(0x80, b""), 1002),
            ([frame(0x01, b"a"), frame(0x81, b"b")].concat(), 1002),
            (frame(0x88, b"\x03"), 1002),
            (frame(0x88, &[0x03, 0xED]), 1002),
            (frame(0x88, &[0x03, 0xE8, 0xFF]), 1007),
            (vec![0x81, 1], 1002),
        ] {
            for piece in [1, 4096] {
                let broken = read(&wire, piece, 100).unwrap_err();
                assert_eq!(broken.code, code, "{wire:?}: {}", broken.why);
            }
        }
        assert_eq!(read(&frame(0x88, b""), 1, 100).unwrap(), [Event::Close(None)]);
        assert_eq!(read(&frame(0x82, &[0; 100]), 1, 100).unwrap(), [message_event(false, &[0; 100])]);
    }

    #[test]
    fn a_message_holds_what_has_come_of_it_and_nothing_when_it_is_gone() {
        let mut reading = Reading::new(1 << 30);
        // A length in a header reserves no memory.
        let wire = frame(0x02, &[0; 200_000]);
        reading.read(&wire[..14]).unwrap();
        assert_eq!(reading.held.bytes(), 0);
        reading.read(&wire[14..]).unwrap();
        assert!((200_000..500_000).contains(&reading.held.bytes()), "{}", reading.held.bytes());
        // Control frames between the pieces of a message do not break it.
        reading.read(&frame(0x89, b"ping")).unwrap();
        assert!(reading.held.bytes() >= 200_000);
        let (_, event) = reading.read(&frame(0x80, b"")).unwrap();
        assert!(event.is_some());
        assert_eq!((reading.held.bytes(), reading.control.capacity()), (0, 0));
        assert!(!reading.is_within());
    }

    #[test]
    fn frames_are_written_however_little_is_taken() {
        for size in [0, 1, 125, 126, 65_535, 65_536] {
            let payload = Bytes::from(vec![7; size]);
            let whole = Writing::message(WebSocketMessage { is_text: false, payload: payload.clone() })
                .rest()
                .concat();
            let mut writing = Writing::message(WebSocketMessage { is_text: false, payload });
            let mut seen = Vec::new();
            loop {
                let rest = writing.rest().concat();
                let n = rest.len().min(3);
                seen.extend_from_slice(&rest[..n]);
                if writing.wrote(n) {
                    break;
                }
            }
            assert!(seen == whole, "{size}");
        }
        let close = Writing::close(1002, &"\u{e9}".repeat(100)).rest().concat();
        assert_eq!((close[0], close[1], close.len()), (0x88, 124, 126));
    }
}
