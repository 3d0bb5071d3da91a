//! A backend that shows what it gets.
#![allow(dead_code)] // not every test uses all of it

use std::io::{Read, Write};
use std::net::TcpListener;

/// A backend that answers with the whole request that it got, head and body, as plain text.
pub fn mirror() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback can be bound");
    let address = listener.local_addr().expect("a bound listener has an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (mut request, mut chunk) = (Vec::new(), [0; 65536]);
            while !is_whole(&request) {
                match stream.read(&mut chunk) {
                    Ok(count) if count > 0 => request.extend_from_slice(&chunk[..count]),
                    _ => break,
                }
            }
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                request.len()
            );
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&request));
        }
    });
    format!("http://{address}")
}

/// Head and body of a request.
pub fn split(request: &[u8]) -> Option<(String, Vec<u8>)> {
    let at = request.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some((String::from_utf8_lossy(&request[..at]).into_owned(), request[at + 4..].to_vec()))
}

fn is_whole(request: &[u8]) -> bool {
    let Some((head, body)) = split(request) else { return false };
    match value(&head, "content-length") {
        Some(length) => length.parse().is_ok_and(|length: usize| body.len() >= length),
        None => value(&head, "transfer-encoding").is_none() || body.ends_with(b"0\r\n\r\n"),
    }
}

/// The value of a header field in a head.
pub fn value<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}
