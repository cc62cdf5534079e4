//! Texts that come from outside.

/// Bytes of an error that are kept.
pub(crate) const MAX_ERROR: usize = 2000;

/// Bytes of a message of an agent that are kept.
pub(crate) const MAX_MESSAGE: usize = 500;

const CUT: &str = "…";

/// Cuts a text that is too long, between two characters.
pub(crate) fn truncated(mut text: String, most: usize) -> String {
    if text.len() > most {
        let mut end = most.saturating_sub(CUT.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(CUT);
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
