//! What a command may do, in the words of a policy.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ByteSize;

/// What a command can reach over the network. The order is from the least to the most.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Nothing.
    #[default]
    None,
    /// Other processes of the same workspace, on a loopback of their own.
    Loopback,
    /// Everything that the host can reach, its own services included.
    Full,
}

/// Which walls stand around a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Landlock and seccomp alone, for hosts that refuse user namespaces.
    Landlock,
    /// Namespaces, Landlock, seccomp and control groups.
    Full,
}

/// What a command may do with the files of its workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceAccess {
    /// Read and change them.
    #[default]
    ReadWrite,
    /// Read them.
    ReadOnly,
}

/// What a command may use. Nothing is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Time from start to end.
    pub wall: Duration,
    /// Time on a processor, in whole seconds.
    pub cpu: Duration,
    /// Memory of all its processes together, or of each where the kernel offers no more.
    pub memory: ByteSize,
    /// Processes and threads at any one moment.
    pub processes: u64,
    /// The size of any file it writes.
    pub file_size: ByteSize,
    /// Descriptors that one process may have open.
    pub open_files: u64,
    /// Output that is kept in the log.
    pub log: ByteSize,
}

impl Default for ResourceLimits {
    fn default() -> Self {
        Self {
            wall: Duration::from_mins(2),
            cpu: Duration::from_mins(10),
            memory: ByteSize::gib(2),
            processes: 256,
            file_size: ByteSize::mib(512),
            open_files: 1024,
            log: ByteSize::mib(64),
        }
    }
}

/// A word that is none of those that were expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a {what}: {word:?}; write {expected}")]
pub struct UnknownPolicyValue {
    what: &'static str,
    word: String,
    expected: &'static str,
}

/// Gives an enum the words that people write for its values.
macro_rules! words {
    ($type:ty, $what:literal, $expected:literal, $($value:path => $word:literal),+) => {
        impl $type {
            /// Returns the word for this value.
            pub fn as_str(self) -> &'static str {
                match self { $($value => $word),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $type {
            type Err = UnknownPolicyValue;

            fn from_str(word: &str) -> Result<Self, UnknownPolicyValue> {
                match word {
                    $($word => Ok($value),)+
                    _ => Err(UnknownPolicyValue {
                        what: $what,
                        word: word.to_owned(),
                        expected: $expected,
                    }),
                }
            }
        }
    };
}

words!(Network, "network", "none, loopback or full",
    Self::None => "none", Self::Loopback => "loopback", Self::Full => "full");
words!(Tier, "tier", "full or landlock", Self::Full => "full", Self::Landlock => "landlock");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_way_and_others_are_refused() {
        for network in [Network::None, Network::Loopback, Network::Full] {
            assert_eq!(network.to_string().parse(), Ok(network));
        }
        let error = "host".parse::<Network>().unwrap_err();
        assert_eq!(error.to_string(), "not a network: \"host\"; write none, loopback or full");
    }

    #[test]
    fn networks_are_ordered_by_what_they_reach() {
        assert!(Network::None < Network::Loopback && Network::Loopback < Network::Full);
    }
}
