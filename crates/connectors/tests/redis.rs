//! The redis connector, against a `redis-server` where there is one.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{self, sleep};
use std::time::Duration;
use support::{JSON, XML, main};

struct Server {
    process: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts a server; `None`, with a line that says so, where there is no such program.
fn server(options: &[&str]) -> Option<Server> {
    let port = tests::ports::free().unwrap();
    let mut command = Command::new("redis-server");
    command.args([
        "--port",
        &port.to_string(),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
        "--dir",
        "/tmp",
    ]);
    let started = command.args(options).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(process) = started else {
        let needed = std::env::var_os("CI").is_some() && std::env::var_os("BUSBAR_SERVICES_ABSENT").is_none();
        assert!(!needed, "redis-server is not installed: tests/services/install");
        eprintln!("skipped: there is no redis-server (tests/services/install)");
        return None;
    };
    let server = Server { process, port };
    for _ in 0..200 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Some(server);
        }
        sleep(Duration::from_millis(50));
    }
    panic!("redis-server does not accept connections");
}

fn steps(port: u16, more: &str, steps: &str) -> String {
    format!(
        "{steps}<!--top--><localEntry key=\"Cache\"><redis.init><redisHost>127.0.0.1</redisHost><redisPort>{port}</redisPort>{more}</redis.init></localEntry>"
    )
}

fn operation(step: &str) -> String {
    let (name, inside) = step.split_once(' ').unwrap_or((step, ""));
    let mut parameters = String::new();
    for pair in inside.split(';').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap();
        parameters.push_str(&format!("<{name}>{value}</{name}>"));
    }
    format!("<redis.{name} configKey=\"Cache\">{parameters}</redis.{name}>")
}

