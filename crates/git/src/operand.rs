//! Checks of arguments that are no flags: revisions, names, refspecs, paths.
//!
//! These checks are about text. They keep an operand from being read as a flag or as several lines, and a
//! path from naming a file outside the workspace. Symbolic links are the sandbox's concern: git sees only
//! the workspace there.

use std::path::{Component, Path, PathBuf};

use carrel_domain::{Code, Failure};

/// The base of relative paths, and the workspace that they must stay in.
#[derive(Clone, Copy, Debug)]
pub struct PathResolver<'a> {
    /// The absolute path of the workspace, without links.
    pub workspace: &'a Path,
    /// The directory in which git starts, relative to the workspace, without links.
    pub directory: &'a Path,
    /// The workspace as the operator wrote it, possibly through links.
    pub alias: &'a Path,
}

impl PathResolver<'_> {
    /// Returns a path relative to the workspace, without `.` and `..`; none if it leaves the workspace.
    pub(crate) fn resolve(&self, path: &str) -> Option<PathBuf> {
        let given = if path.starts_with('/') {
            let path = Path::new(path);
            let names = [self.workspace, self.alias];
            names.iter().find_map(|top| path.strip_prefix(top).ok()).unwrap_or(path).to_owned()
        } else {
            self.directory.join(path)
        };
        let mut inside = PathBuf::new();
        for part in given.components() {
            match part {
                Component::Normal(name) => inside.push(name),
                Component::CurDir => {}
                Component::ParentDir if inside.pop() => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        Some(inside)
    }
}

/// Tells whether a text has control characters, such as a line feed.
pub fn has_control(text: &str) -> bool {
    text.chars().any(char::is_control)
}

fn refused(operation: &str, word: &str, reason: &str) -> Failure {
    let message = format!("git {operation}: `{}` {reason}", word.escape_debug());
    Failure::new(Code::GitRefused, message).with("operation", operation).with("word", word)
}

/// Checks a revision: `HEAD~1`, `main..feature`, `v1.0^{commit}`, `:/fix`, `HEAD:src/lib.rs`.
pub(crate) fn check_revision(operation: &str, word: &str) -> Result<(), Failure> {
    if word.is_empty() {
        Err(refused(operation, word, "is no revision"))
    } else if word.starts_with('-') {
        Err(refused(operation, word, "is no revision: it begins with a dash"))
    } else if has_control(word) {
        Err(refused(operation, word, "is no revision: it has control characters"))
    } else {
        Ok(())
    }
}

/// Checks the name of a branch or a remote. Git has more rules; these keep a name from being read as
/// anything else.
pub(crate) fn check_name(operation: &str, word: &str) -> Result<(), Failure> {
    let is_forbidden = |character: char| {
        character.is_control()
            || matches!(character, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\')
    };
    let is_wrong = word.is_empty()
        || word.starts_with(['-', '/'])
        || word.ends_with(['/', '.'])
        || word.contains(is_forbidden)
        || word.contains("..")
        || word.contains("@{");
    if is_wrong { Err(refused(operation, word, "is no name")) } else { Ok(()) }
}

/// Checks a refspec: `main`, `+main:main`, `refs/heads/*:refs/remotes/o/*`, `:old`.
pub(crate) fn check_refspec(operation: &str, word: &str) -> Result<(), Failure> {
    let bad =
        |character: char| character.is_control() || matches!(character, ' ' | '?' | '[' | '\\');
    let sides = word.strip_prefix('+').unwrap_or(word);
    let sides = sides.strip_prefix('^').unwrap_or(sides);
    let dashed = sides.split(':').any(|side| side.starts_with('-'));
    if sides.is_empty() || sides.contains(bad) || dashed || sides.split(':').count() > 2 {
        return Err(refused(operation, word, "names no branches, such as `main` or `main:other`"));
    }
    Ok(())
}

pub(crate) fn check_path(paths: &PathResolver<'_>, word: &str) -> Result<String, Failure> {
    let Some(inside) = paths.resolve(word) else { return Err(outside(word)) };
    if !word.starts_with('/') {
        return Ok(word.to_owned());
    }
    // The operator's name of the workspace may lead through links that do not exist in the sandbox.
    Ok(paths.workspace.join(inside).to_string_lossy().into_owned())
}

/// Checks a pathspec (`src`, `*.rs`, `:(exclude)docs`) and returns it as git sees it.
pub(crate) fn check_pathspec(paths: &PathResolver<'_>, word: &str) -> Result<String, Failure> {
    if word.contains('\0') {
        return Err(outside(word));
    }
    match magic(word) {
        Some((_, rest, from_top)) => {
            let top = PathResolver { directory: Path::new(""), ..*paths };
            let from = if from_top { &top } else { paths };
            if from.resolve(rest).is_none() {
                return Err(outside(word));
            }
            Ok(word.to_owned())
        }
        None => check_path(paths, word),
    }
}

/// Splits a pathspec into its magic, its pattern, and whether the pattern begins at the top of the work
/// tree.
fn magic(word: &str) -> Option<(&str, &str, bool)> {
    let rest = word.strip_prefix(':')?;
    if let Some(long) = rest.strip_prefix('(') {
        let (words, rest) = long.split_once(')')?;
        return Some((words, rest, words.split(',').any(|word| word == "top")));
    }
    let length = rest.find(|character| !matches!(character, '/' | '!' | '^')).unwrap_or(rest.len());
    let (letters, rest) = rest.split_at(length);
    Some((letters, rest.strip_prefix(':').unwrap_or(rest), letters.contains('/')))
}

/// Checks an operand that git reads as a revision or a path, whichever exists, and returns it as git sees
/// it.
pub(crate) fn check_revision_or_path(
    operation: &str,
    paths: &PathResolver<'_>,
    word: &str,
) -> Result<String, Failure> {
    check_revision(operation, word)?;
    if word.starts_with('/') {
        return check_path(paths, word);
    }
    // `HEAD:../x` and `main..x` stay in the repository; `../x` may not.
    let climbs = word.split('/').any(|part| part == "..") && !word.contains(':');
    if climbs && paths.resolve(word).is_none() {
        return Err(outside(word));
    }
    Ok(word.to_owned())
}

pub(crate) fn outside(path: &str) -> Failure {
    let message = format!(
        "path leaves the workspace: {}; give it relative to the workspace",
        path.escape_debug()
    );
    Failure::new(Code::SandboxViolation, message).with("path", path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn resolver(directory: &Path) -> PathResolver<'_> {
        PathResolver { workspace: Path::new("/w"), directory, alias: Path::new("/link") }
    }

    #[test]
    fn paths_stay_in_the_workspace() {
        let sub = resolver(Path::new("a/b"));
        for inside in
            ["x", "../x", "../../x", "..x", "*.rs", ":/src", ":(top)src", ":!docs", ":^../x", "."]
        {
            assert_eq!(check_pathspec(&sub, inside).unwrap(), inside);
        }
        assert_eq!(check_pathspec(&sub, "/w/x").unwrap(), "/w/x");
        assert_eq!(check_pathspec(&sub, "/link/x/../y").unwrap(), "/w/y");
        for outside in [
            "../../../x",
            "/etc/passwd",
            "/w/../x",
            ":/../x",
            ":(top)../x",
            ":(exclude)../../../x",
            "/wx",
        ] {
            let failure = check_pathspec(&sub, outside).unwrap_err();
            assert_eq!(failure.code, Code::SandboxViolation, "{outside}");
        }
    }

    #[test]
    fn no_revision_name_or_refspec_reads_as_a_flag() {
        for good in [
            "HEAD~1",
            "main..feature",
            "a...b",
            "v1^{commit}",
            ":/fix bug",
            "HEAD@{1 day ago}",
            "^main",
        ] {
            assert_eq!(check_revision("log", good), Ok(()), "{good}");
        }
        for bad in ["", "-x", "--output=x", "a\nb", "a\0"] {
            assert!(check_revision("log", bad).is_err(), "{bad:?}");
        }
        for good in ["main", "feature/x", "v1.0"] {
            assert_eq!(check_name("branch", good), Ok(()), "{good}");
        }
        for bad in ["", "-x", "a b", "a..b", "a@{1}", "a:b", "x\n[core]", "/x", "x/", "a*"] {
            assert!(check_name("branch", bad).is_err(), "{bad:?}");
        }
        for good in ["main", "+main:main", ":old", "refs/heads/*:refs/remotes/o/*", "HEAD", "^x"] {
            assert_eq!(check_refspec("push", good), Ok(()), "{good}");
        }
        for bad in ["", "-x", "a:-x", "a:b:c", "a b", "+"] {
            assert!(check_refspec("push", bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_revision_or_path_stays_in_the_workspace() {
        let top = resolver(Path::new(""));
        for good in ["src", "HEAD~1", "main..x", "HEAD:a/../b", "a/../b", "/w/x"] {
            assert!(check_revision_or_path("diff", &top, good).is_ok(), "{good}");
        }
        for bad in ["../x", "a/../../x", "/etc/hostname", "-x", "/dev/null"] {
            assert!(check_revision_or_path("diff", &top, bad).is_err(), "{bad}");
        }
    }
}
