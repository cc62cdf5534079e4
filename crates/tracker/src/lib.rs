//! Issue trackers, each made to tell of its issues in the same words.
//!
//! A [`Tracker`] is asked for the issues in some states, and for some issues again. Every one of them
//! becomes an [`Issue`]; what does not answer becomes a [`Fault`] that says whose it is and how long to
//! wait. Nothing here writes to a tracker but the [`Tool`]s that agents are given.
#![forbid(unsafe_code)]

mod api;
mod asana;
mod fault;
mod gate;
mod github;
mod gitlab;
mod graphql;
mod issue;
mod jira;
mod linear;
mod local;
mod open;
mod pages;
mod patience;
mod record;
mod rest;
mod settings;
mod tool;
mod webhook;

pub use fault::{Fault, FaultKind};
pub use issue::{Blocker, Issue, IssueId, normal};
pub use local::{Local, LocalError, MAX_TEXT_BYTES, numbers_of};
pub use open::from_config;
pub use tool::{Tool, ToolReply};
pub use webhook::{
    ASANA_SECRET, ASANA_SIGNATURE, GITHUB_SIGNATURE, GITLAB_TOKEN, JIRA_SIGNATURE,
    LINEAR_SIGNATURE, Webhook, WebhookError, verify_webhook,
};

use std::fmt;

use serde_json::Value;

/// Where issues come from.
///
/// An answer is whole or a [`Fault`]: a page that cannot be had makes all of it worthless.
#[async_trait::async_trait]
pub trait Tracker: fmt::Debug + Send + Sync {
    /// Returns the issues in the named states. No names are no issues, and no request.
    ///
    /// A record that makes no sense is left out and counted in the log.
    async fn by_states(&self, states: &[String]) -> Result<Vec<Issue>, Fault>;

    /// Returns the issues with these ids, in the order of the ids. Those that cannot be seen are left
    /// out. No ids are no issues, and no request.
    ///
    /// A record that makes no sense is a [`Fault`]: nothing is to be concluded from it.
    async fn by_ids(&self, ids: &[IssueId]) -> Result<Vec<Issue>, Fault>;

    /// Returns the tools that an agent is given for its issue.
    fn tools(&self) -> Vec<Tool> {
        Vec::new()
    }

    /// Uses a tool for the agent of an issue.
    async fn call(&self, _: &Issue, tool: &str, _: Value) -> ToolReply {
        ToolReply::unknown(tool, &self.tools())
    }
}
