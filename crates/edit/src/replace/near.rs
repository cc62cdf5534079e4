//! A hint for text that would be found if its white space were right.

use memchr::memmem;

use super::error::NearMatch;
use crate::lines::{Line, lines};

/// Bounds the text that is searched for a hint, which takes a copy of it.
const MAX_SEARCHED_BYTES: usize = 8 * 1024 * 1024;

/// Bounds how much of a line a hint repeats.
const MAX_SHOWN_CHARACTERS: usize = 200;

/// Finds the first place that differs in nothing but white space.
pub(super) fn near_match(text: &str, old: &str) -> Option<NearMatch> {
    let wanted = squeeze(old);
    if wanted.is_empty() || text.len() > MAX_SEARCHED_BYTES {
        return None;
    }
    let (squeezed, line_starts) = squeeze_lines(text);
    let start = memmem::find(squeezed.as_bytes(), wanted.as_bytes())?;
    // Blank lines start where the next line does; the last of these holds the place.
    let line = line_starts.partition_point(|&line_start| line_start <= start);
    let old = old.trim_start_matches(['\n', '\r']);
    let there = lines(text).skip(line - 1);
    let same = there.zip(lines(old)).enumerate().take_while(|(index, (has, wants))| {
        has.text == wants.text || (*index == 0 && has.text.ends_with(wants.text))
    });
    let first_difference = same.count();
    // Where lines are only broken elsewhere, no line of the file differs by itself.
    let differs =
        lines(text).nth(line - 1 + first_difference).map_or(line, |_| line + first_difference);
    let text = lines(text).nth(differs - 1).map_or("", |line: Line<'_>| line.text);
    let text = text.chars().take(MAX_SHOWN_CHARACTERS).collect();
    Some(NearMatch { line, differs, text })
}

fn squeeze(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Returns the text without white space, and where each of its lines starts there.
fn squeeze_lines(text: &str) -> (String, Vec<usize>) {
    let mut squeezed = String::with_capacity(text.len());
    let mut starts = Vec::new();
    for line in lines(text) {
        starts.push(squeezed.len());
        squeezed.extend(line.text.chars().filter(|c| !c.is_whitespace()));
    }
    (squeezed, starts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_place_that_differs_in_white_space_is_named() {
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
            });
            assert_eq!(near_match(text, old), want, "{old:?}");
        }
    }
}
