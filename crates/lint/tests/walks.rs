//! Rules over whole configurations: each looks in a time that grows with the size, however sequences run each other, and finds
//! what its page lists.

use config::LoadOptions;
use std::fmt::Write;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// Enough for a slow machine; a walk that doubles with each sequence takes hours.
const LONGEST: Duration = Duration::from_secs(20);

/// The rules of what is found in artifacts.
fn found(artifacts: &str) -> Vec<&'static str> {
    let text =
        format!("<definitions xmlns=\"http://ws.apache.org/ns/synapse\">\n{artifacts}\n</definitions>\n");
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let loaded = config::load_text("synapse.xml", &text, Path::new("."), &LoadOptions::default());
        let registry = mediators::registry(endpoints::endpoint);
        let found = busbar_lint::check(&loaded.configuration, &registry, &flow::Settings::default());
        let _ = send.send(found.into_iter().map(|d| d.rule).collect());
    });
    receive.recv_timeout(LONGEST).expect("the rules do not end")
}

/// Sequences that each run the next one in both branches of a filter, and then once more.
fn diamonds(count: usize, last: &str) -> String {
    let mut text = String::new();
    for at in 0..count {
        let next = format!("<sequence key='s{}'/>", at + 1);
        let _ = write!(
            text,
            "<sequence name='s{at}'><filter xpath='//a'><then>{next}</then><else>{next}</else></filter>{next}</sequence>"
        );
    }
    text + &format!("<sequence name='s{count}'>{last}</sequence>")
}

fn proxy(target: &str) -> String {
    format!("<proxy name='P' transports='http'><target>{target}</target></proxy>")
}

#[test]
fn variables_in_headers_of_a_connector_are_texts() {
    let with = |headers: &str| {
        let call = format!("<http.get configKey='C'><headers>{headers}</headers></http.get>");
        found(&proxy(&format!("<inSequence>{call}<respond/></inSequence>")))
    };
    for text in [
        r#"[["Authorization","Bearer $ctx:token"]]"#,
        r#"[["X","${vars.x}"],["Y","$trp:Y"]]"#,
        r#"[["X","$1 $url:q."]]"#,
    ] {
        assert!(with(text).contains(&"expression-as-text"), "{text}");
    }
    for text in [
        r#"[["X","${xpath('$ctx:x')}"],["Price","$5"]]"#,
        r#"{$ctx:headers}"#,
        r#"[["X","$ctx: $other:x $"]]"#,
        r#"[["X","${vars.x"]]"#,
    ] {
        assert!(!with(text).contains(&"expression-as-text"), "{text}");
    }
}

#[test]
fn sequences_that_run_others_twice_are_followed_once() {
    let in_and_out =
        proxy("<inSequence><sequence key='s0'/></inSequence><outSequence><sequence key='s0'/></outSequence>");
    for count in [20, 39, 120] {
        assert_eq!(found(&(diamonds(count, "<log/>") + &in_and_out)), Vec::<&str>::new(), "{count}");
    }
    // What is at their end still counts.
    let ends = diamonds(30, "<respond/>") + &proxy("<inSequence><sequence key='s29'/><log/></inSequence>");
    assert!(found(&ends).contains(&"unreachable-step"));
    let lost = proxy("<inSequence><header name='a' value='b'/><sequence key='s0'/></inSequence>");
    assert_eq!(found(&(diamonds(30, "<log/>") + &lost)), ["message-is-lost"]);
    let sent = "<inSequence><sequence key='s0'/></inSequence><outSequence><log/></outSequence>";
    assert!(found(&(diamonds(30, "<send/>") + &proxy(sent))).contains(&"answer-is-lost"));
}

/// Copies go on behind a split where a `call` of theirs was answered.
#[test]
fn what_is_behind_a_split_is_reached_by_copies_that_called() {
    let log = "<log/>";
    let call = "<call><endpoint key='E'/></call>";
    let endpoint = "<endpoint name='E'><address uri='http://localhost:9/e'/></endpoint>";
    let split = |attributes: &str, steps: &str| {
        let target = format!("<target><sequence>{steps}</sequence></target>");
        proxy(&format!(
            "<inSequence><iterate expression='//a' {attributes}>{target}</iterate><log/><respond/></inSequence>"
        )) + endpoint
    };
    for (attributes, steps, is_reached) in [
        ("", log, false),
        (
            "continueParent='false'",
            "<filter xpath='//b'><then><log/></then></filter><send><endpoint key='E'/></send>",
            false,
        ),
        ("continueParent='true'", log, true),
        ("", call, true),
        ("", "<filter xpath='//b'><then><call><endpoint key='E'/></call></then></filter>", true),
        ("", "<filter xpath='//b'><then sequence='s'/></filter>", true),
        ("", "<sequence key='s'/>", true),
        ("", "<script language='js'>mc.getPayloadXML()</script>", true),
    ] {
        let rules = found(&split(attributes, steps));
        assert_eq!(!rules.contains(&"unreachable-step"), is_reached, "{attributes} {steps}: {rules:?}");
    }
}

