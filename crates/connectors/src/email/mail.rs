//! E-mails: built from parameters, and parsed.

use super::nesting;
use super::smtp::{Letter, host_name};
use super::{CONFIGURATION, Failure, RESPONSE};
use crate::parameter::Parameters;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use config::Element;
use flow::Compiler;
use lettre::Address;
use lettre::message::header::{
    Bcc, Cc, ContentDisposition, ContentId, ContentTransferEncoding, ContentType, From, HeaderName,
    HeaderValue, ReplyTo, To,
};
use lettre::message::{Body, Mailbox, Mailboxes, Message, MultiPart, SinglePart};
use mail_parser::{Encoding, MessageParser, MimeHeaders, PartType};
use message::memory;
use serde_json::Value as Json;
use std::io::Read;
use std::path::PathBuf;
use std::time::SystemTime;

/// The parts of an e-mail to send.
#[derive(Default)]
pub(super) struct Draft {
    pub from: String,
    pub personal_name: Option<String>,
    pub to: Option<String>,
    pub cc: Option<String>,
    pub bcc: Option<String>,
    pub reply_to: Option<String>,
    pub subject: Option<String>,
    pub headers: Vec<(String, String)>,
    pub content: String,
    pub content_type: Option<String>,
    pub charset: Option<String>,
    pub transfer_encoding: Option<String>,
    pub attachments: Vec<Source>,
    pub images: Vec<Source>,
}

/// An attachment or inline image.
pub(super) struct Source {
    pub name: Option<String>,
    pub content_type: Option<String>,
    /// `Content-ID` of an inline image.
    pub id: Option<String>,
    pub from: Content,
}

pub(super) enum Content {
    File(PathBuf),
    Bytes(Vec<u8>),
}

fn wrong(why: impl Into<String>) -> Failure {
    Failure::new(CONFIGURATION, why)
}

/// The files of a parameter: paths between commas, or a JSON list of objects with the content in base64 or a path.
pub(super) fn sources(name: &str, text: &str, directory: &std::path::Path) -> Result<Vec<Source>, Failure> {
    let path = |text: &str| directory.join(text.trim().strip_prefix("file://").unwrap_or(text.trim()));
    if !text.trim_start().starts_with('[') {
        let paths = text.split(',').map(str::trim).filter(|path_text| !path_text.is_empty());
        let source = |path_text| Source {
            name: None,
            content_type: None,
            id: None,
            from: Content::File(path(path_text)),
        };
        return Ok(paths.map(source).collect());
    }
    let no_list = |why: String| wrong(format!("the parameter `{name}` is not a list of files: {why}"));
    let list: Vec<serde_json::Map<String, Json>> =
        serde_json::from_str(text).map_err(|why| no_list(why.to_string()))?;
    let mut sources = Vec::with_capacity(list.len());
    for item in list {
        let text = |names: &[&str]| {
            let found = names.iter().find_map(|name| item.get(*name)?.as_str());
            found.map(str::to_owned).filter(|text| !text.is_empty())
        };
        let from = match (text(&["content", "fileContent", "data"]), text(&["filePath", "path"])) {
            (Some(content), _) => {
                let content: String = content.chars().filter(|c| !c.is_ascii_whitespace()).collect();
                Content::Bytes(STANDARD.decode(content).map_err(|why| no_list(format!("not base64: {why}")))?)
            }
            (None, Some(item)) => Content::File(path(&item)),
            (None, None) => return Err(no_list("one has neither `content` nor `filePath`".to_owned())),
        };
        sources.push(Source {
            name: text(&["fileName", "name"]),
            content_type: text(&["contentType", "mimeType"]),
            id: text(&["contentID", "contentId", "cid"]),
            from,
        });
    }
    Ok(sources)
}

