//! The file connector: reading, writing and moving files of this machine.
//!
//! The parameters of an operation are evaluated on the worker and make a *job*. The job runs on a thread that may wait for a disk; nothing
//! of the message goes there. A job writes to a temporary name and renames at the end (`files::partial`), so that a file with
//! the given name is complete, whenever the process ends.

/// The parameters of an operation with retries and a result.
macro_rules! parameters {
    ($($parameter:literal),*) => {
        &[
            $($parameter,)*
            "maxRetries",
            "retryDelay",
            "diskShareAccessMask",
            crate::response::VARIABLE,
            crate::response::OVERWRITE,
        ]
    };
}

mod archive;
mod elements;
mod fileconnector;
mod list;
mod locks;
mod made;
mod parts;
mod path;
mod read;
mod running;
mod spool;
mod transfer;
mod write;

use crate::connection::{self, Connections, Description};
use crate::operation::operation;
use crate::parameter::{Form, Parameters};
use crate::response::{Place, VARIABLE};
use config::Element;
use flow::fault::Code;
use flow::{Compiled, Compiler, Context, Definition, Fault, Flow, Mediator, Moves, Need, Step};
use locks::Scheme;
use message::memory::{Held, Shortage};
use message::{PayloadError, Value};
use path::Root;
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;
use std::time::Duration;

/// The operations.
pub(crate) const OPERATIONS: &[&Definition] = &[
    &INIT,
    &read::READ,
    &write::WRITE,
    &transfer::CHECK_EXIST,
    &transfer::CREATE_DIRECTORY,
    &transfer::COPY,
    &transfer::MOVE,
    &transfer::RENAME,
    &transfer::DELETE,
    &list::LIST_FILES,
    &list::FETCH,
    &archive::COMPRESS,
    &archive::UNZIP,
    &archive::EXPLORE,
    &parts::SPLIT,
    &parts::MERGE,
];

pub(crate) use fileconnector::OPERATIONS as FILECONNECTOR;

const INIT: Definition = operation(
    "file.init",
    "Describes the connection of the steps behind it.",
    FIELDS,
    |element, compiler| connection::init(element, compiler, make),
);

/// The fields of a connection.
const FIELDS: &[&str] = &[
    "name",
    "connectionType",
    "workingDir",
    "fileLockScheme",
    "maxFailureRetryCount",
    "setAvoidPermission",
    "fileCacheEnabled",
    "suspendOnConnectionFailure",
    "retriesBeforeSuspension",
    "suspendInitialDuration",
    "suspendProgressionFactor",
    "suspendMaximumDuration",
    // Fields of remote servers: a connection to one is reported as a whole.
    "host",
    "port",
    "username",
    "password",
    "encodePassword",
    "userDirIsRoot",
    "enableEncryption",
    "isPassive",
    "ftpConnectionTimeout",
    "ftpSocketTimeout",
    "retryCount",
    "keyStorePath",
    "keyStorePassword",
    "trustStorePath",
    "trustStorePassword",
    "implicitModeEnabled",
    "channelProtectionLevel",
    "sftpConnectionTimeout",
    "sftpSessionTimeout",
    "strictHostKeyChecking",
    "privateKeyFilePath",
    "privateKeyPassword",
    "sftpPoolConnectionAgedTimeout",
    "maxActiveConnections",
    "maxIdleConnections",
    "maxWaitTime",
    "evictionCheckInterval",
    "minEvictionTime",
    "exhaustedAction",
    "cacheFileStats",
];

/// Most attempts of one operation.
const MOST_RETRIES: u32 = 100;
/// Longest time between two attempts.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// The reason of a failure: the error codes of the connector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Connection,
    IllegalPath,
    Exists,
    RetryExhausted,
    AccessDenied,
    Locking,
    Configuration,
    Operation,
}

