//! The email connector: sending by SMTP, and mailboxes by IMAP and POP3.
//!
//! All waiting is asynchronous, within the timeouts of the connection. Messages are built and parsed on other threads, since
//! that reads files and decodes texts.

mod imap;
mod mail;
mod mailbox;
mod nesting;
mod oauth;
mod pop3;
mod smtp;
mod wire;

use crate::blocking::off_worker;
use crate::connection::{self, Connections, Description, Fields};
use crate::failure::{Body, Failure, Outcome, Reason};
use crate::operation::operation;
use crate::parameter::{Form, Parameters};
use crate::pool::{Limits, Pool, Pools};
use crate::response::{OVERWRITE, Place, VARIABLE};
use config::Element;
use flow::{Compiled, Compiler, Context, Definition, Fault, Flow, Mediator, Moves, Need, Services, Step};
use serde_json::{Map, json};
use std::path::PathBuf;
use std::time::Duration;
use transport::Scheme;

/// The operations.
pub(crate) const OPERATIONS: &[&Definition] =
    &[&INIT, &SEND, &LIST, &GET_BODY, &GET_ATTACHMENT, &DELETE, &MARK_AS_DELETED, &MARK_AS_READ, &EXPUNGE];

const INIT: Definition = operation(
    "email.init",
    "Describes the connection of the steps behind it.",
    FIELDS,
    |element, compiler| connection::init(element, compiler, make),
);
const SEND: Definition = operation(
    "email.send",
    "Sends an e-mail.",
    &[
        "from",
        "personalName",
        "to",
        "cc",
        "bcc",
        "replyTo",
        "subject",
        "headers",
        "content",
        "contentType",
        "encoding",
        "contentTransferEncoding",
        "attachments",
        "inlineImages",
        "connection",
        VARIABLE,
        OVERWRITE,
    ],
    |element, compiler| compile(element, EmailOperation::Send, compiler),
);
const LIST: Definition = operation(
    "email.list",
    "Lists the e-mails of a folder.",
    &[
        "folder",
        "deleteAfterRetrieve",
        "subjectRegex",
        "fromRegex",
        "seen",
        "answered",
        "deleted",
        "recent",
        "receivedSince",
        "receivedUntil",
        "sentSince",
        "sentUntil",
        "offset",
        "limit",
        "connection",
        VARIABLE,
        OVERWRITE,
    ],
    |element, compiler| compile(element, EmailOperation::List, compiler),
);
const GET_BODY: Definition = operation(
    "email.getEmailBody",
    "Gets the texts of an e-mail.",
    &["emailId", "emailID", "emailIndex", "folder", "connection", VARIABLE, OVERWRITE],
    |element, compiler| compile(element, EmailOperation::Body, compiler),
);
const GET_ATTACHMENT: Definition = operation(
    "email.getEmailAttachment",
    "Gets a file that came with an e-mail.",
    &["emailId", "emailID", "emailIndex", "attachmentIndex", "folder", "connection", VARIABLE, OVERWRITE],
    |element, compiler| compile(element, EmailOperation::Attachment, compiler),
);
const DELETE: Definition = operation("email.delete", "Deletes an e-mail.", ONE, |element, compiler| {
    compile(element, EmailOperation::Delete, compiler)
});
const MARK_AS_DELETED: Definition = operation(
    "email.markAsDeleted",
    "Marks an e-mail as deleted; `email.expungeFolder` deletes it.",
    ONE,
    |element, compiler| compile(element, EmailOperation::MarkAsDeleted, compiler),
);
const MARK_AS_READ: Definition =
    operation("email.markAsRead", "Marks an e-mail as read.", ONE, |element, compiler| {
        compile(element, EmailOperation::MarkAsRead, compiler)
    });
const EXPUNGE: Definition = operation(
    "email.expungeFolder",
    "Deletes what is marked as deleted in a folder.",
    &["folder", "connection", VARIABLE, OVERWRITE],
    |element, compiler| compile(element, EmailOperation::Expunge, compiler),
);

const ONE: &[&str] = &["emailId", "emailID", "folder", "connection", VARIABLE, OVERWRITE];

