//! The layout of a workspace directory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The shape of a workspace directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// The directory itself is the work tree.
    #[default]
    Plain,
    /// The directory holds `repos/`, `tasks/` and `artifacts/`.
    Tenant,
}

impl Layout {
    /// Returns the directories that a workspace of this layout always has.
    pub fn directories(self) -> &'static [&'static str] {
        match self {
            Self::Plain => &[],
            Self::Tenant => &["repos", "tasks", "artifacts"],
        }
    }

    /// Returns the name used in records, on the command line and over the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Tenant => "tenant",
        }
    }
}