impl Reason {
    /// ERROR_CODE and ERROR_MESSAGE.
    fn code(self) -> (i32, &'static str) {
        match self {
            Reason::Connection => (700_101, "FILE:CONNECTION_ERROR"),
            Reason::IllegalPath => (700_102, "FILE:ILLEGAL_PATH"),
            Reason::Exists => (700_103, "FILE:FILE_ALREADY_EXISTS"),
            Reason::RetryExhausted => (700_104, "FILE:RETRY_EXHAUSTED"),
            Reason::AccessDenied => (700_105, "FILE:ACCESS_DENIED"),
            Reason::Locking => (700_106, "FILE:FILE_LOCKING_ERROR"),
            Reason::Configuration => (700_107, "FILE:INVALID_CONFIGURATION"),
            Reason::Operation => (700_108, "FILE:OPERATION_ERROR"),
        }
    }
}

/// A failed operation.
#[derive(Clone, Debug)]
struct Failure {
    reason: Reason,
    detail: String,
    /// The underlying fault of the engine: too busy, a payload that cannot be read.
    fault: Option<Box<Fault>>,
}

impl Failure {
    fn new(reason: Reason, detail: impl Into<String>) -> Failure {
        Failure { reason, detail: detail.into(), fault: None }
    }

    /// The failure for an I/O error at a path.
    fn io(path: &std::path::Path, error: &std::io::Error) -> Failure {
        use std::io::ErrorKind;
        let reason = match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory => Reason::IllegalPath,
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Reason::AccessDenied,
            ErrorKind::AlreadyExists => Reason::Exists,
            _ => Reason::Operation,
        };
        Failure::new(reason, format!("{}: {error}", path.display()))
    }

    /// With the file in front of the message.
    fn about(self, path: &std::path::Path) -> Failure {
        Failure { detail: format!("{}: {}", path.display(), self.detail), ..self }
    }

    /// The failure for a pipe, a device or a directory where a file is expected.
    fn no_file(path: &std::path::Path) -> Failure {
        Failure::new(Reason::IllegalPath, format!("{} is not a file", path.display()))
    }

    /// Whether a retry may succeed.
    fn is_passing(&self) -> bool {
        self.fault.is_none() && matches!(self.reason, Reason::Operation | Reason::Locking)
    }
}

impl From<files::Error> for Failure {
    fn from(error: files::Error) -> Failure {
        use files::Error;
        let reason = match &error {
            Error::Io(path, why) => return Failure::io(path, why),
            Error::NoFile(_) | Error::Directory(_) => Reason::IllegalPath,
            Error::Exists(_) => Reason::Exists,
            Error::Locked(_) | Error::Lock(..) => Reason::Locking,
            Error::Changed(_) | Error::Abandoned => Reason::Operation,
        };
        Failure::new(reason, error.to_string())
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        Failure { reason: Reason::Operation, detail: fault.message.clone(), fault: Some(Box::new(fault)) }
    }
}

impl From<Shortage> for Failure {
    fn from(shortage: Shortage) -> Failure {
        Fault::from(PayloadError::Shortage(shortage)).into()
    }
}

/// What a job works with.
struct Files {
    connection: Arc<Connection>,
    cancel: meter::Cancel,
    /// Most bytes of a file that become a payload.
    held: usize,
    /// Time limit of an expression.
    time: Duration,
    /// The operation locks its file (`enableLock`).
    lock: bool,
}

impl Files {
    /// The path relative to the working directory.
    fn path(&self, text: &str) -> Result<std::path::PathBuf, Failure> {
        self.connection.root.resolve(text)
    }

    /// Ends a job whose caller has gone.
    fn go_on(&self) -> Result<(), Failure> {
        match self.cancel.is_cancelled() {
            true => Err(Failure::new(Reason::Operation, "nobody waits for the operation any more")),
            false => Ok(()),
        }
    }
}

