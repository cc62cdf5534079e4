//! Words that are no flags: revisions, names, files.

use std::path::{Component, Path, PathBuf};

use carrel_domain::Code;

use crate::failure::Failure;

/// Where words are read.
#[derive(Clone, Copy)]
pub(super) struct Ground<'a> {
    /// The absolute path of the workspace.
    pub(super) workspace: &'a Path,
    /// Where git starts, relative to the workspace, without links.
    pub(super) directory: &'a Path,
    /// Makes an absolute path that lies in the workspace relative to it, whatever it is called.
    pub(super) relative: &'a (dyn Fn(&str) -> PathBuf + Sync),
}

impl Ground<'_> {
    /// Returns a path relative to the workspace, without `.` and `..`, if it lies there. This is a
    /// matter of text: where links lead is the business of the kernel.
    pub(super) fn inside(&self, path: &str) -> Option<PathBuf> {
        let given =
            if path.starts_with('/') { (self.relative)(path) } else { self.directory.join(path) };
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

pub(super) fn has_control(text: &str) -> bool {
    text.chars().any(char::is_control)
}

fn refused(operation: &str, word: &str, reason: &str) -> Failure {
    let message = format!("git {operation}: `{}` {reason}", word.escape_debug());
    Failure::new(Code::GitRefused, message).with("operation", operation).with("word", word)
}

/// Checks a revision: `HEAD~1`, `main..feature`, `v1.0^{commit}`, `:/fix`, `HEAD:src/lib.rs`.
pub(super) fn revision(operation: &str, word: &str) -> Result<(), Failure> {
    match () {
        () if word.is_empty() => Err(refused(operation, word, "is no revision")),
        () if word.starts_with('-') => {
            Err(refused(operation, word, "is no revision: it begins with a dash"))
        }
        () if has_control(word) => {
            Err(refused(operation, word, "is no revision: it has control characters"))
        }
        () => Ok(()),
    }
}

/// Checks the name of a branch or a remote. Git has more rules; these keep a name from being anything else.
pub(super) fn name(operation: &str, word: &str) -> Result<(), Failure> {
    let bad = |character: char| {
        character.is_control()
            || matches!(character, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\')
    };
    match () {
        () if word.is_empty() || word.starts_with(['-', '/']) || word.contains(bad) => {
            Err(refused(operation, word, "is no name"))
        }
        () if word.contains("..") || word.contains("@{") || word.ends_with(['/', '.']) => {
            Err(refused(operation, word, "is no name"))
        }
        () => Ok(()),
    }
}

/// Checks what to fetch or push: `main`, `+main:main`, `refs/heads/*:refs/remotes/o/*`, `:old`.
pub(super) fn refspec(operation: &str, word: &str) -> Result<(), Failure> {
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

/// Checks a file of the workspace and returns how git is to be told of it.
pub(super) fn path(ground: &Ground<'_>, word: &str) -> Result<String, Failure> {
    let Some(inside) = ground.inside(word) else { return Err(outside(word)) };
    if !word.starts_with('/') {
        return Ok(word.to_owned());
    }
    // The operator's name for the workspace may lead through links that do not exist inside.
    Ok(ground.workspace.join(inside).to_string_lossy().into_owned())
}

/// Checks files of the workspace, which may be a pattern: `src`, `*.rs`, `:(exclude)docs`.
pub(super) fn pathspec(ground: &Ground<'_>, word: &str) -> Result<String, Failure> {
    if has_control(word) && word.contains('\0') {
        return Err(outside(word));
    }
    match magic(word) {
        Some((_, rest, from_top)) => {
            let top = Ground { directory: Path::new(""), ..*ground };
            let from = if from_top { &top } else { ground };
            if from.inside(rest).is_none() {
                return Err(outside(word));
            }
            Ok(word.to_owned())
        }
        None => path(ground, word),
    }
}

/// Tells the magic of a pattern from the rest, and whether that begins at the top.
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

/// Checks a word that git takes for a revision or a file, whichever there is.
pub(super) fn either(operation: &str, ground: &Ground<'_>, word: &str) -> Result<String, Failure> {
    revision(operation, word)?;
    if word.starts_with('/') {
        return path(ground, word);
    }
    // `HEAD:../x` and `main..x` do not lead out; `../x` may.
    let climbs = word.split('/').any(|part| part == "..") && !word.contains(':');
    if climbs && ground.inside(word).is_none() {
        return Err(outside(word));
    }
    Ok(word.to_owned())
}

/// Refuses a path that leaves the workspace.
pub(super) fn outside(path: &str) -> Failure {
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

    fn relative(path: &str) -> PathBuf {
        let path = Path::new(path);
        path.strip_prefix("/w").or_else(|_| path.strip_prefix("/link")).unwrap_or(path).to_owned()
    }

    fn ground(directory: &Path) -> Ground<'_> {
        Ground { workspace: Path::new("/w"), directory, relative: &relative }
    }

    #[test]
    fn paths_stay_inside() {
        let sub = ground(Path::new("a/b"));
        for inside in
            ["x", "../x", "../../x", "..x", "*.rs", ":/src", ":(top)src", ":!docs", ":^../x", "."]
        {
            assert_eq!(pathspec(&sub, inside).unwrap(), inside);
        }
        assert_eq!(pathspec(&sub, "/w/x").unwrap(), "/w/x");
        assert_eq!(pathspec(&sub, "/link/x/../y").unwrap(), "/w/y");
        for outside in [
            "../../../x",
            "/etc/passwd",
            "/w/../x",
            ":/../x",
            ":(top)../x",
            ":(exclude)../../../x",
            "/wx",
        ] {
            let failure = pathspec(&sub, outside).unwrap_err();
            assert_eq!(failure.code, Code::SandboxViolation, "{outside}");
        }
    }

    #[test]
    fn revisions_names_and_refspecs_are_nothing_else() {
        for good in [
            "HEAD~1",
            "main..feature",
            "a...b",
            "v1^{commit}",
            ":/fix bug",
            "HEAD@{1 day ago}",
            "^main",
        ] {
            assert_eq!(revision("log", good), Ok(()), "{good}");
        }
        for bad in ["", "-x", "--output=x", "a\nb", "a\0"] {
            assert!(revision("log", bad).is_err(), "{bad:?}");
        }
        for good in ["main", "feature/x", "v1.0"] {
            assert_eq!(name("branch", good), Ok(()), "{good}");
        }
        for bad in ["", "-x", "a b", "a..b", "a@{1}", "a:b", "x\n[core]", "/x", "x/", "a*"] {
            assert!(name("branch", bad).is_err(), "{bad:?}");
        }
        for good in ["main", "+main:main", ":old", "refs/heads/*:refs/remotes/o/*", "HEAD", "^x"] {
            assert_eq!(refspec("push", good), Ok(()), "{good}");
        }
        for bad in ["", "-x", "a:-x", "a:b:c", "a b", "+"] {
            assert!(refspec("push", bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_word_that_may_be_either_does_not_lead_out() {
        let top = ground(Path::new(""));
        for good in ["src", "HEAD~1", "main..x", "HEAD:a/../b", "a/../b", "/w/x"] {
            assert!(either("diff", &top, good).is_ok(), "{good}");
        }
        for bad in ["../x", "a/../../x", "/etc/hostname", "-x", "/dev/null"] {
            assert!(either("diff", &top, bad).is_err(), "{bad}");
        }
    }
}
