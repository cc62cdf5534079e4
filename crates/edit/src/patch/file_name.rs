//! File names as unified diffs write them: quoted, with escapes, `a/` and `b/` prefixes and times.

/// A name in a `---` or `+++` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileName {
    /// `/dev/null`: the file does not exist on this side.
    None,
    Path(String),
}

const NO_FILE: &str = "/dev/null";

/// Prefixes that git puts before the two names, by default and with `diff.mnemonicPrefix`.
const PREFIXES: [(&str, &str); 5] =
    [("a/", "b/"), ("i/", "w/"), ("c/", "w/"), ("c/", "i/"), ("o/", "w/")];

impl FileName {
    /// Parses the rest of a `---` or `+++` line.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let path = match text.strip_prefix('"') {
            Some(quoted) => unquote(quoted)?.0,
            // A time may follow after a tab.
            None => text.split('\t').next()?.trim_end().to_owned(),
        };
        if path.is_empty() || path.contains('\0') {
            return None;
        }
        Some(if path == NO_FILE { Self::None } else { Self::Path(path) })
    }
}

/// Removes the prefixes of the two names of a file if they form a pair.
pub(super) fn without_prefixes(old: FileName, new: FileName) -> (FileName, FileName) {
    let strip = |path: &str, prefix: &str| {
        let rest = path.strip_prefix(prefix).filter(|rest| !rest.is_empty())?;
        Some(FileName::Path(rest.to_owned()))
    };
    let stripped = match (&old, &new) {
        (FileName::Path(old), FileName::Path(new)) => PREFIXES
            .iter()
            .find_map(|(before, after)| Some((strip(old, before)?, strip(new, after)?))),
        (FileName::None, FileName::Path(new)) => strip(new, "b/").map(|new| (FileName::None, new)),
        (FileName::Path(old), FileName::None) => strip(old, "a/").map(|old| (old, FileName::None)),
        (FileName::None, FileName::None) => None,
    };
    stripped.unwrap_or((old, new))
}

/// Parses the two names of a `diff --git` line; `None` if spaces make them ambiguous.
pub(super) fn git_names(text: &str) -> Option<(FileName, FileName)> {
    let (old, new) = match text.strip_prefix('"') {
        Some(quoted) => {
            let (old, rest) = unquote(quoted)?;
            (old, plain_or_quoted(rest.strip_prefix(' ')?)?)
        }
        None => match text.strip_suffix('"').and_then(|text| text.split_once(" \"")) {
            Some((old, new)) => (old.to_owned(), unquote(&format!("{new}\""))?.0),
            None => equal_halves(text)?,
        },
    };
    Some(without_prefixes(FileName::Path(old), FileName::Path(new)))
}

fn plain_or_quoted(text: &str) -> Option<String> {
    match text.strip_prefix('"') {
        Some(quoted) => Some(unquote(quoted)?.0),
        None => Some(text.to_owned()),
    }
}

/// Splits names that may contain spaces, which works if both are equal except for the prefix.
fn equal_halves(text: &str) -> Option<(String, String)> {
    let (old, new) = text.split_at_checked(text.len() / 2)?;
    let new = new.strip_prefix(' ')?;
    let same = old == new || old.strip_prefix("a/")? == new.strip_prefix("b/")?;
    same.then(|| (old.to_owned(), new.to_owned()))
}

/// Decodes a C-quoted name after its opening quote; also returns the text after the closing one.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    loop {
        let (&first, after) = rest.split_first()?;
        rest = after;
        match first {
            b'"' => break,
            b'\\' => rest = escape(rest, &mut bytes)?,
            plain => bytes.push(plain),
        }
    }
    let after = text.get(text.len() - rest.len()..)?;
    Some((String::from_utf8(bytes).ok()?, after))
}

/// Decodes the escape after a backslash and returns the rest.
fn escape<'a>(rest: &'a [u8], bytes: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (&first, after) = rest.split_first()?;
    let byte = match first {
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        b'"' | b'\\' => first,
        b'0'..=b'3' => {
            let digits = std::str::from_utf8(rest.get(..3)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 8).ok()?);
            return rest.get(3..);
        }
        _ => return None,
    };
    bytes.push(byte);
    Some(after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn path(path: &str) -> FileName {
        FileName::Path(path.to_owned())
    }

    #[test]
    fn names_are_read_with_quotes_escapes_and_times() {
        let cases = [
            ("a/x.rs", Some(path("a/x.rs"))),
            ("a/with space.rs\t", Some(path("a/with space.rs"))),
            ("x.rs\t2024-01-01 10:00:00.000 +0100", Some(path("x.rs"))),
            ("/dev/null", Some(FileName::None)),
            ("/dev/null\t1970-01-01", Some(FileName::None)),
            (r#""a/t\303\274r\t\"\\.txt""#, Some(path("a/tür\t\"\\.txt"))),
            (r#""a/open"#, None),
            (r#""a/\q""#, None),
            (r#""a/\377""#, None),
            (r#""a/\000""#, None),
            (r#""a/\7""#, None),
            ("", None),
        ];
        for (text, want) in cases {
            assert_eq!(FileName::parse(text), want, "{text}");
        }
    }

    #[test]
    fn prefixes_are_removed_in_pairs_only() {
        let cases = [
            (path("a/x"), path("b/x"), path("x"), path("x")),
            (path("i/x"), path("w/x"), path("x"), path("x")),
            (path("a/x"), path("a/x"), path("a/x"), path("a/x")),
            (path("x"), path("x"), path("x"), path("x")),
            (FileName::None, path("b/x"), FileName::None, path("x")),
            (path("a/x"), FileName::None, path("x"), FileName::None),
            (path("a/"), path("b/"), path("a/"), path("b/")),
        ];
        for (old, new, old_path, new_path) in cases {
            assert_eq!(without_prefixes(old, new), (old_path, new_path));
        }
    }

    #[test]
    fn the_names_of_a_git_line_are_split_where_both_halves_are_equal() {
        let cases = [
            ("a/x y b/x y", Some("x y")),
            ("x x", Some("x")),
            (r#""a/\303\274" "b/\303\274""#, Some("ü")),
            (r#"a/x "b/x""#, Some("x")),
            ("a/x b/y", None),
            ("", None),
        ];
        for (text, want) in cases {
            let want = want.map(|name| (path(name), path(name)));
            assert_eq!(git_names(text), want, "{text}");
        }
    }
}