/// The outcome of a job.
#[derive(Default)]
struct JobResult {
    /// Members of the result beside `success`.
    members: Map<String, Json>,
    /// The content of a file, which becomes the result.
    content: Option<Content>,
    /// The attributes of the file.
    attributes: Map<String, Json>,
    /// The memory of the result, until the message has ended.
    held: Held,
    /// What was missing: goes into the log and into the result.
    missing: Option<String>,
}

/// The content of a file.
struct Content {
    bytes: Vec<u8>,
    content_type: String,
    /// Counts the bytes of memory until the message has ended.
    held: Held,
    /// In place of the bytes: the file is read while the body is sent.
    open: Option<read::Open>,
}

/// The work of an operation on files. It runs again for a retry.
type Job = Arc<dyn Fn(&Files) -> Result<JobResult, Failure> + Send + Sync>;

/// Makes the job for a message.
type Prepare = fn(&Parameters, &mut Context) -> Result<Job, Failure>;

/// A connection.
struct Connection {
    root: Root,
    locks: Scheme,
    /// The reason why it cannot be used.
    absent: Option<String>,
}

/// Where an operation finds its files.
enum Where {
    Connected(Connections<Connection>),
    /// All files of this machine: the operation has no connection.
    Machine(Arc<Connection>),
}

impl Where {
    fn find(&self, context: &mut Context) -> Result<Arc<Connection>, Failure> {
        match self {
            Where::Machine(connection) => Ok(Arc::clone(connection)),
            Where::Connected(connection) => {
                connection.find(context).map_err(|fault| Failure::new(Reason::Connection, fault.message))
            }
        }
    }
}

struct Operation {
    connector: &'static str,
    name: &'static str,
    place: Where,
    parameters: Parameters,
    prepare: Prepare,
    need: Need,
    /// The body is written while it is received.
    streams: bool,
}

/// The body, after it was received.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    /// The body may be replaced, and is not read.
    Unread,
    /// The body is neither read nor replaced.
    Kept,
    /// The body is set.
    Written,
}

/// Compiles an operation.
fn compile(
    element: &Element,
    name: &'static str,
    body: Body,
    prepare: Prepare,
    compiler: &mut Compiler<'_>,
) -> Compiled {
    let connections = Connections::compile(element, "file", compiler, make)?;
    let parameters = Parameters::compile(element, |_| Form::Plain, compiler)?;
    check(name, &parameters, element, compiler);
    let streams = body == Body::Written && write::streams(&parameters);
    let message_need = match body {
        Body::Written if streams => Need::Headers,
        Body::Written if parameters.is_absent("contentOrExpression") => Need::Whole,
        Body::Unread | Body::Written if parameters.get(VARIABLE).is_none() => Need::Replaces,
        _ => Need::Nothing,
    };
    let need = message_need.max(parameters.need()).max(connections.need());
    let place = Where::Connected(connections);
    Some(Box::new(Operation { connector: "file", name, place, parameters, prepare, need, streams }))
}

