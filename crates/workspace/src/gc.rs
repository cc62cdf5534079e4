//! Clean-up: what a crash left behind, workspaces unused for long, directories without a record.
//!
//! Each workspace is examined and treated under its own lock, taken without waiting, so clean-up can run
//! beside everything else and skips what is in use. A failure concerns one item only.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use carrel_domain::{Identifier, Timestamp, WorkspaceKey, message_of};
use carrel_fsroot::{FileKind, unfinished_write_pid};
use serde::Serialize;
use tracing::{info, warn};

use crate::blocking::blocking;
use crate::condition::Condition;
use crate::error::Error;
use crate::git_state::VIEWS;
use crate::hooks::Hooks;
use crate::lock::Mode;
use crate::remove::{RecordAndDirectory, RemovalLock};
use crate::workspaces::{RootInner, Workspaces};

/// The age at which an unfinished file counts as left behind. Its writer may live in another container,
/// so its process id proves nothing.
const UNFINISHED_AGE: Duration = Duration::from_mins(10);

/// The time for which logs outlive their workspace.
const KEEP_LOGS: Duration = Duration::from_hours(7 * 24);

/// The options of a clean-up. By default it finishes what crashes interrupted, deletes what
/// belongs to no workspace, and empties the trash.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gc {
    /// Reports the actions and performs none.
    pub dry_run: bool,
    /// Removes workspaces that were unused for this long.
    pub retention: Option<Duration>,
    /// Keeps such workspaces if they have unsaved work.
    pub keep_if_dirty: bool,
    /// Removes directories without a record.
    pub orphans: bool,
}

/// An action of a clean-up, with its object.
///
/// Records decide about workspaces: one whose creation or removal was interrupted is finished, one without a
/// directory loses its record, one that was unused for longer than the retention is removed with its hook.
/// Logs, locks and unfinished files are deleted if they belong to no record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names define actions and objects")]
pub enum GcAction {
    FinishRemoval {
        key: WorkspaceKey,
    },
    RemoveHalfMade {
        key: WorkspaceKey,
    },
    DropRecord {
        key: WorkspaceKey,
    },
    RemoveUnused {
        identifier: Identifier,
        key: WorkspaceKey,
        last_used_at: Timestamp,
    },
    RemoveOrphan {
        name: String,
    },
    DeleteLogs {
        name: String,
    },
    DeleteLock {
        name: String,
    },
    DeleteUnfinished {
        #[serde(with = "carrel_domain::lossy_path")]
        path: PathBuf,
    },
    DeleteTrash {
        name: String,
    },
}

/// The result of a clean-up: the actions, performed or in a dry run only planned, and the messages of failed ones.
#[derive(Clone, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "the summary defines both fields")]
pub struct GcReport {
    pub actions: Vec<GcAction>,
    pub failed: Vec<String>,
}

enum Leftover {
    Logs(String),
    Lock(String),
    Unfinished(PathBuf),
}

impl From<Leftover> for GcAction {
    fn from(leftover: Leftover) -> Self {
        match leftover {
            Leftover::Logs(name) => Self::DeleteLogs { name },
            Leftover::Lock(name) => Self::DeleteLock { name },
            Leftover::Unfinished(path) => Self::DeleteUnfinished { path },
        }
    }
}

impl Workspaces {
    /// Cleans up. A failed action does not stop the others.
    pub async fn gc(&self, options: Gc, hooks: &Hooks) -> Result<GcReport, Error> {
        let mut report = GcReport::default();
        let inner = self.inner.clone();
        for key in blocking(move || inner.candidates(options)).await? {
            let done = self.clean_workspace(&key, options, hooks).await;
            report.note(key.as_str(), done);
        }
        let inner = self.inner.clone();
        for leftover in blocking(move || inner.leftovers()).await? {
            let inner = self.inner.clone();
            let dry_run = options.dry_run;
            let done = blocking(move || {
                let deleted = if dry_run { Ok(()) } else { inner.delete(&leftover) };
                deleted.map(|()| Some(leftover.into()))
            });
            report.note("", done.await);
        }
        report.merge(if options.dry_run {
            self.trash_report()?
        } else {
            self.empty_trash().await?
        });
        Ok(report)
    }

