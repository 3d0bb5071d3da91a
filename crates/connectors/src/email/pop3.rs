//! A mailbox by POP3 (RFC 1939). What is deleted goes when the conversation ends well.

use super::wire::Wire;
use super::{CREDENTIALS, Failure, Server};
use flow::Services;

/// Most messages of a mailbox.
const MOST: usize = 1_000_000;

/// A conversation with a server that knows the user.
pub(super) struct Session {
    wire: Wire,
}

impl Session {
    pub(super) async fn open(server: &Server, services: &Services) -> Result<Session, Failure> {
        let mut session = Session { wire: Wire::connect(server, services).await? };
        session.status().await?;
        if server.start_tls {
            session.ask("STLS").await?;
            session = Session { wire: session.wire.start_tls(server, services).await? };
        }
        let (user, password) = server.credentials().unwrap_or_default();
        for command in [format!("USER {user}"), format!("PASS {password}")] {
            if let Err(failure) = session.ask(&command).await {
                let refused = failure.detail.contains(": -ERR");
                return Err(if refused { failure.with(CREDENTIALS) } else { failure });
            }
        }
        Ok(session)
    }

    /// The numbers of the messages and their sizes.
    pub(super) async fn sizes(&mut self) -> Result<Vec<(u32, usize)>, Failure> {
        self.ask("LIST").await?;
        let mut sizes = Vec::new();
        loop {
            let line = self.wire.line().await?;
            if line == "." {
                return Ok(sizes);
            }
            let pair = line.split_once(' ');
            let pair =
                pair.and_then(|(number, size)| Some((number.parse().ok()?, size.trim().parse().ok()?)));
            match pair.filter(|_| sizes.len() < MOST) {
                Some(pair) => sizes.push(pair),
                None => return Err(self.wire.broken("what the server says is no POP3".to_owned())),
            }
        }
    }

    /// The header of a message.
    pub(super) async fn header(&mut self, number: u32, most: usize) -> Result<Vec<u8>, Failure> {
        self.ask(&format!("TOP {number} 0")).await?;
        self.lines(most).await
    }

    /// A message.
    pub(super) async fn message(&mut self, number: u32, most: usize) -> Result<Vec<u8>, Failure> {
        self.ask(&format!("RETR {number}")).await?;
        self.lines(most).await
    }

    pub(super) async fn delete(&mut self, number: u32) -> Result<(), Failure> {
        self.ask(&format!("DELE {number}")).await
    }

    /// Ends the conversation; from here on is deleted what was.
    pub(super) async fn quit(mut self) -> Result<(), Failure> {
        self.ask("QUIT").await
    }

    async fn ask(&mut self, command: &str) -> Result<(), Failure> {
        if command.contains(['\r', '\n', '\0']) {
            let why = "user name or password has a line end in it";
            return Err(Failure::new(CREDENTIALS, format!("{}: {why}", self.wire.peer())));
        }
        self.wire.send(format!("{command}\r\n").as_bytes()).await?;
        self.status().await
    }

    async fn status(&mut self) -> Result<(), Failure> {
        let line = self.wire.line().await?;
        match line.starts_with("+OK") {
            true => Ok(()),
            false => {
                let text: String = line.chars().take(200).filter(|c| !c.is_control()).collect();
                Err(self.wire.broken(text))
            }
        }
    }

    /// Lines up to a dot.
    async fn lines(&mut self, most: usize) -> Result<Vec<u8>, Failure> {
        let mut content = Vec::new();
        loop {
            let line = self.wire.raw_line().await?;
            let line = match line.strip_prefix(b".") {
                Some(b"") => return Ok(content),
                Some(rest) => rest,
                None => &line,
            };
            if content.len() + line.len() > most {
                return Err(self.wire.broken("a message is larger than the server said".to_owned()));
            }
            content.extend_from_slice(line);
            content.extend_from_slice(b"\r\n");
        }
    }
}
