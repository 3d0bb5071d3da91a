//! HTTP/1.1 of the simulated clients and backends: reads and writes messages, and shares no code with the transport.

use crate::network::End;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Duration;
use transport::simulation::Wire;

/// A connection with what was read ahead.
pub struct Peer {
    pub end: Arc<End>,
    /// Rests for so long behind each piece that it reads.
    pub pace: Duration,
    buffer: Vec<u8>,
}

/// A message: its start line, fields and body.
#[derive(Clone, Debug, Default)]
pub struct Message {
    pub start: String,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Message {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    pub fn status(&self) -> u16 {
        self.start.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Whether the peer said that it closes the connection behind this message.
    pub fn closes(&self) -> bool {
        self.field("Connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// Why a message could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// The connection ended before its first byte.
    Closed,
    /// It was reset, or ended in the middle.
    Broken(#[allow(dead_code, reason = "shown")] io::ErrorKind),
    /// It is not HTTP.
    Malformed(#[allow(dead_code, reason = "shown")] String),
}

/// Sends all of it.
pub async fn write(end: &End, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = poll_fn(|cx| end.poll_write(cx, &[IoSlice::new(bytes)])).await?;
        bytes = &bytes[count..];
    }
    Ok(())
}

impl Peer {
    pub fn new(end: Arc<End>) -> Peer {
        Peer { end, pace: Duration::ZERO, buffer: Vec::new() }
    }

    /// Bytes that were read ahead of any message.
    pub fn ahead(&self) -> &[u8] {
        &self.buffer
    }

    pub async fn write(&self, bytes: &[u8]) -> io::Result<()> {
        write(&self.end, bytes).await
    }

    /// Reads some; `false`: the end.
    async fn fill(&mut self) -> io::Result<bool> {
        let mut piece = [0; 16 * 1024];
        let count = poll_fn(|cx| self.end.poll_read(cx, &mut piece)).await?;
        self.buffer.extend_from_slice(&piece[..count]);
        if !self.pace.is_zero() {
            tokio::time::sleep(self.pace).await;
        }
        Ok(count > 0)
    }

    async fn more(&mut self) -> Result<(), ReadError> {
        match self.fill().await {
            Ok(true) => Ok(()),
            Ok(false) => Err(ReadError::Broken(io::ErrorKind::UnexpectedEof)),
            Err(error) => Err(ReadError::Broken(error.kind())),
        }
    }

    /// Reads a start line and fields.
    pub async fn read_head(&mut self) -> Result<Message, ReadError> {
        let end = loop {
            if let Some(at) = memchr::memmem::find(&self.buffer, b"\r\n\r\n") {
                break at;
            }
            if self.buffer.is_empty() {
                match self.fill().await {
                    Ok(true) => continue,
                    Ok(false) => return Err(ReadError::Closed),
                    Err(error) => return Err(ReadError::Broken(error.kind())),
                }
            }
            self.more().await?;
        };
        let head = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
        self.buffer.drain(..end + 4);
        let mut lines = head.split("\r\n");
        let start = lines.next().unwrap_or_default().to_owned();
        let mut fields = Vec::new();
        for line in lines {
            let Some((name, value)) = line.split_once(':') else {
                return Err(ReadError::Malformed(format!(
                    "a field without a colon: {line:?} after {start:?}"
                )));
            };
            fields.push((name.to_owned(), value.trim().to_owned()));
        }
        Ok(Message { start, fields, body: Vec::new() })
    }

    /// Reads the body behind a head. `request`: without a length there is none.
    pub async fn read_body(&mut self, message: &mut Message, request: bool) -> Result<(), ReadError> {
        let length = message.field("Content-Length").map(str::to_owned);
        if message.field("Transfer-Encoding").is_some() {
            if length.is_some() {
                return Err(ReadError::Malformed("two lengths".to_owned()));
            }
            return self.read_chunks(message).await;
        }
        match length {
            Some(length) => {
                let length: usize =
                    length.parse().map_err(|_| ReadError::Malformed(format!("Content-Length: {length}")))?;
                while self.buffer.len() < length {
                    self.more().await?;
                }
                message.body = self.buffer.drain(..length).collect();
            }
            None if request || matches!(message.status(), 204 | 304) => {}
            None => loop {
                match self.fill().await {
                    Ok(true) => {}
                    Ok(false) => {
                        message.body = std::mem::take(&mut self.buffer);
                        break;
                    }
                    Err(error) => return Err(ReadError::Broken(error.kind())),
                }
            },
        }
        Ok(())
    }

    async fn read_chunks(&mut self, message: &mut Message) -> Result<(), ReadError> {
        loop {
            let line = self.read_line().await?;
            let size = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16)
                .map_err(|_| ReadError::Malformed(format!("a chunk of size {line:?}")))?;
            if size == 0 {
                while !self.read_line().await?.is_empty() {}
                return Ok(());
            }
            while self.buffer.len() < size + 2 {
                self.more().await?;
            }
            message.body.extend(self.buffer.drain(..size));
            if self.buffer.drain(..2).collect::<Vec<_>>() != b"\r\n" {
                return Err(ReadError::Malformed("a chunk without its line end".to_owned()));
            }
        }
    }

    async fn read_line(&mut self) -> Result<String, ReadError> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|two| two == b"\r\n") {
                let line = String::from_utf8_lossy(&self.buffer[..at]).into_owned();
                self.buffer.drain(..at + 2);
                return Ok(line);
            }
            self.more().await?;
        }
    }
}