/// Reports literals of `email.send` that are wrong. Files are not checked: they may be there when the message comes.
pub(super) fn check(parameters: &Parameters, element: &Element, compiler: &mut Compiler<'_>) {
    for name in ["from", "to", "cc", "bcc", "replyTo"] {
        parameters.check(name, element, compiler, |text| {
            mailboxes(name, text).map(|_| ()).map_err(|failure| failure.detail)
        });
    }
    if ["to", "cc", "bcc"].iter().all(|name| parameters.is_absent(name)) {
        parameters.check_given(&["to"], element, compiler);
    }
    for name in ["attachments", "inlineImages"] {
        let list = |text: &str| sources(name, text, std::path::Path::new("")).map(|_| ());
        parameters.check(name, element, compiler, |text| list(text).map_err(|failure| failure.detail));
    }
    parameters.check("headers", element, compiler, |text| {
        let list = super::headers(text).map_err(|failure| failure.detail)?;
        list.iter().try_for_each(|(name, _)| header_name(name).map(|_| ()).map_err(|failure| failure.detail))
    });
    parameters.check("contentTransferEncoding", element, compiler, |text| {
        encoding_of(Some(text)).map(|_| ()).map_err(|failure| failure.detail)
    });
    parameters.check("contentType", element, compiler, |text| {
        ContentType::parse(text).map(|_| ()).map_err(|_| "it is not a content type".to_owned())
    });
    parameters.check("encoding", element, compiler, |text| {
        encoding_rs::Encoding::for_label(text.as_bytes())
            .map(|_| ())
            .ok_or_else(|| "it is not an encoding".to_owned())
    });
}

impl Draft {
    /// Builds the e-mail, and reads its files, of `most` bytes together.
    pub(super) fn letter(self, most: usize) -> Result<Letter, Failure> {
        let mut builder = Message::builder().date_now().message_id(Some(message_id()));
        let mut from = mailboxes("from", &self.from)?;
        if let Some(name) = &self.personal_name {
            let named = |mailbox: Mailbox| Mailbox { name: Some(one_line(name)), ..mailbox };
            from = from.into_iter().map(named).collect();
        }
        let sender = from.clone().into_iter().next().ok_or_else(|| wrong("`from` has no address"))?;
        builder = builder.header(From::from(from));
        let mut recipients: Vec<Address> = Vec::new();
        let mut list = |name: &str, text: &Option<String>| -> Result<Option<Mailboxes>, Failure> {
            let Some(text) = text else { return Ok(None) };
            let mailboxes_read = mailboxes(name, text)?;
            recipients.extend(mailboxes_read.iter().map(|m| m.email.clone()));
            Ok(Some(mailboxes_read))
        };
        let (to, cc) = (list("to", &self.to)?, list("cc", &self.cc)?);
        // Blind copies are in the envelope, and not in the header.
        let _: Option<Bcc> = list("bcc", &self.bcc)?.map(Bcc::from);
        if let Some(to) = to {
            builder = builder.header(To::from(to));
        }
        if let Some(cc) = cc {
            builder = builder.header(Cc::from(cc));
        }
        if recipients.is_empty() {
            return Err(wrong("there is nobody to send to: `to`, `cc` and `bcc` are empty"));
        }
        if let Some(reply_to) = &self.reply_to {
            builder = builder.header(ReplyTo::from(mailboxes("replyTo", reply_to)?));
        }
        if let Some(subject) = &self.subject {
            builder = builder.subject(one_line(subject));
        }
        for (name, value) in &self.headers {
            builder = builder.raw_header(HeaderValue::new(header_name(name)?, one_line(value)));
        }
        let mut left = most;
        let mut held = Vec::new();
        let text = self.text()?;
        let encoding = encoding_of(self.transfer_encoding.as_deref())?;
        let mut parts = |sources: Vec<Source>, inline: bool| -> Result<Vec<SinglePart>, Failure> {
            let mut parts = Vec::with_capacity(sources.len());
            for source in sources {
                let part = source.part(inline, &mut left)?;
                held.push(memory::try_hold(part.raw_body().len().saturating_mul(2))?);
                parts.push(part);
            }
            Ok(parts)
        };
        let (images, attachments) = (parts(self.images, true)?, parts(self.attachments, false)?);
        let text = single(text, encoding)?;
        let made = match (images.is_empty(), attachments.is_empty()) {
            (true, true) => builder.singlepart(text),
            (true, false) => builder.multipart(with(MultiPart::mixed().singlepart(text), attachments)),
            (false, true) => builder.multipart(with(MultiPart::related().singlepart(text), images)),
            (false, false) => {
                let inner = with(MultiPart::related().singlepart(text), images);
                builder.multipart(with(MultiPart::mixed().multipart(inner), attachments))
            }
        };
        let made = made.map_err(|why| wrong(format!("the e-mail cannot be made: {why}")))?;
        let (mut to, mut seen) = (Vec::new(), std::collections::HashSet::new());
        for address in recipients {
            let address = address.to_string();
            if seen.insert(address.clone()) {
                to.push(address);
            }
        }
        Ok(Letter { from: sender.email.to_string(), to, content: made.formatted() })
    }