/// The fields of a connection.
const FIELDS: &[&str] = &[
    "name",
    "connectionType",
    "host",
    "port",
    "username",
    "password",
    "requireAuthentication",
    "connectionTimeout",
    "readTimeout",
    "writeTimeout",
    "requireTLS",
    "checkServerIdentity",
    "trustedHosts",
    "sslProtocols",
    "cipherSuites",
    "maxActiveConnections",
    "maxIdleConnections",
    "maxWaitTime",
    "minEvictionTime",
    "evictionCheckInterval",
    "exhaustedAction",
    "initialisationPolicy",
    "disablePooling",
    "enableOAuth2",
    "grantType",
    "clientId",
    "clientSecret",
    "refreshToken",
    "tokenUrl",
    "scope",
];

const TYPES: [&str; 6] = ["SMTP", "SMTPS", "IMAP", "IMAPS", "POP3", "POP3S"];

const NOT_FOUND: Reason = (700_201, "EMAIL:EMAIL_NOT_FOUND");
const FOLDER: Reason = (700_202, "EMAIL:ACCESSING_FOLDER");
const CONNECTIVITY: Reason = (700_203, "EMAIL:CONNECTIVITY");
const CONFIGURATION: Reason = (700_204, "EMAIL:INVALID_CONFIGURATION");
const RESPONSE: Reason = (700_205, "EMAIL:RESPONSE_GENERATION");
const CREDENTIALS: Reason = (700_206, "EMAIL:INVALID_CREDENTIALS");

/// Timeout of connecting, of an answer and of a block that is sent, unless the connection has one.
const PATIENCE: Duration = Duration::from_secs(30);
/// Upper limit of these timeouts.
const LONGEST: Duration = Duration::from_secs(600);
/// How long an idle connection is kept, unless the connection says: servers close it after a while.
const KEEP: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Protocol {
    Smtp,
    Imap,
    Pop3,
}

/// A server, as a connection describes it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Server {
    protocol: Protocol,
    /// Implicit TLS.
    secure: bool,
    /// STARTTLS.
    start_tls: bool,
    host: String,
    port: u16,
    user: Option<String>,
    password: Option<String>,
    /// A token instead of the password.
    oauth: Option<oauth::Account>,
    authenticates: bool,
    check_name: bool,
    /// Every certificate is trusted.
    trusted: bool,
    connect: Duration,
    read: Duration,
    write: Duration,
    pool: Limits,
}

/// How the bus authenticates.
#[derive(Clone, Copy)]
enum Login<'a> {
    /// Without authentication.
    Nobody,
    Password(&'a str, &'a str),
    Token(&'a str, &'a str),
}

/// A session with a server.
trait Converse: Sized {
    /// Opens a session, up to the authenticated state.
    fn open(
        server: &Server,
        login: Login<'_>,
        services: &Services,
    ) -> impl Future<Output = Result<Self, Failure>> + Send;
}

impl Server {
    /// Opens a session. Where a cached token is refused, a fresh one is tried.
    async fn open<T: Converse>(&self, services: &Services) -> Result<T, Failure> {
        let Some(user) = self.user.as_deref().filter(|_| self.authenticates) else {
            return T::open(self, Login::Nobody, services).await;
        };
        let Some(account) = &self.oauth else {
            let login = Login::Password(user, self.password.as_deref().unwrap_or_default());
            return T::open(self, login, services).await;
        };
        let tokens = services.kept.get::<oauth::Tokens>();
        let (token, was_kept) = tokens.token(account, None, services).await?;
        match T::open(self, Login::Token(user, &token), services).await {
            Err(failure) if failure.reason == CREDENTIALS && was_kept => {
                let (token, _) = tokens.token(account, Some(&token), services).await?;
                T::open(self, Login::Token(user, &token), services).await
            }
            opened => opened,
        }
    }
}

/// A connection.
struct Connection {
    fields: Fields,
    /// The directory that relative paths of attachments start from.
    directory: PathBuf,
}

/// The operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EmailOperation {
    Send,
    List,
    Body,
    Attachment,
    Delete,
    MarkAsDeleted,
    MarkAsRead,
    Expunge,
}

struct Operation {
    action: EmailOperation,
    connections: Connections<Connection>,
    parameters: Parameters,
}

