//! Lines of reply texts.

/// Appends a line, on a line of its own.
pub(crate) fn line(text: &mut String, line: &str) {
    end_line(text);
    text.push_str(line);
    text.push('\n');
}

/// Ends the last line if the text does not.
pub(crate) fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}
