//! Creation of the tracker that a workflow file configures.

use std::sync::Arc;

use carrel_client::HttpClient;
use carrel_config::{TrackerConfig, TrackerKind};

use crate::error::{TrackerError, TrackerErrorKind};
use crate::{Tracker, asana, github, gitlab, jira, linear};

/// Creates the tracker that a workflow file configures. No request is sent.
///
/// `local` is the embedded tracker, which the caller creates since it needs the store.
pub fn from_config(
    config: &TrackerConfig,
    connections: &HttpClient,
    local: Option<Arc<dyn Tracker>>,
) -> Result<Arc<dyn Tracker>, TrackerError> {
    Ok(match config.kind {
        TrackerKind::Linear => Arc::new(linear::Linear::new(config, connections)?),
        TrackerKind::Github => Arc::new(github::Github::new(config, connections)?),
        TrackerKind::Gitlab => Arc::new(gitlab::Gitlab::new(config, connections)?),
        TrackerKind::Jira => Arc::new(jira::Jira::new(config, connections)?),
        TrackerKind::Asana => Arc::new(asana::Asana::new(config, connections)?),
        TrackerKind::Local => local.ok_or_else(|| {
            TrackerError::new(
                TrackerErrorKind::Config,
                "the tracker `local` needs a store, which is not available here",
            )
        })?,
    })
}