/// Operations of connectors that make the message another one, and what they bring is lost.
#[test]
fn what_connectors_make_is_lost_like_what_mediators_make() {
    for (steps, rules) in [
        ("<CSV.csvToJson/>", &["message-is-lost"][..]),
        ("<CSV.csvToJson/><respond/>", &[]),
        ("<CSV.csvToJson><responseVariable>v</responseVariable></CSV.csvToJson>", &[]),
        ("<http.get configKey='C'><relativePath>/a</relativePath></http.get>", &["answer-is-lost"]),
        (
            "<http.get configKey='C'><relativePath>/a</relativePath></http.get><CSV.jsonToCsv/>",
            &["answer-is-lost"],
        ),
        ("<http.get configKey='C'><responseVariable>v</responseVariable></http.get>", &[]),
        ("<http.post configKey='C'><relativePath>/a</relativePath></http.post>", &[]),
        ("<CSV.jsonToCsv/><file.write configKey='F'><filePath>a</filePath></file.write>", &[]),
    ] {
        assert_eq!(found(&proxy(&format!("<inSequence>{steps}</inSequence>"))), rules, "{steps}");
    }
}

#[test]
fn templates_that_call_others_twice_are_followed_once() {
    let mut text = String::new();
    for at in 0..40 {
        let next = format!("<call-template target='t{}'/>", at + 1);
        let _ = write!(
            text,
            "<template name='t{at}'><sequence><filter xpath='//a'><then>{next}</then><else>{next}</else></filter></sequence></template>"
        );
    }
    text += "<template name='t40'><sequence><log/></sequence></template>";
    found(&(text + &proxy("<inSequence><call-template target='t0'/></inSequence>")));
}

#[test]
fn sequences_that_all_run_each_other_are_followed_once() {
    let all: Vec<String> = (0..16)
        .map(|at| format!("<filter xpath='//a{at}'><then><sequence key='s{at}'/></then></filter>"))
        .collect();
    let mut text = String::new();
    for at in 0..16 {
        let _ = write!(text, "<sequence name='s{at}'>{}</sequence>", all.concat());
    }
    let flow = "<sequence key='s0'/>";
    found(&(text + &proxy(&format!("<inSequence>{flow}</inSequence><outSequence>{flow}</outSequence>"))));
}

/// What the page of `condition-never-holds` lists, and what is like it and right.
#[test]
fn expressions_that_cannot_match_are_found() {
    let found = |xpath: &str| {
        let filter = format!("<filter xpath=\"{xpath}\"><then><log/></then><else><log/></else></filter>");
        found(&proxy(&format!("<inSequence>{filter}<respond/></inSequence>")))
    };
    for xpath in [
        "/order/id",
        "get-property('paid') = true",
        "local-name() = 'ns:order'",
        "$axis2:HTTP_METHOD = 'get'",
        "$ctx:a = 'b' and $ctx:a = 'c'",
        "//id | $trp:X-Id",
        "count(//a[b | $url:c]) > 0",
        "1=2",
        "'a' = 'b'",
        "$body/*[1]/@a/b",
        "//text()/a",
    ] {
        assert_eq!(found(xpath), ["condition-never-holds"], "{xpath}");
    }
    for xpath in [
        "//order/id",
        "get-property('paid') = 'true'",
        "$ctx:a = 'b' or $ctx:a = 'c'",
        "//id | $ctx:nodes",
        "1=1",
        "true()",
        "2 > 1",
        "//a/@b",
        "//a/@b/..",
        "//a/text()",
        "//a[@b/../c]",
    ] {
        assert!(found(xpath).is_empty(), "{xpath}");
    }
}

