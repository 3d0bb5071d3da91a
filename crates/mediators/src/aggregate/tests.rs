//! Splits, clones and related messages that an aggregate joins, in flows without a network.

use super::*;
use flow::testing;
use xml::NodeId;

const XML: &[(&str, &str)] = &[("Content-Type", "application/xml")];
const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];

fn ask(text: &str, headers: &[(&str, &str)], body: &str) -> testing::Response {
    let tested = testing::main(&crate::registry(testing::endpoints), text);
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    tested.ask("POST", "/", headers, body)
}

fn split(aggregate: &str) -> String {
    format!(
        "<iterate expression='//i' sequential='true'><target><sequence>{aggregate}</sequence></target></iterate>"
    )
}

#[test]
fn enough_parts_complete_it() {
    let count = "<payloadFactory media-type='text'><format>$1</format><args>\
        <arg expression='count($body/*)'/></args></payloadFactory><respond/>";
    for (condition, body, answer) in [
        ("", "<a><i/><i/><i/></a>", "3"),
        ("<completeCondition><messageCount min='-1' max='-1'/></completeCondition>", "<a><i/><i/></a>", "2"),
        (
            "<completeCondition><messageCount min='2' max='-1'/></completeCondition>",
            "<a><i/><i/><i/></a>",
            "2",
        ),
        ("<completeCondition><messageCount max='1'/></completeCondition>", "<a><i/><i/><i/></a>", "1"),
        (
            "<completeCondition timeout='1'><messageCount min='9' max='9'/></completeCondition>",
            "<a><i/></a>",
            "1",
        ),
    ] {
        let text = split(&format!(
            "<aggregate>{condition}<onComplete expression='//i'>{count}</onComplete></aggregate>"
        ));
        assert_eq!(ask(&text, XML, body).body, answer, "{condition}");
    }
}

#[test]
fn a_minimum_above_the_maximum_is_told() {
    for (counts, says) in [
        ("min='5' max='2'", true),
        ("min='2' max='2'", false),
        ("min='5' max='-1'", false),
        ("min='5' max='{1}'", false),
    ] {
        let text = split(&format!(
            "<aggregate><completeCondition><messageCount {counts}/></completeCondition><onComplete expression='//i'><respond/></onComplete></aggregate>"
        ));
        let tested = testing::main(&crate::registry(testing::endpoints), &text);
        assert_eq!(tested.reports("`min` is more than `max`"), says, "{counts}: {:?}", tested.found);
    }
}

#[test]
fn an_aggregate_without_id_collects_the_copies_of_any_split() {
    let text = "<iterate id='x' expression='//i' sequential='true'><target><sequence><aggregate><completeCondition>\
        <messageCount min='2'/></completeCondition><onComplete expression='//i'><payloadFactory media-type='text'><format>$1</format><args>\
        <arg expression='count($body/*)'/></args></payloadFactory><respond/></onComplete></aggregate></sequence></target></iterate>";
    assert_eq!(ask(text, XML, "<a><i/><i/></a>").body, "2");
}

#[test]
fn a_timer_completes_what_stays_incomplete_and_a_client_never_waits_for_nothing() {
    // One of two parts is dropped.
    let text = |condition: &str| {
        format!(
            "<iterate expression='//i'><target><sequence><filter xpath=\"//i='no'\"><then><drop/></then>\
        <else><aggregate>{condition}<onComplete expression='//i'><respond/></onComplete></aggregate></else></filter>\
        </sequence></target></iterate>"
        )
    };
    let body = "<a><i>yes</i><i>no</i></a>";
    let none = "<completeCondition timeout='-1'><messageCount min='-1' max='-1'/></completeCondition>";
    for (condition, says) in [("<completeCondition timeout='1'/>", false), ("", true), (none, true)] {
        let (lines, answer) =
            testing::logged("busbar_mediators::aggregate", || ask(&text(condition), XML, body));
        assert_eq!(answer.body, "<i>yes</i>");
        let told = lines.iter().any(|line| line.contains("goes on with 1 of 2 parts"));
        assert_eq!(told, says, "{condition}: {lines:?}");
    }
}