/// Reports literals that are wrong.
fn check(name: &str, parameters: &Parameters, element: &Element, compiler: &mut Compiler<'_>) {
    let given: &[&str] = match name {
        "read" | "checkExist" | "delete" => &["path"],
        "write" => &["filePath"],
        "createDirectory" | "listFiles" | list::CONTENTS => &["directoryPath"],
        "copy" | "move" => &["sourcePath", "targetPath"],
        "rename" => &["path", "renameTo"],
        "compress" | "mergeFiles" => &["sourceDirectoryPath", "targetFilePath"],
        "unzip" => &["sourceFilePath", "targetDirectory"],
        "exploreZipFile" => &["zipFilePath"],
        "splitFile" => &["sourceFilePath", "targetDirectory", "splitMode"],
        _ => &[],
    };
    parameters.check_given(given, element, compiler);
    let lines = ["startLineNum", "endLineNum", "lineNum", "chunkSize", "lineCount"];
    parameters.check_numbers(&lines, element, compiler);
    let limits = ["maxRetries", "retryDelay", "subDirectoryMaxDepth", "maxFileAge"];
    parameters.check_numbers(&limits, element, compiler);
    let truths = [
        "enableLock",
        "enableStreaming",
        "createParentDirectories",
        "overwrite",
        "includeParent",
        "recursive",
        "appendNewLine",
        "compress",
        "updateLastModified",
        "appendFileAttributes",
        "includeSubDirectories",
        "includeFileNames",
    ];
    parameters.check_truths(&truths, element, compiler);
    let modes: &[&'static str] = match name {
        "mergeFiles" => &["Overwrite", "Append"],
        _ => &["Overwrite", "Append", "Create New"],
    };
    parameters.check_word("writeMode", modes, element, compiler);
    let splits = ["Chunk Size", "Line Count", "XPATH Expression"];
    parameters.check_word("splitMode", &splits, element, compiler);
    let reads = [
        "Complete File",
        "Starting From Line",
        "Up To Line",
        "Between Lines",
        "Specific Line",
        "Metadata Only",
    ];
    parameters.check_word("readMode", &reads, element, compiler);
    parameters.check_word("sortingOrder", &["Ascending", "Descending"], element, compiler);
    let needed: &[(&str, &str, &[&str])] = &[
        ("readMode", "Specific Line", &["lineNum"]),
        ("readMode", "Starting From Line", &["startLineNum"]),
        ("readMode", "Up To Line", &["endLineNum"]),
        ("readMode", "Between Lines", &["startLineNum", "endLineNum"]),
        ("splitMode", "Chunk Size", &["chunkSize"]),
        ("splitMode", "Line Count", &["lineCount"]),
        ("splitMode", "XPATH Expression", &["xpathExpression"]),
    ];
    if name == list::CONTENTS && parameters.get(VARIABLE).is_none() {
        parameters.check_given(&["resultPropertyName"], element, compiler);
    }
    for (_, _, names) in needed.iter().filter(|(switch, word, _)| parameters.is_literally(switch, word)) {
        parameters.check_given(names, element, compiler);
        // Lines count from 1, and no part is empty.
        for name in *names {
            parameters.check(name, element, compiler, |text| match text.parse::<u64>() {
                Ok(0) => Err("expected a whole number of at least 1".to_owned()),
                _ => Ok(()),
            });
        }
    }
    parameters.check("appendPosition", element, compiler, |text| match text.parse::<i64>() {
        Ok(0..) => Ok(()),
        _ => Err("expected a whole number of at least 0".to_owned()),
    });
    let encodings: &[&str] = match name {
        "read" => &["encoding", "charset"],
        "write" => &["encoding"],
        _ => &[],
    };
    for name in encodings {
        parameters.check(name, element, compiler, |text| {
            write::encoded(String::new(), Some(text)).map(|_| ()).map_err(|failure| failure.detail)
        });
    }
    parameters.check("xpathExpression", element, compiler, |text| {
        elements::compiled(text).map(|_| ()).map_err(|failure| failure.detail)
    });
    parameters.check_word("includeResultTo", &["Message Body", "Message Property"], element, compiler);
    parameters.check_word("fileFilterType", &["regex", "ant"], element, compiler);
    parameters.check_word("responseFormat", &["Hierarchical", "Flat"], element, compiler);
    parameters.check_word("sortingAttribute", &["Name", "Size", "LastModifiedTime"], element, compiler);
    if name != "listFiles" || !parameters.is_literally("fileFilterType", "ANT") {
        for pattern in ["matchingPattern", "filePattern", "sourceFilePattern"] {
            parameters.check(pattern, element, compiler, |text| {
                flow::Pattern::compile(text)
                    .map(|_| ())
                    .map_err(|why| format!("not a regular expression: {why}"))
            });
        }
    }
}

