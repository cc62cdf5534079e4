//! The cache of sandbox cells.
//!
//! One cell for each [`CellKey`]: commands with the same workspace, access, network, kind of `.git` and
//! grants share a cell. A cell that is being made occupies its slot, so that commands that need it at
//! the same time wait for one cell instead of making several.
//!
//! A cell leaves the cache when its process has died, when it was idle for a minute and holds no
//! temporary files, when its workspace is released, or, with 256 cells, as the one that has been idle
//! longest. Temporary files keep a cell alive because a later command may look for them in `/tmp`.
//! Cells are dropped on threads that may block: with a cell its scratch directory is deleted.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use carrel_domain::{Network, WorkspaceAccess, sync};
use carrel_sandbox::GitDirectory;
use tokio::sync::OnceCell;

use crate::request::Grants;
use crate::sandbox_cell::SandboxCell;

/// The most cells that are kept for later commands. Busy cells beyond it are not evicted.
const MAX_CELLS: usize = 256;

/// The time that an idle cell without temporary files is kept.
const KEPT_FOR: Duration = Duration::from_mins(1);

/// The properties of a request that a cell is made for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CellKey {
    pub(crate) workspace: PathBuf,
    pub(crate) access: WorkspaceAccess,
    pub(crate) network: Network,
    pub(crate) repository: GitDirectory,
    pub(crate) grants: Grants,
}

#[derive(Debug, Default)]
pub(crate) struct CellCache(Arc<Mutex<CacheState>>);

#[derive(Debug, Default)]
struct CacheState {
    slots: HashMap<CellKey, Arc<CacheSlot>>,
    /// Set while the task that evicts idle cells runs. It ends with the last cell.
    has_evictor: bool,
}

/// The slot of a cell, empty while it is being made.
#[derive(Debug)]
pub(crate) struct CacheSlot {
    pub(crate) cell: OnceCell<Arc<SandboxCell>>,
    last_used: Mutex<Instant>,
}

impl CacheSlot {
    fn last_used(&self) -> MutexGuard<'_, Instant> {
        sync::lock(&self.last_used)
    }

    /// Returns whether the slot has a cell that no command runs in.
    fn is_idle(&self) -> bool {
        self.cell.get().is_some_and(|cell| Arc::strong_count(cell) == 1)
    }

    /// Returns whether the cell can be evicted: idle for [`KEPT_FOR`], and without temporary files.
    fn is_expired(&self) -> bool {
        let idle = self.cell.get().filter(|_| self.is_idle());
        idle.is_some_and(|cell| self.last_used().elapsed() > KEPT_FOR && !cell.has_files())
    }

    fn is_gone(&self) -> bool {
        self.cell.get().is_some_and(|cell| cell.is_gone())
    }
}

impl CellCache {
    /// Returns the slot of a key, a new one if its cell has died. Evicts another cell if the cache is full.
    pub(crate) fn slot(&self, key: &CellKey) -> Arc<CacheSlot> {
        let mut state = sync::lock(&self.0);
        if let Some(slot) = state.slots.get(key).filter(|slot| !slot.is_gone()) {
            *slot.last_used() = Instant::now();
            return Arc::clone(slot);
        }
        if !std::mem::replace(&mut state.has_evictor, true) {
            carrel_exec::spawn_task(evict_idle(Arc::downgrade(&self.0)));
        }
        if state.slots.len() >= MAX_CELLS {
            let idle = state.slots.iter().filter(|(_, slot)| slot.is_idle());
            let longest =
                idle.min_by_key(|(_, slot)| *slot.last_used()).map(|(key, _)| key.clone());
            let longest = longest.and_then(|key| state.slots.remove(&key));
            // Dropping it deletes its temporary files.
            longest.map(|slot| tokio::task::spawn_blocking(|| drop(slot)));
        }
        let last_used = Mutex::new(Instant::now());
        let slot = Arc::new(CacheSlot { cell: OnceCell::new(), last_used });
        state.slots.insert(key.clone(), Arc::clone(&slot));
        slot
    }

    /// Removes the idle cells of a workspace and returns them.
    pub(crate) fn take_idle(&self, workspace: &Path) -> Vec<Arc<CacheSlot>> {
        let mut state = sync::lock(&self.0);
        let taken =
            state.slots.extract_if(|key, slot| key.workspace == workspace && slot.is_idle());
        taken.map(|(_, slot)| slot).collect()
    }

    /// Returns a cell of the same workspace whose network namespace a new one shares, so that commands
    /// with network `loopback` reach each other's servers.
    pub(crate) fn companion(&self, key: &CellKey) -> Option<Arc<SandboxCell>> {
        if key.network != Network::Loopback {
            return None;
        }
        let state = sync::lock(&self.0);
        let shares = |other: &CellKey| {
            other.network == Network::Loopback && other.workspace == key.workspace
        };
        let sharing = state.slots.iter().filter(|(other, _)| shares(other));
        let made = sharing.filter_map(|(_, slot)| slot.cell.get());
        made.filter(|cell| !cell.is_gone()).map(Arc::clone).next()
    }
}

/// Evicts dead and expired cells until the cache is empty or dropped.
async fn evict_idle(state: Weak<Mutex<CacheState>>) {
    loop {
        tokio::time::sleep(KEPT_FOR / 4).await;
        let Some(state) = state.upgrade() else { return };
        // Listing and deleting scratch directories waits for the disk.
        let sweep = carrel_exec::blocking(move || {
            let mut state = sync::lock(&state);
            let expired = state.slots.extract_if(|_, slot| slot.is_gone() || slot.is_expired());
            let expired: Vec<_> = expired.collect();
            state.has_evictor = !state.slots.is_empty();
            let goes_on = state.has_evictor;
            drop(state);
            drop(expired);
            goes_on
        });
        if !sweep.await.unwrap_or(false) {
            return;
        }
    }
}
