//! Paths relative to the workspace, as strings with forward slashes.
//!
//! The workspace itself is `.`; no other path has a dot component, so string comparison is path
//! comparison.

use std::path::{Component, Path};

pub(crate) const TOP: &str = ".";

/// Normalises a path lexically. Returns `None` if it is absolute, leaves the workspace or is not
/// UTF-8.
pub(crate) fn normal(path: &Path) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::ParentDir => {
                parts.pop()?;
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(if parts.is_empty() { TOP.to_owned() } else { parts.join("/") })
}

pub(crate) fn join(directory: &str, name: &str) -> String {
    if directory == TOP { name.to_owned() } else { format!("{directory}/{name}") }
}

/// Resolves a path relative to a directory; `None` if it leaves the workspace.
pub(crate) fn resolve(directory: &str, path: &str) -> Option<String> {
    normal(&Path::new(directory).join(path))
}

/// Returns the parent directory; `None` for the workspace itself.
pub(crate) fn parent(path: &str) -> Option<&str> {
    match path.rsplit_once('/') {
        Some((directory, _)) => Some(directory),
        None => (path != TOP).then_some(TOP),
    }
}

pub(crate) fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the text after the last dot of a file name; empty for names such as `.eslintrc`.
pub(crate) fn extension(path: &str) -> &str {
    match name(path).rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => extension,
        _ => "",
    }
}

/// Returns a directory and its parents, up to the workspace.
pub(crate) fn upwards(directory: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(directory), |directory| parent(directory))
}

/// Returns true if a path is a directory or below it.
pub(crate) fn is_within(path: &str, directory: &str) -> bool {
    directory == TOP
        || path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns a path relative to a directory, with `..` components if needed.
pub(crate) fn relative(from: &str, to: &str) -> String {
    let from: Vec<&str> = from.split('/').filter(|part| *part != TOP).collect();
    let to: Vec<&str> = to.split('/').filter(|part| *part != TOP).collect();
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let climb = std::iter::repeat_n("..", from.len() - shared);
    let steps: Vec<&str> = climb.chain(to[shared..].iter().copied()).collect();
    if steps.is_empty() { TOP.to_owned() } else { steps.join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised_and_never_leave() {
        let cases = [
            ("", Some(".")),
            (".", Some(".")),
            ("./a//b/", Some("a/b")),
            ("a/../b", Some("b")),
            ("..", None),
            ("a/../../b", None),
            ("/a", None),
        ];
        for (path, expected) in cases {
            assert_eq!(normal(Path::new(path)).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn parents_end_at_the_workspace() {
        assert_eq!(upwards("a/b").collect::<Vec<_>>(), ["a/b", "a", "."]);
        assert_eq!(upwards(".").collect::<Vec<_>>(), ["."]);
    }

    #[test]
    fn a_relative_path_climbs_only_as_far_as_needed() {
        assert_eq!(relative("a/b", "a/c/d"), "../c/d");
        assert_eq!(relative("a", "node_modules/.bin/x"), "../node_modules/.bin/x");
        assert_eq!(relative(".", "a"), "a");
        assert_eq!(relative("a", "a"), ".");
    }

    #[test]
    fn a_directory_holds_itself_and_what_is_below_but_no_namesake() {
        assert!(is_within("a/b", "a"));
        assert!(is_within("a", "a"));
        assert!(!is_within("ab", "a"));
        assert!(is_within("ab", "."));
    }

    #[test]
    fn a_dot_file_has_no_extension() {
        assert_eq!(extension("a/.eslintrc"), "");
        assert_eq!(extension("a/b.test.ts"), "ts");
    }
}
