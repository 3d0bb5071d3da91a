//! The redis connector: one operation for each command, over connections that are kept.
//!
//! Each message has a connection for itself until its reply, so that a blocking command (`blPop`) delays no other message. The
//! protocol is that of the library, the connection that of the bus; of a cluster the library decides which node is asked.

mod counted;
mod node;

use self::counted::{Count, CountedSocket, Stopped};
use self::node::Node;
use crate::connection::{self, Connections, Description, Fields};
use crate::failure::{Body, Failure, Outcome, Reason};
use crate::operation::operation;
use crate::parameter::{Form, Parameters};
use crate::pool::{Limits, Pools};
use crate::response::{OVERWRITE, Place, VARIABLE};
use config::Element;
use flow::{Compiled, Compiler, Context, Definition, Fault, Flow, Mediator, Moves, Need, Services, Step};
use message::{Value, memory};
use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, IntoConnectionInfo, RedisConnectionInfo, RedisError,
    Value as Reply,
};
use serde_json::{Map, Value as Json, json};
use std::future::{Future, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

const INIT: Definition = operation(
    "redis.init",
    "Describes the connection of the steps behind it.",
    FIELDS,
    |element, compiler| connection::init(element, compiler, make),
);

/// The fields that say where a server is.
const ADDRESSES: [&str; 5] = ["redisConnectionURI", "redisHost", "redisPort", "clusterNodes", "sentinels"];

/// The fields of a connection.
const FIELDS: &[&str] = &[
    "name",
    "connectionType",
    "redisHost",
    "redisPort",
    "cacheKey",
    "dbNumber",
    "useSsl",
    "redisConnectionTimeout",
    "redisTimeout",
    "maxConnections",
    "redisConnectionURI",
    "redisClusterEnabled",
    "clusterNodes",
    "maxAttempts",
    "sentinelEnabled",
    "sentinels",
    "masterName",
    "masterPassword",
    "clientName",
    "weight",
];

/// A part of a command.
#[derive(Clone, Copy)]
enum Argument {
    /// A value.
    One(&'static str),
    /// Values, separated by white space, or a JSON list of them.
    Words(&'static str),
    /// As `Words`, after their number.
    Counted(&'static str),
}

impl Argument {
    fn name(self) -> &'static str {
        match self {
            Argument::One(name) | Argument::Words(name) | Argument::Counted(name) => name,
        }
    }
}

/// The form of a reply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReplyForm {
    /// A text, a number or a list.
    Plain,
    /// 0 or 1.
    Truth,
    /// Names and values alternately.
    Pairs,
}

struct Command {
    name: &'static str,
    verb: &'static str,
    arguments: &'static [Argument],
    reply: ReplyForm,
}

macro_rules! commands {
    ($($name:literal $verb:literal [$($kind:ident $parameter:literal),*] $reply:ident $summary:literal;)*) => {
        /// The operations.
        pub(crate) const OPERATIONS: &[&Definition] = &[
            &INIT,
            $(&operation($name, $summary, &[$($parameter,)* VARIABLE, OVERWRITE], compile),)*
        ];

        const COMMANDS: &[Command] = &[$(Command {
            name: $name,
            verb: $verb,
            arguments: &[$(Argument::$kind($parameter)),*],
            reply: ReplyForm::$reply,
        }),*];
    };
}

commands! {
    "redis.echo" "ECHO" [One "redisMessage"] Plain "Answers with the message.";
    "redis.ping" "PING" [] Plain "Answers with PONG.";
    "redis.quit" "QUIT" [] Plain "Ends the connection.";
    "redis.append" "APPEND" [One "redisKey", One "redisValue"] Plain "Appends to a text.";
    "redis.decrBy" "DECRBY" [One "redisKey", One "redisInteger"] Plain "Subtracts from a number.";
    "redis.get" "GET" [One "redisKey"] Plain "Gets a text.";
    "redis.getObjectIdleTime" "OBJECT IDLETIME" [One "redisKey"] Plain "Seconds since a key was used.";
    "redis.getRange" "GETRANGE" [One "redisKey", One "redisStart", One "redisEnd"] Plain "Gets a part of a text.";
    "redis.getSet" "GETSET" [One "redisKey", One "redisValue"] Plain "Sets a text and gets the one before.";
    "redis.incrBy" "INCRBY" [One "redisKey", One "redisInteger"] Plain "Adds to a number.";
    "redis.mGet" "MGET" [Words "redisKey"] Plain "Gets several texts.";
    "redis.mSet" "MSET" [Words "redisKeysValues"] Plain "Sets several texts.";
    "redis.mSetnX" "MSETNX" [Words "redisKeysValues"] Plain "Sets several texts, if none of the keys is there.";
    "redis.set" "SET" [One "redisKey", One "redisValue"] Plain "Sets a text.";
    "redis.setBit" "SETBIT" [One "redisKey", One "redisOffset", One "redisValue"] Truth "Sets a bit and gets the one before.";
    "redis.setRange" "SETRANGE" [One "redisKey", One "redisOffset", One "redisValue"] Plain "Overwrites a part of a text.";
    "redis.setnX" "SETNX" [One "redisKey", One "redisValue"] Plain "Sets a text, if the key is not there.";
    "redis.strLen" "STRLEN" [One "redisKey"] Plain "The length of a text.";
    "redis.del" "DEL" [One "redisKey"] Plain "Deletes a key.";
    "redis.exists" "EXISTS" [One "redisKey"] Truth "Whether a key is there.";
    "redis.expire" "EXPIRE" [One "redisKey", One "redisSeconds"] Plain "Lets a key go after so many seconds.";
    "redis.expireAt" "EXPIREAT" [One "redisKey", One "redisUnixTime"] Plain "Lets a key go at a time, in seconds since 1970.";
    "redis.keys" "KEYS" [One "redisPattern"] Plain "The keys that a pattern matches.";
    "redis.randomKey" "RANDOMKEY" [] Plain "Any key.";
    "redis.rename" "RENAME" [One "redisOldKey", One "redisNewKey"] Plain "Gives a key another name.";
    "redis.renamenX" "RENAMENX" [One "redisOldKey", One "redisNewKey"] Plain "Gives a key another name, if that is free.";
    "redis.ttl" "TTL" [One "redisKey"] Plain "The seconds that a key has left.";
    "redis.type" "TYPE" [One "redisKey"] Plain "The type of a key.";
    "redis.hDel" "HDEL" [One "redisKey", Words "redisFields"] Plain "Deletes fields of a hash.";
    "redis.hExists" "HEXISTS" [One "redisKey", One "redisField"] Truth "Whether a hash has a field.";
    "redis.hGet" "HGET" [One "redisKey", One "redisField"] Plain "Gets a field of a hash.";
    "redis.hGetAll" "HGETALL" [One "redisKey"] Pairs "Gets a hash.";
    "redis.hIncrBy" "HINCRBY" [One "redisKey", One "redisField", One "redisValue"] Plain "Adds to a field of a hash.";
    "redis.hKeys" "HKEYS" [One "redisKey"] Plain "The fields of a hash.";
    "redis.hLen" "HLEN" [One "redisKey"] Plain "The number of fields of a hash.";
    "redis.hMGet" "HMGET" [One "redisKey", Words "redisFields"] Plain "Gets several fields of a hash.";
    "redis.hMSet" "HMSET" [One "redisKey", Words "redisFieldsValues"] Plain "Sets several fields of a hash.";
    "redis.hSet" "HSET" [One "redisKey", One "redisField", One "redisValue"] Plain "Sets a field of a hash.";
    "redis.hSetnX" "HSETNX" [One "redisKey", One "redisField", One "redisValue"] Plain "Sets a field of a hash, if it is not there.";
    "redis.hVals" "HVALS" [One "redisKey"] Plain "The values of a hash.";
    "redis.blPop" "BLPOP" [Words "redisKey", One "redisBlPopTimeout"] Plain "Takes the first of a list, and waits for one.";
    "redis.brPop" "BRPOP" [Words "redisKey", One "redisBrPopTimeout"] Plain "Takes the last of a list, and waits for one.";
    "redis.lInsert" "LINSERT" [One "redisKey", One "redisWhere", One "redisPivot", One "redisValue"] Plain "Puts a value beside another.";
    "redis.lLen" "LLEN" [One "redisKey"] Plain "The length of a list.";
    "redis.lPop" "LPOP" [One "redisKey"] Plain "Takes the first of a list.";
    "redis.lPush" "LPUSH" [One "redisKey", Words "redisStrings"] Plain "Puts values ahead of a list.";
    "redis.lPushX" "LPUSHX" [One "redisKey", One "redisString"] Plain "Puts a value ahead of a list that is there.";
    "redis.lRange" "LRANGE" [One "redisKey", One "redisStart", One "redisEnd"] Plain "Gets a part of a list.";
    "redis.lRem" "LREM" [One "redisKey", One "redisCount", One "redisValue"] Plain "Removes values of a list.";
    "redis.lSet" "LSET" [One "redisKey", One "redisIndex", One "redisValue"] Plain "Sets a value of a list.";
    "redis.lTrim" "LTRIM" [One "redisKey", One "redisStart", One "redisEnd"] Plain "Cuts a list.";
    "redis.rPopLPush" "RPOPLPUSH" [One "redisSrcKey", One "redisDstKey"] Plain "Takes the last of a list and puts it ahead of another.";
    "redis.rPush" "RPUSH" [One "redisKey", Words "redisStrings"] Plain "Puts values behind a list.";
    "redis.rPushX" "RPUSHX" [One "redisKey", One "redisValue"] Plain "Puts a value behind a list that is there.";
    "redis.sadd" "SADD" [One "redisKey", Words "redisMembers"] Plain "Adds members to a set.";
    "redis.sDiffStore" "SDIFFSTORE" [One "redisDstKey", Words "redisKey"] Plain "Stores the difference of sets.";
    "redis.sInter" "SINTER" [Words "redisKey"] Plain "What sets have in common.";
    "redis.sInterStore" "SINTERSTORE" [One "redisDstKey", Words "redisKey"] Plain "Stores what sets have in common.";
    "redis.sIsMember" "SISMEMBER" [One "redisKey", One "redisMember"] Truth "Whether a set has a member.";
    "redis.sMembers" "SMEMBERS" [One "redisKey"] Plain "The members of a set.";
    "redis.sMove" "SMOVE" [One "redisSrcKey", One "redisDstKey", One "redisMember"] Plain "Moves a member to another set.";
    "redis.sPop" "SPOP" [One "redisKey"] Plain "Takes any member of a set.";
    "redis.sRandMember" "SRANDMEMBER" [One "redisKey"] Plain "Any member of a set.";
    "redis.sRem" "SREM" [One "redisKey", Words "redisMembers"] Plain "Removes members of a set.";
    "redis.sUnion" "SUNION" [Words "redisKey"] Plain "What sets have together.";
    "redis.sUnionStore" "SUNIONSTORE" [One "redisDstKey", Words "redisKey"] Plain "Stores what sets have together.";
    "redis.zadd" "ZADD" [One "redisKey", One "redisScore", One "redisMember"] Plain "Adds a member to a sorted set.";
    "redis.zCount" "ZCOUNT" [One "redisKey", One "redisMin", One "redisMax"] Plain "How many members have such scores.";
    "redis.zIncrBy" "ZINCRBY" [One "redisKey", One "redisScore", One "redisMember"] Plain "Adds to a score.";
    "redis.zInterStore" "ZINTERSTORE" [One "redisKey", Counted "redisSets"] Plain "Stores what sorted sets have in common.";
    "redis.zRange" "ZRANGE" [One "redisKey", One "redisStart", One "redisEnd"] Plain "Members by rank.";
    "redis.zRangeByScore" "ZRANGEBYSCORE" [One "redisKey", One "redisMin", One "redisMax"] Plain "Members by score.";
    "redis.zRank" "ZRANK" [One "redisKey", One "redisMember"] Plain "The rank of a member.";
    "redis.zRem" "ZREM" [One "redisKey", Words "redisMembers"] Plain "Removes members of a sorted set.";
    "redis.zRemRangeByRank" "ZREMRANGEBYRANK" [One "redisKey", One "redisStart", One "redisEnd"] Plain "Removes members by rank.";
    "redis.zRemRangeByScore" "ZREMRANGEBYSCORE" [One "redisKey", One "redisStart", One "redisEnd"] Plain "Removes members by score.";
    "redis.zRevRange" "ZREVRANGE" [One "redisKey", One "redisStart", One "redisEnd"] Plain "Members by rank, the last one first.";
    "redis.zRevRangeByScore" "ZREVRANGEBYSCORE" [One "redisKey", One "redisMax", One "redisMin"] Plain "Members by score, the highest first.";
    "redis.zRevRank" "ZREVRANK" [One "redisKey", One "redisMember"] Plain "The rank of a member from the end.";
    "redis.zScore" "ZSCORE" [One "redisKey", One "redisMember"] Plain "The score of a member.";
    "redis.zUnionStore" "ZUNIONSTORE" [One "redisKey", Counted "redisSets"] Plain "Stores what sorted sets have together.";
    "redis.flushAll" "FLUSHALL" [] Plain "Deletes all databases.";
    "redis.flushDB" "FLUSHDB" [] Plain "Deletes the database.";
}

// The connector has no error codes: the messages tell causes apart.
const CONNECTION: Reason = (0, "REDIS:CONNECTION_ERROR");
const CREDENTIALS: Reason = (0, "REDIS:INVALID_CREDENTIALS");
const CONFIGURATION: Reason = (0, "REDIS:INVALID_CONFIGURATION");
const COMMAND: Reason = (0, "REDIS:COMMAND_FAILED");
const NOTHING: Reason = (0, "REDIS:NO_VALUE");

/// Timeout of connecting and of a reply, unless the connection has one.
const PATIENCE: Duration = Duration::from_secs(2);
/// Upper limit of these timeouts, and of a blocking command.
const LONGEST: Duration = Duration::from_secs(600);
/// How long an idle connection is kept.
const KEEP: Duration = Duration::from_secs(60);
/// How long a message waits for a connection.
const WAIT: Duration = Duration::from_secs(30);
/// Most bytes of the replies while a connection is made.
const GREETINGS: usize = 256 << 10;

/// A server, as a connection describes it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Server {
    /// The address; some nodes of a cluster, or the sentinels.
    nodes: Vec<(String, u16)>,
    kind: Topology,
    secure: bool,
    database: i64,
    user: Option<String>,
    password: Option<String>,
    connect: Duration,
    response_timeout: Duration,
    attempts: u32,
    pool: Limits,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Topology {
    Single,
    Cluster,
    /// The name of the master, for sentinels.
    Sentinel(String),
}

struct Connection {
    fields: Fields,
}

/// An idle connection.
enum Conversation {
    Single {
        connection: MultiplexedConnection,
        /// The task that reads and writes; `None` once it has ended: it must not be polled again.
        driver: Option<Driver>,
        /// Bounds each reply.
        count: Count,
    },
    Cluster(ClusterConnection<Node>),
}

type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Operation {
    command: &'static Command,
    connections: Connections<Connection>,
    parameters: Parameters,
}

fn make(description: &Description<'_>, compiler: &mut Compiler<'_>) -> Option<Connection> {
    let element = description.element;
    let fields = Fields::compile(description, FIELDS, compiler);
    let numbers =
        ["redisPort", "redisConnectionTimeout", "redisTimeout", "maxConnections", "dbNumber", "maxAttempts"];
    fields.check_numbers::<u32>(&numbers, element, compiler);
    let no_uri = |text: &&str| (*text).into_connection_info().is_err();
    if fields.literal("redisConnectionURI").filter(|uri| !uri.is_empty()).filter(no_uri).is_some() {
        // It may contain a password.
        let message = "`redisConnectionURI` is not a URI like redis://user:password@host:6379/0";
        let place =
            element.child("redisConnectionURI").map_or_else(|| element.start_tag(), Element::text_span);
        compiler.warning("bad-value", message, place, "messages that come to it fault");
    }
    Some(Connection { fields })
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let connections = Connections::compile(element, "redis", compiler, make)?;
    let form = |name: &str| match name {
        "redisValue" | "redisMessage" | "redisKey" | "redisField" | "redisString" | "redisMember" => {
            Form::Template
        }
        name if name.starts_with("redis") && name.ends_with('s') => Form::Json,
        _ => Form::Plain,
    };
    let parameters = Parameters::compile(element, form, compiler)?;
    let command = COMMANDS.iter().find(|c| c.name == element.local())?;
    // A text may be empty; a list has at least one word.
    let lacks = |argument: &&Argument| match argument {
        Argument::One(name) => parameters.get(name).is_none(),
        Argument::Words(name) | Argument::Counted(name) => parameters.is_absent(name),
    };
    for argument in command.arguments.iter().filter(lacks) {
        let message = format!("`{}` has no `{}`", command.name, argument.name());
        compiler.warning("bad-value", message, element.start_tag(), "messages that come here fault");
    }
    for name in ["redisBlPopTimeout", "redisBrPopTimeout"] {
        if command.arguments.iter().any(|argument| argument.name() == name) && parameters.get(name).is_some()
        {
            parameters.check_given(&[name], element, compiler);
        }
        parameters.check(name, element, compiler, |text| match text.parse::<f64>() {
            Ok(_) => Ok(()),
            Err(_) => Err("expected a number of seconds".to_owned()),
        });
    }
    Some(Box::new(Operation { command, connections, parameters }))
}

impl Connection {
    /// The server for this message.
    fn server(&self, context: &mut Context) -> Result<Server, Failure> {
        let server = self.described(context)?;
        let servers = server.nodes.iter().map(|(host, port)| (host.as_str(), *port));
        let permitted = self.fields.permit(&ADDRESSES, "redis", servers, context);
        permitted.map_err(|why| Failure::new(CONFIGURATION, why))?;
        Ok(server)
    }

    fn described(&self, context: &mut Context) -> Result<Server, Failure> {
        let wrong = |why: String| Failure::new(CONFIGURATION, why);
        let mut text = |name: &str| self.fields.text(name, context);
        let mut number = |name: &str, default: u64| -> Result<u64, Failure> {
            let Some(value) = text(name)? else { return Ok(default) };
            value.parse().map_err(|_| wrong(format!("`{name}` is not a number: {value}")))
        };
        let millis = |time: u64| match time {
            0 => PATIENCE,
            time => Duration::from_millis(time).min(LONGEST),
        };
        let connect = millis(number("redisConnectionTimeout", 0)?);
        let response_timeout = millis(number("redisTimeout", 0)?);
        let port = u16::try_from(number("redisPort", 6379)?)
            .map_err(|_| wrong("redisPort is not a port".to_owned()))?;
        let most = usize::try_from(number("maxConnections", 8)?).unwrap_or(8).clamp(1, 10_000);
        let database = i64::try_from(number("dbNumber", 0)?).unwrap_or_default();
        let attempts = u32::try_from(number("maxAttempts", 5)?).unwrap_or(5).min(100);
        let mut truth = |name: &str| -> Result<bool, Failure> {
            Ok(text(name)?.is_some_and(|value| value.eq_ignore_ascii_case("true")))
        };
        let (secure, cluster, sentinel) =
            (truth("useSsl")?, truth("redisClusterEnabled")?, truth("sentinelEnabled")?);
        let pool = Limits { most, idle: most, wait: WAIT, keep: KEEP };
        let mut server = Server {
            nodes: Vec::new(),
            kind: Topology::Single,
            secure,
            database,
            user: None,
            password: text("cacheKey")?,
            connect,
            response_timeout,
            attempts,
            pool,
        };
        if let Some(uri) = text("redisConnectionURI")? {
            // The library's message about a URI may contain its password.
            let no_uri = || {
                wrong("`redisConnectionURI` is not a URI like redis://user:password@host:6379/0".to_owned())
            };
            let info = uri.into_connection_info().map_err(|_| no_uri())?;
            match info.addr() {
                redis::ConnectionAddr::Tcp(host, port) => server.nodes.push((host.clone(), *port)),
                redis::ConnectionAddr::TcpTls { host, port, .. } => {
                    server.nodes.push((host.clone(), *port));
                    server.secure = true;
                }
                _ => return Err(no_uri()),
            }
            let settings = info.redis_settings();
            server.user = settings.username().map(str::to_owned);
            server.password = settings.password().map(str::to_owned).or(server.password);
            server.database = if settings.db() == 0 { database } else { settings.db() };
            return Ok(server);
        }
        let nodes = |list: Option<String>, name: &str, port: u16| -> Result<Vec<(String, u16)>, Failure> {
            let list = list.unwrap_or_default();
            let nodes = list.split(',').map(str::trim).filter(|node| !node.is_empty());
            let nodes: Result<Vec<_>, Failure> = nodes
                .map(|node| match node.rsplit_once(':') {
                    Some((host, port)) => {
                        let port =
                            port.parse().map_err(|_| wrong(format!("`{node}` of `{name}` has no port")))?;
                        Ok((host.to_owned(), port))
                    }
                    None => Ok((node.to_owned(), port)),
                })
                .collect();
            match nodes {
                Ok(nodes) if nodes.is_empty() => Err(wrong(format!("`{name}` names no server"))),
                nodes => nodes,
            }
        };
        if cluster {
            server.kind = Topology::Cluster;
            server.nodes = nodes(text("clusterNodes")?, "clusterNodes", 6379)?;
        } else if sentinel {
            let master = text("masterName")?.ok_or_else(|| wrong("there is no `masterName`".to_owned()))?;
            server.kind = Topology::Sentinel(master);
            server.nodes = nodes(text("sentinels")?, "sentinels", 26379)?;
            server.password = text("masterPassword")?.or(server.password);
        } else {
            server.nodes.push((text("redisHost")?.unwrap_or_else(|| "localhost".to_owned()), port));
        }
        Ok(server)
    }
}

impl Server {
    /// The name for messages.
    fn name(&self) -> String {
        self.nodes.first().map(|(host, port)| format!("{host}:{port}")).unwrap_or_default()
    }

    fn too_large(&self, most: usize) -> Failure {
        let why = format!("{}: the reply has more than a flow may hold ({most} bytes)", self.name());
        Failure::new(COMMAND, why)
    }

    fn failed(&self, why: &RedisError) -> Failure {
        let reason = match (why.kind(), why.code()) {
            (ErrorKind::AuthenticationFailed, _) => CREDENTIALS,
            (_, Some("NOAUTH" | "WRONGPASS" | "NOPERM")) => CREDENTIALS,
            (ErrorKind::Io | ErrorKind::ClusterConnectionNotFound | ErrorKind::Parse, _) => CONNECTION,
            _ => COMMAND,
        };
        let reason_given = match (why.kind(), why.code()) {
            (ErrorKind::Parse, _) => "the server does not speak the redis protocol".to_owned(),
            // As the server sends it: the code, then the text.
            (_, Some(code)) => {
                let hint = match (code, &self.kind) {
                    ("MOVED" | "ASK", Topology::Single | Topology::Sentinel(_)) => {
                        " (a node of a cluster: redisClusterEnabled is not true)"
                    }
                    _ => "",
                };
                let space = if why.detail().is_some() { " " } else { "" };
                format!("{code}{space}{}{hint}", why.detail().unwrap_or_default())
            }
            _ => why.to_string(),
        };
        Failure::new(reason, format!("{}: {reason_given}", self.name()))
    }

    async fn open(&self, services: &Services) -> Result<Conversation, Failure> {
        let opening = async {
            match &self.kind {
                Topology::Cluster => self.cluster(services).await,
                Topology::Single => {
                    let (host, port) = self.nodes.first().cloned().unwrap_or_default();
                    self.single(&host, port, self.settings(), services).await
                }
                Topology::Sentinel(master) => {
                    let mut last = Failure::new(CONNECTION, "there is no sentinel");
                    for (host, port) in &self.nodes {
                        match self.ask_sentinel(host, *port, master, services).await {
                            Ok((host, port)) => {
                                return self.single(&host, port, self.settings(), services).await;
                            }
                            Err(failure) => last = failure,
                        }
                    }
                    Err(last)
                }
            }
        };
        let slow = || {
            let (name, time) = (self.name(), self.connect.as_millis());
            let why =
                format!("{name}: connecting, with the server's first answers, took longer than {time} ms");
            Failure::new(CONNECTION, why)
        };
        tokio::time::timeout(self.connect, opening).await.unwrap_or_else(|_| Err(slow()))
    }

    fn settings(&self) -> RedisConnectionInfo {
        let mut settings = RedisConnectionInfo::default().set_db(self.database);
        if let Some(user) = &self.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = &self.password {
            settings = settings.set_password(password);
        }
        settings
    }

    async fn single(
        &self,
        host: &str,
        port: u16,
        settings: RedisConnectionInfo,
        services: &Services,
    ) -> Result<Conversation, Failure> {
        let failed = |why: String| Failure::new(CONNECTION, format!("{host}:{port}: {why}"));
        let mut socket = services.client.dial(host, port).await.map_err(|why| failed(why.to_string()))?;
        if self.secure {
            let profile = services.tls.find(host, port).cloned();
            let profile =
                profile.ok_or_else(|| failed("there are no trusted authorities for TLS".to_owned()))?;
            socket = socket.secure(&profile, host).await.map_err(|why| failed(why.to_string()))?;
        }
        let count = Count::default();
        count.begin(GREETINGS);
        let socket = CountedSocket { socket, count: count.clone() };
        // [`Operation::patience`] limits each reply.
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let connected = MultiplexedConnection::new_with_config(&settings, socket, config).await;
        let (connection, driver) = connected.map_err(|why| self.failed(&why))?;
        Ok(Conversation::Single { connection, driver: Some(Box::pin(driver)), count })
    }

    async fn ask_sentinel(
        &self,
        host: &str,
        port: u16,
        master: &str,
        services: &Services,
    ) -> Result<(String, u16), Failure> {
        let mut sentinel = self.single(host, port, RedisConnectionInfo::default(), services).await?;
        let mut command = redis::cmd("SENTINEL");
        command.arg("get-master-addr-by-name").arg(master);
        let reply = sentinel.ask(&command).await.map_err(|why| self.failed(&why))?;
        let Json::Array(address) = json_of(reply) else {
            return Err(Failure::new(CONFIGURATION, format!("{host}:{port} knows no master `{master}`")));
        };
        let text = |at: usize| address.get(at).and_then(Json::as_str).unwrap_or_default();
        let port = text(1).parse().map_err(|_| Failure::new(CONNECTION, "the sentinel names no address"))?;
        Ok((text(0).to_owned(), port))
    }

    async fn cluster(&self, services: &Services) -> Result<Conversation, Failure> {
        node::connect_with(services);
        let scheme = if self.secure { "rediss" } else { "redis" };
        let nodes = self.nodes.iter().map(|(host, port)| format!("{scheme}://{host}:{port}/"));
        let mut builder = ClusterClientBuilder::new(nodes)
            .connection_timeout(self.connect)
            .response_timeout(self.response_timeout)
            .retries(self.attempts);
        if let Some(user) = &self.user {
            builder = builder.username(user);
        }
        if let Some(password) = &self.password {
            builder = builder.password(password);
        }
        let client = builder.build().map_err(|why| self.failed(&why))?;
        let connecting = client.get_async_generic_connection().await;
        Ok(Conversation::Cluster(connecting.map_err(|why| self.failed(&why))?))
    }
}

impl Conversation {
    /// Whether an idle connection is still open.
    async fn is_alive(&mut self) -> bool {
        let Conversation::Single { driver, .. } = self else { return true };
        let Some(running) = driver else { return false };
        tokio::select! {
            biased;
            () = running => *driver = None,
            () = ready(()) => {}
        }
        driver.is_some()
    }

    /// A reply of `most` bytes begins.
    fn begins(&self, most: usize) {
        if let Conversation::Single { count, .. } = self {
            count.begin(most);
        }
    }

    /// Why the reply was not read to its end, where that is so.
    fn stopped(&self) -> Option<Stopped> {
        match self {
            Conversation::Single { count, .. } => count.stopped(),
            Conversation::Cluster(_) => None,
        }
    }

    async fn ask(&mut self, command: &Cmd) -> Result<Reply, RedisError> {
        // For the library an error of the server is a reply.
        self.reply(command).await?.extract_error()
    }

    async fn reply(&mut self, command: &Cmd) -> Result<Reply, RedisError> {
        match self {
            Conversation::Single { connection, driver, .. } => {
                let ended = || RedisError::from((ErrorKind::Io, "the server closed the connection"));
                let mut asking = pin!(connection.send_packed_command(command));
                tokio::select! {
                    biased;
                    reply = &mut asking => return reply,
                    () = driver.as_mut().ok_or_else(ended)? => *driver = None,
                }
                // The last reply may come together with the end of the connection.
                tokio::select! {
                    biased;
                    reply = asking => reply,
                    () = ready(()) => Err(ended()),
                }
            }
            Conversation::Cluster(connection) => {
                redis::aio::ConnectionLike::req_packed_command(connection, command).await
            }
        }
    }
}

impl Operation {
    async fn run(&self, context: &mut Context) -> Result<Flow, Fault> {
        let place = Place::of(&self.parameters, context)?;
        match self.perform(context).await {
            Ok(output) => {
                let payload = json!({ "output": output });
                Outcome { payload, attributes: Map::new(), body: Body::Json }.deliver(place, context)?;
                Ok(Flow::Next)
            }
            Err(failure) => Err(failure.into_fault(self.command.name, &place, context)),
        }
    }

    async fn perform(&self, context: &mut Context) -> Result<Json, Failure> {
        let connection =
            self.connections.find(context).map_err(|fault| Failure::new(CONFIGURATION, fault.message))?;
        let server = connection.server(context)?;
        let command = self.command(context)?;
        let time = self.patience(&server, context)?;
        let pool = context.services().kept.get::<Pools<Server, Conversation>>().of(&server, server.pool);
        let Some(_place) = pool.place().await else {
            let why =
                format!("{}: {} connections are in use (maxConnections)", server.name(), server.pool.most);
            return Err(Failure::new(CONNECTION, why));
        };
        let mut conversation = None;
        while let Some(mut waiting) = pool.take() {
            if waiting.is_alive().await {
                conversation = Some(waiting);
                break;
            }
        }
        let mut conversation = match conversation {
            Some(conversation) => conversation,
            None => server.open(context.services()).await?,
        };
        let most = context.services().limits.held;
        conversation.begins(most);
        let outcome = tokio::time::timeout(time, conversation.ask(&command)).await;
        let stopped = conversation.stopped();
        // What comes without a command ends the connection.
        conversation.begins(0);
        let reply = match outcome {
            Err(_) => {
                let why = format!("{}: no answer within {} ms", server.name(), time.as_millis());
                return Err(Failure::new(CONNECTION, why));
            }
            Ok(Err(why)) => {
                let failure = match stopped {
                    None => server.failed(&why),
                    Some(Stopped::Short(shortage)) => shortage.into(),
                    Some(Stopped::Large(most)) => server.too_large(most),
                };
                if failure.reason != CONNECTION && conversation.is_alive().await {
                    pool.keep(conversation);
                }
                return Err(failure);
            }
            Ok(Ok(reply)) => reply,
        };
        if self.command.verb != "QUIT" && conversation.is_alive().await {
            pool.keep(conversation);
        }
        let held = memory::try_hold(size_of_reply(&reply).saturating_mul(2))?;
        context.hold(Arc::new(held));
        let verb = self.command.verb;
        let odd = |wanted: &str| {
            Failure::new(COMMAND, format!("{}: the answer to {verb} is not {wanted}", server.name()))
        };
        match (self.command.reply, json_of(reply)) {
            (_, Json::Null) => Err(Failure::new(NOTHING, "there is no such value")),
            (ReplyForm::Truth, output) => match output.as_str() {
                Some("0" | "false") => Ok(Json::from("false")),
                Some("1" | "true") => Ok(Json::from("true")),
                _ => Err(odd("0 or 1")),
            },
            (ReplyForm::Pairs, Json::Array(items)) => {
                let mut map = Map::new();
                let mut items = items.into_iter();
                while let Some(name) = items.next() {
                    let (Json::String(name), Some(value)) = (name, items.next()) else {
                        return Err(odd("a list of names and values"));
                    };
                    map.insert(name, value);
                }
                Ok(Json::Object(map))
            }
            (ReplyForm::Pairs, _) => Err(odd("a list of names and values")),
            (_, output) => Ok(output),
        }
    }

    /// The command for a message.
    fn command(&self, context: &mut Context) -> Result<Cmd, Failure> {
        let mut command = Cmd::new();
        for word in self.command.verb.split(' ') {
            command.arg(word);
        }
        for argument in self.command.arguments {
            let name = argument.name();
            let absent = || Failure::new(CONFIGURATION, format!("the parameter `{name}` is not given"));
            let value = self.parameters.value(name, context)?.ok_or_else(absent)?;
            if let Argument::One(_) = argument {
                // An empty text is a value too.
                command.arg(value.to_string());
                continue;
            }
            let words = words(&value);
            if words.is_empty() {
                return Err(absent());
            }
            if let Argument::Counted(_) = argument {
                command.arg(words.len());
            }
            for word in words {
                command.arg(word);
            }
        }
        Ok(command)
    }

    /// The timeout of a reply: a blocking command has its own.
    fn patience(&self, server: &Server, context: &mut Context) -> Result<Duration, Failure> {
        let blocks = self.command.arguments.iter().find(|a| a.name().ends_with("PopTimeout"));
        let Some(argument) = blocks else { return Ok(server.response_timeout) };
        let text = self.parameters.text(argument.name(), context)?.unwrap_or_default();
        let seconds: f64 = text.parse().map_err(|_| {
            Failure::new(CONFIGURATION, format!("`{}` is not a number of seconds: {text}", argument.name()))
        })?;
        // For the server 0 means without end.
        let patience = Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST);
        Ok(if patience.is_zero() { LONGEST } else { patience.min(LONGEST) } + server.response_timeout)
    }
}

/// The values of a parameter with several.
fn words(value: &Value) -> Vec<String> {
    let text = value.to_string();
    if text.trim_start().starts_with('[')
        && let Ok(Json::Array(items)) = serde_json::from_str(&text)
    {
        let text = |item: Json| item.as_str().map_or_else(|| item.to_string(), str::to_owned);
        return items.into_iter().map(text).collect();
    }
    text.split(' ').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The JSON of a reply: numbers become texts, as in the connector.
fn json_of(reply: Reply) -> Json {
    let all = |items: Vec<Reply>| items.into_iter().map(json_of).collect::<Vec<Json>>();
    match reply {
        Reply::Nil => Json::Null,
        Reply::Int(number) => number.to_string().into(),
        Reply::BulkString(bytes) | Reply::BigNumber(bytes) => {
            String::from_utf8_lossy(&bytes).into_owned().into()
        }
        Reply::SimpleString(text) | Reply::VerbatimString { text, .. } => text.into(),
        Reply::Okay => "OK".into(),
        Reply::Double(number) => number.to_string().into(),
        Reply::Boolean(truth) => truth.to_string().into(),
        Reply::Array(items) | Reply::Set(items) => all(items).into(),
        Reply::Push { data, .. } => all(data).into(),
        Reply::Map(pairs) => {
            pairs.into_iter().flat_map(|(a, b)| [json_of(a), json_of(b)]).collect::<Vec<_>>().into()
        }
        Reply::Attribute { data, .. } => json_of(*data),
        other => format!("{other:?}").into(),
    }
}

fn size_of_reply(reply: &Reply) -> usize {
    size_of::<Json>()
        + match reply {
            Reply::BulkString(bytes) | Reply::BigNumber(bytes) => bytes.len(),
            Reply::SimpleString(text) | Reply::VerbatimString { text, .. } => text.len(),
            Reply::Array(items) | Reply::Set(items) | Reply::Push { data: items, .. } => {
                items.iter().map(size_of_reply).sum()
            }
            Reply::Map(pairs) => pairs.iter().map(|(a, b)| size_of_reply(a) + size_of_reply(b)).sum(),
            Reply::Attribute { data, .. } => size_of_reply(data),
            _ => 0,
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
        let need = if self.parameters.get(VARIABLE).is_none() { Need::Replaces } else { Need::Nothing };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_values() {
        for (text, wanted) in [
            ("a b  c", vec!["a", "b", "c"]),
            (r#"["a b",1]"#, vec!["a b", "1"]),
            ("[a", vec!["[a"]),
            ("", vec![]),
        ] {
            assert_eq!(words(&Value::from(text)), wanted, "{text}");
        }
    }
}
