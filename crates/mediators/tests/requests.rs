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
