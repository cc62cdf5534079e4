//! Putting answers together.

use std::fmt::Write as _;

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

/// Writes bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        text
    })
}
