//! The beginning of a body for people to look at: what is left out is an ellipsis, nothing else is changed but white space.

/// How much of a body is looked at.
const LOOKED_AT: usize = 4096;

/// At most `lines` lines of `width` characters.
pub fn excerpt(body: &[u8], width: usize, lines: usize) -> Vec<String> {
    let looked_at = &body[..body.len().min(LOOKED_AT)];
    let text = match std::str::from_utf8(looked_at) {
        Ok(text) => text,
        // A character that is cut off by the limit.
        Err(error) if error.error_len().is_none() && body.len() > LOOKED_AT => {
            std::str::from_utf8(&looked_at[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return binary(body, width),
    };
    if text.chars().any(|c| c.is_control() && !c.is_whitespace()) {
        return binary(body, width);
    }
    let text = without_namespaces(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut rest: Vec<char> = text.chars().collect();
    let mut shown = Vec::new();
    while !rest.is_empty() && shown.len() < lines {
        let end = if shown.len() + 1 < lines { line_end(&rest, width) } else { rest.len().min(width) };
        let line: String = rest.drain(..end).collect();
        shown.push(line.trim_end().to_owned());
    }
    if (!rest.is_empty() || looked_at.len() < body.len())
        && let Some(last) = shown.last_mut()
    {
        if last.chars().count() >= width {
            last.pop();
        }
        last.push('…');
    }
    shown
}

/// Where a line ends: at the last tag or space of its second half, if there is one.
fn line_end(text: &[char], width: usize) -> usize {
    if text.len() <= width {
        return text.len();
    }
    let ends = |at: &usize| {
        text[*at - 1] == ' ' || text[*at] == '<' && text.get(*at + 1).is_some_and(|next| *next != '/')
    };
    (width / 2 + 1..=width).rev().find(ends).unwrap_or(width)
}

/// Bytes in hexadecimal digits.
fn binary(body: &[u8], width: usize) -> Vec<String> {
    let count = body.len().min(width / 3 - 1);
    let mut line = body[..count].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    if count < body.len() {
        line.push_str(" …");
    }
    vec![line]
}

/// One ellipsis for the namespace declarations of a tag, none for an XML declaration.
fn without_namespaces(text: &str) -> String {
    let text = match text.strip_prefix("<?xml ").and_then(|rest| rest.split_once("?>")) {
        Some((_, rest)) => rest.trim_start(),
        None => text,
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut in_tag = false;
    while let Some(c) = rest.chars().next() {
        if in_tag
            && (rest.starts_with(" xmlns:") || rest.starts_with(" xmlns="))
            && let Some(length) = declaration(rest)
        {
            if !out.ends_with(" …") {
                out.push_str(" …");
            }
            rest = &rest[length..];
            continue;
        }
        in_tag = (in_tag || c == '<') && c != '>';
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    out
}

/// The length of ` name="value"`.
fn declaration(text: &str) -> Option<usize> {
    let value = text.find('=')? + 1;
    let quote = text[value..].chars().next().filter(|c| matches!(c, '"' | '\''))?;
    Some(value + 1 + text[value + 1..].find(quote)? + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts() {
        let long = "x".repeat(5000);
        let cases: [(&[u8], usize, &[&str]); 11] = [
            (b"<a><b>x</b><c>y</c></a>", 14, &["<a><b>x</b>", "<c>y</c></a>"]),
            (b"some words to be broken", 14, &["some words to", "be broken"]),
            (b"", 20, &[]),
            (b"plain text", 20, &["plain text"]),
            (b"a\n\t b", 20, &["a b"]),
            (b"<?xml version='1.0'?>\n<a/>", 20, &["<a/>"]),
            (
                b"<s:E xmlns:s='u' xmlns=\"v\" id=\"1\"><b xmlns=''/></s:E>",
                40,
                &["<s:E … id=\"1\"><b …/></s:E>"],
            ),
            (b"text xmlns='kept'", 40, &["text xmlns='kept'"]),
            (b"0123456789abcdefghij", 10, &["0123456789", "abcdefghij"]),
            (b"0123456789abcdefghijk", 10, &["0123456789", "abcdefghi…"]),
            (&[0, 255, 16, 1, 2, 3, 4], 12, &["00 ff 10 …"]),
        ];
        for (body, width, want) in cases {
            assert_eq!(excerpt(body, width, 2), want, "{}", String::from_utf8_lossy(body));
        }
        assert_eq!(excerpt(long.as_bytes(), 8192, 2)[0].chars().count(), LOOKED_AT + 1);
        let cut = [&long.as_bytes()[..LOOKED_AT - 1], "é".as_bytes(), b"x"].concat();
        assert!(excerpt(&cut, 20, 1)[0].starts_with("xxx"));
    }
}
