//! Steps that take too long for their worker and are begun anew on a compute thread: they do what they do once, on the message as it
//! came.

use flow::testing;

const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];

/// Some 200 KB in which a path finds 10,000 values: more work than a worker gives a step, in a message that is not moved at once.
fn body() -> String {
    let items: Vec<String> = (0..10_000).map(|id| format!(r#"{{"id":{id},"n":"x"}}"#)).collect();
    format!(r#"{{"list":[{}],"one":"1","hits":[]}}"#, items.join(","))
}

fn run(mediators: &str) -> testing::Ended {
    let tested = testing::main(&busbar_mediators::registry(testing::endpoints), mediators);
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    tested.run(JSON, &body())
}

/// An expression that is long work on it.
const LONG: &str = "json-eval($..id)";

#[test]
fn what_is_taken_of_a_large_message_is_all_of_it() {
    for (mediators, length) in [
        (format!("<property name='r' expression='{LONG}'/>"), 48_891),
        ("<property name='r' expression='${payload..id}'/>".to_owned(), 48_891),
        (
            format!("<variable name='v' expression='{LONG}'/><property name='r' expression='${{vars.v}}'/>"),
            48_891,
        ),
        (
            format!(
                "<payloadFactory media-type='json'><format>{{\"all\":$1}}</format><args><arg expression='{LONG}'/></args>\
                 </payloadFactory><property name='r' expression='json-eval($.all)'/>"
            ),
            48_891,
        ),
        (format!("<enrich><source xpath='{LONG}'/><target type='property' property='r'/></enrich>"), 48_891),
    ] {
        let end = run(&mediators);
        assert_eq!(end.fault(), None, "{mediators}");
        assert_eq!(end.property("r").map(|text| text.len()), Some(length), "{mediators}");
    }
}

#[test]
fn what_is_changed_is_changed_once() {
    // Both expressions of a step are long work; the first one may be done on the worker.
    let end = run(&format!(
        "<property name='all' expression='json-eval($.hits)'/>\
         <enrich><source xpath='{LONG}'/><target type='property' property='all' action='child'/></enrich>\
         <property name='count' expression=\"${{length(properties.synapse.all)}}\"/>"
    ));
    assert_eq!(end.property("count").as_deref(), Some("1"), "{:?}", end.fault());
    let mut end = run("<enrich><source type='inline'>{}</source><target xpath='json-eval($..n)'/></enrich>");
    let changed = end.payload();
    assert_eq!((changed.matches(r#""n":{}"#).count(), changed.matches(r#""n":"x""#).count()), (10_000, 0));
    // A rule whose condition is long work.
    let end = run(&format!(
        "<header name='To' value='http://h/a'/><rewrite><rewriterule><action type='append' fragment='path' value='b'/></rewriterule>\
         <rewriterule><condition><equal type='soap' source='{LONG}' value='no'/></condition>\
         <action type='append' fragment='path' value='c'/></rewriterule></rewrite>"
    ));
    assert_eq!(end.context.to().as_deref(), Some("http://h/ab"));
}

#[test]
fn a_line_of_the_log_is_written_once() {
    let (lines, end) = testing::logged("busbar::log", || {
        run(&format!("<log level='custom'><property name='all' expression='{LONG}'/></log>"))
    });
    assert_eq!(end.fault(), None);
    let lengths: Vec<usize> = lines.iter().map(String::len).collect();
    assert!(lines.len() <= 1 && lengths.iter().all(|&length| length > 48_000), "{lengths:?}");
}

#[test]
fn an_expression_that_is_broken_off_says_nothing_of_itself() {
    let (lines, end) = testing::logged("flow", || run("<property name='r' expression='${payload..id}'/>"));
    assert_eq!((end.fault(), lines), (None, Vec::new()));
}

/// A match that is too long for a worker is no match that failed.
#[test]
fn a_group_of_a_long_text_is_found() {
    let long = "x".repeat(20_000);
    let end = run(&format!(
        "<property name='r' value='{long}'/><property name='r' expression=\"get-property('r')\" pattern='(x*)' group='1'/>"
    ));
    assert_eq!(end.property("r").map(|text| text.len()), Some(20_000), "{:?}", end.fault());
}

/// Steps that go on with what an expression selects, on a message that is long work: each item once, on the compute threads.
#[test]
fn items_of_a_large_message_are_selected_elsewhere() {
    let one = "<payloadFactory media-type='json'><format>{\"one\":1}</format></payloadFactory>";
    for (mediators, wanted) in [
        (
            format!("<propertyGroup><property name='a' value='1'/><property name='a' expression=\"concat(get-property('a'), '2')\"/>\
              <property name='long' expression='{LONG}'/></propertyGroup><property name='r' expression=\"get-property('a')\"/>"),
            "12",
        ),
        (
            format!("<clone iterations='{{json-eval($..id)}}'><target><sequence>{one}</sequence></target></clone>"),
            "fault",
        ),
        (
            format!("<scatter-gather target='body' result-content-type='JSON'><aggregation expression='{LONG}'/><sequence/></scatter-gather>\
              <property name='r' expression=\"${{length(payload[0])}}\"/>"),
            "10000",
        ),
        (
            "<foreach collection='${payload..id}' update-original='false' target-variable='v' result-content-type='JSON' parallel-execution='false'>\
             <sequence><filter xpath='json-eval($) = 1'><then/></filter></sequence></foreach><property name='r' expression='${length(vars.v)}'/>"
                .replace("<filter xpath='json-eval($) = 1'><then/></filter>", ""),
            "10000",
        ),
    ] {
        let end = run(&mediators);
        let found = match end.fault() {
            Some(fault) if fault.contains("are not a number") => Some("fault".to_owned()),
            Some(fault) => Some(fault),
            None => end.property("r"),
        };
        assert_eq!(found.as_deref(), Some(wanted), "{mediators}");
        let ran = flow::compute::Compute::of(end.context.services()).figures().runs;
        assert!(ran > 0, "{mediators}");
    }
}
