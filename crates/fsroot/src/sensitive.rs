//! Sensitive names, which browsing interfaces neither show nor open.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::write::TEMPORARY_PREFIX;

/// Names of files with credentials, and of the server's own files.
const NAMES: [&str; 7] =
    [".ssh", ".gitconfig", ".aws", ".gcp", ".workspace_meta.json", ".carrel", ".git-credentials"];

/// Prefixes of such names.
const PREFIXES: [&str; 2] = [".task_env_", TEMPORARY_PREFIX];

/// Returns whether a name is left out of listings and searches and refused to readers.
///
/// Case is ignored, because on a file system that folds case `.SSH` opens `.ssh`.
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