    /// Deletes the contents of the trash, unless another process does so.
    pub async fn empty_trash(&self) -> Result<GcReport, Error> {
        let workspaces = self.clone();
        let sweep = blocking(move || workspaces.sweep()).await?;
        let actions = sweep.deleted.into_iter().map(|name| GcAction::DeleteTrash { name });
        let failed = sweep.failed.into_iter();
        let failed = failed.map(|(name, reason)| format!("{}: {reason}", name.to_string_lossy()));
        Ok(GcReport { actions: actions.collect(), failed: failed.collect() })
    }

    fn trash_report(&self) -> Result<GcReport, Error> {
        let actions = self.trash()?.into_iter().map(|name| GcAction::DeleteTrash { name });
        Ok(GcReport { actions: actions.collect(), failed: Vec::new() })
    }

    /// Treats one workspace; returns the action, if one was needed.
    async fn clean_workspace(
        &self,
        key: &WorkspaceKey,
        options: Gc,
        hooks: &Hooks,
    ) -> Result<Option<GcAction>, Error> {
        let inner = self.inner.clone();
        let name = key.clone();
        let Some((action, target)) = blocking(move || inner.examine(name, options)).await? else {
            return Ok(None);
        };
        let Some(target) = target else { return Ok(Some(action)) };
        if matches!(action, GcAction::RemoveUnused { .. }) {
            self.remove_locked(target, options.keep_if_dirty, hooks).await?;
        } else {
            let inner = self.inner.clone();
            blocking(move || inner.remove_now(target)).await?;
        }
        Ok(Some(action))
    }
}

impl GcReport {
    fn note(&mut self, key: &str, done: Result<Option<GcAction>, Error>) {
        match done {
            Ok(None) => {}
            Ok(Some(action)) => {
                info!(?action, "Cleaned up");
                self.actions.push(action);
            }
            Err(error) => {
                let error = message_of(&error);
                warn!(key, error, "Could not clean up");
                self.failed.push(error);
            }
        }
    }

    fn merge(&mut self, other: Self) {
        self.actions.extend(other.actions);
        self.failed.extend(other.failed);
    }
}

impl RootInner {
    /// Lists the keys to examine: all records and, if requested, directories without one.
    fn candidates(&self, options: Gc) -> Result<Vec<WorkspaceKey>, Error> {
        let mut keys = self.records().keys()?;
        if options.orphans {
            let stray = self.stray_directories(&keys)?;
            keys.extend(stray.iter().filter_map(|name| WorkspaceKey::from_name(name)));
        }
        Ok(keys)
    }

    /// Chooses the action for a workspace under its lock; `None` while the workspace is in use.
    fn examine(
        &self,
        key: WorkspaceKey,
        options: Gc,
    ) -> Result<Option<(GcAction, Option<RemovalLock>)>, Error> {
        let lock = if options.dry_run {
            // A dry run must not leave a lock file behind.
            None
        } else {
            self.locks().attempt(key.as_str(), Mode::Exclusive)?
        };
        if lock.is_none() && (!options.dry_run || self.locks().is_held(key.as_str())) {
            return Ok(None);
        }
        let found = self.read_state(&key)?;
        let action = self.action_for(&key, &found, options);
        Ok(action.map(|action| (action, lock.map(|lock| found.into_removal_lock(key, lock)))))
    }

