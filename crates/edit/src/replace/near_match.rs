//! Near misses: the line of a file that a text would match if white space were ignored.
//!
//! Tabs written as spaces and wrong indentation are the most frequent reasons for a failed match.
//! The search compares both texts with all white space removed, and reports the first line that
//! differs as it is in the file, so that the agent can copy it. It is a hint in an error message
//! and never changes the file.

use memchr::memmem;

use super::error::{Difference, NearMatch};
use crate::lines::{Line, lines};

/// Bounds the size of a searched text, of which the search makes a copy.
const MAX_SEARCHED_BYTES: usize = 8 * 1024 * 1024;

/// Bounds the part of a line that is quoted in a message.
const MAX_SHOWN_CHARACTERS: usize = 200;

/// Finds the first position where `old` matches except for white space.
pub(super) fn near_match(text: &str, old: &str) -> Option<NearMatch> {
    let wanted = strip_white_space(old);
    if wanted.is_empty() || text.len() > MAX_SEARCHED_BYTES {
        return None;
    }
    let (stripped, line_starts) = strip_lines(text);
    let start = memmem::find(stripped.as_bytes(), wanted.as_bytes())?;
    // Blank lines have the same start as the line after them; the last one holds the match.
    let line = line_starts.partition_point(|&line_start| line_start <= start);
    let old = old.trim_start_matches(['\n', '\r']);
    let there = lines(text).skip(line - 1);
    let same = there.zip(lines(old)).enumerate().take_while(|(index, (has, wants))| {
        has.text == wants.text || (*index == 0 && has.text.ends_with(wants.text))
    });
    let first_difference = same.count();
    // If only the line breaks differ, every line of the file matches by itself.
    let differs =
        lines(text).nth(line - 1 + first_difference).map_or(line, |_| line + first_difference);
    let text = lines(text).nth(differs - 1).map_or("", |line: Line<'_>| line.text);
    let text = text.chars().take(MAX_SHOWN_CHARACTERS).collect();
    Some(NearMatch { line, differs, text, difference: Difference::WhiteSpace })
}

fn strip_white_space(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Returns the text without white space and the offset of each line in it.
fn strip_lines(text: &str) -> (String, Vec<usize>) {
    let mut stripped = String::with_capacity(text.len());
    let mut starts = Vec::new();
    for line in lines(text) {
        starts.push(stripped.len());
        stripped.extend(line.text.chars().filter(|c| !c.is_whitespace()));
    }
    (stripped, starts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_match_except_for_white_space_is_reported() {
        let text = "fn a() {\n\n\tone();\n\tif x {\n\t\ttwo();\n\t}\n}\n";
        let cases = [
            ("    one();", Some((3, 3, "\tone();"))),
            ("\tif x {\n\t    two();", Some((4, 5, "\t\ttwo();"))),
            ("one( ) ;", Some((3, 3, "\tone();"))),
            ("if x { two(); }", Some((4, 4, "\tif x {"))),
            ("three();", None),
            (" \n ", None),
        ];
        for (old, want) in cases {
            let want = want.map(|(line, differs, text)| NearMatch {
                line,
                differs,
                text: text.to_owned(),
                difference: Difference::WhiteSpace,
            });
            assert_eq!(near_match(text, old), want, "{old:?}");
        }
    }
}
