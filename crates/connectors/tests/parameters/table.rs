//! Each parameter of each operation with values that are good, wrong and missing, and each operation without its server or its files.
//!
//! What comes of it is in `outcomes.txt`: one line for each parameter, with the cases behind their outcome. An outcome is `ok`, or the ERROR_CODE and
//! ERROR_MESSAGE; `said` is behind the cases of which loading warns. `BUSBAR_PARAMETERS=write` writes the file: read what has changed.

use super::*;
use busbar_connectors::definitions;
use flow::Children;
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Good values by name, of all operations of a connector or of one.
const GOOD: &[(&str, &str)] = &[
    ("", "responseVariable=r;overwriteBody=true"),
    (
        "http",
        "relativePath=/a;headers=[[\"x\",\"1\"]];requestBodyType=JSON;requestBodyJson={\"a\":1};requestBodyXml=<a/>;requestBodyText=a",
    ),
    (
        "http",
        "postToUri=true;forceScAccepted=true;disableChunking=true;noEntityBody=true;forceHttp10=true;httpSc=200;nonErrorHttpStatusCodes=404",
    ),
    (
        "http",
        "httpScDesc=fine;faultsAsHttp200=true;noKeepAlive=true;restUrlPostfix=/a;requestHostHeader=h;forcePostPutNobody=true",
    ),
    ("http", "forceHttpContentLength=true;copyContentLengthFromIncoming=true"),
    (
        "http.init",
        "name=C;connectionName=C;connectionType=HTTP;baseUrl=BACKEND;authType=None;oauthAuthorizationMode=Header;oauthGrantType=Password",
    ),
    (
        "http.init",
        "username=u;password=p;clientId=c;clientSecret=s;tokenUrl=TOKENS;refreshToken=r;additionalProperties=[[\"a\",\"b\"]]",
    ),
    (
        "http.init",
        "basicCredentialsUsername=u;basicCredentialsPassword=p;oauthClientId=c;oauthClientSecret=s;oauthTokenUrl=TOKENS",
    ),
    (
        "http.init",
        "oauthRefreshToken=r;oauthAdditionalProperties=[[\"a\",\"b\"]];timeoutDuration=5000;timeoutAction=Fault;retryErrorCodes=101503",
    ),
    (
        "http.init",
        "retryCount=1;retryDelay=1;suspendErrorCodes=101503;suspendInitialDuration=1;suspendProgressionFactor=1;suspendMaximumDuration=1",
    ),
    ("http.init", "trustStoreCertificatePath=/t;certificateConfigurable=true;certificateType=a"),
    (
        "file",
        "path=in/a.txt;filePattern=.*txt;maxRetries=1;retryDelay=1;diskShareAccessMask=MAXIMUM_ALLOWED;includeResultTo=Message Body",
    ),
    (
        "file",
        "resultPropertyName=p;enableStreaming=true;enableLock=true;createParentDirectories=true;overwrite=true;includeParent=true;renameTo=b.txt",
    ),
    (
        "file",
        "sourcePath=in/a.txt;targetPath=out;sourceFilePattern=.*txt;sourceDirectoryPath=in;targetDirectory=out;isSourceMounted=true",
    ),
    ("file", "isTargetMounted=true;fileNameEncoding=UTF-8;encoding=UTF-8;matchingPattern=.*txt"),
    (
        "file.init",
        "name=C;connectionType=LOCAL;workingDir=ROOT;fileLockScheme=Local;maxFailureRetryCount=1;setAvoidPermission=true;fileCacheEnabled=true",
    ),
    (
        "file.init",
        "suspendOnConnectionFailure=true;retriesBeforeSuspension=1;suspendInitialDuration=1;suspendProgressionFactor=1;suspendMaximumDuration=1",
    ),
    (
        "file.init",
        "host=h;port=22;username=u;password=p;encodePassword=true;userDirIsRoot=true;enableEncryption=true;isPassive=true;ftpConnectionTimeout=1",
    ),
    (
        "file.init",
        "ftpSocketTimeout=1;retryCount=1;keyStorePath=k;keyStorePassword=p;trustStorePath=t;trustStorePassword=p;implicitModeEnabled=true",
    ),
    (
        "file.init",
        "channelProtectionLevel=P;sftpConnectionTimeout=1;sftpSessionTimeout=1;strictHostKeyChecking=true;privateKeyFilePath=k;privateKeyPassword=p",
    ),
    (
        "file.init",
        "sftpPoolConnectionAgedTimeout=1;maxActiveConnections=1;maxIdleConnections=1;maxWaitTime=1;evictionCheckInterval=1;minEvictionTime=1",
    ),
    ("file.init", "exhaustedAction=a;cacheFileStats=true"),
    (
        "file.read",
        "readMode=Complete File;startLineNum=1;endLineNum=2;lineNum=1;contentType=text/plain;charset=UTF-8",
    ),
    (
        "file.write",
        "filePath=out/b.txt;contentOrExpression=a;mimeType=text/plain;writeMode=Overwrite;appendPosition=1;compress=true;appendNewLine=true",
    ),
    ("file.write", "updateLastModified=true;fileWriteResultProperty=p"),
    ("file.createDirectory", "directoryPath=out/d"),
    (
        "file.listFiles",
        "directoryPath=in;fileFilterType=ant;includeFiles=*.txt;excludeFiles=*.csv;maxFileAge=100000;recursive=true;subDirectoryMaxDepth=2",
    ),
    (
        "file.listFiles",
        "responseFormat=Flat;sortingAttribute=Size;sortingOrder=Descending;appendFileAttributes=true",
    ),
    ("file.compress", "targetFilePath=out/a.zip;includeSubDirectories=true"),
    ("file.unzip", "sourceFilePath=a.zip;includeFileNames=true"),
    ("file.exploreZipFile", "zipFilePath=a.zip"),
    (
        "file.splitFile",
        "sourceFilePath=in/a.txt;splitMode=Line Count;chunkSize=2;lineCount=1;xpathExpression=//a",
    ),
    (
        "file.fetchDirectoryContent",
        "directoryPath=in;recursive=true;sortingAttribute=Size;sortingOrder=Descending;resultPropertyName=p",
    ),
    (
        "fileconnector",
        "source=ROOT/in/a.txt;destination=ROOT/out;inputContent=a;encoding=UTF-8;filePattern=.*txt;includeParentDirectory=true",
    ),
    (
        "fileconnector",
        "includeSubDirectories=true;setTimeout=1;setPassiveMode=true;setSoTimeout=1;setUserDirIsRoot=true;setStrictHostKeyChecking=no",
    ),
    (
        "fileconnector",
        "setAvoidPermission=true;sftpIdentities=k;sftpIdentityPassphrase=p;sourceSftpIdentities=k;sourceSftpIdentityPassphrase=p",
    ),
    ("fileconnector", "targetSftpIdentities=k;targetSftpIdentityPassphrase=p"),
    ("fileconnector.append", "destination=ROOT/in/a.txt;position=1"),
    ("fileconnector.archives", "source=ROOT/in;destination=ROOT/out/a.zip;fileName=n.txt"),
    ("fileconnector.create", "filePath=ROOT/out/n.txt;source=ROOT/out/n.txt;isBinaryContent=false"),
    ("fileconnector.listFileZip", "source=ROOT/a.zip"),
    ("fileconnector.unzip", "source=ROOT/a.zip"),
    ("fileconnector.read", "contentType=text/plain;streaming=true"),
    ("fileconnector.search", "source=ROOT/in;recursiveSearch=true"),
    ("fileconnector.send", "address=ROOT/out.json;append=true"),
    ("fileconnector.splitFile", "chunkSize=2;numberOfLines=1;xpathExpression=//a"),
    ("fileconnector.mergeFiles", "source=ROOT/in;destination=ROOT/out/m.txt"),
    ("fileconnector.readSpecifiedLines", "contentType=text/plain;start=1;end=2"),
    ("fileconnector.readALine", "lineNumber=1"),
    ("file.mergeFiles", "targetFilePath=out/m.txt;writeMode=Overwrite"),
    ("email", "folder=INBOX;connection=Mail;emailId=1@x;emailID=1@x;emailIndex=0;attachmentIndex=0"),
    (
        "email.send",
        "from=a@x.org;personalName=Ann;to=b@x.org;cc=b@x.org;bcc=b@x.org;replyTo=b@x.org;subject=s;headers=X-A:b;content=c;contentType=text/plain",
    ),
    (
        "email.send",
        "encoding=UTF-8;contentTransferEncoding=Base64;attachments=ROOT/in/a.txt;inlineImages=[{\"contentID\":\"l\",\"fileName\":\"l\",\"content\":\"aGk=\"}]",
    ),
    (
        "email.list",
        "deleteAfterRetrieve=false;subjectRegex=.*;fromRegex=.*;seen=false;answered=false;deleted=false;recent=false;receivedSince=2026-07-17T12:00:00Z",
    ),
    (
        "email.list",
        "receivedUntil=2026-07-17T12:00:00Z;sentSince=2026-07-17T12:00:00Z;sentUntil=2026-07-17T12:00:00Z;offset=0;limit=1",
    ),
    (
        "email.init",
        "name=C;connectionType=IMAP;host=127.0.0.1;port=PORT;username=ann@example.org;password=se\"cret;requireAuthentication=true",
    ),
    (
        "email.init",
        "connectionTimeout=2000;readTimeout=2000;writeTimeout=2000;requireTLS=false;checkServerIdentity=true;trustedHosts=h;sslProtocols=TLSv1.3",
    ),
    (
        "email.init",
        "cipherSuites=a;maxActiveConnections=2;maxIdleConnections=2;maxWaitTime=2000;minEvictionTime=1000;evictionCheckInterval=1000",
    ),
    (
        "email.init",
        "exhaustedAction=WHEN_EXHAUSTED_BLOCK;initialisationPolicy=a;disablePooling=true;enableOAuth2=false;grantType=CLIENT_CREDENTIALS",
    ),
    ("email.init", "clientId=c;clientSecret=s;refreshToken=r;tokenUrl=http://localhost:1/t;scope=s"),
    (
        "csv",
        "headerPresent=Present;valueSeparator=,;skipHeader=true;dataRowsToSkip=1;columnsToSkip=1;csvEmptyValues=Null;jsonKeys=a,b;dataTypes=[]",
    ),
    (
        "csv",
        "rootJsonKey=r;tagNames=a,b;rootElementTag=r;rootElementNamespace=p;rootElementNamespaceURI=u;groupElementTag=g;groupElementNamespace=p",
    ),
    (
        "csv",
        "groupElementNamespaceURI=u;orderByColumn=1;columnOrdering=Ascending;customHeader=a,b;customValueSeparator=,;suppressEscapeCharacters=true",
    ),
    (
        "redis",
        "redisMessage=m;redisKey=k;redisValue=1;redisInteger=1;redisStart=0;redisEnd=1;redisOffset=0;redisKeysValues=a 1;redisSeconds=10",
    ),
    (
        "redis",
        "redisUnixTime=9999999999;redisPattern=*;redisOldKey=s;redisNewKey=n;redisFields=f;redisField=f;redisFieldsValues=f 1;redisBlPopTimeout=1",
    ),
    (
        "redis",
        "redisBrPopTimeout=1;redisWhere=BEFORE;redisPivot=a;redisStrings=a b;redisString=a;redisCount=1;redisIndex=0;redisSrcKey=k;redisDstKey=d",
    ),
    ("redis", "redisMembers=m;redisMember=m;redisScore=1;redisMin=0;redisMax=9;redisSets=k"),
    (
        "redis.init",
        "name=C;connectionType=a;redisHost=127.0.0.1;redisPort=PORT;cacheKey=secret;dbNumber=0;useSsl=false;redisConnectionTimeout=2000",
    ),
    (
        "redis.init",
        "redisTimeout=2000;maxConnections=2;redisConnectionURI=redis://:secret@127.0.0.1:PORT/0;redisClusterEnabled=false;clusterNodes=127.0.0.1:PORT",
    ),
    (
        "redis.init",
        "maxAttempts=1;sentinelEnabled=false;sentinels=127.0.0.1:PORT;masterName=m;masterPassword=p;clientName=c;weight=1",
    ),
    (
        "utility",
        "inputString=a;regex=a;format=yyyy;lowerBound=1;upperBound=2;payload=Body;customPayload=a;secret=s;algorithm=HMACSHA1;signature=a;target=t",
    ),
];

