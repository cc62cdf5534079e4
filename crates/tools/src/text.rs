//! Putting answers together.

/// Adds a line behind whatever is there.
pub(crate) fn line(text: &mut String, line: &str) {
    end_line(text);
    text.push_str(line);
    text.push('\n');
}

/// Ends the last line, if there is one.
pub(crate) fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}
