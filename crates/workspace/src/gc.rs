//! Clean-up: what a crash left behind, workspaces unused for long, directories without a record.
//!
//! Unsaved work in them is kept: a clean-up goes by rules, and no person has looked at the workspace.
//!
//! Each workspace is examined and treated under its own lock, taken without waiting, so clean-up can run
//! beside everything else and skips what is in use. A failure concerns one item only.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, SystemTime};

use carrel_domain::{Identifier, Timestamp, WorkspaceKey, message_of};
use carrel_fsroot::{Entry, FileKind, Root, unfinished_write_pid};
use serde::Serialize;
use tracing::{info, warn};

use crate::blocking::blocking;
use crate::error::Error;
use crate::fork::FORKS;
use crate::git_state::VIEWS;
use crate::homes::{HOMES, SNAPSHOTS, SYMBOLS};
use crate::hooks::Hooks;
use crate::kept::{KEPT, KeptWork};
use crate::lock::Mode;
use crate::record::{Record, State};
use crate::remove::{RemovalLock, UnsavedWork};
use crate::root::names_in;
use crate::workspaces::{RootInner, Workspaces};

/// The age at which an unfinished file counts as left behind. Its writer may live in another container,
/// so its process id proves nothing.
const UNFINISHED_AGE: Duration = Duration::from_mins(10);

/// The time for which logs outlive their workspace.
const KEEP_LOGS: Duration = Duration::from_hours(7 * 24);

/// The options of a clean-up. By default it finishes what crashes interrupted, deletes what
/// belongs to no workspace, and empties the trash.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the options of a clean-up are independent")]
pub struct Gc {
    /// Reports the actions and performs none.
    pub dry_run: bool,
    /// Removes workspaces that were unused for this long.
    pub retention: Option<Duration>,
    /// Leaves such workspaces alone if they have unsaved work, which otherwise outlives them as kept work.
    pub keep_if_dirty: bool,
    /// Removes directories without a record.
    pub orphans: bool,
    /// Drops all kept work, also before its time is over.
    pub drop_kept: bool,
}

