//! Suggestions for misspelled names, by edit distance.

use carrel_domain::suggest;

const MAX_SUGGESTIONS: usize = 5;

/// Maximum number of edits between a name and a suggestion.
const MAX_DISTANCE: usize = 2;

/// Longer names are not compared, so that a hostile one costs nothing.
const MAX_NAME_BYTES: usize = 64;

/// Returns the words within [`MAX_DISTANCE`] of `word`, and prefixes and extensions of it, the
/// nearest first.
pub(crate) fn similar_names<'a>(word: &str, words: impl Iterator<Item = &'a str>) -> Vec<String> {
    if word.is_empty() || word.len() > MAX_NAME_BYTES {
        return Vec::new();
    }
    let word = word.to_lowercase();
    let mut found: Vec<(usize, &str)> = words
        .filter_map(|other| {
            let distance = suggest::distance(&word, other)?;
            let begins = other.starts_with(&word) || word.starts_with(other);
            (distance <= MAX_DISTANCE.min(word.len() - 1) || begins).then_some((distance, other))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().take(MAX_SUGGESTIONS).map(|(_, other)| other.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_comes_first() {
        let words = ["rust", "ruby", "python", "py", "js", "json", "typescript"];
        assert_eq!(similar_names("rsut", words.into_iter()), ["rust"]);
        assert_eq!(similar_names("pyton", words.into_iter()), ["python", "py"]);
        assert_eq!(similar_names("Rusty", words.into_iter()), ["rust", "ruby"]);
        assert_eq!(similar_names("type", words.into_iter()), ["typescript"]);
        assert_eq!(similar_names("", words.into_iter()), Vec::<String>::new());
        assert_eq!(similar_names("zzzz", words.into_iter()), Vec::<String>::new());
    }
}
