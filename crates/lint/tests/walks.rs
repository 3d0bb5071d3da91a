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
    ] {
        assert_eq!(found(xpath), ["condition-never-holds"], "{xpath}");
    }
    for xpath in
        ["//order/id", "get-property('paid') = 'true'", "$ctx:a = 'b' or $ctx:a = 'c'", "//id | $ctx:nodes"]
    {
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
        "<payloadFactory><format><property xmlns='' value='$ctx:b'/></format><args/></payloadFactory>",
        "<file.read><path>{$ctx:path}</path></file.read>",
    ] {
        assert!(!found(step).contains(&"expression-as-text"), "{step}");
    }
}
