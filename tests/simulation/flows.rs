//! The configurations of the simulation: services by chance out of these kinds, and what each owes to its client.

use crate::backend::element;
use crate::random::Random;
use std::collections::BTreeSet;
use std::fmt::Write;

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
    /// 202 at once, delivered later.
    OneWay,
    /// 200, delivered by a message processor.
    Stored,
    /// Answers without reading the body.
    Instant,
    Dropped,
}

pub const ALL: [Service; 12] = [
    Service::Direct,
    Service::Rest,
    Service::Failover,
    Service::Balance,
    Service::Whole,
    Service::TwoCalls,
    Service::Split,
    Service::Clone,
    Service::OneWay,
    Service::Stored,
    Service::Instant,
    Service::Dropped,
];

impl Service {
    pub fn path(self) -> &'static str {
        match self {
            Service::Direct => "/services/Direct",
            Service::Rest => "/rest/orders",
            Service::Failover => "/services/Failover",
            Service::Balance => "/services/Balance",
            Service::Whole => "/services/Whole",
            Service::TwoCalls => "/services/TwoCalls",
            Service::Split => "/services/Split",
            Service::Clone => "/services/Clone",
            Service::OneWay => "/services/OneWay",
            Service::Stored => "/services/Stored",
            Service::Instant => "/services/Instant",
            Service::Dropped => "/services/Dropped",
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
                | Service::OneWay
        )
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
            (Service::OneWay, 202) | (Service::Dropped, 200..=202) => return Ok(()),
            (Service::Split, 200) => {
                seen.len() + body.matches("<early/>").count() == parts && replies == parts
            }
            (Service::Clone, 200) => body.matches("<reply>").count() == 2,
            (Service::Instant, 200) => body.contains(&format!("<id>{id}</id>")) && body.ends_with("</order>"),
            (Service::Stored, 200) => body.contains("<stored") && replies == 1,
            (Service::OneWay | Service::Dropped, 200..=299) => false,
            (_, 200) => body.starts_with("<reply>") && body.ends_with("</reply>") && replies == 1,
            (_, 500 | 502 | 503 | 504) => true,
            _ => false,
        };
        if fits { Ok(()) } else { Err(format!("{status} with {body:?} is no answer of {self:?}")) }
    }
}