/// Without the part that failed, the others would pass for all: only who sets a time expects that.
#[test]
fn an_aggregate_that_lacks_a_failed_part_is_no_success() {
    let count = "<payloadFactory media-type='text'><format>$1</format><args><arg expression='count($body/*)'/></args></payloadFactory><respond/>";
    let text = |how: &str, fails: &str, condition: &str, beside: &str| {
        format!(
            "<iterate expression='//i' {how}><target><sequence><filter xpath=\"//i='no'\"><then>{fails}</then><else>\
             <aggregate>{condition}<onComplete expression='//i'>{count}</onComplete></aggregate></else></filter></sequence></target></iterate>\
             <!--top-->{beside}<sequence name='inner' onError='quiet'><sequence key='none'/></sequence><sequence name='quiet'><log/></sequence>"
        )
    };
    let said = "<sequence name='fault'><payloadFactory media-type='text'><format>$1: $2</format><args><arg expression='$ctx:ERROR_CODE'/>\
        <arg expression='$ctx:ERROR_MESSAGE'/></args></payloadFactory><respond/></sequence>";
    let quiet = "<sequence name='fault'><log/></sequence>";
    let (fails, handled) = ("<sequence key='none'/>", "<sequence key='inner'/>");
    let lacks = "0: The aggregate cannot be completed: 2 parts have arrived, and another one has failed";
    let registry = crate::registry(testing::endpoints);
    for how in ["sequential='true'", ""] {
        for (fails, condition, beside, status, says) in [
            (fails, "", "", 500, "could not be processed"),
            (fails, "", quiet, 500, "could not be processed"),
            (handled, "", "", 500, "could not be processed"),
            (handled, "", said, 200, lacks),
            (handled, "<completeCondition><messageCount min='3'/></completeCondition>", said, 200, lacks),
            // As configured: with those that have come in time, or with enough.
            (handled, "<completeCondition timeout='1'/>", said, 200, "2"),
            (handled, "<completeCondition><messageCount min='2'/></completeCondition>", said, 200, "2"),
            // Nothing failed.
            ("<drop/>", "", said, 200, "2"),
        ] {
            let tested = testing::main(&registry, &text(how, fails, condition, beside));
            let response = tested.ask("POST", "/", XML, "<a><i>1</i><i>no</i><i>2</i></a>");
            assert!(
                response.status == status && response.body.contains(says),
                "{how} {fails} {condition} {beside}: {response:?}"
            );
        }
    }
}

/// A branch that fails beside the parts is none of them.
#[test]
fn what_fails_beside_a_split_is_not_missing_in_its_aggregate() {
    let text = "<clone id='beside' continueParent='true'><target><sequence><sequence key='none'/></sequence></target></clone>\
         <iterate id='x' expression='//i'><target><sequence><filter xpath=\"//i='no'\"><then><drop/></then><else><aggregate id='x'><onComplete expression='//i'>\
         <respond/></onComplete></aggregate></else></filter></sequence></target></iterate>";
    let tested = testing::main(&crate::registry(testing::endpoints), text);
    let response = tested.ask("POST", "/", XML, "<a><i>1</i><i>no</i></a>");
    assert_eq!((response.status, response.body.as_str()), (200, "<i>1</i>"));
}

/// A part that fails inside of an inner split is missing in the outer one too. One that is dropped there is not: the outer aggregate waits
/// for what the inner one comes to without it.
#[test]
fn what_happens_in_an_inner_split_reaches_the_outer_aggregate() {
    let inner = |fails: &str| {
        format!(
            "<iterate id='out' expression='//o'><target><sequence><iterate id='in' expression='//i'><target><sequence>\
             <filter xpath=\"//i='no'\"><then>{fails}</then></filter><aggregate id='in'><onComplete expression='//i'>\
             <payloadFactory><format><o xmlns=''>$1</o></format><args><arg expression='count($body/*)'/></args></payloadFactory>\
             <aggregate id='out'><onComplete expression='//o'><payloadFactory media-type='text'><format>all $1</format><args>\
             <arg expression='sum(//o)'/></args></payloadFactory><respond/></onComplete></aggregate></onComplete></aggregate>\
             </sequence></target></iterate></sequence></target></iterate>"
        )
    };
    let body = "<a><o><i>1</i><i>2</i></o><o><i>3</i><i>no</i></o></a>";
    for (fails, status, says) in [
        ("<log/>", 200, "all 4"),
        ("<drop/>", 200, "all 3"),
        ("<sequence key='none'/>", 500, "could not be processed"),
    ] {
        let tested = testing::main(&crate::registry(testing::endpoints), &inner(fails));
        let response = tested.ask("POST", "/", XML, body);
        assert!(response.status == status && response.body.contains(says), "{fails}: {response:?}");
    }
}