/// What an operation is given beside the parameter that is tried.
const BASE: &[(&str, &[&str])] = &[
    ("http.init", &["baseUrl", "timeoutDuration", "timeoutAction"]),
    ("file.init", &["connectionType", "workingDir"]),
    ("file.read", &["path"]),
    ("file.write", &["filePath", "contentOrExpression"]),
    ("file.checkExist", &["path"]),
    ("file.createDirectory", &["directoryPath"]),
    ("file.copy", &["sourcePath", "targetPath"]),
    ("file.move", &["sourcePath", "targetPath"]),
    ("file.rename", &["path", "renameTo"]),
    ("file.delete", &["path"]),
    ("file.listFiles", &["directoryPath"]),
    ("file.compress", &["sourceDirectoryPath", "targetFilePath"]),
    ("file.unzip", &["sourceFilePath", "targetDirectory"]),
    ("file.exploreZipFile", &["zipFilePath"]),
    ("file.splitFile", &["sourceFilePath", "targetDirectory", "splitMode", "lineCount"]),
    ("file.mergeFiles", &["sourceDirectoryPath", "targetFilePath"]),
    ("file.fetchDirectoryContent", &["directoryPath", "resultPropertyName"]),
    ("fileconnector.append", &["destination", "inputContent"]),
    ("fileconnector.archives", &["source", "destination"]),
    ("fileconnector.copy", &["source", "destination"]),
    ("fileconnector.create", &["source", "inputContent"]),
    ("fileconnector.delete", &["source"]),
    ("fileconnector.isFileExist", &["source"]),
    ("fileconnector.listFileZip", &["source"]),
    ("fileconnector.move", &["source", "destination"]),
    ("fileconnector.read", &["source"]),
    ("fileconnector.search", &["source", "filePattern"]),
    ("fileconnector.unzip", &["source", "destination"]),
    ("fileconnector.send", &["address"]),
    ("fileconnector.getSize", &["source"]),
    ("fileconnector.getLastModifiedTime", &["source"]),
    ("fileconnector.splitFile", &["source", "destination", "chunkSize"]),
    ("fileconnector.mergeFiles", &["source", "destination"]),
    ("fileconnector.readSpecifiedLines", &["source"]),
    ("fileconnector.readALine", &["source", "lineNumber"]),
    (
        "email.init",
        &["connectionType", "host", "port", "username", "password", "readTimeout", "connectionTimeout"],
    ),
    ("email.send", &["from", "to", "content"]),
    ("email.getEmailBody", &["emailId"]),
    ("email.getEmailAttachment", &["emailId", "attachmentIndex"]),
    ("email.delete", &["emailId"]),
    ("email.markAsDeleted", &["emailId"]),
    ("email.markAsRead", &["emailId"]),
    ("redis.init", &["redisHost", "redisPort", "cacheKey"]),
    ("utility.string.Length", &["inputString"]),
    ("utility.string.LowerCase", &["inputString"]),
    ("utility.string.UpperCase", &["inputString"]),
    ("utility.string.RegexMatcher", &["inputString", "regex"]),
    ("utility.date.GetDate", &["format"]),
    ("utility.signature.Generate", &["secret"]),
    ("utility.signature.Verify", &["secret", "signature"]),
];