/// What is written as an expression where only a text is read, and where the same text is one or is evaluated.
#[test]
fn expressions_that_are_texts_are_found() {
    let found = |steps: &str| found(&proxy(&format!("<inSequence>{steps}<respond/></inSequence>")));
    for step in [
        "<property name='a' value='$ctx:b'/>",
        "<log><property name='a' value=' $trp:X-Id '/></log>",
        "<property name='a' value='${payload.id}'/>",
        "<variable name='a' type='STRING' value='${vars.a + 1}'/>",
        "<header name='a' scope='transport' value=\"get-property('a')\"/>",
        "<payloadFactory><format><a xmlns=''>$1</a></format><args><arg value='$url:id'/></args></payloadFactory>",
        "<payloadFactory media-type='json'><format>{\"a\":$1}</format><args><arg value='json-eval($.a)'/></args></payloadFactory>",
        "<file.read><path>$ctx:path</path></file.read>",
    ] {
        assert!(found(step).contains(&"expression-as-text"), "{step}");
    }
    for step in [
        "<property name='a' expression='$ctx:b'/>",
        "<property name='a' value='$ctx:'/>",
        "<property name='a' value='$ctx:b is a property'/>",
        "<property name='a' value='$price:b'/>",
        "<log><property name='a' value='$1'/></log>",
        "<property name='a' value='${configs.a}'/>",
        "<property name='a' value='${name}'/>",
        "<property name='a' value='a ${payload.id}'/>",
        "<payloadFactory><format><property xmlns='' value='$ctx:b'/></format><args/></payloadFactory>",
        "<file.read><path>{$ctx:path}</path></file.read>",
    ] {
        assert!(!found(step).contains(&"expression-as-text"), "{step}");
    }
}

/// `messageType` is a name that authors use too; with a media type it is that of the engine.
#[test]
fn media_types_in_the_default_scope_are_found() {
    let found = |steps: &str| found(&proxy(&format!("<inSequence>{steps}<respond/></inSequence>")));
    for (step, is_found) in [
        ("<property name='messageType' value='application/json'/>", true),
        ("<property name='ContentType' value='text/xml' scope='default'/>", true),
        ("<property name='messageType' value='ORDER'/>", false),
        ("<property name='messageType' value='application/json' scope='axis2'/>", false),
        (
            "<property name='messageType' value='application/json'/><log><property name='a' expression='$ctx:messageType'/></log>",
            false,
        ),
    ] {
        assert_eq!(found(step).contains(&"property-scope"), is_found, "{step}");
    }
}

/// Names that are nearly those of the engine, and names of the author's own.
#[test]
fn misspelt_properties_of_the_engine_are_found() {
    let found = |steps: &str| found(&proxy(&format!("<inSequence>{steps}<respond/></inSequence>")));
    for (name, scope) in [
        ("REST_URL_POSTIX", "axis2"),
        ("HTTP_SCC", "axis2"),
        ("messageTpye", "axis2"),
        ("MESSAGE_TYPE", "axis2"),
        ("NO_ENTITY_BODDY", "axis2"),
        ("FORCE_SC_ACEPTED", "axis2"),
        ("OUT_ONLI", "default"),
        ("out_only", "synapse"),
    ] {
        let step = format!("<property name='{name}' value='true' scope='{scope}'/>");
        assert_eq!(found(&step), ["misspelt-property"], "{step}");
        let group = format!("<propertyGroup>{step}</propertyGroup>");
        assert_eq!(found(&group), ["misspelt-property"], "{group}");
        // What is read is the author's own.
        let read =
            format!("{step}<log><property name='a' expression=\"get-property('{scope}','{name}')\"/></log>");
        assert_eq!(found(&read), Vec::<&str>::new(), "{read}");
    }
    for step in [
        "<property name='message_type' value='a'/>",
        "<property name='http_scc' value='a'/>",
        "<property name='response' value='a'/>",
        "<property name='contentType' value='application/json' scope='axis2'/>",
        "<property name='REST_URL_PREFIX' value='a' scope='axis2'/>",
        "<property name='IGNORE_SC_ACCEPTED' value='a' scope='axis2'/>",
        "<property name='HTTP_SC2' value='a' scope='axis2'/>",
        "<property name='MessageType' value='a' scope='transport'/>",
        "<property name='tenant' value='a' scope='axis2'/>",
    ] {
        assert!(!found(step).contains(&"misspelt-property"), "{step}");
    }
}

#[test]
fn parameters_within_a_value_of_an_endpoint_template_are_found() {
    for (uri, is_found) in [
        ("http://$host/x", true),
        ("$host/x", true),
        ("http://h/$uri", true),
        ("$host", false),
        (" $uri ", false),
        ("http://h/$hosts", false),
        ("http://h/{uri.var.host}?price=$5", false),
    ] {
        let template = format!(
            "<template name='T'><parameter name='host'/><endpoint name='$name'><http uri-template='{uri}'/></endpoint>\
             </template><endpoint name='E' template='T'><parameter name='host' value='h'/></endpoint>"
        );
        let all = found(&template);
        assert_eq!(all.contains(&"template-parameter"), is_found, "{uri}: {all:?}");
    }
}