/// The part that splits into itself without an end is given up, and its message with it: a timer does not answer with the others.
#[test]
fn no_timer_completes_what_is_given_up() {
    let text = "<iterate expression='//i'><target><sequence><filter xpath=\"//i='no'\"><then><sequence key='deeper'/></then><else>\
         <aggregate><completeCondition timeout='1'/><onComplete expression='//i'><respond/></onComplete></aggregate></else></filter></sequence></target></iterate>\
         <!--top--><sequence name='deeper'><clone><target sequence='deeper'/></clone></sequence>";
    let tested = testing::main(&crate::registry(testing::endpoints), text);
    let response = tested.ask("POST", "/", XML, "<a><i>1</i><i>no</i></a>");
    assert_eq!(response.status, 500, "{response:?}");
}

/// The first part has come before a reload that moves all lists; it goes on in the configuration of the one that completes it.
#[test]
fn an_open_aggregate_goes_on_behind_a_reload() {
    let registry = crate::registry(testing::endpoints);
    let aggregate = |made: &str| {
        format!(
            "<aggregate><correlateOn expression='true()'/><completeCondition><messageCount min='2' max='2'/></completeCondition>\
             <onComplete expression='//i'><property name='made' value='{made}'/><header name='X-Made' expression='$ctx:made' scope='transport'/>\
             <header name='X-Parts' expression='count($body/*)' scope='transport'/><respond/></onComplete></aggregate>"
        )
    };
    let tested = testing::main(&registry, &aggregate("before"));
    assert_eq!(tested.ask("POST", "/", XML, "<i>1</i>").status, 202);
    let many = "<filter xpath='true()'><then><log/></then><else><drop/></else></filter>".repeat(5);
    let main = format!("{many}<filter xpath='true()'><then>{}</then></filter>", aggregate("behind"));
    let others: String = (0..5).map(|n| format!("<sequence name='a{n}'>{many}</sequence>")).collect();
    let text = format!(
        "<definitions xmlns='{}'>{others}<sequence name='main'>{main}</sequence></definitions>",
        config::SYNAPSE
    );
    tested.reload(&registry, &text);
    let response = tested.ask("POST", "/", XML, "<i>2</i>");
    let header = |name| response.headers.get(name);
    assert_eq!(
        (response.status, header("X-Made"), header("X-Parts")),
        (200, Some("behind"), Some("2")),
        "{response:?}"
    );
}

/// The id of a message is the client's to choose: another client, or the same one again, may send it too.
#[test]
fn messages_with_the_same_id_do_not_meet() {
    const SOAP: &[(&str, &str)] = &[("Content-Type", "text/xml"), ("SOAPAction", "urn:a")];
    let body = |value: &str| {
        format!(
            "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/' xmlns:w='http://www.w3.org/2005/08/addressing'>\
             <s:Header><w:MessageID>urn:same</w:MessageID></s:Header><s:Body><a><i>{value}1</i><i>{value}2</i></a></s:Body></s:Envelope>"
        )
    };
    let aggregate = "<aggregate><onComplete expression='$body/*'><respond/></onComplete></aggregate>";
    let tested = testing::main(&crate::registry(testing::endpoints), &split(aggregate));
    for value in ["alice", "bob", "alice"] {
        let response = tested.ask("POST", "/", SOAP, &body(value));
        assert_eq!(response.status, 200, "{value}: {response:?}");
        let parts = [1, 2].map(|n| response.body.contains(&format!(">{value}{n}</i>")));
        assert_eq!(parts, [true; 2], "{response:?}");
    }
}

