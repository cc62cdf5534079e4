//! The ignore files of a workspace.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_fsroot::Directory;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::node::vanished;
use crate::unreadable::ReadFailure;

/// The most that is read of one ignore file: its rules are held in memory and compiled.
const MAX_IGNORE_FILE_BYTES: u64 = 256 * 1024;

/// The ignore files in the order in which they overrule each other, the strongest first.
const FILES: [&str; KINDS] = [".rgignore", ".ignore", ".gitignore", ".git/info/exclude"];
const KINDS: usize = 4;

/// The first of [`FILES`] that belongs to git and ends at the border of a repository.
const FIRST_OF_GIT: usize = 2;

/// What makes a directory the top of a repository.
const REPOSITORY: &str = ".git";

/// A byte order mark, which some editors put before the first rule.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The rules of one directory and, through it, of those above.
#[derive(Debug)]
pub(crate) struct Rules {
    /// The directory that holds the rules; they apply to paths below it.
    base: PathBuf,
    above: Option<Arc<Rules>>,
    files: [Option<Gitignore>; KINDS],
    is_repository: bool,
}

/// What the rules say about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No rule matches.
    Silent,
    /// The strongest matching rule ignores it.
    Ignored,
    /// The strongest matching rule brings it back.
    Wanted,
}

/// Which of the files that make rules a directory may have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Present {
    files: [bool; KINDS],
    repository: bool,
}

impl Present {
    /// Nothing is known, so every file is tried.
    pub(crate) fn unknown() -> Self {
        Self { files: [true; KINDS], repository: true }
    }

    /// Notes a name of the directory's listing.
    pub(crate) fn note(&mut self, name: &OsStr) {
        let Some(b'.') = name.as_bytes().first() else { return };
        if name == REPOSITORY {
            self.repository = true;
            self.files[KINDS - 1] = true;
        }
        for (present, file) in self.files.iter_mut().zip(FILES) {
            *present |= name == file;
        }
    }

    fn any(self) -> bool {
        self.repository || self.files.contains(&true)
    }
}

impl Rules {
    /// Reads the rules of a directory, or returns those above when it has none.
    pub(crate) fn read(
        above: Option<&Arc<Self>>,
        directory: &Directory,
        base: &Path,
        present: Present,
        unreadable: &mut Vec<ReadFailure>,
    ) -> Option<Arc<Self>> {
        if !present.any() {
            return above.cloned();
        }
        let files = std::array::from_fn(|kind| {
            let name = Path::new(FILES[kind]);
            let text = present.files[kind].then(|| read_text(directory, name)).flatten()?;
            let rules = text.and_then(|text| compile(&text));
            rules.map_err(|reason| unreadable.push(ReadFailure::new(base.join(name), reason))).ok()
        });
        let is_repository =
            present.repository && directory.link_metadata(Path::new(REPOSITORY)).is_ok();
        if !is_repository && files.iter().all(Option::is_none) {
            return above.cloned();
        }
        Some(Arc::new(Self { base: base.to_owned(), above: above.cloned(), files, is_repository }))
    }

    /// Says what the rules of this directory and those above mean for a path below it.
    pub(crate) fn judge(&self, path: &Path, is_directory: bool) -> Verdict {
        let mut strongest = [Verdict::Silent; KINDS];
        let mut kinds = KINDS;
        let mut level = Some(self);
        while let Some(rules) = level {
            let relative = below(path, &rules.base);
            for (verdict, file) in strongest.iter_mut().zip(&rules.files).take(kinds) {
                // The nearest directory has the last word.
                if let (Verdict::Silent, Some(file)) = (*verdict, file) {
                    *verdict = verdict_of(&file.matched(relative, is_directory));
                }
            }
            if rules.is_repository {
                kinds = FIRST_OF_GIT;
            }
            level = rules.above.as_deref();
        }
        strongest.into_iter().find(|verdict| *verdict != Verdict::Silent).unwrap_or(Verdict::Silent)
    }
}

