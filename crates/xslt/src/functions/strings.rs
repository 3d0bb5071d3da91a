//! EXSLT strings: the functions on strings. Those that make nodes (`tokenize`, `split`) give the list of strings;
//! the caller makes elements of them.

/// `str:padding`: `length` characters of `pattern` (a space by default) repeated.
pub fn padding(length: f64, pattern: &str) -> String {
    if !length.is_finite() || length < 1.0 || pattern.is_empty() {
        return String::new();
    }
    pattern.chars().cycle().take(length.round().min(1e7) as usize).collect()
}

/// `str:align`: `text` laid over `padding`, cut to its length.
pub fn align(text: &str, padding: &str, how: &str) -> String {
    let width = padding.chars().count();
    let length = text.chars().count();
    if length >= width {
        return text.chars().take(width).collect();
    }
    let before = match how {
        "right" => width - length,
        "center" => (width - length) / 2,
        _ => 0,
    };
    let mut out: String = padding.chars().take(before).collect();
    out.push_str(text);
    out.extend(padding.chars().skip(before + length));
    out
}

/// `str:tokenize`: splits at any of the characters of `delimiters`; without delimiters into characters.
pub fn tokenize(text: &str, delimiters: &str) -> Vec<String> {
    if delimiters.is_empty() {
        return text.chars().map(String::from).collect();
    }
    text.split(|c| delimiters.contains(c)).filter(|t| !t.is_empty()).map(str::to_owned).collect()
}

/// `str:split`: splits at the string `separator`; without one into characters.
pub fn split(text: &str, separator: &str) -> Vec<String> {
    if separator.is_empty() {
        return text.chars().map(String::from).collect();
    }
    text.split(separator).filter(|t| !t.is_empty()).map(str::to_owned).collect()
}

/// `str:replace`: every search string by the replacement of the same place, longest search string first; a search
/// string without replacement is removed. An empty search string inserts its replacement between the characters.
pub fn replace(text: &str, search: &[String], replacement: &[String]) -> String {
    let mut pairs: Vec<(&str, &str)> = search
        .iter()
        .enumerate()
        .map(|(at, s)| (s.as_str(), replacement.get(at).map_or("", String::as_str)))
        .collect();
    let between = pairs.iter().find(|(s, _)| s.is_empty()).map(|(_, r)| *r);
    pairs.retain(|(s, _)| !s.is_empty());
    pairs.sort_by_key(|(s, _)| std::cmp::Reverse(s.len()));
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some((from, to)) = pairs.iter().find(|(from, _)| rest.starts_with(from)) {
            out.push_str(to);
            rest = &rest[from.len()..];
            continue;
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
        if let Some(between) = between
            && !rest.is_empty()
        {
            out.push_str(between);
        }
    }
    out
}

/// `str:encode-uri`. `escape_reserved`: also escapes the characters with a meaning in URIs.
pub fn encode_uri(text: &str, escape_reserved: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let keep = byte.is_ascii_alphanumeric()
            || b"-_.!~*'()".contains(byte)
            || (!escape_reserved && b";/?:@&=+$,[]#".contains(byte))
            || (*byte == b'%'
                && !escape_reserved
                && bytes.get(at + 1..at + 3).is_some_and(|h| h.iter().all(u8::is_ascii_hexdigit)));
        if keep {
            out.push(*byte as char);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// `str:decode-uri`; the empty string where the bytes are not UTF-8.
pub fn decode_uri(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes
            .get(at + 1..at + 3)
            .and_then(|h| std::str::from_utf8(h).ok())
            .and_then(|h| u8::from_str_radix(h, 16).ok());
        match hex {
            Some(byte) if bytes[at] == b'%' => {
                out.push(byte);
                at += 3;
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions() {
        assert_eq!(padding(5.0, "ab"), "ababa");
        assert_eq!(padding(f64::NAN, "ab"), "");
        assert_eq!(align("abc", "-----", "right"), "--abc");
        assert_eq!(align("abc", "------", "center"), "-abc--");
        assert_eq!(align("abcdef", "---", "left"), "abc");
        assert_eq!(tokenize("2001-06-03T11:40", "-T:"), ["2001", "06", "03", "11", "40"]);
        assert_eq!(split("a, b, c", ", "), ["a", "b", "c"]);
        assert_eq!(split("abc", ""), ["a", "b", "c"]);
        let strings = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        assert_eq!(replace("a, b", &strings(&[", "]), &strings(&["-"])), "a-b");
        assert_eq!(replace("foo", &strings(&[""]), &strings(&["baz"])), "fbazobazo");
        assert_eq!(replace("abc", &strings(&["a", "ab"]), &strings(&["1", "2"])), "2c");
        assert_eq!(encode_uri("a b/ä", false), "a%20b/%C3%A4");
        assert_eq!(encode_uri("a b/", true), "a%20b%2F");
        assert_eq!(decode_uri("a%20b%C3%A4"), "a bä");
    }
}