/// A sequence with a split and its aggregate may run more than once for one message.
#[test]
fn each_run_of_a_split_has_its_aggregate() {
    let once = "<iterate expression='//i' sequential='true' continueParent='true'><target><sequence>\
         <aggregate><onComplete expression='//i'><log level='custom'><property name='parts' expression='count($body/*)'/></log>\
         </onComplete></aggregate></sequence></target></iterate>";
    let flow = testing::main(&crate::registry(testing::endpoints), &format!("{once}{once}<respond/>"));
    let template = format!(
        "<definitions xmlns='{}'><sequence name='twice'>{once}</sequence>\
         <sequence name='main'><sequence key='twice'/><sequence key='twice'/><respond/></sequence></definitions>",
        config::SYNAPSE
    );
    let named = testing::configuration(&crate::registry(testing::endpoints), &template);
    for tested in [flow, named] {
        let (lines, _) =
            testing::logged("busbar::log", || tested.ask("POST", "/", XML, "<a><i>1</i><i>2</i></a>"));
        let completed = lines.iter().filter(|line| line.contains("parts = 2")).count();
        assert_eq!(completed, 2, "{lines:?}");
    }
}

/// Two aggregates of one artifact that change places in a reload: each goes on with its parts.
#[test]
fn a_reload_tells_aggregates_by_what_they_collect() {
    let registry = crate::registry(testing::endpoints);
    let aggregate = |id: &str, path: &str| {
        format!(
            "<filter source='$axis2:REST_URL_POSTFIX' regex='{path}'><then><aggregate id='{id}'><correlateOn expression='true()'/>\
             <completeCondition><messageCount min='2' max='2'/></completeCondition><onComplete expression='//i'>\
             <header name='X-By' value='{id}' scope='transport'/><header name='X-Parts' expression='count($body/*)' scope='transport'/><respond/>\
             </onComplete></aggregate></then></filter>"
        )
    };
    let (orders, claims) = (aggregate("orders", "/orders"), aggregate("claims", "/claims"));
    let tested = testing::main(&registry, &format!("{orders}{claims}"));
    assert_eq!(tested.ask("POST", "/orders", XML, "<i>1</i>").status, 202);
    let text = format!(
        "<definitions xmlns='{}'><sequence name='main'>{claims}{orders}</sequence></definitions>",
        config::SYNAPSE
    );
    tested.reload(&registry, &text);
    assert_eq!(tested.ask("POST", "/claims", XML, "<i>1</i>").status, 202);
    let response = tested.ask("POST", "/orders", XML, "<i>2</i>");
    let header = |name| response.headers.get(name);
    assert_eq!(
        (response.status, header("X-By"), header("X-Parts")),
        (200, Some("orders"), Some("2")),
        "{response:?}"
    );
}

/// A message that has nothing to collect is its own client's fault, and costs those of others nothing.
#[test]
fn a_bad_message_does_not_spoil_the_parts_of_others() {
    let text = "<aggregate><correlateOn expression='true()'/><completeCondition><messageCount min='2' max='2'/></completeCondition>\
         <onComplete expression='//i'><header name='X-Parts' expression='count($body/*)' scope='transport'/><respond/></onComplete></aggregate>";
    let tested = testing::main(&crate::registry(testing::endpoints), text);
    assert_eq!(tested.ask("POST", "/", XML, "<bad/>").status, 500, "as the first one");
    assert_eq!(tested.ask("POST", "/", XML, "<i>1</i>").status, 202);
    assert_eq!(tested.ask("POST", "/", XML, "<bad/>").status, 500, "as the second one");
    let response = tested.ask("POST", "/", XML, "<i>2</i>");
    assert_eq!((response.status, response.headers.get("X-Parts")), (200, Some("2")), "{response:?}");
}

/// Putting a large aggregate together is not done on a worker, whether its last part, its timer or nothing else completes it.
#[test]
fn large_aggregates_are_put_together_elsewhere() {
    let items: String = (0..2_000).map(|n| format!("<i>{n}</i>")).collect();
    let condition = |text: &str| {
        format!(
            "<aggregate><completeCondition timeout='1'>{text}</completeCondition><onComplete expression='//i'><respond/></onComplete></aggregate>"
        )
    };
    for (aggregate, parts) in
        [(condition(""), 2_000), (condition("<messageCount min='5000' max='5000'/>"), 2_000)]
    {
        let tested = testing::main(&crate::registry(testing::endpoints), &split(&aggregate));
        let response = tested.ask("POST", "/", XML, &format!("<a>{items}</a>"));
        assert_eq!(response.status, 200, "{parts}: {response:?}");
        let ran = flow::compute::Compute::of(&tested.bus.services()).figures().runs;
        assert!(ran > 0, "{aggregate}");
    }
}