/// Parameters that mean something only where others have these values.
const WITH: &[(&str, &str)] = &[
    ("http requestBodyJson", "requestBodyType=JSON"),
    ("http requestBodyXml", "requestBodyType=XML"),
    ("http requestBodyText", "requestBodyType=TEXT"),
    ("http requestBodyType", "requestBodyJson={}"),
    ("http.init username", "authType=Basic Auth;password=p"),
    ("http.init password", "authType=Basic Auth;username=u"),
    ("http.init clientId", OAUTH),
    ("http.init clientSecret", OAUTH),
    ("http.init tokenUrl", OAUTH),
    ("http.init additionalProperties", OAUTH),
    ("http.init oauthAuthorizationMode", OAUTH),
    (
        "http.init oauthGrantType",
        "authType=OAuth;clientId=c;clientSecret=s;tokenUrl=TOKENS;username=u;password=p",
    ),
    (
        "http.init refreshToken",
        "authType=OAuth;oauthGrantType=Authorization Code;clientId=c;clientSecret=s;tokenUrl=TOKENS",
    ),
    ("file.read startLineNum", "readMode=Starting From Line"),
    ("file.read endLineNum", "readMode=Up To Line"),
    ("file.read lineNum", "readMode=Specific Line"),
    ("file resultPropertyName", "includeResultTo=Message Property"),
    ("file.fetchDirectoryContent resultPropertyName", ""),
    ("file includeResultTo", "resultPropertyName=p"),
    ("file.write appendPosition", "writeMode=Append;filePath=in/a.txt"),
    ("file.listFiles includeFiles", "fileFilterType=ant"),
    ("file.listFiles excludeFiles", "fileFilterType=ant"),
    ("file.listFiles subDirectoryMaxDepth", "recursive=true"),
    ("file.copy sourceFilePattern", "sourcePath=in"),
    ("file.move filePattern", "sourcePath=in"),
    ("file.copy includeParent", "sourcePath=in"),
    ("file.move includeParent", "sourcePath=in"),
    ("file.read filePattern", "path=in"),
    ("file.delete matchingPattern", "path=in"),
    ("file.splitFile chunkSize", "splitMode=Chunk Size"),
    ("file.splitFile xpathExpression", "splitMode=XPATH Expression;sourceFilePath=in/x.xml"),
    ("fileconnector.copy filePattern", "source=ROOT/in"),
    ("fileconnector.move filePattern", "source=ROOT/in"),
    ("fileconnector.copy includeParentDirectory", "source=ROOT/in"),
    ("fileconnector.move includeParentDirectory", "source=ROOT/in"),
    ("fileconnector.copy includeSubDirectories", "source=ROOT/in"),
    ("fileconnector.move includeSubDirectories", "source=ROOT/in"),
    ("fileconnector.delete filePattern", "source=ROOT/in"),
    ("fileconnector.delete includeSubDirectories", "source=ROOT/in;filePattern=.*txt"),
    ("fileconnector.read filePattern", "source=ROOT/in"),
    ("fileconnector.archives fileName", "inputContent=a"),
    ("fileconnector.splitFile xpathExpression", "source=ROOT/in/x.xml;chunkSize="),
    ("csv skipHeader", "headerPresent=Present"),
    ("csv orderByColumn", "headerPresent=Present"),
    ("csv columnOrdering", "headerPresent=Present;orderByColumn=1"),
    ("csv groupElementNamespace", "groupElementTag=g;groupElementNamespaceURI=u"),
    ("csv rootElementNamespace", "rootElementTag=r;rootElementNamespaceURI=u"),
    ("utility customPayload", "payload=Custom Payload"),
];

