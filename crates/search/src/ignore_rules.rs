//! Ignore rules: `.rgignore`, `.ignore`, `.gitignore` and `.git/info/exclude`.
//!
//! Rules form a chain from a directory up to the workspace's root; directories without rule files
//! share the node of their parent. For each kind of file the nearest directory with a matching rule
//! decides, and among the kinds the order above decides. The chain of the git kinds ends at a
//! repository's top directory, as in git: an outer `.gitignore` does not apply inside a nested
//! repository.
//!
//! Each path is matched relative to the directory of its rules, without asking the file system.
//! Files larger than 256 KiB are not applied and reported, since their rules are compiled in
//! memory.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_fsroot::Directory;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::node::vanished;
use crate::read_failure::ReadFailures;

/// Bounds the size of one ignore file.
const MAX_IGNORE_FILE_BYTES: u64 = 256 * 1024;

/// The kinds of ignore files, the strongest first.
const FILES: [&str; KINDS] = [".rgignore", ".ignore", ".gitignore", ".git/info/exclude"];
const KINDS: usize = 4;

/// Returns whether a file of this name holds rules for the directory that it is in.
pub fn is_rule_file(name: &OsStr) -> bool {
    FILES[..KINDS - 1].iter().any(|file| name == *file)
}

/// Index of the first kind whose rules end at the top of a repository.
const FIRST_OF_GIT: usize = 2;

/// Entry that marks the top of a repository; a file in worktrees and submodules.
pub(crate) const REPOSITORY: &str = ".git";

/// Directory of a repository's own rules, and their file.
pub(crate) const REPOSITORY_RULES: (&str, &str) = (".git/info", "exclude");

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The rules of one directory, linked to the rules of the directories above.
#[derive(Debug)]
pub struct Rules {
    /// Directory of the rule files; paths are matched relative to it.
    base: PathBuf,
    above: Option<Arc<Rules>>,
    files: [Option<Gitignore>; KINDS],
    is_repository: bool,
}

/// The kinds of rule files that a directory may contain, so that the others are not opened. The last
/// one is below `.git` and stands for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct PresentRuleFiles([bool; KINDS]);

impl PresentRuleFiles {
    /// Returns a value for a directory that was not listed: every file is tried.
    pub(crate) fn unknown() -> Self {
        Self([true; KINDS])
    }

    /// Returns whether an entry marks the top of a repository.
    pub(crate) fn has_repository(self) -> bool {
        self.0[KINDS - 1]
    }

    /// Notes an entry of the directory.
    pub fn note(&mut self, name: &OsStr) {
        let Some(b'.') = name.as_bytes().first() else { return };
        self.0[KINDS - 1] |= name == REPOSITORY;
        for (present, file) in self.0.iter_mut().zip(FILES) {
            *present |= name == file;
        }
    }
}

impl Rules {
    /// Reads the rules of a directory at the path `base`; returns those of the parent if it has none.
    pub fn read(
        above: Option<&Arc<Self>>,
        directory: &Directory,
        base: &Path,
        present: PresentRuleFiles,
        unreadable: &mut ReadFailures,
    ) -> Option<Arc<Self>> {
        let PresentRuleFiles(present) = present;
        if !present.contains(&true) {
            return above.cloned();
        }
        let files = std::array::from_fn(|kind| {
            let name = Path::new(FILES[kind]);
            let text = present[kind].then(|| read_text(directory, name)).flatten()?;
            let rules = text.and_then(|text| compile(&text));
            rules.map_err(|reason| unreadable.add(base.join(name), reason)).ok()
        });
        let is_repository =
            present[KINDS - 1] && directory.link_metadata(Path::new(REPOSITORY)).is_ok();
        if !is_repository && files.iter().all(Option::is_none) {
            return above.cloned();
        }
        Some(Arc::new(Self { base: base.to_owned(), above: above.cloned(), files, is_repository }))
    }

    /// Returns whether the rules of this directory and those above it exclude a path below it. Names that a
    /// search skips by default, such as hidden ones, are not its concern.
    pub fn excludes(&self, path: &Path, is_directory: bool) -> bool {
        self.matched(path, is_directory).is_ignore()
    }

    /// Matches a path below this directory against the whole chain.
    pub(crate) fn matched(&self, path: &Path, is_directory: bool) -> Match<()> {
        let mut strongest = [const { Match::None }; KINDS];
        let mut kinds = KINDS;
        let mut level = Some(self);
        while let Some(rules) = level {
            let relative = below(path, &rules.base);
            for (verdict, file) in strongest.iter_mut().zip(&rules.files).take(kinds) {
                // The nearest directory with a matching rule decides.
                if let (Match::None, Some(file)) = (&verdict, file) {
                    *verdict = file.matched(relative, is_directory).map(|_| ());
                }
            }
            if rules.is_repository {
                kinds = FIRST_OF_GIT;
            }
            level = rules.above.as_deref();
        }
        strongest.into_iter().find(|verdict| !verdict.is_none()).unwrap_or(Match::None)
    }
}

/// Returns a path relative to a directory that is known to contain it.
fn below<'a>(path: &'a Path, base: &Path) -> &'a Path {
    let bytes = path.as_os_str().as_bytes();
    let skipped = base.as_os_str().len();
    let start = if skipped == 0 { 0 } else { skipped + 1 };
    Path::new(OsStr::from_bytes(bytes.get(start..).unwrap_or_default()))
}

/// Reads an ignore file; `None` if there is none.
fn read_text(directory: &Directory, name: &Path) -> Option<Result<String, String>> {
    let file = match directory.open_file(name) {
        Ok((file, _)) => file,
        Err(error) => {
            return match error.problem() {
                // Links are not followed, as in git: the target may belong to another repository.
                problem if vanished(problem) => None,
                problem => Some(Err(problem.to_string())),
            };
        }
    };
    let mut bytes = Vec::new();
    match file.take(MAX_IGNORE_FILE_BYTES + 1).read_to_end(&mut bytes) {
        Err(error) => Some(Err(error.to_string())),
        Ok(_) if bytes.len() as u64 > MAX_IGNORE_FILE_BYTES => Some(Err(format!(
            "larger than {MAX_IGNORE_FILE_BYTES} bytes; its rules are not applied"
        ))),
        Ok(_) => Some(Ok(String::from_utf8_lossy(&bytes).into_owned())),
    }
}

/// Compiles the rules of one file. An invalid rule is dropped, as in git.
fn compile(text: &str) -> Result<Gitignore, String> {
    // `below` makes paths relative already, so the builder has no prefix to strip.
    let mut builder = GitignoreBuilder::new(".");
    builder.allow_unclosed_class(false);
    for line in text.trim_start_matches(BYTE_ORDER_MARK).lines() {
        // An invalid line does not invalidate the rest of the file.
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
    fn patterns_match_as_in_git() {
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
