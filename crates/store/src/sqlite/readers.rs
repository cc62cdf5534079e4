//! Connections that only read, beside the one that writes.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use carrel_domain::sync;
use rusqlite::Connection;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::connection::open_reader;
use crate::error::StoreError;

/// How many may read at once.
const MAX_READERS: usize = 4;

/// Connections that only read.
#[derive(Clone, Debug)]
pub(super) struct Readers {
    path: Arc<Path>,
    idle: Arc<Mutex<Vec<Connection>>>,
    room: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(path: &Path) -> Self {
        let room = Arc::new(Semaphore::new(MAX_READERS));
        Self { path: path.into(), idle: Arc::default(), room }
    }

    /// Reads something, as it was at one moment.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit = Arc::clone(&self.room).acquire_owned().await;
        let this = self.clone();
        let reading = spawn_blocking(move || {
            let _permit = permit;
            let idle = this.idle().pop();
            let connection = idle.map_or_else(|| open_reader(&this.path), Ok)?;
            let transaction = connection.unchecked_transaction()?;
            let found = work(&transaction)?;
            transaction.finish()?;
            this.idle().push(connection);
            Ok(found)
        });
        reading.await.map_err(|error| StoreError::Unavailable(Box::new(error)))?
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        sync::lock(&self.idle)
    }
}
