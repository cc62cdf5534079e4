//! The process that starts hooks and git, begun when the first one is due.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use carrel_exec::{Seed, Spawner};

/// Starts commands on the host's side. Clones share one process.
#[derive(Clone, Debug)]
pub struct Commands {
    program: Arc<Path>,
    spawner: Arc<Mutex<Option<Spawner>>>,
    /// A process that becomes one cell.
    seed: Arc<Mutex<Option<Spawner>>>,
}

impl Commands {
    /// Prepares to start commands. `program` is the one that runs [`carrel_exec::run_helper`].
    pub fn new(program: PathBuf) -> Self {
        Self { program: program.into(), spawner: Arc::default(), seed: Arc::default() }
    }

    /// Returns the program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Takes a process that becomes one cell, for the first that is asked for.
    pub(crate) fn keep_seed(&self, seed: Seed) -> io::Result<()> {
        let seed = Spawner::of_seed(seed, &self.program)?;
        *self.seed.lock().unwrap_or_else(PoisonError::into_inner) = Some(seed);
        Ok(())
    }

    /// Returns what makes a cell: the process that was started for that, once, or the usual one.
    pub(crate) fn cell_maker(&self) -> io::Result<Spawner> {
        let seed = self.seed.lock().unwrap_or_else(PoisonError::into_inner).take();
        seed.filter(|seed| !seed.is_gone()).map_or_else(|| self.spawner(), Ok)
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
