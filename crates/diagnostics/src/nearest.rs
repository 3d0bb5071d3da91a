//! The valid name nearest to a misspelt one.

/// The candidate that a reader most likely meant by `name`: the one with the smallest edit distance
/// (insertion, deletion, replacement and swap of neighbours each cost one; case differences cost nothing),
/// provided that it is at most a third of the name. Of several with the same distance the first one. `None` when nothing is that close.
///
/// A project may have thousands of names, and as many unknown ones: most candidates are passed over by their length or letters.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer names cannot be typos of anything in a configuration; the limit keeps the table small.
    const LONGEST: usize = 100;
    let wanted: Vec<char> = name.to_lowercase().chars().collect();
    if wanted.is_empty() || wanted.len() > LONGEST {
        return None;
    }
    let mut allowed = (wanted.len() / 3).max(1);
    let wanted_letters = wanted.iter().fold(0, |bits, &c| bits | bit(c.into()));
    let (mut table, mut lower) = (Table::default(), Vec::new());
    let mut found = None;
    for candidate in candidates {
        if candidate == name || candidate.len() > 4 * LONGEST {
            continue;
        }
        // The letters of ASCII are compared where they stand.
        let bytes = candidate.as_bytes();
        let letters = match candidate.is_ascii() {
            true if bytes.len().abs_diff(wanted.len()) > allowed => continue,
            true => bytes.iter().fold(0, |bits, byte| bits | bit(byte.to_ascii_lowercase().into())),
            false => candidate.chars().flat_map(char::to_lowercase).fold(0, |bits, c| bits | bit(c.into())),
        };
        // Each letter that the other one does not have costs one at least.
        let missing = (wanted_letters & !letters).count_ones().max((letters & !wanted_letters).count_ones());
        if missing as usize > allowed {
            continue;
        }
        lower.clear();
        lower.extend(candidate.chars().flat_map(char::to_lowercase));
        if let Some(distance) = table.distance(&wanted, &lower, allowed) {
            found = Some(candidate);
            match distance {
                0 => break,
                // Only a nearer one is of interest.
                distance => allowed = distance - 1,
            }
        }
    }
    found
}

/// The bit of a character in a set of letters, which others may share.
fn bit(character: u32) -> u64 {
    1 << (character % 64)
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

/// Whether one edit makes one word the other, as [`nearest`] counts it.
pub(crate) fn differ_by_one(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    Table::default().distance(&a, &b, 1) == Some(1)
}

/// The last three rows of the table of distances.
#[derive(Default)]
struct Table {
    before_last: Vec<usize>,
    last: Vec<usize>,
    row: Vec<usize>,
}

impl Table {
    /// Optimal string alignment distance, if it is at most `allowed`. Only the fields of the table are computed that can be so.
    fn distance(&mut self, a: &[char], b: &[char], allowed: usize) -> Option<usize> {
        if a.len().abs_diff(b.len()) > allowed {
            return None;
        }
        let Table { before_last, last, row } = self;
        for each in [&mut *before_last, &mut *last, &mut *row] {
            each.clear();
            each.resize(b.len() + 1, allowed + 1);
        }
        last.iter_mut().zip(0..=allowed).for_each(|(field, distance)| *field = distance);
        for i in 1..=a.len() {
            let (from, to) = (i.saturating_sub(allowed).max(1), (i + allowed).min(b.len()));
            // The fields beside those that are computed may be of an earlier row.
            row[from - 1] = if from == 1 { i } else { allowed + 1 };
            let mut least = row[from - 1];
            for j in from..=to {
                let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let above = if j < i + allowed { last[j] + 1 } else { allowed + 1 };
                row[j] = replaced.min(above).min(row[j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    row[j] = row[j].min(before_last[j - 2] + 1);
                }
                least = least.min(row[j]);
            }
            if let Some(field) = row.get_mut(to + 1) {
                *field = allowed + 1;
            }
            // A swap leads from the row before the last one.
            if least > allowed && last.iter().min().is_none_or(|&least| least > allowed) {
                return None;
            }
            std::mem::swap(before_last, last);
            std::mem::swap(last, row);
        }
        Some(last[b.len()]).filter(|distance| *distance <= allowed)
    }
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
        assert_eq!(nearest("ÄPFEL", ["apfel", "äpfel", "äpfl"]), Some("äpfel"));
        assert_eq!(
            nearest("sequence", ["sequenze", "sequences", "sequencs"]),
            Some("sequenze"),
            "the first of equals"
        );
        assert_eq!(did_you_mean("ky", names).as_deref(), Some("did you mean `key`?"));
    }

    /// The whole table.
    fn distance(a: &[char], b: &[char]) -> usize {
        let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
        for i in 0..=a.len() {
            for j in 0..=b.len() {
                table[i][j] = match (i, j) {
                    (0, other) | (other, 0) => other,
                    _ => {
                        let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                        let other = replaced.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                        match i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                            true => other.min(table[i - 2][j - 2] + 1),
                            false => other,
                        }
                    }
                };
            }
        }
        table[a.len()][b.len()]
    }

    #[test]
    fn the_part_of_the_table_that_counts_gives_the_same() {
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        let mut table = Table::default();
        for _ in 0..20_000 {
            let mut word = || (0..next(9)).map(|_| ['a', 'b', 'c'][next(3) as usize]).collect::<Vec<char>>();
            let (a, b) = (word(), word());
            let expected = distance(&a, &b);
            for allowed in 0..5 {
                let found = table.distance(&a, &b, allowed);
                assert_eq!(found, Some(expected).filter(|d| *d <= allowed), "{a:?} {b:?} {allowed}");
            }
        }
    }
}
