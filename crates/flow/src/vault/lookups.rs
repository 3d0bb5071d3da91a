//! Which secrets an expression names, so that they can be looked for when it is compiled.

use crate::text::quoted;
use std::ops::Range;

/// The functions of XPath and of `${…}`.
const FUNCTIONS: [&str; 2] = ["vault-lookup", "wso2-vault"];

/// The calls in an expression all of whose arguments are literals: these, and the place of the call. What an expression
/// computes shows when it runs.
pub(crate) fn lookups(expression: &str) -> Vec<(Vec<&str>, Range<usize>)> {
    let mut found = Vec::new();
    if !FUNCTIONS.iter().any(|name| expression.contains(name)) {
        return found;
    }
    let mut at = 0;
    while let Some(next) = expression[at..].chars().next() {
        let rest = &expression[at..];
        if let Some((_, behind)) = quoted(rest) {
            at = expression.len() - behind.len();
            continue;
        }
        if let Some(name) = FUNCTIONS.iter().find(|name| rest.starts_with(**name))
            && let Some((arguments, behind)) = arguments(&rest[name.len()..])
        {
            let end = expression.len() - behind.len();
            found.push((arguments, at..end));
            at = end;
            continue;
        }
        at += next.len_utf8();
    }
    found
}

/// `('a', "b")` and what follows.
fn arguments(text: &str) -> Option<(Vec<&str>, &str)> {
    let mut rest = text.trim_start().strip_prefix('(')?;
    let mut all = Vec::new();
    loop {
        let (own, behind) = quoted(rest.trim_start())?;
        all.push(own);
        let behind = behind.trim_start();
        match behind.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Some((all, behind.strip_prefix(')')?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_with_literals_are_found() {
        for (expression, wanted) in [
            ("wso2:vault-lookup('a')", vec![(vec!["a"], "vault-lookup('a')")]),
            (
                "concat(wso2:vault-lookup ( 'a' , \"FILE\",'false' ), wso2:vault-lookup('b'))",
                vec![
                    (vec!["a", "FILE", "false"], "vault-lookup ( 'a' , \"FILE\",'false' )"),
                    (vec!["b"], "vault-lookup('b')"),
                ],
            ),
            ("${wso2-vault(\"a\")}", vec![(vec!["a"], "wso2-vault(\"a\")")]),
            ("'ä' = wso2:vault-lookup('é')", vec![(vec!["é"], "vault-lookup('é')")]),
            ("wso2:vault-lookup($ctx:alias)", vec![]),
            ("wso2:vault-lookup('a', $ctx:kind)", vec![]),
            ("concat('vault-lookup(', \"wso2:vault-lookup('a')\")", vec![]),
            ("wso2:vault-lookup(", vec![]),
            ("wso2:vault-lookup('a", vec![]),
            ("vault-lookup", vec![]),
            ("//order", vec![]),
            ("", vec![]),
        ] {
            let own: Vec<_> =
                lookups(expression).into_iter().map(|(all, place)| (all, &expression[place])).collect();
            assert_eq!(own, wanted, "{expression}");
        }
    }
}
