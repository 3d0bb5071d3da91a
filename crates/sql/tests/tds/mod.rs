//! A server that speaks as much of SQL Server's protocol (MS-TDS 7.4) as the tests need: it takes one login, over TLS, and answers what a test has it
//! answer to a text, over TLS if the client wants that.

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What comes to a statement.
pub enum Reply {
    /// Tokens, in one message.
    Tokens(Vec<u8>),
    /// Tokens, and the connection ends in the middle of the message.
    Cut(Vec<u8>),
    /// Tokens, and then bytes until the client is gone.
    Endless(Vec<u8>),
    /// Nothing for this time, then an empty answer.
    Late(Duration),
}

pub struct Tds {
    pub port: u16,
    /// The texts that came, with the declarations of their parameters, of all connections.
    pub seen: Arc<Mutex<Vec<String>>>,
    /// The user, the database and the application of each login.
    pub logins: Arc<Mutex<Vec<[String; 3]>>>,
    /// Its certificate, which is its own authority.
    pub certificate: PathBuf,
}

impl Drop for Tds {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.certificate);
    }
}

impl Tds {
    pub fn start(reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Tds {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (seen, logins, reply) = (Arc::default(), Arc::default(), Arc::new(reply));
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = std::env::temp_dir().join(format!("busbar-tds-{}-{port}.crt", std::process::id()));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        let server = Tds { port, seen: Arc::clone(&seen), logins: Arc::clone(&logins), certificate };
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let secure =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
                .with_protocol_versions(&[&rustls::version::TLS12])
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![made.cert.der().clone()], key)
                .unwrap();
        let secure = Arc::new(secure);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { break };
                let (seen, logins, reply) = (Arc::clone(&seen), Arc::clone(&logins), Arc::clone(&reply));
                let secure = Arc::clone(&secure);
                std::thread::spawn(move || _ = serve(stream, secure, &seen, &logins, &*reply));
            }
        });
        server
    }
}

/// A socket, with or without TLS.
trait Wire: Read + Write {}

impl<T: Read + Write> Wire for T {}

/// A message of some packets: its type and its bytes; `None`: the client is gone.
fn message(stream: &mut dyn Wire) -> Option<(u8, Vec<u8>)> {
    let mut all = Vec::new();
    loop {
        let mut head = [0; 8];
        stream.read_exact(&mut head).ok()?;
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let mut body = vec![0; length.checked_sub(8)?];
        stream.read_exact(&mut body).ok()?;
        all.extend(body);
        if head[1] & 1 == 1 {
            return Some((head[0], all));
        }
    }
}

/// Sends a message in packets of 4,096 bytes; `is_whole`: it has its end.
fn send(stream: &mut dyn Wire, bytes: &[u8], is_whole: bool) {
    let count = bytes.chunks(4088).count();
    for (number, chunk) in bytes.chunks(4088).enumerate() {
        let status = u8::from(is_whole && number + 1 == count);
        let mut packet = vec![4, status];
        packet.extend(u16::try_from(chunk.len() + 8).unwrap().to_be_bytes());
        packet.extend([0, 0, (number as u8).wrapping_add(1), 0]);
        packet.extend(chunk);
        _ = stream.write_all(&packet);
    }
}

