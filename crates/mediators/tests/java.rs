//! The classes of Java that scripts use, compared with Java itself: `java/code.txt` has code that is Java and JavaScript alike,
//! `java/expected.txt` what Java 17 makes of it (`java/Expected.java` writes it).

use flow::testing;
use std::fmt::Write;

/// The value of a line as Java writes it; of what is thrown, its class.
const SCRIPT: &str = r#"
  var out;
  try {
    var value = eval(mc.getPayloadJSON().code);
    out = typeof value === 'number' ? value : { text: java.lang.String.valueOf(value) };
  } catch (e) {
    out = { thrown: String(e) };
  }
  mc.setPayloadJSON([out]);
"#;

#[test]
fn classes_of_java_do_what_java_does() {
    let text = format!("<script language='js'><![CDATA[{SCRIPT}]]></script>");
    let flow = testing::main(&busbar_mediators::registry(testing::endpoints), &text);
    assert!(flow.found.is_empty(), "{:?}", flow.found);
    let (mut wrong, mut count) = (String::new(), 0);
    for line in include_str!("java/expected.txt").lines().filter(|line| !line.starts_with('#')) {
        let (code, expected) = line.split_once('\t').expect("code, a tab, a value");
        let expected = unescaped(expected);
        // A number of JavaScript has no type.
        let javascript = without_long(code);
        let body = serde_json::json!({ "code": javascript }).to_string();
        let mut end = flow.run(&[("Content-Type", "application/json")], &body);
        assert_eq!(end.fault(), None, "{code}");
        let found: serde_json::Value = serde_json::from_str(&end.payload()).expect("JSON");
        let is_right = match (&found[0]["text"], &found[0]["thrown"], expected.strip_prefix("! ")) {
            (serde_json::Value::String(text), _, None) => *text == expected,
            (_, serde_json::Value::String(thrown), Some(class)) => {
                // What the bus itself throws has no package.
                let simple = class.rsplit('.').next().unwrap_or(class);
                thrown.starts_with(class) || thrown.starts_with(&format!("Error: {simple}"))
            }
            (_, _, None) => found[0].is_number() && found[0].as_f64() == expected.parse().ok(),
            _ => false,
        };
        count += 1;
        if !is_right {
            let _ = writeln!(wrong, "{code}\n   Java: {expected}\n   here: {}", found[0]);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(count > 200, "{count}");
}

/// `1700000000000L` is a number without the letter.
fn without_long(code: &str) -> String {
    let mut out = String::new();
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        out.push(c);
        if c.is_ascii_digit() && chars.peek() == Some(&'L') {
            chars.next();
        }
    }
    out
}

fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let c = if c == '\\' {
            chars.next().unwrap_or(c)
        } else {
            out.push(c);
            continue;
        };
        out.push(match c {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            other => other,
        });
    }
    out
}
