//! A trace as text: what an administrator reads at night. One line for each step, what it changed below it.

use super::recording::{Entry, Event, Recording, Trace};
use super::snapshot::{Change, Shown};
use std::fmt::Write;
use std::time::Duration;

/// Letters of a value in a line.
const VALUE: usize = 160;
/// Lines of a payload.
const LINES: usize = 40;

pub(super) fn render(recording: &Recording, trace: &Trace, elapsed: Duration) -> String {
    let mut out = String::new();
    let line = |out: &mut String, text: &str| {
        out.push_str(text);
        out.push('\n');
    };
    let Recording { number, service, message_id, request, .. } = recording;
    line(&mut out, &format!("message {number} of {}: {}", plain(service), plain(request)));
    line(&mut out, &format!("  {}", plain(message_id)));
    if let Some((values, payload)) = &trace.first {
        line(&mut out, "  came with");
        for value in values {
            let _ = writeln!(
                out,
                "      {}:{} = {}",
                value.scope,
                plain(&value.name),
                value_of(value.after.as_deref())
            );
        }
        body(&mut out, "      ", payload);
    }
    let mut list = (0, String::new());
    for event in &trace.events {
        let indent = "  ".repeat(event.depth.min(8));
        match &event.what {
            Entry::Step { stage, outcome } => {
                if list != (event.copy, stage.list.clone()) {
                    list = (event.copy, stage.list.clone());
                    let copy = if event.copy == 0 { String::new() } else { format!(", copy {}", event.copy) };
                    line(&mut out, &format!("  in {}{copy}", plain(&stage.list)));
                }
                let outcome =
                    if outcome.is_empty() { String::new() } else { format!("  -> {}", plain(outcome)) };
                let _ = writeln!(
                    out,
                    "  {} {indent}{}  {}  {}{outcome}",
                    at(event),
                    stage.name,
                    plain(&stage.place),
                    took(event.took)
                );
            }
            Entry::Attempt(attempt) => {
                let named = if attempt.endpoint.is_empty() || attempt.request.contains(&attempt.endpoint) {
                    String::new()
                } else {
                    format!("endpoint {}: ", plain(&attempt.endpoint))
                };
                let _ = writeln!(
                    out,
                    "  {} {indent}  {named}{}  {}  -> {}",
                    at(event),
                    plain(&attempt.request),
                    took(attempt.took),
                    plain(&attempt.result)
                );
            }
        }
        for change in &event.changes {
            let _ = writeln!(out, "      {indent}{}", changed(change));
        }
        if let Some((_, after)) = &event.payload {
            body(&mut out, &format!("      {indent}"), after);
        }
    }
    if trace.omitted > 0 {
        line(&mut out, &format!("  … {} more steps are not kept", trace.omitted));
    }
    for (_, stage, began) in &trace.running {
        let _ =
            writeln!(out, "  now in {}  {}  for {}", stage.name, plain(&stage.place), took(began.elapsed()));
    }
    match &trace.answer {
        Some(response) => {
            line(&mut out, &format!("  answered {} after {}", response.status, took(response.at)));
            for (name, value) in &response.headers {
                let _ = writeln!(out, "      {}: {}", plain(name), value_of(Some(value)));
            }
            body(&mut out, "      ", &response.payload);
        }
        None if trace.ended.is_some() => line(&mut out, "  the client was gone before it had an answer"),
        None => line(&mut out, &format!("  no answer yet after {}", took(elapsed))),
    }
    out
}

fn changed(change: &Change) -> String {
    let name = format!("{}:{}", change.scope, plain(&change.name));
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => {
            format!("{name} = {}   (was {})", value_of(Some(after)), value_of(Some(before)))
        }
        (Some(before), None) => format!("{name} is gone   (was {})", value_of(Some(before))),
        (None, after) => format!("{name} = {}", value_of(after.as_deref())),
    }
}

fn body(out: &mut String, indent: &str, payload: &Shown) {
    let size = payload.bytes.map_or_else(String::new, |bytes| format!(", {bytes} bytes"));
    if payload.text.is_empty() {
        let reason = if payload.partial { "not shown" } else { "none" };
        let _ = writeln!(out, "{indent}payload: {reason}{size}");
        return;
    }
    let part = if payload.partial { ", the beginning" } else { "" };
    let _ = writeln!(out, "{indent}payload{part}{size}:");
    let mut lines = payload.text.lines();
    for text in lines.by_ref().take(LINES) {
        let _ = writeln!(out, "{indent}  | {}", plain(text));
    }
    let more = lines.count();
    if more > 0 {
        let _ = writeln!(out, "{indent}  | … {more} more lines");
    }
}

fn at(event: &Event) -> String {
    format!("{:>9}", format!("+{}", took(event.at)))
}

/// `0.25 ms`, `14.2 ms`, `3.1 s`
fn took(time: Duration) -> String {
    let milliseconds = time.as_secs_f64() * 1000.0;
    match milliseconds {
        _ if milliseconds < 10.0 => format!("{milliseconds:.2} ms"),
        _ if milliseconds < 1000.0 => format!("{milliseconds:.0} ms"),
        _ => format!("{:.1} s", milliseconds / 1000.0),
    }
}

fn value_of(text: Option<&str>) -> String {
    let text = text.unwrap_or_default();
    if text.is_empty() {
        return "(empty)".to_owned();
    }
    let end = text.floor_char_boundary(VALUE);
    let cut = if end < text.len() { "…" } else { "" };
    format!("{}{cut}", plain(&text[..end]))
}

/// A text in one line: no character of a message steers a terminal or forges a line.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\t' => out.push(' '),
            '\n' => out.push_str("\\n"),
            '\r' => {}
            '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => {
                out.extend(letter.escape_unicode());
            }
            _ if letter.is_control() => out.extend(letter.escape_unicode()),
            _ => out.push(letter),
        }
    }
    out
}