fn verdict_of<T>(found: &Match<T>) -> Verdict {
    match found {
        Match::None => Verdict::Silent,
        Match::Ignore(_) => Verdict::Ignored,
        Match::Whitelist(_) => Verdict::Wanted,
    }
}

/// Cuts the directory off a path that is known to lie below it.
fn below<'a>(path: &'a Path, base: &Path) -> &'a Path {
    let bytes = path.as_os_str().as_bytes();
    let skipped = base.as_os_str().len();
    let start = if skipped == 0 { 0 } else { skipped + 1 };
    Path::new(OsStr::from_bytes(bytes.get(start..).unwrap_or_default()))
}

/// Reads an ignore file; `None` when there is none.
fn read_text(directory: &Directory, name: &Path) -> Option<Result<String, String>> {
    let file = match directory.open_file(name) {
        Ok((file, _)) => file,
        Err(error) => {
            return match error.problem() {
                // A link is not followed, as in git: it may lead to rules of another place.
                problem if vanished(problem) => None,
                problem => Some(Err(problem.to_string())),
            };
        }
    };
    let mut bytes = Vec::new();
    match file.take(MAX_IGNORE_FILE_BYTES + 1).read_to_end(&mut bytes) {
        Err(error) => Some(Err(error.to_string())),
        Ok(_) if bytes.len() as u64 > MAX_IGNORE_FILE_BYTES => {
            Some(Err(format!("larger than {MAX_IGNORE_FILE_BYTES} bytes; its rules do not count")))
        }
        Ok(_) => Some(Ok(String::from_utf8_lossy(&bytes).into_owned())),
    }
}

/// Compiles the rules of one file. A rule that makes no sense is dropped, as git does.
fn compile(text: &str) -> Result<Gitignore, String> {
    // Paths are made relative to the rules' directory here, so the root has nothing to strip.
    let mut builder = GitignoreBuilder::new(".");
    builder.allow_unclosed_class(false);
    for line in text.trim_start_matches(BYTE_ORDER_MARK).lines() {
        // The rest of the file still counts.
        let _ = builder.add_line(None, line);
    }
    builder.build().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ignored(rules: &str, path: &str, is_directory: bool) -> bool {
        compile(rules).unwrap().matched(path, is_directory).is_ignore()
    }

    #[test]
    fn patterns_mean_what_git_says() {
        for (rules, path, is_directory, expected) in [
            ("/top", "top", false, true),
            ("/top", "deep/top", false, false),
            ("any", "deep/any", false, true),
            ("in/ner", "in/ner", false, true),
            ("in/ner", "a/in/ner", false, false),
            ("dir/", "dir", true, true),
            ("dir/", "dir", false, false),
            ("**/x", "a/b/x", false, true),
            ("a/**/z", "a/z", false, true),
            ("a/**/z", "a/b/c/z", false, true),
            ("a/**", "a/b", false, true),
            ("a/**", "a", true, false),
            ("*.log", "a/b.log", false, true),
            ("a*c", "a/c", false, false),
            ("a?c", "abc", false, true),
            ("f[0-9]", "f3", false, true),
            ("f[!0-9]", "f3", false, false),
            ("f[!0-9]", "fx", false, true),
            ("\\#x", "#x", false, true),
            ("# x", "# x", false, false),
            ("*.o\n!keep.o", "keep.o", false, false),
            ("!keep.o\n*.o", "keep.o", false, true),
            ("[bad\nok", "[bad", false, false),
            ("[bad\nok", "ok", false, true),
            ("\u{feff}marked", "marked", false, true),
            ("tail   ", "tail", false, true),
        ] {
            assert_eq!(ignored(rules, path, is_directory), expected, "{rules:?} on {path}");
        }
    }

    #[test]
    fn a_path_is_made_relative_to_its_rules() {
        assert_eq!(below(Path::new("a/b/c"), Path::new("a")), Path::new("b/c"));
        assert_eq!(below(Path::new("a"), Path::new("")), Path::new("a"));
    }
}