    /// The text with its type.
    fn text(&self) -> Result<(Vec<u8>, ContentType), Failure> {
        let charset = self.charset.as_deref().unwrap_or("UTF-8");
        let essence = self.content_type.as_deref().unwrap_or("text/html");
        let no_charset = || wrong(format!("`{charset}` is not an encoding"));
        let encoding = encoding_rs::Encoding::for_label(charset.as_bytes()).ok_or_else(no_charset)?;
        // The library writes UTF-16 as UTF-8.
        let (bytes, used, _) = encoding.encode(&self.content);
        let label = if used == encoding { charset } else { used.name() };
        let full = match essence.to_ascii_lowercase().contains("charset=") {
            true => essence.to_owned(),
            false => format!("{essence}; charset={label}"),
        };
        let kind = ContentType::parse(&full);
        let kind = kind.map_err(|_| wrong(format!("`{essence}` is not a content type")))?;
        // Lines of an e-mail end with CR LF.
        let text = if encoding.is_ascii_compatible() { with_line_ends(&bytes) } else { bytes.into_owned() };
        Ok((text, kind))
    }
}

fn with(parts: MultiPart, more: Vec<SinglePart>) -> MultiPart {
    more.into_iter().fold(parts, MultiPart::singlepart)
}

fn with_line_ends(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(rest) => {
                out.extend_from_slice(rest.strip_suffix(b"\r").unwrap_or(rest));
                out.extend_from_slice(b"\r\n");
            }
            None => out.extend_from_slice(line),
        }
    }
    out
}

/// Whether there is a CR without LF, or an LF without CR.
fn has_bare_end(bytes: &[u8]) -> bool {
    let before = |at: usize| at.checked_sub(1).and_then(|at| bytes.get(at));
    bytes.iter().enumerate().any(|(at, byte)| match byte {
        b'\r' => bytes.get(at + 1) != Some(&b'\n'),
        b'\n' => before(at) != Some(&b'\r'),
        _ => false,
    })
}

/// The MIME part of a text.
fn single(
    (bytes, kind): (Vec<u8>, ContentType),
    encoding: ContentTransferEncoding,
) -> Result<SinglePart, Failure> {
    // A bare CR or LF may count as the end of a line, and the text after it as a command.
    let encoding = match encoding {
        ContentTransferEncoding::SevenBit | ContentTransferEncoding::EightBit if has_bare_end(&bytes) => {
            ContentTransferEncoding::Base64
        }
        encoding => encoding,
    };
    let body = Body::new_with_encoding(bytes, encoding);
    // A text that the encoding cannot carry gets one that can.
    let body = body.unwrap_or_else(Body::new);
    Ok(SinglePart::builder().header(kind).header(ContentDisposition::inline()).body(body))
}

