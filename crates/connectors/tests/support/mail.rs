//! A mail server of the tests: SMTP, IMAP and POP3 over one mailbox, plain or with TLS.

use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What the server does that it should not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mood {
    /// Nothing.
    Good,
    /// It accepts and says nothing.
    Silent,
    /// It greets and closes.
    Closes,
    /// It closes each connection after one conversation's work.
    Forgetful,
    /// It takes no recipient whose name begins with `no`.
    Picky,
}

#[derive(Clone, Debug)]
pub struct Message {
    pub uid: u32,
    pub flags: Vec<String>,
    pub content: String,
    pub received: &'static str,
}

#[derive(Default, Debug)]
pub struct Mailbox {
    pub messages: Vec<Message>,
    /// Envelopes and contents that were sent.
    pub sent: Vec<(String, Vec<String>, String)>,
    pub connections: usize,
    /// Commands, without credentials.
    pub commands: Vec<String>,
    /// The access token that is good.
    pub token: String,
}

pub struct Server {
    pub port: u16,
    pub mailbox: Arc<Mutex<Mailbox>>,
    /// The certificate, for who trusts it.
    pub certificate: CertificateDer<'static>,
}

pub const USER: &str = "ann@example.org";
pub const PASSWORD: &str = "se\"cret";

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A server that says what it is told to, whatever it is asked: each text after a line that it hears, the first one at once. `pause` is
/// between the parts of one, which `|` divides.
pub fn scripted(script: Vec<String>, pause: Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(mut stream), script) = (stream, script.clone()) else { continue };
            thread::spawn(move || {
                stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap());
                for (at, step) in script.iter().enumerate() {
                    let mut line = String::new();
                    if at > 0 && lines.read_line(&mut line).unwrap_or(0) == 0 {
                        return;
                    }
                    for part in step.split_inclusive('|') {
                        if stream.write_all(part.trim_end_matches('|').as_bytes()).is_err() {
                            return;
                        }
                        thread::sleep(pause);
                    }
                }
            });
        }
    });
    port
}

/// A server of tokens: each answer once, the last one from then on. `status body`.
pub fn tokens(answers: &'static [&'static str]) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&requests);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                if lines.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                    break;
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            if lines.read_exact(&mut body).is_err() {
                continue;
            }
            let count = {
                let mut requests = shared.lock().unwrap();
                requests.push(String::from_utf8(body).unwrap());
                requests.len()
            };
            let (status, body) = answers[(count - 1).min(answers.len() - 1)].split_once(' ').unwrap();
            let length = body.len();
            let _ = stream.write_all(
                format!("HTTP/1.1 {status} x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
                    .as_bytes(),
            );
        }
    });
    (port, requests)
}

/// Starts a server: `smtp`, `smtps`, `imap`, `imaps`, `pop3`, `pop3s`.
pub fn start(protocol: &'static str, mood: Mood) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mailbox = Arc::new(Mutex::new(Mailbox::default()));
    let generated = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = generated.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(generated.signing_key.serialize_der());
    let config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key.into())
            .unwrap();
    let (config, shared) = (Arc::new(config), Arc::clone(&mailbox));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { continue };
            let (config, mailbox) = (Arc::clone(&config), Arc::clone(&shared));
            mailbox.lock().unwrap().connections += 1;
            thread::spawn(move || {
                stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                let mut conversation = Conversation { mailbox, mood, secure: false };
                let plain = protocol.trim_end_matches('s');
                if mood == Mood::Silent {
                    thread::sleep(Duration::from_secs(20));
                    return;
                }
                if protocol.ends_with('s') {
                    conversation.secure = true;
                    let stream = secured(stream, &config);
                    conversation.speak(plain, BufReader::new(stream), true);
                } else if let Some(reader) =
                    conversation.speak(plain, BufReader::new(Box::new(stream.try_clone().unwrap())), true)
                {
                    // It asked for TLS.
                    drop(reader);
                    conversation.secure = true;
                    let stream = secured(stream, &config);
                    conversation.speak(plain, BufReader::new(stream), false);
                }
            });
        }
    });
    Server { port, mailbox, certificate }
}

fn secured(stream: TcpStream, config: &Arc<rustls::ServerConfig>) -> Box<dyn Stream> {
    let connection = rustls::ServerConnection::new(Arc::clone(config)).unwrap();
    Box::new(rustls::StreamOwned::new(connection, stream))
}

impl Server {
    /// Puts a message into the mailbox.
    pub fn deliver(&self, content: &str, flags: &[&str], received: &'static str) {
        let mut mailbox = self.mailbox.lock().unwrap();
        let uid = 10 + u32::try_from(mailbox.messages.len()).unwrap();
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        mailbox.messages.push(Message { uid, flags, content: content.replace('\n', "\r\n"), received });
    }

