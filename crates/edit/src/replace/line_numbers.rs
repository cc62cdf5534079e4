//! Removal of line numbers that an agent copied from a window along with the text.

/// Removes line numbers from `old`, and from `new` if all of its lines have one.
///
/// Returns `None` unless every line of `old` has a number and the numbers ascend by one.
pub(super) fn strip(old: &str, new: &str) -> Option<(String, String)> {
    let lines: Vec<_> = old.split_inclusive('\n').map(split).collect::<Option<_>>()?;
    let counts_up = lines.windows(2).all(|pair| pair[0].0.checked_add(1) == Some(pair[1].0));
    let stripped: String = lines.into_iter().map(|(_, text)| text).collect();
    if !counts_up || stripped.is_empty() {
        return None;
    }
    let new_lines: Option<Vec<_>> = new.split_inclusive('\n').map(split).collect();
    let new = match new_lines {
        Some(lines) => lines.into_iter().map(|(_, text)| text).collect(),
        None => new.to_owned(),
    };
    Some((stripped, new))
}

/// Splits a line of a window: optional spaces, its number, a tab and its text.
fn split(line: &str) -> Option<(usize, &str)> {
    let (number, text) = line.trim_start_matches(' ').split_once('\t')?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if digits { Some((number.parse().ok()?, text)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn numbers_are_removed_only_if_every_line_has_one() {
        let cases = [
            ("1\ta\n2\tb", "1\tx\n2\ty\n9\tz", Some(("a\nb", "x\ny\nz"))),
            ("  41\ta\n", "new", Some(("a\n", "new"))),
            ("7\t\ta", "", Some(("\ta", ""))),
            ("1\ta\n2\t\n", "1\tx\ny", Some(("a\n\n", "1\tx\ny"))),
            ("1\ta\nb", "x", None),
            ("1\ta\n3\tb", "x", None),
            ("x1\ta", "x", None),
            ("\ta", "x", None),
            ("1 a", "x", None),
            ("1\t", "x", None),
            ("99999999999999999999999\ta", "x", None),
        ];
        for (old, new, want) in cases {
            let want = want.map(|(old, new)| (old.to_owned(), new.to_owned()));
            assert_eq!(strip(old, new), want, "{old:?}");
        }
    }
}