/// An artifact of a configuration.
type Artifact = (&'static str, String);

/// A configuration with all services over the endpoints `e0` to `e2`; order, policies and groups by chance.
pub fn configuration(random: &mut Random, addresses: &[String]) -> String {
    let mut artifacts: Vec<Artifact> = Vec::new();
    for (number, address) in addresses.iter().enumerate() {
        let mut policy = String::new();
        if random.one_in(4) {
            policy.push_str("<suspendOnFailure><errorCodes>-1</errorCodes><initialDuration>500</initialDuration></suspendOnFailure>");
        } else {
            let (initial, most) = (random.between(50, 2_000), random.between(100, 5_000));
            let factor = random.pick(&["1.0", "2.0", "3.5", "0"]);
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
    let one = |random: &mut Random| random.pick(&["e0", "e1", "e2"]).to_owned();
    let send = |key: &str| format!("<send><endpoint key=\"{key}\"/></send>");
    let call = |key: &str| format!("<call><endpoint key=\"{key}\"/></call>");
    let mut proxy = |name: &str, steps: String| {
        artifacts.push((
            "proxy",
            format!("<proxy name=\"{name}\" transports=\"http\"><target faultSequence=\"failed\"><inSequence><property name=\"id\" expression=\"$trp:X-Id\"/><property name=\"all\"><all xmlns=\"\"/></property>{steps}</inSequence><outSequence><send/></outSequence></target></proxy>"),
        ));
    };
    proxy("Direct", send(one(random)));
    proxy("Failover", send(if random.one_in(2) { "group" } else { "alias" }));
    proxy("Balance", send("balance"));
    proxy(
        "Whole",
        format!("<filter xpath=\"count(//filler) &gt;= 0\"><then>{}</then></filter>", send(one(random))),
    );
    proxy("TwoCalls", format!("{}{}<respond/>", call(one(random)), call("group")));
    let within = random.between(1, 20);
    proxy(
        "Split",
        format!("<iterate id=\"parts\" expression=\"//item\"><target><sequence>{}<aggregate id=\"parts\"><completeCondition timeout=\"{within}\"><messageCount min=\"-1\" max=\"-1\"/></completeCondition><onComplete expression=\"//reply\" enclosingElementProperty=\"all\"><filter xpath=\"count(//reply) = $ctx:parts\"><then><respond/></then><else><sequence key=\"failed\"/></else></filter></onComplete></aggregate></sequence></target></iterate>", call("group"))
            .replacen("<iterate", "<property name=\"parts\" expression=\"count(//item)\"/><iterate", 1),
    );
    proxy(
        "Clone",
        format!(
            "<clone id=\"both\"><target><sequence>{}<sequence key=\"collect\"/></sequence></target><target><sequence>{}<sequence key=\"collect\"/></sequence></target></clone>",
            call(one(random)),
            call(one(random))
        ),
    );
    proxy(
        "OneWay",
        format!(
            "<log level=\"custom\"><property name=\"taken\" expression=\"$trp:X-Id\"/><property name=\"message_id\" expression=\"get-property('MessageID')\"/></log><property name=\"OUT_ONLY\" value=\"true\"/><property name=\"FORCE_SC_ACCEPTED\" value=\"true\" scope=\"axis2\"/>{}",
            send(one(random))
        ),
    );
    proxy(
        "Stored",
        "<log level=\"custom\"><property name=\"taken\" expression=\"$trp:X-Id\"/><property name=\"message_id\" expression=\"get-property('MessageID')\"/></log><store messageStore=\"kept\"/><payloadFactory media-type=\"xml\"><format><stored><id>$1</id></stored></format><args><arg expression=\"$ctx:id\"/></args></payloadFactory><respond/>".to_owned(),
    );
    proxy("Instant", "<respond/>".to_owned());
    proxy("Dropped", "<drop/>".to_owned());
    artifacts.push((
        "api",
        format!("<api name=\"Rest\" context=\"/rest\"><resource methods=\"POST GET\" uri-template=\"/orders\"><inSequence><property name=\"id\" expression=\"$trp:X-Id\"/>{}</inSequence><outSequence><send/></outSequence><faultSequence><sequence key=\"failed\"/></faultSequence></resource></api>", send(one(random))),
    ));
    artifacts.push((
        "sequence",
        "<sequence name=\"failed\"><payloadFactory media-type=\"xml\"><format><failed><id>$1</id></failed></format><args><arg expression=\"$ctx:id\"/></args></payloadFactory><property name=\"HTTP_SC\" value=\"500\" scope=\"axis2\"/><log level=\"custom\" category=\"ERROR\"><property name=\"failed\" expression=\"$ctx:id\"/></log><respond/></sequence>".to_owned(),
    ));
    artifacts.push((
        "sequence",
        format!("<sequence name=\"collect\"><aggregate id=\"both\"><completeCondition timeout=\"{within}\"><messageCount min=\"2\" max=\"2\"/></completeCondition><onComplete expression=\"//reply\" enclosingElementProperty=\"all\"><filter xpath=\"count(//reply) = 2\"><then><respond/></then><else><sequence key=\"failed\"/></else></filter></onComplete></aggregate></sequence>"),
    ));
    artifacts.push(("messageStore", "<messageStore name=\"kept\"/>".to_owned()));
    let interval = random.between(50, 400);
    artifacts.push((
        "messageProcessor",
        format!("<messageProcessor name=\"forward\" class=\"org.apache.synapse.message.processor.impl.forwarder.ScheduledMessageForwardingProcessor\" messageStore=\"kept\" targetEndpoint=\"e0\"><parameter name=\"interval\">{interval}</parameter><parameter name=\"client.retry.interval\">{interval}</parameter><parameter name=\"max.delivery.attempts\">-1</parameter><parameter name=\"message.processor.reply.sequence\">done</parameter></messageProcessor>"),
    ));
    artifacts.push(("sequence", "<sequence name=\"done\"><drop/></sequence>".to_owned()));
    // Keys are found in whatever order they are defined.
    for at in (1..artifacts.len()).rev() {
        artifacts.swap(at, random.below(at as u64 + 1) as usize);
    }
    let mut text = String::from("<definitions xmlns=\"http://ws.apache.org/ns/synapse\">");
    artifacts.iter().for_each(|(_, artifact)| text.push_str(artifact));
    text.push_str("</definitions>");
    // The messages of the simulation are in no namespace.
    text.replace("<stored>", "<stored xmlns=\"\">").replace("<failed>", "<failed xmlns=\"\">")
}
