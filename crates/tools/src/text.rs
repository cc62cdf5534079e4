//! Lines of reply texts.

pub(crate) fn line(text: &mut String, line: &str) {
    end_line(text);
    text.push_str(line);
    text.push('\n');
}

pub(crate) fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// Returns the text, or words for a reply without any: a client may show its model an empty text as nothing
/// at all.
pub(crate) fn or_words(text: String, words: &str) -> String {
    if text.trim().is_empty() { format!("{words}\n") } else { text }
}
