//! Scripts on a message of wood.

use crate::{Argument, Failure, Host, Limits, Returned, Script, run};
use message::{Value, XmlValue};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use xml::{Document, NodeId, ParseOptions};

#[derive(Default)]
struct Wood {
    properties: BTreeMap<String, Value>,
    payload: String,
    json: Option<String>,
    texts: BTreeMap<String, String>,
    flags: BTreeMap<String, bool>,
    log: Vec<String>,
}

struct Shared(Arc<Mutex<Wood>>);

fn value_of(text: &str) -> Option<XmlValue> {
    let document = Document::parse(text.as_bytes().to_vec(), &ParseOptions::default()).ok()?;
    Some(XmlValue { nodes: vec![document.document_element()?], document: Arc::new(document) })
}

impl Host for Shared {
    fn property(&mut self, scope: &str, name: &str) -> Result<Option<Value>, String> {
        if scope == "nowhere" {
            return Err("there is no scope `nowhere`".into());
        }
        Ok(self.0.lock().unwrap().properties.get(&format!("{scope}:{name}")).cloned())
    }

    fn set_property(&mut self, scope: &str, name: &str, value: Option<Value>) -> Result<(), String> {
        let mut wood = self.0.lock().unwrap();
        match value {
            Some(value) => wood.properties.insert(format!("{scope}:{name}"), value),
            None => wood.properties.remove(&format!("{scope}:{name}")),
        };
        Ok(())
    }

    fn names(&mut self, scope: &str) -> Vec<String> {
        let wood = self.0.lock().unwrap();
        wood.properties
            .keys()
            .filter_map(|key| key.strip_prefix(&format!("{scope}:")).map(str::to_owned))
            .collect()
    }

    fn payload(&mut self) -> Result<Option<XmlValue>, String> {
        Ok(value_of(&self.0.lock().unwrap().payload))
    }

    fn set_payload(&mut self, document: &Document, element: NodeId) -> Result<(), String> {
        self.0.lock().unwrap().payload = xml::to_string(document, element);
        Ok(())
    }

    fn json(&mut self) -> Result<Option<String>, String> {
        Ok(self.0.lock().unwrap().json.clone())
    }

    fn set_json(&mut self, text: String, _: bool) -> Result<(), String> {
        self.0.lock().unwrap().json = Some(text);
        Ok(())
    }

    fn envelope(&mut self) -> Result<XmlValue, String> {
        let payload = format!("<Envelope><Body>{}</Body></Envelope>", self.0.lock().unwrap().payload);
        value_of(&payload).ok_or_else(|| "no payload".to_owned())
    }

    fn set_envelope(&mut self, document: &Document, element: NodeId) -> Result<(), String> {
        self.set_payload(document, element)
    }

    fn add_header(&mut self, must: bool, document: &Document, element: NodeId) -> Result<(), String> {
        let text = format!("{must} {}", xml::to_string(document, element));
        self.0.lock().unwrap().texts.insert("header".into(), text);
        Ok(())
    }

    fn text(&mut self, what: &str) -> Option<String> {
        self.0.lock().unwrap().texts.get(what).cloned()
    }

    fn set_text(&mut self, what: &str, text: Option<String>) {
        let mut wood = self.0.lock().unwrap();
        match text {
            Some(text) => wood.texts.insert(what.to_owned(), text),
            None => wood.texts.remove(what),
        };
    }

    fn flag(&mut self, what: &str) -> bool {
        self.0.lock().unwrap().flags.get(what).copied().unwrap_or(false)
    }

    fn set_flag(&mut self, what: &str, value: bool) {
        self.0.lock().unwrap().flags.insert(what.to_owned(), value);
    }

    fn entry(&mut self, key: &str) -> Option<Value> {
        (key == "e").then(|| Value::from("entry"))
    }

    fn log(&mut self, level: &str, text: &str) {
        self.0.lock().unwrap().log.push(format!("{level} {text}"));
    }