    pub fn uids(&self) -> Vec<u32> {
        self.mailbox.lock().unwrap().messages.iter().map(|m| m.uid).collect()
    }
}

struct Conversation {
    mailbox: Arc<Mutex<Mailbox>>,
    mood: Mood,
    secure: bool,
}

type Reader = BufReader<Box<dyn Stream>>;

fn say(reader: &mut Reader, line: &str) -> Option<()> {
    let stream = reader.get_mut();
    stream.write_all(format!("{line}\r\n").as_bytes()).ok()?;
    stream.flush().ok()
}

fn hear(reader: &mut Reader) -> Option<String> {
    let mut line = String::new();
    (reader.read_line(&mut line).ok()? > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
}

impl Conversation {
    fn speak(&self, protocol: &str, mut reader: Reader, greets: bool) -> Option<Reader> {
        let goes_on = match protocol {
            "smtp" => self.smtp(&mut reader, greets),
            "imap" => self.imap(&mut reader, greets),
            _ => self.pop3(&mut reader, greets),
        };
        goes_on.map(|()| reader)
    }

    /// Whether SASL XOAUTH2 shows the user and the good token.
    fn knows(&self, shown: &str) -> bool {
        use base64::Engine;
        let shown = base64::engine::general_purpose::STANDARD.decode(shown).unwrap_or_default();
        let token = self.mailbox.lock().unwrap().token.clone();
        !token.is_empty() && shown == format!("user={USER}\x01auth=Bearer {token}\x01\x01").as_bytes()
    }

    fn note(&self, command: &str) {
        self.mailbox.lock().unwrap().commands.push(command.to_owned());
    }

    /// `Some`: it goes on with TLS.
    fn smtp(&self, reader: &mut Reader, greets: bool) -> Option<()> {
        use base64::Engine;
        if greets {
            say(reader, "220 localhost ESMTP")?;
        }
        if self.mood == Mood::Closes {
            return None;
        }
        let (mut from, mut to, mut logged_in) = (String::new(), Vec::new(), false);
        loop {
            let line = hear(reader)?;
            let verb = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
            self.note(&verb);
            match verb.as_str() {
                "EHLO" if self.secure => {
                    say(reader, "250-localhost\r\n250-8BITMIME\r\n250 AUTH PLAIN LOGIN")?
                }
                "EHLO" => say(reader, "250-localhost\r\n250-STARTTLS\r\n250 AUTH LOGIN")?,
                "STARTTLS" => {
                    say(reader, "220 go on")?;
                    return Some(());
                }
                "AUTH" if line.starts_with("AUTH XOAUTH2 ") => {
                    logged_in = self.knows(&line["AUTH XOAUTH2 ".len()..]);
                    if !logged_in {
                        say(reader, "334 eyJzdGF0dXMiOiI0MDAifQ==")?;
                        assert_eq!(hear(reader)?, "");
                    }
                    say(reader, if logged_in { "235 welcome" } else { "535 5.7.8 bad token" })?;
                }
                "AUTH" => {
                    let decode = |text: &str| {
                        let bytes =
                            base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default();
                        String::from_utf8_lossy(&bytes).into_owned()
                    };
                    let (user, password) = if let Some(coded) = line.strip_prefix("AUTH PLAIN ") {
                        let decoded = decode(coded);
                        let mut parts = decoded.split('\0').skip(1).map(str::to_owned);
                        (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
                    } else {
                        say(reader, "334 VXNlcm5hbWU6")?;
                        let user = decode(&hear(reader)?);
                        say(reader, "334 UGFzc3dvcmQ6")?;
                        (user, decode(&hear(reader)?))
                    };
                    logged_in = user == USER && password == PASSWORD;
                    say(reader, if logged_in { "235 welcome" } else { "535 5.7.8 bad credentials" })?;
                }
                "MAIL" if !logged_in => say(reader, "530 5.7.0 authentication required")?,
                "MAIL" => {
                    from = line.clone();
                    to.clear();
                    say(reader, "250 ok")?;
                }
                "RCPT" if self.mood == Mood::Picky && line.contains("<no") => {
                    say(reader, "550 5.1.1 no such user")?
                }
                "RCPT" => {
                    to.push(line["RCPT TO:".len()..].to_owned());
                    say(reader, "250 ok")?;
                }
                "DATA" => {
                    say(reader, "354 go on")?;
                    let mut content = String::new();
                    loop {
                        let line = hear(reader)?;
                        if line == "." {
                            break;
                        }
                        content.push_str(line.strip_prefix('.').unwrap_or(&line));
                        content.push_str("\r\n");
                    }
                    self.mailbox.lock().unwrap().sent.push((from.clone(), to.clone(), content));
                    say(reader, "250 queued")?;
                    if self.mood == Mood::Forgetful {
                        return None;
                    }
                }
                _ => say(reader, "250 ok")?,
            }
        }
    }

    fn imap(&self, reader: &mut Reader, greets: bool) -> Option<()> {
        if greets {
            say(reader, "* OK IMAP4rev1 ready")?;
        }
        if self.mood == Mood::Closes {
            return None;
        }
        let mut logged_in = false;
        loop {
            let line = hear(reader)?;
            let (tag, command) = line.split_once(' ')?;
            let (verb, rest) = command.split_once(' ').unwrap_or((command, ""));
            self.note(if matches!(verb, "LOGIN" | "AUTHENTICATE") { verb } else { command });
            let ok = format!("{tag} OK done");
            match verb {
                "CAPABILITY" => {
                    let more = if self.secure { "UIDPLUS SASL-IR" } else { "STARTTLS UIDPLUS" };
                    say(reader, &format!("* CAPABILITY IMAP4rev1 {more}\r\n{ok}"))?;
                }
                "STARTTLS" => {
                    say(reader, &ok)?;
                    return Some(());
                }
                "LOGIN" => {
                    logged_in = rest == format!("\"{USER}\" \"{}\"", PASSWORD.replace('"', "\\\""));
                    say(reader, &if logged_in { ok } else { format!("{tag} NO [AUTHENTICATIONFAILED] no") })?;
                }
                "AUTHENTICATE" => {
                    let shown = match rest.strip_prefix("XOAUTH2 ") {
                        Some(shown) => shown.to_owned(),
                        None => {
                            say(reader, "+ ")?;
                            hear(reader)?
                        }
                    };
                    logged_in = self.knows(&shown);
                    if !logged_in {
                        say(reader, "+ eyJzdGF0dXMiOiI0MDAifQ==")?;
                        assert_eq!(hear(reader)?, "");
                    }
                    say(
                        reader,
                        &if logged_in { ok } else { format!("{tag} NO [AUTHENTICATIONFAILED] bad token") },
                    )?;
                }
                "NOOP" => say(reader, &ok)?,
                _ if !logged_in => say(reader, &format!("{tag} BAD log in first"))?,
                "SELECT" | "EXAMINE" => {
                    let count = self.mailbox.lock().unwrap().messages.len();
                    let found = ["\"INBOX\"", "\"Entw&APw-rfe\""].contains(&rest);
                    say(
                        reader,
                        &match found {
                            true => format!("* {count} EXISTS\r\n* FLAGS (\\Seen)\r\n{ok}"),
                            false => format!("{tag} NO no such mailbox"),
                        },
                    )?;
                }
                "EXPUNGE" => {
                    self.mailbox
                        .lock()
                        .unwrap()
                        .messages
                        .retain(|m| !m.flags.contains(&"\\Deleted".to_owned()));
                    say(reader, &ok)?;
                }
                "UID" => {
                    let (verb, rest) = rest.split_once(' ')?;
                    let responses = self.uid(verb, rest);
                    say(reader, &format!("{responses}{ok}"))?;
                    if self.mood == Mood::Forgetful {
                        return None;
                    }
                }
                _ => say(reader, &format!("{tag} BAD what"))?,
            }
        }
    }

    fn uid(&self, verb: &str, rest: &str) -> String {
        let mut mailbox = self.mailbox.lock().unwrap();
        let chosen = |set: &str, uid: u32| {
            set.split(',').any(|range| match range.split_once(':') {
                Some((from, to)) => (from.parse().unwrap()..=to.parse().unwrap()).contains(&uid),
                None => range.parse() == Ok(uid),
            })
        };
        let set = rest.split(' ').next().unwrap_or_default().to_owned();
        match verb {
            "SEARCH" => {
                let found =
                    mailbox.messages.iter().filter(|message| match rest.strip_prefix("HEADER Message-ID ") {
                        Some(id) => {
                            message.content.contains(&format!("Message-ID: {}", id.trim_matches('"')))
                        }
                        None => rest.split(' ').all(|own_flag| match own_flag {
                            "ALL" => true,
                            "UNSEEN" => !message.flags.contains(&"\\Seen".to_owned()),
                            "SEEN" => message.flags.contains(&"\\Seen".to_owned()),
                            "UNDELETED" => !message.flags.contains(&"\\Deleted".to_owned()),
                            "ANSWERED" => message.flags.contains(&"\\Answered".to_owned()),
                            "UNANSWERED" => !message.flags.contains(&"\\Answered".to_owned()),
                            "RECENT" => message.flags.contains(&"\\Recent".to_owned()),
                            "OLD" => !message.flags.contains(&"\\Recent".to_owned()),
                            _ => false,
                        }),
                    });
                let found: Vec<String> = found.map(|message| message.uid.to_string()).collect();
                format!("* SEARCH {}\r\n", found.join(" "))
            }
            "STORE" => {
                let flag = rest.rsplit_once('(').unwrap().1.trim_end_matches(')').to_owned();
                for message in mailbox.messages.iter_mut().filter(|message| chosen(&set, message.uid)) {
                    message.flags.push(flag.clone());
                }
                String::new()
            }
            "EXPUNGE" => {
                mailbox
                    .messages
                    .retain(|m| !(chosen(&set, m.uid) && m.flags.contains(&"\\Deleted".to_owned())));
                String::new()
            }
            _ => {
                let mut out = String::new();
                for (at, message) in
                    mailbox.messages.iter().enumerate().filter(|(_, message)| chosen(&set, message.uid))
                {
                    let header =
                        message.content.split("\r\n\r\n").next().unwrap_or_default().to_owned() + "\r\n\r\n";
                    let facts = if rest.contains("RFC822.SIZE") {
                        format!("RFC822.SIZE {}", message.content.len())
                    } else if rest.contains("BODY.PEEK[HEADER]") {
                        format!(
                            "INTERNALDATE \"{}\" BODY[HEADER] {{{}}}\r\n{header}",
                            message.received,
                            header.len()
                        )
                    } else {
                        format!("BODY[] {{{}}}\r\n{}", message.content.len(), message.content)
                    };
                    out.push_str(&format!("* {} FETCH (UID {} {facts})\r\n", at + 1, message.uid));
                }
                out
            }
        }
    }

    fn pop3(&self, reader: &mut Reader, greets: bool) -> Option<()> {
        if greets {
            say(reader, "+OK POP3 ready")?;
        }
        if self.mood == Mood::Closes {
            return None;
        }
        let (mut user, mut logged_in, mut gone) = (String::new(), false, Vec::new());
        loop {
            let line = hear(reader)?;
            let mut words = line.split(' ');
            let verb = words.next().unwrap_or_default();
            let number = words.next().and_then(|word| word.parse::<usize>().ok()).unwrap_or(1) - 1;
            self.note(verb);
            let messages = self.mailbox.lock().unwrap().messages.clone();
            let stuffed = |text: &str| text.replace("\r\n.", "\r\n..");
            match verb {
                "STLS" => {
                    say(reader, "+OK")?;
                    return Some(());
                }
                "AUTH" => {
                    assert_eq!(line, "AUTH XOAUTH2");
                    say(reader, "+")?;
                    let shown = hear(reader)?;
                    logged_in = self.knows(&shown);
                    if !logged_in {
                        say(reader, "+ eyJzdGF0dXMiOiI0MDAifQ==")?;
                        assert_eq!(hear(reader)?, "");
                    }
                    say(reader, if logged_in { "+OK" } else { "-ERR bad token" })?;
                }
                "USER" => {
                    user = line[5..].to_owned();
                    say(reader, "+OK")?;
                }
                "PASS" => {
                    logged_in = user == USER && line[5..] == *PASSWORD;
                    say(reader, if logged_in { "+OK" } else { "-ERR no" })?;
                }
                "QUIT" => {
                    let mut at = 0;
                    self.mailbox.lock().unwrap().messages.retain(|_| {
                        at += 1;
                        !gone.contains(&(at - 1))
                    });
                    say(reader, "+OK")?;
                    return None;
                }
                _ if !logged_in => say(reader, "-ERR log in first")?,
                "LIST" => {
                    let sizes = messages.iter().enumerate();
                    let lines: String =
                        sizes.map(|(at, m)| format!("{} {}\r\n", at + 1, m.content.len())).collect();
                    say(reader, &format!("+OK\r\n{lines}."))?;
                }
                "TOP" => {
                    let header =
                        messages[number].content.split("\r\n\r\n").next().unwrap_or_default().to_owned();
                    say(reader, &format!("+OK\r\n{}\r\n\r\n.", stuffed(&header)))?;
                }
                "RETR" => say(reader, &format!("+OK\r\n{}\r\n.", stuffed(&messages[number].content)))?,
                "DELE" => {
                    gone.push(number);
                    say(reader, "+OK")?;
                }
                _ => say(reader, "-ERR what")?,
            }
        }
    }
}
