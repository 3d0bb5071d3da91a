//! Templates of both kinds filled from messages, in flows without a network.

use flow::testing;

/// Before expressions had `${…}`, that was text; what has it still reads it when a message comes.
#[test]
fn a_wrong_expression_in_a_template_costs_its_step_only() {
    for format in ["{\"a\": \"${ctx:x}\"}", "{\"a\": ${env:HOME}}", "{\"a\": \"${payload.}\"}"] {
        let text = format!(
            "<payloadFactory media-type='json'><format>{format}</format><args/></payloadFactory><!--top-->
             <sequence name='fault'><property name='seen' expression='$ctx:ERROR_CODE'/></sequence>"
        );
        let tested = testing::main(&crate::registry(testing::endpoints), &text);
        assert!(
            tested.reports("cannot be evaluated: each message faults here"),
            "{format}: {:?}",
            tested.found
        );
        let end = tested.run(JSON, "{}");
        assert_eq!(end.property("seen").as_deref(), Some("0"), "{format}");
    }
}

#[test]
fn templates_that_lose_something_or_make_no_json_are_reported() {
    for (inside, says) in [
        (
            "<payloadFactory media-type='json'><format>{\"a\": 1,}</format><args/></payloadFactory>",
            "bad-json-template",
        ),
        (
            "<payloadFactory media-type='json'><format><![CDATA[{\"a\": '$1'}]]></format><args><arg value='x'/></args></payloadFactory>",
            "bad-json-template",
        ),
        (
            "<payloadFactory media-type='json'><format>{${payload}}</format></payloadFactory>",
            "bad-json-template",
        ),
        (
            "<payloadFactory media-type='json'><format>{\"a\": $1}</format><args><arg value='a text'/></args></payloadFactory>",
            "bad-json-template",
        ),
        (
            "<payloadFactory media-type='xml'><format>a <b xmlns=''/></format><args/></payloadFactory>",
            "text in `format` is ignored",
        ),
    ] {
        let tested = testing::main(&crate::registry(testing::endpoints), inside);
        assert!(tested.reports(says), "{inside}: {:?}", tested.found);
        assert!(!tested.reports("error"), "{inside}: {:?}", tested.found);
    }
    for inside in [
        "<payloadFactory media-type='json'><format>{\"a\": $1}&#xd;</format><args><arg value='7'/></args></payloadFactory>",
        "<payloadFactory media-type='json'><format>${payload}</format></payloadFactory>",
        "<payloadFactory media-type='json'><format>{\"a\": \"$1\", \"b\": $2, \"c\": -$3.$3}</format>\
         <args><arg value='x'/><arg value='[1]'/><arg value='1'/></args></payloadFactory>",
        "<payloadFactory media-type='json'><format><!-- {a} -->{\"a\": \"${vars.x}\"}</format></payloadFactory>",
        "<payloadFactory media-type='text'><format>{a}</format></payloadFactory>",
        "<payloadFactory media-type='text'><format>Hello $1</format><args><arg value='a text'/></args></payloadFactory>",
        "<payloadFactory><format><a xmlns=''>$1</a></format><args><arg value='a text'/></args></payloadFactory>",
    ] {
        let tested = testing::main(&crate::registry(testing::endpoints), inside);
        assert!(!tested.reports("bad-json-template"), "{inside}: {:?}", tested.found);
    }
}

const XML: &[(&str, &str)] = &[("Content-Type", "application/xml")];
const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];

