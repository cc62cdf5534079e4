//! The name that a misspelt one was meant to be, for "did you mean" in messages.
//!
//! Settings, tool arguments and file types share one measure, so that the same slip is forgiven everywhere:
//! the optimal string alignment distance of the `strsim` crate, which counts an insertion, a removal, a
//! replacement and a swap of two neighbours as one edit each, without regard to case. How many edits are
//! forgiven is the caller's choice, because it depends on how long and how alike the candidates are.

/// Longer names are not compared, since the cost grows with the product of both lengths and names may come from
/// a hostile client. The longest real candidate is a workspace key, of 120 bytes.
const MAX_CHARS: usize = 128;

/// Returns the candidate with the fewest edits from `name`, of several the first in the alphabet.
///
/// A candidate counts if it takes at most `allowance(candidate)` edits.
pub fn closest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    allowance: impl Fn(&str) -> usize,
) -> Option<&'a str> {
    let measured = candidates.into_iter().filter_map(|candidate| {
        let edits = distance(name, candidate)?;
        (edits <= allowance(candidate)).then_some((edits, candidate))
    });
    measured.min().map(|(_, candidate)| candidate)
}

/// Returns the number of edits that turn one name into the other, or `None` if one has more than 128 characters.
pub fn distance(name: &str, candidate: &str) -> Option<usize> {
    let is_comparable = |text: &str| text.chars().nth(MAX_CHARS).is_none();
    let comparable = is_comparable(name) && is_comparable(candidate);
    comparable.then(|| strsim::osa_distance(&name.to_lowercase(), &candidate.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_edits() {
        for (name, candidate, edits) in [
            ("", "", 0),
            ("abc", "", 3),
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("kitten", "sitting", 3),
            ("agnet", "Agent", 1),
        ] {
            assert_eq!(distance(name, candidate), Some(edits), "{name} {candidate}");
        }
    }

    #[test]
    fn the_closest_candidate_within_the_allowance_is_found() {
        let names = ["read", "write", "ready"];
        assert_eq!(closest("raed", names, |_| 1), Some("read"));
        assert_eq!(closest("reads", names, |_| 2), Some("read"));
        assert_eq!(closest("wirte", names, |_| 0), None);
        assert_eq!(closest("wirte", names, |candidate| candidate.len() / 3), Some("write"));
    }

    #[test]
    fn long_names_are_not_compared() {
        let longest = "x".repeat(MAX_CHARS);
        assert_eq!(distance(&longest, &longest), Some(0));
        assert_eq!(distance(&(longest.clone() + "x"), &longest), None);
    }
}