/// `None`: the client is gone.
fn serve(
    mut socket: TcpStream,
    secure: Arc<ServerConfig>,
    seen: &Mutex<Vec<String>>,
    logins: &Mutex<Vec<[String; 3]>>,
    reply: &dyn Fn(&str) -> Reply,
) -> Option<()> {
    let (_, prelogin) = message(&mut socket)?;
    // Where the option that says whether all is encrypted (3) or the login alone (0) is.
    let option = prelogin.chunks(5).find(|option| option[0] == 1)?;
    let wanted = prelogin[usize::from(u16::from_be_bytes([option[1], option[2]]))];
    send(&mut socket, &[0, 0, 11, 0, 6, 1, 0, 17, 0, 1, 0xFF, 16, 0, 0, 0, 0, 0, wanted], true);
    // TLS begins within such messages.
    let mut tls = ServerConnection::new(secure).unwrap();
    while tls.is_handshaking() {
        let (_, records) = message(&mut socket)?;
        let mut records = &records[..];
        while !records.is_empty() {
            tls.read_tls(&mut records).ok()?;
            tls.process_new_packets().ok()?;
        }
        let mut out = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut out).ok()?;
        }
        if !out.is_empty() {
            let mut packet = vec![0x12, 1];
            packet.extend(u16::try_from(out.len() + 8).unwrap().to_be_bytes());
            packet.extend([0, 0, 0, 0]);
            packet.extend(out);
            socket.write_all(&packet).ok()?;
        }
    }
    let end = socket.try_clone().unwrap();
    let (_, login) = message(&mut rustls::Stream::new(&mut tls, &mut socket))?;
    let mut stream: Box<dyn Wire> = match wanted {
        0 => Box::new(socket),
        _ => Box::new(rustls::StreamOwned::new(tls, socket)),
    };
    let stream = &mut *stream;
    let mut next = Some((0x10, login));
    while let Some((kind, body)) = next.take().or_else(|| message(stream)) {
        match kind {
            0x10 => {
                let at = |at: usize| usize::from(u16::from_le_bytes([body[at], body[at + 1]]));
                let field = |place: usize| &body[at(place)..at(place) + 2 * at(place + 2)];
                let hidden = field(44).iter().map(|byte| (byte ^ 0xA5).rotate_left(4));
                let password = utf16(&hidden.collect::<Vec<u8>>());
                let user = utf16(field(40));
                if user != "bus" || password != "secret" {
                    let tokens =
                        [error(18456, 14, &format!("Login failed for user '{user}'.")), done(2, 0)].concat();
                    send(stream, &tokens, true);
                    _ = end.shutdown(Shutdown::Both);
                    return None;
                }
                logins.lock().unwrap().push([user, utf16(field(68)), utf16(field(48))]);
                let mut tokens = vec![0xAD];
                let ack = [&[1, 0x74, 0, 0, 4][..], &short("test"), &[16, 0, 0, 0]].concat();
                tokens.extend(u16::try_from(ack.len()).unwrap().to_le_bytes());
                tokens.extend(ack);
                tokens.extend(done(0, 0));
                send(stream, &tokens, true);
            }
            // A batch, or a call of sp_executesql: with the headers, and the values of parameters, which are no texts.
            0x01 | 0x03 => {
                let headers = u32::from_le_bytes(body[..4].try_into().unwrap()) as usize;
                let text = match kind {
                    1 => utf16(&body[headers..]),
                    _ => texts(&body[headers + 6..]).join(" | "),
                };
                seen.lock().unwrap().push(text.clone());
                match text.as_str() {
                    // Those that every connection has.
                    statement if statement.starts_with("SET ") => send(stream, &done(0, 0), true),
                    "BEGIN TRANSACTION" => send(stream, &transaction(8), true),
                    "COMMIT" => send(stream, &transaction(9), true),
                    "ROLLBACK" => send(stream, &transaction(10), true),
                    statement => match reply(statement) {
                        Reply::Tokens(tokens) => send(stream, &tokens, true),
                        Reply::Cut(tokens) => {
                            send(stream, &tokens, false);
                            _ = end.shutdown(Shutdown::Both);
                            return None;
                        }
                        Reply::Endless(tokens) => {
                            send(stream, &tokens, false);
                            // A part of a value of 1,000 bytes, in a packet of its own.
                            let part =
                                [&[4, 0, 3, 0xF4, 0, 0, 1, 0][..], &1000_u32.to_le_bytes(), &[b'x'; 1000]];
                            let part = part.concat();
                            while stream.write_all(&part).is_ok() {}
                            return None;
                        }
                        Reply::Late(time) => {
                            std::thread::sleep(time);
                            send(stream, &done(0, 0), true);
                        }
                    },
                }
            }
            other => panic!("a message of the type {other}"),
        }
    }
    Some(())
}

fn utf16(bytes: &[u8]) -> String {
    let units: Vec<u16> = bytes.chunks_exact(2).map(|two| u16::from_le_bytes([two[0], two[1]])).collect();
    String::from_utf16_lossy(&units)
}

