//! A finder and a collector in flows, without a network.

use super::*;
use crate::registry;
use flow::testing::{self, Tested};

const XML: (&str, &str) = ("Content-Type", "application/xml");
const JSON: (&str, &str) = ("Content-Type", "application/json");

/// A proxy whose answers count: what comes from the cache repeats a number.
fn counting(cache: &str, response: &str) -> Tested {
    let text = format!(
        r#"<definitions xmlns="{}"><proxy name="P"><target><inSequence>{cache}
                 <property name="HTTP_SC" scope="axis2" action="remove"/><loopback/></inSequence>
               <outSequence><header name="X-Id" scope="transport" expression="get-property('MessageID')"/>{response}
                 <cache collector="true"/><respond/></outSequence></target></proxy></definitions>"#,
        config::SYNAPSE
    );
    let tested = testing::configuration(&registry(testing::endpoints), &text);
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    tested
}

/// Whether the second question gets the answer of the first one.
fn hits(
    tested: &Tested,
    first: (&str, &str, &[(&str, &str)], &str),
    second: (&str, &str, &[(&str, &str)], &str),
) -> bool {
    let ask = |(method, target, headers, body): (&str, &str, &[(&str, &str)], &str)| {
        tested.ask(method, &format!("/services/P{target}"), headers, body)
    };
    let (first, second) = (ask(first), ask(second));
    let id = |response: &testing::Response| response.headers.get("X-Id").map(str::to_owned);
    assert!(id(&first).is_some(), "{first:?}");
    if id(&first) == id(&second) {
        assert_eq!((first.status, &first.body), (second.status, &second.body));
        return true;
    }
    false
}

