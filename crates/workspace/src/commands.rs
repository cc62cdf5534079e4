//! The process that starts hooks and git, begun when the first one is due.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use carrel_exec::Spawner;

/// Starts commands on the host's side. Clones share one process.
#[derive(Clone, Debug)]
pub struct Commands {
    program: Arc<Path>,
    spawner: Arc<Mutex<Option<Spawner>>>,
}

impl Commands {
    /// Prepares to start commands. `program` is the one that runs [`carrel_exec::run_helper`].
    pub fn new(program: PathBuf) -> Self {
        Self { program: program.into(), spawner: Arc::default() }
    }

    /// Returns the process, and starts another when it is gone.
    pub(crate) fn spawner(&self) -> io::Result<Spawner> {
        let mut current = self.spawner.lock().unwrap_or_else(PoisonError::into_inner);
        match &*current {
            Some(spawner) if !spawner.is_gone() => Ok(spawner.clone()),
            _ => Ok(current.insert(Spawner::start(&self.program)?).clone()),
        }
    }
}
