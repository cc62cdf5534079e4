//! The store behind `carrel run`: its write-ahead journal and the issues of the embedded tracker.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use carrel_conductor::drive::scope_of;
use carrel_config::{ConductorConfig, Environment, TrackerKind};
use carrel_store::{IssueStore, Journal};
use carrel_workspace::TrackerName;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::database::{Database, DatabaseSettings};
use crate::error::{CliError, Result};
use crate::issue::relay::{self, RelayServer};
use crate::serve::data as directory;

/// Bounds the wait of `carrel run --once` for a database that does not answer.
const ONCE_TIMEOUT: Duration = Duration::from_secs(30);

/// The journal and the embedded tracker, in a SQLite file of the data directory or in the PostgreSQL
/// server that `DATABASE_URL` names.
pub(super) struct JournalBackend {
    pub(super) journal: Arc<dyn Journal>,
    pub(super) issues: Arc<dyn IssueStore>,
    database: Option<Database>,
}

impl JournalBackend {
    /// Opens the store that the environment names. A server is not contacted yet.
    pub(super) fn open(environment: &Environment, data: &Path) -> Result<Self> {
        if let Some(settings) = DatabaseSettings::read(environment)? {
            let database = Database::open(&settings)?;
            let store = Arc::new(database.postgres.clone());
            let database = Some(database);
            return Ok(Self { journal: Arc::clone(&store) as _, issues: store, database });
        }
        let store = Arc::new(directory::database(data)?);
        Ok(Self { journal: Arc::clone(&store) as _, issues: store, database: None })
    }

    /// Waits until the store answers. Returns false if `stop` was cancelled first.
    pub(super) async fn ready(&self, once: bool, stop: &CancellationToken) -> Result<bool> {
        let Some(database) = &self.database else { return Ok(true) };
        if !once {
            return Ok(database.ready(stop).await);
        }
        match timeout(ONCE_TIMEOUT, database.ready(stop)).await {
            Ok(ready) => Ok(ready),
            Err(_) => Ok(database.prepare().await.map(|()| true)?),
        }
    }

    /// Returns the name under which workspaces record their tracker, so that issues of two trackers with
    /// one identifier never share a workspace.
    pub(super) async fn tracker_name(
        &self,
        config: Option<&ConductorConfig>,
        data: &Path,
    ) -> Result<TrackerName> {
        let tracker = config.map(|config| &config.tracker);
        if let Some(tracker) = tracker.filter(|tracker| tracker.kind != TrackerKind::Local) {
            // Every repository has an issue 1, and every Jira may have a WEB-1.
            let scope = scope_of(tracker);
            return Ok(TrackerName { name: scope.clone(), location: scope });
        }
        let name = format!("local:{}", self.issues.tracker_name().await?);
        Ok(TrackerName { name, location: format!("data directory {}", data.display()) })
    }

    /// Opens the relay through which hooks reach issues in a database, whose address they do not see.
    /// None where the issues are in a file.
    pub(super) fn relay(
        &self,
        config: Option<&ConductorConfig>,
        data: &Path,
    ) -> Result<Option<RelayServer>> {
        if config.is_none_or(|config| config.tracker.kind != TrackerKind::Local) {
            return Ok(None);
        }
        let opened = match &self.database {
            Some(_) => RelayServer::open(data, Arc::clone(&self.issues)).map(Some),
            None => relay::close(data).map(|()| None),
        };
        opened.map_err(CliError::data(data))
    }

    /// Describes where the data is, for the line at the start.
    pub(super) fn description(&self, data: &Path) -> String {
        let data = data.display();
        match self.database {
            Some(_) => {
                format!("journal and issues in the database of DATABASE_URL, the rest in {data}")
            }
            None => format!("data in {data}"),
        }
    }
}
