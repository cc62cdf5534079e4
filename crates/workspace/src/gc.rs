//! Cleaning up: what a crash left behind, what nobody used for long, what has no owner.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use carrel_domain::{Identifier, Timestamp, WorkspaceKey};
use carrel_fsroot::{FileKind, unfinished_write};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::Serialize;
use tracing::{info, warn};

use crate::blocking::blocking;
use crate::error::Error;
use crate::hooks::Hooks;
use crate::lock::Mode;
use crate::manager::{Inner, Workspaces};
use crate::record::State;
use crate::remove::{Remove, Target};

/// How long the logs of a workspace that is gone are kept.
const KEEP_LOGS: Duration = Duration::from_hours(7 * 24);

/// What to clean up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gc {
    /// Only says what would be done.
    pub dry_run: bool,
    /// Removes workspaces that were not used for this long.
    pub retention: Option<Duration>,
    /// Leaves such workspaces alone when they hold unsaved work.
    pub keep_if_dirty: bool,
    /// Removes directories of the root that have no record.
    pub orphans: bool,
}

/// One thing that was, or would be, done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum GcAction {
    /// A removal that was interrupted is finished.
    FinishRemoval {
        /// The workspace.
        key: WorkspaceKey,
    },
    /// A directory that was never finished is removed.
    RemoveHalfMade {
        /// The workspace.
        key: WorkspaceKey,
    },
    /// A record whose directory is gone is dropped.
    DropRecord {
        /// The workspace.
        key: WorkspaceKey,
    },
    /// A workspace that nobody used for long is removed.
    RemoveUnused {
        /// What it was for.
        identifier: Identifier,
        /// The workspace.
        key: WorkspaceKey,
        /// When it was last used.
        last_used_at: Timestamp,
    },
    /// A directory without a record is removed.
    RemoveOrphan {
        /// Its name.
        name: String,
    },
    /// The logs of a workspace that is gone are deleted.
    DeleteLogs {
        /// Whose logs.
        name: String,
    },
    /// A lock file that belongs to nothing is deleted.
    DeleteLock {
        /// Whose lock.
        name: String,
    },
    /// A record that a crash kept from being finished is deleted.
    DeleteUnfinished {
        /// The file, below the server's own directory.
        path: PathBuf,
    },
    /// A removed workspace is deleted from the trash.
    DeleteTrash {
        /// Its name in the trash.
        name: String,
    },
}

/// What a clean-up came to.
#[derive(Clone, Debug, Default, Serialize)]
pub struct GcReport {
    /// What was, or would be, done.
    pub actions: Vec<GcAction>,
    /// What could not be done, and why.
    pub failed: Vec<String>,
}

impl Workspaces {
    /// Cleans up. Each step holds the lock of what it touches, so a clean-up can
    /// run beside everything else.
    pub async fn gc(&self, options: Gc, hooks: &Hooks) -> Result<GcReport, Error> {
        let inner = self.inner.clone();
        let mut report = GcReport::default();
        for action in blocking(move || inner.plan(options)).await? {
            if options.dry_run {
                report.actions.push(action);
                continue;
            }
            match self.carry_out(&action, options, hooks).await {
                Ok(true) => {
                    info!(?action, "Cleaned up");
                    report.actions.push(action);
                }
                Ok(false) => {}
                Err(error) => {
                    warn!(?action, %error, "Could not clean up");
                    report.failed.push(error.to_string());
                }
            }
        }
        let trash = if options.dry_run {
            let names = self.trash()?.into_iter().map(|name| GcAction::DeleteTrash { name });
            GcReport { actions: names.collect(), failed: Vec::new() }
        } else {
            self.empty_trash().await?
        };
        report.actions.extend(trash.actions);
        report.failed.extend(trash.failed);
        Ok(report)
    }

    /// Deletes what is in the trash, unless another process is at it.
    pub async fn empty_trash(&self) -> Result<GcReport, Error> {
        let workspaces = self.clone();
        let sweep = blocking(move || workspaces.sweep()).await?;
        let actions = sweep.deleted.into_iter().map(|name| GcAction::DeleteTrash { name });
        let failed = sweep.failed.into_iter().map(|(name, reason)| format!("{name}: {reason}"));
        Ok(GcReport { actions: actions.collect(), failed: failed.collect() })
    }

    /// Does one thing; tells whether it was still to be done.
    async fn carry_out(
        &self,
        action: &GcAction,
        options: Gc,
        hooks: &Hooks,
    ) -> Result<bool, Error> {
        if let GcAction::RemoveUnused { identifier, .. } = action {
            let target = Target::Identifier(identifier.clone());
            let request = Remove { target, keep_if_dirty: options.keep_if_dirty };
            return self.remove(request, hooks).await.map(|_| true);
        }
        let (inner, action) = (self.inner.clone(), action.clone());
        blocking(move || inner.carry_out(&action)).await
    }
}

