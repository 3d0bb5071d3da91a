//! A mailbox by POP3 (RFC 1939). Deleted messages are removed by QUIT.

use super::oauth::shown;
use super::wire::{SHORT, Wire};
use super::{CREDENTIALS, Converse, Failure, Login, Server};
use flow::Services;

/// Most messages of a mailbox.
const MOST: usize = 1_000_000;

/// A session in the transaction state.
pub(super) struct Session {
    wire: Wire,
}

impl Converse for Session {
    async fn open(server: &Server, login: Login<'_>, services: &Services) -> Result<Session, Failure> {
        let mut session = Session { wire: Wire::connect(server, services).await? };
        session.status().await?;
        if server.start_tls {
            session.ask("STLS").await?;
            session = Session { wire: session.wire.start_tls(server, services).await? };
        }
        let (user, password) = match login {
            Login::Token(user, token) => {
                session.show_token(user, token).await?;
                return Ok(session);
            }
            Login::Password(user, password) => (user, password),
            Login::Nobody => ("", ""),
        };
        for command in [format!("USER {user}"), format!("PASS {password}")] {
            session.ask(&command).await.map_err(refused)?;
        }
        Ok(session)
    }
}

impl Session {
    /// In two steps (RFC 5034), since some servers accept the initial response only after the mechanism.
    async fn show_token(&mut self, user: &str, token: &str) -> Result<(), Failure> {
        for (command, wanted) in [("AUTH XOAUTH2", "+"), (&shown(user, token), "+OK")] {
            self.wire.send(format!("{command}\r\n").as_bytes()).await?;
            let mut line = self.wire.line(SHORT).await?;
            if wanted == "+OK" && line.starts_with("+ ") {
                // A second challenge has the error, and an empty line acknowledges it.
                self.wire.send(b"\r\n").await?;
                line = self.wire.line(SHORT).await?;
            }
            if !line.starts_with(wanted) {
                return Err(refused(self.wire.broken(printable(&line))));
            }
        }
        Ok(())
    }

    /// The numbers of the messages and their sizes.
    pub(super) async fn sizes(&mut self) -> Result<Vec<(u32, usize)>, Failure> {
        self.ask("LIST").await?;
        let mut sizes = Vec::new();
        loop {
            let line = self.wire.line(SHORT).await?;
            if line == "." {
                return Ok(sizes);
            }
            let pair = line.split_once(' ');
            let pair =
                pair.and_then(|(number, size)| Some((number.parse().ok()?, size.trim().parse().ok()?)));
            match pair.filter(|_| sizes.len() < MOST) {
                Some(pair) => sizes.push(pair),
                None => return Err(self.wire.broken("the answer of the server is not POP3".to_owned())),
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

    /// Ends the session with QUIT, which removes the deleted messages.
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
        let line = self.wire.line(SHORT).await?;
        match line.starts_with("+OK") {
            true => Ok(()),
            false => Err(self.wire.broken(printable(&line))),
        }
    }

    /// The lines of a multi-line response, up to the dot.
    async fn lines(&mut self, most: usize) -> Result<Vec<u8>, Failure> {
        let mut content = Vec::new();
        loop {
            let line = self.wire.raw_line(most.saturating_sub(content.len()).saturating_add(64)).await?;
            let line = match line.strip_prefix(b".") {
                Some(b"") => return Ok(content),
                Some(rest) => rest,
                None => &line,
            };
            // Empty lines count with their ends.
            if content.len() + line.len() + 2 > most {
                return Err(self.wire.broken("a message is larger than the server said".to_owned()));
            }
            content.extend_from_slice(line);
            content.extend_from_slice(b"\r\n");
        }
    }
}

/// A line of a server without control characters, for a message.
fn printable(line: &str) -> String {
    line.chars().take(200).filter(|c| !c.is_control()).collect()
}

/// The failure of a login: with -ERR the credentials are wrong, otherwise the connection failed.
fn refused(failure: Failure) -> Failure {
    if failure.detail.contains(": -ERR") { failure.with(CREDENTIALS) } else { failure }
}
