//! The list of what a fork changed, for people: bounded, with one line for a directory that would be many.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use carrel_tools::{ForkChange, ForkChangeKind};
use serde_json::{Value, json};

use crate::output::printable;

/// The lines for people. Programs read all changes as JSON.
const MAX_LINES: usize = 200;

/// The entries of an added or deleted directory from which on they are counted and not named.
const MAX_NAMED_BELOW: usize = 20;

/// The directory of a repository, whose objects say nothing to people.
const REPOSITORY: &str = ".git";

/// Returns all changes as JSON.
pub(super) fn facts(changes: &[ForkChange]) -> Vec<Value> {
    let change = |change: &ForkChange| json!({ "path": change.path.to_string_lossy(), "change": change.kind.as_str() });
    changes.iter().map(change).collect()
}

/// Returns the changes as lines.
pub(super) fn text(changes: &[ForkChange]) -> String {
    let lines = lines(changes);
    let shown = lines.iter().take(MAX_LINES).map(Line::text).collect::<String>();
    let left: usize = lines.iter().skip(MAX_LINES).map(Line::count).sum();
    if left == 0 {
        return shown;
    }
    format!("{shown}and {left} more; --json has all\n")
}

/// A line: one change, or the changes below a directory.
enum Line<'a> {
    One(&'a ForkChange),
    Below { directory: PathBuf, kinds: BTreeMap<&'static str, usize> },
}

impl Line<'_> {
    fn count(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Below { kinds, .. } => kinds.values().sum(),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::One(change) => entry(change.kind.as_str(), &change.path, ""),
            Self::Below { directory, kinds } => {
                let counts: Vec<_> =
                    kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
                let word = match kinds.keys().collect::<Vec<_>>()[..] {
                    [only] => only,
                    _ => "changed",
                };
                entry(word, directory, &format!("/ ({})", counts.join(", ")))
            }
        }
    }
}

fn entry(word: &str, path: &Path, suffix: &str) -> String {
    format!("{word:<10} {}{suffix}\n", printable(&path.to_string_lossy()))
}

/// Groups the changes, which are in path order, by directories that are shown as one line.
fn lines(changes: &[ForkChange]) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut rest = changes;
    while let Some(first) = rest.first() {
        let grouped = repository_above(&first.path).or_else(|| whole_directory(rest));
        let Some(directory) = grouped else {
            lines.push(Line::One(first));
            rest = &rest[1..];
            continue;
        };
        let is_below = |change: &&ForkChange| change.path.starts_with(&directory);
        let below = rest.iter().take_while(is_below).count();
        let mut kinds = BTreeMap::new();
        for change in &rest[..below] {
            *kinds.entry(change.kind.as_str()).or_default() += 1;
        }
        lines.push(Line::Below { directory, kinds });
        rest = &rest[below..];
    }
    lines
}

/// Returns the `.git` that a path lies in, the outermost one.
fn repository_above(path: &Path) -> Option<PathBuf> {
    let above = path.ancestors().skip(1).filter(|above| above.ends_with(REPOSITORY));
    above.last().map(Path::to_owned)
}

/// Returns the first path if it is a directory that was added or deleted with many entries.
fn whole_directory(changes: &[ForkChange]) -> Option<PathBuf> {
    let first = changes.first()?;
    let is_whole = matches!(first.kind, ForkChangeKind::Added | ForkChangeKind::Deleted);
    let below = changes[1..].iter().take_while(|change| change.path.starts_with(&first.path));
    let is_alike = |change: &ForkChange| change.kind == first.kind;
    let count = below.take_while(|change| is_alike(change)).take(MAX_NAMED_BELOW + 1).count();
    (is_whole && count > MAX_NAMED_BELOW).then(|| first.path.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(kind: ForkChangeKind, path: &str) -> ForkChange {
        ForkChange { path: path.into(), kind, old: None, new: None }
    }

    #[test]
    fn repositories_and_whole_directories_are_one_line_each() {
        let mut changes = vec![
            change(ForkChangeKind::Modified, ".git/HEAD"),
            change(ForkChangeKind::Added, ".git/objects/00"),
            change(ForkChangeKind::Added, ".git/objects/00/1"),
            change(ForkChangeKind::Added, "new"),
            change(ForkChangeKind::Added, "new/a"),
        ];
        changes.push(change(ForkChangeKind::Deleted, "old"));
        changes.extend((0..30).map(|n| change(ForkChangeKind::Deleted, &format!("old/{n:02}"))));
        changes.push(change(ForkChangeKind::Modified, "src/a"));
        changes.push(change(ForkChangeKind::Added, "vendor/x/.git/HEAD"));
        let expected = "changed    .git/ (2 added, 1 modified)\n\
                        added      new\n\
                        added      new/a\n\
                        deleted    old/ (31 deleted)\n\
                        modified   src/a\n\
                        added      vendor/x/.git/ (1 added)\n";
        assert_eq!(text(&changes), expected);
    }

    #[test]
    fn a_long_list_ends_with_the_number_of_the_others() {
        let changes: Vec<_> =
            (0..250).map(|n| change(ForkChangeKind::Modified, &format!("{n:03}"))).collect();
        let shown = text(&changes);
        assert_eq!(shown.lines().count(), MAX_LINES + 1);
        assert!(shown.ends_with("modified   199\nand 50 more; --json has all\n"), "{shown}");
    }
}
