//! What all rows stand on: a root with Carrel's workspaces, and a directory for plain work.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use carrel_domain::{ByteSize, Identifier, SystemClock};
use carrel_exec::LazySpawner;
use carrel_workspace::{
    Create, Created, Hooks, Quota, Remove, RootOptions, Target, UnsavedWork, Workspaces,
};
use tokio::runtime::Runtime;

use crate::Fault;
use crate::pace::Pace;

/// More than anything here takes up.
const QUOTA: Quota = Quota { bytes: ByteSize::gib(64), files: None };

/// The two sides of every comparison, on one disk.
pub(crate) struct Ground {
    pub(crate) pace: Pace,
    pub(crate) workspaces: Workspaces,
    runtime: Runtime,
    hooks: Hooks,
    scratch: PathBuf,
}

impl Ground {
    pub(crate) fn prepare(scratch: &Path, pace: Pace) -> Result<Self, Fault> {
        let scratch = scratch.to_owned();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let options = RootOptions {
            root: scratch.join("root"),
            home: None,
            quota: QUOTA,
            keep_unsaved: Duration::ZERO,
            clock: Arc::new(SystemClock),
        };
        let workspaces = Workspaces::open_or_create(&options)?;
        Ok(Self { pace, workspaces, runtime, hooks: no_hooks()?, scratch })
    }

    /// Makes an empty directory for plain work.
    pub(crate) fn directory(&self, name: &str) -> Result<PathBuf, Fault> {
        let path = self.scratch.join(name);
        std::fs::create_dir(&path)?;
        Ok(path)
    }

    /// Waits for asynchronous work, on the thread that measures.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Makes a workspace, or finds it.
    pub(crate) fn create(&self, identifier: &Identifier) -> Result<Created, Fault> {
        let request = Create::new(identifier.clone());
        Ok(self.wait(self.workspaces.create(request, &self.hooks))?)
    }

    /// Moves a workspace into the trash.
    pub(crate) fn remove(&self, identifier: &Identifier) -> Result<(), Fault> {
        let target = Target::Identifier(identifier.clone());
        let request = Remove { target, unsaved: UnsavedWork::Discard };
        self.wait(self.workspaces.remove(request, &self.hooks))?;
        Ok(())
    }
}

fn no_hooks() -> Result<Hooks, Fault> {
    Ok(Hooks::none(LazySpawner::new(std::env::current_exe()?)))
}
