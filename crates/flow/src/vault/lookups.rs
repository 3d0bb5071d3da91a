//! Which secrets an expression names, so that they can be looked for when it is compiled.

use crate::text::quoted;
use std::ops::Range;

/// The functions of XPath and of `${…}`, and whether they are about secrets of another server.
const FUNCTIONS: [(&str, bool); 4] = [
    ("hashicorp:vault-lookup", true),
    ("hashicorp-vault", true),
    ("vault-lookup", false),
    ("wso2-vault", false),
];

/// A call all of whose arguments are literals.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lookup<'t> {
    /// It is about a secret of another server.
    pub remote: bool,
    /// What it is asked with.
    pub arguments: Vec<&'t str>,
    /// Where it is in its expression.
    pub place: Range<usize>,
}

/// The calls in an expression all of whose arguments are literals. What an expression computes shows when it runs.
pub(crate) fn lookups(expression: &str) -> Vec<Lookup<'_>> {
    let mut found = Vec::new();
    if !FUNCTIONS.iter().any(|(name, _)| expression.contains(name)) {
        return found;
    }
    let mut at = 0;
    while let Some(next) = expression[at..].chars().next() {
        let rest = &expression[at..];
        if let Some((_, behind)) = quoted(rest) {
            at = expression.len() - behind.len();
            continue;
        }
        if let Some((name, remote)) = FUNCTIONS.iter().find(|(name, _)| rest.starts_with(name))
            && let Some((arguments, behind)) = arguments(&rest[name.len()..])
        {
            let end = expression.len() - behind.len();
            found.push(Lookup { remote: *remote, arguments, place: at..end });
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
    let mut arguments = Vec::new();
    loop {
        let (argument, behind) = quoted(rest.trim_start())?;
        arguments.push(argument);
        let behind = behind.trim_start();
        match behind.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Some((arguments, behind.strip_prefix(')')?)),
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
            (
                "hashicorp:vault-lookup('a/b', 'c')",
                vec![(vec!["a/b", "c"], "hashicorp:vault-lookup('a/b', 'c')")],
            ),
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
            let calls: Vec<_> = lookups(expression)
                .into_iter()
                .map(|call| (call.arguments, &expression[call.place]))
                .collect();
            assert_eq!(calls, wanted, "{expression}");
            let remote = lookups(expression).first().is_some_and(|call| call.remote);
            assert_eq!(remote, expression.starts_with("hashicorp"), "{expression}");
        }
    }
}