const OAUTH: &str =
    "authType=OAuth;oauthGrantType=Client Credentials;clientId=c;clientSecret=s;tokenUrl=TOKENS";

/// Keys of the server by the type that a command is for: the first letters of its name.
fn key_of(operation: &str) -> &'static str {
    let name = operation.strip_prefix("redis.").unwrap_or(operation);
    match name {
        "setBit" | "set" | "setRange" | "setnX" | "strLen" | "get" | "getRange" | "getSet" | "append"
        | "mGet" => "s",
        "sadd" => "set",
        "rename" | "renamenX" | "rPush" | "rPushX" | "rPopLPush" if name.starts_with("rP") => "l",
        name if name.starts_with("bl") || name.starts_with("br") => "l",
        name if name.starts_with('h') => "h",
        name if name.starts_with('z') => "z",
        name if name.starts_with('l') => "l",
        name if name.starts_with('s') => "set",
        _ => "s",
    }
}

fn pairs(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(';').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap()).collect()
}

/// The good value of a parameter: that of the operation, else that of its connector, else that of all.
fn good(operation: &str, parameter: &str) -> Option<String> {
    if operation.starts_with("redis.") && matches!(parameter, "redisKey" | "redisSrcKey" | "redisSets") {
        return Some(key_of(operation).to_owned());
    }
    let connector = operation.split('.').next()?.to_ascii_lowercase();
    [operation, &connector, ""].iter().find_map(|scope| {
        let rows = GOOD.iter().filter(|(row_scope, _)| row_scope == scope);
        rows.flat_map(|(_, values)| pairs(values)).find(|(name, _)| name == parameter).map(|(_, value)| value)
    })
}

