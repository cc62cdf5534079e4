//! A spawner that is started with the first command.
//!
//! Most invocations of `carrel workspace` start no process at all, and a server should survive the
//! death of its spawner.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use carrel_domain::sync;

use crate::spawner::Spawner;

/// A [`Spawner`] that is started on first use and started again when its process has died. Clones
/// share one process.
#[derive(Clone, Debug)]
pub struct LazySpawner {
    program: Arc<Path>,
    current: Arc<Mutex<Option<Spawner>>>,
}

impl LazySpawner {
    /// Names the program to start, which must call [`crate::run_helper`] first thing in its `main`.
    /// Starts nothing.
    pub fn new(program: PathBuf) -> Self {
        Self { program: program.into(), current: Arc::default() }
    }

    /// Returns the program of the spawner.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Returns the spawner, inside a tokio runtime. A command that is in a spawner when it dies is
    /// lost; only later ones get the new process.
    pub fn get(&self) -> io::Result<Spawner> {
        let mut current = sync::lock(&self.current);
        match &*current {
            Some(spawner) if !spawner.is_gone() => Ok(spawner.clone()),
            _ => Ok(current.insert(Spawner::start(&self.program)?).clone()),
        }
    }
}
