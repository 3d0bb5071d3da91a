//! What of a message is seen between two steps, bounded and redacted, and what changed.

use crate::runtime::context::Context;
use message::{Coding, Properties, Value, redact};
use serde_json::json;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Bytes of a value that are shown.
const VALUE: usize = 1024;
/// Values that are looked at.
const VALUES: usize = 300;
/// Bytes of a compressed payload that are decompressed to be shown; a larger one is not.
const DECODED: usize = 1024 * 1024;
/// How long a trace waits for the beginning of a body.
const PATIENCE: Duration = Duration::from_millis(200);

/// What is seen of a message at one moment.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    /// Scope, name and text of each property and header, sorted.
    values: Vec<(&'static str, String, String)>,
    pub(super) payload: Shown,
}

/// A payload as far as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) text: Arc<str>,
    /// Bytes of all of it, where that is known.
    pub(super) bytes: Option<u64>,
    /// Only the beginning is shown, the text being longer or on its way.
    pub(super) partial: bool,
}

impl Default for Shown {
    fn default() -> Shown {
        Shown { text: Arc::from(""), bytes: Some(0), partial: false }
    }
}

impl Shown {
    /// Of bytes in the encoding of texts.
    pub(super) fn of(bytes: &[u8], total: Option<u64>, shown: usize) -> Shown {
        let cut = &bytes[..bytes.len().min(shown)];
        // A character that is cut in two is left out.
        let end = match std::str::from_utf8(cut) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => cut.len(),
        };
        let text = String::from_utf8_lossy(&cut[..end]);
        let partial = total != Some(end as u64);
        Shown { text: Arc::from(&*redact::text(&text)), bytes: total, partial }
    }

    /// Words about a payload that is not there to be shown.
    fn about(words: impl AsRef<str>) -> Shown {
        Shown { text: Arc::from(words.as_ref()), bytes: None, partial: false }
    }

    pub(super) fn json(&self) -> serde_json::Value {
        json!({ "text": &*self.text, "bytes": self.bytes, "partial": self.partial })
    }
}

/// One thing that a step changed.
#[derive(Debug)]
pub(super) struct Change {
    /// `default`, `axis2`, `axis2-client`, `operation`, `transport`, `variable`, `message`.
    pub(super) scope: &'static str,
    pub(super) name: String,
    /// `None`: it was not there.
    pub(super) before: Option<String>,
    /// `None`: it is gone.
    pub(super) after: Option<String>,
}

impl Change {
    pub(super) fn bytes(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        64 + self.name.len() + length(&self.before) + length(&self.after)
    }

    pub(super) fn json(&self) -> serde_json::Value {
        json!({ "scope": self.scope, "name": self.name, "before": self.before, "after": self.after })
    }
}