fn encoding_of(text: Option<&str>) -> Result<ContentTransferEncoding, Failure> {
    Ok(match text.map(str::to_ascii_lowercase).as_deref() {
        None | Some("base64") => ContentTransferEncoding::Base64,
        Some("7bit") => ContentTransferEncoding::SevenBit,
        Some("8bit" | "binary") => ContentTransferEncoding::EightBit,
        Some("quoted-printable" | "quotedprintable") => ContentTransferEncoding::QuotedPrintable,
        Some(other) => return Err(wrong(format!("`{other}` is not a content transfer encoding"))),
    })
}

impl Source {
    fn part(self, inline: bool, left: &mut usize) -> Result<SinglePart, Failure> {
        let (bytes, file_name) = match self.from {
            Content::Bytes(bytes) => (bytes, None),
            Content::File(path) => {
                let unreadable = |why: String| wrong(format!("{}: {why}", path.display()));
                let metadata = std::fs::metadata(&path).map_err(|why| unreadable(why.to_string()))?;
                if !metadata.is_file() {
                    return Err(unreadable("it is not a file".to_owned()));
                }
                let size = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
                if size > *left {
                    return Err(unreadable("the files are larger than a flow may hold".to_owned()));
                }
                // It may grow meanwhile.
                let most = (*left as u64).saturating_add(1);
                let mut bytes = Vec::new();
                std::fs::File::open(&path)
                    .and_then(|file| file.take(most).read_to_end(&mut bytes))
                    .map_err(|why| unreadable(why.to_string()))?;
                (bytes, path.file_name().map(|name| name.to_string_lossy().into_owned()))
            }
        };
        *left = left
            .checked_sub(bytes.len())
            .ok_or_else(|| wrong("the files are larger than a flow may hold"))?;
        let name = self.name.or(file_name).map(|name| one_line(&name));
        let kind =
            self.content_type.unwrap_or_else(|| type_of(name.as_deref().unwrap_or_default()).to_owned());
        let kind = ContentType::parse(&kind).map_err(|_| wrong(format!("`{kind}` is not a content type")))?;
        let mut builder = SinglePart::builder().header(kind);
        if let Some(id) = self.id.filter(|_| inline) {
            let id = id.trim_start_matches('<').trim_end_matches('>');
            builder = builder.header(ContentId::from(format!("<{}>", one_line(id))));
        }
        builder = builder.header(match (inline, name) {
            (true, Some(name)) => ContentDisposition::inline_with_name(&name),
            (true, None) => ContentDisposition::inline(),
            (false, name) => ContentDisposition::attachment(name.as_deref().unwrap_or("attachment")),
        });
        let body = Body::new_with_encoding(bytes, ContentTransferEncoding::Base64).unwrap_or_else(Body::new);
        Ok(builder.body(body))
    }
}

/// The media type of a file by its name.
fn type_of(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map(|(_, e)| e.to_ascii_lowercase()).unwrap_or_default();
    match extension.as_str() {
        "txt" | "text" | "log" | "md" => "text/plain",
        "htm" | "html" => "text/html",
        "csv" => "text/csv",
        "xml" | "xsd" | "wsdl" | "xsl" => "application/xml",
        "json" => "application/json",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "doc" => "application/msword",
        "xls" => "application/vnd.ms-excel",
        _ => "application/octet-stream",
    }
}

fn mailboxes(name: &str, text: &str) -> Result<Mailboxes, Failure> {
    one_line(text)
        .parse()
        .map_err(|why| wrong(format!("the parameter `{name}` is not a list of addresses: {why}")))
}

/// The name of a header: printable characters (RFC 5322, 2.2), so that it ends neither the line nor the header.
fn header_name(name: &str) -> Result<HeaderName, Failure> {
    let made = Some(name.to_owned()).filter(|name| name.bytes().all(|byte| byte.is_ascii_graphic()));
    let made = made.and_then(|name| HeaderName::new_from_ascii(name).ok());
    made.ok_or_else(|| wrong(format!("`{}` is not a name of a header", one_line(name))))
}

/// A text without line breaks: a value must not begin another header.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}

/// A unique `Message-ID`.
fn message_id() -> String {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let number = NEXT.fetch_add(1, Relaxed);
    format!("<{:x}.{:x}.{number:x}@{}>", time.as_nanos(), std::process::id(), host_name())
}

