//! The names that git refuses in a tree, by the rules of its own `fsck`.
//!
//! A tree with a name that some system takes for `.git` could overwrite the repository of whoever checks it out. File
//! systems of Apple ignore letter case and some characters of Unicode, those of Microsoft ignore letter case, what
//! follows a colon, and dots and spaces at the end, and know `.git` as `git~1`, too.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// The characters that file systems of Apple ignore in names.
const IGNORED_BY_HFS: [char; 16] = [
    '\u{200c}', '\u{200d}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}',
    '\u{202e}', '\u{206a}', '\u{206b}', '\u{206c}', '\u{206d}', '\u{206e}', '\u{206f}', '\u{feff}',
];

/// Returns whether git refuses an entry of this name.
pub(super) fn is_refused(name: &OsStr) -> bool {
    is_like_on_hfs(name, ".git")
        || ntfs_parts(name).any(|part| is_like_on_ntfs(part, ".git", "git~1"))
}

/// Returns whether git refuses a symbolic link of this name: it reads the file that the name belongs to.
pub(super) fn is_refused_link(name: &OsStr) -> bool {
    let is_like = |file: &str, short: &str| {
        is_like_on_hfs(name, file)
            || ntfs_parts(name).any(|part| is_like_on_ntfs(part, file, short))
    };
    is_like(".gitmodules", "gitmod~1")
}

fn is_like_on_hfs(name: &OsStr, file: &str) -> bool {
    let Some(name) = name.to_str() else { return false };
    let seen = name.chars().filter(|one| !IGNORED_BY_HFS.contains(one));
    seen.flat_map(char::to_lowercase).eq(file.chars())
}

/// Returns the name and what follows each backslash in it, which separates directories elsewhere.
fn ntfs_parts(name: &OsStr) -> impl Iterator<Item = &[u8]> {
    let bytes = name.as_bytes();
    let behind = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\\');
    std::iter::once(bytes).chain(behind.map(|(place, _)| &bytes[place + 1..]))
}

fn is_like_on_ntfs(name: &[u8], file: &str, short: &str) -> bool {
    let is_ended = |rest: &[u8]| {
        let end = rest.iter().position(|byte| !matches!(byte, b'.' | b' '));
        end.is_none_or(|end| matches!(rest[end], b':' | b'\\'))
    };
    [file, short].into_iter().any(|known| {
        name.split_at_checked(known.len()).is_some_and(|(start, rest)| {
            start.eq_ignore_ascii_case(known.as_bytes()) && is_ended(rest)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_some_system_takes_for_the_repository_is_refused() {
        for name in [
            ".git",
            ".GIT",
            ".Git",
            "git~1",
            "GIT~1",
            ".git.",
            ".git ",
            ".git . .",
            ".git::$INDEX",
            ".g\u{200c}it",
            "\u{feff}.git",
            "a\\.git",
            ".git\\config",
            "x\\GIT~1",
        ] {
            assert!(is_refused(OsStr::new(name)), "{name:?}");
        }
        for name in [
            ".gitignore",
            ".github",
            "git",
            "git~2",
            ".git-x",
            ".gitx",
            "x.git",
            "a:.git",
            ".g it",
            ".git\t",
        ] {
            assert!(!is_refused(OsStr::new(name)), "{name:?}");
        }
    }

    #[test]
    fn a_link_may_not_stand_for_the_list_of_submodules() {
        for name in [".gitmodules", ".GitModules", "GITMOD~1", ".gitmodules:x"] {
            assert!(is_refused_link(OsStr::new(name)), "{name:?}");
        }
        for name in [".gitignore", "gitmodules", ".gitmodules.txt"] {
            assert!(!is_refused_link(OsStr::new(name)), "{name:?}");
        }
    }
}
