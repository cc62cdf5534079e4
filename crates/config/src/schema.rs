//! The settings of a workflow file, each described once.
//!
//! The table of [`keys`] drives the reading of values and defaults, the search
//! for misspelt keys and the generated guide.

mod inspect;
pub(crate) mod keys;
pub(crate) mod kind;

pub(crate) use inspect::inspect;
pub(crate) use kind::Kind;

use crate::diagnostic::Position;
use crate::yaml::{self, Node};

/// One setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// The dotted path from the top of the front matter.
    pub(crate) path: &'static str,
    /// What a value must be.
    pub(crate) kind: Kind,
    /// What holds when the file says nothing.
    pub(crate) fallback: Fallback,
    /// When a changed value is felt.
    pub(crate) applies: &'static str,
    /// What the setting does, in one line.
    pub(crate) about: &'static str,
}

/// What holds when the file says nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fallback {
    /// The setting stays unset.
    Nothing,
    /// This value, written as in the file.
    Written(&'static str),
    /// A value found at run time, described for a person.
    Computed(&'static str),
}

/// A top-level key and the settings below it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) keys: &'static [Key],
}

impl Key {
    /// Returns the default as a value of the file, where it is one.
    pub(crate) fn default_node(&self) -> Option<Node> {
        match self.fallback {
            Fallback::Written(text) => yaml::parse(text, Position::START).ok(),
            Fallback::Nothing | Fallback::Computed(_) => None,
        }
    }
}

/// Returns every setting.
pub(crate) fn all_keys() -> impl Iterator<Item = &'static Key> {
    keys::SECTIONS.iter().flat_map(|section| section.keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_setting_is_described_once_and_below_its_section() {
        let mut paths = HashSet::new();
        for section in keys::SECTIONS {
            for key in section.keys {
                assert!(paths.insert(key.path), "{}", key.path);
                assert_eq!(key.path.split('.').next(), Some(section.name));
                assert!(key.about.ends_with('.'), "{}", key.path);
            }
        }
    }

    #[test]
    fn every_written_default_is_valid_by_its_own_rule() {
        for key in all_keys() {
            if let Fallback::Written(text) = key.fallback {
                let node = key.default_node().expect(text);
                assert!(key.kind.accepts(&node), "{}: {text}", key.path);
            }
        }
    }
}