/// A parsed e-mail.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Mail {
    pub id: Option<String>,
    pub to: Option<String>,
    pub from: Option<String>,
    pub cc: Option<String>,
    pub bcc: Option<String>,
    pub reply_to: Option<String>,
    pub subject: Option<String>,
    pub html: Option<String>,
    pub text: Option<String>,
    pub attachments: Vec<Attachment>,
    /// `Date`, in seconds since 1970.
    pub sent: Option<i64>,
    /// When the last server received it.
    pub received: Option<i64>,
}

/// An attachment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Attachment {
    pub name: Option<String>,
    pub content_type: String,
    pub content: Vec<u8>,
}

impl Mail {
    /// Parses an e-mail, or the header of one.
    pub(super) fn parse(content: &[u8]) -> Result<Mail, Failure> {
        let tamed = nesting::tamed(content);
        let parsed = MessageParser::default().parse(&tamed[..]);
        let message =
            parsed.ok_or_else(|| Failure::new(RESPONSE, "what the server sent is not an e-mail"))?;
        let list = |address: Option<&mail_parser::Address<'_>>| {
            let mut list = Vec::new();
            for address_read in address?.iter() {
                let email = address_read.address.as_deref().unwrap_or_default();
                list.push(match address_read.name.as_deref() {
                    Some(name) if !email.is_empty() => format!("{name} <{email}>"),
                    Some(name) => name.to_owned(),
                    None => email.to_owned(),
                });
            }
            Some(list.join(", ")).filter(|list| !list.is_empty())
        };
        let text_of = |html: bool| {
            let parts: Vec<&str> = match html {
                true => message.html_bodies().filter_map(|part| part_text(part, true)).collect(),
                false => message.text_bodies().filter_map(|part| part_text(part, false)).collect(),
            };
            Some(parts.join("\n")).filter(|_| !parts.is_empty())
        };
        let attachments = message.attachments().map(|part| {
            let kind = part.content_type().map(|t| match t.subtype() {
                Some(subtype) => format!("{}/{}", nesting::word(t.ctype()), nesting::word(subtype)),
                None => t.ctype().to_owned(),
            });
            let rfc822 = matches!(part.body, PartType::Message(_)).then(|| "message/rfc822".to_owned());
            Attachment {
                name: part.attachment_name().map(str::to_owned),
                content_type: kind.or(rfc822).unwrap_or_else(|| "application/octet-stream".to_owned()),
                content: match part.body {
                    // As it came, and not as it was tamed.
                    PartType::Binary(_) if part.encoding == Encoding::None => {
                        let extent = part.offset_body as usize..part.offset_end as usize;
                        content.get(extent).unwrap_or_else(|| part.contents()).to_vec()
                    }
                    _ => part.contents().to_vec(),
                },
            }
        });
        Ok(Mail {
            id: message.message_id().map(|id| format!("<{id}>")),
            to: list(message.to()),
            from: list(message.from()),
            cc: list(message.cc()),
            bcc: list(message.bcc()),
            reply_to: list(message.reply_to()),
            subject: message.subject().map(str::to_owned),
            html: text_of(true),
            text: text_of(false),
            attachments: attachments.collect(),
            sent: message.date().map(|date| date.to_timestamp()),
            received: message.received().and_then(|r| r.date.as_ref()).map(|date| date.to_timestamp()),
        })
    }
}