fn make(description: &Description<'_>, compiler: &mut Compiler<'_>) -> Option<Connection> {
    let element = description.element;
    let directory = connection::field(element, "workingDir", compiler);
    let kind = connection::field(element, "connectionType", compiler).unwrap_or_else(|| "LOCAL".to_owned());
    connection::report_unknown(description, FIELDS, compiler);
    let is_expression = directory.as_ref().is_some_and(|text| text.starts_with('{') || text.contains("${"));
    let absent = if is_expression {
        Some("`workingDir` is not an expression: it is the same for all messages".to_owned())
    } else {
        (!kind.eq_ignore_ascii_case("LOCAL"))
            .then(|| format!("connections of the type {kind} need a file transport: not in this version"))
    };
    if let Some(why) = &absent {
        let message = format!(
            "the connection `{}` cannot be used: messages that come to it fault",
            description.key.value
        );
        compiler.warning("unsupported-connector", message, description.key.span, why.clone());
    }
    let scheme = connection::word(element, "fileLockScheme", &["Local", "Cluster"], compiler).ok()?;
    Some(Connection {
        root: Root::of(directory.as_deref(), &compiler.configuration.root),
        locks: if scheme == Some("Cluster") { Scheme::Cluster } else { Scheme::Local },
        absent,
    })
}

impl Operation {
    async fn run(&self, context: &mut Context) -> Result<Flow, Fault> {
        let place = Place::of(&self.parameters, context)?;
        match self.perform(context).await {
            Ok(done) => self.deliver(done, place, context),
            Err(failure) => Err(self.failed(failure, &place, context)),
        }
    }

    async fn perform(&self, context: &mut Context) -> Result<JobResult, Failure> {
        let connection = self.place.find(context)?;
        if let Some(why) = &connection.absent {
            return Err(Failure::new(Reason::Connection, why.as_str()));
        }
        let retries = number(&self.parameters, "maxRetries", context)?.unwrap_or(0).min(MOST_RETRIES.into());
        let delay = number(&self.parameters, "retryDelay", context)?.unwrap_or(0);
        let delay = Duration::from_millis(delay).min(LONGEST_DELAY);
        let lock = self.parameters.is_true("enableLock", false, context)?;
        let spooled = match self.streams {
            true => spool::spool(&self.parameters, &connection, context).await?,
            false => None,
        };
        let job = match &spooled {
            Some(spooled) => write::prepare_spooled(&self.parameters, spooled, context)?,
            None => (self.prepare)(&self.parameters, context)?,
        };
        let done = self.attempts(&connection, &job, lock, (retries, delay), context).await;
        if let Some(spooled) = spooled {
            spooled.put_back(context);
        }
        done
    }

    /// Runs a job, with retries.
    async fn attempts(
        &self,
        connection: &Arc<Connection>,
        job: &Job,
        lock: bool,
        (retries, delay): (u64, Duration),
        context: &mut Context,
    ) -> Result<JobResult, Failure> {
        let mut attempt = 0;
        loop {
            let failure = match running::run(connection, job, lock, context).await {
                Ok(done) => return Ok(done),
                Err(failure) => failure,
            };
            if retries == 0 || !failure.is_passing() {
                return Err(failure);
            }
            if attempt == retries {
                let detail = format!("{} (the last of {} attempts)", failure.detail, retries + 1);
                return Err(Failure::new(Reason::RetryExhausted, detail));
            }
            attempt += 1;
            tokio::time::sleep(delay).await;
        }
    }

