//! Operations on a mailbox.

use super::mail::Mail;
use super::{
    Body, CONFIGURATION, Conversations, EmailOperation, FOLDER, Failure, NOT_FOUND, Operation, Outcome,
    Protocol, RESPONSE, Server, imap, off_worker, place, pop3,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flow::{Context, Pattern};
use message::memory::{self, Held};
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;

/// The folder where none is given.
const INBOX: &str = "INBOX";
/// How many headers are fetched at a time, and most bytes of one.
const AT_A_TIME: usize = 100;
const HEADER: usize = 256 << 10;
/// The memory of an e-mail while it is parsed, as a multiple of its bytes.
const GROWTH: usize = 3;
/// The memory that a line takes, beside its bytes, if it is a field or the beginning of a part.
const LINE: usize = 64;

/// The e-mails of the last list: later operations refer to them by index.
struct Listed(Vec<Mail>);

/// The criteria of a list.
struct Criteria {
    /// The criteria that a server with flags evaluates.
    flags: String,
    subject: Option<SearchTerm>,
    from: Option<SearchTerm>,
    received: (Option<i64>, Option<i64>),
    sent: (Option<i64>, Option<i64>),
    offset: usize,
    limit: usize,
    deletes: bool,
}

/// A text or a regular expression to search for.
struct SearchTerm {
    text: String,
    pattern: Option<Pattern>,
}

impl SearchTerm {
    fn new(text: String) -> SearchTerm {
        let pattern = Pattern::compile(&format!("(?s).*(?:{text}).*")).ok();
        SearchTerm { text: text.to_lowercase(), pattern }
    }

    fn is_in(&self, text: Option<&str>) -> Result<bool, Failure> {
        let text = text.unwrap_or_default();
        if text.to_lowercase().contains(&self.text) {
            return Ok(true);
        }
        let Some(pattern) = &self.pattern else { return Ok(false) };
        pattern
            .matches(text)
            .map_err(|stop| Failure::new(CONFIGURATION, format!("the pattern was broken off: {stop}")))
    }
}

impl Criteria {
    /// Whether headers must be read, not only flags.
    fn needs_header(&self) -> bool {
        self.subject.is_some()
            || self.from.is_some()
            || self.received != (None, None)
            || self.sent != (None, None)
    }

    fn wants(&self, mail: &Mail) -> Result<bool, Failure> {
        if let Some(subject) = &self.subject
            && !subject.is_in(mail.subject.as_deref())?
        {
            return Ok(false);
        }
        if let Some(from) = &self.from
            && !from.is_in(mail.from.as_deref())?
        {
            return Ok(false);
        }
        let within = |time: Option<i64>, (since, until): (Option<i64>, Option<i64>)| match time {
            Some(time) => since.is_none_or(|since| time > since) && until.is_none_or(|until| time < until),
            None => since.is_none() && until.is_none(),
        };
        Ok(within(mail.sent, self.sent) && within(mail.received.or(mail.sent), self.received))
    }
}

/// The result `success`.
fn success() -> Outcome {
    let body = Body::Xml("<result><success>true</success></result>".to_owned());
    Outcome { payload: json!({ "success": true }), attributes: Map::new(), body }
}

impl Operation {
    pub(super) async fn in_mailbox(
        &self,
        server: &Server,
        context: &mut Context,
    ) -> Result<Outcome, Failure> {
        match server.protocol {
            Protocol::Pop3 => self.by_pop3(server, context).await,
            _ => self.by_imap(server, context).await,
        }
    }

    async fn by_imap(&self, server: &Server, context: &mut Context) -> Result<Outcome, Failure> {
        let folder = self.parameters.text("folder", context)?.unwrap_or_else(|| INBOX.to_owned());
        let criteria = if self.action == EmailOperation::List { Some(self.criteria(context)?) } else { None };
        let id = match self.action {
            EmailOperation::List | EmailOperation::Expunge => None,
            _ => Some(self.id(context)?),
        };
        let pool = context.services().kept.get::<Conversations<imap::Session>>().of(server, server.pool);
        let _place = place(&pool, server).await?;
        let mut waiting = pool.take();
        while let Some(session) = &mut waiting {
            if session.is_alive().await {
                break;
            }
            waiting = pool.take();
        }
        let mut session = match waiting {
            Some(session) => session,
            None => server.open::<imap::Session>(context.services()).await?,
        };
        let changes = match &criteria {
            Some(criteria) => criteria.deletes,
            None => !matches!(self.action, EmailOperation::Body | EmailOperation::Attachment),
        };
        let done = async {
            session.select(&folder, changes).await?;
            if let Some(criteria) = criteria {
                return self.list(&mut session, &criteria, context).await;
            }
            if self.action == EmailOperation::Expunge {
                session.expunge(&[]).await?;
                return Ok(success());
            }
            let id = id.unwrap_or_default();
            let found = session.find(&id).await?;
            let number = *found.first().ok_or_else(|| none_of(&id))?;
            match self.action {
                EmailOperation::MarkAsRead => session.flag(&[number], "\\Seen").await?,
                EmailOperation::MarkAsDeleted => session.flag(&[number], "\\Deleted").await?,
                EmailOperation::Delete => {
                    session.flag(&[number], "\\Deleted").await?;
                    session.expunge(&[number]).await?;
                }
                _ => {
                    let (mut contents, held) = contents(&mut session, &[number], context).await?;
                    let content = contents.pop().ok_or_else(|| none_of(&id))?;
                    let mut mails = self.parsed(vec![(None, content)], held, context).await?;
                    let mail = mails.pop().ok_or_else(|| none_of(&id))?;
                    return self.mail_outcome(&mail, context);
                }
            }
            Ok(success())
        };
        let done = done.await;
        // A broken session is not reused.
        if done
            .as_ref()
            .err()
            .is_none_or(|failure| matches!(failure.reason, NOT_FOUND | FOLDER | CONFIGURATION))
        {
            pool.keep(session);
        }
        done
    }

    async fn list(
        &self,
        session: &mut imap::Session,
        criteria: &Criteria,
        context: &mut Context,
    ) -> Result<Outcome, Failure> {
        let mut found = session.search(&criteria.flags).await?;
        if criteria.needs_header() {
            let mut wanted = Vec::new();
            for some in found.chunks(AT_A_TIME) {
                let most = AT_A_TIME * HEADER;
                for fetched in session.fetch(some, "UID INTERNALDATE BODY.PEEK[HEADER]", most).await? {
                    let mut mail = Mail::parse(&fetched.content).unwrap_or_default();
                    mail.received = fetched.received.as_deref().and_then(internal_date).or(mail.received);
                    if criteria.wants(&mail)? {
                        wanted.push(fetched.uid);
                    }
                }
            }
            found = wanted;
        }
        let chosen: Vec<u32> = found.into_iter().skip(criteria.offset).take(criteria.limit).collect();
        let (contents, held) = contents(session, &chosen, context).await?;
        let contents = contents.into_iter().map(|content| (None, content)).collect();
        let mails = self.parsed(contents, held, context).await?;
        if criteria.deletes && !chosen.is_empty() {
            session.flag(&chosen, "\\Deleted").await?;
            session.expunge(&chosen).await?;
        }
        Ok(self.list_outcome(mails, context))
    }

    async fn by_pop3(&self, server: &Server, context: &mut Context) -> Result<Outcome, Failure> {
        let folder = self.parameters.text("folder", context)?;
        if let Some(folder) = folder.filter(|folder| !folder.eq_ignore_ascii_case(INBOX)) {
            return Err(Failure::new(FOLDER, format!("POP3 has no folder `{folder}`, only {INBOX}")));
        }
        if matches!(
            self.action,
            EmailOperation::MarkAsRead | EmailOperation::MarkAsDeleted | EmailOperation::Expunge
        ) {
            return Err(Failure::new(CONFIGURATION, "POP3 knows no marks: the operation needs IMAP"));
        }
        let criteria = if self.action == EmailOperation::List { Some(self.criteria(context)?) } else { None };
        let id = if criteria.is_none() { Some(self.id(context)?) } else { None };
        let most = context.services().limits.held;
        let pool = context.services().kept.get::<Conversations<pop3::Session>>().of(server, server.pool);
        let _place = place(&pool, server).await?;
        let mut session = server.open::<pop3::Session>(context.services()).await?;
        let sizes = session.sizes().await?;
        let Some(criteria) = criteria else {
            let id = id.unwrap_or_default();
            let wanted = id.trim_start_matches('<').trim_end_matches('>');
            for (number, size) in sizes {
                let header = session.header(number, HEADER).await?;
                let message_id = Mail::parse(&header).unwrap_or_default().id.unwrap_or_default();
                if message_id.trim_start_matches('<').trim_end_matches('>') != wanted {
                    continue;
                }
                if self.action == EmailOperation::Delete {
                    session.delete(number).await?;
                    session.quit().await?;
                    return Ok(success());
                }
                let held = held_for(size, most)?;
                let content = session.message(number, size.saturating_add(1024).saturating_mul(2)).await?;
                let _ = session.quit().await;
                let mut mails = self.parsed(vec![(None, content)], held, context).await?;
                let mail = mails.pop().ok_or_else(|| none_of(&id))?;
                return self.mail_outcome(&mail, context);
            }
            return Err(none_of(&id));
        };
        let mut chosen = Vec::new();
        for (number, size) in sizes {
            if chosen.len() >= criteria.offset.saturating_add(criteria.limit) {
                break;
            }
            let wants = match criteria.needs_header() {
                true => {
                    let header = session.header(number, HEADER).await?;
                    criteria.wants(&Mail::parse(&header).unwrap_or_default())?
                }
                false => true,
            };
            if wants {
                chosen.push((number, size));
            }
        }
        chosen.drain(..criteria.offset.min(chosen.len()));
        let total = chosen.iter().fold(0_usize, |sum, (_, size)| sum.saturating_add(*size));
        let held = held_for(total, most)?;
        let mut contents = Vec::with_capacity(chosen.len());
        for (number, size) in &chosen {
            contents
                .push((None, session.message(*number, size.saturating_add(1024).saturating_mul(2)).await?));
        }
        let mails = self.parsed(contents, held, context).await?;
        if criteria.deletes {
            for (number, _) in &chosen {
                session.delete(*number).await?;
            }
            session.quit().await?;
        } else {
            let _ = session.quit().await;
        }
        Ok(self.list_outcome(mails, context))
    }

    /// Parses e-mails on a thread of its own.
    async fn parsed(
        &self,
        contents: Vec<(Option<i64>, Vec<u8>)>,
        held: Held,
        context: &mut Context,
    ) -> Result<Vec<Mail>, Failure> {
        let parse = move || {
            let mut held = held;
            let lines = |content: &[u8]| content.iter().filter(|byte| **byte == b'\n').count();
            let lines: usize = contents.iter().map(|(_, content)| lines(content)).sum();
            held.try_grow(held.bytes().saturating_add(lines.saturating_mul(LINE)))?;
            let mails: Result<Vec<Mail>, Failure> =
                contents.iter().map(|(_, content)| Mail::parse(content)).collect();
            Ok::<_, Failure>((mails?, held))
        };
        let (mails, held) = off_worker("e-mails that are read", parse, context).await??;
        context.hold(Arc::new(held));
        Ok(mails)
    }

    fn list_outcome(&self, mails: Vec<Mail>, context: &mut Context) -> Outcome {
        let mut emails = Vec::with_capacity(mails.len());
        let mut xml = String::from("<emails>");
        for (index, mail) in mails.iter().enumerate() {
            let mut members = Map::new();
            members.insert("index".to_owned(), index.into());
            members.extend(addresses(mail));
            let attachments = mail.attachments.iter().enumerate().map(
                |(index, attachment)| json!({ "index": index, "name": attachment.name, "contentType": attachment.content_type }),
            );
            let attachments: Vec<Json> = attachments.collect();
            let mut element = members.clone();
            element.retain(|_, value| !value.is_null());
            element.insert("attachments".to_owned(), json!({ "attachment": attachments }));
            xml.push_str(&crate::result::xml("email", &element));
            members.insert("attachments".to_owned(), attachments.into());
            emails.push(Json::Object(members));
        }
        xml.push_str("</emails>");
        context.attach(Arc::new(Listed(mails)));
        Outcome { payload: json!({ "emails": emails }), attributes: Map::new(), body: Body::Xml(xml) }
    }

    /// The result for an e-mail of the last list; `None`: the operation gives an id instead.
    pub(super) fn of_listed(&self, context: &mut Context) -> Result<Option<Outcome>, Failure> {
        let Some(index) = self.parameters.text("emailIndex", context)? else { return Ok(None) };
        let listed = context
            .attached::<Listed>()
            .ok_or_else(|| Failure::new(CONFIGURATION, "`emailIndex` needs `email.list` ahead of it"))?;
        let at: Option<usize> = index.parse().ok();
        let mail = at.and_then(|at| listed.0.get(at)).ok_or_else(|| {
            Failure::new(
                CONFIGURATION,
                format!("there is no e-mail {index} among the {} of the list", listed.0.len()),
            )
        })?;
        self.mail_outcome(mail, context).map(Some)
    }

    /// The result for an e-mail: its texts, or an attachment.
    fn mail_outcome(&self, mail: &Mail, context: &mut Context) -> Result<Outcome, Failure> {
        if self.action == EmailOperation::Body {
            let mut email = addresses(mail);
            email.insert("htmlContent".to_owned(), json!(mail.html));
            email.insert("textContent".to_owned(), json!(mail.text));
            let properties = vec![
                ("EMAIL_ID", mail.id.clone()),
                ("TO", mail.to.clone()),
                ("FROM", mail.from.clone()),
                ("CC", mail.cc.clone()),
                ("BCC", mail.bcc.clone()),
                ("SUBJECT", mail.subject.clone()),
                ("REPLY_TO", mail.reply_to.clone()),
                ("HTML_CONTENT", mail.html.clone()),
                ("TEXT_CONTENT", mail.text.clone()),
            ];
            let body = Body::Properties(properties);
            return Ok(Outcome { payload: json!({ "email": email }), attributes: Map::new(), body });
        }
        let index = self.parameters.text("attachmentIndex", context)?;
        let index = index
            .ok_or_else(|| Failure::new(CONFIGURATION, "the parameter `attachmentIndex` is not given"))?;
        let at: Option<usize> = index.parse().ok();
        let attachment = at.and_then(|at| mail.attachments.get(at)).ok_or_else(|| {
            let count = mail.attachments.len();
            Failure::new(
                CONFIGURATION,
                format!("the e-mail has {count} attachments, and none of index {index}"),
            )
        })?;
        let mut attributes = Map::new();
        attributes.insert("ATTACHMENT_NAME".to_owned(), attachment.name.clone().unwrap_or_default().into());
        attributes.insert("ATTACHMENT_TYPE".to_owned(), attachment.content_type.clone().into());
        let payload = json!({ "base64Content": STANDARD.encode(&attachment.content) });
        Ok(Outcome {
            payload,
            attributes,
            body: Body::Bytes(attachment.content.clone(), attachment.content_type.clone()),
        })
    }

    fn id(&self, context: &mut Context) -> Result<String, Failure> {
        let id = match self.parameters.text("emailId", context)? {
            Some(id) => Some(id),
            None => self.parameters.text("emailID", context)?,
        };
        let id = id.ok_or_else(|| Failure::new(CONFIGURATION, "the parameter `emailId` is not given"))?;
        Ok(if id.starts_with('<') { id } else { format!("<{id}>") })
    }

    fn criteria(&self, context: &mut Context) -> Result<Criteria, Failure> {
        let parameters = &self.parameters;
        let mut flags = Vec::new();
        for (name, set, unset) in [
            ("seen", "SEEN", "UNSEEN"),
            ("answered", "ANSWERED", "UNANSWERED"),
            ("deleted", "DELETED", "UNDELETED"),
            ("recent", "RECENT", "OLD"),
        ] {
            if let Some(text) = parameters.text(name, context)? {
                flags.push(if text.eq_ignore_ascii_case("true") { set } else { unset });
            }
        }
        let mut time = |name: &str| -> Result<Option<i64>, Failure> {
            parameters.text(name, context)?.map(|text| moment(name, &text)).transpose()
        };
        let received = (time("receivedSince")?, time("receivedUntil")?);
        let sent = (time("sentSince")?, time("sentUntil")?);
        let mut number = |name: &str, default: usize| -> Result<usize, Failure> {
            let Some(text) = parameters.text(name, context)? else { return Ok(default) };
            if text == "-1" {
                return Ok(default);
            }
            text.parse().map_err(|_| Failure::new(CONFIGURATION, format!("`{name}` is not a number: {text}")))
        };
        let (offset, limit) = (number("offset", 0)?, number("limit", usize::MAX)?);
        Ok(Criteria {
            flags: if flags.is_empty() { "ALL".to_owned() } else { flags.join(" ") },
            subject: parameters.text("subjectRegex", context)?.map(SearchTerm::new),
            from: parameters.text("fromRegex", context)?.map(SearchTerm::new),
            received,
            sent,
            offset,
            limit,
            deletes: parameters.is_true("deleteAfterRetrieve", false, context)?,
        })
    }
}

/// The time of a parameter, in seconds since 1970.
pub(super) fn moment(name: &str, text: &str) -> Result<i64, Failure> {
    let parsed: Result<jiff::civil::DateTime, _> = text.parse();
    let zoned = parsed.and_then(|d| d.to_zoned(jiff::tz::TimeZone::system()));
    let stamp = zoned.map(|z| z.timestamp()).or_else(|_| text.parse::<jiff::Timestamp>());
    stamp.map(|s| s.as_second()).map_err(|_| {
        Failure::new(CONFIGURATION, format!("`{name}` is not a time like 2026-11-23T10:15:30: {text}"))
    })
}

fn none_of(id: &str) -> Failure {
    Failure::new(NOT_FOUND, format!("there is no e-mail {id}"))
}

/// Counts the memory of e-mails before they are read.
fn held_for(bytes: usize, most: usize) -> Result<Held, Failure> {
    if bytes > most {
        let why =
            format!("the e-mails have {bytes} bytes, and a flow may hold {most} (`limit`, `limits.body`)");
        return Err(Failure::new(RESPONSE, why));
    }
    Ok(memory::try_hold(bytes.saturating_mul(GROWTH))?)
}

/// Fetches whole messages.
async fn contents(
    session: &mut imap::Session,
    numbers: &[u32],
    context: &Context,
) -> Result<(Vec<Vec<u8>>, Held), Failure> {
    let most = context.services().limits.held;
    let mut total = 0_usize;
    for some in numbers.chunks(1000) {
        for fetched in session.fetch(some, "UID RFC822.SIZE", 0).await? {
            total = total.saturating_add(fetched.size);
        }
    }
    let held = held_for(total, most)?;
    let (mut contents, mut left) = (Vec::with_capacity(numbers.len()), total.saturating_mul(2) + (64 << 10));
    for number in numbers {
        // A message that was removed meanwhile is skipped.
        let fetched = session.fetch(&[*number], "UID BODY.PEEK[]", left).await?.pop();
        if let Some(fetched) = fetched.filter(|fetched| !fetched.content.is_empty()) {
            left = left.saturating_sub(fetched.content.len());
            contents.push(fetched.content);
        }
    }
    Ok((contents, held))
}

fn addresses(mail: &Mail) -> Map<String, Json> {
    let mut members = Map::new();
    for (name, value) in [
        ("emailID", &mail.id),
        ("to", &mail.to),
        ("from", &mail.from),
        ("cc", &mail.cc),
        ("bcc", &mail.bcc),
        ("replyTo", &mail.reply_to),
        ("subject", &mail.subject),
    ] {
        members.insert(name.to_owned(), json!(value));
    }
    members
}

/// The INTERNALDATE of a message: `17-Jul-2026 02:44:25 -0700`.
fn internal_date(text: &str) -> Option<i64> {
    let parsed = jiff::fmt::strtime::parse("%d-%b-%Y %H:%M:%S %z", text).ok()?;
    Some(parsed.to_timestamp().ok()?.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_servers() {
        for (text, wanted) in [
            ("17-Jul-2026 02:44:25 -0700", Some(1_784_281_465)),
            ("7-Jul-2026 02:44:25 +0000", Some(1_783_392_265)),
            ("yesterday", None),
        ] {
            assert_eq!(internal_date(text), wanted, "{text}");
        }
    }
}
