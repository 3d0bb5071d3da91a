//! Sending by SMTP (RFC 5321), with STARTTLS (RFC 3207) and AUTH (RFC 4954).

use super::oauth::shown;
use super::wire::{SHORT, Wire};
use super::{CONNECTIVITY, CREDENTIALS, Converse, Failure, Login, Server};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flow::Services;
use std::time::Duration;

/// How long a connection that was idle may take to answer NOOP.
const ALIVE: Duration = Duration::from_secs(5);

/// A session that is ready for a message.
pub(super) struct Session {
    wire: Wire,
    /// The extensions of the server, in upper case.
    can: Vec<String>,
}

/// An e-mail with its envelope.
pub(super) struct Letter {
    /// The return path.
    pub from: String,
    /// The recipients.
    pub to: Vec<String>,
    /// Header and body; lines end with CR LF.
    pub content: Vec<u8>,
}

/// A reply of a server.
struct Reply {
    code: u16,
    lines: Vec<String>,
}

impl Reply {
    /// The text for messages.
    fn text(&self) -> String {
        let text = self.lines.join(" ");
        let text: String = text.chars().take(500).map(|c| if c.is_control() { '?' } else { c }).collect();
        format!("{} {text}", self.code)
    }
}

impl Converse for Session {
    async fn open(server: &Server, login: Login<'_>, services: &Services) -> Result<Session, Failure> {
        let mut session = Session { wire: Wire::connect(server, services).await?, can: Vec::new() };
        let greeting = session.reply().await?;
        session.expect(greeting, &[220])?;
        session.hello().await?;
        if server.start_tls {
            if !session.can("STARTTLS") {
                return Err(session.wire.broken("the server has no STARTTLS".to_owned()));
            }
            let reply = session.ask("STARTTLS").await?;
            session.expect(reply, &[220])?;
            let wire = session.wire.start_tls(server, services).await?;
            session = Session { wire, can: Vec::new() };
            session.hello().await?;
        }
        match login {
            Login::Nobody => {}
            Login::Password(user, password) => session.authenticate(user, password).await?,
            Login::Token(user, token) => session.show_token(user, token).await?,
        }
        Ok(session)
    }
}

impl Session {
    /// Whether an idle connection still works.
    pub(super) async fn is_alive(&mut self) -> bool {
        let before = self.wire.patience(ALIVE);
        let alive = matches!(self.ask("RSET").await, Ok(reply) if reply.code == 250);
        self.wire.patience(before);
        alive
    }

    /// Sends a message to all recipients, or to none.
    pub(super) async fn send(&mut self, letter: &Letter) -> Result<(), Failure> {
        let wide = letter.to.iter().chain([&letter.from]).any(|address| !address.is_ascii());
        let utf8 = match (wide, self.can("SMTPUTF8")) {
            (false, _) => "",
            (true, true) => " SMTPUTF8",
            (true, false) => {
                let why = "the server takes no addresses beyond ASCII (SMTPUTF8)".to_owned();
                return Err(self.wire.broken(why));
            }
        };
        let reply = self.ask(&format!("MAIL FROM:<{}>{utf8}", letter.from)).await?;
        self.expect(reply, &[250])?;
        for to in &letter.to {
            let reply = self.ask(&format!("RCPT TO:<{to}>")).await?;
            self.expect(reply, &[250, 251, 252])?;
        }
        let reply = self.ask("DATA").await?;
        self.expect(reply, &[354])?;
        self.wire.send(&stuffed(&letter.content)).await?;
        let reply = self.reply().await?;
        self.expect(reply, &[250])
    }

    async fn hello(&mut self) -> Result<(), Failure> {
        let name = host_name();
        let mut reply = self.ask(&format!("EHLO {name}")).await?;
        // Code 421 ends the session, whatever the command was (RFC 5321, 3.8).
        if !matches!(reply.code, 250 | 421) {
            reply = self.ask(&format!("HELO {name}")).await?;
        }
        self.can = reply.lines.iter().skip(1).map(|line| line.to_ascii_uppercase()).collect();
        self.expect(reply, &[250])
    }

    fn can(&self, keyword: &str) -> bool {
        self.can.iter().any(|line| line.split([' ', '=']).next() == Some(keyword))
    }