#[test]
fn misspelt_parameters_of_a_path_are_found() {
    for (read, is_found) in [
        ("${params.pathParams.orderID}", true),
        ("${params.pathParams.ordrId + 1}", true),
        ("get-property('uri.var.orderID')", true),
        ("${params.pathParams.orderId}", false),
        ("${params.queryParams.orderID}", false),
        ("${params.pathParams.other}", false),
    ] {
        let flow = format!("<inSequence><property name='p' expression=\"{read}\"/><respond/></inSequence>");
        let resource = format!("<resource methods='GET' uri-template='/{{orderId}}'>{flow}</resource>");
        let all = found(&format!("<api name='A' context='/a'>{resource}</api>"));
        assert_eq!(all.contains(&"misspelt-name"), is_found, "{read}: {all:?}");
    }
}

/// Flows that leave the client with 202, and flows that mean it or answer.
#[test]
fn flows_without_an_answer_are_noted() {
    const CALL: &str = "<call><endpoint key='E'/></call>";
    let found = |steps: &str| {
        let endpoint = "<endpoint name='E'><address uri='http://localhost:9000/a'><timeout><duration>1000</duration></timeout></address></endpoint>";
        found(&format!("{endpoint}{}", proxy(&format!("<inSequence>{steps}</inSequence>"))))
    };
    for steps in [
        "<log/>",
        "<log/><property name='a' value='b'/>",
        "<iterate expression='//i'><target><sequence><log/></sequence></target></iterate>",
        "<filter xpath='//a'><then><log/></then><else><log level='full'/></else></filter>",
        &format!("{CALL}<log/>"),
        CALL,
    ] {
        assert_eq!(found(steps), ["empty-answer"], "{steps}");
    }
    for steps in [
        "<log/><respond/>",
        "<log/><drop/>",
        "<log/><property name='FORCE_SC_ACCEPTED' value='true' scope='axis2'/>",
        "<log/><property name='OUT_ONLY' value='true'/>",
        "<log/><property name='HTTP_SC' value='204' scope='axis2'/>",
        "<log/><property name='gov:a' value='b' scope='registry'/>",
        "<log/><store messageStore='S'/>",
        "<iterate expression='//i'><target><sequence><log/></sequence><endpoint key='E'/></target></iterate>",
        "<script language='js'>mc.setPayloadJSON('{}');</script>",
        "<sequence key='gov:elsewhere'/>",
        &format!("{CALL}<respond/>"),
        &format!("<property name='OUT_ONLY' value='true'/>{CALL}"),
        &format!("<property name='FORCE_SC_ACCEPTED' value='true' scope='axis2'/>{CALL}<log/>"),
    ] {
        assert!(!found(steps).contains(&"empty-answer"), "{steps}");
    }
    // Files have no client.
    let vfs = "<proxy name='P' transports='vfs'><target><inSequence><log/></inSequence></target></proxy>";
    assert!(!crate::found(vfs).contains(&"empty-answer"));
}

/// Cases behind one that matches everything, and fixed texts.
#[test]
fn cases_that_no_text_reaches_are_found() {
    let found = |source: &str, cases: &str| {
        found(&proxy(&format!(
            "<inSequence><switch source=\"{source}\">{cases}</switch><respond/></inSequence>"
        )))
    };
    for (source, cases, rule) in [
        ("//a", "<case regex='.*'><log/></case><case regex='b'><log/></case>", "duplicate-case"),
        ("//a", "<case regex='b'><log/></case><case regex='b'><log/></case>", "duplicate-case"),
        ("'a'", "<case regex='b'><log/></case><default/>", "condition-never-holds"),
    ] {
        assert!(found(source, cases).contains(&rule), "{source} {cases}");
    }
    for (source, cases) in [
        ("//a", "<case regex='b'><log/></case><case regex='.*'><log/></case><default/>"),
        ("//a", "<case regex='.*'><log/></case><case regex='(?s).*b.*'><log/></case>"),
        ("//a", "<case regex='.*'><log/></case><case regex='[^b]*'><log/></case>"),
        ("'a'", "<case regex='a'><log/></case><default/>"),
    ] {
        let rules = found(source, cases);
        assert!(
            !rules.contains(&"duplicate-case") && !rules.contains(&"condition-never-holds"),
            "{cases}: {rules:?}"
        );
    }
}