fn make(description: &Description<'_>, compiler: &mut Compiler<'_>) -> Option<Connection> {
    let element = description.element;
    let fields = Fields::compile(description, FIELDS, compiler);
    if fields.literal("connectionType").is_some() || !fields.has("connectionType") {
        let kind = connection::word(element, "connectionType", &TYPES, compiler).ok()?;
        if kind.is_none() {
            let message = "the connection has no `connectionType`";
            compiler.warning("bad-value", message, element.start_tag(), "messages that come to it fault");
        }
    }
    if !fields.has("host") {
        let message = "the connection has no `host`";
        compiler.warning("bad-value", message, element.start_tag(), "messages that come to it fault");
    }
    fields.check_numbers::<u16>(&["port"], element, compiler);
    let numbers = [
        "connectionTimeout",
        "readTimeout",
        "writeTimeout",
        "maxWaitTime",
        "minEvictionTime",
        "maxActiveConnections",
        "maxIdleConnections",
    ];
    fields.check_numbers::<i64>(&numbers, element, compiler);
    if fields.literal("enableOAuth2").is_some_and(|text| text.eq_ignore_ascii_case("true")) {
        report_oauth(&fields, element, compiler)?;
    }
    Some(Connection { fields, directory: compiler.configuration.root.clone() })
}

/// Reports parameters of a token that the connection lacks.
fn report_oauth(fields: &Fields, element: &Element, compiler: &mut Compiler<'_>) -> Option<()> {
    let grant = fields.literal("grantType").map(plain);
    if let Some(grant) = &grant
        && !GRANTS.contains(&grant.as_str())
    {
        connection::word(element, "grantType", &["AUTHORIZATION_CODE", "CLIENT_CREDENTIALS"], compiler)
            .ok()?;
    }
    let mut needed = vec!["clientId", "clientSecret", "tokenUrl", "username"];
    if grant.as_deref() != Some(GRANTS[1]) && !(fields.has("grantType") && grant.is_none()) {
        needed.push("refreshToken");
    }
    for name in needed.into_iter().filter(|name| !fields.has(name)) {
        let message = format!("`enableOAuth2` needs `{name}`");
        compiler.warning("bad-value", message, element.start_tag(), "messages that come to it fault");
    }
    Some(())
}

/// The grant types, without case and separators.
const GRANTS: [&str; 2] = ["authorizationcode", "clientcredentials"];

