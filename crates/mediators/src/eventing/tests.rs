use super::is_below;
use super::protocol::{WSE, expires, future};
use flow::testing::{self, Tested};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::time::Duration;

const MANAGER: &str = "<subscriptionManager class='org.apache.synapse.eventing.managers.DefaultInMemorySubscriptionManager'>
    <property name='topicHeaderName' value='Topic'/><property name='topicHeaderNS' value='urn:t'/></subscriptionManager>";
const SOAP: [(&str, &str); 2] = [("Content-Type", "text/xml"), ("SOAPAction", "x")];

struct Response {
    status: u16,
    body: String,
}

/// Asks, and waits until all that goes on for the message has ended.
fn ask(tested: &Tested, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Response {
    testing::block_on(async {
        let (status, _, bytes) = tested.answer(method, target, headers, body.as_bytes()).await;
        assert!(tested.bus.services().scopes.drained(SOON).await, "the work goes on");
        Response { status, body: String::from_utf8_lossy(&bytes).into_owned() }
    })
}

fn loaded(inside: &str, more: &str) -> Tested {
    let text = format!(
        "<definitions xmlns='http://ws.apache.org/ns/synapse'><eventSource name='E'>{MANAGER}{inside}</eventSource>{more}</definitions>"
    );
    testing::configuration(&crate::registry(testing::endpoints), &text)
}

fn soap(header: &str, body: &str) -> String {
    format!(
        "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/' xmlns:wse='{WSE}' \
         xmlns:wsa='http://schemas.xmlsoap.org/ws/2004/08/addressing' xmlns:t='urn:t'><s:Header>{header}</s:Header><s:Body>{body}</s:Body></s:Envelope>"
    )
}

fn subscribe(address: &str, more: &str) -> String {
    soap(
        "<wsa:MessageID>urn:m1</wsa:MessageID>",
        &format!(
            "<wse:Subscribe><wse:Delivery><wse:NotifyTo><wsa:Address>{address}</wsa:Address><wsa:ReferenceParameters>\
             <mine xmlns='urn:mine'>7</mine></wsa:ReferenceParameters></wse:NotifyTo></wse:Delivery>{more}</wse:Subscribe>"
        ),
    )
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    text.split_once(start).and_then(|(_, rest)| rest.split_once(end)).map_or("", |(inside, _)| inside)
}

const SOON: Duration = Duration::from_secs(10);

#[test]
fn a_topic_is_one_or_below_it() {
    for (topic, of, yes) in [
        ("a/b", "a/b", true),
        ("a/b", "a", true),
        ("a/b", "a/", true),
        ("ab", "a", false),
        ("a", "a/b", false),
        ("", "a", false),
        ("a", "", false),
    ] {
        assert_eq!(is_below(topic, of), yes, "{topic} below {of}");
    }
}

#[test]
fn subscriptions_end_at_a_date_or_after_a_duration() {
    let now: Timestamp = "2026-03-28T12:00:00Z".parse().unwrap();
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    for (text, at) in [
        ("2030-01-01T00:00:00Z", Some("2030-01-01T00:00:00Z")),
        ("2030-01-01T00:00:00+02:00", Some("2029-12-31T22:00:00Z")),
        // Without an offset it is the time of the bus.
        ("2030-01-01T00:00:00", Some("2029-12-31T23:00:00Z")),
        ("PT2H", Some("2026-03-28T14:00:00Z")),
        // A day has 23 hours where the clock is put forward.
        ("P1D", Some("2026-03-29T11:00:00Z")),
        ("-P1D", Some("2026-03-27T12:00:00Z")),
        ("soon", None),
        ("P", None),
        ("P99999999Y", None),
        ("", None),
    ] {
        let found = expires(text, now, &zone).ok().map(|at| at.to_string());
        assert_eq!(found.as_deref(), at, "{text}");
    }
    assert!(future("P1D", now, &zone).is_ok());
    assert!(future("-P1D", now, &zone).unwrap_err().reason.contains("over already"));
    assert!(future("2020-01-01T00:00:00Z", now, &zone).is_err());
}

#[test]
fn who_has_subscribed_gets_what_the_filter_lets_through_until_the_end() {
    let (address, events) = testing::subscriber();
    let tested = loaded("", "");
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    let filter = "<wse:Filter Dialect='http://www.w3.org/TR/1999/REC-xpath-19991116' xmlns:e='urn:e'>//e:event/@n &gt; 5</wse:Filter>";
    let response = ask(
        &tested,
        "POST",
        "/services/E",
        &SOAP,
        &subscribe(&address, &format!("{filter}<wse:Expires>P1D</wse:Expires>")),
    );
    assert_eq!(response.status, 200, "{}", response.body);
    assert!(
        response.body.contains("SubscribeResponse</wsa:Action>")
            && response.body.contains(">urn:m1</wsa:RelatesTo>"),
        "{}",
        response.body
    );
    let id = between(&response.body, "<wse:Identifier>", "<").to_owned();
    assert!(id.starts_with("urn:uuid:"), "{}", response.body);
    let publish = |n: u32| {
        let event = soap("", &format!("<event xmlns='urn:e' n='{n}'/>"));
        ask(&tested, "POST", "/services/E", &SOAP, &event).status
    };
    assert_eq!((publish(1), publish(9)), (202, 202));
    let (_, event) = events.recv_timeout(SOON).unwrap();
    assert!(event.contains("n=\"9\"") || event.contains("n='9'"), "{event}");
    assert!(event.contains("<mine xmlns=\"urn:mine\">7</mine>") || event.contains("urn:mine"), "{event}");
    assert!(events.recv_timeout(Duration::from_millis(300)).is_err(), "the first one is filtered out");

    let manage = |name: &str, inside: &str| {
        let header = format!("<wse:Identifier>{id}</wse:Identifier>");
        ask(
            &tested,
            "POST",
            "/services/E",
            &SOAP,
            &soap(&header, &format!("<wse:{name}>{inside}</wse:{name}>")),
        )
    };
    let status = manage("GetStatus", "").body;
    let renewed = manage("Renew", "<wse:Expires>2099-01-01T00:00:00Z</wse:Expires>").body;
    assert!(status.contains("GetStatusResponse") && status.contains("<wse:Expires>"), "{status}");
    assert!(renewed.contains("<wse:Expires>2099-01-01T00:00:00Z</wse:Expires>"), "{renewed}");
    assert_eq!(tested.bus.plan().event_source("E").unwrap().subscriptions().len(), 1);
    let refused = manage("Renew", "<wse:Expires>2001-01-01T00:00:00Z</wse:Expires>");
    assert!(refused.status == 500 && refused.body.contains("wse:InvalidExpirationTime"), "{}", refused.body);
    assert_eq!(manage("Unsubscribe", "").status, 200);
    assert_eq!(publish(9), 202);
    assert!(events.recv_timeout(Duration::from_millis(300)).is_err());
    for name in ["Unsubscribe", "Renew", "GetStatus"] {
        let response = manage(name, "");
        assert!(
            response.status == 500 && response.body.contains("there is no subscription"),
            "{name}: {}",
            response.body
        );
    }
}

#[test]
fn a_request_that_cannot_be_met_gets_a_fault() {
    let tested = loaded("", "");
    let to = "http://127.0.0.1:9/";
    for (body, code) in [
        (soap("", "<wse:Subscribe/>"), "InvalidMessage"),
        (soap("", "<wse:Subscribe><wse:Delivery/></wse:Subscribe>"), "InvalidMessage"),
        (subscribe("ftp://here/", ""), "InvalidMessage"),
        (subscribe("http://", ""), "InvalidMessage"),
        (subscribe("", ""), "InvalidMessage"),
        (subscribe("http://user:secret@127.0.0.1:9/", ""), "InvalidMessage"),
        (subscribe("http://127.0.0.1:99999/", ""), "InvalidMessage"),
        (
            soap("", "<wse:Subscribe><wse:Delivery Mode='urn:pull'/></wse:Subscribe>"),
            "DeliveryModeRequestedUnavailable",
        ),
        (subscribe(to, "<wse:Filter>//a[</wse:Filter>"), "FilteringRequestedUnavailable"),
        (subscribe(to, "<wse:Filter>//x:a</wse:Filter>"), "FilteringRequestedUnavailable"),
        (subscribe(to, "<wse:Expires>tomorrow</wse:Expires>"), "UnsupportedExpirationType"),
        (subscribe(to, "<wse:Expires>2001-01-01T00:00:00Z</wse:Expires>"), "InvalidExpirationTime"),
        (soap("", "<wse:Renew/>"), "InvalidMessage"),
        (soap("<wse:Identifier>urn:no</wse:Identifier>", "<wse:Unsubscribe/>"), "InvalidMessage"),
    ] {
        let response = ask(&tested, "POST", "/services/E", &SOAP, &body);
        assert_eq!(response.status, 500, "{body}: {}", response.body);
        assert!(response.body.contains(&format!("wse:{code}<")), "{body}: {}", response.body);
        let body = body
            .replace("http://schemas.xmlsoap.org/soap/envelope/", "http://www.w3.org/2003/05/soap-envelope");
        let response =
            ask(&tested, "POST", "/services/E", &[("Content-Type", "application/soap+xml")], &body);
        assert!(
            response.body.contains("Subcode") && response.body.contains(&format!("wse:{code}<")),
            "{body}: {}",
            response.body
        );
    }
    assert!(tested.bus.plan().event_source("E").unwrap().subscriptions().is_empty());
    assert_eq!(ask(&tested, "GET", "/services/E", &[], "").status, 400);
}

#[test]
fn written_subscriptions_and_mediators_that_publish() {
    let (address, events) = testing::subscriber();
    let subscription = |id: &str, more: &str| {
        format!(
            "<subscription id='{id}'>{more}<endpoint><address uri='{address}/{id}'/></endpoint></subscription>"
        )
    };
    let all = [
        subscription("topic", "<filter source='orders' dialect='urn:topic'/>"),
        subscription("over", "<expires>2001-01-01T00:00:00Z</expires>"),
        subscription(
            "xpath",
            "<filter source=\"//event/@n = 3\" dialect='http://www.w3.org/TR/1999/REC-xpath-19991116'/>",
        ),
    ];
    let more = "<proxy name='P'><target><inSequence><eventPublisher eventSourceName='E'/><property name='messageType' value='application/json' scope='axis2'/>
        <payloadFactory media-type='json'><format>{\"ok\":1}</format></payloadFactory><respond/></inSequence></target></proxy>
        <proxy name='T'><target><inSequence><event topic='orders/new' expression='//event'/><drop/></inSequence></target></proxy>
        <proxy name='U'><target><inSequence><eventPublisher eventSourceName='none'/></inSequence></target></proxy>";
    let tested = loaded(&all.concat(), more);
    let found: Vec<_> =
        tested.found.iter().map(|finding| finding.split(':').next().unwrap().to_owned()).collect();
    assert_eq!(found, ["unknown-event-source", "never-due"], "{:?}", tested.found);
    let next = || {
        let (path, _) = events.recv_timeout(SOON).unwrap();
        path.trim_start_matches('/').to_owned()
    };
    // The topic is that of the message.
    let event = soap("<t:Topic>orders/new</t:Topic>", "<event n='1'/>");
    assert_eq!(ask(&tested, "POST", "/services/E", &SOAP, &event).status, 202);
    assert_eq!(next(), "topic");
    let response = ask(&tested, "POST", "/services/P", &SOAP, &soap("", "<event n='3'/>"));
    assert_eq!((response.status, response.body.as_str()), (200, "{\"ok\":1}"));
    assert_eq!(next(), "xpath");
    // Whoever names a topic means those who asked for topics.
    assert_eq!(ask(&tested, "POST", "/services/T", &SOAP, &soap("", "<a><event n='3'/></a>")).status, 202);
    assert_eq!(next(), "topic");
    assert!(events.recv_timeout(Duration::from_millis(300)).is_err());
    assert_eq!(ask(&tested, "POST", "/services/U", &SOAP, &soap("", "<a/>")).status, 500);
}

#[test]
fn mistakes_are_found_when_the_configuration_loads() {
    let one = |more: &str| {
        format!("<subscription id='s'>{more}<endpoint><address uri='http://h/'/></endpoint></subscription>")
    };
    for (inside, says) in [
        (
            one("<filter source='//a[' dialect='http://www.w3.org/TR/1999/REC-xpath-19991116'/>"),
            "not a valid expression",
        ),
        (one("<expires>soon</expires>"), "`expires` cannot be `soon`"),
        (one("") + &one(""), "two subscriptions have the id `s`"),
        ("<subscription id='s'/>".to_owned(), "the subscription has no endpoint"),
    ] {
        let tested = loaded(&inside, "");
        assert!(tested.reports(says), "{inside}: {:?}", tested.found);
        assert!(!inside.contains("filter") || tested.bus.plan().event_sources().is_empty());
    }
    let tested = loaded("", "<proxy name='E'><target><inSequence><drop/></inSequence></target></proxy>");
    assert!(tested.reports("is the name of a proxy service"), "{:?}", tested.found);
    let text = "<definitions xmlns='http://ws.apache.org/ns/synapse'><eventSource name='E'><subscriptionManager class='a.Remote'>
        <property name='x' value='1'/></subscriptionManager></eventSource></definitions>";
    let tested = testing::configuration(&crate::registry(testing::endpoints), text);
    assert!(
        tested.reports("the class `a.Remote` of the event source is not executable"),
        "{:?}",
        tested.found
    );
}

/// A filter that comes with a message sees the event only: what it lets through would say what else there is.
#[test]
fn a_filter_of_a_message_reads_no_secrets() {
    let tested = loaded("", "<localEntry key='secret'>s3cret</localEntry>");
    for filter in [
        "starts-with(get-property('registry', 'secret'), 's')",
        "starts-with(get-property('secret'), 's')",
        "starts-with(synapse:get-property('env', 'PATH'), '/')",
        "string-length(wso2:vault-lookup('db')) &gt; 0",
        "evaluate(\"get-property('secret')\") = 's3cret'",
        "$ctx:secret = 1",
        "${payload.x}",
    ] {
        let filter = format!("<wse:Filter>{filter}</wse:Filter>");
        let response = ask(&tested, "POST", "/services/E", &SOAP, &subscribe("http://127.0.0.1:9/", &filter));
        assert!(
            response.status == 500 && response.body.contains("wse:FilteringRequestedUnavailable"),
            "{filter}: {}",
            response.body
        );
    }
}

#[test]
fn who_may_get_no_event_cannot_subscribe() {
    let text = format!(
        "<definitions xmlns='http://ws.apache.org/ns/synapse'><eventSource name='E'>{MANAGER}</eventSource></definitions>"
    );
    let tested = testing::configuration_with(&crate::registry(testing::endpoints), &text, |services| {
        let dynamic = Some(vec!["https://*.example".to_owned(), "127.0.0.1:9".to_owned()]);
        services.routes = std::sync::Arc::new(flow::services::Routes { dynamic, ..Default::default() });
    });
    let subscriptions = || tested.bus.plan().event_source("E").unwrap().subscriptions().len();
    for (address, is_permitted) in [
        ("http://127.0.0.1:9/a", true),
        ("https://a.example/", true),
        ("http://127.0.0.1:9@169.254.169.254/", false),
        ("http://127.0.0.1:10/", false),
        ("http://a.example/", false),
        ("http://169.254.169.254/latest", false),
        ("http://user:secret@127.0.0.1:9/", false),
    ] {
        let before = subscriptions();
        let response = ask(&tested, "POST", "/services/E", &SOAP, &subscribe(address, ""));
        assert_eq!(subscriptions() > before, is_permitted, "{address}: {}", response.body);
        let is_refused = response.status == 500 && response.body.contains("wse:InvalidMessage");
        assert_eq!(is_refused, !is_permitted, "{address}: {}", response.body);
        assert!(!response.body.contains("secret"), "{}", response.body);
    }
}

#[test]
fn what_is_kept_of_a_subscription_is_bounded() {
    let tested = loaded("", "");
    let long = "x".repeat(70_000);
    let block = format!("<wse:Expires>P1D</wse:Expires><wse:Filter>'{long}'</wse:Filter>");
    let with_block = subscribe("http://127.0.0.1:9/", "").replace(">7</mine>", &format!(">{long}</mine>"));
    for body in [
        subscribe("http://127.0.0.1:9/", &block),
        with_block,
        subscribe(&format!("http://127.0.0.1:9/{long}"), ""),
    ] {
        let response = ask(&tested, "POST", "/services/E", &SOAP, &body);
        assert!(
            response.status == 500 && response.body.contains("wse:EventSourceUnableToProcess"),
            "{}",
            response.body
        );
    }
    let kept = || tested.bus.plan().event_source("E").unwrap().subscriptions().len();
    assert_eq!(kept(), 0);
    let topic = format!("<wse:Filter Dialect='urn:topic'>{}</wse:Filter>", "x".repeat(60_000));
    let refused = (0..400).find(|_| {
        let response = ask(&tested, "POST", "/services/E", &SOAP, &subscribe("http://127.0.0.1:9/", &topic));
        assert!(response.status == 200 || response.body.contains("together already"), "{}", response.body);
        response.status == 500
    });
    assert!(refused.is_some() && kept() > 200, "{}", kept());
}

#[test]
fn a_filter_that_never_ends_keeps_the_event_from_nobody() {
    let tested = loaded("", "");
    let endless =
        "<wse:Filter>count(//*[count(//*[count(//*[count(//*)&gt;0])&gt;0])&gt;0])&gt;0</wse:Filter>";
    for _ in 0..40 {
        assert_eq!(
            ask(&tested, "POST", "/services/E", &SOAP, &subscribe("http://127.0.0.1:9/", endless)).status,
            200
        );
    }
    let (address, events) = testing::subscriber();
    assert_eq!(ask(&tested, "POST", "/services/E", &SOAP, &subscribe(&address, "")).status, 200);
    let event = soap("", &format!("<event>{}</event>", "<a/>".repeat(300)));
    assert_eq!(ask(&tested, "POST", "/services/E", &SOAP, &event).status, 202);
    assert!(events.recv_timeout(SOON).is_ok(), "whoever asks for all events gets this one");
}