fn with(operation: &str, parameter: &str) -> Vec<(String, String)> {
    let connector = operation.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let scopes = [format!("{operation} {parameter}"), format!("{connector} {parameter}")];
    scopes
        .iter()
        .find_map(|scope| {
            WITH.iter().find(|(row_scope, _)| row_scope == scope).map(|(_, values)| pairs(values))
        })
        .unwrap_or_default()
}

/// The cases of a parameter with its good value: the text, or that it is not there.
fn cases(good: &str) -> Vec<(&'static str, Option<String>)> {
    vec![
        ("good", Some(good.to_owned())),
        ("word", Some("no such value".to_owned())),
        ("negative", Some("-1".to_owned())),
        ("fraction", Some("1.5".to_owned())),
        ("huge", Some("9".repeat(40))),
        ("long", Some("x".repeat(5_000))),
        ("broken", Some("[\"a\", (".to_owned())),
        ("blank", Some(String::new())),
        ("absent", None),
        ("nothing", Some("{${vars.none}}".to_owned())),
    ]
}

fn element(name: &str, attributes: &str, parameters: &[(String, String)]) -> String {
    let inside: String = parameters
        .iter()
        .map(|(name, value)| {
            let is_xml = value.starts_with("<a");
            let value = if is_xml { value.clone() } else { value.replace('&', "&amp;").replace('<', "&lt;") };
            format!("<{name}>{value}</{name}>")
        })
        .collect();
    format!("<{name}{attributes}>{inside}</{name}>")
}

/// What the operations of a connector work on.
struct Surroundings {
    root: PathBuf,
    backend: String,
    tokens: String,
    redis: Option<Redis>,
    mails: [Server; 2],
}

/// The server whose port an operation is to use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Good,
    /// It is gone, or the directory is.
    Gone,
    /// It takes no such credentials.
    Refused,
}

