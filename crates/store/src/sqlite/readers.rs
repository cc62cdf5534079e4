//! A pool of read-only connections.
//!
//! In WAL mode readers do not wait for the writer, nor the writer for them. Each read runs in a
//! transaction, so that several statements see one snapshot. SQLite blocks, so that reads run on tokio's
//! blocking threads, at most four at once.

use std::any::Any;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use carrel_domain::sync;
use rusqlite::Connection;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::connection::open_reader;
use crate::error::StoreError;

const MAX_READERS: usize = 4;

/// Reads of all types are one type of task, since each type of its own would add some kilobytes to the program.
type Work = Box<dyn FnOnce(&Connection) -> Result<Found, StoreError> + Send>;

type Found = Box<dyn Any + Send>;

#[derive(Clone, Debug)]
pub(super) struct Readers {
    path: Arc<Path>,
    idle: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(path: &Path) -> Self {
        let permits = Arc::new(Semaphore::new(MAX_READERS));
        Self { path: path.into(), idle: Arc::default(), permits }
    }

    /// Runs `work` on one snapshot of the database. A connection on which it fails is closed.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let work: Work = Box::new(|connection| Ok(Box::new(work(connection)?)));
        let found = self.read_boxed(work).await?;
        Ok(*found.downcast().expect("work returns its own type"))
    }

    async fn read_boxed(&self, work: Work) -> Result<Found, StoreError> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
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