/// Waits a little for the beginning of a body that is on its way.
pub(super) async fn arrive(context: &mut Context, shown: usize) {
    if !context.payload.is_unread() {
        return;
    }
    let Some(stream) = context.payload.stream_mut() else { return };
    if !stream.buffered().is_empty() {
        // It was waited for once.
        return;
    }
    let enough = poll_fn(|waking| {
        loop {
            if stream.is_complete() || stream.buffered().len() >= shown {
                return Poll::Ready(());
            }
            match stream.poll_more(waking) {
                Poll::Ready(Ok(true)) => {}
                // The step that reads the body finds the error again.
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    });
    // What is here then is shown.
    let _ = tokio::time::timeout(PATIENCE, enough).await;
}

impl Snapshot {
    pub(super) fn of(context: &mut Context, shown: usize) -> Snapshot {
        let payload = payload(context, shown);
        let mut values = Vec::new();
        let mut add = |scope: &'static str, name: &str, value: &str| {
            if values.len() < VALUES {
                values.push((scope, name.to_owned(), short(&redact::value(name, short_of(value)))));
            }
        };
        scope(&context.properties, "default", &mut add);
        scope(&context.axis2, "axis2", &mut add);
        scope(&context.client, "axis2-client", &mut add);
        scope(&context.variables, "variable", &mut add);
        if let Some(operation) = &context.operation {
            scope(&crate::state::lock(operation), "operation", &mut add);
        }
        for (name, value) in context.headers.iter() {
            add("transport", name, &String::from_utf8_lossy(value));
        }
        for (name, value) in [
            ("To", context.addressing.to.as_deref()),
            ("Action", context.soap_action.as_deref().or(context.addressing.action.as_deref())),
        ] {
            value.into_iter().for_each(|value| add("message", name, value));
        }
        if let Some(status) = context.status {
            add("message", "status", &status.to_string());
        }
        values.sort();
        Snapshot { values, payload }
    }

    /// What is otherwise in `now`.
    pub(super) fn changes(&self, now: &Snapshot) -> Vec<Change> {
        let mut changes = Vec::new();
        let key = |value: &(&'static str, String, String)| (value.0, value.1.clone());
        let (mut old, mut new) = (self.values.iter().peekable(), now.values.iter().peekable());
        loop {
            let (before, after) = match (old.peek(), new.peek()) {
                (None, None) => return changes,
                (Some(_), None) => (old.next(), None),
                (None, Some(_)) => (None, new.next()),
                (Some(a), Some(b)) => match key(a).cmp(&key(b)) {
                    std::cmp::Ordering::Less => (old.next(), None),
                    std::cmp::Ordering::Greater => (None, new.next()),
                    std::cmp::Ordering::Equal => (old.next(), new.next()),
                },
            };
            let Some((scope, name, _)) = before.or(after) else { return changes };
            let text = |value: Option<&(&'static str, String, String)>| value.map(|value| value.2.clone());
            let (before, after) = (text(before), text(after));
            if before != after {
                changes.push(Change { scope, name: name.clone(), before, after });
            }
        }
    }

    /// Everything, as if nothing had been there before.
    pub(super) fn all(&self) -> Vec<Change> {
        Snapshot::default().changes(self)
    }
}

fn scope(properties: &Properties, scope: &'static str, add: &mut impl FnMut(&'static str, &str, &str)) {
    for (name, value) in properties.iter() {
        let text = match value {
            Value::Json(json) => json.to_string(),
            Value::Xml(xml) => xml.to_xml(),
            other => other.to_string(),
        };
        add(scope, name, &text);
    }
}

/// So much of a value as may matter: it is redacted before it is cut, but not all of a huge one.
fn short_of(text: &str) -> &str {
    &text[..text.floor_char_boundary(4 * VALUE)]
}

fn short(text: &str) -> String {
    let end = text.floor_char_boundary(VALUE);
    if end < text.len() { format!("{}…", &text[..end]) } else { text.to_owned() }
}

fn payload(context: &mut Context, shown: usize) -> Shown {
    let coding = context.payload.reading().coding;
    let plain = coding == Coding::Identity;
    if context.payload.is_unread()
        && let Some(stream) = context.payload.stream_mut()
    {
        let here = stream.buffered();
        let total = stream.exact_len().or_else(|| stream.is_complete().then_some(here.len() as u64));
        return if plain || here.is_empty() {
            Shown::of(here, total, shown)
        } else {
            Shown::about("(compressed, on its way)")
        };
    }
    if context.payload.is_empty() {
        return Shown::default();
    }
    if context.payload.is_consumed() && !context.payload.is_built() {
        return Shown::about("(it was sent on and is no longer here)");
    }
    if !context.payload.is_changed()
        && let Some(bytes) = context.payload.bytes()
    {
        return match coding.decode(bytes, DECODED) {
            Ok(text) => Shown::of(&text, Some(text.len() as u64), shown),
            Err(_) => Shown::about(format!("(compressed, {} bytes)", bytes.len())),
        };
    }
    let (format, _) = crate::writing::current_form(context);
    let limits = context.services.limits.clone();
    match context.payload.copy().write(format, &limits) {
        Ok(bytes) => Shown::of(&bytes, Some(bytes.len() as u64), shown),
        Err(error) => Shown::about(format!("(it cannot be shown: {error})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_cut_at_a_character_and_redacted() {
        let shown = |text: &str, most| {
            let shown = Shown::of(text.as_bytes(), Some(text.len() as u64), most);
            (shown.text.to_string(), shown.partial)
        };
        assert_eq!(shown("<a/>", 10), ("<a/>".to_owned(), false));
        assert_eq!(shown("aéb", 2), ("a".to_owned(), true));
        assert_eq!(shown("<pin>1</pin><password>half", 100).0, "<pin>1</pin><password>***");
        let wrong = Shown::of(&[b'a', 0xFF, b'b'], Some(3), 10);
        assert_eq!((&*wrong.text, wrong.partial), ("a\u{FFFD}b", false));
    }

    #[test]
    fn changes_are_what_came_went_and_became_another() {
        let snapshot = |values: &[(&'static str, &str, &str)]| Snapshot {
            values: values
                .iter()
                .map(|(scope, name, text)| (*scope, (*name).to_owned(), (*text).to_owned()))
                .collect(),
            payload: Shown::default(),
        };
        let old = snapshot(&[
            ("axis2", "a", "1"),
            ("default", "a", "1"),
            ("default", "c", "1"),
            ("transport", "x", "1"),
        ]);
        let new = snapshot(&[
            ("default", "a", "2"),
            ("default", "b", "1"),
            ("default", "c", "1"),
            ("transport", "x", "1"),
            ("transport", "x", "2"),
        ]);
        let found: Vec<_> = old
            .changes(&new)
            .into_iter()
            .map(|change| format!("{}:{} {:?} {:?}", change.scope, change.name, change.before, change.after))
            .collect();
        assert_eq!(
            found,
            [
                "axis2:a Some(\"1\") None",
                "default:a Some(\"1\") Some(\"2\")",
                "default:b None Some(\"1\")",
                "transport:x None Some(\"2\")"
            ]
        );
        assert_eq!(new.all().len(), 5);
    }
}
