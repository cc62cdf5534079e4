//! Shown lines: replies that show parts of a file count as reading them.
//!
//! A tool that shows lines of a file by another way than `Read` (hits of a search, a diff, the excerpt of a
//! failed test) names the file and the lines as it shows them. They are compared with the file as it is then,
//! and the parts that it still has are recorded in the [read tracker](crate::read_tracker) with its hash. An
//! old version in a diff, or a file that changed meanwhile, therefore unlocks nothing. A part counts as a
//! whole: a single empty line that happens to agree proves no knowledge of the lines around it.

use std::path::{Path, PathBuf};

use carrel_edit::Document;
use carrel_fsroot::OpenedFile;

use crate::blocking::blocking;
use crate::files::WorkspaceFiles;
use crate::read_tracker::{ContentHash, ReadExtent};
use crate::session::SessionLifetime;
use crate::tool_context::ToolContext;

/// Files of one reply that are compared; an overview of more is rarely followed by an edit of each.
const MAX_FILES: usize = 64;

/// Larger files are not compared: an edit of one is answered with the lines that it would change.
const MAX_COMPARED_BYTES: u64 = 1 << 20;

/// Lines before the line of a failure that are looked for in its excerpt.
const MAX_EXCERPT_LINES: usize = 100;

/// The shortest line, without the white space around it, that is recognised in an excerpt.
const MIN_EXCERPT_CHARS: usize = 4;

/// Consecutive lines of a file as a reply shows them, without line endings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShownPart {
    /// The number of the first line, counted from 1.
    pub(crate) first: usize,
    pub(crate) lines: Vec<String>,
}

/// The parts of one file that a reply shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShownFile {
    /// Relative to the workspace.
    pub(crate) path: PathBuf,
    pub(crate) parts: Vec<ShownPart>,
}

/// Records the files that a reply shows in part. A file that cannot be compared counts as not shown.
pub(crate) async fn record(context: &ToolContext, mut shown: Vec<ShownFile>) {
    shown.retain(|file| !file.parts.is_empty());
    shown.truncate(MAX_FILES);
    let compare = |file: ShownFile| {
        let ranges = move |lines: &[&str]| {
            let current = file.parts.iter().filter(|part| part.is_in(lines));
            current.filter_map(ShownPart::range).collect()
        };
        (file.path.clone(), ranges)
    };
    record_ranges(context, shown.into_iter().map(compare).collect()).await;
}

/// Records the lines of failed tests that a text shows: that of each failure, and those before it.
pub(crate) async fn record_excerpts(
    context: &ToolContext,
    text: &str,
    places: impl Iterator<Item = (String, usize)>,
) {
    let text: std::sync::Arc<str> = text.into();
    let compare = |(file, line): (String, usize)| {
        let (path, text) = (context.workspace().relative(&file), text.clone());
        (path, move |lines: &[&str]| excerpt(lines, line, &text).into_iter().collect())
    };
    record_ranges(context, places.take(MAX_FILES).map(compare).collect()).await;
}

/// Records the ranges of lines that `choose` recognises in each file.
async fn record_ranges<C>(context: &ToolContext, files: Vec<(PathBuf, C)>)
where
    C: FnOnce(&[&str]) -> Vec<(usize, usize)> + Send + 'static,
{
    // Nothing of this request is known to the next one.
    if files.is_empty() || context.session.lifetime() == SessionLifetime::OneRequest {
        return;
    }
    let workspace = WorkspaceFiles::of(context);
    let recorded = blocking(move || {
        for (path, choose) in files {
            record_file(&workspace, &path, choose);
        }
        Ok(())
    });
    if let Err(failure) = recorded.await {
        tracing::debug!(failure.message, "could not record shown lines");
    }
}

fn record_file(
    files: &WorkspaceFiles,
    path: &Path,
    choose: impl FnOnce(&[&str]) -> Vec<(usize, usize)>,
) -> Option<()> {
    let OpenedFile { bytes, .. } = files.root().read_opened(path, MAX_COMPARED_BYTES).ok()?;
    let key = files.key(path).ok()?;
    let hash = ContentHash::of(&bytes);
    let document = Document::decode(bytes);
    let lines: Vec<_> = carrel_edit::lines(document.text()).map(|line| line.text).collect();
    for (first, last) in choose(&lines) {
        files.record_read(key.clone(), hash, &ReadExtent::Lines(first, last, lines.len()));
    }
    Some(())
}

impl ShownPart {
    fn is_in(&self, lines: &[&str]) -> bool {
        let start = self.first.saturating_sub(1);
        let current = lines.get(start..start + self.lines.len());
        current.is_some_and(|current| {
            let same = |(one, shown): (&&str, &String)| *one == shown.trim_end_matches('\r');
            current.iter().zip(&self.lines).all(same)
        })
    }

    fn range(&self) -> Option<(usize, usize)> {
        let last = (self.first + self.lines.len()).checked_sub(1)?;
        (self.first > 0 && self.first <= last).then_some((self.first, last))
    }
}

/// Returns the range of lines up to that of a failure which a text shows one after the other.
fn excerpt(lines: &[&str], line: usize, text: &str) -> Option<(usize, usize)> {
    let is_shown = |line: &&&str| {
        let words = line.trim();
        words.is_empty() || text.contains(words)
    };
    // Some runners show the expression without the end of its statement.
    let failing = lines.get(line.checked_sub(1)?)?.trim().trim_end_matches([';', ',']);
    if failing.chars().count() < MIN_EXCERPT_CHARS || !text.contains(failing) {
        return None;
    }
    let before = lines[..line - 1].iter().rev().take(MAX_EXCERPT_LINES);
    Some((line - before.take_while(is_shown).count(), line))
}