/// A part that waits is not in a step any more.
#[test]
fn a_trace_is_not_in_an_aggregate_for_ever() {
    let text = split("<aggregate><onComplete expression='//i'><respond/></onComplete></aggregate>");
    let tested = testing::main(&crate::registry(testing::endpoints), &text);
    tested.bus.services().observers.trace("main", true);
    assert_eq!(tested.ask("POST", "/", XML, "<a><i>1</i><i>2</i><i>3</i></a>").status, 200);
    let trace = flow::observe::Recordings::of(&tested.bus.services()).all()[0].json();
    assert_eq!(trace["running"], serde_json::json!([]), "{trace}");
    let ends = |event: &&serde_json::Value| event["step"] == "aggregate";
    assert_eq!(trace["events"].as_array().map(|all| all.iter().filter(ends).count()), Some(3), "{trace}");
}

#[test]
fn the_original_may_be_a_part_too() {
    // It goes on behind the split and comes to the same aggregate: first, last, or alone.
    let count = "<payloadFactory media-type='text'><format>$1</format><args>\
        <arg expression='count($body/*)'/></args></payloadFactory><respond/>";
    let aggregate = |condition: &str| {
        format!(
            "<sequence name='meet'><aggregate><completeCondition>{condition}</completeCondition>\
             <onComplete expression='$body/*'>{count}</onComplete></aggregate></sequence>"
        )
    };
    let correlate = "<property name='aggregateCorelation' expression=\"get-property('MessageID')\"/>";
    let drops = "<target><sequence><filter xpath=\"//i = 'no'\"><then><drop/></then><else><sequence key='meet'/></else></filter></sequence></target>";
    for (split, count, body, answer) in [
        ("sequential='true'", 2, "<a><i/><i>no</i></a>", "2"),
        ("", 2, "<a><i/><i>no</i></a>", "2"),
        // One of three is missing, and nobody is left who could bring it: they are all.
        ("sequential='true'", 3, "<a><i/><i>no</i><i>no</i></a>", "2"),
        ("", 3, "<a><i/><i>no</i><i>no</i></a>", "2"),
    ] {
        let text = format!(
            "{correlate}<property name='messageSequence' value='0/{count}'/>\
             <iterate expression='//i' continueParent='true' {split}>{drops}</iterate>\
             <sequence key='meet'/><!--top-->{}",
            aggregate("")
        );
        assert_eq!(ask(&text, XML, body).body, answer, "{split} {body}");
    }
    // The original waits alone and a timer answers.
    let text = format!(
        "<iterate expression='//i' continueParent='true'><target><sequence><drop/></sequence></target></iterate>{correlate}\
         <property name='messageSequence' value='0/3'/><aggregate><completeCondition timeout='1'/>\
         <onComplete expression='$body/*'>{count}</onComplete></aggregate>"
    );
    assert_eq!(ask(&text, XML, "<a><i/></a>").body, "1");
}

#[test]
fn parts_are_moved_into_one_body() {
    let text = |complete: &str| {
        format!(
            "<iterate expression='//i' sequential='true'><target><sequence>\
        <payloadFactory><format><w xmlns=''><k>$1</k><q/></w></format><args><arg expression='//i'/></args></payloadFactory>\
        <aggregate><onComplete {complete}>\
        <payloadFactory><format><r xmlns=''>$1</r></format><args><arg expression='$body/*'/></args></payloadFactory><respond/></onComplete></aggregate>\
        </sequence></target></iterate>"
        )
    };
    let body = "<a><i>1</i><i>2</i></a>";
    for (complete, answer) in [
        ("expression='//k'", "<r><k>1</k><k>2</k></r>"),
        ("", "<r><w><k>1</k><q/></w><w><k>2</k><q/></w></r>"),
    ] {
        let made = ask(&text(complete), XML, body).body;
        assert_eq!(testing::without_envelope(&made), answer, "{complete}");
    }
}