fn plain(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

impl Connection {
    /// The server for this message.
    fn server(&self, context: &mut Context) -> Result<Server, Failure> {
        let server = self.described(context)?;
        let wrong = |why: String| Failure::new(CONFIGURATION, why);
        let scheme = match server.protocol {
            Protocol::Smtp => "smtp",
            Protocol::Imap => "imap",
            Protocol::Pop3 => "pop3",
        };
        let address = [(server.host.as_str(), server.port)];
        self.fields.permit(&["host", "port"], scheme, address, context).map_err(wrong)?;
        // One that is no URL is refused where a token is needed.
        let tokens = server.oauth.as_ref().map(|account| oauth::target(&account.url, context.services()));
        if let Some(Ok((target, _))) = tokens {
            let scheme = if target.scheme() == Scheme::Https { "https" } else { "http" };
            let address = [(target.host(), target.port())];
            self.fields.permit(&["tokenUrl"], scheme, address, context).map_err(wrong)?;
        }
        Ok(server)
    }

    fn described(&self, context: &mut Context) -> Result<Server, Failure> {
        let wrong = |why: String| Failure::new(CONFIGURATION, why);
        let mut text = |name: &str| self.fields.text(name, context);
        let kind = text("connectionType")?.unwrap_or_default().to_ascii_uppercase();
        let (protocol, secure, default_port) = match kind.as_str() {
            "SMTP" => (Protocol::Smtp, false, 25),
            "SMTPS" => (Protocol::Smtp, true, 465),
            "IMAP" => (Protocol::Imap, false, 143),
            "IMAPS" => (Protocol::Imap, true, 993),
            "POP3" => (Protocol::Pop3, false, 110),
            "POP3S" => (Protocol::Pop3, true, 995),
            other => return Err(wrong(format!("there is no connectionType `{other}`"))),
        };
        let host = text("host")?.ok_or_else(|| wrong("the connection has no host".to_owned()))?;
        let port = match text("port")? {
            Some(port) => port.parse().map_err(|_| wrong(format!("`{port}` is not a port")))?,
            None => default_port,
        };
        let mut time = |name: &str, default: Duration| -> Result<Duration, Failure> {
            let Some(value) = text(name)? else { return Ok(default) };
            let millis: i64 =
                value.parse().map_err(|_| wrong(format!("`{name}` is not a number: {value}")))?;
            // A timeout of 0, or a negative one, is the default.
            let millis = u64::try_from(millis).ok().filter(|millis| *millis > 0);
            Ok(millis.map_or(default, |millis| Duration::from_millis(millis).min(LONGEST)))
        };
        let (connect, read) = (time("connectionTimeout", PATIENCE)?, time("readTimeout", PATIENCE)?);
        let (write, wait) = (time("writeTimeout", PATIENCE)?, time("maxWaitTime", PATIENCE)?);
        let keep = time("minEvictionTime", KEEP)?;
        let mut count = |name: &str, default: usize| -> Result<usize, Failure> {
            let Some(value) = text(name)? else { return Ok(default) };
            let count: i64 =
                value.parse().map_err(|_| wrong(format!("`{name}` is not a number: {value}")))?;
            Ok(usize::try_from(count).unwrap_or(default.max(64)))
        };
        let (most, idle) = (count("maxActiveConnections", 8)?, count("maxIdleConnections", 8)?);
        let mut truth = |name: &str, default: bool| -> Result<bool, Failure> {
            Ok(text(name)?.map_or(default, |value| value.eq_ignore_ascii_case("true")))
        };
        let start_tls = truth("requireTLS", false)? && !secure;
        let check_name = truth("checkServerIdentity", true)?;
        let authenticates = truth("requireAuthentication", true)?;
        let pools = !truth("disablePooling", false)?;
        let fails =
            text("exhaustedAction")?.is_some_and(|value| value.eq_ignore_ascii_case("WHEN_EXHAUSTED_FAIL"));
        let trusted = text("trustedHosts")?.is_some_and(|hosts| {
            hosts
                .split([',', ' '])
                .any(|trusted_host| trusted_host == "*" || trusted_host.eq_ignore_ascii_case(&host))
        });
        let (user, password) = (text("username")?, text("password")?);
        let oauth = match text("enableOAuth2")?.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            true => Some(account(&mut text)?),
            false => None,
        };
        if oauth.is_some() && user.is_none() {
            return Err(wrong("`enableOAuth2` needs `username`".to_owned()));
        }
        let wait = if fails { Duration::from_millis(1) } else { wait };
        let pool = Limits { most: most.max(1), idle: if pools { idle } else { 0 }, wait, keep };
        Ok(Server {
            protocol,
            secure,
            start_tls,
            host,
            port,
            user,
            password: password.filter(|_| oauth.is_none()),
            oauth,
            authenticates,
            check_name,
            trusted,
            connect,
            read,
            write,
            pool,
        })
    }
}

/// The account for tokens.
fn account(text: &mut impl FnMut(&str) -> Result<Option<String>, Fault>) -> Result<oauth::Account, Failure> {
    let mut needed = |name: &str| -> Result<String, Failure> {
        text(name)?.ok_or_else(|| Failure::new(CONFIGURATION, format!("`enableOAuth2` needs `{name}`")))
    };
    let (url, client, secret) = (needed("tokenUrl")?, needed("clientId")?, needed("clientSecret")?);
    let refresh = match text("grantType")?.map(|grant| plain(&grant)).as_deref() {
        None => Some(()),
        Some(grant) if grant == GRANTS[0] => Some(()),
        Some(grant) if grant == GRANTS[1] => None,
        Some(_) => {
            let why = "`grantType` is AUTHORIZATION_CODE or CLIENT_CREDENTIALS";
            return Err(Failure::new(CONFIGURATION, why));
        }
    };
    let refresh = match refresh {
        Some(()) => Some(
            text("refreshToken")?
                .ok_or_else(|| Failure::new(CONFIGURATION, "`enableOAuth2` needs `refreshToken`"))?,
        ),
        None => None,
    };
    Ok(oauth::Account { url, client, secret, refresh, scope: text("scope")? })
}

fn compile(element: &Element, action: EmailOperation, compiler: &mut Compiler<'_>) -> Compiled {
    let connections = Connections::compile(element, "email", compiler, make)?;
    // The texts of an e-mail may have values of the message in them.
    let form = |name: &str| match name {
        "subject" | "content" | "to" | "cc" | "bcc" => Form::Template,
        "attachments" | "inlineImages" | "headers" => Form::Json,
        _ => Form::Plain,
    };
    let parameters = Parameters::compile(element, form, compiler)?;
    check(action, &parameters, element, compiler);
    Some(Box::new(Operation { action, connections, parameters }))
}