/// The text of a part, if it has one.
fn part_text<'p>(part: &'p mail_parser::MessagePart<'_>, html: bool) -> Option<&'p str> {
    match &part.body {
        PartType::Html(text) if html => Some(text),
        PartType::Text(text) if !html => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> Draft {
        Draft {
            from: "Bus <bus@example.org>".to_owned(),
            to: Some("Ann Ä <ann@example.org>, b@example.org".to_owned()),
            bcc: Some("hidden@example.org, b@example.org".to_owned()),
            subject: Some("Grüße\r\nBcc: x@example.org".to_owned()),
            content: "Hällo\n.\nend".to_owned(),
            content_type: Some("text/plain".to_owned()),
            ..Draft::default()
        }
    }

    #[test]
    fn what_is_sent_is_what_is_read() {
        let mut draft = draft();
        draft.headers.push(("X-Order".to_owned(), "7\r\nX-Other: 8".to_owned()));
        draft.attachments =
            sources("attachments", r#"[{"fileName":"ü.txt","content":"aGk="}]"#, "/".as_ref()).unwrap();
        draft.images =
            sources("inlineImages", r#"[{"name":"a.png","content":"AAE=","contentID":"pic"}]"#, "/".as_ref())
                .unwrap();
        let letter = draft.letter(1000).unwrap();
        assert_eq!((letter.from.as_str(), letter.to.len()), ("bus@example.org", 3));
        let text = String::from_utf8(letter.content.clone()).unwrap();
        assert!(
            !text.contains("hidden@") && !text.contains("\nX-Other") && !text.contains("\nBcc"),
            "{text}"
        );
        assert!(text.contains("Content-ID: <pic>"), "{text}");
        let mail = Mail::parse(&letter.content).unwrap();
        assert_eq!(mail.subject.as_deref(), Some("Grüße Bcc: x@example.org"));
        assert_eq!(mail.to.as_deref(), Some("Ann Ä <ann@example.org>, b@example.org"));
        assert_eq!(mail.text.as_deref(), Some("Hällo\r\n.\r\nend"));
        assert_eq!((mail.html, mail.bcc), (None, None));
        let names: Vec<_> = mail.attachments.iter().map(|a| (a.name.as_deref(), a.content.len())).collect();
        assert!(names.contains(&(Some("ü.txt"), 2)), "{names:?}");
        assert!(mail.sent.is_some() && mail.id.is_some());
    }

    #[test]
    fn what_cannot_be_sent_is_a_fault() {
        for (change, wanted) in [
            ((|draft| draft.from.clear()) as fn(&mut Draft), "from"),
            (|draft| draft.to = Some("nobody".to_owned()), "`to` is not a list"),
            (|draft| (draft.to, draft.bcc) = (None, None), "there is nobody to send to"),
            (|draft| draft.content_type = Some("text".to_owned()), "is not a content type"),
            (|draft| draft.charset = Some("x".to_owned()), "is not an encoding"),
            (|draft| draft.transfer_encoding = Some("x".to_owned()), "is not a content transfer encoding"),
            (|draft| draft.headers.push(("a b".to_owned(), String::new())), "is not a name of a header"),
            (
                |draft| draft.headers.push(("A\r\n\r\nB".to_owned(), String::new())),
                "is not a name of a header",
            ),
            (|draft| draft.headers.push(("A\r\nB".to_owned(), String::new())), "is not a name of a header"),
            (|draft| draft.headers.push(("A\tB".to_owned(), String::new())), "is not a name of a header"),
            (|draft| draft.headers.push(("A\0".to_owned(), String::new())), "is not a name of a header"),
            (
                |draft| draft.attachments = sources("attachments", "/none/a.txt", "/".as_ref()).unwrap(),
                "/none/a.txt",
            ),
            (
                |draft| draft.attachments = sources("attachments", "/tmp", "/".as_ref()).unwrap(),
                "is not a file",
            ),
            (
                |draft| {
                    draft.attachments = sources("a", r#"[{"content":"AAECAwQF"}]"#, "/".as_ref()).unwrap()
                },
                "larger than a flow may hold",
            ),
        ] {
            let mut draft = draft();
            change(&mut draft);
            let failure = draft.letter(5).err().unwrap();
            assert!(failure.detail.contains(wanted), "{wanted}: {}", failure.detail);
        }
        for text in ["[1]", "[{}]", r#"[{"content":"%"}]"#] {
            assert!(sources("attachments", text, "/".as_ref()).is_err());
        }
    }

    #[test]
    fn contents_have_their_encoding() {
        for (charset, transfer) in [("ISO-8859-1", "8bit"), ("UTF-8", "7bit"), ("UTF-8", "Quoted-Printable")]
        {
            let draft = Draft {
                charset: Some(charset.to_owned()),
                transfer_encoding: Some(transfer.to_owned()),
                ..draft()
            };
            let mail = Mail::parse(&draft.letter(1000).unwrap().content).unwrap();
            assert_eq!(
                mail.text.as_deref().map(str::trim_end),
                Some("Hällo\r\n.\r\nend"),
                "{charset} {transfer}"
            );
        }
    }

    #[test]
    fn no_content_ends_the_mail() {
        for charset in ["UTF-8", "ISO-2022-JP", "UTF-16"] {
            for transfer in ["7bit", "8bit", "binary", "Quoted-Printable", "Base64"] {
                for content in
                    ["a\r.\r\nMAIL FROM:<x@y>", "a\n.\rb", "a\r\r\n.\r", "\r.\n", "\n.\n", "a\r\n.\r\nb"]
                {
                    let draft = Draft {
                        content: content.to_owned(),
                        charset: Some(charset.to_owned()),
                        transfer_encoding: Some(transfer.to_owned()),
                        ..draft()
                    };
                    let content = draft.letter(1000).unwrap().content;
                    let lines = String::from_utf8(content).unwrap().replace("\r\n", "");
                    assert!(!lines.contains(['\r', '\n']), "{charset} {transfer}: {lines:?}");
                }
            }
        }
    }

    /// Each looks for its boundary in all that comes behind it.
    #[test]
    fn many_multiparts_without_parts_are_one_file() {
        let part = |at: usize| format!("--A\r\nContent-Type: multipart/mixed; boundary=z{at}\r\n\r\n\r\n");
        let whole = |parts: usize| {
            let parts: String = (0..parts).map(part).collect();
            format!("Subject: s\r\nContent-Type: multipart/mixed; boundary=A\r\n\r\n{parts}--A--\r\n")
        };
        let mail = Mail::parse(whole(20_000).as_bytes()).unwrap();
        let [attachment] = &mail.attachments[..] else { panic!("{}", mail.attachments.len()) };
        assert_eq!(
            (mail.subject.as_deref(), attachment.content_type.as_str()),
            (Some("s"), "multipart/mixed")
        );
        assert!(attachment.content.starts_with(part(0).as_bytes()));
        assert_eq!(Mail::parse(whole(50).as_bytes()).unwrap().attachments.len(), 50);
    }

    /// Neither the stack nor the time for them is unlimited.
    #[test]
    fn mails_within_mails_end() {
        let nested = |times: usize| "Content-Type:message/rfc822\n\n".repeat(times) + "Subject: s\n\ntext";
        let mail = Mail::parse(nested(3).as_bytes()).unwrap();
        assert_eq!(mail.attachments[0].content_type, "message/rfc822");
        let deep = nested(100_000);
        let mail = Mail::parse(deep.as_bytes()).unwrap();
        let [attachment] = &mail.attachments[..] else { panic!("{:?}", mail.attachments.len()) };
        assert_eq!(attachment.content_type, "message/rfc822");
        assert_eq!(
            attachment.content,
            deep.as_bytes()["Content-Type:message/rfc822\n\n".len()..],
            "it is there as it came"
        );
        let encoded = format!(
            "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n{}\n--b--\n",
            STANDARD.encode(nested(50_000))
        );
        let mail = Mail::parse(encoded.as_bytes()).unwrap();
        assert_eq!(mail.attachments[0].content, nested(50_000).as_bytes());
        assert_eq!(mail.attachments[0].content_type, "message/rfc822");
    }

    #[test]
    fn what_is_no_mail_is_none_or_empty() {
        for bytes in [
            &b""[..],
            b"\0\xff",
            b"\r\n\r\n",
            b"a",
            b"Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\n--a--",
        ] {
            let _ = Mail::parse(bytes);
        }
    }
}