/// Putting pieces together comes to the same as changing the tree of the first part.
#[test]
fn pieces_are_what_the_trees_would_be() {
    const SOAP: &[(&str, &str)] = &[("Content-Type", "text/xml"), ("SOAPAction", "x")];
    let registry = crate::registry(testing::endpoints);
    let tested = testing::main(&registry, "");
    let envelope = |inside: &str| {
        format!(
            "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/' xmlns:e='urn:e'><s:Header><h><i>h</i></h></s:Header>\
             <s:Body id='b'>{inside}</s:Body></s:Envelope>"
        )
    };
    let bodies = [
        "<i>1</i>",
        "\n <i a=\"'\">1</i>\n <!--c--><k><i>2</i>t<i xmlns='urn:d'><j/></i></k> <l><m><i>3</i></m><i/></l>text",
        "<k xmlns='urn:d'><i xmlns=''><![CDATA[<]]></i><e:i e:a='&amp;'/></k>",
        "<i><i>inner</i></i>",
        "<k/>",
        "",
    ];
    let around = message::XmlValue::copy_of(
        &xml::Document::parse_str("<all xmlns='urn:all'><first/></all>", &Default::default()).unwrap(),
        &[NodeId::from_index(1).unwrap()],
    );
    let expressions = [
        "//i",
        "//*[local-name()='i']",
        "$body/*",
        "//i/text()",
        "//*[local-name()='Body']",
        "//i[1]|//j",
        "//h",
    ];
    let settings = flow::Settings::default();
    let scope = config::Scope::default();
    let canonical = |text| xml::c14n::of_text(text, xml::c14n::Algorithm::Exclusive).expect("it is XML");
    for (first, second) in bodies.iter().flat_map(|first| bodies.iter().map(move |second| (first, second))) {
        for expression in expressions.into_iter().map(Some).chain([None]) {
            for enclosing in [None, Some("around")] {
                let core = Core {
                    number: Arc::new(Number(1)),
                    correlation: Correlation { sequence: "s".into(), id: "i".into() },
                    correlate_on: None,
                    min: None,
                    max: None,
                    timeout: None,
                    expression: expression.map(|text| {
                        Expression::compile(text, &scope, diagnostics::Span::BUILT_IN, &settings)
                            .expect("it compiles")
                    }),
                    enclosing: enclosing.map(Arc::from),
                    child: false,
                    then: Then::Nothing,
                };
                let merged = |trees: bool, format: message::Format| {
                    let [mut one, mut other] =
                        [first, second].map(|body| tested.context(SOAP, &envelope(body)));
                    one.properties.set("around", Value::Xml(Arc::new(around.clone())));
                    let others = vec![core.taken(&mut other).expect("nothing stops it")];
                    let result = match trees {
                        false => core.merge(&mut one, others),
                        true => core.selected(&mut one).and_then(|nodes| {
                            let around = core
                                .enclosing
                                .as_ref()
                                .map(|name| super::merge::enclosing(name, &one))
                                .transpose()?;
                            core.merge_trees(&mut one, nodes, around, &others)
                        }),
                    };
                    let limits = message::PayloadLimits::default();
                    result
                        .map_err(|fault| fault.to_string())
                        .map(|()| one.payload.write(format, &limits).unwrap())
                };
                for format in [message::Format::Soap(message::SoapVersion::V11), message::Format::Xml] {
                    let case = format!("{first} and {second} by {expression:?} in {enclosing:?}");
                    match (merged(false, format), merged(true, format)) {
                        (Ok(pieces), Ok(trees)) if trees.is_empty() => {
                            assert_eq!(pieces, trees, "{case}")
                        }
                        (Ok(pieces), Ok(trees)) => {
                            assert_eq!(canonical(pieces), canonical(trees), "{case}")
                        }
                        (pieces, trees) => assert_eq!(pieces, trees, "{case}"),
                    }
                }
            }
        }
    }
}

