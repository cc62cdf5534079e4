//! Suggestions for misspelt names, by edit distance.
//!
//! A wrong suggestion is worse than none, so a name is suggested only if at most a third of its characters differ.

/// Returns the candidate with the smallest edit distance to `name`, if it is small enough for a misspelling.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    carrel_domain::suggest::closest(name, candidates, |candidate| allowance(name, candidate))
}

/// A third of the characters may differ, at least one and at most four.
fn allowance(name: &str, candidate: &str) -> usize {
    (name.chars().count().max(candidate.len()) / 3).clamp(1, 4)
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
}
