//! Queued work: what it is called, how urgent it is, and where it stands.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// The length of an id as people see it: 32 digits and four hyphens.
const ID_LEN: usize = 36;

/// Why a text is no id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a {noun} id: {text:?}; an id looks like 0198c0de-7a11-7000-8000-000000000001")]
pub struct InvalidId {
    noun: &'static str,
    text: String,
}

/// Reads and writes a type as its text.
macro_rules! travels_as_text {
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
            /// Makes a new one. Later ones sort after earlier ones.
            pub fn generate() -> Self {
                Self(Uuid::now_v7())
            }

            /// Returns the bytes that stand for it in a store.
            pub fn to_bytes(self) -> [u8; 16] {
                self.0.into_bytes()
            }

            /// Returns the id that these bytes stand for.
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            /// Reads the usual form, in either case.
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

        travels_as_text!($name);

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
    /// The name of a task.
    TaskId = "task";
    /// The name of a workspace of the service.
    WorkspaceId = "workspace";
    /// The name of a directory that holds workspaces. Whoever opens the same directory finds the same.
    VolumeId = "volume";
}

macro_rules! words {
    (
        $(#[doc = $doc:literal])+ $name:ident, $noun:literal;
        $($(#[doc = $word_doc:literal])+ $variant:ident = $word:literal;)+
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[doc = $word_doc])+ $variant,)+ }

        impl $name {
            /// Every one there is.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the word for it on the wire and in a store.
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

        travels_as_text!($name);

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

/// What an error repeats of a word that is not known.
const MAX_WORD_SHOWN: usize = 40;

/// Why a word is not among those that are known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {noun} {text:?}; known are {}", known.join(", "))]
pub struct UnknownTaskValue {
    noun: &'static str,
    text: String,
    known: &'static [&'static str],
}

words! {
    /// How urgent a task is. Inside one workspace a more urgent one always goes first.
    Priority, "priority";
    /// Before everything else.
    Critical = "critical";
    /// Before the usual.
    High = "high";
    /// The usual.
    Normal = "normal";
    /// When nothing else waits.
    Low = "low";
}

words! {
    /// Where a task stands. What is terminal never changes again.
    TaskStatus, "status";
    /// It waits for a worker.
    Queued = "queued";
    /// A worker has it.
    Running = "running";
    /// Every step did its work.
    Completed = "completed";
    /// A step failed, was refused, or ran out of room.
    Failed = "failed";
    /// Somebody asked for its end.
    Cancelled = "cancelled";
    /// Its time was over.
    TimedOut = "timed_out";
    /// Its worker was lost as often as it may be.
    Dead = "dead";
}

impl TaskStatus {
    /// Tells whether this never changes again.
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