struct Redis {
    process: Child,
    port: u16,
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Redis {
    /// With a password; `None`, with a line that says so, where there is no such program.
    fn start() -> Option<Redis> {
        let port = tests::ports::free().unwrap();
        let port_text = port.to_string();
        let options = [
            "--port",
            &port_text,
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            "/tmp",
            "--requirepass",
            "secret",
        ];
        let started =
            Command::new("redis-server").args(options).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let Ok(process) = started else {
            let needed =
                std::env::var_os("CI").is_some() && std::env::var_os("BUSBAR_SERVICES_ABSENT").is_none();
            assert!(!needed, "redis-server is not installed: tests/services/install");
            eprintln!("skipped: there is no redis-server (tests/services/install)");
            return None;
        };
        let redis = Redis { process, port };
        for _ in 0..200 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(redis);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("redis-server does not accept connections");
    }

    /// What there is before each case.
    fn fill(&self) {
        let commands = [
            "AUTH secret",
            "FLUSHALL",
            "SET s 1",
            "RPUSH l a b c",
            "HSET h f 1",
            "SADD set m n",
            "ZADD z 1 m",
        ];
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all((commands.join("\r\n") + "\r\n").as_bytes()).unwrap();
        let (mut answers, mut byte) = (0, [0]);
        while answers < commands.len() {
            stream.read_exact(&mut byte).unwrap();
            answers += usize::from(byte[0] == b'\n');
        }
    }
}

impl Surroundings {
    fn new() -> Surroundings {
        let root = std::env::temp_dir().join(format!("busbar-table-{}", std::process::id()));
        Surroundings {
            root,
            backend: testing::backend("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nok"),
            tokens: format!("http://localhost:{}/t", tokens(&[r#"200 {"access_token":"T"}"#]).0),
            redis: Redis::start(),
            mails: [start("imap", Mood::Good), start("smtp", Mood::Good)],
        }
    }

    /// Everything as it was.
    fn fill(&self, connector: &str) {
        match connector {
            "file" | "fileconnector" => {
                let _ = fs::remove_dir_all(&self.root);
                fs::create_dir_all(self.root.join("in/deep")).unwrap();
                fs::write(self.root.join("in/a.txt"), "one\ntwo\nthree\n").unwrap();
                fs::write(self.root.join("in/b.csv"), "1,2\n").unwrap();
                fs::write(self.root.join("in/x.xml"), "<x><a/><a/></x>").unwrap();
                fs::write(self.root.join("in/deep/c.txt"), "deep\n").unwrap();
                let mut zip = zip::ZipWriter::new(fs::File::create(self.root.join("a.zip")).unwrap());
                zip.start_file("a.txt", zip::write::SimpleFileOptions::default()).unwrap();
                zip.write_all(b"zipped").unwrap();
                zip.finish().unwrap();
            }
            "email" => {
                fs::create_dir_all(self.root.join("in")).unwrap();
                fs::write(self.root.join("in/a.txt"), "one\n").unwrap();
                self.mails[0].mailbox.lock().unwrap().messages.clear();
                let text = "Message-ID: <1@x>\nFrom: a@x\nSubject: s\nDate: 17 Jul 2026 08:00:00 +0000\nContent-Type: multipart/mixed; boundary=b\n\n\
                            --b\nContent-Type: text/plain\n\nx\n--b\nContent-Disposition: attachment; filename=a.txt\n\nfile\n--b--\n";
                self.mails[0].deliver(text, &[], "17-Jul-2026 08:00:00 +0000");
            }
            "redis" => self.redis.iter().for_each(Redis::fill),
            _ => {}
        }
    }

    /// The port that the words `PORT` stand for.
    fn port(&self, connector: &str, sends: bool, fate: Fate) -> u16 {
        match (connector, fate) {
            (_, Fate::Gone) => 1,
            ("redis", _) => self.redis.as_ref().map_or(1, |server| server.port),
            _ => self.mails[usize::from(sends)].port,
        }
    }

    /// One case: its outcome, and whether loading says something that it does not say of the good one.
    fn outcome(&self, operation: &str, given: &[(String, String)], fate: Fate) -> (String, Vec<String>) {
        let connector = operation.split('.').next().unwrap_or_default().to_ascii_lowercase();
        self.fill(&connector);
        let sends = operation == "email.send";
        let init = format!("{connector}.init");
        let mut described: Vec<(String, String)> = match operation == init {
            true => given.to_vec(),
            false => base(&init),
        };
        if sends && operation != init {
            described
                .iter_mut()
                .filter(|field| field.0 == "connectionType")
                .for_each(|field| field.1 = "SMTP".to_owned());
        }
        if fate == Fate::Refused {
            let secrets = described.iter_mut().filter(|field| matches!(&*field.0, "cacheKey" | "password"));
            secrets.for_each(|field| field.1 = "wrong".to_owned());
        }
        let call = match operation == init {
            false => {
                element(operation, if has_connection(&connector) { " configKey='C'" } else { "" }, given)
            }
            true => match &*connector {
                "http" => "<http.get configKey='C'/>".to_owned(),
                "file" => "<file.checkExist configKey='C'><path>in/a.txt</path></file.checkExist>".to_owned(),
                "email" => "<email.list configKey='C'/>".to_owned(),
                _ => "<redis.ping configKey='C'/>".to_owned(),
            },
        };
        let entry = match has_connection(&connector) {
            true => format!("<localEntry key='C'>{}</localEntry>", element(&init, "", &described)),
            false => String::new(),
        };
        let port = self.port(&connector, sends, fate).to_string();
        let backend = if fate == Fate::Gone { "http://localhost:1" } else { &self.backend };
        let root = self.root.display().to_string();
        let text = format!("{call}<!--top-->{entry}");
        let text = text.replace("BACKEND", backend).replace("PORT", &port).replace("ROOT", &root);
        let text = text.replace("TOKENS", &self.tokens);
        if fate == Fate::Gone && connector == "file" {
            let _ = fs::remove_dir_all(&self.root);
        }
        let tested = main(&text);
        let (kind, body) = match operation {
            operation if operation.ends_with("jsonToCsv") => (JSON, r#"[{"a":"1","b":"2"}]"#),
            operation if operation.ends_with("xmlToCsv") => (XML, "<r><x><a>1</a><b>2</b></x></r>"),
            operation if connector == "csv" && !operation.ends_with("ToCsv") => {
                (("Content-Type", "text/csv"), "a,b\n1,2\n3,4\n")
            }
            _ if connector == "csv" => (("Content-Type", "text/csv"), "a,b\n1,2\n3,4\n"),
            _ => (JSON, r#"{"a":"b"}"#),
        };
        let end = tested.run(&[kind], body);
        let outcome = match end.property("ERROR_CODE") {
            None => match end.fault() {
                Some(fault) => panic!("{operation} {given:?}: a fault without a code: {fault}"),
                None => "ok".to_owned(),
            },
            Some(code) => {
                let message = end.property("ERROR_MESSAGE").unwrap_or_default();
                assert!(!message.is_empty(), "{operation} {given:?}: no ERROR_MESSAGE");
                let coded = connector.starts_with("file") || connector == "email" || connector == "redis";
                let detail = end.property("ERROR_DETAIL").unwrap_or_default();
                assert!(!coded || !detail.is_empty(), "{operation} {given:?}: no ERROR_DETAIL");
                // A connector has its own codes.
                let is_own_code = match &*connector {
                    "file" | "fileconnector" => code.starts_with("7001") && message.starts_with("FILE:"),
                    "email" => code.starts_with("7002") && message.starts_with("EMAIL:"),
                    "redis" => message.starts_with("REDIS:"),
                    _ => true,
                };
                assert!(is_own_code, "{operation} {given:?}: {code} {message} {detail}");
                for secret in ["secret", "se\"cret"] {
                    assert!(
                        !coded || !message.contains(secret) && !detail.contains(secret),
                        "{operation}: {detail}"
                    );
                }
                let message = message.replace(&root, "ROOT").replace(&port, "PORT");
                let short: String = message
                    .replace(&"x".repeat(100), "x…")
                    .replace(&"9".repeat(40), "9…")
                    .chars()
                    .take(140)
                    .collect();
                format!("{code} {}", short.replace("x…x…", "x…").trim_end())
            }
        };
        (outcome, tested.found.clone())
    }
}

/// Whether the message, or what lies on the disk by then, decides what a value is.
fn depends(parameter: &str) -> bool {
    matches!(parameter, "attachments" | "inlineImages" | "emailIndex")
}

fn has_connection(connector: &str) -> bool {
    matches!(connector, "http" | "file" | "email" | "redis")
}

/// What an operation is given at least.
fn base(operation: &str) -> Vec<(String, String)> {
    if operation.starts_with("redis.") && operation != "redis.init" {
        let all = parameters(operation).into_iter().filter(|parameter| parameter.starts_with("redis"));
        return all.map(|parameter| (parameter.to_owned(), good(operation, parameter).unwrap())).collect();
    }
    let names = BASE
        .iter()
        .find(|(parameter, _)| *parameter == operation)
        .map_or(&[][..], |(_, parameter)| parameter);
    names
        .iter()
        .map(|parameter| {
            (
                (*parameter).to_owned(),
                good(operation, parameter).unwrap_or_else(|| panic!("{operation} {parameter}")),
            )
        })
        .collect()
}

fn parameters(operation: &str) -> Vec<&'static str> {
    let definition = definitions().find(|d| d.name == operation).unwrap();
    match definition.children {
        Children::Elements(names) => names.to_vec(),
        _ => Vec::new(),
    }
}

fn set(given: &mut Vec<(String, String)>, name: &str, value: Option<String>) {
    given.retain(|parameter| parameter.0 != name);
    given.extend(value.map(|value| (name.to_owned(), value)));
}

#[test]
fn every_parameter_of_every_operation() {
    let around = Surroundings::new();
    let (mut table, mut absent, mut unsaid) = (String::new(), Vec::new(), Vec::new());
    let only = std::env::var("BUSBAR_PARAMETERS_OF").unwrap_or_default();
    for definition in definitions().filter(|d| !d.name.starts_with("csv.") && d.name.starts_with(&only)) {
        let operation = definition.name;
        let connector = operation.split('.').next().unwrap();
        if connector == "redis" && around.redis.is_none() {
            continue;
        }
        let (whole, of_base) = around.outcome(operation, &base(operation), Fate::Good);
        assert_eq!(whole, "ok", "{operation}: {of_base:?}");
        for (fate, name) in [(Fate::Gone, "gone"), (Fate::Refused, "refused")] {
            let has = has_connection(connector) && !operation.ends_with(".init");
            if has && (fate == Fate::Gone || matches!(connector, "redis" | "email")) {
                let (outcome, _) = around.outcome(operation, &base(operation), fate);
                let _ = writeln!(table, "{operation} (the server is {name}): {outcome}");
            }
        }
        for parameter in parameters(operation) {
            let Some(value) = good(operation, parameter) else {
                absent.push(format!("{operation} {parameter}"));
                continue;
            };
            let mut outcomes: Vec<(String, Vec<String>)> = Vec::new();
            for (case, value) in cases(&value) {
                let mut given = base(operation);
                with(operation, parameter)
                    .into_iter()
                    .for_each(|(name, value)| set(&mut given, &name, Some(value)));
                set(&mut given, parameter, value);
                let (outcome, found) = around.outcome(operation, &given, Fate::Good);
                let is_said = found.len() > of_base.len();
                // What is written and cannot be is said when the configuration loads.
                let of_configuration = outcome.contains("INVALID_CONFIGURATION")
                    || outcome.starts_with("0 CSV")
                    || outcome.starts_with("0 utility");
                // How long a name may be is a limit of the message.
                let is_limit = case == "long" && outcome.contains("the result is not XML");
                if of_configuration && !is_limit && !is_said && case != "nothing" && !depends(parameter) {
                    unsaid.push(format!("{operation} {parameter} {case}: {outcome}"));
                }
                let case = if is_said { format!("{case} said") } else { case.to_owned() };
                match outcomes.iter_mut().find(|row| row.0 == outcome) {
                    Some((_, cases)) => cases.push(case),
                    None => outcomes.push((outcome, vec![case])),
                }
            }
            let all: Vec<String> = outcomes
                .iter()
                .map(|(outcome, cases)| format!("{outcome} <- {}", cases.join(", ")))
                .collect();
            let _ = writeln!(table, "{operation} {parameter}: {}", all.join(" | "));
        }
    }
    let _ = fs::remove_dir_all(&around.root);
    assert!(absent.is_empty(), "parameters without a row in GOOD: {absent:#?}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parameters/outcomes.txt");
    if std::env::var_os("BUSBAR_PARAMETERS").is_some_and(|mode| mode == "write") && only.is_empty() {
        fs::write(&path, &table).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let is_there = |line: &str| only.is_empty() || line.starts_with(&only);
    let is_run = |line: &str| around.redis.is_some() || !line.starts_with("redis.");
    let wanted: Vec<&str> = written.lines().filter(|line| is_there(line) && is_run(line)).collect();
    let made: Vec<&str> = table.lines().collect();
    let fresh: Vec<_> = made.iter().filter(|line| !wanted.contains(line)).collect();
    let stale: Vec<_> = wanted.iter().filter(|line| !made.contains(line)).collect();
    assert!(
        fresh.is_empty() && stale.is_empty(),
        "new: {fresh:#?}\nnot so any more: {stale:#?}\nBUSBAR_PARAMETERS=write writes outcomes.txt"
    );
    assert!(unsaid.is_empty(), "loading says nothing of: {unsaid:#?}");
}
