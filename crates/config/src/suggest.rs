//! Suggestions for misspelt names, by edit distance.
//!
//! A wrong suggestion is worse than none, so a name is suggested only if at most a third of its characters differ.

/// Returns the candidate with the smallest edit distance to `name`, if it is small enough for a misspelling.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let measured = candidates.into_iter().map(|candidate| (distance(name, candidate), candidate));
    let near = measured.filter(|(distance, candidate)| *distance <= allowance(name, candidate));
    near.min().map(|(_, candidate)| candidate)
}

/// A third of the characters may differ, at least one and at most four.
fn allowance(name: &str, candidate: &str) -> usize {
    (name.chars().count().max(candidate.len()) / 3).clamp(1, 4)
}

/// Returns the Damerau-Levenshtein distance with adjacent transpositions, ignoring ASCII case.
fn distance(left: &str, right: &str) -> usize {
    // Bounds the quadratic time; no setting has a longer name.
    const MAX_CHARS: usize = 64;
    let lower = |text: &str| -> Vec<char> {
        text.chars().take(MAX_CHARS).map(|c| c.to_ascii_lowercase()).collect()
    };
    let (left, right) = (lower(left), lower(right));
    let mut rows: Vec<Vec<usize>> = vec![(0..=right.len()).collect()];
    for i in 1..=left.len() {
        let mut row = vec![i];
        for j in 1..=right.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(left[i - 1] != right[j - 1]);
            let swapped =
                i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
            let best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            row.push(if swapped { best.min(rows[i - 2][j - 2] + 1) } else { best });
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let names = ["timeout_ms", "after_create", "env", "sandbox"];
        for (name, suggestion) in [
            ("timeout", Some("timeout_ms")),
            ("timout_ms", Some("timeout_ms")),
            ("timeoutMs", Some("timeout_ms")),
            ("aftercreate", Some("after_create")),
            ("ENV", Some("env")),
            ("envs", Some("env")),
            ("color", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, names), suggestion, "{name}");
        }
    }

    #[test]
    fn distances_count_edits() {
        for (left, right, edits) in
            [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("agnet", "Agent", 1)]
        {
            assert_eq!(distance(left, right), edits);
        }
    }
}
