//! The configurations of the simulation: services by chance out of these kinds, and what each owes to its client.

use crate::random::Random;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::RangeInclusive;
use std::time::Duration;

/// A service, and what a good answer of it looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    Direct,
    /// An API.
    Rest,
    Failover,
    Balance,
    /// Reads the whole body, then passes it on.
    Whole,
    TwoCalls,
    Split,
    Clone,
    /// To two recipients, whose answers are collected.
    Recipients,
    /// Load balance with sessions.
    Sticky,
    /// Computes on a thread of its own.
    Scripted,
    /// Reads a body that is no XML.
    Malformed,
    /// 202 at once, delivered later.
    OneWay,
    /// 200, delivered by a message processor.
    Stored,
    /// Answers without reading the body.
    Instant,
    Dropped,
    /// No such service.
    Missing,
    /// A service that was faulty from the beginning.
    LeftOut,
}

pub const ALL: [Service; 18] = [
    Service::Direct,
    Service::Rest,
    Service::Failover,
    Service::Balance,
    Service::Whole,
    Service::TwoCalls,
    Service::Split,
    Service::Clone,
    Service::Recipients,
    Service::Sticky,
    Service::Scripted,
    Service::Malformed,
    Service::OneWay,
    Service::Stored,
    Service::Instant,
    Service::Dropped,
    Service::Missing,
    Service::LeftOut,
];

/// Longest that the bus has for one attempt of an endpoint, and a little more.
const ONE_ATTEMPT: Duration = Duration::from_millis(2_500 + 700);

impl Service {
    pub fn path(self) -> &'static str {
        match self {
            Service::Direct => "/services/Direct",
            Service::Rest => "/rest/orders",
            Service::Failover => "/services/Failover",
            Service::Balance => "/services/Balance",
            Service::Whole => "/services/Whole",
            Service::TwoCalls => "/services/TwoCalls",
            Service::Split | Service::Malformed => "/services/Split",
            Service::Clone => "/services/Clone",
            Service::Recipients => "/services/Recipients",
            Service::Sticky => "/services/Sticky",
            Service::Scripted => "/services/Scripted",
            Service::OneWay => "/services/OneWay",
            Service::Stored => "/services/Stored",
            Service::Instant => "/services/Instant",
            Service::Dropped => "/services/Dropped",
            Service::Missing => "/services/Nothing",
            Service::LeftOut => "/services/LeftOut",
        }
    }

    /// The body of a request: so many parts, and so many bytes beside them.
    pub fn body(self, id: &str, parts: usize, filler: usize) -> String {
        let mut body = format!("<order><id>{id}</id>");
        for part in 0..parts {
            body.push_str(&format!("<item><id>{id}</id><part>{part}</part></item>"));
        }
        let end = if self == Service::Malformed { "</oder>" } else { "</order>" };
        body + &format!("<filler>{}</filler>{end}", "x".repeat(filler))
    }

    /// The fields that say what the body is.
    pub fn fields(self) -> &'static str {
        match self {
            Service::Malformed => "Content-Type: text/xml\r\nSOAPAction: urn:order\r\n",
            _ => "Content-Type: application/xml\r\n",
        }
    }

    /// Whether an answer below 300 means that the bus has taken the message over.
    pub fn acknowledges(self) -> bool {
        matches!(self, Service::OneWay | Service::Stored)
    }

    /// Whether the request is relayed byte by byte.
    pub fn relays(self) -> bool {
        matches!(
            self,
            Service::Direct
                | Service::Rest
                | Service::Failover
                | Service::Balance
                | Service::Whole
                | Service::Sticky
                | Service::Scripted
                | Service::OneWay
        )
    }

    /// Longest wait for the answer once the request is there, where one endpoint is asked once.
    pub fn longest(self) -> Option<Duration> {
        matches!(self, Service::Direct | Service::Rest | Service::Whole).then_some(ONE_ATTEMPT)
    }

    /// The status of its answers when all is well.
    pub fn good_status(self) -> RangeInclusive<u16> {
        match self {
            Service::Malformed => 500..=500,
            Service::Missing => 404..=404,
            // 404 where its file cannot be read any more.
            Service::LeftOut => 404..=503,
            _ => 200..=202,
        }
    }

    /// Why an answer is not the one that its request deserves.
    pub fn judge(self, id: &str, parts: usize, status: u16, body: &str) -> Result<(), String> {
        let mut rest = body;
        let mut replies = 0;
        while let Some(found) = element(rest, "id") {
            if found != id {
                return Err(format!("an answer with the id {found}: {body}"));
            }
            replies += 1;
            rest = &rest[rest.find("</id>").map_or(rest.len(), |at| at + 5)..];
        }
        let seen: BTreeSet<String> = body
            .split("<part>")
            .skip(1)
            .map(|rest| rest.split('<').next().unwrap_or("").to_owned())
            .collect();
        let fits = match (self, status) {
            // What was shed.
            (_, 503) => true,
            (Service::Missing | Service::LeftOut, 404) => true,
            (Service::Missing | Service::LeftOut, _) => false,
            (Service::Malformed, 500) => replies == 1 && body.contains("<failed"),
            (Service::Malformed, _) => false,
            (Service::OneWay, 202) | (Service::Dropped, 200..=202) => return Ok(()),
            (Service::Split, 200) => {
                seen.len() + body.matches("<early/>").count() == parts && replies == parts
            }
            (Service::Clone | Service::Recipients, 200) => body.matches("<reply>").count() == 2,
            (Service::Instant, 200) => body.contains(&format!("<id>{id}</id>")) && body.ends_with("</order>"),
            (Service::Stored, 200) => body.contains("<stored") && replies == 1,
            (Service::OneWay | Service::Dropped, 200..=299) => false,
            (_, 200) => body.starts_with("<reply>") && body.ends_with("</reply>") && replies == 1,
            (_, 500 | 502 | 504) => true,
            _ => false,
        };
        if fits { Ok(()) } else { Err(format!("{status} with {body:?} is no answer of {self:?}")) }
    }
}

