//! What remembers for `carrel run`.

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
use crate::failure::Failure;
use crate::issue::relay::{self, Desk};
use crate::serve::data as directory;

/// How long `carrel run --once` waits for a database that is away.
const ONCE: Duration = Duration::from_secs(30);

/// What remembers: a file in the data directory, or a database.
pub(super) struct Keeping {
    pub(super) journal: Arc<dyn Journal>,
    pub(super) issues: Arc<dyn IssueStore>,
    database: Option<Database>,
}

impl Keeping {
    /// Opens what the environment names. A database may be away.
    pub(super) fn open(environment: &Environment, data: &Path) -> Result<Self, Failure> {
        if let Some(settings) = DatabaseSettings::read(environment)? {
            let database = Database::open(&settings)?;
            let store = Arc::new(database.postgres.clone());
            let database = Some(database);
            return Ok(Self { journal: Arc::clone(&store) as _, issues: store, database });
        }
        let store = Arc::new(directory::database(data)?);
        Ok(Self { journal: Arc::clone(&store) as _, issues: store, database: None })
    }

    /// Waits until it answers. Returns false if `stop` came first.
    pub(super) async fn ready(
        &self,
        once: bool,
        stop: &CancellationToken,
    ) -> Result<bool, Failure> {
        let Some(database) = &self.database else { return Ok(true) };
        if !once {
            return Ok(database.ready(stop).await);
        }
        match timeout(ONCE, database.ready(stop)).await {
            Ok(ready) => Ok(ready),
            Err(_) => Ok(database.prepare().await.map(|()| true)?),
        }
    }

    /// Names the tracker, so that its workspaces are not taken for those of another one.
    pub(super) async fn tracker_name(
        &self,
        config: Option<&ConductorConfig>,
        data: &Path,
    ) -> Result<TrackerName, Failure> {
        let tracker = config.map(|config| &config.tracker);
        if let Some(tracker) = tracker.filter(|tracker| tracker.kind != TrackerKind::Local) {
            // Every repository has an issue 1, and every Jira may have a WEB-1.
            let scope = scope_of(tracker);
            return Ok(TrackerName { name: scope.clone(), location: scope });
        }
        let name = format!("local:{}", self.issues.tracker_name().await?);
        Ok(TrackerName { name, location: format!("data directory {}", data.display()) })
    }

    /// Opens the way for hooks to issues of a database, if they are in one.
    pub(super) fn desk(
        &self,
        config: Option<&ConductorConfig>,
        data: &Path,
    ) -> Result<Option<Desk>, Failure> {
        if config.is_none_or(|config| config.tracker.kind != TrackerKind::Local) {
            return Ok(None);
        }
        let opened = match &self.database {
            Some(_) => Desk::open(data, Arc::clone(&self.issues)).map(Some),
            None => relay::close(data).map(|()| None),
        };
        opened.map_err(|source| Failure::Data { path: data.display().to_string(), source })
    }

    /// Says where everything is kept.
    pub(super) fn place(&self, data: &Path) -> String {
        let data = data.display();
        match self.database {
            Some(_) => {
                format!("journal and issues in the database of DATABASE_URL, the rest in {data}")
            }
            None => format!("data in {data}"),
        }
    }
}
