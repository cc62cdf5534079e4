//! Requests about tries. Their replies are the record of a try, which the crate `trial` defines.

use carrel_domain::{MAX_FORKS, Network};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A try to begin: candidates in forks of a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTrial {
    /// Command lines: one for each candidate, or one for all, which `CARREL_CANDIDATE` tells apart.
    #[serde(default)]
    pub runs: Vec<String>,
    /// Patches, each a candidate.
    #[serde(default)]
    pub patches: Vec<String>,
    /// The number of candidates; as many as there are runs and patches if absent.
    #[serde(default)]
    #[schemars(range(min = 1, max = MAX_FORKS))]
    pub candidates: Option<u8>,
    /// A command line that verifies a candidate; the tests that the project's files name if absent.
    #[serde(default)]
    pub verify: Option<String>,
    /// A command line whose last line of output is a number; larger is better.
    #[serde(default)]
    pub score: Option<String>,
    /// Promote the best candidate that passes; otherwise the forks stay for a person.
    #[serde(default)]
    pub promote: bool,
    /// Seconds for the run, the verification and the score of one candidate; 600 by default.
    #[serde(default)]
    pub timeout: Option<u64>,
    /// Seconds for the whole try; 3600 by default.
    #[serde(default)]
    pub total_timeout: Option<u64>,
    /// Files that a candidate may change; 1000 by default.
    #[serde(default)]
    pub max_files: Option<u64>,
    /// Lines that a candidate may add and remove; 20000 by default.
    #[serde(default)]
    pub max_lines: Option<u64>,
    /// Bytes that a candidate may change; 4 MiB by default.
    #[serde(default)]
    pub max_bytes: Option<u64>,
    /// Candidates that run at the same time; as many as the server has processors if absent.
    #[serde(default)]
    pub parallel: Option<u8>,
    /// The network of all commands; at most what the workspace, the token and the operator allow.
    #[serde(default)]
    pub network: Option<Network>,
}

/// A part of a try to return.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialQuery {
    /// The candidate whose diff is returned too.
    #[serde(default)]
    #[schemars(range(min = 1, max = MAX_FORKS))]
    pub diff: Option<u8>,
}

/// A try that was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemovedTrial {
    /// Its id.
    pub removed: String,
}