    async fn show_token(&mut self, user: &str, token: &str) -> Result<(), Failure> {
        let mut reply = self.ask(&format!("AUTH XOAUTH2 {}", shown(user, token))).await?;
        if reply.code == 334 {
            // A second challenge has the error, and an empty line acknowledges it.
            reply = self.ask("").await?;
        }
        match reply.code {
            235 => Ok(()),
            _ => Err(Failure::new(CREDENTIALS, format!("{}: {}", self.wire.peer(), reply.text()))),
        }
    }

    async fn authenticate(&mut self, user: &str, password: &str) -> Result<(), Failure> {
        let ways: Vec<&str> = self
            .can
            .iter()
            .filter(|line| line.starts_with("AUTH"))
            .flat_map(|line| line[4..].split([' ', '=']))
            .collect();
        let reply = if ways.contains(&"PLAIN") {
            let credentials = STANDARD.encode(format!("\0{user}\0{password}"));
            self.ask(&format!("AUTH PLAIN {credentials}")).await?
        } else if ways.contains(&"LOGIN") {
            let mut reply = self.ask("AUTH LOGIN").await?;
            for word in [user, password] {
                if reply.code == 334 {
                    reply = self.ask(&STANDARD.encode(word)).await?;
                }
            }
            reply
        } else if ways.is_empty() {
            // A server that does not offer AUTH gets no credentials.
            return Ok(());
        } else {
            let why = format!("{}: the server knows no AUTH PLAIN and no AUTH LOGIN", self.wire.peer());
            return Err(Failure::new(CREDENTIALS, why));
        };
        match reply.code {
            235 => Ok(()),
            _ => Err(Failure::new(CREDENTIALS, format!("{}: {}", self.wire.peer(), reply.text()))),
        }
    }

    async fn ask(&mut self, command: &str) -> Result<Reply, Failure> {
        // A value must not end its command.
        if command.contains(['\r', '\n', '\0']) {
            return Err(self.wire.broken("an address has a line end in it".to_owned()));
        }
        self.wire.send(format!("{command}\r\n").as_bytes()).await?;
        self.reply().await
    }

    async fn reply(&mut self) -> Result<Reply, Failure> {
        let (mut lines, mut left) = (Vec::new(), SHORT);
        loop {
            let line = self.wire.line(left).await?;
            left = left.saturating_sub(line.len() + 64);
            let Some(code) = line.get(..3).and_then(|code| code.parse().ok()) else {
                return Err(self.wire.broken("the answer of the server is not SMTP".to_owned()));
            };
            lines.push(line.get(4..).unwrap_or_default().to_owned());
            if line.as_bytes().get(3) != Some(&b'-') {
                return Ok(Reply { code, lines });
            }
        }
    }

    fn expect(&self, reply: Reply, codes: &[u16]) -> Result<(), Failure> {
        match reply.code {
            code if codes.contains(&code) => Ok(()),
            // Authentication is required or failed.
            530 | 534 | 535 | 538 => {
                Err(Failure::new(CREDENTIALS, format!("{}: {}", self.wire.peer(), reply.text())))
            }
            _ => Err(Failure::new(CONNECTIVITY, format!("{}: {}", self.wire.peer(), reply.text()))),
        }
    }
}

/// The content with dot-stuffing and the final dot.
fn stuffed(content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + content.len() / 64 + 8);
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b".") {
            out.push(b'.');
        }
        match line.strip_suffix(b"\n") {
            Some(rest) => {
                out.extend_from_slice(rest.strip_suffix(b"\r").unwrap_or(rest));
                out.extend_from_slice(b"\r\n");
            }
            None => {
                out.extend_from_slice(line);
                out.extend_from_slice(b"\r\n");
            }
        }
    }
    out.extend_from_slice(b".\r\n");
    out
}

/// The name of this machine.
pub(super) fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    let is_name =
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'));
    if is_name { name.to_owned() } else { "localhost".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_doubled_and_lines_end() {
        for (content, wanted) in
            [("a\r\n.b\r\n", "a\r\n..b\r\n.\r\n"), ("a\n.\nb", "a\r\n..\r\nb\r\n.\r\n"), ("", ".\r\n")]
        {
            assert_eq!(String::from_utf8(stuffed(content.as_bytes())).unwrap(), wanted);
        }
    }
}