#[test]
fn every_operation_runs() {
    let Some(server) = server(&[]) else { return };
    // In this order.
    for (step, wanted) in [
        ("flushAll", r#"{"output":"OK"}"#),
        ("ping", r#"{"output":"PONG"}"#),
        ("echo redisMessage=hi", r#"{"output":"hi"}"#),
        ("set redisKey=a;redisValue=1 2", r#"{"output":"OK"}"#),
        ("get redisKey=a", r#"{"output":"1 2"}"#),
        ("append redisKey=a;redisValue=3", r#"{"output":"4"}"#),
        ("strLen redisKey=a", r#"{"output":"4"}"#),
        ("getRange redisKey=a;redisStart=0;redisEnd=1", r#"{"output":"1 "}"#),
        ("setRange redisKey=a;redisOffset=1;redisValue=-", r#"{"output":"4"}"#),
        ("getSet redisKey=a;redisValue=7", r#"{"output":"1-23"}"#),
        ("incrBy redisKey=a;redisInteger=5", r#"{"output":"12"}"#),
        ("decrBy redisKey=a;redisInteger=2", r#"{"output":"10"}"#),
        ("setnX redisKey=a;redisValue=x", r#"{"output":"0"}"#),
        ("setBit redisKey=bits;redisOffset=7;redisValue=1", r#"{"output":"false"}"#),
        ("mSet redisKeysValues=b 2 c 3", r#"{"output":"OK"}"#),
        ("mSetnX redisKeysValues=[\"b\",\"x y\"]", r#"{"output":"0"}"#),
        ("mGet redisKey=b c none", r#"{"output":["2","3",null]}"#),
        ("getObjectIdleTime redisKey=a", SECONDS),
        ("exists redisKey=a", r#"{"output":"true"}"#),
        ("expire redisKey=b;redisSeconds=100", r#"{"output":"1"}"#),
        ("ttl redisKey=b", SECONDS),
        ("expireAt redisKey=c;redisUnixTime=9999999999", r#"{"output":"1"}"#),
        ("type redisKey=a", r#"{"output":"string"}"#),
        ("rename redisOldKey=a;redisNewKey=d", r#"{"output":"OK"}"#),
        ("renamenX redisOldKey=d;redisNewKey=b", r#"{"output":"0"}"#),
        ("keys redisPattern=d*", r#"{"output":["d"]}"#),
        ("del redisKey=d", r#"{"output":"1"}"#),
        ("hSet redisKey=h;redisField=f;redisValue=1", r#"{"output":"1"}"#),
        ("hSetnX redisKey=h;redisField=f;redisValue=2", r#"{"output":"0"}"#),
        ("hMSet redisKey=h;redisFieldsValues=g 2 i 3", r#"{"output":"OK"}"#),
        ("hGet redisKey=h;redisField=g", r#"{"output":"2"}"#),
        ("hMGet redisKey=h;redisFields=f i", r#"{"output":["1","3"]}"#),
        ("hIncrBy redisKey=h;redisField=f;redisValue=4", r#"{"output":"5"}"#),
        ("hExists redisKey=h;redisField=x", r#"{"output":"false"}"#),
        ("hDel redisKey=h;redisFields=i x", r#"{"output":"1"}"#),
        ("hGetAll redisKey=h", r#"{"output":{"f":"5","g":"2"}}"#),
        ("hKeys redisKey=h", r#"{"output":["f","g"]}"#),
        ("hVals redisKey=h", r#"{"output":["5","2"]}"#),
        ("hLen redisKey=h", r#"{"output":"2"}"#),
        ("rPush redisKey=l;redisStrings=a b c", r#"{"output":"3"}"#),
        ("lPush redisKey=l;redisStrings=z", r#"{"output":"4"}"#),
        ("lPushX redisKey=none;redisString=z", r#"{"output":"0"}"#),
        ("rPushX redisKey=l;redisValue=d e", r#"{"output":"5"}"#),
        ("lInsert redisKey=l;redisWhere=BEFORE;redisPivot=b;redisValue=x", r#"{"output":"6"}"#),
        ("lSet redisKey=l;redisIndex=0;redisValue=y", r#"{"output":"OK"}"#),
        ("lRange redisKey=l;redisStart=0;redisEnd=-1", r#"{"output":["y","a","x","b","c","d e"]}"#),
        ("lRem redisKey=l;redisCount=1;redisValue=x", r#"{"output":"1"}"#),
        ("lTrim redisKey=l;redisStart=0;redisEnd=3", r#"{"output":"OK"}"#),
        ("lLen redisKey=l", r#"{"output":"4"}"#),
        ("lPop redisKey=l", r#"{"output":"y"}"#),
        ("rPopLPush redisSrcKey=l;redisDstKey=m", r#"{"output":"c"}"#),
        ("blPop redisKey=none l;redisBlPopTimeout=1", r#"{"output":["l","a"]}"#),
        ("brPop redisKey=m;redisBrPopTimeout=1", r#"{"output":["m","c"]}"#),
        ("sadd redisKey=s;redisMembers=a b", r#"{"output":"2"}"#),
        ("sadd redisKey=t;redisMembers=b", r#"{"output":"1"}"#),
        ("sIsMember redisKey=s;redisMember=a", r#"{"output":"true"}"#),
        ("sInter redisKey=s t", r#"{"output":["b"]}"#),
        ("sInterStore redisDstKey=u;redisKey=s t", r#"{"output":"1"}"#),
        ("sDiffStore redisDstKey=u;redisKey=s t", r#"{"output":"1"}"#),
        ("sMembers redisKey=u", r#"{"output":["a"]}"#),
        ("sUnionStore redisDstKey=u;redisKey=s t", r#"{"output":"2"}"#),
        ("sMove redisSrcKey=s;redisDstKey=v;redisMember=a", r#"{"output":"1"}"#),
        ("sUnion redisKey=v none", r#"{"output":["a"]}"#),
        ("sRandMember redisKey=v", r#"{"output":"a"}"#),
        ("sPop redisKey=v", r#"{"output":"a"}"#),
        ("sRem redisKey=s;redisMembers=b x", r#"{"output":"1"}"#),
        ("zadd redisKey=z;redisScore=1;redisMember=a", r#"{"output":"1"}"#),
        ("zadd redisKey=z;redisScore=2;redisMember=b", r#"{"output":"1"}"#),
        ("zadd redisKey=y;redisScore=5;redisMember=b", r#"{"output":"1"}"#),
        ("zIncrBy redisKey=z;redisScore=2.5;redisMember=a", r#"{"output":"3.5"}"#),
        ("zCount redisKey=z;redisMin=-inf;redisMax=3", r#"{"output":"1"}"#),
        ("zRange redisKey=z;redisStart=0;redisEnd=-1", r#"{"output":["b","a"]}"#),
        ("zRevRange redisKey=z;redisStart=0;redisEnd=0", r#"{"output":["a"]}"#),
        ("zRangeByScore redisKey=z;redisMin=3;redisMax=4", r#"{"output":["a"]}"#),
        ("zRevRangeByScore redisKey=z;redisMin=0;redisMax=9", r#"{"output":["a","b"]}"#),
        ("zRank redisKey=z;redisMember=a", r#"{"output":"1"}"#),
        ("zRevRank redisKey=z;redisMember=a", r#"{"output":"0"}"#),
        ("zScore redisKey=z;redisMember=a", r#"{"output":"3.5"}"#),
        ("zInterStore redisKey=x;redisSets=z y", r#"{"output":"1"}"#),
        ("zUnionStore redisKey=x;redisSets=z y", r#"{"output":"2"}"#),
        ("zRem redisKey=x;redisMembers=a", r#"{"output":"1"}"#),
        ("zRemRangeByRank redisKey=x;redisStart=0;redisEnd=0", r#"{"output":"1"}"#),
        ("zRemRangeByScore redisKey=z;redisStart=0;redisEnd=9", r#"{"output":"2"}"#),
        ("flushDB", r#"{"output":"OK"}"#),
        ("set redisKey=${payload.k};redisValue=é", r#"{"output":"OK"}"#),
        ("randomKey", r#"{"output":"own"}"#),
        ("quit", r#"{"output":"OK"}"#),
    ] {
        let tested = main(&steps(server.port, "", &operation(step)));
        assert!(tested.found.is_empty(), "{step}: {:?}", tested.found);
        let mut end = tested.run(&[JSON], r#"{"k":"own"}"#);
        assert_eq!(end.fault(), None, "{step}: {:?}", end.property("ERROR_DETAIL"));
        let payload = end.payload();
        let is_right = match wanted {
            SECONDS => seconds(&payload).is_some_and(|seconds| seconds <= 100),
            _ => payload == wanted,
        };
        assert!(is_right, "{step}: {payload}");
    }
}

/// In the place of a result that depends on the clock of the server: 0 to 100 seconds.
const SECONDS: &str = "seconds";

fn seconds(payload: &str) -> Option<u64> {
    payload.strip_prefix(r#"{"output":""#)?.strip_suffix(r#""}"#)?.parse().ok()
}

#[test]
fn connections_and_results() {
    let Some(server) = server(&["--requirepass", "secret"]) else { return };
    let steps_xml = "<redis.set configKey=\"Cache\"><redisKey>a</redisKey><redisValue>{//x}</redisValue><responseVariable>r</responseVariable></redis.set>\
               <redis.get configKey=\"Cache\"><redisKey>a</redisKey><responseVariable>r</responseVariable></redis.get>";
    for more in [
        "<cacheKey>secret</cacheKey>".to_owned(),
        format!("<redisConnectionURI>redis://:secret@127.0.0.1:{}/3</redisConnectionURI>", server.port),
        "<cacheKey>secret</cacheKey><dbNumber>2</dbNumber><maxConnections>1</maxConnections>".to_owned(),
    ] {
        let mut end = main(&steps(server.port, &more, steps_xml)).run(&[XML], "<x>v</x>");
        assert_eq!(end.fault(), None, "{more}: {:?}", end.property("ERROR_DETAIL"));
        assert!(end.context.variables.get("r").unwrap().to_string().contains(r#""payload":{"output":"v"}"#));
        assert_eq!(end.payload(), "<x>v</x>");
    }
    // As a step ahead, with values of the message.
    let step = format!(
        "<property name=\"port\" value=\"{}\"/><redis.init><redisHost>localhost</redisHost><redisPort>{{$ctx:port}}</redisPort><cacheKey>secret</cacheKey></redis.init><redis.ping/>",
        server.port
    );
    let mut end = main(&step).run(&[XML], "<x/>");
    assert_eq!((end.fault(), end.payload().as_str()), (None, r#"{"output":"PONG"}"#));
}

#[test]
fn what_fails_says_why() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().map(|address| (address.port(), silent)).unwrap();
    let short = "<redisTimeout>200</redisTimeout><redisConnectionTimeout>200</redisConnectionTimeout>";
    let mut rows = vec![
        (1, "", "ping", "REDIS:CONNECTION_ERROR", "127.0.0.1:1"),
        (silent.0, short, "ping", "REDIS:CONNECTION_ERROR", "200 ms"),
        (1, "<maxConnections>x</maxConnections>", "ping", "REDIS:INVALID_CONFIGURATION", "maxConnections"),
        (
            1,
            "<redisConnectionURI>secret</redisConnectionURI>",
            "ping",
            "REDIS:INVALID_CONFIGURATION",
            "is not a URI",
        ),
        (
            1,
            "<redisClusterEnabled>true</redisClusterEnabled>",
            "ping",
            "REDIS:INVALID_CONFIGURATION",
            "clusterNodes",
        ),
        (
            1,
            "<redisClusterEnabled>true</redisClusterEnabled><clusterNodes>127.0.0.1:1</clusterNodes>",
            "ping",
            "REDIS:CONNECTION_ERROR",
            "",
        ),
        (1, "<sentinelEnabled>true</sentinelEnabled>", "ping", "REDIS:INVALID_CONFIGURATION", "masterName"),
        (1, "<useSsl>true</useSsl>", "ping", "REDIS:CONNECTION_ERROR", ""),
        (1, "", "get", "REDIS:INVALID_CONFIGURATION", "`redisKey` is not given"),
    ];
    let server = server(&["--requirepass", "secret"]);
    if let Some(server) = &server {
        let cache = "<cacheKey>secret</cacheKey>";
        rows.extend([
            (server.port, "", "ping", "REDIS:INVALID_CREDENTIALS", "NOAUTH"),
            (server.port, "<cacheKey>x</cacheKey>", "ping", "REDIS:INVALID_CREDENTIALS", ""),
            (server.port, cache, "get redisKey=none", "REDIS:NO_VALUE", "no such value"),
            (server.port, cache, "hGetAll redisKey=text", "REDIS:COMMAND_FAILED", "WRONGTYPE"),
            (server.port, cache, "blPop redisKey=none;redisBlPopTimeout=0.1", "REDIS:NO_VALUE", ""),
            (
                server.port,
                cache,
                "blPop redisKey=none;redisBlPopTimeout=x",
                "REDIS:INVALID_CONFIGURATION",
                "seconds",
            ),
            (server.port, cache, "incrBy redisKey=text;redisInteger=1", "REDIS:COMMAND_FAILED", "integer"),
        ]);
        let set = operation("set redisKey=text;redisValue=x");
        assert_eq!(main(&steps(server.port, cache, &set)).run(&[XML], "<a/>").fault(), None);
    }
    for (port, more, step, message, detail) in rows {
        let xml = operation(step).replace("</redis.", "<responseVariable>r</responseVariable></redis.");
        let end = main(&steps(port, more, &xml)).run(&[XML], "<a/>");
        let why = end.property("ERROR_DETAIL").unwrap_or_default();
        assert_eq!(end.property("ERROR_MESSAGE").as_deref(), Some(message), "{step} {more}: {why}");
        assert!(why.contains(detail) && !why.contains("secret"), "{step} {more}: {why}");
        assert!(end.context.variables.get("r").unwrap().to_string().contains(message), "{step}");
    }
}

#[test]
fn a_server_that_was_started_anew_is_found_again() {
    let Some(first) = server(&[]) else { return };
    let port = first.port;
    let tested = main(&steps(port, "", &operation("set redisKey=a;redisValue=1")));
    assert_eq!(tested.run(&[XML], "<a/>").fault(), None);
    drop(first);
    assert_eq!(tested.run(&[XML], "<a/>").fault().as_deref(), Some("0: REDIS:CONNECTION_ERROR"));
    let again = Command::new("redis-server")
        .args(["--port", &port.to_string(), "--save", ""])
        .stdout(Stdio::null())
        .spawn();
    let _again = Server { process: again.unwrap(), port };
    for _ in 0..200 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            break;
        }
        sleep(Duration::from_millis(50));
    }
    assert_eq!(tested.run(&[XML], "<a/>").fault(), None);
}

/// A server that says `OK` to the first commands of a connection and the texts in turn to each `GET`, `EXISTS` and `HGETALL`. One that
/// ends with `!` is the last one of its connection.
fn scripted(answers: &'static [&'static str]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answers = Arc::new(Mutex::new(answers.iter()));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(mut stream), answers) = (stream, Arc::clone(&answers)) else { continue };
            thread::spawn(move || {
                stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                while let Some(count) = lines.next() {
                    // Lengths are left out.
                    let words: Vec<String> = (0..count[1..].parse().unwrap())
                        .filter_map(|_| lines.next().and_then(|_| lines.next()))
                        .collect();
                    let is_answered = ["GET", "EXISTS", "HGETALL"].contains(&words[0].as_str());
                    let reply =
                        if is_answered { answers.lock().unwrap().next().copied() } else { Some("+OK") };
                    let Some(reply) = reply else { return };
                    let text = format!("{}\r\n", reply.trim_end_matches('!').replace('|', "\r\n"));
                    if stream.write_all(text.as_bytes()).is_err() || reply.ends_with('!') {
                        return;
                    }
                }
            });
        }
    });
    port
}

#[test]
fn a_conversation_that_has_ended_is_not_used_again() {
    let port =
        scripted(&["$1|a!", "-ERR no!", "$1|b!", "HTTP/1.1 400 Bad Request", "$1|c", "*1|*1|x", "$1|d!"]);
    let tested = main(&steps(port, "", &operation("get redisKey=k")));
    for wanted in ["a", "COMMAND_FAILED", "b", "CONNECTION_ERROR", "c", "CONNECTION_ERROR", "d"] {
        let mut end = tested.run(&[XML], "<a/>");
        let found = end.fault().unwrap_or_else(|| end.payload());
        let why = end.property("ERROR_DETAIL").unwrap_or_default();
        assert!(found.contains(wanted), "{wanted}: {found}: {why}");
        assert_eq!(wanted == "CONNECTION_ERROR", why.contains("does not speak the redis protocol"), "{why}");
    }
}

#[test]
fn answers_are_what_the_command_asks_for() {
    for (reply, step, wanted) in [
        (&[":1"], "exists redisKey=k", "true"),
        (&["#f"], "exists redisKey=k", "false"),
        (&["*0"], "exists redisKey=k", "EXISTS is not 0 or 1"),
        (&["$2|ok"], "exists redisKey=k", "EXISTS is not 0 or 1"),
        (&["*2|+a|+1"], "hGetAll redisKey=k", r#"{"a":"1"}"#),
        (&["%1|+a|+1"], "hGetAll redisKey=k", r#"{"a":"1"}"#),
        (&["*3|+a|+1|+b"], "hGetAll redisKey=k", "HGETALL is not a list of names and values"),
        (&["+ok"], "hGetAll redisKey=k", "HGETALL is not a list of names and values"),
        (&["-BUSY"], "get redisKey=k", ": BUSY"),
        (&["-ERR what"], "get redisKey=k", ": ERR what"),
        (&["-MOVED 1 127.0.0.1:1"], "get redisKey=k", ": MOVED 1 127.0.0.1:1 (a node of a cluster: redis"),
    ] {
        let mut end = main(&steps(scripted(reply), "", &operation(step))).run(&[XML], "<a/>");
        let found = end.property("ERROR_DETAIL").unwrap_or_else(|| end.payload());
        assert!(found.contains(wanted), "{reply:?}: {found}");
    }
}

/// A server, and the one node of a cluster, whose reply to `GET` has a gigabyte; how many bytes of it somebody took.
fn gigabyte() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let sent = Arc::clone(&counted);
            thread::spawn(move || says_a_gigabyte(stream, port, &sent));
        }
    });
    (port, sent)
}

fn says_a_gigabyte(mut stream: TcpStream, port: u16, sent: &AtomicUsize) {
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    for line in lines {
        // The words of a command, without their number and lengths.
        let answered = match line.as_str() {
            "GET" => break,
            "PING" | "CLIENT" | "SELECT" | "READONLY" => stream.write_all(b"+OK\r\n"),
            // All of them are here.
            "SLOTS" => {
                let slots = format!("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:{port}\r\n");
                stream.write_all(slots.as_bytes())
            }
            _ => Ok(()),
        };
        if answered.is_err() {
            return;
        }
    }
    let block = vec![b'x'; 1 << 20];
    let mut written = stream.write_all(b"$1000000000\r\n");
    while written.is_ok() {
        written = stream.write_all(&block);
        sent.fetch_add(block.len(), Relaxed);
    }
}

#[test]
fn a_reply_is_read_as_far_as_a_flow_may_hold() {
    for cluster in [false, true] {
        let (port, sent) = gigabyte();
        let mut more = "<redisTimeout>60000</redisTimeout>".to_owned();
        if cluster {
            more += &format!(
                "<redisClusterEnabled>true</redisClusterEnabled><clusterNodes>127.0.0.1:{port}</clusterNodes>"
            );
        }
        let end = main(&steps(port, &more, &operation("get redisKey=k"))).run(&[XML], "<a/>");
        assert_eq!(
            end.fault().as_deref(),
            Some("0: REDIS:COMMAND_FAILED"),
            "{:?}",
            end.property("ERROR_DETAIL")
        );
        let why = end.property("ERROR_DETAIL").unwrap_or_default();
        assert!(why.contains("has more than a flow may hold (67108864 bytes)"), "{why}");
        // What the kernel had is counted as well.
        sleep(Duration::from_millis(200));
        let sent = sent.load(Relaxed);
        assert!(sent < 100 << 20, "{sent}");
    }
}
