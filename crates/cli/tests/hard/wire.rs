//! Bytes to a socket and the answer, read strictly: what is cut is an error.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// An answer that came in whole.
#[derive(Debug)]
pub struct WireResponse {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl WireResponse {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(field, _)| field.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// How long anything may take before it counts as silence.
pub const DEADLINE: Duration = Duration::from_secs(10);

pub fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Sends bytes on a connection of their own, closes the sending side if asked to, and reads the answer.
pub fn send(address: &str, bytes: &[u8], close: bool) -> io::Result<WireResponse> {
    let mut stream = connect(address);
    // The bus may refuse before it has read all.
    let _ = stream.write_all(bytes);
    if close {
        let _ = stream.shutdown(Shutdown::Write);
    }
    receive(&mut stream)
}

/// Reads one answer.
pub fn receive(stream: &mut TcpStream) -> io::Result<WireResponse> {
    receive_from(&mut BufReader::new(stream))
}

/// Reads one answer of several.
pub fn receive_from(mut reader: &mut impl BufRead) -> io::Result<WireResponse> {
    let line = line(reader)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("no status line: {line}")))?;
    let mut response = WireResponse { status, headers: fields(reader)?, body: Vec::new() };
    let length = response.header("Content-Length").map(|length| length.parse().unwrap());
    match (length, response.header("Transfer-Encoding")) {
        _ if status == 204 || status == 304 => {}
        (Some(length), _) => {
            response.body.resize(length, 0);
            reader.read_exact(&mut response.body)?;
        }
        (None, Some(_)) => response.body = chunks(&mut reader)?,
        (None, None) => {
            reader.read_to_end(&mut response.body)?;
        }
    }
    Ok(response)
}

pub fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    match line.strip_suffix("\r\n") {
        Some(line) => Ok(line.to_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

pub fn fields(reader: &mut impl BufRead) -> io::Result<Vec<(String, String)>> {
    let mut fields = Vec::new();
    loop {
        let line = line(reader)?;
        let Some((name, value)) = line.split_once(':') else { return Ok(fields) };
        fields.push((name.to_owned(), value.trim().to_owned()));
    }
}

pub fn chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = usize::from_str_radix(&line(reader)?, 16).map_err(io::Error::other)?;
        let start = body.len();
        body.resize(start + size, 0);
        reader.read_exact(&mut body[start..])?;
        if !line(reader)?.is_empty() {
            return Err(io::Error::other("a chunk does not end"));
        }
        if size == 0 {
            return Ok(body);
        }
    }
}