#[test]
fn json_is_listed_or_merged() {
    for (complete, answer) in [
        ("expression='json-eval($)'", r#"[{"a":1},{"a":2}]"#),
        ("expression='json-eval($.a)' aggregateElementType='root'", "[1,2]"),
        ("expression='json-eval($)' aggregateElementType='child'", r#"{"a":[1,2]}"#),
    ] {
        let text = format!(
            "<iterate id='x' expression='json-eval($)' sequential='true'><target><sequence><aggregate id='x'>\
            <onComplete {complete}><respond/></onComplete></aggregate></sequence></target></iterate>"
        );
        assert_eq!(ask(&text, JSON, r#"[{"a":1},{"a":2}]"#).body, answer, "{complete}");
    }
}

#[test]
fn messages_that_belong_to_nothing_pass_and_those_that_do_not_fit_fault() {
    let text = "<aggregate><onComplete><drop/></onComplete></aggregate><respond/>";
    assert_eq!(ask(text, XML, "<a/>").body, "<a/>");
    let text = "<aggregate><correlateOn expression='//b = 1'/><completeCondition><messageCount min='1' max='1'/></completeCondition>\
        <onComplete expression='//b'><respond/></onComplete></aggregate><respond/>";
    assert_eq!(ask(text, XML, "<a><b>1</b></a>").body, "<b>1</b>");
    assert_eq!(ask(text, XML, "<a><b>2</b></a>").body, "<a><b>2</b></a>");
    for (complete, says) in [
        ("expression='//nope'", "Could not find matching elements"),
        ("expression='/*'", "cannot be aggregated"),
        ("expression='json-eval($.nope)'", "selects nothing"),
        ("expression='//i' enclosingElementProperty='none'", "holds no XML element"),
        ("expression='//i' sequence='{$ctx:none}'", "cannot be found"),
    ] {
        let text = split(&format!("<aggregate><onComplete {complete}><drop/></onComplete></aggregate>"))
            + "<!--top--><sequence name='fault'><payloadFactory media-type='text'><format>$1: $2 / $3</format><args>\
               <arg expression=\"get-property('ERROR_CODE')\"/><arg expression=\"get-property('ERROR_MESSAGE')\"/>\
               <arg expression=\"get-property('ERROR_DETAIL')\"/></args>\
               </payloadFactory><respond/></sequence>";
        let response = ask(&text, XML, "<a><i/></a>");
        assert!(response.body.contains(says) && response.body.starts_with("0: "), "{complete}: {response:?}");
    }
}

#[test]
fn mistakes_are_found_when_the_configuration_loads() {
    for (text, says) in [
        ("<aggregate><correlateOn/><onComplete><drop/></onComplete></aggregate>", "needs an expression"),
        (
            "<aggregate><completeCondition timeout='x'/><onComplete><drop/></onComplete></aggregate>",
            "not a number of seconds",
        ),
        ("<aggregate/>", "nothing uses the result"),
        (
            "<aggregate><onComplete expresion='//a'><drop/></onComplete></aggregate>",
            "no attribute `expresion`",
        ),
    ] {
        let tested = testing::main(&crate::registry(testing::endpoints), text);
        assert!(tested.reports(says), "{text}: {:?}", tested.found);
    }
}

#[test]
fn objects_merge_and_conflicts_become_arrays() {
    let parse = |text: &str| serde_json::from_str(text).unwrap();
    for (parts, merged) in [
        (vec![r#"{"a":1}"#, r#"{"b":2}"#], r#"{"a":1,"b":2}"#),
        (vec![r#"{"a":1}"#, r#"{"a":2}"#, r#"{"a":3}"#], r#"{"a":[1,2,3]}"#),
        (vec![r#"{"a":[1]}"#, r#"{"a":2}"#], r#"{"a":[1,2]}"#),
        (vec![r#"{"a":1}"#, r#"{"a":[2]}"#], r#"{"a":[1,2]}"#),
        (vec!["{}"], "{}"),
    ] {
        let value = super::merge::one_object(parts.iter().map(|part| parse(part)).collect()).unwrap();
        assert_eq!(value.to_string(), merged, "{parts:?}");
    }
    assert!(super::merge::one_object(vec![parse("[1]")]).is_err());
}
