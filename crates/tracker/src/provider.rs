//! Trackers on other companies' servers: their differences as a trait, and what they share.

use std::fmt;
use std::sync::Arc;

use carrel_client::HttpClient;
use carrel_config::{TrackerConfig, TrackerKind};
use carrel_domain::Secret;
use serde_json::Value;

use crate::error::{Result, TrackerError, TrackerErrorKind};
use crate::issue::{Issue, IssueId, normal};
use crate::issue_records::{IssueRecords, is_number, valid_ids};
use crate::tool::{Tool, ToolRefusal, ToolReply};
use crate::{Tracker, asana, github, gitlab, jira, linear};

/// The settings of a tracker: `tracker.provider` of the workflow file, whose names differ per provider.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings<'a> {
    pub(crate) config: &'a TrackerConfig,
    pub(crate) connections: &'a HttpClient,
}

impl<'a> Settings<'a> {
    pub(crate) fn find(self, name: &str) -> Option<&'a str> {
        let text = self.config.provider.settings.get(name).and_then(Value::as_str)?.trim();
        (!text.is_empty()).then_some(text)
    }

    pub(crate) fn text(self, name: &str) -> Result<&'a str> {
        self.find(name).ok_or_else(|| TrackerError::invalid_setting(name, "is missing"))
    }

    pub(crate) fn secret(self, name: &str) -> Result<&'a Secret> {
        let secret = self.config.provider.secrets.get(name);
        let message = format!("tracker.provider.{name} is missing; write it as $NAME");
        secret
            .filter(|secret| !secret.expose().is_empty())
            .ok_or_else(|| TrackerError::new(TrackerErrorKind::Secret, message))
    }

    /// Returns the terminal states in the form of [`normal`].
    pub(crate) fn terminal(self) -> Vec<String> {
        self.config.terminal_states.iter().map(|state| normal(state)).collect()
    }
}

/// The part of a tracker that differs between providers. [`RemoteTracker`] makes a [`Tracker`] of it.
#[async_trait::async_trait]
pub(crate) trait IssueProvider: fmt::Debug + Send + Sync + Sized + 'static {
    /// The name of the provider in messages.
    const NAME: &'static str;

    /// Ids per request.
    const BATCH: usize;

    fn new(settings: Settings<'_>) -> Result<Self>;

    /// Returns true for a text that has the format of the tracker's ids.
    fn is_id(id: &str) -> bool {
        is_number(id)
    }

    /// Reads all pages of the issues in the named states. Without states it sends no request.
    async fn list(&self, states: &[String]) -> Result<IssueRecords>;

    /// Reads at most [`Self::BATCH`] issues by id. Issues that do not exist are left out.
    async fn batch(&self, ids: &[&str]) -> Result<IssueRecords>;

    /// Returns the one tool that an agent receives.
    fn tool(&self) -> Tool;

    /// Checks a call of the tool, and sends it.
    async fn call_tool(&self, issue: &Issue, arguments: Value) -> Result<ToolReply, ToolRefusal>;
}

#[derive(Debug)]
struct RemoteTracker<P>(P);

#[async_trait::async_trait]
impl<P: IssueProvider> Tracker for RemoteTracker<P> {
    async fn by_states(&self, states: &[String]) -> Result<Vec<Issue>> {
        Ok(self.0.list(states).await?.lenient(P::NAME))
    }

    async fn by_ids(&self, ids: &[IssueId]) -> Result<Vec<Issue>> {
        let mut records = IssueRecords::default();
        for batch in valid_ids(ids, P::is_id).chunks(P::BATCH) {
            records.append(self.0.batch(batch).await?);
        }
        records.strict(P::NAME, ids)
    }

    fn tools(&self) -> Vec<Tool> {
        vec![self.0.tool()]
    }

    async fn call(&self, issue: &Issue, name: &str, arguments: Value) -> ToolReply {
        if name != self.0.tool().name {
            return ToolReply::unknown(name, &self.tools());
        }
        self.0.call_tool(issue, arguments).await.unwrap_or_else(ToolReply::from)
    }
}

/// Returns the `state` parameter for trackers whose issues are either open or closed; `None` if neither
/// state is named.
pub(crate) fn queried_state(states: &[String], open: &'static str) -> Option<&'static str> {
    let asked = |name: &str| states.iter().any(|state| normal(state) == name);
    match (asked(open), asked("closed")) {
        (false, false) => None,
        (true, false) => Some(open),
        (false, true) => Some("closed"),
        (true, true) => Some("all"),
    }
}

/// Creates the tracker that a workflow file configures. No request is sent.
///
/// `local` is the embedded tracker, which the caller creates since it needs the store.
pub fn from_config(
    config: &TrackerConfig,
    connections: &HttpClient,
    local: Option<Arc<dyn Tracker>>,
) -> Result<Arc<dyn Tracker>, TrackerError> {
    fn remote<P: IssueProvider>(settings: Settings<'_>) -> Result<Arc<dyn Tracker>> {
        Ok(Arc::new(RemoteTracker(P::new(settings)?)))
    }
    let settings = Settings { config, connections };
    match config.kind {
        TrackerKind::Linear => remote::<linear::Linear>(settings),
        TrackerKind::Github => remote::<github::Github>(settings),
        TrackerKind::Gitlab => remote::<gitlab::Gitlab>(settings),
        TrackerKind::Jira => remote::<jira::Jira>(settings),
        TrackerKind::Asana => remote::<asana::Asana>(settings),
        TrackerKind::Local => local.ok_or_else(|| {
            let message = "the tracker `local` needs a store, which is not available here";
            TrackerError::new(TrackerErrorKind::Config, message)
        }),
    }
}
