//! Bounds of texts that come from agents and trackers and are kept in the state.

/// Bytes of an error text.
pub(crate) const MAX_ERROR: usize = 2000;

/// Bytes of an agent event's text.
pub(crate) const MAX_MESSAGE: usize = 500;

const ELLIPSIS: &str = "…";

/// Truncates a text to `max_bytes` with an ellipsis, at a character boundary.
pub(crate) fn truncated(mut text: String, max_bytes: usize) -> String {
    if text.len() > max_bytes {
        text.truncate(text.floor_char_boundary(max_bytes.saturating_sub(ELLIPSIS.len())));
        text.push_str(ELLIPSIS);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(truncated("short".to_owned(), 5), "short");
        assert_eq!(truncated("abcdefgh".to_owned(), 6), "abc…");
        for most in 3..12 {
            assert!(truncated("ééééééé".to_owned(), most).len() <= most);
        }
    }
}