impl Inner {
    fn plan(&self, options: Gc) -> Result<Vec<GcAction>, Error> {
        let mut actions = Vec::new();
        let keys = self.records().keys()?;
        for key in &keys {
            actions.extend(self.plan_for(key, options)?);
        }
        let known = |name: &str| keys.iter().any(|key| key.as_str() == name);
        if options.orphans {
            let orphans = self.stray_directories(&keys)?;
            actions.extend(orphans.into_iter().map(|name| GcAction::RemoveOrphan { name }));
        }
        let logs = self.names_in("logs")?;
        let stale = logs.into_iter().filter(|name| !known(name) && self.logs_are_old(name));
        actions.extend(stale.map(|name| GcAction::DeleteLogs { name }));
        actions
            .extend(self.idle_locks(&keys)?.into_iter().map(|name| GcAction::DeleteLock { name }));
        let unfinished = self.unfinished()?;
        actions.extend(unfinished.into_iter().map(|path| GcAction::DeleteUnfinished { path }));
        Ok(actions)
    }

    fn plan_for(&self, key: &WorkspaceKey, options: Gc) -> Result<Option<GcAction>, Error> {
        // Somebody is making, removing or using it at this moment.
        let Some(_lock) = self.locks().attempt(key.as_str(), Mode::Exclusive, "clean-up")? else {
            return Ok(None);
        };
        let Some(record) = self.records().read(key)? else { return Ok(None) };
        let key = key.clone();
        let directory = self.open_directory(&key)?;
        let unused = record.last_used_at.age(self.clock.now());
        Ok(match (record.state, directory) {
            (_, None) => Some(GcAction::DropRecord { key }),
            (State::Creating, Some(_)) => Some(GcAction::RemoveHalfMade { key }),
            (State::Removing, Some(_)) => Some(GcAction::FinishRemoval { key }),
            (State::Ready, Some(_)) if options.retention.is_some_and(|limit| unused > limit) => {
                let (identifier, last_used_at) = (record.identifier, record.last_used_at);
                Some(GcAction::RemoveUnused { identifier, key, last_used_at })
            }
            (State::Ready, Some(_)) => None,
        })
    }

    fn carry_out(&self, action: &GcAction) -> Result<bool, Error> {
        match action {
            GcAction::FinishRemoval { key }
            | GcAction::RemoveHalfMade { key }
            | GcAction::DropRecord { key } => self.finish_removal(key),
            GcAction::RemoveOrphan { name } => match WorkspaceKey::from_name(name) {
                Some(key) => self.finish_removal(&key),
                None => Ok(false),
            },
            GcAction::DeleteLogs { name } => {
                let path = Path::new("logs").join(name);
                let removed = self.root.own.remove_tree(&path);
                removed.map(|()| true).map_err(Error::files("could not delete logs"))
            }
            GcAction::DeleteLock { name } => self.locks().remove_idle(name),
            GcAction::DeleteUnfinished { path } => {
                crate::json::remove(&self.root.own, path).map(|()| true)
            }
            // Done by whoever can run hooks, and by the sweep.
            GcAction::RemoveUnused { .. } | GcAction::DeleteTrash { .. } => Ok(false),
        }
    }

    /// Lists directories of the root that have no record.
    pub(crate) fn stray_directories(&self, keys: &[WorkspaceKey]) -> Result<Vec<String>, Error> {
        let entries = self
            .root
            .directory
            .list(Path::new("."))
            .map_err(Error::files("could not list the root"))?;
        Ok(entries
            .iter()
            .filter(|entry| entry.kind == FileKind::Directory)
            .map(|entry| entry.name.to_string_lossy().into_owned())
            .filter(|name| name != WorkspaceKey::RESERVED)
            .filter(|name| !keys.iter().any(|key| key.as_str() == name))
            .collect())
    }

    /// Lists lock files of workspaces that have neither a record nor a holder.
    pub(crate) fn idle_locks(&self, keys: &[WorkspaceKey]) -> Result<Vec<String>, Error> {
        let mut idle = Vec::new();
        for name in self.locks().names()? {
            let key = name.split('+').next().and_then(WorkspaceKey::from_name);
            let orphaned = key.is_some_and(|key| !keys.contains(&key));
            if orphaned && self.locks().attempt(&name, Mode::Exclusive, "clean-up")?.is_some() {
                idle.push(name);
            }
        }
        Ok(idle)
    }

    /// The log of a hook that failed is read after its workspace was taken back.
    fn logs_are_old(&self, name: &str) -> bool {
        let directory = Path::new("logs").join(name);
        let modified = self.root.own.metadata(&directory).map(|metadata| metadata.modified);
        let age = modified.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        age.is_some_and(|age| age > KEEP_LOGS)
    }

    /// Lists files of the server that a process left unfinished when it died.
    fn unfinished(&self) -> Result<Vec<PathBuf>, Error> {
        let mut paths = Vec::new();
        for part in ["", "records", "usage"] {
            for name in self.names_in(part)? {
                let writer = unfinished_write(name.as_ref()).and_then(|id| i32::try_from(id).ok());
                if writer.and_then(Pid::from_raw).is_some_and(|writer| !is_alive(writer)) {
                    paths.push(Path::new(part).join(name));
                }
            }
        }
        Ok(paths)
    }

    fn names_in(&self, part: &str) -> Result<Vec<String>, Error> {
        let entries = self
            .root
            .own
            .list(Path::new(part))
            .map_err(Error::files("could not list the server's directory"))?;
        Ok(entries.iter().map(|entry| entry.name.to_string_lossy().into_owned()).collect())
    }
}

fn is_alive(process: Pid) -> bool {
    !matches!(test_kill_process(process), Err(Errno::SRCH))
}
