//! The output of `git status --porcelain=v2 --branch -z`, as facts and as text.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

/// Bounds the facts; the text has all entries.
const MAX_ENTRIES: usize = 500;

/// The state of a work tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StatusFacts {
    /// The current branch; null with a detached HEAD.
    pub branch: Option<String>,
    /// The commit of HEAD; null before the first commit.
    pub commit: Option<String>,
    /// The upstream branch, such as `origin/main`.
    pub upstream: Option<String>,
    /// Commits that upstream does not have.
    pub ahead: Option<u64>,
    /// Commits that only upstream has.
    pub behind: Option<u64>,
    /// No file is changed or untracked.
    pub clean: bool,
    /// Number of entries.
    pub count: usize,
    /// The first 500 entries.
    pub entries: Vec<StatusEntry>,
}

/// A changed, untracked or ignored file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StatusEntry {
    /// Relative to the top of the repository.
    pub path: String,
    /// The staged change: `M`, `A`, `D`, `R`, `C`, `T`, `U`; `.` for none, `?` for an untracked file, `!`
    /// for an ignored one.
    pub index: char,
    /// The unstaged change, in the same letters.
    pub worktree: char,
    /// The path before a rename or copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original: Option<String>,
}

impl StatusFacts {
    /// Parses the output, and returns the facts with a text in the short format of `git status`. Records
    /// of unknown types are skipped.
    pub fn parse(output: &str) -> (Self, String) {
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
                Some((mark @ ("?" | "!"), path)) => entry(&format!("{mark}{mark} {path}"), 1, None),
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
        let index = letter(self.index);
        let worktree = letter(self.worktree);
        let from =
            self.original.as_ref().map_or(String::new(), |from| format!("{} -> ", shown(from)));
        let _ = writeln!(text, "{index}{worktree} {from}{}", shown(&self.path));
    }
}

fn shown(path: &str) -> String {
    if path.contains(char::is_control) {
        format!("\"{}\"", path.escape_debug())
    } else {
        path.to_owned()
    }
}

/// Parses `XY`, skips the fields up to the path, which may contain blanks.
fn entry(rest: &str, fields: usize, original: Option<&str>) -> Option<StatusEntry> {
    let mut fields = rest.splitn(fields + 1, ' ');
    let mut letters = fields.next()?.chars();
    let index = letters.next()?;
    let worktree = letters.next()?;
    let path = fields.last()?.to_owned();
    Some(StatusEntry { path, index, worktree, original: original.map(str::to_owned) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn every_kind_of_entry_is_parsed_and_shown() {
        let output = "# branch.oid 1234\0# branch.head main\0# branch.upstream origin/main\0# branch.ab +1 -2\0\
            1 .M N... 100644 100644 100644 aa bb a file\0\
            2 R. N... 100644 100644 100644 aa bb R100 new\0old\0\
            u UU N... 100644 100644 100644 100644 aa bb cc both\0? un\nknown\0! ignored\0";
        let (facts, text) = StatusFacts::parse(output);
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
    fn an_empty_repository_and_a_detached_head_are_shown() {
        let (facts, text) = StatusFacts::parse("# branch.oid (initial)\0# branch.head main\0");
        assert_eq!(text, "## No commits yet on main\nnothing to commit, working tree clean\n");
        assert!(facts.clean && facts.commit.is_none());
        let (facts, text) = StatusFacts::parse("# branch.oid 1234\0# branch.head (detached)\0");
        assert!(text.starts_with("## HEAD (no branch) at 1234\n"), "{text}");
        assert_eq!(facts.branch, None);
    }
}
