//! Endpoints under a bus: groups, keys, states, tokens; many clients on two threads.

use flow::testing::{self, Tested, configuration, configuration_with};
use flow::{Bus, Registry, Services};
use message::{Body, Headers, Method, Payload, PayloadLimits, Reading, RequestHead, Version};
use std::collections::BTreeMap;
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use transport::{ConnectionInfo, Handler, Request};

const NOBODY: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 9));

/// Nobody listens there.
const DEAD: &str = "http://127.0.0.1:1/";

fn registry() -> Registry {
    Registry {
        definitions: Vec::new(),
        unsupported: Vec::new(),
        endpoints: crate::endpoint,
        validation: None,
        events: None,
        stores: None,
        data: None,
    }
}

/// A configuration of these artifacts.
fn text(artifacts: &str) -> String {
    let sequences = r#"<sequence name="main"/><sequence name="fault"/>"#;
    format!(r#"<definitions xmlns="{}">{sequences}{artifacts}</definitions>"#, config::SYNAPSE)
}

fn bus(artifacts: &str) -> Tested {
    configuration(&registry(), &text(artifacts))
}

/// A proxy service with a target endpoint.
fn proxy(name: &str, endpoint: &str) -> String {
    format!(r#"<proxy name="{name}" transports="http"><target>{endpoint}</target></proxy>"#)
}

/// `<endpoint name="…">` with an address that never suspends it, unless `settings` say otherwise.
fn address(name: &str, uri: &str, settings: &str) -> String {
    let settings = match settings {
        "" => "<suspendOnFailure><errorCodes>-1</errorCodes></suspendOnFailure>",
        settings => settings,
    };
    let name = if name.is_empty() { String::new() } else { format!(r#" name="{name}""#) };
    format!(r#"<endpoint{name}><address uri="{uri}">{settings}</address></endpoint>"#)
}

const SUSPENDS: &str = "<suspendOnFailure><initialDuration>60000</initialDuration></suspendOnFailure>";

/// Filling such templates in overflowed the stack, and ended the process.
#[test]
fn templates_that_stand_for_one_another_without_end_are_errors() {
    let template = |name: &str, other: &str| {
        format!(
            r#"<template name="{name}"><endpoint name="$name" template="{other}" uri="$uri"/></template>"#
        )
    };
    let instance = |of: &str| format!(r#"<endpoint name="e" template="{of}" uri="{DEAD}"/>"#);
    let last = r#"<template name="t2000"><endpoint name="$name"><address uri="$uri"/></endpoint></template>"#;
    let chain = (0..2000).map(|i| template(&format!("t{i}"), &format!("t{}", i + 1))).collect::<String>();
    for (artifacts, wanted) in [
        (template("T", "T") + &instance("T"), "the endpoint template `T` refers to itself: T -> T"),
        (
            template("A", "B") + &template("B", "A") + &instance("A"),
            "the endpoint template `A` refers to itself: A -> B -> A",
        ),
        (chain + last + &instance("t0"), "endpoint templates stand for one another"),
    ] {
        let tested = bus(&artifacts);
        assert!(tested.reports(wanted), "{:?}", tested.found);
    }
    // One that stands for another is fine, also twice.
    let address = r#"<template name="B"><endpoint name="$name"><address uri="$uri"/></endpoint></template>"#;
    let both = format!(
        r#"<endpoint name="e"><failover><endpoint name="x" template="A" uri="{DEAD}"/><endpoint name="y" template="A" uri="{DEAD}"/></failover></endpoint>"#
    );
    let tested = bus(&(template("A", "B") + address + &both));
    assert!(tested.found.is_empty(), "{:?}", tested.found);
}

/// What a template is filled in with is found where the template has it: which instance is meant is said.
#[test]
fn what_is_found_in_a_template_names_the_instance() {
    let template = r#"<template name="T"><parameter name="dur"/><endpoint name="$name"><address uri="$uri"><timeout><duration>$dur</duration></timeout></address></endpoint></template>"#;
    let outer = r#"<template name="O"><parameter name="dur"/><endpoint name="$name" template="T" uri="$uri"><parameter name="dur" value="$dur"/></endpoint></template>"#;
    let instance = |name: &str, of: &str, inside: &str| {
        format!(r#"<endpoint name="{name}" template="{of}" uri="{DEAD}">{inside}</endpoint>"#)
    };
    for (of, inside, says) in [
        ("T", "", "`duration` cannot be `$dur`"),
        ("T", r#"<parameter name="dur" value="many"/>"#, "`duration` cannot be `many`"),
        ("O", r#"<parameter name="dur" value="many"/>"#, "`duration` cannot be `many`"),
    ] {
        let good = instance("good", of, r#"<parameter name="dur" value="5"/>"#);
        let tested = bus(&format!("{template}{outer}{good}{}", instance("bad", of, inside)));
        assert_eq!(tested.found.iter().filter(|found| found.contains(says)).count(), 1, "{:?}", tested.found);
        let instances = tested.reasons.iter().filter(|reason| reason.contains("the instance")).count();
        assert_eq!(instances, 1, "{:?}", tested.reasons);
    }
}

fn ask(tested: &Tested, service: &str) -> (u16, String) {
    let response =
        tested.ask("POST", &format!("/services/{service}"), &[("Content-Type", "text/plain")], "x");
    (response.status, response.body)
}

/// A client that may come again is told when: 503 for 30 seconds said `Retry-After: 1`.
#[test]
fn a_client_learns_when_a_suspended_endpoint_is_asked_again() {
    let group = |members: &str| format!("<endpoint><failover>{members}</failover></endpoint>");
    let suspends = |seconds: u32| {
        format!("<suspendOnFailure><initialDuration>{}</initialDuration></suspendOnFailure>", seconds * 1000)
    };
    let tested = bus(&[
        proxy("One", &address("", DEAD, &suspends(90))),
        // The first of its members that is ready.
        proxy(
            "Group",
            &group(&[address("", DEAD, &suspends(200)), address("", DEAD, &suspends(40))].concat()),
        ),
        proxy("Long", &address("", DEAD, &suspends(4_000_000))),
        proxy("Missing", "<endpoint key='gone'/>"),
    ]
    .concat());
    let retry = |service: &str| {
        let response =
            tested.ask("POST", &format!("/services/{service}"), &[("Content-Type", "text/plain")], "x");
        (response.status, response.headers.get("Retry-After").map(|value| value.parse::<u64>().unwrap()))
    };
    for (service, seconds) in [("One", 85..=90), ("Group", 35..=40), ("Long", 65_535..=65_535)] {
        assert_eq!(retry(service), (502, None), "{service}");
        let (status, told) = retry(service);
        assert!(status == 503 && told.is_some_and(|told| seconds.contains(&told)), "{service}: {told:?}");
    }
    assert_eq!(retry("Missing"), (503, Some(1)));
}

/// Asks once.
async fn ask_now(bus: &Bus, service: &str) -> (u16, String) {
    let mut headers = Headers::new();
    headers.set("Content-Type", "text/plain");
    let head = RequestHead {
        method: Method::Post,
        target: format!("/services/{service}"),
        absolute: None,
        version: Version::Http11,
        headers,
    };
    let request = Request { head, body: Body::from(b"x".to_vec()) };
    let peer = ConnectionInfo { id: 1, peer: NOBODY, local: NOBODY, worker: 0, tls: None };
    let response = bus.handle(request, &peer).await;
    let mut payload = Payload::received(response.body, Reading::XML);
    let _ = payload.buffer(&PayloadLimits::default()).await;
    let body = payload.bytes().map(|bytes| bytes.to_vec()).unwrap_or_default();
    (response.head.status, String::from_utf8_lossy(&body).into_owned())
}

async fn client(bus: Arc<Bus>, service: &'static str, times: usize) -> Vec<(u16, String)> {
    let mut seen = Vec::new();
    for _ in 0..times {
        seen.push(ask_now(&bus, service).await);
    }
    seen
}

/// So many clients at a time on two threads, each asks so often; how often each answer came.
fn storm(
    tested: Tested,
    service: &'static str,
    clients: usize,
    times: usize,
) -> BTreeMap<(u16, String), usize> {
    let bus = Arc::new(tested.bus);
    let worker = |clients: usize| {
        let bus = Arc::clone(&bus);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let clients: Vec<_> =
                    (0..clients).map(|_| tokio::spawn(client(Arc::clone(&bus), service, times))).collect();
                let mut all = Vec::new();
                for client in clients {
                    all.extend(client.await.unwrap());
                }
                all
            })
        })
    };
    let workers = [worker(clients / 2), worker(clients - clients / 2)];
    let mut all = BTreeMap::new();
    for response in workers.into_iter().flat_map(|worker| worker.join().unwrap()) {
        *all.entry(response).or_default() += 1;
    }
    all
}

#[test]
fn a_wsdl_that_is_fetched_later_is_no_error_of_a_check() {
    let endpoint = r#"<endpoint><wsdl uri="http://127.0.0.1:1/s?wsdl" service="S" port="P"/></endpoint>"#;
    let tested = bus(&proxy("P", endpoint));
    assert!(tested.reports("fetched when the bus starts"), "{:?}", tested.found);
    assert!(!tested.reports("error"), "{:?}", tested.found);
    assert_ne!(ask(&tested, "P").0, 200);
}

#[test]
fn members_by_key_fail_over_wherever_they_are_defined() {
    let a = testing::backend("HTTP/1.1 200 OK\r\n\r\na");
    // The first group comes before its members, its name before that of an alias of an alias, the entry is last.
    let group = r#"<failover><endpoint key="dead"/><endpoint key="entry"/></failover>"#;
    let entry =
        address("entry", &a, "").replace("<endpoint", &format!("<endpoint xmlns='{}'", config::SYNAPSE));
    let tested = bus(&[
        proxy("Key", r#"<endpoint key="group"/>"#),
        proxy("Alias", r#"<endpoint key="alias"/>"#),
        proxy("Inline", &format!("<endpoint>{group}</endpoint>")),
        r#"<endpoint name="alias" key="alias2"/><endpoint name="alias2" key="group"/>"#.to_owned(),
        format!(r#"<endpoint name="group">{group}</endpoint>"#),
        address("dead", DEAD, ""),
        format!(r#"<localEntry key="entry">{entry}</localEntry>"#),
    ]
    .concat());
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    for service in ["Key", "Alias", "Inline"] {
        for _ in 0..3 {
            assert_eq!(ask(&tested, service), (200, "a".to_owned()), "{service}");
        }
    }
}

#[test]
fn keys_that_lead_round_are_errors_that_name_the_circle() {
    let failover = |name: &str, key: &str| {
        format!(
            r#"<endpoint name="{name}"><failover><endpoint key="{key}"/>{}</failover></endpoint>"#,
            address("", DEAD, "")
        )
    };
    for (artifacts, circle) in [
        (r#"<endpoint name="a" key="a"/>"#.to_owned(), "a -> a"),
        (failover("a", "b") + r#"<endpoint name="b" key="a"/>"#, "a -> b -> a"),
        (failover("a", "b") + &failover("b", "c") + &failover("c", "b"), "b -> c -> b"),
    ] {
        let tested = bus(&artifacts);
        let found: Vec<_> = tested.found.iter().filter(|found| found.contains(circle)).collect();
        let members = circle.split(" -> ").collect::<std::collections::BTreeSet<_>>();
        assert_eq!(found.len(), members.len(), "{circle}: {:?}", tested.found);
        for member in members {
            assert!(tested.bus.plan().endpoint(member).is_none(), "{circle}: {member} is in force");
        }
    }
    // Round only through expressions: nobody can say before a message comes.
    let tested =
        bus(&(proxy("P", r#"<endpoint key="a"/>"#) + r#"<endpoint name="a" key-expression="'a'"/>"#));
    assert_eq!(ask(&tested, "P").0, 503);
    // A chain as long as anybody likes ends in an error, not in an overflow.
    let chain: String = (0..5_000).map(|n| format!(r#"<endpoint name="e{n}" key="e{}"/>"#, n + 1)).collect();
    assert!(bus(&chain).reports("keys lead from one endpoint to the next"));
}

#[test]
fn groups_of_groups_try_everybody_once() {
    let a = testing::backend("HTTP/1.1 200 OK\r\n\r\na");
    let keys =
        |names: &[&str]| names.iter().map(|key| format!(r#"<endpoint key="{key}"/>"#)).collect::<String>();
    let tested = bus(&[
        proxy("P", &format!("<endpoint><failover>{}</failover></endpoint>", keys(&["first", "second"]))),
        format!(r#"<endpoint name="first"><loadbalance>{}</loadbalance></endpoint>"#, keys(&["d1", "d2"])),
        format!(r#"<endpoint name="second"><loadbalance>{}</loadbalance></endpoint>"#, keys(&["d3", "good"])),
        address("d1", DEAD, ""),
        address("d2", DEAD, ""),
        address("d3", DEAD, ""),
        address("good", &a, ""),
    ]
    .concat());
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    for _ in 0..5 {
        assert_eq!(ask(&tested, "P"), (200, "a".to_owned()));
    }
}

#[test]
fn attempts_end() {
    let dead: String = (0..10).map(|n| address(&format!("d{n}"), DEAD, "")).collect();
    let group = format!("<endpoint><failover>{dead}</failover></endpoint>");
    let attempts = |most: u16| {
        let tested = configuration_with(&registry(), &text(&proxy("P", &group)), |services| {
            services.settings.attempts = most;
        });
        let (lines, response) = testing::logged("busbar_flow::engine::exchange", || ask(&tested, "P"));
        assert_eq!(response.0, 502);
        lines.len()
    };
    assert_eq!((attempts(3), attempts(100)), (3, 10));
    // One leaf under three names gets a message once.
    let tested = bus(&[
        proxy(
            "P",
            r#"<endpoint><failover><endpoint key="d"/><endpoint key="x"/><endpoint key="y"/></failover></endpoint>"#,
        ),
        r#"<endpoint name="x" key="d"/><endpoint name="y" key="x"/>"#.to_owned(),
        address("d", DEAD, ""),
    ]
    .concat());
    let (lines, response) = testing::logged("busbar_flow::engine::exchange", || ask(&tested, "P"));
    assert_eq!((lines.len(), response.0), (1, 502), "{lines:?}");
}

/// Before, a shared counter was drawn in the probing loop: with one member suspended, some messages met only that one.
#[test]
fn a_member_that_is_ready_is_found_by_all_clients() {
    let a = testing::backend("HTTP/1.1 200 OK\r\n\r\na");
    let b = testing::backend("HTTP/1.1 200 OK\r\n\r\nb");
    let members =
        [address("a", &a, SUSPENDS), address("dead", DEAD, SUSPENDS), address("b", &b, SUSPENDS)].concat();
    let tested = bus(&proxy("P", &format!("<endpoint><loadbalance>{members}</loadbalance></endpoint>")));
    let seen = storm(tested, "P", 50, 20);
    let count = |body: &str| seen.get(&(200, body.to_owned())).copied().unwrap_or(0);
    assert_eq!(count("a") + count("b"), 1000, "{seen:?}");
    assert!(count("a") > 350 && count("b") > 350, "in turn: {seen:?}");
}

#[test]
fn members_get_as_many_as_they_weigh() {
    let (a, b) = (testing::backend("HTTP/1.1 200 OK\r\n\r\na"), testing::backend("HTTP/1.1 200 OK\r\n\r\nb"));
    let weighs = |name: &str, uri: &str, weight: usize| {
        address(name, uri, SUSPENDS).replace(
            "</endpoint>",
            &format!(r#"<property name="loadbalance.weight" value="{weight}"/></endpoint>"#),
        )
    };
    for (algorithm, expected) in [
        ("RoundRobin", "abababab"),
        ("WeightedRoundRobin", "aaabaaab"),
        // Nobody is busy, so each has its turns.
        ("WeightedRRLCAlgorithm", "aaabaaab"),
    ] {
        let tested = bus(&[
            proxy(
                "P",
                &format!(
                    r#"<endpoint><loadbalance algorithm="org.apache.synapse.endpoints.algorithms.{algorithm}">
                       <endpoint key="a"/><endpoint key="b"/></loadbalance></endpoint>"#
                ),
            ),
            weighs("a", &a, 3),
            weighs("b", &b, 1),
        ]
        .concat());
        assert!(tested.found.is_empty(), "{:?}", tested.found);
        let seen: String = (0..8).map(|_| ask(&tested, "P").1).collect();
        assert_eq!(seen, expected, "{algorithm}");
    }
}

#[test]
fn a_random_member_is_one_that_is_ready() {
    let a = testing::backend("HTTP/1.1 200 OK\r\n\r\na");
    let b = testing::backend("HTTP/1.1 200 OK\r\n\r\nb");
    let balanced = |algorithm: &str| {
        let members = [address("", DEAD, SUSPENDS), address("", &a, ""), address("", &b, "")].concat();
        let algorithm = format!("org.apache.synapse.endpoints.algorithms.{algorithm}");
        proxy(
            "P",
            &format!(r#"<endpoint><loadbalance algorithm="{algorithm}">{members}</loadbalance></endpoint>"#),
        )
    };
    let tested = bus(&balanced("RandomAlgorithm"));
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    let seen: String = (0..40).map(|_| ask(&tested, "P").1).collect();
    assert!(seen.len() == 40 && seen.contains('a') && seen.contains('b'), "{seen}");
    assert!(!"abab".repeat(10).eq(&seen) && !"baba".repeat(10).eq(&seen), "in turn: {seen}");
    // A class that is not there.
    let tested = bus(&balanced("Mine"));
    assert!(tested.reports("unsupported-endpoint"), "{:?}", tested.found);
    assert!(tested.found.iter().any(|found| found.contains("algorithms.Mine")), "{:?}", tested.found);
}

/// Endpoints that cannot send here cost the messages that come to them, not the artifact, and groups pass over them.
#[test]
fn endpoints_in_java_fault() {
    let class = "<endpoint><class name='a.B'/></endpoint>";
    let alive = address("", &testing::backend("HTTP/1.1 200 OK\r\n\r\nb"), "");
    for (endpoint, wanted) in [
        (class.to_owned(), "`class` endpoints are not executable here"),
        (
            "<endpoint><dynamicLoadbalance><membershipHandler class='a.B'/></dynamicLoadbalance></endpoint>"
                .to_owned(),
            "`dynamicLoadbalance` endpoints are not executable here",
        ),
        (
            format!("<endpoint><loadbalance algorithm='a.B'>{alive}</loadbalance></endpoint>"),
            "the algorithm `a.B` of this loadbalance is a Java class, which cannot run here",
        ),
    ] {
        let tested = bus(&(proxy("P", &endpoint) + &proxy("Q", &alive)));
        let found = format!("unsupported-endpoint: {wanted}: messages that come here fault");
        assert_eq!(tested.found, [found]);
        assert_ne!(ask(&tested, "P").0, 200);
        assert_eq!(ask(&tested, "Q").1, "b");
    }
    let tested = bus(&proxy("P", &format!("<endpoint><failover>{class}{alive}</failover></endpoint>")));
    assert_eq!(ask(&tested, "P").1, "b");
}

#[test]
fn a_weight_gives_no_turn_to_a_member_that_is_suspended() {
    let b = testing::backend("HTTP/1.1 200 OK\r\n\r\nb");
    let group = |failover: bool| {
        let members = [address("", DEAD, SUSPENDS), address("", &b, SUSPENDS)].concat();
        let algorithm = "org.apache.synapse.endpoints.algorithms.WeightedRoundRobin";
        format!(
            r#"<endpoint><loadbalance failover="{failover}" algorithm="{algorithm}">{members}</loadbalance></endpoint>"#
        )
    };
    for (failover, expected) in [(false, [502, 200, 200, 200]), (true, [200; 4])] {
        let tested = bus(&proxy("P", &group(failover)));
        assert_eq!([(); 4].map(|()| ask(&tested, "P").0), expected, "{failover}");
    }
}

#[test]
fn a_group_fails_with_what_its_last_member_says() {
    let key = r#"<endpoint key-expression="'nowhere'"/>"#;
    for (members, says) in [
        (key.to_owned(), "305100"),
        (format!("{key}{}", address("", DEAD, "")), "101503"),
        (format!(r#"{key}<endpoint key="Off"/>"#), "305100"),
        (r#"<endpoint key="Off"/>"#.to_owned(), "303000"),
    ] {
        let group = proxy("P", &format!("<endpoint><failover>{members}</failover></endpoint>"));
        let tested = bus(&[group, address("Off", DEAD, "")].concat());
        tested.bus.plan().endpoint("Off").unwrap().leaves()[0].switch(false);
        let (lines, _) = testing::logged("", || ask(&tested, "P"));
        assert!(lines.iter().any(|line| line.contains(says)), "{members}: {lines:?}");
    }
}

#[test]
fn what_fails_together_suspends_once_and_the_group_goes_on() {
    let a = testing::backend("HTTP/1.1 200 OK\r\n\r\na");
    // Each multiplication would lead beyond any clock.
    let grows = "<suspendOnFailure><initialDuration>50</initialDuration><progressionFactor>1e30</progressionFactor></suspendOnFailure>";
    let members = [address("dead", DEAD, grows), address("a", &a, "")].concat();
    let tested = bus(&proxy("P", &format!("<endpoint><failover>{members}</failover></endpoint>")));
    assert_eq!(storm(tested, "P", 90, 3), BTreeMap::from([((200, "a".to_owned()), 270)]));
}

#[test]
fn a_reload_keeps_states_and_positions() {
    let a = testing::backend("HTTP/1.1 200 OK\r\n\r\na");
    let b = testing::backend("HTTP/1.1 200 OK\r\n\r\nb");
    let written = |uri: &str| {
        text(
            &[
                proxy(
                    "Turns",
                    &format!(
                        "<endpoint><loadbalance>{}{}</loadbalance></endpoint>",
                        address("", &a, ""),
                        address("", &b, "")
                    ),
                ),
                proxy("Anonymous", &address("", DEAD, SUSPENDS)),
                address("E", uri, SUSPENDS),
                address("Off", &a, SUSPENDS),
                proxy("P", r#"<endpoint key="E"/>"#),
            ]
            .concat(),
        )
    };
    let tested = configuration(&registry(), &written(DEAD));
    let state = |name: &str| tested.bus.plan().endpoint(name).unwrap().leaves()[0].state();
    tested.bus.plan().endpoint("Off").unwrap().leaves()[0].switch(false);
    assert_eq!((ask(&tested, "P").0, ask(&tested, "Anonymous").0), (502, 502));
    assert_eq!(ask(&tested, "Turns").1, "a");
    for _ in 0..2 {
        tested.reload(&registry(), &written(DEAD));
    }
    assert_eq!((state("E"), state("Off")), ("suspended", "off"));
    assert_eq!((ask(&tested, "P").0, ask(&tested, "Anonymous").0), (503, 503));
    assert_eq!(ask(&tested, "Turns").1, "b");
    // A wrong address that is mended does not wait for the suspension of the wrong one.
    tested.reload(&registry(), &written(&a));
    assert_eq!((state("E"), ask(&tested, "P")), ("active", (200, "a".to_owned())));
}

/// A server of tokens: answers each request with another one, after a pause; `None`: never. Also counts the requests.
fn tokens(pause: Option<Duration>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/token", listener.local_addr().unwrap());
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let number = count.fetch_add(1, Ordering::Relaxed);
            let Some(pause) = pause else {
                silent.push(stream);
                continue;
            };
            let _ = stream.read(&mut [0; 4096]);
            std::thread::sleep(pause);
            let body = format!(r#"{{"access_token":"t{number}","expires_in":"3600"}}"#);
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = std::io::Write::write_all(&mut stream, (head + &body).as_bytes());
        }
    });
    (url, requests)
}

fn oauth(token_url: &str, backend: &str) -> String {
    format!(
        r#"<endpoint><http uri-template="{backend}" method="post"><authentication><oauth><clientCredentials>
           <clientId>i</clientId><clientSecret>s</clientSecret><tokenUrl>{token_url}</tokenUrl>
           <socketTimeout>600</socketTimeout></clientCredentials></oauth></authentication></http></endpoint>"#
    )
}

#[test]
fn one_message_fetches_the_token_for_all() {
    let backend = testing::backend("HTTP/1.1 200 OK\r\n\r\nok");
    let (url, requests) = tokens(Some(Duration::from_millis(100)));
    let seen = storm(bus(&proxy("P", &oauth(&url, &backend))), "P", 8, 5);
    assert_eq!(seen, BTreeMap::from([((200, "ok".to_owned()), 40)]));
    assert_eq!(requests.load(Ordering::Relaxed), 1);
}

/// Before, each waited for the one before it: 1, 2, … 8 timeouts.
#[test]
fn a_silent_server_of_tokens_costs_one_timeout() {
    let (url, requests) = tokens(None);
    let began = Instant::now();
    let seen = storm(bus(&proxy("P", &oauth(&url, DEAD))), "P", 8, 1);
    assert!(seen.keys().all(|(status, _)| *status == 502), "{seen:?}");
    assert!(began.elapsed() < Duration::from_millis(1500), "{:?}", began.elapsed());
    assert_eq!(requests.load(Ordering::Relaxed), 1);
}

/// The one who fetches goes away: the next one fetches, nobody hangs.
#[test]
fn a_client_that_goes_away_while_it_fetches_a_token() {
    let backend = testing::backend("HTTP/1.1 200 OK\r\n\r\nok");
    let (url, requests) = tokens(Some(Duration::from_millis(200)));
    let tested = bus(&proxy("P", &oauth(&url, &backend)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let first = ask_now(&tested.bus, "P");
        let gone = tokio::time::timeout(Duration::from_millis(50), first);
        let (gone, other) = tokio::join!(gone, async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            ask_now(&tested.bus, "P").await
        });
        assert!(gone.is_err());
        assert_eq!(other, (200, "ok".to_owned()));
    });
    assert_eq!(requests.load(Ordering::Relaxed), 2);
}

#[test]
fn a_session_stays_with_its_member() {
    let a = testing::backend("HTTP/1.1 200 OK\r\nSet-Cookie: JSESSIONID=1a; Path=/\r\n\r\na");
    let b =
        testing::backend("HTTP/1.1 200 OK\r\nSet-Cookie: theme=dark\r\nSet-Cookie: PHPSESSID=2b\r\n\r\nb");
    let balanced = format!(
        r#"<endpoint><session type="http"><sessionTimeout>60000</sessionTimeout></session><loadbalance>{}{}{}</loadbalance></endpoint>"#,
        address("a", &a, SUSPENDS),
        address("dead", DEAD, SUSPENDS),
        address("b", &b, SUSPENDS),
    );
    let tested = bus(&proxy("P", &balanced));
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    let ask = |cookie: &str| {
        let headers = [("Content-Type", "text/plain"), ("Cookie", cookie)];
        let response = tested.ask("POST", "/services/P", &headers, "x");
        (response.status, response.body)
    };
    // Without a session each in turn; the first message of one fails over.
    assert_eq!((ask("").1, ask("").1), ("a".to_owned(), "b".to_owned()));
    // A cookie that no member has set is that of no session, whatever its name says.
    for (cookie, member) in [
        ("theme=x; PHPSESSID=2b", "b"),
        ("JSESSIONID=1a", "a"),
        ("sess_theme=dark; PHPSESSID=2b", "b"),
        ("sess_theme=dark; JSESSIONID=1a", "a"),
        ("JSESSIONID=unheard; PHPSESSID=2b", "b"),
    ] {
        for _ in 0..3 {
            assert_eq!(ask(cookie), (200, member.to_owned()), "{cookie}");
        }
    }
}

#[test]
fn a_reload_that_drops_a_member_leaves_the_sessions_of_the_others() {
    let backend = |name: &str| {
        let text = format!("HTTP/1.1 200 OK\r\nSet-Cookie: JSESSIONID={name}\r\n\r\n{name}");
        testing::backend(Box::leak(text.into_boxed_str()))
    };
    let all: Vec<String> = ["a", "b", "c"].iter().map(|name| address("", &backend(name), "")).collect();
    let written = |members: &[String]| {
        let members = members.concat();
        text(&proxy(
            "P",
            &format!(r#"<endpoint><session type="http"/><loadbalance>{members}</loadbalance></endpoint>"#),
        ))
    };
    let tested = configuration(&registry(), &written(&all));
    let ask = |cookie: &str| {
        let headers = [("Content-Type", "text/plain"), ("Cookie", cookie)];
        tested.ask("POST", "/services/P", &headers, "x").body
    };
    assert_eq!([ask(""), ask(""), ask("")].concat(), "abc");
    tested.reload(&registry(), &written(&all[1..]));
    assert_eq!([ask("JSESSIONID=c"), ask("JSESSIONID=b"), ask("JSESSIONID=c")].concat(), "cbc");
}

#[test]
fn a_reload_keeps_what_is_under_way_at_members_and_the_states_of_named_recipients() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("loopback can be bound");
    let silent = format!("http://{}/", silent.local_addr().expect("it is bound"));
    let b = testing::backend("HTTP/1.1 200 OK\r\n\r\nb");
    let members = [address("", &silent, ""), address("", &b, "")].concat();
    let algorithm = "org.apache.synapse.endpoints.algorithms.WeightedRRLCAlgorithm";
    let balanced =
        format!(r#"<endpoint><loadbalance algorithm="{algorithm}">{members}</loadbalance></endpoint>"#);
    let list = format!(
        r#"<endpoint name="L"><recipientlist><endpoints value="{b}" max-cache="2"/></recipientlist></endpoint>"#
    );
    let written = text(&[proxy("P", &balanced), list, proxy("Q", r#"<endpoint key="L"/>"#)].concat());
    let tested = configuration(&registry(), &written);
    let bus = Arc::new(tested.bus);
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let soon = Duration::from_millis(500);
        let first = tokio::spawn(client(Arc::clone(&bus), "P", 1));
        assert_eq!(ask_now(&bus, "Q").await.0, 200);
        for _ in 0..2 {
            testing::reload(&bus, &registry(), &written);
            let seen = [ask_now(&bus, "P"), ask_now(&bus, "P")].map(|ask| tokio::time::timeout(soon, ask));
            for response in seen {
                assert_eq!(response.await.expect("the one that is free answers").1, "b");
            }
        }
        assert_eq!(bus.plan().endpoint("L").unwrap().leaves().len(), 1);
        first.abort();
    });
}

#[test]
fn members_get_the_path_of_the_message() {
    let echo = testing::backend("");
    let (host, port) = echo.trim_start_matches("http://").split_once(':').unwrap();
    let members = format!(
        r#"<endpoint><loadbalance><member hostName="127.0.0.1" httpPort="1"/><member hostName="{host}" httpPort="{port}"/></loadbalance></endpoint>"#
    );
    let tested = bus(&proxy("P", &members));
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    for _ in 0..3 {
        let response = tested.ask("POST", "/services/P/x?y=1", &[("Content-Type", "text/plain")], "body");
        let line = response.headers.get("X-Request").unwrap_or_default().to_owned();
        assert_eq!((response.body.as_str(), line.as_str()), ("body", "POST /services/P/x?y=1 HTTP/1.1"));
    }
}

/// A backend that refuses this token with 401, and accepts others.
fn picky(refused: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut received = Vec::new();
            let mut chunk = [0; 4096];
            while !received.ends_with(b"x") && !received.ends_with(b"0\r\n\r\n") {
                match stream.read(&mut chunk) {
                    Ok(count) if count > 0 => received.extend_from_slice(&chunk[..count]),
                    _ => break,
                }
            }
            let status = match String::from_utf8_lossy(&received).contains(refused) {
                true => "401 Unauthorized",
                false => "200 OK",
            };
            let response = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
            let _ = std::io::Write::write_all(&mut stream, response.as_bytes());
        }
    });
    url
}

#[test]
fn a_refused_token_is_fetched_anew_once_for_all() {
    let (url, requests) = tokens(Some(Duration::from_millis(20)));
    let seen = storm(bus(&proxy("P", &oauth(&url, &picky("Bearer t0")))), "P", 8, 3);
    assert_eq!(seen, BTreeMap::from([((200, "ok".to_owned()), 24)]));
    assert_eq!(requests.load(Ordering::Relaxed), 2);
    // Where the fresh one is refused too, that is the answer.
    let (url, requests) = tokens(Some(Duration::ZERO));
    assert_eq!(ask(&bus(&proxy("P", &oauth(&url, &picky("Bearer")))), "P"), (401, "ok".to_owned()));
    assert_eq!(requests.load(Ordering::Relaxed), 2);
}

/// A backend that is there for some milliseconds, and then not for some, as long as the flag is set.
fn flickers(alive: &Arc<AtomicBool>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let alive = Arc::clone(alive);
    std::thread::spawn(move || {
        let mut listener = Some(listener);
        while alive.load(Ordering::Relaxed) {
            let Some(open) = listener.take().or_else(|| TcpListener::bind(address).ok()) else { continue };
            open.set_nonblocking(true).unwrap();
            let end = Instant::now() + Duration::from_millis(15);
            while Instant::now() < end {
                match open.accept() {
                    Ok((mut stream, _)) => {
                        let _ = stream.set_nonblocking(false);
                        let _ = stream.read(&mut [0; 4096]);
                        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nf";
                        let _ = std::io::Write::write_all(&mut stream, response);
                    }
                    Err(_) => std::thread::sleep(Duration::from_millis(1)),
                }
            }
            drop(open);
            std::thread::sleep(Duration::from_millis(15));
        }
    });
    format!("http://{address}/")
}

#[test]
fn members_die_and_come_back_and_no_client_sees_it() {
    let alive = Arc::new(AtomicBool::new(true));
    let a = testing::backend("HTTP/1.1 200 OK\r\n\r\na");
    let soon = "<suspendOnFailure><initialDuration>5</initialDuration><progressionFactor>2</progressionFactor><maximumDuration>20</maximumDuration></suspendOnFailure>";
    let (f, g) = (flickers(&alive), flickers(&alive));
    let artifacts = [
        proxy("P", r#"<endpoint key="group"/>"#),
        r#"<endpoint name="group"><failover><endpoint key="turns"/><endpoint key="a"/></failover></endpoint>"#.to_owned(),
        r#"<endpoint name="turns"><loadbalance><endpoint key="f"/><endpoint key="g"/></loadbalance></endpoint>"#.to_owned(),
        address("f", &f, soon),
        address("g", &g, soon),
        address("a", &a, ""),
    ];
    let seen = storm(bus(&artifacts.concat()), "P", 50, 30);
    alive.store(false, Ordering::Relaxed);
    assert!(seen.keys().all(|(status, _)| *status == 200), "{seen:?}");
    assert_eq!(seen.values().sum::<usize>(), 1500);
}

/// Our own limit of connections is reached: that is no failure of the endpoint.
#[test]
fn what_is_short_here_is_not_blamed_on_the_endpoint() {
    let (slow, _) = tokens(Some(Duration::from_millis(50)));
    let limits = transport::ClientLimits { connections: 1, waiting: 0, ..transport::ClientLimits::default() };
    let artifacts = address("E", &slow, SUSPENDS) + &proxy("P", r#"<endpoint key="E"/>"#);
    let tested = configuration_with(&registry(), &text(&artifacts), |services| {
        *services = Services::new(transport::Client::new(limits));
    });
    let endpoint = tested.bus.plan().endpoint("E").unwrap();
    let seen = storm(tested, "P", 8, 1);
    let statuses: Vec<u16> = seen.keys().map(|(status, _)| *status).collect();
    assert!(statuses.contains(&200) && statuses.contains(&503), "{seen:?}");
    assert!(statuses.iter().all(|status| [200, 503].contains(status)), "{seen:?}");
    assert_eq!(endpoint.leaves()[0].state(), "active");
}

/// What a large message says of its endpoint takes long to find: not on the worker.
#[test]
fn what_endpoints_read_of_a_large_message_is_worked_out_elsewhere() {
    let backend = testing::backend("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}");
    let there = address("E", &backend, "");
    let computed = r#"<endpoint key-expression="json-eval($.key)"/>"#;
    let body = format!(r#"{{"key":"E","address":"{backend}","pad":"{}"}}"#, "x".repeat(300 << 10));
    for endpoint in [
        computed.to_owned(),
        r#"<endpoint key="{json-eval($.key)}"/>"#.to_owned(),
        format!("<endpoint><failover>{computed}</failover></endpoint>"),
        format!("<endpoint><loadbalance>{computed}</loadbalance></endpoint>"),
        r#"<endpoint><recipientlist><endpoints value="{json-eval($.address)}"/></recipientlist></endpoint>"#
            .to_owned(),
    ] {
        let tested = bus(&[there.clone(), proxy("P", &endpoint)].concat());
        assert!(tested.found.is_empty(), "{endpoint}: {:?}", tested.found);
        let response = tested.ask("POST", "/services/P", &[("Content-Type", "application/json")], &body);
        assert_eq!(response.status, 200, "{endpoint}: {response:?}");
        let runs = flow::compute::Compute::of(&tested.bus.services()).figures().runs;
        assert!(runs > 0, "{endpoint}");
    }
}
