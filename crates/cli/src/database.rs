//! The PostgreSQL server that `DATABASE_URL` names, for whoever keeps something there.

use std::time::Duration;

use carrel_config::Environment;
use carrel_config::environment::{CARREL_MIGRATE, DATABASE_URL};
use carrel_domain::{Secret, message_of};
use carrel_store::{Postgres, PostgresOptions, Store as _, StoreError};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::failure::Failure;
use crate::serve::settings::{refused, secret, word};

/// The shortest and the longest wait before a database that is away is asked again.
const TRY_AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// What the environment says about the database.
#[derive(Clone, Debug)]
pub(crate) struct DatabaseSettings {
    pub(crate) url: Secret,
    /// Whether whoever starts brings the database up to date.
    pub(crate) migrate: bool,
}

impl DatabaseSettings {
    /// Reads them; none if everything is kept in a file.
    pub(crate) fn read(environment: &Environment) -> Result<Option<Self>, Failure> {
        let migrate = match word(environment, CARREL_MIGRATE).as_deref() {
            None | Some("on") => true,
            Some("off") => false,
            Some(value) => return Err(refused(CARREL_MIGRATE, value, "`on` or `off`")),
        };
        Ok(secret(environment, DATABASE_URL).map(|url| Self { url, migrate }))
    }
}

/// A database that several processes share. It may be away.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    pub(crate) postgres: Postgres,
    migrate: bool,
}

impl Database {
    /// Prepares to use it, without asking it anything.
    pub(crate) fn open(settings: &DatabaseSettings) -> Result<Self, Failure> {
        let postgres = Postgres::open(&PostgresOptions { url: settings.url.clone() })?;
        Ok(Self { postgres, migrate: settings.migrate })
    }

    /// Waits until it is up to date and answers. Returns false if `stop` came first.
    pub(crate) async fn ready(&self, stop: &CancellationToken) -> bool {
        let (mut wait, longest) = TRY_AGAIN;
        loop {
            match self.prepare().await {
                Ok(()) => return true,
                Err(error) => {
                    let error = message_of(&error);
                    warn!(%error, "the database cannot be used yet, trying again");
                }
            }
            tokio::select! {
                () = stop.cancelled() => return false,
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(longest),
            }
        }
    }

    /// Brings it up to date, and asks whether it answers.
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
