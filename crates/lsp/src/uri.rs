//! `file:` URIs and paths.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

/// Everything but letters, digits and what RFC 3986 leaves as it is in a path.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns the URI of an absolute path.
pub(crate) fn of_path(path: &Path) -> String {
    format!("file://{}", percent_encode(path.as_os_str().as_bytes(), ESCAPED))
}

/// Returns the path of a `file:` URI of this host; `None` for any other.
pub(crate) fn to_path(uri: &str) -> Option<PathBuf> {
    let (scheme, rest) = uri.split_once("://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let is_file = scheme.eq_ignore_ascii_case("file") && path.starts_with('/');
    // A query or fragment is no part of a file's name; characters that are would be escaped.
    let path = path.split(['?', '#']).next()?;
    is_file.then(|| OsString::from_vec(percent_decode_str(path).collect()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn any_path_survives_a_round_trip() {
        for bytes in [&b"/a b/c#d?e%20.rs"[..], "/\u{e9}/\u{1f600}.ts".as_bytes(), b"/\xff", b"/"] {
            let path = PathBuf::from(OsString::from_vec(bytes.to_vec()));
            assert_eq!(to_path(&of_path(&path)), Some(path));
        }
        assert_eq!(of_path(Path::new("/w/a+b.rs")), "file:///w/a%2Bb.rs");
    }

    #[test]
    fn only_files_of_this_host_have_a_path() {
        for (uri, path) in [
            ("file:///w/%61.c", Some("/w/a.c")),
            ("FILE://localhost/w/a.c", Some("/w/a.c")),
            ("file://other/w/a.c", None),
            ("jdt://contents/java.base/String.class", None),
            ("untitled:a", None),
            ("", None),
        ] {
            assert_eq!(to_path(uri), path.map(PathBuf::from), "{uri}");
        }
    }
}