/// Reports literals that are wrong.
fn check(action: EmailOperation, parameters: &Parameters, element: &Element, compiler: &mut Compiler<'_>) {
    let truths = ["deleteAfterRetrieve", "seen", "answered", "deleted", "recent"];
    parameters.check_truths(&truths, element, compiler);
    for name in ["offset", "limit"] {
        parameters.check(name, element, compiler, |text| {
            text.parse::<i64>().map(|_| ()).map_err(|_| "expected a whole number".to_owned())
        });
    }
    parameters.check_numbers(&["emailIndex", "attachmentIndex"], element, compiler);
    for name in ["receivedSince", "receivedUntil", "sentSince", "sentUntil"] {
        parameters.check(name, element, compiler, |text| {
            mailbox::moment(name, text).map(|_| ()).map_err(|failure| failure.detail)
        });
    }
    if action == EmailOperation::Attachment {
        parameters.check_given(&["attachmentIndex"], element, compiler);
    }
    let takes_one_mail = matches!(
        action,
        EmailOperation::Body
            | EmailOperation::Attachment
            | EmailOperation::Delete
            | EmailOperation::MarkAsDeleted
            | EmailOperation::MarkAsRead
    );
    let is_named = ["emailId", "emailID", "emailIndex"].iter().any(|name| !parameters.is_absent(name));
    if takes_one_mail && !is_named {
        parameters.check_given(&["emailId"], element, compiler);
    }
    if action == EmailOperation::Send {
        mail::check(parameters, element, compiler);
    }
}

/// The idle sessions.
type Conversations<T> = Pools<Server, T>;

impl Operation {
    fn name(&self) -> &'static str {
        match self.action {
            EmailOperation::Send => "email.send",
            EmailOperation::List => "email.list",
            EmailOperation::Body => "email.getEmailBody",
            EmailOperation::Attachment => "email.getEmailAttachment",
            EmailOperation::Delete => "email.delete",
            EmailOperation::MarkAsDeleted => "email.markAsDeleted",
            EmailOperation::MarkAsRead => "email.markAsRead",
            EmailOperation::Expunge => "email.expungeFolder",
        }
    }

    async fn run(&self, context: &mut Context) -> Result<Flow, Fault> {
        let place = Place::of(&self.parameters, context)?;
        match self.perform(context).await {
            Ok(outcome) => outcome.deliver(place, context)?,
            Err(failure) => return Err(failure.into_fault(self.name(), &place, context)),
        }
        Ok(Flow::Next)
    }

    async fn perform(&self, context: &mut Context) -> Result<Outcome, Failure> {
        // An e-mail of the last list needs no server.
        if matches!(self.action, EmailOperation::Body | EmailOperation::Attachment)
            && let Some(outcome) = self.of_listed(context)?
        {
            return Ok(outcome);
        }
        let connection =
            self.connections.find(context).map_err(|fault| Failure::new(CONFIGURATION, fault.message))?;
        let server = connection.server(context)?;
        match (self.action, server.protocol) {
            (EmailOperation::Send, Protocol::Smtp) => self.send(&connection, &server, context).await,
            (EmailOperation::Send, _) | (_, Protocol::Smtp) => {
                let need = if self.action == EmailOperation::Send { "SMTP or SMTPS" } else { "IMAP or POP3" };
                Err(Failure::new(
                    CONFIGURATION,
                    format!("the operation needs a connection of the type {need}"),
                ))
            }
            _ => self.in_mailbox(&server, context).await,
        }
    }

    async fn send(
        &self,
        connection: &Connection,
        server: &Server,
        context: &mut Context,
    ) -> Result<Outcome, Failure> {
        let draft = self.draft(connection, server, context)?;
        let most = context.services().limits.held;
        let letter = off_worker("an e-mail", move || draft.letter(most), context).await??;
        let pool = context.services().kept.get::<Conversations<smtp::Session>>().of(server, server.pool);
        let _place = place(&pool, server).await?;
        let mut session = None;
        while let Some(mut waiting) = pool.take() {
            if waiting.is_alive().await {
                session = Some(waiting);
                break;
            }
        }
        let mut session = match session {
            Some(session) => session,
            None => server.open::<smtp::Session>(context.services()).await?,
        };
        session.send(&letter).await?;
        pool.keep(session);
        let payload = json!({ "success": true });
        let body = Body::Xml("<result><success>true</success></result>".to_owned());
        Ok(Outcome { payload, attributes: Map::new(), body })
    }

    fn draft(
        &self,
        connection: &Connection,
        server: &Server,
        context: &mut Context,
    ) -> Result<mail::Draft, Failure> {
        let parameters = &self.parameters;
        let user = server.user.clone().filter(|user| user.contains('@'));
        let from = parameters.text("from", context)?.or(user);
        let from = from.ok_or_else(|| Failure::new(CONFIGURATION, "the parameter `from` is not given"))?;
        let files = |name: &str, context: &mut Context| match parameters.text(name, context)? {
            Some(text) => mail::sources(name, &text, &connection.directory),
            None => Ok(Vec::new()),
        };
        let (attachments, images) = (files("attachments", context)?, files("inlineImages", context)?);
        let headers = match parameters.text("headers", context)? {
            Some(text) => headers(&text)?,
            None => Vec::new(),
        };
        let content =
            parameters.value("content", context)?.map(|value| value.to_string()).unwrap_or_default();
        // Elements in this value are HTML, not configuration.
        let content = content.replace(&format!(" xmlns=\"{}\"", config::SYNAPSE), "");
        Ok(mail::Draft {
            from,
            personal_name: parameters.text("personalName", context)?,
            to: parameters.text("to", context)?,
            cc: parameters.text("cc", context)?,
            bcc: parameters.text("bcc", context)?,
            reply_to: parameters.text("replyTo", context)?,
            subject: parameters.text("subject", context)?,
            headers,
            content,
            content_type: parameters.text("contentType", context)?,
            charset: parameters.text("encoding", context)?,
            transfer_encoding: parameters.text("contentTransferEncoding", context)?,
            attachments,
            images,
        })
    }
}

