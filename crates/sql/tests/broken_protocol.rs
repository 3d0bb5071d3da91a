//! Servers that break their protocol: that is an error of the statement, and the next one has another connection.

#![allow(clippy::unwrap_used)]

mod statements;

use busbar_sql::{Options, Pools, Reason, Source, Value};
use statements::{all, run};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// A server on a free port: `serve` has a conversation with each client; `None` ends it.
fn start(serve: impl Fn(TcpStream) -> Option<()> + Send + Sync + Clone + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(stream));
        }
    });
    port
}

fn read(stream: &mut TcpStream, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

/// A message of PostgreSQL.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(u32::try_from(body.len()).unwrap() + 4).to_be_bytes(), body].concat()
}

/// What comes to a statement of PostgreSQL that has `broken` in its text, where a row of one number is described.
fn postgres(broken: Vec<u8>) -> u16 {
    start(move |mut stream| {
        let length = u32::from_be_bytes(read(&mut stream, 4)?.try_into().unwrap());
        read(&mut stream, length as usize - 4)?;
        let ready = message(b'Z', b"I");
        stream.write_all(&[message(b'R', &[0; 4]), ready.clone()].concat()).ok()?;
        let (mut text, mut kinds) = (Vec::new(), Vec::new());
        loop {
            let kind = read(&mut stream, 1)?[0];
            let length = u32::from_be_bytes(read(&mut stream, 4)?.try_into().unwrap());
            let body = read(&mut stream, length as usize - 4)?;
            kinds.push(kind);
            match kind {
                b'P' => text = body,
                b'Q' => stream.write_all(&[message(b'C', b"SET\0"), ready.clone()].concat()).ok()?,
                b'S' if kinds.contains(&b'P') => {
                    // A column of the type int4.
                    let column = [&b"a\0"[..], &[0; 6], &23_u32.to_be_bytes(), &[0, 4], &[0xFF; 4], &[0, 1]];
                    let columns = message(b'T', &[&[0, 1][..], &column.concat()].concat());
                    let parts = [message(b'1', &[]), message(b't', &[0, 0]), columns, ready.clone()];
                    stream.write_all(&parts.concat()).ok()?;
                }
                b'S' => {
                    let is_broken = text.windows(6).any(|part| part == b"broken");
                    let row = message(b'D', &[0, 1, 0, 0, 0, 4, 0, 0, 0, 7]);
                    let row = if is_broken { broken.clone() } else { row };
                    let end = [message(b'C', b"SELECT 1\0"), message(b'3', &[]), ready.clone()].concat();
                    stream.write_all(&[message(b'2', &[]), row, end].concat()).ok()?;
                }
                _ => {}
            }
            if matches!(kind, b'S' | b'Q') {
                kinds.clear();
            }
        }
    })
}

/// A packet of MySQL.
fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_le_bytes();
    [&length[..3], &[number], body].concat()
}

/// As [`postgres`], for MySQL.
fn mysql(broken: Vec<u8>) -> u16 {
    start(move |mut stream| {
        let mut greeting = vec![10];
        greeting.extend(b"8.0.0\0");
        greeting.extend([1, 0, 0, 0]);
        greeting.extend([b'x'; 8]);
        // CLIENT_PROTOCOL_41, CLIENT_SECURE_CONNECTION, CLIENT_PLUGIN_AUTH and CLIENT_DEPRECATE_EOF.
        greeting.extend([0, 0x00, 0x82, 45, 2, 0, 0x08, 0x01, 21]);
        greeting.extend([0; 10]);
        greeting.extend(b"xxxxxxxxxxxx\0mysql_native_password\0");
        stream.write_all(&packet(0, &greeting)).ok()?;
        let done = |number| packet(number, &[0, 0, 0, 2, 0, 0, 0]);
        let mut text = Vec::new();
        loop {
            let head = read(&mut stream, 4)?;
            let length = u32::from_le_bytes([head[0], head[1], head[2], 0]);
            let body = read(&mut stream, length as usize)?;
            let column =
                [&b"\x03def\0\0\0\x01a\x01a\x0c"[..], &[45, 0, 4, 0, 0, 0, 3, 0, 0, 0, 0, 0]].concat();
            match (head[3], body[0]) {
                // The answer to the greeting.
                (1, _) => stream.write_all(&done(2)).ok()?,
                (_, 3) if body[1..].starts_with(b"SELECT") => {
                    stream.write_all(&packet(1, b"\xff\x28\x04#42000no")).ok()?;
                }
                (_, 0x16) => {
                    text = body;
                    let prepared = packet(1, &[0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
                    stream.write_all(&[prepared, packet(2, &column)].concat()).ok()?;
                }
                (_, 0x17) => {
                    let is_broken = text.windows(6).any(|part| part == b"broken");
                    let row = packet(3, &[0, 0, 7, 0, 0, 0]);
                    let row = if is_broken { broken.clone() } else { row };
                    let parts =
                        [packet(1, &[1]), packet(2, &column), row, packet(4, &[0xFE, 0, 0, 2, 0, 0, 0])];
                    stream.write_all(&parts.concat()).ok()?;
                }
                // It is not answered that a prepared statement is closed.
                (_, 0x19) => {}
                _ => stream.write_all(&done(1)).ok()?,
            }
        }
    })
}

/// The error of a broken statement is one of the connection, and neither the next statement nor the pool suffers from it.
fn judge(name: &str, url: &str) {
    let options = Options { most: 1, query_timeout: Duration::from_secs(60), ..Options::default() };
    run(async {
        let pools = Pools::default();
        let pool = pools.get("Broken", Source::new(url, "bus", "", options, false).unwrap());
        for _ in 0..2 {
            let mut lease = pool.get().await.unwrap();
            let error = all(&mut lease, "select broken", &[]).await.unwrap_err();
            assert_eq!(error.reason, Reason::Interrupted, "{name}: {error}");
            drop(lease);
            let mut lease = pool.get().await.unwrap();
            let rows = all(&mut lease, "select a", &[]).await.unwrap();
            assert_eq!(rows, [[Value::Integer(7)]], "{name}");
        }
        assert_eq!(pool.status().in_use, 0, "{name}");
    });
}

#[test]
fn messages_of_postgresql() {
    for (name, broken) in [
        ("a message shorter than its length", b"D\0\0\0\x02".to_vec()),
        ("no values", message(b'D', &[0, 0])),
        ("a value beyond the message", message(b'D', &[0, 1, 0, 0, 0, 9, 1])),
        ("an end without a state", message(b'Z', &[])),
        ("an unknown message", message(b'!', &[])),
    ] {
        let url = format!("jdbc:postgresql://127.0.0.1:{}/d?sslmode=disable", postgres(broken));
        judge(name, &url);
    }
}

#[test]
fn packets_of_mysql() {
    for (name, broken) in [
        ("an empty packet", packet(3, &[])),
        ("a row without values", packet(3, &[0])),
        ("a value beyond the row", packet(3, &[0, 0, 7, 0])),
        ("an end without its fields", packet(3, &[0xFE, 0])),
        ("an error without a number", packet(3, &[0xFF])),
    ] {
        let url = format!("jdbc:mysql://127.0.0.1:{}/d?sslMode=DISABLED", mysql(broken));
        judge(name, &url);
    }
}
