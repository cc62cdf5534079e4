//! `/healthz` and `/readyz`.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The liveness of the server: the reply itself is the proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HealthReply {
    /// `ok`.
    pub status: Cow<'static, str>,
}

/// The readiness of the server and of what it depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Readiness {
    /// `ready`, `degraded` (tasks run, later than usual) or `not_ready`.
    pub status: Cow<'static, str>,
    /// The store: `ok`, or the code of its error.
    pub store: Cow<'static, str>,
    /// The token provider's keys: `ok` or `missing`. Absent without a provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Cow<'static, str>>,
    /// The bus: `ok`, or the code of its error.
    pub queue: Cow<'static, str>,
    /// The last error as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The disk of the workspaces: `ok`, or `low` while less is free than the operator's reserve. Tasks wait
    /// meanwhile, and no command starts.
    pub space: Cow<'static, str>,
}
