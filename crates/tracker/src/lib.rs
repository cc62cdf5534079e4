//! Issue trackers behind one trait.
//!
//! A [`Tracker`] returns the issues in some states, and issues by id. Each provider's records become an
//! [`Issue`] with the same fields and the same spelling of states and labels; each failure becomes a
//! [`TrackerError`] with a kind and, for rate limits, the time to wait. The trait only reads: writes to a
//! tracker are made by agents through its [`Tool`]s, which are confined to the configured project.
#![forbid(unsafe_code)]

mod api;
mod asana;
mod error;
mod github;
mod gitlab;
mod graphql;
mod issue;
mod issue_records;
mod jira;
mod linear;
mod local;
mod pages;
mod provider;
mod rate_limit;
mod rest_tool;
mod tool;
mod webhook;

pub use error::{TrackerError, TrackerErrorKind};
pub use issue::{Blocker, Issue, IssueId, normal};
pub use local::{LocalError, LocalTracker, MAX_TEXT_BYTES, numbers_of};
pub use provider::from_config;
pub use tool::{Tool, ToolReply};
pub use webhook::{
    ASANA_SECRET, ASANA_SIGNATURE, GITHUB_SIGNATURE, GITLAB_TOKEN, JIRA_SIGNATURE,
    LINEAR_SIGNATURE, Webhook, WebhookError, verify_webhook,
};

use std::fmt;

use serde_json::Value;

/// A source of issues.
///
/// A list is complete or an error: if one page fails, no issues are returned, since the conductor would
/// take the missing ones for removed.
#[async_trait::async_trait]
pub trait Tracker: fmt::Debug + Send + Sync {
    /// Returns the issues in the named states. Without states it returns none and sends no request.
    ///
    /// Malformed records are skipped, and their number is logged.
    async fn by_states(&self, states: &[String]) -> Result<Vec<Issue>, TrackerError>;

    /// Returns the issues with these ids, in the order of the ids, without the ones that do not exist or
    /// are not visible. Without ids it returns none and sends no request.
    ///
    /// A malformed record is an error here: a claimed issue must not disappear because of it.
    async fn by_ids(&self, ids: &[IssueId]) -> Result<Vec<Issue>, TrackerError>;

    /// Returns the tools that an agent receives for its issue. They stay the same for a whole run.
    fn tools(&self) -> Vec<Tool> {
        Vec::new()
    }

    /// Calls a tool for the agent of an issue. Failures are in the reply. `issue` fills in placeholders and
    /// is exempt from the check that an id belongs to the project.
    async fn call(&self, _: &Issue, tool: &str, _: Value) -> ToolReply {
        ToolReply::unknown(tool, &self.tools())
    }
}
