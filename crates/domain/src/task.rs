//! Terms of the task queue: ids, priorities and states.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// The length of an id as text: 32 digits and four hyphens.
const ID_LEN: usize = 36;

/// A text that is not an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a {noun} id: {text:?}; an id looks like 0198c0de-7a11-7000-8000-000000000001")]
pub struct InvalidId {
    noun: &'static str,
    text: String,
}

/// Serialises a type as its text.
macro_rules! serde_as_text {
    ($name:ident) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

macro_rules! ids {
    ($($(#[doc = $doc:literal])+ $name:ident = $noun:literal;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// Generates a new id. Later ids sort after earlier ones (UUID version 7).
            pub fn generate() -> Self {
                Self(Uuid::now_v7())
            }

            /// Returns the id as bytes, which is its form in a store.
            pub fn to_bytes(self) -> [u8; 16] {
                self.0.into_bytes()
            }

            /// Makes an id from its bytes.
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            /// Parses the hyphenated form, in either case.
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let invalid = || InvalidId { noun: $noun, text: text.chars().take(ID_LEN).collect() };
                if text.len() != ID_LEN {
                    return Err(invalid());
                }
                Uuid::try_parse(text).map(Self).map_err(|_| invalid())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        serde_as_text!($name);

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "format": "uuid" })
            }

            fn inline_schema() -> bool {
                true
            }
        }
    )+};
}

ids! {
    /// The id of a task.
    TaskId = "task";
    /// The id of a workspace of the service.
    WorkspaceId = "workspace";
    /// The id of a volume. It is stored in the directory, so that every worker that opens it finds the same.
    VolumeId = "volume";
}

/// The most forks of one workspace.
pub const MAX_FORKS: u8 = 100;

impl WorkspaceId {
    /// Returns the id of a fork of this workspace, by its number. It follows from this one, so that a token
    /// for a workspace covers its forks.
    #[must_use]
    pub fn fork(self, number: u8) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"carrel fork");
        hash.update(self.0.as_bytes());
        hash.update([number]);
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash.finalize()[..16]);
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }
}

/// Defines an enum with a word for each value on the wire and in stores.
macro_rules! words {
    (
        $(#[doc = $doc:literal])+ $name:ident, $noun:literal;
        $($(#[doc = $word_doc:literal])+ $variant:ident = $word:literal;)+
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[doc = $word_doc])+ $variant,)+ }

        impl $name {
            /// All values, in their order.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the word for this value on the wire and in a store.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl FromStr for $name {
            type Err = UnknownTaskValue;

            fn from_str(text: &str) -> Result<Self, UnknownTaskValue> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(UnknownTaskValue {
                        noun: $noun,
                        text: text.chars().take(MAX_WORD_SHOWN).collect(),
                        known: &[$($word),+],
                    }),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        serde_as_text!($name);

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let description = concat!($($doc),+).trim();
                json_schema!({ "type": "string", "enum": Self::ALL, "description": description })
            }
        }
    };
}

/// The most characters of an unknown word that an error repeats.
const MAX_WORD_SHOWN: usize = 40;

/// A word that is not a value of its type. The message lists the values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {noun} {text:?}; known are {}", known.join(", "))]
pub struct UnknownTaskValue {
    noun: &'static str,
    text: String,
    known: &'static [&'static str],
}

words! {
    /// The priority of a task. Inside one workspace a task of higher priority always starts first.
    Priority, "priority";
    /// Starts before all others.
    Critical = "critical";
    /// Starts before normal ones.
    High = "high";
    /// The default.
    Normal = "normal";
    /// Starts when no other waits.
    Low = "low";
}

words! {
    /// The state of a task. A terminal state never changes.
    TaskStatus, "status";
    /// It waits for a worker.
    Queued = "queued";
    /// A worker has claimed it.
    Running = "running";
    /// Every step succeeded. Terminal.
    Completed = "completed";
    /// A step failed, was refused, or exceeded the quota. Terminal.
    Failed = "failed";
    /// A caller cancelled it. Terminal.
    Cancelled = "cancelled";
    /// Its deadline passed. Terminal.
    TimedOut = "timed_out";
    /// Its worker was lost as often as the limit of attempts allows. Terminal.
    Dead = "dead";
}

impl TaskStatus {
    /// Returns whether the state is terminal.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Queued | Self::Running => false,
            Self::Completed | Self::Failed | Self::Cancelled | Self::TimedOut | Self::Dead => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn an_id_has_one_form_and_is_read_in_either_case() {
        let id: TaskId = "550E8400-E29B-41D4-A716-446655440000".parse().unwrap();
        assert_eq!(id.to_string(), "550e8400-e29b-41d4-a716-446655440000");
        assert_eq!(TaskId::from_bytes(id.to_bytes()), id);
        for text in [
            "",
            "x",
            "../../etc",
            "550e8400e29b41d4a716446655440000",
            "{550e8400-e29b-41d4-a716-446655440000}",
            "550e8400-e29b-41d4-a716-44665544000g",
        ] {
            assert!(text.parse::<WorkspaceId>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_ids_of_forks_follow_from_their_base_and_differ() {
        let base: WorkspaceId = "550e8400-e29b-41d4-a716-446655440000".parse().unwrap();
        let other: WorkspaceId = "550e8400-e29b-41d4-a716-446655440001".parse().unwrap();
        let mut forks: Vec<_> = (1..=MAX_FORKS)
            .flat_map(|number| [base.fork(number), other.fork(number), base.fork(number)])
            .collect();
        forks.sort_unstable();
        forks.dedup();
        assert_eq!(forks.len(), 2 * usize::from(MAX_FORKS));
    }

    #[test]
    fn later_ids_sort_after_earlier_ones() {
        let ids: Vec<_> = (0..1000).map(|_| TaskId::generate()).collect();
        assert!(ids.is_sorted());
    }

    #[test]
    fn words_are_read_exactly_and_the_error_lists_them() {
        assert_eq!("timed_out".parse(), Ok(TaskStatus::TimedOut));
        let error = "urgent".parse::<Priority>().unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"unknown priority "urgent"; known are critical, high, normal, low"#
        );
    }
}