/// Aggregates whose parts nobody makes, or too few.
#[test]
fn aggregates_without_an_id_are_compared_too() {
    let aggregate = |counts: &str| {
        format!(
            "<aggregate><completeCondition>{counts}</completeCondition><onComplete expression='$body/*'><respond/></onComplete></aggregate>"
        )
    };
    let found = |split: &str, counts: &str| {
        let inside = aggregate(counts);
        found(&proxy(&format!("<inSequence>{}</inSequence>", split.replace("AGGREGATE", &inside))))
    };
    const TWO: &str = "<clone><target><sequence>AGGREGATE</sequence></target><target><sequence>AGGREGATE</sequence></target></clone>";
    let rule = &"aggregate-cannot-complete";
    assert!(found("AGGREGATE<respond/>", "<messageCount min='3'/>").contains(rule));
    assert!(found(TWO, "<messageCount min='3'/>").contains(rule));
    // Each is alone with the copy of its target.
    const INNER: &str = "<iterate expression='//i'><target><sequence><clone><target><sequence>AGGREGATE</sequence></target>\
        <target><sequence><drop/></sequence></target></clone></sequence></target></iterate>";
    assert!(found(TWO, "<messageCount min='2'/>").contains(rule) && found(TWO, "").contains(rule));
    assert!(found(INNER, "").contains(rule));
    const OUTER: &str = "<clone><target><sequence><iterate expression='//i'><target><sequence>AGGREGATE</sequence></target></iterate></sequence></target>\
        <target><sequence><drop/></sequence></target></clone>";
    for (split, counts) in [
        (TWO, "<messageCount min='1'/>"),
        (TWO, "<messageCount max=\"{get-property('n')}\"/>"),
        (OUTER, ""),
        ("<clone><target sequence='s'/><target sequence='s'/></clone>AGGREGATE", ""),
        (
            "<clone iterations='5'><target><sequence>AGGREGATE</sequence></target></clone>",
            "<messageCount min='3'/>",
        ),
        (
            "<iterate expression='//i'><target><sequence>AGGREGATE</sequence></target></iterate>",
            "<messageCount min='3'/>",
        ),
        ("<sequence key='gov:split'/>AGGREGATE<respond/>", "<messageCount min='3'/>"),
        ("AGGREGATE<respond/>", "<messageCount min='1'/>"),
    ] {
        assert!(!found(split, counts).contains(rule), "{split} {counts}");
    }
}

/// A prefix of a variable that names nothing.
#[test]
fn unknown_scopes_are_found_however_they_are_written() {
    let found = |steps: &str| found(&proxy(&format!("<inSequence>{steps}<respond/></inSequence>")));
    assert_eq!(found("<property name='a' expression='$foo:y'/>"), ["unknown-scope"]);
    for steps in [
        "<property name='foo' expression='//map'/><property name='a' expression='$foo:y'/>",
        "<script language='js'>mc.setProperty('f' + 'oo', 1);</script><property name='a' expression='$foo:y'/>",
    ] {
        assert!(!found(steps).contains(&"unknown-scope"), "{steps}");
    }
}

/// A counter begins with a fixed text and goes on with numbers.
#[test]
fn counters_are_numbers_that_begin_with_a_text() {
    let rule = &"number-in-property";
    let counter = |begins: &str, source: &str, regex: &str| {
        let first = match begins {
            "" => String::new(),
            value => format!("<property name='tries' {value}/>"),
        };
        found(&proxy(&format!(
            "<inSequence>{first}<property name='tries' expression=\"get-property('tries') + 1\"/>\
             <filter source=\"{source}\" regex='{regex}'><then><respond/></then><else><drop/></else></filter></inSequence>"
        )))
    };
    let (read, ctx) = ("get-property('tries')", "$ctx:tries");
    for (begins, source, regex) in [
        ("", ctx, "5.0"),
        ("value='0'", read, "5.0"),
        ("value='0' type='INTEGER'", ctx, "5\\.0"),
        ("value='0'", ctx, "5"),
    ] {
        assert!(counter(begins, source, regex).contains(rule), "{begins} {source} {regex}");
    }
    for (begins, source, regex) in [
        ("value='5'", ctx, "5"),
        ("value='0'", ctx, "5(\\.0)?"),
        ("expression='//tries'", ctx, "5.0"),
        ("value='0' type='DOUBLE'", ctx, "5.0"),
        ("value='0'", "$ctx:others", "5.0"),
    ] {
        assert!(!counter(begins, source, regex).contains(rule), "{begins} {source} {regex}");
    }
}