/// Waits for a permit of the pool.
async fn place<T>(pool: &Pool<T>, server: &Server) -> Result<tokio::sync::OwnedSemaphorePermit, Failure> {
    let busy = || {
        let why = format!(
            "{}:{}: {} connections are in use, and none was free in time (maxActiveConnections, maxWaitTime)",
            server.host, server.port, server.pool.most
        );
        Failure::new(CONNECTIVITY, why)
    };
    pool.place().await.ok_or_else(busy)
}

/// The headers of a parameter: `Name: value` between commas, or pairs as JSON.
fn headers(text: &str) -> Result<Vec<(String, String)>, Failure> {
    let wrong =
        |why: String| Failure::new(CONFIGURATION, format!("`headers` is not a list of headers: {why}"));
    let list = match text.starts_with(['[', '{']) {
        true if text.starts_with('{') => crate::http::pairs(&format!("[{text}]")).map_err(wrong)?,
        true => crate::http::pairs(text).map_err(wrong)?,
        false => {
            let split = |line: &str| {
                let (name, value) = line.split_once(':').ok_or_else(|| wrong(line.to_owned()))?;
                Ok((name.trim().to_owned(), value.trim().to_owned()))
            };
            let list: Result<Vec<_>, Failure> =
                text.split(',').map(str::trim).filter(|line| !line.is_empty()).map(split).collect();
            list?
        }
    };
    // Headers that other parameters set.
    let has_parameter = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.starts_with("content-")
            || matches!(
                &*name,
                "from"
                    | "to"
                    | "cc"
                    | "bcc"
                    | "reply-to"
                    | "subject"
                    | "date"
                    | "message-id"
                    | "mime-version"
            )
    };
    match list.iter().find(|(name, _)| has_parameter(name)) {
        Some((name, _)) => Err(wrong(format!("{name} is made of other parameters"))),
        None => Ok(list),
    }
}

impl Mediator for Operation {
    fn passes_on(&self) -> bool {
        self.parameters.need() >= Need::Prefix
    }

    fn moves(&self) -> Moves {
        Moves::Never
    }

    fn need(&self) -> Need {
        let need = match self.parameters.get(VARIABLE) {
            None if self.action != EmailOperation::Body => Need::Replaces,
            _ => Need::Nothing,
        };
        need.max(self.parameters.need()).max(self.connections.need())
    }

    fn reason(&self) -> String {
        match self.need() {
            Need::Replaces => "its result takes the place of the body".to_owned(),
            _ => self.parameters.reason(),
        }
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        Step::Wait(Box::pin(Operation::run(self, context)))
    }
}