#[test]
fn the_same_question_is_answered_from_the_cache() {
    let xml: &[_] = &[XML];
    let json: &[_] = &[JSON];
    let soap = |id: &str, body: &str| {
        format!(
            "<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'><e:Header><id>{id}</id></e:Header><e:Body>{body}</e:Body></e:Envelope>"
        )
    };
    let soap_headers: &[_] = &[("Content-Type", "text/xml"), ("SOAPAction", "urn:a")];
    let (one, two) = (soap("1", "<q/>"), soap("2", "<q/>"));
    // Read on a compute thread.
    let large = |b: &str| format!("<a>{b}{}</a>", "<c/>".repeat(100_000));
    let (large, written_otherwise, other) = (large("<b/>"), large("<b ></b>"), large("<d/>"));
    let plain = "<cache collector='false'/>";
    let protocol =
        |inside: &str| format!("<cache collector='false'><protocol type='HTTP'>{inside}</protocol></cache>");
    for (cache, first, second, hit) in [
        (plain.to_owned(), ("POST", "/a", json, "{}"), ("POST", "/a", json, "{}"), true),
        (plain.to_owned(), ("POST", "/a", json, "{}"), ("POST", "/a", json, "{ }"), false),
        (plain.to_owned(), ("POST", "/a", json, "{}"), ("POST", "/b", json, "{}"), false),
        (plain.to_owned(), ("POST", "/a", json, ""), ("PUT", "/a", json, ""), false),
        // XML is compared by what it says.
        (
            plain.to_owned(),
            ("POST", "", xml, "<a x='1' y='2'><b/></a>"),
            ("POST", "", xml, "<a y=\"2\" x=\"1\"><b></b></a>"),
            true,
        ),
        (
            plain.to_owned(),
            ("POST", "", xml, "<a><b/><c/></a>"),
            ("POST", "", xml, "<a><b><c/></b></a>"),
            false,
        ),
        (plain.to_owned(), ("POST", "", xml, "<a>1</a>"), ("POST", "", xml, "<a>2</a>"), false),
        (plain.to_owned(), ("POST", "", xml, "<a"), ("POST", "", xml, "<a"), true),
        (plain.to_owned(), ("POST", "", xml, &large), ("POST", "", xml, &written_otherwise), true),
        (plain.to_owned(), ("POST", "", xml, &large), ("POST", "", xml, &other), false),
        (
            plain.to_owned(),
            ("POST", "", soap_headers, one.as_str()),
            ("POST", "", soap_headers, two.as_str()),
            true,
        ),
        (
            plain.to_owned(),
            ("GET", "?q=1", &[], ""),
            ("GET", "?q=1", &[("User-Agent", "x"), ("date", "y")], ""),
            true,
        ),
        (plain.to_owned(), ("GET", "?q=1", &[], ""), ("GET", "?q=2", &[], ""), false),
        (plain.to_owned(), ("GET", "", &[], ""), ("GET", "", &[("X-A", "1")], ""), false),
        (
            protocol("<headersToExcludeInHash>x-b, X-A</headersToExcludeInHash>"),
            ("GET", "", &[], ""),
            ("GET", "", &[("X-A", "1")], ""),
            true,
        ),
        (
            protocol("<headersToExcludeInHash>*</headersToExcludeInHash>"),
            ("GET", "", &[], ""),
            ("GET", "", &[("X-A", "1")], ""),
            true,
        ),
        (
            protocol("<headersToIncludeInHash>X-A</headersToIncludeInHash>"),
            ("GET", "", &[], ""),
            ("GET", "", &[("X-B", "1")], ""),
            true,
        ),
        (
            protocol("<headersToIncludeInHash>X-A</headersToIncludeInHash>"),
            ("GET", "", &[], ""),
            ("GET", "", &[("X-A", "1")], ""),
            false,
        ),
        (protocol("<methods>GET, post</methods>"), ("POST", "", json, "1"), ("POST", "", json, "1"), true),
        (protocol("<methods>GET</methods>"), ("POST", "", json, "1"), ("POST", "", json, "1"), false),
        (protocol("<methods>*</methods>"), ("PUT", "", json, "1"), ("PUT", "", json, "1"), true),
        (protocol("<responseCodes>2..</responseCodes>"), ("GET", "", &[], ""), ("GET", "", &[], ""), true),
        (
            protocol("<responseCodes>[345]..</responseCodes>"),
            ("GET", "", &[], ""),
            ("GET", "", &[], ""),
            false,
        ),
        (
            protocol("<hashGenerator>org.wso2.carbon.mediator.cache.digest.DOMHASHGenerator</hashGenerator>"),
            ("POST", "/a", json, "1"),
            ("POST", "/b", json, "1"),
            true,
        ),
        (
            "<cache collector='false' maxMessageSize='1'/>".to_owned(),
            ("POST", "", json, "11"),
            ("POST", "", json, "11"),
            false,
        ),
        (
            "<cache collector='false' maxMessageSize='2'/>".to_owned(),
            ("POST", "", json, "11"),
            ("POST", "", json, "11"),
            true,
        ),
        (
            "<cache collector='false' timeout='0'/>".to_owned(),
            ("GET", "", &[], ""),
            ("GET", "", &[], ""),
            false,
        ),
    ] {
        assert_eq!(hits(&counting(&cache, ""), first, second), hit, "{cache} {first:?} {second:?}");
    }
}

#[test]
fn answers_say_how_they_are_kept() {
    let cache = |inside: &str| {
        counting(
            &format!("<cache collector='false'><protocol type='HTTP'>{inside}</protocol></cache>"),
            "<property name='HTTP_SC' scope='axis2' expression='$trp:X-Status'/><header name='Cache-Control' scope='transport' expression='$trp:X-Control'/>",
        )
    };
    let on =
        "<enableCacheControl>true</enableCacheControl><headersToExcludeInHash>*</headersToExcludeInHash>";
    for (inside, status, control, hit) in [
        (on, "200", "max-age=60", true),
        (on, "200", "no-store, max-age=60", false),
        (on, "200", "No-Cache", false),
        (on, "200", "max-age=0", false),
        (on, "200", "max-age=x", true),
        (on, "200", "private, max-age=60", false),
        (on, "200", "s-maxage=0, max-age=60", false),
        (on, "200", "max-age=0, s-maxage=60", true),
        ("", "200", "private", true),
        ("", "200", "no-store", true),
        ("", "404", "", true),
        ("", "304", "", false),
        ("", "206", "", false),
    ] {
        let headers: &[_] = &[("X-Status", status), ("X-Control", control)];
        let question = ("GET", "", headers, "");
        assert_eq!(hits(&cache(inside), question, question), hit, "{inside} {status} {control}");
    }
}

