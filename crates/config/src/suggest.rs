//! Finds the name that a misspelt one was meant to be.

/// Returns the candidate nearest to `name`, if it is near enough to be meant.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let measured = candidates.into_iter().map(|candidate| (distance(name, candidate), candidate));
    let near = measured.filter(|(distance, candidate)| *distance <= allowance(name, candidate));
    near.min().map(|(_, candidate)| candidate)
}

/// A third of the letters may differ; beyond that a suggestion only confuses.
fn allowance(name: &str, candidate: &str) -> usize {
    (name.chars().count().max(candidate.len()) / 3).clamp(1, 4)
}

/// Counts the insertions, removals, replacements and swaps of neighbours that turn one text into the other.
fn distance(left: &str, right: &str) -> usize {
    // Settings have short names. A long text is never a misspelling of one.
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