/// An action of a clean-up, with its object.
///
/// Records decide about workspaces: one whose creation or removal was interrupted is finished, one without a
/// directory loses its record, one that was unused for longer than the retention is removed with its hook.
/// Unsaved work in a removed workspace is kept, and dropped when its time is over. Logs, homes, snapshots, locks and
/// unfinished files are deleted if they belong to no record.
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
    KeepUnsaved {
        name: String,
    },
    DropKept {
        name: String,
    },
    DeleteLogs {
        name: String,
    },
    DeleteHome {
        name: String,
    },
    DeleteSnapshots {
        name: String,
    },
    /// By the caller, who knows the retention.
    ExpireSnapshots {
        key: WorkspaceKey,
        count: usize,
    },
    DeleteSymbols {
        name: String,
    },
    DeleteLayers {
        name: String,
    },
    DeleteLock {
        name: String,
    },
    DeleteUnfinished {
        path: String,
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

impl Workspaces {
    /// Cleans up. A failed action does not stop the others.
    pub async fn gc(&self, options: Gc, hooks: &Hooks) -> Result<GcReport, Error> {
        let mut report = GcReport::default();
        for key in self.blocking(move |inner| inner.candidates(options)).await? {
            let done = self.clean_workspace(&key, options, hooks).await;
            report.note(key.as_str(), done);
        }
        self.clean_kept(options, &mut report).await?;
        for leftover in self.blocking(RootInner::leftovers).await? {
            let done = self.blocking(move |inner| {
                if !options.dry_run {
                    inner.delete(&leftover)?;
                }
                Ok(vec![leftover])
            });
            report.note("", done.await);
        }
        if options.dry_run {
            let trash = self.trash()?.into_iter();
            report.actions.extend(trash.map(|name| GcAction::DeleteTrash { name }));
        } else {
            let emptied = self.empty_trash().await?;
            report.actions.extend(emptied.actions);
            report.failed.extend(emptied.failed);
        }
        Ok(report)
    }

    /// Deletes the contents of the trash, unless another process does so.
    pub async fn empty_trash(&self) -> Result<GcReport, Error> {
        let workspaces = self.clone();
        blocking(move || workspaces.sweep()).await
    }

    /// Treats one workspace; returns the actions that were needed.
    async fn clean_workspace(
        &self,
        key: &WorkspaceKey,
        options: Gc,
        hooks: &Hooks,
    ) -> Result<Vec<GcAction>, Error> {
        let examined = self.with_key(key, move |inner, key| inner.examine(key, options)).await?;
        let Some((action, target)) = examined else { return Ok(Vec::new()) };
        let Some(target) = target else { return Ok(vec![action]) };
        let keeps = target.record.as_ref().is_some_and(|record| record.keep_unsaved);
        let removed = match &action {
            GcAction::RemoveUnused { .. } if options.keep_if_dirty => {
                self.remove_locked(target, UnsavedWork::Refuse, hooks).await?
            }
            GcAction::RemoveUnused { .. } => {
                self.remove_locked(target, UnsavedWork::Keep, hooks).await?
            }
            GcAction::RemoveOrphan { .. } => {
                self.remove_unhooked(target, UnsavedWork::Keep, hooks).await?
            }
            GcAction::FinishRemoval { .. } if keeps => {
                self.remove_unhooked(target, UnsavedWork::Keep, hooks).await?
            }
            _ => self.remove_unhooked(target, UnsavedWork::Discard, hooks).await?,
        };
        let kept = removed.kept.map(|kept| GcAction::KeepUnsaved { name: kept.name });
        Ok([action].into_iter().chain(kept).collect())
    }

    /// Drops kept work whose time is over, or all of it. In a dry run it only says so.
    async fn clean_kept(&self, options: Gc, report: &mut GcReport) -> Result<(), Error> {
        if options.dry_run {
            let now = self.inner.clock.now();
            let over = |kept: &KeptWork| options.drop_kept || kept.is_over(now);
            let planned = self.kept().await?.into_iter().filter(over);
            report.actions.extend(planned.map(|kept| GcAction::DropKept { name: kept.name }));
            return Ok(());
        }
        let workspaces = self.clone();
        let dropped = blocking(move || {
            let mut report = GcReport::default();
            workspaces.expire_kept(options.drop_kept, &mut report)?;
            Ok::<_, Error>(report)
        });
        let dropped = dropped.await?;
        report.actions.extend(dropped.actions);
        report.failed.extend(dropped.failed);
        Ok(())
    }
}

impl GcReport {
    fn note(&mut self, key: &str, done: Result<Vec<GcAction>, Error>) {
        match done {
            Ok(actions) => {
                for action in &actions {
                    info!(?action, "Cleaned up");
                }
                self.actions.extend(actions);
            }
            Err(error) => {
                let error = message_of(&error);
                warn!(key, error, "Could not clean up");
                self.failed.push(error);
            }
        }
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
        key: &WorkspaceKey,
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
        let record = self.records().read(key)?;
        let directory = self.open_directory(key)?;
        let action = self.action_for(key, record.as_ref(), directory.as_ref(), options);
        let locked = lock.map(|lock| RemovalLock { key: key.clone(), record, directory, lock });
        Ok(action.map(|action| (action, locked)))
    }

    fn action_for(
        &self,
        key: &WorkspaceKey,
        record: Option<&Record>,
        directory: Option<&Root>,
        options: Gc,
    ) -> Option<GcAction> {
        let key = key.clone();
        let Some(record) = record else {
            let orphan = options.orphans && directory.is_some();
            return orphan.then(|| GcAction::RemoveOrphan { name: key.to_string() });
        };
        let unused = record.last_used_at.age(self.clock.now());
        match (record.state, directory) {
            // All its work is in the layers, and no person has decided about it.
            (State::Ready, None)
                if record.fork.is_some() && self.has_layers(record).unwrap_or(true) =>
            {
                None
            }
            (_, None) => Some(GcAction::DropRecord { key }),
            (State::Creating, Some(_)) => Some(GcAction::RemoveHalfMade { key }),
            (State::Removing, Some(_)) => Some(GcAction::FinishRemoval { key }),
            (State::Ready, Some(_)) if self.has_lost_work(record) => {
                Some(GcAction::RemoveHalfMade { key })
            }
            // A fork has a time of its own, and its base lives as long as it does.
            (State::Ready, Some(_)) if record.fork.is_some() || self.has_forks(&key) => None,
            (State::Ready, Some(_)) if options.retention.is_some_and(|limit| unused > limit) => {
                let identifier = record.identifier.clone();
                let last_used_at = record.last_used_at;
                Some(GcAction::RemoveUnused { identifier, key, last_used_at })
            }
            (State::Ready, Some(_)) => None,
        }
    }

    /// Lists what belongs to no workspace: logs, homes, snapshots, symbol indexes, locks and unfinished files.
    fn leftovers(&self) -> Result<Vec<GcAction>, Error> {
        let keys = self.records().keys()?;
        let known: HashSet<&str> = keys.iter().map(WorkspaceKey::as_str).collect();
        let mut logs = self.names_in("logs")?;
        // Logs outlive their workspace: that of a failed `after_create` is read after the removal.
        let is_old = |name: &str| self.age(&Path::new("logs").join(name)) > Some(KEEP_LOGS);
        logs.retain(|name| !known.contains(name.as_str()) && is_old(name));
        let logs = logs.into_iter().map(|name| GcAction::DeleteLogs { name });
        let is_left = |name: &String| !known.contains(name.as_str()) && !self.locks().is_held(name);
        let homes = self.names_in(HOMES)?.into_iter().filter(is_left);
        let homes = homes.map(|name| GcAction::DeleteHome { name });
        let snapshots = self.names_in(SNAPSHOTS)?.into_iter().filter(is_left);
        let snapshots = snapshots.map(|name| GcAction::DeleteSnapshots { name });
        let symbols = self.names_in(SYMBOLS)?.into_iter().filter(is_left);
        let symbols = symbols.map(|name| GcAction::DeleteSymbols { name });
        let layers = self.names_in(FORKS)?.into_iter().filter(is_left);
        let layers = layers.map(|name| GcAction::DeleteLayers { name });
        let locks = self.idle_locks(&keys)?.into_iter().map(|name| GcAction::DeleteLock { name });
        let unfinished = self.unfinished()?.into_iter();
        let unfinished = unfinished.map(|path| GcAction::DeleteUnfinished { path });
        let beside = homes.chain(snapshots).chain(symbols).chain(layers);
        Ok(logs.chain(beside).chain(locks).chain(unfinished).collect())
    }

    fn delete(&self, leftover: &GcAction) -> Result<(), Error> {
        let remove_tree = |path: &Path| {
            let removed = self.root.own.remove_tree(path);
            removed.map_err(Error::files(format!("could not delete {}", path.display())))
        };
        match leftover {
            GcAction::DeleteLogs { name } => remove_tree(&Path::new("logs").join(name)),
            GcAction::DeleteHome { name } => remove_tree(&Path::new(HOMES).join(name)),
            GcAction::DeleteSnapshots { name } => remove_tree(&Path::new(SNAPSHOTS).join(name)),
            GcAction::DeleteSymbols { name } => remove_tree(&Path::new(SYMBOLS).join(name)),
            GcAction::DeleteLayers { name } => remove_tree(&Path::new(FORKS).join(name)),
            GcAction::DeleteUnfinished { path } => remove_tree(path.as_ref()),
            GcAction::DeleteLock { name } => self.locks().remove_idle(name),
            // Workspaces and the trash are removed by other means.
            GcAction::FinishRemoval { .. }
            | GcAction::RemoveHalfMade { .. }
            | GcAction::DropRecord { .. }
            | GcAction::RemoveUnused { .. }
            | GcAction::RemoveOrphan { .. }
            | GcAction::KeepUnsaved { .. }
            | GcAction::DropKept { .. }
            | GcAction::ExpireSnapshots { .. }
            | GcAction::DeleteTrash { .. } => Ok(()),
        }
    }

    pub(crate) fn stray_directories(&self, keys: &[WorkspaceKey]) -> Result<Vec<String>, Error> {
        let known: HashSet<&str> = keys.iter().map(WorkspaceKey::as_str).collect();
        let entries = self.entries()?.into_iter();
        let directories = entries.filter(|entry| entry.kind == FileKind::Directory);
        let names = directories.map(|entry| entry.name.to_string_lossy().into_owned());
        let is_stray =
            |name: &String| name != WorkspaceKey::RESERVED && !known.contains(name.as_str());
        Ok(names.filter(is_stray).collect())
    }

    pub(crate) fn entries(&self) -> Result<Vec<Entry>, Error> {
        let entries = self.root.directory.list(Path::new("."));
        entries.map_err(Error::files("could not list the root"))
    }

    /// Lists lock files with neither a record nor a holder.
    pub(crate) fn idle_locks(&self, keys: &[WorkspaceKey]) -> Result<Vec<String>, Error> {
        let known: HashSet<&str> = keys.iter().map(WorkspaceKey::as_str).collect();
        let names = names_in(&self.root.own, "locks", "could not list locks")?;
        let is_idle = |name: &&str| {
            let of_a_workspace = WorkspaceKey::from_name(name).is_some();
            of_a_workspace && !known.contains(name) && !self.locks().is_held(name)
        };
        let names = names.iter().filter_map(|name| name.strip_suffix(".lock"));
        Ok(names.filter(is_idle).map(str::to_owned).collect())
    }

    fn unfinished(&self) -> Result<Vec<String>, Error> {
        let is_unfinished = |name: &String| unfinished_write_pid(name.as_ref()).is_some();
        let mut paths = self.names_in("")?;
        paths.retain(is_unfinished);
        for part in ["records", "usage", KEPT] {
            let left = self.names_in(part)?.into_iter().filter(is_unfinished);
            paths.extend(left.map(|name| format!("{part}/{name}")));
        }
        paths.extend(self.names_in(VIEWS)?.iter().map(|name| format!("{VIEWS}/{name}")));
        paths.retain(|path| self.age(path.as_ref()) > Some(UNFINISHED_AGE));
        Ok(paths)
    }

    fn age(&self, path: &Path) -> Option<Duration> {
        let modified = self.root.own.link_metadata(path).ok()?.modified;
        SystemTime::now().duration_since(modified).ok()
    }

    fn names_in(&self, part: &str) -> Result<Vec<String>, Error> {
        names_in(&self.root.own, part, "could not list the server's directory")
    }
}
