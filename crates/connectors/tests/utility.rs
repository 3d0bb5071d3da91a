//! The utility module.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use support::{JSON, XML, main};

#[test]
fn results_are_properties() {
    for (name, inside, property, wanted) in [
        ("string.Length", "<inputString>{json-eval($.s)}</inputString>", "length", "4"),
        ("string.Length", "<inputString>é😀</inputString><target>n</target>", "n", "3"),
        ("string.LowerCase", "<inputString>ÄB ${payload.s}</inputString>", "lower", "äb a b!"),
        ("string.UpperCase", "<inputString>{json-eval($.s)}</inputString>", "upper", "A B!"),
        (
            "string.RegexMatcher",
            "<inputString>utility module</inputString><regex>u.*m.*e</regex>",
            "match",
            "true",
        ),
        (
            "string.RegexMatcher",
            "<inputString>xutility</inputString><regex>u.*</regex><target>t</target>",
            "t",
            "false",
        ),
        ("math.GetRandomInt", "<lowerBound>7</lowerBound><upperBound>7</upperBound>", "random", "7"),
        (
            "math.GetRandomInt",
            "<lowerBound>-9223372036854775808</lowerBound><upperBound>-9223372036854775808</upperBound>",
            "random",
            "-9223372036854775808",
        ),
        ("date.GetDate", "<format>'x'</format>", "date", "x"),
        // RFC 2202 and 4231, test case 2.
        (
            "signature.Generate",
            "<payload>Custom Payload</payload><customPayload>what do ya want for nothing?</customPayload><secret>Jefe</secret>",
            "sign",
            "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
        ),
        (
            "signature.Generate",
            "<payload>Custom Payload</payload><customPayload>what do ya want for nothing?</customPayload><secret>Jefe</secret><algorithm>HMACMD5</algorithm>",
            "sign",
            "750c783e6ab0b503eaa86e310a5db738",
        ),
        (
            "signature.Generate",
            "<payload>Custom Payload</payload><customPayload>what do ya want for nothing?</customPayload><secret>Jefe</secret><algorithm>hmacsha256</algorithm>",
            "sign",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        ("signature.Verify", "<secret>123</secret><signature>00</signature>", "verify", "false"),
    ] {
        let tested = main(&format!("<utility.{name}>{inside}</utility.{name}>"));
        assert!(tested.found.is_empty(), "{name} {inside}: {:?}", tested.found);
        let end = tested.run(&[JSON], r#"{"s":"a b!"}"#);
        assert_eq!((end.fault(), end.property(property).as_deref()), (None, Some(wanted)), "{name} {inside}");
    }
    for (header, body) in [(JSON, r#"{"string":"utility module"}"#), (XML, "<a>é</a>")] {
        for algorithm in ["HMACSHA1", "HMACSHA384", "HMACSHA512"] {
            let more = format!("<secret>123</secret><algorithm>{algorithm}</algorithm>");
            let steps = format!(
                "<utility.signature.Generate>{more}</utility.signature.Generate><utility.signature.Verify><signature>{{$ctx:sign}}</signature>{more}</utility.signature.Verify>"
            );
            let mut end = main(&steps).run(&[header], body);
            assert_eq!((end.fault(), end.property("verify").as_deref()), (None, Some("true")), "{algorithm}");
            assert_eq!(end.write(message::Format::of(header.1, true)), body);
        }
    }
    let end = main("<utility.string.UUID/><utility.date.GetDate/>").run(&[XML], "<a/>");
    let uuid = end.property("uuid").unwrap();
    assert!(
        uuid.len() == 36 && uuid.as_bytes()[14] == b'4' && b"89ab".contains(&uuid.as_bytes()[19]),
        "{uuid}"
    );
    assert_eq!(end.property("date").unwrap().len(), 19);
}

#[test]
fn what_is_wrong_is_said_when_loading_and_is_a_fault() {
    for (name, inside, found, fault) in [
        ("string.RegexMatcher", "<inputString>a</inputString><regex>(</regex>", "bad-value", "`regex`"),
        ("string.RegexMatcher", "<inputString>a</inputString>", "bad-value", "`regex` is not given"),
        (
            "math.GetRandomInt",
            "<lowerBound>x</lowerBound>",
            "bad-value",
            "`lowerBound` is not a whole number: x",
        ),
        (
            "math.GetRandomInt",
            "<lowerBound>2</lowerBound><upperBound>1</upperBound>",
            "bad-value",
            "no number from 2 to 1",
        ),
        ("date.GetDate", "<format>yyyy b</format>", "bad-value", "`format`"),
        (
            "signature.Generate",
            "<secret>x</secret><algorithm>HMACSHA-1</algorithm>",
            "bad-value",
            "there is no algorithm",
        ),
        (
            "signature.Generate",
            "<payload>Bdy</payload><secret>x</secret>",
            "bad-value",
            "there is no payload",
        ),
        ("signature.Generate", "", "bad-value", "`secret` is not given"),
        ("signature.Verify", "<secret>x</secret>", "bad-value", "`signature` is not given"),
    ] {
        let tested = main(&format!("<utility.{name}>{inside}</utility.{name}>"));
        let is_reported = tested.found.iter().any(|finding| finding.starts_with("bad-value"));
        assert_eq!(is_reported, !found.is_empty(), "{name} {inside}: {:?}", tested.found);
        let end = tested.run(&[XML], "<a/>");
        let why = end.fault().unwrap_or_default();
        assert!(why.contains(fault), "{name} {inside}: {why}");
    }
}