    fn java(&mut self, what: &str, arguments: &[String]) -> Result<String, String> {
        match what {
            "uuid" => Ok("00000000-0000-4000-8000-000000000000".to_owned()),
            // Base64 of ASCII, as far as the tests need it.
            "encode" if arguments[1] == "ab" => Ok("YWI=".to_owned()),
            "decode" if arguments[1] == "YWI=" => Ok("ab".to_owned()),
            "format" => Ok(arguments.join("|")),
            _ => Err(format!("no {what}")),
        }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[test]
fn what_is_changed_in_the_envelope_is_changed_in_the_message() {
    let first = "mc.getEnvelope().getBody().getFirstElement()";
    for (text, payload) in [
        ("var n = FIRST; n.setText(n.getText() * 2)", "<Envelope><Body><n>42</n></Body></Envelope>"),
        ("FIRST.detach()", "<Envelope><Body/></Envelope>"),
        (
            "FIRST.insertSiblingAfter(<m/>); FIRST.addAttribute('k', 'v', null)",
            "<Envelope><Body><n k=\"v\">21</n><m/></Body></Envelope>",
        ),
        (
            "FIRST.setText('7'); FIRST.setText(FIRST.getText() + '8')",
            "<Envelope><Body><n>78</n></Body></Envelope>",
        ),
        // What the message has got meanwhile is not undone.
        ("var n = FIRST; n.setText('7'); mc.setPayloadXML(<p/>); n.setText('8')", "<p/>"),
        ("FIRST.setText('7'); throw 'late'", "<Envelope><Body><n>7</n></Body></Envelope>"),
        // Reading changes nothing, and the others are copies.
        ("FIRST.getText()", "<n>21</n>"),
        ("mc.getEnvelopeXML().Body.n = 7; mc.getPayloadXML().setText('7')", "<n>21</n>"),
    ] {
        let wood = Arc::new(Mutex::new(Wood { payload: "<n>21</n>".into(), ..Wood::default() }));
        let _ = on(&wood, &text.replace("FIRST", first), &Limits::default());
        assert_eq!(wood.lock().unwrap().payload, payload, "{text}");
    }
}

fn on(wood: &Arc<Mutex<Wood>>, text: &str, limits: &Limits) -> Result<Returned, Failure> {
    let script = Script::compile(&[text], None)?;
    let (host, result) = run(&script, Box::new(Shared(Arc::clone(wood))), &[], limits);
    assert!(host.is_some());
    result
}

/// The property `r` after a script on `<a>…</a>`.
fn result(text: &str) -> String {
    let payload = "<a i='1'><b>x</b><b k='2'>y</b><n:c xmlns:n='u'>z</n:c><name>N</name></a>".to_owned();
    let wood = Wood { payload, json: Some(r#"{"n":4,"l":[1,2.5]}"#.into()), ..Wood::default() };
    let wood = Arc::new(Mutex::new(wood));
    if let Err(failure) = on(&wood, text, &Limits::default()) {
        return format!("{} {:?}", failure.message, failure.place.map(|place| (place.line, place.column)));
    }
    let wood = wood.lock().unwrap();
    wood.properties.get("default:r").map_or_else(|| "nothing".to_owned(), |value| format!("{value:?}"))
}

#[test]
fn values_keep_their_types() {
    for (text, expected) in [
        ("mc.setProperty('r', 5);", "Integer(5)"),
        ("mc.setProperty('r', 10 / 2);", "Integer(5)"),
        ("mc.setProperty('r', 5.5);", "Double(5.5)"),
        ("mc.setProperty('r', 1e300);", "Double(1e300)"),
        ("mc.setProperty('r', 'x');", "String(\"x\")"),
        ("mc.setProperty('r', true);", "Boolean(true)"),
        ("mc.setProperty('r', null);", "nothing"),
        ("mc.setProperty('r', {a: [1]});", "Json(Object {\"a\": Array [Number(1)]})"),
        ("mc.setProperty('r', 1); mc.removeProperty('r');", "nothing"),
        ("mc.setProperty('r', mc.getProperty('none') === null);", "Boolean(true)"),
        ("mc.setProperty('q', {a: 2}); mc.setProperty('r', mc.getProperty('q').a);", "Integer(2)"),
        (
            "mc.setProperty('q', {a: [2]}); mc.setProperty('r', JSON.parse(mc.getProperty('q')).a[0]);",
            "Integer(2)",
        ),
        (
            "mc.setProperty('q', [1, {a: 2}]); var q = mc.getProperty('q'); q.push(3); mc.setProperty('r', '' + q);",
            "String(\"[1,{\\\"a\\\":2},3]\")",
        ),
        (
            "mc.setProperty('q', {a: 2}); var r = []; for (var key in mc.getProperty('q')) r.push(key); mc.setProperty('r', r);",
            "Json(Array [String(\"a\")])",
        ),
        (
            "mc.setProperty('q', {toString: 1}); mc.setProperty('r', mc.getProperty('q').toString);",
            "Integer(1)",
        ),
        (
            "mc.setVariable('v', 3); mc.setProperty('r', mc.getVariable('v') + mc.getVariableKeySet()[0]);",
            "String(\"3v\")",
        ),
        ("mc.setProperty('r', mc.getPayloadJSON().n * 2);", "Integer(8)"),
        (
            "mc.setPayloadJSON({a: 10 / 2, b: 0.5}); mc.setProperty('r', mc.getJsonText());",
            "String(\"{\\\"a\\\":5,\\\"b\\\":0.5}\")",
        ),
        ("mc.setPayloadJSON('x'); mc.setProperty('r', mc.getJsonText());", "String(\"\\\"x\\\"\")"),
        (
            "mc.setProperty('r', mc.getEntry('e').equals('entry') && 'abc'.contains('b') && !'a'.isEmpty());",
            "Boolean(true)",
        ),
        (
            "mc.setTo('http://x'); mc.setReplyTo(mc.getTo()); mc.setProperty('r', mc.getReplyTo().getAddress());",
            "String(\"http://x\")",
        ),
        (
            "mc.setResponse(true); mc.setProperty('r', mc.isResponse() && !mc.isFaultResponse());",
            "Boolean(true)",
        ),
        (
            "mc.setProperty('r', typeof Promise + typeof async function () {});",
            "String(\"functionfunction\")",
        ),
    ] {
        assert_eq!(result(text), expected, "{text}");
    }
}

#[test]
fn xml_is_used_as_in_e4x() {
    for (text, expected) in [
        ("mc.getPayloadXML().b[1].toString()", "y"),
        ("mc.getPayloadXML()..*::c.toString()", "z"),
        ("mc.getPayloadXML().c.length()", "0"),
        ("mc.getPayloadXML().b.length()", "2"),
        ("mc.getPayloadXML().@i + mc.getPayloadXML().b[1].@k", "12"),
        ("mc.getPayloadXML().name.toString() + mc.getPayloadXML().name.name()", "Nname"),
        ("mc.getPayloadXML().b[0] == 'x'", "true"),
        (
            "(function () { var s = ''; for each (var b in mc.getPayloadXML().b) { s += b + ','; } return s; })()",
            "x,y,",
        ),
        ("(function () { var s = ''; for (var i in mc.getPayloadXML().b) { s += i; } return s; })()", "01"),
        ("var ns = new Namespace('u'); mc.getPayloadXML().ns::c.localName()", "c"),
        ("mc.getPayloadXML().b", "<b>x</b>\n<b k=\"2\">y</b>"),
        (
            "var v = '<&'; <m:a xmlns:m='u' k={v}><b>{v}</b>{<c/>}</m:a>.toXMLString()",
            "<m:a xmlns:m=\"u\" k=\"&lt;&amp;\"><b>&lt;&amp;</b><c/></m:a>",
        ),
        (
            "var x = <a/>; x.b = 3; x.@c = 'd'; x.e.f = <g/>; x.appendChild(<h/>); delete x.b; x.toXMLString()",
            "<a c=\"d\"><e><g/></e><h/></a>",
        ),
        ("new XML('<a><b>1</b></a>').b * 2", "2"),
        (
            "var r = <r/>; for (var i = 0; i < 2; i++) { r.l += <l><i>{i}</i></l>\n}; r.toXMLString()",
            "<r><l><i>0</i></l><l><i>1</i></l></r>",
        ),
        (
            "var r = <r><l>0</l></r>; r.l += <l>1</l> + <l>2</l>; r.toXMLString()",
            "<r><l>0</l><l>1</l><l>2</l></r>",
        ),
        ("var x = <a/> + <b/>; x += <c/>; x.length()", "3"),
        ("var s = 'a' + 1; s += <b>c</b>; s + <d>e</d>", "a1ce"),
        ("var r = <r><l>0</l></r>; (r.l[0] + <l>1</l>).length()", "2"),
        ("var r = <r><l/><l/></r>; r.l = r.l + <m/> + <l/>; r.toXMLString()", "<r><l/><l/><m/><l/></r>"),
        ("mc.getPayloadXML().b.(@k == 2).toString()", "y"),
        ("var items = <r><i><p>2</p></i><i a='1'><p>5</p><q>x</q></i></r>.i; items.(p > 3).@a", "1"),
        ("var x = <r><i><p>2</p></i><i><p>5</p><q>x</q></i></r>; x.i.(q == 'x').p", "5"),
        ("var least = 3, x = <r><i>2</i><i>4</i></r>; x.i.(text() > least).length()", "1"),
        ("var x = <r><a/><b/></r>; x.*.(localName() == 'b').toXMLString()", "<b/>"),
        (
            "function has(a, b) { return String(a).indexOf(b) >= 0; } var x = <r><i><n>ab</n></i><i><n>c</n></i></r>; x..i.(has(n, 'b')).n",
            "ab",
        ),
        (
            "var x = <r><o><l k='1'/></o><o><l k='2'/></o></r>; x.o.(l.(@k == 2).length() > 0).toXMLString()",
            "<o><l k=\"2\"/></o>",
        ),
        (
            "var ns = new Namespace('u'), x = <r xmlns:m='u'><i m:k='1'><m:a>2</m:a></i></r>; x.i.(ns::a == 2 && *::a == 2 && @ns::k == 1).length()",
            "1",
        ),
        (
            "var x = <r><i><p>1</p></i><i><p>2</p></i></r>; x.i.(p == 2).p = 9; x.toXMLString()",
            "<r><i><p>1</p></i><i><p>9</p></i></r>",
        ),
        ("var x = <r><i><p>1</p></i></r>; x.i.(p == 7).length()", "0"),
        ("var x = <r><i><p>1</p></i></r>; (<a/> + x.i.(p == 1)).length()", "2"),
        ("JSON.stringify({x: mc.getPayloadXML().b[0]})", "{\"x\":\"x\"}"),
        ("mc.getEnvelope().getBody().getFirstElement().getLocalName()", "a"),
        // What the bus keeps is an element of Axiom: as a text it is its markup.
        ("mc.setProperty('q', <a>1</a>); String(mc.getProperty('q'))", "<a>1</a>"),
        ("mc.setProperty('q', <a>1</a>); '' + mc.getProperty('q')", "<a>1</a>"),
        ("mc.setProperty('q', <a>1</a>); mc.getProperty('q').toString()", "<a>1</a>"),
        ("mc.setProperty('q', <a><b>1</b></a>); `${mc.getProperty('q').getFirstElement()}`", "<b>1</b>"),
        (
            "mc.setProperty('q', <a><b>1</b></a>); '' + mc.getProperty('q').getChildElements().next()",
            "<b>1</b>",
        ),
        ("mc.setProperty('q', <a><b>1</b></a>); mc.getProperty('q').getFirstElement().getText() + 2", "12"),
        ("mc.setProperty('q', <a>1</a>); mc.getProperty('q') == '1'", "false"),
        ("mc.setProperty('q', <a><b>1</b></a>); new XML(mc.getProperty('q')).b + 2", "12"),
        ("mc.setProperty('q', <a><b>1</b></a>); mc.getProperty('q').b + 2", "12"),
        ("mc.setVariable('q', <a>1</a>); '' + mc.getVariable('q')", "<a>1</a>"),
        ("'' + mc.parseXml('<a>1</a>')", "<a>1</a>"),
        ("String(mc.getEnvelope()).substring(0, 9)", "<Envelope"),
        // Axiom, as scripts for Nashorn call it.
        (
            "var t = mc.getEnvelope().getBody().getFirstElement().getFirstElement().getFirstOMChild(); t.setBinary(true); t.getText()",
            "x",
        ),
        (
            "var all = '', i = mc.getPayloadXML().getChildElements(); while (i.hasNext()) all += i.next().getLocalName(); all",
            "bbcname",
        ),
        (
            "var all = '', i = mc.getPayloadXML().getChildrenWithName(new QName('b')); while (i.hasNext()) all += i.next().getText(); all",
            "xy",
        ),
        (
            "var x = <a xmlns='u'><b/></a>; x.getQName().getLocalPart() + x.getQName().getNamespaceURI() + x.getFirstElement().getParent().getNamespaceURI()",
            "auu",
        ),
        (
            "var x = <a/>; x.addAttribute('k', 'v', null); x.addChild(<b/>); x.toXMLString()",
            "<a k=\"v\"><b/></a>",
        ),
        (
            "var x = <a>x<b>y</b>z</a>; x.getText() + '|' + x.b.getText() + '|' + x.getTextContent()",
            "xz|y|xyz",
        ),
        ("var x = <a><b/></a>; x.getText() + '|' + x.b.getText()", "|"),
        // Axiom answers with null where there is nothing.
        (
            "for (var n = mc.getPayloadXML().getFirstElement(), all = ''; n != null; n = n.getNextOMSibling()) all += n.getLocalName(); all",
            "bbcname",
        ),
        (
            "var x = <a/>; '' + x.getFirstElement() + x.getFirstOMChild() + x.getFirstChildWithName(new QName('k'))",
            "nullnullnull",
        ),
        (
            "var Q = Java.type('javax.xml.namespace.QName'), x = <a k='1'><b/></a>; x.getAttributeValue(new Q('k')) + x.getAttribute(new Q('k')).getAttributeValue() + x.getAttributeValue(new Q('m')) + x.getFirstChildWithName(new Q('', 'b')).getLocalName()",
            "11nullb",
        ),
        ("mc.parseXml('<a><b/></a>').getDocumentElement().getTagName()", "a"),
        ("mc.getPayloadXML().getElementsByTagName('n:c').item(0).getTextContent()", "z"),
        (
            "var x = <a k='1'><b/>t<c/></a>; x.c.insertSiblingBefore(<d/>); x.c.insertSiblingAfter('u'); x.removeAttribute('k'); x.toXMLString()",
            "<a><b/>t<d/><c/>u</a>",
        ),
        (
            "var x = <a><b/>t<c/></a>; x.b.getNextOMSibling().getText() + x.c.getPreviousOMSibling().getText()",
            "tt",
        ),
        ("var x = <a><b/><c/></a>; x.b.detach(); x.toXMLString()", "<a><c/></a>"),
        (
            "var x = <n:a xmlns:n='u'><n:b/></n:a>; x.getNamespace().getNamespaceURI() + x.getNamespace().getPrefix() + x.getChildrenWithLocalName('b').next().getLocalName()",
            "unb",
        ),
        ("mc.getEnvelope().getBody().hasFault()", "false"),
        // A script that only has the message read, before an endpoint that may have to send it twice.
        ("mc.getEnvelope().buildWithAttachments(); mc.getEnvelope().getBody().isComplete()", "true"),
    ] {
        let (before, last) = text.rsplit_once("; ").filter(|_| !text.starts_with('(')).unwrap_or(("", text));
        let script = format!("{before};\nmc.setProperty('r', String({last}));");
        assert_eq!(result(&script), format!("String({expected:?})"), "{text}");
    }
    let wood = Arc::new(Mutex::new(Wood {
        payload: "<q xmlns='u'><symbol>IBM</symbol></q>".into(),
        ..Wood::default()
    }));
    let text = "function transform(mc) {
        var symbol = mc.getPayloadXML()..*::symbol.toString();
        mc.setPayloadXML(
            <m:getQuote xmlns:m=\"http://services.samples\">
                <m:symbol>{symbol}</m:symbol>
            </m:getQuote>);
        mc.addHeader(true, <h/>);
    }";
    let script = Script::compile(&[text], Some("transform")).unwrap();
    run(&script, Box::new(Shared(Arc::clone(&wood))), &[], &Limits::default()).1.unwrap();
    let wood = wood.lock().unwrap();
    assert!(wood.payload.contains("<m:symbol>IBM</m:symbol>"), "{}", wood.payload);
    assert_eq!(wood.texts.get("header").map(String::as_str), Some("true <h/>"));
}

#[test]
fn the_value_of_a_script_counts() {
    let wood = Arc::new(Mutex::new(Wood::default()));
    for (text, stop) in [
        ("false;", true),
        ("var a = 1; a == 2", true),
        ("if (true) { false }", true),
        ("true", false),
        ("0", false),
        ("", false),
        ("null", false),
        ("mc.setProperty('a', 1);", false),
        ("mc.setProperty('a', 1); var b = 2;", false),
        ("'false'", false),
    ] {
        assert_eq!(on(&wood, text, &Limits::default()).unwrap().stop, stop, "{text}");
    }
    let script = Script::compile(
        &["function help(x) { return x + 1; }", "function f(mc, a, b) { return {a: help(a), b: b.c}; }"],
        Some("f"),
    )
    .unwrap();
    let arguments = [Argument::Number(2.0), Argument::Json("{\"c\":true}".into())];
    let (_, result) = run(&script, Box::new(Shared(wood)), &arguments, &Limits::default());
    assert_eq!(result.unwrap().value.unwrap().to_string(), "{\"a\":3,\"b\":true}");
}

/// Nothing interrupts what runs through the holes of an array, or through what calls itself as long as one.
#[test]
fn lengths_that_a_message_brings_have_a_bound() {
    let begun = std::time::Instant::now();
    for what in [
        "Array(4294967295).join('x')",
        "(a => { a.length = 4294967295; return a + ''; })([])",
        "Array.prototype.join.call(JSON.parse('{\"length\": 9007199254740991}'), '')",
        "Array.prototype.slice.call({length: 9e15})",
        "Array(4294967295).indexOf(1)",
        "Array(4294967295).forEach(print)",
        "Array(4294967295).sort()",
        "[].concat(1, Array(4294967295))",
    ] {
        let found = result(&format!("mc.setProperty('r', '' + ({what}));"));
        assert!(found.contains("more than 33554432 elements"), "{what}: {found}");
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    for (what, wanted) in [
        ("Array(4).join('x')", "xxx"),
        ("[3, 1, 2].sort().concat([4], 5).map(n => n * 2).join()", "2,4,6,8,10"),
        ("[1, [2, [3]]].flat(Infinity) + ''", "1,2,3"),
        ("Array.prototype.slice.call('abc', 1).reverse().join('')", "cb"),
        ("[1, 2, 3].reduce((a, b) => a + b)", "6"),
        ("[].map.name + Object.keys([]).length", "map0"),
        ("(() => { try { [].join.call(null) } catch (e) { return e.constructor.name } })()", "TypeError"),
    ] {
        let found = result(&format!("mc.setProperty('r', '' + ({what}));"));
        assert!(found.contains(wanted), "{what}: {found}");
    }
}

#[test]
fn failures_name_their_place() {
    for (text, expected) in [
        (
            "var a = 1;\n  nothing.x;\nmc.setProperty('r', 1);",
            "ReferenceError: nothing is not defined Some((2, 3))",
        ),
        ("a = nothing;\nmc.setProperty('r', 1);", "ReferenceError: nothing is not defined Some((1, 5))"),
        ("\n\nthrow new Error('own');", "own Some((3, 11))"),
        ("throw 'broken';", "broken None"),
        ("throw {code: 3};", "{\"code\":3} None"),
        ("mc.getProperty('a', 'nowhere');", "there is no scope `nowhere`"),
        ("mc.nonsense();", "TypeError: `mc.nonsense` does not exist here"),
        ("mc.setPayloadXML('<a>');", "it is not well-formed XML"),
        ("mc.setPayloadXML(null);", "TypeError: there is no XML"),
        ("mc.setPayloadXML(5);", "the payload must be an XML element"),
        ("<a>{nothing}</a>.toString();", "ReferenceError"),
        ("mc.x = 3;", "TypeError: `mc.x` cannot be set"),
        ("mc.getSequence('a');", "TypeError: `mc.getSequence` is not available"),
    ] {
        let found = result(text);
        assert!(found.starts_with(expected), "{text}: {found}");
    }
}

#[test]
fn classes_of_java() {
    for (text, expected) in [
        ("java.util.UUID.randomUUID().toString().length", "36"),
        ("var l = new java.util.ArrayList(); l.add('a'); l.add('b'); l.get(1) + l.size() + l", "b2[a, b]"),
        (
            "importPackage(java.util); var m = new HashMap(); m.put('k', 1); m.get('k') + '' + m.get('x')",
            "1null",
        ),
        (
            "importClass(Packages.java.lang.StringBuilder); '' + new StringBuilder('a').append(1).reverse()",
            "1a",
        ),
        ("Java.type('java.util.Base64').getEncoder().encodeToString('ab'.getBytes('UTF-8'))", "YWI="),
        ("'' + new java.lang.String(java.util.Base64.getDecoder().decode('YWI='))", "ab"),
        (
            "with (new JavaImporter(java.util, java.text)) { new SimpleDateFormat('y').format(new java.util.Date(5)) }",
            "1970",
        ),
        ("java.net.URLEncoder.encode('a b&', 'UTF-8')", "a+b%26"),
        ("try { java.net.URLEncoder.encode('a', 'none') } catch (e) { 'thrown' }", "thrown"),
        (
            "var f = new java.util.Formatter(); f.format('%02x', 10).format('-%s', 'b'); f.close(); f.toString()",
            "0a-b",
        ),
        ("java.lang.String.format('%08x', -2) + java.lang.String.format('%x', 255)", "fffffffeff"),
        ("try { throw new java.lang.RuntimeException('x') } catch (e) { e.getMessage() }", "x"),
        ("java.lang.Thread.sleep(1); java.lang.Math.max(1, 2)", "2"),
        ("typeof java.lang.System.currentTimeMillis()", "number"),
        ("Packages.org.apache.commons.codec.binary.Base64.encodeBase64String('ab'.getBytes())", "YWI="),
        (
            "'' + new Packages.org.apache.commons.codec.binary.Base64().encodeAsString('ab'.getBytes())",
            "YWI=",
        ),
        (
            "var Hex = Packages.org.apache.commons.codec.binary.Hex; Hex.encodeHexString(Hex.decodeHex('00FF'.toCharArray())) + Hex.encodeHex([10], false).length",
            "00ff2",
        ),
        ("'' + 'a,b'.split(',') + 'a.b'.replace('.', '$$') + 'aa'.replaceAll('a', 'b')", "a,ba$bbb"),
        (
            "'' + new java.lang.Integer(5) + new java.lang.Boolean('true') + JSON.stringify({a: new java.lang.Double('1.5')})",
            "5true{\\\"a\\\":1.5}",
        ),
        (
            "try { java.lang.Integer.parseInt('x') } catch (e) { (e instanceof java.lang.IllegalArgumentException) + e.getMessage() }",
            "trueFor input string: ",
        ),
        (
            "var m = java.util.regex.Pattern.compile('(a+)(?<n>x)?b', java.util.regex.Pattern.CASE_INSENSITIVE).matcher('éAAb aXb'); var o = ''; while (m.find()) o += m.group(1) + m.group('n') + m.start() + m.end(2); o + m.groupCount()",
            "AAnull1-1aX572",
        ),
        (
            "java.util.regex.Pattern.matches('a.c', 'abc') + '' + java.util.regex.Pattern.compile('b').matcher('abc').matches()",
            "truefalse",
        ),
        (
            "var m = java.util.regex.Pattern.compile('(\\\\d)').matcher('a1b2'); var s = new java.lang.StringBuffer(); while (m.find()) m.appendReplacement(s, '<$1>'); m.appendTail(s); s.toString() + m.replaceAll('-')",
            "a<1>b<2>a-b-",
        ),
        ("java.util.regex.Pattern.compile('(')", "PatternSyntaxException"),
        ("java.util.regex.Pattern.compile('x').matcher('y').group()", "IllegalStateException"),
        ("org.apache.axiom.om.util.AXIOMUtil.stringToOM('<z><y>1</y></z>').getFirstElement().getText()", "1"),
        (
            "new javax.xml.namespace.QName('u', 'l').toString() + new javax.xml.namespace.QName('k').getLocalPart()",
            "{u}lk",
        ),
        ("java.util.concurrent.TimeUnit.SECONDS.toMillis(2)", "2000"),
        (
            "var x = new Packages.org.apache.axiom.om.xpath.AXIOMXPath('//p:b[. > 1]'); x.addNamespace('p', 'u'); var e = XML('<a xmlns=\"u\"><b>1</b><b>2</b></a>'); x.selectNodes(e).size() + x.selectSingleNode(e).getText() + x.booleanValueOf(e) + x.numberValueOf(e) + x",
            "12true2//p:b[. > 1]",
        ),
        ("mc.getXpathResult('//none').selectSingleNode(XML('<a/>'))", "null"),
        ("mc.getXpathResult('count(//b)').stringValueOf(XML('<a><b/><b/></a>'))", "2"),
        ("mc.getXpathResult('//b[')", "XPath"),
        ("mc.getXpathResult('//q:b').selectNodes(XML('<a/>'))", "`q` is not declared"),
        (
            "var f = Packages.org.apache.axiom.om.OMAbstractFactory.getOMFactory(); var n = f.createOMNamespace('u', 'p'); var e = f.createOMElement('a', n); var c = f.createOMElement(new javax.xml.namespace.QName('b')); c.setText('1'); e.addChild(c); e.addAttribute('k', 'v', null); e.addChild(f.createOMText('t')); '' + e",
            "<p:a xmlns:p=\\\"u\\\" k=\\\"v\\\"><b>1</b>t</p:a>",
        ),
        (
            "var S = Packages.org.apache.commons.lang3.StringUtils; S.isBlank(null) + S.leftPad('7', 3, '0') + S.substringBetween('a[b]c', '[', ']') + S.join(['a', 'b'], '-') + S.defaultString(null) + S.capitalize('ab') + S.countMatches('abab', 'a')",
            "true007ba-bAb2",
        ),
        ("Packages.org.apache.commons.lang.StringEscapeUtils.escapeXml('<\"&>')", "&lt;&quot;&amp;&gt;"),
        (
            "var u = new java.net.URI('http://u@h:81/p%20q?a=b%26#f'); u.getHost() + u.getPort() + u.getPath() + u.getRawQuery() + u.getFragment() + u.getScheme() + u",
            "h81/p qa=b%26fhttphttp://u@h:81/p%20q?a=b%26#f",
        ),
        ("new java.net.URI('http://a b')", "URISyntaxException"),
        (
            "var o = java.util.Optional; o.ofNullable(null).orElse('e') + o.of(1).map(function (x) { return x + 1; }).get() + o.empty().isPresent()",
            "e2false",
        ),
        ("java.util.Optional.empty().get()", "NoSuchElementException"),
        (
            "var m = java.util.regex.Pattern.compile('^a').matcher('bab'); m.region(1, 3); m.find() + '' + m.start() + m.regionStart() + m.regionEnd() + m.find()",
            "true113false",
        ),
        ("new java.util.ArrayList().nonsense()", "`java.util.ArrayList.nonsense` is not available here"),
        (
            "java.math.BigDecimal.prototype.leak = 1; java.lang.String.leak = 1; typeof new java.math.BigDecimal('1').toString.leak",
            "undefined",
        ),
        ("new java.io.File('a')", "`java.io.File` is not available here"),
        ("importClass(java.sql.Driver)", "`java.sql.Driver` is not available here"),
        ("Java.type('a.B')", "`a.B` is not available here"),
        ("java.lang.Integer.parseInt('1x')", "NumberFormatException"),
        ("java.lang.Thread.sleep(-1)", "IllegalArgumentException"),
        ("java.lang.Thread.sleep(1e9)", "sleeps at most"),
        ("java.util.HashMap.prototype.put = 1; new java.util.HashMap().put('a', 1); 'kept'", "kept"),
    ] {
        // Text for `eval` is not searched for what sleeps: the script names it.
        let found = result(&format!("var sleep; mc.setProperty('r', '' + eval({text:?}));"));
        assert!(found.contains(expected), "{text}: {found}");
    }
    // Names that were imported are gone with the script.
    assert!(result("mc.setProperty('r', typeof HashMap);").contains("undefined"));
}

#[test]
fn what_is_no_script_is_refused_with_its_place() {
    for (text, line, column, part) in [
        ("var a = 1;\nvar b = ;\n", 2, 9, "SyntaxError"),
        ("return false;", 1, 1, "return"),
        ("if (a {", 1, 7, "SyntaxError"),
        ("var s = 'open", 1, 9, "SyntaxError"),
        ("})(function () {", 1, 1, "SyntaxError"),
        ("\nfoo(", 2, 5, "SyntaxError"),
    ] {
        let failure = Script::compile(&[text], None).unwrap_err();
        let place = failure.place.unwrap();
        assert!(failure.message.contains(part), "{text}: {failure:?}");
        assert_eq!((place.line, place.column), (line, column), "{text}: {failure:?}");
    }
    assert!(Script::compile(&["function f() {}"], Some("a b")).is_err());
    let missing = Script::compile(&["function f() {}"], Some("g")).unwrap();
    let (_, result) = run(&missing, Box::new(Shared(Arc::default())), &[], &Limits::default());
    assert!(result.unwrap_err().no_function);
}

#[test]
fn nothing_leaks_to_the_next_message() {
    // Each leaves something behind; the second script must not see it.
    for (leave, look) in [
        ("leak = 1;", "typeof leak"),
        ("var leak = 1;", "typeof leak"),
        ("this.leak = 1; globalThis.other = 2;", "typeof leak + typeof other"),
        ("function leak() {}", "typeof leak"),
        ("Object.defineProperty(globalThis, 'leak', {value: 1});", "typeof leak"),
        ("var p = ['proto', 'type'].join(''); Array[p].leak = 1; Object[p].leak = 1;", "typeof [].leak"),
        ("Array.prototype.leak = 1; String.prototype.leak = 2;", "typeof [].leak + typeof ''.leak"),
        ("var o = {}; o['__pro' + 'to__'].leak = 1;", "typeof {}.leak"),
        ("var o = {}; o.constructor['proto' + 'type'].leak = 1;", "typeof {}.leak"),
        (
            "JSON.leak = 1; Math.leak = 1; mc.getProperty.leak = 1;",
            "typeof JSON.leak + typeof Math.leak + typeof mc.getProperty.leak",
        ),
        ("arguments.callee.leak = 1;", "typeof arguments.callee.leak"),
        (
            "JSON = null; Math = 3; undefined = 4;",
            "(typeof JSON === 'object' && typeof Math === 'object') ? 'undefined' : 'leak'",
        ),
        ("Error.prepareStackTrace = function () { return 'leak'; };", "typeof Error.prepareStackTrace"),
        ("Promise.resolve().then(function () { leak = 1; });", "typeof leak"),
        ("x = <a/>; x.b = 1;", "typeof x"),
        (
            "Object.getPrototypeOf(java.math.BigDecimal['proto' + 'type']).leak = 1; java.lang.String.leak = 1;",
            "typeof new java.math.BigDecimal('1')['toString'].leak + typeof Object.getPrototypeOf(java.math.BigDecimal['proto' + 'type'])['toString'].leak",
        ),
        (
            "var p = Object.getPrototypeOf(java.util.HashMap['proto' + 'type']); p.size = 1; p.leak = 1; java.util.HashMap['proto' + 'type'].leak = 1;",
            "'leak' in new java.util.HashMap() ? 'leak' : 'undefined'",
        ),
    ] {
        for _ in 0..2 {
            // Some throw, in a world that cannot be changed.
            let _ = on(&Arc::default(), leave, &Limits::default());
            let wood = Arc::<Mutex<Wood>>::default();
            let look = format!("var found = {look};\nmc.setProperty('r', found);");
            on(&wood, &look, &Limits::default()).unwrap();
            let found =
                wood.lock().unwrap().properties.get("default:r").map(ToString::to_string).unwrap_or_default();
            assert!(found.replace("undefined", "").is_empty(), "{leave}: {found}");
        }
    }
}

#[test]
fn what_scripts_do_to_their_own_objects_works() {
    for (text, expected) in [
        (
            "var o = {}; o.toString = function () { return 'own'; };\nmc.setProperty('r', '' + o);",
            "String(\"own\")",
        ),
        (
            "var n = {}; ['constructor', 'valueOf', 'a'].forEach(function (k) { n[k] = 1; });\nmc.setProperty('r', Object.keys(n).length);",
            "Integer(3)",
        ),
        (
            "var e = new Error('m'); e.name = 'Own'; e.message = 'n';\nmc.setProperty('r', '' + e);",
            "String(\"Own: n\")",
        ),
        (
            "function P() {} P.prototype.f = function () { return 4; };\nmc.setProperty('r', new P().f());",
            "Integer(4)",
        ),
        (
            "if (!String.prototype.own) { String.prototype.own = function () { return this + '!'; }; }\nmc.setProperty('r', 'a'.own());",
            "String(\"a!\")",
        ),
        ("total = 0; for (i = 0; i < 3; i++) { total += i; }\nmc.setProperty('r', total);", "Integer(3)"),
        ("function escape(s) { return 'own'; }\nmc.setProperty('r', escape('x'));", "String(\"own\")"),
        ("class A { get x() { return 7; } }\nmc.setProperty('r', new A().x);", "Integer(7)"),
        ("let {l: [a, b]} = mc.getPayloadJSON();\nmc.setProperty('r', `${a}-${b}`);", "String(\"1-2.5\")"),
        (
            "var d = new Date(0);\nmc.setProperty('r', d.toISOString());",
            "String(\"1970-01-01T00:00:00.000Z\")",
        ),
        (
            "var s = new Set([1, 1]); var m = new Map(); m.set('a', s.size);\nmc.setProperty('r', m.get('a'));",
            "Integer(1)",
        ),
    ] {
        assert_eq!(result(text), expected, "{text}");
    }
}

#[test]
fn limits_hold_and_the_next_message_runs() {
    let limits = |time| Limits { time, memory: 4 << 20, stack: 128 << 10, ..Limits::default() };
    for (text, part) in [
        ("while (true) {}", "limits.script_time"),
        ("try { while (true) {} } catch (e) {} while (true) {}", "limits.script_time"),
        ("(function f() { Promise.resolve().then(f); })(); 1", "limits.script_time"),
        (
            "var a = []; while (true) { a.push(new Array(1000).join('xxxxxxxx') + a.length); }",
            "limits.script_memory",
        ),
        ("var a = []; while (true) { a.push(new Array(1000).fill(7)); }", "limits.script_memory"),
        ("var a = []; while (true) { a.push({}); }", "limits.script_memory"),
        ("while (true) { this['k' + Math.random()] = {}; }", "limits.script_memory"),
        ("(function f() { f(); })()", "stack"),
        ("JSON.parse(new Array(100001).join('['));", "Error"),
    ] {
        let time =
            if part == "limits.script_time" { Duration::from_millis(50) } else { Duration::from_secs(60) };
        let failure = on(&Arc::default(), text, &limits(time)).unwrap_err();
        assert!(failure.message.contains(part), "{text}: {failure:?}");
        on(&Arc::default(), "mc.setProperty('r', 1);", &limits(Duration::from_secs(60))).unwrap();
    }
}

/// The first script of a thread waits for its engine: that is not its own time.
#[test]
fn making_the_engine_is_not_the_time_of_a_script() {
    for text in ["mc.setProperty('r', 1);", "String.prototype.x = 1; mc.setProperty('r', 1);"] {
        let first = move || {
            let run = || on(&Arc::default(), text, &Limits::default()).map(drop);
            meter::within(Duration::ZERO, None, run).0
        };
        std::thread::spawn(first).join().unwrap().unwrap();
    }
}

/// `cargo test -p busbar-script --profile quick -- --ignored --nocapture cost`
#[test]
#[ignore = "a measurement"]
fn cost() {
    let items: Vec<String> =
        (0..20).map(|i| format!("{{\"name\":\"n{i}\",\"qty\":{i},\"price\":{i}.5}}")).collect();
    let wood = Wood {
        json: Some(format!("{{\"items\":[{}]}}", items.join(","))),
        payload: "<a><b>x</b></a>".into(),
        ..Wood::default()
    };
    let wood = Arc::new(Mutex::new(wood));
    for (name, text) in [
        ("nothing", "mc.setProperty('a', 1);"),
        ("evaluated", "mc.setProperty('a', 1); var b = 2;"),
        ("prototype", "String.prototype.x = 1; mc.setProperty('a', 1);"),
        (
            "json of 20 items",
            "var p = mc.getPayloadJSON(), t = 0; for (var i = 0; i < p.items.length; i++) { t += p.items[i].qty * p.items[i].price; }\nmc.setProperty('a', JSON.stringify({t: t, p: p}));",
        ),
        ("xml", "mc.setPayloadXML(<a><b>{mc.getPayloadXML()..*::b.toString()}</b></a>);"),
    ] {
        let script = Script::compile(&[text], None).unwrap();
        let limits = Limits::default();
        let once = || run(&script, Box::new(Shared(Arc::clone(&wood))), &[], &limits).1.unwrap();
        (0..50).for_each(|_| drop(once()));
        let start = std::time::Instant::now();
        (0..1000).for_each(|_| drop(once()));
        println!("{name}: {:?} per call", start.elapsed() / 1000);
    }
}

/// Of a file with several functions, those that need nothing which is missing run.
#[test]
fn what_cannot_be_had_throws_where_it_stands() {
    let text = "function good(mc) { mc.setProperty('r', 'done'); }\nfunction bad(mc) { default xml namespace = 'u'; }";
    for (function, fault) in [("good", None), ("bad", Some("`default xml namespace` is not executable here"))]
    {
        let script = Script::compile(&[text], Some(function)).unwrap();
        let [refused] = script.refused() else { panic!("{script:?}") };
        let place = refused.place.unwrap();
        assert_eq!((place.source, place.line, place.column), (0, 2, 28), "{refused:?}");
        let wood = Arc::new(Mutex::new(Wood::default()));
        let ended = run(&script, Box::new(Shared(Arc::clone(&wood))), &[], &Limits::default()).1;
        match fault {
            None => assert!(ended.is_ok(), "{ended:?}"),
            Some(fault) => assert!(ended.unwrap_err().message.contains(fault)),
        }
    }
}

#[test]
fn large_numbers_do_not_outrun_the_limits() {
    let begun = std::time::Instant::now();
    for (text, expected) in [
        (
            "var n = '9'.repeat(50000), I = java.math.BigInteger; new I('2').modPow(new I(n), new I(n)); mc.setProperty('r', 1);",
            "the script ran longer than",
        ),
        ("new java.math.BigInteger('9'.repeat(100000)).pow(100000);", "more than 1048576 bits"),
        ("new java.math.BigDecimal('9').pow(1000000);", "more than 1048576 bits"),
        (
            "mc.setProperty('r', '' + new java.math.BigInteger('2').pow(70) + new java.math.BigInteger('-1').pow(9999999));",
            "1180591620717411303424-1",
        ),
        (
            "mc.setProperty('r', '' + new java.math.BigInteger('3').modPow(new java.math.BigInteger('200'), new java.math.BigInteger('13')));",
            "9",
        ),
    ] {
        let found = result(text);
        assert!(found.contains(expected), "{text}: {found}");
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}