/// The text of the first element of that name.
pub fn element(text: &str, name: &str) -> Option<String> {
    let begin = text.find(&format!("<{name}>"))? + name.len() + 2;
    let end = begin + text[begin..].find("</")?;
    Some(text[begin..end].to_owned())
}

/// An artifact of a configuration.
type Artifact = (&'static str, String);

/// A service that is faulty from the beginning.
pub const LEFT_OUT: &str = "LeftOut";

/// The artifacts of a configuration with all services over the endpoints `e0` to `e2`; order, policies and groups by chance. `faulty`: an
/// artifact of it is.
pub fn configuration(random: &mut Random, addresses: &[String], faulty: bool) -> String {
    let mut artifacts: Vec<Artifact> = Vec::new();
    for (number, address) in addresses.iter().enumerate() {
        let mut policy = String::new();
        if random.one_in(4) {
            policy.push_str("<suspendOnFailure><errorCodes>-1</errorCodes><initialDuration>500</initialDuration></suspendOnFailure>");
        } else {
            let (initial, most) = (random.between(50, 2_000), random.between(100, 5_000));
            let factor = random.pick(&["1.0", "2.0", "3.5", "0", "1e9"]);
            let codes = random.pick(&["", "<errorCodes>101503,101504,101505</errorCodes>"]);
            let _ = write!(
                policy,
                "<suspendOnFailure>{codes}<initialDuration>{initial}</initialDuration><progressionFactor>{factor}</progressionFactor><maximumDuration>{most}</maximumDuration></suspendOnFailure>"
            );
        }
        let retries = random.below(3);
        let _ = write!(
            policy,
            "<markForSuspension><retriesBeforeSuspension>{retries}</retriesBeforeSuspension><retryDelay>{}</retryDelay></markForSuspension>",
            random.below(200)
        );
        let timeout = random.between(300, 2_500);
        artifacts.push((
            "endpoint",
            format!("<endpoint name=\"e{number}\"><address uri=\"{address}\"><timeout><duration>{timeout}</duration><responseAction>fault</responseAction></timeout>{policy}</address></endpoint>"),
        ));
    }
    let keys = "<endpoint key=\"e0\"/><endpoint key=\"e1\"/><endpoint key=\"e2\"/>";
    artifacts.push(("endpoint", format!("<endpoint name=\"group\"><failover>{keys}</failover></endpoint>")));
    let failover = random.pick(&["", " failover=\"false\""]);
    artifacts.push((
        "endpoint",
        format!("<endpoint name=\"balance\"><loadbalance algorithm=\"org.apache.synapse.endpoints.algorithms.RoundRobin\"{failover}>{keys}</loadbalance></endpoint>"),
    ));
    artifacts.push(("endpoint", "<endpoint name=\"alias\" key=\"group\"/>".to_owned()));
    artifacts.push((
        "endpoint",
        format!(
            "<endpoint name=\"sticky\"><session type=\"http\"/><loadbalance>{keys}</loadbalance></endpoint>"
        ),
    ));
    artifacts.push((
        "endpoint",
        "<endpoint name=\"both\"><recipientlist><endpoint key=\"e0\"/><endpoint key=\"e1\"/></recipientlist></endpoint>"
            .to_owned(),
    ));
    let one = |random: &mut Random| random.pick(&["e0", "e1", "e2"]).to_owned();
    let send = |key: &str| format!("<send><endpoint key=\"{key}\"/></send>");
    let call = |key: &str| format!("<call><endpoint key=\"{key}\"/></call>");
    let out = random.pick(&["", "", "", "<panic/>", "<panic how=\"later\"/>"]);
    let mut proxy = |name: &str, steps: String| {
        artifacts.push((
            "proxy",
            format!("<proxy name=\"{name}\" transports=\"http\"><target faultSequence=\"failed\"><inSequence><property name=\"id\" expression=\"$trp:X-Id\"/><property name=\"all\"><all xmlns=\"\"/></property>{steps}</inSequence><outSequence>{out}<send/></outSequence></target></proxy>"),
        ));
    };
    let panics = |random: &mut Random| {
        let one =
            random.pick(&["", "", "", "<panic/>", "<panic how=\"elsewhere\"/>", "<panic how=\"later\"/>"]);
        (*one).to_owned()
    };
    proxy("Direct", format!("{}{}", panics(random), send(one(random))));
    proxy("Failover", send(if random.one_in(2) { "group" } else { "alias" }));
    proxy("Balance", send("balance"));
    proxy(
        "Whole",
        format!("<filter xpath=\"count(//filler) &gt;= 0\"><then>{}</then></filter>", send(one(random))),
    );
    proxy("TwoCalls", format!("{}{}{}<respond/>", call(one(random)), panics(random), call("group")));
    proxy("Sticky", send("sticky"));
    proxy(
        "Scripted",
        format!(
            "<script language=\"js\"><![CDATA[var n = 0; for (var i = 0; i < 10; i++) {{ n += i; }} mc.setProperty('n', n);]]></script>{}",
            send(one(random))
        ),
    );
    proxy(LEFT_OUT, "<sned/>".to_owned());
    let within = random.between(1, 20);
    // With a timeout parts may be missing, and the flow counts them. Without one the aggregate has all of them, or fails.
    let (condition, complete) = match within % 2 {
        0 => (String::new(), "<respond/>"),
        _ => (
            format!(
                "<completeCondition timeout=\"{within}\"><messageCount min=\"-1\" max=\"-1\"/></completeCondition>"
            ),
            "<filter xpath=\"count(//reply) = $ctx:parts\"><then><respond/></then><else><sequence key=\"failed\"/></else></filter>",
        ),
    };
    proxy(
        "Split",
        format!("<iterate id=\"parts\" expression=\"//item\"><target><sequence>{}{}<aggregate id=\"parts\">{condition}<onComplete expression=\"//reply\" enclosingElementProperty=\"all\">{complete}</onComplete></aggregate></sequence></target></iterate>", panics(random), call("group"))
            .replacen("<iterate", "<property name=\"parts\" expression=\"count(//item)\"/><iterate", 1),
    );
    proxy(
        "Clone",
        format!(
            "<clone id=\"both\"><target><sequence>{}{}<sequence key=\"collect\"/></sequence></target><target><sequence>{}<sequence key=\"collect\"/></sequence></target></clone>",
            panics(random),
            call(one(random)),
            call(one(random))
        ),
    );
    const TAKEN: &str = "<log level=\"custom\"><property name=\"taken\" expression=\"$trp:X-Id\"/><property name=\"message_id\" expression=\"get-property('MessageID')\"/></log>";
    const OUT_ONLY: &str = "<property name=\"OUT_ONLY\" value=\"true\"/>";
    const ACCEPTED: &str = "<property name=\"FORCE_SC_ACCEPTED\" value=\"true\" scope=\"axis2\"/>";
    const UNLESS_GOOD: &str = "<filter source=\"get-property('axis2', 'HTTP_SC')\" regex=\"200\"><then><drop/></then><else><sequence key=\"failed\"/></else></filter>";
    let one_way = match random.below(3) {
        0 => format!("{OUT_ONLY}{ACCEPTED}{}{}", panics(random), send(one(random))),
        1 => format!("{OUT_ONLY}{}", call(one(random))),
        _ => format!("{ACCEPTED}{}{UNLESS_GOOD}", call(one(random))),
    };
    proxy("OneWay", format!("{TAKEN}{one_way}"));
    proxy(
        "Stored",
        format!("{TAKEN}{}", panics(random))
            + "<store messageStore=\"kept\"/><payloadFactory media-type=\"xml\"><format><stored><id>$1</id></stored></format><args><arg expression=\"$ctx:id\"/></args></payloadFactory><respond/>",
    );
    proxy("Instant", "<respond/>".to_owned());
    proxy("Dropped", "<drop/>".to_owned());
    artifacts.push((
        "proxy",
        "<proxy name=\"Recipients\" transports=\"http\"><target faultSequence=\"failed\"><inSequence><property name=\"id\" expression=\"$trp:X-Id\"/><property name=\"all\"><all xmlns=\"\"/></property><send><endpoint key=\"both\"/></send></inSequence><outSequence><sequence key=\"gather\"/></outSequence></target></proxy>".to_owned(),
    ));
    artifacts.push((
        "api",
        format!("<api name=\"Rest\" context=\"/rest\"><resource methods=\"POST GET\" uri-template=\"/orders\"><inSequence><property name=\"id\" expression=\"$trp:X-Id\"/>{}</inSequence><outSequence><send/></outSequence><faultSequence><sequence key=\"failed\"/></faultSequence></resource></api>", send(one(random))),
    ));
    artifacts.push((
        "sequence",
        "<sequence name=\"failed\"><payloadFactory media-type=\"xml\"><format><failed><id>$1</id></failed></format><args><arg expression=\"$ctx:id\"/></args></payloadFactory><property name=\"HTTP_SC\" value=\"500\" scope=\"axis2\"/><log level=\"custom\" category=\"ERROR\"><property name=\"failed\" expression=\"$ctx:id\"/></log><respond/></sequence>".to_owned(),
    ));
    for (name, id) in [("collect", " id=\"both\""), ("gather", "")] {
        artifacts.push((
            "sequence",
            format!("<sequence name=\"{name}\"><aggregate{id}><completeCondition timeout=\"{within}\"><messageCount min=\"2\" max=\"2\"/></completeCondition><onComplete expression=\"//reply\" enclosingElementProperty=\"all\"><filter xpath=\"count(//reply) = 2\"><then><respond/></then><else><sequence key=\"failed\"/></else></filter></onComplete></aggregate></sequence>"),
        ));
    }
    artifacts.push(("messageStore", "<messageStore name=\"kept\"/>".to_owned()));
    let interval = random.between(50, 400);
    artifacts.push((
        "messageProcessor",
        format!("<messageProcessor name=\"forward\" class=\"org.apache.synapse.message.processor.impl.forwarder.ScheduledMessageForwardingProcessor\" messageStore=\"kept\" targetEndpoint=\"e0\"><parameter name=\"interval\">{interval}</parameter><parameter name=\"client.retry.interval\">{interval}</parameter><parameter name=\"max.delivery.attempts\">-1</parameter><parameter name=\"message.processor.reply.sequence\">done</parameter></messageProcessor>"),
    ));
    // What it begins belongs to the message: only when all of it has ended well, the message may be forgotten.
    artifacts.push((
        "sequence",
        format!("<sequence name=\"done\"><property name=\"id\" expression=\"$trp:X-Id\"/>{}<payloadFactory media-type=\"xml\"><format><order xmlns=\"\"><id>$1</id><part>done</part></order></format><args><arg expression=\"$ctx:id\"/></args></payloadFactory><clone><target><sequence>{}<filter source=\"get-property('axis2', 'HTTP_SC')\" regex=\"200\"><then><drop/></then><else><throwError type=\"refused\" errorMessage=\"refused\"/></else></filter></sequence></target></clone></sequence>", panics(random), call("e1")),
    ));
    if faulty {
        let at = random.below(artifacts.len() as u64) as usize;
        spoil(random, &mut artifacts[at].1);
    }
    // Keys are found in whatever order they are defined.
    for at in (1..artifacts.len()).rev() {
        artifacts.swap(at, random.below(at as u64 + 1) as usize);
    }
    let text: String = artifacts.iter().map(|(_, artifact)| artifact.as_str()).collect();
    // The messages of the simulation are in no namespace.
    text.replace("<stored>", "<stored xmlns=\"\">").replace("<failed>", "<failed xmlns=\"\">")
}

/// Makes an artifact faulty: a mediator or attribute that does not exist, or no XML any more.
fn spoil(random: &mut Random, artifact: &mut String) {
    let begin = artifact.find("<inSequence>").map(|at| at + "<inSequence>".len());
    match (random.below(3), begin) {
        (0, Some(begin)) => artifact.insert_str(begin, "<sned/>"),
        (1, Some(_)) => *artifact = artifact.replacen("name=", "nome=", 1),
        _ => artifact.push_str("<unclosed>"),
    }
}