/// The values of the parameters of a call that are texts: that of the statement, of the declarations, and others.
fn texts(mut bytes: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let name = 1 + 2 * usize::from(bytes[0]);
        // Its name and its flags, then the type.
        let type_info = &bytes[name + 1..];
        let (value, length) = match type_info[0] {
            0xE7 => {
                let most = u16::from_le_bytes([type_info[1], type_info[2]]);
                let rest = &type_info[8..];
                if most == 0xFFFF {
                    // In parts, of which the last one is empty.
                    let (mut at, mut whole) = (8, Vec::new());
                    if rest[..8] != [0xFF; 8] {
                        loop {
                            let size = u32::from_le_bytes(rest[at..at + 4].try_into().unwrap()) as usize;
                            whole.extend(&rest[at + 4..at + 4 + size]);
                            at += 4 + size;
                            if size == 0 {
                                break;
                            }
                        }
                    }
                    (utf16(&whole), 8 + at)
                } else {
                    match u16::from_le_bytes([rest[0], rest[1]]) {
                        0xFFFF => ("NULL".to_owned(), 10),
                        size => (utf16(&rest[2..2 + usize::from(size)]), 10 + usize::from(size)),
                    }
                }
            }
            // NULL without a type: the declaration has it.
            0x1F => ("NULL".to_owned(), 1),
            // A length of the type, precision and scale where there are some, a length of the value.
            kind => {
                let head = match kind {
                    0x28 => 1,
                    0x6A | 0x6C => 4,
                    0xA5 => 3,
                    _ => 2,
                };
                let (size, count) = match kind {
                    0xA5 => (u16::from_le_bytes([type_info[3], type_info[4]]).into(), 2),
                    _ => (usize::from(type_info[head]), 1),
                };
                let value = &type_info[head + count..head + count + size];
                (
                    format!(
                        "{kind:02x}:{}",
                        value.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
                    ),
                    head + count + size,
                )
            }
        };
        all.push(value);
        bytes = &type_info[length..];
    }
    all
}

/// A text with its length in characters before it, in a byte.
fn short(text: &str) -> Vec<u8> {
    let units: Vec<u16> = text.encode_utf16().collect();
    [&[units.len() as u8][..], &units.iter().flat_map(|unit| unit.to_le_bytes()).collect::<Vec<u8>>()]
        .concat()
}

/// The end of a statement, which changed so many rows.
pub fn done(status: u16, rows: u64) -> Vec<u8> {
    [&[0xFD][..], &status.to_le_bytes(), &[0, 0], &rows.to_le_bytes()].concat()
}

pub fn error(number: i32, class: u8, message: &str) -> Vec<u8> {
    let units: Vec<u8> = message.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let length = u16::try_from(units.len() / 2).unwrap().to_le_bytes();
    let body =
        [&number.to_le_bytes()[..], &[1, class], &length, &units, &[0, 0], &1_i32.to_le_bytes()].concat();
    [&[0xAA][..], &u16::try_from(body.len()).unwrap().to_le_bytes(), &body].concat()
}

/// That a transaction has begun (8), counts (9) or is taken back (10).
fn transaction(token: u8) -> Vec<u8> {
    let number = [8, 1, 2, 3, 4, 5, 6, 7, 8];
    let body =
        if token == 8 { [&[token][..], &number, &[0]].concat() } else { [&[token, 0][..], &number].concat() };
    [&[0xE3][..], &u16::try_from(body.len()).unwrap().to_le_bytes(), &body, &done(0, 0)].concat()
}

/// Columns with the bytes of their types.
pub fn columns(all: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = vec![0x81];
    out.extend(u16::try_from(all.len()).unwrap().to_le_bytes());
    for (name, type_info) in all {
        // A user type, and that it may be NULL.
        out.extend([0, 0, 0, 0, 1, 0]);
        out.extend(*type_info);
        out.extend(short(name));
    }
    out
}

pub const INT: &[u8] = &[0x26, 4];
pub const BIGINT: &[u8] = &[0x26, 8];
pub const NVARCHAR: &[u8] = &[0xE7, 0x40, 0x1F, 9, 4, 0xD0, 0, 0x34];

/// A text of any length, in parts.
pub const NVARCHAR_MAX: &[u8] = &[0xE7, 0xFF, 0xFF, 9, 4, 0xD0, 0, 0x34];

/// A row of values as they are on the wire.
pub fn row(values: &[Vec<u8>]) -> Vec<u8> {
    [&[0xD1][..], &values.concat()].concat()
}

/// A value with its length before it.
pub fn bytes(value: &[u8]) -> Vec<u8> {
    [&[value.len() as u8][..], value].concat()
}

pub fn nvarchar(text: &str) -> Vec<u8> {
    let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    [&u16::try_from(units.len()).unwrap().to_le_bytes()[..], &units].concat()
}
