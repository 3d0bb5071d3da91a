//! EXSLT's regular expressions (`http://exslt.org/regular-expressions`). The patterns are those of XPath: those of JavaScript, which EXSLT
//! asks for, without `\b` and look-around.

use xpath::regex::{Regex, RegexError};

/// The expression, and whether all matches count (`g`), not the first alone.
fn compiled(pattern: &str, flags: &str) -> Result<(std::sync::Arc<Regex>, bool), String> {
    let regex_flags: String = flags.chars().filter(|flag| *flag != 'g').collect();
    Ok((Regex::cached(pattern, &regex_flags).map_err(message)?, flags.contains('g')))
}

fn message(error: RegexError) -> String {
    format!("regexp: {}", error.message)
}

/// `regexp:test()`.
pub(crate) fn test(text: &str, pattern: &str, flags: &str) -> Result<bool, String> {
    compiled(pattern, flags)?.0.is_match(text).map_err(message)
}

/// `regexp:match()`: the first match and its groups, or all matches.
pub(crate) fn matches(text: &str, pattern: &str, flags: &str) -> Result<Vec<String>, String> {
    let (regex, all) = compiled(pattern, flags)?;
    let parts = regex.analyze(text, true).map_err(message)?;
    let mut found = parts.into_iter().filter_map(|part| part.groups);
    let owned = |groups: Vec<&str>| groups.into_iter().map(str::to_owned).collect();
    Ok(match all {
        true => found.filter_map(|groups| groups.first().map(|whole| (*whole).to_owned())).collect(),
        false => found.next().map(owned).unwrap_or_default(),
    })
}

/// `regexp:replace()`: the first match, or all; `$1` in the replacement is the first group.
pub(crate) fn replace(text: &str, pattern: &str, flags: &str, replacement: &str) -> Result<String, String> {
    let (regex, all) = compiled(pattern, flags)?;
    let mut out = String::with_capacity(text.len());
    let mut done = false;
    for part in regex.analyze(text, true).map_err(message)? {
        match part.groups {
            Some(groups) if all || !done => {
                done = true;
                expand(replacement, &groups, &mut out);
            }
            _ => out.push_str(part.text),
        }
    }
    Ok(out)
}

fn expand(replacement: &str, groups: &[&str], out: &mut String) {
    let mut rest = replacement;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let number = rest.bytes().next().filter(u8::is_ascii_digit).map(|digit| usize::from(digit - b'0'));
        match number.and_then(|number| groups.get(number)) {
            Some(group) => {
                out.push_str(group);
                rest = &rest[1..];
            }
            None => out.push('$'),
        }
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_and_replaces() {
        assert_eq!(test("Order 12", "[0-9]+", ""), Ok(true));
        assert_eq!(test("order", "ORDER", "i"), Ok(true));
        assert_eq!(
            matches("http://a:80/x", "(\\w+)://([^/:]+):(\\d+)", "").unwrap(),
            ["http://a:80", "http", "a", "80"]
        );
        assert_eq!(matches("a1b22", "\\d+", "g").unwrap(), ["1", "22"]);
        assert_eq!(matches("abc", "\\d", "g").unwrap(), Vec::<String>::new());
        assert_eq!(replace("a1b2", "\\d", "", "<$0>"), Ok("a<1>b2".into()));
        assert_eq!(replace("a1b2", "([a-z])(\\d)", "g", "$2$1 $9"), Ok("1a $92b $9".into()));
        assert!(test("a", "(", "").is_err() && test("a", "a", "z").is_err());
    }
}