    /// Stores the result where the parameters say.
    fn deliver(&self, done: JobResult, place: Place, context: &mut Context) -> Result<Flow, Fault> {
        let JobResult { members, content, attributes, held, missing } = done;
        if let Some(content) = content {
            return self.deliver_content(content, attributes, place, context);
        }
        if let Some(missing) = missing {
            let operation = format!("{}.{}", self.connector, self.name);
            tracing::warn!(message_id = %context.message_id(), "{operation}: {missing}");
        }
        if self.name == list::CONTENTS {
            context.hold(Arc::new(held));
        }
        let mut result = Map::new();
        if matches!(self.place, Where::Connected(_)) {
            result.insert("success".to_owned(), Json::Bool(true));
        }
        result.extend(members);
        if place == Place::Body && !attributes.is_empty() {
            set_properties(&attributes, context);
        }
        self.put(result, attributes, place, context)?;
        Ok(Flow::Next)
    }

    /// Stores a result in the body or the variable, or in the property that older connectors use.
    fn put(
        &self,
        mut result: Map<String, Json>,
        attributes: Map<String, Json>,
        place: Place,
        context: &mut Context,
    ) -> Result<(), Fault> {
        match place {
            Place::Variable(name) => {
                let map = json!({ "payload": result, "headers": {}, "attributes": attributes });
                context.variables.set(name, Value::Json(Arc::new(map)));
            }
            Place::BodyAndVariable(name) => {
                context.payload.set_json_value(Json::Object(result));
                context.set_axis2("messageType", Value::from("application/json"));
                let map = json!({ "headers": {}, "attributes": attributes });
                context.variables.set(name, Value::Json(Arc::new(map)));
            }
            Place::Body if self.name == list::CONTENTS => {
                let property = self.parameters.text("resultPropertyName", context)?.unwrap_or_default();
                let contents = result.remove(list::CONTENTS).unwrap_or_default();
                context.properties.set(property, Value::Json(Arc::new(contents)));
            }
            Place::Body => {
                let xml = match &self.place {
                    Where::Connected(_) => crate::result::xml(&format!("{}Result", self.name), &result),
                    Where::Machine(_) => fileconnector::xml(&result),
                };
                let to = self.parameters.text("includeResultTo", context)?.unwrap_or_default();
                let property = self.parameters.text("resultPropertyName", context)?;
                match property.filter(|_| to.eq_ignore_ascii_case("Message Property")) {
                    // Only the answer, as the older connectors do: `true` or `false`.
                    Some(property) if self.name == transfer::CHECK => {
                        let exists = result.get(transfer::EXISTS).is_some_and(|is| is == true);
                        context.properties.set(property, Value::from(exists.to_string()));
                    }
                    Some(property) => {
                        let value = crate::result::element(&xml).map_err(Fault::new)?;
                        context.properties.set(property, value);
                    }
                    None => crate::result::set_xml(&xml, context)?,
                }
            }
        }
        Ok(())
    }

    fn deliver_content(
        &self,
        content: Content,
        attributes: Map<String, Json>,
        place: Place,
        context: &mut Context,
    ) -> Result<Flow, Fault> {
        let to = self.parameters.text("includeResultTo", context)?.unwrap_or_default();
        let property = self.parameters.text("resultPropertyName", context)?;
        let mut content = content;
        context.hold(Arc::new(std::mem::take(&mut content.held)));
        if let (Place::Body, Some(property)) =
            (&place, property.filter(|_| to.eq_ignore_ascii_case("Message Property")))
        {
            set_properties(&attributes, context);
            context.properties.set(property, Value::from(content.text()));
            return Ok(Flow::Next);
        }
        match place {
            Place::Variable(name) => {
                let payload = content
                    .value()
                    .map_err(|failure| self.failed(failure, &Place::Variable(Arc::clone(&name)), context))?;
                let map = json!({ "payload": payload, "headers": {}, "attributes": attributes });
                context.variables.set(name, Value::Json(Arc::new(map)));
            }
            Place::BodyAndVariable(name) => {
                content.into_body(context);
                let map = json!({ "headers": {}, "attributes": attributes });
                context.variables.set(name, Value::Json(Arc::new(map)));
            }
            Place::Body => {
                set_properties(&attributes, context);
                content.into_body(context);
            }
        }
        Ok(Flow::Next)
    }

