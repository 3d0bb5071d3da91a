//! What takes longer the larger a message is leaves the worker, and what stays there gives others their turn.

use flow::compute::Compute;
use flow::testing::{self, Tested};
use std::cell::Cell;
use std::rc::Rc;

const XML: (&str, &str) = ("Content-Type", "application/xml");
const SOAP: (&str, &str) = ("Content-Type", "application/soap+xml");
const JSON: (&str, &str) = ("Content-Type", "application/json");

fn main(mediators: &str) -> Tested {
    let tested = testing::main(&busbar_mediators::registry(testing::endpoints), mediators);
    assert!(tested.found.is_empty(), "{mediators}: {:?}", tested.found);
    tested
}

/// How often a compute thread worked for it.
fn moved(tested: &Tested) -> u64 {
    Compute::of(&tested.bus.services()).figures().runs
}

#[test]
fn what_is_long_or_large_is_done_elsewhere() {
    // Each element is compared with each: long for a small message.
    let long = "count(//a[count(../a[contains(., 'x')]) > 1])";
    let small = format!("<r>{}</r>", "<a>y</a>".repeat(400));
    let large_xml = format!("<r>{}</r>", "<a><b>some text</b></a>".repeat(20_000));
    let large_json = format!("[{}0]", "{\"a\":{\"b\":\"some text\"}},".repeat(20_000));
    let policy = r#"<policy><wsp:Policy xmlns:wsp="http://schemas.xmlsoap.org/ws/2004/09/policy" xmlns:t="http://www.wso2.org/products/wso2commons/throttle"><t:MediatorThrottleAssertion><wsp:Policy><t:ID t:type="IP">other</t:ID><wsp:Policy><t:Deny/></wsp:Policy></wsp:Policy></t:MediatorThrottleAssertion></wsp:Policy></policy>"#;
    let open = policy.replace("Deny", "Allow");
    let backend = testing::backend("");
    let as_type = |kind: &str| format!("<property name='messageType' scope='axis2' value='{kind}'/>");
    let coding = "<property name='Content-Encoding' scope='transport' value='gzip'/>";
    let addressed = format!(
        "<e:Envelope xmlns:e='http://www.w3.org/2003/05/soap-envelope'><e:Header>\
         <w:Action xmlns:w='http://www.w3.org/2005/08/addressing'>urn:a</w:Action></e:Header><e:Body>{large_xml}</e:Body></e:Envelope>"
    );
    let sequence = "<!--top--><sequence name='s0'><respond/></sequence>";
    for (mediators, header, body, times) in [
        (
            format!("<throttle id='t' onAccept=\"{{concat('s', {long})}}\">{open}</throttle>{sequence}"),
            XML,
            &small,
            1,
        ),
        (
            format!("<throttle id='t' onReject=\"{{concat('s', {long})}}\">{policy}</throttle>{sequence}"),
            XML,
            &small,
            1,
        ),
        (
            format!(
                "<scatter-gather parallel-execution='false' target='body' result-content-type='JSON'>\
                 <aggregation expression='string(1)' min-messages=\"{{string({long} + 1)}}\"/><sequence/></scatter-gather><respond/>"
            ),
            XML,
            &small,
            1,
        ),
        // Writing it in another form: for the client, and for a backend.
        (as_type("application/json") + "<respond/>", XML, &large_xml, 1),
        (as_type("application/xml") + "<respond/>", JSON, &large_json, 1),
        (
            format!(
                "{}<call><endpoint><address uri='{backend}'/></endpoint></call><respond/>",
                as_type("application/xml")
            ),
            JSON,
            &large_json,
            1,
        ),
        // Coding it, and a tag of it.
        (
            format!("<foreach expression='json-eval($)'><sequence/></foreach>{coding}<respond/>"),
            JSON,
            &large_json,
            3,
        ),
        (
            format!(
                "<foreach expression='json-eval($)'><sequence/></foreach>{coding}<call><endpoint><address uri='{backend}'/></endpoint></call><respond/>"
            ),
            JSON,
            &large_json,
            3,
        ),
        (
            "<property name='HTTP_ETAG' scope='axis2' value='true'/><respond/>".to_owned(),
            JSON,
            &large_json,
            1,
        ),
        // The headers of a SOAP message.
        ("<respond/>".to_owned(), SOAP, &addressed, 1),
        // Selecting the items, taking them out, putting them together, writing the whole.
        ("<foreach expression='//a'><sequence/></foreach><respond/>".to_owned(), XML, &large_xml, 4),
        (
            "<foreach expression='json-eval($)'><sequence/></foreach><respond/>".to_owned(),
            JSON,
            &large_json,
            2,
        ),
        (
            "<foreach collection='//a' parallel-execution='false'><sequence/></foreach><respond/>".to_owned(),
            XML,
            &large_xml,
            3,
        ),
        (
            "<foreach collection='${payload}' parallel-execution='false'><sequence/></foreach><respond/>"
                .to_owned(),
            JSON,
            &large_json,
            2,
        ),
    ] {
        let tested = main(&mediators);
        let response = tested.ask("POST", "/", &[header], body);
        assert_eq!(response.status, 200, "{mediators}: {:.200}", response.body);
        assert!(moved(&tested) >= times, "{mediators}: {} of {times}", moved(&tested));
    }
    // What is small and short stays.
    let tested = main(
        &(as_type("application/json") + "<foreach expression='json-eval($)'><sequence/></foreach><respond/>"),
    );
    assert_eq!(tested.ask("POST", "/", &[JSON], "[1,2]").body, "[1,2]");
    assert_eq!(moved(&tested), 0);
}

#[test]
fn a_flow_of_many_short_steps_gives_others_their_turn() {
    let items = format!("[{}0]", "0,".repeat(9_999));
    let steps = "<property name='p' value='1'/>".repeat(20);
    for (mediators, wanted) in [
        ("<foreach expression='json-eval($)'><sequence/></foreach><respond/>".to_owned(), 50),
        (
            format!("<foreach expression='json-eval($)'><sequence>{steps}</sequence></foreach><respond/>"),
            1000,
        ),
        (steps.repeat(50) + "<respond/>", 5),
    ] {
        let tested = main(&mediators);
        let turns = Rc::new(Cell::new(0));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let local = tokio::task::LocalSet::new();
        let counted = Rc::clone(&turns);
        local.spawn_local(async move {
            loop {
                counted.set(counted.get() + 1);
                tokio::task::yield_now().await;
            }
        });
        let (status, ..) = local.block_on(&runtime, tested.answer("POST", "/", &[JSON], items.as_bytes()));
        assert_eq!(status, 200);
        assert!(turns.get() >= wanted, "{} turns of {wanted}: {mediators:.100}", turns.get());
    }
}
