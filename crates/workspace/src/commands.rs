//! The process that starts hooks and git, begun when the first one is due.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_exec::Spawner;
use tokio::sync::OnceCell;

/// Starts commands on the host's side. Clones share one process.
#[derive(Clone, Debug)]
pub struct Commands {
    program: Arc<Path>,
    spawner: Arc<OnceCell<Spawner>>,
}

impl Commands {
    /// Prepares to start commands. `program` is the one that runs [`carrel_exec::run_helper`].
    pub fn new(program: PathBuf) -> Self {
        Self { program: program.into(), spawner: Arc::default() }
    }

    pub(crate) async fn spawner(&self) -> io::Result<&Spawner> {
        self.spawner.get_or_try_init(async || Spawner::start(&self.program)).await
    }
}