    /// The fault of a failed operation. With a `responseVariable` the result in it has the error.
    fn failed(&self, failure: Failure, place: &Place, context: &mut Context) -> Fault {
        if let Some(fault) = failure.fault {
            return *fault;
        }
        let (code, message) = failure.reason.code();
        let detail = format!("{}.{}: {}", self.connector, self.name, failure.detail);
        if let Place::Variable(name) | Place::BodyAndVariable(name) = place {
            let error = json!({ "code": code.to_string(), "message": message, "detail": detail });
            let map =
                json!({ "payload": { "success": false, "error": error }, "headers": {}, "attributes": {} });
            context.variables.set(Arc::clone(name), Value::Json(Arc::new(map)));
        }
        context.set_axis2("HTTP_SC", Value::from("500"));
        Fault { code: Code::Number(code), ..Fault::new(message) }.because(detail)
    }
}

/// The attributes of a file as properties, as older connectors set them.
fn set_properties(attributes: &Map<String, Json>, context: &mut Context) {
    for (name, value) in attributes {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        context.properties.set(name.as_str(), Value::from(text));
    }
}

impl Mediator for Operation {
    fn passes_on(&self) -> bool {
        matches!(self.need, Need::Prefix | Need::Whole)
    }

    fn moves(&self) -> Moves {
        Moves::Never
    }

    fn need(&self) -> Need {
        self.need
    }

    fn reason(&self) -> String {
        match self.need {
            Need::Replaces => "its result takes the place of the body".to_owned(),
            Need::Whole if self.parameters.need() < Need::Whole => "writes the body".to_owned(),
            _ => self.parameters.reason(),
        }
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        Step::Wait(Box::pin(Operation::run(self, context)))
    }
}

/// A required parameter.
fn required(parameters: &Parameters, name: &str, context: &mut Context) -> Result<String, Failure> {
    parameters
        .text(name, context)?
        .ok_or_else(|| Failure::new(Reason::Configuration, format!("the parameter `{name}` is not given")))
}

/// A whole number of at least 0.
fn number(parameters: &Parameters, name: &str, context: &mut Context) -> Result<Option<u64>, Failure> {
    let Some(text) = parameters.text(name, context)? else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        Failure::new(
            Reason::Configuration,
            format!("the parameter `{name}` is not a number of at least 0: {text}"),
        )
    })
}

/// A regular expression that has to match a whole name; absent: any name.
fn pattern(
    parameters: &Parameters,
    name: &str,
    context: &mut Context,
) -> Result<Option<Arc<flow::Pattern>>, Failure> {
    let Some(text) = expected(parameters, name, context)? else { return Ok(None) };
    compiled(name, &text).map(Some)
}

/// The text of a parameter that limits the operation. An expression without a value is an error, and not the default.
fn expected(parameters: &Parameters, name: &str, context: &mut Context) -> Result<Option<String>, Failure> {
    match parameters.text(name, context)? {
        None if !parameters.is_absent(name) => Err(gives_nothing(name)),
        text => Ok(text),
    }
}

fn gives_nothing(name: &str) -> Failure {
    Failure::new(Reason::Configuration, format!("the expression of the parameter `{name}` gives nothing"))
}

fn compiled(name: &str, text: &str) -> Result<Arc<flow::Pattern>, Failure> {
    flow::Pattern::compile(text).map(Arc::new).map_err(|why| {
        Failure::new(
            Reason::Configuration,
            format!("the parameter `{name}` is not a regular expression: {why}"),
        )
    })
}

/// Whether a pattern accepts a name.
fn is_wanted(name: &str, pattern: Option<&flow::Pattern>) -> Result<bool, Failure> {
    let Some(pattern) = pattern else { return Ok(true) };
    pattern
        .matches(name)
        .map_err(|stop| Failure::new(Reason::Operation, format!("the pattern was broken off: {stop}")))
}