#[test]
fn a_stale_answer_is_confirmed_by_the_backend() {
    // The backend answers once, then says that it has not changed.
    let cache = "<cache collector='false'><protocol type='HTTP'><enableCacheControl>true</enableCacheControl>\
            <includeAgeHeader>true</includeAgeHeader><headersToExcludeInHash>*</headersToExcludeInHash></protocol></cache>";
    let response = "<filter xpath=\"$trp:If-None-Match = 'v1'\"><then><payloadFactory media-type='json'><format>{}</format></payloadFactory>\
            <property name='HTTP_SC' value='304' scope='axis2'/></then></filter>\
            <header name='ETag' value='v1' scope='transport'/><header name='Cache-Control' value='no-cache' scope='transport'/>";
    let tested = counting(cache, response);
    let ask = || tested.ask("POST", "/services/P", &[JSON], r#"{"a":1}"#);
    let (first, second) = (ask(), ask());
    assert_eq!((first.status, first.body.as_str()), (200, r#"{"a":1}"#));
    assert_eq!((second.status, second.body.as_str()), (200, r#"{"a":1}"#));
    assert_eq!(first.headers.get("X-Id"), second.headers.get("X-Id"));
    assert_eq!(second.headers.get("ETag"), Some("v1"));
    // It is as old as the confirmation.
    assert_eq!((first.headers.get("Age"), second.headers.get("Age")), (None, Some("0")));
}

#[test]
fn equal_questions_at_once_are_asked_once() {
    // The first one holds its answer back until the others have come, each with a name of its own.
    let registry = registry(testing::endpoints);
    let collects = "<property name='RESPONSE' value='true'/><cache collector='true'/>";
    for (keeps, wanted) in [(collects, 1), ("", 3)] {
        let text = format!(
            "<cache><protocol type='HTTP'><headersToIncludeInHash>X-Q</headersToIncludeInHash></protocol></cache>\
                 <property name='X-Id' scope='transport' expression=\"get-property('MessageID')\"/>\
                 <foreach collection='${{payload}}' update-original='false' result-content-type='JSON' target-variable='v'><sequence/></foreach>\
                 {keeps}<respond/>"
        );
        let tested = testing::main(&registry, &text);
        assert!(tested.found.is_empty(), "{:?}", tested.found);
        let body = format!("[{}0]", "0,".repeat(200));
        let ids: std::collections::HashSet<_> = std::thread::scope(|scope| {
            let asks: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        tested.ask("POST", "/", &[JSON], &body).headers.get("X-Id").map(str::to_owned)
                    })
                })
                .collect();
            asks.into_iter().map(|ask| ask.join().expect("it does not panic")).collect()
        });
        assert_eq!(ids.len(), wanted, "{keeps}");
    }
}

#[test]
fn who_asks_the_same_waits_for_the_first_and_no_longer() {
    let core = {
        let tested = testing::main(&registry(testing::endpoints), "<cache/>");
        assert!(tested.found.is_empty(), "{:?}", tested.found);
        Arc::new(Core {
            protocol: Protocol::default(),
            largest: None,
            answers: answers(Duration::from_secs(60), None),
            asking: Mutex::default(),
        })
    };
    let first = core.first((1, 1)).expect("nobody asks yet");
    assert!(core.first((2, 2)).is_ok());
    let waits = core.first((1, 1)).err().expect("it is being asked");
    assert!(waits.has_changed().is_ok());
    drop(first);
    assert!(waits.has_changed().is_err() && core.first((1, 1)).is_ok());
}

/// A message that may ask or wait, as a finder that found nothing.
fn asks(finder: &Finder, tested: &Tested) -> (Context, Result<Flow, Asking>) {
    let mut context = tested.context(&[XML], "<a/>");
    let question = finder.core.protocol.questions.ask("POST", &mut context).expect("it has a body");
    let looked = finder.look(question, &mut context);
    (context, looked)
}

/// Whoever has no body to compare would get the answer to that of another.
#[test]
fn a_body_that_cannot_be_read_is_no_question() {
    let tested = testing::main(&registry(testing::endpoints), "<cache/>");
    let questions = Protocol::default().questions;
    let reading = message::Reading { kind: message::Kind::Xml, ..message::Reading::XML };
    for (body, asks) in [("<a/>", true), ("<a", false)] {
        let mut context = tested.context(&[XML], "<b/>");
        context.payload.set_made(body, reading);
        assert_eq!(questions.ask("POST", &mut context).is_some(), asks, "{body}");
    }
}

#[test]
fn where_the_one_who_asks_goes_away_the_next_one_asks() {
    let tested = testing::main(&registry(testing::endpoints), "<cache/>");
    let core = Core {
        protocol: Protocol::default(),
        largest: None,
        answers: answers(Duration::from_secs(60), None),
        asking: Mutex::default(),
    };
    let finder = Finder { core: Arc::new(core), on_hit: None };
    testing::block_on(async {
        let (first, looked) = asks(&finder, &tested);
        assert!(matches!(looked, Ok(Flow::Next)));
        let mut others: Vec<_> = (0..3).map(|_| asks(&finder, &tested)).collect();
        let question = finder.core.protocol.questions.ask("POST", &mut others[0].0).expect("it has a body");
        let mut waiting: Vec<_> = others
            .iter_mut()
            .map(|(context, looked)| {
                let other = std::mem::replace(looked, Ok(Flow::Next)).expect_err("it waits");
                Box::pin(finder.wait(question, other, context))
            })
            .collect();
        let mut polled = move || -> usize {
            let waker = &mut std::task::Context::from_waker(std::task::Waker::noop());
            waiting.retain_mut(|one| one.as_mut().poll(waker).is_pending());
            waiting.len()
        };
        assert_eq!(polled(), 3, "one of them is asking");
        drop(first);
        assert_eq!(polled(), 2, "the next one asks, the others wait for it");
        assert_eq!(polled(), 2);
    });
    let asking = |others: &[(Context, Result<Flow, Asking>)]| {
        others.iter().filter(|(context, _)| context.attached::<Collection>().is_some()).count()
    };
    let (first, _) = asks(&finder, &tested);
    let mut others: Vec<_> = (0..3).map(|_| asks(&finder, &tested)).collect();
    assert_eq!(asking(&others), 0);
    // What will not be kept is asked for by each.
    first.attached::<Collection>().expect("it asks").is_not_kept();
    testing::block_on(async {
        let question = finder.core.protocol.questions.ask("POST", &mut others[0].0).expect("it has a body");
        for (context, looked) in &mut others {
            let other = std::mem::replace(looked, Ok(Flow::Next)).expect_err("it waits");
            assert!(matches!(finder.wait(question, other, context).await, Flow::Next));
        }
    });
    assert_eq!(asking(&others), 3);
}

#[test]
fn the_answer_of_a_call_can_be_collected_where_it_stands() {
    let backend = testing::backend("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"n\":1}");
    let text = format!(
        "<cache/><call><endpoint><address uri='{backend}'/></endpoint></call>\
             <property name='X-Id' scope='transport' expression=\"get-property('MessageID')\"/>\
             <cache collector='true'/><respond/>"
    );
    let tested = testing::main(&registry(testing::endpoints), &text);
    let ask = || tested.ask("POST", "/", &[JSON], "{}");
    let (first, second) = (ask(), ask());
    assert_eq!((first.status, first.body.as_str(), second.body.as_str()), (200, "{\"n\":1}", "{\"n\":1}"));
    assert!(first.headers.get("X-Id").is_some());
    assert_eq!(first.headers.get("X-Id"), second.headers.get("X-Id"));
}

#[test]
fn a_hit_runs_its_sequence_and_may_say_its_age() {
    for (hit, wanted) in [
        (
            "<onCacheHit><property name='X-Hit' value='1' scope='transport'/><respond/></onCacheHit>",
            Some("1"),
        ),
        ("<onCacheHit sequence='hit'/>", Some("2")),
        ("<onCacheHit/>", None),
    ] {
        let text = format!(
            r#"<definitions xmlns="{}"><sequence name="hit"><property name="X-Hit" value="2" scope="transport"/><respond/></sequence>
                   <proxy name="P"><target><inSequence><cache collector="false">{hit}<protocol type="HTTP"><includeAgeHeader>true</includeAgeHeader></protocol></cache><loopback/></inSequence>
                   <outSequence><property name="Set-Cookie" value="s=1" scope="transport"/><cache collector="true"/><respond/></outSequence></target></proxy></definitions>"#,
            config::SYNAPSE
        );
        let tested = testing::configuration(&registry(testing::endpoints), &text);
        assert!(tested.found.is_empty(), "{:?}", tested.found);
        let ask = || tested.ask("POST", "/services/P", &[JSON], " {\"a\" : 1}");
        let (first, second) = (ask(), ask());
        assert_eq!((first.headers.get("X-Hit"), second.headers.get("X-Hit")), (None, wanted));
        assert!(first.headers.get("Age").is_none() && second.headers.get("Age").is_some());
        // Byte by byte, with its type; a cookie is one client's own.
        assert_eq!(second.body, " {\"a\" : 1}");
        assert_eq!(second.headers.get("Content-Type"), Some("application/json"));
        assert_eq!((first.headers.get("Set-Cookie"), second.headers.get("Set-Cookie")), (Some("s=1"), None));
    }
}

#[test]
fn a_cache_has_bounds_and_is_its_own() {
    let cache = answers(Duration::from_secs(60), Some(3));
    let tested = testing::main(&registry(testing::endpoints), "<respond/>");
    let keep = |key: u64, size: usize| {
        let answer = KeptResponse::of(&mut tested.context(&[JSON], &"x".repeat(size))).unwrap();
        cache.insert(
            (key, 0),
            Arc::new(CachedResponse { answer, since: Instant::now(), age: 0, control: Control::default() }),
        );
        cache.run_pending_tasks();
        cache.entry_count()
    };
    assert_eq!((1..=5).map(|key| keep(key, 10)).max(), Some(3));
    keep(9, (HELD / 2) as usize);
    assert!(keep(10, (HELD / 2) as usize) <= 1);
    let text = "<filter xpath=\"$trp:X-F = '1'\"><then><cache/></then><else><cache/></else></filter>\
            <property name='X-Id' scope='transport' expression=\"get-property('MessageID')\"/>\
            <property name='RESPONSE' value='true'/><cache collector='true'/><respond/>";
    let tested = testing::main(&registry(testing::endpoints), text);
    let ask =
        |which: &str| tested.ask("GET", "/", &[("X-F", which)], "").headers.get("X-Id").map(str::to_owned);
    let (one, other) = (ask("1"), ask("2"));
    assert!(one.is_some() && one != other && ask("1") == one && ask("2") == other);
}

#[test]
fn the_wrong_path_is_a_fault_and_mistakes_are_found_when_the_configuration_loads() {
    for (text, says) in [
        ("<property name='RESPONSE' value='true'/><cache collector='false'/>", "request path"),
        ("<cache collector='true'/>", "response path"),
        ("<cache><onCacheHit sequence='{$ctx:none}'/></cache>", ""),
    ] {
        let tested = testing::main(&registry(testing::endpoints), text);
        let fault = tested.run(&[JSON], "{}").fault().unwrap_or_default();
        assert!(fault.contains(says), "{text}: {fault}");
    }
    for (text, says) in [
        ("<cache collector='maybe'/>", "`collector` cannot be `maybe`"),
        ("<cache timeout='-1'/>", "cannot be negative"),
        ("<cache timeout='x'/>", "`timeout` cannot be `x`"),
        ("<cache><implementation maxSize='0'/></cache>", "keeps nothing"),
        ("<cache><protocol type='JMS'/></cache>", "no cache for `JMS`"),
        ("<cache><protocol type='HTTP'><methods>GET,FETCH</methods></protocol></cache>", "no method `FETCH`"),
        (
            "<cache><protocol type='HTTP'><responseCodes>(</responseCodes></protocol></cache>",
            "not a valid regular",
        ),
        (
            "<cache><protocol type='HTTP'><hashGenerator>a.B</hashGenerator></protocol></cache>",
            "`a.B` is a Java class",
        ),
        ("<cache><protocol type='HTTP'><method>GET</method></protocol></cache>", "`method` cannot stand"),
        ("<cache><onCacheHit sequence='none'/></cache>", "no sequence `none`"),
        ("<cache><onCache/></cache>", "`onCache` has no effect"),
    ] {
        let tested = testing::main(&registry(testing::endpoints), text);
        assert!(tested.reports(says), "{text}: {:?}", tested.found);
    }
}
