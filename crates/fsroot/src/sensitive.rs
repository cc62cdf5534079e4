//! Names that browsing never shows.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::write::TEMPORARY_PREFIX;

/// Names that hold credentials or belong to the server.
const NAMES: [&str; 7] =
    [".ssh", ".gitconfig", ".aws", ".gcp", ".workspace_meta.json", ".carrel", ".git-credentials"];

/// Beginnings of such names.
const PREFIXES: [&str; 2] = [".task_env_", TEMPORARY_PREFIX];

/// Tells whether a name is hidden from listings, refused to readers and never searched.
///
/// Upper and lower case count as the same: on a file system that folds case,
/// `.SSH` opens `.ssh`.
pub fn is_sensitive(name: &OsStr) -> bool {
    let name = name.as_bytes();
    NAMES.iter().any(|hidden| name.eq_ignore_ascii_case(hidden.as_bytes()))
        || PREFIXES.iter().any(|prefix| {
            name.get(..prefix.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
        })
}

pub(crate) fn has_sensitive_component(path: &Path) -> bool {
    path.iter().any(is_sensitive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_covers_names_and_prefixes_in_any_case() {
        for name in
            [".ssh", ".SSH", ".gitconfig", ".aws", ".workspace_meta.json", ".task_env_7", ".carrel"]
        {
            assert!(is_sensitive(OsStr::new(name)), "{name}");
        }
        for name in ["ssh", ".sshd", ".env", ".git", ".task_en", "", ".github"] {
            assert!(!is_sensitive(OsStr::new(name)), "{name}");
        }
    }
}
