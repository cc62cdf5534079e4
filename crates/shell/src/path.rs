//! Lexical operations on paths: no link is followed and no file system is used.

use std::path::{Component, Path, PathBuf};

pub(crate) fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Joins a path to an absolute directory and resolves `.` and `..` lexically. `..` above `/` stays at `/`,
/// as in the kernel.
pub(crate) fn normalize(directory: &Path, path: &str) -> PathBuf {
    let mut result = PathBuf::from("/");
    for component in directory.join(path).components() {
        match component {
            Component::Normal(name) => result.push(name),
            Component::ParentDir => drop(result.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    result
}

/// The files below `/dev` that any command may use.
const HARMLESS: [&str; 5] = ["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty"];

/// Returns whether a normalized path is a device that any command may use.
pub(crate) fn is_harmless_device(path: &Path) -> bool {
    let descriptor = path.strip_prefix("/dev/fd").ok().and_then(Path::to_str);
    HARMLESS.iter().any(|harmless| path == Path::new(harmless))
        || descriptor.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Returns the parts of an argument that its program may take for a path: the whole argument, the text after
/// each `=`, after the letter of an option or a comma in one (`-I/usr`, `-Wl,-rpath,/usr`), after `@`, and
/// the path of a `file:` URL.
pub(crate) fn candidates(argument: &str) -> Vec<&str> {
    let mut parts = vec![argument];
    parts.extend(argument.match_indices('=').filter_map(|(at, _)| argument.get(at + 1..)));
    if argument.starts_with('-') {
        parts.extend(argument.match_indices(',').filter_map(|(at, _)| argument.get(at + 1..)));
        let after_letter = argument.get(1..).and_then(|rest| {
            let letter = rest.chars().next().filter(|c| *c != '-')?;
            rest.get(letter.len_utf8()..)
        });
        parts.extend(after_letter);
    }
    let inner: Vec<&str> = parts.iter().filter_map(|part| unwrapped(part)).collect();
    parts.extend(inner);
    parts.retain(|part| !part.is_empty());
    parts
}

fn unwrapped(part: &str) -> Option<&str> {
    if let Some(rest) = part.strip_prefix('@') {
        return Some(rest);
    }
    let (scheme, rest) = part.split_once(':')?;
    if !scheme.eq_ignore_ascii_case("file") {
        return None;
    }
    // `file:///x`, `file://host/x` and `file:/x` all name `/x`.
    match rest.strip_prefix("//") {
        Some(rest) => rest.find('/').and_then(|at| rest.get(at..)),
        None => Some(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_that_may_be_a_path_is_found() {
        assert_eq!(candidates("--a=b=/etc"), ["--a=b=/etc", "b=/etc", "/etc"]);
        assert_eq!(candidates("-I/usr"), ["-I/usr", "/usr"]);
        assert_eq!(candidates("@/etc/x"), ["@/etc/x", "/etc/x"]);
        assert_eq!(
            candidates("x=FILE://host/etc"),
            ["x=FILE://host/etc", "FILE://host/etc", "/etc"]
        );
        assert_eq!(candidates(""), [""; 0]);
    }

    #[test]
    fn dots_are_taken_out_of_paths() {
        assert_eq!(normalize(Path::new("/w"), "a/./../../x"), Path::new("/x"));
        assert_eq!(normalize(Path::new("/w"), "/../..//dev/sda"), Path::new("/dev/sda"));
    }
}
