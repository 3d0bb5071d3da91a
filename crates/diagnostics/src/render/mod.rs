//! Diagnostics as text for people, as JSON lines, as SARIF and as annotations of GitHub.

mod github;
mod human;
mod json;
mod sarif;

pub use github::github;
pub use human::{Human, human, log_line};
pub use json::json;
pub use sarif::{RuleText, sarif};

use std::fmt::Write;

/// A JSON string literal.
fn quote(text: &str) -> String {
    let text = &*crate::without_credentials(text);
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