/// Returns the files that a unified diff shows, on their new side. `directory` is the one that its paths are
/// relative to. A diff that was cut shows what is left of it.
pub(crate) fn of_diff(text: &str, directory: &Path) -> Vec<ShownFile> {
    let mut files: Vec<ShownFile> = Vec::new();
    // The old and new lines that the current hunk still has.
    let mut left = (0, 0);
    for line in text.lines() {
        if left == (0, 0) {
            if let Some(name) = line.strip_prefix("+++ ") {
                let path = name.split('\t').next().and_then(|name| name.strip_prefix("b/"));
                let path = path.map(|path| directory.join(path)).unwrap_or_default();
                files.push(ShownFile { path, parts: Vec::new() });
            } else if let Some((first, counts)) = hunk_header(line)
                && let Some(file) = files.last_mut()
            {
                left = counts;
                file.parts.push(ShownPart { first, lines: Vec::new() });
            }
            continue;
        }
        let part = files.last_mut().and_then(|file| file.parts.last_mut());
        let (Some(part), (old, new)) = (part, left) else { continue };
        left = match line.split_at_checked(1) {
            Some((" ", text)) => {
                part.lines.push(text.to_owned());
                (old.saturating_sub(1), new.saturating_sub(1))
            }
            None if line.is_empty() => {
                part.lines.push(String::new());
                (old.saturating_sub(1), new.saturating_sub(1))
            }
            Some(("+", text)) => {
                part.lines.push(text.to_owned());
                (old, new.saturating_sub(1))
            }
            Some(("-", _)) => (old.saturating_sub(1), new),
            Some(("\\", _)) => (old, new),
            // A note in place of lines that were left out.
            Some(_) | None => (0, 0),
        };
    }
    files.retain(|file| !file.path.as_os_str().is_empty());
    files
}

/// Parses `@@ -1,4 +1,5 @@`: the first new line, and the numbers of old and new lines.
fn hunk_header(line: &str) -> Option<(usize, (usize, usize))> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let range = |text: &str| match text.split_once(',') {
        Some((first, count)) => Some((first.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    };
    let ((_, old), (first, new)): ((usize, usize), (usize, usize)) = (range(old)?, range(new)?);
    Some((first, (old, new)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn part(first: usize, lines: &[&str]) -> ShownPart {
        ShownPart { first, lines: lines.iter().map(|line| (*line).to_owned()).collect() }
    }

    #[test]
    fn a_part_counts_if_the_file_has_all_of_it_there() {
        let lines = ["one", "", "three"];
        for (part, expected) in [
            (part(1, &["one", ""]), true),
            (part(3, &["three\r"]), true),
            (part(1, &["one", "two"]), false),
            (part(2, &["three"]), false),
            (part(3, &["three", "four"]), false),
            (part(9, &["three"]), false),
        ] {
            assert_eq!(part.is_in(&lines), expected, "{part:?}");
        }
        assert_eq!(part(2, &["", "three"]).range(), Some((2, 3)));
        assert_eq!(part(2, &[]).range(), None);
    }

    #[test]
    fn a_diff_shows_the_new_side_of_its_hunks() {
        let text = "commit abc\n\n    a message\n\ndiff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n\
                    +++ b/src/a.rs\n@@ -3,3 +3,4 @@ fn main() {\n three\n-four\n+vier\n+fünf\n six\n\
                    @@ -20 +21 @@\n-- x\n+++ y\ndiff --git a/gone b/gone\n--- a/gone\n+++ /dev/null\n\
                    @@ -1 +0,0 @@\n-x\n";
        let expected = ShownFile {
            path: "repo/src/a.rs".into(),
            parts: vec![part(3, &["three", "vier", "fünf", "six"]), part(21, &["++ y"])],
        };
        assert_eq!(of_diff(text, Path::new("repo")), [expected]);
    }

    #[test]
    fn a_diff_that_was_cut_shows_what_is_left_of_it() {
        let text = "--- a/a\n+++ b/a\n@@ -1,9 +1,9 @@\n one\n two\n[… 900 bytes left out; narrow it …]\n \
                    eight\n nine\n@@ -30,1 +30,1 @@\n-x\n+y\n";
        let parts = vec![part(1, &["one", "two"]), part(30, &["y"])];
        assert_eq!(of_diff(text, Path::new("")), [ShownFile { path: "a".into(), parts }]);
    }

    #[test]
    fn an_excerpt_is_the_line_of_the_failure_and_those_shown_before_it() {
        let lines = ["import x", "def test():", "    y = x()", "", "    assert y == 1", "}"];
        let text = "def test():\n    y = x()\n\n>   assert y == 1\nE   assert 2 == 1\n";
        assert_eq!(excerpt(&lines, 5, text), Some((2, 5)));
        assert_eq!(excerpt(&lines, 5, "assert 2 == 1"), None);
        assert_eq!(excerpt(&lines, 6, "}"), None, "too short to recognise");
        assert_eq!(excerpt(&lines, 9, text), None);
        assert_eq!(excerpt(&lines, 0, text), None);
    }
}
