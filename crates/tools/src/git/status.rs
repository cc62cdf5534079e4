//! What `git status --porcelain=v2 --branch -z` says.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

/// How many entries are among the facts; all are in the text.
const MAX_ENTRIES: usize = 500;

/// The state of a work tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct StatusFacts {
    /// The branch; none if a commit is checked out.
    pub(super) branch: Option<String>,
    /// The commit; none before the first.
    pub(super) commit: Option<String>,
    /// The branch that it follows, such as `origin/main`.
    pub(super) upstream: Option<String>,
    /// Commits that the upstream does not have.
    pub(super) ahead: Option<u64>,
    /// Commits that only the upstream has.
    pub(super) behind: Option<u64>,
    /// Nothing changed.
    pub(super) clean: bool,
    /// How many files changed or are unknown to git.
    pub(super) count: usize,
    /// The first 500 of them.
    pub(super) entries: Vec<StatusEntry>,
}

/// A file that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct StatusEntry {
    /// Where it is, relative to the top of the repository.
    pub(super) path: String,
    /// What the next commit changes: `M`, `A`, `D`, `R`, `C`, `T`, `U`; `.` for nothing, `?` for a file
    /// unknown to git, `!` for an ignored one.
    pub(super) index: char,
    /// What changed since then, in the same letters.
    pub(super) worktree: char,
    /// Where it was before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) original: Option<String>,
}

impl StatusFacts {
    /// Reads what git printed, and returns it with a text for the reader.
    pub(super) fn read(output: &str) -> (Self, String) {
        let mut facts = Self::default();
        let mut text = String::new();
        let mut records = output.split_terminator('\0');
        while let Some(record) = records.next() {
            let entry = match record.split_once(' ') {
                Some(("#", header)) => {
                    facts.header(header);
                    continue;
                }
                Some(("1", rest)) => entry(rest, 7, None),
                Some(("2", rest)) => entry(rest, 8, records.next()),
                Some(("u", rest)) => entry(rest, 9, None),
                Some((mark @ ("?" | "!"), path)) => {
                    let mark = if mark == "?" { '?' } else { '!' };
                    Some(StatusEntry {
                        path: path.to_owned(),
                        index: mark,
                        worktree: mark,
                        original: None,
                    })
                }
                Some(_) | None => None,
            };
            let Some(entry) = entry else { continue };
            entry.show(&mut text);
            facts.count += 1;
            if facts.entries.len() < MAX_ENTRIES {
                facts.entries.push(entry);
            }
        }
        facts.clean = facts.entries.iter().all(|entry| entry.index == '!');
        let mut shown = facts.heading();
        shown.push_str(if facts.count == 0 {
            "nothing to commit, working tree clean\n"
        } else {
            &text
        });
        (facts, shown)
    }

    fn header(&mut self, header: &str) {
        let Some((name, value)) = header.split_once(' ') else { return };
        match name {
            "branch.oid" => {
                self.commit = Some(value.to_owned()).filter(|value| value != "(initial)");
            }
            "branch.head" => {
                self.branch = Some(value.to_owned()).filter(|value| value != "(detached)");
            }
            "branch.upstream" => self.upstream = Some(value.to_owned()),
            "branch.ab" => {
                let (ahead, behind) = value.split_once(' ').unwrap_or_default();
                self.ahead = ahead.strip_prefix('+').and_then(|count| count.parse().ok());
                self.behind = behind.strip_prefix('-').and_then(|count| count.parse().ok());
            }
            _ => {}
        }
    }

    fn heading(&self) -> String {
        let mut text = match (&self.branch, &self.commit) {
            (Some(branch), Some(_)) => format!("## {branch}"),
            (Some(branch), None) => format!("## No commits yet on {branch}"),
            (None, commit) => {
                format!("## HEAD (no branch) at {}", commit.as_deref().unwrap_or("?"))
            }
        };
        if let Some(upstream) = &self.upstream {
            let _ = write!(text, "...{upstream}");
        }
        match (self.ahead.unwrap_or(0), self.behind.unwrap_or(0)) {
            (0, 0) => {}
            (ahead, 0) => drop(write!(text, " [ahead {ahead}]")),
            (0, behind) => drop(write!(text, " [behind {behind}]")),
            (ahead, behind) => drop(write!(text, " [ahead {ahead}, behind {behind}]")),
        }
        text.push('\n');
        text
    }
}

impl StatusEntry {
    fn show(&self, text: &mut String) {
        let letter = |letter: char| if letter == '.' { ' ' } else { letter };
        let (index, worktree) = (letter(self.index), letter(self.worktree));
        let from =
            self.original.as_ref().map_or(String::new(), |from| format!("{} -> ", shown(from)));
        // A string takes whatever is written to it.
        let _ = writeln!(text, "{index}{worktree} {from}{}", shown(&self.path));
    }
}

/// Shows a path on one line.
fn shown(path: &str) -> String {
    if path.contains(char::is_control) {
        format!("\"{}\"", path.escape_debug())
    } else {
        path.to_owned()
    }
}

/// Reads `XY`, skips what is between, and takes the rest for the path.
fn entry(rest: &str, fields: usize, original: Option<&str>) -> Option<StatusEntry> {
    let mut fields = rest.splitn(fields + 1, ' ');
    let mut letters = fields.next()?.chars();
    let (index, worktree) = (letters.next()?, letters.next()?);
    let path = fields.last()?.to_owned();
    Some(StatusEntry { path, index, worktree, original: original.map(str::to_owned) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn every_kind_of_entry_is_read_and_shown() {
        let output = "# branch.oid 1234\0# branch.head main\0# branch.upstream origin/main\0# branch.ab +1 -2\0\
            1 .M N... 100644 100644 100644 aa bb a file\0\
            2 R. N... 100644 100644 100644 aa bb R100 new\0old\0\
            u UU N... 100644 100644 100644 100644 aa bb cc both\0? un\nknown\0! ignored\0";
        let (facts, text) = StatusFacts::read(output);
        assert_eq!(
            text,
            "## main...origin/main [ahead 1, behind 2]\n M a file\nR  old -> new\nUU both\n?? \"un\\nknown\"\n!! ignored\n"
        );
        assert_eq!(
            (facts.ahead, facts.behind, facts.count, facts.clean),
            (Some(1), Some(2), 5, false)
        );
        assert_eq!(facts.entries[1].original.as_deref(), Some("old"));
        assert_eq!(facts.entries[0].path, "a file");
    }

    #[test]
    fn an_empty_repository_and_a_lone_commit_are_told() {
        let (facts, text) = StatusFacts::read("# branch.oid (initial)\0# branch.head main\0");
        assert_eq!(text, "## No commits yet on main\nnothing to commit, working tree clean\n");
        assert!(facts.clean && facts.commit.is_none());
        let (facts, text) = StatusFacts::read("# branch.oid 1234\0# branch.head (detached)\0");
        assert!(text.starts_with("## HEAD (no branch) at 1234\n"), "{text}");
        assert_eq!(facts.branch, None);
    }
}
