//! What endpoints get of a message that a step has made, or marked.

use flow::testing::{self, Tested};

const V11: &str = "http://schemas.xmlsoap.org/soap/envelope/";
const V12: &str = "http://www.w3.org/2003/05/soap-envelope";

fn envelope(namespace: &str) -> String {
    format!(r#"<s:Envelope xmlns:s="{namespace}"><s:Body><a><b>1</b></a></s:Body></s:Envelope>"#)
}

fn main(steps: &str) -> Tested {
    testing::main(&busbar_mediators::registry(testing::endpoints), steps)
}

#[test]
fn an_envelope_that_a_step_made_keeps_its_soap_version() {
    let make = |namespace: &str| {
        format!("<payloadFactory><format>{}</format><args/></payloadFactory>", envelope(namespace))
    };
    let fault = |version: &str, namespace: &str, code: &str| {
        format!(
            r#"<makefault version="{version}"><code xmlns:f="{namespace}" value="f:{code}"/><reason value="r"/></makefault>"#
        )
    };
    let change = r#"<enrich><source type="inline"><n/></source><target xpath="//b"/></enrich>"#;
    for (client, step, wanted) in [
        (V11, make(V12), V12),
        (V12, make(V11), V11),
        (V11, make(V11), V11),
        (V12, make(V12), V12),
        (V11, fault("soap12", V12, "Receiver"), V12),
        (V12, fault("soap11", V11, "Server"), V11),
        (V11, change.to_owned(), V11),
        (V12, change.to_owned(), V12),
    ] {
        let media_type = |namespace: &str| if namespace == V11 { "text/xml" } else { "application/soap+xml" };
        let backend = testing::backend("");
        let steps = format!(
            r#"{step}<call><endpoint><address uri="{backend}/x"/></endpoint></call><property name="type" expression="$trp:Content-Type"/>
               <property name="namespace" expression="namespace-uri(/*)"/>"#
        );
        let headers = [("Content-Type", media_type(client)), ("SOAPAction", "\"a\"")];
        let end = main(&steps).run(&headers, &envelope(client));
        assert_eq!(end.fault(), None, "{step}");
        let sent = end.property("type").unwrap_or_default();
        assert!(sent.starts_with(media_type(wanted)), "{client} {step}: {sent}");
        assert_eq!(end.property("namespace").as_deref(), Some(wanted), "{client} {step}");
    }
}

#[test]
fn a_proxy_uses_its_endpoint_for_what_a_step_marked_as_a_response() {
    let fault =
        format!(r#"<makefault><code xmlns:s="{V11}" value="s:Server"/><reason value="r"/></makefault>"#);
    let nothing = r#"<property name="p" value="1"/>"#;
    for (step, out, sent) in [
        ("", "<send/>", true),
        (r#"<property name="RESPONSE" value="true"/>"#, "<send/>", true),
        (fault.as_str(), "<send/>", true),
        ("<drop/>", "<send/>", false),
        ("<loopback/>", "<send/>", false),
        // The end of an out sequence is not that of an in sequence.
        ("<loopback/>", nothing, false),
    ] {
        let backend = testing::backend("");
        let text = format!(
            r#"<definitions xmlns="http://ws.apache.org/ns/synapse"><proxy name="P"><target><endpoint><address uri="{backend}/x"/></endpoint>
               <inSequence>{step}</inSequence><outSequence>{out}</outSequence></target></proxy></definitions>"#
        );
        let flow = testing::configuration(&busbar_mediators::registry(testing::endpoints), &text);
        let headers = [("Content-Type", "text/xml"), ("SOAPAction", "a")];
        let response = flow.ask("POST", "/services/P", &headers, &envelope(V11));
        assert_eq!(response.headers.get("X-Request").is_some(), sent, "{step}{out}: {response:?}");
    }
}

#[test]
fn the_body_of_plain_xml_decides_a_filter() {
    for (content_type, body) in [
        ("application/xml", "<a><b>1</b></a>".to_owned()),
        ("text/xml", envelope(V11)),
        ("application/soap+xml", envelope(V12)),
    ] {
        for source in ["$body", "$body/*[1]", "//a", "/*/*"] {
            let steps = format!(
                r#"<filter source="{source}" regex="(?s).*b.1..*"><then><property name="p" value="1"/></then></filter>"#
            );
            let end = main(&steps).run(&[("Content-Type", content_type), ("SOAPAction", "a")], &body);
            assert_eq!(
                (end.fault(), end.property("p").as_deref()),
                (None, Some("1")),
                "{source} {content_type}"
            );
        }
    }
}
