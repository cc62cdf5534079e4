//! Groups of tools, and the choice among them that an operator makes.
//!
//! Every tool that is offered costs a model tokens in every request, whether it is called or not. Each tool is
//! therefore in one group, and a server offers the groups that its operator chose: by name, or the default
//! set, which each tool is in or not. Every group has tools; one that had none would not be a choice.

use std::fmt;
use std::str::FromStr;

use crate::suggest;

/// A group of tools that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolGroup {
    /// Read, search, change, move and delete files.
    Files,
    /// Run commands.
    Shell,
    /// Test, lint, check and format.
    Verify,
    /// Git.
    Git,
    /// Symbols: overviews, definitions, references, search by words, structural search and edits.
    Code,
    /// Snapshots of the files, and undo.
    Snapshot,
    /// The operator's secrets.
    Secrets,
    /// The six tools of the workspace service.
    Workspace,
}

impl ToolGroup {
    /// Every group, in the order of lists.
    pub const ALL: [Self; 8] = [
        Self::Files,
        Self::Shell,
        Self::Verify,
        Self::Git,
        Self::Code,
        Self::Snapshot,
        Self::Secrets,
        Self::Workspace,
    ];

    /// Returns the word on the command line and in workflow files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Shell => "shell",
            Self::Verify => "verify",
            Self::Git => "git",
            Self::Code => "code",
            Self::Snapshot => "snapshot",
            Self::Secrets => "secrets",
            Self::Workspace => "workspace",
        }
    }

    const fn bit(self) -> u16 {
        match self {
            Self::Files => 1,
            Self::Shell => 1 << 1,
            Self::Verify => 1 << 2,
            Self::Git => 1 << 3,
            Self::Secrets => 1 << 4,
            Self::Workspace => 1 << 5,
            Self::Code => 1 << 6,
            Self::Snapshot => 1 << 7,
        }
    }
}

impl fmt::Display for ToolGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The word for the default set in a list of groups.
const DEFAULT: &str = "default";

/// Stands for the default set beside the bits of the groups.
const DEFAULT_BIT: u16 = 1 << 15;

/// The edit distance up to which a group is suggested in place of an unknown word.
const MAX_DISTANCE: usize = 2;

/// The characters of an unknown word that an error repeats.
const MAX_WORD_SHOWN: usize = 40;

/// The groups of tools that a server offers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ToolSelection(u16);

impl ToolSelection {
    /// No tools.
    pub const NONE: Self = Self(0);

    /// The tools that pay for their tokens in most sessions.
    pub const DEFAULT: Self = Self(DEFAULT_BIT);

    /// Every group.
    pub const ALL: Self = Self::of(&ToolGroup::ALL);

    /// Returns the selection of these groups.
    pub const fn of(groups: &[ToolGroup]) -> Self {
        let mut bits = 0;
        let mut rest = groups;
        while let [group, others @ ..] = rest {
            bits |= group.bit();
            rest = others;
        }
        Self(bits)
    }

    /// Tells whether a tool is selected: by its group, or because it is in the default set.
    pub const fn includes(self, group: ToolGroup, in_default_set: bool) -> bool {
        self.0 & group.bit() != 0 || (in_default_set && self.0 & DEFAULT_BIT != 0)
    }

    /// Tells whether nothing is selected.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Adds the groups of another selection.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Parses one word: a group, or `default`.
    pub fn of_word(word: &str) -> Result<Self, UnknownToolGroup> {
        if word == DEFAULT {
            return Ok(Self::DEFAULT);
        }
        let group = ToolGroup::ALL.into_iter().find(|group| group.as_str() == word);
        group.map(|group| Self::of(&[group])).ok_or_else(|| UnknownToolGroup {
            word: word.chars().take(MAX_WORD_SHOWN).collect(),
            near: suggest::closest(word, words(), |_| MAX_DISTANCE),
        })
    }
}

impl Default for ToolSelection {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for ToolSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = (self.0 & DEFAULT_BIT != 0).then_some(DEFAULT);
        let groups = ToolGroup::ALL.into_iter().filter(|group| self.0 & group.bit() != 0);
        let words: Vec<_> = default.into_iter().chain(groups.map(ToolGroup::as_str)).collect();
        f.pad(&words.join(","))
    }
}

impl fmt::Debug for ToolSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolSelection({self})")
    }
}

impl FromStr for ToolSelection {
    type Err = UnknownToolGroup;

    /// Parses words between commas. An empty text is an error: an operator who wants no tools starts no
    /// server.
    fn from_str(text: &str) -> Result<Self, UnknownToolGroup> {
        let words = text.split(',').map(str::trim);
        let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
        if words.is_empty() {
            return Self::of_word("");
        }
        words.into_iter().try_fold(Self::NONE, |all, word| Ok(all.and(Self::of_word(word)?)))
    }
}

/// A word that is no group of tools.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown tool group {word:?}{}; the groups are {}",
    .near.map_or(String::new(), |near| format!("; did you mean {near}?")),
    known()
)]
pub struct UnknownToolGroup {
    word: String,
    near: Option<&'static str>,
}

fn words() -> impl Iterator<Item = &'static str> {
    ToolGroup::ALL.into_iter().map(ToolGroup::as_str).chain([DEFAULT])
}

fn known() -> String {
    let groups = ToolGroup::ALL.map(ToolGroup::as_str).join(", ");
    format!("{groups}, and {DEFAULT} for the default set")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn words_between_commas_select_groups() {
        let selection: ToolSelection = "files, shell,".parse().unwrap();
        assert_eq!(selection, ToolSelection::of(&[ToolGroup::Files, ToolGroup::Shell]));
        assert_eq!(selection.to_string(), "files,shell");
        assert!(selection.includes(ToolGroup::Shell, false));
        assert!(!selection.includes(ToolGroup::Git, true));
    }

    #[test]
    fn the_default_set_is_the_choice_of_each_tool_and_can_be_added_to() {
        let selection: ToolSelection = "default,secrets".parse().unwrap();
        assert!(selection.includes(ToolGroup::Files, true));
        assert!(!selection.includes(ToolGroup::Files, false));
        assert!(selection.includes(ToolGroup::Secrets, false));
        assert_eq!(selection.to_string(), "default,secrets");
    }

    #[test]
    fn another_word_is_named_with_the_groups() {
        let groups = "the groups are files, shell, verify, git, code, snapshot, secrets, workspace, and \
                      default for the default set";
        for (given, message) in [
            ("file,git", format!("unknown tool group \"file\"; did you mean files?; {groups}")),
            ("network", format!("unknown tool group \"network\"; {groups}")),
            (" , ", format!("unknown tool group \"\"; {groups}")),
        ] {
            let error = given.parse::<ToolSelection>().unwrap_err();
            assert_eq!(error.to_string(), message, "{given}");
        }
    }
}