    fn action_for(
        &self,
        key: &WorkspaceKey,
        found: &RecordAndDirectory,
        options: Gc,
    ) -> Option<GcAction> {
        let key = key.clone();
        let Some(record) = &found.record else {
            let orphan = options.orphans && found.directory.is_some();
            return orphan.then(|| GcAction::RemoveOrphan { name: key.to_string() });
        };
        let unused = record.last_used_at.age(self.clock.now());
        match Condition::of(record, found.directory.as_ref()) {
            Condition::Missing => Some(GcAction::DropRecord { key }),
            Condition::HalfMade => Some(GcAction::RemoveHalfMade { key }),
            Condition::HalfRemoved => Some(GcAction::FinishRemoval { key }),
            Condition::Ready if options.retention.is_some_and(|limit| unused > limit) => {
                let identifier = record.identifier.clone();
                let last_used_at = record.last_used_at;
                Some(GcAction::RemoveUnused { identifier, key, last_used_at })
            }
            Condition::Ready => None,
        }
    }

    fn leftovers(&self) -> Result<Vec<Leftover>, Error> {
        let keys = self.records().keys()?;
        let known: HashSet<&str> = keys.iter().map(WorkspaceKey::as_str).collect();
        let mut logs = self.names_in("logs")?;
        logs.retain(|name| !known.contains(name.as_str()) && self.is_old("logs", name));
        let logs = logs.into_iter().map(Leftover::Logs);
        let locks = self.idle_locks(&keys)?.into_iter().map(Leftover::Lock);
        Ok(logs
            .chain(locks)
            .chain(self.unfinished()?.into_iter().map(Leftover::Unfinished))
            .collect())
    }

    fn delete(&self, leftover: &Leftover) -> Result<(), Error> {
        let remove_tree = |path: &Path| {
            let removed = self.root.own.remove_tree(path);
            removed.map_err(Error::files(format!("could not delete {}", path.display())))
        };
        match leftover {
            Leftover::Logs(name) => remove_tree(&Path::new("logs").join(name)),
            Leftover::Unfinished(path) => remove_tree(path),
            Leftover::Lock(name) => self.locks().remove_idle(name).map(drop),
        }
    }

    pub(crate) fn stray_directories(&self, keys: &[WorkspaceKey]) -> Result<Vec<String>, Error> {
        let known: HashSet<&str> = keys.iter().map(WorkspaceKey::as_str).collect();
        let entries = self
            .root
            .directory
            .list(Path::new("."))
            .map_err(Error::files("could not list the root"))?;
        Ok(entries
            .iter()
            .filter(|entry| entry.kind == FileKind::Directory)
            .map(|entry| entry.name.to_string_lossy().into_owned())
            .filter(|name| name != WorkspaceKey::RESERVED && !known.contains(name.as_str()))
            .collect())
    }

    /// Lists lock files with neither a record nor a holder.
    pub(crate) fn idle_locks(&self, keys: &[WorkspaceKey]) -> Result<Vec<String>, Error> {
        let known: HashSet<&str> = keys.iter().map(WorkspaceKey::as_str).collect();
        let mut names = self.locks().names()?;
        names.retain(|name| {
            let of_a_workspace = WorkspaceKey::from_name(name).is_some();
            of_a_workspace && !known.contains(name.as_str()) && !self.locks().is_held(name)
        });
        Ok(names)
    }

    fn unfinished(&self) -> Result<Vec<PathBuf>, Error> {
        let mut paths = Vec::new();
        for part in ["", "records", "usage"] {
            let names = self.names_in(part)?.into_iter();
            let left = names.filter(|name| unfinished_write_pid(name.as_ref()).is_some());
            paths.extend(left.map(|name| Path::new(part).join(name)));
        }
        paths.extend(self.names_in(VIEWS)?.iter().map(|name| Path::new(VIEWS).join(name)));
        paths.retain(|path| self.age(path).is_some_and(|age| age > UNFINISHED_AGE));
        Ok(paths)
    }

    /// Logs outlive their workspace: that of a failed `after_create` is read after the removal.
    fn is_old(&self, part: &str, name: &str) -> bool {
        self.age(&Path::new(part).join(name)).is_some_and(|age| age > KEEP_LOGS)
    }

    fn age(&self, path: &Path) -> Option<Duration> {
        let modified = self.root.own.link_metadata(path).ok()?.modified;
        SystemTime::now().duration_since(modified).ok()
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
