//! The terms of a policy: network, tier, access to the workspace and resource limits.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ByteSize;

/// The network that a command can reach, ordered from the least to the most.
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
    /// No network.
    #[default]
    None,
    /// A private loopback, shared by the commands of the workspace.
    Loopback,
    /// The host's network, including its own services.
    Full,
}

/// The strength of a sandbox, ordered from the weaker to the stronger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Landlock and seccomp alone, for hosts that deny user namespaces.
    Landlock,
    /// Namespaces, Landlock, seccomp and control groups.
    Full,
}

/// The access of a command to the files of its workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceAccess {
    /// Read and change them.
    #[default]
    ReadWrite,
    /// Read them.
    ReadOnly,
}

/// The resource limits of a command. None can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Wall-clock time from start to end.
    pub wall: Duration,
    /// CPU time of each process, in whole seconds; [`Duration::MAX`] for a session, which has no such limit.
    pub cpu: Duration,
    /// Memory of all its processes together; of each process if there is no control group.
    pub memory: ByteSize,
    /// The same for a process that serves a workspace for long, such as a language server.
    pub session_memory: ByteSize,
    /// Processes and threads at any one moment.
    pub processes: u64,
    /// Size of each file that it writes.
    pub file_size: ByteSize,
    /// Descriptors that one process may have open.
    pub open_files: u64,
    /// Output that is kept in the log; the rest is dropped.
    pub log: ByteSize,
}

impl Default for ResourceLimits {
    fn default() -> Self {
        Self {
            wall: Duration::from_mins(2),
            cpu: Duration::from_mins(10),
            memory: ByteSize::gib(2),
            session_memory: ByteSize::gib(3),
            processes: 256,
            file_size: ByteSize::mib(512),
            open_files: 1024,
            log: ByteSize::mib(64),
        }
    }
}

/// A word that is not a value of a policy setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a {what}: {word:?}; write {expected}")]
pub struct UnknownPolicyValue {
    what: &'static str,
    word: String,
    expected: &'static str,
}

/// Implements the text form of an enum: `as_str`, `Display` and `FromStr`.
macro_rules! text_form {
    ($type:ty, $what:literal, $expected:literal, $($value:path => $word:literal),+) => {
        impl $type {
            /// Returns the word for this value in policies, on the command line and on the wire.
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

text_form!(Network, "network", "none, loopback or full",
    Self::None => "none", Self::Loopback => "loopback", Self::Full => "full");
text_form!(Tier, "tier", "full or landlock", Self::Full => "full", Self::Landlock => "landlock");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_round_trip_and_others_are_refused() {
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
