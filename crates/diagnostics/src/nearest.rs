//! The valid name nearest to a misspelt one.

/// The candidate that a reader most likely meant by `name`: the one with the smallest edit distance
/// (insertion, deletion, replacement and swap of neighbours each cost one; case differences cost nothing),
/// provided that it is at most a third of the name. `None` when nothing is that close.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer names cannot be typos of anything in a configuration; the limit keeps the table small.
    const LONGEST: usize = 100;
    let wanted: Vec<char> = name.to_lowercase().chars().collect();
    if wanted.is_empty() || wanted.len() > LONGEST {
        return None;
    }
    let allowed = (wanted.len() / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| *candidate != name && candidate.len() <= 4 * LONGEST)
        .map(|candidate| {
            (distance(&wanted, &candidate.to_lowercase().chars().collect::<Vec<_>>()), candidate)
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `` did you mean `x`? `` for the [`nearest`] candidate.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(name, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}

/// The only candidate that differs from `name` in nothing but the case of letters, hyphens and underscores: what was certainly
/// meant.
pub fn respelt<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let bare =
        |text: &str| text.chars().filter(|c| !matches!(c, '-' | '_')).collect::<String>().to_lowercase();
    let wanted = bare(name);
    let mut same = candidates.into_iter().filter(|candidate| *candidate != name && bare(candidate) == wanted);
    let first = same.next().filter(|_| !wanted.is_empty())?;
    same.all(|other| other == first).then_some(first)
}

/// The edit distance of two short words, as [`nearest`] counts it.
pub(crate) fn distance_of(a: &str, b: &str) -> usize {
    distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>())
}

/// Optimal string alignment distance.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let mut row = vec![0; b.len() + 1];
    for i in 1..=a.len() {
        row[0] = i;
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        std::mem::swap(&mut before_last, &mut last);
        std::mem::swap(&mut last, &mut row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_find_their_name() {
        let names = ["endpoint", "inSequence", "outSequence", "uri-template", "key"];
        for (name, expected) in [
            ("endpont", Some("endpoint")),
            ("endpiont", Some("endpoint")),
            ("insequence", Some("inSequence")),
            ("OutSequence", Some("outSequence")),
            ("uri_template", Some("uri-template")),
            ("kez", Some("key")),
            ("transport", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, names), expected, "{name}");
        }
        assert_eq!(respelt("insequence", names), Some("inSequence"));
        assert_eq!(respelt("uri_Template", names), Some("uri-template"));
        for name in ["inSequence", "endpont", "", "-"] {
            assert_eq!(respelt(name, names), None, "{name}");
        }
        assert_eq!(respelt("AB", ["aB", "Ab"]), None);
        assert_eq!(did_you_mean("ky", names).as_deref(), Some("did you mean `key`?"));
    }
}