fn made(
    media: &str,
    format: &str,
    args: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<String, String> {
    let text = format!(
        "<payloadFactory media-type='{media}'><format>{format}</format><args>{args}</args></payloadFactory>"
    );
    let tested = testing::main(&crate::registry(testing::endpoints), &text);
    assert!(!tested.reports("error"), "{:?}", tested.found);
    let mut end = tested.run(headers, body);
    match end.fault() {
        Some(fault) => Err(fault),
        None => Ok(if media == "text" { end.write(message::Format::Text) } else { end.payload() }),
    }
}

#[test]
fn texts_are_escaped_but_not_in_apache_synapse() {
    let text = r#"<property name="p" value="a &lt; b"/><property name="x" value="&lt;c/>"/>
        <payloadFactory><format><r xmlns="">$1</r></format><args><arg expression="$ctx:ARG"/></args></payloadFactory>"#;
    let registry = crate::registry(flow::testing::endpoints);
    for (name, synapse, wanted) in
        [("p", false, Some("<r>a &lt; b</r>")), ("p", true, None), ("x", true, Some("<r><c/></r>"))]
    {
        let text = text.replace("ARG", name);
        let flow = match synapse {
            true => flow::testing::synapse(&registry, &text),
            false => flow::testing::main(&registry, &text),
        };
        let mut end = flow.run(&[("Content-Type", "application/xml")], "<a/>");
        match wanted {
            Some(wanted) => assert_eq!(end.payload(), wanted, "{name}"),
            None => assert!(end.fault().is_some(), "{name}"),
        }
    }
}

#[test]
fn of_several_nodes_apache_synapse_puts_in_their_string() {
    let text = r#"<payloadFactory><format><r xmlns="">$1</r></format><args><arg expression="//i"/></args></payloadFactory>"#;
    let registry = crate::registry(flow::testing::endpoints);
    for (flow, wanted) in [
        (flow::testing::main(&registry, text), "<r><i>1</i><i>2<j>3</j></i></r>"),
        (flow::testing::synapse(&registry, text), "<r>12</r>"),
    ] {
        let mut end = flow.run(&[("Content-Type", "application/xml")], "<a><i>1</i><i>2<j>3</j></i></a>");
        assert_eq!(end.payload(), wanted);
    }
}

#[test]
fn a_path_that_nothing_reads_is_a_fault_of_its_step() {
    let text = r#"<property name="before" value="1"/><filter xpath="$ctx:skip = 'yes'"><then/><else>
        <payloadFactory media-type="json"><format>{"last": ${payload.items[(@.length-1)].n}}</format></payloadFactory></else></filter>"#;
    let tested = testing::main(&crate::registry(testing::endpoints), text);
    assert!(tested.reports("cannot be evaluated: each message faults here"), "{:?}", tested.found);
    let end = tested.run(JSON, r#"{"items": [{"n": 1}]}"#);
    let fault = end.fault().unwrap_or_default();
    assert!(fault.contains("write `[-1]` for the last element"), "{fault}");
    assert_eq!(end.property("before").as_deref(), Some("1"));
    let skipped = format!("<property name='skip' value='yes'/>{text}");
    let end = testing::main(&crate::registry(testing::endpoints), &skipped).run(JSON, "{}");
    assert_eq!(end.fault(), None);
    // What hardly was meant is said, and runs.
    let text = r#"<property name="p" expression="json-eval($.items[0]])"/><property name="q" expression="json-eval($.items[0]n])"/>"#;
    let tested = testing::main(&crate::registry(testing::endpoints), text);
    assert!(tested.reports("`json-eval($.items[0]])` is hardly what was meant"), "{:?}", tested.found);
    let end = tested.run(JSON, r#"{"items": [{"n": 1, "n]": 2}]}"#);
    assert_eq!(end.property("p").as_deref(), Some(r#"{"n":1,"n]":2}"#));
    assert_eq!(end.property("q").as_deref(), Some("2"));
}

#[test]
fn a_template_that_makes_no_json_is_logged() {
    let free_marker = r#"<payloadFactory media-type="json" template-type="freemarker"><format>{"order": ${payload.order!""}}</format></payloadFactory>"#;
    let slot = r#"<payloadFactory media-type="json"><format>{"a": $1, "b": "$1"}</format><args><arg evaluator="json" expression="$.order"/></args></payloadFactory>"#;
    let quotes = format!(
        "<property name=\"QUOTE_STRING_IN_PAYLOAD_FACTORY_JSON\" value=\"true\"/>{}",
        slot.replace("$1, ", "7, ")
    );
    let none = "WARN what the template made is not JSON";
    for (flow, body, wanted) in [
        (free_marker, r#"{"order": 7}"#, None),
        (free_marker, "{}", Some("WARN what the FreeMarker template made is not JSON")),
        (slot, r#"{"order": 7}"#, None),
        (slot, r#"{"order": {"c": 1}}"#, None),
        (slot, "{}", None),
        (slot, r#"{"order": "t\"q"}"#, Some(none)),
        (&quotes, r#"{"order": 7}"#, None),
        (&quotes, r#"{"order": "text"}"#, Some(none)),
    ] {
        let tested = testing::main(&crate::registry(testing::endpoints), flow);
        let (lines, end) = testing::logged("busbar_mediators::payload_factory", || tested.run(JSON, body));
        assert_eq!(end.fault(), None, "{body}");
        assert_eq!(lines, Vec::from_iter(wanted), "{flow} {body}");
    }
}

#[test]
fn control_characters_in_texts_that_are_json_are_escaped_on_request() {
    for (escapes, argument, wanted) in [
        // A text that is not JSON is a part of a string.
        ("false", "{&quot;k&quot;:&quot;a&#10;b&quot;}", r#"{"a":{\"k\":\"a\nb\"}}"#),
        (
            "true",
            "{&quot;k&quot;:&quot;a&#10;b&#9;\\&quot;c&quot;,&#10; &quot;n&quot;:[1]}",
            "{\"a\":{\"k\":\"a\\nb\\t\\\"c\",\n \"n\":[1]}}",
        ),
        ("true", "[&quot;&#13;&quot;]", r#"{"a":["\r"]}"#),
        ("true", "{&#10;}", "{\"a\":{\n}}"),
        ("true", "{&quot;k&#10;", r#"{"a":{\"k\n}"#),
    ] {
        let text = format!(
            "<property name='p' value='{argument}'/><payloadFactory media-type='json' escapeXmlChars='{escapes}'>\
             <format>{{\"a\":$1}}</format><args><arg expression='$ctx:p'/></args></payloadFactory>"
        );
        let mut end = testing::main(&crate::registry(testing::endpoints), &text).run(JSON, "{}");
        assert_eq!(end.write(message::Format::Json), wanted, "{escapes} {argument}");
    }
}

#[test]
fn arguments_are_escaped_for_the_place_they_go_to() {
    let in_json = r#"{"arr":[1,{"z":2}],"obj":{"p":1},"nul":null,"info":"[INFO] \"x\"","num":1.5,"xml":"<b>1</b>","lt":"a<b&\"c"}"#;
    let in_xml = "<r><t>1</t><t>2</t><k><m>5</m></k><u>a\"b&amp;c</u><v at='7'/></r>";
    let json = |path: &str| format!("<arg evaluator='json' expression='{path}'/>");
    let xpath = |path: &str| format!("<arg expression=\"{path}\"/>");
    for (media, format, arg, headers, body, out) in [
        (
            "xml",
            "<a xmlns=''>$1</a>",
            json("$.arr"),
            JSON,
            in_json,
            "<a><jsonElement>1</jsonElement><jsonElement><z>2</z></jsonElement></a>",
        ),
        ("xml", "<a xmlns=''>$1</a>", json("$.obj"), JSON, in_json, "<a><p>1</p></a>"),
        ("xml", "<a xmlns=''>$1</a>", json("$.nul"), JSON, in_json, "<a>null</a>"),
        ("xml", "<a xmlns=''>$1</a>", json("$.xml"), JSON, in_json, "<a><b>1</b></a>"),
        (
            "xml",
            "<a xmlns='' x='$1'>$1</a>",
            json("json-eval($.lt)"),
            JSON,
            in_json,
            "<a x=\"a&lt;b&amp;&quot;c\">a&lt;b&amp;\"c</a>",
        ),
        ("xml", "<a xmlns=''>$1</a>", xpath("//k"), XML, in_xml, "<a><k><m>5</m></k></a>"),
        ("xml", "<a xmlns=''>$1</a>", xpath("//t"), XML, in_xml, "<a><t>1</t><t>2</t></a>"),
        ("xml", "<a xmlns=''>\n <b>$1</b>\n</a>", xpath("//none"), XML, in_xml, "<a><b></b></a>"),
        ("xml", "<a xmlns=''>$1</a>", "<arg value='x &lt; y'/>".into(), XML, in_xml, "<a>x &lt; y</a>"),
        ("json", r#"{"a":$1}"#, json("$.arr"), JSON, in_json, r#"{"a":[1,{"z":2}]}"#),
        ("json", r#"{"a":"$1"}"#, json("$.info"), JSON, in_json, r#"{"a":"[INFO] \"x\""}"#),
        ("json", r#"{"a":$1}"#, json("$.num"), JSON, in_json, r#"{"a":1.5}"#),
        ("json", r#"{"a":"$1"}"#, json("$.none"), JSON, in_json, r#"{"a":""}"#),
        ("json", r#"{"a":$1}"#, xpath("//k"), XML, in_xml, r#"{"a":{"k":{"m":5}}}"#),
        ("json", r#"{"a":$1}"#, xpath("//t"), XML, in_xml, r#"{"a":{"t":[1,2]}}"#),
        ("json", r#"{"a":"$1"}"#, xpath("//u"), XML, in_xml, r#"{"a":"a\"b&c"}"#),
        ("json", r#"{"a":$1}"#, "<arg value='{&quot;k&quot;:1}'/>".into(), XML, in_xml, r#"{"a":{"k":1}}"#),
        (
            "json",
            r#"{"a":"$1"}"#,
            "<arg literal='true' value='{&quot;k&quot;:1}'/>".into(),
            XML,
            in_xml,
            r#"{"a":"{\"k\":1}"}"#,
        ),
        (
            "json",
            r#"{"a":"$1"}"#,
            "<arg value='x &amp; &quot;y&quot;'/>".into(),
            XML,
            in_xml,
            r#"{"a":"x & \"y\""}"#,
        ),
        ("json", r#"{"a":"$1"}"#, json("$.obj"), JSON, in_json, r#"{"a":"{\"p\":1}"}"#),
        ("json", r#"{"a":"x $1"}"#, xpath("//k"), XML, in_xml, r#"{"a":"x {\"k\":{\"m\":5}}"}"#),
        (
            "json",
            r#"{"a":[$1],"b":"$1"}"#,
            "<arg value='{&quot;k&quot;:1}, {&quot;k&quot;:2}'/>".into(),
            XML,
            in_xml,
            r#"{"a":[{"k":1}, {"k":2}],"b":"{\"k\":1}, {\"k\":2}"}"#,
        ),
        (
            "json",
            r#"{"a":[$1],"b":{$1},"c":$1}"#,
            xpath("//none"),
            XML,
            in_xml,
            r#"{"a":[],"b":{},"c":null}"#,
        ),
        ("json", " ", String::new(), XML, in_xml, "{}"),
        ("json", "$1", xpath("//none"), XML, in_xml, "{}"),
        ("text", " $1-$1 ", xpath("string(//v/@at)"), XML, in_xml, "7-7"),
    ] {
        // What was taken out of the message brings the namespaces along that it had there.
        let made =
            made(media, format, &arg, headers, body).map(|made| flow::testing::without_envelope(&made));
        assert_eq!(made.as_deref(), Ok(out), "{media} {format} {arg}");
    }
}

#[test]
fn expressions_are_filled_in_as_the_place_wants_them() {
    let body = r#"{"id":"A7","q":"say \"hi\"\n","o":{"x":1,"t":"a\"b"},"arr":[1,"b"],"nul":null,"d":1.50,"yes":true,"num":"12","xs":"<a>1</a>","list":"{\"k\":1},{\"k\":2}"}"#;
    for (media, format, wanted) in [
        (
            "json",
            r#"{"a":"${payload.id}","b":${payload.o},"c":${payload.d}}"#,
            r#"{"a":"A7","b":{"x":1,"t":"a\"b"},"c":1.5}"#,
        ),
        ("json", r#"{"a":"${payload.o}"}"#, r#"{"a":"{\"x\":1,\"t\":\"a\\\"b\"}"}"#),
        ("json", r#"{"a":"x ${payload.id} y ${payload.q}"}"#, r#"{"a":"x A7 y say \"hi\"\n"}"#),
        (
            "json",
            r#"{"a":"${payload.nul}","b":${payload.nul},"c":${payload.none},"d":"${payload.none}"}"#,
            r#"{"a":"","b":null,"c":null,"d":""}"#,
        ),
        (
            "json",
            r#"{"a":${payload.id},"b":${payload.num},"c":${payload.yes}}"#,
            r#"{"a":"A7","b":12,"c":true}"#,
        ),
        (
            "json",
            r#"{"a":"${payload.yes ? "yes" : "no"}","b":"${payload.id + "}"}"}"#,
            r#"{"a":"yes","b":"A7}"}"#,
        ),
        ("json", r#"{"a":"$1","b":"${payload.id}"}"#, r#"{"a":"arg","b":"A7"}"#),
        (
            "json",
            r#"{"a":[${payload.none}],"b":{ ${payload.none} },"c":[1,${payload.none}]}"#,
            r#"{"a":[],"b":{  },"c":[1,null]}"#,
        ),
        ("json", r#"{"a":[${payload.list}]}"#, r#"{"a":[{"k":1},{"k":2}]}"#),
        (
            "json",
            r#"{"a":${xpath('//o')},"b":"${xpath('//id')}"}"#,
            r#"{"a":{"o":{"x":1,"t":"a\"b"}},"b":"A7"}"#,
        ),
        (
            "xml",
            "<a xmlns='' v='${payload.id}' w='${payload.d &gt; 1}'>${payload.o}</a>",
            "<a v=\"A7\" w=\"true\"><x>1</x><t>a\"b</t></a>",
        ),
        (
            "xml",
            "<a xmlns='' v='${payload.o}'>${payload.nul}${payload.none}${payload.arr[0]}</a>",
            "<a v=\"{&quot;x&quot;:1,&quot;t&quot;:&quot;a\\&quot;b&quot;}\">1</a>",
        ),
        (
            "xml",
            "<a xmlns=''>${payload.xs}|${string(payload.xs)}|${xpath('//x')}</a>",
            "<a>&lt;a&gt;1&lt;/a&gt;|<a>1</a>|1</a>",
        ),
        ("text", "t ${payload.id} ${payload.o} ${payload.none}.", "t A7 {\"x\":1,\"t\":\"a\\\"b\"} ."),
    ] {
        let made = made(media, format, "<arg value='arg'/>", JSON, body)
            .map(|made| flow::testing::without_envelope(&made));
        assert_eq!(made.as_deref(), Ok(wanted), "{media} {format}");
    }
}

#[test]
fn a_wrong_expression_in_a_template_is_found_when_loading_or_faults() {
    for format in ["${paylod.x}", "${payload.}", "${1 +}"] {
        let text = format!("<payloadFactory media-type='text'><format>{format}</format></payloadFactory>");
        let tested = testing::main(&crate::registry(testing::endpoints), &text);
        assert!(
            tested.reports("cannot be evaluated: each message faults here"),
            "{format} {:?}",
            tested.found
        );
    }
    let text = "<payloadFactory media-type='text'><format key=\"{concat('k', '')}\"/></payloadFactory>\
        <!--top--><localEntry key='k'>${paylod.x}</localEntry>";
    let tested = testing::main(&crate::registry(testing::endpoints), text);
    let fault = tested.run(JSON, "{}").fault();
    assert!(fault.as_ref().is_some_and(|fault| fault.contains("did you mean `payload`?")), "{fault:?}");
}

#[test]
fn a_placeholder_without_argument_ends_the_filling_in() {
    let arg = "<arg value='v'/>";
    for (format, out) in [
        ("$1$1", "vv"),
        ("$1 $2 $1", "v $2 $1"),
        ("$0", "$0"),
        ("a$ $x $", "a$ $x $"),
        ("$99999999999999999999", "$99999999999999999999"),
    ] {
        assert_eq!(made("text", format, arg, XML, "<a/>").as_deref(), Ok(out), "{format}");
    }
}

#[test]
fn an_envelope_replaces_the_envelope_and_headers_stay_else() {
    let soap = [("Content-Type", "text/xml"), ("SOAPAction", "x")];
    let message = "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Header><h/></s:Header><s:Body><a/></s:Body></s:Envelope>";
    let whole = "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body><n xmlns=''/></s:Body></s:Envelope>";
    for (format, has_header) in [("<n xmlns=''/>", true), (whole, false)] {
        let text = format!("<payloadFactory><format>{format}</format></payloadFactory><respond/>");
        let tested = testing::main(&crate::registry(testing::endpoints), &text);
        let response = tested.ask("POST", "/", &soap, message);
        assert!(response.body.contains("<n") && !response.body.contains("<a"), "{response:?}");
        assert_eq!(response.body.contains("<h"), has_header, "{response:?}");
    }
}

#[test]
fn the_content_type_follows_the_media_type() {
    for (media, format, sent, became) in [
        ("json", "{}", XML, "application/json"),
        ("text", "x", XML, "text/plain"),
        ("xml", "<a/>", JSON, "application/xml"),
        ("xml", "<a/>", &[("Content-Type", "text/xml; charset=UTF-8")][..], "text/xml; charset=UTF-8"),
        ("xml", "<a/>", &[][..], "application/xml"),
    ] {
        let text = format!("<payloadFactory media-type='{media}'><format>{format}</format></payloadFactory>");
        let tested = testing::main(&crate::registry(testing::endpoints), &text);
        let end = tested.run(sent, "");
        assert_eq!(end.context.headers.get("Content-Type"), Some(became), "{media} {sent:?}");
    }
}

#[test]
fn what_cannot_be_made_faults() {
    for (media, format, args, body, says) in [
        ("xml", "$1", "<arg value='x'/>", "<a/>", "not a valid XML payload"),
        ("xml", "", "", "<a/>", "not a valid XML payload"),
        (
            "xml",
            "<a xmlns='' b='$1'/>",
            "<arg expression='//k'/>",
            "<a><k><l/></k></a>",
            "not a valid XML payload",
        ),
        ("json", "oops", "", "<a/>", "not a valid JSON payload"),
        ("xml", "<a>$1</a>", "<arg expression='//k'/>", "<a", "not well-formed"),
        ("xml", "<a>$1</a>", "<arg evaluator='json' expression='$.a'/>", "<a", "not well-formed"),
    ] {
        let fault = made(media, format, args, XML, body);
        assert!(fault.as_ref().is_err_and(|fault| fault.contains(says)), "{media} {format}: {fault:?}");
    }
    let text = "<payloadFactory><format key='{$ctx:none}'/></payloadFactory>";
    let tested = testing::main(&crate::registry(testing::endpoints), text);
    assert!(tested.run(XML, "<a/>").fault().is_some_and(|fault| fault.contains("not found")));
    for (text, says) in [
        ("<payloadFactory/>", "needs a `format`"),
        ("<payloadFactory template-type='freemarker'><format>${</format></payloadFactory>", "bad-template"),
        ("<payloadFactory><format>x</format><args><arg/></args></payloadFactory>", "needs a value"),
        (
            "<payloadFactory media-type='text'><format>$2</format><args><arg value='1'/></args></payloadFactory>",
            "there is no such argument",
        ),
    ] {
        let tested = testing::main(&crate::registry(testing::endpoints), text);
        assert!(tested.reports(says), "{text}: {:?}", tested.found);
    }
}

#[test]
fn templates_of_keys_are_found_when_the_configuration_loads_or_per_message() {
    for key in ["k", "{concat('k', '')}"] {
        let text = format!(
            "<payloadFactory media-type='json'><format key=\"{key}\"/><args><arg value='1'/></args></payloadFactory>\
            <!--top--><localEntry key='k'><![CDATA[{{\"v\":$1}}]]></localEntry>"
        );
        let tested = testing::main(&crate::registry(testing::endpoints), &text);
        assert_eq!(tested.run(XML, "<a/>").payload(), r#"{"v":1}"#, "{key} {:?}", tested.found);
    }
}

/// An entry that was written as text is a text, and one that is XML is inserted as markup like any other.
#[test]
fn text_entries_that_look_like_xml_are_inserted_whole() {
    let text = "<payloadFactory><format><f xmlns=''>$1</f></format><args><arg expression=\"get-property('k')\"/></args></payloadFactory>\
        <!--top--><localEntry key='k'><![CDATA[<raw>a&amp;b</raw>]]></localEntry>";
    let tested = testing::main(&crate::registry(testing::endpoints), text);
    assert_eq!(tested.run(XML, "<a/>").payload(), "<f><raw>a&amp;b</raw></f>", "{:?}", tested.found);
}
