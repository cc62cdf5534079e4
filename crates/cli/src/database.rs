//! The PostgreSQL server that `DATABASE_URL` names, for `serve`, `worker`, `run` and `issue`.
//!
//! The server may be unreachable when a process starts: it waits with back-off and logs each attempt. A
//! schema that is too old is migrated first, unless `CARREL_MIGRATE=off`.

use std::time::Duration;

use carrel_config::Environment;
use carrel_config::environment::{CARREL_MIGRATE, DATABASE_URL};
use carrel_domain::{Secret, message_of};
use carrel_store::{Postgres, PostgresOptions, Store as _, StoreError};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::error::{CliError, Result};
use crate::serve::settings::{secret, word};

/// The first and the longest wait between attempts to reach the database.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

#[derive(Clone, Debug)]
pub(crate) struct DatabaseSettings {
    pub(crate) url: Secret,
    /// A start applies pending migrations.
    pub(crate) migrate: bool,
}

impl DatabaseSettings {
    /// Reads the settings; none if `DATABASE_URL` is unset.
    pub(crate) fn read(environment: &Environment) -> Result<Option<Self>> {
        let migrate = match word(environment, CARREL_MIGRATE).as_deref() {
            None | Some("on") => true,
            Some("off") => false,
            Some(value) => return Err(CliError::variable(CARREL_MIGRATE, value, "`on` or `off`")),
        };
        Ok(secret(environment, DATABASE_URL).map(|url| Self { url, migrate }))
    }
}

/// A database that several processes share. It may be unreachable at first.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    pub(crate) postgres: Postgres,
    migrate: bool,
}

impl Database {
    /// Parses the address. The server is contacted by the first operation.
    pub(crate) fn open(settings: &DatabaseSettings) -> Result<Self> {
        let postgres = Postgres::open(&PostgresOptions { url: settings.url.clone() })?;
        Ok(Self { postgres, migrate: settings.migrate })
    }

    /// Waits until the schema is current and the server answers. Returns false if `stop` was cancelled
    /// first.
    pub(crate) async fn ready(&self, stop: &CancellationToken) -> bool {
        let (mut wait, longest) = BACKOFF;
        loop {
            let Err(error) = self.prepare().await else { return true };
            warn!(error = message_of(&error), "the database cannot be used yet, trying again");
            tokio::select! {
                () = stop.cancelled() => return false,
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(longest),
            }
        }
    }

    /// Applies pending migrations if that is allowed, then pings the server.
    pub(crate) async fn prepare(&self) -> Result<(), StoreError> {
        match self.postgres.ping().await {
            Err(StoreError::TooOld { .. }) if self.migrate => {
                for done in self.postgres.migrate().await? {
                    info!(?done, "brought the database up to date");
                }
                self.postgres.ping().await
            }
            other => other,
        }
    }
}
